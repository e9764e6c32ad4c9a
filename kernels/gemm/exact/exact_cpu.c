/* `exact` on the CPU (exact_rules.h), by residues.
 * Mapping: threads take blocks of C of TSR_EXACT_BLOCK rows and columns, and go along each range of k in steps of
 *   DEPTH, whose integers they keep: one modulus after the other (exact_cpu_residues.h). First come all lines, rows
 *   of A and columns of B.
 * Check: sums of integers (exact_cpu_check.h); elements that are made by themselves, or by the loop, are made twice.
 * Memory: in the workspace, for each thread the integers of a step and a block's sums, 1.8 MB; for each line its proof.
 * Requirements: none. Error bound: max(4, √k)·u; in fp64 k·u where the loop makes an element. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "kernels/gemm/exact/exact.h"
#include "kernels/gemm/exact/exact_cpu_check.h"
#include "kernels/gemm/flips.h"
#include "kernels/gemm/registry.h"

enum { BLOCK = TSR_EXACT_BLOCK, DEPTH = TSR_EXACT_STEP, THREADS_MAX = 64 };

/* A thread's memory. */
typedef struct {
    tsr_exact_integers a, b; /* of a step; of B, columns */
    tsr_exact_line_sum sum_a, sum_b;
    tsr_exact_plane of_a, of_b;                         /* residues of a step, or magnitudes, or patterns */
    tsr_exact_products products[TSR_EXACT_MODULI_MOST]; /* of residues; the first of magnitudes or patterns, too */
    tsr_exact_checksums checksums;
    uint8_t levels[BLOCK][BLOCK]; /* of elements, by magnitudes */
    bool left[BLOCK][BLOCK];      /* elements that are made by themselves */
    int left_count;
} bench;

/* A range of a product. */
typedef struct {
    const tsr_gemm_args *args;
    tsr_dtype type;
    int64_t l0, depth;
    bool accumulate;
    tsr_exact_natural limits[TSR_EXACT_LEVELS];
    tsr_exact_remainders remainders[TSR_EXACT_LEVELS];
    double allowed;
    tsr_exact_proof *rows, *columns; /* m, n */
    bench *benches;
    atomic_int threads;
    atomic_long next;                               /* line, or block */
    atomic_long blocks[TSR_EXACT_LEVELS + 1], left; /* see tsr_gemm_fallbacks */
    atomic_long wrong;                              /* rows */
} range;

