/* The arithmetic of residues (exact_moduli.h, exact_integers.h, residues/tiles.h) at its ends, against 128-bit
 * division: residues of integers of 63 bits and of their sums, of sums of products of bytes, and integers of residues
 * up to what a level tells apart; multiples of the moduli's product; elements of integers, beside tsr_exact_value. And
 * how many products of residues an int32 holds. */
#include <initializer_list>

#include "kernels/gemm/exact/exact_integers.h"
#include "kernels/gemm/residues/tiles.h"
#include "tests/check.h"
#include "tests/kernels/gemm/grade/known_product.h"

static const int moduli[TSR_EXACT_MODULI_MOST] = TSR_EXACT_MODULI;
enum { ROUNDS = 20000 };

/* Whether r, a byte or an int, is x modulo p, in [-p/2, p/2]. */
static bool is_residue(tsr_exact_integer x, int r, int p) { return (x - r) % p == 0 && 2 * abs(r) <= p; }

static int64_t drawn_integer(int bits) {
    const int64_t x = (int64_t)(known_drawn((uint64_t)1 << 32) << 31 ^ known_drawn((uint64_t)1 << 31)) >> (63 - bits);
    return known_drawn(2) ? x : -x;
}

/* ---- residues of integers -------------------------------------------------------------------- */

template <int COUNT> void check_integer(int64_t x) {
    const uint64_t moved = (uint64_t)x ^ (uint64_t)1 << 63;
    for (int i = 0; i < COUNT; i++) {
        const int r = (int8_t)exact::residue_byte<COUNT, false>((unsigned)moved, (unsigned)(moved >> 32), i);
        CHECK(is_residue(x, r, moduli[i]), "%lld mod %d is not %d", (long long)x, moduli[i], r);
    }
}
/* Of an element times 2^shift, in one word. */
template <int COUNT> void check_narrow(float element, int shift) {
    const int64_t is = tsr_exact_rint((double)element, ldexp(1, shift));
    unsigned low, high;
    exact::integer_of<true>(element, shift, &low, &high);
    CHECK(low == (unsigned)(is + ((int64_t)1 << 31)) && high == 0, "%a times 2^%d is the integer %u", (double)element,
          shift, low);
    for (int i = 0; i < COUNT; i++) {
        const int r = (int8_t)exact::residue_byte<COUNT, true>(low, high, i);
        CHECK(is_residue(is, r, moduli[i]), "%lld mod %d is not %d", (long long)is, moduli[i], r);
    }
}
/* Small integers, halves between them, the ends of the range, and elements of any size below 2^30. */
template <int COUNT> void check_all_narrow() {
    static_assert(exact::IS_NARROW<float, COUNT> && !exact::IS_NARROW<double, COUNT>);
    static_assert(!exact::IS_NARROW<float, COUNT + 1>);
    for (int away = 0; away < 70000; away++) {
        check_narrow<COUNT>((float)(away % 2 ? away : -away), 0);
        check_narrow<COUNT>((float)(away % 2 ? away : -away) * 0.5f, 0);
    }
    for (int sign = -1; sign <= 1; sign += 2)
        for (int shift = -108; shift <= 117; shift++) {
            check_narrow<COUNT>((float)sign * ldexpf(1, 30 - shift > 127 ? 127 : 30 - shift), shift);
            check_narrow<COUNT>((float)sign * 0x1p-149f, shift);
        }
    for (int round = 0; round < ROUNDS; round++) {
        const int shift = (int)known_drawn(226) - 108;
        const int exponent = tsr_max(-126, tsr_min(127, (int)known_drawn(40) - 11 - shift));
        if (exponent + shift >= 30) continue;
        const float fraction = 1 + (float)known_drawn(1 << 23) * 0x1p-23f;
        check_narrow<COUNT>(ldexpf(round % 2 ? fraction : -fraction, exponent), shift);
    }
}
/* All sums of bytes by weights that there can be. */
static void check_quotients() {
    constexpr exact::Moduli<TSR_EXACT_MODULI_MOST> m;
    for (int i = 0; i < TSR_EXACT_MODULI_MOST; i++)
        for (unsigned sum = 0; m.modulus[i] != 256 && sum < 1u << 20; sum++) {
            const int r = (int8_t)exact::byte_of_sum<TSR_EXACT_MODULI_MOST, false>(m.front[i] + sum, i);
            CHECK(is_residue((tsr_exact_integer)sum, r, m.modulus[i]), "%u mod %d is not %d", sum, m.modulus[i], r);
        }
}
/* Each modulus' multiples near both ends and near 0, halves of it away from them, and any integers. */
template <int COUNT> void check_integers() {
    for (int i = 0; i < COUNT; i++)
        for (int64_t end : {INT64_MIN + 1, -((int64_t)1 << 62), (int64_t)0, (int64_t)1 << 54, INT64_MAX})
            for (int away = -3; away <= 3; away++)
                for (int half = 0; half < 2; half++) {
                    const int p = moduli[i];
                    const int64_t x = (end / 2 / p * 2 + (end > 0 ? -2 : end < 0 ? 2 : 0)) * p + (half ? p / 2 : 0);
                    check_integer<COUNT>(x + away);
                }
    for (int64_t x : {INT64_MIN + 1, INT64_MAX, (int64_t)1 << 62, -((int64_t)1 << 62)}) check_integer<COUNT>(x);
    for (int round = 0; round < ROUNDS; round++) check_integer<COUNT>(drawn_integer(63 - round % 60));
}

