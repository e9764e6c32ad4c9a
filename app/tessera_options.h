/* Options that several commands have, each declared once: a command's table has {.shared = &tsr_option_device, ...}. */
#ifndef TSR_APP_TESSERA_OPTIONS_H
#define TSR_APP_TESSERA_OPTIONS_H

#include "app/library/options/multiply_options.h"
#include "app/options.h"

/* Each with the type of its field, and the value that this has where the option is not given; without one it stays as
 * the caller set it. */
extern const tsr_option tsr_option_device;      /* const char *, "auto" */
extern const tsr_option tsr_option_accuracy;    /* tsr_accuracy */
extern const tsr_option tsr_option_kernel;      /* const char * */
extern const tsr_option tsr_option_transport;   /* const char *, "auto" */
extern const tsr_option tsr_option_schedule;    /* const tsr_schedule_ops * */
extern const tsr_option tsr_option_grid;        /* int[3] */
extern const tsr_option tsr_option_panel;       /* int64_t */
extern const tsr_option tsr_option_memory;      /* tsr_memory_limit, 90 % */
extern const tsr_option tsr_option_host_memory; /* tsr_memory_limit, 80 % */
extern const tsr_option tsr_option_threads;     /* int */
extern const tsr_option tsr_option_io;          /* tsr_io_mode */
extern const tsr_option tsr_option_plugins;     /* no field: app/main.c acts on it */
extern const tsr_option tsr_option_external;    /* const char *: NULL, "" or a folder (tsr_describer.external) */
extern const tsr_option tsr_option_order;       /* tsr_order */
extern const tsr_option tsr_option_adjoint_a;   /* bool */
extern const tsr_option tsr_option_adjoint_b;   /* bool */
extern const tsr_option tsr_option_conjugate_a; /* bool */
extern const tsr_option tsr_option_conjugate_b; /* bool */
extern const tsr_option tsr_option_transpose_a; /* bool */
extern const tsr_option tsr_option_transpose_b; /* bool */
extern const tsr_option tsr_option_triangle;    /* tsr_triangle, full */
extern const tsr_option tsr_option_alpha;       /* tsr_complex, 1 */
extern const tsr_option tsr_option_beta;        /* tsr_complex */
extern const tsr_option tsr_option_trials;      /* int, 20 */
extern const tsr_option tsr_option_seed;        /* int64_t, 0 */
extern const tsr_option tsr_option_force;       /* bool */
extern const tsr_option tsr_option_chunk;       /* tsr_run_target: chunk_rows and chunk_cols of it */
extern const tsr_option tsr_option_compress;    /* tsr_compress */
extern const tsr_option tsr_option_shuffle;     /* bool */
extern const tsr_option tsr_option_checksum;    /* bool */
extern const tsr_option tsr_option_progress;    /* tsr_progress_mode */
extern const tsr_option tsr_option_quiet;       /* bool */
extern const tsr_option tsr_option_ranks;       /* bool */
extern const tsr_option tsr_option_log;         /* const char *, a file */
extern const tsr_option tsr_option_trace;       /* const char *, a file */
extern const tsr_option tsr_option_json;        /* const char *, a file */
extern const tsr_option tsr_option_machine;     /* const char *, a file (mpi/plan/machine.h) */
/* Of what is measured or predicted without files. */
extern const tsr_option tsr_option_product;      /* tsr_product_shape */
extern const tsr_option tsr_option_operand_type; /* tsr_dtype: one that is multiplied, f32 */
extern const tsr_option tsr_option_distribution; /* tsr_fill_kind; not written unless it is given */
/* bool: the sums of C are defined whatever runs them (app/library/planning/reproducible.h) */
extern const tsr_option tsr_option_reproducible;

/* C (m × n) = A (m × k) B (k × n). */
typedef struct {
    int64_t m, n, k;
} tsr_product_shape;

#endif
