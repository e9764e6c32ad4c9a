/* Plans for 1 to 64 ranks, of every schedule, simulated in one process: every element of C is written once and
 * summed over all of k once. Every element of A and B is read once a sweep or, where it stays, once in all. No step
 * leaves its buffer, cuts lie on whole units, and the order of steps can be executed one by one. Ranks of an axis make
 * the same collective calls, and memory stays within the limits. */
#include <math.h>

#include "mpi/plan/predict.h"
#include "mpi/schedule/done.h"
#include "mpi/schedule/forecast.h"
#include "mpi/schedule/schedule.h"
#include "tests/check.h"

/* summa.c; tests/mpi/schedule/ring.c, in this test's registry */
extern const tsr_schedule_ops tsr_schedule_summa, tsr_schedule_ring;

typedef struct {
    const tsr_plan *plan;
    int64_t *clock;                 /* of every buffer */
    unsigned char *written;         /* m × n */
    int64_t *multiplied;            /* m × n: how much of k; of a Gram matrix */
    int *read_a, *read_b, *read_c0; /* as stored */
    double flops;
    int64_t mirrored;  /* rows of C, of products of a stack */
    uint64_t calls[3]; /* hash of the collective calls on each axis */
} walk;

static int class_of(const tsr_plan *plan, int buffer) {
    for (int i = 0; i < TSR_SLOT_COUNT; i++)
        if (plan->slots[i].count > 0 && buffer >= plan->slots[i].first &&
            buffer < plan->slots[i].first + plan->slots[i].count)
            return i;
    CHECK(false, "buffer %d belongs to no class", buffer);
    return -1;
}

static void check_room(const walk *w, const tsr_step *step, int slot, size_t bytes) {
    const tsr_slots *s = &w->plan->slots[class_of(w->plan, step->slots[slot].buffer)];
    bytes += step->slots[slot].offset;
    CHECK(bytes <= s->bytes, "step kind %d needs %zu bytes of a buffer of %zu", (int)step->kind, bytes, s->bytes);
}

static void check_clocks(walk *w, const tsr_step *step) {
    for (int i = 0; i < TSR_STEP_SLOTS; i++) {
        const tsr_slot_use *use = &step->slots[i];
        if (use->buffer < 0) continue;
        CHECK(use->buffer < w->plan->buffers, "buffer %d of %d", use->buffer, w->plan->buffers);
        CHECK(w->clock[use->buffer] >= use->wait,
              "step kind %d would wait for a later step: buffer %d at %lld, wants %lld", (int)step->kind, use->buffer,
              (long long)w->clock[use->buffer], (long long)use->wait);
        CHECK(use->wait / TSR_SLOT_STAGES == w->clock[use->buffer] / TSR_SLOT_STAGES,
              "buffer %d is used after it was drained", use->buffer);
    }
    for (int i = 0; i < TSR_STEP_SLOTS; i++) {
        const tsr_slot_use *use = &step->slots[i];
        if (use->buffer < 0 || use->set < 0) continue;
        CHECK(use->set > w->clock[use->buffer], "the clock of buffer %d goes back", use->buffer);
        w->clock[use->buffer] = use->set;
    }
}

/* `at` and `at + count` on whole units of a side, or at its end. */
static void check_units(int64_t at, int64_t count, int64_t unit, int64_t side) {
    CHECK(at % unit == 0 && ((at + count) % unit == 0 || at + count == side),
          "%lld elements from %lld on are no whole units of %lld", (long long)count, (long long)at, (long long)unit);
}

static void count_read(walk *w, const tsr_step *step) {
    const tsr_problem *x = &w->plan->problem;
    int *count = step->operand == TSR_OPERAND_A ? w->read_a : step->operand == TSR_OPERAND_B ? w->read_b : w->read_c0;
    int64_t cols = step->operand == TSR_OPERAND_A   ? x->operand[TSR_OPERAND_A].cols
                   : step->operand == TSR_OPERAND_B ? x->operand[TSR_OPERAND_B].cols
                                                    : x->n;
    for (int64_t r = 0; r < step->rect.rows; r++)
        for (int64_t c = 0; c < step->rect.cols; c++) count[(step->rect.row + r) * cols + step->rect.col + c]++;
}

/* Of a Gram matrix, in which products overlap nowhere. */
static void count_products(walk *w, const tsr_step *step) {
    const tsr_rect *at = &step->rect;
    const int64_t k = (int64_t)llround(step->flops / 2 / (double)tsr_rect_elements(*at));
    for (int64_t i = at->row; i < at->row + at->rows; i++)
        for (int64_t j = at->col; j < at->col + at->cols; j++) w->multiplied[i * w->plan->problem.n + j] += k;
}

/* Products of a stack in one step: what they read and write lies in the buffers, and C's rows are whole products'. */
static void check_stack(const walk *w, const tsr_step *step) {
    const tsr_problem *x = &w->plan->problem;
    const int64_t before = step->batch - 1; /* products before the last */
    const size_t input = tsr_dtype_bytes(x->input);
    if (x->batch < 2) {
        CHECK(step->batch == 1, "%lld products of a single one", (long long)step->batch);
        return;
    }
    CHECK(step->batch >= 1 && step->batch * step->m == step->rect.rows && step->m * x->batch == x->m,
          "%lld products of %lld rows for %lld of %lld", (long long)step->batch, (long long)step->m,
          (long long)step->rect.rows, (long long)x->m);
    check_room(w, step, 0, (size_t)(before * step->stride_a + (step->m - 1) * step->lda + step->k) * input);
    check_room(w, step, 1, (size_t)(before * step->stride_b + (step->k - 1) * step->ldb + step->n) * input);
    check_room(w, step, 2, (size_t)(before * step->stride_c + step->m * step->ld) * tsr_dtype_bytes(x->type));
    CHECK(x->operand[TSR_OPERAND_A].common == (step->stride_a == 0) &&
              x->operand[TSR_OPERAND_B].common == (step->stride_b == 0),
          "strides %lld, %lld", (long long)step->stride_a, (long long)step->stride_b);
}

