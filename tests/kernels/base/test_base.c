/* Status and message, element types and their parsers, half precision, sizes. */
#define _GNU_SOURCE /* setenv */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <pthread.h>

#include "kernels/base/element.h"
#include "tests/check.h"

static void *other_thread(void *seen) {
    strcpy(seen, tsr_message());
    tsr_fail(TSR_ERR_IO, "another thread's");
    return NULL;
}

static void check_messages(void) {
    char seen[64] = "unset";
    pthread_t thread;
    CHECK(tsr_fail(TSR_ERR_SHAPE, "a is %d x %d:\nuse %s", 2, 3, "b") == TSR_ERR_SHAPE, "status not returned");
    CHECK(strcmp(tsr_message(), "a is 2 x 3: use b") == 0, "%s", tsr_message());
    tsr_fail(TSR_ERR_SHAPE, "around: %s", tsr_message());
    CHECK(strcmp(tsr_message(), "around: a is 2 x 3: use b") == 0, "%s", tsr_message());
    CHECK(pthread_create(&thread, NULL, other_thread, seen) == 0, "no thread");
    pthread_join(thread, NULL);
    CHECK(strcmp(seen, "") == 0, "the thread saw '%s'", seen);
    CHECK(strcmp(tsr_message(), "around: a is 2 x 3: use b") == 0, "%s", tsr_message());
    tsr_message_set(tsr_message());
    CHECK(strcmp(tsr_message(), "around: a is 2 x 3: use b") == 0, "%s", tsr_message());
    tsr_message_set(NULL);
    CHECK(strcmp(tsr_message(), "") == 0, "%s", tsr_message());
}

static void check_statuses(void) {
    CHECK(tsr_status_exit_code(TSR_OK) == 0 && tsr_status_exit_code(TSR_ERR_USAGE) == 2, "exit codes");
    CHECK(tsr_write_status(ENOSPC) == TSR_ERR_SPACE && tsr_write_status(EDQUOT) == TSR_ERR_SPACE &&
              tsr_write_status(EFBIG) == TSR_ERR_SPACE,
          "no room");
    CHECK(tsr_write_status(EIO) == TSR_ERR_IO && tsr_write_status(0) == TSR_ERR_IO, "room");
    CHECK(strstr(tsr_write_advice(EFBIG), "ulimit -f") && strstr(tsr_write_advice(ENOSPC), "free some space") &&
              strstr(tsr_write_advice(EDQUOT), "free some space") && strstr(tsr_write_advice(EIO), "check the disk"),
          "advice");
    CHECK(tsr_status_exit_code(TSR_ERR_CHECK) == 3 && tsr_status_exit_code(TSR_ERR_STOPPED) == 75, "exit codes");
    CHECK(tsr_status_exit_code((tsr_status)1000) == 1, "unknown status");
    CHECK(strcmp(tsr_status_text(TSR_ERR_SPACE), "no space left") == 0, "%s", tsr_status_text(TSR_ERR_SPACE));
    CHECK(strlen(tsr_status_text((tsr_status)-1)) > 0, "no text");
}

