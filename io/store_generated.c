/* A matrix computed as it is read: element (i, j) is a function of seed, i and j (kernels/fill/fill.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/store.h"

static tsr_status generated_read(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    const tsr_store_desc *desc = &store->desc;
    TSR_TRY(tsr_store_check_rect(desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    tsr_view view = {to, desc->element, rect.rows, rect.cols, ld};
    return tsr_fill_host(desc->fill, desc->seed, rect.row, rect.col, view);
}

static tsr_status generated_write(tsr_store *store, tsr_rect rect, const void *from, int64_t ld) {
    (void)rect;
    (void)from;
    (void)ld;
    return tsr_fail(TSR_ERR_USAGE, "a generated matrix (%s, seed %llu) cannot be written",
                    tsr_fill_name(store->desc.fill), (unsigned long long)store->desc.seed);
}

static tsr_status generated_sync(tsr_store *store) {
    (void)store;
    return TSR_OK;
}

static void generated_close(tsr_store *store) { free(store); }

static const tsr_store_ops generated_ops = {
    .name = "generated",
    .read = generated_read,
    .write = generated_write,
    .sync = generated_sync,
    .close = generated_close,
};

tsr_status tsr_generated_open(tsr_fill_kind fill, uint64_t seed, int64_t rows, int64_t cols, tsr_dtype dtype,
                              tsr_store **store) {
    if (rows < 0 || cols < 0)
        return tsr_fail(TSR_ERR_SHAPE, "generated matrix of %lldx%lld; rows and columns must be 0 or more",
                        (long long)rows, (long long)cols);
    tsr_store *s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to open a generated matrix");
    tsr_store_desc *desc = &s->desc;
    s->ops = &generated_ops;
    desc->generated = true;
    snprintf(desc->name.file, sizeof desc->name.file, "generated");
    tsr_store_set_shape(desc, &(tsr_shape){2, {rows, cols}});
    desc->element.dtype = dtype;
    desc->offset = -1;
    desc->fill = fill;
    desc->seed = seed;
    snprintf(desc->type_name, sizeof desc->type_name, "%s", tsr_dtype_name(dtype));
    *store = s;
    return TSR_OK;
}
