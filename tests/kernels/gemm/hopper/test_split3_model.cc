/* The kernel `split3` in the model of sm_90: packing, verdict, products of halves, k cut in each tile, and `exact` or
 * `simt` in its place where halves cannot hold the operands. */
#include "tests/kernels/gemm/hopper/graded.h"

/* Whether `exact` itself is launched, and not what is quicker than that for products as small as these. */
static bool itself;
#define tsr_gemm_launch(kernel, device, stream, args)                                                                  \
    (itself ? (kernel)->launch(device, stream, args) : (tsr_gemm_launch)(kernel, device, stream, args))
#define tsr_gemm_serving(kernel, m, n, k) (itself ? (kernel) : (tsr_gemm_serving)(kernel, m, n, k))
#include "kernels/gemm/hopper/split3.cu"

using hopper_test::Case;

static tsr_status launch_with_room(const tsr_gemm_args *args) {
    tsr_gemm_args more = *args;
    const size_t bytes = FALLBACK.workspace_bytes(args->m, args->n, args->k);
    if (itself) CHECK(posix_memalign(&more.fallback_workspace, 1024, bytes) == 0, "no %zu bytes", bytes);
    const tsr_status status = launch(hopper_test::device, nullptr, &more);
    free(more.fallback_workspace);
    return status;
}

static void check(const Case &c) {
    hopper_test::check<float, float>(c, workspace_bytes(c.m, c.n, c.k), launch_with_room,
                                     [](double x, float *to) { return (double)(*to = (float)x); });
}

/* Of |A||B|: 8·u of the split, and what sums of 64 products lose, added up. The kernel states more, k·u. */
constexpr double BOUND = 32 * 0x1p-24;

static const Case cases[] = {
    {.what = "one tile, fewer panels than stages", .m = 128, .n = 192, .k = 64, .multiprocessors = 2},
    {.what = "handed over", .m = 300, .n = 390, .k = 600, .multiprocessors = 4, .pad_c = 1},
    {.what = "cut, one worker", .m = 100, .n = 200, .k = 900, .multiprocessors = 1, .accumulate = true},
    {.what = "real, handed over", .m = 300, .n = 390, .k = 600, .multiprocessors = 4, .bound = BOUND},
    {.what = "real, cut", .m = 300, .n = 100, .k = 1000, .multiprocessors = 7, .bound = BOUND},
    {.what = "ragged", .m = 77, .n = 201, .k = 170, .multiprocessors = 1, .accumulate = true, .pad_c = 3, .skip = 1},
    {.what = "many tiles a block", .m = 300, .n = 400, .k = 140, .multiprocessors = 2, .pad_c = 2},
    {.what = "k cut", .m = 150, .n = 100, .k = 9 * 64 - 7, .multiprocessors = 132, .accumulate = true},
    {.what = "k cut, several shares a block", .m = 100, .n = 250, .k = 17 * 64, .multiprocessors = 3},
    {.what = "real", .m = 131, .n = 195, .k = 300, .multiprocessors = 2, .accumulate = true, .bound = BOUND},
    {.what = "real, k cut", .m = 70, .n = 100, .k = 600, .multiprocessors = 4, .bound = BOUND},
    {.what = "few elements meet", .m = 60, .n = 70, .k = 200, .multiprocessors = 2, .accumulate = true, .sparse = true},
};

int main() {
    hopper_test::run(
        [] {
            for (const Case &c : cases) check(c);
            hopper_test::check_grade(&tsr_gemm_split3_f32, launch_with_room);
            itself = true;
            check(cases[sizeof cases / sizeof *cases - 1]); /* few elements meet */
            hopper_test::check_grade(&tsr_gemm_split3_f32, launch_with_room);
            itself = false;
        },
        [] {
            Case c = hopper_test::drawn_case("random", 300, 400, 700, 12);
            c.k += 64;
            check(c);
        });
    return 0;
}
