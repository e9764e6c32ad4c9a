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

static void check_fixed() {
    for (const Case &c : shared) check(c, TSR_BF16, launch_as<TSR_BF16, false>);
    for (const Case &c : turns) check(c, TSR_BF16, launch_as<TSR_BF16, true>);
    for (const Case &c : slices) check(c, TSR_BF16, launch_slices<TSR_BF16>);
    check(shared[1], TSR_F16, launch_as<TSR_F16, false>);
    check(turns[1], TSR_F16, launch_as<TSR_F16, true>);
    check(slices[1], TSR_F16, launch_slices<TSR_F16>);
    /* as it is launched, by shape */
    check({.what = "by shape", .m = 100, .n = 260, .k = 130, .multiprocessors = 4}, TSR_BF16, launch<TSR_BF16>);
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
