/* The table of element types (dtype.h), and what follows from it. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kernels/base/base.h"
#include "kernels/base/element.h"

static const tsr_dtype_facts table[TSR_DTYPE_COUNT] = {
    [TSR_F16] = {.name = "f16",
                 .others = "float16 fp16 half",
                 .kind = TSR_DTYPE_FLOAT,
                 .bytes = 2,
                 .exponent_bits = 5,
                 .mantissa_bits = 10,
                 .part = TSR_F16,
                 .compute = TSR_F32,
                 .wider = TSR_F32,
                 .uses = TSR_USE_OPERAND | TSR_USE_PRODUCT | TSR_USE_RESULT | TSR_USE_DATASET,
                 .numpy = 'f'},
    [TSR_BF16] = {.name = "bf16",
                  .others = "bfloat16",
                  .kind = TSR_DTYPE_FLOAT,
                  .bytes = 2,
                  .exponent_bits = 8,
                  .mantissa_bits = 7,
                  .part = TSR_BF16,
                  .compute = TSR_F32,
                  .wider = TSR_F32,
                  .uses = TSR_USE_OPERAND | TSR_USE_PRODUCT | TSR_USE_ROUNDED | TSR_USE_RESULT | TSR_USE_DATASET},
    [TSR_F32] = {.name = "f32",
                 .others = "float32 fp32 float single",
                 .kind = TSR_DTYPE_FLOAT,
                 .bytes = 4,
                 .exponent_bits = 8,
                 .mantissa_bits = 23,
                 .part = TSR_F32,
                 .compute = TSR_F32,
                 .wider = TSR_F64,
                 .uses = TSR_USE_OPERAND | TSR_USE_PRODUCT | TSR_USE_ROUNDED | TSR_USE_SUM | TSR_USE_RESULT |
                         TSR_USE_DATASET,
                 .numpy = 'f'},
    [TSR_F64] = {.name = "f64",
                 .others = "float64 fp64 double",
                 .kind = TSR_DTYPE_FLOAT,
                 .bytes = 8,
                 .exponent_bits = 11,
                 .mantissa_bits = 52,
                 .part = TSR_F64,
                 .compute = TSR_F64,
                 .wider = TSR_F64,
                 .uses = TSR_USE_OPERAND | TSR_USE_PRODUCT | TSR_USE_ROUNDED | TSR_USE_SUM | TSR_USE_RESULT |
                         TSR_USE_DATASET,
                 .numpy = 'f'},
#define WHOLE(bits, code, letter, type, sign, in, of_numpy)                                                            \
    {                                                                                                                  \
        .name = #letter #bits, .others = #type #bits, .kind = TSR_DTYPE_##sign, .bytes = bits / 8, .part = TSR_##code, \
        .compute = in, .wider = in, .uses = TSR_USE_DATASET, .numpy = of_numpy                                         \
    }
    [TSR_I8] = WHOLE(8, I8, i, int, SIGNED, TSR_F32, 'i'),
    [TSR_I16] = WHOLE(16, I16, i, int, SIGNED, TSR_F32, 'i'),
    [TSR_I32] = WHOLE(32, I32, i, int, SIGNED, TSR_F64, 'i'),
    [TSR_I64] = WHOLE(64, I64, i, int, SIGNED, TSR_F64, 'i'),
    [TSR_U8] = WHOLE(8, U8, u, uint, UNSIGNED, TSR_F32, 'u'),
    [TSR_U16] = WHOLE(16, U16, u, uint, UNSIGNED, TSR_F32, 'u'),
    [TSR_U32] = WHOLE(32, U32, u, uint, UNSIGNED, TSR_F64, 'u'),
    [TSR_U64] = WHOLE(64, U64, u, uint, UNSIGNED, TSR_F64, 'u'),
    [TSR_BOOL] = {.name = "bool",
                  .others = "boolean",
                  .kind = TSR_DTYPE_BOOL,
                  .bytes = 1,
                  .part = TSR_BOOL,
                  .compute = TSR_F32,
                  .wider = TSR_F32,
                  .numpy = 'b'},
    [TSR_C64] = {.name = "c64",
                 .others = "complex64 csingle",
                 .kind = TSR_DTYPE_COMPLEX,
                 .bytes = 8,
                 .part = TSR_F32,
                 .compute = TSR_F32,
                 .wider = TSR_F64,
                 .uses = TSR_USE_RESULT | TSR_USE_DATASET | TSR_USE_PRODUCT,
                 .numpy = 'c'},
    [TSR_C128] = {.name = "c128",
                  .others = "complex128 complex cdouble",
                  .kind = TSR_DTYPE_COMPLEX,
                  .bytes = 16,
                  .part = TSR_F64,
                  .compute = TSR_F64,
                  .wider = TSR_F64,
                  .uses = TSR_USE_RESULT | TSR_USE_DATASET | TSR_USE_PRODUCT,
                  .numpy = 'c'},
};

const tsr_dtype_facts *tsr_dtype_facts_of(tsr_dtype dtype) { return &table[dtype]; }
size_t tsr_dtype_bytes(tsr_dtype dtype) { return table[dtype].bytes; }
const char *tsr_dtype_name(tsr_dtype dtype) { return table[dtype].name; }
tsr_dtype tsr_dtype_compute(tsr_dtype dtype) { return table[dtype].compute; }
tsr_dtype tsr_dtype_wider(tsr_dtype dtype) { return table[dtype].wider; }
tsr_dtype tsr_dtype_widest(tsr_dtype a, tsr_dtype b) { return tsr_dtype_integers(a) < tsr_dtype_integers(b) ? b : a; }
bool tsr_dtype_is_complex(tsr_dtype dtype) { return table[dtype].kind == TSR_DTYPE_COMPLEX; }
tsr_dtype tsr_dtype_part(tsr_dtype dtype) { return table[dtype].part; }
bool tsr_dtype_serves(tsr_dtype dtype, tsr_dtype_use use) { return (table[dtype].uses & use) != 0; }

/* ---- by name and by fields ------------------------------------------------------------------- */

