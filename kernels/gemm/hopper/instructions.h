/* Instructions of sm_90 and newer that CUDA C has no function for, each in a function of its own: barriers in shared
 * memory that count bytes, bulk copies that complete on them, clusters, tensor cores. PTX ISA 8.0, "mbarrier",
 * "cp.async.bulk" and "wgmma". Device code only, under __CUDA_ARCH__ >= 900. Tests on the host have a model of the same
 * functions in its place (tests/kernels/gemm/hopper/model.h). */
#ifndef TSR_KERNELS_GEMM_HOPPER_INSTRUCTIONS_H
#define TSR_KERNELS_GEMM_HOPPER_INSTRUCTIONS_H

#include <cstdint>

namespace hopper {

__device__ __forceinline__ uint32_t shared_address(const void *at) { return (uint32_t)__cvta_generic_to_shared(at); }

/* `arrivals` arrivals and all expected bytes complete a phase. One thread; then fence_init and a block barrier. */
__device__ __forceinline__ void barrier_init(uint64_t *barrier, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
/* Makes initialised barriers visible to TMA. */
__device__ __forceinline__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ void barrier_arrive(uint64_t *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/* One arrival, and `bytes` more to come in this phase. */
__device__ __forceinline__ void barrier_expect(uint64_t *barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}
/* Waits until the phase of this parity is complete. */
__device__ __forceinline__ void barrier_wait(uint64_t *barrier, uint32_t parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again_%=:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra finished_%=;\n"
                 "bra again_%=;\n"
                 "finished_%=:\n"
                 "}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* Whether it is complete, without waiting for long. */
__device__ __forceinline__ bool barrier_test(uint64_t *barrier, uint32_t parity) {
    uint32_t done;
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, done;\n"
                 "}"
                 : "=r"(done)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
    return done != 0;
}

/* Named barriers of a block, id 1 to 15: a phase is complete when `threads` threads have waited or only arrived.
 * Whole warps. */
__device__ __forceinline__ void named_wait(int id, int threads) {
    asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_arrive(int id, int threads) {
    asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* BYTES (4, 8) from global memory to an address of shared memory, or, unless `inside`, as many zeros; under way on
 * return. */
template <int BYTES> __device__ __forceinline__ void copy_async(uint32_t to, const void *from, bool inside) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES),
                 "r"(inside ? BYTES : 0)
                 : "memory");
}
/* This thread arrives when all it asked copy_async for is there. */
__device__ __forceinline__ void copies_arrive(uint64_t *barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/* Until all of it is. */
__device__ __forceinline__ void copies_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/* 16 bytes, or zeros; around the L1 cache. */
__device__ __forceinline__ void copy_async_16(uint32_t to, const void *from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
/* This thread's copies since the last group are a group. */
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Until all but the last PENDING groups of this thread are there. */
template <int PENDING> __device__ __forceinline__ void copies_wait_group() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* bytes (a multiple of 16, both ends 16-byte aligned) from global to shared memory; completes on the barrier. One
 * thread. */
__device__ __forceinline__ void copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

/* The box of a tensor map (tensor_map.h, a __grid_constant__ argument) whose first element is (row, col), from
 * global to shared memory, 128-byte aligned (1024 with a swizzle of 128); completes on the barrier with the bytes of
 * the whole box, also at the edges. One thread. */
__device__ __forceinline__ void copy_tensor(void *to, const void *map, int row, int col, uint64_t *barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            shared_address(to)),
        "l"(map), "r"(col), "r"(row), "r"(shared_address(barrier))
        : "memory");
}

/* ---- clusters and tensor copies that involve more than one block, or go the other way. PTX ISA 8.0. ---- */

__device__ __forceinline__ uint32_t cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
/* All threads of all blocks of the cluster, after fence_init: from here on the blocks may use each other's barriers.
 * It orders nothing else in memory, as a release would, which waits for all stores under way. */
__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
}
/* Arrives at the same barrier of block `rank` of the cluster. Not .release.cluster, which would wait for all stores
 * under way: what is handed over has been read by then, and nothing written. */
__device__ __forceinline__ void barrier_arrive_at(uint64_t *barrier, uint32_t rank) {
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
                 "}" ::"r"(shared_address(barrier)),
                 "r"(rank)
                 : "memory");
}

__device__ __forceinline__ void prefetch_map(const void *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/* What is copied so leaves the L2 cache before other lines, or after them. */
__device__ __forceinline__ uint64_t evict_first() {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ __forceinline__ uint64_t evict_last() {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* As copy_tensor, with one of these policies. */
__device__ __forceinline__ void copy_tensor_keep(void *to, const void *map, int row, int col, uint64_t *barrier,
                                                 uint64_t policy) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
                 "[%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
                 "l"(map), "r"(col), "r"(row), "r"(shared_address(barrier)), "l"(policy)
                 : "memory");
}
/* As copy_tensor, into the same place of every block of the cluster that `blocks` has a bit for; completes on the
 * barriers there. */
__device__ __forceinline__ void copy_tensor_to(uint16_t blocks, void *to, const void *map, int row, int col,
                                               uint64_t *barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
                 "l"(map), "r"(col), "r"(row), "r"(shared_address(barrier)), "h"(blocks)
                 : "memory");
}
/* A box of a tensor map from global memory into the L2 cache. One thread. */
__device__ __forceinline__ void prefetch_tensor(const void *map, int row, int col) {
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(map), "r"(col), "r"(row)
                 : "memory");
}
/* A box from shared to global memory; one thread, after fence_copies by those that wrote the box, and a barrier. */
__device__ __forceinline__ void store_tensor(const void *map, int row, int col, const void *from, uint64_t policy) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::"l"(map),
        "r"(col), "r"(row), "r"(shared_address(from)), "l"(policy)
        : "memory");
}
/* This thread's stores since the last group are a group. */
__device__ __forceinline__ void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* Until what all but the last PENDING groups of this thread's stores read from shared memory may be overwritten. */
template <int PENDING> __device__ __forceinline__ void store_wait() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}
/* Makes this thread's writes to shared memory visible to TMA and the tensor cores. */
__device__ __forceinline__ void fence_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- wgmma: products on the tensor cores by a warpgroup, operands in shared memory. sm_90a only. PTX ISA 8.0,
 * "wgmma". ---- */

