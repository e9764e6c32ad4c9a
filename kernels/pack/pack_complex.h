/* Complex elements in `pack` and `finish` of the CUDA device, where their parts do not stay side by side (pack.h).
 * Mapping: blocks of 32 × 8 threads, a thread an element of a row at a time; transposes go through tiles of 32 × 32
 * elements in shared memory. Device code, for pack_cuda.cu alone. */
#ifndef TSR_KERNELS_PACK_PACK_COMPLEX_H
#define TSR_KERNELS_PACK_PACK_COMPLEX_H

#include <float.h>

#include "kernels/pack/complex.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/pack_units.h"

namespace {

/* ---- pack ------------------------------------------------------------------------------------ */

/* Whether there are complex elements of parts D. */
template <tsr_dtype D> constexpr bool is_part = false;
#define DEFINE_PART(code, suffix, bits, part) template <> constexpr bool is_part<TSR_##part> = true;
TSR_COMPLEX_LIST(DEFINE_PART)

template <typename T> struct alignas(2 * sizeof(T)) pair { T re, im; };

__device__ __forceinline__ float negated(float value) { return -value; }
__device__ __forceinline__ double negated(double value) { return -value; }
__device__ __forceinline__ bf16 negated(bf16 value) {
    value.bits ^= 0x8000u;
    return value;
}

/* Element (i, j) of a source whose parts are of type D; zero where it has none. */
template <tsr_dtype D, typename T>
__device__ __forceinline__ pair<T> load_pair(const operand &from, int64_t i, int64_t j, bool conjugate) {
    if (i >= from.rows || j >= from.cols) return pair<T>{T(0.0f), T(0.0f)};
    const int64_t at = 2 * (i * from.ld + j);
    const T im = source<D>::template load<T>(from.data, at + 1, from.swapped);
    return pair<T>{source<D>::template load<T>(from.data, at, from.swapped), conjugate ? negated(im) : im};
}

/* Two reals side by side, at once where `even`: all such pairs begin at multiples of their size. */
template <typename T> __device__ __forceinline__ void store_pair(T *to, T first, T second, bool even) {
    if (even) {
        *reinterpret_cast<pair<T> *>(to) = pair<T>{first, second};
        return;
    }
    to[0] = first;
    to[1] = second;
}

/* Element (i, j) of the target; zeros have no signs. */
template <typename T>
__device__ __forceinline__ void store_form(const target<T> &to, tsr_form form, bool even, int64_t i, int64_t j,
                                           pair<T> x, bool inside) {
    T *at = to.data + i * tsr_form_rows(form) * to.ld + j * tsr_form_cols(form);
    if (form == TSR_FORM_ROWS) {
        at[0] = x.re;
        at[to.ld] = x.im;
        return;
    }
    store_pair(at, x.re, x.im, even);
    if (form == TSR_FORM_SQUARES) store_pair(at + to.ld, inside ? negated(x.im) : x.im, x.re, even);
}

template <tsr_dtype D, typename T>
__global__ void __launch_bounds__(THREADS)
    complex_rows(operand from, target<T> to, tsr_form form, bool conjugate, bool even) {
    const int64_t rows = to.rows / tsr_form_rows(form), cols = to.cols / tsr_form_cols(form);
    for (int64_t i = (int64_t)blockIdx.y * LINES + threadIdx.y; i < rows; i += (int64_t)gridDim.y * LINES)
        for (int64_t j = (int64_t)blockIdx.x * LANES + threadIdx.x; j < cols; j += (int64_t)gridDim.x * LANES)
            store_form(to, form, even, i, j, load_pair<D, T>(from, i, j, conjugate), i < from.rows && j < from.cols);
}

template <tsr_dtype D, typename T>
__global__ void __launch_bounds__(THREADS)
    complex_transposed(operand from, target<T> to, tsr_form form, bool conjugate, bool even) {
    __shared__ pair<T> tile[LANES][LANES + 1];
    const int64_t rows = to.rows / tsr_form_rows(form), cols = to.cols / tsr_form_cols(form);
    for (int64_t i0 = (int64_t)blockIdx.y * LANES; i0 < rows; i0 += (int64_t)gridDim.y * LANES)
        for (int64_t j0 = (int64_t)blockIdx.x * LANES; j0 < cols; j0 += (int64_t)gridDim.x * LANES) {
            for (int y = (int)threadIdx.y; y < LANES; y += LINES)
                tile[y][threadIdx.x] = load_pair<D, T>(from, j0 + y, i0 + threadIdx.x, conjugate);
            __syncthreads();
            const int64_t j = j0 + threadIdx.x;
            for (int y = (int)threadIdx.y; y < LANES && i0 + y < rows; y += LINES)
                if (j < cols)
                    store_form(to, form, even, i0 + y, j, tile[threadIdx.x][y], j < from.rows && i0 + y < from.cols);
            __syncthreads();
        }
}

template <tsr_dtype D, typename T> tsr_status launch_complex(tsr_stream *stream, const tsr_pack_args *args) {
    const operand from = {args->from.data ? args->from.data : args->to, args->from.ld, args->from.rows, args->from.cols,
                          args->from.element.swapped};
    const target<T> to = {static_cast<T *>(args->to), args->ld, args->padded_rows, args->padded_cols};
    const bool even = (uintptr_t)to.data % sizeof(pair<T>) == 0 && to.ld % 2 == 0;
    const int64_t rows = to.rows / tsr_form_rows(args->form), cols = to.cols / tsr_form_cols(args->form);
    const dim3 threads(LANES, LINES);
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(rows, cols, args->transpose ? LANES : LINES, LANES, &grid));
    if (args->transpose)
        return TSR_LAUNCH((complex_transposed<D, T>), grid, threads, 0, stream, from, to, args->form, args->conjugate,
                          even);
    return TSR_LAUNCH((complex_rows<D, T>), grid, threads, 0, stream, from, to, args->form, args->conjugate, even);
}

