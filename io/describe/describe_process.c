/* The helper as a process (describe.h): started, asked, waited for no longer than an answer may take, ended. */
#define _GNU_SOURCE /* dladdr, environ, POSIX beside C17 */
#include "io/describe/describe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io/describe/describe_wire.h"

#define PROGRAM "tessera-describe"

/* ---- the process ----------------------------------------------------------------------------- */

/* The folder of `file`, with the slash at its end; "" where it has none. */
static void folder_of(const char *file, char folder[TSR_FILE_CHARS]) {
    const char *slash = strrchr(file, '/');
    snprintf(folder, TSR_FILE_CHARS, "%.*s", slash ? (int)(slash + 1 - file) : 0, file);
}

static tsr_status find_own_folder(char folder[TSR_FILE_CHARS]) {
    char self[TSR_FILE_CHARS];
    const ssize_t chars = readlink("/proc/self/exe", self, sizeof self);
    if (chars <= 0 || chars >= (ssize_t)sizeof self)
        return tsr_fail(TSR_ERR_IO, "cannot find %s: /proc/self/exe cannot be read (%s); is /proc mounted?", PROGRAM,
                        chars < 0 ? strerror(errno) : "too long");
    self[chars] = '\0';
    folder_of(self, folder);
    return TSR_OK;
}

/* The folder of libtessera, where this code is part of the shared library. */
static bool find_library_folder(char folder[TSR_FILE_CHARS]) {
    char real[PATH_MAX];
    Dl_info us;
    if (!dladdr(__extension__(void *) & tsr_describer_start, &us) || !us.dli_fname || !strstr(us.dli_fname, ".so") ||
        !realpath(us.dli_fname, real))
        return false;
    folder_of(real, folder);
    return true;
}

static bool is_there(const char *folder, const char *below, char path[TSR_FILE_CHARS]) {
    return snprintf(path, TSR_FILE_CHARS, "%s%s%s", folder, below, PROGRAM) < TSR_FILE_CHARS && access(path, X_OK) == 0;
}

/* As somebody said, or beside the library or where programs lie beside its folder, or beside this program. */
static tsr_status find_program(const tsr_describer *d, char path[TSR_FILE_CHARS]) {
    const char *said = d->program ? d->program : getenv("TESSERA_DESCRIBE");
    char folder[TSR_FILE_CHARS];
    if (said && *said) {
        if (snprintf(path, TSR_FILE_CHARS, "%s", said) < TSR_FILE_CHARS) return TSR_OK;
        return tsr_fail(TSR_ERR_USAGE, "the name of %s is too long: '%.100s...'", PROGRAM, said);
    }
    if (find_library_folder(folder) &&
        (is_there(folder, "", path) || is_there(folder, "../bin/", path) || is_there(folder, "../../bin/", path)))
        return TSR_OK;
    TSR_TRY(find_own_folder(folder));
    if (snprintf(path, TSR_FILE_CHARS, "%s%s", folder, PROGRAM) < TSR_FILE_CHARS) return TSR_OK;
    return tsr_fail(TSR_ERR_IO, "cannot find %s: the path of this program is too long", PROGRAM);
}

