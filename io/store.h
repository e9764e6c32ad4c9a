/* A store: a matrix, or a stack of them, that can be described, and whose rectangles can be read or written. Kinds of
 * stores are in a table (stores.h). A description is plain memory without pointers: rank 0 makes it, every rank gets a
 * copy by broadcast. */
#ifndef TSR_IO_STORE_H
#define TSR_IO_STORE_H

#include "io/chunks/chunk_index.h"
#include "io/files/file_state.h"
#include "io/hdf5/hdf5_desc.h"
#include "io/name.h"
#include "kernels/base/base.h"
#include "kernels/fill/fill.h"

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

typedef struct {
    tsr_matrix_name name; /* as found: its kind, path filled in, slice resolved */
    int64_t rows, cols;   /* of the part selected of each matrix; what multiply sees */
    int64_t row0, col0;   /* its first element in the matrix */
    int64_t dataset_rows, dataset_cols;
    /* Of the dataset. Its last two are a matrix's rows and columns, unless these are missing there, and 1 here: it
     * holds vectors, or a number. Those before have the sizes lead_size: it is a stack of matrices, row by row. */
    int dataset_dimensions;
    bool rows_missing, cols_missing;
    int64_t lead_size[TSR_LEADS_MAX];
    /* What is selected as numpy has it: `matrices`, counted along `stack_dimensions` of the sizes `stack`, and each
     * with so many dimensions: 2; 1 for a vector, whose rows or cols are 1; 0 for a number. */
    int stack_dimensions, matrix_dimensions;
    int64_t stack[TSR_LEADS_MAX];
    int64_t matrices;
    int64_t matrix; /* the one that reads and writes mean: tsr_store_select */
    /* how reads deliver elements (file order on the direct path); an open store's own desc holds for its mode */
    tsr_element element;
    tsr_fields fields;  /* of complex elements in HDF5; else the first */
    bool rounded;       /* conversion rounds, and what is too large for `element` becomes Inf (counted) */
    char type_name[64]; /* as a person would say it: "big-endian f64" */
    char packed[48];    /* the attributes by which its elements stand for others, "scale_factor, add_offset"; else "" */
    int64_t offset;     /* of dataset element (0,0) in the file, bytes; -1 when there is no raw access */
    bool on_disk;       /* raw access: in a file system that is not memory */
    /* raw access: read again soon, so through the page cache even where the disk alone were faster; the opener's
     * choice */
    bool keep_cached;
    /* raw access: of each row after the columns read, which are read next, ask this much with them; the opener's
     * choice */
    int64_t row_ahead_bytes;
    /* Of what is stored in chunks that are read whole, also along the dimensions before a matrix's; else 0. */
    int64_t chunk_rows, chunk_cols, lead_chunk[TSR_LEADS_MAX];
    /* that an open store takes to decode and keep chunks, 0 unless chunked; the opener may lower it
     * (tsr_store_lower) */
    size_t cache_bytes;
    /* Of chunks that are decoded here, where they are, on this rank; NULL: HDF5 is asked for each. It does not travel
     * with the rest, and belongs to whoever set it; an open store has a part in it. */
    tsr_chunk_index *index;
    /* Of what lies in several places (io/pieces/pieces.h), else NULL. It does not travel with the rest either. */
    struct tsr_pieces *pieces;
    tsr_file_state file_state; /* of the file, when it was described; an open store's own: here, when it was opened */
    tsr_hdf5_desc hdf5;        /* of HDF5's datasets alone */
    /* computed as it is read: */
    bool generated;
    tsr_fill_kind fill;
    uint64_t seed;
} tsr_store_desc;

static inline int tsr_store_lead_count(const tsr_store_desc *desc) {
    return desc->dataset_dimensions - 2 + desc->rows_missing + desc->cols_missing;
}

typedef struct tsr_store tsr_store;

typedef struct tsr_store_ops {
    const char *name;
    /* Reads rect (in the part selected) into to[r·ld + c], elements as desc.element says. Any thread. */
    tsr_status (*read)(tsr_store *store, tsr_rect rect, void *to, int64_t ld);
    /* Writes rect from from[r·ld + c], elements as desc.element says. Rectangles of different callers do not
     * overlap. */
    tsr_status (*write)(tsr_store *store, tsr_rect rect, const void *from, int64_t ld);
    tsr_status (*sync)(tsr_store *store); /* data on stable storage (fsync); part of a write */
    void (*close)(tsr_store *store);
    /* Where rect lies in this process's memory, pinned for the device in use, *ld elements from row to row: a device
     * copies from and to it without a read or write between. NULL: the store has no such memory. */
    void *(*map)(tsr_store *store, tsr_rect rect, int64_t *ld);
    /* As tsr_store_unchanged, beside the descriptors that are watched. NULL: there is nothing beside them. */
    tsr_status (*unchanged)(const tsr_store *store);
} tsr_store_ops;

