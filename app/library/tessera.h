/* libtessera: products of large matrices that lie in files, on the ranks of an MPI communicator.
 *
 *     tessera_context *tessera;
 *     tessera_open(MPI_COMM_WORLD, NULL, &tessera);
 *     if (tessera_multiply(tessera, "A.h5:/A", "B.h5:/B", "C.h5:/C", NULL, NULL) != 0) puts(tessera_message());
 *     tessera_close(tessera);
 *
 * MPI       The caller has started MPI, with MPI_THREAD_SERIALIZED at least; MPI_THREAD_MULTIPLE is better. Functions
 *           that say collective are called by all ranks of the context's communicator, with the same arguments, and
 *           return the same status on all of them. They communicate on a copy of that communicator.
 * Errors    Functions return a status: TESSERA_OK, which is 0, or one of the others. tessera_message() says why.
 *           Nothing is printed, no signal is handled, and the process never ends. After a failure nothing has changed
 *           under the name of C, unless the message says that C is in place: then a trace or a report is missing.
 *           The one exception: where a rank fails while others are inside communication, such as when a disk fails in
 *           the middle of a product, no status can reach the others. Then that rank calls the context's `abort_job`.
 *           Without one it writes the message to standard error and calls MPI_Abort.
 * Threads   One call at a time in a process: another is refused on its rank alone. tessera_cancel, tessera_message, and
 *           what only reads a record may be called by any thread. A call works in threads of its own, in which the
 *           caller's signal handlers do not run, and waits. These run on the cores that the calling thread may use,
 *           unless Open MPI's mpirun bound the rank by itself: then on the rank's share of the job's, as docs/usage.md
 *           says. The caller's threads stay where they are. HDF5 is used meanwhile: where the caller uses the same
 *           library in other threads, that has to be a thread-safe one.
 * Ownership Handles that a function hands out are the caller's, who frees them. Texts that go in are not kept after the
 *           call. Texts that come out live as long as their handle; tessera_message() until the thread's next call.
 * ABI       Structs begin with their size, and fields are only added at their ends: what was compiled with an older
 *           header works with a newer library. A newer struct works with an older library as long as what that does
 *           not know is 0. Statuses keep their numbers.
 *
 * Files are looked into by the program tessera-describe: it is found beside the library, in ../bin of the library's
 * folder, beside the program, or where TESSERA_DESCRIBE says. It is started by posix_spawn, never by fork, when it is
 * first wanted, and ends with the context. */
#ifndef TESSERA_H
#define TESSERA_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TESSERA_API __attribute__((visibility("default")))
#else
#define TESSERA_API
#endif

/* ---- versions and errors --------------------------------------------------------------------- */

/* "0.2.0", of the library that runs. Local. */
TESSERA_API const char *tessera_version(void);

enum {
    TESSERA_OK = 0,
    TESSERA_FAILURE = 1,
    TESSERA_ERR_USAGE = 2, /* a wrong argument or option */
    TESSERA_ERR_NOT_FOUND = 3,
    TESSERA_ERR_EXISTS = 4,
    TESSERA_ERR_FORMAT = 5,
    TESSERA_ERR_SHAPE = 6,
    TESSERA_ERR_IO = 7,
    TESSERA_ERR_SPACE = 8,
    TESSERA_ERR_MEMORY = 9,
    TESSERA_ERR_LIMIT = 10,
    TESSERA_ERR_DEVICE = 11,
    TESSERA_ERR_UNSUPPORTED = 12,
    TESSERA_ERR_MPI = 13,
    TESSERA_ERR_CHECK = 14,   /* the product failed its check */
    TESSERA_ERR_STALLED = 15, /* the job stands still; the abort function hears of it */
    TESSERA_ERR_STOPPED = 16  /* cancelled */
};

/* What a status means, a few words. Static, never NULL. Local. */
TESSERA_API const char *tessera_status_text(int status);
/* What went wrong in this thread's last call, one line: what, values, where, what to do. "" where nothing did. It names
 * options as the program writes them: --real-part is real_part. Local. */
TESSERA_API const char *tessera_message(void);