static void check_dtypes(void) {
    tsr_dtype dtype = TSR_U8;
    const char *const bad[] = {"", "f", "f128", "int", " f32", "f32 ", "float8", "complex256"};
    for (int i = 0; i < TSR_DTYPE_COUNT; i++) {
        CHECK_OK(tsr_dtype_parse(tsr_dtype_name((tsr_dtype)i), &dtype));
        CHECK((int)dtype == i, "%s parsed as %s", tsr_dtype_name((tsr_dtype)i), tsr_dtype_name(dtype));
    }
    CHECK_OK(tsr_dtype_parse("half", &dtype));
    CHECK(dtype == TSR_F16, "half");
    CHECK_OK(tsr_dtype_parse("single", &dtype));
    CHECK(dtype == TSR_F32, "single");
    CHECK_OK(tsr_dtype_parse("float64", &dtype));
    CHECK(dtype == TSR_F64 && tsr_dtype_bytes(dtype) == 8, "float64");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_FAILS(tsr_dtype_parse(bad[i], &dtype), TSR_ERR_USAGE, "f16 f32 f64");
    CHECK(dtype == TSR_F64, "set on failure");

    const tsr_dtype single[] = {TSR_F16, TSR_F32, TSR_I8, TSR_U8, TSR_I16, TSR_U16},
                    twice[] = {TSR_F64, TSR_I32, TSR_U32, TSR_I64, TSR_U64};
    for (int i = 0; i < 6; i++) CHECK(tsr_dtype_compute(single[i]) == TSR_F32, "%s", tsr_dtype_name(single[i]));
    for (int i = 0; i < 5; i++) CHECK(tsr_dtype_compute(twice[i]) == TSR_F64, "%s", tsr_dtype_name(twice[i]));
    const double largest[TSR_DTYPE_COUNT] = {
        [TSR_I8] = 128,    [TSR_I16] = 32768,        [TSR_I32] = 2147483648.0, [TSR_I64] = 0x1p63, [TSR_U8] = 255,
        [TSR_U16] = 65535, [TSR_U32] = 4294967295.0, [TSR_U64] = 0x1p64,       [TSR_BOOL] = 1};
    const double whole[TSR_DTYPE_COUNT] = {[TSR_F16] = 2048,     [TSR_BF16] = 256,
                                           [TSR_F32] = 16777216, [TSR_F64] = 9007199254740992.0,
                                           [TSR_C64] = 16777216, [TSR_C128] = 9007199254740992.0};
    for (int i = 0; i < TSR_DTYPE_COUNT; i++) {
        const double most = tsr_dtype_largest((tsr_dtype)i), all = tsr_dtype_integers((tsr_dtype)i);
        CHECK(most == largest[i] && all == whole[i], "%s: %g, %g", tsr_dtype_name((tsr_dtype)i), most, all);
    }
}

/* Ranges follow from a type's fields; C's own types and known constants say what they must be. */
static void check_ranges(void) {
    static const struct {
        tsr_dtype dtype;
        double roundoff, tiny, finite, overflow;
    } known[] = {{TSR_F16, 0x1p-11, 0x1p-25, 65504, 65520},
                 {TSR_BF16, 0x1p-8, 0x1p-134, 0x1.fep127, 0x1.ffp127},
                 {TSR_F32, FLT_EPSILON / 2, 0x1p-150, FLT_MAX, 0x1.ffffffp127},
                 {TSR_F64, DBL_EPSILON / 2, 0, DBL_MAX, INFINITY},
                 {TSR_I16, 0, 0, DBL_MAX, INFINITY}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const tsr_dtype dtype = known[i].dtype;
        CHECK(tsr_dtype_roundoff(dtype) == known[i].roundoff && tsr_dtype_tiny(dtype) == known[i].tiny, "%s: %g, %g",
              tsr_dtype_name(dtype), tsr_dtype_roundoff(dtype), tsr_dtype_tiny(dtype));
        CHECK(tsr_dtype_finite(dtype) == known[i].finite && tsr_dtype_overflow(dtype) == known[i].overflow,
              "%s: %g, %g", tsr_dtype_name(dtype), tsr_dtype_finite(dtype), tsr_dtype_overflow(dtype));
    }
}

