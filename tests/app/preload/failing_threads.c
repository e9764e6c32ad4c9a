/* Loaded before the C library (LD_PRELOAD): no thread can be started from the TSR_FAIL_THREAD-th on (the first is
 * 1), or with TSR_FAIL_ONCE that one cannot; on the rank TSR_FAIL_RANK, on all without it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int asked;

static int here(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *wanted = getenv("TSR_FAIL_RANK");
    return !wanted || (rank && strcmp(rank, wanted) == 0);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *context) {
    const char *number = getenv("TSR_FAIL_THREAD");
    const int fails = number ? atoi(number) : 0, now = ++asked;
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    if (fails > 0 && here() && (getenv("TSR_FAIL_ONCE") ? now == fails : now >= fails)) return EAGAIN;
    return next(thread, how, run, context);
}
