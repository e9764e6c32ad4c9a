/* What a run multiplies (run_state.h): rank 0 looks into the files, and every rank makes the same problem of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/library/inputs.h"
#include "app/library/planning/reproducible.h"
#include "app/library/run_state.h"
#include "app/verify/rounded.h"
#include "io/output/output_chunks.h"
#include "io/record/trace_file.h"
#include "io/stores.h"

#define STACK_EDGE 512 /* products of more multiply-adds than this edge³ are made one by one */

static tsr_operand operand_of(const tsr_run *run, const tsr_store_desc *desc, bool transpose, bool conjugate) {
    return (tsr_operand){.rows = desc->rows,
                         .cols = desc->cols,
                         .element = tsr_store_element(desc, run->io),
                         .transpose = transpose,
                         .conjugate = conjugate,
                         .path = TSR_DATA_PATH_HOST,
                         .on_disk = desc->on_disk,
                         .copied = tsr_store_copies(desc, run->io)};
}

static tsr_status describe_source(const tsr_run *run, int which, const tsr_matrix_name *name, tsr_store_desc *desc) {
    if (tsr_run_in_memory(run, which)) return tsr_run_describe_memory(run, which, desc);
    return tsr_store_describe(run->world->describer, name, desc);
}

static tsr_status describe_sources(const tsr_run *run, const tsr_run_product *product, tsr_run_sources *from) {
    tsr_matrix_name a = tsr_name_as_stored(product->order, product->a);
    tsr_matrix_name b = tsr_name_as_stored(product->order, product->b);
    tsr_matrix_name c0 = tsr_name_as_stored(product->order, product->c0);
    /* In column order the file shows C transposed: Cᵀ = op(B)ᵀ op(A)ᵀ, and the transposes cancel those of the view. */
    const bool swap = run->swapped;
    TSR_TRY(describe_source(run, TSR_RUN_A, swap ? &b : &a, &from->a));
    TSR_TRY(describe_source(run, TSR_RUN_B, swap ? &a : &b, &from->b));
    return tsr_is_zero(product->beta) ? TSR_OK : describe_source(run, tsr_run_place_of_c0(run), &c0, &from->c0);
}

/* What is read keeps its place: the output may only take that of C0. */
static void name_sources(tsr_run *run, const tsr_run_product *product) {
    const tsr_store_desc *a = run->swapped ? &run->from.b : &run->from.a;
    const tsr_store_desc *b = run->swapped ? &run->from.a : &run->from.b;
    tsr_output_spec *spec = &run->spec;
    spec->sources[spec->source_count++] = (tsr_output_source){"A", &product->a, &a->name, false, false, a->pieces};
    spec->sources[spec->source_count++] = (tsr_output_source){"B", &product->b, &b->name, false, false, b->pieces};
    const tsr_store_desc *c0 = &run->from.c0;
    tsr_store_desc whole = *c0;
    whole.name = (tsr_matrix_name){0};
    const bool part = tsr_store_take_slice(&whole) == TSR_OK && tsr_store_bytes(&whole) > tsr_store_bytes(c0);
    if (!tsr_is_zero(product->beta))
        spec->sources[spec->source_count++] =
            (tsr_output_source){"C0", &product->c0, &c0->name, true, part, c0->pieces};
}

/* A kernel asked for by name may make sums of the narrower type alone, on whatever device. */
static bool makes_only(const char *name, tsr_dtype type, tsr_dtype not_type) {
    bool makes[TSR_DTYPE_COUNT] = {false};
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++) makes[kernels[i]->type] |= strcmp(kernels[i]->name, name) == 0;
    return makes[type] && !makes[not_type];
}

/* A complex product goes into a real C only where somebody said so. */
static tsr_status check_real(const tsr_run *run, const tsr_run_product *product) {
    const tsr_problem *x = &run->problem;
    const tsr_distributed *c = product->memory_c;
    const bool has_type = c || product->has_type;
    const tsr_dtype type = c ? c->dtype : product->type;
    const bool real = has_type ? !tsr_dtype_is_complex(type) : product->real_part;
    if (product->real_part && !real)
        return tsr_fail(TSR_ERR_USAGE, "--real-part with --type %s: use a real type, such as %s", tsr_dtype_name(type),
                        tsr_dtype_name(tsr_dtype_part(type)));
    if (!tsr_problem_complex(x) || !real || product->real_part) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE,
                    "the product is complex and --type %s is real: use --type %s, or --real-part to keep nothing but "
                    "the real part",
                    tsr_dtype_name(type), tsr_dtype_name(tsr_dtype_complex_of(x->type)));
}

