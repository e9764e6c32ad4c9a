/* The lock around HDF5, its start and its error text (hdf5_library.h). */
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_filters.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t started = PTHREAD_ONCE_INIT;

const char *tsr_h5_plugin_folders(void) {
    const char *folders = getenv(TSR_PLUGIN_FOLDERS);
    return folders && *folders ? folders : NULL;
}

/* What the process had set before, which may use HDF5 itself; under `lock`. */
static struct {
    H5E_auto2_t print;
    void *print_context;
    unsigned plugins;
} before;

static void start(void) {
    H5open();
    tsr_h5_filters_register();
}

void tsr_h5_enter(void) {
    pthread_mutex_lock(&lock);
    pthread_once(&started, start);
    if (H5Eget_auto2(H5E_DEFAULT, &before.print, &before.print_context) < 0) before.print = NULL;
    if (H5PLget_loading_state(&before.plugins) < 0) before.plugins = 0;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);                                   /* per thread in a thread-safe build */
    H5PLset_loading_state(tsr_h5_plugin_folders() ? H5PL_FILTER_PLUGIN : 0); /* else an unknown filter loads code */
    H5Eclear2(H5E_DEFAULT);
}

void tsr_h5_leave(void) {
    H5PLset_loading_state(before.plugins);
    H5Eset_auto2(H5E_DEFAULT, before.print, before.print_context);
    pthread_mutex_unlock(&lock);
}

void tsr_h5_start(void) {
    H5dont_atexit(); /* the exit handler can crash a run that already failed to write */
    tsr_h5_enter();
    tsr_h5_leave();
}

bool tsr_h5_is_parallel(void) {
#ifdef H5_HAVE_PARALLEL
    return true;
#else
    return false;
#endif
}

const char *tsr_h5_version(char *text, size_t chars) {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    tsr_h5_enter();
    H5get_libversion(&major, &minor, &release);
    tsr_h5_leave();
    snprintf(text, chars, "HDF5 %u.%u.%u (%s)", major, minor, release, tsr_h5_is_parallel() ? "parallel" : "serial");
    return text;
}

/* HDF5's innermost error text, one line, "" when there is none; and the system's words for a disk that takes no more,
 * where that text holds them, else NULL. */
typedef struct {
    char text[TSR_H5_ERROR_CHARS];
    int full; /* the error that says so, or 0 */
} innermost;

/* H5Ewalk2 callback, called from the innermost error outwards: keeps the first text that says something. */
static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *context) {
    static const int errors[] = {ENOSPC, EFBIG, EDQUOT};
    innermost *found = context;
    (void)n;
    if (found->text[0] || !error->desc || !error->desc[0]) return 0;
    snprintf(found->text, sizeof found->text, "%s", error->desc);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) /* behind the file's name, however long that is */
        if (strstr(error->desc, strerror(errors[i]))) found->full = errors[i];
    return 0;
}

static void find_error(innermost *found) {
    *found = (innermost){.full = 0};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, found);
    for (char *c = found->text; *c; c++)
        if (*c == '\n' || *c == '\r') *c = ' ';
}

void tsr_h5_error_text(char text[TSR_H5_ERROR_CHARS]) {
    innermost found;
    find_error(&found);
    memcpy(text, found.text, sizeof found.text);
}

bool tsr_h5_error_says(const char *words) {
    innermost found;
    find_error(&found);
    return strstr(found.text, words) != NULL;
}

tsr_status tsr_h5_fail(tsr_status status, const char *format, ...) {
    innermost found;
    char ours[1600];
    find_error(&found);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ours, sizeof ours, format, arguments);
    va_end(arguments);
    if (found.full)
        return tsr_fail(tsr_write_status(found.full), "%s: %s; %s", ours, strerror(found.full),
                        tsr_write_advice(found.full));
    if (found.text[0] == '\0') return tsr_fail(status, "%s", ours);
    return tsr_fail(status, "%s (HDF5: %s)", ours, found.text);
}
