/* The kernel `dmma` in the model of sm_90: whole and ragged tiles, thin edges, tails cut along k, operands copied. */
#include "tests/kernels/gemm/hopper/graded.h"

#include "kernels/gemm/hopper/dmma.cu"
#include "kernels/gemm/hopper/tensor_map.c"

using hopper_test::Case;

const tsr_gemm_kernel tsr_gemm_batched_f64 = {}; /* of another file */

static double stored(double x, double *to) { return *to = x; }
static tsr_status usual(const tsr_gemm_args *args) { return launch(hopper_test::device, nullptr, args); }
static tsr_status reproducible(const tsr_gemm_args *args) {
    return launch_reproducible(hopper_test::device, nullptr, args);
}
static void check(const Case &c) {
    hopper_test::check<double, double>(c, workspace_bytes(c.m, c.n, c.k), usual, stored);
}
static void check_reproducible() {
    Case c = {.what = "reproducible", .m = 150, .n = 70, .k = 403, .multiprocessors = 2, .bound = 0x1p-44};
    hopper_test::check_parts<double, double>(c, workspace_bytes(c.m, c.n, c.k), reproducible, usual, stored);
}

/* Where the predicate holds 0 nothing is made, and nothing copied: C stays, and so does the workspace but for flags. */
static void check_predicate() {
    const Case shapes[] = {
        {.what = "predicate", .m = 130, .n = 67, .k = 55, .multiprocessors = 1, .skip = 1},
        {.what = "predicate, cut", .m = 100, .n = 200, .k = 900, .multiprocessors = 2, .accumulate = true, .pad_a = 1}};
    for (const Case &c : shapes) {
        static unsigned predicate;
        const auto launched = [](const tsr_gemm_args *args) {
            tsr_gemm_args own = *args;
            own.predicate = &predicate;
            return launch(hopper_test::device, nullptr, &own);
        };
        predicate = 1;
        hopper_test::check<double, double>(c, workspace_bytes(c.m, c.n, c.k), launched, stored);
        predicate = 0;
        std::vector<double> a((size_t)(c.m * c.k + 1), NAN), b((size_t)(c.k * c.n + 1), NAN);
        std::vector<double> out((size_t)(c.m * c.n), 7);
        const size_t copies = workspace_bytes(c.m, c.n, c.k) - hopper::parts_bytes_of<Dmma>(c.m, c.n, c.k);
        std::vector<double> workspace(workspace_bytes(c.m, c.n, c.k) / sizeof(double), 5);
        tsr_gemm_args args = {.m = c.m, .n = c.n, .k = c.k};
        args.a = a.data() + 1;
        args.b = b.data() + 1;
        args.c = out.data();
        args.lda = c.k;
        args.ldb = args.ldc = c.n;
        args.workspace = workspace.data();
        hopper_model::use(1, false);
        CHECK_OK(launched(&args));
        for (double x : out) CHECK(x == 7, "%s: C has become %g", c.what, x);
        for (size_t i = workspace.size() - copies / sizeof(double); i < workspace.size(); i++)
            CHECK(workspace[i] == 5, "%s: operands were copied", c.what);
    }
}

static const Case cases[] = {
    {.what = "one tile, fewer panels than stages", .m = 128, .n = 128, .k = 48, .multiprocessors = 2},
    {.what = "handed over", .m = 300, .n = 150, .k = 1100, .multiprocessors = 4, .pad_c = 1},
    {.what = "cut, one worker", .m = 100, .n = 200, .k = 900, .multiprocessors = 1, .accumulate = true},
    {.what = "cut and handed over", .m = 300, .n = 100, .k = 1000, .multiprocessors = 7},
    {.what = "real, handed over", .m = 300, .n = 150, .k = 1100, .multiprocessors = 4, .bound = 0x1p-44},
    {.what = "real, cut", .m = 300, .n = 100, .k = 1000, .multiprocessors = 2, .accumulate = true, .bound = 0x1p-44},
    {.what = "one ragged tile", .m = 77, .n = 101, .k = 90, .multiprocessors = 1, .accumulate = true, .pad_c = 3},
    {.what = "one row", .m = 1, .n = 130, .k = 33, .multiprocessors = 2},
    {.what = "rows that TMA cannot reach", .m = 130, .n = 67, .k = 55, .multiprocessors = 1, .skip = 1},
    {.what = "many tiles a block, thin edges", .m = 300, .n = 290, .k = 17, .multiprocessors = 2, .accumulate = true},
    {.what = "shares of two tiles", .m = 600, .n = 100, .k = 320, .multiprocessors = 3, .pad_c = 1},
    {.what = "one tile cut in nine", .m = 100, .n = 100, .k = 333, .multiprocessors = 9, .accumulate = true},
};

int main() {
    hopper_test::run(
        [] {
            for (const Case &c : cases) check(c);
            hopper_test::check_grade(&tsr_gemm_dmma_f64, [](const tsr_gemm_args *args) {
                return launch(hopper_test::device, nullptr, args);
            });
            check_reproducible();
            check_predicate();
        },
        [] {
            Case c = hopper_test::drawn_case("random", 300, 300, 200, 9);
            c.k += 16;
            check(c);
        });
    return 0;
}
