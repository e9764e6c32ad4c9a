/* Fresh pages by threads near a device (host_pages.h). A page is placed on the node of the thread that touches it first, and making one takes the kernel
 * about a microsecond, in a virtual machine that grows far more: eight threads make them eight times as fast. */
#define _GNU_SOURCE /* sched_setaffinity, cpu_set_t */
#include "kernels/host_pages.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/device.h"

#define THREADS_MAX 8
#define BYTES_A_THREAD ((size_t)32 << 20) /* fewer are not worth a thread */

/* ---- lists of processors --------------------------------------------------------------------------------------- */

bool tsr_cpulist_parse(const char *text, bool has[TSR_CPULIST_MAX]) {
    memset(has, 0, TSR_CPULIST_MAX * sizeof *has);
    while (*text && *text != '\n') {
        char *end;
        if (*text < '0' || *text > '9') return false;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-') {
            if (end[1] < '0' || end[1] > '9') return false;
            last = strtol(end + 1, &end, 10);
        }
        if (last < first || last >= TSR_CPULIST_MAX) return false;
        for (long i = first; i <= last; i++) has[i] = true;
        text = end;
        if (*text == ',') text++;
        else if (*text && *text != '\n') return false;
    }
    return true;
}

static bool read_list(const char *path, bool has[TSR_CPULIST_MAX]) {
    char text[4096];
    FILE *file = fopen(path, "r");
    if (!file) return false;
    size_t chars = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[chars] = '\0';
    return tsr_cpulist_parse(text, has);
}

int tsr_pci_node(const char *sys, const char *bus_id) {
    char path[512], address[32];
    bool nodes[TSR_CPULIST_MAX];
    int online = 0, node = -1;
    snprintf(path, sizeof path, "%s/devices/system/node/online", sys);
    if (!read_list(path, nodes)) return -1;
    for (int i = 0; i < TSR_CPULIST_MAX; i++) online += nodes[i];
    if (online < 2) return -1;
    snprintf(address, sizeof address, "%s", bus_id);
    for (char *c = address; *c; c++)
        if (*c >= 'A' && *c <= 'F') *c = (char)(*c - 'A' + 'a');
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s/numa_node", sys, address);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    if (fscanf(file, "%d", &node) != 1) node = -1;
    fclose(file);
    return node >= 0 && node < TSR_CPULIST_MAX && nodes[node] ? node : -1;
}

/* ---- touching -------------------------------------------------------------------------------------------------- */

typedef struct {
    char *memory;
    size_t bytes;
    const cpu_set_t *where; /* NULL: anywhere */
} part;

static void *touch(void *context) {
    const part *p = context;
    if (p->where) (void)sched_setaffinity(0, sizeof *p->where, p->where); /* of this thread alone */
    for (size_t at = 0; at < p->bytes; at += 4096) *(volatile char *)(p->memory + at) = 0;
    return NULL;
}

/* Processors of the node that this process may run on; false where there are none or it is not known. */
static bool processors_of(int node, cpu_set_t *where) {
    char path[128];
    bool has[TSR_CPULIST_MAX];
    if (node < 0 || sched_getaffinity(0, sizeof *where, where) != 0) return false;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    if (!read_list(path, has)) return false;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (!has[i]) CPU_CLR(i, where);
    return CPU_COUNT(where) > 0;
}

void tsr_touch_pages(void *memory, size_t bytes, int node) {
    cpu_set_t where;
    bool bound = processors_of(node, &where);
    int threads = (int)tsr_min(tsr_min(THREADS_MAX, tsr_cpu_cores()), tsr_ceil_div((int64_t)bytes, (int64_t)BYTES_A_THREAD)), started = 0;
    size_t each = threads > 0 ? (size_t)tsr_round_up(tsr_ceil_div((int64_t)bytes, threads), 2 << 20) : 0; /* no huge page from two threads */
    part parts[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    for (int i = 0; i < threads; i++) {
        size_t first = tsr_min((int64_t)bytes, (int64_t)each * i), end = tsr_min((int64_t)bytes, (int64_t)each * (i + 1));
        parts[i] = (part){(char *)memory + first, end - first, bound ? &where : NULL};
    }
    /* All of them in threads of their own: the caller's processors stay as they are. */
    while (started < threads && pthread_create(&ids[started], NULL, touch, &parts[started]) == 0) started++;
    for (int i = 0; i < started; i++) pthread_join(ids[i], NULL);
}
