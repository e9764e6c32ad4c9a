/* tessera multiply: the options of one multiplication. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/command.h"
#include "app/library/api/multiply_options.h"
#include "app/run/job_log.h"
#include "app/run/multiply.h"
#include "app/tessera_options.h"
#include "io/stores.h"
#include "io/text/text_file.h"

typedef struct {
    tsr_multiply_settings settings;
    bool has_beta, has_c0, has_output, verify;
    bool adjoint_a, adjoint_b;
    int trials;
} parsed;

/* ---- readers --------------------------------------------------------------------------------- */

static tsr_status read_type(const tsr_option *option, const char *text, void *field) {
    return tsr_dtype_parse_for(TSR_USE_RESULT, option->name, text, field);
}

static tsr_status read_seconds(const tsr_option *option, const char *text, void *field) {
    TSR_TRY(tsr_read_number(option, text, field));
    if (*(double *)field >= 0 && *(double *)field <= 1e9) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "--%s %s: give seconds, or 0 to wait for ever", option->name, text);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define AT(member) offsetof(parsed, member)
#define SETTING(member) offsetof(parsed, settings.member)
#define RUN(member) offsetof(parsed, settings.run.member)

static const tsr_option options[] = {
    {.help = "The product", .group = 1},
    {.name = "output",
     .letter = 'o',
     .value = "MATRIX",
     .help = "Write C here: file.h5[:/path] (/C when no path is given), file.npy or file.bin:TYPE",
     .read = tsr_read_matrix,
     .field = RUN(target.name),
     .given = AT(has_output)},
    {.shared = &tsr_option_alpha, .field = RUN(product.alpha)},
    {.shared = &tsr_option_beta, .field = RUN(product.beta), .given = AT(has_beta)},
    {.name = "add",
     .value = "C0",
     .help = "Add beta times this matrix",
     .read = tsr_read_matrix,
     .field = RUN(product.c0),
     .given = AT(has_c0)},
    {.shared = &tsr_option_transpose_a, .field = RUN(product.transpose_a)},
    {.shared = &tsr_option_transpose_b, .field = RUN(product.transpose_b)},
    {.shared = &tsr_option_adjoint_a, .field = AT(adjoint_a)},
    {.shared = &tsr_option_adjoint_b, .field = AT(adjoint_b)},
    {.shared = &tsr_option_conjugate_a, .field = RUN(product.conjugate_a)},
    {.shared = &tsr_option_conjugate_b, .field = RUN(product.conjugate_b)},
    {.name = "gram",
     .help = "C = op(A) op(A)': one matrix is named, read once and half of C multiplied; C is symmetric to the bit",
     .read = tsr_read_flag,
     .field = RUN(product.gram)},
    {.shared = &tsr_option_triangle, .field = RUN(product.triangle)},
    {.name = "type",
     .value = "TYPE",
     .help = "Type of C: f16, bf16, f32, f64, c64 or c128 (the type the product is computed in)",
     .read = read_type,
     .field = RUN(product.type),
     .given = RUN(product.has_type)},
    {.name = "real-part",
     .help = "C is real, and holds the real part of a complex product",
     .read = tsr_read_flag,
     .field = RUN(product.real_part)},
    {.shared = &tsr_option_order, .field = RUN(product.order)},
    {.shared = &tsr_option_chunk, .field = RUN(target)},
    {.shared = &tsr_option_compress, .field = RUN(target.compress)},
    {.shared = &tsr_option_shuffle, .field = RUN(target.shuffle)},
    {.name = "attributes",
     .help = "C gets A's attributes, too (HDF5 files; scales and labels of dimensions come along anyway)",
     .read = tsr_read_flag,
     .field = RUN(target.attributes)},
    {.shared = &tsr_option_force, .field = RUN(target.force)},
    {.help = "How it runs", .group = 2},
    {.shared = &tsr_option_device, .field = RUN(engine.device)},
    {.shared = &tsr_option_accuracy, .field = RUN(engine.accuracy)},
    {.shared = &tsr_option_kernel, .initial = "auto", .field = RUN(engine.kernel)},
    {.shared = &tsr_option_grid, .field = RUN(engine.grid)},
    {.shared = &tsr_option_panel, .field = RUN(engine.panel)},
    {.shared = &tsr_option_memory, .field = RUN(limits.memory)},
    {.shared = &tsr_option_host_memory, .field = RUN(limits.host_memory)},
    {.shared = &tsr_option_transport, .field = RUN(engine.transport)},
    {.shared = &tsr_option_schedule, .field = RUN(engine.schedule)},
    {.shared = &tsr_option_io, .field = RUN(io)},
    {.shared = &tsr_option_plugins},
    {.shared = &tsr_option_external, .field = RUN(external)},
    {.shared = &tsr_option_threads, .field = RUN(limits.threads)},
    {.name = "io-threads",
     .value = "N",
     .help = "Threads that read or write at once on a rank (chosen)",
     .read = tsr_read_count,
     .low = 1,
     .high = 32,
     .field = RUN(limits.io_threads)},
    {.name = "stall-timeout",
     .value = "SECONDS",
     .help = "End a job that stands still for so long, with exit code 74 (60, or 10 times the longest step; 15 times "
             "as long where a file is waited for; 0: never)",
     .read = read_seconds,
     .field = RUN(limits.stall_seconds),
     .given = RUN(limits.has_stall)},
    {.name = "dry-run", .help = "Show the plan; touch no data", .read = tsr_read_flag, .field = SETTING(dry_run)},
    {.help = "What it shows", .group = 3},
    {.name = "verify",
     .help = "Check C against A and B before it gets its name (exit code 3 when wrong)",
     .read = tsr_read_flag,
     .field = AT(verify)},
    {.shared = &tsr_option_trials, .field = AT(trials), .given = AT(verify)},
    {.shared = &tsr_option_log, .field = SETTING(log)},
    {.name = "report",
     .value = "FILE",
     .help = "Write a page of the run with its timeline, as tessera report makes it",
     .read = tsr_read_text,
     .field = SETTING(report)},
    {.shared = &tsr_option_trace, .field = RUN(trace)},
    {.shared = &tsr_option_progress, .field = SETTING(progress)},
    {.shared = &tsr_option_quiet,
     .help = "Neither progress nor a summary; errors and warnings remain",
     .field = SETTING(quiet)},
    {.shared = &tsr_option_ranks, .field = SETTING(ranks)},
    {0}};

