/* Planes of bytes to multiply, and what products and levels of them must be, by plain loops: for the tests of
 * kernels/gemm/exact/residue_products.h in the model of sm_90, in the emulation and on a GPU. All in the host's memory;
 * a test brings it to a device, and says how that multiplies. */
#ifndef TSR_TESTS_KERNELS_GEMM_EXACT_MADE_RESIDUES_H
#define TSR_TESTS_KERNELS_GEMM_EXACT_MADE_RESIDUES_H

#include <stdlib.h>
#include <string.h>

#include "kernels/gemm/exact/residue_products.h"
#include "tests/check.h"

typedef struct {
    const char *what;
    int planes;
    int64_t m, n, k;
    int wanted;   /* percent of the blocks of C; more than 100: there is no list */
    bool largest; /* all residues as large as they can be */
} residue_case;

/* Where no tile was made, and behind the end of C. */
enum { UNTOUCHED = 0x77, RESIDUE_GUARD = 64, WANTED_LEVEL = 2 };

typedef struct {
    residue_case c;
    tsr_residue_args args; /* a, b and blocks in the host's memory */
    size_t bytes_a, bytes_b, bytes_c, blocks;
    int8_t *a, *b;
    unsigned *level;                 /* of each block */
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

/* A plane's rows: residues modulo p, or of magnitudes (p = 0) 0 to 127, then zeros from k on; below the last row
 * anything. */
static inline int8_t *made_planes(const residue_case *c, int64_t lines, int64_t rows, int64_t depth, bool magnitudes) {
    static const int moduli[] = TSR_EXACT_MODULI;
    int8_t *all = (int8_t *)made_room((size_t)(c->planes * rows * depth));
    for (int64_t line = 0; line < c->planes * rows; line++)
        for (int64_t l = 0; l < depth; l++) {
            const int p = moduli[line / rows], half = p / 2;
            int value = (int)made_random(256) - 128;
            if (line % rows < lines) {
                if (magnitudes) value = c->largest ? 127 : (int)made_random(128);
                else if (c->largest) value = line % 2 && p < 256 ? half : -half;
                else value = (int)made_random((uint64_t)p) - half;
            }
            all[line * depth + l] = (int8_t)(l < c->k ? value : 0);
        }
    return all;
}

/* Lines of all kinds: of integers, refused ones, and such that need this level or that. */
static inline tsr_exact_proof *made_proofs(int64_t lines) {
    tsr_exact_proof *proofs = (tsr_exact_proof *)made_room((size_t)lines * sizeof *proofs);
    for (int64_t i = 0; i < lines; i++) {
        const int kind = (int)made_random(400), steps = 33 + (int)made_random(6);
        memset(&proofs[i], 0, sizeof proofs[i]);
        proofs[i].half = kind == 0 ? 0 : 0.5 * (double)made_random((uint64_t)1 << 23);
        proofs[i].unit = tsr_exact_power(7 + (int)made_random(3));
        for (int level = 0; level < TSR_EXACT_LEVELS; level++)
            proofs[i].errors[level] = kind == 0   ? (double)INFINITY
                                      : kind < 40 ? 0
                                                  : tsr_exact_power(-(steps + 4 * level));
    }
    return proofs;
}

static inline int made_sum(const made_residues *made, int plane, int64_t row, int64_t col) {
    const tsr_residue_args *args = &made->args;
    const int8_t *a = made->a + (plane * args->rows_a + row) * args->depth;
    const int8_t *b = made->b + (plane * args->rows_b + col) * args->depth;
    int sum = 0;
    for (int64_t l = 0; l < args->k; l++) sum += a[l] * b[l];
    return sum;
}

static inline made_residues make_residues(residue_case c, bool magnitudes) {
    made_residues made;
    memset(&made, 0, sizeof made);
    made.c = c;
    tsr_residue_args *args = &made.args;
    args->planes = c.planes;
    args->m = c.m;
    args->n = c.n;
    args->k = c.k;
    args->rows_a = tsr_round_up(c.m, TSR_EXACT_TILE);
    args->rows_b = tsr_round_up(c.n, TSR_EXACT_TILE);
    args->depth = tsr_round_up(c.k, TSR_EXACT_DEPTH);
    made.bytes_a = (size_t)(c.planes * args->rows_a * args->depth);
    made.bytes_b = (size_t)(c.planes * args->rows_b * args->depth);
    made.bytes_c = (size_t)(c.planes * args->rows_a * args->rows_b);
    made.blocks = (size_t)(args->rows_a / TSR_EXACT_BLOCK * (args->rows_b / TSR_EXACT_BLOCK));
    made.a = made_planes(&c, c.m, args->rows_a, args->depth, magnitudes);
    made.b = made_planes(&c, c.n, args->rows_b, args->depth, magnitudes);
    made.level = (unsigned *)made_room(made.blocks * sizeof *made.level);
    for (size_t i = 0; i < made.blocks; i++) {
        const unsigned other = (unsigned)made_random(WANTED_LEVEL);
        made.level[i] = (int)made_random(100) < c.wanted ? (unsigned)WANTED_LEVEL : other;
    }
    made.rows = made_proofs(c.m);
    made.columns = made_proofs(c.n);
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

/* needed: what the levels of made->level were raised to. counts: of the levels that blocks have now. */
static inline void check_levels(const made_residues *made, const unsigned *needed, int *counts) {
    const tsr_residue_args *args = &made->args;
    const int64_t across = args->rows_b / TSR_EXACT_BLOCK;
    unsigned *want = (unsigned *)made_room(made->blocks * sizeof *want);
    memcpy(want, made->level, made->blocks * sizeof *want);
    for (int64_t row = 0; row < args->m; row++)
        for (int64_t col = 0; col < args->n; col++) {
            unsigned *block = want + row / TSR_EXACT_BLOCK * across + col / TSR_EXACT_BLOCK;
            const unsigned level = (unsigned)tsr_exact_level(&made->rows[row], &made->columns[col], args->k,
                                                             made->allowed, made->sums[row * args->n + col]);
            if (level > *block) *block = level;
        }
    for (size_t i = 0; i < made->blocks; i++) {
        CHECK(needed[i] == want[i], "%s: block %zu needs level %u, not %u", made->c.what, i, want[i], needed[i]);
        counts[want[i]]++;
    }
    free(want);
}

#endif
