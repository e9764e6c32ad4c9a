/* The host's side of the memory kernels: the list of them, how well a warp's accesses coalesce, and what every
 * result has to be. */
#include "kernels/memory/patterns.h"

#include <inttypes.h>
#include <string.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))
#define TILE 64 /* transposes are compared tile by tile, for the caches */

#if defined(TSR_HAVE_CUDA) || defined(TSR_EMULATE_CUDA)
static const tsr_memory_kernel *const kernels[] = {
    &tsr_memory_copy,
    &tsr_memory_copy_wide,
    &tsr_memory_read,
    &tsr_memory_transpose_read,
    &tsr_memory_transpose_write,
    &tsr_memory_transpose_ldg,
    &tsr_memory_transpose_tile,
    &tsr_memory_transpose_padded,
    &tsr_memory_sequential,
    &tsr_memory_permuted,
    &tsr_memory_offset,
    &tsr_memory_strided,
    &tsr_memory_broadcast,
    &tsr_memory_sum_thread,
    &tsr_memory_sum_block,
    &tsr_memory_sum_interleaved,
    &tsr_memory_sum_sequential,
    &tsr_memory_sum_first_add,
    &tsr_memory_sum_grid,
    &tsr_memory_blur,
};

const tsr_memory_kernel *const *tsr_memory_kernels(int *count) {
    *count = COUNT(kernels);
    return kernels;
}
#else
const tsr_memory_kernel *const *tsr_memory_kernels(int *count) {
    *count = 0;
    return NULL;
}
#endif

int64_t tsr_memory_elements(const tsr_memory_kernel *kernel, int64_t n) {
    return kernel->most_elements > 0 ? tsr_min(n * n, kernel->most_elements) : n * n;
}

int tsr_memory_paint(const tsr_memory_kernel *kernel) { return kernel->result == TSR_MEMORY_READ ? 0 : 0xff; }

tsr_status tsr_memory_launch(const tsr_memory_kernel *kernel, tsr_device *device, tsr_stream *stream,
                             const tsr_memory_args *args) {
    if (args->n < TSR_MEMORY_MULTIPLE || args->n % TSR_MEMORY_MULTIPLE != 0)
        return tsr_fail(TSR_ERR_SHAPE, "memory kernel '%s': n = %" PRId64 " is no multiple of %d: use one",
                        kernel->name, args->n, TSR_MEMORY_MULTIPLE);
    return kernel->launch(device, stream, args);
}

/* ---- coalescing ------------------------------------------------------------------------------ */

double tsr_coalescing(const int64_t *at, int lanes, int64_t bytes) {
    int sectors = 0;
    for (int lane = 0; lane < lanes; lane++) {
        bool known = false;
        for (int before = 0; before < lane && !known; before++)
            known = at[before] / TSR_MEMORY_SECTOR == at[lane] / TSR_MEMORY_SECTOR;
        sectors += !known;
    }
    return (double)(lanes * bytes) / (double)(sectors * TSR_MEMORY_SECTOR);
}

static double coalescing_of(int64_t (*element)(int64_t n, int lane), int64_t n) {
    int64_t at[TSR_MEMORY_WARP];
    if (!element) return 0;
    for (int lane = 0; lane < TSR_MEMORY_WARP; lane++) at[lane] = element(n, lane) * (int64_t)sizeof(float);
    return tsr_coalescing(at, TSR_MEMORY_WARP, sizeof(float));
}

