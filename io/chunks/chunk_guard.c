/* Chunks that would unpack to more than they should (chunk_guard.h). */
#include "io/chunks/chunk_guard.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/hdf5_memory.h"
#include "io/hdf5/hdf5_place.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEN_MAX (double)(1 << 25) /* chunks, 4 MiB of bits */

/* The filter as the table has it; NULL for one that it lacks. */
static const tsr_filter *filter_at(hid_t properties, int index, tsr_filter_use *use) {
    unsigned flags, config;
    size_t count = TSR_FILTER_VALUES_MAX;
    *use = (tsr_filter_use){.count = 0};
    const H5Z_filter_t id = H5Pget_filter2(properties, (unsigned)index, &flags, &count, use->values, 0, NULL, &config);
    use->filter = tsr_filter_find(id);
    use->count = (int)(count < INT_MAX ? count : INT_MAX);
    return use->filter >= 0 ? tsr_filter_at(use->filter) : NULL;
}

/* Puts the filter before those that are behind. */
static bool add_behind(tsr_pipeline *behind, const tsr_filter *filter, const tsr_filter_use *use) {
    if (!filter || !(filter->check || filter->keeps_size) || !tsr_filter_decodes(use)) return false;
    if (behind->count == TSR_FILTERS_MAX) return false;
    memmove(behind->use + 1, behind->use, (size_t)behind->count * sizeof *behind->use);
    behind->count++;
    behind->use[0] = *use;
    return true;
}

/* Finds the last filter that may make a chunk larger; false where a compressor comes before it. */
static bool find_compressor(hid_t properties, tsr_chunk_guard *guard) {
    const tsr_filter *filter = NULL;
    tsr_filter_use use;
    for (guard->index = H5Pget_nfilters(properties) - 1; guard->index >= 0; guard->index--) {
        filter = filter_at(properties, guard->index, &use);
        if (!add_behind(&guard->behind, filter, &use)) break;
    }
    if (guard->index >= 0 && filter && filter->holds_more) guard->last = filter; /* gzip has none without zlib */
    for (int f = 0; f < guard->index; f++) {
        filter = filter_at(properties, f, &use);
        if (filter && filter->unbounded) return false;
        guard->packed_before |= !filter || !(filter->check || filter->keeps_size);
    }
    return true;
}

tsr_status tsr_chunk_guard_open(hid_t dataset, const tsr_store_desc *desc, tsr_chunk_guard *guard) {
    *guard = (tsr_chunk_guard){.last = NULL};
    if (desc->chunk_rows <= 0 || !desc->hdf5.filters[0]) return TSR_OK;
    const hid_t properties = H5Dget_create_plist(dataset);
    if (properties < 0) return tsr_h5_fail(TSR_ERR_IO, "cannot read the filters of '%s'", desc->name.path);
    unsigned options = 0;
    const bool first = find_compressor(properties, guard);
    guard->plain_edges =
        H5Pget_chunk_opts(properties, &options) >= 0 && (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    H5Pclose(properties);
    if (!first)
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "'%s:%s': HDF5 may take any memory to undo its filters, '%s', of which the compression is not "
                        "the last: use h5repack -f SHUF -f GZIP=4 OLD.h5 NEW.h5",
                        desc->name.file, desc->name.path, desc->hdf5.filters);
    guard->chunks_across = tsr_ceil_div(desc->dataset_cols, desc->chunk_cols);
    guard->chunks = guard->chunks_across * tsr_ceil_div(desc->dataset_rows, desc->chunk_rows);
    const double chunks = (double)guard->chunks * (double)desc->matrices;
    if (guard->last && chunks <= SEEN_MAX) guard->seen = calloc((size_t)chunks / 8 + 1, 1);
    return TSR_OK;
}

void tsr_chunk_guard_close(tsr_chunk_guard *guard) { free(guard->seen); }

