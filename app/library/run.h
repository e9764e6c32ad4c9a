/* One product of matrices in files, from their description to the publication of C. Nothing here prints, reads a
 * command line, handles signals, exits or keeps anything between calls: what a run has to say goes to the caller's
 * functions, to the status with tsr_message(), and as warnings to world->warnings.
 *
 * Every function is collective over the world with the same options on every rank, and returns the same status
 * everywhere; the message of a failure is on rank 0. After a failure nothing has changed under the name of C, but what
 * was opened collectively stays until MPI ends. One failure has no status: where a rank fails while others may be
 * inside communication, the job has to end, and tsr_run_calls.give_up or tsr_abort ends it. */
#ifndef TSR_APP_LIBRARY_RUN_H
#define TSR_APP_LIBRARY_RUN_H

#include "app/library/listener.h"
#include "app/products/shapes.h"
#include "io/output/output.h"
#include "io/record/trace_sink.h"
#include "kernels/gemm/gemm.h"
#include "mpi/distribute/deal.h"
#include "mpi/ranks/world.h"
#include "mpi/schedule/schedule.h"

/* What is multiplied: alpha·op(A)·op(B) + beta·C0. */
typedef struct {
    tsr_matrix_name a, b, c0; /* c0 counts where beta is not 0 */
    /* Matrices in the ranks' memory in place of those names, and in place of a target's: NULL: the named one. As
     * `order` has them stored: row after row, or with TSR_ORDER_COL the transpose of what the caller sees. The arrays
     * belong to the caller; A's, B's and C0's stay as they are. C has the type of its memory, and holds anything
     * after a failure; nothing is published. Where beta is not 0 and C0 has neither memory nor a name, it is what C
     * holds. */
    const tsr_distributed *memory_a, *memory_b, *memory_c0, *memory_c;
    bool transpose_a, transpose_b;
    bool conjugate_a, conjugate_b; /* counts for complex matrices */
    tsr_complex alpha, beta;       /* alpha 0 reads neither A nor B, beta 0 never reads C0 */
    tsr_order order;               /* how the caller sees all of these files, and C */
    bool has_type;                 /* else C has the type that the product is computed in */
    tsr_dtype type;                /* of C */
    bool real_part;                /* of a complex product, where C is real */
    bool gram;                     /* B is A, the other way round, and C a Gram matrix; else it is found out */
    tsr_triangle triangle;         /* of a Gram matrix, as the caller sees it; the rest is zeros */
} tsr_run_product;

/* Where C goes, and how its file holds it. */
typedef struct {
    tsr_matrix_name name;
    bool force;                     /* replace C where it exists */
    int64_t chunk_rows, chunk_cols; /* of C as the caller sees it; 0, 0: contiguous, TSR_CHUNK_AUTO: chosen */
    bool shuffle;
    tsr_compress compress;
    bool checksum;   /* of each chunk */
    bool digest;     /* of C, in the record (io/digest/digest.h) */
    bool attributes; /* those of A go with C */
    /* What is whole of C stays when the run ends early, and a later run with the same product goes on behind it
     * (io/output/resume/resume.h). */
    bool resume;
} tsr_run_target;

/* With what: each is chosen unless given. */
typedef struct {
    const char *device;               /* "auto", "cpu" or "cuda"; not owned, as the next two */
    const char *kernel;               /* a name, or "auto" */
    const char *transport;            /* a name, or "auto" */
    tsr_accuracy accuracy;            /* the most that "auto" may lose */
    int grid[3];                      /* ranks over m, n, k; 0, 0, 0: auto */
    int64_t panel;                    /* k of one step; 0: auto */
    const tsr_schedule_ops *schedule; /* NULL: auto */
    bool check;                       /* products on the device (kernels/check) */
    bool healthy;                     /* a GPU whose own readings speak against it is an error, else a warning */
    bool reproducible;                /* the kernel's sums are, and the plan keeps to its blocks and ranges */
} tsr_run_engine;

/* Bytes, or where these are 0 a share of what is free. */
typedef struct {
    size_t bytes;
    double percent;
} tsr_memory_limit;

