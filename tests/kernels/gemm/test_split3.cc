/* The arithmetic of split3 on the host: what two halves hold of a float, scales at the ends of the range, and the
 * verdict on whole matrices. */
#include <math.h>

#include <limits>
#include <vector>

#include "kernels/gemm/hopper/split3_arithmetic.h"
#include "tests/check.h"

using namespace split3;

static uint64_t state = 88172645463325252u;
static double uniform(void) { /* in (0, 1): xorshift64 */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((double)(state >> 11) + 0.5) * 0x1p-53;
}
static double normal(void) { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()); }
static float signed_uniform(void) { return (float)(2 * uniform() - 1); }

static unsigned largest_of(const std::vector<float> &line) {
    unsigned largest = 0;
    for (float x : line) largest = size_bits(x) > largest ? size_bits(x) : largest;
    return largest;
}

/* Both halves of a line's elements: the errors that `unfit` reckons with, and 2^-22 of an element at most where it
 * is not weak. */
static void check_halves(const std::vector<float> &line) {
    const unsigned largest = largest_of(line);
    const int shift = shift_of(largest);
    const double top = ldexp((double)float_of(largest), shift);
    CHECK(top >= 0x1p14 && top < 0x1p15, "largest %g becomes %g", (double)float_of(largest), top);
    for (float x : line) {
        Half high, low;
        int weak = 0, firm = 0;
        split(x, power(shift), &high, &low, &weak, &firm);
        const double scaled = ldexp((double)x, shift);
        const double held = (double)to_float(high) + (double)to_float(low);
        const double error = fabs(held - scaled);
        CHECK(weak == (x != 0 && fabs(scaled) < (double)WEAK) && firm == (fabs(scaled) >= (double)FIRM),
              "%g: weak %d, firm %d", scaled, weak, firm);
        CHECK(isfinite(held) && error <= (weak ? 0x1p-25 : 0x1p-23 * fabs(scaled)), "%a is held as %a", scaled, held);
        CHECK(error <= 0x1p-22 * top, "%a is held as %a", scaled, held);
    }
}

static void check_split(void) {
    for (int exponent = -100; exponent <= 127; exponent++) {
        std::vector<float> line;
        /* down to weak ones */
        for (int i = 0; i < 200; i++) line.push_back(ldexpf(signed_uniform(), exponent - i % 40));
        line.push_back(ldexpf(1, exponent));
        line.push_back(nextafterf(ldexpf(-1, exponent), 0));
        line.push_back(0);
        check_halves(line);
    }
    /* of every mantissa near a tie of the high part */
    for (unsigned tail = 0; tail < 1 << 13; tail++)
        check_halves({1.5f, float_of(bits_of(1.0f) + tail), -float_of(bits_of(0.001f) + tail)});
}

static void check_scales(void) {
    const float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
    check_halves({most, -most, 1, least, 0});
    check_halves({0x1p-100f, nextafterf(0x1p-100f, 1), 0x1p-126f, least});
    CHECK(shift_of(bits_of(most)) == 14 - 127 && power(shift_of(bits_of(most))) == 0x1p-113f,
          "scale of the largest float");
    CHECK(shift_of(bits_of(0x1p-100f)) == 114 && power(114) == 0x1p114f, "scale of 2^-100");
    for (int exponent = -126; exponent <= 127; exponent++)
        CHECK(power(exponent) == ldexpf(1, exponent), "2^%d", exponent);
    CHECK(!refuses(0) && shift_of(0) == 0, "a line of zeros needs no scale");
    CHECK(!refuses(bits_of(most)) && !refuses(bits_of(0x1p-100f)), "the ends of the range are in it");
    for (float x : {nextafterf(0x1p-100f, 0), 0x1p-126f, 0x1p-127f, least, INFINITY, NAN})
        CHECK(refuses(size_bits(x)) && refuses(size_bits(-x)) && shift_of(size_bits(x)) == 0, "%g is out of range",
              (double)x);
    CHECK(size_bits(NAN) > size_bits(INFINITY) && size_bits(-INFINITY) > size_bits(most),
          "NaN and Inf are the largest of a line");
}

/* What the kernel's `judge` says of A and B, given as lines of equal length. */
static bool holds(const std::vector<std::vector<float>> &a, const std::vector<std::vector<float>> &b) {
    int64_t weak = 0;
    int64_t soft = 0;
    int64_t k = (int64_t)a[0].size();
    bool refused = false;
    for (const auto *side : {&a, &b}) {
        int most_weak = 0, most_soft = 0;
        for (const auto &line : *side) {
            int line_weak = 0, line_firm = 0;
            Half high, low;
            for (float x : line) split(x, power(shift_of(largest_of(line))), &high, &low, &line_weak, &line_firm);
            refused |= refuses(largest_of(line));
            if (largest_of(line) == 0) continue;
            most_weak = line_weak > most_weak ? line_weak : most_weak;
            most_soft = (int)k - line_firm > most_soft ? (int)k - line_firm : most_soft;
        }
        weak += most_weak;
        soft += most_soft;
    }
    return !refused && !unfit(k, weak, soft) && !few(k, soft);
}

