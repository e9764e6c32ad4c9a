/* Operands of a run in the ranks' memory (run_state.h, mpi/distribute): described by their layouts, held as the plan
 * reads and writes them, and moved between the two before and after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/run_state.h"
#include "io/stores.h"
#include "kernels/device/host_pages.h"

static const char *name_of(const tsr_run *run, int which) {
    static const char *const names[TSR_RUN_MEMORIES] = {"A", "B", "C0", "C"};
    return names[which >= TSR_RUN_C0 || !run->swapped ? which : 1 - which]; /* as the caller calls it */
}

static tsr_status check_memory(const tsr_run *run) {
    for (int i = 0; i < TSR_RUN_MEMORIES; i++)
        if (tsr_run_in_memory(run, i))
            TSR_TRY(tsr_distributed_check(run->memory[i].matrix, name_of(run, i), run->world->rank, run->world->ranks));
    return TSR_OK;
}

/* Whether A and B are one array on every rank. */
static tsr_status compare_memory(tsr_run *run) {
    const tsr_distributed *a = run->memory[TSR_RUN_A].matrix, *b = run->memory[TSR_RUN_B].matrix;
    if (!a || !b) return TSR_OK; /* on every rank */
    const tsr_deal *x = &a->deal, *y = &b->deal;
    const size_t side = sizeof x->rows;
    int same = a->data == b->data && a->ld == b->ld && a->dtype == b->dtype && a->swapped == b->swapped &&
               memcmp(&x->rows, &y->rows, side) == 0 && memcmp(&x->cols, &y->cols, side) == 0 &&
               memcmp(&x->part, &y->part, sizeof x->part) == 0 && x->ranks_by_columns == y->ranks_by_columns &&
               x->shared == y->shared && a->stack_rows == b->stack_rows && a->stack_dimensions == b->stack_dimensions &&
               memcmp(a->stack, b->stack, (size_t)a->stack_dimensions * sizeof *a->stack) == 0;
    TSR_TRY(tsr_reduce_all(run->world->comm, &same, 1, MPI_INT, MPI_MIN));
    run->one_memory = same;
    return TSR_OK;
}

tsr_status tsr_run_take_memory(tsr_run *run, const tsr_run_product *product) {
    bool any = false;
    run->memory[TSR_RUN_A].matrix = run->swapped ? product->memory_b : product->memory_a;
    run->memory[TSR_RUN_B].matrix = run->swapped ? product->memory_a : product->memory_b;
    run->memory[TSR_RUN_C0].matrix = tsr_is_zero(product->beta) ? NULL : product->memory_c0;
    run->memory[TSR_RUN_C].matrix = product->memory_c;
    run->adds_to_c = product->memory_c && !product->memory_c0 && !product->c0.file[0] && !tsr_is_zero(product->beta);
    for (int i = 0; i < TSR_RUN_MEMORIES; i++) any = any || tsr_run_in_memory(run, i);
    if (!any) return TSR_OK; /* on every rank */
    TSR_TRY(tsr_agree(run->world->comm, check_memory(run)));
    return compare_memory(run);
}

tsr_status tsr_run_describe_memory(const tsr_run *run, int which, tsr_store_desc *desc) {
    const tsr_distributed *matrix = run->memory[which].matrix;
    char text[TSR_DEAL_CHARS];
    const tsr_shape shape = tsr_distributed_shape(matrix);
    tsr_deal_text(&matrix->deal, text);
    TSR_TRY(tsr_memory_describe(text, &shape, (tsr_element){matrix->dtype, matrix->swapped}, desc));
    if (matrix->vector) desc->matrix_dimensions = 1;
    return TSR_OK;
}

/* Whether products of a stack are made one after the other, each of matrices that are selected; else all that is read
 * or written of an operand is one matrix. */
static bool selects(const tsr_run *run) { return run->problem.batch <= 1; }

tsr_status tsr_run_stacked(const tsr_run *run, int which, tsr_span products, tsr_stacked *of) {
    const tsr_store_desc *desc = tsr_run_desc(run, which);
    int64_t *number = malloc((size_t)tsr_max(1, desc->matrices) * sizeof *number);
    bool *used = calloc((size_t)tsr_max(1, desc->matrices), sizeof *used);
    *of = (tsr_stacked){.rows = desc->rows};
    if (!number || !used) {
        free(number);
        free(used);
        return tsr_fail(TSR_ERR_MEMORY, "no memory for a list of %lld matrices", (long long)desc->matrices);
    }
    for (int64_t product = products.start; product < products.start + products.count; product++)
        used[which >= TSR_RUN_C0 ? product : tsr_shapes_matrix(&run->products, desc, product)] = true;
    for (int64_t i = 0; i < desc->matrices; i++)
        if (used[i]) number[of->count++] = i;
    free(used);
    of->number = number;
    return TSR_OK;
}

