#include "mpi/execute/kept.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct block {
    struct block *next;
    char *memory;
    size_t bytes;
    const tsr_device_ops *ops; /* that made it, or pinned it; NULL: it is not pinned */
    bool added;                /* a caller's, else made here */
    bool taken;
} block;

struct tsr_kept {
    pthread_mutex_t lock;
    tsr_device *device; /* for which memory was pinned first; NULL: none was */
    block *blocks;
    size_t free_bytes;
};

tsr_status tsr_kept_open(tsr_kept **kept) {
    tsr_kept *made = calloc(1, sizeof *made);
    if (!made) return tsr_fail(TSR_ERR_MEMORY, "no memory for a list of memory: free some");
    pthread_mutex_init(&made->lock, NULL);
    *kept = made;
    return TSR_OK;
}

/* Under the lock, in a thread that uses the device. */
static void release(tsr_kept *kept, block **at) {
    block *b = *at;
    *at = b->next;
    if (b->ops && b->added) b->ops->unpin(kept->device, b->memory);
    else if (b->ops) b->ops->release_host(kept->device, b->memory);
    if (!b->added && !b->taken) kept->free_bytes -= b->bytes;
    free(b);
}

static void release_free(tsr_kept *kept) {
    for (block **at = &kept->blocks; *at;)
        if ((*at)->added || (*at)->taken) at = &(*at)->next;
        else release(kept, at);
}

/* Memory is pinned: it is released in the device's name, also when runs have closed it. */
static void note_device(tsr_kept *kept, tsr_device *device) {
    tsr_device_facts facts;
    if (kept->device || device->ops->facts(device, &facts) != TSR_OK) return;
    (void)device->ops->open(facts.ordinal, &kept->device);
}

/* ---- what the caller's threads ask for: none of them uses the device, or stops using another one ---- */

typedef struct {
    tsr_kept *kept;
    void *memory; /* to be removed; NULL: all that is free */
    size_t bytes;
    bool found;
} request;

static void *release_thread(void *context) {
    request *r = context;
    tsr_kept *kept = r->kept;
    pthread_mutex_lock(&kept->lock);
    if (kept->device) (void)kept->device->ops->use(kept->device);
    if (!r->memory) release_free(kept);
    for (block **at = &kept->blocks; r->memory && *at; at = &(*at)->next) {
        if ((*at)->memory != r->memory || !(*at)->added) continue;
        r->bytes = (*at)->bytes;
        r->found = true;
        release(kept, at);
        break;
    }
    pthread_mutex_unlock(&kept->lock);
    return NULL;
}

static void release_apart(request *r) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, release_thread, r) == 0) pthread_join(thread, NULL);
    else release_thread(r);
}

void tsr_kept_close(tsr_kept *kept) {
    if (!kept) return;
    release_apart(&(request){.kept = kept});
    while (kept->blocks) {
        block *b = kept->blocks;
        kept->blocks = b->next;
        free(b);
    }
    if (kept->device) kept->device->ops->close(kept->device);
    pthread_mutex_destroy(&kept->lock);
    free(kept);
}

bool tsr_kept_remove(tsr_kept *kept, void *memory, size_t *bytes) {
    request r = {.kept = kept, .memory = memory};
    release_apart(&r);
    if (r.found) *bytes = r.bytes;
    return r.found;
}

