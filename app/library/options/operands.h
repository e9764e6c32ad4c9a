/* What a call of tessera.h multiplies: matrices in files, by their names, and in the ranks' memory. */
#ifndef TSR_APP_LIBRARY_OPTIONS_OPERANDS_H
#define TSR_APP_LIBRARY_OPTIONS_OPERANDS_H

#include "app/library/run.h"
#include "app/library/tessera.h"

enum { TSR_CALL_A, TSR_CALL_B, TSR_CALL_C, TSR_CALL_C0, TSR_CALL_OPERANDS };

typedef struct {
    const char *name[TSR_CALL_OPERANDS];      /* in a file; NULL: in memory, or missing; not owned */
    tessera_matrix matrix[TSR_CALL_OPERANDS]; /* in memory, where its size is not 0 */
    bool matrices;                            /* one was given as tessera_matrix, not as a name */
    bool without_c;                           /* C is asked for, and there is none yet */
    int rank, ranks;
} tsr_call_operands;

static inline bool tsr_call_in_memory(const tsr_call_operands *of, int which) { return of->matrix[which].size > 0; }

/* Local. What of callers' structs this library knows. TSR_ERR_USAGE where A or C is missing. */
tsr_status tsr_call_operands_take(const tessera_matrix *const given[TSR_CALL_OPERANDS], tsr_call_operands *of);
/* Local. The same of C0, which comes with the options. */
tsr_status tsr_call_operands_take_c0(const tessera_multiply_options *options, tsr_call_operands *of);
/* Local. Those in memory, as a run takes them; `memory` lives as long as the product. Options that are none of theirs
 * are refused. What a run checks of them (tsr_distributed_check) is left to it. */
tsr_status tsr_call_operands_read(const tsr_call_operands *of, const tessera_multiply_options *options,
                                  tsr_distributed memory[TSR_CALL_OPERANDS], tsr_run_product *product);

#endif