/* Sums of integers make C f64 where nobody asked for a type, or for something that f64 does not give. */
static void choose_types(tsr_run *run, const tsr_run_product *product) {
    char why[128];
    const tsr_dtype narrow = tsr_problem_operands_type(&run->problem);
    run->problem.real_part = product->real_part;
    if (tsr_run_in_memory(run, TSR_RUN_C)) tsr_problem_store_as(&run->problem, run->memory[TSR_RUN_C].matrix->dtype);
    else if (product->has_type) tsr_problem_store_as(&run->problem, product->type);
    else if (tsr_problem_widened(&run->problem, why) &&
             (run->engine.accuracy != TSR_ACCURACY_IEEE || makes_only(run->engine.kernel, narrow, run->problem.type)))
        tsr_problem_store_sums(&run->problem, narrow);
    else if (product->real_part) tsr_problem_store_sums(&run->problem, run->problem.type);
}

/* Nobody asked for C's type, and C0 has more bits. */
static void warn_of_c0(const tsr_run *run, const tsr_run_product *product) {
    const tsr_problem *x = &run->problem;
    const tsr_dtype c0 = tsr_dtype_part(x->c0.dtype), c = tsr_dtype_part(x->out);
    tsr_dtype wider = tsr_dtype_wider(c);
    const double bits = fmax(tsr_dtype_largest(c0), tsr_dtype_integers(c0));
    if (product->has_type || tsr_run_in_memory(run, TSR_RUN_C) || wider == c || bits <= tsr_dtype_integers(c)) return;
    if (tsr_dtype_is_complex(x->out)) wider = tsr_dtype_complex_of(wider);
    tsr_warn(run->world->warnings, "'%s' is %s and C %s, to which it is rounded: --type %s keeps it",
             run->from.c0.name.file, tsr_dtype_name(x->c0.dtype), tsr_dtype_name(x->out), tsr_dtype_name(wider));
}

void tsr_run_explain_types(const tsr_run *run, const tsr_run_product *product) {
    char why[512], note[600];
    if (run->world->rank != 0) return;
    tsr_input_warn(run->world, &run->from.a);
    tsr_input_warn(run->world, &run->from.b);
    if (run->problem.add_c0) {
        tsr_input_warn(run->world, &run->from.c0);
        warn_of_c0(run, product);
    }
    if (tsr_problem_inexact(&run->problem, why)) tsr_warn(run->world->warnings, "%s", why);
    if (tsr_problem_complex(&run->problem) && product->real_part)
        tsr_warn(run->world->warnings, "C holds the real part of a complex product; its imaginary part is lost");
    if (product->has_type || !run->calls->note || !tsr_problem_widened(&run->problem, why)) return;
    snprintf(note, sizeof note, "C is f64: %s", why);
    run->calls->note(run->calls->context, note);
}

/* As a matrix in memory lies: with a row or column of one element where a vector makes C lack it. */
static tsr_products with_all_sides(const tsr_products *products) {
    tsr_products all = *products;
    all.row_dropped = all.col_dropped = false;
    return all;
}

/* Which matrices are multiplied; C0 lies as C does from now on. */
static tsr_status find_products(tsr_run *run, const tsr_run_product *product) {
    const bool swap = run->swapped;
    const tsr_operation of_a = tsr_operation_of(product->transpose_a, product->conjugate_a),
                        of_b = tsr_operation_of(product->transpose_b, product->conjugate_b);
    const tsr_store_desc *a = swap ? &run->from.b : &run->from.a, *b = swap ? &run->from.a : &run->from.b;
    TSR_TRY(tsr_shapes_multiply(product->order, a, of_a, b, of_b, &run->products));
    const tsr_products in_memory = with_all_sides(&run->products);
    if (tsr_run_in_memory(run, TSR_RUN_C)) {
        tsr_store_desc *c = &run->output.desc;
        TSR_TRY(tsr_run_describe_memory(run, TSR_RUN_C, c));
        memcpy(run->output.target, c->name.file, sizeof run->output.target);
        TSR_TRY(tsr_shapes_result(product->order, a, of_a, b, of_b, &in_memory, "C", c));
    }
    if (tsr_is_zero(product->beta)) return TSR_OK;
    const tsr_products *c0 = tsr_run_in_memory(run, tsr_run_place_of_c0(run)) ? &in_memory : &run->products;
    return tsr_shapes_result(product->order, a, of_a, b, of_b, c0, "C0", &run->from.c0);
}

