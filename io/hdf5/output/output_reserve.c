/* Places in the file for the encoded chunks of an output, by one process (output_chunks.h). HDF5 is handed each chunk
 * under the driver that moves metadata alone: it gives the chunk its place, and its bytes are brought there by whoever
 * has them. */
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_noting.h"
#include "io/hdf5/hdf5_place.h"
#include "io/output/output_chunks.h"
#include "io/output/output_private.h"

static tsr_status reserve_one(hid_t dataset, tsr_h5_noted *noted, const tsr_store_desc *desc, int64_t number,
                              const tsr_chunk_size *size, int64_t *address) {
    static const char nothing = 0; /* the driver does not look at a chunk's bytes */
    int64_t matrix, i, j;
    tsr_encoded_place(desc, number, &matrix, &i, &j);
    const tsr_h5_place place = tsr_h5_chunk_place(desc, matrix, i, j);
    const long long row = (long long)(i * desc->chunk_rows), col = (long long)(j * desc->chunk_cols);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a file that was opened has its handle */
    noted->count = 0;
    if (H5Dwrite_chunk(dataset, H5P_DEFAULT, size->skipped, place.at, size->bytes, &nothing) < 0)
        return tsr_h5_fail(TSR_ERR_IO, "no place for the chunk at (%lld, %lld) of '%s:%s'; check the disk", row, col,
                           desc->name.file, desc->name.path);
    if (noted->count != 1 || noted->bytes != size->bytes)
        return tsr_fail(TSR_ERR_IO, "HDF5 would write the chunk at (%lld, %lld) of '%s:%s' in %d pieces: report this",
                        row, col, desc->name.file, desc->name.path, noted->count);
    *address = noted->address;
    return TSR_OK;
}

tsr_status tsr_chunks_reserve(const tsr_output *output, const tsr_chunk_size *sizes, int64_t *addresses) {
    const tsr_store_desc *desc = &output->desc;
    const int64_t count = tsr_output_chunks(output);
    tsr_h5_noted *noted = NULL;
    tsr_h5_refused refused = {0};
    hid_t file = -1, dataset = -1;
    tsr_h5_enter();
    tsr_status status = tsr_h5_open_noting(desc->name.file, &refused, TSR_CHECK_FOLDER, &file, &noted);
    if (status == TSR_OK && (dataset = H5Dopen2(file, desc->name.path, H5P_DEFAULT)) < 0)
        status = tsr_h5_fail(TSR_ERR_IO, "cannot open '%s' in '%s'", desc->name.path, desc->name.file);
    for (int64_t c = 0; c < count && status == TSR_OK; c++)
        status = reserve_one(dataset, noted, desc, c, &sizes[c], &addresses[c]);
    status = tsr_h5_close_written(file, dataset, desc->name.file, &refused, status);
    tsr_h5_leave();
    return status;
}
