/* The executor: runs one rank's steps of a plan, one thread and one stream a lane, over the plan's buffers. The same
 * for every device, transport and store. */
#ifndef TSR_MPI_EXECUTE_EXECUTE_H
#define TSR_MPI_EXECUTE_EXECUTE_H

#include <stdatomic.h>

#include "io/record/run_record.h"
#include "io/store.h"
#include "kernels/check/check.h"
#include "kernels/gemm/gemm.h"
#include "kernels/pack/pack.h"
#include "mpi/execute/memory/kept.h"
#include "mpi/execute/task.h"
#include "mpi/execute/trace/trace.h"
#include "mpi/plan/plan.h"
#include "mpi/ranks/grid.h"
#include "mpi/transport/transport.h"
#include "mpi/watch/signs.h"

/* What a run's kernels count, in device memory. */
typedef struct {
    tsr_gemm_fallbacks fallbacks; /* products that the kernel's fallback made */
    uint64_t overflows;           /* elements of C that were finite, and are infinite in C's type */
    tsr_check_counts check;
} tsr_counters;

/* Everything a run needs; nothing but buffers is owned. Stores of operands the plan does not read may be NULL. */
typedef struct {
    const tsr_plan *plan;
    const tsr_grid *grid;
    tsr_device *device;
    const tsr_gemm_kernel *kernel;
    bool kernel_checks; /* products are checked by the kernel, which has `checks`, and so not by kernels/check */
    tsr_transport *transport;
    tsr_store *a, *b, *c0, *c;
    int io_threads, write_threads; /* that read, and that write, at once on this rank */
    /* Called by tsr_executor_run's thread, five times a second; may be NULL. Shares of the run in [0, 1], by the plan's
     * rates: what is done, and what the steps under way will add. */
    void (*progress)(void *context, double done, double under_way);
    /* Whether this rank was asked to stop; asked as often, may be NULL. From then on it only does what others wait for:
     * the run ends soon and well, and C is worth nothing. */
    bool (*stopped)(void *context);
    /* A rectangle of C was written: it is right and stays, also where the run was asked to stop. `sum`: the CRC-32C of
     * its bytes, row after row; 0 of a store that writes units of its own (unit_rows). So ranks agree on each exchange
     * whether all of them go on. Any thread; not called any more once the check doubts a product of this rank, or of
     * one whose sums are added to its own. NULL: C is worth nothing unless the run ends as usual. */
    tsr_status (*written)(void *context, tsr_rect rect, uint32_t sum);
    void *progress_context; /* of the three */
    void **buffers;   /* the plan's, from tsr_buffers_open: the executor's from here on; NULL: it opens them itself */
    tsr_kept *kept;   /* where they came from, and go back to; NULL: nowhere; not owned */
    tsr_trace *trace; /* takes every step's begin and end; NULL: nobody asks */
    tsr_signs *signs; /* where the lanes sign; NULL: nobody watches */
    tsr_crew *readers, *writers; /* set by the executor: threads of these lanes */
    tsr_counters *counters;      /* set by the executor: on the device, which alone reads and writes them */
    uint64_t check_seed;         /* of the check's signs, beside the place in C */
    uint64_t *doubtful; /* likewise: rows that the check doubts, in host memory, as of the last step that multiplied */
    void *fallback_workspace; /* likewise, of the multiply lane: for tsr_gemm_args */
    atomic_bool others_doubt; /* likewise: the check of a rank whose sums are added to this one's does */
    /* likewise, of ranks that hand on sums in a run that stops: the one before this one hands over no more; nor does
     * this one */
    bool before_stopped, has_stopped;
} tsr_execution;

typedef struct tsr_executor tsr_executor;

/* Local. Allocates every buffer, stream and event of the plan; nothing is allocated later. */
tsr_status tsr_executor_open(const tsr_execution *execution, tsr_executor **executor);
/* Collective over the grid. Runs all steps, adds them to the lanes' part of the record, and to the trace, which the
 * caller has started. After a run that succeeded it can be called again and computes all of C anew, of other matrices
 * where the stores were told so (tsr_store_select). On failure of
 * a job with several ranks other ranks may be inside communication: the caller can only tsr_abort, and must not
 * close the executor. */
tsr_status tsr_executor_run(tsr_executor *executor, tsr_rank_record *record);
/* What a run compares: A, B and the C that was written. */
typedef struct {
    tsr_store *a, *b, *c; /* from their files anew; not owned */
    uint64_t seed;        /* > 0: other signs than those that its products were checked with */
    int io_threads;       /* that read at once: nothing is written beside */
} tsr_comparison;
/* Collective over the grid, while the plan compares (tsr_plan.compares): as tsr_executor_run, by other stores, and
 * nothing is written or said of progress. *found: what the check of C's rows found on this rank. */
tsr_status tsr_executor_compare(tsr_executor *executor, const tsr_comparison *comparison, tsr_rank_record *record,
                                tsr_check_counts *found);
/* Local. What the check of the last run's products found; zeros where the plan has none. */
const tsr_check_counts *tsr_executor_checked(const tsr_executor *executor);
void tsr_executor_close(tsr_executor *executor); /* NULL is fine */

/* Local, after a run whose C stays on the device (TSR_DATA_PATH_DEVICE). Copies a row of this rank's part of one
 * super-block (tsr_plan_span), or some columns of it, to `to`: elements of the problem's `type`,
 * or complex ones of such parts, there on return. */
tsr_status tsr_executor_fetch(tsr_executor *executor, tsr_rect row, void *to);

#endif
