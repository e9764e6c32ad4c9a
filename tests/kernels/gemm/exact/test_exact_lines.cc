/* What CUDA devices find of lines (exact_lines.h), beside the rules for each element: numbers of all sizes, subnormal
 * ones, powers of two, integers, zeros, Inf and NaN. Lines of parts beside those joined one by one, and grains. */
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "kernels/gemm/exact/exact_lines.h"
#include "tests/check.h"
#include "tests/kernels/gemm/grade/known_product.h"

enum { ROUNDS = 200000, MOST = 16 };

template <typename T> T of_bits(uint64_t bits) {
    T x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* One of many kinds; all of a part are of few sizes, or of any. */
template <typename T> T drawn(int kind, int exponent) {
    constexpr int BITS = 8 * (int)sizeof(T);
    constexpr int DIGITS = BITS == 64 ? 52 : 23, BIAS = BITS == 64 ? 1023 : 127;
    const uint64_t any = known_drawn((uint64_t)1 << 32) << 32 | known_drawn((uint64_t)1 << 32);
    const uint64_t sign = (any & 1) << (BITS - 1), fraction = any >> (64 - DIGITS);
    switch (kind) {
    case 0: return of_bits<T>(any >> (64 - BITS)); /* Inf and NaN among them */
    case 1: return (T)0;
    case 2: return of_bits<T>(sign | (uint64_t)(exponent + BIAS) << DIGITS);     /* a power of two */
    case 3: return of_bits<T>(sign | fraction >> known_drawn((uint64_t)DIGITS)); /* subnormal */
    case 4: return (T)((int64_t)known_drawn(2000) - 1000);
    case 5: return of_bits<T>(sign | (uint64_t)(2 * BIAS + 1) << DIGITS | (any & 2 ? fraction : 0));
    case 6: return (T)(any & 2 ? -0.0 : 0.0);
    default: /* its lower bits are 0 in many */
        return of_bits<T>(sign | (uint64_t)(exponent + BIAS) << DIGITS |
                          (fraction & ~(uint64_t)0 << known_drawn((uint64_t)DIGITS + 1)));
    }
}

/* What a device found of a part. */
template <typename T, int VALUES> void check_found(const T (&x)[VALUES], const tsr_exact_line &got) {
    constexpr tsr_dtype type = exact::TYPE<T>;
    tsr_exact_line is = {.exponent = TSR_EXACT_EMPTY, .lowest = TSR_EXACT_WHOLE, .count = 0, .sum = 0, .squares = 0};
    for (T value : x) {
        is.exponent = tsr_max(is.exponent, tsr_exact_exponent(type, (double)value));
        is.lowest = tsr_min(is.lowest, tsr_exact_lowest((double)value));
        is.count += value != 0;
    }
    const double scale = tsr_exact_quantum_scale(is.exponent);
    for (T value : x) {
        const uint64_t q = scale > 0 ? tsr_exact_quantum((double)value, scale) : 0;
        is.sum += q;
        is.squares += q * q;
    }
    CHECK(got.exponent == is.exponent, "an exponent of %d is %d", is.exponent, got.exponent);
    CHECK(got.count == is.count, "%u elements are %u", is.count, got.count);
    CHECK(got.sum == is.sum && got.squares == is.squares, "quanta %llu, squares %llu are %llu, %llu",
          (unsigned long long)is.sum, (unsigned long long)is.squares, (unsigned long long)got.sum,
          (unsigned long long)got.squares);
    if (is.exponent > 1024) return;                              /* the line is refused */
    const bool below = is.lowest < -1022 && got.lowest == -1023; /* no shift tells them apart */
    CHECK(got.lowest == is.lowest || (type == TSR_F64 && below), "a lowest bit of %d is %d", is.lowest, got.lowest);
}

template <typename T, int VALUES> void check_part(const T (&x)[VALUES]) {
    const unsigned extremes = exact::extremes_of(x);
    check_found(x, exact::part_of(extremes, exact::totals_of(x, exact::exponent_of(extremes))));
}

template <typename T> __global__ void find_part(const T *x, tsr_exact_line *to) {
    T own[4];
    for (int e = 0; e < 4; e++) own[e] = x[4 * threadIdx.x + e];
    const tsr_exact_line part = exact::part_of_warp(own);
    to[threadIdx.x] = part;
}
/* A whole one, by a warp: all lanes have it. */
template <typename T> void check_part(const T (&x)[TSR_EXACT_PART]) {
    tsr_exact_line got[32];
    CHECK_OK(TSR_LAUNCH(find_part<T>, 1, 32, 0, NULL, x, got));
    for (const tsr_exact_line &line : got) check_found(x, line);
}

template <typename T, int VALUES> void check_parts(int rounds) {
    constexpr int LEAST = sizeof(T) == 8 ? -1022 : -126, LARGEST = sizeof(T) == 8 ? 1023 : 127;
    for (int round = 0; round < rounds; round++) {
        const int middle = LEAST + (int)known_drawn((uint64_t)(LARGEST - LEAST + 1)), kinds = round % 12;
        T x[VALUES];
        for (T &value : x) {
            const int exponent = tsr_max(LEAST, tsr_min(LARGEST, middle - (int)known_drawn(40)));
            value = drawn<T>(kinds < 8 ? kinds : kinds == 8 ? (int)known_drawn(9) : 6 + (int)known_drawn(4), exponent);
        }
        check_part(x);
    }
}

/* One element that is not 0, the least there is, wherever it stands. */
template <typename T> void check_lone() {
    for (int at = 0; at < TSR_EXACT_PART; at += 13) {
        T x[TSR_EXACT_PART] = {};
        x[at] = std::numeric_limits<T>::denorm_min();
        check_part(x);
    }
}

static tsr_exact_proof proof_of(tsr_dtype type, tsr_exact_line line) {
    tsr_exact_natural limits[TSR_EXACT_LEVELS];
    for (int level = 0; level < TSR_EXACT_LEVELS; level++)
        limits[level] = tsr_exact_limit(tsr_exact_moduli(type, level));
    return tsr_exact_prove(type, line, limits);
}

/* ---- lines of parts --------------------------------------------------------------------------- */

static __global__ void make_line(const tsr_exact_line *parts, int64_t step, int count, tsr_exact_line *to) {
    const tsr_exact_line line = exact::line_of(parts, step, count);
    if (threadIdx.x == 31) *to = line;
}
/* Any part, or the largest there is. */
static tsr_exact_line drawn_part(bool largest, int exponent) {
    const uint64_t most = (uint64_t)1 << TSR_EXACT_QUANTUM_BITS;
    if (largest) return {1024, -1074, TSR_EXACT_PART, TSR_EXACT_PART * most, TSR_EXACT_PART * most * most};
    const unsigned count = (unsigned)known_drawn(TSR_EXACT_PART + 1);
    if (count == 0) return {TSR_EXACT_EMPTY, TSR_EXACT_WHOLE, 0, 0, 0};
    const uint64_t sum = most / 2 + (count - 1) * known_drawn(most);
    return {exponent - (int)known_drawn(40), exponent - 40 - (int)known_drawn(60), count, sum, sum * sum / count + 1};
}
/* Parts of a line, beside those of another one. */
static void check_lines() {
    enum { STEP = 2, MOST_PARTS = TSR_EXACT_RANGE / TSR_EXACT_PART };
    for (int round = 0; round < ROUNDS / 100; round++) {
        const int count = round % 3 == 0 ? MOST_PARTS : 1 + (int)known_drawn(MOST_PARTS);
        const int exponent = (int)known_drawn(1900) - 900;
        tsr_exact_line parts[STEP * MOST_PARTS], got, is = {TSR_EXACT_EMPTY, TSR_EXACT_WHOLE, 0, 0, 0};
        for (tsr_exact_line &part : parts) part = drawn_part(round % 5 == 0, exponent);
        for (int i = 0; i < count; i++) {
            is.exponent = std::max(is.exponent, parts[STEP * i].exponent);
            is.lowest = std::min(is.lowest, parts[STEP * i].lowest);
        }
        for (int i = 0; i < count; i++) tsr_exact_join(&is, parts[STEP * i]);
        CHECK_OK(TSR_LAUNCH(make_line, 1, 32, 0, NULL, parts, (int64_t)STEP, count, &got));
        CHECK(got.exponent == is.exponent && got.lowest == is.lowest && got.count == is.count && got.sum == is.sum &&
                  got.squares == is.squares,
              "a line of %d parts: 2^%d, 2^%d, %u, %llu, %llu, not 2^%d, 2^%d, %u, %llu, %llu", count, got.exponent,
              got.lowest, got.count, (unsigned long long)got.sum, (unsigned long long)got.squares, is.exponent,
              is.lowest, is.count, (unsigned long long)is.sum, (unsigned long long)is.squares);
    }
}

/* ---- magnitudes ------------------------------------------------------------------------------- */

/* Grains of lines, from their whole mean: elements have 2^TSR_EXACT_MEAN_BITS units in the mean, and less than twice as
 * many, unless they have less than a quantum or two. */
static void check_grains() {
    for (int round = 0; round < ROUNDS; round++) {
        tsr_exact_line line = {};
        line.count = round % 5 == 0 ? 1u << known_drawn(15) : (unsigned)known_drawn(TSR_EXACT_RANGE + 1);
        const uint64_t most = (uint64_t)line.count << known_drawn(TSR_EXACT_QUANTUM_BITS + 1);
        line.sum = round % 3 == 0 ? most : round % 3 == 1 && most > 0 ? most - 1 : known_drawn(most + 1);
        const uint64_t mean = line.count > 0 ? line.sum / line.count : 0;
        const int bits = tsr_exact_grain(line) + TSR_EXACT_MEAN_BITS;
        CHECK(mean < 2 ? bits == 0 : bits > 0 && mean >> bits == 1, "a grain of %d, of %u elements that sum up to %llu",
              bits - TSR_EXACT_MEAN_BITS, line.count, (unsigned long long)line.sum);
    }
}

/* Magnitudes of elements below 2^exponent, for all grains there are: halves, and numbers next to whole ones, among
 * them; and those of lines that have none. */
template <typename T> void check_magnitudes() {
    constexpr int LEAST = sizeof(T) == 8 ? -959 : -89, LARGEST = sizeof(T) == 8 ? 1024 : 128;
    for (int round = 0; round < ROUNDS; round++) {
        const int exponent = LEAST + (int)known_drawn((uint64_t)(LARGEST - LEAST + 1));
        const int grain = (int)known_drawn(14) - 4;
        const double scale = tsr_exact_magnitude_scale(exact::TYPE<T>, exponent, grain);
        const double whole = (double)known_drawn(round % 3 ? 130 : 1 << (13 - grain)) / 2 / scale;
        T x = (T)whole;
        if (round % 4 == 1) x = std::nextafter(x, (T)0);
        if (round % 4 == 2) x = drawn<T>(round % 9 == 5 ? 6 : round % 9, exponent - 1 - round % 30);
        if (round % 4 == 3) x = -x;
        if (!(std::fabs((double)x) < ldexp(1, exponent))) continue;
        const int is = tsr_exact_magnitude((double)x, scale), got = (int)exact::magnitude_of(x, (T)scale);
        CHECK(got == is, "%a has a magnitude of %d for 2^%d and %d, not %d", (double)x, got, exponent, grain, is);
    }
    for (T x : {(T)0, (T)1, (T)-3e38, (T)NAN, (T)INFINITY}) CHECK(exact::magnitude_of(x, (T)0) == 0, "%g", (double)x);
}

/* The largest shift that a line can have: one element, just above the floor, at the last level. */
static void check_largest_shift() {
    const double x[1] = {ldexp(1, tsr_exact_floor(TSR_F64))};
    const unsigned extremes = exact::extremes_of(x);
    const tsr_exact_line line = exact::part_of(extremes, exact::totals_of(x, exact::exponent_of(extremes)));
    const tsr_exact_proof proof = proof_of(TSR_F64, line);
    CHECK(!tsr_exact_unprovable(&proof) && proof.shifts[TSR_EXACT_LAST] > 1000, "it is refused");
    CHECK(proof.shifts[TSR_EXACT_LAST] <= 1022, "a shift of %d reaches subnormal numbers",
          proof.shifts[TSR_EXACT_LAST]);
}

/* Shifts of fp32 at level 0, whose integers are of 32 bits, are powers of two in fp32: of a line of one element above
 * the floor, and of one as long and large as can be. */
static void check_narrow_shifts() {
    const uint64_t most = (uint64_t)1 << TSR_EXACT_QUANTUM_BITS, least = most / 2;
    const tsr_exact_line small = {tsr_exact_floor(TSR_F32) + 1, -149, 1, least, least * least};
    const tsr_exact_line large = {128, 104, TSR_EXACT_RANGE, TSR_EXACT_RANGE * most, TSR_EXACT_RANGE * most * most};
    const int up = proof_of(TSR_F32, small).shifts[0], down = proof_of(TSR_F32, large).shifts[0];
    CHECK(up > 110 && up <= 127, "a shift of %d", up);
    CHECK(down < -100 && down >= -126, "a shift of %d", down);
    for (int shift = -126; shift <= 127; shift++)
        CHECK((double)exact::power_of<float>(shift) == ldexp(1, shift), "2^%d is %g", shift,
              (double)exact::power_of<float>(shift));
}

int main() {
    check_lines();
    check_grains();
    check_narrow_shifts();
    check_parts<float, 4>(ROUNDS);
    check_parts<float, MOST>(ROUNDS);
    check_parts<float, TSR_EXACT_PART>(ROUNDS / 40);
    check_parts<double, 4>(ROUNDS);
    check_parts<double, MOST>(ROUNDS);
    check_parts<double, TSR_EXACT_PART>(ROUNDS / 40);
    check_lone<float>();
    check_lone<double>();
    check_magnitudes<float>();
    check_magnitudes<double>();
    check_largest_shift();
    return 0;
}
