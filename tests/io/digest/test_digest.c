/* The digest of a matrix: the sum of its bytes, whatever the parts, and another one for every flipped bit. */
#include "io/digest/digest.h"

#include "io/files/crc32c.h"
#include "tests/check.h"

#define ROWS 23
#define COLS 17
#define MATRICES 3

static tsr_store_desc desc_of(tsr_dtype dtype) {
    tsr_store_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.matrices = MATRICES;
    desc.element.dtype = dtype;
    return desc;
}

static const char *whole(const void *data, size_t bytes, char text[TSR_DIGEST_CHARS]) {
    snprintf(text, TSR_DIGEST_CHARS, "crc32c:%08x", tsr_crc32c_by_table(0, data, bytes));
    return text;
}

/* Adds a rectangle, in parts that are cut at random. */
static void add_parts(tsr_digest *digest, const tsr_store_desc *desc, tsr_rect rect, uint8_t *data) {
    const size_t element = tsr_dtype_bytes(desc->element.dtype);
    if (rect.rows > 1 && rand() % 3) {
        tsr_rect upper = rect, lower = rect;
        upper.rows = 1 + rand() % (rect.rows - 1);
        lower.row += upper.rows;
        lower.rows -= upper.rows;
        add_parts(digest, desc, lower, data);
        add_parts(digest, desc, upper, data);
    } else if (rect.cols > 1 && rand() % 3) {
        tsr_rect left = rect, right = rect;
        left.cols = 1 + rand() % (rect.cols - 1);
        right.col += left.cols;
        right.cols -= left.cols;
        add_parts(digest, desc, right, data);
        add_parts(digest, desc, left, data);
    } else {
        const size_t before = (size_t)((desc->matrix * ROWS + rect.row) * COLS + rect.col);
        tsr_digest_add(digest, desc, rect, data + before * element, COLS);
    }
}

static const char *in_parts(const tsr_store_desc *desc, uint8_t *data, size_t bytes, char text[TSR_DIGEST_CHARS]) {
    tsr_digest digest = {0};
    tsr_store_desc one = *desc;
    for (one.matrix = MATRICES - 1; one.matrix >= 0; one.matrix--)
        add_parts(&digest, &one, (tsr_rect){0, 0, ROWS, COLS}, data);
    return tsr_digest_text(digest.parts, bytes, text);
}

static void test_parts(void) {
    static const tsr_dtype types[] = {TSR_F16, TSR_F32, TSR_F64, TSR_C128};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        tsr_store_desc desc = desc_of(types[t]);
        const size_t bytes = tsr_dtype_bytes(types[t]) * ROWS * COLS * MATRICES;
        char expected[TSR_DIGEST_CHARS], found[TSR_DIGEST_CHARS];
        uint8_t *data = malloc(bytes);
        for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)rand();
        whole(data, bytes, expected);
        for (int turn = 0; turn < 20; turn++)
            CHECK(strcmp(in_parts(&desc, data, bytes, found), expected) == 0, "%s for %s", found, expected);
        for (size_t bit = 0; bit < 8 * bytes; bit += 23 * tsr_dtype_bytes(types[t])) {
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            CHECK(strcmp(in_parts(&desc, data, bytes, found), expected) != 0, "bit %zu is not seen", bit);
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        free(data);
    }
}

/* Elements that are stored the other way round have the digest of what they are. */
static void test_swapped(void) {
    tsr_store_desc desc = desc_of(TSR_C64);
    static uint8_t data[8 * ROWS * COLS * MATRICES], turned[sizeof data];
    char expected[TSR_DIGEST_CHARS], found[TSR_DIGEST_CHARS];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)rand();
    for (size_t i = 0; i < sizeof data; i++) turned[i / 4 * 4 + 3 - i % 4] = data[i];
    desc.element.swapped = true;
    whole(data, sizeof data, expected);
    in_parts(&desc, turned, sizeof data, found);
    CHECK(strcmp(found, expected) == 0, "%s for %s", found, expected);
}

static void test_text(void) {
    char text[TSR_DIGEST_CHARS];
    CHECK(tsr_digest_parse("crc32c:1A2b3c4D", text) && strcmp(text, "crc32c:1a2b3c4d") == 0, "%s", text);
    CHECK(tsr_digest_parse("00000001", text) && strcmp(text, "crc32c:00000001") == 0, "%s", text);
    static const char *const wrong[] = {"",         "crc32c:", "1234567", "123456789", "crc32:12345678",
                                        "+1234567", "0x123456"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!tsr_digest_parse(wrong[i], text), "'%s' is taken", wrong[i]);
    CHECK(strcmp(tsr_digest_text(0, 0, text), "crc32c:00000000") == 0, "of nothing: %s", text);
    /* RFC 3720, B.4: 32 bytes of zeros */
    CHECK(strcmp(tsr_digest_text(0, 32, text), "crc32c:8a9136aa") == 0, "of zeros: %s", text);
}

int main(void) {
    srand(7);
    test_parts();
    test_swapped();
    test_text();
    return 0;
}