/* A whole warpgroup gives registers back, or takes more; once, before its part of the work begins. */
template <int COUNT> __device__ __forceinline__ void registers_give() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> __device__ __forceinline__ void registers_take() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/* Before the first wgmma, and whenever registers it uses were written by other instructions. */
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* Until at most PENDING groups are under way. */
template <int PENDING> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
/* Keeps the compiler from moving uses of registers that a wgmma writes across this point. */
template <int COUNT> __device__ __forceinline__ void wgmma_hold(float (&d)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) asm volatile("" : "+f"(d[i])::"memory");
}
template <int COUNT> __device__ __forceinline__ void wgmma_hold(int (&d)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) asm volatile("" : "+r"(d[i])::"memory");
}

/* The registers of a product in the text of an instruction, and as its operands. */
#define TSR_HOPPER_32                                                                                                  \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "   \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define TSR_HOPPER_64                                                                                                  \
    TSR_HOPPER_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, "  \
                  "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TSR_HOPPER_96                                                                                                  \
    TSR_HOPPER_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, "  \
                  "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TSR_HOPPER_128                                                                                                 \
    TSR_HOPPER_96 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "     \
                  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define TSR_HOPPER_8(d, i)                                                                                             \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),        \
        "+f"(d[i + 7])
#define TSR_HOPPER_OUT_32(d, i)                                                                                        \
    TSR_HOPPER_8(d, i), TSR_HOPPER_8(d, i + 8), TSR_HOPPER_8(d, i + 16), TSR_HOPPER_8(d, i + 24)
#define TSR_HOPPER_OUT_64(d) TSR_HOPPER_OUT_32(d, 0), TSR_HOPPER_OUT_32(d, 32)
#define TSR_HOPPER_OUT_96(d) TSR_HOPPER_OUT_64(d), TSR_HOPPER_OUT_32(d, 64)
#define TSR_HOPPER_OUT_128(d) TSR_HOPPER_OUT_96(d), TSR_HOPPER_OUT_32(d, 96)

/* d (64 x n, fp32; n = 2 * count) = or, with add, += a (64 x 16) times b of f16 or bf16. b stands n x 16, k-major, or
 * 16 x n (b_along_n: 1). Thread t of the warpgroup holds, for j < n / 8, in d[4j..4j+3]: row t / 32 * 16 + t % 32 / 4,
 * columns 8j + t % 4 * 2 and the next; then the same 8 rows below. in_a, in_b, in_add: numbers of the operands. */
#define TSR_HOPPER_WGMMA(name, type, n, count, in_a, in_b, in_add, b_along_n)                                          \
    __device__ __forceinline__ void name(float(&d)[count], uint64_t a, uint64_t b, bool add) {                         \
        asm volatile("{\n"                                                                                             \
                     ".reg .pred add;\n"                                                                               \
                     "setp.ne.b32 add, " in_add ", 0;\n"                                                               \
                     "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" TSR_HOPPER_##count            \
                     "}, " in_a ", " in_b ", add, 1, 1, 0, " b_along_n ";\n"                                           \
                     "}"                                                                                               \
                     : TSR_HOPPER_OUT_##count(d)                                                                       \
                     : "l"(a), "l"(b), "r"((int)add));                                                                 \
    }
TSR_HOPPER_WGMMA(wgmma_m64n192k16, "f16", "192", 96, "%96", "%97", "%98", "0")
TSR_HOPPER_WGMMA(wgmma_m64n128k16_f16, "f16", "128", 64, "%64", "%65", "%66", "1")
TSR_HOPPER_WGMMA(wgmma_m64n128k16_bf16, "bf16", "128", 64, "%64", "%65", "%66", "1")
TSR_HOPPER_WGMMA(wgmma_m64n256k16_f16, "f16", "256", 128, "%128", "%129", "%130", "1")
TSR_HOPPER_WGMMA(wgmma_m64n256k16_bf16, "bf16", "256", 128, "%128", "%129", "%130", "1")

