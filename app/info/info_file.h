/* What `tessera info FILE` says of a file: matrices, the runs that made them, logs and traces. */
#ifndef TSR_APP_INFO_INFO_FILE_H
#define TSR_APP_INFO_INFO_FILE_H

#include "app/info/info_json.h"
#include "io/describe/describe.h"

/* Local. Prints to stdout what `describer` finds. `text`: a file, a matrix in it or a run's record in it.
 * `ranks`: the tables of ranks, too. `json`: takes the same; may be NULL. */
tsr_status tsr_info_file(tsr_describer *describer, const char *text, bool ranks, tsr_info_json *json);

#endif
