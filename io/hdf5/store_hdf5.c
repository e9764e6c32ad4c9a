/* Matrices in HDF5 files: chooses how bytes move, and holds the path through H5Dread and H5Dwrite (converted or
 * never written datasets, filters that only HDF5 undoes, and MPI-IO). The library is called by one thread at a time
 * and never for more than 1 GiB. */
#include "io/hdf5/store_hdf5.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/chunks/chunk_guard.h"
#include "io/chunks/store_chunks.h"
#include "io/describe/describe.h"
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_filters.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_probe.h"
#include "io/hdf5/access/hdf5_type.h"
#include "io/hdf5/hdf5_memory.h"
#include "io/hdf5/hdf5_place.h"
#include "io/pieces/pieces.h"
#include "io/store_direct.h"

#ifdef H5_HAVE_PARALLEL
#include <mpi.h>
#endif

/* ---- the store ------------------------------------------------------------------------------- */

typedef struct {
    tsr_store base;
    hid_t file, dataset, type; /* type: elements in memory */
    hid_t moving;              /* dataset transfer list */
    tsr_chunk_guard guard;
    int watch_fd; /* MPI-IO: of the file that is read, which MPI does not name; else -1 */
    bool writable;
    tsr_h5_refused refused; /* of what was written */
} hdf5_store;

#define CHUNKS_MAX 4096 /* in one call: HDF5 keeps about a kilobyte for each */

/* Columns of a block: at most 1 GiB, and not too many chunks. */
static int64_t block_cols(const tsr_store_desc *desc) {
    const int64_t fit = (int64_t)(TSR_TRANSFER_BYTES_MAX / tsr_dtype_bytes(desc->element.dtype));
    return desc->chunk_cols > 0 ? tsr_min(fit, CHUNKS_MAX * tsr_min(desc->chunk_cols, fit)) : fit;
}

/* Rows of the block that starts at `row` (of the rectangle): at most 1 GiB and not too many chunks, ending with a row
 * of chunks where that is possible. */
static int64_t block_rows(const tsr_store_desc *desc, tsr_rect rect, int64_t row, int64_t cols) {
    int64_t fit = (int64_t)(TSR_TRANSFER_BYTES_MAX / tsr_dtype_bytes(desc->element.dtype)) / cols;
    if (desc->chunk_rows > 0) {
        const int64_t chunk_rows = tsr_max(1, CHUNKS_MAX / (cols / desc->chunk_cols + 2));
        fit = tsr_min(fit, chunk_rows * tsr_min(desc->chunk_rows, INT64_MAX / CHUNKS_MAX));
    }
    int64_t rows = tsr_min(rect.rows - row, tsr_max(fit, 1));
    if (desc->chunk_rows <= 0 || row + rows == rect.rows) return rows;
    int64_t first = desc->row0 + rect.row + row;
    int64_t end = (first + rows) / desc->chunk_rows * desc->chunk_rows;
    return end > first ? end - first : rows;
}

/* One H5Dread or H5Dwrite of `part`, whose first element is at `memory`. */
static tsr_status transfer(const hdf5_store *s, tsr_rect part, char *memory, int64_t ld, bool write) {
    const tsr_store_desc *desc = &s->base.desc;
    const int64_t row = desc->row0 + part.row, col = desc->col0 + part.col;
    const tsr_h5_place start = tsr_h5_place_of(desc, desc->matrix, row, col),
                       count = tsr_h5_extent(desc, part.rows, part.cols);
    const hsize_t zero[2] = {0, 0}, own[2] = {(hsize_t)part.rows, (hsize_t)part.cols};
    const hsize_t extent[2] = {(hsize_t)part.rows, (hsize_t)ld};
    herr_t error = -1;
    hid_t in_memory = -1, in_file = H5Dget_space(s->dataset);
    if (in_file < 0) goto done;
    const int dimensions = H5Sget_simple_extent_ndims(in_file); /* a single number has none, and is selected */
    if (dimensions != 0 && H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start.at, NULL, count.at, NULL) < 0) goto done;
    if ((in_memory = H5Screate_simple(2, extent, NULL)) < 0) goto done;
    if (H5Sselect_hyperslab(in_memory, H5S_SELECT_SET, zero, NULL, own, NULL) < 0) goto done;
    error = write ? H5Dwrite(s->dataset, s->type, in_memory, in_file, s->moving, memory)
                  : H5Dread(s->dataset, s->type, in_memory, in_file, s->moving, memory);
