/* Pack, add and finish of reals against plain loops over tsr_element_to_double: every real element type, byte order,
 * transpose and padding, with guard bands around everything written. One source for the CPU device, the emulated CUDA
 * device and a GPU. */
#include <math.h>

#include "kernels/base/element.h"
#include "kernels/pack/pack.h"
#include "tests/kernels/device/device_under_test.h"

enum { GUARD = 64, PAINT = 0xa5 }; /* painted bytes before and after a buffer, and between its rows */

typedef struct {
    int64_t rows, cols, ld;             /* of the source */
    int64_t pad_rows, pad_cols, pad_ld; /* added to the target's */
    /* elements before the first, so that it lies at another address */
    int64_t from_at, to_at;
} shape;

static const shape shapes[] = {
    {1, 1, 1, 0, 0, 0, 0, 0},       {3, 5, 8, 2, 3, 1, 0, 0},       {0, 4, 4, 3, 0, 2, 0, 0},
    {4, 0, 0, 0, 5, 0, 0, 0},       {33, 65, 67, 1, 31, 3, 0, 0},   {40, 128, 132, 8, 8, 4, 0, 0},
    {129, 31, 31, 0, 1, 0, 0, 0},   {2, 2, 2, 0, 0, 0, 1, 1},       {131, 259, 259, 0, 0, 0, 0, 0},
    {140, 300, 301, 3, 5, 1, 1, 3}, {66, 130, 131, 0, 30, 0, 3, 0}, {150, 34, 37, 0, 0, 5, 0, 5}};

