/* The calls that may be made to fail, and what counts them: injector.c, injector_mpi.c. */
#ifndef TSR_TESTS_FAULTS_INJECTOR_H
#define TSR_TESTS_FAULTS_INJECTOR_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

/* name, whether calls of libraries are left out. The driver reads the order here: injection.py. */
#define FAMILIES(X)                                                                                                    \
    X(open, true)                                                                                                      \
    X(openat, true)                                                                                                    \
    X(pread, false)                                                                                                    \
    X(pwrite, false)                                                                                                   \
    X(ftruncate, false)                                                                                                \
    X(fallocate, false)                                                                                                \
    X(fsync, false)                                                                                                    \
    X(rename, false)                                                                                                   \
    X(unlink, false)                                                                                                   \
    X(stat, true)                                                                                                      \
    X(mmap, false)                                                                                                     \
    X(malloc, true)                                                                                                    \
    X(posix_memalign, false)                                                                                           \
    X(pthread_create, false)                                                                                           \
    X(h5_write, false)                                                                                                 \
    X(h5_close, false)                                                                                                 \
    X(mpi, true)                                                                                                       \
    X(mpi_pair, true) /* of two ranks: they count as mpi, too */                                                       \
    X(cuda, true)                                                                                                      \
    X(nccl, true)

enum {
#define X(name, own) of_##name,
    FAMILIES(X)
#undef X
        FAMILY_COUNT
};

/* What the driver reads. C alone: C++ has other atomics. */
#ifndef __cplusplus
typedef struct {
    _Atomic uint64_t calls[32];
    _Atomic uint64_t fired;
    char function[64], caller[256]; /* of the first that failed */
    _Atomic uint64_t aborts;        /* of NCCL's communicators */
} tsr_fault_report;
#endif

/* Counts a call; true when it is to fail, with the error in errno. */
bool tsr_fault_fails(int family, const char *function, const void *return_address);
#define FAILS(family) tsr_fault_fails(of_##family, __func__, __builtin_return_address(0))

/* The function that this one stands before. */
#define NEXT(type, name, ...)                                                                                          \
    static type (*next)(__VA_ARGS__);                                                                                  \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name)

#endif
