/* Grades every multiplication kernel of a device, TSR_TEST_DEVICE (grade.h): each must be of grade A in units of the
 * accuracy class that it states, keep the bound that it states, and put NaN and Inf where IEEE arithmetic does. First
 * the grader itself: products that keep less must be graded lower. Exit code 77: there is no such device.
 * Usage: test_grade [table]   table: prints that of docs/accuracy.md */
#include "kernels/gemm/exact/exact.h"
#include "tests/kernels/gemm/grade/grade.h"
#include "tests/kernels/gemm/grade/made_by.h"
#include "tests/kernels/gemm/grade/wrong_products.h"

/* ---- the grader ------------------------------------------------------------------------------ */

typedef struct {
    const char *what;
    void (*make)(void *context, known_product *p);
    void *context;
    char grade;
    const char *of; /* the grade of each input; '-': any */
    double unit;    /* as grade_result has it */
    bool special;
} known_grade;

static void check_grader(bool table) {
    static fixed_point a_line = {.bits = 58}, few = {.bits = 40};
    static fixed_point all = {.bits = 58, .one_scale = true};
    static double nearly = 0.5, too_much = 2.5;
    static const known_grade known[] = {
        {"sums", make_by_sums, NULL, 'A', "AAAAAA", 0x1p-53, true},
        {"one element nearly too far off", make_with_one_off, &nearly, 'A', "AAAAAA", 0x1p-53, true},
        {"one element too far off", make_with_one_off, &too_much, 'B', "BBBBB-", 0x1p-24, false},
        {"fp32", make_by_floats, NULL, 'F', "FFFFFF", 0x1p-24, false},
        {"fixed point, a scale a line", make_fixed, &a_line, 'B', "AABBAA", 0x1p-53, false},
        {"fixed point, one scale", make_fixed, &all, 'C', "ACB-AC", 0x1p-53, false},
        {"fixed point of 40 bits", make_fixed, &few, 'F', "-F----", 0x1p-24, false},
        {"Strassen's", make_strassen, NULL, 'C', "CCCCCC", 0, false},
        {"rows of norm 1", make_by_norms, NULL, 'F', "AAAAFF", 0x1p-53, false},
        {"flushed", make_flushed, NULL, 'C', "AAAAAC", 0x1p-53, true},
        {"without zeros", make_without_zeros, NULL, 'A', "AAAAAA", 0x1p-53, false},
    };
    for (int i = 0; i < (int)(sizeof known / sizeof *known); i++) {
        const graded g = {TSR_F64, TSR_F64, 0x1p-53, known[i].make, known[i].context};
        const grade_result result = grade(&g);
        if (table) grade_print(known[i].what, g.input, "-", &result);
        CHECK(result.grade == known[i].grade, "%s: of grade %c, not %c", known[i].what, result.grade, known[i].grade);
        CHECK(result.unit == known[i].unit, "%s: units of %g, not %g", known[i].what, result.unit, known[i].unit);
        CHECK(result.special == known[i].special, "%s: NaN and Inf are %s", known[i].what,
              result.special ? "right" : "wrong");
        for (int input = 0; input < GRADE_INPUTS; input++)
            CHECK(known[i].of[input] == '-' || result.of[input] == known[i].of[input], "%s, %s: of grade %c, not %c",
                  known[i].what, grade_input_name((grade_input)input), result.of[input], known[i].of[input]);
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct {
    const device_under_test *on;
    const tsr_gemm_kernel *kernel;
} maker;
static void make(void *context, known_product *p) {
    const maker *by = context;
    make_by(by->on, by->kernel, p, NULL);
}
static grade_result grade_kernel(const device_under_test *on, const tsr_gemm_kernel *kernel) {
    maker by = {on, kernel};
    const graded g = {kernel->input, kernel->type, grade_unit(kernel->accuracy, kernel->type), make, &by};
    return grade(&g);
}

static void check_kernel(const device_under_test *on, const tsr_gemm_kernel *kernel, bool table) {
    const char *type = tsr_dtype_name(kernel->input);
    const double unit = grade_unit(kernel->accuracy, kernel->type);
    const grade_result result = grade_kernel(on, kernel);
    char code[64];
    snprintf(code, sizeof code, "`%s`", kernel->name);
    if (table) grade_print(code, kernel->input, tsr_accuracy_name(kernel->accuracy), &result);
    for (int input = 0; input < GRADE_INPUTS; input++) {
        const char *name = grade_input_name((grade_input)input);
        const double bound = tsr_gemm_error_bound(kernel, GRADE_K) / unit;
        CHECK(result.of[input] == 'A', "%s %s, %s: of grade %c, off by %g u", kernel->name, type, name,
              result.of[input], result.worst[input]);
        CHECK(result.worst[input] <= bound, "%s %s, %s: off by %g u of |A||B|, %g stated", kernel->name, type, name,
              result.worst[input], bound);
    }
    CHECK(result.unit == unit, "%s %s: units of %g, and %s states %g", kernel->name, type, result.unit,
          tsr_accuracy_name(kernel->accuracy), unit);
    CHECK(result.special, "%s %s: NaN or Inf is not where IEEE arithmetic puts it", kernel->name, type);
}

#ifdef TSR_EMULATE_CUDA
/* Integers without a proof of their error: B, by lines of which one element is large. */
static void check_unproved(const device_under_test *on, bool table) {
    const tsr_gemm_kernel *const kernels[] = {&tsr_gemm_unproved_f64, &tsr_gemm_unproved_f32};
    for (int i = 0; i < 2; i++) {
        const grade_result result = grade_kernel(on, kernels[i]);
        if (table) grade_print("`exact` without its proof", kernels[i]->input, "-", &result);
        CHECK(result.of[GRADE_ALONG] == 'B' && result.of[GRADE_HIDDEN] == 'B' && result.of[GRADE_PLAIN] == 'A',
              "without a proof: %c, %c, %c", result.of[GRADE_ALONG], result.of[GRADE_HIDDEN], result.of[GRADE_PLAIN]);
    }
}
#endif

int main(int argc, char **argv) {
    const bool table = argc > 1 && strcmp(argv[1], "table") == 0;
    device_under_test on = test_open();
    tsr_device_facts facts;
    int count = 0;
    int checked = 0;
    if (table) grade_print_head();
    check_grader(table);
    CHECK_OK(on.ops->facts(on.device, &facts));
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++) {
        if (kernels[i]->device != on.ops->kind || !tsr_gemm_runs_on(kernels[i], facts.arch)) continue;
        check_kernel(&on, kernels[i], table);
        checked++;
    }
    CHECK(checked >= 4, "only %d kernels for device '%s'", checked, TSR_TEST_DEVICE);
#ifdef TSR_EMULATE_CUDA
    check_unproved(&on, table);
#endif
    test_close(&on);
    return 0;
}
