/* The memory kernels of the CUDA device: pack and finish.
 * Mapping: a thread stores units of 16 bytes of the target that begin on sectors of 32, wherever its rows begin, so that no sector is
 *   written in parts. Rows: blocks of 32 × 8 threads, a warp a row, several units a thread on their way at once; where source and target
 *   are aligned differently, a thread loads the aligned pieces its unit lies in and shifts them. Transposes: 256 threads a tile of
 *   256 bytes of the source's rows × 256 of the target's; rows are loaded in aligned pieces of 16 bytes to shared memory as they stand,
 *   elements are picked from its columns. What of the target lies outside the operand is written as zeros by the same stores. Blocks
 *   stride over the matrix, so that no grid limit matters; indices are 64-bit.
 * Shared memory: transpose 9 to 39 kB: rows of 272 bytes, 16 more after every unit's rows, so that columns are read without conflicts.
 * Requirements: source and target aligned to their elements.
 * Arithmetic intensity: none to 3 flop an element; memory-bound, reads and writes each element once.
 * Measured: `tessera bench memory`, docs/performance.md. */
#include "kernels/cuda_compat.h"
#include "kernels/element.h"
#include "kernels/gemm_cuda.h"
#include "kernels/registry.h"

#include <stdint.h>

namespace {

constexpr int LANES = 32; /* threads in x */
constexpr int LINES = 8;  /* threads in y */
constexpr int THREADS = LANES * LINES;
constexpr int ITEMS = 4;   /* columns a thread in a row of finish */
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
    template <typename I> TSR_HOST_DEVICE explicit bf16(I value) : bits(sizeof(I) < 4 ? bf16((float)value).bits : bf16((double)value).bits) {}
};

/* ---- source elements ------------------------------------------------------------------------------------------------ */

template <tsr_dtype D> struct source;
#define DEFINE_SOURCE(code, suffix, bits)                                                                             \
    template <> struct source<TSR_##code> {                                                                           \
        typedef uint##bits##_t word_type;                                                                             \
        template <typename T> TSR_HOST_DEVICE static inline T convert(word_type word, bool swapped) {                 \
            return static_cast<T>(tsr_convert_##suffix(swapped ? tsr_reverse_##bits(word) : word));                   \
        }                                                                                                             \
        template <typename T> TSR_HOST_DEVICE static inline T load(const void *base, int64_t at, bool swapped) {      \
            return convert<T>(static_cast<const word_type *>(base)[at], swapped);                                     \
        }                                                                                                             \
    };
TSR_SOURCE_LIST(DEFINE_SOURCE)

/* ---- units ------------------------------------------------------------------------------------------------------------ */

/* Words that are loaded together, up to 16 bytes at once. */
template <int COUNT> struct alignas(COUNT < 4 ? COUNT * 4 : UNIT) words {
    uint32_t of[COUNT];
};
template <typename T> struct alignas(UNIT) unit {
    T of[EACH<T>];
};

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
template <typename T> __device__ __forceinline__ void store_unit(T *row, int64_t j, int64_t cols, const unit<T> &value) {
    if (j >= 0 && j + EACH<T> <= cols) {
        store_whole(row + j, value);
        return;
    }
#pragma unroll
    for (int e = 0; e < EACH<T>; e++)
        if (j + e >= 0 && j + e < cols) row[j + e] = value.of[e];
}

/* ---- rows ------------------------------------------------------------------------------------------------------------- */

/* What a unit of T takes of a source of type D: pieces that are loaded at once and aligned to their size, one more where the unit does not
 * begin with one. */
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
            for (int e = 0; e < EACH<T>; e++) value.of[e] = source<D>::template convert<T>(element_of<word_type>(of, e), true);
        } else {
#pragma unroll
            for (int e = 0; e < EACH<T>; e++) value.of[e] = source<D>::template convert<T>(element_of<word_type>(of, e), false);
        }
        return value;
    }
};

