/* Products of residues (kernels/gemm/residues/products.h) beside cuBLAS' int8 product, which stores int32, in
 * turns, each for as long as asked for, so that the power limit counts: n × n × n, random residues. The planes of the
 * lowest level of fp64, the same beside products of sums, the same by a list of tiles, one plane, and the levels of
 * blocks. Samples are checked. Prints a
 * line of JSON a size: 10^12 operations a second, the median of the rounds.
 * Usage: residues_beside [SECONDS [N...]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>

#include "kernels/device/cuda_compat.h"
#include "kernels/gemm/residues/products.h"
#include "tests/bench/median.h"
#include "tests/check.h"

enum { PLANES = 14, ROUNDS = 3, ALGORITHMS = 16, SAMPLES = 512, VENDOR_BYTES = 64 << 20 };
enum {
    OFFSET_B = 12345,
    SPARE = 1 << 16
}; /* of the random bytes, where those of B begin; and how many more there are */
static const int moduli[] = TSR_EXACT_MODULI;

#define LT(call) CHECK((call) == CUBLAS_STATUS_SUCCESS, "%s failed", #call)

typedef struct {
    int64_t n;
    tsr_device *device;
    const tsr_device_ops *ops;
    tsr_stream *stream;
    tsr_event *begin, *end;
    uint8_t *random; /* n × n and SPARE bytes */
    int8_t *a, *b, *c;
    int8_t *small_a, *small_b; /* magnitudes */
    unsigned *blocks;          /* all wanted */
    unsigned *needed, *left;
    tsr_exact_few *few; /* of which no element is noted */
    tsr_exact_proof *proofs;
    tsr_residue_sums sums;
    int8_t *lines; /* of sums, both operands', and what they make */
    void *workspace;
    /* cuBLAS' */
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t layout, layout_c;
    cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
    int algorithms, algorithm;
    void *vendor_c, *vendor_workspace;
} bench;

static void *allocate(const bench *x, size_t bytes) {
    void *memory;
    CHECK_OK(x->ops->allocate(x->device, bytes, &memory));
    return memory;
}
static void *uploaded(const bench *x, const void *from, size_t bytes) {
    void *memory = allocate(x, bytes);
    CHECK_OK(x->ops->upload(x->device, memory, from, bytes, x->stream));
    CHECK_OK(x->ops->stream_wait(x->device, x->stream));
    return memory;
}

static int residue_of(uint8_t byte, int modulus) { return byte * modulus / 256 - modulus / 2; }
static int magnitude_of(uint8_t byte) { return byte / 8; } /* 16 in the mean: see tsr_exact_grain */

/* Planes of random residues; of magnitudes where there is one alone. */
static int8_t *made_planes(const bench *x, int planes, int offset) {
    const size_t bytes = (size_t)(x->n * x->n);
    int8_t *all = (int8_t *)allocate(x, (size_t)planes * bytes), *plane = (int8_t *)malloc(bytes);
    const uint8_t *from = x->random + offset;
    CHECK(plane, "no %zu bytes", bytes);
    for (int p = 0; p < planes; p++) {
        for (size_t i = 0; planes > 1 && i < bytes; i++) plane[i] = (int8_t)residue_of(from[i], moduli[p]);
        for (size_t i = 0; planes == 1 && i < bytes; i++) plane[i] = (int8_t)magnitude_of(from[i]);
        CHECK_OK(x->ops->upload(x->device, all + (size_t)p * bytes, plane, bytes, x->stream));
        CHECK_OK(x->ops->stream_wait(x->device, x->stream));
    }
    free(plane);
    return all;
}

/* Lines of uniform numbers in [0, 1), 53 bits each. */
static tsr_exact_proof *made_proofs(const bench *x) {
    tsr_exact_natural limits[TSR_EXACT_LEVELS];
    tsr_exact_proof *proofs = (tsr_exact_proof *)malloc((size_t)x->n * sizeof *proofs);
    const int bits = TSR_EXACT_QUANTUM_BITS;
    const tsr_exact_line line = {.exponent = 0,
                                 .lowest = -60,
                                 .count = (uint32_t)x->n,
                                 .sum = (uint64_t)x->n << (bits - 1),
                                 .squares = ((uint64_t)x->n << 2 * bits) / 3};
    CHECK(proofs, "no memory");
    for (int level = 0; level < TSR_EXACT_LEVELS; level++)
        limits[level] = tsr_exact_limit(tsr_exact_moduli(TSR_F64, level));
    for (int64_t i = 0; i < x->n; i++) proofs[i] = tsr_exact_prove(TSR_F64, line, limits);
    tsr_exact_proof *on_device = (tsr_exact_proof *)uploaded(x, proofs, (size_t)x->n * sizeof *proofs);
    free(proofs);
    return on_device;
}

