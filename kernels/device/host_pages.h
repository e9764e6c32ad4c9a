/* Pages of host memory: huge ones where the system has them, and, of memory that a GPU copies from, brought into being
 * by several threads on the NUMA node the GPU hangs on, before they are pinned. */
#ifndef TSR_KERNELS_DEVICE_HOST_PAGES_H
#define TSR_KERNELS_DEVICE_HOST_PAGES_H

#include "kernels/base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory aligned to `alignment`, a power of two from 8 on; from 4 MiB on of huge pages where the system grants them,
 * because each page takes its first user a while. The caller frees it (free); NULL: there is none. */
void *tsr_allocate_pages(size_t bytes, size_t alignment);

/* Writes a zero to every page of fresh memory, from as many threads as are worth it (8 at most). With a node, threads
 * stay on those of its cores that this process may run on, where there are such. What cannot be done so is left to the
 * first use of the page. */
void tsr_touch_pages(void *memory, size_t bytes, int node);

/* Brings the pages of memory into being that lie in it whole, whatever it holds, which stays: whoever writes there
 * later does not wait for each. One thread; nothing where the system cannot (Linux before 5.14). */
void tsr_populate_pages(void *memory, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