template <tsr_dtype D, typename T> constexpr int UNITS = row_unit<D, T>::BYTES < 32 ? 4 : row_unit<D, T>::BYTES < 64 ? 2 : 1; /* of a thread at once */

/* Elements j… of row i, one by one, zeros where the operand has none. */
template <tsr_dtype D, typename T> __device__ __forceinline__ unit<T> gather_unit(const operand &from, int64_t i, int64_t j) {
    unit<T> value;
#pragma unroll
    for (int e = 0; e < EACH<T>; e++) {
        const bool inside = i < from.rows && j + e >= 0 && j + e < from.cols;
        value.of[e] = inside ? source<D>::template load<T>(from.data, i * from.ld + j + e, from.swapped) : T();
    }
    return value;
}

/* Those of a thread's units that are numbered from `begin` to `end`, which are some, LANES apart. What stands for others is loaded from them. */
template <tsr_dtype D, typename T, bool SHIFTED>
__device__ __forceinline__ void convert_units(const char *at, T *place, int shift, int begin, int end, bool swapped) {
    constexpr int N = UNITS<D, T>;
    row_unit<D, T, SHIFTED> part[N];
#pragma unroll
    for (int item = 0; item < N; item++) part[item].load(at + min(max(item * LANES, begin), end - 1) * row_unit<D, T>::BYTES, shift);
#pragma unroll
    for (int item = 0; item < N; item++) {
        if constexpr (SHIFTED) part[item].align(shift);
        const unit<T> value = part[item].convert(swapped);
        if (item * LANES >= begin && item * LANES < end) store_whole(place + item * (LANES * EACH<T>), value);
    }
}

/* to = from, converted; any alignment. Row i of the target begins `lead` elements past a sector's boundary; its units are counted from
 * there, and those from `first` to `last` can be loaded from whole pieces of the row. */
