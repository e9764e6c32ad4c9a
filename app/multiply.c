/* One multiplication from files to file (multiply.h). Every phase ends in agreement: before the first panel moves, a failure on one rank is a failure
 * of all, reported once; while panels move, the failing rank removes the unfinished output and ends the job. */
#include "app/multiply.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/inputs.h"
#include "app/interrupt.h"
#include "app/progress.h"
#include "app/verify.h"
#include "mpi/execute.h"

/* What rank 0 finds in the files, handed to all. */
typedef struct {
    tsr_store_desc a, b, c0;
} sources;

typedef struct {
    const tsr_world *world;
    const tsr_multiply_settings *settings;
    bool transpose_a, transpose_b; /* of the operands as the engine sees them: rows of the file are rows */
    sources from;
    tsr_output_spec spec;
    tsr_output output;
    tsr_device *device;
    tsr_device_facts facts;
    int shared; /* ranks on this rank's device */
    const tsr_gemm_kernel *kernel;
    const tsr_transport_ops *transport_ops;
    tsr_problem problem;
    tsr_plan plan;
    tsr_grid grid;
    tsr_transport *transport;
    tsr_store *a, *b, *c0, *c;
    tsr_io_mode io_used;
    tsr_executor *executor;
    tsr_progress progress;
    tsr_rank_record mine;
    double started, first_read, finished; /* seconds */
    char check[256];
} job;

/* ---- what is multiplied -------------------------------------------------------------------------------------------- */

static tsr_operand operand_of(const job *j, const tsr_store_desc *desc, bool transpose) {
    return (tsr_operand){desc->rows, desc->cols, tsr_hdf5_element(desc, j->settings->io), transpose};
}

static tsr_status describe_sources(const job *j, sources *from) {
    const tsr_multiply_settings *s = j->settings;
    tsr_matrix_name a = tsr_name_as_stored(s->order, s->a), b = tsr_name_as_stored(s->order, s->b), c0 = tsr_name_as_stored(s->order, s->c0);
    /* In column order the file shows C transposed: Cᵀ = op(B)ᵀ op(A)ᵀ, and the transposes cancel those of the view. */
    bool swap = s->order == TSR_ORDER_COL;
    TSR_TRY(tsr_hdf5_describe(swap ? &b : &a, &from->a));
    TSR_TRY(tsr_hdf5_describe(swap ? &a : &b, &from->b));
    if (s->beta != 0) TSR_TRY(tsr_hdf5_describe(&c0, &from->c0));
    return TSR_OK;
}

/* The product as one sees it who counts column by column, so that a refusal shows that person's shapes. */
static tsr_status check_columns_first(const job *j) {
    const tsr_multiply_settings *s = j->settings;
    const tsr_store_desc *a = &j->from.b, *b = &j->from.a, *c0 = &j->from.c0;
    tsr_operand seen_a = {a->cols, a->rows, a->element, s->transpose_a}, seen_b = {b->cols, b->rows, b->element, s->transpose_b};
    tsr_operand seen_c0 = {c0->cols, c0->rows, c0->element, false};
    tsr_problem problem;
    return tsr_problem_make(seen_a, seen_b, s->beta != 0 ? &seen_c0 : NULL, s->alpha, s->beta, &problem);
}

static tsr_status make_problem(job *j) {
    const tsr_multiply_settings *s = j->settings;
    bool swap = s->order == TSR_ORDER_COL;
    if (swap) TSR_TRY(check_columns_first(j));
    j->transpose_a = swap ? s->transpose_b : s->transpose_a;
    j->transpose_b = swap ? s->transpose_a : s->transpose_b;
    tsr_operand c0 = operand_of(j, &j->from.c0, false);
    TSR_TRY(tsr_problem_make(operand_of(j, &j->from.a, j->transpose_a), operand_of(j, &j->from.b, j->transpose_b), s->beta != 0 ? &c0 : NULL, s->alpha, s->beta, &j->problem));
    if (s->has_type) {
        j->problem.out = s->type;
        if (s->type == TSR_F64) j->problem.type = TSR_F64; /* C in double is computed in double */
    }
    j->spec = (tsr_output_spec){.name = s->c, .rows = j->problem.m, .cols = j->problem.n, .dtype = j->problem.out, .force = s->force};
    return TSR_OK;
}

