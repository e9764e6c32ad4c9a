/* What NCCL's transport leaves with a grid for the next run, over functions that count: ranks connect once for a grid
 * that stays, and anew where a rank has another device, or the grid other sides. */
#include <string.h>

#include "kernels/device/device.h"
#include "mpi/transport/nccl_library.h"
#include "mpi/transport/transport.h"
#include "tests/check.h"

static int connected, ended;

static ncclResult_t unique_id(ncclUniqueId *id) {
    memset(id, 0, sizeof *id);
    return ncclSuccess;
}
static ncclResult_t connect_one(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
    (void)ranks;
    (void)id;
    (void)rank;
    *comm = (ncclComm_t)&connected;
    connected++;
    return ncclSuccess;
}
static ncclResult_t end_one(ncclComm_t comm) {
    (void)comm;
    ended++;
    return ncclSuccess;
}
static ncclResult_t gather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    (void)from;
    (void)to;
    (void)count;
    (void)type;
    (void)comm;
    (void)stream;
    return ncclSuccess;
}
static ncclResult_t reduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    (void)from;
    (void)to;
    (void)count;
    (void)type;
    (void)op;
    (void)comm;
    (void)stream;
    return ncclSuccess;
}

tsr_nccl_functions tsr_nccl = {.ncclGetUniqueId = unique_id,
                               .ncclCommInitRank = connect_one,
                               .ncclCommDestroy = end_one,
                               .ncclAllGather = gather,
                               .ncclReduceScatter = reduce};
bool tsr_nccl_load(char *why) {
    (void)why;
    return true;
}
tsr_status tsr_nccl_check(ncclResult_t result, const char *call) {
    return result == ncclSuccess ? TSR_OK : tsr_fail(TSR_ERR_DEVICE, "%s failed", call);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    (void)stream;
    return cudaSuccess;
}
const char *tsr_runtime_error_string(cudaError_t code) {
    (void)code;
    return "";
}

/* A CPU that says which device it is. */
static int ordinal;
static tsr_status facts_of(tsr_device *device, tsr_device_facts *facts) {
    CHECK_OK(tsr_device_cpu.facts(device, facts));
    facts->ordinal = ordinal;
    return TSR_OK;
}

/* A run: as often as that ranks connected so far, and as many connections ended. */
static void run(const tsr_world *world, tsr_device *device, int p, int q, int connections, int ends) {
    tsr_grid grid;
    tsr_transport *transport;
    CHECK_OK(tsr_grid_open(world, p, q, 1, &grid));
    CHECK_OK(tsr_transport_nccl.open(&grid, device, &transport));
    CHECK(connected == connections && ended == ends, "%d x %d: %d connections (%d), of which %d (%d) ended", p, q,
          connected, connections, ended, ends);
    tsr_transport_nccl.close(transport);
    CHECK_OK(tsr_grid_close(&grid));
}

int main(void) {
    tsr_world world;
    tsr_grid kept = {.p = 0};
    tsr_device *device;
    CHECK_OK(tsr_world_open(&world));
    CHECK(world.ranks > 1, "more than one rank is wanted");
    CHECK_OK(tsr_device_cpu.open(0, &device));
    tsr_device_ops ops = *device->ops;
    ops.facts = facts_of;
    device->ops = &ops;
    run(&world, device, world.ranks, 1, 1, 0);
    CHECK(ended == 1, "without a place for the grid its connection stays");
    world.kept_grid = &kept;
    run(&world, device, world.ranks, 1, 2, 1);
    run(&world, device, world.ranks, 1, 2, 1);
    if (world.rank == world.ranks - 1) ordinal = 1; /* the others must not wait for this one */
    run(&world, device, world.ranks, 1, 3, 2);
    run(&world, device, world.ranks, 1, 3, 2);
    run(&world, device, 1, world.ranks, 4, 3);
    CHECK_OK(tsr_grid_end(&kept));
    CHECK(ended == 4, "%d ended", ended);
    world.kept_grid = NULL;
    device->ops = &tsr_device_cpu;
    device->ops->close(device);
    tsr_world_close(&world);
    return 0;
}
