/* The product to plan: what A, B, C0 and C are, and in which types C is made and stored. */
#ifndef TSR_MPI_PLAN_PROBLEM_H
#define TSR_MPI_PLAN_PROBLEM_H

#include "kernels/base/base.h"
#include "kernels/base/form.h"

/* How an operand's elements reach the device, and C's leave it. */
typedef enum {
    /* the store reads into a host buffer (or writes from one), which is copied to the device (or from it) */
    TSR_DATA_PATH_HOST,
    TSR_DATA_PATH_MAPPED, /* the store's own memory (its `map`) is copied to the device, or from it */
    TSR_DATA_PATH_DEVICE  /* A, B: a generated store's elements are made on the device. C: stays in the accumulators */
} tsr_data_path;

typedef enum { TSR_OPERAND_A, TSR_OPERAND_B, TSR_OPERAND_C0, TSR_OPERAND_C } tsr_operand_name;
#define TSR_OPERANDS 2 /* A and B: what is said of both is an array by name */

/* A or B as the file stores it: rows × cols of `element`; the operand is its transpose when `transpose`, and
 * the complex conjugate of that when `conjugate`. */
typedef struct {
    int64_t rows, cols;
    tsr_element element;
    bool transpose;
    bool conjugate; /* counts for complex elements */
    tsr_data_path path;
    bool on_disk; /* rows are bytes of a file on a disk, which is slow with short pieces of them */
    bool common;  /* of a stack: one matrix for all products */
    bool copied;  /* reading copies it from memory: what was copied last is still in the caches */
} tsr_operand;

/* Elements along m, n and k. */
typedef struct {
    int64_t m, n, k;
} tsr_extents;

/* C (m × n) = alpha · op(A) (m × k) · op(B) (k × n) + beta · C0 (m × n) */
typedef struct {
    int64_t m, n, k; /* k = 0 when alpha = 0: A and B are not read */
    tsr_operand operand[TSR_OPERANDS];
    bool add_c0; /* beta ≠ 0 */
    tsr_element c0;
    double alpha, alpha_imag, beta, beta_imag;
    bool real_part; /* C is stored real where the product is complex */
    /* A and B as the kernel takes them: packed into it unless the file holds it. `type` unless set otherwise */
    tsr_dtype input;
    tsr_dtype type; /* accumulated in: TSR_F32 or TSR_F64; of complex sums each part */
    tsr_dtype out;  /* stored in */
    tsr_data_path c_path;
    bool c0_on_disk, c_on_disk;
    /* C is cut between ranks and super-blocks at multiples of these; 1 unless its file is chunked */
    int64_t unit_m, unit_n;
    /* op(B) is op(A) transposed, of the same elements: C is symmetric, the half on and below its diagonal is
     * multiplied, and the other is its mirror */
    bool gram;
    /* Each product of a stack is one with its own transpose, and made whole: then above its diagonal stands what is
     * below it, or as the triangle says */
    bool mirrored;
    tsr_triangle triangle; /* of C that is not zeros; full unless gram or mirrored */
    /* Products of one shape, whose matrices lie one below the other: m and the rows of operands are those of all, C is
     * cut between products alone, and k is one's. 0 and 1: one product */
    int64_t batch;
    /* Launches begin and end at multiples of these, or at the end of C and of k: a kernel that defines its sums for
     * such blocks makes the same ones however C is cut (tsr_problem_fix_blocks). Then unit_m and unit_n are multiples,
     * or all of m and n, and ranges of k are added in their order. 0, 0, 0: anywhere */
    tsr_extents blocks;
    bool one_nan; /* every NaN of C is made the same one: kernels whose own depend on what made them */
} tsr_problem;

/* Whether an operand is stored with k along its rows' elements (m × k, n × k); else k counts its rows. */
static inline bool tsr_problem_k_is_cols(const tsr_problem *problem, tsr_operand_name name) {
    return problem->operand[name].transpose == (name == TSR_OPERAND_B);
}

