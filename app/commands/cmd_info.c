/* tessera info: what a file holds (info_file.c), and with --devices what each rank of the job runs on. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/command.h"
#include "app/info/info_file.h"
#include "app/info/info_left.h"
#include "app/tessera_options.h"
#include "io/stores.h"
#include "io/text/json.h"
#include "io/text/text_file.h"
#include "kernels/device/device.h"
#include "kernels/gemm/cpu/blas.h"
#include "mpi/ranks/rank_device.h"
#include "mpi/transport/transport.h"

typedef struct {
    const char *name;
    bool devices, ranks;
    const char *device, *external, *json;
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
    {.shared = &tsr_option_json, .help = "Write the same as JSON, too; - is standard output", .field = AT(json)},
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
    char health[TSR_HEALTH_CHARS]; /* of a GPU */
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
        printf(", health %s", d->health);
    } else {
        printf(", link none (host memory)");
    }
    if (d->shared > 1 && cuda) printf(", shared by %d ranks", d->shared);
    printf(", of this rank %d core%s", d->cores, d->cores == 1 ? "" : "s");
    printf(" and %d thread%s\n", d->threads, d->threads == 1 ? "" : "s");
}

static void write_device(tsr_info_json *json, int rank, const rank_device *d) {
    const tsr_device_facts *f = &d->facts;
    FILE *to = tsr_info_json_entry(json, TSR_INFO_DEVICES);
    fprintf(to, "{\"rank\": %d, \"host\": ", rank);
    tsr_json_string(to, d->host);
    fprintf(to, ", \"kind\": \"%s\", \"name\": ", f->kind == TSR_DEVICE_CUDA ? "cuda" : "cpu");
    tsr_json_string(to, f->name);
    fprintf(to,
            ", \"ordinal\": %d, \"multiprocessors\": %d, \"arch\": %d, \"code\": \"%s\", \"bus_id\": \"%s\", "
            "\"memory_bytes\": %zu, \"memory_free_bytes\": %zu, \"clock_khz\": %d, \"ranks_on_it\": %d, \"cores\": %d, "
            "\"threads\": %d, \"health\": ",
            f->ordinal, f->multiprocessors, f->arch, f->code, f->bus_id, f->memory_bytes, f->memory_free_bytes,
            f->clock_khz, d->shared, d->cores, d->threads);
    tsr_json_string(to, d->health);
    fputc('}', to);
}

static void write_libraries(FILE *to) {
    char text[512];
    fputs(",\n  \"libraries\": {\"MPI\": ", to);
    tsr_json_string(to, tsr_transport_versions(text, sizeof text));
    fputs(", \"HDF5\": ", to);
    tsr_json_string(to, tsr_stores_version(text, sizeof text));
    fputs(", \"BLAS\": ", to);
    tsr_json_string(to, tsr_blas_version());
    fputs("}", to);
}

static void print_libraries(void) {
    char text[512];
    printf("MPI: %s\n", tsr_transport_versions(text, sizeof text));
    printf("HDF5: %s\n", tsr_stores_version(text, sizeof text));
    printf("BLAS: %s\n", tsr_blas_version());
}

/* Collective. */
static tsr_status print_devices(const tsr_world *world, const char *kind, tsr_info_json *json) {
    tsr_device *device = NULL;
    rank_device mine, *all = NULL;
    memset(&mine, 0, sizeof mine);
    memcpy(mine.host, world->host, sizeof mine.host);
    tsr_device_opening opening;
    tsr_device_begin(world, kind, &opening);
    TSR_TRY(tsr_device_end(world, &opening, &device, &mine.shared));
    mine.cores = world->cores;
    mine.threads = opening.threads;
    if (device->ops->kind == TSR_DEVICE_CUDA) (void)tsr_gpu_judge(&opening.health, mine.health);
    tsr_status status = device->ops->facts(device, &mine.facts);
    if (status == TSR_OK && world->rank == 0) {
        all = calloc((size_t)world->ranks, sizeof *all);
        if (!all) status = tsr_fail(TSR_ERR_MEMORY, "no memory for the devices of %d ranks: free some", world->ranks);
    }
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Gather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, 0, world->comm)));
    for (int i = 0; all && i < world->ranks; i++) {
        print_device(i, &all[i]);
        if (json) write_device(json, i, &all[i]);
    }
    if (all) print_libraries();
    if (all && json) write_libraries(json->more);
done:
    free(all);
    device->ops->close(device);
    return status;
}

static tsr_status write_json(tsr_info_json *json, const info_options *o) {
    tsr_text_file to;
    TSR_TRY(tsr_text_file_open("JSON file", o->json, &to));
    const tsr_status status = tsr_info_json_write(json, o->name, to.to);
    const tsr_status closed = tsr_text_file_close(&to, status == TSR_OK ? 0 : ENOMEM);
    return status != TSR_OK ? status : closed;
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    info_options o = {0};
    tsr_info_json json = {0}, *wanted = NULL; /* rank 0's */
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&command, argc, argv, &o)));
    TSR_TRY(tsr_agree(world->comm, tsr_text_file_resolve(&o.json)));
    if (o.devices || (o.json && !tsr_text_file_is_special(o.json)))
        TSR_TRY(tsr_agree(world->comm, tsr_world_check_launcher(world)));
    if (o.json && world->rank == 0) {
        status = tsr_info_json_begin(&json);
        wanted = &json;
    }
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    if (o.devices) TSR_TRY_DONE(print_devices(world, o.device, wanted));
    world->describer->external = o.external;
    const int left = o.name && world->rank == 0 ? tsr_info_left(o.name, wanted) : 0;
    if (o.name && world->rank == 0) status = tsr_info_file(world->describer, o.name, o.ranks, wanted);
    if (status == TSR_ERR_NOT_FOUND && left > 0) { /* there is no C yet */
        tsr_message_set("");
        status = TSR_OK;
    }
    if (status == TSR_OK && wanted) status = write_json(wanted, &o);
    status = tsr_agree(world->comm, status);
done:
    tsr_info_json_free(&json);
    return status;
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
