/* Fresh pages by threads near a device (host_pages.h). A page is placed on the node of the thread that touches it
 * first, and making one takes the kernel about a microsecond, in a virtual machine that grows far more: eight
 * threads make them eight times as fast. */
#define _GNU_SOURCE /* sched_setaffinity, cpu_set_t */
#include "kernels/device/host_pages.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "kernels/device/device.h"
#include "kernels/device/host_cores.h"

#define THREADS_MAX 8
#define BYTES_A_THREAD ((size_t)32 << 20) /* fewer are not worth a thread */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void *tsr_allocate_pages(size_t bytes, size_t alignment) {
    const size_t huge = (size_t)2 << 20;
    const bool many = bytes >= 2 * huge;
    void *memory = NULL;
    if (posix_memalign(&memory, many ? huge : alignment, bytes > 0 ? bytes : 1) != 0) return NULL;
    if (many) (void)madvise(memory, bytes, MADV_HUGEPAGE); /* a wish: without it pages are small */
    return memory;
}

void tsr_populate_pages(void *memory, size_t bytes) {
    const uintptr_t page = 4096, first = ((uintptr_t)memory + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)memory + bytes) / page * page;
    if (first < end) (void)madvise((char *)memory + (first - (uintptr_t)memory), end - first, MADV_POPULATE_WRITE);
}

/* ---- touching -------------------------------------------------------------------------------- */

typedef struct {
    char *memory;
    size_t bytes;
    const tsr_cores *where; /* NULL: anywhere */
} part;

static void *touch(void *context) {
    const part *p = context;
    if (p->where) (void)sched_setaffinity(0, sizeof *p->where, (const cpu_set_t *)p->where); /* of this thread alone */
    for (size_t at = 0; at < p->bytes; at += 4096) *(volatile char *)(p->memory + at) = 0;
    return NULL;
}

/* Cores of the node that this process may run on; false where there are none or it is not known. */
static bool cores_of(int node, tsr_cores *where) {
    tsr_cores mine, near;
    if (node < 0 || !tsr_cores_mine(&mine) || !tsr_numa_node("/sys", node, &near)) return false;
    *where = tsr_cores_both(&mine, &near);
    return tsr_cores_count(where) > 0;
}

void tsr_touch_pages(void *memory, size_t bytes, int node) {
    tsr_cores where;
    bool bound = cores_of(node, &where);
    int threads =
            (int)tsr_min(tsr_min(THREADS_MAX, tsr_cpu_cores()), tsr_ceil_div((int64_t)bytes, (int64_t)BYTES_A_THREAD)),
        started = 0;
    /* no huge page from two threads */
    size_t each = threads > 0 ? (size_t)tsr_round_up(tsr_ceil_div((int64_t)bytes, threads), 2 << 20) : 0;
    part parts[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    for (int i = 0; i < threads; i++) {
        size_t first = tsr_min((int64_t)bytes, (int64_t)each * i),
               end = tsr_min((int64_t)bytes, (int64_t)each * (i + 1));
        parts[i] = (part){(char *)memory + first, end - first, bound ? &where : NULL};
    }
    /* All of them in threads of their own: the caller's processors stay as they are. */
    while (started < threads && pthread_create(&ids[started], NULL, touch, &parts[started]) == 0) started++;
    for (int i = 0; i < started; i++) pthread_join(ids[i], NULL);
}
