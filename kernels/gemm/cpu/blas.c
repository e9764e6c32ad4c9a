/* OpenBLAS, loaded from the file it was built with, or by that one's name, or whatever CBLAS the program is linked
 * with (blas.h).
 *
 * OpenBLAS 0.3 looks at nothing: a thread that could not be started is given work all the same, a thread without a
 * buffer asks for one again and again, and at its end the library joins threads that never were. */
#define _GNU_SOURCE /* strdup, usleep */
#include "kernels/gemm/cpu/blas.h"

#include <cblas.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/base/library.h"
#include "kernels/device/host_memory.h"

#define BUFFER_BYTES ((size_t)128 << 20) /* of OpenBLAS for each thread that multiplies, the caller among them */
#define SPARE_BYTES ((size_t)4 << 20)    /* of address space: what MPI's threads and we allocate before it has them */
#define PTHREADS 1 /* openblas_get_parallel: threads of its own, not OpenMP's, which says itself what it lacks */

/* ---- loading --------------------------------------------------------------------------------- */

/* What only OpenBLAS has is NULL in another library. */
static struct {
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&cblas_dgemm) dgemm;
    void (*set_num_threads)(int threads);
    int (*get_num_threads)(void);
    int (*get_parallel)(void);
    char *(*get_config)(void);
} blas;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded, broken;
static int found_threads; /* of OpenBLAS: when it was loaded, or at tsr_blas_enter */
static char why[TSR_LIBRARY_WHY_CHARS];

#ifdef TSR_BLAS_FILE
static bool load_functions(void) {
    static const char *const symbols[] = {
        "cblas_sgemm",           "cblas_dgemm",        "openblas_set_num_threads", "openblas_get_num_threads",
        "openblas_get_parallel", "openblas_get_config"};
    _Static_assert(sizeof blas == sizeof symbols, "a pointer a symbol");
    /* By name the system's could be found first, of which another build may know no threads. */
    return tsr_library_load(TSR_BLAS_FILE, TSR_BLAS_NAME, symbols, (void **)&blas, sizeof symbols / sizeof *symbols,
                            why);
}
#else
extern void openblas_set_num_threads(int threads) __attribute__((weak));
extern int openblas_get_num_threads(void) __attribute__((weak));
extern int openblas_get_parallel(void) __attribute__((weak));
extern char *openblas_get_config(void) __attribute__((weak));

static bool load_functions(void) {
    blas.sgemm = cblas_sgemm;
    blas.dgemm = cblas_dgemm;
    blas.set_num_threads = openblas_set_num_threads;
    blas.get_num_threads = openblas_get_num_threads;
    blas.get_parallel = openblas_get_parallel;
    blas.get_config = openblas_get_config;
    return true;
}
#endif

/* OpenBLAS starts threads while it is loaded, unless this variable tells it to make do with the caller. */
static void load(void) {
    static const char variable[] = "OPENBLAS_NUM_THREADS";
    const char *set = getenv(variable);
    char *kept = set ? strdup(set) : NULL;
    snprintf(why, sizeof why, "no memory for its settings");
    if ((set && !kept) || setenv(variable, "1", 1) != 0) {
        free(kept);
        return;
    }
    loaded = load_functions();
    if (loaded && blas.get_num_threads) found_threads = blas.get_num_threads();
    if (kept) setenv(variable, kept, 1);
    else unsetenv(variable);
    free(kept);
}

static tsr_status load_once(void) {
    pthread_once(&once, load);
    tsr_process_room room;
    if (loaded) return TSR_OK;
    tsr_process_room_find(&room);
    return tsr_fail(TSR_ERR_UNSUPPORTED, "BLAS cannot be loaded: %s: %s%s, or use --kernel reference", why,
                    room.by ? "raise " : "add its folder to LD_LIBRARY_PATH", room.by ? room.by : "");
}

const char *tsr_blas_version(void) {
    pthread_once(&once, load);
    if (!loaded) return why;
    return blas.get_config ? blas.get_config() : "a CBLAS other than OpenBLAS";
}

/* ---- room ------------------------------------------------------------------------------------ */

static tsr_status no_room(int threads, size_t bytes, int error) {
    char need[32], have[32], left[64];
    tsr_process_room room;
    tsr_process_room_find(&room);
    snprintf(left, sizeof left, "%s", strerror(error));
    if (room.by) snprintf(left, sizeof left, "%s leaves %s", room.by, tsr_format_bytes((double)room.left, have));
    return tsr_fail(TSR_ERR_MEMORY,
                    "OpenBLAS needs %s of address space for %d thread%s and its buffers of 128 MiB each, and there is "
                    "less (%s): raise the limit (%s), or use %s",
                    tsr_format_bytes((double)bytes, need), threads, threads == 1 ? "" : "s", left,
                    room.by ? room.by : "ulimit -v", threads == 1 ? "--kernel reference" : "fewer --threads");
}

/* Bytes of a piece of what is mapped: first the buffers, then the stacks, then what is to spare. */
static size_t piece_bytes(int piece, int threads, int stacks) {
    return piece < threads ? BUFFER_BYTES : piece < threads + stacks ? tsr_stack_bytes() : SPARE_BYTES;
}

/* Maps what `threads` more buffers and `stacks` more stacks take, and SPARE_BYTES, and gives it back: what the system
 * refuses now it would refuse OpenBLAS, which does not look: it tries for ever. */
