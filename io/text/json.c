/* Strings of JSON (json.h). */
#include "io/text/json.h"

#include "kernels/base/base.h"

void tsr_json_string(FILE *to, const char *text) {
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int bytes = tsr_utf8_bytes((const char *)c);
        if (*c == '"' || *c == '\\') fprintf(to, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7F) fprintf(to, "\\u%04x", *c);
        else if (bytes == 2 && *c == 0xC2 && c[1] < 0xA0) fprintf(to, "\\u%04x", c[1]); /* C1 */
        else if (bytes == 0) fputs("\\ufffd", to);
        else fwrite(c, 1, (size_t)bytes, to);
        c += bytes ? bytes : 1;
    }
    fputc('"', to);
}
