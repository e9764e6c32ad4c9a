/* Host-staged MPI: panels are shared in host memory, before they are uploaded. Always there. */
#include <limits.h>
#include <stdlib.h>

#include "io/store.h"
#include "mpi/transport/transport.h"

typedef struct {
    tsr_transport base;
    const tsr_grid *grid; /* not owned */
} mpi_transport;

tsr_status tsr_mpi_transport_open(const tsr_transport_ops *ops, const tsr_grid *grid, tsr_device *device,
                                  tsr_transport **transport) {
    mpi_transport *t = malloc(sizeof *t);
    if (!t) return tsr_fail(TSR_ERR_MEMORY, "no memory for a transport");
    *t = (mpi_transport){.base = {.ops = ops, .device = device}, .grid = grid};
    *transport = &t->base;
    return TSR_OK;
}

void tsr_mpi_transport_close(tsr_transport *transport) { free(transport); }

/* One slice [offset, offset + bytes) of every piece. The type's extent is a whole piece, so that counts and
 * displacements stay small however large the panel is. */
static tsr_status gather_slice(MPI_Comm comm, char *buffer, size_t piece_bytes, size_t offset, size_t bytes) {
    MPI_Datatype slice, spaced;
    TSR_TRY(TSR_MPI(MPI_Type_contiguous((int)bytes, MPI_BYTE, &slice)));
    TSR_TRY(TSR_MPI(MPI_Type_create_resized(slice, 0, (MPI_Aint)piece_bytes, &spaced)));
    TSR_TRY(TSR_MPI(MPI_Type_commit(&spaced)));
    TSR_TRY(TSR_MPI(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer + offset, 1, spaced, comm)));
    TSR_TRY(TSR_MPI(MPI_Type_free(&spaced)));
    return TSR_MPI(MPI_Type_free(&slice));
}

tsr_status tsr_mpi_all_gather(tsr_transport *transport, tsr_axis axis, void *buffer, size_t piece_bytes,
                              tsr_stream *stream) {
    (void)stream;
    MPI_Comm comm = tsr_axis_comm(((mpi_transport *)transport)->grid, axis);
    for (size_t offset = 0; offset < piece_bytes; offset += TSR_TRANSFER_BYTES_MAX) {
        size_t left = piece_bytes - offset;
        TSR_TRY(gather_slice(comm, buffer, piece_bytes, offset,
                             left < TSR_TRANSFER_BYTES_MAX ? left : TSR_TRANSFER_BYTES_MAX));
    }
    return TSR_OK;
}

tsr_status tsr_mpi_reduce_scatter(tsr_transport *transport, tsr_axis axis, const void *from, void *to, int64_t count,
                                  tsr_dtype type, tsr_stream *stream) {
    (void)stream;
    MPI_Comm comm = tsr_axis_comm(((mpi_transport *)transport)->grid, axis);
    MPI_Datatype element = tsr_dtype_bytes(type) == sizeof(float) ? MPI_FLOAT : MPI_DOUBLE;
    int ranks;
    TSR_TRY(TSR_MPI(MPI_Comm_size(comm, &ranks)));
    if (count > INT_MAX / ranks)
        return tsr_fail(TSR_ERR_LIMIT,
                        "a strip of %lld elements for each of %d ranks is more than MPI counts: use a smaller --panel "
                        "or --host-memory",
                        (long long)count, ranks);
    return TSR_MPI(MPI_Reduce_scatter_block(from, to, (int)count, element, MPI_SUM, comm));
}

tsr_status tsr_mpi_send(tsr_transport *transport, tsr_axis axis, int to, const void *buffer, size_t bytes,
                        tsr_stream *stream) {
    (void)stream;
    MPI_Comm comm = tsr_axis_comm(((mpi_transport *)transport)->grid, axis);
    for (size_t at = 0; at < bytes; at += TSR_TRANSFER_BYTES_MAX) {
        const size_t left = bytes - at, some = left < TSR_TRANSFER_BYTES_MAX ? left : TSR_TRANSFER_BYTES_MAX;
        TSR_TRY(TSR_MPI(MPI_Send((const char *)buffer + at, (int)some, MPI_BYTE, to, 0, comm)));
    }
    return TSR_OK;
}

tsr_status tsr_mpi_receive(tsr_transport *transport, tsr_axis axis, int from, void *buffer, size_t bytes,
                           tsr_stream *stream) {
    (void)stream;
    MPI_Comm comm = tsr_axis_comm(((mpi_transport *)transport)->grid, axis);
    for (size_t at = 0; at < bytes; at += TSR_TRANSFER_BYTES_MAX) {
        const size_t left = bytes - at, some = left < TSR_TRANSFER_BYTES_MAX ? left : TSR_TRANSFER_BYTES_MAX;
        TSR_TRY(TSR_MPI(MPI_Recv((char *)buffer + at, (int)some, MPI_BYTE, from, 0, comm, MPI_STATUS_IGNORE)));
    }
    return TSR_OK;
}

static bool host_available(int ranks, const tsr_device_facts *facts, int shared, char *why) {
    (void)ranks;
    (void)facts;
    (void)shared;
    (void)why;
    return true;
}

static tsr_status host_open(tsr_grid *grid, tsr_device *device, tsr_transport **transport) {
    return tsr_mpi_transport_open(&tsr_transport_host, grid, device, transport);
}

const tsr_transport_ops tsr_transport_host = {
    .name = "host",
    .device_memory = false,
    .asynchronous = false,
    .available = host_available,
    .open = host_open,
    .close = tsr_mpi_transport_close,
    .all_gather = tsr_mpi_all_gather,
    .reduce_scatter = tsr_mpi_reduce_scatter,
    .send = tsr_mpi_send,
    .receive = tsr_mpi_receive,
};
