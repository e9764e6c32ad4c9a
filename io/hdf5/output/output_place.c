/* Encoded chunks into the dataset of a temporary file, by one process (output_chunks.h). */
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/hdf5_place.h"
#include "io/output/output_chunks.h"
#include "io/output/output_private.h"

struct tsr_placer {
    const tsr_output *output; /* not owned */
    hid_t file, dataset;
    int64_t next, count; /* chunk numbers */
};

static tsr_status open_dataset(tsr_placer *p) {
    const tsr_store_desc *desc = &p->output->desc;
    TSR_TRY(tsr_h5_open_write(desc->name.file, TSR_CHECK_FOLDER, &p->file));
    p->dataset = H5Dopen2(p->file, desc->name.path, H5P_DEFAULT);
    return p->dataset >= 0 ? TSR_OK
                           : tsr_h5_fail(TSR_ERR_IO, "cannot open '%s' in '%s'", desc->name.path, desc->name.file);
}

tsr_status tsr_placer_open(const tsr_output *output, tsr_placer **placer) {
    tsr_placer *p = malloc(sizeof *p);
    if (!p) return tsr_fail(TSR_ERR_MEMORY, "no memory to place chunks in '%s'", output->desc.name.file);
    *p = (tsr_placer){.output = output, .file = -1, .dataset = -1, .count = tsr_output_chunks(output)};
    tsr_h5_enter();
    tsr_status status = open_dataset(p);
    if (status != TSR_OK && p->file >= 0) H5Fclose(p->file);
    tsr_h5_leave();
    if (status == TSR_OK) *placer = p;
    else free(p);
    return status;
}

static tsr_status changed(const tsr_placer *p, const tsr_encoded_chunk *head, const char *what) {
    return tsr_fail(TSR_ERR_IO,
                    "chunk %lld of '%s' is not what was encoded (%s): memory or a network changed it; run the command "
                    "again, and look for the machine at fault where that happens twice",
                    (long long)head->number, p->output->desc.name.path, what);
}

tsr_status tsr_placer_put(tsr_placer *p, const void *encoded, size_t room) {
    const tsr_store_desc *desc = &p->output->desc;
    tsr_encoded_chunk head;
    if (room < sizeof head)
        return tsr_fail(TSR_ERR_IO, "a chunk of '%s' came in %zu bytes, fewer than its head", desc->name.path, room);
    memcpy(&head, encoded, sizeof head);
    const char *wrong = tsr_encoded_head_wrong(desc, &head);
    if (wrong) return changed(p, &head, wrong);
    if (head.number != p->next || head.bytes > room - sizeof head)
        return tsr_fail(TSR_ERR_IO, "chunk %lld of '%s' (%u bytes, of which %zu came) is not chunk %lld of %lld",
                        (long long)head.number, desc->name.path, head.bytes, room - sizeof head, (long long)p->next,
                        (long long)p->count);
    if (!tsr_encoded_bytes_right(&head, (const char *)encoded + sizeof head))
        return changed(p, &head, "its bytes have another sum");
    int64_t matrix, i, j;
    tsr_encoded_place(desc, head.number, &matrix, &i, &j);
    const tsr_h5_place place = tsr_h5_chunk_place(desc, matrix, i, j);
    tsr_status status = TSR_OK;
    tsr_h5_enter();
    if (H5Dwrite_chunk(p->dataset, H5P_DEFAULT, head.skipped, place.at, head.bytes,
                       (const char *)encoded + sizeof head) < 0)
        status = tsr_h5_fail(TSR_ERR_IO, "writing the chunk at (%lld, %lld) of '%s:%s' failed; check the disk",
                             (long long)(i * desc->chunk_rows), (long long)(j * desc->chunk_cols), desc->name.file,
                             desc->name.path);
    tsr_h5_leave();
    p->next += status == TSR_OK;
    return status;
}

static tsr_status close_file(tsr_placer *p) {
    const char *name = p->output->desc.name.file;
    tsr_status status = TSR_OK;
    tsr_h5_enter();
    if (H5Dclose(p->dataset) < 0) status = tsr_h5_fail(TSR_ERR_IO, "cannot close the dataset in '%s'", name);
    if (H5Fclose(p->file) < 0 && status == TSR_OK) status = tsr_h5_fail(TSR_ERR_IO, "cannot close '%s'", name);
    tsr_h5_leave();
    return status;
}

tsr_status tsr_placer_close(tsr_placer *p) {
    if (!p) return TSR_OK;
    const tsr_store_desc *desc = &p->output->desc;
    tsr_status status = close_file(p);
    if (status == TSR_OK && p->next < p->count)
        status = tsr_fail(TSR_ERR_IO, "'%s' has %lld chunks, and only %lld were written", desc->name.path,
                          (long long)p->count, (long long)p->next);
    if (status == TSR_OK) status = tsr_temporary_sync(p->output);
    free(p);
    return status;
}
