/* The shape of an output as it is stored (output.h). */
#include <string.h>

#include "io/output/output.h"

tsr_shape tsr_output_shape(const tsr_output_spec *spec) {
    const int leads = spec->stack_dimensions;
    tsr_shape shape = {.dimensions = leads + 2 - spec->dropped};
    memcpy(shape.size, spec->stack, (size_t)leads * sizeof *spec->stack);
    if (spec->dropped < 2) shape.size[leads] = spec->dropped == 1 ? spec->rows * spec->cols : spec->rows;
    if (spec->dropped == 0) shape.size[leads + 1] = spec->cols;
    return shape;
}

int64_t tsr_output_matrices(const tsr_output_spec *spec) {
    int64_t matrices = 1;
    for (int d = 0; d < spec->stack_dimensions; d++)
        if (__builtin_mul_overflow(matrices, spec->stack[d], &matrices)) return INT64_MAX;
    return matrices;
}
