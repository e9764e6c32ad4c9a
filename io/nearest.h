/* "Did you mean": of names offered one by one, the one that is most like what a person wrote. Commands, options and
 * datasets share it. */
#ifndef TSR_IO_NEAREST_H
#define TSR_IO_NEAREST_H

#include <stddef.h>

#define TSR_NEAREST_CHARS 128

typedef struct {
    const char *wanted;           /* what was written; not owned */
    char name[TSR_NEAREST_CHARS]; /* the best so far; "" when none is near */
    int distance;                 /* of it */
} tsr_nearest;

/* Letters to change, add, leave out or exchange with their neighbour to make one of the other; upper and lower case
 * are the same. */
int tsr_edit_distance(const char *a, const char *b);
/* Local. Keeps the name when it is nearer than those before it, and near at all: a letter or two away, or longer
 * than what was written. */
void tsr_nearest_offer(tsr_nearest *nearest, const char *name);
/* "; did you mean 'NAME'?" with `before` in front of the name, or "" when none is near. Returns text. */
const char *tsr_did_you_mean(const tsr_nearest *nearest, const char *before, char *text, size_t chars);

#endif
