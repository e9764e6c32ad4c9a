/* Files in which encoded chunks wait for a later run (resume.h), ….GENERATION-RANK-NUMBER.chunks beside the temporary
 * file: heads and bytes (output_chunks.h). Which chunks of them count the journal says. They are there as long as C has
 * no name. Local. */
#ifndef TSR_IO_OUTPUT_RESUME_SPILL_H
#define TSR_IO_OUTPUT_RESUME_SPILL_H

#include "io/output/output_chunks.h"
#include "io/output/output_private.h"
#include "io/output/resume/journal.h"

#define TSR_SPILL_NAME_CHARS (TSR_FILE_CHARS + 64)

/* The file of a chunk, beside the temporary file of that name. */
void tsr_spill_name(const char *temporary, const tsr_spilled *at, char name[TSR_SPILL_NAME_CHARS]);
/* Opened to read, and to give room back. -1 and errno. */
int tsr_spill_open(const char *temporary, const tsr_spilled *at);
/* The chunk as a part of C. */
tsr_part tsr_spill_part(const tsr_store_desc *desc, int64_t number, uint32_t head_sum, const tsr_spilled *at);
/* As tsr_resume_check, of chunks. */
tsr_status tsr_spill_check(const tsr_output *output, const tsr_part *parts, int64_t count, int64_t first, int64_t step,
                           bool *whole);
/* Removes the files of an output with this temporary file; and those beside the target whose temporary file is gone. */
void tsr_spill_remove(const tsr_target *target, const char *temporary);
void tsr_spill_sweep(const tsr_target *target);

#endif
