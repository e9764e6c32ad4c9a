/* Reads the names of matrices (name.h). The slice is cut off the end first; then a kind of store claims the rest, or
 * it names a dataset in an HDF5 file, and the file is told from the path inside it: by "::/" or ":/", else at the
 * first ':' or '/' behind what is a file or is called like one. */
#include "io/name.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files/file_bytes.h"
#include "io/signature/signature.h"
#include "io/stores.h"
#include "io/text/text.h"

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
    for (size_t e = 0; e < sizeof endings / sizeof *endings; e++)
        if (tsr_text_ends(file, endings[e])) return true;
    return false;
}

/* Whether ".." is one of a path's components: such a path leads to another file, unless it stands behind a ':'. */
static bool has_parent(const char *path) {
    for (const char *at = strstr(path, "/.."); at; at = strstr(at + 1, "/.."))
        if (at[3] == '\0' || at[3] == '/') return true;
    return false;
}

/* Where the file's name ends inside `name` (whose slice is gone), and where the path starts; path NULL when there is
 * none. */
static size_t split(const char *name, const char **path) {
    *path = NULL;
    if (is_file(name)) return strlen(name);
    const char *mark = strstr(name, ":/");
    if (mark) {
        *path = mark + 1;
        return (size_t)(mark > name && mark[-1] == ':' ? mark - 1 - name : mark - name);
    }
    char prefix[TSR_FILE_CHARS + TSR_PATH_CHARS];
    for (const char *at = strpbrk(name, "/:"); at; at = strpbrk(at + 1, "/:")) {
        size_t chars = (size_t)(at - name);
        if (chars == 0 || chars >= sizeof prefix || (*at == '/' && has_parent(at))) continue;
        memcpy(prefix, name, chars);
        prefix[chars] = '\0';
        if (!is_file(prefix) && (!has_hdf5_ending(prefix) || is_directory(prefix))) continue;
        *path = *at == ':' ? at + strspn(at, ":") : at;
        return chars;
    }
    return strlen(name);
}

bool tsr_name_begins_with_type(const char *text, tsr_dtype *type) {
    return tsr_dtype_find(text, strcspn(text, ":"), type);
}

bool tsr_name_is_hdf5(const char *text) {
    char file[TSR_FILE_CHARS];
    const char *path;
    const size_t chars = split(text, &path);
    int64_t bytes, at = -1;
    int fd = -1;
    if (chars == 0 || chars >= sizeof file) return false;
    memcpy(file, text, chars);
    file[chars] = '\0';
    if (has_hdf5_ending(file)) return true;
    if (!is_file(file)) return false;
    if (tsr_plain_file_open(file, &fd, &bytes) != TSR_OK) {
        tsr_message_set(""); /* only a question */
        return false;
    }
    const bool read = tsr_hdf5_signature(fd, bytes, &at);
    close(fd);
    return read && at >= 0;
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

static tsr_status missing_file(const char *text) {
    char forms[200];
    return tsr_fail(TSR_ERR_USAGE,
                    "matrix '%s': the file's name is missing; write %s, each with an optional slice [r0:r1,c0:c1]",
                    text, tsr_store_forms(forms, sizeof forms));
}

/* `rest` is `text` without its slice. */
static tsr_status parse_hdf5(const char *rest, const char *text, tsr_matrix_name *found) {
    const char *path;
    size_t file_chars = split(rest, &path);
    if (file_chars == 0) return missing_file(text);
    if (file_chars >= TSR_FILE_CHARS)
        return tsr_fail(TSR_ERR_USAGE,
                        "matrix '%.60s...': the file's name has %zu characters, %d fit; use a shorter path", text,
                        file_chars, TSR_FILE_CHARS - 1);
    memcpy(found->file, rest, file_chars);
    if (path && !*path)
        return tsr_fail(TSR_ERR_USAGE, "matrix '%s': the dataset's name after ':' is missing; write file.h5:/path",
                        text);
    if (path && !copy_path(path, found->path))
        return tsr_fail(TSR_ERR_USAGE, "matrix '%.60s...': the path inside the file is longer than %d characters", text,
                        TSR_PATH_CHARS - 1);
    return TSR_OK;
}

tsr_status tsr_matrix_name_parse(const char *text, tsr_matrix_name *name) {
    tsr_matrix_name found = {.sliced = false};
    char rest[TSR_FILE_CHARS + TSR_PATH_CHARS];
    size_t chars = strlen(text);
    const char *bracket = chars > 0 && text[chars - 1] == ']' && !is_file(text) ? strrchr(text, '[') : NULL;
    if (bracket) {
        if (strlen(bracket) >= TSR_SLICE_CHARS)
            return tsr_fail(TSR_ERR_USAGE,
                            "matrix '%.60s...': the slice of %zu characters is too long; write [r0:r1,c0:c1]", text,
                            strlen(bracket));
        snprintf(found.slice, sizeof found.slice, "%s", bracket);
        chars = (size_t)(bracket - text);
    }
    if (chars == 0) return missing_file(text);
    if (strcmp(text, "-") == 0)
        return tsr_fail(
            TSR_ERR_USAGE,
            "matrix '-': HDF5 is neither read from standard input nor written to standard output; name a file");
    if (chars >= sizeof rest)
        return tsr_fail(TSR_ERR_USAGE, "matrix name of %zu characters is too long; use a shorter path", chars);
    memcpy(rest, text, chars);
    rest[chars] = '\0';

    if (!tsr_store_claimed(rest, &found)) TSR_TRY(parse_hdf5(rest, text, &found));
    *name = found;
    return TSR_OK;
}

/* One dimension of a slice, with a comma before it unless it is the first. */
static void add_bounds(char *text, size_t chars, bool dropped, int64_t first, int64_t last) {
    const char *comma = text[strlen(text) - 1] == '[' ? "" : ",";
    if (dropped) tsr_text_append(text, chars, "%s%lld", comma, (long long)first);
    else tsr_text_append(text, chars, "%s%lld:%lld", comma, (long long)first, (long long)last);
}

const char *tsr_matrix_name_text(const tsr_matrix_name *name, char *text, size_t chars) {
    int used = snprintf(text, chars, "%s%s%s%s", name->file, *name->path ? ":" : "", name->path, name->slice);
    if (!name->sliced || used >= (int)chars - 1) return text;
    const bool swap = name->columns_first;
    const int leads = tsr_leads_of(name->dimensions);
    tsr_text_append(text, chars, "[");
    for (int d = 0; d < leads && !swap; d++)
        add_bounds(text, chars, name->lead_dropped[d], name->lead0[d], name->lead1[d]);
    if (name->dimensions > 1 && swap) add_bounds(text, chars, name->col_dropped, name->col0, name->col1);
    add_bounds(text, chars, name->row_dropped, name->row0, name->row1);
    if (name->dimensions > 1 && !swap) add_bounds(text, chars, name->col_dropped, name->col0, name->col1);
    for (int d = leads - 1; d >= 0 && swap; d--)
        add_bounds(text, chars, name->lead_dropped[d], name->lead0[d], name->lead1[d]);
    tsr_text_append(text, chars, "]");
    return text;
}
