/* The check of `exact` (kernels/gemm/exact) on one device, TSR_TEST_DEVICE: right products pass, and every bit that is
 * flipped in one and changes C is found. This test is linked with the kernel as built with TSR_TEST_FLIPS.
 * TSR_TEST_ON_GPU: on a GPU. There planes are changed between launches, the others within kernels; panels in shared
 * memory and sums in registers where it is of sm_90.
 * Usage: test_exact_flips [FLIPS [CLEAN]]   so many of each place, more until one does harm, and so many right
 * products. Exit code 77: there is no such device. */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm/exact/exact.h"
#include "kernels/gemm/exact/exact_cpu_residues.h"
#include "kernels/gemm/flips.h"
#include "kernels/gemm/residues/products.h"
#include "tests/kernels/device/device_under_test.h"
#include "tests/splitmix64.h"

#if defined(TSR_EMULATE_CUDA) || defined(TSR_TEST_ON_GPU)
#define ON_CUDA
#endif
#ifdef TSR_TEST_ON_GPU
enum { ON_GPU = 1, FLIPS_EACH = 20 /* flips of a product: data take longer than products */ };
#else
enum { ON_GPU = 0, FLIPS_EACH = 1 };
#endif

static device_under_test on;
static bool tells;     /* what was found */
static bool in_panels; /* panels and sums are flipped, too */

/* ---- what is flipped ------------------------------------------------------------------------- */

static const char *const names[TSR_FLIP_PLACES] = {"A",           "B",           "C",     "the loop",
                                                   "a tile of A", "a tile of B", "a sum", "an integer of C"};

static struct {
    tsr_flip_place place;
    atomic_long left;  /* calls of that place until the one that flips; below 0: none does */
    atomic_long calls; /* of that place */
    uint64_t bit;      /* which one, modulo those there are */
    int64_t m, n, k;   /* of the product */
    bool quartered;
    atomic_bool multiplies; /* planes are being multiplied: sums and tiles are those of C */
} flips;

static uint64_t random_state = 1;
static uint64_t draw(void) { return splitmix64(&random_state); }
static int64_t draw_up_to(int64_t most) { return 1 + (int64_t)(draw() % (uint64_t)most); }

static bool on_cpu(void) { return on.ops->kind == TSR_DEVICE_CPU; }

/* Memory at a place: matrices one below the other, or, where elements have no bytes here, words that all count. */
typedef struct {
    int64_t lines, width;
    size_t element; /* bytes */
} layout;
static const layout layouts_on_cpu[TSR_FLIP_PLACES] = {
    [TSR_FLIP_A] = {TSR_EXACT_BLOCK, TSR_EXACT_STEP, sizeof(int64_t)},
    [TSR_FLIP_B] = {TSR_EXACT_BLOCK, TSR_EXACT_STEP, sizeof(int64_t)},
    [TSR_FLIP_C] = {TSR_EXACT_LINES, TSR_EXACT_LINES, sizeof(int32_t)},
    [TSR_FLIP_TILE_A] = {TSR_EXACT_LINES, TSR_EXACT_STEP, sizeof(int16_t)},
    [TSR_FLIP_TILE_B] = {TSR_EXACT_LINES, TSR_EXACT_STEP, sizeof(int16_t)},
};
static layout layout_of(tsr_flip_place place) {
    const int sides = flips.quartered ? 2 : 1;
    const int64_t lines_a = tsr_round_up(flips.m, sides * TSR_EXACT_TILE);
    const int64_t lines_b = tsr_round_up(flips.n, sides * TSR_EXACT_TILE);
    const int64_t depth = tsr_round_up(flips.k, sides * TSR_EXACT_DEPTH);
    if (on_cpu()) return layouts_on_cpu[place];
    if (place > TSR_FLIP_C) return (layout){0};
    return (layout){place == TSR_FLIP_B ? lines_b : lines_a, place == TSR_FLIP_C ? lines_b : depth, 1};
}

