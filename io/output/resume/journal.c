/* A journal as it lies in its file (journal.h): a head of whole blocks, the parts that an earlier run left, then blocks
 * of the ranks in turn. */
#include "io/output/resume/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files/crc32c.h"
#include "io/files/file_bytes.h"
#include "io/files/new_file.h"
#include "io/files/unfinished.h"
#include "io/output/output_private.h"
#include "io/output/resume/journal_private.h"
#include "io/output/resume/spill.h"
#include "io/text/text.h"

/* ---- heads and records ----------------------------------------------------------------------- */

uint64_t tsr_journal_digest(const char *settings) {
    uint64_t hash = 0xCBF29CE484222325; /* FNV-1a */
    for (const char *at = settings; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001B3;
    return hash;
}

static uint32_t head_sum(const tsr_journal_image *image) {
    return tsr_crc32c(0, image, offsetof(tsr_journal_image, sum));
}

void tsr_record_seal(tsr_journal_record *record) {
    record->sum = tsr_crc32c(0, record, offsetof(tsr_journal_record, sum));
}

static bool is_whole(const tsr_journal_record *record, const tsr_journal_image *image) {
    return record->sum == tsr_crc32c(0, record, offsetof(tsr_journal_record, sum)) &&
           record->generation == image->head.generation && record->digest == image->digest;
}

tsr_journal_record tsr_record_of(const tsr_journal_image *image, const tsr_part *part) {
    const bool chunk = image->head.output.desc.chunk_rows > 0;
    tsr_journal_record record = {.kind = chunk ? TSR_RECORD_CHUNK : TSR_RECORD_PART,
                                 .generation = image->head.generation,
                                 .digest = image->digest,
                                 .values = {part->rect.row, part->rect.col, part->rect.rows, part->rect.cols},
                                 .part_sum = part->sum};
    const int64_t of_chunk[] = {part->number, part->at.offset, (int64_t)part->at.generation,
                                (int64_t)part->at.rank << 32 | part->at.file};
    if (chunk) memcpy(record.values, of_chunk, sizeof of_chunk);
    tsr_record_seal(&record);
    return record;
}

/* ---- making one ------------------------------------------------------------------------------ */

/* Under a name that was drawn, noted for the handler of stop signals until it has its own. */
static tsr_status write_new(const char *name, const tsr_journal_image *image, const tsr_journal_record *records) {
    char made[TSR_FILE_CHARS + 32], letters[TSR_RANDOM_CHARS], folder[TSR_FILE_CHARS];
    tsr_random_letters(letters);
    snprintf(made, sizeof made, "%s-%s", name, letters);
    const int fd = tsr_unfinished_make(made, 0600);
    int error = fd < 0 ? errno : 0;
    const int64_t bytes = image->kept * (int64_t)sizeof *records;
    if (!error) error = tsr_write_at(fd, image, sizeof *image, 0);
    if (!error && bytes > 0) error = tsr_write_at(fd, records, (size_t)bytes, TSR_JOURNAL_HEAD_BYTES);
    if (!error && ftruncate(fd, TSR_JOURNAL_HEAD_BYTES + tsr_round_up(bytes, TSR_JOURNAL_BLOCK)) != 0) error = errno;
    if (!error && fsync(fd) != 0) error = errno;
    if (fd >= 0) close(fd);
    if (!error && rename(made, name) != 0) error = errno;
    if (error && fd >= 0) unlink(made);
    tsr_unfinished_done(made);
    if (error)
        return tsr_fail(tsr_write_status(error), "cannot write '%s', by which a run could go on later: %s", name,
                        strerror(error));
    tsr_folder_of(name, folder);
    return tsr_folder_sync(folder);
}

tsr_status tsr_journal_write(const char *name, const tsr_journal_head *head, const tsr_part *parts, int64_t count) {
    tsr_journal_image *image = calloc(1, sizeof *image);
    tsr_journal_record *records = calloc((size_t)count + 1, sizeof *records);
    tsr_status status = TSR_OK;
    if (image && records) {
        memcpy(image->magic, TSR_JOURNAL_MAGIC, sizeof image->magic);
        image->bytes = sizeof *image;
        image->kept = count;
        image->digest = tsr_journal_digest(head->settings);
        image->head = *head;
        image->sum = head_sum(image);
        for (int64_t i = 0; i < count; i++) records[i] = tsr_record_of(image, &parts[i]);
        status = write_new(name, image, records);
    } else status = tsr_fail(TSR_ERR_MEMORY, "no memory for the journal '%s' of %lld parts", name, (long long)count);
    free(records);
    free(image);
    return status;
}

/* ---- reading one ----------------------------------------------------------------------------- */

/* Its own file, which nobody else put there: no link, and of this user or root. */
int tsr_journal_file_open(const char *name, int flags, struct stat *st) {
    const int fd = open(name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return -1;
    const bool ours = fstat(fd, st) == 0 && S_ISREG(st->st_mode) && (st->st_uid == geteuid() || geteuid() == 0);
    if (ours) return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

tsr_status tsr_journal_load(const char *name, int flags, tsr_journal_image *image, int64_t *bytes, int *fd) {
    struct stat st;
    *fd = tsr_journal_file_open(name, flags, &st);
    if (*fd < 0) return tsr_fail(TSR_ERR_IO, "cannot open '%s': %s", name, strerror(errno));
    *bytes = (int64_t)st.st_size;
    const bool whole = tsr_read_at(*fd, image, sizeof *image, 0) == (ssize_t)sizeof *image &&
                       memcmp(image->magic, TSR_JOURNAL_MAGIC, sizeof image->magic) == 0 &&
                       image->bytes == (int64_t)sizeof *image && image->sum == head_sum(image) && image->kept >= 0 &&
                       tsr_journal_head_sane(&image->head);
    if (whole) return TSR_OK;
    close(*fd);
    *fd = -1;
    return tsr_fail(TSR_ERR_FORMAT, "'%s' is no journal of this version of Tessera", name);
}

/* What a record says, in place. */
static void take(const tsr_journal_image *image, const tsr_journal_record *record, tsr_journal_state *state,
                 tsr_part *parts, int64_t *count) {
    const int64_t *v = record->values;
    const tsr_store_desc *desc = &image->head.output.desc;
    const tsr_spilled at = {(uint64_t)v[2], (int32_t)(v[3] >> 32), (int32_t)v[3], v[1]};
    if (record->kind == TSR_RECORD_CHUNK && tsr_journal_chunk_sane(desc, v[0], v[1]))
        parts[(*count)++] = tsr_spill_part(desc, v[0], record->part_sum, &at);
    if (record->kind == TSR_RECORD_PART && desc->chunk_rows == 0)
        parts[(*count)++] = (tsr_part){.rect = {v[0], v[1], v[2], v[3]}, .sum = record->part_sum};
    if (record->kind == TSR_RECORD_PUBLISHING) state->publishing = true;
    if (record->kind != TSR_RECORD_PUBLISHED) return;
    state->published = true;
    memcpy(state->identity, v, sizeof state->identity);
}

static tsr_status read_records(int fd, const char *name, const tsr_journal_image *image, int64_t bytes,
                               tsr_journal_state *state, tsr_part **parts, int64_t *count) {
    const int64_t slots = (bytes - TSR_JOURNAL_HEAD_BYTES) / (int64_t)sizeof(tsr_journal_record);
    tsr_journal_record block[TSR_JOURNAL_BLOCK / sizeof(tsr_journal_record)];
    *count = 0;
    *parts = malloc((size_t)(tsr_max(slots, 0) + 1) * sizeof **parts);
    if (!*parts) return tsr_fail(TSR_ERR_MEMORY, "no memory for the %lld parts of '%s'", (long long)slots, name);
    for (int64_t at = TSR_JOURNAL_HEAD_BYTES; at < bytes; at += TSR_JOURNAL_BLOCK) {
        const ssize_t got = tsr_read_at(fd, block, sizeof block, at);
        if (got < 0) return tsr_fail(TSR_ERR_IO, "cannot read '%s': %s", name, strerror(errno));
        for (size_t i = 0; i < (size_t)got / sizeof *block; i++)
            if (is_whole(&block[i], image)) take(image, &block[i], state, *parts, count);
    }
    return TSR_OK;
}

tsr_status tsr_journal_read(const char *name, tsr_journal_head *head, tsr_journal_state *state, tsr_part **parts,
                            int64_t *count) {
    int fd = -1;
    int64_t bytes = 0;
    tsr_journal_image *image = malloc(sizeof *image);
    *state = (tsr_journal_state){0};
    *parts = NULL;
    if (!image) return tsr_fail(TSR_ERR_MEMORY, "no memory to read '%s'", name);
    tsr_status status = tsr_journal_load(name, O_RDONLY, image, &bytes, &fd);
    if (status == TSR_OK) status = read_records(fd, name, image, bytes, state, parts, count);
    if (status == TSR_OK) *count = tsr_journal_sane_parts(&image->head, *parts, *count);
    if (status == TSR_OK) *head = image->head;
    if (status != TSR_OK) {
        free(*parts);
        *parts = NULL;
    }
    if (fd >= 0) close(fd);
    free(image);
    return status;
}

/* ---- what is whole --------------------------------------------------------------------------- */

/* Cuts what the first part that meets the rectangle does not hold into rectangles above, below, left and right. */
bool tsr_parts_hold(const tsr_part *parts, int64_t count, tsr_rect rect) {
    if (tsr_rect_empty(rect)) return true;
    for (int64_t i = 0; i < count; i++) {
        const tsr_rect *p = &parts[i].rect;
        const int64_t top = tsr_max(rect.row, p->row), bottom = tsr_min(rect.row + rect.rows, p->row + p->rows);
        const int64_t left = tsr_max(rect.col, p->col), right = tsr_min(rect.col + rect.cols, p->col + p->cols);
        if (top >= bottom || left >= right) continue;
        parts += i + 1;
        count -= i + 1;
        const int64_t end = rect.row + rect.rows, edge = rect.col + rect.cols;
        const int64_t high = bottom - top;
        return tsr_parts_hold(parts, count, (tsr_rect){rect.row, rect.col, top - rect.row, rect.cols}) &&
               tsr_parts_hold(parts, count, (tsr_rect){bottom, rect.col, end - bottom, rect.cols}) &&
               tsr_parts_hold(parts, count, (tsr_rect){top, rect.col, high, left - rect.col}) &&
               tsr_parts_hold(parts, count, (tsr_rect){top, right, high, edge - right});
    }
    return false;
}

/* ---- what changed ---------------------------------------------------------------------------- */

static int line_chars(const char *line) { return (int)strcspn(line, "\n"); }

/* Where the value of the line begins. */
static const char *value_of(const char *line, int *name, int *chars) {
    const char *colon = memchr(line, ':', (size_t)line_chars(line));
    *name = colon ? (int)(colon - line) : line_chars(line);
    const char *value = colon ? colon + 2 : line + *name;
    *chars = (int)(line + line_chars(line) - value);
    return value;
}

void tsr_journal_changes(const char *before, const char *now, char *text, size_t chars) {
    text[0] = '\0';
    for (;;) {
        const int was = line_chars(before), is = line_chars(now);
        if (was != is || strncmp(before, now, (size_t)was) != 0) break;
        if (before[was] == '\0' || now[is] == '\0') {
            if (before[was] == now[is]) return; /* both end */
            break;
        }
        before += was + 1;
        now += is + 1;
    }
    int name, was, is, other;
    const char *old = value_of(before, &name, &was), *new = value_of(now, &other, &is);
    if (name == other && strncmp(before, now, (size_t)name) == 0)
        snprintf(text, chars, "%.*s was %.*s and is %.*s", name, now, was, old, is, new);
    else snprintf(text, chars, "'%.*s' was where '%.*s' is", line_chars(before), before, line_chars(now), now);
}
