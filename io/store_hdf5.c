/* Matrices in HDF5 files: chooses how bytes move, and holds the path through H5Dread and H5Dwrite (converted or never written
 * datasets, filters that only HDF5 undoes, and MPI-IO). The library is called by one thread at a time and never for more than 1 GiB. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/hdf5_util.h"

#ifdef H5_HAVE_PARALLEL
#include <mpi.h>
#endif

/* ---- modes ----------------------------------------------------------------------------------------------------- */

static const char *const mode_names[] = {[TSR_IO_AUTO] = "auto", [TSR_IO_DIRECT] = "direct", [TSR_IO_HDF5] = "hdf5", [TSR_IO_MPIO] = "mpio"};

tsr_status tsr_io_mode_parse(const char *name, tsr_io_mode *mode) {
    for (size_t i = 0; i < sizeof mode_names / sizeof *mode_names; i++) {
        if (strcmp(name, mode_names[i]) != 0) continue;
        *mode = (tsr_io_mode)i;
        return TSR_OK;
    }
    return tsr_fail(TSR_ERR_USAGE, "there is no way of input and output '%s'; choose auto, direct, hdf5 or mpio", name);
}

const char *tsr_io_mode_name(tsr_io_mode mode) { return mode_names[mode]; }

bool tsr_hdf5_is_parallel(void) {
#ifdef H5_HAVE_PARALLEL
    return true;
#else
    return false;
#endif
}

const char *tsr_hdf5_version(char *text, size_t chars) {
    unsigned major = 0, minor = 0, release = 0;
    tsr_h5_enter();
    H5get_libversion(&major, &minor, &release);
    tsr_h5_leave();
    snprintf(text, chars, "HDF5 %u.%u.%u (%s)", major, minor, release, tsr_hdf5_is_parallel() ? "parallel" : "serial");
    return text;
}

/* ---- the store --------------------------------------------------------------------------------------------------- */

typedef struct {
    tsr_store base;
    hid_t file, dataset, type; /* type: elements in memory */
    bool writable;
} hdf5_store;

/* Rows of the block that starts at `row` (of the rectangle): at most 1 GiB, ending with a row of chunks where that is possible. */
static int64_t block_rows(const tsr_store_desc *desc, tsr_rect rect, int64_t row, int64_t cols) {
    int64_t fit = (int64_t)(TSR_TRANSFER_BYTES_MAX / tsr_dtype_bytes(desc->element.dtype)) / cols;
    int64_t rows = tsr_min(rect.rows - row, tsr_max(fit, 1));
    if (desc->chunk_rows <= 0 || row + rows == rect.rows) return rows;
    int64_t first = desc->row0 + rect.row + row;
    int64_t end = (first + rows) / desc->chunk_rows * desc->chunk_rows;
    return end > first ? end - first : rows;
}

/* One H5Dread or H5Dwrite of `part`, whose first element is at `memory`. */
static tsr_status transfer(const hdf5_store *s, tsr_rect part, char *memory, int64_t ld, bool write) {
    const tsr_store_desc *desc = &s->base.desc;
    hsize_t start[2] = {(hsize_t)(desc->row0 + part.row), (hsize_t)(desc->col0 + part.col)};
    hsize_t zero[2] = {0, 0}, count[2] = {(hsize_t)part.rows, (hsize_t)part.cols}, extent[2] = {(hsize_t)part.rows, (hsize_t)ld};
    herr_t error = -1;
    hid_t in_memory = -1, in_file = H5Dget_space(s->dataset);
    if (in_file < 0 || H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL) < 0) goto done;
    if ((in_memory = H5Screate_simple(2, extent, NULL)) < 0) goto done;
    if (H5Sselect_hyperslab(in_memory, H5S_SELECT_SET, zero, NULL, count, NULL) < 0) goto done;
    error = write ? H5Dwrite(s->dataset, s->type, in_memory, in_file, H5P_DEFAULT, memory)
                  : H5Dread(s->dataset, s->type, in_memory, in_file, H5P_DEFAULT, memory);
