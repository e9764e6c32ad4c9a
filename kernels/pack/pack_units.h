/* What `pack` and `finish` of the CUDA device are made of: stored elements, the units in which a target is written,
 * and rows converted one by one. A unit is 16 bytes of the target and begins on such a boundary; a warp's begin on a
 * sector of 32, wherever rows begin, so that no sector is written in parts. Where source and target are aligned
 * differently, a thread loads the aligned pieces its unit lies in and shifts them. Device code, for pack_cuda.cu
 * alone. */
#ifndef TSR_KERNELS_PACK_PACK_UNITS_H
#define TSR_KERNELS_PACK_PACK_UNITS_H

#include <stdint.h>

#include "kernels/base/element.h"
#include "kernels/base/one_nan.h"
#include "kernels/device/cuda_compat.h"

namespace {

constexpr int LANES = 32; /* threads in x */
constexpr int LINES = 8;  /* threads in y */
constexpr int THREADS = LANES * LINES;
constexpr int UNIT = 16;   /* bytes a thread stores at once, and the most it loads at once */
constexpr int SECTOR = 32; /* bytes; units are counted from such a boundary of the target on */

template <typename T> constexpr int EACH = UNIT / (int)sizeof(T); /* elements of a unit */

constexpr int larger(int a, int b) { return a > b ? a : b; }
constexpr int smaller(int a, int b) { return a < b ? a : b; }

struct operand {
    const void *data;
    int64_t ld, rows, cols;
    bool swapped;
};
template <typename T> struct target {
    T *data;
    int64_t ld, rows, cols; /* with what is to be zeros */
};

/* A bfloat16 to convert to. Integers that a float would round go through double. */
struct bf16 {
    uint16_t bits;
    bf16() = default;
    TSR_HOST_DEVICE explicit bf16(float value) : bits(tsr_bf16_encode_float(value)) {}
    TSR_HOST_DEVICE explicit bf16(double value) : bits(tsr_bf16_encode(value)) {}
    template <typename I>
    TSR_HOST_DEVICE explicit bf16(I value) : bits(sizeof(I) < 4 ? bf16((float)value).bits : bf16((double)value).bits) {}
};

/* ---- source elements ------------------------------------------------------------------------- */

template <tsr_dtype D> struct source;
#define DEFINE_SOURCE(code, suffix, bits, memory)                                                                      \
    template <> struct source<TSR_##code> {                                                                            \
        typedef uint##bits##_t word_type;                                                                              \
        template <typename T> TSR_HOST_DEVICE static inline T convert(word_type word, bool swapped) {                  \
            return static_cast<T>(tsr_convert_##suffix(swapped ? tsr_reverse_##bits(word) : word));                    \
        }                                                                                                              \
        template <typename T> TSR_HOST_DEVICE static inline T load(const void *base, int64_t at, bool swapped) {       \
            return convert<T>(static_cast<const word_type *>(base)[at], swapped);                                      \
        }                                                                                                              \
    };
TSR_REAL_LIST(DEFINE_SOURCE)

TSR_HOST_DEVICE static inline double load_double(tsr_element element, const void *base, int64_t at) {
    switch (element.dtype) {
#define CASE(code, suffix, bits, memory)                                                                               \
    case TSR_##code: return source<TSR_##code>::load<double>(base, at, element.swapped);
        TSR_REAL_LIST(CASE)
#undef CASE
    default: return 0.0;
    }
}

/* An element of the output: how a value is rounded to it, any NaN to the same one, and whether it became infinite. */
template <typename O> struct rounded;
template <> struct rounded<double> {
    __device__ static inline double from(double value) { return tsr_one_nan(value); }
    __device__ static inline bool infinite(double) { return false; } /* nothing becomes so */
};
template <> struct rounded<float> {
    __device__ static inline float from(double value) { return tsr_one_nan((float)value); }
    __device__ static inline bool infinite(float value) { return fabsf(value) == INFINITY; }
};
template <> struct rounded<uint16_t> { /* half */
    __device__ static inline uint16_t from(double value) { return tsr_half_encode(tsr_one_nan(value)); }
    __device__ static inline bool infinite(uint16_t value) { return (value & 0x7fffu) == 0x7c00u; }
};
template <> struct rounded<bf16> {
    __device__ static inline bf16 from(double value) {
        return value == value ? bf16(value) : bf16(tsr_one_nan((float)value));
    }
    __device__ static inline bool infinite(bf16 value) { return (value.bits & 0x7fffu) == 0x7f80u; }
};

/* ---- units ----------------------------------------------------------------------------------- */

/* Words that are loaded together, up to 16 bytes at once. */
template <int COUNT> struct alignas(COUNT < 4 ? COUNT * 4 : UNIT) words { uint32_t of[COUNT]; };
template <typename T> struct alignas(UNIT) unit { T of[EACH<T>]; };

/* Element e, of type W, of what words hold. */
template <typename W> __device__ __forceinline__ W element_of(const uint32_t *words, int e) {
    if constexpr (sizeof(W) == 8) return (W)((uint64_t)words[2 * e + 1] << 32 | words[2 * e]);
    constexpr int BITS = sizeof(W) < 4 ? 8 * (int)sizeof(W) : 32;
    return (W)(words[e * BITS / 32] >> e * BITS % 32);
}

/* Elements j… of a row: at once, at an address that is a multiple of UNIT. */
template <typename T> __device__ __forceinline__ void store_whole(T *to, const unit<T> &value) {
    uint4 bits;
    memcpy(&bits, &value, sizeof bits);
    __stwb(reinterpret_cast<uint4 *>(to), bits);
}
/* The same for what may lie outside a row of `cols`. */
template <typename T>
__device__ __forceinline__ void store_unit(T *row, int64_t j, int64_t cols, const unit<T> &value) {
    if (j >= 0 && j + EACH<T> <= cols) {
        store_whole(row + j, value);
        return;
    }
#pragma unroll
    for (int e = 0; e < EACH<T>; e++)
        if (j + e >= 0 && j + e < cols) row[j + e] = value.of[e];
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* What a unit of T takes of a source of type D: pieces that are loaded at once and aligned to their size, one more
 * where the unit does not begin with one. */
template <tsr_dtype D, typename T, bool SHIFTED = false> struct row_unit {
    typedef typename source<D>::word_type word_type;
    static constexpr int WIDTH = (int)sizeof(word_type), BYTES = EACH<T> * WIDTH;
    static constexpr int PIECE = BYTES < 4 ? 1 : smaller(BYTES, UNIT);
    static constexpr int WORDS = larger(BYTES, 4) / 4, MORE = larger(PIECE, 4) / 4; /* of a unit and of a piece */

    uint32_t of[WORDS + (SHIFTED ? MORE : 0)];

    __device__ __forceinline__ void load_piece(int first, const char *at) {
        const words<MORE> piece = *reinterpret_cast<const words<MORE> *>(at + first * 4);
#pragma unroll
        for (int w = 0; w < MORE; w++) of[first + w] = piece.of[w];
    }

    /* The unit at `at`, `shift` bytes past the boundary of a piece. */
    __device__ __forceinline__ void load(const char *at, int shift) {
        if constexpr (BYTES == 2) {
            of[0] = (uint32_t)(uint8_t)at[0] | (uint32_t)(uint8_t)at[1] << 8;
        } else {
#pragma unroll
            for (int first = 0; first < WORDS; first += MORE) load_piece(first, at - shift);
            if constexpr (SHIFTED) load_piece(WORDS, at - shift);
        }
    }

    /* Moves the unit to the front. */
    __device__ __forceinline__ void align(int shift) {
#pragma unroll
        for (int step = MORE / 2; step > 0; step /= 2) {
            const bool moves = shift & step * 4;
#pragma unroll
            for (int w = 0; w < WORDS + MORE - step; w++) of[w] = moves ? of[w + step] : of[w];
        }
        if (WIDTH < 4) {
#pragma unroll
            for (int w = 0; w < WORDS; w++) of[w] = (uint32_t)(((uint64_t)of[w + 1] << 32 | of[w]) >> shift % 4 * 8);
        }
    }

    __device__ __forceinline__ unit<T> convert(bool swapped) const {
        unit<T> value;
        if (swapped) {
#pragma unroll
            for (int e = 0; e < EACH<T>; e++)
                value.of[e] = source<D>::template convert<T>(element_of<word_type>(of, e), true);
        } else {
#pragma unroll
            for (int e = 0; e < EACH<T>; e++)
                value.of[e] = source<D>::template convert<T>(element_of<word_type>(of, e), false);
        }
        return value;
    }
};

/* of a thread at once */
template <tsr_dtype D, typename T>
constexpr int UNITS = row_unit<D, T>::BYTES < 32   ? 4
                      : row_unit<D, T>::BYTES < 64 ? 2
                                                   : 1;

/* Elements j… of row i, one by one, zeros where the operand has none. */
template <tsr_dtype D, typename T>
__device__ __forceinline__ unit<T> gather_unit(const operand &from, int64_t i, int64_t j) {
    unit<T> value;
#pragma unroll
    for (int e = 0; e < EACH<T>; e++) {
        const bool inside = i < from.rows && j + e >= 0 && j + e < from.cols;
        value.of[e] = inside ? source<D>::template load<T>(from.data, i * from.ld + j + e, from.swapped) : T();
    }
    return value;
}

/* Those of a thread's units that are numbered from `begin` to `end`, which are some, LANES apart. In place of others
 * these are loaded. */
template <tsr_dtype D, typename T, bool SHIFTED>
__device__ __forceinline__ void convert_units(const char *at, T *place, int shift, int begin, int end, bool swapped) {
    constexpr int N = UNITS<D, T>;
    row_unit<D, T, SHIFTED> part[N];
#pragma unroll
    for (int item = 0; item < N; item++)
        part[item].load(at + min(max(item * LANES, begin), end - 1) * row_unit<D, T>::BYTES, shift);
#pragma unroll
    for (int item = 0; item < N; item++) {
        if constexpr (SHIFTED) part[item].align(shift);
        const unit<T> value = part[item].convert(swapped);
        if (item * LANES >= begin && item * LANES < end) store_whole(place + item * (LANES * EACH<T>), value);
    }
}

/* to = from, converted; any alignment. Row i of the target begins `lead` elements past a sector's boundary; its
 * units are counted from there, and those from `first` to `last` can be loaded from whole pieces of the row. */
template <tsr_dtype D, typename T>
__global__ void __launch_bounds__(THREADS, 3) convert_rows(operand from, target<T> to) {
    typedef row_unit<D, T> shape;
    constexpr int N = UNITS<D, T>;
    constexpr int WIDTH = shape::WIDTH;
    constexpr int BYTES = shape::BYTES;
    constexpr int PIECE = shape::PIECE;
    for (int64_t i = (int64_t)blockIdx.y * LINES + threadIdx.y; i < to.rows; i += (int64_t)gridDim.y * LINES) {
        T *out = to.data + i * to.ld;
        const int lead = (int)((uintptr_t)out % SECTOR / sizeof(T));
        const char *row = static_cast<const char *>(from.data) + (i < from.rows ? i * from.ld * WIDTH : 0);
        const int shift = (int)(((uintptr_t)row - (uintptr_t)(lead * WIDTH)) % PIECE),
                  rest = shift > 0 ? PIECE - shift : 0;
        const int64_t first = (lead * WIDTH + shift + BYTES - 1) / BYTES,
                      units = (lead + to.cols + EACH<T> - 1) / EACH<T>;
        const int64_t last = i < from.rows ? ((lead + from.cols) * WIDTH - rest) / BYTES : 0;
        for (int64_t u0 = (int64_t)blockIdx.x * (LANES * N) + threadIdx.x; u0 < units;
             u0 += (int64_t)gridDim.x * (LANES * N)) {
            const int begin = (int)max(first - u0, (int64_t)0),
                      end = (int)max(min(last - u0, (int64_t)(LANES * N)), (int64_t)0);
            const char *at = row + u0 * BYTES - lead * WIDTH;
            T *place = out + u0 * EACH<T> - lead;
            if (begin < end && shift > 0) convert_units<D, T, true>(at, place, shift, begin, end, from.swapped);
            else if (begin < end) convert_units<D, T, false>(at, place, 0, begin, end, from.swapped);
            if (begin == 0 && end == LANES * N) continue;
#pragma unroll 1
            for (int item = 0; item < LANES * N && u0 + item < units; item += LANES) { /* at the ends of a row */
                const int64_t j = (u0 + item) * EACH<T> - lead;
                if (item < begin || item >= end) store_unit(out, j, to.cols, gather_unit<D, T>(from, i, j));
            }
        }
    }
}

} // namespace

#endif