static tsr_status describe(job *j) {
    tsr_status status = j->world->rank == 0 ? describe_sources(j, &j->from) : TSR_OK;
    TSR_TRY(tsr_share(j->world->comm, status, &j->from, sizeof j->from));
    TSR_TRY(make_problem(j)); /* the same answer on every rank */
    status = j->world->rank == 0 ? tsr_output_check(&j->spec) : TSR_OK;
    if (status == TSR_OK && j->world->rank == 0 && j->settings->log) status = tsr_record_check_json(j->settings->log);
    return tsr_agree(j->world->comm, status);
}

/* ---- with what ----------------------------------------------------------------------------------------------------- */

static tsr_status smallest(MPI_Comm comm, size_t *bytes) {
    uint64_t mine = *bytes, least = 0;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine, &least, 1, MPI_UINT64_T, MPI_MIN, comm)));
    *bytes = (size_t)least;
    return TSR_OK;
}

static tsr_status host_memory_free(size_t *bytes) {
    tsr_device *host;
    tsr_device_facts facts;
    TSR_TRY(tsr_device_cpu.open(0, &host));
    tsr_status status = tsr_device_cpu.facts(host, &facts);
    tsr_device_cpu.close(host);
    if (status == TSR_OK) *bytes = facts.memory_free_bytes;
    return status;
}

static tsr_status find_resources(const job *j, tsr_resources *res) {
    const tsr_multiply_settings *s = j->settings;
    bool cuda = j->facts.kind == TSR_DEVICE_CUDA;
    size_t host_free = 0;
    TSR_TRY(host_memory_free(&host_free));
    double share = (double)host_free / j->world->local_ranks;
    bool swap = s->order == TSR_ORDER_COL; /* P cuts the rows one sees, the columns of what is stored */
    double device_share = cuda ? (double)j->facts.memory_free_bytes / j->shared : share;
    *res = (tsr_resources){
        .ranks = j->world->ranks,
        .host_memory = j->facts.host_memory,
        .device_exchange = j->transport_ops->device_memory,
        .device_limit = s->memory_bytes ? s->memory_bytes : (size_t)(device_share * s->memory_percent / 100),
        .host_limit = s->host_memory_bytes ? s->host_memory_bytes : (size_t)(share * s->host_memory_percent / 100),
        .grid = {s->grid[swap], s->grid[!swap], s->grid[2]},
        .panel = s->panel,
        .multiple = j->kernel->multiple,
        .workspace_bytes = j->kernel->workspace_bytes,
        .rates = tsr_rates_typical(cuda, j->transport_ops->device_memory, j->problem.type, (int)tsr_max(1, tsr_cpu_cores())),
    };
    return TSR_OK;
}

/* What HDF5 keeps of chunked files counts as host memory: a quarter of it at most, and nothing where the plan needs it all. */
static tsr_status plan_beside_caches(job *j, const tsr_resources *res) {
    tsr_store_desc *from[] = {&j->from.a, &j->from.b, &j->from.c0};
    size_t limit = res->host_memory && res->device_limit < res->host_limit ? res->device_limit : res->host_limit, kept = 0, chunked = 0;
    for (int i = 0; i < 3; i++) chunked += from[i]->cache_bytes > 0;
    for (int i = 0; i < 3; i++) {
        if (chunked > 0 && from[i]->cache_bytes > limit / 4 / chunked) from[i]->cache_bytes = limit / 4 / chunked;
        kept += from[i]->cache_bytes;
    }
    tsr_resources rest = *res;
    rest.host_limit = kept > 0 ? limit - kept : res->host_limit;
    tsr_status status = tsr_plan_make(&j->problem, &rest, &j->plan);
    if (status != TSR_ERR_LIMIT || kept == 0) return status;
    for (int i = 0; i < 3; i++) from[i]->cache_bytes = 0;
    return tsr_plan_make(&j->problem, res, &j->plan);
}

