/* Where the chunks of a dataset are. HDF5 1.10 says so in time that grows with the square of their number. But it reads
 * a stored chunk with one call of its file driver: under the driver that only notes where (hdf5_noting.h), each chunk
 * takes one look into the dataset's index, a microsecond or two. */
#include "io/describe/describe_wire.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_noting.h"
#include "io/hdf5/access/hdf5_path.h"
#include "io/hdf5/hdf5_place.h"
#include "io/hdf5/store_hdf5.h"

/* Chunk (i, j) of a matrix, counted in chunks. */
static tsr_status find_chunk(hid_t dataset, tsr_h5_noted *noted, const tsr_store_desc *desc, int64_t matrix, int64_t i,
                             int64_t j, tsr_chunk_place *place) {
    const tsr_h5_place at = tsr_h5_chunk_place(desc, matrix, i, j);
    const int64_t row = i * desc->chunk_rows, col = j * desc->chunk_cols;
    hsize_t bytes = 0;
    char nothing;
    *place = (tsr_chunk_place){.bytes = 0};
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a file that was opened has its handle */
    noted->count = 0;
    if (H5Dread_chunk(dataset, H5P_DEFAULT, at.at, &place->skipped, &nothing) >= 0) {
        if (noted->count != 1 || noted->bytes > UINT32_MAX)
            return tsr_fail(TSR_ERR_FORMAT, "the chunk at (%lld, %lld) was read in %d pieces", (long long)row,
                            (long long)col, noted->count);
        place->address = noted->address;
        place->bytes = (uint32_t)noted->bytes;
        return TSR_OK;
    }
    H5Eclear2(H5E_DEFAULT);
    const herr_t found = H5Dget_chunk_storage_size(dataset, at.at, &bytes);
    if ((found >= 0 && bytes == 0) || (found < 0 && tsr_h5_error_says("chunk storage is not allocated"))) {
        H5Eclear2(H5E_DEFAULT);
        place->skipped = 0;
        return TSR_OK; /* never written */
    }
    return tsr_h5_fail(TSR_ERR_FORMAT, "the chunk at (%lld, %lld) cannot be found", (long long)row, (long long)col);
}

tsr_status tsr_hdf5_find_chunks(const tsr_store_desc *desc, tsr_chunk_range range, tsr_chunk_place *places) {
    hid_t id = -1, dataset = -1;
    tsr_h5_noted *noted = NULL;
    char why[600];
    tsr_h5_enter();
    tsr_status status =
        tsr_h5_open_noting(desc->name.file, NULL, "to find its chunks; check it with h5ls, copy it again", &id, &noted);
    if (status == TSR_OK && (dataset = H5Dopen2(id, desc->name.path, H5P_DEFAULT)) < 0)
        status = tsr_h5_fail(TSR_ERR_IO, "cannot open '%s:%s'", desc->name.file, desc->name.path);
    const bool opened = status == TSR_OK;
    for (int64_t c = 0; c < tsr_chunk_index_count(range) && status == TSR_OK; c++) {
        tsr_describe_goes_on();
        const int64_t row = c / range.cols; /* of chunks, counted on from matrix to matrix */
        status = find_chunk(dataset, noted, desc, row / range.rows, range.row0 + row % range.rows,
                            range.col0 + c % range.cols, &places[c]);
    }
    if (opened && status != TSR_OK) {
        snprintf(why, sizeof why, "%s", tsr_message());
        status = tsr_fail(status, "'%s:%s': %s; the file may be damaged: copy it again", desc->name.file,
                          desc->name.path, why);
    }
    if (dataset >= 0) H5Dclose(dataset);
    if (id >= 0) H5Fclose(id);
    tsr_h5_leave();
    return status;
}
