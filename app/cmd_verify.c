/* tessera verify A B C: whether C is alpha·op(A)·op(B) + beta·C0, by Freivalds' check (verify.h) on all ranks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/command.h"
#include "app/inputs.h"
#include "app/options.h"
#include "app/shapes.h"
#include "app/verify.h"
#include "io/text.h"
#include "mpi/plan.h"

#define BUFFER_BYTES ((size_t)64 << 20)

typedef struct {
    const char *names[3], *add;
    int count;
    bool has_beta, transpose_a, transpose_b;
    double alpha, beta;
    int64_t trials, seed;
    bool has_type;
    tsr_dtype type;
    tsr_accuracy accuracy;
    tsr_order order;
    tsr_io_mode io;
    int64_t threads;
    tsr_progress_mode progress;
    bool quiet;
} verify_options;

enum {
    KEY_ADD = 256, KEY_ALPHA, KEY_BETA, KEY_TRANSPOSE_A, KEY_TRANSPOSE_B, KEY_TRIALS, KEY_SEED, KEY_ACCUMULATED,
    KEY_ACCURACY, KEY_ORDER, KEY_IO, KEY_THREADS, KEY_PROGRESS, KEY_QUIET
};

static const struct argp_option options[] = {
    {"add", KEY_ADD, "C0", 0, "The matrix that was added, beta times", 0},
    {"alpha", KEY_ALPHA, "X", 0, "Factor of the product (1)", 0},
    {"beta", KEY_BETA, "X", 0, "Factor of C0 (1 with --add, else 0)", 0},
    {"transpose-a", KEY_TRANSPOSE_A, NULL, 0, "A was transposed", 0},
    {"transpose-b", KEY_TRANSPOSE_B, NULL, 0, "B was transposed", 0},
    {"trials", KEY_TRIALS, "N", 0, "Random vectors (20): a wrong C passes with probability at most 2^-N", 0},
    {"seed", KEY_SEED, "S", 0, "Chooses the random vectors (0)", 0},
    {"accumulated", KEY_ACCUMULATED, "TYPE", 0, "f32 or f64: what the sums were kept in (what multiply takes for the types of A, B and C)", 0},
    {"accuracy", KEY_ACCURACY, "CLASS", 0, "What C was allowed to lose: ieee (default), fast, tf32 or bf16", 0},
    {"order", KEY_ORDER, "row|col", 0, "row: shapes as h5ls shows them (default); col: as MATLAB, Fortran and Julia do", 0},
    {"io", KEY_IO, "MODE", 0, "auto (default), direct, hdf5 or mpio", 0},
    {"threads", KEY_THREADS, "N", 0, "Most threads of a rank at once (its cores)", 0},
    {"progress", KEY_PROGRESS, "MODE", 0, "auto (default), bar, plain or off", 0},
    {"quiet", KEY_QUIET, NULL, 0, "Neither progress nor a word when C passes; the exit code says it", 0},
    {0}};

static tsr_status parse_type(const char *text, verify_options *o) {
    o->has_type = true;
    TSR_TRY(tsr_dtype_parse(text, &o->type));
    if (o->type != TSR_F32 && o->type != TSR_F64) return tsr_fail(TSR_ERR_USAGE, "--accumulated %s: use f32 or f64", text);
    return TSR_OK;
}

static tsr_status parse_end(verify_options *o) {
    if (o->count < 3) return tsr_fail(TSR_ERR_USAGE, "verify: needs three matrices, got %d: tessera verify A B C", o->count);
    if (!o->has_beta) o->beta = o->add ? 1 : 0;
    if (o->beta != 0 && !o->add) return tsr_fail(TSR_ERR_USAGE, "--beta scales C0: name that with --add C0");
    return TSR_OK;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    verify_options *o = state->input;
    tsr_status status = TSR_OK;
    switch (key) {
    case KEY_ADD: o->add = text; break;
    case KEY_ALPHA: status = tsr_parse_double("--alpha", text, &o->alpha); break;
    case KEY_BETA: o->has_beta = true; status = tsr_parse_double("--beta", text, &o->beta); break;
    case KEY_TRANSPOSE_A: o->transpose_a = true; break;
    case KEY_TRANSPOSE_B: o->transpose_b = true; break;
    case KEY_TRIALS: status = tsr_parse_int("--trials", text, 1, 64, &o->trials); break;
    case KEY_SEED: status = tsr_parse_int("--seed", text, 0, INT64_MAX, &o->seed); break;
    case KEY_ACCUMULATED: status = parse_type(text, o); break;
    case KEY_ACCURACY: status = tsr_accuracy_parse(text, &o->accuracy); break;
    case KEY_ORDER: status = tsr_order_parse(text, &o->order); break;
    case KEY_IO: status = tsr_io_mode_parse(text, &o->io); break;
    case KEY_THREADS: status = tsr_parse_int("--threads", text, 1, TSR_THREADS_MAX, &o->threads); break;
    case KEY_PROGRESS: status = tsr_progress_parse(text, &o->progress); break;
    case KEY_QUIET: o->quiet = true; break;
    case ARGP_KEY_ARG:
        if (o->count == 3) return ARGP_ERR_UNKNOWN;
        o->names[o->count++] = text;
        break;
    case ARGP_KEY_END: status = parse_end(o); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return status == TSR_OK ? 0 : EINVAL;
}

static const struct argp argp = {options, parse, "A B C",
    "Checks that C = alpha op(A) op(B) + beta C0 with random sign vectors, in time that grows with the size of the files and not with the product. Every row "
    "must lie within a bound that rounding alone stays under.\vExit code 0: passed; 3: failed.", NULL, NULL, NULL};

static void help(const char *part) {
    (void)part;
    tsr_options_help(&argp, "tessera verify", "mpirun -n 4 tessera verify A.h5 B.h5 C.h5");
}

/* What multiply accumulates in to make such a C. */
static tsr_dtype accumulated(const tsr_store *a, const tsr_store *b, const tsr_store *c) {
    tsr_problem problem = {.a = {.element = a->desc.element}, .b = {.element = b->desc.element}};
    tsr_problem_store_as(&problem, c->desc.element.dtype);
    return problem.type;
}

