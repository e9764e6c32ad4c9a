/* Operation: C = A·B or C += A·B for many products, fp32, row-major, any shape; IEEE multiply-adds on the CUDA cores.
 * Mapping: a block makes a tile of 64 × 64 or 64 × 128 of one product, a warp 32 × 64 of it, a thread 8 × 8. Panels of
 * 16 along k come by asynchronous copies where rows begin at multiples of 16 bytes. A's panel stands row by row, so
 * that nothing is turned on the way; a thread reads four elements along k of its rows at a time.
 * A block uses: 64 threads and 27 KiB of shared memory, or 128 threads and 39 KiB.
 * Requirements: none.
 * Arithmetic intensity: 16 or 21 flop/byte.
 * Measured: docs/measurements/gpu_batched.md.
 * Reference: Volkov and Demmel, Benchmarking GPUs to tune dense linear algebra, SC 2008. */
#include "kernels/gemm/batched/batched.h"

namespace {

template <int M, int N, int MOST_STAGES, int LEAST_BLOCKS> struct Simt {
    typedef float In;
    typedef float Out;
    static constexpr int TM = M, TN = N;
    static constexpr int TK = 16;
    static constexpr int STAGES = MOST_STAGES, BLOCKS = LEAST_BLOCKS;
    static constexpr bool EXISTS = true;
    static constexpr int OWN = 8;                            /* rows, and columns, of a thread */
    static constexpr int WARP_M = 4 * OWN, WARP_N = 8 * OWN; /* 4 × 8 lanes */
    static constexpr int WARPS_N = TN / WARP_N;
    static constexpr int THREADS = 32 * (TM / WARP_M) * WARPS_N;
    static constexpr int PITCH_A = TK + 4, PITCH_B = TN; /* four rows of A's panel lie in different banks */
    typedef float Sums[OWN][OWN];

    static __device__ __forceinline__ int place_a(int row, int col) { return row * PITCH_A + col; }

    /* Neighbouring lanes share columns, so that reads of both operands meet in few banks. A thread's rows are 4 apart;
     * its columns are two groups of 4, 32 apart. */
    static __device__ __forceinline__ int first_row() {
        const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
        return warp / WARPS_N * WARP_M + lane / 16 * 2 + lane % 2;
    }
    static __device__ __forceinline__ int first_col() {
        const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
        return warp % WARPS_N * WARP_N + lane / 2 % 8 * 4;
    }

    static __device__ __forceinline__ void take(float *own, const float *from) {
        const float4 x = *reinterpret_cast<const float4 *>(from);
        own[0] = x.x;
        own[1] = x.y;
        own[2] = x.z;
        own[3] = x.w;
    }

    static __device__ __forceinline__ void multiply(const float *a, const float *b, Sums &sum) {
        a += first_row() * PITCH_A;
        b += first_col();
#pragma unroll
        for (int k = 0; k < TK; k += 4) {
            float own_a[OWN][4];
#pragma unroll
            for (int i = 0; i < OWN; i++) take(own_a[i], a + i * 4 * PITCH_A + k);
#pragma unroll
            for (int l = 0; l < 4; l++) {
                float own_b[OWN];
                take(own_b, b + (k + l) * PITCH_B);
                take(own_b + 4, b + (k + l) * PITCH_B + 32);
#pragma unroll
                for (int i = 0; i < OWN; i++)
#pragma unroll
                    for (int j = 0; j < OWN; j++) sum[i][j] = fma(own_a[i][l], own_b[j], sum[i][j]);
            }
        }
    }

    static __device__ __forceinline__ void store(const batched::Work<float, float> &w, float *c, int rows, int cols,
                                                 const Sums &sum) {
        const int row = first_row(), col = first_col();
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            if (row + i * 4 >= rows) continue;
#pragma unroll
            for (int g = 0; g < 2; g++) store_group(w, c + (row + i * 4) * w.ldc, col + g * 32, cols, sum[i] + g * 4);
        }
    }

    static __device__ __forceinline__ void store_group(const batched::Work<float, float> &w, float *c, int col,
                                                       int cols, const float *sum) {
        if (w.wide_c && col + 4 <= cols) {
            float4 *at = reinterpret_cast<float4 *>(c + col);
            float4 x = {sum[0], sum[1], sum[2], sum[3]};
            if (w.accumulate) {
                const float4 before = *at;
                x = {before.x + x.x, before.y + x.y, before.z + x.z, before.w + x.w};
            }
            *at = x;
            return;
        }
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (col + e < cols) c[col + e] = w.accumulate ? c[col + e] + sum[e] : sum[e];
    }
};

typedef Simt<64, 64, 3, 6> Small;
typedef Simt<64, 128, 3, 3> Large;

/* Wider tiles where they are mostly full. */
bool in_large_tiles(int64_t m, int64_t n) { return m > 64 && n > 96; }

tsr_status launch(tsr_device *, tsr_stream *stream, const tsr_gemm_args *args) {
    return in_large_tiles(args->m, args->n) ? batched::launch<Large>(stream, args)
                                            : batched::launch<Small>(stream, args);
}

tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    return in_large_tiles(m, n) ? batched::shape<Large>(m, n, k, out) : batched::shape<Small>(m, n, k, out);
}

} // namespace

const tsr_gemm_kernel tsr_gemm_batched_f32 =
    tsr_gemm_cuda_kernel(TSR_F32, TSR_F32,
                         {.name = "batched",
                          .what = "register tiles, many small products in a launch",
                          .speed_rank = 18,
                          .batched = &tsr_gemm_batched_f32,
                          .shape = shape,
                          .launch = launch});
