/* Encoded chunks that wait on the disk: what comes back changed is an error; with sums that are right again it may be
 * taken, and is never more than its room. The input: what is changed of which read. */
#include <stddef.h>
#include <unistd.h>

#include "io/chunks/chunk_decode.h"
#include "io/files/crc32c.h"
#include "io/output/output_chunks.h"
#include "tests/fuzz/fuzz.h"

enum { ROWS = 20, COLS = 18, CHUNK = 8, CHUNKS = 9 };

static struct {
    bool on, sealed, changed;
    int read; /* counted down to the one that is changed */
    fuzz_bytes how;
} change;

ssize_t __wrap_tsr_read_at(int fd, void *to, size_t bytes, int64_t offset);
ssize_t __real_tsr_read_at(int fd, void *to, size_t bytes, int64_t offset);

ssize_t __wrap_tsr_read_at(int fd, void *to, size_t bytes, int64_t offset) {
    const ssize_t got = __real_tsr_read_at(fd, to, bytes, offset);
    if (!change.on || got <= 0 || change.read-- != 0) return got;
    uint8_t *at = to;
    uint8_t before[4096];
    CHECK((size_t)got <= sizeof before, "%zd bytes at once", got);
    memcpy(before, to, (size_t)got);
    tsr_encoded_chunk *head = to;
    for (int changes = 0; changes < 8 && change.how.left > 0; changes++) {
        uint8_t byte;
        const size_t place = fuzz_take_byte(&change.how) % (size_t)got;
        fuzz_take(&change.how, &byte, 1);
        at[place] ^= byte;
    }
    change.changed = memcmp(before, to, (size_t)got) != 0;
    if (change.sealed && bytes == sizeof *head)
        head->head_sum = tsr_crc32c(0, head, offsetof(tsr_encoded_chunk, head_sum));
    return got;
}

static tsr_output output;
static tsr_store *store;

static void take_all(void) {
    tsr_kept_chunk *chunks;
    int64_t count;
    const size_t room = sizeof(tsr_encoded_chunk) + tsr_chunk_stored_max(CHUNK * CHUNK * sizeof(float));
    tsr_status status = tsr_chunks_kept(store, &chunks, &count);
    if (status == TSR_OK) {
        CHECK(count == CHUNKS, "%lld chunks", (long long)count);
        for (int64_t i = 0; i < count && status == TSR_OK; i++) {
            void *to = malloc(room);
            CHECK(to, "no memory");
            CHECK(chunks[i].number >= 0 && chunks[i].number < CHUNKS, "chunk %lld", (long long)chunks[i].number);
            status = tsr_chunk_take(store, &chunks[i], to);
            free(to);
        }
        free(chunks);
    }
    CHECK(status == TSR_OK || *tsr_message(), "an error without a message");
    CHECK(!change.changed || change.sealed || status != TSR_OK, "what was changed was taken");
    CHECK(change.changed || status == TSR_OK, "%s", tsr_message());
}

void fuzz_start(void) {
    tsr_output_spec spec = {.rows = ROWS, .cols = COLS, .dtype = TSR_F32, .chunk_rows = CHUNK, .chunk_cols = CHUNK};
    float data[ROWS * COLS];
    CHECK_OK(tsr_matrix_name_parse(fuzz_file("c.h5"), &spec.name));
    if (tsr_filter_gzip.apply) CHECK_OK(tsr_compress_parse("--compress", "gzip:4", &spec.compress));
    for (int i = 0; i < ROWS * COLS; i++) data[i] = (float)(i % 7);
    CHECK_OK(tsr_output_create(&spec, &output));
    CHECK_OK(tsr_output_open(&output, TSR_IO_AUTO, NULL, &store));
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, ROWS, COLS}, data, COLS));
}

void fuzz_seeds(void) {
    fuzz_seed("nothing", "\0", 1);
    fuzz_seed("byte", "\1\0\3\1", 4);
    fuzz_seed("sealed", "\3\1\12\7", 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_bytes from = {data, bytes};
    const uint8_t how = fuzz_take_byte(&from);
    change.on = how & 1;
    change.sealed = how >> 1 & 1;
    change.changed = false;
    change.read = fuzz_take_byte(&from) % (3 * CHUNKS);
    change.how = from;
    take_all();
    return 0;
}
