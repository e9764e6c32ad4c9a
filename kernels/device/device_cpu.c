/* The CPU as a device: streams run at once in the caller, events are timestamps, device memory is host memory.
 * Memory is what host_memory.h finds. */
#define _GNU_SOURCE
#include "kernels/device/device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/device/host_cores.h"
#include "kernels/device/host_memory.h"
#include "kernels/device/host_pages.h"

struct tsr_stream {
    char unused; /* nothing is ever pending */
};

struct tsr_event {
    double seconds; /* tsr_now_seconds() when recorded */
    bool recorded;
};

/* ---- facts ----------------------------------------------------------------------------------- */

int tsr_cpu_cores(void) {
    tsr_cores mine;
    return tsr_cores_mine(&mine) ? tsr_cores_count(&mine) : (int)tsr_max(1, sysconf(_SC_NPROCESSORS_ONLN));
}

/* The most threads its user lets BLAS have. OpenBLAS's own variable comes before OpenMP's, which may be a list with a
 * number for each level. */
static int threads_allowed(void) {
    static const char *const variables[] = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const int64_t threads = tsr_variable_number(variables[i], NULL);
        if (threads > 0) return (int)tsr_min(threads, INT_MAX);
    }
    return INT_MAX;
}

int tsr_cpu_threads(int threads) { return (int)tsr_max(1, tsr_min(threads, threads_allowed())); }

static void model_name(char *name, size_t size, int *clock_khz) {
    char line[512];
    double mhz;
    bool named = false;
    snprintf(name, size, "CPU");
    *clock_khz = 0;
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) return;
    while (fgets(line, sizeof line, file) && (!named || *clock_khz == 0)) {
        const char *value = strchr(line, ':');
        if (!value) continue;
        if (!named && strncmp(line, "model name", 10) == 0) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(name, size, "%s", value + strspn(value, ": "));
            named = true;
        }
        if (*clock_khz == 0 && strncmp(line, "cpu MHz", 7) == 0 && sscanf(value + 1, "%lf", &mhz) == 1)
            *clock_khz = (int)(1000 * mhz);
    }
    fclose(file);
}

static tsr_status cpu_facts(tsr_device *device, tsr_device_facts *facts) {
    (void)device;
    tsr_host_memory memory;
    tsr_host_memory_find("", &memory);
    *facts = (tsr_device_facts){
        .kind = TSR_DEVICE_CPU, .threads_block = 1, .grid_max = {INT_MAX, INT_MAX, INT_MAX}, .host_memory = true};
    model_name(facts->name, sizeof facts->name, &facts->clock_khz);
    facts->multiprocessors = tsr_cpu_cores();
    facts->memory_bytes = (size_t)memory.total;
    facts->memory_free_bytes = (size_t)memory.available;
    return TSR_OK;
}

/* ---- the device ------------------------------------------------------------------------------ */

static tsr_status out_of_memory(const char *what, size_t bytes) {
    return tsr_fail(TSR_ERR_MEMORY, "CPU device: no memory for %s (%zu bytes): close other programs", what, bytes);
}

static tsr_status cpu_count(int *devices, char *why) {
    why[0] = '\0';
    *devices = 1;
    return TSR_OK;
}

static tsr_status cpu_open(int ordinal, tsr_device **device) {
    if (ordinal != 0) return tsr_fail(TSR_ERR_DEVICE, "CPU device %d: there is only device 0, use that", ordinal);
    tsr_device *opened = malloc(sizeof *opened);
    if (!opened) return out_of_memory("the device", sizeof *opened);
    opened->ops = &tsr_device_cpu;
    *device = opened;
    return TSR_OK;
}

static void cpu_close(tsr_device *device) { free(device); }

/* Refuses what is not there rather than let the kernel hand it out and kill the process later; less than a huge page
 * is not looked up. Large blocks start at huge pages: fewer faults, fewer misses of the address cache. */
static tsr_status allocate_aligned(size_t bytes, size_t alignment, void **memory) {
    const size_t much = (size_t)2 << 20; /* worth a look at what is free */
    char need[32], have[32];
    void *block = NULL;
    tsr_host_memory host;
    tsr_process_room room;
    if (bytes >= much) tsr_host_memory_find("", &host);
    tsr_process_room_find(&room);
    const uint64_t most = bytes >= much && host.available < room.left ? host.available : room.left;
    if (bytes <= most) block = tsr_allocate_pages(bytes, alignment);
    if (!block) {
        tsr_host_memory_find("", &host);
        const uint64_t free_bytes = host.available < room.left ? host.available : room.left;
        return tsr_fail(TSR_ERR_MEMORY,
                        "CPU memory: need %s (%zu bytes), free %s: lower --memory or --host-memory, or use more ranks",
                        tsr_format_bytes((double)bytes, need), bytes, tsr_format_bytes((double)free_bytes, have));
    }
    *memory = block;
    return TSR_OK;
}

