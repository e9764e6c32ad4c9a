/* `exact` beside the vendor's kernel, in turns on one GPU, each for as long as asked, so that the power limit counts,
 * after a quarter of that: without the proof of its error (unproved), with it (exact), with the check (checked), on
 * wide data, normal · exp(2 · normal), and on sparse data, 1 % of the elements. Exact and checked differ by less than
 * heat and clocks do from turn to turn, so they share a turn, in slices.
 * Prints a line of JSON a type and size: TFLOP/s, medians of three rounds (gpu_exact.py reads it).
 * Usage: exact_beside [SECONDS [N...]] */
#include <stdio.h>

#include "kernels/gemm/exact/exact.h"
#include "tests/bench/exact_data.h"
#include "tests/bench/median.h"

enum { ROUNDS = 3, DATA = 3 };
/* what is measured; CHECKED in the turn of EXACT */
enum { VENDOR, UNPROVED, EXACT, WIDE_DATA, SPARSE_DATA, TURNS, CHECKED = TURNS, KINDS };

/* TFLOP/s of a kernel without the check and with it, each over so many seconds, in slices of 50 ms or of a product,
 * every other one first. */
static void with_and_without(const bench *x, const tsr_gemm_kernel *kernel, tsr_gemm_args args,
                             tsr_check_counts *counts, double seconds, double *without, double *with) {
    const double flop = 2.0 * (double)args.m * (double)args.n * (double)args.k, once = seconds_of(x, kernel, &args, 2);
    const int count = (int)fmax(1, 0.05 / once), slices = 2 * (int)fmax(1, seconds / (2 * count * once));
    double spent[2] = {0};
    seconds_of(x, kernel, &args, 1 + count * slices / 4);
    for (int slice = 0; slice < 2 * slices; slice++) {
        const int checked = (slice + slice / 2) % 2;
        args.check.counts = checked ? counts : NULL;
        spent[checked] += count * seconds_of(x, kernel, &args, count);
    }
    *without = slices * count * flop / spent[0] / 1e12;
    *with = slices * count * flop / spent[1] / 1e12;
}

static void measure(const bench *x, tsr_dtype type, int64_t n, double seconds) {
    const tsr_gemm_kernel *vendor, *exact,
        *unproved = type == TSR_F64 ? &tsr_gemm_unproved_f64 : &tsr_gemm_unproved_f32;
    CHECK_OK(tsr_gemm_find("cublas", &x->facts, type, type, &vendor));
    CHECK_OK(tsr_gemm_find("exact", &x->facts, type, type, &exact));
    const tsr_gemm_kernel *const kernels[TURNS] = {vendor, unproved, exact, exact, exact};
    const data kinds[TURNS] = {NORMAL, NORMAL, NORMAL, WIDE, SPARSE};
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
        for (int turn = 0; turn < TURNS; turn++) {
            const int i = (turn + 2 * round) % TURNS;
            args.a = a[kinds[i]];
            args.b = b[kinds[i]];
            if (i == EXACT)
                with_and_without(x, exact, args, counts, seconds, &rates[EXACT][round], &rates[CHECKED][round]);
            else rates[i][round] = sustained(x, kernels[i], &args, seconds);
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
           x->facts.name, tsr_dtype_name(type), (long long)n, rate[VENDOR], rate[UNPROVED], rate[EXACT],
           rate[WIDE_DATA], rate[SPARSE_DATA], rate[CHECKED]);
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
