/* tessera compare X Y: largest and average relative error of X against the reference Y, largest absolute error and
 * where it is. All ranks read bands of rows; equal errors are reported at the first element in row order, so any
 * number of ranks says the same. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/command.h"
#include "app/library/inputs.h"
#include "app/progress.h"
#include "app/tessera_options.h"
#include "app/verify/rounded.h"
#include "app/verify/strips.h"
#include "io/text/text.h"

#define BUFFER_BYTES ((size_t)64 << 20)

typedef struct {
    const char *names[2];
    int count;
    double tolerance;
    tsr_order order;
    tsr_io_mode io;
    const char *external;
    tsr_progress_mode progress;
    bool quiet;
    bool several; /* matrices, not one */
} compare_options;

static tsr_status read_tolerance(const tsr_option *option, const char *text, void *field) {
    TSR_TRY(tsr_read_number(option, text, field));
    if (*(double *)field >= 0) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "--tolerance %s is negative: use 0 or more", text);
}

#define AT(member) offsetof(compare_options, member)

static const tsr_option options[] = {
    {.name = "tolerance",
     .value = "T",
     .help = "Largest relative error that passes (default 1e-6)",
     .initial = "1e-6",
     .read = read_tolerance,
     .field = AT(tolerance)},
    {.shared = &tsr_option_order,
     .help = "How rows and columns are named: as h5ls shows them (row, default), or as MATLAB does (col)",
     .field = AT(order)},
    {.shared = &tsr_option_io, .field = AT(io)},
    {.shared = &tsr_option_plugins},
    {.shared = &tsr_option_external, .field = AT(external)},
    {.shared = &tsr_option_progress, .field = AT(progress)},
    {.shared = &tsr_option_quiet,
     .help = "Neither progress nor errors where all is within the tolerance; the exit code says it",
     .field = AT(quiet)},
    {0}};

static tsr_status take_matrix(void *to, int number, const char *text) {
    compare_options *o = to;
    o->names[number] = text;
    o->count = number + 1;
    return TSR_OK;
}

static tsr_status check(void *to) {
    const compare_options *o = to;
    if (o->count == 2) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "compare: needs two matrices, got %d: tessera compare X Y", o->count);
}

static const tsr_options command = {
    .options = options,
    .arguments = "X Y",
    .what =
        "Errors of X against the reference Y. The relative error of an element is |x - y| / |y|; where y is 0, it is "
        "|x|. Equal infinities and NaN against NaN agree; any other pair with NaN or Inf is a mismatch and fails. "
        "Where one part of a complex element is such, the other part is compared."
        "\vExit code 0: agreement; 3: an error above the tolerance, or a mismatch.",
    .most_arguments = 2,
    .argument = take_matrix,
    .check = check};

static void help(const char *part) {
    (void)part;
    tsr_options_help(&command, "tessera compare", "tessera compare C.h5:/C reference.h5:/C --tolerance 1e-5");
}

/* An element: of 64 bits a whole number need not fit its value. */
typedef struct {
    tsr_complex value;
    bool is_whole;
    __int128 whole;
} number;

/* An error and the element it belongs to. error < 0: none yet. */
typedef struct {
    double error;
    int64_t matrix, row, col;
    number x, y;
} worst_element;

/* Plain memory: gathered from all ranks. */
typedef struct {
    worst_element relative, absolute, mismatch;
    double relative_sum, square_sum, reference_sum; /* of relative errors; of (x - y)² and of y² */
    int64_t elements, finite, mismatches;
} differences;

static void note(worst_element *worst, double error, int64_t matrix, int64_t row, int64_t col, const number *x,
                 const number *y) {
    if (error > worst->error) *worst = (worst_element){error, matrix, row, col, *x, *y};
}

static number number_at(tsr_element element, const char *at) {
    const tsr_dtype_facts *facts = tsr_dtype_facts_of(element.dtype);
    number x = {.value = tsr_element_to_complex(element, at)};
    x.is_whole = facts->kind == TSR_DTYPE_SIGNED || facts->kind == TSR_DTYPE_UNSIGNED;
    if (!x.is_whole) return x;
    if (facts->bytes == sizeof(uint64_t)) {
        uint64_t bits;
        memcpy(&bits, at, sizeof bits);
        if (element.swapped) bits = __builtin_bswap64(bits);
        x.whole = facts->kind == TSR_DTYPE_SIGNED ? (__int128)(int64_t)bits : (__int128)bits;
    } else x.whole = (__int128)x.value.re;
    return x;
}

