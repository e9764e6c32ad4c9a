/* The rows of Freivalds' check (verify.h): what each entry of C must be, and how far from zero rounding alone may
 * leave a row.
 *
 * Columns j are scaled by powers of two D_j (verify_scale.c). With S_i = Σ_l |op(A)_il|·‖op(B)_l·D‖₂ and u the unit
 * roundoff of the accumulation, the rounding errors e_i of row i of a right C, scaled, have
 *   ‖e_i·D‖₂ ≤ γ·|alpha|·S_i + 2u·|beta|·‖c0_i·D‖₂ + u_out·‖c_i·D‖₂ + underflow·‖D‖₂,   γ = u·(2 + GROWTH·√k) + lost.
 * For |e_ij| ≤ γ·|alpha|·Σ_l |op(A)_il|·|op(B)_lj| + …, entry by entry, is what kernels state (kernels/gemm/gemm.h);
 * `split3` keeps it, too, by handing on what its parts cannot hold. The triangle inequality makes S_i of it, whatever
 * D is. So a right product passes for any D, and an error in entry (i, j) is noticed from λ/D_j times the right-hand
 * side on: about λ·√n times the entry's own bound, where D brings the columns to one size. Larger rows of op(A),
 * columns of op(B), and columns of op(A) whose rows of op(B) are as much smaller, by powers of two, change nothing.
 *
 * `lost` is what the kernel's accuracy class gives away: tensor cores cut sums off towards zero, a unit every few
 * terms, and operands that are rounded to tf32 or bfloat16 lose a unit roundoff of that type each.
 * Rounding errors of a sum of k terms grow like √k·u, not k·u, except with vanishing probability (Higham and Mary
 * 2019); the constant 4 leaves more than six standard deviations to a single entry. Their model needs errors of
 * different sums to be unrelated: a matrix of one repeated fraction, summed in order over more than about 10⁵ terms,
 * can break it. The signs are independent of C's errors, so |e_i·D·x| ≤ λ·‖e_i·D‖₂ but for probability 2·exp(-λ²/2)
 * (Hoeffding); λ makes that < 1e-9 over all rows and trials. The same holds for the check's own sums, added with u =
 * 2⁻⁵³ and lengths n and k.
 * Rows whose product is zero, and columns of zeros in op(B), are judged entry by entry: there C is beta·C0, rounded.
 *
 * NaN and Inf: an entry is non-finite where row i of op(A), column j of op(B) or C0_ij holds a non-finite value:
 * which of the three it is follows from the non-finite terms of its sum (verify_infinite.c). Columns j of op(B) that
 * hold one leave the sums, so they disturb no row; rows of op(A) that hold one have no finite entry to be added up.
 * Elsewhere an entry is non-finite only where sums leave the range of their type. It is then worked out by itself
 * (verify_entries.c), and so is the product's part of one whose C0 is not finite: its value is taken out of the row's
 * sums, which judge all other entries. +Inf is right where the positive terms reach the range, -Inf where the
 * negative ones do, NaN where both do: in which order they are added is the kernel's. Where too many entries are to
 * be worked out, their rows are not judged. */
#include "app/verify/verify_private.h"

#define GROWTH 4.0
#define REACHES 0.99 /* of a type's range, what rounding may take beyond it */

/* Half the smallest subnormal of a type, where fp64 can say that; whole numbers are exact. */
static double underflow(tsr_dtype type) {
    return tsr_dtype_roundoff(type) > 0 ? fmax(tsr_dtype_tiny(type), 0x1p-1074) : 0;
}
static tsr_dtype type_of_c(const verifier *v) { return v->args->c->desc.element.dtype; }

static double lost(tsr_accuracy accuracy, double u, int64_t k) {
    const double sums = accuracy == TSR_ACCURACY_IEEE ? 0 : u * (double)k / 4;
    return sums + (accuracy == TSR_ACCURACY_TF32 ? 2 * 0x1p-11 : accuracy == TSR_ACCURACY_BF16 ? 2 * 0x1p-8 : 0);
}

/* γ */
static double growth(const verifier *v) {
    const double u = tsr_dtype_roundoff(v->args->type);
    return u * (2 + GROWTH * sqrt((double)v->k)) + lost(v->args->accuracy, u, v->k);
}

/* What underflow may take from an entry of C. */
static double least(const verifier *v) {
    const double sums = tsr_times_power((double)v->k * underflow(v->args->type), v->alpha_exponent);
    return underflow(type_of_c(v)) + (v->k > 0 ? fabs(v->alpha) * sums : 0);
}

