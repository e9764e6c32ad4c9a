/* Assertions for test programs: each prints where and what, and ends the program with 1. */
#ifndef TSR_TESTS_CHECK_H
#define TSR_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/base.h"

/* Of random cases sanitizers look at a third: the ordinary build, several times as fast, has them all. */
#ifdef __SANITIZE_ADDRESS__
#define SOME_OF(count) ((count) / 3)
#else
#define SOME_OF(count) (count)
#endif

/* CHECK(condition, "format", values…): prints the values when the condition is false. */
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                                            \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fprintf(stderr, "\n");                                                                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK_OK(expr)                                                                                                 \
    do {                                                                                                               \
        tsr_status check_ = (expr);                                                                                    \
        CHECK(check_ == TSR_OK, "%s: %s", tsr_status_text(check_), tsr_message());                                     \
    } while (0)

/* The call must fail with this status, and its message must contain `text`. */
#define CHECK_FAILS(expr, expected, text)                                                                              \
    do {                                                                                                               \
        tsr_message_set("");                                                                                           \
        tsr_status check_ = (expr);                                                                                    \
        CHECK(check_ == (expected), "got %s: %s", tsr_status_text(check_), tsr_message());                             \
        CHECK(strstr(tsr_message(), (text)) != NULL, "message was: %s", tsr_message());                                \
    } while (0)

#endif
