/* What this build has: one line a device, a kernel or a pack table. Finding a kernel and launching it with its arguments
 * checked against the contract live here too, so that no kernel repeats them. */
#include "kernels/registry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#if defined(TSR_HAVE_CUDA) || defined(TSR_EMULATE_CUDA)
#define TSR_CUDA_TABLES 1
#endif

static const tsr_device_ops *const devices[] = {
    &tsr_device_cpu,
#ifdef TSR_CUDA_TABLES
    &tsr_device_cuda,
#endif
};

/* In ladder order: each rung is an idea more than the one before. */
static const tsr_gemm_kernel *const kernels[] = {
    &tsr_gemm_reference_f16, &tsr_gemm_reference_bf16, &tsr_gemm_reference_f32, &tsr_gemm_reference_f64,
    &tsr_gemm_blas_f32, &tsr_gemm_blas_f64,
#ifdef TSR_CUDA_TABLES
    &tsr_gemm_naive_f32, &tsr_gemm_naive_f64,
    &tsr_gemm_tiled_f32, &tsr_gemm_tiled_f64,
    &tsr_gemm_checked_f32, &tsr_gemm_checked_f64,
    &tsr_gemm_coarse_f32, &tsr_gemm_coarse_f64,
    &tsr_gemm_simt_f32, &tsr_gemm_simt_f64,
    &tsr_gemm_compensated_f32, &tsr_gemm_compensated_f64,
#endif
#ifdef TSR_HAVE_HOPPER
    &tsr_gemm_split3_f32,
    &tsr_gemm_dmma_f64,
    &tsr_gemm_tf32_f32,
    &tsr_gemm_wgmma_f16, &tsr_gemm_wgmma_bf16,
#endif
#ifdef TSR_HAVE_CUBLAS
    &tsr_gemm_cublas_f16, &tsr_gemm_cublas_bf16, &tsr_gemm_cublas_f32, &tsr_gemm_cublas_f64,
    &tsr_gemm_cublas_tf32,
#endif
};

static const tsr_pack_ops *const packs[] = {
    &tsr_pack_cpu,
#ifdef TSR_CUDA_TABLES
    &tsr_pack_cuda,
#endif
};

static const tsr_fill_ops *const fills[] = {
    &tsr_fill_cpu,
#ifdef TSR_CUDA_TABLES
    &tsr_fill_cuda,
#endif
};

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

tsr_status tsr_device_find(const char *name, const tsr_device_ops **ops) {
    for (int i = 0; i < COUNT(devices); i++)
        if (strcmp(devices[i]->name, name) == 0) return *ops = devices[i], TSR_OK;
    if (strcmp(name, "cuda") == 0)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "device 'cuda': this build has no CUDA; configure again where nvcc is found, or use 'cpu'");
    return tsr_fail(TSR_ERR_USAGE, "unknown device '%s': use cpu or cuda", name);
}

const tsr_pack_ops *tsr_pack_find(tsr_device_kind device) {
    for (int i = 0; i < COUNT(packs); i++)
        if (packs[i]->device == device) return packs[i];
    return NULL;
}

const tsr_fill_ops *tsr_fill_find(tsr_device_kind device) {
    for (int i = 0; i < COUNT(fills); i++)
        if (fills[i]->device == device) return fills[i];
    return NULL;
}

const tsr_gemm_kernel *const *tsr_gemm_kernels(int *count) {
    *count = COUNT(kernels);
    return kernels;
}

const char *tsr_accuracy_name(tsr_accuracy accuracy) {
#define X(code, name, what) name,
    static const char *const names[] = {TSR_ACCURACY_LIST(X)};
#undef X
    return names[accuracy];
}

tsr_status tsr_accuracy_parse(const char *name, tsr_accuracy *accuracy) {
    for (int i = 0; i < TSR_ACCURACY_COUNT; i++)
        if (strcmp(name, tsr_accuracy_name((tsr_accuracy)i)) == 0) return *accuracy = (tsr_accuracy)i, TSR_OK;
#define X(code, name, what) " " name
    return tsr_fail(TSR_ERR_USAGE,
                    "--accuracy '%s' is unknown: use one of" TSR_ACCURACY_LIST(X) "; --help says what each may lose",
                    name);
#undef X
}

static const char *device_name(tsr_device_kind kind) { return kind == TSR_DEVICE_CPU ? "cpu" : "cuda"; }

