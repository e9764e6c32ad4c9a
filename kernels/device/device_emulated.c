/* The CUDA device of builds whose kernels run in the host emulation (cuda_emulation.h), for tests: host memory of
 * exactly the bytes asked for, streams and events of the CPU device, the emulation's limits as facts. Says
 * host_memory = false, so that callers upload and download as for a GPU. */
#include "kernels/device/cuda_emulation.h"
#include "kernels/device/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static tsr_status emulated_count(int *devices, char *why) {
    why[0] = '\0';
    *devices = 1;
    return TSR_OK;
}

static tsr_status emulated_open(int ordinal, tsr_device **device) {
    if (ordinal != 0)
        return tsr_fail(TSR_ERR_DEVICE, "emulated CUDA device %d: there is only device 0, use that", ordinal);
    tsr_device *opened = malloc(sizeof *opened);
    if (!opened) return tsr_fail(TSR_ERR_MEMORY, "emulated CUDA device: no memory for it: close other programs");
    opened->ops = &tsr_device_cuda;
    *device = opened;
    return TSR_OK;
}

static void emulated_close(tsr_device *device) { free(device); }

static tsr_status emulated_facts(tsr_device *device, tsr_device_facts *facts) {
    const tsr_cuda_emulation_limits *limits = tsr_cuda_emulation();
    TSR_TRY(tsr_device_cpu.facts(device, facts)); /* memory is the host's */
    facts->kind = TSR_DEVICE_CUDA;
    snprintf(facts->name, sizeof facts->name, "emulated CUDA device");
    snprintf(facts->bus_id, sizeof facts->bus_id, "0000:00:00.0");
    facts->multiprocessors = 1;
    facts->arch = limits->arch;
    facts->shared_block_bytes = limits->shared_block_bytes;
    facts->shared_block_optin_bytes = limits->shared_block_optin_bytes;
    facts->registers_block = limits->registers_block;
    facts->threads_block = limits->threads_block;
    for (int i = 0; i < 3; i++) facts->grid_max[i] = limits->grid_max[i];
    facts->host_memory = false;
    return TSR_OK;
}

static tsr_status emulated_allocate(tsr_device *device, size_t bytes, void **memory) {
    return tsr_device_cpu.allocate(device, bytes, memory);
}
static void emulated_release(tsr_device *device, void *memory) { tsr_device_cpu.release(device, memory); }
static tsr_status emulated_allocate_host(tsr_device *device, size_t bytes, void **memory) {
    return tsr_device_cpu.allocate_host(device, bytes, memory);
}
static void emulated_release_host(tsr_device *device, void *memory) { tsr_device_cpu.release_host(device, memory); }
static tsr_status emulated_stream_create(tsr_device *device, tsr_stream **stream) {
    return tsr_device_cpu.stream_create(device, stream);
}
static void emulated_stream_destroy(tsr_device *device, tsr_stream *stream) {
    tsr_device_cpu.stream_destroy(device, stream);
}
static tsr_status emulated_stream_wait(tsr_device *device, tsr_stream *stream) {
    return tsr_device_cpu.stream_wait(device, stream);
}
static tsr_status emulated_event_create(tsr_device *device, tsr_event **event) {
    return tsr_device_cpu.event_create(device, event);
}
static void emulated_event_destroy(tsr_device *device, tsr_event *event) {
    tsr_device_cpu.event_destroy(device, event);
}
static tsr_status emulated_event_record(tsr_device *device, tsr_event *event, tsr_stream *stream) {
    return tsr_device_cpu.event_record(device, event, stream);
}
static tsr_status emulated_event_wait(tsr_device *device, tsr_event *event) {
    return tsr_device_cpu.event_wait(device, event);
}
static tsr_status emulated_event_seconds(tsr_device *device, tsr_event *from, tsr_event *to, double *seconds) {
    return tsr_device_cpu.event_seconds(device, from, to, seconds);
}
static tsr_status emulated_copy(tsr_device *device, void *to, const void *from, size_t bytes, tsr_stream *stream) {
    return tsr_device_cpu.copy(device, to, from, bytes, stream);
}
static tsr_status emulated_copy_rows(tsr_device *device, void *to, size_t to_step, const void *from, size_t from_step,
                                     size_t row_bytes, int64_t rows, tsr_stream *stream) {
    return tsr_device_cpu.copy_rows(device, to, to_step, from, from_step, row_bytes, rows, stream);
}
/* What is pinned: as with CUDA nothing twice. */
enum { PINNED_MOST = 64 };
static struct {
    const char *memory; /* NULL: no entry */
    size_t bytes;
} pinned[PINNED_MOST];
static pthread_mutex_t pinned_lock = PTHREAD_MUTEX_INITIALIZER;

