/* Loading cuBLAS (cublas.h). */
#include "kernels/gemm/vendor/cublas.h"

#include <pthread.h>

#include "kernels/base/library.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

tsr_cublas_functions tsr_cublas;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;
static char why[TSR_LIBRARY_WHY_CHARS];

static void load(void) {
#define X(name) TEXT(name),
    static const char *const symbols[] = {TSR_CUBLAS_FUNCTIONS(X)};
#undef X
    loaded = tsr_library_load("libcublas.so." TEXT(CUBLAS_VER_MAJOR), TSR_CUBLAS_FILE, symbols, (void **)&tsr_cublas,
                              sizeof symbols / sizeof *symbols, why);
}

tsr_status tsr_cublas_load(void) {
    pthread_once(&once, load);
    if (loaded) return TSR_OK;
    return tsr_fail(TSR_ERR_UNSUPPORTED,
                    "cuBLAS cannot be loaded: %s: add its folder to LD_LIBRARY_PATH, or do without (--kernel, --peer)",
                    why);
}

tsr_status tsr_cublas_check(cublasStatus_t code, const char *call) {
    if (code == CUBLAS_STATUS_SUCCESS) return TSR_OK;
    return tsr_fail(code == CUBLAS_STATUS_ALLOC_FAILED ? TSR_ERR_MEMORY : TSR_ERR_DEVICE,
                    "%s failed: %s (cuBLAS status %d): do without cuBLAS (--kernel, --peer)", call,
                    tsr_cublas.cublasGetStatusString(code), (int)code);
}