/* ---- arrays on a device ---------------------------------------------------------------------- */

typedef enum { PAGEABLE, PINNED_NOW, PINNED_BEFORE } pinning; /* PINNED_NOW: for this run */

/* Local. What is pinned already, by whomever, or is memory of the context's, costs nothing; a shared array is pinned
 * for this run. */
static pinning pin(tsr_run *run, const tsr_distributed *x) {
    const tsr_device_ops *ops = run->device->ops;
    const int64_t elements = (x->deal.rows.length - 1) * x->ld + x->deal.cols.length;
    const size_t bytes = (size_t)elements * tsr_dtype_bytes(x->dtype);
    bool kept = false;
    if (tsr_kept_pin(run->world->kept, run->device, x->data, bytes, &kept) != TSR_OK) tsr_message_set("");
    if (kept || ops->is_pinned(run->device, x->data, bytes)) return PINNED_BEFORE;
    if (x->deal.shared && ops->pin(run->device, x->data, bytes) == TSR_OK) return PINNED_NOW;
    tsr_message_set("");
    return PAGEABLE;
}

/* Whether every rank has all of it in one piece. */
static bool is_whole(const tsr_run *run, const tsr_distributed *x) {
    return x && !tsr_rect_empty(x->deal.part) && (x->deal.shared || run->world->ranks == 1);
}

/* What is not pinned on some rank goes through host buffers, as what is dealt out does. */
tsr_status tsr_run_pin_memory(tsr_run *run) {
    tsr_problem *x = &run->problem;
    tsr_data_path *path[TSR_RUN_MEMORIES] = {&x->operand[TSR_OPERAND_A].path, &x->operand[TSR_OPERAND_B].path, NULL,
                                             &x->c_path};
    for (int i = 0; i < TSR_RUN_MEMORIES; i++) {
        tsr_run_memory *m = &run->memory[i];
        if (!path[i] || !is_whole(run, m->matrix) || run->facts.host_memory) continue; /* on every rank */
        const pinning mine = pin(run, m->matrix);
        int pinned = mine != PAGEABLE;
        m->pinned = mine == PINNED_NOW;
        TSR_TRY(tsr_reduce_all(run->world->comm, &pinned, 1, MPI_INT, MPI_MIN));
        if (pinned) *path[i] = TSR_DATA_PATH_MAPPED;
    }
    return TSR_OK;
}

/* ---- what the plan makes a rank hold --------------------------------------------------------- */

static void leave_holdings(tsr_run_memory *m) {
    tsr_holdings_free(&m->holdings);
    tsr_rects_of_ranks_free(&m->all);
}

/* Local. */
static tsr_status make_holdings(tsr_run *run, int which) {
    static const tsr_operand_name names[TSR_RUN_MEMORIES] = {TSR_OPERAND_A, TSR_OPERAND_B, TSR_OPERAND_C0,
                                                             TSR_OPERAND_C};
    tsr_run_memory *m = &run->memory[which];
    tsr_stacked of = {0};
    tsr_rects rects;
    leave_holdings(m);
    if (!m->matrix) return TSR_OK;
    const int rank = tsr_run_team_rank(run);
    TSR_TRY(tsr_rects_of_plan(&run->plan, rank, names[which], &rects));
    tsr_status status = selects(run) ? tsr_run_stacked(run, which, tsr_run_share(run), &of) : TSR_OK;
    if (status == TSR_OK)
        status = tsr_holdings_make(&rects, selects(run) ? &of : NULL, m->matrix, run->world->rank, false, &m->holdings);
    tsr_rects_free(&rects);
    free(of.number);
    bool replaces = true;
    if (status == TSR_OK && which == TSR_RUN_C && run->adds_to_c)
        status = tsr_plan_replaces_c0(&run->plan, rank, &replaces);
    if (status == TSR_OK && !replaces)
        status = tsr_fail(TSR_FAILURE, "the plan reads C0 elsewhere than it writes C, and both have one memory");
    return status;
}

