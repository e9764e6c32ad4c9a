/* The textbook's memory kernels: copies, transposes, access patterns, sums of squares and the image blur. Each works
 * on the same n × n floats, so that their bandwidths compare; none multiplies matrices. `tessera bench memory` runs
 * them all.
 * Requirements of all: n a multiple of TSR_MEMORY_MULTIPLE; in and out 16-byte aligned; asynchronous on the stream
 * given. */
#ifndef TSR_KERNELS_MEMORY_PATTERNS_H
#define TSR_KERNELS_MEMORY_PATTERNS_H

#include "kernels/base/half.h"
#include "kernels/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_MEMORY_MULTIPLE 32
#define TSR_MEMORY_WARP 32       /* lanes that access memory together */
#define TSR_MEMORY_SECTOR 32     /* bytes: the least that memory delivers */
#define TSR_MEMORY_STRIDE 8      /* of the strided pattern: 8 floats are a sector */
#define TSR_MEMORY_FEW (1 << 20) /* elements for kernels that use little of the device */

typedef enum {
    TSR_PATTERN_SEQUENTIAL, /* lane by lane */
    TSR_PATTERN_PERMUTED,   /* a warp's elements in another order */
    TSR_PATTERN_OFFSET,     /* sequential, but one element on: a warp's 128 bytes lie in five sectors */
    TSR_PATTERN_STRIDED,    /* every lane in a sector of its own */
    TSR_PATTERN_BROADCAST   /* one element for all lanes */
} tsr_pattern;

/* Element of `in` read by thread x of `rows` in part y of TSR_MEMORY_STRIDE, which writes element y·rows + x. */
TSR_HOST_DEVICE static inline int64_t tsr_pattern_index(tsr_pattern pattern, int64_t x, int64_t y, int64_t rows) {
    const int64_t at = y * rows + x;
    switch (pattern) {
    case TSR_PATTERN_PERMUTED: return at ^ 21;
    case TSR_PATTERN_OFFSET: return at + 1 < rows * TSR_MEMORY_STRIDE ? at + 1 : 0;
    case TSR_PATTERN_STRIDED: return x * TSR_MEMORY_STRIDE + y;
    case TSR_PATTERN_BROADCAST: return at / TSR_MEMORY_WARP;
    case TSR_PATTERN_SEQUENTIAL: break;
    }
    return at;
}

typedef struct {
    int64_t n;
    const float *in; /* n × n; for sums small integers, whose squares add up exactly */
    float *out;      /* n × n */
} tsr_memory_args;

/* What `out` holds afterwards. */
typedef enum {
    TSR_MEMORY_COPY,      /* out = in */
    TSR_MEMORY_TRANSPOSE, /* out = inᵀ */
    /* out[y·rows + x] = in[tsr_pattern_index(pattern, x, y, rows)], rows = n²/TSR_MEMORY_STRIDE */
    TSR_MEMORY_PATTERN,
    TSR_MEMORY_READ, /* words whose exclusive or is that of in's; the rest of out as it was (zeros: see paint) */
    TSR_MEMORY_SUM,  /* the sum of squares as a double in the first 8 bytes */
    TSR_MEMORY_BLUR  /* mean of the 3 × 3 neighbours inside the image */
} tsr_memory_result;

typedef struct tsr_memory_kernel {
    const char *name; /* "transpose-padded" */
    const char *what; /* one line */
    tsr_device_kind device;
    tsr_memory_result result;
    tsr_pattern pattern;    /* of TSR_MEMORY_PATTERN */
    int64_t most_elements;  /* works on the first so many of `in`; 0: on all */
    double effective_bytes; /* an element: what has to be read and written once */
    double asked_bytes;     /* an element: what the kernel's loads and stores ask for */
    double flops;           /* an element */
    /* Element that a lane of the first warp loads, and stores; NULL where the degree of coalescing says nothing new. */
    int64_t (*load_at)(int64_t n, int lane);
    int64_t (*store_at)(int64_t n, int lane);
    tsr_status (*launch)(tsr_device *device, tsr_stream *stream, const tsr_memory_args *args);
} tsr_memory_kernel;

/* Every memory kernel of this build, in the textbook's order; none without CUDA or its emulation. */
const tsr_memory_kernel *const *tsr_memory_kernels(int *count);

int64_t tsr_memory_elements(const tsr_memory_kernel *kernel, int64_t n); /* of `in` it works on */
int tsr_memory_paint(const tsr_memory_kernel *kernel); /* byte that `out` has to be full of before: 0xff (NaN), or 0 */
/* Checks n and launches. */
tsr_status tsr_memory_launch(const tsr_memory_kernel *kernel, tsr_device *device, tsr_stream *stream,
                             const tsr_memory_args *args);
/* Compares out (n × n, host memory) with what the kernel should make of in (n × n, host memory): TSR_ERR_CHECK names
 * the element. */
tsr_status tsr_memory_check(const tsr_memory_kernel *kernel, int64_t n, const float *in, const float *out);

/* Bytes requested by `lanes` (≤ 32) accesses of `bytes` each at byte addresses `at`, over the bytes of the 32-byte
 * sectors touched.
 * 1: nothing is fetched in vain; above 1: lanes share bytes. `bytes` ≤ 16, and no access crosses a sector. */
double tsr_coalescing(const int64_t *at, int lanes, int64_t bytes);
/* The same for the first warp's loads or stores of floats of a kernel; 0 where it does not say where they are. */
double tsr_memory_load_coalescing(const tsr_memory_kernel *kernel, int64_t n);
double tsr_memory_store_coalescing(const tsr_memory_kernel *kernel, int64_t n);

/* patterns_cuda.cu */
extern const tsr_memory_kernel tsr_memory_copy, tsr_memory_copy_wide, tsr_memory_read;
extern const tsr_memory_kernel tsr_memory_transpose_read, tsr_memory_transpose_write, tsr_memory_transpose_ldg,
    tsr_memory_transpose_tile, tsr_memory_transpose_padded;
extern const tsr_memory_kernel tsr_memory_sequential, tsr_memory_permuted, tsr_memory_offset, tsr_memory_strided,
    tsr_memory_broadcast;
extern const tsr_memory_kernel tsr_memory_blur;
/* norms.cu */
extern const tsr_memory_kernel tsr_memory_sum_thread, tsr_memory_sum_block, tsr_memory_sum_interleaved,
    tsr_memory_sum_sequential, tsr_memory_sum_first_add, tsr_memory_sum_grid;

#ifdef __cplusplus
}
#endif
#endif
