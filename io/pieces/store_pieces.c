/* A matrix in pieces as a store (pieces.h): what is read of it is read from the pieces that hold it, each by its own
 * store. A few stay open; those not used for longest are closed first. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/pieces/pieces.h"
#include "io/stores.h"

#define OPEN_MAX_PIECES 64 /* with two descriptors each */
#define TURNED_ELEMENTS 512

/* An open piece. `number`: of the piece, -1: none. */
typedef struct {
    int64_t number, used; /* used: when, by the store's count */
    int users;
    tsr_store *store;
} open_piece;

typedef struct {
    tsr_store base;
    tsr_io_mode mode;
    int fd; /* of the file that was named, which is watched */
    pthread_mutex_t lock;
    pthread_cond_t freed;
    int64_t count; /* of uses */
    int slots;
    size_t slot_bytes;      /* of memory for one that is open */
    tsr_status changed;     /* of the first closed piece that was not what it had been, */
    char changed_text[600]; /* and why */
    open_piece open[OPEN_MAX_PIECES];
} pieces_store;

/* ---- pieces that are open -------------------------------------------------------------------- */

/* With the lock. */
static void close_piece(pieces_store *s, open_piece *slot) {
    if (slot->store && s->changed == TSR_OK && (s->changed = tsr_store_unchanged(slot->store)) != TSR_OK)
        snprintf(s->changed_text, sizeof s->changed_text, "%s", tsr_message());
    tsr_store_close(slot->store);
    *slot = (open_piece){.number = -1};
}

/* With the lock. */
static tsr_status open_one(pieces_store *s, int64_t number, open_piece *slot) {
    const tsr_piece *piece = &s->base.desc.pieces->piece[number];
    const tsr_io_mode mode = piece->bytes ? TSR_IO_DIRECT : s->mode;
    tsr_store_desc desc = piece->desc;
    close_piece(s, slot);
    desc.keep_cached = s->base.desc.keep_cached;
    if (!piece->turned) desc.row_ahead_bytes = s->base.desc.row_ahead_bytes;
    if (!piece->bytes) tsr_store_lower(&desc, mode, s->slot_bytes);
    TSR_TRY(tsr_store_open(&desc, mode, NULL, NULL, &slot->store));
    slot->number = number;
    return TSR_OK;
}

/* With the lock. The piece where it is open, else the slot that is free for longest, NULL while all are in use. */
static open_piece *find_slot(pieces_store *s, int64_t number) {
    open_piece *idle = NULL;
    for (open_piece *slot = s->open; slot < s->open + s->slots; slot++) {
        if (slot->number == number) return slot;
        if (slot->users == 0 && (!idle || slot->used < idle->used)) idle = slot;
    }
    return idle;
}

static tsr_status take(pieces_store *s, int64_t number, open_piece **slot) {
    tsr_status status = TSR_OK;
    pthread_mutex_lock(&s->lock);
    while (!(*slot = find_slot(s, number))) pthread_cond_wait(&s->freed, &s->lock);
    if ((*slot)->number != number) status = open_one(s, number, *slot);
    if (status == TSR_OK) (*slot)->users++;
    pthread_mutex_unlock(&s->lock);
    return status;
}

