/* The direct path: a contiguous matrix is bytes at an offset of its file, read with pread and written with pwrite by
 * every rank and thread. Elements come and go in the file's byte order. */
#include "io/store_direct.h"

#include <stdlib.h>

#include "io/files/raw_file.h"

#define AHEAD_BYTES (4 << 20) /* of small segments that a thread has asked for and not read */
#define HELD_MANY 64          /* segments that the page cache holds, from which on one in HELD_STEP is asked about */
#define HELD_STEP 16
#define TOGETHER_BYTES (1 << 20) /* of whole rows asked for at once */
#define WRITE_DIRECT_MIN                                                                                               \
    ((size_t)1 << 20) /* of a segment that begins or ends within a block, which goes through the page cache */

typedef struct {
    tsr_store base;
    tsr_raw_file raw;
    bool writable;
    _Atomic int64_t held; /* small segments in a row that some thread found in the page cache */
} direct_store;

/* ---- rectangles ------------------------------------------------------------------------------ */

/* A rectangle as equal segments of bytes: one segment when its rows follow each other in the file and in memory. */
typedef struct {
    int64_t segments;
    size_t bytes;        /* of one segment */
    int64_t file_offset; /* of the first */
    int64_t file_step;   /* from one to the next, bytes */
    size_t memory_step;
} segments;

static segments cut(const tsr_store_desc *desc, tsr_rect rect, int64_t ld) {
    const int64_t element = (int64_t)tsr_dtype_bytes(desc->element.dtype);
    const int64_t row = tsr_store_matrices_before(desc) * desc->dataset_rows + desc->row0 + rect.row;
    segments cut = {
        .segments = rect.rows,
        .bytes = (size_t)(rect.cols * element),
        .file_offset = desc->offset + (row * desc->dataset_cols + desc->col0 + rect.col) * element,
        .file_step = desc->dataset_cols * element,
        .memory_step = (size_t)(ld * element),
    };
    if (rect.cols == desc->dataset_cols && ld == rect.cols) {
        cut.segments = 1;
        cut.bytes *= (size_t)rect.rows;
    }
    return cut;
}

/* Small segments that the page cache does not hold are asked for some megabytes ahead, and the columns with them
 * that are read next: whole rows together where that is all of them. After many in a row that are held, by whichever
 * thread, few are asked about, because asking costs half as much as reading. */
typedef struct {
    int64_t next; /* segment to ask for */
    int64_t held; /* in a row of those asked about */
    int64_t depth;
    int64_t together;
    size_t bytes; /* of each */
} look_ahead;

static look_ahead look_ahead_for(const tsr_store_desc *desc, tsr_rect rect, const segments *c) {
    int64_t row_left = (desc->cols - rect.col) * (int64_t)tsr_dtype_bytes(desc->element.dtype);
    int64_t bytes = tsr_min(row_left, tsr_max((int64_t)c->bytes, desc->row_ahead_bytes));
    int64_t together = desc->row_ahead_bytes > 0 && bytes == row_left && desc->cols == desc->dataset_cols
                           ? tsr_max(1, TOGETHER_BYTES / c->file_step)
                           : 1;
    return (look_ahead){
        .depth = AHEAD_BYTES / tsr_max(bytes, TSR_RAW_BLOCK), .together = together, .bytes = (size_t)bytes};
}

static void look(const direct_store *s, const segments *c, int64_t reading, look_ahead *ahead) {
    while (ahead->next < c->segments && ahead->next <= reading + ahead->depth) {
        int64_t offset = c->file_offset + ahead->next * c->file_step;
        bool held = tsr_raw_cached(&s->raw, offset, c->bytes);
        int64_t rows =
            held ? (ahead->held < HELD_MANY ? 1 : HELD_STEP) : tsr_min(ahead->together, c->segments - ahead->next);
        if (!held) tsr_raw_ahead(&s->raw, offset, ahead->bytes + (size_t)((rows - 1) * c->file_step));
        ahead->held = held ? ahead->held + 1 : 0;
        ahead->next += rows;
    }
}

