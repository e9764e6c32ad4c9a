/* The contract every multiplication kernel keeps, and its descriptor.
 *
 *   C (m × n) = A (m × k) · B (k × n)            accumulate = false: C is never read
 *   C (m × n) += A (m × k) · B (k × n)           accumulate = true
 *
 * - A and B are of the kernel's input type, C of its type;
 * - any m, n, k ≥ 0 (k = 0 without accumulate writes zeros) and any ld ≥ columns; bytes between cols and ld of C
 *   stay untouched;
 * - asynchronous on the stream given; allocates nothing; workspace is asked for and passed in;
 * - with `batch` > 1 it makes so many products, each `stride` elements after the one before; a stride of 0 is the same
 *   matrix for all, of A or B alone. Products of C do not overlap, and what lies between them stays untouched;
 * - deterministic: same inputs, same bits; NaN and Inf go where IEEE arithmetic sends them;
 * - states its error bound in units of u·(|A||B|) for inner length k.
 * tests/ runs all of it for every kernel. */
#ifndef TSR_KERNELS_GEMM_GEMM_H
#define TSR_KERNELS_GEMM_GEMM_H

#include "kernels/device/device.h"
#include "kernels/gemm/check_counts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of k that is one sum where sums are reproducible (tsr_gemm_reproducible). */
#define TSR_GEMM_RANGE 16384

#define TSR_GEMM_LEVELS 4 /* of `exact` (exact/exact_rules.h): so many moduli, or 1 or 2 more; the loop */

/* Products that a kernel's `fallback` made, and how `exact` made its own, as the device counts them. */
typedef struct {
    uint64_t products;
    uint64_t few;           /* of them those in which too few elements meet for an element of C to be as exact */
    uint64_t multiply_adds; /* of the products */
    uint64_t passed;        /* of these those that it left to its own `fallback` */
    uint64_t levels[TSR_GEMM_LEVELS]; /* blocks of C, of each range of k, at each level */
    uint64_t left; /* elements of other blocks that were made by themselves, at a higher level or by the loop */
} tsr_gemm_fallbacks;

/* Where a kernel that checks its own products says what it found: rows, of each range of k it makes at once. */
typedef struct {
    tsr_check_counts *counts;     /* device memory (check_counts.h), added to; NULL: nothing is checked */
    int64_t place_row, place_col; /* of C, for it */
} tsr_gemm_check;

typedef struct {
    int64_t m, n, k;
    const void *a;
    int64_t lda; /* m × k, row-major, lda ≥ k elements */
    const void *b;
    int64_t ldb; /* k × n, row-major, ldb ≥ n elements */
    void *c;
    int64_t ldc; /* m × n, row-major, ldc ≥ n elements */
    bool accumulate;
    int64_t batch;                        /* products of this shape; 0 and 1: one */
    int64_t stride_a, stride_b, stride_c; /* elements from product to product; not looked at for one */
    void *workspace;                      /* workspace_bytes(...) bytes of device memory, NULL when that is 0 */
    tsr_gemm_fallbacks *fallbacks;        /* device memory, may be NULL: the kernel adds to it */
    void *fallback_workspace;             /* of a `fallback` that has one itself; NULL: that one is taken instead */
    const unsigned *predicate; /* device memory: where it holds 0 in the stream's order, nothing is done and C
                                    * stays; NULL: always done. For kernels with `predicated` */
    tsr_gemm_check check;      /* of kernels that have one; others do not look at it */
} tsr_gemm_args;

/* What a kernel may lose. code, name as in --accuracy, what is lost */
#define TSR_ACCURACY_LIST(X)                                                                                           \
    X(IEEE, "ieee", "every product and sum rounded once in C's type, or better")                                       \
    X(FAST, "fast", "operands as they are, sums as the tensor cores round them")                                       \
    X(TF32, "tf32", "fp32 operands rounded to tf32 (11 significant bits)")                                             \
    X(BF16, "bf16", "operands rounded to bfloat16 (8 significant bits)")

typedef enum {
#define X(code, name, what) TSR_ACCURACY_##code,
    TSR_ACCURACY_LIST(X)
#undef X
        TSR_ACCURACY_COUNT
} tsr_accuracy;

const char *tsr_accuracy_name(tsr_accuracy accuracy);
tsr_status tsr_accuracy_parse(const char *name, tsr_accuracy *accuracy); /* lists the names on error */

/* What a launch would look like on a device; filled by the kernel's `shape`, shown by bench and --dry-run. */
typedef struct {
    int tile_m, tile_n, tile_k; /* of C and of k a block works on; 0 where it has none */
    int threads;                /* a block */
    size_t shared_bytes;        /* dynamic and static, a block */
    int registers;              /* a thread, from the compiled kernel; 0 where unknown */
    double occupancy;           /* resident threads / most threads of a multiprocessor, 0..1 */
    /* global-memory bytes the algorithm moves for the given m, n, k (loads + stores, caches not counted) */
    double bytes;
} tsr_gemm_shape;

