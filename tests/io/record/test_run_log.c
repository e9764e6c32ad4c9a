/* The log of a run: replaced at the start and at the end, by the first rank that knows how it ended. */
#define _GNU_SOURCE
#include "io/record/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "io/files/new_file.h"
#include "io/files/unfinished.h"
#include "tests/io/scratch.h"

static const char *const by_signal[] = {"stopped (", "SIGTERM", "); nothing changed"};

static void put(const char *file, const char *text) {
    FILE *to = fopen(file, "w");
    CHECK(to && fputs(text, to) >= 0 && fclose(to) == 0, "cannot make '%s'", file);
}

static void expect(const char *file, const char *text) {
    size_t bytes;
    char *held = slurp(file, &bytes);
    CHECK(strcmp(held, text) == 0, "'%s' holds\n%s\nand not\n%s", file, held, text);
    free(held);
}

/* What a rank of the run knows. */
static void prepare_rank(tsr_run_log *log, const char *file, int rank) {
    CHECK_OK(tsr_run_log_prepare(file, "tessera \"x\"", "2026-01-02T03:04:05Z", rank, 2, log));
    CHECK(strcmp(log->started, "2026-01-02T03:04:05Z") == 0, "started at '%s'", log->started);
}

static void prepare(tsr_run_log *log, const char *file) { prepare_rank(log, file, 0); }

#define ABOUT                                                                                                          \
    ",\n  \"command\": \"tessera \\\"x\\\"\",\n  \"started\": \"2026-01-02T03:04:05Z\",\n  \"rank_count\": 2\n}\n"
#define HEAD(status, code, message, stage, progress)                                                                   \
    "{\n  \"format\": 2,\n  \"status\": \"" status "\",\n  \"exit_code\": " code ",\n  \"message\": \"" message        \
    "\",\n  \"stage\": \"" stage "\",\n  \"progress\": " progress
#define RUNNING HEAD("running", "null", "", "start-up", "0.000000") ABOUT

static void members(const void *context, FILE *to) { fprintf(to, ",\n  \"answer\": %d", *(const int *)context); }

static void test_life(void) {
    char file[600];
    tsr_run_log log;
    const int answer = 42;
    snprintf(file, sizeof file, "%s", in_scratch("log.json"));
    put(file, "an earlier run");
    prepare(&log, file);
    expect(file, "an earlier run");
    CHECK_OK(tsr_run_log_start(&log));
    expect(file, RUNNING);
    tsr_run_log_stage(&log, "multiply");
    tsr_run_log_progress(&log, 0.25);
    expect(file, RUNNING);
    CHECK_OK(tsr_run_log_done(&log, members, &answer));
    expect(file, HEAD("done", "0", "", "done", "1.000000") ",\n  \"answer\": 42\n}\n");
    tsr_run_log_stop(&log, TSR_ERR_STOPPED, by_signal); /* too late */
    expect(file, HEAD("done", "0", "", "done", "1.000000") ",\n  \"answer\": 42\n}\n");
    CHECK_OK(tsr_run_log_fail(&log, TSR_ERR_IO, "after all")); /* the output is in place */
    expect(file, HEAD("done", "0", "", "done", "1.000000") ",\n  \"answer\": 42\n}\n");
    tsr_run_log_free(&log);
    CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
}

/* Two ranks of one run: the first end stands, and nobody's file is replaced but the run's own. */
static void test_first_end(void) {
    char file[600];
    tsr_run_log first, second;
    snprintf(file, sizeof file, "%s", in_scratch("log.json"));
    prepare(&first, file);
    prepare_rank(&second, file, 1);
    CHECK_OK(tsr_run_log_start(&first));
    tsr_run_log_progress(&second, 0.0000015);
    tsr_fail(TSR_ERR_USAGE, "kept");
    CHECK_OK(tsr_run_log_fail(&second, TSR_ERR_CHECK, "a \"quoted\"\nline"));
    CHECK(strcmp(tsr_message(), "kept") == 0, "the message became '%s'", tsr_message());
    expect(file, HEAD("check failed", "3", "a \\\"quoted\\\"\\u000aline", "start-up", "0.000001") ABOUT);
    CHECK_OK(tsr_run_log_fail(&first, TSR_ERR_IO, "also"));
    tsr_run_log_stop(&first, TSR_ERR_STOPPED, by_signal);
    expect(file, HEAD("check failed", "3", "a \\\"quoted\\\"\\u000aline", "start-up", "0.000001") ABOUT);
    tsr_run_log_free(&second);

    static const char *const others[] = {
        "", "{", RUNNING "\n",
        HEAD("running", "null", "", "start-up", "0.000000") ",\n  \"command\": \"another\"\n}\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        put(file, others[i]);
        tsr_run_log_stop(&first, TSR_ERR_STOPPED, by_signal);
        CHECK_OK(tsr_run_log_fail(&first, TSR_ERR_IO, "not ours"));
        expect(file, others[i]);
    }
    CHECK(unlink(file) == 0, "unlink");
    tsr_run_log_stage(&first, "multiply");
    tsr_run_log_progress(&first, 0.5);
    tsr_run_log_stop(&first, TSR_ERR_STOPPED, by_signal);
    expect(file, HEAD("stopped", "75", "stopped (SIGTERM); nothing changed", "multiply", "0.500000") ABOUT);
    CHECK_OK(tsr_run_log_start(&first));
    tsr_run_log_stop(&first, TSR_ERR_STOPPED, by_signal);
    expect(file, HEAD("stopped", "75", "stopped (SIGTERM); nothing changed", "multiply", "0.500000") ABOUT);
    tsr_run_log_free(&first);
    CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
}

