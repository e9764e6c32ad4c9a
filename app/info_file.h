/* What `tessera info FILE` says of a file: matrices, the runs that made them, logs and traces. */
#ifndef TSR_APP_INFO_FILE_H
#define TSR_APP_INFO_FILE_H

#include "kernels/base.h"

/* Local. Prints to stdout. `text`: a file, a matrix in it or a run's record in it. `ranks`: the tables of ranks,
 * too. */
tsr_status tsr_info_file(const char *text, bool ranks);

#endif
