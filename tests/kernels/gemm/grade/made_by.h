/* Products by a kernel on the device under test, from known_product to known_product. */
#ifndef TSR_TESTS_KERNELS_GEMM_GRADE_MADE_BY_H
#define TSR_TESTS_KERNELS_GEMM_GRADE_MADE_BY_H

#include "tests/kernels/device/device_under_test.h"
#include "tests/kernels/gemm/grade/known_product.h"

/* C = A·B by the kernel itself, whatever would serve that shape. A and B become what its input type holds. counted:
 * what the kernel counts, or NULL. */
static inline void make_by(const device_under_test *on, const tsr_gemm_kernel *kernel, known_product *p,
                           tsr_gemm_fallbacks *counted) {
    const size_t bytes_in = tsr_dtype_bytes(p->input), bytes_c = (size_t)(p->m * p->n) * tsr_dtype_bytes(p->type);
    const size_t bytes = kernel->workspace_bytes ? kernel->workspace_bytes(p->m, p->n, p->k) : 0;
    void *a = known_elements(p->input, p->a, p->m * p->k), *b = known_elements(p->input, p->b, p->k * p->n);
    void *c = known_room(p->m * p->n, tsr_dtype_bytes(p->type));
    void *workspace = NULL;
    if (bytes > 0) CHECK_OK(on->ops->allocate(on->device, bytes, &workspace));
    void *on_device = test_upload(on, c, bytes_c);
    tsr_gemm_args args = {.m = p->m, .n = p->n, .k = p->k, .lda = p->k, .ldb = p->n, .ldc = p->n};
    args.a = test_upload(on, a, (size_t)(p->m * p->k) * bytes_in);
    args.b = test_upload(on, b, (size_t)(p->k * p->n) * bytes_in);
    args.c = on_device;
    args.workspace = workspace;
    if (counted) {
        memset(counted, 0, sizeof *counted);
        args.fallbacks = (tsr_gemm_fallbacks *)test_upload(on, counted, sizeof *counted);
    }
    CHECK_OK(kernel->launch(on->device, on->stream, &args));
    test_download(on, c, on_device, bytes_c);
    if (counted) test_download(on, counted, args.fallbacks, sizeof *counted);
    for (int64_t at = 0; at < p->m * p->n; at++) p->c[at] = known_get(p->type, c, at);
    on->ops->release(on->device, (void *)args.a);
    on->ops->release(on->device, (void *)args.b);
    on->ops->release(on->device, workspace);
    free(a);
    free(b);
    free(c);
}

#endif
