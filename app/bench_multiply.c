/* tessera bench multiply: whole multiplications, as `tessera multiply` plans and runs them, of data that is in host memory or made on the devices: what the
 * engine reaches without files, beside the same kernel alone and beside what people use instead. All ranks take part. */
#include "app/bench_multiply.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench_product.h"
#include "app/options.h"
#include "io/text_file.h"
#include "io/trace_file.h"

/* ---- options ------------------------------------------------------------------------------------------------------- */

enum {
    KEY_SHAPE = 256, KEY_TYPE, KEY_DATA, KEY_DISTRIBUTION, KEY_REPEAT, KEY_NO_CHECK, KEY_DEVICE, KEY_ACCURACY, KEY_KERNEL, KEY_GRID, KEY_PANEL, KEY_MEMORY,
    KEY_HOST_MEMORY, KEY_TRANSPORT, KEY_TRACE, KEY_PEER, KEY_QUIET, KEY_RANKS, KEY_BLOCKS
};

static const struct argp_option options[] = {
    {"shape", KEY_SHAPE, "MxNxK", 0, "C (M x N) = A (M x K) B (K x N); one number N means NxNxN (default 1024)", 0},
    {"type", KEY_TYPE, "TYPE", 0, "Type of A and B: f16, bf16 (C is f32), f32 (default) or f64", 0},
    {"data", KEY_DATA, "device|memory", 0, "A and B made on the devices, anew in every repetition, which counts, C left there (default); or all three in pinned host memory of the one node", 0},
    {"distribution", KEY_DISTRIBUTION, "NAME", 0, "uniform (default), normal, integer or identity", 0},
    {"repeat", KEY_REPEAT, "N", 0, "Multiplications, all shown (default 5)", 0},
    {"no-check", KEY_NO_CHECK, 0, 0, "Do not check elements of C (exit code 3 when one is wrong)", 0},
    {"device", KEY_DEVICE, "KIND", 0, "auto (a GPU where one is visible), cpu or cuda", 0},
    {"accuracy", KEY_ACCURACY, "CLASS", 0, "As for multiply", 0},
    {"kernel", KEY_KERNEL, "NAME", 0, "As for multiply", 0},
    {"grid", KEY_GRID, "PxQ[xR]", 0, "As for multiply", 0},
    {"panel", KEY_PANEL, "K", 0, "As for multiply", 0},
    {"memory", KEY_MEMORY, "BYTES|PERCENT", 0, "Device memory a rank may use (90%)", 0},
    {"host-memory", KEY_HOST_MEMORY, "BYTES|PERCENT", 0, "Host memory a rank may use beside A, B and C (80% of its share of what is free)", 0},
    {"transport", KEY_TRANSPORT, "NAME", 0, "How ranks share panels: auto, nccl, cuda-aware or host", 0},
    {"trace", KEY_TRACE, "FILE", 0, "Write when each step of each lane and rank of the last multiplication ran, as multiply does", 0},
    {"peer", KEY_PEER, "cublasxt", 0, "With --data memory: the same product by NVIDIA's cublasXt, over all GPUs of the node, from rank 0", 0},
    {"blocks", KEY_BLOCKS, "N,...", 0, "Its block sizes, of which the best counts (default 2048,4096,8192,16384)", 0},
    {"json", 'o', "FILE", 0, "Write the figures to FILE as well; - is standard output", 0},
    {"quiet", KEY_QUIET, 0, 0, "Print nothing: the figures go to --json alone", 0},
    {"ranks", KEY_RANKS, 0, 0, "Also print the table of ranks, as multiply does", 0},
    {0}};

static tsr_status parse_blocks(const char *text, tsr_bench_multiply_options *o) {
    for (o->block_count = 0;; text++) {
        char one[32];
        if (o->block_count == TSR_BENCH_MOST_BLOCKS) return tsr_fail(TSR_ERR_USAGE, "--blocks: %d sizes at most", TSR_BENCH_MOST_BLOCKS);
        snprintf(one, sizeof one, "%.*s", (int)strcspn(text, ","), text);
        TSR_TRY(tsr_parse_int("--blocks", one, 1, 1 << 20, &o->blocks[o->block_count++]));
        text += strcspn(text, ",");
        if (!*text) return TSR_OK;
    }
}

