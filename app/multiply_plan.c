/* What a multiplication multiplies, and with what (multiply_job.h): rank 0 reads the files, every rank makes the same problem and, from the least any
 * rank has, the same plan. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/inputs.h"
#include "app/multiply_job.h"
#include "app/place_chunks.h"
#include "app/shapes.h"
#include "app/verify.h"
#include "io/text_file.h"
#include "io/trace_file.h"
#include "kernels/host_memory.h"

/* ---- what is multiplied -------------------------------------------------------------------------------------------- */

static tsr_operand operand_of(const tsr_job *j, const tsr_store_desc *desc, bool transpose) {
    return (tsr_operand){desc->rows, desc->cols, tsr_hdf5_element(desc, j->settings->io), transpose, TSR_ROAD_HOST};
}

static tsr_status describe_sources(const tsr_job *j, tsr_job_sources *from) {
    const tsr_multiply_settings *s = j->settings;
    tsr_matrix_name a = tsr_name_as_stored(s->order, s->a), b = tsr_name_as_stored(s->order, s->b), c0 = tsr_name_as_stored(s->order, s->c0);
    /* In column order the file shows C transposed: Cᵀ = op(B)ᵀ op(A)ᵀ, and the transposes cancel those of the view. */
    bool swap = s->order == TSR_ORDER_COL;
    TSR_TRY(tsr_hdf5_describe(swap ? &b : &a, &from->a));
    TSR_TRY(tsr_hdf5_describe(swap ? &a : &b, &from->b));
    if (s->beta != 0) TSR_TRY(tsr_hdf5_describe(&c0, &from->c0));
    return TSR_OK;
}

/* What is read keeps its place: the output may only take that of C0. */
static void name_sources(tsr_job *j) {
    const tsr_multiply_settings *s = j->settings;
    bool swap = s->order == TSR_ORDER_COL;
    tsr_output_spec *spec = &j->spec;
    spec->sources[spec->source_count++] =
        (tsr_output_source){"A", &s->a, swap ? &j->from.b.name : &j->from.a.name, false, false};
    spec->sources[spec->source_count++] =
        (tsr_output_source){"B", &s->b, swap ? &j->from.a.name : &j->from.b.name, false, false};
    const tsr_store_desc *c0 = &j->from.c0;
    const bool part = c0->rows < c0->dataset_rows || c0->cols < c0->dataset_cols;
    if (s->beta != 0) spec->sources[spec->source_count++] = (tsr_output_source){"C0", &s->c0, &c0->name, true, part};
}

/* A kernel asked for by name may make fp32 alone, on whatever device. */
static bool makes_f32_alone(const char *name) {
    bool makes[TSR_DTYPE_COUNT] = {false};
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++) makes[kernels[i]->type] |= strcmp(kernels[i]->name, name) == 0;
    return makes[TSR_F32] && !makes[TSR_F64];
}

/* Sums of integers make C f64 where nobody asked for a type, or for something that f64 does not give. */
static void choose_types(tsr_job *j) {
    const tsr_multiply_settings *s = j->settings;
    char why[128];
    if (s->has_type)
        tsr_problem_store_as(&j->problem, s->type);
    else if (tsr_problem_widened(&j->problem, why) && (s->accuracy != TSR_ACCURACY_IEEE || makes_f32_alone(s->kernel)))
        tsr_problem_store_as(&j->problem, TSR_F32);
}

void tsr_job_say_types(const tsr_job *j) {
    char why[512];
    const tsr_multiply_settings *s = j->settings;
    if (j->world->rank != 0) return;
    if (tsr_problem_inexact(&j->problem, why)) tsr_warn(j->world->warnings, "%s", why);
    if (s->has_type || (s->quiet && !s->dry_run) || !tsr_problem_widened(&j->problem, why)) return;
    printf("C is f64: %s\n", why);
    fflush(stdout); /* what takes long comes after */
}

