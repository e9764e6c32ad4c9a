/* BLAS's threads: made when they are asked for and counted, and an error where their buffers have no room. */
#define _GNU_SOURCE /* setenv */
#include "kernels/gemm/cpu/blas.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "kernels/device/host_memory.h"
#include "tests/check.h"

/* The first OpenBLAS that is asked for. */
static char first_asked[512];

void *dlopen(const char *name, int flags) {
    void *(*next)(const char *, int);
    *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
    if (name && strstr(name, "openblas") && !first_asked[0]) snprintf(first_asked, sizeof first_asked, "%s", name);
    return next(name, flags);
}

static int threads_now(void) {
    int count = 0;
    DIR *threads = opendir("/proc/self/task");
    CHECK(threads != NULL, "no /proc");
    for (struct dirent *one; (one = readdir(threads));) count += one->d_name[0] != '.';
    closedir(threads);
    return count;
}

/* Integers: exact however many threads add them. */
static void check_product(void) {
    enum { M = 150, N = 170, K = 130 };
    double *a = malloc(M * K * sizeof *a);
    double *b = malloc(K * N * sizeof *b);
    double *c = malloc(M * N * sizeof *c);
    CHECK(a && b && c, "no memory");
    for (int i = 0; i < M * K; i++) a[i] = i % 7 - 3;
    for (int i = 0; i < K * N; i++) b[i] = i % 5 - 2;
    for (int i = 0; i < M * N; i++) c[i] = 1;
    CHECK_OK(tsr_blas_dgemm(M, N, K, a, K, b, N, 2, c, N));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 2;
            for (int l = 0; l < K; l++) sum += a[i * K + l] * b[l * N + j];
            CHECK(c[i * N + j] == sum, "element %d, %d is %g and not %g", i, j, c[i * N + j], sum);
        }
    free(a);
    free(b);
    free(c);
}

/* With sanitizers, whose own addresses are beyond any limit, nothing could be allocated. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static void check_room(void) {}
static void check_data_limit(void) {}
#else
static void check_room(void) {
    struct rlimit limit, small;
    tsr_process_room room;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0, "no limit");
    small = limit;
    tsr_process_room_find(&room);
    CHECK(room.by == NULL && room.left == UINT64_MAX, "limited from the start, by %s", room.by);
    small.rlim_cur = (rlim_t)400 << 20;
    CHECK(setrlimit(RLIMIT_AS, &small) == 0, "no limit set");
    tsr_process_room_find(&room);
    CHECK(strcmp(room.by, "ulimit -v") == 0 && room.limit == small.rlim_cur, "limited by %s", room.by);
    CHECK(room.left > 0 && room.left < room.limit, "%llu left", (unsigned long long)room.left);
    CHECK_FAILS(tsr_blas_start(3), TSR_ERR_MEMORY, "address space for 3 threads");
    CHECK(strstr(tsr_message(), "ulimit -v leaves") && strstr(tsr_message(), "--threads"), "%s", tsr_message());
    CHECK(threads_now() == 1, "%d threads after a failure", threads_now());
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "limit not taken back");
}

static void check_data_limit(void) {
    struct rlimit limit, small;
    tsr_process_room room;
    CHECK(getrlimit(RLIMIT_DATA, &limit) == 0, "no limit");
    small = limit;
    small.rlim_cur = (rlim_t)1 << 40;
    CHECK(setrlimit(RLIMIT_DATA, &small) == 0, "no limit set");
    tsr_process_room_find(&room);
    CHECK(strcmp(room.by, "ulimit -d") == 0 && room.left > 0 && room.left < room.limit, "limited by %s", room.by);
    small.rlim_cur = (rlim_t)200 << 20;
    CHECK(setrlimit(RLIMIT_DATA, &small) == 0, "no limit set");
    CHECK_FAILS(tsr_blas_start(3), TSR_ERR_MEMORY, "raise the limit (ulimit -d)");
    CHECK(setrlimit(RLIMIT_DATA, &limit) == 0, "limit not taken back");
}
#endif

int main(void) {
    setenv("OPENBLAS_NUM_THREADS", "7", 1);
    check_product(); /* nobody has started it */
    CHECK(strlen(tsr_blas_version()) > 0, "no version");
    /* By its name alone another build of it could be found first. Empty: it is linked. */
    CHECK(!first_asked[0] || first_asked[0] == '/', "'%s' was asked for, and not the file it was built with",
          first_asked);
    CHECK(strcmp(getenv("OPENBLAS_NUM_THREADS"), "7") == 0, "a variable of the user's has changed");
    if (!strstr(tsr_blas_version(), "OpenBLAS") || threads_now() != 1) {
        CHECK_OK(tsr_blas_start(3)); /* another library, or one that was there before: it keeps its own threads */
        check_product();
        return 0;
    }
    check_room();
    check_data_limit();
    CHECK_OK(tsr_blas_start(3));
    CHECK(threads_now() == 3, "%d threads of 3", threads_now());
    check_product();
    CHECK_OK(tsr_blas_start(2));
    check_product();
    CHECK_OK(tsr_blas_start(4));
    CHECK(threads_now() == 4, "%d threads of 4", threads_now());
    check_product();
    return 0;
}
