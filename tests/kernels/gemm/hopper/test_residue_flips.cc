/* Bits flipped in panels of A and B in shared memory, and in sums, within products of residues in the model of sm_90:
 * what changes C shows in its sums. All workers keep pace here. Linked with the kernel as built with TSR_TEST_FLIPS. */
#include "tests/kernels/gemm/hopper/residues_model.h"

static struct {
    tsr_flip_place place;
    long left, calls; /* until the one that flips; made */
    uint64_t bit;
} flips;

void tsr_test_flip(tsr_flip_place place, tsr_stream *, void *memory, size_t bytes) {
    if (place != flips.place) return;
    flips.calls++;
    if (flips.left-- != 0) return;
    const uint64_t bit = flips.bit % (8 * bytes);
    static_cast<unsigned char *>(memory)[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

/* Lines of C that disagree with their sums, where call number `flipped` flips; below 0: none. */
static int make(Product *product, long flipped) {
    flips.calls = 0;
    flips.left = flipped;
    product->make(flipped % 2 != 0);
    return product->disagreeing_lines(true) + product->disagreeing_lines(false);
}

static void check_flips(const residue_case &c) {
    static const char *const names[] = {"a panel of A", "a panel of B", "a sum"};
    const int least = getenv("TSR_LONG") ? 16 : 6; /* flips of a place, more until one does harm */
    Product product(c);
    for (int place = TSR_FLIP_TILE_A; place <= TSR_FLIP_SUM; place++) {
        flips.place = (tsr_flip_place)place;
        const char *name = names[place - TSR_FLIP_TILE_A];
        CHECK(make(&product, -1) == 0, "%s: a right product is doubted", c.what);
        const std::vector<int8_t> right = product.c();
        const long calls = flips.calls;
        int harmful = 0;
        CHECK(calls > 0, "%s: nothing flips %s", c.what, name);
        for (int i = 0; i < least || (harmful == 0 && i < 20 * least); i++) {
            flips.bit = tsr_emulation_random();
            const int found = make(&product, (long)(tsr_emulation_random() % (uint64_t)calls));
            const bool harmed = product.c() != right;
            CHECK(!harmed || found > 0, "%s, TSR_MODEL_SEED=%llu: bit %llu of %s changed C, and was not found", c.what,
                  (unsigned long long)hopper_test::seed, (unsigned long long)flips.bit, name);
            harmful += harmed;
        }
        CHECK(harmful > 0, "%s: no flip of %s changed C", c.what, name);
    }
}

/* Workers that wait for others get on, though the model runs these one after another: the first frees all. */
static void check_pace() {
    Product product({.what = "pace", .planes = 1, .m = 600, .n = 300, .k = 1300, .wanted = 200});
    int freed = 0;
    flips.place = TSR_FLIP_PLACES;
    for (int i = 0; i < 3; i++) {
        CHECK(make(&product, -1) == 0, "a right product is doubted, whose workers keep pace");
        const unsigned progress = *product.workspace.at;
        CHECK(progress > 0, "no worker says how far it is");
        freed += progress >= residues::PACE_FREE;
    }
    CHECK(freed > 0, "no worker waited");
}

static void check_fixed() {
    check_pace();
    check_flips({.what = "ragged", .planes = 2, .m = 140, .n = 150, .k = 130, .wanted = 200});
    check_flips({.what = "last lines", .planes = 1, .m = 258, .n = 270, .k = 130, .wanted = 200});
    check_flips({.what = "whole", .planes = 1, .m = 256, .n = 256, .k = 256, .wanted = 200});
}

static void check_random() {
    using hopper_test::drawn;
    made_state = hopper_test::seed;
    check_flips({.what = "random",
                 .planes = 1,
                 .m = 100 + drawn(200),
                 .n = 100 + drawn(200),
                 .k = 100 + drawn(200),
                 .wanted = 200});
}

int main() {
    hopper_test::run(check_fixed, check_random);
    return 0;
}
