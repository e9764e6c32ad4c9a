#define _GNU_SOURCE /* memfd_create */
#include "mpi/ranks/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/device/device.h"

typedef struct {
    long process;
    int file;
} shared_file;

/* Rank 0: the file, as long as it has to be, after asking whether there is as much memory. */
static tsr_status make_file(size_t bytes, const char *what, const char *advice, shared_file *shared) {
    tsr_device *host;
    tsr_device_facts facts = {0};
    char need[32], have[32];
    TSR_TRY(tsr_device_cpu.open(0, &host));
    tsr_status known = tsr_device_cpu.facts(host, &facts);
    tsr_device_cpu.close(host);
    TSR_TRY(known);
    tsr_format_bytes((double)bytes, need);
    if (bytes > facts.memory_free_bytes)
        return tsr_fail(TSR_ERR_MEMORY, "%s need %s of host memory and %s are free: %s", what, need,
                        tsr_format_bytes((double)facts.memory_free_bytes, have), advice);
    int file = memfd_create("tessera", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) {
        tsr_status status =
            tsr_fail(TSR_ERR_MEMORY, "%s: %s of shared memory: %s: %s", what, need, strerror(errno), advice);
        if (file >= 0) close(file);
        return status;
    }
    *shared = (shared_file){(long)getpid(), file};
    return TSR_OK;
}

static tsr_status map_file(const tsr_world *world, const shared_file *shared, size_t bytes, void **memory) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%ld/fd/%d", shared->process, shared->file);
    int file = world->rank == 0 ? shared->file : open(name, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return tsr_fail(TSR_ERR_MEMORY, "shared memory of rank 0 (%s): %s: start all ranks in one container", name,
                        strerror(errno));
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int error = errno;
    if (world->rank != 0) close(file);
    if (mapped == MAP_FAILED)
        return tsr_fail(TSR_ERR_MEMORY, "%zu bytes of shared memory: %s: use less", bytes, strerror(error));
    madvise(mapped, bytes, MADV_HUGEPAGE); /* a wish: without it pages are small */
    *memory = mapped;
    return TSR_OK;
}

tsr_status tsr_shared_memory_open(const tsr_world *world, size_t bytes, const char *what, const char *advice,
                                  void **memory) {
    shared_file shared = {0, -1};
    void *mapped = NULL;
    if (world->local_ranks != world->ranks)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "%s: %d ranks stand on several nodes, which share no memory: %s", what,
                        world->ranks, advice);
    const tsr_status made = world->rank == 0 ? make_file(bytes, what, advice, &shared) : TSR_OK;
    TSR_TRY(tsr_share(world->comm, made, &shared, sizeof shared));
    tsr_status status = tsr_agree(world->comm, map_file(world, &shared, bytes, &mapped));
    if (world->rank == 0) close(shared.file); /* the others have it */
    if (status == TSR_OK) *memory = mapped;
    else tsr_shared_memory_close(mapped, bytes);
    return status;
}

void tsr_shared_memory_close(void *memory, size_t bytes) {
    if (memory) munmap(memory, bytes);
}