static void check_step(walk *w, const tsr_step *step) {
    const tsr_problem *x = &w->plan->problem;
    size_t type = tsr_dtype_bytes(x->type);
    /* bytes that rows of C span: download and copy out */
    const size_t copied = (size_t)((step->rect.rows - 1) * step->ld + step->rect.cols) * tsr_dtype_bytes(x->out);
    switch (step->kind) {
    case TSR_STEP_READ:
        count_read(w, step);
        check_room(w, step, 0, step->bytes);
        break;
    case TSR_STEP_UPLOAD:
        check_room(w, step, 0, step->bytes);
        check_room(w, step, 1, step->bytes);
        break;
    case TSR_STEP_COPY_IN:
    case TSR_STEP_GENERATE:
        count_read(w, step);
        check_room(w, step, 0, step->bytes);
        break;
    case TSR_STEP_GATHER:
        check_room(w, step, 0, step->bytes * (size_t)(step->operand == TSR_OPERAND_A ? w->plan->q : w->plan->p));
        break;
    case TSR_STEP_PACK: check_room(w, step, 1, (size_t)(step->m * step->ld) * type); break;
    case TSR_STEP_ZERO: check_room(w, step, 0, step->bytes); break;
    case TSR_STEP_MULTIPLY:
        w->flops += step->flops;
        if (x->gram) count_products(w, step);
        check_room(w, step, 0, (size_t)((step->m - 1) * step->lda + step->k) * tsr_dtype_bytes(x->input));
        check_room(w, step, 1, (size_t)((step->k - 1) * step->ldb + step->n) * tsr_dtype_bytes(x->input));
        check_room(w, step, 2, (size_t)(step->m * step->ld) * type);
        check_stack(w, step);
        break;
    case TSR_STEP_REDUCE:
        check_room(w, step, 0, step->bytes * (size_t)w->plan->r);
        check_room(w, step, 1, step->bytes);
        break;
    case TSR_STEP_PASS:
        check_room(w, step, 0, (size_t)((step->batch - 1) * step->stride_c + step->count) * type);
        for (int i = 1; i < TSR_STEP_SLOTS && step->slots[i].buffer >= 0; i++) check_room(w, step, i, step->bytes);
        break;
    case TSR_STEP_FINISH:
        check_room(w, step, 0, (size_t)(step->m * tsr_form_rows(tsr_problem_sums(x)) * step->ld) * type);
        check_room(w, step, 1, step->bytes);
        break;
    case TSR_STEP_TRANSPOSE:
        check_room(w, step, 0, (size_t)((step->m - 1) * step->ld + step->n) * tsr_dtype_bytes(x->out));
        check_room(w, step, 1, (size_t)(step->m * step->n) * tsr_dtype_bytes(x->out));
        break;
    case TSR_STEP_MIRROR:
        check_room(w, step, 0,
                   (size_t)((step->batch * step->m - 1) * step->ld + step->n + step->count) * tsr_dtype_bytes(x->out));
        CHECK(x->gram ? step->batch == 1 : x->mirrored && step->n == 0 && step->count == step->m && step->m == x->n,
              "%lld products of %lld rows are mirrored at once", (long long)step->batch, (long long)step->m);
        w->mirrored += step->batch * step->m;
        break;
    case TSR_STEP_DOWNLOAD:
        check_room(w, step, 0, copied);
        check_room(w, step, 1, step->bytes);
        break;
    case TSR_STEP_ADD_UP:
        check_room(w, step, 0, (size_t)((step->m - 1) * step->lda + step->k) * tsr_dtype_bytes(x->input));
        check_room(w, step, 1, (size_t)((step->k - 1) * step->ldb + step->n) * tsr_dtype_bytes(x->input));
        CHECK(step->flops == 0, "%g flops of sums of a check", step->flops);
        break;
    case TSR_STEP_JUDGE:
        check_room(w, step, 0, step->bytes);
        CHECK(step->bytes == (size_t)tsr_rect_elements(step->rect) * tsr_dtype_bytes(x->out) && step->count >= 0 &&
                  step->count + step->rect.rows <= tsr_plan_local_m(w->plan) && step->m > 0 && step->k > 0 &&
                  step->ld >= step->rect.cols,
              "rows %lld to %lld of a block are judged", (long long)step->count,
              (long long)(step->count + step->rect.rows));
        for (int64_t r = 0; r < step->rect.rows; r++)
            for (int64_t c = 0; c < step->rect.cols; c++)
                w->written[(step->rect.row + r) * x->n + step->rect.col + c]++;
        break;
    case TSR_STEP_COPY_OUT: check_room(w, step, 0, copied); /* fall through */
    case TSR_STEP_WRITE:
        check_units(step->rect.row, step->rect.rows, x->unit_m, x->m);
        check_units(step->rect.col, step->rect.cols, x->unit_n, x->n);
        for (int64_t r = 0; r < step->rect.rows; r++)
            for (int64_t c = 0; c < step->rect.cols; c++)
                w->written[(step->rect.row + r) * x->n + step->rect.col + c]++;
        break;
    }
}

static tsr_status see(void *context, const tsr_step *step) {
    walk *w = context;
    check_clocks(w, step);
    check_step(w, step);
    const bool sums = step->kind == TSR_STEP_REDUCE || step->kind == TSR_STEP_PASS;
    if (step->kind == TSR_STEP_GATHER || sums) {
        int axis = sums ? 2 : step->operand == TSR_OPERAND_A ? 0 : 1;
        w->calls[axis] = (w->calls[axis] * 31 + step->bytes + 1) * 1000003;
    }
    return TSR_OK;
}

static void check_all(const int *counts, int64_t elements, int64_t expected, const char *what) {
    for (int64_t i = 0; i < elements; i++)
        CHECK(counts[i] == expected, "element %lld of %s was read %d times, not %lld", (long long)i, what, counts[i],
              (long long)expected);
}

/* Elements of A or B come from the file or the store's memory once where they stay, else once for each of the
 * super-blocks across; where ranks do not exchange what they map or make, each of the `parts` that has something of
 * the super-block takes them. */
static int64_t times_read(const tsr_plan *plan, tsr_data_path path, bool kept, int64_t side, int64_t block,
                          int64_t unit, int parts, bool common) {
    bool alone = !tsr_plan_exchanges(plan, path);
    int64_t times = 0;
    if (plan->problem.batch > 1) return common ? plan->p : 1;
    for (int64_t at = 0; at < (kept ? 1 : side); at += block)
        times += alone ? tsr_min(parts, tsr_ceil_div(tsr_min(block, side - at), unit)) : 1;
    return times;
}

/* calls[axis] of every rank; ranks of one axis group must agree. */
static void check_calls(const tsr_plan *plan, uint64_t (*calls)[3]) {
    int p = plan->p;
    int q = plan->q;
    int r = plan->r;
    for (int rank = 0; rank < p * q * r; rank++) {
        int row = rank / (q * r);
        int col = rank / r % q;
        int depth = rank % r;
        int first[3] = {(row * q + 0) * r + depth, (0 * q + col) * r + depth, (row * q + col) * r + 0};
        for (int axis = 0; axis < 3; axis++)
            CHECK(calls[rank][axis] == calls[first[axis]][axis], "rank %d and rank %d make different calls on axis %d",
                  rank, first[axis], axis);
    }
}

/* What is on or below the diagonal is multiplied over all of k, once; what is above at most once, and little. A is
 * read once where it stays, B never where it is made of A. */
static void check_gram(const walk *w) {
    const tsr_plan *plan = w->plan;
    const tsr_problem *x = &plan->problem;
    const bool host = tsr_plan_path(plan, x->operand[TSR_OPERAND_A].path) == TSR_DATA_PATH_HOST;
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++) {
            const int64_t times = w->multiplied[i * x->n + j];
            CHECK(times == x->k || (j > i && times == 0), "element (%lld, %lld) is summed over %lld of %lld",
                  (long long)i, (long long)j, (long long)times, (long long)x->k);
        }
    CHECK(w->flops <= 2.0 * (double)x->m * (double)x->n * (double)x->k, "%g flops of half a product", w->flops);
    if (x->k == 0 || x->m == 0) return;
    const int64_t elements = x->m * x->k;
    if (tsr_plan_shares(plan)) {
        check_all(w->read_a, elements, (host ? tsr_plan_reads : tsr_plan_loads)(plan, TSR_OPERAND_A), "A");
        check_all(w->read_b, elements, 0, "B");
        return;
    }
    for (int64_t i = 0; i < elements; i++)
        CHECK(w->read_a[i] > 0 && w->read_b[i] > 0, "element %lld of A is read %d times, of B %d", (long long)i,
              w->read_a[i], w->read_b[i]);
}

