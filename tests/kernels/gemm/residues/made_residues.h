/* Planes of bytes to multiply, and what products, levels and meetings of them must be, by plain loops: for the tests of
 * kernels/gemm/residues/products.h in the model of sm_90, in the emulation and on a GPU. All in the host's memory;
 * a test brings it to a device, and says how that multiplies. */
#ifndef TSR_TESTS_KERNELS_GEMM_RESIDUES_MADE_RESIDUES_H
#define TSR_TESTS_KERNELS_GEMM_RESIDUES_MADE_RESIDUES_H

#include <stdlib.h>
#include <string.h>

#include "kernels/gemm/residues/products.h"
#include "tests/check.h"

/* Which levels rows need: any; those of a block alike, which decide alone; one by far, but for one row of 32, which
 * needs it barely, or, in the last of four blocks, the next one barely; the last level 0 to 6 of a block, others the
 * one below, of which some barely. */
typedef enum { MADE_UNLIKE, MADE_ALIKE, MADE_BUT_ONE, MADE_FEW } made_rows;

typedef struct {
    const char *what;
    int planes;
    int64_t m, n, k;
    int wanted;     /* percent of the blocks of C; more than 100: there is no list */
    bool largest;   /* all residues as large as they can be */
    bool quartered; /* sides are multiples of two tiles, and all is made of quarters (winograd.h) */
    bool apart;     /* lines meet in the middle third of k alone */
    made_rows rows; /* of levels */
} residue_case;

/* Cases of levels for all devices. */
#define MADE_LEVEL_CASES                                                                                               \
    {.what = "levels of one tile", .planes = 1, .m = 256, .n = 256, .k = 300, .wanted = 30},                           \
        {.what = "levels of few elements", .planes = 1, .m = 3, .n = 5, .k = 1000, .wanted = 30},                      \
        {.what = "levels of ragged tiles", .planes = 1, .m = 300, .n = 650, .k = 250, .wanted = 30},                   \
        {.what = "levels of lines alike", .planes = 1, .m = 900, .n = 140, .k = 600, .rows = MADE_ALIKE},              \
        {.what = "levels of lines apart",                                                                              \
         .planes = 1,                                                                                                  \
         .m = 900,                                                                                                     \
         .n = 140,                                                                                                     \
         .k = 600,                                                                                                     \
         .apart = true,                                                                                                \
         .rows = MADE_ALIKE},                                                                                          \
        {.what = "levels of lines but one", .planes = 1, .m = 700, .n = 1, .k = 600, .rows = MADE_BUT_ONE}, {          \
        .what = "levels of few lines", .planes = 1, .m = 890, .n = 1, .k = 600, .rows = MADE_FEW                       \
    }

/* What the bytes are. */
typedef enum { MADE_RESIDUES, MADE_MAGNITUDES, MADE_PATTERNS } made_kind;

/* Where no tile was made, and behind the end of C. */
enum { UNTOUCHED = 0x77, RESIDUE_GUARD = 64, WANTED_LEVEL = 2 };

typedef struct {
    residue_case c;
    tsr_residue_args args; /* a, b and blocks in the host's memory */
    size_t bytes_a, bytes_b, bytes_c, blocks;
    int8_t *a, *b;
    unsigned *level; /* of each block */
    unsigned *left;  /* a bit an element: see tsr_residue_levels_args */
    size_t left_bytes;
    tsr_exact_proof *rows, *columns; /* m and n of them */
    double allowed;
    int *sums; /* planes × m × n */
} made_residues;

static uint64_t made_state = 1;
static inline uint64_t made_random(uint64_t below) {
    made_state = made_state * 6364136223846793005u + 1442695040888963407u;
    return (made_state >> 33) % below;
}

static inline void *made_room(size_t bytes) {
    void *room = calloc(1, bytes);
    CHECK(room, "no %zu bytes", bytes);
    return room;
}