static tsr_status make_problem(tsr_job *j) {
    const tsr_multiply_settings *s = j->settings;
    bool swap = s->order == TSR_ORDER_COL;
    TSR_TRY(tsr_shapes_check(s->order, swap ? &j->from.b : &j->from.a, s->transpose_a, swap ? &j->from.a : &j->from.b,
                             s->transpose_b, NULL, s->beta != 0 ? &j->from.c0 : NULL));
    j->transpose_a = swap ? s->transpose_b : s->transpose_a;
    j->transpose_b = swap ? s->transpose_a : s->transpose_b;
    tsr_operand c0 = operand_of(j, &j->from.c0, false);
    TSR_TRY(tsr_problem_make(operand_of(j, &j->from.a, j->transpose_a), operand_of(j, &j->from.b, j->transpose_b), s->beta != 0 ? &c0 : NULL, s->alpha, s->beta, &j->problem));
    choose_types(j);
    j->spec = (tsr_output_spec){.name = s->c, .rows = j->problem.m, .cols = j->problem.n, .dtype = j->problem.out, .force = s->force,
                                .chunk_rows = swap ? s->chunk_cols : s->chunk_rows, .chunk_cols = swap ? s->chunk_rows : s->chunk_cols,
                                .shuffle = s->shuffle, .gzip = s->gzip, .gzip_level = s->gzip_level};
    name_sources(j);
    tsr_output_choose_chunks(&j->spec);
    j->problem.a_on_disk = j->from.a.on_disk, j->problem.b_on_disk = j->from.b.on_disk, j->problem.c0_on_disk = j->from.c0.on_disk;
    j->problem.unit_m = tsr_max(1, j->spec.chunk_rows), j->problem.unit_n = tsr_max(1, j->spec.chunk_cols); /* a chunk is one rank's */
    return TSR_OK;
}

tsr_status tsr_job_describe(tsr_job *j) {
    tsr_status status = j->world->rank == 0 ? describe_sources(j, &j->from) : TSR_OK;
    TSR_TRY(tsr_share(j->world->comm, status, &j->from, sizeof j->from));
    TSR_TRY(make_problem(j)); /* the same answer on every rank */
    bool on_disk = false;
    status = j->world->rank == 0 ? tsr_output_check(&j->spec, &on_disk) : TSR_OK;
    if (status == TSR_OK && j->world->rank == 0 && j->settings->log && j->settings->dry_run)
        status = tsr_text_file_check("log", j->settings->log); /* any other run has written to it */
    if (status == TSR_OK && j->world->rank == 0 && j->settings->trace) status = tsr_trace_file_check(j->settings->trace);
    TSR_TRY(tsr_share(j->world->comm, status, &on_disk, sizeof on_disk));
    j->problem.c_on_disk = on_disk && j->spec.chunk_rows == 0; /* chunks are written whole */
    return TSR_OK;
}

/* ---- with what ----------------------------------------------------------------------------------------------------- */

static tsr_status smallest(MPI_Comm comm, size_t *bytes) {
    uint64_t mine = *bytes, least = 0;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine, &least, 1, MPI_UINT64_T, MPI_MIN, comm)));
    *bytes = (size_t)least;
    return TSR_OK;
}

/* A limit that the node cannot keep for each of its ranks is none. `bytes` 0: none was given. */
static tsr_status limit_fits(const char *option, size_t bytes, int ranks, const tsr_host_memory *host) {
    const double need = (double)bytes * ranks, have = (double)host->total;
    char need_text[32], have_text[32], of[64] = "";
    if (bytes == 0 || need <= have) return TSR_OK;
    if (ranks > 1) snprintf(of, sizeof of, " for each of %d ranks of a node", ranks);
    tsr_format_bytes(need, need_text), tsr_format_bytes(have, have_text);
    return tsr_fail(TSR_ERR_LIMIT,
                    "%s %zu%s: need %s, have %s (%s): use %s %.0f or less, or a share of what is free such as 80%%",
                    option, bytes, of, need_text, have_text, host->total_by, option, floor(have / ranks));
}

static tsr_status find_resources(const tsr_job *j, tsr_resources *res) {
    const tsr_multiply_settings *s = j->settings;
    bool cuda = j->facts.kind == TSR_DEVICE_CUDA;
    tsr_host_memory host;
    tsr_host_memory_find("", &host);
    TSR_TRY(limit_fits("--host-memory", s->host_memory_bytes, j->world->local_ranks, &host));
    if (j->facts.host_memory) TSR_TRY(limit_fits("--memory", s->memory_bytes, j->world->local_ranks, &host));
    double share = (double)host.available / j->world->local_ranks;
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
        .rates = tsr_rates_typical(cuda, j->transport_ops->device_memory, j->problem.type, j->threads),
    };
    const double measured = tsr_gemm_speed(j->kernel, &j->facts, j->problem.m, j->problem.n, j->problem.k);
    if (measured > 0) res->rates.lane[TSR_LANE_MULTIPLY] = measured;
    return TSR_OK;
}

