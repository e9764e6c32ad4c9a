/* Temporary files of outputs where others write, too, where there are no locks, and where looking at them fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "io/files/namespaces.h"
#include "io/files/new_file.h"
#include "io/files/unfinished.h"
#include "io/output/output_private.h"
#include "tests/io/chunks/chunked.h"
#include "tests/io/files/spec_of.h"

/* ---- instead of the C library's -------------------------------------------------------------- */

static bool no_locks, no_unnamed;
static int looks_fail, looks_error; /* so many calls of stat or lstat for a temporary file */

int fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (no_locks && (command == F_OFD_SETLK || command == F_OFD_GETLK)) {
        errno = ENOLCK;
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

int open(const char *name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const int mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, int) : 0;
    va_end(arguments);
    if (no_unnamed && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return openat(AT_FDCWD, name, flags, mode);
}

static int look(const char *name, struct stat *st, int flags) {
    if (looks_fail > 0 && strstr(name, ".tessera-")) {
        looks_fail--;
        errno = looks_error;
        return -1;
    }
    return fstatat(AT_FDCWD, name, st, flags);
}
int lstat(const char *name, struct stat *st) { return look(name, st, AT_SYMLINK_NOFOLLOW); }
int stat(const char *name, struct stat *st) { return look(name, st, 0); }

/* ---- */

static char host[64] = "host";

static void publish(const char *file) {
    const tsr_output_spec spec = spec_of(file);
    tsr_output output;
    CHECK_OK(tsr_output_create(&spec, &output));
    CHECK_OK(tsr_output_publish(&output, NULL, "test"));
}

static void refused(const char *file, const char *text) {
    const tsr_output_spec spec = spec_of(file);
    tsr_output output;
    CHECK_FAILS(tsr_output_create(&spec, &output), TSR_ERR_EXISTS, text);
}

static void put(const char *file, const char *text) {
    FILE *to = fopen(file, "w");
    CHECK(to && fputs(text, to) >= 0 && fclose(to) == 0, "cannot make '%s'", file);
}

static bool holds(const char *file, const char *text) {
    size_t bytes;
    char *held = slurp(file, &bytes);
    const bool same = strcmp(held, text) == 0;
    free(held);
    return same;
}

/* Nobody can foresee a name, and every process and machine has its own. */
static void test_names(void) {
    char names[8][TSR_FILE_CHARS], start[700];
    const tsr_output_spec spec = spec_of("c.h5");
    snprintf(start, sizeof start, "%s/.c.h5.tessera-%s-%ld-", scratch, host, (long)getpid());
    for (int i = 0; i < 8; i++) {
        tsr_output output;
        CHECK_OK(tsr_output_create(&spec, &output));
        snprintf(names[i], sizeof names[i], "%s", output.desc.name.file);
        const char *letters = names[i] + strlen(start);
        CHECK(strncmp(names[i], start, strlen(start)) == 0 && strspn(letters, "abcdefghijklmnopqrstuvwxyz") == 8 &&
                  strcmp(letters + 8, ".tmp") == 0,
              "'%s'", names[i]);
        for (int j = 0; j < i; j++) CHECK(strcmp(names[i], names[j]) != 0, "'%s' twice", names[i]);
        drop_output(&output, NULL);
    }
}

/* Links, pipes and folders that are called as a killed run's file. */
static void test_planted(void) {
    char victim[600];
    snprintf(victim, sizeof victim, "%s", in_scratch("victim"));
    put(victim, "precious");
    CHECK(symlink(victim, in_scratch(".c.h5.tessera-x-1.tmp")) == 0, "symlink");
    CHECK(symlink("nowhere", in_scratch(".c.h5.tessera-x-2.tmp")) == 0, "symlink");
    CHECK(mkfifo(in_scratch(".c.h5.tessera-x-3.tmp"), 0666) == 0, "mkfifo");
    CHECK(mkdir(in_scratch(".c.h5.tessera-x-4.tmp"), 0777) == 0, "mkdir");
    CHECK(link(victim, in_scratch(".c.h5.tessera-x-5.tmp")) == 0, "link");
    publish("c.h5");
    CHECK(holds(victim, "precious"), "another file was changed");
    CHECK(count_ending(scratch, ".tmp") == 4, "%d of what others made", count_ending(scratch, ".tmp"));
    CHECK(remove(in_scratch(".c.h5.tessera-x-1.tmp")) == 0 && remove(in_scratch(".c.h5.tessera-x-2.tmp")) == 0 &&
              remove(in_scratch(".c.h5.tessera-x-3.tmp")) == 0 && remove(in_scratch(".c.h5.tessera-x-4.tmp")) == 0,
          "what others made is gone");
}

/* A link that another made in a folder of everybody's is not followed. Only root can make one here. */
static void test_strange_link(void) {
    char name[600];
    snprintf(name, sizeof name, "%s", in_scratch("everybody/c.h5"));
    publish("c.h5");
    CHECK(mkdir(in_scratch("everybody"), 0700) == 0 && chmod(in_scratch("everybody"), 0777) == 0, "mkdir");
    CHECK(symlink("../c.h5", name) == 0, "symlink");
    publish("everybody/c.h5"); /* one's own */
    if (lchown(name, 12345, 12345) != 0) return;
    const tsr_output_spec spec = spec_of("everybody/c.h5");
    tsr_output output;
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_IO, "another user made");
    CHECK_FAILS(tsr_output_create(&spec, &output), TSR_ERR_IO, "another user made");
    CHECK(chmod(in_scratch("everybody"), 0755) == 0, "chmod");
    publish("everybody/c.h5");
    CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
}

