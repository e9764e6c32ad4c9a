/* Lists of processors as the kernel writes them, the node of a PCI device from a made-up /sys, and pages touched whole. */
#define _GNU_SOURCE /* sched_getaffinity, mincore */
#include "kernels/host_pages.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

static void check_list(const char *text, const char *expected) {
    static bool has[TSR_CPULIST_MAX];
    char found[256] = "";
    CHECK(tsr_cpulist_parse(text, has), "'%s' is refused", text);
    for (int i = 0; i < TSR_CPULIST_MAX; i++)
        if (has[i]) snprintf(found + strlen(found), sizeof found - strlen(found), " %d", i);
    CHECK(strcmp(found, expected) == 0, "'%s' is%s, not%s", text, found, expected);
}

static void test_lists(void) {
    static const char *const wrong[] = {"a", "-1", "1-", "3-1", "1,,2", "1 2", "0-3x", ",1", "4096", "0-4096", "99999999999999999999"};
    static bool has[TSR_CPULIST_MAX];
    check_list("", "");
    check_list("\n", "");
    check_list("0", " 0");
    check_list("0-3,8,10-11\n", " 0 1 2 3 8 10 11");
    check_list("4095", " 4095");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) CHECK(!tsr_cpulist_parse(wrong[i], has), "'%s' is taken", wrong[i]);
}

static void put(const char *folder, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0, "cannot write '%s'", path);
}

static void test_node(void) {
    char sys[] = "/tmp/tessera-test-XXXXXX", command[64];
    CHECK(mkdtemp(sys) != NULL, "mkdtemp");
    CHECK(tsr_pci_node(sys, "0000:18:00.0") == -1, "a node without /sys");
    put(sys, "devices/system/node/online", "0\n");
    put(sys, "bus/pci/devices/0000:ab:00.0/numa_node", "1\n");
    CHECK(tsr_pci_node(sys, "0000:AB:00.0") == -1, "one node only");
    put(sys, "devices/system/node/online", "0-1\n");
    CHECK(tsr_pci_node(sys, "0000:AB:00.0") == 1 && tsr_pci_node(sys, "0000:ab:00.0") == 1, "the device's node");
    CHECK(tsr_pci_node(sys, "0000:18:00.0") == -1, "a device that is not there");
    put(sys, "bus/pci/devices/0000:ab:00.0/numa_node", "-1\n");
    CHECK(tsr_pci_node(sys, "0000:ab:00.0") == -1, "a device without a node");
    put(sys, "bus/pci/devices/0000:ab:00.0/numa_node", "2\n");
    CHECK(tsr_pci_node(sys, "0000:ab:00.0") == -1, "a node that is not online");
    snprintf(command, sizeof command, "rm -r %s", sys);
    CHECK(system(command) == 0, "%s", command);
}

/* Every page is there afterwards, none beside, and the caller runs where it ran. */
static void test_touching(void) {
    enum { PAGES = 40000, BESIDE = 8 };
    static unsigned char there[PAGES + BESIDE];
    cpu_set_t before, after;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0, "sched_getaffinity");
    for (int node = -1; node < 2; node++) {
        char *memory = mmap(NULL, (PAGES + BESIDE) * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED, "mmap");
        CHECK(madvise(memory, (PAGES + BESIDE) * 4096, MADV_NOHUGEPAGE) == 0 || access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0, "madvise");
        tsr_touch_pages(memory, (PAGES - 1) * (size_t)4096 + 1, node);
        CHECK(mincore(memory, (PAGES + BESIDE) * 4096, there) == 0, "mincore");
        for (int i = 0; i < PAGES; i++) CHECK(there[i] & 1, "page %d is not there", i);
        for (int i = 0; i < BESIDE; i++) CHECK(!(there[PAGES + i] & 1), "a page beside is there");
        munmap(memory, (PAGES + BESIDE) * 4096);
    }
    tsr_touch_pages(NULL, 0, -1);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after), "the caller was moved");
}

int main(void) {
    test_lists();
    test_node();
    test_touching();
    return 0;
}
