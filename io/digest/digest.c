/* The digest of a matrix (digest.h). */
#include "io/digest/digest.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/digest/written.h"
#include "io/files/crc32c.h"

#define BAND_BYTES ((int64_t)4 << 20)

/* ---- sums ------------------------------------------------------------------------------------ */

static void turn(uint8_t *at, size_t bytes, size_t width) {
    for (size_t i = 0; i + width <= bytes; i += width)
        for (size_t low = 0, high = width - 1; low < high; low++, high--) {
            const uint8_t byte = at[i + low];
            at[i + low] = at[i + high];
            at[i + high] = byte;
        }
}

uint32_t tsr_digest_sum(const tsr_store_desc *desc, tsr_rect rect, void *from, int64_t ld) {
    const tsr_dtype dtype = desc->element.dtype;
    const uint64_t element = tsr_dtype_bytes(dtype), row_bytes = (uint64_t)desc->cols * element;
    if (tsr_rect_empty(rect)) return 0;
    if (rect.cols == desc->cols && ld == desc->cols) /* rows behind each other are one */
        rect = (tsr_rect){0, rect.row * desc->cols, 1, rect.rows * rect.cols};
    const uint64_t bytes = (uint64_t)rect.cols * element;
    const uint64_t end = (uint64_t)(rect.row + rect.rows - 1) * row_bytes + (uint64_t)rect.col * element + bytes;
    const uint64_t before = (uint64_t)desc->matrix * (uint64_t)desc->rows * row_bytes;
    const uint64_t all = (uint64_t)desc->matrices * (uint64_t)desc->rows * row_bytes;
    const uint32_t next = tsr_crc32c_factor(row_bytes);
    uint32_t factor = tsr_crc32c_factor(all - before - end), sum = 0;
    for (int64_t r = rect.rows - 1; r >= 0; r--) {
        uint8_t *row = (uint8_t *)from + (uint64_t)(r * ld) * element;
        if (desc->element.swapped) turn(row, bytes, tsr_dtype_bytes(tsr_dtype_part(dtype)));
        sum ^= tsr_crc32c_move(tsr_crc32c_part(row, bytes), factor);
        if (r > 0) factor = tsr_crc32c_move(factor, next);
    }
    return sum;
}

void tsr_digest_add(tsr_digest *digest, const tsr_store_desc *desc, tsr_rect rect, void *from, int64_t ld) {
    atomic_fetch_xor(&digest->parts, tsr_digest_sum(desc, rect, from, ld));
}

const char *tsr_digest_text(uint32_t parts, uint64_t bytes, char text[TSR_DIGEST_CHARS]) {
    snprintf(text, TSR_DIGEST_CHARS, "crc32c:%08x", tsr_crc32c_whole(parts, bytes));
    return text;
}

bool tsr_digest_parse(const char *text, char digest[TSR_DIGEST_CHARS]) {
    static const char name[] = "crc32c:", digits[] = "0123456789abcdefABCDEF";
    if (strncmp(text, name, sizeof name - 1) == 0) text += sizeof name - 1;
    if (strlen(text) != 8 || strspn(text, digits) != 8) return false;
    snprintf(digest, TSR_DIGEST_CHARS, "%s%08lx", name, strtoul(text, NULL, 16));
    return true;
}

/* ---- of what is written and read through a store ---------------------------------------------- */

/* A store's own operations, but for writes or reads. */
typedef struct {
    tsr_store_ops ops;
    const tsr_store_ops *own;
    tsr_digest *digest;
    tsr_written *written;
} summing;

static summing *summing_of(const tsr_store *store) {
    return (summing *)((char *)(uintptr_t)store->ops - offsetof(summing, ops));
}

static tsr_status write_summed(tsr_store *store, tsr_rect rect, const void *from, int64_t ld) {
    summing *s = summing_of(store);
    const uint32_t sum = tsr_digest_sum(&store->desc, rect, (void *)(uintptr_t)from, ld); /* nothing is turned */
    if (s->written) TSR_TRY(tsr_written_note(s->written, &store->desc, rect, sum));
    TSR_TRY(s->own->write(store, rect, from, ld));
    if (s->digest) atomic_fetch_xor(&s->digest->parts, sum);
    return TSR_OK;
}

static tsr_status read_summed(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    summing *s = summing_of(store);
    const size_t element = tsr_dtype_bytes(store->desc.element.dtype);
    const tsr_status status = s->own->read(store, rect, to, ld);
    if (status == TSR_OK) tsr_digest_add(s->digest, &store->desc, rect, to, ld);
    if (status != TSR_ERR_FORMAT) return status;
    tsr_message_set("");
    atomic_store(&s->digest->damaged, true);
    for (int64_t r = 0; r < rect.rows; r++)
        memset((char *)to + (size_t)(r * ld) * element, 0, (size_t)rect.cols * element);
    return TSR_OK;
}

static void close_summed(tsr_store *store) {
    summing *s = summing_of(store);
    store->ops = s->own;
    free(s);
    store->ops->close(store);
}

static tsr_status begin_summing(tsr_store *store, summing **begun) {
    if (store->ops->map || store->desc.element.swapped)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "what is summed up is in a file: leave --digest and --check files out");
    summing *s = malloc(sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to sum up a file's matrix");
    *s = (summing){.ops = *store->ops, .own = store->ops};
    s->ops.close = close_summed;
    store->ops = &s->ops;
    *begun = s;
    return TSR_OK;
}

tsr_status tsr_digest_writes(tsr_store *store, tsr_digest *digest, tsr_written *written) {
    summing *s = NULL;
    TSR_TRY(begin_summing(store, &s));
    s->digest = digest;
    s->written = written;
    s->ops.write = write_summed;
    if (written) written->desc = store->desc;
    return TSR_OK;
}

tsr_status tsr_digest_reads(tsr_store *store, tsr_digest *digest) {
    summing *s = NULL;
    TSR_TRY(begin_summing(store, &s));
    s->digest = digest;
    s->ops.read = read_summed;
    return TSR_OK;
}

/* ---- of what is read ------------------------------------------------------------------------- */

tsr_status tsr_digest_read(tsr_store *store, int64_t first, int64_t step, bool (*stopped)(void *context), void *context,
                           tsr_digest *digest) {
    const tsr_store_desc *desc = &store->desc;
    const int64_t row_bytes = tsr_max(1, desc->cols * (int64_t)tsr_dtype_bytes(desc->element.dtype));
    const int64_t unit = tsr_max(1, store->unit_rows), fits = tsr_max(1, BAND_BYTES / row_bytes);
    const int64_t rows = tsr_min(tsr_max(1, desc->rows), tsr_round_up(fits, unit));
    const int64_t bands = tsr_ceil_div(desc->rows, rows);
    void *buffer = malloc((size_t)(rows * row_bytes));
    if (!buffer)
        return tsr_fail(TSR_ERR_MEMORY, "no memory to read %lld rows of '%s'", (long long)rows, desc->name.file);
    tsr_status status = TSR_OK;
    for (int64_t i = first; i < bands * desc->matrices && status == TSR_OK; i += step) {
        const int64_t row = i % bands * rows;
        const tsr_rect rect = {row, 0, tsr_min(rows, desc->rows - row), desc->cols};
        tsr_store_select(store, i / bands);
        if (stopped && stopped(context)) status = tsr_fail(TSR_ERR_STOPPED, "stopped on request");
        else status = store->ops->read(store, rect, buffer, rect.cols);
        if (status == TSR_OK) tsr_digest_add(digest, desc, rect, buffer, rect.cols);
    }
    free(buffer);
    return status;
}
