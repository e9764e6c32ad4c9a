/* The program `tessera`: finds the subcommand, answers --help and --version before MPI starts, opens the job's ranks, runs the
 * command on all of them, and prints the message of a failure once. The only file that prints errors or decides exit codes. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command.h"
#include "kernels/base.h"
#include "mpi/grid.h"

static const tsr_command *const commands[] = {&tsr_cmd_multiply, &tsr_cmd_generate, &tsr_cmd_compare,
                                              &tsr_cmd_verify,   &tsr_cmd_info,     &tsr_cmd_plan,     &tsr_cmd_bench};
#define COMMANDS (sizeof commands / sizeof *commands)

/* Which rank the launcher says this is: help and wrong usage are answered before MPI runs, by one rank only. */
static bool is_first_rank(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i]);
        if (rank && *rank) return strtol(rank, NULL, 10) == 0;
    }
    return true;
}

static void print_help(void) {
    printf("tessera %s: products of matrices in HDF5 files, on as many ranks and GPUs as the launcher gives\n\n"
           "Usage: [mpirun -n RANKS] tessera COMMAND [OPTION...] ...\n\nCommands:\n", TSR_VERSION);
    for (size_t i = 0; i < COMMANDS; i++) printf("  %-10s %s\n", commands[i]->name, commands[i]->what);
    printf("\nOptions:\n"
           "  --help     this text; after a command, what that command takes\n"
           "  --version  the program's version\n\n"
           "A matrix is named file.h5:/group/dataset, or file.h5 when the file holds one; a trailing [r0:r1,c0:c1] selects a part.\n"
           "Exit codes: 0 done, 1 failure, 2 wrong usage, 3 the result failed its check, 75 stopped on request.\n");
}

static const tsr_command *find_command(const char *name) {
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static tsr_status no_command(const char *name) {
    char list[256] = "";
    for (size_t i = 0; i < COMMANDS; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, " %s", commands[i]->name);
    }
    if (!name) return tsr_fail(TSR_ERR_USAGE, "no command given: use one of%s, or --help", list);
    return tsr_fail(TSR_ERR_USAGE, "unknown command '%s': use one of%s, or --help", name, list);
}

static bool asks(int argc, char **argv, const char *option) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], option) == 0) return true;
    return false;
}

/* Prints the thread's message, or the status's text when nobody left one. */
static int report(tsr_status status) {
    if (status != TSR_OK) fprintf(stderr, "tessera: error: %s\n", *tsr_message() ? tsr_message() : tsr_status_text(status));
    return tsr_status_exit_code(status);
}

static tsr_status flush_output(void) {
    if (fflush(stdout) != 0 || ferror(stdout))
        return tsr_fail(TSR_ERR_IO, "standard output could not be written: check where it goes, such as a full disk");
    return TSR_OK;
}

/* What needs no ranks. True when `*status` is the answer. */
static bool answered_alone(int argc, char **argv, const tsr_command **command, tsr_status *status) {
    *command = argc > 1 ? find_command(argv[1]) : NULL;
    bool version = argc > 1 && asks(*command ? argc - 1 : 2, argv + (*command != NULL), "--version");
    bool help = argc > 1 && asks(*command ? argc - 1 : 2, argv + (*command != NULL), "--help");
    if (*command && !help && !version) return false;
    *status = TSR_OK;
    /* The others are silent and content: a launcher that saw one of them fail might end the first rank before it has spoken. */
    if (!is_first_rank()) return true;
    if (help) {
        if (*command) (*command)->help();
        else print_help();
    } else if (version) {
        printf("tessera%s%s %s\n", *command ? " " : "", *command ? (*command)->name : "", TSR_VERSION);
    } else {
        *status = no_command(argc > 1 ? argv[1] : NULL);
    }
    if (*status == TSR_OK) *status = flush_output();
    return true;
}

/* Agreement comes last, so that ranks that failed alone before any communication are heard, too. */
static tsr_status run_command(const tsr_world *world, const tsr_command *command, int argc, char **argv) {
    tsr_status status = command->run(world, argc, argv);
    if (status == TSR_OK) status = flush_output();
    return tsr_agree(world->comm, status);
}

int main(int argc, char **argv) {
    const tsr_command *command = NULL;
    tsr_status status = TSR_OK;
    const double started = tsr_now_seconds();
    signal(SIGXFSZ, SIG_IGN); /* a file over its size limit is an error to report, not a death */
    if (answered_alone(argc, argv, &command, &status))
        return is_first_rank() ? report(status) : tsr_status_exit_code(status);

    tsr_world world;
    status = tsr_world_open(&world);
    if (status != TSR_OK) return report(status);
    world.started_seconds = started;

    char name[64];
    snprintf(name, sizeof name, "tessera %s", command->name);
    argv[1] = name;
    status = run_command(&world, command, argc - 1, argv + 1);
    int code = world.rank == 0 ? report(status) : tsr_status_exit_code(status);
    tsr_world_close(&world);
    return code;
}
