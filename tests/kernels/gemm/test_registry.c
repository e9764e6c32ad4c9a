/* Devices and kernels by name, `auto`, and the arguments a launch refuses. */
#include <math.h>
#include <stdio.h>

#ifdef TSR_HAVE_CUBLAS
#include "kernels/gemm/vendor/cublas.h"
#endif
#include "kernels/gemm/registry.h"
#include "kernels/gemm/speeds.h"
#include "kernels/pack/pack.h"
#include "tests/check.h"

static const tsr_device_facts cpu = {.kind = TSR_DEVICE_CPU, .name = "a CPU"};

/* A plan counts a kernel's workspace once, for the largest of its products: none of the smaller ones may want more. */
static void check_room_grows(const tsr_gemm_kernel *kernel) {
    enum { EDGES = 27 };
    static const int64_t edges[EDGES] = {1,    2,    63,   64,    65,    128,   129,   256,   257,
                                         576,  1024, 1025, 1408,  1409,  2559,  2560,  2816,  2817,
                                         4096, 4097, 8192, 14335, 14336, 14337, 16384, 16385, 100000};
    if (!kernel->workspace_bytes) return;
    for (int i = 0; i < EDGES * EDGES * EDGES; i++) {
        const int at[3] = {i % EDGES, i / EDGES % EDGES, i / EDGES / EDGES};
        const size_t room = kernel->workspace_bytes(edges[at[0]], edges[at[1]], edges[at[2]]);
        for (int edge = 0; edge < 3; edge++) {
            int less[3] = {at[0], at[1], at[2]};
            if (less[edge]-- == 0) continue;
            const size_t wanted = kernel->workspace_bytes(edges[less[0]], edges[less[1]], edges[less[2]]);
            CHECK(wanted <= room, "%s %s wants %zu bytes for %lld x %lld x %lld and %zu for %lld x %lld x %lld",
                  kernel->name, tsr_dtype_name(kernel->input), wanted, (long long)edges[less[0]],
                  (long long)edges[less[1]], (long long)edges[less[2]], room, (long long)edges[at[0]],
                  (long long)edges[at[1]], (long long)edges[at[2]]);
        }
    }
}

static void check_names(void) {
    const tsr_gemm_kernel *kernel = NULL;
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    CHECK(count >= 4, "%d kernels", count);
    for (int i = 0; i < count; i++) {
        CHECK(kernels[i]->launch && kernels[i]->what && kernels[i]->multiple >= 1, "%s is incomplete",
              kernels[i]->name);
        tsr_device_facts facts = {.kind = kernels[i]->device, .name = "a device", .arch = 90};
        const tsr_dtype input = kernels[i]->input, type = kernels[i]->type;
        CHECK(type == (input == TSR_F64 ? TSR_F64 : TSR_F32), "%s makes %s of %s", kernels[i]->name,
              tsr_dtype_name(type), tsr_dtype_name(input));
        CHECK_OK(tsr_gemm_find(kernels[i]->name, &facts, input, type, &kernel));
        CHECK(kernel == kernels[i], "%s found %s", kernels[i]->name, kernel->name);
        check_room_grows(kernel);
        if (kernel->device == TSR_DEVICE_CPU) continue;
        facts.arch = kernel->min_arch - 1;
        CHECK_FAILS(tsr_gemm_find(kernel->name, &facts, input, type, &kernel), TSR_ERR_UNSUPPORTED, "sm_");
        facts.arch = kernel->max_arch + 1;
        if (kernel->max_arch > 0)
            CHECK_FAILS(tsr_gemm_find(kernel->name, &facts, input, type, &kernel), TSR_ERR_UNSUPPORTED, "sm_");
    }
    kernel = NULL;
    CHECK_FAILS(tsr_gemm_find("fast", &cpu, TSR_F32, TSR_F32, &kernel), TSR_ERR_USAGE, "auto, reference, blas");
    CHECK_FAILS(tsr_gemm_find("", &cpu, TSR_F64, TSR_F64, &kernel), TSR_ERR_USAGE, "reference");
    CHECK_FAILS(tsr_gemm_find("blas", &cpu, TSR_I32, TSR_F32, &kernel), TSR_ERR_UNSUPPORTED, "i32");
    CHECK(kernel == NULL, "set on failure");
}

static const tsr_gemm_kernel *chosen(const char *name, const tsr_device_facts *facts, tsr_gemm_request request) {
    const tsr_gemm_kernel *kernel = NULL;
    request.m = request.n = request.k = 4096;
    CHECK_OK(tsr_gemm_choose(name, facts, &request, &kernel));
    return kernel;
}

