/* Where a test build (TSR_TEST_FLIPS) breaks products of `exact`, to see whether their check finds it. Nothing in other
 * builds. */
#ifndef TSR_KERNELS_GEMM_FLIPS_H
#define TSR_KERNELS_GEMM_FLIPS_H

#include "kernels/device/device.h"

typedef enum {
    TSR_FLIP_A,      /* integers of A, or its planes of residues, after they were added up */
    TSR_FLIP_B,      /* of B */
    TSR_FLIP_C,      /* sums of products of residues, or residues of them, before they are compared */
    TSR_FLIP_LOOP,   /* an element that the loop made */
    TSR_FLIP_TILE_A, /* a word of A or B in shared memory; on the CPU residues of a step */
    TSR_FLIP_TILE_B,
    TSR_FLIP_SUM,     /* a sum in a register */
    TSR_FLIP_INTEGER, /* an integer of C, made of its residues */
    TSR_FLIP_PLACES
} tsr_flip_place;

#ifdef TSR_TEST_FLIPS
#ifdef __cplusplus
extern "C" {
#endif
/* May change memory of the device, in the stream's order; `stream` is NULL on the CPU. */
void tsr_test_flip(tsr_flip_place place, tsr_stream *stream, void *memory, size_t bytes);

/* What kernels on a GPU flip: of the words of a place, in whatever order they are made, one. In device memory, by
 * file. */
typedef struct {
    unsigned long long made; /* so many up to now */
    unsigned long long chosen, bit;
    tsr_flip_place place;
} tsr_flip_words;
#define TSR_FLIP_NONE (~0ull)                                           /* `chosen` then */
tsr_status tsr_test_flip_words(tsr_flip_words **on_device);             /* of exact.cu */
tsr_status tsr_test_flip_words_of_products(tsr_flip_words **on_device); /* of products_hopper.cu */
#ifdef __cplusplus
}
#endif
#define TSR_FLIP(place, stream, memory, bytes) tsr_test_flip(place, stream, memory, bytes)
#else
#define TSR_FLIP(place, stream, memory, bytes) ((void)0)
#endif

/* Within a kernel. In the emulation the test flips, a GPU does itself. The file that is built so names its words
 * (TSR_FLIP_WORDS). */
#if defined(TSR_TEST_FLIPS) && defined(TSR_EMULATE_CUDA)
#define TSR_FLIP_WORD(place, word) tsr_test_flip(place, NULL, word, sizeof *(word))
#elif defined(TSR_TEST_FLIPS) && defined(__CUDACC__)
#include "kernels/device/cuda_compat.h"
static __device__ tsr_flip_words tsr_flipped = {0, TSR_FLIP_NONE, 0, TSR_FLIP_PLACES};
extern "C" tsr_status TSR_FLIP_WORDS(tsr_flip_words **on_device) {
    return TSR_CUDA(cudaGetSymbolAddress(reinterpret_cast<void **>(on_device), tsr_flipped));
}
template <typename Word> __device__ __forceinline__ void tsr_flip_word(tsr_flip_place place, Word *word) {
    if (place != tsr_flipped.place || atomicAdd(&tsr_flipped.made, 1ull) != tsr_flipped.chosen) return;
    unsigned char *byte = reinterpret_cast<unsigned char *>(word) + tsr_flipped.bit / 8 % sizeof *word;
    *byte = (unsigned char)(*byte ^ 1u << tsr_flipped.bit % 8);
}
#define TSR_FLIP_WORD(place, word) tsr_flip_word(place, word)
#else
#define TSR_FLIP_WORD(place, word) ((void)0)
#endif

#endif
