/* An output dataset that appears under its name only when it is whole. Rank 0 creates it in a temporary file beside
 * the target (a copy of the target when that holds other things), closes the file, takes the disk's room for it and
 * hands the offset round; ranks write raw bytes (chunks: output_chunks.h); rank 0 writes the record, syncs and
 * renames. A failure at any point leaves the target as it was. */
#ifndef TSR_IO_OUTPUT_OUTPUT_H
#define TSR_IO_OUTPUT_OUTPUT_H

#include "io/files/attributes.h"
#include "io/filters/filter.h"
#include "io/record/run_record.h"
#include "io/store.h"
#include "io/text/warnings.h"

/* A matrix that the run reads. Its file gets the output only under a path that was named, and the output does not take
 * its place. */
typedef struct {
    const char *role;             /* "A": how messages call it */
    const tsr_matrix_name *asked; /* as a person named it: path "" where the file's only matrix was meant */
    const tsr_matrix_name *found; /* as it was described: the dataset's path, sliced or not */
    bool replaceable;             /* C0: the output may replace it */
    bool part; /* of the dataset: the rest is not read, and would be lost where the output replaces it */
    const struct tsr_pieces *pieces; /* where its elements lie, if in several places: no output goes into those files */
} tsr_output_source;

#define TSR_SOURCES_MAX 3

struct tsr_describer;
struct tsr_carried;

typedef struct {
    tsr_matrix_name name; /* path "" means /C */
    int64_t rows, cols;   /* of each matrix */
    /* It is a stack of matrices, row by row, where these are more than 0; its shape lacks so many of a matrix's own two
     * dimensions, which are 1 then: 1 leaves a vector, 2 a number. */
    int stack_dimensions, dropped;
    int64_t stack[TSR_LEADS_MAX];
    bool joined;       /* contiguous: it is described and written as one matrix of all rows */
    tsr_dtype dtype;   /* of TSR_USE_RESULT or TSR_USE_DATASET */
    tsr_fields fields; /* of complex elements in HDF5 */
    bool force;        /* replace an existing dataset */
    /* 0, 0: contiguous; TSR_CHUNK_AUTO: see tsr_output_choose_chunks, which must have been called */
    int64_t chunk_rows, chunk_cols;
    bool shuffle;          /* the chunks, before what follows */
    tsr_compress compress; /* of chunks */
    bool checksum;         /* of each chunk as it is stored (fletcher32) */
    size_t encode_bytes;   /* memory a rank may take to encode chunks; what one chunk takes is taken anyway */
    tsr_output_source sources[TSR_SOURCES_MAX]; /* nothing in them is owned */
    int source_count;
    /* What describes the dimensions of its stack, then its rows and its columns, stack_dimensions + 2: what cannot go
     * with it is noted there. NULL: nothing; not owned. */
    struct tsr_carried *carried;
    struct tsr_describer *describer; /* looks into an existing target (describe.h); NULL: this process; not owned */
} tsr_output_spec;

#define TSR_CHUNK_AUTO ((int64_t)-1)

/* What it is stored as, row by row, and how many matrices these are: INT64_MAX for more than 63 bits. */
tsr_shape tsr_output_shape(const tsr_output_spec *spec);
int64_t tsr_output_matrices(const tsr_output_spec *spec);

/* Plain memory: broadcast to every rank. */
typedef struct {
    tsr_store_desc desc;              /* desc.name.file is the temporary file; open it with tsr_output_open */
    char target[TSR_FILE_CHARS];      /* the file's name in the end */
    size_t encode_bytes;              /* as in the spec */
    bool in_memory;                   /* the file system keeps files in memory */
    char journal[TSR_FILE_CHARS + 8]; /* of what may be left unfinished (resume.h); "": it may not */
    /* Of rank 0 alone, between create and publish. The lock says that the temporary file's run is alive: a run that
     * is killed loses it, and the next create removes the file. It ends with publish or the process. */
    int lock_fd;
    bool target_existed;
    int64_t target_names;       /* hard links to the file that is replaced, 0 where there is none */
    char lost[TSR_LOST_CHARS];  /* what it has beside its content and cannot be kept (attributes.h) */
    int64_t target_identity[5]; /* device, inode, bytes, seconds and nanoseconds of the last change */
} tsr_output;

/* Local, rank 0. Refuses an existing dataset without force, one that is read or holds what is read, a missing,
 * read-only or full directory, a slice; removes what a killed earlier run left beside the target. */
tsr_status tsr_output_create(const tsr_output_spec *spec, tsr_output *output);
/* The two parts of tsr_output_create: the dataset without bytes of its own, and room on the disk for them, which
 * takes 0.1 s for each GB of a memory-backed file (`in_memory`) and may go on beside whoever writes them. Local,
 * rank 0; where the second fails, the output is still to be discarded. */
tsr_status tsr_output_begin(const tsr_output_spec *spec, tsr_output *output);
tsr_status tsr_output_allocate(const tsr_output *output);
/* Local, rank 0. A chunked output that was left unfinished: its temporary file as tsr_output_begin would make it, in
 * place. */
tsr_status tsr_output_begin_again(const tsr_output_spec *spec, tsr_output *output);
/* Local, once on rank 0: what the file that is replaced will have lost, that only one of its names is replaced, and
 * that a new file's name says something else than HDF5. */
void tsr_output_warn(const tsr_output *output, tsr_warnings *warnings);
/* The checks of tsr_output_create alone, changing nothing: for --dry-run and early refusal. *on_disk (may be NULL):
 * whether the target's file system is anything but memory. */
tsr_status tsr_output_check(const tsr_output_spec *spec, bool *on_disk);
/* Opens the temporary dataset on this rank for writing (and reading). As tsr_hdf5_open for mode and comm. Chunked
 * ones, whatever the mode: for writing whole chunks, by any thread, and not for reading (output_chunks.h);
 * TSR_ERR_SHAPE for a rectangle whose edges are neither on chunk lines nor the matrix's. */
tsr_status tsr_output_open(const tsr_output *output, tsr_io_mode mode, const void *comm, tsr_store **store);
/* Local, rank 0, after every rank synced and closed its store (and chunks were placed): writes record (may be NULL:
 * only history attributes) beside the dataset, marks it complete, syncs, renames onto the target, whose owner,
 * permissions and attributes stay as far as the system allows, and syncs the folder. On failure the target is
 * untouched and the temporary file is gone. */
tsr_status tsr_output_publish(const tsr_output *output, const tsr_run_record *record, const char *command);
/* Local. `status` was a failure: its message says what is in place, "the output is" say, before it says why. Where
 * somebody put that there already it stays as it is. Returns status. */
tsr_status tsr_output_in_place(tsr_status status, const char *what);
/* Removes the temporary file; any rank, any time. True where this call did: of ranks that do so together one. What may
 * be left unfinished stays. */
bool tsr_output_discard(const tsr_output *output);
/* The same of an output that will not be published, by who made it or took it over: gives up its lock, too. */
void tsr_output_leave(tsr_output *output);

#endif
