/* tessera bench speeds: measures what `auto` chooses by and writes it as the table the program is built with,
 * kernels/gemm/speeds.inc: lines for this device's architecture and this build's code are made anew, those of
 * others stay. Then it tells how near `auto`, by the table that this program was built with, comes to the fastest
 * kernel. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/bench.h"
#include "app/bench/bench_product.h"
#include "app/tessera_options.h"
#include "io/text/text_file.h"
#include "kernels/gemm/speeds.h"

#define LARGEST (TSR_GEMM_SPEED_SMALLEST << (TSR_GEMM_SPEED_SIZES - 1))
#define LEAST_RANK                                                                                                     \
    50 /* slower kernels are not measured: the best of the textbook, which has this one, is faster everywhere */

typedef struct {
    const char *output;
    int64_t repeat;
    bool quiet;
} speeds_options;

#define MOST_ROWS 16 /* kernels of one type */

typedef struct {
    const tsr_gemm_kernel *kernel;
    tsr_gemm_speed_row row;
} measured;

#define AT(member) offsetof(speeds_options, member)

static const tsr_option options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "Write the table here (kernels/gemm/speeds.inc of the source, to be built anew)",
     .read = tsr_read_text,
     .field = AT(output)},
    {.name = "repeat",
     .value = "N",
     .help = "Measurements of a kernel and size, of which the median counts (default 3)",
     .initial = "3",
     .read = tsr_read_whole,
     .low = 1,
     .high = 1000,
     .field = AT(repeat)},
    {.shared = &tsr_option_quiet, .help = "Print nothing: the figures go to the table alone", .field = AT(quiet)},
    {0}};

static tsr_status check_options(void *to) {
    const speeds_options *o = to;
    if (o->output) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "bench speeds: no output: name the table with -o FILE");
}

static const tsr_options command = {
    .options = options,
    .what = "Measures the GPU's kernels on square products and writes the table that `--kernel auto` chooses by.",
    .check = check_options};

