/* Products of integers by residues on the CPU (exact_cpu_residues.h).
 * The compiler makes instructions on vectors of the loops here: `pmaddwd` and its wider kin multiply and add up 8, 16
 * or 32 residues each. Sums of 16384 products of residues are 2^28 at most. */
#include "kernels/gemm/exact/exact_cpu_residues.h"

#define EVERYWHERE static inline __attribute__((always_inline))

/* ---- loops ----------------------------------------------------------------------------------- */

/* The integer nearest to x, |x| < 2^51: adding moves the bits below 1 out. */
EVERYWHERE double nearest(double x) {
    const double mover = 0x1.8p52;
    return x + mover - mover;
}
/* x less the nearest multiple of p; the next one, perhaps, where two are about as near. All are integers below 2^47. */
EVERYWHERE double residue(double x, double p) { return x - p * nearest(x * (1 / p)); }

EVERYWHERE void split(int64_t x, double *low, double *high) {
    const int32_t lower = (int32_t)x;
    *low = lower;
    *high = (int32_t)(((uint64_t)x - (uint64_t)(int64_t)lower) >> 32);
}

EVERYWHERE void round_line(const double *line, int depth, double scale, int64_t *x) {
    for (int l = 0; l < depth; l++) x[l] = tsr_exact_rint(line[l], scale);
}

EVERYWHERE void take_magnitudes(const double *line, int depth, double scale, int16_t *magnitudes) {
    for (int l = 0; l < depth; l++) magnitudes[l] = (int16_t)tsr_exact_magnitude(line[l], scale);
}

/* By sums without what lies above 64 bits, and of the upper 32 bits, which tell what was left out. */
EVERYWHERE void add_lines(const tsr_exact_integers x, int lines, int depth, tsr_exact_line_sum *sum) {
    uint64_t all[TSR_EXACT_STEP] = {0};
    int64_t upper[TSR_EXACT_STEP] = {0};
    for (int i = 0; i < lines; i++)
        for (int l = 0; l < depth; l++) {
            all[l] += (uint64_t)x[i][l];
            upper[l] += x[i][l] >> 32;
        }
    for (int l = 0; l < depth; l++) {
        sum->low[l] = (double)(int64_t)(all[l] - ((uint64_t)upper[l] << 32));
        sum->high[l] = (double)upper[l];
    }
}

EVERYWHERE void take_residues(const tsr_exact_integers x, int lines, const tsr_exact_line_sum *sum, int depth, double p,
                              tsr_exact_plane residues) {
    const double power = residue(0x1p32, p);
    for (int i = 0; i < lines; i++)
        for (int l = 0; l < depth; l++) {
            double low, high;
            split(x[i][l], &low, &high);
            residues[i][l] = (int16_t)(int32_t)residue(high * power + low, p);
        }
    for (int l = 0; sum && l < depth; l++)
        residues[lines][l] = (int16_t)(int32_t)residue(sum->high[l] * power + sum->low[l], p);
}

/* Of `down` rows and, from `first` on, `across` columns: constants, so that sums stay in registers. A last
 * line, such as the sum of a block's lines, joins those before it: alone it would take as long as two. */
EVERYWHERE void multiply_lines(const int16_t (*a)[TSR_EXACT_STEP], const int16_t (*b)[TSR_EXACT_STEP], int depth,
                               int32_t (*sums)[TSR_EXACT_LINES], int first, int down, int across) {
    int32_t own[5][5] = {{0}};
    for (int l = 0; l < depth; l++)
#pragma GCC unroll 5
        for (int i = 0; i < down; i++)
#pragma GCC unroll 5
            for (int j = 0; j < across; j++) own[i][j] += a[i][l] * b[j][l];
    for (int i = 0; i < down; i++)
        for (int j = 0; j < across; j++) sums[i][first + j] += own[i][j];
}
EVERYWHERE void multiply_rows(const int16_t (*a)[TSR_EXACT_STEP], int down, const tsr_exact_plane b, int columns,
                              int depth, int32_t (*sums)[TSR_EXACT_LINES]) {
    int j = 0;
    for (; j + 4 <= columns && j + 5 != columns; j += 4) multiply_lines(a, b + j, depth, sums, j, down, 4);
    if (j + 5 == columns) multiply_lines(a, b + j, depth, sums, j, down, 5);
    else
        for (; j < columns; j++) multiply_lines(a, b + j, depth, sums, j, down, 1);
}
/* `down` rows at once. */
EVERYWHERE void multiply_planes(const tsr_exact_plane a, int rows, const tsr_exact_plane b, int columns, int depth,
                                tsr_exact_products sums, int down) {
    int i = 0;
    for (; i + down <= rows && i + down + 1 != rows; i += down) multiply_rows(a + i, down, b, columns, depth, sums + i);
    if (i + down + 1 == rows) multiply_rows(a + i, down + 1, b, columns, depth, sums + i);
    else
        for (; i < rows; i++) multiply_rows(a + i, 1, b, columns, depth, sums + i);
}

