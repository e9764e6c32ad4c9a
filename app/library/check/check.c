/* The check of a run's product before it gets its name (run_state.h). Of matrices in memory each rank reads a band
 * (tsr_verify_bands): what of it lies elsewhere comes by one exchange. C is what the caller's arrays hold. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "app/library/inputs.h"
#include "app/library/run_state.h"
#include "app/verify/verify_products.h"
#include "io/stores.h"

/* ---- matrices in memory ----------------------------------------------------------------------- */

/* Whether rows of the operand as it is stored are rows of C. */
static bool has_rows_of_c(const tsr_run *run, int which) {
    return which >= TSR_RUN_C0 || (which == TSR_RUN_A && !run->products.transpose_left);
}

static bool is_complex(const tsr_run *run) {
    const tsr_problem *x = &run->problem;
    return tsr_problem_complex(x) || tsr_dtype_is_complex(x->out) || x->alpha_imag != 0 || x->beta_imag != 0;
}

/* Of half a symmetric matrix the elements that stand for those of the other half are read, too. */
static tsr_status add_mirrored(tsr_rects *rects) {
    tsr_rect *more = realloc(rects->rect, 2 * (size_t)tsr_max(1, rects->count) * sizeof *more);
    if (!more)
        return tsr_fail(TSR_ERR_MEMORY, "no memory for %lld parts of a matrix to check", (long long)rects->count);
    for (int64_t i = 0; i < rects->count; i++)
        more[rects->count + i] = (tsr_rect){more[i].col, more[i].row, more[i].cols, more[i].rows};
    rects->rect = more;
    rects->count *= 2;
    return TSR_OK;
}

/* Local. This rank's share of the matrix, of each one of a stack, for which there is no memory yet. */
static tsr_status make_share(const tsr_run *run, int which, bool copies, tsr_holdings *share) {
    const tsr_distributed *matrix = run->memory[which].matrix;
    const tsr_store_desc *desc = tsr_run_desc(run, which);
    const tsr_verify_band band = {.rows = desc->rows,
                                  .cols = desc->cols,
                                  .blocks = has_rows_of_c(run, which),
                                  .complex = is_complex(run),
                                  .trials = run->trials,
                                  .rank = run->world->rank,
                                  .ranks = run->world->ranks};
    tsr_rects rects;
    tsr_stacked of = {0};
    TSR_TRY(tsr_verify_bands(&band, &rects));
    tsr_status status =
        which == TSR_RUN_C && run->problem.triangle != TSR_TRIANGLE_FULL ? add_mirrored(&rects) : TSR_OK;
    if (status == TSR_OK) status = tsr_run_stacked(run, which, (tsr_span){0, run->products.count}, &of);
    if (status == TSR_OK) status = tsr_holdings_make(&rects, &of, matrix, run->world->rank, copies, share);
    free(of.number);
    tsr_rects_free(&rects);
    return status;
}

tsr_status tsr_run_check_bytes(const tsr_run *run, double *bytes) {
    *bytes = 0;
    for (int i = 0; run->trials > 0 && i < TSR_RUN_MEMORIES; i++) {
        if (!tsr_run_in_memory(run, i)) continue;
        for (int copies = 0; copies < 1 + (i == TSR_RUN_C && run->adds_to_c); copies++) {
            tsr_holdings share = {0};
            const tsr_status status = make_share(run, i, copies, &share);
            *bytes += (double)share.bytes;
            tsr_holdings_free(&share);
            TSR_TRY(status);
        }
    }
    return TSR_OK;
}

/* Collective. The share, from the arrays of all ranks. */
static tsr_status fetch(tsr_run *run, int which, bool copies, tsr_run_memory *m) {
    const tsr_world *world = run->world;
    const tsr_distributed *matrix = run->memory[which].matrix;
    tsr_moved moved;
    tsr_status status = make_share(run, which, copies, &m->holdings);
    if (status == TSR_OK) status = tsr_holdings_allocate(&m->holdings, tsr_dtype_bytes(matrix->dtype));
    TSR_TRY(tsr_agree(world->comm, status));
    TSR_TRY(tsr_rects_gather(world, &m->holdings, &m->all));
    const tsr_redistribution r = {.matrix = matrix,
                                  .mine = &m->holdings,
                                  .all = &m->all,
                                  .threads = tsr_run_cores(run),
                                  .message_bytes = tsr_message_bytes(tsr_host_limit(&run->plan.resources))};
    return tsr_redistribute(world, &r, &moved);
}

tsr_status tsr_run_keep_c0(tsr_run *run) {
    if (run->trials == 0 || !run->adds_to_c) return TSR_OK;
    return fetch(run, TSR_RUN_C, true, &run->kept);
}

