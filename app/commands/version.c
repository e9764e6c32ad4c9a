/* --version (version.h). HDF5, MPI and zlib are asked what is loaded; CUDA and NCCL are not loaded for it, so these
 * are the ones the program was built with. */
#include "app/commands/version.h"

#include <mpi.h>
#include <string.h>

#include "io/filters/filter.h"
#include "io/stores.h"
#include "tessera_build.h"  /* configured by CMake */
#include "tessera_commit.h" /* made at every build (cmake/commit.cmake) */

static void line(FILE *to, const char *what, const char *version) {
    fprintf(to, "%-7s %s\n", what, *version ? version : "not in this build");
}

/* Those that are decoded without HDF5. */
static void list_filters(FILE *to) {
    fprintf(to, "filters");
    for (int i = 0; i < tsr_filter_count(); i++)
        if (tsr_filter_at(i)->check || tsr_filter_at(i)->undo) fprintf(to, " %s", tsr_filter_at(i)->name);
    fprintf(to, "\n");
}

void tsr_version_print(const char *command, FILE *to) {
    char hdf5[64], zlib[64], library[MPI_MAX_LIBRARY_VERSION_STRING] = "", mpi[MPI_MAX_LIBRARY_VERSION_STRING + 64];
    int length = 0;
    MPI_Get_library_version(library, &length); /* may be called before MPI_Init */
    library[strcspn(library, ",\n")] = '\0';
    snprintf(mpi, sizeof mpi, "%s (built for MPI %d.%d)", library, MPI_VERSION, MPI_SUBVERSION);
    fprintf(to, "tessera%s%s %s\n", command ? " " : "", command ? command : "", TSR_VERSION);
    line(to, "commit", TSR_COMMIT);
    line(to, "HDF5", tsr_stores_version(hdf5, sizeof hdf5) + strlen("HDF5 "));
    line(to, "MPI", mpi);
    line(to, "CUDA", TSR_BUILT_CUDA);
    line(to, "NCCL", TSR_BUILT_NCCL);
    line(to, "zlib", tsr_zlib_version(zlib, sizeof zlib));
    list_filters(to);
}