done:;
    tsr_status status = TSR_OK;
    if (error < 0)
        status = tsr_h5_fail(TSR_ERR_IO, "%s %lldx%lld elements at (%lld, %lld) of '%s:%s' failed; %s",
                             write ? "writing" : "reading", (long long)part.rows, (long long)part.cols, (long long)row,
                             (long long)col, desc->name.file, desc->name.path,
                             write ? "check the disk" : "the file may be damaged: copy it again");
    if (in_memory >= 0) H5Sclose(in_memory);
    if (in_file >= 0) H5Sclose(in_file);
    return status;
}

/* A read of `part` has failed: chunk by chunk, that says which one it was. */
static tsr_status name_chunk(const hdf5_store *s, tsr_rect part, char *memory, int64_t ld) {
    const tsr_store_desc *desc = &s->base.desc;
    const size_t element = tsr_dtype_bytes(desc->element.dtype);
    const int64_t row = desc->row0 + part.row, col = desc->col0 + part.col;
    char why[TSR_H5_ERROR_CHARS + 2 * TSR_FILE_CHARS];
    snprintf(why, sizeof why, "%s", tsr_message());
    for (int64_t i = row / desc->chunk_rows; i * desc->chunk_rows < row + part.rows; i++)
        for (int64_t j = col / desc->chunk_cols; j * desc->chunk_cols < col + part.cols; j++) {
            const int64_t r0 = tsr_max(row, i * desc->chunk_rows), c0 = tsr_max(col, j * desc->chunk_cols);
            const tsr_rect one = {r0 - desc->row0, c0 - desc->col0,
                                  tsr_min(row + part.rows, (i + 1) * desc->chunk_rows) - r0,
                                  tsr_min(col + part.cols, (j + 1) * desc->chunk_cols) - c0};
            if (transfer(s, one, memory + (size_t)((r0 - row) * ld + c0 - col) * element, ld, false) == TSR_OK)
                continue;
            snprintf(why, sizeof why, "%s", tsr_message());
            return tsr_fail(TSR_ERR_IO, "the %lldx%lld chunk at (%lld, %lld) cannot be decoded: %s",
                            (long long)desc->chunk_rows, (long long)desc->chunk_cols, (long long)(i * desc->chunk_rows),
                            (long long)(j * desc->chunk_cols), why);
        }
    return tsr_fail(TSR_ERR_IO, "%s", why);
}