static bool is_named(const tsr_dtype_facts *facts, const char *name, size_t chars) {
    if (strlen(facts->name) == chars && strncasecmp(facts->name, name, chars) == 0) return true;
    for (const char *other = facts->others; *other; other += strspn(other, " ")) {
        const size_t length = strcspn(other, " ");
        if (length == chars && strncasecmp(other, name, chars) == 0) return true;
        other += length;
    }
    return false;
}

bool tsr_dtype_find(const char *name, size_t chars, tsr_dtype *dtype) {
    int d = 0;
    while (d < TSR_DTYPE_COUNT && !is_named(&table[d], name, chars)) d++;
    if (d == TSR_DTYPE_COUNT) return false;
    *dtype = (tsr_dtype)d;
    return true;
}

tsr_status tsr_dtype_parse(const char *name, tsr_dtype *dtype) {
    char names[160] = "";
    if (tsr_dtype_find(name, strlen(name), dtype)) return TSR_OK;
    for (int d = 0; d < TSR_DTYPE_COUNT; d++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s ", table[d].name);
    }
    return tsr_fail(TSR_ERR_USAGE,
                    "unknown element type '%s': use one of %s(or half, float, double, float32, fp32, int32, uint8 and "
                    "the like)",
                    name, names);
}

tsr_status tsr_dtype_parse_for(tsr_dtype_use use, const char *option, const char *name, tsr_dtype *dtype) {
    const char *serving[TSR_DTYPE_COUNT];
    char names[160] = "";
    tsr_dtype found;
    int count = 0;
    TSR_TRY(tsr_dtype_parse(name, &found));
    if (tsr_dtype_serves(found, use)) {
        *dtype = found;
        return TSR_OK;
    }
    for (int d = 0; d < TSR_DTYPE_COUNT; d++)
        if (tsr_dtype_serves((tsr_dtype)d, use)) serving[count++] = table[d].name;
    for (int i = 0; i < count; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : i < count - 1 ? ", " : " or ", serving[i]);
    }
    return tsr_fail(TSR_ERR_USAGE, "--%s %s: use %s", option, name, names);
}

