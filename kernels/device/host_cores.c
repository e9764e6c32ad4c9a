/* Sets of cores, affinity and NUMA nodes, by system calls and the text files of /proc and /sys (host_cores.h). */
#define _GNU_SOURCE /* sched_setaffinity, cpu_set_t */
#include "kernels/device/host_cores.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets ------------------------------------------------------------------------------------ */

int tsr_cores_count(const tsr_cores *cores) {
    int count = 0;
    for (int i = 0; i < TSR_CORES_MAX / 64; i++) count += __builtin_popcountll(cores->bits[i]);
    return count;
}

bool tsr_cores_equal(const tsr_cores *a, const tsr_cores *b) { return memcmp(a, b, sizeof *a) == 0; }

tsr_cores tsr_cores_both(const tsr_cores *a, const tsr_cores *b) {
    tsr_cores both;
    for (int i = 0; i < TSR_CORES_MAX / 64; i++) both.bits[i] = a->bits[i] & b->bits[i];
    return both;
}

bool tsr_cores_parse(const char *text, tsr_cores *cores) {
    memset(cores, 0, sizeof *cores);
    while (*text && *text != '\n') {
        char *end;
        if (*text < '0' || *text > '9') return false;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-') {
            if (end[1] < '0' || end[1] > '9') return false;
            last = strtol(end + 1, &end, 10);
        }
        if (last < first || last >= TSR_CORES_MAX) return false;
        for (long i = first; i <= last; i++) tsr_cores_add(cores, (int)i);
        text = end;
        if (*text == ',') text++;
        else if (*text && *text != '\n') return false;
    }
    return true;
}

/* The list in a file; false also where there is no such file. */
static bool read_cores(const char *path, tsr_cores *cores) {
    char text[4096];
    FILE *file = fopen(path, "r");
    if (!file) return false;
    size_t chars = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[chars] = '\0';
    return tsr_cores_parse(text, cores);
}

/* ---- affinity -------------------------------------------------------------------------------- */

bool tsr_cores_mine(tsr_cores *cores) {
    memset(cores, 0, sizeof *cores);
    return sched_getaffinity(0, sizeof *cores, (cpu_set_t *)cores) == 0;
}

bool tsr_cores_keep_thread_to(const tsr_cores *cores) {
    return sched_setaffinity(0, sizeof *cores, (const cpu_set_t *)cores) == 0;
}

bool tsr_cores_keep_to(const tsr_cores *cores) {
    DIR *threads = opendir("/proc/self/task");
    if (!threads) return tsr_cores_keep_thread_to(cores);
    bool all = true;
    for (struct dirent *one; (one = readdir(threads));) {
        int id = atoi(one->d_name);
        if (id > 0 && sched_setaffinity(id, sizeof *cores, (const cpu_set_t *)cores) != 0) all = false;
    }
    closedir(threads);
    return all;
}

/* ---- NUMA nodes, cores and packages ---------------------------------------------------------- */

bool tsr_numa_node(const char *sys, int node, tsr_cores *cores) {
    char path[512];
    snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sys, node);
    return read_cores(path, cores);
}

static bool read_topology(const char *sys, int core, const char *list, tsr_cores *cores) {
    char path[512];
    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology/%s", sys, core, list);
    return read_cores(path, cores);
}

bool tsr_core_threads(const char *sys, int core, tsr_cores *cores) {
    return read_topology(sys, core, "thread_siblings_list", cores);
}

bool tsr_core_package(const char *sys, int core, tsr_cores *cores) {
    return read_topology(sys, core, "core_siblings_list", cores);
}

int tsr_numa_nodes(const char *sys, tsr_cores nodes[TSR_NUMA_NODES_MAX]) {
    char path[512];
    tsr_cores online;
    int count = 0;
    snprintf(path, sizeof path, "%s/devices/system/node/online", sys);
    if (!read_cores(path, &online)) return 0;
    for (int node = 0; node < TSR_NUMA_NODES_MAX; node++) {
        memset(&nodes[node], 0, sizeof nodes[node]);
        if (!tsr_cores_has(&online, node)) continue;
        if (!tsr_numa_node(sys, node, &nodes[node])) return 0;
        count = node + 1;
    }
    return count;
}

int tsr_pci_node(const char *sys, const char *bus_id) {
    char path[512], address[32];
    tsr_cores nodes;
    int node = -1;
    snprintf(path, sizeof path, "%s/devices/system/node/online", sys);
    if (!read_cores(path, &nodes) || tsr_cores_count(&nodes) < 2) return -1;
    snprintf(address, sizeof address, "%s", bus_id);
    for (char *c = address; *c; c++)
        if (*c >= 'A' && *c <= 'F') *c = (char)(*c - 'A' + 'a');
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s/numa_node", sys, address);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    if (fscanf(file, "%d", &node) != 1) node = -1;
    fclose(file);
    return node >= 0 && node < TSR_CORES_MAX && tsr_cores_has(&nodes, node) ? node : -1;
}
