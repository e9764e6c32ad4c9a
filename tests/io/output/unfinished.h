/* What the tests of outputs share: begun and given up, or left by a process that is killed. */
#ifndef TSR_TESTS_IO_OUTPUT_UNFINISHED_H
#define TSR_TESTS_IO_OUTPUT_UNFINISHED_H

#include <signal.h>
#include <sys/wait.h>

#include "io/output/output.h"
#include "tests/io/scratch.h"

static inline tsr_store *begin_output(const tsr_output_spec *spec, tsr_io_mode mode, tsr_output *output) {
    tsr_store *store;
    CHECK_OK(tsr_output_create(spec, output));
    CHECK_OK(tsr_output_open(output, mode, NULL, &store));
    return store;
}

static inline void drop_output(tsr_output *output, tsr_store *store) {
    tsr_store_close(store);
    tsr_output_discard(output);
    close(output->lock_fd);
}

/* Calls work(spec) in a process of its own, which is killed when that returns. */
static inline void kill_after(void (*work)(const tsr_output_spec *spec), const tsr_output_spec *spec) {
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        work(spec);
        CHECK(write(ready[1], "x", 1) == 1, "pipe");
        for (;;) pause();
    }
    close(ready[1]);
    CHECK(read(ready[0], &byte, 1) == 1, "the run failed before it could be killed");
    close(ready[0]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

#endif