/* `memory`: of the chunk as it is stored, and as much again, which is overwritten. */
static tsr_status check_stream(const tsr_chunk_guard *guard, uint32_t skipped, uint8_t *memory, size_t stored_bytes,
                               size_t most) {
    uint8_t *now = memory, *next = memory + stored_bytes;
    size_t bytes = stored_bytes;
    if (skipped >> guard->index & 1) return TSR_OK;
    const uint32_t behind = (uint32_t)((uint64_t)skipped >> (guard->index + 1));
    TSR_TRY(tsr_chunk_undo(&guard->behind, behind, &now, &next, &bytes, stored_bytes));
    if (!guard->last->holds_more(now, bytes, most)) return TSR_OK;
    return tsr_fail(TSR_ERR_FORMAT, "its %zu compressed bytes hold more than a chunk", stored_bytes);
}

/* `most`: bytes that it may hold. filtered: it is not stored as it is. */
static tsr_status check_one(const tsr_chunk_guard *guard, hid_t dataset, const hsize_t *at, bool filtered,
                            size_t most) {
    hsize_t bytes = 0;
    uint32_t skipped = 0;
    if (H5Dget_chunk_storage_size(dataset, at, &bytes) < 0) {
        H5Eclear2(H5E_DEFAULT);
        return TSR_OK; /* never written, or HDF5 says what it is when it reads */
    }
    if (bytes == 0) return TSR_OK; /* nor any other of the dataset */
    if (bytes > tsr_chunk_stored_max(most))
        return tsr_fail(TSR_ERR_FORMAT, "it takes %llu bytes in the file, more than its %zu can",
                        (unsigned long long)bytes, most);
    if (!filtered) return TSR_OK;
    uint8_t *stored = malloc(2 * (size_t)bytes + 1);
    if (!stored) return tsr_fail(TSR_ERR_MEMORY, "no memory for %llu bytes of it", (unsigned long long)bytes);
    tsr_status status = TSR_OK;
    if (H5Dread_chunk(dataset, H5P_DEFAULT, at, &skipped, stored) < 0)
        status = tsr_h5_fail(TSR_ERR_IO, "it cannot be read");
    else status = check_stream(guard, skipped, stored, (size_t)bytes, most);
    free(stored);
    return status;
}

tsr_status tsr_chunk_guard_check(tsr_chunk_guard *guard, hid_t dataset, const tsr_store_desc *desc, tsr_rect rect) {
    if (!guard->last) return TSR_OK;
    /* what other filters make of a chunk may be a little more than it */
    const size_t most = tsr_chunk_stored_max((size_t)tsr_chunk_elements(desc) * tsr_stored_bytes(desc));
    const int64_t rows[2] = {rect.row / desc->chunk_rows, (rect.row + rect.rows - 1) / desc->chunk_rows};
    const int64_t cols[2] = {rect.col / desc->chunk_cols, (rect.col + rect.cols - 1) / desc->chunk_cols};
    for (int64_t i = rows[0]; i <= rows[1]; i++)
        for (int64_t j = cols[0]; j <= cols[1]; j++) {
            const int64_t number = desc->matrix * guard->chunks + i * guard->chunks_across + j;
            const tsr_h5_place at = tsr_h5_chunk_place(desc, desc->matrix, i, j);
            bool edge =
                (i + 1) * desc->chunk_rows > desc->dataset_rows || (j + 1) * desc->chunk_cols > desc->dataset_cols;
            for (int d = 0; d < tsr_store_lead_count(desc); d++)
                edge |= (int64_t)at.at[d] > desc->lead_size[d] - desc->lead_chunk[d];
            if (guard->seen && guard->seen[number / 8] >> number % 8 & 1) continue;
            tsr_status status = check_one(guard, dataset, at.at, !(edge && guard->plain_edges), most);
            if (status != TSR_OK) {
                char why[600];
                snprintf(why, sizeof why, "%s", tsr_message());
                return tsr_fail(status,
                                "'%s:%s': the %lldx%lld chunk at (%lld, %lld): %s; the file may be damaged: "
                                "copy it again",
                                desc->name.file, desc->name.path, (long long)desc->chunk_rows,
                                (long long)desc->chunk_cols, (long long)(i * desc->chunk_rows),
                                (long long)(j * desc->chunk_cols), why);
            }
            if (guard->seen) guard->seen[number / 8] |= (uint8_t)(1 << number % 8);
        }
    return TSR_OK;
}
