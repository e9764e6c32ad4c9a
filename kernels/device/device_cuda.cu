/* The CUDA device: memory, non-blocking streams, timed events and copies through the CUDA runtime. Threads that wait
 * sleep instead of spinning: a rank has several lanes and often few cores. */
#include "kernels/device/cuda_compat.h"
#include "kernels/device/device_cuda.h"
#include "kernels/device/host_cores.h"
#include "kernels/device/host_memory.h"
#include "kernels/device/host_pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding and opening --------------------------------------------------------------------- */

static tsr_status cuda_count(int *devices, char *why) {
    int found = 0;
    cudaError_t code = cudaGetDeviceCount(&found);
    (void)cudaGetLastError();
    why[0] = '\0';
    tsr_process_room room;
    tsr_process_room_find(&room);
    if (code == cudaErrorMemoryAllocation && room.by) {
        char limit[32];
        return tsr_fail(
            TSR_ERR_DEVICE,
            "CUDA cannot start: it reserves 14 GB of addresses and more, and %s is %s: raise that limit, or "
            "use --device cpu",
            room.by, tsr_format_bytes((double)room.limit, limit));
    }
    if (code != cudaSuccess || found == 0) {
        const char *advice = code == cudaErrorInsufficientDriver
                                 ? "install or update the NVIDIA driver, or use --device cpu"
                                 : "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu";
        snprintf(why, 256, "no CUDA device: %s: %s", code == cudaSuccess ? "none is visible" : cudaGetErrorString(code),
                 advice);
        found = 0;
    }
    *devices = found;
    return TSR_OK;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__CUDA_ARCH_SPECIFIC__)
#define PROBE_THREADS 64 /* code for one architecture alone, as "90a" */
#else
#define PROBE_THREADS 32
#endif
/* Never launched: its attributes tell whether this build has code for the GPU, and which. */
static __global__ void __launch_bounds__(PROBE_THREADS) probe(int *at) { *at = 0; }

static tsr_status check_code(int ordinal) {
    cudaFuncAttributes attributes;
    int major = 0, minor = 0;
    cudaError_t code = cudaFuncGetAttributes(&attributes, probe);
    if (code != cudaErrorNoKernelImageForDevice && code != cudaErrorInvalidDeviceFunction &&
        code != cudaErrorUnsupportedPtxVersion)
        return tsr_cuda_check(code, "cudaFuncGetAttributes");
    (void)cudaGetLastError();
    TSR_TRY(TSR_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal)));
    TSR_TRY(TSR_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal)));
    return tsr_fail(
        TSR_ERR_UNSUPPORTED,
        "CUDA device %d: this build has no code for sm_%d%d: configure with -DTSR_CUDA_ARCHITECTURES=%d%d-real",
        ordinal, major, minor, major, minor);
}

static tsr_status cuda_open(int ordinal, tsr_device **device) {
    int devices = 0;
    char why[256];
    TSR_TRY(cuda_count(&devices, why));
    if (devices == 0) return tsr_fail(TSR_ERR_DEVICE, "%s", why);
    if (ordinal < 0 || ordinal >= devices)
        return tsr_fail(TSR_ERR_DEVICE, "CUDA device %d: this process sees %d, numbered from 0: choose one of them",
                        ordinal, devices);
    TSR_TRY(TSR_CUDA(cudaInitDevice(ordinal, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid)));
    TSR_TRY(TSR_CUDA(cudaSetDevice(ordinal)));
    TSR_TRY(check_code(ordinal));
    tsr_cuda_device *opened = static_cast<tsr_cuda_device *>(calloc(1, sizeof *opened));
    if (!opened)
        return tsr_fail(TSR_ERR_MEMORY, "CUDA device %d: no host memory for it (%zu bytes): close other programs",
                        ordinal, sizeof *opened);
    opened->base.ops = &tsr_device_cuda;
    opened->ordinal = ordinal;
    pthread_mutex_init(&opened->lock, nullptr);
    *device = &opened->base;
    return TSR_OK;
}

/* ---- attachments ----------------------------------------------------------------------------- */

static tsr_cuda_device *cuda_device(tsr_device *device) { return reinterpret_cast<tsr_cuda_device *>(device); }

tsr_cuda_attachment *tsr_cuda_attached(tsr_device *device, tsr_stream *stream, void (*destroy)(tsr_cuda_attachment *)) {
    tsr_cuda_device *own = cuda_device(device);
    pthread_mutex_lock(&own->lock);
    tsr_cuda_attachment *at = own->attachments;
    while (at && (at->stream != stream || at->destroy != destroy)) at = at->next;
    pthread_mutex_unlock(&own->lock);
    return at;
}

