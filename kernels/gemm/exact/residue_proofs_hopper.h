/* What residue_products_hopper.cu makes of sums of magnitudes and of patterns. Device code. */
#ifndef TSR_KERNELS_GEMM_EXACT_RESIDUE_PROOFS_HOPPER_H
#define TSR_KERNELS_GEMM_EXACT_RESIDUE_PROOFS_HOPPER_H

#include "kernels/gemm/exact/residue_sums_hopper.h"

namespace residues {

/* A bit for each element (see tsr_residue_levels): four neighbours of a warp share the words of their rows. Of a word a
 * thread has OWN_BITS, bit_at of them from its own column on, and their sums are at sum_at of a block's. */
constexpr int BLOCK_WORDS = TSR_EXACT_BLOCK / 32; /* of a row */
constexpr int OWN_BITS = 8;
__device__ __forceinline__ constexpr int bit_at(int bit) { return bit / 2 * 8 + bit % 2; }
__device__ __forceinline__ constexpr int sum_at(int row, int word, int bit) {
    return 4 * (4 * word + bit / 2) + 2 * row + bit % 2;
}
__device__ __forceinline__ unsigned of_quad(unsigned bits) {
    bits |= __shfl_xor_sync(0xffffffffu, bits, 1);
    return bits | __shfl_xor_sync(0xffffffffu, bits, 2);
}
__device__ __forceinline__ int64_t left_at(const Work &w, int row, int col) {
    return (int64_t)row * (w.rows_b / 32) + col / 32;
}

/* Levels, of the blocks of C. Whether a level serves is asked of all elements of a thread at once; what serves for one
 * level serves for the next. */
struct Levels {
    struct Work : residues::Work {
        const tsr_exact_proof *rows, *columns;
        int64_t k;
        int m, n;
        double allowed;
        unsigned *needed, *left;
    };
    static __device__ __forceinline__ void open(const Work &) {}
    static __device__ __forceinline__ void close() {}

    /* Of the sums of a block's 128 columns, from column `col` on. */
    static __device__ __forceinline__ bool holds(const Work &w, const int *sum, int row, int col, int level) {
        bool all = true;
        double half[2], error[2];
        double unit[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            half[i] = row + 8 * i < w.m ? w.rows[row + 8 * i].half : 0;
            error[i] = row + 8 * i < w.m ? w.rows[row + 8 * i].errors[level] : 0;
            unit[i] = row + 8 * i < w.m ? w.rows[row + 8 * i].unit : 0;
        }
#pragma unroll
        for (int j = 0; j < TSR_EXACT_BLOCK / 8; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int at = col + 8 * j + e;
                if (at >= w.n) continue;
                const double half_b = w.columns[at].half, error_b = w.columns[at].errors[level];
                const double unit_b = w.columns[at].unit;
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    int met = sum[4 * j + 2 * i + e];
                    asm volatile("" : "+r"(met)); /* its fp64 value is made here, not kept for the next level */
                    all &= row + 8 * i >= w.m ||
                           tsr_exact_holds(half[i], error[i], half_b, error_b, unit[i] * unit_b, w.k, w.allowed, met);
                }
            }
        return all;
    }
    /* Of the same, a bit for each element, 32 columns a word: those for which no level is proved. All lanes call it. */
    static __device__ __forceinline__ void leave(const Work &w, const int *sum, int row, int col) {
        constexpr int LAST = TSR_EXACT_LAST;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int at_row = row + 8 * i;
            const bool inside = at_row < w.m;
            const double half = inside ? w.rows[at_row].half : 0, error = inside ? w.rows[at_row].errors[LAST] : 0;
            const double unit = inside ? w.rows[at_row].unit : 0;
#pragma unroll
            for (int word = 0; word < BLOCK_WORDS; word++) {
                unsigned bits = 0;
#pragma unroll
                for (int bit = 0; bit < OWN_BITS; bit++) {
                    const int at = col + 32 * word + bit_at(bit);
                    if (!inside || at >= w.n) continue;
                    const tsr_exact_proof &b = w.columns[at];
                    const bool holds = tsr_exact_holds(half, error, b.half, b.errors[LAST], unit * b.unit, w.k,
                                                       w.allowed, sum[sum_at(i, word, bit)]);
                    bits |= (unsigned)!holds << (own_col() + bit_at(bit));
                }
                bits = of_quad(bits);
                if (threadIdx.x % 4 == 0 && bits) w.left[left_at(w, at_row, col) + word] = bits;
            }
        }
    }
    static __device__ __forceinline__ void finish(const Work &w, const Pipe &, const Place &place, const Sums &sum) {
        constexpr int ACROSS = N / TSR_EXACT_BLOCK; /* blocks side by side */
        const int row = group_row(place);
#pragma unroll
        for (int block = 0; block < ACROSS; block++) {
            const int col = place.col * N + block * TSR_EXACT_BLOCK;
            unsigned *needed =
                w.needed + (int64_t)(row / TSR_EXACT_BLOCK) * (w.rows_b / TSR_EXACT_BLOCK) + col / TSR_EXACT_BLOCK;
            if (row >= w.m || col >= w.n) continue;
            const unsigned known = *(volatile const unsigned *)needed;
            unsigned level = known;
#pragma unroll 1
            while (level < TSR_EXACT_LEVELS &&
                   !holds(w, sum + block * (TSR_EXACT_BLOCK / 2), row + own_row(), col + own_col(), (int)level))
                level++;
#pragma unroll
            for (int lane = 16; lane > 0; lane /= 2) level = max(level, __shfl_xor_sync(0xffffffffu, level, lane));
            if (threadIdx.x % 32 == 0 && level > known) atomicMax(needed, level);
            if (level == TSR_EXACT_LOOP)
                leave(w, sum + block * (TSR_EXACT_BLOCK / 2), row + own_row(), col + own_col());
        }
    }
};

/* Patterns, of elements that are left: those that meet well are left no more. */
struct Meetings {
    struct Work : residues::Work {
        tsr_residue_blocks blocks;
        unsigned *left;
    };
    static __device__ __forceinline__ void open(const Work &) {}
    static __device__ __forceinline__ void close() {}

    static __device__ __forceinline__ void finish(const Work &w, const Pipe &, const Place &place, const Sums &sum) {
        constexpr int ACROSS = N / TSR_EXACT_BLOCK;
        const int row = group_row(place);
#pragma unroll
        for (int block = 0; block < ACROSS; block++) {
            const int col = place.col * N + block * TSR_EXACT_BLOCK;
            if (!w.blocks.wants_block(row / TSR_EXACT_BLOCK, col / TSR_EXACT_BLOCK)) continue;
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int word = 0; word < BLOCK_WORDS; word++) {
                    unsigned well = 0;
#pragma unroll
                    for (int bit = 0; bit < OWN_BITS; bit++)
                        well |=
                            (unsigned)tsr_exact_meets_well(sum[block * (TSR_EXACT_BLOCK / 2) + sum_at(i, word, bit)])
                            << (own_col() + bit_at(bit));
                    well = of_quad(well);
                    if (threadIdx.x % 4 == 0) w.left[left_at(w, row + own_row() + 8 * i, col) + word] &= ~well;
                }
        }
    }
};

} // namespace residues

#endif
