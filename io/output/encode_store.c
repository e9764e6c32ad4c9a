/* The store that encodes chunks (output_chunks.h), into files that go with the process, or stay for a later run
 * (spill.h). */
#define _GNU_SOURCE /* O_TMPFILE, mkostemps */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/chunks/chunk_encode.h"
#include "io/chunks/store_chunks.h"
#include "io/files/file_bytes.h"
#include "io/files/unfinished.h"
#include "io/output/output_chunks_private.h"
#include "io/output/output_private.h"
#include "io/output/resume/spill.h"

static tsr_encoder *take_encoder(tsr_encoding_store *s) {
    tsr_encoder *idle = NULL;
    pthread_mutex_lock(&s->lock);
    while (!idle) {
        for (int i = 0; i < s->encoders && !idle; i++)
            if (!s->encoder[i].busy) idle = &s->encoder[i];
        if (!idle) pthread_cond_wait(&s->freed, &s->lock);
    }
    idle->busy = true;
    pthread_mutex_unlock(&s->lock);
    return idle;
}

static void give_encoder_back(tsr_encoding_store *s, tsr_encoder *e) {
    pthread_mutex_lock(&s->lock);
    e->busy = false;
    pthread_cond_signal(&s->freed);
    pthread_mutex_unlock(&s->lock);
}

tsr_status tsr_spill_failed(const tsr_encoding_store *s, const char *what, size_t bytes, int error) {
    return tsr_fail(tsr_write_status(error),
                    "%s %zu bytes of encoded chunks in the output's folder '%s' failed: %s; %s", what, bytes, s->folder,
                    strerror(error), tsr_write_advice(error));
}

/* Not every file system has files without a name: there the name lives for a moment, and should the process die in it,
 * the next run finds a temporary file like any other. */
static tsr_status open_unnamed(const char *folder, const char *temporary, int *fd) {
    char name[TSR_FILE_CHARS + 16];
    sigset_t before;
    *fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (*fd >= 0) return TSR_OK;
    size_t chars = strlen(temporary);
    if (chars > 4 && strcmp(temporary + chars - 4, ".tmp") == 0) chars -= 4;
    snprintf(name, sizeof name, "%.*s-XXXXXX.tmp", (int)chars, temporary);
    tsr_unfinished_enter(&before);
    *fd = mkostemps(name, 4, O_CLOEXEC);
    const int error = errno;
    if (*fd >= 0) unlink(name);
    tsr_unfinished_leave(&before);
    if (*fd < 0)
        return tsr_fail(
            tsr_write_status(error),
            "cannot make a temporary file '%s' for encoded chunks: %s; every rank needs the output's folder", name,
            strerror(error));
    return TSR_OK;
}

static tsr_spilled place_of(const tsr_encoding_store *s, const tsr_encoder *e) {
    return (tsr_spilled){s->generation, s->rank, (int32_t)(e - s->encoder), e->end};
}

/* A file that a later run finds again: no handler of stop signals removes it. */
static tsr_status open_named(const tsr_encoding_store *s, const tsr_encoder *e, int *fd) {
    char name[TSR_SPILL_NAME_CHARS];
    const tsr_spilled at = place_of(s, e);
    tsr_spill_name(s->base.desc.name.file, &at, name);
    *fd = open(name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*fd >= 0) return tsr_folder_sync(s->folder);
    return tsr_fail(tsr_write_status(errno), "cannot make the file '%s' for encoded chunks: %s", name, strerror(errno));
}

static tsr_status open_file(const tsr_encoding_store *s, tsr_encoder *e) {
    int fd = -1;
    const tsr_status status =
        s->generation > 0 ? open_named(s, e, &fd) : open_unnamed(s->folder, s->base.desc.name.file, &fd);
    atomic_store(&e->fd, fd);
    return status;
}

