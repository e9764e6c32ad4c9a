/* The plan of a run within the memory of its job (run_state.h). Every rank plans with the least that any has. */
#include <math.h>
#include <stdio.h>

#include "app/library/place_chunks.h"
#include "app/library/run_state.h"
#include "app/verify/verify.h"
#include "io/pieces/pieces.h"
#include "io/stores.h"
#include "kernels/check/check.h"
#include "kernels/device/host_memory.h"
#include "mpi/schedule/forecast.h"

static tsr_status smallest_limits(MPI_Comm comm, tsr_resources *res) {
    uint64_t least[2] = {res->device_limit, res->host_limit};
    TSR_TRY(tsr_reduce_all(comm, least, 2, MPI_UINT64_T, MPI_MIN));
    res->device_limit = (size_t)least[0];
    res->host_limit = (size_t)least[1];
    return TSR_OK;
}

/* A limit that the node cannot keep for each of its ranks is none. `bytes` 0: none was given. */
static tsr_status limit_fits(const char *option, size_t bytes, int ranks, const tsr_host_memory *host) {
    const double need = (double)bytes * ranks, have = (double)host->total;
    char need_text[32], have_text[32], of[64] = "";
    if (bytes == 0 || need <= have) return TSR_OK;
    if (ranks > 1) snprintf(of, sizeof of, " for each of %d ranks of a node", ranks);
    tsr_format_bytes(need, need_text);
    tsr_format_bytes(have, have_text);
    return tsr_fail(TSR_ERR_LIMIT,
                    "%s %zu%s: need %s, have %s (%s): use %s %.0f or less, or a share of what is free such as 80%%",
                    option, bytes, of, need_text, have_text, host->total_by, option, floor(have / ranks));
}

/* The same of what the process's own limits leave, which is what one rank may take. */
static tsr_status room_fits(const char *option, size_t bytes, const tsr_process_room *room) {
    char need[32], have[32];
    if (!room->by || bytes <= room->left) return TSR_OK;
    return tsr_fail(TSR_ERR_LIMIT,
                    "%s %zu: need %s, have %s (%s, beside what the program itself takes): use %s %llu or less, or a "
                    "share of what is free such as 80%%",
                    option, bytes, tsr_format_bytes((double)bytes, need), tsr_format_bytes((double)room->left, have),
                    room->by, option, (unsigned long long)room->left);
}

/* What this process's own limits leave for matrices, beside the threads that are to come and what libraries take
 * meanwhile. A GPU's driver reserves addresses far beyond any limit that it starts under, so none bounds its plans. */
static tsr_status find_room(const tsr_run *run, tsr_process_room *room) {
    const uint64_t libraries = 64 << 20; /* HDF5, MPI, messages */
    const int64_t threads =
        TSR_LANE_COUNT + tsr_run_io_threads(run) - 1 + tsr_run_write_threads(run) - 1 + 2; /* two get a run ready */
    const uint64_t taken = (uint64_t)threads * tsr_stack_bytes() + libraries;
    char need[32], have[32];
    *room = (tsr_process_room){UINT64_MAX, UINT64_MAX, NULL};
    if (!run->facts.host_memory) return TSR_OK;
    tsr_process_room_find(room);
    if (!room->by) return TSR_OK;
    if (room->left <= taken)
        return tsr_fail(TSR_ERR_LIMIT,
                        "%s leaves %s, and %lld threads and the libraries need %s: raise that limit, lower ulimit -s, "
                        "or use fewer --threads",
                        room->by, tsr_format_bytes((double)room->left, have), (long long)threads,
                        tsr_format_bytes((double)taken, need));
    room->left -= taken;
    return TSR_OK;
}

/* What is read from the ranks' memory, or written there, moves as fast as that. */
static void take_memory_rates(const tsr_run *run, tsr_rates *rates) {
    const double rate = tsr_rate_of_memory(tsr_run_io_threads(run));
    const bool c0 = !run->problem.add_c0 || tsr_run_in_memory(run, tsr_run_place_of_c0(run));
    if (tsr_run_in_memory(run, TSR_RUN_A) && tsr_run_in_memory(run, TSR_RUN_B) && c0) rates->lane[TSR_LANE_READ] = rate;
    if (tsr_run_in_memory(run, TSR_RUN_C)) rates->lane[TSR_LANE_WRITE] = rate;
}

