/* Whether a matrix still has the digest that was taken of it when it was written (io/digest/digest.h). */
#ifndef TSR_APP_VERIFY_DIGEST_VERIFY_DIGEST_H
#define TSR_APP_VERIFY_DIGEST_VERIFY_DIGEST_H

#include "io/describe/describe.h"
#include "io/digest/digest.h"
#include "mpi/ranks/world.h"

/* Local. The digest that `text` means: itself, or that of the record in a JSON log or an HDF5 file (C.h5, C.h5:/C, or
 * C.h5:/C.run). TSR_ERR_NOT_FOUND where the record has none. */
tsr_status tsr_verify_digest_expected(tsr_describer *describer, const char *text, char digest[TSR_DIGEST_CHARS]);
/* Collective. TSR_ERR_CHECK where the matrix has another digest; the same status everywhere. */
tsr_status tsr_verify_digest(const tsr_world *world, tsr_store *store, const char *expected);

#endif