/* What a later run may find. */
static tsr_status note_fresh(tsr_encoding_store *s, const tsr_encoder *e, const tsr_encoded_chunk *head) {
    const tsr_spilled at = place_of(s, e);
    tsr_status status = TSR_OK;
    pthread_mutex_lock(&s->lock);
    if (s->fresh_count == s->fresh_room) {
        const int64_t room = 2 * s->fresh_room + 64;
        tsr_part *more = realloc(s->fresh, (size_t)room * sizeof *more);
        if (more) {
            s->fresh = more;
            s->fresh_room = room;
        } else status = tsr_fail(TSR_ERR_MEMORY, "no memory to note %lld chunks of C", (long long)room);
    }
    if (status == TSR_OK) s->fresh[s->fresh_count++] = tsr_spill_part(&s->base.desc, head->number, head->head_sum, &at);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static tsr_status keep(tsr_encoding_store *s, tsr_encoder *e, const tsr_encoded_chunk *head, const uint8_t *bytes) {
    if (e->fd < 0) TSR_TRY(open_file(s, e));
    int error = tsr_write_at(e->fd, head, sizeof *head, e->end);
    if (!error) error = tsr_write_at(e->fd, bytes, head->bytes, e->end + (int64_t)sizeof *head);
    if (error) return tsr_spill_failed(s, "writing", head->bytes, error);
    atomic_store(&e->written, true);
    if (s->generation > 0) TSR_TRY(note_fresh(s, e, head));
    e->end += (int64_t)(sizeof *head + head->bytes);
    e->kept++;
    return TSR_OK;
}

/* Chunk (i, j) of the dataset, whose rectangle rows × cols begins at `from`; what lies beyond the matrix is 0. */
static tsr_status encode(tsr_encoding_store *s, tsr_encoder *e, int64_t i, int64_t j, int64_t rows, int64_t cols,
                         const char *from, int64_t ld) {
    const tsr_store_desc *desc = &s->base.desc;
    size_t element = tsr_dtype_bytes(desc->element.dtype), room = tsr_chunk_stored_max(s->chunk_bytes), stored_bytes;
    uint8_t *chunk = e->chunk;
    const uint8_t *stored;
    tsr_encoded_chunk head = {.number = tsr_encoded_number(desc, i, j)};
    if (rows < desc->chunk_rows || cols < desc->chunk_cols) memset(chunk, 0, s->chunk_bytes);
    for (int64_t r = 0; r < rows; r++)
        memcpy(chunk + (size_t)(r * desc->chunk_cols) * element, from + (size_t)(r * ld) * element,
               (size_t)cols * element);
    TSR_TRY(tsr_chunk_encode(tsr_chunks_pipeline(desc), chunk, s->chunk_bytes, chunk + room, &stored, &stored_bytes,
                             &head.skipped));
    head.bytes = (uint32_t)stored_bytes;
    tsr_encoded_seal(&head, stored);
    return keep(s, e, &head, stored);
}

/* Whether [start, start + count) of a side consists of whole chunks. */
static bool whole(int64_t start, int64_t count, int64_t chunk, int64_t length) {
    return start % chunk == 0 && ((start + count) % chunk == 0 || start + count == length);
}

static tsr_status encoding_write(tsr_store *store, tsr_rect rect, const void *from, int64_t ld) {
    tsr_encoding_store *s = (tsr_encoding_store *)store;
    const tsr_store_desc *desc = &store->desc;
    TSR_TRY(tsr_store_check_rect(desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    if (!whole(rect.row, rect.rows, desc->chunk_rows, desc->rows) ||
        !whole(rect.col, rect.cols, desc->chunk_cols, desc->cols))
        return tsr_fail(TSR_ERR_SHAPE,
                        "%lldx%lld elements at (%lld, %lld) of '%s' are not whole chunks of %lldx%lld: this is a "
                        "mistake in the program; leave --chunk and --compress out",
                        (long long)rect.rows, (long long)rect.cols, (long long)rect.row, (long long)rect.col,
                        desc->name.path, (long long)desc->chunk_rows, (long long)desc->chunk_cols);
    size_t element = tsr_dtype_bytes(desc->element.dtype);
    tsr_encoder *e = take_encoder(s);
    tsr_status status = TSR_OK;
    for (int64_t row = 0; row < rect.rows && status == TSR_OK; row += desc->chunk_rows)
        for (int64_t col = 0; col < rect.cols && status == TSR_OK; col += desc->chunk_cols)
            status = encode(s, e, (rect.row + row) / desc->chunk_rows, (rect.col + col) / desc->chunk_cols,
                            tsr_min(desc->chunk_rows, rect.rows - row), tsr_min(desc->chunk_cols, rect.cols - col),
                            (const char *)from + (size_t)(row * ld + col) * element, ld);
    give_encoder_back(s, e);
    return status;
}

static tsr_status encoding_read(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    (void)rect;
    (void)to;
    (void)ld;
    return tsr_fail(TSR_ERR_USAGE, "the chunks of '%s' cannot be read before they are placed in its file",
                    store->desc.name.path);
}

/* What a later run may go on with is brought to stable storage, also while chunks are written. */
static tsr_status sync_named(tsr_encoding_store *s) {
    for (int i = 0; i < s->encoders; i++) {
        tsr_encoder *e = &s->encoder[i];
        if (atomic_exchange(&e->written, false) && fdatasync(e->fd) != 0)
            return tsr_spill_failed(s, "syncing", (size_t)s->chunk_bytes, errno);
    }
    return TSR_OK;
}

/* Once all chunks are taken out again the disk need not have them. */
static tsr_status encoding_sync(tsr_store *store) {
    tsr_encoding_store *s = (tsr_encoding_store *)store;
    if (s->generation > 0) return sync_named(s);
    for (int i = 0; i < s->encoders; i++) {
        const tsr_encoder *e = &s->encoder[i];
        if (e->kept > 0 && e->taken == e->kept && ftruncate(e->fd, 0) != 0)
            return tsr_spill_failed(s, "giving back", (size_t)e->end, errno);
    }
    return TSR_OK;
}

static void encoding_close(tsr_store *store) {
    tsr_encoding_store *s = (tsr_encoding_store *)store;
    for (int i = 0; i < s->encoders; i++)
        if (s->encoder[i].fd >= 0) close(s->encoder[i].fd);
    pthread_cond_destroy(&s->freed);
    pthread_mutex_destroy(&s->lock);
    free(s->memory);
    free(s->fresh);
    free(s);
}

static const tsr_store_ops encoding_ops = {"encode", encoding_read, encoding_write, encoding_sync, encoding_close,
                                           NULL,     NULL};

tsr_status tsr_encoding_open(const tsr_output *output, tsr_store **store) {
    const tsr_store_desc *desc = &output->desc;
    tsr_output_spec spec = tsr_chunks_spec(&output->desc);
    tsr_encoding_store *s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to open '%s'", desc->name.file);
    s->base =
        (tsr_store){.ops = &encoding_ops, .desc = *desc, .unit_rows = desc->chunk_rows, .unit_cols = desc->chunk_cols};
    s->chunk_bytes = tsr_chunks_bytes_of(&spec);
    s->chunks = tsr_spec_chunks(&spec);
    s->encoders = (int)tsr_max(
        1, tsr_min(TSR_ENCODERS_MAX,
                   (int64_t)(output->encode_bytes / tsr_encoder_bytes(tsr_chunks_pipeline(desc), s->chunk_bytes))));
    tsr_folder_of(output->target, s->folder);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->freed, NULL);
    tsr_status status = TSR_OK;
    const size_t both = tsr_encoder_buffers_bytes(s->chunk_bytes), bytes = (size_t)s->encoders * both;
    if (!(s->memory = malloc(bytes)))
        status = tsr_fail(TSR_ERR_MEMORY, "no memory for %zu bytes of chunks of '%s'; use smaller ones: --chunk", bytes,
                          desc->name.path);
    for (int i = 0; i < s->encoders; i++)
        s->encoder[i] = (tsr_encoder){.fd = -1, .chunk = s->memory + (size_t)i * both};
    if (status == TSR_OK) status = open_file(s, &s->encoder[0]);
    if (status == TSR_OK) *store = &s->base;
    else encoding_close(&s->base);
    return status;
}

/* ---- for a later run ------------------------------------------------------------------------- */

void tsr_chunks_name(tsr_store *store, uint64_t generation, int rank) {
    tsr_encoding_store *s = (tsr_encoding_store *)store;
    close(s->encoder[0].fd); /* the one without a name, which is empty */
    s->encoder[0].fd = -1;
    s->generation = generation;
    s->rank = rank;
}

void tsr_chunks_fresh(tsr_store *store, tsr_part **parts, int64_t *count) {
    tsr_encoding_store *s = (tsr_encoding_store *)store;
    pthread_mutex_lock(&s->lock);
    *parts = s->fresh;
    *count = s->fresh_count;
    s->fresh = NULL;
    s->fresh_count = s->fresh_room = 0;
    pthread_mutex_unlock(&s->lock);
}
