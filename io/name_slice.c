/* Slices of named matrices (name.h), as numpy writes them. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/name.h"
#include "io/text/text.h"

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
    int64_t first = 0;
    int64_t last = 0;
    int64_t step = 1;
    bool has_first = read_number(&at, &first);
    bool has_last = false;
    bool has_step = false;
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

#define PARTS_MOST (TSR_LEADS_MAX + 3) /* one for each dimension, and "..." */

/* The parts between the commas of `text` (changed), without blanks around them; a comma at the end adds none. Their
 * number, or -1 for too many. */
static int cut_parts(char *text, char **parts) {
    int count = 0;
    for (char *comma = text; comma;) {
        char *part = (char *)tsr_text_skip_blanks(text);
        comma = strchr(text, ',');
        if (comma) {
            *comma = '\0';
            text = comma + 1;
        }
        for (size_t chars = strlen(part); chars > 0 && part[chars - 1] == ' ';) part[--chars] = '\0';
        if (!comma && !*part) break;
        if (count == PARTS_MOST) return -1;
        parts[count++] = part;
    }
    return count;
}

/* Puts the parts where they belong among those of all `dimensions`. "..." stands for as many as are missing; without it
 * they are missing at the end. */
static bool place_parts(char **parts, int count, int dimensions, char **all) {
    int dots = -1;
    for (int i = 0; i < count; i++)
        if (strcmp(parts[i], "...") == 0) {
            if (dots >= 0) return false;
            dots = i;
        }
    const int given = count - (dots >= 0);
    if (count < 1 || given > dimensions) return false;
    for (int i = 0; i < count; i++) {
        if (i == dots) continue;
        const int behind = dots >= 0 && i > dots ? count - 1 - i : -1; /* counted from the end */
        all[behind >= 0 ? dimensions - 1 - behind : i] = parts[i];
    }
    return true;
}

/* Dimensions as the writer counts them, from 1. */
static tsr_status read_index(const tsr_matrix_name *name, const char *part, int dimension, int64_t length,
                             int64_t *index) {
    const char *at = part;
    if (!read_number(&at, index) || *tsr_text_skip_blanks(at))
        return tsr_fail(TSR_ERR_USAGE,
                        NAMED ": '%s' along dimension %d, which has %lld: a matrix has two dimensions, so choose one "
                              "there by its number, such as 0",
                        NAME(name), part, dimension, (long long)length);
    if (*index < -length || *index >= length)
        return tsr_fail(TSR_ERR_USAGE, NAMED ": %lld is out of range along dimension %d, which has %lld; count from 0",
                        NAME(name), (long long)*index, dimension, (long long)length);
    *index += *index < 0 ? length : 0;
    return TSR_OK;
}

tsr_status tsr_matrix_name_slice(tsr_matrix_name *name, int leads, const int64_t *size, int64_t rows, int64_t cols) {
    char text[TSR_SLICE_CHARS], whole[] = ":", *parts[PARTS_MOST], *all[TSR_LEADS_MAX + 2];
    int64_t lead[TSR_LEADS_MAX];
    if (!name->slice[0]) return TSR_OK;
    snprintf(text, sizeof text, "%s", name->slice + 1);
    text[strlen(text) - 1] = '\0';
    const int count = cut_parts(text, parts);
    for (int d = 0; d < TSR_LEADS_MAX + 2; d++) all[d] = whole;
    const bool swap = name->columns_first;
    if (!place_parts(parts, count, leads + 2, all))
        return tsr_fail(TSR_ERR_USAGE,
                        leads == 0 ? NAMED ": a slice has a part for rows and one for columns; write [r0:r1,c0:c1]"
                                   : NAMED ": a slice has a part for each of %d dimensions",
                        NAME(name), leads + 2);
    for (int d = 0; d < leads; d++) {
        const int written = swap ? leads + 1 - d : d;
        TSR_TRY(read_index(name, all[written], written + 1, size[d], &lead[d]));
    }
    slice_axis row = {name, "row", swap ? cols : rows, 0, 0}, col = {name, "column", swap ? rows : cols, 0, 0};
    TSR_TRY(read_axis(all[swap ? 0 : leads], &row));
    TSR_TRY(read_axis(all[swap ? 1 : leads + 1], &col));
    const slice_axis *stored_row = swap ? &col : &row, *stored_col = swap ? &row : &col;
    name->row0 = stored_row->first;
    name->row1 = stored_row->last;
    name->col0 = stored_col->first;
    name->col1 = stored_col->last;
    name->leads = leads;
    for (int d = 0; d < leads; d++) name->lead[d] = lead[d];
    name->sliced = true;
    name->slice[0] = '\0';
    return TSR_OK;
}
