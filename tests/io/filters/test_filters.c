/* Every way to compress that this build has: what is encoded decodes to the same, and what is damaged is an error and
 * no more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/chunks/chunk_encode.h"
#include "io/filters/filter.h"
#include "tests/check.h"

static uint32_t random_state = 1;

static uint32_t next_random(void) { return random_state = random_state * 1664525 + 1013904223; }

/* Buffers of exactly the promised room, so that AddressSanitizer sees a byte beyond it. */
typedef struct {
    size_t bytes, room;
    uint8_t *want, *one, *two, *back;
} buffers;

static buffers buffers_make(size_t bytes, bool noise) {
    buffers b = {.bytes = bytes, .room = tsr_chunk_stored_max(bytes)};
    b.want = malloc(bytes + 1);
    b.one = malloc(b.room);
    b.two = malloc(b.room);
    b.back = malloc(bytes + 1);
    CHECK(b.want && b.one && b.two && b.back, "no memory");
    for (size_t i = 0; i < bytes; i++) b.want[i] = noise ? (uint8_t)(next_random() >> 24) : (uint8_t)(i / 50);
    return b;
}

static void buffers_free(buffers *b) {
    free(b->want);
    free(b->one);
    free(b->two);
    free(b->back);
}

/* ---- there and back -------------------------------------------------------------------------- */

static void round_trip(const char *name, const tsr_compress *how, bool shuffle, size_t element, size_t bytes,
                       bool noise) {
    buffers b = buffers_make(bytes, noise);
    const tsr_pipeline pipeline = tsr_compress_pipeline(how, shuffle, element, bytes);
    const uint8_t *stored;
    size_t stored_bytes;
    uint32_t skipped;
    memcpy(b.one, b.want, bytes);
    CHECK_OK(tsr_chunk_encode(&pipeline, b.one, bytes, b.two, &stored, &stored_bytes, &skipped));
    const bool compressed = tsr_chunk_is_compressed(&pipeline, skipped);
    CHECK(compressed ? stored_bytes < bytes : stored_bytes == bytes, "%s: %zu of %zu", name, stored_bytes, bytes);
    CHECK(noise || bytes < 2000 || element > 1 || shuffle || compressed, "%s: %zu bytes of steps do not shrink", name,
          bytes);
    CHECK(!noise || !compressed || bytes < 16, "%s: %zu bytes of noise shrink", name, bytes);
    uint8_t *first = b.one, *second = b.two;
    if (stored == b.two) memcpy(first, stored, stored_bytes);
    CHECK_OK(tsr_chunk_decode(&pipeline, skipped, first, stored_bytes, second, b.back, bytes));
    CHECK(memcmp(b.back, b.want, bytes) == 0, "%s: %zu bytes, elements of %zu", name, bytes, element);
    buffers_free(&b);
}

