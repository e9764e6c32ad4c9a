/* What a warp of a CUDA device makes of a number of each of its lanes, which all get it. Device code. */
#ifndef TSR_KERNELS_DEVICE_CUDA_WARPS_H
#define TSR_KERNELS_DEVICE_CUDA_WARPS_H

#include "kernels/device/cuda_compat.h"

template <typename X> static __device__ __forceinline__ X tsr_warp_sum(X x) {
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}
/* Modulo 2^128. */
static __device__ __forceinline__ unsigned __int128 tsr_warp_sum_128(unsigned __int128 x) {
    typedef unsigned long long Half;
    for (int lane = 16; lane > 0; lane /= 2) {
        const Half high = __shfl_xor_sync(0xffffffffu, (Half)(x >> 64), lane);
        const Half low = __shfl_xor_sync(0xffffffffu, (Half)x, lane);
        x += (unsigned __int128)high << 64 | low;
    }
    return x;
}
/* In one instruction, where there is one. */
static __device__ __forceinline__ unsigned tsr_warp_total(unsigned x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_add_sync(0xffffffffu, x);
#else
    return tsr_warp_sum(x);
#endif
}
static __device__ __forceinline__ unsigned tsr_warp_largest(unsigned x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffu, x);
#else
    for (int lane = 16; lane > 0; lane /= 2) x = max(x, __shfl_xor_sync(0xffffffffu, x, lane));
    return x;
#endif
}
static __device__ __forceinline__ unsigned tsr_warp_least(unsigned x) { return ~tsr_warp_largest(~x); }

#endif
