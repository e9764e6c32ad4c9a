/* What this program was made from and what it runs with. */
#ifndef TSR_APP_COMMANDS_VERSION_H
#define TSR_APP_COMMANDS_VERSION_H

#include <stdio.h>

/* Local, before MPI starts. "tessera [COMMAND ]0.2.0" on the first line, then a line each for commit, HDF5, MPI,
 * CUDA, NCCL and zlib, and the filters of HDF5 that are decoded here. */
void tsr_version_print(const char *command, FILE *to);

#endif
