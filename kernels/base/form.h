/* Complex elements as reals that a real product multiplies. */
#ifndef TSR_KERNELS_BASE_FORM_H
#define TSR_KERNELS_BASE_FORM_H

#include <stdint.h>

#include "kernels/base/half.h" /* TSR_HOST_DEVICE */

/* How complex elements become reals, so that a real product has complex sums: C (m × n) side by side is
 * A (m × k) side by side (m × 2k reals) times B (k × n) as squares (2k × 2n reals). A real A times B side by side is C
 * side by side, and A in rows (2m × k) times a real B is C in rows (2m × n). */
typedef enum {
    TSR_FORM_REAL,   /* there are none */
    TSR_FORM_BESIDE, /* re, im side by side: an element is 1 × 2 reals */
    TSR_FORM_ROWS,   /* a row of real parts above one of imaginary parts: 2 × 1 */
    TSR_FORM_SQUARES /* re, im above -im, re: 2 × 2 */
} tsr_form;

TSR_HOST_DEVICE static inline int64_t tsr_form_rows(tsr_form form) {
    return form == TSR_FORM_ROWS || form == TSR_FORM_SQUARES ? 2 : 1;
}
TSR_HOST_DEVICE static inline int64_t tsr_form_cols(tsr_form form) {
    return form == TSR_FORM_BESIDE || form == TSR_FORM_SQUARES ? 2 : 1;
}

#endif