/* A byte of a plane of modulus p: of magnitudes 0 to 127, of patterns zeros and few that are weak. */
static inline int made_byte(const residue_case *c, int64_t line, int p, made_kind kind) {
    const int half = p / 2;
    if (kind == MADE_MAGNITUDES) return c->largest ? 127 : (int)made_random(128);
    if (kind == MADE_PATTERNS) {
        const int drawn = c->largest ? 0 : (int)made_random(100);
        return drawn < 1 ? TSR_EXACT_WEAK : drawn < 2 + (int)(2000 / c->k) ? 1 : 0;
    }
    if (c->largest) return line % 2 && p < 256 ? half : -half;
    return (int)made_random((uint64_t)p) - half;
}

/* A plane's rows, then zeros from k on; below the last row anything. */
static inline int8_t *made_planes(const residue_case *c, int64_t lines, int64_t rows, int64_t depth, made_kind kind) {
    static const int moduli[] = TSR_EXACT_MODULI;
    int8_t *all = (int8_t *)made_room((size_t)(c->planes * rows * depth));
    for (int64_t line = 0; line < c->planes * rows; line++)
        for (int64_t l = 0; l < depth; l++) {
            int value = (int)made_random(256) - 128;
            if (line % rows < lines) value = made_byte(c, line, moduli[line / rows], kind);
            all[line * depth + l] = (int8_t)(l < c->k ? value : 0);
        }
    return all;
}
/* Zeros from one element of k to another. */
static inline void made_zeros(int8_t *planes, int64_t lines, int64_t depth, int64_t from, int64_t to) {
    for (int64_t line = 0; line < lines; line++) memset(planes + line * depth + from, 0, (size_t)(to - from));
}

/* With errors of 2^-steps, and less by 4 bits from level to level. */
static inline tsr_exact_proof made_proof(double half, int grain, int steps) {
    tsr_exact_proof proof;
    memset(&proof, 0, sizeof proof);
    proof.half = half;
    proof.grain = grain;
    proof.unit = tsr_exact_power(grain);
    for (int level = 0; level < TSR_EXACT_LEVELS; level++) proof.errors[level] = tsr_exact_power(-(steps + 4 * level));
    return proof;
}
/* Rows whose blocks need, with k = 600, level 0, by far and barely, 1 and 2 likewise, and the loop. */
static inline int made_steps(const residue_case *c, int64_t row) {
    static const int alike[] = {37, 34, 32, 30, 27, 26, 21};
    static const int by_far[] = {37, 32, 27, 37}, barely[] = {34, 30, 26, 30};
    const int64_t block = row / TSR_EXACT_BLOCK;
    if (c->rows == MADE_ALIKE) return alike[block % 7];
    if (c->rows == MADE_FEW) {
        /* of 16 rows, which a warp has, one; of block 1 two, and of block 0, in its tile, three more barely; of block 3
         * four */
        const int64_t part = row % TSR_EXACT_BLOCK / 16, line = row % 16;
        const int64_t few = (block + 1) % 7;
        const int each = few == 4 ? 4 : few == 1 || few == 2 ? 2 : 1;
        if (part * each < few && line % (each == 4 ? 4 : 8) == 3 && line < 8 * each)
            return 27; /* 3 and 11 of a thread */
        return (line == 2 && part > 4) || (few == 1 && part == 0 && line > 12) ? 30 : 32;
    }
    return row % 32 == 5 ? barely[block % 4] : by_far[block % 4];
}
/* Such rows, or columns that need nothing. */
static inline tsr_exact_proof *made_proofs_alike(const residue_case *c, int64_t lines, bool of_rows) {
    tsr_exact_proof *proofs = (tsr_exact_proof *)made_room((size_t)lines * sizeof *proofs);
    for (int64_t i = 0; i < lines; i++) proofs[i] = made_proof(0x1p22, 8, of_rows ? made_steps(c, i) : 60);
    return proofs;
}
/* Lines of all kinds: of integers, refused ones, and such that need this level or that. */
static inline tsr_exact_proof *made_proofs(int64_t lines) {
    tsr_exact_proof *proofs = (tsr_exact_proof *)made_room((size_t)lines * sizeof *proofs);
    for (int64_t i = 0; i < lines; i++) {
        const int kind = (int)made_random(400), steps = 33 + (int)made_random(6);
        const double half = kind == 0 ? 0 : 0.5 * (double)made_random((uint64_t)1 << 23);
        proofs[i] = made_proof(half, 7 + (int)made_random(3), steps);
        if (kind < 40)
            for (int level = 0; level < TSR_EXACT_LEVELS; level++)
                proofs[i].errors[level] = kind == 0 ? (double)INFINITY : 0;
    }
    return proofs;
}

