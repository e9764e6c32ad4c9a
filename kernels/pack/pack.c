/* The pack tables of this build, and their arguments checked against the contract in pack.h. */
#include "kernels/pack/pack.h"

#include <inttypes.h>

static const tsr_pack_ops *const packs[] = {
    &tsr_pack_cpu,
#ifdef TSR_CUDA_TABLES
    &tsr_pack_cuda,
#endif
};

const tsr_pack_ops *tsr_pack_find(tsr_device_kind device) {
    for (size_t i = 0; i < sizeof packs / sizeof *packs; i++)
        if (packs[i]->device == device) return packs[i];
    return NULL;
}

static tsr_status check_view(const char *what, tsr_view view) {
    size_t bytes;
    if (view.rows < 0 || view.cols < 0 || view.ld < view.cols)
        return tsr_fail(TSR_ERR_SHAPE,
                        "%s: %" PRId64 " x %" PRId64 " with rows %" PRId64
                        " elements apart is no matrix: ld must be at least cols",
                        what, view.rows, view.cols, view.ld);
    if (!view.data && view.rows > 0 && view.cols > 0)
        return tsr_fail(TSR_ERR_SHAPE, "%s: %" PRId64 " x %" PRId64 " has no memory: pass it", what, view.rows,
                        view.cols);
    return tsr_bytes_checked(view.rows, view.ld, tsr_dtype_bytes(view.element.dtype), &bytes);
}

static tsr_status check_type(const char *what, tsr_element element, bool half) {
    if (element.swapped || !tsr_dtype_serves(element.dtype, half ? TSR_USE_RESULT : TSR_USE_SUM))
        return tsr_fail(TSR_ERR_UNSUPPORTED, "%s: cannot be %s%s: use %sf32 or f64 in this machine's byte order", what,
                        tsr_dtype_name(element.dtype), element.swapped ? " byte-swapped" : "",
                        half ? "f16, bf16, " : "");
    return TSR_OK;
}

static tsr_status check_same_shape(const char *what, tsr_view view, tsr_view as) {
    if (view.rows != as.rows || view.cols != as.cols)
        return tsr_fail(TSR_ERR_SHAPE,
                        "%s is %" PRId64 " x %" PRId64 " and must be %" PRId64 " x %" PRId64 ": pass equal shapes",
                        what, view.rows, view.cols, as.rows, as.cols);
    return TSR_OK;
}

tsr_status tsr_pack_check(const tsr_pack_args *args) {
    int64_t rows = args->transpose ? args->from.cols : args->from.rows;
    int64_t cols = args->transpose ? args->from.rows : args->from.cols;
    tsr_view to = {args->to, {args->type, false}, args->padded_rows, args->padded_cols, args->ld};
    TSR_TRY(check_view("pack: source", args->from));
    const bool moved = to.element.dtype == args->from.element.dtype && tsr_dtype_serves(args->type, TSR_USE_OPERAND);
    if (!moved && !tsr_dtype_serves(args->type, TSR_USE_ROUNDED))
        TSR_TRY(check_type("pack: target", to.element, false));
    TSR_TRY(check_view("pack: target", to));
    if (rows > to.rows || cols > to.cols)
        return tsr_fail(TSR_ERR_SHAPE,
                        "pack: operand of %" PRId64 " x %" PRId64 " does not fit the padded %" PRId64 " x %" PRId64
                        ": pad more",
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
