/* tessera bench accuracy: how far each kernel's product is from the exact one, on inputs that are hard in different
 * ways and inner lengths from short to long. Samples of C are compared with inner products in twice double's
 * precision; the vendor's kernel is one of those measured. A kernel beyond its stated bound is an error. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/bench.h"
#include "app/bench/bench_product.h"
#include "app/tessera_options.h"
#include "io/text/text_file.h"
#include "kernels/gemm/accuracy.h"
#include "kernels/gemm/gemm.h"
#include "kernels/pack/pack.h"

#define SAMPLES 64 /* rows and columns of C */
#define MOST_LENGTHS 16
#define MOST_K 1048576

typedef struct {
    const char *kernel, *device, *json;
    bool quiet;
    tsr_dtype type;
    tsr_input first_input, last_input;
    int64_t size, k[MOST_LENGTHS];
    int lengths;
    double phi;
} accuracy_options;

typedef struct {
    const accuracy_options *o;
    tsr_device *device;
    tsr_device_facts facts;
    tsr_bench_clock clock;
    const tsr_gemm_kernel *one; /* of --kernel; NULL: all */
    /* Of A and B, of C, as kernels have them: complex ones are reals, `parts` an element (kernels/base/form.h). */
    tsr_dtype input, type;
    int parts;
    double eps;  /* of the type: its spacing at 1 */
    int samples; /* rows and columns sampled of C: at most SAMPLES */
    int64_t most_k;
    void *host_a, *host_b, *host_c;
    /* On the device: size × most_k elements, most_k × size as they are multiplied, size × size; rows close together.
     * Complex ones of B before they become squares. */
    void *a, *b, *c, *elements;
    double *rows;    /* samples × parts·k: reals of A */
    double *cols[2]; /* the same of B, by which these give the part of an element of C */
    tsr_double_double exact[2][SAMPLES * SAMPLES];
    double absolute[SAMPLES * SAMPLES]; /* Σ |a|·|b| */
} bench;

typedef struct {
    const tsr_gemm_kernel *kernel;
    tsr_input input;
    int64_t k;
    double relative_max, relative_median, component_max, component_median; /* the latter two in eps */
    double bound;                                                          /* stated, in eps */
} result;

/* ---- one input and length -------------------------------------------------------------------- */

static double element_at(tsr_dtype type, const void *data, int64_t at) {
    return tsr_element_to_double((tsr_element){type, false}, (const char *)data + (size_t)at * tsr_dtype_bytes(type));
}

/* Row or column of C that sample s is: both ends among them. */
static int64_t sampled(const bench *b, int s) { return b->samples > 1 ? s * (b->o->size - 1) / (b->samples - 1) : 0; }

/* The sampled rows of A and columns of B, as real sums have them. */
static void take_samples(bench *b, int64_t k) {
    const int64_t n = b->o->size, reals = b->parts * k;
    for (int s = 0; s < b->samples; s++)
        for (int64_t p = 0; p < k; p++) {
            const int64_t row = sampled(b, s) * k + p, col = p * n + sampled(b, s);
            const int64_t at = s * reals + b->parts * p;
            for (int part = 0; part < b->parts; part++) {
                const double of_b = element_at(b->input, b->host_b, b->parts * col + part);
                b->rows[at + part] = element_at(b->input, b->host_a, b->parts * row + part);
                b->cols[0][at + part] = part == 1 ? -of_b : of_b;
                if (b->parts == 2) b->cols[1][at + 1 - part] = of_b;
            }
        }
}

static double absolute_sum(int64_t k, const double *a, const double *b) {
    double sum = 0;
    for (int64_t p = 0; p < k; p++) sum += hypot(a[2 * p], a[2 * p + 1]) * hypot(b[2 * p], b[2 * p + 1]);
    return sum;
}

static void make_exact(bench *b, int64_t k) {
    const int64_t reals = b->parts * k;
    take_samples(b, k);
    for (int r = 0; r < b->samples; r++)
        for (int c = 0; c < b->samples; c++) {
            const int at = r * b->samples + c;
            const double *row = b->rows + r * reals;
            for (int part = 0; part < b->parts; part++)
                b->exact[part][at] = tsr_oracle_dot(reals, row, b->cols[part] + c * reals, &b->absolute[at]);
            if (b->parts == 2) b->absolute[at] = absolute_sum(k, row, b->cols[0] + c * reals);
        }
}

