/* C = A·B on the CPU by the BLAS the build found (OpenBLAS by default). Dimensions and leading dimensions beyond BLAS's
 * int are cut, or refused where no cut helps. Error bound: k·u, any order of the sum. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "kernels/gemm/cpu/blas.h"
#include "kernels/gemm/registry.h"

enum { STEP = 1 << 30 }; /* most rows, columns or k a call */

static tsr_status check_ld(int64_t lda, int64_t ldb, int64_t ldc) {
    int64_t most = tsr_max(lda, tsr_max(ldb, ldc));
    if (most > INT_MAX)
        return tsr_fail(TSR_ERR_LIMIT,
                        "kernel 'blas': rows are %" PRId64
                        " elements apart and BLAS counts to %d: use --kernel reference",
                        most, INT_MAX);
    return TSR_OK;
}

static int step(int64_t whole, int64_t at) { return (int)tsr_min(STEP, whole - at); }

/* ld of an operand with one row or none may be smaller than BLAS's least value, 1. */
static int ld_of(int64_t ld) { return (int)tsr_max(ld, 1); }

#define DEFINE_BLAS(suffix, type, gemm)                                                                                \
    static void zero_##suffix(const tsr_gemm_args *args) {                                                             \
        for (int64_t i = 0; i < args->m; i++)                                                                          \
            memset((type *)args->c + i * args->ldc, 0, (size_t)args->n * sizeof(type));                                \
    }                                                                                                                  \
    static tsr_status launch_##suffix(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {             \
        (void)device, (void)stream;                                                                                    \
        TSR_TRY(check_ld(args->lda, args->ldb, args->ldc));                                                            \
        if (args->k == 0) {                                                                                            \
            if (!args->accumulate) zero_##suffix(args);                                                                \
            return TSR_OK;                                                                                             \
        }                                                                                                              \
        /* some BLAS turn these into matrix-vector products that scale, and so read, C even with beta = 0 */           \
        if (!args->accumulate && (args->m == 1 || args->n == 1)) zero_##suffix(args);                                  \
        const type *a = args->a; /* m × k */                                                                          \
        const type *b = args->b; /* k × n */                                                                          \
        type *c = args->c;       /* m × n */                                                                          \
        for (int64_t i = 0; i < args->m; i += STEP)                                                                    \
            for (int64_t j = 0; j < args->n; j += STEP)                                                                \
                for (int64_t l = 0; l < args->k; l += STEP)                                                            \
                    TSR_TRY(gemm(step(args->m, i), step(args->n, j), step(args->k, l), a + i * args->lda + l,          \
                                 ld_of(args->lda), b + l * args->ldb + j, ld_of(args->ldb),                            \
                                 args->accumulate || l > 0 ? 1 : 0, c + i * args->ldc + j, ld_of(args->ldc)));         \
        return TSR_OK;                                                                                                 \
    }

DEFINE_BLAS(f32, float, tsr_blas_sgemm)
DEFINE_BLAS(f64, double, tsr_blas_dgemm)

#define BLAS(suffix, code)                                                                                             \
    const tsr_gemm_kernel tsr_gemm_blas_##suffix = {.name = "blas",                                                    \
                                                    .what = "the CPU's BLAS library",                                  \
                                                    .device = TSR_DEVICE_CPU,                                          \
                                                    .input = code,                                                     \
                                                    .type = code,                                                      \
                                                    .accuracy = TSR_ACCURACY_IEEE,                                     \
                                                    .error_factor = 2.0,                                               \
                                                    .error_grows = true,                                               \
                                                    .multiple = 1,                                                     \
                                                    .speed_rank = 10,                                                  \
                                                    .launch = launch_##suffix,                                         \
                                                    .prepare = tsr_blas_start}

BLAS(f32, TSR_F32);
BLAS(f64, TSR_F64);
