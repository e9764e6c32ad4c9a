/* Tensor maps are made by the driver; its function is found through the runtime, so that nothing links against the
 * driver itself. */
#include "kernels/gemm/hopper/tensor_map.h"

#ifndef TSR_EMULATE_CUDA
#include <cudaTypedefs.h>
#endif
#include <inttypes.h>

#include "kernels/device/cuda_compat.h"
#include "kernels/pack/pack.h"

static tsr_status encoder(PFN_cuTensorMapEncodeTiled_v12000 *encode) {
    enum cudaDriverEntryPointQueryResult found;
    void *function = NULL;
    TSR_TRY(TSR_CUDA(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found)));
    if (found != cudaDriverEntryPointSuccess)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "the CUDA driver makes no tensor maps (cuTensorMapEncodeTiled): update it "
                                             "to CUDA 12 or newer, or use another --kernel");
    *encode = (PFN_cuTensorMapEncodeTiled_v12000)function;
    return TSR_OK;
}

static CUtensorMapDataType element_of(tsr_dtype type) {
    switch (type) {
    case TSR_F16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case TSR_BF16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case TSR_F64: return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case TSR_I8: return CU_TENSOR_MAP_DATA_TYPE_UINT8; /* bytes as they are */
    default: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    }
}

static CUtensorMapSwizzle swizzle_of(int bytes) {
    return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
           : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                         : CU_TENSOR_MAP_SWIZZLE_NONE;
}

tsr_status tsr_tensor_map(const void *data, tsr_dtype type, int64_t rows, int64_t cols, int64_t ld, tsr_tensor_box box,
                          CUtensorMap *map) {
    PFN_cuTensorMapEncodeTiled_v12000 encode = NULL;
    TSR_TRY(encoder(&encode));
    const CUtensorMapDataType element = box.tf32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : element_of(type);
    const cuuint64_t extent[2] = {(cuuint64_t)cols, (cuuint64_t)rows},
                     row_bytes[1] = {(cuuint64_t)ld * tsr_dtype_bytes(type)};
    const cuuint32_t extent_of_box[2] = {(cuuint32_t)box.cols, (cuuint32_t)box.rows}, step[2] = {1, 1};
    const CUresult code = encode(map, element, 2, (void *)data, extent, row_bytes, extent_of_box, step,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(box.swizzle),
                                 box.alone ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (code == CUDA_SUCCESS) return TSR_OK;
    return tsr_fail(TSR_ERR_DEVICE,
                    "no tensor map for %" PRId64 " x %" PRId64 " %s with rows %" PRId64
                    " elements apart in boxes of %d x %d (CUDA error %d): use another --kernel",
                    rows, cols, tsr_dtype_name(type), ld, box.rows, box.cols, (int)code);
}

bool tsr_tensor_aligned(tsr_dtype type, size_t alignment, const void *x, int64_t ld) {
    /* a map takes less than 2^40 bytes */
    const size_t row_bytes = (size_t)ld * tsr_dtype_bytes(type), farthest = (size_t)1 << 38;
    return (uintptr_t)x % alignment == 0 && row_bytes % alignment == 0 && row_bytes <= farthest;
}

tsr_status tsr_tensor_align(tsr_device *device, tsr_stream *stream, tsr_dtype type, int64_t rows, int64_t cols,
                            size_t alignment, void *copy, int64_t copy_ld, const void **x, int64_t *ld) {
    if (tsr_tensor_aligned(type, alignment, *x, *ld)) return TSR_OK;
    const tsr_pack_args args = {.from = {(void *)*x, {type, false}, rows, cols, *ld},
                                .to = copy,
                                .type = type,
                                .ld = copy_ld,
                                .padded_rows = rows,
                                .padded_cols = cols};
    TSR_TRY(tsr_pack_cuda.pack(device, stream, &args));
    *x = copy;
    *ld = copy_ld;
    return TSR_OK;
}
