/* How ranks of a grid hand panels to one another. One constant table a transport, tsr_transport_CODE, at the end of its
 * file, and one line in the list below; the same operations in each. */
#ifndef TSR_MPI_TRANSPORT_TRANSPORT_H
#define TSR_MPI_TRANSPORT_TRANSPORT_H

#include "kernels/device/device.h"
#include "mpi/ranks/grid.h"

typedef enum {
    TSR_AXIS_COLS, /* the ranks of a grid row, over its columns: share A */
    TSR_AXIS_ROWS, /* the ranks of a grid column: share B */
    TSR_AXIS_DEPTH /* the ranks that split k: sum C */
} tsr_axis;
#define TSR_AXIS_COUNT 3

typedef struct tsr_transport tsr_transport;

typedef struct tsr_transport_ops {
    const char *name;   /* "host", "cuda-aware", "nccl" */
    bool device_memory; /* buffers are device memory; false: host memory */
    bool asynchronous;  /* calls are work on the stream; false: done when they return */
    /* Local. Whether this rank of `ranks` could use it; `why` (≥ 256 chars) says why not. `shared`: ranks that use this
     * rank's GPU. */
    bool (*available)(int ranks, const tsr_device_facts *facts, int shared, char *why);
    /* Collective over the active ranks. *transport is set before others are waited for: another thread may abandon it.
     * It is not closed where this fails. What takes long to connect stays with the grid when it is closed. */
    tsr_status (*open)(tsr_grid *grid, tsr_device *device, tsr_transport **transport);
    /* Collective; not on failure paths */
    void (*close)(tsr_transport *transport);
    /* Collective over the axis. In place: piece i (piece_bytes) of `buffer` comes from rank i of the axis. */
    tsr_status (*all_gather)(tsr_transport *transport, tsr_axis axis, void *buffer, size_t piece_bytes,
                             tsr_stream *stream);
    /* Collective over the axis. to[0..count) = sum over ranks of from[mine·count ..]; from holds count elements for
     * each rank. */
    tsr_status (*reduce_scatter)(tsr_transport *transport, tsr_axis axis, const void *from, void *to, int64_t count,
                                 tsr_dtype type, tsr_stream *stream);
    /* Of two ranks of the axis, one that sends and one that receives: `bytes` of a buffer. Each waits for the other. */
    tsr_status (*send)(tsr_transport *transport, tsr_axis axis, int to, const void *buffer, size_t bytes,
                       tsr_stream *stream);
    tsr_status (*receive)(tsr_transport *transport, tsr_axis axis, int from, void *buffer, size_t bytes,
                          tsr_stream *stream);
    /* The last two are Local, from any thread, while other calls are under way; NULL where MPI does that itself.
     * look: what befell the ranks' connection, of which work on the device that waits for them says nothing. */
    tsr_status (*look)(tsr_transport *transport);
    /* Ends what is under way between GPUs, in a job that ends; may never return. */
    void (*abandon)(tsr_transport *transport);
} tsr_transport_ops;

/* Every transport begins with its table; kinds append their own fields. */
struct tsr_transport {
    const tsr_transport_ops *ops;
    tsr_device *device;
};

#ifdef TSR_HAVE_NCCL
#define TSR_TRANSPORT_NCCL(X) X(nccl)
#else
#define TSR_TRANSPORT_NCCL(X)
#endif
/* All of this build, tsr_transport_CODE: the fastest first. */
#define TSR_TRANSPORT_LIST(X)                                                                                          \
    TSR_TRANSPORT_NCCL(X)                                                                                              \
    X(cuda_aware)                                                                                                      \
    X(host)

#define X(code) extern const tsr_transport_ops tsr_transport_##code;
TSR_TRANSPORT_LIST(X)
#undef X

/* Collective over world. `name` "auto" takes the fastest every rank can use: nccl, cuda-aware, host. A named one
 * that some rank cannot use is TSR_ERR_UNSUPPORTED with the reason; unknown names list those there are. The same
 * answer on every rank. */
tsr_status tsr_transport_choose(const tsr_world *world, const char *name, const tsr_device_facts *facts, int shared,
                                const tsr_transport_ops **ops);
/* Collective over world. Where some rank's GPU could use NCCL but for the library (`missing`, and `why` says why), rank
 * 0 warns, with its own reason where it has one. Part of tsr_transport_choose. */
tsr_status tsr_transport_warn_of_missing(const tsr_world *world, bool missing, const char *why);

/* Local, from any thread, before the job is ended. Ends what is under way in the transport, if that takes no more than
 * 2 s. NULL is fine. */
void tsr_transport_abandon(tsr_transport *transport);

/* "Open MPI 4.1.4 (CUDA-aware: no), NCCL 2.28.3": what this build exchanges with. */
const char *tsr_transport_versions(char *text, size_t chars);
/* What the MPI library says at run time. */
bool tsr_mpi_cuda_aware(void);

static inline MPI_Comm tsr_axis_comm(const tsr_grid *grid, tsr_axis axis) {
    return axis == TSR_AXIS_COLS ? grid->across_cols : axis == TSR_AXIS_ROWS ? grid->across_rows : grid->across_depth;
}

/* The two MPI transports differ only in whose memory they are given: shared implementation (transport_host.c). */
tsr_status tsr_mpi_transport_open(const tsr_transport_ops *ops, const tsr_grid *grid, tsr_device *device,
                                  tsr_transport **transport);
void tsr_mpi_transport_close(tsr_transport *transport);
tsr_status tsr_mpi_all_gather(tsr_transport *transport, tsr_axis axis, void *buffer, size_t piece_bytes,
                              tsr_stream *stream);
tsr_status tsr_mpi_reduce_scatter(tsr_transport *transport, tsr_axis axis, const void *from, void *to, int64_t count,
                                  tsr_dtype type, tsr_stream *stream);
tsr_status tsr_mpi_send(tsr_transport *transport, tsr_axis axis, int to, const void *buffer, size_t bytes,
                        tsr_stream *stream);
tsr_status tsr_mpi_receive(tsr_transport *transport, tsr_axis axis, int from, void *buffer, size_t bytes,
                           tsr_stream *stream);

#endif
