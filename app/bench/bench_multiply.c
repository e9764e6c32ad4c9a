/* tessera bench multiply: whole multiplications, as `tessera multiply` plans and runs them, of data that is in host
 * memory or made on the devices: what the engine reaches without files, beside the same kernel alone and beside what
 * people use instead. All ranks take part. */
#include "app/bench/bench_multiply.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/bench.h"
#include "app/bench/bench_product.h"
#include "app/library/planning/reproducible.h"
#include "io/record/trace_file.h"
#include "io/text/text_file.h"
#include "mpi/ranks/rank_device.h"

/* ---- options --------------------------------------------------------------------------------- */

static tsr_status read_data(const tsr_option *option, const char *text, void *field) {
    (void)option;
    *(bool *)field = strcmp(text, "memory") == 0;
    if (*(bool *)field || strcmp(text, "device") == 0) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "--data %s: use device or memory", text);
}

static tsr_status read_peer(const tsr_option *option, const char *text, void *field) {
    TSR_TRY(tsr_read_text(option, text, field));
    return strcmp(text, "cublasxt") == 0 ? TSR_OK : tsr_fail(TSR_ERR_USAGE, "--peer %s: there is cublasxt", text);
}

static tsr_status read_blocks(const tsr_option *option, const char *text, void *field) {
    (void)option;
    tsr_bench_multiply_options *o = field;
    for (o->block_count = 0;; text++) {
        char one[32];
        if (o->block_count == TSR_BENCH_MOST_BLOCKS)
            return tsr_fail(TSR_ERR_USAGE, "--blocks: %d sizes at most", TSR_BENCH_MOST_BLOCKS);
        snprintf(one, sizeof one, "%.*s", (int)strcspn(text, ","), text);
        TSR_TRY(tsr_parse_int("--blocks", one, 1, 1 << 20, &o->blocks[o->block_count++]));
        text += strcspn(text, ",");
        if (!*text) return TSR_OK;
    }
}

#define AT(member) offsetof(tsr_bench_multiply_options, member)

static const tsr_option options[] = {
    {.shared = &tsr_option_product, .initial = "1024", .field = AT(shape)},
    {.shared = &tsr_option_operand_type, .field = AT(type)},
    {.name = "data",
     .value = "device|memory",
     .help = "A and B made on the devices, anew in every repetition, which counts, C left there (default); or all "
             "three in pinned host memory of the one node",
     .read = read_data,
     .field = AT(memory)},
    {.name = "gram",
     .help = "C = A A': half of it is multiplied, and with --data device stays there. Rates are those of the whole "
             "product, 2 m n k",
     .read = tsr_read_flag,
     .field = AT(gram)},
    {.shared = &tsr_option_distribution, .field = AT(fill)},
    {.name = "repeat",
     .value = "N",
     .help = "Multiplications, all shown (default 5)",
     .initial = "5",
     .read = tsr_read_whole,
     .low = 1,
     .high = 10000,
     .field = AT(repeat)},
    {.name = "no-check",
     .help = "Do not check elements of C (exit code 3 when one is wrong)",
     .read = tsr_read_flag,
     .field = AT(unchecked)},
    {.name = "check",
     .help = "Check products on the device, as multiply does: the check counts",
     .read = tsr_read_flag,
     .field = AT(engine.check)},
    {.shared = &tsr_option_device, .field = AT(engine.device)},
    {.shared = &tsr_option_accuracy, .field = AT(engine.accuracy)},
    {.shared = &tsr_option_kernel, .initial = "auto", .field = AT(engine.kernel)},
    {.shared = &tsr_option_reproducible, .field = AT(engine.reproducible)},
    {.shared = &tsr_option_grid, .field = AT(engine.grid)},
    {.shared = &tsr_option_panel, .field = AT(engine.panel)},
    {.shared = &tsr_option_memory, .field = AT(limits.memory)},
    {.shared = &tsr_option_host_memory,
     .help = "Host memory a rank may use beside A, B and C (80% of its share of what is free)",
     .field = AT(limits.host_memory)},
    {.shared = &tsr_option_transport, .field = AT(engine.transport)},
    {.shared = &tsr_option_schedule, .field = AT(engine.schedule)},
    {.shared = &tsr_option_trace,
     .help = "Write when each step of each lane and rank of the last multiplication ran, as multiply does",
     .field = AT(trace)},
    {.name = "peer",
     .value = "cublasxt",
     .help = "With --data memory: the same product by NVIDIA's cublasXt, over all GPUs of the node, from rank 0",
     .read = read_peer,
     .field = AT(peer)},
    {.name = "blocks",
     .value = "N,...",
     .help = "Block sizes of --peer, of which the best counts (default 2048,4096,8192,16384)",
     .initial = "2048,4096,8192,16384",
     .read = read_blocks},
    {.shared = &tsr_option_json, .letter = 'o', .field = AT(json)},
    {.shared = &tsr_option_quiet, .field = AT(quiet)},
    {.shared = &tsr_option_ranks, .help = "Also print the table of ranks, as multiply does", .field = AT(ranks)},
    {0}};

