/* tessera bench memory: what one device's memory gives: copies, the textbook's memory kernels, pack's transposes and
 * conversions, and transfers between host and device. Bandwidth counts the bytes that have to be read and written
 * once, in decimal GB; each is set beside the fastest copy of the run. Every result is compared with the host's,
 * whole. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/bench.h"
#include "app/tessera_options.h"
#include "io/text/text_file.h"
#include "kernels/fill/fill.h"
#include "kernels/memory/patterns.h"
#include "kernels/pack/pack.h"

#define SEED 1
#define MOST_ROWS 64
#define TRANSFER_BYTES ((size_t)256 << 20)

typedef struct {
    const char *device, *json;
    bool quiet;
    int64_t size, repeat;
} memory_options;

typedef struct memory_row memory_row;

typedef struct {
    const memory_options *o;
    tsr_device *device;
    tsr_device_facts facts;
    tsr_bench_clock clock;
    int64_t n;
    size_t bytes;    /* of n × n floats */
    void *in, *out;  /* device memory: n × n floats each */
    float *source;   /* what `in` holds; ordinary host memory */
    float *result;   /* n × n floats of pinned host memory */
    void *expected;  /* as many bytes of ordinary host memory: what the host packs */
    float *pageable; /* transfer_bytes of ordinary host memory */
    size_t transfer_bytes;
} bench;

/* A stored matrix for pack, made of the bytes of `in`. */
typedef struct {
    const char *name, *what;
    tsr_element from;
    tsr_dtype to;
    bool transpose, half_rows, odd; /* n/2 rows; n - 1 rows and columns, close together */
} pack_case;

typedef struct {
    const char *name, *what;
    bool upload, pinned;
} transfer_case;

struct memory_row {
    const char *group, *name, *what;
    const tsr_memory_kernel *kernel; /* one of the three, or none for the device's own copy */
    const pack_case *pack;
    const transfer_case *transfer;
    tsr_status (*launch)(const bench *b, const memory_row *row);
    tsr_status (*check)(const bench *b, const memory_row *row);
    double bytes, flop_byte;                  /* a launch */
    double load_coalescing, store_coalescing; /* 0: not stated */
    double seconds, gbs;
    int64_t repeats;
};

/* ---- the device's copy ----------------------------------------------------------------------- */

/* `out` to the host's `result` */
static tsr_status fetch(const bench *b, size_t bytes) {
    TSR_TRY(b->device->ops->download(b->device, b->result, b->out, bytes, b->clock.stream));
    return b->device->ops->stream_wait(b->device, b->clock.stream);
}

static tsr_status compare(const memory_row *row, const void *found, const void *expected, size_t bytes) {
    const unsigned char *a = found, *b = expected;
    size_t at = 0;
    if (memcmp(a, b, bytes) == 0) return TSR_OK;
    while (a[at] == b[at]) at++;
    return tsr_fail(TSR_ERR_CHECK,
                    "%s: byte %zu of %zu differs from the source: do not trust this device, and report this", row->name,
                    at, bytes);
}

static tsr_status launch_copy(const bench *b, const memory_row *row) {
    (void)row;
    return b->device->ops->copy(b->device, b->out, b->in, b->bytes, b->clock.stream);
}

static tsr_status check_copy(const bench *b, const memory_row *row) {
    TSR_TRY(fetch(b, b->bytes));
    return compare(row, b->result, b->source, b->bytes);
}

/* ---- memory kernels -------------------------------------------------------------------------- */

static tsr_status launch_kernel(const bench *b, const memory_row *row) {
    const tsr_memory_args args = {.n = b->n, .in = b->in, .out = b->out};
    return tsr_memory_launch(row->kernel, b->device, b->clock.stream, &args);
}

static tsr_status check_kernel(const bench *b, const memory_row *row) {
    TSR_TRY(fetch(b, b->bytes));
    return tsr_memory_check(row->kernel, b->n, b->source, b->result);
}

/* ---- pack ------------------------------------------------------------------------------------ */