tsr_status tsr_gemm_find(const char *name, const tsr_device_facts *facts, tsr_dtype input, tsr_dtype type, const tsr_gemm_kernel **kernel) {
    char names[512] = "";
    for (int i = 0; i < COUNT(kernels); i++) {
        const tsr_gemm_kernel *candidate = kernels[i];
        if (candidate->device != facts->kind || candidate->input != input || candidate->type != type) continue;
        if (strcmp(candidate->name, name) != 0) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", candidate->name);
            continue;
        }
        if (!tsr_gemm_runs_on(candidate, facts->arch))
            return tsr_fail(TSR_ERR_UNSUPPORTED, "kernel '%s' needs sm_%d%s and %s is sm_%d: use --kernel auto", name, candidate->min_arch,
                            candidate->max_arch == 0 ? " or newer" : "", facts->name, facts->arch);
        *kernel = candidate;
        return TSR_OK;
    }
    if (names[0] == '\0')
        return tsr_fail(TSR_ERR_UNSUPPORTED, "no kernel of this build multiplies %s into %s on device '%s': convert to f32 or f64", tsr_dtype_name(input),
                        tsr_dtype_name(type), device_name(facts->kind));
    return tsr_fail(TSR_ERR_USAGE, "no kernel '%s' for %s on device '%s': there are auto, %s", name, tsr_dtype_name(input), device_name(facts->kind), names);
}

/* One operand: rows × cols at `data`, ld elements from row to row. */
static tsr_status check_operand(const tsr_gemm_kernel *kernel, char operand, const void *data, int64_t rows, int64_t cols, int64_t ld) {
    size_t bytes;
    if (ld < cols)
        return tsr_fail(TSR_ERR_SHAPE, "kernel '%s': ld%c is %" PRId64 " but %c has %" PRId64 " columns: ld must not be smaller",
                        kernel->name, operand + ('a' - 'A'), ld, operand, cols);
    if (rows > 0 && cols > 0 && !data)
        return tsr_fail(TSR_ERR_SHAPE, "kernel '%s': %c (%" PRId64 " x %" PRId64 ") has no memory: pass it", kernel->name, operand, rows, cols);
    return tsr_bytes_checked(rows, ld, tsr_dtype_bytes(operand == 'C' ? kernel->type : kernel->input), &bytes);
}

static bool divides(int64_t multiple, int64_t m, int64_t n, int64_t k) { return m % multiple == 0 && n % multiple == 0 && k % multiple == 0; }

/* The kernel that is quicker than this one for such a product; NULL: none. */
static const tsr_gemm_kernel *smaller(const tsr_gemm_kernel *kernel, int64_t m, int64_t n, int64_t k) {
    const double products = (double)m * (double)n, depth = (double)k;
    const bool is_small = products * depth < kernel->small_below && depth * depth * depth < kernel->small_below;
    const bool is_thin = products < kernel->thin_below * (double)(m + n), is_short = k < kernel->short_below;
    if (!kernel->small || !(is_small || is_thin || is_short)) return NULL;
    return divides(kernel->small->multiple, m, n, k) ? kernel->small : kernel->small->small;
}

const tsr_gemm_kernel *tsr_gemm_taker(const tsr_gemm_kernel *kernel, int64_t m, int64_t n, int64_t k) {
    const tsr_gemm_kernel *small = smaller(kernel, m, n, k);
    return small ? tsr_gemm_taker(small, m, n, k) : kernel;
}

tsr_status tsr_gemm_launch(const tsr_gemm_kernel *kernel, tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    int64_t m = args->m, n = args->n, k = args->k;
    if (kernel->device != device->ops->kind)
        return tsr_fail(TSR_ERR_DEVICE, "kernel '%s' runs on device '%s', not '%s': choose another", kernel->name,
                        device_name(kernel->device), device->ops->name);
    if (m < 0 || n < 0 || k < 0)
        return tsr_fail(TSR_ERR_SHAPE, "kernel '%s': m, n, k are %" PRId64 ", %" PRId64 ", %" PRId64 ": none may be negative",
                        kernel->name, m, n, k);
    if (!divides(kernel->multiple, m, n, k))
        return tsr_fail(TSR_ERR_SHAPE, "kernel '%s' needs multiples of %" PRId64 " and m, n, k are %" PRId64 ", %" PRId64 ", %" PRId64
                        ": use another kernel or pad", kernel->name, kernel->multiple, m, n, k);
    TSR_TRY(check_operand(kernel, 'A', args->a, m, k, args->lda));
    TSR_TRY(check_operand(kernel, 'B', args->b, k, n, args->ldb));
    TSR_TRY(check_operand(kernel, 'C', args->c, m, n, args->ldc));
    if (kernel->workspace_bytes && kernel->workspace_bytes(m, n, k) > 0 && !args->workspace)
        return tsr_fail(TSR_ERR_MEMORY, "kernel '%s' needs a workspace of %zu bytes and got none: pass it", kernel->name,
                        kernel->workspace_bytes(m, n, k));
    if (m == 0 || n == 0) return TSR_OK;
    return tsr_gemm_taker(kernel, m, n, k)->launch(device, stream, args);
}

