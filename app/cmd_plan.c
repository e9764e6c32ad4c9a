/* tessera plan: what a product would take on a machine that a file describes, with as many GPUs as one likes. Nothing is multiplied. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench.h"
#include "app/options.h"
#include "io/text_file.h"
#include "mpi/machine.h"

#define RANKS_MOST 65536 /* every grid is looked at: beyond, that takes long */

enum { KEY_SHAPE = 1000, KEY_TYPE, KEY_RANKS, KEY_MACHINE, KEY_FILES, KEY_MEMORY, KEY_HOST_MEMORY, KEY_GRID, KEY_PANEL, KEY_JSON };

static const struct argp_option options[] = {
    {0, 0, 0, 0, "The product and the machine", 1},
    {"shape", KEY_SHAPE, "MxNxK", 0, "C (M x N) = A (M x K) B (K x N); one number N means NxNxN", 0},
    {"type", KEY_TYPE, "TYPE", 0, "Type of A, B: f64, f32 (default), f16 or bf16; C is f64 or f32", 0},
    {"ranks", KEY_RANKS, "N", 0, "GPUs, one rank each", 0},
    {"machine", KEY_MACHINE, "FILE", 0, "Its description, such as jobs/h200_example.machine", 0},
    {"files", KEY_FILES, "KIND", 0, "What A, B and C lie in: memory (default), where a piece of a row takes what its bytes take, or disk, any other file system", 0},
    {0, 0, 0, 0, "How (chosen unless given)", 2},
    {"memory", KEY_MEMORY, "SIZE", 0, "Device memory a rank may use: bytes, 4G or 80% (90%)", 0},
    {"host-memory", KEY_HOST_MEMORY, "SIZE", 0, "Host memory a rank may use: bytes, 4G or a share of its part of the node's (80%)", 0},
    {"grid", KEY_GRID, "PxQ[xR]", 0, "Ranks over m, n and k, or auto", 0},
    {"panel", KEY_PANEL, "K", 0, "k of one step", 0},
    {0, 0, 0, 0, "What it shows", 3},
    {"json", KEY_JSON, "FILE", 0, "Write the prediction as JSON, too; - is standard output", 0},
    {0}};

typedef struct {
    int64_t m, n, k, ranks, panel;
    tsr_dtype type;
    bool on_disk;
    const char *machine, *json; /* not owned */
    size_t memory_bytes, host_memory_bytes;
    double memory_percent, host_memory_percent;
    int grid[3];
} plan_options;

static tsr_status parse_type(const char *text, tsr_dtype *type) {
    TSR_TRY(tsr_dtype_parse(text, type));
    if (*type != TSR_F64 && *type != TSR_F32 && *type != TSR_F16 && *type != TSR_BF16)
        return tsr_fail(TSR_ERR_USAGE, "--type %s: a prediction is made for f64, f32, f16 and bf16", text);
    return TSR_OK;
}

static tsr_status parse_files(const char *text, bool *on_disk) {
    if (strcmp(text, "disk") != 0 && strcmp(text, "memory") != 0) return tsr_fail(TSR_ERR_USAGE, "--files '%s': use disk or memory", text);
    *on_disk = *text == 'd';
    return TSR_OK;
}

static tsr_status parse_one(int key, char *text, plan_options *o) {
    switch (key) {
    case KEY_SHAPE: return tsr_parse_product("--shape", text, &o->m, &o->n, &o->k);
    case KEY_TYPE: return parse_type(text, &o->type);
    case KEY_RANKS: return tsr_parse_int("--ranks", text, 1, RANKS_MOST, &o->ranks);
    case KEY_MACHINE: o->machine = text; return TSR_OK;
    case KEY_FILES: return parse_files(text, &o->on_disk);
    case KEY_MEMORY: return tsr_parse_memory("--memory", text, &o->memory_bytes, &o->memory_percent);
    case KEY_HOST_MEMORY: return tsr_parse_memory("--host-memory", text, &o->host_memory_bytes, &o->host_memory_percent);
    case KEY_GRID: return tsr_parse_grid("--grid", text, o->grid);
    case KEY_PANEL: return tsr_parse_int("--panel", text, 1, INT64_MAX, &o->panel);
    case KEY_JSON: o->json = text; return TSR_OK;
    default: return TSR_OK;
    }
}

static error_t parse(int key, char *text, struct argp_state *state) {
    plan_options *o = state->input;
    tsr_status status = TSR_OK;
    if (key == ARGP_KEY_END) {
        if (o->m == 0) status = tsr_fail(TSR_ERR_USAGE, "plan: the product is needed: --shape MxNxK");
        else if (o->ranks == 0) status = tsr_fail(TSR_ERR_USAGE, "plan: how many GPUs is needed: --ranks N");
        else if (!o->machine) status = tsr_fail(TSR_ERR_USAGE, "plan: a machine is needed: --machine FILE, such as jobs/h200_example.machine");
    } else if (key >= KEY_SHAPE && key <= KEY_JSON) {
        status = parse_one(key, text, o);
    } else {
        return ARGP_ERR_UNKNOWN;
    }
    return status == TSR_OK ? 0 : EINVAL;
}

