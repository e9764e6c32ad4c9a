/* What the harnesses share. Each is one file with LLVMFuzzerTestOneInput, which takes any bytes, and fuzz_seeds, which
 * makes good ones to begin with: nothing of that is kept in the repository. A harness aborts where what was read is
 * wrong, with CHECK of tests/check.h; what sanitizers see ends it, too. */
#ifndef TSR_TESTS_FUZZ_FUZZ_H
#define TSR_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Once, before the first input. */
void fuzz_start(void);
/* For TSR_FUZZ_SEEDS=FOLDER: calls fuzz_seed for each good input. The process ends then. */
void fuzz_seeds(void);
void fuzz_seed(const char *name, const void *data, size_t bytes);

/* A file of this process in a folder of its own, in one of four buffers used in turn. */
const char *fuzz_file(const char *name);
/* The same, with these bytes. */
const char *fuzz_write(const char *name, const void *data, size_t bytes);

/* Bytes of an input, one after the other; zeros behind its end. */
typedef struct {
    const uint8_t *at;
    size_t left;
} fuzz_bytes;
void fuzz_take(fuzz_bytes *from, void *to, size_t bytes);
static inline uint8_t fuzz_take_byte(fuzz_bytes *from) {
    uint8_t byte;
    fuzz_take(from, &byte, 1);
    return byte;
}

#endif