/* The check comes when the plan's buffers are gone: its sums may take what its reading, a quarter of the limit, leaves. */
static tsr_status check_fits(const job *j, const tsr_resources *res) {
    if (!j->settings->verify) return TSR_OK;
    size_t limit = res->host_memory && res->device_limit < res->host_limit ? res->device_limit : res->host_limit;
    double need = tsr_verify_bytes(j->problem.m, j->problem.n, j->problem.k, (int)j->settings->trials) / 0.75 + 1;
    char need_text[32], have_text[32];
    if (need <= (double)limit) return TSR_OK;
    return tsr_fail(TSR_ERR_LIMIT, "--verify needs %s of host memory a rank and has %s: use --host-memory %.0f or more (and as much --memory on the CPU), fewer --trials, or no check",
                    tsr_format_bytes(need, need_text), tsr_format_bytes((double)limit, have_text), ceil(need));
}

/* Every rank plans with the least any of them has, so that all make the same plan. */
static tsr_status make_plan(job *j) {
    tsr_resources res;
    MPI_Comm comm = j->world->comm;
    TSR_TRY(tsr_agree(comm, find_resources(j, &res)));
    TSR_TRY(smallest(comm, &res.device_limit));
    TSR_TRY(smallest(comm, &res.host_limit));
    TSR_TRY(tsr_broadcast(comm, &res.rates, sizeof res.rates));
    TSR_TRY(tsr_agree(comm, check_fits(j, &res)));
    return tsr_agree(comm, plan_beside_caches(j, &res));
}

/* One plan holds for all ranks, so all take one kernel: of the fastest ones for GPUs that differ, the slowest. */
static tsr_status choose_kernel(job *j, tsr_status status) {
    MPI_Comm comm = j->world->comm;
    struct {
        int speed, rank;
    } mine = {0, j->world->rank}, slowest = {0, 0};
    char name[64] = "";
    if (status == TSR_OK) status = tsr_gemm_find(j->settings->kernel, &j->facts, j->problem.type, &j->kernel);
    TSR_TRY(tsr_agree(comm, status));
    mine.speed = (int)j->kernel->speed_rank;
    snprintf(name, sizeof name, "%s", j->kernel->name);
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine, &slowest, 1, MPI_2INT, MPI_MINLOC, comm)));
    TSR_TRY(TSR_MPI(MPI_Bcast(name, sizeof name, MPI_CHAR, slowest.rank, comm)));
    return tsr_agree(comm, tsr_gemm_find(name, &j->facts, j->problem.type, &j->kernel));
}

/* Ranks that share a GPU take turns on it: that works, and is rarely what was meant. */
static tsr_status warn_of_sharing(const job *j) {
    int mine = j->facts.kind == TSR_DEVICE_CUDA ? j->shared : 1, most = 1;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, j->world->comm)));
    if (most > 1 && j->world->rank == 0)
        fprintf(stderr, "tessera: warning: up to %d ranks share a GPU and its memory; one rank a GPU is faster\n", most);
    return TSR_OK;
}

static tsr_status choose(job *j) {
    const tsr_multiply_settings *s = j->settings;
    TSR_TRY(tsr_device_choose(j->world, s->device, &j->device, &j->shared));
    tsr_status status = j->device->ops->facts(j->device, &j->facts);
    TSR_TRY(choose_kernel(j, status));
    TSR_TRY(warn_of_sharing(j));
    TSR_TRY(tsr_transport_choose(j->world, s->transport, &j->facts, j->shared, &j->transport_ops));
    return make_plan(j);
}

static tsr_status show_plan(const job *j) {
    if (j->world->rank != 0) return TSR_OK;
    if (j->settings->order == TSR_ORDER_COL) printf("order          col: planned as the files store it, C' = op(B)' op(A)': the first factor below is B\n");
    printf("kernel         %s (%s) on %s, transport %s\n", j->kernel->name, j->kernel->what, j->facts.name, j->transport_ops->name);
    return tsr_plan_print(&j->plan, stdout);
}

/* ---- getting ready -------------------------------------------------------------------------------------------------- */

static tsr_status open_stores(job *j) {
    tsr_io_mode io = j->settings->io;
    const void *comm = &j->grid.ranks;
    /* Opening through MPI-IO is collective: a rank that fails must not leave the others in the next one. */
    if (j->problem.k > 0) {
        TSR_TRY(tsr_agree(j->grid.ranks, tsr_hdf5_open(&j->from.a, io, comm, &j->io_used, &j->a)));
        TSR_TRY(tsr_agree(j->grid.ranks, tsr_hdf5_open(&j->from.b, io, comm, NULL, &j->b)));
    }
    if (j->problem.add_c0) TSR_TRY(tsr_agree(j->grid.ranks, tsr_hdf5_open(&j->from.c0, io, comm, NULL, &j->c0)));
    return tsr_output_open(&j->output, io, comm, &j->c);
}

