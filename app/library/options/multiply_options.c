/* From the options of tessera.h to those of a run (multiply_options.h). */
#include "app/library/options/multiply_options.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/library/options/sized.h"
#include "app/library/options/values.h"
#include "app/library/planning/reproducible.h"
#include "io/record/run_log.h"
#include "io/record/trace_file.h"
#include "io/stores.h"
#include "io/text/text.h"
#include "io/text/text_file.h"

/* ---- as a command line ----------------------------------------------------------------------- */

typedef enum { TEXT, FLAG, COUNT, WHOLE, COMPLEX } field_kind;

#define FIELD(option, kind, member)                                                                                    \
    { "--" option, kind, offsetof(tessera_multiply_options, member) }
/* But for `has_beta`, `has_stall`, `stall_seconds`, `command`, `add_matrix` and what is called. */
static const struct {
    const char *option;
    field_kind kind;
    size_t offset;
} fields[] = {FIELD("alpha", COMPLEX, alpha),
              FIELD("beta", COMPLEX, beta),
              FIELD("add", TEXT, add),
              FIELD("transpose-a", FLAG, transpose_a),
              FIELD("transpose-b", FLAG, transpose_b),
              FIELD("conjugate-a", FLAG, conjugate_a),
              FIELD("conjugate-b", FLAG, conjugate_b),
              FIELD("gram", FLAG, gram),
              FIELD("triangle", TEXT, triangle),
              FIELD("type", TEXT, type),
              FIELD("real-part", FLAG, real_part),
              FIELD("order", TEXT, order),
              FIELD("chunk", TEXT, chunk),
              FIELD("compress", TEXT, compress),
              FIELD("shuffle", FLAG, shuffle),
              FIELD("attributes", FLAG, attributes),
              FIELD("force", FLAG, force),
              FIELD("device", TEXT, device),
              FIELD("accuracy", TEXT, accuracy),
              FIELD("kernel", TEXT, kernel),
              FIELD("grid", TEXT, grid),
              FIELD("panel", WHOLE, panel),
              FIELD("memory", TEXT, memory),
              FIELD("host-memory", TEXT, host_memory),
              FIELD("transport", TEXT, transport),
              FIELD("schedule", TEXT, schedule),
              FIELD("io", TEXT, io),
              FIELD("allow-external", TEXT, external),
              FIELD("threads", COUNT, threads),
              FIELD("io-threads", COUNT, io_threads),
              FIELD("trials", COUNT, trials),
              FIELD("log", TEXT, log),
              FIELD("trace", TEXT, trace),
              FIELD("report", TEXT, report),
              FIELD("resume", FLAG, resume),
              FIELD("check", TEXT, check),
              FIELD("checksum", FLAG, checksum),
              FIELD("digest", FLAG, digest),
              FIELD("healthy", FLAG, healthy),
              FIELD("reproducible", FLAG, reproducible)};

static void append_text(char *text, size_t chars, const char *word) {
    const bool plain =
        *word &&
        strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/@%^") == strlen(word);
    if (plain) tsr_text_append(text, chars, " %s", word);
    else tsr_text_append(text, chars, " '%s'", word);
}

static void append_complex(char *text, size_t chars, const char *option, const double value[2]) {
    tsr_text_append(text, chars, " %s=%.17g", option, value[0]);
    if (value[1] != 0) tsr_text_append(text, chars, "%+.17gj", value[1]);
}

static void append_field(char *text, size_t chars, const tessera_multiply_options *o, int i) {
    const void *at = (const char *)o + fields[i].offset;
    const char *option = fields[i].option;
    const double *number = at;
    switch (fields[i].kind) {
    case TEXT:
        if (!*(const char *const *)at) return;
        if (**(const char *const *)at == '\0') { /* --allow-external */
            tsr_text_append(text, chars, " %s", option);
            return;
        }
        tsr_text_append(text, chars, " %s", option);
        append_text(text, chars, *(const char *const *)at);
        return;
    case FLAG:
        if (*(const int *)at) tsr_text_append(text, chars, " %s", option);
        return;
    case COUNT:
        if (*(const int *)at) tsr_text_append(text, chars, " %s %d", option, *(const int *)at);
        return;
    case WHOLE:
        if (*(const int64_t *)at) tsr_text_append(text, chars, " %s %" PRId64, option, *(const int64_t *)at);
        return;
    case COMPLEX:
        if (number == o->beta ? o->has_beta : number[0] != 1 || number[1] != 0)
            append_complex(text, chars, option, number);
    }
}