static tsr_status find_resources(const tsr_run *run, tsr_resources *res) {
    const tsr_run_limits *limits = &run->limits;
    const tsr_run_engine *engine = &run->engine;
    const bool cuda = run->facts.kind == TSR_DEVICE_CUDA;
    tsr_host_memory host;
    tsr_process_room room;
    tsr_host_memory_find("", &host);
    TSR_TRY(find_room(run, &room));
    TSR_TRY(limit_fits("--host-memory", limits->host_memory.bytes, run->world->local_ranks, &host));
    TSR_TRY(room_fits("--host-memory", limits->host_memory.bytes, &room));
    if (run->facts.host_memory) TSR_TRY(limit_fits("--memory", limits->memory.bytes, run->world->local_ranks, &host));
    TSR_TRY(room_fits("--memory", limits->memory.bytes, &room));
    tsr_kept *kept = run->world->kept;
    double share = (double)host.available / run->world->local_ranks + (double)tsr_kept_free_bytes(kept, TSR_KEPT_HOST);
    share = fmin(share, (double)room.left);
    const bool swap = run->swapped; /* P cuts the rows one sees, the columns of what is stored */
    double device_share = share;
    if (cuda)
        device_share =
            (double)run->facts.memory_free_bytes / run->shared + (double)tsr_kept_free_bytes(kept, TSR_KEPT_DEVICE);
    *res = (tsr_resources){
        .ranks = tsr_run_team_ranks(run),
        .host_memory = run->facts.host_memory,
        .device_exchange = run->transport_ops->device_memory,
        .device_limit =
            limits->memory.bytes ? limits->memory.bytes : (size_t)(device_share * limits->memory.percent / 100),
        .host_limit =
            limits->host_memory.bytes ? limits->host_memory.bytes : (size_t)(share * limits->host_memory.percent / 100),
        .grid = {engine->grid[swap], engine->grid[!swap], engine->grid[2]},
        .panel = engine->panel,
        .parts = run->resume.asked,
        .cut_m = run->resume.cut[0],
        .cut_n = run->resume.cut[1],
        .schedule = engine->schedule,
        .multiple = run->kernel->multiple,
        .check_bytes = engine->check && !tsr_run_kernel_checks(run) ? tsr_check_bytes : NULL,
        .compares = tsr_run_can_compare(run),
        .workspace_bytes = run->kernel->workspace_bytes,
        .shape_cost = run->kernel->shape_cost,
        .rates = tsr_rates_typical(cuda, run->transport_ops->device_memory, run->problem.type, run->threads),
    };
    const tsr_extents all = tsr_problem_real_product(&run->problem);
    take_memory_rates(run, &res->rates);
    const double measured = tsr_gemm_speed(run->kernel, &run->facts, all.m, all.n, all.k);
    if (measured > 0) res->rates.lane[TSR_LANE_MULTIPLY] = measured;
    return TSR_OK;
}

/* Chunks of C that a rank encodes at once, by the limits alone: every rank plans with it, and nodes may differ in
 * their cores. */
static int planned_encoders(const tsr_run_limits *limits) {
    const int wanted = limits->io_threads > 0 ? limits->io_threads : TSR_ENCODERS_MAX;
    return limits->threads > 0 ? (int)tsr_min(wanted, limits->threads) : wanted;
}

/* Memory to encode C's chunks: an eighth of the limit at most, and what one chunk takes in any case. */
static size_t encode_bytes(const tsr_run *run, size_t limit) {
    const int encoders = planned_encoders(&run->limits);
    int64_t most = tsr_min((int64_t)tsr_output_encode_bytes(&run->spec, encoders), (int64_t)(limit / 8));
    return (size_t)tsr_max((int64_t)tsr_output_encode_bytes(&run->spec, 1), most);
}

void tsr_run_leave_chunks(tsr_run *run) {
    tsr_store_desc *from[] = {&run->from.a, &run->from.b, &run->from.c0};
    for (int i = 0; i < 3; i++) {
        tsr_chunk_index_leave(from[i]->index);
        from[i]->index = NULL;
    }
}

void tsr_run_leave_pieces(tsr_run *run) {
    tsr_store_desc *from[] = {&run->from.a, &run->from.b, &run->from.c0};
    for (int i = 0; i < 3; i++) {
        tsr_pieces_leave(from[i]->pieces);
        from[i]->pieces = NULL;
    }
}