/* Most of the time of a test with sanitizers, which find nothing here. */
__attribute__((optimize("O3"))) __attribute__((no_sanitize("address")))
__attribute__((no_sanitize("undefined"))) static inline int
made_sum(const made_residues *made, int plane, int64_t row, int64_t col) {
    const tsr_residue_args *args = &made->args;
    const int8_t *a = made->a + (plane * args->rows_a + row) * args->depth;
    const int8_t *b = made->b + (plane * args->rows_b + col) * args->depth;
    int sum = 0;
    for (int64_t l = 0; l < args->k; l++) sum += a[l] * b[l];
    return sum;
}

static inline made_residues make_residues(residue_case c, made_kind kind) {
    made_residues made;
    memset(&made, 0, sizeof made);
    made.c = c;
    tsr_residue_args *args = &made.args;
    args->planes = c.planes;
    args->m = c.m;
    args->n = c.n;
    args->k = c.k;
    const int sides = c.quartered ? 2 : 1;
    args->rows_a = tsr_round_up(c.m, sides * TSR_EXACT_TILE);
    args->rows_b = tsr_round_up(c.n, sides * TSR_EXACT_TILE);
    args->depth = tsr_round_up(c.k, sides * TSR_EXACT_DEPTH);
    made.bytes_a = (size_t)(c.planes * args->rows_a * args->depth);
    made.bytes_b = (size_t)(c.planes * args->rows_b * args->depth);
    made.bytes_c = (size_t)(c.planes * args->rows_a * args->rows_b);
    made.blocks = (size_t)(args->rows_a / TSR_EXACT_BLOCK * (args->rows_b / TSR_EXACT_BLOCK));
    made.a = made_planes(&c, c.m, args->rows_a, args->depth, kind);
    made.b = made_planes(&c, c.n, args->rows_b, args->depth, kind);
    if (c.apart) {
        made_zeros(made.a, c.planes * args->rows_a, args->depth, 2 * c.k / 3, c.k);
        made_zeros(made.b, c.planes * args->rows_b, args->depth, 0, c.k / 3);
    }
    made.level = (unsigned *)made_room(made.blocks * sizeof *made.level);
    for (size_t i = 0; i < made.blocks; i++) {
        const unsigned other = (unsigned)made_random(WANTED_LEVEL);
        made.level[i] = (int)made_random(100) < c.wanted ? (unsigned)WANTED_LEVEL : other;
    }
    made.left_bytes = (size_t)(args->rows_a * args->rows_b / 8);
    made.left = (unsigned *)made_room(made.left_bytes);
    made.rows = c.rows == MADE_UNLIKE ? made_proofs(c.m) : made_proofs_alike(&c, c.m, true);
    made.columns = c.rows == MADE_UNLIKE ? made_proofs(c.n) : made_proofs_alike(&c, c.n, false);
    made.allowed = tsr_exact_allowed(TSR_F64, c.k);
    made.sums = (int *)made_room((size_t)(c.planes * c.m * c.n) * sizeof *made.sums);
    for (int64_t i = 0; i < c.planes * c.m * c.n; i++)
        made.sums[i] = made_sum(&made, (int)(i / (c.m * c.n)), i / c.n % c.m, i % c.n);
    args->a = made.a;
    args->b = made.b;
    args->blocks = c.wanted > 100 ? NULL : made.level;
    args->wanted = WANTED_LEVEL;
    return made;
}
static inline void free_residues(made_residues *made) {
    free(made->a);
    free(made->b);
    free(made->level);
    free(made->left);
    free(made->sums);
    free(made->rows);
    free(made->columns);
}

/* Whether a block of C within m × n, of the tile at (row, col) in elements, is wanted. */
static inline bool made_wants(const made_residues *made, int64_t row, int64_t col) {
    const tsr_residue_args *args = &made->args;
    if (!args->blocks) return true;
    for (int64_t i = 0; i < TSR_EXACT_TILE; i += TSR_EXACT_BLOCK)
        for (int64_t j = 0; j < TSR_EXACT_TILE; j += TSR_EXACT_BLOCK)
            if (row + i < args->m && col + j < args->n &&
                made->level[(row + i) / TSR_EXACT_BLOCK * (args->rows_b / TSR_EXACT_BLOCK) +
                            (col + j) / TSR_EXACT_BLOCK] == WANTED_LEVEL)
                return true;
    return false;
}

