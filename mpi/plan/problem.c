/* The problem: its shape, and the types its product is made and stored in (problem.h). */
#include "mpi/plan/problem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- types ----------------------------------------------------------------------------------- */

tsr_dtype tsr_problem_operands_type(const tsr_problem *problem) {
    return tsr_dtype_widest(tsr_dtype_compute(problem->operand[TSR_OPERAND_A].element.dtype),
                            tsr_dtype_compute(problem->operand[TSR_OPERAND_B].element.dtype));
}

bool tsr_problem_complex(const tsr_problem *problem) {
    const bool c0 = problem->add_c0 && (problem->beta_imag != 0 || tsr_dtype_is_complex(problem->c0.dtype));
    return problem->alpha_imag != 0 || c0 || tsr_problem_sums(problem) != TSR_FORM_REAL;
}

void tsr_problem_store_as(tsr_problem *problem, tsr_dtype out) {
    problem->out = out;
    problem->type = tsr_dtype_widest(tsr_dtype_compute(out), tsr_problem_operands_type(problem));
    problem->input = problem->type;
}

void tsr_problem_store_sums(tsr_problem *problem, tsr_dtype sums) {
    const bool complex = tsr_problem_complex(problem) && !problem->real_part;
    tsr_problem_store_as(problem, complex ? tsr_dtype_complex_of(sums) : sums);
}

/* Sums of products lie within k·max|a|·max|b| whatever their order. They are scaled and added to in fp64. */
/* The magnitude that sums of a product of integers, and elements of C, can reach, as far as k, alpha, beta and the
 * ranges of the types say (of C0's type where that is an integer one). 0 where A or B is floating: there nothing is
 * exact. */
static double reach_of(const tsr_problem *problem) {
    const double a = tsr_dtype_largest(problem->operand[TSR_OPERAND_A].element.dtype),
                 b = tsr_dtype_largest(problem->operand[TSR_OPERAND_B].element.dtype);
    const double c0 =
        problem->add_c0 ? hypot(problem->beta, problem->beta_imag) * tsr_dtype_largest(problem->c0.dtype) : 0;
    return a > 0 && b > 0 ? fmax(1, hypot(problem->alpha, problem->alpha_imag)) * (double)problem->k * a * b + c0 : 0;
}

/* "u8 x i16", or "u8 x i16 + i32": what the reach is of. */
static void name_sums(const tsr_problem *problem, char *text, size_t chars) {
    const bool c0 = problem->add_c0 && tsr_dtype_largest(problem->c0.dtype) > 0;
    snprintf(text, chars, "%s x %s%s%s", tsr_dtype_name(problem->operand[TSR_OPERAND_A].element.dtype),
             tsr_dtype_name(problem->operand[TSR_OPERAND_B].element.dtype), c0 ? " + " : "",
             c0 ? tsr_dtype_name(problem->c0.dtype) : "");
}

bool tsr_problem_widened(const tsr_problem *problem, char *text) {
    const tsr_dtype narrow = tsr_problem_operands_type(problem);
    const double holds = tsr_dtype_integers(narrow);
    char sums[32];
    text[0] = '\0';
    if (problem->type == narrow || !(reach_of(problem) > holds)) return false;
    name_sums(problem, sums, sizeof sums);
    snprintf(text, 128, "%s would round sums of %s beyond 2^%d (k = %lld)", tsr_dtype_name(narrow), sums, ilogb(holds),
             (long long)problem->k);
    return true;
}

bool tsr_problem_inexact(const tsr_problem *problem, char *text) {
    const bool narrower = tsr_dtype_integers(problem->out) < tsr_dtype_integers(problem->type);
    const tsr_dtype least = narrower ? problem->out : problem->type;
    const double reach = reach_of(problem), holds = tsr_dtype_integers(least);
    char sums[32], rounded[64] = "";
    text[0] = '\0';
    if (!(reach > holds)) return false;
    name_sums(problem, sums, sizeof sums);
    for (int i = 0; i < TSR_OPERANDS; i++) {
        const tsr_dtype type = problem->operand[i].element.dtype;
        if (tsr_dtype_bytes(type) < 8) continue;
        snprintf(rounded, sizeof rounded, "values of %s beyond 2^53 are rounded, and ", tsr_dtype_name(type));
    }
    const char *advice = "C is exact where sums stay below that";
    const tsr_dtype wider = tsr_dtype_wider(problem->type);
    char wide[64];
    if (reach <= tsr_dtype_integers(wider)) {
        snprintf(wide, sizeof wide, "--type %s holds all of them", tsr_dtype_name(wider));
        advice = wide;
    }
    snprintf(text, 512,
             "C may not be exact: %ssums of %s over k = %lld may reach %.2g, and %s holds whole numbers up "
             "to 2^%d; %s",
             rounded, sums, (long long)problem->k, reach, tsr_dtype_name(least), ilogb(holds), advice);
    return true;
}

/* ---- the problem ----------------------------------------------------------------------------- */