/* The inputs that a run opens, whatever they are. */
static int inputs_of(tsr_run *run, tsr_store_desc *from[3]) {
    from[0] = &run->from.a;
    from[1] = &run->from.b;
    from[2] = &run->from.c0;
    return run->problem.add_c0 ? 3 : 2;
}

/* Chunks are decoded whole: what the inputs' take at least is there before anything is read, or nothing is. Lowers
 * their caches to that. */
static tsr_status least_caches(tsr_run *run, size_t limit, size_t *bytes) {
    tsr_store_desc *from[3], *most = NULL;
    const int inputs = inputs_of(run, from);
    double all = 0;
    for (int i = 0; i < inputs; i++) {
        tsr_store_lower(from[i], run->io, 0);
        all += (double)from[i]->cache_bytes + (double)tsr_pieces_bytes(from[i]->pieces);
        if (!most || from[i]->cache_bytes > most->cache_bytes) most = from[i];
    }
    if (all >= (double)limit && all > 0) {
        char advice[96];
        snprintf(advice, sizeof advice, "use --host-memory %.0f or more%s", ceil(1.25 * all) + (double)(8 << 20),
                 run->facts.host_memory ? " (and as much --memory)" : "");
        return tsr_store_too_large(most, (size_t)all, limit, advice);
    }
    *bytes = (size_t)all;
    return TSR_OK;
}

/* With no more memory than the plan leaves: no caches but for one chunk of each input being decoded, one encoder. */
static tsr_status plan_without_caches(tsr_run *run, const tsr_resources *res) {
    tsr_resources rest = *res;
    char why[600], need[32];
    size_t limit = tsr_host_limit(res);
    size_t one = tsr_output_encode_bytes(&run->spec, 1);
    size_t least = 0;
    TSR_TRY(least_caches(run, limit, &least));
    tsr_run_leave_chunks(run);
    run->spec.encode_bytes = one;
    one += least;
    if (one == 0) return tsr_plan_make(&run->problem, res, &run->plan);
    rest.host_beside = one;
    tsr_status status = tsr_plan_make(&run->problem, &rest, &run->plan);
    if (status != TSR_ERR_LIMIT) return status;
    snprintf(why, sizeof why, "%s", tsr_message());
    return tsr_fail(status, "%s; %s of it are for %s", why, tsr_format_bytes((double)one, need),
                    least == 0 ? "a chunk of C on its way, less with a smaller --chunk" : "chunks that are decoded");
}

/* What stores of chunked files keep, decode and encode counts as host memory: inputs a quarter of it at most, or what
 * one chunk takes, and no more than that where the plan needs it all. */
static tsr_status plan_beside_caches(tsr_run *run, const tsr_resources *res) {
    tsr_store_desc *from[3];
    const int inputs = inputs_of(run, from);
    size_t limit = tsr_host_limit(res);
    size_t kept = run->spec.encode_bytes = encode_bytes(run, limit);
    size_t chunked = 0;
    for (int i = 0; i < inputs; i++) chunked += from[i]->cache_bytes > 0;
    for (int i = 0; i < inputs; i++) {
        if (chunked > 0) tsr_store_lower(from[i], run->io, limit / 4 / chunked);
        kept += from[i]->cache_bytes < limit ? from[i]->cache_bytes : limit;
        kept += tsr_chunk_index_bytes(from[i]->index) + tsr_pieces_bytes(from[i]->pieces);
    }
    if (kept >= limit) return plan_without_caches(run, res);
    tsr_resources rest = *res;
    rest.host_beside = kept;
    tsr_status status = tsr_plan_make(&run->problem, &rest, &run->plan);
    return status == TSR_ERR_LIMIT && kept > 0 ? plan_without_caches(run, res) : status;
}

/* Memory that placing C's chunks takes, 0 for a contiguous C. */
static double place_bytes(const tsr_run *run) {
    int64_t chunks = tsr_spec_chunks(&run->spec);
    const double left = run->resume.asked ? sizeof(tsr_part) + sizeof *run->resume.chunk + 1 : 0; /* earlier runs */
    return chunks > 0 ? tsr_place_bytes(chunks) + left * (double)chunks : 0;
}

/* Chunks are placed when the plan's buffers and the inputs are gone: the list of them must fit what encoding
 * (encode_bytes) leaves. */
