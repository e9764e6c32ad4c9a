/* Finding, keeping and publishing outputs that may be left unfinished (resume.h). */
#include "io/output/resume/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files/crc32c.h"
#include "io/files/file_bytes.h"
#include "io/files/raw_file.h"
#include "io/files/unfinished.h"
#include "io/output/output_private.h"
#include "io/output/resume/journal_private.h"
#include "io/output/resume/spill.h"

#define NAME_CHARS (TSR_FILE_CHARS + 8)
#define WHAT_CHARS (TSR_FILE_CHARS + 64)
#define COPY_BYTES ((size_t)4 << 20)

/* ---- what describes C ------------------------------------------------------------------------ */

/* All of a file but the bytes of C's elements: [0, offset) and [end, bytes). */
typedef struct {
    int64_t offset, end, bytes;
    uint32_t sum; /* of all that follows in the copy */
    uint32_t spare;
} head_copy;

static tsr_status copy_failed(const char *from, const char *to, int error) {
    return tsr_fail(tsr_write_status(error), "cannot copy what describes C from '%s' to '%s': %s", from, to,
                    strerror(error ? error : EIO));
}

static int copy_range(int from, int64_t at, int to, int64_t to_at, int64_t bytes, uint32_t *sum) {
    char *buffer = malloc(COPY_BYTES);
    int error = buffer ? 0 : ENOMEM;
    while (bytes > 0 && !error) {
        const size_t some = (size_t)tsr_min(bytes, (int64_t)COPY_BYTES);
        const ssize_t got = tsr_read_at(from, buffer, some, at);
        error = got == (ssize_t)some ? 0 : got < 0 ? errno : EIO;
        if (!error && to >= 0) error = tsr_write_at(to, buffer, some, to_at);
        if (!error) *sum = tsr_crc32c(*sum, buffer, some);
        at += (int64_t)some;
        to_at += (int64_t)some;
        bytes -= (int64_t)some;
    }
    free(buffer);
    return error;
}

static tsr_status save_head(const tsr_output *output) {
    char name[NAME_CHARS];
    struct stat st;
    head_copy head = {.offset = output->desc.offset, .end = output->desc.offset + tsr_store_bytes(&output->desc)};
    tsr_beside_temporary(output->desc.name.file, ".head", name, sizeof name);
    unlink(name); /* of a run that was killed while it wrote this */
    if (fstat(output->lock_fd, &st) != 0) return copy_failed(output->desc.name.file, name, errno);
    head.bytes = (int64_t)st.st_size;
    head.end = tsr_min(head.end, head.bytes);
    const int to = tsr_unfinished_make(name, 0600);
    tsr_unfinished_done(name); /* it stays with the journal */
    int error = to < 0 ? errno : 0;
    const int64_t at = (int64_t)sizeof head;
    if (!error) error = copy_range(output->lock_fd, 0, to, at, head.offset, &head.sum);
    if (!error) error = copy_range(output->lock_fd, head.end, to, at + head.offset, head.bytes - head.end, &head.sum);
    if (!error) error = tsr_write_at(to, &head, sizeof head, 0);
    if (!error && fsync(to) != 0) error = errno;
    if (to >= 0) close(to);
    return error ? copy_failed(output->desc.name.file, name, error) : TSR_OK;
}

/* As the file was before what describes C was written. */
static tsr_status restore_head(const tsr_output *output) {
    char name[NAME_CHARS];
    struct stat st;
    head_copy head = {0};
    tsr_beside_temporary(output->desc.name.file, ".head", name, sizeof name);
    const int from = tsr_journal_file_open(name, O_RDONLY, &st), to = output->lock_fd;
    const int64_t at = (int64_t)sizeof head;
    uint32_t sum = 0, again = 0;
    int error = from < 0 ? errno : 0;
    if (!error && tsr_read_at(from, &head, sizeof head, 0) != (ssize_t)sizeof head) error = EIO;
    const int64_t tail = head.bytes - head.end;
    if (!error && (head.offset != output->desc.offset || tail < 0)) error = EIO;
    if (!error) error = copy_range(from, at, -1, 0, head.offset + tail, &sum);
    if (!error && sum != head.sum) error = EIO;
    if (!error) error = copy_range(from, at, to, 0, head.offset, &again);
    if (!error) error = copy_range(from, at + head.offset, to, head.end, tail, &again);
    if (!error && (ftruncate(to, head.bytes) != 0 || fsync(to) != 0)) error = errno;
    if (from >= 0) close(from);
    return error ? copy_failed(name, output->desc.name.file, error) : TSR_OK;
}

