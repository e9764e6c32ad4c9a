/* Levels of blocks that a part of k tells already (products_hopper.cu): magnitudes are 0 or more, so what their sums
 * over a part of k prove they prove over all of it. Each warp finds the level that holds for its 16 lines of a block.
 * Where all are level 0 the block is settled. Of others the elements that came short of the level below are asked over
 * all of k, if a warp has few of them, or else its witness, the shortest of those looked at. Where one does come short
 * that level is the block's; of the last level more than TSR_EXACT_FEW have to, or all that do have to be known. Where
 * none does, and all were asked, the level below holds for these lines. Blocks that this does not settle are open, for
 * the product over all of k. So are those for the loop: that product also says which elements are left.
 * Device code. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_EARLY_HOPPER_H
#define TSR_KERNELS_GEMM_RESIDUES_EARLY_HOPPER_H

#include "kernels/device/cuda_warps.h"
#include "kernels/gemm/residues/proofs_hopper.h"

namespace residues {

/* What a warp finds of EARLY_LINES lines of a block: from the highest bit on the level that holds for all; how many
 * elements came short of the level below, 0 for more than SHORT_MOST; and from the lowest bit on where these are, line
 * and column, or where the witness is. 0: level 0 holds. */
constexpr int EARLY_LINES = 16, EARLY_WORDS = TSR_EXACT_BLOCK / EARLY_LINES; /* of a block */
constexpr int PLACE_BITS = 11;
constexpr int COUNT_AT = 59, LEVEL_AT = 62;
constexpr int SHORT_MOST = 4;
typedef unsigned long long EarlyWord;
static_assert(EARLY_LINES * TSR_EXACT_BLOCK == 1 << PLACE_BITS && SHORT_MOST * PLACE_BITS <= COUNT_AT);
static_assert(SHORT_MOST < 1 << (LEVEL_AT - COUNT_AT) && TSR_EXACT_LOOP < 4);
static_assert(EARLY_WORDS * sizeof(EarlyWord) + sizeof(unsigned) == TSR_RESIDUE_EARLY_BYTES);

__device__ __forceinline__ int level_in(EarlyWord word) { return (int)(word >> LEVEL_AT); }
__device__ __forceinline__ int short_in(EarlyWord word) {
    return (int)(word >> COUNT_AT & ((1u << (LEVEL_AT - COUNT_AT)) - 1));
}
__device__ __forceinline__ int place_in(EarlyWord word, int i) {
    return (int)(word >> PLACE_BITS * i & ((1u << PLACE_BITS) - 1));
}

/* Behind the list of one plane in a workspace: those words, and what blocks are open still. */
struct EarlyPlaces {
    EarlyWord *words; /* [block][EARLY_WORDS] */
    unsigned *open;   /* [block]: 1 or 0 */
};
static inline EarlyPlaces early_places(const tsr_residue_args *args) {
    unsigned char *behind = (unsigned char *)args->workspace + tsr_residue_list_bytes(1, args->m, args->n);
    const int64_t blocks = args->rows_a / TSR_EXACT_BLOCK * (args->rows_b / TSR_EXACT_BLOCK);
    return {(EarlyWord *)behind, (unsigned *)((EarlyWord *)behind + EARLY_WORDS * blocks)};
}

struct EarlyLevels {
    struct Work : Levels::Work {
        EarlyWord *words;
    };
    static constexpr bool PROVES = true;
    typedef residues::Pipe Pipe;
    static __device__ __forceinline__ void open(const Work &) {}
    static __device__ __forceinline__ void close() {}

