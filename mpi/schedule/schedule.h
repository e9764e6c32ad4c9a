/* A schedule turns a plan into one rank's steps: a pure function that calls a sink for each step in an order in
 * which one worker could execute them one after another. That makes the parallel execution (each lane its steps in
 * order, slots as the only meeting points) free of deadlock: the first unfinished step never waits for a later one.
 *
 * Every buffer has a clock that only grows. A step waits until each buffer it touches has reached `wait`, and
 * afterwards moves the clock to `set`. A buffer's use u runs over clock values TSR_SLOT_STAGES·u (drained) to
 * TSR_SLOT_STAGES·(u + 1) (drained again).
 *
 * An example: SUMMA on four ranks in a grid of 2 × 2, all matrices 4 × 4 in f32, panels of k = 2, host memory. Rank 1
 * has row 0 and column 1 of the grid: rows 0-1 and columns 2-3 of C. It shares A's panels with rank 0 and B's with
 * rank 3. Panel 0 is k = 0-1, panel 1 is k = 2-3. Each has buffers of its own (A0, A1, B0, B1); S holds the sums, and
 * O what is written. What a step waits for is the clock before the arrow, and after it is what the step sets:
 *
 *     step  lane      what                                            buffers
 *      1    read      row 1 of A, columns 0-1: its half of the panel  A0 0 → 1
 *      2    exchange  all-gather with rank 0: rows 0-1                A0 1 → 2
 *      3    read      row 0 of B, columns 2-3                         B0 0 → 1
 *      4    exchange  all-gather with rank 3: rows 0-1                B0 1 → 2
 *      5    multiply  C = A0 · B0                                     A0 2 → 8, B0 2 → 8, S 0
 *      6    read      row 1 of A, columns 2-3                         A1 0 → 1
 *      7    exchange  all-gather with rank 0                          A1 1 → 2
 *      8    read      row 2 of B, columns 2-3                         B1 0 → 1
 *      9    exchange  all-gather with rank 3: rows 2-3                B1 1 → 2
 *     10    multiply  C += A1 · B1                                    A1 2 → 8, B1 2 → 8, S 0 → 1
 *     11    download  scale and convert                               S 1 → 8, O 0 → 1
 *     12    write     rows 0-1, columns 2-3 of C                      O 1 → 8
 *
 * Steps 6 and 8 wait for nothing: they read while step 2 exchanges. Step 7 follows step 4 in its lane, and runs beside
 * step 5. A third panel would use A0 and B0 again: its read would wait until step 5 has set their clocks to 8. */
#ifndef TSR_MPI_SCHEDULE_SCHEDULE_H
#define TSR_MPI_SCHEDULE_SCHEDULE_H

#include "mpi/plan/predict.h"

#define TSR_SLOT_STAGES 8

typedef enum {
    TSR_STEP_READ,     /* rect of A, B or C0 → buffer 0 */
    TSR_STEP_UPLOAD,   /* buffer 0 (host) → buffer 1 (device), bytes */
    TSR_STEP_COPY_IN,  /* rect of A or B, in the store's own memory → buffer 0 (device) */
    TSR_STEP_GENERATE, /* rect of A or B, made on the device → buffer 0 */
    TSR_STEP_GATHER,   /* pieces of `bytes` each, in place in buffer 0, over the operand's axis */
    TSR_STEP_PACK,     /* buffer 0 (rect as stored) → buffer 1 */
    TSR_STEP_ZERO,     /* bytes of buffer 0 */
    TSR_STEP_MULTIPLY, /* buffer 0 · buffer 1 → buffer 2: m × k · k × n, accumulating unless first */
    /* buffer 0: r pieces of count elements → my piece summed in buffer 1 (staging: buffer 2) */
    TSR_STEP_REDUCE,
    /* buffer 0: `batch` sums of `count` elements, stride_c elements apart. They are added in their order to what the
     * rank before hands over, in buffer 1 (staging: buffer 2), and that is handed to the next one */
    TSR_STEP_PASS,
    TSR_STEP_FINISH,    /* m × n rows of buffer 0 (ld), C0 in buffer 2 → buffer 1 */
    TSR_STEP_TRANSPOSE, /* m × n rows of buffer 0 (ld) of C's type → buffer 1, n × m row after row */
    TSR_STEP_MIRROR,    /* in buffer 0 (ld), of C's type: m rows, n columns left of a tile of `count` on the diagonal */
    TSR_STEP_DOWNLOAD,  /* rect of C: rows of buffer 0 (device, ld) → buffer 1 (host), row after row */
    TSR_STEP_COPY_OUT,  /* rect of C: rows of buffer 0 (device, ld) → the store's own memory */
    TSR_STEP_WRITE,     /* buffer 0 → rect of C */
    TSR_STEP_ADD_UP,    /* of a plan that compares: in place of a multiply, the check's sums of buffer 0 · buffer 1 */
    TSR_STEP_JUDGE      /* rect of C as it was written, in buffer 0, against these sums; done with buffer 1, too */
} tsr_step_kind;