/* On another node the file of rank 0 may never have been: only that rank makes it. */
static void test_other_ranks(void) {
    char file[600];
    tsr_run_log first, second;
    snprintf(file, sizeof file, "%s", in_scratch("local.json"));
    prepare(&first, file);
    prepare_rank(&second, file, 1);
    CHECK_OK(tsr_run_log_fail(&second, TSR_ERR_IO, "x"));
    tsr_run_log_stop(&second, TSR_ERR_STOPPED, by_signal);
    CHECK(access(file, F_OK) != 0, "rank 1 made a log where none was");
    put(file, "");
    CHECK_OK(tsr_run_log_fail(&second, TSR_ERR_IO, "x"));
    tsr_run_log_stop(&second, TSR_ERR_STOPPED, by_signal);
    expect(file, "");
    CHECK_OK(tsr_run_log_start(&first));
    tsr_run_log_stop(&second, TSR_ERR_STOPPED, by_signal);
    expect(file, HEAD("stopped", "75", "stopped (SIGTERM); nothing changed", "start-up", "0.000000") ABOUT);
    CHECK(unlink(file) == 0, "unlink");
    tsr_run_log_stop(&first, TSR_ERR_CHECK, (const char *const[]){"another rank", "", ""});
    expect(file, HEAD("check failed", "3", "another rank", "start-up", "0.000000") ABOUT);
    CHECK(unlink(file) == 0, "unlink");
    CHECK_OK(tsr_run_log_fail(&first, TSR_ERR_IO, "x"));
    expect(file, HEAD("failed", "1", "x", "start-up", "0.000000") ABOUT);
    tsr_run_log_free(&first);
    tsr_run_log_free(&second);
}

/* A signal comes while a final record is being written. */
static void stop_here(const void *log, FILE *to) {
    fputs("x", to);
    CHECK(count_ending(scratch, ".tmp") == 1, "the record is not written beside the log");
    CHECK(tsr_unfinished_remove() == TSR_NO_OUTPUT, "an output of this process");
    tsr_run_log_stop(log, TSR_ERR_STOPPED, by_signal);
    CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
}

static void test_stopped_while_writing(void) {
    char file[600];
    tsr_run_log log;
    snprintf(file, sizeof file, "%s", in_scratch("log.json"));
    prepare(&log, file);
    CHECK_OK(tsr_run_log_start(&log));
    tsr_run_log_stage(&log, "publish");
    CHECK_FAILS(tsr_run_log_done(&log, stop_here, &log), TSR_ERR_IO, "cannot write the log"); /* another thread's */
    expect(file, HEAD("stopped", "75", "stopped (SIGTERM); nothing changed", "done", "0.000000") ABOUT);
    tsr_run_log_free(&log);
}

/* A log that only its owner may read stays so, however its run ends. */
static void test_mode(void) {
    char file[600];
    const int answer = 42;
    struct stat st;
    tsr_run_log log;
    snprintf(file, sizeof file, "%s", in_scratch("log.json"));
    for (int stop = 0; stop < 2; stop++) {
        CHECK(unlink(file) == 0, "unlink");
        put(file, "");
        CHECK(chmod(file, 0600) == 0, "chmod");
        prepare(&log, file);
        CHECK_OK(tsr_run_log_start(&log));
        CHECK(stat(file, &st) == 0 && (st.st_mode & 07777) == 0600, "mode %o", st.st_mode);
        if (stop) tsr_run_log_stop(&log, TSR_ERR_STOPPED, by_signal);
        else CHECK_OK(tsr_run_log_done(&log, members, &answer));
        CHECK(stat(file, &st) == 0 && (st.st_mode & 07777) == 0600, "mode %o", st.st_mode);
        tsr_run_log_free(&log);
    }
}