/* ---- context --------------------------------------------------------------------------------- */

typedef struct tessera_context tessera_context;

typedef struct {
    size_t size; /* sizeof(tessera_open_options) */
    /* Ends the job, because this rank failed while others are inside communication: `exit_code` is what the program
     * tessera would end with. It does not return; if it does, MPI_Abort is called. Any thread. NULL: the message goes
     * to standard error, and MPI_Abort is called. */
    void (*abort_job)(void *abort_context, int exit_code, const char *message);
    void *abort_context;  /* not owned */
    const char *describe; /* the program tessera-describe; NULL: it is looked for */
    /* Folder from which HDF5 may load plugins of filters that Tessera lacks; NULL: that of HDF5_PLUGIN_PATH, if set.
     * It counts for the process, in which this variable is set to it, and from the first context on. */
    const char *plugins;
} tessera_open_options;

/* Collective over `comm`, which stays the caller's. `options` may be NULL. *context is NULL after a failure. Where MPI
 * failed on this rank alone (TESSERA_ERR_MPI) others may wait for it: end the job. Later calls do that themselves. */
TESSERA_API int tessera_open(MPI_Comm comm, const tessera_open_options *options, tessera_context **context);
/* The same for a communicator of Fortran (MPI_Comm_c2f, mpi4py's py2f). */
TESSERA_API int tessera_open_fortran(int comm, const tessera_open_options *options, tessera_context **context);
/* Collective, before MPI_Finalize. NULL is fine. */
TESSERA_API void tessera_close(tessera_context *context);
/* Cancels the call that is under way on this context, on all of its ranks where MPI grants MPI_THREAD_MULTIPLE; else
 * every rank has to call it. The call returns TESSERA_ERR_STOPPED soon, also while it checks the product; C is not
 * published. Without a call under way it does nothing. Any thread, and safe in a signal handler. Local. */
TESSERA_API void tessera_cancel(tessera_context *context);

/* ---- multiplying files ------------------------------------------------------------------------ */

/* How far a call is. */
typedef struct {
    size_t size;        /* sizeof(tessera_progress) of the library */
    const char *stage;  /* "start-up", "multiply", "place chunks", "verify": static text */
    double done, total; /* in units; 0, 0 where that is not known */
    const char *unit;   /* "FLOP" or "B", static text; "" where nothing is counted */
    double seconds;     /* since the call began */
} tessera_progress;

/* Of one product. All zeros but for `size` and `alpha` are the defaults: tessera_multiply_defaults makes them. A text
 * that is NULL, and a number that is 0, stand for the default. Values are written as the program's options are
 * (tessera multiply --help). */