/* The command line that would ask the program for the same. Returns text. */
static const char *command_line(const tsr_call_operands *of, const tessera_multiply_options *options, char *text,
                                size_t chars) {
    const char *c = of->name[TSR_CALL_C];
    snprintf(text, chars, "tessera multiply");
    for (int i = TSR_CALL_A; i <= TSR_CALL_B; i++)
        if (of->name[i]) append_text(text, chars, of->name[i]);
    if (c) tsr_text_append(text, chars, " -o");
    if (c) append_text(text, chars, c);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) append_field(text, chars, options, (int)i);
    if (options->has_stall) tsr_text_append(text, chars, " --stall-timeout %g", options->stall_seconds);
    return text;
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *or_else(const char *text, const char *initial) { return text ? text : initial; }

static tsr_status check_range(const char *option, int64_t value, int64_t most) {
    if (value >= 0 && value <= most) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "%s %" PRId64 " is out of range: use 1 to %" PRId64 ", or 0 for what is chosen",
                    option, value, most);
}

static tsr_status check_flags(const tessera_multiply_options *o) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const int *flag = (const int *)((const char *)o + fields[i].offset);
        if (fields[i].kind == FLAG && *flag != 0 && *flag != 1)
            return tsr_fail(TSR_ERR_USAGE, "%s is %d: it is a flag, 0 or 1", fields[i].option, *flag);
    }
    return TSR_OK;
}

static tsr_status take_number(const char *option, const double from[2], tsr_complex *number) {
    *number = (tsr_complex){from[0], from[1]};
    if (!isnan(from[0]) && !isnan(from[1])) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "%s is no number", option);
}

/* B is A, the other way round. */
static tsr_status take_gram(const tessera_multiply_options *o, const tsr_call_operands *of, tsr_run_product *product) {
    if (!product->gram) return TSR_OK;
    if (of->name[TSR_CALL_B] || tsr_call_in_memory(of, TSR_CALL_B))
        return tsr_fail(TSR_ERR_USAGE, "'%s' is one matrix too many: --gram multiplies A by its own transpose",
                        of->name[TSR_CALL_B] ? product->b.file : "B");
    if (product->transpose_b || product->conjugate_b)
        return tsr_fail(TSR_ERR_USAGE, "--%s-b: with --gram there is no B; --transpose-a makes C = A'A",
                        product->transpose_b && product->conjugate_b ? "adjoint"
                        : product->transpose_b                       ? "transpose"
                                                                     : "conjugate");
    if (o->add || o->add_matrix || o->has_beta)
        return tsr_fail(TSR_ERR_USAGE, "%s: with --gram C is symmetric, and C0 may not be; leave out one of them",
                        o->add || o->add_matrix ? "--add" : "--beta");
    product->b = product->a;
    product->memory_b = product->memory_a;
    product->transpose_b = !product->transpose_a;
    return TSR_OK;
}

/* All but the matrices; beta is that of a C0. */
static tsr_status take_factors(const tessera_multiply_options *o, bool adds, tsr_run_product *product) {
    product->transpose_a = o->transpose_a;
    product->transpose_b = o->transpose_b;
    product->conjugate_a = o->conjugate_a;
    product->conjugate_b = o->conjugate_b;
    product->gram = o->gram;
    product->real_part = o->real_part;
    product->has_type = o->type != NULL;
    if (o->type) TSR_TRY(tsr_dtype_parse_for(TSR_USE_RESULT, "type", o->type, &product->type));
    TSR_TRY(tsr_order_parse(or_else(o->order, "row"), &product->order));
    TSR_TRY(tsr_triangle_parse("--triangle", or_else(o->triangle, "full"), &product->triangle));
    TSR_TRY(take_number("--alpha", o->alpha, &product->alpha));
    product->beta = tsr_real(adds ? 1 : 0);
    return o->has_beta ? take_number("--beta", o->beta, &product->beta) : TSR_OK;
}

static tsr_status take_names(const tessera_multiply_options *o, const tsr_call_operands *of, tsr_run_product *product) {
    if (of->name[TSR_CALL_A]) TSR_TRY(tsr_matrix_name_parse(of->name[TSR_CALL_A], &product->a));
    if (of->name[TSR_CALL_B]) TSR_TRY(tsr_matrix_name_parse(of->name[TSR_CALL_B], &product->b));
    return o->add ? tsr_matrix_name_parse(o->add, &product->c0) : TSR_OK;
}

