/* The kernels `batched` in the model of sm_90: panels that come late, fragments of the tensor cores, ragged tiles;
 * several products with a matrix in common. */
#include "tests/kernels/gemm/hopper/cases.h"

#include "kernels/gemm/batched/batched_tensor.cu"

#include "kernels/base/half.h"

using hopper_test::Case;

bool tsr_wgmma_stacks(const tsr_gemm_args *) { return false; } /* of another file */
tsr_status tsr_wgmma_stack(tsr_stream *, tsr_dtype, const tsr_gemm_args *) { return TSR_ERR_UNSUPPORTED; }

/* As products of a batch: of `rows` rows of A and C each, or of `cols` columns of B and C; 0: one product. */
struct Cut {
    int64_t rows, cols;
};

template <typename Kind> static tsr_status launch_cut(const Cut &cut, const tsr_gemm_args *whole) {
    tsr_gemm_args args = *whole;
    if (cut.rows > 0) {
        args.batch = args.m / cut.rows;
        args.m = cut.rows;
        args.stride_a = cut.rows * args.lda;
        args.stride_c = cut.rows * args.ldc;
    }
    if (cut.cols > 0) {
        args.batch = args.n / cut.cols;
        args.n = cut.cols;
        args.stride_b = args.stride_c = cut.cols;
    }
    return batched::launch<Kind>(nullptr, &args);
}

template <typename Kind, typename Encode> static void check(const Case &c, const Cut &cut, const Encode &encode) {
    hopper_test::check<typename Kind::In, typename Kind::Out>(
        c, 0, [&cut](const tsr_gemm_args *args) { return launch_cut<Kind>(cut, args); }, encode);
}

template <typename Small, typename Large, typename Encode> static void check_both(const Case &c, const Encode &encode) {
    check<Small>(c, {0, 0}, encode);
    check<Large>(c, {0, 0}, encode);
}

template <typename Small, typename Large, typename Encode> static void check_all(const Encode &encode) {
    const Case cases[] = {
        {.what = "a tile", .m = 64, .n = 64, .k = 64, .multiprocessors = 2},
        {.what = "ragged", .m = 77, .n = 101, .k = 90, .multiprocessors = 2, .accumulate = true, .pad_c = 3},
        {.what = "edges that copies reach", .m = 70, .n = 136, .k = 120, .multiprocessors = 2, .pad_c = 8},
        {.what = "no multiple of 16 bytes", .m = 65, .n = 66, .k = 35, .multiprocessors = 2, .skip = 1},
        {.what = "fewer panels than stages", .m = 3, .n = 130, .k = 5, .multiprocessors = 2},
        {.what = "real", .m = 70, .n = 65, .k = 100, .multiprocessors = 2, .accumulate = true, .bound = 0x1p-18},
    };
    for (const Case &c : cases) check_both<Small, Large>(c, encode);
    const Case stack = {.what = "products", .m = 160, .n = 64, .k = 48, .multiprocessors = 2, .accumulate = true};
    check<Small>(stack, {40, 0}, encode);
    check<Small>(stack, {0, 16}, encode);
    check<Large>(stack, {80, 0}, encode);
    Case odd = stack;
    odd.n = 63;
    odd.pad_a = 1;
    check<Small>(odd, {40, 0}, encode);
    check<Large>(odd, {0, 21}, encode);
}

template <typename Small, typename Large, typename Encode> static void check_random(const Encode &encode) {
    Case c = hopper_test::drawn_case("random", 150, 150, 100, 3);
    check_both<Small, Large>(c, encode);
}

static double as_double(double x, double *to) { return *to = x; }
static double as_f16(double x, uint16_t *to) { return tsr_half_decode(*to = tsr_half_encode(x)); }
static double as_bf16(double x, uint16_t *to) { return tsr_bf16_decode(*to = tsr_bf16_encode(x)); }

int main() {
    hopper_test::run(
        [] {
            check_all<DoubleTile, Double<128, 64, 32, 64, 3, 2>>(as_double);
            check<HalfSmall<TSR_F16>>({.what = "f16", .m = 70, .n = 66, .k = 40, .multiprocessors = 2}, {0, 0}, as_f16);
            check_all<HalfSmall<TSR_BF16>, HalfLarge<TSR_BF16>>(as_bf16);
        },
        [] {
            check_random<DoubleTile, Double<128, 64, 32, 64, 3, 2>>(as_double);
            check_random<HalfSmall<TSR_BF16>, HalfLarge<TSR_BF16>>(as_bf16);
        });
    return 0;
}