/* ---- what is measured ------------------------------------------------------------------------ */

static tsr_residue_args args_of(const bench *x, int planes, const int8_t *a, const int8_t *b) {
    return (tsr_residue_args){.planes = planes,
                              .m = x->n,
                              .n = x->n,
                              .k = x->n,
                              .a = a,
                              .b = b,
                              .rows_a = x->n,
                              .rows_b = x->n,
                              .depth = x->n,
                              .workspace = x->workspace};
}
static void all_planes(const bench *x) {
    const tsr_residue_args args = args_of(x, PLANES, x->a, x->b);
    CHECK_OK(tsr_residue_products(x->device, x->stream, &args, x->c));
}
static void summed_planes(const bench *x) {
    tsr_residue_args args = args_of(x, PLANES, x->a, x->b);
    args.sums = &x->sums;
    CHECK_OK(tsr_residue_products(x->device, x->stream, &args, x->c));
}
static void listed_planes(const bench *x) {
    tsr_residue_args args = args_of(x, PLANES, x->a, x->b);
    args.blocks = x->blocks;
    CHECK_OK(tsr_residue_products(x->device, x->stream, &args, x->c));
}
static void one_plane(const bench *x) {
    const tsr_residue_args args = args_of(x, 1, x->a, x->b);
    CHECK_OK(tsr_residue_products(x->device, x->stream, &args, x->c));
}
static size_t blocks_bytes(const bench *x) {
    return (size_t)(x->n / TSR_EXACT_BLOCK * (x->n / TSR_EXACT_BLOCK)) * sizeof(unsigned);
}
static size_t left_bytes(const bench *x) { return (size_t)(x->n / 32 * x->n) * sizeof(unsigned); }
static void levels(const bench *x) {
    const tsr_residue_args args = args_of(x, 1, x->small_a, x->small_b);
    CHECK_OK(x->ops->fill_bytes(x->device, x->needed, 0, blocks_bytes(x), x->stream));
    const tsr_residue_levels_args found = {x->proofs, x->proofs, tsr_exact_allowed(TSR_F64, x->n),
                                           x->needed, x->left,   x->few};
    CHECK_OK(tsr_residue_levels(x->device, x->stream, &args, &found));
}
/* What is row by row here is the transpose there. */
static void vendor(const bench *x) {
    const int one = 1, zero = 0;
    LT(cublasLtMatmul(x->handle, x->what, &one, x->b, x->layout, x->a, x->layout, &zero, x->vendor_c, x->layout_c,
                      x->vendor_c, x->layout_c, &x->found[x->algorithm].algo, x->vendor_workspace, VENDOR_BYTES,
                      tsr_cuda_stream(x->stream)));
}

typedef struct {
    const char *name;
    void (*launch)(const bench *x);
    int planes;
} way;
static const way ways[] = {{.name = "residues_14", .launch = all_planes, .planes = PLANES},
                           {.name = "cublas_int8", .launch = vendor, .planes = 1},
                           {.name = "residues_14_listed", .launch = listed_planes, .planes = PLANES},
                           {.name = "residues_14_sums", .launch = summed_planes, .planes = PLANES},
                           {.name = "residues_1", .launch = one_plane, .planes = 1},
                           {.name = "levels", .launch = levels, .planes = 1}};
enum { WAYS = sizeof ways / sizeof *ways, VENDOR = 1 };

/* Of one launch. */
static double seconds_of(const bench *x, void (*launch)(const bench *), int count) {
    double seconds;
    CHECK_OK(x->ops->event_record(x->device, x->begin, x->stream));
    for (int i = 0; i < count; i++) launch(x);
    CHECK_OK(x->ops->event_record(x->device, x->end, x->stream));
    CHECK_OK(x->ops->event_wait(x->device, x->end));
    CHECK_OK(x->ops->event_seconds(x->device, x->begin, x->end, &seconds));
    return seconds / count;
}