void tsr_cuda_attach(tsr_device *device, tsr_cuda_attachment *attachment) {
    tsr_cuda_device *own = cuda_device(device);
    pthread_mutex_lock(&own->lock);
    attachment->next = own->attachments;
    own->attachments = attachment;
    pthread_mutex_unlock(&own->lock);
}

/* Destroys what belongs to the stream, or everything when `all`. */
static void detach(tsr_cuda_device *own, tsr_stream *stream, bool all) {
    pthread_mutex_lock(&own->lock);
    for (tsr_cuda_attachment **link = &own->attachments; *link;) {
        tsr_cuda_attachment *at = *link;
        if (!all && at->stream != stream) {
            link = &at->next;
            continue;
        }
        *link = at->next;
        at->destroy(at);
    }
    pthread_mutex_unlock(&own->lock);
}

static void cuda_close(tsr_device *device) {
    if (!device) return;
    tsr_cuda_device *own = cuda_device(device);
    detach(own, nullptr, true);
    pthread_mutex_destroy(&own->lock);
    free(own);
}

static tsr_status cuda_use(tsr_device *device) { return TSR_CUDA(cudaSetDevice(cuda_device(device)->ordinal)); }

/* ---- facts ----------------------------------------------------------------------------------- */

static tsr_status fill_attributes(int ordinal, tsr_device_facts *facts) {
    int major = 0;
    int minor = 0;
    int shared = 0;
    int optin = 0;
    const struct {
        int *value;
        cudaDeviceAttr attribute;
    } wanted[] = {{&facts->multiprocessors, cudaDevAttrMultiProcessorCount},
                  {&major, cudaDevAttrComputeCapabilityMajor},
                  {&minor, cudaDevAttrComputeCapabilityMinor},
                  {&shared, cudaDevAttrMaxSharedMemoryPerBlock},
                  {&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin},
                  {&facts->registers_block, cudaDevAttrMaxRegistersPerBlock},
                  {&facts->threads_block, cudaDevAttrMaxThreadsPerBlock},
                  {&facts->grid_max[0], cudaDevAttrMaxGridDimX},
                  {&facts->grid_max[1], cudaDevAttrMaxGridDimY},
                  {&facts->grid_max[2], cudaDevAttrMaxGridDimZ},
                  {&facts->clock_khz, cudaDevAttrClockRate}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        TSR_TRY(TSR_CUDA(cudaDeviceGetAttribute(wanted[i].value, wanted[i].attribute, ordinal)));
    facts->arch = 10 * major + minor;
    facts->shared_block_bytes = (size_t)shared;
    facts->shared_block_optin_bytes = (size_t)optin;
    return TSR_OK;
}

/* What the kernels that this device runs were compiled for. */
static tsr_status find_code(tsr_device_facts *facts) {
    cudaFuncAttributes attributes;
    TSR_TRY(TSR_CUDA(cudaFuncGetAttributes(&attributes, probe)));
    snprintf(facts->code, sizeof facts->code, "%d%s", attributes.ptxVersion,
             attributes.maxThreadsPerBlock > 32 ? "a" : "");
    return TSR_OK;
}

/* All but how much memory there is. */
static tsr_status find_lasting(int ordinal, tsr_device_facts *facts) {
    cudaDeviceProp properties;
    memset(facts, 0, sizeof *facts);
    facts->kind = TSR_DEVICE_CUDA;
    facts->ordinal = ordinal;
    TSR_TRY(fill_attributes(ordinal, facts));
    TSR_TRY(find_code(facts));
    TSR_TRY(TSR_CUDA(cudaGetDeviceProperties(&properties, ordinal)));
    snprintf(facts->name, sizeof facts->name, "%.127s", properties.name);
    TSR_TRY(TSR_CUDA(cudaDeviceGetPCIBusId(facts->bus_id, (int)sizeof facts->bus_id, ordinal)));
    TSR_TRY(TSR_CUDA(cudaDriverGetVersion(&facts->driver_version)));
    return TSR_CUDA(cudaRuntimeGetVersion(&facts->runtime_version));
}

/* What lasts is found once in a process: the driver takes 0.6 ms to say it, and longer beside other work. */
static tsr_status know_lasting(int ordinal, tsr_device_facts *facts) {
    enum { MOST = 16 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static tsr_device_facts known[MOST];
    static bool knows[MOST];
    if (ordinal >= MOST) return find_lasting(ordinal, facts);
    pthread_mutex_lock(&lock);
    const tsr_status status = knows[ordinal] ? TSR_OK : find_lasting(ordinal, &known[ordinal]);
    knows[ordinal] = status == TSR_OK;
    *facts = known[ordinal];
    pthread_mutex_unlock(&lock);
    return status;
}

static tsr_status cuda_facts(tsr_device *device, tsr_device_facts *facts) {
    tsr_device_facts found;
    TSR_TRY(know_lasting(cuda_device(device)->ordinal, &found));
    TSR_TRY(TSR_CUDA(cudaMemGetInfo(&found.memory_free_bytes, &found.memory_bytes)));
    *facts = found;
    return TSR_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static tsr_status cuda_allocate(tsr_device *device, size_t bytes, void **memory) {
    void *block = nullptr;
    size_t available = 0, total = 0;
    char need[32], have[32];
    cudaError_t code = cudaMalloc(&block, bytes > 0 ? bytes : 1);
    if (code != cudaErrorMemoryAllocation) {
        TSR_TRY(tsr_cuda_check(code, "cudaMalloc"));
        *memory = block;
        return TSR_OK;
    }
    (void)cudaGetLastError();
    TSR_TRY(TSR_CUDA(cudaMemGetInfo(&available, &total)));
    return tsr_fail(TSR_ERR_MEMORY, "CUDA device %d: need %s (%zu bytes), free %s: lower --memory, or use more GPUs",
                    cuda_device(device)->ordinal, tsr_format_bytes((double)bytes, need), bytes,
                    tsr_format_bytes((double)available, have));
}

static void cuda_release(tsr_device *, void *memory) { (void)cudaFree(memory); }

/* Where the device hangs on a host of several NUMA nodes, else -1. */
static int device_node(tsr_device *device) {
    char bus_id[32];
    if (cudaDeviceGetPCIBusId(bus_id, (int)sizeof bus_id, cuda_device(device)->ordinal) == cudaSuccess)
        return tsr_pci_node("/sys", bus_id);
    (void)cudaGetLastError();
    return -1;
}

/* Registered rather than cudaHostAlloc'ed: small blocks of that are not on a page, and its pages are made by one
 * thread. */
static tsr_status cuda_allocate_host(tsr_device *device, size_t bytes, void **memory) {
    const size_t page = 4096, size = bytes > 0 ? (bytes + page - 1) / page * page : page;
    void *block = nullptr;
    char need[32], have[32];
    tsr_device_facts host;
    TSR_TRY(tsr_device_cpu.facts(nullptr, &host));
    cudaError_t code = cudaErrorMemoryAllocation;
    /* pinning more would push everything else out */
    if (bytes <= host.memory_free_bytes) block = tsr_allocate_pages(size, page);
    if (block) {
        tsr_touch_pages(block, size, device_node(device));
        code = cudaHostRegister(block, size, cudaHostRegisterPortable);
    }
    if (code != cudaSuccess) free(block);
    if (code == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return tsr_fail(
            TSR_ERR_MEMORY,
            "pinned host memory: need %s (%zu bytes), free %s: lower --host-memory, or raise the memory-lock limit",
            tsr_format_bytes((double)bytes, need), bytes, tsr_format_bytes((double)host.memory_free_bytes, have));
    }
    TSR_TRY(tsr_cuda_check(code, "cudaHostRegister"));
    *memory = block;
    return TSR_OK;
}

static void cuda_release_host(tsr_device *, void *memory) {
    if (!memory) return;
    (void)cudaHostUnregister(memory);
    free(memory);
}

/* ---- streams and events ---------------------------------------------------------------------- */

static cudaEvent_t cuda_event(tsr_event *event) { return reinterpret_cast<cudaEvent_t>(event); }

static tsr_status cuda_stream_create(tsr_device *, tsr_stream **stream) {
    cudaStream_t created;
    TSR_TRY(TSR_CUDA(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking)));
    *stream = reinterpret_cast<tsr_stream *>(created);
    return TSR_OK;
}

static void cuda_stream_destroy(tsr_device *device, tsr_stream *stream) {
    if (!stream) return;
    detach(cuda_device(device), stream, false);
    (void)cudaStreamDestroy(tsr_cuda_stream(stream));
}

static tsr_status cuda_stream_wait(tsr_device *, tsr_stream *stream) {
    return TSR_CUDA(cudaStreamSynchronize(tsr_cuda_stream(stream)));
}

static tsr_status cuda_event_create(tsr_device *, tsr_event **event) {
    cudaEvent_t created;
    TSR_TRY(TSR_CUDA(cudaEventCreateWithFlags(&created, cudaEventBlockingSync)));
    *event = reinterpret_cast<tsr_event *>(created);
    return TSR_OK;
}

static void cuda_event_destroy(tsr_device *, tsr_event *event) {
    if (event) (void)cudaEventDestroy(cuda_event(event));
}

static tsr_status cuda_event_record(tsr_device *, tsr_event *event, tsr_stream *stream) {
    return TSR_CUDA(cudaEventRecord(cuda_event(event), tsr_cuda_stream(stream)));
}

static tsr_status cuda_event_wait(tsr_device *, tsr_event *event) {
    return TSR_CUDA(cudaEventSynchronize(cuda_event(event)));
}

static tsr_status cuda_event_seconds(tsr_device *, tsr_event *from, tsr_event *to, double *seconds) {
    float milliseconds = 0;
    TSR_TRY(TSR_CUDA(cudaEventElapsedTime(&milliseconds, cuda_event(from), cuda_event(to))));
    *seconds = 1e-3 * (double)milliseconds;
    return TSR_OK;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static tsr_status cuda_upload(tsr_device *, void *to, const void *from, size_t bytes, tsr_stream *stream) {
    return TSR_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, tsr_cuda_stream(stream)));
}

static tsr_status cuda_download(tsr_device *, void *to, const void *from, size_t bytes, tsr_stream *stream) {
    return TSR_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, tsr_cuda_stream(stream)));
}