static void give_back(pieces_store *s, open_piece *slot) {
    pthread_mutex_lock(&s->lock);
    slot->used = ++s->count;
    if (--slot->users == 0) pthread_cond_broadcast(&s->freed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- reading --------------------------------------------------------------------------------- */

static tsr_rect common(tsr_rect a, tsr_rect b) {
    const int64_t row = tsr_max(a.row, b.row), col = tsr_max(a.col, b.col);
    return (tsr_rect){row, col, tsr_max(0, tsr_min(a.row + a.rows, b.row + b.rows) - row),
                      tsr_max(0, tsr_min(a.col + a.cols, b.col + b.cols) - col)};
}

static bool holds_all(tsr_rect of, tsr_rect rect) {
    const tsr_rect both = common(of, rect);
    return both.rows == rect.rows && both.cols == rect.cols;
}

static void swap_row(char *row, int64_t elements, size_t bytes) {
    for (int64_t i = 0; i < elements; i++, row += bytes)
        for (size_t b = 0; b < bytes / 2; b++) {
            const char one = row[b];
            row[b] = row[bytes - 1 - b];
            row[bytes - 1 - b] = one;
        }
}

static void fill_rows(const tsr_piece *piece, tsr_rect rect, size_t element, char *to, int64_t ld) {
    for (int64_t r = 0; r < rect.rows; r++)
        for (int64_t c = 0; c < rect.cols; c++) memcpy(to + (size_t)(r * ld + c) * element, piece->fill, element);
}

/* A row of the piece becomes a column. */
static tsr_status read_column(tsr_store *store, tsr_rect from, size_t element, char *to, int64_t ld) {
    char some[TURNED_ELEMENTS * TSR_ELEMENT_BYTES_MAX];
    for (int64_t done = 0; done < from.cols; done += TURNED_ELEMENTS) {
        const int64_t now = tsr_min(TURNED_ELEMENTS, from.cols - done);
        TSR_TRY(store->ops->read(store, (tsr_rect){from.row, from.col + done, 1, now}, some, now));
        for (int64_t i = 0; i < now; i++)
            memcpy(to + (size_t)((done + i) * ld) * element, some + (size_t)i * element, element);
    }
    return TSR_OK;
}

/* `part` of the dataset lies in the piece; `to` is where its first element goes. */
static tsr_status read_piece(const tsr_piece *piece, tsr_store *store, tsr_rect part, char *to, int64_t ld) {
    const tsr_dtype type = store->desc.element.dtype;
    const size_t element = tsr_dtype_bytes(type);
    const int parts = tsr_dtype_parts(type);
    const tsr_rect inner = {part.row - piece->rect.row, part.col - piece->rect.col, part.rows, part.cols};
    const tsr_rect turned = {inner.col, inner.row, inner.cols, inner.rows};
    if (!piece->turned) TSR_TRY(store->ops->read(store, inner, to, ld));
    else if (part.rows == 1) TSR_TRY(store->ops->read(store, turned, to, 1)); /* a column becomes a row */
    else TSR_TRY(read_column(store, turned, element, to, ld));
    for (int64_t r = 0; store->desc.element.swapped && r < part.rows; r++)
        swap_row(to + (size_t)(r * ld) * element, parts * part.cols, element / (size_t)parts);
    return TSR_OK;
}

/* The first piece of a matrix, or of the next that has any. */
static int64_t first_of(const tsr_pieces *pieces, int64_t matrix) {
    int64_t low = 0, high = pieces->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (pieces->piece[middle].matrix < matrix) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The last piece of those from `first` on that holds all of a rectangle: those before it need not be read. */
static int64_t first_needed(const tsr_pieces *pieces, int64_t first, int64_t end, tsr_rect rect) {
    for (int64_t i = end - 1; i > first; i--)
        if (holds_all(pieces->piece[i].rect, rect)) return i;
    return first;
}

static tsr_status read_from(pieces_store *s, int64_t number, tsr_rect part, char *to, int64_t ld) {
    const tsr_piece *piece = &s->base.desc.pieces->piece[number];
    open_piece *slot;
    if (piece->filled) {
        fill_rows(piece, part, tsr_dtype_bytes(s->base.desc.element.dtype), to, ld);
        return TSR_OK;
    }
    TSR_TRY(take(s, number, &slot));
    const tsr_status status = read_piece(piece, slot->store, part, to, ld);
    give_back(s, slot);
    return status;
}

static tsr_status pieces_read(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    pieces_store *s = (pieces_store *)store;
    const tsr_store_desc *desc = &store->desc;
    const size_t element = tsr_dtype_bytes(desc->element.dtype);
    TSR_TRY(tsr_store_check_rect(desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    const tsr_rect wanted = {desc->row0 + rect.row, desc->col0 + rect.col, rect.rows, rect.cols};
    const int64_t first = first_of(desc->pieces, desc->matrix), end = first_of(desc->pieces, desc->matrix + 1);
    for (int64_t i = first_needed(desc->pieces, first, end, wanted); i < end; i++) {
        const tsr_rect part = common(desc->pieces->piece[i].rect, wanted);
        if (tsr_rect_empty(part)) continue;
        const int64_t at = (part.row - wanted.row) * ld + part.col - wanted.col;
        TSR_TRY(read_from(s, i, part, (char *)to + (size_t)at * element, ld));
    }
    return TSR_OK;
}

static tsr_status pieces_write(tsr_store *store, tsr_rect rect, const void *from, int64_t ld) {
    (void)rect;
    (void)from;
    (void)ld;
    return tsr_fail(TSR_ERR_USAGE, "'%s' was opened for reading only", store->desc.name.file);
}

static tsr_status pieces_sync(tsr_store *store) {
    (void)store;
    return TSR_OK;
}

static tsr_status pieces_unchanged(const tsr_store *store) {
    const pieces_store *s = (const pieces_store *)store;
    if (s->changed != TSR_OK) return tsr_fail(s->changed, "%s", s->changed_text);
    for (const open_piece *slot = s->open; slot < s->open + s->slots; slot++) TSR_TRY(tsr_store_unchanged(slot->store));
    return TSR_OK;
}

static void pieces_close(tsr_store *store) {
    pieces_store *s = (pieces_store *)store;
    for (open_piece *slot = s->open; slot < s->open + s->slots; slot++) tsr_store_close(slot->store);
    if (s->fd >= 0) close(s->fd);
    tsr_pieces_leave(s->base.desc.pieces);
    pthread_cond_destroy(&s->freed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static const tsr_store_ops pieces_ops = {
    .name = "pieces",
    .read = pieces_read,
    .write = pieces_write,
    .sync = pieces_sync,
    .close = pieces_close,
    .unchanged = pieces_unchanged,
};

/* ---- opening --------------------------------------------------------------------------------- */

/* As many open pieces as there is memory for. */
static tsr_status share_memory(pieces_store *s) {
    const tsr_store_desc *desc = &s->base.desc;
    const size_t least = tsr_store_least_bytes(desc, s->mode);
    int64_t slots = tsr_min(OPEN_MAX_PIECES, tsr_max(1, desc->pieces->count));
    if (desc->cache_bytes < least) return tsr_store_too_large(desc, least, desc->cache_bytes, "raise --host-memory");
    if (least > 0) slots = tsr_min(slots, (int64_t)(desc->cache_bytes / least));
    s->slots = (int)slots;
    s->slot_bytes = desc->cache_bytes / (size_t)slots;
    return TSR_OK;
}

tsr_status tsr_pieces_open(const tsr_store_desc *desc, tsr_io_mode mode, tsr_store **store) {
    if (mode == TSR_IO_MPIO)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "'%s:%s' lies in pieces, which MPI-IO does not read here; use --io auto",
                        desc->name.file, desc->name.path);
    pieces_store *s = malloc(sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to open '%s'", desc->name.file);
    *s = (pieces_store){.base = {.ops = &pieces_ops, .desc = *desc}, .mode = mode, .fd = -1};
    for (int i = 0; i < OPEN_MAX_PIECES; i++) s->open[i].number = -1;
    desc->pieces->users++;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->freed, NULL);
    tsr_status status = share_memory(s);
    if (status == TSR_OK) status = tsr_file_state_open(desc->name.file, &desc->file_state, &s->fd);
    if (status == TSR_OK) status = tsr_store_watch(&s->base, s->fd);
    if (status == TSR_OK) *store = &s->base;
    else pieces_close(&s->base);
    return status;
}
