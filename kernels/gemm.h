/* The contract every multiplication kernel keeps, and its descriptor.
 *
 *   C (m × n) = A (m × k) · B (k × n)            accumulate = false: C is never read
 *   C (m × n) += A (m × k) · B (k × n)           accumulate = true
 *
 * - any m, n, k ≥ 0 (k = 0 without accumulate writes zeros) and any ld ≥ columns; bytes between cols and ld of C stay untouched;
 * - asynchronous on the stream given; allocates nothing; workspace is asked for and passed in;
 * - deterministic: same inputs, same bits; NaN and Inf go where IEEE arithmetic sends them;
 * - states its error bound in units of u·(|A||B|) for inner length k.
 * tests/ runs all of it for every kernel. */
#ifndef TSR_KERNELS_GEMM_H
#define TSR_KERNELS_GEMM_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int64_t m, n, k;
    const void *a; int64_t lda; /* m × k, row-major, lda ≥ k elements */
    const void *b; int64_t ldb; /* k × n, row-major, ldb ≥ n elements */
    void *c;       int64_t ldc; /* m × n, row-major, ldc ≥ n elements */
    bool accumulate;
    void *workspace;            /* workspace_bytes(...) bytes of device memory, NULL when that is 0 */
} tsr_gemm_args;

typedef enum {
    TSR_ACCURACY_IEEE,  /* every product and sum rounded once in the output type, or better */
    TSR_ACCURACY_LOWER  /* rounds operands or sums to less: only by name */
} tsr_accuracy;

/* What a launch would look like on a device; filled by the kernel's `shape`, shown by bench and --dry-run. */
typedef struct {
    int tile_m, tile_n, tile_k; /* of C and of k a block works on; 0 where it has none */
    int threads;                /* a block */
    size_t shared_bytes;        /* dynamic and static, a block */
    int registers;              /* a thread, from the compiled kernel; 0 where unknown */
    int blocks_sm;              /* resident blocks a multiprocessor (occupancy); 0 where unknown */
    double occupancy;           /* resident threads / most threads of a multiprocessor, 0..1 */
    double bytes;               /* global-memory bytes the algorithm moves for the given m, n, k (loads + stores, caches not counted) */
} tsr_gemm_shape;

typedef struct tsr_gemm_kernel {
    const char *name;            /* "tiled" */
    const char *what;            /* one line for lists: "shared-memory tiles, boundary checked" */
    tsr_device_kind device;
    tsr_dtype type;              /* of A, B, C and the accumulator */
    int min_arch;                /* lowest compute capability ·10; 0 on the CPU */
    tsr_accuracy accuracy;
    double error_factor;         /* |ΔC| ≤ error_factor(k)·u·(|A||B|): value at k = 1 ... see error_grows */
    bool error_grows;            /* true: bound is error_factor·k; false: independent of k (compensated, wide accumulator) */
    int64_t multiple;            /* m, n, k must be multiples of this; 1 = any. Only `tiled` has one. */
    int speed_rank;              /* order for auto, larger is faster; from `tessera bench gemm --all`, see docs/performance.md */
    size_t (*workspace_bytes)(int64_t m, int64_t n, int64_t k); /* NULL: none */
    tsr_status (*shape)(tsr_device *device, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape);
    tsr_status (*launch)(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args);
    int max_arch;                /* highest compute capability ·10; 0: no limit. Code for sm_90a runs on sm_90 alone. */
} tsr_gemm_kernel;

/* Whether the kernel's code runs on devices of compute capability arch / 10. */
static inline bool tsr_gemm_runs_on(const tsr_gemm_kernel *kernel, int arch) {
    return kernel->min_arch <= arch && (kernel->max_arch == 0 || arch <= kernel->max_arch);
}

/* registry.c: every kernel of this build, in ladder order. */
const tsr_gemm_kernel *const *tsr_gemm_kernels(int *count);
/* The kernel called `name` ("auto": the largest speed_rank that is IEEE-accurate and runs there) for this device and type.
 * TSR_ERR_USAGE lists the names there are; TSR_ERR_UNSUPPORTED says which arch it needs. */
tsr_status tsr_gemm_find(const char *name, const tsr_device_facts *facts, tsr_dtype type, const tsr_gemm_kernel **kernel);
/* Checks args against the contract (ld, NULLs, multiple) and launches; every caller uses it. */
tsr_status tsr_gemm_launch(const tsr_gemm_kernel *kernel, tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args);
/* |ΔC| ≤ bound·(|A||B|) elementwise for inner length k. */
double tsr_gemm_error_bound(const tsr_gemm_kernel *kernel, int64_t k);

#ifdef __cplusplus
}
#endif
#endif
