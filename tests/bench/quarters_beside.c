/* `exact` with products of quarters (residues/winograd.h) beside the same without, in turns on one GPU, each for as
 * long as asked, so that the power limit counts, after a quarter of that: n × n × n, normal data, without the check and
 * with it. C is the same, to the byte.
 * Prints a line of JSON a type and size: TFLOP/s, medians of three rounds.
 * Usage: quarters_beside [SECONDS [N...]] */
#include <stdio.h>
#include <string.h>

#include "kernels/gemm/exact/exact.h"
#include "tests/bench/exact_data.h"
#include "tests/bench/median.h"

enum { ROUNDS = 3, WAYS = 5, CHECKED = 3 };
static const char *const names[WAYS] = {"cublas", "whole", "quartered", "whole_checked", "quartered_checked"};

static void *made(const bench *x, const tsr_gemm_kernel *kernel, const tsr_gemm_args *args, size_t bytes) {
    void *c = malloc(bytes);
    CHECK(c, "no %zu bytes", bytes);
    CHECK_OK(x->ops->fill_bytes(x->device, args->c, 0x77, bytes, x->stream));
    CHECK_OK(kernel->launch(x->device, x->stream, args));
    CHECK_OK(x->ops->download(x->device, c, args->c, bytes, x->stream));
    CHECK_OK(x->ops->stream_wait(x->device, x->stream));
    return c;
}

static void measure(const bench *x, tsr_dtype type, int64_t n, double seconds) {
    const size_t bytes = (size_t)(n * n) * tsr_dtype_bytes(type);
    const tsr_gemm_kernel *vendor, *exact, *whole = type == TSR_F64 ? &tsr_gemm_whole_f64 : &tsr_gemm_whole_f32;
    const tsr_gemm_kernel *quartered = type == TSR_F64 ? &tsr_gemm_quartered_f64 : &tsr_gemm_quartered_f32;
    CHECK_OK(tsr_gemm_find("cublas", &x->facts, type, type, &vendor));
    CHECK_OK(tsr_gemm_find("exact", &x->facts, type, type, &exact));
    const tsr_gemm_kernel *const kernels[WAYS] = {vendor, whole, quartered, whole, quartered};
    double rates[WAYS][ROUNDS];
    tsr_gemm_args args = {.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .batch = 1};
    args.a = operand(x, type, n, n, false, NORMAL);
    args.b = operand(x, type, n, n, true, NORMAL);
    args.c = allocate(x, bytes);
    args.workspace = allocate(x, tsr_max(quartered->workspace_bytes(n, n, n), (size_t)64 << 20));
    tsr_check_counts *counts = allocate(x, sizeof *counts), found;
    CHECK_OK(x->ops->fill_bytes(x->device, counts, 0, sizeof *counts, x->stream));
    const tsr_gemm_kernel *const makers[] = {whole, quartered, exact}; /* of large C the last makes parts in quarters */
    void *first = NULL;
    for (int i = 0; i < 3; i++) {
        void *c = made(x, makers[i], &args, bytes);
        CHECK(!first || memcmp(first, c, bytes) == 0, "%s, n = %lld: C differs", tsr_dtype_name(type), (long long)n);
        if (first) free(c);
        else first = c;
    }
    free(first);
    for (int round = 0; round < ROUNDS; round++)
        for (int turn = 0; turn < WAYS; turn++) {
            const int way = (turn + 2 * round) % WAYS;
            args.check.counts = way >= CHECKED ? counts : NULL;
            rates[way][round] = sustained(x, kernels[way], &args, seconds);
        }
    CHECK_OK(x->ops->download(x->device, &found, counts, sizeof found, x->stream));
    CHECK_OK(x->ops->stream_wait(x->device, x->stream));
    CHECK(found.judged > 0 && found.doubtful == 0, "%s, n = %lld: %llu rows judged, %llu of right products doubted",
          tsr_dtype_name(type), (long long)n, (unsigned long long)found.judged, (unsigned long long)found.doubtful);
    printf("{\"device\": \"%s\", \"type\": \"%s\", \"n\": %lld", x->facts.name, tsr_dtype_name(type), (long long)n);
    for (int way = 0; way < WAYS; way++) printf(", \"%s\": %.2f", names[way], median(rates[way], ROUNDS));
    printf("}\n");
    fflush(stdout);
    void *const all[] = {(void *)args.a, (void *)args.b, args.c, args.workspace, counts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) x->ops->release(x->device, all[i]);
}

int main(int argc, char **argv) {
    static const int64_t usual[] = {8192, 12288, 16384};
    const double seconds = argc > 1 ? atof(argv[1]) : 2;
    const int sizes = argc > 2 ? argc - 2 : (int)(sizeof usual / sizeof *usual);
    const bench x = open_bench();
    for (int type = 0; type < 2; type++)
        for (int i = 0; i < sizes; i++)
            measure(&x, type == 0 ? TSR_F64 : TSR_F32, argc > 2 ? atoll(argv[2 + i]) : usual[i], seconds);
    x.ops->close(x.device);
    return 0;
}