static tsr_status check_options(void *to) {
    tsr_bench_multiply_options *o = to;
    if (o->engine.reproducible) o->engine.kernel = tsr_reproducible_kernel(o->engine.kernel);
    if (o->json && o->trace && strcmp(o->json, "-") == 0 && strcmp(o->trace, "-") == 0)
        return tsr_fail(TSR_ERR_USAGE, "--json - and --trace -: only one of them can go to standard output; "
                                       "name a file for the other");
    if (o->gram && (o->shape.m != o->shape.n || o->peer || tsr_dtype_is_complex(o->type)))
        return tsr_fail(TSR_ERR_USAGE, "--gram: C = A A' is square, of real A, and has no --peer: use --shape NxNxK");
    if (!o->peer) return TSR_OK;
    if (!o->memory)
        return tsr_fail(TSR_ERR_USAGE, "--peer %s multiplies what is in host memory: use --data memory", o->peer);
    if (!tsr_dtype_serves(o->type, TSR_USE_SUM))
        return tsr_fail(TSR_ERR_USAGE, "--peer %s multiplies f32 and f64, not %s", o->peer, tsr_dtype_name(o->type));
    return TSR_OK;
}

static const tsr_options command = {
    .options = options,
    .what = "Measures whole multiplications on all ranks of the job, without files.\v"
            "Each repetition counts from the moment all ranks are ready to when the slowest is "
            "done. With --data memory data is made, touched and pinned before; with --data device "
            "each repetition makes A and B, and what that takes alone is shown. The limit is what "
            "the busiest lane needs at the rate it reached, and the multiply lane at the rate "
            "of the same kernel alone on the same shape, measured on all ranks at once, best of "
            "as many as there are repetitions; the exchange lane, whose time is also waiting "
            "for the slowest rank, is left out.",
    .check = check_options};

static void help(void) {
    tsr_options_help(&command, "tessera bench multiply",
                     "mpirun -n 2 tessera bench multiply --shape 16384 --data memory");
}

/* ---- getting ready --------------------------------------------------------------------------- */

static tsr_status make_problem(tsr_bench_multiply_run *b) {
    const tsr_bench_multiply_options *o = b->o;
    const tsr_data_path path = o->memory ? TSR_DATA_PATH_MAPPED : TSR_DATA_PATH_DEVICE;
    const tsr_element element = {o->type, false};
    const tsr_operand first = {.rows = o->shape.m, .cols = o->shape.k, .element = element, .path = path};
    tsr_operand second = {.rows = o->shape.k, .cols = o->shape.n, .element = element, .path = path};
    if (o->gram) {
        second = first;
        second.transpose = true;
    }
    TSR_TRY(tsr_problem_make(first, second, NULL, tsr_real(1), tsr_real(0), &b->job.problem));
    b->job.problem.c_path = path;
    if (o->gram) TSR_TRY(tsr_problem_take_gram(&b->job.problem, TSR_TRIANGLE_FULL));
    if (o->engine.reproducible) tsr_reproducible_cut(&b->job.problem, o->engine.kernel);
    return TSR_OK;
}

