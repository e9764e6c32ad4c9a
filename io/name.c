/* Reads the names of matrices (name.h). The slice is cut off the end first, then the file is told from the path inside it: by "::/" or
 * ":/", else by the first prefix that is a file. */
#include "io/name.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FORMS "write file.h5, file.h5:/path, file.h5::/path or file.h5/path, each with an optional slice [r0:r1,c0:c1]"

static bool is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Whether a name ends as HDF5 files usually do, so that out.h5/C can name a file not there yet. */
static bool has_hdf5_ending(const char *file) {
    static const char *const endings[] = {".h5", ".hdf5", ".hdf", ".he5", ".mat", ".nc", ".nc4"};
    size_t chars = strlen(file);
    for (size_t e = 0; e < sizeof endings / sizeof *endings; e++) {
        size_t ending = strlen(endings[e]);
        if (chars > ending && strcmp(file + chars - ending, endings[e]) == 0) return true;
    }
    return false;
}

/* One bound of a slice: digits or nothing (-1). Moves *at behind it. */
static bool read_bound(const char **at, int64_t *bound) {
    *bound = -1;
    if (!isdigit((unsigned char)**at)) return true;
    char *end;
    errno = 0;
    long long value = strtoll(*at, &end, 10);
    if (errno != 0) return false;
    *bound = value;
    *at = end;
    return true;
}

static bool read_range(const char **at, int64_t *first, int64_t *last) {
    if (!read_bound(at, first) || *(*at)++ != ':' || !read_bound(at, last)) return false;
    return *first < 0 || *last < 0 || *first <= *last;
}

/* text: "[r0:r1,c0:c1]" */
static bool read_slice(const char *text, tsr_matrix_name *name) {
    const char *at = text + 1;
    if (!read_range(&at, &name->row0, &name->row1) || *at++ != ',') return false;
    return read_range(&at, &name->col0, &name->col1) && strcmp(at, "]") == 0;
}

/* Where the file's name ends inside `name` (whose slice is gone), and where the path starts; path NULL when there is none. */
static size_t split(const char *name, const char **path) {
    *path = NULL;
    const char *mark = strstr(name, ":/");
    if (mark && !is_file(name)) {
        *path = mark + 1;
        return (size_t)(mark > name && mark[-1] == ':' ? mark - 1 - name : mark - name);
    }
    char prefix[TSR_FILE_CHARS + TSR_PATH_CHARS];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t chars = (size_t)(slash - name);
        if (chars == 0 || chars >= sizeof prefix) continue;
        memcpy(prefix, name, chars);
        prefix[chars] = '\0';
        if (is_file(prefix) || (has_hdf5_ending(prefix) && !is_directory(prefix))) {
            *path = slash;
            return chars;
        }
    }
    return strlen(name);
}

/* Copies a path with one slash between components, none at the end and no "." components. */
static bool copy_path(const char *path, char *to) {
    size_t used = 0;
    while (*path) {
        size_t chars = strcspn(path, "/");
        if (chars > 0 && !(chars == 1 && *path == '.')) {
            if (used + 1 + chars >= TSR_PATH_CHARS) return false;
            to[used++] = '/';
            memcpy(to + used, path, chars);
            used += chars;
        }
        path += chars;
        path += strspn(path, "/");
    }
    to[used] = '\0';
    return true;
}

/* A name without a path that ends in ":" or whose front part is a file: the path lacks its slash. */
static tsr_status check_colon(const char *text, const tsr_matrix_name *name) {
    const char *colon = strchr(name->file, ':');
    if (!colon || is_file(name->file)) return TSR_OK;
    char front[TSR_FILE_CHARS];
    memcpy(front, name->file, (size_t)(colon - name->file));
    front[colon - name->file] = '\0';
    if (colon[strspn(colon, ":")] != '\0' && !is_file(front) && !has_hdf5_ending(front)) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "matrix '%s': the path after ':' must begin with '/': " FORMS, text);
}

tsr_status tsr_matrix_name_parse(const char *text, tsr_matrix_name *name) {
    tsr_matrix_name found = {.row0 = -1, .row1 = -1, .col0 = -1, .col1 = -1};
    char rest[TSR_FILE_CHARS + TSR_PATH_CHARS];
    size_t chars = strlen(text);
    const char *bracket = chars > 0 && text[chars - 1] == ']' && !is_file(text) ? strrchr(text, '[') : NULL;
    if (bracket) {
        if (!read_slice(bracket, &found))
            return tsr_fail(TSR_ERR_USAGE, "matrix '%s': cannot read the slice '%s'; write [r0:r1,c0:c1] with whole numbers, r0 <= r1 and c0 <= c1",
                            text, bracket);
        found.sliced = true;
        chars = (size_t)(bracket - text);
    }
    if (chars == 0) return tsr_fail(TSR_ERR_USAGE, "matrix '%s': the file's name is missing; " FORMS, text);
    if (chars >= sizeof rest) return tsr_fail(TSR_ERR_USAGE, "matrix name of %zu characters is too long; use a shorter path", chars);
    memcpy(rest, text, chars);
    rest[chars] = '\0';

    const char *path;
    size_t file_chars = split(rest, &path);
    if (file_chars == 0) return tsr_fail(TSR_ERR_USAGE, "matrix '%s': the file's name is missing; " FORMS, text);
    if (file_chars >= TSR_FILE_CHARS)
        return tsr_fail(TSR_ERR_USAGE, "matrix '%.60s...': the file's name has %zu characters, %d fit; use a shorter path", text, file_chars,
                        TSR_FILE_CHARS - 1);
    memcpy(found.file, rest, file_chars);
    if (path && !copy_path(path, found.path))
        return tsr_fail(TSR_ERR_USAGE, "matrix '%.60s...': the path inside the file is longer than %d characters", text, TSR_PATH_CHARS - 1);
    if (!path) TSR_TRY(check_colon(text, &found));
    *name = found;
    return TSR_OK;
}
