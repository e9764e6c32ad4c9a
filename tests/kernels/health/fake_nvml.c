/* A libnvidia-ml.so.1 for tests: one GPU at 0000:00:00.0, whose readings the variable FAKE_NVML holds, as in
 * "pending=1,ecc=3". A reading that is not there is one that the GPU does not support. With FAKE_NVML_OLD it is that of
 * an older driver, which has neither the newer name of clocks nor rows that are remapped. */
#include <stdlib.h>
#include <string.h>

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, NOT_LOADED = 9, LOST = 15 };
static int open_count;

/* The value of a reading; false where there is none. */
static int reading(const char *name, unsigned long long *value) {
    const char *text = getenv("FAKE_NVML");
    const size_t chars = strlen(name);
    for (; text && *text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
        if (strncmp(text, name, chars) == 0 && text[chars] == '=') {
            *value = strtoull(text + chars + 1, NULL, 0);
            return 1;
        }
    return 0;
}

static int answer(const char *name, unsigned long long *value) {
    return open_count > 0 && reading(name, value) ? OK : NOT_SUPPORTED;
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device);
int nvmlDeviceGetRetiredPagesPendingStatus(void *device, int *pending);
int nvmlDeviceGetTotalEccErrors(void *device, int type, int since, unsigned long long *count);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons);
int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                              unsigned *failed);

int nvmlInit_v2(void) {
    unsigned long long code = 0;
    if (reading("init", &code)) return (int)code;
    open_count++;
    return OK;
}

int nvmlShutdown(void) {
    open_count--;
    return OK;
}

const char *nvmlErrorString(int code) {
    return code == NOT_LOADED ? "Driver Not Loaded" : code == LOST ? "GPU is lost" : "Not Found";
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device) {
    unsigned long long code = 0;
    *device = &open_count;
    if (reading("handle", &code)) return (int)code;
    return open_count > 0 && strcmp(bus_id, "0000:00:00.0") == 0 ? OK : NOT_FOUND;
}

int nvmlDeviceGetRetiredPagesPendingStatus(void *device, int *pending) {
    unsigned long long value = 0;
    const int code = answer("retirement", &value);
    (void)device;
    *pending = (int)value;
    return code;
}

/* Corrected errors are many; uncorrected ones of all time are more than those since the driver was loaded. */
int nvmlDeviceGetTotalEccErrors(void *device, int type, int since, unsigned long long *count) {
    const int code = answer("ecc", count);
    (void)device;
    if (type != 1) *count += 1000;
    if (since != 0) *count += 100;
    return code;
}

#ifdef FAKE_NVML_OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    (void)device;
    return answer("clocks", reasons);
}
#else
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons) {
    (void)device;
    return answer("clocks", reasons);
}

int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                              unsigned *failed) {
    unsigned long long waits = 0, could_not = 0;
    const int code = answer("pending", &waits);
    (void)device;
    (void)answer("failed", &could_not);
    *corrected = 7; /* remapped long ago: nothing waits */
    *uncorrected = 2;
    *pending = (unsigned)waits;
    *failed = (unsigned)could_not;
    return code;
}
#endif