static tsr_status open_executor(tsr_bench_multiply_run *b) {
    tsr_run *j = &b->job;
    TSR_TRY(tsr_run_open_trace(j));
    const tsr_execution x = {.plan = &j->plan,
                             .grid = &j->grid,
                             .device = j->device,
                             .kernel = j->kernel,
                             .kernel_checks = tsr_run_kernel_checks(j),
                             .transport = j->transport,
                             .a = b->data.store_a,
                             .b = b->o->gram ? b->data.store_a : b->data.store_b,
                             .c = b->data.store_c,
                             .io_threads = tsr_run_io_threads(j),
                             .write_threads = tsr_run_write_threads(j),
                             .trace = j->trace};
    return tsr_executor_open(&x, &j->executor);
}

static tsr_status pin(tsr_bench_multiply_run *b) {
    TSR_TRY(b->job.device->ops->use(b->job.device));
    return tsr_bench_operands_pin(&b->data, b->job.device);
}

static tsr_status prepare(tsr_bench_multiply_run *b) {
    tsr_run *j = &b->job;
    MPI_Comm comm = b->world->comm;
    tsr_device_opening opening;
    TSR_TRY(make_problem(b)); /* the same answer on every rank */
    tsr_device_begin(b->world, j->engine.device, &opening);
    tsr_status opened = tsr_bench_operands_open(b->world, &b->data);
    if (opened != TSR_OK) tsr_device_give_up(&opening);
    TSR_TRY(opened);
    tsr_run_mark(j, TSR_STARTUP_FILES);
    TSR_TRY(tsr_run_choose(j, &opening));
    TSR_TRY(tsr_run_connect(j));
    tsr_run_mark(j, TSR_STARTUP_TRANSPORT);
    TSR_TRY(tsr_agree(comm, pin(b)));
    TSR_TRY(tsr_agree(comm, j->grid.active ? open_executor(b) : TSR_OK));
    tsr_run_mark(j, TSR_STARTUP_ALLOCATION);
    j->first_read = j->startup_marked;
    return TSR_OK;
}

/* ---- this rank's part of C ------------------------------------------------------------------- */

/* Calls visit for what this rank has of each super-block; of ranks that split k, one stands for all. */
static tsr_status for_parts(tsr_bench_multiply_run *b,
                            tsr_status (*visit)(tsr_bench_multiply_run *b, tsr_rect part, int64_t side, void *context),
                            void *context) {
    const tsr_run *j = &b->job;
    const tsr_plan *plan = &j->plan;
    if (!j->grid.active || j->grid.depth > 0) return TSR_OK;
    const int64_t most = tsr_max(plan->blocks_m, plan->blocks_n),
                  side = tsr_max(2, tsr_ceil_div(TSR_BENCH_LATTICE, tsr_max(1, most)));
    for (int64_t row = 0; row < plan->blocks_m; row++)
        for (int64_t col = 0; col < plan->blocks_n; col++) {
            const tsr_span rows = tsr_plan_span(plan, TSR_OPERAND_A, row, j->grid.row);
            const tsr_span cols = tsr_plan_span(plan, TSR_OPERAND_B, col, j->grid.col);
            TSR_TRY(visit(b, (tsr_rect){rows.start, cols.start, rows.count, cols.count}, side, context));
        }
    return TSR_OK;
}

static char *in_memory(const tsr_view *c, int64_t row, int64_t col) {
    return (char *)c->data + (size_t)(row * c->ld + col) * tsr_dtype_bytes(c->element.dtype);
}

static tsr_status poison_part(tsr_bench_multiply_run *b, tsr_rect part, int64_t side, void *context) {
    const int64_t rows = tsr_min(part.rows, side), cols = tsr_min(part.cols, side);
    (void)context;
    for (int64_t s = 0; s < rows; s++)
        for (int64_t t = 0; t < cols; t++)
            memset(in_memory(&b->data.c, part.row + tsr_bench_lattice(part.rows, rows, s),
                             part.col + tsr_bench_lattice(part.cols, cols, t)),
                   0xff, tsr_dtype_bytes(b->data.type));
    return TSR_OK;
}

void tsr_bench_poison(tsr_bench_multiply_run *b) {
    if (b->o->memory) (void)for_parts(b, poison_part, NULL);
}

