/* Products of residues on sm_90a, for the probes of exact products: C = A·Bᵀ mod p for each of several moduli, where
 * the planes of A (m × k) and B (n × k) hold residues in [-p/2, p/2], both K-major and stacked along rows, and the
 * planes of C (m × n) the products' residues.
 * Mapping: blocks of 128 × 256 of C in clusters of two that share B's tile by TMA multicast; a producer warp, two
 *   consumer warpgroups of 64 × 256; 4 pipeline stages of 128 along k; the epilogue reduces int32 to int8 and stores
 *   by TMA. Persistent over all planes.
 * k up to 133,144: beyond it sums of 128·128 leave int32. m and n multiples of 256, k of 128. */
#ifndef TSR_TESTS_BENCH_INT8_PRODUCT_H
#define TSR_TESTS_BENCH_INT8_PRODUCT_H

#include <cstdio>
#include <cstdlib>

#include <cuda.h>

#include "kernels/gemm/hopper/pipeline.h"

#define CUDA(call) check((call) == cudaSuccess, #call)

static void check(bool fine, const char *what) {
    if (fine) return;
    fprintf(stderr, "probe: %s failed: %s\n", what, cudaGetErrorString(cudaGetLastError()));
    exit(1);
}

namespace {

/* a block's tile of C; bytes along k a stage */
constexpr int M = 128;
constexpr int N = 256;
constexpr int K = 128;
constexpr int STAGES = 4;
constexpr int CLUSTER = 2;
constexpr int GROUPS = 2;
constexpr int THREADS = (GROUPS + 1) * 128;
constexpr int A_BYTES = M * K;
constexpr int B_BYTES = N * K;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int BOX_BYTES = 64 * 128; /* of C: 64 rows of 128 bytes, swizzled */
constexpr size_t SHARED_BYTES = 1024 + STAGES * STAGE_BYTES + GROUPS * 2 * BOX_BYTES + 2 * STAGES * sizeof(uint64_t);
constexpr int BAND = 8; /* rows of tiles that clusters walk together */

constexpr int PLANES_MAX = 20;

struct Work {
    int planes, tiles_m, tiles_n, panels; /* tiles of a cluster: 256 × 256 */
    int modulus[PLANES_MAX];
    unsigned inverse[PLANES_MAX]; /* 2^32 / modulus, rounded down */
    __host__ __device__ int tiles() const { return planes * tiles_m * tiles_n; }
};

/* Where tile `index` begins, in tiles of its plane. */
__device__ __forceinline__ void tile_of(const Work &w, int index, int *plane, int *row, int *col) {
    *plane = index / (w.tiles_m * w.tiles_n);
    index -= *plane * (w.tiles_m * w.tiles_n);
    const int first = index / (BAND * w.tiles_n) * BAND, within = index - first * w.tiles_n;
    const int rows = w.tiles_m - first < BAND ? w.tiles_m - first : BAND;
    *row = first + within % rows;
    *col = within / rows;
}

#define R8(d, i)                                                                                                       \
    "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3]), "+r"(d[i + 4]), "+r"(d[i + 5]), "+r"(d[i + 6]),        \
        "+r"(d[i + 7])
/* d (64 × 256, int32) = or, with add, += a (64 × 32) times b (256 × 32) transposed, int8, both K-major with a
 * swizzle of 128 bytes. */
__device__ __forceinline__ void wgmma_s8(int (&d)[128], uint64_t a, uint64_t b, bool add) {
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                 " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
                 " %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
                 "%128, %129, add;\n"
                 "}"
                 : R8(d, 0), R8(d, 8), R8(d, 16), R8(d, 24), R8(d, 32), R8(d, 40), R8(d, 48), R8(d, 56), R8(d, 64),
                   R8(d, 72), R8(d, 80), R8(d, 88), R8(d, 96), R8(d, 104), R8(d, 112), R8(d, 120)
                 : "l"(a), "l"(b), "r"((int)add));
}
__device__ __forceinline__ void hold(int (&d)[128]) {
#pragma unroll
    for (int i = 0; i < 128; i++) asm volatile("" : "+r"(d[i])::"memory");
}

/* x mod p in [-p/2, p/2]. The quotient is off by half of p at most, before it is rounded down. */
__device__ __forceinline__ int residue(int x, int modulus, unsigned inverse) {
    const int quotient = __mulhi(x, (int)inverse), half = modulus >> 1;
    int r = x - quotient * modulus; /* in [-p/2, 3p/2) */
    r -= r > half ? modulus : 0;
    return r - (r > half ? modulus : 0);
}