static tsr_status placing_fits(const tsr_run *run, const tsr_resources *res) {
    int64_t chunks = tsr_spec_chunks(&run->spec);
    double limit = (double)tsr_host_limit(res);
    double place = place_bytes(run);
    const double one = (double)tsr_output_encode_bytes(&run->spec, 1);
    const bool many = place > one, large = (double)tsr_chunks_bytes_of(&run->spec) > one / 8;
    double need = fmax(place * 8 / 7, place + one);
    char need_text[32], have_text[32];
    if (need <= limit || chunks == 0) return TSR_OK;
    return tsr_fail(TSR_ERR_LIMIT,
                    "%lld chunk%s of C need%s %s of host memory a rank to be put in order, and the limit is %s: use "
                    "%s--host-memory %.0f or more (and as much --memory on the CPU)",
                    (long long)chunks, chunks == 1 ? "" : "s", chunks == 1 ? "s" : "",
                    tsr_format_bytes(need, need_text), tsr_format_bytes(limit, have_text),
                    many    ? "larger chunks, or "
                    : large ? "smaller chunks, or "
                            : "",
                    ceil(need));
}

/* Memory of the check's sums. */
static double check_bytes(const tsr_run *run) {
    const tsr_problem *x = &run->problem;
    const tsr_extents all = tsr_problem_real_product(x);
    if (x->alpha_imag != 0) /* all parts side by side, and turned signs beside the others (verify_parts.c) */
        return tsr_verify_bytes(x->m, 2 * x->n, 2 * x->k, run->trials) + 16.0 * (double)x->n * run->trials;
    return tsr_verify_bytes(x->batch > 1 ? tsr_problem_product_rows(x) : all.m, all.n, all.k, run->trials);
}

/* The check comes when the plan's buffers are gone: its sums may take what its reading, a quarter of the limit,
 * leaves. */
static tsr_status check_fits(const tsr_run *run, const tsr_resources *res) {
    if (run->trials == 0) return TSR_OK;
    size_t limit = tsr_host_limit(res);
    double need = check_bytes(run) / 0.75 + 1;
    char need_text[32], have_text[32];
    if (need <= (double)limit) return TSR_OK;
    return tsr_fail(TSR_ERR_LIMIT,
                    "--verify needs %s of host memory a rank and has %s: use --host-memory %.0f or more (and as much "
                    "--memory on the CPU), fewer --trials, or no check",
                    tsr_format_bytes(need, need_text), tsr_format_bytes((double)limit, have_text), ceil(need));
}

/* Memory of the trace that the plan's busiest rank needs. Collective. */
static tsr_status trace_bytes(const tsr_run *run, double *bytes) {
    tsr_forecast mine;
    double own = 0;
    tsr_status status = tsr_plan_forecast(&run->plan, tsr_run_team_rank(run), &mine);
    if (status == TSR_OK) own = tsr_trace_bytes(mine.steps * tsr_run_share(run).count + TSR_RUN_MOVES);
    TSR_TRY(tsr_agree(run->world->comm, status));
    return TSR_MPI(MPI_Allreduce(&own, bytes, 1, MPI_DOUBLE, MPI_MAX, run->world->comm));
}

/* Whether the limit holds the trace with the plan and what HDF5 keeps, and later with placing, and with the check,
 * which reads into a quarter of the limit. */
static bool trace_fits(const tsr_run *run, double bytes, double limit) {
    const tsr_store_desc *from[] = {&run->from.a, &run->from.b, &run->from.c0};
    double plan = run->plan.host_bytes + (double)run->spec.encode_bytes;
    for (int i = 0; i < 3; i++)
        plan +=
            (double)(from[i]->cache_bytes + tsr_chunk_index_bytes(from[i]->index) + tsr_pieces_bytes(from[i]->pieces));
    double check = run->trials > 0 ? limit / 4 + check_bytes(run) : 0;
    double placing = place_bytes(run) + (double)run->spec.encode_bytes;
    return plan + bytes <= limit && placing + bytes <= limit && check + bytes <= limit;
}

#define PAGE_SHARE 16 /* of the limit: no more of it is taken from matrices for a page of the run */

/* A trace grows with the steps, and less memory for matrices makes more of them: planned again with twice of what
 * the last trace would have taken. */