static uint64_t state = 88172645463325252u;
static uint64_t random_bits(void) { /* xorshift64 */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Any bits: subnormals, NaN and Inf among them. */
static unsigned char *random_bytes(size_t bytes) {
    unsigned char *made = malloc(bytes + 1);
    CHECK(made != NULL, "no memory");
    for (size_t i = 0; i < bytes; i++) made[i] = (unsigned char)(random_bits() >> 24);
    return made;
}

/* Ordinary values of the type, in its byte order. */
static unsigned char *random_values(tsr_element element, int64_t elements) {
    size_t width = tsr_dtype_bytes(element.dtype), bytes = (size_t)elements * width;
    unsigned char *made = random_bytes(bytes);
    for (int64_t i = 0; i < elements; i++) {
        unsigned char *at = made + (size_t)i * width, swapped[8];
        float single = (float)((int)(random_bits() >> 40) - (1 << 23)) * 0x1p-18f;
        double twice = (double)single * (1 + 0x1p-40);
        uint16_t half = tsr_half_encode(single);
        if (element.dtype == TSR_F16) memcpy(at, &half, sizeof half);
        /* finite: the float's upper half, on the machines there are */
        if (element.dtype == TSR_BF16) memcpy(at, (unsigned char *)&single + 2, 2);
        if (element.dtype == TSR_F32) memcpy(at, &single, sizeof single);
        if (element.dtype == TSR_F64) memcpy(at, &twice, sizeof twice);
        for (size_t b = 0; b < width; b++) swapped[b] = at[width - 1 - b];
        if (element.swapped) memcpy(at, swapped, width);
    }
    return made;
}

static unsigned char *painted(size_t bytes) {
    unsigned char *made = malloc(bytes + 2 * GUARD);
    CHECK(made != NULL, "no memory");
    memset(made, PAINT, bytes + 2 * GUARD);
    return made;
}

/* Everything but rows × cols elements of a painted buffer still is. */
static void check_guards(const unsigned char *buffer, int64_t rows, int64_t cols, int64_t ld, int64_t lines,
                         size_t width, const char *what) {
    size_t bytes = (size_t)(lines * ld) * width;
    for (size_t at = 0; at < bytes + 2 * GUARD; at++) {
        int64_t element = at < GUARD || at >= GUARD + bytes ? -1 : (int64_t)((at - GUARD) / width);
        if (element >= 0 && element / ld < rows && element % ld < cols) continue;
        CHECK(buffer[at] == PAINT, "%s: byte %zu of a target of %lld x %lld written", what, at, (long long)rows,
              (long long)cols);
    }
}

static bool same(double value, double expected) { return value == expected || (isnan(value) && isnan(expected)); }

/* Rounds to `bits` significant bits, exponents from `lowest` on, by arithmetic: ties to even, what reaches 2^above
 * becomes infinity. */
static double to_bits(double value, int bits, int lowest, int above) {
    if (value == 0 || !isfinite(value)) return value;
    int exponent = ilogb(value) < lowest ? lowest : ilogb(value);
    double rounded = ldexp(nearbyint(ldexp(value, bits - 1 - exponent)), exponent - bits + 1);
    return fabs(rounded) >= ldexp(1.0, above) ? copysign((double)INFINITY, value) : rounded;
}

static double rounded_to(tsr_dtype dtype, double value) {
    return dtype == TSR_F16    ? to_bits(value, 11, -14, 16)
           : dtype == TSR_BF16 ? to_bits(value, 8, -126, 128)
           : dtype == TSR_F32  ? (double)(float)value
                               : value;
}

/* ---- pack ------------------------------------------------------------------------------------ */

static void check_packed(const tsr_pack_args *args, const unsigned char *from, const unsigned char *to,
                         const char *what) {
    size_t from_width = tsr_dtype_bytes(args->from.element.dtype), to_width = tsr_dtype_bytes(args->type);
    int64_t rows = args->transpose ? args->from.cols : args->from.rows,
            cols = args->transpose ? args->from.rows : args->from.cols;
    for (int64_t i = 0; i < args->padded_rows; i++)
        for (int64_t j = 0; j < args->padded_cols; j++) {
            int64_t source = args->transpose ? j * args->from.ld + i : i * args->from.ld + j;
            bool inside = i < rows && j < cols;
            double expected =
                inside ? tsr_element_to_double(args->from.element, from + (size_t)source * from_width) : 0.0;
            expected = rounded_to(args->type, expected);
            double value =
                tsr_element_to_double((tsr_element){args->type, false}, to + (size_t)(i * args->ld + j) * to_width);
            CHECK(same(value, expected), "%s: (%lld, %lld) is %g, not %g", what, (long long)i, (long long)j, value,
                  expected);
            CHECK(inside || !signbit(value), "%s: padding is -0", what);
        }
}

static void check_pack(const device_under_test *under, tsr_element element, tsr_dtype type, bool transpose, shape s) {
    char what[128];
    snprintf(what, sizeof what, "pack %s%s to %s%s, %lld x %lld", tsr_dtype_name(element.dtype),
             element.swapped ? " swapped" : "", tsr_dtype_name(type), transpose ? " transposed" : "", (long long)s.rows,
             (long long)s.cols);
    size_t from_bytes = (size_t)(s.rows * s.ld) * tsr_dtype_bytes(element.dtype),
           before = (size_t)s.from_at * tsr_dtype_bytes(element.dtype);
    tsr_pack_args args = {.from = {NULL, element, s.rows, s.cols, s.ld}, .transpose = transpose, .type = type};
    args.padded_rows = (transpose ? s.cols : s.rows) + s.pad_rows;
    args.padded_cols = (transpose ? s.rows : s.cols) + s.pad_cols;
    args.ld = args.padded_cols + s.pad_ld;
    size_t to_bytes = (size_t)(args.padded_rows * args.ld) * tsr_dtype_bytes(type),
           skipped = (size_t)s.to_at * tsr_dtype_bytes(type);
    unsigned char *from = random_bytes(before + from_bytes);
    unsigned char *painting = painted(skipped + to_bytes);
    unsigned char *to = painting + skipped;
    char *device_from = test_upload(under, from, before + from_bytes),
         *device_to = test_upload(under, painting, skipped + to_bytes + 2 * GUARD);
    args.from.data = device_from + before;
    args.to = device_to + skipped + GUARD;
    CHECK_OK(tsr_pack_find(under->ops->kind)->pack(under->device, under->stream, &args));
    test_download(under, painting, device_to, skipped + to_bytes + 2 * GUARD);
    under->ops->release(under->device, device_from);
    check_packed(&args, from + before, to + GUARD, what);
    check_guards(to, args.padded_rows, args.padded_cols, tsr_max(args.ld, 1), args.padded_rows, tsr_dtype_bytes(type),
                 what);
    free(from);
    free(painting);
}

static void check_packs(const device_under_test *under) {
    const tsr_dtype targets[] = {TSR_F32, TSR_F64, TSR_BF16, TSR_F16};
    for (int dtype = 0; dtype < TSR_DTYPE_COUNT; dtype++)
        for (int choice = 0; choice < 16; choice++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                if (!tsr_dtype_is_complex((tsr_dtype)dtype) && (targets[choice / 4] != TSR_F16 || dtype == TSR_F16))
                    check_pack(under, (tsr_element){(tsr_dtype)dtype, choice & 1}, targets[choice / 4], choice & 2,
                               shapes[s]);
}

/* ---- finish ---------------------------------------------------------------------------------- */

/* c0 is NULL when it must not be read. */
static void check_finish(const device_under_test *under, tsr_dtype type, tsr_dtype out_type, tsr_element c0_element,
                         double alpha, double beta, bool with_c0) {
    enum { ROWS = 9, COLS = 141, LD = 144, LD_C0 = 143, LD_OUT = 148 };
    char what[128];
    snprintf(what, sizeof what, "finish %s to %s with %s%s, alpha %g, beta %g", tsr_dtype_name(type),
             tsr_dtype_name(out_type), tsr_dtype_name(c0_element.dtype), c0_element.swapped ? " swapped" : "", alpha,
             beta);
    size_t width = tsr_dtype_bytes(type);
    size_t c0_width = tsr_dtype_bytes(c0_element.dtype);
    size_t out_width = tsr_dtype_bytes(out_type);
    unsigned char *sum = random_values((tsr_element){type, false}, ROWS * LD),
                  *c0 = random_values(c0_element, ROWS * LD_C0);
    unsigned char *out = painted(ROWS * LD_OUT * out_width);
    if (beta == 0) memset(c0, 0xff, ROWS * LD_C0 * c0_width); /* NaN, for floating types */
    void *device_sum = test_upload(under, sum, ROWS * LD * width);
    void *device_c0 = with_c0 ? test_upload(under, c0, ROWS * LD_C0 * c0_width) : NULL;
    void *device_out = test_upload(under, out, ROWS * LD_OUT * out_width + 2 * GUARD);
    uint64_t counted = 7, overflows = counted; /* it is added to */
    uint64_t *device_overflows = test_upload(under, &overflows, sizeof overflows);
    tsr_finish_args args = {.accumulated = {device_sum, {type, false}, ROWS, COLS, LD},
                            .alpha = alpha,
                            .beta = beta,
                            .c0 = {device_c0, c0_element, ROWS, COLS, LD_C0},
                            .out = {(char *)device_out + GUARD, {out_type, false}, ROWS, COLS, LD_OUT},
                            .overflows = device_overflows};
    CHECK_OK(tsr_pack_find(under->ops->kind)->finish(under->device, under->stream, &args));
    test_download(under, out, device_out, ROWS * LD_OUT * out_width + 2 * GUARD);
    test_download(under, &overflows, device_overflows, sizeof overflows);
    under->ops->release(under->device, device_sum);
    under->ops->release(under->device, device_c0);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLS; j++) {
            double expected =
                alpha * tsr_element_to_double((tsr_element){type, false}, sum + (size_t)(i * LD + j) * width);
            volatile double add =
                beta != 0 ? beta * tsr_element_to_double(c0_element, c0 + (size_t)(i * LD_C0 + j) * c0_width) : 0;
            if (beta != 0) expected += add;
            double value = tsr_element_to_double((tsr_element){out_type, false},
                                                 out + GUARD + (size_t)(i * LD_OUT + j) * out_width);
            CHECK(same(value, rounded_to(out_type, expected)), "%s: (%lld, %lld) is %.17g, not %.17g", what,
                  (long long)i, (long long)j, value, rounded_to(out_type, expected));
            counted += isfinite(expected) && isinf(rounded_to(out_type, expected));
        }
    CHECK(overflows == counted, "%s: %lld overflows, not %lld", what, (long long)overflows, (long long)counted);
    check_guards(out, ROWS, COLS, LD_OUT, ROWS, out_width, what);
    free(sum);
    free(c0);
    free(out);
}

static void check_finishes(const device_under_test *under) {
    const tsr_dtype outs[] = {TSR_F16, TSR_BF16, TSR_F32, TSR_F64};
    for (int pair = 0; pair < 8; pair++) {
        tsr_dtype type = pair & 1 ? TSR_F64 : TSR_F32, out = outs[pair / 2];
        for (int c0 = 0; c0 < 2 * TSR_DTYPE_COUNT; c0++)
            if (!tsr_dtype_is_complex((tsr_dtype)(c0 / 2)))
                check_finish(under, type, out, (tsr_element){(tsr_dtype)(c0 / 2), c0 % 2}, 0.3, -1.7, true);
        check_finish(under, type, out, (tsr_element){TSR_F32, false}, 1, 1, true);
        check_finish(under, type, out, (tsr_element){TSR_F32, false}, 1, 0, true); /* c0 is NaN */
        check_finish(under, type, out, (tsr_element){TSR_F64, true}, -0.7, 0, true);
        check_finish(under, type, out, (tsr_element){TSR_F32, false}, 1, 0, false); /* c0 is NULL */
        check_finish(under, type, out, (tsr_element){TSR_F32, false}, 1e300, 0, false);
    }
}

/* One of what each device makes: NaN of any sign and payload as it was, of infinities, and of 0 times one. */
static void check_one_nan(const device_under_test *under, tsr_dtype type, tsr_dtype out_type) {
    enum { COUNT = 6 };
    const uint64_t wide[COUNT] = {0x7ff8000000000000, 0xfff8000000000000, 0xfff0000000000001,
                                  0x7fffffffffffffff, 0x7ff0000000000000, 0xfff0000000000000};
    const uint32_t narrow[COUNT] = {0x7fc00000, 0xffc00000, 0xff800001, 0x7fffffff, 0x7f800000, 0xff800000};
    const float c0[COUNT] = {1, 1, 1, 1, -INFINITY, INFINITY};
    const int parts = tsr_dtype_parts(out_type);
    const tsr_dtype part = tsr_dtype_part(out_type);
    const size_t width = tsr_dtype_bytes(part);
    const void *from = type == TSR_F64 ? (const void *)wide : narrow;
    void *sum = test_upload(under, from, COUNT * tsr_dtype_bytes(type)), *added = test_upload(under, c0, sizeof c0);
    unsigned char out[2 * COUNT * sizeof(double)] = {0}, one[sizeof(double)];
    tsr_element_store(part, one, 0, (double)NAN);
    for (int way = 0; way < 4; way++) { /* alpha of 0 and of 1 beside C0, and a complex one; C as it is */
        void *device_out = test_upload(under, out, sizeof out);
        tsr_finish_args args = {.accumulated = {sum, {type, false}, 1, COUNT, COUNT},
                                .alpha = way == 0 ? 0 : 1,
                                .alpha_imag = way == 2 ? 2 : 0,
                                .beta = way == 1 ? 1 : 0,
                                .c0 = {added, {TSR_F32, false}, 1, COUNT, COUNT},
                                .out = {device_out, {out_type, false}, 1, COUNT, COUNT},
                                .one_nan = way == 3};
        CHECK_OK(tsr_pack_find(under->ops->kind)->finish(under->device, under->stream, &args));
        test_download(under, out, device_out, sizeof out);
        for (int i = 0; i < COUNT * parts; i += way == 0 ? parts : 1) {
            const bool infinite = way >= 2 && i / parts >= 4, real = way % 2 == 1 && i % parts == 1;
            if (!infinite && !real)
                CHECK(memcmp(out + (size_t)i * width, one, width) == 0, "%s to %s, way %d: part %d is another NaN",
                      tsr_dtype_name(type), tsr_dtype_name(out_type), way, i);
        }
    }
    under->ops->release(under->device, sum);
    under->ops->release(under->device, added);
}

static void check_nans(const device_under_test *under) {
    const tsr_dtype outs[] = {TSR_F16, TSR_BF16, TSR_F32, TSR_F64, TSR_C64, TSR_C128};
    for (size_t out = 0; out < sizeof outs / sizeof *outs; out++) {
        check_one_nan(under, TSR_F32, outs[out]);
        check_one_nan(under, TSR_F64, outs[out]);
    }
}

enum { MANY_ROWS = 70, MANY_COLS = 300, MANY = MANY_ROWS * MANY_COLS }; /* more than a block has threads */

static double sums[MANY]; /* around the ends of the outputs' ranges, and beyond */
static float sums_single[MANY], many_c0[MANY];

static void make_sums(void) {
    static const double edges[] = {0,
                                   1,
                                   65504,
                                   65519.996,
                                   65520,
                                   65536,
                                   -65519.996,
                                   -65520,
                                   1e9,
                                   0x1.fffffep127,
                                   -0x1.fffffep127,
                                   0x1.fffffefffffffp127,
                                   0x1.ffffffp127,
                                   -0x1.ffffffp127,
                                   -1e300,
                                   1e308,
                                   INFINITY,
                                   -INFINITY,
                                   NAN};
    static const float added[3] = {0, INFINITY, NAN};
    for (int i = 0; i < MANY; i++) {
        sums[i] = edges[i % (int)(sizeof edges / sizeof *edges)];
        sums_single[i] = (float)sums[i];
        many_c0[i] = i % 23 == 0 ? added[i / 23 % 3] : 0;
    }
}

/* What is finite and becomes infinite is counted once; what is infinite or NaN already, or by C0, is not. */
static void check_overflows_of(const device_under_test *under, tsr_dtype type, tsr_dtype out_type, double alpha,
                               double beta) {
    static char out[MANY * sizeof(double)];
    const bool wide = type == TSR_F64;
    uint64_t overflows = 0, counted = 0;
    void *device_sum = test_upload(under, wide ? (void *)sums : (void *)sums_single, MANY * tsr_dtype_bytes(type));
    void *device_c0 = test_upload(under, many_c0, sizeof many_c0), *device_out = test_upload(under, out, sizeof out);
    uint64_t *device_overflows = test_upload(under, &overflows, sizeof overflows);
    const tsr_finish_args args = {.accumulated = {device_sum, {type, false}, MANY_ROWS, MANY_COLS, MANY_COLS},
                                  .alpha = alpha,
                                  .beta = beta,
                                  .c0 = {device_c0, {TSR_F32, false}, MANY_ROWS, MANY_COLS, MANY_COLS},
                                  .out = {device_out, {out_type, false}, MANY_ROWS, MANY_COLS, MANY_COLS},
                                  .overflows = device_overflows};
    CHECK_OK(tsr_pack_find(under->ops->kind)->finish(under->device, under->stream, &args));
    test_download(under, out, device_out, sizeof out);
    test_download(under, &overflows, device_overflows, sizeof overflows);
    under->ops->release(under->device, device_sum);
    under->ops->release(under->device, device_c0);
    for (int i = 0; i < MANY; i++) {
        const double scaled = alpha * (wide ? sums[i] : (double)sums_single[i]);
        const double value = beta != 0 ? scaled + beta * (double)many_c0[i] : scaled;
        const char *at = out + (size_t)i * tsr_dtype_bytes(out_type);
        const double got = tsr_element_to_double((tsr_element){out_type, false}, at);
        CHECK(same(got, rounded_to(out_type, value)), "%g of %g in %s", got, value, tsr_dtype_name(out_type));
        counted += isfinite(value) && isinf(got);
    }
    const char *from = tsr_dtype_name(type), *to = tsr_dtype_name(out_type);
    const bool possible = tsr_dtype_bytes(out_type) == 2 || (out_type == TSR_F32 && (wide || fabs(alpha) > 1));
    CHECK(possible == (counted > 0), "%s to %s: the cases no longer cover both", from, to);
    CHECK(overflows == counted, "%s to %s, alpha %g, beta %g: %lld overflows, not %lld", from, to, alpha, beta,
          (long long)overflows, (long long)counted);
}

static void check_overflows(const device_under_test *under) {
    static const tsr_dtype types[] = {TSR_F32, TSR_F64}, outs[] = {TSR_F16, TSR_BF16, TSR_F32, TSR_F64};
    make_sums();
    for (int pair = 0; pair < 8; pair++) {
        check_overflows_of(under, types[pair % 2], outs[pair / 2], 1, 0);
        check_overflows_of(under, types[pair % 2], outs[pair / 2], -1, 1);
        check_overflows_of(under, types[pair % 2], outs[pair / 2], 1.5, -1);
    }
}

/* out may be the accumulated memory itself when the types agree. */
static void check_finish_in_place(const device_under_test *under) {
    enum { ROWS = 5, COLS = 70 };
    float *values = (float *)(void *)random_values((tsr_element){TSR_F32, false}, ROWS * COLS), after[ROWS * COLS];
    for (int scaled = 0; scaled < 2; scaled++) {
        void *memory = test_upload(under, values, ROWS * COLS * sizeof(float));
        tsr_view view = {memory, {TSR_F32, false}, ROWS, COLS, COLS};
        tsr_finish_args args = {.accumulated = view, .alpha = scaled ? 2 : 1, .out = view};
        CHECK_OK(tsr_pack_find(under->ops->kind)->finish(under->device, under->stream, &args));
        test_download(under, after, memory, sizeof after);
        for (int i = 0; i < ROWS * COLS; i++)
            CHECK(after[i] == values[i] * (scaled ? 2 : 1), "%d is %g", i, (double)after[i]);
    }
    free(values);
}

/* ---- add ------------------------------------------------------------------------------------- */

/* Parts in their order, one addition after another; of any bits, NaN among them, which all become the same one. */
#define DEFINE_CHECK_ADD(suffix, real, code)                                                                           \
    static void check_add_##suffix(const device_under_test *under, int parts, int64_t count, int64_t stride,           \
                                   bool accumulate, bool any_bits) {                                                   \
        const size_t width = sizeof(real), room = (size_t)count * width + 2 * GUARD;                                   \
        const int64_t all = (parts - 1) * stride + count;                                                              \
        const tsr_element element = {code, false};                                                                     \
        unsigned char *from = any_bits ? random_bytes((size_t)all * width) : random_values(element, all);              \
        unsigned char *before = random_bytes(room), *after = malloc(room), *some = random_values(element, count);      \
        CHECK(after, "no memory");                                                                                     \
        if (accumulate) memcpy(before + GUARD, some, (size_t)count * width);                                           \
        char *device_from = test_upload(under, from, (size_t)all * width);                                             \
        char *device_to = test_upload(under, before, room);                                                            \
        const tsr_add_args args = {device_to + GUARD, device_from, stride, parts, count, accumulate, code};            \
        CHECK_OK(tsr_pack_find(under->ops->kind)->add(under->device, under->stream, &args));                           \
        test_download(under, after, device_to, room);                                                                  \
        CHECK(memcmp(before, after, GUARD) == 0 && memcmp(before + room - GUARD, after + room - GUARD, GUARD) == 0,    \
              "add writes beyond %lld elements", (long long)count);                                                    \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            real sum = 0, next, found;                                                                                 \
            memcpy(&sum, before + GUARD + (size_t)i * width, width);                                                   \
            for (int part = 0; part < parts; part++) {                                                                 \
                memcpy(&next, from + (size_t)(part * stride + i) * width, width);                                      \
                sum = part > 0 || accumulate ? sum + next : next;                                                      \
            }                                                                                                          \
            if (isnan(sum)) sum = (real)NAN; /* quiet, positive, no payload */                                         \
            memcpy(&found, after + GUARD + (size_t)i * width, width);                                                  \
            CHECK(memcmp(&sum, &found, width) == 0, "element %lld of %d parts is %g, not %g", (long long)i, parts,     \
                  (double)found, (double)sum);                                                                         \
        }                                                                                                              \
        under->ops->release(under->device, device_from);                                                               \
        free(from);                                                                                                    \
        free(before);                                                                                                  \
        free(after);                                                                                                   \
        free(some);                                                                                                    \
    }
