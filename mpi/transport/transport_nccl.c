/* NCCL: panels go from GPU to GPU on the exchange lane's stream. Needs one GPU a rank, and the library
 * (nccl_library.h). */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpi/transport/nccl_library.h"
#include "mpi/transport/transport.h"

/* It stays with the grid from run to run: to connect GPUs takes a second. */
typedef struct {
    tsr_connection base;
    int ordinal;                     /* of the device */
    ncclComm_t comm[TSR_AXIS_COUNT]; /* NULL where the axis has one rank */
    int rank[TSR_AXIS_COUNT];        /* in comm */
} nccl_connection;

typedef struct {
    tsr_transport base;
    tsr_grid *grid;
    nccl_connection *to;
} nccl_transport;

static bool nccl_available(int ranks, const tsr_device_facts *facts, int shared, char *why) {
    if (facts->kind != TSR_DEVICE_CUDA) {
        snprintf(why, 256, "the device is not a GPU");
        return false;
    }
    if (shared > 1) {
        snprintf(why, 256, "%d ranks share a GPU, and NCCL needs one for each rank", shared);
        return false;
    }
    return ranks == 1 || tsr_nccl_load(why); /* one rank has nobody to send to */
}

static tsr_status open_axis(nccl_connection *to, const tsr_grid *grid, tsr_axis axis) {
    MPI_Comm comm = tsr_axis_comm(grid, axis);
    int ranks;
    TSR_TRY(TSR_MPI(MPI_Comm_size(comm, &ranks)));
    TSR_TRY(TSR_MPI(MPI_Comm_rank(comm, &to->rank[axis])));
    if (ranks == 1) return TSR_OK;
    ncclUniqueId id;
    tsr_status status = to->rank[axis] == 0 ? TSR_NCCL(ncclGetUniqueId(&id)) : TSR_OK;
    status = tsr_share(comm, status, &id, sizeof id);
    TSR_TRY(tsr_share_message(comm, status)); /* any of these ranks may have to say it */
    return TSR_NCCL(ncclCommInitRank(&to->comm[axis], ranks, id, to->rank[axis]));
}

static tsr_status nccl_all_gather(tsr_transport *transport, tsr_axis axis, void *buffer, size_t piece_bytes,
                                  tsr_stream *stream) {
    nccl_transport *t = (nccl_transport *)transport;
    const char *mine = (const char *)buffer + (size_t)t->to->rank[axis] * piece_bytes;
    return TSR_NCCL(ncclAllGather(mine, buffer, piece_bytes, ncclUint8, t->to->comm[axis], (cudaStream_t)stream));
}

static tsr_status nccl_reduce_scatter(tsr_transport *transport, tsr_axis axis, const void *from, void *to,
                                      int64_t count, tsr_dtype type, tsr_stream *stream) {
    nccl_transport *t = (nccl_transport *)transport;
    return TSR_NCCL(ncclReduceScatter(from, to, (size_t)count,
                                      tsr_dtype_bytes(type) == sizeof(float) ? ncclFloat32 : ncclFloat64, ncclSum,
                                      t->to->comm[axis], (cudaStream_t)stream));
}

static tsr_status nccl_send(tsr_transport *transport, tsr_axis axis, int to, const void *buffer, size_t bytes,
                            tsr_stream *stream) {
    nccl_transport *t = (nccl_transport *)transport;
    return TSR_NCCL(ncclSend(buffer, bytes, ncclUint8, to, t->to->comm[axis], (cudaStream_t)stream));
}

static tsr_status nccl_receive(tsr_transport *transport, tsr_axis axis, int from, void *buffer, size_t bytes,
                               tsr_stream *stream) {
    nccl_transport *t = (nccl_transport *)transport;
    return TSR_NCCL(ncclRecv(buffer, bytes, ncclUint8, from, t->to->comm[axis], (cudaStream_t)stream));
}

/* A rank that is gone, or a network: NCCL's work would wait for it for ever, and say nothing. */
static tsr_status nccl_look(tsr_transport *transport) {
    nccl_transport *t = (nccl_transport *)transport;
    for (int axis = 0; axis < TSR_AXIS_COUNT; axis++) {
        ncclResult_t error = ncclSuccess;
        if (!t->to->comm[axis]) continue;
        TSR_TRY(TSR_NCCL(ncclCommGetAsyncError(t->to->comm[axis], &error)));
        TSR_TRY(tsr_nccl_check(error, "NCCL lost a rank or the network (ncclCommGetAsyncError)"));
    }
    return TSR_OK;
}

static void nccl_abandon(tsr_transport *transport) {
    nccl_transport *t = (nccl_transport *)transport;
    for (int axis = 0; axis < TSR_AXIS_COUNT; axis++)
        if (t->to->comm[axis]) tsr_nccl.ncclCommAbort(t->to->comm[axis]);
}

/* While nothing else looks at the connection. */
static tsr_status wait_for(nccl_transport *t, tsr_stream *stream) {
    for (;;) {
        const cudaError_t code = cudaStreamQuery((cudaStream_t)stream);
        if (code == cudaSuccess) return TSR_OK;
        if (code != cudaErrorNotReady)
            return tsr_fail(TSR_ERR_DEVICE, "connecting GPUs failed: %s (CUDA error %d)", cudaGetErrorString(code),
                            (int)code);
        TSR_TRY(nccl_look(&t->base));
        usleep(200);
    }
}

