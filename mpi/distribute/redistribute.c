#include "mpi/distribute/redistribute.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device/host_pages.h"
#include "mpi/execute/task.h"

#define MOST_MESSAGE_BYTES ((size_t)4 << 20)
#define LEAST_MESSAGE_BYTES ((size_t)64 << 10)
#define MOST_THREADS 16
#define BYTES_A_THREAD ((size_t)256 << 10) /* worth calling one */
#define TAG 7315

size_t tsr_message_bytes(size_t host_limit) {
    const size_t share = host_limit / 64;
    return share < LEAST_MESSAGE_BYTES ? LEAST_MESSAGE_BYTES : share > MOST_MESSAGE_BYTES ? MOST_MESSAGE_BYTES : share;
}

/* ---- who has what ---------------------------------------------------------------------------- */

tsr_status tsr_rects_gather(const tsr_world *world, const tsr_holdings *mine, tsr_rects_of_ranks *all) {
    const int ranks = world->ranks;
    int own = (int)mine->count; /* a rank has few: panels that follow each other are one */
    MPI_Datatype rect_type = MPI_DATATYPE_NULL;
    int *counts = calloc(2 * (size_t)ranks, sizeof *counts), *starts = counts ? counts + ranks : NULL;
    tsr_rect *rects = calloc((size_t)tsr_max(1, own), sizeof *rects);
    *all = (tsr_rects_of_ranks){.first = calloc((size_t)ranks + 1, sizeof *all->first)};
    tsr_status status = TSR_OK;
    if (!counts || !rects || !all->first || own != mine->count)
        status =
            tsr_fail(TSR_ERR_MEMORY, "no memory for %lld rectangles of a distributed matrix", (long long)mine->count);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    for (int i = 0; i < own; i++) rects[i] = mine->holding[i].rect;
    TSR_TRY_DONE(TSR_MPI(MPI_Allgather(&own, 1, MPI_INT, counts, 1, MPI_INT, world->comm)));
    for (int i = 0; i < ranks; i++) {
        starts[i] = (int)all->first[i];
        all->first[i + 1] = all->first[i] + counts[i];
    }
    all->rect = calloc((size_t)tsr_max(1, all->first[ranks]), sizeof *all->rect);
    if (!all->rect || all->first[ranks] > INT32_MAX)
        status = tsr_fail(TSR_ERR_MEMORY, "no memory for %lld rectangles of a distributed matrix",
                          (long long)all->first[ranks]);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Type_contiguous((int)(sizeof *rects / sizeof(int64_t)), MPI_INT64_T, &rect_type)));
    TSR_TRY_DONE(TSR_MPI(MPI_Type_commit(&rect_type)));
    TSR_TRY_DONE(TSR_MPI(MPI_Allgatherv(rects, own, rect_type, all->rect, counts, starts, rect_type, world->comm)));
done:
    if (rect_type != MPI_DATATYPE_NULL) MPI_Type_free(&rect_type);
    free(counts);
    free(rects);
    if (status != TSR_OK) tsr_rects_of_ranks_free(all);
    return status;
}

void tsr_rects_of_ranks_free(tsr_rects_of_ranks *all) {
    free(all->rect);
    free(all->first);
    *all = (tsr_rects_of_ranks){0};
}

/* A rectangle's rows, or columns, in the whole matrix. */
static tsr_span rows_of(const tsr_deal *x, tsr_rect rect) { return (tsr_span){x->part.row + rect.row, rect.rows}; }
static tsr_span cols_of(const tsr_deal *x, tsr_rect rect) { return (tsr_span){x->part.col + rect.col, rect.cols}; }

