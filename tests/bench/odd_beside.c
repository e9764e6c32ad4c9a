/* `exact` of n × n × n beside n - 1 and n + 1, in turns on one GPU, each for as long as asked, so that the power limit
 * counts, after a quarter of that: without the proof of its error, and with it.
 * Prints a line of JSON a type: TFLOP/s of n, medians of three rounds, and what of them the others make.
 * Usage: odd_beside [SECONDS [N...]] */
#include <stdio.h>

#include "kernels/gemm/exact/exact.h"
#include "tests/bench/exact_data.h"
#include "tests/bench/median.h"

enum { ROUNDS = 3, SIZES = 3, WAYS = 2 };
static const char *const names[WAYS] = {"unproved", "exact"};

static void measure(const bench *x, tsr_dtype type, int64_t n, double seconds) {
    const int64_t sizes[SIZES] = {n, n - 1, n + 1}, most = n + 1;
    const tsr_gemm_kernel *ways[WAYS] = {type == TSR_F64 ? &tsr_gemm_unproved_f64 : &tsr_gemm_unproved_f32};
    CHECK_OK(tsr_gemm_find("exact", &x->facts, type, type, &ways[1]));
    tsr_gemm_args args[SIZES];
    void *c = allocate(x, (size_t)(most * most) * tsr_dtype_bytes(type));
    void *workspace = allocate(x, ways[1]->workspace_bytes(most, most, most));
    double rates[WAYS][SIZES][ROUNDS];
    for (int i = 0; i < SIZES; i++) {
        const int64_t m = sizes[i];
        args[i] = (tsr_gemm_args){.m = m, .n = m, .k = m, .lda = m, .ldb = m, .ldc = m, .batch = 1};
        args[i].a = operand(x, type, m, m, false, NORMAL);
        args[i].b = operand(x, type, m, m, true, NORMAL);
        args[i].c = c;
        args[i].workspace = workspace;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int way = 0; way < WAYS; way++)
            for (int turn = 0; turn < SIZES; turn++) {
                const int i = (turn + round) % SIZES;
                rates[way][i][round] = sustained(x, ways[way], &args[i], seconds);
            }
    printf("{\"device\": \"%s\", \"type\": \"%s\", \"n\": %lld", x->facts.name, tsr_dtype_name(type), (long long)n);
    for (int way = 0; way < WAYS; way++) {
        const double even = median(rates[way][0], ROUNDS);
        printf(", \"%s\": %.2f, \"%s_less\": %.4f, \"%s_more\": %.4f", names[way], even, names[way],
               median(rates[way][1], ROUNDS) / even, names[way], median(rates[way][2], ROUNDS) / even);
    }
    printf("}\n");
    fflush(stdout);
    for (int i = 0; i < SIZES; i++) {
        x->ops->release(x->device, (void *)args[i].a);
        x->ops->release(x->device, (void *)args[i].b);
    }
    x->ops->release(x->device, c);
    x->ops->release(x->device, workspace);
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    const bench x = open_bench();
    for (int type = 0; type < 2; type++)
        for (int i = 2; i < tsr_max(argc, 3); i++)
            measure(&x, type == 0 ? TSR_F64 : TSR_F32, i < argc ? atoll(argv[i]) : 8192, seconds);
    x.ops->close(x.device);
    return 0;
}