typedef struct {
    size_t size; /* sizeof(tessera_multiply_options) */

    /* C = alpha op(A) op(B) + beta C0 */
    double alpha[2];      /* real and imaginary part */
    double beta[2];       /* counts with has_beta */
    const char *add;      /* C0 in a file; without has_beta, beta is 1; NULL: none, or add_matrix */
    const char *type;     /* of C: "f32", "c128", ...; NULL: that in which it is computed */
    const char *order;    /* "row", or "col" as MATLAB, Fortran and Julia see files */
    const char *triangle; /* of a symmetric C: "full", "lower", "upper" */
    int has_beta;
    int transpose_a, transpose_b, conjugate_a, conjugate_b; /* flags: 0 or 1, as those below */
    int gram;                                               /* B is A, the other way round: b is NULL */
    int real_part;                                          /* of a complex product */

    /* How C is stored */
    int force;      /* replace C where it exists */
    int attributes; /* C gets those of A */
    int shuffle;
    const char *chunk;    /* "1000x1000", "auto"; NULL: contiguous */
    const char *compress; /* "gzip:4", "zstd", ...; NULL: not */

    /* How it runs */
    const char *device;      /* "auto", "cpu", "cuda" */
    const char *kernel;      /* a name, "auto" */
    const char *accuracy;    /* what "auto" may lose: "ieee", "fast", "tf32", "bf16" */
    const char *transport;   /* a name, "auto" */
    const char *schedule;    /* a name, "auto" */
    const char *grid;        /* "2x2", "2x2x1", "auto" */
    int64_t panel;           /* k of one step; 0: chosen */
    const char *memory;      /* of the device, a rank: "8G", "90%" */
    const char *host_memory; /* "8G", "80%" */
    int threads;             /* of a rank at once, for any of its work; 0: as many as it has cores */
    int io_threads;          /* that read or write at once; 0: chosen */
    const char *io;          /* "auto", "direct", "hdf5", "mpio" */
    const char *external; /* folder of files that inputs name (external links ...); "": their own; NULL: none is read */

    /* What it checks, says and leaves behind */
    int trials; /* random vectors that C is checked with before it gets its name; 0: no check */
    int has_stall;
    double stall_seconds; /* counts with has_stall: a run that stands still for so long ends; 0: never */
    const char *log;      /* JSON of the record goes to this file, which says how the run stands meanwhile */
    const char *trace;    /* Chrome trace JSON goes to this file */
    const char *command;  /* what the record calls this run; NULL: what was asked for, in a line */
    /* Called by the thread that called, ten times a second about, on every rank. Another value than 0 cancels. It may
     * not call MPI unless that grants MPI_THREAD_MULTIPLE. NULL: nobody asks. */
    int (*progress)(void *progress_context, const tessera_progress *progress);
    void *progress_context; /* not owned */
    const char *report;     /* the page of the run goes to this file: HTML with its timeline, as of tessera report */

    /* What is whole of C stays where the run is cancelled, fails or is killed, and a later call with the same matrices
     * and options goes on behind it, on any number of ranks. Where C is whole that call does nothing, well, and *record
     * is NULL. Waits for C's bytes to be on stable storage every few seconds. */
    int resume;

    /* "device": products are checked where they are made, and what is wrong is made again, once; "files": besides, C as
     * it was written against A and B, as with trials (20 unless given); "off": neither, unless trials ask for it. NULL:
     * "device". A product that comes out wrong twice is TESSERA_ERR_CHECK. */
    const char *check;
    int checksum; /* fletcher32 with each chunk of C, which needs `chunk` or `compress` */
    int digest;   /* of C, into the record */
    int healthy;  /* a GPU that reports errors of its memory or is throttled: a failure, where it else is a warning */

    /* C has the same bytes on any number of ranks, with any grid, panel and memory, on GPUs and the CPU: by the kernel
     * "exact". With another `kernel` by that one, on devices of one kind, where it can. Of files, `digest` is on. */
    int reproducible;

    /* C0 in memory, in place of `add`; NULL: none. It stays as it is, and has no element in common with C. */
    const struct tessera_matrix *add_matrix; /* not owned */
} tessera_multiply_options;

/* The defaults, of the caller's size. */
static inline tessera_multiply_options tessera_multiply_defaults(void) {
    tessera_multiply_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.alpha[0] = 1;
    return options;
}

/* What a product left behind: the same on every rank. */
typedef struct tessera_record tessera_record;

/* Collective. Multiplies the matrices named `a` and `b` into `c`: "file.h5:/path", "file.h5:/path[0:10,5]",
 * "file.npy", "file.bin:f32:1000x2000", and all that the program takes. `options` NULL: the defaults. `record` may be
 * NULL; *record is NULL after a failure, and where `resume` finds C whole. TESSERA_ERR_CHECK where the check finds C
 * wrong: nothing is published then. */
TESSERA_API int tessera_multiply(tessera_context *context, const char *a, const char *b, const char *c,
                                 const tessera_multiply_options *options, tessera_record **record);
/* Collective. How that would run: kernel, grid, memory, steps, predicted seconds, as tessera multiply --dry-run prints
 * it. Reads and writes no data. *text is on rank 0, freed by tessera_free; NULL elsewhere and after a failure. */
TESSERA_API int tessera_plan(tessera_context *context, const char *a, const char *b, const char *c,
                             const tessera_multiply_options *options, char **text);
TESSERA_API void tessera_free(char *text);

/* The record as JSON, one object as --log writes it; docs/record.md has its members. Lives as long as the record.
 * Local. */
