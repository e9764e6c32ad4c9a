/* What the emulated kernels flip in a test that has no tsr_test_flip of its own: nothing. In a library, for the linker
 * to leave out where a test has one. */
#define TSR_TEST_FLIPS 1
#include "kernels/gemm/flips.h"

void tsr_test_flip(tsr_flip_place place, tsr_stream *stream, void *memory, size_t bytes) {
    (void)place;
    (void)stream;
    (void)memory;
    (void)bytes;
}