static tsr_status take_product(const tessera_multiply_options *o, const tsr_call_operands *of,
                               tsr_multiply_call *call) {
    tsr_run_product *product = &call->run.product;
    TSR_TRY(take_names(o, of, product));
    TSR_TRY(take_factors(o, o->add || o->add_matrix, product));
    TSR_TRY(tsr_call_operands_read(of, o, call->memory, product));
    TSR_TRY(take_gram(o, of, product));
    if ((!product->a.file[0] && !product->memory_a) || (!product->b.file[0] && !product->memory_b))
        return tsr_fail(TSR_ERR_USAGE, "two matrices are needed: tessera multiply A B -o C (or one, with --gram)");
    if (!tsr_is_zero(product->beta) && !o->add && !product->memory_c0 && !product->memory_c)
        return tsr_fail(TSR_ERR_USAGE, "--beta scales C0: give that with --add C0");
    return TSR_OK;
}

tsr_status tsr_check_compress(const tsr_run_target *target) {
    if (target->shuffle && !target->compress.how)
        return tsr_fail(TSR_ERR_USAGE, "--shuffle saves nothing by itself: give --compress gzip with it");
    if (target->checksum && target->chunk_rows == 0 && !target->compress.how)
        return tsr_fail(TSR_ERR_USAGE,
                        "--checksum goes with the chunks of an HDF5 file: give --chunk auto or --compress with it, and "
                        "-o FILE.h5");
    return TSR_OK;
}

/* C's file, unless C is in memory. */
static tsr_status take_target(const tessera_multiply_options *o, const tsr_call_operands *of, tsr_run_target *target) {
    const char *c = of->name[TSR_CALL_C];
    if (tsr_call_in_memory(of, TSR_CALL_C) || of->without_c) return TSR_OK;
    if (!c) return tsr_fail(TSR_ERR_USAGE, "where the product goes is needed: -o FILE.h5 or -o FILE.h5:/path");
    TSR_TRY(tsr_matrix_name_parse(c, &target->name));
    target->force = o->force;
    target->resume = o->resume;
    target->attributes = o->attributes;
    target->shuffle = o->shuffle;
    target->checksum = o->checksum;
    target->digest = o->digest || o->reproducible;
    if (o->chunk) TSR_TRY(tsr_parse_chunk("--chunk", o->chunk, &target->chunk_rows, &target->chunk_cols));
    if (o->compress) TSR_TRY(tsr_compress_parse("--compress", o->compress, &target->compress));
    if (target->attributes && !tsr_store_kind_of(&target->name)->carries)
        return tsr_fail(TSR_ERR_USAGE,
                        "--attributes: '%s' has no place for attributes; write C to an HDF5 file: -o C.h5",
                        target->name.file);
    return tsr_check_compress(target);
}

static tsr_status check_external(const char *folder) {
    struct stat st;
    if (!folder || !*folder || (stat(folder, &st) == 0 && S_ISDIR(st.st_mode))) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE,
                    "--allow-external=%s: there is no such folder; name the one that holds the files which inputs name",
                    folder);
}

static tsr_status take_check(const char *check, tsr_run_options *run) {
    const bool files = strcmp(check, "files") == 0;
    if (!files && strcmp(check, "device") != 0 && strcmp(check, "off") != 0)
        return tsr_fail(TSR_ERR_USAGE, "--check '%s': one of device, files, off", check);
    run->engine.check = strcmp(check, "off") != 0;
    if (files && run->trials == 0) run->trials = TSR_TRIALS_USUAL;
    return TSR_OK;
}

static tsr_status take_engine(const tessera_multiply_options *o, tsr_run_options *run) {
    tsr_run_engine *engine = &run->engine;
    tsr_run_limits *limits = &run->limits;
    engine->kernel = or_else(o->kernel, "auto");
    engine->transport = or_else(o->transport, "auto");
    engine->panel = o->panel;
    engine->healthy = o->healthy;
    limits->threads = o->threads;
    limits->io_threads = o->io_threads;
    limits->has_stall = o->has_stall;
    limits->stall_seconds = o->stall_seconds;
    if (o->has_stall && !(o->stall_seconds >= 0 && o->stall_seconds <= 1e9))
        return tsr_fail(TSR_ERR_USAGE, "--stall-timeout %g: give seconds, or 0 to wait for ever", o->stall_seconds);
    TSR_TRY(tsr_device_parse(or_else(o->device, "auto"), &engine->device));
    TSR_TRY(tsr_accuracy_parse(or_else(o->accuracy, "ieee"), &engine->accuracy));
    engine->reproducible = o->reproducible;
    if (o->reproducible) {
        engine->kernel = tsr_reproducible_kernel(engine->kernel);
        engine->accuracy = TSR_ACCURACY_IEEE;
    }
    TSR_TRY(tsr_schedule_find(or_else(o->schedule, "auto"), &engine->schedule));
    TSR_TRY(tsr_parse_grid("--grid", or_else(o->grid, "auto"), engine->grid));
    TSR_TRY(tsr_parse_memory("--memory", or_else(o->memory, "90%"), &limits->memory.bytes, &limits->memory.percent));
    TSR_TRY(tsr_parse_memory("--host-memory", or_else(o->host_memory, "80%"), &limits->host_memory.bytes,
                             &limits->host_memory.percent));
    TSR_TRY(tsr_io_mode_parse(or_else(o->io, "auto"), &run->io));
    TSR_TRY(check_range("--panel", o->panel, INT64_MAX));
    TSR_TRY(check_range("--threads", o->threads, TSR_THREADS_MAX));
    TSR_TRY(check_range("--io-threads", o->io_threads, TSR_IO_THREADS_MAX));
    TSR_TRY(check_range("--trials", o->trials, TSR_TRIALS_MAX));
    run->trials = o->trials;
    TSR_TRY(take_check(or_else(o->check, "device"), run));
    run->external = o->external;
    return check_external(o->external);
}