static void simulate(const tsr_plan *plan) {
    const tsr_problem *x = &plan->problem;
    int active = plan->p * plan->q * plan->r;
    int64_t a = x->operand[TSR_OPERAND_A].rows * x->operand[TSR_OPERAND_A].cols;
    int64_t b = x->operand[TSR_OPERAND_B].rows * x->operand[TSR_OPERAND_B].cols;
    int64_t c = x->m * x->n;
    walk w = {.plan = plan};
    w.written = calloc((size_t)c + 1, 1);
    w.multiplied = calloc((size_t)c + 1, sizeof *w.multiplied);
    w.read_a = calloc((size_t)a + 1, sizeof(int));
    w.read_b = calloc((size_t)b + 1, sizeof(int));
    w.read_c0 = calloc((size_t)c + 1, sizeof(int));
    w.clock = calloc((size_t)plan->buffers + 1, sizeof *w.clock);
    uint64_t(*calls)[3] = calloc((size_t)active, sizeof *calls);
    for (int rank = 0; rank < active; rank++) {
        memset(w.clock, 0, (size_t)plan->buffers * sizeof *w.clock);
        memset(w.calls, 0, sizeof w.calls);
        CHECK_OK(plan->schedule->emit(plan, rank, see, &w));
        for (int i = 0; i < plan->buffers; i++)
            CHECK(w.clock[i] % TSR_SLOT_STAGES == 0, "buffer %d of rank %d is left undrained", i, rank);
        memcpy(calls[rank], w.calls, sizeof w.calls);
    }
    for (int64_t i = 0; i < c; i++)
        CHECK(w.written[i] == !tsr_plan_keeps_c(plan), "element %lld of C was written %d times", (long long)i,
              w.written[i]);
    const int parts = tsr_dtype_parts(x->operand[TSR_OPERAND_A].element.dtype) *
                      tsr_dtype_parts(x->operand[TSR_OPERAND_B].element.dtype);
    CHECK(x->gram || w.mirrored == (x->mirrored ? x->m : 0), "%lld of %lld rows are mirrored", (long long)w.mirrored,
          (long long)x->m);
    if (x->gram) check_gram(&w);
    else
        CHECK(w.flops == 2.0 * parts * (double)x->m * (double)x->n * (double)x->k, "%g flops for %lld x %lld x %lld",
              w.flops, (long long)x->m, (long long)x->n, (long long)x->k);
    if (x->k > 0 && c > 0 && !x->gram) {
        check_all(
            w.read_a, a,
            times_read(plan, x->operand[TSR_OPERAND_A].path,
                       plan->operand[TSR_OPERAND_A].keep != TSR_KEEP_NONE || plan->operand[TSR_OPERAND_A].keep_host,
                       x->n, plan->block_n, x->unit_n, plan->q, x->operand[TSR_OPERAND_A].common),
            "A");
        check_all(
            w.read_b, b,
            times_read(plan, x->operand[TSR_OPERAND_B].path,
                       plan->operand[TSR_OPERAND_B].keep != TSR_KEEP_NONE || plan->operand[TSR_OPERAND_B].keep_host,
                       x->m, plan->block_m, x->unit_m, plan->p, x->operand[TSR_OPERAND_B].common),
            "B");
        if (tsr_plan_path(plan, x->operand[TSR_OPERAND_A].path) == TSR_DATA_PATH_HOST)
            CHECK(x->batch > 1 || w.read_a[0] == tsr_plan_reads(plan, TSR_OPERAND_A),
                  "A's file is read %d times, not %lld", w.read_a[0], (long long)tsr_plan_reads(plan, TSR_OPERAND_A));
        if (tsr_plan_path(plan, x->operand[TSR_OPERAND_B].path) == TSR_DATA_PATH_HOST)
            CHECK(x->batch > 1 || w.read_b[0] == tsr_plan_reads(plan, TSR_OPERAND_B),
                  "B's file is read %d times, not %lld", w.read_b[0], (long long)tsr_plan_reads(plan, TSR_OPERAND_B));
    }
    if (x->add_c0) check_all(w.read_c0, c, 1, "C0");
    check_calls(plan, calls);
    free(calls);
    free(w.clock);
    free(w.written);
    free(w.multiplied);
    free(w.read_a);
    free(w.read_b);
    free(w.read_c0);
}

/* ---- C is read again, and compared ----------------------------------------------------------- */

/* Each rank's steps can be executed; all of A, B and C is read, C once, and each of its elements judged once. */
static void simulate_comparison(const tsr_plan *made) {
    tsr_plan plan = *made;
    const tsr_problem *x = &plan.problem;
    const int64_t a = x->operand[0].rows * x->operand[0].cols, b = x->operand[1].rows * x->operand[1].cols;
    const int64_t c = x->m * x->n;
    if (plan.r > 1 || x->gram || x->mirrored || x->add_c0 || x->k == 0 || c == 0 || tsr_problem_complex(x) ||
        x->c_path != TSR_DATA_PATH_HOST)
        return;
    const int sums = plan.slots[TSR_SLOT_SUM].count;
    plan.resources.compares = true;
    plan.compares = true;
    plan.buffers = 0;
    plan.device_bytes = 0;
    plan.host_bytes = 0;
    memset(plan.slots, 0, sizeof plan.slots);
    plan.schedule->memory(&plan, sums);
    walk w = {.plan = &plan};
    w.written = calloc((size_t)c + 1, 1);
    w.read_a = calloc((size_t)a + 1, sizeof(int));
    w.read_b = calloc((size_t)b + 1, sizeof(int));
    w.read_c0 = calloc((size_t)c + 1, sizeof(int));
    w.clock = calloc((size_t)plan.buffers + 1, sizeof *w.clock);
    for (int rank = 0; rank < plan.p * plan.q; rank++) {
        memset(w.clock, 0, (size_t)plan.buffers * sizeof *w.clock);
        CHECK_OK(plan.schedule->emit(&plan, rank, see, &w));
        for (int i = 0; i < plan.buffers; i++)
            CHECK(w.clock[i] % TSR_SLOT_STAGES == 0, "buffer %d of rank %d is left undrained", i, rank);
    }
    for (int64_t i = 0; i < c; i++)
        CHECK(w.written[i] == 1 && w.read_c0[i] == 1, "element %lld of C is read %d times and judged %d times",
              (long long)i, w.read_c0[i], w.written[i]);
    for (int64_t i = 0; i < a; i++) CHECK(w.read_a[i] > 0, "element %lld of A is not read again", (long long)i);
    for (int64_t i = 0; i < b; i++) CHECK(w.read_b[i] > 0, "element %lld of B is not read again", (long long)i);
    free(w.clock);
    free(w.written);
    free(w.read_a);
    free(w.read_b);
    free(w.read_c0);
}

/* ---- what an earlier run wrote is left out --------------------------------------------------- */

typedef struct {
    const tsr_plan *plan;
    uint64_t seed;
    int share; /* of 8 super-blocks that are done */
} some_done;

/* As good as random, the same for a place of C and its mirror. */
static bool place_done(void *context, tsr_rect rect) {
    const some_done *s = context;
    const uint64_t a = (uint64_t)tsr_min(rect.row, rect.col), b = (uint64_t)(rect.row + rect.col);
    const uint64_t mixed = ((a * 2654435761u + b) ^ s->seed) * 6364136223846793005u;
    return (int)(mixed >> 60 & 7) < s->share;
}

/* Each rank's steps can be executed, and write what is left once and nothing else. */
static void simulate_left(const tsr_plan *whole, uint64_t seed) {
    tsr_plan plan = *whole;
    struct tsr_done *done;
    some_done some = {&plan, seed, (int)(seed % 9)};
    const tsr_problem *x = &plan.problem;
    const bool keeps = plan.operand[TSR_OPERAND_A].keep != TSR_KEEP_NONE ||
                       plan.operand[TSR_OPERAND_B].keep != TSR_KEEP_NONE || plan.operand[TSR_OPERAND_A].keep_host;
    if (tsr_plan_keeps_c(&plan) || (x->gram && keeps)) return; /* none of these goes on later */
    CHECK_OK(tsr_done_open(&plan, &done));
    tsr_done_find(done, place_done, &some);
    plan.done = done;
    const int active = plan.p * plan.q * plan.r;
    const int64_t c = x->m * x->n;
    const size_t most =
        (size_t)tsr_max(c, tsr_max(x->operand[0].rows * x->operand[0].cols, x->operand[1].rows * x->operand[1].cols));
    walk w = {.plan = &plan};
    w.written = calloc((size_t)c + 1, 1);
    w.multiplied = calloc((size_t)c + 1, sizeof *w.multiplied);
    w.read_a = calloc(most + 1, sizeof(int));
    w.read_b = calloc(most + 1, sizeof(int));
    w.read_c0 = calloc(most + 1, sizeof(int));
    w.clock = calloc((size_t)plan.buffers + 1, sizeof *w.clock);
    uint64_t(*calls)[3] = calloc((size_t)active, sizeof *calls);
    for (int rank = 0; rank < active; rank++) {
        memset(w.clock, 0, (size_t)plan.buffers * sizeof *w.clock);
        memset(w.calls, 0, sizeof w.calls);
        CHECK_OK(plan.schedule->emit(&plan, rank, see, &w));
        memcpy(calls[rank], w.calls, sizeof w.calls);
    }
    int64_t left = 0;
    for (int64_t i = 0; i < c; i++) {
        const int64_t row = i / x->n / plan.block_m, col = i % x->n / plan.block_n;
        const bool out =
            done->done[tsr_max(row, x->gram ? col : row) * plan.blocks_n + tsr_min(col, x->gram ? row : col)];
        left += !out;
        CHECK(w.written[i] == !out, "element %lld of C was written %d times, super-block (%lld, %lld) is %s",
              (long long)i, w.written[i], (long long)row, (long long)col, out ? "done" : "left");
    }
    CHECK((left > 0) == (done->left > 0), "%lld super-blocks are left", (long long)done->left);
    check_calls(&plan, calls);
    tsr_done_close(done);
    free(calls);
    free(w.clock);
    free(w.written);
    free(w.multiplied);
    free(w.read_a);
    free(w.read_b);
    free(w.read_c0);
}

