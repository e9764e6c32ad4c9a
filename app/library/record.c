/* What a run leaves behind (run_state.h, io/record/run_record.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/planning/reproducible.h"
#include "app/library/run_state.h"

#include "io/stores.h"
#include "mpi/plan/predict.h"
#include "tessera_commit.h" /* made at every build (cmake/commit.cmake) */

static void describe_source(const tsr_matrix_name *name, int64_t rows, int64_t cols, const char *type,
                            tsr_source_record *source) {
    tsr_matrix_name stored = *name;
    stored.columns_first = false;
    tsr_matrix_name_text(&stored, source->name, sizeof source->name);
    source->rows = rows;
    source->cols = cols;
    snprintf(source->type, sizeof source->type, "%s", type);
}

static void find_versions(const tsr_run *run, char *text, size_t chars) {
    char hdf5[64], transports[256];
    snprintf(text, chars, "tessera %s (commit %s), %s, %s", TSR_VERSION, TSR_COMMIT,
             tsr_stores_version(hdf5, sizeof hdf5), tsr_transport_versions(transports, sizeof transports));
    size_t at = strlen(text);
    if (run->facts.kind == TSR_DEVICE_CUDA && at < chars)
        snprintf(text + at, chars - at, ", CUDA %d.%d (driver %d.%d)", run->facts.runtime_version / 1000,
                 run->facts.runtime_version % 1000 / 10, run->facts.driver_version / 1000,
                 run->facts.driver_version % 1000 / 10);
}

/* Of all rounds of a team. */
static void describe_prediction(const tsr_run *run, tsr_run_record *record) {
    const tsr_plan *plan = &run->plan;
    const tsr_extents all = tsr_problem_real_product(&plan->problem);
    const double rounds = (double)tsr_ceil_div(tsr_run_rounds(run), tsr_max(1, run->teams));
    tsr_prediction model;
    tsr_plan_predict(plan, &model);
    const double moved = tsr_run_move_seconds(run); /* of matrices in memory */
    record->predicted_seconds = rounds * model.seconds + moved;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        record->predicted_lane_seconds[lane] = rounds * model.lane_seconds[lane];
        record->expected_rate[lane] = plan->resources.rates.lane[lane];
    }
    record->predicted_lane_seconds[TSR_LANE_EXCHANGE] += moved;
    record->kernel_measured = tsr_gemm_speed(run->kernel, &run->facts, all.m, all.n, all.k) > 0;
    record->planned_device_bytes = plan->device_bytes;
    record->planned_host_bytes = plan->host_bytes;
}

void tsr_run_describe_engine(const tsr_run *run, tsr_run_record *record) {
    const tsr_problem *x = &run->problem;
    const tsr_plan *plan = &run->plan;
    const bool swap = run->swapped;
    record->ranks = run->world->ranks;
    record->products = run->products.count;
    record->teams = run->teams;
    record->grid[0] = swap ? plan->q : plan->p;
    record->grid[1] = swap ? plan->p : plan->q;
    record->grid[2] = plan->r;
    record->super_blocks[0] = swap ? plan->blocks_n : plan->blocks_m;
    record->super_blocks[1] = swap ? plan->blocks_m : plan->blocks_n;
    record->panel = plan->panel;
    record->setup_seconds = run->first_read - run->world->started_seconds;
    memcpy(record->startup_seconds, run->startup_seconds, sizeof record->startup_seconds);
    snprintf(record->kernel, sizeof record->kernel, "%s", run->kernel->name);
    snprintf(record->accuracy, sizeof record->accuracy, "%s", tsr_accuracy_name(tsr_run_loss(run)));
    snprintf(record->input, sizeof record->input, "%s", tsr_dtype_name(x->input));
    snprintf(record->type, sizeof record->type, "%s", tsr_dtype_name(x->type));
    snprintf(record->transport, sizeof record->transport, "%s", run->transport_ops->name);
    snprintf(record->schedule, sizeof record->schedule, "%s", run->plan.schedule->name);
    if (run->engine.reproducible) tsr_reproducible_text(run->kernel, record->reproducible, sizeof record->reproducible);
    describe_prediction(run, record);
    find_versions(run, record->versions, sizeof record->versions);
}

/* As if all of a Gram matrix were multiplied. A run that goes on where another one ended counts its own part alone. */
static double flops_of(const tsr_run *run, const tsr_rank_record *ranks, double whole) {
    double own = 0;
    if (run->resume.count == 0) return whole;
    for (int i = 0; ranks && i < run->world->ranks; i++) own += ranks[i].flops * (run->problem.gram ? 2 : 1);
    return fmin(own, whole);
}