/* Names of 0.1.0 and of now, of files without a lock. */
static void test_stale(void) {
    static const char *const endings[] = {"x-1.tmp", "x-1-abcdef.tmp", "x-1-abcdefgh.tmp", "x-1-abcdefgh-A1b2C3.tmp"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char name[200];
        snprintf(name, sizeof name, ".c.h5.tessera-%s", endings[i]);
        put(in_scratch(name), "");
    }
    put(in_scratch(".d.h5.tessera-x-1.tmp"), ""); /* another output's */
    publish("c.h5");
    CHECK(count_ending(scratch, ".tmp") == 1 && unlink(in_scratch(".d.h5.tessera-x-1.tmp")) == 0, "stale files");
}

/* A file that only its user may write, but everybody read: a living run's, then a dead one's. As root nothing is. */
static void test_readable(void) {
    char name[600];
    snprintf(name, sizeof name, "%s", in_scratch(".c.h5.tessera-x-1.tmp"));
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK(fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0 && fchmod(fd, 0444) == 0, "set-up");
    refused("c.h5", "another run is writing");
    close(fd);
    publish("c.h5");
    CHECK(count_ending(scratch, ".tmp") == 0, "a dead run's file stays");
}

static void left_by(const char *machine, long pid, const char *more) {
    char name[250];
    snprintf(name, sizeof name, ".it's.h5.tessera-%s-%ld%s.tmp", machine, pid, more);
    put(in_scratch(name), "");
}

/* Without locks only a process of this machine can be known to be dead; of others the error says what to do. */
static void test_no_locks(void) {
    char longer[80];
    pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(child > 0 && waitpid(child, NULL, 0) == child, "fork");
    no_locks = true;
    left_by(host, child, "");
    left_by(host, child, "-abcdefgh");
    left_by(host, child, "-abcdefgh-A1b2C3");
    left_by(host, getpid(), ""); /* of an earlier process with this number */
    publish("it's.h5");
    CHECK(count_ending(scratch, ".tmp") == 0, "a dead run's file stays");
    left_by(host, getppid(), "");
    refused("it's.h5", "/.it'\\''s.h5.tessera-");
    CHECK(strstr(tsr_message(), "remove what it left: rm '/") && tsr_message()[strlen(tsr_message()) - 1] == '\'', "%s",
          tsr_message());
    char command[2200];
    snprintf(command, sizeof command, "%s", strstr(tsr_message(), "rm '"));
    CHECK(system(command) == 0 && count_ending(scratch, ".tmp") == 0, "the advice does not help: %s", command);
    snprintf(longer, sizeof longer, "%s-%ld", host, (long)child); /* another machine, whose name goes on */
    left_by("elsewhere", child, "-abcdefgh");
    refused("it's.h5", "elsewhere-");
    CHECK(system(strstr(tsr_message(), "rm '")) == 0, "the advice does not help");
    left_by(longer, getpid(), "");
    refused("it's.h5", longer);
    CHECK(system(strstr(tsr_message(), "rm '")) == 0, "the advice does not help");
    publish("it's.h5");
    no_locks = false;
}