static uint64_t state = 1;
static int64_t pick(int64_t low, int64_t high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

static tsr_problem some_problem(void) {
    static const int64_t edges[] = {0, 1, 2, 13, 31, 32, 33, 61, 64};
    static const tsr_element types[] = {{TSR_F32, false}, {TSR_F64, false}, {TSR_F16, false}, {TSR_F32, true},
                                        {TSR_I32, false}, {TSR_U8, false},  {TSR_C64, false}, {TSR_C128, true}};
    int64_t m = edges[pick(0, 8)];
    int64_t n = edges[pick(0, 8)];
    int64_t k = edges[pick(0, 8)];
    bool ta = pick(0, 1), tb = pick(0, 1);
    tsr_operand a = {.rows = ta ? k : m, .cols = ta ? m : k, .element = types[pick(0, 7)], .transpose = ta};
    tsr_operand b = {.rows = tb ? n : k, .cols = tb ? k : n, .element = types[pick(0, 7)], .transpose = tb};
    tsr_operand c0 = {.rows = m, .cols = n, .element = types[pick(0, 7)]};
    tsr_problem problem;
    bool add = pick(0, 2) == 0;
    CHECK_OK(
        tsr_problem_make(a, b, add ? &c0 : NULL, tsr_real(pick(0, 9) == 0 ? 0 : 1), tsr_real(add ? 2 : 0), &problem));
    if (pick(0, 1)) {
        problem.operand[TSR_OPERAND_A].path = (tsr_data_path)pick(0, 2);
        problem.operand[TSR_OPERAND_B].path = (tsr_data_path)pick(0, 2);
        problem.c_path = pick(0, 1) ? TSR_DATA_PATH_MAPPED : TSR_DATA_PATH_HOST;
    }
    if (problem.alpha == 1 && !add && pick(0, 3) == 0) problem.c_path = TSR_DATA_PATH_DEVICE;
    if (pick(0, 2) == 0) {
        problem.unit_m = pick(1, 20);
        problem.unit_n = pick(1, 20);
    }
    problem.operand[TSR_OPERAND_A].on_disk = pick(0, 1);
    problem.operand[TSR_OPERAND_B].on_disk = pick(0, 1);
    problem.c_on_disk = pick(0, 1);
    problem.c0_on_disk = pick(0, 1);
    return problem;
}

static tsr_resources some_resources(void) {
    tsr_resources res = {.ranks = (int)pick(1, 64),
                         .host_memory = pick(0, 1),
                         .device_limit = (size_t)1 << pick(6, 26),
                         .host_limit = (size_t)1 << pick(6, 26),
                         .panel = pick(0, 1) ? 0 : pick(1, 40),
                         .multiple = pick(0, 4) == 0 ? 16 : 1,
                         .edge = pick(0, 16)};
    res.device_exchange = !res.host_memory && pick(0, 1);
    res.rates = tsr_rates_typical(!res.host_memory, res.device_exchange, TSR_F32, 1);
    /* so that bytes count beside steps */
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) res.rates.lane[lane] *= pow(10, -(double)pick(4, 8));
    if (pick(0, 1)) {
        res.grid[0] = (int)pick(1, res.ranks);
        res.grid[1] = (int)pick(1, res.ranks / res.grid[0]);
        res.grid[2] = (int)pick(1, res.ranks / (res.grid[0] * res.grid[1]));
    }
    return res;
}

/* The same as a Gram matrix of its first operand. */
static tsr_problem some_gram(void) {
    tsr_problem problem = some_problem();
    tsr_operand a = problem.operand[TSR_OPERAND_A], b = a;
    const tsr_problem other = problem;
    b.transpose = !a.transpose;
    CHECK_OK(tsr_problem_make(a, b, NULL, tsr_real(other.alpha), tsr_real(0), &problem));
    if (tsr_problem_complex(&problem)) return some_gram();
    problem.unit_m = other.unit_m;
    problem.unit_n = other.unit_n;
    problem.c_path = other.c_path;
    problem.c_on_disk = other.c_on_disk;
    CHECK_OK(tsr_problem_take_gram(&problem, (tsr_triangle)pick(0, 2)));
    return problem;
}

typedef struct {
    int made, refused, pieces; /* plans whose steps multiply panels in pieces */
    int bands, growing, kept_b, kept_host[TSR_OPERANDS];
    int parts, as_cut; /* for runs that go on later; of them those cut again as before */
} plan_counts;

static void check_limits(const tsr_plan *plan, const tsr_resources *res) {
    const double limit =
        (double)(res->host_memory && res->device_limit < res->host_limit ? res->device_limit : res->host_limit);
    CHECK(plan->device_bytes <= (double)res->device_limit && plan->host_bytes <= limit,
          "device %g of %zu, host %g of %g", plan->device_bytes, res->device_limit, plan->host_bytes, limit);
    CHECK(plan->p * plan->q * plan->r <= res->ranks, "%d x %d x %d on %d ranks", plan->p, plan->q, plan->r, res->ranks);
}

/* Products of all ranks beyond one for each panel that SUMMA multiplies. */
static bool in_pieces(const tsr_plan *plan) {
    tsr_plan whole = *plan;
    tsr_forecast one, other;
    int64_t more = 0;
    whole.schedule = &tsr_schedule_summa;
    for (int rank = 0; rank < plan->p * plan->q * plan->r; rank++) {
        CHECK_OK(tsr_plan_forecast(plan, rank, &one));
        CHECK_OK(tsr_plan_forecast(&whole, rank, &other));
        more += one.tiles - other.tiles;
    }
    return more > 0;
}

static void plan_once(const tsr_problem *problem, const tsr_resources *res, plan_counts *n) {
    tsr_plan plan;
    tsr_status status = tsr_plan_make(problem, res, &plan);
    if (status == TSR_ERR_LIMIT) {
        CHECK(strstr(tsr_message(), "memory") && strstr(tsr_message(), "or more"), "message was: %s", tsr_message());
        n->refused++;
        return;
    }
    CHECK(status == TSR_OK, "%s", tsr_message());
    CHECK(!res->schedule || plan.schedule == res->schedule, "planned for %s", plan.schedule->name);
    check_limits(&plan, res);
    simulate(&plan);
    simulate_comparison(&plan);
    simulate_left(&plan, state >> 33);
    tsr_resources parts = *res; /* as one that goes on later, and with its cut again */
    tsr_plan first, again;
    parts.parts = true;
    if (state >> 40 & 3 || problem->batch > 1 || problem->c_path == TSR_DATA_PATH_DEVICE) parts.parts = false;
    if (parts.parts && tsr_plan_make(problem, &parts, &first) == TSR_OK) {
        simulate_left(&first, state >> 33);
        parts.cut_m = first.block_m;
        parts.cut_n = first.block_n;
        CHECK_OK(tsr_plan_make(problem, &parts, &again));
        CHECK(again.block_m <= first.block_m && again.block_n <= first.block_n, "%lld x %lld, cut to %lld x %lld",
              (long long)again.block_m, (long long)again.block_n, (long long)first.block_m, (long long)first.block_n);
        simulate_left(&again, state >> 35);
        n->parts++;
        n->as_cut += again.block_m == first.block_m && again.block_n == first.block_n;
    }
    const tsr_operand_plan *a = &plan.operand[TSR_OPERAND_A], *b = &plan.operand[TSR_OPERAND_B];
    n->made++;
    n->pieces += in_pieces(&plan);
    n->bands += a->keep == TSR_KEEP_BAND;
    n->growing += tsr_plan_grows(&plan) && plan.blocks_m > 1 && plan.blocks_n > 1;
    n->kept_b += a->keep == TSR_KEEP_NONE && b->keep == TSR_KEEP_ALL;
    for (int i = 0; i < TSR_OPERANDS; i++) n->kept_host[i] += plan.operand[i].keep_host;
}

