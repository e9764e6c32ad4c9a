/* Freivalds' check of a product whose operands are in a device's memory: with random signs x, each times a power of
 * two that brings its column of B to the size of the others, C·x is compared with A·(B·x), row by row, in double.
 * It reads A, B and C once.
 *
 * Rows of C are judged in the accumulator's type. A row is doubtful where the two differ by more than what the kernel's
 * rounding makes of rows as a rule, with signs drawn at random (check_rules.h), or by 4 times that where this is less
 * than TSR_CHECK_SHARE of the root mean square of the row's elements. So one element that is wrong by TSR_CHECK_FINDS
 * of that is found, unless rounding alone makes such errors. Errors of many elements of a row, as a wrong element of A
 * makes them, may cancel: two draws of signs make that rare. A doubtful row that comes out the same again may be a
 * matter of rounding, unless it is wrong: outside of what rounding makes of any row, but for one in 10^9 products.
 *
 * Columns of B with NaN or Inf are left out. Rows that cannot be judged are counted: those of A with NaN or Inf, and
 * those whose squares leave the range of double. Kernels with `checks` count in the same place (gemm.h).
 * Source: Freivalds 1977; sums of signs: Hoeffding 1963; rounding: Higham and Mary 2019. */
#ifndef TSR_KERNELS_CHECK_CHECK_H
#define TSR_KERNELS_CHECK_CHECK_H

#include "kernels/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_CHECK_SHARE 0.006
#define TSR_CHECK_FINDS 0.01

/* One launch's part in a product of panels: C = A·B, or C += A·B. */
typedef struct {
    const tsr_gemm_args *gemm;     /* as launched; `a`, `b` and `c` are only read */
    const tsr_gemm_kernel *kernel; /* that made it */
    bool opens;                    /* the first launch of a block of C: draws the signs of `width` columns of B */
    bool closes;                   /* the rows of this launch are complete: C is judged, which nothing else reads */
    int64_t width;                 /* columns of the block, ≥ n and ≤ ldb */
    int64_t row;                   /* of the block, where this launch's rows begin */
    int64_t rows, depth; /* of the block's rows and the launches' rows of B the most: as for tsr_check_bytes */
    int64_t k;           /* of all launches */
    uint64_t seed;
    int64_t place_row, place_col; /* of C, for tsr_check_counts */
    void *workspace;          /* tsr_check_bytes(rows, width, depth) of device memory, which a block's launches share */
    tsr_check_counts *counts; /* device memory, added to */
} tsr_check_args;

/* Rows of C as a file holds them, alpha·A·B rounded once to a floating type; in the device's memory. */
typedef struct {
    const void *data; /* rows × cols, ld */
    tsr_dtype type;
    int64_t rows, cols, ld;
    int64_t row; /* of the block, where they begin */
    double alpha;
} tsr_check_strip;
#define TSR_CHECK_ALPHA 0x1p20 /* the largest, and one over it the smallest, but for the sign */

/* Whether a strip of such a type and factor can be judged, of sums of `type`. */
bool tsr_check_can_judge(tsr_dtype type, tsr_dtype out, double alpha);

/* Bytes of workspace for blocks of rows × width and launches of at most `depth` rows of B, those of all matrices of a
 * batch. */
size_t tsr_check_bytes(int64_t rows, int64_t width, int64_t depth);

typedef struct {
    tsr_device_kind device;
    /* After the launch, on its stream; asynchronous where the device is. */
    tsr_status (*follow)(tsr_device *device, tsr_stream *stream, const tsr_check_args *args);
    /* After launches that were followed, none of which closed: rows of what became of C. Of `args` it reads kernel,
     * width, rows, depth, k, place, workspace and counts. Where columns of B were left out no row is judged. */
    tsr_status (*judge)(tsr_device *device, tsr_stream *stream, const tsr_check_args *args,
                        const tsr_check_strip *strip);
} tsr_check_ops;

extern const tsr_check_ops tsr_check_cpu;
extern const tsr_check_ops tsr_check_cuda; /* with CUDA (TSR_HAVE_CUDA) or its emulation: check_cuda.cu */

const tsr_check_ops *tsr_check_find(tsr_device_kind device); /* never NULL for a device that opened */

#ifdef __cplusplus
}
#endif
#endif
