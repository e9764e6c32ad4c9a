/* Chunked datasets, chunk by chunk. Where the places of chunks are known (desc.index) their stored bytes are read
 * from the file, else the library gives them, under its lock; the threads that read decode them at the same time
 * without it. Decoded chunks are kept, those not used for longest leave first, so that a chunk that several
 * rectangles share is decoded once.
 * All memory is taken at opening, at most desc.cache_bytes. Elements come in the file's byte order. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/chunks/store_chunks.h"
#include "io/files/file_bytes.h"
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_probe.h"
#include "io/hdf5/access/hdf5_type.h"
#include "io/hdf5/hdf5_memory.h"
#include "io/hdf5/hdf5_place.h"

#define KEPT_MAX 8192 /* they are searched one by one */

/* A decoded chunk. `number` counts chunks row by row; -1: empty. Busy ones are neither thrown out nor, while
 * loading, read. */
typedef struct {
    int64_t number, used; /* used: when, by the store's count */
    int users;
    bool loading;
} kept_chunk;

typedef struct {
    tsr_store base;
    int fd; /* with an index; else -1, and: */
    hid_t file, dataset;
    hid_t stored_type, type;       /* of elements that HDF5 converts, in memory; else -1 */
    size_t chunk_bytes;            /* as stored and decoded */
    size_t slot_bytes;             /* of a kept chunk, which may be wider */
    int64_t chunks, chunks_across; /* of one matrix, which count on from matrix to matrix; in one row of them */
    pthread_mutex_t lock;
    pthread_cond_t freed; /* a chunk or a decoder */
    int64_t count;        /* of uses */
    int kept_count, decoders;
    kept_chunk *kept;
    uint8_t *memory; /* the kept chunks, then two buffers a decoder */
    bool decoding[TSR_DECODERS_MAX];
} chunk_store;

static uint8_t *chunk_data(const chunk_store *s, int slot) { return s->memory + (size_t)slot * s->slot_bytes; }

static uint8_t *decoder_buffers(const chunk_store *s, int decoder) {
    return s->memory + (size_t)s->kept_count * s->slot_bytes +
           (size_t)decoder * 2 * tsr_chunk_stored_max(s->chunk_bytes);
}

/* ---- one chunk ------------------------------------------------------------------------------- */

static void fill_chunk(const chunk_store *s, uint8_t *to) {
    const tsr_store_desc *desc = &s->base.desc;
    const size_t element = tsr_dtype_bytes(desc->element.dtype);
    const size_t elements = (size_t)desc->chunk_rows * (size_t)desc->chunk_cols;
    for (size_t i = 0; i < elements; i++) memcpy(to + i * element, desc->hdf5.unwritten, element);
}

/* In place. */
static tsr_status convert_chunk(const chunk_store *s, uint8_t *chunk) {
    const size_t elements = (size_t)s->base.desc.chunk_rows * (size_t)s->base.desc.chunk_cols;
    if (s->type < 0) return TSR_OK;
    tsr_h5_enter();
    const herr_t error = H5Tconvert(s->stored_type, s->type, elements, chunk, NULL, H5P_DEFAULT);
    const tsr_status status = error < 0 ? tsr_h5_fail(TSR_ERR_FORMAT, "its elements cannot be converted") : TSR_OK;
    tsr_h5_leave();
    return status;
}

/* The chunk's bytes as stored, without HDF5; *stored_bytes 0 where it was never written. */
static tsr_status fetch_placed(const chunk_store *s, int64_t matrix, int64_t i, int64_t j, void *to, size_t room,
                               size_t *stored_bytes, uint32_t *skipped) {
    const tsr_chunk_index *index = s->base.desc.index;
    const tsr_chunk_range *range = &index->range;
    i -= range->row0;
    j -= range->col0;
    if (i < 0 || j < 0 || matrix >= range->matrices || i >= range->rows || j >= range->cols)
        return tsr_fail(TSR_ERR_SHAPE, "it is not in the list");
    const tsr_chunk_place *place = &index->places[tsr_chunk_index_at(*range, matrix, i, j)];
    if (place->bytes > room) return tsr_fail(TSR_ERR_FORMAT, "it takes %u bytes in the file", place->bytes);
    *stored_bytes = place->bytes;
    *skipped = place->skipped;
    const ssize_t got = tsr_read_at(s->fd, to, place->bytes, place->address);
    if (got < 0) return tsr_fail(TSR_ERR_IO, "it cannot be read: %s", strerror(errno));
    return got == (ssize_t)place->bytes ? TSR_OK : tsr_fail(TSR_ERR_FORMAT, "the file ends within it");
}

