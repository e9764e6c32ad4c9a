/* What the kernel `simt` is on sm_90, in the model of it: A turned by asynchronous copies of single elements, or
 * packed; B by TMA. Elsewhere it is tested with the other kernels (test_gemm_contract_emulated). */
#include "tests/kernels/gemm/hopper/cases.h"

#include "kernels/gemm/hopper/tensor_map.c"
#include "kernels/gemm/simt/simt.cu"

using hopper_test::Case;

template <typename T> static double stored(double x, T *to) { return (double)(*to = (T)x); }
template <typename T> static tsr_status usual(const tsr_gemm_args *args) {
    return launch<T>(hopper_test::device, nullptr, args);
}
template <typename T> static tsr_status reproducible(const tsr_gemm_args *args) {
    return launch_reproducible<T>(hopper_test::device, nullptr, args);
}
template <typename T> static void check(const Case &c) {
    hopper_test::check<T, T>(c, workspace_bytes<T>(c.m, c.n, c.k), usual<T>, stored<T>);
}
template <typename T> static void check_reproducible() {
    Case c = {.what = "reproducible", .m = 260, .n = 70, .k = 403, .multiprocessors = 2, .bound = 0x1p-17};
    hopper_test::check_parts<T, T>(c, workspace_bytes<T>(c.m, c.n, c.k), reproducible<T>, usual<T>, stored<T>);
}

static const Case cases[] = {
    {.what = "one tile, fewer panels than stages", .m = 128, .n = 128, .k = 32, .multiprocessors = 2},
    {.what = "handed over", .m = 300, .n = 390, .k = 250, .multiprocessors = 4, .pad_c = 1},
    {.what = "cut and handed over", .m = 300, .n = 100, .k = 800, .multiprocessors = 7},
    {.what = "real, handed over", .m = 300, .n = 390, .k = 250, .multiprocessors = 4, .bound = 0x1p-17},
    {.what = "real, cut", .m = 300, .n = 100, .k = 800, .multiprocessors = 7, .accumulate = true, .bound = 0x1p-17},
    {.what = "one ragged tile", .m = 77, .n = 101, .k = 170, .multiprocessors = 1, .accumulate = true, .pad_c = 3},
    {.what = "a tail that is cut", .m = 260, .n = 140, .k = 300, .multiprocessors = 3, .skip = 1},
};
static const Case packed = {.what = "A packed", .m = 70, .n = 2561, .k = 65, .multiprocessors = 4, .accumulate = true};

int main() {
    hopper_test::run(
        [] {
            for (const Case &c : cases) check<float>(c);
            for (const Case &c : cases) check<double>(c);
            check<float>(packed);
            check_reproducible<float>();
            check_reproducible<double>();
            Case c = {.what = "shares of two tiles", .m = 1100, .n = 100, .k = 410, .multiprocessors = 3};
            check<float>(c);
            c.m = 600;
            check<double>(c);
        },
        [] {
            check<float>(hopper_test::drawn_case("random", 400, 200, 300, 9));
            check<double>(hopper_test::drawn_case("random", 200, 200, 200, 9));
        });
    return 0;
}