static int io_threads(const job *j) {
    if (j->settings->io_threads > 0) return j->settings->io_threads;
    return (int)tsr_max(1, tsr_min(8, tsr_cpu_cores() / j->world->local_ranks / 2));
}

static void show_progress(void *context, double done) {
    tsr_progress *progress = context;
    tsr_progress_update(progress, done * progress->total);
}

static tsr_status open_executor(job *j) {
    tsr_execution x = {.plan = &j->plan, .grid = &j->grid, .device = j->device, .kernel = j->kernel, .transport = j->transport,
                       .a = j->a, .b = j->b, .c0 = j->c0, .c = j->c, .io_threads = io_threads(j),
                       .progress = show_progress, .progress_context = &j->progress};
    return tsr_executor_open(&x, &j->executor);
}

static tsr_status prepare(job *j) {
    MPI_Comm comm = j->world->comm;
    if (j->settings->io == TSR_IO_MPIO && !j->world->threads)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "--io mpio needs an MPI library with MPI_THREAD_MULTIPLE: use --io direct");
    tsr_status status = j->world->rank == 0 ? tsr_output_create(&j->spec, &j->output) : TSR_OK;
    TSR_TRY(tsr_share(comm, status, &j->output, sizeof j->output));
    tsr_interrupt_guard(&j->output);
    TSR_TRY(tsr_agree(comm, tsr_grid_open(j->world, j->plan.p, j->plan.q, j->plan.r, &j->grid)));
    status = j->grid.active ? j->transport_ops->open(&j->grid, j->device, &j->transport) : TSR_OK;
    TSR_TRY(tsr_agree(comm, status));
    TSR_TRY(tsr_agree(comm, j->grid.active ? open_stores(j) : TSR_OK));
    double flops = 2.0 * (double)j->problem.m * (double)j->problem.n * (double)j->problem.k;
    tsr_progress_open(&j->progress, j->world->rank == 0 ? j->settings->progress : TSR_PROGRESS_OFF, "multiply", flops, "flop", stderr);
    return tsr_agree(comm, j->grid.active ? open_executor(j) : TSR_OK);
}

/* ---- running -------------------------------------------------------------------------------------------------------- */

/* Other ranks may be waiting for this one inside communication. */
static _Noreturn void give_up(job *j, tsr_status status) {
    tsr_output_discard(&j->output);
    tsr_abort(j->world, status);
}

static tsr_status run(job *j) {
    tsr_status status = TSR_OK;
    j->first_read = tsr_now_seconds();
    if (j->grid.active) {
        status = tsr_executor_run(j->executor, &j->mine);
        if (status != TSR_OK && j->plan.p * j->plan.q * j->plan.r > 1) give_up(j, status);
        if (status == TSR_OK) {
            double start = tsr_now_seconds();
            status = j->c->ops->sync(j->c);
            j->mine.lane_seconds[TSR_LANE_WRITE] += tsr_now_seconds() - start;
        }
    }
    status = tsr_agree(j->world->comm, status);
    j->finished = tsr_now_seconds();
    tsr_progress_close(&j->progress);
    return status;
}

