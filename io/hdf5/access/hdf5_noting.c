/* Our file drivers (hdf5_noting.h): they share all but how raw data moves. */
#include "io/hdf5/access/hdf5_noting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files/file_bytes.h"
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_library.h"

#if H5_VERSION_GE(1, 13, 2)
#include <H5FDdevelop.h>
#endif

/* What an access list has for them. */
typedef struct {
    tsr_h5_refused *refused; /* NULL: the file is read; not owned */
    bool notes;              /* of raw data, and does not move it */
} driver_info;

typedef struct {
    H5FD_t base;
    driver_info info;
    int fd;
    haddr_t end_allocated, end;
    tsr_h5_noted noted;
} noting_file;

static H5FD_t *noting_open(const char *name, unsigned flags, hid_t access, haddr_t most) {
    struct stat st;
    int how = (flags & H5F_ACC_RDWR ? O_RDWR : O_RDONLY) | O_CLOEXEC;
    const driver_info *info = H5Pget_driver_info(access);
    (void)most;
    noting_file *file = calloc(1, sizeof *file);
    if (!file) return NULL;
    if (flags & H5F_ACC_TRUNC) how |= O_TRUNC;
    if (flags & H5F_ACC_CREAT) how |= O_CREAT;
    if (info) file->info = *info;
    file->fd = open(name, how, 0666);
    if (file->fd >= 0 && fstat(file->fd, &st) == 0) {
        file->end = (haddr_t)st.st_size;
        return &file->base;
    }
    if (file->fd >= 0) close(file->fd);
    free(file);
    return NULL;
}

/* Says why, where HDF5 keeps what went wrong. */
static herr_t failed(const char *what, int error) {
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_CANTOPERATE,
             "%s failed: errno = %d, error message = '%s'", what, error, strerror(error));
    return -1;
}

/* Noted where the file is written: HDF5 goes on. */
static herr_t refused(const noting_file *file, const char *what, int error) {
    tsr_h5_refused *to = file->info.refused;
    if (!to) return failed(what, error);
    if (to->error == 0) to->error = error;
    return 0;
}

static herr_t noting_close(H5FD_t *base) {
    noting_file *file = (noting_file *)base;
    const herr_t closed = close(file->fd) == 0 ? 0 : refused(file, "closing", errno);
    free(file);
    return closed;
}

/* As HDF5's own driver, so that a file is laid out as by that one. */
static herr_t noting_query(const H5FD_t *base, unsigned long *flags) {
    (void)base;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
#ifdef H5FD_FEAT_DEFAULT_VFD_COMPATIBLE
    *flags |= H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
#endif
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
    noting_file *file = (noting_file *)base;
    if (file->info.notes) *handle = &file->noted;
    else *handle = &file->fd;
    return 0;
}

static void note(noting_file *file, haddr_t address, size_t bytes) {
    file->noted.count++;
    file->noted.address = (int64_t)address;
    file->noted.bytes = bytes;
}

/* What is behind the file's end is zeros, as HDF5's own driver has it. */
static herr_t noting_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes, void *to) {
    noting_file *file = (noting_file *)base;
    (void)transfer;
    if (type == H5FD_MEM_DRAW && file->info.notes) {
        note(file, address, bytes);
        return 0;
    }
    const ssize_t done = tsr_read_at(file->fd, to, bytes, (int64_t)address);
    if (done < 0) return failed("reading", errno);
    memset((char *)to + done, 0, bytes - (size_t)done);
    return 0;
}

static herr_t noting_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t bytes,
                           const void *from) {
    noting_file *file = (noting_file *)base;
    (void)transfer;
    if (type == H5FD_MEM_DRAW && file->info.notes) {
        note(file, address, bytes);
        return 0;
    }
    const int error = tsr_write_at(file->fd, from, bytes, (int64_t)address);
    if (address + bytes > file->end) file->end = address + bytes;
    return error ? refused(file, "writing", error) : 0;
}

/* The file becomes as long as what HDF5 has given places to: raw data will come there. */
static herr_t noting_truncate(H5FD_t *base, hid_t transfer, hbool_t closing) {
    noting_file *file = (noting_file *)base;
    (void)transfer;
    (void)closing;
    if (file->end == file->end_allocated) return 0;
    const int error = ftruncate(file->fd, (off_t)file->end_allocated) != 0 ? errno : 0;
    file->end = file->end_allocated;
    return error ? refused(file, "setting the length", error) : 0;
}

static const H5FD_class_t noting_driver = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)511, /* for drivers that are in no list: 256 to 511 */
#endif
    .name = "tessera",
    .fapl_size = sizeof(driver_info),
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
    .truncate = noting_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* ---- files under it -------------------------------------------------------------------------- */

static bool set_driver(hid_t access, driver_info info) {
    const hid_t driver = H5FDregister(&noting_driver);
    const bool set = driver >= 0 && H5Pset_driver(access, driver, &info) >= 0;
    if (driver >= 0) H5FDunregister(driver); /* the list holds it */
    return set;
}

bool tsr_h5_set_writing(hid_t access, tsr_h5_refused *refused) {
    *refused = (tsr_h5_refused){0};
    return set_driver(access, (driver_info){.refused = refused});
}

tsr_status tsr_h5_check_written(const char *name, const tsr_h5_refused *refused) {
    if (refused->error == 0) return TSR_OK;
    return tsr_fail(tsr_write_status(refused->error), "cannot write '%s': %s; %s", name, strerror(refused->error),
                    tsr_write_advice(refused->error));
}

tsr_status tsr_h5_close_written(hid_t file, hid_t dataset, const char *name, const tsr_h5_refused *refused,
                                tsr_status status) {
    if (dataset >= 0 && H5Dclose(dataset) < 0 && status == TSR_OK)
        status = tsr_h5_fail(TSR_ERR_IO, "cannot close the dataset in '%s'", name);
    if (file >= 0 && H5Fclose(file) < 0 && status == TSR_OK)
        status = tsr_h5_fail(TSR_ERR_IO, "cannot close '%s'; check the disk", name);
    TSR_TRY(tsr_h5_check_written(name, refused));
    return status;
}

tsr_status tsr_h5_open_noting(const char *name, tsr_h5_refused *refused, const char *advice, hid_t *id,
                              tsr_h5_noted **noted) {
    void *handle = NULL;
    *id = -1;
    TSR_TRY(tsr_h5_room(name));
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (refused) *refused = (tsr_h5_refused){0};
    if (access >= 0 && set_driver(access, (driver_info){.refused = refused, .notes = true}))
        *id = H5Fopen(name, refused ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access);
    tsr_status status = TSR_OK;
    if (*id < 0 || H5Fget_vfd_handle(*id, H5P_DEFAULT, &handle) < 0)
        status = tsr_h5_fail(refused ? TSR_ERR_IO : TSR_ERR_FORMAT, "cannot open '%s' %s", name, advice);
    if (access >= 0) H5Pclose(access);
    *noted = handle;
    return status;
}
