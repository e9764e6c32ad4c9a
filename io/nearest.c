/* The name a person may have meant (nearest.h). */
#include "io/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int same_letter(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

static int least(int a, int b) { return a < b ? a : b; }

/* Optimal string alignment: rows of the table of distances between the beginnings of a and of b, the last three of
 * them. */
int tsr_edit_distance(const char *a, const char *b) {
    int rows[3][TSR_NEAREST_CHARS + 1], *before = rows[0], *last = rows[1];
    int *now = rows[2];
    int across = (int)strnlen(b, TSR_NEAREST_CHARS);
    for (int j = 0; j <= across; j++) last[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        now[0] = i;
        for (int j = 1; j <= across; j++) {
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + !same_letter(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
                now[j] = least(now[j], before[j - 2] + 1);
        }
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[across];
}

void tsr_nearest_offer(tsr_nearest *nearest, const char *name) {
    size_t chars = strlen(nearest->wanted), offered = strlen(name);
    if (chars == 0 || chars >= TSR_NEAREST_CHARS || offered >= TSR_NEAREST_CHARS) return;
    int most = chars < 3 ? 0 : chars < 6 ? 1 : 2;
    int distance = tsr_edit_distance(nearest->wanted, name);
    if (chars >= 3 && strncasecmp(nearest->wanted, name, chars) == 0)
        distance = least(distance, most); /* its beginning */
    if (distance > most || (nearest->name[0] && distance >= nearest->distance)) return;
    memcpy(nearest->name, name, offered + 1);
    nearest->distance = distance;
}

const char *tsr_did_you_mean(const tsr_nearest *nearest, const char *before, char *text, size_t chars) {
    text[0] = '\0';
    if (nearest->name[0]) snprintf(text, chars, "; did you mean '%s%s'?", before, nearest->name);
    return text;
}
