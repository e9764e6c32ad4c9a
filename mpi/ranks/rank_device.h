/* Which GPU a rank uses. */
#ifndef TSR_MPI_RANKS_RANK_DEVICE_H
#define TSR_MPI_RANKS_RANK_DEVICE_H

#include "kernels/device/device.h"
#include "kernels/health/health.h"
#include "mpi/execute/task.h"
#include "mpi/ranks/world.h"

/* Opens the device for this rank: `kind` "auto" (CUDA when a GPU is visible, else CPU), "cpu" or "cuda". GPUs by
 * node-local rank over what is visible; *shared is how many ranks of this node use the same GPU. Collective over
 * world. */
tsr_status tsr_device_choose(const tsr_world *world, const char *kind, tsr_device **device, int *shared);

/* tsr_device_choose in two parts: a GPU takes most of a second to open, in a thread of its own while this one does
 * something else (of MPI, too). It begins after MPI has started: MPI libraries patch the functions that allocate
 * memory then, under the feet of threads that call them. */
typedef struct {
    tsr_task task;
    const char *kind; /* not owned */
    int local_rank;
    const tsr_device_ops *cuda;
    int devices;   /* GPUs this rank sees */
    char why[256]; /* it sees none */
    bool refused;  /* the driver is there and cannot start: that is no reason to take the CPU */
    tsr_device *device;
    tsr_device_facts facts;  /* of a GPU, as it was opened */
    tsr_gpu_readings health; /* of a GPU, after the end */
    tsr_task nvml;           /* starts it beside CUDA: neither waits for the other */
    int threads; /* before the end the most this rank may use, 0: as many as it has cores; then those it uses */
} tsr_device_opening;
/* Local. No call of CUDA for "cpu" */
void tsr_device_begin(const tsr_world *world, const char *kind, tsr_device_opening *opening);
/* Collective over world */
tsr_status tsr_device_end(const tsr_world *world, tsr_device_opening *opening, tsr_device **device, int *shared);
void tsr_device_give_up(tsr_device_opening *opening); /* Local, in place of the end */

#endif
