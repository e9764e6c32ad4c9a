/* What tessera_plan and --dry-run say: the plan, and about how long it takes. */
#ifndef TSR_APP_LIBRARY_API_DRY_RUN_H
#define TSR_APP_LIBRARY_API_DRY_RUN_H

#include <stdio.h>

#include "kernels/base/base.h"

struct tsr_run;

/* Local. Rank 0 writes the plan, and seconds predicted from rates that it states. It measures a CPU's kernel. */
tsr_status tsr_dry_run_print(const struct tsr_run *run, FILE *to);

#endif