/* Chunks of C that a rank encodes at once, by the settings alone: every rank plans with it, and nodes may differ in
 * their cores. */
static int planned_encoders(const tsr_multiply_settings *s) {
    const int wanted = s->io_threads > 0 ? s->io_threads : TSR_ENCODERS_USUAL;
    return s->threads > 0 ? (int)tsr_min(wanted, s->threads) : wanted;
}

/* Memory to encode C's chunks: an eighth of the limit at most, and what one chunk takes in any case. */
static size_t encode_bytes(const tsr_job *j, size_t limit) {
    const int encoders = planned_encoders(j->settings);
    int64_t most = tsr_min((int64_t)tsr_output_encode_bytes(&j->spec, encoders), (int64_t)(limit / 8));
    return (size_t)tsr_max((int64_t)tsr_output_encode_bytes(&j->spec, 1), most);
}

/* With no more memory than the plan leaves: no caches, one encoder. */
static tsr_status plan_without_caches(tsr_job *j, const tsr_resources *res) {
    tsr_resources rest = *res;
    char why[600], need[32];
    size_t limit = tsr_host_limit(res), one = tsr_output_encode_bytes(&j->spec, 1);
    j->from.a.cache_bytes = j->from.b.cache_bytes = j->from.c0.cache_bytes = 0;
    j->spec.encode_bytes = one;
    if (one == 0) return tsr_plan_make(&j->problem, res, &j->plan);
    rest.host_limit = limit > one ? limit - one : 0;
    tsr_status status = tsr_plan_make(&j->problem, &rest, &j->plan);
    if (status != TSR_ERR_LIMIT) return status;
    snprintf(why, sizeof why, "%s", tsr_message());
    return tsr_fail(status, "%s, and %s (%zu bytes) more of host memory for a chunk of C on its way, or a smaller --chunk", why, tsr_format_bytes((double)one, need), one);
}

/* What stores of chunked files keep, decode and encode counts as host memory: inputs a quarter of it at most, and nothing where the plan needs it all. */
static tsr_status plan_beside_caches(tsr_job *j, const tsr_resources *res) {
    tsr_store_desc *from[] = {&j->from.a, &j->from.b, &j->from.c0};
    size_t limit = tsr_host_limit(res), kept = j->spec.encode_bytes = encode_bytes(j, limit), chunked = 0;
    for (int i = 0; i < 3; i++) chunked += from[i]->cache_bytes > 0;
    for (int i = 0; i < 3; i++) {
        if (chunked > 0 && from[i]->cache_bytes > limit / 4 / chunked) from[i]->cache_bytes = limit / 4 / chunked;
        kept += from[i]->cache_bytes;
    }
    if (kept >= limit) return plan_without_caches(j, res);
    tsr_resources rest = *res;
    rest.host_limit = kept > 0 ? limit - kept : res->host_limit;
    tsr_status status = tsr_plan_make(&j->problem, &rest, &j->plan);
    return status == TSR_ERR_LIMIT && kept > 0 ? plan_without_caches(j, res) : status;
}

/* Memory that placing C's chunks takes, 0 for a contiguous C. */
static double place_bytes(const tsr_job *j) {
    int64_t chunks = tsr_spec_chunks(&j->spec);
    return chunks > 0 ? tsr_place_bytes(chunks, (double)j->spec.chunk_rows * (double)j->spec.chunk_cols * (double)tsr_dtype_bytes(j->spec.dtype)) : 0;
}

/* Chunks are placed when the plan's buffers and the inputs are gone: the list of them must fit what encoding (encode_bytes) leaves. */
static tsr_status placing_fits(const tsr_job *j, const tsr_resources *res) {
    int64_t chunks = tsr_spec_chunks(&j->spec);
    double limit = (double)tsr_host_limit(res), place = place_bytes(j), need = fmax(place * 8 / 7, place + (double)tsr_output_encode_bytes(&j->spec, 1));
    char need_text[32], have_text[32];
    if (need <= limit) return TSR_OK;
    return tsr_fail(TSR_ERR_LIMIT,
                    "%lld chunk%s of C need%s %s of host memory a rank to be put in order, and the limit is %s: use "
                    "%s chunks, or --host-memory %.0f or more (and as much --memory on the CPU)",
                    (long long)chunks, chunks == 1 ? "" : "s", chunks == 1 ? "s" : "",
                    tsr_format_bytes(need, need_text), tsr_format_bytes(limit, have_text),
                    chunks == 1 ? "smaller" : "larger", ceil(need));
}

