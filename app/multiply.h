/* One multiplication from files to file: describe, plan, execute, check, publish. */
#ifndef TSR_APP_MULTIPLY_H
#define TSR_APP_MULTIPLY_H

#include "app/options.h"
#include "app/progress.h"
#include "io/output.h"
#include "kernels/gemm.h"
#include "mpi/grid.h"

typedef struct {
    tsr_matrix_name a, b, c0, c;
    bool has_c0;
    bool transpose_a, transpose_b;
    double alpha, beta;
    bool has_type;              /* --type given */
    tsr_dtype type;
    tsr_order order;
    int64_t chunk_rows, chunk_cols; /* of C as one sees it; 0, 0: contiguous, TSR_CHUNK_AUTO: chosen */
    bool gzip, shuffle;
    int gzip_level;
    tsr_accuracy accuracy;      /* the most `auto` may lose */
    const char *kernel, *device, *transport; /* not owned */
    int grid[3];                /* 0, 0, 0: auto */
    int64_t panel;              /* 0: auto */
    size_t memory_bytes, host_memory_bytes; /* a rank; 0: by percent */
    double memory_percent, host_memory_percent;
    int threads;                /* the most of a rank at once, for any of its work; 0: as many as it has cores */
    int io_threads;             /* 0: auto */
    tsr_io_mode io;
    bool force, dry_run, verify;
    int64_t trials;
    const char *log;            /* JSON file, NULL: none */
    const char *trace;          /* Chrome trace JSON, NULL: none */
    tsr_progress_mode progress;
    bool quiet;                 /* no summary */
    bool ranks;                 /* the table of ranks, too */
    const char *command;        /* the command line, for the record */
} tsr_multiply_settings;

/* Collective. Prints the run's summary (or with dry_run the plan) on rank 0. TSR_ERR_CHECK when --verify finds the
 * product wrong: then nothing is published. */
tsr_status tsr_multiply(const tsr_world *world, const tsr_multiply_settings *settings);

#endif
