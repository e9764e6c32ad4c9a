/* Operation: C = A·B or C += A·B for many products, fp64, or f16 and bf16 with C in fp32, row-major, any shape; on the
 * tensor cores, by products of a warp.
 * Mapping: a block makes a tile of one product: 64 × 64, or more where products are larger. Panels come by asynchronous
 * copies where rows begin at multiples of 16 bytes. fp64: a lane has the same four elements along k of A and of B,
 * 2t, 2t + 1, 2t + 8, 2t + 9, so that reads of A are 16 bytes wide. 16-bit: ldmatrix brings fragments, and turns B's.
 * Rows of a stage stand so far apart that no read meets a bank twice.
 * A block uses: 128 or 256 threads, 39 to 133 KiB of shared memory.
 * 16-bit products of whole tiles of 128 rows, one below the other, go to `wgmma` (tsr_wgmma_stack).
 * Requirements: sm_90 for fp64 (m16n8k16), sm_80 for the others; built for sm_90a.
 * Arithmetic intensity: of a tile of 64 × 64 8 flop/byte in fp64, 32 in bf16.
 * Measured: docs/measurements/gpu_batched.md.
 * Reference: PTX ISA 8.0, mma.m16n8k16 and ldmatrix. */
#include "kernels/gemm/hopper/pipeline.h"

#include "kernels/gemm/batched/batched.h"

