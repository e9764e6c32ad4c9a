/* A store: a matrix that can be described, and whose rectangles can be read or written. One table a kind of store.
 * A description is plain memory without pointers: rank 0 makes it, every rank gets a copy by broadcast. */
#ifndef TSR_IO_STORE_H
#define TSR_IO_STORE_H

#include "io/chunk_decode.h"
#include "io/name.h"
#include "kernels/base.h"
#include "kernels/fill.h"

typedef enum { TSR_STORE_HDF5, TSR_STORE_MEMORY, TSR_STORE_GENERATED } tsr_store_kind;

/* How bytes move. AUTO takes DIRECT where the layout allows it and HDF5 elsewhere. */
typedef enum {
    TSR_IO_AUTO,
    TSR_IO_DIRECT, /* pread/pwrite at the dataset's file offset; stored chunks, decoded here */
    TSR_IO_HDF5,   /* H5Dread/H5Dwrite, serial driver, each rank on its own */
    TSR_IO_MPIO    /* H5Dread/H5Dwrite through MPI-IO, independent transfers; needs a parallel HDF5 */
} tsr_io_mode;

tsr_status tsr_io_mode_parse(const char *name, tsr_io_mode *mode); /* lists names on error */
const char *tsr_io_mode_name(tsr_io_mode mode);

/* No single transfer is larger: independent MPI-IO over 2 GiB fails in HDF5 1.10 (HDFGroup/hdf5 549). */
#define TSR_TRANSFER_BYTES_MAX ((size_t)1 << 30)

typedef enum { TSR_LAYOUT_CONTIGUOUS, TSR_LAYOUT_CHUNKED, TSR_LAYOUT_COMPACT, TSR_LAYOUT_VIRTUAL } tsr_layout;

typedef struct {
    tsr_store_kind kind;
    tsr_matrix_name name;      /* as found: path filled in, slice resolved */
    int64_t rows, cols;        /* of the part selected; what multiply sees */
    int64_t row0, col0;        /* its first element in the dataset */
    int64_t dataset_rows, dataset_cols;
    tsr_element element;       /* how reads deliver elements (file order on the direct path); an open store's own desc holds for its mode */
    tsr_layout layout;
    int64_t chunk_rows, chunk_cols; /* 0 unless chunked */
    size_t cache_bytes;        /* that an open store takes to decode and keep chunks, 0 unless chunked; the opener may lower it */
    bool raw_chunks;           /* chunks can be decoded without HDF5, by `pipeline` */
    tsr_pipeline pipeline;
    char filters[96];          /* "shuffle gzip(4)", "" for none */
    int64_t offset;            /* of dataset element (0,0) in the file, bytes; -1 when there is no raw access */
    bool on_disk;              /* raw access: in a file system that is not memory */
    bool keep_cached;          /* raw access: read again soon, so through the page cache even where the disk alone were faster; the opener's choice */
    int64_t row_ahead_bytes;   /* raw access: of each row after the columns read, which are read next, ask this much with them; the opener's choice */
    bool standard;             /* element type is one read as it stands; false: HDF5 converts to `element` */
    char matlab_class[16];     /* MATLAB_class attribute, "" when absent */
    bool octave;               /* the value of an Octave variable: stored transposed, as MATLAB's are */
    char type_name[64];        /* as a person would say it: "big-endian f64" */
    /* generated */
    tsr_fill_kind fill;
    uint64_t seed;
    /* memory: every rank gives its own pointer at open */
} tsr_store_desc;

typedef struct tsr_store tsr_store;

typedef struct tsr_store_ops {
    const char *name;
    /* Reads rect (in the part selected) into to[r·ld + c], elements as desc.element says. Safe from several threads. */
    tsr_status (*read)(tsr_store *store, tsr_rect rect, void *to, int64_t ld);
    /* Writes rect from from[r·ld + c], elements as desc.element says. Rectangles of different callers do not overlap. */
    tsr_status (*write)(tsr_store *store, tsr_rect rect, const void *from, int64_t ld);
    tsr_status (*sync)(tsr_store *store); /* data on stable storage (fsync); part of a write */
    void (*close)(tsr_store *store);
    /* Where rect lies in this process's memory, pinned for the device in use, *ld elements from row to row: a device copies from and to it without a
     * read or write between. NULL: the store has no such memory. */
    void *(*map)(tsr_store *store, tsr_rect rect, int64_t *ld);
} tsr_store_ops;

struct tsr_store {
    const tsr_store_ops *ops;
    tsr_store_desc desc;
    int64_t unit_rows, unit_cols; /* threads share a read or a write along these lines of the dataset (its chunks); 0: anywhere */
};

/* Local, one rank (no MPI needed). Opens the file, finds the dataset (the only two-dimensional numeric one when no path is given; lists
 * candidates otherwise), refuses what cannot be multiplied with what was found and what to do, checks that the raw bytes
 * are really in the file, resolves the slice. */
tsr_status tsr_hdf5_describe(const tsr_matrix_name *name, tsr_store_desc *desc);

/* Opens a described matrix for reading on this rank. `comm` is an MPI_Comm * for TSR_IO_MPIO (then Collective over it), NULL otherwise.
 * The mode in use is returned in *mode_used when not NULL. The store's desc.element is this machine's byte order except on the direct path: ask the
 * store, not the description it was opened with. Closing a TSR_IO_MPIO store is Collective too. */
tsr_status tsr_hdf5_open(const tsr_store_desc *desc, tsr_io_mode mode, const void *comm, tsr_io_mode *mode_used, tsr_store **store);

/* The element a store opened with this mode delivers: known before it is open, and the same on every rank. */
tsr_element tsr_hdf5_element(const tsr_store_desc *desc, tsr_io_mode mode);

/* A matrix in memory: data (rows × cols, not owned) belongs to the caller, who pins it where a device is to copy from it directly. */
tsr_status tsr_memory_open(tsr_view data, tsr_store **store);
/* A matrix computed on the fly (kernels/fill.h). */
tsr_status tsr_generated_open(tsr_fill_kind fill, uint64_t seed, int64_t rows, int64_t cols, tsr_dtype dtype, tsr_store **store);

static inline void tsr_store_close(tsr_store *store) { if (store) store->ops->close(store); }

/* What tsr_hdf5_list calls for each object that is or resembles a matrix, refused ones with the reason. */
typedef void (*tsr_list_sink)(void *context, const tsr_store_desc *desc, const char *path, const char *refused);
/* Local. Every dataset of a file, in name order. */
tsr_status tsr_hdf5_list(const char *file, tsr_list_sink sink, void *context);

/* "HDF5 1.10.8 (parallel)" facts for info and the record. */
const char *tsr_hdf5_version(char *text, size_t chars);
bool tsr_hdf5_is_parallel(void);

#endif