/* The table against itself: sizes of C's types, names that are unique, sums in a type that sums are kept in. */
static void check_table(void) {
    static const size_t bytes[TSR_DTYPE_COUNT] = {
#define X(code, suffix, bits, memory) [TSR_##code] = sizeof(memory) * (8 * sizeof(memory) == bits),
        TSR_REAL_LIST(X)
#undef X
#define X(code, suffix, bits, part) [TSR_##code] = bits / 8,
            TSR_COMPLEX_LIST(X)
#undef X
    };
    tsr_dtype dtype = TSR_U8;
    for (int i = 0; i < TSR_DTYPE_COUNT; i++) {
        const tsr_dtype_facts *facts = tsr_dtype_facts_of((tsr_dtype)i);
        const bool floating = facts->kind == TSR_DTYPE_FLOAT;
        CHECK(facts->bytes == bytes[i], "%s has %zu bytes", facts->name, facts->bytes);
        CHECK(floating == (facts->mantissa_bits > 0), "%s: mantissa", facts->name);
        CHECK(!floating || 1 + facts->exponent_bits + facts->mantissa_bits == (int)(8 * bytes[i]), "%s: bits",
              facts->name);
        CHECK(tsr_dtype_serves(facts->compute, TSR_USE_SUM) && tsr_dtype_serves(facts->wider, TSR_USE_SUM),
              "%s is summed in %s", facts->name, tsr_dtype_name(facts->compute));
        CHECK(!tsr_dtype_serves((tsr_dtype)i, TSR_USE_SUM) || facts->compute == (tsr_dtype)i, "%s", facts->name);
        CHECK((tsr_dtype_part((tsr_dtype)i) == (tsr_dtype)i) == !tsr_dtype_is_complex((tsr_dtype)i), "%s: part",
              facts->name);
        if (!floating) continue;
        CHECK(tsr_dtype_of_fields(facts->bytes, facts->exponent_bits, facts->mantissa_bits, &dtype), "by fields");
        CHECK((int)dtype == i, "%s is found as %s", facts->name, tsr_dtype_name(dtype));
    }
    CHECK(!tsr_dtype_of_fields(2, 6, 9, &dtype) && !tsr_dtype_of_fields(1, 0, 0, &dtype), "no such type");
    CHECK(tsr_dtype_widest(TSR_F32, TSR_F64) == TSR_F64 && tsr_dtype_widest(TSR_F64, TSR_F16) == TSR_F64, "widest");
    CHECK_OK(tsr_dtype_parse_for(TSR_USE_SUM, "accumulated", "double", &dtype));
    CHECK(dtype == TSR_F64, "%s", tsr_dtype_name(dtype));
    CHECK_FAILS(tsr_dtype_parse_for(TSR_USE_SUM, "accumulated", "i8", &dtype), TSR_ERR_USAGE,
                "--accumulated i8: use f32 or f64");
    CHECK_FAILS(tsr_dtype_parse_for(TSR_USE_SUM, "type", "x", &dtype), TSR_ERR_USAGE, "unknown element type 'x'");
    CHECK(dtype == TSR_F64, "set on failure");
}

/* An element comes back as it was stored, in both byte orders. */
static void check_stores(void) {
    for (int i = 0; i < TSR_DTYPE_COUNT; i++) {
        if (tsr_dtype_is_complex((tsr_dtype)i)) continue;
        const size_t bytes = tsr_dtype_bytes((tsr_dtype)i);
        unsigned char row[3][8] = {{0}}, turned[8];
        memset(row, 0xaa, sizeof row);
        tsr_element_store((tsr_dtype)i, row[0], 1, 1);
        CHECK(row[0][0] == 0xaa && ((unsigned char *)row)[2 * bytes] == 0xaa, "%s: bytes around it written",
              tsr_dtype_name((tsr_dtype)i));
        const unsigned char *at = (unsigned char *)row + bytes;
        for (size_t b = 0; b < bytes; b++) turned[b] = at[bytes - 1 - b];
        CHECK(tsr_element_to_double((tsr_element){(tsr_dtype)i, false}, at) == 1, "%s", tsr_dtype_name((tsr_dtype)i));
        CHECK(tsr_element_to_double((tsr_element){(tsr_dtype)i, true}, turned) == 1, "%s turned",
              tsr_dtype_name((tsr_dtype)i));
    }
}

