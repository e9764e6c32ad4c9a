/* tessera multiply: the options of one multiplication. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/command.h"
#include "app/job_log.h"
#include "app/multiply.h"
#include "io/output_chunks.h"
#include "io/text_file.h"

enum {
    KEY_ALPHA = 1000, KEY_BETA, KEY_ADD, KEY_TRANSPOSE_A, KEY_TRANSPOSE_B, KEY_TYPE, KEY_ORDER, KEY_CHUNK, KEY_COMPRESS, KEY_SHUFFLE, KEY_ACCURACY, KEY_KERNEL, KEY_DEVICE, KEY_TRANSPORT,
    KEY_GRID, KEY_PANEL, KEY_MEMORY, KEY_HOST_MEMORY, KEY_IO, KEY_THREADS, KEY_IO_THREADS, KEY_FORCE, KEY_DRY_RUN,
    KEY_VERIFY, KEY_TRIALS, KEY_LOG, KEY_TRACE, KEY_RANKS, KEY_QUIET, KEY_PROGRESS
};

static const struct argp_option options[] = {
    {0, 0, 0, 0, "The product", 1},
    {"output", 'o', "MATRIX", 0, "Write C here: file.h5 or file.h5:/path (/C when no path is given)", 0},
    {"alpha", KEY_ALPHA, "X", 0, "Scale the product (1); 0 reads neither A nor B", 0},
    {"beta", KEY_BETA, "X", 0, "Scale C0 (1 with --add, else 0); 0 never reads C0", 0},
    {"add", KEY_ADD, "C0", 0, "Add beta times this matrix", 0},
    {"transpose-a", KEY_TRANSPOSE_A, 0, 0, "Multiply the transpose of A", 0},
    {"transpose-b", KEY_TRANSPOSE_B, 0, 0, "Multiply the transpose of B", 0},
    {"type", KEY_TYPE, "TYPE", 0, "Type of C: f16, f32 or f64 (the type the product is computed in)", 0},
    {"order", KEY_ORDER, "ORDER", 0, "row: shapes as h5ls shows them (default); col: as MATLAB, Fortran and Julia do", 0},
    {"chunk", KEY_CHUNK, "RxC|auto", 0, "Store C in chunks of R rows and C columns, cut to its size; auto: of about 1 MiB", 0},
    {"compress", KEY_COMPRESS, "gzip[:LEVEL]", 0, "Compress the chunks of C (chosen without --chunk), at level 0 to 9 (4)", 0},
    {"shuffle", KEY_SHUFFLE, 0, 0, "Sort the bytes of a chunk by their significance before compression, which then saves more", 0},
    {"force", KEY_FORCE, 0, 0, "Replace C where it exists", 0},
    {0, 0, 0, 0, "How it runs", 2},
    {"device", KEY_DEVICE, "KIND", 0, "auto (a GPU where one is visible), cpu or cuda", 0},
    {"accuracy", KEY_ACCURACY, "CLASS", 0, "What may be lost for speed: ieee (nothing; default), fast (rounding of sums), tf32 or bf16 (operands rounded to it)", 0},
    {"kernel", KEY_KERNEL, "NAME", 0, "Kernel by name, whatever it loses, or auto: the fastest that --accuracy allows", 0},
    {"grid", KEY_GRID, "PxQ[xR]", 0, "Ranks over rows of C, columns of C and k, or auto", 0},
    {"panel", KEY_PANEL, "K", 0, "Columns of A and rows of B in one step (chosen)", 0},
    {"memory", KEY_MEMORY, "BYTES|PERCENT", 0, "Device memory a rank may use (90%)", 0},
    {"host-memory", KEY_HOST_MEMORY, "BYTES|PERCENT", 0, "Host memory a rank may use for matrices (80% of its share of what is free)", 0},
    {"transport", KEY_TRANSPORT, "NAME", 0, "How ranks share panels: auto, nccl, cuda-aware or host", 0},
    {"io", KEY_IO, "MODE", 0, "How bytes move: auto, direct, hdf5 or mpio", 0},
    {"threads", KEY_THREADS, "N", 0, "Most threads of a rank at once, for any of its work (its cores)", 0},
    {"io-threads", KEY_IO_THREADS, "N", 0, "Threads that read or write at once on a rank (chosen)", 0},
    {"dry-run", KEY_DRY_RUN, 0, 0, "Show the plan; touch no data", 0},
    {0, 0, 0, 0, "What it shows", 3},
    {"verify", KEY_VERIFY, 0, 0, "Check C against A and B before it gets its name (exit code 3 when wrong)", 0},
    {"trials", KEY_TRIALS, "N", 0, "Random vectors of the check (20): a wrong C passes with probability at most 2^-N", 0},
    {"log", KEY_LOG, "FILE", 0, "Write the run's record as JSON; - is standard output, as for --trace", 0},
    {"trace", KEY_TRACE, "FILE", 0, "Write when each step of each lane and rank ran as Chrome trace JSON (Perfetto opens it)", 0},
    {"progress", KEY_PROGRESS, "HOW", 0, "auto, bar, plain or off", 0},
    {"quiet", KEY_QUIET, 0, 0, "Neither progress nor a summary; errors and warnings remain", 0},
    {"ranks", KEY_RANKS, 0, 0, "Also print the table of ranks: each rank's lanes, as wide as that is", 0},
    {0}};

typedef struct {
    tsr_multiply_settings settings;
    const char *add;
    bool has_beta, has_output;
    int matrices;
} parsed;

static tsr_status parse_type(const char *text, tsr_multiply_settings *s) {
    TSR_TRY(tsr_dtype_parse(text, &s->type));
    if (s->type != TSR_F16 && s->type != TSR_F32 && s->type != TSR_F64)
        return tsr_fail(TSR_ERR_USAGE, "--type %s: C can be f16, f32 or f64", text);
    s->has_type = true;
    return TSR_OK;
}

static tsr_status parse_chunk(const char *text, tsr_multiply_settings *s) {
    s->chunk_rows = s->chunk_cols = TSR_CHUNK_AUTO;
    if (strcmp(text, "auto") == 0) return TSR_OK;
    TSR_TRY(tsr_parse_shape("--chunk", text, &s->chunk_rows, &s->chunk_cols));
    if (s->chunk_rows > 0 && s->chunk_cols > 0) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "--chunk %s: a chunk has at least one row and one column", text);
}

static tsr_status parse_compress(const char *text, tsr_multiply_settings *s) {
    int64_t level = 4;
    bool level_given = strncmp(text, "gzip:", 5) == 0;
    if (!level_given && strcmp(text, "gzip") != 0)
        return tsr_fail(TSR_ERR_USAGE, "--compress %s: choose gzip or gzip:LEVEL, with a level from 0 (none) to 9 (smallest)", text);
    if (level_given) TSR_TRY(tsr_parse_int("--compress gzip:", text + 5, 0, 9, &level));
    s->gzip = true, s->gzip_level = (int)level;
    return TSR_OK;
}

static tsr_status parse_one(int key, char *arg, parsed *p) {
    tsr_multiply_settings *s = &p->settings;
    int64_t number;
    switch (key) {
    case 'o': p->has_output = true; return tsr_matrix_name_parse(arg, &s->c);
    case KEY_ALPHA: return tsr_parse_double("--alpha", arg, &s->alpha);
    case KEY_BETA: p->has_beta = true; return tsr_parse_double("--beta", arg, &s->beta);
    case KEY_ADD: s->has_c0 = true; return tsr_matrix_name_parse(arg, &s->c0);
    case KEY_TRANSPOSE_A: s->transpose_a = true; return TSR_OK;
    case KEY_TRANSPOSE_B: s->transpose_b = true; return TSR_OK;
    case KEY_TYPE: return parse_type(arg, s);
    case KEY_ORDER: return tsr_order_parse(arg, &s->order);
    case KEY_CHUNK: return parse_chunk(arg, s);
    case KEY_COMPRESS: return parse_compress(arg, s);
    case KEY_SHUFFLE: s->shuffle = true; return TSR_OK;
    case KEY_FORCE: s->force = true; return TSR_OK;
    case KEY_DEVICE: return tsr_device_parse(arg, &s->device);
    case KEY_ACCURACY: return tsr_accuracy_parse(arg, &s->accuracy);
    case KEY_KERNEL: s->kernel = arg; return TSR_OK;
    case KEY_GRID: return tsr_parse_grid("--grid", arg, s->grid);
    case KEY_PANEL: return tsr_parse_int("--panel", arg, 1, INT64_MAX, &s->panel);
    case KEY_MEMORY: return tsr_parse_memory("--memory", arg, &s->memory_bytes, &s->memory_percent);
    case KEY_HOST_MEMORY: return tsr_parse_memory("--host-memory", arg, &s->host_memory_bytes, &s->host_memory_percent);
    case KEY_TRANSPORT: s->transport = arg; return TSR_OK;
    case KEY_IO: return tsr_io_mode_parse(arg, &s->io);
    case KEY_THREADS:
        TSR_TRY(tsr_parse_int("--threads", arg, 1, TSR_THREADS_MAX, &number));
        s->threads = (int)number;
        return TSR_OK;
    case KEY_IO_THREADS:
        TSR_TRY(tsr_parse_int("--io-threads", arg, 1, 32, &number));
        s->io_threads = (int)number;
        return TSR_OK;
    case KEY_DRY_RUN: s->dry_run = true; return TSR_OK;
    case KEY_VERIFY: s->verify = true; return TSR_OK;
    case KEY_TRIALS: s->verify = true; return tsr_parse_int("--trials", arg, 1, 64, &s->trials);
    case KEY_LOG: s->log = arg; return TSR_OK;
    case KEY_TRACE: s->trace = arg; return TSR_OK;
    case KEY_PROGRESS: return tsr_progress_parse(arg, &s->progress);
    case KEY_QUIET: s->quiet = true; return TSR_OK;
    case KEY_RANKS: s->ranks = true; return TSR_OK;
    default: return TSR_OK;
    }
}

static tsr_status parse_matrix(const char *text, parsed *p) {
    switch (p->matrices++) {
    case 0: return tsr_matrix_name_parse(text, &p->settings.a);
    case 1: return tsr_matrix_name_parse(text, &p->settings.b);
    default: return tsr_fail(TSR_ERR_USAGE, "'%s' is one matrix too many: tessera multiply A B -o C", text);
    }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    parsed *p = state->input;
    if (key == ARGP_KEY_ARG) return parse_matrix(arg, p) == TSR_OK ? 0 : EINVAL;
    if (key <= 0 || (key > 255 && (key < KEY_ALPHA || key > KEY_PROGRESS))) return ARGP_ERR_UNKNOWN;
    return parse_one(key, arg, p) == TSR_OK ? 0 : EINVAL;
}

static const struct argp argp = {options, parse, "A B -o C",
                                 "C = alpha op(A) op(B) + beta C0, from HDF5 files to an HDF5 file, on all ranks of the job.\v"
                                 "A matrix is file.h5:/path, or file.h5 where that holds one matrix; a trailing [r0:r1,c0:c1] selects a part.",
                                 NULL, NULL, NULL};

/* What a run says of itself goes to a file that it neither reads nor writes besides. A log that is refused is none. */
static tsr_status check_own_file(const tsr_multiply_settings *s, const char *option, const char *file, const char *other) {
    const char *const taken[] = {other, s->c.file, s->a.file, s->b.file, s->has_c0 ? s->c0.file : NULL};
    for (size_t i = 0; file && i < sizeof taken / sizeof *taken; i++)
        if (taken[i] && tsr_same_file(file, taken[i]))
            return tsr_fail(TSR_ERR_USAGE, "%s %s would overwrite '%s', which the run reads or writes: give it a file of its own", option, file, taken[i]);
    return TSR_OK;
}