void tsr_run_fill_record(const tsr_run *run, const tsr_run_options *options, const tsr_rank_record *ranks,
                         tsr_run_record *record) {
    const tsr_run_product *product = &options->product;
    const tsr_problem *x = &run->problem;
    const bool swap = run->swapped;
    const int64_t m = tsr_problem_product_rows(x);
    const tsr_store_desc *a = swap ? &run->from.b : &run->from.a;
    const tsr_store_desc *b = swap ? &run->from.a : &run->from.b;
    const tsr_store_desc *c0 = &run->from.c0;
    const tsr_operand *first = &x->operand[TSR_OPERAND_A];
    const int64_t stacked = x->batch > 1 && !first->common ? x->batch : 1; /* one below the other */
    const int64_t k = first->transpose ? first->rows / stacked : first->cols;
    *record = (tsr_run_record){.command = options->command,
                               .transpose_a = product->transpose_a,
                               .transpose_b = product->transpose_b,
                               .alpha = product->alpha.re,
                               .alpha_imag = product->alpha.im,
                               .beta = product->beta.re,
                               .beta_imag = product->beta.im,
                               .conjugate_a = product->conjugate_a,
                               .conjugate_b = product->conjugate_b,
                               .gram = x->gram || x->mirrored,
                               .triangle = product->triangle,
                               .m = swap ? x->n : m,
                               .n = swap ? m : x->n,
                               .k = k,
                               .seconds = run->seconds,
                               .redistribute_seconds = run->redistribute_seconds,
                               .redistribute_bytes = run->redistribute_bytes,
                               .rank_records = ranks};
    tsr_run_describe_engine(run, record);
    snprintf(record->started, sizeof record->started, "%s", options->started);
    describe_source(&a->name, a->rows, a->cols, a->type_name, &record->a);
    describe_source(&b->name, b->rows, b->cols, b->type_name, &record->b);
    if (x->add_c0) describe_source(&c0->name, c0->rows, c0->cols, c0->type_name, &record->c0);
    tsr_matrix_name target = run->output.desc.name;
    memcpy(target.file, run->output.target, sizeof target.file);
    describe_source(&target, m, x->n, tsr_dtype_name(x->out), &record->c);
    snprintf(record->io, sizeof record->io, "%s", tsr_io_mode_name(x->k > 0 ? run->io_used : run->io));
    snprintf(record->check, sizeof record->check, "%s", run->check);
    record->check_seconds = run->check_seconds;
    tsr_run_format_checked(run, ranks, record->product_check, sizeof record->product_check);
    snprintf(record->digest, sizeof record->digest, "%s", run->digest_text);
    record->warnings = run->world->warnings ? run->world->warnings->text : NULL;
    const tsr_extents reals = tsr_problem_reals(x);
    const double whole =
        2.0 * (double)(m * reals.m) * (double)(x->n * reals.n) * (double)(k * reals.k) * (double)run->products.count;
    record->gflops = flops_of(run, ranks, whole) / record->seconds / 1e9;
}

/* Rank, place in the grid, host and device. */
static void describe_rank(tsr_run *run) {
    tsr_rank_record *r = &run->mine;
    const bool active = run->grid.active, swap = run->swapped;
    r->rank = run->world->rank;
    r->row = !active ? -1 : swap ? run->grid.col : run->grid.row;
    r->col = !active ? -1 : swap ? run->grid.row : run->grid.col;
    r->depth = active ? run->grid.depth : -1;
    snprintf(r->host, sizeof r->host, "%s", run->world->host);
    r->cores = run->world->cores;
    r->threads = run->threads;
    r->io_threads = tsr_run_io_threads(run);
    if (run->facts.kind == TSR_DEVICE_CUDA)
        snprintf(r->device, sizeof r->device, "%.48s #%d (%s)", run->facts.name, run->facts.ordinal, run->facts.bus_id);
    else snprintf(r->device, sizeof r->device, "%.95s", run->facts.name);
}

/* ---- the digest of C: summed up as each rank writes, or read again -------------------------- */

/* Parts of an earlier run need not be those that this one would have written. */
static bool is_read(const tsr_run *run) { return run->resume.unfinished; }

tsr_status tsr_run_sum_up_writes(tsr_run *run) {
    tsr_digest *digest = run->digested && !is_read(run) ? &run->digest : NULL;
    tsr_written *written = run->trials > 0 ? &run->written : NULL;
    return digest || written ? tsr_digest_writes(run->c, digest, written) : TSR_OK;
}

static bool stopped(void *context) { return tsr_run_stopped(context); }

static tsr_status read_output(tsr_run *run) {
    tsr_store *c = NULL;
    TSR_TRY(tsr_store_open(&run->output.desc, TSR_IO_AUTO, NULL, NULL, &c));
    const tsr_status status = tsr_digest_read(c, run->world->rank, run->world->ranks, stopped, run, &run->digest);
    tsr_store_close(c);
    return status;
}

tsr_status tsr_run_find_digest(tsr_run *run) {
    MPI_Comm comm = run->world->comm;
    uint32_t mine, all = 0;
    int again = run->mine.repaired > 0; /* what was made again was written twice */
    if (!run->digested) return TSR_OK;
    TSR_TRY(tsr_reduce_all(comm, &again, 1, MPI_INT, MPI_MAX));
    if (again) atomic_store(&run->digest.parts, 0);
    if (again || is_read(run)) TSR_TRY(tsr_agree(comm, read_output(run)));
    mine = atomic_load(&run->digest.parts);
    TSR_TRY(tsr_agree(comm, TSR_MPI(MPI_Reduce(&mine, &all, 1, MPI_UINT32_T, MPI_BXOR, 0, comm))));
    tsr_digest_text(all, (uint64_t)tsr_store_bytes(&run->output.desc), run->digest_text);
    return TSR_OK;
}

/* ---- all ranks -------------------------------------------------------------------------------- */

tsr_status tsr_run_gather_ranks(tsr_run *run, tsr_rank_record **ranks) {
    const tsr_world *world = run->world;
    const size_t bytes = sizeof run->mine;
    tsr_rank_record *all = NULL;
    tsr_status status = TSR_OK;
    describe_rank(run);
    if (world->rank == 0 && !(all = calloc((size_t)world->ranks, bytes)))
        status = tsr_fail(TSR_ERR_MEMORY, "no memory for the records of %d ranks", world->ranks);
    status = tsr_agree(world->comm, status);
    if (status == TSR_OK)
        status = TSR_MPI(MPI_Gather(&run->mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, 0, world->comm));
    if (status == TSR_OK) status = tsr_run_find_digest(run);
    if (status == TSR_OK) *ranks = all;
    else free(all);
    return status;
}
