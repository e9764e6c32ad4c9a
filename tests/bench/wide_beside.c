/* `exact` beside cuBLAS in fp32 on data that `split3` cannot hold, in turns on one GPU, each for as long as asked, so
 * that the power limit counts, after a quarter of that.
 * Prints a line of JSON a size: TFLOP/s, medians of three rounds (gpu_exact.py reads it).
 * Usage: wide_beside [SECONDS [N...]] */
#include <stdio.h>

#include "tests/bench/exact_data.h"
#include "tests/bench/median.h"

enum { ROUNDS = 3, KINDS = 4, TURNS = KINDS + 1 };
static const char *const names[TURNS] = {"wide", "outliers", "graded_12", "graded_16", "cublas"};
static const data kinds[TURNS] = {WIDE, OUTLIERS, GRADED_12, GRADED_16, NORMAL};

static void measure(const bench *x, int64_t n, double seconds) {
    const tsr_gemm_kernel *exact, *vendor;
    CHECK_OK(tsr_gemm_find("exact", &x->facts, TSR_F32, TSR_F32, &exact));
    CHECK_OK(tsr_gemm_find("cublas", &x->facts, TSR_F32, TSR_F32, &vendor));
    void *a[TURNS], *b[TURNS];
    for (int i = 0; i < TURNS; i++) {
        a[i] = operand(x, TSR_F32, n, n, false, kinds[i]);
        b[i] = operand(x, TSR_F32, n, n, true, kinds[i]);
    }
    tsr_gemm_args args = {.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .batch = 1};
    args.c = allocate(x, (size_t)(n * n) * sizeof(float));
    args.workspace = allocate(x, tsr_max(exact->workspace_bytes(n, n, n), (size_t)64 << 20));
    double rates[TURNS][ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        for (int turn = 0; turn < TURNS; turn++) {
            const int i = (turn + round) % TURNS;
            args.a = a[i];
            args.b = b[i];
            rates[i][round] = sustained(x, i < KINDS ? exact : vendor, &args, seconds);
        }
    printf("{\"device\": \"%s\", \"n\": %lld", x->facts.name, (long long)n);
    for (int i = 0; i < TURNS; i++) printf(", \"%s\": %.2f", names[i], median(rates[i], ROUNDS));
    printf("}\n");
    fflush(stdout);
    for (int i = 0; i < TURNS; i++) {
        x->ops->release(x->device, a[i]);
        x->ops->release(x->device, b[i]);
    }
    x->ops->release(x->device, args.c);
    x->ops->release(x->device, args.workspace);
}

int main(int argc, char **argv) {
    static const int64_t usual[] = {4096, 8192, 16384};
    const double seconds = argc > 1 ? atof(argv[1]) : 2;
    const bench x = open_bench();
    for (int i = 0; i < (argc > 2 ? argc - 2 : 3); i++) measure(&x, argc > 2 ? atoll(argv[2 + i]) : usual[i], seconds);
    x.ops->close(x.device);
    return 0;
}
