/* Records of parts, some at a time (journal.h): the output's bytes are brought to stable storage, then the records. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/files/file_bytes.h"
#include "io/output/resume/journal_private.h"

#define ROOM (4 * TSR_JOURNAL_GROUP) /* times that parts are added and wait, at most */
#define RECORDS_OF_A_BLOCK (TSR_JOURNAL_BLOCK / (int64_t)sizeof(tsr_journal_record))

struct tsr_journal {
    char name[TSR_FILE_CHARS + 16];
    int fd, rank;
    tsr_journal_image image;
    tsr_status (*sync)(void *context);
    void *context;
    int64_t written; /* records of this rank; under `writing` */
    pthread_t thread;
    bool threaded;
    pthread_mutex_t writing; /* held by the one commit under way */
    pthread_mutex_t lock;    /* of what follows */
    pthread_cond_t moved;
    tsr_part *waiting;
    int64_t count, room;
    int added; /* times, by which these came */
    bool ends;
    double first_seconds; /* when the first of those that wait was added */
    tsr_status status;    /* of the first commit that failed */
    char message[512];
};

/* Where this rank's record number `index` lies. */
static int64_t place_of(const tsr_journal *j, int64_t index) {
    const int64_t kept = tsr_ceil_div(j->image.kept, RECORDS_OF_A_BLOCK);
    const int64_t block = kept + index / RECORDS_OF_A_BLOCK * j->image.head.ranks + j->rank;
    return TSR_JOURNAL_HEAD_BYTES + block * TSR_JOURNAL_BLOCK +
           index % RECORDS_OF_A_BLOCK * (int64_t)sizeof(tsr_journal_record);
}

static tsr_status sync_records(const tsr_journal *j, int error) {
    if (!error && fdatasync(j->fd) != 0) error = errno;
    if (!error) return TSR_OK;
    return tsr_fail(tsr_write_status(error), "cannot write '%s', by which a run could go on later: %s", j->name,
                    strerror(error));
}

static tsr_status write_records(tsr_journal *j, const tsr_part *parts, int64_t count) {
    tsr_journal_record records[RECORDS_OF_A_BLOCK];
    int error = 0;
    for (int64_t done = 0; done < count && !error;) {
        const int64_t left = RECORDS_OF_A_BLOCK - j->written % RECORDS_OF_A_BLOCK;
        const int64_t some = tsr_min(left, count - done);
        for (int64_t i = 0; i < some; i++) records[i] = tsr_record_of(&j->image, &parts[done + i]);
        error = tsr_write_at(j->fd, records, (size_t)some * sizeof *records, place_of(j, j->written));
        done += some;
        j->written += some;
    }
    return sync_records(j, error);
}

/* What a failure means is kept, and told to whoever asks next. */
static tsr_status failed_before(tsr_journal *j) {
    if (j->status != TSR_OK) tsr_message_set(j->message);
    return j->status;
}

static tsr_status record_parts(tsr_journal *j, const tsr_part *parts, int64_t count) {
    TSR_TRY(j->sync(j->context));
    return write_records(j, parts, count);
}

tsr_status tsr_journal_commit(tsr_journal *j) {
    pthread_mutex_lock(&j->writing);
    pthread_mutex_lock(&j->lock);
    tsr_part *parts = j->waiting;
    const int64_t count = j->count;
    tsr_status status = failed_before(j);
    j->waiting = NULL;
    j->count = j->room = 0;
    j->added = 0;
    pthread_cond_broadcast(&j->moved);
    pthread_mutex_unlock(&j->lock);
    if (status == TSR_OK && count > 0) status = record_parts(j, parts, count);
    free(parts);
    pthread_mutex_lock(&j->lock);
    if (status != TSR_OK && j->status == TSR_OK) {
        j->status = status;
        snprintf(j->message, sizeof j->message, "%s", tsr_message());
    }
    pthread_cond_broadcast(&j->moved);
    pthread_mutex_unlock(&j->lock);
    pthread_mutex_unlock(&j->writing);
    return status;
}

/* Under the lock. */
static bool is_due(const tsr_journal *j) {
    return j->added >= TSR_JOURNAL_GROUP ||
           (j->added > 0 && tsr_now_seconds() - j->first_seconds >= TSR_JOURNAL_SECONDS);
}