typedef hopper::PipelineState<STAGES> Place;

struct Ring {
    unsigned char *stages, *boxes;
    uint64_t *full, *empty;
};

__device__ __forceinline__ void produce(const CUtensorMap *map_a, const CUtensorMap *map_b, const Work &w,
                                        const Ring &ring) {
    const int rank = (int)hopper::cluster_rank();
    Place place = {0, 0};
    for (int tile = (int)blockIdx.x / CLUSTER; tile < w.tiles(); tile += (int)gridDim.x / CLUSTER) {
        int plane, row, col;
        tile_of(w, tile, &plane, &row, &col);
        /* planes are stacked */
        row += plane * w.tiles_m;
        col += plane * w.tiles_n;
        for (int p = 0; p < w.panels; p++, place.step()) {
            unsigned char *stage = ring.stages + place.stage * STAGE_BYTES;
            hopper::barrier_wait(ring.empty + place.stage, place.phase ^ 1);
            hopper::barrier_expect(ring.full + place.stage, STAGE_BYTES);
            hopper::copy_tensor(stage, map_a, (row * CLUSTER + rank) * M, p * K, ring.full + place.stage);
            hopper::copy_tensor_to(3, stage + A_BYTES + rank * (B_BYTES / 2), map_b, col * N + rank * (N / 2), p * K,
                                   ring.full + place.stage);
        }
    }
    for (int i = 0; i < STAGES; i++, place.step()) hopper::barrier_wait(ring.empty + place.stage, place.phase ^ 1);
}

__device__ __forceinline__ void release(const Ring &ring, int slot) {
    if (threadIdx.x % 32 < CLUSTER) hopper::barrier_arrive_at(ring.empty + slot, threadIdx.x % 32);
}

/* Two bytes of each of two rows from neighbours in pairs of lanes make a word each: even lanes get the upper row's,
 * odd ones the lower's. */
__device__ __forceinline__ unsigned word_of(int a0, int a1, int b0, int b1) {
    const unsigned upper = __byte_perm(a0, a1, 0x0040), lower = __byte_perm(b0, b1, 0x0040);
    const bool odd = threadIdx.x & 1;
    const unsigned given = __shfl_xor_sync(0xffffffffu, odd ? upper : lower, 1), own = odd ? lower : upper;
    return odd ? __byte_perm(given, own, 0x5410) : __byte_perm(own, given, 0x5410);
}

__device__ __forceinline__ void store(const CUtensorMap *map_c, const Work &w, const Ring &ring, const int (&sum)[128],
                                      int plane, int64_t row, int64_t col) {
    const int modulus = w.modulus[plane];
    const unsigned inverse = w.inverse[plane];
    const int group = (int)threadIdx.x / 128, thread = (int)threadIdx.x % 128;
    unsigned char *boxes = ring.boxes + group * 2 * BOX_BYTES;
    if (thread == 0) hopper::store_wait<0>();
    hopper::named_wait(1 + group, 128); /* the boxes are free */
    const int own_row = thread / 32 * 16 + thread % 32 / 4 + (thread & 1 ? 8 : 0);
#pragma unroll
    for (int j = 0; j < 32; j++) {
        const int *s = sum + 4 * j;
        const unsigned word = word_of(residue(s[0], modulus, inverse), residue(s[1], modulus, inverse),
                                      residue(s[2], modulus, inverse), residue(s[3], modulus, inverse));
        const int byte = 8 * j + thread % 4 / 2 * 4, unit = byte % 128 / 16 ^ own_row % 8;
        *reinterpret_cast<unsigned *>(boxes + byte / 128 * BOX_BYTES + own_row * 128 + unit * 16 + byte % 16) = word;
    }
    hopper::fence_copies();
    hopper::named_wait(1 + group, 128);
    if (thread != 0) return;
    for (int box = 0; box < 2; box++)
        hopper::store_tensor(map_c, (int)row, (int)col + box * 128, boxes + box * BOX_BYTES, hopper::evict_first());
    hopper::store_commit();
}

/* The groups end a tile one after the other, so that one reduces and stores while the other multiplies: group 1
 * leaves its last panels to group 0. */
constexpr int LAST = STAGES - 1;

__device__ __forceinline__ void take_turn() {
    hopper::named_wait(3 + (int)threadIdx.x / 128, GROUPS * 128);
    hopper::named_arrive(3 + ((int)threadIdx.x / 128 ^ 1), GROUPS * 128);
}

