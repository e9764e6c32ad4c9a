/* Inside of the CUDA device, for files that keep something with it: library handles that belong to one stream and
 * live until the stream or the device goes. A tsr_stream is a cudaStream_t and a tsr_event a cudaEvent_t under
 * another name. */
#ifndef TSR_KERNELS_DEVICE_DEVICE_CUDA_H
#define TSR_KERNELS_DEVICE_DEVICE_CUDA_H

#include <pthread.h>

#include "kernels/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* First member of what a file attaches. */
typedef struct tsr_cuda_attachment {
    tsr_stream *stream;
    void (*destroy)(struct tsr_cuda_attachment *attachment); /* frees it; also tells whose it is */
    struct tsr_cuda_attachment *next;
} tsr_cuda_attachment;

typedef struct {
    tsr_device base; /* first: a tsr_device is one of these */
    int ordinal;
    pthread_mutex_t lock; /* of the list */
    tsr_cuda_attachment *attachments;
} tsr_cuda_device;

/* The attachment of this stream that `destroy` would free, or NULL. */
tsr_cuda_attachment *tsr_cuda_attached(tsr_device *device, tsr_stream *stream, void (*destroy)(tsr_cuda_attachment *));
/* Hands the attachment to the device, which destroys it with its stream or with itself. */
void tsr_cuda_attach(tsr_device *device, tsr_cuda_attachment *attachment);

#ifdef __cplusplus
}
#endif
#endif
