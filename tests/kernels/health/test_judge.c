/* The judgement of a GPU's readings: every reading alone, at its edges, unknown, and all at once. */
#include "kernels/health/health.h"
#include "tests/check.h"

static const tsr_gpu_readings good = {.answered = true, .retirement_pending = -1};

static void expect(tsr_gpu_readings readings, tsr_gpu_verdict verdict, const char *says) {
    char text[TSR_HEALTH_CHARS];
    const tsr_gpu_verdict found = tsr_gpu_judge(&readings, text);
    CHECK(found == verdict && strcmp(text, says) == 0, "%d: '%s', not '%s'", (int)found, text, says);
}

#define GOOD(readings, says) expect(readings, TSR_GPU_GOOD, says)
#define DOUBTFUL(readings, says) expect(readings, TSR_GPU_DOUBTFUL, says)
#define UNKNOWN(readings, says) expect(readings, TSR_GPU_UNKNOWN, says)
#define REST "no uncorrected ECC errors, no row remap pending, not throttled"

static void test_readings(void) {
    tsr_gpu_readings r = good;
    GOOD(r, "good: " REST);
    r.retirement_pending = 0;
    GOOD(r, "good: " REST);
    r.retirement_pending = 1;
    DOUBTFUL(r, "doubtful: no uncorrected ECC errors, no row remap pending, a page of memory waits to be retired, not "
                "throttled");
    r = good;
    r.remap_pending = 1;
    DOUBTFUL(r, "doubtful: no uncorrected ECC errors, a row of memory waits to be remapped, not throttled");
    r = good;
    r.remap_failed = 1;
    DOUBTFUL(r, "doubtful: no uncorrected ECC errors, a row of memory could not be remapped, no row remap pending, not "
                "throttled");
    r = good;
    r.uncorrected_errors = 1;
    DOUBTFUL(r, "doubtful: 1 uncorrected ECC error since the driver was loaded, no row remap pending, not throttled");
    r.uncorrected_errors = 12;
    DOUBTFUL(r, "doubtful: 12 uncorrected ECC errors since the driver was loaded, no row remap pending, not throttled");
}

/* Every bit, also those that NVML may come to have. */
static void test_clocks(void) {
    const unsigned faults = TSR_CLOCKS_HARDWARE_SLOWDOWN | TSR_CLOCKS_SOFTWARE_THERMAL | TSR_CLOCKS_HARDWARE_THERMAL |
                            TSR_CLOCKS_POWER_BRAKE;
    char text[TSR_HEALTH_CHARS];
    tsr_gpu_readings r = good;
    for (int bit = 0; bit < 63; bit++) {
        r.clock_reasons = INT64_C(1) << bit;
        const bool fault = bit < 32 && (faults >> bit & 1);
        const tsr_gpu_verdict found = tsr_gpu_judge(&r, text);
        CHECK(found == (fault ? TSR_GPU_DOUBTFUL : TSR_GPU_GOOD), "bit %d: %s", bit, text);
        CHECK(fault == (strstr(text, "throttled (") != NULL) || bit == 2, "bit %d: %s", bit, text);
    }
    r.clock_reasons = TSR_CLOCKS_IDLE | TSR_CLOCKS_APPLICATION | TSR_CLOCKS_SYNC_BOOST | TSR_CLOCKS_DISPLAY;
    GOOD(r, "good: " REST);
    r.clock_reasons = TSR_CLOCKS_POWER_CAP;
    GOOD(r, "good: no uncorrected ECC errors, no row remap pending, throttled (power cap)");
    r.clock_reasons = TSR_CLOCKS_HARDWARE_SLOWDOWN | TSR_CLOCKS_HARDWARE_THERMAL;
    DOUBTFUL(r, "doubtful: no uncorrected ECC errors, no row remap pending, throttled (hardware slowdown; heat, by the "
                "hardware)");
}

/* What is not known speaks neither for a GPU nor against it. */
static void test_unknown(void) {
    tsr_gpu_readings r = {.why = "no library"};
    UNKNOWN(r, "not known: no library");
    r = (tsr_gpu_readings){true, "", -1, -1, -1, -1, -1};
    UNKNOWN(r, "not known: the driver says nothing of this GPU");
    r.clock_reasons = 0;
    GOOD(r, "good: ECC errors not known, not throttled");
    r.clock_reasons = TSR_CLOCKS_POWER_BRAKE;
    DOUBTFUL(r, "doubtful: ECC errors not known, throttled (power brake)");
    r.clock_reasons = -1;
    r.retirement_pending = 1;
    DOUBTFUL(r, "doubtful: ECC errors not known, a page of memory waits to be retired");
    r.retirement_pending = -1;
    r.uncorrected_errors = 0;
    GOOD(r, "good: no uncorrected ECC errors");
}

/* The longest text fits, to its end. */
static void test_everything(void) {
    char text[TSR_HEALTH_CHARS];
    tsr_gpu_readings r = {true, "", 1, 1, 1, INT64_MAX, INT64_MAX};
    CHECK(tsr_gpu_judge(&r, text) == TSR_GPU_DOUBTFUL, "%s", text);
    CHECK(strcmp(text + strlen(text) - 13, " power brake)") == 0, "%zu: %s", strlen(text), text);
    memset(r.why, 'w', sizeof r.why - 1);
    r.answered = false;
    CHECK(tsr_gpu_judge(&r, text) == TSR_GPU_UNKNOWN && strlen(text) == strlen("not known: ") + sizeof r.why - 1, "%s",
          text);
}

int main(void) {
    test_readings();
    test_clocks();
    test_unknown();
    test_everything();
    return 0;
}
