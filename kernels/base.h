/* Base of every folder: status codes and the message that goes with them, element types, rectangles and views, and
 * 64-bit arithmetic that cannot overflow silently. Nothing here knows of devices, files or ranks. */
#ifndef TSR_KERNELS_BASE_H
#define TSR_KERNELS_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_VERSION "0.1.0"

/* ---- status ------------------------------------------------------------------------------------------------- */

/* code, exit code of the program, text */
#define TSR_STATUS_LIST(X)                                                                                            \
    X(OK, 0, "ok")                                                                                                    \
    X(FAILURE, 1, "failure")                                                                                          \
    X(ERR_USAGE, 2, "wrong usage")                                                                                    \
    X(ERR_NOT_FOUND, 1, "not found")                                                                                  \
    X(ERR_EXISTS, 1, "exists already")                                                                                \
    X(ERR_FORMAT, 1, "format not supported")                                                                          \
    X(ERR_SHAPE, 1, "shapes do not agree")                                                                            \
    X(ERR_IO, 1, "input or output failed")                                                                            \
    X(ERR_SPACE, 1, "no space left")                                                                                  \
    X(ERR_MEMORY, 1, "out of memory")                                                                                 \
    X(ERR_LIMIT, 1, "does not fit the limit")                                                                         \
    X(ERR_DEVICE, 1, "device failed")                                                                                 \
    X(ERR_UNSUPPORTED, 1, "not supported by this build or device")                                                    \
    X(ERR_MPI, 1, "MPI failed")                                                                                       \
    X(ERR_CHECK, 3, "the result failed its check")                                                                    \
    X(ERR_STOPPED, 75, "stopped on request")

typedef enum {
#define X(code, exit_code, text) TSR_##code,
    TSR_STATUS_LIST(X)
#undef X
    TSR_STATUS_COUNT
} tsr_status;

const char *tsr_status_text(tsr_status status);  /* static text, never NULL */
int tsr_status_exit_code(tsr_status status);     /* what app/main.c returns for it */

/* Records what went wrong (what, values, where, what to do: one line, no newline) for the calling thread and returns
 * `status`. Only the function that first detects an error calls it; callers pass the status on with TSR_TRY. */
tsr_status tsr_fail(tsr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What an errno of something written means: TSR_ERR_SPACE where the disk, a quota or the limit of a file's size leaves no room, else TSR_ERR_IO. */
tsr_status tsr_write_status(int error);
const char *tsr_message(void);               /* the calling thread's last message; "" when there is none */
void tsr_message_set(const char *message);   /* hands a message from one thread or rank to another */

#define TSR_TRY(expr)                                                                                                 \
    do {                                                                                                              \
        tsr_status tsr_try_ = (expr);                                                                                 \
        if (tsr_try_ != TSR_OK) return tsr_try_;                                                                      \
    } while (0)

/* The same inside a function that releases local resources at its label `done:`; needs `tsr_status status`. */
#define TSR_TRY_DONE(expr)                                                                                            \
    do {                                                                                                              \
        status = (expr);                                                                                              \
        if (status != TSR_OK) goto done;                                                                              \
    } while (0)

/* ---- element types ------------------------------------------------------------------------------------------ */

/* code, name, bytes, kind ('f' floating, 'i' signed, 'u' unsigned) */
#define TSR_DTYPE_LIST(X)                                                                                             \
    X(F16, "f16", 2, 'f')                                                                                             \
    X(BF16, "bf16", 2, 'f')                                                                                           \
    X(F32, "f32", 4, 'f')                                                                                             \
    X(F64, "f64", 8, 'f')                                                                                             \
    X(I8, "i8", 1, 'i')                                                                                               \
    X(I16, "i16", 2, 'i')                                                                                             \
    X(I32, "i32", 4, 'i')                                                                                             \
    X(I64, "i64", 8, 'i')                                                                                             \
    X(U8, "u8", 1, 'u')                                                                                               \
    X(U16, "u16", 2, 'u')                                                                                             \
    X(U32, "u32", 4, 'u')                                                                                             \
    X(U64, "u64", 8, 'u')

typedef enum {
#define X(code, name, bytes, kind) TSR_##code,
    TSR_DTYPE_LIST(X)
#undef X
    TSR_DTYPE_COUNT
} tsr_dtype;

size_t tsr_dtype_bytes(tsr_dtype dtype);
const char *tsr_dtype_name(tsr_dtype dtype);
/* Also float32, fp32, float, single, half, int8 ..., in any case; lists names on error. */
tsr_status tsr_dtype_parse(const char *name, tsr_dtype *dtype);
/* The type that values of this type ask to be multiplied in: fp32 for f16, f32 and integers up to 16 bits; fp64 for the
 * rest, which fp32 would round. Sums of integers may ask for more (tsr_problem_make). */
tsr_dtype tsr_dtype_compute(tsr_dtype dtype);
double tsr_dtype_largest(tsr_dtype dtype);   /* magnitude an integer type can hold; 0 for floating types */
double tsr_dtype_integers(tsr_dtype dtype);  /* up to which a floating type holds all whole numbers; 0 for integers */

/* How an element stands in a file or a buffer that came from one. */
typedef struct {
    tsr_dtype dtype;
    bool swapped; /* bytes in the order this machine does not use */
} tsr_element;

float tsr_half_to_float(uint16_t half);   /* exact */
uint16_t tsr_float_to_half(float value);  /* round to nearest even; overflow gives infinity; NaN stays NaN */
double tsr_element_to_double(tsr_element element, const void *at); /* one element at `at` (any alignment) */

/* ---- rectangles and views ----------------------------------------------------------------------------------- */

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

/* ---- arithmetic --------------------------------------------------------------------------------------------- */

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
