/* tessera info: what matrices a file holds, and with --devices what each rank of the job runs on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command.h"
#include "app/options.h"
#include "io/store.h"
#include "kernels/device.h"
#include "mpi/transport.h"

typedef struct {
    const char *name;
    bool devices;
    const char *device;
} info_options;

enum { KEY_DEVICES = 256, KEY_DEVICE };

static const struct argp_option options[] = {
    {"devices", KEY_DEVICES, NULL, 0, "What each rank runs on, and the libraries in use; needs no file", 0},
    {"device", KEY_DEVICE, "KIND", 0, "With --devices: auto (default), cpu or cuda", 0},
    {0}};

static error_t parse(int key, char *text, struct argp_state *state) {
    info_options *o = state->input;
    tsr_status status = TSR_OK;
    switch (key) {
    case KEY_DEVICES: o->devices = true; break;
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

static const struct argp argp = {options, parse, "[FILE[:/path]]",
    "Lists the matrices of a file with shape, type, layout and filters, and says of the other datasets why they cannot be multiplied.", NULL, NULL, NULL};

static void help(const char *part) {
    (void)part;
    tsr_options_help(&argp, "tessera info", "tessera info C.h5\n  mpirun -n 4 tessera info --devices");
}

/* ---- a file ---------------------------------------------------------------------------------------------------- */

static const char *layout_name(tsr_layout layout) {
    switch (layout) {
    case TSR_LAYOUT_CONTIGUOUS: return "contiguous";
    case TSR_LAYOUT_CHUNKED: return "chunked";
    case TSR_LAYOUT_COMPACT: return "compact";
    case TSR_LAYOUT_VIRTUAL: return "virtual";
    }
    return "unknown layout";
}

static void print_matrix(const tsr_store_desc *d, const char *path) {
    printf("%s  %" PRId64 " x %" PRId64 "  %s  %s", path, d->rows, d->cols, d->type_name, layout_name(d->layout));
    if (d->layout == TSR_LAYOUT_CHUNKED) printf(" %" PRId64 " x %" PRId64, d->chunk_rows, d->chunk_cols);
    if (*d->filters) printf("  %s", d->filters);
    if (*d->matlab_class) printf("  MATLAB_class %s: MATLAB shows it as %" PRId64 " x %" PRId64 ", use --order col to agree with it", d->matlab_class, d->cols, d->rows);
    printf("\n");
}

typedef struct {
    int64_t matrices, refused;
} listing;

static void print_listed(void *context, const tsr_store_desc *desc, const char *path, const char *refused) {
    listing *list = context;
    if (refused) {
        list->refused++;
        printf("%s  cannot be multiplied: %s\n", path, refused);
    } else {
        list->matrices++;
        print_matrix(desc, path);
    }
}

/* Local. */
static tsr_status print_file(const char *text) {
    tsr_matrix_name name;
    tsr_store_desc desc;
    listing list = {0, 0};
    TSR_TRY(tsr_matrix_name_parse(text, &name));
    if (*name.path || *name.slice) {
        TSR_TRY(tsr_hdf5_describe(&name, &desc));
        print_matrix(&desc, desc.name.path);
        return TSR_OK;
    }
    TSR_TRY(tsr_hdf5_list(name.file, print_listed, &list));
    printf("%s: %" PRId64 " matri%s", name.file, list.matrices, list.matrices == 1 ? "x" : "ces");
    if (list.refused > 0) printf(", %" PRId64 " other dataset%s", list.refused, list.refused == 1 ? "" : "s");
    printf("\n");
    return TSR_OK;
}

/* ---- devices --------------------------------------------------------------------------------------------------- */

/* Plain memory: gathered to rank 0. */
typedef struct {
    char host[64];
    int shared; /* ranks of the node on the same GPU */
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
        printf(", sm_%d, code for %s, shared memory %zu bytes a block (%zu on request), %d registers a block, %d threads a block", f->arch, f->code, f->shared_block_bytes,
               f->shared_block_optin_bytes, f->registers_block, f->threads_block);
        printf(", link PCI %s, driver %d.%d, runtime %d.%d", f->bus_id, f->driver_version / 1000, f->driver_version % 1000 / 10, f->runtime_version / 1000,
               f->runtime_version % 1000 / 10);
    } else {
        printf(", link none (host memory)");
    }
    if (d->shared > 1 && cuda) printf(", shared by %d ranks", d->shared);
    printf("\n");
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
    TSR_TRY(tsr_device_choose(world, kind, &device, &mine.shared));
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
    if (o.devices) TSR_TRY(print_devices(world, o.device));
    if (!o.name) return TSR_OK;
    return tsr_agree(world->comm, world->rank == 0 ? print_file(o.name) : TSR_OK);
}

const tsr_command tsr_cmd_info = {"info", "what a file holds, and what the ranks run on (--devices)", run, help};