static const struct argp argp = {options, parse, "", "Predicts C = A B from files to a file on a machine that need not be there: grid, memory, bytes, seconds a lane and in "
                                 "all. A prediction, from the machine's description alone.", NULL, NULL, NULL};

static void help(const char *part) {
    (void)part;
    tsr_options_help(&argp, "tessera plan",
                     "tessera plan --shape 100000 --ranks 64 --machine jobs/h200_example.machine");
}

/* ---- the prediction -------------------------------------------------------------------------------------------------- */

typedef struct {
    const plan_options *options;
    tsr_plan plan, fewest;
    tsr_prediction model, fewest_model;
    int active;
    double bound_bytes; /* exchanged by the busiest rank, at least */
    double efficiency;  /* all GPUs' seconds for the flops / predicted seconds */
} answer;

static tsr_status make_problem(const plan_options *o, tsr_problem *problem) {
    tsr_element element = {o->type, false};
    tsr_operand a = {o->m, o->k, element, false, TSR_ROAD_HOST}, b = {o->k, o->n, element, false, TSR_ROAD_HOST};
    size_t bytes;
    TSR_TRY(tsr_bytes_checked(o->m, o->k, 8, &bytes));
    TSR_TRY(tsr_bytes_checked(o->k, o->n, 8, &bytes));
    TSR_TRY(tsr_bytes_checked(o->m, o->n, 8, &bytes));
    TSR_TRY(tsr_problem_make(a, b, NULL, 1, 0, problem));
    problem->input = o->type;
    problem->a_on_disk = problem->b_on_disk = problem->c_on_disk = o->on_disk;
    return TSR_OK;
}

static tsr_status predict(const plan_options *o, answer *to) {
    tsr_machine machine;
    tsr_problem problem;
    tsr_resources res;
    TSR_TRY(make_problem(o, &problem));
    TSR_TRY(tsr_machine_read(o->machine, &machine));
    TSR_TRY(tsr_machine_resources(&machine, o->machine, (int)o->ranks, o->type, &res));
    res.device_limit = o->memory_bytes ? o->memory_bytes : (size_t)((double)res.device_limit * o->memory_percent / 100);
    res.host_limit = o->host_memory_bytes ? o->host_memory_bytes : (size_t)((double)res.host_limit * o->host_memory_percent / 100);
    res.panel = o->panel;
    for (int i = 0; i < 3; i++) res.grid[i] = o->grid[i];
    *to = (answer){.options = o};
    TSR_TRY(tsr_plan_make(&problem, &res, &to->plan));
    tsr_plan_predict(&to->plan, &to->model);
    tsr_plan_fewest_bytes(&to->plan, &to->fewest);
    tsr_plan_predict(&to->fewest, &to->fewest_model);
    to->active = to->plan.p * to->plan.q * to->plan.r;
    to->bound_bytes = tsr_exchange_bound(&problem, to->active);
    to->efficiency = 2.0 * (double)o->m * (double)o->n * (double)o->k / ((double)o->ranks * res.rates.lane[TSR_LANE_MULTIPLY]) / to->model.seconds;
    return TSR_OK;
}

static tsr_lane busiest(const tsr_prediction *model) {
    tsr_lane most = TSR_LANE_READ;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        if (model->lane_seconds[lane] > model->lane_seconds[most]) most = (tsr_lane)lane;
    return most;
}

static void print_text(const answer *a) {
    const plan_options *o = a->options;
    printf("machine        %s: %" PRId64 " GPUs, %d a node, files %s; a prediction, nothing was run\n", o->machine, o->ranks, a->plan.resources.rates.node_ranks,
           o->on_disk ? "on a disk" : "in memory");
    tsr_plan_print_choices(&a->plan, stdout);
    printf("lane           busiest rank        seconds\n");
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        char text[32];
        if (lane == TSR_LANE_MULTIPLY) snprintf(text, sizeof text, "%.4g GFLOP", a->model.flops / 1e9);
        else tsr_format_bytes(a->model.lane_bytes[lane], text);
        printf("  %-10s %14s %14.4g\n", tsr_lane_name((tsr_lane)lane), text, a->model.lane_seconds[lane]);
    }
    tsr_plan_print_exchange(&a->plan, &a->fewest, stdout);
    printf("predicted      %.4g s, bounded by %s; %.1f %% of all GPUs' multiplication rate (%.4g of %.4g TFLOP/s)\n", a->model.seconds, tsr_lane_name(busiest(&a->model)),
           100 * a->efficiency, 2e-12 * (double)o->m * (double)o->n * (double)o->k / a->model.seconds,
           1e-12 * (double)o->ranks * a->plan.resources.rates.lane[TSR_LANE_MULTIPLY]);
}