const char *tsr_step_kind_name(tsr_step_kind kind);     /* "copy in"; static text, as the next */
const char *tsr_operand_text(tsr_operand_name operand); /* "C0" */

typedef struct {
    int buffer;    /* number among the plan's buffers; -1: unused */
    int64_t wait;  /* the clock must have reached this */
    int64_t set;   /* afterwards it is this; -1: unchanged */
    size_t offset; /* bytes into the buffer, where the step begins */
} tsr_slot_use;

#define TSR_STEP_SLOTS 3

typedef struct {
    tsr_step_kind kind;
    tsr_lane lane;
    tsr_operand_name operand;
    tsr_slot_use slots[TSR_STEP_SLOTS];
    /* of the stored matrix: read, write, copy in and out, download, generate; gather and pack: all of the panel; of C:
     * multiply, zero, finish */
    tsr_rect rect;
    size_t bytes; /* moved, or of a piece */
    /* multiply and pack: extents in reals as launched (padded); finish, transpose, mirror: rows and columns of C */
    int64_t m, n, k; /* judge, with `batch`: as the last multiplication of its rows */
    /* in reals: pack: of the packed operand; finish: of buffer 0; multiply and zero: of C. In elements of C: download,
     * copy out, transpose and mirror: of buffer 0; judge: columns of the block, as those of its add ups */
    int64_t ld;
    int64_t lda, ldb;                     /* multiply */
    int64_t batch;                        /* multiply, mirror: products of m × n × k, 1 unless they are of a stack */
    int64_t stride_a, stride_b, stride_c; /* from one to the next, in elements */
    /* reduce: elements of one piece; mirror: columns of the tile; judge: of the block, where its rows begin; multiply:
     * the same in reals */
    int64_t count;
    bool accumulate; /* multiply */
    /* multiply: the first of a super-block; the last of its rows of C. Where sums stay apart each is both */
    bool opens, closes;
    double flops;      /* multiply: 2·m·n·k of the real product itself, without padding */
    double lane_bytes; /* what the lane's record counts for this step */
} tsr_step;

/* Which operand a step is said to be of: those that make or move C carry none of their own. */
tsr_operand_name tsr_step_operand(const tsr_step *step);

typedef tsr_status (*tsr_step_sink)(void *context, const tsr_step *step);

/* A schedule. One constant table, tsr_schedule_CODE, at the end of its file, one line in schedules.c. */
struct tsr_schedule_ops {
    const char *name; /* as --schedule takes it */
    /* The steps of `rank` in [0, p·q·r). Stops at the first status other than TSR_OK and returns it. */
    tsr_status (*emit)(const tsr_plan *plan, int rank, tsr_step_sink sink, void *context);
    /* The buffers its steps use: sets slots, buffers, device_bytes and host_bytes, which were cleared. `sums`: buffers
     * for super-blocks of C where those leave the device. */
    void (*memory)(tsr_plan *plan, int sums);
    void (*predict)(const tsr_plan *plan, tsr_prediction *prediction);
    /* What no prediction of a plan on this grid can be below, however it is cut; quick. */
    void (*lower_bound)(const tsr_plan *plan, double *seconds, double *exchange_bytes);
};

/* All there are, then NULL. */
const tsr_schedule_ops *const *tsr_schedules(void);
/* NULL for "auto"; TSR_ERR_USAGE lists them. */
tsr_status tsr_schedule_find(const char *name, const tsr_schedule_ops **schedule);

#endif