/* Memory of the check's sums. */
static double check_bytes(const tsr_job *j) { return tsr_verify_bytes(j->problem.m, j->problem.n, j->problem.k, (int)j->settings->trials); }

/* The check comes when the plan's buffers are gone: its sums may take what its reading, a quarter of the limit, leaves. */
static tsr_status check_fits(const tsr_job *j, const tsr_resources *res) {
    if (!j->settings->verify) return TSR_OK;
    size_t limit = tsr_host_limit(res);
    double need = check_bytes(j) / 0.75 + 1;
    char need_text[32], have_text[32];
    if (need <= (double)limit) return TSR_OK;
    return tsr_fail(TSR_ERR_LIMIT, "--verify needs %s of host memory a rank and has %s: use --host-memory %.0f or more (and as much --memory on the CPU), fewer --trials, or no check",
                    tsr_format_bytes(need, need_text), tsr_format_bytes((double)limit, have_text), ceil(need));
}

/* Memory of the trace that the plan's busiest rank needs. Collective. */
static tsr_status trace_bytes(const tsr_job *j, double *bytes) {
    tsr_forecast mine;
    double own = 0;
    tsr_status status = tsr_plan_forecast(&j->plan, j->world->rank, &mine);
    if (status == TSR_OK) own = tsr_trace_bytes(mine.steps);
    TSR_TRY(tsr_agree(j->world->comm, status));
    return TSR_MPI(MPI_Allreduce(&own, bytes, 1, MPI_DOUBLE, MPI_MAX, j->world->comm));
}

/* Whether the limit holds the trace with the plan and what HDF5 keeps, and later with placing, and with the check, which reads into a quarter of the limit. */
static bool trace_fits(const tsr_job *j, double bytes, double limit) {
    double plan = j->plan.host_bytes + (double)j->from.a.cache_bytes + (double)j->from.b.cache_bytes + (double)j->from.c0.cache_bytes +
                  (double)j->spec.encode_bytes;
    double check = j->settings->verify ? limit / 4 + check_bytes(j) : 0;
    double placing = place_bytes(j) + (double)j->spec.encode_bytes;
    return plan + bytes <= limit && placing + bytes <= limit && check + bytes <= limit;
}

/* A trace grows with the steps, and less memory for matrices makes more of them: planned again with twice of what the last trace would have taken. */
static tsr_status plan_beside_trace(tsr_job *j, const tsr_resources *res) {
    size_t limit = tsr_host_limit(res);
    double need = 0;
    for (int tries = 0; tries < 8 && 2 * need < (double)limit; tries++) {
        tsr_resources rest = *res;
        rest.host_limit = limit - (size_t)(2 * need);
        tsr_status status = tsr_agree(j->world->comm, plan_beside_caches(j, &rest));
        if (status == TSR_ERR_LIMIT && tries > 0) break;
        TSR_TRY(status);
        TSR_TRY(trace_bytes(j, &need));
        j->trace_bytes = need;
        if (trace_fits(j, need, (double)limit)) return TSR_OK;
    }
    char need_text[32], have_text[32];
    return tsr_fail(TSR_ERR_LIMIT, "--trace needs %s of host memory a rank beside the matrices, and the limit is %s: use a larger --host-memory (and --memory on the CPU), a larger --panel, or no trace",
                    tsr_format_bytes(need, need_text), tsr_format_bytes((double)limit, have_text));
}

/* Every rank plans with the least any of them has, so that all make the same plan. */
static tsr_status make_plan(tsr_job *j) {
    tsr_resources res;
    MPI_Comm comm = j->world->comm;
    TSR_TRY(tsr_agree(comm, find_resources(j, &res)));
    TSR_TRY(smallest(comm, &res.device_limit));
    TSR_TRY(smallest(comm, &res.host_limit));
    TSR_TRY(tsr_broadcast(comm, &res.rates, sizeof res.rates));
    TSR_TRY(tsr_agree(comm, check_fits(j, &res)));
    TSR_TRY(tsr_agree(comm, placing_fits(j, &res)));
    if (j->settings->trace) return plan_beside_trace(j, &res);
    return tsr_agree(comm, plan_beside_caches(j, &res));
}

/* A rank's part of a length: whether it is a multiple of 8 is the length's own affair. */
static int64_t part_of(int64_t length, double share) {
    int64_t part = (int64_t)ceil((double)length / share);
    return length % 8 == 0 ? tsr_round_up(part, 8) : part;
}

