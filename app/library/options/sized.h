/* Structs of callers that begin with their size (tessera.h). */
#ifndef TSR_APP_LIBRARY_OPTIONS_SIZED_H
#define TSR_APP_LIBRARY_OPTIONS_SIZED_H

#include <string.h>

#include "kernels/base/base.h"

/* Local. Takes as much of `given` as both know; the rest of `to`, of `size` bytes, stays as it is. A larger struct is
 * of a newer header: TSR_ERR_UNSUPPORTED where it uses what this library does not know. TSR_ERR_USAGE where its size
 * is none. */
static inline tsr_status tsr_sized_take(const char *name, const void *given, void *to, size_t size) {
    size_t theirs;
    memcpy(&theirs, given, sizeof theirs);
    if (theirs < sizeof theirs || theirs > 65536)
        return tsr_fail(TSR_ERR_USAGE, "%s: its size is %zu: set it to sizeof(%s)", name, theirs, name);
    for (size_t i = size; i < theirs; i++)
        if (((const char *)given)[i])
            return tsr_fail(TSR_ERR_UNSUPPORTED,
                            "%s: byte %zu is used, and this library, %s, knows %zu bytes: install a newer one", name, i,
                            TSR_VERSION, size);
    memcpy(to, given, theirs < size ? theirs : size);
    memcpy(to, &size, sizeof size);
    return TSR_OK;
}

#endif
