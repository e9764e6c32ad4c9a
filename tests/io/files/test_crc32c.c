/* CRC-32C: the published values (RFC 3720, B.4, and the usual check value), in one piece and in two, by the instruction
 * and by the table; and no flipped bit goes by. */
#include "io/files/crc32c.h"

#include "tests/check.h"

enum { BYTES = 300, MANY = 40000 /* the instruction sums three lanes of 4096 at once */ };

static void fill(uint8_t *bytes, int count) {
    uint32_t random = 1;
    for (int i = 0; i < count; i++) {
        random = random * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(random >> 24);
    }
}

static void check_table(const uint8_t *bytes, size_t count) {
    const uint32_t a = tsr_crc32c(7, bytes, count), b = tsr_crc32c_by_table(7, bytes, count);
    CHECK(a == b, "%08x and by table %08x: %zu bytes from %p", a, b, count, (const void *)bytes);
}

static void check_value(const void *bytes, size_t count, uint32_t want) {
    for (size_t cut = 0; cut <= count; cut++) {
        const uint8_t *rest = (const uint8_t *)bytes + cut;
        uint32_t sum = tsr_crc32c(tsr_crc32c(0, bytes, cut), rest, count - cut);
        CHECK(sum == want, "%08x and not %08x, cut at %zu", sum, want, cut);
        sum = tsr_crc32c_by_table(tsr_crc32c_by_table(0, bytes, cut), rest, count - cut);
        CHECK(sum == want, "by table: %08x and not %08x, cut at %zu", sum, want, cut);
    }
}

int main(void) {
    static uint8_t bytes[MANY];
    check_value("123456789", 9, 0xe3069283);
    check_value("", 0, 0);
    check_value(bytes, 32, 0x8a9136aa);
    memset(bytes, 0xff, 32);
    check_value(bytes, 32, 0x62a8ab43);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)i;
    check_value(bytes, 32, 0x46dd794e);
    fill(bytes, MANY);
    for (size_t start = 0; start < 9; start++) {
        for (size_t count = 0; count <= BYTES; count++) check_table(bytes + start, count);
        for (size_t count = 512; count < MANY - start; count += 509) check_table(bytes + start, count);
    }
    const uint32_t whole = tsr_crc32c(0, bytes, BYTES);
    for (int bit = 0; bit < 8 * BYTES; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(tsr_crc32c(0, bytes, BYTES) != whole, "bit %d", bit);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    return 0;
}