tsr_status tsr_problem_make(tsr_operand a, tsr_operand b, const tsr_operand *c0, tsr_complex alpha, tsr_complex beta,
                            tsr_problem *problem) {
    const bool add = !tsr_is_zero(beta);
    int64_t m = a.transpose ? a.cols : a.rows, k = a.transpose ? a.rows : a.cols;
    int64_t kb = b.transpose ? b.cols : b.rows, n = b.transpose ? b.rows : b.cols;
    if (k != kb)
        return tsr_fail(TSR_ERR_SHAPE,
                        "op(A) is %lld x %lld and op(B) is %lld x %lld: the columns of the first must be the rows of "
                        "the second; see --transpose-a and --transpose-b",
                        (long long)m, (long long)k, (long long)kb, (long long)n);
    if (add && !c0) {
        char text[TSR_COMPLEX_CHARS];
        return tsr_fail(TSR_ERR_USAGE, "beta is %s but there is no C0 to scale: give it with --add C0",
                        tsr_complex_text(beta, text));
    }
    if (add && (c0->rows != m || c0->cols != n))
        return tsr_fail(TSR_ERR_SHAPE, "C0 is %lld x %lld but the product is %lld x %lld: they must be the same",
                        (long long)c0->rows, (long long)c0->cols, (long long)m, (long long)n);
    *problem = (tsr_problem){.m = m,
                             .n = n,
                             .k = tsr_is_zero(alpha) ? 0 : k,
                             .operand = {a, b},
                             .add_c0 = add,
                             .alpha = alpha.re,
                             .alpha_imag = alpha.im,
                             .beta = beta.re,
                             .beta_imag = beta.im,
                             .unit_m = 1,
                             .unit_n = 1};
    if (add) problem->c0 = c0->element;
    const tsr_dtype type = tsr_problem_operands_type(problem);
    const bool beyond = reach_of(problem) > tsr_dtype_integers(type);
    tsr_problem_store_sums(problem, beyond ? tsr_dtype_wider(type) : type);
    return TSR_OK;
}

/* ---- Gram matrices --------------------------------------------------------------------------- */

static int64_t common_multiple(int64_t a, int64_t b) {
    int64_t x = a, y = b;
    while (y > 0) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

tsr_status tsr_problem_take_gram(tsr_problem *problem, tsr_triangle triangle) {
    const tsr_operand *a = &problem->operand[TSR_OPERAND_A], *b = &problem->operand[TSR_OPERAND_B];
    const bool real = !tsr_problem_complex(problem) && !tsr_dtype_is_complex(problem->out);
    const bool same = a->rows == b->rows && a->cols == b->cols && a->element.dtype == b->element.dtype &&
                      a->element.swapped == b->element.swapped && a->path == b->path;
    if (!same || !real || a->transpose == b->transpose || problem->add_c0)
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "a Gram matrix is a real matrix times itself transposed, without C0: leave out --gram");
    problem->gram = true;
    problem->triangle = triangle;
    /* pieces of C and their mirrors are whole chunks */
    problem->unit_m = problem->unit_n =
        tsr_max(1, tsr_min(common_multiple(problem->unit_m, problem->unit_n), problem->m));
    return TSR_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Whole units of both, or all of the side. */
static int64_t common_unit(int64_t unit, int64_t block, int64_t length) {
    if (unit >= length) return tsr_max(1, length);
    return tsr_max(1, tsr_min(common_multiple(unit, block), length));
}

void tsr_problem_fix_blocks(tsr_problem *problem, int64_t block, int64_t range) {
    const tsr_extents reals = tsr_problem_reals(problem);
    problem->blocks = (tsr_extents){tsr_max(1, block / reals.m), tsr_max(1, block / reals.n), range / reals.k};
    problem->unit_m = common_unit(problem->unit_m, problem->blocks.m, problem->m);
    problem->unit_n = common_unit(problem->unit_n, problem->blocks.n, problem->n);
}

static bool keeps(int64_t from, int64_t to, int64_t block, int64_t length) {
    return from % block == 0 && (to % block == 0 || to == length);
}

bool tsr_problem_keeps_blocks(const tsr_problem *problem, tsr_rect part, int64_t from, int64_t to) {
    const tsr_extents *b = &problem->blocks;
    const int64_t rows = tsr_problem_product_rows(problem);
    if (b->k == 0) return true;
    if (problem->batch > 1 && (part.row % rows != 0 || part.rows % rows != 0)) return false;
    return (problem->batch > 1 || keeps(part.row, part.row + part.rows, b->m, problem->m)) &&
           keeps(part.col, part.col + part.cols, b->n, problem->n) && keeps(from, to, b->k, problem->k);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

void tsr_problem_stack(tsr_problem *problem, int64_t products) {
    problem->unit_m = problem->m;
    problem->unit_n = 1;
    problem->m *= products;
    problem->batch = products;
    for (int i = 0; i < TSR_OPERANDS; i++)
        if (!problem->operand[i].common) problem->operand[i].rows *= products;
}

tsr_rect tsr_problem_stack_rect(const tsr_problem *problem, tsr_operand_name name, int64_t first, int64_t count) {
    const tsr_operand *x = &problem->operand[name];
    if (x->common) return (tsr_rect){0, 0, x->rows, x->cols};
    const int64_t rows = x->rows / problem->batch;
    return (tsr_rect){first * rows, 0, count * rows, x->cols};
}
