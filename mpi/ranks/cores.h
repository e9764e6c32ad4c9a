/* The cores of a rank. Open MPI binds each of two ranks to one core by itself, and a NUMA node is all that each of more
 * may use: too little for a rank whose threads read, write, check, feed a GPU and multiply. So where nobody asked for a
 * binding (launcher.h), a rank
 *   1. widens to the job's cores of its node before MPI starts, whose threads inherit them,
 *   2. counts its share of them as soon as it knows the node's ranks, before a device is opened and before BLAS, I/O
 * and checks start threads,
 *   3. stays near: on the NUMA nodes that its share lies on, in the order of the node's ranks, or on its GPU's node
 * once that is open, with all its threads. Inside a NUMA node ranks are kept apart by how many threads they use, not by
 * where these run: the kernel knows better which core is idle, and a rank that waits leaves its cores to others. A rank
 * does not give up cores to be near: where a GPU's node is too small for the ranks beside it, these use all. Where a
 * binding was asked for, a rank runs where it was started, and ranks bound to the same cores share them evenly.
 *
 * A guest in another program's process moves threads of its own alone, and none before a call. */
#ifndef TSR_MPI_RANKS_CORES_H
#define TSR_MPI_RANKS_CORES_H

#include "kernels/device/host_cores.h"
#include "mpi/ranks/world.h"

#define TSR_CORES_FOR_GPU 4 /* fewer hold it back */

/* Local. Which of the cores `allowed` rank `index` of a node's `ranks` runs on: those of the NUMA nodes that its share
 * lies on, all where these are not known. */
void tsr_cores_spread(const tsr_cores *allowed, const tsr_cores *nodes, int node_count, int index, int ranks,
                      tsr_cores *mine);
/* Local. The same for one of `sharers` ranks with a GPU on NUMA node `near` (-1: not known): that node's cores where
 * they are a share for each of them. */
void tsr_cores_beside(const tsr_cores *allowed, const tsr_cores *nodes, int node_count, int near, int sharers,
                      int ranks, tsr_cores *mine);

/* Local, before MPI starts unless the rank is a guest. Finds the launcher and widens this process where it may be
 * moved. */
void tsr_world_widen(tsr_world *world);
/* Collective. With the node's ranks known: world->cores, world->home, and where this rank runs unless it is a guest. */
tsr_status tsr_world_share_cores(tsr_world *world);
/* Local. The rank's threads run on world->home; of a guest the calling one, and what that starts. */
void tsr_world_go_home(const tsr_world *world);
/* Collective over the world, when ranks have opened GPUs on NUMA nodes `near` (-1: not known). Moves the rank there,
 * and warns where a binding that was asked for leaves a rank too few cores for its GPU. */
tsr_status tsr_world_near_gpu(const tsr_world *world, int near);

#endif