static void check_choice(void) {
    const tsr_gemm_request doubles = {.a = TSR_F64, .b = TSR_F64, .type = TSR_F64},
                           singles = {.a = TSR_F32, .b = TSR_F32, .type = TSR_F32};
    const tsr_gemm_request halves = {.a = TSR_F16, .b = TSR_F16, .type = TSR_F32},
                           mixed = {.a = TSR_F16, .b = TSR_F32, .type = TSR_F32};
    const tsr_gemm_kernel *kernel = chosen("auto", &cpu, doubles);
    CHECK(strcmp(kernel->name, "blas") == 0 && kernel->type == TSR_F64, "auto is %s", kernel->name);
    CHECK(chosen("reference", &cpu, halves)->input == TSR_F16, "halves are not taken as they are");
    CHECK(chosen("reference", &cpu, singles)->input == TSR_F32 && chosen("reference", &cpu, mixed)->input == TSR_F32,
          "what loses less is not taken");
    CHECK_FAILS(tsr_gemm_choose("fast", &cpu, &singles, &kernel), TSR_ERR_USAGE, "reference, blas");

    CHECK(tsr_gemm_loss(&tsr_gemm_reference_f16, TSR_F16, TSR_F16) == TSR_ACCURACY_IEEE, "halves lose");
    CHECK(tsr_gemm_loss(&tsr_gemm_reference_bf16, TSR_F32, TSR_F32) == TSR_ACCURACY_BF16, "rounding loses nothing");
    CHECK(tsr_gemm_loss(&tsr_gemm_reference_bf16, TSR_BF16, TSR_BF16) == TSR_ACCURACY_IEEE, "bfloat16 as stored loses");

    tsr_accuracy accuracy = TSR_ACCURACY_IEEE;
    CHECK_OK(tsr_accuracy_parse("tf32", &accuracy));
    CHECK(accuracy == TSR_ACCURACY_TF32, "tf32 is %s", tsr_accuracy_name(accuracy));
    CHECK_FAILS(tsr_accuracy_parse("exact", &accuracy), TSR_ERR_USAGE, "ieee fast tf32 bf16");
}

/* The table's figures at its sizes, something between them between, the ends beyond; round and odd sizes apart. */
static void check_speeds(void) {
    for (int r = 0; r < TSR_GEMM_SPEED_ROWS; r++) {
        const tsr_gemm_speed_row *row = &tsr_gemm_speeds[r];
        tsr_gemm_kernel kernel = {.name = row->kernel};
        tsr_device_facts facts = {.kind = TSR_DEVICE_CUDA, .arch = row->arch};
        snprintf(facts.code, sizeof facts.code, "%s", row->code);
        CHECK_OK(tsr_dtype_parse(row->input, &kernel.input));
        CHECK_OK(tsr_dtype_parse(row->type, &kernel.type));
        for (int i = 0; i < TSR_GEMM_SPEED_SIZES; i++) {
            const int64_t edge = (int64_t)TSR_GEMM_SPEED_SMALLEST << i, next = i + 1 < TSR_GEMM_SPEED_SIZES ? i + 1 : i;
            const double round = tsr_gemm_speed(&kernel, &facts, edge, edge, edge),
                         between = tsr_gemm_speed(&kernel, &facts, 3 * edge / 2, 3 * edge / 2, 3 * edge / 2);
            const double odd = tsr_gemm_speed(&kernel, &facts, edge, edge, edge + 1);
            const double low = fmin(row->round[i], row->round[next]);
            const double high = fmax(row->round[i], row->round[next]);
            CHECK(fabs(round / row->round[i] / 1e12 - 1) < 1e-9, "%s at %ld: %g", row->kernel, (long)edge, round);
            CHECK(between >= 0.999e12 * low && between <= 1.001e12 * high, "%s at %ld: %g", row->kernel,
                  (long)(3 * edge / 2), between);
            CHECK(odd >= 0.9e12 * row->odd[i] && odd <= 1.2e12 * fmax(row->odd[i], row->odd[next]),
                  "%s at %ld, odd: %g", row->kernel, (long)edge, odd);
        }
        const double least = tsr_gemm_speed(&kernel, &facts, 1, 1, 8),
                     most = tsr_gemm_speed(&kernel, &facts, 1 << 20, 1 << 20, 1 << 20);
        CHECK(fabs(least / row->odd[0] / 1e12 - 1) < 1e-9, "%s, small: %g", row->kernel, least);
        CHECK(fabs(most / row->round[TSR_GEMM_SPEED_SIZES - 1] / 1e12 - 1) < 1e-9, "%s, large: %g", row->kernel, most);
        facts.arch = -1;
        CHECK(tsr_gemm_speed(&kernel, &facts, 1, 1, 1) == 0, "speed where nobody measured");
        facts.arch = row->arch;
        kernel.name = "nothing";
        CHECK(tsr_gemm_speed(&kernel, &facts, 1, 1, 1) == 0, "speed of what nobody measured");
    }
}