static void test_random_plans(const tsr_schedule_ops *schedule) {
    plan_counts n = {0};
    state = 1;
    for (int i = 0; i < 4000; i++) {
        tsr_problem problem = some_problem();
        tsr_resources res = some_resources();
        res.schedule = schedule;
        if (problem.c_path == TSR_DATA_PATH_DEVICE) res.grid[2] = res.grid[0] > 0;
        plan_once(&problem, &res, &n);
    }
    const int ways[] = {n.bands, n.growing, n.kept_b, n.kept_host[TSR_OPERAND_A], n.kept_host[TSR_OPERAND_B]};
    for (int i = 0; i < 5; i++)
        CHECK(ways[i] > 10, "way %d of keeping panels was taken %d times: the cases no longer cover it", i, ways[i]);
    CHECK(n.parts > 50 && 10 * n.as_cut > 9 * n.parts, "%d plans of parts, %d cut as before", n.parts, n.as_cut);
    CHECK(n.made > 1000 && n.refused > 10, "%d plans made, %d refused: the cases no longer cover both", n.made,
          n.refused);
    CHECK(schedule != &tsr_schedule_ring || n.pieces > 50, "%d plans multiply in pieces", n.pieces);
}

/* Products whose ranges of k are added in their order, by ranks that split k. */
static void test_ordered_plans(void) {
    plan_counts n = {0};
    int chains = 0;
    state = 5;
    for (int i = 0; i < 6000; i++) {
        tsr_problem problem = i % 4 == 0 ? some_gram() : some_problem();
        tsr_resources res = some_resources();
        tsr_plan plan;
        if (problem.c_path == TSR_DATA_PATH_DEVICE) continue;
        tsr_problem_fix_blocks(&problem, 2 * pick(1, 8), 2 * pick(1, 8));
        res.schedule = &tsr_schedule_summa;
        res.multiple = 1;
        if (res.panel > 0) res.panel = tsr_round_up(res.panel, problem.blocks.k);
        res.grid[2] = (int)tsr_min(res.grid[2], tsr_max(1, tsr_ceil_div(problem.k, problem.blocks.k)));
        plan_once(&problem, &res, &n);
        chains += tsr_plan_make(&problem, &res, &plan) == TSR_OK && tsr_plan_chains(&plan);
    }
    CHECK(chains > 300 && n.made > 1000 && n.refused > 10, "%d of %d plans hand on sums, %d refused", chains, n.made,
          n.refused);
}

static void test_gram_plans(const tsr_schedule_ops *schedule) {
    plan_counts n = {0};
    state = 7;
    for (int i = 0; i < 3000; i++) {
        tsr_problem problem = some_gram();
        tsr_resources res = some_resources();
        res.schedule = schedule;
        if (pick(0, 1)) res.grid[0] = res.grid[1] = res.grid[0] > 0; /* B is made of A */
        if (res.grid[0] > 0 && res.grid[1] == 0) res.grid[1] = 1;
        if (res.grid[0] > 0 && res.grid[2] == 0) res.grid[2] = 1;
        if (problem.c_path == TSR_DATA_PATH_DEVICE) res.grid[2] = res.grid[0] > 0;
        plan_once(&problem, &res, &n);
    }
    const int ways[] = {n.bands, n.kept_host[TSR_OPERAND_A], n.made - n.bands, n.refused};
    for (int i = 0; i < 4; i++) CHECK(ways[i] > 10, "Gram matrices go way %d %d times", i, ways[i]);
    CHECK(n.kept_host[TSR_OPERAND_B] == 0, "B is kept on the host, though it is made of A");
}

/* Of a Gram matrix that stays on GPUs, where k is not split, every rank makes about as many products as the others. */
static void test_gram_balance(void) {
    const int64_t n = 32768;
    tsr_operand a = {.rows = n, .cols = n, .element = {TSR_F32, false}, .path = TSR_DATA_PATH_DEVICE}, b = a;
    b.transpose = true;
    for (int ranks = 2; ranks <= 8; ranks++) {
        tsr_problem problem;
        tsr_plan plan;
        tsr_prediction prediction;
        tsr_resources res = {.ranks = ranks,
                             .device_limit = (size_t)120 << 30,
                             .host_limit = (size_t)120 << 30,
                             .multiple = 1,
                             .device_exchange = true};
        double most = 0;
        double all = 0;
        res.rates = tsr_rates_typical(true, true, TSR_F32, ranks);
        CHECK_OK(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(0), &problem));
        problem.c_path = TSR_DATA_PATH_DEVICE;
        CHECK_OK(tsr_problem_take_gram(&problem, TSR_TRIANGLE_FULL));
        CHECK_OK(tsr_plan_make(&problem, &res, &plan));
        for (int rank = 0; rank < ranks; rank++) {
            tsr_forecast one = {0};
            if (rank < plan.p * plan.q * plan.r) CHECK_OK(tsr_plan_forecast(&plan, rank, &one));
            most = fmax(most, one.flops);
            all += one.flops;
        }
        tsr_plan_predict(&plan, &prediction);
        if (getenv("TSR_TEST_SHOW"))
            printf("%d ranks: %d x %d x %d, %lld x %lld super-blocks, most %.3f of the mean, all %.3f of a general "
                   "product, predicted %.3f of most\n",
                   ranks, plan.p, plan.q, plan.r, (long long)plan.blocks_m, (long long)plan.blocks_n,
                   most / all * ranks, all / tsr_problem_flops(&problem), prediction.flops / most);
        CHECK(most * ranks <= 1.05 * all, "%d ranks as %d x %d: the busiest makes %.3f of the mean", ranks, plan.p,
              plan.q, most * ranks / all);
        CHECK(fabs(prediction.flops - most) <= 0.05 * most, "%d ranks: %g flops predicted of %g", ranks,
              prediction.flops, most);
    }
}

static tsr_operand stack_operand(int64_t rows, int64_t cols) {
    static const tsr_element types[] = {{TSR_F32, false}, {TSR_F64, false}, {TSR_F32, true}, {TSR_I16, false}};
    tsr_operand x = {.rows = rows, .cols = cols, .element = types[pick(0, 3)], .transpose = pick(0, 1)};
    if (x.transpose) {
        x.rows = cols;
        x.cols = rows;
    }
    return x;
}

