/* Launching a kernel with its arguments checked against the contract in gemm.h, so that no kernel repeats that. */
#include <inttypes.h>

#include "kernels/gemm/gemm.h"

/* One operand: rows × cols at `data`, ld elements from row to row. */
static tsr_status check_operand(const tsr_gemm_kernel *kernel, char operand, const void *data, int64_t rows,
                                int64_t cols, int64_t ld) {
    size_t bytes;
    if (ld < cols)
        return tsr_fail(TSR_ERR_SHAPE,
                        "kernel '%s': ld%c is %" PRId64 " but %c has %" PRId64 " columns: ld must not be smaller",
                        kernel->name, operand + ('a' - 'A'), ld, operand, cols);
    if (rows > 0 && cols > 0 && !data)
        return tsr_fail(TSR_ERR_SHAPE, "kernel '%s': %c (%" PRId64 " x %" PRId64 ") has no memory: pass it",
                        kernel->name, operand, rows, cols);
    return tsr_bytes_checked(rows, ld, tsr_dtype_bytes(operand == 'C' ? kernel->type : kernel->input), &bytes);
}

tsr_status tsr_gemm_launch(const tsr_gemm_kernel *kernel, tsr_device *device, tsr_stream *stream,
                           const tsr_gemm_args *args) {
    int64_t m = args->m;
    int64_t n = args->n;
    int64_t k = args->k;
    if (kernel->device != device->ops->kind)
        return tsr_fail(TSR_ERR_DEVICE, "kernel '%s' runs on device '%s', not '%s': choose another", kernel->name,
                        tsr_device_kind_name(kernel->device), device->ops->name);
    if (m < 0 || n < 0 || k < 0)
        return tsr_fail(TSR_ERR_SHAPE,
                        "kernel '%s': m, n, k are %" PRId64 ", %" PRId64 ", %" PRId64 ": none may be negative",
                        kernel->name, m, n, k);
    if (m % kernel->multiple || n % kernel->multiple || k % kernel->multiple)
        return tsr_fail(TSR_ERR_SHAPE,
                        "kernel '%s' needs multiples of %" PRId64 " and m, n, k are %" PRId64 ", %" PRId64 ", %" PRId64
                        ": use another kernel or pad",
                        kernel->name, kernel->multiple, m, n, k);
    TSR_TRY(check_operand(kernel, 'A', args->a, m, k, args->lda));
    TSR_TRY(check_operand(kernel, 'B', args->b, k, n, args->ldb));
    TSR_TRY(check_operand(kernel, 'C', args->c, m, n, args->ldc));
    if (kernel->workspace_bytes && kernel->workspace_bytes(m, n, k) > 0 && !args->workspace)
        return tsr_fail(TSR_ERR_MEMORY, "kernel '%s' needs a workspace of %zu bytes and got none: pass it",
                        kernel->name, kernel->workspace_bytes(m, n, k));
    const tsr_gemm_kernel *serving = tsr_gemm_serving(kernel, m, n, k);
    /* A substitute that is only quicker gives way where it obeys no predicate. */
    if (args->predicate && !serving->predicated && kernel->predicated && !kernel->substitute(m, n, k).unable)
        serving = kernel;
    if (args->predicate && !serving->predicated)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "kernel '%s' obeys no predicate: use one that does", serving->name);
    return m == 0 || n == 0 ? TSR_OK : serving->launch(device, stream, args);
}

/* Operands counted once, as for a library whose tiles are its own affair. */
tsr_status tsr_gemm_shape_of(const tsr_gemm_kernel *kernel, tsr_device *device, int64_t m, int64_t n, int64_t k,
                             tsr_gemm_shape *shape) {
    if (kernel->shape) return kernel->shape(device, m, n, k, shape);
    const double inputs = (double)m * (double)k + (double)k * (double)n, outputs = (double)m * (double)n;
    *shape = (tsr_gemm_shape){.bytes = (double)tsr_dtype_bytes(kernel->input) * inputs +
                                       (double)tsr_dtype_bytes(kernel->type) * outputs};
    return TSR_OK;
}

double tsr_gemm_error_bound(const tsr_gemm_kernel *kernel, int64_t k) {
    return tsr_dtype_roundoff(kernel->type) * kernel->error_factor * (kernel->error_grows ? (double)k : 1.0);
}