/* ---- residues of sums of integers ------------------------------------------------------------- */

template <int COUNT, bool SHORT, bool NARROW = false> void check_added(int count, int64_t (*drawn)()) {
    exact::Sum<SHORT> sum = {};
    tsr_exact_integer exactly = 0;
    for (int i = 0; i < count; i++) {
        const int64_t x = drawn();
        const uint64_t moved = (uint64_t)x + exact::MOVED<NARROW>;
        exact::Sum<SHORT> own = {};
        own.add((unsigned)moved, (unsigned)(moved >> 32));
        sum.join(own);
        exactly += x;
    }
    for (int i = 0; i < COUNT; i++) {
        const int r = (int8_t)exact::sum_byte<COUNT, NARROW>(sum, count, i);
        CHECK(is_residue(exactly, r, moduli[i]), "a sum of %d integers mod %d is not %d", count, moduli[i], r);
    }
}
template <int COUNT> void check_all_added() {
    for (int count : {1, 2, 127, 128}) {
        check_added<COUNT, true, true>(count, [] { return (int64_t)INT32_MAX; });
        check_added<COUNT, true, true>(count, [] { return (int64_t)INT32_MIN; });
        check_added<COUNT, true, true>(count, [] { return drawn_integer((int)known_drawn(30) + 1); });
        check_added<COUNT, true>(count, [] { return (int64_t)1 << 55; });
        check_added<COUNT, true>(count, [] { return -((int64_t)1 << 55); });
        check_added<COUNT, true>(count, [] { return (int64_t)0; });
        check_added<COUNT, true>(count, [] { return (int64_t)-1; });
        check_added<COUNT, false>(count, [] { return (int64_t)INT64_MAX; });
        check_added<COUNT, false>(count, [] { return (int64_t)INT64_MIN; });
        check_added<COUNT, false>(count, [] { return (int64_t)0; });
        check_added<COUNT, false>(count, [] { return (int64_t)-1; });
    }
    for (int round = 0; round < ROUNDS / 100; round++) {
        check_added<COUNT, true>(1 + (int)known_drawn(128), [] { return drawn_integer((int)known_drawn(55) + 1); });
        check_added<COUNT, false>(1 + (int)known_drawn(128), [] { return drawn_integer((int)known_drawn(63) + 1); });
    }
}