/* From `elements` to `b`, where they are complex. */
static tsr_status make_squares(const bench *b, int64_t k) {
    const int64_t n = b->o->size;
    const tsr_pack_args args = {.from = {b->elements, {b->o->type, false}, k, n, n},
                                .form = TSR_FORM_SQUARES,
                                .to = b->b,
                                .type = b->input,
                                .ld = 2 * n,
                                .padded_rows = 2 * k,
                                .padded_cols = 2 * n};
    return tsr_pack_find(b->device->ops->kind)->pack(b->device, b->clock.stream, &args);
}

static tsr_status make_input(bench *b, tsr_input input, int64_t k) {
    const int64_t n = b->o->size;
    const tsr_device_ops *ops = b->device->ops;
    const tsr_element element = {b->o->type, false};
    const size_t width = tsr_dtype_bytes(b->o->type);
    TSR_TRY(tsr_input_fill_a(input, b->o->phi, (tsr_view){b->host_a, element, n, k, k}));
    TSR_TRY(tsr_input_fill_b(input, b->o->phi, (tsr_view){b->host_b, element, k, n, n}));
    TSR_TRY(ops->upload(b->device, b->a, b->host_a, (size_t)(n * k) * width, b->clock.stream));
    TSR_TRY(ops->upload(b->device, b->parts == 2 ? b->elements : b->b, b->host_b, (size_t)(k * n) * width,
                        b->clock.stream));
    if (b->parts == 2) TSR_TRY(make_squares(b, k));
    TSR_TRY(ops->stream_wait(b->device, b->clock.stream));
    make_exact(b, k);
    return TSR_OK;
}

/* Whether the sampled rows and columns are numbers: half precision ends at 65504. */
static bool input_holds(const bench *b) {
    for (int at = 0; at < b->samples * b->samples; at++)
        if (!isfinite(b->absolute[at])) return false;
    return true;
}

/* 0/0 is no error; anything else over 0, and NaN, is infinitely large. */
static double over(double error, double by) {
    if (error == 0) return 0;
    return isnan(error) || by == 0 ? (double)INFINITY : error / by;
}

static void judge_samples(const bench *b, result *r) {
    double relative[SAMPLES * SAMPLES], component[SAMPLES * SAMPLES];
    const int count = b->samples * b->samples;
    for (int at = 0; at < count; at++) {
        const int64_t place = sampled(b, at / b->samples) * b->o->size + sampled(b, at % b->samples);
        double difference[2] = {0};
        double value[2] = {0};
        for (int part = 0; part < b->parts; part++) {
            const tsr_double_double exact = b->exact[part][at];
            value[part] = exact.high;
            difference[part] = element_at(b->type, b->host_c, b->parts * place + part) - exact.high - exact.low;
        }
        const double error = hypot(difference[0], difference[1]);
        relative[at] = over(error, hypot(value[0], value[1]));
        component[at] = over(error, b->absolute[at] * b->eps);
    }
    qsort(relative, (size_t)count, sizeof *relative, tsr_bench_by_size);
    qsort(component, (size_t)count, sizeof *component, tsr_bench_by_size);
    r->relative_max = relative[count - 1];
    r->relative_median = (relative[(count - 1) / 2] + relative[count / 2]) / 2;
    r->component_max = component[count - 1];
    r->component_median = (component[(count - 1) / 2] + component[count / 2]) / 2;
}

/* What a kernel states of reals; of complex numbers both parts may be so far off. */
static double bound_of(const bench *b, const tsr_gemm_kernel *kernel, int64_t k) {
    return tsr_gemm_error_bound(kernel, b->parts * k) * sqrt(b->parts);
}

static tsr_status measure(const bench *b, result *r) {
    const int64_t m = b->o->size, n = b->parts * m;
    const int64_t k = b->parts * r->k;
    const tsr_device_ops *ops = b->device->ops;
    const size_t c_bytes = (size_t)(m * n) * tsr_dtype_bytes(b->type);
    void *workspace = NULL;
    const size_t workspace_bytes = r->kernel->workspace_bytes ? r->kernel->workspace_bytes(m, n, k) : 0;
    tsr_status status = TSR_OK;
    if (workspace_bytes > 0) TSR_TRY_DONE(ops->allocate(b->device, workspace_bytes, &workspace));
    TSR_TRY_DONE(ops->fill_bytes(b->device, b->c, 0xff, c_bytes, b->clock.stream)); /* NaN: what is left out shows */
    const tsr_gemm_args args = {
        .m = m, .n = n, .k = k, .a = b->a, .lda = k, .b = b->b, .ldb = n, .c = b->c, .ldc = n, .workspace = workspace};
    TSR_TRY_DONE(tsr_gemm_launch(r->kernel, b->device, b->clock.stream, &args));
    TSR_TRY_DONE(ops->download(b->device, b->host_c, b->c, c_bytes, b->clock.stream));
    TSR_TRY_DONE(ops->stream_wait(b->device, b->clock.stream));
    r->bound = bound_of(b, r->kernel, r->k) / b->eps;
    judge_samples(b, r);
done:
    ops->release(b->device, workspace);
    return status;
}

