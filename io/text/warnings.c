/* Warnings of a run (warnings.h). */
#include "io/text/warnings.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#include "kernels/base/base.h"

static bool was_said(const char *text, const char *line) {
    const size_t chars = strlen(line);
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strcspn(at, "\n") == chars && strncmp(at, line, chars) == 0) return true;
    return false;
}

static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;

static void say(tsr_warnings *warnings, const char *line) {
    if (was_said(warnings->text, line)) return;
    if (warnings->to) {
        fprintf(warnings->to, "tessera: warning: %s\n", line);
        fflush(warnings->to);
    }
    const size_t used = strlen(warnings->text);
    if (used + strlen(line) + 2 > sizeof warnings->text) return;
    snprintf(warnings->text + used, sizeof warnings->text - used, "%s%s", used > 0 ? "\n" : "", line);
}

void tsr_warn(tsr_warnings *warnings, const char *format, ...) {
    char text[1024], line[2048];
    va_list arguments;
    if (!warnings || (!warnings->to && !warnings->silent)) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *at = text; *at; at++)
        if (*at == '\n' || *at == '\r') *at = ' '; /* a file's name may hold any */
    tsr_printable(text, line, sizeof line);
    pthread_mutex_lock(&one_by_one);
    say(warnings, line);
    pthread_mutex_unlock(&one_by_one);
}