/* Multiples of the moduli's product, as sums of a block are apart from what they must be, and what is none. */
template <int COUNT> void check_multiples() {
    const tsr_exact_natural product = tsr_exact_product(COUNT);
    for (int q = -140; q <= 140; q++) {
        typedef exact::Natural<COUNT> Natural;
        const tsr_exact_natural x = product * (tsr_exact_natural)q;
        CHECK(exact::is_multiple<COUNT>((Natural)x, 128) == (abs(q) <= 128), "%d times the product of %d moduli", q,
              COUNT);
        for (int bit = 0; bit < 8 * (int)sizeof(Natural); bit++)
            CHECK(!exact::is_multiple<COUNT>((Natural)x ^ (Natural)1 << bit, 128), "%d times, bit %d of it flipped", q,
                  bit);
        /* what a wrong residue of one plane makes of it */
        for (int i = 0; i < COUNT; i++)
            for (int times = 1; times < moduli[i]; times++)
                CHECK(!exact::is_multiple<COUNT>(
                          (Natural)(x + product / (tsr_exact_natural)moduli[i] * (tsr_exact_natural)times), 128),
                      "%d times, and a residue of %d is wrong", q, moduli[i]);
    }
}

/* ---- residues of sums ------------------------------------------------------------------------ */

/* How many products of two such bytes an int32 holds. */
static int64_t products_held(int64_t byte) { return INT32_MAX / (byte * byte); }

static void check_sum(int64_t sum) {
    const tsr_residue_moduli m = tsr_residue_moduli_all();
    for (int i = 0; i < TSR_EXACT_MODULI_MOST; i++) {
        const int r = (int8_t)tsr_residue((int)sum, m.modulus[i], m.inverse[i]);
        CHECK(is_residue(sum, r, moduli[i]), "%lld mod %d is not %d", (long long)sum, moduli[i], r);
    }
}
static void check_sums() {
    /* Residues of odd moduli are of 127 at most: 133,144 products, and one more does not fit. One modulus has -128. */
    CHECK(products_held(127) == 133144 && products_held(127) * 127 * 127 <= INT32_MAX, "%lld products of 127",
          (long long)products_held(127));
    CHECK((products_held(127) + 1) * 127 * 127 > INT32_MAX, "one more product of 127 fits");
    CHECK(products_held(128) == 131071 && 131072ll * 128 * 128 == 1ll + INT32_MAX, "%lld products of -128",
          (long long)products_held(128));
    for (int i = 0; i < TSR_EXACT_MODULI_MOST; i++)
        CHECK(moduli[i] / 2 <= (moduli[i] == 256 ? 128 : 127), "residues modulo %d are larger", moduli[i]);
    /* A range is an eighth of that. What an int32 holds is reduced rightly all the same. */
    CHECK(8 * TSR_EXACT_RANGE <= products_held(128) + 1, "a range of %d", TSR_EXACT_RANGE);
    for (int64_t size : {(int64_t)0, (int64_t)TSR_EXACT_RANGE * 128 * 128, products_held(127) * 127 * 127})
        for (int64_t away = 0; away < 600; away++)
            for (int sign = -1; sign <= 1; sign += 2) check_sum(sign * (size - (size > 0 ? away : -away)));
    for (int round = 0; round < ROUNDS; round++) check_sum(drawn_integer(28 + round % 3));
}

/* ---- integers of residues -------------------------------------------------------------------- */

template <int COUNT> void check_back(tsr_exact_integer x) {
    unsigned words[1][exact::Moduli<COUNT>::WORDS] = {};
    tsr_exact_integer got[1];
    for (int i = 0; i < COUNT; i++) {
        const int p = moduli[i];
        int r = (int)(x % p);
        if (2 * r >= p) r -= p;
        if (2 * r < -p) r += p;
        words[0][i / 4] |= (unsigned)(uint8_t)r << 8 * (i % 4);
    }
    exact::integers_from<COUNT>(words, got);
    CHECK(got[0] == x, "of %d moduli: %.17g is %.17g", COUNT, (double)x, (double)got[0]);
}
/* Up to the largest sum: lines' squares reach the limit, and rounding adds 2^-20 of it at most. */
template <int COUNT> void check_all_back() {
    const tsr_exact_integer limit = (tsr_exact_integer)tsr_exact_limit(COUNT), most = limit + (limit >> 20);
    CHECK(2 * (tsr_exact_natural)most < tsr_exact_product(COUNT), "%d moduli do not tell so much apart", COUNT);
    for (int away = 0; away < 600; away++)
        for (int sign = -1; sign <= 1; sign += 2) {
            check_back<COUNT>(sign * (most - away));
            check_back<COUNT>(sign * away);
        }
    for (int round = 0; round < ROUNDS; round++) {
        const tsr_exact_integer high = drawn_integer(63), x = high * ((tsr_exact_integer)1 << 64) + drawn_integer(63);
        check_back<COUNT>(x % (most >> round % 50));
    }
}

