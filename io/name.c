/* Reads the names of matrices (name.h). The slice is cut off the end first, then the file is told from the path
 * inside it: by "::/" or ":/", else at the first ':' or '/' behind what is a file or is called like one. */
#include "io/name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/text.h"

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
        if (chars == 0 || chars >= sizeof prefix) continue;
        memcpy(prefix, name, chars);
        prefix[chars] = '\0';
        if (!is_file(prefix) && (!has_hdf5_ending(prefix) || is_directory(prefix))) continue;
        *path = *at == ':' ? at + strspn(at, ":") : at;
        return chars;
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
    if (chars == 0) return tsr_fail(TSR_ERR_USAGE, "matrix '%s': the file's name is missing; " FORMS, text);
    if (strcmp(text, "-") == 0)
        return tsr_fail(
            TSR_ERR_USAGE,
            "matrix '-': HDF5 is neither read from standard input nor written to standard output; name a file");
    if (chars >= sizeof rest)
        return tsr_fail(TSR_ERR_USAGE, "matrix name of %zu characters is too long; use a shorter path", chars);
    memcpy(rest, text, chars);
    rest[chars] = '\0';

    const char *path;
    size_t file_chars = split(rest, &path);
    if (file_chars == 0) return tsr_fail(TSR_ERR_USAGE, "matrix '%s': the file's name is missing; " FORMS, text);
    if (file_chars >= TSR_FILE_CHARS)
        return tsr_fail(TSR_ERR_USAGE,
                        "matrix '%.60s...': the file's name has %zu characters, %d fit; use a shorter path", text,
                        file_chars, TSR_FILE_CHARS - 1);
    memcpy(found.file, rest, file_chars);
    if (path && !*path)
        return tsr_fail(TSR_ERR_USAGE, "matrix '%s': the dataset's name after ':' is missing; " FORMS, text);
    if (path && !copy_path(path, found.path))
        return tsr_fail(TSR_ERR_USAGE, "matrix '%.60s...': the path inside the file is longer than %d characters", text,
                        TSR_PATH_CHARS - 1);
    *name = found;
    return TSR_OK;
}

