/* Breaks products of `exact`, in a program linked with the kernel as built with TSR_TEST_FLIPS: at TSR_FLIP_PLACE (A, B
 * or C), from the call TSR_FLIP_FIRST on (0), at TSR_FLIP_COUNT of them (1), on the rank TSR_FLIP_RANK (0), bit
 * TSR_FLIP_BIT of what lies there is another. In the call TSR_FLIP_STOP that rank is asked to stop. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/gemm/flips.h"

static long number(const char *name, long usual) {
    const char *text = getenv(name);
    return text ? atol(text) : usual;
}

void tsr_test_flip(tsr_flip_place place, tsr_stream *stream, void *memory, size_t bytes) {
    static atomic_long calls;
    static const char *const names[] = {[TSR_FLIP_A] = "A", [TSR_FLIP_B] = "B", [TSR_FLIP_C] = "C"};
    const char *wanted = getenv("TSR_FLIP_PLACE"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    (void)stream;
    if (!wanted || place > TSR_FLIP_C || strcmp(wanted, names[place]) != 0) return;
    if (atol(rank ? rank : "0") != number("TSR_FLIP_RANK", 0)) return;
    const long call = atomic_fetch_add(&calls, 1), first = number("TSR_FLIP_FIRST", 0);
    if (call == number("TSR_FLIP_STOP", -1)) kill(getpid(), SIGTERM);
    if (call < first || call >= first + number("TSR_FLIP_COUNT", 1)) return;
    const size_t bit = (size_t)number("TSR_FLIP_BIT", 0) % (8 * bytes);
    ((unsigned char *)memory)[bit / 8] ^= (unsigned char)(1u << bit % 8);
}
