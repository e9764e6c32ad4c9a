/* Operands that tell kinds of multiplication apart, for grade.h. Each leaves |A||B| of a size that sums of products,
 * one rounded after the other, are exact to; what is added up, scaled or cut otherwise is betrayed by one of them. */
#ifndef TSR_TESTS_KERNELS_GEMM_GRADE_INPUTS_H
#define TSR_TESTS_KERNELS_GEMM_GRADE_INPUTS_H

#include "tests/kernels/gemm/grade/known_product.h"

typedef enum {
    GRADE_PLAIN,  /* normal numbers: too few bits */
    GRADE_LINES,  /* rows of A and columns of B of many sizes: one scale for all of a matrix, sums of its blocks */
    GRADE_ALONG,  /* A·D and D⁻¹·B, D of many sizes along k: one scale a line */
    GRADE_HIDDEN, /* in each line one element as large as others are not, that meets zeros alone: the same */
    GRADE_HIGH,   /* A near the end of its range, B far below 1: squares, sums and norms that overflow */
    GRADE_LOW, /* both far below 1, some rows of A subnormal: squares and norms that underflow, operands flushed to 0 */
    GRADE_INPUTS
} grade_input;

static inline const char *grade_input_name(grade_input input) {
    static const char *const names[GRADE_INPUTS] = {"plain", "lines", "along", "hidden", "high", "low"};
    return names[input];
}

/* Powers of two for elements of a type: sizes of `lines`, `along` and `hidden` are up to 2^±far; `high` has 2^top and
 * 2^under, `low` 2^low_a and 2^low_b, and 2^tiny, which are subnormal numbers. */
typedef struct {
    int far;
    int top, under;
    int low_a, low_b, tiny;
} grade_reach;
static inline grade_reach grade_reach_of(tsr_dtype input, bool subnormal) {
    const grade_reach f64 = {300, 1015, -980, -560, -400, -1050}, f32 = {30, 120, -100, -70, -30, -135};
    const grade_reach bf16 = {30, 120, -100, -70, -30, -128}, f16 = {5, 12, -8, -9, -5, -18};
    grade_reach of = input == TSR_F64 ? f64 : input == TSR_F32 ? f32 : input == TSR_BF16 ? bf16 : f16;
    if (!subnormal) of.tiny = of.low_a;
    return of;
}

/* This row of A and this column of B are 0 in all of them, and so is C there. */
enum { GRADE_ZERO_ROW = 3, GRADE_ZERO_COL = 5 };

static inline int grade_drawn_power(int far) { return (int)known_drawn((uint64_t)(2 * far + 1)) - far; }

/* The powers of two by which line `line` of A or B, of so many, is scaled. */
static inline int grade_line_power(grade_input input, grade_reach reach, bool of_b, int64_t line) {
    switch (input) {
    case GRADE_LINES: return grade_drawn_power(reach.far);
    case GRADE_HIGH: return of_b ? reach.under : reach.top;
    case GRADE_LOW: return line % 4 == 3 ? (of_b ? -reach.low_b : reach.tiny) : of_b ? reach.low_b : reach.low_a;
    default: return 0;
    }
}

/* How element l of line `line` differs in size from its line, of A or of B; along: of GRADE_ALONG. */
static inline int grade_own_power(grade_input input, grade_reach reach, bool of_b, int64_t line, int64_t l, int along) {
    if (input == GRADE_ALONG) return of_b ? -along : along;
    return input == GRADE_HIDDEN && l % 32 == (of_b ? 23 : 7) && l / 32 == line % 3 ? reach.far : 0;
}
/* Whether what it meets is to be alone: the other side's large elements stand there. */
static inline bool grade_hides(grade_input input, bool of_b, int64_t l) {
    return input == GRADE_HIDDEN && l % 32 == (of_b ? 7 : 23);
}

static inline void grade_fill_side(const known_product *p, grade_input input, grade_reach reach, bool of_b,
                                   const int *along) {
    for (int64_t line = 0; line < (of_b ? p->n : p->m); line++) {
        const int power = grade_line_power(input, reach, of_b, line);
        const bool zero = line == (of_b ? GRADE_ZERO_COL : GRADE_ZERO_ROW);
        for (int64_t l = 0; l < p->k; l++) {
            const int own = power + grade_own_power(input, reach, of_b, line, l, along[l]);
            const double value = known_held(p->input, ldexp(known_normal(), own));
            *(of_b ? p->b + l * p->n + line : p->a + line * p->k + l) = zero || grade_hides(input, of_b, l) ? 0 : value;
        }
    }
}
/* subnormal: `low` has such numbers. Kernels that round their operands to fewer bits have still fewer for them. */
static inline void grade_fill(const known_product *p, grade_input input, bool subnormal) {
    const grade_reach reach = grade_reach_of(p->input, subnormal);
    int *along = (int *)known_room(p->k, sizeof *along);
    for (int64_t l = 0; l < p->k; l++) along[l] = grade_drawn_power(reach.far);
    grade_fill_side(p, input, reach, false, along);
    grade_fill_side(p, input, reach, true, along);
    free(along);
}

/* Numbers among which NaN, Inf of both signs, Inf times 0, Inf less Inf, and a sum beyond the range of C's type, where
 * the input type reaches it, in the first rows of A and columns of B. */
static inline void grade_fill_special(const known_product *p) {
    const double huge = p->input == TSR_F16 ? 60000 : p->type == TSR_F64 ? 0x1.8p1023 : 0x1.8p127;
    grade_fill(p, GRADE_PLAIN, false);
    p->a[0 * p->k + p->k / 2] = (double)NAN;
    p->a[1 * p->k + p->k - 1] = (double)INFINITY;
    p->a[2 * p->k] = -(double)INFINITY;
    p->a[4 * p->k + 1] = (double)INFINITY;
    p->a[4 * p->k + 2] = -(double)INFINITY;
    for (int64_t l = 0; l < p->k; l++) p->a[5 * p->k + l] = huge;
    for (int64_t l = 0; l < p->k; l++) p->b[l * p->n] = 1; /* row 5, column 0 */
    p->b[(p->k - 1) * p->n + 1] = 0;                       /* row 1, column 1: Inf·0 */
    p->b[3 * p->n + 2] = (double)INFINITY;
    p->b[4 * p->n + 3] = (double)NAN;
}

#endif
