/* What --dry-run shows on rank 0: the plan, and about how long it takes. */
#include <stdio.h>

#include "app/bench_product.h"
#include "app/multiply_job.h"
#include "app/place_chunks.h"

static void show_chunks(const tsr_job *j) {
    const tsr_output_spec *c = &j->spec;
    char filters[32] = "", text[32];
    if (c->chunk_rows == 0) return;
    if (c->gzip) snprintf(filters, sizeof filters, ", %sgzip(%d)", c->shuffle ? "shuffle, " : "", c->gzip_level);
    printf("chunks of C    %lld of %lldx%lld%s; encoding takes %s of host memory beside what follows\n",
           (long long)tsr_spec_chunks(c), (long long)c->chunk_rows, (long long)c->chunk_cols, filters,
           tsr_format_bytes((double)c->encode_bytes, text));
}

#define SAMPLE_EDGE 512 /* of the product that is measured: milliseconds on any CPU */

/* flop/s of the plan's kernel on this device with a product like the plan's, but small. Data is made for it. */
static tsr_status measure_kernel(const tsr_job *j, double *flops) {
    const tsr_plan *plan = &j->plan;
    tsr_bench_product product = {.input = j->kernel->input};
    product.m = tsr_min(SAMPLE_EDGE, tsr_plan_local_m(plan)), product.n = tsr_min(SAMPLE_EDGE, tsr_plan_local_n(plan));
    product.k = tsr_min(SAMPLE_EDGE, plan->panel);
    double seconds = 0;
    int64_t repeats;
    tsr_status status = tsr_bench_product_open(j->device, &product);
    if (status == TSR_OK) status = tsr_bench_product_time(&product, j->kernel, 3, &seconds, NULL, &repeats);
    if (status == TSR_OK) *flops = 2.0 * (double)product.m * (double)product.n * (double)product.k / seconds;
    tsr_bench_product_close(&product);
    return status;
}

/* A CPU's kernel is measured, because its speed is any; a GPU's is known or a typical one, like what files and links
 * give. */
static tsr_status show_prediction(const tsr_job *j) {
    tsr_plan plan = j->plan;
    tsr_prediction model;
    double *rate = plan.resources.rates.lane;
    const bool multiplies = plan.problem.k > 0 && plan.blocks_m > 0 && plan.blocks_n > 0;
    const char *from = "typical";
    if (j->facts.host_memory && multiplies) {
        TSR_TRY(measure_kernel(j, &rate[TSR_LANE_MULTIPLY]));
        from = "measured now";
    } else if (tsr_gemm_speed(j->kernel, &j->facts, plan.problem.m, plan.problem.n, plan.problem.k) > 0) {
        from = "as measured on such a device";
    }
    tsr_plan_predict(&plan, &model);
    int busiest = 0;
    for (int lane = 1; lane < TSR_LANE_COUNT; lane++)
        if (model.lane_seconds[lane] > model.lane_seconds[busiest]) busiest = lane;
    printf("predicted      %.3g s after start-up, bounded by %s; allow a job twice that\n", model.seconds,
           tsr_lane_name((tsr_lane)busiest));
    printf("rates a rank   multiply %.4g GFLOP/s (%s)\n", rate[TSR_LANE_MULTIPLY] / 1e9, from);
    printf("               read %g, write %g, exchange %g GB/s (typical)\n", rate[TSR_LANE_READ] / 1e9,
           rate[TSR_LANE_WRITE] / 1e9, rate[TSR_LANE_EXCHANGE] / 1e9);
    return TSR_OK;
}

tsr_status tsr_job_show_plan(const tsr_job *j) {
    if (j->world->rank != 0) return TSR_OK;
    if (j->settings->order == TSR_ORDER_COL)
        printf("order          col: planned as the files store it, C' = op(B)' op(A)': the first factor below is B\n");
    printf("kernel         %s (%s) on %s, accuracy %s, transport %s\n", j->kernel->name, j->kernel->what, j->facts.name,
           tsr_accuracy_name(tsr_gemm_loss(j->kernel, j->problem.a.element.dtype, j->problem.b.element.dtype)),
           j->transport_ops->name);
    char text[32];
    show_chunks(j);
    if (j->settings->trace)
        printf("trace          %s of host memory on the rank with the most steps, beside what follows\n",
               tsr_format_bytes(j->trace_bytes, text));
    TSR_TRY(tsr_plan_print(&j->plan, stdout));
    return show_prediction(j);
}