static void check_complex(void) {
    const float pair[2] = {1.5f, -2};
    const double twice[2] = {0.25, 8};
    unsigned char words[8], turned[8];
    memcpy(words, pair, sizeof pair);
    for (int b = 0; b < 8; b++) turned[b] = words[b ^ 3];
    const tsr_complex x = tsr_element_to_complex((tsr_element){TSR_C64, false}, pair);
    const tsr_complex y = tsr_element_to_complex((tsr_element){TSR_C64, true}, turned);
    const tsr_complex z = tsr_element_to_complex((tsr_element){TSR_C128, false}, twice);
    const tsr_complex real = tsr_element_to_complex((tsr_element){TSR_F64, false}, twice);
    CHECK(x.re == 1.5 && x.im == -2 && y.re == 1.5 && y.im == -2, "%g %g %g %g", x.re, x.im, y.re, y.im);
    CHECK(z.re == 0.25 && z.im == 8 && real.re == 0.25 && real.im == 0, "%g %g %g %g", z.re, z.im, real.re, real.im);
    CHECK(isnan(tsr_element_to_double((tsr_element){TSR_C64, false}, pair)), "a complex number is no double");
    CHECK(tsr_dtype_complex_of(TSR_F32) == TSR_C64 && tsr_dtype_complex_of(TSR_F64) == TSR_C128, "of parts");
    CHECK(tsr_dtype_complex_of(TSR_F16) == TSR_DTYPE_COUNT, "no complex type of halves");
    CHECK(tsr_dtype_parts(TSR_C128) == 2 && tsr_dtype_parts(TSR_F64) == 1, "parts");
    char text[TSR_COMPLEX_CHARS];
    CHECK(strcmp(tsr_complex_text((tsr_complex){1, -2}, text), "1-2j") == 0, "%s", text);
    CHECK(strcmp(tsr_complex_text((tsr_complex){0, 2.5}, text), "2.5j") == 0, "%s", text);
    CHECK(strcmp(tsr_complex_text(tsr_real(-3), text), "-3") == 0, "%s", text);
}

/* The definition, without bit tricks. */
static double half_value(unsigned half) {
    int exponent = half >> 10 & 31;
    double mantissa = half & 1023, sign = half & 0x8000 ? -1 : 1;
    if (exponent == 31) return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25));
}

static void check_halves(void) {
    for (unsigned half = 0; half < 65536; half++) {
        double value = half_value(half);
        float decoded = tsr_half_decode((uint16_t)half);
        if (isnan(value)) {
            CHECK(isnan(decoded), "%04x is %g", half, (double)decoded);
            unsigned back = tsr_half_encode(decoded);
            CHECK((back & 0x7c00) == 0x7c00 && (back & 1023) != 0, "%04x came back as %04x", half, back);
            continue;
        }
        CHECK((double)decoded == value && !signbit(decoded) == !signbit(value), "%04x is %g, not %g", half,
              (double)decoded, value);
        CHECK(tsr_half_encode(decoded) == half, "%04x came back as %04x", half, tsr_half_encode(decoded));
        if ((half & 0x7fff) >= 0x7bff) continue;            /* no finite neighbour above */
        double middle = (value + half_value(half + 1)) / 2; /* exact in float; ties go to the even half */
        unsigned even = half & 1 ? half + 1 : half, away = (half & 0x8000) ? 1 : 0;
        CHECK(tsr_half_encode(middle) == even, "middle %g of %04x", middle, half);
        float above = nextafterf((float)middle, INFINITY), below = nextafterf((float)middle, -INFINITY);
        CHECK(tsr_half_encode(above) == half + 1 - away, "above %g", middle);
        CHECK(tsr_half_encode(below) == half + away, "below %g", middle);
    }
    CHECK(tsr_half_encode(65519.996f) == 0x7bff && tsr_half_encode(65520.0f) == 0x7c00, "overflow");
    CHECK(tsr_half_encode(-1e30f) == 0xfc00 && tsr_half_encode(1e-30f) == 0 && tsr_half_encode(-1e-40f) == 0x8000,
          "range");
}

static void check_elements(void) {
    unsigned char raw[9] = {0xff, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08}; /* read at raw + 1: not aligned */
    CHECK(tsr_element_to_double((tsr_element){TSR_U16, true}, raw + 1) == 0x0102, "big-endian u16");
    CHECK(tsr_element_to_double((tsr_element){TSR_U16, false}, raw + 1) == 0x0201, "little-endian u16");
    CHECK(tsr_element_to_double((tsr_element){TSR_I32, true}, raw + 1) == 0x01020304, "big-endian i32");
    CHECK(tsr_element_to_double((tsr_element){TSR_U64, true}, raw + 1) == (double)0x0102030405060708, "big-endian u64");
    CHECK(tsr_element_to_double((tsr_element){TSR_I8, false}, raw) == -1, "i8");
    CHECK(tsr_element_to_double((tsr_element){TSR_U8, true}, raw) == 255, "u8");
    float single = -1.5f;
    CHECK(tsr_element_to_double((tsr_element){TSR_F32, false}, &single) == -1.5, "f32");
}