/* What a rank may take. */
typedef struct {
    tsr_memory_limit memory, host_memory; /* of the device, of the host */
    int threads;                          /* at once, for any of its work; 0: as many as it has cores */
    int io_threads;                       /* that read or write at once; 0: auto */
    /* The job ends with TSR_ERR_STALLED when it stands still for so many seconds, and for 15 times as many where it
     * waits for a file (mpi/watch/judge.h); 0: never. Unless has_stall it is chosen. */
    double stall_seconds;
    bool has_stall;
} tsr_run_limits;

typedef struct {
    tsr_run_product product;
    tsr_run_target target;
    tsr_run_engine engine;
    tsr_run_limits limits;
    tsr_io_mode io;
    /* Below which folder files may be read that inputs name (tsr_describer.external): NULL none, "" the inputs' own. */
    const char *external; /* not owned */
    int trials;           /* random vectors that C is checked with before it gets its name; 0: no check */
    const char *trace;    /* Chrome trace JSON goes to this file; NULL: none; not owned, as the next two */
    const char *command;  /* what the record and the file's history call this run */
    const char *started;  /* when it began, ISO 8601, for the record */
} tsr_run_options;

struct tsr_run;

/* The caller's functions, any of which may be NULL; called by the thread that runs unless said otherwise. */
typedef struct {
    void *context;                                   /* handed to each; not owned */
    tsr_listener progress;                           /* rank 0 and others alike: "multiply", "place chunks", "verify" */
    void (*stage)(void *context, const char *stage); /* "multiply", "check", "publish", ...: static text */
    /* This share of this rank's products is made. Any thread; after the last of them once more, with 1. */
    void (*multiplied)(void *context, double share);
    /* Whether this rank was asked to stop: the run ends with TSR_ERR_STOPPED on every rank, soon, and nothing is
     * published. Any thread, often. */
    bool (*stopped)(void *context);
    void (*note)(void *context, const char *text);                   /* rank 0: why C has the type it has */
    tsr_status (*planned)(void *context, const struct tsr_run *run); /* tsr_run_plan's result (run_state.h) */
    /* C's temporary file exists: who ends this process by other ways than a status removes it (tsr_output_discard),
     * unless a later run is to go on with it. On rank 0 in another thread. */
    void (*output_made)(void *context, const tsr_output *output);
    /* This rank fails while others are inside communication, or finds that the job stands still: any thread. First
     * `failing`; then the temporary file is removed, by
     * this rank where `removed`; then `give_up`, which may end the job. Where it returns, tsr_abort ends the job. */
    void (*failing)(void *context);
    void (*give_up)(void *context, tsr_status status, bool removed);
    /* The steps of all ranks, on rank 0 before `published`; the same functions on every rank, or none. Where memory to
     * keep them is missing, it hears of none, and a warning says so. */
    tsr_trace_sink steps;
    /* Every rank: C was there, made by an earlier run of the same settings (target.resume). The run ends well. */
    void (*complete)(void *context, const char *text);
    /* Rank 0: C has its name. The record lives until this returns; a failure is the run's. */
    tsr_status (*published)(void *context, const tsr_run_record *record, const tsr_output_spec *spec,
                            const tsr_output *output);
} tsr_run_calls;

/* Multiplies. TSR_ERR_CHECK where the check finds the product wrong: nothing is published then. */
tsr_status tsr_run_multiply(const tsr_world *world, const tsr_run_options *options, const tsr_run_calls *calls);
/* As far as `planned`: describes the files and opens the device, and reads and writes no data. */
tsr_status tsr_run_plan(const tsr_world *world, const tsr_run_options *options, const tsr_run_calls *calls);

/* What the product is, as the caller sees it. */
typedef struct {
    tsr_dtype dtype;
    int64_t rows, cols; /* of each matrix; 1 where a vector drops that side */
    int stack_dimensions;
    int64_t stack[TSR_LEADS_MAX];
    int dimensions; /* of the array that numpy.matmul makes */
} tsr_run_shape;
/* Looks into the files no further than that, and at no target. */
tsr_status tsr_run_find_shape(const tsr_world *world, const tsr_run_options *options, const tsr_run_calls *calls,
                              tsr_run_shape *shape);

#endif