/* Collective. In column order a person's A is the transpose of the dataset, so the datasets multiply the other way round: Cᵀ = op(B)ᵀ·op(A)ᵀ. */
static tsr_status verify(const tsr_world *world, const verify_options *o, tsr_store **stores) {
    bool swap = o->order == TSR_ORDER_COL;
    tsr_verify_result result;
    tsr_verify_args args = {.a = stores[swap], .b = stores[!swap], .c = stores[2], .c0 = stores[3],
                            .transpose_a = swap ? o->transpose_b : o->transpose_a, .transpose_b = swap ? o->transpose_a : o->transpose_b,
                            .alpha = o->alpha, .beta = o->beta, .trials = (int)o->trials, .seed = (uint64_t)o->seed, .accuracy = o->accuracy,
                            .threads = (int)o->threads, .buffer_bytes = BUFFER_BYTES,
                            .progress = o->quiet ? TSR_PROGRESS_OFF : o->progress};
    TSR_TRY(tsr_agree(world->comm,
                      tsr_shapes_check(o->order, &stores[0]->desc, o->transpose_a, &stores[1]->desc, o->transpose_b,
                                       &stores[2]->desc, stores[3] ? &stores[3]->desc : NULL)));
    args.type = o->has_type ? o->type : accumulated(args.a, args.b, args.c);
    TSR_TRY(tsr_verify_product(world, &args, &result));
    char text[512];
    tsr_verify_format(&result, text, sizeof text);
    if (!result.passed) return tsr_agree(world->comm, tsr_fail(TSR_ERR_CHECK, "%s", text));
    if (world->rank == 0 && !o->quiet) tsr_text_print(stdout, "", 8, text);
    return TSR_OK;
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    verify_options o = {.alpha = 1, .trials = 20};
    tsr_store *stores[4] = {NULL};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&argp, argc, argv, &o)));
    tsr_status status = TSR_OK;
    for (int i = 0; i < 3 && status == TSR_OK; i++) status = tsr_input_open(world, o.names[i], o.order, o.io, &stores[i]);
    if (status == TSR_OK && o.beta != 0) status = tsr_input_open(world, o.add, o.order, o.io, &stores[3]);
    if (status == TSR_OK) status = verify(world, &o, stores);
    for (int i = 3; i >= 0; i--) tsr_store_close(stores[i]);
    return status;
}

const tsr_command tsr_cmd_verify = {
    .name = "verify",
    .what = "check that C is the product of A and B, in O(n^2) work",
    .run = run, .help = help,
};