const char *tsr_matrix_name_text(const tsr_matrix_name *name, char *text, size_t chars) {
    int used = snprintf(text, chars, "%s%s%s%s", name->file, *name->path ? ":" : "", name->path, name->slice);
    if (!name->sliced || used >= (int)chars) return text;
    const int64_t bounds[4] = {name->row0, name->row1, name->col0, name->col1};
    const int rows = name->columns_first ? 2 : 0, cols = 2 - rows;
    snprintf(text + used, chars - (size_t)used, "[%lld:%lld,%lld:%lld]", (long long)bounds[rows],
             (long long)bounds[rows + 1], (long long)bounds[cols], (long long)bounds[cols + 1]);
    return text;
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

/* The name of a slice's axis, its length, and the bounds that are read for it: [first, last). */
typedef struct {
    const tsr_matrix_name *name;
    const char *what; /* "row", "column" */
    int64_t length, first, last;
} slice_axis;

/* One whole number, which may have a sign, or nothing. Numbers beyond 64 bits stand for the last that fits, as they
 * are clipped anyway. */
static bool read_number(const char **at, int64_t *number) {
    const char *from = *at;
    from += *from == '-' || *from == '+';
    if (!isdigit((unsigned char)*from)) return false;
    char *end;
    *number = strtoll(*at, &end, 10);
    *at = end;
    return true;
}

static int64_t clip(int64_t bound, int64_t length) {
    if (bound < 0) bound += length;
    return tsr_max(0, tsr_min(bound, length));
}

/* How messages call the slice: file:path[slice]. */
#define NAMED "'%s%s%s%s'"
#define NAME(n) (n)->file, *(n)->path ? ":" : "", (n)->path, (n)->slice

static tsr_status unreadable(const tsr_matrix_name *name, const char *part) {
    return tsr_fail(
        TSR_ERR_USAGE,
        NAMED
        ": cannot read '%s' in the slice; write [r0:r1,c0:c1] as numpy does, each bound a whole number or left out",
        NAME(name), part);
}

static tsr_status single_number(const slice_axis *axis, int64_t number) {
    char end[32] = "";
    if (number < -axis->length || number >= axis->length)
        return tsr_fail(TSR_ERR_USAGE, NAMED ": %s %lld is out of range of the %lld %s%s; write a part such as 0:%lld",
                        NAME(axis->name), axis->what, (long long)number, (long long)axis->length, axis->what,
                        axis->length == 1 ? "" : "s", (long long)axis->length);
    if (number != -1) snprintf(end, sizeof end, "%lld", (long long)number + 1);
    return tsr_fail(
        TSR_ERR_USAGE,
        NAMED ": the single number %lld would leave one dimension, and a matrix has two; write %lld:%s for that %s",
        NAME(axis->name), (long long)number, (long long)number, end, axis->what);
}

/* *same: the slice says itself that it selects nothing, as 3:3 does. */
static tsr_status read_bounds(const char *part, slice_axis *axis, bool *same) {
    const char *at = part;
    int64_t first = 0, last = 0, step = 1;
    bool has_first = read_number(&at, &first), has_last = false, has_step = false;
    at = tsr_text_skip_blanks(at);
    if (*at == '\0' && has_first) return single_number(axis, first);
    if (*at != ':') return unreadable(axis->name, part);
    at = tsr_text_skip_blanks(at + 1);
    has_last = read_number(&at, &last);
    at = tsr_text_skip_blanks(at);
    if (*at == ':') {
        at = tsr_text_skip_blanks(at + 1);
        has_step = read_number(&at, &step);
        at = tsr_text_skip_blanks(at);
    }
    if (*at) return unreadable(axis->name, part);
    if (has_step && step != 1)
        return tsr_fail(TSR_ERR_USAGE,
                        NAMED ": the step in '%s' is not 1: a matrix is read as a block of neighbouring %ss; copy the "
                              "%ss you want into a dataset first",
                        NAME(axis->name), part, axis->what, axis->what);
    axis->first = has_first ? clip(first, axis->length) : 0;
    axis->last = has_last ? clip(last, axis->length) : axis->length;
    *same = has_first && has_last && first == last && first >= -axis->length && first <= axis->length;
    return TSR_OK;
}

static tsr_status read_axis(const char *part, slice_axis *axis) {
    bool same = false;
    TSR_TRY(read_bounds(part, axis, &same));
    if (axis->last > axis->first || axis->length == 0) return TSR_OK;
    axis->last = axis->first;
    if (same) return TSR_OK;
    return tsr_fail(TSR_ERR_SHAPE, NAMED ": '%s' selects none of the %lld %s%s; choose bounds that do",
                    NAME(axis->name), part, (long long)axis->length, axis->what, axis->length == 1 ? "" : "s");
}

#define PARTS_MOST 4

/* The parts between the commas of `text` (changed), without blanks around them; a comma at the end adds none. Their
 * number, or -1 for too many. */
static int cut_parts(char *text, char **parts) {
    int count = 0;
    for (char *comma = text; comma;) {
        char *part = (char *)tsr_text_skip_blanks(text);
        comma = strchr(text, ',');
        if (comma) *comma = '\0', text = comma + 1;
        for (size_t chars = strlen(part); chars > 0 && part[chars - 1] == ' ';) part[--chars] = '\0';
        if (!comma && !*part) break;
        if (count == PARTS_MOST) return -1;
        parts[count++] = part;
    }
    return count;
}

/* The parts for rows and columns; "..." stands for as many ":" as are missing, and what is left out at the end is
 * all of it. */
static bool two_parts(char **parts, int count, char *all, char *two[2]) {
    int dots = -1;
    for (int i = 0; i < count; i++)
        if (strcmp(parts[i], "...") == 0) {
            if (dots >= 0) return false;
            dots = i;
        }
    int given = count - (dots >= 0);
    if (count < 1 || given > 2) return false;
    two[0] = two[1] = all;
    for (int i = 0; i < count; i++) {
        if (i == dots) continue;
        int behind = dots >= 0 && i > dots ? count - 1 - i : -1; /* counted from the end */
        two[behind >= 0 ? 1 - behind : i] = parts[i];
    }
    return true;
}

tsr_status tsr_matrix_name_slice(tsr_matrix_name *name, int64_t rows, int64_t cols) {
    char text[TSR_SLICE_CHARS], all[] = ":", *parts[PARTS_MOST], *two[2];
    if (!name->slice[0]) return TSR_OK;
    snprintf(text, sizeof text, "%s", name->slice + 1);
    text[strlen(text) - 1] = '\0';
    int count = cut_parts(text, parts);
    if (!two_parts(parts, count, all, two))
        return tsr_fail(TSR_ERR_USAGE, NAMED ": a slice has a part for rows and one for columns; write [r0:r1,c0:c1]",
                        NAME(name));
    bool swap = name->columns_first;
    slice_axis row = {name, "row", swap ? cols : rows, 0, 0}, col = {name, "column", swap ? rows : cols, 0, 0};
    TSR_TRY(read_axis(two[0], &row));
    TSR_TRY(read_axis(two[1], &col));
    const slice_axis *stored_row = swap ? &col : &row, *stored_col = swap ? &row : &col;
    name->row0 = stored_row->first, name->row1 = stored_row->last;
    name->col0 = stored_col->first, name->col1 = stored_col->last;
    name->sliced = true;
    name->slice[0] = '\0';
    return TSR_OK;
}