static tsr_status check(job *j) {
    snprintf(j->check, sizeof j->check, "not run");
    if (!j->settings->verify) return TSR_OK;
    MPI_Comm comm = j->world->comm;
    /* Ranks the grid leaves idle help to check, and --io mpio opened files for the active ones only: open all anew. */
    tsr_store *a = NULL, *b = NULL, *c0 = NULL, *c = NULL;
    tsr_status status = tsr_hdf5_open(&j->from.a, TSR_IO_AUTO, NULL, NULL, &a);
    if (status == TSR_OK) status = tsr_hdf5_open(&j->from.b, TSR_IO_AUTO, NULL, NULL, &b);
    if (status == TSR_OK && j->problem.add_c0) status = tsr_hdf5_open(&j->from.c0, TSR_IO_AUTO, NULL, NULL, &c0);
    if (status == TSR_OK) status = tsr_output_open(&j->output, TSR_IO_AUTO, NULL, &c);
    status = tsr_agree(comm, status);
    tsr_verify_result result = {0};
    if (status == TSR_OK) {
        tsr_verify_args args = {.a = a, .b = b, .c = c, .c0 = c0, .transpose_a = j->transpose_a, .transpose_b = j->transpose_b,
                                .alpha = j->settings->alpha, .beta = j->settings->beta, .type = j->problem.type, .trials = (int)j->settings->trials,
                                .seed = (uint64_t)time(NULL), .buffer_bytes = tsr_min((int64_t)j->plan.resources.host_limit / 4 + 1, 256 << 20)};
        status = tsr_broadcast(comm, &args.seed, sizeof args.seed);
        if (status == TSR_OK) status = tsr_verify_product(j->world, &args, &result);
    }
    tsr_store_close(a), tsr_store_close(b), tsr_store_close(c0), tsr_store_close(c);
    TSR_TRY(status);
    tsr_verify_format(&result, j->check, sizeof j->check);
    if (result.passed) return TSR_OK;
    return tsr_fail(TSR_ERR_CHECK, "%s; nothing was written under the output's name", j->check);
}

/* ---- the record ----------------------------------------------------------------------------------------------------- */

static void describe_source(const tsr_matrix_name *name, int64_t rows, int64_t cols, const char *type, tsr_source_record *source) {
    if (name->sliced)
        snprintf(source->name, sizeof source->name, "%s:%s[%lld:%lld,%lld:%lld]", name->file, name->path, (long long)name->row0, (long long)name->row1,
                 (long long)name->col0, (long long)name->col1);
    else
        snprintf(source->name, sizeof source->name, "%s:%s", name->file, name->path);
    source->rows = rows, source->cols = cols;
    snprintf(source->type, sizeof source->type, "%s", type);
}

static void describe_versions(const job *j, char *text, size_t chars) {
    char hdf5[64], transports[256];
    snprintf(text, chars, "tessera %s, %s, %s", TSR_VERSION, tsr_hdf5_version(hdf5, sizeof hdf5), tsr_transport_versions(transports, sizeof transports));
    size_t at = strlen(text);
    if (j->facts.kind == TSR_DEVICE_CUDA && at < chars)
        snprintf(text + at, chars - at, ", CUDA %d.%d (driver %d.%d)", j->facts.runtime_version / 1000, j->facts.runtime_version % 1000 / 10,
                 j->facts.driver_version / 1000, j->facts.driver_version % 1000 / 10);
}

