/* What checks of products count: kernels/check, and kernels that check their own. */
#ifndef TSR_KERNELS_GEMM_CHECK_COUNTS_H
#define TSR_KERNELS_GEMM_CHECK_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#define TSR_CHECK_PLACES 64

/* What a run's checks found, in device memory. */
typedef struct {
    uint64_t judged, unjudged; /* rows of products */
    uint64_t doubtful;         /* of those judged: outside the bound, */
    uint64_t wrong;            /* and of these: where rounding cannot be why */
    uint64_t worst_bits;       /* of the largest difference over its bound, a double ≥ 0 */
    struct {
        int64_t row, col;      /* of C, where the launch begins that a doubtful row is of (place_row) */
    } place[TSR_CHECK_PLACES]; /* of the first ones */
} tsr_check_counts;

/* Adds a row that is doubtful, or wrong, of the launch at this place; on the host. */
static inline void tsr_check_note_doubtful(tsr_check_counts *counts, bool wrong, int64_t place_row, int64_t place_col) {
    if (counts->doubtful < TSR_CHECK_PLACES) {
        counts->place[counts->doubtful].row = place_row;
        counts->place[counts->doubtful].col = place_col;
    }
    counts->doubtful++;
    counts->wrong += wrong;
}

#endif