/* How many rows and columns of a rectangle a rank's array has, for the rank that holds the rectangle. */
static bool find_share(const tsr_deal *x, int owner, int holder, tsr_rect rect, int64_t *rows, int64_t *cols) {
    int row, col;
    *rows = *cols = 0;
    if (!tsr_deal_place(x, owner, &row, &col) || (x->shared && owner != holder)) return false;
    *rows = tsr_dealt_within(&x->rows, rows_of(x, rect), row);
    *cols = tsr_dealt_within(&x->cols, cols_of(x, rect), col);
    return *rows > 0 && *cols > 0;
}

/* Elements that go from an owner to a holder, or back: none where they lie in place. */
static int64_t moved_elements(const tsr_redistribution *r, int owner, int holder) {
    int64_t rows, cols, sum = 0;
    for (int64_t i = r->all->first[holder]; i < r->all->first[holder + 1]; i++) {
        const tsr_rect rect = r->all->rect[i];
        if (!find_share(&r->matrix->deal, owner, holder, rect, &rows, &cols)) continue;
        if (owner != holder || rows * cols < tsr_rect_elements(rect)) sum += rows * cols;
    }
    return sum;
}

tsr_moved tsr_redistribute_forecast(const tsr_redistribution *r, int rank, int ranks) {
    const double bytes = (double)tsr_dtype_bytes(r->matrix->dtype);
    tsr_moved moved = {.copied = bytes * (double)moved_elements(r, rank, rank)};
    for (int other = 0; other < ranks; other++) {
        if (other == rank) continue;
        const double owned = bytes * (double)moved_elements(r, rank, other);
        const double held = bytes * (double)moved_elements(r, other, rank);
        moved.sent += r->back ? held : owned;
        moved.received += r->back ? owned : held;
    }
    return moved;
}

/* ---- lists of messages ----------------------------------------------------------------------- */

/* A part of a holding, as far as it lies in one rank's array. */
typedef struct {
    tsr_rect rect;
    int64_t holding; /* its number among the holder's */
    int owner;
    int64_t rows, cols; /* that the owner has */
    size_t at;          /* in its message */
} unit;

typedef struct {
    int peer;
    int64_t first, count; /* units */
    size_t bytes;
} message;

typedef struct {
    unit *units;
    message *messages;
    int64_t unit_count, message_count;
    int64_t unit_room, message_room;
    size_t largest; /* message */
    double bytes;
} list;

static void list_free(list *l) {
    free(l->units);
    free(l->messages);
}

/* Room for one more of `bytes` each. */
static tsr_status make_room(void **items, int64_t count, int64_t *room, size_t bytes) {
    if (count < *room) return TSR_OK;
    *room = tsr_max(64, 2 * *room);
    void *more = realloc(*items, (size_t)*room * bytes);
    if (!more) return tsr_fail(TSR_ERR_MEMORY, "no memory for a list of %lld parts of messages", (long long)*room);
    *items = more;
    return TSR_OK;
}

static tsr_status add_unit(list *l, unit u, int peer, size_t bytes, size_t most) {
    message *last = l->message_count > 0 ? &l->messages[l->message_count - 1] : NULL;
    TSR_TRY(make_room((void **)&l->units, l->unit_count, &l->unit_room, sizeof u));
    if (!last || last->peer != peer || last->bytes + bytes > most) {
        TSR_TRY(make_room((void **)&l->messages, l->message_count, &l->message_room, sizeof *last));
        last = &l->messages[l->message_count++];
        *last = (message){.peer = peer, .first = l->unit_count};
    }
    u.at = last->bytes;
    last->bytes += bytes;
    last->count++;
    l->units[l->unit_count++] = u;
    l->bytes += (double)bytes;
    if (last->bytes > l->largest) l->largest = last->bytes;
    return TSR_OK;
}

