/* Calls of CUDA and of NCCL that fail, in a program that runs on the emulation of CUDA: the numbers of injector.h, and
 * its environment. TSR_FAULT_STAYS chooses how a call fails:
 *   0  this one alone
 *   1  every later one, too
 *   2  of CUDA: the work that it starts fails later; every call from then on says so, as on a real device.
 *      Of NCCL: its communicator has an error from then on (ncclCommGetAsyncError), and the work never ends.
 *   3  of NCCL: the work never ends, and nothing is said. */
#ifndef TSR_TESTS_FAULTS_FAULTS_H
#define TSR_TESTS_FAULTS_FAULTS_H

#include <stdbool.h>

#include "tests/faults/injector.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { FAULT_NONE, FAULT_NOW, FAULT_LATER, FAULT_NEVER_ENDS } fault_kind;

/* Counts a call of family of_cuda or of_nccl. */
fault_kind tsr_fault_of(int family, const char *call);
void tsr_fault_note_abort(void);         /* ncclCommAbort was called */
const char *tsr_fault_report_file(void); /* the file's name; NULL: nothing is counted */

/* The stream's work never ends from now on, until all is released. */
void tsr_runtime_hold(void *stream);
void tsr_runtime_release(void);

#ifdef __cplusplus
}
#endif
#endif