static void *commit_now_and_then(void *context) {
    tsr_journal *j = context;
    pthread_mutex_lock(&j->lock);
    while (!j->ends) {
        if (is_due(j)) {
            pthread_mutex_unlock(&j->lock);
            (void)tsr_journal_commit(j); /* whoever adds the next part is told */
            pthread_mutex_lock(&j->lock);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;
        pthread_cond_timedwait(&j->moved, &j->lock, &until);
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

/* In it no handler of the process's signals runs. Without a thread whoever adds parts commits them. */
static void start_thread(tsr_journal *j) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    j->threaded = pthread_create(&j->thread, NULL, commit_now_and_then, j) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

tsr_status tsr_journal_open(const char *name, int rank, tsr_status (*sync)(void *context), void *context,
                            tsr_journal **journal) {
    int64_t bytes;
    tsr_journal *j = calloc(1, sizeof *j);
    if (!j) return tsr_fail(TSR_ERR_MEMORY, "no memory for the journal '%s'", name);
    tsr_status status = tsr_journal_load(name, O_RDWR, &j->image, &bytes, &j->fd);
    if (status != TSR_OK) {
        free(j);
        return status;
    }
    snprintf(j->name, sizeof j->name, "%s", name);
    j->rank = rank;
    j->sync = sync;
    j->context = context;
    pthread_mutex_init(&j->writing, NULL);
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->moved, NULL);
    start_thread(j);
    *journal = j;
    return TSR_OK;
}

uint64_t tsr_journal_generation(const tsr_journal *j) { return j->image.head.generation; }

/* Under the lock. */
static tsr_status let_wait(tsr_journal *j, const tsr_part *parts, int64_t count) {
    if (j->count + count > j->room) {
        const int64_t room = 2 * (j->count + count);
        tsr_part *more = realloc(j->waiting, (size_t)room * sizeof *more);
        if (!more) return tsr_fail(TSR_ERR_MEMORY, "no memory to note %lld parts of C", (long long)count);
        j->waiting = more;
        j->room = room;
    }
    memcpy(j->waiting + j->count, parts, (size_t)count * sizeof *parts);
    j->count += count;
    if (j->added++ == 0) j->first_seconds = tsr_now_seconds();
    return TSR_OK;
}

tsr_status tsr_journal_add(tsr_journal *j, const tsr_part *parts, int64_t count) {
    if (count == 0) return TSR_OK;
    pthread_mutex_lock(&j->lock);
    while (j->threaded && j->added >= ROOM && j->status == TSR_OK) pthread_cond_wait(&j->moved, &j->lock);
    tsr_status status = failed_before(j);
    if (status == TSR_OK) status = let_wait(j, parts, count);
    const bool due = is_due(j);
    if (due) pthread_cond_broadcast(&j->moved);
    pthread_mutex_unlock(&j->lock);
    return status == TSR_OK && due && !j->threaded ? tsr_journal_commit(j) : status;
}

tsr_status tsr_journal_say(tsr_journal *j, const tsr_journal_state *state) {
    tsr_journal_record record = {.kind = state->published ? TSR_RECORD_PUBLISHED : TSR_RECORD_PUBLISHING,
                                 .generation = j->image.head.generation,
                                 .digest = j->image.digest};
    memcpy(record.values, state->identity, sizeof state->identity);
    tsr_record_seal(&record);
    struct stat st;
    int error = fstat(j->fd, &st) == 0 ? 0 : errno;
    const int64_t end = error ? 0 : tsr_round_up((int64_t)st.st_size, TSR_JOURNAL_BLOCK);
    if (!error) error = tsr_write_at(j->fd, &record, sizeof record, end);
    return sync_records(j, error);
}

void tsr_journal_close(tsr_journal *j) {
    if (!j) return;
    pthread_mutex_lock(&j->lock);
    j->ends = true;
    pthread_cond_broadcast(&j->moved);
    pthread_mutex_unlock(&j->lock);
    if (j->threaded) pthread_join(j->thread, NULL);
    pthread_cond_destroy(&j->moved);
    pthread_mutex_destroy(&j->lock);
    pthread_mutex_destroy(&j->writing);
    close(j->fd);
    free(j->waiting);
    free(j);
}
