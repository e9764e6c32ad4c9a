/* Stands where the process of tessera-describe is: --wrap=tsr_describer_ask. */
#ifndef TSR_TESTS_FUZZ_ASK_H
#define TSR_TESTS_FUZZ_ASK_H

#include "io/describe/describe_wire.h"
#include "tests/fuzz/fuzz.h"

/* Answers come from here, each behind its length (32 bits); NULL: the helper's code answers, in this process. */
extern fuzz_bytes *ask_answers;
/* What that says is added to here, as answers are read; NULL: it is not. */
extern FILE *ask_record;

#endif