/* Of an element in floating point, too. */
static bool has_whole(const number *x, __int128 *whole) {
    const bool has =
        x->is_whole || (x->value.im == 0 && fabs(x->value.re) <= 0x1p64 && rint(x->value.re) == x->value.re);
    if (has) *whole = x->is_whole ? x->whole : (__int128)x->value.re;
    return has;
}

/* |x - y|; a whole number of 64 bits is not rounded before. */
static double difference(const number *x, const number *y) {
    __int128 of_x, of_y;
    if ((x->is_whole || y->is_whole) && has_whole(x, &of_x) && has_whole(y, &of_y)) return fabs((double)(of_x - of_y));
    return hypot(x->value.re - y->value.re, x->value.im - y->value.im);
}

/* Of NaN and Inf. */
static bool agree(double x, double y) { return (isnan(x) && isnan(y)) || x == y; }

static void compare_element(differences *d, const number *number_x, const number *number_y, int64_t matrix, int64_t row,
                            int64_t col) {
    const tsr_complex x = number_x->value, y = number_y->value;
    double absolute = difference(number_x, number_y);
    d->elements++;
    const bool re = isfinite(x.re) && isfinite(y.re), im = isfinite(x.im) && isfinite(y.im);
    if ((!re && !agree(x.re, y.re)) || (!im && !agree(x.im, y.im))) {
        d->mismatches++;
        if (d->mismatch.error < 0) d->mismatch = (worst_element){1, matrix, row, col, *number_x, *number_y};
        return;
    }
    const double size = hypot(re ? y.re : 0, im ? y.im : 0);
    if (!re || !im) {
        absolute = hypot(re ? x.re - y.re : 0, im ? x.im - y.im : 0);
        if (absolute == 0 && size == 0) return; /* nothing is left to compare: of real elements, too */
    }
    const double relative = size == 0 ? absolute : absolute / size;
    d->finite++;
    d->relative_sum += relative;
    d->square_sum += absolute * absolute;
    d->reference_sum += size * size;
    note(&d->relative, relative, matrix, row, col, number_x, number_y);
    note(&d->absolute, absolute, matrix, row, col, number_x, number_y);
}

static void compare_rect(const tsr_store *x, const tsr_store *y, tsr_rect rect, const char *data_x, const char *data_y,
                         differences *d) {
    size_t bytes_x = tsr_dtype_bytes(x->desc.element.dtype), bytes_y = tsr_dtype_bytes(y->desc.element.dtype);
    for (int64_t i = 0; i < rect.rows; i++)
        for (int64_t j = 0; j < rect.cols; j++) {
            const char *at_x = data_x + (size_t)(i * rect.cols + j) * bytes_x,
                       *at_y = data_y + (size_t)(i * rect.cols + j) * bytes_y;
            const number of_x = number_at(x->desc.element, at_x), of_y = number_at(y->desc.element, at_y);
            compare_element(d, &of_x, &of_y, x->desc.matrix, rect.row + i, rect.col + j);
        }
}

/* Local. This rank's band of rows of every matrix. */
static tsr_status compare_band(const tsr_world *world, tsr_progress_mode show, tsr_store *x, tsr_store *y,
                               differences *d) {
    size_t bytes_x = tsr_dtype_bytes(x->desc.element.dtype), bytes_y = tsr_dtype_bytes(y->desc.element.dtype);
    int64_t multiple = tsr_max(tsr_strips_multiple(&x->desc), tsr_strips_multiple(&y->desc));
    tsr_strips strips = tsr_strips_make(y->desc.rows, y->desc.cols, multiple, bytes_x + bytes_y, BUFFER_BYTES,
                                        world->ranks, world->rank);
    size_t elements = (size_t)(strips.step_rows * strips.step_cols);
    char *data_x = malloc(elements * bytes_x), *data_y = malloc(elements * bytes_y);
    const double ranks = world->ranks, total = (double)tsr_store_bytes(&x->desc) + (double)tsr_store_bytes(&y->desc);
    double done = 0;
    tsr_progress progress;
    tsr_status status = TSR_OK;
    tsr_rect rect;
    tsr_progress_open(&progress, world->rank == 0 ? show : TSR_PROGRESS_OFF, "compare", total, "B", stderr);
    if (!data_x || !data_y)
        TSR_TRY_DONE(tsr_fail(TSR_ERR_MEMORY,
                              "no memory for %zu elements of two matrices: free some, or run fewer ranks on this node",
                              elements));
    for (int64_t matrix = 0; matrix < x->desc.matrices; matrix++) {
        tsr_strips of_matrix = strips;
        tsr_store_select(x, matrix);
        tsr_store_select(y, matrix);
        while (tsr_strips_next(&of_matrix, &rect)) {
            TSR_TRY_DONE(x->ops->read(x, rect, data_x, rect.cols));
            TSR_TRY_DONE(y->ops->read(y, rect, data_y, rect.cols));
            compare_rect(x, y, rect, data_x, data_y, d);
            done += ranks * (double)tsr_rect_elements(rect) * (double)(bytes_x + bytes_y); /* all are about as far */
            tsr_progress_update(&progress, done, 0);
        }
    }
done:
    tsr_progress_close(&progress);
    free(data_y);
    free(data_x);
    return status;
}

