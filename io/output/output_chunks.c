/* Chunks of an output on their way (output_chunks.h): the store that encodes them into a file without a name. */
#define _GNU_SOURCE /* O_TMPFILE, mkostemps, fallocate */
#include "io/output/output_chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/chunks/chunk_encode.h"
#include "io/chunks/store_chunks.h"
#include "io/files/crc32c.h"
#include "io/files/file_bytes.h"
#include "io/files/raw_file.h"
#include "io/files/unfinished.h"
#include "io/output/output_private.h"

#define CHUNK_BYTES_WANTED ((int64_t)1 << 20)
#define CHUNK_STEP 16 /* chosen sides are multiples of this */

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Parts of about `wanted` that leave little beyond the end: `length` in as many equal parts as it takes. */
static int64_t even_side(int64_t length, int64_t wanted) {
    if (length <= wanted) return tsr_max(1, length);
    return tsr_min(length, tsr_round_up(tsr_ceil_div(length, tsr_ceil_div(length, wanted)), CHUNK_STEP));
}

void tsr_output_choose_chunks(tsr_output_spec *spec) {
    if (spec->chunk_rows == 0 && spec->compress.how) spec->chunk_rows = TSR_CHUNK_AUTO;
    if (spec->chunk_rows == 0) return;
    if (spec->chunk_rows == TSR_CHUNK_AUTO) {
        int64_t elements = CHUNK_BYTES_WANTED / (int64_t)tsr_dtype_bytes(spec->dtype), side = 1;
        while (4 * side * side <= elements) side *= 2;
        int64_t rows = even_side(spec->rows, side);
        spec->chunk_cols = even_side(spec->cols, tsr_max(side, elements / rows));
        spec->chunk_rows = even_side(spec->rows, tsr_max(side, elements / spec->chunk_cols));
    }
    /* HDF5 refuses chunks larger than a dataset that cannot grow, unless that is empty. */
    spec->chunk_rows = tsr_min(spec->chunk_rows, tsr_max(1, spec->rows));
    spec->chunk_cols = tsr_min(spec->chunk_cols, tsr_max(1, spec->cols));
}

int64_t tsr_spec_chunks(const tsr_output_spec *spec) {
    if (spec->chunk_rows <= 0 || spec->chunk_cols <= 0) return 0;
    int64_t count;
    bool fits = !__builtin_mul_overflow(tsr_ceil_div(spec->rows, spec->chunk_rows),
                                        tsr_ceil_div(spec->cols, spec->chunk_cols), &count) &&
                !__builtin_mul_overflow(count, tsr_output_matrices(spec), &count);
    return fits ? count : INT64_MAX;
}

static tsr_output_spec spec_of(const tsr_store_desc *desc) {
    return (tsr_output_spec){.rows = desc->rows,
                             .cols = desc->cols,
                             .stack_dimensions = 1,
                             .stack = {desc->matrices},
                             .dtype = desc->element.dtype,
                             .chunk_rows = desc->chunk_rows,
                             .chunk_cols = desc->chunk_cols};
}

int64_t tsr_output_chunks(const tsr_output *output) {
    tsr_output_spec spec = spec_of(&output->desc);
    return tsr_spec_chunks(&spec);
}

static size_t chunk_bytes_of(const tsr_output_spec *spec) {
    return (size_t)spec->chunk_rows * (size_t)spec->chunk_cols * tsr_dtype_bytes(spec->dtype);
}

static int64_t chunks_of_matrix(const tsr_store_desc *desc) {
    return tsr_ceil_div(desc->rows, desc->chunk_rows) * tsr_ceil_div(desc->cols, desc->chunk_cols);
}

int64_t tsr_encoded_number(const tsr_store_desc *desc, int64_t i, int64_t j) {
    return desc->matrix * chunks_of_matrix(desc) + i * tsr_ceil_div(desc->cols, desc->chunk_cols) + j;
}

void tsr_encoded_place(const tsr_store_desc *desc, int64_t number, int64_t *matrix, int64_t *i, int64_t *j) {
    const int64_t chunks = chunks_of_matrix(desc), across = tsr_ceil_div(desc->cols, desc->chunk_cols);
    *matrix = number / chunks;
    *i = number % chunks / across;
    *j = number % chunks % across;
}