static double element_at(const range *r, const void *from, int64_t index) {
    return r->type == TSR_F64 ? ((const double *)from)[index] : (double)((const float *)from)[index];
}
static double of_a(const range *r, int64_t i, int64_t l) {
    return element_at(r, r->args->a, i * r->args->lda + r->l0 + l);
}
static double of_b(const range *r, int64_t l, int64_t j) {
    return element_at(r, r->args->b, (r->l0 + l) * r->args->ldb + j);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static double of_line(const range *r, bool column, int64_t index, int64_t l) {
    return column ? of_b(r, l, index) : of_a(r, index, l);
}

static tsr_exact_line look_at_part(const range *r, bool column, int64_t index, int64_t l0) {
    tsr_exact_line part = {.exponent = TSR_EXACT_EMPTY, .lowest = TSR_EXACT_WHOLE};
    const int64_t end = tsr_min(l0 + TSR_EXACT_PART, r->depth);
    for (int64_t l = l0; l < end; l++) {
        const double value = of_line(r, column, index, l);
        part.exponent = tsr_max(part.exponent, tsr_exact_exponent(r->type, value));
        part.lowest = tsr_min(part.lowest, tsr_exact_lowest(value));
        part.count += value != 0;
    }
    const double scale = tsr_exact_quantum_scale(part.exponent);
    for (int64_t l = l0; scale > 0 && l < end; l++) {
        const uint64_t q = tsr_exact_quantum(of_line(r, column, index, l), scale);
        part.sum += q;
        part.squares += q * q;
    }
    return part;
}

static void prove(const range *r, bool column, int64_t index) {
    tsr_exact_line parts[TSR_EXACT_RANGE / TSR_EXACT_PART];
    tsr_exact_line line = {.exponent = TSR_EXACT_EMPTY, .lowest = TSR_EXACT_WHOLE};
    const int64_t count = tsr_ceil_div(r->depth, TSR_EXACT_PART);
    for (int64_t i = 0; i < count; i++) {
        parts[i] = look_at_part(r, column, index, i * TSR_EXACT_PART);
        line.exponent = tsr_max(line.exponent, parts[i].exponent);
        line.lowest = tsr_min(line.lowest, parts[i].lowest);
    }
    for (int64_t i = 0; i < count; i++) tsr_exact_join(&line, parts[i]);
    (column ? r->columns : r->rows)[index] = tsr_exact_prove(r->type, line, r->limits);
}

/* ---- a block --------------------------------------------------------------------------------- */

typedef struct {
    int64_t i0, j0;
    int rows, columns;
} place;

/* A block's rows of A or columns of B within a range, in memory. */
typedef struct {
    const range *r;
    const void *first;     /* element */
    int64_t across, along; /* elements from line to line, and from one to the next of a line */
    int lines;
    const tsr_exact_proof *proofs;
} side;
static side rows_of(const range *r, place p) {
    const tsr_gemm_args *x = r->args;
    const char *a = x->a;
    return (side){r, a + (size_t)(p.i0 * x->lda + r->l0) * tsr_dtype_bytes(r->type), x->lda, 1, p.rows, r->rows + p.i0};
}
static side columns_of(const range *r, place p) {
    const tsr_gemm_args *x = r->args;
    const char *b = x->b;
    return (side){
        r, b + (size_t)(r->l0 * x->ldb + p.j0) * tsr_dtype_bytes(r->type), 1, x->ldb, p.columns, r->columns + p.j0};
}

/* Elements of a step, of few lines at a time: of columns what a line of the cache holds. */
enum { TOGETHER = 8 };
#define LOAD_LINES(name, type)                                                                                         \
    static void name(const side *from, int first, int lines, int64_t l0, int depth, double to[TOGETHER][DEPTH]) {      \
        const type *x = (const type *)from->first + first * from->across + l0 * from->along;                           \
        if (from->along == 1)                                                                                          \
            for (int i = 0; i < lines; i++)                                                                            \
                for (int l = 0; l < depth; l++) to[i][l] = (double)x[i * from->across + l];                            \
        else                                                                                                           \
            for (int l = 0; l < depth; l++)                                                                            \
                for (int i = 0; i < lines; i++) to[i][l] = (double)x[i * from->across + l * from->along];              \
    }
LOAD_LINES(load_f64, double)
LOAD_LINES(load_f32, float)

/* Makes something of a line's elements of a step: integers of a level, or what stands for them in a proof. */
typedef void make_line(const range *r, const tsr_exact_proof *line, int level, const double *values, int depth,
                       void *to);
/* Of all lines, each `bytes` behind the one before. */
static void make_lines(const side *from, make_line *make, int level, int64_t l0, int depth, void *to, size_t bytes) {
    double values[TOGETHER][DEPTH];
    for (int first = 0; first < from->lines; first += TOGETHER) {
        const int lines = (int)tsr_min(TOGETHER, from->lines - first);
        (from->r->type == TSR_F64 ? load_f64 : load_f32)(from, first, lines, l0, depth, values);
        for (int i = 0; i < lines; i++)
            make(from->r, from->proofs + first + i, level, values[i], depth, (char *)to + (size_t)(first + i) * bytes);
    }
}

static void magnitudes(const range *r, const tsr_exact_proof *line, int level, const double *values, int depth,
                       void *to) {
    (void)level;
    tsr_exact_take_magnitudes(values, depth, tsr_exact_magnitude_scale(r->type, line->exponent, line->grain), to);
}
static void patterns(const range *r, const tsr_exact_proof *line, int level, const double *values, int depth,
                     void *to) {
    (void)r;
    const double scale = tsr_exact_power(line->shifts[level]);
    int16_t *own = to;
    for (int l = 0; l < depth; l++) own[l] = (int16_t)tsr_exact_pattern(values[l], scale);
}
static void integers(const range *r, const tsr_exact_proof *line, int level, const double *values, int depth,
                     void *to) {
    (void)r;
    tsr_exact_round_line(values, depth, tsr_exact_power(line->shifts[level]), to);
}

/* own->products[0]: the product of a block's bytes, which elements stand for in a proof. */
static void multiply_bytes(const range *r, place p, bench *own, make_line *make) {
    const side rows = rows_of(r, p), columns = columns_of(r, p);
    memset(own->products[0], 0, sizeof own->products[0]);
    for (int64_t l0 = 0; l0 < r->depth; l0 += DEPTH) {
        const int depth = (int)tsr_min(DEPTH, r->depth - l0);
        make_lines(&rows, make, TSR_EXACT_LAST, l0, depth, own->of_a, sizeof own->of_a[0]);
        make_lines(&columns, make, TSR_EXACT_LAST, l0, depth, own->of_b, sizeof own->of_b[0]);
        tsr_exact_multiply_planes(own->of_a, p.rows, own->of_b, p.columns, depth, own->products[0]);
    }
}

static bool unprovable(const range *r, place p) {
    bool any = false;
    for (int i = 0; i < p.rows; i++) any |= tsr_exact_unprovable(r->rows + p.i0 + i);
    for (int j = 0; j < p.columns; j++) any |= tsr_exact_unprovable(r->columns + p.j0 + j);
    return any;
}

/* The level that its elements need, by magnitudes: own->levels, and the highest of them. */
static int level_by_magnitudes(const range *r, place p, bench *own) {
    int most = 0;
    multiply_bytes(r, p, own, magnitudes);
    for (int i = 0; i < p.rows; i++)
        for (int j = 0; j < p.columns; j++) {
            const int level = tsr_exact_level(r->rows + p.i0 + i, r->columns + p.j0 + j, r->depth, r->allowed,
                                              own->products[0][i][j]);
            own->levels[i][j] = (uint8_t)level;
            most = tsr_max(most, level);
        }
    return most;
}
/* own->left: elements that need this level. */
static void leave(place p, int level, bench *own) {
    own->left_count = 0;
    for (int i = 0; i < p.rows; i++)
        for (int j = 0; j < p.columns; j++) {
            own->left[i][j] = own->levels[i][j] == level;
            own->left_count += own->left[i][j];
        }
}
static int level_of(const range *r, place p, bench *own) {
    const int level = level_by_magnitudes(r, p, own);
    leave(p, TSR_EXACT_LAST, own);
    if (tsr_exact_are_few(level, own->left_count)) return TSR_EXACT_LAST - 1;
    leave(p, TSR_EXACT_LOOP, own);
    if (own->left_count == 0 || unprovable(r, p)) return level;
    multiply_bytes(r, p, own, patterns);
    own->left_count = 0;
    for (int i = 0; i < p.rows; i++)
        for (int j = 0; j < p.columns; j++) {
            own->left[i][j] = own->left[i][j] && !tsr_exact_meets_well(own->products[0][i][j]);
            own->left_count += own->left[i][j];
        }
    return tsr_exact_settled(own->left_count);
}

/* Adds a value to C, or stores it. */
static void put(const range *r, int64_t i, int64_t j, double value) {
    const int64_t at = i * r->args->ldc + j;
    if (r->type == TSR_F64) {
        double *c = (double *)r->args->c + at;
        *c = tsr_one_nan_f64(r->accumulate ? *c + value : value);
    } else {
        float *c = (float *)r->args->c + at;
        *c = tsr_one_nan_f32(r->accumulate ? *c + (float)value : (float)value);
    }
}

/* An element that takes the last level by itself. */
static double alone_at_last(const range *r, int64_t i, int64_t j) {
    const int shift_a = r->rows[i].shifts[TSR_EXACT_LAST], shift_b = r->columns[j].shifts[TSR_EXACT_LAST];
    const double scale_a = tsr_exact_power(shift_a), scale_b = tsr_exact_power(shift_b);
    tsr_exact_integer sum = 0;
    for (int64_t l = 0; l < r->depth; l++) sum += tsr_exact_pair(of_a(r, i, l), scale_a, of_b(r, l, j), scale_b);
    return tsr_exact_value(r->type, sum, shift_a + shift_b);
}

/* The sum of an element that is left to the loop: over pairs that meet. */
static double sum_of_pairs(const range *r, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t l = 0; l < r->depth; l++)
        if (of_a(r, i, l) != 0 && of_b(r, l, j) != 0) sum = fma(of_a(r, i, l), of_b(r, l, j), sum);
    return sum;
}

