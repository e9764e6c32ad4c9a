/* Loaded before the C library (LD_PRELOAD): from the first temporary file of an output on, no file may have more than
 * TSR_FILE_BYTES. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void limit(const char *file) {
    const char *bytes = getenv("TSR_FILE_BYTES");
    if (!bytes || !strstr(file, ".tessera-")) return;
    const struct rlimit most = {strtoull(bytes, NULL, 10), RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &most);
}

int open(const char *file, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, unsigned) : 0;
    va_end(more);
    int (*next)(const char *, int, ...);
    *(void **)&next = dlsym(RTLD_NEXT, "open");
    limit(file);
    return next(file, flags, mode);
}

int mkostemps(char *name, int suffix_chars, int flags) {
    int (*next)(char *, int, int);
    *(void **)&next = dlsym(RTLD_NEXT, "mkostemps");
    limit(name);
    return next(name, suffix_chars, flags);
}
