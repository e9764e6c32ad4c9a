/* The state of a file, and what counts as a change of it. The system's answer to fstatfs is this program's. */
#define _GNU_SOURCE
#include "io/store.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/io/scratch.h"

static long pretended; /* type of the file system; 0: as it is */

int fstatfs(int fd, struct statfs *fs) {
    const int result = (int)syscall(SYS_fstatfs, fd, fs);
    if (result == 0 && pretended) fs->f_type = (__typeof__(fs->f_type))pretended;
    return result;
}

static double slept; /* seconds, by nanosleep: a busy machine may take them for anything */

int nanosleep(const struct timespec *time, struct timespec *left) {
    (void)left;
    slept += (double)time->tv_sec + (double)time->tv_nsec * 1e-9;
    return (int)syscall(SYS_nanosleep, time, NULL);
}

static void write_text(const char *name, const char *text, int flags) {
    int fd = open(name, O_WRONLY | O_CREAT | flags, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", name);
    close(fd);
}

static int open_file(const char *name) {
    int fd = open(name, O_RDONLY);
    CHECK(fd >= 0, "%s", name);
    return fd;
}

static tsr_file_state note(const char *name) {
    tsr_file_state state;
    CHECK_OK(tsr_file_state_note(name, &state));
    CHECK(state.known, "%s", name);
    return state;
}

static void test_changes(void) {
    const char *name = "state";
    write_text(name, "one", O_TRUNC);
    tsr_file_state noted = note(name), now;
    int fd = open_file(name);
    CHECK_OK(tsr_file_state_check(fd, name, &noted, &now));
    CHECK(memcmp(&noted, &now, sizeof now) == 0, "inode %llu", (unsigned long long)now.inode);
    CHECK_OK(tsr_file_state_open(name, &noted, NULL));

    /* what does not touch the data */
    CHECK(chmod(name, 0400) == 0 && link(name, "other") == 0, "%s", name);
    CHECK_OK(tsr_file_state_check(fd, name, &noted, NULL));
    CHECK(unlink("other") == 0 && chmod(name, 0600) == 0, "%s", name);

    write_text(name, "two", 0); /* of the same length, at once: the state was noted when the clock had moved on */
    CHECK_FAILS(tsr_file_state_check(fd, name, &noted, NULL), TSR_ERR_IO, "'state' changed during the run: modified ");
    CHECK_FAILS(tsr_file_state_open(name, &noted, NULL), TSR_ERR_IO, " UTC, then 20");
    noted = note(name);
    write_text(name, "three", 0);
    CHECK_FAILS(tsr_file_state_check(fd, name, &noted, NULL), TSR_ERR_IO, ": 3 bytes became 5, modified 20");

    /* another file takes the name: the open one is what it was */
    noted = note(name);
    write_text("fresh", "three", O_TRUNC);
    CHECK(rename("fresh", name) == 0, "%s", name);
    CHECK_OK(tsr_file_state_check(fd, name, &noted, NULL));
    CHECK_FAILS(tsr_file_state_open(name, &noted, NULL), TSR_ERR_IO, ": inode ");
    close(fd);
    CHECK_FAILS(tsr_file_state_check(fd, name, &noted, NULL), TSR_ERR_IO, "cannot look at 'state'");
    CHECK_FAILS(tsr_file_state_open("missing", &noted, NULL), TSR_ERR_NOT_FOUND, "No such file");

    tsr_file_state unknown = {.known = false};
    fd = open_file(name);
    CHECK_OK(tsr_file_state_check(fd, name, &unknown, NULL));
    close(fd);
}

/* Repeated at once, so that some of the notes fall into the tick of a write. */
static void test_every_write_shows(void) {
    for (int i = 0; i < 10; i++) {
        write_text("tick", i % 2 ? "a" : "b", O_TRUNC);
        tsr_file_state noted = note("tick");
        write_text("tick", i % 2 ? "c" : "d", 0);
        CHECK_FAILS(tsr_file_state_open("tick", &noted, NULL), TSR_ERR_IO, "modified");
    }
}

/* Times in the future, or far in the past, are not waited for. */
static void test_no_wait(void) {
    const time_t times[] = {0, time(NULL) - 3600, time(NULL) + 3600};
    write_text("dated", "text", O_TRUNC);
    slept = 0;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const struct timespec both[2] = {{.tv_sec = times[i]}, {.tv_sec = times[i]}};
        CHECK(utimensat(AT_FDCWD, "dated", both, 0) == 0, "time %lld", (long long)times[i]);
        CHECK(note("dated").seconds == (int64_t)times[i], "time %lld", (long long)times[i]);
    }
    CHECK(slept == 0, "%g seconds of pauses", slept);
}

