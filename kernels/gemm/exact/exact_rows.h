/* Integers of 128 neighbours in a row of C, by a warp of a CUDA device, for `exact`: sums of bytes of residues by bytes
 * of units (exact_integers.h) are a product of small matrices, 16 elements by 16 moduli by 8 bytes, and made as such on
 * tensor cores. A lane loads 16 neighbours of four moduli at once, so that it has what such a product wants of it. Of
 * the sums it gets two bytes, a digit, of each of 16 elements. Lanes exchange digits in shared memory, at places that
 * are free of conflicts. Of few moduli each lane makes its own.
 * Device code. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_ROWS_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_ROWS_H

#include "kernels/gemm/exact/exact_integers.h"

namespace exact {

/* A warp: c += a·b of bytes without a sign, 16 × 16 by 16 × 8. Lane 4·g + w has elements 4·w … 4·w + 3 of rows
 * g and g + 8 of a, and of column g of b; elements 2·w and 2·w + 1 of rows g and g + 8 of c. */
__device__ __forceinline__ void multiply_bytes(unsigned (&c)[4], unsigned a_upper, unsigned a_lower, unsigned b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a_upper), "r"(a_lower), "r"(b));
#else
    const int lane = (int)threadIdx.x % 32;
    const int g = lane / 4, w = lane % 4;
    for (int i = 0; i < 4; i++) {
        const unsigned upper = __shfl_sync(0xffffffffu, a_upper, 4 * g + i);
        const unsigned lower = __shfl_sync(0xffffffffu, a_lower, 4 * g + i);
        for (int side = 0; side < 2; side++) {
            const unsigned column = __shfl_sync(0xffffffffu, b, 4 * (2 * w + side) + i);
            c[side] = __dp4a(upper, column, c[side]);
            c[2 + side] = __dp4a(lower, column, c[2 + side]);
        }
    }
#endif
}

/* Words of four elements of a modulus to words of four moduli of an element. */
__device__ __forceinline__ void transpose(unsigned (&w)[4]) {
    const unsigned a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
    const unsigned c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(a, b, 0x5410);
    w[1] = __byte_perm(a, b, 0x7632);
    w[2] = __byte_perm(c, d, 0x5410);
    w[3] = __byte_perm(c, d, 0x7632);
}

template <int COUNT> struct Row {
    static constexpr int BYTES = Product<COUNT>::BYTES;
    static constexpr int TILES = (BYTES + 7) / 8, DIGITS = 4 * TILES; /* of 8 bytes; of an element */
    /* where a warp's lanes exchange digits of two elements each */
    struct alignas(16) Room {
        unsigned words[2][8 * 4 * DIGITS]; /* of 8 groups of four elements */
    };
    /* Of digit `at` of a group's element. Groups have their elements in other orders, and every other one begins with
     * the upper half of eight digits. So a quarter of a warp that loads four digits, and a half that stores two, meet
     * each bank once. */
    static __device__ __forceinline__ int place_of(int group, int element, int at) {
        static_assert(DIGITS == 8);
        return 32 * group + ((DIGITS * element + at) ^ (group % 4 * DIGITS + group % 2 * 4));
    }
    /* What a lane has of an element. */
    struct alignas(4 * TILES) Digits {
        unsigned of_tile[TILES];
    };
    /* Byte n of tile t: a lane's digits follow each other. */
    static __device__ __forceinline__ int byte_of(int t, int n) { return 2 * TILES * (n / 2) + 2 * t + n % 2; }
};

template <int COUNT> static __device__ const Units<COUNT> UNITS = Units<COUNT>();

/* What a lane has of the units, the same for all rows. */
template <int COUNT> struct LaneUnits {
    unsigned b[Row<COUNT>::TILES], start[Row<COUNT>::TILES][2];
    unsigned moved; /* what makes its residues bytes without a sign */

    __device__ __forceinline__ LaneUnits() {
        constexpr int WORDS = Moduli<COUNT>::WORDS;
        const int lane = (int)threadIdx.x % 32;
        const int g = lane / 4, w = lane % 4;
        moved = w < WORDS ? moved_word<COUNT>(w) : 0;
#pragma unroll
        for (int t = 0; t < Row<COUNT>::TILES; t++) {
            const int byte = Row<COUNT>::byte_of(t, g);
            b[t] = byte < Row<COUNT>::BYTES && w < WORDS ? UNITS<COUNT>.bytes[byte][w] : 0;
#pragma unroll
            for (int side = 0; side < 2; side++) {
                const int own = Row<COUNT>::byte_of(t, 2 * w + side);
                start[t][side] = Units<COUNT>::FULL && own < Row<COUNT>::BYTES ? UNITS<COUNT>.last[own] : 0;
            }
        }
    }
};

/* Word q of four. */
__device__ __forceinline__ unsigned word_of(const uint4 &all, int q) {
    return q == 0 ? all.x : q == 1 ? all.y : q == 2 ? all.z : all.w;
}