/* A stack of matrices times one is a product of all its rows, where these and C's follow each other in their files.
 * Blocks of reproducible sums are each product's own. Returns how many matrices became one. */
static int64_t join_rows(tsr_run *run, const tsr_run_target *target) {
    tsr_products *products = &run->products;
    tsr_store_desc *left = &run->from.a;
    const bool bytes = run->io == TSR_IO_AUTO || run->io == TSR_IO_DIRECT;
    const bool contiguous = target->chunk_rows == 0 && !target->compress.how && !target->shuffle;
    const int64_t count = products->count;
    if (count <= 1 || run->engine.reproducible || run->from.b.matrices != 1 || run->problem.add_c0 || !bytes ||
        !contiguous || products->transpose_left || products->row_dropped || !tsr_store_can_join(left))
        return 1;
    tsr_store_join(left);
    if (tsr_run_in_memory(run, TSR_RUN_C)) tsr_store_join(&run->output.desc);
    products->count = 1;
    return count;
}

/* Complex elements of C have the fields of A's, or of the next that is complex. */
static tsr_fields fields_of_c(const tsr_run *run) {
    const tsr_store_desc *a = run->swapped ? &run->from.b : &run->from.a;
    const tsr_store_desc *b = run->swapped ? &run->from.a : &run->from.b;
    if (tsr_dtype_is_complex(a->element.dtype)) return a->fields;
    return tsr_dtype_is_complex(b->element.dtype) ? b->fields : run->from.c0.fields;
}

/* By what rank 0 saw, so that every rank has the same answer. */
static bool same_file(const tsr_store_desc *a, const tsr_store_desc *b) {
    const tsr_file_state *x = &a->file_state, *y = &b->file_state;
    if (!x->known || !y->known) return strcmp(a->name.file, b->name.file) == 0;
    return x->machine == y->machine && x->device == y->device && x->inode == y->inode && x->bytes == y->bytes &&
           x->seconds == y->seconds && x->nanoseconds == y->nanoseconds;
}

/* Whether two descriptions are of the same elements, whatever names led there. */
static bool same_elements(const tsr_store_desc *a, const tsr_store_desc *b) {
    const int leads = tsr_leads_of(a->name.dimensions);
    const tsr_matrix_name *x = &a->name, *y = &b->name;
    return x->kind == y->kind && strcmp(x->path, y->path) == 0 && same_file(a, b) && x->dimensions == y->dimensions &&
           a->row0 == b->row0 && a->col0 == b->col0 && a->rows == b->rows && a->cols == b->cols &&
           a->matrices == b->matrices && memcmp(x->lead0, y->lead0, (size_t)leads * sizeof *x->lead0) == 0 &&
           memcmp(x->lead1, y->lead1, (size_t)leads * sizeof *x->lead1) == 0;
}

/* A kernel asked for by name that wants whole tiles: its operands are padded one by one. */
static bool pads(const char *name) {
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++)
        if (strcmp(kernels[i]->name, name) == 0 && kernels[i]->multiple > 1) return true;
    return false;
}

/* Whether an operand of a stack's products is one matrix for all, or as many as there are products, one behind the
 * other in its file. */
static bool stacks(const tsr_products *products, const tsr_store_desc *operand) {
    return operand->matrices == 1 || (operand->matrices == products->count && tsr_store_can_join(operand));
}

/* Small products of which many are one step of the plan: so many at a time cost no more than one. Larger ones fill a
 * device by themselves, and are cut. */
