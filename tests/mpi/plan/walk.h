/* What a plan makes its ranks do, gone through in one process: every element of C is written once and summed over all
 * of k once. Every element of A and B is read once a sweep or, where it stays, once in all. No step leaves its buffer,
 * cuts lie on whole units, and the order of steps can be executed one by one. Ranks of an axis make the same collective
 * calls. What is wrong ends the program (check.h). */
#ifndef TSR_TESTS_MPI_PLAN_WALK_H
#define TSR_TESTS_MPI_PLAN_WALK_H

#include "mpi/plan/plan.h"

void tsr_test_simulate(const tsr_plan *plan);
/* C is read again, and compared: all of A, B and C is read, C once, and each of its elements judged once. */
void tsr_test_simulate_comparison(const tsr_plan *made);
/* What an earlier run wrote is left out, of super-blocks that `seed` draws: what is left is written once. */
void tsr_test_simulate_left(const tsr_plan *whole, uint64_t seed);

#endif
