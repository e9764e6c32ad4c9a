/* C = A·B on the CPU, the oracle of every test: the textbook sum in a wider accumulator (double for f32, long double
 * for f64), rounded once at the end. A block of columns of C stays in accumulators on the stack while k runs over
 * rows of B, which are read in order; every PART of k is summed on its own, so that the sum's error stays below its
 * final rounding for k up to 2^20. C goes on in that accumulator; for reproducible sums it is added to the rounded one.
 * No requirements; error bound: 2u. */
#include "kernels/base/half.h"
#include "kernels/gemm/registry.h"

enum { COLUMNS = 256, PART = 1024 };

/* `value` makes a number of an element of A or B. Writes columns j0 … j0 + width of row i. apart: C is added to the sum
 * that was rounded. */
#define DEFINE_REFERENCE(suffix, input, value, type, wide)                                                             \
    static void add_part_##suffix(const tsr_gemm_args *args, int64_t i, int64_t j0, int64_t width, int64_t l0,         \
                                  wide *restrict sum) {                                                                \
        const input *a = (const input *)args->a + i * args->lda; /* k */                                               \
        wide part[COLUMNS] = {0};                                                                                      \
        for (int64_t l = l0; l < tsr_min(l0 + PART, args->k); l++) {                                                   \
            const input *row = (const input *)args->b + l * args->ldb + j0; /* width */                                \
            wide factor = (wide)value(a[l]);                                                                           \
            for (int64_t j = 0; j < width; j++) part[j] += factor * (wide)value(row[j]);                               \
        }                                                                                                              \
        for (int64_t j = 0; j < width; j++) sum[j] += part[j];                                                         \
    }                                                                                                                  \
    static void block_##suffix(const tsr_gemm_args *args, int64_t i, int64_t j0, int64_t width, bool apart) {          \
        type *c = (type *)args->c + i * args->ldc + j0; /* width */                                                    \
        wide sum[COLUMNS] = {0};                                                                                       \
        if (args->accumulate && !apart)                                                                                \
            for (int64_t j = 0; j < width; j++) sum[j] = (wide)c[j];                                                   \
        for (int64_t l = 0; l < args->k; l += PART) add_part_##suffix(args, i, j0, width, l, sum);                     \
        for (int64_t j = 0; j < width; j++) c[j] = args->accumulate && apart ? c[j] + (type)sum[j] : (type)sum[j];     \
    }                                                                                                                  \
    static tsr_status launch_as_##suffix(const tsr_gemm_args *args, bool apart) {                                      \
        for (int64_t i = 0; i < args->m; i++)                                                                          \
            for (int64_t j = 0; j < args->n; j += COLUMNS)                                                             \
                block_##suffix(args, i, j, tsr_min(COLUMNS, args->n - j), apart);                                      \
        return TSR_OK;                                                                                                 \
    }                                                                                                                  \
    static tsr_status launch_##suffix(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {             \
        (void)device, (void)stream;                                                                                    \
        return launch_as_##suffix(args, false);                                                                        \
    }                                                                                                                  \
    static tsr_status launch_reproducible_##suffix(tsr_device *device, tsr_stream *stream,                             \
                                                   const tsr_gemm_args *args) {                                        \
        (void)device, (void)stream;                                                                                    \
        return launch_as_##suffix(args, true);                                                                         \
    }

#define AS_IS(element) (element)
DEFINE_REFERENCE(f16, uint16_t, tsr_half_decode, float, double)
DEFINE_REFERENCE(bf16, uint16_t, tsr_bf16_decode, float, double)
DEFINE_REFERENCE(f32, float, AS_IS, float, double)
DEFINE_REFERENCE(f64, double, AS_IS, double, long double)

/* Every row of C reads its row of A once a block of columns and all of B, and is written once. */
static tsr_status shape_of(size_t input_bytes, size_t bytes, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape) {
    *shape = (tsr_gemm_shape){.tile_m = 1, .tile_n = COLUMNS, .tile_k = PART, .threads = 1};
    double blocks = (double)tsr_ceil_div(n, COLUMNS);
    shape->bytes =
        (double)m * ((double)input_bytes * ((double)k * blocks + (double)k * (double)n) + (double)bytes * (double)n);
    return TSR_OK;
}

#define REFERENCE(suffix, input_code, input_type, code, c_type, wide)                                                  \
    static tsr_status shape_##suffix(tsr_device *device, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape) {     \
        (void)device;                                                                                                  \
        return shape_of(sizeof(input_type), sizeof(c_type), m, n, k, shape);                                           \
    }                                                                                                                  \
    const tsr_gemm_kernel tsr_gemm_reference_##suffix = {.name = "reference",                                          \
                                                         .what =                                                       \
                                                             "the oracle: one sum an element, accumulated in " wide,   \
                                                         .device = TSR_DEVICE_CPU,                                     \
                                                         .input = input_code,                                          \
                                                         .type = code,                                                 \
                                                         .accuracy = TSR_ACCURACY_IEEE,                                \
                                                         .error_factor = 2.0,                                          \
                                                         .error_grows = false,                                         \
                                                         .multiple = 1,                                                \
                                                         .speed_rank = 1,                                              \
                                                         .shape = shape_##suffix,                                      \
                                                         .launch = launch_##suffix,                                    \
                                                         .launch_reproducible = launch_reproducible_##suffix}

REFERENCE(f16, TSR_F16, uint16_t, TSR_F32, float, "double");
REFERENCE(bf16, TSR_BF16, uint16_t, TSR_F32, float, "double");
REFERENCE(f32, TSR_F32, float, TSR_F32, float, "double");
REFERENCE(f64, TSR_F64, double, TSR_F64, double, "long double");
