/* Levels of blocks that a part of k tells already (products_hopper.cu): magnitudes are 0 or more, so what their sums
 * over a part of k prove they prove over all of it. Where that is level 0 a block is settled. Where it is a level above,
 * one element that the level below does not hold for, over all of k, settles the block, too: its witness. It is the one
 * that came the least near to holding. All other blocks are open still, for the product over all of k.
 * Device code. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_EARLY_HOPPER_H
#define TSR_KERNELS_GEMM_RESIDUES_EARLY_HOPPER_H

#include "kernels/gemm/exact/exact_lines.h"
#include "kernels/gemm/residues/proofs_hopper.h"

namespace residues {

/* What a warp finds of its lines of a block, EARLY_LINES of them: from the highest bit on the level that holds for all,
 * how far its witness is from holding at the level below (the upper bits of a positive fp32 number), and the witness:
 * its line and column. 0: level 0 holds. */
constexpr int EARLY_LINES = 16, EARLY_WORDS = TSR_EXACT_BLOCK / EARLY_LINES; /* of a block */
constexpr int WITNESS_BITS = 11, LEVEL_AT = 30, DROPPED_BITS = 31 - (LEVEL_AT - WITNESS_BITS);
static_assert(EARLY_LINES * TSR_EXACT_BLOCK == 1 << WITNESS_BITS && TSR_EXACT_LOOP < 4);

/* Behind the list of one plane in a workspace: those words, and what blocks are open still. */
struct EarlyPlaces {
    unsigned *words; /* [block][EARLY_WORDS] */
    unsigned *open;  /* [block]: 1 or 0 */
};
static inline EarlyPlaces early_places(const tsr_residue_args *args) {
    unsigned char *behind = (unsigned char *)args->workspace + tsr_residue_list_bytes(1, args->m, args->n);
    const int64_t blocks = args->rows_a / TSR_EXACT_BLOCK * (args->rows_b / TSR_EXACT_BLOCK);
    return {(unsigned *)behind, (unsigned *)behind + EARLY_WORDS * blocks};
}

struct EarlyLevels {
    struct Work : Levels::Work {
        unsigned *words;
    };
    static constexpr bool PROVES = true;
    typedef residues::Pipe Pipe;
    static __device__ __forceinline__ void open(const Work &) {}
    static __device__ __forceinline__ void close() {}

    /* Of a warp's sums of a block, of which `across` columns are within C: see Levels::surely_holds. */
    static __device__ __forceinline__ unsigned witness(const Work &w, const int *sum, const Levels::Bounds *columns,
                                                       int row, int across, int level) {
        Levels::RowBounds own[2];
        float least = 0, most = 1; /* of the witness up to now: the sum that it needs, and has */
        int place = 0;
#pragma unroll
        for (int i = 0; i < 2; i++) own[i] = Levels::row_bounds(w, w.rows[min(row + 8 * i, w.m - 1)], level);
#pragma unroll
        for (int j = 0; j < TSR_EXACT_BLOCK / 8; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const Levels::Bounds &column = columns[own_col() + 8 * j + e];
                const float half = column.half, error = column.error[level];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    int met = sum[4 * j + 2 * i + e];
                    asm volatile("" : "+r"(met)); /* see Levels::surely_holds */
                    const float need = Levels::needed_sum(own[i], half, error), has = (float)met + 1;
                    const bool within = row + 8 * i < w.m && own_col() + 8 * j + e < across;
                    if (!(within && need * most > least * has)) continue;
                    least = need;
                    most = has;
                    place = 8 * i * TSR_EXACT_BLOCK + 8 * j + e;
                }
            }
        place += own_row() % EARLY_LINES * TSR_EXACT_BLOCK + own_col();
        return __float_as_uint(least / most) >> DROPPED_BITS << WITNESS_BITS | (unsigned)place;
    }
    static __device__ __forceinline__ void finish(const Work &w, const Pipe &pipe, const Place &place,
                                                  const Sums &sum) {
        const int row = group_row(place), ld = w.rows_b / TSR_EXACT_BLOCK;
        Levels::look_at_columns(w, pipe, place.col * N);
#pragma unroll
        for (int block = 0; block < N / TSR_EXACT_BLOCK; block++) {
            const int col = place.col * N + block * TSR_EXACT_BLOCK;
            const int *own = sum + block * (TSR_EXACT_BLOCK / 2);
            if (row / TSR_EXACT_BLOCK * TSR_EXACT_BLOCK >= w.m || col >= w.n) continue;
            const Levels::Bounds *columns = Levels::bounds_at(pipe) + block * TSR_EXACT_BLOCK;
            const int across = min(w.n - col, TSR_EXACT_BLOCK), own_line = row + own_row();
            const bool whole = across == TSR_EXACT_BLOCK && row + GROUP_ROWS <= w.m;
            int level = 0;
#pragma unroll 1
            while (level < TSR_EXACT_LEVELS &&
                   !(whole ? Levels::surely_holds(w, own, columns, own_line, level)
                           : Levels::surely_holds<true>(w, own, columns, own_line, level, across)))
                level++;
            unsigned word = 0;
            if (level > 0) {
                const unsigned found =
                    level < TSR_EXACT_LOOP ? witness(w, own, columns, own_line, across, level - 1) : 0;
                word = (unsigned)level << LEVEL_AT | exact::largest_of_warp(found);
            }
            const int at = row / TSR_EXACT_BLOCK * ld + col / TSR_EXACT_BLOCK;
            if (threadIdx.x % 32 == 0)
                w.words[at * EARLY_WORDS + row % TSR_EXACT_BLOCK / EARLY_LINES + (int)threadIdx.x % 128 / 32] = word;
        }
    }
};

