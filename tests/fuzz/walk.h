/* What a job asks about a file of others, and reads of it: by tessera-describe's code in this process, or from answers
 * that an input holds (ask.h). */
#ifndef TSR_TESTS_FUZZ_WALK_H
#define TSR_TESTS_FUZZ_WALK_H

#include "io/describe/describe.h"

/* All questions about the file; matrices that are found and small are read. */
void walk_file(tsr_describer *describer, const char *file);
/* The questions about one matrix. */
void walk_matrix(tsr_describer *describer, const char *name);
void walk_lists(tsr_describer *describer, const char *file);
void walk_carried(tsr_describer *describer, const char *file, const char *path);

#endif
