/* Generated matrices in host memory: names, elements, parts (fill_element.h has the arithmetic). */
#include "kernels/fill/fill.h"

#include <string.h>

#include "kernels/fill/fill_element.h"

static const char *const names[] = {
    [TSR_FILL_UNIFORM] = "uniform",
    [TSR_FILL_NORMAL] = "normal",
    [TSR_FILL_INTEGER] = "integer",
    [TSR_FILL_IDENTITY] = "identity",
};

const char *tsr_fill_name(tsr_fill_kind kind) { return names[kind]; }

tsr_status tsr_fill_parse(const char *name, tsr_fill_kind *kind) {
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0) {
            *kind = (tsr_fill_kind)i;
            return TSR_OK;
        }
    return tsr_fail(TSR_ERR_USAGE, "unknown distribution '%s': use uniform, normal, integer or identity", name);
}

double tsr_fill_element(tsr_fill_kind kind, uint64_t seed, int64_t i, int64_t j) {
    return tsr_fill_value(kind, seed, i, j);
}

tsr_status tsr_fill_host(tsr_fill_kind kind, uint64_t seed, int64_t row, int64_t col, tsr_view to) {
    TSR_TRY(tsr_fill_check(to));
    const int parts = tsr_fill_as_parts(&to, &col);
    for (int64_t i = 0; i < to.rows; i++) {
        char *line = (char *)to.data + (size_t)(i * to.ld) * tsr_dtype_bytes(to.element.dtype);
        for (int64_t j = 0; j < to.cols; j++)
            tsr_element_store(to.element.dtype, line, j, tsr_fill_part(kind, seed, parts, row + i, col + j));
    }
    return TSR_OK;
}

static tsr_status fill_cpu(tsr_device *device, tsr_stream *stream, tsr_fill_kind kind, uint64_t seed, int64_t row,
                           int64_t col, tsr_view to) {
    (void)device;
    (void)stream;
    return tsr_fill_host(kind, seed, row, col, to);
}

const tsr_fill_ops tsr_fill_cpu = {.device = TSR_DEVICE_CPU, .fill = fill_cpu};

static const tsr_fill_ops *const fills[] = {
    &tsr_fill_cpu,
#ifdef TSR_CUDA_TABLES
    &tsr_fill_cuda,
#endif
};

const tsr_fill_ops *tsr_fill_find(tsr_device_kind device) {
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        if (fills[i]->device == device) return fills[i];
    return NULL;
}