/* `fd` becomes its standard input. What HDF5, or the C library when it aborts, says is not for the terminal. */
static int spawn(const char *path, int fd, pid_t *pid) {
    char *const argv[] = {PROGRAM, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&files);
    if (error) return error;
    if ((error = posix_spawnattr_init(&attributes)) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return error;
    }
    error = posix_spawn_file_actions_adddup2(&files, fd, STDIN_FILENO);
    if (!error) error = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
#ifndef __SANITIZE_ADDRESS__
    if (!error) error = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
#endif
    if (!error) error = posix_spawnattr_setsigdefault(&attributes, &all);
    if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (!error) error = posix_spawn(pid, path, &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

tsr_status tsr_describer_start(tsr_describer *d) {
    char path[TSR_FILE_CHARS];
    int pair[2];
    if (d->pid > 0) return TSR_OK;
    TSR_TRY(find_program(d, path));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return tsr_fail(TSR_ERR_IO, "cannot connect to %s: %s", path, strerror(errno));
    const int error = spawn(path, pair[1], &d->pid);
    close(pair[1]);
    if (error == 0) {
        d->fd = pair[0];
        return TSR_OK;
    }
    d->pid = 0;
    close(pair[0]);
    return tsr_fail(TSR_ERR_IO, "cannot start '%s', which looks into files: %s; it is installed beside tessera: %s",
                    path, strerror(error), error == ENOENT ? "install both" : "check it");
}

/* Whether it ended within some milliseconds, and how. `state` -1: nobody can say. */
static bool reap(pid_t pid, int milliseconds, int *state) {
    const struct timespec pause = {0, 1000000};
    *state = -1;
    for (int i = 0;; i++) {
        const pid_t ended = waitpid(pid, state, WNOHANG);
        if (ended == pid) return true;
        if (ended < 0 && errno != EINTR) {
            *state = -1;
            return true;
        }
        if (i >= milliseconds) return false;
        nanosleep(&pause, NULL);
    }
}

/* Ends the process; `state` as waitpid has it, -1 where that is not known. `patience`: how long it may take to end by
 * itself. One that cannot be killed, because its file system hangs, is left behind. */
static int finish(tsr_describer *d, int patience) {
    int state;
    close(d->fd);
    if (!reap(d->pid, patience, &state)) {
        kill(d->pid, SIGKILL);
        if (!reap(d->pid, 1000, &state)) state = -1;
    }
    *d = (tsr_describer){.most_seconds = d->most_seconds, .external = d->external, .program = d->program};
    return state;
}

void tsr_describer_close(tsr_describer *d) {
    if (d && d->pid > 0) (void)finish(d, 0); /* it has nothing to tidy up */
}

/* ---- questions and answers ------------------------------------------------------------------- */

typedef struct {
    int fd;
    double deadline; /* tsr_now_seconds(); later with each word that comes, */
    double end;      /* but never later than this */
    const tsr_wire *question;
    tsr_wire_head heads[2]; /* of the question, of the answer */
    size_t sent, got;
    tsr_wire *answer;
} exchange;

typedef enum { DONE, WAITING, ENDED, TOO_LATE, ENDLESS, OTHER_BUILD, NONSENSE, NO_MEMORY } outcome;

/* Sends as much as is taken. An end of the other side shows in what is received. */
static void send_some(exchange *x) {
    const size_t head = sizeof x->heads[0], all = head + x->question->bytes;
    while (x->sent < all) {
        const char *from = x->sent < head ? (const char *)&x->heads[0] + x->sent : x->question->data + (x->sent - head);
        const ssize_t put =
            send(x->fd, from, x->sent < head ? head - x->sent : all - x->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put <= 0) return;
        x->sent += (size_t)put;
    }
}

/* Memory grows with what comes, not with what is announced. */
static bool make_room(tsr_wire *answer, size_t wanted) {
    if (answer->room >= wanted) return true;
    size_t room = answer->room ? 2 * answer->room : 65536;
    char *data = realloc(answer->data, room = room > wanted ? room : wanted);
    if (!data) return false;
    answer->data = data;
    answer->room = room;
    return true;
}

static outcome receive_some(exchange *x) {
    tsr_wire_head *head = &x->heads[1];
    tsr_wire *answer = x->answer;
    const bool in_head = x->got < sizeof *head;
    const size_t left = in_head ? sizeof *head - x->got : head->bytes - answer->bytes, most = 65536;
    if (!in_head && !make_room(answer, answer->bytes + (left < most ? left : most))) return NO_MEMORY;
    char *to = in_head ? (char *)head + x->got : answer->data + answer->bytes;
    const ssize_t got = recv(x->fd, to, left < most ? left : most, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return WAITING;
    if (got <= 0) return ENDED;
    x->deadline = tsr_now_seconds() + TSR_DESCRIBE_SECONDS;
    if (in_head) x->got += (size_t)got;
    else answer->bytes += (size_t)got;
    if (x->got < sizeof *head) return WAITING;
    if (!tsr_wire_head_is_ours(head)) return OTHER_BUILD;
    if (head->bytes > TSR_WIRE_ANSWER_MAX) return NONSENSE;
    if (head->bytes == 0) { /* it only goes on: the head of the answer is still to come */
        x->got = 0;
        return WAITING;
    }
    return answer->bytes == head->bytes ? DONE : WAITING;
}

/* Signals are handled meanwhile: those that stop the job end it from here. */
static outcome wait_for(exchange *x) {
    for (;;) {
        send_some(x);
        const double now = tsr_now_seconds(), left = (x->deadline < x->end ? x->deadline : x->end) - now;
        if (left <= 0) return now >= x->end ? ENDLESS : TOO_LATE;
        const bool sending = x->sent < sizeof x->heads[0] + x->question->bytes;
        struct pollfd fd = {x->fd, (short)(POLLIN | (sending ? POLLOUT : 0)), 0};
        if (poll(&fd, 1, (int)(left * 1000) + 1) <= 0 || !(fd.revents & (POLLIN | POLLHUP | POLLERR))) continue;
        const outcome how = receive_some(x);
        if (how != WAITING) return how;
    }
}

static const char *signal_name(int number, char text[32]) {
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"},
                 {SIGABRT, "SIGABRT"}, {SIGILL, "SIGILL"}, {SIGSYS, "SIGSYS"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == number) return names[i].name;
    snprintf(text, 32, "signal %d", number);
    return text;
}

#define CHECK_IT "check it with h5ls, copy it again"

/* It ended by itself, with an exit code that is not 0. */
static tsr_status explain_exit(const tsr_describer *d, const char *file, int code) {
    char path[TSR_FILE_CHARS];
    TSR_TRY(find_program(d, path));
    if (code == 127) /* the dynamic loader's */
        return tsr_fail(TSR_FAILURE,
                        "'%s' cannot be described: a library that '%s' needs is missing; 'ldd %s' says which", file,
                        path, path);
    return tsr_fail(TSR_FAILURE,
                    "'%s' cannot be described: %s ended with exit code %d; it is installed with tessera: install both",
                    file, PROGRAM, code);
}

static tsr_status explain_build(const tsr_describer *d, const char *file, const tsr_wire_head *theirs) {
    char path[TSR_FILE_CHARS];
    TSR_TRY(find_program(d, path));
    char versions[64] = "";
    if (memcmp(theirs->magic, TSR_WIRE_MAGIC, sizeof theirs->magic) == 0 &&
        strncmp(theirs->version, TSR_VERSION, sizeof theirs->version) != 0)
        snprintf(versions, sizeof versions, " (%.*s, not %s)", (int)sizeof theirs->version, theirs->version,
                 TSR_VERSION);
    return tsr_fail(TSR_FAILURE,
                    "'%s' cannot be described: '%s' is of another build than this tessera%s; install both of one build",
                    file, path, versions);
}

static double most_seconds_of(const tsr_describer *d) {
    return d->most_seconds > 0 ? d->most_seconds : TSR_DESCRIBE_MOST_SECONDS;
}

/* Why there is no answer. `seconds`: of computing that were allowed; `state`: how the process ended. */
static tsr_status explain(const tsr_describer *d, const char *file, double seconds, outcome how, int state) {
    const double most_seconds = most_seconds_of(d);
    char text[32];
    if (how == NO_MEMORY) return tsr_fail(TSR_ERR_MEMORY, "no memory to describe '%s'; free some", file);
    if (how == TOO_LATE)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s' cannot be described: HDF5 took too long to look into it (%.0f s without a result): its "
                        "file system hangs, or the file is damaged; " CHECK_IT,
                        file, TSR_DESCRIBE_SECONDS);
    if (how == ENDLESS)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s' cannot be described: looking into it has no end (the answer took longer than %.0f s): it "
                        "holds too much, or is damaged; " CHECK_IT,
                        file, most_seconds);
    if (state != -1 && WIFSIGNALED(state) && WTERMSIG(state) == SIGXCPU)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s' cannot be described: HDF5 took too long to look into it (%.0f s of computing are "
                        "allowed): it holds too much, or is damaged; " CHECK_IT,
                        file, seconds);
    if (state != -1 && WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL && how == ENDED)
        return tsr_fail(TSR_FAILURE,
                        "'%s' cannot be described: %s was killed (SIGKILL), perhaps because memory ran out", file,
                        PROGRAM);
    if (state != -1 && WIFSIGNALED(state) && how == ENDED)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s' cannot be described: HDF5 crashed on it (%s): the file is damaged; " CHECK_IT, file,
                        signal_name(WTERMSIG(state), text));
    if (how == ENDED && state != -1 && WIFEXITED(state) && WEXITSTATUS(state) != 0)
        return explain_exit(d, file, WEXITSTATUS(state));
    return tsr_fail(TSR_ERR_FORMAT,
                    "'%s' cannot be described: what %s found makes no sense: the file is damaged; " CHECK_IT, file,
                    PROGRAM);
}

