/* A plan's steps, gone through one by one (walk.h). */
#include "tests/mpi/plan/walk.h"

#include <math.h>

#include "mpi/plan/predict.h"
#include "mpi/schedule/done.h"
#include "mpi/schedule/forecast.h"
#include "mpi/schedule/schedule.h"
#include "tests/check.h"

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

/* With counts for as many elements of A, B and C. */
static walk begin(const tsr_plan *plan, int64_t a, int64_t b, int64_t c) {
    walk w = {.plan = plan};
    w.written = calloc((size_t)c + 1, 1);
    w.multiplied = calloc((size_t)c + 1, sizeof *w.multiplied);
    w.read_a = calloc((size_t)a + 1, sizeof(int));
    w.read_b = calloc((size_t)b + 1, sizeof(int));
    w.read_c0 = calloc((size_t)c + 1, sizeof(int));
    w.clock = calloc((size_t)plan->buffers + 1, sizeof *w.clock);
    return w;
}
static void forget(walk *w) {
    free(w->clock);
    free(w->written);
    free(w->multiplied);
    free(w->read_a);
    free(w->read_b);
    free(w->read_c0);
}

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

void tsr_test_simulate(const tsr_plan *plan) {
    const tsr_problem *x = &plan->problem;
    int active = plan->p * plan->q * plan->r;
    int64_t a = x->operand[TSR_OPERAND_A].rows * x->operand[TSR_OPERAND_A].cols;
    int64_t b = x->operand[TSR_OPERAND_B].rows * x->operand[TSR_OPERAND_B].cols;
    int64_t c = x->m * x->n;
    walk w = begin(plan, a, b, c);
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
    forget(&w);
}

/* ---- C is read again, and compared ----------------------------------------------------------- */

/* Each rank's steps can be executed; all of A, B and C is read, C once, and each of its elements judged once. */
void tsr_test_simulate_comparison(const tsr_plan *made) {
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
    walk w = begin(&plan, a, b, c);
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
    forget(&w);
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
void tsr_test_simulate_left(const tsr_plan *whole, uint64_t seed) {
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
    const int64_t a = x->operand[0].rows * x->operand[0].cols, b = x->operand[1].rows * x->operand[1].cols;
    const int64_t most = tsr_max(c, tsr_max(a, b));
    walk w = begin(&plan, most, most, most);
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
    forget(&w);
}
