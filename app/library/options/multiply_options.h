/* Options of tessera.h as a run takes them (run.h). */
#ifndef TSR_APP_LIBRARY_OPTIONS_MULTIPLY_OPTIONS_H
#define TSR_APP_LIBRARY_OPTIONS_MULTIPLY_OPTIONS_H

#include <limits.h>

#include "app/library/options/operands.h"
#include "app/library/run.h"
#include "app/library/tessera.h"

#define TSR_CALL_COMMAND_CHARS 4096
#define TSR_THREADS_MAX 4096 /* what `threads` of a rank takes */
#define TSR_IO_THREADS_MAX 32
#define TSR_TRIALS_MAX 64
#define TSR_TRIALS_USUAL 20

/* What a caller asked for, read. Texts of `run` are the caller's, or lie in here. */
typedef struct {
    tessera_multiply_options given;
    tsr_run_options run; /* but for `started` */
    const char *log;     /* NULL: none */
    tsr_distributed memory[TSR_CALL_OPERANDS];
    char log_target[PATH_MAX], trace_target[PATH_MAX];
    char command[TSR_CALL_COMMAND_CHARS];
} tsr_multiply_call;

/* Local. Reads and checks, and adds C0 to the operands; looks at no file but where `log` and `trace` would overwrite
 * what the run reads. A log that is refused is none in `call`, whatever else is wrong. Where the caller `prints`, as
 * the program does, "-" is standard output (tsr_text_file_resolve). */
tsr_status tsr_multiply_call_read(tsr_call_operands *of, const tessera_multiply_options *options, bool prints,
                                  tsr_multiply_call *call);

/* Local. Bytes are shuffled for a compression. TSR_ERR_USAGE without one. */
tsr_status tsr_check_compress(const tsr_run_target *target);

#endif