/* One plan holds for all ranks, so all take one kernel: of the fastest ones for GPUs that differ, the slowest. */
static tsr_status choose_kernel(tsr_job *j, tsr_status status) {
    MPI_Comm comm = j->world->comm;
    const tsr_problem *x = &j->problem;
    const double share = cbrt((double)j->world->ranks), flops = 2.0 * (double)x->m * (double)x->n * (double)x->k;
    const tsr_gemm_request request = {
        .a = x->a.element.dtype,
        .b = x->b.element.dtype,
        .type = x->type,
        .accuracy = j->settings->accuracy,
        .m = part_of(x->m, share),
        .n = part_of(x->n, share),
        .k = part_of(x->k, share),
        .flops = fmax(1, flops / j->world->ranks)}; /* none, where k or alpha is 0, are few: 0 would stand for many */
    struct {
        int speed, rank;
    } mine = {0, j->world->rank}, slowest = {0, 0};
    struct {
        char name[64];
        tsr_dtype input;
    } choice = {"", TSR_F32};
    if (status == TSR_OK) status = tsr_gemm_choose(j->settings->kernel, &j->facts, &request, &j->kernel);
    TSR_TRY(tsr_agree(comm, status));
    mine.speed = j->kernel->speed_rank;
    snprintf(choice.name, sizeof choice.name, "%s", j->kernel->name);
    choice.input = j->kernel->input;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine, &slowest, 1, MPI_2INT, MPI_MINLOC, comm)));
    TSR_TRY(TSR_MPI(MPI_Bcast(&choice, sizeof choice, MPI_BYTE, slowest.rank, comm)));
    j->problem.input = choice.input;
    return tsr_agree(comm, tsr_gemm_find(choice.name, &j->facts, choice.input, x->type, &j->kernel));
}

/* Ranks that share a GPU take turns on it: that works, and is rarely what was meant. */
static tsr_status warn_of_sharing(const tsr_job *j) {
    int mine = j->facts.kind == TSR_DEVICE_CUDA ? j->shared : 1, most = 1;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, j->world->comm)));
    if (most > 1)
        tsr_warn(j->world->warnings, "up to %d ranks share a GPU and its memory; one rank a GPU is faster", most);
    return TSR_OK;
}

/* How the plan reads a file whose disk may be slower than memory. Panels along stored columns take a piece of every row, too short for a
 * disk, so the page cache gets what follows, too; a file that is read many times stays there. Either takes a quarter of what is free at most. */
static void hint_reading(tsr_store_desc *desc, bool along_columns, int64_t reads, int64_t host_free) {
    const int64_t many = 4, window = 256 << 10, page = 4096;
    int64_t rows = tsr_max(1, desc->rows), bytes = rows * desc->cols * (int64_t)tsr_dtype_bytes(desc->element.dtype);
    desc->keep_cached = reads >= many && bytes <= host_free / 4;
    if (along_columns) desc->row_ahead_bytes = tsr_min(window, host_free / 4 / rows / page * page);
}

static void hint_readings(tsr_job *j) {
    tsr_host_memory host;
    tsr_host_memory_find("", &host);
    const double taken = j->plan.host_bytes * j->world->local_ranks; /* by the plans of this node's ranks */
    const int64_t left = (int64_t)fmax(0, (double)host.available - taken);
    hint_reading(&j->from.a, !j->transpose_a, tsr_plan_reads_a(&j->plan), left);
    hint_reading(&j->from.b, j->transpose_b, tsr_plan_reads_b(&j->plan), left);
}

tsr_status tsr_job_choose(tsr_job *j, tsr_device_opening *opening) {
    const tsr_multiply_settings *s = j->settings;
    opening->threads = s->threads;
    TSR_TRY(tsr_device_end(j->world, opening, &j->device, &j->shared));
    j->threads = opening->threads;
    tsr_status status = j->device->ops->facts(j->device, &j->facts);
    TSR_TRY(choose_kernel(j, status));
    TSR_TRY(warn_of_sharing(j));
    tsr_job_mark(j, TSR_STARTUP_DEVICE);
    TSR_TRY(tsr_transport_choose(j->world, s->transport, &j->facts, j->shared, &j->transport_ops));
    tsr_job_mark(j, TSR_STARTUP_TRANSPORT);
    TSR_TRY(make_plan(j));
    hint_readings(j);
    tsr_job_mark(j, TSR_STARTUP_PLAN);
    return TSR_OK;
}