/* Another kernel that makes a product in a kernel's place, because of the product's shape. */
typedef struct {
    const struct tsr_gemm_kernel *kernel; /* NULL: the kernel makes the product itself */
    const char *why;                      /* "k < 64"; NULL where kernel is */
    bool unable;                          /* the kernel cannot make it; false: the other is quicker */
} tsr_gemm_substitute;

typedef struct tsr_gemm_kernel {
    const char *name; /* "tiled" */
    const char *what; /* one line for lists: "shared-memory tiles, boundary checked" */
    tsr_device_kind device;
    tsr_dtype input;       /* of A and B */
    tsr_dtype type;        /* of C and the accumulator */
    int min_arch;          /* lowest compute capability ·10; 0 on the CPU */
    int max_arch;          /* highest; 0: no limit. Code for sm_90a runs on sm_90 alone. */
    tsr_accuracy accuracy; /* of the product of A and B as they are handed over */
    bool rounds_tf32;      /* operands, to nearest even, before they are multiplied */
    double error_factor;   /* |ΔC| ≤ error_factor(k)·u·(|A||B|): value at k = 1 ... see error_grows */
    /* true: bound is error_factor·k; false: independent of k (compensated, wide accumulator) */
    bool error_grows;
    int64_t multiple;    /* m, n, k must be multiples of this; 1: any. Only `tiled` has one. */
    int speed_rank;      /* order for auto where speeds.inc has no figures: larger is faster; 0: not taken there */
    double load_seconds; /* from the first call to the first product, where that is a library's loading */

    /* Which kernel makes a product of this shape instead; pure. NULL: this one makes all. The other has the same
     * input and type, is as accurate, and is content with this kernel's workspace; its own substitutes count, too. */
    tsr_gemm_substitute (*substitute)(int64_t m, int64_t n, int64_t k);
    /* The `predicated` kernel for products that are not for this one, which the device finds and `fallbacks` counts;
     * NULL: it makes all. One that has a fallback itself is launched with args.fallback_workspace alone: it takes time
     * also where it makes nothing. */
    const struct tsr_gemm_kernel *fallback;
    const char *fallback_for; /* what the device finds then: "elements that it cannot hold" */
    /* What auto takes in this one's place: of the same name, input and type, as accurate, but with substitutes and a
     * fallback where this one has none. NULL: itself. */
    const struct tsr_gemm_kernel *for_auto;
    bool predicated; /* launch obeys `predicate` */
    /* launch obeys `check`: what goes wrong in it, from the integers that operands are rounded to up to the sums of
     * their products, is found with no threshold */
    bool checks;
    /* The kernel that makes many small products in one launch in this one's place, itself where it always does: of the
     * same input and type, as accurate, content with this one's workspace. NULL: a launch each. */
    const struct tsr_gemm_kernel *batched;

    size_t (*workspace_bytes)(int64_t m, int64_t n, int64_t k); /* NULL: none */
    /* What a multiply-add takes in a product of this shape, of what it takes in an endless one: what was measured of
     * squares tells by that of other shapes. Pure. NULL: in any shape the same. */
    double (*shape_cost)(int64_t m, int64_t n, int64_t k);
    /* NULL: it has no tiles to tell of */
    tsr_status (*shape)(tsr_device *device, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape);
    tsr_status (*launch)(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args);
    /* The same, but an element's sum, which is made and rounded before C is added, depends on its row of A and its
     * column of B alone: not on m and n, nor on its place. NULL: the kernel has no such way */
    tsr_status (*launch_reproducible)(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args);
    int64_t range; /* of tsr_gemm_reproducible: launches are cut here along k, each sum added to C; 0: they are not */
    tsr_status (*prepare)(int threads); /* CPU: starts that many threads for it, before a run; NULL: it needs none */
} tsr_gemm_kernel;

/* Whether the kernel's code runs on devices of compute capability arch / 10. */
static inline bool tsr_gemm_runs_on(const tsr_gemm_kernel *kernel, int arch) {
    return kernel->min_arch <= arch && (kernel->max_arch == 0 || arch <= kernel->max_arch);
}

/* Whether the kernel's fallback has a fallback itself. */
static inline bool tsr_gemm_has_chain(const tsr_gemm_kernel *kernel) {
    return kernel->fallback && kernel->fallback->fallback;
}

/* Whether a product has few multiply-adds for its overheads: fewer than edge³, and k < edge. */
static inline bool tsr_gemm_is_small(int edge, int64_t m, int64_t n, int64_t k) {
    return k < edge && (double)m * (double)n * (double)k < (double)edge * edge * edge;
}

/* registry.c: every kernel of this build, in ladder order. */
const tsr_gemm_kernel *const *tsr_gemm_kernels(int *count);
/* The kernel called `name` for this device, input and type. TSR_ERR_USAGE lists the names there are;
 * TSR_ERR_UNSUPPORTED says which arch it needs. */
