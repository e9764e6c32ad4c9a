/* Devices and kernels by name, `auto`, and the arguments a launch refuses. */
#include "kernels/registry.h"
#include "tests/check.h"

static const tsr_device_facts cpu = {.kind = TSR_DEVICE_CPU, .name = "a CPU"};

static void check_names(void) {
    const tsr_gemm_kernel *kernel = NULL;
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    CHECK(count >= 4, "%d kernels", count);
    for (int i = 0; i < count; i++) {
        CHECK(kernels[i]->launch && kernels[i]->shape && kernels[i]->what && kernels[i]->multiple >= 1, "%s is incomplete", kernels[i]->name);
        CHECK(kernels[i]->type == TSR_F32 || (i > 0 && kernels[i - 1]->type == TSR_F32 && strcmp(kernels[i - 1]->name, kernels[i]->name) == 0),
              "%s out of order", kernels[i]->name);
        tsr_device_facts facts = {.kind = kernels[i]->device, .name = "a device", .arch = 90};
        CHECK_OK(tsr_gemm_find(kernels[i]->name, &facts, kernels[i]->type, &kernel));
        CHECK(kernel == kernels[i], "%s found %s", kernels[i]->name, kernel->name);
        if (kernel->device == TSR_DEVICE_CPU) continue;
        facts.arch = kernel->min_arch - 1;
        CHECK_FAILS(tsr_gemm_find(kernel->name, &facts, kernel->type, &kernel), TSR_ERR_UNSUPPORTED, "sm_");
        facts.arch = kernel->max_arch + 1;
        if (kernel->max_arch > 0) CHECK_FAILS(tsr_gemm_find(kernel->name, &facts, kernel->type, &kernel), TSR_ERR_UNSUPPORTED, "sm_");
    }
    kernel = NULL;
    CHECK_FAILS(tsr_gemm_find("fast", &cpu, TSR_F32, &kernel), TSR_ERR_USAGE, "auto, reference, blas");
    CHECK_FAILS(tsr_gemm_find("", &cpu, TSR_F64, &kernel), TSR_ERR_USAGE, "reference");
    CHECK_FAILS(tsr_gemm_find("auto", &cpu, TSR_I32, &kernel), TSR_ERR_UNSUPPORTED, "i32");
    CHECK(kernel == NULL, "set on failure");
}

static void check_auto(void) {
    const tsr_gemm_kernel *kernel = NULL;
    CHECK_OK(tsr_gemm_find("auto", &cpu, TSR_F64, &kernel));
    CHECK(strcmp(kernel->name, "blas") == 0 && kernel->type == TSR_F64, "auto is %s", kernel->name);
}

static void check_devices(void) {
    const tsr_device_ops *ops = NULL;
    CHECK_OK(tsr_device_find("cpu", &ops));
    CHECK(ops == &tsr_device_cpu && tsr_pack_find(TSR_DEVICE_CPU) == &tsr_pack_cpu, "cpu");
    CHECK_FAILS(tsr_device_find("tpu", &ops), TSR_ERR_USAGE, "cpu or cuda");
#ifdef TSR_HAVE_CUDA
    CHECK_OK(tsr_device_find("cuda", &ops));
    CHECK(ops->kind == TSR_DEVICE_CUDA && tsr_pack_find(TSR_DEVICE_CUDA) == &tsr_pack_cuda, "cuda");
#else
    CHECK_FAILS(tsr_device_find("cuda", &ops), TSR_ERR_UNSUPPORTED, "this build has no CUDA");
    CHECK(tsr_pack_find(TSR_DEVICE_CUDA) == NULL, "a table without CUDA");
#endif
}

static void check_launch(void) {
    tsr_device *device;
    tsr_stream *stream;
    const tsr_gemm_kernel *kernel = &tsr_gemm_reference_f32;
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, c[4] = {9, 9, 9, 9};
    const tsr_gemm_args good = {.m = 2, .n = 2, .k = 3, .a = a, .lda = 3, .b = b, .ldb = 2, .c = c, .ldc = 2};
    tsr_gemm_args args;
    CHECK_OK(tsr_device_cpu.open(0, &device));
    CHECK_OK(device->ops->stream_create(device, &stream));
    args = good, args.lda = 2;
    CHECK_FAILS(tsr_gemm_launch(kernel, device, stream, &args), TSR_ERR_SHAPE, "lda is 2");
    args = good, args.b = NULL;
    CHECK_FAILS(tsr_gemm_launch(kernel, device, stream, &args), TSR_ERR_SHAPE, "B (3 x 2) has no memory");
    args = good, args.m = -1;
    CHECK_FAILS(tsr_gemm_launch(kernel, device, stream, &args), TSR_ERR_SHAPE, "negative");
    args = good, args.ldc = INT64_MAX / 2;
    CHECK_FAILS(tsr_gemm_launch(kernel, device, stream, &args), TSR_ERR_LIMIT, "63 bits");
    tsr_gemm_kernel picky = *kernel;
    picky.multiple = 2;
    CHECK_FAILS(tsr_gemm_launch(&picky, device, stream, &good), TSR_ERR_SHAPE, "multiples of 2");
    picky.device = TSR_DEVICE_CUDA;
    CHECK_FAILS(tsr_gemm_launch(&picky, device, stream, &good), TSR_ERR_DEVICE, "cuda");
    args = good, args.m = 0, args.a = NULL, args.c = NULL;
    CHECK_OK(tsr_gemm_launch(kernel, device, stream, &args));
    CHECK_OK(tsr_gemm_launch(kernel, device, stream, &good));
    const float expected[4] = {4, 5, 10, 11};
    for (int i = 0; i < 4; i++) CHECK(c[i] == expected[i], "c[%d] = %g", i, (double)c[i]);
    device->ops->stream_destroy(device, stream);
    device->ops->close(device);
}

static void check_bounds(void) {
    tsr_gemm_kernel kernel = {.type = TSR_F32, .error_factor = 3, .error_grows = true};
    CHECK(tsr_gemm_error_bound(&kernel, 100) == 300 * 0x1p-24, "%g", tsr_gemm_error_bound(&kernel, 100));
    kernel.type = TSR_F64, kernel.error_grows = false;
    CHECK(tsr_gemm_error_bound(&kernel, 100) == 3 * 0x1p-53, "%g", tsr_gemm_error_bound(&kernel, 100));
}

int main(void) {
    check_names();
    check_auto();
    check_devices();
    check_launch();
    check_bounds();
    return 0;
}
