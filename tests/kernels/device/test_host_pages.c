/* Memory of whole pages; pages touched whole, by threads that leave the caller where it was. */
#define _GNU_SOURCE /* sched_getaffinity, mincore */
#include "kernels/device/host_pages.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/check.h"

/* Every page is there afterwards, none beside, and the caller runs where it ran. */
static void test_touching(void) {
    enum { PAGES = 40000, BESIDE = 8 };
    static unsigned char there[PAGES + BESIDE];
    cpu_set_t before, after;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0, "sched_getaffinity");
    for (int node = -1; node < 2; node++) {
        char *memory = mmap(NULL, (PAGES + BESIDE) * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED, "mmap");
        CHECK(madvise(memory, (PAGES + BESIDE) * 4096, MADV_NOHUGEPAGE) == 0 ||
                  access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0,
              "madvise");
        tsr_touch_pages(memory, (PAGES - 1) * (size_t)4096 + 1, node);
        CHECK(mincore(memory, (PAGES + BESIDE) * 4096, there) == 0, "mincore");
        for (int i = 0; i < PAGES; i++) CHECK(there[i] & 1, "page %d is not there", i);
        for (int i = 0; i < BESIDE; i++) CHECK(!(there[PAGES + i] & 1), "a page beside is there");
        munmap(memory, (PAGES + BESIDE) * 4096);
    }
    tsr_touch_pages(NULL, 0, -1);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after), "the caller was moved");
}

/* Aligned as asked, to a huge page where there are many, and all of it can be written. */
static void test_allocation(void) {
    static const size_t bytes[] = {0, 1, 4096, ((size_t)4 << 20) - 1, (size_t)4 << 20, ((size_t)9 << 20) + 5};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        char *memory = tsr_allocate_pages(bytes[i], 256);
        const size_t alignment = bytes[i] < (size_t)4 << 20 ? 256 : (size_t)2 << 20;
        CHECK(memory && (uintptr_t)memory % alignment == 0, "%zu bytes at %p", bytes[i], (void *)memory);
        memset(memory, 1, bytes[i]);
        free(memory);
    }
}

int main(void) {
    test_allocation();
    test_touching();
    return 0;
}
