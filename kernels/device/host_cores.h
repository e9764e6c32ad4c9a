/* The cores of a host, which are the kernel's logical processors: sets of them, those a process may run on, and the
 * NUMA nodes they form. Linux says all of it in /proc and /sys: hwloc would know no more that is needed here, and takes
 * up to a second to look at a large machine. Every call is Local. */
#ifndef TSR_KERNELS_DEVICE_HOST_CORES_H
#define TSR_KERNELS_DEVICE_HOST_CORES_H

#include "kernels/base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_CORES_MAX 4096    /* of a host */
#define TSR_NUMA_NODES_MAX 64 /* later ones are not looked at */

/* A set of cores, as the kernel's own bit mask. Plain memory. */
typedef struct {
    uint64_t bits[TSR_CORES_MAX / 64];
} tsr_cores;

static inline bool tsr_cores_has(const tsr_cores *cores, int core) { return cores->bits[core / 64] >> (core % 64) & 1; }
static inline void tsr_cores_add(tsr_cores *cores, int core) { cores->bits[core / 64] |= (uint64_t)1 << (core % 64); }
int tsr_cores_count(const tsr_cores *cores);
bool tsr_cores_equal(const tsr_cores *a, const tsr_cores *b);
tsr_cores tsr_cores_both(const tsr_cores *a, const tsr_cores *b); /* in a and in b */

/* "0-3,8,10-11", as the kernel lists cores or nodes. False when the text is no such list or goes beyond the maximum; ""
 * is an empty list, and a newline at the end is fine. */
bool tsr_cores_parse(const char *text, tsr_cores *cores);

/* Where the calling thread may run; false when the kernel does not say, as above the maximum. */
bool tsr_cores_mine(tsr_cores *cores);
/* Every thread of this process runs there from now on, and threads they start. The kernel leaves out what the control
 * group forbids. False: some thread stayed where it was. */
bool tsr_cores_keep_to(const tsr_cores *cores);
/* The same of the calling thread alone. */
bool tsr_cores_keep_thread_to(const tsr_cores *cores);

/* Cores of each NUMA node below `sys` ("/sys"), by number, empty for those that are not there; returns how many
 * numbers, 0 when the system does not say. */
int tsr_numa_nodes(const char *sys, tsr_cores nodes[TSR_NUMA_NODES_MAX]);
/* Cores of one NUMA node, of a physical core (its hardware threads) and of a package, the latter two by any core in
 * them. False where the system does not say. */
bool tsr_numa_node(const char *sys, int node, tsr_cores *cores);
bool tsr_core_threads(const char *sys, int core, tsr_cores *cores);
bool tsr_core_package(const char *sys, int core, tsr_cores *cores);
/* The NUMA node of a PCI device ("0000:18:00.0", any case) where the host has several; -1 where it has one or the
 * system does not say. `sys` is "/sys". */
int tsr_pci_node(const char *sys, const char *bus_id);

#ifdef __cplusplus
}
#endif
#endif