static tsr_status parse_one(int key, char *text, tsr_bench_multiply_options *o) {
    tsr_multiply_settings *run = &o->run;
    switch (key) {
    case KEY_SHAPE: return tsr_parse_product("--shape", text, &o->m, &o->n, &o->k);
    case KEY_TYPE: return tsr_bench_parse_type(text, &o->type);
    case KEY_DATA:
        o->memory = strcmp(text, "memory") == 0;
        return o->memory || strcmp(text, "device") == 0 ? TSR_OK : tsr_fail(TSR_ERR_USAGE, "--data %s: use device or memory", text);
    case KEY_DISTRIBUTION: return tsr_fill_parse(text, &o->fill);
    case KEY_REPEAT: return tsr_parse_int("--repeat", text, 1, 10000, &o->repeat);
    case KEY_NO_CHECK: o->check = false; return TSR_OK;
    case KEY_DEVICE: return tsr_device_parse(text, &run->device);
    case KEY_ACCURACY: return tsr_accuracy_parse(text, &run->accuracy);
    case KEY_KERNEL: run->kernel = text; return TSR_OK;
    case KEY_GRID: return tsr_parse_grid("--grid", text, run->grid);
    case KEY_PANEL: return tsr_parse_int("--panel", text, 1, INT64_MAX, &run->panel);
    case KEY_MEMORY: return tsr_parse_memory("--memory", text, &run->memory_bytes, &run->memory_percent);
    case KEY_HOST_MEMORY: return tsr_parse_memory("--host-memory", text, &run->host_memory_bytes, &run->host_memory_percent);
    case KEY_TRANSPORT: run->transport = text; return TSR_OK;
    case KEY_TRACE: run->trace = text; return TSR_OK;
    case KEY_QUIET: run->quiet = true; return TSR_OK;
    case KEY_RANKS: run->ranks = true; return TSR_OK;
    case KEY_PEER: o->peer = text; return strcmp(text, "cublasxt") == 0 ? TSR_OK : tsr_fail(TSR_ERR_USAGE, "--peer %s: there is cublasxt", text);
    case KEY_BLOCKS: return parse_blocks(text, o);
    case 'o': o->json = text; return TSR_OK;
    default: return TSR_OK;
    }
}

static tsr_status check_options(const tsr_bench_multiply_options *o) {
    if (o->json && o->run.trace && strcmp(o->json, "-") == 0 && strcmp(o->run.trace, "-") == 0)
        return tsr_fail(TSR_ERR_USAGE, "--json - and --trace -: only one of them can go to standard output; "
                                       "name a file for the other");
    if (!o->peer) return TSR_OK;
    if (!o->memory) return tsr_fail(TSR_ERR_USAGE, "--peer %s multiplies what is in host memory: use --data memory", o->peer);
    if (o->type != TSR_F32 && o->type != TSR_F64) return tsr_fail(TSR_ERR_USAGE, "--peer %s multiplies f32 and f64, not %s", o->peer, tsr_dtype_name(o->type));
    return TSR_OK;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    if (key == ARGP_KEY_END) return check_options(state->input) == TSR_OK ? 0 : EINVAL;
    if (key != 'o' && (key < KEY_SHAPE || key > KEY_BLOCKS)) return ARGP_ERR_UNKNOWN;
    return parse_one(key, text, state->input) == TSR_OK ? 0 : EINVAL;
}

static const struct argp argp = {options, parse, NULL,
    "Measures whole multiplications on all ranks of the job, without files.\v"
    "Each repetition counts from the moment all ranks are ready to when the slowest is done. With --data memory data is made, touched and pinned before; with --data device "
    "each repetition makes A and B, and what that takes alone is shown. The limit is what the busiest lane needs at the rate it reached, and the multiply lane at the rate "
    "of the same kernel alone on the same shape, measured on all ranks at once, best of as many as there are repetitions; the exchange lane, whose time is also waiting "
    "for the slowest rank, is left out.",
    NULL, NULL, NULL};

static void help(void) {
    tsr_options_help(&argp, "tessera bench multiply",
                     "mpirun -n 2 tessera bench multiply --shape 16384 --data memory");
}

/* ---- getting ready --------------------------------------------------------------------------------------------------- */

static tsr_status make_problem(tsr_bench_multiply_run *b) {
    const tsr_bench_multiply_options *o = b->o;
    const tsr_road road = o->memory ? TSR_ROAD_MAPPED : TSR_ROAD_DEVICE;
    const tsr_element element = {o->type, false};
    TSR_TRY(tsr_problem_make((tsr_operand){o->m, o->k, element, false, road}, (tsr_operand){o->k, o->n, element, false, road}, NULL, 1, 0, &b->job.problem));
    b->job.problem.c_road = road;
    return TSR_OK;
}

