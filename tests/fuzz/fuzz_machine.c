/* Machine files. */
#include "mpi/plan/machine.h"

#include "tests/fuzz/fuzz.h"

void fuzz_start(void) {}

void fuzz_seeds(void) {
    static const char text[] = "# a machine\ngpus_per_node = 4\nf64_tflops = 57 # dmma\nf32_tflops = 2.15e2\n"
                               "f16_tflops=690\nbf16_tflops = 690\ndevice_memory_GB = 141\ndevice_memory_GBps = 4300\n"
                               "host_to_device_GBps = 48\ndevice_to_host_GBps = 38\ngpu_link_GBps = 397\n"
                               "network_GBps_per_node = 200\nnetwork_latency_us = 5\nfile_read_GBps_per_node = 22\n"
                               "file_write_GBps_per_node = 5.8\nfile_read_GBps_in_all = 1000\n"
                               "file_write_GBps_in_all = 500\nhost_memory_GB_per_node = 2000\n";
    fuzz_seed("machine", text, sizeof text - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const int ranks[] = {1, 7, 1 << 20};
    tsr_machine machine;
    tsr_resources resources;
    double ceilings[TSR_LANE_COUNT];
    const char *file = fuzz_write("machine", data, bytes);
    if (tsr_machine_read(file, &machine) != TSR_OK) return 0;
    CHECK(machine.gpus_per_node >= 1 && machine.gpus_per_node <= 1024, "%g GPUs", machine.gpus_per_node);
    for (int i = 0; i < TSR_DTYPE_COUNT; i++)
        for (int j = 0; j < 3; j++) {
            (void)tsr_machine_resources(&machine, file, ranks[j], (tsr_dtype)i, &resources);
            (void)tsr_machine_ceilings(&machine, file, ranks[j], (tsr_dtype)i, ceilings);
        }
    return 0;
}
