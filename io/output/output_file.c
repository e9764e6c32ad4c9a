/* The temporary file of an output: made beside the target under a name that says whose it is, locked while its run
 * lives, filled with a copy of the target where that holds other things, and allocated on disk. */
#define _GNU_SOURCE /* copy_file_range, fallocate, F_OFD_SETLK */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/files/file_bytes.h"
#include "io/files/namespaces.h"
#include "io/files/new_file.h"
#include "io/files/unfinished.h"
#include "io/output/output_private.h"
#include "io/output/resume/spill.h"

static const char *base_of(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

/* ---- whose a temporary file is --------------------------------------------------------------- */

#define HOST_CHARS 96

/* Locks belong to the open file (not the process), and do not meet the locks HDF5 takes with flock. */
tsr_lock tsr_temporary_lock(int fd, bool writable) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, writable ? F_OFD_SETLK : F_OFD_GETLK, &lock) != 0)
        return errno == EAGAIN || errno == EACCES ? TSR_LOCK_HELD : TSR_LOCK_UNKNOWN;
    return writable || lock.l_type == F_UNLCK ? TSR_LOCK_FREE : TSR_LOCK_HELD;
}

/* A container that numbers processes apart is a machine of its own: HOST-pNUMBER. */
static void host_name(char host[HOST_CHARS]) {
    const uint64_t numbers = tsr_pid_namespace();
    snprintf(host, HOST_CHARS, "host");
    gethostname(host, 63);
    host[63] = '\0';
    const size_t used = strlen(host);
    if (numbers != 0 && numbers != TSR_FIRST_PID_NAMESPACE)
        snprintf(host + used, HOST_CHARS - used, "-p%llu", (unsigned long long)numbers);
}

/* The process that made a file called HOST-PID[-LETTERS[-MORE]].tmp where HOST is this machine; 0 for other names. */
static long maker_here(const char *ending) {
    char text[TSR_FILE_CHARS], host[HOST_CHARS], *end;
    host_name(host);
    snprintf(text, sizeof text, "%.*s", (int)(strlen(ending) - 4), ending);
    for (char *last; (last = strrchr(text, '-')) != NULL; *last = '\0') {
        long pid = strtol(last + 1, &end, 10);
        if (last[1] < '0' || last[1] > '9' || *end != '\0') continue;
        *last = '\0';
        return strcmp(text, host) == 0 && pid <= INT_MAX ? pid : 0;
    }
    return 0;
}

/* This process has made none so far. */
bool tsr_temporary_is_dead(const char *ending) {
    const long pid = maker_here(ending);
    return pid == (long)getpid() || (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH);
}

/* 'x', as a shell reads it. */
static void quote(const char *text, char *to, size_t chars) {
    size_t used = 0;
    to[used++] = '\'';
    for (; *text && used + 6 < chars; text++) {
        if (*text == '\'') {
            memcpy(to + used, "'\\''", 4);
            used += 4;
        } else to[used++] = *text;
    }
    to[used++] = '\'';
    to[used] = '\0';
}

static tsr_status busy(const tsr_target *target, const char *name) {
    char quoted[2 * TSR_FILE_CHARS];
    quote(name, quoted, sizeof quoted);
    return tsr_fail(TSR_ERR_EXISTS,
                    "another run is writing '%s' now, or was killed here: wait for it or choose another file; when it "
                    "is dead, remove what it left: rm %s",
                    target->file, quoted);
}

typedef struct {
    const tsr_target *target;
    bool force;
} stale_search;

void tsr_beside_temporary(const char *temporary, const char *ending, char *name, size_t chars) {
    snprintf(name, chars, "%.*s%s", (int)(strlen(temporary) - strlen(".tmp")), temporary, ending);
}

/* What a run left: an output that a later one may go on with goes only where somebody said so. Another user's file may
 * stay: it is in nobody's way. */
