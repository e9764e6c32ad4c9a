/* Sums of what was written, and of what came of it (written.h). */
#include "io/digest/written.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/digest/digest.h"

enum { THREADS_MAX = 64 };
#define BAND_BYTES ((int64_t)4 << 20)

void tsr_written_close(tsr_written *w) {
    free(w->parts);
    w->parts = NULL;
    w->count = 0;
    w->room = 0;
}

static bool overlap(tsr_rect a, tsr_rect b) {
    return a.row < b.row + b.rows && b.row < a.row + a.rows && a.col < b.col + b.cols && b.col < a.col + a.cols;
}

/* Of what is written once more nothing is left of the earlier sums. */
static void forget(tsr_written *w, int64_t matrix, tsr_rect rect) {
    int64_t kept = 0;
    for (int64_t i = 0; i < w->count; i++)
        if (w->parts[i].matrix != matrix || !overlap(w->parts[i].rect, rect)) w->parts[kept++] = w->parts[i];
    w->count = kept;
}

static tsr_status make_room(tsr_written *w) {
    if (w->count < w->room) return TSR_OK;
    const int64_t room = 2 * w->room + 64;
    tsr_written_part *parts = realloc(w->parts, (size_t)room * sizeof *parts);
    if (!parts)
        return tsr_fail(TSR_ERR_MEMORY, "no memory for the sums of %lld parts of C: use --check device",
                        (long long)room);
    w->parts = parts;
    w->room = room;
    return TSR_OK;
}

tsr_status tsr_written_note(tsr_written *w, const tsr_store_desc *desc, tsr_rect rect, uint32_t sum) {
    if (tsr_rect_empty(rect)) return TSR_OK;
    pthread_mutex_lock(&w->lock);
    if (w->again) forget(w, desc->matrix, rect);
    const tsr_status status = make_room(w);
    if (status == TSR_OK) w->parts[w->count++] = (tsr_written_part){desc->matrix, rect, sum};
    pthread_mutex_unlock(&w->lock);
    return status;
}

uint32_t tsr_written_sum(const tsr_written *w) {
    uint32_t sum = 0;
    for (int64_t i = 0; i < w->count; i++) sum ^= w->parts[i].sum;
    return sum;
}

/* ---- compared -------------------------------------------------------------------------------- */

/* What the threads share: parts [first, end), all of one matrix. */
typedef struct {
    const tsr_written *written;
    tsr_store *store;
    bool (*stopped)(void *context);
    void *context;
    bool *wrong;
    int64_t end;
    _Atomic int64_t next;
    atomic_bool stop;
} comparison;

typedef struct {
    comparison *shared;
    tsr_status status;
    char message[512];
} worker;

/* Rows that are read at once. */
static int64_t band_rows(const tsr_store *store, tsr_rect rect) {
    const int64_t row_bytes = rect.cols * (int64_t)tsr_dtype_bytes(store->desc.element.dtype);
    return tsr_min(rect.rows, tsr_round_up(tsr_max(1, BAND_BYTES / row_bytes), tsr_max(1, store->unit_rows)));
}

static tsr_status compare_part(comparison *c, int64_t i, char **buffer, size_t *room) {
    const tsr_written_part *part = &c->written->parts[i];
    const int64_t rows = band_rows(c->store, part->rect);
    const size_t bytes = (size_t)(rows * part->rect.cols) * tsr_dtype_bytes(c->store->desc.element.dtype);
    uint32_t sum = 0;
    if (bytes > *room) {
        free(*buffer);
        *buffer = malloc(bytes);
        *room = *buffer ? bytes : 0;
        if (!*buffer) return tsr_fail(TSR_ERR_MEMORY, "no memory to read %zu bytes of C again", bytes);
    }
    for (int64_t row = 0; row < part->rect.rows; row += rows) {
        tsr_rect band = part->rect;
        band.row += row;
        band.rows = tsr_min(rows, part->rect.rows - row);
        if (c->stopped && c->stopped(c->context)) return tsr_fail(TSR_ERR_STOPPED, "stopped on request");
        const tsr_status status = c->store->ops->read(c->store, band, *buffer, band.cols);
        if (status == TSR_ERR_FORMAT) { /* a chunk that is none any more */
            tsr_message_set("");
            c->wrong[i] = true;
            return TSR_OK;
        }
        TSR_TRY(status);
        sum ^= tsr_digest_sum(&c->store->desc, band, *buffer, band.cols);
    }
    c->wrong[i] = sum != part->sum;
    return TSR_OK;
}

static void *compare_some(void *context) {
    worker *w = context;
    comparison *c = w->shared;
    char *buffer = NULL;
    size_t room = 0;
    for (int64_t i; w->status == TSR_OK && !c->stop && (i = atomic_fetch_add(&c->next, 1)) < c->end;)
        w->status = compare_part(c, i, &buffer, &room);
    free(buffer);
    if (w->status == TSR_OK) return NULL;
    snprintf(w->message, sizeof w->message, "%s", tsr_message());
    c->stop = true;
    return NULL;
}

static tsr_status compare_matrix(comparison *c, int threads) {
    worker workers[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    int started = 1;
    tsr_status status = TSR_OK;
    for (int i = 0; i < threads; i++) workers[i] = (worker){.shared = c, .status = TSR_OK};
    while (started < threads && pthread_create(&ids[started], NULL, compare_some, &workers[started]) == 0) started++;
    compare_some(&workers[0]);
    for (int i = 1; i < started; i++) pthread_join(ids[i], NULL);
    for (int i = 0; i < started && status == TSR_OK; i++)
        if (workers[i].status != TSR_OK) {
            tsr_message_set(workers[i].message);
            status = workers[i].status;
        }
    return status;
}

tsr_status tsr_written_compare(const tsr_written *w, tsr_store *store, int threads, bool (*stopped)(void *context),
                               void *context, bool *wrong) {
    tsr_status status = TSR_OK;
    threads = (int)tsr_max(1, tsr_min(threads, THREADS_MAX));
    for (int64_t first = 0, end; first < w->count && status == TSR_OK; first = end) {
        for (end = first; end < w->count && w->parts[end].matrix == w->parts[first].matrix;) end++;
        comparison c = {.written = w, .store = store, .stopped = stopped, .context = context, .wrong = wrong};
        c.end = end;
        atomic_store(&c.next, first);
        tsr_store_select(store, w->parts[first].matrix);
        status = compare_matrix(&c, threads);
    }
    return status;
}
