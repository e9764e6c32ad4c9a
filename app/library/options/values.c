/* Values of options as people write them (values.h). */
#include "app/library/options/values.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/output/output.h"
#include "io/text/text.h"

/* strtod. lost: set where the number is so large or small that it reads as Inf or 0. */
static double read_double(const char *text, char **end, bool *lost) {
    errno = 0;
    const double read = strtod(text, end);
    if (errno == ERANGE && (isinf(read) || read == 0)) *lost = true;
    return read;
}
static tsr_status out_of_range(const char *option, const char *text) {
    return tsr_fail(TSR_ERR_USAGE, "%s '%s' is out of range: numbers of 64 bits reach from 4.9e-324 to 1.8e308", option,
                    text);
}

tsr_status tsr_parse_double(const char *option, const char *text, double *value) {
    char *end = NULL;
    bool lost = false;
    double read = read_double(text, &end, &lost);
    if (end == text || *end || isspace((unsigned char)*text) || isnan(read))
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no number: write one such as 2, -0.5 or 1e-6", option, text);
    if (lost) return out_of_range(option, text);
    *value = read;
    return TSR_OK;
}

tsr_status tsr_parse_int(const char *option, const char *text, int64_t low, int64_t high, int64_t *value) {
    char *end = NULL;
    errno = 0;
    long long read = strtoll(text, &end, 10);
    if (end == text || *end || isspace((unsigned char)*text))
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no whole number: write one from %" PRId64 " to %" PRId64, option,
                        text, low, high);
    if (errno == ERANGE || read < low || read > high)
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is out of range: use %" PRId64 " to %" PRId64, option, text, low, high);
    *value = read;
    return TSR_OK;
}

/* Reads up to `most` whole numbers separated by x or a comma; returns how many, 0 when the text is anything else. */
static int parse_times(const char *text, int64_t *numbers, int most) {
    bool inside = *(text = tsr_text_skip_blanks(text)) == '(';
    if (inside) text = tsr_text_skip_blanks(text + 1);
    for (int count = 0; count < most; count++) {
        char *end = NULL;
        if (!isdigit((unsigned char)*text)) return 0;
        errno = 0;
        numbers[count] = strtoll(text, &end, 10);
        if (errno == ERANGE) return 0;
        text = tsr_text_skip_blanks(end);
        if (*text == ')' && inside) return *tsr_text_skip_blanks(text + 1) == '\0' ? count + 1 : 0;
        if (!*text) return inside ? 0 : count + 1;
        if (*text != 'x' && *text != 'X' && *text != ',') return 0;
        text = tsr_text_skip_blanks(text + 1);
    }
    return 0;
}

tsr_status tsr_parse_shape(const char *option, const char *text, int64_t *rows, int64_t *cols) {
    int64_t numbers[2] = {0};
    if (parse_times(text, numbers, 2) != 2)
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no shape: write ROWSxCOLUMNS, such as 2000x3000", option, text);
    *rows = numbers[0];
    *cols = numbers[1];
    return TSR_OK;
}

tsr_status tsr_parse_product(const char *option, const char *text, int64_t *m, int64_t *n, int64_t *k) {
    int64_t sizes[3] = {0};
    int count = parse_times(text, sizes, 3);
    if (count == 1) sizes[1] = sizes[2] = sizes[0];
    if (count == 0 || count == 2 || sizes[0] < 1 || sizes[1] < 1 || sizes[2] < 1)
        return tsr_fail(TSR_ERR_USAGE,
                        "%s '%s' is no product: write MxNxK such as 4096x4096x1024, or one number for all three",
                        option, text);
    *m = sizes[0];
    *n = sizes[1];
    *k = sizes[2];
    return TSR_OK;
}

tsr_status tsr_parse_grid(const char *option, const char *text, int grid[3]) {
    int64_t numbers[3] = {0, 0, 1};
    bool automatic = strcmp(text, "auto") == 0;
    int count = automatic ? 3 : parse_times(text, numbers, 3);
    for (int i = 0; i < 3 && !automatic; i++)
        if (numbers[i] < 1 || numbers[i] > 1000000) count = 0;
    if (count < 2)
        return tsr_fail(TSR_ERR_USAGE,
                        "%s '%s' is no grid: write PxQ or PxQxR with numbers of at least 1, such as 2x2, or auto",
                        option, text);
    for (int i = 0; i < 3; i++) grid[i] = automatic ? 0 : (int)numbers[i];
    return TSR_OK;
}

