/* `exact` beside the vendor's kernel, in turns on one GPU, each for as long as asked, so that the power limit counts,
 * after a quarter of that: without the proof of its error (unproved), with it (exact), with the check (checked), on
 * wide data, normal · exp(2 · normal), and on sparse data, 1 % of the elements. What follows the quickest of them finds
 * a hot device, so exact and checked change places from round to round.
 * Prints a line of JSON a type and size: TFLOP/s, medians of three rounds (gpu_exact.py reads it).
 * Usage: exact_beside [SECONDS [N...]] */
#include <stdio.h>

#include "kernels/gemm/exact/exact.h"
#include "tests/bench/exact_data.h"
#include "tests/bench/median.h"

enum { ROUNDS = 3, KINDS = 6, EXACT = 2, CHECKED = 3, DATA = 3 };

static void measure(const bench *x, tsr_dtype type, int64_t n, double seconds) {
    const tsr_gemm_kernel *vendor, *exact,
        *unproved = type == TSR_F64 ? &tsr_gemm_unproved_f64 : &tsr_gemm_unproved_f32;
    CHECK_OK(tsr_gemm_find("cublas", &x->facts, type, type, &vendor));
    CHECK_OK(tsr_gemm_find("exact", &x->facts, type, type, &exact));
    const tsr_gemm_kernel *const kernels[KINDS] = {vendor, unproved, exact, exact, exact, exact};
    const data kinds[KINDS] = {NORMAL, NORMAL, NORMAL, NORMAL, WIDE, SPARSE};
    double rates[KINDS][ROUNDS];
    void *a[DATA], *b[DATA];
    for (int kind = 0; kind < DATA; kind++) {
        a[kind] = operand(x, type, n, n, false, (data)kind);
        b[kind] = operand(x, type, n, n, true, (data)kind);
    }
    tsr_gemm_args args = {.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .batch = 1};
    args.c = allocate(x, (size_t)(n * n) * tsr_dtype_bytes(type));
    tsr_check_counts *counts = allocate(x, sizeof *counts);
    CHECK_OK(x->ops->fill_bytes(x->device, counts, 0, sizeof *counts, x->stream));
    args.workspace = allocate(x, tsr_max(exact->workspace_bytes(n, n, n), (size_t)64 << 20));
    for (int round = 0; round < ROUNDS; round++)
        for (int turn = 0; turn < KINDS; turn++) {
            int i = (turn + 2 * round) % KINDS;
            if (round % 2 && (i == EXACT || i == CHECKED)) i = EXACT + CHECKED - i;
            args.a = a[kinds[i]];
            args.b = b[kinds[i]];
            args.check.counts = i == CHECKED ? counts : NULL;
            rates[i][round] = sustained(x, kernels[i], &args, seconds);
        }
    tsr_check_counts found;
    CHECK_OK(x->ops->download(x->device, &found, counts, sizeof found, x->stream));
    CHECK_OK(x->ops->stream_wait(x->device, x->stream));
    CHECK(found.judged > 0 && found.doubtful == 0 && found.wrong == 0,
          "%s, n = %lld: %llu rows judged, and %llu of right products doubted", tsr_dtype_name(type), (long long)n,
          (unsigned long long)found.judged, (unsigned long long)found.doubtful);
    double rate[KINDS];
    for (int i = 0; i < KINDS; i++) rate[i] = median(rates[i], ROUNDS);
    printf("{\"device\": \"%s\", \"type\": \"%s\", \"n\": %lld, \"cublas\": %.2f, \"unproved\": %.2f, \"exact\": %.2f, "
           "\"wide\": %.2f, \"sparse\": %.2f, \"checked\": %.2f}\n",
           x->facts.name, tsr_dtype_name(type), (long long)n, rate[0], rate[1], rate[EXACT], rate[4], rate[5],
           rate[CHECKED]);
    fflush(stdout);
    for (int kind = 0; kind < DATA; kind++) {
        x->ops->release(x->device, a[kind]);
        x->ops->release(x->device, b[kind]);
    }
    x->ops->release(x->device, args.c);
    x->ops->release(x->device, args.workspace);
    x->ops->release(x->device, counts);
}

int main(int argc, char **argv) {
    static const int64_t usual[] = {4096, 8192, 16384, 8191, 8193};
    const double seconds = argc > 1 ? atof(argv[1]) : 2;
    const bench x = open_bench();
    for (int type = 0; type < 2; type++)
        for (int i = 0; i < (argc > 2 ? argc - 2 : 5); i++)
            measure(&x, type == 0 ? TSR_F64 : TSR_F32, argc > 2 ? atoll(argv[2 + i]) : usual[i], seconds);
    x.ops->close(x.device);
    return 0;
}
