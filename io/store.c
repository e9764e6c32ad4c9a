/* What holds for any store (store.h). */
#include "io/store.h"

#include <string.h>

#include "io/text/text.h"

tsr_status tsr_store_set_shape(tsr_store_desc *desc, const tsr_shape *shape) {
    const int dimensions = shape->dimensions, leads = tsr_leads_of(dimensions);
    desc->dataset_dimensions = dimensions;
    desc->rows_missing = dimensions < 1;
    desc->cols_missing = dimensions < 2;
    desc->dataset_rows = dimensions == 0 ? 1 : shape->size[leads];
    desc->dataset_cols = dimensions < 2 ? 1 : shape->size[leads + 1];
    memcpy(desc->lead_size, shape->size, (size_t)leads * sizeof *shape->size);
    return tsr_store_take_slice(desc);
}

tsr_status tsr_store_take_slice(tsr_store_desc *desc) {
    tsr_matrix_name *name = &desc->name;
    TSR_TRY(
        tsr_matrix_name_slice(name, desc->dataset_dimensions, desc->lead_size, desc->dataset_rows, desc->dataset_cols));
    desc->row0 = name->row0;
    desc->col0 = name->col0;
    desc->rows = name->row1 - name->row0;
    desc->cols = name->col1 - name->col0;
    desc->matrix_dimensions = (int)tsr_min(2, desc->dataset_dimensions) - name->row_dropped - name->col_dropped;
    desc->matrices = 1;
    desc->matrix = 0;
    desc->stack_dimensions = 0;
    for (int d = 0; d < tsr_store_lead_count(desc); d++) {
        if (name->lead_dropped[d]) continue;
        const int64_t size = name->lead1[d] - name->lead0[d];
        desc->stack[desc->stack_dimensions++] = size;
        if (__builtin_mul_overflow(desc->matrices, size, &desc->matrices))
            return tsr_fail(TSR_ERR_FORMAT, "'%s:%s' has more matrices than 63 bits count", name->file, name->path);
    }
    return TSR_OK;
}

void tsr_store_leads(const tsr_store_desc *desc, int64_t matrix, int64_t lead[TSR_LEADS_MAX]) {
    const tsr_matrix_name *name = &desc->name;
    for (int d = tsr_store_lead_count(desc) - 1; d >= 0; d--) {
        const int64_t size = tsr_max(1, name->lead1[d] - name->lead0[d]);
        lead[d] = name->lead0[d] + matrix % size;
        matrix /= size;
    }
}

int64_t tsr_store_matrices_before(const tsr_store_desc *desc) {
    int64_t lead[TSR_LEADS_MAX], before = 0;
    tsr_store_leads(desc, desc->matrix, lead);
    for (int d = 0; d < tsr_store_lead_count(desc); d++) before = before * desc->lead_size[d] + lead[d];
    return before;
}

tsr_shape tsr_store_shape(const tsr_store_desc *desc) {
    tsr_shape shape = {.dimensions = desc->stack_dimensions + desc->matrix_dimensions};
    int64_t *own = shape.size + desc->stack_dimensions;
    memcpy(shape.size, desc->stack, (size_t)desc->stack_dimensions * sizeof *desc->stack);
    if (desc->matrix_dimensions == 2) own[1] = desc->cols;
    if (desc->matrix_dimensions > 0) own[0] = desc->matrix_dimensions == 2 ? desc->rows : desc->rows * desc->cols;
    return shape;
}

bool tsr_shape_same(const tsr_shape *a, const tsr_shape *b) {
    return a->dimensions == b->dimensions && memcmp(a->size, b->size, (size_t)a->dimensions * sizeof *a->size) == 0;
}

const char *tsr_shape_text(const tsr_shape *shape, const char *between, char *text, size_t chars) {
    text[0] = '\0';
    if (shape->dimensions == 0) tsr_text_append(text, chars, "a single number");
    for (int d = 0; d < shape->dimensions; d++)
        tsr_text_append(text, chars, "%s%lld", d ? between : "", (long long)shape->size[d]);
    return text;
}

int64_t tsr_store_bytes(const tsr_store_desc *desc) {
    const tsr_shape shape = tsr_store_shape(desc);
    int64_t bytes = (int64_t)tsr_dtype_bytes(desc->element.dtype);
    for (int d = 0; d < shape.dimensions; d++)
        if (__builtin_mul_overflow(bytes, shape.size[d], &bytes)) return INT64_MAX;
    return bytes;
}

bool tsr_store_can_join(const tsr_store_desc *desc) {
    tsr_store_desc last = *desc;
    last.matrix = desc->matrices - 1;
    return desc->offset >= 0 && desc->matrices > 0 && desc->rows == desc->dataset_rows &&
           tsr_store_matrices_before(&last) - tsr_store_matrices_before(desc) == last.matrix;
}

void tsr_store_join(tsr_store_desc *desc) {
    desc->row0 = tsr_store_matrices_before(desc) * desc->dataset_rows;
    for (int d = 0; d < tsr_store_lead_count(desc); d++) desc->dataset_rows *= desc->lead_size[d];
    desc->rows *= desc->matrices;
    desc->dataset_dimensions -= tsr_store_lead_count(desc);
    desc->stack_dimensions = 0;
    desc->matrices = 1;
}

static void swap(int64_t *a, int64_t *b) {
    const int64_t kept = *a;
    *a = *b;
    *b = kept;
}

void tsr_store_turn_vector(tsr_store_desc *desc) {
    swap(&desc->rows, &desc->cols);
    swap(&desc->row0, &desc->col0);
    swap(&desc->dataset_rows, &desc->dataset_cols);
    swap(&desc->chunk_rows, &desc->chunk_cols);
    desc->rows_missing = !desc->rows_missing;
    desc->cols_missing = !desc->cols_missing;
}

void tsr_store_split_rows(tsr_store_desc *desc, bool columns) {
    const int lead = tsr_store_lead_count(desc);
    desc->lead_size[lead] = desc->dataset_rows;
    desc->name.lead0[lead] = desc->row0;
    desc->name.lead1[lead] = desc->row0 + desc->rows;
    desc->lead_chunk[lead] = desc->chunk_rows;
    desc->stack[desc->stack_dimensions++] = desc->rows;
    desc->matrices *= desc->rows;
    desc->matrix_dimensions = 1;
    desc->dataset_rows = desc->rows = 1;
    desc->row0 = 0;
    desc->chunk_rows = tsr_min(1, desc->chunk_rows);
    desc->rows_missing = true;
    if (columns) tsr_store_turn_vector(desc);
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
    if (d->chunk_rows <= 0 || d->rows == 0 || d->cols == 0) return (tsr_chunk_range){0};
    const int64_t row0 = d->row0 / d->chunk_rows, col0 = d->col0 / d->chunk_cols;
    return (tsr_chunk_range){.matrices = d->matrices,
                             .row0 = row0,
                             .col0 = col0,
                             .rows = tsr_ceil_div(d->row0 + d->rows, d->chunk_rows) - row0,
                             .cols = tsr_ceil_div(d->col0 + d->cols, d->chunk_cols) - col0};
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
