/* The kinds of stores that matrices are named in: HDF5 files and what else is registered in stores.c. Whoever opens,
 * describes or writes a named matrix goes through here and need not know its kind. */
#ifndef TSR_IO_STORES_H
#define TSR_IO_STORES_H

#include "io/store.h"

struct tsr_describer;
struct tsr_output_ops;

/* A kind of store. Functions that may be NULL say what holds then. */
typedef struct {
    const char *name; /* "HDF5" */
    /* How its matrices are named, for messages and help. NULL: they have no names. */
    const char *forms;
    bool several; /* a file may hold more than one matrix, and records of runs: describe.h lists them */
    bool carries; /* its files hold scales, labels and attributes of matrices (describe/carried.h) */
    /* Whether `text`, a name without its slice, is one of this kind; sets file and path of the name. NULL: what no
     * other kind claims. Local, pure but for a look at the file. */
    bool (*claims)(const char *text, tsr_matrix_name *name);
    /* Whether the file is in Fortran order, and described only where name->columns_first is set. False where it cannot
     * be read: describing it says why. NULL: it never is. */
    bool (*columns_first)(const tsr_matrix_name *name);
    /* As tsr_store_describe. */
    tsr_status (*describe)(struct tsr_describer *describer, const tsr_matrix_name *name, tsr_store_desc *desc);
    /* How it is stored: "chunked 64 x 64  gzip(4)". Returns text. */
    const char *(*storage)(const tsr_store_desc *desc, char *text, size_t chars);
    /* As tsr_store_open; `write`: one of our temporary files, for reading and writing. */
    tsr_status (*open)(const tsr_store_desc *desc, tsr_io_mode mode, const void *comm, bool write,
                       tsr_io_mode *mode_used, tsr_store **store);
    /* As their namesakes below. NULL: the element of the description in any mode; nothing. */
    tsr_element (*element)(const tsr_store_desc *desc, tsr_io_mode mode);
    size_t (*least_bytes)(const tsr_store_desc *desc, tsr_io_mode mode);
    tsr_status (*too_large)(const tsr_store_desc *desc, size_t need, size_t have, const char *advice);
    /* Its library: started before MPI; its name and version. NULL: it has none. */
    void (*start)(void);
    const char *(*version)(char *text, size_t chars);
    const struct tsr_output_ops *output; /* how one is made (io/output/output_private.h); NULL: it is only read */
} tsr_store_kind;

/* The kind of a described matrix or a parsed name. */
const tsr_store_kind *tsr_store_kind_of(const tsr_matrix_name *name);
/* Sets file, path and kind of the name from a text without a slice where a kind claims it; else it is left to the kind
 * that claims none. */
bool tsr_store_claimed(const char *text, tsr_matrix_name *name);
/* "write file.h5:/path, ..." of all kinds. Returns text. */
const char *tsr_store_forms(char *text, size_t chars);

/* Local, one rank (no MPI needed). Opens the file, finds the matrix, refuses what cannot be multiplied with what was
 * found and what to do, checks that the raw bytes are really in the file, resolves the slice. `describer`: looks into
 * files that could crash a library (describe.h); NULL: this process does. */
tsr_status tsr_store_describe(struct tsr_describer *describer, const tsr_matrix_name *name, tsr_store_desc *desc);

/* A matrix in memory, or a stack of them one below the other, which messages and records call `text`: in a table of
 * kinds for those who ask a description for its kind. Whoever has the memory opens it (tsr_memory_open); by its name it
 * is not described, opened or made. */
extern const tsr_store_kind tsr_memory_kind;
tsr_status tsr_memory_describe(const char *text, const tsr_shape *shape, tsr_element element, tsr_store_desc *desc);

/* Opens a described matrix for reading on this rank. `comm` is an MPI_Comm * for TSR_IO_MPIO (then Collective over
 * it), NULL otherwise. The mode in use is returned in *mode_used when not NULL. The store's desc.element is this
 * machine's byte order except on the direct path: ask the store, not the description it was opened with. Closing a
 * TSR_IO_MPIO store is Collective too. */
tsr_status tsr_store_open(const tsr_store_desc *desc, tsr_io_mode mode, const void *comm, tsr_io_mode *mode_used,
                          tsr_store **store);
/* The element a store opened with this mode delivers: known before it is open, and the same on every rank. */
tsr_element tsr_store_element(const tsr_store_desc *desc, tsr_io_mode mode);
/* Whether such a store does no more than copy rows from memory, of a file or an array. */
bool tsr_store_copies(const tsr_store_desc *desc, tsr_io_mode mode);
/* How a described matrix is stored, in words. Returns text. */
const char *tsr_store_storage(const tsr_store_desc *desc, char *text, size_t chars);

/* Memory that a store opened with this mode takes at least, whatever is read: for one chunk being decoded. Opening
 * fails with TSR_ERR_LIMIT where desc->cache_bytes is less. */
size_t tsr_store_least_bytes(const tsr_store_desc *desc, tsr_io_mode mode);
/* That failure: `have` is less than `need`; `advice` says what else helps than smaller chunks. */
tsr_status tsr_store_too_large(const tsr_store_desc *desc, size_t need, size_t have, const char *advice);
/* Lowers cache_bytes to `have`, but not below that least. */
void tsr_store_lower(tsr_store_desc *desc, tsr_io_mode mode, size_t have);

/* Names the folder where HDF5 finds plugins, in the environment of this process: before tsr_stores_start, and before
 * the helper is started that looks into files. */
void tsr_stores_plugins(const char *folder);
/* Starts the libraries of all kinds. Before MPI starts. */
void tsr_stores_start(void);
/* Name and version of each of these libraries: "HDF5 1.10.8 (parallel)". Returns text. */
const char *tsr_stores_version(char *text, size_t chars);

#endif
