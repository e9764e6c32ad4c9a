/* Options that several commands have (tessera_options.h). A command may word the help in its own way. */
#include "app/tessera_options.h"

#include <string.h>
#include <sys/stat.h>

#include "app/progress.h"
#include "io/output/output_chunks.h"
#include "mpi/schedule/schedule.h"

/* ---- readers --------------------------------------------------------------------------------- */

static tsr_status read_chunk(const tsr_option *option, const char *text, void *field) {
    (void)option;
    tsr_run_target *target = field;
    return tsr_parse_chunk("--chunk", text, &target->chunk_rows, &target->chunk_cols);
}

static tsr_status read_compress(const tsr_option *option, const char *text, void *field) {
    (void)option;
    return tsr_compress_parse("--compress", text, field);
}

static tsr_status read_device(const tsr_option *option, const char *text, void *field) {
    (void)option;
    return tsr_device_parse(text, field);
}

static tsr_status read_accuracy(const tsr_option *option, const char *text, void *field) {
    (void)option;
    return tsr_accuracy_parse(text, field);
}

static tsr_status read_schedule(const tsr_option *option, const char *text, void *field) {
    (void)option;
    return tsr_schedule_find(text, field);
}

static tsr_status read_grid(const tsr_option *option, const char *text, void *field) {
    (void)option;
    return tsr_parse_grid("--grid", text, field);
}

static tsr_status read_memory(const tsr_option *option, const char *text, void *field) {
    tsr_memory_limit *limit = field;
    const char *name = option->name[0] == 'h' ? "--host-memory" : "--memory";
    return tsr_parse_memory(name, text, &limit->bytes, &limit->percent);
}

static tsr_status read_plugins(const tsr_option *option, const char *text, void *field) {
    struct stat folder;
    (void)option;
    (void)field;
    if (stat(text, &folder) == 0 && S_ISDIR(folder.st_mode)) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "--plugins %s: there is no such folder; name the one that holds HDF5's plugins",
                    text);
}

static tsr_status read_external(const tsr_option *option, const char *text, void *field) {
    struct stat folder;
    (void)option;
    *(const char **)field = text ? text : "";
    if (!text || (stat(text, &folder) == 0 && S_ISDIR(folder.st_mode))) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE,
                    "--allow-external=%s: there is no such folder; name the one that holds the files which inputs name",
                    text);
}

static tsr_status read_io(const tsr_option *option, const char *text, void *field) {
    (void)option;
    return tsr_io_mode_parse(text, field);
}

static tsr_status read_order(const tsr_option *option, const char *text, void *field) {
    (void)option;
    return tsr_order_parse(text, field);
}

static tsr_status read_triangle(const tsr_option *option, const char *text, void *field) {
    (void)option;
    return tsr_triangle_parse("--triangle", text, field);
}

static tsr_status read_progress(const tsr_option *option, const char *text, void *field) {
    (void)option;
    return tsr_progress_parse(text, field);
}

static tsr_status read_product(const tsr_option *option, const char *text, void *field) {
    (void)option;
    tsr_product_shape *shape = field;
    return tsr_parse_product("--shape", text, &shape->m, &shape->n, &shape->k);
}

static tsr_status read_operand_type(const tsr_option *option, const char *text, void *field) {
    return tsr_dtype_parse_for(TSR_USE_PRODUCT, option->name, text, field);
}

static tsr_status read_distribution(const tsr_option *option, const char *text, void *field) {
    (void)option;
    return tsr_fill_parse(text, field);
}

/* ---- how a product is made ------------------------------------------------------------------- */

const tsr_option tsr_option_device = {.name = "device",
                                      .choices = "auto cpu cuda",
                                      .value = "KIND",
                                      .help = "auto (a GPU where one is visible; default), cpu or cuda",
                                      .initial = "auto",
                                      .read = read_device};
const tsr_option tsr_option_accuracy = {.name = "accuracy",
                                        .choices = "ieee fast tf32 bf16",
                                        .value = "CLASS",
                                        .help = "What may be lost for speed: ieee (nothing; default), fast (rounding "
                                                "of sums), tf32 or bf16 (operands rounded to it)",
                                        .read = read_accuracy};
const tsr_option tsr_option_kernel = {
    .name = "kernel",
    .value = "NAME",
    .help = "Kernel by name, whatever it loses, or auto: the fastest that --accuracy allows",
    .read = tsr_read_text};
