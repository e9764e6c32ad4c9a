/* What tests of tessera_multiply_matrices have in common: this rank, a context, numbers that are the same on every
 * rank, and refusals. They know no more than tessera.h. */
#ifndef TSR_TESTS_APP_LIBRARY_CALLS_H
#define TSR_TESTS_APP_LIBRARY_CALLS_H

#include "tests/app/library/tessera_check.h"

static int rank, ranks;
static tessera_context *tessera;
static unsigned long long state; /* of below */

/* As good as random, the same on every rank. */
static inline int below(int limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (unsigned long long)limit);
}

static inline void fails(const tessera_matrix *a, const tessera_matrix *b, const tessera_matrix *c,
                         const tessera_multiply_options *o, int expected, const char *says) {
    CHECK_FAILS(tessera_multiply_matrices(tessera, a, b, c, o, NULL), expected, says);
}

/* Starts MPI, and a context on all ranks; numbers begin with `seed`. */
static inline void begin_calls(int *argc, char ***argv, unsigned long long seed) {
    int granted;
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK_OK(tessera_open(MPI_COMM_WORLD, NULL, &tessera));
    state = seed;
}

static inline void end_calls(void) {
    tessera_close(tessera);
    MPI_Finalize();
}

#endif
