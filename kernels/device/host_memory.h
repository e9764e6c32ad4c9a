/* How much memory this process may count on: the least of what the machine has, what the control groups above the
 * process allow and what the Slurm job was given. Slurm kills a job that takes more than it asked for, the kernel a
 * control group's process: a plan must stay below. */
#ifndef TSR_KERNELS_DEVICE_HOST_MEMORY_H
#define TSR_KERNELS_DEVICE_HOST_MEMORY_H

#include "kernels/base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint64_t total,
        available; /* bytes for all processes of the node, the group or the job together; available: not in use now */
    char total_by[160]; /* whose limit the total is: "this machine", "the control group /a/b", "the Slurm job
                           (SLURM_MEM_PER_NODE)" */
} tsr_host_memory;

/* Local. `root` is "", or in tests a made-up tree with proc/ and sys/ in it. Control groups of version 1 and 2; the job
 * by SLURM_MEM_PER_NODE or SLURM_MEM_PER_CPU times its CPUs on the node. */
void tsr_host_memory_find(const char *root, tsr_host_memory *memory);

/* What this process alone may still map: its own limits (RLIMIT_AS, RLIMIT_DATA), which ranks do not share. */
typedef struct {
    uint64_t limit, left; /* bytes; UINT64_MAX where nothing limits */
    const char *by;       /* "ulimit -v", "ulimit -d", NULL: nothing */
} tsr_process_room;

void tsr_process_room_find(tsr_process_room *room); /* Local. The limit that leaves the least */
size_t tsr_stack_bytes(void);                       /* Local. What the stack of a new thread maps */

#ifdef __cplusplus
}
#endif
#endif
