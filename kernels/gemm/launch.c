/* Launching a kernel with its arguments checked against the contract in gemm.h, so that no kernel repeats that. */
#include <inttypes.h>

#include "kernels/gemm/gemm.h"

/* Rows and columns that every kernel counts, whatever else is long. */
#define MOST_EXTENT (1 << 30)

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

/* Where products of a batch lie: C's may not overlap, and none may be so far off that it cannot be counted. */
static tsr_status check_batch(const tsr_gemm_kernel *kernel, const tsr_gemm_args *args) {
    const int64_t c_elements = args->m > 0 ? (args->m - 1) * args->ldc + args->n : 0;
    size_t bytes;
    if (args->batch < 0 || args->stride_a < 0 || args->stride_b < 0 || args->stride_c < 0)
        return tsr_fail(TSR_ERR_SHAPE,
                        "kernel '%s': a batch of %" PRId64 " with strides %" PRId64 ", %" PRId64 ", %" PRId64
                        ": none may be negative",
                        kernel->name, args->batch, args->stride_a, args->stride_b, args->stride_c);
    if (args->batch < 2) return TSR_OK;
    if (args->stride_c < c_elements)
        return tsr_fail(TSR_ERR_SHAPE,
                        "kernel '%s': products are %" PRId64 " elements apart and one takes %" PRId64
                        ": stride_c must not be smaller",
                        kernel->name, args->stride_c, c_elements);
    if (args->predicate)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "kernel '%s': no predicate holds for a batch: launch its products",
                        kernel->name);
    TSR_TRY(tsr_bytes_checked(args->batch, args->stride_a, tsr_dtype_bytes(kernel->input), &bytes));
    TSR_TRY(tsr_bytes_checked(args->batch, args->stride_b, tsr_dtype_bytes(kernel->input), &bytes));
    return tsr_bytes_checked(args->batch, args->stride_c, tsr_dtype_bytes(kernel->type), &bytes);
}

/* `x` moved on by `products` strides; NULL, where nothing is read, stays so. */
static void *moved(const void *x, int64_t products, int64_t stride, tsr_dtype type) {
    return x ? (char *)x + (size_t)(products * stride) * tsr_dtype_bytes(type) : NULL;
}

typedef tsr_status launch_function(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args);

/* One launch each. */
static tsr_status launch_each(const tsr_gemm_kernel *serving, launch_function *launch, tsr_device *device,
                              tsr_stream *stream, const tsr_gemm_args *args) {
    for (int64_t i = 0; i < args->batch; i++) {
        tsr_gemm_args one = *args;
        one.batch = 1;
        one.a = moved(args->a, i, args->stride_a, serving->input);
        one.b = moved(args->b, i, args->stride_b, serving->input);
        one.c = moved(args->c, i, args->stride_c, serving->type);
        TSR_TRY(launch(device, stream, &one));
    }
    return TSR_OK;
}

/* Of a kernel with a range: one launch for each range of k, each added to C. */
static tsr_status launch_ranges(const tsr_gemm_kernel *kernel, tsr_device *device, tsr_stream *stream,
                                const tsr_gemm_args *args) {
    for (int64_t l = 0; l < args->k; l += kernel->range) {
        tsr_gemm_args range = *args;
        range.k = tsr_min(kernel->range, args->k - l);
        range.a = moved(args->a, 1, l, kernel->input);
        range.b = moved(args->b, l, args->ldb, kernel->input);
        range.accumulate = args->accumulate || l > 0;
        TSR_TRY(tsr_gemm_launch(kernel, device, stream, &range));
    }
    return TSR_OK;
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
    TSR_TRY(check_batch(kernel, args));
    if (kernel->workspace_bytes && kernel->workspace_bytes(m, n, k) > 0 && !args->workspace)
        return tsr_fail(TSR_ERR_MEMORY, "kernel '%s' needs a workspace of %zu bytes and got none: pass it",
                        kernel->name, kernel->workspace_bytes(m, n, k));
    if (kernel->range > 0 && (m > MOST_EXTENT || n > MOST_EXTENT))
        return tsr_fail(TSR_ERR_LIMIT,
                        "kernel '%s': its sums are reproducible up to 2^30 rows and columns, and m, n are %" PRId64
                        ", %" PRId64 ": make fewer at once",
                        kernel->name, m, n);
    if (kernel->range > 0 && k > kernel->range) return launch_ranges(kernel, device, stream, args);
    const tsr_gemm_kernel *serving = tsr_gemm_serving(kernel, m, n, k);
    /* A substitute that is only quicker gives way where it obeys no predicate. */
    if (args->predicate && !serving->predicated && kernel->predicated && !kernel->substitute(m, n, k).unable)
        serving = kernel;
    if (args->predicate && !serving->predicated)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "kernel '%s' obeys no predicate: use one that does", serving->name);
    if (m == 0 || n == 0) return TSR_OK;
    const bool reproducible = kernel->range > 0 && k > 0; /* zeros are made by whatever makes them */
    launch_function *const launch = reproducible ? serving->launch_reproducible : serving->launch;
    if (args->batch < 2) return launch(device, stream, args);
    const tsr_gemm_kernel *batched = tsr_gemm_serving_batch(kernel, args->batch, m, n, k);
    return batched ? batched->launch(device, stream, args) : launch_each(serving, launch, device, stream, args);
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

/* Each range but the first is an addition more. */
double tsr_gemm_error_bound(const tsr_gemm_kernel *kernel, int64_t k) {
    const double own = kernel->error_factor * (kernel->error_grows ? (double)k : 1.0);
    const int64_t added = kernel->range > 0 ? tsr_max(0, k - 1) / kernel->range : 0;
    return tsr_dtype_roundoff(kernel->type) * (own + (double)added);
}