static double sum_of_all(const range *r, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t l = 0; l < r->depth; l++) sum = fma(of_a(r, i, l), of_b(r, l, j), sum);
    return sum;
}

/* An element that is made by itself. No sum of integers tells what it must be: the check makes it twice. */
typedef double make_element(const range *r, int64_t i, int64_t j);
static double made(range *r, make_element *make, int64_t i, int64_t j) {
    double value = make(r, i, j);
    TSR_FLIP(TSR_FLIP_LOOP, NULL, &value, sizeof value);
    if (!r->args->check.counts) return value;
    make_element *volatile once_more = make; /* the compiler does not know that it is the same */
    const double again = once_more(r, i, j);
    if (tsr_exact_bits(value) != tsr_exact_bits(again)) atomic_fetch_add(&r->wrong, 1);
    return value;
}

static void make_by_loop(range *r, place p) {
    for (int64_t i = p.i0; i < p.i0 + p.rows; i++)
        for (int64_t j = p.j0; j < p.j0 + p.columns; j++) put(r, i, j, made(r, sum_of_all, i, j));
}

/* A step's products are added, and, where they are to be checked, those of the sums of its lines. */
static void multiply_step(const tsr_exact_remainders *remainders, place p, int depth, bool checks, bench *own) {
    for (int i = 0; i < remainders->count; i++) {
        const int modulus = remainders->of[i].p;
        tsr_exact_take_residues(own->a, p.rows, checks ? &own->sum_a : NULL, depth, modulus, own->of_a);
        tsr_exact_take_residues(own->b, p.columns, checks ? &own->sum_b : NULL, depth, modulus, own->of_b);
        TSR_FLIP(TSR_FLIP_TILE_A, NULL, own->of_a, sizeof own->of_a);
        TSR_FLIP(TSR_FLIP_TILE_B, NULL, own->of_b, sizeof own->of_b);
        tsr_exact_multiply_planes(own->of_a, p.rows + checks, own->of_b, p.columns + checks, depth, own->products[i]);
    }
}

