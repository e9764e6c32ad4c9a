/* Values of options as people write them, on a command line or in the options of tessera.h: numbers, shapes, grids,
 * amounts of memory, kinds. `option` is how messages call it, such as "--alpha". TSR_ERR_USAGE with what to write. */
#ifndef TSR_APP_LIBRARY_OPTIONS_VALUES_H
#define TSR_APP_LIBRARY_OPTIONS_VALUES_H

#include "app/products/shapes.h"
#include "kernels/base/base.h"

tsr_status tsr_parse_double(const char *option, const char *text, double *value);
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
/* --order row|col (or C|F). */
tsr_status tsr_order_parse(const char *text, tsr_order *order);
/* "1.5", "1+2j", "-2j" */
tsr_status tsr_parse_complex(const char *option, const char *text, tsr_complex *value);
/* RxC of at least 1x1; "auto" gives TSR_CHUNK_AUTO. */
tsr_status tsr_parse_chunk(const char *option, const char *text, int64_t *rows, int64_t *cols);
/* full, lower or upper */
tsr_status tsr_triangle_parse(const char *option, const char *text, tsr_triangle *triangle);

#endif