static tsr_status take_matrix(void *to, int number, const char *text) {
    tsr_run_product *product = &((parsed *)to)->settings.run.product;
    if (number < 2) return tsr_matrix_name_parse(text, number == 0 ? &product->a : &product->b);
    return tsr_fail(TSR_ERR_USAGE, "'%s' is one matrix too many: tessera multiply A B -o C", text);
}

static const tsr_options command = {
    .options = options,
    .arguments = "A B -o C",
    .what = "C = alpha op(A) op(B) + beta C0, from files to a file, on all ranks of the job.\v"
            "A matrix is file.h5:/path, or file.h5 where that holds one matrix; file.npy; or the bare bytes of a "
            "file, one row behind the other: file.bin:f32:1000x2000. A trailing [r0:r1,c0:c1] selects a part, "
            "[i,...] one matrix of a dataset of more dimensions. Shapes are those of numpy.matmul: vectors count as a "
            "row of A and a column of B, and dimensions before the last two are broadcast.",
    .most_arguments = 3,
    .argument = take_matrix};

/* B is A, the other way round. */
static tsr_status take_gram(parsed *p) {
    tsr_run_product *product = &p->settings.run.product;
    if (!product->gram) return TSR_OK;
    if (product->b.file[0])
        return tsr_fail(TSR_ERR_USAGE, "'%s' is one matrix too many: --gram multiplies A by its own transpose",
                        product->b.file);
    if (product->transpose_b || product->conjugate_b)
        return tsr_fail(TSR_ERR_USAGE, "--%s-b: with --gram there is no B; --transpose-a makes C = A'A",
                        p->adjoint_b           ? "adjoint"
                        : product->transpose_b ? "transpose"
                                               : "conjugate");
    if (p->has_c0 || p->has_beta)
        return tsr_fail(TSR_ERR_USAGE, "%s: with --gram C is symmetric, and C0 may not be; leave out one of them",
                        p->has_c0 ? "--add" : "--beta");
    product->b = product->a;
    product->transpose_b = !product->transpose_a;
    return TSR_OK;
}