static tsr_status plan_beside_trace(tsr_run *run, const tsr_resources *res) {
    size_t limit = tsr_host_limit(res);
    const double most = run->trace_file ? (double)limit : (double)limit / PAGE_SHARE;
    double need = 0;
    for (int tries = 0; tries < 8 && 2 * need < most; tries++) {
        tsr_resources rest = *res;
        rest.host_limit = limit - (size_t)(2 * need);
        tsr_status status = tsr_agree(run->world->comm, plan_beside_caches(run, &rest));
        if (status == TSR_ERR_LIMIT && tries > 0) break;
        TSR_TRY(status);
        TSR_TRY(trace_bytes(run, &need));
        run->trace_bytes = need;
        if (trace_fits(run, need, (double)limit)) return TSR_OK;
    }
    char need_text[32], have_text[32];
    return tsr_fail(TSR_ERR_LIMIT,
                    "--trace needs %s of host memory a rank beside the matrices, and the limit is %s: use a larger "
                    "--host-memory (and --memory on the CPU), a larger --panel, or no trace",
                    tsr_format_bytes(need, need_text), tsr_format_bytes((double)limit, have_text));
}

/* A page of the run goes without its timeline sooner than the run without its memory. */
static tsr_status plan_without_trace(tsr_run *run, const tsr_resources *res) {
    char need[32];
    const double missing = run->trace_bytes;
    run->traced = false;
    run->trace_bytes = 0;
    TSR_TRY(tsr_agree(run->world->comm, plan_beside_caches(run, res)));
    tsr_warn(run->world->warnings,
             "the report has no timeline: that needs %s of host memory a rank beside the matrices; use a larger "
             "--host-memory (and --memory on the CPU), or a larger --panel",
             tsr_format_bytes(missing, need));
    return TSR_OK;
}

static tsr_status plan_files(tsr_run *run, const tsr_resources *res) {
    if (!run->traced) return tsr_agree(run->world->comm, plan_beside_caches(run, res));
    const tsr_status status = plan_beside_trace(run, res);
    return status == TSR_ERR_LIMIT && !run->trace_file ? plan_without_trace(run, res) : status;
}

/* Beside what ranks hold of matrices in memory: the plan, and after it the check. */
static double beside_memory(const tsr_run *run) {
    const double check = run->trials > 0 ? check_bytes(run) / 0.75 : 0;
    return fmax(run->plan.host_bytes, check) + run->trace_bytes;
}

/* What ranks hold of matrices in memory depends on the plan, and hardly on its memory: planned again beside what the
 * last plan asked for. */
static tsr_status plan_beside_memory(tsr_run *run, const tsr_resources *res) {
    const double limit = (double)tsr_host_limit(res);
    double beside = 0;
    for (int tries = 0; tries < 8 && beside < limit; tries++) {
        tsr_resources rest = *res;
        rest.host_limit = (size_t)(limit - beside);
        tsr_status status = plan_files(run, &rest);
        if (status == TSR_ERR_LIMIT && beside > 0) break;
        TSR_TRY(status);
        TSR_TRY(tsr_run_find_holdings(run));
        if (run->memory_bytes + beside_memory(run) <= limit) return TSR_OK;
        beside = run->memory_bytes;
    }
    char need_text[32], have_text[32];
    return tsr_fail(TSR_ERR_LIMIT,
                    "what a rank holds of matrices in memory needs %s beside the plan's buffers, and the limit is %s: "
                    "use a larger --host-memory (and --memory on the CPU), or more ranks",
                    tsr_format_bytes(run->memory_bytes, need_text), tsr_format_bytes(limit, have_text));
}

/* Every rank plans with the least any of them has, so that all make the same plan. */
tsr_status tsr_run_make_plan(tsr_run *run) {
    tsr_resources res;
    MPI_Comm comm = run->world->comm;
    TSR_TRY(tsr_agree(comm, find_resources(run, &res)));
    TSR_TRY(smallest_limits(comm, &res));
    TSR_TRY(tsr_broadcast(comm, &res.rates, sizeof res.rates));
    tsr_status fits = check_fits(run, &res);
    if (fits == TSR_OK) fits = placing_fits(run, &res);
    TSR_TRY(tsr_agree(comm, fits));
    for (int i = 0; i < TSR_RUN_MEMORIES; i++)
        if (tsr_run_in_memory(run, i)) return plan_beside_memory(run, &res);
    return plan_files(run, &res);
}
