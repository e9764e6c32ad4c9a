/* Files of strangers are opened by a helper program, tessera-describe, which is installed beside tessera: a damaged or
 * hostile file can crash HDF5 or keep it busy for ever, and then that program ends and not the job. It says what a file
 * holds; its answers are checked like any other untrusted input (describe_wire.h). The job itself opens what was
 * described and found sound. Rank 0's; one thread at a time. */
#ifndef TSR_IO_DESCRIBE_DESCRIBE_H
#define TSR_IO_DESCRIBE_DESCRIBE_H

#include <sys/types.h>

#include "io/output/output.h"
#include "io/record/record_read.h"
#include "io/stores.h"

/* The helper while it runs: it answers one question after the other. All zeros: it does not run yet. */
typedef struct tsr_describer {
    pid_t pid;           /* 0: not started */
    int fd;              /* the connection to it */
    double most_seconds; /* until an answer is whole; 0: TSR_DESCRIBE_MOST_SECONDS */
    /* Other files that an input names (external links, virtual datasets, external storage) may be read below this
     * folder; "": below that of the input's own file; NULL: none may. Not owned. */
    const char *external;
    const char *program; /* its file; NULL: it is looked for (TESSERA_DESCRIBE, or beside us). Not owned */
} tsr_describer;

/* What may pass without a word of the helper, which speaks while it finds more; and what it may compute for an answer,
 * where no more is said. */
#define TSR_DESCRIBE_SECONDS 10.0
/* Whatever it says meanwhile. A million chunks stand in some 33,000 nodes of a B-tree, for each of which a slow disk
 * takes 0.1 s. */
#define TSR_DESCRIBE_MOST_SECONDS 3600.0

/* Starts the helper, so that it loads beside what else takes time; every question below starts it where it does not
 * run. TSR_ERR_IO with what to do when it is missing. */
tsr_status tsr_describer_start(tsr_describer *describer);
/* Ends it. Nothing to do for one that does not run. */
void tsr_describer_close(tsr_describer *describer);

/* The functions below ask about HDF5 files. They do what their namesakes in store_hdf5.h and record_read.h do, and fail
 * as they do. Besides, one line
 * says that HDF5 crashed on the file, took longer than TSR_DESCRIBE_SECONDS, or that the answer does not fit the file
 * (TSR_ERR_FORMAT); or that the helper is of another build, or lacks a library (TSR_FAILURE). `describer` NULL: in
 * this process, for tests of what is built on it. */
tsr_status tsr_describe(tsr_describer *describer, const tsr_matrix_name *name, tsr_store_desc *desc);
/* Where the elements of what is selected lie: sets desc->pieces, and what follows from them (tsr_pieces_sum_up). NULL
 * for what lies in one place. The caller leaves desc->pieces (tsr_pieces_leave). */
tsr_status tsr_describe_pieces(tsr_describer *describer, tsr_store_desc *desc);
/* Local, the same on every rank: on_disk and cache_bytes of a description with pieces. */
void tsr_pieces_sum_up(tsr_store_desc *desc);
/* Where the chunks of the described part are, for desc->index; *index NULL where that is not known: HDF5 decodes, or
 * there are more than TSR_CHUNK_INDEX_MAX. All but such many have been looked up by the helper then: what HDF5 reads of
 * them in the job it has found there. */
tsr_status tsr_describe_chunks(tsr_describer *describer, const tsr_store_desc *desc, tsr_chunk_index **index);
tsr_status tsr_describe_list(tsr_describer *describer, const char *file, tsr_list_sink sink, void *context);
tsr_status tsr_describe_runs(tsr_describer *describer, const char *file, void (*each)(void *context, const char *path),
                             void *context);
tsr_status tsr_describe_run(tsr_describer *describer, const char *file, const char *path, tsr_kept_record *record);

/* ---- for describe.c (describe_process.c) ----------------------------------------------------- */

struct tsr_wire;
/* The answer to a question about `file`, which may take so many seconds of computing; to be freed whatever comes. */
tsr_status tsr_describer_ask(tsr_describer *describer, const char *file, double seconds,
                             const struct tsr_wire *question, struct tsr_wire *answer);
/* How it went, as the helper says: its words, our exit codes. */
tsr_status tsr_describe_take_status(struct tsr_wire *answer);
/* Fails: the answer cannot be, as `what` says. The process is not asked again. */
tsr_status tsr_describer_distrust(tsr_describer *describer, const char *file, const char *what);

#endif
