/* Loading shared libraries (library.h). */
#include "kernels/base/library.h"

#include <dlfcn.h>
#include <stdio.h>

bool tsr_library_load(const char *first, const char *second, const char *const *symbols, void **functions, int count,
                      char *why) {
    void *library = dlopen(first, RTLD_NOW | RTLD_LOCAL);
    if (!library) snprintf(why, TSR_LIBRARY_WHY_CHARS, "%s", dlerror());
    const char *used = library ? first : second;
    if (!library) library = dlopen(second, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    for (int i = 0; i < count; i++) {
        functions[i] = dlsym(library, symbols[i]);
        if (functions[i]) continue;
        snprintf(why, TSR_LIBRARY_WHY_CHARS, "%s has no %s", used, symbols[i]);
        return false;
    }
    return true;
}