/* The same through HDF5. The lock on it is taken. */
static tsr_status fetch(const chunk_store *s, const hsize_t *at, void *to, size_t room, size_t *stored_bytes,
                        uint32_t *skipped) {
    hsize_t bytes = 0;
    *stored_bytes = 0;
    *skipped = 0;
    if (H5Dget_chunk_storage_size(s->dataset, at, &bytes) < 0) {
        if (!tsr_h5_error_says("chunk storage is not allocated")) return tsr_h5_fail(TSR_ERR_IO, "it cannot be found");
        H5Eclear2(H5E_DEFAULT);
        return TSR_OK; /* as HDF5 1.10 and later say that it was never written */
    }
    if (bytes > room)
        return tsr_fail(TSR_ERR_FORMAT, "it takes %llu bytes in the file, more than its %zu can",
                        (unsigned long long)bytes, s->chunk_bytes);
    if (bytes == 0) return TSR_OK;
    if (H5Dread_chunk(s->dataset, H5P_DEFAULT, at, skipped, to) < 0)
        return tsr_h5_fail(TSR_ERR_IO, "it cannot be read");
    *stored_bytes = (size_t)bytes;
    return TSR_OK;
}

static tsr_status load(const chunk_store *s, int64_t number, int decoder, uint8_t *to) {
    const tsr_store_desc *desc = &s->base.desc;
    const int64_t matrix = number / s->chunks, of_matrix = number % s->chunks;
    const int64_t i = of_matrix / s->chunks_across, j = of_matrix % s->chunks_across;
    uint8_t *stored = decoder_buffers(s, decoder);
    size_t room = tsr_chunk_stored_max(s->chunk_bytes), bytes = 0;
    uint32_t skipped = 0;
    tsr_status status;
    if (s->fd >= 0) {
        status = fetch_placed(s, matrix, i, j, stored, room, &bytes, &skipped);
    } else {
        tsr_h5_enter();
        status = fetch(s, tsr_h5_chunk_place(desc, matrix, i, j).at, stored, room, &bytes, &skipped);
        tsr_h5_leave();
    }
    if (status == TSR_OK && bytes == 0) fill_chunk(s, to);
    else if (status == TSR_OK) {
        status = tsr_chunk_decode(&desc->hdf5.pipeline, skipped, stored, bytes, stored + room, to, s->chunk_bytes);
        if (status == TSR_OK) status = convert_chunk(s, to);
    }
    if (status == TSR_OK) return TSR_OK;
    char why[600];
    snprintf(why, sizeof why, "%s", tsr_message());
    return tsr_fail(status, "'%s:%s': the %lldx%lld chunk at (%lld, %lld): %s; the file may be damaged: copy it again",
                    desc->name.file, desc->name.path, (long long)desc->chunk_rows, (long long)desc->chunk_cols,
                    (long long)(i * desc->chunk_rows), (long long)(j * desc->chunk_cols), why);
}

/* ---- kept chunks ----------------------------------------------------------------------------- */

static int find(const chunk_store *s, int64_t number) {
    for (int i = 0; i < s->kept_count; i++)
        if (s->kept[i].number == number) return i;
    return -1;
}

/* The idle chunk not used for longest; -1 when all are in use. */
static int find_idle(const chunk_store *s) {
    int idle = -1;
    for (int i = 0; i < s->kept_count; i++)
        if (s->kept[i].users == 0 && (idle < 0 || s->kept[i].used < s->kept[idle].used)) idle = i;
    return idle;
}

static int find_decoder(const chunk_store *s) {
    for (int i = 0; i < s->decoders; i++)
        if (!s->decoding[i]) return i;
    return -1;
}

/* With the lock: decodes chunk `number` into an idle slot, without the lock meanwhile. */
static tsr_status load_into(chunk_store *s, int64_t number, int slot, int decoder) {
    s->kept[slot] = (kept_chunk){.number = number, .users = 1, .loading = true};
    s->decoding[decoder] = true;
    pthread_mutex_unlock(&s->lock);
    tsr_status status = load(s, number, decoder, chunk_data(s, slot));
    pthread_mutex_lock(&s->lock);
    s->decoding[decoder] = false;
    s->kept[slot].loading = false;
    if (status != TSR_OK) s->kept[slot] = (kept_chunk){.number = -1};
    pthread_cond_broadcast(&s->freed);
    return status;
}

/* Gives the slot that holds the chunk, for the caller to give back. Nobody holds one while waiting here, so somebody
 * always goes on. */
