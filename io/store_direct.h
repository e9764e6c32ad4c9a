/* The direct path: pread and pwrite at desc->offset of the file, by every rank and thread. Any kind of store whose rows
 * follow each other in a file opens through it. */
#ifndef TSR_IO_STORE_DIRECT_H
#define TSR_IO_STORE_DIRECT_H

#include "io/store.h"

/* Local. For reading, or for reading and writing. */
tsr_status tsr_direct_open(const tsr_store_desc *desc, bool write, tsr_store **store);

#endif
