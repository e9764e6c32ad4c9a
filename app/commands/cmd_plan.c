/* tessera plan: what a product would take on a machine that a file describes, with as many GPUs as one likes.
 * Nothing is multiplied. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/bench.h"
#include "app/library/planning/reproducible.h"
#include "app/tessera_options.h"
#include "io/text/text.h"
#include "io/text/text_file.h"
#include "mpi/plan/machine.h"
#include "mpi/plan/predict.h"
#include "mpi/plan/print.h"
#include "mpi/schedule/schedule.h"

#define RANKS_MOST 65536 /* every grid is looked at: beyond, that takes long */
#define COUNTS_MOST 18   /* powers of two up to it, and one that is none */

typedef struct {
    tsr_product_shape shape;
    int64_t ranks, panel;
    tsr_dtype type;
    bool on_disk, scaling, reproducible;
    const char *machine, *json; /* not owned */
    tsr_memory_limit memory, host_memory;
    int grid[3];
    const tsr_schedule_ops *schedule; /* NULL: chosen */
} plan_options;

static tsr_status read_files(const tsr_option *option, const char *text, void *field) {
    (void)option;
    *(bool *)field = strcmp(text, "disk") == 0;
    if (*(bool *)field || strcmp(text, "memory") == 0) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "--files '%s': use disk or memory", text);
}

#define AT(member) offsetof(plan_options, member)

static const tsr_option options[] = {
    {.help = "The product and the machine", .group = 1},
    {.shared = &tsr_option_product,
     .help = "C (M x N) = A (M x K) B (K x N); one number N means NxNxN",
     .field = AT(shape)},
    {.shared = &tsr_option_operand_type,
     .help = "Type of A, B: f64, f32 (default), f16, bf16, c64 or c128; C is f64, f32, c64 or c128",
     .field = AT(type)},
    {.name = "ranks",
     .value = "N",
     .help = "GPUs, one rank each",
     .read = tsr_read_whole,
     .low = 1,
     .high = RANKS_MOST,
     .field = AT(ranks)},
    {.shared = &tsr_option_machine, .field = AT(machine)},
    {.name = "files",
     .choices = "memory disk",
     .value = "KIND",
     .help = "What A, B and C lie in: memory (default), where a piece of a row takes what its bytes take, or disk, any "
             "other file system",
     .read = read_files,
     .field = AT(on_disk)},
    {.help = "How (chosen unless given)", .group = 2},
    {.shared = &tsr_option_memory,
     .value = "SIZE",
     .help = "Device memory a rank may use: bytes, 4G or 80% (90%)",
     .field = AT(memory)},
    {.shared = &tsr_option_host_memory,
     .value = "SIZE",
     .help = "Host memory a rank may use: bytes, 4G or a share of its part of the node's (80%)",
     .field = AT(host_memory)},
    {.shared = &tsr_option_grid, .help = "Ranks over m, n and k, or auto", .field = AT(grid)},
    {.shared = &tsr_option_panel, .help = "k of one step", .field = AT(panel)},
    {.shared = &tsr_option_schedule, .field = AT(schedule)},
    {.shared = &tsr_option_reproducible, .field = AT(reproducible)},
    {.help = "What it shows", .group = 3},
    {.name = "scaling",
     .help = "Also predict it on 1, 2, 4, ... GPUs, up to --ranks",
     .read = tsr_read_flag,
     .field = AT(scaling)},
    {.shared = &tsr_option_json, .help = "Write the prediction as JSON, too; - is standard output", .field = AT(json)},
    {0}};

static tsr_status check(void *to) {
    const plan_options *o = to;
    if (o->shape.m == 0) return tsr_fail(TSR_ERR_USAGE, "plan: the product is needed: --shape MxNxK");
    if (o->ranks == 0) return tsr_fail(TSR_ERR_USAGE, "plan: how many GPUs is needed: --ranks N");
    if (o->machine) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "plan: a machine is needed: --machine FILE, such as jobs/h200_example.machine");
}

static const tsr_options command = {
    .options = options,
    .arguments = "",
    .what = "Predicts C = A B from files to a file on a machine that need not be there: grid, memory, bytes, seconds a "
            "lane and in all. A prediction, from the machine's description alone.",
    .check = check};