static void worse_of(worst_element *into, const worst_element *other) {
    if (other->error > into->error) *into = *other;
}

/* Collective. Bands are in row order: the first of equal errors stays. */
static tsr_status combine(const tsr_world *world, differences *mine) {
    differences *all = malloc((size_t)world->ranks * sizeof *all);
    tsr_status status =
        all ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for the results of %d ranks: free some", world->ranks);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Allgather(mine, sizeof *mine, MPI_BYTE, all, sizeof *mine, MPI_BYTE, world->comm)));
    *mine = all[0];
    for (int i = 1; i < world->ranks; i++) {
        worse_of(&mine->relative, &all[i].relative);
        worse_of(&mine->absolute, &all[i].absolute);
        worse_of(&mine->mismatch, &all[i].mismatch);
        mine->relative_sum += all[i].relative_sum;
        mine->square_sum += all[i].square_sum;
        mine->reference_sum += all[i].reference_sum;
        mine->elements += all[i].elements;
        mine->finite += all[i].finite;
        mine->mismatches += all[i].mismatches;
    }
done:
    free(all);
    return status;
}

/* "row 3, column 4", behind the matrix's number where there are several. Returns text. */
static const char *place_of(const worst_element *w, const compare_options *o, char text[96]) {
    const bool swap = o->order == TSR_ORDER_COL;
    text[0] = '\0';
    if (o->several) snprintf(text, 96, "matrix %" PRId64 ", ", w->matrix);
    tsr_text_append(text, 96, "row %" PRId64 ", column %" PRId64, swap ? w->col : w->row, swap ? w->row : w->col);
    return text;
}

/* With so many digits, but whole numbers with all of theirs; returns text. */
static const char *number_text(const number *of, int digits, char text[80]) {
    const tsr_complex x = of->value;
    if (of->is_whole && of->whole < 0) snprintf(text, 80, "%" PRId64, (int64_t)of->whole);
    else if (of->is_whole) snprintf(text, 80, "%" PRIu64, (uint64_t)of->whole);
    else if (x.im == 0) snprintf(text, 80, "%.*g", digits, x.re);
    else snprintf(text, 80, "%.*g%+.*gj", digits, x.re, digits, x.im);
    return text;
}

static void print_worst(const char *what, const worst_element *w, const compare_options *o) {
    char place[96], x[80], y[80];
    if (w->error < 0) printf("%-24s 0\n", what);
    else
        printf("%-24s %.6e at %s: %s against %s\n", what, w->error, place_of(w, o, place), number_text(&w->x, 17, x),
               number_text(&w->y, 17, y));
}

static void print_differences(const differences *d, const compare_options *o) {
    const worst_element *m = &d->mismatch;
    char place[96], x[80], y[80];
    double norm = d->reference_sum > 0 ? sqrt(d->square_sum / d->reference_sum) : sqrt(d->square_sum);
    printf("%-24s %" PRId64 "\n", "elements", d->elements);
    print_worst("largest relative error", &d->relative, o);
    printf("%-24s %.6e\n", "average relative error", d->finite > 0 ? d->relative_sum / (double)d->finite : 0);
    print_worst("largest absolute error", &d->absolute, o);
    printf("%-24s %.6e\n", "relative Frobenius error", norm);
    printf("%-24s %" PRId64, "NaN or Inf mismatches", d->mismatches);
    if (d->mismatches > 0)
        printf(", first at %s: %s against %s", place_of(m, o, place), number_text(&m->x, 6, x),
               number_text(&m->y, 6, y));
    printf("\n");
}

