/* Assertions for programs that know no more than tessera.h: what fails on a rank ends the job. */
#ifndef TSR_TESTS_APP_LIBRARY_TESSERA_CHECK_H
#define TSR_TESTS_APP_LIBRARY_TESSERA_CHECK_H

#include <stdio.h>
#include <string.h>
#include <tessera.h>

/* CHECK(condition, "format", values…) */
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            int check_rank_ = 0;                                                                                       \
            int check_runs_ = 0;                                                                                       \
            MPI_Initialized(&check_runs_);                                                                             \
            if (check_runs_) MPI_Comm_rank(MPI_COMM_WORLD, &check_rank_);                                              \
            fprintf(stderr, "rank %d, line %d: %s: ", check_rank_, __LINE__, #condition);                              \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fprintf(stderr, "\n");                                                                                     \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)
#define CHECK_OK(expr)                                                                                                 \
    do {                                                                                                               \
        const int check_ = (expr);                                                                                     \
        CHECK(check_ == TESSERA_OK, "%s: %s", tessera_status_text(check_), tessera_message());                         \
    } while (0)
/* On every rank: the status, and a message that says so. */
#define CHECK_FAILS(expr, expected, words)                                                                             \
    do {                                                                                                               \
        const int check_ = (expr);                                                                                     \
        CHECK(check_ == (expected) && strstr(tessera_message(), words), "%d: %s", check_, tessera_message());          \
    } while (0)

#endif
