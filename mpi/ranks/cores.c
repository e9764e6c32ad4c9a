/* Which cores a rank runs on and how many of them are its share (cores.h). */
#include "mpi/ranks/cores.h"
#include "kernels/device/device.h"

#include <limits.h>
#include <stdio.h>

/* ---- where: pure functions ------------------------------------------------------------------- */

void tsr_cores_spread(const tsr_cores *allowed, const tsr_cores *nodes, int node_count, int index, int ranks,
                      tsr_cores *mine) {
    const int64_t all = tsr_cores_count(allowed);
    const int64_t first = index * all / ranks;
    const int64_t end = (index + 1) * all / ranks;
    int64_t at = 0;
    tsr_cores found = {0};
    for (int node = 0; node < node_count; node++) {
        const tsr_cores here = tsr_cores_both(allowed, &nodes[node]);
        const int64_t cores = tsr_cores_count(&here);
        if (at < end && at + cores > first)
            for (int i = 0; i < TSR_CORES_MAX / 64; i++) found.bits[i] |= here.bits[i];
        at += cores;
    }
    *mine = at == all && end > first ? found : *allowed; /* cores of no node, or more ranks than cores */
}

void tsr_cores_beside(const tsr_cores *allowed, const tsr_cores *nodes, int node_count, int near, int sharers,
                      int ranks, tsr_cores *mine) {
    *mine = *allowed;
    if (near < 0 || near >= node_count) return;
    const tsr_cores here = tsr_cores_both(allowed, &nodes[near]);
    const int share = tsr_cores_count(allowed) / ranks;
    if (share > 0 && tsr_cores_count(&here) >= (int64_t)share * sharers) *mine = here;
}

/* ---- how many -------------------------------------------------------------------------------- */

/* This rank's part of its cores, each of which is shared evenly by the node's ranks that may run on it. */
static tsr_status share_evenly(tsr_world *world) {
    int counts[TSR_CORES_MAX], users[TSR_CORES_MAX];
    tsr_cores mine;
    int known = tsr_cores_mine(&mine), all_known = 0;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&known, &all_known, 1, MPI_INT, MPI_MIN, world->node)));
    double part = (double)tsr_cpu_cores() / world->local_ranks;
    if (all_known) {
        for (int core = 0; core < TSR_CORES_MAX; core++) counts[core] = tsr_cores_has(&mine, core);
        TSR_TRY(TSR_MPI(MPI_Allreduce(counts, users, TSR_CORES_MAX, MPI_INT, MPI_SUM, world->node)));
        part = 0;
        for (int core = 0; core < TSR_CORES_MAX; core++)
            if (counts[core]) part += 1.0 / users[core];
    }
    world->cores = (int)tsr_max(1, (int64_t)(part + 1e-6));
    return TSR_OK;
}

/* ---- moving ---------------------------------------------------------------------------------- */

/* The rank's threads run there from now on; of a guest the calling one, and what that starts. */
static bool move(const tsr_world *world, const tsr_cores *cores) {
    return world->guest ? tsr_cores_keep_thread_to(cores) : tsr_cores_keep_to(cores);
}

void tsr_world_widen(tsr_world *world) {
    tsr_launcher_find("/proc", "/sys", &world->launcher);
    if (world->launcher.bound) return;
    /* A host with more cores than are counted here, or one that forbids to be moved, stays as it is. */
    const bool known = tsr_cores_mine(&world->started_on);
    if (!known || (!world->guest && !move(world, &world->launcher.cores))) world->launcher.bound = true;
}

void tsr_world_go_home(const tsr_world *world) {
    if (!world->launcher.bound) (void)move(world, &world->home);
}

/* A binding seen on one node alone, as options of Open MPI 5 are, was asked for on all of them. */
static tsr_status agree_on_binding(tsr_world *world) {
    int bound = world->launcher.bound, any = 0;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&bound, &any, 1, MPI_INT, MPI_MAX, world->comm)));
    if (any && !bound && !world->guest) (void)move(world, &world->started_on);
    world->launcher.bound = any;
    return TSR_OK;
}

tsr_status tsr_world_share_cores(tsr_world *world) {
    tsr_cores nodes[TSR_NUMA_NODES_MAX];
    TSR_TRY(agree_on_binding(world));
    if (world->launcher.bound) return share_evenly(world);
    const tsr_launcher *launcher = &world->launcher;
    const tsr_cores *all = &launcher->cores;
    const bool part = launcher->node_size > world->local_ranks; /* of the node's ranks, which all have a share */
    const int ranks = part ? launcher->node_size : world->local_ranks;
    const int rank = part ? launcher->node_rank : world->local_rank;
    tsr_cores_spread(all, nodes, tsr_numa_nodes("/sys", nodes), rank, ranks, &world->home);
    if (!world->guest) tsr_world_go_home(world); /* MPI's threads, too; where it fails, they stay on all cores */
    world->cores = (int)tsr_max(1, tsr_cores_count(all) / ranks);
    return TSR_OK;
}

/* Of the ranks for which an option would help, the one with the fewest cores, and what helps that one. */
static tsr_status warn_of_few(const tsr_world *world) {
    struct {
        int cores, rank;
    } mine = {*world->launcher.unbind ? world->cores : INT_MAX, world->rank}, least = {0, 0};
    char unbind[64];
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine, &least, 1, MPI_2INT, MPI_MINLOC, world->comm)));
    if (least.cores >= TSR_CORES_FOR_GPU) return TSR_OK;
    snprintf(unbind, sizeof unbind, "%s", world->launcher.unbind);
    TSR_TRY(TSR_MPI(MPI_Bcast(unbind, sizeof unbind, MPI_CHAR, least.rank, world->comm)));
    tsr_warn(world->warnings,
             "rank %d is bound to %d core%s, and the threads that feed a GPU need %d or more: start it with %s",
             least.rank, least.cores, least.cores == 1 ? "" : "s", TSR_CORES_FOR_GPU, unbind);
    return TSR_OK;
}

/* How many ranks of this node have a GPU on the same NUMA node. */
static tsr_status count_sharers(const tsr_world *world, int near, int *sharers) {
    int counts[TSR_NUMA_NODES_MAX] = {0}, all[TSR_NUMA_NODES_MAX];
    if (near >= 0 && near < TSR_NUMA_NODES_MAX) counts[near] = 1;
    TSR_TRY(TSR_MPI(MPI_Allreduce(counts, all, TSR_NUMA_NODES_MAX, MPI_INT, MPI_SUM, world->node)));
    *sharers = near >= 0 && near < TSR_NUMA_NODES_MAX ? all[near] : 0;
    return TSR_OK;
}

tsr_status tsr_world_near_gpu(const tsr_world *world, int near) {
    tsr_cores nodes[TSR_NUMA_NODES_MAX], mine;
    int sharers = 0;
    if (world->launcher.bound) return warn_of_few(world);
    TSR_TRY(count_sharers(world, near, &sharers));
    tsr_cores_beside(&world->launcher.cores, nodes, tsr_numa_nodes("/sys", nodes), near, sharers, world->local_ranks,
                     &mine);
    (void)move(world, &mine);
    return TSR_OK;
}
