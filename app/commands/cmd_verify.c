/* tessera verify A B C: whether C is alpha·op(A)·op(B) + beta·C0, by Freivalds' check (verify.h) on all ranks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/commands/command.h"
#include "app/library/inputs.h"
#include "app/products/shapes.h"
#include "app/progress.h"
#include "app/tessera_options.h"
#include "app/verify/digest/verify_digest.h"
#include "app/verify/verify.h"
#include "app/verify/verify_products.h"
#include "io/text/text.h"
#include "mpi/plan/problem.h"

#define BUFFER_BYTES ((size_t)128 << 20)

typedef struct {
    const char *names[3], *add;
    int count;
    bool has_beta, transpose_a, transpose_b;
    bool adjoint_a, adjoint_b, conjugate_a, conjugate_b;
    tsr_triangle triangle;
    tsr_complex alpha, beta;
    int trials, threads;
    int64_t seed;
    bool has_type;
    tsr_dtype type;
    tsr_accuracy accuracy;
    tsr_order order;
    tsr_io_mode io;
    const char *external;
    tsr_progress_mode progress;
    bool quiet;
    const char *digest;
} verify_options;

static tsr_status read_accumulated(const tsr_option *option, const char *text, void *field) {
    return tsr_dtype_parse_for(TSR_USE_SUM, option->name, text, field);
}

#define AT(member) offsetof(verify_options, member)

static const tsr_option options[] = {
    {.name = "add",
     .value = "C0",
     .help = "The matrix that was added, beta times",
     .read = tsr_read_text,
     .field = AT(add)},
    {.shared = &tsr_option_alpha, .help = "Factor of the product (1)", .field = AT(alpha)},
    {.shared = &tsr_option_beta,
     .help = "Factor of C0 (1 with --add, else 0)",
     .field = AT(beta),
     .given = AT(has_beta)},
    {.shared = &tsr_option_transpose_a, .help = "A was transposed", .field = AT(transpose_a)},
    {.shared = &tsr_option_transpose_b, .help = "B was transposed", .field = AT(transpose_b)},
    {.shared = &tsr_option_adjoint_a, .help = "A was transposed and conjugated", .field = AT(adjoint_a)},
    {.shared = &tsr_option_adjoint_b, .help = "B was transposed and conjugated", .field = AT(adjoint_b)},
    {.shared = &tsr_option_conjugate_a, .help = "A was conjugated", .field = AT(conjugate_a)},
    {.shared = &tsr_option_conjugate_b, .help = "B was conjugated", .field = AT(conjugate_b)},
    {.shared = &tsr_option_triangle,
     .help = "Of a Gram matrix C has all (default), or one half, and zeros in the other",
     .field = AT(triangle)},
    {.shared = &tsr_option_trials,
     .help = "Random vectors (20): a wrong C passes with probability at most 2^-N",
     .field = AT(trials)},
    {.shared = &tsr_option_seed, .help = "Chooses the random vectors (0)", .field = AT(seed)},
    {.name = "accumulated",
     .value = "TYPE",
     .help = "f32 or f64: what the sums were kept in (what multiply takes for the types of A, B and C)",
     .read = read_accumulated,
     .field = AT(type),
     .given = AT(has_type)},
    {.shared = &tsr_option_accuracy,
     .help = "What C was allowed to lose: ieee (default), fast, tf32 or bf16",
     .field = AT(accuracy)},
    {.name = "digest",
     .value = "RECORD|HEX",
     .help = "Compare C, alone, with the digest that multiply --digest put into this record (a log, or C.h5)",
     .read = tsr_read_text,
     .field = AT(digest)},
    {.shared = &tsr_option_order, .field = AT(order)},
    {.shared = &tsr_option_io, .field = AT(io)},
    {.shared = &tsr_option_plugins},
    {.shared = &tsr_option_external, .field = AT(external)},
    {.shared = &tsr_option_threads, .field = AT(threads)},
    {.shared = &tsr_option_progress, .field = AT(progress)},
    {.shared = &tsr_option_quiet,
     .help = "Neither progress nor a word when C passes; the exit code says it",
     .field = AT(quiet)},
    {0}};

static tsr_status take_matrix(void *to, int number, const char *text) {
    verify_options *o = to;
    o->names[number] = text;
    o->count = number + 1;
    return TSR_OK;
}

static tsr_status check(void *to) {
    verify_options *o = to;
    if (o->digest && o->count == 1) return TSR_OK;
    if (o->digest) return tsr_fail(TSR_ERR_USAGE, "verify --digest reads C alone: tessera verify --digest RECORD C");
    if (o->count < 3)
        return tsr_fail(TSR_ERR_USAGE, "verify: needs three matrices, got %d: tessera verify A B C", o->count);
    if (!o->has_beta) o->beta = tsr_real(o->add ? 1 : 0);
    o->transpose_a |= o->adjoint_a;
    o->conjugate_a |= o->adjoint_a;
    o->transpose_b |= o->adjoint_b;
    o->conjugate_b |= o->adjoint_b;
    if (!tsr_is_zero(o->beta) && !o->add) return tsr_fail(TSR_ERR_USAGE, "--beta scales C0: name that with --add C0");
    return TSR_OK;
}

static const tsr_options command = {
    .options = options,
    .arguments = "[A B] C",
    .what =
        "Checks that C = alpha op(A) op(B) + beta C0 with random sign vectors, in time that grows with the size of the "
        "files and not with the product. Every row must lie within a bound that rounding alone stays under, whatever "
        "the sizes of rows and columns. NaN and Inf must stand where those of A, B and C0, and sums that overflow, put "
        "them.\vExit code 0: passed, or INCOMPLETE: more elements overflowed, or are infinite, than the check may work "
        "out, and their rows were not judged; 3: failed.",
    .most_arguments = 3,
    .argument = take_matrix,
    .check = check};

static void help(const char *part) {
    (void)part;
    tsr_options_help(&command, "tessera verify", "mpirun -n 4 tessera verify A.h5 B.h5 C.h5");
}

/* What multiply accumulates in to make such a C. */
static tsr_dtype accumulated(const tsr_store *a, const tsr_store *b, const tsr_store *c) {
    tsr_problem problem = {.operand = {{.element = a->desc.element}, {.element = b->desc.element}}};
    tsr_problem_store_as(&problem, c->desc.element.dtype);
    return problem.type;
}