/* Of each product all is read once, by one rank; a matrix for all, once by each. The model counts the bytes. */
static void check_stack_plan(const tsr_plan *plan) {
    tsr_prediction prediction;
    tsr_forecast most = {0};
    const int ranks = plan->p;
    for (int rank = 0; rank < ranks; rank++) {
        tsr_forecast one;
        CHECK_OK(tsr_plan_forecast(plan, rank, &one));
        CHECK(one.tiles >= 1 && one.tiles <= plan->blocks_m, "rank %d has %lld launches", rank, (long long)one.tiles);
        for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
            most.lane_bytes[lane] = fmax(most.lane_bytes[lane], one.lane_bytes[lane]);
    }
    tsr_plan_predict(plan, &prediction);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        if (lane != TSR_LANE_MULTIPLY && (lane != TSR_LANE_DOWNLOAD || !plan->resources.host_memory))
            CHECK(fabs(prediction.lane_bytes[lane] - most.lane_bytes[lane]) <= 1e-9 * most.lane_bytes[lane],
                  "the %s lane: %g bytes predicted, %g are moved", tsr_lane_name((tsr_lane)lane),
                  prediction.lane_bytes[lane], most.lane_bytes[lane]);
    CHECK(prediction.seconds > 0 && isfinite(prediction.seconds), "%g s", prediction.seconds);
    CHECK(tsr_exchange_bound(&plan->problem, ranks) == 0, "products of a stack have nothing to exchange");
}

/* Stacks of small products, of which a rank makes as many at a time as fit. */
static void test_stacks(void) {
    int made = 0;
    int refused = 0;
    int grouped = 0;
    state = 7;
    for (int i = 0; i < 800; i++) {
        const int64_t m = pick(1, 20);
        const bool mirrored = pick(0, 3) == 0;
        const int64_t n = mirrored ? m : pick(1, 20);
        const int64_t k = pick(1, 20);
        tsr_operand a = stack_operand(m, k), b = stack_operand(k, n);
        tsr_operand c0 = {.rows = m, .cols = n, {TSR_F32, false}};
        const bool add = pick(0, 3) == 0 && !mirrored;
        tsr_problem problem;
        tsr_resources res = some_resources();
        tsr_plan plan;
        CHECK_OK(
            tsr_problem_make(a, b, add ? &c0 : NULL, (tsr_complex){1, 0}, (tsr_complex){add ? 2 : 0, 0}, &problem));
        problem.operand[pick(0, 1)].common = pick(0, 2) == 0 && !mirrored;
        problem.mirrored = mirrored;
        tsr_problem_stack(&problem, pick(2, 40));
        CHECK(problem.m % problem.batch == 0 && tsr_problem_product_rows(&problem) == m, "%lld rows of %lld products",
              (long long)problem.m, (long long)problem.batch);
        res.multiple = 1;
        res.device_limit = (size_t)1 << pick(10, 18);
        res.host_limit = (size_t)1 << pick(10, 18);
        res.grid[0] = pick(0, 3) == 0 ? (int)tsr_min(res.ranks, pick(1, problem.batch)) : 0;
        res.grid[1] = res.grid[2] = res.grid[0] > 0;
        const tsr_status status = tsr_plan_make(&problem, &res, &plan);
        refused += status == TSR_ERR_LIMIT;
        if (status == TSR_ERR_LIMIT) continue;
        CHECK(status == TSR_OK, "%s", tsr_message());
        CHECK(plan.q == 1 && plan.r == 1 && (res.grid[0] == 0 || plan.p == res.grid[0]), "%d x %d x %d", plan.p, plan.q,
              plan.r);
        check_limits(&plan, &res);
        simulate(&plan);
        check_stack_plan(&plan);
        made++;
        grouped += plan.blocks_m > 2;
    }
    CHECK(made > 400 && refused > 50 && grouped > 20, "%d made, %d refused, %d in groups: the cases no longer cover it",
          made, refused, grouped);
    tsr_problem problem;
    tsr_plan plan;
    tsr_resources res = {.ranks = 4, .grid = {2, 2, 1}, .device_limit = 1 << 20, .host_limit = 1 << 20};
    const tsr_operand square = {.rows = 8, .cols = 8, .element = {TSR_F32, false}};
    CHECK_OK(tsr_problem_make(square, square, NULL, (tsr_complex){1, 0}, (tsr_complex){0, 0}, &problem));
    tsr_problem_stack(&problem, 9);
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_USAGE, "p x 1 x 1");
}

/* By name, and by itself. */
static void test_schedules(void) {
    const tsr_schedule_ops *found;
    tsr_problem problem = some_problem();
    CHECK_OK(tsr_schedule_find("auto", &found));
    CHECK(!found, "auto is %s", found->name);
    for (int i = 0; tsr_schedules()[i]; i++) {
        CHECK_OK(tsr_schedule_find(tsr_schedules()[i]->name, &found));
        CHECK(found == tsr_schedules()[i], "%s is another", found->name);
        test_random_plans(found);
        test_gram_plans(found);
    }
    CHECK_FAILS(tsr_schedule_find("rinq", &found), TSR_ERR_USAGE, "; did you mean 'ring'?");
    CHECK(!found, "an unknown name is a schedule");
    /* equals: the first */
    tsr_resources res = {.ranks = 4, .device_limit = 1 << 30, .host_limit = 1 << 30, .multiple = 1};
    tsr_plan plan;
    res.rates = tsr_rates_typical(true, false, TSR_F32, 1);
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.schedule == &tsr_schedule_summa, "planned for %s", plan.schedule->name);
}

static void test_refusals(void) {
    tsr_operand a = {.rows = 3, .cols = 4, .element = {TSR_F32, false}};
    tsr_operand b = {.rows = 5, .cols = 6, .element = {TSR_F32, false}};
    tsr_operand c0 = {.rows = 3, .cols = 7, .element = {TSR_F32, false}};
    tsr_problem problem;
    CHECK_FAILS(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(0), &problem), TSR_ERR_SHAPE, "3 x 4");
    b.rows = 4;
    CHECK_FAILS(tsr_problem_make(a, b, &c0, tsr_real(1), tsr_real(1), &problem), TSR_ERR_SHAPE, "C0");
    CHECK_FAILS(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(1), &problem), TSR_ERR_USAGE, "--add");
    CHECK_OK(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(0), &problem));
    tsr_resources res = {.ranks = 3,
                         .host_memory = true,
                         .device_limit = 1 << 30,
                         .host_limit = 1 << 30,
                         .grid = {2, 2, 1},
                         .multiple = 1};
    res.rates = tsr_rates_typical(false, false, TSR_F32, 1);
    tsr_plan plan;
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_USAGE, "needs 4 ranks");
    res.grid[0] = res.grid[1] = 1;
    res.grid[2] = 2;
    problem.c_path = TSR_DATA_PATH_DEVICE;
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_USAGE, "r is 2");
    res.grid[2] = 1;
    problem.alpha = 2;
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_USAGE, "alpha is 2");
    problem.alpha = 1;
    problem.c_path = TSR_DATA_PATH_HOST;
    res.host_limit = 10;
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_LIMIT, "--host-memory");
    res.host_limit = 1 << 30;
    res.device_limit = 10;
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_LIMIT, "--memory");
}

static tsr_problem typed(tsr_dtype a, tsr_dtype b, int64_t k, double alpha, double beta, tsr_dtype c0) {
    const tsr_operand to_a = {.rows = 2, .cols = k, .element = {a, false}},
                      to_b = {.rows = k, .cols = 3, .element = {b, false}};
    const tsr_operand to_c0 = {.rows = 2, .cols = 3, .element = {c0, false}};
    tsr_problem problem;
    CHECK_OK(tsr_problem_make(to_a, to_b, &to_c0, tsr_real(alpha), tsr_real(beta), &problem));
    return problem;
}

#define FAR ((int64_t)1 << 40)

typedef struct {
    tsr_dtype a, b;
    int64_t k;
    double alpha, beta;
    tsr_dtype c0;
    enum { F32, WIDENED, F64 } made; /* in fp64 for the sums' sake; for an operand's */
    bool inexact;                    /* even so */
} typed_case;

