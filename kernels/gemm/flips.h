/* Where a test build (TSR_TEST_FLIPS) breaks products of `exact`, to see whether their check finds it. Nothing in other
 * builds. */
#ifndef TSR_KERNELS_GEMM_FLIPS_H
#define TSR_KERNELS_GEMM_FLIPS_H

#include "kernels/device/device.h"

typedef enum {
    TSR_FLIP_A,      /* integers of A, or its planes of residues, after they were added up */
    TSR_FLIP_B,      /* of B */
    TSR_FLIP_C,      /* sums of their products, or residues of them, before they are compared */
    TSR_FLIP_LOOP,   /* an element that the loop made, on the CPU */
    TSR_FLIP_TILE_A, /* a word of A or B in shared memory */
    TSR_FLIP_TILE_B,
    TSR_FLIP_SUM, /* a sum in a register */
    TSR_FLIP_PLACES
} tsr_flip_place;

#ifdef TSR_TEST_FLIPS
#ifdef __cplusplus
extern "C" {
#endif
/* May change memory of the device, in the stream's order; `stream` is NULL on the CPU. */
void tsr_test_flip(tsr_flip_place place, tsr_stream *stream, void *memory, size_t bytes);
#ifdef __cplusplus
}
#endif
#define TSR_FLIP(place, stream, memory, bytes) tsr_test_flip(place, stream, memory, bytes)
#else
#define TSR_FLIP(place, stream, memory, bytes) ((void)0)
#endif

/* Within a kernel: in the emulation alone. */
#if defined(TSR_TEST_FLIPS) && defined(TSR_EMULATE_CUDA)
#define TSR_FLIP_WORD(place, word) tsr_test_flip(place, NULL, word, sizeof *(word))
#else
#define TSR_FLIP_WORD(place, word) ((void)0)
#endif

#endif
