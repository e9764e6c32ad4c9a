/* A small output /C of a file in the scratch folder, which replaces what is there. */
#ifndef TSR_TESTS_IO_FILES_SPEC_OF_H
#define TSR_TESTS_IO_FILES_SPEC_OF_H

#include "io/output/output.h"
#include "tests/io/scratch.h"

static inline tsr_output_spec spec_of(const char *file) {
    tsr_output_spec spec = {.rows = 2, .cols = 2, .dtype = TSR_F32, .force = true};
    char text[700];
    snprintf(text, sizeof text, "%s:/C", in_scratch(file));
    CHECK_OK(tsr_matrix_name_parse(text, &spec.name));
    return spec;
}

#endif