static const pack_case packs[] = {
    {"pack-f32-transposed", "f32 to f32", {TSR_F32, false}, TSR_F32, true, false, false},
    {"pack-f32-transposed-odd", "the same, rows of n - 1 elements", {TSR_F32, false}, TSR_F32, true, false, true},
    {"pack-f64-transposed", "f64 to f64", {TSR_F64, false}, TSR_F64, true, true, false},
    {"pack-f64-transposed-odd", "the same, rows of n - 1 elements", {TSR_F64, false}, TSR_F64, true, true, true},
    {"pack-f16-transposed", "f16 to f32", {TSR_F16, false}, TSR_F32, true, false, false},
    {"pack-f16-transposed-odd", "the same, rows of n - 1 elements", {TSR_F16, false}, TSR_F32, true, false, true},
    {"pack-f32-odd", "f32 to f32, rows of n - 1 elements", {TSR_F32, false}, TSR_F32, false, false, true},
    {"pack-f16", "f16 to f32", {TSR_F16, false}, TSR_F32, false, false, false},
    {"pack-f16-odd", "the same, rows of n - 1 elements", {TSR_F16, false}, TSR_F32, false, false, true},
    {"pack-i8", "i8 to f32", {TSR_I8, false}, TSR_F32, false, false, false},
    {"pack-u16", "u16 to f32", {TSR_U16, false}, TSR_F32, false, false, false},
    {"pack-f32-swapped", "f32 in the other byte order to f32", {TSR_F32, true}, TSR_F32, false, false, false},
    {"pack-f32-f64", "f32 to f64", {TSR_F32, false}, TSR_F64, false, true, false},
    {"pack-f64-f32", "f64 to f32", {TSR_F64, false}, TSR_F32, false, true, false},
    {"pack-f32-bf16", "f32 to bf16", {TSR_F32, false}, TSR_BF16, false, false, false},
};

static void pack_extent(const bench *b, const pack_case *pack, int64_t *rows, int64_t *cols) {
    *rows = (pack->half_rows ? b->n / 2 : b->n) - pack->odd;
    *cols = pack->odd ? b->n - 1 : b->n;
}

static tsr_pack_args pack_args(const bench *b, const pack_case *pack, void *from, void *to) {
    int64_t rows, cols;
    pack_extent(b, pack, &rows, &cols);
    tsr_pack_args args = {
        .from = {from, pack->from, rows, cols, cols}, .transpose = pack->transpose, .to = to, .type = pack->to};
    args.padded_rows = pack->transpose ? cols : rows;
    args.ld = args.padded_cols = pack->transpose ? rows : cols;
    return args;
}

static tsr_status launch_pack(const bench *b, const memory_row *row) {
    const tsr_pack_args args = pack_args(b, row->pack, b->in, b->out);
    return tsr_pack_find(b->facts.kind)->pack(b->device, b->clock.stream, &args);
}

/* What the host packs, bit for bit, or a NaN where that is one. */
static tsr_status check_pack(const bench *b, const memory_row *row) {
    const tsr_pack_args args = pack_args(b, row->pack, b->source, b->expected);
    const tsr_element to = {row->pack->to, false};
    const size_t width = tsr_dtype_bytes(to.dtype), bytes = (size_t)(args.padded_rows * args.ld) * width;
    TSR_TRY(fetch(b, bytes));
    TSR_TRY(tsr_pack_cpu.pack(NULL, NULL, &args));
    if (memcmp(b->result, b->expected, bytes) == 0) return TSR_OK;
    for (size_t at = 0; at < bytes; at += width) {
        double expected = tsr_element_to_double(to, (char *)b->expected + at),
               found = tsr_element_to_double(to, (char *)b->result + at);
        if (found == expected || (isnan(found) && isnan(expected))) continue;
        const int64_t element = (int64_t)(at / width);
        return tsr_fail(TSR_ERR_CHECK,
                        "%s: element (%" PRId64 ", %" PRId64
                        ") is %.9g and should be %.9g: do not trust this device, and report this",
                        row->name, element / args.ld, element % args.ld, found, expected);
    }
    return TSR_OK;
}

/* ---- transfers ------------------------------------------------------------------------------- */

static const transfer_case transfers[] = {
    {"upload-pageable", "ordinary host memory to the device", true, false},
    {"upload-pinned", "pinned host memory to the device", true, true},
    {"download-pageable", "device to ordinary host memory", false, false},
    {"download-pinned", "device to pinned host memory", false, true},
};