/* A bit of those that belong to an element, by flips.bit. */
static uint64_t bit_of(tsr_flip_place place, size_t bytes) {
    uint64_t bit = flips.bit;
    const layout of = layout_of(place);
    if (of.element == 0) return bit % (8 * bytes);
    const bool of_b = place == TSR_FLIP_B || place == TSR_FLIP_TILE_B;
    const int64_t used_lines = tsr_min(of.lines, of_b ? flips.n : flips.m);
    const int64_t used = tsr_min(of.width, place == TSR_FLIP_C ? flips.n : flips.k);
    const size_t matrices = bytes / of.element / (size_t)(of.lines * of.width);
    const uint64_t in_element = bit % (8 * of.element), line = (bit /= 8 * of.element) % (uint64_t)used_lines;
    const uint64_t at = (bit /= (uint64_t)used_lines) % (uint64_t)used, matrix = bit / (uint64_t)used % matrices;
    return ((matrix * (uint64_t)of.lines + line) * (uint64_t)of.width + at) * 8 * of.element + in_element;
}

void tsr_test_flip(tsr_flip_place place, tsr_stream *stream, void *memory, size_t bytes) {
    if (place == TSR_FLIP_C) atomic_store(&flips.multiplies, false);
    const bool in_products = place == TSR_FLIP_TILE_A || place == TSR_FLIP_TILE_B || place == TSR_FLIP_SUM;
    const bool counts = !in_products || on_cpu() || atomic_load(&flips.multiplies);
    if (place == TSR_FLIP_B) atomic_store(&flips.multiplies, true);
    if (place != flips.place || !counts) return;
    atomic_fetch_add(&flips.calls, 1);
    if (atomic_fetch_sub(&flips.left, 1) != 0) return;
    const uint64_t bit = bit_of(place, bytes);
    unsigned char *at = (unsigned char *)memory + bit / 8, byte;
    if (!stream) {
        *at ^= (unsigned char)(1u << bit % 8);
        return;
    }
    CHECK_OK(on.ops->download(on.device, &byte, at, 1, stream));
    CHECK_OK(on.ops->stream_wait(on.device, stream));
    byte ^= (unsigned char)(1u << bit % 8);
    CHECK_OK(on.ops->upload(on.device, at, &byte, 1, stream));
    CHECK_OK(on.ops->stream_wait(on.device, stream));
}

#ifdef TSR_TEST_ON_GPU
static bool of_products(tsr_flip_place place) { return place >= TSR_FLIP_TILE_A && place <= TSR_FLIP_SUM; }
static bool is_word(tsr_flip_place place) { return place >= TSR_FLIP_LOOP; }

/* Those of the file that flips this place; set: what they become. */
static tsr_flip_words words_on_gpu(tsr_flip_place place, const tsr_flip_words *set) {
    tsr_flip_words now, *on_device = NULL;
#ifdef TSR_HAVE_HOPPER
    if (of_products(place) && in_panels) CHECK_OK(tsr_test_flip_words_of_products(&on_device));
#endif
    if (!on_device) CHECK_OK(tsr_test_flip_words(&on_device));
    if (set) CHECK_OK(on.ops->upload(on.device, on_device, set, sizeof *set, on.stream));
    CHECK_OK(on.ops->download(on.device, &now, on_device, sizeof now, on.stream));
    CHECK_OK(on.ops->stream_wait(on.device, on.stream));
    return now;
}
#endif

