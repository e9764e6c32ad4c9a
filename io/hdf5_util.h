/* What the HDF5 files of this folder share: one lock around the library, its error text in our messages, opening files and
 * following paths inside them without ever leaving the file. Included by io/ and nothing else. */
#ifndef TSR_IO_HDF5_UTIL_H
#define TSR_IO_HDF5_UTIL_H

#include <hdf5.h>

#include "io/store.h"

/* The library is not thread-safe: every public function here takes this lock before its first HDF5 call; the functions
 * below expect it taken. The first call also keeps HDF5 from printing, loading plugins and running an exit handler. */
void tsr_h5_enter(void);
void tsr_h5_leave(void);

/* As tsr_fail, with the innermost text of HDF5's error stack after it. Call it before any other HDF5 call. A full disk becomes TSR_ERR_SPACE. */
tsr_status tsr_h5_fail(tsr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether that innermost text has these words in it. */
bool tsr_h5_error_says(const char *words);

/* Says whether `file` is there, regular, readable and HDF5, without calling HDF5. *bytes: its size; *user_block: bytes before the
 * HDF5 part. Either may be NULL. */
tsr_status tsr_h5_probe(const char *file, int64_t *bytes, int64_t *user_block);

/* File access list: POSIX driver, no sieve buffer, locking best effort or off. Caller closes. Negative on failure. */
hid_t tsr_h5_access(bool locking);
/* Opens a probed file for reading (best-effort locking). */
tsr_status tsr_h5_open_read(const char *file, hid_t *id);
/* Opens one of our temporary files for reading and writing (no HDF5 locks: ranks share it). */
tsr_status tsr_h5_open_write(const char *file, hid_t *id);

/* Follows `path` (absolute) link by link. Hard links and soft links inside the file only: TSR_ERR_FORMAT for external and
 * user-defined links, TSR_ERR_NOT_FOUND for what is not there. `resolved` (TSR_PATH_CHARS) is free of soft links. */
tsr_status tsr_h5_resolve(hid_t file, const char *file_name, const char *path, char *resolved);
/* The same, showing every link on the way before it is followed: an absolute path whose groups are free of soft links,
 * and what of the path comes behind it. */
typedef void (*tsr_h5_link_sink)(void *context, hid_t file, const char *link, const char *rest);
tsr_status tsr_h5_walk(hid_t file, const char *file_name, const char *path, tsr_h5_link_sink each, void *context,
                       char *resolved);
/* Whether two open objects of one open file are one, whatever links led to them. */
bool tsr_h5_same_object(hid_t a, hid_t b);

/* A dataset as found: what was refused about it, if anything. */
typedef struct {
    tsr_store_desc desc;   /* name.file is left to the caller */
    bool matrix;           /* two dimensions of numbers, readable or not */
    tsr_status status;     /* TSR_OK, or why it is refused */
    char refused[400];     /* "" when it is not */
    int filter; /* the one this HDF5 lacks where that is the reason, which then has no advice in it; else 0 */
} tsr_h5_found;

/* Describes the open dataset. Fails only where HDF5 itself fails. file_bytes: the file's size. */
tsr_status tsr_h5_inspect(hid_t dataset, const char *path, int64_t file_bytes, bool allow_incomplete, tsr_h5_found *found);

/* What to do about a dataset with a filter that this HDF5 lacks: text of TSR_ADVICE_CHARS. Where h5py can read it, that
 * is a command for the shell, which writes a copy beside the file. Calls no HDF5. */
#define TSR_ADVICE_CHARS 2048
void tsr_h5_filter_advice(int filter, const char *file, const char *path, char *text, size_t chars);

/* Element type. `usable` false: name says what it is, and hint what to do. */
typedef struct {
    bool usable;
    tsr_element element;  /* order as in the file */
    bool standard;        /* the bytes are such elements; false: HDF5 converts */
    char name[160];       /* "big-endian f64", "complex numbers (compound {r, i} of f64)" */
    const char *hint;     /* static */
} tsr_h5_type;

void tsr_h5_type_of(hid_t type, tsr_h5_type *found);
/* The type in memory, native order. Caller closes. Negative on failure. */
hid_t tsr_h5_memory_type(tsr_dtype dtype);

/* The attribute that marks an output not finished. */
#define TSR_INCOMPLETE "tessera_incomplete"

/* The text of an open attribute of one element, of fixed or variable length; the caller frees it. NULL when it cannot
 * be read. */
char *tsr_h5_attribute_text(hid_t attribute, hid_t type);
/* The text attribute `name` of an object, "" when there is none. */
void tsr_h5_text_of(hid_t object, const char *name, char *text, size_t chars);

/* What other programs write (hdf5_foreign.c). Whether the object at `path` (absolute) serves a matrix and is none
 * itself: types of Octave, indexes of pandas, cells of MATLAB, tables of our records. */
bool tsr_h5_is_internal(hid_t file, const char *path);
/* Whether the dataset is the value of an Octave variable. */
bool tsr_h5_is_octave(hid_t dataset, const char *path);
/* The dataset that a group stands for: the value of an Octave variable, the one block of a pandas frame. `inner`:
 * TSR_PATH_CHARS. Fails with what the group is where it stands for none. */
tsr_status tsr_h5_matrix_of(hid_t group, const char *file, const char *path, char *inner);
/* Whether the object is a group that a run left (record_hdf5_read.c). */
bool tsr_h5_is_record(hid_t object);

tsr_status tsr_h5_write_text(hid_t object, const char *name, const char *value);
tsr_status tsr_h5_write_number(hid_t object, const char *name, hid_t native_type, const void *value);

/* The direct path (hdf5_layout.c): pread and pwrite at desc->offset. */
tsr_status tsr_direct_open(const tsr_store_desc *desc, bool write, tsr_store **store);
/* Chunks decoded without HDF5 (store_chunks.c), for reading; desc->raw_chunks. TSR_ERR_LIMIT when desc->cache_bytes cannot hold one chunk being decoded. */
tsr_status tsr_chunks_open(const tsr_store_desc *desc, tsr_store **store);
/* Memory of such a store that keeps `kept` chunks and decodes `decoders` at once. */
size_t tsr_chunks_bytes(const tsr_store_desc *desc, int64_t kept, int decoders);
#define TSR_DECODERS_MAX 8
/* tsr_hdf5_open for reading, or for reading and writing. */
tsr_status tsr_hdf5_open_as(const tsr_store_desc *desc, tsr_io_mode mode, const void *comm, bool write, tsr_io_mode *mode_used, tsr_store **store);
/* TSR_ERR_SHAPE unless rect lies in the store's matrix and ld holds its columns. */
tsr_status tsr_store_check_rect(const tsr_store_desc *desc, tsr_rect rect, int64_t ld);

#endif
