/* Reading a GPU's health by NVML (health.h). Its functions are declared here as its manual has them: the library comes
 * with the driver, its header with the toolkit, and a build has neither. */
#include <stdio.h>
#include <string.h>

#include "kernels/base/library.h"
#include "kernels/health/health.h"

typedef struct nvml_device *nvml_device;
enum { NVML_OK = 0, NVML_UNCORRECTED = 1, NVML_SINCE_LOADED = 0 };

static struct {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int code);
    int (*by_bus_id)(const char *bus_id, nvml_device *device);
} nvml;
static const char *const symbols[] = {"nvmlInit_v2", "nvmlShutdown", "nvmlErrorString",
                                      "nvmlDeviceGetHandleByPciBusId_v2"};

/* What older drivers lack. NULL: not there. */
static struct {
    int (*remapped_rows)(nvml_device device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                         unsigned *failed);
    int (*retirement)(nvml_device device, int *pending);
    int (*ecc_errors)(nvml_device device, int type, int since, unsigned long long *count);
    int (*clock_reasons)(nvml_device device, unsigned long long *reasons);
} query;
static const struct {
    const char *name, *older; /* before it was renamed; NULL: never */
} queries[] = {{"nvmlDeviceGetRemappedRows", NULL},
               {"nvmlDeviceGetRetiredPagesPendingStatus", NULL},
               {"nvmlDeviceGetTotalEccErrors", NULL},
               {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}};

#define NVML_NAME "libnvidia-ml.so.1"
static bool loaded, started;
static char why[TSR_LIBRARY_WHY_CHARS] = "NVML is not open";

static void load_query(const char *name, void **function) {
    char missing[TSR_LIBRARY_WHY_CHARS];
    if (name && !*function) (void)tsr_library_load(NVML_NAME, NVML_NAME, &name, function, 1, missing);
}

void tsr_nvml_open(void) {
    if (started) return;
    if (!loaded) loaded = tsr_library_load(NVML_NAME, NVML_NAME, symbols, (void **)&nvml, 4, why);
    if (!loaded) return;
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        load_query(queries[i].name, (void **)&query + i);
        load_query(queries[i].older, (void **)&query + i);
    }
    const int code = nvml.init();
    started = code == NVML_OK;
    if (!started) snprintf(why, sizeof why, "nvmlInit: %.200s", nvml.error_string(code));
}

void tsr_nvml_close(void) {
    if (started) nvml.shutdown();
    started = false;
}

static void read_remaps(nvml_device device, tsr_gpu_readings *readings) {
    unsigned corrected = 0, uncorrected = 0;
    unsigned pending = 0, failed = 0;
    int retirement = 0;
    if (query.remapped_rows && query.remapped_rows(device, &corrected, &uncorrected, &pending, &failed) == NVML_OK) {
        readings->remap_pending = pending != 0;
        readings->remap_failed = failed != 0;
    }
    if (query.retirement && query.retirement(device, &retirement) == NVML_OK)
        readings->retirement_pending = retirement != 0;
}

void tsr_nvml_read(const char *bus_id, tsr_gpu_readings *readings) {
    nvml_device device = NULL;
    unsigned long long count = 0;
    *readings = (tsr_gpu_readings){.remap_pending = -1,
                                   .remap_failed = -1,
                                   .retirement_pending = -1,
                                   .uncorrected_errors = -1,
                                   .clock_reasons = -1};
    if (!started) {
        snprintf(readings->why, sizeof readings->why, "%.150s", why);
        return;
    }
    const int code = nvml.by_bus_id(bus_id, &device);
    if (code != NVML_OK) {
        snprintf(readings->why, sizeof readings->why, "NVML of %.32s: %.100s", bus_id, nvml.error_string(code));
        return;
    }
    readings->answered = true;
    read_remaps(device, readings);
    if (query.ecc_errors && query.ecc_errors(device, NVML_UNCORRECTED, NVML_SINCE_LOADED, &count) == NVML_OK)
        readings->uncorrected_errors = count > INT64_MAX ? INT64_MAX : (int64_t)count;
    if (query.clock_reasons && query.clock_reasons(device, &count) == NVML_OK)
        readings->clock_reasons = (int64_t)(count & INT64_MAX);
}