TESSERA_API const char *tessera_record_json(const tessera_record *record);
/* A number of it, by the name of its member: "seconds", "gflops", "m", "n", "k", "rank_count", "grid_m", "panel" ...
 * TESSERA_ERR_NOT_FOUND where there is none of that name. Local. */
TESSERA_API int tessera_record_number(const tessera_record *record, const char *name, double *value);
/* Warnings of the run, a line each; "" without one. Lives as long as the record. Local. */
TESSERA_API const char *tessera_record_warnings(const tessera_record *record);
/* NULL is fine. Local. */
TESSERA_API void tessera_record_free(tessera_record *record);

/* ---- matrices in memory ----------------------------------------------------------------------- */

/* A matrix in the memory of a context's ranks, the same on each of them but for `data` and `ld`: shared, or dealt out
 * in blocks that go round to a grid of ranks, as ScaLAPACK deals them. With 0 in all but size, type, data, rows and
 * cols each rank has a block of rows. Arrays have row after row; with the option `order` "col" column after column. */
typedef struct tessera_matrix {
    size_t size; /* sizeof(tessera_matrix) */
    /* Of an element: "f32", "f64", "c64", "c128", "f16" or "bf16"; of A and B also "i8" to "i64", "u8" to "u64" and
     * "bool". There ">f64" is big-endian, and "<f64" little-endian; else bytes have this machine's order. */
    const char *type;
    void *data;                     /* this rank's array; of a shared matrix, all of it */
    int64_t rows, cols;             /* of the whole matrix */
    int64_t ld;                     /* elements from row to row of the array (from column to column); 0: no gap */
    int64_t block_rows, block_cols; /* 0: one block for each rank of the grid */
    int64_t part_row, part_col;     /* where the part begins that is meant */
    int64_t part_rows, part_cols;   /* and its sides; 0, 0: to the end */
    int grid_rows, grid_cols;       /* 0, 0: all ranks below one another */
    int first_row, first_col;       /* whose the first block is, in the grid */
    int ranks_by_columns;           /* rank = row + col grid_rows; else row grid_cols + col. Others have nothing */
    int shared;                     /* each rank reaches all of it, as in an MPI window of one node */

    /* A stack of matrices, `rows` x `cols` each, in this rank's array one behind the other without another gap than
     * those of `ld`. They are dealt out as one matrix that has all of their rows (with `order` "col": columns); with
     * block_rows 0 each rank has whole matrices. A part cannot be meant. */
    int stack_dimensions;
    const int64_t *stack; /* how many along each of these dimensions, the last of which changes first */
    /* A matrix in a file in place of all of this but `size`, as tessera_multiply takes it; NULL: it is in memory */
    const char *name;
    int vector; /* one row or column, which C's file or C0's lacks as numpy.matmul says: of A and B, and no stack */
} tessera_matrix;

/* Collective. C = alpha op(A) op(B) + beta C, each of them in memory or in a file. Stacks are multiplied as
 * numpy.matmul does it: a dimension of 1, or one that is missing, goes with any. `b` is NULL with the option gram.
 *
 * Arrays of A and B stay as they are; C's has no element in common with them, and holds anything after a failure. Where
 * C is in memory options of its file are refused, and C0 is what C holds unless `add` or `add_matrix` says where it is.
 * A vector makes a row or a column of C's array. `resume` wants all in files. With `trials`
 * TESSERA_ERR_CHECK says that C is wrong. Blocks pass through one exchange before and one after the product, which the
 * record counts (redistribute_seconds); shared matrices, and blocks that are where they are wanted, do not. */
TESSERA_API int tessera_multiply_matrices(tessera_context *context, const tessera_matrix *a, const tessera_matrix *b,
                                          const tessera_matrix *c, const tessera_multiply_options *options,
                                          tessera_record **record);

/* Collective. How that would run, as tessera_plan says it of files, with the bytes that blocks pass through exchange
 * (redistribute). Reads and writes no element. */