/* ---- elements of integers -------------------------------------------------------------------- */

template <typename T, int COUNT> void check_value(tsr_exact_integer x, int shift_a, int shift_b) {
    const double got = (double)exact::value_of<T, COUNT>(x, shift_a, shift_b);
    const double is = (double)(T)tsr_exact_value(exact::TYPE<T>, x, shift_a + shift_b);
    CHECK(tsr_exact_bits(got) == tsr_exact_bits(is), "of %d moduli: %.17g·2^-(%d + %d) is %.17g, not %.17g", COUNT,
          (double)x, shift_a, shift_b, is, got);
}
/* Integers of all sizes whose bits behind the last one kept are such that rounding can go wrong: halves, and next to
 * them, with bits set far behind; and results at the ends of what is a normal number. */
template <typename T, int COUNT> void check_values() {
    constexpr int DIGITS = exact::TYPE<T> == TSR_F64 ? 53 : 24;
    const tsr_exact_integer most = (tsr_exact_integer)(tsr_exact_product(COUNT) / 2);
    const int bits = exact::Product<COUNT>::BITS - 1, least = exact::TYPE<T> == TSR_F64 ? -1074 : -149;
    for (int size = 1; size <= bits; size++)
        for (int round = 0; round < ROUNDS / 40; round++) {
            tsr_exact_integer x = (tsr_exact_integer)1 << (size - 1);
            x |= ((tsr_exact_integer)drawn_integer(63) * ((tsr_exact_integer)1 << 63) ^ drawn_integer(63)) & (x - 1);
            const int lost = size - DIGITS;
            if (lost > 0 && round % 4 > 0) { /* a half, and a bit more or less */
                const tsr_exact_integer half = (tsr_exact_integer)1 << (lost - 1);
                x = (x & ~(2 * half - 1)) | half;
                if (round % 4 > 1)
                    x += ((tsr_exact_integer)1 << known_drawn((uint64_t)lost)) * (round % 4 == 2 ? 1 : -1);
            }
            if (x > most) continue;
            int end = 0; /* results of 1 to 2, else the least normal numbers, or large ones */
            if (round % 8 > 4) end = round % 8 == 7 ? (int)known_drawn(1020) : least + (int)known_drawn(DIGITS + 4);
            const int near = size - end; /* the sum of shifts */
            const int shift_a = near / 2 + (int)known_drawn(1900) - 950, sign = known_drawn(2) ? 1 : -1;
            if (abs(shift_a) > 1000 || abs(near - shift_a) > 1000) continue;
            check_value<T, COUNT>(sign * x, shift_a, near - shift_a);
            check_value<T, COUNT>(sign * x, near - shift_a, shift_a);
        }
    for (int shift : {-400, 0, 400}) check_value<T, COUNT>(0, shift, shift);
    check_value<T, COUNT>(most, 0, 0);
    check_value<T, COUNT>(-most, 0, 0);
}

int main() {
    check_integers<7>();
    check_integers<14>();
    check_integers<16>();
    check_all_narrow<7>();
    check_quotients();
    static_assert(exact::ARE_SHORT<11> && exact::ARE_SHORT<14> && !exact::ARE_SHORT<15>, "levels of both types");
    check_all_added<7>();
    check_all_added<9>();
    check_all_added<11>();
    check_all_added<14>();
    check_all_added<15>();
    check_all_added<16>();
    check_multiples<7>();
    check_multiples<14>();
    check_multiples<16>();
    check_sums();
    check_all_back<7>();
    check_all_back<8>();
    check_all_back<9>();
    check_all_back<11>();
    check_all_back<14>();
    check_all_back<15>();
    check_all_back<16>();
    check_values<float, 7>();
    check_values<float, 9>();
    check_values<float, 11>();
    check_values<double, 14>();
    check_values<double, 15>();
    check_values<double, 16>();
    return 0;
}
