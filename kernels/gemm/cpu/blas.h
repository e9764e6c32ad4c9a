/* The CPU's BLAS: its loading, its threads, and its product. OpenBLAS is loaded when it is first wanted, with one
 * thread, and starts the others when it is told how many. Each has a buffer of 128 MiB of addresses. OpenBLAS waits for
 * ever for a thread or a buffer that is not to be had: so both are looked for before the run, and counted.
 *
 * Loading sets OPENBLAS_NUM_THREADS for a moment, and that is not safe beside another thread in getenv: MPI and drivers
 * may have threads by then, which read their settings when they start. */
#ifndef TSR_KERNELS_GEMM_CPU_BLAS_H
#define TSR_KERNELS_GEMM_CPU_BLAS_H

#include "kernels/base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Local, by one thread at a time. Loads BLAS, and makes OpenBLAS's threads and their buffers; other libraries keep
 * their own settings. Fewer threads later is fine, and so is more. TSR_ERR_UNSUPPORTED where BLAS cannot be loaded,
 * TSR_ERR_MEMORY where a thread or a buffer is not to be had: after that the process can multiply no more. */
tsr_status tsr_blas_start(int threads);

/* Around a run in a process that may multiply with the same library itself: leave gives OpenBLAS back the number of
 * threads that it had at enter, or where it was not used here before then, when it was loaded. Local. */
void tsr_blas_enter(void);
void tsr_blas_leave(void);

/* Whether OpenBLAS believes in a thread that could not be started. Its own end would wait for that thread, so the
 * process has to leave without (_exit). Local. */
bool tsr_blas_broken(void);

/* C (m × n) = A (m × k) · B (k × n) + beta · C, row-major, leading dimensions of at least 1. Local. Loads BLAS where
 * nobody has started it. */
tsr_status tsr_blas_sgemm(int m, int n, int k, const float *a, int lda, const float *b, int ldb, float beta, float *c,
                          int ldc);
tsr_status tsr_blas_dgemm(int m, int n, int k, const double *a, int lda, const double *b, int ldb, double beta,
                          double *c, int ldc);

/* What BLAS calls itself, or why it cannot be loaded. Local. Lasts as long as the process. */
const char *tsr_blas_version(void);

#ifdef __cplusplus
}
#endif
#endif
