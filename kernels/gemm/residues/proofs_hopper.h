/* What products_hopper.cu makes of sums of magnitudes and of patterns. Device code. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_PROOFS_HOPPER_H
#define TSR_KERNELS_GEMM_RESIDUES_PROOFS_HOPPER_H

#include "kernels/gemm/residues/sums_hopper.h"

namespace residues {

/* A bit for each element (see tsr_residue_levels_args): four neighbours of a warp share the words of their rows. Of a
 * word a thread has OWN_BITS, bit_at of them from its own column on, and their sums are at sum_at of a block's. */
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

/* Levels, of the blocks of C. A warp asks for its elements of a block at once whether a level serves, first in fp32,
 * where a yes is sure. It does not ask further where one element says no. What serves for one level serves for the
 * next. */
struct Levels {
    struct Work : residues::Work {
        tsr_residue_levels_args of;
        tsr_residue_blocks blocks; /* that are asked for */
        int64_t k;
        int m, n;
        double by_allowed; /* 1 / allowed */
    };
    static constexpr bool PROVES = true;
    typedef residues::Pipe Pipe;
    static __device__ __forceinline__ void open(const Work &) {}
    static __device__ __forceinline__ void close() {}

    /* What lines bring to the proof at a level. */
    struct Facts {
        double half, error, unit;
    };
    static __device__ __forceinline__ Facts facts_of(const tsr_exact_proof &line, int level) {
        return {line.half, line.errors[level], line.unit};
    }
    static __device__ __forceinline__ Facts row_facts(const Work &w, int row, int level) {
        return facts_of(w.of.rows[min(row, w.m - 1)], level);
    }
    static __device__ __forceinline__ Facts column_facts(const Work &w, int col, int level) {
        return facts_of(w.of.columns[min(col, w.n - 1)], level);
    }
    static __device__ __forceinline__ bool element_holds(const Work &w, const Facts &a, const Facts &b, int met) {
        return tsr_exact_holds(a.half, a.error, b.half, b.error, a.unit * b.unit, w.k, w.of.allowed, met);
    }
    /* tsr_exact_holds, divided by `allowed` and both units: half_a / unit_a · error_b / (unit_b · allowed), the same
     * the other way round, and 0.25 · k · allowed times both errors so divided, are at most `met`. */
    struct Bounds { /* of a line, no less than they are */
        float half, error[TSR_EXACT_LEVELS];
    };
    /* More than x by 2^-21 of it at least: rounding sums and products of such to fp32, and those of fp64 otherwise, is
     * less. */
    static __device__ __forceinline__ float above(double x) {
        return __fmaf_ru((float)x, 1.0f + 0x1p-20f, x > 0 ? 0x1p-149f : 0.0f);
    }
    static __device__ __forceinline__ float bound_of_half(const tsr_exact_proof &line) {
        return above(line.half * tsr_exact_power(-line.grain));
    }
    static __device__ __forceinline__ float bound_of_error(const Work &w, const tsr_exact_proof &line, int level) {
        return above(line.errors[level] * tsr_exact_power(-line.grain) * w.by_allowed);
    }
    static __device__ __forceinline__ Bounds bounds_of(const Work &w, const tsr_exact_proof &line) {
        Bounds own;
        own.half = bound_of_half(line);
#pragma unroll
        for (int level = 0; level < TSR_EXACT_LEVELS; level++) own.error[level] = bound_of_error(w, line, level);
        return own;
    }
    /* Of a row at a level: what stands with its column's error, and its own error, which stands with that one's
     * half. */
    struct RowBounds {
        float with_error, error;
    };
    static __device__ __forceinline__ RowBounds row_bounds(const Work &w, const tsr_exact_proof &line, int level) {
        const float error = bound_of_error(w, line, level);
        return {__fmaf_ru(above(0.25 * (double)w.k * w.of.allowed), error, bound_of_half(line)), error};
    }
    static __device__ __forceinline__ float needed_sum(const RowBounds &row, float half, float error) {
        return __fmaf_ru(half, row.error, __fmaf_ru(row.with_error, error, 0));
    }
    static __device__ __forceinline__ bool element_surely_holds(const RowBounds &row, float half, float error,
                                                                int met) {
        return (float)met >= needed_sum(row, half, error);
    }
    /* Those of a tile's columns, for a group, behind the stages. */
    static __device__ __forceinline__ Bounds *bounds_at(const Pipe &pipe) {
        return reinterpret_cast<Bounds *>(pipe.behind()) + own_group() * N;
    }
    static_assert(sizeof(Bounds) * N * GROUPS <= BOX_BYTES * BOXES * GROUPS, "in the boxes' place");
    static __device__ __forceinline__ void look_at_columns(const Work &w, const Pipe &pipe, int col) {
        Bounds *to = bounds_at(pipe);
        hopper::named_wait(3 + own_group(), 128); /* the tile before is done */
        for (int i = (int)threadIdx.x % 128; i < N; i += 128) to[i] = bounds_of(w, w.of.columns[min(col + i, w.n - 1)]);
        hopper::named_wait(3 + own_group(), 128);
    }

