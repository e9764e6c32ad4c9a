/* Products of planes of bytes by integer arithmetic, for `exact`: C_p = A_p · B_pᵀ for each plane p, both K-major.
 * Two ways: the tensor cores of sm_90 (products_hopper.cu), and dp4a for all other devices
 * (products.cu). Same results. All memory is the device's, and not owned. Asynchronous on the stream. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_PRODUCTS_H
#define TSR_KERNELS_GEMM_RESIDUES_PRODUCTS_H

#include "kernels/device/device.h"
#include "kernels/gemm/exact/exact_rules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Planes follow each other, rows of a plane too. Rows are multiples of TSR_EXACT_TILE, and so are their bytes. */
#define TSR_EXACT_TILE 256        /* of C, whose operands are there as a whole */
#define TSR_EXACT_TILES_MOST 4096 /* of C in a launch */
#define TSR_EXACT_DEPTH 128
#define TSR_EXACT_SUMS 128 /* lines of a plane of sums: those of at most as many blocks of TSR_EXACT_BLOCK lines */

/* Sums of the lines of blocks, as residues, and their products with the other operand, which columns and rows of blocks
 * of C must add up to (exact_check.h). */
typedef struct {
    const int8_t *of_a;   /* planes × TSR_EXACT_SUMS × depth: a line for each block of rows of A */
    const int8_t *of_b;   /* the same, of columns of B */
    int8_t *columns;      /* made: planes × TSR_EXACT_SUMS × rows_b, of_a · Bᵀ */
    int8_t *rows;         /* made: planes × TSR_EXACT_SUMS × rows_a, of_b · Aᵀ */
    int lines_a, lines_b; /* so many of each plane are multiplied */
} tsr_residue_sums;

/* Whether kernels of a launch do anything: where *word is `value`, or, unless `equal`, where it is not. NULL: they
 * do. */
typedef struct {
    const unsigned *word;
    unsigned value;
    bool equal;
} tsr_residue_condition;

typedef struct {
    int planes;             /* 1 … TSR_EXACT_MODULI_MOST: of the first so many moduli */
    int64_t m, n, k;        /* of C and the sums; k ≤ TSR_EXACT_RANGE */
    const int8_t *a;        /* planes × rows_a × depth bytes. From row m on anything, from k on zeros */
    const int8_t *b;        /* planes × rows_b × depth bytes. From row n on anything, from k on zeros */
    int64_t rows_a, rows_b; /* m and n rounded up to TSR_EXACT_TILE, or to twice that */
    int64_t depth;          /* k rounded up to TSR_EXACT_DEPTH, or to twice that */
    /* Which blocks of C are wanted, TSR_EXACT_BLOCK rows and columns each: those whose entry is `wanted`, of
     * (rows_a / TSR_EXACT_BLOCK) × (rows_b / TSR_EXACT_BLOCK). Those past the last row or column never are. A tile
     * with one is made as a whole, others are not touched. NULL: all are wanted. */
    const unsigned *blocks;
    unsigned wanted;
    /* Of tsr_residue_products alone: sums that are multiplied, too; NULL: none. Made are the products with lines of
     * tiles that are wanted. */
    const tsr_residue_sums *sums;
    /* Of tsr_residue_levels alone: so many of k, or a few more, in its middle, may be multiplied first, and all of k
     * only for blocks whose level these do not settle. 0: all at once. The levels are the same. */
    int64_t first;
    tsr_residue_condition condition; /* of products, lists of them and steps of winograd.h */
    /* Planes from the first to those behind, and whether these are products of quarters: see winograd.h, which alone
     * sets it. Then there are seven planes for each modulus, and m … depth are of a quarter. */
    int apart;
    bool quarters;
    void *workspace; /* tsr_residue_workspace(m, n) bytes; of quarters see winograd.h */
    /* tsr_residue_list was called with these, whose blocks are the same since, and their workspace: for one product. */
    bool listed;
} tsr_residue_args;

size_t tsr_residue_workspace(int64_t m, int64_t n);

/* Prepares several products in one launch, which each have one for it otherwise: TSR_RESIDUE_LISTS - 1 `products`, and
 * `meetings`. Each has a workspace of its own. */
#define TSR_RESIDUE_LISTS 3
tsr_status tsr_residue_list(tsr_device *device, tsr_stream *stream, const tsr_residue_args *products,
                            const tsr_residue_args *meetings);

/* c: planes × rows_a × rows_b bytes: the sums modulo each plane's modulus, in [-p/2, p/2]; anything from row m and
 * column n on. The same holds for products of args->sums. */
tsr_status tsr_residue_products(tsr_device *device, tsr_stream *stream, const tsr_residue_args *args, int8_t *c);

/* What levels are found from, and what is found: of each element within m × n tsr_exact_level, of its row's and
 * column's proof and its sum of magnitudes. */
typedef struct {
    const tsr_exact_proof *rows, *columns; /* m, n */
    double allowed;                        /* tsr_exact_allowed */
    unsigned *needed; /* of each block, as `blocks` is laid out: raised to what any of its elements needs */
    /* a bit an element, bit col % 32 of word row · rows_b/32 + col/32. Zeros before; set where that is the loop */
    unsigned *left;
    /* of each block; counts of 0 before. Where the last level is needed: who needs it, and how many these are, or how
     * many they are at least, where that is more than TSR_EXACT_FEW. Elsewhere anything */
    tsr_exact_few *few;
} tsr_residue_levels_args;

/* Of the one plane of magnitudes (0 … 127). */
tsr_status tsr_residue_levels(tsr_device *device, tsr_stream *stream, const tsr_residue_args *args,
                              const tsr_residue_levels_args *levels);

/* Of the one plane of patterns: clears the bits, of elements of the wanted blocks, of which tsr_exact_meets_well. */
tsr_status tsr_residue_meetings(tsr_device *device, tsr_stream *stream, const tsr_residue_args *args, unsigned *left);

#ifdef __cplusplus
}
#endif
#endif