tsr_status tsr_parse_memory(const char *option, const char *text, size_t *bytes, double *percent) {
    size_t length = strlen(text);
    if (length > 0 && text[length - 1] == '%') {
        char *end = NULL;
        double read = strtod(text, &end);
        if (!isdigit((unsigned char)*text) || end != text + length - 1 || !(read > 0 && read <= 100))
            return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no share of memory: use more than 0%% and at most 100%%", option,
                            text);
        *bytes = 0;
        *percent = read;
        return TSR_OK;
    }
    size_t read = 0;
    if (tsr_parse_bytes(text, &read) != TSR_OK || read == 0)
        return tsr_fail(TSR_ERR_USAGE,
                        "%s '%s' is no amount of memory: write bytes with an optional unit, such as 512M or 4G, or a "
                        "share such as 80%%",
                        option, text);
    *bytes = read;
    *percent = 0;
    return TSR_OK;
}

tsr_status tsr_device_parse(const char *text, const char **kind) {
    static const char *const kinds[][2] = {{"auto", "auto"}, {"cpu", "cpu"}, {"cuda", "cuda"}, {"gpu", "cuda"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcasecmp(text, kinds[i][0]) == 0) {
            *kind = kinds[i][1];
            return TSR_OK;
        }
    return tsr_fail(TSR_ERR_USAGE, "unknown --device '%s': use auto, cpu or cuda (gpu is cuda)", text);
}

tsr_status tsr_order_parse(const char *text, tsr_order *order) {
    static const struct {
        const char *name;
        tsr_order order;
    } names[] = {{"row", TSR_ORDER_ROW},
                 {"C", TSR_ORDER_ROW},
                 {"col", TSR_ORDER_COL},
                 {"column", TSR_ORDER_COL},
                 {"F", TSR_ORDER_COL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(text, names[i].name) == 0) {
            *order = names[i].order;
            return TSR_OK;
        }
    return tsr_fail(
        TSR_ERR_USAGE,
        "unknown --order '%s': use row or C (as h5ls shows the data), or col or F (as MATLAB, Fortran and Julia do)",
        text);
}

/* The imaginary unit, at the end of the text. */
static bool is_unit(const char *text) { return strcmp(text, "j") == 0 || strcmp(text, "i") == 0; }

static bool parse_complex(const char *text, tsr_complex *value, bool *lost) {
    char *end, *last;
    const double first = read_double(text, &end, lost);
    *value = (tsr_complex){first, 0};
    if (end == text || isspace((unsigned char)*text) || *end == '\0') return end != text && *end == '\0';
    if (is_unit(end)) {
        *value = (tsr_complex){0, first};
        return true;
    }
    value->im = read_double(end, &last, lost);
    return (*end == '+' || *end == '-') && last != end && is_unit(last);
}

tsr_status tsr_parse_complex(const char *option, const char *text, tsr_complex *value) {
    tsr_complex read;
    bool lost = false;
    if (!parse_complex(text, &read, &lost) || isnan(read.re) || isnan(read.im))
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no number: write one such as 2, -0.5, 1e-6 or 1+2j", option, text);
    if (lost) return out_of_range(option, text);
    *value = read;
    return TSR_OK;
}

tsr_status tsr_parse_chunk(const char *option, const char *text, int64_t *rows, int64_t *cols) {
    *rows = TSR_CHUNK_AUTO;
    *cols = TSR_CHUNK_AUTO;
    if (strcmp(text, "auto") == 0) return TSR_OK;
    TSR_TRY(tsr_parse_shape(option, text, rows, cols));
    if (*rows > 0 && *cols > 0) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "%s %s: a chunk has at least one row and one column", option, text);
}

tsr_status tsr_triangle_parse(const char *option, const char *text, tsr_triangle *triangle) {
    for (int i = TSR_TRIANGLE_FULL; i <= TSR_TRIANGLE_UPPER; i++) {
        *triangle = (tsr_triangle)i;
        if (strcmp(text, tsr_triangle_name((tsr_triangle)i)) == 0) return TSR_OK;
    }
    return tsr_fail(TSR_ERR_USAGE, "%s %s: use full, lower or upper", option, text);
}
