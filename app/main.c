/* The program `tessera`: finds the subcommand, answers help and --version before MPI starts, opens the job's ranks,
 * runs the command on all of them, and prints the message of a failure once. The only file that prints errors or
 * decides exit codes. */
#define _GNU_SOURCE /* environ */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/arguments.h"
#include "app/commands/command.h"
#include "app/commands/complete.h"
#include "app/commands/version.h"
#include "app/interrupt.h"
#include "app/last_words.h"
#include "app/options.h"
#include "io/describe/describe.h"
#include "io/nearest.h"
#include "io/stores.h"
#include "io/text/text.h"
#include "kernels/base/base.h"
#include "kernels/device/host_memory.h"
#include "kernels/gemm/cpu/blas.h"
#include "mpi/ranks/world.h"

static const tsr_command *const commands[] = {&tsr_cmd_multiply, &tsr_cmd_generate, &tsr_cmd_compare,
                                              &tsr_cmd_verify,   &tsr_cmd_info,     &tsr_cmd_report,
                                              &tsr_cmd_plan,     &tsr_cmd_bench,    NULL};
#define COMMANDS (sizeof commands / sizeof *commands - 1) /* NULL is the last */

/* As the launcher says: help and wrong usage are answered before MPI runs, by one rank only. */
static bool is_first_rank(void) { return tsr_launcher_rank() <= 0; }

static void print_help(void) {
    printf("tessera %s: products of matrices in HDF5 files,\non as many ranks and GPUs as the launcher gives\n\n"
           "Usage: [mpirun -n RANKS] tessera COMMAND [OPTION...] ...\n\nCommands:\n",
           TSR_VERSION);
    for (size_t i = 0; i < COMMANDS; i++) printf("  %-10s %s\n", commands[i]->name, commands[i]->what);
    printf("\nOptions:\n"
           "  -h, --help     this text; after a command, what that command takes\n"
           "  -V, --version  versions of the program and of the libraries it uses\n\n"
           "A matrix is named file.h5:/group/dataset, or file.h5 when the file holds one;\n"
           "a trailing [r0:r1,c0:c1] selects a part, as numpy does.\n\n"
           "Options may also stand in files, tessera multiply A.h5 B.h5 @FILE, or in the\n"
           "environment, TESSERA_HOST_MEMORY=4G for --host-memory; the command line wins.\n\n"
           "Examples:\n"
           "  mpirun -n 4 tessera multiply A.h5 B.h5 -o C.h5:/C --verify\n"
           "  tessera info C.h5\n"
           "  tessera help multiply\n\n"
           "Exit codes: 0 done, 1 failure, 2 wrong usage, 3 the result failed its check,\n"
           "74 the job stood still, 75 stopped on request.\n");
}

static const tsr_command *find_command(const char *name) {
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static tsr_status no_command(const char *name) {
    char list[256] = "", meant[160];
    tsr_nearest nearest = {.wanted = name ? name : ""};
    for (size_t i = 0; i < COMMANDS; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, " %s", commands[i]->name);
        tsr_nearest_offer(&nearest, commands[i]->name);
    }
    if (!name) return tsr_fail(TSR_ERR_USAGE, "no command given: use one of%s, or --help", list);
    tsr_nearest_offer(&nearest, "help");
    tsr_nearest_offer(&nearest, "--help");
    tsr_nearest_offer(&nearest, "--version");
    return tsr_fail(TSR_ERR_USAGE, "unknown command '%s'%s (commands:%s; --help explains them)", name,
                    tsr_did_you_mean(&nearest, "", meant, sizeof meant), list);
}

static bool is_help(const char *argument) { return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0; }
static bool is_version(const char *argument) {
    return strcmp(argument, "--version") == 0 || strcmp(argument, "-V") == 0;
}

/* Whether one of the arguments before a "--" asks so. */
static bool asks(int argc, char **argv, bool (*is)(const char *)) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is(argv[i])) return true;
    return false;
}

/* Prints the thread's message, or the status's text when nobody left one. */
static int report(tsr_status status) {
    const char *message = *tsr_message() ? tsr_message() : tsr_status_text(status);
    if (status != TSR_OK) fflush(stdout); /* what it speaks of comes first */
    if (status == TSR_ERR_CHECK)          /* a result, of which PASSED is wrapped, too */
        tsr_text_print(stderr, "tessera: error: ", 16, message);
    else if (status != TSR_OK) fprintf(stderr, "tessera: error: %s\n", message);
    return tsr_status_exit_code(status);
}