/* Collective. In column order a person's A is the transpose of the dataset, so the datasets multiply the other way
 * round: Cᵀ = op(B)ᵀ·op(A)ᵀ. */
static tsr_status verify(const tsr_world *world, const verify_options *o, const tsr_products *shape,
                         tsr_store **stores) {
    const bool swap = o->order == TSR_ORDER_COL;
    tsr_progress_display display = {.mode = world->rank == 0 && !o->quiet ? o->progress : TSR_PROGRESS_OFF};
    const tsr_listener progress = tsr_progress_listener(&display);
    tsr_verify_result result;
    tsr_verify_args args = {.a = stores[swap],
                            .b = stores[!swap],
                            .c = stores[2],
                            .c0 = stores[3],
                            .transpose_a = shape->transpose_left,
                            .transpose_b = shape->transpose_right,
                            .conjugate_a = swap ? o->conjugate_b : o->conjugate_a,
                            .conjugate_b = swap ? o->conjugate_a : o->conjugate_b,
                            .triangle = tsr_triangle_as_stored(o->order, o->triangle),
                            .alpha = o->alpha.re,
                            .alpha_imag = o->alpha.im,
                            .beta = o->beta.re,
                            .beta_imag = o->beta.im,
                            .trials = o->trials,
                            .seed = (uint64_t)o->seed,
                            .accuracy = o->accuracy,
                            .threads = o->threads,
                            .buffer_bytes = BUFFER_BYTES,
                            .progress = &progress};
    args.type = o->has_type ? o->type : accumulated(args.a, args.b, args.c);
    TSR_TRY(tsr_inputs_agree(world->comm, tsr_verify_products(world, &args, shape, &result), stores, 4));
    char text[512];
    tsr_verify_format(&result, text, sizeof text);
    if (!result.passed) return tsr_agree(world->comm, tsr_fail(TSR_ERR_CHECK, "%s", text));
    if (result.rows_unjudged > 0 && o->quiet)
        tsr_warn(world->warnings, TSR_VERIFY_UNJUDGED, (long long)result.rows_unjudged, (long long)result.rows);
    if (world->rank == 0 && !o->quiet) tsr_text_print(stdout, "", 8, text);
    return TSR_OK;
}