static const typed_case typed_cases[] = {
    {TSR_F32, TSR_F32, FAR, 1, 0, TSR_F32, F32, false},       {TSR_F16, TSR_BF16, FAR, 1, 0, TSR_F32, F32, false},
    {TSR_F64, TSR_U8, 1, 1, 0, TSR_F32, F64, false},          {TSR_I16, TSR_F32, FAR, 1, 0, TSR_F32, F32, false},
    {TSR_F16, TSR_I32, FAR, 1, 0, TSR_F32, F64, false},       {TSR_F32, TSR_F32, 9, 1, 1, TSR_I64, F32, false},
    {TSR_U8, TSR_U8, 258, 1, 0, TSR_F32, F32, false},         {TSR_U8, TSR_U8, 259, 1, 0, TSR_F32, WIDENED, false},
    {TSR_I8, TSR_I8, 1024, -1, 0, TSR_F32, F32, false},       {TSR_I8, TSR_I8, 1025, 0.5, 0, TSR_F32, WIDENED, false},
    {TSR_I8, TSR_I8, 1024, -1.5, 0, TSR_F32, WIDENED, false}, {TSR_U16, TSR_I16, 1, 1, 0, TSR_F32, WIDENED, false},
    {TSR_U8, TSR_U8, 9, 1, 1, TSR_F64, F32, false},           {TSR_U8, TSR_U8, 9, 1, 1, TSR_I8, F32, false},
    {TSR_U8, TSR_U8, 9, 1, -1, TSR_U32, WIDENED, false},      {TSR_U8, TSR_U8, 9, 0, 300, TSR_U16, WIDENED, false},
    {TSR_U8, TSR_U8, FAR, 0, 0, TSR_U16, F32, false},         {TSR_U8, TSR_U8, FAR, 1, 0, TSR_F32, WIDENED, true},
    {TSR_I32, TSR_U8, 1 << 14, 1, 0, TSR_F32, F64, false},    {TSR_I32, TSR_I32, 1, 1, 0, TSR_F32, F64, true},
    {TSR_I64, TSR_U8, 1, 1, 0, TSR_F32, F64, true},           {TSR_U8, TSR_U8, 1, 1, 1, TSR_I64, WIDENED, true}};

static void check_case(int i, const typed_case *one) {
    char why[512];
    tsr_problem problem = typed(one->a, one->b, one->k, one->alpha, one->beta, one->c0);
    const tsr_dtype made = one->made == F32 ? TSR_F32 : TSR_F64;
    const bool widened = one->made == WIDENED;
    CHECK(problem.type == made && problem.out == made && problem.input == made, "case %d is made in %s, C is %s", i,
          tsr_dtype_name(problem.type), tsr_dtype_name(problem.out));
    CHECK(tsr_problem_widened(&problem, why) == widened && !why[0] == !widened, "case %d: '%s'", i, why);
    CHECK(tsr_problem_inexact(&problem, why) == one->inexact && !why[0] == !one->inexact, "case %d: '%s'", i, why);
    /* As f32: made in f64 only where an operand asks for it, and said to be inexact where sums wanted it. */
    tsr_problem_store_as(&problem, TSR_F32);
    CHECK(problem.out == TSR_F32 && problem.type == (one->made == F64 ? TSR_F64 : TSR_F32), "case %d as f32", i);
    CHECK(!tsr_problem_widened(&problem, why), "case %d as f32: '%s'", i, why);
    if (widened) {
        CHECK(tsr_problem_inexact(&problem, why), "case %d as f32 is exact", i);
        CHECK(strstr(why, "f32 holds whole numbers up to 2^24"), "case %d as f32: '%s'", i, why);
        CHECK(!strstr(why, "--type f64") == one->inexact, "case %d as f32: '%s'", i, why);
    }
    tsr_problem_store_as(&problem, TSR_F64);
    CHECK(problem.out == TSR_F64 && problem.type == TSR_F64 && problem.input == TSR_F64, "case %d as f64", i);
}

/* In what a product is made, and what is said of it: by the types alone, or for what sums of integers may come to. */
static void test_types(void) {
    char why[512];
    for (int i = 0; i < (int)(sizeof typed_cases / sizeof *typed_cases); i++) check_case(i, &typed_cases[i]);
    tsr_problem problem = typed(TSR_U8, TSR_U8, 1, 1, 0, TSR_F32);
    tsr_problem_store_as(&problem, TSR_F16);
    CHECK(problem.type == TSR_F32 && tsr_problem_inexact(&problem, why), "f16: '%s'", why);
    CHECK(strstr(why, "f16 holds whole numbers up to 2^11"), "f16: '%s'", why);
    problem = typed(TSR_U64, TSR_I64, INT64_MAX, -1e300, 1e300, TSR_U64); /* the longest text */
    CHECK(tsr_problem_inexact(&problem, why) && strstr(why, "stay below that") && strlen(why) < 300, "'%s'", why);
}

/* What --memory in the refusal says must really work. */
static void test_advice(void) {
    tsr_operand a = {.rows = 1000, .cols = 1000, .element = {TSR_F32, false}};
    tsr_problem problem;
    CHECK_OK(tsr_problem_make(a, a, NULL, tsr_real(1), tsr_real(0), &problem));
    for (size_t limit = 1; limit <= 16; limit *= 16) { /* less than one sum, and more */
        tsr_resources res = {
            .ranks = 1, .device_limit = limit, .host_limit = (size_t)1 << 40, .multiple = 1, .grid = {1, 1, 1}};
        res.rates = tsr_rates_typical(true, false, TSR_F32, 1);
        tsr_plan plan;
        CHECK(tsr_plan_make(&problem, &res, &plan) == TSR_ERR_LIMIT, "%zu bytes were enough", limit);
        const char *at = strstr(tsr_message(), "--memory ");
        CHECK(at, "message was: %s", tsr_message());
        res.device_limit = strtoull(at + 9, NULL, 10);
        CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    }
}

static void test_large(void) {
    tsr_operand a = {.rows = (int64_t)1 << 20, .cols = (int64_t)1 << 20, .element = {TSR_F64, false}};
    tsr_problem problem;
    CHECK_OK(tsr_problem_make(a, a, NULL, tsr_real(1), tsr_real(0), &problem));
    tsr_resources res = {.ranks = 64,
                         .device_exchange = true,
                         .device_limit = (size_t)120 << 30,
                         .host_limit = (size_t)64 << 30,
                         .multiple = 1};
    res.rates = tsr_rates_typical(true, true, TSR_F64, 1);
    tsr_plan plan;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.p * plan.q * plan.r == 64, "a large product leaves ranks idle: %d x %d x %d", plan.p, plan.q, plan.r);
    tsr_forecast forecast;
    double flops = 0;
    for (int rank = 0; rank < 64; rank++) {
        CHECK_OK(tsr_plan_forecast(&plan, rank, &forecast));
        flops += forecast.flops;
    }
    CHECK(flops == 2.0 * 1048576.0 * 1048576.0 * 1048576.0, "%g flops", flops);
}

/* side × side × side in fp32; A, B and C go the same way. */
static tsr_problem square(int64_t side, tsr_data_path path) {
    tsr_operand a = {.rows = side, .cols = side, .element = {TSR_F32, false}, .path = path};
    tsr_problem problem;
    CHECK_OK(tsr_problem_make(a, a, NULL, tsr_real(1), tsr_real(0), &problem));
    problem.c_path = path;
    return problem;
}

/* Devices with room, that exchange panels among them, at typical rates. */
static tsr_resources gpus(int ranks) {
    return (tsr_resources){.ranks = ranks,
                           .device_exchange = true,
                           .device_limit = (size_t)100 << 30,
                           .host_limit = (size_t)64 << 30,
                           .multiple = 1,
                           .rates = tsr_rates_typical(true, true, TSR_F32, 1)};
}

/* Files as slow to write as to read, on devices with room for all of A and B: C is cut so that most of it is written
 * while the rest is read. Without room it is not cut further than it must be. */