tsr_status tsr_describer_distrust(tsr_describer *d, const char *file, const char *what) {
    tsr_describer_close(d);
    return tsr_fail(
        TSR_ERR_FORMAT,
        "'%s' cannot be described: what HDF5 found in it makes no sense (%s): the file is damaged; " CHECK_IT, file,
        what);
}

/* One that ended since it was asked last, or that speaks without being asked. */
static bool is_stale(const tsr_describer *d) {
    struct pollfd fd = {d->fd, POLLIN, 0};
    return d->pid > 0 && poll(&fd, 1, 0) > 0;
}

tsr_status tsr_describer_ask(tsr_describer *d, const char *file, double seconds, const tsr_wire *question,
                             tsr_wire *answer) {
    *answer = (tsr_wire){.reading = true};
    if (question->wrong) return tsr_fail(TSR_ERR_MEMORY, "no memory to describe '%s'; free some", file);
    if (is_stale(d)) tsr_describer_close(d);
    TSR_TRY(tsr_describer_start(d));
    const double start = tsr_now_seconds();
    exchange x = {.fd = d->fd,
                  .deadline = start + TSR_DESCRIBE_SECONDS,
                  .end = start + most_seconds_of(d),
                  .question = question,
                  .heads = {tsr_wire_head_of(question->bytes, (uint32_t)ceil(seconds))},
                  .answer = answer};
    const outcome how = wait_for(&x);
    if (how == DONE) return TSR_OK;
    const int state = finish(d, how == ENDED ? 1000 : 0);
    return how == OTHER_BUILD ? explain_build(d, file, &x.heads[1]) : explain(d, file, seconds, how, state);
}
