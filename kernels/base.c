/* Status texts and the thread's message, element types and their conversion to double, checked sizes, byte counts as
 * people write them, and the monotonic clock. */
#include "kernels/base.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "kernels/half.h"

/* ---- status ------------------------------------------------------------------------------------------------- */

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
    memcpy(thread_message, text, sizeof text);
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

tsr_status tsr_write_status(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG ? TSR_ERR_SPACE : TSR_ERR_IO; }

/* ---- element types ------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    size_t bytes;
    char kind;
} dtypes[] = {
#define X(code, name, bytes, kind) {name, bytes, kind},
    TSR_DTYPE_LIST(X)
#undef X
};

size_t tsr_dtype_bytes(tsr_dtype dtype) { return dtypes[dtype].bytes; }
const char *tsr_dtype_name(tsr_dtype dtype) { return dtypes[dtype].name; }

tsr_status tsr_dtype_parse(const char *name, tsr_dtype *dtype) {
    static const struct {
        const char *name;
        tsr_dtype dtype;
    } others[] = {{"float16", TSR_F16}, {"fp16", TSR_F16},   {"half", TSR_F16},   {"bfloat16", TSR_BF16},
                  {"float32", TSR_F32}, {"fp32", TSR_F32},   {"float", TSR_F32},  {"single", TSR_F32},
                  {"float64", TSR_F64}, {"fp64", TSR_F64},   {"double", TSR_F64}, {"int8", TSR_I8},
                  {"int16", TSR_I16},   {"int32", TSR_I32},  {"int64", TSR_I64},  {"uint8", TSR_U8},
                  {"uint16", TSR_U16},  {"uint32", TSR_U32}, {"uint64", TSR_U64}};
    for (int i = 0; i < TSR_DTYPE_COUNT; i++)
        if (strcasecmp(name, dtypes[i].name) == 0) return *dtype = (tsr_dtype)i, TSR_OK;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcasecmp(name, others[i].name) == 0) return *dtype = others[i].dtype, TSR_OK;
    return tsr_fail(TSR_ERR_USAGE,
                    "unknown element type '%s': use one of "
#define X(code, text, bytes, kind) text " "
                    TSR_DTYPE_LIST(X)
#undef X
                        "(or half, float, double, float32, fp32, int32, uint8 and the like)",
                    name);
}

tsr_dtype tsr_dtype_compute(tsr_dtype dtype) {
    if (dtypes[dtype].kind == 'f') return dtype == TSR_F64 ? TSR_F64 : TSR_F32;
    return dtypes[dtype].bytes <= 2 ? TSR_F32 : TSR_F64;
}

double tsr_dtype_largest(tsr_dtype dtype) {
    const int bits = (int)(8 * dtypes[dtype].bytes);
    if (dtypes[dtype].kind == 'f') return 0;
    return dtypes[dtype].kind == 'i' ? ldexp(1, bits - 1) : ldexp(1, bits) - 1;
}

double tsr_dtype_integers(tsr_dtype dtype) {
    switch (dtype) {
    case TSR_F16: return 0x1p11;
    case TSR_BF16: return 0x1p8;
    case TSR_F32: return 0x1p24;
    case TSR_F64: return 0x1p53;
    default: return 0;
    }
}

float tsr_half_to_float(uint16_t half) { return tsr_half_decode(half); }
uint16_t tsr_float_to_half(float value) { return tsr_half_encode((double)value); }

double tsr_element_to_double(tsr_element element, const void *at) {
    size_t bytes = tsr_dtype_bytes(element.dtype);
    unsigned char raw[8];
    for (size_t i = 0; i < bytes; i++) raw[i] = ((const unsigned char *)at)[element.swapped ? bytes - 1 - i : i];
    union {
        float f32;
        double f64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } value = {0};
    memcpy(&value, raw, bytes);
    switch (element.dtype) {
    case TSR_F16: return (double)tsr_half_decode(value.u16);
    case TSR_BF16: return (double)tsr_bf16_decode(value.u16);
    case TSR_F32: return (double)value.f32;
    case TSR_F64: return value.f64;
    case TSR_I8: return (double)value.i8;
    case TSR_I16: return (double)value.i16;
    case TSR_I32: return (double)value.i32;
    case TSR_I64: return (double)value.i64;
    case TSR_U8: return (double)value.u8;
    case TSR_U16: return (double)value.u16;
    case TSR_U32: return (double)value.u32;
    case TSR_U64: return (double)value.u64;
    case TSR_DTYPE_COUNT: break;
    }
    return (double)NAN;
}

/* ---- arithmetic --------------------------------------------------------------------------------------------- */

tsr_status tsr_bytes_checked(int64_t rows, int64_t cols, size_t element_bytes, size_t *bytes) {
    int64_t elements, product;
    if (rows < 0 || cols < 0 || element_bytes > (size_t)INT64_MAX || __builtin_mul_overflow(rows, cols, &elements) ||
        __builtin_mul_overflow(elements, (int64_t)element_bytes, &product))
        return tsr_fail(TSR_ERR_LIMIT, "%" PRId64 " x %" PRId64 " elements of %zu bytes do not fit 63 bits: use a smaller matrix",
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
    while (fabs(bytes) >= 999.5 && unit < 6) bytes /= 1000, unit++;
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
        return tsr_fail(TSR_ERR_USAGE, "'%s' is no size: write bytes with an optional unit, such as 1048576, 512MiB, 4G or 1.5GB", text);
    double value = strtod(text, NULL) * unit;
    if (value >= 0x1p63)
        return tsr_fail(TSR_ERR_LIMIT, "size '%s' does not fit 63 bits: use a smaller one", text);
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
