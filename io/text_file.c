/* Text files that appear whole (text_file.h). */
#include "io/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_AT_ONCE 4 /* files of text that a command writes, and more */

static tsr_status failed(const tsr_text_file *f, int error) {
    return tsr_fail(tsr_write_status(error), "cannot write the %s '%s': %s; choose another place", f->what, f->file,
                    strerror(error));
}

/* The descriptor that "/dev/fd/N" and the like name, -1 for any other name. */
static int descriptor_of(const char *file) {
    int fd, chars = 0;
    if (strcmp(file, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(file, "/dev/stderr") == 0) return STDERR_FILENO;
    return sscanf(file, "/dev/fd/%9d%n", &fd, &chars) == 1 && file[chars] == '\0' ? fd : -1;
}

/* A link is followed, as a rename would not: the file it leads to is replaced, and the link stays. */
static void follow_link(const char **file) {
    static char targets[FILES_AT_ONCE][PATH_MAX];
    static int used;
    struct stat st;
    if (descriptor_of(*file) >= 0 || lstat(*file, &st) != 0 || !S_ISLNK(st.st_mode) || used == FILES_AT_ONCE) return;
    if (realpath(*file, targets[used])) *file = targets[used++];
}

tsr_status tsr_text_file_resolve(const char **file) {
    static char name[32];
    if (*file && strcmp(*file, "-") != 0) follow_link(file);
    if (!*file || strcmp(*file, "-") != 0) return TSR_OK;
    fflush(stdout);
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return tsr_fail(TSR_ERR_IO, "standard output cannot be written: %s; name a file", strerror(errno));
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    *file = name;
    return TSR_OK;
}

FILE *tsr_text_file_stream(const char *file) {
    int fd = descriptor_of(file);
    if (fd < 0) return fopen(file, "we");
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!stream && fd >= 0) close(fd);
    return stream;
}

bool tsr_text_file_is_special(const char *file) {
    struct stat st;
    return descriptor_of(file) >= 0 || (stat(file, &st) == 0 && !S_ISREG(st.st_mode));
}

bool tsr_text_file_temporary(const char *file, const char *more, char temporary[TSR_TEMPORARY_CHARS]) {
    char host[64] = "host"; /* ranks of several nodes may write one file */
    gethostname(host, sizeof host - 1);
    return snprintf(temporary, TSR_TEMPORARY_CHARS, "%s.tessera-%s-%ld%s%s.tmp", file, host, (long)getpid(),
                    *more ? "-" : "", more) < TSR_TEMPORARY_CHARS;
}

/* The signature may stand behind a user block of 512 bytes or more. */
static bool holds_hdf5(const char *file) {
    char start[8];
    bool found = false;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    for (off_t at = 0; fd >= 0 && !found && at <= 4096; at = at ? 2 * at : 512)
        found =
            pread(fd, start, sizeof start, at) == sizeof start && memcmp(start, "\211HDF\r\n\032\n", sizeof start) == 0;
    if (fd >= 0) close(fd);
    return found;
}

tsr_status tsr_text_file_open(const char *what, const char *file, tsr_text_file *opened) {
    tsr_text_file f = {.what = what, .file = file, .special = tsr_text_file_is_special(file)};
    if (!f.special && !tsr_text_file_temporary(file, "", f.temporary)) return failed(&f, ENAMETOOLONG);
    if (!f.special && holds_hdf5(file))
        return tsr_fail(TSR_ERR_EXISTS, "'%s' is an HDF5 file, which the %s would replace: name another file", file,
                        what);
    f.to = tsr_text_file_stream(f.special ? file : f.temporary);
    if (!f.to) return failed(&f, errno);
    *opened = f;
    return TSR_OK;
}

bool tsr_same_place(const char *a, const char *b) {
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* Of names without a file the folders are compared: "" before the last slash is the root, and no slash the working
 * folder. */
bool tsr_same_file(const char *a, const char *b) {
    struct stat st;
    char folders[2][PATH_MAX];
    const char *names[2] = {a, b}, *last[2];
    if (strcmp(a, b) == 0 && (stat(a, &st) != 0 || S_ISREG(st.st_mode))) return true;
    if (tsr_same_place(a, b)) return stat(a, &st) == 0 && S_ISREG(st.st_mode);
    if (stat(a, &st) == 0 || stat(b, &st) == 0) return false;
    for (int i = 0; i < 2; i++) {
        const char *slash = strrchr(names[i], '/');
        last[i] = slash ? slash + 1 : names[i];
        snprintf(folders[i], sizeof folders[i], "%.*s", slash ? (int)(slash - names[i] + 1) : 1,
                 slash ? names[i] : ".");
    }
    return strcmp(last[0], last[1]) == 0 && tsr_same_place(folders[0], folders[1]);
}

/* A pipe is not opened to see whether it could be: that would wait for its reader. */
tsr_status tsr_text_file_check(const char *what, const char *file) {
    struct stat st;
    tsr_text_file f;
    if (tsr_text_file_is_special(file) && !(stat(file, &st) == 0 && S_ISDIR(st.st_mode))) return TSR_OK;
    TSR_TRY(tsr_text_file_open(what, file, &f));
    fclose(f.to);
    if (!f.special) unlink(f.temporary);
    return TSR_OK;
}

tsr_status tsr_text_file_close(tsr_text_file *f, int error) {
    errno = 0;
    bool ok = error == 0 && fflush(f->to) == 0 && !ferror(f->to) && (f->special || fsync(fileno(f->to)) == 0);
    if (!ok && error == 0) error = errno ? errno : EIO;
    if (fclose(f->to) != 0 && ok) ok = false, error = errno;
    if (ok && !f->special && rename(f->temporary, f->file) != 0) ok = false, error = errno;
    if (!ok && !f->special) unlink(f->temporary);
    f->to = NULL;
    return ok ? TSR_OK : failed(f, error);
}
