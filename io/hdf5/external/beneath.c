/* Where a file really lies (beneath.h). */
#include "io/hdf5/external/beneath.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tsr_status tsr_beneath_root(const char *folder, const char *file, char root[TSR_FILE_CHARS]) {
    const char *of = *folder ? folder : file;
    char real[PATH_MAX];
    if (!realpath(of, real))
        return tsr_fail(errno == ENOENT || errno == ENOTDIR ? TSR_ERR_NOT_FOUND : TSR_ERR_IO,
                        "cannot look at '%s': %s; check its name", of, strerror(errno));
    if (!*folder) {
        char *slash = strrchr(real, '/');
        slash[slash == real] = '\0';
    }
    if (strlen(real) >= TSR_FILE_CHARS)
        return tsr_fail(TSR_ERR_USAGE, "the folder '%.60s...' has a path of more than %d characters; use a shorter one",
                        real, TSR_FILE_CHARS - 1);
    memcpy(root, real, strlen(real) + 1);
    return TSR_OK;
}

static bool is_below(const char *root, const char *path) {
    const size_t chars = strcmp(root, "/") == 0 ? 0 : strlen(root);
    return strncmp(root, path, chars) == 0 && path[chars] == '/';
}

static tsr_status outside(const char *root, const char *file, const char *real) {
    return tsr_fail(TSR_ERR_FORMAT,
                    "'%s' lies outside of '%s' (it is '%s'), and only files below that are read; use "
                    "--allow-external=FOLDER with a folder that holds it",
                    file, root, real);
}

tsr_status tsr_beneath_path(const char *root, const char *file) {
    char real[PATH_MAX];
    struct stat st;
    if (!realpath(file, real) || stat(real, &st) != 0)
        return tsr_fail(errno == ENOENT || errno == ENOTDIR ? TSR_ERR_NOT_FOUND : TSR_ERR_IO,
                        "cannot look at '%s': %s; check that it is there", file, strerror(errno));
    if (!is_below(root, real)) return outside(root, file, real);
    if (S_ISREG(st.st_mode)) return TSR_OK;
    return tsr_fail(TSR_ERR_FORMAT, "'%s' is not a regular file, and only such are read; put the data in a file", file);
}

tsr_status tsr_beneath_open(const char *root, const char *file, int fd) {
    char link[64];
    char real[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t chars = readlink(link, real, sizeof real - 1);
    if (chars < 0)
        return tsr_fail(TSR_ERR_IO, "cannot tell where '%s' lies: %s; --allow-external needs /proc", file,
                        strerror(errno));
    real[chars] = '\0';
    return is_below(root, real) ? TSR_OK : outside(root, file, real);
}