double tsr_memory_load_coalescing(const tsr_memory_kernel *kernel, int64_t n) {
    return coalescing_of(kernel->load_at, n);
}
double tsr_memory_store_coalescing(const tsr_memory_kernel *kernel, int64_t n) {
    return coalescing_of(kernel->store_at, n);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static tsr_status wrong(const tsr_memory_kernel *kernel, int64_t at, double found, double expected) {
    return tsr_fail(TSR_ERR_CHECK,
                    "memory kernel '%s': element %" PRId64
                    " is %.9g and should be %.9g: do not trust this device, and report this",
                    kernel->name, at, found, expected);
}

static tsr_status check_copy(const tsr_memory_kernel *kernel, int64_t n, const float *in, const float *out) {
    for (int64_t at = 0; at < n * n; at++)
        if (!(out[at] == in[at])) return wrong(kernel, at, (double)out[at], (double)in[at]);
    return TSR_OK;
}

static tsr_status check_transpose(const tsr_memory_kernel *kernel, int64_t n, const float *in, const float *out) {
    for (int64_t i0 = 0; i0 < n; i0 += TILE)
        for (int64_t j0 = 0; j0 < n; j0 += TILE)
            for (int64_t i = i0; i < tsr_min(i0 + TILE, n); i++)
                for (int64_t j = j0; j < tsr_min(j0 + TILE, n); j++)
                    if (!(out[i * n + j] == in[j * n + i]))
                        return wrong(kernel, i * n + j, (double)out[i * n + j], (double)in[j * n + i]);
    return TSR_OK;
}

static tsr_status check_pattern(const tsr_memory_kernel *kernel, int64_t n, const float *in, const float *out) {
    const int64_t rows = n * n / TSR_MEMORY_STRIDE;
    for (int64_t y = 0; y < TSR_MEMORY_STRIDE; y++)
        for (int64_t x = 0; x < rows; x++) {
            int64_t from = tsr_pattern_index(kernel->pattern, x, y, rows);
            if (!(out[y * rows + x] == in[from]))
                return wrong(kernel, y * rows + x, (double)out[y * rows + x], (double)in[from]);
        }
    return TSR_OK;
}

static uint32_t all_words(int64_t elements, const float *data) {
    uint32_t folded = 0;
    for (int64_t at = 0; at < elements; at++) {
        uint32_t word;
        memcpy(&word, &data[at], sizeof word);
        folded ^= word;
    }
    return folded;
}

static tsr_status check_read(const tsr_memory_kernel *kernel, int64_t n, const float *in, const float *out) {
    uint32_t found = all_words(n * n, out), expected = all_words(n * n, in);
    if (found == expected) return TSR_OK;
    return tsr_fail(TSR_ERR_CHECK,
                    "memory kernel '%s': the exclusive or is %08" PRIx32 " and should be %08" PRIx32
                    ": do not trust this device, and report this",
                    kernel->name, found, expected);
}

static tsr_status check_sum(const tsr_memory_kernel *kernel, int64_t n, const float *in, const float *out) {
    const int64_t elements = tsr_memory_elements(kernel, n);
    double expected = 0, found;
    for (int64_t at = 0; at < elements; at++) expected += (double)in[at] * (double)in[at];
    memcpy(&found, out, sizeof found);
    return found == expected ? TSR_OK : wrong(kernel, 0, found, expected);
}

static float blurred(int64_t n, const float *in, int64_t i, int64_t j) {
    float sum = 0, pixels = 0;
    for (int64_t y = tsr_max(i - 1, 0); y <= tsr_min(i + 1, n - 1); y++)
        for (int64_t x = tsr_max(j - 1, 0); x <= tsr_min(j + 1, n - 1); x++) {
            sum += in[y * n + x];
            pixels += 1;
        }
    return sum / pixels;
}

static tsr_status check_blur(const tsr_memory_kernel *kernel, int64_t n, const float *in, const float *out) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            float expected = blurred(n, in, i, j);
            if (!(out[i * n + j] == expected))
                return wrong(kernel, i * n + j, (double)out[i * n + j], (double)expected);
        }
    return TSR_OK;
}

tsr_status tsr_memory_check(const tsr_memory_kernel *kernel, int64_t n, const float *in, const float *out) {
    switch (kernel->result) {
    case TSR_MEMORY_COPY: return check_copy(kernel, n, in, out);
    case TSR_MEMORY_TRANSPOSE: return check_transpose(kernel, n, in, out);
    case TSR_MEMORY_PATTERN: return check_pattern(kernel, n, in, out);
    case TSR_MEMORY_READ: return check_read(kernel, n, in, out);
    case TSR_MEMORY_SUM: return check_sum(kernel, n, in, out);
    case TSR_MEMORY_BLUR: return check_blur(kernel, n, in, out);
    }
    return tsr_fail(TSR_ERR_UNSUPPORTED, "memory kernel '%s': result %d is unknown: use one of tsr_memory_result",
                    kernel->name, (int)kernel->result);
}