    /* A warp: of how many elements these are the bits. */
    static __device__ __forceinline__ int count_of(const unsigned (&bits)[2]) {
        return (int)tsr_warp_total((unsigned)(__popc(bits[0]) + __popc(bits[1])));
    }
    /* Of a warp's sums of a block, of which `across` columns are within C: what comes short of a level (see
     * Levels::surely_holds), and where. */
    static __device__ __forceinline__ EarlyWord short_of(const Work &w, const int *sum, const Levels::Bounds *columns,
                                                         int row, int across, int level) {
        Levels::RowBounds own[2];
        float most_need = 0, its_sum = 1; /* of the witness up to now */
        unsigned own_short[2] = {0, 0};   /* bits of the thread's elements of both rows */
        int place = 0;
#pragma unroll
        for (int i = 0; i < 2; i++) own[i] = Levels::row_bounds(w, w.of.rows[min(row + 8 * i, w.m - 1)], level);
#pragma unroll
        for (int j = 0; j < TSR_EXACT_BLOCK / 8; j++) {
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
                    if (within && !Levels::element_surely_holds(own[i], half, error, met))
                        own_short[i] |= 1u << (2 * j + e);
                    if (!(within && need * its_sum > most_need * has)) continue;
                    most_need = need;
                    its_sum = has;
                    place = 8 * i * TSR_EXACT_BLOCK + 8 * j + e;
                }
            }
            if (j == 0 && count_of(own_short) > SHORT_MOST) break; /* far from serving: one of these will do */
        }
        const int first = own_row() % EARLY_LINES * TSR_EXACT_BLOCK + own_col();
        const int count = count_of(own_short);
        if (count > SHORT_MOST) {
            const unsigned shortage = __float_as_uint(most_need / its_sum) >> PLACE_BITS; /* in the number's order */
            return tsr_warp_largest(shortage << PLACE_BITS | (unsigned)(first + place)) % (1u << PLACE_BITS);
        }
        EarlyWord word = (EarlyWord)count << COUNT_AT;
        for (int i = 0; i < count; i++) {
            const bool upper = own_short[0] != 0;
            const int bit = __ffs((int)(upper ? own_short[0] : own_short[1])) - 1;
            const int holder = __ffs((int)__ballot_sync(0xffffffffu, bit >= 0)) - 1;
            const int own_place = first + (upper ? 0 : 8 * TSR_EXACT_BLOCK) + bit / 2 * 8 + bit % 2;
            word |= (EarlyWord)__shfl_sync(0xffffffffu, own_place, holder) << PLACE_BITS * i;
            if ((int)threadIdx.x % 32 != holder) continue;
            if (upper) own_short[0] &= own_short[0] - 1;
            else own_short[1] &= own_short[1] - 1;
        }
        return word;
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
            EarlyWord word = 0;
            if (level > 0) word = (EarlyWord)level << LEVEL_AT | short_of(w, own, columns, own_line, across, level - 1);
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
/* A warp: whether a level holds for the element at `place` of the block from a row and a column on, or for one beside
 * it where that is past the end of C. */
static __device__ __forceinline__ bool holds_for(const Witnesses &x, int row, int col, int place, int level) {
    row = min(row + place / TSR_EXACT_BLOCK, x.levels.m - 1);
    col = min(col + place % TSR_EXACT_BLOCK, x.levels.n - 1);
    return Levels::element_holds(x.levels, Levels::row_facts(x.levels, row, level),
                                 Levels::column_facts(x.levels, col, level), met_of(x, row, col));
}
/* A warp: the level of a block whose words these are, a lane each; -1 where they do not tell. Of the last level: how
 * many elements came short of the one below, as far as it counts, and in each lane where one of them is. */
static __device__ __forceinline__ int level_by_witnesses(const Witnesses &x, EarlyWord word, int row, int col,
                                                         int *came_short, int *place_of_one) {
    int own = level_in(word); /* level that holds for the lane's lines */
    *came_short = 0;
    for (int level = TSR_EXACT_LOOP; level > 0; level--) {
        const unsigned here = __ballot_sync(0xffffffffu, own == level);
        bool all_known = true; /* elements of these for which the level below does not hold */
        for (unsigned left = here; left; left &= left - 1) {
            const int part = __ffs((int)left) - 1;
            const EarlyWord of_part = __shfl_sync(0xffffffffu, word, part);
            if (level_in(of_part) != level) { /* it came down from another level, and has no witness here */
                all_known = false;
                continue;
            }
            all_known &= short_in(of_part) > 0;
            for (int i = 0; i < max(1, short_in(of_part)); i++) {
                const int place = part << PLACE_BITS | place_in(of_part, i);
                if (holds_for(x, row, col, place, level - 1)) continue;
                if (level == TSR_EXACT_LOOP) return -1;
                if (level < TSR_EXACT_LAST) return level;
                if ((int)threadIdx.x % 32 == *came_short) *place_of_one = place;
                if (++*came_short > TSR_EXACT_FEW) return level;
            }
        }
        if (!all_known) return -1;
        if (*came_short > 0) return level;
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
    const tsr_residue_blocks &blocks = x.levels.blocks;
    for (int i = warp; i < blocks.rows * blocks.cols; i += warps) {
        const int row = i / blocks.cols, col = i % blocks.cols;
        const int at = row * blocks.ld + col;
        int level = 0;
        if (blocks.wants_block(row, col)) {
            const EarlyWord word = lane < EARLY_WORDS ? x.places.words[at * EARLY_WORDS + lane] : 0;
            int came_short, place = 0;
            level = level_by_witnesses(x, word, row * TSR_EXACT_BLOCK, col * TSR_EXACT_BLOCK, &came_short, &place);
            if (level == TSR_EXACT_LAST && lane < came_short)
                tsr_residue_note_few(x.levels.of.few + at, place / TSR_EXACT_BLOCK, place % TSR_EXACT_BLOCK);
        }
        if (lane > 0) continue;
        x.places.open[at] = level < 0;
        if (level > 0) x.levels.of.needed[at] = max(x.levels.of.needed[at], (unsigned)level);
    }
}

} // namespace residues

#endif