/* Of the next product flips this call of flips.place; none below 0. */
static void choose(long call) {
    atomic_store(&flips.calls, 0);
    atomic_store(&flips.left, call);
#ifdef TSR_TEST_ON_GPU
    const tsr_flip_words none = {.chosen = TSR_FLIP_NONE, .place = flips.place};
    const tsr_flip_words set = {0, call < 0 ? TSR_FLIP_NONE : (unsigned long long)call, flips.bit, flips.place};
    words_on_gpu(of_products(flips.place) ? TSR_FLIP_INTEGER : TSR_FLIP_SUM, &none);
    words_on_gpu(flips.place, &set);
#endif
}
/* Calls of flips.place since `choose`. */
static long calls_made(void) {
#ifdef TSR_TEST_ON_GPU
    if (is_word(flips.place)) return (long)words_on_gpu(flips.place, NULL).made;
#endif
    return atomic_load(&flips.calls);
}

/* ---- a product ------------------------------------------------------------------------------- */

typedef struct {
    const tsr_gemm_kernel *kernel;
    tsr_gemm_args args; /* on the device */
    size_t bytes;       /* of C */
    tsr_check_counts *counts;
    void *made; /* C, on the host */
} product;

static double element(int how) {
    const double x = (double)(int64_t)draw() * 0x1p-63;
    if (how == 0) return x;
    if (how == 1) return (double)(draw() % 19) - 9;
    if (how == 2) return draw() % 8 == 0 ? x * ldexp(1, (int)(draw() % 30)) : 0; /* wide, and sparse */
    return draw() % 4 == 0 ? x * 0x1p60 : x;                                     /* for the loop */
}

static void *filled(tsr_dtype type, int64_t elements, int how) {
    const size_t bytes = (size_t)elements * tsr_dtype_bytes(type);
    void *host = malloc(bytes), *at;
    CHECK(host != NULL, "no memory");
    for (int64_t i = 0; i < elements; i++)
        if (type == TSR_F64) ((double *)host)[i] = element(how);
        else ((float *)host)[i] = (float)element(how);
    at = test_upload(&on, host, bytes);
    free(host);
    return at;
}

static product open_product_of(const tsr_gemm_kernel *kernel, int64_t m, int64_t n, int64_t k, int how) {
    product p = {.kernel = kernel, .bytes = (size_t)(m * n) * tsr_dtype_bytes(kernel->type)};
    p.args = (tsr_gemm_args){.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n};
    p.args.a = filled(kernel->type, m * k, how);
    p.args.b = filled(kernel->type, k * n, how);
    p.args.c = filled(kernel->type, m * n, 0);
    CHECK_OK(on.ops->allocate(on.device, kernel->workspace_bytes(m, n, k), &p.args.workspace));
    CHECK_OK(on.ops->allocate(on.device, sizeof *p.counts, (void **)&p.counts));
    p.args.check = (tsr_gemm_check){p.counts, 40, 50};
    p.made = malloc(p.bytes);
    CHECK(p.made != NULL, "no memory");
    return p;
}
static product open_product(const tsr_gemm_kernel *kernel, int64_t m, int64_t n, int64_t k) {
    return open_product_of(kernel, m, n, k, (int)(draw() % 4));
}
static void close_product(product *p) {
    on.ops->release(on.device, (void *)p->args.a);
    on.ops->release(on.device, (void *)p->args.b);
    on.ops->release(on.device, p->args.c);
    on.ops->release(on.device, p->args.workspace);
    on.ops->release(on.device, p->counts);
    free(p->made);
}

static tsr_check_counts make(product *p) {
    tsr_check_counts counts;
    CHECK_OK(on.ops->fill_bytes(on.device, p->counts, 0, sizeof counts, on.stream));
    CHECK_OK(tsr_gemm_launch(p->kernel, on.device, on.stream, &p->args));
    CHECK_OK(on.ops->download(on.device, &counts, p->counts, sizeof counts, on.stream));
    CHECK_OK(on.ops->download(on.device, p->made, p->args.c, p->bytes, on.stream));
    CHECK_OK(on.ops->stream_wait(on.device, on.stream));
    return counts;
}

