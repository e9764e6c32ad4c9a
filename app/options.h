/* What the subcommands' argp parsers share: running argp so that errors become a tsr_status (never exit, never
 * print: one rank reports), and the values several commands read. */
#ifndef TSR_APP_OPTIONS_H
#define TSR_APP_OPTIONS_H

#include <argp.h>

#include "io/store.h"
#include "kernels/base.h"

/* Parses argv. Unknown options and stray arguments become TSR_ERR_USAGE with the list of options there are. `input`
 * goes to the parser as state->input; the parser reports bad values with tsr_fail and returns EINVAL. */
tsr_status tsr_options_parse(const struct argp *argp, int argc, char **argv, void *input);
/* --help text of one command to stdout, and a command line or two (lines after a newline begin with two blanks) as
 * an example. */
void tsr_options_help(const struct argp *argp, const char *name, const char *example);

tsr_status tsr_parse_double(const char *option, const char *text, double *value);
#define TSR_THREADS_MAX 4096 /* what --threads of a rank takes */

tsr_status tsr_parse_int(const char *option, const char *text, int64_t low, int64_t high, int64_t *value);
/* Numbers of shapes and grids stand between x, X or commas, with blanks and one pair of parentheses around them
 * where one likes: (10, 10). */
tsr_status tsr_parse_shape(const char *option, const char *text, int64_t *rows, int64_t *cols); /* MxN */
/* MxNxK of at least 1, or one number for all three. */
tsr_status tsr_parse_product(const char *option, const char *text, int64_t *m, int64_t *n, int64_t *k);
/* PxQ or PxQxR; "auto" gives 0, 0, 0. */
tsr_status tsr_parse_grid(const char *option, const char *text, int grid[3]);
/* BYTES (tsr_parse_bytes) or PERCENT%: bytes > 0, or percent in (0, 100] and bytes 0. */
tsr_status tsr_parse_memory(const char *option, const char *text, size_t *bytes, double *percent);

/* --device KIND: "auto", "cpu" or "cuda" (static text); "gpu" is cuda. */
tsr_status tsr_device_parse(const char *text, const char **kind);

/* --order row|col (or C|F): how a person sees a dataset. TSR_ORDER_COL swaps rows and columns of what the file
 * shows. */
typedef enum { TSR_ORDER_ROW, TSR_ORDER_COL } tsr_order;
tsr_status tsr_order_parse(const char *text, tsr_order *order);

/* The command line, one string (for the record and history attributes); owned by the caller: free it. */
char *tsr_command_line(int argc, char **argv);

#endif