/* What others put into the folder under the names that 0.1.0 would have taken, or in place of the log. */
static void test_planted(void) {
    char file[600], name[700], victim[600], host[64] = "host";
    const int answer = 42;
    tsr_run_log log;
    snprintf(file, sizeof file, "%s", in_scratch("log.json"));
    snprintf(victim, sizeof victim, "%s", in_scratch("victim"));
    put(victim, "precious");
    gethostname(host, sizeof host - 1);
    for (int stop = 0; stop < 2; stop++) {
        snprintf(name, sizeof name, "%s.tessera-%s-%ld%s.tmp", file, host, (long)getpid(), stop ? "-stop" : "");
        CHECK(symlink(victim, name) == 0, "symlink");
    }
    put(file, "");
    prepare(&log, file);
    CHECK_OK(tsr_run_log_start(&log));
    expect(file, RUNNING);
    tsr_run_log_stop(&log, TSR_ERR_STOPPED, by_signal);
    CHECK_OK(tsr_run_log_start(&log));
    CHECK_OK(tsr_run_log_done(&log, members, &answer));
    CHECK(tsr_new_file(name, 0600) < 0 && errno == EEXIST, "another's link was opened");
    expect(victim, "precious");
    tsr_run_log_free(&log);
    CHECK(count_ending(scratch, ".tmp") == 2 && unlink(name) == 0, "what others made was removed");
    snprintf(name, sizeof name, "%s.tessera-%s-%ld.tmp", file, host, (long)getpid());
    CHECK(unlink(name) == 0, "what others made was removed");

    prepare(&log, file); /* in place of the log: a second name of another file, a link, a pipe that nobody writes */
    CHECK_OK(tsr_run_log_start(&log));
    CHECK(unlink(file) == 0 && link(victim, file) == 0, "link");
    tsr_run_log_stop(&log, TSR_ERR_STOPPED, by_signal);
    CHECK_OK(tsr_run_log_done(&log, members, &answer));
    expect(victim, "precious");
    tsr_run_log_free(&log);
    prepare(&log, file);
    CHECK_OK(tsr_run_log_start(&log));
    CHECK(rename(file, victim) == 0 && symlink(victim, file) == 0, "symlink");
    tsr_run_log_stop(&log, TSR_ERR_STOPPED, by_signal);
    expect(victim, RUNNING);
    CHECK(unlink(file) == 0 && mkfifo(file, 0600) == 0, "mkfifo");
    tsr_run_log_stop(&log, TSR_ERR_STOPPED, by_signal); /* does not wait */
    tsr_run_log_free(&log);
    CHECK(unlink(file) == 0 && unlink(victim) == 0 && count_ending(scratch, ".tmp") == 0, "unlink");
}

/* A link that another made in a folder of everybody's is not followed. Only root can make one here. */
static void test_strange_link(void) {
    char folder[600], name[700];
    const char *file = name;
    snprintf(folder, sizeof folder, "%s", in_scratch("everybody"));
    snprintf(name, sizeof name, "%s/log.json", folder);
    CHECK(mkdir(folder, 0700) == 0 && chmod(folder, 01777) == 0 && symlink("/dev/full", name) == 0, "set-up");
    CHECK_OK(tsr_text_file_resolve(&file)); /* one's own */
    CHECK(strcmp(file, "/dev/full") == 0, "'%s'", file);
    file = name;
    if (lchown(name, 12345, 12345) == 0) CHECK_FAILS(tsr_text_file_resolve(&file), TSR_ERR_IO, "another user");
    CHECK(chmod(folder, 0755) == 0, "chmod");
    CHECK_OK(tsr_text_file_resolve(&file));
    CHECK(strcmp(file, "/dev/full") == 0, "'%s'", file);
}