int tsr_verify_floor(const verifier *v) {
    const double tiny = least(v), relative = growth(v) + tsr_dtype_roundoff(type_of_c(v));
    return tiny > 0 ? tsr_exponent(tiny) - tsr_exponent(relative) : -10000;
}

int tsr_verify_weight_of_c0(const verifier *v) {
    const double out = tsr_dtype_roundoff(type_of_c(v));
    return tsr_exponent((2 * tsr_dtype_roundoff(v->args->type) + out) / (growth(v) + out));
}

/* ---- entries --------------------------------------------------------------------------------- */

/* |alpha| times the largest sum of the row; a complex alpha adds two. */
static double most_of(const verifier *v, int64_t row) {
    return tsr_times_power(fabs(v->alpha) * v->r.largest[row], (int64_t)v->alpha_exponent + v->parts->turned);
}

/* Whether sums of finite values may leave the range in this row, or with this C0. */
static bool may_overflow(const verifier *v, int64_t row, double added) {
    const double largest = v->r.largest[row], most = most_of(v, row) + fabs(added);
    const bool inside =
        largest < REACHES * tsr_dtype_finite(v->args->type) && most < REACHES * tsr_dtype_finite(type_of_c(v));
    return v->k > 0 ? !inside : !(fabs(added) < REACHES * tsr_dtype_finite(type_of_c(v)));
}

/* What an entry of C can be other than its value. */
typedef struct {
    bool up, down, nan;
} reaches;

static bool may_be(reaches r, double c) { return isnan(c) ? r.nan : c > 0 ? r.up : r.down; }

static const entry_terms no_terms = {0, 0};

/* A sum of finite terms times `factor`, as a quarter of its share of C. */
static double take_reach(const verifier *v, entry_terms terms, double factor, int exponent, reaches *r) {
    const double quarter = REACHES * 0.25 * 0x1.fffffffffffffp1023, product = terms.plus - terms.minus;
    const double reach = REACHES * tsr_dtype_finite(v->args->type);
    const bool plus = tsr_times_power(terms.plus, exponent) >= reach;
    const bool minus = tsr_times_power(terms.minus, exponent) >= reach;
    const double made = product == 0 || factor == 0 ? 0 : 0.25 * factor * tsr_times_power(product, exponent);
    if (factor == 0) {
        r->nan |= plus || minus; /* 0 times an Inf */
        return 0;
    }
    r->up |= (factor < 0 ? minus : plus) || made >= quarter;
    r->down |= (factor < 0 ? plus : minus) || made <= -quarter;
    return made;
}

/* What can come of an entry's finite terms (tsr_verify_close_entry), on the way or, with a finite c0, in the end; c0
 * NULL: where the end is infinite anyway. */
static reaches reached(const verifier *v, int64_t j, entry_terms own, entry_terms other, int exponent,
                       const double *c0) {
    const double quarter = REACHES * 0.25 * 0x1.fffffffffffffp1023, beta = v->args->beta;
    const double limit = REACHES * 0.25 * tsr_dtype_finite(type_of_c(v));
    const double added = c0 && beta != 0 ? 0.25 * beta * *c0 : 0;
    const verify_parts *parts = v->parts;
    reaches r = {added >= quarter, added <= -quarter, false};
    double made = take_reach(v, own, parts->turned ? parts->alpha.re : v->args->alpha, exponent, &r);
    if (parts->turned) made += take_reach(v, other, tsr_verify_factor(parts->alpha, j % 2, 1 - j % 2), exponent, &r);
    const double all = c0 ? made + added : 0; /* a quarter: sums stay in range */
    r.up |= !(all < limit);
    r.down |= !(all > -limit);
    r.nan |= r.up && r.down;
    return r;
}

/* Imaginary parts of C are C0's alone where A, B and alpha are real. */
static bool has_product(const verifier *v, int64_t j) {
    return v->parts->turned || v->parts->nowhere != ODD_COLUMNS || j % 2 == 0;
}

/* Non-finite terms times a factor. */
static int turned_by(double factor, int terms) {
    if (terms == 0) return 0;
    if (factor == 0 || terms >= (PLUS | MINUS)) return NONE;
    return factor > 0 ? terms : PLUS + MINUS - terms;
}

