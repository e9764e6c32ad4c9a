/* Redistribution of random matrices on real ranks: random layouts, random rectangles, messages of a few elements; what
 * arrives, what comes back, and what must stay as it was. Then the lists that plans of up to 64 ranks ask for,
 * simulated in one process. */
#include "mpi/distribute/redistribute.h"

#include "mpi/schedule/schedule.h"
#include "tests/check.h"

#define ROUNDS 60

static uint64_t state;

static int64_t below(int64_t limit) { /* the same on every rank */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)limit);
}

static tsr_dealt random_side(int parts) {
    static const int64_t blocks[] = {1, 2, 3, 7, 16, 64, 1000};
    return (tsr_dealt){below(9) == 0 ? below(3) : below(150), blocks[below(7)], parts, (int)below(parts)};
}

/* A part of [0, length), now and then nothing, or all. */
static tsr_span random_part(int64_t length) {
    const int64_t kind = below(6), start = below(length + 1);
    if (kind == 0) return (tsr_span){start, 0};
    if (kind < 3) return (tsr_span){0, length};
    return (tsr_span){start, below(length - start + 1)};
}

static tsr_deal random_layout(int ranks) {
    const int p = 1 + (int)below(ranks), q = 1 + (int)below(ranks / p);
    tsr_deal x = {.rows = random_side(p), .cols = random_side(q), .ranks_by_columns = below(2)};
    const tsr_span rows = random_part(x.rows.length), cols = random_part(x.cols.length);
    x.part = (tsr_rect){rows.start, cols.start, rows.count, cols.count};
    return below(2) ? tsr_deal_transposed(x) : x;
}

/* What stands at an element of the whole matrix, and what comes back there. */
static uint64_t value_at(int64_t row, int64_t col, bool back) {
    return (uint64_t)(row * 1000 + col + 1 + 7777777 * back);
}

static void put(void *at, size_t element, uint64_t value) {
    for (size_t i = 0; i < element; i++) ((uint8_t *)at)[i] = (uint8_t)(value >> (i % 8 * 8));
}
static bool is(const void *at, size_t element, uint64_t value) {
    uint8_t wanted[TSR_ELEMENT_BYTES_MAX];
    put(wanted, element, value);
    return memcmp(at, wanted, element) == 0;
}

typedef struct {
    tsr_distributed matrix;
    int64_t rows, cols; /* of this rank's array */
    size_t element;
} local;

/* Calls for each element of this rank's array, by a second way than the code under test. */
static void each(const local *l, int rank, bool back_expected, bool check) {
    const tsr_deal *x = &l->matrix.deal;
    int my_row, my_col;
    if (!tsr_deal_place(x, rank, &my_row, &my_col)) return;
    int64_t i = 0;
    for (int64_t row = 0; row < x->rows.length; row++) {
        if ((row / x->rows.block + x->rows.first) % x->rows.parts != my_row) continue;
        int64_t j = 0;
        for (int64_t col = 0; col < x->cols.length; col++) {
            if ((col / x->cols.block + x->cols.first) % x->cols.parts != my_col) continue;
            char *at = (char *)l->matrix.data + (size_t)(i * l->matrix.ld + j++) * l->element;
            const bool inside = row >= x->part.row && row < x->part.row + x->part.rows && col >= x->part.col &&
                                col < x->part.col + x->part.cols;
            const uint64_t wanted = value_at(row, col, back_expected && inside);
            if (!check) put(at, l->element, wanted);
            else CHECK(is(at, l->element, wanted), "rank %d: (%lld, %lld)", rank, (long long)row, (long long)col);
        }
        CHECK(j == l->cols, "%lld columns, and %lld counted", (long long)l->cols, (long long)j);
        for (int64_t pad = j * (int64_t)l->element; check && pad < l->matrix.ld * (int64_t)l->element; pad++)
            CHECK(((uint8_t *)l->matrix.data)[(size_t)(i * l->matrix.ld) * l->element + (size_t)pad] == 0xee,
                  "behind row %lld of rank %d", (long long)row, rank);
        i++;
    }
    CHECK(i == l->rows, "%lld rows, and %lld counted", (long long)l->rows, (long long)i);
}