/* Collective. In place of what the plan made this rank hold. */
static tsr_status open_share(tsr_run *run, int which, tsr_store **store) {
    tsr_run_memory *m = &run->memory[which];
    tsr_holdings_free(&m->holdings);
    tsr_rects_of_ranks_free(&m->all);
    TSR_TRY(fetch(run, which, false, m));
    return tsr_agree(run->world->comm, tsr_holdings_open(&m->holdings, tsr_run_desc(run, which), store));
}

static tsr_status open_kept(const tsr_run *run, tsr_store **store) {
    return tsr_agree(run->world->comm, tsr_holdings_open(&run->kept.holdings, &run->from.c0, store));
}

/* ---- the check ------------------------------------------------------------------------------- */

/* Ranks the grid leaves idle help to check, and --io mpio opened files for the active ones only: open all anew. */
static tsr_status open_matrix(tsr_run *run, int which, const tsr_store_desc *desc, tsr_store **store) {
    if (tsr_run_in_memory(run, which)) return open_share(run, which, store);
    return tsr_agree(run->world->comm, tsr_store_open(desc, TSR_IO_AUTO, NULL, NULL, store));
}

/* Collective. */
static tsr_status open_matrices(tsr_run *run, tsr_store **a, tsr_store **b, tsr_store **c0, tsr_store **c) {
    TSR_TRY(open_matrix(run, TSR_RUN_A, &run->from.a, a));
    TSR_TRY(open_matrix(run, TSR_RUN_B, &run->from.b, b));
    if (run->adds_to_c) TSR_TRY(open_kept(run, c0));
    else if (run->problem.add_c0) TSR_TRY(open_matrix(run, TSR_RUN_C0, &run->from.c0, c0));
    return open_matrix(run, TSR_RUN_C, &run->output.desc, c);
}

/* A quarter of the host's memory, as the plan counts it: what that had beside itself is gone by now. */
static int64_t buffer_bytes(const tsr_run *run) {
    tsr_resources all = run->plan.resources;
    all.host_beside = 0;
    return tsr_min((int64_t)tsr_host_limit(&all) / 4 + 1, 256 << 20);
}

static bool stopped(void *context) { return tsr_run_stopped(context); }

tsr_status tsr_run_check(tsr_run *run, const tsr_run_product *product) {
    snprintf(run->check, sizeof run->check, "not run");
    if (run->trials == 0) return TSR_OK;
    tsr_run_stage(run, "check");
    MPI_Comm comm = run->world->comm;
    tsr_store *a = NULL;
    tsr_store *b = NULL;
    tsr_store *c0 = NULL;
    tsr_store *c = NULL;
    tsr_status status = open_matrices(run, &a, &b, &c0, &c);
    tsr_verify_result result = {0};
    if (status == TSR_OK) {
        const tsr_problem *x = &run->problem;
        tsr_verify_args args = {.a = a,
                                .b = b,
                                .c = c,
                                .c0 = c0,
                                .transpose_a = run->products.transpose_left,
                                .transpose_b = run->products.transpose_right,
                                .conjugate_a = x->operand[TSR_OPERAND_A].conjugate,
                                .conjugate_b = x->operand[TSR_OPERAND_B].conjugate,
                                .triangle = x->triangle,
                                .alpha = product->alpha.re,
                                .alpha_imag = product->alpha.im,
                                .beta = product->beta.re,
                                .beta_imag = product->beta.im,
                                .type = x->type,
                                .accuracy = tsr_run_loss(run),
                                .trials = run->trials,
                                .seed = (uint64_t)time(NULL),
                                .threads = tsr_run_cores(run),
                                .progress = &run->progress,
                                .bands_only = tsr_run_in_memory(run, TSR_RUN_A) && run->world->ranks > 1,
                                .stopped = stopped,
                                .stopped_context = run,
                                .buffer_bytes = buffer_bytes(run)};
        status = tsr_broadcast(comm, &args.seed, sizeof args.seed);
        if (status == TSR_OK) status = tsr_verify_products(run->world, &args, &run->products, &result);
    }
    status = tsr_inputs_agree(comm, status, (tsr_store *const[]){a, b, c0}, 3);
    tsr_store_close(a);
    tsr_store_close(b);
    tsr_store_close(c0);
    tsr_store_close(c);
    TSR_TRY(status);
    tsr_verify_format(&result, run->check, sizeof run->check);
    if (result.rows_unjudged > 0)
        tsr_warn(run->world->warnings, TSR_VERIFY_UNJUDGED, (long long)result.rows_unjudged, (long long)result.rows);
    if (result.passed) return TSR_OK;
    return tsr_fail(TSR_ERR_CHECK, "%s; %s", run->check,
                    tsr_run_in_memory(run, TSR_RUN_C) ? "C is as it was checked"
                                                      : "nothing was written under the output's name");
}