static void help(void) {
    tsr_options_help(&command, "tessera bench speeds", "tessera bench speeds -o kernels/gemm/speeds.inc");
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* TFLOP/s of products of edge 128, 256, … less `less`. */
static tsr_status measure_sizes(tsr_bench_product *p, const tsr_gemm_kernel *kernel, int64_t repeat, int64_t less,
                                double *tflops) {
    for (int i = 0; i < TSR_GEMM_SPEED_SIZES; i++) {
        const int64_t edge = ((int64_t)TSR_GEMM_SPEED_SMALLEST << i) - less;
        double seconds;
        int64_t repeats;
        p->m = p->n = p->k = edge;
        TSR_TRY(tsr_bench_product_time(p, kernel, repeat, &seconds, NULL, &repeats));
        tflops[i] = 2.0 * (double)edge * (double)edge * (double)edge / seconds / 1e12;
    }
    return TSR_OK;
}

static void write_numbers(FILE *file, const double *tflops) {
    for (int i = 0; i < TSR_GEMM_SPEED_SIZES; i++) fprintf(file, "%s%.4g", i > 0 ? ", " : "{", tflops[i]);
    fprintf(file, "}");
}

static void write_row(FILE *file, const tsr_gemm_speed_row *row) {
    fprintf(file, "{%d, \"%s\", \"%s\", \"%s\", \"%s\", ", row->arch, row->code, row->kernel, row->input, row->type);
    write_numbers(file, row->round);
    fprintf(file, ", ");
    write_numbers(file, row->odd);
    fprintf(file, "},\n");
}

/* Libraries bring their own code. */
static bool of_library(const tsr_gemm_kernel *kernel) { return strncmp(kernel->name, "cublas", strlen("cublas")) == 0; }

/* Of the kernels measured, how near the one that `auto` takes for a class of accuracy comes to the fastest, at
 * every size; less: 0 for round sizes, 1 for odd. */
static tsr_status print_auto(const tsr_device_facts *facts, const measured *rows, int count, tsr_accuracy accuracy,
                             int64_t less) {
    printf("auto, %s, %s, of the fastest:", tsr_dtype_name(rows[0].kernel->input), tsr_accuracy_name(accuracy));
    for (int size = 0; size < TSR_GEMM_SPEED_SIZES; size++) {
        const int64_t edge = ((int64_t)TSR_GEMM_SPEED_SMALLEST << size) - less;
        const tsr_dtype input = rows[0].kernel->input;
        const tsr_gemm_request request = {input, input, rows[0].kernel->type, accuracy, edge, edge, edge, 0, 1};
        const tsr_gemm_kernel *chosen;
        double fastest = 0, own = 0;
        TSR_TRY(tsr_gemm_choose("auto", facts, &request, &chosen));
        for (int i = 0; i < count; i++) {
            const double tflops = less ? rows[i].row.odd[size] : rows[i].row.round[size];
            if (tsr_gemm_loss(rows[i].kernel, input, input) <= accuracy && tflops > fastest) fastest = tflops;
            if (tsr_gemm_for_auto(rows[i].kernel) == chosen) own = tflops;
        }
        if (own > 0) printf("  %lld %s %.2f", (long long)edge, chosen->name, own / fastest);
        else printf("  %lld %s -", (long long)edge, chosen->name); /* it takes the operands in another type */
    }
    printf("\n");
    return TSR_OK;
}

/* Kernels that auto takes by measurement alone have no rank. */
static bool wanted(const tsr_gemm_kernel *kernel) { return kernel->speed_rank >= LEAST_RANK || kernel->for_auto; }

/* Every kernel of this device for operands of `input`, into the file and, unless quiet, on the terminal. */
static tsr_status measure_type(tsr_device *device, const tsr_device_facts *facts, tsr_dtype input,
                               const speeds_options *o, FILE *file) {
    tsr_bench_product p = {.m = LARGEST, .n = LARGEST, .k = LARGEST, .input = input};
    measured rows[MOST_ROWS];
    int count, made = 0;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    tsr_status status = tsr_bench_product_open(device, &p);
    for (int i = 0; i < count && made < MOST_ROWS && status == TSR_OK; i++) {
        const tsr_gemm_kernel *kernel = kernels[i];
        if (kernel->device != facts->kind || kernel->input != input || kernel->type != p.type || !wanted(kernel) ||
            !tsr_gemm_runs_on(kernel, facts->arch))
            continue;
        tsr_gemm_speed_row *row = &rows[made].row;
        rows[made].kernel = kernel;
        *row = (tsr_gemm_speed_row){.arch = facts->arch,
                                    .code = of_library(kernel) ? "" : facts->code,
                                    .kernel = kernel->name,
                                    .input = tsr_dtype_name(input),
                                    .type = tsr_dtype_name(p.type)};
        status = measure_sizes(&p, kernel, o->repeat, 0, row->round);
        if (status == TSR_OK) status = measure_sizes(&p, kernel, o->repeat, 1, row->odd);
        if (status != TSR_OK) break;
        made++;
        write_row(file, row);
        if (!o->quiet) write_row(stdout, row);
    }
    for (int accuracy = 0; accuracy < TSR_ACCURACY_TF32 && made > 0 && !o->quiet && status == TSR_OK; accuracy++)
        for (int64_t less = 0; less < 2 && status == TSR_OK; less++)
            status = print_auto(facts, rows, made, (tsr_accuracy)accuracy, less);
    tsr_bench_product_close(&p);
    return status;
}

/* Lines that this device and build measure anew. */
static bool made_anew(const tsr_gemm_speed_row *row, const tsr_device_facts *facts) {
    return row->arch == facts->arch && (*row->code == '\0' || strcmp(row->code, facts->code) == 0);
}

static tsr_status write_table(const void *asked, tsr_device *device) {
    const speeds_options *o = asked;
    tsr_device_facts facts;
    TSR_TRY(device->ops->facts(device, &facts));
    if (facts.kind != TSR_DEVICE_CUDA)
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "bench speeds measures a GPU and '%s' is none: --kernel auto takes the BLAS on a CPU",
                        facts.name);
    char *rows = NULL;
    size_t chars;
    tsr_text_file table;
    TSR_TRY(tsr_text_file_check("table", o->output));
    FILE *file = open_memstream(&rows, &chars);
    if (!file) return tsr_fail(TSR_ERR_MEMORY, "no memory for the table: free some");
    fprintf(file, "/* Written by `tessera bench speeds`; the last lines on %s, tessera %s. */\n", facts.name,
            TSR_VERSION);
    for (int i = 0; i < TSR_GEMM_SPEED_ROWS; i++)
        if (!made_anew(&tsr_gemm_speeds[i], &facts)) write_row(file, &tsr_gemm_speeds[i]);
    tsr_status status = TSR_OK;
    for (int type = 0; type < TSR_DTYPE_COUNT && status == TSR_OK; type++)
        if (tsr_dtype_serves((tsr_dtype)type, TSR_USE_OPERAND))
            status = measure_type(device, &facts, (tsr_dtype)type, o, file);
    if (fclose(file) != 0 && status == TSR_OK) status = tsr_fail(TSR_ERR_MEMORY, "no memory for the table: free some");
    if (status == TSR_OK) status = tsr_text_file_open("table", o->output, &table);
    if (status == TSR_OK) {
        fputs(rows, table.to);
        status = tsr_text_file_close(&table, 0);
    }
    free(rows);
    return status;
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    speeds_options o = {0};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&command, argc, argv, &o)));
    return tsr_bench_on_rank_0(world, "auto", &o.output, write_table, &o);
}

const tsr_bench tsr_bench_speeds = {"speeds", run, help, &command};
