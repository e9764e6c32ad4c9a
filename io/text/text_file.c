/* Text files that appear whole (text_file.h). */
#include "io/text/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files/attributes.h"
#include "io/files/file_bytes.h"
#include "io/files/new_file.h"
#include "io/files/unfinished.h"
#include "io/signature/signature.h"
#include "io/text/text_pipe.h"

#define FILES_AT_ONCE 4 /* files of text that a command writes, and more */

static char output_name[32]; /* what "-" became, "" where nobody asked for it */

/* The descriptor that "/dev/fd/N" and the like name, -1 for any other name. */
static int descriptor_of(const char *file) {
    int fd, chars = 0;
    if (strcmp(file, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(file, "/dev/stderr") == 0) return STDERR_FILENO;
    return sscanf(file, "/dev/fd/%9d%n", &fd, &chars) == 1 && file[chars] == '\0' ? fd : -1;
}

bool tsr_text_file_is_output(const char *file) {
    return descriptor_of(file) == STDOUT_FILENO || (*output_name && strcmp(file, output_name) == 0);
}

static tsr_status failed(const tsr_text_file *f, int error) {
    struct stat st;
    if ((error == ENXIO || error == ETIMEDOUT) && stat(f->file, &st) == 0 && S_ISFIFO(st.st_mode))
        return tsr_fail(TSR_ERR_IO, "cannot write the %s '%s': nobody read this pipe for %d s; start its reader first",
                        f->what, f->file, TSR_READER_SECONDS);
    if (tsr_text_file_is_output(f->file))
        return tsr_fail(tsr_write_status(error), "cannot write the %s to standard output: %s; choose another place",
                        f->what, strerror(error));
    return tsr_fail(tsr_write_status(error), "cannot write the %s '%s': %s; choose another place", f->what, f->file,
                    strerror(error));
}

/* A link is followed, as a rename would not: the file it leads to is replaced, and the link stays. */
tsr_status tsr_text_file_follow(const char **file, char *target) {
    struct stat st;
    if (!*file || descriptor_of(*file) >= 0 || lstat(*file, &st) != 0 || !S_ISLNK(st.st_mode)) return TSR_OK;
    const int error = tsr_link_follow(*file, target);
    if (error == EPERM)
        return tsr_fail(TSR_ERR_IO, "'%s' is a link that another user made where everybody may write: name a file",
                        *file);
    if (error == ENOENT && stat(*file, &st) != 0)
        return tsr_fail(TSR_ERR_IO, "'%s' is a symbolic link to nothing: remove it", *file);
    if (error == 0) *file = target;
    return TSR_OK;
}

static tsr_status follow_link(const char **file) {
    static char targets[FILES_AT_ONCE][PATH_MAX];
    static int used;
    if (used == FILES_AT_ONCE) return TSR_OK;
    TSR_TRY(tsr_text_file_follow(file, targets[used]));
    used += *file == targets[used];
    return TSR_OK;
}

tsr_status tsr_text_file_resolve(const char **file) {
    if (!*file) return TSR_OK;
    if (strcmp(*file, "-") != 0) return follow_link(file);
    fflush(stdout);
    if ((fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY)
        return tsr_fail(TSR_ERR_IO, "standard output cannot be written: it is closed; name a file");
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return tsr_fail(TSR_ERR_IO, "standard output cannot be written: %s; name a file", strerror(errno));
    snprintf(output_name, sizeof output_name, "/dev/fd/%d", fd);
    *file = output_name;
    return TSR_OK;
}

/* Of a descriptor, which is closed on failure; NULL and errno then. */
static FILE *stream_of(int fd) {
    FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    int error = errno;
    if (!stream && fd >= 0) close(fd);
    errno = error;
    return stream;
}

static FILE *open_special(const char *file) {
    struct stat st;
    const int fd = descriptor_of(file);
    if (fd >= 0) return stream_of(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (stat(file, &st) == 0 && S_ISFIFO(st.st_mode)) return tsr_text_pipe_open(file);
    return stream_of(open(file, O_WRONLY | O_NOCTTY | O_CLOEXEC));
}

bool tsr_text_file_is_special(const char *file) {
    struct stat st;
    return descriptor_of(file) >= 0 || (stat(file, &st) == 0 && !S_ISREG(st.st_mode));
}

bool tsr_text_file_temporary(const char *file, char temporary[TSR_TEMPORARY_CHARS]) {
    /* ranks of several nodes may write one file */
    char host[64] = "host", letters[TSR_RANDOM_CHARS], ending[128];
    gethostname(host, sizeof host - 1);
    tsr_random_letters(letters);
    snprintf(ending, sizeof ending, ".tessera-%s-%ld-%s.tmp", host, (long)getpid(), letters);
    return tsr_name_beside(file, "", ending, temporary, TSR_TEMPORARY_CHARS);
}

/* What a file begins as that is no text: a .npy file, or one with zeros among its first bytes, as bare matrices have;
 * else NULL. False with errno where it cannot be read. */
static bool look_for_bytes(int fd, const char **kind) {
    char first[4096];
    const ssize_t chars = tsr_read_at(fd, first, sizeof first, 0);
    *kind = NULL;
    if (chars < 0) return false;
    if (tsr_npy_signature(first, chars)) *kind = "a .npy";
    else if (memchr(first, '\0', (size_t)chars)) *kind = "a binary";
    return true;
}

/* What must not be replaced by a text: data, and what is no file. A file that cannot be looked into may be either. */
static tsr_status refuse_data(const char *what, const char *file) {
    struct stat st = {.st_mode = 0};
    int64_t at = -1;
    const char *kind = NULL;
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return TSR_OK;
    const bool seen = fd >= 0 && fstat(fd, &st) == 0 &&
                      (!S_ISREG(st.st_mode) || (tsr_hdf5_signature(fd, st.st_size, &at) && look_for_bytes(fd, &kind)));
    const int error = seen ? 0 : errno;
    if (fd >= 0) close(fd);
    if (error)
        return tsr_fail(TSR_ERR_IO, "cannot look into '%s', which the %s would replace: %s; name another file", file,
                        what, strerror(error));
    if (!S_ISREG(st.st_mode))
        return tsr_fail(TSR_ERR_IO, "'%s' is no regular file, and the %s would replace it: name another", file, what);
    if (at < 0 && !kind) return TSR_OK;
    return tsr_fail(TSR_ERR_EXISTS, "'%s' is %s file, which the %s would replace: name another file", file,
                    at < 0 ? kind : "an HDF5", what);
}

tsr_status tsr_text_file_open(const char *what, const char *file, tsr_text_file *opened) {
    tsr_text_file f = {.what = what, .file = file, .special = tsr_text_file_is_special(file)};
    if (!f.special && !tsr_text_file_temporary(file, f.temporary)) return failed(&f, ENAMETOOLONG);
    if (!f.special) TSR_TRY(refuse_data(what, file));
    f.to = f.special ? open_special(file) : stream_of(tsr_unfinished_make(f.temporary, 0666));
    if (!f.to) {
        const int error = errno;
        if (!f.special && error != EEXIST) unlink(f.temporary); /* it was made, and had no stream */
        tsr_unfinished_done(f.temporary);
        return failed(&f, error);
    }
    if (!f.special) tsr_attributes_keep(file, fileno(f.to), NULL);
    *opened = f;
    return TSR_OK;
}

/* Whether it is there. One that cannot be looked at is, too: what is asked for is what must not be replaced. */
static bool is_there(const char *file, struct stat *st, bool *seen) {
    *seen = stat(file, st) == 0;
    return *seen || (errno != ENOENT && errno != ENOTDIR);
}

bool tsr_same_place(const char *a, const char *b) {
    struct stat one, other;
    bool seen[2];
    if (!is_there(a, &one, &seen[0]) || !is_there(b, &other, &seen[1])) return false;
    if (!seen[0] || !seen[1]) return true;
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool tsr_text_file_holds(const char *file) {
    struct stat st;
    return stat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

bool tsr_text_file_begins(const char *file, const char *text) {
    FILE *from = tsr_text_file_holds(file) ? fopen(file, "re") : NULL;
    const char *next = text;
    while (from && *next && fgetc(from) == (unsigned char)*next) next++;
    if (from) fclose(from);
    return *next == '\0';
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
    tsr_text_file f = {.to = NULL};
    if (tsr_text_file_is_special(file) && !(stat(file, &st) == 0 && S_ISDIR(st.st_mode))) return TSR_OK;
    TSR_TRY(tsr_text_file_open(what, file, &f));
    fclose(f.to);
    if (!f.special) {
        unlink(f.temporary);
        tsr_unfinished_done(f.temporary);
    }
    return TSR_OK;
}

tsr_status tsr_text_file_close(tsr_text_file *f, int error) {
    errno = 0;
    bool ok = error == 0 && fflush(f->to) == 0 && !ferror(f->to) && (f->special || fsync(fileno(f->to)) == 0);
    if (!ok && error == 0) error = errno ? errno : EIO;
    if (fclose(f->to) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (ok && !f->special && rename(f->temporary, f->file) != 0) {
        ok = false;
        error = errno;
    }
    if (!ok && !f->special) unlink(f->temporary);
    tsr_unfinished_done(f->temporary);
    f->to = NULL;
    return ok ? TSR_OK : failed(f, error);
}