static bool can_run(const bench *b, const tsr_gemm_kernel *kernel, int64_t k) {
    return kernel->device == b->facts.kind && kernel->input == b->input && kernel->type == b->type &&
           tsr_gemm_runs_on(kernel, b->facts.arch) && b->o->size % kernel->multiple == 0 &&
           b->parts * k % kernel->multiple == 0 && (!b->one || kernel == b->one);
}

/* Every kernel that can run, on every input and length; *count results of at most `most`. */
static tsr_status measure_all(bench *b, result *results, int most, int *count) {
    int kernels;
    const tsr_gemm_kernel *const *all = tsr_gemm_kernels(&kernels);
    *count = 0;
    for (int input = b->o->first_input; input <= (int)b->o->last_input; input++)
        for (int length = 0; length < b->o->lengths; length++) {
            const int64_t k = b->o->k[length];
            TSR_TRY(make_input(b, (tsr_input)input, k));
            if (!input_holds(b)) {
                if (!b->o->quiet)
                    printf("%s input with k = %" PRId64 " left out: it leaves the range of %s\n",
                           tsr_input_name((tsr_input)input), k, tsr_dtype_name(b->input));
                continue;
            }
            for (int i = 0; i < kernels && *count < most; i++) {
                if (!can_run(b, all[i], k)) continue;
                results[*count] = (result){.kernel = all[i], .input = (tsr_input)input, .k = k};
                TSR_TRY(measure(b, &results[(*count)++]));
            }
        }
    if (*count == 0)
        return tsr_fail(
            TSR_ERR_UNSUPPORTED,
            "no kernel could run: some need --size and --k that are multiples of 32; use --size 256 --k 1024");
    return TSR_OK;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_table(const bench *b, const result *results, int count) {
    printf("accuracy of %s products on %s, m = n = %" PRId64 ", %d x %d samples; eps = %.3g, phi = %g\n",
           tsr_dtype_name(b->o->type), b->facts.name, b->o->size, b->samples, b->samples, b->eps, b->o->phi);
    printf("%-12s %8s %-12s %12s %12s %14s %14s %12s\n", "input", "k", "kernel", "relative", "median", "|dC|/(|A||B|)",
           "median, eps", "bound, eps");
    for (int i = 0; i < count; i++) {
        const result *r = &results[i];
        printf("%-12s %8" PRId64 " %-12s %12.2e %12.2e %14.4g %14.4g %12.4g\n", tsr_input_name(r->input), r->k,
               r->kernel->name, r->relative_max, r->relative_median, r->component_max, r->component_median, r->bound);
    }
}

static void write_json(FILE *file, const bench *b, const result *results, int count) {
    fprintf(file, "{\"format\": %d, \"version\": \"%s\", \"device\": ", TSR_RECORD_FORMAT, TSR_VERSION);
    tsr_json_string(file, b->facts.name);
    fprintf(file,
            ", \"type\": \"%s\", \"size\": %" PRId64 ", \"samples\": %d, \"eps\": %.17g, \"phi\": %g,\n \"results\": [",
            tsr_dtype_name(b->o->type), b->o->size, b->samples, b->eps, b->o->phi);
    for (int i = 0; i < count; i++) {
        const result *r = &results[i];
        const struct {
            const char *name;
            double value;
        } numbers[] = {{"relative_max", r->relative_max},
                       {"relative_median", r->relative_median},
                       {"component_max", r->component_max},
                       {"component_median", r->component_median},
                       {"bound", r->bound}};
        fprintf(file, "%s\n  {\"input\": \"%s\", \"k\": %" PRId64 ", \"kernel\": \"%s\"", i > 0 ? "," : "",
                tsr_input_name(r->input), r->k, r->kernel->name);
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++) {
            fprintf(file, ", \"%s\": ", numbers[j].name);
            tsr_bench_json_number(file, numbers[j].value);
        }
        fprintf(file, "}");
    }
    fprintf(file, "\n ]}\n");
}

