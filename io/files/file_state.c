/* Whether a file is still what it was (file_state.h). */
#define _GNU_SOURCE /* statx */
#include "io/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "io/files/namespaces.h"

#define LOOK_STEP_SECONDS 0.1
#define TICK_SECONDS 0.02  /* times of modification come from a clock that ticks each 1 to 10 ms */
#define COARSE_SECONDS 2.0 /* FAT's step; other file systems without fractions have 1 s */
#define SETTLE_LOOKS 3

/* Types of file systems (statfs) that no other machine writes to. Any other may be a network's: to take a local one for
 * it costs a wait before an error. */
static const int64_t local_types[] = {0xEF53 /* ext2 to ext4 */, 0x58465342 /* XFS */,       0x9123683E /* Btrfs */,
                                      0x01021994 /* tmpfs */,    0x794C7630 /* overlayfs */, 0x2FC12FC1 /* ZFS */,
                                      0xF2F52010 /* F2FS */,     0xCA451A4E /* bcachefs */,  0x858458F6 /* ramfs */,
                                      0x4D44 /* FAT */,          0x2011BAB0 /* exFAT */,     0x7366746E /* NTFS */,
                                      0x3153464A /* JFS */,      0x3434 /* NILFS */,         0x9660 /* ISO 9660 */,
                                      0x15013346 /* UDF */,      0x73717368 /* squashfs */,  0xE0F5E1E2 /* EROFS */};

/* Clients of these may number files by themselves: another machine's inodes say nothing. */
static const int64_t own_numbers[] = {
    0x65735546 /* FUSE */,   0x517B /* SMB */, 0xFF534D42 /* CIFS */, 0xFE534D42 /* SMB2 */, 0x01021997 /* 9p */,
    0x786F4256 /* vboxsf */, 0xBACBACBC /* vmhgfs */};

static bool is_of(const int64_t *types, size_t count, int64_t type) {
    for (size_t i = 0; i < count; i++)
        if (types[i] == type) return true;
    return false;
}

static bool is_local(int64_t type) { return is_of(local_types, sizeof local_types / sizeof *local_types, type); }
static bool numbers_itself(int64_t type) { return is_of(own_numbers, sizeof own_numbers / sizeof *own_numbers, type); }

static void sleep_seconds(double seconds) {
    struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* ---- looking --------------------------------------------------------------------------------- */

static uint64_t add_to_hash(uint64_t hash, const char *text) {
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001B3; /* FNV-1a */
    return hash;
}

/* Machines may be called alike, and those restored from one image may have one boot's number. A container with mounts
 * of its own counts as a machine: an overlay has another device's number in each. */
static uint64_t this_machine(void) {
    char boot[64] = "", name[256] = "", mounts[32];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, boot, sizeof boot - 1) < 0) boot[0] = '\0';
    if (fd >= 0) close(fd);
    if (gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
    snprintf(mounts, sizeof mounts, "%llu", (unsigned long long)tsr_mount_namespace());
    return add_to_hash(add_to_hash(add_to_hash(0xCBF29CE484222325, boot), name), mounts);
}

/* 0 or an errno. */
static int look(int fd, tsr_file_state *state) {
    struct stat st;
    struct statfs fs;
    const int64_t type = fstatfs(fd, &fs) == 0 ? (int64_t)(uint32_t)fs.f_type : 0;
#ifdef AT_STATX_FORCE_SYNC
    struct statx fresh; /* from the server: what it says is in the answer to fstat then, too */
    if (!is_local(type)) (void)statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &fresh);
#endif
    if (fstat(fd, &st) != 0) return errno;
    *state = (tsr_file_state){.known = true,
                              .machine = this_machine(),
                              .device = (uint64_t)st.st_dev,
                              .inode = (uint64_t)st.st_ino,
                              .file_system = type,
                              .bytes = (int64_t)st.st_size,
                              .seconds = (int64_t)st.st_mtim.tv_sec,
                              .nanoseconds = (int64_t)st.st_mtim.tv_nsec};
    return 0;
}

static tsr_status look_failed(const char *file, int error) {
    return tsr_fail(TSR_ERR_IO, "cannot look at '%s': %s; was it removed during the run?", file, strerror(error));
}

static tsr_status open_failed(const char *file, int error) {
    return tsr_fail(error == ENOENT || error == ENOTDIR ? TSR_ERR_NOT_FOUND : TSR_ERR_IO,
                    "cannot open '%s' for reading: %s; every rank needs the file at this path", file, strerror(error));
}

/* How long until a modification has another time than the last one; 0: now. What lies in the future was made by another
 * clock or by hand, and waiting for it would not end. */
static double unsettled_seconds(const tsr_file_state *state) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double step = state->nanoseconds == 0 ? COARSE_SECONDS : TICK_SECONDS;
    const double age = (double)(now.tv_sec - state->seconds) + (double)(now.tv_nsec - state->nanoseconds) * 1e-9;
    return age > -step && age < step ? step - age : 0;
}

