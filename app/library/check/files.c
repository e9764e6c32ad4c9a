/* The check of files (run_state.h): what is in the file of C, against what was written to it, and against A and B.
 * Parts that are wrong are made again, once. */
#include "app/library/inputs.h"
#include "app/library/run_state.h"

/* By the executor that made them, or where the inputs were closed by one over files that are opened anew. */
static tsr_status make_again(tsr_run *run, bool anew) {
    MPI_Comm comm = run->world->comm;
    tsr_message_set("");
    if (anew) TSR_TRY(tsr_agree(comm, run->grid.active ? tsr_run_open_inputs(run) : TSR_OK));
    if (anew) TSR_TRY(tsr_agree(comm, run->grid.active ? tsr_run_open_executor(run) : TSR_OK));
    tsr_status status = tsr_run_make_doubtful_again(run);
    if (status == TSR_OK) status = tsr_run_commit_parts(run);
    if (status != TSR_OK && status != TSR_ERR_CHECK && run->plan.p * run->plan.q * run->plan.r > 1)
        tsr_run_give_up(run, status);
    if (status == TSR_OK && run->grid.active) status = run->c->ops->sync(run->c);
    if (!anew) return tsr_agree(comm, status);
    TSR_TRY(tsr_inputs_agree(comm, status, (tsr_store *const[]){run->a, run->b}, 2));
    tsr_run_close_executor(run);
    tsr_run_close_inputs(run);
    return TSR_OK;
}

/* The same on every rank, also on one that multiplies nothing. */
static tsr_status can_make_again(const tsr_run *run, bool *can) {
    int all = !run->grid.active || tsr_run_can_make_again(run);
    TSR_TRY(tsr_reduce_all(run->world->comm, &all, 1, MPI_INT, MPI_MIN));
    *can = all;
    return TSR_OK;
}

static void warn_of(const tsr_run *run, int64_t changed, int64_t wrong) {
    tsr_warnings *warnings = run->world->warnings;
    if (run->world->rank != 0) return;
    if (changed > 0) tsr_warn(warnings, TSR_RUN_CHANGED, (long long)changed, changed == 1 ? "" : "s");
    else tsr_warn(warnings, TSR_RUN_WRONG_FILES, (long long)wrong, wrong == 1 ? " of C was" : "s of C were");
}

/* ---- what was written ------------------------------------------------------------------------- */

static tsr_status compare_written(tsr_run *run, bool anew) {
    int64_t changed = 0;
    bool can;
    tsr_run_stage(run, "check");
    const tsr_status status = tsr_run_look_at_written(run, "", &changed);
    if (status != TSR_ERR_CHECK) return status;
    TSR_TRY(can_make_again(run, &can));
    if (!can) return status;
    warn_of(run, changed, 0);
    TSR_TRY(make_again(run, anew));
    return tsr_run_look_at_written(run, " again", &changed);
}

tsr_status tsr_run_check_written(tsr_run *run) {
    if (run->trials == 0 || tsr_run_in_memory(run, TSR_RUN_C) || tsr_run_compares_written(run)) return TSR_OK;
    return compare_written(run, false);
}

/* ---- what A and B make ------------------------------------------------------------------------ */

static tsr_status compare(tsr_run *run, tsr_run_compared *compared) {
    bool can;
    const tsr_status status = tsr_run_compare(run, "", compared);
    if (status != TSR_ERR_CHECK) return status;
    TSR_TRY(can_make_again(run, &can));
    if (!can) return status;
    warn_of(run, compared->changed, compared->wrong);
    TSR_TRY(make_again(run, true));
    return tsr_run_compare(run, " again", compared);
}

tsr_status tsr_run_check_files(tsr_run *run, const tsr_run_options *options) {
    tsr_run_compared compared;
    TSR_TRY(compare(run, &compared));
    if (!compared.right) tsr_run_close_executor(run); /* other checks want its memory */
    if (tsr_run_compares_written(run) && !compared.unchanged) TSR_TRY(compare_written(run, true));
    tsr_store_close(run->c);
    run->c = NULL;
    if (compared.right) return TSR_OK;
    tsr_run_phase(run, TSR_PHASE_CHECK);
    const tsr_status status = tsr_run_check(run, &options->product);
    tsr_run_phase_done(run);
    return status;
}