tsr_dtype tsr_dtype_integer(bool is_signed, size_t bytes) {
    const tsr_dtype_kind kind = is_signed ? TSR_DTYPE_SIGNED : TSR_DTYPE_UNSIGNED;
    int d = 0;
    while (d < TSR_DTYPE_COUNT && (table[d].kind != kind || table[d].bytes != bytes)) d++;
    return (tsr_dtype)d;
}

tsr_dtype tsr_dtype_complex_of(tsr_dtype part) {
    int d = 0;
    while (d < TSR_DTYPE_COUNT && (table[d].kind != TSR_DTYPE_COMPLEX || table[d].part != part)) d++;
    return (tsr_dtype)d;
}

bool tsr_dtype_of_fields(size_t bytes, int exponent_bits, int mantissa_bits, tsr_dtype *dtype) {
    for (int d = 0; d < TSR_DTYPE_COUNT; d++) {
        if (table[d].kind != TSR_DTYPE_FLOAT || table[d].bytes != bytes) continue;
        if (table[d].exponent_bits != exponent_bits || table[d].mantissa_bits != mantissa_bits) continue;
        *dtype = (tsr_dtype)d;
        return true;
    }
    return false;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static const tsr_dtype_facts *part_of(tsr_dtype dtype) { return &table[table[dtype].part]; }
static bool is_float(tsr_dtype dtype) { return part_of(dtype)->kind == TSR_DTYPE_FLOAT; }
/* The largest exponent of a finite value, which is the bias, too. */
static int bias(tsr_dtype dtype) { return (1 << (part_of(dtype)->exponent_bits - 1)) - 1; }

double tsr_dtype_largest(tsr_dtype dtype) {
    const int bits = (int)(8 * table[dtype].bytes);
    if (is_float(dtype)) return 0;
    if (table[dtype].kind == TSR_DTYPE_BOOL) return 1;
    return table[dtype].kind == TSR_DTYPE_SIGNED ? ldexp(1, bits - 1) : ldexp(1, bits) - 1;
}

double tsr_dtype_integers(tsr_dtype dtype) { return is_float(dtype) ? ldexp(1, part_of(dtype)->mantissa_bits + 1) : 0; }

double tsr_dtype_roundoff(tsr_dtype dtype) {
    return is_float(dtype) ? ldexp(1, -part_of(dtype)->mantissa_bits - 1) : 0;
}

double tsr_dtype_tiny(tsr_dtype dtype) {
    return is_float(dtype) ? ldexp(1, -bias(dtype) - part_of(dtype)->mantissa_bits) : 0;
}

double tsr_dtype_finite(tsr_dtype dtype) {
    return is_float(dtype) ? ldexp(2 - ldexp(1, -part_of(dtype)->mantissa_bits), bias(dtype)) : DBL_MAX;
}

double tsr_dtype_overflow(tsr_dtype dtype) {
    return is_float(dtype) ? ldexp(2 - tsr_dtype_roundoff(dtype), bias(dtype)) : (double)INFINITY;
}

/* ---- elements -------------------------------------------------------------------------------- */

double tsr_element_to_double(tsr_element element, const void *at) {
    switch (element.dtype) {
#define X(code, suffix, bits, memory)                                                                                  \
    case TSR_##code: {                                                                                                 \
        uint##bits##_t word;                                                                                           \
        memcpy(&word, at, sizeof word);                                                                                \
        return (double)tsr_convert_##suffix(element.swapped ? tsr_reverse_##bits(word) : word);                        \
    }
        TSR_REAL_LIST(X)
#undef X
    default: break; /* complex numbers are no such value */
    }
    return (double)NAN;
}

tsr_complex tsr_element_to_complex(tsr_element element, const void *at) {
    const tsr_element part = {table[element.dtype].part, element.swapped};
    const bool two = tsr_dtype_is_complex(element.dtype);
    const char *imaginary = (const char *)at + table[part.dtype].bytes;
    return (tsr_complex){tsr_element_to_double(part, at), two ? tsr_element_to_double(part, imaginary) : 0};
}