/* ---- finish ---------------------------------------------------------------------------------- */

/* What was accumulated, alpha, beta and C0, of which the last may not be there. */
struct finishing {
    tsr_form form;
    int64_t ld_sum;
    tsr_number alpha, beta;
    bool adds, c0_complex;
    tsr_element c0_part;
    const void *c0;
    int64_t ld_c0;
};

template <typename A>
__device__ __forceinline__ tsr_number sum_at(const A *sum, const finishing &f, int64_t i, int64_t j) {
    const int64_t first = i * tsr_form_rows(f.form) * f.ld_sum + j * tsr_form_cols(f.form);
    const int64_t second = first + (f.form == TSR_FORM_ROWS ? f.ld_sum : 1);
    const bool complex = f.form != TSR_FORM_REAL;
    return tsr_number{(double)sum[first], complex ? (double)sum[second] : 0, complex};
}

__device__ __forceinline__ tsr_number c0_at(const finishing &f, int64_t i, int64_t j) {
    const int64_t at = (i * f.ld_c0 + j) * (f.c0_complex ? 2 : 1);
    return tsr_number{load_double(f.c0_part, f.c0, at), f.c0_complex ? load_double(f.c0_part, f.c0, at + 1) : 0,
                      f.c0_complex};
}

/* Whether a finite part becomes infinite. */
template <typename O> __device__ __forceinline__ unsigned store_part(O *to, double part) {
    *to = rounded<O>::from(part);
    return rounded<O>::infinite(*to) && fabs(part) <= DBL_MAX;
}

/* out (rows × cols elements of `parts` O each) as tsr_finish_complex computes it on the host. */
template <typename A, typename O>
__global__ void __launch_bounds__(THREADS) finish_complex(const A *sum, finishing f, O *out, int64_t ld_out, int parts,
                                                          int64_t rows, int64_t cols, uint64_t *overflows) {
    unsigned count = 0;
    for (int64_t i = (int64_t)blockIdx.y * LINES + threadIdx.y; i < rows; i += (int64_t)gridDim.y * LINES)
        for (int64_t j = (int64_t)blockIdx.x * LANES + threadIdx.x; j < cols; j += (int64_t)gridDim.x * LANES) {
            tsr_number value = tsr_number_times(f.alpha, sum_at(sum, f, i, j));
            if (f.adds) value = tsr_number_plus(value, tsr_number_times(f.beta, c0_at(f, i, j)));
            O *to = out + (i * ld_out + j) * parts;
            count += store_part(to, value.re);
            if (parts == 2) count += store_part(to + 1, value.im);
        }
    if (count > 0 && overflows) atomicAdd(reinterpret_cast<unsigned long long *>(overflows), (unsigned long long)count);
}

template <typename A, typename O> tsr_status launch_finish_complex(tsr_stream *stream, const tsr_finish_args *args) {
    const tsr_view *out = &args->out, *c0 = &args->c0;
    const finishing f = {args->form,
                         args->accumulated.ld,
                         {args->alpha, args->alpha_imag, args->alpha_imag != 0},
                         {args->beta, args->beta_imag, args->beta_imag != 0},
                         tsr_finish_adds(args),
                         tsr_dtype_is_complex(c0->element.dtype),
                         {tsr_dtype_part(c0->element.dtype), c0->element.swapped},
                         c0->data,
                         c0->ld};
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(out->rows, out->cols, LINES, LANES, &grid));
    return TSR_LAUNCH((finish_complex<A, O>), grid, dim3(LANES, LINES), 0, stream,
                      static_cast<const A *>(args->accumulated.data), f, static_cast<O *>(out->data), out->ld,
                      tsr_dtype_parts(out->element.dtype), out->rows, out->cols, args->overflows);
}

} // namespace

#endif
