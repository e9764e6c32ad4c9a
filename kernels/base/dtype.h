/* Element types: one table (dtype.c), and the questions that others ask it. A new type is a line of these lists, an
 * entry of the table and its two conversions in element.h. base.h includes this file. */
#ifndef TSR_KERNELS_BASE_DTYPE_H
#define TSR_KERNELS_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(code, suffix, bits, memory): TSR_CODE; tsr_convert_SUFFIX and tsr_encode_SUFFIX of element.h; the bits of an
 * element, 8 to 64; the type of C that stands for it in memory. Complex types have a list of their own. */
#define TSR_FLOAT_LIST(X)                                                                                              \
    X(F16, f16, 16, uint16_t)                                                                                          \
    X(BF16, bf16, 16, uint16_t)                                                                                        \
    X(F32, f32, 32, float)                                                                                             \
    X(F64, f64, 64, double)
#define TSR_SIGNED_LIST(X)                                                                                             \
    X(I8, i8, 8, int8_t)                                                                                               \
    X(I16, i16, 16, int16_t)                                                                                           \
    X(I32, i32, 32, int32_t)                                                                                           \
    X(I64, i64, 64, int64_t)
#define TSR_UNSIGNED_LIST(X)                                                                                           \
    X(U8, u8, 8, uint8_t)                                                                                              \
    X(U16, u16, 16, uint16_t)                                                                                          \
    X(U32, u32, 32, uint32_t)                                                                                          \
    X(U64, u64, 64, uint64_t)                                                                                          \
    X(BOOL, b8, 8, uint8_t)
#define TSR_REAL_LIST(X) TSR_FLOAT_LIST(X) TSR_SIGNED_LIST(X) TSR_UNSIGNED_LIST(X)
/* X(code, suffix, bits, part): two elements of the floating type `part` behind each other, real and imaginary. */
#define TSR_COMPLEX_LIST(X)                                                                                            \
    X(C64, c64, 64, F32)                                                                                               \
    X(C128, c128, 128, F64)
#define TSR_DTYPE_LIST(X) TSR_REAL_LIST(X) TSR_COMPLEX_LIST(X)
#define TSR_ELEMENT_BYTES_MAX 16

typedef enum {
#define X(code, suffix, bits, memory) TSR_##code,
    TSR_DTYPE_LIST(X)
#undef X
        TSR_DTYPE_COUNT
} tsr_dtype;

typedef enum {
    TSR_DTYPE_FLOAT,
    TSR_DTYPE_SIGNED,
    TSR_DTYPE_UNSIGNED,
    TSR_DTYPE_BOOL, /* a byte; 0 counts as 0, all else as 1 */
    TSR_DTYPE_COMPLEX,
} tsr_dtype_kind;

/* What a type is used for; every type can be an operand in a file. */
typedef enum {
    TSR_USE_OPERAND = 1,  /* kernels multiply it as it is */
    TSR_USE_ROUNDED = 2,  /* operands of other types are rounded to it for a kernel */
    TSR_USE_SUM = 4,      /* sums of products are kept in it */
    TSR_USE_RESULT = 8,   /* C is stored in it */
    TSR_USE_DATASET = 16, /* files of it are made */
    TSR_USE_PRODUCT = 32  /* products of it can be planned and measured */
} tsr_dtype_use;

typedef struct {
    const char *name;   /* "f32" */
    const char *others; /* names that are understood, too, with blanks between them */
    tsr_dtype_kind kind;
    size_t bytes;
    /* Of a floating type, as IEEE 754 lays them out below a sign; the mantissa without the bit that is implied. */
    int exponent_bits, mantissa_bits;
    tsr_dtype part;    /* of complex numbers: of their real and imaginary parts; else the type itself */
    tsr_dtype compute; /* the real type that values of this type ask to be multiplied in */
    tsr_dtype wider;   /* the next real type that holds more; the type itself where there is none */
    unsigned uses;     /* of tsr_dtype_use */
    char numpy;        /* numpy's letter for its kind; 0: numpy has no such type */
} tsr_dtype_facts;

const tsr_dtype_facts *tsr_dtype_facts_of(tsr_dtype dtype);

bool tsr_dtype_is_complex(tsr_dtype dtype);
tsr_dtype tsr_dtype_part(tsr_dtype dtype); /* facts.part */
static inline int tsr_dtype_parts(tsr_dtype dtype) { return tsr_dtype_is_complex(dtype) ? 2 : 1; }
/* The complex type of these parts; TSR_DTYPE_COUNT where there is none. */
tsr_dtype tsr_dtype_complex_of(tsr_dtype part);

size_t tsr_dtype_bytes(tsr_dtype dtype);
const char *tsr_dtype_name(tsr_dtype dtype);
/* fp32 for f16, bf16, f32 and integers up to 16 bits; fp64 for the rest, which fp32 would round. Sums of integers may
 * ask for more (tsr_problem_make). */
tsr_dtype tsr_dtype_compute(tsr_dtype dtype);
tsr_dtype tsr_dtype_wider(tsr_dtype dtype);
/* Of two floating types the one that holds more. */
tsr_dtype tsr_dtype_widest(tsr_dtype a, tsr_dtype b);
bool tsr_dtype_serves(tsr_dtype dtype, tsr_dtype_use use);
/* The integer type of 1, 2, 4 or 8 bytes; TSR_DTYPE_COUNT of others. */
tsr_dtype tsr_dtype_integer(bool is_signed, size_t bytes);
/* Floating types by their fields; those of integers are none. False where there is none. */
bool tsr_dtype_of_fields(size_t bytes, int exponent_bits, int mantissa_bits, tsr_dtype *dtype);

/* Of complex types, what holds of their parts. */
double tsr_dtype_largest(tsr_dtype dtype);  /* magnitude an integer type can hold; 0 for floating types */
double tsr_dtype_integers(tsr_dtype dtype); /* up to which a floating type holds all whole numbers; 0 for integers */
double tsr_dtype_roundoff(tsr_dtype dtype); /* unit roundoff; 0 for integers */
/* Half of the smallest subnormal; 0 where that is 0 in fp64, and for integers. */
double tsr_dtype_tiny(tsr_dtype dtype);
double tsr_dtype_finite(tsr_dtype dtype);   /* the largest finite value; of integers fp64's */
double tsr_dtype_overflow(tsr_dtype dtype); /* magnitudes from here on round to Inf; INFINITY for fp64 and integers */

#ifdef __cplusplus
}
#endif
#endif