static void check_sizes(void) {
    size_t bytes = 7;
    char text[32];
    const struct {
        const char *text;
        size_t bytes;
    } good[] = {{"0", 0},
                {"1048576", 1048576},
                {"4G", (size_t)4 << 30},
                {"512MiB", (size_t)512 << 20},
                {"1.5GB", 1500000000},
                {"2k", 2048},
                {"3TB", 3000000000000},
                {"0.5K", 512},
                {"10B", 10},
                {"9007199254740993", 9007199254740993}};
    const char *const bad[] = {"",   "G",     "-1",   "1.G", ".5G", "1X",  "1GiBs", "1 ",
                               " 1", "1Gi x", "0x10", "inf", "nan", "1e9", "+3"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_OK(tsr_parse_bytes(good[i].text, &bytes));
        CHECK(bytes == good[i].bytes, "%s is %zu", good[i].text, bytes);
    }
    bytes = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_FAILS(tsr_parse_bytes(bad[i], &bytes), TSR_ERR_USAGE, "no size");
    CHECK_FAILS(tsr_parse_bytes("99999999999999999999", &bytes), TSR_ERR_LIMIT, "63 bits");
    CHECK_FAILS(tsr_parse_bytes("8388608T", &bytes), TSR_ERR_LIMIT, "63 bits");
    CHECK_FAILS(tsr_bytes_checked((int64_t)1 << 31, (int64_t)1 << 31, 4, &bytes), TSR_ERR_LIMIT, "smaller");
    CHECK_FAILS(tsr_bytes_checked(-1, 1, 4, &bytes), TSR_ERR_LIMIT, "-1");
    CHECK(bytes == 7, "set on failure");
    CHECK_OK(tsr_bytes_checked((int64_t)1 << 31, (int64_t)1 << 28, 8, &bytes));
    CHECK(bytes == (size_t)1 << 62, "%zu", bytes);
    CHECK(strcmp(tsr_format_bytes(1.5e9, text), "1.50 GB") == 0, "%s", text);
    CHECK(strcmp(tsr_format_bytes(999, text), "999 B") == 0, "%s", text);
    CHECK(tsr_ceil_div(INT64_MAX, 2) == INT64_MAX / 2 + 1, "ceil_div overflows");
    CHECK(tsr_round_up(0, 8) == 0 && tsr_round_up(9, 8) == 16, "round_up");
    double before = tsr_now_seconds();
    CHECK(tsr_now_seconds() >= before, "the clock runs backwards");
}

static void check_variable(const char *text, int64_t expected, const char *after) {
    const char *rest = NULL;
    if (text) setenv("TSR_TEST_NUMBER", text, 1);
    else unsetenv("TSR_TEST_NUMBER");
    const int64_t number = tsr_variable_number("TSR_TEST_NUMBER", &rest);
    CHECK(number == expected && strcmp(rest, after) == 0, "'%s' is %lld before '%s'", text ? text : "(not set)",
          (long long)number, rest);
    CHECK(tsr_variable_number("TSR_TEST_NUMBER", NULL) == expected, "without the rest");
}

static void test_variables(void) {
    check_variable(NULL, -1, "");
    check_variable("", -1, "");
    check_variable("x", -1, "");
    check_variable("-3", -1, "");
    check_variable("+3", -1, "");
    check_variable("0", 0, "");
    check_variable(" 12", 12, "");
    check_variable("2(x3)", 2, "(x3)");
    check_variable("4,2", 4, ",2");
    check_variable("9223372036854775807", INT64_MAX, "");
    check_variable("99999999999999999999x", INT64_MAX, "x");
    unsetenv("TSR_TEST_NUMBER");
}

int main(void) {
    test_variables();
    check_messages();
    check_statuses();
    check_dtypes();
    check_table();
    check_ranges();
    check_stores();
    check_complex();
    check_halves();
    check_elements();
    check_sizes();
    return 0;
}