/* With w = sum·inverse modulo p the integer is Σ w·others less its nearest multiple of the product, which Σ w/p tells:
 * integers stay 2^-15 of the product away from half of it (tsr_exact_limit). By digits in base 2^32, whose sums are
 * below 2^44. */
EVERYWHERE void take_digits(const tsr_exact_remainders *remainders, const tsr_exact_products *sums, int row,
                            int columns, double digits[TSR_EXACT_DIGITS][TSR_EXACT_BLOCK]) {
    double w[TSR_EXACT_BLOCK], multiples[TSR_EXACT_BLOCK] = {0};
    for (int i = 0; i < remainders->count; i++) {
        const double p = remainders->of[i].p, inverse = remainders->of[i].inverse;
        for (int j = 0; j < columns; j++) {
            w[j] = residue(sums[i][row][j] * inverse, p);
            multiples[j] += w[j] * (1 / p);
        }
        for (int d = 0; d < remainders->digits; d++) {
            const double digit = remainders->of[i].others[d];
            for (int j = 0; j < columns; j++) digits[d][j] = (i > 0 ? digits[d][j] : 0) + w[j] * digit;
        }
    }
    for (int d = 0; d < remainders->digits; d++)
        for (int j = 0; j < columns; j++) digits[d][j] -= nearest(multiples[j]) * remainders->product[d];
}

/* ---- for kinds of processors ----------------------------------------------------------------- */

typedef struct {
    void (*round_line)(const double *line, int depth, double scale, int64_t *x);
    void (*take_magnitudes)(const double *line, int depth, double scale, int16_t *magnitudes);
    void (*add_lines)(const tsr_exact_integers x, int lines, int depth, tsr_exact_line_sum *sum);
    void (*take_residues)(const tsr_exact_integers x, int lines, const tsr_exact_line_sum *sum, int depth, double p,
                          tsr_exact_plane residues);
    void (*multiply_planes)(const tsr_exact_plane a, int rows, const tsr_exact_plane b, int columns, int depth,
                            tsr_exact_products sums);
    void (*take_digits)(const tsr_exact_remainders *remainders, const tsr_exact_products *sums, int row, int columns,
                        double digits[TSR_EXACT_DIGITS][TSR_EXACT_BLOCK]);
} loops;

#define LOOPS(name, target, down)                                                                                      \
    target static void round_line_##name(const double *line, int depth, double scale, int64_t *x) {                    \
        round_line(line, depth, scale, x);                                                                             \
    }                                                                                                                  \
    target static void take_magnitudes_##name(const double *line, int depth, double scale, int16_t *magnitudes) {      \
        take_magnitudes(line, depth, scale, magnitudes);                                                               \
    }                                                                                                                  \
    target static void add_lines_##name(const tsr_exact_integers x, int lines, int depth, tsr_exact_line_sum *sum) {   \
        add_lines(x, lines, depth, sum);                                                                               \
    }                                                                                                                  \
    target static void take_residues_##name(const tsr_exact_integers x, int lines, const tsr_exact_line_sum *sum,      \
                                            int depth, double p, tsr_exact_plane residues) {                           \
        take_residues(x, lines, sum, depth, p, residues);                                                              \
    }                                                                                                                  \
    target static void multiply_planes_##name(const tsr_exact_plane a, int rows, const tsr_exact_plane b, int columns, \
                                              int depth, tsr_exact_products sums) {                                    \
        multiply_planes(a, rows, b, columns, depth, sums, down);                                                       \
    }                                                                                                                  \
    target static void take_digits_##name(const tsr_exact_remainders *remainders, const tsr_exact_products *sums,      \
                                          int row, int columns, double digits[TSR_EXACT_DIGITS][TSR_EXACT_BLOCK]) {    \
        take_digits(remainders, sums, row, columns, digits);                                                           \
    }                                                                                                                  \
    static const loops name = {round_line_##name,    take_magnitudes_##name, add_lines_##name,                         \
                               take_residues_##name, multiply_planes_##name, take_digits_##name};

LOOPS(anywhere, , 2)
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
#define WIDE "avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"
LOOPS(with_avx2, __attribute__((target("avx2,fma"))), 3)
LOOPS(with_avx512, __attribute__((target(WIDE))), 4)
LOOPS(with_vnni, __attribute__((target("avx512vnni," WIDE))), 4)
static const loops *const kinds[] = {&anywhere, &with_avx2, &with_avx512, &with_vnni};
static int kind_of_processor(void) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return 1;
    return __builtin_cpu_supports("avx512vnni") ? 3 : 2;
}
#else
static const loops *const kinds[] = {&anywhere};
static int kind_of_processor(void) { return 0; }
#endif