/* What a refused command line replaces: empty files, and logs of ours, of 0.1.0 too. */
static void test_refused_line(void) {
    static const char *const kept[] = {"{\"status\": \"done\"}",
                                       "{\"format\": 2, \"version\": \"0.1.0\"}",
                                       "{}",
                                       "{",
                                       "[{\"command\": \"x\", \"started\": \"y\"}]",
                                       "notes",
                                       "{\"scripts\": {\"command\": \"x\", \"started\": \"y\"}}",
                                       "{\"command\": \"x\"}",
                                       "{\"command\": \"x\", \"started\": \"y\"} and more",
                                       "{\"command\": 1, \"status\": 2}"};
    static const char *const replaced[] = {"", "{\"format\": 2, \"status\": \"done\", \"command\": \"x\"}",
                                           "{\"command\": \"x\", \"started\": \"y\", \"a\": [1]}\n",
                                           "{\"program\": \"tessera 0.1.0\", \"command\": \"x\"}"};
    char path[600];
    snprintf(path, sizeof path, "%s", in_scratch("log.json"));
    tsr_fail(TSR_ERR_USAGE, "unknown option");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        put(path, kept[i]);
        tsr_run_log_refuse(path, "tessera", 1, TSR_ERR_USAGE);
        expect(path, kept[i]);
        CHECK(strcmp(tsr_message(), "unknown option") == 0, "the message became '%s'", tsr_message());
    }
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) {
        size_t bytes;
        put(path, replaced[i]);
        tsr_run_log_refuse(path, "tessera", 1, TSR_ERR_USAGE);
        char *held = slurp(path, &bytes);
        CHECK(strstr(held, "\"status\": \"failed\"") && strstr(held, "\"message\": \"unknown option\"") &&
                  strstr(held, "\"exit_code\": 2"),
              "%s", held);
        free(held);
        CHECK(strcmp(tsr_message(), "unknown option") == 0, "the message became '%s'", tsr_message());
    }
    unlink(path);
    tsr_run_log_refuse(path, "tessera", 1, TSR_ERR_USAGE);
    CHECK(access(path, F_OK) != 0, "a log was made for a command line that was not understood");
    tsr_run_log_refuse(in_scratch("missing/log.json"), "tessera", 1, TSR_ERR_USAGE);
    tsr_run_log_refuse(NULL, "tessera", 1, TSR_ERR_USAGE);
    CHECK(strcmp(tsr_message(), "unknown option") == 0, "the message became '%s'", tsr_message());
}

/* Standard output that leads to a file: /dev/stdout is a link, which must not be replaced. */
static void test_descriptors(void) {
    static const char *const names[] = {"/dev/stdout", "/dev/stderr", "/dev/fd/1"};
    bool special[3];
    fflush(stdout);
    const int file = open(in_scratch("out"), O_WRONLY | O_CREAT, 0600);
    const int out = dup(1);
    const int err = dup(2);
    CHECK(file >= 0 && out >= 0 && err >= 0 && dup2(file, 1) == 1 && dup2(file, 2) == 2, "descriptors");
    for (int i = 0; i < 3; i++) special[i] = tsr_text_file_is_special(names[i]);
    tsr_text_file to;
    const bool written = tsr_text_file_open("log", names[0], &to) == TSR_OK && fputs("log", to.to) >= 0 &&
                         tsr_text_file_close(&to, 0) == TSR_OK;
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    close(file);
    for (int i = 0; i < 3; i++) CHECK(special[i], "'%s' would be replaced", names[i]);
    CHECK(written, "/dev/stdout was not written");
    expect(in_scratch("out"), "log");
}

static void test_refusals(void) {
    char path[600];
    tsr_run_log log;
    prepare(&log, NULL); /* no log */
    CHECK_OK(tsr_run_log_start(&log));
    CHECK_OK(tsr_run_log_fail(&log, TSR_ERR_IO, "x"));
    tsr_run_log_stop(&log, TSR_ERR_STOPPED, by_signal);
    tsr_run_log_free(&log);
    snprintf(path, sizeof path, "%s", in_scratch("missing/log.json"));
    prepare(&log, path);
    CHECK_FAILS(tsr_run_log_start(&log), TSR_ERR_IO, "cannot write the log");
    const int answer = 1;
    CHECK_FAILS(tsr_run_log_done(&log, members, &answer), TSR_ERR_IO, "cannot write the log");
    tsr_run_log_stop(&log, TSR_ERR_STOPPED, by_signal);
    tsr_run_log_free(&log);
    prepare(&log, "/dev/full"); /* special: the end alone is written */
    CHECK_OK(tsr_run_log_start(&log));
    tsr_run_log_stop(&log, TSR_ERR_STOPPED, by_signal);
    CHECK_FAILS(tsr_run_log_fail(&log, TSR_ERR_IO, "x"), TSR_ERR_SPACE, "");
    CHECK_FAILS(tsr_run_log_done(&log, members, &answer), TSR_ERR_SPACE, "No space left");
    tsr_run_log_free(&log);
    snprintf(path, sizeof path, "%s", scratch);
    prepare(&log, path); /* a folder */
    CHECK_FAILS(tsr_run_log_start(&log), TSR_ERR_IO, "cannot write the log");
    tsr_run_log_free(&log);
}

int main(void) {
    scratch_make();
    test_life();
    test_first_end();
    test_other_ranks();
    test_mode();
    test_planted();
    test_strange_link();
    test_refused_line();
    test_descriptors();
    test_refusals();
    test_stopped_while_writing(); /* last: a process that ends makes no more files */
    scratch_remove();
    return 0;
}
