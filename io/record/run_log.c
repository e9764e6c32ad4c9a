/* The log of a run under way (run_log.h). */
#define _GNU_SOURCE
#include "io/record/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/files/new_file.h"
#include "io/text/json.h"
#include "io/text/json_read.h"
#include "io/text/text_file.h"

#define HEAD_CHARS 512 /* of a record's head without its message */

/* ---- the head of a record: nothing here that a signal handler may not call ------------------- */

typedef struct {
    char *text;
    size_t chars, used; /* used < chars */
} line;

static void add(line *to, const char *text) {
    while (*text && to->used + 1 < to->chars) to->text[to->used++] = *text++;
    to->text[to->used] = '\0';
}

static void add_number(line *to, int number, int digits) {
    char text[16] = "";
    int at = (int)sizeof text - 1;
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (at > 0 && (number > 0 || (int)sizeof text - 1 - at < digits));
    add(to, text + at);
}

static const char *status_name(tsr_status status) {
    if (status == TSR_OK) return "done";
    if (status == TSR_ERR_CHECK) return "check failed";
    return status == TSR_ERR_STOPPED ? "stopped" : "failed";
}

/* `message` in its quotes. */
static void begin_head(line *to, const char *status, int exit_code, const char *message) {
    add(to, "{\n  \"format\": ");
    add_number(to, TSR_RECORD_FORMAT, 1);
    add(to, ",\n  \"status\": \"");
    add(to, status);
    add(to, "\",\n  \"exit_code\": ");
    if (exit_code < 0) add(to, "null");
    else add_number(to, exit_code, 1);
    add(to, ",\n  \"message\": ");
    add(to, message);
}

static void end_head(line *to, const char *stage, int millionths) {
    add(to, ",\n  \"stage\": \"");
    add(to, stage);
    add(to, "\",\n  \"progress\": ");
    add_number(to, millionths / 1000000, 1);
    add(to, ".");
    add_number(to, millionths % 1000000, 6);
}

typedef enum { OURS, OTHERS, NOT_SEEN } ownership;

/* Ours: the file holds this run's "running" and nothing else. A file that is not there is rank 0's to make: on another
 * rank's node it may never have been. Not seen: it could not be looked into. */
static ownership whose(const tsr_run_log *log) {
    const char *text = log->running;
    char piece[512];
    int fd = open(log->file, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ELOOP) return OTHERS; /* a link since */
    if (fd < 0) return errno != ENOENT ? NOT_SEEN : log->first ? OURS : OTHERS;
    ssize_t got;
    bool same = true;
    while (same && (got = read(fd, piece, sizeof piece)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        same = strnlen(text, (size_t)got) == (size_t)got && memcmp(text, piece, (size_t)got) == 0;
        text += same ? got : 0;
    }
    close(fd);
    if (same && got < 0) return NOT_SEEN;
    return same && *text == '\0' ? OURS : OTHERS;
}

static bool write_all(int fd, const char *text) {
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t put = write(fd, text, left);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        text += put;
        left -= (size_t)put;
    }
    return true;
}

/* No fsync: the process ends now, and whoever stops it does not wait for long. Another thread, or this one before the
 * signal, may be writing the record of another end: its file was removed (unfinished.h). The file for this one is
 * another, because that thread goes on. */
void tsr_run_log_stop(const tsr_run_log *log, tsr_status status, const char *const message[3]) {
    char text[HEAD_CHARS + 512];
    line head = {text, sizeof text, 0};
    if (!log->file || log->special || log->finished) return;
    if (whose(log) != OURS) return;
    begin_head(&head, status_name(status), tsr_status_exit_code(status), "\"");
    for (int i = 0; i < 3; i++) add(&head, message[i]);
    add(&head, "\"");
    end_head(&head, atomic_load(&log->stage), atomic_load(&log->progress));
    struct stat st;
    int fd = tsr_new_file(log->temporary, 0666);
    if (fd >= 0 && stat(log->file, &st) == 0) (void)fchmod(fd, st.st_mode & 0777); /* or it is as usual */
    const bool made = fd >= 0,
               whole = made && write_all(fd, text) && write_all(fd, log->about) && write_all(fd, "\n}\n");
    if (made) close(fd);
    if (made && (!whole || rename(log->temporary, log->file) != 0)) unlink(log->temporary);
}

/* ---- from the start to the end --------------------------------------------------------------- */

