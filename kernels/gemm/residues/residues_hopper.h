/* What products_hopper.cu makes of sums of residues, and of the lines that come beside its tiles. Device code. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_RESIDUES_HOPPER_H
#define TSR_KERNELS_GEMM_RESIDUES_RESIDUES_HOPPER_H

#include "kernels/gemm/residues/sums_hopper.h"

namespace residues {

/* ---- residues -------------------------------------------------------------------------------- */

/* Two bytes of each of two rows, 8 apart, from neighbours in pairs of lanes, make a word each: even lanes get the upper
 * row's, odd ones the lower's. */
__device__ __forceinline__ unsigned word_of(int a0, int a1, int b0, int b1) {
    const unsigned upper = __byte_perm((unsigned)a0, (unsigned)a1, 0x0040);
    const unsigned lower = __byte_perm((unsigned)b0, (unsigned)b1, 0x0040);
    const bool odd = threadIdx.x & 1;
    const unsigned given = __shfl_xor_sync(0xffffffffu, odd ? upper : lower, 1), own = odd ? lower : upper;
    return odd ? __byte_perm(given, own, 0x5410) : __byte_perm(own, given, 0x5410);
}

/* From row to row of a plane's memory, which has so many columns. */
template <typename W> __device__ __forceinline__ int64_t row_bytes(const W &, int columns) {
    return (W::QUARTERS ? 2 : 1) * (int64_t)columns;
}

/* Row and first column, of a group's part of C, of a thread's word number i. */
__device__ __forceinline__ int word_row() { return own_row() + (threadIdx.x & 1 ? 8 : 0); }
__device__ __forceinline__ int word_col(int i) { return 8 * i + (int)threadIdx.x % 4 / 2 * 4; }
constexpr int WORDS = N / 8; /* of a thread */

template <typename W> __device__ __forceinline__ int modulus_of(const Place &place) {
    return W::QUARTERS ? tsr_quarter_modulus(place.plane) : place.plane;
}

/* Words `from` … of residues of a thread's sums. */
template <typename W, int COUNT>
__device__ __forceinline__ void words_of(const W &w, const Place &place, const Sums &sum, int from,
                                         unsigned (&words)[COUNT]) {
    const int number = modulus_of<W>(place);
    const int modulus = w.moduli.modulus[number], inverse = w.moduli.inverse[number];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int *s = sum + 4 * (from + i);
        words[i] = word_of(tsr_residue(s[0], modulus, inverse), tsr_residue(s[1], modulus, inverse),
                           tsr_residue(s[2], modulus, inverse), tsr_residue(s[3], modulus, inverse));
    }
}

/* To C through boxes. */
template <bool OF_QUARTERS> struct Residues {
    static constexpr bool PROVES = false;
    struct Work : residues::Work {
        static constexpr bool QUARTERS = OF_QUARTERS;
        CUtensorMap map_c; /* planes one below the other */
        tsr_residue_moduli moduli;
    };
    typedef residues::Pipe Pipe;
    static __device__ __forceinline__ void open(const Work &w) { hopper::prefetch_map(&w.map_c); }
    static __device__ __forceinline__ void finish(const Work &w, const Pipe &pipe, const Place &place,
                                                  const Sums &sum) {
        const bool first = threadIdx.x % 128 == 0;
        unsigned char *boxes = pipe.behind() + own_group() * BOXES * BOX_BYTES;
        unsigned words[WORDS]; /* all, before anyone waits for the boxes */
        words_of(w, place, sum, 0, words);
        if (first) hopper::store_wait<0>();
        hopper::named_wait(3 + own_group(), 128); /* the boxes are free */
#pragma unroll
        for (int i = 0; i < WORDS; i++) {
            const int row = word_row(), col = word_col(i);
            const int unit = col % BOX_COLS / 16 ^ row % 8;
            unsigned char *to = boxes + col / BOX_COLS * BOX_BYTES + row * BOX_COLS + unit * 16 + col % 16;
            *reinterpret_cast<unsigned *>(to) = words[i];
        }
        hopper::fence_copies();
        hopper::named_wait(3 + own_group(), 128);
        if (first) {
            const tsr_quarter start = start_of(w, place, TSR_QUARTERS_OF_C, w.rows_a, w.rows_b);
            for (int box = 0; box < BOXES; box++)
                hopper::store_tensor(&w.map_c, start.row + group_row(place),
                                     start.column + place.col * N + box * BOX_COLS, boxes + box * BOX_BYTES,
                                     hopper::evict_first());
            hopper::store_commit();
        }
    }
    static __device__ __forceinline__ void close() {
        if (threadIdx.x % 128 == 0) hopper::store_wait<0>();
    }
};