DEFINE_CHECK_ADD(f32, float, TSR_F32)
DEFINE_CHECK_ADD(f64, double, TSR_F64)

static void check_adds(const device_under_test *under) {
    for (int i = 0; i < 8; i++) {
        const bool accumulate = i & 1, any_bits = i & 2;
        const bool odd = i & 4;
        check_add_f32(under, 1 + i, odd ? 1001 : 640, odd ? 1003 : 640, accumulate, any_bits);
        check_add_f64(under, 1 + i, odd ? 1 : 300, odd ? 7 : 300, accumulate, any_bits);
        check_add_f64(under, 1, 0, 0, accumulate, any_bits);
    }
}

/* ---- mirror ---------------------------------------------------------------------------------- */

static uint64_t element_at(const unsigned char *bytes, size_t width, int64_t at) {
    uint64_t value = 0;
    memcpy(&value, bytes + (size_t)at * width, width);
    return value;
}

/* Any bits, NaN among them, with a guard band around: what is below the diagonal, as it was, above it, or zeros. */
static void check_mirror(const device_under_test *under, tsr_dtype type, tsr_triangle triangle, int64_t batch,
                         int64_t rows, int64_t left, int64_t tile, int64_t ld) {
    const size_t width = tsr_dtype_bytes(type), bytes = (size_t)(batch * rows * ld) * width;
    unsigned char *before = random_bytes(bytes + 2 * GUARD), *after = malloc(bytes + 2 * GUARD);
    CHECK(after, "no memory");
    void *device = test_upload(under, before, bytes + 2 * GUARD);
    const tsr_mirror_args args = {.data = (char *)device + GUARD,
                                  .type = type,
                                  .rows = rows,
                                  .left = left,
                                  .tile = tile,
                                  .ld = ld,
                                  .batch = batch == 1 ? 0 : batch,
                                  .triangle = triangle};
    CHECK_OK(tsr_pack_find(under->ops->kind)->mirror(under->device, under->stream, &args));
    test_download(under, after, device, bytes + 2 * GUARD);
    CHECK(memcmp(before, after, GUARD) == 0 && memcmp(before + GUARD + bytes, after + GUARD + bytes, GUARD) == 0,
          "mirror writes beyond %lld x %lld", (long long)rows, (long long)ld);
    for (int64_t row = 0; row < batch * rows; row++)
        for (int64_t j = 0; j < ld; j++) {
            const int64_t i = row % rows, first = row - i;
            const int64_t of_tile = j - left;
            const bool above = of_tile > i && of_tile < tile, below = of_tile < i;
            uint64_t wanted = element_at(before + GUARD, width, row * ld + j);
            if (above) wanted = element_at(before + GUARD, width, (first + of_tile) * ld + left + i);
            if ((above && triangle == TSR_TRIANGLE_LOWER) ||
                (below && j < left + tile && triangle == TSR_TRIANGLE_UPPER))
                wanted = 0;
            CHECK(element_at(after + GUARD, width, row * ld + j) == wanted,
                  "mirror of %s, triangle %d, %lld rows, tile of %lld right of %lld: (%lld, %lld) is wrong",
                  tsr_dtype_name(type), (int)triangle, (long long)rows, (long long)tile, (long long)left,
                  (long long)row, (long long)j);
        }
    free(before);
    free(after);
}