static tsr_status flush_output(void) {
    if (fflush(stdout) != 0 || ferror(stdout))
        return tsr_fail(TSR_ERR_IO, "standard output could not be written: check where it goes, such as a full disk");
    return TSR_OK;
}

/* What a command line asks for that needs no ranks. */
typedef struct {
    const tsr_command *command; /* NULL: the program itself */
    const char *unknown;        /* was named as a command and is none */
    const char *part;           /* of the command that help is wanted for, NULL: all of it */
    bool help, version;
} request;

/* What `help` may be asked about that is no command: the program's own words and options. */
static bool is_of_program(const char *word) {
    return word[0] == '-' || strcmp(word, "help") == 0 || strcmp(word, "version") == 0;
}

static request read_request(int argc, char **argv) {
    request r = {0};
    if (argc < 2) return r;
    int at = 1; /* where the command is */
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0) {
        r.help = true;
        at = 2;
    } else if (is_version(argv[1]) || strcmp(argv[1], "version") == 0) r.version = true;
    if (r.version || at >= argc || (r.help && is_of_program(argv[at]))) return r;
    r.command = find_command(argv[at]);
    if (!r.command) {
        r.unknown = argv[at];
        return r;
    }
    r.help = r.help || asks(argc - at - 1, argv + at + 1, is_help);
    r.version = asks(argc - at - 1, argv + at + 1, is_version);
    if (at + 1 < argc && argv[at + 1][0] != '-') r.part = argv[at + 1];
    return r;
}

static tsr_status answer(const request *r) {
    if (r->unknown) return no_command(r->unknown);
    if (r->help && r->command) r->command->help(r->part);
    else if (r->help) print_help();
    else if (r->version) tsr_version_print(r->command ? r->command->name : NULL, stdout);
    else return no_command(NULL);
    return flush_output();
}

/* What needs no ranks. True when `*status` is the answer. */
static bool answered_alone(int argc, char **argv, const tsr_command **command, tsr_status *status) {
    if (argc > 1 && strcmp(argv[1], "--complete") == 0) {
        if (is_first_rank()) tsr_complete(commands, argc - 2, argv + 2);
        return true;
    }
    const request r = read_request(argc, argv);
    *command = r.command;
    if (r.command && !r.help && !r.version) return false;
    /* The others are silent and content: a launcher that saw one of them fail might end the first rank before it has
     * spoken. */
    *status = is_first_rank() ? answer(&r) : TSR_OK;
    return true;
}

/* Before what MPI failed at. */
static tsr_status say_done(void) {
    return tsr_fail(TSR_ERR_MPI, "what was asked for is done and in place, but %s", tsr_message());
}

/* Agreement comes last, so that ranks that failed alone before any communication are heard, too. */
static tsr_status run_command(const tsr_world *world, const tsr_command *command, int argc, char **argv) {
    tsr_status status = command->run(world, argc, argv);
    if (status == TSR_OK) status = flush_output();
    const tsr_status agreed = tsr_agree(world->comm, status);
    return status == TSR_OK && agreed == TSR_ERR_MPI ? say_done() : agreed;
}

/* Collective. MPI ends; where it fails at that on this rank the others may wait for it. */
static int end_mpi(tsr_world *world, int code) {
    if (tsr_world_close(world) == TSR_OK) return code;
    if (code == 0) tsr_abort(world, say_done());
    fflush(NULL);
    _exit(code); /* its reason was said */
}

/* The C library reserves 64 MiB of addresses for each thread that allocates: too much where they are limited. */
static void spare_addresses(void) {
#ifdef M_ARENA_MAX
    tsr_process_room room;
    tsr_process_room_find(&room);
    if (room.by) mallopt(M_ARENA_MAX, 1);
#endif
}

/* A file that is opened while one of these is closed would take its number, and what is printed. What is closed goes on
 * refusing to be read, or written. */
static void keep_standard_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* ---- files of options and the environment ---------------------------------------------------- */

/* What the command takes, or its part in argv[2]; NULL: no such part. *words: of its name, the program's included. */
static const tsr_options *find_options(const tsr_command *command, const tsr_arguments *arguments, int *words) {
    const char *name;
    const tsr_options *options = command->options;
    *words = 2;
    if (options || !command->part || arguments->argc < 3) return options;
    for (size_t i = 0; (options = command->part(i, &name)) && strcmp(arguments->argv[2], name) != 0;) i++;
    *words = 3;
    return options;
}