static tsr_status emulated_pin(tsr_device *device, void *memory, size_t bytes) {
    const char *from = memory;
    int room = -1;
    bool twice = false;
    (void)device;
    if (bytes == 0) return TSR_OK;
    pthread_mutex_lock(&pinned_lock);
    for (int i = 0; i < PINNED_MOST; i++) {
        if (!pinned[i].memory) room = i;
        else if (from < pinned[i].memory + pinned[i].bytes && pinned[i].memory < from + bytes) twice = true;
    }
    if (room >= 0 && !twice) {
        pinned[room].memory = from;
        pinned[room].bytes = bytes;
    }
    pthread_mutex_unlock(&pinned_lock);
    if (room >= 0 && !twice) return TSR_OK;
    return tsr_fail(TSR_ERR_MEMORY, "emulated CUDA device: memory is pinned %s", twice ? "already" : "too often");
}
static void emulated_unpin(tsr_device *device, void *memory) {
    (void)device;
    pthread_mutex_lock(&pinned_lock);
    for (int i = 0; i < PINNED_MOST && memory; i++)
        if (pinned[i].memory == memory) pinned[i].memory = NULL;
    pthread_mutex_unlock(&pinned_lock);
}
static bool emulated_is_pinned(tsr_device *device, const void *memory, size_t bytes) {
    const char *from = memory;
    bool found = false;
    (void)device;
    pthread_mutex_lock(&pinned_lock);
    for (int i = 0; i < PINNED_MOST && bytes > 0; i++)
        found = found ||
                (pinned[i].memory && from >= pinned[i].memory && from + bytes <= pinned[i].memory + pinned[i].bytes);
    pthread_mutex_unlock(&pinned_lock);
    return found;
}
static tsr_status emulated_fill_bytes(tsr_device *device, void *at, int value, size_t bytes, tsr_stream *stream) {
    return tsr_device_cpu.fill_bytes(device, at, value, bytes, stream);
}
static tsr_status emulated_use(tsr_device *device) { return tsr_device_cpu.use(device); }

const tsr_device_ops tsr_device_cuda = {
    .name = "cuda",
    .kind = TSR_DEVICE_CUDA,
    .count = emulated_count,
    .open = emulated_open,
    .close = emulated_close,
    .facts = emulated_facts,
    .allocate = emulated_allocate,
    .release = emulated_release,
    .allocate_host = emulated_allocate_host,
    .release_host = emulated_release_host,
    .stream_create = emulated_stream_create,
    .stream_destroy = emulated_stream_destroy,
    .stream_wait = emulated_stream_wait,
    .event_create = emulated_event_create,
    .event_destroy = emulated_event_destroy,
    .event_record = emulated_event_record,
    .event_wait = emulated_event_wait,
    .event_seconds = emulated_event_seconds,
    .upload = emulated_copy,
    .download = emulated_copy,
    .copy = emulated_copy,
    .copy_rows = emulated_copy_rows,
    .pin = emulated_pin,
    .unpin = emulated_unpin,
    .is_pinned = emulated_is_pinned,
    .fill_bytes = emulated_fill_bytes,
    .use = emulated_use,
};