static tsr_status take(chunk_store *s, int64_t number, int *slot) {
    tsr_status status = TSR_OK;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        int there = find(s, number), idle, decoder;
        if (there >= 0 && !s->kept[there].loading) {
            s->kept[there].users++;
            *slot = there;
            break;
        }
        if (there < 0 && (idle = find_idle(s)) >= 0 && (decoder = find_decoder(s)) >= 0) {
            status = load_into(s, number, idle, decoder);
            *slot = idle;
            break;
        }
        pthread_cond_wait(&s->freed, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

static void give_back(chunk_store *s, int slot) {
    pthread_mutex_lock(&s->lock);
    s->kept[slot].used = ++s->count;
    if (--s->kept[slot].users == 0) pthread_cond_broadcast(&s->freed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- the store ------------------------------------------------------------------------------- */

/* The part of the rectangle [row0, row1) × [col0, col1) of the dataset that chunk (i, j) holds; `to` is the
 * rectangle's first element. */
static tsr_status copy_from_chunk(chunk_store *s, int64_t i, int64_t j, const int64_t rows[2], const int64_t cols[2],
                                  char *to, int64_t ld) {
    const tsr_store_desc *desc = &s->base.desc;
    size_t element = tsr_dtype_bytes(desc->element.dtype);
    int64_t top = tsr_max(rows[0], i * desc->chunk_rows), bottom = tsr_min(rows[1], (i + 1) * desc->chunk_rows);
    int64_t left = tsr_max(cols[0], j * desc->chunk_cols), right = tsr_min(cols[1], (j + 1) * desc->chunk_cols);
    int slot;
    TSR_TRY(take(s, desc->matrix * s->chunks + i * s->chunks_across + j, &slot));
    const uint8_t *from =
        chunk_data(s, slot) +
        (size_t)((top - i * desc->chunk_rows) * desc->chunk_cols + left - j * desc->chunk_cols) * element;
    to += (size_t)((top - rows[0]) * ld + left - cols[0]) * element;
    for (int64_t r = 0; r < bottom - top; r++)
        memcpy(to + (size_t)(r * ld) * element, from + (size_t)(r * desc->chunk_cols) * element,
               (size_t)(right - left) * element);
    give_back(s, slot);
    return TSR_OK;
}

static tsr_status chunks_read(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    chunk_store *s = (chunk_store *)store;
    const tsr_store_desc *desc = &store->desc;
    TSR_TRY(tsr_store_check_rect(desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    int64_t row = desc->row0 + rect.row, col = desc->col0 + rect.col;
    const int64_t rows[2] = {row, row + rect.rows}, cols[2] = {col, col + rect.cols};
    for (int64_t i = rows[0] / desc->chunk_rows; i * desc->chunk_rows < rows[1]; i++)
        for (int64_t j = cols[0] / desc->chunk_cols; j * desc->chunk_cols < cols[1]; j++)
            TSR_TRY(copy_from_chunk(s, i, j, rows, cols, to, ld));
    return TSR_OK;
}

static tsr_status chunks_write(tsr_store *store, tsr_rect rect, const void *from, int64_t ld) {
    (void)rect;
    (void)from;
    (void)ld;
    return tsr_fail(TSR_ERR_USAGE, "'%s' was opened for reading only", store->desc.name.file);
}

static tsr_status chunks_sync(tsr_store *store) {
    (void)store;
    return TSR_OK;
}

static void chunks_close(tsr_store *store) {
    chunk_store *s = (chunk_store *)store;
    if (s->fd >= 0) close(s->fd);
    tsr_chunk_index_leave(s->base.desc.index);
    tsr_h5_enter();
    if (s->dataset >= 0) H5Dclose(s->dataset);
    if (s->stored_type >= 0) H5Tclose(s->stored_type);
    if (s->type >= 0) H5Tclose(s->type);
    if (s->file >= 0) H5Fclose(s->file);
    tsr_h5_leave();
    pthread_cond_destroy(&s->freed);
    pthread_mutex_destroy(&s->lock);
    free(s->kept);
    free(s->memory);
    free(s);
}

static const tsr_store_ops chunks_ops = {"chunks", chunks_read, chunks_write, chunks_sync, chunks_close, NULL, NULL};

/* ---- opening --------------------------------------------------------------------------------- */

static size_t chunk_bytes_of(const tsr_store_desc *desc) {
    return (size_t)desc->chunk_rows * (size_t)desc->chunk_cols * tsr_stored_bytes(desc);
}

static size_t slot_bytes_of(const tsr_store_desc *desc) {
    const size_t stored = tsr_stored_bytes(desc), element = tsr_dtype_bytes(desc->element.dtype);
    return (size_t)desc->chunk_rows * (size_t)desc->chunk_cols * (stored > element ? stored : element);
}

size_t tsr_chunks_bytes(const tsr_store_desc *desc, int64_t kept, int decoders) {
    return (size_t)kept * (slot_bytes_of(desc) + sizeof(kept_chunk)) +
           (size_t)decoders *
               (2 * tsr_chunk_stored_max(chunk_bytes_of(desc)) + tsr_chunk_undo_bytes(tsr_chunks_pipeline(desc)));
}

/* A decoder for each chunk's worth of room, with the chunk it decodes to; what is left keeps chunks. */
static tsr_status take_memory(chunk_store *s) {
    const tsr_store_desc *desc = &s->base.desc;
    size_t room = desc->cache_bytes, one = tsr_chunks_bytes(desc, 1, 1);
    if (room < one) return tsr_hdf5_too_large(desc, one, room, "raise --host-memory");
    s->decoders = (int)tsr_min(TSR_DECODERS_MAX, (int64_t)(room / one));
    const size_t left = room - tsr_chunks_bytes(desc, 0, s->decoders);
    s->kept_count = (int)tsr_min(KEPT_MAX, (int64_t)(left / (s->slot_bytes + sizeof *s->kept)));
    s->kept = malloc((size_t)s->kept_count * sizeof *s->kept);
    s->memory = malloc(tsr_chunks_bytes(desc, s->kept_count, s->decoders));
    if (!s->kept || !s->memory)
        return tsr_fail(TSR_ERR_MEMORY, "no memory for %zu bytes of chunks of '%s'", room, desc->name.file);
    for (int i = 0; i < s->kept_count; i++) s->kept[i] = (kept_chunk){.number = -1};
    return TSR_OK;
}

/* Elements that are no C type. */
static bool open_types(chunk_store *s) {
    if (s->base.desc.hdf5.standard) return true;
    s->stored_type = H5Dget_type(s->dataset);
    s->type = tsr_h5_memory_type(s->base.desc.element.dtype, s->base.desc.fields);
    return s->stored_type >= 0 && s->type >= 0;
}

/* HDF5 itself keeps no chunks here. */
static tsr_status open_dataset(chunk_store *s) {
    const tsr_store_desc *desc = &s->base.desc;
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    if (access >= 0 && H5Pset_chunk_cache(access, 1, 0, 1.0) >= 0)
        s->dataset = H5Dopen2(s->file, desc->name.path, access);
    tsr_status status = TSR_OK;
    if (s->dataset < 0 || !open_types(s))
        status = tsr_h5_fail(TSR_ERR_IO, "cannot open '%s:%s'", desc->name.file, desc->name.path);
    if (access >= 0) H5Pclose(access);
    return status;
}

static tsr_status open_through_hdf5(chunk_store *s) {
    tsr_h5_enter();
    tsr_status status = tsr_h5_open_read(s->base.desc.name.file, &s->file);
    if (status == TSR_OK) status = tsr_h5_watch(&s->base, s->file);
    if (status == TSR_OK) status = open_dataset(s);
    if (status == TSR_OK) status = tsr_h5_check_address(&s->base, s->dataset);
    tsr_h5_leave();
    return status;
}

static tsr_status open_placed(chunk_store *s) {
    TSR_TRY(tsr_file_state_open(s->base.desc.name.file, &s->base.desc.file_state, &s->fd));
    return tsr_store_watch(&s->base, s->fd);
}

tsr_status tsr_chunks_open(const tsr_store_desc *desc, tsr_store **store) {
    TSR_TRY(tsr_h5_probe(desc->name.file, NULL, NULL));
    chunk_store *s = malloc(sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to open '%s'", desc->name.file);
    *s = (chunk_store){
        .base = {.ops = &chunks_ops, .desc = *desc, .unit_rows = desc->chunk_rows, .unit_cols = desc->chunk_cols},
        .fd = -1,
        .file = -1,
        .dataset = -1,
        .stored_type = -1,
        .type = -1,
        .chunk_bytes = chunk_bytes_of(desc),
        .slot_bytes = slot_bytes_of(desc),
        .chunks_across = tsr_ceil_div(desc->dataset_cols, desc->chunk_cols)};
    s->chunks = s->chunks_across * tsr_ceil_div(desc->dataset_rows, desc->chunk_rows);
    if (desc->index) desc->index->users++;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->freed, NULL);
    tsr_status status = take_memory(s);
    if (status == TSR_OK) status = desc->index ? open_placed(s) : open_through_hdf5(s);
    if (status == TSR_OK) *store = &s->base;
    else chunks_close(&s->base);
    return status;
}