static void make_at(range *r, place p, int level, bench *own) {
    const bool checks = r->args->check.counts != NULL;
    const tsr_exact_remainders *remainders = &r->remainders[level];
    const size_t bytes = (size_t)remainders->count * sizeof own->products[0];
    const side rows = rows_of(r, p), columns = columns_of(r, p);
    make_element *alone = level == TSR_EXACT_LAST ? sum_of_pairs : alone_at_last;
    tsr_exact_integer x[BLOCK];
    memset(own->products, 0, bytes);
    memset(&own->checksums, 0, sizeof own->checksums);
    for (int64_t l0 = 0; l0 < r->depth; l0 += DEPTH) {
        const int depth = (int)tsr_min(DEPTH, r->depth - l0);
        make_lines(&rows, integers, level, l0, depth, own->a, sizeof own->a[0]);
        make_lines(&columns, integers, level, l0, depth, own->b, sizeof own->b[0]);
        if (checks) tsr_exact_add_lines(own->a, p.rows, depth, &own->sum_a);
        if (checks) tsr_exact_add_lines(own->b, p.columns, depth, &own->sum_b);
        TSR_FLIP(TSR_FLIP_A, NULL, own->a, sizeof own->a);
        TSR_FLIP(TSR_FLIP_B, NULL, own->b, sizeof own->b);
        multiply_step(remainders, p, depth, checks, own);
    }
    TSR_FLIP(TSR_FLIP_C, NULL, own->products, bytes);
    for (int i = 0; i < p.rows; i++) {
        tsr_exact_integers_of_row(remainders, own->products, i, p.columns, x);
        TSR_FLIP(TSR_FLIP_INTEGER, NULL, x, (size_t)p.columns * sizeof x[0]);
        if (checks) tsr_exact_check_row(&own->checksums, remainders, own->products, i, p.columns, x);
        for (int j = 0; j < p.columns; j++) {
            const int shifts = r->rows[p.i0 + i].shifts[level] + r->columns[p.j0 + j].shifts[level];
            put(r, p.i0 + i, p.j0 + j,
                own->left[i][j] ? made(r, alone, p.i0 + i, p.j0 + j) : tsr_exact_value(r->type, x[j], shifts));
        }
    }
    if (!checks) return;
    atomic_fetch_add(&r->wrong, tsr_exact_check_close(&own->checksums, remainders, own->products, p.rows, p.columns));
}