static tsr_status cpu_allocate(tsr_device *device, size_t bytes, void **memory) {
    (void)device;
    return allocate_aligned(bytes, 256, memory);
}

static tsr_status cpu_allocate_host(tsr_device *device, size_t bytes, void **memory) {
    (void)device;
    return allocate_aligned(bytes, 4096, memory);
}

static void cpu_release(tsr_device *device, void *memory) {
    (void)device;
    free(memory);
}

static tsr_status cpu_stream_create(tsr_device *device, tsr_stream **stream) {
    (void)device;
    tsr_stream *created = calloc(1, sizeof *created);
    if (!created) return out_of_memory("a stream", sizeof *created);
    *stream = created;
    return TSR_OK;
}

static void cpu_stream_destroy(tsr_device *device, tsr_stream *stream) {
    (void)device;
    free(stream);
}

static tsr_status cpu_stream_wait(tsr_device *device, tsr_stream *stream) {
    (void)device;
    (void)stream;
    return TSR_OK;
}

static tsr_status cpu_event_create(tsr_device *device, tsr_event **event) {
    (void)device;
    tsr_event *created = calloc(1, sizeof *created);
    if (!created) return out_of_memory("an event", sizeof *created);
    *event = created;
    return TSR_OK;
}

static void cpu_event_destroy(tsr_device *device, tsr_event *event) {
    (void)device;
    free(event);
}

static tsr_status cpu_event_record(tsr_device *device, tsr_event *event, tsr_stream *stream) {
    (void)device;
    (void)stream;
    event->seconds = tsr_now_seconds();
    event->recorded = true;
    return TSR_OK;
}

static tsr_status cpu_event_wait(tsr_device *device, tsr_event *event) {
    (void)device;
    (void)event;
    return TSR_OK;
}

static tsr_status cpu_event_seconds(tsr_device *device, tsr_event *from, tsr_event *to, double *seconds) {
    (void)device;
    if (!from->recorded || !to->recorded)
        return tsr_fail(TSR_ERR_DEVICE, "CPU device: an event was timed before it was recorded: record both first");
    *seconds = to->seconds - from->seconds;
    return TSR_OK;
}

static tsr_status cpu_copy(tsr_device *device, void *to, const void *from, size_t bytes, tsr_stream *stream) {
    (void)device;
    (void)stream;
    if (bytes > 0 && to != from) memcpy(to, from, bytes);
    return TSR_OK;
}

static tsr_status cpu_copy_rows(tsr_device *device, void *to, size_t to_step, const void *from, size_t from_step,
                                size_t row_bytes, int64_t rows, tsr_stream *stream) {
    (void)device;
    (void)stream;
    for (int64_t row = 0; row < rows; row++)
        memcpy((char *)to + (size_t)row * to_step, (const char *)from + (size_t)row * from_step, row_bytes);
    return TSR_OK;
}

static tsr_status cpu_pin(tsr_device *device, void *memory, size_t bytes) {
    (void)device;
    (void)memory;
    (void)bytes;
    return TSR_OK;
}
static void cpu_unpin(tsr_device *device, void *memory) {
    (void)device;
    (void)memory;
}

static bool cpu_is_pinned(tsr_device *device, const void *memory, size_t bytes) {
    (void)device;
    (void)memory;
    (void)bytes;
    return true;
}

static tsr_status cpu_fill_bytes(tsr_device *device, void *at, int value, size_t bytes, tsr_stream *stream) {
    (void)device;
    (void)stream;
    if (bytes > 0) memset(at, value, bytes);
    return TSR_OK;
}

static tsr_status cpu_use(tsr_device *device) {
    (void)device;
    return TSR_OK;
}

const tsr_device_ops tsr_device_cpu = {
    .name = "cpu",
    .kind = TSR_DEVICE_CPU,
    .count = cpu_count,
    .open = cpu_open,
    .close = cpu_close,
    .facts = cpu_facts,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .allocate_host = cpu_allocate_host,
    .release_host = cpu_release,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .stream_wait = cpu_stream_wait,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .event_seconds = cpu_event_seconds,
    .upload = cpu_copy,
    .download = cpu_copy,
    .copy = cpu_copy,
    .copy_rows = cpu_copy_rows,
    .pin = cpu_pin,
    .unpin = cpu_unpin,
    .is_pinned = cpu_is_pinned,
    .fill_bytes = cpu_fill_bytes,
    .use = cpu_use,
};