static void fill_run_record(const job *j, const tsr_rank_record *ranks, tsr_run_record *record) {
    const tsr_multiply_settings *s = j->settings;
    const tsr_problem *x = &j->problem;
    bool swap = s->order == TSR_ORDER_COL;
    const tsr_store_desc *a = swap ? &j->from.b : &j->from.a, *b = swap ? &j->from.a : &j->from.b, *c0 = &j->from.c0;
    int64_t k = x->a.transpose ? x->a.rows : x->a.cols;
    *record = (tsr_run_record){
        .command = s->command, .transpose_a = s->transpose_a, .transpose_b = s->transpose_b, .alpha = s->alpha, .beta = s->beta,
        .m = swap ? x->n : x->m, .n = swap ? x->m : x->n, .k = k, .ranks = j->world->ranks,
        .grid = {swap ? j->plan.q : j->plan.p, swap ? j->plan.p : j->plan.q, j->plan.r},
        .super_blocks = {swap ? j->plan.blocks_n : j->plan.blocks_m, swap ? j->plan.blocks_m : j->plan.blocks_n}, .panel = j->plan.panel, .seconds = j->finished - j->first_read,
        .setup_seconds = j->first_read - j->started, .rank_records = ranks};
    time_t now = time(NULL);
    struct tm utc;
    strftime(record->started, sizeof record->started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    describe_source(&a->name, a->rows, a->cols, a->type_name, &record->a);
    describe_source(&b->name, b->rows, b->cols, b->type_name, &record->b);
    if (x->add_c0) describe_source(&c0->name, c0->rows, c0->cols, c0->type_name, &record->c0);
    tsr_matrix_name target = j->output.desc.name;
    memcpy(target.file, j->output.target, sizeof target.file);
    describe_source(&target, x->m, x->n, tsr_dtype_name(x->out), &record->c);
    snprintf(record->kernel, sizeof record->kernel, "%s", j->kernel->name);
    snprintf(record->type, sizeof record->type, "%s", tsr_dtype_name(x->type));
    snprintf(record->transport, sizeof record->transport, "%s", j->transport_ops->name);
    snprintf(record->io, sizeof record->io, "%s", tsr_io_mode_name(x->k > 0 ? j->io_used : s->io));
    describe_versions(j, record->versions, sizeof record->versions);
    snprintf(record->check, sizeof record->check, "%s", j->check);
    record->gflops = 2.0 * (double)x->m * (double)x->n * (double)k / record->seconds / 1e9;
}

static void fill_rank_record(job *j) {
    tsr_rank_record *r = &j->mine;
    bool active = j->grid.active, swap = j->settings->order == TSR_ORDER_COL;
    r->rank = j->world->rank;
    r->row = !active ? -1 : swap ? j->grid.col : j->grid.row, r->col = !active ? -1 : swap ? j->grid.row : j->grid.col, r->depth = active ? j->grid.depth : -1;
    snprintf(r->host, sizeof r->host, "%s", j->world->host);
    if (j->facts.kind == TSR_DEVICE_CUDA)
        snprintf(r->device, sizeof r->device, "%.48s #%d (%s)", j->facts.name, j->facts.ordinal, j->facts.bus_id);
    else
        snprintf(r->device, sizeof r->device, "%.95s", j->facts.name);
}

/* Gathers the records, writes them beside C and gives C its name. Rank 0 does the work; all learn how it went. */
static tsr_status publish(job *j) {
    const tsr_world *world = j->world;
    tsr_rank_record *ranks = NULL;
    tsr_status status = TSR_OK;
    fill_rank_record(j);
    if (world->rank == 0) {
        ranks = calloc((size_t)world->ranks, sizeof *ranks);
        if (!ranks) status = tsr_fail(TSR_ERR_MEMORY, "no memory for the records of %d ranks", world->ranks);
    }
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Gather(&j->mine, sizeof j->mine, MPI_BYTE, ranks, sizeof j->mine, MPI_BYTE, 0, world->comm)));
    if (world->rank == 0) {
        tsr_run_record record;
        fill_run_record(j, ranks, &record);
        status = tsr_output_publish(&j->output, &record, j->settings->command);
        if (status == TSR_OK) tsr_interrupt_release();
        if (status == TSR_OK) tsr_record_print(&record, stdout);
        if (status == TSR_OK && j->settings->log) status = tsr_record_save_json(&record, j->settings->log);
    }
    status = tsr_agree(world->comm, status);
done:
    free(ranks);
    return status;
}

/* ---- the job --------------------------------------------------------------------------------------------------------- */

static void close_stores(job *j) {
    tsr_store_close(j->a), tsr_store_close(j->b), tsr_store_close(j->c0), tsr_store_close(j->c);
    j->a = j->b = j->c0 = j->c = NULL;
}

static tsr_status produce(job *j) {
    TSR_TRY(prepare(j));
    TSR_TRY(run(j));
    tsr_executor_close(j->executor);
    j->executor = NULL;
    close_stores(j);
    TSR_TRY(check(j));
    return publish(j);
}

tsr_status tsr_multiply(const tsr_world *world, const tsr_multiply_settings *settings) {
    job j = {.world = world, .settings = settings, .started = tsr_now_seconds()};
    TSR_TRY(describe(&j));
    TSR_TRY(choose(&j));
    if (settings->dry_run) {
        tsr_status shown = show_plan(&j);
        j.device->ops->close(j.device);
        return shown;
    }
    tsr_status status = produce(&j);
    if (status != TSR_OK) {
        /* All ranks agreed: only what is this rank's own is released, collective things go with the process. */
        if (world->rank == 0) tsr_output_discard(&j.output);
        return status;
    }
    if (j.grid.active) j.transport_ops->close(j.transport);
    tsr_grid_close(&j.grid);
    j.device->ops->close(j.device);
    return TSR_OK;
}