__device__ __forceinline__ void consume(const CUtensorMap *map_c, const Work &w, const Ring &ring) {
    const int group = (int)threadIdx.x / 128;
    Place place = {0, 0};
    if (group == 1) hopper::named_arrive(3, GROUPS * 128); /* the other begins */
    for (int tile = (int)blockIdx.x / CLUSTER; tile < w.tiles(); tile += (int)gridDim.x / CLUSTER) {
        int sum[128];
        int before = 0;
        int plane, row, col;
        for (int p = 0; p < w.panels; p++) {
            if (group == 1 && p == w.panels - LAST) take_turn();
            const uint32_t stage = hopper::shared_address(ring.stages) + place.stage * STAGE_BYTES;
            const uint64_t a = hopper::wgmma_operand(stage + group * 64 * K),
                           b = hopper::wgmma_operand(stage + A_BYTES);
            hopper::barrier_wait(ring.full + place.stage, place.phase);
            hopper::wgmma_fence();
#pragma unroll
            for (int step = 0; step < K / 32; step++) wgmma_s8(sum, a + 2 * step, b + 2 * step, p > 0 || step > 0);
            hopper::wgmma_commit();
            if (p > 0) {
                hopper::wgmma_wait<1>();
                release(ring, before);
            }
            before = place.stage;
            place.step();
        }
        if (group == 0) take_turn();
        hopper::wgmma_wait<0>();
        hold(sum);
        release(ring, before);
        tile_of(w, tile, &plane, &row, &col);
        row += plane * w.tiles_m;
        store(map_c, w, ring, sum, plane, (int64_t)(row * CLUSTER + (int)hopper::cluster_rank()) * M + group * 64,
              (int64_t)col * N);
    }
    if (group == 0) hopper::named_wait(3, GROUPS * 128);
    if (threadIdx.x % 128 == 0) hopper::store_wait<0>();
}

__global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    product(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
            const __grid_constant__ CUtensorMap map_c, const __grid_constant__ Work w) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ unsigned char shared[];
    Ring ring;
    ring.stages = hopper::shared_aligned(shared, 1024);
    ring.boxes = ring.stages + STAGES * STAGE_BYTES;
    ring.full = reinterpret_cast<uint64_t *>(ring.boxes + GROUPS * 2 * BOX_BYTES);
    ring.empty = ring.full + STAGES;
    hopper::barriers_init<STAGES>(ring.full, ring.empty, 1, GROUPS * 4 * CLUSTER);
    __syncthreads();
    hopper::cluster_barrier();
    if (threadIdx.x >= GROUPS * 128) {
        hopper::registers_give<40>();
        if (threadIdx.x == GROUPS * 128) produce(&map_a, &map_b, w, ring);
    } else {
        hopper::registers_take<232>();
        consume(&map_c, w, ring);
    }
#endif
}

CUtensorMap map_of(void *data, int64_t rows, int64_t cols, int box_rows) {
    const cuuint64_t extent[2] = {(cuuint64_t)cols, (cuuint64_t)rows}, row_bytes[1] = {(cuuint64_t)cols};
    const cuuint32_t box[2] = {128, (cuuint32_t)box_rows}, step[2] = {1, 1};
    CUtensorMap map;
    check(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, data, extent, row_bytes, box, step,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS,
          "a tensor map");
    return map;
}

/* Planes of m × k, n × k and m × n bytes. */
struct Products {
    CUtensorMap a, b, c;
    Work w;
    void launch() const {
        product<<<132, THREADS, SHARED_BYTES>>>(a, b, c, w);
        CUDA(cudaGetLastError());
    }
};

Products products_of(void *a, void *b, void *c, int64_t m, int64_t n, int64_t k, int planes, const int *moduli) {
    Products p = {map_of(a, planes * m, k, M), map_of(b, planes * n, k, N / 2), map_of(c, planes * m, n, 64), {}};
    p.w.planes = planes;
    p.w.tiles_m = (int)(m / (CLUSTER * M));
    p.w.tiles_n = (int)(n / N);
    p.w.panels = (int)(k / K);
    for (int i = 0; i < planes; i++) {
        p.w.modulus[i] = moduli[i];
        p.w.inverse[i] = (unsigned)((1ull << 32) / moduli[i]);
    }
    CUDA(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SHARED_BYTES));
    return p;
}

template <typename F> double seconds_of(int count, F launch) {
    cudaEvent_t begin, end;
    float milliseconds;
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    CUDA(cudaEventRecord(begin));
    for (int i = 0; i < count; i++) launch();
    CUDA(cudaEventRecord(end));
    CUDA(cudaEventSynchronize(end));
    CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    return milliseconds / 1e3 / count;
}

} // namespace

#endif