template <tsr_dtype D, typename T>
__global__ void __launch_bounds__(THREADS, 3) convert_rows(operand from, target<T> to) {
    typedef row_unit<D, T> shape;
    constexpr int N = UNITS<D, T>, WIDTH = shape::WIDTH, BYTES = shape::BYTES, PIECE = shape::PIECE;
    for (int64_t i = (int64_t)blockIdx.y * LINES + threadIdx.y; i < to.rows; i += (int64_t)gridDim.y * LINES) {
        T *out = to.data + i * to.ld;
        const int lead = (int)((uintptr_t)out % SECTOR / sizeof(T));
        const char *row = static_cast<const char *>(from.data) + (i < from.rows ? i * from.ld * WIDTH : 0);
        const int shift = (int)(((uintptr_t)row - (uintptr_t)(lead * WIDTH)) % PIECE), rest = shift > 0 ? PIECE - shift : 0;
        const int64_t first = (lead * WIDTH + shift + BYTES - 1) / BYTES, units = (lead + to.cols + EACH<T> - 1) / EACH<T>;
        const int64_t last = i < from.rows ? ((lead + from.cols) * WIDTH - rest) / BYTES : 0;
        for (int64_t u0 = (int64_t)blockIdx.x * (LANES * N) + threadIdx.x; u0 < units; u0 += (int64_t)gridDim.x * (LANES * N)) {
            const int begin = (int)max(first - u0, (int64_t)0), end = (int)max(min(last - u0, (int64_t)(LANES * N)), (int64_t)0);
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

/* ---- transposes ------------------------------------------------------------------------------------------------------- */

/* UNIT bytes to shared memory, aligned on both sides; there after wait_pieces and a barrier. */
__device__ __forceinline__ void copy_piece(void *to, const void *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
    *static_cast<uint4 *>(to) = *static_cast<const uint4 *>(from);
#endif
}
__device__ __forceinline__ void wait_pieces() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* A tile: rows of the source from `row` on, of them the columns from `col` on, each row as it stands between boundaries of UNIT bytes. */
template <tsr_dtype D, typename T> struct tile {
    typedef typename source<D>::word_type word_type;
    static constexpr int WIDTH = (int)sizeof(word_type);
    static constexpr int SEGMENT = WIDTH == 8 && sizeof(T) > 2 ? 512 : 256, SEGMENT_TO = sizeof(T) == 8 ? 512 : 256; /* bytes of a row, and of one of the target */
    static constexpr int ROWS = SEGMENT_TO / (int)sizeof(T), COLS = SEGMENT / WIDTH;
    static constexpr int MOST_BEFORE = SECTOR / (int)sizeof(T) - 1; /* rows more, where the target's rows begin inside a sector */
    static constexpr int PIECES = SEGMENT / UNIT, PITCH = SEGMENT + UNIT;
    static constexpr int BYTES = (ROWS + MOST_BEFORE) * PITCH + ((ROWS + MOST_BEFORE) / EACH<T> + 1) * UNIT;
    static constexpr int STEP = THREADS / PIECES;

    unsigned char *shared;
    const char *from;       /* (row, col) of the source, which there may not be */
    int64_t pitch;          /* bytes from row to row of the source */
    const char *begin, *end; /* of the source's memory */
    int rows, first, last;   /* of the tile; those that the source has */
    int left;                /* bytes of a row from `col` on */
    unsigned phase, step;   /* of the rows' first bytes past a boundary */

    __device__ __forceinline__ static int start_of(int r) { return r * PITCH + r / EACH<T> * UNIT; }
    __device__ __forceinline__ int shift_of(int r) const { return (int)((phase + (unsigned)r * step) % UNIT); }
    __device__ __forceinline__ int place_of(int r) const { return start_of(r) + shift_of(r); }

    __device__ __forceinline__ tile(unsigned char *memory, const operand &a, int64_t row, int64_t col, int count) : shared(memory), rows(count) {
        pitch = a.ld * WIDTH;
        from = static_cast<const char *>(a.data) + row * pitch + col * WIDTH;
        first = row < 0 ? (int)-row : 0;
        last = (int)min(a.rows - row, (int64_t)count);
        begin = static_cast<const char *>(a.data);
        end = begin + (a.rows - 1) * pitch + a.cols * WIDTH;
        left = (int)max(min((a.cols - col) * WIDTH, (int64_t)(SEGMENT + UNIT)), (int64_t)0);
        phase = (unsigned)(uintptr_t)from;
        step = (unsigned)pitch;
    }

    __device__ __forceinline__ void load() const {
        const int y = (int)threadIdx.x / PIECES, q = (int)threadIdx.x % PIECES;
        if (first == 0 && last == rows && left == SEGMENT + UNIT && from - UNIT >= begin) load_inside(y, q);
        else load_edge(y, q);
        wait_pieces();
    }

    /* The tile lies in the source, with what the pieces at its sides hold besides. A thread's rows are STEP apart, which makes no
     * difference to how they are aligned. */
    __device__ __forceinline__ void load_inside(int y, int q) const {
        const char *at = from + y * pitch + q * UNIT - shift_of(y);
        unsigned char *to = shared + start_of(y) + q * UNIT;
        const int t = (int)threadIdx.x, more = shift_of(t);
#pragma unroll
        for (int p = 0; p < ROWS / STEP; p++) copy_piece(to + p * (STEP * PITCH + STEP / EACH<T> * UNIT), at + p * STEP * pitch);
        if (ROWS + y < rows) copy_piece(to + start_of(ROWS), at + ROWS * pitch);
        if (t < rows && more > 0) copy_piece(shared + start_of(t) + SEGMENT, from + t * pitch + SEGMENT - more);
    }

    __device__ __forceinline__ void load_edge(int y, int q) const {
#pragma unroll 1
        for (int r = y; r < rows; r += STEP) load_checked(r, q);
        if ((int)threadIdx.x < rows) load_checked((int)threadIdx.x, PIECES);
    }

    /* A piece of a row that may not be there: zeros. One that reaches beyond its row holds what stands there, unless that is beyond the
     * source's memory: then the elements there are. */
    __device__ __forceinline__ void load_checked(int r, int q) const {
        const int place = q * UNIT - shift_of(r);
        unsigned char *to = shared + start_of(r) + q * UNIT;
        const char *at = from + r * pitch + place;
        if (r < first || r >= last) *reinterpret_cast<uint4 *>(to) = uint4();
        else if (place < left && at >= begin && at + UNIT <= end) copy_piece(to, at);
        else
#pragma unroll 1
            for (int e = 0; e < UNIT; e += WIDTH)
                if (place + e < left && at + e >= begin) *reinterpret_cast<word_type *>(to + e) = *reinterpret_cast<const word_type *>(at + e);
    }

    /* Columns of the tile to rows of the target: column c to row j + c, from its column i on, or from where the last sector begins before
     * column i + before; zeros where the source has no such column. Neighbouring lanes hold 8 units of 4 rows. WHOLE: the target has all of these columns. */
    template <bool WHOLE> __device__ __forceinline__ void store(const target<T> &to, int64_t i, int64_t j, int before, bool swapped) const {
        constexpr int ACROSS = SEGMENT_TO / UNIT / 8; /* warps along a row of the target */
        const int t = (int)threadIdx.x, k = (t % 8 + t / 32 % ACROSS * 8) * EACH<T>;
        int start[EACH<T>];
#pragma unroll
        for (int e = 0; e < EACH<T>; e++) start[e] = place_of(k + e);
        constexpr int APART = THREADS / 8 / ACROSS; /* columns of a thread */
        const int c0 = t / 8 % 4 + t / 32 / ACROSS * 4, columns = (int)min(to.rows - j, (int64_t)COLS);
        T *row = to.data + (j + c0) * to.ld;
        const int64_t apart = APART * to.ld;
#pragma unroll 1
        for (int c = c0; c < columns; c += APART, row += apart) {
            int skipped = 0;
            if (before > 0) { /* rows of the tile ahead of the sector */
                skipped = before - (int)((uintptr_t)row % SECTOR / sizeof(T));
#pragma unroll
                for (int e = 0; e < EACH<T>; e++) start[e] = place_of(skipped + k + e);
            }
            unit<T> value;
#pragma unroll
            for (int e = 0; e < EACH<T>; e++) {
                const word_type word = c * WIDTH < left ? *reinterpret_cast<const word_type *>(shared + start[e] + c * WIDTH) : word_type(0);
                value.of[e] = source<D>::template convert<T>(word, swapped);
            }
            if (WHOLE) store_whole(row + i + skipped + k, value);
            else store_unit(row, i + skipped + k, to.cols, value);
        }
    }
};

/* to = from transposed and converted, a tile at a time; any alignment */
template <tsr_dtype D, typename T> __global__ void __launch_bounds__(THREADS, 4) convert_transposed(operand from, target<T> to, bool aligned) {
    typedef tile<D, T> shape;
    __shared__ words<4> shared[shape::BYTES / UNIT];
    const int before = aligned ? 0 : shape::MOST_BEFORE;
    for (int64_t j = (int64_t)blockIdx.y * shape::COLS; j < to.rows; j += (int64_t)gridDim.y * shape::COLS)
        for (int64_t i = (int64_t)blockIdx.x * shape::ROWS; i < to.cols + before; i += (int64_t)gridDim.x * shape::ROWS) {
            const shape part(reinterpret_cast<unsigned char *>(shared), from, i - before, j, shape::ROWS + before);
            part.load();
            __syncthreads();
            if (i >= before && i + shape::ROWS <= to.cols) part.template store<true>(to, i - before, j, before, from.swapped);
            else part.template store<false>(to, i - before, j, before, from.swapped);
            __syncthreads();
        }
}

/* ---- finish ------------------------------------------------------------------------------------------------------------- */

/* Where a thread stands in rows × cols: calls item(i, j0) for every row and first column of the block's strides. A thread's
 * N columns are j0, j0 + LANES, …; each kernel loads all of them before it stores any, to have more loads on their way. */
template <int N = ITEMS, typename F> __device__ __forceinline__ void for_items(int64_t rows, int64_t cols, F item) {
    const int64_t row_step = (int64_t)gridDim.y * LINES, col_step = (int64_t)gridDim.x * (LANES * N);
    for (int64_t i = (int64_t)blockIdx.y * LINES + threadIdx.y; i < rows; i += row_step)
        for (int64_t j0 = (int64_t)blockIdx.x * (LANES * N) + threadIdx.x; j0 < cols; j0 += col_step) item(i, j0);
}

/* to[j] = load(j) for the thread's columns from j0 that are below cols */
template <int N = ITEMS, typename T, typename F> __device__ __forceinline__ void move_items(T *to, int64_t j0, int64_t cols, F load) {
    T value[N];
#pragma unroll
    for (int item = 0; item < N; item++)
        if (j0 + item * LANES < cols) value[item] = load(j0 + item * LANES);
#pragma unroll
    for (int item = 0; item < N; item++)
        if (j0 + item * LANES < cols) to[j0 + item * LANES] = value[item];
}

TSR_HOST_DEVICE static inline double load_double(tsr_element element, const void *base, int64_t at) {
    switch (element.dtype) {
#define CASE(code, suffix, bits)                                                                                      \
    case TSR_##code: return source<TSR_##code>::load<double>(base, at, element.swapped);
        TSR_SOURCE_LIST(CASE)
#undef CASE
    default: return 0.0;
    }
}

template <typename O> struct rounded {
    __device__ static inline O from(double value) { return (O)value; }
};
template <> struct rounded<uint16_t> { /* half */
    __device__ static inline uint16_t from(double value) { return tsr_half_encode(value); }
};

/* out (rows × cols) = alpha·sum + beta·c0; product and sum rounded apart, as the CPU device does */
template <typename A, typename O>
__global__ void finish_rows(const A *sum, int64_t ld_sum, double alpha, double beta, tsr_element c0_element, const void *c0,
                            int64_t ld_c0, O *out, int64_t ld_out, int64_t rows, int64_t cols) {
    for_items(rows, cols, [=](int64_t i, int64_t j0) {
        move_items(out + i * ld_out, j0, cols, [=](int64_t j) {
            double value = __dmul_rn(alpha, (double)sum[i * ld_sum + j]);
            if (beta != 0.0) value = __dadd_rn(value, __dmul_rn(beta, load_double(c0_element, c0, i * ld_c0 + j)));
            return rounded<O>::from(value);
        });
    });
}

/* ---- launches -------------------------------------------------------------------------------------------------------- */

const dim3 threads(LANES, LINES);

template <tsr_dtype D, typename T> static tsr_status launch_convert(tsr_stream *stream, const tsr_pack_args *args) {
    /* memory that is not there is not read, but has an address */
    const operand from = {args->from.data ? args->from.data : args->to, args->from.ld, args->from.rows, args->from.cols, args->from.element.swapped};
    const target<T> to = {static_cast<T *>(args->to), args->ld, args->padded_rows, args->padded_cols};
    const bool aligned = ((uintptr_t)to.data | (uintptr_t)(to.ld * (int64_t)sizeof(T))) % SECTOR == 0;
    const int64_t cols = to.cols + (aligned ? 0 : SECTOR / (int64_t)sizeof(T) - 1); /* as many as the units of a row may take */
    dim3 grid;
    if (args->transpose) {
        TSR_TRY(tsr_cuda_grid(to.rows, cols, tile<D, T>::COLS, tile<D, T>::ROWS, &grid));
        return TSR_LAUNCH((convert_transposed<D, T>), grid, dim3(THREADS), 0, stream, from, to, aligned);
    }
    TSR_TRY(tsr_cuda_grid(to.rows, cols, LINES, LANES * UNITS<D, T> * EACH<T>, &grid));
    return TSR_LAUNCH((convert_rows<D, T>), grid, threads, 0, stream, from, to);
}

template <tsr_dtype D> static tsr_status convert_from(tsr_stream *stream, const tsr_pack_args *args) {
    if (args->type == TSR_F32) return launch_convert<D, float>(stream, args);
    if (args->type == TSR_F64) return launch_convert<D, double>(stream, args);
    return launch_convert<D, bf16>(stream, args);
}

static tsr_status convert(tsr_stream *stream, const tsr_pack_args *args) {
    if (args->padded_rows == 0 || args->padded_cols == 0) return TSR_OK;
    if (args->type == TSR_F16) return launch_convert<TSR_U16, uint16_t>(stream, args); /* from halves: only moved */
    switch (args->from.element.dtype) {
#define CASE(code, suffix, bits)                                                                                      \
    case TSR_##code: return convert_from<TSR_##code>(stream, args);
        TSR_SOURCE_LIST(CASE)
#undef CASE
    default: return tsr_fail(TSR_ERR_UNSUPPORTED, "pack: element type %d is unknown: use one of tsr_dtype", (int)args->from.element.dtype);
    }
}

static tsr_status check_aligned(const char *what, const void *data, tsr_dtype dtype) {
    if ((uintptr_t)data % tsr_dtype_bytes(dtype) == 0) return TSR_OK;
    return tsr_fail(TSR_ERR_UNSUPPORTED, "%s at %p is not aligned to its %s elements: align it", what, data, tsr_dtype_name(dtype));
}

static tsr_status pack(tsr_device *, tsr_stream *stream, const tsr_pack_args *args) {
    TSR_TRY(tsr_pack_check(args));
    TSR_TRY(check_aligned("pack: source", args->from.data, args->from.element.dtype));
    TSR_TRY(check_aligned("pack: target", args->to, args->type));
    return convert(stream, args);
}

template <typename A, typename O> static tsr_status launch_finish(tsr_stream *stream, const tsr_finish_args *args) {
    const tsr_view *sum = &args->accumulated, *out = &args->out;
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(out->rows, out->cols, LINES, LANES * ITEMS, &grid));
    return TSR_LAUNCH((finish_rows<A, O>), grid, threads, 0, stream,
                      static_cast<const A *>(sum->data), sum->ld, args->alpha, args->beta, args->c0.element,
                      static_cast<const void *>(args->c0.data), args->c0.ld, static_cast<O *>(out->data), out->ld, out->rows, out->cols);
}

template <typename A> static tsr_status finish_from(tsr_stream *stream, const tsr_finish_args *args) {
    if (args->out.element.dtype == TSR_F64) return launch_finish<A, double>(stream, args);
    if (args->out.element.dtype == TSR_F32) return launch_finish<A, float>(stream, args);
    return launch_finish<A, uint16_t>(stream, args);
}

static tsr_status finish(tsr_device *, tsr_stream *stream, const tsr_finish_args *args) {
    TSR_TRY(tsr_finish_check(args));
    if (args->beta != 0.0) TSR_TRY(check_aligned("finish: c0", args->c0.data, args->c0.element.dtype));
    const tsr_view *sum = &args->accumulated, *out = &args->out;
    if (out->rows == 0 || out->cols == 0) return TSR_OK;
    if (args->alpha == 1.0 && args->beta == 0.0 && sum->element.dtype == out->element.dtype) {
        const tsr_pack_args copy = {*sum, false, out->data, out->element.dtype, out->ld, out->rows, out->cols};
        return convert(stream, &copy);
    }
    return sum->element.dtype == TSR_F32 ? finish_from<float>(stream, args) : finish_from<double>(stream, args);
}

} // namespace

const tsr_pack_ops tsr_pack_cuda = {/* device */ TSR_DEVICE_CUDA, pack, finish};