template <typename F> static std::vector<std::vector<float>> matrix(int lines, int k, F element) {
    std::vector<std::vector<float>> made((size_t)lines);
    for (auto &line : made)
        for (int i = 0; i < k; i++) line.push_back((float)element());
    return made;
}

static void check_verdict(void) {
    enum { K = 512, LINES = 8 };
    const auto plain = matrix(LINES, K, [] { return 2 * uniform() - 1; });
    CHECK(holds(plain, plain), "uniform");
    CHECK(holds(matrix(LINES, K, normal), plain), "normal");
    CHECK(holds(matrix(LINES, K, [] { return 0.0; }), plain), "zeros");
    CHECK(holds(matrix(LINES, K, [] { return ldexp(normal(), -60); }),
                matrix(LINES, K, [] { return ldexp(normal(), 90); })),
          "far from 1");
    auto graded = plain; /* every line at another exponent: a line's own scale holds it */
    for (int line = 0; line < LINES; line++)
        for (float &x : graded[(size_t)line]) x = ldexpf(x, 25 * line - 90);
    CHECK(holds(graded, plain), "graded lines");

    CHECK(!holds(matrix(LINES, K, [] { return ldexp(normal(), -(int)(40 * uniform())); }), plain),
          "spread of 2^40 within lines");
    CHECK(!holds(plain, matrix(LINES, K, [] { return exp(8 * normal()); })), "log-normal");

    for (int side = 0; side < 2; side++)
        for (float x : {INFINITY, -INFINITY, NAN}) {
            auto special = plain;
            special[LINES - 1][K / 2] = x;
            CHECK(side == 0 ? !holds(special, plain) : !holds(plain, special), "%g", (double)x);
        }
    auto tiny = plain;
    for (float &x : tiny[2]) x = 0x1p-120f;
    CHECK(!holds(tiny, plain), "a line of tiny elements");

    /* Zeros that leave 32 pairs to meet at least, wherever they stand, and one more; lines of zeros do not count. */
    for (int zeros : {0, 100, (K - 32) / 2, (K - 32) / 2 + 1, K - 1}) {
        auto holed = plain;
        for (int i = 0; i < zeros; i++) holed[3][(size_t)(K - 1 - i)] = 0;
        CHECK(holds(holed, holed) == (2 * zeros <= K - 32), "%d zeros in a line on both sides", zeros);
        CHECK(holds(holed, plain) == (zeros <= K - 32), "%d zeros in a line of A", zeros);
    }
    auto lines = plain;
    for (float &x : lines[1]) x = 0;
    CHECK(holds(lines, lines), "a line of zeros");
    auto identity = std::vector<std::vector<float>>(LINES, std::vector<float>(K, 0));
    for (int i = 0; i < LINES; i++) identity[(size_t)i][(size_t)i * 60] = 1;
    CHECK(!holds(plain, identity) && !holds(identity, plain) && !holds(identity, identity), "identity");
    CHECK(!holds(matrix(LINES, K, [] { return uniform() < 0.01 ? normal() : 0; }), plain), "1 %% of elements");
    CHECK(few(64, 33) && !few(64, 32) && few(31, 0), "the bound of few");

    /* weak elements among firm ones: 4·weak ≤ k - soft decides; 512 - weak are firm */
    for (int weak : {0, 1, 102, 103, 512 - 1}) {
        std::vector<std::vector<float>> line(1, std::vector<float>(K, 1.0f)), ones(1, std::vector<float>(K, 1.0f));
        for (int i = 0; i < weak; i++) line[0][(size_t)i] = 0x1p-20f;
        CHECK(holds(line, ones) == (4 * weak <= K - weak && K - weak >= 32), "%d weak elements", weak);
        CHECK(holds(ones, line) == holds(line, ones), "%d weak elements, on either side", weak);
    }
    CHECK(!unfit(64, 0, 128) && unfit(64, 1, 61) && !unfit(64, 1, 60), "the bound itself");
}

/* Two lines that are fit by themselves are fit together; and what a line alone is told to be is not always so. */
static void check_lines(void) {
    int fit = 0;
    int stricter = 0;
    for (int i = 0; i < 200000; i++) {
        const int64_t k = 64 + (int64_t)(uniform() * (i % 2 ? 300 : 16384));
        const int64_t soft[2] = {(int64_t)(uniform() * (double)k * 0.6), (int64_t)(uniform() * (double)k * 0.6)};
        const int64_t weak[2] = {(int64_t)(uniform() * (double)soft[0] * 0.3),
                                 i % 3 ? 0 : (int64_t)(uniform() * (double)soft[1] * 0.3)};
        const bool together = !unfit(k, weak[0] + weak[1], soft[0] + soft[1]) && !few(k, soft[0] + soft[1]);
        bool each = true;
        for (int side = 0; side < 2; side++)
            each = each && !line_unfit(k, weak[side], soft[side]) && !line_few(k, soft[side]);
        CHECK(together || !each, "k %ld, weak %ld %ld, soft %ld %ld: not fit together", (long)k, (long)weak[0],
              (long)weak[1], (long)soft[0], (long)soft[1]);
        fit += each;
        stricter += together && !each;
    }
    CHECK(fit > 10000 && stricter > 100, "%d pairs are fit, %d more are together", fit, stricter);
}

int main(void) {
    check_lines();
    check_split();
    check_scales();
    check_verdict();
    return 0;
}
