/* The helper without its process (ask.h). The memory file holds a question; what serves it reads to its end and writes
 * the answer behind it. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/fuzz/ask.h"

#include <sys/mman.h>
#include <unistd.h>

#include "io/describe/describe.h"

fuzz_bytes *ask_answers;
FILE *ask_record;

tsr_status __wrap_tsr_describer_ask(tsr_describer *d, const char *file, double seconds, const tsr_wire *question,
                                    tsr_wire *answer);
tsr_status __wrap_tsr_describer_distrust(tsr_describer *d, const char *file, const char *what);

static void nothing_before(uint32_t seconds) { (void)seconds; }

static size_t read_from(int fd, void *to, size_t bytes, size_t at) {
    const ssize_t got = pread(fd, to, bytes, (off_t)at);
    return got < 0 ? 0 : (size_t)got;
}

static void note_answer(const char *data, size_t bytes) {
    const uint32_t length = (uint32_t)bytes;
    if (!ask_record) return;
    CHECK(fwrite(&length, sizeof length, 1, ask_record) == 1 && fwrite(data, 1, bytes, ask_record) == bytes,
          "an answer is lost");
}

static tsr_status serve(const tsr_wire *question, tsr_wire *answer) {
    const int fd = memfd_create("question", MFD_CLOEXEC);
    tsr_wire_head head = tsr_wire_head_of(question->bytes, 10);
    size_t at = sizeof head + question->bytes;
    CHECK(fd >= 0 && write(fd, &head, sizeof head) == (ssize_t)sizeof head, "no memory file");
    CHECK(write(fd, question->data, question->bytes) == (ssize_t)question->bytes, "no memory file");
    CHECK(lseek(fd, 0, SEEK_SET) == 0, "no memory file");
    const tsr_status status = tsr_describe_serve(fd, nothing_before);
    *answer = (tsr_wire){.reading = true};
    do { /* those without a message say that it goes on */
        if (read_from(fd, &head, sizeof head, at) < sizeof head) head.bytes = 0;
        at += sizeof head;
    } while (head.bytes == 0 && at < (size_t)lseek(fd, 0, SEEK_END));
    if (head.bytes > 0) answer->data = malloc(head.bytes);
    if (answer->data) answer->bytes = read_from(fd, answer->data, head.bytes, at);
    close(fd);
    if (answer->data) note_answer(answer->data, answer->bytes);
    return answer->data ? TSR_OK : tsr_fail(TSR_FAILURE, "the helper ended: %s", tsr_status_text(status));
}

/* The next answer in an allocation of its size, so that a byte behind it is seen. */
static tsr_status next_answer(tsr_wire *answer) {
    uint32_t length = 0;
    *answer = (tsr_wire){.reading = true};
    if (ask_answers->left == 0) return tsr_fail(TSR_FAILURE, "no answer");
    fuzz_take(ask_answers, &length, sizeof length);
    const size_t bytes = length < ask_answers->left ? length : ask_answers->left;
    answer->data = malloc(bytes + (bytes == 0));
    CHECK(answer->data, "no memory");
    answer->bytes = bytes;
    fuzz_take(ask_answers, answer->data, bytes);
    return TSR_OK;
}

tsr_status __wrap_tsr_describer_ask(tsr_describer *d, const char *file, double seconds, const tsr_wire *question,
                                    tsr_wire *answer) {
    (void)d;
    (void)file;
    (void)seconds;
    return ask_answers ? next_answer(answer) : serve(question, answer);
}

/* Of its own code the job may distrust no answer. */
tsr_status __wrap_tsr_describer_distrust(tsr_describer *d, const char *file, const char *what) {
    (void)d;
    return tsr_fail(TSR_ERR_FORMAT, "'%s': %s", file, what ? what : "");
}