/* Uploads begin with the host's side full of the source, downloads with it painted; see prepare_row. */
static tsr_status launch_transfer(const bench *b, const memory_row *row) {
    const tsr_device_ops *ops = b->device->ops;
    void *host = row->transfer->pinned ? b->result : b->pageable;
    if (row->transfer->upload) return ops->upload(b->device, b->out, host, b->transfer_bytes, b->clock.stream);
    return ops->download(b->device, host, b->in, b->transfer_bytes, b->clock.stream);
}

static tsr_status check_transfer(const bench *b, const memory_row *row) {
    if (row->transfer->upload) {
        memset(b->result, 0xff, b->transfer_bytes);
        TSR_TRY(fetch(b, b->transfer_bytes));
    }
    return compare(row, row->transfer->upload || row->transfer->pinned ? b->result : b->pageable, b->source,
                   b->transfer_bytes);
}

static void prepare_transfer(const bench *b, const transfer_case *transfer) {
    void *host = transfer->pinned ? b->result : b->pageable;
    if (transfer->upload) memcpy(host, b->source, b->transfer_bytes);
    else memset(host, 0xff, b->transfer_bytes);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *group_of(const tsr_memory_kernel *kernel) {
    switch (kernel->result) {
    case TSR_MEMORY_COPY: return "copy";
    case TSR_MEMORY_TRANSPOSE: return "transpose";
    case TSR_MEMORY_PATTERN: return "pattern";
    case TSR_MEMORY_READ: return "read";
    case TSR_MEMORY_SUM: return "sum";
    case TSR_MEMORY_BLUR: return "blur";
    }
    return "";
}

static memory_row kernel_row(const bench *b, const tsr_memory_kernel *kernel) {
    memory_row row = {.group = group_of(kernel),
                      .name = kernel->name,
                      .what = kernel->what,
                      .kernel = kernel,
                      .launch = launch_kernel,
                      .check = check_kernel};
    row.bytes = kernel->effective_bytes * (double)tsr_memory_elements(kernel, b->n);
    row.flop_byte = kernel->flops / kernel->asked_bytes;
    row.load_coalescing = tsr_memory_load_coalescing(kernel, b->n);
    row.store_coalescing = tsr_memory_store_coalescing(kernel, b->n);
    return row;
}

static memory_row pack_row(const bench *b, const pack_case *pack) {
    memory_row row = {.group = "pack",
                      .name = pack->name,
                      .what = pack->what,
                      .pack = pack,
                      .launch = launch_pack,
                      .check = check_pack};
    int64_t rows, cols;
    pack_extent(b, pack, &rows, &cols);
    row.bytes = (double)rows * (double)cols * (double)(tsr_dtype_bytes(pack->from.dtype) + tsr_dtype_bytes(pack->to));
    return row;
}

/* What this device has: transfers only where the host's memory is another. */
static int make_rows(const bench *b, memory_row rows[MOST_ROWS]) {
    int count = 0, kernels;
    const tsr_memory_kernel *const *all = tsr_memory_kernels(&kernels);
    rows[count++] = (memory_row){.group = "copy",
                                 .name = "copy-device",
                                 .what = "the device's own copy",
                                 .launch = launch_copy,
                                 .check = check_copy,
                                 .bytes = 2 * (double)b->bytes};
    for (int i = 0; i < kernels; i++)
        if (all[i]->device == b->facts.kind && count < MOST_ROWS) rows[count++] = kernel_row(b, all[i]);
    for (size_t i = 0; i < sizeof packs / sizeof *packs && count < MOST_ROWS; i++)
        rows[count++] = pack_row(b, &packs[i]);
    for (size_t i = 0; i < sizeof transfers / sizeof *transfers && !b->facts.host_memory && count < MOST_ROWS; i++)
        rows[count++] = (memory_row){.group = "transfer",
                                     .name = transfers[i].name,
                                     .what = transfers[i].what,
                                     .transfer = &transfers[i],
                                     .launch = launch_transfer,
                                     .check = check_transfer,
                                     .bytes = (double)b->transfer_bytes};
    return count;
}

typedef struct {
    const bench *bench;
    const memory_row *row;
} launch_context;

static tsr_status launch(void *context) {
    const launch_context *c = context;
    return c->row->launch(c->bench, c->row);
}

static tsr_status measure(const bench *b, memory_row *row) {
    launch_context context = {b, row};
    int paint = row->kernel ? tsr_memory_paint(row->kernel) : 0xff;
    TSR_TRY(b->device->ops->fill_bytes(b->device, b->out, paint, b->bytes, b->clock.stream));
    if (row->transfer) prepare_transfer(b, row->transfer);
    TSR_TRY(tsr_bench_time(&b->clock, launch, &context, b->o->repeat, &row->seconds, NULL, &row->repeats));
    row->gbs = row->bytes / row->seconds / 1e9;
    return row->check(b, row);
}

/* The fastest of a group; 0 where there is none. */
static double best_of(const memory_row *rows, int count, const char *group) {
    double best = 0;
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].group, group) == 0) best = fmax(best, rows[i].gbs);
    return best;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* "-" for what does not apply. */
