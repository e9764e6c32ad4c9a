/* Loading NCCL (nccl_library.h). */
#include "mpi/transport/nccl_library.h"

#include <pthread.h>
#include <stdio.h>

#include "kernels/base/library.h"

tsr_nccl_functions tsr_nccl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;
static char reason[TSR_LIBRARY_WHY_CHARS];

static void load(void) {
#define X(name) #name,
    static const char *const symbols[] = {TSR_NCCL_FUNCTIONS(X)};
#undef X
    loaded = tsr_library_load("libnccl.so.2", TSR_NCCL_FILE, symbols, (void **)&tsr_nccl,
                              sizeof symbols / sizeof *symbols, reason);
}

bool tsr_nccl_load(char *why) {
    pthread_once(&once, load);
    if (!loaded) snprintf(why, 256, "NCCL cannot be loaded: %.200s", reason);
    return loaded;
}

int tsr_nccl_version(bool *is_loaded) {
    int version = NCCL_VERSION_CODE;
    if (loaded) tsr_nccl.ncclGetVersion(&version);
    *is_loaded = loaded;
    return version;
}

tsr_status tsr_nccl_check(ncclResult_t result, const char *call) {
    if (result == ncclSuccess) return TSR_OK;
    return tsr_fail(TSR_ERR_DEVICE, "%s: %s (%s): NCCL_DEBUG=WARN shows more; --transport host does without NCCL", call,
                    tsr_nccl.ncclGetErrorString(result), tsr_nccl.ncclGetLastError(NULL));
}