static void test_writing_while_reading(void) {
    tsr_problem problem = square(49152, TSR_DATA_PATH_HOST);
    tsr_resources res = gpus(4);
    tsr_plan plan;
    tsr_prediction prediction;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    tsr_plan_predict(&plan, &prediction);
    const double read = prediction.lane_seconds[TSR_LANE_READ], write = prediction.lane_seconds[TSR_LANE_WRITE];
    CHECK(plan.operand[TSR_OPERAND_A].keep == TSR_KEEP_ALL && plan.operand[TSR_OPERAND_B].keep == TSR_KEEP_ALL &&
              plan.blocks_m > 2 && plan.blocks_n > 2,
          "%lld x %lld super-blocks", (long long)plan.blocks_m, (long long)plan.blocks_n);
    CHECK(prediction.seconds < 0.8 * (read + write) && prediction.seconds > fmax(read, write),
          "%g s, %g to read and %g to write", prediction.seconds, read, write);
    /* 2 x 2 x 1 and 1 x 2 x 2 exchange as many bytes and take as long */
    problem.operand[TSR_OPERAND_A].path = problem.operand[TSR_OPERAND_B].path = problem.c_path = TSR_DATA_PATH_MAPPED;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.r == 1 && plan.p == 2 && plan.q == 2, "grid %d x %d x %d", plan.p, plan.q, plan.r);
    problem.c_path = TSR_DATA_PATH_DEVICE; /* nothing leaves */
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.blocks_m == 1 && plan.blocks_n == 1, "C stays, and is cut into %lld x %lld", (long long)plan.blocks_m,
          (long long)plan.blocks_n);
}

/* Files on a disk: C in bands of whole rows, which can be written while A is read; where a slow kernel leaves the
 * disk time, in squares as from memory. Pieces of rows are read slowly, and written when nothing is read. */
static void test_on_disk(void) {
    tsr_problem problem = square(24576, TSR_DATA_PATH_HOST);
    tsr_resources res = gpus(2);
    res.rates.lane[TSR_LANE_MULTIPLY] = 200e12;
    tsr_plan memory, disk, forced;
    tsr_prediction from_memory, from_disk, cut;
    CHECK_OK(tsr_plan_make(&problem, &res, &memory));
    tsr_plan_predict(&memory, &from_memory);
    problem.operand[TSR_OPERAND_A].on_disk = problem.operand[TSR_OPERAND_B].on_disk = problem.c_on_disk = true;
    CHECK_OK(tsr_plan_make(&problem, &res, &disk));
    tsr_plan_predict(&disk, &from_disk);
    CHECK(memory.blocks_n > 2, "%lld super-blocks across in memory", (long long)memory.blocks_n);
    CHECK(disk.q == 1 && disk.blocks_n == 1 && disk.blocks_m > 4 && disk.operand[TSR_OPERAND_B].keep == TSR_KEEP_ALL,
          "grid %d x %d x %d, %lld x %lld super-blocks on a disk", disk.p, disk.q, disk.r, (long long)disk.blocks_m,
          (long long)disk.blocks_n);
    const double *lanes = from_disk.lane_seconds;
    CHECK(lanes[TSR_LANE_WRITE] < 1.01 * from_memory.lane_seconds[TSR_LANE_WRITE] &&
              from_disk.seconds < lanes[TSR_LANE_READ] + lanes[TSR_LANE_WRITE],
          "%g s, of which %g to read and %g to write", from_disk.seconds, lanes[TSR_LANE_READ], lanes[TSR_LANE_WRITE]);
    CHECK(lanes[TSR_LANE_READ] > from_memory.lane_seconds[TSR_LANE_READ],
          "pieces of %lld elements are read as fast as whole rows", (long long)disk.panel);
    /* halves of rows */
    res.grid[0] = 1;
    res.grid[1] = 2;
    res.grid[2] = 1;
    CHECK_OK(tsr_plan_make(&problem, &res, &forced));
    tsr_plan_predict(&forced, &cut);
    CHECK(cut.seconds >= cut.lane_seconds[TSR_LANE_READ] + cut.lane_seconds[TSR_LANE_WRITE],
          "%g s with %g to read and %g to write", cut.seconds, cut.lane_seconds[TSR_LANE_READ],
          cut.lane_seconds[TSR_LANE_WRITE]);
    res.grid[0] = res.grid[1] = res.grid[2] = 0;
    res.rates.lane[TSR_LANE_MULTIPLY] = 8e12;
    CHECK_OK(tsr_plan_make(&problem, &res, &disk));
    CHECK(disk.blocks_m > 1 && disk.blocks_n > 1, "a slow kernel waits for all of B: %lld x %lld super-blocks",
          (long long)disk.blocks_m, (long long)disk.blocks_n);
}

/* Where nothing is read into host memory, one panel of all of k, which is added to no sums; as few as fit; and as
 * many as before where files are read. */
static void test_wide_panels(void) {
    const int64_t side = 32768;
    tsr_problem problem = square(side, TSR_DATA_PATH_DEVICE);
    tsr_resources res = gpus(1);
    tsr_plan plan;
    tsr_prediction wide, forced;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    tsr_plan_predict(&plan, &wide);
    CHECK(plan.panel == side && plan.slots[TSR_SLOT_PANEL_A].count == 1 && plan.slots[TSR_SLOT_PANEL_B].count == 1,
          "panels of k = %lld", (long long)plan.panel);
    res.panel = 2048;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    tsr_plan_predict(&plan, &forced);
    CHECK(plan.panel == 2048 && forced.seconds > wide.seconds, "%g s in 16 panels, %g in one", forced.seconds,
          wide.seconds);
    res.panel = 0;
    res.device_limit = (size_t)8 << 30;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.panel < side && plan.device_bytes <= (double)res.device_limit && plan.slots[TSR_SLOT_PANEL_A].count == 2,
          "panels of k = %lld in 8 GiB", (long long)plan.panel);
    res.device_limit = (size_t)100 << 30;
    problem.operand[TSR_OPERAND_A].path = problem.operand[TSR_OPERAND_B].path = problem.c_path = TSR_DATA_PATH_HOST;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.panel <= side / 8, "files are read in panels of k = %lld", (long long)plan.panel);
}

/* Matrices in the node's memory: each rank copies whole panels where a slow kernel leaves the time, and pieces of
 * them, which are exchanged, where none does. */
static void test_copies_panels(void) {
    const double bytes = 4.0 * 32768 * 32768;
    tsr_problem problem = square(32768, TSR_DATA_PATH_MAPPED);
    tsr_resources res = gpus(4);
    res.grid[0] = res.grid[1] = 2;
    res.grid[2] = 1;
    for (int way = 0; way < 4; way++) { /* a slow kernel, a fast one, files, host staging */
        tsr_plan plan;
        tsr_forecast rank;
        res.rates.lane[TSR_LANE_MULTIPLY] = way == 1 ? 900e12 : 50e12;
        res.device_exchange = way < 3;
        problem.operand[TSR_OPERAND_A].path = problem.operand[TSR_OPERAND_B].path =
            way == 2 ? TSR_DATA_PATH_HOST : TSR_DATA_PATH_MAPPED;
        CHECK_OK(tsr_plan_make(&problem, &res, &plan));
        CHECK_OK(tsr_plan_forecast(&plan, 3, &rank));
        const bool whole = way == 0 || way == 3, exchanged = way == 1 || way == 2;
        CHECK(plan.copies_panels == (way == 0), "way %d: copies_panels is %d", way, plan.copies_panels);
        CHECK(rank.lane_bytes[TSR_LANE_UPLOAD] == (whole ? bytes : bytes / 2), "way %d: %g bytes uploaded", way,
              rank.lane_bytes[TSR_LANE_UPLOAD]);
        CHECK((rank.lane_bytes[TSR_LANE_EXCHANGE] > 0) == exchanged, "way %d: %g bytes exchanged", way,
              rank.lane_bytes[TSR_LANE_EXCHANGE]);
    }
}

int main(void) {
    test_copies_panels();
    test_ordered_plans();
    test_wide_panels();
    test_writing_while_reading();
    test_on_disk();
    test_refusals();
    test_types();
    test_advice();
    test_large();
    test_schedules();
    test_gram_balance();
    test_stacks();
    return 0;
}
