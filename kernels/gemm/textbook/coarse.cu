/* Operation: C = A·B or C += A·B, fp32 or fp64, row-major, any shape.
 * Mapping: a block of 8 warps, 4 × 2, makes a tile of 128 × 128 (fp32) or 128 × 64 (fp64) of C; a warp's 4 × 8 lanes
 * own 8 × 8 (8 × 4) elements each, in registers, as groups of 16 bytes spread over the warp's part so that
 * shared-memory reads are 16 bytes wide and free of conflicts. Steps of 16 (8) along k: the next tiles of A and B
 * travel from global memory to registers while the present ones are multiplied out of one of two shared buffers. A's
 * tile is stored transposed, with padding. Outside A and B loads are zero.
 * A block uses: 256 threads; 33280 bytes of dynamic shared memory in fp32, 24832 in fp64; at most 128 registers a
 * thread.
 * Requirements: none. With 16-byte aligned operands and leading dimensions global accesses are 16 bytes wide, else
 * one element.
 * Arithmetic intensity: 128·128/(128+128)/2 = 32 flop/byte in fp32; 128·64/(128+64)/4 = 10.7 in fp64.
 * Measured at 8192 on an H200, 2026-11-21: fp32 44.7 TFLOP/s, 67 % of the CUDA cores' peak; fp64 20.2, 60 %.
 * Reference: Hwu, Kirk, El Hajj, Programming Massively Parallel Processors, 4th ed., section 6.3; Volkov and Demmel,
 * Benchmarking GPUs to tune dense linear algebra, SC 2008. */
#include "kernels/gemm/gemm_cuda.h"

namespace {

constexpr int THREADS = 256;
constexpr int WARPS_M = 4;
constexpr int WARPS_N = 2;
constexpr int LANES_M = 4;
constexpr int LANES_N = 8;

/* What differs with the element type. */
template <typename T> struct Tile;
template <> struct Tile<float> {
    static constexpr int OWN_M = 8;
    static constexpr int OWN_N = 8;
    static constexpr int K = 16;
};
template <> struct Tile<double> {
    static constexpr int OWN_M = 8;
    static constexpr int OWN_N = 4;
    static constexpr int K = 8;
};
template <typename T> constexpr int GROUP = 16 / (int)sizeof(T); /* elements of 16 bytes */
/* Blocks a multiprocessor shall hold; single fp64 accesses need more registers than two blocks leave before sm_90. */
template <typename T, int WIDTH> constexpr int BLOCKS = WIDTH * sizeof(T) == 8 ? 1 : 2;
template <typename T> constexpr int TILE_M = WARPS_M *LANES_M *Tile<T>::OWN_M;
template <typename T> constexpr int TILE_N = WARPS_N *LANES_N *Tile<T>::OWN_N;
/* padded: the transposing stores meet fewer bank conflicts */
template <typename T> constexpr int A_LD = TILE_M<T> + GROUP<T>;
template <typename T> constexpr int A_ELEMENTS = Tile<T>::K *A_LD<T>;
template <typename T> constexpr int B_ELEMENTS = Tile<T>::K *TILE_N<T>;
template <typename T> constexpr size_t SHARED_BYTES = 2 * sizeof(T) * (A_ELEMENTS<T> + B_ELEMENTS<T>);

/* COUNT neighbouring elements, moved in one access. */
template <typename T, int COUNT> struct alignas(sizeof(T) * COUNT) Pack { T at[COUNT]; };

/* This thread's part of a ROWS × COLS tile of which rows × cols exist (may be ≤ 0), the rest are zeros. In units of
 * WIDTH elements of one row, unit i of thread t is unit t + i·THREADS of the tile; `from` is unit 0 of this thread. */
template <typename T, int WIDTH, int ROWS, int COLS>
__device__ __forceinline__ void load_tile(Pack<T, WIDTH> (&part)[ROWS * COLS / WIDTH / THREADS], const T *from,
                                          int64_t ld, int rows, int cols) {
    constexpr int UNITS = COLS / WIDTH; /* a row */
    rows -= (int)threadIdx.x / UNITS;   /* what remains from this thread's first element on */
    cols -= (int)threadIdx.x % UNITS * WIDTH;
#pragma unroll
    for (int i = 0; i < ROWS * COLS / WIDTH / THREADS; i++) {
        const int row = i * (THREADS / UNITS);
        if (row < rows && WIDTH <= cols) {
            part[i] = *reinterpret_cast<const Pack<T, WIDTH> *>(from + row * ld);
        } else {
#pragma unroll
            for (int e = 0; e < WIDTH; e++) part[i].at[e] = row < rows && e < cols ? from[row * ld + e] : T(0);
        }
    }
}

/* Where this thread's part of a tile begins whose rows hold UNITS units of WIDTH elements. */
template <int WIDTH, int UNITS> __device__ __forceinline__ int64_t own_offset(int64_t ld) {
    return (int)threadIdx.x / UNITS * ld + (int)threadIdx.x % UNITS * WIDTH;
}

/* At most `most`, so that it fits an int. */
__device__ __forceinline__ int clamp(int64_t left, int most) { return left < most ? (int)left : most; }

/* The part of A (TILE_M × K) this thread loaded, transposed into a_tile (K × A_LD). */
template <typename T, int WIDTH, int PARTS>
__device__ __forceinline__ void store_a(T *a_tile, const Pack<T, WIDTH> (&part)[PARTS]) {
    constexpr int UNITS = Tile<T>::K / WIDTH;
    const int row = threadIdx.x / UNITS, col = threadIdx.x % UNITS * WIDTH;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
#pragma unroll
        for (int e = 0; e < WIDTH; e++) a_tile[(col + e) * A_LD<T> + row + i * (THREADS / UNITS)] = part[i].at[e];
    }
}

