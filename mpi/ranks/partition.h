/* Pure arithmetic on index ranges: how rows, columns and k are cut among ranks and blocks. */
#ifndef TSR_MPI_RANKS_PARTITION_H
#define TSR_MPI_RANKS_PARTITION_H

#include "kernels/base/base.h"

typedef struct {
    int64_t start, count;
} tsr_span;

/* Part `index` of [0, total) cut into `parts` balanced parts: the first total mod parts of them hold one element
 * more. */
tsr_span tsr_partition(int64_t total, int64_t parts, int64_t index);
/* The same in whole units of `unit` elements, the last of which may be shorter. */
tsr_span tsr_partition_units(int64_t total, int64_t unit, int64_t parts, int64_t index);
/* How many elements the largest of these parts holds. */
int64_t tsr_partition_largest(int64_t total, int64_t unit, int64_t parts);
/* Block `index` of [0, total) cut into blocks of `size`; the last one is what is left. */
tsr_span tsr_block(int64_t total, int64_t size, int64_t index);
/* The part of `part` (relative to `whole`) shifted to where `whole` starts. */
static inline tsr_span tsr_span_within(tsr_span whole, tsr_span part) {
    return (tsr_span){whole.start + part.start, part.count};
}

#endif
