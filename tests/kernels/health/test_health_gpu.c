/* The GPUs of this machine say that they are well, and what they say is printed. */
#include "kernels/health/health.h"
#include "tests/kernels/device/device_under_test.h"

int main(void) {
    device_under_test under = test_open();
    tsr_device_facts facts;
    tsr_gpu_readings r;
    char text[TSR_HEALTH_CHARS];
    CHECK_OK(under.ops->facts(under.device, &facts));
    const double began = tsr_now_seconds();
    tsr_nvml_open();
    const double opened = tsr_now_seconds();
    tsr_nvml_read(facts.bus_id, &r);
    const double read = tsr_now_seconds();
    tsr_nvml_close();
    const tsr_gpu_verdict verdict = tsr_gpu_judge(&r, text);
    printf("%s (%s): %s\n", facts.name, facts.bus_id, text);
    printf("remap pending %d, failed %d; retirement pending %d; uncorrected errors %lld; clocks 0x%llx\n",
           r.remap_pending, r.remap_failed, r.retirement_pending, (long long)r.uncorrected_errors,
           (unsigned long long)r.clock_reasons);
    printf("NVML opened in %.1f ms, read in %.1f ms, closed in %.1f ms\n", 1e3 * (opened - began),
           1e3 * (read - opened), 1e3 * (tsr_now_seconds() - read));
    CHECK(r.answered, "%s", r.why);
    CHECK(verdict == TSR_GPU_GOOD, "%s", text);
    test_close(&under);
    return 0;
}
