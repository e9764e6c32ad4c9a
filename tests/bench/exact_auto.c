/* `exact` as `auto` takes it, beside `exact` itself and the kernel that it hands over to, in turns on one GPU, for
 * shapes and data: what kernels/gemm/auto decides by. Each makes all shapes, whatever would serve them. In fp32 also
 * `split3`, which `auto` takes there, with what it hands over.
 * Prints a line of JSON a type, shape and kind of data: TFLOP/s, medians of three rounds; the part of the product that
 * was handed over; and what the shape costs by shapes.h. On normal data `exact` is to be the quicker one where that is
 * below 1.53 (fp32: 3.5).
 * Usage: exact_auto [SECONDS [MxNxK...]] */
#include <inttypes.h>
#include <stdio.h>

#include "kernels/gemm/exact/exact.h"
#include "kernels/gemm/registry.h"
#include "tests/bench/exact_data.h"
#include "tests/bench/median.h"

enum { ROUNDS = 3, KERNELS = 4, KINDS = 4 };

#ifdef TSR_HAVE_HOPPER
static const tsr_gemm_kernel *const split3 = &tsr_gemm_split3_f32;
#else
static const tsr_gemm_kernel *const split3 = NULL;
#endif

typedef struct {
    int64_t m, n, k;
} shape;

static void measure(const bench *x, tsr_dtype type, shape s, double seconds) {
    static const char *const names[KINDS] = {"normal", "wide", "sparse", "graded"};
    static const data kinds[KINDS] = {NORMAL, WIDE, SPARSE, GRADED_24};
    const tsr_gemm_kernel *own = type == TSR_F64 ? &tsr_gemm_exact_auto_f64 : &tsr_gemm_exact_auto_f32;
    const tsr_gemm_kernel *exact = type == TSR_F64 ? &tsr_gemm_exact_f64 : &tsr_gemm_exact_f32;
    const tsr_gemm_kernel *const kernels[KERNELS] = {exact, own->fallback, own, type == TSR_F32 ? split3 : NULL};
    const double flops = 2.0 * (double)s.m * (double)s.n * (double)s.k;
    tsr_gemm_args args = {.m = s.m, .n = s.n, .k = s.k, .lda = s.k, .ldb = s.n, .ldc = s.n, .batch = 1};
    args.c = allocate(x, (size_t)(s.m * s.n) * tsr_dtype_bytes(type));
    args.workspace = allocate(
        x, tsr_max(own->workspace_bytes(s.m, s.n, s.k), kernels[3] ? kernels[3]->workspace_bytes(s.m, s.n, s.k) : 0));
    args.fallbacks = allocate(x, sizeof *args.fallbacks);
    for (int kind = 0; kind < KINDS; kind++) {
        double rates[KERNELS][ROUNDS] = {{0}};
        void *a = operand(x, type, s.m, s.k, false, kinds[kind]), *b = operand(x, type, s.k, s.n, true, kinds[kind]);
        tsr_gemm_fallbacks counted;
        args.a = a;
        args.b = b;
        CHECK_OK(x->ops->fill_bytes(x->device, args.fallbacks, 0, sizeof counted, x->stream));
        seconds_of(x, own, &args, 1);
        CHECK_OK(x->ops->download(x->device, &counted, args.fallbacks, sizeof counted, x->stream));
        CHECK_OK(x->ops->stream_wait(x->device, x->stream));
        for (int round = 0; round < ROUNDS; round++)
            for (int i = 0; i < KERNELS && kernels[i]; i++) {
                const int count = (int)fmax(1, seconds / seconds_of(x, kernels[i], &args, 2));
                rates[i][round] = flops / seconds_of(x, kernels[i], &args, count) / 1e12;
            }
        printf("{\"device\": \"%s\", \"type\": \"%s\", \"m\": %" PRId64 ", \"n\": %" PRId64 ", \"k\": %" PRId64
               ", \"data\": \"%s\", \"exact\": %.2f, \"%s\": %.2f, \"auto\": %.2f, \"split3\": %.2f, \"handed\": %.3f, "
               "\"cost\": %.3f}\n",
               x->facts.name, tsr_dtype_name(type), s.m, s.n, s.k, names[kind], median(rates[0], ROUNDS),
               own->fallback->name, median(rates[1], ROUNDS), median(rates[2], ROUNDS), median(rates[3], ROUNDS),
               2 * (double)counted.multiply_adds / flops, exact->shape_cost(s.m, s.n, s.k));
        fflush(stdout);
        x->ops->release(x->device, a);
        x->ops->release(x->device, b);
    }
    x->ops->release(x->device, args.c);
    x->ops->release(x->device, args.workspace);
    x->ops->release(x->device, args.fallbacks);
}

int main(int argc, char **argv) {
    static const shape usual[] = {{2048, 2048, 2048},  {3072, 3072, 3072},   {4096, 4096, 4096}, {8192, 8192, 8192},
                                  {8192, 8192, 1024},  {8192, 8192, 2048},   {1024, 8192, 8192}, {2048, 8192, 8192},
                                  {8192, 8192, 16384}, {16384, 16384, 4096}, {8191, 8191, 8191}};
    const int count = argc > 2 ? argc - 2 : (int)(sizeof usual / sizeof *usual);
    const double seconds = argc > 1 ? atof(argv[1]) : 0.5;
    const bench x = open_bench();
    for (int i = 0; i < count; i++) {
        shape s = usual[argc > 2 ? 0 : i];
        if (argc > 2)
            CHECK(sscanf(argv[2 + i], "%" SCNd64 "x%" SCNd64 "x%" SCNd64, &s.m, &s.n, &s.k) == 3, "%s is no MxNxK",
                  argv[2 + i]);
        for (int type = 0; type < 2; type++) measure(&x, type == 0 ? TSR_F64 : TSR_F32, s, seconds);
    }
    x.ops->close(x.device);
    return 0;
}