static bool is_stack(const tsr_run *run, const tsr_run_target *target) {
    const tsr_problem *x = &run->problem;
    const tsr_products *p = &run->products;
    const tsr_run_engine *engine = &run->engine;
    const bool bytes = run->io == TSR_IO_AUTO || run->io == TSR_IO_DIRECT;
    const bool contiguous = target->chunk_rows == 0 && !target->compress.how && !target->shuffle;
    const double one = (double)x->m * (double)x->n * (double)x->k;
    /* less memory than for some of them is for panels of one */
    const double least = 32 * ((double)x->m * (double)x->k + (double)x->k * (double)x->n + (double)x->m * (double)x->n);
    const size_t given = run->limits.memory.bytes, host = run->limits.host_memory.bytes;
    return p->count > 1 && !tsr_problem_complex(x) && bytes && contiguous && !p->row_dropped && !p->col_dropped &&
           stacks(p, &run->from.a) && stacks(p, &run->from.b) &&
           (!x->add_c0 || (run->from.c0.matrices > 1 && stacks(p, &run->from.c0))) &&
           (run->from.a.matrices > 1 || run->from.b.matrices > 1) && engine->grid[0] == 0 && engine->panel == 0 &&
           !engine->schedule && !pads(engine->kernel) && one > 0 &&
           one <= (double)STACK_EDGE * STACK_EDGE * STACK_EDGE && (given == 0 || (double)given >= least) &&
           (host == 0 || (double)host >= least);
}

/* Op(A) times its own transpose is a Gram matrix, whoever says so; where C0 is added only C0 could say whether the
 * sum is symmetric. Half of a small one takes a step as all of it does: those of a stack are made whole. */
static tsr_status find_gram(tsr_run *run, const tsr_run_product *product, bool stack) {
    const tsr_store_desc *a = &run->from.a, *b = &run->from.b;
    const tsr_products *p = &run->products;
    const bool complex = tsr_problem_complex(&run->problem) || tsr_dtype_is_complex(run->problem.out);
    const bool matrices = a->matrix_dimensions == 2 && b->matrix_dimensions == 2,
               gram = matrices && p->transpose_left != p->transpose_right && !run->problem.add_c0 && !complex &&
                      (product->gram || (run->memory[TSR_RUN_A].matrix ? run->one_memory : same_elements(a, b)));
    if (product->gram && !matrices)
        return tsr_fail(TSR_ERR_SHAPE, "--gram multiplies matrices by themselves, and '%s' is none: leave out --gram",
                        a->name.file);
    if (product->gram && complex)
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "--gram multiplies real matrices: name a complex one twice, with --transpose-%s, or with "
                        "--adjoint-%s for its adjoint",
                        product->transpose_a ? "a" : "b", product->transpose_a ? "a" : "b");
    if (complex && product->triangle != TSR_TRIANGLE_FULL)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "--triangle %s: halves are of real Gram matrices; leave it out",
                        tsr_triangle_name(product->triangle));
    if (!gram && product->triangle != TSR_TRIANGLE_FULL)
        return tsr_fail(TSR_ERR_USAGE,
                        "--triangle %s: only a matrix times its own transpose is symmetric; name one matrix, with "
                        "--gram, or leave out --triangle",
                        tsr_triangle_name(product->triangle));
    if (!gram) return TSR_OK;
    const tsr_triangle triangle = tsr_triangle_as_stored(product->order, product->triangle);
    if (!stack) return tsr_problem_take_gram(&run->problem, triangle);
    run->problem.mirrored = true;
    run->problem.triangle = triangle;
    return TSR_OK;
}

static tsr_status make_problem(tsr_run *run, const tsr_run_product *product, const tsr_run_target *target) {
    const bool swap = run->swapped;
    run->problem.add_c0 = !tsr_is_zero(product->beta);
    const int64_t joined = join_rows(run, target);
    const tsr_products *shape = &run->products;
    tsr_operand c0 = operand_of(run, &run->from.c0, false, false);
    TSR_TRY(tsr_problem_make(
        operand_of(run, &run->from.a, shape->transpose_left, swap ? product->conjugate_b : product->conjugate_a),
        operand_of(run, &run->from.b, shape->transpose_right, swap ? product->conjugate_a : product->conjugate_b),
        !tsr_is_zero(product->beta) ? &c0 : NULL, product->alpha, product->beta, &run->problem));
    TSR_TRY(check_real(run, product));
    choose_types(run, product);
    run->spec = (tsr_output_spec){.name = tsr_name_as_stored(product->order, target->name),
                                  .rows = run->problem.m / joined,
                                  .cols = run->problem.n,
                                  .stack_dimensions = shape->stack_dimensions,
                                  .dropped = shape->row_dropped + shape->col_dropped,
                                  .joined = joined > 1,
                                  .dtype = run->problem.out,
                                  .fields = fields_of_c(run),
                                  .force = target->force,
                                  .chunk_rows = swap ? target->chunk_cols : target->chunk_rows,
                                  .chunk_cols = swap ? target->chunk_rows : target->chunk_cols,
                                  .shuffle = target->shuffle,
                                  .compress = target->compress,
                                  .checksum = target->checksum,
                                  .describer = run->world->describer};
    memcpy(run->spec.stack, shape->stack, sizeof shape->stack);
    run->attributes = target->attributes;
    run->digested = target->digest;
    name_sources(run, product);
    tsr_output_choose_chunks(&run->spec);
    run->problem.c0_on_disk = run->from.c0.on_disk;
    run->problem.unit_m = tsr_max(1, run->spec.chunk_rows); /* a chunk is one rank's */
    run->problem.unit_n = tsr_max(1, run->spec.chunk_cols);
    const bool stack = is_stack(run, target);
    TSR_TRY(find_gram(run, product, stack));
    if (run->engine.reproducible) tsr_reproducible_cut(&run->problem, run->engine.kernel);
    if (!stack) return TSR_OK;
    run->problem.operand[TSR_OPERAND_A].common = run->from.a.matrices == 1;
    run->problem.operand[TSR_OPERAND_B].common = run->from.b.matrices == 1;
    tsr_problem_stack(&run->problem, shape->count);
    return TSR_OK;
}