static tsr_status cuda_copy(tsr_device *, void *to, const void *from, size_t bytes, tsr_stream *stream) {
    return TSR_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, tsr_cuda_stream(stream)));
}

static tsr_status cuda_copy_rows(tsr_device *, void *to, size_t to_step, const void *from, size_t from_step,
                                 size_t row_bytes, int64_t rows, tsr_stream *stream) {
    if (row_bytes == 0 || rows == 0) return TSR_OK;
    if (to_step == row_bytes && from_step == row_bytes) /* no gaps: one long row */
        return TSR_CUDA(
            cudaMemcpyAsync(to, from, row_bytes * (size_t)rows, cudaMemcpyDefault, tsr_cuda_stream(stream)));
    return TSR_CUDA(cudaMemcpy2DAsync(to, to_step, from, from_step, row_bytes, (size_t)rows, cudaMemcpyDefault,
                                      tsr_cuda_stream(stream)));
}

static tsr_status cuda_pin(tsr_device *, void *memory, size_t bytes) {
    if (bytes == 0) return TSR_OK;
    const cudaError_t code = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
    if (code == cudaSuccess) return TSR_OK;
    (void)cudaGetLastError(); /* it is told here, and not by the next launch */
    char text[32];
    return tsr_fail(TSR_ERR_MEMORY,
                    "pinning %s of host memory failed: %s; raise the limit on locked memory (ulimit -l)",
                    tsr_format_bytes((double)bytes, text), cudaGetErrorString(code));
}

