/* Status texts and the thread's message, checked sizes, byte counts as
 * people write them, and the monotonic clock. */
#include "kernels/base/base.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

const char *tsr_triangle_name(tsr_triangle triangle) {
    static const char *const names[] = {"full", "lower", "upper"};
    return names[triangle];
}

/* ---- status ---------------------------------------------------------------------------------- */

static _Thread_local char thread_message[2048];

const char *tsr_status_text(tsr_status status) {
    static const char *const texts[] = {
#define X(code, exit_code, text) text,
        TSR_STATUS_LIST(X)
#undef X
    };
    return (int)status >= 0 && status < TSR_STATUS_COUNT ? texts[status] : "unknown status";
}

int tsr_status_exit_code(tsr_status status) {
    static const int codes[] = {
#define X(code, exit_code, text) exit_code,
        TSR_STATUS_LIST(X)
#undef X
    };
    return (int)status >= 0 && status < TSR_STATUS_COUNT ? codes[status] : 1;
}

const char *tsr_message(void) { return thread_message; }

void tsr_message_set(const char *message) {
    char text[sizeof thread_message]; /* `message` may be this thread's own */
    snprintf(text, sizeof text, "%s", message ? message : "");
    for (char *at = text; *at; at++)
        if (*at == '\n' || *at == '\r') *at = ' ';
    tsr_printable(text, thread_message, sizeof thread_message);
}

tsr_status tsr_fail(tsr_status status, const char *format, ...) {
    char text[sizeof thread_message]; /* the arguments may contain this thread's message */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tsr_message_set(text);
    return status;
}

tsr_status tsr_write_status(int error) {
    return error == ENOSPC || error == EDQUOT || error == EFBIG ? TSR_ERR_SPACE : TSR_ERR_IO;
}

const char *tsr_write_advice(int error) {
    if (error == EFBIG) return "raise the limit: ulimit -f unlimited";
    return tsr_write_status(error) == TSR_ERR_SPACE ? "free some space or choose another folder"
                                                    : "check the disk and the file system";
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

tsr_status tsr_bytes_checked(int64_t rows, int64_t cols, size_t element_bytes, size_t *bytes) {
    int64_t elements, product;
    if (rows < 0 || cols < 0 || element_bytes > (size_t)INT64_MAX || __builtin_mul_overflow(rows, cols, &elements) ||
        __builtin_mul_overflow(elements, (int64_t)element_bytes, &product))
        return tsr_fail(TSR_ERR_LIMIT,
                        "%" PRId64 " x %" PRId64 " elements of %zu bytes do not fit 63 bits: use a smaller matrix",
                        rows, cols, element_bytes);
    *bytes = (size_t)product;
    return TSR_OK;
}

double tsr_now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *tsr_format_bytes(double bytes, char *text) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    int unit = 0;
    while (fabs(bytes) >= 999.5 && unit < 6) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.2f %s", bytes, units[unit]);
    return text;
}

/* The factor a suffix stands for; 0 when it is none. */
static double byte_unit(const char *suffix) {
    static const char letters[] = "KMGT";
    if (*suffix == '\0') return 1;
    suffix += strspn(suffix, " ");
    if (strcasecmp(suffix, "B") == 0) return 1;
    if (*suffix == '\0') return 0;
    const char *letter = strchr(letters, toupper((unsigned char)*suffix));
    if (!letter) return 0;
    double power = (double)(letter - letters + 1);
    if (suffix[1] == '\0' || strcasecmp(suffix + 1, "i") == 0 || strcasecmp(suffix + 1, "iB") == 0)
        return pow(1024, power);
    if (strcasecmp(suffix + 1, "B") == 0) return pow(1000, power);
    return 0;
}

tsr_status tsr_parse_bytes(const char *text, size_t *bytes) {
    size_t digits = strspn(text, "0123456789");
    size_t fraction = text[digits] == '.' ? 1 + strspn(text + digits + 1, "0123456789") : 0;
    double unit = byte_unit(text + digits + fraction);
    if (digits == 0 || fraction == 1 || unit == 0)
        return tsr_fail(TSR_ERR_USAGE,
                        "'%s' is no size: write bytes with an optional unit, such as 1048576, 512MiB, 4G or 1.5GB",
                        text);
    double value = strtod(text, NULL) * unit;
    if (value >= 0x1p63) return tsr_fail(TSR_ERR_LIMIT, "size '%s' does not fit 63 bits: use a smaller one", text);
    /* whole numbers stay exact beyond 2^53 */
    *bytes = fraction == 0 ? (size_t)strtoull(text, NULL, 10) * (size_t)unit : (size_t)value;
    return TSR_OK;
}

int64_t tsr_variable_number(const char *variable, const char **rest) {
    const char *text = getenv(variable);
    char *end = NULL;
    long long number = -1;
    if (text) text += strspn(text, " \t");
    if (text && *text >= '0' && *text <= '9') number = strtoll(text, &end, 10); /* LLONG_MAX beyond it */
    if (rest) *rest = end ? end : "";
    return number;
}

const char *tsr_complex_text(tsr_complex number, char *text) {
    if (number.im == 0) snprintf(text, TSR_COMPLEX_CHARS, "%g", number.re);
    else if (number.re == 0) snprintf(text, TSR_COMPLEX_CHARS, "%gj", number.im);
    else snprintf(text, TSR_COMPLEX_CHARS, "%g%+gj", number.re, number.im);
    return text;
}
