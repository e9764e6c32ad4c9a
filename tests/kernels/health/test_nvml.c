/* Reading by a libnvidia-ml.so.1 of our own (fake_nvml.c), which lies on LD_LIBRARY_PATH: every reading, drivers that
 * lack some, and errors. Usage: test_nvml new|old|none, as the library is. */
#include <dlfcn.h>

#include "kernels/health/health.h"
#include "tests/check.h"

static tsr_gpu_readings read_all(const char *fake) {
    tsr_gpu_readings readings;
    CHECK(setenv("FAKE_NVML", fake, 1) == 0, "setenv");
    tsr_nvml_open();
    tsr_nvml_read("0000:00:00.0", &readings);
    tsr_nvml_close();
    return readings;
}

static void expect(const char *fake, int pending, int failed, int retirement, int64_t errors, int64_t clocks) {
    const tsr_gpu_readings r = read_all(fake);
    CHECK(r.answered && !r.why[0], "%s: %s", fake, r.why);
    CHECK(r.remap_pending == pending && r.remap_failed == failed && r.retirement_pending == retirement, "%s: %d %d %d",
          fake, r.remap_pending, r.remap_failed, r.retirement_pending);
    CHECK(r.uncorrected_errors == errors && r.clock_reasons == clocks, "%s: %lld %lld", fake,
          (long long)r.uncorrected_errors, (long long)r.clock_reasons);
}

static void expect_none(const char *fake, const char *why) {
    const tsr_gpu_readings r = read_all(fake);
    CHECK(!r.answered && strstr(r.why, why), "%s: %d '%s'", fake, r.answered, r.why);
    CHECK(r.remap_pending == -1 && r.uncorrected_errors == -1 && r.clock_reasons == -1, "%s", fake);
}

int main(int argc, char **argv) {
    tsr_gpu_readings readings;
    const char *library = argc > 1 ? argv[1] : "";
    tsr_nvml_read("0000:00:00.0", &readings);
    CHECK(!readings.answered, "read before NVML was opened");
    if (strcmp(library, "none") == 0) {
        void *found = dlopen("libnvidia-ml.so.1", RTLD_NOW);
        if (found) {
            printf("skipped: this machine has a libnvidia-ml.so.1\n");
            return 77;
        }
        expect_none("", "libnvidia-ml.so.1");
        return 0;
    }
    const bool old = strcmp(library, "old") == 0; /* has nothing of rows that are remapped */
    expect("", -1, -1, -1, -1, -1);
    expect("pending=0,failed=0,ecc=0,clocks=1", old ? -1 : 0, old ? -1 : 0, -1, 0, 1);
    expect("pending=1,failed=0", old ? -1 : 1, old ? -1 : 0, -1, -1, -1);
    expect("pending=0,failed=1", old ? -1 : 0, old ? -1 : 1, -1, -1, -1);
    expect("retirement=1", -1, -1, 1, -1, -1);
    expect("retirement=0,ecc=5", -1, -1, 0, 5, -1);
    expect("ecc=0xffffffffffffffff", -1, -1, -1, INT64_MAX, -1);
    expect("clocks=0x48", -1, -1, -1, -1, 0x48);
    expect_none("init=9", "Driver Not Loaded");
    expect_none("handle=15", "0000:00:00.0: GPU is lost");
    CHECK(setenv("FAKE_NVML", "", 1) == 0, "setenv");
    tsr_nvml_open();
    tsr_nvml_read("0000:01:00.0", &readings);
    tsr_nvml_close();
    CHECK(!readings.answered && strstr(readings.why, "0000:01:00.0: Not Found"), "%s", readings.why);
    expect("ecc=1", -1, -1, -1, 1, -1); /* an error is over when NVML is opened again */
    return 0;
}
