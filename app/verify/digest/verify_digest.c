/* A matrix's digest, compared (verify_digest.h). */
#include "app/verify/digest/verify_digest.h"

#include <stdio.h>
#include <string.h>

#include "io/record/record_read.h"
#include "io/text/text_file.h"

/* The record's group, named itself or by its matrix. */
static tsr_status read_hdf5(tsr_describer *describer, const char *text, tsr_kept_record *record) {
    tsr_matrix_name name;
    char run[TSR_PATH_CHARS + 8];
    TSR_TRY(tsr_matrix_name_parse(text, &name));
    const char *path = name.path[0] ? name.path : "/C";
    snprintf(run, sizeof run, "%s.run", path);
    if (strlen(run) < TSR_PATH_CHARS && tsr_describe_run(describer, name.file, run, record) == TSR_OK) return TSR_OK;
    const tsr_status status = tsr_describe_run(describer, name.file, path, record);
    if (status != TSR_ERR_NOT_FOUND || name.path[0]) return status;
    return tsr_fail(
        status,
        "--digest %s: '%s' has no record of a run beside '/C'; name what has it: C.h5:/path of a product, or "
        "the file of --log",
        text, name.file);
}

tsr_status tsr_verify_digest_expected(tsr_describer *describer, const char *text, char digest[TSR_DIGEST_CHARS]) {
    tsr_kept_record record = {.command = NULL};
    if (tsr_digest_parse(text, digest)) return TSR_OK;
    if (tsr_text_file_begins(text, "{")) TSR_TRY(tsr_record_read_json(text, &record));
    else TSR_TRY(read_hdf5(describer, text, &record));
    const bool has = tsr_digest_parse(record.run.digest, digest);
    tsr_record_free(&record);
    if (has) return TSR_OK;
    return tsr_fail(TSR_ERR_NOT_FOUND,
                    "--digest %s: the record has no digest, which multiply --digest writes; name another, or eight "
                    "hexadecimal digits",
                    text);
}

tsr_status tsr_verify_digest(const tsr_world *world, tsr_store *store, const char *expected) {
    tsr_digest digest = {0};
    char found[TSR_DIGEST_CHARS];
    uint32_t mine, all = 0;
    TSR_TRY(tsr_agree(world->comm, tsr_digest_read(store, world->rank, world->ranks, NULL, NULL, &digest)));
    TSR_TRY(tsr_agree(world->comm, tsr_store_unchanged(store)));
    mine = atomic_load(&digest.parts);
    TSR_TRY(tsr_agree(world->comm, TSR_MPI(MPI_Allreduce(&mine, &all, 1, MPI_UINT32_T, MPI_BXOR, world->comm))));
    tsr_digest_text(all, (uint64_t)tsr_store_bytes(&store->desc), found);
    if (strcmp(found, expected) == 0) return TSR_OK;
    return tsr_agree(world->comm, tsr_fail(TSR_ERR_CHECK,
                                           "FAILED: '%s' has the digest %s, and %s was expected: it is not what was "
                                           "written then",
                                           store->desc.name.file, found, expected));
}