static const char *number(char text[16], const char *format, double value) {
    if (value > 0) snprintf(text, 16, format, value);
    else snprintf(text, 16, "-");
    return text;
}

/* Sums read and do not write: they stand beside the plain read, too. */
static double read_share(const memory_row *row, double read) {
    return strcmp(row->group, "sum") == 0 && read > 0 ? row->gbs / read : 0;
}

static void print_table(const bench *b, const memory_row *rows, int count) {
    const double copy = best_of(rows, count, "copy"), read = best_of(rows, count, "read");
    char share[16], of_read[16], flop_byte[16];
    char load[16], store[16];
    printf("memory on %s, n = %" PRId64 ", n x n floats: %.0f MB\n", b->facts.name, b->n, (double)b->bytes / 1e6);
    printf("%-24s %9s %7s %7s %10s %9s %6s %6s %7s  %s\n", "kernel", "GB/s", "copy", "read", "ms", "flop/byte", "loads",
           "stores", "repeats", "what");
    for (int i = 0; i < count; i++) {
        const memory_row *row = &rows[i];
        printf("%-24s %9.2f %7s %7s %10.4f %9s %6s %6s %7" PRId64 "  %s\n", row->name, row->gbs,
               number(share, "%.1f%%", 100 * row->gbs / copy), number(of_read, "%.1f%%", 100 * read_share(row, read)),
               1e3 * row->seconds, number(flop_byte, "%.2f", row->flop_byte),
               number(load, "%.2f", row->load_coalescing), number(store, "%.2f", row->store_coalescing), row->repeats,
               row->what);
    }
}

static void write_json(FILE *file, const bench *b, const memory_row *rows, int count) {
    const double copy = best_of(rows, count, "copy"), read = best_of(rows, count, "read");
    fprintf(file, "{\"format\": %d, \"version\": \"%s\", \"device\": ", TSR_RECORD_FORMAT, TSR_VERSION);
    tsr_json_string(file, b->facts.name);
    fprintf(file, ", \"n\": %" PRId64 ", \"copy_gbs\": %.6g,\n \"kernels\": [", b->n, copy);
    for (int i = 0; i < count; i++) {
        const memory_row *row = &rows[i];
        fprintf(file, "%s\n  {\"group\": \"%s\", \"kernel\": \"%s\", \"what\": ", i > 0 ? "," : "", row->group,
                row->name);
        tsr_json_string(file, row->what);
        fprintf(file,
                ", \"gbs\": %.6g, \"copy_share\": %.6g, \"seconds\": %.9g, \"repeats\": %" PRId64 ", \"bytes\": %.15g",
                row->gbs, row->gbs / copy, row->seconds, row->repeats, row->bytes);
        if (read_share(row, read) > 0) fprintf(file, ", \"read_share\": %.6g", read_share(row, read));
        if (row->flop_byte > 0) fprintf(file, ", \"flop_byte\": %.6g", row->flop_byte);
        if (row->load_coalescing > 0)
            fprintf(file, ", \"load_coalescing\": %.6g, \"store_coalescing\": %.6g", row->load_coalescing,
                    row->store_coalescing);
        fprintf(file, "}");
    }
    fprintf(file, "\n ]}\n");
}

/* ---- the command ----------------------------------------------------------------------------- */

