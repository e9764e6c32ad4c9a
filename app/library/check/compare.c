/* The check of files where the products were made (run_state.h): A, B and the C that was written go through the
 * executor once more, by a plan that compares them. Nothing of the run before is used: files are opened anew, and every
 * buffer is filled again. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/library/inputs.h"
#include "app/library/run_state.h"

#define LOOKS 2 /* at rows that are not as they should be, with other signs each time */

bool tsr_run_can_compare(const tsr_run *run) {
    const tsr_problem *x = &run->problem;
    const bool complex = tsr_problem_complex(x) || tsr_dtype_is_complex(x->out) || x->alpha_imag != 0;
    const bool half = x->gram || x->mirrored, empty = x->m == 0 || x->n == 0 || x->k == 0;
    for (int i = 0; i < TSR_RUN_MEMORIES; i++)
        if (tsr_run_in_memory(run, i)) return false;
    return run->trials > 0 && run->engine.check && !x->add_c0 && !complex && !half && !empty &&
           tsr_check_can_judge(x->type, x->out, x->alpha);
}

/* ---- a plan that can compare ------------------------------------------------------------------ */

/* What the run has, while the comparison has its own. */
typedef struct {
    tsr_plan plan;
    tsr_grid grid;
    tsr_transport *transport;
    tsr_store *c;
    bool replaced; /* plan, grid and transport */
} set_aside;

/* Collective. Sums of ranks that share k stay apart, so k is not shared: *able false where there is no memory for
 * that. */
static tsr_status replace_plan(tsr_run *run, set_aside *aside, bool *able) {
    MPI_Comm comm = run->world->comm;
    tsr_resources res = run->plan.resources;
    tsr_plan plan;
    res.grid[0] = run->plan.p * run->plan.r;
    res.grid[1] = run->plan.q;
    res.grid[2] = 1;
    const tsr_status status = tsr_plan_make(&run->problem, &res, &plan);
    *able = status == TSR_OK;
    if (!*able) tsr_message_set("");
    if (!*able) return TSR_OK;
    tsr_run_close_executor(run);
    run->plan = plan;
    run->transport = NULL;
    aside->replaced = true;
    TSR_TRY(tsr_agree(comm, tsr_grid_open(&run->team, plan.p, plan.q, plan.r, &run->grid)));
    return tsr_agree(comm,
                     run->grid.active ? run->transport_ops->open(&run->grid, run->device, &run->transport) : TSR_OK);
}

static tsr_status open_all(tsr_run *run, set_aside *aside, bool *able) {
    *able = true;
    *aside = (set_aside){.plan = run->plan, .grid = run->grid, .transport = run->transport, .c = run->c};
    if (run->plan.r > 1) TSR_TRY(replace_plan(run, aside, able));
    if (!*able) return TSR_OK;
    run->c = NULL;
    run->plan.done = NULL; /* of an earlier run's parts, too */
    run->plan.compares = true;
    TSR_TRY(tsr_agree(run->world->comm, run->grid.active ? tsr_run_open_written(run) : TSR_OK));
    const bool opens = run->grid.active && !run->executor;
    return tsr_agree(run->world->comm, opens ? tsr_run_open_executor(run) : TSR_OK);
}

/* The run's own executor stays where all went well. Freeing its memory is no part of a check: a run without one does so
 * later, too. */
static void close_all(tsr_run *run, const set_aside *aside, tsr_status status) {
    tsr_run_close_inputs(run);
    tsr_store_close(run->c);
    if (aside->replaced || status != TSR_OK) tsr_run_close_executor(run);
    if (aside->replaced) {
        if (run->grid.active) run->transport_ops->close(run->transport);
        tsr_grid_close(&run->grid);
    }
    run->plan = aside->plan;
    run->grid = aside->grid;
    run->transport = aside->transport;
    run->c = aside->c;
}

/* ---- looks ------------------------------------------------------------------------------------ */

