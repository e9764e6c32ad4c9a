/* Encoded chunks, from where they wait to their places (output_chunks.h). */
#define _GNU_SOURCE /* fallocate */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/chunks/chunk_encode.h"
#include "io/files/crc32c.h"
#include "io/files/file_bytes.h"
#include "io/files/raw_file.h"
#include "io/output/output_chunks_private.h"
#include "io/output/resume/spill.h"

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

static tsr_status changed(const tsr_encoding_store *s, int64_t offset, const char *what) {
    return tsr_fail(TSR_ERR_IO,
                    "an encoded chunk of '%s' came back from the disk under '%s' as something else (at byte %lld: %s); "
                    "check the disk and the memory, and run the command again",
                    s->base.desc.name.path, s->folder, (long long)offset, what);
}

/* Reads the heads of the chunks in a file, in the order in which they were written. */
static tsr_status read_heads(const tsr_encoding_store *s, int file, tsr_kept_chunk *chunks) {
    const tsr_encoder *e = &s->encoder[file];
    tsr_encoded_chunk head;
    int64_t at = 0;
    for (int64_t i = 0; i < e->kept; i++, at += (int64_t)(sizeof head + head.bytes)) {
        int error = read_all(e->fd, &head, sizeof head, at);
        if (error) return tsr_spill_failed(s, "reading", sizeof head, error);
        const char *wrong = tsr_encoded_head_wrong(&s->base.desc, &head);
        if (wrong) return changed(s, at, wrong);
        chunks[i] = (tsr_kept_chunk){head.number, {head.bytes, head.skipped}, {.file = file, .offset = at}};
    }
    return TSR_OK;
}

tsr_status tsr_chunks_kept(tsr_store *store, tsr_kept_chunk **chunks, int64_t *count) {
    const tsr_encoding_store *s = (const tsr_encoding_store *)store;
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

/* The head of a chunk that an earlier run left, which was looked at when this one began. */
static tsr_status take_over(const tsr_encoding_store *s, const tsr_part *part, tsr_kept_chunk *chunk) {
    tsr_encoded_chunk head = {0};
    const int fd = tsr_spill_open(s->base.desc.name.file, &part->at);
    const int error = fd < 0 ? errno : read_all(fd, &head, sizeof head, part->at.offset);
    if (fd >= 0) close(fd);
    if (error) return tsr_spill_failed(s, "reading", sizeof head, error);
    const char *wrong = tsr_encoded_head_wrong(&s->base.desc, &head);
    if (!wrong && (head.number != part->number || head.head_sum != part->sum)) wrong = "it is another chunk";
    if (wrong) return changed(s, part->at.offset, wrong);
    *chunk = (tsr_kept_chunk){head.number, {head.bytes, head.skipped}, part->at};
    return TSR_OK;
}

tsr_status tsr_chunks_take_over(tsr_store *store, const tsr_part *parts, int64_t count, const uint8_t *made,
                                int64_t first, int64_t step, tsr_kept_chunk **chunks, int64_t *kept) {
    const tsr_encoding_store *s = (const tsr_encoding_store *)store;
    const int64_t mine = first < count ? tsr_ceil_div(count - first, step) : 0;
    tsr_kept_chunk *all = realloc(*chunks, (size_t)tsr_max(1, *kept + mine) * sizeof *all);
    if (!all)
        return tsr_fail(TSR_ERR_MEMORY, "no memory to list %lld chunks; use larger ones: --chunk", (long long)mine);
    *chunks = all;
    for (int64_t i = first; i < count; i += step) {
        if (made[parts[i].number / 8] >> parts[i].number % 8 & 1) continue;
        TSR_TRY(take_over(s, &parts[i], &all[*kept]));
        ++*kept;
    }
    qsort(all, (size_t)*kept, sizeof *all, by_number);
    return TSR_OK;
}

/* Whether the disk may lack room for the whole output beside what is kept. */
static bool disk_short(const tsr_encoding_store *s, int fd) {
    struct statvfs fs;
    const double placed = (double)s->chunks * (double)tsr_chunk_stored_max(s->chunk_bytes);
    return fstatvfs(fd, &fs) != 0 || (double)fs.f_bavail * (double)fs.f_frsize < placed;
}

static tsr_status take_from(const tsr_encoding_store *s, int fd, const tsr_kept_chunk *chunk, tsr_encoded_chunk *head) {
    const char *wrong = NULL;
    const int64_t offset = chunk->at.offset;
    int error = read_all(fd, head, sizeof *head, offset);
    if (!error) wrong = tsr_encoded_head_wrong(&s->base.desc, head);
    if (!error && !wrong &&
        (head->number != chunk->number || head->bytes != chunk->size.bytes || head->skipped != chunk->size.skipped))
        wrong = "it is another chunk";
    if (!error && !wrong) error = read_all(fd, head + 1, head->bytes, offset + (int64_t)sizeof *head);
    if (error) return tsr_spill_failed(s, "reading", sizeof *head, error);
    if (!wrong && head->bytes_sum != tsr_crc32c(0, head + 1, head->bytes)) wrong = "its bytes have another sum";
    if (wrong) return changed(s, offset, wrong);
    if (!disk_short(s, fd)) return TSR_OK;
    /* Best effort: not every file system can, and then the disk must hold the chunks twice. A later run finds that they
     * are gone. */
    (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, (off_t)(sizeof *head + head->bytes));
    return TSR_OK;
}

tsr_status tsr_chunk_take(tsr_store *store, const tsr_kept_chunk *chunk, void *to) {
    tsr_encoding_store *s = (tsr_encoding_store *)store;
    if (chunk->at.generation == 0) {
        tsr_encoder *from = &s->encoder[chunk->at.file];
        TSR_TRY(take_from(s, from->fd, chunk, to));
        atomic_fetch_add(&from->taken, 1);
        return TSR_OK;
    }
    const int fd = tsr_spill_open(store->desc.name.file, &chunk->at);
    if (fd < 0) return tsr_spill_failed(s, "reading", chunk->size.bytes, errno);
    const tsr_status status = take_from(s, fd, chunk, to);
    close(fd);
    return status;
}

/* ---- to their places ------------------------------------------------------------------------- */

/* What the threads share. */
typedef struct {
    tsr_encoding_store *store;
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
    tsr_encoding_store *s = p->store;
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
    tsr_encoding_store *s = (tsr_encoding_store *)store;
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