/* In a container the numbers of processes are others: nobody there knows that a run of the machine, or of another
 * container, is dead. Of its own container's it is known. */
static void in_container(long outside) {
    char here[96];
    const pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(child > 0 && waitpid(child, NULL, 0) == child, "fork");
    snprintf(here, sizeof here, "%s-p%llu", host, (unsigned long long)tsr_pid_namespace());
    left_by(here, child, "-abcdefgh");
    publish("it's.h5");
    left_by(host, outside, "-abcdefgh");
    refused("it's.h5", "another run is writing");
    const tsr_output_spec spec = spec_of("other.h5");
    tsr_output output;
    CHECK_OK(tsr_output_create(&spec, &output));
    CHECK(strstr(output.desc.name.file, here) != NULL, "'%s'", output.desc.name.file);
    drop_output(&output, NULL);
}

static void test_container(void) {
    int state = 0;
    const pid_t outside = fork(), maker = outside == 0 ? 0 : fork();
    if (outside == 0) pause();
    if (maker == 0) {
        if (unshare(CLONE_NEWPID) != 0) _exit(0);
        const pid_t inside = fork();
        no_locks = true;
        if (inside == 0) in_container(outside);
        else waitpid(inside, &state, 0);
        _exit(state != 0);
    }
    CHECK(outside > 0 && maker > 0 && waitpid(maker, &state, 0) == maker && state == 0, "state %d", state);
    kill(outside, SIGKILL);
    CHECK(waitpid(outside, NULL, 0) == outside, "waitpid");
    publish("it's.h5");
    CHECK(count_ending(scratch, ".tmp") == 0, "a dead run's file stays");
}

/* Encoded chunks wait in a file that never has a name; where that cannot be, it has one for a moment. */
static void test_unnamed(void) {
    for (int i = 0; i < 2; i++) {
        const tsr_output_spec spec = chunked_spec("c.h5", "/C", 20, 30, 8, 7, PLAIN);
        tsr_output output;
        double *data = chunked_matrix(20, 30);
        CHECK_OK(tsr_output_create(&spec, &output));
        tsr_store *store;
        no_unnamed = i == 1;
        CHECK_OK(tsr_output_open(&output, TSR_IO_AUTO, NULL, &store));
        no_unnamed = false;
        CHECK(count_ending(scratch, ".tmp") == 1, "encoded chunks wait in a file with a name");
        CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, 20, 30}, data, 30));
        struct stat st;
        CHECK(fstat(spill_file(), &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_nlink == 0, "mode %o", st.st_mode);
        CHECK_OK(place_alone(&output, store));
        tsr_store_close(store);
        CHECK_OK(tsr_output_publish(&output, NULL, "test"));
        check_chunked(&spec.name, TSR_IO_HDF5, 20, 30);
        free(data);
    }
}

/* It is looked at whether the file made is there. That fails, once or always. */
static void test_looks_fail(void) {
    static const int errors[] = {EIO, ENOENT, ENOMEM};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        looks_fail = 1;
        looks_error = errors[i];
        publish("c.h5");
        CHECK(looks_fail == 0 && count_ending(scratch, ".tmp") == 0, "a temporary file is left");
    }
    const tsr_output_spec spec = spec_of("c.h5");
    tsr_output output;
    looks_fail = 1000;
    looks_error = ENOENT;
    CHECK_FAILS(tsr_output_create(&spec, &output), TSR_ERR_IO, "disappears");
    looks_fail = 0;
    CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
}

/* Names as long as the system allows: the temporary ones are shorter, and do not meet those of names that begin alike.
 */