/* What witnesses are asked, and of whom. */
struct Witnesses {
    const int8_t *a, *b;
    int depth;
    Levels::Work levels;
    tsr_residue_blocks blocks;
    EarlyPlaces places;
};
/* A warp: the product of magnitudes of a row and a column, over all of k. */
static __device__ __forceinline__ int met_of(const Witnesses &x, int row, int col) {
    const int lane = (int)threadIdx.x % 32;
    const int8_t *a = x.a + (int64_t)row * x.depth, *b = x.b + (int64_t)col * x.depth;
    int met = 0;
    for (int l = 16 * lane; l < x.depth; l += 16 * 32) {
        const int4 of_a = *reinterpret_cast<const int4 *>(a + l), of_b = *reinterpret_cast<const int4 *>(b + l);
        met = __dp4a(of_a.x, of_b.x, met);
        met = __dp4a(of_a.y, of_b.y, met);
        met = __dp4a(of_a.z, of_b.z, met);
        met = __dp4a(of_a.w, of_b.w, met);
    }
    return exact::warp_sum(met);
}
/* A warp a block of C: settles its level, or says that it is open. */
constexpr int WITNESS_THREADS = 256;
static __global__ void __launch_bounds__(WITNESS_THREADS) ask_witnesses(const Witnesses x) {
    tsr_cuda_begin();
    const int lane = (int)threadIdx.x % 32, warp = (int)(blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int warps = (int)(gridDim.x * blockDim.x) / 32;
    for (int i = warp; i < x.blocks.rows * x.blocks.cols; i += warps) {
        const int block_row = i / x.blocks.cols, block_col = i % x.blocks.cols,
                  at = block_row * x.blocks.ld + block_col;
        bool open = x.blocks.wants_block(block_row, block_col);
        if (open) {
            const unsigned own = lane < EARLY_WORDS ? x.places.words[at * EARLY_WORDS + lane] : 0;
            const unsigned word = exact::largest_of_warp(own);
            const int level = (int)(word >> LEVEL_AT);
            if (level == 0) {
                open = false;
            } else if (level < TSR_EXACT_LOOP) {
                const int part = __ffs((int)__ballot_sync(0xffffffffu, own == word)) - 1;
                const int place = (int)(word & ((1u << WITNESS_BITS) - 1));
                const int row = block_row * TSR_EXACT_BLOCK + part * EARLY_LINES + place / TSR_EXACT_BLOCK;
                const int col = block_col * TSR_EXACT_BLOCK + place % TSR_EXACT_BLOCK;
                /* within C, even where nothing is far from holding */
                const int within_row = min(row, x.levels.m - 1), within_col = min(col, x.levels.n - 1);
                open = Levels::element_holds(x.levels, Levels::row_facts(x.levels, within_row, level - 1),
                                             Levels::column_facts(x.levels, within_col, level - 1),
                                             met_of(x, within_row, within_col));
                if (!open && lane == 0) x.levels.needed[at] = max(x.levels.needed[at], (unsigned)level);
            }
        }
        if (lane == 0) x.places.open[at] = open;
    }
}

} // namespace residues

#endif