/* c: what was made, RESIDUE_GUARD bytes behind its end, all UNTOUCHED before. */
static inline void check_residues(const made_residues *made, const int8_t *c) {
    static const int moduli[] = TSR_EXACT_MODULI;
    const tsr_residue_args *args = &made->args;
    for (int plane = 0; plane < args->planes; plane++)
        for (int64_t row = 0; row < args->rows_a; row++)
            for (int64_t col = 0; col < args->rows_b; col++) {
                const int8_t got = c[(plane * args->rows_a + row) * args->rows_b + col];
                const int p = moduli[plane];
                if (!made_wants(made, row / TSR_EXACT_TILE * TSR_EXACT_TILE, col / TSR_EXACT_TILE * TSR_EXACT_TILE)) {
                    CHECK(got == UNTOUCHED, "%s: plane %d (%d, %d), of a tile that nobody wants, is %d", made->c.what,
                          plane, (int)row, (int)col, got);
                    continue;
                }
                if (row >= args->m || col >= args->n) continue;
                const int64_t sum = made->sums[(plane * args->m + row) * args->n + col];
                CHECK((sum - got) % p == 0 && 2 * abs(got) <= p, "%s: plane %d (%d, %d) is %d, the sum %lld mod %d",
                      made->c.what, plane, (int)row, (int)col, got, (long long)sum, p);
            }
    for (int i = 0; i < RESIDUE_GUARD; i++)
        CHECK(c[made->bytes_c + (size_t)i] == UNTOUCHED, "%s: byte %d behind C", made->c.what, i);
}

/* ---- sums -------------------------------------------------------------------------------------- */

/* Of all planes: lines of sums of both operands' blocks, and what their products were made to. In the host's memory. */
typedef struct {
    int8_t *of_a, *of_b, *columns, *rows;
    size_t bytes, bytes_columns, bytes_rows; /* of a plane's sums times planes; without RESIDUE_GUARD */
} made_sums;

/* Sums like other residues, and nothing made yet. */
static inline made_sums make_sums(const made_residues *made) {
    const tsr_residue_args *args = &made->args;
    const int64_t lines = args->planes * TSR_EXACT_SUMS;
    made_sums sums;
    sums.of_a =
        made_planes(&made->c, tsr_ceil_div(args->m, TSR_EXACT_BLOCK), TSR_EXACT_SUMS, args->depth, MADE_RESIDUES);
    sums.of_b =
        made_planes(&made->c, tsr_ceil_div(args->n, TSR_EXACT_BLOCK), TSR_EXACT_SUMS, args->depth, MADE_RESIDUES);
    sums.bytes = (size_t)(lines * args->depth);
    sums.bytes_columns = (size_t)(lines * args->rows_b);
    sums.bytes_rows = (size_t)(lines * args->rows_a);
    sums.columns = (int8_t *)made_room(sums.bytes_columns + RESIDUE_GUARD);
    sums.rows = (int8_t *)made_room(sums.bytes_rows + RESIDUE_GUARD);
    memset(sums.columns, UNTOUCHED, sums.bytes_columns + RESIDUE_GUARD);
    memset(sums.rows, UNTOUCHED, sums.bytes_rows + RESIDUE_GUARD);
    return sums;
}
static inline void free_sums(made_sums *sums) {
    free(sums->of_a);
    free(sums->of_b);
    free(sums->columns);
    free(sums->rows);
}

/* Whether a tile is wanted among those of so many columns, or rows, from `first` on. */
static inline bool made_wants_lines(const made_residues *made, bool of_columns, int64_t first, int64_t count) {
    const int64_t others = of_columns ? made->args.m : made->args.n;
    for (int64_t line = first; line < first + count; line += TSR_EXACT_TILE)
        for (int64_t other = 0; other < others; other += TSR_EXACT_TILE)
            if (made_wants(made, of_columns ? other : line, of_columns ? line : other)) return true;
    return false;
}