/* Two buffers, and what the filters take. */
static size_t buffers_bytes(size_t chunk_bytes) {
    return (size_t)tsr_round_up(2 * (int64_t)tsr_chunk_stored_max(chunk_bytes), 16);
}

static size_t encoder_bytes(const tsr_pipeline *pipeline, size_t chunk_bytes) {
    return buffers_bytes(chunk_bytes) + tsr_chunk_encode_bytes(pipeline, chunk_bytes);
}

tsr_pipeline tsr_output_pipeline(const tsr_output_spec *spec) {
    tsr_pipeline pipeline =
        tsr_compress_pipeline(&spec->compress, spec->shuffle, tsr_dtype_bytes(spec->dtype), chunk_bytes_of(spec));
    if (spec->checksum) tsr_pipeline_add_checksum(&pipeline);
    return pipeline;
}

size_t tsr_output_encode_bytes(const tsr_output_spec *spec, int encoders) {
    if (spec->chunk_rows <= 0) return 0;
    const tsr_pipeline pipeline = tsr_output_pipeline(spec);
    return (size_t)encoders * encoder_bytes(&pipeline, chunk_bytes_of(spec));
}

/* ---- heads ----------------------------------------------------------------------------------- */

void tsr_encoded_seal(tsr_encoded_chunk *head, const void *bytes) {
    head->bytes_sum = tsr_crc32c(0, bytes, head->bytes);
    head->head_sum = tsr_crc32c(0, head, offsetof(tsr_encoded_chunk, head_sum));
}

/* A chunk is kept compressed only where that saves something. */
const char *tsr_encoded_head_wrong(const tsr_store_desc *desc, const tsr_encoded_chunk *head) {
    const tsr_output_spec spec = spec_of(desc);
    const size_t whole = chunk_bytes_of(&spec) + tsr_pipeline_added_bytes(tsr_chunks_pipeline(desc));
    if (head->head_sum != tsr_crc32c(0, head, offsetof(tsr_encoded_chunk, head_sum))) return "its head has another sum";
    if (head->number < 0 || head->number >= tsr_spec_chunks(&spec)) return "there is no such chunk";
    if (head->skipped >> tsr_chunks_pipeline(desc)->count) return "it skips filters that there are not";
    const bool compressed = tsr_chunk_is_compressed(tsr_chunks_pipeline(desc), head->skipped);
    if (compressed ? head->bytes == 0 || head->bytes >= whole : head->bytes != whole) return "it has another size";
    return NULL;
}

/* ---- the store ------------------------------------------------------------------------------- */

/* One thread at a time has it. Files of their own: a memory-backed file system lets one thread write to a file. */
typedef struct {
    bool busy;
    int fd;                /* of its file without a name; -1: it has kept nothing */
    int64_t end, kept;     /* bytes and chunks in the file */
    _Atomic int64_t taken; /* chunks of these that were taken out */
    uint8_t *chunk;        /* two buffers, one behind the other */
} encoder;

typedef struct {
    tsr_store base;
    char folder[TSR_FILE_CHARS];
    size_t chunk_bytes;
    int64_t chunks; /* of the dataset */
    int encoders;
    encoder encoder[TSR_ENCODERS_MAX];
    uint8_t *memory;
    pthread_mutex_t lock;
    pthread_cond_t freed; /* an encoder */
} encoding_store;