/* What counts between machines, on file systems of several kinds. */
static void test_machines(void) {
    const char *name = "machines";
    write_text(name, "text", O_TRUNC);
    const struct {
        long type;
        bool same_machine, device, inode; /* other numbers of these */
        const char *says;                 /* NULL: no change */
    } cases[] = {
        {0xEF53, true, true, false, ": device "}, {0xEF53, true, false, true, ": inode "},
        {0xEF53, false, true, false, NULL},       {0xEF53, false, false, true, ": inode "},
        {0x65735546, false, true, true, NULL},    {0x65735546, true, false, false, NULL},
        {0xFF534D42, false, true, true, NULL},    {0x6969, false, true, false, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pretended = cases[i].type;
        tsr_file_state noted = note(name);
        if (!cases[i].same_machine) noted.machine++;
        if (cases[i].device) noted.device++;
        if (cases[i].inode) noted.inode++;
        if (cases[i].says) CHECK_FAILS(tsr_file_state_open(name, &noted, NULL), TSR_ERR_IO, cases[i].says);
        else CHECK_OK(tsr_file_state_open(name, &noted, NULL));
    }
    pretended = 0;
}

/* A local file system is believed at once, any other after a while. */
static void test_patience(void) {
    const char *name = "patience";
    const long types[] = {0xEF53, TMPFS_MAGIC, 0x0BD00BD0 /* Lustre */};
    write_text(name, "text", O_TRUNC);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        pretended = types[i];
        tsr_file_state noted = note(name);
        noted.nanoseconds ^= 1;
        int fd = open_file(name);
        const double start = tsr_now_seconds();
        slept = 0;
        CHECK_FAILS(tsr_file_state_check(fd, name, &noted, NULL), TSR_ERR_IO, "modified");
        const double took = tsr_now_seconds() - start;
        if (i < 2) CHECK(slept == 0, "type %lx: %g seconds of pauses", types[i], slept);
        else CHECK(took >= TSR_LOOK_AGAIN_SECONDS && slept > 0, "type %lx: %g seconds", types[i], took);
        close(fd);
    }
    pretended = 0;
}

/* Each container with mounts of its own is a machine: devices' numbers are not compared. Where containers may not be
 * made nothing is tried. */
static void test_container(void) {
    int state = 0;
    write_text("mounts", "text", O_TRUNC);
    tsr_file_state noted = note("mounts");
    noted.device++;
    CHECK_FAILS(tsr_file_state_open("mounts", &noted, NULL), TSR_ERR_IO, ": device ");
    const pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0) _exit(0);
        CHECK_OK(tsr_file_state_open("mounts", &noted, NULL));
        noted.bytes++;
        CHECK_FAILS(tsr_file_state_open("mounts", &noted, NULL), TSR_ERR_IO, "not here what it was for rank 0");
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &state, 0) == child && state == 0, "state %d", state);
}

/* A store has room for so many descriptors and says so. */
static void test_watched(void) {
    const char *name = "watched";
    write_text(name, "text", O_TRUNC);
    tsr_store store = {.desc = {.file_state = note(name)}};
    const int fd = open_file(name);
    for (int i = 0; i < TSR_WATCHED_MAX; i++) CHECK_OK(tsr_store_watch(&store, fd));
    CHECK_FAILS(tsr_store_watch(&store, fd), TSR_FAILURE, "at most");
    CHECK_OK(tsr_store_unchanged(&store));
    close(fd);
}

int main(void) {
    scratch_make();
    CHECK(chdir(scratch) == 0, "%s", scratch);
    test_changes();
    test_every_write_shows();
    test_no_wait();
    test_machines();
    test_patience();
    test_watched();
    test_container();
    scratch_remove();
    return 0;
}