static tsr_status fetch_row(void *context, tsr_rect row, void *to) {
    tsr_bench_multiply_run *b = context;
    if (!b->o->memory) return tsr_executor_fetch(b->job.executor, row, to);
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
        status = tsr_fail(TSR_ERR_CHECK,
                          "C is wrong: %" PRId64 " of %" PRId64 " elements looked at; element (%" PRId64 ", %" PRId64
                          ") is %.17g and should be %.17g",
                          mine->wrong, mine->elements, mine->row, mine->col, mine->got, mine->wanted);
    TSR_TRY(tsr_agree(world->comm, status));
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine->elements, &elements, 1, MPI_INT64_T, MPI_SUM, world->comm)));
    TSR_TRY(TSR_MPI(MPI_Allreduce(&worst, &largest, 1, MPI_DOUBLE, MPI_MAX, world->comm)));
    if (bound == 0) snprintf(text, 160, "PASSED: %" PRId64 " elements of C exact", elements);
    else
        snprintf(text, 160, "PASSED: %" PRId64 " elements of C, largest error %.2g of |A||B|, allowed %.2g", elements,
                 largest, bound);
    return TSR_OK;
}

tsr_status tsr_bench_judge(tsr_bench_multiply_run *b, double bound, char *text) {
    snprintf(text, 160, "not run");
    if (b->o->unchecked) return TSR_OK;
    checking c = {.expected = {.fill = b->o->fill,
                               .seed_a = TSR_BENCH_SEED_A,
                               .seed_b = TSR_BENCH_SEED_B,
                               .input = b->data.input,
                               .type = b->data.type,
                               .k = b->o->shape.k,
                               .gram = b->o->gram,
                               .lower = b->o->gram && !b->o->memory,
                               .bound = bound}};
    TSR_TRY(tsr_agree(b->world->comm, for_parts(b, check_part, &c)));
    return agree_on(b, bound, &c.verdict, text);
}

/* Sums of integers up to 4·4 are exact while they fit the significand; else what the kernel states, the sums over
 * panels and ranks, and operands rounded to bfloat16 on their way to it. */
