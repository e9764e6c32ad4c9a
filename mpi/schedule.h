/* A schedule turns a plan into one rank's steps: a pure function that calls a sink for each step in an order in which one worker could
 * execute them one after another. That makes the parallel execution (each lane its steps in order, slots as the only
 * meeting points) free of deadlock: the first unfinished step never waits for a later one.
 *
 * Every buffer has a clock that only grows. A step waits until each buffer it touches has reached `wait`, and afterwards moves the clock
 * to `set`. A buffer's use u runs over clock values TSR_SLOT_STAGES·u (drained) to TSR_SLOT_STAGES·(u + 1) (drained again). */
#ifndef TSR_MPI_SCHEDULE_H
#define TSR_MPI_SCHEDULE_H

#include "mpi/plan.h"

#define TSR_SLOT_STAGES 8

typedef enum {
    TSR_STEP_READ,     /* rect of A, B or C0 → buffer 0 at offset */
    TSR_STEP_UPLOAD,   /* buffer 0 (host) → buffer 1 (device) at offset, bytes */
    TSR_STEP_COPY_IN,  /* rect of A or B, in the store's own memory → buffer 0 (device) at offset */
    TSR_STEP_GENERATE, /* rect of A or B, made on the device → buffer 0 at offset */
    TSR_STEP_GATHER,   /* pieces of `bytes` each, in place in buffer 0, over the operand's axis */
    TSR_STEP_PACK,     /* buffer 0 (rect.rows × rect.cols as stored) → buffer 1 */
    TSR_STEP_ZERO,     /* bytes of buffer 0 */
    TSR_STEP_MULTIPLY, /* buffer 0 · buffer 1 → buffer 2: m × k · k × n, accumulating unless first */
    TSR_STEP_REDUCE,   /* buffer 0 at offset: r pieces of count elements → my piece summed in buffer 1 (staging: buffer 2) */
    TSR_STEP_FINISH,   /* m × n rows of buffer 0 at offset (ld), C0 in buffer 2 → buffer 1 */
    TSR_STEP_DOWNLOAD, /* rect of C: rows of buffer 0 (device) at offset (ld) → buffer 1 (host), row after row */
    TSR_STEP_COPY_OUT, /* rect of C: rows of buffer 0 (device) at offset (ld) → the store's own memory */
    TSR_STEP_WRITE     /* buffer 0 → rect of C */
} tsr_step_kind;

typedef enum { TSR_OPERAND_A, TSR_OPERAND_B, TSR_OPERAND_C0, TSR_OPERAND_C } tsr_operand_name;

typedef struct {
    int buffer;    /* number among the plan's buffers; -1: unused */
    int64_t wait;  /* the clock must have reached this */
    int64_t set;   /* afterwards it is this; -1: unchanged */
} tsr_slot_use;

#define TSR_STEP_SLOTS 3

typedef struct {
    tsr_step_kind kind;
    tsr_lane lane;
    tsr_operand_name operand;
    tsr_slot_use slots[TSR_STEP_SLOTS];
    tsr_rect rect;       /* of the stored matrix: read, write, copy in and out, download, generate; of C: multiply, zero; of the panel as stored: pack */
    size_t offset;       /* bytes into the buffer the kind says */
    size_t bytes;        /* moved, or of a piece */
    int64_t m, n, k;     /* multiply and finish: extents as launched (padded) or finished */
    int64_t ld;          /* pack: of the packed operand; finish, download and copy out: of buffer 0; multiply and zero: of C */
    int64_t lda, ldb;    /* multiply */
    int64_t count;       /* reduce: elements of one piece */
    bool accumulate;     /* multiply */
    double flops;        /* multiply: 2·m·n·k of the product itself, without padding */
    double lane_bytes;   /* what the lane's record counts for this step */
} tsr_step;

typedef tsr_status (*tsr_step_sink)(void *context, const tsr_step *step);

/* SUMMA over p × q with k split over r and summed at the end of each super-block (van de Geijn and Watts, 1997). `rank` in [0, p·q·r).
 * Stops at the first status other than TSR_OK and returns it. */
tsr_status tsr_schedule_summa(const tsr_plan *plan, int rank, tsr_step_sink sink, void *context);

#endif