#define TSR_WATCHED_MAX 2 /* through the page cache, and around it */

struct tsr_store {
    const tsr_store_ops *ops;
    tsr_store_desc desc;
    /* threads share a read or a write along these lines of the dataset (its chunks); 0: anywhere */
    int64_t unit_rows, unit_cols;
    bool copies_memory; /* reads and writes do no more, and may come in small blocks; a disk is slower with these */
    int64_t overflows;  /* finite elements that were read as Inf (desc.rounded), each as often as it was read */
    /* descriptors of what is read, not owned: tsr_store_unchanged looks at them */
    int watched[TSR_WATCHED_MAX], watched_count;
};

/* A matrix in memory: data (rows × cols, not owned) belongs to the caller, who pins it where a device is to copy
 * from it directly. */
tsr_status tsr_memory_open(tsr_view data, tsr_store **store);
/* A matrix computed on the fly (kernels/fill/fill.h). */
tsr_status tsr_generated_open(tsr_fill_kind fill, uint64_t seed, int64_t rows, int64_t cols, tsr_dtype dtype,
                              tsr_store **store);

/* TSR_ERR_SHAPE unless rect lies in the store's matrix and ld holds its columns. */
tsr_status tsr_store_check_rect(const tsr_store_desc *desc, tsr_rect rect, int64_t ld);

/* For describers: a dataset of that shape, of which desc->name.slice selects a part. TSR_ERR_FORMAT where there are
 * more matrices than 63 bits count. */
tsr_status tsr_store_set_shape(tsr_store_desc *desc, const tsr_shape *shape);
/* Before chunks are looked up: a vector whose dataset lacks the columns lacks the rows from now on, or the other way
 * round. */
void tsr_store_turn_vector(tsr_store_desc *desc);
/* The same: matrices become the stack of their rows, each of which is a row from now on, or a column. */
void tsr_store_split_rows(tsr_store_desc *desc, bool columns);
/* Whether the matrices selected lie in the file as one, row behind row, that is read by its bytes; makes them one. */
bool tsr_store_can_join(const tsr_store_desc *desc);
void tsr_store_join(tsr_store_desc *desc);
/* Bytes of all matrices selected; INT64_MAX for more than 63 bits. */
int64_t tsr_store_bytes(const tsr_store_desc *desc);
/* For describers of a whole dataset: selects the part that desc->name.slice says, or all. */
tsr_status tsr_store_take_slice(tsr_store_desc *desc);
/* Local. From now on reads and writes mean this one of the desc.matrices; none may be under way. */
static inline void tsr_store_select(tsr_store *store, int64_t matrix) { store->desc.matrix = matrix; }
/* The index of matrix `matrix` of those selected along each dimension of the dataset before the last two. */
void tsr_store_leads(const tsr_store_desc *desc, int64_t matrix, int64_t lead[TSR_LEADS_MAX]);
/* Matrices in the dataset before the one that is selected. */
int64_t tsr_store_matrices_before(const tsr_store_desc *desc);
/* Of what is selected. */
tsr_shape tsr_store_shape(const tsr_store_desc *desc);
bool tsr_shape_same(const tsr_shape *a, const tsr_shape *b);
/* "3x20x30" with `between` "x", cut where text is full; "a single number" for no dimensions. Returns text. */
const char *tsr_shape_text(const tsr_shape *shape, const char *between, char *text, size_t chars);
#define TSR_SHAPE_CHARS (TSR_DIMENSIONS_MAX * 23)

/* Local, for openers: the descriptor is of what was described, and will be looked at again. TSR_ERR_IO where the file
 * is another, or has changed; TSR_FAILURE for more descriptors than TSR_WATCHED_MAX. */
tsr_status tsr_store_watch(tsr_store *store, int fd);
/* Local. TSR_ERR_IO with what changed unless every descriptor of the store is as it was when it was opened: then all
 * that was read belongs together. A file that was replaced under its name meanwhile is no change: what was opened is
 * still there. NULL and stores without files never change. */
tsr_status tsr_store_unchanged(const tsr_store *store);

static inline void tsr_store_close(tsr_store *store) {
    if (store) store->ops->close(store);
}

/* Local. The chunks that the part selected touches, where each has elements of one matrix; none unless it is chunked.
 */
tsr_chunk_range tsr_chunks_of_part(const tsr_store_desc *desc);

/* What lists of a file's matrices call for each object that is or resembles one, refused ones with the reason. */
typedef void (*tsr_list_sink)(void *context, const tsr_store_desc *desc, const char *path, const char *refused);

#endif
