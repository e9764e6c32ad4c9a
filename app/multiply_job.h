/* One multiplication while it is under way: what app/multiply.c and app/multiply_plan.c share with each other and with bench multiply. */
#ifndef TSR_APP_MULTIPLY_JOB_H
#define TSR_APP_MULTIPLY_JOB_H

#include "app/multiply.h"
#include "app/progress.h"
#include "io/run_log.h"
#include "mpi/execute.h"
#include "mpi/task.h"

/* What rank 0 finds in the files, handed to all. */
typedef struct {
    tsr_store_desc a, b, c0;
} tsr_job_sources;

typedef struct {
    const tsr_world *world;
    const tsr_multiply_settings *settings;
    bool transpose_a, transpose_b; /* of the operands as the engine sees them: rows of the file are rows */
    tsr_job_sources from;
    tsr_output_spec spec;
    tsr_output output;
    tsr_task allocation; /* rank 0: of the output's bytes on the disk */
    tsr_device *device;
    tsr_device_facts facts;
    int shared; /* ranks on this rank's device */
    int threads; /* that multiply: BLAS's on a CPU */
    const tsr_gemm_kernel *kernel;
    const tsr_transport_ops *transport_ops;
    tsr_problem problem;
    tsr_plan plan;
    tsr_grid grid;
    tsr_transport *transport;
    tsr_store *a, *b, *c0, *c;
    tsr_io_mode io_used;
    void **buffers; /* the plan's, until the executor has them */
    tsr_executor *executor;
    tsr_progress progress;
    tsr_run_log *log; /* not owned */
    tsr_rank_record mine;
    tsr_trace *trace; /* NULL: not asked for, or this rank is idle */
    double trace_bytes; /* of host memory on the rank with the most steps */
    double first_read, seconds; /* when this rank began, and the run's length: first read to last byte synced, of the rank that took longest */
    double startup_seconds[TSR_STARTUP_COUNT], startup_marked; /* parts so far, and when the last one ended */
    int64_t overflows; /* elements of C, of all ranks, that its type made infinite */
    char check[384];
} tsr_job;

/* A part of the start-up ends now; it began where the last one ended. What others do meanwhile counts only when it is waited for. */
static inline void tsr_job_mark(tsr_job *j, tsr_startup part) {
    double now = tsr_now_seconds();
    j->startup_seconds[part] += now - j->startup_marked;
    j->startup_marked = now;
}

/* multiply_plan.c. Collective, the same status on every rank. */
tsr_status tsr_job_describe(tsr_job *j); /* what is multiplied: the files, the problem, where the product goes */
tsr_status tsr_job_choose(tsr_job *j, tsr_device_opening *opening); /* with what: device, kernel, transport, plan */
/* Local. Rank 0 says why C is f64 where nobody asked for that, and warns that C may not be exact. */
void tsr_job_say_types(const tsr_job *j);
/* dry_run.c, Local. Rank 0 prints the plan, and seconds predicted from rates that it states. It measures a CPU's
 * kernel. */
tsr_status tsr_job_show_plan(const tsr_job *j);

/* multiply.c. Collective, the same status on every rank: the grid and the transport of the plan. */
tsr_status tsr_job_connect(tsr_job *j);
/* multiply.c, Local. */
tsr_status tsr_job_open_trace(tsr_job *j); /* an active rank: j->trace with room for all steps of its plan, where the settings ask for one */
int tsr_job_cores(const tsr_job *j); /* this rank's share, or fewer where the setting allows fewer threads */
/* That read or write at once on this rank: the setting, or half of its cores, 8 at most; never more than threads. */
int tsr_job_io_threads(const tsr_job *j);
void tsr_job_describe_rank(tsr_job *j); /* rank, place in the grid, host and device in j->mine */
void tsr_job_versions(const tsr_job *j, char *text, size_t chars); /* "tessera 0.1.0, HDF5 …, Open MPI …, CUDA …" */

#endif