static void make_block(range *r, place p, bench *own) {
    const int level = level_of(r, p, own);
    atomic_fetch_add(&r->blocks[level], 1);
    if (level != TSR_EXACT_LOOP) atomic_fetch_add(&r->left, own->left_count);
    if (level == TSR_EXACT_LOOP) make_by_loop(r, p);
    else make_at(r, p, level, own);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *prove_lines(void *context) {
    range *r = context;
    const int64_t m = r->args->m, lines = m + r->args->n;
    for (int64_t at; (at = atomic_fetch_add(&r->next, 1)) < lines;) prove(r, at >= m, at >= m ? at - m : at);
    return NULL;
}

static void *make_blocks(void *context) {
    range *r = context;
    bench *own = r->benches + atomic_fetch_add(&r->threads, 1);
    const int64_t across = tsr_ceil_div(r->args->n, BLOCK), blocks = tsr_ceil_div(r->args->m, BLOCK) * across;
    for (int64_t at; (at = atomic_fetch_add(&r->next, 1)) < blocks;) {
        const int64_t i0 = at / across * BLOCK, j0 = at % across * BLOCK;
        make_block(r,
                   (place){.i0 = i0,
                           .j0 = j0,
                           .rows = (int)tsr_min(BLOCK, r->args->m - i0),
                           .columns = (int)tsr_min(BLOCK, r->args->n - j0)},
                   own);
    }
    return NULL;
}

/* What a thread cannot be started for, the others do. */
static void share(range *r, int most, void *(*work)(void *)) {
    pthread_t ids[THREADS_MAX];
    int started = 0;
    atomic_store(&r->next, 0);
    atomic_store(&r->threads, 0);
    while (started < most - 1 && pthread_create(&ids[started], NULL, work, r) == 0) started++;
    work(r);
    for (int i = 0; i < started; i++) pthread_join(ids[i], NULL);
}

/* ---- the kernel as the contract wants it ----------------------------------------------------- */

static int64_t blocks_of(int64_t m, int64_t n) { return tsr_ceil_div(m, BLOCK) * tsr_ceil_div(n, BLOCK); }

static size_t workspace_bytes(int64_t m, int64_t n, int64_t k) {
    const int64_t threads = tsr_min(THREADS_MAX, blocks_of(m, n));
    if (k == 0) return 0;
    return (size_t)threads * sizeof(bench) + (size_t)(m + n) * sizeof(tsr_exact_proof);
}

static void clear(const tsr_gemm_args *args, tsr_dtype type) {
    const size_t bytes = tsr_dtype_bytes(type);
    for (int64_t i = 0; i < args->m; i++)
        memset((char *)args->c + (size_t)(i * args->ldc) * bytes, 0, (size_t)args->n * bytes);
}

/* Counts a range's rows; those that are wrong, all at once, belong to this launch's place. */
static void judge(range *r) {
    tsr_check_counts *counts = r->args->check.counts;
    const uint64_t wrong = (uint64_t)atomic_exchange(&r->wrong, 0);
    counts->judged += (uint64_t)r->args->m;
    for (uint64_t i = 0; i < wrong; i++)
        tsr_check_note_doubtful(counts, true, r->args->check.place_row, r->args->check.place_col);
}

_Static_assert(TSR_GEMM_LEVELS == TSR_EXACT_LOOP + 1, "each level is counted");

static tsr_status launch(const tsr_gemm_args *args, tsr_dtype type) {
    if (args->k == 0) {
        if (!args->accumulate) clear(args, type);
        return TSR_OK;
    }
    const int64_t threads = tsr_min(THREADS_MAX, blocks_of(args->m, args->n));
    const int most = (int)tsr_min(threads, tsr_cpu_threads(tsr_cpu_cores()));
    range r = {.args = args, .type = type, .benches = args->workspace};
    r.rows = (tsr_exact_proof *)(r.benches + threads);
    r.columns = r.rows + args->m;
    for (int level = 0; level < TSR_EXACT_LEVELS; level++) {
        r.limits[level] = tsr_exact_limit(tsr_exact_moduli(type, level));
        tsr_exact_start_remainders(type, level, &r.remainders[level]);
    }
    for (r.l0 = 0; r.l0 < args->k; r.l0 += TSR_EXACT_RANGE) {
        r.depth = tsr_min(TSR_EXACT_RANGE, args->k - r.l0);
        r.allowed = tsr_exact_allowed(type, r.depth);
        r.accumulate = args->accumulate || r.l0 > 0;
        share(&r, most, prove_lines);
        share(&r, most, make_blocks);
        if (args->check.counts) judge(&r);
    }
    tsr_gemm_fallbacks *counted = args->fallbacks;
    for (int level = 0; counted && level < TSR_GEMM_LEVELS; level++)
        counted->levels[level] += (uint64_t)r.blocks[level];
    if (counted) counted->left += (uint64_t)r.left;
    return TSR_OK;
}

static tsr_status launch_f64(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    (void)device;
    (void)stream;
    return launch(args, TSR_F64);
}
static tsr_status launch_f32(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    (void)device;
    (void)stream;
    return launch(args, TSR_F32);
}

#define EXACT(suffix, code)                                                                                            \
    const tsr_gemm_kernel tsr_gemm_exact_cpu_##suffix = {.name = "exact",                                              \
                                                         .what = TSR_EXACT_WHAT,                                       \
                                                         .device = TSR_DEVICE_CPU,                                     \
                                                         .input = code,                                                \
                                                         .type = code,                                                 \
                                                         .accuracy = TSR_ACCURACY_IEEE,                                \
                                                         .error_factor = TSR_EXACT_ERROR_FACTOR,                       \
                                                         .error_grows = true,                                          \
                                                         .checks = true,                                               \
                                                         .multiple = 1,                                                \
                                                         .speed_rank = 0,                                              \
                                                         .workspace_bytes = workspace_bytes,                           \
                                                         .launch = launch_##suffix}

EXACT(f32, TSR_F32);
EXACT(f64, TSR_F64);