/* ---- finding what was left ------------------------------------------------------------------- */

typedef struct {
    const tsr_output_spec *spec;
    const char *settings;
    const tsr_target *target;
    tsr_resumed *found;
} search;

/* The temporary file last: with it the next run finds the rest. */
static void remove_all(const tsr_target *target, const char *journal, const char *temporary) {
    char head[NAME_CHARS];
    tsr_spill_remove(target, temporary);
    tsr_beside_temporary(temporary, ".head", head, sizeof head);
    unlink(journal);
    unlink(head);
    unlink(temporary);
}

/* The value of the line "path: ..." */
static const char *path_line(const char *settings) {
    const char *line = strstr(settings, "\npath: ");
    return line ? line + 1 : "";
}

static tsr_status changed(const search *s, const tsr_journal_head *head, const char *what) {
    const int64_t done = s->found->count;
    return tsr_fail(
        TSR_ERR_EXISTS,
        "an earlier run with --resume left '%s' unfinished (%lld part%s), and %s: put that back to go on, or "
        "use --force to begin anew",
        head->output.target, (long long)done, done == 1 ? "" : "s", what);
}

/* Where the elements of C end in its file; chunks are not in it before C is put together. */
static int64_t end_of_elements(const tsr_store_desc *desc) {
    return desc->chunk_rows > 0 ? 0 : desc->offset + tsr_store_bytes(desc);
}

/* `what` of it differs, "" where nothing does. */
static void find_change(const search *s, const tsr_journal_head *head, const struct stat *st, char *what,
                        size_t chars) {
    const tsr_target *target = s->target;
    const tsr_store_desc *desc = &head->output.desc;
    tsr_journal_changes(head->settings, s->settings, what, chars);
    if (*what) return;
    const int64_t *before = head->output.target_identity, *now = target->identity;
    if (head->output.target_existed != target->exists ||
        (target->exists && memcmp(before + 1, now + 1, 4 * sizeof *now) != 0)) /* nodes number devices apart */
        snprintf(what, chars, "'%s', which it goes into, was changed since", target->file);
    else if ((uint64_t)st->st_ino != head->inode || desc->name.kind != s->spec->name.kind ||
             (desc->chunk_rows > 0) != (s->spec->chunk_rows > 0) || st->st_size < end_of_elements(desc))
        snprintf(what, chars, "its file was replaced");
}

static tsr_status busy(const tsr_target *target) {
    return tsr_fail(TSR_ERR_EXISTS,
                    "another job goes on with '%s' now: wait for it, or write to another file. If there is none, the "
                    "file system keeps no locks: use --force to begin anew",
                    target->file);
}

/* An unfinished output: `temporary` is open. */
static tsr_status take_unfinished(search *s, const char *journal, const char *temporary, const char *after,
                                  const struct stat *st, int fd, const tsr_journal_state *state) {
    char what[WHAT_CHARS];
    tsr_journal_head *head = &s->found->head;
    const tsr_lock lock = tsr_temporary_lock(fd, true);
    if (lock == TSR_LOCK_HELD || (lock == TSR_LOCK_UNKNOWN && !tsr_temporary_is_dead(after) && !s->spec->force)) {
        close(fd);
        return busy(s->target);
    }
    struct stat now;
    if (stat(temporary, &now) != 0 || now.st_ino != st->st_ino) { /* it got its name, or was removed, just now */
        close(fd);
        return busy(s->target);
    }
    find_change(s, head, st, what, sizeof what);
    if (*what) {
        close(fd);
        if (!s->spec->force) return changed(s, head, what);
        remove_all(s->target, journal, temporary);
        return TSR_OK;
    }
    head->output.lock_fd = fd;
    head->output.desc.index = NULL;
    head->output.desc.pieces = NULL;
    memcpy(head->output.target_identity, s->target->identity, sizeof s->target->identity);
    snprintf(head->output.desc.name.file, sizeof head->output.desc.name.file, "%.*s", TSR_FILE_CHARS - 1, temporary);
    snprintf(head->output.target, sizeof head->output.target, "%s", s->target->file);
    snprintf(head->output.journal, sizeof head->output.journal, "%s", journal);
    s->found->left = TSR_LEFT_UNFINISHED;
    return state->publishing && head->output.desc.chunk_rows == 0 ? restore_head(&head->output) : TSR_OK;
}