namespace {

using batched::Work;

/* ---- storing --------------------------------------------------------------------------------- */

/* Neighbours at an even column. */
template <typename In, typename T, typename Pair>
__device__ __forceinline__ void store_pair(const Work<In, T> &w, T *c, int row, int col, int rows, int cols, Pair x) {
    if (row >= rows) return;
    T *at = c + row * w.ldc + col;
    if (w.wide_c && col + 1 < cols) {
        Pair *both = reinterpret_cast<Pair *>(at);
        if (w.accumulate) {
            x.x += both->x;
            x.y += both->y;
        }
        *both = x;
        return;
    }
    if (col < cols) at[0] = w.accumulate ? at[0] + x.x : x.x;
    if (col + 1 < cols) at[1] = w.accumulate ? at[1] + x.y : x.y;
}

/* Where a warp's part of a tile begins, and a lane's place in a fragment: 4g + t. */
template <int WM, int WN, int WARPS_N> struct Own {
    int row, col;
    int lane, g, t;
    __device__ __forceinline__ Own() {
        const int warp = (int)threadIdx.x / 32;
        lane = (int)threadIdx.x % 32;
        g = lane / 4;
        t = lane % 4;
        row = warp / WARPS_N * WM;
        col = warp % WARPS_N * WN;
    }
};

/* A warp's part of a tile: of each 16 × 8 of it a lane has two neighbours in row g, and two in row g + 8. */
template <typename Pair, typename Own, typename In, typename T, int DOWN, int ACROSS>
__device__ __forceinline__ void store_sums(const Work<In, T> &w, T *c, int rows, int cols,
                                           const T (&sum)[DOWN][ACROSS][4]) {
    const Own own;
#pragma unroll
    for (int i = 0; i < DOWN; i++)
#pragma unroll
        for (int j = 0; j < ACROSS; j++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                store_pair(w, c, own.row + i * 16 + h * 8 + own.g, own.col + j * 8 + 2 * own.t, rows, cols,
                           Pair{sum[i][j][2 * h], sum[i][j][2 * h + 1]});
}

/* ---- fp64 ------------------------------------------------------------------------------------ */

template <int M, int N, int WM, int WN, int MOST_STAGES, int LEAST_BLOCKS> struct Double {
    typedef double In;
    typedef double Out;
    static constexpr int TM = M, TN = N;
    static constexpr int TK = 16;
    static constexpr int STAGES = MOST_STAGES, BLOCKS = LEAST_BLOCKS;
    static constexpr bool EXISTS = hopper::FOR_SM90A;
    static constexpr int THREADS = 32 * (TM / WM) * (TN / WN);
    static constexpr int PITCH_A = TK, PITCH_B = TN + 2;
    typedef ::Own<WM, WN, TN / WN> Own;
    typedef double Sums[WM / 16][WN / 8][4];

    /* The halves of odd rows change places, as their 128 bytes meet all banks. */
    static __device__ __forceinline__ int place_a(int row, int col) { return row * PITCH_A + (col ^ (row & 1) * 8); }

    static __device__ __forceinline__ void multiply(const double *a, const double *b, Sums &sum) {
        const Own own;
        double left[WM / 16][8];
#pragma unroll
        for (int i = 0; i < WM / 16; i++)
#pragma unroll
            for (int h = 0; h < 4; h++) { /* rows g and g + 8, elements 2t and 2t + 8 and their neighbours along k */
                const double2 x = *reinterpret_cast<const double2 *>(
                    a + place_a(own.row + i * 16 + h % 2 * 8 + own.g, 2 * own.t + h / 2 * 8));
                left[i][h / 2 * 4 + h % 2] = x.x;
                left[i][h / 2 * 4 + 2 + h % 2] = x.y;
            }
        b += 2 * own.t * PITCH_B + own.col + own.g;
#pragma unroll
        for (int j = 0; j < WN / 8; j++) {
            const double *x = b + j * 8;
            const double right[4] = {x[0], x[PITCH_B], x[8 * PITCH_B], x[9 * PITCH_B]};
#pragma unroll
            for (int i = 0; i < WM / 16; i++) hopper::mma_m16n8k16(sum[i][j], left[i], right);
        }
    }

    static __device__ __forceinline__ void store(const Work<double, double> &w, double *c, int rows, int cols,
                                                 const Sums &sum) {
        store_sums<double2, Own>(w, c, rows, cols, sum);
    }
};

/* ---- f16, bf16 ------------------------------------------------------------------------------- */

template <tsr_dtype TYPE, int M, int N, int WM, int WN, int MOST_STAGES, int LEAST_BLOCKS, int PANEL = 32> struct Half {
    typedef uint16_t In;
    typedef float Out;
    static constexpr int TM = M, TN = N;
    static constexpr int TK = PANEL;
    static constexpr int STAGES = MOST_STAGES, BLOCKS = LEAST_BLOCKS;
    static constexpr bool EXISTS = hopper::FOR_SM90A;
    static constexpr int THREADS = 32 * (TM / WM) * (TN / WN);
    static constexpr int PITCH_A = TK + 8, PITCH_B = TN + 8;
    typedef ::Own<WM, WN, TN / WN> Own;
    typedef float Sums[WM / 16][WN / 8][4];

    static __device__ __forceinline__ int place_a(int row, int col) { return row * PITCH_A + col; }

    static __device__ __forceinline__ void multiply(const uint16_t *a, const uint16_t *b, Sums &sum) {
        const Own own;
        /* lane l says where row l % 8 of the matrix l / 8 of 8 × 8 begins; the second is 8 rows below the first */
        a += (own.row + own.lane % 16) * PITCH_A + own.lane / 16 * 8;
        b += own.lane % 16 * PITCH_B + own.col + own.lane / 16 * 8;
#pragma unroll
        for (int k = 0; k < TK; k += 16) {
            uint32_t left[WM / 16][4], right[WN / 16][4];
#pragma unroll
            for (int i = 0; i < WM / 16; i++) hopper::load_matrices(left[i], a + i * 16 * PITCH_A + k);
#pragma unroll
            for (int j = 0; j < WN / 16; j++) hopper::load_matrices_turned(right[j], b + k * PITCH_B + j * 16);
#pragma unroll
            for (int j = 0; j < WN / 8; j++)
#pragma unroll
                for (int i = 0; i < WM / 16; i++)
                    hopper::mma_m16n8k16<TYPE == TSR_BF16>(sum[i][j], left[i], right[j / 2][j % 2 * 2],
                                                           right[j / 2][j % 2 * 2 + 1]);
        }
    }

    static __device__ __forceinline__ void store(const Work<uint16_t, float> &w, float *c, int rows, int cols,
                                                 const Sums &sum) {
        store_sums<float2, Own>(w, c, rows, cols, sum);
    }
};

/* ---- the kernels as the contract wants them -------------------------------------------------- */

/* Tiles of 128 where they are mostly full. */
bool in_large_tiles(int64_t m, int64_t n) { return m > 96 && n > 96; }

template <typename Small, typename Large>
tsr_status launch(tsr_device *, tsr_stream *stream, const tsr_gemm_args *args) {
    return in_large_tiles(args->m, args->n) ? batched::launch<Large>(stream, args)
                                            : batched::launch<Small>(stream, args);
}

template <typename Small, typename Large>
tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    TSR_TRY((in_large_tiles(m, n) ? batched::shape<Large> : batched::shape<Small>)(m, n, k, out));
    out->bytes += (double)(sizeof(typename Small::Out) - sizeof(typename Small::In)) * (double)m * (double)n;
    return TSR_OK;
}

typedef Double<64, 64, 16, 64, 3, 3> DoubleTile; /* larger ones are no faster: H200, 2026-11-23 */
template <tsr_dtype TYPE> using HalfSmall = Half<TYPE, 64, 64, 32, 32, 4, 5>;
template <tsr_dtype TYPE> using HalfLarge = Half<TYPE, 128, 128, 64, 64, 4, 2>;

constexpr tsr_gemm_kernel sm_90(tsr_dtype input, tsr_dtype type, tsr_gemm_kernel own) {
    own.min_arch = own.max_arch = 90;
    return tsr_gemm_cuda_kernel(input, type, own);
}

/* Whole tiles of `wgmma` are twice as fast. */
template <tsr_dtype TYPE> tsr_status launch_halves(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    if (tsr_wgmma_stacks(args)) return tsr_wgmma_stack(stream, TYPE, args);
    return launch<HalfSmall<TYPE>, HalfLarge<TYPE>>(device, stream, args);
}

/* As `wgmma`: the tensor cores add 16 products at a time. */
constexpr double HALF_ERROR_FACTOR = 2.0;

template <tsr_dtype TYPE> constexpr tsr_gemm_kernel table(const tsr_gemm_kernel *own) {
    return sm_90(TYPE, TSR_F32,
                 {.name = "batched",
                  .what = "products of a warp on the tensor cores, many small products in a launch",
                  .accuracy = TSR_ACCURACY_FAST,
                  .error_factor = HALF_ERROR_FACTOR,
                  .error_grows = true,
                  .speed_rank = 18,
                  .batched = own,
                  .shape = shape<HalfSmall<TYPE>, HalfLarge<TYPE>>,
                  .launch = launch_halves<TYPE>});
}

} // namespace

const tsr_gemm_kernel tsr_gemm_batched_f64 =
    sm_90(TSR_F64, TSR_F64,
          {.name = "batched",
           .what = "products of a warp on the fp64 tensor cores, many small products in a launch",
           .speed_rank = 18,
           .batched = &tsr_gemm_batched_f64,
           .shape = shape<DoubleTile, DoubleTile>,
           .launch = launch<DoubleTile, DoubleTile>});
const tsr_gemm_kernel tsr_gemm_batched_f16 = table<TSR_F16>(&tsr_gemm_batched_f16);
const tsr_gemm_kernel tsr_gemm_batched_bf16 = table<TSR_BF16>(&tsr_gemm_batched_bf16);