static tsr_status open_executor(tsr_bench_multiply_run *b) {
    tsr_job *j = &b->job;
    TSR_TRY(tsr_job_open_trace(j));
    const tsr_execution x = {.plan = &j->plan, .grid = &j->grid, .device = j->device, .kernel = j->kernel, .transport = j->transport, .a = b->data.store_a,
                             .b = b->data.store_b, .c = b->data.store_c, .io_threads = tsr_job_io_threads(j), .trace = j->trace};
    return tsr_executor_open(&x, &j->executor);
}

static tsr_status pin(tsr_bench_multiply_run *b) {
    TSR_TRY(b->job.device->ops->use(b->job.device));
    return tsr_bench_operands_pin(&b->data, b->job.device);
}

static tsr_status prepare(tsr_bench_multiply_run *b) {
    tsr_job *j = &b->job;
    MPI_Comm comm = b->world->comm;
    tsr_device_opening opening;
    TSR_TRY(make_problem(b)); /* the same answer on every rank */
    tsr_device_begin(b->world, j->settings->device, &opening);
    tsr_status opened = tsr_bench_operands_open(b->world, &b->data);
    if (opened != TSR_OK) tsr_device_give_up(&opening);
    TSR_TRY(opened);
    tsr_job_mark(j, TSR_STARTUP_FILES);
    TSR_TRY(tsr_job_choose(j, &opening));
    TSR_TRY(tsr_job_connect(j));
    tsr_job_mark(j, TSR_STARTUP_TRANSPORT);
    TSR_TRY(tsr_agree(comm, pin(b)));
    TSR_TRY(tsr_agree(comm, j->grid.active ? open_executor(b) : TSR_OK));
    tsr_job_mark(j, TSR_STARTUP_ALLOCATION);
    j->first_read = j->startup_marked;
    return TSR_OK;
}

/* ---- this rank's part of C -------------------------------------------------------------------------------------------- */

/* Calls visit for what this rank has of each super-block; of ranks that split k, one stands for all. */
static tsr_status for_parts(tsr_bench_multiply_run *b, tsr_status (*visit)(tsr_bench_multiply_run *b, tsr_rect part, int64_t side, void *context), void *context) {
    const tsr_job *j = &b->job;
    const tsr_plan *plan = &j->plan;
    if (!j->grid.active || j->grid.depth > 0) return TSR_OK;
    const int64_t most = tsr_max(plan->blocks_m, plan->blocks_n), side = tsr_max(2, tsr_ceil_div(TSR_BENCH_LATTICE, tsr_max(1, most)));
    for (int64_t row = 0; row < plan->blocks_m; row++)
        for (int64_t col = 0; col < plan->blocks_n; col++) {
            const tsr_span down = tsr_block(b->o->m, plan->block_m, row), across = tsr_block(b->o->n, plan->block_n, col);
            const tsr_span rows = tsr_span_within(down, tsr_partition_units(down.count, plan->problem.unit_m, plan->p, j->grid.row));
            const tsr_span cols = tsr_span_within(across, tsr_partition_units(across.count, plan->problem.unit_n, plan->q, j->grid.col));
            TSR_TRY(visit(b, (tsr_rect){rows.start, cols.start, rows.count, cols.count}, side, context));
        }
    return TSR_OK;
}

static char *in_memory(const tsr_view *c, int64_t row, int64_t col) { return (char *)c->data + (size_t)(row * c->ld + col) * tsr_dtype_bytes(c->element.dtype); }

static tsr_status poison_part(tsr_bench_multiply_run *b, tsr_rect part, int64_t side, void *context) {
    const int64_t rows = tsr_min(part.rows, side), cols = tsr_min(part.cols, side);
    (void)context;
    for (int64_t s = 0; s < rows; s++)
        for (int64_t t = 0; t < cols; t++)
            memset(in_memory(&b->data.c, part.row + tsr_bench_lattice(part.rows, rows, s), part.col + tsr_bench_lattice(part.cols, cols, t)), 0xff,
                   tsr_dtype_bytes(b->data.type));
    return TSR_OK;
}

void tsr_bench_poison(tsr_bench_multiply_run *b) {
    if (b->o->memory) (void)for_parts(b, poison_part, NULL);
}

static tsr_status fetch_row(void *context, tsr_rect row, void *to) {
    tsr_bench_multiply_run *b = context;
    if (!b->o->memory) return tsr_executor_fetch(b->job.executor, row, to, row.cols);
    memcpy(to, in_memory(&b->data.c, row.row, row.col), (size_t)row.cols * tsr_dtype_bytes(b->data.type));
    return TSR_OK;
}