static tsr_status prepare(bench *b) {
    const tsr_device_ops *ops = b->device->ops;
    TSR_TRY(tsr_bytes_checked(b->n, b->n, sizeof(float), &b->bytes));
    b->transfer_bytes = b->bytes < TRANSFER_BYTES ? b->bytes : TRANSFER_BYTES;
    TSR_TRY(ops->use(b->device));
    TSR_TRY(ops->facts(b->device, &b->facts));
    TSR_TRY(tsr_bench_clock_open(b->device, &b->clock));
    b->source = malloc(b->bytes);
    b->pageable = malloc(b->transfer_bytes);
    b->expected = malloc(b->bytes);
    if (!b->source || !b->pageable || !b->expected)
        return tsr_fail(TSR_ERR_MEMORY, "no host memory for %zu bytes: use a smaller --size", b->bytes);
    TSR_TRY(ops->allocate_host(b->device, b->bytes, (void **)&b->result));
    TSR_TRY(ops->allocate(b->device, b->bytes, &b->in));
    TSR_TRY(ops->allocate(b->device, b->bytes, &b->out));
    /* Small integers: their squares add up exactly in any order. */
    TSR_TRY(tsr_fill_host(TSR_FILL_INTEGER, SEED, 0, 0, (tsr_view){b->source, {TSR_F32, false}, b->n, b->n, b->n}));
    TSR_TRY(ops->upload(b->device, b->in, b->source, b->bytes, b->clock.stream));
    return ops->stream_wait(b->device, b->clock.stream);
}

static void release(bench *b) {
    const tsr_device_ops *ops = b->device->ops;
    ops->release(b->device, b->out);
    ops->release(b->device, b->in);
    ops->release_host(b->device, b->result);
    free(b->pageable);
    free(b->expected);
    free(b->source);
    tsr_bench_clock_close(&b->clock);
}

/* Local, on rank 0. */
static tsr_status run_bench(const void *asked, tsr_device *device) {
    const memory_options *o = asked;
    bench b = {.o = o, .device = device, .n = o->size};
    memory_row rows[MOST_ROWS];
    int count;
    tsr_text_file json;
    tsr_status status = TSR_OK;
    if (o->json) TSR_TRY_DONE(tsr_text_file_check(TSR_BENCH_JSON, o->json));
    TSR_TRY_DONE(prepare(&b));
    count = make_rows(&b, rows);
    for (int i = 0; i < count; i++) TSR_TRY_DONE(measure(&b, &rows[i]));
    if (!o->quiet) print_table(&b, rows, count);
    if (o->json) {
        TSR_TRY_DONE(tsr_text_file_open(TSR_BENCH_JSON, o->json, &json));
        write_json(json.to, &b, rows, count);
        status = tsr_text_file_close(&json, 0);
    }
done:
    release(&b);
    return status;
}

static tsr_status read_size(const tsr_option *option, const char *text, void *field) {
    TSR_TRY(tsr_read_whole(option, text, field));
    if (*(int64_t *)field % TSR_MEMORY_MULTIPLE == 0) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "--size %s: use a multiple of %d, such as 8192", text, TSR_MEMORY_MULTIPLE);
}

#define AT(member) offsetof(memory_options, member)

static const tsr_option options[] = {
    {.name = "size",
     .value = "N",
     .help = "Kernels work on N x N floats; a multiple of 32 (default 8192)",
     .initial = "8192",
     .read = read_size,
     .low = TSR_MEMORY_MULTIPLE,
     .high = 65536,
     .field = AT(size)},
    {.shared = &tsr_option_device, .field = AT(device)},
    {.name = "repeat",
     .value = "N",
     .help = "Timed launches each, of which the median counts (default 20; fewer where they take over 30 s)",
     .initial = "20",
     .read = tsr_read_whole,
     .low = 1,
     .high = 1000000,
     .field = AT(repeat)},
    {.shared = &tsr_option_json, .field = AT(json)},
    {.shared = &tsr_option_quiet, .field = AT(quiet)},
    {0}};

static const tsr_options command = {
    .options = options,
    .what =
        "Measures memory: copies, transposes, access patterns, sums, conversions and transfers; every result is "
        "checked.\v"
        "GB/s counts the bytes that have to be read and written once; copy and read are shares of the fastest copy and "
        "of "
        "the plain read. "
        "flop/byte counts the bytes the kernel asks for. loads and stores: bytes a warp asks for over the bytes of the "
        "32-byte sectors it touches; "
        "above 1, lanes share them."};

static void help(void) { tsr_options_help(&command, "tessera bench memory", "tessera bench memory --size 8192"); }

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    memory_options o = {0};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&command, argc, argv, &o)));
    return tsr_bench_on_rank_0(world, o.device, &o.json, run_bench, &o);
}

const tsr_bench tsr_bench_memory = {"memory", run, help, &command};