static void take_adjoints(const parsed *p, tsr_run_product *product) {
    product->transpose_a |= p->adjoint_a;
    product->conjugate_a |= p->adjoint_a;
    product->transpose_b |= p->adjoint_b;
    product->conjugate_b |= p->adjoint_b;
}

static tsr_status check(parsed *p) {
    take_adjoints(p, &p->settings.run.product);
    TSR_TRY(take_gram(p));
    if (!p->settings.run.product.b.file[0])
        return tsr_fail(TSR_ERR_USAGE, "two matrices are needed: tessera multiply A B -o C (or one, with --gram)");
    if (!p->has_output)
        return tsr_fail(TSR_ERR_USAGE, "where the product goes is needed: -o FILE.h5 or -o FILE.h5:/path");
    if (p->settings.quiet) p->settings.progress = TSR_PROGRESS_OFF;
    tsr_run_product *product = &p->settings.run.product;
    if (!p->has_beta) product->beta = tsr_real(p->has_c0 ? 1 : 0);
    if (!tsr_is_zero(product->beta) && !p->has_c0)
        return tsr_fail(TSR_ERR_USAGE, "--beta scales C0: give that with --add C0");
    p->settings.run.trials = p->verify ? p->trials : 0;
    const tsr_multiply_settings *s = &p->settings;
    if (s->run.target.attributes && !tsr_store_kind_of(&s->run.target.name)->carries)
        return tsr_fail(TSR_ERR_USAGE,
                        "--attributes: '%s' has no place for attributes; write C to an HDF5 file: -o C.h5",
                        s->run.target.name.file);
    TSR_TRY(tsr_check_compress(&s->run.target));
    const tsr_status log = tsr_check_own_file(&s->run, "--log", s->log, NULL),
                     trace = log == TSR_OK ? tsr_check_own_file(&s->run, "--trace", s->run.trace, s->log) : log;
    if (trace == TSR_OK) TSR_TRY(tsr_check_own_file(&s->run, "--report", s->report, s->run.trace));
    if (trace == TSR_OK) TSR_TRY(tsr_check_own_file(&s->run, "--report", s->report, s->log));
    if (log != TSR_OK || (trace != TSR_OK && s->log && tsr_same_file(s->run.trace, s->log))) p->settings.log = NULL;
    return trace;
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    parsed p = {0};
    tsr_status status = tsr_options_parse(&command, argc, argv, &p);
    if (status != TSR_OK && !p.settings.log) p.settings.log = tsr_job_log_find(argc, argv);
    if (status == TSR_OK) status = check(&p);
    if (status == TSR_OK) status = tsr_text_file_resolve(&p.settings.log);
    if (status == TSR_OK) status = tsr_text_file_resolve(&p.settings.run.trace);
    status = tsr_agree(world->comm, status);
    if (status != TSR_OK) {
        if (!p.settings.dry_run) tsr_job_log_refuse(world, p.settings.log, argc, argv, status);
        return status;
    }
    char *line = tsr_command_line(argc, argv);
    p.settings.run.command = line ? line : "tessera multiply";
    status = tsr_multiply(world, &p.settings);
    free(line);
    return status;
}

static void help(const char *part) {
    (void)part;
    tsr_options_help(&command, "tessera multiply",
                     "mpirun -n 4 tessera multiply A.h5:/A B.h5:/B -o C.h5:/C --verify\n"
                     "  tessera multiply --gram A.h5 -o C.h5\n"
                     "  tessera multiply A.h5 B.h5 -o C.h5 --transpose-b --dry-run");
}

const tsr_command tsr_cmd_multiply = {
    .name = "multiply",
    .what = "C = alpha op(A) op(B) + beta C0, from files to a file",
    .run = run,
    .help = help,
    .options = &command,
    .reads = true,
};
