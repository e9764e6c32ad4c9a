/* Names that nobody can foresee (new_file.h). */
#define _GNU_SOURCE /* O_PATH */
#include "io/files/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

void tsr_random_letters(char letters[TSR_RANDOM_CHARS]) {
    uint64_t random = 0;
    struct timespec now;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) { /* a system that just began */
        clock_gettime(CLOCK_REALTIME, &now);
        random = (uint64_t)now.tv_nsec * 6364136223846793005u + (uint64_t)now.tv_sec;
    }
    for (int i = 0; i < TSR_RANDOM_CHARS - 1; i++, random /= 26) letters[i] = (char)('a' + random % 26);
    letters[TSR_RANDOM_CHARS - 1] = '\0';
}

int tsr_new_file(const char *name, mode_t mode) {
    return open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* ---- names ----------------------------------------------------------------------------------- */

#define NAME_BYTES_MAX 140 /* of 255, which file systems allow */
#define NUMBER_CHARS 18    /* "~" and 16 digits */

/* Bytes of `base`, no more than `most`, that end with a whole character of UTF-8. */
static int whole_characters(const char *base, int most) {
    while (most > 0 && ((unsigned char)base[most] & 0xC0) == 0x80) most--;
    return most;
}

bool tsr_name_beside(const char *file, const char *before, const char *ending, char *name, size_t chars) {
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    char number[NUMBER_CHARS] = "";
    int bytes = (int)strlen(base);
    if (bytes > NAME_BYTES_MAX) {
        uint64_t hash = 0xCBF29CE484222325; /* FNV-1a */
        for (const char *at = base; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001B3;
        snprintf(number, sizeof number, "~%016llx", (unsigned long long)hash);
        bytes = whole_characters(base, NAME_BYTES_MAX + 1 - NUMBER_CHARS);
    }
    return snprintf(name, chars, "%.*s%s%.*s%s%s", (int)(base - file), file, before, bytes, base, number, ending) <
           (int)chars;
}

/* ---- links ----------------------------------------------------------------------------------- */

#define LINKS_MAX 40 /* as the kernel has it */

/* "." for a name without a slash. */
static void folder_of(const char *name, char folder[PATH_MAX]) {
    const char *slash = strrchr(name, '/');
    snprintf(folder, PATH_MAX, "%.*s", slash ? (int)(slash - name + 1) : 1, slash ? name : ".");
}

static bool is_strange(const struct stat *link, const char *folder) {
    struct stat st;
    return link->st_uid != geteuid() && stat(folder, &st) == 0 && (st.st_mode & S_IWOTH) != 0 &&
           st.st_uid != link->st_uid;
}

/* Makes `now`, which is a link, what that link says. 0 or an errno; *is_link false: it is none. */
static int follow_one(char now[PATH_MAX], bool *is_link) {
    struct stat st;
    char says[PATH_MAX], folder[PATH_MAX];
    const int fd = open(now, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno;
    folder_of(now, folder);
    int error = fstat(fd, &st) == 0 ? 0 : errno;
    *is_link = error == 0 && S_ISLNK(st.st_mode);
    if (*is_link && is_strange(&st, folder)) error = EPERM;
    if (*is_link && error == 0) {
        const ssize_t bytes = readlinkat(fd, "", says, sizeof says);
        if (bytes < 0) error = errno;
        else if (snprintf(now, PATH_MAX, "%s%s%.*s", says[0] == '/' ? "" : folder, says[0] == '/' ? "" : "/",
                          (int)bytes, says) >= PATH_MAX)
            error = ENAMETOOLONG;
    }
    close(fd);
    return error;
}

int tsr_link_follow(const char *name, char real[PATH_MAX]) {
    char now[PATH_MAX], folder[PATH_MAX];
    bool is_link = true;
    if (snprintf(now, sizeof now, "%s", name) >= (int)sizeof now) return ENAMETOOLONG;
    for (int links = 0; is_link; links++) {
        const int error = links < LINKS_MAX ? follow_one(now, &is_link) : ELOOP;
        if (error) return error;
    }
    const char *slash = strrchr(now, '/'), *base = slash ? slash + 1 : now;
    if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) return realpath(now, real) ? 0 : errno;
    folder_of(now, folder);
    if (!realpath(folder, real)) return errno;
    const size_t used = strcmp(real, "/") == 0 ? 0 : strlen(real);
    return snprintf(real + used, PATH_MAX - used, "/%s", base) < (int)(PATH_MAX - used) ? 0 : ENAMETOOLONG;
}