/* Options that nobody typed (arguments.h). */
typedef struct {
    char places[4000]; /* those of files */
    char added[800];   /* those of the environment */
} sources;

/* On this rank: files first, since what they say comes before the environment. */
static tsr_status gather_arguments(const tsr_command *command, int argc, char **argv, tsr_arguments *to,
                                   sources *from) {
    int words;
    TSR_TRY(tsr_arguments_expand(argc, argv, to, from->places, sizeof from->places));
    const tsr_options *options = find_options(command, to, &words);
    return options ? tsr_arguments_add_environment(options, words, to, from->added, sizeof from->added) : TSR_OK;
}

/* Variables that look like an option's and are none. */
static void warn_of_variables(const tsr_world *world) {
    for (char **variable = environ; world->rank == 0 && *variable; variable++) {
        char name[TSR_VARIABLE_CHARS], meant[160];
        const size_t chars = strcspn(*variable, "=");
        tsr_nearest nearest = {.wanted = name + strlen(TSR_VARIABLES)};
        bool exact = false;
        if (strncmp(*variable, TSR_VARIABLES, strlen(TSR_VARIABLES)) != 0 || chars >= sizeof name) continue;
        snprintf(name, sizeof name, "%.*s", (int)chars, *variable);
        for (size_t i = 0; i < COMMANDS; i++) {
            const char *part;
            const tsr_options *options = commands[i]->options;
            if (options) tsr_options_offer(options, &nearest, &exact);
            else if (commands[i]->part)
                for (size_t j = 0; (options = commands[i]->part(j, &part)) != NULL; j++)
                    tsr_options_offer(options, &nearest, &exact);
        }
        if (exact || !nearest.name[0]) continue;
        tsr_warn(world->warnings, "the variable %s is ignored: no option is called so%s", name,
                 tsr_did_you_mean(&nearest, TSR_VARIABLES, meant, sizeof meant));
    }
}

/* The last --plugins; "" where there is none. */
static const char *find_plugins(const tsr_arguments *arguments) {
    const char *folder = "";
    for (int i = 2; i < arguments->argc && strcmp(arguments->argv[i], "--") != 0; i++) {
        const char *value = tsr_option_value(arguments->argv, i, "--plugins");
        if (value) folder = value;
    }
    return folder;
}

/* Rank 0's arguments on all ranks. HDF5 started with this rank's own folder of plugins. */
static tsr_status share_arguments(const tsr_world *world, tsr_status status, tsr_arguments *arguments) {
    char own[TSR_FILE_CHARS];
    snprintf(own, sizeof own, "%s", status == TSR_OK ? find_plugins(arguments) : "");
    TSR_TRY(tsr_agree(world->comm, tsr_arguments_share(world, status, arguments)));
    status = TSR_OK;
    if (strcmp(find_plugins(arguments), own) != 0)
        status =
            tsr_fail(TSR_ERR_USAGE,
                     "--plugins is '%s' here and '%s' on rank 0: say it on the command line, or in the environment "
                     "of all ranks",
                     own, find_plugins(arguments));
    return tsr_agree(world->comm, status);
}

/* Whether a message names an option, "--panel", but as what may be meant. */
static bool mentions(const char *message, const char *option) {
    const char *end = strstr(message, "did you mean");
    const size_t length = strlen(option);
    for (const char *at = message; (at = strstr(at, option)) != NULL && (!end || at < end); at += length)
        if (!isalnum((unsigned char)at[length]) && at[length] != '-') return true;
    return false;
}
/* Whether a message is about one of these options, " --panel=20 --memory=2K". */
static bool is_about(const char *message, const char *options) {
    char name[TSR_VARIABLE_CHARS];
    for (const char *at = strstr(options, "--"); at; at = strstr(at + 2, " --")) {
        at += strspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "= "), at);
        if (mentions(message, name)) return true;
    }
    return false;
}

/* Whether someone typed an option, perhaps shortened: "--pan". */
static bool is_typed(int argc, char **argv, const char *option) {
    for (int i = 2; i < argc; i++) {
        const size_t length = tsr_min(strcspn(argv[i], "="), strlen(option));
        if (argv[i][0] == '-' && length > 2 && strncmp(argv[i], option, length) == 0) return true;
    }
    return false;
}

