/* Levels of blocks that a part of k tells already (products_hopper.cu): magnitudes are 0 or more, so what their sums
 * over a part of k prove they prove over all of it. Each warp finds the level that holds for its 16 lines of a block.
 * Where all are level 0 the block is settled. Of others a warp has a witness: the element that came shortest of the
 * level below. If it does come short, over all of k, that level is the block's. If it does not, and no other one of the
 * warp came short, the level below holds for these lines. Blocks that witnesses do not settle are open, for the product
 * over all of k. So are those for the loop: that product also says which elements are left.
 * Device code. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_EARLY_HOPPER_H
#define TSR_KERNELS_GEMM_RESIDUES_EARLY_HOPPER_H

#include "kernels/device/cuda_warps.h"
#include "kernels/gemm/residues/proofs_hopper.h"

namespace residues {

/* What a warp finds of EARLY_LINES lines of a block: from the highest bit on the level that holds for all; whether one
 * element alone came short of the level below; else how short the witness came, the upper bits of a positive fp32
 * number; and the witness, or that one: its line and column. 0: level 0 holds. */
constexpr int EARLY_LINES = 16, EARLY_WORDS = TSR_EXACT_BLOCK / EARLY_LINES; /* of a block */
constexpr int WITNESS_BITS = 11, SINGLE_AT = 29;
constexpr int LEVEL_AT = SINGLE_AT + 1, DROPPED_BITS = 31 - (SINGLE_AT - WITNESS_BITS);
constexpr unsigned SINGLE = 1u << SINGLE_AT;
static_assert(EARLY_LINES * TSR_EXACT_BLOCK == 1 << WITNESS_BITS && TSR_EXACT_LOOP < 4);
static_assert(EARLY_WORDS + 1 == TSR_RESIDUE_EARLY_WORDS);

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
        float most_need = 0, its_sum = 1; /* of the witness up to now */
        unsigned count = 0;               /* of those that came short */
        int place = 0;
        int short_place = 0; /* of one of them: need not be the witness, whose sum counts as one more */
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
                    const int own_place = 8 * i * TSR_EXACT_BLOCK + 8 * j + e;
                    if (within && !Levels::element_surely_holds(own[i], half, error, met)) {
                        count++;
                        short_place = own_place;
                    }
                    if (!(within && need * its_sum > most_need * has)) continue;
                    most_need = need;
                    its_sum = has;
                    place = own_place;
                }
            }
        const int first = own_row() % EARLY_LINES * TSR_EXACT_BLOCK + own_col();
        if (tsr_warp_total(count) == 1) return count == 1 ? SINGLE | (unsigned)(first + short_place) : 0;
        return __float_as_uint(most_need / its_sum) >> DROPPED_BITS << WITNESS_BITS | (unsigned)(first + place);
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
            if (level > 0)
                word = (unsigned)level << LEVEL_AT |
                       tsr_warp_largest(witness(w, own, columns, own_line, across, level - 1));
            const int at = row / TSR_EXACT_BLOCK * ld + col / TSR_EXACT_BLOCK;
            if (threadIdx.x % 32 == 0)
                w.words[at * EARLY_WORDS + row % TSR_EXACT_BLOCK / EARLY_LINES + (int)threadIdx.x % 128 / 32] = word;
        }
    }
};

/* What witnesses are asked, and of whom. */
struct Witnesses {
    const int8_t *a, *b;
    Levels::Work levels;
    tsr_residue_blocks blocks;
    EarlyPlaces places;
};
/* A warp: the product of magnitudes of a row and a column, over all of k. */
static __device__ __forceinline__ int met_of(const Witnesses &x, int row, int col) {
    const int lane = (int)threadIdx.x % 32;
    const int8_t *a = x.a + (int64_t)row * x.levels.depth, *b = x.b + (int64_t)col * x.levels.depth;
    int met = 0;
    for (int l = 16 * lane; l < x.levels.depth; l += 16 * 32) {
        const int4 of_a = *reinterpret_cast<const int4 *>(a + l), of_b = *reinterpret_cast<const int4 *>(b + l);
        met = __dp4a(of_a.x, of_b.x, met);
        met = __dp4a(of_a.y, of_b.y, met);
        met = __dp4a(of_a.z, of_b.z, met);
        met = __dp4a(of_a.w, of_b.w, met);
    }
    return tsr_warp_sum(met);
}
/* A warp: whether a level holds for the element at `place` of the lines from `row` on, columns from `col`, or for one
 * beside it where that is past the end of C. */
static __device__ __forceinline__ bool holds_for(const Witnesses &x, int row, int col, int place, int level) {
    row = min(row + place / TSR_EXACT_BLOCK, x.levels.m - 1);
    col = min(col + place % TSR_EXACT_BLOCK, x.levels.n - 1);
    return Levels::element_holds(x.levels, Levels::row_facts(x.levels, row, level),
                                 Levels::column_facts(x.levels, col, level), met_of(x, row, col));
}
/* A warp: the level of a block whose words these are, a lane each; -1 where witnesses do not tell. */
static __device__ __forceinline__ int level_by_witnesses(const Witnesses &x, unsigned word, int row, int col) {
    int own = (int)(word >> LEVEL_AT); /* level that holds for the lane's lines */
    for (int level = TSR_EXACT_LOOP; level > 0; level--) {
        const unsigned here = __ballot_sync(0xffffffffu, own == level);
        bool holds = true; /* the level below for all of these */
        for (unsigned left = here; left; left &= left - 1) {
            const int part = __ffs((int)left) - 1;
            const unsigned of_part = __shfl_sync(0xffffffffu, word, part);
            if ((int)(of_part >> LEVEL_AT) != level) { /* it came down from another level, and has no witness here */
                holds = false;
                continue;
            }
            if (!holds_for(x, row + part * EARLY_LINES, col, (int)(of_part % (1u << WITNESS_BITS)), level - 1))
                return level < TSR_EXACT_LOOP ? level : -1;
            holds &= (of_part & SINGLE) != 0;
        }
        if (!holds) return -1;
        if (own == level) own--;
    }
    return 0;
}
/* A warp a block of C: settles its level, or says that it is open. */
constexpr int WITNESS_THREADS = 256;
static __global__ void __launch_bounds__(WITNESS_THREADS) ask_witnesses(const Witnesses x) {
    tsr_cuda_begin();
    const int lane = (int)threadIdx.x % 32, warp = (int)(blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int warps = (int)(gridDim.x * blockDim.x) / 32;
    for (int i = warp; i < x.blocks.rows * x.blocks.cols; i += warps) {
        const int row = i / x.blocks.cols, col = i % x.blocks.cols;
        const int at = row * x.blocks.ld + col;
        int level = 0;
        if (x.blocks.wants_block(row, col)) {
            const unsigned word = lane < EARLY_WORDS ? x.places.words[at * EARLY_WORDS + lane] : 0;
            level = level_by_witnesses(x, word, row * TSR_EXACT_BLOCK, col * TSR_EXACT_BLOCK);
        }
        if (lane > 0) continue;
        x.places.open[at] = level < 0;
        if (level > 0) x.levels.needed[at] = max(x.levels.needed[at], (unsigned)level);
    }
}

} // namespace residues

#endif