double tsr_gemm_error_bound(const tsr_gemm_kernel *kernel, int64_t k) {
    double unit_roundoff = kernel->type == TSR_F32 ? 0x1p-24 : 0x1p-53;
    return unit_roundoff * kernel->error_factor * (kernel->error_grows ? (double)k : 1.0);
}

/* ---- arguments of the memory kernels --------------------------------------------------------------------------- */

static tsr_status check_view(const char *what, tsr_view view) {
    size_t bytes;
    if (view.rows < 0 || view.cols < 0 || view.ld < view.cols)
        return tsr_fail(TSR_ERR_SHAPE, "%s: %" PRId64 " x %" PRId64 " with rows %" PRId64 " elements apart is no matrix: ld must be at least cols",
                        what, view.rows, view.cols, view.ld);
    if (!view.data && view.rows > 0 && view.cols > 0)
        return tsr_fail(TSR_ERR_SHAPE, "%s: %" PRId64 " x %" PRId64 " has no memory: pass it", what, view.rows, view.cols);
    return tsr_bytes_checked(view.rows, view.ld, tsr_dtype_bytes(view.element.dtype), &bytes);
}

static tsr_status check_type(const char *what, tsr_element element, bool half) {
    if (element.swapped || (element.dtype != TSR_F32 && element.dtype != TSR_F64 && !(half && element.dtype == TSR_F16)))
        return tsr_fail(TSR_ERR_UNSUPPORTED, "%s: cannot be %s%s: use %sf32 or f64 in this machine's byte order", what,
                        tsr_dtype_name(element.dtype), element.swapped ? " byte-swapped" : "", half ? "f16, " : "");
    return TSR_OK;
}

static tsr_status check_same_shape(const char *what, tsr_view view, tsr_view as) {
    if (view.rows != as.rows || view.cols != as.cols)
        return tsr_fail(TSR_ERR_SHAPE, "%s is %" PRId64 " x %" PRId64 " and must be %" PRId64 " x %" PRId64 ": pass equal shapes", what,
                        view.rows, view.cols, as.rows, as.cols);
    return TSR_OK;
}

static tsr_status shape_once(size_t input_bytes, size_t bytes, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape) {
    *shape = (tsr_gemm_shape){0};
    shape->bytes = (double)input_bytes * ((double)m * (double)k + (double)k * (double)n) + (double)bytes * (double)m * (double)n;
    return TSR_OK;
}

tsr_status tsr_gemm_shape_once_half(tsr_device *device, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape) {
    (void)device;
    return shape_once(sizeof(uint16_t), sizeof(float), m, n, k, shape);
}

tsr_status tsr_gemm_shape_once_f32(tsr_device *device, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape) {
    (void)device;
    return shape_once(sizeof(float), sizeof(float), m, n, k, shape);
}

tsr_status tsr_gemm_shape_once_f64(tsr_device *device, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape) {
    (void)device;
    return shape_once(sizeof(double), sizeof(double), m, n, k, shape);
}

tsr_status tsr_pack_check(const tsr_pack_args *args) {
    int64_t rows = args->transpose ? args->from.cols : args->from.rows;
    int64_t cols = args->transpose ? args->from.rows : args->from.cols;
    tsr_view to = {args->to, {args->type, false}, args->padded_rows, args->padded_cols, args->ld};
    TSR_TRY(check_view("pack: source", args->from));
    const bool halves = to.element.dtype == TSR_F16 && args->from.element.dtype == TSR_F16;
    if (!halves && to.element.dtype != TSR_BF16) TSR_TRY(check_type("pack: target", to.element, false));
    TSR_TRY(check_view("pack: target", to));
    if (rows > to.rows || cols > to.cols)
        return tsr_fail(TSR_ERR_SHAPE, "pack: operand of %" PRId64 " x %" PRId64 " does not fit the padded %" PRId64 " x %" PRId64 ": pad more",
                        rows, cols, to.rows, to.cols);
    return TSR_OK;
}

tsr_status tsr_finish_check(const tsr_finish_args *args) {
    TSR_TRY(check_view("finish: accumulated", args->accumulated));
    TSR_TRY(check_type("finish: accumulated", args->accumulated.element, false));
    TSR_TRY(check_view("finish: output", args->out));
    TSR_TRY(check_type("finish: output", args->out.element, true));
    TSR_TRY(check_same_shape("finish: output", args->out, args->accumulated));
    if (args->beta == 0.0) return TSR_OK;
    TSR_TRY(check_view("finish: c0", args->c0));
    return check_same_shape("finish: c0", args->c0, args->accumulated);
}