tsr_status tsr_run_find_holdings(tsr_run *run) {
    tsr_status status = TSR_OK;
    double bytes = 0;
    run->message_bytes = 0;
    for (int i = 0; i < TSR_RUN_MEMORIES && status == TSR_OK; i++) {
        status = make_holdings(run, i);
        bytes += (double)run->memory[i].holdings.bytes;
    }
    double checked = 0;
    if (status == TSR_OK) status = tsr_run_check_bytes(run, &checked);
    bytes += checked;
    TSR_TRY(tsr_agree(run->world->comm, status));
    TSR_TRY(tsr_reduce_all(run->world->comm, &bytes, 1, MPI_DOUBLE, MPI_MAX));
    run->memory_bytes = bytes;
    if (run->memory_bytes == 0) return TSR_OK; /* all lies where it is wanted */
    run->message_bytes = tsr_message_bytes(tsr_host_limit(&run->plan.resources));
    if (run->world->ranks > 1) run->memory_bytes += (double)TSR_MESSAGES * (double)run->message_bytes;
    return TSR_OK;
}

static tsr_status gather_rects(tsr_run *run) {
    for (int i = 0; i < TSR_RUN_MEMORIES && run->message_bytes > 0; i++)
        if (tsr_run_in_memory(run, i))
            TSR_TRY(tsr_rects_gather(run->world, &run->memory[i].holdings, &run->memory[i].all));
    return TSR_OK;
}

tsr_status tsr_run_allocate_holdings(tsr_run *run) {
    tsr_status status = TSR_OK;
    for (int i = 0; i < TSR_RUN_MEMORIES && status == TSR_OK; i++)
        if (tsr_run_in_memory(run, i))
            status = tsr_holdings_allocate(&run->memory[i].holdings, tsr_dtype_bytes(run->memory[i].matrix->dtype));
    TSR_TRY(tsr_agree(run->world->comm, status));
    return gather_rects(run);
}

/* ---- the pages of C -------------------------------------------------------------------------- */

#define POPULATE_LEAST ((size_t)16 << 20) /* bytes of C: fewer are not worth it */

/* Rows of one of C's rectangles that lies in the caller's array, for each thread its share. */
static void populate(const tsr_holding *h, size_t element, int number) {
    const tsr_span rows = tsr_partition(h->rect.rows, TSR_RUN_POPULATORS, number);
    const int64_t elements = rows.count > 0 ? (rows.count - 1) * h->ld + h->rect.cols : 0;
    tsr_populate_pages((char *)h->data + (size_t)(rows.start * h->ld) * element, (size_t)elements * element);
}

static tsr_status populate_share(void *context) {
    const tsr_populator *p = context;
    const tsr_run_memory *c = &p->run->memory[TSR_RUN_C];
    for (int64_t i = 0; i < c->holdings.count; i++)
        if (c->holdings.holding[i].in_place)
            populate(&c->holdings.holding[i], tsr_dtype_bytes(c->matrix->dtype), p->number);
    return TSR_OK;
}

void tsr_run_populate(tsr_run *run) {
    const tsr_run_memory *c = &run->memory[TSR_RUN_C];
    size_t bytes = 0;
    if (!c->matrix || run->facts.host_memory || run->problem.c_path != TSR_DATA_PATH_HOST) return;
    for (int64_t i = 0; i < c->holdings.count; i++)
        if (c->holdings.holding[i].in_place)
            bytes += (size_t)tsr_rect_elements(c->holdings.holding[i].rect) * tsr_dtype_bytes(c->matrix->dtype);
    for (int i = 0; i < TSR_RUN_POPULATORS && bytes >= POPULATE_LEAST; i++) {
        run->populators[i].run = run;
        run->populators[i].number = i;
        tsr_task_start(&run->populators[i].task, populate_share, &run->populators[i]);
    }
}

void tsr_run_populated(tsr_run *run) {
    for (int i = 0; i < TSR_RUN_POPULATORS; i++) tsr_task_wait(&run->populators[i].task);
}

/* ---- there and back -------------------------------------------------------------------------- */

typedef struct {
    int which;
    tsr_operand_name operand; /* as plans and traces call it */
    bool back;
} a_move;

static const a_move moves[TSR_RUN_MOVES] = {{TSR_RUN_A, TSR_OPERAND_A, false},
                                            {TSR_RUN_B, TSR_OPERAND_B, false},
                                            {TSR_RUN_C0, TSR_OPERAND_C0, false},
                                            {TSR_RUN_C, TSR_OPERAND_C, true}};

static const tsr_run_memory *memory_of(const tsr_run *run, const a_move *m) {
    return &run->memory[m->which == TSR_RUN_C0 ? tsr_run_place_of_c0(run) : m->which];
}