    /* Whether a level serves surely for a warp's sums of a block, whose columns have these bounds, in the thread's row
     * `row` and 8 below. Lines past the end count like the last ones, whatever their sums are. EDGE: of `across`
     * columns, and of rows within C, alone. */
    template <bool EDGE = false>
    static __device__ __forceinline__ bool surely_holds(const Work &w, const int *sum, const Bounds *columns, int row,
                                                        int level, int across = TSR_EXACT_BLOCK) {
        RowBounds own[2];
        bool all = true;
#pragma unroll
        for (int i = 0; i < 2; i++) own[i] = row_bounds(w, w.of.rows[min(row + 8 * i, w.m - 1)], level);
#pragma unroll
        for (int j = 0; j < TSR_EXACT_BLOCK / 8; j++) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const Bounds &column = columns[own_col() + 8 * j + e];
                const float half = column.half, error = column.error[level];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    int met = sum[4 * j + 2 * i + e];
                    asm volatile("" : "+r"(met)); /* its fp32 value is made here, not kept for the next level */
                    const bool past = EDGE && (row + 8 * i >= w.m || own_col() + 8 * j + e >= across);
                    all &= past || element_surely_holds(own[i], half, error, met);
                }
            }
            if (j == 0 && !__all_sync(0xffffffffu, all)) return false; /* a level that is far from serving */
        }
        return __all_sync(0xffffffffu, all);
    }
    /* Whether a level serves for a warp's sums of a block whose first column is `col`, in the thread's row `row` and 8
     * below. */
    static __device__ __forceinline__ bool holds(const Work &w, const int *sum, int row, int col, int level) {
        const Facts rows[2] = {row_facts(w, row, level), row_facts(w, row + 8, level)};
        const bool below[2] = {row >= w.m, row + 8 >= w.m};
#pragma unroll
        for (int j = 0; j < TSR_EXACT_BLOCK / 8; j++) {
            bool all = true;
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int at = col + own_col() + 8 * j + e;
                const Facts column = column_facts(w, at, level);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    int met = sum[4 * j + 2 * i + e];
                    asm volatile("" : "+r"(met)); /* its fp64 value is made here, not kept for the next level */
                    all &= below[i] || at >= w.n || element_holds(w, rows[i], column, met);
                }
            }
            if (!__all_sync(0xffffffffu, all)) return false;
        }
        return true;
    }
    /* Notes a warp's elements of block `at` that need `level`, the last one or the loop; rows and columns as above. Of
     * the last one each by itself where there are few in a word's columns. */
    static __device__ __forceinline__ void note(const Work &w, const int *sum, int row, int col, int level, int at) {
        const Facts rows[2] = {row_facts(w, row, level - 1), row_facts(w, row + 8, level - 1)};
#pragma unroll
        for (int word = 0; word < BLOCK_WORDS; word++) {
            unsigned bits[2] = {0, 0};
#pragma unroll
            for (int bit = 0; bit < OWN_BITS; bit++) {
                const int within = own_col() + bit_at(bit), own = col + 32 * word + within;
                const Facts column = column_facts(w, own, level - 1);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    int met = sum[sum_at(i, word, bit)];
                    asm volatile("" : "+r"(met)); /* see above */
                    const bool holds = element_holds(w, rows[i], column, met);
                    bits[i] |= (unsigned)(row + 8 * i < w.m && own < w.n && !holds) << within;
                }
            }
            const unsigned count = tsr_warp_total((unsigned)(__popc(bits[0]) + __popc(bits[1])));
            if (level == TSR_EXACT_LAST && count > TSR_EXACT_FEW && threadIdx.x % 32 == 0)
                atomicAdd(&w.of.few[at].count, count);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                if (level == TSR_EXACT_LAST)
                    for (unsigned left = count > TSR_EXACT_FEW ? 0 : bits[i]; left; left &= left - 1)
                        tsr_residue_note_few(w.of.few + at, row + 8 * i, col + 32 * word + __ffs((int)left) - 1);
                if (level == TSR_EXACT_LAST) continue;
                bits[i] = of_quad(bits[i]);
                if (threadIdx.x % 4 == 0 && bits[i]) w.of.left[left_at(w, row + 8 * i, col) + word] = bits[i];
            }
        }
    }
    static __device__ __forceinline__ void finish(const Work &w, const Pipe &pipe, const Place &place,
                                                  const Sums &sum) {
        constexpr int ACROSS = N / TSR_EXACT_BLOCK; /* blocks side by side */
        constexpr int EACH = TSR_EXACT_BLOCK / 2;   /* sums of a thread in a block */
        const int row = group_row(place);
        look_at_columns(w, pipe, place.col * N);
#pragma unroll
        for (int block = 0; block < ACROSS; block++) {
            const int col = place.col * N + block * TSR_EXACT_BLOCK;
            const int *own = sum + block * EACH;
            const int at = row / TSR_EXACT_BLOCK * (w.rows_b / TSR_EXACT_BLOCK) + col / TSR_EXACT_BLOCK;
            if (row >= w.m || col >= w.n) continue;
            const Bounds *columns = bounds_at(pipe) + block * TSR_EXACT_BLOCK;
            const unsigned known = __shfl_sync(0xffffffffu, *(volatile const unsigned *)(w.of.needed + at), 0);
            unsigned level = known;
#pragma unroll 1
            while (level < TSR_EXACT_LEVELS && !surely_holds(w, own, columns, row + own_row(), (int)level) &&
                   !holds(w, own, row + own_row(), col, (int)level))
                level++;
            if (threadIdx.x % 32 == 0 && level > known) atomicMax(w.of.needed + at, level);
            if (level == TSR_EXACT_LOOP ||
                (level == TSR_EXACT_LAST && w.blocks.wants_block(row / TSR_EXACT_BLOCK, col / TSR_EXACT_BLOCK)))
                note(w, own, row + own_row(), col, (int)level, at);
        }
    }
};

/* Patterns, of elements that are left: those that meet well are left no more. */
struct Meetings {
    struct Work : residues::Work {
        tsr_residue_blocks blocks;
        unsigned *left;
    };
    static constexpr bool PROVES = true;
    typedef residues::Pipe Pipe;
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