/* The non-finite terms of alpha·A·B + beta·C0; added: beta·c0 */
static int terms_of(const verifier *v, int64_t row, int64_t at, int64_t j, double added) {
    const verify_parts *parts = v->parts;
    int terms = 0;
    if (has_product(v, j))
        terms = turned_by(parts->turned ? parts->alpha.re : v->args->alpha, tsr_infinite_terms(v, row, at, j));
    if (parts->turned)
        terms |= turned_by(tsr_verify_factor(parts->alpha, j % 2, 1 - j % 2),
                           tsr_infinite_terms(v, row, at, tsr_verify_partner(j)));
    if (isnan(added)) terms |= NONE;
    else if (isinf(added)) terms |= added > 0 ? PLUS : MINUS;
    return terms;
}

/* An entry that must be NaN or Inf, and is. Whether the product's finite terms have to be known: where they overflow
 * to the other infinity, NaN is right, too. */
static bool judge_infinite(verifier *v, int64_t row, int64_t at, int64_t j, double c, double added) {
    row_facts *f = &v->facts[row];
    const bool made = has_product(v, j);
    const unsigned char kinds = made ? v->r.kind[row] | tsr_verify_column_kind(v, j) : 0;
    if (!(kinds & TSR_HOLDS_NAN) && ((kinds & TSR_HOLDS_MANY) || (made && !isfinite(v->args->alpha)))) {
        f->unjudged = true;
        return false;
    }
    const int terms = terms_of(v, row, at, j, added);
    if (terms >= (PLUS | MINUS) ? isnan(c) : c == (terms == PLUS ? INFINITY : -INFINITY)) return false;
    const double most = fmax(v->r.largest[row], most_of(v, row));
    if (made && terms < (PLUS | MINUS) && isnan(c) && !(most < REACHES * tsr_dtype_finite(v->args->type))) return true;
    f->wrong = true;
    return false;
}

/* An entry whose product is zero, and c finite. */
static void judge_direct(const verifier *v, row_facts *f, double c, double added) {
    const double error = fabs(c - added),
                 bound = tsr_dtype_roundoff(type_of_c(v)) * fabs(c) +
                         (2 * tsr_dtype_roundoff(v->args->type) + 4 * TSR_ROUNDOFF_DOUBLE) * fabs(added) +
                         underflow(type_of_c(v));
    if (!isfinite(added)) f->wrong = true;
    else if (error > 0) f->direct = fmax(f->direct, bound > 0 ? error / bound : INFINITY);
}

/* c and c0 join the row's sums. */
static void add_entry(verifier *v, int64_t row, int64_t j, double c, double c0) {
    row_facts *f = &v->facts[row];
    int beta_exponent = 0;
    const double beta = frexp(v->args->beta, &beta_exponent);
    const int64_t own = c0 != 0 ? tsr_exponent(c0) : 0; /* so that no subnormal is rounded */
    const double added = c0 != 0 ? beta * tsr_times_power(c0, -own) : 0;
    const int64_t of_c = v->shift[j], of_c0 = v->shift[j] + beta_exponent + own;
    const int64_t largest =
        tsr_max(c != 0 ? of_c + tsr_exponent(c) : INT32_MIN, added != 0 ? of_c0 + tsr_exponent(added) : INT32_MIN);
    if (largest > v->r.exponent[row] + 100) { /* far beyond what the product says */
        const int64_t by = 2 * (v->r.exponent[row] - largest);
        tsr_sums_raise(&v->r, row, v->trials, (int32_t)largest);
        f->c_squares = tsr_times_power(f->c_squares, by);
        f->c0_squares = tsr_times_power(f->c0_squares, by);
    }
    c = tsr_times_power(c, of_c - v->r.exponent[row]);
    c0 = tsr_times_power(added, of_c0 - v->r.exponent[row]);
    tsr_verify_add_scaled(v->r.sums + row * v->trials, c0 - c, v->signs + j * v->trials, v->trials);
    f->c_squares += c * c;
    f->c0_squares += c0 * c0;
}