/* NCCL connects ranks at the first transfer, which takes a quarter of a second: it is done here, where others wait
 * for nothing. */
static tsr_status warm_axis(nccl_transport *t, tsr_axis axis, int ranks, tsr_stream *stream) {
    const size_t piece = (size_t)4 << 20;
    tsr_device *device = t->base.device;
    void *gathered = NULL, *mine = NULL;
    tsr_status status;
    TSR_TRY_DONE(device->ops->allocate(device, piece * (size_t)ranks, &gathered));
    TSR_TRY_DONE(device->ops->allocate(device, piece, &mine));
    TSR_TRY_DONE(device->ops->fill_bytes(device, gathered, 0, piece * (size_t)ranks, stream));
    TSR_TRY_DONE(nccl_all_gather(&t->base, axis, gathered, piece, stream));
    TSR_TRY_DONE(
        nccl_reduce_scatter(&t->base, axis, gathered, mine, (int64_t)(piece / sizeof(float)), TSR_F32, stream));
    if (axis == TSR_AXIS_DEPTH && t->to->rank[axis] > 0)
        TSR_TRY_DONE(nccl_receive(&t->base, axis, t->to->rank[axis] - 1, mine, piece, stream));
    if (axis == TSR_AXIS_DEPTH && t->to->rank[axis] + 1 < ranks)
        TSR_TRY_DONE(nccl_send(&t->base, axis, t->to->rank[axis] + 1, mine, piece, stream));
    status = wait_for(t, stream);
done:
    device->ops->release(device, mine);
    device->ops->release(device, gathered);
    return status;
}

static tsr_status warm(nccl_transport *t, const tsr_grid *grid) {
    const int ranks[TSR_AXIS_COUNT] = {grid->q, grid->p, grid->r};
    tsr_device *device = t->base.device;
    tsr_stream *stream;
    TSR_TRY(device->ops->stream_create(device, &stream));
    tsr_status status = TSR_OK;
    for (int axis = 0; axis < TSR_AXIS_COUNT && status == TSR_OK; axis++)
        if (t->to->comm[axis]) status = warm_axis(t, (tsr_axis)axis, ranks[axis], stream);
    device->ops->stream_destroy(device, stream);
    return status;
}

static void end_connection(tsr_connection *connection) {
    nccl_connection *to = (nccl_connection *)connection;
    for (int axis = 0; axis < TSR_AXIS_COUNT; axis++)
        if (to->comm[axis]) tsr_nccl.ncclCommDestroy(to->comm[axis]);
    free(to);
}

/* Collective over the grid's ranks. Takes over the connection that stayed, if each rank has one, to the device that it
 * has now. */
static tsr_status take_kept(tsr_grid *grid, nccl_connection *to, bool *taken) {
    nccl_connection *kept = (nccl_connection *)grid->connection;
    int fits = kept && kept->ordinal == to->ordinal;
    grid->connection = NULL;
    TSR_TRY(TSR_MPI(MPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_MIN, grid->ranks)));
    *taken = kept && fits;
    if (*taken) {
        *to = *kept;
        free(kept);
    } else if (kept) {
        end_connection(&kept->base);
    }
    return TSR_OK;
}

static tsr_status find_ranks(nccl_transport *t) {
    tsr_device_facts facts;
    bool taken;
    t->to->base.end = end_connection;
    if (t->grid->p * t->grid->q * t->grid->r == 1) return TSR_OK;
    TSR_TRY(t->base.device->ops->facts(t->base.device, &facts));
    t->to->ordinal = facts.ordinal;
    TSR_TRY(take_kept(t->grid, t->to, &taken));
    if (taken) return TSR_OK;
    for (int axis = 0; axis < TSR_AXIS_COUNT; axis++) TSR_TRY(open_axis(t->to, t->grid, (tsr_axis)axis));
    return warm(t, t->grid);
}

/* What fails here the others may wait for inside NCCL: it cannot be agreed on (TSR_ERR_MPI). */
static tsr_status nccl_open(tsr_grid *grid, tsr_device *device, tsr_transport **transport) {
    nccl_transport *t = calloc(1, sizeof *t);
    if (t) t->to = calloc(1, sizeof *t->to);
    if (!t || !t->to) {
        free(t);
        return tsr_fail(TSR_ERR_MPI, "no memory for a transport");
    }
    t->base = (tsr_transport){.ops = &tsr_transport_nccl, .device = device};
    t->grid = grid;
    *transport = &t->base;
    return find_ranks(t) == TSR_OK ? TSR_OK : TSR_ERR_MPI; /* communicators stay: destroying them is collective */
}

static void nccl_close(tsr_transport *transport) {
    nccl_transport *t = (nccl_transport *)transport;
    t->grid->connection = &t->to->base;
    free(t);
}

const tsr_transport_ops tsr_transport_nccl = {
    .name = "nccl",
    .device_memory = true,
    .asynchronous = true,
    .available = nccl_available,
    .open = nccl_open,
    .close = nccl_close,
    .all_gather = nccl_all_gather,
    .reduce_scatter = nccl_reduce_scatter,
    .send = nccl_send,
    .receive = nccl_receive,
    .look = nccl_look,
    .abandon = nccl_abandon,
};
