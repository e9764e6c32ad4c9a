/* The check of a run's product before it gets its name (run_state.h). */
#include <stdio.h>
#include <time.h>

#include "app/library/inputs.h"
#include "app/library/run_state.h"
#include "app/verify/verify_products.h"
#include "io/stores.h"

tsr_status tsr_run_check(tsr_run *run, const tsr_run_product *product) {
    snprintf(run->check, sizeof run->check, "not run");
    if (run->trials == 0) return TSR_OK;
    tsr_run_stage(run, "check");
    MPI_Comm comm = run->world->comm;
    /* Ranks the grid leaves idle help to check, and --io mpio opened files for the active ones only: open all anew. */
    tsr_store *a = NULL;
    tsr_store *b = NULL;
    tsr_store *c0 = NULL;
    tsr_store *c = NULL;
    tsr_status status = tsr_store_open(&run->from.a, TSR_IO_AUTO, NULL, NULL, &a);
    if (status == TSR_OK) status = tsr_store_open(&run->from.b, TSR_IO_AUTO, NULL, NULL, &b);
    if (status == TSR_OK && run->problem.add_c0) status = tsr_store_open(&run->from.c0, TSR_IO_AUTO, NULL, NULL, &c0);
    if (status == TSR_OK) status = tsr_store_open(&run->output.desc, TSR_IO_AUTO, NULL, NULL, &c);
    status = tsr_agree(comm, status);
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
                                .buffer_bytes = tsr_min((int64_t)run->plan.resources.host_limit / 4 + 1, 256 << 20)};
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
    return tsr_fail(TSR_ERR_CHECK, "%s; nothing was written under the output's name", run->check);
}
