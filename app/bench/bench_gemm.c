/* tessera bench gemm: one kernel, or the ladder, on one device: median speed over repeats between device events,
 * what its algorithm moves, how it fills the device, its error against sums in long double, and the vendor library
 * beside it in the same run.
 * Rank 0 measures; A and B are uniform in [0, 1), so that where they are real the error relative to |A||B| is
 * also that relative to the element. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/bench.h"
#include "app/bench/bench_product.h"
#include "app/tessera_options.h"
#include "io/text/text_file.h"
#include "kernels/gemm/gemm.h"

#define SAMPLES 64 /* elements of C recomputed */
#define MOST_KERNELS 64
#define MOST_ROUNDS 99

/* ---- options --------------------------------------------------------------------------------- */

typedef struct {
    const char *kernel, *device, *json;
    bool quiet;
    tsr_product_shape shape;
    int64_t batch, repeat, rounds;
    tsr_dtype type;
    bool all, explain;
} bench_options;

#define AT(member) offsetof(bench_options, member)

static const tsr_option options[] = {
    {.shared = &tsr_option_kernel,
     .help =
         "The kernel to measure, or several with commas, or auto (default), the fastest that is as accurate as IEEE "
         "arithmetic",
     .field = AT(kernel)},
    {.name = "all", .help = "Every kernel of the device, in ladder order", .read = tsr_read_flag, .field = AT(all)},
    {.name = "explain",
     .help = "Say which kernel makes a product of this shape, and by which rule; measure nothing",
     .read = tsr_read_flag,
     .field = AT(explain)},
    {.shared = &tsr_option_product, .initial = "1024", .field = AT(shape)},
    {.name = "batch",
     .value = "N",
     .help = "Products of this shape in a launch, one after the other in memory (default 1)",
     .initial = "1",
     .read = tsr_read_whole,
     .low = 1,
     .high = 1 << 20,
     .field = AT(batch)},
    {.shared = &tsr_option_operand_type, .field = AT(type)},
    {.shared = &tsr_option_device, .field = AT(device)},
    {.name = "repeat",
     .value = "N",
     .help = "Timed launches a kernel, of which the median counts (default 10; fewer where they take over 30 s)",
     .initial = "10",
     .read = tsr_read_whole,
     .low = 1,
     .high = 1000000,
     .field = AT(repeat)},
    {.name = "rounds",
     .value = "N",
     .help = "Rounds over the kernels, of whose medians the median counts (default 1): what drifts, such as power, "
             "then meets all alike",
     .initial = "1",
     .read = tsr_read_whole,
     .low = 1,
     .high = MOST_ROUNDS,
     .field = AT(rounds)},
    {.shared = &tsr_option_json, .field = AT(json)},
    {.shared = &tsr_option_quiet, .field = AT(quiet)},
    {0}};

static tsr_status check_options(void *to) {
    const bench_options *o = to;
    if (o->all && o->kernel)
        return tsr_fail(TSR_ERR_USAGE, "--all measures every kernel, --kernel %s one: use one of the two", o->kernel);
    if (o->explain && (o->json || o->quiet))
        return tsr_fail(TSR_ERR_USAGE, "--explain prints text alone: leave out %s", o->json ? "--json" : "--quiet");
    return TSR_OK;
}

static const tsr_options command = {
    .options = options,
    .what = "Measures matrix multiplication kernels on one device, with the vendor library (cuBLAS, or the CPU's BLAS) "
            "beside "
            "them.\v"
            "GB/s and flop/byte count the bytes the kernel's algorithm asks of global memory; caches serve part of "
            "them. The "
            "error is the largest of 64 elements recomputed in long double, relative to |A||B|, shown beside the "
            "kernel's stated bound. Complex products are those of reals that `multiply` makes of them, of "
            "8·m·n·k operations.",
    .check = check_options};

static void help(void) {
    tsr_options_help(&command, "tessera bench gemm", "tessera bench gemm --all --shape 4096 --type f32");
}

/* ---- measuring ------------------------------------------------------------------------------- */

typedef struct {
    const bench_options *o;
    tsr_device_facts facts;
    tsr_bench_product product;
} bench;

