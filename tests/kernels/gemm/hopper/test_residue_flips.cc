/* Bits flipped in panels of A and B in shared memory, and in sums, within products of residues in the model of sm_90:
 * what changes C shows in its sums. Linked with the kernel as built with TSR_TEST_FLIPS. */
#include "tests/kernels/gemm/hopper/residues_model.h"

enum { FLIPS = 16 }; /* of a place and case, more until one does harm */

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

/* One product of a case, with its sums. */
struct Product {
    made_residues made;
    made_sums host;
    Aligned<int8_t> a, b, of_a, of_b;
    Aligned<int8_t> result, columns, rows;
    Aligned<unsigned> workspace;

    explicit Product(const residue_case &c)
        : made(make_residues(c, MADE_RESIDUES)), host(with_sums(&made)), a(made.a, made.bytes_a),
          b(made.b, made.bytes_b), of_a(host.of_a, host.bytes), of_b(host.of_b, host.bytes), result(made.bytes_c),
          columns(host.bytes_columns), rows(host.bytes_rows), workspace(tsr_residue_workspace(c.m, c.n)) {}
    Product(const Product &) = delete;
    Product &operator=(const Product &) = delete;
    ~Product() {
        free_sums(&host);
        free_residues(&made);
    }
    static made_sums with_sums(made_residues *made) {
        made_sums host = make_sums(made);
        add_up_lines(*made, true, host.of_a);
        add_up_lines(*made, false, host.of_b);
        return host;
    }

    /* Lines of C that disagree with their sums, where call number `flipped` flips; below 0: none. */
    int make(long flipped) {
        const tsr_residue_sums sums = {of_a.at, of_b.at, columns.at, rows.at};
        tsr_residue_args args = on_device(made, a, b, workspace);
        args.sums = &sums;
        flips.calls = 0;
        flips.left = flipped;
        next_launch(flipped % 2 != 0);
        CHECK(tsr_residue_products_hopper(nullptr, &args, result.at) == TSR_OK, "%s", tsr_message());
        return disagreeing(made, result.at, columns.at, true) + disagreeing(made, result.at, rows.at, false);
    }
    /* Elements of C, in all planes. */
    std::vector<int8_t> c() const {
        const tsr_residue_args &args = made.args;
        std::vector<int8_t> all;
        for (int plane = 0; plane < args.planes; plane++)
            for (int64_t row = 0; row < args.m; row++) {
                const int8_t *from = result.at + (plane * args.rows_a + row) * args.rows_b;
                all.insert(all.end(), from, from + args.n);
            }
        return all;
    }
};

static void check_flips(const residue_case &c) {
    static const char *const names[] = {"a panel of A", "a panel of B", "a sum"};
    Product product(c);
    for (int place = TSR_FLIP_TILE_A; place <= TSR_FLIP_SUM; place++) {
        flips.place = (tsr_flip_place)place;
        const char *name = names[place - TSR_FLIP_TILE_A];
        CHECK(product.make(-1) == 0, "%s: a right product is doubted", c.what);
        const std::vector<int8_t> right = product.c();
        const long calls = flips.calls;
        int harmful = 0;
        CHECK(calls > 0, "%s: nothing flips %s", c.what, name);
        for (int i = 0; i < FLIPS || (harmful == 0 && i < 20 * FLIPS); i++) {
            flips.bit = tsr_emulation_random();
            const int found = product.make((long)(tsr_emulation_random() % (uint64_t)calls));
            const bool harmed = product.c() != right;
            CHECK(!harmed || found > 0, "%s, TSR_MODEL_SEED=%llu: bit %llu of %s changed C, and was not found", c.what,
                  (unsigned long long)hopper_test::seed, (unsigned long long)flips.bit, name);
            harmful += harmed;
        }
        CHECK(harmful > 0, "%s: no flip of %s changed C", c.what, name);
    }
}

static void check_fixed() {
    check_flips({.what = "ragged", .planes = 2, .m = 140, .n = 150, .k = 130, .wanted = 200});
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
