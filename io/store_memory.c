/* A matrix that is in memory already: rectangles are copied row by row. The caller owns the data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/stores.h"

typedef struct {
    tsr_store base;
    tsr_view data;
} memory_store;

static char *element_at(const tsr_view *view, int64_t row, int64_t col) {
    return (char *)view->data + (size_t)(row * view->ld + col) * tsr_dtype_bytes(view->element.dtype);
}

static tsr_status memory_read(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    const tsr_view *data = &((memory_store *)store)->data;
    TSR_TRY(tsr_store_check_rect(&store->desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    size_t element = tsr_dtype_bytes(data->element.dtype);
    for (int64_t r = 0; r < rect.rows; r++)
        memcpy((char *)to + (size_t)(r * ld) * element, element_at(data, rect.row + r, rect.col),
               (size_t)rect.cols * element);
    return TSR_OK;
}

static tsr_status memory_write(tsr_store *store, tsr_rect rect, const void *from, int64_t ld) {
    const tsr_view *data = &((memory_store *)store)->data;
    TSR_TRY(tsr_store_check_rect(&store->desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    size_t element = tsr_dtype_bytes(data->element.dtype);
    for (int64_t r = 0; r < rect.rows; r++)
        memcpy(element_at(data, rect.row + r, rect.col), (const char *)from + (size_t)(r * ld) * element,
               (size_t)rect.cols * element);
    return TSR_OK;
}

static tsr_status memory_sync(tsr_store *store) {
    (void)store;
    return TSR_OK;
}

static void *memory_map(tsr_store *store, tsr_rect rect, int64_t *ld) {
    const tsr_view *data = &((memory_store *)store)->data;
    *ld = data->ld;
    return element_at(data, rect.row, rect.col);
}

static void memory_close(tsr_store *store) { free(store); }

static const tsr_store_ops memory_ops = {
    .name = "memory",
    .read = memory_read,
    .write = memory_write,
    .sync = memory_sync,
    .close = memory_close,
    .map = memory_map,
};

tsr_status tsr_memory_open(tsr_view data, tsr_store **store) {
    if (data.rows < 0 || data.cols < 0 || data.ld < data.cols)
        return tsr_fail(TSR_ERR_SHAPE,
                        "matrix in memory of %lldx%lld with rows of %lld elements; rows must hold the columns",
                        (long long)data.rows, (long long)data.cols, (long long)data.ld);
    memory_store *s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to open a matrix in memory");
    s->base.ops = &memory_ops;
    s->base.copies_memory = true;
    s->data = data;
    tsr_status status =
        tsr_memory_describe("memory", &(tsr_shape){2, {data.rows, data.cols}}, data.element, &s->base.desc);
    if (status == TSR_OK) *store = &s->base;
    else free(s);
    return status;
}

static const char *memory_storage(const tsr_store_desc *desc, char *text, size_t chars) {
    snprintf(text, chars, "%s", desc->name.file);
    return text;
}

const tsr_store_kind tsr_memory_kind = {.name = "memory", .storage = memory_storage};
