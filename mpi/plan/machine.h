/* A machine that need not be there: GPUs, memories and links as a text file describes them, one `key = value` a
 * line, '#' begins a comment. From it a plan is made and predicted as for the ranks of a job, one rank a GPU.
 * jobs/h200_example.machine shows every key. */
#ifndef TSR_MPI_PLAN_MACHINE_H
#define TSR_MPI_PLAN_MACHINE_H

#include "mpi/plan/plan.h"

/* Field, whether the file must have it. The key is the field's name. GB and GBps: 10^9 bytes (a second); all numbers
 * > 0. */
#define TSR_MACHINE_LIST(X)                                                                                            \
    X(gpus_per_node, true)                                                                                             \
    X(f64_tflops, false) /* of the kernel that multiplies operands of this type, 10^12 flop/s a GPU */                 \
    X(f32_tflops, false)                                                                                               \
    X(f16_tflops, false)                                                                                               \
    X(bf16_tflops, false)                                                                                              \
    X(device_memory_GB, true)                                                                                          \
    X(device_memory_GBps, true)  /* read and write together */                                                         \
    X(host_to_device_GBps, true) /* a GPU, while all of the node copy */                                               \
    X(device_to_host_GBps, true)                                                                                       \
    X(gpu_link_GBps, true)         /* a GPU receives from others of the node */                                        \
    X(network_GBps_per_node, true) /* into a node */                                                                   \
    X(network_latency_us, true)                                                                                        \
    X(file_read_GBps_per_node, true)                                                                                   \
    X(file_write_GBps_per_node, true)                                                                                  \
    X(file_read_GBps_in_all, true)                                                                                     \
    X(file_write_GBps_in_all, true)                                                                                    \
    X(host_memory_GB_per_node, true)

typedef struct {
#define X(key, needed) double key; /* 0: not given */
    TSR_MACHINE_LIST(X)
#undef X
} tsr_machine;

/* TSR_ERR_NOT_FOUND or TSR_ERR_IO for the file; TSR_ERR_FORMAT with file and line for what it says. */
tsr_status tsr_machine_read(const char *file, tsr_machine *machine);

/* Resources of `ranks` ranks, one a GPU, that multiply operands of `input`, sharing panels from device to device;
 * all of the memories is theirs, with as much of it set aside for the kernel's workspace as any kernel wants.
 * TSR_ERR_FORMAT
 * when the machine has no rate for `input`; `file` is for that message. */
tsr_status tsr_machine_resources(const tsr_machine *machine, const char *file, int ranks, tsr_dtype input,
                                 tsr_resources *resources);

/* What each lane of a rank reaches at most while all of `ranks` ranks, one a GPU, work: bytes/s, flop/s to multiply. A
 * rank has its share of a node's files and network, and of what the files give in all. Errors as above. */
tsr_status tsr_machine_ceilings(const tsr_machine *machine, const char *file, int ranks, tsr_dtype input,
                                double ceilings[TSR_LANE_COUNT]);

#endif