/* 16 neighbours of four moduli, of the 128 whose residues are at `row`, a multiple of 16, and so many bytes on for each
 * modulus: less than 2^32 for all. */
template <int COUNT> struct LaneResidues {
    uint4 of_modulus[4];

    __device__ __forceinline__ void load(const int8_t *row, int64_t plane_bytes) {
        const unsigned lane = threadIdx.x % 32, step = (unsigned)plane_bytes;
        const unsigned w = lane % 4, from = 4 * w * step + 16 * (lane / 4);
#pragma unroll
        for (unsigned j = 0; j < 4; j++)
            of_modulus[j] =
                4 * w + j < COUNT ? __ldcs(reinterpret_cast<const uint4 *>(row + (from + j * step))) : uint4();
    }
};

/* use(e, x): the integer of element 4·lane + e of a row. */
template <int COUNT, typename Use>
__device__ __forceinline__ void integers_of_row(const LaneResidues<COUNT> &residues, const LaneUnits<COUNT> &units,
                                                typename Row<COUNT>::Room &room, Use use) {
    constexpr int TILES = Row<COUNT>::TILES, DIGITS = Row<COUNT>::DIGITS;
    const int lane = (int)threadIdx.x % 32;
    const int g = lane / 4, w = lane % 4;
    unsigned own[4][4]; /* [q][e]: of element 16·g + 4·q + e */
#pragma unroll
    for (int q = 0; q < 4; q++) {
#pragma unroll
        for (int j = 0; j < 4; j++) own[q][j] = word_of(residues.of_modulus[j], q);
        transpose(own[q]);
#pragma unroll
        for (int e = 0; e < 4; e++) own[q][e] ^= units.moved;
    }
#pragma unroll
    for (int first = 0; first < 4; first += 2) { /* elements 4·q + first, and the next */
        __syncwarp();                            /* what was exchanged before is read */
#pragma unroll
        for (int e = 0; e < 2; e++)
#pragma unroll
            for (int q = 0; q < 4; q += 2) {
                typename Row<COUNT>::Digits digits[2];
#pragma unroll
                for (int t = 0; t < TILES; t++) {
                    unsigned c[4] = {units.start[t][0], units.start[t][1], units.start[t][0], units.start[t][1]};
                    multiply_bytes(c, own[q][first + e], own[q + 1][first + e], units.b[t]);
                    digits[0].of_tile[t] = c[0] + (c[1] << 8);
                    digits[1].of_tile[t] = c[2] + (c[3] << 8);
                }
#pragma unroll
                for (int i = 0; i < 2; i++)
                    *reinterpret_cast<typename Row<COUNT>::Digits *>(
                        room.words[e] + Row<COUNT>::place_of(g, q + i, w * TILES)) = digits[i];
            }
        __syncwarp();
#pragma unroll
        for (int e = 0; e < 2; e++) {
            unsigned digits[DIGITS];
#pragma unroll
            for (int i = 0; i < DIGITS; i += 4) {
                const uint4 four = *reinterpret_cast<const uint4 *>(room.words[e] + Row<COUNT>::place_of(g, w, i));
#pragma unroll
                for (int d = 0; d < 4; d++) digits[i + d] = word_of(four, d);
            }
            use(first + e, integer_of_digits<COUNT>(digits));
        }
    }
}

/* ---- by each lane for itself ------------------------------------------------------------------ */

/* What a lane loads of a row of C, and makes integers of: four neighbours of all moduli. */
template <int COUNT> struct OwnResidues {
    unsigned word[COUNT];

    __device__ __forceinline__ void load(const int8_t *row, int64_t plane_bytes) {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            word[i] = __ldcs(reinterpret_cast<const unsigned *>(row + i * plane_bytes + 4 * (threadIdx.x % 32)));
    }
};
template <int COUNT, typename Use>
__device__ __forceinline__ void integers_of_row(const OwnResidues<COUNT> &residues, const LaneUnits<COUNT> &,
                                                typename Row<COUNT>::Room &, Use use) {
    constexpr int WORDS = Moduli<COUNT>::WORDS;
    unsigned words[WORDS][4] = {}, r[4][WORDS];
    tsr_exact_integer x[4];
#pragma unroll
    for (int i = 0; i < COUNT; i++) words[i / 4][i % 4] = residues.word[i];
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        transpose(words[w]);
#pragma unroll
        for (int e = 0; e < 4; e++) r[e][w] = words[w][e];
    }
    integers_from<COUNT>(r, x);
#pragma unroll
    for (int e = 0; e < 4; e++) use(e, x[e]);
}
/* Of few moduli a lane makes integers as quickly as a warp, with fewer registers. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <int COUNT> constexpr bool BY_WARPS = COUNT > 11;
#else
template <int COUNT> constexpr bool BY_WARPS = false;
#endif
template <int COUNT>
using Residues = typename std::conditional<BY_WARPS<COUNT>, LaneResidues<COUNT>, OwnResidues<COUNT>>::type;

} // namespace exact

#endif