static double worst_of(const tsr_check_counts *counts) {
    double worst;
    memcpy(&worst, &counts->worst_bits, sizeof worst);
    return worst;
}

/* Doubles that are not negative compare as their bits do. */
static void add(tsr_check_counts *to, const tsr_check_counts *one) {
    if (to->doubtful == 0) memcpy(to->place, one->place, sizeof to->place);
    to->judged += one->judged;
    to->unjudged += one->unjudged;
    to->doubtful += one->doubtful;
    to->wrong += one->wrong;
    if (one->worst_bits > to->worst_bits) to->worst_bits = one->worst_bits;
}

/* Where doubtful rows are: in super-blocks of the plan that makes them, where that is this one. */
static tsr_status note_place(tsr_run *run, const set_aside *aside, int64_t product, tsr_check_counts counts) {
    if (counts.doubtful == 0) return TSR_OK;
    if (aside->replaced) counts.doubtful += TSR_CHECK_PLACES;
    return tsr_run_note_doubtful(run, product, &counts);
}

/* All cores of a rank with a GPU, which nothing else wants meanwhile, but 16 at most, which memory has enough of. */
static int read_threads(const tsr_run *run) {
    const int usual = tsr_run_io_threads(run);
    if (run->facts.host_memory || run->limits.io_threads > 0) return usual;
    return (int)tsr_max(usual, tsr_min(16, tsr_run_cores(run)));
}

/* The products of this rank's team. */
static tsr_status compare_products(tsr_run *run, const set_aside *aside, uint64_t seed, tsr_check_counts *found) {
    const tsr_span mine = tsr_run_share(run);
    *found = (tsr_check_counts){.judged = 0};
    run->doubtful_count = 0;
    for (int64_t i = 0; run->grid.active && i < mine.count; i++) {
        const tsr_comparison comparison = {run->a, run->b, run->c, seed, read_threads(run)};
        tsr_rank_record lanes = {0}; /* what they did is no part of the product's */
        tsr_check_counts one;
        tsr_run_select(run, mine.start + i);
        TSR_TRY(tsr_executor_compare(run->executor, &comparison, &lanes, &one));
        add(found, &one);
        TSR_TRY(note_place(run, aside, mine.start + i, one));
    }
    return TSR_OK;
}

/* What this rank's look found, and all ranks'. */
static tsr_status look(tsr_run *run, const set_aside *aside, uint64_t seed, tsr_check_counts *mine,
                       tsr_check_counts *all) {
    MPI_Comm comm = run->world->comm;
    tsr_status status = compare_products(run, aside, seed, mine);
    if (status != TSR_OK && run->plan.p * run->plan.q > 1) tsr_run_give_up(run, status);
    if (status == TSR_OK) status = tsr_run_go_on(run);
    TSR_TRY(tsr_inputs_agree(comm, status, (tsr_store *const[]){run->a, run->b}, 2));
    const uint64_t counts[] = {mine->judged, mine->unjudged, mine->doubtful, mine->wrong};
    uint64_t sums[4];
    TSR_TRY(TSR_MPI(MPI_Allreduce(counts, sums, 4, MPI_UINT64_T, MPI_SUM, comm)));
    *all = (tsr_check_counts){.judged = sums[0], .unjudged = sums[1], .doubtful = sums[2], .wrong = sums[3]};
    return TSR_MPI(MPI_Allreduce(&mine->worst_bits, &all->worst_bits, 1, MPI_UINT64_T, MPI_MAX, comm));
}

static tsr_status differs(tsr_run *run, const tsr_check_counts *mine, const char *how) {
    char device[TSR_RUN_DEVICE_CHARS];
    if (mine->doubtful == 0) return TSR_OK;
    return tsr_fail(TSR_ERR_CHECK,
                    "FAILED: %" PRIu64 " rows of C, the first from (%" PRId64 ", %" PRId64
                    ") on, are %snot what A and B make: they differ by up to %.3g times their rounding bound, as rank "
                    "%d on %s (%s) read all three again; nothing was written under the output's name",
                    mine->doubtful, mine->place[0].row, mine->place[0].col, how, worst_of(mine), run->world->rank,
                    run->world->host, tsr_run_device_text(run, device));
}

