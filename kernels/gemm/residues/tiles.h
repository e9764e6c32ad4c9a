/* What both ways of making products of residues share (products.h): the remainder of a sum, the question which
 * tiles are wanted, and the way of sm_90, which products.cu takes where it can. Device code. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_TILES_H
#define TSR_KERNELS_GEMM_RESIDUES_TILES_H

#include "kernels/device/cuda_compat.h"
#include "kernels/gemm/residues/products.h"

/* products_hopper.cu: on a device of sm_90 alone. */
tsr_status tsr_residue_list_hopper(tsr_stream *stream, const tsr_residue_args *products,
                                   const tsr_residue_args *meetings);
tsr_status tsr_residue_products_hopper(tsr_stream *stream, const tsr_residue_args *args, int8_t *c);
tsr_status tsr_residue_levels_hopper(tsr_stream *stream, const tsr_residue_args *args,
                                     const tsr_residue_levels_args *levels);
tsr_status tsr_residue_meetings_hopper(tsr_stream *stream, const tsr_residue_args *args, unsigned *left);

/* For each plane its modulus, and 2^32 / modulus, rounded down. */
struct tsr_residue_moduli {
    int modulus[TSR_EXACT_MODULI_MOST], inverse[TSR_EXACT_MODULI_MOST];
};
static inline tsr_residue_moduli tsr_residue_moduli_all() {
    tsr_residue_moduli m = {TSR_EXACT_MODULI, {}};
    for (int i = 0; i < TSR_EXACT_MODULI_MOST; i++) m.inverse[i] = (int)(((int64_t)1 << 32) / m.modulus[i]);
    return m;
}

static_assert(TSR_EXACT_RANGE * 128 * 128 <= 1 << 28, "what tsr_residue takes, and 32 bits hold");
/* x mod p in [-p/2, p/2], |x| ≤ 2^28: sums of TSR_EXACT_RANGE products of bytes. The quotient, rounded down, is off by
 * 1/16 before that, so r is in [-p/16, p + p/16]. Of 256, whose quotient is right, 128 stands for -128 in a byte. Of a
 * sum that a fault made larger any byte will do: unsigned numbers may overflow. */
static __device__ __forceinline__ int tsr_residue(int x, int modulus, int inverse) {
    const int r = (int)((unsigned)x - (unsigned)__mulhi(x, inverse) * (unsigned)modulus);
    return r - (r > modulus >> 1 ? modulus : 0);
}

/* Sums of lines that come beside a tile of products_hopper.cu, at least. */
constexpr int TSR_RESIDUE_CHUNK = 32;
/* A workspace: how far workers are, and the list behind it. Behind that of one plane bytes for each block of C, of what
 * a part of k tells (early_hopper.h). */
constexpr int TSR_RESIDUE_PROGRESS_BYTES = 256, TSR_RESIDUE_EARLY_BYTES = 68;
size_t tsr_residue_list_bytes(int64_t planes, int64_t m, int64_t n); /* with the bytes in front of it */

/* Notes that an element of a block needs the last level. */
static __device__ __forceinline__ void tsr_residue_note_few(tsr_exact_few *few, int row, int col) {
    const unsigned place = atomicAdd(&few->count, 1u);
    if (place < TSR_EXACT_FEW)
        few->at[place] = (unsigned)(row % TSR_EXACT_BLOCK * TSR_EXACT_BLOCK + col % TSR_EXACT_BLOCK);
}

static __device__ __forceinline__ bool tsr_residue_idle(const tsr_residue_condition &c) {
    return c.word && (*c.word == c.value) != c.equal;
}

/* The blocks of C, and which of them are wanted: see tsr_residue_args. */
struct tsr_residue_blocks {
    const unsigned *level;
    unsigned wanted;
    int rows, cols; /* of blocks that C reaches into */
    int ld;         /* blocks from row to row */

    __device__ __forceinline__ bool wants_block(int row, int col) const {
        return !level || (row < rows && col < cols && level[(int64_t)row * ld + col] == wanted);
    }
    /* Whether a tile, of two by two, has one. All are loaded at a time. */
    __device__ __forceinline__ bool wants(int tile_row, int tile_col) const {
        constexpr int EACH = TSR_EXACT_TILE / TSR_EXACT_BLOCK;
        if (!level) return true;
        unsigned of[EACH][EACH];
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++) {
                const int row = tile_row * EACH + i, col = tile_col * EACH + j;
                of[i][j] = row < rows && col < cols ? level[(int64_t)row * ld + col] : ~wanted;
            }
        bool any = false;
        for (int i = 0; i < EACH * EACH; i++) any |= of[i / EACH][i % EACH] == wanted;
        return any;
    }
    /* Whether a column of tiles, or a row of them, has one. */
    __device__ __forceinline__ bool wants_column(int tile_col) const {
        for (int row = 0; row * (TSR_EXACT_TILE / TSR_EXACT_BLOCK) < rows; row++)
            if (wants(row, tile_col)) return true;
        return false;
    }
    __device__ __forceinline__ bool wants_row(int tile_row) const {
        for (int col = 0; col * (TSR_EXACT_TILE / TSR_EXACT_BLOCK) < cols; col++)
            if (wants(tile_row, col)) return true;
        return false;
    }
};
static inline tsr_residue_blocks tsr_residue_blocks_of(const tsr_residue_args *args) {
    return {args->blocks, args->wanted, (int)tsr_ceil_div(args->m, TSR_EXACT_BLOCK),
            (int)tsr_ceil_div(args->n, TSR_EXACT_BLOCK), (int)(args->rows_b / TSR_EXACT_BLOCK)};
}

#endif