tsr_status tsr_gemm_find(const char *name, const tsr_device_facts *facts, tsr_dtype input, tsr_dtype type,
                         const tsr_gemm_kernel **kernel);

/* What is to be multiplied, for the choice of a kernel. */
typedef struct {
    tsr_dtype a, b;        /* as stored */
    tsr_dtype type;        /* of C's accumulator: TSR_F32 or TSR_F64 */
    tsr_accuracy accuracy; /* the most that may be lost */
    int64_t m, n, k;       /* of a product, about */
    double flops;          /* of all launches on this device; 0: so many that loading a kernel does not count */
    int64_t batch;         /* products a launch; 0 and 1: one */
} tsr_gemm_request;

/* kernel_choice.c: the fastest kernel for the request on this device, as speeds.inc has it measured there for
 * the code this build has, what loading it takes counted in, or by speed_rank where nothing was measured; with a
 * name other than "auto" the one of that name, whatever it loses; with "auto" its `for_auto`, which no registry lists.
 * Operands are handed over in the kernel's input type: as they are stored, in C's type, or, where that may be lost, in
 * bfloat16. Errors as tsr_gemm_find. */
tsr_status tsr_gemm_choose(const char *name, const tsr_device_facts *facts, const tsr_gemm_request *request,
                           const tsr_gemm_kernel **kernel);
/* kernel_choice.c: the kernel that auto takes in this one's place, or itself. */
const tsr_gemm_kernel *tsr_gemm_for_auto(const tsr_gemm_kernel *kernel);
/* kernel_choice.c: what is lost when this kernel multiplies operands stored as a and b. */
tsr_accuracy tsr_gemm_loss(const tsr_gemm_kernel *kernel, tsr_dtype a, tsr_dtype b);
/* kernel_choice.c: measured flop/s of the kernel on this device (its arch and code) for a product of m × k by k × n,
 * interpolated between squares of as many multiply-adds, and from them by `shape_cost`; 0 where none was measured. */
double tsr_gemm_speed(const tsr_gemm_kernel *kernel, const tsr_device_facts *facts, int64_t m, int64_t n, int64_t k);
/* kernel_choice.c: the kernel that makes a product for which `kernel` is asked, by shape: itself or, in the end, a
 * substitute. Pure; never NULL. */
const tsr_gemm_kernel *tsr_gemm_serving(const tsr_gemm_kernel *kernel, int64_t m, int64_t n, int64_t k);
/* kernel_choice.c: the kernel that makes `batch` such products in one launch: the `batched` one of a kernel, where they
 * are small or it is that itself; NULL: each is a launch of tsr_gemm_serving. Pure. */
const tsr_gemm_kernel *tsr_gemm_serving_batch(const tsr_gemm_kernel *kernel, int64_t batch, int64_t m, int64_t n,
                                              int64_t k);
/* kernel_choice.c: whichever of the two makes a step of `batch` products. Pure; never NULL. */
const tsr_gemm_kernel *tsr_gemm_making(const tsr_gemm_kernel *kernel, int64_t batch, int64_t m, int64_t n, int64_t k);
/* kernel_choice.c: the same for a reader: "split3 -> simt (k < 64)". `text` of TSR_GEMM_TEXT chars is returned. */
#define TSR_GEMM_TEXT 320
const char *tsr_gemm_explain(const tsr_gemm_kernel *kernel, int64_t batch, int64_t m, int64_t n, int64_t k, char *text);
/* kernel_choice.c: why tsr_gemm_choose takes `kernel` for this request. `text` as above. */
const char *tsr_gemm_explain_choice(const char *name, const tsr_device_facts *facts, const tsr_gemm_request *request,
                                    const tsr_gemm_kernel *kernel, char *text);
/* kernel_choice.c: makes *own of `kernel`, whose elements of C depend on their row of A, their column of B and C alone,
 * however a caller cuts C, and k at multiples of TSR_GEMM_RANGE. k alone chooses substitutes. Its fallback is the last
 * one that it had, and makes single elements. Batches are launches each. TSR_ERR_USAGE names the kernels of this
 * device, input and type that can. */
tsr_status tsr_gemm_reproducible(const tsr_gemm_kernel *kernel, tsr_gemm_kernel *own);
/* launch.c: checks args against the contract (ld, strides, NULLs, multiple) and launches the kernel that serves the
 * shape; every caller uses it. */
tsr_status tsr_gemm_launch(const tsr_gemm_kernel *kernel, tsr_device *device, tsr_stream *stream,
                           const tsr_gemm_args *args);
/* launch.c: the kernel's `shape`, or, where it has none, bytes alone, each operand counted once. */
tsr_status tsr_gemm_shape_of(const tsr_gemm_kernel *kernel, tsr_device *device, int64_t m, int64_t n, int64_t k,
                             tsr_gemm_shape *shape);
/* |ΔC| ≤ bound·(|A||B|) elementwise for inner length k. */
double tsr_gemm_error_bound(const tsr_gemm_kernel *kernel, int64_t k);

#ifdef __cplusplus
}
#endif
#endif
