/* What shells ask for completion (jobs/completions): `tessera --complete WORD...`, where the last word is the one that
 * is being written and the first is the program's. */
#ifndef TSR_APP_COMMANDS_COMPLETE_H
#define TSR_APP_COMMANDS_COMPLETE_H

#include "app/commands/command.h"

/* Prints a line "WORD<tab>what it is" for each word that can stand there: commands, options, values of options, and
 * datasets of the file before a colon. Nothing where a file's name is wanted, or something is wrong. Says nothing
 * else, and ends the process after 3 s. `commands` ends with NULL. */
void tsr_complete(const tsr_command *const *commands, int argc, char **argv);

#endif