static local make_local(const tsr_world *w, tsr_deal deal) {
    static const tsr_dtype types[] = {TSR_F16, TSR_F32, TSR_F64, TSR_C128};
    local l = {.matrix = {.deal = deal, .dtype = types[below(4)]}};
    const int64_t more = below(4);
    l.element = tsr_dtype_bytes(l.matrix.dtype);
    tsr_deal_local(&deal, w->rank, &l.rows, &l.cols);
    l.matrix.ld = l.cols + more;
    const size_t bytes = (size_t)(l.rows * l.matrix.ld) * l.element;
    l.matrix.data = bytes > 0 && l.cols > 0 ? malloc(bytes) : NULL;
    if (l.matrix.data) memset(l.matrix.data, 0xee, bytes);
    CHECK_OK(tsr_distributed_check(&l.matrix, "A", w->rank, w->ranks));
    if (l.matrix.data) each(&l, w->rank, false, false);
    return l;
}

/* Cuts the part at random lines and gives each cell to a random rank, some to none where `some`. */
static tsr_rects deal_cells(const tsr_world *w, const tsr_deal *x) {
    tsr_rects mine = {.rect = calloc(64, sizeof *mine.rect)};
    const int64_t down = 1 + below(7), across = 1 + below(7);
    const int64_t ranks = 1 + below(w->ranks);
    for (int64_t i = 0; i < down; i++)
        for (int64_t j = 0; j < across; j++) {
            const tsr_span rows = tsr_partition(x->part.rows, down, i), cols = tsr_partition(x->part.cols, across, j);
            const bool empty = rows.count == 0 || cols.count == 0;
            if (below(ranks) == w->rank && !empty)
                mine.rect[mine.count++] = (tsr_rect){rows.start, cols.start, rows.count, cols.count};
        }
    return mine;
}

static void visit_holdings(const tsr_holdings *h, const local *l, bool back) {
    const tsr_rect *part = &l->matrix.deal.part;
    for (int64_t n = 0; n < h->count; n++)
        for (int64_t r = 0; r < h->holding[n].rect.rows; r++)
            for (int64_t c = 0; c < h->holding[n].rect.cols; c++) {
                const tsr_holding *x = &h->holding[n];
                const int64_t row = part->row + x->rect.row + r, col = part->col + x->rect.col + c;
                char *at = (char *)x->data + (size_t)(r * x->ld + c) * l->element;
                if (back) put(at, l->element, value_at(row, col, true));
                else
                    CHECK(is(at, l->element, value_at(row, col, false)), "(%lld, %lld) arrived wrong", (long long)row,
                          (long long)col);
            }
}

static void check_moved(const tsr_world *w, const tsr_redistribution *r, const tsr_moved *moved) {
    const tsr_moved expected = tsr_redistribute_forecast(r, w->rank, w->ranks);
    CHECK(moved->sent == expected.sent && moved->received == expected.received && moved->copied == expected.copied,
          "rank %d: %g sent, %g received, %g copied, forecast %g, %g, %g", w->rank, moved->sent, moved->received,
          moved->copied, expected.sent, expected.received, expected.copied);
}

static void test_random(const tsr_world *w) {
    const tsr_deal deal = random_layout(w->ranks);
    local l = make_local(w, deal);
    tsr_rects rects = deal_cells(w, &deal);
    tsr_holdings mine;
    tsr_rects_of_ranks all;
    tsr_moved moved;
    CHECK_OK(tsr_holdings_make(&rects, NULL, &l.matrix, w->rank, false, &mine));
    CHECK_OK(tsr_holdings_allocate(&mine, l.element));
    CHECK_OK(tsr_rects_gather(w, &mine, &all));
    tsr_redistribution r = {&l.matrix, &mine, &all, false, 1 + (int)below(3), (size_t)(64 << below(8))};
    CHECK_OK(tsr_redistribute(w, &r, &moved));
    check_moved(w, &r, &moved);
    visit_holdings(&mine, &l, false);
    if (l.matrix.data) each(&l, w->rank, false, true);
    visit_holdings(&mine, &l, true);
    r.back = true;
    CHECK_OK(tsr_redistribute(w, &r, &moved));
    check_moved(w, &r, &moved);
    if (l.matrix.data) each(&l, w->rank, true, true);
    tsr_rects_of_ranks_free(&all);
    tsr_holdings_free(&mine);
    tsr_rects_free(&rects);
    free(l.matrix.data);
}