/* Blocks of less than 1 GiB each; the lock is given back between blocks. */
static tsr_status move(hdf5_store *s, tsr_rect rect, char *memory, int64_t ld, bool write) {
    const tsr_store_desc *desc = &s->base.desc;
    TSR_TRY(tsr_store_check_rect(desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    size_t element = tsr_dtype_bytes(desc->element.dtype);
    const int64_t cols_max = block_cols(desc);
    for (int64_t col = 0; col < rect.cols; col += cols_max) {
        int64_t cols = tsr_min(cols_max, rect.cols - col);
        for (int64_t row = 0, rows; row < rect.rows; row += rows) {
            rows = block_rows(desc, rect, row, cols);
            tsr_rect part = {rect.row + row, rect.col + col, rows, cols};
            const tsr_rect stored = {desc->row0 + part.row, desc->col0 + part.col, rows, cols};
            tsr_h5_enter();
            tsr_h5_filters_expect((size_t)tsr_chunk_elements(desc) * tsr_stored_bytes(desc), s->guard.packed_before);
            tsr_status status = write ? TSR_OK : tsr_chunk_guard_check(&s->guard, s->dataset, desc, stored);
            char *at = memory + (size_t)(row * ld + col) * element;
            if (status == TSR_OK) {
                status = transfer(s, part, at, ld, write);
                if (write && status == TSR_OK) status = tsr_h5_check_written(desc->name.file, &s->refused);
                if (status != TSR_OK && !write && desc->chunk_rows > 0) status = name_chunk(s, part, at, ld);
            }
            tsr_h5_leave();
            TSR_TRY(status);
        }
    }
    return TSR_OK;
}

static tsr_status hdf5_read(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    return move((hdf5_store *)store, rect, to, ld, false);
}

static tsr_status hdf5_write(tsr_store *store, tsr_rect rect, const void *from, int64_t ld) {
    hdf5_store *s = (hdf5_store *)store;
    if (!s->writable) return tsr_fail(TSR_ERR_USAGE, "'%s' was opened for reading only", store->desc.name.file);
    return move(s, rect, (char *)from, ld, true); /* H5Dwrite only reads it */
}

/* The data of a contiguous dataset is never buffered here (no sieve buffer), so the file system's own sync is enough;
 * H5Fflush would be collective under MPI-IO. */
static tsr_status hdf5_sync(tsr_store *store) {
    const char *file = store->desc.name.file;
    if (!((hdf5_store *)store)->writable) return TSR_OK;
    int fd = open(file, O_RDWR | O_CLOEXEC);
    int error = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    if (error == 0) return TSR_OK;
    return tsr_fail(tsr_write_status(error), "cannot sync '%s': %s; check the disk", file, strerror(error));
}

static void hdf5_close(tsr_store *store) {
    hdf5_store *s = (hdf5_store *)store;
    if (s->watch_fd >= 0) close(s->watch_fd);
    tsr_h5_enter();
    if (s->dataset >= 0) H5Dclose(s->dataset);
    if (s->type >= 0) H5Tclose(s->type);
    if (s->moving >= 0) H5Pclose(s->moving);
    if (s->file >= 0) H5Fclose(s->file);
    tsr_h5_leave();
    tsr_chunk_guard_close(&s->guard);
    free(s);
}

static const tsr_store_ops hdf5_ops = {"hdf5", hdf5_read, hdf5_write, hdf5_sync, hdf5_close, NULL, NULL};
static const tsr_store_ops mpio_ops = {"mpio", hdf5_read, hdf5_write, hdf5_sync, hdf5_close, NULL, NULL};

/* ---- opening --------------------------------------------------------------------------------- */

/* Dataset access list with room for the chunks to keep. */
static hid_t dataset_access(const tsr_store_desc *desc) {
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    if (access < 0 || desc->chunk_rows <= 0) return access;
    const double chunk = tsr_chunk_elements(desc) * (double)tsr_stored_bytes(desc);
    /* what decoding takes is not there to keep chunks */
    const size_t least = tsr_hdf5_least_bytes(desc, TSR_IO_HDF5);
    const size_t kept = desc->cache_bytes > least ? desc->cache_bytes - least : 0;
    size_t slots = (size_t)(8 * (double)kept / chunk) | 1;
    if (slots < 521) slots = 521;
    if (slots > 1000003) slots = 1000003;
    H5Pset_chunk_cache(access, slots, kept, 1.0); /* chunks read to the end leave first */
    return access;
}

#ifdef H5_HAVE_PARALLEL
static tsr_status open_mpio(const char *file, bool write, const void *comm, hid_t *id) {
    if (!comm) return tsr_fail(TSR_ERR_USAGE, "MPI-IO needs a communicator to open '%s'", file);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_fapl_mpio(access, *(const MPI_Comm *)comm, MPI_INFO_NULL) >= 0)
        *id = H5Fopen(file, write ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access);
    tsr_status status =
        *id >= 0 ? TSR_OK
                 : tsr_h5_fail(TSR_ERR_IO, "cannot open '%s' through MPI-IO; try --io direct or --io hdf5", file);
    if (access >= 0) H5Pclose(access);
    return status;
}
#else
static tsr_status open_mpio(const char *file, bool write, const void *comm, hid_t *id) {
    (void)write;
    (void)comm;
    (void)id;
    return tsr_fail(TSR_ERR_UNSUPPORTED,
                    "'%s' cannot be opened through MPI-IO: this build's HDF5 is serial; build with a parallel one "
                    "(Debian: libhdf5-openmpi-dev, cmake -DHDF5_PREFER_PARALLEL=ON) or use --io direct",
                    file);
}
#endif

/* H5Tconvert callback. Counts x87's finite numbers that become Inf: sign and exponent are their last two bytes. */
static H5T_conv_ret_t count_overflow(H5T_conv_except_t what, hid_t from, hid_t to, void *element, void *converted,
                                     void *context) {
    const unsigned char *bytes = element;
    (void)from;
    (void)to;
    (void)converted;
    const bool high = what == H5T_CONV_EXCEPT_RANGE_HI || what == H5T_CONV_EXCEPT_RANGE_LOW;
    if (high && (bytes[8] | (bytes[9] & 0x7f) << 8) != 0x7fff) ++*(int64_t *)context;
    return H5T_CONV_UNHANDLED;
}

/* The transfer list. Called with the lock, as the conversion is. */
static bool open_moving(hdf5_store *s) {
    s->moving = H5Pcreate(H5P_DATASET_XFER);
    if (s->moving < 0) return false;
    return !s->base.desc.rounded || H5Pset_type_conv_cb(s->moving, count_overflow, &s->base.overflows) >= 0;
}

static bool swap_order(hid_t type) {
    return H5Tset_order(type, H5Tget_order(type) == H5T_ORDER_LE ? H5T_ORDER_BE : H5T_ORDER_LE) >= 0;
}

static tsr_status open_dataset(hdf5_store *s) {
    const tsr_store_desc *desc = &s->base.desc;
    hid_t access = dataset_access(desc);
    s->type = tsr_h5_memory_type(desc->element.dtype, desc->fields);
    bool ordered = s->type >= 0 && (!desc->element.swapped || swap_order(s->type));
    if (access >= 0 && ordered && open_moving(s)) s->dataset = H5Dopen2(s->file, desc->name.path, access);
    tsr_status status =
        s->dataset >= 0 ? TSR_OK : tsr_h5_fail(TSR_ERR_IO, "cannot open '%s:%s'", desc->name.file, desc->name.path);
    if (status == TSR_OK && !s->writable) tsr_h5_filters_bound(s->dataset);
    if (status == TSR_OK && !s->writable) status = tsr_chunk_guard_open(s->dataset, desc, &s->guard);
    if (access >= 0) H5Pclose(access);
    return status;
}

/* MPI names no descriptor of its file: one opened after it, and with the state noted before it, is of the same file. */
static tsr_status watch_beside(hdf5_store *s) {
    const tsr_store_desc *desc = &s->base.desc;
    TSR_TRY(tsr_file_state_open(desc->name.file, &desc->file_state, &s->watch_fd));
    return tsr_store_watch(&s->base, s->watch_fd);
}

static tsr_element hdf5_element(const tsr_store_desc *desc, tsr_io_mode mode) {
    bool library = mode == TSR_IO_HDF5 || mode == TSR_IO_MPIO; /* which delivers this machine's order */
    return (tsr_element){desc->element.dtype, desc->element.swapped && !library};
}

static tsr_status open_through_hdf5(const tsr_store_desc *desc, tsr_io_mode mode, const void *comm, bool write,
                                    bool file_order, tsr_store **store) {
    if (mode != TSR_IO_MPIO) TSR_TRY(tsr_h5_probe(desc->name.file, NULL, NULL));
    hdf5_store *s = malloc(sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to open '%s'", desc->name.file);
    *s = (hdf5_store){.base = {.ops = mode == TSR_IO_MPIO ? &mpio_ops : &hdf5_ops, .desc = *desc},
                      .file = -1,
                      .dataset = -1,
                      .type = -1,
                      .moving = -1,
                      .watch_fd = -1,
                      .writable = write};
    if (!file_order) s->base.desc.element = hdf5_element(desc, mode);
    tsr_h5_enter();
    tsr_status status = mode == TSR_IO_MPIO ? open_mpio(desc->name.file, write, comm, &s->file)
                        : write ? tsr_h5_open_write(desc->name.file, "use --io direct", &s->refused, &s->file)
                                : tsr_h5_open_read(desc->name.file, &s->file);
    if (status == TSR_OK && !write && mode != TSR_IO_MPIO) status = tsr_h5_watch(&s->base, s->file);
    if (status == TSR_OK) status = open_dataset(s);
    if (status == TSR_OK && mode != TSR_IO_MPIO) status = tsr_h5_check_address(&s->base, s->dataset);
    tsr_h5_leave();
    if (status != TSR_OK) hdf5_close(&s->base);
    TSR_TRY(status);
    /* Other ranks may find no difference, and closing through MPI-IO is collective: what is open stays open. */
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): see above */
    if (!write && mode == TSR_IO_MPIO) TSR_TRY(watch_beside(s));
    *store = &s->base;
    return TSR_OK;
}

static tsr_status open_scattered(const tsr_store_desc *desc, tsr_io_mode mode, tsr_io_mode *mode_used,
                                 tsr_store **store) {
    if (!desc->pieces)
        return tsr_fail(TSR_FAILURE, "'%s:%s': nobody looked where its elements lie; this is a mistake of the program",
                        desc->name.file, desc->name.path);
    TSR_TRY(tsr_pieces_open(desc, mode, store));
    if (mode_used) *mode_used = mode == TSR_IO_AUTO ? TSR_IO_DIRECT : mode;
    return TSR_OK;
}

static tsr_status hdf5_open(const tsr_store_desc *desc, tsr_io_mode mode, const void *comm, bool write,
                            tsr_io_mode *mode_used, tsr_store **store) {
    if (desc->hdf5.scattered) return open_scattered(desc, mode, mode_used, store);
    bool chunks = tsr_decodes_chunks(desc) && !write, direct = desc->offset >= 0 || chunks;
    /* Reads of a plan that counts on the file's byte order get it from HDF5 too, where no room is left to decode. */
    bool file_order = mode == TSR_IO_AUTO;
    if (mode == TSR_IO_AUTO && chunks && desc->cache_bytes < tsr_chunks_bytes(desc, 1, 1)) mode = TSR_IO_HDF5;
    if (mode == TSR_IO_AUTO) mode = direct ? TSR_IO_DIRECT : TSR_IO_HDF5;
    if (mode == TSR_IO_DIRECT && !direct)
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "'%s:%s' (%s%s%s) has no raw bytes to read directly; use --io auto or --io hdf5",
                        desc->name.file, desc->name.path,
                        desc->hdf5.layout == TSR_LAYOUT_CHUNKED   ? "chunked"
                        : desc->hdf5.layout == TSR_LAYOUT_COMPACT ? "compact"
                        : desc->hdf5.standard                     ? "contiguous, never written"
                                                                  : "contiguous, elements to convert",
                        desc->hdf5.filters[0] ? ", " : "", desc->hdf5.filters);
    if (!write && desc->cache_bytes < tsr_hdf5_least_bytes(desc, mode))
        return tsr_hdf5_too_large(desc, tsr_hdf5_least_bytes(desc, mode), desc->cache_bytes, "raise --host-memory");
    /* What a network's file system remembers may be older: it is given time before anything that counts is opened. */
    if (!write && mode != TSR_IO_MPIO) TSR_TRY(tsr_file_state_open(desc->name.file, &desc->file_state, NULL));
    if (mode != TSR_IO_DIRECT) TSR_TRY(open_through_hdf5(desc, mode, comm, write, file_order, store));
    else TSR_TRY(chunks ? tsr_chunks_open(desc, store) : tsr_direct_open(desc, write, store));
    if (mode_used) *mode_used = mode;
    return TSR_OK;
}