done:;
    tsr_status status = TSR_OK;
    if (error < 0)
        status = tsr_h5_fail(TSR_ERR_IO, "%s %lldx%lld elements at (%lld, %lld) of '%s:%s' failed; %s", write ? "writing" : "reading", (long long)part.rows,
                    (long long)part.cols, (long long)start[0], (long long)start[1], desc->name.file, desc->name.path,
                    write ? "check the disk" : "the file may be damaged: copy it again");
    if (in_memory >= 0) H5Sclose(in_memory);
    if (in_file >= 0) H5Sclose(in_file);
    return status;
}

/* Blocks of less than 1 GiB each; the lock is given back between blocks. */
static tsr_status move(const hdf5_store *s, tsr_rect rect, char *memory, int64_t ld, bool write) {
    const tsr_store_desc *desc = &s->base.desc;
    TSR_TRY(tsr_store_check_rect(desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    size_t element = tsr_dtype_bytes(desc->element.dtype);
    int64_t cols_max = (int64_t)(TSR_TRANSFER_BYTES_MAX / element);
    for (int64_t col = 0; col < rect.cols; col += cols_max) {
        int64_t cols = tsr_min(cols_max, rect.cols - col);
        for (int64_t row = 0, rows; row < rect.rows; row += rows) {
            rows = block_rows(desc, rect, row, cols);
            tsr_rect part = {rect.row + row, rect.col + col, rows, cols};
            tsr_h5_enter();
            tsr_status status = transfer(s, part, memory + (size_t)(row * ld + col) * element, ld, write);
            tsr_h5_leave();
            TSR_TRY(status);
        }
    }
    return TSR_OK;
}

static tsr_status hdf5_read(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    return move((const hdf5_store *)store, rect, to, ld, false);
}

static tsr_status hdf5_write(tsr_store *store, tsr_rect rect, const void *from, int64_t ld) {
    const hdf5_store *s = (const hdf5_store *)store;
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
    tsr_h5_enter();
    if (s->dataset >= 0) H5Dclose(s->dataset);
    if (s->type >= 0) H5Tclose(s->type);
    if (s->file >= 0) H5Fclose(s->file);
    tsr_h5_leave();
    free(s);
}

static const tsr_store_ops hdf5_ops = {"hdf5", hdf5_read, hdf5_write, hdf5_sync, hdf5_close, NULL};
static const tsr_store_ops mpio_ops = {"mpio", hdf5_read, hdf5_write, hdf5_sync, hdf5_close, NULL};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Dataset access list with room for the chunks to keep. */
static hid_t dataset_access(const tsr_store_desc *desc) {
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    if (access < 0 || desc->chunk_rows <= 0) return access;
    double chunk = (double)desc->chunk_rows * (double)desc->chunk_cols * (double)tsr_dtype_bytes(desc->element.dtype);
    size_t slots = (size_t)(8 * (double)desc->cache_bytes / chunk) | 1;
    if (slots < 521) slots = 521;
    if (slots > 1000003) slots = 1000003;
    H5Pset_chunk_cache(access, slots, desc->cache_bytes, 1.0); /* chunks read to the end leave first */
    return access;
}

#ifdef H5_HAVE_PARALLEL
static tsr_status open_mpio(const char *file, bool write, const void *comm, hid_t *id) {
    if (!comm) return tsr_fail(TSR_ERR_USAGE, "MPI-IO needs a communicator to open '%s'", file);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_fapl_mpio(access, *(const MPI_Comm *)comm, MPI_INFO_NULL) >= 0)
        *id = H5Fopen(file, write ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access);
    tsr_status status = *id >= 0 ? TSR_OK : tsr_h5_fail(TSR_ERR_IO, "cannot open '%s' through MPI-IO; try --io direct or --io hdf5", file);
    if (access >= 0) H5Pclose(access);
    return status;
}
#else
static tsr_status open_mpio(const char *file, bool write, const void *comm, hid_t *id) {
    (void)write, (void)comm, (void)id;
    return tsr_fail(TSR_ERR_UNSUPPORTED, "'%s' cannot be opened through MPI-IO: this build's HDF5 is serial; build with a parallel one "
                    "(Debian: libhdf5-openmpi-dev, cmake -DHDF5_PREFER_PARALLEL=ON) or use --io direct", file);
}
#endif

static bool swap_order(hid_t type) { return H5Tset_order(type, H5Tget_order(type) == H5T_ORDER_LE ? H5T_ORDER_BE : H5T_ORDER_LE) >= 0; }

static tsr_status open_dataset(hdf5_store *s) {
    const tsr_store_desc *desc = &s->base.desc;
    hid_t access = dataset_access(desc);
    s->type = tsr_h5_memory_type(desc->element.dtype);
    bool ordered = s->type >= 0 && (!desc->element.swapped || swap_order(s->type));
    if (access >= 0 && ordered) s->dataset = H5Dopen2(s->file, desc->name.path, access);
    tsr_status status = s->dataset >= 0 ? TSR_OK : tsr_h5_fail(TSR_ERR_IO, "cannot open '%s:%s'", desc->name.file, desc->name.path);
    if (access >= 0) H5Pclose(access);
    return status;
}

static tsr_status open_through_hdf5(const tsr_store_desc *desc, tsr_io_mode mode, const void *comm, bool write, bool file_order, tsr_store **store) {
    if (mode != TSR_IO_MPIO) TSR_TRY(tsr_h5_probe(desc->name.file, NULL, NULL));
    hdf5_store *s = malloc(sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to open '%s'", desc->name.file);
    *s = (hdf5_store){.base = {mode == TSR_IO_MPIO ? &mpio_ops : &hdf5_ops, *desc}, .file = -1, .dataset = -1, .type = -1, .writable = write};
    if (!file_order) s->base.desc.element = tsr_hdf5_element(desc, mode);
    tsr_h5_enter();
    tsr_status status = mode == TSR_IO_MPIO ? open_mpio(desc->name.file, write, comm, &s->file)
                        : write             ? tsr_h5_open_write(desc->name.file, &s->file)
                                            : tsr_h5_open_read(desc->name.file, &s->file);
    if (status == TSR_OK) status = open_dataset(s);
    tsr_h5_leave();
    if (status == TSR_OK) *store = &s->base;
    else hdf5_close(&s->base);
    return status;
}

tsr_element tsr_hdf5_element(const tsr_store_desc *desc, tsr_io_mode mode) {
    bool library = mode == TSR_IO_HDF5 || mode == TSR_IO_MPIO; /* which delivers this machine's order */
    return (tsr_element){desc->element.dtype, desc->element.swapped && !library};
}

tsr_status tsr_hdf5_open_as(const tsr_store_desc *desc, tsr_io_mode mode, const void *comm, bool write, tsr_io_mode *mode_used, tsr_store **store) {
    bool chunks = desc->raw_chunks && !write, direct = desc->offset >= 0 || chunks;
    /* Reads of a plan that counts on the file's byte order get it from HDF5 too, where no room is left to decode. */
    bool file_order = mode == TSR_IO_AUTO;
    if (mode == TSR_IO_AUTO && chunks && desc->cache_bytes < tsr_chunks_bytes(desc, 1, 1)) mode = TSR_IO_HDF5;
    if (mode == TSR_IO_AUTO) mode = direct ? TSR_IO_DIRECT : TSR_IO_HDF5;
    if (mode == TSR_IO_DIRECT && !direct)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "'%s:%s' (%s%s%s) has no raw bytes to read directly; use --io auto or --io hdf5", desc->name.file,
                        desc->name.path,
                        desc->layout == TSR_LAYOUT_CHUNKED   ? "chunked"
                        : desc->layout == TSR_LAYOUT_COMPACT ? "compact"
                        : desc->standard                     ? "contiguous, never written"
                                                             : "contiguous, elements to convert",
                        desc->filters[0] ? ", " : "", desc->filters);
    if (mode != TSR_IO_DIRECT) TSR_TRY(open_through_hdf5(desc, mode, comm, write, file_order, store));
    else TSR_TRY(chunks ? tsr_chunks_open(desc, store) : tsr_direct_open(desc, write, store));
    if (mode_used) *mode_used = mode;
    return TSR_OK;
}

tsr_status tsr_hdf5_open(const tsr_store_desc *desc, tsr_io_mode mode, const void *comm, tsr_io_mode *mode_used, tsr_store **store) {
    return tsr_hdf5_open_as(desc, mode, comm, false, mode_used, store);
}