const tsr_option tsr_option_transport = {.name = "transport",
                                         .value = "NAME",
                                         .help = "How ranks share panels: auto, or one by name, such as nccl or host",
                                         .initial = "auto",
                                         .read = tsr_read_text};
const tsr_option tsr_option_schedule = {.name = "schedule",
                                        .value = "NAME",
                                        .help = "How panels are exchanged and multiplied: auto, or one by name",
                                        .read = read_schedule};
const tsr_option tsr_option_grid = {
    .name = "grid", .value = "PxQ[xR]", .help = "Ranks over rows of C, columns of C and k, or auto", .read = read_grid};
const tsr_option tsr_option_panel = {.name = "panel",
                                     .value = "K",
                                     .help = "Columns of A and rows of B in one step (chosen)",
                                     .read = tsr_read_whole,
                                     .low = 1,
                                     .high = INT64_MAX};
const tsr_option tsr_option_memory = {.name = "memory",
                                      .value = "BYTES|PERCENT",
                                      .help = "Device memory a rank may use (90%)",
                                      .initial = "90%",
                                      .read = read_memory};
const tsr_option tsr_option_host_memory = {
    .name = "host-memory",
    .value = "BYTES|PERCENT",
    .help = "Host memory a rank may use for matrices (80% of its share of what is free)",
    .initial = "80%",
    .read = read_memory};
const tsr_option tsr_option_threads = {.name = "threads",
                                       .value = "N",
                                       .help = "Most threads of a rank at once, for any of its work (its cores)",
                                       .read = tsr_read_count,
                                       .low = 1,
                                       .high = TSR_THREADS_MAX};
const tsr_option tsr_option_plugins = {
    .name = "plugins",
    .value = "DIR",
    .help = "Let HDF5 load its plugins from this folder, for filters that Tessera lacks (no other is searched)",
    .read = read_plugins};
const tsr_option tsr_option_external = {
    .name = "allow-external",
    .value = "FOLDER",
    .optional = true,
    .help = "Read files that an input names (external links, virtual datasets, external storage) if they lie below "
            "FOLDER, else below the input's own",
    .read = read_external};
const tsr_option tsr_option_io = {.name = "io",
                                  .choices = "auto direct hdf5 mpio",
                                  .value = "MODE",
                                  .help = "How bytes move: auto (default), direct, hdf5 or mpio",
                                  .read = read_io};

/* ---- which product --------------------------------------------------------------------------- */

const tsr_option tsr_option_order = {
    .name = "order",
    .choices = "row col",
    .value = "row|col",
    .help = "row: shapes as h5ls shows them (default); col: as MATLAB, Fortran and Julia do",
    .read = read_order};
const tsr_option tsr_option_transpose_a = {
    .name = "transpose-a", .help = "Multiply the transpose of A", .read = tsr_read_flag};
const tsr_option tsr_option_transpose_b = {
    .name = "transpose-b", .help = "Multiply the transpose of B", .read = tsr_read_flag};
const tsr_option tsr_option_conjugate_a = {
    .name = "conjugate-a", .help = "Multiply the complex conjugate of A", .read = tsr_read_flag};
const tsr_option tsr_option_conjugate_b = {
    .name = "conjugate-b", .help = "Multiply the complex conjugate of B", .read = tsr_read_flag};
const tsr_option tsr_option_adjoint_a = {
    .name = "adjoint-a", .help = "Multiply the conjugate transpose of A", .read = tsr_read_flag};
const tsr_option tsr_option_adjoint_b = {
    .name = "adjoint-b", .help = "Multiply the conjugate transpose of B", .read = tsr_read_flag};
const tsr_option tsr_option_triangle = {.name = "triangle",
                                        .choices = "full lower upper",
                                        .value = "full|lower|upper",
                                        .help = "Of a Gram matrix write all (default), or one half and zeros",
                                        .initial = "full",
                                        .read = read_triangle};
const tsr_option tsr_option_alpha = {.name = "alpha",
                                     .value = "X",
                                     .help = "Scale the product (1), by 1+2j, too; 0 reads neither A nor B",
                                     .initial = "1",
                                     .read = tsr_read_complex};
const tsr_option tsr_option_beta = {.name = "beta",
                                    .value = "X",
                                    .help = "Scale C0 (1 with --add, else 0), by 1+2j, too; 0 never reads C0",
                                    .read = tsr_read_complex};
