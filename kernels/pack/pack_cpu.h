/* What the CPU's pack does with rows of reals, for complex elements, too. */
#ifndef TSR_KERNELS_PACK_PACK_CPU_H
#define TSR_KERNELS_PACK_PACK_CPU_H

#include "kernels/base/base.h"

/* n real elements at `from`, of any alignment, to ones of `to_type`, a type that pack makes. */
void tsr_cpu_convert(tsr_element element, const void *from, tsr_dtype to_type, void *to, int64_t n);

#endif
