/* Tensor maps: what TMA of sm_90 and newer needs to bring a rectangle of a row-major matrix into shared
 * memory, or to store one. Outside the matrix it reads zeros and stores nothing. CUDA driver API, "Tensor Map Object
 * Management". */
#ifndef TSR_KERNELS_GEMM_HOPPER_TENSOR_MAP_H
#define TSR_KERNELS_GEMM_HOPPER_TENSOR_MAP_H

#ifndef TSR_EMULATE_CUDA /* there tests declare what this needs (tests/kernels/gemm/hopper/model_copies.h) */
#include <cuda.h>
#endif

#include "kernels/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether TMA can reach a matrix of `bytes` an element: base and rows must begin at multiples of 16
 * bytes. */
static inline bool tsr_tensor_map_reaches(const void *data, int64_t ld, size_t bytes) {
    return (uintptr_t)data % 16 == 0 && (size_t)ld * bytes % 16 == 0;
}

/* What one copy moves: rows × cols elements, both at most 256, whose rows stand in shared memory one after the other,
 * swizzled over spans of `swizzle` bytes (0: not; 32, 64, 128: `cols` elements are at most as many bytes). */
typedef struct {
    int rows, cols, swizzle;
    bool alone; /* the L2 cache fetches 128 bytes for it, not the 256 around them */
    bool tf32;  /* a copy rounds fp32 elements to tf32, to nearest even; NaN and infinities stay */
} tsr_tensor_box;

/* A map of rows × cols elements (i8, f16, bf16, f32, f64), ld elements from row to row, not empty and reached by the
 * TMA. Local. */
tsr_status tsr_tensor_map(const void *data, tsr_dtype type, int64_t rows, int64_t cols, int64_t ld, tsr_tensor_box box,
                          CUtensorMap *map);

/* Whether x and its rows, ld elements apart, begin at multiples of `alignment` bytes and are no further apart than TMA
 * counts. */
bool tsr_tensor_aligned(tsr_dtype type, size_t alignment, const void *x, int64_t ld);

/* Where x (rows × cols elements, *ld apart from row to row) is not so, copies it to `copy`, which is, rows copy_ld
 * elements apart, and makes *x and *ld those of the copy. On the stream. */
tsr_status tsr_tensor_align(tsr_device *device, tsr_stream *stream, tsr_dtype type, int64_t rows, int64_t cols,
                            size_t alignment, void *copy, int64_t copy_ld, const void **x, int64_t *ld);

#ifdef __cplusplus
}
#endif
#endif