static void help(const char *part) {
    (void)part;
    tsr_options_help(&command, "tessera plan",
                     "tessera plan --shape 100000 --ranks 64 --machine jobs/h200_example.machine");
}

/* ---- the prediction -------------------------------------------------------------------------- */

/* On one number of GPUs. */
typedef struct {
    int64_t ranks;
    int grid[3];
    tsr_prediction model;
    double efficiency;
} count_answer;

typedef struct {
    const plan_options *options;
    count_answer counts[COUNTS_MOST]; /* count of them */
    int count;
    tsr_plan plan, fewest;
    tsr_prediction model, fewest_model;
    int active;
    double bound_bytes; /* exchanged by the busiest rank, at least */
    double efficiency;  /* all GPUs' seconds for the flops / predicted seconds */
} answer;

static tsr_status make_problem(const plan_options *o, tsr_problem *problem) {
    tsr_element element = {o->type, false};
    tsr_operand a = {.rows = o->shape.m, .cols = o->shape.k, .element = element},
                b = {.rows = o->shape.k, .cols = o->shape.n, .element = element};
    size_t bytes;
    a.on_disk = b.on_disk = o->on_disk;
    a.copied = b.copied = !o->on_disk;
    TSR_TRY(tsr_bytes_checked(o->shape.m, o->shape.k, TSR_ELEMENT_BYTES_MAX, &bytes));
    TSR_TRY(tsr_bytes_checked(o->shape.k, o->shape.n, TSR_ELEMENT_BYTES_MAX, &bytes));
    TSR_TRY(tsr_bytes_checked(o->shape.m, o->shape.n, TSR_ELEMENT_BYTES_MAX, &bytes));
    TSR_TRY(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(0), problem));
    problem->input = o->reproducible ? problem->type : tsr_dtype_part(o->type);
    problem->c_on_disk = o->on_disk;
    if (o->reproducible) tsr_reproducible_cut(problem, TSR_REPRODUCIBLE_KERNEL);
    return TSR_OK;
}

static tsr_status find_resources(const plan_options *o, const tsr_machine *machine, const tsr_problem *problem,
                                 int ranks, tsr_resources *res) {
    TSR_TRY(tsr_machine_resources(machine, o->machine, ranks, tsr_dtype_part(o->type), res));
    if (o->reproducible) tsr_reproducible_room(problem, res);
    if (o->memory.bytes) res->device_limit = o->memory.bytes;
    else res->device_limit = (size_t)((double)res->device_limit * o->memory.percent / 100);
    if (o->host_memory.bytes) res->host_limit = o->host_memory.bytes;
    else res->host_limit = (size_t)((double)res->host_limit * o->host_memory.percent / 100);
    res->panel = o->panel;
    res->schedule = o->schedule;
    return TSR_OK;
}

/* All GPUs' seconds for the flops over the predicted seconds. */
static double efficiency(const tsr_plan *plan, const tsr_prediction *model, int64_t ranks) {
    const double rate = (double)ranks * plan->resources.rates.lane[TSR_LANE_MULTIPLY];
    return tsr_problem_flops(&plan->problem) / rate / model->seconds;
}

static tsr_status predict(const plan_options *o, answer *to) {
    tsr_machine machine;
    tsr_problem problem;
    tsr_resources res;
    TSR_TRY(make_problem(o, &problem));
    TSR_TRY(tsr_machine_read(o->machine, &machine));
    TSR_TRY(find_resources(o, &machine, &problem, (int)o->ranks, &res));
    for (int i = 0; i < 3; i++) res.grid[i] = o->grid[i];
    *to = (answer){.options = o};
    TSR_TRY(tsr_plan_make(&problem, &res, &to->plan));
    tsr_plan_predict(&to->plan, &to->model);
    tsr_plan_fewest_bytes(&to->plan, &to->fewest);
    tsr_plan_predict(&to->fewest, &to->fewest_model);
    to->active = to->plan.p * to->plan.q * to->plan.r;
    to->bound_bytes = tsr_exchange_bound(&problem, to->active);
    to->efficiency = efficiency(&to->plan, &to->model, o->ranks);
    if (!o->scaling) return TSR_OK;
    for (int64_t ranks = 1; ranks < 2 * o->ranks; ranks *= 2) {
        count_answer *at = &to->counts[to->count++];
        tsr_plan plan;
        at->ranks = tsr_min(ranks, o->ranks);
        TSR_TRY(find_resources(o, &machine, &problem, (int)at->ranks, &res));
        TSR_TRY(tsr_plan_make(&problem, &res, &plan));
        tsr_plan_predict(&plan, &at->model);
        at->grid[0] = plan.p;
        at->grid[1] = plan.q;
        at->grid[2] = plan.r;
        at->efficiency = efficiency(&plan, &at->model, at->ranks);
    }
    return TSR_OK;
}