static void test_round_trips(const char *name, const tsr_compress *how) {
    for (size_t element = 1; element <= 16; element++)
        for (size_t bytes = 0; bytes < 40000; bytes = bytes < 40 ? bytes + 1 : 2 * bytes + 7)
            for (int way = 0; way < 4; way++) round_trip(name, how, way & 1, element, bytes, way & 2);
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* Whether it decodes to a whole chunk. Whatever it says, it gives no more than fits. */
static bool decodes(const char *name, const tsr_pipeline *pipeline, const uint8_t *stored, size_t stored_bytes,
                    size_t chunk_bytes) {
    buffers b = buffers_make(chunk_bytes, false);
    uint8_t *exact = malloc(stored_bytes + (stored_bytes == 0)); /* a byte behind it is not there */
    CHECK(exact != NULL, "no memory");
    if (stored_bytes > 0) memcpy(exact, stored, stored_bytes);
    const tsr_filter_use *use = &pipeline->use[pipeline->count - 1];
    size_t got = b.room;
    const tsr_status status = tsr_filter_at(use->filter)->undo(use, exact, stored_bytes, b.two, &got);
    CHECK(status != TSR_OK || got <= b.room, "%s: %zu bytes where %zu fit", name, got, b.room);
    CHECK(status == TSR_OK || status == TSR_ERR_FORMAT, "%s: %s", name, tsr_message());
    if (status != TSR_OK) CHECK(tsr_message()[0] != '\0' && !strchr(tsr_message(), '\n'), "%s: no line", name);
    free(exact);
    buffers_free(&b);
    return status == TSR_OK && got == chunk_bytes;
}

enum { CHUNK = 20000 };

static void test_damage(const char *name, const tsr_compress *how) {
    buffers b = buffers_make(CHUNK, false);
    const tsr_pipeline pipeline = tsr_compress_pipeline(how, false, 4, CHUNK);
    const uint8_t *stored;
    size_t bytes;
    uint32_t skipped;
    memcpy(b.one, b.want, CHUNK);
    CHECK_OK(tsr_chunk_encode(&pipeline, b.one, CHUNK, b.two, &stored, &bytes, &skipped));
    uint8_t *copy = malloc(bytes + 64);
    CHECK(copy && skipped == 0, "%s: nothing to damage", name);
    memcpy(copy, stored, bytes);
    CHECK(decodes(name, &pipeline, copy, bytes, CHUNK), "%s: %s", name, tsr_message());
    CHECK(!decodes(name, &pipeline, copy, bytes, CHUNK / 3), "%s: %d bytes in a chunk of %d", name, CHUNK, CHUNK / 3);
    for (size_t cut = 0; cut < bytes; cut += 1 + cut / 16)
        CHECK(!decodes(name, &pipeline, copy, cut, CHUNK), "%s: %zu of %zu bytes are enough", name, cut, bytes);
    for (int turn = 0; turn < 3000; turn++) {
        memcpy(copy, stored, bytes);
        const size_t head = bytes < 24 ? bytes : 24;
        for (uint32_t flips = 1 + next_random() % 3; flips > 0; flips--)
            copy[next_random() % (turn % 2 ? head : bytes)] = (uint8_t)(next_random() >> 24);
        if (turn % 5 == 0) memset(copy + next_random() % head, turn % 2 ? 0xff : 0, 4); /* a length: none, or all */
        (void)decodes(name, &pipeline, copy, bytes, CHUNK);
    }
    free(copy);
    buffers_free(&b);
}

/* ---- known bytes ----------------------------------------------------------------------------- */

/* Eight elements of two bytes, bit by bit: row 8 · b + j holds bit j of byte b, element i at bit i. */
static void test_bits(void) {
    const tsr_filter_use use = {
        .filter = tsr_filter_find(tsr_filter_bitshuffle.id), .count = 4, .values = {0, 4, 2, 8}};
    uint8_t from[19], to[19];
    const uint16_t element[8] = {1, 2, 4, 0x8000, 0x8001, 0xffff, 0, 0x0100};
    memset(from, 0, sizeof from);
    for (int row = 0; row < 16; row++)
        for (int i = 0; i < 8; i++) from[row] |= (uint8_t)((element[i] >> row & 1) << i);
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): bytes, not a text */
    memcpy(from + 16, "abc", 3); /* stands as it was */
    size_t bytes = sizeof to;
    CHECK_OK(tsr_filter_bitshuffle.undo(&use, from, sizeof from, to, &bytes));
    CHECK(bytes == sizeof to && memcmp(to + 16, "abc", 3) == 0, "%zu bytes", bytes);
    for (int i = 0; i < 8; i++)
        CHECK((to[2 * i] | to[2 * i + 1] << 8) == element[i], "element %d is %02x%02x", i, to[2 * i + 1], to[2 * i]);
}

static void test_names(void) {
    static const char *const wrong[] = {"",       ":",       "zip",   "gzip:", "gzip:10", "gzip:-1",      "gzip:4x",
                                        "zstd:0", "zstd:23", "lz4:1", "lzf:",  "bzip2:0", "bitshuffle:3", "blosc:0",
                                        "blosc-", "gzip:4:4"};
    tsr_compress compress;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_FAILS(tsr_compress_parse("--compress", wrong[i], &compress), TSR_ERR_USAGE, "choose one of gzip[:0-9], ");
}

int main(void) {
    int here = 0;
    test_names();
    test_bits();
    for (int i = 0; i < tsr_filter_count(); i++)
        for (const tsr_compression *c = tsr_filter_at(i)->compressions; c && c->name; c++) {
            const int levels[] = {c->least, c->usual, c->most < 12 ? c->most : 12};
            if (!tsr_filter_at(i)->apply) continue;
            for (int l = c->most == 0 ? 2 : 0; l < 3; l++) {
                const tsr_compress how = {.how = c, .level = levels[l]};
                if (l == 1 || c->most == 0) test_round_trips(c->name, &how);
                if (levels[l] > 0 || c->most == 0) test_damage(c->name, &how);
            }
            here++;
        }
    printf("%d ways to compress\n", here);
    return 0;
}
