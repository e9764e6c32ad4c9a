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

/* ---- reproducible sums ----------------------------------------------------------------------- */

static tsr_status usual(const tsr_gemm_args *args) { return launch(hopper_test::device, nullptr, args); }
static tsr_status reproducible(const tsr_gemm_args *args) {
    return launch_reproducible(hopper_test::device, nullptr, args);
}
static tsr_status by_simt(const tsr_gemm_args *args) {
    return tsr_gemm_simt_f32.launch_reproducible(hopper_test::device, nullptr, args);
}
/* What is left out by `simt` in strips, as where the workspace has no room for more rows. */
static tsr_status in_strips(const tsr_gemm_args *args) {
    Operands o;
    TSR_TRY(pack_operands(nullptr, args, true, true, &o));
    TSR_TRY(multiply_operands<true>(nullptr, args, hopper::whole(Split3<true>::CUT), o));
    o.at.end = o.at.a + strip_bytes(tsr_min(args->m, STRIP), args->n, args->k);
    return make_left_out(hopper_test::device, nullptr, args, o);
}

/* Operands of which some lines are not for halves, if so. */
struct Mixed {
    static constexpr int64_t M_ = 170;
    static constexpr int64_t N_ = 210;
    static constexpr int64_t K_ = 150;
    hopper_test::Matrix<float> a{M_, K_, K_, 0}, b{K_, N_, N_, 0}, c{M_, N_, N_, 0};
    void *workspace = nullptr;
    tsr_gemm_fallbacks fallbacks;

    static bool row_left(int64_t i) { return i == 3 || i == 5 || i == 131 || i == 150 || i == 169; }
    static bool column_left(int64_t j) { return j == 0 || j == 77 || j == 209; }

    explicit Mixed(bool mixed) {
        const Case normal = {.k = K_, .bound = BOUND};
        for (int64_t l = 0; l < K_; l++) {
            for (int64_t i = 0; i < M_; i++) a.at(i, l) = (float)hopper_test::element(normal, i, l, 1);
            for (int64_t j = 0; j < N_; j++) b.at(l, j) = (float)hopper_test::element(normal, j, l, 2);
            if (!mixed) continue;
            a.at(131, l) *= 1e-36f;                        /* tiny */
            b.at(l, 77) *= l % 7 == 0 ? 0x1p-30f : 1;      /* some are weak */
            a.at(150, l) = l % 9 == 0 ? a.at(150, l) : 0;  /* few meet */
            b.at(l, 209) = l % 30 == 0 ? b.at(l, 209) : 0; /* the same */
        }
        if (mixed) {
            a.at(3, 7) = INFINITY;
            a.at(5, 1) = a.at(169, 149) = NAN;
            b.at(100, 0) = -INFINITY;
        }
        const size_t bytes = workspace_bytes(M_, N_, K_);
        CHECK(posix_memalign(&workspace, 1024, bytes) == 0, "no %zu bytes", bytes);
    }
    ~Mixed() { free(workspace); }

    std::vector<float> make(const hopper_test::Launch &how, tsr_rect part, bool accumulate) {
        tsr_gemm_args args = {.m = part.rows, .n = part.cols, .k = K_};
        args.a = &a.at(part.row, 0);
        args.b = &b.at(0, part.col);
        args.c = &c.at(part.row, part.col);
        args.lda = a.ld;
        args.ldb = b.ld;
        args.ldc = c.ld;
        args.accumulate = accumulate;
        args.workspace = workspace;
        args.fallbacks = &fallbacks;
        fallbacks = {};
        for (float &x : c.all) x = accumulate ? 0.7f : NAN;
        tsr_cuda_emulation()->multiprocessors = 1 + (int)(part.rows % 5);
        hopper_model::use(hopper_test::seed * 1000 + ++hopper_test::launches % 1000, false);
        CHECK_OK(how(&args));
        return c.all;
    }
};

static bool same(float x, float y) { return memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y)); }

/* Elements of lines that are left out are those of `simt`, all others what they are where no line is, in any part of
 * C. */
static void check_left_out(bool accumulate) {
    Mixed mixed(true), clean(false);
    const tsr_rect all = {0, 0, Mixed::M_, Mixed::N_};
    const tsr_rect parts[] = {{0, 0, 130, 210}, {130, 1, 40, 76}, {4, 1, 1, 208}, {132, 78, 15, 60}};
    const std::vector<float> simt = mixed.make(by_simt, all, accumulate),
                             halves = clean.make(reproducible, all, accumulate);
    CHECK(clean.fallbacks.products == 0, "%d products have lines left out", (int)clean.fallbacks.products);
    const std::vector<float> whole = mixed.make(reproducible, all, accumulate);
    CHECK(mixed.fallbacks.products == 1 && mixed.fallbacks.few == 1 &&
              mixed.fallbacks.multiply_adds == (uint64_t)((170 * 210 - 165 * 207) * Mixed::K_),
          "%d products, %llu multiply-adds", (int)mixed.fallbacks.products,
          (unsigned long long)mixed.fallbacks.multiply_adds);
    int others = 0;
    for (int64_t i = 0; i < all.rows; i++)
        for (int64_t j = 0; j < all.cols; j++) {
            const bool left = Mixed::row_left(i) || Mixed::column_left(j);
            const float want = left ? simt[(size_t)(i * all.cols + j)] : halves[(size_t)(i * all.cols + j)];
            CHECK(same(whole[(size_t)(i * all.cols + j)], want), "(%ld, %ld) is %g, not %g", (long)i, (long)j,
                  (double)whole[(size_t)(i * all.cols + j)], (double)want);
            others += left && !same(want, halves[(size_t)(i * all.cols + j)]);
        }
    CHECK(others > 1000, "%d elements differ: this says nothing", others);
    for (const tsr_rect &part : parts) {
        const std::vector<float> made = mixed.make(&part == parts ? in_strips : reproducible, part, accumulate);
        for (int64_t i = part.row; i < part.row + part.rows; i++)
            for (int64_t j = part.col; j < part.col + part.cols; j++)
                CHECK(same(made[(size_t)(i * all.cols + j)], whole[(size_t)(i * all.cols + j)]),
                      "(%ld, %ld) is another in a part from (%ld, %ld)", (long)i, (long)j, (long)part.row,
                      (long)part.col);
    }
    CHECK(mixed.fallbacks.products == 0, "the last part has no line left out");
}

static void check_reproducible() {
    const Case c = {.what = "reproducible", .m = 150, .n = 200, .k = 900, .multiprocessors = 2, .bound = BOUND};
    hopper_test::check_parts<float, float>(c, workspace_bytes(c.m, c.n, c.k), reproducible, usual,
                                           [](double x, float *to) { return (double)(*to = (float)x); });
    check_left_out(false);
    check_left_out(true);
    hopper_test::check_grade(&tsr_gemm_split3_f32, reproducible);
}

int main() {
    hopper_test::run(
        [] {
            check_reproducible();
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
