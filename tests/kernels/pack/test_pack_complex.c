/* Pack and finish of complex elements against plain loops: every form, type, byte order, transpose, conjugate and
 * padding, with guard bands around what is written; and that the forms of A and B multiply to the form of C. One
 * source for the CPU device, the emulated CUDA device and a GPU. */
#include <math.h>

#include "kernels/base/element.h"
#include "kernels/pack/pack.h"
#include "tests/kernels/device/device_under_test.h"

enum { GUARD = 64, PAINT = 0xa5 };

typedef struct {
    int64_t rows, cols, ld;             /* of the source, in elements */
    int64_t pad_rows, pad_cols, pad_ld; /* elements and reals added to the target's */
} shape;

static const shape shapes[] = {{1, 1, 1, 0, 0, 0},    {3, 5, 8, 2, 3, 1},    {0, 4, 4, 3, 0, 2},    {4, 0, 0, 0, 5, 0},
                               {33, 65, 67, 1, 3, 3}, {40, 32, 32, 0, 0, 4}, {131, 70, 71, 0, 1, 0}};

static uint64_t state = 88172645463325252u;
static int random_integer(int most) { /* xorshift64 */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)(2 * most + 1)) - most;
}

/* Complex or real elements of whole numbers, which every type of the tests holds. */
static unsigned char *random_elements(tsr_element element, int64_t count) {
    const tsr_dtype part = tsr_dtype_part(element.dtype);
    const size_t width = tsr_dtype_bytes(part);
    const int64_t parts = count * tsr_dtype_parts(element.dtype);
    unsigned char *made = calloc((size_t)parts + 1, width), swapped[8];
    CHECK(made != NULL, "no memory");
    for (int64_t i = 0; i < parts; i++) {
        tsr_element_store(part, made, i, random_integer(100));
        unsigned char *at = made + (size_t)i * width;
        for (size_t b = 0; b < width; b++) swapped[b] = at[width - 1 - b];
        if (element.swapped) memcpy(at, swapped, width);
    }
    return made;
}

/* ---- pack ------------------------------------------------------------------------------------ */

/* Real (i, j) of the target by the definition of the forms in pack.h. */
static double expected_real(const tsr_pack_args *args, const unsigned char *from, int64_t i, int64_t j) {
    const int64_t down = tsr_form_rows(args->form), across = tsr_form_cols(args->form);
    const int64_t row = args->transpose ? j / across : i / down, col = args->transpose ? i / down : j / across;
    const int64_t r = i % down, c = j % across;
    if (row >= args->from.rows || col >= args->from.cols) return 0;
    const size_t at = (size_t)(row * args->from.ld + col) * tsr_dtype_bytes(args->from.element.dtype);
    const tsr_complex x = tsr_element_to_complex(args->from.element, from + at);
    const double im = args->conjugate ? -x.im : x.im;
    switch (args->form) {
    case TSR_FORM_BESIDE: return c == 0 ? x.re : im;
    case TSR_FORM_ROWS: return r == 0 ? x.re : im;
    default: return r == c ? x.re : r == 0 ? im : -im;
    }
}

static void check_target(const tsr_pack_args *args, const unsigned char *from, const unsigned char *to, size_t bytes) {
    const size_t width = tsr_dtype_bytes(args->type);
    for (size_t at = 0; at < bytes + 2 * GUARD; at += at < GUARD || at >= GUARD + bytes ? 1 : width) {
        const int64_t real = at < GUARD || at >= GUARD + bytes ? -1 : (int64_t)((at - GUARD) / width);
        if (real < 0 || real % args->ld >= args->padded_cols) {
            CHECK(to[at] == PAINT, "form %d: byte %zu written", (int)args->form, at);
            continue;
        }
        const int64_t i = real / args->ld, j = real % args->ld;
        const double got = tsr_element_to_double((tsr_element){args->type, false}, to + at);
        const double expected = expected_real(args, from, i, j);
        CHECK(got == expected, "%s to %s, form %d%s%s: (%lld, %lld) is %g, not %g",
              tsr_dtype_name(args->from.element.dtype), tsr_dtype_name(args->type), (int)args->form,
              args->transpose ? ", transposed" : "", args->conjugate ? ", conjugate" : "", (long long)i, (long long)j,
              got, expected);
    }
}

static void check_pack(const device_under_test *under, tsr_element element, tsr_dtype type, tsr_form form,
                       bool transpose, bool conjugate, shape s) {
    tsr_pack_args args = {.from = {NULL, element, s.rows, s.cols, s.ld},
                          .transpose = transpose,
                          .form = form,
                          .conjugate = conjugate,
                          .type = type};
    args.padded_rows = ((transpose ? s.cols : s.rows) + s.pad_rows) * tsr_form_rows(form);
    args.padded_cols = ((transpose ? s.rows : s.cols) + s.pad_cols) * tsr_form_cols(form);
    args.ld = args.padded_cols + s.pad_ld;
    const size_t bytes = (size_t)(args.padded_rows * args.ld) * tsr_dtype_bytes(type);
    unsigned char *from = random_elements(element, s.rows * s.ld), *to = malloc(bytes + 2 * GUARD);
    CHECK(to != NULL, "no memory");
    memset(to, PAINT, bytes + 2 * GUARD);
    args.from.data = test_upload(under, from, (size_t)(s.rows * s.ld) * tsr_dtype_bytes(element.dtype) + 1);
    char *device_to = test_upload(under, to, bytes + 2 * GUARD);
    args.to = device_to + GUARD;
    CHECK_OK(tsr_pack_find(under->ops->kind)->pack(under->device, under->stream, &args));
    test_download(under, to, device_to, bytes + 2 * GUARD);
    under->ops->release(under->device, args.from.data);
    check_target(&args, from, to, bytes);
    free(from);
    free(to);
}

