/* tessera generate: a matrix whose element (i, j) depends on the seed, i and j alone, written by all ranks in bands
 * of rows, so that the file holds the same bytes for any number of ranks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/command.h"
#include "app/commands/make_chunks.h"
#include "app/interrupt.h"
#include "app/last_words.h"
#include "app/library/place_chunks.h"
#include "app/progress.h"
#include "app/tessera_options.h"
#include "app/verify/strips.h"
#include "io/describe/describe.h"
#include "io/output/output_chunks.h"
#include "io/text/json.h"
#include "io/text/text.h"
#include "io/text/text_file.h"
#include "kernels/fill/fill.h"

#define BUFFER_BYTES ((size_t)64 << 20)

typedef struct {
    const char *output, *log;
    int64_t rows, cols; /* as the person sees them; -1: not given */
    tsr_dtype type;
    tsr_fill_kind fill;
    int64_t seed;
    tsr_order order;
    tsr_run_target target; /* how its file holds it */
    tsr_io_mode io;
    tsr_progress_mode progress;
    bool quiet;
} generate_options;

static tsr_status read_shape(const tsr_option *option, const char *text, void *field) {
    (void)option;
    generate_options *o = field;
    return tsr_parse_shape("--shape", text, &o->rows, &o->cols);
}

static tsr_status read_type(const tsr_option *option, const char *text, void *field) {
    return tsr_dtype_parse_for(TSR_USE_DATASET, option->name, text, field);
}

#define AT(member) offsetof(generate_options, member)

static const tsr_option options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "MATRIX",
     .help = "Where the matrix goes: file.h5[:/path] (path /C unless given), file.npy or file.bin:TYPE",
     .read = tsr_read_text,
     .field = AT(output)},
    {.name = "shape", .value = "MxN", .help = "Rows x columns", .read = read_shape},
    {.name = "type",
     .value = "TYPE",
     .help = "f16, bf16, f32 (default), f64, c64, c128, i8 to i64, u8 to u64",
     .initial = "f32",
     .read = read_type,
     .field = AT(type)},
    {.shared = &tsr_option_distribution,
     .help = "uniform in [0, 1) (default), normal, integer from -4 to 4 (from 0 in unsigned types; default of integer "
             "types), identity",
     .field = AT(fill)},
    {.shared = &tsr_option_seed, .field = AT(seed)},
    {.shared = &tsr_option_order,
     .help = "How M x N is meant: as h5ls shows it (row, default), or as MATLAB, Fortran and Julia do (col)",
     .field = AT(order)},
    {.shared = &tsr_option_chunk, .field = AT(target)},
    {.shared = &tsr_option_compress, .field = AT(target.compress)},
    {.shared = &tsr_option_shuffle, .field = AT(target.shuffle)},
    {.shared = &tsr_option_checksum, .field = AT(target.checksum)},
    {.shared = &tsr_option_force, .help = "Replace a dataset that is there", .field = AT(target.force)},
    {.shared = &tsr_option_io, .field = AT(io)},
    {.shared = &tsr_option_log,
     .help = "Also describe the run in this JSON file; - is standard output",
     .field = AT(log)},
    {.shared = &tsr_option_progress, .field = AT(progress)},
    {.shared = &tsr_option_quiet, .help = "Neither progress nor a word when it is done", .field = AT(quiet)},
    {0}};

#define BY_TYPE ((tsr_fill_kind)-1) /* unless it is chosen: integers from 0 to 1 would be 0 */

static tsr_status check(void *to) {
    generate_options *o = to;
    if (o->fill == BY_TYPE) o->fill = tsr_dtype_largest(o->type) > 0 ? TSR_FILL_INTEGER : TSR_FILL_UNIFORM;
    if (!o->output) return tsr_fail(TSR_ERR_USAGE, "generate: no output: name it with -o FILE.h5[:/path]");
    if (o->rows < 0) return tsr_fail(TSR_ERR_USAGE, "generate: no shape: give it with --shape MxN");
    return tsr_check_compress(&o->target);
}