/* Rank 0 looks for all. The products are found on every rank alike, and so is the problem. */
static tsr_status find_sources(tsr_run *run, const tsr_run_product *product) {
    run->swapped = product->order == TSR_ORDER_COL;
    TSR_TRY(tsr_run_take_memory(run, product));
    const tsr_status status = run->world->rank == 0 ? describe_sources(run, product, &run->from) : TSR_OK;
    TSR_TRY(tsr_share(run->world->comm, status, &run->from, sizeof run->from));
    return find_products(run, product);
}

tsr_status tsr_run_describe_shape(tsr_run *run, const tsr_run_product *product, tsr_run_shape *shape) {
    static const tsr_run_target nowhere;
    const tsr_products *p = &run->products;
    TSR_TRY(find_sources(run, product));
    TSR_TRY(make_problem(run, product, &nowhere));
    const tsr_output_spec *c = &run->spec;
    *shape = (tsr_run_shape){.dtype = c->dtype,
                             .rows = run->swapped ? c->cols : c->rows,
                             .cols = run->swapped ? c->rows : c->cols,
                             .stack_dimensions = p->stack_dimensions,
                             .dimensions = p->stack_dimensions + 2 - p->row_dropped - p->col_dropped};
    memcpy(shape->stack, p->stack, sizeof p->stack);
    return TSR_OK;
}

tsr_status tsr_run_describe(tsr_run *run, const tsr_run_options *options) {
    const tsr_run_product *product = &options->product;
    const tsr_run_target *target = &options->target;
    const bool first = run->world->rank == 0;
    tsr_status status = TSR_OK;
    TSR_TRY(find_sources(run, product));
    if (!tsr_run_in_memory(run, TSR_RUN_A)) TSR_TRY(tsr_input_find_chunks(run->world, &run->from.a));
    if (!tsr_run_in_memory(run, TSR_RUN_B)) TSR_TRY(tsr_input_find_chunks(run->world, &run->from.b));
    const bool c0 = !tsr_is_zero(product->beta) && !tsr_run_in_memory(run, tsr_run_place_of_c0(run));
    if (c0) TSR_TRY(tsr_input_find_chunks(run->world, &run->from.c0));
    TSR_TRY(make_problem(run, product, target));
    bool on_disk = false;
    if (run->resume.asked) TSR_TRY(tsr_run_refuse_resume(run));
    if (run->resume.asked && !run->resume.dry) TSR_TRY(tsr_run_find_left(run, options));
    const bool file = !tsr_run_in_memory(run, TSR_RUN_C);
    if (run->resume.complete || run->resume.unfinished) on_disk = run->problem.c_on_disk; /* it was checked then */
    else status = first && file ? tsr_output_check(&run->spec, &on_disk) : TSR_OK;
    if (status == TSR_OK && first && run->trace_file) status = tsr_trace_file_check(run->trace_file);
    TSR_TRY(tsr_share(run->world->comm, status, &on_disk, sizeof on_disk));
    run->problem.c_on_disk = on_disk && run->spec.chunk_rows == 0; /* chunks are written whole */
    return TSR_OK;
}