/* What goes between an owner and a holder, cut so that several parts fit a message. Both have the same list. */
static tsr_status add_pair(list *l, const tsr_redistribution *r, int owner, int holder, int peer) {
    const size_t element = tsr_dtype_bytes(r->matrix->dtype);
    const int64_t most = tsr_max(1, (int64_t)(r->message_bytes / 4 / element)); /* elements of a part */
    const int64_t first = r->all->first[holder];
    for (int64_t i = first; i < r->all->first[holder + 1]; i++) {
        const tsr_rect whole = r->all->rect[i];
        if (tsr_rect_empty(whole)) continue;
        const int64_t width = tsr_min(whole.cols, most), height = tsr_max(1, most / width);
        if (owner == holder && r->mine->holding[i - first].in_place) continue;
        for (int64_t row = 0; row < whole.rows; row += height)
            for (int64_t col = 0; col < whole.cols; col += width) {
                unit u = {.holding = i - first, .owner = owner};
                u.rect = (tsr_rect){whole.row + row, whole.col + col, tsr_min(height, whole.rows - row),
                                    tsr_min(width, whole.cols - col)};
                if (!find_share(&r->matrix->deal, owner, holder, u.rect, &u.rows, &u.cols)) continue;
                TSR_TRY(add_unit(l, u, peer, (size_t)(u.rows * u.cols) * element, r->message_bytes));
            }
    }
    return TSR_OK;
}

/* To the next rank first, and from the one before: all ranks have work, and the first messages that two ranks have for
 * each other wait for none of a later turn. */
