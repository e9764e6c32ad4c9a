/* What a person should know about the file that an output went into. */
#ifndef TSR_APP_RUN_OUTPUT_NOTE_H
#define TSR_APP_RUN_OUTPUT_NOTE_H

#include "io/output/output.h"

/* Local, rank 0, after the output was published. One line on stderr where nobody named the dataset and its file, which
 * was there before, now holds several matrices: its name alone no longer means one. */
void tsr_output_note(const tsr_output_spec *spec, const tsr_output *output);

#endif