static void json_grid(FILE *to, const char *name, const tsr_plan *plan) { fprintf(to, "\"%s\": [%d, %d, %d]", name, plan->p, plan->q, plan->r); }

static void json_number(FILE *to, const char *name, double value) {
    fprintf(to, ",\n  \"%s\": ", name);
    tsr_bench_json_number(to, value);
}

static void json_bytes(FILE *to, const char *name, double bytes) { fprintf(to, ",\n  \"%s\": %.0f", name, bytes); } /* whole, not rounded to some digits */

static void print_json(const answer *a, FILE *to) {
    const plan_options *o = a->options;
    const tsr_plan *plan = &a->plan;
    fprintf(to, "{\n  \"format\": %d,\n  \"machine\": ", TSR_RECORD_FORMAT);
    tsr_json_string(to, o->machine);
    fprintf(to, ",\n  \"m\": %" PRId64 ", \"n\": %" PRId64 ", \"k\": %" PRId64 ", \"type\": \"%s\", \"files\": \"%s\",\n  \"ranks\": %" PRId64 ", \"ranks_at_work\": %d, \"ranks_a_node\": %d,\n  ", o->m, o->n, o->k,
            tsr_dtype_name(o->type), o->on_disk ? "disk" : "memory", o->ranks, a->active, plan->resources.rates.node_ranks);
    json_grid(to, "grid", plan);
    fprintf(to, ", \"super_blocks\": [%" PRId64 ", %" PRId64 "], \"super_block\": [%" PRId64 ", %" PRId64 "], \"panel\": %" PRId64 ", \"strip\": %" PRId64, plan->blocks_m, plan->blocks_n, plan->block_m,
            plan->block_n, plan->panel, plan->strip);
    json_bytes(to, "device_bytes", plan->device_bytes);
    json_bytes(to, "host_bytes", plan->host_bytes);
    fprintf(to, ",\n  \"lanes\": {");
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        fprintf(to, "%s\n    \"%s\": {\"seconds\": ", lane ? "," : "", tsr_lane_name((tsr_lane)lane));
        tsr_bench_json_number(to, a->model.lane_seconds[lane]);
        fprintf(to, ", \"%s\": %.0f}", lane == TSR_LANE_MULTIPLY ? "flops" : "bytes", lane == TSR_LANE_MULTIPLY ? a->model.flops : a->model.lane_bytes[lane]);
    }
    fprintf(to, "\n  },\n  \"bounded_by\": \"%s\"", tsr_lane_name(busiest(&a->model)));
    json_number(to, "seconds", a->model.seconds);
    json_number(to, "efficiency", a->efficiency);
    json_bytes(to, "exchange_bytes", a->model.lane_bytes[TSR_LANE_EXCHANGE]);
    json_bytes(to, "exchange_bound_bytes", a->bound_bytes);
    json_number(to, "exchange_ratio", a->model.lane_bytes[TSR_LANE_EXCHANGE] / a->bound_bytes); /* null where none is needed */
    fprintf(to, ",\n  \"fewest_bytes\": {");
    json_grid(to, "grid", &a->fewest);
    json_bytes(to, "exchange_bytes", a->fewest_model.lane_bytes[TSR_LANE_EXCHANGE]);
    json_number(to, "seconds", a->fewest_model.seconds);
    fprintf(to, "}\n}\n");
}

/* Local: on rank 0. */
static tsr_status show(const plan_options *o) {
    answer a;
    FILE *to;
    TSR_TRY(predict(o, &a));
    print_text(&a);
    if (!o->json) return TSR_OK;
    TSR_TRY(tsr_bench_json_open(o->json, &to));
    print_json(&a, to);
    return tsr_bench_json_close(to, o->json);
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    plan_options o = {.type = TSR_F32, .memory_percent = 90, .host_memory_percent = 80};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&argp, argc, argv, &o)));
    TSR_TRY(tsr_agree(world->comm, tsr_text_file_resolve(&o.json)));
    const bool writes = o.json && !tsr_text_file_is_special(o.json);
    if (writes) TSR_TRY(tsr_agree(world->comm, tsr_world_check_launcher(world)));
    return tsr_agree(world->comm, world->rank == 0 ? show(&o) : TSR_OK);
}

const tsr_command tsr_cmd_plan = {
    .name = "plan",
    .what = "predicts a product on N GPUs of a machine that a file describes",
    .run = run, .help = help, .alone = true,
};
