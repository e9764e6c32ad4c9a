/* Strings of JSON (json.h). */
#include "io/json.h"

/* Bytes of the UTF-8 character at `text`; 0 when it is none. */
static int utf8_bytes(const unsigned char *text) {
    int bytes = text[0] < 0x80 ? 1 : text[0] >= 0xC2 && text[0] < 0xE0 ? 2 : (text[0] & 0xF0) == 0xE0 ? 3 : text[0] >= 0xF0 && text[0] < 0xF5 ? 4 : 0;
    for (int i = 1; i < bytes; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    if (bytes == 3 && ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F))) return 0;
    if (bytes == 4 && ((text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))) return 0;
    return bytes;
}

void tsr_json_string(FILE *to, const char *text) {
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int bytes = utf8_bytes(c);
        if (*c == '"' || *c == '\\') fprintf(to, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7F) fprintf(to, "\\u%04x", *c);
        else if (bytes == 0) fputs("\\ufffd", to);
        else fwrite(c, 1, (size_t)bytes, to);
        c += bytes ? bytes : 1;
    }
    fputc('"', to);
}