static tsr_status insert(tsr_kept *kept, block new) {
    block *b = malloc(sizeof *b);
    if (!b) return tsr_fail(TSR_ERR_MEMORY, "no memory for a list of memory: free some");
    *b = new;
    b->next = kept->blocks;
    kept->blocks = b;
    return TSR_OK;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static bool keeps(const tsr_kept *kept, const tsr_device *device) {
    return kept && device->ops->kind != TSR_DEVICE_CPU;
}

/* The smallest that is free and fits, and is not far too long. */
static block *find_free(const tsr_kept *kept, const tsr_device_ops *ops, size_t bytes) {
    block *best = NULL;
    for (block *b = kept->blocks; b; b = b->next)
        if (!b->added && !b->taken && b->ops == ops && b->bytes >= bytes && b->bytes / 2 <= bytes &&
            (!best || b->bytes < best->bytes))
            best = b;
    return best;
}

static tsr_status take(tsr_kept *kept, tsr_device *device, size_t bytes, void **memory) {
    block *b = find_free(kept, device->ops, bytes);
    if (b) {
        b->taken = true;
        kept->free_bytes -= b->bytes;
        *memory = b->memory;
        return TSR_OK;
    }
    release_free(kept);
    note_device(kept, device);
    void *made;
    TSR_TRY(device->ops->allocate_host(device, bytes, &made));
    const tsr_status status = insert(kept, (block){.memory = made, .bytes = bytes, .ops = device->ops, .taken = true});
    if (status == TSR_OK) *memory = made;
    else device->ops->release_host(device, made);
    return status;
}

tsr_status tsr_kept_take(tsr_kept *kept, tsr_device *device, size_t bytes, void **memory) {
    if (!keeps(kept, device)) return device->ops->allocate_host(device, bytes, memory);
    pthread_mutex_lock(&kept->lock);
    const tsr_status status = take(kept, device, bytes, memory);
    pthread_mutex_unlock(&kept->lock);
    return status;
}

void tsr_kept_return(tsr_kept *kept, tsr_device *device, void *memory) {
    if (!memory) return;
    if (!keeps(kept, device)) {
        device->ops->release_host(device, memory);
        return;
    }
    pthread_mutex_lock(&kept->lock);
    block **at = &kept->blocks;
    while ((*at)->memory != memory || (*at)->added) at = &(*at)->next;
    (*at)->taken = false;
    kept->free_bytes += (*at)->bytes;
    if (kept->free_bytes > TSR_KEPT_MOST) release(kept, at);
    pthread_mutex_unlock(&kept->lock);
}

size_t tsr_kept_free_bytes(tsr_kept *kept) {
    if (!kept) return 0;
    pthread_mutex_lock(&kept->lock);
    const size_t bytes = kept->free_bytes;
    pthread_mutex_unlock(&kept->lock);
    return bytes;
}

/* ---- memory of callers ----------------------------------------------------------------------- */

tsr_status tsr_kept_add(tsr_kept *kept, void *memory, size_t bytes) {
    pthread_mutex_lock(&kept->lock);
    const tsr_status status = insert(kept, (block){.memory = memory, .bytes = bytes, .added = true});
    pthread_mutex_unlock(&kept->lock);
    return status;
}

void *tsr_kept_any(tsr_kept *kept) {
    pthread_mutex_lock(&kept->lock);
    const block *b = kept->blocks;
    while (b && !b->added) b = b->next;
    pthread_mutex_unlock(&kept->lock);
    return b ? b->memory : NULL;
}

static tsr_status pin(tsr_kept *kept, block *b, tsr_device *device) {
    if (b->ops == device->ops) return TSR_OK;
    note_device(kept, device);
    TSR_TRY(device->ops->pin(device, b->memory, b->bytes));
    b->ops = device->ops;
    return TSR_OK;
}

tsr_status tsr_kept_pin(tsr_kept *kept, tsr_device *device, const void *memory, size_t bytes, bool *pinned) {
    const char *from = memory;
    tsr_status status = TSR_OK;
    *pinned = false;
    if (!keeps(kept, device)) return TSR_OK;
    pthread_mutex_lock(&kept->lock);
    for (block *b = kept->blocks; b; b = b->next) {
        if (!b->added || from < b->memory || from + bytes > b->memory + b->bytes) continue;
        status = pin(kept, b, device);
        *pinned = status == TSR_OK;
        break;
    }
    pthread_mutex_unlock(&kept->lock);
    return status;
}