typedef struct {
    const tsr_gemm_kernel *kernel;
    char why[256]; /* why it could not run, else "" */
    tsr_gemm_shape shape;
    int64_t repeats;
    double rounds[MOST_ROUNDS]; /* seconds of a launch, one median a round */
    double seconds;             /* the median of them */
    double gflops, bandwidth_gbs, flop_byte, error;
} bench_row;

/* One element of C as the device holds it against its row and column, made again: the error relative to |A||B|. */
static tsr_status sample_error(const tsr_bench_product *p, int64_t i, int64_t j, double *error) {
    const size_t bytes = tsr_dtype_bytes(p->type);
    double got = 0;
    TSR_TRY(p->device->ops->download(p->device, &got, (const char *)p->c + (size_t)(i * p->n + j) * bytes, bytes,
                                     p->clock.stream));
    TSR_TRY(p->device->ops->stream_wait(p->device, p->clock.stream));
    long double sum = 0;
    long double magnitude = 0;
    const int64_t first = i / p->m * p->k; /* row of B, of this product */
    for (int64_t l = 0; l < p->k; l++) {
        const long double term = (long double)tsr_bench_product_a(p, i, l) * tsr_bench_product_b(p, first + l, j);
        sum += term;
        magnitude += fabsl(term);
    }
    const long double difference = fabsl((long double)tsr_element_to_double((tsr_element){p->type, false}, &got) - sum);
    *error = magnitude > 0 ? (double)(difference / magnitude) : (double)difference;
    return TSR_OK;
}

/* The largest such error among SAMPLES elements spread over C, both ends among them; NaN when one is NaN. */
static tsr_status largest_error(const bench *b, double *largest) {
    const tsr_bench_product *p = &b->product;
    const int64_t elements = p->batch * p->m * p->n;
    double worst = 0;
    for (int64_t s = 0; s < SAMPLES && !isnan(worst); s++) {
        double error;
        /* s = 0: the first; SAMPLES - 1: the last */
        int64_t index = (int64_t)((long double)(elements - 1) * s / (SAMPLES - 1));
        TSR_TRY(sample_error(p, index / p->n, index % p->n, &error));
        if (isnan(error) || error > worst) worst = error;
    }
    *largest = worst;
    return TSR_OK;
}

/* Before the first round. */
static tsr_status begin(const bench *b, bench_row *row) {
    const tsr_bench_product *p = &b->product;
    int64_t once;
    const tsr_gemm_kernel *batched = tsr_gemm_serving_batch(row->kernel, p->batch, p->m, p->n, p->k);
    TSR_TRY(tsr_gemm_shape_of(batched ? batched : row->kernel, p->device, p->m, p->n, p->k, &row->shape));
    TSR_TRY(tsr_bench_product_time(p, row->kernel, 1, &row->seconds, NULL, &once));
    return largest_error(b, &row->error);
}

/* After the last. */
static void finish(const bench *b, bench_row *row) {
    const tsr_bench_product *p = &b->product;
    const int64_t count = b->o->rounds;
    qsort(row->rounds, (size_t)count, sizeof *row->rounds, tsr_bench_by_size);
    row->seconds = (row->rounds[(count - 1) / 2] + row->rounds[count / 2]) / 2;
    const double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    row->gflops = flops * (double)p->batch / row->seconds / 1e9;
    row->bandwidth_gbs = row->shape.bytes * (double)p->batch / row->seconds / 1e9;
    row->flop_byte = row->shape.bytes > 0 ? flops / row->shape.bytes : 0;
}

static tsr_status measure(const bench *b, bench_row *rows, int count) {
    for (int i = 0; i < count; i++)
        if (!rows[i].why[0]) TSR_TRY(begin(b, &rows[i]));
    for (int64_t round = 0; round < b->o->rounds; round++)
        for (int i = 0; i < count; i++)
            if (!rows[i].why[0])
                TSR_TRY(tsr_bench_product_time(&b->product, rows[i].kernel, b->o->repeat, &rows[i].rounds[round], NULL,
                                               &rows[i].repeats));
    for (int i = 0; i < count; i++)
        if (!rows[i].why[0]) finish(b, &rows[i]);
    return TSR_OK;
}

