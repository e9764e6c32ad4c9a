/* tessera info: what a file holds (info_file.c), and with --devices what each rank of the job runs on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command.h"
#include "app/info_file.h"
#include "app/options.h"
#include "io/store.h"
#include "kernels/device.h"
#include "mpi/transport.h"

typedef struct {
    const char *name;
    bool devices, ranks;
    const char *device;
} info_options;

enum { KEY_DEVICES = 256, KEY_DEVICE, KEY_RANKS };

static const struct argp_option options[] = {
    {"devices", KEY_DEVICES, NULL, 0, "What each rank runs on, and the libraries in use; needs no file", 0},
    {"ranks", KEY_RANKS, NULL, 0, "Of a run also the table of ranks, as wide as that is", 0},
    {"device", KEY_DEVICE, "KIND", 0, "With --devices: auto (default), cpu or cuda", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state) {
    info_options *o = state->input;
    tsr_status status = TSR_OK;
    switch (key) {
    case KEY_DEVICES: o->devices = true; break;
    case KEY_RANKS: o->ranks = true; break;
    case KEY_DEVICE: status = tsr_device_parse(text, &o->device); break;
    case ARGP_KEY_ARG:
        if (o->name) return ARGP_ERR_UNKNOWN;
        o->name = text;
        break;
    case ARGP_KEY_END:
        if (!o->name && !o->devices) status = tsr_fail(TSR_ERR_USAGE, "info: name a file, or ask for --devices: tessera info FILE[:/path]");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return status == TSR_OK ? 0 : EINVAL;
}

static const struct argp argp = {options,
                                 parse,
                                 "[FILE[:/path]]",
                                 "Lists the matrices of a file with shape, type, layout and filters, says of the other "
                                 "datasets why they cannot be multiplied, and shows the run "
                                 "that made a matrix. FILE may also be a log or a trace that a run wrote.",
                                 NULL,
                                 NULL,
                                 NULL};

static void help(const char *part) {
    (void)part;
    tsr_options_help(&argp, "tessera info",
                     "tessera info C.h5\n  tessera info run.json --ranks\n  mpirun -n 4 tessera info --devices");
}

/* ---- devices --------------------------------------------------------------------------------------------------- */

/* Plain memory: gathered to rank 0. */
typedef struct {
    char host[64];
    int shared; /* ranks of the node on the same GPU */
    int cores, threads; /* of the rank */
    tsr_device_facts facts;
} rank_device;

static void print_device(int rank, const rank_device *d) {
    const tsr_device_facts *f = &d->facts;
    char memory[32], available[32];
    bool cuda = f->kind == TSR_DEVICE_CUDA;
    printf("rank %d on %s: %s #%d, %d %s, memory %s (%s free)", rank, d->host, f->name, f->ordinal, f->multiprocessors, cuda ? "SMs" : "cores",
           tsr_format_bytes((double)f->memory_bytes, memory), tsr_format_bytes((double)f->memory_free_bytes, available));
    if (f->clock_khz > 0) printf(", %.2f GHz", f->clock_khz / 1e6);
    if (cuda) {
        printf(", sm_%d, code for %s, shared memory %zu bytes a block (%zu on request), %d registers a block, %d "
               "threads a block",
               f->arch, f->code, f->shared_block_bytes, f->shared_block_optin_bytes, f->registers_block,
               f->threads_block);
        printf(", link PCI %s, driver %d.%d, runtime %d.%d", f->bus_id, f->driver_version / 1000, f->driver_version % 1000 / 10, f->runtime_version / 1000,
               f->runtime_version % 1000 / 10);
    } else {
        printf(", link none (host memory)");
    }
    if (d->shared > 1 && cuda) printf(", shared by %d ranks", d->shared);
    printf(", of this rank %d core%s", d->cores, d->cores == 1 ? "" : "s");
    printf(" and %d thread%s\n", d->threads, d->threads == 1 ? "" : "s");
}

extern char *openblas_get_config(void) __attribute__((weak)); /* there when OpenBLAS is the BLAS in use */

static void print_libraries(void) {
    char text[512];
    printf("MPI: %s\n", tsr_transport_versions(text, sizeof text));
    printf("HDF5: %s\n", tsr_hdf5_version(text, sizeof text));
    printf("BLAS: %s\n", openblas_get_config ? openblas_get_config() : "a CBLAS other than OpenBLAS");
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
    mine.cores = world->cores, mine.threads = opening.threads;
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
    info_options o = {.device = "auto"};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&argp, argc, argv, &o)));
    if (o.devices) TSR_TRY(tsr_agree(world->comm, tsr_world_check_launcher(world)));
    if (o.devices) TSR_TRY(print_devices(world, o.device));
    if (!o.name) return TSR_OK;
    return tsr_agree(world->comm, world->rank == 0 ? tsr_info_file(o.name, o.ranks) : TSR_OK);
}

const tsr_command tsr_cmd_info = {
    .name = "info",
    .what = "what a file holds, and what the ranks run on (--devices)",
    .run = run, .help = help, .alone = true,
};
