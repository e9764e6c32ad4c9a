/* The temporary file of an output: made beside the target under a name that says whose it is, locked while its run lives, filled with a
 * copy of the target where that holds other things, and allocated on disk. */
#define _GNU_SOURCE /* copy_file_range, fallocate, F_OFD_SETLK */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/output_private.h"

static const char *base_of(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

/* Locks belong to the open file (not the process), and do not meet the locks HDF5 takes with flock. */
static bool lock_file(int fd) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* A file that can be locked has no living run. */
static tsr_status remove_if_stale(const tsr_target *target, const char *name) {
    int fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return TSR_OK;
    bool stale = fd >= 0 && lock_file(fd);
    if (stale) unlink(name);
    if (fd >= 0) close(fd);
    if (stale) return TSR_OK;
    return tsr_fail(TSR_ERR_EXISTS, "another run is writing '%s' now ('%s'); wait for it or choose another file; if that run is dead, remove that file",
                    target->file, name);
}

static tsr_status remove_stale(const tsr_target *target) {
    char prefix[TSR_FILE_CHARS + 16], name[2 * TSR_FILE_CHARS];
    snprintf(prefix, sizeof prefix, ".%s.tessera-", base_of(target->file));
    DIR *folder = opendir(target->folder);
    if (!folder) return TSR_OK; /* a folder may be written but not listed */
    tsr_status status = TSR_OK;
    for (struct dirent *entry; status == TSR_OK && (entry = readdir(folder));) {
        size_t chars = strlen(entry->d_name);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || chars < 4 || strcmp(entry->d_name + chars - 4, ".tmp") != 0) continue;
        snprintf(name, sizeof name, "%s/%s", target->folder, entry->d_name);
        status = remove_if_stale(target, name);
    }
    closedir(folder);
    return status;
}

static tsr_status create_fail(const char *name, int error) {
    return tsr_fail(tsr_write_status(error), "cannot make the temporary file '%s': %s; choose another folder or name", name, strerror(error));
}

/* Another run may take a file not yet locked for a stale one: what counts is that the name still leads to it. */
static bool still_there(const char *name, int fd) {
    struct stat by_name, by_fd;
    return stat(name, &by_name) == 0 && fstat(fd, &by_fd) == 0 && by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev;
}

tsr_status tsr_temporary_create(const tsr_target *target, char *name, int *fd) {
    char host[64] = "host";
    struct stat st;
    gethostname(host, sizeof host - 1);
    if (snprintf(name, TSR_FILE_CHARS, "%s/.%s.tessera-%s-%ld.tmp", target->folder, base_of(target->file), host, (long)getpid()) >= TSR_FILE_CHARS)
        return tsr_fail(TSR_ERR_USAGE, "the output '%.60s...' has too long a name; choose a shorter one", target->file);
    TSR_TRY(remove_stale(target));
    for (int tries = 0;; tries++) {
        int opened = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (opened < 0) return create_fail(name, errno);
        lock_file(opened); /* where locks are missing, no run takes another's file for stale either */
        if (still_there(name, opened)) {
            *fd = opened;
            break;
        }
        close(opened);
        if (tries == 8) return tsr_fail(TSR_ERR_IO, "the temporary file '%s' disappears when made; choose another folder", name);
    }
    if (target->exists && stat(target->file, &st) == 0) {
        if (fchown(*fd, st.st_uid, st.st_gid) != 0) errno = 0; /* only root can keep a stranger's file his */
        fchmod(*fd, st.st_mode & 07777);
    }
    return TSR_OK;
}

/* ---- copy ---------------------------------------------------------------------------------------------------------- */

int tsr_write_all(int fd, const void *from, size_t bytes, int64_t offset) {
    while (bytes > 0) {
        ssize_t put = pwrite(fd, from, bytes, offset);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return put < 0 ? errno : ENOSPC;
        from = (const char *)from + put, bytes -= (size_t)put, offset += put;
    }
    return 0;
}

/* Plain copy with a buffer, where the kernel has no faster way. 0 or an errno. */
static int copy_through_memory(int from, int to, int64_t offset) {
    size_t bytes = (size_t)8 << 20;
    char *buffer = malloc(bytes);
    int error = buffer ? 0 : ENOMEM;
    while (error == 0) {
        ssize_t got = pread(from, buffer, bytes, offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            error = got < 0 ? errno : 0;
            break;
        }
        error = tsr_write_all(to, buffer, (size_t)got, offset);
        offset += got;
    }
    free(buffer);
    return error;
}

static int copy_all(int from, int to, int64_t bytes) {
    if (ioctl(to, FICLONE, from) == 0) return 0;
    int64_t offset = 0;
    while (offset < bytes) {
        off64_t in = offset, out = offset;
        size_t left = (size_t)(bytes - offset);
        ssize_t copied = copy_file_range(from, &in, to, &out, left < TSR_TRANSFER_BYTES_MAX ? left : TSR_TRANSFER_BYTES_MAX, 0);
        if (copied < 0 && errno == EINTR) continue;
        if (copied < 0 && (errno == EIO || tsr_write_status(errno) == TSR_ERR_SPACE)) return errno;
        if (copied <= 0) return copy_through_memory(from, to, offset);
        offset += copied;
    }
    return 0;
}

tsr_status tsr_temporary_copy(const tsr_target *target, const char *name, int fd) {
    int from = open(target->file, O_RDONLY | O_CLOEXEC);
    if (from < 0) return tsr_fail(TSR_ERR_IO, "cannot read '%s' to keep what it holds: %s", target->file, strerror(errno));
    int error = copy_all(from, fd, target->file_bytes);
    close(from);
    if (tsr_write_status(error) == TSR_ERR_SPACE)
        return tsr_space_fail(target->folder, target->bytes + (size_t)target->file_bytes, "what the file holds already is copied first");
    if (error) return tsr_fail(TSR_ERR_IO, "cannot copy '%s' to '%s': %s", target->file, name, strerror(error));
    return TSR_OK;
}

/* ---- disk ------------------------------------------------------------------------------------------------------------ */

tsr_status tsr_temporary_allocate(const char *folder, const char *name, int fd, int64_t offset, size_t bytes) {
    if (bytes == 0) return TSR_OK;
    int error;
    do error = fallocate(fd, 0, offset, (off_t)bytes) == 0 ? 0 : errno;
    while (error == EINTR);
    if (error == 0 || error == EOPNOTSUPP || error == ENOSYS) return TSR_OK; /* then the check of free space has to do */
    if (tsr_write_status(error) == TSR_ERR_SPACE) return tsr_space_fail(folder, bytes, strerror(error));
    return tsr_fail(TSR_ERR_IO, "cannot allocate %zu bytes of '%s': %s", bytes, name, strerror(error));
}

tsr_status tsr_folder_sync(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    if (error == 0 || error == EINVAL || error == EACCES) return TSR_OK; /* not every file system syncs folders */
    return tsr_fail(TSR_ERR_IO, "the output is in place, but syncing its folder '%s' failed: %s; check the disk", folder, strerror(error));
}
