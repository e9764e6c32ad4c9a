#include "mpi/execute/memory/kept.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct block {
    struct block *next;
    char *memory;
    size_t bytes;
    const tsr_device_ops *ops; /* that made it, or pinned it; NULL: it is not pinned */
    tsr_kept_kind kind;
    bool added; /* a caller's, else made here */
    bool taken;
} block;

struct tsr_kept {
    pthread_mutex_t lock;
    tsr_device *device; /* for which memory was pinned or made first; NULL: none was */
    block *blocks;
    size_t free_bytes[TSR_KEPT_KINDS], most[TSR_KEPT_KINDS];
};

tsr_status tsr_kept_open(tsr_kept **kept) {
    tsr_kept *made = calloc(1, sizeof *made);
    if (!made) return tsr_fail(TSR_ERR_MEMORY, "no memory for a list of memory: free some");
    pthread_mutex_init(&made->lock, NULL);
    *kept = made;
    return TSR_OK;
}

static void release_memory(const tsr_device_ops *ops, tsr_device *device, tsr_kept_kind kind, void *memory) {
    if (kind == TSR_KEPT_HOST) ops->release_host(device, memory);
    else ops->release(device, memory);
}

/* Under the lock, in a thread that uses the device. */
static void release(tsr_kept *kept, block **at) {
    block *b = *at;
    *at = b->next;
    if (b->ops && b->added) b->ops->unpin(kept->device, b->memory);
    else if (b->ops) release_memory(b->ops, kept->device, b->kind, b->memory);
    if (!b->added && !b->taken) kept->free_bytes[b->kind] -= b->bytes;
    free(b);
}

static void release_free(tsr_kept *kept, tsr_kept_kind kind) {
    for (block **at = &kept->blocks; *at;)
        if ((*at)->added || (*at)->taken || (*at)->kind != kind) at = &(*at)->next;
        else release(kept, at);
}

/* Memory is released in the device's name, also when runs have closed it. */
static void note_device(tsr_kept *kept, tsr_device *device) {
    tsr_device_facts facts;
    if (kept->device || device->ops->facts(device, &facts) != TSR_OK) return;
    if (device->ops->open(facts.ordinal, &kept->device) != TSR_OK) return;
    kept->most[TSR_KEPT_HOST] = TSR_KEPT_HOST_MOST;
    kept->most[TSR_KEPT_DEVICE] = facts.memory_bytes / TSR_KEPT_DEVICE_SHARE;
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
    for (int kind = 0; !r->memory && kind < TSR_KEPT_KINDS; kind++) release_free(kept, (tsr_kept_kind)kind);
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

void tsr_kept_trim(tsr_kept *kept) {
    if (kept) release_apart(&(request){.kept = kept});
}

void tsr_kept_close(tsr_kept *kept) {
    if (!kept) return;
    tsr_kept_trim(kept);
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
static block *find_free(const tsr_kept *kept, const tsr_device_ops *ops, tsr_kept_kind kind, size_t bytes) {
    block *best = NULL;
    for (block *b = kept->blocks; b; b = b->next)
        if (!b->added && !b->taken && b->ops == ops && b->kind == kind && b->bytes >= bytes && b->bytes / 2 <= bytes &&
            (!best || b->bytes < best->bytes))
            best = b;
    return best;
}

static tsr_status make(tsr_device *device, tsr_kept_kind kind, size_t bytes, void **memory) {
    if (kind == TSR_KEPT_HOST) return device->ops->allocate_host(device, bytes, memory);
    return device->ops->allocate(device, bytes, memory);
}

static tsr_status take(tsr_kept *kept, tsr_device *device, tsr_kept_kind kind, size_t bytes, void **memory) {
    block *b = find_free(kept, device->ops, kind, bytes);
    if (b) {
        b->taken = true;
        kept->free_bytes[kind] -= b->bytes;
        *memory = b->memory;
        return TSR_OK;
    }
    release_free(kept, kind);
    note_device(kept, device);
    void *made;
    TSR_TRY(make(device, kind, bytes, &made));
    const tsr_status status =
        insert(kept, (block){.memory = made, .bytes = bytes, .ops = device->ops, .kind = kind, .taken = true});
    if (status == TSR_OK) *memory = made;
    else release_memory(device->ops, device, kind, made);
    return status;
}

tsr_status tsr_kept_take(tsr_kept *kept, tsr_device *device, tsr_kept_kind kind, size_t bytes, void **memory) {
    if (!keeps(kept, device)) return make(device, kind, bytes, memory);
    pthread_mutex_lock(&kept->lock);
    const tsr_status status = take(kept, device, kind, bytes, memory);
    pthread_mutex_unlock(&kept->lock);
    return status;
}

void tsr_kept_return(tsr_kept *kept, tsr_device *device, tsr_kept_kind kind, void *memory) {
    if (!memory) return;
    if (!keeps(kept, device)) {
        release_memory(device->ops, device, kind, memory);
        return;
    }
    pthread_mutex_lock(&kept->lock);
    block **at = &kept->blocks;
    while ((*at)->memory != memory || (*at)->added) at = &(*at)->next;
    (*at)->taken = false;
    kept->free_bytes[kind] += (*at)->bytes;
    if (kept->free_bytes[kind] > kept->most[kind]) release(kept, at);
    pthread_mutex_unlock(&kept->lock);
}

size_t tsr_kept_free_bytes(tsr_kept *kept, tsr_kept_kind kind) {
    if (!kept) return 0;
    pthread_mutex_lock(&kept->lock);
    const size_t bytes = kept->free_bytes[kind];
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