/* Large enough for several threads: the same answers. */
static void test_threads(const tsr_world *w) {
    tsr_deal x = {.rows = {1500, 64, w->ranks, 0}, .cols = {1400, 5, 1, 0}, .part = {3, 2, 1490, 1390}};
    local l = make_local(w, x);
    tsr_span rows = tsr_partition(x.part.rows, w->ranks, w->rank);
    tsr_rect rect = {rows.start, 0, rows.count, x.part.cols};
    const tsr_rects rects = {&rect, 1};
    tsr_holdings mine;
    tsr_rects_of_ranks all;
    tsr_moved moved;
    CHECK_OK(tsr_holdings_make(&rects, NULL, &l.matrix, w->rank, false, &mine));
    CHECK_OK(tsr_holdings_allocate(&mine, l.element));
    CHECK_OK(tsr_rects_gather(w, &mine, &all));
    tsr_redistribution r = {&l.matrix, &mine, &all, false, 3, 8 << 20};
    CHECK_OK(tsr_redistribute(w, &r, &moved));
    visit_holdings(&mine, &l, false);
    visit_holdings(&mine, &l, true);
    r.back = true;
    CHECK_OK(tsr_redistribute(w, &r, &moved));
    each(&l, w->rank, true, true);
    tsr_rects_of_ranks_free(&all);
    tsr_holdings_free(&mine);
    free(l.matrix.data);
}

/* ---- plans, simulated ------------------------------------------------------------------------ */

static tsr_plan make_plan(int ranks, int64_t m, int64_t n, int64_t k, bool add_c0, size_t limit) {
    tsr_problem problem;
    const tsr_element f64 = {TSR_F64, false};
    const tsr_operand a = {.rows = m, .cols = k, .element = f64};
    const tsr_operand b = {.rows = k, .cols = n, .element = f64};
    const tsr_operand c0 = {.rows = m, .cols = n, .element = f64};
    CHECK_OK(tsr_problem_make(a, b, add_c0 ? &c0 : NULL, tsr_real(1), tsr_real(add_c0), &problem));
    const tsr_resources res = {.ranks = ranks,
                               .host_memory = true,
                               .device_limit = limit,
                               .host_limit = limit,
                               .multiple = 1,
                               .rates = tsr_rates_typical(false, false, TSR_F64, 1)};
    tsr_plan plan;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    return plan;
}

/* The rectangles of all ranks cover the matrix, `times` in all, and each rank's forecast adds up: what is sent is
 * received, and all that does not lie in place is moved. */
static void simulate(const tsr_plan *plan, tsr_operand_name name, int64_t rows, int64_t cols, int ranks) {
    tsr_deal x = {.rows = {rows + 5, 1 + below(70), 1, 0}, .cols = {cols + 5, 1 + below(70), 1, 0}};
    x.rows.parts = 1 + (int)below(tsr_min(8, ranks));
    x.cols.parts = 1 + (int)below(tsr_min(8, ranks / x.rows.parts));
    x.part = (tsr_rect){below(6), below(6), rows, cols};
    const tsr_distributed matrix = {.deal = x, .dtype = TSR_F64, .ld = cols + 5};
    tsr_rects_of_ranks all = {.rect = calloc((size_t)ranks * 4096, sizeof *all.rect),
                              .first = calloc((size_t)ranks + 1, sizeof *all.first)};
    int64_t elements = 0;
    tsr_moved sum = {0};
    double in_place = 0;
    for (int rank = 0; rank < ranks; rank++) {
        tsr_rects rects;
        tsr_holdings h;
        CHECK_OK(tsr_rects_of_plan(plan, rank, name, &rects));
        CHECK(all.first[rank] + rects.count <= (int64_t)ranks * 4096, "rank %d has %lld rectangles", rank,
              (long long)rects.count);
        CHECK_OK(tsr_holdings_make(&rects, NULL, &matrix, rank, false, &h));
        for (int64_t i = 0; i < rects.count; i++) {
            all.rect[all.first[rank] + i] = rects.rect[i];
            elements += tsr_rect_elements(rects.rect[i]);
            if (h.holding[i].in_place) in_place += 8.0 * (double)tsr_rect_elements(rects.rect[i]);
        }
        all.first[rank + 1] = all.first[rank] + rects.count;
        tsr_holdings_free(&h);
        tsr_rects_free(&rects);
    }
    CHECK(elements == rows * cols, "%lld elements of %lld", (long long)elements, (long long)(rows * cols));
    const tsr_redistribution r = {.matrix = &matrix, .all = &all};
    for (int rank = 0; rank < ranks; rank++) {
        const tsr_moved one = tsr_redistribute_forecast(&r, rank, ranks);
        sum.sent += one.sent;
        sum.received += one.received;
        sum.copied += one.copied;
    }
    CHECK(sum.sent == sum.received && sum.sent + sum.copied + in_place == 8.0 * (double)(rows * cols),
          "%g sent, %g received, %g copied, %g in place", sum.sent, sum.received, sum.copied, in_place);
    free(all.rect);
    free(all.first);
}

