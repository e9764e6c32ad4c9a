/* What a command line comes to: files of options (@FILE) are put in the place of their names, and what the environment
 * says (TESSERA_KERNEL=split3) is put behind the command's name where the line does not say it. */
#ifndef TSR_APP_ARGUMENTS_H
#define TSR_APP_ARGUMENTS_H

#include "app/options.h"
#include "mpi/ranks/world.h"

/* Words one behind the other, each with its end. {0} is empty. */
typedef struct {
    char *bytes; /* owned, like argv */
    size_t length, room;
    int argc;
    char **argv; /* once all are there: into bytes, and NULL behind the last; pointers may be replaced */
} tsr_arguments;

/* Local. Words of a file stand between blanks or line ends. '...' and "..." hold blanks, and a backslash takes the
 * next character as it is, but inside '...'. What follows a # at the beginning of a word is a comment. A word @FILE,
 * here or in a file, is that file, eight deep at most; names are relative to the current folder. Behind "--" an @ is
 * an @. TSR_ERR_USAGE names file and line. `places`: where options of files stand, for messages, a line of "--panel
 * @FILE:3" each, cut to its size. */
tsr_status tsr_arguments_expand(int argc, char **argv, tsr_arguments *to, char *places, size_t chars);
/* Local. Adds what the environment says of `options` behind the first `words`. `added`: these options, for messages,
 * cut to its size. */
tsr_status tsr_arguments_add_environment(const tsr_options *options, int words, tsr_arguments *arguments, char *added,
                                         size_t chars);
/* Collective. Rank 0's arguments on every rank, or its status. Ranks are to agree on what it returns. */
tsr_status tsr_arguments_share(const tsr_world *world, tsr_status status, tsr_arguments *arguments);
void tsr_arguments_free(tsr_arguments *arguments);

#endif
