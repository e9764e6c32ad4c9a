/* HDF5 files opened and watched (hdf5_file.h). */
#include "io/hdf5/access/hdf5_file.h"

#include <string.h>
#include <sys/mman.h>

#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_path.h"

#define OPENING_BYTES ((size_t)4 << 20)

tsr_status tsr_h5_room(const char *file) {
    void *room = mmap(NULL, OPENING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return tsr_fail(TSR_ERR_MEMORY, "no memory to open '%s'", file);
    munmap(room, OPENING_BYTES);
    return TSR_OK;
}

hid_t tsr_h5_access(bool locking) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0) return access;
    herr_t error = H5Pset_fapl_sec2(access);
    if (error >= 0) error = H5Pset_sieve_buf_size(access, 0);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 10 && H5_VERS_RELEASE >= 7)
    if (error >= 0) error = H5Pset_file_locking(access, locking, true);
#else
    (void)locking;
#endif
    if (error >= 0) return access;
    H5Pclose(access);
    return -1;
}

/* For writing with `refused`. */
static hid_t open_with(const char *file, tsr_h5_refused *refused, bool locking, char text[TSR_H5_ERROR_CHARS]) {
    hid_t id = -1;
    hid_t access = tsr_h5_access(locking);
    if (access >= 0 && (!refused || tsr_h5_set_writing(access, refused)))
        id = H5Fopen(file, refused ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access);
    if (id < 0) tsr_h5_error_text(text);
    if (access >= 0) H5Pclose(access);
    return id;
}

static tsr_status open_read(const char *file, const char *advice, hid_t *id) {
    char text[TSR_H5_ERROR_CHARS];
    *id = -1;
    TSR_TRY(tsr_h5_room(file));
    *id = open_with(file, NULL, true, text);
    /* a file system without locks (NFS, Lustre) is no reason to refuse; a writer at work (EAGAIN) is */
    if (*id < 0 && strstr(text, "lock file") && !strstr(text, "errno = 11,")) *id = open_with(file, NULL, false, text);
    if (*id >= 0) return TSR_OK;
    if (strstr(text, "lock file"))
        return tsr_fail(TSR_ERR_IO,
                        "'%s' is locked: another program has it open for writing; wait for it, %s (HDF5: %s)", file,
                        advice, text);
    if (strstr(text, "truncated"))
        return tsr_fail(TSR_ERR_FORMAT, "'%s' is truncated: copy it again or make it anew (HDF5: %s)", file, text);
    return tsr_fail(
        TSR_ERR_FORMAT,
        "'%s' cannot be opened: it is damaged or still being written; check it with h5ls, copy it again (HDF5: %s)",
        file, text);
}

tsr_status tsr_h5_open_read(const char *file, hid_t *id) {
    return open_read(file, "or, where no program has, set HDF5_USE_FILE_LOCKING=FALSE", id);
}

tsr_status tsr_h5_open_replaced(const char *file, hid_t *id) {
    return open_read(file, "or name another output: what it writes later would be lost", id);
}

tsr_status tsr_h5_open_write(const char *file, const char *advice, tsr_h5_refused *refused, hid_t *id) {
    char text[TSR_H5_ERROR_CHARS];
    *id = -1;
    TSR_TRY(tsr_h5_room(file));
    *id = open_with(file, refused, false, text);
    if (*id >= 0) return TSR_OK;
    return tsr_fail(TSR_ERR_IO, "cannot open '%s' for writing through HDF5; %s (HDF5: %s)", file, advice, text);
}

/* ---- what is open ---------------------------------------------------------------------------- */

tsr_status tsr_h5_descriptor(hid_t file, const char *name, int *fd) {
    void *handle = NULL;
    if (H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0 || !handle)
        return tsr_h5_fail(TSR_ERR_IO, "'%s': HDF5 does not say which file it opened; use --io direct", name);
    *fd = *(const int *)handle;
    return TSR_OK;
}

tsr_status tsr_h5_watch(tsr_store *store, hid_t file) {
    int fd = -1;
    TSR_TRY(tsr_h5_descriptor(file, store->desc.name.file, &fd));
    return tsr_store_watch(store, fd);
}

tsr_status tsr_h5_check_address(const tsr_store *store, hid_t dataset) {
    const tsr_store_desc *desc = &store->desc;
    const int64_t address = tsr_h5_address(dataset);
    if (!desc->file_state.known || address == desc->hdf5.header_address) return TSR_OK;
    return tsr_fail(TSR_ERR_IO,
                    "'%s' changed during the run: '%s' was at byte %lld, then at byte %lld; run again while no program "
                    "writes or replaces it",
                    desc->name.file, desc->name.path, (long long)desc->hdf5.header_address, (long long)address);
}
