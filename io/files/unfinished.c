/* Files for a signal handler to remove (unfinished.h). A handler can reach only static memory. */
#include "io/files/unfinished.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files/new_file.h"
#include "io/store.h"

#define FILES 8 /* an output, what keeps its chunks, log and trace, and more */
#define NAME_CHARS (TSR_FILE_CHARS + 256)

enum { FREE, TAKEN, NOTED };

static struct {
    atomic_int state;
    char name[NAME_CHARS]; /* set before the state says NOTED */
} files[FILES];

static struct {
    atomic_bool noted; /* the others are set */
    char name[NAME_CHARS], target[NAME_CHARS];
    bool kept;
    dev_t device;
    ino_t number;
} output;

static atomic_int making;  /* threads between the decision to make a file and its note */
static atomic_bool ending; /* no more files */

static atomic_int seen_by_none;
static _Atomic(atomic_int *) count_for_others = &seen_by_none;

void tsr_unfinished_count_in(atomic_int *count) { atomic_store(&count_for_others, count ? count : &seen_by_none); }

static void count(int more) { atomic_fetch_add(atomic_load(&count_for_others), more); }

static void note(const char *name) {
    const size_t chars = strlen(name) + 1;
    for (int i = 0; i < FILES && chars <= NAME_CHARS; i++) {
        int state = FREE;
        if (!atomic_compare_exchange_strong(&files[i].state, &state, TAKEN)) continue;
        memcpy(files[i].name, name, chars);
        atomic_store(&files[i].state, NOTED);
        count(1);
        return;
    }
}

static _Noreturn void stop_here(void) {
    atomic_fetch_sub(&making, 1);
    count(-1);
    for (;;) pause();
}

void tsr_unfinished_enter(sigset_t *before) {
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
    sigset_t others;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) sigdelset(&others, crashes[i]);
    pthread_sigmask(SIG_BLOCK, &others, before); /* the handler waits for `making`, and must not do so in this thread */
    atomic_fetch_add(&making, 1);
    count(1);
    if (atomic_load(&ending)) stop_here();
}

void tsr_unfinished_leave(const sigset_t *before) {
    const int error = errno;
    if (atomic_load(&ending)) stop_here();
    atomic_fetch_sub(&making, 1);
    count(-1);
    pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = error;
}

int tsr_unfinished_make(const char *name, mode_t mode) {
    sigset_t before;
    tsr_unfinished_enter(&before);
    const int fd = tsr_new_file(name, mode);
    if (fd >= 0) note(name);
    tsr_unfinished_leave(&before);
    return fd;
}

void tsr_unfinished_done(const char *name) {
    for (int i = 0; i < FILES; i++)
        if (atomic_load(&files[i].state) == NOTED && strcmp(files[i].name, name) == 0) {
            atomic_store(&files[i].state, FREE);
            count(-1);
        }
}

void tsr_unfinished_output(const char *name, const char *target, bool kept) {
    struct stat st;
    if (strlen(name) >= NAME_CHARS || strlen(target) >= NAME_CHARS) return;
    strcpy(output.name, name);
    strcpy(output.target, target);
    const bool there = stat(name, &st) == 0;
    output.device = there ? st.st_dev : 0;
    output.number = there ? st.st_ino : 0;
    output.kept = kept;
    atomic_store(&output.noted, true);
}

void tsr_unfinished_forget(void) {
    if (atomic_exchange(&output.noted, false)) tsr_unfinished_done(output.name);
}

/* The rename that publishes and the removal of what would be renamed cannot both succeed. A file that is gone was
 * removed by another rank, or has its final name. */
static tsr_unfinished_end remove_output(void) {
    struct stat st;
    if (!atomic_load(&output.noted)) return TSR_NO_OUTPUT;
    if (!output.kept && (unlink(output.name) == 0 || errno != ENOENT)) return TSR_REMOVED; /* or nobody can */
    if (stat(output.target, &st) == 0 && st.st_ino == output.number && st.st_dev == output.device) return TSR_IN_PLACE;
    return output.kept ? TSR_NO_OUTPUT : TSR_GONE;
}

tsr_unfinished_end tsr_unfinished_remove(void) {
    atomic_store(&ending, true);
    for (int i = 0; i < 100 && atomic_load(&making) > 0; i++) poll(NULL, 0, 10); /* a file system that hangs is left */
    const tsr_unfinished_end end = remove_output();
    for (int i = 0; i < FILES; i++)
        if (atomic_load(&files[i].state) == NOTED) unlink(files[i].name);
    return end;
}