static void print_scaling(const answer *a) {
    printf("\n%6s %16s %12s %10s %11s  bounded by\n", "GPUs", "grid", "seconds", "TFLOP/s", "efficiency");
    for (const count_answer *at = a->counts; at < a->counts + a->count; at++) {
        char grid[40];
        snprintf(grid, sizeof grid, "%d x %d x %d", at->grid[0], at->grid[1], at->grid[2]);
        printf("%6" PRId64 " %16s %12.4g %10.4g %9.1f %%  %s\n", at->ranks, grid, at->model.seconds,
               1e-12 * tsr_problem_flops(&a->plan.problem) / at->model.seconds, 100 * at->efficiency,
               tsr_lane_name(tsr_prediction_busiest(&at->model)));
    }
}

static void print_text(const answer *a) {
    const plan_options *o = a->options;
    printf("machine        ");
    tsr_text_put(stdout, o->machine);
    printf(": %" PRId64 " GPUs, %d a node, files %s; a prediction, nothing was run\n", o->ranks,
           a->plan.resources.rates.node_ranks, o->on_disk ? "on a disk" : "in memory");
    tsr_plan_print_choices(&a->plan, stdout);
    printf("lane           busiest rank        seconds\n");
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        char text[32];
        if (lane == TSR_LANE_MULTIPLY) snprintf(text, sizeof text, "%.4g GFLOP", a->model.flops / 1e9);
        else tsr_format_bytes(a->model.lane_bytes[lane], text);
        printf("  %-10s %14s %14.4g\n", tsr_lane_name((tsr_lane)lane), text, a->model.lane_seconds[lane]);
    }
    tsr_plan_print_exchange(&a->plan, &a->fewest, stdout);
    printf("predicted      %.4g s, bounded by %s; %.1f %% of all GPUs' multiplication rate (%.4g of %.4g TFLOP/s)\n",
           a->model.seconds, tsr_lane_name(tsr_prediction_busiest(&a->model)), 100 * a->efficiency,
           1e-12 * tsr_problem_flops(&a->plan.problem) / a->model.seconds,
           1e-12 * (double)o->ranks * a->plan.resources.rates.lane[TSR_LANE_MULTIPLY]);
    if (o->scaling) print_scaling(a);
}

static void json_grid(FILE *to, const char *name, const tsr_plan *plan) {
    fprintf(to, "\"%s\": [%d, %d, %d]", name, plan->p, plan->q, plan->r);
}

static void json_number(FILE *to, const char *name, double value) {
    fprintf(to, ",\n  \"%s\": ", name);
    tsr_bench_json_number(to, value);
}

/* Whole, not rounded to some digits. */
static void json_whole(FILE *to, const char *name, double value) { fprintf(to, ",\n  \"%s\": %.0f", name, value); }

static void print_json_count(FILE *to, const count_answer *at) {
    fprintf(to, "{\"ranks\": %" PRId64 ", \"grid\": [%d, %d, %d], \"seconds\": ", at->ranks, at->grid[0], at->grid[1],
            at->grid[2]);
    tsr_bench_json_number(to, at->model.seconds);
    fprintf(to, ", \"efficiency\": ");
    tsr_bench_json_number(to, at->efficiency);
    fprintf(to, ", \"bounded_by\": \"%s\", \"lanes\": {", tsr_lane_name(tsr_prediction_busiest(&at->model)));
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        fprintf(to, "%s\"%s\": ", lane ? ", " : "", tsr_lane_name((tsr_lane)lane));
        tsr_bench_json_number(to, at->model.lane_seconds[lane]);
    }
    fprintf(to, "}}");
}