/* Says why the kernel cannot run here, if so. */
static void check_runs(const bench *b, bench_row *row) {
    const tsr_gemm_kernel *kernel = row->kernel;
    const tsr_bench_product *p = &b->product;
    if (!tsr_gemm_runs_on(kernel, b->facts.arch)) {
        snprintf(row->why, sizeof row->why, "needs sm_%d, this is sm_%d", kernel->min_arch, b->facts.arch);
    } else if (p->m % kernel->multiple || p->n % kernel->multiple || p->k % kernel->multiple) {
        snprintf(row->why, sizeof row->why, "needs m, n, k that are multiples of %" PRId64, kernel->multiple);
    }
}

/* ---- which kernels --------------------------------------------------------------------------- */

static bool is_for(const bench *b, const tsr_gemm_kernel *kernel) {
    return kernel->device == b->facts.kind && kernel->input == b->product.input && kernel->type == b->product.type;
}

/* The vendor's kernel that loses as much as this one, or NULL. */
static const tsr_gemm_kernel *vendor_of(const bench *b, const tsr_gemm_kernel *kernel) {
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    const char *name = b->facts.kind == TSR_DEVICE_CPU ? "blas" : "cublas";
    for (int i = 0; i < count; i++)
        if (is_for(b, kernels[i]) && kernels[i]->accuracy == kernel->accuracy &&
            strncmp(kernels[i]->name, name, strlen(name)) == 0)
            return kernels[i];
    return NULL;
}

static tsr_gemm_request request_of(const bench *b) {
    const tsr_bench_product *p = &b->product;
    return (tsr_gemm_request){.a = p->input,
                              .b = p->input,
                              .type = p->type,
                              .accuracy = TSR_ACCURACY_FAST,
                              .m = p->m,
                              .n = p->n,
                              .k = p->k,
                              .batch = p->batch};
}

/* The kernel called `name`, in the type that is measured. */
static tsr_status choose_one(const bench *b, const char *name, const tsr_gemm_kernel **one) {
    const tsr_bench_product *p = &b->product;
    const tsr_gemm_request request = request_of(b);
    if (strcmp(name, "auto") != 0) return tsr_gemm_find(name, &b->facts, p->input, p->type, one);
    TSR_TRY(tsr_gemm_choose(name, &b->facts, &request, one));
    if ((*one)->input == p->input) return TSR_OK;
    return tsr_fail(
        TSR_ERR_USAGE,
        "auto multiplies %s as %s here, with kernel '%s': measure that --type, name a --kernel, or use --all",
        tsr_dtype_name(p->input), tsr_dtype_name((*one)->input), (*one)->name);
}

/* The kernel and the vendor's, unless they are there already. */
static void add_kernel(const bench *b, const tsr_gemm_kernel *kernel, bench_row *rows, int *chosen) {
    const tsr_gemm_kernel *both[] = {kernel, vendor_of(b, kernel)};
    for (int i = 0; i < 2; i++) {
        bool there = !both[i] || *chosen == MOST_KERNELS;
        for (int j = 0; j < *chosen; j++) there |= rows[j].kernel == both[i];
        if (!there) rows[(*chosen)++].kernel = both[i];
    }
}

/* With --all every kernel of device and type, in ladder order, else those asked for and the vendor's. */
static tsr_status choose_kernels(const bench *b, bench_row *rows, int *chosen) {
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count), *one;
    const char *names = b->o->kernel ? b->o->kernel : "auto";
    *chosen = 0;
    for (int i = 0; b->o->all && i < count && *chosen < MOST_KERNELS; i++)
        if (is_for(b, kernels[i])) rows[(*chosen)++].kernel = kernels[i];
    while (!b->o->all && *names) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(names, ","), names);
        names += strcspn(names, ",");
        names += *names == ',';
        TSR_TRY(choose_one(b, name, &one));
        add_kernel(b, one, rows, chosen);
    }
    return TSR_OK;
}

