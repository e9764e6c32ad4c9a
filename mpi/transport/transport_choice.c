/* Which transport a run takes: the same on every rank. */
#include "mpi/transport/transport.h"

#include <stdio.h>
#include <string.h>

#include "io/text/text.h"
#include "io/text/warnings.h"

#ifdef TSR_HAVE_NCCL
#include "mpi/transport/nccl_library.h"
#endif

static const tsr_transport_ops *const transports[] = {
#define X(code) &tsr_transport_##code,
    TSR_TRANSPORT_LIST(X)
#undef X
        NULL};

/* GPUs that could use NCCL go a slower way: nobody should overlook that, and rank 0 alone speaks. */
tsr_status tsr_transport_warn_of_missing(const tsr_world *world, bool missing, const char *why) {
    int any = missing;
    TSR_TRY(tsr_reduce_all(world->comm, &any, 1, MPI_INT, MPI_MAX));
    if (any)
        tsr_warn(world->warnings, "%s. Panels take a slower way: install NCCL, or add its folder to LD_LIBRARY_PATH",
                 missing ? why : "NCCL cannot be loaded on another rank");
    return TSR_OK;
}

static int find_named(const char *name) {
    for (int i = 0; transports[i]; i++)
        if (strcmp(transports[i]->name, name) == 0) return i;
    return -1;
}

static tsr_status refuse_unknown(const char *name) {
    char names[128] = "auto";
    for (int i = 0; transports[i]; i++) tsr_text_append(names, sizeof names, ", %s", transports[i]->name);
    return tsr_fail(TSR_ERR_USAGE, "--transport %s: this build has %s", name, names);
}

tsr_status tsr_transport_choose(const tsr_world *world, const char *name, const tsr_device_facts *facts, int shared,
                                const tsr_transport_ops **ops) {
    bool automatic = strcmp(name, "auto") == 0;
    int wanted = automatic ? 0 : find_named(name);
    if (wanted < 0) return tsr_agree(world->comm, refuse_unknown(name));
    if (!automatic) {
        char why[256] = "";
        tsr_status status = TSR_OK;
        if (!transports[wanted]->available(world->ranks, facts, shared, why))
            status = tsr_fail(TSR_ERR_UNSUPPORTED, "--transport %s: %s; --transport auto takes what works", name, why);
        TSR_TRY(tsr_agree(world->comm, status));
    }
    /* The host transport at the end is always available, so the loop always ends with a choice. */
    for (int i = wanted; transports[i]; i++) {
        char why[256] = "";
        const bool mine = transports[i]->available(world->ranks, facts, shared, why);
        int everywhere = mine;
        TSR_TRY(tsr_reduce_all(world->comm, &everywhere, 1, MPI_INT, MPI_MIN));
        if (automatic && strcmp(transports[i]->name, "nccl") == 0) {
            const bool missing = !mine && facts->kind == TSR_DEVICE_CUDA && shared == 1;
            TSR_TRY(tsr_transport_warn_of_missing(world, missing, why));
        }
        if (!everywhere) continue;
        *ops = transports[i];
        return TSR_OK;
    }
    return tsr_fail(TSR_ERR_UNSUPPORTED, "no transport works on every rank");
}

const char *tsr_transport_versions(char *text, size_t chars) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    snprintf(text, chars, "%s (CUDA-aware: %s)", library, tsr_mpi_cuda_aware() ? "yes" : "no");
#ifdef TSR_HAVE_NCCL
    bool loaded;
    const int version = tsr_nccl_version(&loaded);
    tsr_text_append(text, chars, ", NCCL %d.%d.%d%s", version / 10000, version / 100 % 100, version % 100,
                    loaded ? "" : " (not loaded)");
#else
    tsr_text_append(text, chars, ", no NCCL");
#endif
    return text;
}