/* The temporary file is gone: C has its name, unless it was removed or replaced since. */
static tsr_status take_published(search *s, const char *journal, const tsr_journal_state *state) {
    char what[WHAT_CHARS];
    struct stat st;
    const tsr_journal_head *head = &s->found->head;
    const bool there = stat(s->target->file, &st) == 0 && (uint64_t)st.st_ino == head->inode;
    const bool same =
        !state->published || (st.st_size == state->identity[0] && st.st_mtim.tv_sec == state->identity[1] &&
                              st.st_mtim.tv_nsec == state->identity[2]);
    if (!there || !same) {
        unlink(journal);
        return TSR_OK;
    }
    tsr_journal_changes(head->settings, s->settings, what, sizeof what);
    if (!*what) {
        s->found->left = TSR_LEFT_COMPLETE;
        return TSR_OK;
    }
    const char *before = path_line(head->settings), *now = path_line(s->settings);
    const size_t chars = strcspn(before, "\n");
    if (chars != strcspn(now, "\n") || strncmp(before, now, chars) != 0) return TSR_OK; /* another dataset of it */
    if (s->spec->force) {
        unlink(journal);
        return TSR_OK;
    }
    return tsr_fail(TSR_ERR_EXISTS, "'%s' is complete, and %s: use --force to make it anew, or name another output",
                    s->target->file, what);
}

static tsr_status see_journal(void *context, const char *journal, const char *after) {
    search *s = context;
    char temporary[NAME_CHARS], after_temporary[NAME_CHARS];
    struct stat st;
    tsr_journal_state state;
    if (s->found->left != TSR_LEFT_NOTHING) return TSR_OK;
    snprintf(temporary, sizeof temporary, "%.*s.tmp", (int)(strlen(journal) - strlen(".parts")), journal);
    snprintf(after_temporary, sizeof after_temporary, "%.*s.tmp", (int)(strlen(after) - strlen(".parts")), after);
    free(s->found->parts);
    s->found->parts = NULL;
    const int fd = tsr_journal_file_open(temporary, O_RDWR, &st);
    if (fd < 0 && errno != ENOENT)
        return tsr_fail(TSR_ERR_IO, "cannot open '%s' to go on with it: %s", temporary, strerror(errno));
    const tsr_status read = tsr_journal_read(journal, &s->found->head, &state, &s->found->parts, &s->found->count);
    if (read == TSR_OK && fd < 0) return take_published(s, journal, &state);
    if (read == TSR_OK) return take_unfinished(s, journal, temporary, after_temporary, &st, fd, &state);
    const bool held = fd >= 0 && tsr_temporary_lock(fd, true) == TSR_LOCK_HELD;
    if (fd >= 0) close(fd);
    if (held) return busy(s->target);
    if (read != TSR_ERR_FORMAT || (fd >= 0 && !s->spec->force)) return read;
    tsr_message_set("");
    remove_all(s->target, journal, temporary);
    return TSR_OK;
}