/* ---- the kind -------------------------------------------------------------------------------- */

static const char *const layout_names[] = {
    [TSR_LAYOUT_CONTIGUOUS] = "contiguous",
    [TSR_LAYOUT_CHUNKED] = "chunked",
    [TSR_LAYOUT_COMPACT] = "compact",
    [TSR_LAYOUT_VIRTUAL] = "virtual",
};

static const char *hdf5_storage(const tsr_store_desc *desc, char *text, size_t chars) {
    const tsr_hdf5_desc *own = &desc->hdf5;
    char chunks[64] = "";
    char packed[96] = "";
    char program[64] = "";
    char shown[160] = "";
    if (own->layout == TSR_LAYOUT_CHUNKED)
        snprintf(chunks, sizeof chunks, " %lld x %lld", (long long)desc->chunk_rows, (long long)desc->chunk_cols);
    if (*desc->packed) snprintf(packed, sizeof packed, "  packed (%s): read as it is stored", desc->packed);
    if (*own->matlab_class) snprintf(program, sizeof program, "  MATLAB_class %s: MATLAB", own->matlab_class);
    else if (own->octave) snprintf(program, sizeof program, "  Octave variable: Octave");
    if (*program)
        snprintf(shown, sizeof shown, " shows it as %lld x %lld, use --order col to agree with it",
                 (long long)desc->cols, (long long)desc->rows);
    snprintf(text, chars, "%s%s%s%s%s%s%s%s%s", layout_names[own->layout], chunks, *own->filters ? "  " : "",
             own->filters, *own->reads ? "  reads " : "", own->reads, packed, program, shown);
    return text;
}

const tsr_store_kind tsr_hdf5_kind = {
    .name = "HDF5",
    .forms = "file.h5, file.h5:/path, file.h5::/path, file.h5/path",
    .several = true,
    .carries = true,
    .describe = tsr_describe,
    .storage = hdf5_storage,
    .open = hdf5_open,
    .element = hdf5_element,
    .least_bytes = tsr_hdf5_least_bytes,
    .too_large = tsr_hdf5_too_large,
    .start = tsr_h5_start,
    .version = tsr_h5_version,
    .output = &tsr_hdf5_output,
};
