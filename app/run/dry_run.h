/* What --dry-run shows on rank 0: the plan, and about how long it takes. */
#ifndef TSR_APP_RUN_DRY_RUN_H
#define TSR_APP_RUN_DRY_RUN_H

#include "kernels/base/base.h"

struct tsr_run;

/* Local. Rank 0 prints the plan, and seconds predicted from rates that it states. It measures a CPU's kernel. */
tsr_status tsr_dry_run_print(const struct tsr_run *run);

#endif