static void test_long_names(void) {
    char a[256], b[256], wide[256] = "";
    char name[250], other[250];
    memset(a, 'a', 255);
    a[255] = '\0';
    memcpy(b, a, sizeof b);
    b[254] = 'b';
    for (int i = 0; i < 85; i++) strcat(wide, "€"); /* 255 bytes; a cut within one is no name where names are UTF-8 */
    CHECK(tsr_name_beside("f/short.h5", ".", ".tmp", name, sizeof name) && strcmp(name, "f/.short.h5.tmp") == 0, "'%s'",
          name);
    CHECK(!tsr_name_beside("f/short.h5", ".", ".tmp", name, 15), "'%s' fits", name);
    CHECK(tsr_name_beside(wide, "", "", name, sizeof name) && strchr(name, '~') && (strchr(name, '~') - name) % 3 == 0,
          "'%s'", name);
    CHECK(tsr_name_beside(a, ".", ".tessera-x-1.tmp", name, sizeof name) &&
              tsr_name_beside(b, ".", ".tessera-x-1.tmp", other, sizeof other) && strcmp(name, other) != 0,
          "'%s'", name);
    put(in_scratch(name), "");
    put(in_scratch(other), "");
    publish(a);
    CHECK(access(in_scratch(name), F_OK) != 0 && access(in_scratch(other), F_OK) == 0, "the wrong stale file is gone");
    publish(b);
    publish(wide);
    CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
}

/* Links that lead to links, a circle, nothing at the end, and a stranger's behind one's own. */
static void test_links(void) {
    char real[PATH_MAX], wanted[PATH_MAX];
    put(in_scratch("end"), "");
    CHECK(symlink("end", in_scratch("one")) == 0 && symlink(in_scratch("one"), in_scratch("two")) == 0, "symlink");
    CHECK(symlink("back", in_scratch("forth")) == 0 && symlink("forth", in_scratch("back")) == 0, "symlink");
    CHECK(symlink("nothing", in_scratch("lost")) == 0, "symlink");
    CHECK(realpath(in_scratch("end"), wanted) != NULL, "realpath");
    CHECK(tsr_link_follow(in_scratch("two"), real) == 0 && strcmp(real, wanted) == 0, "'%s'", real);
    CHECK(tsr_link_follow(in_scratch("forth"), real) == ELOOP, "a circle leads somewhere");
    CHECK(tsr_link_follow(in_scratch("lost"), real) == ENOENT, "nothing is something");
    CHECK(mkdir(in_scratch("open"), 0700) == 0 && chmod(in_scratch("open"), 0777) == 0, "mkdir");
    CHECK(symlink("../end", in_scratch("open/link")) == 0 && symlink("open/link", in_scratch("mine")) == 0, "symlink");
    CHECK(tsr_link_follow(in_scratch("mine"), real) == 0 && strcmp(real, wanted) == 0, "'%s'", real);
    if (lchown(in_scratch("open/link"), 12345, 12345) != 0) return;
    CHECK(tsr_link_follow(in_scratch("mine"), real) == EPERM, "a stranger's link is followed");
}

/* How many files are not finished, where other processes see it. */
static void test_counted(void) {
    char file[600];
    atomic_int count = 0;
    sigset_t before;
    snprintf(file, sizeof file, "%s", in_scratch("counted"));
    tsr_unfinished_count_in(&count);
    tsr_unfinished_enter(&before);
    CHECK(count == 1, "%d files are being made, not 1", count);
    tsr_unfinished_leave(&before);
    const int fd = tsr_unfinished_make(file, 0600);
    CHECK(fd >= 0 && count == 1, "%d files are made, not 1", count);
    tsr_unfinished_done(in_scratch("another"));
    CHECK(count == 1, "%d files are not finished, not 1", count);
    CHECK(tsr_unfinished_make(file, 0600) < 0 && count == 1, "one that cannot be made counts");
    tsr_unfinished_done(file);
    CHECK(count == 0, "%d files are not finished, not 0", count);
    tsr_unfinished_count_in(NULL);
    publish("uncounted.h5");
    CHECK(count == 0, "%d files are counted where nobody looks", count);
    close(fd);
    unlink(file);
}

int main(void) {
    scratch_make();
    gethostname(host, sizeof host - 1);
    test_names();
    test_planted();
    test_strange_link();
    test_links();
    test_long_names();
    test_stale();
    test_readable();
    test_no_locks();
    test_container();
    test_unnamed();
    test_looks_fail();
    test_counted();
    scratch_remove();
    return 0;
}