/* Rows that rounding makes doubtful where products were checked are so here: then another check decides. */
static tsr_status may_be_rounding(const tsr_run *run, const tsr_check_counts *all, bool *may) {
    int64_t rounded = 0;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&run->mine.rows_rounded, &rounded, 1, MPI_INT64_T, MPI_SUM, run->world->comm)));
    *may = rounded > 0 && all->wrong == 0;
    return TSR_OK;
}

/* The first look has read all of C, once: where the sums are not those of what was written it is read once more, to
 * find which parts changed. TSR_ERR_CHECK then. */
static tsr_status compare_sums(tsr_run *run, const char *how, tsr_run_compared *compared) {
    const uint32_t mine[] = {tsr_written_sum(&run->written) ^ atomic_load(&run->read_back.parts),
                             atomic_load(&run->read_back.damaged)};
    uint32_t sum, damaged;
    if (!tsr_run_compares_written(run)) return TSR_OK;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine[0], &sum, 1, MPI_UINT32_T, MPI_BXOR, run->world->comm)));
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine[1], &damaged, 1, MPI_UINT32_T, MPI_MAX, run->world->comm)));
    if (sum || damaged) TSR_TRY(tsr_run_look_at_written(run, how, &compared->changed));
    compared->unchanged = true;
    return TSR_OK;
}

static tsr_status judge(tsr_run *run, const set_aside *aside, const char *how, tsr_run_compared *compared) {
    tsr_check_counts mine, all, first;
    bool rounded = false;
    TSR_TRY(look(run, aside, 1, &mine, &all));
    TSR_TRY(compare_sums(run, how, compared));
    first = all;
    for (uint64_t seed = 2; all.doubtful > 0 && seed <= LOOKS; seed++) TSR_TRY(look(run, aside, seed, &mine, &all));
    if (all.doubtful > 0) TSR_TRY(may_be_rounding(run, &all, &rounded));
    if (all.doubtful > 0 && !rounded) compared->wrong = (int64_t)all.doubtful;
    if (compared->wrong > 0) return tsr_agree(run->world->comm, differs(run, &mine, *how ? "again " : ""));
    if (first.doubtful > 0 && all.doubtful == 0 && run->world->rank == 0)
        tsr_warn(run->world->warnings, TSR_RUN_READ_WRONG, (unsigned long long)first.doubtful,
                 first.doubtful == 1 ? "" : "s");
    compared->right = all.doubtful == 0 && all.unjudged == 0;
    snprintf(
        run->check, sizeof run->check,
        "PASSED: every row within its rounding bound (largest |r|/bound %.3g), as the device read A, B and C again",
        worst_of(&all));
    return TSR_OK;
}

/* Parts that an earlier run wrote are in no sum. */
bool tsr_run_compares_written(const tsr_run *run) { return tsr_run_can_compare(run) && run->resume.count == 0; }

tsr_status tsr_run_compare(tsr_run *run, const char *how, tsr_run_compared *compared) {
    set_aside aside;
    bool able = tsr_run_can_compare(run);
    *compared = (tsr_run_compared){.right = false};
    if (!able) return TSR_OK;
    tsr_run_stage(run, "check");
    if (run->trace) tsr_trace_pause(run->trace, true); /* it has no room for these steps */
    TSR_TRY(open_all(run, &aside, &able));
    const tsr_status status = able ? judge(run, &aside, how, compared) : TSR_OK;
    if (status != TSR_OK && status != TSR_ERR_CHECK) return status;
    if (able) close_all(run, &aside, status);
    if (run->trace) tsr_trace_pause(run->trace, false);
    return status;
}
