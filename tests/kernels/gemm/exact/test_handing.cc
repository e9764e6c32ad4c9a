/* Whether `exact` hands blocks of C over under `auto`, by which levels they take (kernels/gemm/auto/handing.h),
 * in the emulation of CUDA: levels that are made up. */
#include "kernels/gemm/auto/handing.h"

#include <functional>
#include <vector>

#include "tests/check.h"

namespace {

constexpr unsigned OPEN = 98;                 /* a level that patterns will decide */
unsigned left_open = TSR_EXACT_LEFT_MOST + 1; /* elements of such a block that magnitudes leave to the loop */

typedef std::function<unsigned(int row, int col)> Levels; /* of a block of C */

struct Answer {
    unsigned handed[2];
    tsr_gemm_fallbacks counted;
};

/* Of C with m × n elements. What stands for blocks without elements must not matter. */
Answer ask(const char *what, int64_t m, int64_t n, int64_t k, bool f64, bool before, const Levels &of) {
    const int down = (int)tsr_ceil_div(m, TSR_EXACT_BLOCK), wide = (int)tsr_ceil_div(n, TSR_EXACT_BLOCK);
    const int rows = (down + 1) / 2 * 2, across = (wide + 1) / 2 * 2;
    std::vector<unsigned> levels((size_t)rows * across, OPEN), a(rows), b(across);
    for (int i = 0; i < down; i++)
        for (int j = 0; j < wide; j++) {
            const unsigned level = levels[(size_t)i * across + j] = of(i, j);
            a[i] |= 1u << (level == OPEN ? TSR_EXACT_LAST : level);
            b[j] |= 1u << (level == OPEN ? TSR_EXACT_LAST : level);
        }
    std::vector<unsigned> left(levels.size(), 1u << 20); /* of blocks that are not open nobody asks */
    for (size_t i = 0; i < levels.size(); i++)
        if (levels[i] == OPEN) left[i] = left_open;
    const std::vector<unsigned> levels_before = levels;
    const std::vector<unsigned> a_before = a, b_before = b;
    Answer answer = {{7, before}, {}};
    const exact::Handing h = {.handed = answer.handed,
                              .levels = levels.data(),
                              .levels_a = a.data(),
                              .levels_b = b.data(),
                              .rows = rows,
                              .across = across,
                              .down = down,
                              .wide = wide,
                              .type = f64 ? TSR_F64 : TSR_F32,
                              .m = m,
                              .n = n,
                              .k = k,
                              .open = OPEN,
                              .left = left.data(),
                              .to = &answer.counted};
    CHECK_OK(TSR_LAUNCH(exact::hand_over, 1, exact::HANDERS, 0, (tsr_stream *)nullptr, h));
    CHECK(answer.handed[0] <= 1 && answer.handed[1] == (before || answer.handed[0]), "%s: %u, %u", what,
          answer.handed[0], answer.handed[1]);
    if (answer.handed[0]) { /* nothing is wanted any more */
        for (unsigned level : levels) CHECK(level > TSR_EXACT_LOOP && level != OPEN, "%s: level %u stays", what, level);
        for (unsigned bits : a) CHECK(bits == 0, "%s: rows are still wanted", what);
        for (unsigned bits : b) CHECK(bits == 0, "%s: columns are still wanted", what);
    } else {
        CHECK(levels == levels_before && a == a_before && b == b_before, "%s: levels have changed", what);
    }
    const bool counts = answer.handed[0] && !before;
    CHECK(answer.counted.products == counts && answer.counted.few == 0 &&
              answer.counted.multiply_adds == (answer.handed[0] ? (uint64_t)(m * n * k) : 0),
          "%s: %d products, %g multiply-adds", what, (int)answer.counted.products,
          (double)answer.counted.multiply_adds);
    return answer;
}

void check(const char *what, int64_t edge, int64_t k, bool f64, bool handed, const Levels &of) {
    for (int before = 0; before < 2; before++)
        CHECK(ask(what, edge, edge, k, f64, before, of).handed[0] == handed,
              "%s, n = %ld, k = %ld: it is %shanded over", what, (long)edge, (long)k, handed ? "not " : "");
}

Levels all(unsigned level) {
    return [=](int, int) { return level; };
}
/* One block in so many, here and there. */
Levels some(unsigned one_in, unsigned level, unsigned others) {
    return [=](int row, int col) { return ((unsigned)row * 37 + (unsigned)col * 101) % one_in ? others : level; };
}

void check_fp64() {
    for (int64_t n : {4096, 4097, 8192, 16384}) {
        check("normal data", n, n, true, false, all(0));
        check("a modulus more", n, n, true, false, all(1));
        check("two moduli more", n, n, true, false, all(2));
        check("a loop", n, n, true, true, all(TSR_EXACT_LOOP));
        check("few elements meet", n, n, true, true, all(OPEN));
        check("levels that alternate", n, n, true, true, some(2, 1, 2));
        check("one block in ten by the loop", n, n, true, true, some(10, TSR_EXACT_LOOP, 0));
        check("one block in ten open", n, n, true, true, some(10, OPEN, 0));
        check("one block in a hundred by the loop", n, n, true, false, some(100, TSR_EXACT_LOOP, 0));
    }
    left_open = 3; /* wide data */
    for (int64_t n : {8192, 16384}) {
        check("one block in ten open, of which little is left", n, n, true, false, some(10, OPEN, 2));
        check("all open, of which little is left", n, n, true, false, all(OPEN));
    }
    left_open = TSR_EXACT_LEFT_MOST;
    check("one block in twenty, of which much is left", 4096, 4096, true, true, some(20, OPEN, 0));
    left_open = TSR_EXACT_LEFT_MOST + 1;
    check("a short k", 8192, 256, true, true, all(0));
    check("a long k", 4096, 16384, true, false, all(2));
    /* half of the rows want another level, and tiles of both have one alone */
    check("two parts", 8192, 8192, true, false, [](int row, int) { return row < 32 ? 0u : 2u; });
    check("the same in rows that take turns", 8192, 8192, true, true, [](int row, int) { return row % 2 ? 0u : 2u; });
}

void check_fp32() {
    check("normal data", 8192, 8192, false, false, all(0));
    check("levels that alternate", 8192, 8192, false, true, some(2, 1, 2));
    check("lower levels that alternate", 8192, 8192, false, false, some(2, 0, 1));
    check("four moduli more", 4096, 4096, false, false, all(2));
    check("a loop", 8192, 8192, false, true, all(TSR_EXACT_LOOP));
    check("one block in four by the loop", 8192, 8192, false, true, some(4, TSR_EXACT_LOOP, 0));
}

} // namespace

int main() {
    check_fp64();
    check_fp32();
    const Answer one = ask("one element", 1, 1, 16384, true, false, all(0));
    CHECK(!one.handed[0], "one block of C, and others without elements");
    return 0;
}