static tsr_status remove_left(const stale_search *s, const char *name) {
    char journal[TSR_FILE_CHARS + 8], head[TSR_FILE_CHARS + 8];
    struct stat st;
    tsr_beside_temporary(name, ".parts", journal, sizeof journal);
    tsr_beside_temporary(name, ".head", head, sizeof head);
    if (!s->force && lstat(journal, &st) == 0)
        return tsr_fail(
            TSR_ERR_EXISTS,
            "an earlier run with --resume left '%s' unfinished: go on with --resume, or remove what it left "
            "with --force",
            s->target->file);
    tsr_spill_remove(s->target, name);
    unlink(journal);
    unlink(head);
    unlink(name);
    return TSR_OK;
}

/* A file that can be locked has no living run. What is no plain file is no run's, whatever its name. `ending`: of its
 * name, from the machine on. */
static tsr_status remove_if_stale(void *context, const char *name, const char *ending) {
    const stale_search *s = context;
    const tsr_target *target = s->target;
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct stat st;
    if (lstat(name, &st) != 0 ? errno == ENOENT : !S_ISREG(st.st_mode)) return TSR_OK;
    int fd = open(name, O_RDWR | flags);
    const bool writable = fd >= 0;
    if (!writable && errno == EACCES) fd = open(name, O_RDONLY | flags); /* another user's */
    if (fd < 0 && errno == ENOENT) return TSR_OK;
    const tsr_lock state = fd < 0 ? TSR_LOCK_UNKNOWN : tsr_temporary_lock(fd, writable);
    const bool stale = state == TSR_LOCK_FREE || (state == TSR_LOCK_UNKNOWN && tsr_temporary_is_dead(ending));
    const tsr_status status = stale ? remove_left(s, name) : busy(target, name);
    if (fd >= 0) close(fd);
    return status;
}

tsr_status tsr_temporary_each(const tsr_target *target, const char *ending,
                              tsr_status (*see)(void *context, const char *name, const char *after), void *context) {
    char prefix[TSR_FILE_CHARS + 16], name[2 * TSR_FILE_CHARS];
    if (!tsr_name_beside(base_of(target->file), ".", ".tessera-", prefix, sizeof prefix)) return TSR_OK;
    DIR *folder = opendir(target->folder);
    if (!folder) return TSR_OK; /* a folder may be written but not listed */
    tsr_status status = TSR_OK;
    for (struct dirent *entry; status == TSR_OK && (entry = readdir(folder));) {
        const size_t chars = strlen(entry->d_name);
        const size_t known = strlen(prefix), last = strlen(ending);
        if (strncmp(entry->d_name, prefix, known) != 0 || chars < known + last) continue;
        if (strcmp(entry->d_name + chars - last, ending) != 0) continue;
        snprintf(name, sizeof name, "%s/%s", target->folder, entry->d_name);
        status = see(context, name, entry->d_name + known);
    }
    closedir(folder);
    return status;
}

/* ---- making it ------------------------------------------------------------------------------- */

/* Another run may take a file not yet locked for a stale one: what counts is that the name still leads to it. */
static bool is_gone(const char *name, int fd) {
    struct stat by_name, by_fd;
    if (fstat(fd, &by_fd) != 0) return false;
    if (lstat(name, &by_name) != 0) return errno == ENOENT;
    return by_name.st_ino != by_fd.st_ino || by_name.st_dev != by_fd.st_dev;
}

/* .NAME.tessera-HOST-PID-LETTERS.tmp; 0.1.0 had no letters. */
static tsr_status draw_name(const tsr_target *target, char *name) {
    char host[HOST_CHARS], letters[TSR_RANDOM_CHARS], ending[160], beside[2 * TSR_FILE_CHARS];
    host_name(host);
    tsr_random_letters(letters);
    snprintf(ending, sizeof ending, ".tessera-%s-%ld-%s.tmp", host, (long)getpid(), letters);
    snprintf(beside, sizeof beside, "%s/%s", target->folder, base_of(target->file));
    if (tsr_name_beside(beside, ".", ending, name, TSR_FILE_CHARS)) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "the output '%.60s...' has too long a name; choose a shorter one", target->file);
}