/* got: planes × TSR_EXACT_SUMS × rows, UNTOUCHED before: products of `count` sums with an operand's lines. Those of
 * lines of wanted tiles are right, and those of lines far from them untouched. Returns how many are right. */
static inline long check_lines(const made_residues *made, bool of_columns, const int8_t *sums, int64_t count,
                               const int8_t *got) {
    enum { FAR = 2 * TSR_EXACT_TILE };
    static const int moduli[] = TSR_EXACT_MODULI;
    const tsr_residue_args *args = &made->args;
    const int8_t *planes = of_columns ? made->b : made->a;
    const int64_t lines = of_columns ? args->n : args->m, rows = of_columns ? args->rows_b : args->rows_a;
    long right = 0;
    for (int64_t line = 0; line < lines; line++) {
        const bool wanted = made_wants_lines(made, of_columns, line / TSR_EXACT_TILE * TSR_EXACT_TILE, 1);
        const bool far = !made_wants_lines(made, of_columns, line / FAR * FAR, FAR);
        for (int64_t i = 0; i < args->planes * count && (wanted || far); i++) {
            const int64_t plane = i / count, at = plane * TSR_EXACT_SUMS + i % count;
            const int8_t *a = sums + at * args->depth, *b = planes + (plane * rows + line) * args->depth;
            const int8_t is = got[at * rows + line];
            int sum = 0;
            for (int64_t l = 0; wanted && l < args->k; l++) sum += a[l] * b[l];
            CHECK(wanted ? (sum - is) % moduli[plane] == 0 && 2 * abs(is) <= moduli[plane] : is == UNTOUCHED,
                  "%s: plane %d, sum %d times %s %d is %d", made->c.what, (int)plane, (int)(i % count),
                  of_columns ? "column" : "row", (int)line, is);
            right += wanted;
        }
    }
    for (int i = 0; i < RESIDUE_GUARD; i++)
        CHECK(got[args->planes * TSR_EXACT_SUMS * rows + i] == UNTOUCHED, "%s: byte %d behind sums", made->c.what, i);
    return right;
}
/* Of quarters all sums are multiplied. */
static inline int made_lines(const made_residues *made, int64_t lines) {
    return made->c.quartered ? TSR_EXACT_SUMS : (int)tsr_ceil_div(lines, TSR_EXACT_BLOCK);
}
static inline long check_sums(const made_residues *made, const made_sums *sums, const int8_t *columns,
                              const int8_t *rows) {
    const tsr_residue_args *args = &made->args;
    return check_lines(made, true, sums->of_a, made_lines(made, args->m), columns) +
           check_lines(made, false, sums->of_b, made_lines(made, args->n), rows);
}

/* ---- levels and meetings ----------------------------------------------------------------------- */

static inline unsigned *made_left_word(const made_residues *made, unsigned *left, int64_t row, int64_t col) {
    return left + row * (made->args.rows_b / 32) + col / 32;
}
/* left: the bits that should be `want`. */
static inline void check_left(const made_residues *made, const unsigned *left, const unsigned *want) {
    for (size_t i = 0; i < made->left_bytes / sizeof *want; i++)
        CHECK(left[i] == want[i], "%s: of row %zu, columns from %zu on, %08x is left, not %08x", made->c.what,
              i / (size_t)(made->args.rows_b / 32), i % (size_t)(made->args.rows_b / 32) * 32, left[i], want[i]);
}

/* Whether what is noted of the elements of a block that need the last level is `want`, whose places are in order. */
static inline bool made_same_few(const tsr_exact_few *few, const tsr_exact_few *want) {
    if (want->count > TSR_EXACT_FEW) return few->count > TSR_EXACT_FEW;
    for (uint32_t i = 0; i < want->count; i++) {
        bool found = false;
        for (uint32_t j = 0; j < want->count; j++) found |= few->at[j] == want->at[i];
        if (!found) return false;
    }
    return few->count == want->count;
}

/* What tsr_residue_levels made, in the host's memory. */
typedef struct {
    const unsigned *needed, *left; /* made->level raised; of zeros */
    const tsr_exact_few *few;      /* of counts of 0 */
} made_levels;