/* ---- files of the run's own ------------------------------------------------------------------ */

/* Inputs may read any file that others name, external storage of any bytes, and are not described yet: what is replaced
 * is what runs left. HDF5 files never are (text_file.h). */
static tsr_status check_external_file(const char *option, const char *file) {
    if (!tsr_text_file_holds(file) || tsr_run_log_found(file) || tsr_text_file_begins(file, TSR_TRACE_HEAD) ||
        tsr_text_file_begins(file, TSR_PAGE_HEAD))
        return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE,
                    "%s would overwrite '%s', which is no log, trace or page of a run, and which inputs may read with "
                    "--allow-external: give it a file of its own",
                    option, file);
}

/* What a run says of itself goes to a file that it neither reads nor writes besides, nor to `first` or `second`, which
 * are others of its own; where inputs may read other files also to none that holds anything but what an earlier run
 * said. */
static tsr_status check_own_file(const tsr_run_options *run, const char *option, const char *file, const char *first,
                                 const char *second) {
    const tsr_run_product *in = &run->product;
    const char *const taken[] = {first, second, run->target.name.file, in->a.file, in->b.file, in->c0.file};
    for (size_t i = 0; file && i < sizeof taken / sizeof *taken; i++)
        if (taken[i] && taken[i][0] && tsr_same_file(file, taken[i]))
            return tsr_fail(TSR_ERR_USAGE,
                            "%s %s would overwrite '%s', which the run reads or writes: give it a file of its own",
                            option, file, taken[i]);
    return file && run->external ? check_external_file(option, file) : TSR_OK;
}

/* A log that is refused is none. */
static tsr_status take_files(tsr_multiply_call *call, bool prints) {
    tsr_run_options *run = &call->run;
    const char *log = call->log;
    call->log = NULL;
    if (!prints && ((log && strcmp(log, "-") == 0) || (run->trace && strcmp(run->trace, "-") == 0)))
        return tsr_fail(TSR_ERR_USAGE, "%s -: standard output is the program's; name a file",
                        run->trace && strcmp(run->trace, "-") == 0 ? "--trace" : "--log");
    TSR_TRY(check_own_file(run, "--log", log, NULL, NULL));
    const tsr_status trace = check_own_file(run, "--trace", run->trace, log, NULL);
    if (trace == TSR_OK || !log || !tsr_same_file(run->trace, log)) call->log = log;
    TSR_TRY(trace);
    TSR_TRY(check_own_file(run, "--report", call->given.report, run->trace, log));
    if (prints) {
        TSR_TRY(tsr_text_file_resolve(&call->log));
        return tsr_text_file_resolve(&run->trace);
    }
    TSR_TRY(tsr_text_file_follow(&call->log, call->log_target));
    return tsr_text_file_follow(&run->trace, call->trace_target);
}

tsr_status tsr_multiply_call_read(tsr_call_operands *of, const tessera_multiply_options *options, bool prints,
                                  tsr_multiply_call *call) {
    tessera_multiply_options *o = &call->given;
    tsr_run_options *run = &call->run;
    *o = tessera_multiply_defaults();
    if (options) TSR_TRY(tsr_sized_take("tessera_multiply_options", options, o, sizeof *o));
    TSR_TRY(tsr_call_operands_take_c0(o, of));
    call->log = o->log;
    run->trace = o->trace;
    run->command = o->command     ? o->command
                   : of->matrices ? "tessera_multiply_matrices"
                                  : command_line(of, o, call->command, sizeof call->command);
    TSR_TRY(check_flags(o));
    TSR_TRY(take_product(o, of, call));
    TSR_TRY(take_target(o, of, &run->target));
    TSR_TRY(take_engine(o, run));
    return take_files(call, prints);
}