const tsr_option tsr_option_trials = {
    .name = "trials",
    .value = "N",
    .help = "Check as --verify does, with N random vectors where the host does it (20): a wrong C passes with "
            "probability at most 2^-N",
    .initial = "20",
    .read = tsr_read_count,
    .low = 1,
    .high = 64};
const tsr_option tsr_option_seed = {.name = "seed",
                                    .value = "S",
                                    .help = "Chooses the random numbers (default 0)",
                                    .read = tsr_read_whole,
                                    .low = 0,
                                    .high = INT64_MAX};
const tsr_option tsr_option_product = {.name = "shape",
                                       .value = "MxNxK",
                                       .help =
                                           "C (M x N) = A (M x K) B (K x N); one number N means NxNxN (default 1024)",
                                       .read = read_product};
const tsr_option tsr_option_operand_type = {
    .name = "type",
    .value = "TYPE",
    .help = "Type of A and B: f16, bf16 (C is f32), f32 (default), f64, c64 or c128",
    .initial = "f32",
    .read = read_operand_type};
const tsr_option tsr_option_distribution = {.name = "distribution",
                                            .choices = "uniform normal integer identity",
                                            .value = "NAME",
                                            .help = "uniform (default), normal, integer or identity",
                                            .read = read_distribution};

/* ---- what is shown and left behind ----------------------------------------------------------- */

const tsr_option tsr_option_chunk = {
    .name = "chunk",
    .value = "RxC|auto",
    .help = "Store it in chunks of R rows and C columns, cut to its size; auto: of about 1 MiB",
    .read = read_chunk};
const tsr_option tsr_option_compress = {
    .name = "compress",
    .choices = "gzip lzf lz4 zstd bzip2 bitshuffle bitshuffle-zstd blosc blosc-zstd blosc-lz4hc blosc-zlib",
    .value = "METHOD[:LEVEL]",
    .help = "Compress its chunks (chosen without --chunk): gzip, lzf, lz4, zstd, bzip2, bitshuffle, bitshuffle-zstd, "
            "blosc, blosc-zstd, blosc-lz4hc or blosc-zlib",
    .read = read_compress};
const tsr_option tsr_option_shuffle = {
    .name = "shuffle",
    .help = "Sort the bytes of a chunk by their significance before compression, which then saves more",
    .read = tsr_read_flag};
const tsr_option tsr_option_reproducible = {
    .name = "reproducible",
    .help = "C has the same bytes on any ranks, grid, panels, memory and device: by the kernel exact; another one that "
            "is named keeps them on devices of one kind, where it can",
    .read = tsr_read_flag};

const tsr_option tsr_option_checksum = {
    .name = "checksum",
    .help = "Keep a checksum with each chunk (fletcher32): whoever reads a changed one gets an error",
    .read = tsr_read_flag};
const tsr_option tsr_option_force = {.name = "force", .help = "Replace C where it exists", .read = tsr_read_flag};
const tsr_option tsr_option_progress = {.name = "progress",
                                        .choices = "auto bar plain off",
                                        .value = "MODE",
                                        .help = "auto (default), bar, plain or off",
                                        .read = read_progress};
const tsr_option tsr_option_quiet = {
    .name = "quiet", .help = "Print nothing: the figures go to --json alone", .read = tsr_read_flag};
const tsr_option tsr_option_ranks = {.name = "ranks",
                                     .help = "Also print the table of ranks: each rank's lanes, as wide as that is",
                                     .read = tsr_read_flag};
const tsr_option tsr_option_log = {.name = "log",
                                   .value = "FILE",
                                   .help = "Write the run's record as JSON; - is standard output, as for --trace",
                                   .read = tsr_read_text};
const tsr_option tsr_option_trace = {
    .name = "trace",
    .value = "FILE",
    .help = "Write when each step of each lane and rank ran as Chrome trace JSON (Perfetto opens it)",
    .read = tsr_read_text};
const tsr_option tsr_option_machine = {.name = "machine",
                                       .value = "FILE",
                                       .help = "Its description, such as jobs/h200_example.machine",
                                       .read = tsr_read_text};
const tsr_option tsr_option_json = {.name = "json",
                                    .value = "FILE",
                                    .help = "Write the figures to FILE as well; - is standard output",
                                    .read = tsr_read_text};
