/* Grades a kernel for sm_90 in the model (tests/kernels/gemm/grade/grade.h). How tensor cores round is not the model's:
 * what it grades is what the kernel itself does to its operands and sums. */
#ifndef TSR_TESTS_KERNELS_GEMM_HOPPER_GRADED_H
#define TSR_TESTS_KERNELS_GEMM_HOPPER_GRADED_H

#include "tests/kernels/gemm/grade/grade.h"
#include "tests/kernels/gemm/hopper/cases.h"

namespace hopper_test {

struct Graded {
    const tsr_gemm_kernel *kernel;
    Launch launch;
};

inline void make_graded(void *context, known_product *p) {
    const Graded *by = static_cast<const Graded *>(context);
    const size_t bytes = by->kernel->workspace_bytes(p->m, p->n, p->k);
    void *workspace = nullptr;
    CHECK(posix_memalign(&workspace, 1024, bytes) == 0, "no %zu bytes", bytes);
    void *a = known_elements(p->input, p->a, p->m * p->k), *b = known_elements(p->input, p->b, p->k * p->n);
    void *c = known_room(p->m * p->n, tsr_dtype_bytes(p->type));
    const tsr_gemm_args args = {.m = p->m,
                                .n = p->n,
                                .k = p->k,
                                .a = a,
                                .lda = p->k,
                                .b = b,
                                .ldb = p->n,
                                .c = c,
                                .ldc = p->n,
                                .workspace = workspace};
    tsr_cuda_emulation()->multiprocessors = 2;
    hopper_model::use(seed * 1000 + ++launches % 1000, false);
    CHECK_OK(by->launch(&args));
    for (int64_t at = 0; at < p->m * p->n; at++) p->c[at] = known_get(p->type, c, at);
    for (void *room : {workspace, a, b, c}) free(room);
}

/* The kernel must be of grade A, in units of the class that it states, and keep the bound that it states. */
inline void check_grade(const tsr_gemm_kernel *kernel, const Launch &launch) {
    const double unit = grade_unit(kernel->accuracy, kernel->type);
    Graded by = {kernel, launch};
    const graded g = {kernel->input, kernel->type, unit, make_graded, &by};
    const grade_result result = grade(&g);
    const double bound = tsr_gemm_error_bound(kernel, GRADE_K) / unit;
    for (int i = 0; i < GRADE_INPUTS; i++)
        CHECK(result.of[i] == 'A' && result.worst[i] <= bound, "%s, %s: of grade %c, off by %g u of |A||B|, %g stated",
              kernel->name, grade_input_name((grade_input)i), result.of[i], result.worst[i], bound);
    CHECK(result.unit == unit && result.special, "%s: units of %g, %g stated; NaN and Inf are %s", kernel->name,
          result.unit, unit, result.special ? "right" : "wrong");
}

} // namespace hopper_test

#endif
