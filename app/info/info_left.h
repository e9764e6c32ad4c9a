/* What runs with --resume left beside a file. */
#ifndef TSR_APP_INFO_INFO_LEFT_H
#define TSR_APP_INFO_INFO_LEFT_H

#include "app/info/info_json.h"

/* Local. A line on standard output for each unfinished output of the file that `text` names, and an entry of `json`,
 * which may be NULL; how many there are. */
int tsr_info_left(const char *text, tsr_info_json *json);

#endif
