/* Text as a terminal may show it (base.h). */
#include <stdio.h>
#include <string.h>

#include "kernels/base/base.h"

int tsr_utf8_bytes(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    int bytes = c[0] < 0x80                   ? 1
                : c[0] >= 0xC2 && c[0] < 0xE0 ? 2
                : (c[0] & 0xF0) == 0xE0       ? 3
                : c[0] >= 0xF0 && c[0] < 0xF5 ? 4
                                              : 0;
    for (int i = 1; i < bytes; i++)
        if ((c[i] & 0xC0) != 0x80) return 0;
    if (bytes == 3 && ((c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xED && c[1] > 0x9F))) return 0;
    if (bytes == 4 && ((c[0] == 0xF0 && c[1] < 0x90) || (c[0] == 0xF4 && c[1] > 0x8F))) return 0;
    return bytes;
}

/* U+0080 to U+009F are C2 80 to C2 9F; U+2028 to U+202E and U+2066 to U+2069 are E2 80 A8 … AE and E2 81 A6 … A9. */
static bool is_control(const unsigned char *c, int bytes) {
    if (bytes == 1) return c[0] < 0x20 || c[0] == 0x7F;
    if (bytes == 2) return c[0] == 0xC2 && c[1] < 0xA0;
    if (bytes != 3 || c[0] != 0xE2) return false;
    return (c[1] == 0x80 && c[2] >= 0xA8 && c[2] <= 0xAE) || (c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9);
}

char *tsr_printable(const char *text, char *to, size_t chars) {
    size_t used = 0;
    while (*text) {
        const unsigned char *c = (const unsigned char *)text;
        const int bytes = tsr_utf8_bytes(text), taken = bytes > 0 ? bytes : 1;
        const bool shown = bytes > 0 && !is_control(c, bytes);
        if (used + (size_t)(shown ? taken : 4 * taken) >= chars) break;
        if (shown) memcpy(to + used, text, (size_t)taken);
        for (int i = 0; !shown && i < taken; i++) snprintf(to + used + 4 * i, 5, "\\x%02x", c[i]);
        used += (size_t)(shown ? taken : 4 * taken);
        text += taken;
    }
    if (chars > 0) to[used] = '\0';
    return to;
}
