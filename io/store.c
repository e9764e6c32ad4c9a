/* What holds for any store (store.h). */
#include "io/store.h"

#include <string.h>

tsr_status tsr_store_take_slice(tsr_store_desc *desc) {
    tsr_matrix_name *name = &desc->name;
    const tsr_hdf5_desc *of = &desc->hdf5;
    TSR_TRY(tsr_matrix_name_slice(name, of->leads, of->lead_size, desc->dataset_rows, desc->dataset_cols));
    if (!name->sliced) return TSR_OK;
    int64_t before = 0; /* matrices in the dataset before this one */
    for (int d = 0; d < of->leads; d++) before = before * of->lead_size[d] + name->lead[d];
    if (desc->offset >= 0)
        desc->offset +=
            before * desc->dataset_rows * desc->dataset_cols * (int64_t)tsr_dtype_bytes(desc->element.dtype);
    desc->row0 = name->row0;
    desc->col0 = name->col0;
    desc->rows = name->row1 - name->row0;
    desc->cols = name->col1 - name->col0;
    return TSR_OK;
}

tsr_status tsr_store_check_rect(const tsr_store_desc *desc, tsr_rect rect, int64_t ld) {
    if (rect.row >= 0 && rect.col >= 0 && rect.rows >= 0 && rect.cols >= 0 && rect.row <= desc->rows - rect.rows &&
        rect.col <= desc->cols - rect.cols && (ld >= rect.cols || tsr_rect_empty(rect)))
        return TSR_OK;
    return tsr_fail(
        TSR_ERR_SHAPE, "rectangle of %lldx%lld at (%lld, %lld) with rows of %lld is not inside '%s%s%s' of %lldx%lld",
        (long long)rect.rows, (long long)rect.cols, (long long)rect.row, (long long)rect.col, (long long)ld,
        desc->name.file, *desc->name.path ? ":" : "", desc->name.path, (long long)desc->rows, (long long)desc->cols);
}

tsr_chunk_range tsr_chunks_of_part(const tsr_store_desc *d) {
    if (d->chunk_rows <= 0 || d->rows == 0 || d->cols == 0) return (tsr_chunk_range){0, 0, 0, 0};
    const int64_t row0 = d->row0 / d->chunk_rows, col0 = d->col0 / d->chunk_cols;
    return (tsr_chunk_range){row0, col0, tsr_ceil_div(d->row0 + d->rows, d->chunk_rows) - row0,
                             tsr_ceil_div(d->col0 + d->cols, d->chunk_cols) - col0};
}

static const char *const mode_names[] = {
    [TSR_IO_AUTO] = "auto", [TSR_IO_DIRECT] = "direct", [TSR_IO_HDF5] = "hdf5", [TSR_IO_MPIO] = "mpio"};

tsr_status tsr_io_mode_parse(const char *name, tsr_io_mode *mode) {
    for (size_t i = 0; i < sizeof mode_names / sizeof *mode_names; i++) {
        if (strcmp(name, mode_names[i]) != 0) continue;
        *mode = (tsr_io_mode)i;
        return TSR_OK;
    }
    return tsr_fail(TSR_ERR_USAGE, "there is no way of input and output '%s'; choose auto, direct, hdf5 or mpio", name);
}

const char *tsr_io_mode_name(tsr_io_mode mode) { return mode_names[mode]; }