static encoder *take_encoder(encoding_store *s) {
    encoder *idle = NULL;
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

static void give_encoder_back(encoding_store *s, encoder *e) {
    pthread_mutex_lock(&s->lock);
    e->busy = false;
    pthread_cond_signal(&s->freed);
    pthread_mutex_unlock(&s->lock);
}

static tsr_status spill_failed(const encoding_store *s, const char *what, size_t bytes, int error) {
    tsr_status status = tsr_write_status(error);
    return tsr_fail(status, "%s %zu bytes of encoded chunks in the output's folder '%s' failed: %s; %s", what, bytes,
                    s->folder, strerror(error),
                    status == TSR_ERR_SPACE ? "free some space or choose another folder"
                                            : "check the disk and the file system");
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

static tsr_status keep(const encoding_store *s, encoder *e, const tsr_encoded_chunk *head, const uint8_t *bytes) {
    if (e->fd < 0) TSR_TRY(open_unnamed(s->folder, s->base.desc.name.file, &e->fd));
    int error = tsr_write_at(e->fd, head, sizeof *head, e->end);
    if (!error) error = tsr_write_at(e->fd, bytes, head->bytes, e->end + (int64_t)sizeof *head);
    if (error) return spill_failed(s, "writing", head->bytes, error);
    e->end += (int64_t)(sizeof *head + head->bytes);
    e->kept++;
    return TSR_OK;
}

/* Chunk (i, j) of the dataset, whose rectangle rows × cols begins at `from`; what lies beyond the matrix is 0. */
static tsr_status encode(const encoding_store *s, encoder *e, int64_t i, int64_t j, int64_t rows, int64_t cols,
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
    encoding_store *s = (encoding_store *)store;
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
    encoder *e = take_encoder(s);
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

/* Once all chunks are taken out again the disk need not have them. */
static tsr_status encoding_sync(tsr_store *store) {
    const encoding_store *s = (const encoding_store *)store;
    for (int i = 0; i < s->encoders; i++) {
        const encoder *e = &s->encoder[i];
        if (e->kept > 0 && e->taken == e->kept && ftruncate(e->fd, 0) != 0)
            return spill_failed(s, "giving back", (size_t)e->end, errno);
    }
    return TSR_OK;
}

static void encoding_close(tsr_store *store) {
    encoding_store *s = (encoding_store *)store;
    for (int i = 0; i < s->encoders; i++)
        if (s->encoder[i].fd >= 0) close(s->encoder[i].fd);
    pthread_cond_destroy(&s->freed);
    pthread_mutex_destroy(&s->lock);
    free(s->memory);
    free(s);
}

static const tsr_store_ops encoding_ops = {"encode", encoding_read, encoding_write, encoding_sync, encoding_close,
                                           NULL,     NULL};

tsr_status tsr_encoding_open(const tsr_output *output, tsr_store **store) {
    const tsr_store_desc *desc = &output->desc;
    tsr_output_spec spec = spec_of(&output->desc);
    encoding_store *s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to open '%s'", desc->name.file);
    s->base =
        (tsr_store){.ops = &encoding_ops, .desc = *desc, .unit_rows = desc->chunk_rows, .unit_cols = desc->chunk_cols};
    s->chunk_bytes = chunk_bytes_of(&spec);
    s->chunks = tsr_spec_chunks(&spec);
    s->encoders =
        (int)tsr_max(1, tsr_min(TSR_ENCODERS_MAX, (int64_t)(output->encode_bytes /
                                                            encoder_bytes(tsr_chunks_pipeline(desc), s->chunk_bytes))));
    tsr_folder_of(output->target, s->folder);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->freed, NULL);
    tsr_status status = TSR_OK;
    const size_t both = buffers_bytes(s->chunk_bytes), bytes = (size_t)s->encoders * both;
    if (!(s->memory = malloc(bytes)))
        status = tsr_fail(TSR_ERR_MEMORY, "no memory for %zu bytes of chunks of '%s'; use smaller ones: --chunk", bytes,
                          desc->name.path);
    for (int i = 0; i < s->encoders; i++) s->encoder[i] = (encoder){.fd = -1, .chunk = s->memory + (size_t)i * both};
    if (status == TSR_OK) status = open_unnamed(s->folder, desc->name.file, &s->encoder[0].fd);
    if (status == TSR_OK) *store = &s->base;
    else encoding_close(&s->base);
    return status;
}

/* ---- taking them out again ------------------------------------------------------------------- */

/* 0 or an errno; a file that ends early is EIO. */
static int read_all(int fd, void *to, size_t bytes, int64_t offset) {
    const ssize_t got = tsr_read_at(fd, to, bytes, offset);
    return got < 0 ? errno : got < (ssize_t)bytes ? EIO : 0;
}

static int by_number(const void *a, const void *b) {
    int64_t x = ((const tsr_kept_chunk *)a)->number, y = ((const tsr_kept_chunk *)b)->number;
    return (x > y) - (x < y);
}

static tsr_status changed(const encoding_store *s, int64_t offset, const char *what) {
    return tsr_fail(TSR_ERR_IO,
                    "an encoded chunk of '%s' came back from the disk under '%s' as something else (at byte %lld: %s); "
                    "check the disk and the memory, and run the command again",
                    s->base.desc.name.path, s->folder, (long long)offset, what);
}

/* Reads the heads of the chunks in a file, in the order in which they were written. */
static tsr_status read_heads(const encoding_store *s, int file, tsr_kept_chunk *chunks) {
    const encoder *e = &s->encoder[file];
    tsr_encoded_chunk head;
    int64_t at = 0;
    for (int64_t i = 0; i < e->kept; i++, at += (int64_t)(sizeof head + head.bytes)) {
        int error = read_all(e->fd, &head, sizeof head, at);
        if (error) return spill_failed(s, "reading", sizeof head, error);
        const char *wrong = tsr_encoded_head_wrong(&s->base.desc, &head);
        if (wrong) return changed(s, at, wrong);
        chunks[i] = (tsr_kept_chunk){head.number, at, {head.bytes, head.skipped}, file};
    }
    return TSR_OK;
}

tsr_status tsr_chunks_kept(tsr_store *store, tsr_kept_chunk **chunks, int64_t *count) {
    const encoding_store *s = (const encoding_store *)store;
    int64_t held = 0, listed = 0;
    for (int i = 0; i < s->encoders; i++) held += s->encoder[i].kept;
    tsr_kept_chunk *list = malloc((size_t)tsr_max(1, held) * sizeof *list);
    if (!list)
        return tsr_fail(TSR_ERR_MEMORY, "no memory to list %lld chunks; use larger ones: --chunk", (long long)held);
    tsr_status status = TSR_OK;
    for (int i = 0; i < s->encoders && status == TSR_OK; listed += s->encoder[i++].kept)
        status = read_heads(s, i, list + listed);
    if (status == TSR_OK) qsort(list, (size_t)held, sizeof *list, by_number);
    for (int64_t i = 1; i < held && status == TSR_OK; i++)
        if (list[i].number == list[i - 1].number)
            status = tsr_fail(TSR_ERR_USAGE, "chunk %lld of '%s' was written twice: this is a mistake in the program",
                              (long long)list[i].number, store->desc.name.path);
    if (status == TSR_OK) {
        *chunks = list;
        *count = held;
    } else free(list);
    return status;
}

/* Whether the disk may lack room for the whole output beside what is kept. */
static bool disk_short(const encoding_store *s, int fd) {
    struct statvfs fs;
    const double placed = (double)s->chunks * (double)tsr_chunk_stored_max(s->chunk_bytes);
    return fstatvfs(fd, &fs) != 0 || (double)fs.f_bavail * (double)fs.f_frsize < placed;
}

tsr_status tsr_chunk_take(tsr_store *store, const tsr_kept_chunk *chunk, void *to) {
    encoding_store *s = (encoding_store *)store;
    encoder *from = &s->encoder[chunk->file];
    tsr_encoded_chunk *head = to;
    const char *wrong = NULL;
    int error = read_all(from->fd, head, sizeof *head, chunk->offset);
    if (!error) wrong = tsr_encoded_head_wrong(&s->base.desc, head);
    if (!error && !wrong &&
        (head->number != chunk->number || head->bytes != chunk->size.bytes || head->skipped != chunk->size.skipped))
        wrong = "it is another chunk";
    if (!error && !wrong) error = read_all(from->fd, head + 1, head->bytes, chunk->offset + (int64_t)sizeof *head);
    if (error) return spill_failed(s, "reading", sizeof *head, error);
    if (!wrong && head->bytes_sum != tsr_crc32c(0, head + 1, head->bytes)) wrong = "its bytes have another sum";
    if (wrong) return changed(s, chunk->offset, wrong);
    atomic_fetch_add(&from->taken, 1);
    if (!disk_short(s, from->fd)) return TSR_OK;
    /* Best effort: not every file system can, and then the disk must hold the chunks twice. */
    (void)!fallocate(from->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, chunk->offset,
                     (off_t)(sizeof *head + head->bytes));
    return TSR_OK;
}

/* ---- to their places ------------------------------------------------------------------------- */

/* What the threads share. */
typedef struct {
    encoding_store *store;
    tsr_raw_file file;
    const tsr_kept_chunk *chunks;
    const int64_t *addresses;
    int64_t count;
    _Atomic int64_t next, done;
    atomic_bool stop;
    void (*placed)(void *context, int64_t done);
    void *context;
} placing;

typedef struct {
    placing *shared;
    tsr_encoded_chunk *buffer; /* an encoder's, which has nothing to encode now */
    tsr_status status;
    char message[1024];
} placer;

static tsr_status place_one(placing *p, const tsr_kept_chunk *chunk, tsr_encoded_chunk *buffer,
                            tsr_raw_bounce *bounce) {
    const int64_t address = p->addresses[chunk->number];
    TSR_TRY(tsr_chunk_take(&p->store->base, chunk, buffer));
    TSR_TRY(tsr_raw_write(&p->file, buffer + 1, chunk->size.bytes, address, false, bounce));
    tsr_raw_start_writing(&p->file, address, chunk->size.bytes);
    const int64_t done = atomic_fetch_add(&p->done, 1) + 1;
    if (p->placed) p->placed(p->context, done);
    return TSR_OK;
}

static void *place_some(void *context) {
    placer *mine = context;
    placing *p = mine->shared;
    tsr_raw_bounce bounce = {0};
    for (int64_t i; !p->stop && (i = atomic_fetch_add(&p->next, 1)) < p->count;) {
        mine->status = place_one(p, &p->chunks[i], mine->buffer, &bounce);
        if (mine->status == TSR_OK) continue;
        snprintf(mine->message, sizeof mine->message, "%s", tsr_message());
        p->stop = true;
    }
    tsr_raw_done(&bounce);
    return NULL;
}

/* What a thread cannot be started for, the others do. */
static tsr_status place_with_threads(placing *p) {
    encoding_store *s = p->store;
    placer placers[TSR_ENCODERS_MAX];
    pthread_t ids[TSR_ENCODERS_MAX];
    const int most = (int)tsr_max(1, tsr_min(s->encoders, p->count));
    int started = 1;
    for (int i = 0; i < most; i++) /* the second of an encoder's two buffers has room for a head */
        placers[i] = (placer){.shared = p, .buffer = (void *)s->encoder[i].chunk};
    while (started < most && pthread_create(&ids[started], NULL, place_some, &placers[started]) == 0) started++;
    place_some(&placers[0]);
    for (int i = 1; i < started; i++) pthread_join(ids[i], NULL);
    for (int i = 0; i < started; i++) {
        if (placers[i].status == TSR_OK) continue;
        tsr_message_set(placers[i].message);
        return placers[i].status;
    }
    return TSR_OK;
}

tsr_status tsr_chunks_place(tsr_store *store, const tsr_kept_chunk *chunks, int64_t count, const int64_t *addresses,
                            void (*placed)(void *context, int64_t done), void *context) {
    encoding_store *s = (encoding_store *)store;
    placing p = {
        .store = s, .chunks = chunks, .addresses = addresses, .count = count, .placed = placed, .context = context};
    int64_t begin = INT64_MAX, end = 0;
    if (count == 0) return TSR_OK;
    for (int64_t i = 0; i < count; i++) {
        const int64_t address = addresses[chunks[i].number];
        begin = tsr_min(begin, address);
        end = tsr_max(end, address + chunks[i].size.bytes);
    }
    TSR_TRY(tsr_raw_open(store->desc.name.file, true, false, begin, end - begin, &p.file));
    tsr_status status = place_with_threads(&p);
    if (status == TSR_OK) status = tsr_raw_sync(&p.file);
    tsr_raw_close(&p.file);
    return status;
}