void tsr_run_log_now(char started[TSR_STARTED_CHARS]) {
    time_t now = time(NULL);
    struct tm utc;
    strftime(started, TSR_STARTED_CHARS, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
}

/* Malloc'ed text of what is written to a stream; NULL without memory. */
static char *about_run(const char *command, const char *started, int ranks) {
    char *text = NULL;
    size_t chars;
    FILE *to = open_memstream(&text, &chars);
    if (!to) return NULL;
    fputs(",\n  \"command\": ", to);
    tsr_json_string(to, command);
    fprintf(to, ",\n  \"started\": \"%s\",\n  \"rank_count\": %d", started, ranks);
    if (fclose(to) == 0) return text;
    free(text);
    return NULL;
}

static char *running_record(const char *about) {
    size_t chars = HEAD_CHARS + strlen(about) + 4;
    char *text = malloc(chars);
    line record = {text, chars, 0};
    if (!text) return NULL;
    begin_head(&record, "running", -1, "\"\"");
    end_head(&record, "start-up", 0);
    add(&record, about);
    add(&record, "\n}\n");
    return text;
}

tsr_status tsr_run_log_prepare(const char *file, const char *command, const char *started, int rank, int ranks,
                               tsr_run_log *log) {
    memset(log, 0, sizeof *log);
    atomic_init(&log->stage, "start-up");
    snprintf(log->started, sizeof log->started, "%s", started);
    log->first = rank == 0;
    if (!file) return TSR_OK;
    if (!tsr_text_file_temporary(file, log->temporary))
        return tsr_fail(TSR_ERR_USAGE, "--log %.60s...: the file's name is too long", file);
    log->special = tsr_text_file_is_special(file);
    log->about = about_run(command, started, ranks);
    log->running = log->about ? running_record(log->about) : NULL;
    if (log->running) {
        log->file = file;
        return TSR_OK;
    }
    tsr_run_log_free(log);
    return tsr_fail(TSR_ERR_MEMORY, "no memory for the log: free some");
}

tsr_status tsr_run_log_start(const tsr_run_log *log) {
    tsr_text_file to;
    if (!log->file) return TSR_OK;
    if (log->special) return tsr_text_file_check("log", log->file);
    TSR_TRY(tsr_text_file_open("log", log->file, &to));
    errno = 0;
    return tsr_text_file_close(&to, fputs(log->running, to.to) >= 0 ? 0 : errno ? errno : EIO);
}

void tsr_run_log_stage(tsr_run_log *log, const char *stage) { atomic_store(&log->stage, stage); }

void tsr_run_log_progress(tsr_run_log *log, double done) {
    atomic_store(&log->progress, done >= 1 ? 1000000 : done > 0 ? (int)(done * 1e6) : 0);
}

/* The head in quotes and braces, malloc'ed. */
static char *final_head(const tsr_run_log *log, tsr_status status, const char *message) {
    char *quoted = NULL, *text = NULL;
    size_t chars;
    FILE *to = open_memstream(&quoted, &chars);
    if (!to) return NULL;
    tsr_json_string(to, message);
    if (fclose(to) == 0 && (text = malloc(chars + HEAD_CHARS)) != NULL) {
        line head = {text, chars + HEAD_CHARS, 0};
        begin_head(&head, status_name(status), tsr_status_exit_code(status), quoted);
        end_head(&head, atomic_load(&log->stage), status == TSR_OK ? 1000000 : atomic_load(&log->progress));
    }
    free(quoted);
    return text;
}

static tsr_status save(tsr_run_log *log, tsr_status status, const char *message,
                       void (*members)(const void *context, FILE *to), const void *context) {
    tsr_text_file to = {.to = NULL};
    char *head = final_head(log, status, message);
    tsr_status saved =
        head ? tsr_text_file_open("log", log->file, &to) : tsr_fail(TSR_ERR_MEMORY, "no memory for the log: free some");
    if (saved == TSR_OK) {
        errno = 0;
        fputs(head, to.to);
        members(context, to.to);
        fputs("\n}\n", to.to);
        saved = tsr_text_file_close(&to, ferror(to.to) ? (errno ? errno : EIO) : 0);
    }
    free(head);
    if (saved == TSR_OK) atomic_store(&log->finished, true);
    return saved;
}

static void write_about(const void *context, FILE *to) { fputs(context, to); }

tsr_status tsr_run_log_fail(tsr_run_log *log, tsr_status status, const char *message) {
    char kept[2048];
    if (!log->file || log->finished) return TSR_OK;
    const ownership owner = log->special ? OURS : whose(log);
    if (owner == NOT_SEEN) return TSR_ERR_IO;
    if (owner == OTHERS) return TSR_OK;
    snprintf(kept, sizeof kept, "%s", tsr_message());
    tsr_status saved = save(log, status, message, write_about, log->about);
    tsr_message_set(kept);
    return saved;
}

tsr_status tsr_run_log_done(tsr_run_log *log, void (*members)(const void *context, FILE *to), const void *context) {
    if (!log->file) return TSR_OK;
    tsr_run_log_stage(log, "done");
    return members ? save(log, TSR_OK, "", members, context) : save(log, TSR_OK, context, write_about, log->about);
}

void tsr_run_log_free(tsr_run_log *log) {
    free(log->about);
    free(log->running);
    log->about = log->running = NULL;
    log->file = NULL;
}

/* What a file's outermost members say of it. */
typedef struct {
    bool object, command, run;
} members_found;

static void find_members(void *context, const tsr_json_value *value) {
    static const char *const of_run[] = {"status", "started", "program"}; /* the last two in logs of 0.1.0 */
    members_found *found = context;
    if (value->depth == 0) found->object |= value->kind == TSR_JSON_OBJECT;
    if (value->depth != 1 || value->kind != TSR_JSON_TEXT) return;
    found->command |= strcmp(value->name, "command") == 0;
    for (size_t i = 0; i < sizeof of_run / sizeof *of_run; i++) found->run |= strcmp(value->name, of_run[i]) == 0;
}

bool tsr_run_log_found(const char *file) {
    members_found found = {.object = false};
    return tsr_json_read_file(file, find_members, &found) == TSR_OK && found.object && found.command && found.run;
}

static bool may_refuse(const char *file) {
    struct stat st;
    return stat(file, &st) == 0 && S_ISREG(st.st_mode) && (st.st_size == 0 || tsr_run_log_found(file));
}

void tsr_run_log_refuse(const char *file, const char *command, int ranks, tsr_status status) {
    tsr_run_log log;
    char started[TSR_STARTED_CHARS], kept[2048];
    snprintf(kept, sizeof kept, "%s", tsr_message());
    if (file && strcmp(file, "-") != 0) (void)tsr_text_file_resolve(&file);
    if (file && may_refuse(file)) {
        tsr_run_log_now(started);
        if (tsr_run_log_prepare(file, command, started, 0, ranks, &log) == TSR_OK) {
            (void)save(&log, status, kept, write_about, log.about);
            tsr_run_log_free(&log);
        }
    }
    tsr_message_set(kept);
}
