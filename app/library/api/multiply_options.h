/* Options of tessera.h as a run takes them (run.h). */
#ifndef TSR_APP_LIBRARY_API_MULTIPLY_OPTIONS_H
#define TSR_APP_LIBRARY_API_MULTIPLY_OPTIONS_H

#include <limits.h>

#include "app/library/run.h"
#include "app/library/tessera.h"

#define TSR_CALL_COMMAND_CHARS 4096
#define TSR_THREADS_MAX 4096 /* what `threads` of a rank takes */
#define TSR_IO_THREADS_MAX 32
#define TSR_TRIALS_MAX 64

/* What a caller asked for, read. Texts of `run` are the caller's, or lie in here. */
typedef struct {
    tessera_multiply_options given;
    tsr_run_options run;       /* but for `started` */
    const char *log;           /* NULL: none */
    tsr_distributed memory[3]; /* A, B, C, where these are in memory */
    char log_target[PATH_MAX], trace_target[PATH_MAX];
    char command[TSR_CALL_COMMAND_CHARS];
} tsr_multiply_call;

/* Local. Reads and checks; looks at no file but where `log` and `trace` would overwrite what the run reads. A log that
 * is refused is none in `call`, whatever else is wrong. */
tsr_status tsr_multiply_call_read(const char *a, const char *b, const char *c, const tessera_multiply_options *options,
                                  tsr_multiply_call *call);

/* The same of matrices in the memory of ranks; `rank`: this one. What a run checks of them is left to it. */
tsr_status tsr_matrices_call_read(const tessera_matrix *const matrices[3], const tessera_multiply_options *options,
                                  int rank, int ranks, tsr_multiply_call *call);

/* Local. What a run says of itself goes to a file that it neither reads nor writes besides: TSR_ERR_USAGE where `file`,
 * of `option`, is one of those, or `other`; where inputs may read other files (run->external) also where it holds
 * anything but what an earlier run said. NULL: none. */
tsr_status tsr_check_own_file(const tsr_run_options *run, const char *option, const char *file, const char *other);

/* The command line that would ask the program for the same. Writes at most `chars`, and returns text. */
const char *tsr_multiply_command(const char *a, const char *b, const char *c, const tessera_multiply_options *options,
                                 char *text, size_t chars);

#endif
