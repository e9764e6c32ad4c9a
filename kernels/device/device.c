/* The devices of this build. */
#include "kernels/device/device.h"

#include <string.h>

static const tsr_device_ops *const devices[] = {
    &tsr_device_cpu,
#ifdef TSR_CUDA_TABLES
    &tsr_device_cuda,
#endif
};

static _Thread_local bool loads_only;

void tsr_device_load_only(bool on) { loads_only = on; }
bool tsr_device_loads_only(void) { return loads_only; }

const char *tsr_device_kind_name(tsr_device_kind kind) { return kind == TSR_DEVICE_CPU ? "cpu" : "cuda"; }

tsr_status tsr_device_find(const char *name, const tsr_device_ops **ops) {
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (strcmp(devices[i]->name, name) != 0) continue;
        *ops = devices[i];
        return TSR_OK;
    }
    if (strcmp(name, "cuda") == 0)
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "device 'cuda': this build has no CUDA; configure again where nvcc is found, or use 'cpu'");
    return tsr_fail(TSR_ERR_USAGE, "unknown device '%s': use cpu or cuda", name);
}
