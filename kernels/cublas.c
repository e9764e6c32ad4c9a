/* Loading cuBLAS (cublas.h). */
#include "kernels/cublas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define LIBRARY "libcublas.so." TEXT(CUBLAS_VER_MAJOR)

tsr_cublas_functions tsr_cublas;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char failure[256]; /* "": none */

/* As the process finds libraries, else where it was at build time. */
static void load(void) {
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) library = dlopen(TSR_CUBLAS_FILE, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(failure, sizeof failure, "%s", dlerror());
        return;
    }
#define X(name)                                                                                                       \
    *(void **)&tsr_cublas.name = dlsym(library, TEXT(name));                                                          \
    if (!tsr_cublas.name) snprintf(failure, sizeof failure, "%s has no %s", LIBRARY, TEXT(name));
    TSR_CUBLAS_FUNCTIONS(X)
#undef X
}

tsr_status tsr_cublas_load(void) {
    pthread_once(&once, load);
    if (failure[0] == '\0') return TSR_OK;
    return tsr_fail(TSR_ERR_UNSUPPORTED, "cuBLAS cannot be loaded: %s: add its folder to LD_LIBRARY_PATH, or do without (--kernel, --peer)", failure);
}

tsr_status tsr_cublas_check(cublasStatus_t code, const char *call) {
    if (code == CUBLAS_STATUS_SUCCESS) return TSR_OK;
    return tsr_fail(code == CUBLAS_STATUS_ALLOC_FAILED ? TSR_ERR_MEMORY : TSR_ERR_DEVICE, "%s failed: %s (cuBLAS status %d): do without cuBLAS (--kernel, --peer)", call,
                    tsr_cublas.cublasGetStatusString(code), (int)code);
}
