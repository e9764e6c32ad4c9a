/* Measured speeds of kernels, for `--kernel auto`. `tessera bench speeds -o kernels/gemm/speeds.inc` writes the
 * lines. */
#ifndef TSR_KERNELS_GEMM_SPEEDS_H
#define TSR_KERNELS_GEMM_SPEEDS_H

#define TSR_GEMM_SPEED_SMALLEST 128
#define TSR_GEMM_SPEED_SIZES 7 /* each twice the one before: to 8192 */

/* TFLOP/s of square products of those sizes (round), and of sizes one less (odd). */
typedef struct {
    int arch;         /* compute capability · 10 */
    const char *code; /* what was compiled for it, as in tsr_device_facts; "": a library, which brings its own */
    const char *kernel, *input, *type;
    double round[TSR_GEMM_SPEED_SIZES], odd[TSR_GEMM_SPEED_SIZES];
} tsr_gemm_speed_row;

#ifndef TSR_GEMM_SPEED_TABLE /* a test has figures of its own */
#define TSR_GEMM_SPEED_TABLE "kernels/gemm/speeds.inc"
#endif
static const tsr_gemm_speed_row tsr_gemm_speeds[] = {
#include TSR_GEMM_SPEED_TABLE
};
#define TSR_GEMM_SPEED_ROWS ((int)(sizeof tsr_gemm_speeds / sizeof *tsr_gemm_speeds))

#endif