static double error_bound(const tsr_bench_multiply_run *b) {
    const tsr_run *j = &b->job;
    const tsr_dtype type = j->problem.type, part = tsr_dtype_part(b->o->type);
    const int64_t k = tsr_problem_real_product(&j->problem).k;
    const bool integers = b->o->fill == TSR_FILL_INTEGER || b->o->fill == TSR_FILL_IDENTITY;
    if (integers && 16.0 * (double)k <= tsr_dtype_integers(type)) return 0;
    const double sums = (double)tsr_ceil_div(b->o->shape.k, j->plan.panel) + j->plan.r;
    const bool rounded = tsr_run_loss(j) == TSR_ACCURACY_BF16 && part != j->kernel->input;
    return tsr_gemm_error_bound(j->kernel, k) + sums * tsr_dtype_roundoff(type) + (rounded ? 0x1p-6 : 0);
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* What the check of products says of the last one. A wrong one ends the benchmark: to make it again would count. */
static tsr_status take_check(const tsr_run *j, tsr_rank_record *record) {
    const tsr_check_counts *counts = tsr_executor_checked(j->executor);
    record->rows_checked = (int64_t)counts->judged;
    record->rows_unjudged = (int64_t)counts->unjudged;
    record->rows_rounded = (int64_t)(counts->doubtful - counts->wrong);
    memcpy(&record->check_worst, &counts->worst_bits, sizeof record->check_worst);
    if (counts->wrong == 0) return TSR_OK;
    return tsr_fail(TSR_ERR_CHECK,
                    "the check doubts %" PRIu64 " row%s of a product, the first from (%" PRId64 ", %" PRId64
                    ") on: look at the device's health (tessera info --devices)",
                    counts->doubtful, counts->doubtful == 1 ? "" : "s", counts->place[0].row, counts->place[0].col);
}

static tsr_status multiply_once(tsr_bench_multiply_run *b, int64_t number) {
    tsr_run *j = &b->job;
    tsr_bench_poison(b);
    tsr_rank_record record = {0};
    TSR_TRY(TSR_MPI(MPI_Barrier(j->grid.ranks)));
    if (j->trace) tsr_trace_start(j->trace);
    const double start = tsr_now_seconds();
    const tsr_status status = tsr_executor_run(j->executor, &record);
    const double mine = tsr_now_seconds() - start;
    /* others may be inside communication */
    if (status != TSR_OK && j->plan.p * j->plan.q * j->plan.r > 1) tsr_abort(b->world, status);
    TSR_TRY(status);
    TSR_TRY(tsr_agree(j->grid.ranks, take_check(j, &record)));
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

/* ---- the command ----------------------------------------------------------------------------- */

static tsr_status write_json(const tsr_bench_multiply_run *b, const tsr_rank_record *ranks) {
    tsr_text_file json;
    TSR_TRY(tsr_text_file_open(TSR_BENCH_JSON, b->o->json, &json));
    tsr_bench_multiply_json(b, ranks, json.to);
    return tsr_text_file_close(&json, 0);
}

/* Rank 0 prints and writes what all have brought. */
static tsr_status report(tsr_bench_multiply_run *b) {
    const tsr_world *world = b->world;
    tsr_rank_record *ranks = NULL;
    tsr_status status = TSR_OK;
    b->job.mine = b->best;
    TSR_TRY_DONE(tsr_run_gather_ranks(&b->job, &ranks));
    if (world->rank == 0) {
        if (!b->o->quiet) tsr_bench_multiply_print(b, ranks);
        if (b->o->json) status = write_json(b, ranks);
    }
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    if (b->o->trace) status = tsr_trace_save(b->job.trace, world->comm, ranks, NULL, b->o->trace, b->o->command);
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

static tsr_status run_bench(tsr_bench_multiply_run *b) {
    const tsr_bench_multiply_options *o = b->o;
    tsr_status status = TSR_OK;
    b->seconds = calloc((size_t)o->repeat, sizeof *b->seconds);
    if (!b->seconds) status = tsr_fail(TSR_ERR_MEMORY, "no memory for %" PRId64 " times: lower --repeat", o->repeat);
    if (status == TSR_OK && o->trace && b->world->rank == 0) status = tsr_trace_file_check(o->trace);
    if (status == TSR_OK && o->json && b->world->rank == 0) status = tsr_text_file_check(TSR_BENCH_JSON, o->json);
    TSR_TRY(tsr_agree(b->world->comm, status));
    TSR_TRY(measure(b));
    return report(b);
}

static tsr_dtype type_of_c(tsr_dtype input) {
    const tsr_dtype sums = tsr_dtype_compute(input);
    return tsr_dtype_is_complex(input) ? tsr_dtype_complex_of(sums) : sums;
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    tsr_bench_multiply_options o = {0};
    static const tsr_run_calls nobody = {0};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&command, argc, argv, &o)));
    TSR_TRY(tsr_agree(world->comm, tsr_text_file_resolve(&o.json)));
    TSR_TRY(tsr_agree(world->comm, tsr_text_file_resolve(&o.trace)));
    char *line = tsr_command_line(argc, argv);
    o.command = line ? line : "tessera bench multiply";
    tsr_bench_multiply_run b = {.o = &o,
                                .world = world,
                                .job = {.world = world,
                                        .products = {.count = 1},
                                        .calls = &nobody,
                                        .engine = o.engine,
                                        .limits = o.limits,
                                        .startup_marked = world->started_seconds},
                                .data = {.m = o.shape.m,
                                         .n = o.shape.n,
                                         .k = o.shape.k,
                                         .input = o.type,
                                         .type = type_of_c(o.type),
                                         .fill = o.fill,
                                         .memory = o.memory}};
    tsr_run_trace(&b.job, o.trace, false);
    tsr_run_mark(&b.job, TSR_STARTUP_MPI);
    tsr_status status = run_bench(&b);
    tsr_executor_close(b.job.executor);
    tsr_bench_operands_close(&b.data);
    tsr_trace_close(b.job.trace);
    if (status == TSR_OK) { /* else what is collective, and the device it uses, go with the process */
        if (b.job.grid.active) b.job.transport_ops->close(b.job.transport);
        status = tsr_grid_close(&b.job.grid);
        b.job.device->ops->close(b.job.device);
    }
    free(b.seconds);
    free(line);
    return status;
}

const tsr_bench tsr_bench_multiply = {"multiply", run, help, &command};