/* A kernel whose error exceeds what it states is wrong. */
static tsr_status judge(const result *results, int count) {
    for (int i = 0; i < count; i++)
        if (!(results[i].component_max <= results[i].bound))
            return tsr_fail(TSR_ERR_CHECK,
                            "kernel '%s', %s input, k = %" PRId64
                            ": error %.4g eps is above its bound %.4g eps: do not use it here, and "
                            "report this",
                            results[i].kernel->name, tsr_input_name(results[i].input), results[i].k,
                            results[i].component_max, results[i].bound);
    return TSR_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static tsr_status choose_one(bench *b) {
    const tsr_gemm_request request = {.a = b->input,
                                      .b = b->input,
                                      .type = b->type,
                                      .accuracy = TSR_ACCURACY_IEEE,
                                      .m = b->o->size,
                                      .n = b->parts * b->o->size,
                                      .k = b->parts * b->most_k,
                                      .batch = 1};
    if (strcmp(b->o->kernel, "auto") == 0) return tsr_gemm_choose("auto", &b->facts, &request, &b->one);
    return tsr_gemm_find(b->o->kernel, &b->facts, b->input, b->type, &b->one);
}

static tsr_status prepare(bench *b) {
    const tsr_device_ops *ops = b->device->ops;
    const int64_t n = b->o->size;
    size_t bytes, sample_bytes;
    b->input = tsr_dtype_part(b->o->type);
    b->parts = tsr_dtype_parts(b->o->type);
    b->type = tsr_dtype_compute(b->input);
    b->eps = 2 * tsr_dtype_roundoff(b->type);
    b->samples = (int)tsr_min(SAMPLES, n);
    for (int i = 0; i < b->o->lengths; i++) b->most_k = tsr_max(b->most_k, b->o->k[i]);
    TSR_TRY(tsr_bytes_checked(n, b->most_k, tsr_dtype_bytes(b->o->type), &bytes));
    TSR_TRY(tsr_bytes_checked(b->samples, b->parts * b->most_k, sizeof(double), &sample_bytes));
    const size_t c_bytes = (size_t)(n * n * b->parts) * tsr_dtype_bytes(b->type);
    TSR_TRY(ops->use(b->device));
    TSR_TRY(ops->facts(b->device, &b->facts));
    if (b->o->kernel) TSR_TRY(choose_one(b));
    TSR_TRY(tsr_bench_clock_open(b->device, &b->clock));
    b->host_a = malloc(bytes);
    b->host_b = malloc(bytes);
    b->host_c = malloc(c_bytes);
    b->rows = malloc(sample_bytes);
    bool there = b->host_a && b->host_b && b->host_c && b->rows;
    for (int part = 0; part < b->parts; part++) there &= (b->cols[part] = malloc(sample_bytes)) != NULL;
    if (!there)
        return tsr_fail(TSR_ERR_MEMORY, "no host memory for matrices of %zu bytes: use a smaller --size or --k", bytes);
    TSR_TRY(ops->allocate(b->device, bytes, &b->a));
    if (b->parts == 2) TSR_TRY(ops->allocate(b->device, bytes, &b->elements));
    TSR_TRY(ops->allocate(b->device, bytes * (size_t)b->parts, &b->b));
    return ops->allocate(b->device, c_bytes, &b->c);
}

static void release(bench *b) {
    const tsr_device_ops *ops = b->device->ops;
    ops->release(b->device, b->c);
    ops->release(b->device, b->b);
    ops->release(b->device, b->elements);
    ops->release(b->device, b->a);
    free(b->cols[1]);
    free(b->cols[0]);
    free(b->rows);
    free(b->host_c);
    free(b->host_b);
    free(b->host_a);
    tsr_bench_clock_close(&b->clock);
}

/* Local, on rank 0. */
static tsr_status run_bench(const void *asked, tsr_device *device) {
    const accuracy_options *o = asked;
    int kernels, count = 0;
    tsr_text_file json;
    tsr_status status = TSR_OK;
    (void)tsr_gemm_kernels(&kernels);
    const int most = kernels * o->lengths * TSR_INPUT_COUNT;
    result *results = malloc((size_t)most * sizeof *results);
    bench *b = calloc(1, sizeof *b);
    if (!results || !b) TSR_TRY_DONE(tsr_fail(TSR_ERR_MEMORY, "no host memory for %d results: free some", most));
    b->o = o;
    b->device = device;
    TSR_TRY_DONE(tsr_bench_start_blas(device));
    if (o->json) TSR_TRY_DONE(tsr_text_file_check(TSR_BENCH_JSON, o->json));
    TSR_TRY_DONE(prepare(b));
    TSR_TRY_DONE(measure_all(b, results, most, &count));
    if (!o->quiet) print_table(b, results, count);
    if (o->json) {
        TSR_TRY_DONE(tsr_text_file_open(TSR_BENCH_JSON, o->json, &json));
        write_json(json.to, b, results, count);
        TSR_TRY_DONE(tsr_text_file_close(&json, 0));
    }
    TSR_TRY_DONE(judge(results, count));
done:
    if (b && b->device) release(b);
    free(b);
    free(results);
    return status;
}

static tsr_status read_lengths(const tsr_option *option, const char *text, void *field) {
    (void)option;
    accuracy_options *o = field;
    o->lengths = 0;
    for (const char *next = text; next;) {
        const char *comma = strchr(next, ',');
        char one[32];
        const size_t chars = comma ? (size_t)(comma - next) : strlen(next);
        if (o->lengths == MOST_LENGTHS || chars >= sizeof one)
            return tsr_fail(TSR_ERR_USAGE, "--k '%s': write up to %d numbers such as 64,1024", text, MOST_LENGTHS);
        memcpy(one, next, chars);
        one[chars] = '\0';
        TSR_TRY(tsr_parse_int("--k", one, 1, MOST_K, &o->k[o->lengths++]));
        next = comma ? comma + 1 : NULL;
    }
    return TSR_OK;
}

static tsr_status read_input(const tsr_option *option, const char *text, void *field) {
    (void)option;
    accuracy_options *o = field;
    TSR_TRY(tsr_input_parse(text, &o->first_input));
    o->last_input = o->first_input;
    return TSR_OK;
}

static tsr_status read_phi(const tsr_option *option, const char *text, void *field) {
    const double *phi = field;
    TSR_TRY(tsr_read_number(option, text, field));
    if (*phi >= 0 && *phi <= 6) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "--phi %s is out of range: use 0 to 6", text);
}

