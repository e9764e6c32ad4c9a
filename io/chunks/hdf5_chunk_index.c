/* Where the chunks of a dataset are. HDF5 1.10 says so in time that grows with the square of their number. But it reads
 * a stored chunk with one call of its file driver: under a driver that notes where, and reads nothing, each chunk takes
 * one look into the dataset's index, a microsecond or two. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/describe/describe_wire.h"
#include "io/files/read_at.h"
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_path.h"
#include "io/hdf5/access/hdf5_signature.h"
#include "io/hdf5/hdf5_place.h"
#include "io/hdf5/store_hdf5.h"

#if H5_VERSION_GE(1, 13, 2)
#include <H5FDdevelop.h>
#endif

/* ---- the driver ------------------------------------------------------------------------------ */

typedef struct {
    H5FD_t base;
    int fd;
    haddr_t end_allocated, end;
    int noted; /* reads of raw data since it was 0: where, and how many bytes */
    haddr_t address;
    size_t bytes;
} noting_file;

static H5FD_t *noting_open(const char *name, unsigned flags, hid_t access, haddr_t most) {
    struct stat st;
    (void)flags;
    (void)access;
    (void)most;
    noting_file *file = calloc(1, sizeof *file);
    if (!file) return NULL;
    file->fd = open(name, O_RDONLY | O_CLOEXEC);
    if (file->fd >= 0 && fstat(file->fd, &st) == 0) {
        file->end = (haddr_t)st.st_size;
        return &file->base;
    }
    if (file->fd >= 0) close(file->fd);
    free(file);
    return NULL;
}

static herr_t noting_close(H5FD_t *base) {
    noting_file *file = (noting_file *)base;
    close(file->fd);
    free(file);
    return 0;
}

static herr_t noting_query(const H5FD_t *base, unsigned long *flags) {
    (void)base;
    *flags = H5FD_FEAT_ACCUMULATE_METADATA;
    return 0;
}

static haddr_t noting_end_allocated(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return ((const noting_file *)base)->end_allocated;
}

static herr_t noting_set_end_allocated(H5FD_t *base, H5FD_mem_t type, haddr_t address) {
    (void)type;
    ((noting_file *)base)->end_allocated = address;
    return 0;
}

static haddr_t noting_end(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return ((const noting_file *)base)->end;
}

static herr_t noting_handle(H5FD_t *base, hid_t access, void **handle) {
    (void)access;
    *handle = base;
    return 0;
}

/* What is behind the file's end is zeros, as HDF5's own driver has it. */
static herr_t noting_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes, void *to) {
    noting_file *file = (noting_file *)base;
    (void)transfer;
    if (type == H5FD_MEM_DRAW) {
        file->noted++;
        file->address = address;
        file->bytes = bytes;
        return 0;
    }
    const ssize_t done = tsr_read_at(file->fd, to, bytes, (int64_t)address);
    if (done < 0) return -1;
    memset((char *)to + done, 0, bytes - (size_t)done);
    return 0;
}

static herr_t noting_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes,
                           const void *from) {
    (void)base;
    (void)type;
    (void)transfer;
    (void)address;
    (void)bytes;
    (void)from;
    return -1;
}

static const H5FD_class_t noting_driver = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)511, /* for drivers that are in no list: 256 to 511 */
#endif
    .name = "tessera_noting",
    .maxaddr = (haddr_t)INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = noting_open,
    .close = noting_close,
    .query = noting_query,
    .get_eoa = noting_end_allocated,
    .set_eoa = noting_set_end_allocated,
    .get_eof = noting_end,
    .get_handle = noting_handle,
    .read = noting_read,
    .write = noting_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* Opens the file under that driver. */
static tsr_status open_noting(const char *name, hid_t *id, noting_file **file) {
    void *handle = NULL;
    const hid_t driver = H5FDregister(&noting_driver), access = H5Pcreate(H5P_FILE_ACCESS);
    *id = -1;
    if (driver >= 0 && access >= 0 && H5Pset_driver(access, driver, NULL) >= 0)
        *id = H5Fopen(name, H5F_ACC_RDONLY, access);
    tsr_status status = TSR_OK;
    if (*id < 0 || H5Fget_vfd_handle(*id, H5P_DEFAULT, &handle) < 0)
        status = tsr_h5_fail(TSR_ERR_FORMAT,
                             "'%s' cannot be opened to find its chunks; check it with h5ls, copy it again", name);
    if (access >= 0) H5Pclose(access);
    if (driver >= 0) H5FDunregister(driver);
    *file = handle;
    return status;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Chunk (i, j) of a matrix, counted in chunks. */
static tsr_status find_chunk(hid_t dataset, noting_file *file, const tsr_store_desc *desc, int64_t matrix, int64_t i,
                             int64_t j, tsr_chunk_place *place) {
    const tsr_h5_place at = tsr_h5_chunk_place(desc, matrix, i, j);
    const int64_t row = i * desc->chunk_rows, col = j * desc->chunk_cols;
    hsize_t bytes = 0;
    char nothing;
    *place = (tsr_chunk_place){.bytes = 0};
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a file that was opened has its handle */
    file->noted = 0;
    if (H5Dread_chunk(dataset, H5P_DEFAULT, at.at, &place->skipped, &nothing) >= 0) {
        if (file->noted != 1 || file->bytes > UINT32_MAX)
            return tsr_fail(TSR_ERR_FORMAT, "the chunk at (%lld, %lld) was read in %d pieces", (long long)row,
                            (long long)col, file->noted);
        place->address = (int64_t)file->address;
        place->bytes = (uint32_t)file->bytes;
        return TSR_OK;
    }
    H5Eclear2(H5E_DEFAULT);
    const herr_t found = H5Dget_chunk_storage_size(dataset, at.at, &bytes);
    if ((found >= 0 && bytes == 0) || (found < 0 && tsr_h5_error_says("chunk storage is not allocated"))) {
        H5Eclear2(H5E_DEFAULT);
        place->skipped = 0;
        return TSR_OK; /* never written */
    }
    return tsr_h5_fail(TSR_ERR_FORMAT, "the chunk at (%lld, %lld) cannot be found", (long long)row, (long long)col);
}

tsr_status tsr_hdf5_find_chunks(const tsr_store_desc *desc, tsr_chunk_range range, tsr_chunk_place *places) {
    hid_t id = -1, dataset = -1;
    noting_file *file = NULL;
    char why[600];
    tsr_h5_enter();
    tsr_status status = open_noting(desc->name.file, &id, &file);
    if (status == TSR_OK && (dataset = H5Dopen2(id, desc->name.path, H5P_DEFAULT)) < 0)
        status = tsr_h5_fail(TSR_ERR_IO, "cannot open '%s:%s'", desc->name.file, desc->name.path);
    const bool opened = status == TSR_OK;
    for (int64_t c = 0; c < tsr_chunk_index_count(range) && status == TSR_OK; c++) {
        tsr_describe_goes_on();
        const int64_t row = c / range.cols; /* of chunks, counted on from matrix to matrix */
        status = find_chunk(dataset, file, desc, row / range.rows, range.row0 + row % range.rows,
                            range.col0 + c % range.cols, &places[c]);
    }
    if (opened && status != TSR_OK) {
        snprintf(why, sizeof why, "%s", tsr_message());
        status = tsr_fail(status, "'%s:%s': %s; the file may be damaged: copy it again", desc->name.file,
                          desc->name.path, why);
    }
    if (dataset >= 0) H5Dclose(dataset);
    if (id >= 0) H5Fclose(id);
    tsr_h5_leave();
    return status;
}