/* Nobody may read it who may not read the target. */
static tsr_status make_locked(const tsr_target *target, char *name, int *fd) {
    for (int tries = 0; tries < 8; tries++) {
        TSR_TRY(draw_name(target, name));
        int made = tsr_unfinished_make(name, target->exists ? 0600 : 0666);
        if (made < 0 && errno == EEXIST) continue;
        if (made < 0)
            return tsr_fail(tsr_write_status(errno),
                            "cannot make the temporary file '%s': %s; choose another folder or name", name,
                            strerror(errno));
        tsr_temporary_lock(made, true); /* where locks are missing, no run takes another's file for stale either */
        if (!is_gone(name, made)) {
            *fd = made;
            return TSR_OK;
        }
        unlink(name);
        tsr_unfinished_done(name);
        close(made);
    }
    return tsr_fail(TSR_ERR_IO, "the temporary file '%s' disappears when made; choose another folder", name);
}

tsr_status tsr_temporary_create(const tsr_target *target, bool force, char *name, int *fd) {
    TSR_TRY(tsr_temporary_each(target, ".tmp", remove_if_stale, &(stale_search){target, force}));
    tsr_spill_sweep(target);
    return make_locked(target, name, fd);
}

/* ---- copy ------------------------------------------------------------------------------------ */

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
        error = tsr_write_at(to, buffer, (size_t)got, offset);
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
        ssize_t copied =
            copy_file_range(from, &in, to, &out, left < TSR_TRANSFER_BYTES_MAX ? left : TSR_TRANSFER_BYTES_MAX, 0);
        if (copied < 0 && errno == EINTR) continue;
        if (copied < 0 && (errno == EIO || tsr_write_status(errno) == TSR_ERR_SPACE)) return errno;
        if (copied <= 0) return copy_through_memory(from, to, offset);
        offset += copied;
    }
    return 0;
}

tsr_status tsr_temporary_copy(const tsr_target *target, const char *name, int fd) {
    int from = open(target->file, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return tsr_fail(TSR_ERR_IO, "cannot read '%s' to keep what it holds: %s", target->file, strerror(errno));
    int error = copy_all(from, fd, target->file_bytes);
    close(from);
    if (tsr_write_status(error) == TSR_ERR_SPACE)
        return tsr_space_fail(target->folder, target->bytes + (size_t)target->file_bytes,
                              "what the file holds already is copied first");
    if (error) return tsr_fail(TSR_ERR_IO, "cannot copy '%s' to '%s': %s", target->file, name, strerror(error));
    return TSR_OK;
}

/* ---- disk ------------------------------------------------------------------------------------ */

tsr_status tsr_space_fail(const char *folder, size_t need_bytes, const char *why) {
    struct statvfs fs;
    char need[32], have[32] = "?";
    tsr_format_bytes((double)need_bytes, need);
    if (statvfs(folder, &fs) == 0) tsr_format_bytes((double)fs.f_bavail * (double)fs.f_frsize, have);
    return tsr_fail(TSR_ERR_SPACE,
                    "the output needs %s in '%s', where %s are free: %s; free some space or choose another folder",
                    need, folder, have, why);
}

tsr_status tsr_temporary_allocate(const char *folder, const char *name, int fd, int64_t offset, size_t bytes) {
    if (bytes == 0) return TSR_OK;
    int error;
    do error = fallocate(fd, 0, offset, (off_t)bytes) == 0 ? 0 : errno;
    while (error == EINTR);
    /* then the check of free space has to do */
    if (error == 0 || error == EOPNOTSUPP || error == ENOSYS) return TSR_OK;
    if (tsr_write_status(error) == TSR_ERR_SPACE) return tsr_space_fail(folder, bytes, strerror(error));
    return tsr_fail(TSR_ERR_IO, "cannot allocate %zu bytes of '%s': %s", bytes, name, strerror(error));
}

tsr_status tsr_folder_sync(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    if (error == 0 || error == EINVAL || error == EACCES) return TSR_OK; /* not every file system syncs folders */
    return tsr_fail(TSR_ERR_IO, "the output is in place, but syncing its folder '%s' failed: %s; check the disk",
                    folder, strerror(error));
}