typedef struct {
    tsr_bench_expected expected;
    tsr_bench_verdict verdict;
} checking;

static tsr_status check_part(tsr_bench_multiply_run *b, tsr_rect part, int64_t side, void *context) {
    checking *c = context;
    return tsr_bench_check_part(&c->expected, part, side, fetch_row, b, &c->verdict);
}

/* One rank has seen what it says; the others' counts are added. */
static tsr_status agree_on(const tsr_bench_multiply_run *b, double bound, const tsr_bench_verdict *mine, char *text) {
    const tsr_world *world = b->world;
    double worst = isnan(mine->worst) ? INFINITY : mine->worst, largest = 0;
    int64_t elements = 0;
    tsr_status status = TSR_OK;
    if (mine->wrong > 0)
        status = tsr_fail(TSR_ERR_CHECK, "C is wrong: %" PRId64 " of %" PRId64 " elements looked at; element (%" PRId64 ", %" PRId64 ") is %.17g and should be %.17g", mine->wrong,
                          mine->elements, mine->row, mine->col, mine->got, mine->wanted);
    TSR_TRY(tsr_agree(world->comm, status));
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine->elements, &elements, 1, MPI_INT64_T, MPI_SUM, world->comm)));
    TSR_TRY(TSR_MPI(MPI_Allreduce(&worst, &largest, 1, MPI_DOUBLE, MPI_MAX, world->comm)));
    if (bound == 0) snprintf(text, 160, "PASSED: %" PRId64 " elements of C exact", elements);
    else snprintf(text, 160, "PASSED: %" PRId64 " elements of C, largest error %.2g of |A||B|, allowed %.2g", elements, largest, bound);
    return TSR_OK;
}

tsr_status tsr_bench_judge(tsr_bench_multiply_run *b, double bound, char *text) {
    snprintf(text, 160, "not run");
    if (!b->o->check) return TSR_OK;
    checking c = {.expected = {b->o->fill, TSR_BENCH_SEED_A, TSR_BENCH_SEED_B, b->data.input, b->data.type, b->o->k, bound}};
    TSR_TRY(tsr_agree(b->world->comm, for_parts(b, check_part, &c)));
    return agree_on(b, bound, &c.verdict, text);
}

/* Sums of integers up to 4·4 are exact while they fit the significand; else what the kernel states, the sums over panels and ranks, and operands rounded to
 * bfloat16 on their way to it. */
static double error_bound(const tsr_bench_multiply_run *b) {
    const tsr_job *j = &b->job;
    const tsr_dtype type = j->problem.type;
    const bool integers = b->o->fill == TSR_FILL_INTEGER || b->o->fill == TSR_FILL_IDENTITY;
    if (integers && 16.0 * (double)b->o->k <= (type == TSR_F64 ? 0x1p53 : 0x1p24)) return 0;
    const double sums = (double)tsr_ceil_div(b->o->k, j->plan.panel) + j->plan.r;
    const bool rounded = tsr_gemm_loss(j->kernel, b->o->type, b->o->type) == TSR_ACCURACY_BF16 && b->o->type != TSR_BF16;
    return tsr_gemm_error_bound(j->kernel, b->o->k) + sums * (type == TSR_F64 ? 0x1p-53 : 0x1p-24) + (rounded ? 0x1p-6 : 0);
}

/* ---- measuring ------------------------------------------------------------------------------------------------------- */

static tsr_status multiply_once(tsr_bench_multiply_run *b, int64_t number) {
    tsr_job *j = &b->job;
    tsr_bench_poison(b);
    tsr_rank_record record = {0};
    TSR_TRY(TSR_MPI(MPI_Barrier(j->grid.ranks)));
    const double start = tsr_now_seconds();
    const tsr_status status = tsr_executor_run(j->executor, &record);
    const double mine = tsr_now_seconds() - start;
    if (status != TSR_OK && j->plan.p * j->plan.q * j->plan.r > 1) tsr_abort(b->world, status); /* others may be inside communication */
    TSR_TRY(status);
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine, &b->seconds[number], 1, MPI_DOUBLE, MPI_MAX, j->grid.ranks)));
    if (number > 0 && b->seconds[number] >= b->seconds[b->fastest]) return TSR_OK;
    b->best = record;
    b->fastest = (int)number;
    return TSR_OK;
}

static tsr_status multiply(tsr_bench_multiply_run *b) {
    tsr_status status = TSR_OK;
    for (int64_t i = 0; i < b->o->repeat && b->job.grid.active && status == TSR_OK; i++) status = multiply_once(b, i);
    return tsr_agree(b->world->comm, status);
}