/* counts: of the levels that blocks have now; few_counts: of those of the last one, whether few elements need it.
 * asked: of which blocks, those that are 1; NULL: of all. Of others anything is right that is true. */
static inline void check_levels(const made_residues *made, const unsigned *asked, made_levels got, int *counts,
                                int few_counts[2]) {
    const tsr_residue_args *args = &made->args;
    const int64_t across = args->rows_b / TSR_EXACT_BLOCK;
    unsigned *want = (unsigned *)made_room(made->blocks * sizeof *want);
    unsigned *want_left = (unsigned *)made_room(made->left_bytes);
    tsr_exact_few *want_few = (tsr_exact_few *)made_room(made->blocks * sizeof *want_few);
    memcpy(want, made->level, made->blocks * sizeof *want);
    for (int64_t row = 0; row < args->m; row++)
        for (int64_t col = 0; col < args->n; col++) {
            const int64_t at = row / TSR_EXACT_BLOCK * across + col / TSR_EXACT_BLOCK;
            tsr_exact_few *few = want_few + at;
            const unsigned level = (unsigned)tsr_exact_level(&made->rows[row], &made->columns[col], args->k,
                                                             made->allowed, made->sums[row * args->n + col]);
            if (level > want[at]) want[at] = level;
            if (level == TSR_EXACT_LAST && few->count++ < TSR_EXACT_FEW)
                few->at[few->count - 1] = (uint32_t)(row % TSR_EXACT_BLOCK * TSR_EXACT_BLOCK + col % TSR_EXACT_BLOCK);
            if (level == TSR_EXACT_LOOP) *made_left_word(made, want_left, row, col) |= 1u << col % 32;
        }
    for (size_t i = 0; i < made->blocks; i++) {
        const bool is_asked = !asked || asked[i] == 1;
        CHECK(got.needed[i] == want[i] || (!is_asked && got.needed[i] == made->level[i]),
              "%s: block %zu needs level %u, not %u", made->c.what, i, want[i], got.needed[i]);
        counts[want[i]]++;
        if (!is_asked || want[i] != TSR_EXACT_LAST) continue;
        CHECK(made_same_few(got.few + i, want_few + i), "%s: %u elements of block %zu need the last level, not %u",
              made->c.what, want_few[i].count, i, got.few[i].count);
        few_counts[tsr_exact_are_few((int)want[i], want_few[i].count)]++;
    }
    for (int64_t row = 0; asked && row < args->m; row++)
        for (int64_t col = 0; col < args->n; col += 32)
            if (asked[row / TSR_EXACT_BLOCK * across + col / TSR_EXACT_BLOCK] != 1) {
                unsigned *word = made_left_word(made, want_left, row, col);
                if (got.left[word - want_left] == 0) *word = 0;
            }
    check_left(made, got.left, want_left);
    free(want);
    free(want_left);
    free(want_few);
}

/* Elements that are left before patterns tell of them: about half. */
static inline void make_left(made_residues *made) {
    for (int64_t row = 0; row < made->args.m; row++)
        for (int64_t col = 0; col < made->args.n; col++)
            *made_left_word(made, made->left, row, col) |= (unsigned)made_random(2) << col % 32;
}
/* left: what was made of made->left. counts: of those that are left no more, still are, and were not asked of. */
static inline void check_meetings(const made_residues *made, const unsigned *left, int *counts) {
    unsigned *want = (unsigned *)made_room(made->left_bytes);
    memcpy(want, made->left, made->left_bytes);
    for (int64_t row = 0; row < made->args.m; row++)
        for (int64_t col = 0; col < made->args.n; col++) {
            unsigned *word = made_left_word(made, want, row, col), bit = 1u << col % 32;
            const int64_t across = made->args.rows_b / TSR_EXACT_BLOCK;
            const bool asked = made->level[row / TSR_EXACT_BLOCK * across + col / TSR_EXACT_BLOCK] == WANTED_LEVEL;
            if (!(*word & bit)) continue;
            if (asked && tsr_exact_meets_well(made->sums[row * made->args.n + col])) *word &= ~bit;
            counts[!asked ? 2 : *word & bit ? 1 : 0]++;
        }
    check_left(made, left, want);
    free(want);
}

#endif