static tsr_status make_lists(const tsr_world *world, const tsr_redistribution *r, list *home, list *out, list *in) {
    const int ranks = world->ranks, me = world->rank;
    TSR_TRY(add_pair(home, r, me, me, me));
    for (int turn = 1; turn < ranks; turn++) {
        const int to = (me + turn) % ranks, from = (me - turn + ranks) % ranks;
        TSR_TRY(r->back ? add_pair(out, r, to, me, to) : add_pair(out, r, me, to, to));
        TSR_TRY(r->back ? add_pair(in, r, me, from, from) : add_pair(in, r, from, me, from));
    }
    return TSR_OK;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Between a rectangle of the matrix, of which every block that the owner has is copied, and the same elements without
 * gaps: the owner's array, or a message. */
typedef struct {
    const tsr_deal *deal;
    const tsr_holding *holding;
    char *packed;    /* the first element */
    size_t step;     /* bytes from row to row there */
    size_t element;  /* bytes */
    bool to_holding; /* else from it */
} spread;

static inline void copy_bytes(char *to, const char *from, size_t bytes) {
    if (bytes == 8) memcpy(to, from, 8); /* blocks of one: a call would take longer than the copy */
    else if (bytes == 4) memcpy(to, from, 4);
    else if (bytes == 16) memcpy(to, from, 16);
    else memcpy(to, from, bytes);
}

static void spread_row(const spread *s, const unit *u, int col, int64_t row, char *packed) {
    const tsr_dealt *side = &s->deal->cols;
    const tsr_span cols = cols_of(s->deal, u->rect);
    const int64_t end = cols.start + cols.count, corner = s->deal->part.col + s->holding->rect.col;
    char *line = (char *)s->holding->data + (size_t)(row * s->holding->ld) * s->element;
    tsr_span run = tsr_dealt_run(side, cols.start, end, col);
    while (run.count > 0) {
        char *there = line + (size_t)(run.start - corner) * s->element;
        const size_t bytes = (size_t)run.count * s->element;
        copy_bytes(s->to_holding ? there : packed, s->to_holding ? packed : there, bytes);
        packed += bytes;
        if (side->parts == 1) return;
        run.start += side->block * side->parts - run.start % side->block;
        run.count = tsr_min(side->block, end - run.start);
    }
}

/* Rows `mine` of those that the owner has of the unit. */
static void spread_rows(const spread *s, const unit *u, tsr_span mine) {
    const tsr_span rows = rows_of(s->deal, u->rect);
    const int64_t end = rows.start + rows.count, corner = s->deal->part.row + s->holding->rect.row;
    int row, col;
    int64_t before = 0;
    tsr_deal_place(s->deal, u->owner, &row, &col);
    tsr_span run = tsr_dealt_run(&s->deal->rows, rows.start, end, row);
    while (run.count > 0 && before < mine.start + mine.count) {
        const int64_t last = tsr_min(run.count, mine.start + mine.count - before);
        for (int64_t i = tsr_max(0, mine.start - before); i < last; i++)
            spread_row(s, u, col, run.start + i - corner, s->packed + (size_t)(before + i) * s->step);
        before += run.count;
        run = tsr_dealt_run(&s->deal->rows, run.start + run.count, end, row);
    }
}

typedef enum { PACK, UNPACK } direction;

/* What one call copies: units of a message, or at home between holdings and array without one. */
typedef struct {
    const tsr_redistribution *r;
    const unit *units;
    int64_t count;
    char *message; /* NULL: at home */
    direction direction;
    _Atomic int64_t next; /* piece */
    int64_t pieces;       /* of each unit's rows */
} copying;

/* The first of the unit's elements in this rank's array. */
static char *array_at(const tsr_redistribution *r, const unit *u) {
    const tsr_deal *x = &r->matrix->deal;
    int row, col;
    tsr_deal_place(x, u->owner, &row, &col);
    const int64_t first = tsr_dealt_before(&x->rows, x->part.row + u->rect.row, row) * r->matrix->ld +
                          tsr_dealt_before(&x->cols, x->part.col + u->rect.col, col);
    return (char *)r->matrix->data + (size_t)first * tsr_dtype_bytes(r->matrix->dtype);
}

static void copy_array(const copying *c, const unit *u, tsr_span rows) {
    const size_t element = tsr_dtype_bytes(c->r->matrix->dtype), bytes = (size_t)u->cols * element;
    char *array = array_at(c->r, u), *packed = c->message + u->at;
    for (int64_t i = rows.start; i < rows.start + rows.count; i++) {
        char *there = array + (size_t)(i * c->r->matrix->ld) * element, *here = packed + (size_t)i * bytes;
        copy_bytes(c->direction == PACK ? here : there, c->direction == PACK ? there : here, bytes);
    }
}

static void copy_unit(const copying *c, const unit *u, tsr_span rows) {
    const tsr_redistribution *r = c->r;
    const size_t element = tsr_dtype_bytes(r->matrix->dtype);
    const bool arrays = (c->direction == PACK) != r->back; /* one side of the copy is this rank's array */
    if (c->message && arrays) {
        copy_array(c, u, rows);
        return;
    }
    const spread s = {.deal = &r->matrix->deal,
                      .holding = &r->mine->holding[u->holding],
                      .packed = c->message ? c->message + u->at : array_at(r, u),
                      .step = (size_t)(c->message ? u->cols : r->matrix->ld) * element,
                      .element = element,
                      .to_holding = !r->back};
    spread_rows(&s, u, rows);
}

static void copy_pieces(void *context, int number) {
    copying *c = context;
    (void)number;
    for (int64_t i; (i = c->next++) < c->count * c->pieces;) {
        const unit *u = &c->units[i / c->pieces];
        copy_unit(c, u, tsr_partition(u->rows, c->pieces, i % c->pieces));
    }
}

/* In several threads where it pays. */
static void copy_units(tsr_crew *crew, const tsr_redistribution *r, const unit *units, int64_t count, size_t bytes,
                       char *to_or_from, direction way) {
    const int threads = (int)tsr_min(tsr_min(r->threads, MOST_THREADS), (int64_t)(bytes / BYTES_A_THREAD));
    copying c = {r, units, count, to_or_from, way, 0, tsr_max(1, threads)};
    if (threads > 1) tsr_crew_work(crew, threads, copy_pieces, &c);
    else copy_pieces(&c, 0);
}

/* ---- the exchange ---------------------------------------------------------------------------- */

enum { WAYS = TSR_MESSAGES / 2 }; /* of requests: so many receive, and as many send */

typedef struct {
    const tsr_world *world;
    const tsr_redistribution *r;
    const list *out, *in;
    tsr_crew *crew; /* that copies */
    char *buffers[TSR_MESSAGES];
    MPI_Request requests[TSR_MESSAGES];
    int64_t number[TSR_MESSAGES]; /* of the message under way */
    int64_t received, sent;       /* begun so far */
} exchange;

static void copy_message(const exchange *x, const list *l, int64_t number, char *buffer, direction way) {
    const message *m = &l->messages[number];
    copy_units(x->crew, x->r, l->units + m->first, m->count, m->bytes, buffer, way);
}

static tsr_status begin_receive(exchange *x, int slot) {
    if (x->received == x->in->message_count) return TSR_OK;
    const message *m = &x->in->messages[x->number[slot] = x->received++];
    return TSR_MPI(
        MPI_Irecv(x->buffers[slot], (int)m->bytes, MPI_BYTE, m->peer, TAG, x->world->comm, &x->requests[slot]));
}

static tsr_status begin_send(exchange *x, int slot) {
    if (x->sent == x->out->message_count) return TSR_OK;
    const message *m = &x->out->messages[x->number[slot] = x->sent];
    copy_message(x, x->out, x->sent++, x->buffers[slot], PACK);
    return TSR_MPI(
        MPI_Isend(x->buffers[slot], (int)m->bytes, MPI_BYTE, m->peer, TAG, x->world->comm, &x->requests[slot]));
}

static tsr_status run_exchange(exchange *x, const list *home) {
    for (int i = 0; i < WAYS; i++) TSR_TRY(begin_receive(x, i));
    for (int i = WAYS; i < TSR_MESSAGES; i++) TSR_TRY(begin_send(x, i));
    copy_units(x->crew, x->r, home->units, home->unit_count, (size_t)home->bytes, NULL, PACK);
    for (;;) {
        int slot = MPI_UNDEFINED;
        TSR_TRY(TSR_MPI(MPI_Waitany(TSR_MESSAGES, x->requests, &slot, MPI_STATUS_IGNORE)));
        if (slot == MPI_UNDEFINED) return TSR_OK;
        if (slot >= WAYS) {
            TSR_TRY(begin_send(x, slot));
            continue;
        }
        copy_message(x, x->in, x->number[slot], x->buffers[slot], UNPACK);
        TSR_TRY(begin_receive(x, slot));
    }
}

static tsr_status allocate_buffers(exchange *x) {
    for (int i = 0; i < TSR_MESSAGES; i++) {
        x->requests[i] = MPI_REQUEST_NULL;
        const size_t bytes = i < WAYS ? x->in->largest : x->out->largest;
        if (bytes > 0 && !(x->buffers[i] = tsr_allocate_pages(bytes, sizeof(double))))
            return tsr_fail(TSR_ERR_MEMORY, "no memory for messages of %zu bytes", bytes);
    }
    return TSR_OK;
}

tsr_status tsr_redistribute(const tsr_world *world, const tsr_redistribution *r, tsr_moved *moved) {
    list home = {0}, out = {0};
    list in = {0};
    exchange x = {.world = world, .r = r, .out = &out, .in = &in};
    tsr_status status = make_lists(world, r, &home, &out, &in);
    if (status == TSR_OK) status = allocate_buffers(&x);
    if (status == TSR_OK) status = tsr_crew_open(&x.crew);
    status = tsr_agree(world->comm, status);
    if (status == TSR_OK) status = tsr_agree(world->comm, run_exchange(&x, &home));
    *moved = (tsr_moved){.sent = out.bytes, .received = in.bytes, .copied = home.bytes};
    for (int i = 0; i < TSR_MESSAGES; i++) free(x.buffers[i]);
    tsr_crew_close(x.crew);
    list_free(&home);
    list_free(&out);
    list_free(&in);
    return status;
}