static void check_packs(const device_under_test *under) {
    const tsr_dtype from[] = {TSR_C64, TSR_C128}, to[] = {TSR_F32, TSR_F64, TSR_BF16};
    for (int choice = 0; choice < 2 * 2 * 3 * 3 * 4; choice++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            check_pack(under, (tsr_element){from[choice % 2], choice / 2 % 2}, to[choice / 4 % 3],
                       (tsr_form)(TSR_FORM_BESIDE + choice / 12 % 3), choice / 36 % 2, choice / 72, shapes[s]);
}

/* ---- finish ---------------------------------------------------------------------------------- */

typedef struct {
    tsr_form form;
    tsr_dtype type, out;
    tsr_element c0;
    tsr_complex alpha, beta;
} finishing;

static tsr_complex times(tsr_complex x, tsr_complex y) {
    return (tsr_complex){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

static void check_finish(const device_under_test *under, const finishing *f) {
    enum { ROWS = 9, COLS = 41, LD = 90, LD_C0 = 43, LD_OUT = 44 };
    const size_t width = tsr_dtype_bytes(f->type);
    const size_t c0_width = tsr_dtype_bytes(f->c0.dtype);
    const size_t out_width = tsr_dtype_bytes(f->out);
    const bool adds = !tsr_is_zero(f->beta);
    unsigned char *sums = random_elements((tsr_element){f->type, false}, 2 * ROWS * LD);
    unsigned char *c0 = random_elements(f->c0, ROWS * LD_C0);
    unsigned char *out = malloc(ROWS * LD_OUT * out_width);
    CHECK(out != NULL, "no memory");
    memset(out, PAINT, ROWS * LD_OUT * out_width);
    tsr_finish_args args = {.accumulated = {NULL, {f->type, false}, ROWS, COLS, LD},
                            .form = f->form,
                            .alpha = f->alpha.re,
                            .alpha_imag = f->alpha.im,
                            .beta = f->beta.re,
                            .beta_imag = f->beta.im,
                            .c0 = {NULL, f->c0, ROWS, COLS, LD_C0},
                            .out = {NULL, {f->out, false}, ROWS, COLS, LD_OUT}};
    args.accumulated.data = test_upload(under, sums, 2 * ROWS * LD * width);
    if (adds) args.c0.data = test_upload(under, c0, ROWS * LD_C0 * c0_width);
    args.out.data = test_upload(under, out, ROWS * LD_OUT * out_width);
    CHECK_OK(tsr_pack_find(under->ops->kind)->finish(under->device, under->stream, &args));
    test_download(under, out, args.out.data, ROWS * LD_OUT * out_width);
    under->ops->release(under->device, args.accumulated.data);
    if (adds) under->ops->release(under->device, args.c0.data);
    for (int64_t i = 0; i < ROWS; i++) {
        const int64_t row = i * tsr_form_rows(f->form);
        for (int64_t j = 0; j < COLS; j++) {
            const int64_t at = row * LD + j * tsr_form_cols(f->form);
            const int64_t other = f->form == TSR_FORM_ROWS ? at + LD : at + 1;
            tsr_complex sum = tsr_real(tsr_element_to_double((tsr_element){f->type, false}, sums + (size_t)at * width));
            if (f->form != TSR_FORM_REAL)
                sum.im = tsr_element_to_double((tsr_element){f->type, false}, sums + (size_t)other * width);
            tsr_complex expected = times(f->alpha, sum);
            const tsr_complex added =
                adds ? times(f->beta, tsr_element_to_complex(f->c0, c0 + (size_t)(i * LD_C0 + j) * c0_width))
                     : tsr_real(0);
            expected.re += added.re;
            expected.im = tsr_dtype_is_complex(f->out) ? expected.im + added.im : 0;
            const tsr_complex got =
                tsr_element_to_complex((tsr_element){f->out, false}, out + (size_t)(i * LD_OUT + j) * out_width);
            CHECK(got.re == expected.re && got.im == expected.im,
                  "form %d, %s to %s with %s: (%lld, %lld) is %g%+gj, not %g%+gj", (int)f->form,
                  tsr_dtype_name(f->type), tsr_dtype_name(f->out), tsr_dtype_name(f->c0.dtype), (long long)i,
                  (long long)j, got.re, got.im, expected.re, expected.im);
        }
        for (size_t b = COLS * out_width; b < LD_OUT * out_width; b++)
            CHECK(out[(size_t)i * LD_OUT * out_width + b] == PAINT, "byte %zu beside row %lld written", b,
                  (long long)i);
    }
    free(sums);
    free(c0);
    free(out);
}

static void check_finishes(const device_under_test *under) {
    static const tsr_dtype outs[] = {TSR_C64, TSR_C128, TSR_F32, TSR_F64}, added[] = {TSR_C64, TSR_C128, TSR_I16};
    static const tsr_complex factors[] = {{1, 0}, {-2, 0}, {0, 3}, {1, -2}};
    for (int form = TSR_FORM_REAL; form <= TSR_FORM_ROWS; form++)
        for (int choice = 0; choice < 2 * 4 * 3 * 2 * 4 * 5; choice++) {
            const int beta = choice / 192;
            const finishing f = {.form = (tsr_form)form,
                                 .type = choice % 2 ? TSR_F64 : TSR_F32,
                                 .out = outs[choice / 2 % 4],
                                 .c0 = {added[choice / 8 % 3], choice / 24 % 2},
                                 .alpha = factors[choice / 48 % 4],
                                 .beta = beta < 4 ? factors[beta] : tsr_real(0)};
            check_finish(under, &f);
        }
}

/* A part that becomes infinite is counted; one that is infinite already is not, and a real factor does not make NaN
 * of it. */
static void check_overflows(const device_under_test *under) {
    const double sums[2][4] = {{1e300, 1, INFINITY, 2}, {-1e300, 1e300, 3, -INFINITY}};
    const float expected[2][4] = {{INFINITY, 2, INFINITY, 4}, {-INFINITY, INFINITY, 6, -INFINITY}};
    float got[2][4] = {{0}};
    uint64_t overflows = 5;
    uint64_t *counter = test_upload(under, &overflows, sizeof overflows);
    void *from = test_upload(under, sums, sizeof sums), *to = test_upload(under, got, sizeof got);
    const tsr_finish_args args = {.accumulated = {from, {TSR_F64, false}, 2, 2, 4},
                                  .form = TSR_FORM_BESIDE,
                                  .alpha = 2,
                                  .out = {to, {TSR_C64, false}, 2, 2, 2},
                                  .overflows = counter};
    CHECK_OK(tsr_pack_find(under->ops->kind)->finish(under->device, under->stream, &args));
    test_download(under, got, to, sizeof got);
    test_download(under, &overflows, counter, sizeof overflows);
    under->ops->release(under->device, from);
    CHECK(memcmp(got, expected, sizeof got) == 0, "%g %g %g %g", (double)got[0][0], (double)got[0][1],
          (double)got[0][2], (double)got[0][3]);
    CHECK(overflows == 8, "%llu", (unsigned long long)overflows);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void check_refusals(const device_under_test *under) {
    const tsr_pack_ops *ops = tsr_pack_find(under->ops->kind);
    double memory[64] = {0};
    const tsr_pack_args good = {.from = {memory, {TSR_C128, false}, 2, 2, 2},
                                .form = TSR_FORM_SQUARES,
                                .to = memory + 8,
                                .type = TSR_F64,
                                .ld = 4,
                                .padded_rows = 4,
                                .padded_cols = 4};
    tsr_pack_args args = good;
    args.form = TSR_FORM_REAL;
    CHECK_FAILS(ops->pack(under->device, under->stream, &args), TSR_ERR_SHAPE, "choose the form");
    args = good;
    args.from.element.dtype = TSR_F64;
    CHECK_FAILS(ops->pack(under->device, under->stream, &args), TSR_ERR_SHAPE, "choose the form");
    args = good;
    args.padded_rows = 5;
    CHECK_FAILS(ops->pack(under->device, under->stream, &args), TSR_ERR_SHAPE, "whole ones");
    args = good;
    args.padded_cols = 2;
    CHECK_FAILS(ops->pack(under->device, under->stream, &args), TSR_ERR_SHAPE, "does not fit");
    args = good;
    args.type = TSR_C128;
    CHECK_FAILS(ops->pack(under->device, under->stream, &args), TSR_ERR_UNSUPPORTED, "c128");
    tsr_finish_args finish = {.accumulated = {memory, {TSR_F64, false}, 2, 2, 4},
                              .form = TSR_FORM_SQUARES,
                              .alpha = 1,
                              .out = {memory + 16, {TSR_C128, false}, 2, 2, 2}};
    CHECK_FAILS(ops->finish(under->device, under->stream, &finish), TSR_ERR_SHAPE, "form");
    finish.form = TSR_FORM_BESIDE;
    finish.accumulated.ld = 3;
    CHECK_FAILS(ops->finish(under->device, under->stream, &finish), TSR_ERR_SHAPE, "columns in form");
    finish.accumulated.ld = 4;
    finish.accumulated.element.dtype = TSR_C128;
    CHECK_FAILS(ops->finish(under->device, under->stream, &finish), TSR_ERR_UNSUPPORTED, "c128");
}

int main(void) {
    device_under_test under = test_open();
    check_packs(&under);
    check_finishes(&under);
    check_overflows(&under);
    check_refusals(&under);
    test_close(&under);
    return 0;
}