/* The part of B (K × TILE_N) this thread loaded, as it is into b_tile (K × TILE_N). */
template <typename T, int WIDTH, int PARTS>
__device__ __forceinline__ void store_b(T *b_tile, const Pack<T, WIDTH> (&part)[PARTS]) {
    constexpr int UNITS = TILE_N<T> / WIDTH;
    const int row = threadIdx.x / UNITS, col = threadIdx.x % UNITS * WIDTH;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        *reinterpret_cast<Pack<T, WIDTH> *>(b_tile + (row + i * (THREADS / UNITS)) * TILE_N<T> + col) = part[i];
    }
}

/* sum (OWN_M × OWN_N) += a_tileᵀ · b_tile for this thread, whose first row and column in the tile are given. */
template <typename T>
__device__ __forceinline__ void multiply_tiles(T (&sum)[Tile<T>::OWN_M][Tile<T>::OWN_N], const T *a_tile,
                                               const T *b_tile, int row, int col) {
    constexpr int G = GROUP<T>;
    constexpr int M = Tile<T>::OWN_M;
    constexpr int N = Tile<T>::OWN_N;
#pragma unroll
    for (int p = 0; p < Tile<T>::K; p++) {
        Pack<T, G> a[M / G], b[N / G];
#pragma unroll
        for (int i = 0; i < M / G; i++) {
            a[i] = *reinterpret_cast<const Pack<T, G> *>(a_tile + p * A_LD<T> + row + i * LANES_M * G);
        }
#pragma unroll
        for (int j = 0; j < N / G; j++) {
            b[j] = *reinterpret_cast<const Pack<T, G> *>(b_tile + p * TILE_N<T> + col + j * LANES_N * G);
        }
#pragma unroll
        for (int i = 0; i < M; i++) {
#pragma unroll
            for (int j = 0; j < N; j++) sum[i][j] = fma(a[i / G].at[i % G], b[j / G].at[j % G], sum[i][j]);
        }
    }
}

/* This thread's elements into C, of which rows × cols remain from c on. */
template <typename T, int WIDTH>
__device__ __forceinline__ void store_c(const T (&sum)[Tile<T>::OWN_M][Tile<T>::OWN_N], T *c, int64_t ldc, int rows,
                                        int cols, bool accumulate) {
    constexpr int G = GROUP<T>;
    constexpr int M = Tile<T>::OWN_M;
    constexpr int N = Tile<T>::OWN_N;
#pragma unroll
    for (int i = 0; i < M; i++) {
        const int row = i / G * LANES_M * G + i % G;
        if (row >= rows) continue;
#pragma unroll
        for (int j = 0; j < N; j += WIDTH) {
            const int col = j / G * LANES_N * G + j % G;
            T *at = c + row * ldc + col;
            if (col + WIDTH <= cols) {
                Pack<T, WIDTH> *to = reinterpret_cast<Pack<T, WIDTH> *>(at), value;
                if (accumulate) value = *to;
#pragma unroll
                for (int e = 0; e < WIDTH; e++) value.at[e] = accumulate ? value.at[e] + sum[i][j + e] : sum[i][j + e];
                *to = value;
            } else {
#pragma unroll
                for (int e = 0; e < WIDTH; e++) {
                    if (col + e < cols) at[e] = accumulate ? at[e] + sum[i][j + e] : sum[i][j + e];
                }
            }
        }
    }
}

