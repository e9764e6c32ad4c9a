/* A store of reals in front of a complex one (verify_private.h): each element becomes a small matrix of its parts. */
#include <stdlib.h>
#include <string.h>

#include "app/verify/verify_private.h"
#include "kernels/base/element.h"

/* What an element becomes: rows × cols of its real part, its imaginary part, that with the other sign. */
typedef enum { RE, IM, MINUS_IM } part;
typedef struct {
    int rows, cols;
    part at[2][2];
} form;

static const form real_part = {1, 1, {{RE}}};
static const form beside = {1, 2, {{RE, IM}}};
static const form below = {2, 1, {{RE}, {IM}}};
static const form against = {2, 1, {{RE}, {MINUS_IM}}};
static const form squares = {2, 2, {{RE, IM}, {MINUS_IM, RE}}};

typedef struct {
    tsr_store base;
    tsr_store *from; /* not owned */
    form form;
    tsr_complex factor;
    bool conjugate;
} parts_store;

/* ---- the store ------------------------------------------------------------------------------- */

static double part_of(const parts_store *s, tsr_complex x, part which) {
    if (s->conjugate) x.im = -x.im;
    if (s->factor.im != 0)
        x = (tsr_complex){s->factor.re * x.re - s->factor.im * x.im, s->factor.re * x.im + s->factor.im * x.re};
    return which == RE ? x.re : which == IM ? x.im : -x.im;
}

static void take_parts(const parts_store *s, tsr_rect rect, tsr_rect read, const char *elements, char *to, int64_t ld) {
    const tsr_element element = s->from->desc.element;
    const size_t width = tsr_dtype_bytes(element.dtype);
    const tsr_dtype type = s->base.desc.element.dtype;
    for (int64_t i = 0; i < rect.rows; i++) {
        char *row = to + (size_t)(i * ld) * tsr_dtype_bytes(type);
        const int64_t r = rect.row + i;
        for (int64_t j = 0; j < rect.cols; j++) {
            const int64_t c = rect.col + j;
            const int64_t at = (r / s->form.rows - read.row) * read.cols + c / s->form.cols - read.col;
            const tsr_complex x = tsr_element_to_complex(element, elements + (size_t)at * width);
            tsr_element_store(type, row, j, part_of(s, x, s->form.at[r % s->form.rows][c % s->form.cols]));
        }
    }
}

static tsr_status parts_read(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    const parts_store *s = (const parts_store *)store;
    TSR_TRY(tsr_store_check_rect(&store->desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    tsr_rect read = {rect.row / s->form.rows, rect.col / s->form.cols, 0, 0};
    read.rows = tsr_ceil_div(rect.row + rect.rows, s->form.rows) - read.row;
    read.cols = tsr_ceil_div(rect.col + rect.cols, s->form.cols) - read.col;
    const size_t bytes = (size_t)tsr_rect_elements(read) * tsr_dtype_bytes(s->from->desc.element.dtype);
    char *elements = malloc(bytes);
    if (!elements)
        return tsr_fail(TSR_ERR_MEMORY, "no memory for %zu bytes of '%s': free some", bytes, store->desc.name.file);
    const tsr_status status = s->from->ops->read(s->from, read, elements, read.cols);
    if (status == TSR_OK) take_parts(s, rect, read, elements, to, ld);
    free(elements);
    return status;
}

static void parts_close(tsr_store *store) { free(store); }

static const tsr_store_ops parts_ops = {.name = "parts", .read = parts_read, .close = parts_close};
/* What reads through MPI-IO says so. */
static const tsr_store_ops mpio_parts_ops = {.name = "mpio", .read = parts_read, .close = parts_close};

static void scale(int64_t *length, int by) { *length *= by; }

static tsr_status open_parts(tsr_store **store, const form *as, bool transpose, bool conjugate, tsr_complex factor,
                             tsr_store **opened) {
    tsr_store *from = *store;
    if (!from) return TSR_OK;
    parts_store *s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to check complex matrices: free some");
    *s = (parts_store){
        .base = {.ops = strcmp(from->ops->name, "mpio") == 0 ? &mpio_parts_ops : &parts_ops, .desc = from->desc},
        .from = from,
        .form = *as,
        .factor = factor,
        .conjugate = conjugate};
    if (transpose) s->form = (form){as->cols, as->rows, {{as->at[0][0], as->at[1][0]}, {as->at[0][1], as->at[1][1]}}};
    tsr_store_desc *desc = &s->base.desc;
    const int rows = s->form.rows, cols = s->form.cols;
    scale(&desc->rows, rows);
    scale(&desc->row0, rows);
    scale(&desc->dataset_rows, rows);
    scale(&desc->chunk_rows, rows);
    scale(&desc->cols, cols);
    scale(&desc->col0, cols);
    scale(&desc->dataset_cols, cols);
    scale(&desc->chunk_cols, cols);
    const tsr_dtype part_type = tsr_dtype_part(desc->element.dtype);
    desc->element = (tsr_element){factor.im != 0 ? tsr_dtype_wider(tsr_dtype_wider(part_type)) : part_type, false};
    *store = *opened = &s->base;
    return TSR_OK;
}

/* ---- a check's arguments --------------------------------------------------------------------- */

static bool is_complex(const tsr_store *store) { return store && tsr_dtype_is_complex(store->desc.element.dtype); }

tsr_status tsr_verify_parts_open(tsr_verify_args *args, verify_parts *parts) {
    const tsr_complex alpha = {args->alpha, args->alpha_imag};
    const tsr_complex beta = {args->beta, args->beta_imag};
    const tsr_complex one = {1, 0};
    const bool added = args->c0 && beta.im != 0;
    const bool a = is_complex(args->a), b = is_complex(args->b);
    const bool c = is_complex(args->c), c0 = is_complex(args->c0);
    const bool turned = alpha.im != 0, paired = turned || (c && !a && !b);
    const form *of_a = NULL;
    const form *of_b = NULL;
    const form *of_c = NULL;
    *parts = (verify_parts){.rows = 1, .turned = turned, .alpha = alpha, .real_c = turned && !c};
    if (!a && !b && !c && !c0 && !turned && !added) return TSR_OK;
    if (a && !b && !paired) {
        of_a = c ? &below : &real_part; /* B as it is */
        of_c = c ? &below : NULL;
    } else {
        of_a = a ? &beside : NULL;
        of_b = c || paired ? a ? &squares : &beside : a ? &against : &real_part;
        of_c = c || paired ? &beside : NULL;
    }
    if (paired && !b) parts->nowhere = a ? ODD_SUMS : ODD_COLUMNS;
    const form *of_c0 = of_c ? of_c : &real_part;
    if (of_a) TSR_TRY(open_parts(&args->a, of_a, args->transpose_a, args->conjugate_a, one, &parts->opened[0]));
    if (of_b) TSR_TRY(open_parts(&args->b, of_b, args->transpose_b, args->conjugate_b, one, &parts->opened[1]));
    if (of_c) TSR_TRY(open_parts(&args->c, of_c, false, false, one, &parts->opened[2]));
    TSR_TRY(open_parts(&args->c0, of_c0, false, false, beta, &parts->opened[3]));
    if (turned) args->alpha = fmax(fabs(alpha.re), fabs(alpha.im));
    if (added) args->beta = 1;
    if (of_c) parts->rows = of_c->rows;
    return TSR_OK;
}

void tsr_verify_parts_close(verify_parts *parts) {
    for (int i = 0; i < 4; i++) tsr_store_close(parts->opened[i]);
}
