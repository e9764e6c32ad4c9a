/* What the check of a product takes by itself: events around it, on an idle GPU and right behind the product, which
 * may have heated the GPU so far that its clock is lower. C = A·B, n × n, normal, one launch.
 * Prints a line a kernel: milliseconds, medians, and the rate at which A, B and C are read.
 * Usage: check_alone [N [ROUNDS [DEVICE]]] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/check/check.h"
#include "kernels/fill/fill.h"
#include "tests/bench/median.h"
#include "tests/check.h"

enum { ROUNDS_MOST = 1000 };

typedef struct {
    const tsr_device_ops *ops;
    tsr_device *device;
    tsr_stream *stream;
    tsr_event *begin, *between, *end;
    const tsr_gemm_kernel *kernel;
    tsr_gemm_args gemm;
    tsr_check_args check;
} bench;

static void *allocate(const bench *x, size_t bytes) {
    void *memory;
    CHECK_OK(x->ops->allocate(x->device, bytes + 1, &memory));
    return memory;
}

static void *operand(const bench *x, int64_t n, uint64_t seed) {
    void *memory = allocate(x, (size_t)(n * n) * tsr_dtype_bytes(x->kernel->input));
    CHECK_OK(tsr_fill_find(x->ops->kind)
                 ->fill(x->device, x->stream, TSR_FILL_NORMAL, seed, 0, 0,
                        (tsr_view){memory, {x->kernel->input, false}, n, n, n}));
    return memory;
}

/* Of the check, and, where `behind`, of the product before it. */
static void once(const bench *x, bool behind, double *product, double *check) {
    CHECK_OK(x->ops->event_record(x->device, x->begin, x->stream));
    if (behind) CHECK_OK(tsr_gemm_launch(x->kernel, x->device, x->stream, &x->gemm));
    CHECK_OK(x->ops->event_record(x->device, x->between, x->stream));
    CHECK_OK(tsr_check_find(x->ops->kind)->follow(x->device, x->stream, &x->check));
    CHECK_OK(x->ops->event_record(x->device, x->end, x->stream));
    CHECK_OK(x->ops->event_wait(x->device, x->end));
    CHECK_OK(x->ops->event_seconds(x->device, x->begin, x->between, product));
    CHECK_OK(x->ops->event_seconds(x->device, x->between, x->end, check));
}

static void measure(bench *x, int64_t n, int rounds) {
    static double product[ROUNDS_MOST], check[ROUNDS_MOST], idle[ROUNDS_MOST];
    const size_t read = (size_t)(n * n) * (2 * tsr_dtype_bytes(x->kernel->input) + tsr_dtype_bytes(x->kernel->type));
    const size_t workspace = x->kernel->workspace_bytes ? x->kernel->workspace_bytes(n, n, n) : 0;
    tsr_check_counts counts;
    x->gemm = (tsr_gemm_args){.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .batch = 1};
    void *a = operand(x, n, 1), *b = operand(x, n, 2);
    void *room = allocate(x, workspace);
    x->gemm.a = a;
    x->gemm.b = b;
    x->gemm.c = allocate(x, (size_t)(n * n) * tsr_dtype_bytes(x->kernel->type));
    x->gemm.workspace = room;
    x->check = (tsr_check_args){.gemm = &x->gemm, .kernel = x->kernel, .opens = true, .closes = true};
    x->check.width = x->check.rows = x->check.depth = x->check.k = n;
    x->check.workspace = allocate(x, tsr_check_bytes(n, n, n));
    x->check.counts = allocate(x, sizeof counts);
    CHECK_OK(x->ops->fill_bytes(x->device, x->check.counts, 0, sizeof counts, x->stream));
    for (int i = -1; i < rounds; i++)
        once(x, true, &product[i < 0 ? 0 : i], &check[i < 0 ? 0 : i]); /* one to warm up */
    for (int i = 0; i < rounds; i++) {
        double nothing;
        once(x, false, &nothing, &idle[i]);
    }
    CHECK_OK(x->ops->download(x->device, &counts, x->check.counts, sizeof counts, x->stream));
    CHECK_OK(x->ops->stream_wait(x->device, x->stream));
    double worst;
    memcpy(&worst, &counts.worst_bits, sizeof worst);
    if (counts.doubtful > 0 || counts.unjudged > 0)
        printf("%s: of %llu right rows %llu are doubted, %llu not judged: off by %.3g of their bounds\n",
               x->kernel->name, (unsigned long long)counts.judged, (unsigned long long)counts.doubtful,
               (unsigned long long)counts.unjudged, worst);
    const double behind = median(check, rounds), alone = median(idle, rounds);
    printf("%-12s %-5s %6lld  product %8.3f ms  check behind it %6.3f ms, %5.0f GB/s  on an idle device %6.3f ms, "
           "%5.0f GB/s  off by %.2f of the bound\n",
           x->kernel->name, tsr_dtype_name(x->kernel->input), (long long)n, 1e3 * median(product, rounds), 1e3 * behind,
           (double)read / behind / 1e9, 1e3 * alone, (double)read / alone / 1e9, worst);
    void *taken[] = {a, b, room, x->gemm.c, x->check.workspace, x->check.counts};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) x->ops->release(x->device, taken[i]);
}

int main(int argc, char **argv) {
    static const char *const names[] = {"dmma", "simt", "split3", "tf32", "wgmma"};
    const int64_t n = argc > 1 ? atoll(argv[1]) : 16384;
    const int rounds = argc > 2 ? atoi(argv[2]) : 20;
    bench x = {0};
    tsr_device_facts facts;
    int count;
    CHECK(rounds > 0 && rounds <= ROUNDS_MOST, "1 to %d rounds", ROUNDS_MOST);
    CHECK_OK(tsr_device_find(argc > 3 ? argv[3] : "cuda", &x.ops));
    CHECK_OK(x.ops->open(0, &x.device));
    CHECK_OK(x.ops->facts(x.device, &facts));
    CHECK_OK(x.ops->stream_create(x.device, &x.stream));
    CHECK_OK(x.ops->event_create(x.device, &x.begin));
    CHECK_OK(x.ops->event_create(x.device, &x.between));
    CHECK_OK(x.ops->event_create(x.device, &x.end));
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (size_t name = 0; name < sizeof names / sizeof *names; name++)
        for (int i = 0; i < count; i++) {
            x.kernel = kernels[i];
            if (strcmp(kernels[i]->name, names[name]) != 0 || !tsr_gemm_runs_on(kernels[i], facts.arch)) continue;
            if (kernels[i]->device == x.ops->kind) measure(&x, n, rounds);
        }
    x.ops->close(x.device);
    return 0;
}
