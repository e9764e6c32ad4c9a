/* Whether what a journal says can be. Its sums are right; but it may have been copied from elsewhere, or written by a
 * hand, and nothing behind it checks again. */
#include <string.h>

#include "io/output/output_chunks_private.h"
#include "io/output/resume/journal_private.h"

static bool ends(const char *text, size_t chars) { return memchr(text, '\0', chars) != NULL; }

static bool none_below_0(const int64_t *values, int count) {
    for (int i = 0; i < count; i++)
        if (values[i] < 0) return false;
    return true;
}

/* Of all elements; false where 63 bits do not count them. */
static bool count_bytes(const tsr_store_desc *d, int leads, int64_t *bytes) {
    *bytes = (int64_t)tsr_dtype_bytes(d->element.dtype);
    for (int i = 0; i < leads; i++)
        if (__builtin_mul_overflow(*bytes, d->lead_size[i], bytes)) return false;
    return !__builtin_mul_overflow(*bytes, d->dataset_rows, bytes) &&
           !__builtin_mul_overflow(*bytes, d->dataset_cols, bytes);
}

static bool shape_sane(const tsr_store_desc *d) {
    const int64_t sizes[] = {d->rows,         d->cols,       d->row0,       d->col0,    d->dataset_rows,
                             d->dataset_cols, d->chunk_rows, d->chunk_cols, d->matrices};
    int64_t bytes;
    if (d->dataset_dimensions < 0 || d->dataset_dimensions > TSR_DIMENSIONS_MAX) return false;
    const int leads = tsr_store_lead_count(d);
    if (leads < 0 || leads > TSR_LEADS_MAX || d->stack_dimensions < 0 || d->stack_dimensions > TSR_LEADS_MAX)
        return false;
    if (d->matrix_dimensions < 0 || d->matrix_dimensions > 2 || (unsigned)d->element.dtype >= TSR_DTYPE_COUNT)
        return false;
    if (!none_below_0(sizes, sizeof sizes / sizeof *sizes) || !none_below_0(d->lead_size, leads) ||
        !none_below_0(d->stack, d->stack_dimensions))
        return false;
    if (d->rows != d->dataset_rows || d->cols != d->dataset_cols || !count_bytes(d, leads, &bytes)) return false;
    return d->offset >= (d->chunk_rows > 0 ? -1 : 0) && tsr_store_bytes(d) == bytes && d->offset <= INT64_MAX - bytes;
}

bool tsr_journal_head_sane(const tsr_journal_head *head) {
    const tsr_output *o = &head->output;
    const tsr_matrix_name *name = &o->desc.name;
    return ends(head->settings, sizeof head->settings) && ends(o->target, sizeof o->target) &&
           ends(o->journal, sizeof o->journal) && ends(o->lost, sizeof o->lost) &&
           ends(name->file, sizeof name->file) && ends(name->path, sizeof name->path) &&
           ends(name->slice, sizeof name->slice) && head->ranks >= 1 && head->cut_m >= 0 && head->cut_n >= 0 &&
           shape_sane(&o->desc);
}

bool tsr_journal_chunk_sane(const tsr_store_desc *desc, int64_t number, int64_t offset) {
    if (desc->chunk_rows <= 0 || desc->chunk_cols <= 0 || desc->rows <= 0 || desc->cols <= 0) return false;
    const tsr_output_spec spec = tsr_chunks_spec(desc);
    return number >= 0 && number < tsr_spec_chunks(&spec) && offset >= 0;
}

static bool part_sane(const tsr_store_desc *d, const tsr_rect *r) {
    int64_t rows = d->dataset_rows;
    for (int i = 0; i < tsr_store_lead_count(d); i++) rows *= d->lead_size[i];
    return r->row >= 0 && r->col >= 0 && r->rows >= 1 && r->cols >= 1 && r->row < rows && r->rows <= rows - r->row &&
           r->col < d->dataset_cols && r->cols <= d->dataset_cols - r->col;
}

int64_t tsr_journal_sane_parts(const tsr_journal_head *head, tsr_part *parts, int64_t count) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (part_sane(&head->output.desc, &parts[i].rect)) parts[kept++] = parts[i];
    return kept;
}