TESSERA_API int tessera_plan_matrices(tessera_context *context, const tessera_matrix *a, const tessera_matrix *b,
                                      const tessera_matrix *c, const tessera_multiply_options *options, char **text);

/* Collective. What C will be, so that there can be an array for it: sets type, rows, cols and the stack of *c, whose
 * size is set; the sizes of the stack live until the context's next call. *dimensions, unless NULL, is of the array of
 * numpy.matmul: for each vector one less than *c has. Reads no element; options of C's file are of no use. */
TESSERA_API int tessera_describe_product(tessera_context *context, const tessera_matrix *a, const tessera_matrix *b,
                                         const tessera_multiply_options *options, tessera_matrix *c, int *dimensions);

/* Collective. Memory of `bytes` zeros for matrices, which all ranks reach, as `shared` says. The first product on a GPU
 * that reads or writes it page-locks it, once: from then on the GPU copies from and to it at once. What others have
 * page-locked is copied so, too, where all ranks share it, or there is one rank. Other arrays go through buffers, or,
 * shared ones, are page-locked for each call. TESSERA_ERR_UNSUPPORTED where the ranks are on several nodes. *data is
 * NULL after a failure. */
TESSERA_API int tessera_allocate(tessera_context *context, size_t bytes, void **data);
/* Local: memory of tessera_allocate, on each rank; not while a call reads or writes it. NULL is fine. tessera_close
 * releases what is left. */
TESSERA_API void tessera_release(tessera_context *context, void *data);
/* Local: hands back memory that stays from one call to the next, so that the next is as fast as the last: up to an
 * eighth of a GPU's own, and 1 GiB of the host's, page-locked. The next call makes it anew. NULL is fine. */
TESSERA_API void tessera_trim(tessera_context *context);

/* ---- matrices dealt out to ranks as ScaLAPACK deals them ---------------------------------------- */

/* ScaLAPACK's p?gemm with its arguments, without a context, on the ranks and GPUs that Tessera finds: sub(C) = alpha
 * op(sub(A)) op(sub(B)) + beta sub(C). BLACS is looked for in the process (dlsym), not linked. The grid holds all ranks
 * of MPI_COMM_WORLD, and MPI was started with MPI_THREAD_SERIALIZED at least (MPI_Init_thread, before BLACS). Matrices
 * stay the caller's. Collective over the grid; one call at a time. */

/* Elements: float, double, and pairs of them. alpha and beta have the type of an element. Also as tessera_pdgemm_, for
 * Fortran. */
#define TESSERA_PBLAS_ARGUMENTS                                                                                        \
    const char *transa, const char *transb, const int *m, const int *n, const int *k, const void *alpha,               \
        const void *a, const int *ia, const int *ja, const int *desca, const void *b, const int *ib, const int *jb,    \
        const int *descb, const void *beta, void *c, const int *ic, const int *jc, const int *descc
TESSERA_API void tessera_psgemm(TESSERA_PBLAS_ARGUMENTS);
TESSERA_API void tessera_pdgemm(TESSERA_PBLAS_ARGUMENTS);
TESSERA_API void tessera_pcgemm(TESSERA_PBLAS_ARGUMENTS);
TESSERA_API void tessera_pzgemm(TESSERA_PBLAS_ARGUMENTS);
TESSERA_API void tessera_psgemm_(TESSERA_PBLAS_ARGUMENTS);
TESSERA_API void tessera_pdgemm_(TESSERA_PBLAS_ARGUMENTS);
TESSERA_API void tessera_pcgemm_(TESSERA_PBLAS_ARGUMENTS);
TESSERA_API void tessera_pzgemm_(TESSERA_PBLAS_ARGUMENTS);

/* An error ends the job with its message, as ScaLAPACK's does, unless a handler is set: then it gets info and message,
 * and the call returns. `info` is ScaLAPACK's: -i for argument i, -(100 i + j) for entry j of a descriptor; above 0 it
 * is the status of a run that failed, after which C holds anything. Local; NULL: the job ends again. */
TESSERA_API void tessera_pblas_on_error(void (*handler)(int info, const char *message));

#ifdef __cplusplus
}
#endif
#endif
