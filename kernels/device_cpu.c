/* The CPU as a device: streams run at once in the caller, events are timestamps, device memory is host memory. Memory is
 * what the host has or, if less, what the control groups above the process allow. */
#define _GNU_SOURCE
#include "kernels/device.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

struct tsr_stream {
    char unused; /* nothing is ever pending */
};

struct tsr_event {
    double seconds; /* tsr_now_seconds() when recorded */
    bool recorded;
};

/* ---- memory of the host --------------------------------------------------------------------------------------- */

/* The number after `key` in a file of lines "key number"; with key "" the file's first number. false: not found. */
static bool read_number(const char *path, const char *key, uint64_t *number) {
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) {
        unsigned long long value;
        found = strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), " %llu", &value) == 1;
        if (found) *number = value;
    }
    fclose(file);
    return found;
}

/* Lowers `total` and `available` to what the control group in `folder` allows; file names differ between versions 1 and 2. */
static void apply_group(const char *folder, const char *limit_name, const char *usage_name, uint64_t *total, uint64_t *available) {
    char path[PATH_MAX + 64];
    uint64_t limit, usage, active = 0, inactive = 0;
    snprintf(path, sizeof path, "%s/%s", folder, limit_name);
    if (!read_number(path, "", &limit)) return; /* "max" or no such file */
    if (limit < *total) *total = limit;
    snprintf(path, sizeof path, "%s/%s", folder, usage_name);
    if (!read_number(path, "", &usage)) return;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    read_number(path, "active_file ", &active); /* cached files: given back when memory is wanted */
    read_number(path, "inactive_file ", &inactive);
    uint64_t used = usage > active + inactive ? usage - active - inactive : 0;
    uint64_t left = limit > used ? limit - used : 0;
    if (left < *available) *available = left;
}

/* Applies the group at root + path and all those above it. */
static void apply_groups(const char *root, const char *path, const char *limit_name, const char *usage_name, uint64_t *total,
                         uint64_t *available) {
    char folder[PATH_MAX];
    int length = snprintf(folder, sizeof folder, "%s%s", root, path);
    if (length < 0 || (size_t)length >= sizeof folder) return;
    for (;;) {
        apply_group(folder, limit_name, usage_name, total, available);
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= strlen(root) || !slash) return;
        *slash = '\0';
    }
}

static void host_memory(uint64_t *total, uint64_t *available) {
    struct sysinfo info;
    char line[PATH_MAX];
    uint64_t kib;
    *total = *available = 0;
    if (sysinfo(&info) == 0) {
        *total = (uint64_t)info.totalram * info.mem_unit;
        *available = (uint64_t)(info.freeram + info.bufferram) * info.mem_unit;
    }
    if (read_number("/proc/meminfo", "MemAvailable:", &kib)) *available = kib * 1024;
    FILE *groups = fopen("/proc/self/cgroup", "r");
    if (!groups) return;
    while (fgets(line, sizeof line, groups)) {
        line[strcspn(line, "\n")] = '\0';
        char *path = strrchr(line, ':');
        if (!path) continue;
        if (strncmp(line, "0::", 3) == 0)
            apply_groups("/sys/fs/cgroup", path + 1, "memory.max", "memory.current", total, available);
        else if (strstr(line, ":memory:"))
            apply_groups("/sys/fs/cgroup/memory", path + 1, "memory.limit_in_bytes", "memory.usage_in_bytes", total, available);
    }
    fclose(groups);
}

/* ---- facts ------------------------------------------------------------------------------------------------------ */

int tsr_cpu_cores(void) {
    for (int most = 1024; most <= 1 << 20; most *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)most);
        if (!set) break;
        int failed = sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)most), set);
        int error = errno;
        int cores = failed ? 0 : CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)most), set);
        CPU_FREE(set);
        if (!failed) return cores;
        if (error != EINVAL) break; /* EINVAL: the kernel's set is larger */
    }
    return 1;
}

/* OpenBLAS, where it is the BLAS in use; others keep their own setting. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));

void tsr_cpu_set_threads(int threads) {
    if (openblas_set_num_threads) openblas_set_num_threads(threads > 0 ? threads : 1);
}

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
        if (*clock_khz == 0 && strncmp(line, "cpu MHz", 7) == 0 && sscanf(value + 1, "%lf", &mhz) == 1) *clock_khz = (int)(1000 * mhz);
    }
    fclose(file);
}

static tsr_status cpu_facts(tsr_device *device, tsr_device_facts *facts) {
    (void)device;
    uint64_t total, available;
    long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    host_memory(&total, &available);
    *facts = (tsr_device_facts){.kind = TSR_DEVICE_CPU, .threads_block = 1, .grid_max = {INT_MAX, INT_MAX, INT_MAX}, .host_memory = true};
    model_name(facts->name, sizeof facts->name, &facts->clock_khz);
    facts->multiprocessors = tsr_cpu_cores();
    facts->memory_bytes = (size_t)total;
    facts->memory_free_bytes = (size_t)available;
    facts->l2_bytes = l2 > 0 ? (size_t)l2 : 0;
    return TSR_OK;
}

/* ---- the device --------------------------------------------------------------------------------------------------- */

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

/* Refuses what is not there rather than let the kernel hand it out and kill the process later. Large blocks start at huge
 * pages: fewer faults, fewer misses of the address cache. */
static tsr_status allocate_aligned(size_t bytes, size_t alignment, void **memory) {
    const size_t huge = (size_t)2 << 20;
    char need[32], have[32];
    void *block = NULL;
    uint64_t total, available;
    host_memory(&total, &available);
    if (bytes >= 2 * huge) alignment = huge;
    if (bytes > available || posix_memalign(&block, alignment, bytes > 0 ? bytes : 1) != 0)
        return tsr_fail(TSR_ERR_MEMORY, "CPU memory: need %s (%zu bytes), free %s: lower --memory or --host-memory, or use more ranks",
                        tsr_format_bytes((double)bytes, need), bytes, tsr_format_bytes((double)available, have));
    if (bytes >= 2 * huge) madvise(block, bytes, MADV_HUGEPAGE); /* a wish: without it pages are small */
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
    (void)device, (void)stream;
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
    (void)device, (void)stream;
    event->seconds = tsr_now_seconds();
    event->recorded = true;
    return TSR_OK;
}

static tsr_status cpu_event_wait(tsr_device *device, tsr_event *event) {
    (void)device, (void)event;
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
    (void)device, (void)stream;
    if (bytes > 0 && to != from) memcpy(to, from, bytes);
    return TSR_OK;
}

static tsr_status cpu_copy_rows(tsr_device *device, void *to, size_t to_step, const void *from, size_t from_step, size_t row_bytes, int64_t rows, tsr_stream *stream) {
    (void)device, (void)stream;
    for (int64_t row = 0; row < rows; row++) memcpy((char *)to + (size_t)row * to_step, (const char *)from + (size_t)row * from_step, row_bytes);
    return TSR_OK;
}

static tsr_status cpu_pin(tsr_device *device, void *memory, size_t bytes) {
    (void)device, (void)memory, (void)bytes;
    return TSR_OK;
}
static void cpu_unpin(tsr_device *device, void *memory) { (void)device, (void)memory; }

static tsr_status cpu_fill_bytes(tsr_device *device, void *at, int value, size_t bytes, tsr_stream *stream) {
    (void)device, (void)stream;
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
    .fill_bytes = cpu_fill_bytes,
    .use = cpu_use,
};
