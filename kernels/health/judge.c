/* What a GPU's readings are worth (health.h): a function of them, and nothing else. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/health/health.h"

/* Those that are no fault go unmentioned, but for the power cap: whoever compares speeds wants to know. */
static const struct {
    unsigned bit;
    const char *name;
    bool fault;
} clocks[] = {{TSR_CLOCKS_POWER_CAP, "power cap", false},
              {TSR_CLOCKS_HARDWARE_SLOWDOWN, "hardware slowdown", true},
              {TSR_CLOCKS_SOFTWARE_THERMAL, "heat, by the driver", true},
              {TSR_CLOCKS_HARDWARE_THERMAL, "heat, by the hardware", true},
              {TSR_CLOCKS_POWER_BRAKE, "power brake", true}};

typedef struct {
    char *text;
    bool doubtful, known; /* something speaks against it; something was read */
} report;

/* Another part of the text. */
__attribute__((format(printf, 2, 3))) static void add(report *r, const char *format, ...) {
    const size_t used = strlen(r->text);
    va_list values;
    va_start(values, format);
    vsnprintf(r->text + used, TSR_HEALTH_CHARS - used, format, values);
    va_end(values);
}

static const char *comma(const report *r) { return r->text[0] ? ", " : ""; }

/* A reading that is a fault where it is 1: said so, or that it is none, or that nobody knows. */
static void add_flag(report *r, int value, const char *fault, const char *none) {
    if (value < 0) return;
    r->known = true;
    r->doubtful |= value > 0;
    if (value > 0) add(r, "%s%s", comma(r), fault);
    else if (none) add(r, "%s%s", comma(r), none);
}

static void add_errors(report *r, int64_t errors) {
    if (errors < 0) {
        add(r, "%sECC errors not known", comma(r));
        return;
    }
    r->known = true;
    r->doubtful |= errors > 0;
    if (errors == 0) add(r, "%sno uncorrected ECC errors", comma(r));
    else
        add(r, "%s%" PRId64 " uncorrected ECC error%s since the driver was loaded", comma(r), errors,
            errors == 1 ? "" : "s");
}

static void add_clocks(report *r, int64_t reasons) {
    int named = 0;
    if (reasons < 0) return;
    r->known = true;
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        if (!((uint64_t)reasons & clocks[i].bit)) continue;
        r->doubtful |= clocks[i].fault;
        if (named++ == 0) add(r, "%sthrottled (%s", comma(r), clocks[i].name);
        else add(r, "; %s", clocks[i].name);
    }
    if (named > 0) add(r, ")");
    else add(r, "%snot throttled", comma(r));
}

tsr_gpu_verdict tsr_gpu_judge(const tsr_gpu_readings *readings, char text[TSR_HEALTH_CHARS]) {
    char parts[TSR_HEALTH_CHARS] = "";
    report r = {.text = parts};
    if (!readings->answered) {
        snprintf(text, TSR_HEALTH_CHARS, "not known: %s", readings->why);
        return TSR_GPU_UNKNOWN;
    }
    add_errors(&r, readings->uncorrected_errors);
    add_flag(&r, readings->remap_failed, "a row of memory could not be remapped", NULL);
    add_flag(&r, readings->remap_pending, "a row of memory waits to be remapped", "no row remap pending");
    add_flag(&r, readings->retirement_pending, "a page of memory waits to be retired", NULL);
    add_clocks(&r, readings->clock_reasons);
    if (!r.known) {
        snprintf(text, TSR_HEALTH_CHARS, "not known: the driver says nothing of this GPU");
        return TSR_GPU_UNKNOWN;
    }
    snprintf(text, TSR_HEALTH_CHARS, "%s: %.*s", r.doubtful ? "doubtful" : "good", TSR_HEALTH_CHARS - 12, parts);
    return r.doubtful ? TSR_GPU_DOUBTFUL : TSR_GPU_GOOD;
}
