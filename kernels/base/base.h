/* Base of every folder: status codes and the message that goes with them, element types, rectangles and views, and
 * 64-bit arithmetic that cannot overflow silently. Nothing here knows of devices, files or ranks. */
#ifndef TSR_KERNELS_BASE_BASE_H
#define TSR_KERNELS_BASE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_VERSION "0.2.0"

/* ---- status ---------------------------------------------------------------------------------- */

/* code, exit code of the program, text */
#define TSR_STATUS_LIST(X)                                                                                             \
    X(OK, 0, "ok")                                                                                                     \
    X(FAILURE, 1, "failure")                                                                                           \
    X(ERR_USAGE, 2, "wrong usage")                                                                                     \
    X(ERR_NOT_FOUND, 1, "not found")                                                                                   \
    X(ERR_EXISTS, 1, "exists already")                                                                                 \
    X(ERR_FORMAT, 1, "format not supported")                                                                           \
    X(ERR_SHAPE, 1, "shapes do not agree")                                                                             \
    X(ERR_IO, 1, "input or output failed")                                                                             \
    X(ERR_SPACE, 1, "no space left")                                                                                   \
    X(ERR_MEMORY, 1, "out of memory")                                                                                  \
    X(ERR_LIMIT, 1, "does not fit the limit")                                                                          \
    X(ERR_DEVICE, 1, "device failed")                                                                                  \
    X(ERR_UNSUPPORTED, 1, "not supported by this build or device")                                                     \
    X(ERR_MPI, 1, "MPI failed")                                                                                        \
    X(ERR_CHECK, 3, "the result failed its check")                                                                     \
    X(ERR_STALLED, 74, "the job stands still")                                                                         \
    X(ERR_STOPPED, 75, "stopped on request")

typedef enum {
#define X(code, exit_code, text) TSR_##code,
    TSR_STATUS_LIST(X)
#undef X
        TSR_STATUS_COUNT
} tsr_status;

const char *tsr_status_text(tsr_status status); /* static text, never NULL */
int tsr_status_exit_code(tsr_status status);    /* what app/main.c returns for it */

/* Records what went wrong (what, values, where, what to do: one line, no newline) for the calling thread and returns
 * `status`. Control characters, which names in files may hold, become \xNN (tsr_printable). Only the function that
 * first detects an error calls it; callers pass the status on with TSR_TRY. */
