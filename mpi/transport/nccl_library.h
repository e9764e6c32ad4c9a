/* NCCL, loaded when a transport first wants it: the program also starts where it is not installed. Built where
 * NCCL's header is (TSR_HAVE_NCCL). */
#ifndef TSR_MPI_TRANSPORT_NCCL_LIBRARY_H
#define TSR_MPI_TRANSPORT_NCCL_LIBRARY_H

#include <nccl.h>

#include "kernels/base/base.h"

#define TSR_NCCL_FUNCTIONS(X)                                                                                          \
    X(ncclGetVersion)                                                                                                  \
    X(ncclGetErrorString)                                                                                              \
    X(ncclGetLastError)                                                                                                \
    X(ncclGetUniqueId)                                                                                                 \
    X(ncclCommInitRank)                                                                                                \
    X(ncclCommDestroy)                                                                                                 \
    X(ncclCommAbort)                                                                                                   \
    X(ncclCommGetAsyncError)                                                                                           \
    X(ncclAllGather)                                                                                                   \
    X(ncclReduceScatter)                                                                                               \
    X(ncclSend)                                                                                                        \
    X(ncclRecv)

typedef struct {
#define X(name) __typeof__(&name) name;
    TSR_NCCL_FUNCTIONS(X)
#undef X
} tsr_nccl_functions;

extern tsr_nccl_functions tsr_nccl; /* all there after tsr_nccl_load */

/* Local, from any thread. False with the reason in `why` (256 chars) when the library cannot be loaded or lacks a
 * function. */
bool tsr_nccl_load(char *why);
/* Local. The version loaded, or the version built with where none is; 2.28.3 is 22803. */
int tsr_nccl_version(bool *loaded);
/* A call's result as a status with NCCL's own text. */
tsr_status tsr_nccl_check(ncclResult_t result, const char *call);
#define TSR_NCCL(call) tsr_nccl_check(tsr_nccl.call, #call)

#endif
