/* When each step of a rank began and ended, kept while the executor runs and written afterwards as one file of all
 * ranks (io/record/trace_file.h).
 * All memory is allocated before the run. Times count from a barrier of the job's ranks, on each rank's own clock. */
#ifndef TSR_MPI_EXECUTE_TRACE_H
#define TSR_MPI_EXECUTE_TRACE_H

#include "io/record/trace_sink.h"
#include "kernels/gemm/gemm.h"
#include "mpi/ranks/world.h"
#include "mpi/schedule/schedule.h"

/* Plain memory: ranks send it to rank 0. */
typedef struct {
    int64_t begin_ns, end_ns; /* 0 ≤ begin ≤ end; events of one lane do not overlap and stand in order */
    double bytes, flops;      /* as the lane's record counts them */
    tsr_rect tile;            /* of the operand; empty: not one tile */
    int16_t lane;             /* tsr_lane */
    int16_t kind;             /* tsr_step_kind; TSR_TRACE_SYNC and the next */
    int16_t operand;          /* tsr_operand_name */
    int16_t kernel;           /* number among tsr_gemm_kernels; -1: none */
    int32_t uses[2], makes;   /* buffers of the plan; -1: none */
} tsr_trace_event;

#define TSR_TRACE_SYNC 1000         /* after the steps: written bytes brought to stable storage */
#define TSR_TRACE_REDISTRIBUTE 1001 /* before and after them: matrices in memory */
#define TSR_TRACE_REDISTRIBUTIONS 4 /* of a run at most */

typedef struct tsr_trace tsr_trace;

/* Host memory that a trace of so many steps takes on a rank, what rank 0 needs to gather all included. */
double tsr_trace_bytes(int64_t steps);
/* Local. Room for that many steps and one sync. */
tsr_status tsr_trace_open(int64_t steps, tsr_trace **trace);
void tsr_trace_close(tsr_trace *trace); /* NULL is fine */
/* Local. The run begins now: events count from here, and those of an earlier one are forgotten. */
void tsr_trace_start(tsr_trace *trace);
/* Local. Steps to come are not kept, until they are again. */
void tsr_trace_pause(tsr_trace *trace, bool paused);
/* Local, from any lane's thread; seconds as tsr_now_seconds gives them. Of more events than there is room for only
 * the number is kept. `kernel`: that multiplied; NULL: none. */
void tsr_trace_step(tsr_trace *trace, const tsr_step *step, const tsr_gemm_kernel *kernel, double begin_seconds,
                    double end_seconds);
void tsr_trace_sync(tsr_trace *trace, double begin_seconds, double end_seconds);
/* The same of an operand that went to, or came from, where the plan has it; `bytes` came from other ranks. */
void tsr_trace_redistribution(tsr_trace *trace, tsr_operand_name operand, double bytes, double begin_seconds,
                              double end_seconds);
/* What was kept, in the order in which steps ended. */
const tsr_trace_event *tsr_trace_events(const tsr_trace *trace, int64_t *count);
/* Collective over comm, the same status on every rank. Rank 0 writes the events of all, a few thousand of one rank
 * at a time. `mine`: NULL on ranks without events. The rest matters on rank 0; ranks: one record a rank of comm;
 * startup: as tsr_trace_file_open has it. */
tsr_status tsr_trace_save(const tsr_trace *mine, MPI_Comm comm, const tsr_rank_record *ranks, const double *startup,
                          const char *file, const char *command);
/* Collective over comm, the same status on every rank: rank 0 hands the sink what it wants, and takes no more memory
 * than a few thousand events. `mine`, `ranks`: as above; `to` matters on rank 0. */
tsr_status tsr_trace_tell(const tsr_trace *mine, MPI_Comm comm, const tsr_rank_record *ranks, const tsr_trace_sink *to);

#endif
