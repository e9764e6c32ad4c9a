/* CUDA-aware MPI: the same calls as the host transport, on device memory, when the library says at run time that it
 * can. */
#include <mpi.h>
#include <stdio.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

#include "mpi/transport/transport.h"

bool tsr_mpi_cuda_aware(void) {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    return MPIX_Query_cuda_support() == 1;
#else
    return false;
#endif
}

static bool cuda_aware_available(int ranks, const tsr_device_facts *facts, int shared, char *why) {
    (void)ranks;
    (void)shared;
    if (facts->kind != TSR_DEVICE_CUDA) {
        snprintf(why, 256, "the device is not a GPU");
        return false;
    }
    if (!tsr_mpi_cuda_aware()) {
        snprintf(why, 256, "this MPI library is not CUDA-aware");
        return false;
    }
    return true;
}

static tsr_status cuda_aware_open(tsr_grid *grid, tsr_device *device, tsr_transport **transport) {
    return tsr_mpi_transport_open(&tsr_transport_cuda_aware, grid, device, transport);
}

/* MPI does not know the lane's stream: what stands in the buffer must be there before the call. The clocks of the
 * buffers ensure that for other lanes; work of this lane itself is waited for here. */
static tsr_status cuda_aware_all_gather(tsr_transport *transport, tsr_axis axis, void *buffer, size_t piece_bytes,
                                        tsr_stream *stream) {
    TSR_TRY(transport->device->ops->stream_wait(transport->device, stream));
    return tsr_mpi_all_gather(transport, axis, buffer, piece_bytes, stream);
}

static tsr_status cuda_aware_reduce_scatter(tsr_transport *transport, tsr_axis axis, const void *from, void *to,
                                            int64_t count, tsr_dtype type, tsr_stream *stream) {
    TSR_TRY(transport->device->ops->stream_wait(transport->device, stream));
    return tsr_mpi_reduce_scatter(transport, axis, from, to, count, type, stream);
}

static tsr_status cuda_aware_send(tsr_transport *transport, tsr_axis axis, int to, const void *buffer, size_t bytes,
                                  tsr_stream *stream) {
    TSR_TRY(transport->device->ops->stream_wait(transport->device, stream));
    return tsr_mpi_send(transport, axis, to, buffer, bytes, stream);
}

static tsr_status cuda_aware_receive(tsr_transport *transport, tsr_axis axis, int from, void *buffer, size_t bytes,
                                     tsr_stream *stream) {
    TSR_TRY(transport->device->ops->stream_wait(transport->device, stream));
    return tsr_mpi_receive(transport, axis, from, buffer, bytes, stream);
}

const tsr_transport_ops tsr_transport_cuda_aware = {
    .name = "cuda-aware",
    .device_memory = true,
    .asynchronous = false,
    .available = cuda_aware_available,
    .open = cuda_aware_open,
    .close = tsr_mpi_transport_close,
    .all_gather = cuda_aware_all_gather,
    .reduce_scatter = cuda_aware_reduce_scatter,
    .send = cuda_aware_send,
    .receive = cuda_aware_receive,
};