/* Figures belong to the code that was measured: a build for an older architecture never counts on what only sm_90a
 * code reaches, and libraries bring theirs. */
static void check_code(void) {
    const tsr_gemm_kernel simt = {.name = "simt", .input = TSR_F32, .type = TSR_F32},
                          cublas = {.name = "cublas", .input = TSR_F32, .type = TSR_F32};
    static const char *const codes[] = {"90a", "90", "80", "75", "100a"};
    double speeds[5], vendor[5];
    for (int i = 0; i < 5; i++) {
        tsr_device_facts facts = {.kind = TSR_DEVICE_CUDA, .arch = 90};
        snprintf(facts.code, sizeof facts.code, "%s", codes[i]);
        speeds[i] = tsr_gemm_speed(&simt, &facts, 8192, 8192, 8192);
        vendor[i] = tsr_gemm_speed(&cublas, &facts, 8192, 8192, 8192);
    }
    CHECK(speeds[0] > 0 && speeds[1] > 0 && speeds[1] != speeds[0],
          "code for sm_90 is taken for code for sm_90a: %g, %g", speeds[0], speeds[1]);
    CHECK(speeds[2] == speeds[1] && speeds[3] == speeds[1],
          "code for sm_80 is the nearest that was measured: %g, %g, %g", speeds[1], speeds[2], speeds[3]);
    CHECK(speeds[4] == 0, "code for another architecture alone: %g", speeds[4]);
    for (int i = 1; i < 5; i++)
        CHECK(vendor[i] == vendor[0] && vendor[i] > 0, "cuBLAS depends on this build's code: %g, %g", vendor[i],
              vendor[0]);
}

/* The fastest, what loading takes counted in: a library pays for large products only. */
static void check_loading(void) {
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++)
        CHECK((kernels[i]->load_seconds > 0) == (strncmp(kernels[i]->name, "cublas", 6) == 0), "%s: %g s to load",
              kernels[i]->name, kernels[i]->load_seconds);
#ifdef TSR_HAVE_CUBLAS
    tsr_device_facts facts = {.kind = TSR_DEVICE_CUDA, .name = "a GPU", .arch = 90, .code = "80"};
    const tsr_gemm_kernel *kernel = NULL;
    tsr_gemm_request request = {
        .a = TSR_F64, .b = TSR_F64, .type = TSR_F64, .m = 1000, .n = 1000, .k = 1000, .flops = 2e9};
    for (int measured = 0; measured < 2; measured++) {
        facts.arch = measured ? 90 : 100;
        request.m = request.n = request.k = 1000;
        request.flops = 2e9;
        CHECK_OK(tsr_gemm_choose("auto", &facts, &request, &kernel));
        CHECK(kernel->load_seconds == 0, "%s for one product of 1000^3 on sm_%d", kernel->name, facts.arch);
        request.m = request.n = request.k = 30000;
        request.flops = 2 * 27e12;
        CHECK_OK(tsr_gemm_choose("auto", &facts, &request, &kernel));
        CHECK(strcmp(kernel->name, "cublas") == 0, "%s for 30000^3 in code that is slow on sm_%d", kernel->name,
              facts.arch);
        request.m = request.n = request.k = 1000;
        request.flops = 0;
        CHECK_OK(tsr_gemm_choose("auto", &facts, &request, &kernel));
        CHECK(strcmp(kernel->name, "cublas") == 0, "%s for endless products of 1000^3 on sm_%d", kernel->name,
              facts.arch);
    }
#endif
}

/* Whatever was measured where: auto stays within what may be lost and runs there, and a request that allows more is
 * never slower. */
