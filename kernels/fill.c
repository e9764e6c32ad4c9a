/* Generated matrices: element (i, j) from Philox4x32-10 with counter (i, j) and key seed. Salmon, Moraes, Dror, Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
#include "kernels/fill.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/philox.h"

static const char *const names[] = {
    [TSR_FILL_UNIFORM] = "uniform",
    [TSR_FILL_NORMAL] = "normal",
    [TSR_FILL_INTEGER] = "integer",
    [TSR_FILL_IDENTITY] = "identity",
};

const char *tsr_fill_name(tsr_fill_kind kind) { return names[kind]; }

tsr_status tsr_fill_parse(const char *name, tsr_fill_kind *kind) {
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0) return *kind = (tsr_fill_kind)i, TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "unknown distribution '%s': use uniform, normal, integer or identity", name);
}

/* 53 bits as a number in [0, 1) */
static double unit(uint32_t high, uint32_t low) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

double tsr_fill_element(tsr_fill_kind kind, uint64_t seed, int64_t i, int64_t j) {
    const double two_pi = 6.283185307179586477;
    if (kind == TSR_FILL_IDENTITY) return i == j ? 1.0 : 0.0;
    uint32_t random[4] = {(uint32_t)i, (uint32_t)((uint64_t)i >> 32), (uint32_t)j, (uint32_t)((uint64_t)j >> 32)};
    tsr_philox4x32_10(random, (uint32_t)seed, (uint32_t)(seed >> 32));
    switch (kind) {
    case TSR_FILL_UNIFORM: return unit(random[0], random[1]);
    case TSR_FILL_INTEGER: return (double)((int)((uint64_t)random[0] * 9 >> 32) - 4);
    case TSR_FILL_NORMAL: /* 1 - u lies in (0, 1]: its logarithm is finite */
        return sqrt(-2.0 * log(1.0 - unit(random[0], random[1]))) * cos(two_pi * unit(random[2], random[3]));
    case TSR_FILL_IDENTITY: break;
    }
    return 0.0;
}

/* Integer types take the value cut towards zero, unsigned ones 0 for what is negative. */
static void store(tsr_dtype dtype, void *row, int64_t j, double value) {
    double natural = value > 0 ? value : 0;
    switch (dtype) {
    case TSR_F16: ((uint16_t *)row)[j] = tsr_half_encode(value); break;
    case TSR_BF16: ((uint16_t *)row)[j] = tsr_bf16_encode(value); break;
    case TSR_F32: ((float *)row)[j] = (float)value; break;
    case TSR_F64: ((double *)row)[j] = value; break;
    case TSR_I8: ((int8_t *)row)[j] = (int8_t)value; break;
    case TSR_I16: ((int16_t *)row)[j] = (int16_t)value; break;
    case TSR_I32: ((int32_t *)row)[j] = (int32_t)value; break;
    case TSR_I64: ((int64_t *)row)[j] = (int64_t)value; break;
    case TSR_U8: ((uint8_t *)row)[j] = (uint8_t)natural; break;
    case TSR_U16: ((uint16_t *)row)[j] = (uint16_t)natural; break;
    case TSR_U32: ((uint32_t *)row)[j] = (uint32_t)natural; break;
    case TSR_U64: ((uint64_t *)row)[j] = (uint64_t)natural; break;
    case TSR_DTYPE_COUNT: break;
    }
}

tsr_status tsr_fill_host(tsr_fill_kind kind, uint64_t seed, int64_t row, int64_t col, tsr_view to) {
    size_t bytes;
    if (to.element.swapped)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "fill writes this machine's byte order only: swap afterwards");
    TSR_TRY(tsr_bytes_checked(to.rows, to.ld, tsr_dtype_bytes(to.element.dtype), &bytes));
    for (int64_t i = 0; i < to.rows; i++) {
        char *line = (char *)to.data + (size_t)(i * to.ld) * tsr_dtype_bytes(to.element.dtype);
        for (int64_t j = 0; j < to.cols; j++)
            store(to.element.dtype, line, j, tsr_fill_element(kind, seed, row + i, col + j));
    }
    return TSR_OK;
}

static tsr_status fill_cpu(tsr_device *device, tsr_stream *stream, tsr_fill_kind kind, uint64_t seed, int64_t row, int64_t col, tsr_view to) {
    (void)device, (void)stream;
    return tsr_fill_host(kind, seed, row, col, to);
}

const tsr_fill_ops tsr_fill_cpu = {TSR_DEVICE_CPU, fill_cpu};