static tsr_status direct_read(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    direct_store *s = (direct_store *)store;
    TSR_TRY(tsr_store_check_rect(&store->desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    segments c = cut(&store->desc, rect, ld);
    bool small = c.bytes < TSR_RAW_DIRECT_MIN;
    look_ahead ahead = look_ahead_for(&store->desc, rect, &c);
    ahead.held = s->held;
    tsr_raw_bounce bounce = {0};
    tsr_status status = TSR_OK;
    for (int64_t i = 0; i < c.segments && status == TSR_OK; i++) {
        if (small) look(s, &c, i, &ahead);
        status = tsr_raw_read(&s->raw, (char *)to + (size_t)i * c.memory_step, c.bytes, c.file_offset + i * c.file_step,
                              &bounce);
    }
    if (small) s->held = ahead.held;
    tsr_raw_done(&bounce);
    return status;
}

/* Around the page cache where few blocks are cut: long segments, and such that begin and end with a block. */
static bool write_around(const segments *c) {
    bool whole = c->bytes % TSR_RAW_BLOCK == 0 && c->file_offset % TSR_RAW_BLOCK == 0 &&
                 (c->segments == 1 || c->file_step % TSR_RAW_BLOCK == 0);
    return c->bytes >= (whole ? TSR_RAW_DIRECT_MIN : WRITE_DIRECT_MIN);
}

static tsr_status direct_write(tsr_store *store, tsr_rect rect, const void *from, int64_t ld) {
    direct_store *s = (direct_store *)store;
    if (!s->writable) return tsr_fail(TSR_ERR_USAGE, "'%s' was opened for reading only", store->desc.name.file);
    TSR_TRY(tsr_store_check_rect(&store->desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    segments c = cut(&store->desc, rect, ld);
    bool around = write_around(&c);
    tsr_raw_bounce bounce = {0};
    tsr_status status = TSR_OK;
    for (int64_t i = 0; i < c.segments && status == TSR_OK; i++)
        status = tsr_raw_write(&s->raw, (const char *)from + (size_t)i * c.memory_step, c.bytes,
                               c.file_offset + i * c.file_step, around, &bounce);
    tsr_raw_done(&bounce);
    /* short segments wait in the page cache for their neighbours: sent at once, a disk wrote pieces of 8 KiB at a
     * quarter of its speed */
    bool much = c.bytes >= TSR_RAW_DIRECT_MIN && (int64_t)c.bytes * c.segments >= (int64_t)WRITE_DIRECT_MIN;
    if (status == TSR_OK && (much || atomic_load(&s->raw.mapped)))
        tsr_raw_start_writing(&s->raw, c.file_offset, (c.segments - 1) * c.file_step + (int64_t)c.bytes);
    return status;
}

static tsr_status direct_sync(tsr_store *store) {
    const direct_store *s = (const direct_store *)store;
    return s->writable ? tsr_raw_sync(&s->raw) : TSR_OK;
}

static void direct_close(tsr_store *store) {
    tsr_raw_close(&((direct_store *)store)->raw);
    free(store);
}

static const tsr_store_ops direct_ops = {
    .name = "direct",
    .read = direct_read,
    .write = direct_write,
    .sync = direct_sync,
    .close = direct_close,
};

tsr_status tsr_direct_open(const tsr_store_desc *desc, bool write, tsr_store **store) {
    direct_store *s = malloc(sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to open '%s'", desc->name.file);
    *s =
        (direct_store){.base = {.ops = &direct_ops, .desc = *desc, .copies_memory = !desc->on_disk}, .writable = write};
    int64_t bytes = desc->dataset_rows * desc->dataset_cols * (int64_t)tsr_dtype_bytes(desc->element.dtype);
    for (int d = 0; d < tsr_store_lead_count(desc); d++) bytes *= desc->lead_size[d];
    tsr_status status = tsr_raw_open(s->base.desc.name.file, write, desc->keep_cached, desc->offset, bytes, &s->raw);
    if (status == TSR_OK && !write) {
        status = tsr_store_watch(&s->base, s->raw.fd);
        if (status == TSR_OK && s->raw.direct_fd >= 0) status = tsr_store_watch(&s->base, s->raw.direct_fd);
        if (status != TSR_OK) tsr_raw_close(&s->raw);
    }
    if (status == TSR_OK) *store = &s->base;
    else free(s);
    return status;
}