static const tsr_options table = {
    .options = options,
    .what = "Writes a matrix whose element (i, j) depends on seed, i and j alone: the same file for any number of "
            "ranks.",
    .check = check};

static void help(const char *part) {
    (void)part;
    tsr_options_help(&table, "tessera generate",
                     "mpirun -n 4 tessera generate -o A.h5:/A --shape 20000x10000 --seed 1");
}

/* to[c][r] for rows × cols elements of `bytes` each: the transpose of from[r][c]. */
static void transpose(const char *from, char *to, int64_t rows, int64_t cols, size_t bytes) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            memcpy(to + (size_t)(c * rows + r) * bytes, from + (size_t)(r * cols + c) * bytes, bytes);
}

/* The elements of `rect` of the dataset. In column order the person's element (i, j) stands at (j, i); spare is used
 * then. */
static tsr_status fill_rect(const void *context, tsr_rect rect, void *data, void *spare) {
    const generate_options *o = context;
    tsr_element element = {o->type, false};
    if (o->order == TSR_ORDER_ROW)
        return tsr_fill_host(o->fill, (uint64_t)o->seed, rect.row, rect.col,
                             (tsr_view){data, element, rect.rows, rect.cols, rect.cols});
    TSR_TRY(tsr_fill_host(o->fill, (uint64_t)o->seed, rect.col, rect.row,
                          (tsr_view){spare, element, rect.cols, rect.rows, rect.rows}));
    transpose(spare, data, rect.cols, rect.rows, tsr_dtype_bytes(o->type));
    return TSR_OK;
}

/* Chunks that a rank fills and encodes at once. */
static int threads_of(const tsr_world *world) { return (int)tsr_min(TSR_ENCODERS_MAX, tsr_max(1, world->cores)); }

/* Local. This rank's band, strip by strip. */
static tsr_status write_band(const tsr_world *world, const generate_options *o, tsr_store *store, tsr_run_log *log) {
    size_t bytes = tsr_dtype_bytes(o->type), buffer = BUFFER_BYTES / 2;
    tsr_strips strips =
        tsr_strips_make(store->desc.rows, store->desc.cols, 1, bytes, buffer, world->ranks, world->rank);
    size_t need = (size_t)(strips.step_rows * strips.step_cols) * bytes;
    tsr_progress progress;
    tsr_status status = TSR_OK;
    tsr_rect rect;
    double total = (double)strips.rows.count * (double)strips.cols * (double)bytes, done = 0;
    char *data = malloc(need), *spare = malloc(need);
    tsr_progress_open(&progress, world->rank == 0 && !o->quiet ? o->progress : TSR_PROGRESS_OFF, "generate", total, "B",
                      stderr);
    if (!data || !spare)
        TSR_TRY_DONE(tsr_fail(TSR_ERR_MEMORY,
                              "no memory for two buffers of %zu bytes: free some, or run fewer ranks on this node",
                              need));
    while (tsr_strips_next(&strips, &rect)) {
        TSR_TRY_DONE(fill_rect(o, rect, data, spare));
        TSR_TRY_DONE(store->ops->write(store, rect, data, rect.cols));
        done += (double)tsr_rect_elements(rect) * (double)bytes;
        tsr_progress_update(&progress, done, 0);
        tsr_run_log_progress(log, done / total);
    }
    status = store->ops->sync(store);
done:
    tsr_progress_close(&progress);
    free(spare);
    free(data);
    return status;
}

/* Local. This rank's chunks, encoded by its threads. */
static tsr_status write_chunks(const tsr_world *world, const generate_options *o, tsr_store *store, tsr_run_log *log) {
    tsr_progress progress;
    tsr_chunk_maker maker = {.store = store, .fill = fill_rect, .options = o};
    const double total = tsr_chunk_maker_plan(&maker, world->ranks, world->rank);
    tsr_progress_open(&progress, world->rank == 0 && !o->quiet ? o->progress : TSR_PROGRESS_OFF, "generate", total, "B",
                      stderr);
    tsr_chunk_maker_start(&maker, threads_of(world));
    while (!tsr_chunk_maker_wait(&maker) && total > 0) {
        tsr_progress_update(&progress, tsr_chunk_maker_done(&maker), 0);
        tsr_run_log_progress(log, tsr_chunk_maker_done(&maker) / total);
    }
    const tsr_status status = tsr_chunk_maker_status(&maker);
    tsr_progress_close(&progress);
    return status;
}

