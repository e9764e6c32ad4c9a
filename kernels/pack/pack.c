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
                        half ? "f16, bf16, c64, c128, " : "");
    return TSR_OK;
}

/* Real elements in no form, complex ones in one, and whole ones. */
static tsr_status check_form(const tsr_pack_args *args) {
    const bool complex = tsr_dtype_is_complex(args->from.element.dtype);
    const int64_t down = tsr_form_rows(args->form), across = tsr_form_cols(args->form);
    if (complex == (args->form != TSR_FORM_REAL) && args->padded_rows % down == 0 && args->padded_cols % across == 0)
        return TSR_OK;
    return tsr_fail(TSR_ERR_SHAPE,
                    "pack: %s elements of %" PRId64 " x %" PRId64 " reals do not make up %" PRId64 " x %" PRId64
                    ": choose the form for the elements, and pad to whole ones",
                    tsr_dtype_name(args->from.element.dtype), down, across, args->padded_rows, args->padded_cols);
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
    TSR_TRY(check_form(args));
    const bool moved = to.element.dtype == args->from.element.dtype && tsr_dtype_serves(args->type, TSR_USE_OPERAND);
    if (!moved && !tsr_dtype_serves(args->type, TSR_USE_ROUNDED))
        TSR_TRY(check_type("pack: target", to.element, false));
    TSR_TRY(check_view("pack: target", to));
    if (rows > to.rows / tsr_form_rows(args->form) || cols > to.cols / tsr_form_cols(args->form))
        return tsr_fail(TSR_ERR_SHAPE,
                        "pack: operand of %" PRId64 " x %" PRId64 " does not fit the padded %" PRId64 " x %" PRId64
                        ": pad more",
                        rows, cols, to.rows, to.cols);
    return TSR_OK;
}

tsr_status tsr_finish_check(const tsr_finish_args *args) {
    TSR_TRY(check_view("finish: accumulated", args->accumulated));
    TSR_TRY(check_type("finish: accumulated", args->accumulated.element, false));
    if (args->form == TSR_FORM_SQUARES || args->accumulated.ld < tsr_form_cols(args->form) * args->accumulated.cols)
        return tsr_fail(TSR_ERR_SHAPE,
                        "finish: sums %" PRId64 " reals apart cannot be of %" PRId64
                        " columns in form %d: pass what was accumulated",
                        args->accumulated.ld, args->accumulated.cols, (int)args->form);
    TSR_TRY(check_view("finish: output", args->out));
    TSR_TRY(check_type("finish: output", args->out.element, true));
    TSR_TRY(check_same_shape("finish: output", args->out, args->accumulated));
    if (!tsr_finish_adds(args)) return TSR_OK;
    TSR_TRY(check_view("finish: c0", args->c0));
    return check_same_shape("finish: c0", args->c0, args->accumulated);
}

tsr_status tsr_mirror_check(const tsr_mirror_args *args) {
    const int64_t rows = tsr_max(1, args->batch) * args->rows;
    const tsr_view view = {args->data, {args->type, false}, rows, args->left + args->tile, args->ld};
    TSR_TRY(check_view("mirror: strip", view));
    TSR_TRY(check_type("mirror: strip", view.element, true));
    if (args->left < 0 || (args->tile != 0 && args->tile != args->rows))
        return tsr_fail(TSR_ERR_SHAPE,
                        "mirror: a tile of %" PRId64 " columns right of %" PRId64 " in %" PRId64
                        " rows is no square on the diagonal: pass as many columns as rows, or none",
                        args->tile, args->left, args->rows);
    if (args->batch > 1 && args->left != 0)
        return tsr_fail(TSR_ERR_SHAPE,
                        "mirror: %" PRId64 " matrices with %" PRId64 " columns left of their tiles: "
                        "pass whole ones",
                        args->batch, args->left);
    return TSR_OK;
}

tsr_status tsr_add_check(const tsr_add_args *args) {
    const tsr_view to = {args->to, {args->type, false}, 1, args->count, args->count};
    TSR_TRY(check_view("add: sums", to));
    TSR_TRY(check_type("add: sums", to.element, false));
    if (args->parts < 1 || (args->parts > 1 && args->stride < args->count) || (!args->from && args->count > 0))
        return tsr_fail(TSR_ERR_SHAPE,
                        "add: %d parts of %" PRId64 " elements, %" PRId64
                        " apart: pass one or more that do not overlap",
                        args->parts, args->count, args->stride);
    return TSR_OK;
}

/* ---- complex elements whose parts stay side by side ------------------------------------------ */

static void take_parts(tsr_view *view) {
    const int parts = tsr_dtype_parts(view->element.dtype);
    view->element.dtype = tsr_dtype_part(view->element.dtype);
    view->cols *= parts;
    view->ld *= parts;
}

bool tsr_pack_take_parts(tsr_pack_args *args) {
    if (args->form == TSR_FORM_REAL) return true;
    if (args->form != TSR_FORM_BESIDE || args->transpose || args->conjugate) return false;
    take_parts(&args->from);
    args->form = TSR_FORM_REAL;
    return true;
}

bool tsr_finish_take_parts(tsr_finish_args *args) {
    const bool out = tsr_dtype_is_complex(args->out.element.dtype);
    const bool c0 = tsr_dtype_is_complex(args->c0.element.dtype), adds = tsr_finish_adds(args);
    if (args->alpha_imag != 0 || args->beta_imag != 0) return false;
    if (args->form == TSR_FORM_REAL) return !out && !(adds && c0);
    if (args->form != TSR_FORM_BESIDE || !out || (adds && !c0)) return false;
    args->accumulated.cols *= 2;
    take_parts(&args->out);
    take_parts(&args->c0);
    args->form = TSR_FORM_REAL;
    return true;
}

bool tsr_finish_copies(const tsr_finish_args *args) {
    return !args->one_nan && args->alpha == 1 && args->beta == 0 &&
           args->accumulated.element.dtype == args->out.element.dtype;
}
