/* Memory that stays from one run to the next: the buffers of plans, on the device and page-locked on the host, because
 * making them takes longer than a short run, and memory for matrices that whoever multiplies them again was given. */
#ifndef TSR_MPI_EXECUTE_MEMORY_KEPT_H
#define TSR_MPI_EXECUTE_MEMORY_KEPT_H

#include "kernels/device/device.h"

typedef struct tsr_kept tsr_kept;

tsr_status tsr_kept_open(tsr_kept **kept);
/* Releases all but blocks that somebody has still. NULL is fine. */
void tsr_kept_close(tsr_kept *kept);

typedef enum { TSR_KEPT_HOST, TSR_KEPT_DEVICE, TSR_KEPT_KINDS } tsr_kept_kind;

/* Pinned host memory, or the device's, one that was returned where it fits; where none fits all of the kind that are
 * returned are released first. `kept` NULL, and devices without memory of their own: new memory. One list serves one
 * device. */
tsr_status tsr_kept_take(tsr_kept *kept, tsr_device *device, tsr_kept_kind kind, size_t bytes, void **memory);
/* It is kept, unless more of the kind are than TSR_KEPT_HOST_MOST, or than that share of the device's memory. Nothing
 * uses it any more. NULL is fine. */
#define TSR_KEPT_HOST_MOST ((size_t)1 << 30)
#define TSR_KEPT_DEVICE_SHARE 8 /* an eighth */
void tsr_kept_return(tsr_kept *kept, tsr_device *device, tsr_kept_kind kind, void *memory);
/* Releases all that is returned; any thread. NULL is fine. */
void tsr_kept_trim(tsr_kept *kept);
/* Bytes that are returned, and nobody has. `kept` NULL: 0. */
size_t tsr_kept_free_bytes(tsr_kept *kept, tsr_kept_kind kind);

/* Memory of the caller's, of which he says when it goes: any thread. */
tsr_status tsr_kept_add(tsr_kept *kept, void *memory, size_t bytes);
/* Unpinned where it was pinned. Whether there was such memory, and how long it is. */
bool tsr_kept_remove(tsr_kept *kept, void *memory, size_t *bytes);
/* One more of those that are there; NULL: none is. */
void *tsr_kept_any(tsr_kept *kept);
/* Whether [memory, memory + bytes) lies in memory that was added. All of that is pinned for the device, the first time,
 * and stays so. `kept` NULL: it does not. */
tsr_status tsr_kept_pin(tsr_kept *kept, tsr_device *device, const void *memory, size_t bytes, bool *pinned);

#endif
