/* The rows of Freivalds' check (verify.h): what each entry of C must be, and how far from zero rounding alone may leave a row.
 *
 * Rounding bound of row i, with S_i = Σ_l |op(A)_il|·‖op(B)_l‖₂ and u the unit roundoff of the accumulation:
 *   ‖e_i‖₂ ≤ γ·|alpha|·S_i + 2u·|beta|·‖c0_i‖₂ + u_out·‖c_i‖₂ + underflow,   γ = u·(2 + GROWTH·√k) + lost.
 * `lost` is what the kernel's accuracy class gives away: tensor cores cut sums off towards zero, a unit every few terms, and operands that are
 * rounded to tf32 or bfloat16 lose a unit roundoff of that type each.
 * Rounding errors of a sum of k terms grow like √k·u, not k·u, except with vanishing probability (Higham and Mary 2019); the constant 4
 * leaves more than six standard deviations to a single entry. Their model needs errors of different sums to be unrelated: a matrix of one
 * repeated fraction, summed in order over more than about 10⁵ terms, can break it. The signs are independent of C's errors, so
 * |e_i·x| ≤ λ·‖e_i‖₂ but for probability 2·exp(-λ²/2) (Hoeffding); λ makes that < 1e-9 over all rows and trials. The same holds for the
 * check's own sums, added with u = 2⁻⁵³ and lengths n and k.
 *
 * NaN and Inf: entry (i, j) of a right product is non-finite exactly where row i of op(A), column j of op(B) or C0_ij holds a
 * non-finite value, or where the sum leaves the range of its type. Columns j of op(B) that hold one get sign 0 (which takes a second
 * reading of B), so they disturb no row; every other entry of such a row is still checked by sums. Rows that must or may be
 * non-finite elsewhere are skipped by the sums and counted. Each entry is checked for being non-finite where it must be and finite where it cannot be otherwise. */
#include "app/verify_private.h"

#include <math.h>

#define GROWTH 4.0
#define U64 0x1p-53

/* Unit roundoff and half the smallest subnormal of a type; whole numbers are exact. */
static double roundoff(tsr_dtype type) { return type == TSR_F16 ? 0x1p-11 : type == TSR_F32 ? 0x1p-24 : type == TSR_F64 ? U64 : 0; }
static double underflow(tsr_dtype type) { return type == TSR_F16 ? 0x1p-25 : type == TSR_F32 ? 0x1p-150 : type == TSR_F64 ? 0x1p-1074 : 0; }
static double range(tsr_dtype type) { return type == TSR_F16 ? 65504.0 : type == TSR_F32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023; }

static double lost(tsr_accuracy accuracy, double u, int64_t k) {
    const double sums = accuracy == TSR_ACCURACY_IEEE ? 0 : u * (double)k / 4;
    return sums + (accuracy == TSR_ACCURACY_TF32 ? 2 * 0x1p-11 : accuracy == TSR_ACCURACY_BF16 ? 2 * 0x1p-8 : 0);
}

void tsr_verify_take_entry(const verifier *v, row_facts *f, double *sums, bool row_bad, int64_t j, double c, double c0) {
    double beta = v->args->beta;
    bool alpha_bad = v->k > 0 && !isfinite(v->args->alpha), here = beta != 0 && !isfinite(beta * c0);
    bool must = row_bad || v->column_bad[j] > 0 || here || alpha_bad;
    if (must) {
        if (isfinite(c)) f->wrong = true;
        if (row_bad || here || alpha_bad) f->skipped = true;
        return; /* a bad column has sign 0 */
    }
    if (!isfinite(c)) {
        double most = fabs(v->args->alpha) * f->overflow + fabs(beta * c0);
        bool possible = !(f->overflow < 0.99 * range(v->args->type)) || !(most < 0.99 * range(v->args->c->desc.element.dtype));
        if (possible) f->skipped = true;
        else f->wrong = true;
        return;
    }
    double rest = beta != 0 ? beta * c0 - c : -c;
    tsr_verify_add_scaled(sums, rest, v->signs + j * v->trials, v->trials);
    f->c_squares += c * c;
    f->c_largest = fmax(f->c_largest, fabs(c));
    if (beta != 0) {
        f->c0_squares += c0 * c0;
        f->c0_largest = fmax(f->c0_largest, fabs(c0));
    }
}

static double norm_of(double squares, double largest, int64_t count) {
    bool usable = isfinite(squares) && (squares > 1e-280 || largest == 0);
    return usable ? sqrt(squares) : sqrt((double)count) * largest;
}

/* What |r_i| may be from rounding alone. */
static double bound_of(const verifier *v, const row_facts *f, double s) {
    const tsr_verify_args *a = v->args;
    tsr_dtype out = a->c->desc.element.dtype;
    double u = roundoff(a->type), root_k = sqrt((double)v->k), root_n = sqrt((double)v->n), alpha = fabs(a->alpha), beta = fabs(a->beta);
    double c = norm_of(f->c_squares, f->c_largest, v->n), c0 = beta != 0 ? beta * norm_of(f->c0_squares, f->c0_largest, v->n) : 0;
    double product = v->k > 0 ? (u * (2 + GROWTH * root_k) + lost(a->accuracy, u, v->k)) * alpha * s : 0;
    double tiny = root_n * (underflow(out) + (v->k > 0 ? (double)v->k * alpha * underflow(a->type) : 0));
    double own = GROWTH * U64 * ((root_n + root_k + 2) * (v->k > 0 ? alpha * s : 0) + (root_n + 2) * (c + c0));
    return v->lambda * (product + 2 * u * c0 + roundoff(out) * c + tiny + own);
}

void tsr_verify_judge_row(const verifier *v, const row_facts *f, const double *sums, double s, int64_t row, tsr_verify_result *result) {
    double ratio = 0, bound = bound_of(v, f, s);
    bool skipped = f->skipped || !v->summed || !isfinite(bound); /* the last: beyond the range of double itself */
    if (!skipped) {
        double worst = 0;
        for (int t = 0; t < v->trials; t++) worst = isnan(sums[t]) ? INFINITY : fmax(worst, fabs(sums[t]));
        ratio = worst == 0 ? 0 : worst / bound;
        result->largest_bound = fmax(result->largest_bound, bound);
    }
    if (f->wrong) ratio = INFINITY;
    if (skipped) result->rows_skipped++;
    if (ratio > 1) result->rows_failed++;
    if (ratio > result->worst_ratio || result->worst_row < 0) {
        result->worst_ratio = ratio;
        result->worst_row = row;
    }
}
