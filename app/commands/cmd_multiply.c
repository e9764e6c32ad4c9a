/* tessera multiply: the options of one multiplication. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/command.h"
#include "app/interrupt.h"
#include "app/last_words.h"
#include "app/library/api/context.h"
#include "app/progress.h"
#include "app/tessera_options.h"

typedef struct {
    const char *a, *b, *c;            /* NULL: not named */
    tessera_multiply_options options; /* as they were written */
    bool has_beta, has_stall, verify;
    bool adjoint_a, adjoint_b;
    int trials; /* of a check */
    tsr_progress_mode progress;
    bool quiet;   /* no summary */
    bool ranks;   /* the table of ranks, too */
    bool dry_run; /* show the plan, touch no data */
} parsed;

/* ---- readers --------------------------------------------------------------------------------- */

static tsr_status read_switch(const tsr_option *option, const char *text, void *field) {
    (void)option;
    (void)text;
    *(int *)field = 1;
    return TSR_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define AT(member) offsetof(parsed, member)
/* The library reads texts, and says which is wrong. */
#define TEXT(member) .read = tsr_read_text, .field = AT(options.member)
#define SWITCH(member) .read = read_switch, .field = AT(options.member)

static const tsr_option options[] = {
    {.help = "The product", .group = 1},
    {.name = "output",
     .letter = 'o',
     .value = "MATRIX",
     .help = "Write C here: file.h5[:/path] (/C when no path is given), file.npy or file.bin:TYPE",
     .read = tsr_read_text,
     .field = AT(c)},
    {.shared = &tsr_option_alpha, .field = AT(options.alpha)},
    {.shared = &tsr_option_beta, .field = AT(options.beta), .given = AT(has_beta)},
    {.name = "add", .value = "C0", .help = "Add beta times this matrix", TEXT(add)},
    {.shared = &tsr_option_transpose_a, SWITCH(transpose_a)},
    {.shared = &tsr_option_transpose_b, SWITCH(transpose_b)},
    {.shared = &tsr_option_adjoint_a, .field = AT(adjoint_a)},
    {.shared = &tsr_option_adjoint_b, .field = AT(adjoint_b)},
    {.shared = &tsr_option_conjugate_a, SWITCH(conjugate_a)},
    {.shared = &tsr_option_conjugate_b, SWITCH(conjugate_b)},
    {.name = "gram",
     .help = "C = op(A) op(A)': one matrix is named, read once and half of C multiplied; C is symmetric to the bit",
     SWITCH(gram)},
    {.shared = &tsr_option_triangle, TEXT(triangle)},
    {.name = "type",
     .value = "TYPE",
     .help = "Type of C: f16, bf16, f32, f64, c64 or c128 (the type the product is computed in)",
     TEXT(type)},
    {.name = "real-part", .help = "C is real, and holds the real part of a complex product", SWITCH(real_part)},
    {.shared = &tsr_option_order, TEXT(order)},
    {.shared = &tsr_option_chunk, TEXT(chunk)},
    {.shared = &tsr_option_compress, TEXT(compress)},
    {.shared = &tsr_option_shuffle, SWITCH(shuffle)},
    {.shared = &tsr_option_checksum, SWITCH(checksum)},
    {.name = "digest",
     .help = "Put a digest of C into its record: tessera verify --digest compares it, years later",
     SWITCH(digest)},
    {.name = "attributes",
     .help = "C gets A's attributes, too (HDF5 files; scales and labels of dimensions come along anyway)",
     SWITCH(attributes)},
    {.shared = &tsr_option_force, SWITCH(force)},
    {.name = "resume",
     .help = "Go on with C where the same command was stopped or killed; a stop signal ends a run with exit code 75",
     SWITCH(resume)},
    {.help = "How it runs", .group = 2},
    {.shared = &tsr_option_device, TEXT(device)},
    {.name = "healthy",
     .help = "An error where a GPU reports uncorrected ECC errors, rows of memory that wait to be remapped, or "
             "throttling (else a warning)",
     SWITCH(healthy)},
    {.shared = &tsr_option_accuracy, TEXT(accuracy)},
    {.shared = &tsr_option_kernel, TEXT(kernel)},
    {.shared = &tsr_option_reproducible, SWITCH(reproducible)},
    {.shared = &tsr_option_grid, TEXT(grid)},
    {.shared = &tsr_option_panel, .field = AT(options.panel)},
    {.shared = &tsr_option_memory, TEXT(memory)},
    {.shared = &tsr_option_host_memory, TEXT(host_memory)},
    {.shared = &tsr_option_transport, TEXT(transport)},
    {.shared = &tsr_option_schedule, TEXT(schedule)},
    {.shared = &tsr_option_io, TEXT(io)},
    {.shared = &tsr_option_plugins},
    {.shared = &tsr_option_external, .field = AT(options.external)},
    {.shared = &tsr_option_threads, .field = AT(options.threads)},
    {.name = "io-threads",
     .value = "N",
     .help = "Threads that read or write at once on a rank (chosen)",
     .read = tsr_read_count,
     .low = 1,
     .high = TSR_IO_THREADS_MAX,
     .field = AT(options.io_threads)},
    {.name = "stall-timeout",
     .value = "SECONDS",
     .help = "End a job that stands still for so long, with exit code 74 (60, or 10 times the longest step; 15 times "
             "as long where a file is waited for; 0: never)",
     .read = tsr_read_number,
     .field = AT(options.stall_seconds),
     .given = AT(has_stall)},
    {.name = "dry-run", .help = "Show the plan; touch no data", .read = tsr_read_flag, .field = AT(dry_run)},
    {.help = "What it shows", .group = 3},
    {.name = "check",
     .value = "WHERE",
     .help = "device: products where they are made, and what is wrong is made again (default); files: C as it was "
             "written, too, as --verify does; off: nothing",
     TEXT(check)},
    {.name = "verify",
     .help = "Check C against A and B before it gets its name (exit code 3 when wrong)",
     .read = tsr_read_flag,
     .field = AT(verify)},
    {.shared = &tsr_option_trials, .field = AT(trials), .given = AT(verify)},
    {.shared = &tsr_option_log, TEXT(log)},
    {.name = "report",
     .value = "FILE",
     .help = "Write a page of the run with its timeline, as tessera report makes it",
     TEXT(report)},
    {.shared = &tsr_option_trace, TEXT(trace)},
    {.shared = &tsr_option_progress, .field = AT(progress)},
    {.shared = &tsr_option_quiet,
     .help = "Neither progress nor a summary; errors and warnings remain",
     .field = AT(quiet)},
    {.shared = &tsr_option_ranks, .field = AT(ranks)},
    {0}};

static tsr_status take_matrix(void *to, int number, const char *text) {
    parsed *p = to;
    if (number == 2) return tsr_fail(TSR_ERR_USAGE, "'%s' is one matrix too many: tessera multiply A B -o C", text);
    *(number == 0 ? &p->a : &p->b) = text;
    return TSR_OK;
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

/* What is said in other words in the library. */
static void translate(parsed *p) {
    tessera_multiply_options *o = &p->options;
    o->has_beta = p->has_beta;
    o->has_stall = p->has_stall;
    o->transpose_a |= p->adjoint_a;
    o->conjugate_a |= p->adjoint_a;
    o->transpose_b |= p->adjoint_b;
    o->conjugate_b |= p->adjoint_b;
    o->trials = p->verify ? p->trials : 0;
}

/* ---- what a person sees ---------------------------------------------------------------------- */

typedef struct {
    const tsr_world *world;
    const parsed *asked;
    int argc;
    char **argv;
} shown;

static void note(void *context, const char *text) {
    const parsed *p = ((const shown *)context)->asked;
    if (p->quiet && !p->dry_run) return;
    printf("%s\n", text);
    fflush(stdout); /* what takes long comes after */
}

static void refused(void *context, const char *log, tsr_status status) {
    const shown *s = context;
    tsr_job_log_refuse(s->world, log, s->argc, s->argv, status);
}

static tsr_status published(void *context, const tsr_run_record *record, const tsr_output_spec *spec,
                            const tsr_output *output, const tsr_run_log *log, bool logged) {
    const shown *s = context;
    if (s->asked->ranks) {
        tsr_record_print_ranks(record, stdout);
        putchar('\n');
    }
    if (!s->asked->quiet) {
        tsr_record_print(record, logged ? log->file : NULL, stdout);
        tsr_output_note(spec, output);
    }
    return tsr_job_said(log, "C");
}

static int show_plan(tessera_context *tessera, const parsed *p) {
    char *text;
    const int status = tessera_plan(tessera, p->a, p->b, p->c, &p->options, &text);
    if (text) fputs(text, stdout);
    tessera_free(text);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    parsed p = {.options = tessera_multiply_defaults()};
    shown s = {.world = world, .asked = &p, .argc = argc, .argv = argv};
    tsr_status status = tsr_options_parse(&command, argc, argv, &p);
    if (status != TSR_OK && !p.options.log) p.options.log = tsr_job_log_find(argc, argv);
    status = tsr_agree(world->comm, status);
    if (status != TSR_OK) {
        if (!p.dry_run) refused(&s, p.options.log, status);
        return status;
    }
    translate(&p);
    const bool shows = world->rank == 0 && !p.quiet;
    tsr_progress_display display = {.mode = shows ? p.progress : TSR_PROGRESS_OFF};
    const tsr_caller caller = {.context = &s,
                               .guard = &tsr_interrupt_guards,
                               .progress = tsr_progress_listener(&display),
                               .note = note,
                               .refused = refused,
                               .published = published};
    tessera_context tessera = tsr_context_over(world, &caller);
    char *line = tsr_command_line(argc, argv);
    p.options.command = line;
    const int made = p.dry_run ? show_plan(&tessera, &p) : tessera_multiply(&tessera, p.a, p.b, p.c, &p.options, NULL);
    free(line);
    return (tsr_status)made;
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