/* d (64 x 256, fp32) = or, with add, += a (64 x 8) times b (256 x 8) transposed, tf32: the upper 19 bits of a word.
 * Thread t of the warpgroup holds in a: row t / 32 * 16 + t % 32 / 4 and the one 8 below of column t % 4, then of
 * column t % 4 + 4; in d as above. a's registers stay as they are until the product is made. 8 further
 * along k: descriptor b + 2. */
__device__ __forceinline__ void wgmma_m64n256k8(float (&d)[128], const uint32_t (&a)[4], uint64_t b, bool add) {
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %133, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 "
                 "{" TSR_HOPPER_128 "}, "
                 "{%128, %129, %130, %131}, %132, add, 1, 1;\n"
                 "}"
                 : TSR_HOPPER_OUT_128(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}

#define TSR_HOPPER_INT_8(d, i)                                                                                         \
    "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3]), "+r"(d[i + 4]), "+r"(d[i + 5]), "+r"(d[i + 6]),        \
        "+r"(d[i + 7])
#define TSR_HOPPER_INT_32(d, i)                                                                                        \
    TSR_HOPPER_INT_8(d, i), TSR_HOPPER_INT_8(d, i + 8), TSR_HOPPER_INT_8(d, i + 16), TSR_HOPPER_INT_8(d, i + 24)

/* d (64 x 256, int32) = or, with add, += a (64 x 32) times b (256 x 32) transposed, int8, exact; d as above. 32
 * further along k: descriptors + 2. */
__device__ __forceinline__ void wgmma_m64n256k32_s8(int (&d)[128], uint64_t a, uint64_t b, bool add) {
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 "
                 "{" TSR_HOPPER_128 "}, "
                 "%128, %129, add;\n"
                 "}"
                 : TSR_HOPPER_INT_32(d, 0), TSR_HOPPER_INT_32(d, 32), TSR_HOPPER_INT_32(d, 64), TSR_HOPPER_INT_32(d, 96)
                 : "l"(a), "l"(b), "r"((int)add));
}

/* The same with d 64 × 8, b 8 × 32. */
__device__ __forceinline__ void wgmma_m64n8k32_s8(int (&d)[4], uint64_t a, uint64_t b, bool add) {
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %6, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%0, %1, %2, %3}, %4, %5, add;\n"
                 "}"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "l"(a), "l"(b), "r"((int)add));
}

/* The same with d 64 × 32, b 32 × 32. */
__device__ __forceinline__ void wgmma_m64n32k32_s8(int (&d)[16], uint64_t a, uint64_t b, bool add) {
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %18, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
                 "%16, %17, add;\n"
                 "}"
                 : TSR_HOPPER_INT_8(d, 0), TSR_HOPPER_INT_8(d, 8)
                 : "l"(a), "l"(b), "r"((int)add));
}

/* The same with d 64 × 64, b 64 × 32. */
__device__ __forceinline__ void wgmma_m64n64k32_s8(int (&d)[32], uint64_t a, uint64_t b, bool add) {
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 "
                 "{" TSR_HOPPER_32 "}, "
                 "%32, %33, add;\n"
                 "}"
                 : TSR_HOPPER_INT_32(d, 0)
                 : "l"(a), "l"(b), "r"((int)add));
}

/* ---- products of a warp, operands in registers ---- */

/* d (16 × 8) += a (16 × 16) · b (16 × 8). Lane 4g + t holds of a rows g and g + 8, of b column g, of d rows g and g
 * + 8 of columns 2t and 2t + 1; along k it holds the same four of each. */
__device__ __forceinline__ void mma_m16n8k16(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, "
                 "%11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]),
                   "d"(b[1]), "d"(b[2]), "d"(b[3]));
}

/* d (16 × 8, fp32) += a (16 × 16) · b (16 × 8) of bf16 or f16. Lane 4g + t holds of a rows g and g + 8, of b column g,
 * of d what it does above; along k elements 2t and 2t + 1, then those 8 further on. */
template <bool BF16>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if (BF16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                     "{%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                     "{%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Four matrices of 8 × 8 16-bit elements from shared memory. Lane l says where row l % 8 of matrix l / 8 begins, at a
 * multiple of 16 bytes. Lane 4g + t gets of each row g, elements 2t and 2t + 1; of a turned one column g, of rows 2t
 * and 2t + 1. */
__device__ __forceinline__ void load_matrices(uint32_t (&x)[4], const uint16_t *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared_address(row))
                 : "memory");
}
__device__ __forceinline__ void load_matrices_turned(uint32_t (&x)[4], const uint16_t *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* Two neighbours from an address of shared memory, a multiple of 16. */
__device__ __forceinline__ void load_shared(double *x, uint32_t at) {
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x[0]), "=d"(x[1]) : "r"(at));
}

} // namespace hopper

#endif