static void print_json(const answer *a, FILE *to) {
    const plan_options *o = a->options;
    const tsr_plan *plan = &a->plan;
    fprintf(to, "{\n  \"format\": %d,\n  \"version\": \"%s\",\n  \"machine\": ", TSR_RECORD_FORMAT, TSR_VERSION);
    tsr_json_string(to, o->machine);
    fprintf(to,
            ",\n  \"m\": %" PRId64 ", \"n\": %" PRId64 ", \"k\": %" PRId64
            ", \"type\": \"%s\", \"files\": \"%s\",\n  \"ranks\": %" PRId64
            ", \"ranks_at_work\": %d, \"ranks_a_node\": %d,\n  ",
            o->shape.m, o->shape.n, o->shape.k, tsr_dtype_name(o->type), o->on_disk ? "disk" : "memory", o->ranks,
            a->active, plan->resources.rates.node_ranks);
    json_grid(to, "grid", plan);
    fprintf(to,
            ", \"super_blocks\": [%" PRId64 ", %" PRId64 "], \"super_block\": [%" PRId64 ", %" PRId64
            "], \"panel\": %" PRId64 ", \"strip\": %" PRId64,
            plan->blocks_m, plan->blocks_n, plan->block_m, plan->block_n, plan->panel, plan->strip);
    fprintf(to, ", \"schedule\": \"%s\"", plan->schedule->name);
    if (o->reproducible) fprintf(to, ", \"reproducible\": true");
    json_whole(to, "device_bytes", plan->device_bytes);
    json_whole(to, "host_bytes", plan->host_bytes);
    fprintf(to, ",\n  \"lanes\": {");
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        fprintf(to, "%s\n    \"%s\": {\"seconds\": ", lane ? "," : "", tsr_lane_name((tsr_lane)lane));
        tsr_bench_json_number(to, a->model.lane_seconds[lane]);
        fprintf(to, ", \"%s\": %.0f}", lane == TSR_LANE_MULTIPLY ? "flops" : "bytes",
                lane == TSR_LANE_MULTIPLY ? a->model.flops : a->model.lane_bytes[lane]);
    }
    fprintf(to, "\n  },\n  \"bounded_by\": \"%s\"", tsr_lane_name(tsr_prediction_busiest(&a->model)));
    json_number(to, "seconds", a->model.seconds);
    json_whole(to, "flops", tsr_problem_flops(&plan->problem));
    json_number(to, "efficiency", a->efficiency);
    json_whole(to, "exchange_bytes", a->model.lane_bytes[TSR_LANE_EXCHANGE]);
    json_whole(to, "exchange_bound_bytes", a->bound_bytes);
    /* null where none is needed */
    json_number(to, "exchange_ratio", a->model.lane_bytes[TSR_LANE_EXCHANGE] / a->bound_bytes);
    fprintf(to, ",\n  \"fewest_bytes\": {");
    json_grid(to, "grid", &a->fewest);
    json_whole(to, "exchange_bytes", a->fewest_model.lane_bytes[TSR_LANE_EXCHANGE]);
    json_number(to, "seconds", a->fewest_model.seconds);
    fprintf(to, "}");
    for (int i = 0; i < a->count; i++) {
        fprintf(to, i ? ",\n    " : ",\n  \"scaling\": [\n    ");
        print_json_count(to, &a->counts[i]);
    }
    fprintf(to, a->count ? "\n  ]\n}\n" : "\n}\n");
}

/* Local: on rank 0. */
static tsr_status show(const plan_options *o) {
    answer a;
    tsr_text_file to;
    TSR_TRY(predict(o, &a));
    print_text(&a);
    if (!o->json) return TSR_OK;
    TSR_TRY(tsr_text_file_open(TSR_BENCH_JSON, o->json, &to));
    print_json(&a, to.to);
    return tsr_text_file_close(&to, 0);
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    plan_options o = {0};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&command, argc, argv, &o)));
    TSR_TRY(tsr_agree(world->comm, tsr_text_file_resolve(&o.json)));
    const bool writes = o.json && !tsr_text_file_is_special(o.json);
    if (writes) TSR_TRY(tsr_agree(world->comm, tsr_world_check_launcher(world)));
    return tsr_agree(world->comm, world->rank == 0 ? show(&o) : TSR_OK);
}

const tsr_command tsr_cmd_plan = {
    .name = "plan",
    .what = "predicts a product on N GPUs of a machine that a file describes",
    .run = run,
    .help = help,
    .options = &command,
    .alone = true,
};
