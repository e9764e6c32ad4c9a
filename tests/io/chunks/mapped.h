/* What tests of memory-backed files ask the system: whether it populates mappings for writing, and how much of a
 * file is in this process's page tables. */
#ifndef TSR_TESTS_IO_CHUNKS_MAPPED_H
#define TSR_TESTS_IO_CHUNKS_MAPPED_H

#include <sys/mman.h>

#include "tests/check.h"

/* Linux 5.14 and newer. */
static inline bool populates(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED, "no memory");
    bool can = madvise(page, 4096, 23) == 0; /* MADV_POPULATE_WRITE */
    munmap(page, 4096);
    return can;
}

/* KiB of the mappings of a file that are in the page tables, -1 without one. */
static inline long mapped_kib(const char *file) {
    char line[1024];
    long all = -1, kib;
    bool here = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    CHECK(maps != NULL, "/proc/self/smaps");
    while (fgets(line, sizeof line, maps)) {
        /* a mapping begins: "from-to ... file" */
        if (strchr(line, '-') && strchr(line, '-') < strchr(line, ' ')) here = strstr(line, file) != NULL;
        else if (here && sscanf(line, "Rss: %ld", &kib) == 1) all = tsr_max(all, 0) + kib;
    }
    fclose(maps);
    return all;
}

#endif
