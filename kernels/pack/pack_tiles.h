/* Transposes of `pack`: tiles of 256 or 512 bytes of the source's rows × as much of the target's. Rows are loaded to
 * shared memory in pieces of 16 bytes as they stand, aligned in memory, whatever the rows are; threads pick elements
 * from columns, convert them and store whole units. 16 bytes more after every unit's rows, so that columns are read
 * without conflicts. Device code, for pack_cuda.cu alone. */
#ifndef TSR_KERNELS_PACK_PACK_TILES_H
#define TSR_KERNELS_PACK_PACK_TILES_H

#include "kernels/pack/pack_units.h"

namespace {

/* UNIT bytes to shared memory, aligned on both sides; there after wait_pieces and a barrier. */
__device__ __forceinline__ void copy_piece(void *to, const void *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
#else
    *static_cast<uint4 *>(to) = *static_cast<const uint4 *>(from);
#endif
}
__device__ __forceinline__ void wait_pieces() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* A tile: rows of the source from `row` on, of them the columns from `col` on, each row as it stands between
 * boundaries of UNIT bytes. */
template <tsr_dtype D, typename T> struct tile {
    typedef typename source<D>::word_type word_type;
    static constexpr int WIDTH = (int)sizeof(word_type);
    static constexpr int SEGMENT = WIDTH == 8 && sizeof(T) > 2 ? 512 : 256; /* bytes of a row */
    static constexpr int SEGMENT_TO = sizeof(T) == 8 ? 512 : 256;           /* bytes of a row of the target */
    static constexpr int ROWS = SEGMENT_TO / (int)sizeof(T), COLS = SEGMENT / WIDTH;
    /* rows more, where the target's rows begin inside a sector */
    static constexpr int MOST_BEFORE = SECTOR / (int)sizeof(T) - 1;
    /* blocks at a time, of which each does more at a time: faster for these */
    static constexpr bool FEW = WIDTH == 1 || sizeof(T) == 8;
    static constexpr int BLOCKS = FEW ? 3 : 4, UNROLL = FEW ? 4 : 1;
    static constexpr int PIECES = SEGMENT / UNIT, PITCH = SEGMENT + UNIT;
    static constexpr int BYTES = (ROWS + MOST_BEFORE) * PITCH + ((ROWS + MOST_BEFORE) / EACH<T> + 1) * UNIT;
    static constexpr int STEP = THREADS / PIECES;

    unsigned char *shared;
    const char *from;        /* (row, col) of the source, which there may not be */
    int64_t pitch;           /* bytes from row to row of the source */
    const char *begin, *end; /* of the source's memory */
    int rows, first, last;   /* of the tile; those that the source has */
    int left;                /* bytes of a row from `col` on */
    unsigned phase, step;    /* of the rows' first bytes past a boundary */

    __device__ __forceinline__ static int start_of(int r) { return r * PITCH + r / EACH<T> * UNIT; }
    __device__ __forceinline__ int shift_of(int r) const { return (int)((phase + (unsigned)r * step) % UNIT); }
    __device__ __forceinline__ int place_of(int r) const { return start_of(r) + shift_of(r); }

    __device__ __forceinline__ tile(unsigned char *memory, const operand &a, int64_t row, int64_t col, int count)
        : shared(memory), rows(count) {
        pitch = a.ld * WIDTH;
        from = static_cast<const char *>(a.data) + row * pitch + col * WIDTH;
        first = row < 0 ? (int)-row : 0;
        last = (int)max(min(a.rows - row, (int64_t)count), (int64_t)0);
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

    /* The tile lies in the source, with what the pieces at its sides hold besides. A thread's rows are STEP apart,
     * which makes no difference to how they are aligned. */
    __device__ __forceinline__ void load_inside(int y, int q) const {
        const char *at = from + y * pitch + q * UNIT - shift_of(y);
        unsigned char *to = shared + start_of(y) + q * UNIT;
        const int t = (int)threadIdx.x, more = shift_of(t);
#pragma unroll
        for (int p = 0; p < ROWS / STEP; p++)
            copy_piece(to + p * (STEP * PITCH + STEP / EACH<T> * UNIT), at + p * STEP * pitch);
        if (ROWS + y < rows) copy_piece(to + start_of(ROWS), at + ROWS * pitch);
        if (t < rows && more > 0) copy_piece(shared + start_of(t) + SEGMENT, from + t * pitch + SEGMENT - more);
    }

    __device__ __forceinline__ void load_edge(int y, int q) const {
#pragma unroll 1
        for (int r = y; r < rows; r += STEP) load_checked(r, q);
        if ((int)threadIdx.x < rows) load_checked((int)threadIdx.x, PIECES);
    }

    /* A piece of a row that may not be there: zeros. One that reaches beyond its row holds what stands there, unless
     * that is beyond the source's memory: then the elements there are. */
    __device__ __forceinline__ void load_checked(int r, int q) const {
        const int place = q * UNIT - shift_of(r);
        unsigned char *to = shared + start_of(r) + q * UNIT;
        const char *at = from + r * pitch + place;
        if (r < first || r >= last) *reinterpret_cast<uint4 *>(to) = uint4();
        else if (place < left && at >= begin && at + UNIT <= end) copy_piece(to, at);
        else
#pragma unroll 1
            for (int e = 0; e < UNIT; e += WIDTH)
                if (place + e < left && at + e >= begin)
                    *reinterpret_cast<word_type *>(to + e) = *reinterpret_cast<const word_type *>(at + e);
    }

    /* Columns of the tile to rows of the target: column c to row j + c, from its column i on, or from where the last
     * sector begins before column i + before; zeros where the source has no such column. Neighbouring lanes hold 8
     * units of 4 rows. WHOLE: the target has all of these columns. */
    template <bool WHOLE>
    __device__ __forceinline__ void store(const target<T> &to, int64_t i, int64_t j, int before, bool swapped) const {
        constexpr int ACROSS = SEGMENT_TO / UNIT / 8; /* warps along a row of the target */
        const int t = (int)threadIdx.x, k = (t % 8 + t / 32 % ACROSS * 8) * EACH<T>;
        int start[EACH<T>];
#pragma unroll
        for (int e = 0; e < EACH<T>; e++) start[e] = place_of(k + e);
        constexpr int APART = THREADS / 8 / ACROSS; /* columns of a thread */
        const int c0 = t / 8 % 4 + t / 32 / ACROSS * 4, columns = (int)min(to.rows - j, (int64_t)COLS);
        T *row = to.data + (j + c0) * to.ld;
        const int64_t apart = APART * to.ld;
#pragma unroll UNROLL
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
                const word_type *at = reinterpret_cast<const word_type *>(shared + start[e] + c * WIDTH);
                const word_type word = c * WIDTH < left ? *at : word_type(0);
                value.of[e] = source<D>::template convert<T>(word, swapped);
            }
            if (WHOLE) store_whole(row + i + skipped + k, value);
            else store_unit(row, i + skipped + k, to.cols, value);
        }
    }
};

/* to = from transposed and converted, a tile at a time; any alignment */
template <tsr_dtype D, typename T>
__global__ void __launch_bounds__(THREADS, (tile<D, T>::BLOCKS))
    convert_transposed(operand from, target<T> to, bool aligned) {
    typedef tile<D, T> shape;
    __shared__ words<4> shared[shape::BYTES / UNIT];
    const int before = aligned ? 0 : shape::MOST_BEFORE;
    for (int64_t j = (int64_t)blockIdx.y * shape::COLS; j < to.rows; j += (int64_t)gridDim.y * shape::COLS)
        for (int64_t i = (int64_t)blockIdx.x * shape::ROWS; i < to.cols + before;
             i += (int64_t)gridDim.x * shape::ROWS) {
            const shape part(reinterpret_cast<unsigned char *>(shared), from, i - before, j, shape::ROWS + before);
            part.load();
            __syncthreads();
            if (i >= before && i + shape::ROWS <= to.cols)
                part.template store<true>(to, i - before, j, before, from.swapped);
            else part.template store<false>(to, i - before, j, before, from.swapped);
            __syncthreads();
        }
}

} // namespace

#endif