tsr_status tsr_file_state_note(const char *file, tsr_file_state *state) {
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return open_failed(file, errno);
    tsr_file_state found = {.known = false};
    int error = look(fd, &found);
    double wait;
    for (int i = 1; i < SETTLE_LOOKS && error == 0 && (wait = unsettled_seconds(&found)) > 0; i++) {
        sleep_seconds(wait); /* whoever writes all the time changes the time all the time: one more look sees it */
        error = look(fd, &found);
    }
    close(fd);
    if (error) return look_failed(file, error);
    *state = found;
    return TSR_OK;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* "2026-11-22 11:46:55.123456789 UTC" */
static void time_text(const tsr_file_state *state, char *text, size_t chars) {
    struct tm parts;
    time_t seconds = (time_t)state->seconds;
    char whole[40] = "";
    if (gmtime_r(&seconds, &parts)) strftime(whole, sizeof whole, "%Y-%m-%d %H:%M:%S", &parts);
    snprintf(text, chars, "%s.%09lld UTC", whole, (long long)state->nanoseconds);
}

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t chars, const char *format, ...) {
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    if (used + 3 < chars) vsnprintf(text + used, chars - used, format, arguments);
    va_end(arguments);
}

/* What is different, before and after; "" when nothing is. */
static void differences(const tsr_file_state *was, const tsr_file_state *is, char *text, size_t chars) {
    const bool here = was->machine == is->machine;
    char before[80], after[80];
    text[0] = '\0';
    if (here && was->device != is->device)
        add(text, chars, ", device %llu became %llu", (unsigned long long)was->device, (unsigned long long)is->device);
    if (was->inode != is->inode && (here || (!numbers_itself(was->file_system) && !numbers_itself(is->file_system))))
        add(text, chars, ", inode %llu became %llu", (unsigned long long)was->inode, (unsigned long long)is->inode);
    if (was->bytes != is->bytes)
        add(text, chars, ", %lld bytes became %lld", (long long)was->bytes, (long long)is->bytes);
    if (was->seconds != is->seconds || was->nanoseconds != is->nanoseconds) {
        time_text(was, before, sizeof before);
        time_text(is, after, sizeof after);
        add(text, chars, ", modified %s, then %s", before, after);
    }
    if (text[0]) memmove(text, text + 2, strlen(text + 2) + 1);
}

static tsr_status changed(const char *file, const tsr_file_state *was, const tsr_file_state *is, const char *what) {
    if (was->machine != is->machine)
        return tsr_fail(TSR_ERR_IO,
                        "'%s' is not here what it was for rank 0: %s; every rank needs the same file at this "
                        "path (a copy on each node is not one file), which no program writes or replaces meanwhile",
                        file, what);
    return tsr_fail(TSR_ERR_IO, "'%s' changed during the run: %s; run again while no program writes or replaces it",
                    file, what);
}

/* Whether there is time for another look, after a pause; *start: of the first look, 0 before it. */
static bool look_again(double *start) {
    const double now = tsr_now_seconds();
    if (*start == 0) *start = now;
    if (now - *start >= TSR_LOOK_AGAIN_SECONDS) return false;
    sleep_seconds(LOOK_STEP_SECONDS);
    return true;
}

tsr_status tsr_file_state_check(int fd, const char *file, const tsr_file_state *noted, tsr_file_state *now) {
    tsr_file_state found = {.known = false};
    char what[400] = "";
    double start = 0;
    if (!noted->known) return TSR_OK;
    do {
        const int error = look(fd, &found);
        if (error) return look_failed(file, error);
        differences(noted, &found, what, sizeof what);
    } while (what[0] && !is_local(found.file_system) && look_again(&start));
    if (what[0]) return changed(file, noted, &found, what);
    if (now) *now = found;
    return TSR_OK;
}

/* A name that is not there, or whose file is gone, may be a cache's memory, too. Of what is not open the file system's
 * type is taken for that where the file was noted. */
tsr_status tsr_file_state_open(const char *file, const tsr_file_state *noted, int *fd) {
    tsr_file_state found = *noted;
    char what[400] = "";
    double start = 0;
    int error, opened;
    do {
        opened = open(file, O_RDONLY | O_CLOEXEC);
        error = opened < 0 ? errno : 0;
        if (error == 0 && noted->known) error = look(opened, &found);
        if (error == 0 && noted->known) differences(noted, &found, what, sizeof what);
        if (error == 0 && !what[0]) break;
        if (opened >= 0) close(opened);
        if (opened < 0 && error != ENOENT && error != ESTALE) break;
    } while (noted->known && !is_local(found.file_system) && look_again(&start));
    if (error) return opened < 0 ? open_failed(file, error) : look_failed(file, error);
    if (what[0]) return changed(file, noted, &found, what);
    if (fd) *fd = opened;
    else close(opened);
    return TSR_OK;
}

/* ---- stores ---------------------------------------------------------------------------------- */

tsr_status tsr_store_watch(tsr_store *store, int fd) {
    tsr_store_desc *desc = &store->desc;
    if (!desc->file_state.known) return TSR_OK;
    if (store->watched_count == TSR_WATCHED_MAX)
        return tsr_fail(TSR_FAILURE, "'%s': a store watches %d descriptors at most; this is a mistake of the program",
                        desc->name.file, TSR_WATCHED_MAX);
    TSR_TRY(tsr_file_state_check(fd, desc->name.file, &desc->file_state, &desc->file_state));
    store->watched[store->watched_count++] = fd;
    return TSR_OK;
}

tsr_status tsr_store_unchanged(const tsr_store *store) {
    for (int i = 0; store && i < store->watched_count; i++)
        TSR_TRY(tsr_file_state_check(store->watched[i], store->desc.name.file, &store->desc.file_state, NULL));
    return store && store->ops && store->ops->unchanged ? store->ops->unchanged(store) : TSR_OK;
}