/* ---- the command ------------------------------------------------------------------------------------------------------ */

/* Rank 0 prints and writes what all have brought. */
static tsr_status report(tsr_bench_multiply_run *b, FILE *json) {
    const tsr_world *world = b->world;
    tsr_rank_record *ranks = NULL;
    tsr_status status = TSR_OK;
    b->job.mine = b->best;
    tsr_job_describe_rank(&b->job);
    if (world->rank == 0 && !(ranks = calloc((size_t)world->ranks, sizeof *ranks)))
        status = tsr_fail(TSR_ERR_MEMORY, "no memory for the records of %d ranks", world->ranks);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Gather(&b->job.mine, sizeof b->job.mine, MPI_BYTE, ranks, sizeof b->job.mine, MPI_BYTE, 0, world->comm)));
    if (world->rank == 0) {
        if (!b->o->run.quiet) tsr_bench_multiply_print(b, ranks);
        if (json) tsr_bench_multiply_json(b, ranks, json);
    }
    if (b->o->run.trace) status = tsr_trace_save(b->job.trace, world->comm, ranks, b->o->run.trace, b->o->run.command);
done:
    free(ranks);
    return status;
}

static tsr_status measure(tsr_bench_multiply_run *b) {
    const tsr_bench_multiply_options *o = b->o;
    TSR_TRY(prepare(b));
    TSR_TRY(multiply(b));
    TSR_TRY(tsr_bench_judge(b, error_bound(b), b->check));
    tsr_executor_close(b->job.executor);
    b->job.executor = NULL;
    TSR_TRY(tsr_bench_alone_run(b));
    return o->peer ? tsr_bench_peer_run(b) : TSR_OK;
}

static tsr_status run_bench(tsr_bench_multiply_run *b, FILE **json) {
    const tsr_bench_multiply_options *o = b->o;
    tsr_status status = TSR_OK;
    b->seconds = calloc((size_t)o->repeat, sizeof *b->seconds);
    if (!b->seconds) status = tsr_fail(TSR_ERR_MEMORY, "no memory for %" PRId64 " times: lower --repeat", o->repeat);
    if (status == TSR_OK && o->run.trace && b->world->rank == 0) status = tsr_trace_file_check(o->run.trace);
    if (status == TSR_OK && o->json && b->world->rank == 0) status = tsr_bench_json_open(o->json, json);
    TSR_TRY(tsr_agree(b->world->comm, status));
    TSR_TRY(measure(b));
    TSR_TRY(report(b, *json));
    if (*json) {
        status = tsr_bench_json_close(*json, o->json);
        *json = NULL;
    }
    return tsr_agree(b->world->comm, status);
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    tsr_bench_multiply_options o = {
        .m = 1024, .n = 1024, .k = 1024, .repeat = 5, .type = TSR_F32, .check = true, .fill = TSR_FILL_UNIFORM, .blocks = {2048, 4096, 8192, 16384}, .block_count = 4,
        .run = {.alpha = 1, .kernel = "auto", .device = "auto", .transport = "auto", .memory_percent = 90, .host_memory_percent = 80}};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&argp, argc, argv, &o)));
    TSR_TRY(tsr_agree(world->comm, tsr_text_file_resolve(&o.json)));
    TSR_TRY(tsr_agree(world->comm, tsr_text_file_resolve(&o.run.trace)));
    char *command = tsr_command_line(argc, argv);
    o.run.command = command ? command : "tessera bench multiply";
    FILE *json = NULL;
    tsr_bench_multiply_run b = {.o = &o, .world = world, .job = {.world = world, .settings = &o.run, .startup_marked = world->started_seconds},
                                .data = {.m = o.m, .n = o.n, .k = o.k, .input = o.type, .type = tsr_bench_product_type(o.type), .fill = o.fill, .memory = o.memory}};
    tsr_job_mark(&b.job, TSR_STARTUP_MPI);
    tsr_status status = run_bench(&b, &json);
    if (json) fclose(json);
    tsr_executor_close(b.job.executor);
    tsr_bench_operands_close(&b.data);
    tsr_trace_close(b.job.trace);
    if (status == TSR_OK) { /* else what is collective, and the device it uses, go with the process */
        if (b.job.grid.active) b.job.transport_ops->close(b.job.transport);
        tsr_grid_close(&b.job.grid);
        b.job.device->ops->close(b.job.device);
    }
    free(b.seconds);
    free(command);
    return status;
}

const tsr_bench tsr_bench_multiply = {"multiply", run, help};