tsr_status tsr_resume_find(const tsr_output_spec *spec, const char *settings, tsr_resumed *found) {
    tsr_target target;
    search s = {.spec = spec, .settings = settings, .target = &target, .found = found};
    memset(found, 0, sizeof *found);
    TSR_TRY(tsr_target_find(spec, &target));
    found->on_disk = tsr_raw_on_disk(target.folder);
    tsr_spill_sweep(&target);
    const tsr_status status = tsr_temporary_each(&target, ".parts", see_journal, &s);
    if (status == TSR_OK && found->left == TSR_LEFT_UNFINISHED) return TSR_OK;
    free(found->parts);
    found->parts = NULL;
    found->count = 0;
    return status;
}

/* ---- keeping --------------------------------------------------------------------------------- */

tsr_status tsr_resume_keep(tsr_output *output, const tsr_journal_head *head, const tsr_part *parts, int64_t count) {
    char folder[TSR_FILE_CHARS], journal[NAME_CHARS];
    struct stat st;
    tsr_journal_head *kept = malloc(sizeof *kept);
    if (!kept) return tsr_fail(TSR_ERR_MEMORY, "no memory for the journal of '%s'", output->target);
    tsr_beside_temporary(output->desc.name.file, ".parts", journal, sizeof journal);
    tsr_folder_of(output->target, folder);
    *kept = *head;
    kept->output = *output;
    snprintf(kept->output.journal, sizeof kept->output.journal, "%s", journal);
    kept->output.lock_fd = -1;
    tsr_status status = TSR_OK;
    const int64_t end = end_of_elements(&output->desc);
    bool ready = fstat(output->lock_fd, &st) == 0; /* in memory its room may still be being taken */
    if (ready && st.st_size < end) ready = ftruncate(output->lock_fd, end) == 0;
    if (!ready || fsync(output->lock_fd) != 0)
        status = tsr_fail(TSR_ERR_IO, "cannot sync '%s': %s", output->desc.name.file, strerror(errno));
    kept->inode = (uint64_t)st.st_ino;
    if (status == TSR_OK) status = tsr_folder_sync(folder);
    if (status == TSR_OK) status = tsr_journal_write(journal, kept, parts, count);
    free(kept);
    if (status != TSR_OK) return status;
    snprintf(output->journal, sizeof output->journal, "%s", journal);
    tsr_unfinished_done(output->desc.name.file);
    return TSR_OK;
}

static void find_target(const tsr_output *output, tsr_target *target) {
    memset(target, 0, sizeof *target);
    memcpy(target->file, output->target, sizeof target->file);
    tsr_folder_of(target->file, target->folder);
}

void tsr_resume_forget(const tsr_output *output) {
    tsr_target target;
    find_target(output, &target);
    remove_all(&target, output->journal, output->desc.name.file);
}

static tsr_status check_part(int fd, const tsr_output *output, const tsr_part *part, char *buffer, bool *whole) {
    const tsr_store_desc *desc = &output->desc;
    const int64_t element = (int64_t)tsr_dtype_bytes(desc->element.dtype), cols = desc->dataset_cols;
    const tsr_rect *r = &part->rect;
    const bool rows_follow = r->cols == cols;
    const int64_t length = (rows_follow ? r->rows * r->cols : r->cols) * element;
    uint32_t sum = 0;
    *whole = false;
    if (r->row < 0 || r->col < 0 || r->rows < 1 || r->cols < 1 || r->col + r->cols > cols) return TSR_OK;
    for (int64_t row = 0; row < (rows_follow ? 1 : r->rows); row++) {
        const int64_t begin = desc->offset + ((r->row + row) * cols + r->col) * element;
        for (int64_t at = 0; at < length; at += (int64_t)COPY_BYTES) {
            const size_t some = (size_t)tsr_min(length - at, (int64_t)COPY_BYTES);
            const ssize_t got = tsr_read_at(fd, buffer, some, begin + at);
            if (got < 0) return tsr_fail(TSR_ERR_IO, "cannot read '%s': %s", desc->name.file, strerror(errno));
            if (got != (ssize_t)some) return TSR_OK;
            sum = tsr_crc32c(sum, buffer, some);
        }
    }
    *whole = sum == part->sum;
    return TSR_OK;
}

