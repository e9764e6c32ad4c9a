/* What --dry-run shows (dry_run.h). */
#include "app/library/api/dry_run.h"

#include "app/bench/bench_product.h"
#include "app/library/run_state.h"
#include "io/output/output_chunks.h"
#include "io/text/text.h"
#include "mpi/plan/predict.h"
#include "mpi/plan/print.h"

static void show_chunks(const tsr_run *run, FILE *to) {
    const tsr_output_spec *c = &run->spec;
    char filters[160] = "", text[32];
    if (c->chunk_rows == 0) return;
    const tsr_pipeline pipeline = tsr_output_pipeline(c);
    for (int f = 0; f < pipeline.count; f++)
        tsr_text_append(filters, sizeof filters, ", %s", tsr_filter_text(&pipeline.use[f], text, sizeof text));
    fprintf(to, "chunks of C    %lld of %lldx%lld%s; encoding takes %s of host memory beside what follows\n",
            (long long)tsr_spec_chunks(c), (long long)c->chunk_rows, (long long)c->chunk_cols, filters,
            tsr_format_bytes((double)c->encode_bytes, text));
}

#define SAMPLE_EDGE 512 /* of the product that is measured: milliseconds on any CPU */

/* flop/s of the plan's kernel on this device with a product like the plan's, but small. Data is made for it. */
static tsr_status measure_kernel(const tsr_run *run, double *flops) {
    const tsr_plan *plan = &run->plan;
    tsr_bench_product product = {.input = run->kernel->input};
    product.m = tsr_min(SAMPLE_EDGE, tsr_plan_local_m(plan));
    product.n = tsr_min(SAMPLE_EDGE, tsr_plan_local_n(plan));
    product.k = tsr_min(SAMPLE_EDGE, plan->panel);
    double seconds = 0;
    int64_t repeats;
    tsr_status status = tsr_bench_product_open(run->device, &product);
    if (status == TSR_OK) status = tsr_bench_product_time(&product, run->kernel, 3, &seconds, NULL, &repeats);
    if (status == TSR_OK) *flops = 2.0 * (double)product.m * (double)product.n * (double)product.k / seconds;
    tsr_bench_product_close(&product);
    return status;
}

/* A CPU's kernel is measured, because its speed is any; a GPU's is known or a typical one, like what files and links
 * give. */
static tsr_status show_prediction(const tsr_run *run, FILE *to) {
    tsr_plan plan = run->plan;
    tsr_prediction model;
    const tsr_extents all = tsr_problem_real_product(&plan.problem);
    double *rate = plan.resources.rates.lane;
    const bool multiplies = plan.problem.k > 0 && plan.blocks_m > 0 && plan.blocks_n > 0;
    const char *from = "typical";
    if (run->facts.host_memory && multiplies) {
        TSR_TRY(measure_kernel(run, &rate[TSR_LANE_MULTIPLY]));
        from = "measured now";
    } else if (tsr_gemm_speed(run->kernel, &run->facts, all.m, all.n, all.k) > 0) {
        from = "as measured on such a device";
    }
    tsr_plan_predict(&plan, &model);
    const double rounds = (double)tsr_ceil_div(tsr_run_rounds(run), run->teams);
    const double moved = tsr_run_move_seconds(run);
    const bool moves = moved > rounds * model.lane_seconds[tsr_prediction_busiest(&model)];
    fprintf(to, "predicted      %.3g s after start-up, bounded by %s; allow a job twice that\n",
            rounds * model.seconds + moved, moves ? "redistribution" : tsr_lane_name(tsr_prediction_busiest(&model)));
    fprintf(to, "rates a rank   multiply %.4g GFLOP/s (%s)\n", rate[TSR_LANE_MULTIPLY] / 1e9, from);
    fprintf(to, "               read %g, write %g, exchange %g GB/s (typical)\n", rate[TSR_LANE_READ] / 1e9,
            rate[TSR_LANE_WRITE] / 1e9, rate[TSR_LANE_EXCHANGE] / 1e9);
    return TSR_OK;
}

