/* The tables of checks of this build. */
#include "kernels/check/check.h"

#include "kernels/check/check_rules.h"

static const tsr_check_ops *const checks[] = {
    &tsr_check_cpu,
#ifdef TSR_CUDA_TABLES
    &tsr_check_cuda,
#endif
};

const tsr_check_ops *tsr_check_find(tsr_device_kind device) {
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i]->device == device) return checks[i];
    return NULL;
}

/* Elements of a wider type would leave the range of sums in float. */
bool tsr_check_can_judge(tsr_dtype type, tsr_dtype out, double alpha) {
    const double size = fabs(alpha);
    if (tsr_dtype_facts_of(out)->kind != TSR_DTYPE_FLOAT) return false;
    if (alpha != 1 && tsr_dtype_bytes(out) > tsr_dtype_bytes(type)) return false;
    return size <= TSR_CHECK_ALPHA && size >= 1 / TSR_CHECK_ALPHA;
}

size_t tsr_check_bytes(int64_t rows, int64_t width, int64_t depth) {
    const int64_t sums = TSR_CHECK_CHUNKS * TSR_CHECK_VECTORS * tsr_max(rows, depth);
    const int64_t counters = tsr_check_counters(rows, depth);
    width = tsr_check_padded(width);
    depth = tsr_check_padded(depth);
    const int64_t vectors = TSR_CHECK_VECTORS * (2 * width + depth);
    const int64_t facts = TSR_CHECK_FACTS + TSR_CHECK_OPENING + counters / 2;
    return (size_t)(facts + vectors + TSR_CHECK_SUMS * rows + sums) * sizeof(double);
}
