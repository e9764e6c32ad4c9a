/* Signs of life: what a rank's lanes are doing, as numbers that the ranks of a node share while a run is under way. Its
 * own threads write them, watches read them (watch.h). */
#ifndef TSR_MPI_WATCH_SIGNS_H
#define TSR_MPI_WATCH_SIGNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpi/schedule/schedule.h"

/* What a rank does besides the steps of its plan, all of it work on files: code, text */
#define TSR_PHASE_LIST(X)                                                                                              \
    X(ALLOCATE, "taking the disk's space for C")                                                                       \
    X(SYNC, "bringing C to stable storage")                                                                            \
    X(PLACE, "placing C's chunks")                                                                                     \
    X(CHECK, "checking C")                                                                                             \
    X(PUBLISH, "publishing C")

typedef enum {
#define X(code, text) TSR_PHASE_##code,
    TSR_PHASE_LIST(X)
#undef X
} tsr_phase;

/* The lanes of a plan, and one more for phases. */
#define TSR_WATCHED_LANES (TSR_LANE_COUNT + 1)
#define TSR_LANE_PHASE TSR_LANE_COUNT

/* A lane. While begun and ended differ a step is under way. */
typedef struct {
    atomic_uint begun, ended;     /* steps so far */
    atomic_int kind, operand;     /* of the step that began last: tsr_step_kind or tsr_phase; tsr_operand_name */
    atomic_ullong busy_ns, units; /* of the steps that ended: nanoseconds, and bytes or flops */
} tsr_lane_signs;

typedef struct {
    atomic_uint beats; /* grows while the rank's watch lives */
    atomic_bool left;  /* the rank's watch was closed: no more beats are expected */
    tsr_lane_signs lane[TSR_WATCHED_LANES];
} tsr_signs;

/* Local, any thread; `signs` NULL: nobody watches. One lane's steps begin and end in one thread. */
static inline void tsr_signs_begin(tsr_signs *signs, int lane, int kind, int operand) {
    if (!signs) return;
    atomic_store(&signs->lane[lane].kind, kind);
    atomic_store(&signs->lane[lane].operand, operand);
    atomic_fetch_add(&signs->lane[lane].begun, 1);
}
static inline void tsr_signs_end(tsr_signs *signs, int lane, double seconds, double units) {
    if (!signs) return;
    atomic_fetch_add(&signs->lane[lane].busy_ns, (unsigned long long)(1e9 * seconds));
    atomic_fetch_add(&signs->lane[lane].units, (unsigned long long)units);
    atomic_fetch_add(&signs->lane[lane].ended, 1);
}
static inline void tsr_signs_step(tsr_signs *signs, const tsr_step *step) {
    tsr_signs_begin(signs, step->lane, step->kind, tsr_step_operand(step));
}
static inline void tsr_signs_step_done(tsr_signs *signs, const tsr_step *step, double seconds) {
    tsr_signs_end(signs, step->lane, seconds, step->lane == TSR_LANE_MULTIPLY ? step->flops : step->lane_bytes);
}
static inline void tsr_signs_phase(tsr_signs *signs, tsr_phase phase) {
    tsr_signs_begin(signs, TSR_LANE_PHASE, phase, 0);
}
static inline void tsr_signs_phase_done(tsr_signs *signs) { tsr_signs_end(signs, TSR_LANE_PHASE, 0, 0); }
/* The phase under way has moved on. */
static inline void tsr_signs_phase_moves(tsr_signs *signs) {
    if (!signs) return;
    atomic_fetch_add(&signs->lane[TSR_LANE_PHASE].begun, 1);
    atomic_fetch_add(&signs->lane[TSR_LANE_PHASE].ended, 1);
}

#endif
