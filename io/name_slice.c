/* Slices of named matrices (name.h), as numpy writes them. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/name.h"
#include "io/text/text.h"

/* One dimension of a slice: its name, its length, and what is read for it: [first, last). */
typedef struct {
    const tsr_matrix_name *name;
    const char *what; /* "row", "column", "element", "dimension 1" */
    int64_t length, first, last;
    bool dropped; /* by a single number */
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

/* "20 rows", "1 row", "3 along dimension 1"; returns text. */
static const char *length_text(const slice_axis *axis, char text[64]) {
    const bool other = strncmp(axis->what, "dimension", strlen("dimension")) == 0;
    snprintf(text, 64,
             other               ? "%lld along %s"
             : axis->length == 1 ? "%lld %s"
                                 : "%lld %ss",
             (long long)axis->length, axis->what);
    return text;
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

static tsr_status single_number(slice_axis *axis, int64_t number) {
    char length[64];
    if (number < -axis->length || number >= axis->length)
        return tsr_fail(TSR_ERR_USAGE, NAMED ": %lld is out of range of the %s; count from 0", NAME(axis->name),
                        (long long)number, length_text(axis, length));
    axis->first = number + (number < 0 ? axis->length : 0);
    axis->last = axis->first + 1;
    axis->dropped = true;
    return TSR_OK;
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
                        NAMED
                        ": the step in '%s' is not 1: a matrix is read as a block of neighbours; copy the %ss you want "
                        "into a dataset first",
                        NAME(axis->name), part, axis->what);
    axis->first = has_first ? clip(first, axis->length) : 0;
    axis->last = has_last ? clip(last, axis->length) : axis->length;
    *same = has_first && has_last && first == last && first >= -axis->length && first <= axis->length;
    return TSR_OK;
}

static tsr_status read_axis(const char *part, slice_axis *axis) {
    bool same = false;
    char length[64];
    TSR_TRY(read_bounds(part, axis, &same));
    if (axis->last > axis->first || axis->length == 0) return TSR_OK;
    axis->last = axis->first;
    if (same) return TSR_OK;
    return tsr_fail(TSR_ERR_SHAPE, NAMED ": '%s' selects none of the %s; choose bounds that do", NAME(axis->name), part,
                    length_text(axis, length));
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

/* What the axes select of each matrix: a block of it, or a vector. */
static tsr_status check_dropped(const tsr_matrix_name *name, int dimensions, bool several, const slice_axis *row,
                                const slice_axis *col) {
    const slice_axis *dropped = row->dropped ? row : col;
    if (!row->dropped && !col->dropped) return TSR_OK;
    if (dimensions < 2 || (row->dropped && col->dropped))
        return tsr_fail(TSR_ERR_USAGE, NAMED ": this is a single element; write %lld:%lld for a part of one %s",
                        NAME(name), (long long)dropped->first, (long long)dropped->last, dropped->what);
    if (several)
        return tsr_fail(TSR_ERR_USAGE,
                        NAMED ": a %s of each of several matrices is no block of their elements; write %lld:%lld for "
                              "matrices of one %s",
                        NAME(name), dropped->what, (long long)dropped->first, (long long)dropped->last, dropped->what);
    return TSR_OK;
}

/* Fills all[] with the part that is written for each dimension, which lie in text[]. */
static tsr_status cut_slice(const tsr_matrix_name *name, int dimensions, char text[TSR_SLICE_CHARS],
                            char *all[TSR_LEADS_MAX + 2]) {
    static char whole[] = ":";
    char *parts[PARTS_MOST];
    for (int d = 0; d < TSR_LEADS_MAX + 2; d++) all[d] = whole;
    if (!name->slice[0]) return TSR_OK;
    snprintf(text, TSR_SLICE_CHARS, "%s", name->slice + 1);
    text[strlen(text) - 1] = '\0';
    if (place_parts(parts, cut_parts(text, parts), dimensions, all)) return TSR_OK;
    if (dimensions == 2)
        return tsr_fail(TSR_ERR_USAGE, NAMED ": a slice has a part for rows and one for columns; write [r0:r1,c0:c1]",
                        NAME(name));
    return tsr_fail(TSR_ERR_USAGE, NAMED ": a slice has a part for each dimension, and it has %d", NAME(name),
                    dimensions);
}

tsr_status tsr_matrix_name_slice(tsr_matrix_name *name, int dimensions, const int64_t *size, int64_t rows,
                                 int64_t cols) {
    char text[TSR_SLICE_CHARS], *all[TSR_LEADS_MAX + 2], what[24];
    tsr_matrix_name found = *name;
    const bool swap = name->columns_first && dimensions > 1;
    const int leads = tsr_leads_of(dimensions);
    bool several = false;
    TSR_TRY(cut_slice(name, dimensions, text, all));
    for (int d = 0; d < leads; d++) {
        const int written = swap ? leads + 1 - d : d;
        snprintf(what, sizeof what, "dimension %d", written + 1);
        slice_axis lead = {.name = name, .what = what, .length = size[d]};
        TSR_TRY(read_axis(all[written], &lead));
        found.lead0[d] = lead.first;
        found.lead1[d] = lead.last;
        found.lead_dropped[d] = lead.dropped;
        several |= !lead.dropped;
    }
    slice_axis row = {.name = name, .what = dimensions < 2 ? "element" : "row", .length = swap ? cols : rows};
    slice_axis col = {.name = name, .what = "column", .length = swap ? rows : cols};
    TSR_TRY(read_axis(all[swap ? 0 : leads], &row));
    TSR_TRY(read_axis(all[swap ? 1 : leads + 1], &col));
    TSR_TRY(check_dropped(name, dimensions, several, &row, &col));
    const slice_axis *stored_row = swap ? &col : &row, *stored_col = swap ? &row : &col;
    found.row0 = stored_row->first;
    found.row1 = stored_row->last;
    found.row_dropped = stored_row->dropped;
    found.col0 = stored_col->first;
    found.col1 = stored_col->last;
    found.col_dropped = stored_col->dropped;
    found.dimensions = dimensions;
    found.sliced = name->slice[0] != '\0';
    found.slice[0] = '\0';
    *name = found;
    return TSR_OK;
}