static void cuda_unpin(tsr_device *, void *memory) {
    if (memory) (void)cudaHostUnregister(memory);
}

/* Its ends stand for what is between. */
static bool cuda_is_pinned(tsr_device *, const void *memory, size_t bytes) {
    const char *first = static_cast<const char *>(memory);
    for (int end = 0; end < 2 && bytes > 0; end++) {
        cudaPointerAttributes at;
        const cudaError_t code = cudaPointerGetAttributes(&at, first + (end == 0 ? 0 : bytes - 1));
        if (code == cudaSuccess && at.type == cudaMemoryTypeHost) continue;
        (void)cudaGetLastError();
        return false;
    }
    return bytes > 0;
}

static tsr_status cuda_fill_bytes(tsr_device *, void *at, int value, size_t bytes, tsr_stream *stream) {
    return TSR_CUDA(cudaMemsetAsync(at, value, bytes, tsr_cuda_stream(stream)));
}

const tsr_device_ops tsr_device_cuda = {
    .name = "cuda",
    .kind = TSR_DEVICE_CUDA,
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .facts = cuda_facts,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .allocate_host = cuda_allocate_host,
    .release_host = cuda_release_host,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_wait = cuda_stream_wait,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .event_seconds = cuda_event_seconds,
    .upload = cuda_upload,
    .download = cuda_download,
    .copy = cuda_copy,
    .copy_rows = cuda_copy_rows,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .is_pinned = cuda_is_pinned,
    .fill_bytes = cuda_fill_bytes,
    .use = cuda_use,
};
