/* What a GPU says of its own health, before it is trusted with hours: read by NVML, which comes with the driver and is
 * loaded when it is wanted, and judged by a function of what was read. Every call is Local. */
#ifndef TSR_KERNELS_HEALTH_HEALTH_H
#define TSR_KERNELS_HEALTH_HEALTH_H

#include "kernels/base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why clocks are lower than they could be, as NVML numbers it (nvmlClocksEventReasons). */
#define TSR_CLOCKS_IDLE 0x1u
#define TSR_CLOCKS_APPLICATION 0x2u
#define TSR_CLOCKS_POWER_CAP 0x4u
#define TSR_CLOCKS_HARDWARE_SLOWDOWN 0x8u
#define TSR_CLOCKS_SYNC_BOOST 0x10u
#define TSR_CLOCKS_SOFTWARE_THERMAL 0x20u
#define TSR_CLOCKS_HARDWARE_THERMAL 0x40u
#define TSR_CLOCKS_POWER_BRAKE 0x80u
#define TSR_CLOCKS_DISPLAY 0x100u

#define TSR_HEALTH_WHY_CHARS 160

/* -1 stands for what the GPU or its driver does not say. */
typedef struct {
    bool answered;                  /* NVML knows the GPU */
    char why[TSR_HEALTH_WHY_CHARS]; /* it does not; else "" */
    int remap_pending;              /* 1: a row of memory is remapped when the GPU is reset; 0: none */
    int remap_failed;               /* 1: a row could not be remapped */
    int retirement_pending;         /* 1: a page is retired at the next reset (before sm_80); 0: none */
    int64_t uncorrected_errors;     /* ECC errors since the driver was loaded */
    int64_t clock_reasons;          /* bits TSR_CLOCKS_... */
} tsr_gpu_readings;

typedef enum {
    TSR_GPU_GOOD,    /* nothing that was read speaks against it */
    TSR_GPU_UNKNOWN, /* nothing could be read */
    TSR_GPU_DOUBTFUL
} tsr_gpu_verdict;

#define TSR_HEALTH_CHARS 320

/* The verdict, and what it is from: "good: no uncorrected ECC errors, ...", "doubtful: ...", "not known: ...". Errors
 * that wait for a reset, and clocks that are lowered by heat or by the hardware, make a GPU doubtful. A power cap does
 * not: GPUs are meant to work at theirs. */
tsr_gpu_verdict tsr_gpu_judge(const tsr_gpu_readings *readings, char text[TSR_HEALTH_CHARS]);

/* Loads and starts NVML, where it is there, unless it is started already. One thread at a time. */
void tsr_nvml_open(void);
/* Of the GPU at a PCI address, while NVML is open. */
void tsr_nvml_read(const char *bus_id, tsr_gpu_readings *readings);
void tsr_nvml_close(void);

#ifdef __cplusplus
}
#endif
#endif