/* cuBLAS with the fastest of the algorithms that it offers. */
static void open_vendor(bench *x) {
    const cublasOperation_t turned = CUBLAS_OP_T;
    const size_t room = VENDOR_BYTES;
    const uint64_t n = (uint64_t)x->n;
    cublasLtMatmulPreference_t preference;
    double least = 0;
    LT(cublasLtMatmulDescCreate(&x->what, CUBLAS_COMPUTE_32I, CUDA_R_32I));
    LT(cublasLtMatmulDescSetAttribute(x->what, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned));
    LT(cublasLtMatrixLayoutCreate(&x->layout, CUDA_R_8I, n, n, x->n));
    LT(cublasLtMatrixLayoutCreate(&x->layout_c, CUDA_R_32I, n, n, x->n));
    LT(cublasLtMatmulPreferenceCreate(&preference));
    LT(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
    LT(cublasLtMatmulAlgoGetHeuristic(x->handle, x->what, x->layout, x->layout, x->layout_c, x->layout_c, preference,
                                      ALGORITHMS, x->found, &x->algorithms));
    CHECK(x->algorithms > 0, "cuBLAS has no int8 product");
    for (int i = 0, best = 0; i < x->algorithms; i++) {
        x->algorithm = i;
        seconds_of(x, vendor, 1);
        const double seconds = seconds_of(x, vendor, 3);
        if (i == 0 || seconds < least) {
            least = seconds;
            best = i;
        }
        if (i + 1 == x->algorithms) x->algorithm = best;
    }
    LT(cublasLtMatmulPreferenceDestroy(preference));
}

/* Samples of the planes that were made last. */
static void verify(const bench *x) {
    for (int sample = 0; sample < SAMPLES; sample++) {
        const int plane = rand() % PLANES, p = moduli[plane];
        const int64_t row = rand() % x->n, col = rand() % x->n;
        int8_t got;
        int64_t sum = 0;
        for (int64_t l = 0; l < x->n; l++)
            sum += residue_of(x->random[row * x->n + l], p) * residue_of(x->random[col * x->n + l + OFFSET_B], p);
        CHECK_OK(x->ops->download(x->device, &got, x->c + (plane * x->n + row) * x->n + col, 1, x->stream));
        CHECK_OK(x->ops->stream_wait(x->device, x->stream));
        CHECK((sum - got) % p == 0 && 2 * abs(got) <= p, "plane %d (%lld, %lld) is %d, the sum %lld mod %d", plane,
              (long long)row, (long long)col, got, (long long)sum, p);
    }
}

/* ---- the program ----------------------------------------------------------------------------- */

static void make(bench *x) {
    const size_t plane = (size_t)(x->n * x->n);
    uint64_t state = 1;
    x->random = (uint8_t *)malloc(plane + SPARE);
    CHECK(x->random, "no %zu bytes", plane + SPARE);
    for (size_t i = 0; i < plane + SPARE; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x->random[i] = (uint8_t)(state >> 40);
    }
    x->a = made_planes(x, PLANES, 0);
    x->b = made_planes(x, PLANES, OFFSET_B);
    x->small_a = made_planes(x, 1, 0);
    x->small_b = made_planes(x, 1, OFFSET_B);
    x->c = (int8_t *)allocate(x, PLANES * plane);
    x->vendor_c = allocate(x, 4 * plane);
    x->needed = (unsigned *)allocate(x, blocks_bytes(x));
    x->left = (unsigned *)allocate(x, left_bytes(x));
    x->few = (tsr_exact_few *)allocate(x, blocks_bytes(x) / sizeof(unsigned) * sizeof *x->few);
    CHECK_OK(x->ops->fill_bytes(x->device, x->left, 0, left_bytes(x), x->stream)); /* no element of these is left */
    x->blocks = (unsigned *)allocate(x, blocks_bytes(x));
    CHECK_OK(x->ops->fill_bytes(x->device, x->blocks, 0, blocks_bytes(x), x->stream));
    x->proofs = made_proofs(x);
    const int64_t lines = (int64_t)PLANES * TSR_EXACT_SUMS * x->n;
    x->lines = (int8_t *)allocate(x, (size_t)(4 * lines));
    CHECK_OK(x->ops->fill_bytes(x->device, x->lines, 0x55, (size_t)(2 * lines), x->stream));
    const int sums = (int)(x->n / TSR_EXACT_BLOCK);
    x->sums = (tsr_residue_sums){x->lines, x->lines + lines, x->lines + 2 * lines, x->lines + 3 * lines, sums, sums};
    x->workspace = allocate(x, tsr_residue_workspace(x->n, x->n));
    open_vendor(x);
}
static void unmake(bench *x) {
    void *const all[] = {x->a,    x->b,   x->small_a, x->small_b, x->c,     x->vendor_c, x->needed,
                         x->left, x->few, x->blocks,  x->proofs,  x->lines, x->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) x->ops->release(x->device, all[i]);
    free(x->random);
    LT(cublasLtMatrixLayoutDestroy(x->layout));
    LT(cublasLtMatrixLayoutDestroy(x->layout_c));
    LT(cublasLtMatmulDescDestroy(x->what));
}

static void measure(bench *x, double seconds) {
    double rates[WAYS][ROUNDS];
    const double operations = 2.0 * (double)x->n * (double)x->n * (double)x->n;
    unsigned level;
    make(x);
    for (int check = 0; check < 4; check += check + 1 == VENDOR ? 2 : 1) {
        CHECK_OK(x->ops->fill_bytes(x->device, x->c, 0x77, (size_t)(PLANES * x->n * x->n), x->stream));
        ways[check].launch(x);
        verify(x);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int w = 0; w < WAYS; w++) {
            seconds_of(x, ways[w].launch, 1);
            const double once = seconds_of(x, ways[w].launch, 3);
            const int count = once < seconds ? (int)(seconds / once) : 1;
            rates[w][round] = ways[w].planes * operations / seconds_of(x, ways[w].launch, count) / 1e12;
        }
    double rate[WAYS];
    for (int w = 0; w < WAYS; w++) rate[w] = median(rates[w], ROUNDS);
    CHECK_OK(x->ops->download(x->device, &level, x->needed, sizeof level, x->stream));
    CHECK_OK(x->ops->stream_wait(x->device, x->stream));
    printf("{\"n\": %lld, \"level\": %u, \"algorithms\": %d", (long long)x->n, level, x->algorithms);
    for (int w = 0; w < WAYS; w++)
        printf(", \"%s\": %.1f, \"%s_of_cublas\": %.3f", ways[w].name, rate[w], ways[w].name, rate[w] / rate[VENDOR]);
    printf("}\n");
    fflush(stdout);
    unmake(x);
}

int main(int argc, char **argv) {
    static const int64_t usual[] = {4096, 8192, 16384};
    bench x = {0};
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 2;
    const int sizes = argc > 2 ? argc - 2 : (int)(sizeof usual / sizeof *usual);
    int devices = 0;
    char why[256];
    CHECK_OK(tsr_device_find("cuda", &x.ops));
    CHECK_OK(x.ops->count(&devices, why));
    CHECK(devices > 0, "no GPU: %s", why);
    CHECK_OK(x.ops->open(0, &x.device));
    CHECK_OK(x.ops->use(x.device));
    CHECK_OK(x.ops->stream_create(x.device, &x.stream));
    CHECK_OK(x.ops->event_create(x.device, &x.begin));
    CHECK_OK(x.ops->event_create(x.device, &x.end));
    LT(cublasLtCreate(&x.handle));
    x.vendor_workspace = allocate(&x, VENDOR_BYTES);
    for (int i = 0; i < sizes; i++) {
        x.n = argc > 2 ? strtoll(argv[2 + i], NULL, 10) : usual[i];
        CHECK(seconds > 0 && x.n > 0 && x.n % TSR_EXACT_TILE == 0 && x.n <= TSR_EXACT_RANGE,
              "usage: residues_beside [SECONDS [N...]], N multiples of %d up to %d", TSR_EXACT_TILE, TSR_EXACT_RANGE);
        measure(&x, seconds);
    }
    x.ops->release(x.device, x.vendor_workspace);
    LT(cublasLtDestroy(x.handle));
    x.ops->event_destroy(x.device, x.begin);
    x.ops->event_destroy(x.device, x.end);
    x.ops->stream_destroy(x.device, x.stream);
    x.ops->close(x.device);
    return 0;
}