/* WIDTH: elements a global access moves, GROUP where everything is 16-byte aligned, else 1. */
template <typename T, int WIDTH>
__global__ void __launch_bounds__(THREADS, BLOCKS<T, WIDTH>) gemm_coarse(tsr_gemm_operands<T> g) {
    constexpr int M = TILE_M<T>;
    constexpr int N = TILE_N<T>;
    constexpr int K = Tile<T>::K;
    if (tsr_gemm_idle(g.predicate)) return;
    TSR_SHARED_DYNAMIC(T, shared); /* two buffers, each K × A_LD of A and K × TILE_N of B */
    T *a_tile = shared, *b_tile = shared + 2 * A_ELEMENTS<T>;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int own_row = warp / WARPS_N * (M / WARPS_M) + lane / LANES_N * GROUP<T>;
    const int own_col = warp % WARPS_N * (N / WARPS_N) + lane % LANES_N * GROUP<T>;
    const int64_t row = (int64_t)blockIdx.y * M, col = (int64_t)blockIdx.x * N;

    const int rows = clamp(g.m - row, M), cols = clamp(g.n - col, N);

    T sum[Tile<T>::OWN_M][Tile<T>::OWN_N] = {};
    Pack<T, WIDTH> a_part[M * K / WIDTH / THREADS], b_part[K * N / WIDTH / THREADS];
    const T *a = g.a, *b = g.b; /* unit 0 of this thread in the tiles at hand */
    int buffer = 0;
    if (g.k > 0) {
        a += row * g.lda + own_offset<WIDTH, K / WIDTH>(g.lda);
        b += col + own_offset<WIDTH, N / WIDTH>(g.ldb);
        load_tile<T, WIDTH, M, K>(a_part, a, g.lda, rows, clamp(g.k, K));
        load_tile<T, WIDTH, K, N>(b_part, b, g.ldb, clamp(g.k, K), cols);
        store_a(a_tile, a_part);
        store_b(b_tile, b_part);
        __syncthreads();
    }
    for (int64_t left = g.k; left > 0; left -= K) {
        const bool more = left > K;
        if (more) {
            a += K;
            b += K * g.ldb;
            load_tile<T, WIDTH, M, K>(a_part, a, g.lda, rows, clamp(left - K, K));
            load_tile<T, WIDTH, K, N>(b_part, b, g.ldb, clamp(left - K, K), cols);
        }
        multiply_tiles(sum, a_tile + buffer * A_ELEMENTS<T>, b_tile + buffer * B_ELEMENTS<T>, own_row, own_col);
        if (more) {
            buffer ^= 1; /* nobody reads it: all passed the barrier after its last use */
            store_a(a_tile + buffer * A_ELEMENTS<T>, a_part);
            store_b(b_tile + buffer * B_ELEMENTS<T>, b_part);
            __syncthreads();
        }
    }
    if (rows <= own_row || cols <= own_col) return;
    T *c = g.c + (row + own_row) * g.ldc + col + own_col;
    store_c<T, WIDTH>(sum, c, g.ldc, rows - own_row, cols - own_col, g.accumulate);
}

bool aligned16(const void *at, int64_t ld, size_t element_bytes) {
    return (uintptr_t)at % 16 == 0 && (size_t)ld * element_bytes % 16 == 0;
}

template <typename T> tsr_status launch(tsr_device *, tsr_stream *stream, const tsr_gemm_args *args) {
    const bool wide = aligned16(args->a, args->lda, sizeof(T)) && aligned16(args->b, args->ldb, sizeof(T)) &&
                      aligned16(args->c, args->ldc, sizeof(T));
    return tsr_gemm_grids<T>(args, TILE_M<T>, TILE_N<T>, [=](dim3 grid, tsr_gemm_operands<T> part) {
        return wide ? TSR_LAUNCH((gemm_coarse<T, GROUP<T>>), grid, THREADS, SHARED_BYTES<T>, stream, part)
                    : TSR_LAUNCH((gemm_coarse<T, 1>), grid, THREADS, SHARED_BYTES<T>, stream, part);
    });
}

template <typename T> tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    return tsr_gemm_describe(gemm_coarse<T, GROUP<T>>, TILE_M<T>, TILE_N<T>, Tile<T>::K, THREADS, SHARED_BYTES<T>,
                             sizeof(T), m, n, k, out);
}

template <typename T> constexpr tsr_gemm_kernel table(tsr_dtype type) {
    return tsr_gemm_cuda_kernel(type, type,
                                {.name = "coarse",
                                 .what = "each thread 8 x 8 elements in registers, any shape",
                                 .speed_rank = 50,
                                 .predicated = true,
                                 .shape = shape<T>,
                                 .launch = launch<T>,
                                 .launch_reproducible = launch<T>});
}

} // namespace

const tsr_gemm_kernel tsr_gemm_coarse_f32 = table<float>(TSR_F32);
const tsr_gemm_kernel tsr_gemm_coarse_f64 = table<double>(TSR_F64);