#ifndef TSR_EXACT_KIND_MOST /* tests take others */
#define TSR_EXACT_KIND_MOST 3
#endif
static const loops *quickest(void) {
    const int kind = kind_of_processor();
    return kinds[kind < TSR_EXACT_KIND_MOST ? kind : TSR_EXACT_KIND_MOST];
}

void tsr_exact_round_line(const double *line, int depth, double scale, int64_t *x) {
    quickest()->round_line(line, depth, scale, x);
}
void tsr_exact_take_magnitudes(const double *line, int depth, double scale, int16_t *magnitudes) {
    quickest()->take_magnitudes(line, depth, scale, magnitudes);
}
void tsr_exact_add_lines(const tsr_exact_integers x, int lines, int depth, tsr_exact_line_sum *sum) {
    quickest()->add_lines(x, lines, depth, sum);
}
void tsr_exact_take_residues(const tsr_exact_integers x, int lines, const tsr_exact_line_sum *sum, int depth, int p,
                             tsr_exact_plane residues) {
    quickest()->take_residues(x, lines, sum, depth, p, residues);
}
void tsr_exact_multiply_planes(const tsr_exact_plane a, int rows, const tsr_exact_plane b, int columns, int depth,
                               tsr_exact_products sums) {
    quickest()->multiply_planes(a, rows, b, columns, depth, sums);
}

/* ---- integers of residues -------------------------------------------------------------------- */

static void take_digits_of(tsr_exact_natural x, double digits[TSR_EXACT_DIGITS]) {
    for (int d = 0; d < TSR_EXACT_DIGITS; d++, x >>= 32) digits[d] = (uint32_t)x;
}

void tsr_exact_start_remainders(tsr_dtype type, int level, tsr_exact_remainders *remainders) {
    static const int all[] = TSR_EXACT_MODULI;
    const int count = tsr_exact_moduli(type, level);
    const tsr_exact_natural product = tsr_exact_product(count);
    *remainders = (tsr_exact_remainders){.count = count, .digits = (tsr_exact_length(product) + 31) / 32};
    take_digits_of(product, remainders->product);
    for (int i = 0; i < count; i++) {
        const int p = all[i];
        const tsr_exact_natural others = product / (tsr_exact_natural)p;
        take_digits_of(others, remainders->of[i].others);
        remainders->of[i].p = p;
        remainders->of[i].inverse = tsr_exact_inverse((int)(others % (tsr_exact_natural)p), p);
        remainders->of[i].powers[0] = 1;
        for (int d = 1; d < TSR_EXACT_DIGITS; d++)
            remainders->of[i].powers[d] = residue(remainders->of[i].powers[d - 1] * 0x1p32, p);
    }
}

void tsr_exact_integers_of_row(const tsr_exact_remainders *remainders, const tsr_exact_products *sums, int row,
                               int columns, tsr_exact_integer x[TSR_EXACT_BLOCK]) {
    double digits[TSR_EXACT_DIGITS][TSR_EXACT_BLOCK];
    quickest()->take_digits(remainders, sums, row, columns, digits);
    for (int j = 0; j < columns; j++) {
        x[j] = 0;
        for (int d = remainders->digits - 1; d >= 0; d--)
            x[j] = (tsr_exact_integer)((tsr_exact_natural)x[j] << 32) + (int64_t)digits[d][j];
    }
}
