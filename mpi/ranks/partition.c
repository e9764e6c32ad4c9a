/* Pure arithmetic on index ranges (partition.h). */
#include "mpi/ranks/partition.h"

tsr_span tsr_partition(int64_t total, int64_t parts, int64_t index) {
    int64_t each = total / parts, more = total % parts;
    return (tsr_span){index * each + tsr_min(index, more), each + (index < more)};
}

tsr_span tsr_partition_units(int64_t total, int64_t unit, int64_t parts, int64_t index) {
    tsr_span units = tsr_partition(tsr_ceil_div(total, unit), parts, index);
    int64_t start = tsr_min(total, units.start * unit);
    return (tsr_span){start, tsr_min(total, (units.start + units.count) * unit) - start};
}

int64_t tsr_partition_largest(int64_t total, int64_t unit, int64_t parts) {
    if (unit == 1) return tsr_ceil_div(total, parts); /* plans ask for it all the time */
    return tsr_min(total, tsr_ceil_div(tsr_ceil_div(total, unit), parts) * unit);
}

tsr_span tsr_block(int64_t total, int64_t size, int64_t index) {
    int64_t start = tsr_min(total, index * size);
    return (tsr_span){start, tsr_min(size, total - start)};
}
