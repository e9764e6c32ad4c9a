/* A device: memory, streams, events, copies and facts. One table a kind of device; the CPU is one like any other, with
 * synchronous streams and memory that the host shares. Every call is Local. */
#ifndef TSR_KERNELS_DEVICE_DEVICE_H
#define TSR_KERNELS_DEVICE_DEVICE_H

#include "kernels/base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { TSR_DEVICE_CPU, TSR_DEVICE_CUDA } tsr_device_kind;

typedef struct tsr_device tsr_device;
/* work in order on one device: a cudaStream_t; the CPU's runs at once in the caller */
typedef struct tsr_stream tsr_stream;
typedef struct tsr_event tsr_event; /* a point in a stream */

typedef struct {
    tsr_device_kind kind;
    char name[128];            /* "NVIDIA H200", or the CPU's model name */
    char bus_id[32];           /* PCI address, "" for the CPU */
    int ordinal;               /* among the devices this process sees */
    int multiprocessors;       /* SMs; cores this process may use on the CPU */
    int arch;                  /* compute capability ·10 (90 = sm_90); 0 on the CPU */
    char code[8];              /* what the kernels it runs were compiled for: "90a", or "80" when that is all this build
                               * has for a newer device; "" on the CPU and in the emulation */
    size_t memory_bytes;       /* whole device; on the CPU what the host, its cgroup or its job has */
    size_t memory_free_bytes;  /* when asked */
    size_t shared_block_bytes; /* shared memory a block gets without asking */
    size_t shared_block_optin_bytes; /* the most it can ask for */
    int registers_block;
    int threads_block; /* most threads a block */
    int grid_max[3];   /* most blocks in x, y, z */
    int clock_khz;
    int driver_version, runtime_version; /* 13000 = 13.0; 0 on the CPU */
    bool host_memory;                    /* the host reads and writes device memory directly: no upload, no download */
} tsr_device_facts;

typedef struct tsr_device_ops {
    const char *name; /* "cpu", "cuda" */
    tsr_device_kind kind;
    /* How many devices this process sees. 0 with a reason in `why` (≥ 256 chars) when there is no driver.
     * TSR_ERR_DEVICE when there is one that cannot start. */
    tsr_status (*count)(int *devices, char *why);
    tsr_status (*open)(int ordinal, tsr_device **device); /* owned by the caller: close it */
    void (*close)(tsr_device *device);
    tsr_status (*facts)(tsr_device *device, tsr_device_facts *facts);
    /* 256-byte aligned; TSR_ERR_MEMORY says need and free */
    tsr_status (*allocate)(tsr_device *device, size_t bytes, void **memory);
    void (*release)(tsr_device *device, void *memory);                            /* NULL is fine */
    tsr_status (*allocate_host)(tsr_device *device, size_t bytes, void **memory); /* pinned, 4096-byte aligned */
    void (*release_host)(tsr_device *device, void *memory);
    tsr_status (*stream_create)(tsr_device *device, tsr_stream **stream);
    void (*stream_destroy)(tsr_device *device, tsr_stream *stream);
    tsr_status (*stream_wait)(tsr_device *device, tsr_stream *stream); /* host waits; reports asynchronous errors */
    tsr_status (*event_create)(tsr_device *device, tsr_event **event);
    void (*event_destroy)(tsr_device *device, tsr_event *event);
    tsr_status (*event_record)(tsr_device *device, tsr_event *event, tsr_stream *stream);
    tsr_status (*event_wait)(tsr_device *device, tsr_event *event); /* host waits; reports asynchronous errors */
    tsr_status (*event_seconds)(tsr_device *device, tsr_event *from, tsr_event *to, double *seconds); /* both reached */
    /* host → device */
    tsr_status (*upload)(tsr_device *device, void *to, const void *from, size_t bytes, tsr_stream *stream);
    /* device → host */
    tsr_status (*download)(tsr_device *device, void *to, const void *from, size_t bytes, tsr_stream *stream);
    /* device → device */
    tsr_status (*copy)(tsr_device *device, void *to, const void *from, size_t bytes, tsr_stream *stream);
    /* Rows of row_bytes each, `to_step` and `from_step` bytes apart; device memory, or host memory that is pinned,
     * on either side. */
    tsr_status (*copy_rows)(tsr_device *device, void *to, size_t to_step, const void *from, size_t from_step,
                            size_t row_bytes, int64_t rows, tsr_stream *stream);
    /* Pins host memory that is there already, page-aligned, so that copies of it are asynchronous and fast; unpin it
     * before it is freed. */
    tsr_status (*pin)(tsr_device *device, void *memory, size_t bytes);
    void (*unpin)(tsr_device *device, void *memory);
    /* Whether all of that host memory is pinned, whoever did it. */
    bool (*is_pinned)(tsr_device *device, const void *memory, size_t bytes);
    tsr_status (*fill_bytes)(tsr_device *device, void *at, int value, size_t bytes, tsr_stream *stream);
    /* Makes the device current for the calling thread; every thread calls it once before any other use. */
    tsr_status (*use)(tsr_device *device);
} tsr_device_ops;

/* Every device begins with its table; kinds append their own fields. */
struct tsr_device {
    const tsr_device_ops *ops;
};

extern const tsr_device_ops tsr_device_cpu;
extern const tsr_device_ops tsr_device_cuda; /* defined when built with CUDA (TSR_HAVE_CUDA) or with its emulation */

#if defined(TSR_HAVE_CUDA) || defined(TSR_EMULATE_CUDA)
#define TSR_CUDA_TABLES 1 /* this build has tables of kernels for tsr_device_cuda */
#endif

/* The table for "cpu" or "cuda"; TSR_ERR_UNSUPPORTED says when the build lacks it. */
tsr_status tsr_device_find(const char *name, const tsr_device_ops **ops);
const char *tsr_device_kind_name(tsr_device_kind kind); /* "cpu" or "cuda" */

/* CUDA only: while a thread has this on, its launches bring a kernel's code to the device and run nothing. Otherwise
 * the first launch of each kernel does that, holds up what the process asks of the device meanwhile, and may wait until
 * it is idle (CUDA Programming Guide, Lazy Loading). */
void tsr_device_load_only(bool on);
bool tsr_device_loads_only(void);

/* CPU only: how many of `threads` a kernel may use, at least 1, and no more than OPENBLAS_NUM_THREADS, or without it
 * OMP_NUM_THREADS, lets BLAS have. The kernel's `prepare` starts them, and they run where its caller may. */
int tsr_cpu_threads(int threads);
int tsr_cpu_cores(void); /* cores this process may run on */

#ifdef __cplusplus
}
#endif
#endif