static tsr_status check(parsed *p) {
    if (p->matrices < 2) return tsr_fail(TSR_ERR_USAGE, "two matrices are needed: tessera multiply A B -o C");
    if (!p->has_output) return tsr_fail(TSR_ERR_USAGE, "where the product goes is needed: -o FILE.h5 or -o FILE.h5:/path");
    if (p->settings.quiet) p->settings.progress = TSR_PROGRESS_OFF;
    if (!p->has_beta) p->settings.beta = p->settings.has_c0 ? 1 : 0;
    if (p->settings.beta != 0 && !p->settings.has_c0) return tsr_fail(TSR_ERR_USAGE, "--beta scales C0: give that with --add C0");
    const tsr_multiply_settings *s = &p->settings;
    if (s->shuffle && !s->gzip) return tsr_fail(TSR_ERR_USAGE, "--shuffle saves nothing by itself: give --compress gzip with it");
    const tsr_status log = check_own_file(s, "--log", s->log, NULL),
                     trace = log == TSR_OK ? check_own_file(s, "--trace", s->trace, s->log) : log;
    if (log != TSR_OK || (trace != TSR_OK && s->log && tsr_same_file(s->trace, s->log))) p->settings.log = NULL;
    return trace;
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    parsed p = {.settings = {.alpha = 1, .kernel = "auto", .device = "auto", .transport = "auto", .memory_percent = 90, .host_memory_percent = 80,
                             .io = TSR_IO_AUTO, .trials = 20, .progress = TSR_PROGRESS_AUTO}};
    tsr_status status = tsr_options_parse(&argp, argc, argv, &p);
    if (status != TSR_OK && !p.settings.log) p.settings.log = tsr_job_log_find(argc, argv);
    if (status == TSR_OK) status = check(&p);
    if (status == TSR_OK) status = tsr_text_file_resolve(&p.settings.log);
    if (status == TSR_OK) status = tsr_text_file_resolve(&p.settings.trace);
    status = tsr_agree(world->comm, status);
    if (status != TSR_OK) {
        if (!p.settings.dry_run) tsr_job_log_refuse(world, p.settings.log, argc, argv, status);
        return status;
    }
    char *command = tsr_command_line(argc, argv);
    p.settings.command = command ? command : "tessera multiply";
    status = tsr_multiply(world, &p.settings);
    free(command);
    return status;
}

static void help(const char *part) {
    (void)part;
    tsr_options_help(&argp, "tessera multiply",
                     "mpirun -n 4 tessera multiply A.h5:/A B.h5:/B -o C.h5:/C --verify\n"
                     "  tessera multiply A.h5 B.h5 -o C.h5 --transpose-b --dry-run");
}

const tsr_command tsr_cmd_multiply = {
    .name = "multiply",
    .what = "C = alpha op(A) op(B) + beta C0, from HDF5 files to an HDF5 file",
    .run = run, .help = help,
};
