/* Which device a rank takes, and opening it beside other work (rank_device.h). */
#include "mpi/ranks/rank_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device/host_cores.h"
#include "mpi/ranks/cores.h"

/* How many GPUs this rank sees; 0 with the reason in why. */
static void gpus_visible(tsr_device_opening *o) {
    snprintf(o->why, sizeof o->why, "no CUDA driver answered");
    tsr_status status = tsr_device_find("cuda", &o->cuda);
    if (status == TSR_OK) {
        status = o->cuda->count(&o->devices, o->why);
        o->refused = status != TSR_OK;
    }
    if (status != TSR_OK) {
        snprintf(o->why, sizeof o->why, "%s", tsr_message());
        o->devices = 0;
    }
    tsr_message_set("");
}

static tsr_status start_nvml(void *context) {
    (void)context;
    tsr_nvml_open();
    return TSR_OK;
}

/* The GPU is open: what it says of its health is read in a few calls more. */
static tsr_status read_health(tsr_device_opening *o) {
    TSR_TRY(o->cuda->facts(o->device, &o->facts));
    tsr_task_wait(&o->nvml);
    tsr_nvml_read(o->facts.bus_id, &o->health);
    return TSR_OK;
}

static tsr_status open_gpu(void *context) {
    tsr_device_opening *o = context;
    const tsr_device_ops *cuda;
    tsr_status status = TSR_OK;
    if (tsr_device_find("cuda", &cuda) == TSR_OK) tsr_task_start(&o->nvml, start_nvml, NULL);
    gpus_visible(o);
    if (o->devices > 0) status = o->cuda->open(o->local_rank % o->devices, &o->device);
    if (o->device) status = read_health(o);
    tsr_task_wait(&o->nvml); /* NVML stays open for the next run of this process: starting it takes a while */
    return status;
}

void tsr_device_begin(const tsr_world *world, const char *kind, tsr_device_opening *opening) {
    *opening = (tsr_device_opening){.kind = kind, .local_rank = world->local_rank};
    if (strcmp(kind, "cuda") == 0 || strcmp(kind, "auto") == 0) tsr_task_start(&opening->task, open_gpu, opening);
}

void tsr_device_give_up(tsr_device_opening *opening) {
    tsr_task_wait(&opening->task);
    if (opening->device) opening->device->ops->close(opening->device);
    opening->device = NULL;
}

/* "cuda" or "cpu" for this rank; "auto" must come out the same everywhere, because one plan holds for all ranks. */
static tsr_status device_kind(const tsr_world *world, const tsr_device_opening *o, const tsr_device_ops **ops) {
    tsr_status status = TSR_OK;
    bool automatic = strcmp(o->kind, "auto") == 0;
    if (!automatic && strcmp(o->kind, "cuda") != 0 && strcmp(o->kind, "cpu") != 0)
        status = tsr_fail(TSR_ERR_USAGE, "unknown device '%s': use auto, cpu or cuda", o->kind);
    if (status == TSR_OK && o->refused) status = tsr_fail(TSR_ERR_DEVICE, "%s", o->why);
    TSR_TRY(tsr_agree(world->comm, status));
    const bool sees = o->devices > 0;
    int any = sees;
    TSR_TRY(tsr_reduce_all(world->comm, &any, 1, MPI_INT, MPI_MAX));
    if (!sees && strcmp(o->kind, "cuda") == 0)
        status = tsr_fail(TSR_ERR_DEVICE, "no GPU to run on (%.200s): make one visible, or use --device cpu", o->why);
    else if (!sees && any)
        status = tsr_fail(
            TSR_ERR_DEVICE,
            "no GPU visible here (%.200s) while other ranks see one: give every rank a GPU, or use --device cpu",
            o->why);
    TSR_TRY(tsr_agree(world->comm, status));
    if (any) {
        *ops = o->cuda;
        return TSR_OK;
    }
    return tsr_device_find("cpu", ops);
}

/* How many ranks of this node opened the GPU this rank opened. */
static tsr_status device_shared(const tsr_world *world, const tsr_device_facts *facts, int *shared) {
    tsr_status status = TSR_OK;
    char mine[sizeof facts->bus_id] = "";
    memcpy(mine, facts->bus_id, sizeof mine);
    if (!*mine) snprintf(mine, sizeof mine, "#%d", facts->ordinal);
    char *all = malloc((size_t)world->local_ranks * sizeof mine);
    if (!all)
        status = tsr_fail(TSR_ERR_MEMORY, "no memory for the names of %d devices: run fewer ranks on a node",
                          world->local_ranks);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Allgather(mine, sizeof mine, MPI_CHAR, all, sizeof mine, MPI_CHAR, world->node)));
    *shared = 0;
    for (int i = 0; i < world->local_ranks; i++) *shared += strcmp(all + (size_t)i * sizeof mine, mine) == 0;
done:
    free(all);
    return status;
}

/* The device of the opening, or the CPU. */
static tsr_status take_device(tsr_device_opening *o, const tsr_device_ops *ops) {
    TSR_TRY(tsr_task_status(&o->task));
    if (!o->device) TSR_TRY(ops->open(0, &o->device));
    return ops->use(o->device); /* another thread opened it */
}

tsr_status tsr_device_end(const tsr_world *world, tsr_device_opening *opening, tsr_device **device, int *shared) {
    const tsr_device_ops *ops = NULL;
    int same = 1;
    tsr_status status;
    tsr_task_wait(&opening->task);
    TSR_TRY_DONE(tsr_agree(world->comm, device_kind(world, opening, &ops)));
    TSR_TRY_DONE(tsr_agree(world->comm, take_device(opening, ops)));
    opening->threads = opening->threads > 0 ? (int)tsr_min(opening->threads, world->cores) : world->cores;
    if (ops->kind == TSR_DEVICE_CPU) opening->threads = tsr_cpu_threads(opening->threads);
    else TSR_TRY_DONE(device_shared(world, &opening->facts, &same));
    if (ops->kind == TSR_DEVICE_CUDA)
        TSR_TRY_DONE(tsr_world_near_gpu(world, tsr_pci_node("/sys", opening->facts.bus_id)));
    *device = opening->device;
    *shared = same;
    opening->device = NULL;
done:
    tsr_device_give_up(opening);
    return status;
}

tsr_status tsr_device_choose(const tsr_world *world, const char *kind, tsr_device **device, int *shared) {
    tsr_device_opening opening;
    tsr_device_begin(world, kind, &opening);
    return tsr_device_end(world, &opening, device, shared);
}