static tsr_check_counts make_right(product *p) {
    choose(-1);
    const tsr_check_counts counts = make(p);
    const int64_t ranges = tsr_ceil_div(p->args.k, TSR_EXACT_RANGE);
    CHECK(counts.doubtful == 0 && counts.wrong == 0, "%s, %lld x %lld x %lld: %llu rows of a right product are doubted",
          tsr_dtype_name(p->kernel->type), (long long)p->args.m, (long long)p->args.n, (long long)p->args.k,
          (unsigned long long)counts.doubtful);
    CHECK((int64_t)counts.judged == ranges * p->args.m && counts.unjudged == 0, "%llu of %lld rows, %llu not",
          (unsigned long long)counts.judged, (long long)p->args.m, (unsigned long long)counts.unjudged);
    return counts;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const tsr_gemm_kernel *find(tsr_dtype type) {
    const tsr_gemm_kernel *kernel;
    tsr_device_facts facts;
    CHECK_OK(on.ops->facts(on.device, &facts));
    CHECK_OK(tsr_gemm_find("exact", &facts, type, type, &kernel));
    return kernel;
}
static bool is_quartered(const tsr_gemm_kernel *kernel) {
#ifdef ON_CUDA
    return kernel == &tsr_gemm_quartered_f64 || kernel == &tsr_gemm_quartered_f32;
#else
    (void)kernel;
    return false;
#endif
}
static const tsr_gemm_kernel *any_kernel(void) {
    const tsr_dtype type = draw() % 2 ? TSR_F64 : TSR_F32;
#ifdef TSR_TEST_ON_GPU
    if (draw() % 3 == 0) return type == TSR_F64 ? &tsr_gemm_quartered_f64 : &tsr_gemm_quartered_f32;
#endif
    return find(type);
}

/* More than 64 blocks of rows or columns: other tiles of sums. */
static product long_product(void) {
    const int64_t lines = 64 * TSR_EXACT_BLOCK + draw_up_to(400), others = draw_up_to(140);
    const bool rows = draw() % 2;
    return open_product(any_kernel(), rows ? lines : others, rows ? others : lines, draw_up_to(140));
}

/* Shapes around those of blocks, tiles and parts, and of several of them. */
static product any_product(void) {
    static const int64_t most[] = {20, 130, 140, 300, 520, 700};
    const uint64_t count = ON_GPU ? 6 : 3;
    if (ON_GPU && draw() % 16 == 0) return long_product();
    return open_product(any_kernel(), draw_up_to(most[draw() % count]), draw_up_to(most[draw() % count]),
                        draw_up_to(most[draw() % count]));
}

static void test_clean(int products) {
    uint64_t judged = 0;
    for (int i = 0; i < products; i++) {
        product p = any_product();
        judged += make_right(&p).judged;
        close_product(&p);
    }
    CHECK(judged > 0, "no row was judged");
    if (tells) printf("%d right products: %" PRIu64 " rows judged, none doubted\n", products, judged);
}

/* More than one range, several blocks each way, and rows that the loop makes. */
static void test_large(int products) {
    product p = open_product(find(TSR_F32), 3, 5, TSR_EXACT_RANGE + 3);
    make_right(&p);
    close_product(&p);
    p = open_product(find(TSR_F64), 270, 260, 5);
    double nan = NAN;
    CHECK_OK(on.ops->upload(on.device, (double *)p.args.a + 129 * 5, &nan, sizeof nan, on.stream));
    make_right(&p);
    close_product(&p);
    for (int i = 0; ON_GPU && i < products; i++) {
        p = i % 2 == 0 ? long_product() : open_product(any_kernel(), 300, 520, 700);
        make_right(&p);
        close_product(&p);
    }
}

/* `count` flips at this place in a product, which it closes: how many of them changed C. They were found then. */
static int harmful_of(product p, tsr_flip_place place, int count, long *called) {
    int harmful = 0;
    flips.place = place;
    flips.m = p.args.m;
    flips.n = p.args.n;
    flips.k = p.args.k;
    flips.quartered = is_quartered(p.kernel);
    make_right(&p);
    const long calls = calls_made();
    *called += calls;
    void *right = malloc(p.bytes);
    CHECK(right != NULL, "no memory");
    memcpy(right, p.made, p.bytes);
    for (int i = 0; calls > 0 && i < count; i++) {
        flips.bit = draw();
        choose((long)(draw() % (uint64_t)calls));
        const tsr_check_counts counts = make(&p);
        const bool harmed = memcmp(right, p.made, p.bytes) != 0;
        CHECK(!harmed || (counts.doubtful > 0 && counts.wrong == counts.doubtful && counts.place[0].row == 40 &&
                          counts.place[0].col == 50),
              "a bit flipped in %s changed C (%s, %lld x %lld x %lld), and was not found", names[place],
              tsr_dtype_name(p.kernel->type), (long long)p.args.m, (long long)p.args.n, (long long)p.args.k);
        harmful += harmed;
    }
    free(right);
    close_product(&p);
    return harmful;
}

#ifdef TSR_EMULATE_CUDA
/* Planes of quarters, of sums of these, and of their products. On a GPU any product may be in quarters. */
static void test_quartered(void) {
    for (int place = TSR_FLIP_A; place <= TSR_FLIP_C; place++) {
        int harmful = 0;
        for (int i = 0; i < 30 && harmful < 1; i++) {
            long called = 0;
            const bool of_b = place == TSR_FLIP_B; /* halves of one side are enough, and take less time */
            const product p = open_product_of(&tsr_gemm_quartered_f32, of_b ? 40 : 300, of_b ? 300 : 40, 150, 0);
            harmful += harmful_of(p, (tsr_flip_place)place, FLIPS_EACH, &called);
            CHECK(called == 2 * TSR_EXACT_LEVELS, "%s: %ld calls in quarters", names[place], called);
        }
        CHECK(harmful > 0, "%s: no flip in quarters changed C", names[place]);
    }
}
#endif

/* On a GPU only products_hopper.cu flips panels and sums. */
static bool flips_panels(void) {
    tsr_device_facts facts;
    CHECK_OK(on.ops->facts(on.device, &facts));
#ifdef TSR_HAVE_HOPPER
    if (ON_GPU) return facts.arch == 90;
#endif
    return !ON_GPU && !on_cpu();
}

static bool is_there(int place) {
    if (place <= TSR_FLIP_LOOP || place == TSR_FLIP_INTEGER) return true;
    return on_cpu() ? place != TSR_FLIP_SUM : in_panels;
}

static void test_flips(int count) {
    const int each = tsr_min(FLIPS_EACH, count), most = tsr_max(20 * count, 400);
    for (int place = 0; place < TSR_FLIP_PLACES; place++) {
        if (!is_there(place)) continue;
        int harmful = 0, tried = 0;
        long called = 0;
        while (tried < count || (harmful == 0 && tried < most)) { /* not every product comes to every place */
            harmful += harmful_of(any_product(), (tsr_flip_place)place, each, &called);
            tried += each;
        }
        CHECK(called > 0 && harmful > 0, "%s: %ld calls, %d of %d flips changed C", names[place], called, harmful,
              tried);
        if (tells) printf("%s: %d of %d flips changed C, and were found\n", names[place], harmful, tried);
    }
}

int main(int argc, char **argv) {
    const int flipped = argc > 1 ? atoi(argv[1]) : TSR_TEST_COUNT, clean = argc > 2 ? atoi(argv[2]) : TSR_TEST_COUNT;
    tells = argc > 1;
    on = test_open();
    in_panels = flips_panels();
    test_clean(clean);
    test_large(tsr_min(clean, 20));
    test_flips(flipped);
#ifdef TSR_EMULATE_CUDA
    test_quartered();
#endif
    test_close(&on);
    return 0;
}
