/* Grades a multiplication by the strongest bound that it keeps on inputs made to tell bounds apart (inputs.h). The idea
 * is that of Demmel and others, Grading the BLAS, arXiv 2609.12307. With f = 2·k, the unit u of its accuracy class,
 * and the least number t of C's type for what underflows:
 *   A  |ΔC_ij| ≤ f·u·(|A||B|)_ij + k·t      componentwise, as of sums of products
 *   B  |ΔC_ij| ≤ f·u·‖a_i‖·‖b_j‖ + k·t      by row and column, as of one scale a line
 *   C  |ΔC_ij| ≤ f·u·‖A‖·‖B‖ + k·t          by the norms of the matrices, as of Strassen's
 *   F  none of these
 * The product itself is judged by exact sums. From C and C++. */
#ifndef TSR_TESTS_KERNELS_GEMM_GRADE_GRADE_H
#define TSR_TESTS_KERNELS_GEMM_GRADE_GRADE_H

#include "tests/kernels/gemm/grade/inputs.h"

enum { GRADE_M = 64, GRADE_N = 64, GRADE_K = 96 };

typedef struct {
    tsr_dtype input, type;
    double unit;                                   /* u */
    void (*make)(void *context, known_product *p); /* C = A·B */
    void *context;
} graded;

typedef struct {
    char grade;                 /* the lowest of all inputs */
    char of[GRADE_INPUTS];      /* each input's */
    double worst[GRADE_INPUTS]; /* the largest error in units of u·(|A||B|); Inf where C is no number */
    double unit;                /* the least one, of all classes, that A holds with for plain data; 0: none */
    bool special;               /* NaN and Inf stand where IEEE arithmetic puts them, and nowhere else */
} grade_result;

/* u of the class that a kernel states. */
static inline double grade_unit(tsr_accuracy accuracy, tsr_dtype type) {
    return accuracy == TSR_ACCURACY_TF32 ? 0x1p-11 : accuracy == TSR_ACCURACY_BF16 ? 0x1p-8 : tsr_dtype_roundoff(type);
}

/* Norms of a product's lines, and of its matrices. */
typedef struct {
    long double *rows, *columns, a, b;
} grade_norms;
static inline grade_norms grade_norms_of(const known_product *p) {
    grade_norms of;
    of.a = of.b = 0;
    of.rows = (long double *)known_room(p->m, sizeof *of.rows);
    of.columns = (long double *)known_room(p->n, sizeof *of.columns);
    for (int64_t at = 0; at < p->m * p->k; at++) of.rows[at / p->k] += (long double)p->a[at] * p->a[at];
    for (int64_t at = 0; at < p->k * p->n; at++) of.columns[at % p->n] += (long double)p->b[at] * p->b[at];
    for (int64_t i = 0; i < p->m; i++) of.a += of.rows[i];
    for (int64_t j = 0; j < p->n; j++) of.b += of.columns[j];
    of.a = sqrtl(of.a);
    of.b = sqrtl(of.b);
    for (int64_t i = 0; i < p->m; i++) of.rows[i] = sqrtl(of.rows[i]);
    for (int64_t j = 0; j < p->n; j++) of.columns[j] = sqrtl(of.columns[j]);
    return of;
}

/* The grade of the product p for units of u; *worst as in grade_result. */
static inline char grade_of(const known_product *p, double u, double *worst) {
    const long double f = 2 * (long double)p->k;
    const long double least = (long double)p->k * (p->type == TSR_F64 ? 0x1p-1074 : 0x1p-149);
    grade_norms norms = grade_norms_of(p);
    int lowest = 0;
    *worst = 0;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const long double error = known_error(p, i, j), size = known_size(p, i, j);
            const long double scales[] = {size, norms.rows[i] * norms.columns[j], norms.a * norms.b};
            int kept = 0;
            while (kept < 3 && !(error <= f * u * scales[kept] + least)) kept++;
            if (kept > lowest) lowest = kept;
            if (error > least && error / (u * size) > *worst) *worst = (double)(error / (u * size));
        }
    free(norms.rows);
    free(norms.columns);
    return "ABCF"[lowest];
}

/* The least unit of a class with which a product of plain data is of grade A; 0: none. */
static inline double grade_unit_found(const known_product *p) {
    const double units[] = {0x1p-53, 0x1p-24, 0x1p-11, 0x1p-8};
    double worst;
    for (int i = 0; i < 4; i++)
        if (grade_of(p, units[i], &worst) == 'A') return units[i];
    return 0;
}

static inline bool grade_finite(const double *x, int64_t count, int64_t step) {
    bool finite = true;
    for (int64_t l = 0; l < count; l++) finite = finite && isfinite(x[l * step]);
    return finite;
}
/* Whether C of grade_fill_special's operands is NaN, Inf of which sign, or finite and of grade A, as it should be. */
static inline bool grade_special(const known_product *p, double u) {
    bool right = true;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const double got = p->c[i * p->n + j];
            double want = 0;                /* of infinite terms, or of those that leave the range */
            if (i == 5 && j != 0) continue; /* huge terms of either sign: their order decides */
            if (grade_finite(p->a + i * p->k, p->k, 1) && grade_finite(p->b + j, p->k, p->n)) {
                want = exact_rounded(known_sum(p, i, j), p->type);
                if (isfinite(want)) right = right && known_error(p, i, j) <= 2 * p->k * u * known_size(p, i, j);
            } else
                for (int64_t l = 0; l < p->k; l++) want += p->a[i * p->k + l] * p->b[l * p->n + j];
            right = right && (isnan(want) ? isnan(got) : isinf(want) ? got == want : isfinite(got));
        }
    return right;
}

static inline grade_result grade(const graded *g) {
    grade_result result;
    memset(&result, 0, sizeof result);
    result.grade = 'A';
    known_state = 12;
    for (int input = 0; input <= GRADE_INPUTS; input++) {
        known_product p = known_open(g->input, g->type, GRADE_M, GRADE_N, GRADE_K);
        if (input == GRADE_INPUTS) grade_fill_special(&p);
        else grade_fill(&p, (grade_input)input, g->unit == tsr_dtype_roundoff(g->type));
        g->make(g->context, &p);
        if (input == GRADE_INPUTS) {
            result.special = grade_special(&p, g->unit);
        } else {
            result.of[input] = grade_of(&p, g->unit, &result.worst[input]);
            if (result.of[input] > result.grade) result.grade = result.of[input];
        }
        if (input == GRADE_PLAIN) result.unit = grade_unit_found(&p);
        known_close(&p);
    }
    return result;
}

/* The table of docs/accuracy.md, a row at a time. */
static inline void grade_print_head(void) {
    printf("| product | type | class | unit | grade |");
    for (int i = 0; i < GRADE_INPUTS; i++) printf(" %s |", grade_input_name((grade_input)i));
    printf(" NaN and Inf |\n|");
    for (int i = 0; i < GRADE_INPUTS + 6; i++) printf("---|");
    printf("\n");
}
static inline void grade_print(const char *name, tsr_dtype input, const char *class_name, const grade_result *r) {
    printf("| %s | %s | %s |", name, tsr_dtype_name(input), class_name);
    if (r->unit > 0) printf(" 2^%d |", ilogb(r->unit));
    else printf(" - |");
    printf(" %c |", r->grade);
    for (int i = 0; i < GRADE_INPUTS; i++) printf(" %.2g |", r->worst[i]);
    printf(" %s |\n", r->special ? "right" : "wrong");
}

#endif