/* Products of a stack that a rank makes at a time; 1 unless they are planned so. */
static int64_t group_of(const tsr_run *run) {
    const tsr_problem *x = &run->problem;
    return x->batch > 1 ? tsr_plan_local_m(&run->plan) / tsr_problem_product_rows(x) : 1;
}

/* Which kernel makes the products of a whole panel, and of the last one of k where that is shorter. */
static void show_products(const tsr_run *run, FILE *to) {
    const tsr_plan *plan = &run->plan;
    const int64_t multiple = run->kernel->multiple, all = tsr_plan_local_k(plan);
    const int64_t batch = group_of(run);
    const tsr_extents reals = tsr_problem_reals(&plan->problem);
    const int64_t m = reals.m * tsr_round_up(tsr_plan_local_m(plan) / batch, multiple),
                  n = reals.n * tsr_round_up(tsr_plan_local_n(plan), multiple);
    const int64_t depths[] = {reals.k * tsr_round_up(tsr_min(plan->panel, all), multiple),
                              reals.k * tsr_round_up(all % plan->panel, multiple)};
    char text[TSR_GEMM_TEXT];
    if (m == 0 || n == 0) return;
    for (int i = 0; i < 2; i++)
        if (depths[i] > 0 && (i == 0 || depths[1] < depths[0]))
            fprintf(to, "%-14s %lld x %lld x %lld: %s\n", i == 0 ? "products" : "", (long long)m, (long long)n,
                    (long long)depths[i], tsr_gemm_explain(run->kernel, batch, m, n, depths[i], text));
}

/* Matrices in memory on their way to where the plan reads them, and back. */
static void show_moves(const tsr_run *run, FILE *to) {
    static const char *const names[TSR_RUN_MOVES] = {"A", "B", "C0", "C"};
    char most[32], all[32];
    for (int i = 0; i < TSR_RUN_MOVES; i++)
        if (run->moves[i].all > 0)
            fprintf(to, "redistribute   %s in exchange: %s into the busiest rank, %s of all ranks\n",
                    names[i < 2 && run->swapped ? 1 - i : i], tsr_format_bytes(run->moves[i].most, most),
                    tsr_format_bytes(run->moves[i].all, all));
    if (run->memory_bytes > 0)
        fprintf(to, "redistribute   takes %s of host memory a rank, beside what follows\n",
                tsr_format_bytes(run->memory_bytes, all));
}

tsr_status tsr_dry_run_print(const tsr_run *run, FILE *to) {
    if (run->world->rank != 0) return TSR_OK;
    if (run->swapped)
        fprintf(to,
                "order          col: planned as the files store it, C' = op(B)' op(A)': the first factor below is B\n");
    fprintf(to, "kernel         %s (%s) on %s, accuracy %s, transport %s\n", run->kernel->name, run->kernel->what,
            run->facts.name, tsr_accuracy_name(tsr_run_loss(run)), run->transport_ops->name);
    char text[32], why[TSR_GEMM_TEXT];
    fprintf(to, "kernel choice  %s\n",
            tsr_gemm_explain_choice(run->engine.kernel, &run->facts, &run->request, run->kernel, why));
    if (run->problem.batch > 1)
        fprintf(to, "products       %lld, a rank makes %lld at a time\n", (long long)run->products.count,
                (long long)group_of(run));
    else if (run->products.count != 1)
        fprintf(to, "products       %lld, shared by %d team%s of %d rank%s\n", (long long)run->products.count,
                run->teams, run->teams == 1 ? "" : "s", tsr_run_team_ranks(run),
                tsr_run_team_ranks(run) == 1 ? "" : "s");
    show_products(run, to);
    show_chunks(run, to);
    if (run->traced)
        fprintf(to, "trace          %s of host memory on the rank with the most steps, beside what follows\n",
                tsr_format_bytes(run->trace_bytes, text));
    show_moves(run, to);
    TSR_TRY(tsr_plan_print(&run->plan, to));
    return show_prediction(run, to);
}
