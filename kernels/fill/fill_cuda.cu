/* Operation: elements of a generated matrix (fill.h) in device memory: element (i, j) from seed, i and j alone.
 * Mapping: blocks of 32 × 8 threads, an element each at a time, striding over columns and rows, so that no grid
 * limit matters; enough blocks that a thread makes up to 4 × 8 elements; a warp writes 32 elements of a row side by
 * side.
 * A block uses: 256 threads, no shared memory.
 * Requirements: none; any type, any ld.
 * Arithmetic intensity: some 60 integer operations (ten rounds of two 32 × 32 → 64-bit products) for the bytes of
 * one element.
 * Measured: not yet.
 * Reference: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
#include "kernels/device/cuda_compat.h"
#include "kernels/fill/fill_element.h"

namespace {

constexpr int WIDTH = 32;
constexpr int HEIGHT = 8;
constexpr int ACROSS = 4;
constexpr int DOWN = 8;

/* to: rows × cols of `dtype`, row_bytes apart; its first element is (row, col) of the whole matrix. */
template <tsr_fill_kind KIND>
__global__ void __launch_bounds__(WIDTH *HEIGHT)
    fill(uint64_t seed, int64_t row, int64_t col, tsr_dtype dtype, unsigned char *to, int64_t rows, int64_t cols,
         int64_t row_bytes, int parts) {
    for (int64_t i = (int64_t)blockIdx.y * HEIGHT + threadIdx.y; i < rows; i += (int64_t)gridDim.y * HEIGHT)
        for (int64_t j = (int64_t)blockIdx.x * WIDTH + threadIdx.x; j < cols; j += (int64_t)gridDim.x * WIDTH)
            tsr_element_store(dtype, to + i * row_bytes, j, tsr_fill_part(KIND, seed, parts, row + i, col + j));
}

template <tsr_fill_kind KIND>
tsr_status launch(tsr_stream *stream, uint64_t seed, int64_t row, int64_t col, tsr_view to) {
    dim3 grid, block(WIDTH, HEIGHT);
    const int parts = tsr_fill_as_parts(&to, &col);
    TSR_TRY(tsr_cuda_grid(to.rows, to.cols, DOWN * HEIGHT, ACROSS * WIDTH, &grid));
    return TSR_LAUNCH(fill<KIND>, grid, block, 0, stream, seed, row, col, to.element.dtype,
                      static_cast<unsigned char *>(to.data), to.rows, to.cols,
                      to.ld * (int64_t)tsr_dtype_bytes(to.element.dtype), parts);
}

tsr_status fill_cuda(tsr_device *, tsr_stream *stream, tsr_fill_kind kind, uint64_t seed, int64_t row, int64_t col,
                     tsr_view to) {
    TSR_TRY(tsr_fill_check(to));
    if (to.rows == 0 || to.cols == 0) return TSR_OK;
    switch (kind) {
    case TSR_FILL_UNIFORM: return launch<TSR_FILL_UNIFORM>(stream, seed, row, col, to);
    case TSR_FILL_NORMAL: return launch<TSR_FILL_NORMAL>(stream, seed, row, col, to);
    case TSR_FILL_INTEGER: return launch<TSR_FILL_INTEGER>(stream, seed, row, col, to);
    case TSR_FILL_IDENTITY: return launch<TSR_FILL_IDENTITY>(stream, seed, row, col, to);
    }
    return tsr_fail(TSR_ERR_USAGE, "fill of unknown kind %d", (int)kind);
}

} // namespace

const tsr_fill_ops tsr_fill_cuda = {.device = TSR_DEVICE_CUDA, .fill = fill_cuda};