static void test_plans(void) {
    static const int ranks[] = {1, 2, 3, 6, 12, 64};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        for (int turn = 0; turn < 4; turn++) {
            const int64_t m = 1 + below(900), n = 1 + below(900);
            const int64_t k = 1 + below(900);
            const tsr_plan plan = make_plan(ranks[i], m, n, k, turn % 2, turn < 2 ? (size_t)1 << 30 : 2 << 20);
            bool replaces = false;
            simulate(&plan, TSR_OPERAND_A, m, k, ranks[i]);
            simulate(&plan, TSR_OPERAND_B, k, n, ranks[i]);
            simulate(&plan, TSR_OPERAND_C, m, n, ranks[i]);
            if (turn % 2) simulate(&plan, TSR_OPERAND_C0, m, n, ranks[i]);
            for (int rank = 0; turn % 2 && rank < ranks[i]; rank++) {
                CHECK_OK(tsr_plan_replaces_c0(&plan, rank, &replaces));
                CHECK(replaces, "rank %d of %d reads C0 elsewhere than it writes C", rank, ranks[i]);
            }
        }
}

static void test_refusals(void) {
    double element = 0;
    const tsr_distributed good = {.deal = {.rows = {10, 4, 2, 1}, .cols = {9, 2, 1, 0}, .part = {1, 1, 8, 7}},
                                  .dtype = TSR_F64,
                                  .data = &element,
                                  .ld = 9};
    CHECK_OK(tsr_distributed_check(&good, "A", 0, 2));
#define WRONG(change, text)                                                                                            \
    do {                                                                                                               \
        tsr_distributed bad = good;                                                                                    \
        bad.change;                                                                                                    \
        CHECK_FAILS(tsr_distributed_check(&bad, "A", 0, 2), TSR_ERR_SHAPE, text);                                      \
    } while (0)
    WRONG(deal.rows.length = -1, "A has -1 rows");
    WRONG(deal.cols.block = 0, "blocks of 0 columns");
    WRONG(deal.rows.parts = 0, "a grid of 0 ranks along its rows");
    WRONG(deal.rows.first = 2, "its first rows belong to place 2");
    WRONG(deal.part.row = 3, "rows 3 to 11 of 10");
    WRONG(deal.part.cols = -1, "columns 1 to 0 of 9");
    WRONG(deal.cols.parts = 2, "a grid of 2x2 ranks, and there are 2");
    WRONG(deal.shared = true, "shared by all ranks");
    WRONG(data = NULL, "has no array");
    WRONG(ld = 8, "is 8, and 9 is the least");
    WRONG(stack_dimensions = 1, "a stack of matrices: a part of it cannot be meant");
    char text[TSR_DEAL_CHARS];
    CHECK(strcmp(tsr_deal_text(&good.deal, text), "memory (block-cyclic 4x2 on 2x1)[1:9,1:8]") == 0, "%s", text);
    const tsr_deal turned = tsr_deal_transposed(good.deal);
    CHECK(strcmp(tsr_deal_text(&turned, text), "memory (block-cyclic 4x2 on 2x1)[1:9,1:8]") == 0, "%s", text);
}

int main(int argc, char **argv) {
    tsr_world w = {.started_seconds = tsr_now_seconds()};
    CHECK_OK(tsr_world_open(&w));
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)w.ranks * 1000;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        state = seed + i;
        test_random(&w);
    }
    state = seed;
    test_threads(&w);
    if (w.rank == 0) {
        test_plans();
        test_refusals();
    }
    tsr_world_close(&w);
    return 0;
}
