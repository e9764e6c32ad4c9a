/* CRC-32C (crc32c.h): the reflected polynomial 0x82f63b78, eight bytes an instruction where the processor can. */
#include "io/files/crc32c.h"

#include <string.h>

#if defined __x86_64__
#include <nmmintrin.h>
#elif defined __aarch64__
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

/* What four bits do to the sum. */
static const uint32_t of_nibble[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                       0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};

uint32_t tsr_crc32c_by_table(uint32_t before, const void *bytes, size_t count) {
    const uint8_t *at = bytes;
    uint32_t sum = ~before;
    for (size_t i = 0; i < count; i++) {
        sum ^= at[i];
        sum = sum >> 4 ^ of_nibble[sum & 15];
        sum = sum >> 4 ^ of_nibble[sum & 15];
    }
    return ~sum;
}

#if defined __x86_64__
static int has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#define TARGET __attribute__((target("sse4.2")))
#define STEP_8(sum, word) ((uint32_t)_mm_crc32_u64(sum, word))
#define STEP_1(sum, byte) _mm_crc32_u8(sum, byte)
#elif defined __aarch64__
static int has_instruction(void) { return (getauxval(AT_HWCAP) & 1u << 7) != 0; } /* HWCAP_CRC32 */
#define TARGET __attribute__((target("+crc")))
#define STEP_8(sum, word) __crc32cd(sum, word)
#define STEP_1(sum, byte) __crc32cb(sum, byte)
#endif

#ifdef TARGET
enum { LONG_LANE = 4096, SHORT_LANE = 512 }; /* bytes */
#define LONG_FACTOR 0x35d73a62u              /* tsr_crc32c_factor(LONG_LANE) */
#define SHORT_FACTOR 0x74c360a4u             /* and of SHORT_LANE */

/* An instruction's result takes three cycles, and another can begin in each: three lanes of `lane` bytes are summed at
 * once, and moved together, while there are as many. */
TARGET static uint32_t by_lanes(uint32_t sum, const uint8_t **at, size_t *count, size_t lane, uint32_t factor) {
    for (; *count >= 3 * lane; *count -= 3 * lane, *at += 3 * lane) {
        uint32_t second = 0, third = 0;
        for (size_t i = 0; i < lane; i += 8) {
            uint64_t words[3];
            for (size_t l = 0; l < 3; l++) memcpy(&words[l], *at + l * lane + i, 8);
            sum = STEP_8(sum, words[0]);
            second = STEP_8(second, words[1]);
            third = STEP_8(third, words[2]);
        }
        sum = tsr_crc32c_move(tsr_crc32c_move(sum, factor) ^ second, factor) ^ third;
    }
    return sum;
}

TARGET static uint32_t by_instruction(uint32_t before, const uint8_t *at, size_t count) {
    uint32_t sum = ~before;
    uint64_t word;
    sum = by_lanes(sum, &at, &count, LONG_LANE, LONG_FACTOR);
    sum = by_lanes(sum, &at, &count, SHORT_LANE, SHORT_FACTOR);
    for (; count >= sizeof word; count -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        sum = STEP_8(sum, word);
    }
    for (; count > 0; count--) sum = STEP_1(sum, *at++);
    return ~sum;
}
#endif

uint32_t tsr_crc32c(uint32_t before, const void *bytes, size_t count) {
#ifdef TARGET
    if (has_instruction()) return by_instruction(before, bytes, count);
#endif
    return tsr_crc32c_by_table(before, bytes, count);
}

/* ---- parts ------------------------------------------------------------------------------------ */

uint32_t tsr_crc32c_part(const void *bytes, size_t count) { return ~tsr_crc32c(0xffffffff, bytes, count); }

/* The product of two polynomials of which the highest bit is the constant, modulo the sum's. */
uint32_t tsr_crc32c_move(uint32_t sum, uint32_t factor) {
    uint32_t product = 0;
    for (int bit = 31; bit >= 0; bit--) {
        product ^= factor & (0u - (sum >> bit & 1));
        factor = factor >> 1 ^ (0x82f63b78 & (0u - (factor & 1)));
    }
    return product;
}

/* x to the power of the number of bits. */
uint32_t tsr_crc32c_factor(uint64_t bytes) {
    uint32_t power = 0x80000000, square = 0x00800000; /* 1, and x^8 */
    for (; bytes > 0; bytes >>= 1) {
        if (bytes & 1) power = tsr_crc32c_move(power, square);
        square = tsr_crc32c_move(square, square);
    }
    return power;
}

uint32_t tsr_crc32c_whole(uint32_t parts, uint64_t bytes) {
    return ~(parts ^ tsr_crc32c_move(0xffffffff, tsr_crc32c_factor(bytes)));
}
