/* Loading shared libraries (library.h). */
#include "kernels/library.h"

#include <dlfcn.h>
#include <stdio.h>

bool tsr_library_load(const char *name, const char *built_with, const char *const *symbols, void **functions, int count,
                      char *why) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) snprintf(why, TSR_LIBRARY_WHY_CHARS, "%s", dlerror());
    if (!library) library = dlopen(built_with, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    for (int i = 0; i < count; i++) {
        functions[i] = dlsym(library, symbols[i]);
        if (functions[i]) continue;
        snprintf(why, TSR_LIBRARY_WHY_CHARS, "%s has no %s", name, symbols[i]);
        return false;
    }
    return true;
}
