/* Messages of the helper (describe_wire.h) as tests hand them on. */
#ifndef TSR_TESTS_IO_DESCRIBE_MESSAGE_H
#define TSR_TESTS_IO_DESCRIBE_MESSAGE_H

#include <stdlib.h>
#include <string.h>

#include "io/describe/describe_wire.h"
#include "tests/check.h"

/* What was written, to be read: a buffer of exactly its size, so that a byte read behind it shows. Takes the written
 * one's memory; the caller frees data. */
static inline tsr_wire message_written(tsr_wire wire) {
    CHECK(wire.wrong == NULL, "%s", wire.wrong);
    char *exact = malloc(wire.bytes);
    CHECK(exact != NULL, "no memory");
    memcpy(exact, wire.data, wire.bytes);
    free(wire.data);
    return (tsr_wire){.data = exact, .bytes = wire.bytes, .reading = true};
}

#endif
