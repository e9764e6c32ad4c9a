/* tessera info: what a file holds (info_file.c), and with --devices what each rank of the job runs on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/command.h"
#include "app/commands/info_file.h"
#include "app/tessera_options.h"
#include "io/stores.h"
#include "kernels/device/device.h"
#include "kernels/gemm/cpu/blas.h"
#include "mpi/ranks/rank_device.h"
#include "mpi/transport/transport.h"

typedef struct {
    const char *name;
    bool devices, ranks;
    const char *device, *external;
} info_options;

#define AT(member) offsetof(info_options, member)

static const tsr_option options[] = {
    {.name = "devices",
     .help = "What each rank runs on, and the libraries in use; needs no file",
     .read = tsr_read_flag,
     .field = AT(devices)},
    {.shared = &tsr_option_plugins},
    {.shared = &tsr_option_external, .field = AT(external)},
    {.shared = &tsr_option_ranks, .help = "Of a run also the table of ranks, as wide as that is", .field = AT(ranks)},
    {.shared = &tsr_option_device, .help = "With --devices: auto (default), cpu or cuda", .field = AT(device)},
    {0}};

static tsr_status take_name(void *to, int number, const char *text) {
    (void)number;
    ((info_options *)to)->name = text;
    return TSR_OK;
}

static tsr_status check(void *to) {
    const info_options *o = to;
    if (o->name || o->devices) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "info: name a file, or ask for --devices: tessera info FILE[:/path]");
}

static const tsr_options command = {
    .options = options,
    .arguments = "[FILE[:/path]]",
    .what = "Lists the matrices of a file with shape, type, layout and filters, says of the other datasets why they "
            "cannot be multiplied, and shows the run that made a matrix. FILE may also be a log or a trace that a run "
            "wrote.",
    .most_arguments = 1,
    .argument = take_name,
    .check = check};

static void help(const char *part) {
    (void)part;
    tsr_options_help(&command, "tessera info",
                     "tessera info C.h5\n  tessera info run.json --ranks\n  mpirun -n 4 tessera info --devices");
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Plain memory: gathered to rank 0. */
typedef struct {
    char host[64];
    int shared;         /* ranks of the node on the same GPU */
    int cores, threads; /* of the rank */
    tsr_device_facts facts;
} rank_device;

static void print_device(int rank, const rank_device *d) {
    const tsr_device_facts *f = &d->facts;
    char memory[32], available[32];
    bool cuda = f->kind == TSR_DEVICE_CUDA;
    printf("rank %d on %s: %s #%d, %d %s, memory %s (%s free)", rank, d->host, f->name, f->ordinal, f->multiprocessors,
           cuda ? "SMs" : "cores", tsr_format_bytes((double)f->memory_bytes, memory),
           tsr_format_bytes((double)f->memory_free_bytes, available));
    if (f->clock_khz > 0) printf(", %.2f GHz", f->clock_khz / 1e6);
    if (cuda) {
        printf(", sm_%d, code for %s, shared memory %zu bytes a block (%zu on request), %d registers a block, %d "
               "threads a block",
               f->arch, f->code, f->shared_block_bytes, f->shared_block_optin_bytes, f->registers_block,
               f->threads_block);
        printf(", link PCI %s, driver %d.%d, runtime %d.%d", f->bus_id, f->driver_version / 1000,
               f->driver_version % 1000 / 10, f->runtime_version / 1000, f->runtime_version % 1000 / 10);
    } else {
        printf(", link none (host memory)");
    }
    if (d->shared > 1 && cuda) printf(", shared by %d ranks", d->shared);
    printf(", of this rank %d core%s", d->cores, d->cores == 1 ? "" : "s");
    printf(" and %d thread%s\n", d->threads, d->threads == 1 ? "" : "s");
}

static void print_libraries(void) {
    char text[512];
    printf("MPI: %s\n", tsr_transport_versions(text, sizeof text));
    printf("HDF5: %s\n", tsr_stores_version(text, sizeof text));
    printf("BLAS: %s\n", tsr_blas_version());
}

/* Collective. */
static tsr_status print_devices(const tsr_world *world, const char *kind) {
    tsr_device *device = NULL;
    rank_device mine, *all = NULL;
    memset(&mine, 0, sizeof mine);
    memcpy(mine.host, world->host, sizeof mine.host);
    tsr_device_opening opening;
    tsr_device_begin(world, kind, &opening);
    TSR_TRY(tsr_device_end(world, &opening, &device, &mine.shared));
    mine.cores = world->cores;
    mine.threads = opening.threads;
    tsr_status status = device->ops->facts(device, &mine.facts);
    if (status == TSR_OK && world->rank == 0) {
        all = calloc((size_t)world->ranks, sizeof *all);
        if (!all) status = tsr_fail(TSR_ERR_MEMORY, "no memory for the devices of %d ranks: free some", world->ranks);
    }
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Gather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, 0, world->comm)));
    for (int i = 0; all && i < world->ranks; i++) print_device(i, &all[i]);
    if (all) print_libraries();
done:
    free(all);
    device->ops->close(device);
    return status;
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    info_options o = {0};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&command, argc, argv, &o)));
    if (o.devices) TSR_TRY(tsr_agree(world->comm, tsr_world_check_launcher(world)));
    if (o.devices) TSR_TRY(print_devices(world, o.device));
    if (!o.name) return TSR_OK;
    world->describer->external = o.external;
    return tsr_agree(world->comm, world->rank == 0 ? tsr_info_file(world->describer, o.name, o.ranks) : TSR_OK);
}

const tsr_command tsr_cmd_info = {
    .name = "info",
    .what = "what a file holds, and what the ranks run on (--devices)",
    .run = run,
    .help = help,
    .options = &command,
    .reads = true,
    .alone = true,
};