tsr_status tsr_resume_check(const tsr_output *output, const tsr_part *parts, int64_t count, int64_t first, int64_t step,
                            bool *whole) {
    tsr_status status = TSR_OK;
    if (first >= count) return TSR_OK;
    if (output->desc.chunk_rows > 0) return tsr_spill_check(output, parts, count, first, step, whole);
    const int fd = open(output->desc.name.file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return tsr_fail(TSR_ERR_IO, "cannot open '%s': %s", output->desc.name.file, strerror(errno));
    char *buffer = malloc(COPY_BYTES);
    if (!buffer) status = tsr_fail(TSR_ERR_MEMORY, "no memory to check '%s'", output->desc.name.file);
    for (int64_t i = first; i < count && status == TSR_OK; i += step)
        status = check_part(fd, output, &parts[i], buffer, &whole[i]);
    free(buffer);
    close(fd);
    return status;
}

/* ---- publishing ------------------------------------------------------------------------------ */

static tsr_status nothing_to_sync(void *context) {
    (void)context;
    return TSR_OK;
}

static tsr_status say(const tsr_output *output, const tsr_journal_state *state) {
    tsr_journal *journal;
    TSR_TRY(tsr_journal_open(output->journal, 0, nothing_to_sync, NULL, &journal));
    const tsr_status status = tsr_journal_say(journal, state);
    tsr_journal_close(journal);
    return status;
}

tsr_status tsr_resume_publishing(const tsr_output *output) {
    if (output->desc.chunk_rows == 0) TSR_TRY(save_head(output));
    return say(output, &(tsr_journal_state){.publishing = true});
}

/* C is in place: without this the next run looks at no more than the file's number. */
void tsr_resume_published(const tsr_output *output) {
    char head[NAME_CHARS];
    struct stat st;
    tsr_target target;
    tsr_beside_temporary(output->desc.name.file, ".head", head, sizeof head);
    unlink(head);
    find_target(output, &target);
    tsr_spill_remove(&target, output->desc.name.file);
    if (stat(output->target, &st) != 0) return;
    const tsr_journal_state state = {.published = true,
                                     .identity = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec}};
    if (say(output, &state) != TSR_OK) tsr_message_set("");
}

/* ---- what lies there ------------------------------------------------------------------------- */

typedef struct {
    void (*see)(void *context, const tsr_leftover *left);
    void *context;
} listing;

static tsr_status list_journal(void *context, const char *journal, const char *after) {
    const listing *l = context;
    tsr_leftover left = {.parts = 0};
    struct stat st;
    tsr_journal_head *head = malloc(sizeof *head);
    tsr_journal_state state;
    tsr_part *parts = NULL;
    (void)after;
    snprintf(left.file, sizeof left.file, "%.*s.tmp", (int)(strlen(journal) - strlen(".parts")), journal);
    const int fd = tsr_journal_file_open(left.file, O_RDONLY, &st);
    if (head && fd >= 0 && tsr_journal_read(journal, head, &state, &parts, &left.parts) == TSR_OK) {
        const tsr_store_desc *desc = &head->output.desc;
        for (int64_t i = 0; i < left.parts; i++)
            left.bytes += tsr_rect_elements(parts[i].rect) * (int64_t)tsr_dtype_bytes(desc->element.dtype);
        left.of_bytes = tsr_store_bytes(desc);
        left.busy = tsr_temporary_lock(fd, false) == TSR_LOCK_HELD;
        snprintf(left.path, sizeof left.path, "%s", desc->name.path);
        l->see(l->context, &left);
    }
    tsr_message_set("");
    if (fd >= 0) close(fd);
    free(parts);
    free(head);
    return TSR_OK;
}

tsr_status tsr_resume_list(const char *file, void (*see)(void *context, const tsr_leftover *left), void *context) {
    tsr_target target;
    tsr_output_spec spec = {.force = false};
    snprintf(spec.name.file, sizeof spec.name.file, "%s", file);
    if (tsr_target_find(&spec, &target) != TSR_OK) {
        tsr_message_set("");
        return TSR_OK;
    }
    return tsr_temporary_each(&target, ".parts", list_journal, &(listing){see, context});
}