#define AT(member) offsetof(accuracy_options, member)

static const tsr_option options[] = {
    {.shared = &tsr_option_kernel, .help = "One kernel, or auto (default: all that can run)", .field = AT(kernel)},
    {.shared = &tsr_option_operand_type, .field = AT(type)},
    {.name = "size",
     .value = "N",
     .help = "Rows of A and columns of B (default 256)",
     .initial = "256",
     .read = tsr_read_whole,
     .low = 1,
     .high = 8192,
     .field = AT(size)},
    {.name = "k",
     .value = "K,...",
     .help = "Inner lengths (default 64,1024,8192,65536)",
     .initial = "64,1024,8192,65536",
     .read = read_lengths},
    {.name = "input",
     .value = "NAME",
     .help = "uniform, normal, wide, cancelling, graded, sparse or banded (default: all)",
     .read = read_input},
    {.name = "phi",
     .value = "X",
     .help = "Spread of wide input, normal times exp(X normal): 0 to 6 (default 2)",
     .initial = "2",
     .read = read_phi,
     .field = AT(phi)},
    {.shared = &tsr_option_device, .field = AT(device)},
    {.shared = &tsr_option_json, .field = AT(json)},
    {.shared = &tsr_option_quiet, .field = AT(quiet)},
    {0}};

static const tsr_options command = {
    .options = options,
    .what = "Measures the error of matrix multiplication kernels against inner products in twice "
            "double's precision, on 64 x 64 samples of C.\v"
            "relative: |dC|/|C|, the largest and the median. |dC|/(|A||B|): element by element, "
            "in units of eps, the type's spacing at 1, beside the "
            "bound that the kernel states; a kernel beyond it is an error (exit code 3). Of complex elements these are "
            "absolute values; the kernel multiplies their reals, as `multiply` has it do."};

static void help(void) {
    tsr_options_help(&command, "tessera bench accuracy", "tessera bench accuracy --kernel auto --type f32 --k 64,1024");
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    accuracy_options o = {.last_input = TSR_INPUT_COUNT - 1};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&command, argc, argv, &o)));
    return tsr_bench_on_rank_0(world, o.device, &o.json, run_bench, &o);
}

const tsr_bench tsr_bench_accuracy = {"accuracy", run, help, &command};