static const bench_row *vendor_row(const bench *b, const bench_row *rows, int count, const bench_row *of) {
    const tsr_gemm_kernel *vendor = vendor_of(b, of->kernel);
    for (int i = 0; i < count; i++)
        if (vendor && rows[i].kernel == vendor && !rows[i].why[0]) return &rows[i];
    return NULL;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* "-" for what a kernel does not have. */
static const char *number(char *text, size_t chars, const char *format, double value) {
    if (value > 0) snprintf(text, chars, format, value);
    else snprintf(text, chars, "-");
    return text;
}

static void print_row(const bench *b, const bench_row *row, const bench_row *vendor) {
    char ratio[16], occupancy[16], registers[16], shared[16];
    char tile[40] = "-";
    const tsr_gemm_shape *shape = &row->shape;
    if (row->why[0]) {
        printf("%-12s cannot run: %s\n", row->kernel->name, row->why);
        return;
    }
    if (shape->tile_m > 0) snprintf(tile, sizeof tile, "%dx%dx%d", shape->tile_m, shape->tile_n, shape->tile_k);
    printf("%-12s %10.1f %8s %11.4f %9.1f %9.2f %9s %5s %7s %12s %9.1e %9.1e %7" PRId64 "\n", row->kernel->name,
           row->gflops, number(ratio, sizeof ratio, "%.1f%%", vendor ? 100 * row->gflops / vendor->gflops : 0),
           1e3 * row->seconds, row->bandwidth_gbs, row->flop_byte,
           number(occupancy, sizeof occupancy, "%.0f%%", 100 * shape->occupancy),
           number(registers, sizeof registers, "%.0f", shape->registers),
           number(shared, sizeof shared, "%.0f", (double)shape->shared_bytes), tile, row->error,
           tsr_gemm_error_bound(row->kernel, b->product.k), row->repeats);
}

/* "gemm f32, m = 64, n = 64, k = 64, a batch of 1024 on NVIDIA H200" */
static void print_product(const bench *b) {
    const bench_options *o = b->o;
    printf("gemm %s, m = %" PRId64 ", n = %" PRId64 ", k = %" PRId64, tsr_dtype_name(o->type), o->shape.m, o->shape.n,
           o->shape.k);
    if (b->product.complex) printf(" as reals (n and k twice)");
    if (o->batch > 1) printf(", a batch of %" PRId64, o->batch);
    printf(" on %s", b->facts.name);
}

static void print_table(const bench *b, const bench_row *rows, int count) {
    print_product(b);
    printf(", uniform data\n");
    printf("%-12s %10s %8s %11s %9s %9s %9s %5s %7s %12s %9s %9s %7s\n", "kernel", "GFLOP/s", "vendor", "ms", "GB/s",
           "flop/byte", "occupancy", "regs", "shared", "tile", "error", "bound", "repeats");
    for (int i = 0; i < count; i++) print_row(b, &rows[i], vendor_row(b, rows, count, &rows[i]));
}

static void json_row(FILE *file, const bench *b, const bench_row *row, const bench_row *vendor) {
    const tsr_gemm_shape *s = &row->shape;
    fprintf(file, "{\"kernel\": \"%s\", ", row->kernel->name);
    if (row->why[0]) {
        fprintf(file, "\"cannot_run\": ");
        tsr_json_string(file, row->why);
        fprintf(file, "}");
        return;
    }
    fprintf(file,
            "\"gflops\": %.6g, \"seconds\": %.9g, \"repeats\": %" PRId64
            ", \"bandwidth_gbs\": %.6g, \"flop_byte\": %.6g, ",
            row->gflops, row->seconds, row->repeats, row->bandwidth_gbs, row->flop_byte);
    fprintf(file,
            "\"occupancy\": %.4g, \"registers\": %d, \"shared_bytes\": %zu, \"threads\": %d, \"tile\": [%d, %d, %d], ",
            s->occupancy, s->registers, s->shared_bytes, s->threads, s->tile_m, s->tile_n, s->tile_k);
    if (isfinite(row->error)) fprintf(file, "\"error\": %.6g, ", row->error);
    else fprintf(file, "\"error\": null, ");
    if (vendor) fprintf(file, "\"vendor_ratio\": %.6g, ", row->gflops / vendor->gflops);
    fprintf(file, "\"error_bound\": %.6g}", tsr_gemm_error_bound(row->kernel, b->product.k));
}

static void write_json(FILE *file, const bench *b, const bench_row *rows, int count) {
    const bench_options *o = b->o;
    fprintf(file, "{\"format\": %d, \"version\": \"%s\", \"device\": ", TSR_RECORD_FORMAT, TSR_VERSION);
    tsr_json_string(file, b->facts.name);
    fprintf(file,
            ", \"type\": \"%s\", \"m\": %" PRId64 ", \"n\": %" PRId64 ", \"k\": %" PRId64 ", \"batch\": %" PRId64
            ",\n \"kernels\": [",
            tsr_dtype_name(o->type), o->shape.m, o->shape.n, o->shape.k, o->batch);
    for (int i = 0; i < count; i++) {
        fprintf(file, "%s\n  ", i > 0 ? "," : "");
        json_row(file, b, &rows[i], vendor_row(b, rows, count, &rows[i]));
    }
    fprintf(file, "\n ]}\n");
}

/* A line a kernel: what was asked for, what makes such a product, and the rules that say so. */
static void explain(const bench *b, const bench_row *rows, int count) {
    const tsr_gemm_request request = request_of(b);
    char text[TSR_GEMM_TEXT];
    print_product(b);
    printf("\n");
    if (!b->o->all && (!b->o->kernel || strcmp(b->o->kernel, "auto") == 0))
        printf("%s\n", tsr_gemm_explain_choice("auto", &b->facts, &request, rows[0].kernel, text));
    for (int i = 0; i < count; i++)
        if (rows[i].why[0]) printf("%s cannot run: %s\n", rows[i].kernel->name, rows[i].why);
        else
            printf("%s\n",
                   tsr_gemm_explain(rows[i].kernel, b->product.batch, b->product.m, b->product.n, b->product.k, text));
}

/* A kernel asked for by name has to run, and one whose error exceeds what it states is wrong, however fast. */
static tsr_status judge(const bench *b, const bench_row *rows, int count) {
    for (int i = 0; i < count; i++) {
        if (rows[i].why[0] && b->o->kernel && strstr(b->o->kernel, rows[i].kernel->name))
            return tsr_fail(TSR_ERR_UNSUPPORTED, "kernel '%s' cannot run: it %s; use another --kernel or --shape",
                            rows[i].kernel->name, rows[i].why);
        double bound = tsr_gemm_error_bound(rows[i].kernel, b->product.k);
        if (!rows[i].why[0] && !(rows[i].error <= bound))
            return tsr_fail(TSR_ERR_CHECK,
                            "kernel '%s': error %.3g is above its bound %.3g: do not use it here, and report this",
                            rows[i].kernel->name, rows[i].error, bound);
    }
    return TSR_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Local, on rank 0. */
static tsr_status run_bench(const void *asked, tsr_device *device) {
    const bench_options *o = asked;
    bench b = {.o = o, .product = tsr_bench_product_take(o->type, o->shape.m, o->shape.n, o->shape.k, o->batch)};
    bench_row rows[MOST_KERNELS] = {0};
    int count = 0;
    tsr_text_file json;
    tsr_status status = TSR_OK;
    TSR_TRY_DONE(tsr_bench_start_blas(device));
    if (o->json) TSR_TRY_DONE(tsr_text_file_check(TSR_BENCH_JSON, o->json));
    TSR_TRY_DONE(device->ops->facts(device, &b.facts));
    TSR_TRY_DONE(choose_kernels(&b, rows, &count));
    for (int i = 0; i < count; i++) check_runs(&b, &rows[i]);
    if (o->explain) {
        explain(&b, rows, count);
        goto done;
    }
    TSR_TRY_DONE(tsr_bench_product_open(device, &b.product));
    TSR_TRY_DONE(measure(&b, rows, count));
    if (!o->quiet) print_table(&b, rows, count);
    if (o->json) {
        TSR_TRY_DONE(tsr_text_file_open(TSR_BENCH_JSON, o->json, &json));
        write_json(json.to, &b, rows, count);
        TSR_TRY_DONE(tsr_text_file_close(&json, 0));
    }
    TSR_TRY_DONE(judge(&b, rows, count));
done:
    tsr_bench_product_close(&b.product);
    return status;
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    bench_options o = {0};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&command, argc, argv, &o)));
    return tsr_bench_on_rank_0(world, o.device, &o.json, run_bench, &o);
}

const tsr_bench tsr_bench_gemm = {"gemm", run, help, &command};