tsr_status tsr_fail(tsr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What an errno of something written means: TSR_ERR_SPACE where the disk, a quota or the limit of a file's size
 * leaves no room, else TSR_ERR_IO. */
tsr_status tsr_write_status(int error);
/* What to do about it, for messages. Static. */
const char *tsr_write_advice(int error);
const char *tsr_message(void);             /* the calling thread's last message; "" when there is none */
void tsr_message_set(const char *message); /* hands a message from one thread or rank to another */

#define TSR_TRY(expr)                                                                                                  \
    do {                                                                                                               \
        tsr_status tsr_try_ = (expr);                                                                                  \
        if (tsr_try_ != TSR_OK) return tsr_try_;                                                                       \
    } while (0)

/* The same inside a function that releases local resources at its label `done:`; needs `tsr_status status`. */
#define TSR_TRY_DONE(expr)                                                                                             \
    do {                                                                                                               \
        status = (expr);                                                                                               \
        if (status != TSR_OK) goto done;                                                                               \
    } while (0)

/* Bytes of the UTF-8 character that `text` begins with; 0 where it begins with none, 1 at its end. */
int tsr_utf8_bytes(const char *text);
/* Text of others, such as names in files, as a terminal may show it: writes `text` into `to`, which has room for
 * `chars` with the zero at its end, and returns `to`. Control characters (C0, DEL, C1, line and paragraph ends),
 * what turns the direction of writing, and bytes that are no UTF-8 become \xNN, a byte each; letters stay. What does
 * not fit whole is left out. Twice is as good as once. */
char *tsr_printable(const char *text, char *to, size_t chars);

/* ---- element types (dtype.h) ----------------------------------------------------------------- */

/* Also float32, fp32, float, single, half, int8 ..., in any case; lists names on error. */
tsr_status tsr_dtype_parse(const char *name, tsr_dtype *dtype);
/* The same of the first `chars` of a text; without a message. */
bool tsr_dtype_find(const char *name, size_t chars, tsr_dtype *dtype);
/* The same for the value of an option, "type", among the types of one use; lists these on error. */
tsr_status tsr_dtype_parse_for(tsr_dtype_use use, const char *option, const char *name, tsr_dtype *dtype);

/* How an element stands in a file or a buffer that came from one. */
typedef struct {
    tsr_dtype dtype;
    bool swapped; /* bytes in the order this machine does not use */
} tsr_element;

/* One element at `at` (any alignment); NaN for a complex one. */
double tsr_element_to_double(tsr_element element, const void *at);

/* ---- complex numbers ------------------------------------------------------------------------- */

typedef struct {
    double re, im;
} tsr_complex;

static inline tsr_complex tsr_real(double value) {
    const tsr_complex number = {value, 0};
    return number;
}
static inline bool tsr_is_zero(tsr_complex number) { return number.re == 0 && number.im == 0; }

#define TSR_COMPLEX_CHARS 64
/* "1.5", "1+2j", "-2j". Writes into text (≥ TSR_COMPLEX_CHARS) and returns it. */
const char *tsr_complex_text(tsr_complex number, char *text);

/* One element of any type at `at` (any alignment). */
tsr_complex tsr_element_to_complex(tsr_element element, const void *at);

/* ---- rectangles and views -------------------------------------------------------------------- */

typedef struct {
    int64_t row, col;   /* first element */
    int64_t rows, cols; /* extent, ≥ 0 */
} tsr_rect;

static inline int64_t tsr_rect_elements(tsr_rect r) { return r.rows * r.cols; }
static inline bool tsr_rect_empty(tsr_rect r) { return r.rows <= 0 || r.cols <= 0; }

/* A window on row-major memory of rows × cols elements, `ld` elements from row to row. Owns nothing. */
typedef struct {
    void *data;
    tsr_element element;
    int64_t rows, cols;
    int64_t ld; /* ≥ cols */
} tsr_view;

/* Which part of a symmetric matrix is written; the rest is zeros. */
typedef enum { TSR_TRIANGLE_FULL, TSR_TRIANGLE_LOWER, TSR_TRIANGLE_UPPER } tsr_triangle;
const char *tsr_triangle_name(tsr_triangle triangle); /* "full", "lower", "upper" */

/* ---- arithmetic ------------------------------------------------------------------------------ */

static inline int64_t tsr_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tsr_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t tsr_ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); } /* a ≥ 0, b > 0 */
static inline int64_t tsr_round_up(int64_t a, int64_t b) { return tsr_ceil_div(a, b) * b; }
/* rows·cols·bytes; TSR_ERR_LIMIT when the product does not fit 63 bits. */
tsr_status tsr_bytes_checked(int64_t rows, int64_t cols, size_t element_bytes, size_t *bytes);

double tsr_now_seconds(void); /* monotonic clock */
/* Writes bytes with a decimal unit ("1.50 GB") into text (≥ 32 chars) and returns it. */
const char *tsr_format_bytes(double bytes, char *text);
/* "4G", "4Gi", "512MiB", "1.5 GB", "1048576": K M G T are powers of 1024 with or without i or iB, KB MB GB TB powers
 * of 1000. */
tsr_status tsr_parse_bytes(const char *text, size_t *bytes);
/* Local. The number that an environment variable begins with, after spaces; INT64_MAX for larger ones, -1 where it is
 * not set or begins with none. *rest: what follows the number, "" without one; NULL where nobody asks. */
int64_t tsr_variable_number(const char *variable, const char **rest);

#ifdef __cplusplus
}
#endif
#endif
