/* The kernel `wgmma` in the model of sm_90, each of its ways: clusters of two, groups that take turns, slices. */
#include "tests/kernels/gemm/hopper/cases.h"

#include "kernels/gemm/hopper/tensor_map.c"
#include "kernels/gemm/hopper/wgmma.cu"

using hopper_test::Case;

const tsr_gemm_kernel tsr_gemm_batched_f16 = {}, tsr_gemm_batched_bf16 = {}; /* of another file */

template <typename Way> static void check(const Case &c, tsr_dtype type, Way way) {
    hopper_test::check<uint16_t, float>(
        c, workspace_bytes(c.m, c.n, c.k),
        [&](const tsr_gemm_args *args) { return way(hopper_test::device, nullptr, args); },
        [&](double x, uint16_t *to) { /* integers: exact */
                                      const unsigned bits = tsr_emulation_bits<unsigned>((float)x);
                                      *to = type == TSR_BF16 ? (uint16_t)(bits >> 16) : tsr_half_encode(x);
                                      return x;
        });
}

/* Groups that share a tile, groups that take turns; parts of few rows, which the usual way would make in other ways. */
static void check_reproducible() {
    const auto way = [](const tsr_gemm_args *args) {
        return launch_reproducible<TSR_BF16>(hopper_test::device, nullptr, args);
    };
    const auto usual = [](const tsr_gemm_args *args) { return launch<TSR_BF16>(hopper_test::device, nullptr, args); };
    const auto wide = [](double x, uint16_t *to) { /* sums of products of 16 bits round where these differ in size */
                                                   *to = tsr_bf16_encode(pow(x, 9));
                                                   return (double)tsr_bf16_decode(*to);
    };
    for (int64_t k : {33 * 64 - 5, 9 * 64 - 5}) {
        const Case c = {.what = "reproducible", .m = 150, .n = 260, .k = k, .multiprocessors = 12, .bound = 0x1p-6};
        hopper_test::check_parts<uint16_t, float>(c, workspace_bytes(c.m, c.n, c.k), way, usual, wide);
    }
}

static const Case shared[] = {
    /* a cluster shares a tile of 256 × 256 */
    {.what = "shared, one tile", .m = 256, .n = 256, .k = 128, .multiprocessors = 2},
    {.what = "shared, handed over", .m = 700, .n = 300, .k = 40 * 64, .multiprocessors = 8},
    {.what = "shared, handed over, C added to",
     .m = 700,
     .n = 300,
     .k = 40 * 64 - 3,
     .multiprocessors = 8,
     .accumulate = true},
    {.what = "shared, cut and handed over", .m = 300, .n = 300, .k = 50 * 64 - 3, .multiprocessors = 10},
    {.what = "shared, ragged, C not reached", .m = 200, .n = 261, .k = 500, .multiprocessors = 2, .pad_c = 2},
    {.what = "shared, C added to", .m = 300, .n = 300, .k = 330, .multiprocessors = 2, .accumulate = true},
    {.what = "shared, C added to, ragged",
     .m = 130,
     .n = 301,
     .k = 70,
     .multiprocessors = 4,
     .accumulate = true,
     .pad_c = 3},
    {.what = "shared, a tail that is cut", .m = 500, .n = 300, .k = 36 * 64 - 9, .multiprocessors = 6},
    {.what = "shared, shares of two tiles", .m = 1100, .n = 70, .k = 48 * 64 - 5, .multiprocessors = 6},
    {.what = "shared, strands", .m = 200, .n = 200, .k = 40 * 64 - 5, .multiprocessors = 18, .accumulate = true},
};
static const Case turns[] = {
    /* groups take turns, a tile of 128 × 128 each */
    {.what = "turns, one tile", .m = 128, .n = 128, .k = 64, .multiprocessors = 2},
    {.what = "turns, handed over", .m = 300, .n = 300, .k = 40 * 64, .multiprocessors = 5},
    {.what = "turns, cut, one worker", .m = 100, .n = 300, .k = 40 * 64 - 3, .multiprocessors = 1, .accumulate = true},
    {.what = "turns, cut and handed over", .m = 100, .n = 300, .k = 50 * 64 - 3, .multiprocessors = 11},
    {.what = "turns, ragged", .m = 77, .n = 261, .k = 300, .multiprocessors = 1, .accumulate = true, .pad_c = 3},
    {.what = "turns, rows that TMA cannot reach", .m = 130, .n = 67, .k = 155, .multiprocessors = 1, .skip = 1},
    {.what = "turns, many tiles a block", .m = 300, .n = 300, .k = 470, .multiprocessors = 2},
    {.what = "turns, a tail that is cut", .m = 300, .n = 130, .k = 26 * 64 - 5, .multiprocessors = 5, .pad_c = 2},
    {.what = "turns, shares of two tiles", .m = 600, .n = 70, .k = 48 * 64 - 5, .multiprocessors = 3},
    {.what = "turns, strands", .m = 100, .n = 100, .k = 40 * 64 - 5, .multiprocessors = 9, .pad_c = 1},
};
static const Case slices[] = {
    {.what = "slices, whole", .m = 128, .n = 128, .k = 300, .multiprocessors = 9},
    {.what = "slices, fewer panels than stages", .m = 200, .n = 200, .k = 190, .multiprocessors = 50},
    {.what = "slices, cut", .m = 130, .n = 100, .k = 40 * 64 - 5, .multiprocessors = 24, .accumulate = true},
    {.what = "slices, ragged", .m = 65, .n = 131, .k = 37 * 64, .multiprocessors = 36, .pad_c = 1},
};

