/* A shared library that is loaded when it is first wanted, so that the program starts where the library is missing. */
#ifndef TSR_KERNELS_BASE_LIBRARY_H
#define TSR_KERNELS_BASE_LIBRARY_H

#include <stdbool.h>

#define TSR_LIBRARY_WHY_CHARS 256

/* Loads `first`, else `second`, each a path or a name that is found as the process finds libraries, and puts the
 * functions called `symbols` into functions[0..count). False, with the loader's reason against the first in `why`
 * (TSR_LIBRARY_WHY_CHARS), when the library or one of them is missing. The library stays loaded. Local; the caller
 * keeps threads apart. */
bool tsr_library_load(const char *first, const char *second, const char *const *symbols, void **functions, int count,
                      char *why);

#endif