static void check_mirrors(const device_under_test *under) {
    static const tsr_dtype types[] = {TSR_F16, TSR_F32, TSR_F64};
    for (int i = 0; i < 9; i++) {
        const tsr_dtype type = types[i / 3];
        const tsr_triangle triangle = (tsr_triangle)(i % 3);
        check_mirror(under, type, triangle, 1, 1, 0, 1, 1);
        check_mirror(under, type, triangle, 1, 32, 0, 32, 32);
        check_mirror(under, type, triangle, 1, 75, 9, 75, 90);
        check_mirror(under, type, triangle, 1, 130, 0, 130, 133);
        check_mirror(under, type, triangle, 1, 11, 140, 0, 140);
        check_mirror(under, type, triangle, 1, 0, 4, 0, 4);
        check_mirror(under, type, triangle, 3, 37, 0, 37, 40);
        check_mirror(under, type, triangle, 40, 1, 0, 1, 1);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void check_refusals(const device_under_test *under) {
    const tsr_pack_ops *ops = tsr_pack_find(under->ops->kind);
    double memory[16] = {0};
    const tsr_view view = {memory, {TSR_F32, false}, 2, 2, 2}, whole = {memory, {TSR_I32, false}, 2, 2, 2};
    const tsr_pack_args good = {
        .from = view, .to = memory + 8, .type = TSR_F32, .ld = 2, .padded_rows = 2, .padded_cols = 2};
    tsr_pack_args args = good;
    args.type = TSR_F16;
    CHECK_FAILS(ops->pack(under->device, under->stream, &args), TSR_ERR_UNSUPPORTED, "f16");
    args = good;
    args.padded_rows = 1;
    CHECK_FAILS(ops->pack(under->device, under->stream, &args), TSR_ERR_SHAPE, "does not fit");
    args = good;
    args.ld = 1;
    CHECK_FAILS(ops->pack(under->device, under->stream, &args), TSR_ERR_SHAPE, "ld");
    args = good;
    args.from.data = NULL;
    CHECK_FAILS(ops->pack(under->device, under->stream, &args), TSR_ERR_SHAPE, "no memory");
    tsr_finish_args finish = {
        .accumulated = view, .alpha = 1, .beta = 1, .c0 = {NULL, {TSR_F32, false}, 2, 2, 2}, .out = view};
    CHECK_FAILS(ops->finish(under->device, under->stream, &finish), TSR_ERR_SHAPE, "c0");
    finish.beta = 0;
    finish.out = whole;
    CHECK_FAILS(ops->finish(under->device, under->stream, &finish), TSR_ERR_UNSUPPORTED, "i32");
    tsr_mirror_args mirror = {.data = memory, .type = TSR_F32, .rows = 2, .tile = 1, .ld = 2};
    CHECK_FAILS(ops->mirror(under->device, under->stream, &mirror), TSR_ERR_SHAPE, "no square");
    mirror.tile = 2;
    mirror.ld = 1;
    CHECK_FAILS(ops->mirror(under->device, under->stream, &mirror), TSR_ERR_SHAPE, "ld");
    tsr_add_args add = {.to = memory, .from = memory + 8, .stride = 1, .parts = 2, .count = 2, .type = TSR_F32};
    CHECK_FAILS(ops->add(under->device, under->stream, &add), TSR_ERR_SHAPE, "overlap");
    add.type = TSR_F16;
    CHECK_FAILS(ops->add(under->device, under->stream, &add), TSR_ERR_UNSUPPORTED, "f16");
    mirror = (tsr_mirror_args){.data = memory, .type = TSR_F32, .rows = 2, .left = 1, .tile = 2, .ld = 3, .batch = 2};
    CHECK_FAILS(ops->mirror(under->device, under->stream, &mirror), TSR_ERR_SHAPE, "whole ones");
}

/* The CPU takes a source at any address, a GPU says that it cannot. */
static void check_unaligned(const device_under_test *under) {
    char bytes[64] = {0};
    float to[4], value = 2.5f;
    for (int i = 0; i < 4; i++) memcpy(bytes + 1 + 4 * i, &value, sizeof value);
    void *from = test_upload(under, bytes, sizeof bytes), *device_to = test_upload(under, bytes, sizeof to);
    tsr_pack_args args = {.from = {(char *)from + 1, {TSR_F32, false}, 2, 2, 2},
                          .transpose = true,
                          .to = device_to,
                          .type = TSR_F32,
                          .ld = 2,
                          .padded_rows = 2,
                          .padded_cols = 2};
    if (under->ops->kind == TSR_DEVICE_CPU) CHECK_OK(tsr_pack_cpu.pack(under->device, under->stream, &args));
    else
        CHECK_FAILS(tsr_pack_find(under->ops->kind)->pack(under->device, under->stream, &args), TSR_ERR_UNSUPPORTED,
                    "aligned");
    test_download(under, to, device_to, sizeof to);
    if (under->ops->kind == TSR_DEVICE_CPU)
        CHECK(to[0] == value && to[3] == value, "%g %g", (double)to[0], (double)to[3]);
    under->ops->release(under->device, from);
}

int main(void) {
    device_under_test under = test_open();
    check_packs(&under);
    check_finishes(&under);
    check_nans(&under);
    check_overflows(&under);
    check_finish_in_place(&under);
    check_adds(&under);
    check_mirrors(&under);
    check_refusals(&under);
    check_unaligned(&under);
    test_close(&under);
    return 0;
}