/* The product as the last of a stack of three, of which the others are other ones: their B is NaN. */
template <tsr_dtype TYPE> static tsr_status as_last_of_stack(tsr_device *, tsr_stream *, const tsr_gemm_args *args) {
    const size_t rows_a = (size_t)args->m * (size_t)args->lda, rows_b = (size_t)args->k * (size_t)args->ldb;
    const size_t rows_c = (size_t)args->m * (size_t)args->ldc;
    void *memory = nullptr;
    CHECK(posix_memalign(&memory, 1024, 3 * (2 * rows_a + 2 * rows_b + 4 * rows_c)) == 0, "no memory");
    float *c = (float *)memory;
    uint16_t *a = (uint16_t *)(c + 3 * rows_c), *b = a + 3 * rows_a;
    memset(memory, 0xff, 3 * (2 * rows_a + 2 * rows_b + 4 * rows_c));
    memset(a, 0, 2 * rows_a * sizeof *a);
    memcpy(a + 2 * rows_a, args->a, rows_a * sizeof *a);
    memcpy(b + 2 * rows_b, args->b, rows_b * sizeof *b);
    memcpy(c + 2 * rows_c, args->c, rows_c * sizeof *c);
    tsr_gemm_args stack = *args;
    stack.batch = 3;
    stack.a = a;
    stack.b = b;
    stack.c = c;
    stack.stride_a = (int64_t)rows_a;
    stack.stride_b = (int64_t)rows_b;
    stack.stride_c = (int64_t)rows_c;
    const tsr_status status = launch_stack<TYPE>(nullptr, &stack);
    memcpy(args->c, c + 2 * rows_c, rows_c * sizeof *c);
    free(memory);
    return status;
}

static void check_stacks() {
    check({.what = "stack", .m = 128, .n = 128, .k = 128, .multiprocessors = 2}, TSR_BF16, as_last_of_stack<TSR_BF16>);
    check({.what = "stack, many tiles a block", .m = 256, .n = 200, .k = 192, .multiprocessors = 2, .accumulate = true},
          TSR_F16, as_last_of_stack<TSR_F16>);
    tsr_gemm_args args = {.m = 128, .n = 128, .lda = 64, .ldb = 128, .ldc = 128};
    args.k = 64;
    args.batch = 200;
    args.stride_a = 128 * 64;
    args.stride_b = 64 * 128;
    args.stride_c = 128 * 128;
    CHECK(tsr_wgmma_stacks(&args), "a stack of whole tiles");
    for (int which = 0; which < 6; which++) {
        tsr_gemm_args other = args;
        if (which == 0) other.m = 129;
        if (which == 1) other.k = 63;
        if (which == 2) other.stride_b = 0;
        if (which == 3) other.stride_c++;
        if (which == 4) other.batch = 100;
        if (which == 5) other.c = (char *)nullptr + 4;
        CHECK(!tsr_wgmma_stacks(&other), "%d is no stack of whole tiles", which);
    }
}

static void check_fixed() {
    check_stacks();
    for (const Case &c : shared) check(c, TSR_BF16, launch_as<TSR_BF16, false>);
    for (const Case &c : turns) check(c, TSR_BF16, launch_as<TSR_BF16, true>);
    for (const Case &c : slices) check(c, TSR_BF16, launch_slices<TSR_BF16>);
    check(shared[1], TSR_F16, launch_as<TSR_F16, false>);
    check(turns[1], TSR_F16, launch_as<TSR_F16, true>);
    check(slices[1], TSR_F16, launch_slices<TSR_F16>);
    /* as it is launched, by shape */
    check({.what = "by shape", .m = 100, .n = 260, .k = 130, .multiprocessors = 4}, TSR_BF16, launch<TSR_BF16>);
    check_reproducible();
    check({.what = "no k", .m = 33, .n = 20, .k = 0, .multiprocessors = 4}, TSR_BF16, launch<TSR_BF16>);
}

static void check_random() {
    Case c = hopper_test::drawn_case("shared, random", 400, 400, 1800, 12);
    c.multiprocessors++; /* a cluster has two */
    check(c, TSR_BF16, launch_as<TSR_BF16, false>);
    check(hopper_test::drawn_case("turns, random", 400, 400, 1500, 9), TSR_F16, launch_as<TSR_F16, true>);
    c = hopper_test::drawn_case("slices, random", 200, 300, 1800, 40);
    check(c, TSR_BF16, launch_slices<TSR_BF16>);
}

int main() {
    hopper_test::run(check_fixed, check_random);
    return 0;
}