static tsr_status judge(const differences *d, double tolerance) {
    if (d->mismatches > 0)
        return tsr_fail(TSR_ERR_CHECK,
                        "%" PRId64 " elements with NaN or Inf are not the same in both matrices: see where above, and "
                        "check the inputs of the product",
                        d->mismatches);
    if (d->relative.error > tolerance)
        return tsr_fail(
            TSR_ERR_CHECK,
            "the largest relative error %.6e is above the tolerance %g: check the data, or allow it with --tolerance",
            d->relative.error, tolerance);
    return TSR_OK;
}

/* Collective. Rank 0 prints. */
static tsr_status compare_stores(const tsr_world *world, const compare_options *o, tsr_store *x, tsr_store *y) {
    differences d = {.relative = {.error = -1}, .absolute = {.error = -1}, .mismatch = {.error = -1}};
    tsr_store *const stores[] = {x, y};
    const tsr_progress_mode progress = o->quiet ? TSR_PROGRESS_OFF : o->progress;
    const tsr_status read = tsr_agree(world->comm, compare_band(world, progress, x, y, &d));
    TSR_TRY(tsr_inputs_agree(world->comm, read, stores, 2));
    TSR_TRY(combine(world, &d));
    TSR_TRY(tsr_rounded_count(world, &x->desc, x->overflows, 1));
    TSR_TRY(tsr_rounded_count(world, &y->desc, y->overflows, 1));
    tsr_status status = judge(&d, o->tolerance);
    const bool speaks = world->rank == 0 && (!o->quiet || status != TSR_OK);
    if (speaks) print_differences(&d, o);
    if (speaks && status == TSR_OK) printf("PASSED: no relative error above %g\n", o->tolerance);
    return tsr_agree(world->comm, status);
}

/* Vectors may lie along rows of a matrix, along its columns, or in a dataset of one dimension. */
static tsr_status check_shapes(const compare_options *o, tsr_store_desc *x, tsr_store_desc *y) {
    const tsr_shape shape_x = tsr_store_shape(x), shape_y = tsr_store_shape(y);
    char text_x[TSR_SHAPE_CHARS], text_y[TSR_SHAPE_CHARS];
    if (!tsr_shape_same(&shape_x, &shape_y))
        return tsr_fail(TSR_ERR_SHAPE,
                        "%s is %s but %s is %s: compare matrices of one shape, or parts of them [r0:r1,c0:c1]",
                        o->names[0], tsr_seen_text(o->order, shape_x, text_x), o->names[1],
                        tsr_seen_text(o->order, shape_y, text_y));
    if (x->rows == y->rows) return TSR_OK;
    if (x->dataset_dimensions == 1) tsr_store_turn_vector(x);
    else if (y->dataset_dimensions == 1) tsr_store_turn_vector(y);
    else
        return tsr_fail(TSR_ERR_SHAPE, "%s is a row and %s a column: copy one of them into a vector", o->names[0],
                        o->names[1]);
    return TSR_OK;
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    compare_options o = {0};
    tsr_store *x = NULL, *y = NULL;
    tsr_store_desc desc[2];
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&command, argc, argv, &o)));
    world->describer->external = o.external;
    for (int i = 0; i < 2; i++) TSR_TRY(tsr_input_describe(world, o.names[i], o.order, o.io, &desc[i]));
    TSR_TRY(tsr_agree(world->comm, check_shapes(&o, &desc[0], &desc[1])));
    o.several = desc[0].stack_dimensions > 0;
    tsr_status status = tsr_input_open(world, &desc[0], o.io, &x);
    if (status == TSR_OK) status = tsr_input_open(world, &desc[1], o.io, &y);
    tsr_describer_close(world->describer); /* all is known */
    if (status == TSR_OK) status = compare_stores(world, &o, x, y);
    tsr_store_close(y);
    tsr_store_close(x);
    return status;
}

const tsr_command tsr_cmd_compare = {
    .name = "compare",
    .what = "errors of one matrix against another",
    .run = run,
    .help = help,
    .options = &command,
    .reads = true,
};