static void check_auto_everywhere(void) {
    static const int archs[] = {50, 75, 80, 89, 90, 100, 120};
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    bool cuda = false;
    for (int i = 0; i < count; i++) cuda |= kernels[i]->device == TSR_DEVICE_CUDA;
    for (size_t at = 0; cuda && at < sizeof archs / sizeof *archs; at++)
        for (int64_t edge = 1; edge < 100000; edge = edge * 3 + 1) {
            const tsr_device_facts facts = {.kind = TSR_DEVICE_CUDA, .name = "a GPU", .arch = archs[at]};
            double slower = 0;
            for (int accuracy = 0; accuracy < TSR_ACCURACY_COUNT; accuracy++) {
                const tsr_gemm_request request = {TSR_F32, TSR_F32, TSR_F32, (tsr_accuracy)accuracy, edge, edge,
                                                  edge,    0,       1};
                const tsr_gemm_kernel *kernel = NULL;
                CHECK_OK(tsr_gemm_choose("auto", &facts, &request, &kernel));
                CHECK(tsr_gemm_runs_on(kernel, facts.arch) && kernel->multiple == 1 &&
                          tsr_gemm_loss(kernel, TSR_F32, TSR_F32) <= request.accuracy,
                      "auto is %s on sm_%d for %s", kernel->name, facts.arch, tsr_accuracy_name(request.accuracy));
                const double speed = tsr_gemm_speed(kernel, &facts, edge, edge, edge);
                CHECK(speed >= slower, "%s is slower than what loses less, at %ld on sm_%d", kernel->name, (long)edge,
                      facts.arch);
                slower = speed;
            }
        }
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

/* Where the build has cuBLAS it can be loaded, whole, without a GPU. */
static void check_cublas(void) {
#ifdef TSR_HAVE_CUBLAS
    CHECK_OK(tsr_cublas_load());
    CHECK_OK(tsr_cublas_load());
    CHECK_OK(tsr_cublas_check(CUBLAS_STATUS_SUCCESS, "nothing"));
    CHECK_FAILS(tsr_cublas_check(CUBLAS_STATUS_ALLOC_FAILED, "x()"), TSR_ERR_MEMORY, "x() failed: ");
#define X(name) CHECK(tsr_cublas.name, "%s", #name);
    TSR_CUBLAS_FUNCTIONS(X)
#undef X
#endif
}

static tsr_gemm_substitute small_to_blas(int64_t m, int64_t n, int64_t k) {
    if (!tsr_gemm_is_small(4, m, n, k)) return (tsr_gemm_substitute){.kernel = NULL};
    return (tsr_gemm_substitute){.kernel = &tsr_gemm_blas_f32, .why = "small"};
}

static tsr_status leave_it(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    (void)device;
    (void)stream;
    (void)args;
    return tsr_fail(TSR_ERR_MEMORY, "the kernel itself");
}

static void check_launch(void) {
    tsr_device *device;
    tsr_stream *stream;
    const tsr_gemm_kernel *kernel = &tsr_gemm_reference_f32;
    float a[6] = {1, 2, 3, 4, 5, 6};
    float b[6] = {1, 0, 0, 1, 1, 1};
    float c[4] = {9, 9, 9, 9};
    const tsr_gemm_args good = {.m = 2, .n = 2, .k = 3, .a = a, .lda = 3, .b = b, .ldb = 2, .c = c, .ldc = 2};
    tsr_gemm_args args;
    CHECK_OK(tsr_device_cpu.open(0, &device));
    CHECK_OK(device->ops->stream_create(device, &stream));
    args = good;
    args.lda = 2;
    CHECK_FAILS(tsr_gemm_launch(kernel, device, stream, &args), TSR_ERR_SHAPE, "lda is 2");
    args = good;
    args.b = NULL;
    CHECK_FAILS(tsr_gemm_launch(kernel, device, stream, &args), TSR_ERR_SHAPE, "B (3 x 2) has no memory");
    args = good;
    args.m = -1;
    CHECK_FAILS(tsr_gemm_launch(kernel, device, stream, &args), TSR_ERR_SHAPE, "negative");
    args = good;
    args.ldc = INT64_MAX / 2;
    CHECK_FAILS(tsr_gemm_launch(kernel, device, stream, &args), TSR_ERR_LIMIT, "63 bits");
    tsr_gemm_kernel picky = *kernel;
    picky.multiple = 2;
    CHECK_FAILS(tsr_gemm_launch(&picky, device, stream, &good), TSR_ERR_SHAPE, "multiples of 2");
    picky = *kernel;
    picky.launch = NULL; /* it would end the test */
    picky.substitute = small_to_blas;
    CHECK_OK(tsr_gemm_launch(&picky, device, stream, &good));
    CHECK(c[0] == 4, "c[0] = %g", (double)c[0]);
    const unsigned no = 0;
    args = good;
    args.predicate = &no;
    CHECK_FAILS(tsr_gemm_launch(&picky, device, stream, &args), TSR_ERR_UNSUPPORTED, "'blas' obeys no predicate");
    picky.predicated = true; /* what is only quicker gives way */
    picky.launch = leave_it;
    CHECK_FAILS(tsr_gemm_launch(&picky, device, stream, &args), TSR_ERR_MEMORY, "the kernel itself");
    picky.device = TSR_DEVICE_CUDA;
    CHECK_FAILS(tsr_gemm_launch(&picky, device, stream, &good), TSR_ERR_DEVICE, "cuda");
    args = good;
    args.m = 0;
    args.a = NULL;
    args.c = NULL;
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
    kernel.type = TSR_F64;
    kernel.error_grows = false;
    CHECK(tsr_gemm_error_bound(&kernel, 100) == 3 * 0x1p-53, "%g", tsr_gemm_error_bound(&kernel, 100));
}

int main(void) {
    check_names();
    check_choice();
    check_speeds();
    check_code();
    check_loading();
    check_auto_everywhere();
    check_devices();
    check_cublas();
    check_launch();
    check_bounds();
    return 0;
}