/* What the matrices are, before any is open: vectors lie as the product has them. Collective. */
static tsr_status describe(const tsr_world *world, const verify_options *o, tsr_store_desc desc[4],
                           tsr_products *shape) {
    const char *const names[4] = {o->names[0], o->names[1], o->names[2], tsr_is_zero(o->beta) ? NULL : o->add};
    const tsr_operation of_a = tsr_operation_of(o->transpose_a, o->conjugate_a),
                        of_b = tsr_operation_of(o->transpose_b, o->conjugate_b);
    for (int i = 0; i < 4; i++)
        if (names[i]) TSR_TRY(tsr_input_describe(world, names[i], o->order, o->io, &desc[i]));
    TSR_TRY(tsr_agree(world->comm, tsr_shapes_multiply(o->order, &desc[0], of_a, &desc[1], of_b, shape)));
    for (int i = 2; i < 4; i++)
        if (names[i])
            TSR_TRY(tsr_agree(world->comm, tsr_shapes_result(o->order, &desc[0], of_a, &desc[1], of_b, shape,
                                                             i == 2 ? "C" : "C0", &desc[i])));
    if (o->triangle == TSR_TRIANGLE_FULL) return TSR_OK;
    for (int i = 0; i < 3; i++)
        if (tsr_dtype_is_complex(desc[i].element.dtype))
            return tsr_agree(world->comm, tsr_fail(TSR_ERR_UNSUPPORTED,
                                                   "--triangle %s: '%s' is complex; halves are of real Gram matrices",
                                                   tsr_triangle_name(o->triangle), desc[i].name.file));
    return TSR_OK;
}

/* Collective. C alone, whose name is the only one. */
static tsr_status compare_digest(const tsr_world *world, const verify_options *o) {
    char expected[TSR_DIGEST_CHARS] = "";
    tsr_store_desc desc;
    tsr_store *c = NULL;
    const tsr_status known =
        world->rank == 0 ? tsr_verify_digest_expected(world->describer, o->digest, expected) : TSR_OK;
    TSR_TRY(tsr_share(world->comm, known, expected, sizeof expected));
    TSR_TRY(tsr_input_describe(world, o->names[0], o->order, o->io, &desc));
    if (desc.name.sliced)
        return tsr_agree(world->comm, tsr_fail(TSR_ERR_USAGE, "--digest is of a whole C: leave out its slice"));
    tsr_status status = tsr_input_open(world, &desc, o->io, &c);
    tsr_describer_close(world->describer);
    if (status == TSR_OK) status = tsr_verify_digest(world, c, expected);
    tsr_store_close(c);
    if (status == TSR_OK && world->rank == 0 && !o->quiet) printf("PASSED: the digest of C is %s\n", expected);
    return status;
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    verify_options o = {0};
    tsr_store *stores[4] = {NULL};
    tsr_store_desc desc[4];
    tsr_products shape;
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&command, argc, argv, &o)));
    world->describer->external = o.external;
    if (o.digest) return compare_digest(world, &o);
    TSR_TRY(describe(world, &o, desc, &shape));
    tsr_status status = TSR_OK;
    for (int i = 0; i < (tsr_is_zero(o.beta) ? 3 : 4) && status == TSR_OK; i++)
        status = tsr_input_open(world, &desc[i], o.io, &stores[i]);
    tsr_describer_close(world->describer); /* all is known */
    if (status == TSR_OK) status = verify(world, &o, &shape, stores);
    for (int i = 3; i >= 0; i--) tsr_store_close(stores[i]);
    return status;
}

const tsr_command tsr_cmd_verify = {
    .name = "verify",
    .what = "check that C is the product of A and B, in O(n^2) work",
    .run = run,
    .help = help,
    .options = &command,
    .reads = true,
};