/* Complex operands are multiplied as reals (kernels/base/form.h). */
static inline bool tsr_problem_operand_complex(const tsr_problem *problem, tsr_operand_name name) {
    return tsr_dtype_is_complex(problem->operand[name].element.dtype);
}
/* The form in which an operand is multiplied. */
static inline tsr_form tsr_problem_form(const tsr_problem *problem, tsr_operand_name name) {
    const bool other = tsr_problem_operand_complex(problem, name == TSR_OPERAND_A ? TSR_OPERAND_B : TSR_OPERAND_A);
    if (!tsr_problem_operand_complex(problem, name)) return TSR_FORM_REAL;
    if (name == TSR_OPERAND_A) return other ? TSR_FORM_BESIDE : TSR_FORM_ROWS;
    return other ? TSR_FORM_SQUARES : TSR_FORM_BESIDE;
}
/* The form in which sums of products are kept. */
static inline tsr_form tsr_problem_sums(const tsr_problem *problem) {
    const tsr_form a = tsr_problem_form(problem, TSR_OPERAND_A), b = tsr_problem_form(problem, TSR_OPERAND_B);
    return b != TSR_FORM_REAL ? TSR_FORM_BESIDE : a;
}
/* How many reals are multiplied in place of one element along m, n and k: 1 or 2 each. */
static inline tsr_extents tsr_problem_reals(const tsr_problem *problem) {
    const tsr_form a = tsr_problem_form(problem, TSR_OPERAND_A), b = tsr_problem_form(problem, TSR_OPERAND_B);
    return (tsr_extents){tsr_form_rows(a), tsr_form_cols(b), tsr_form_cols(a)};
}
/* m, n and k of the real product. */
static inline tsr_extents tsr_problem_real_product(const tsr_problem *problem) {
    const tsr_extents reals = tsr_problem_reals(problem);
    return (tsr_extents){problem->m * reals.m, problem->n * reals.n, problem->k * reals.k};
}
/* 2·m·n·k of the real product. */
static inline double tsr_problem_flops(const tsr_problem *problem) {
    const tsr_extents all = tsr_problem_real_product(problem);
    return 2.0 * (double)all.m * (double)all.n * (double)all.k;
}
/* Bytes of the sum that becomes an element of C, and of an element of A or B as it is packed. */
static inline size_t tsr_problem_sum_bytes(const tsr_problem *problem) {
    const tsr_extents reals = tsr_problem_reals(problem);
    return (size_t)(reals.m * reals.n) * tsr_dtype_bytes(problem->type);
}
static inline size_t tsr_problem_packed_bytes(const tsr_problem *problem, tsr_operand_name name) {
    const tsr_form form = tsr_problem_form(problem, name);
    return (size_t)(tsr_form_rows(form) * tsr_form_cols(form)) * tsr_dtype_bytes(problem->input);
}
/* Whether what is added up, scaled and added to is complex; C is, too, unless its real part is stored. */
bool tsr_problem_complex(const tsr_problem *problem);

/* Sets m, n, k and the types; TSR_ERR_SHAPE shows both shapes. c0 (rows × cols, may be NULL) is needed exactly when
 * beta ≠ 0. The product is made and C stored in fp64 where an operand's type asks for it (tsr_dtype_compute), or where
 * a product of integers may come to more than fp32 holds exactly; else in fp32. C is complex where a part of it is. */
tsr_status tsr_problem_make(tsr_operand a, tsr_operand b, const tsr_operand *c0, tsr_complex alpha, tsr_complex beta,
                            tsr_problem *problem);
/* The problem is one of a Gram matrix from here on. A and B are the same real matrix, one of them transposed, there is
 * no C0, and the units of both sides are set: they become one. TSR_ERR_UNSUPPORTED where this is not so. */
tsr_status tsr_problem_take_gram(tsr_problem *problem, tsr_triangle triangle);
/* Launches are cut at multiples of `block` reals along m and n and of `range` reals along k from here on. The range is
 * even, and so is the block, unless it is 1: then C is cut anywhere.
 * Units are set before, a Gram matrix is one, and a stack comes later. */
void tsr_problem_fix_blocks(tsr_problem *problem, int64_t block, int64_t range);
/* Whether a launch that makes the sums of this part of C over k from `from` to before `to` keeps to problem.blocks. */
bool tsr_problem_keeps_blocks(const tsr_problem *problem, tsr_rect part, int64_t from, int64_t to);
/* Makes the problem one of a stack of `products`, 2 or more, that are each what it was; `common` of an operand is set
 * before. Nothing of it is empty. */
void tsr_problem_stack(tsr_problem *problem, int64_t products);
/* Rows of C that each product of a stack has. */
static inline int64_t tsr_problem_product_rows(const tsr_problem *problem) {
    return problem->batch > 1 ? problem->m / problem->batch : problem->m;
}
/* What `count` products of a stack from number `first` on read of an operand, as it is stored. */
tsr_rect tsr_problem_stack_rect(const tsr_problem *problem, tsr_operand_name name, int64_t first, int64_t count);
/* The type that A's and B's values ask for. */
tsr_dtype tsr_problem_operands_type(const tsr_problem *problem);
/* C is stored as `out`, because somebody said so. The product is made in fp64 for an f64 and where an operand's type
 * asks for it, whatever sums come to. */
void tsr_problem_store_as(tsr_problem *problem, tsr_dtype out);
/* The same for a type of sums: C is complex of such parts where the product is complex, unless its real part is
 * stored. */
void tsr_problem_store_sums(tsr_problem *problem, tsr_dtype sums);
/* Whether fp64 is taken for the sums' sake alone, and why: 60 characters or so, of `text`'s at least 128. Else "". */
bool tsr_problem_widened(const tsr_problem *problem, char *text);
/* Whether C is a product of integers and may not be exact, why, and what to do, in `text` of at least 512. Else "". */
bool tsr_problem_inexact(const tsr_problem *problem, char *text);

#endif