/* Whether it takes place: the same on every rank. */
static bool moves_it(const tsr_run *run, const a_move *m) {
    if (!memory_of(run, m)->matrix || run->message_bytes == 0) return false;
    return m->which >= TSR_RUN_C0 || run->problem.k > 0;
}

static tsr_redistribution redistribution_of(const tsr_run *run, const a_move *m) {
    const tsr_run_memory *memory = memory_of(run, m);
    return (tsr_redistribution){.matrix = memory->matrix,
                                .mine = &memory->holdings,
                                .all = &memory->all,
                                .back = m->back,
                                .threads = tsr_run_cores(run),
                                .message_bytes = run->message_bytes};
}

tsr_status tsr_run_forecast_moves(tsr_run *run) {
    double mine[TSR_RUN_MOVES] = {0}, most[TSR_RUN_MOVES + 1], all[TSR_RUN_MOVES];
    double received[TSR_RUN_MOVES + 1] = {0};
    if (run->message_bytes == 0) return TSR_OK; /* on every rank */
    TSR_TRY(gather_rects(run));
    for (int i = 0; i < TSR_RUN_MOVES; i++) {
        if (!moves_it(run, &moves[i])) continue;
        const tsr_redistribution r = redistribution_of(run, &moves[i]);
        mine[i] = received[i] = tsr_redistribute_forecast(&r, run->world->rank, run->world->ranks).received;
        received[TSR_RUN_MOVES] += mine[i];
    }
    TSR_TRY(TSR_MPI(MPI_Allreduce(received, most, TSR_RUN_MOVES + 1, MPI_DOUBLE, MPI_MAX, run->world->comm)));
    TSR_TRY(TSR_MPI(MPI_Allreduce(mine, all, TSR_RUN_MOVES, MPI_DOUBLE, MPI_SUM, run->world->comm)));
    run->redistribute_most = most[TSR_RUN_MOVES];
    for (int i = 0; i < TSR_RUN_MOVES; i++) {
        run->moves[i] = (tsr_run_move){most[i], all[i]};
        run->redistribute_bytes += all[i];
    }
    return TSR_OK;
}

double tsr_run_move_seconds(const tsr_run *run) {
    return run->redistribute_most / run->plan.resources.rates.lane[TSR_LANE_EXCHANGE];
}

static tsr_status move(tsr_run *run, const a_move *m) {
    const double start = tsr_now_seconds();
    tsr_moved moved;
    if (!moves_it(run, m)) return TSR_OK;
    const tsr_redistribution r = redistribution_of(run, m);
    TSR_TRY(tsr_redistribute(run->world, &r, &moved));
    const double end = tsr_now_seconds(), seconds = end - start;
    if (run->trace) tsr_trace_redistribution(run->trace, m->operand, moved.received, start, end);
    run->redistribute_seconds += seconds;
    run->redistribute_most += moved.received;
    run->redistribute_bytes += moved.received;
    run->mine.lane_seconds[TSR_LANE_EXCHANGE] += seconds;
    run->mine.lane_bytes[TSR_LANE_EXCHANGE] += moved.received;
    return TSR_OK;
}

tsr_status tsr_run_fetch_memory(tsr_run *run) {
    TSR_TRY(tsr_run_keep_c0(run));
    for (int i = 0; i < TSR_RUN_MOVES; i++)
        if (!moves[i].back) TSR_TRY(move(run, &moves[i]));
    return TSR_OK;
}

tsr_status tsr_run_return_memory(tsr_run *run) {
    for (int i = 0; i < TSR_RUN_MOVES; i++)
        if (moves[i].back) TSR_TRY(move(run, &moves[i]));
    if (run->message_bytes == 0) return TSR_OK;
    double most[2] = {run->redistribute_seconds, run->redistribute_most};
    double *bytes = &run->redistribute_bytes;
    TSR_TRY(tsr_reduce_all(run->world->comm, most, 2, MPI_DOUBLE, MPI_MAX));
    run->redistribute_seconds = most[0];
    run->redistribute_most = most[1];
    return tsr_reduce_all(run->world->comm, bytes, 1, MPI_DOUBLE, MPI_SUM);
}

void tsr_run_leave_memory(tsr_run *run) {
    for (int i = 0; i < TSR_RUN_MEMORIES; i++) {
        tsr_run_memory *m = &run->memory[i];
        leave_holdings(m);
        if (m->pinned) run->device->ops->unpin(run->device, m->matrix->data);
        m->pinned = false;
    }
    leave_holdings(&run->kept);
}
