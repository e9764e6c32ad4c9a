/* Host memory that a GPU copies from: its pages are brought into being by several threads, on the NUMA node the GPU hangs on, before they are pinned. */
#ifndef TSR_KERNELS_HOST_PAGES_H
#define TSR_KERNELS_HOST_PAGES_H

#define TSR_CPULIST_MAX 4096 /* processors */

#include "kernels/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0-3,8,10-11", as the kernel lists processors or nodes: has[i] for each. False when the text is no such list or goes beyond the maximum; "" is an
 * empty list, and a newline at the end is fine. */
bool tsr_cpulist_parse(const char *text, bool has[TSR_CPULIST_MAX]);

/* The NUMA node of a PCI device ("0000:18:00.0", any case) where the host has several; -1 where it has one or the system does not say. `sys` is "/sys". */
int tsr_pci_node(const char *sys, const char *bus_id);

/* Writes a zero to every page of fresh memory, from as many threads as are worth it (8 at most). With a node, threads stay on those of its processors
 * that this process may run on, where there are such. What cannot be done so is left to the first use of the page. */
void tsr_touch_pages(void *memory, size_t bytes, int node);

#ifdef __cplusplus
}
#endif
#endif