/* With sides, whose chunks have LINES. Stages leave no room for boxes: lanes exchange words, and store sectors. */
template <int LINES, bool OF_QUARTERS> struct SidedResidues {
    static constexpr bool PROVES = false;
    struct Work : residues::Work {
        static constexpr bool QUARTERS = OF_QUARTERS;
        CUtensorMap map_sums_a, map_sums_b, map_last_a, map_last_b; /* planes one below the other */
        int8_t *c, *columns, *rows;                                 /* the last two see tsr_residue_sums */
        int last_a, last_b; /* where an operand's last lines begin, in its planes */
        tsr_residue_moduli moduli;
    };
    typedef residues::PipeWith<LINES * K, 0> Pipe;
    static __device__ __forceinline__ void open(const Work &) {}
    static __device__ __forceinline__ void close() {}
    static __device__ __forceinline__ void finish(const Work &w, const Pipe &, const Place &place, const Sums &sum) {
        if (place.side & SIDE_ALONE) return;
        const bool second = threadIdx.x & 2; /* of two lanes with words of a row: the other gets the left half */
        const tsr_quarter start = start_of(w, place, TSR_QUARTERS_OF_C, w.rows_a, w.rows_b);
        const int64_t row = start.row + group_row(place) + word_row();
        int8_t *to = w.c + row * row_bytes(w, w.rows_b) + start.column + (int64_t)place.col * N + (second ? 16 : 0);
#pragma unroll
        for (int from = 0; from < WORDS; from += 4) {
            unsigned own[4];
            words_of(w, place, sum, from, own);
            const unsigned x = __shfl_xor_sync(0xffffffffu, second ? own[0] : own[2], 2);
            const unsigned y = __shfl_xor_sync(0xffffffffu, second ? own[1] : own[3], 2);
            const uint4 all = second ? uint4{x, own[2], y, own[3]} : uint4{own[0], x, own[1], y};
            __stcs(reinterpret_cast<uint4 *>(to + 8 * from), all);
        }
    }
};
/* Lines of a chunk; 0: there are no sides. */
template <typename Epilogue> constexpr int CHUNK_LINES = 0;
template <int LINES, bool QUARTERS> constexpr int CHUNK_LINES<SidedResidues<LINES, QUARTERS>> = LINES;

/* ---- sides ----------------------------------------------------------------------------------- */

template <int LINES> using SideSums = int[LINES / 2];

/* Lines of sums of a plane. */
template <typename W> constexpr int SUMS = TSR_EXACT_SUMS / (W::QUARTERS ? 2 : 1);

/* Asks for the lines that come beside a panel; a stage has them behind B's. */
template <int LINES, typename W>
__device__ __forceinline__ void bring_side(const W &w, const Place &place, int panel, unsigned char *to,
                                           uint64_t *full) {
    const bool of_a_lines = place.side & SIDE_OF_A_LINES;
    const int chunk = (int)(place.side & CHUNK);
    if (!W::QUARTERS && chunk == CHUNK_LAST) {
        hopper::copy_tensor(to, of_a_lines ? &w.map_last_b : &w.map_last_a,
                            place.plane * (of_a_lines ? w.rows_b : w.rows_a) + (of_a_lines ? w.last_b : w.last_a),
                            panel * K, full);
    } else {
        const tsr_quarter start =
            start_of(w, place, of_a_lines ? TSR_QUARTERS_OF_B : TSR_QUARTERS_OF_A, SUMS<W>, w.depth);
        hopper::copy_tensor(to, of_a_lines ? &w.map_sums_b : &w.map_sums_a, start.row + chunk * LINES,
                            start.column + panel * K, full);
    }
}
__device__ __forceinline__ void multiply_side(SideSums<FEWEST_LINES> &sum, uint64_t lines, uint64_t beside, bool add) {
    hopper::wgmma_m64n8k32_s8(sum, lines, beside, add);
}
__device__ __forceinline__ void multiply_side(SideSums<FEW_LINES> &sum, uint64_t lines, uint64_t beside, bool add) {
    hopper::wgmma_m64n32k32_s8(sum, lines, beside, add);
}
__device__ __forceinline__ void multiply_side(SideSums<MANY_LINES> &sum, uint64_t lines, uint64_t beside, bool add) {
    hopper::wgmma_m64n64k32_s8(sum, lines, beside, add);
}

/* Where a group's lines begin in a stage: of A all that it has, of B its share. */
__device__ __forceinline__ int side_place(const Place &place) {
    if (place.side & SIDE_OF_A_LINES) return own_group() * GROUP_ROWS * K;
    return A_BYTES + group_share() * K;
}

/* Residues of a side, a byte each, to C or to what belongs to the sums. */
template <int LINES, typename W>
__device__ __forceinline__ void put_side(const W &w, const Place &place, const SideSums<LINES> &sum) {
    const bool of_a_lines = place.side & SIDE_OF_A_LINES;
    const int number = modulus_of<W>(place);
    const int modulus = w.moduli.modulus[number], inverse = w.moduli.inverse[number];
    const int chunk = (int)(place.side & CHUNK), own = of_a_lines ? w.rows_a : w.rows_b;
    const int64_t lines = row_bytes(w, own);
    const int line = own_row() + (of_a_lines ? group_row(place) : place.col * N + group_share());
    const tsr_quarter start = start_of(w, place, TSR_QUARTERS_OF_C, SUMS<W>, own);
    int8_t *to = (of_a_lines ? w.rows : w.columns) + (start.row + chunk * LINES) * lines + start.column;
    int64_t line_step = 1, step = lines; /* from line to line, and from one that came beside to the next */
    if (!W::QUARTERS && chunk == CHUNK_LAST) {
        to = w.c + (int64_t)place.plane * w.rows_a * w.rows_b + (of_a_lines ? w.last_b : (int64_t)w.last_a * w.rows_b);
        line_step = of_a_lines ? w.rows_b : 1;
        step = of_a_lines ? 1 : w.rows_b;
    }
    to += line * line_step + own_col() * step;
#pragma unroll
    for (int j = 0; j < LINES / 8; j++, to += 8 * step)
#pragma unroll
        for (int e = 0; e < 4; e++)
            to[e % 2 * step + e / 2 * 8 * line_step] = (int8_t)tsr_residue(sum[4 * j + e], modulus, inverse);
}

} // namespace residues

#endif