static tsr_status check_room(int threads, int stacks) {
    const size_t all = (size_t)threads * BUFFER_BYTES + (size_t)stacks * tsr_stack_bytes();
    const int pieces = threads + stacks + 1;
    int mapped = 0, error = 0;
    void **at = malloc((size_t)pieces * sizeof *at);
    if (!at) return tsr_fail(TSR_ERR_MEMORY, "no memory for a list of %d buffers: free some", pieces);
    while (mapped < pieces) {
        at[mapped] = mmap(NULL, piece_bytes(mapped, threads, stacks), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at[mapped] == MAP_FAILED) break;
        mapped++;
    }
    if (mapped < pieces) error = errno;
    for (int i = 0; i < mapped; i++) munmap(at[i], piece_bytes(i, threads, stacks));
    free(at);
    return mapped == pieces ? TSR_OK : no_room(threads, all, error);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Numbers of this process's threads; with `ids` NULL or too few they are counted all the same. */
static int list_threads(int *ids, int most) {
    int count = 0;
    DIR *threads = opendir("/proc/self/task");
    if (!threads) return 0;
    for (struct dirent *one; (one = readdir(threads));) {
        const int id = atoi(one->d_name);
        if (id <= 0) continue;
        if (count < most) ids[count] = id;
        count++;
    }
    closedir(threads);
    return count;
}

static bool among(int id, const int *ids, int count) {
    for (int i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

/* Has OpenBLAS start `more` threads and counts the new ones: threads that are about to end do not disturb this. */
static tsr_status start_threads(int threads, int more) {
    enum { MOST = 8192 };
    int *ids = malloc(2 * MOST * sizeof *ids);
    int *now = ids ? ids + MOST : NULL;
    int made = 0;
    if (!ids) return tsr_fail(TSR_ERR_MEMORY, "no memory for the numbers of threads: free some");
    const int before = (int)tsr_min(MOST, list_threads(ids, MOST));
    blas.set_num_threads(threads);
    const int after = (int)tsr_min(MOST, list_threads(now, MOST));
    for (int i = 0; i < after; i++) made += !among(now[i], ids, before);
    free(ids);
    const int now_there = blas.get_num_threads(); /* it has a most of its own */
    more -= threads - now_there;
    if (before == 0 || after == MOST || made >= more) return TSR_OK; /* or no telling */
    broken = true;
    return tsr_fail(TSR_ERR_MEMORY,
                    "OpenBLAS could start %d of %d threads: use --threads %d, or raise the limit on processes "
                    "(ulimit -u) or on address space (ulimit -v)",
                    made, more, now_there - more + made);
}

/* Where addresses are limited, what is left of them is counted after this: so the new threads' buffers must be there,
 * for which they need a moment. They may be smaller than we think, so that a second must do. */
static void await_buffers(uint64_t left, int more) {
    tsr_process_room room;
    for (int tries = 0; tries < 1000; tries++) {
        tsr_process_room_find(&room);
        if (!room.by || room.left + (uint64_t)more * BUFFER_BYTES <= left) return;
        usleep(1000);
    }
}

bool tsr_blas_broken(void) { return broken; }

/* A product that takes the caller's own buffer, and wakes the others. */
static tsr_status first_product(void) {
    enum { EDGE = 128 }; /* products of less than 100³ may do without */
    float *all = calloc(3 * EDGE * EDGE, sizeof *all);
    if (!all) return tsr_fail(TSR_ERR_MEMORY, "no memory for a first product of %d x %d: free some", EDGE, EDGE);
    float *b = all + EDGE * EDGE, *c = b + EDGE * EDGE;
    tsr_status status = tsr_blas_sgemm(EDGE, EDGE, EDGE, all, EDGE, b, EDGE, 0, c, EDGE);
    free(all);
    return status;
}

tsr_status tsr_blas_start(int threads) {
    static int started; /* threads with a buffer, the caller among them */
    TSR_TRY(load_once());
    if (!blas.set_num_threads || !blas.get_num_threads) return TSR_OK;
    const bool own = blas.get_parallel && blas.get_parallel() == PTHREADS;
    const int there = (int)tsr_max(started, blas.get_num_threads()), more = (int)tsr_max(0, threads - there);
    tsr_process_room room;
    if (threads <= started || !own) {
        blas.set_num_threads(threads);
        return TSR_OK;
    }
    TSR_TRY(check_room(started == 0 ? more + 1 : more, more));
    tsr_process_room_find(&room);
    TSR_TRY(start_threads(threads, more));
    await_buffers(room.left, more);
    TSR_TRY(first_product());
    started = threads;
    return TSR_OK;
}

void tsr_blas_enter(void) {
    if (loaded && blas.get_num_threads) found_threads = blas.get_num_threads();
}

void tsr_blas_leave(void) {
    if (loaded && blas.set_num_threads && found_threads > 0 && !broken) blas.set_num_threads(found_threads);
}

/* ---- products -------------------------------------------------------------------------------- */

tsr_status tsr_blas_sgemm(int m, int n, int k, const float *a, int lda, const float *b, int ldb, float beta, float *c,
                          int ldc) {
    TSR_TRY(load_once());
    blas.sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
    return TSR_OK;
}

tsr_status tsr_blas_dgemm(int m, int n, int k, const double *a, int lda, const double *b, int ldb, double beta,
                          double *c, int ldc) {
    TSR_TRY(load_once());
    blas.dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
    return TSR_OK;
}
