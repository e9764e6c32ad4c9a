/* How far a long piece of work is, told to whoever wants to show it: functions of the caller's. The functions below
 * call them; a listener that is NULL, or lacks one, hears nothing. */
#ifndef TSR_APP_LIBRARY_LISTENER_H
#define TSR_APP_LIBRARY_LISTENER_H

#include <stddef.h>

typedef struct {
    void *context; /* handed to each function; not owned */
    /* A piece of work begins: "multiply", of so many units, "B" or "FLOP". Texts are static. One begins after the
     * other has ended. */
    void (*begin)(void *context, const char *what, double total, const char *unit);
    /* `done` units are done, and steps of `under_way` more have begun. Any thread. */
    void (*advance)(void *context, double done, double under_way);
    void (*extend)(void *context, double units); /* there is more to do than was thought */
    void (*end)(void *context);
} tsr_listener;

static inline void tsr_listener_begin(const tsr_listener *l, const char *what, double total, const char *unit) {
    if (l && l->begin) l->begin(l->context, what, total, unit);
}

static inline void tsr_listener_advance(const tsr_listener *l, double done, double under_way) {
    if (l && l->advance) l->advance(l->context, done, under_way);
}

static inline void tsr_listener_extend(const tsr_listener *l, double units) {
    if (l && l->extend) l->extend(l->context, units);
}

static inline void tsr_listener_end(const tsr_listener *l) {
    if (l && l->end) l->end(l->context);
}

#endif