/* Where options stand in files that a message is about: all places, as any may be meant. */
static void name_places(const char *message, const char *places, int argc, char **argv, char *text, size_t chars) {
    char option[TSR_VARIABLE_CHARS], place[300];
    text[0] = '\0';
    for (const char *at = places, *end; *at; at = end + 1) {
        const int length = (int)strcspn(at, " ");
        const size_t used = strlen(text);
        end = at + strcspn(at, "\n");
        snprintf(option, sizeof option, "%.*s", length, at);
        snprintf(place, sizeof place, "%.*s", (int)(end - at) - length - 1, at + length + 1);
        if (mentions(message, option) && !is_typed(argc, argv, option) && !strstr(text, place) &&
            used + strlen(place) + 2 < chars)
            snprintf(text + used, chars - used, "%s%s", used ? ", " : "", place);
    }
}

/* A message about an option that nobody typed says where it is from. */
static void name_source(tsr_status status, const sources *from, int argc, char **argv) {
    char places[600];
    if (status == TSR_OK || !*tsr_message()) return;
    name_places(tsr_message(), from->places, argc, argv, places, sizeof places);
    const bool of_environment =
        *from->added && ((status == TSR_ERR_USAGE && !*places) || is_about(tsr_message(), from->added));
    if (*places && of_environment)
        (void)tsr_fail(status, "%s (%s; from the environment:%s)", tsr_message(), places, from->added);
    else if (*places) (void)tsr_fail(status, "%s (%s)", tsr_message(), places);
    else if (of_environment) (void)tsr_fail(status, "%s (from the environment:%s)", tsr_message(), from->added);
}

int main(int argc, char **argv) {
    const tsr_command *command = NULL;
    tsr_status status = TSR_OK;
    tsr_describer describer = {0};
    tsr_arguments arguments = {0};
    sources from = {0};
    const double started = tsr_now_seconds();
    keep_standard_descriptors();
    tsr_interrupt_note_ignored();
    spare_addresses();
    signal(SIGXFSZ, SIG_IGN); /* a file over its size limit is an error to report, not a death */
    if (answered_alone(argc, argv, &command, &status))
        return is_first_rank() ? report(status) : tsr_status_exit_code(status);

    const tsr_status gathered = gather_arguments(command, argc, argv, &arguments, &from);
    if (gathered == TSR_OK && *find_plugins(&arguments)) tsr_stores_plugins(find_plugins(&arguments));
    tsr_world world;
    if (command->reads && is_first_rank()) (void)tsr_describer_start(&describer); /* who asks it hears why it failed */
    tsr_stores_start();
    status = tsr_world_open(&world);
    tsr_interrupt_keep_ignored();
    if (status != TSR_OK) {
        if (!is_first_rank()) sleep(1); /* where all fail alike the launcher ends the job when the first has spoken */
        return report(status);
    }
    world.started_seconds = started;
    world.describer = &describer;
    if (world.rank != 0) tsr_describer_close(&describer);
    if (!command->alone) status = tsr_world_check_launcher(&world);
    if (status == TSR_OK) status = share_arguments(&world, gathered, &arguments);
    if (status != TSR_OK) tsr_job_log_refuse(&world, tsr_job_log_find(argc, argv), argc, argv, status);
    if (status == TSR_OK) {
        char name[64];
        snprintf(name, sizeof name, "tessera %s", command->name);
        arguments.argv[1] = name;
        warn_of_variables(&world);
        status = run_command(&world, command, arguments.argc - 1, arguments.argv + 1);
        name_source(status, &from, argc, argv);
    }
    tsr_describer_close(&describer);
    if (tsr_ends_job(&world, status)) tsr_abort(&world, status);
    tsr_interrupt_release(); /* the handler's flag goes with the world */
    /* Each rank of another MPI takes itself for the only one: the first speaks, the others fail after it. */
    const bool silent = status != TSR_OK && world.launcher.rank > 0 && tsr_world_check_launcher(&world) != TSR_OK;
    if (silent) sleep(1);
    int code = world.rank == 0 && !silent ? report(status) : tsr_status_exit_code(status);
    tsr_interrupt_finish(code);
    code = end_mpi(&world, code);
    tsr_arguments_free(&arguments);
    if (tsr_blas_broken()) {
        fflush(NULL);
        _exit(code);
    }
    return code;
}
