/* A subcommand: one file, one table, one line in main.c. A command runs on every rank of the job and returns the
 * status all ranks agreed on; main.c prints the message (rank 0 holds it) and exits with the status's code. */
#ifndef TSR_APP_COMMANDS_COMMAND_H
#define TSR_APP_COMMANDS_COMMAND_H

#include "app/options.h"
#include "kernels/base/base.h"
#include "mpi/ranks/world.h"

typedef struct {
    const char *name;
    const char *what; /* one line for `tessera --help` */
    /* argv[0] is "tessera NAME". The world is open; --help and --version were answered before it was. */
    tsr_status (*run)(const tsr_world *world, int argc, char **argv);
    /* Prints the command's --help to stdout (argp). `part`: the word after the command, NULL for none; commands
     * without parts ignore it. */
    void (*help)(const char *part);
    const tsr_options *options; /* what it takes; NULL: each of its parts has its own */
    /* Its part number i, such as "gemm" of bench, and what that takes; NULL behind the last. NULL: it has none. */
    const tsr_options *(*part)(size_t i, const char **name);
    /* One process can do it: it may run under another MPI's launcher. Where it needs ranks or writes a file after all,
     * it asks tsr_world_check_launcher itself; for other commands main.c does. */
    bool alone;
    bool reads; /* it looks into files: what does that loads beside MPI (io/describe/describe.h) */
} tsr_command;

extern const tsr_command tsr_cmd_multiply, tsr_cmd_generate, tsr_cmd_compare, tsr_cmd_verify, tsr_cmd_info,
    tsr_cmd_report, tsr_cmd_bench, tsr_cmd_plan;

#endif