void tsr_verify_take_entry(verifier *v, int64_t row, int64_t at, int64_t j, double c, double c0) {
    row_facts *f = &v->facts[row];
    const double beta = v->args->beta, added = beta != 0 ? beta * c0 : 0;
    if (v->parts->real_c && j % 2 == 1) return;
    const bool made = has_product(v, j);
    const bool line_bad = made && (v->r.kind[row] || tsr_verify_column_kind(v, j));
    const bool added_bad = beta != 0 && !(isfinite(beta) && isfinite(c0));
    const bool direct = !made || v->r.exponent[row] == TSR_EXPONENT_NONE || v->column_top[j] == TSR_EXPONENT_NONE;
    const bool alpha_bad = made && v->k > 0 && !isfinite(v->args->alpha);
    if (line_bad || added_bad || alpha_bad) {
        if (isfinite(c)) f->wrong = true;
        else if (judge_infinite(v, row, at, j, c, added) || (!line_bad && !alpha_bad && !direct))
            tsr_entries_add(v, row, j, c, c0);
    } else if (isfinite(c)) {
        if (direct) judge_direct(v, f, c, added);
        else add_entry(v, row, j, c, c0);
    } else if (direct) {
        if (!may_be(reached(v, j, no_terms, no_terms, 0, &c0), c)) f->wrong = true;
    } else if (may_overflow(v, row, added)) {
        tsr_entries_add(v, row, j, c, c0);
    } else {
        f->wrong = true;
    }
}

void tsr_verify_close_entry(verifier *v, const open_entry *e, entry_terms own, entry_terms other, int exponent) {
    const int64_t row = e->row - v->first;
    const double added = v->args->beta != 0 ? v->args->beta * e->c0 : 0;
    const bool line_bad = v->r.kind[row] || tsr_verify_column_kind(v, e->col);
    const bool infinite = line_bad || (v->args->beta != 0 && !(isfinite(e->c0) && isfinite(v->args->beta)));
    const reaches r = reached(v, e->col, own, other, exponent, infinite ? NULL : &e->c0);
    if (infinite) {
        const int terms = terms_of(v, row, tsr_infinite_find(&v->in_a, row), e->col, added);
        const bool nan = r.nan || (terms == PLUS && r.down) || (terms == MINUS && r.up);
        if (isnan(e->c) && terms < (PLUS | MINUS) && !nan) v->facts[row].wrong = true;
    } else if (!may_be(r, e->c)) {
        v->facts[row].wrong = true;
    }
    if (line_bad) return; /* no sums hold it */
    double product = own.plus - own.minus;
    if (v->parts->turned)
        product =
            v->unit.re * product + tsr_verify_factor(v->unit, e->col % 2, 1 - e->col % 2) * (other.plus - other.minus);
    const double scaled = tsr_times_power(v->alpha * product, (int64_t)exponent + v->alpha_exponent + v->shift[e->col] -
                                                                  v->r.exponent[row]);
    tsr_verify_add_scaled(v->r.sums + row * v->trials, -scaled, v->signs + e->col * v->trials, v->trials);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* What |r_i| may be from rounding alone, · 2^exponent of the row. */
static double bound_of(const verifier *v, int64_t row) {
    const row_facts *f = &v->facts[row];
    const double u = tsr_dtype_roundoff(v->args->type);
    const double root_k = sqrt((double)v->k);
    const double root_n = sqrt((double)v->n);
    const double s = v->r.norm[row];
    const double c = sqrt(f->c_squares), c0 = sqrt(f->c0_squares);
    const double tiny = tsr_times_power(least(v) * v->shift_norm, (int64_t)v->shift_exponent - v->r.exponent[row]);
    const double own = GROWTH * TSR_ROUNDOFF_DOUBLE * ((root_n + root_k + 2) * s + (root_n + 2) * (c + c0));
    return v->lambda * (growth(v) * s + 2 * u * c0 + tsr_dtype_roundoff(type_of_c(v)) * c + tiny + own);
}

void tsr_verify_judge_row(verifier *v, int64_t row) {
    const row_facts *f = &v->facts[row];
    const bool summed =
        !v->r.kind[row] && isfinite(v->args->alpha) && v->r.exponent[row] != TSR_EXPONENT_NONE && !f->no_sums;
    const double *sums = v->r.sums + row * v->trials;
    double ratio = f->wrong ? INFINITY : f->direct;
    tsr_verify_result *result = &v->found;
    if (summed) {
        double worst = 0;
        for (int t = 0; t < v->trials; t++) worst = isnan(sums[t]) ? INFINITY : fmax(worst, fabs(sums[t]));
        const double bound = bound_of(v, row);
        if (worst > 0) ratio = fmax(ratio, worst / bound);
        result->largest_bound =
            fmax(result->largest_bound, tsr_times_power(bound, (int64_t)v->r.exponent[row] - v->shift_least));
    }
    if (ratio > 1) result->rows_failed++;
    else if (f->unjudged || f->no_sums) result->rows_unjudged++;
    if (ratio > result->worst_ratio || result->worst_row < 0) {
        result->worst_ratio = ratio;
        result->worst_row = v->first + row;
    }
}