/* What the log says of a matrix that is written. */
typedef struct {
    const generate_options *options;
    const tsr_output_spec *spec;
    const tsr_output *output;
    const char *command;
    const char *started;
    int ranks;
    double seconds;
} written;

static void write_text(FILE *to, const char *name, const char *text) {
    fprintf(to, ",\n  \"%s\": ", name);
    tsr_json_string(to, text);
}

static void write_members(const void *context, FILE *to) {
    const written *w = context;
    const generate_options *o = w->options;
    double bytes = (double)o->rows * (double)o->cols * (double)tsr_dtype_bytes(o->type);
    write_text(to, "program", "tessera " TSR_VERSION);
    write_text(to, "command", w->command);
    write_text(to, "started", w->started);
    write_text(to, "file", w->output->target);
    write_text(to, "path", w->output->desc.name.path);
    write_text(to, "type", tsr_dtype_name(o->type));
    write_text(to, "distribution", tsr_fill_name(o->fill));
    fprintf(to, ",\n  \"rows\": %" PRId64 ",\n  \"cols\": %" PRId64 ",\n  \"seed\": %" PRId64 ",\n  \"ranks\": %d",
            o->rows, o->cols, o->seed, w->ranks);
    fprintf(to, ",\n  \"rank_count\": %d", w->ranks); /* as in other logs; 0.1.0 called it ranks */
    fprintf(to, ",\n  \"seconds\": %.6f,\n  \"gb_per_second\": %.6f", w->seconds,
            w->seconds > 0 ? bytes / w->seconds / 1e9 : 0);
}

/* Local, rank 0. The dataset becomes visible here. */
static tsr_status publish(const tsr_world *world, written *w, double started_seconds, tsr_run_log *log) {
    const generate_options *o = w->options;
    const tsr_output *output = w->output;
    TSR_TRY(tsr_output_publish(output, NULL, w->command));
    w->seconds = tsr_now_seconds() - started_seconds;
    (void)tsr_job_log_done(world, &tsr_interrupt_guards, log, "the matrix", write_members, w);
    double bytes = (double)o->rows * (double)o->cols * (double)tsr_dtype_bytes(o->type);
    char size[32];
    if (!o->quiet) {
        tsr_text_put(stdout, output->target);
        if (*output->desc.name.path) putchar(':');
        tsr_text_put(stdout, output->desc.name.path);
        printf(": %" PRId64 " x %" PRId64 " %s %s, %s in %.2f s by %d rank%s\n", o->rows, o->cols,
               tsr_fill_name(o->fill), tsr_dtype_name(o->type), tsr_format_bytes(bytes, size), w->seconds, world->ranks,
               world->ranks > 1 ? "s" : "");
    }
    if (!o->quiet) tsr_output_note(w->spec, output);
    return tsr_job_said(log, "the matrix");
}

/* Collective. Between creation and publication: what fails here leaves only the temporary file, which the caller
 * discards. */
static tsr_status write_dataset(const tsr_world *world, const generate_options *o, const tsr_output *output,
                                tsr_run_log *log) {
    tsr_store *store = NULL;
    TSR_TRY(tsr_agree(world->comm, tsr_output_open(output, o->io, &world->comm, &store)));
    const bool chunked = output->desc.chunk_rows > 0;
    tsr_status status = chunked ? write_chunks(world, o, store, log) : write_band(world, o, store, log);
    if (chunked) status = tsr_agree(world->comm, status);
    if (chunked && status == TSR_OK) status = tsr_place_chunks(world, output, store, NULL, NULL);
    if (chunked && status == TSR_OK) status = store->ops->sync(store);
    if (o->io == TSR_IO_MPIO) status = tsr_agree(world->comm, status); /* closing is collective there */
    tsr_store_close(store);
    return tsr_agree(world->comm, status); /* all have closed: HDF5 writes to a file it closes */
}

