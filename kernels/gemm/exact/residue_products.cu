/* Products of planes of bytes on any device: a thread an element. */
#include "kernels/gemm/exact/residue_products.h"

#include "kernels/gemm/gemm_cuda.h"

namespace {

constexpr int THREADS = 256;

struct Work {
    tsr_residue_args args;
    int modulus[TSR_EXACT_MODULI_MOST];
};

__device__ __forceinline__ bool wanted(const tsr_residue_args &a, int64_t row, int64_t col) {
    if (!a.blocks) return true;
    return a.blocks[row / TSR_EXACT_BLOCK * (a.rows_b / TSR_EXACT_BLOCK) + col / TSR_EXACT_BLOCK] == a.wanted;
}

__device__ __forceinline__ int sum_of(const tsr_residue_args &a, int plane, int64_t row, int64_t col) {
    const int8_t *x = a.a + (plane * a.rows_a + row) * a.depth, *y = a.b + (plane * a.rows_b + col) * a.depth;
    int sum = 0;
    for (int64_t l = 0; l < a.depth; l++) sum += x[l] * y[l];
    return sum;
}

__global__ void products(const Work w, int8_t *c) {
    const tsr_residue_args &a = w.args;
    const int64_t all = a.planes * a.m * a.n, step = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < all; at += step) {
        const int plane = (int)(at / (a.m * a.n));
        const int64_t row = at / a.n % a.m, col = at % a.n;
        const int modulus = w.modulus[plane];
        if (!wanted(a, row, col)) continue;
        int residue = sum_of(a, plane, row, col) % modulus;
        if (residue > modulus / 2) residue -= modulus;
        if (residue < -(modulus / 2)) residue += modulus;
        c[(plane * a.rows_a + row) * a.rows_b + col] = (int8_t)residue;
    }
}

__global__ void levels(const Work w, const tsr_exact_proof *rows, const tsr_exact_proof *columns, double allowed,
                       unsigned *needed) {
    const tsr_residue_args &a = w.args;
    const int64_t all = a.m * a.n, step = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < all; at += step) {
        const int64_t row = at / a.n, col = at % a.n;
        if (!wanted(a, row, col)) continue;
        const int level = tsr_exact_level(rows + row, columns + col, a.k, allowed, sum_of(a, 0, row, col));
        atomicMax(needed + row / TSR_EXACT_BLOCK * (a.rows_b / TSR_EXACT_BLOCK) + col / TSR_EXACT_BLOCK,
                  (unsigned)level);
    }
}

Work work_of(const tsr_residue_args *args) {
    Work w = {*args, TSR_EXACT_MODULI};
    return w;
}

} // namespace

size_t tsr_residue_workspace(int64_t, int64_t) { return 0; }

tsr_status tsr_residue_products(tsr_device *, tsr_stream *stream, const tsr_residue_args *args, int8_t *c) {
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(1, args->planes * args->m * args->n, 1, THREADS, &grid));
    return TSR_LAUNCH(products, grid, THREADS, 0, stream, work_of(args), c);
}

tsr_status tsr_residue_levels(tsr_device *, tsr_stream *stream, const tsr_residue_args *args,
                              const tsr_exact_proof *rows, const tsr_exact_proof *columns, double allowed,
                              unsigned *needed) {
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(1, args->m * args->n, 1, THREADS, &grid));
    return TSR_LAUNCH(levels, grid, THREADS, 0, stream, work_of(args), rows, columns, allowed, needed);
}
