/* The kernel `tf32` in the model of sm_90: C through TMA and from registers, tails cut along k, several launches. */
#include "tests/kernels/gemm/hopper/graded.h"

#include "kernels/gemm/hopper/tensor_map.c"
#include "kernels/gemm/hopper/tf32.cu"

using hopper_test::Case;

constexpr double BOUND = 43000 * 0x1p-24; /* that the kernel states */

static double stored(double x, float *to) { return (double)(*to = (float)x); }
static tsr_status usual(const tsr_gemm_args *args) { return launch(hopper_test::device, nullptr, args); }
static tsr_status reproducible(const tsr_gemm_args *args) {
    return launch_reproducible(hopper_test::device, nullptr, args);
}
static void check(const Case &c) { hopper_test::check<float, float>(c, workspace_bytes(c.m, c.n, c.k), usual, stored); }
static void check_reproducible() {
    Case c = {.what = "reproducible", .m = 260, .n = 70, .k = 503, .multiprocessors = 2, .bound = BOUND};
    hopper_test::check_parts<float, float>(c, workspace_bytes(c.m, c.n, c.k), reproducible, usual, stored);
}

static const Case cases[] = {
    {.what = "one tile, fewer panels than stages", .m = 256, .n = 128, .k = 64, .multiprocessors = 2},
    {.what = "handed over", .m = 700, .n = 150, .k = 1700, .multiprocessors = 4},
    {.what = "cut and handed over", .m = 300, .n = 300, .k = 1600, .multiprocessors = 7},
    {.what = "real, handed over", .m = 300, .n = 300, .k = 1100, .multiprocessors = 4, .bound = BOUND},
    {.what = "real, cut", .m = 270, .n = 100, .k = 1000, .multiprocessors = 2, .accumulate = true, .bound = BOUND},
    {.what = "one ragged tile", .m = 77, .n = 101, .k = 170, .multiprocessors = 1, .accumulate = true, .pad_c = 3},
    {.what = "C reached by TMA, its last columns not", .m = 300, .n = 134, .k = 70, .multiprocessors = 1, .pad_c = 2},
    {.what = "rows that TMA cannot reach", .m = 130, .n = 67, .k = 55, .multiprocessors = 1, .skip = 1},
    {.what = "many tiles a block", .m = 513, .n = 380, .k = 40, .multiprocessors = 2, .pad_c = 4},
    {.what = "a tail that is cut", .m = 300, .n = 320, .k = 539, .multiprocessors = 4},
    {.what = "shares of two tiles", .m = 100, .n = 620, .k = 760, .multiprocessors = 3, .pad_c = 1},
    {.what = "one tile cut in five", .m = 100, .n = 100, .k = 1000, .multiprocessors = 5, .accumulate = true},
    {.what = "real", .m = 70, .n = 150, .k = 300, .multiprocessors = 2, .bound = BOUND},
    {.what = "two launches", .m = 40, .n = 50, .k = 32 * 514 - 3, .multiprocessors = 1},
};

int main() {
    hopper_test::run(
        [] {
            for (const Case &c : cases) check(c);
            hopper_test::check_grade(&tsr_gemm_tf32_f32, [](const tsr_gemm_args *args) {
                return launch(hopper_test::device, nullptr, args);
            });
            check_reproducible();
        },
        [] { check(hopper_test::drawn_case("random", 600, 400, 500, 9)); });
    return 0;
}