static tsr_status generate(const tsr_world *world, const generate_options *o, const tsr_output_spec *spec,
                           const char *command, tsr_run_log *log) {
    double started = tsr_now_seconds();
    tsr_output output;
    written made = {.options = o,
                    .spec = spec,
                    .output = &output,
                    .command = command,
                    .started = log->started,
                    .ranks = world->ranks};
    memset(&output, 0, sizeof output);
    tsr_status status = world->rank == 0 ? tsr_output_create(spec, &output) : TSR_OK;
    tsr_describer_close(world->describer);
    status = tsr_share(world->comm, status, &output, sizeof output);
    if (status != TSR_OK) {
        if (world->rank == 0) tsr_output_discard(&output);
        return status;
    }
    tsr_interrupt_guard(&output, false);
    tsr_output_warn(&output, world->warnings);
    tsr_run_log_stage(log, "generate");
    status = write_dataset(world, o, &output, log);
    if (status != TSR_OK) {
        if (world->rank == 0) tsr_output_discard(&output);
        return status;
    }
    tsr_run_log_stage(log, "publish");
    return tsr_agree(world->comm, world->rank == 0 ? publish(world, &made, started, log) : TSR_OK);
}

/* A log that is refused is none. */
static tsr_status make_spec(const tsr_world *world, generate_options *o, tsr_output_spec *spec) {
    bool swap = o->order == TSR_ORDER_COL;
    *spec = (tsr_output_spec){.rows = swap ? o->cols : o->rows,
                              .cols = swap ? o->rows : o->cols,
                              .dtype = o->type,
                              .force = o->target.force,
                              .chunk_rows = swap ? o->target.chunk_cols : o->target.chunk_rows,
                              .chunk_cols = swap ? o->target.chunk_rows : o->target.chunk_cols,
                              .shuffle = o->target.shuffle,
                              .compress = o->target.compress,
                              .checksum = o->target.checksum};
    tsr_output_choose_chunks(spec);
    spec->encode_bytes = tsr_output_encode_bytes(spec, threads_of(world));
    TSR_TRY(tsr_matrix_name_parse(o->output, &spec->name));
    spec->name.columns_first = swap;
    if (!o->log || !tsr_same_file(o->log, spec->name.file)) return TSR_OK;
    const char *log = o->log;
    o->log = NULL;
    return tsr_fail(TSR_ERR_USAGE, "--log %s would overwrite the output '%s': give it a file of its own", log,
                    spec->name.file);
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    generate_options o = {.rows = -1, .cols = -1, .fill = BY_TYPE};
    tsr_output_spec spec;
    tsr_run_log log;
    tsr_status status = tsr_options_parse(&table, argc, argv, &o);
    if (status != TSR_OK && !o.log) o.log = tsr_job_log_find(argc, argv);
    if (status == TSR_OK) status = tsr_text_file_resolve(&o.log);
    if (status == TSR_OK) status = make_spec(world, &o, &spec);
    spec.describer = world->describer;
    status = tsr_agree(world->comm, status);
    if (status != TSR_OK) {
        tsr_job_log_refuse(world, o.log, argc, argv, status);
        return status;
    }
    char *command = tsr_command_line(argc, argv);
    status = command ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for the command line: free some");
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(tsr_job_log_open(world, &tsr_interrupt_guards, o.log, command, &log));
    status = tsr_agree(world->comm, generate(world, &o, &spec, command, &log));
    tsr_job_log_close(world, &tsr_interrupt_guards, &log, status);
done:
    free(command);
    return status;
}

const tsr_command tsr_cmd_generate = {
    .name = "generate",
    .what = "write a matrix of random numbers or the identity",
    .run = run,
    .help = help,
    .options = &table,
};
