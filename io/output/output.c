/* The life of an output dataset (output.h): made in a temporary file, written by every rank, published by a rename. */
#include "io/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/files/new_file.h"
#include "io/files/raw_file.h"
#include "io/files/unfinished.h"
#include "io/output/output_chunks.h"
#include "io/output/output_private.h"
#include "io/output/resume/resume.h"

/* ---- create ---------------------------------------------------------------------------------- */

tsr_status tsr_output_allocate(const tsr_output *output) {
    struct stat st;
    char folder[TSR_FILE_CHARS];
    const tsr_store_desc *desc = &output->desc;
    const size_t bytes = (size_t)tsr_store_bytes(desc);
    if (desc->chunk_rows > 0) return TSR_OK; /* it is not known where they will be, nor how many bytes */
    if (desc->offset < 0)
        return tsr_fail(TSR_ERR_IO, "the matrix in '%s' was given no place in the file", desc->name.file);
    tsr_folder_of(output->target, folder);
    TSR_TRY(tsr_temporary_allocate(folder, desc->name.file, output->lock_fd, desc->offset, bytes));
    if (fstat(output->lock_fd, &st) != 0 || st.st_size < desc->offset + (int64_t)bytes)
        return tsr_fail(TSR_ERR_IO, "the temporary file '%s' is shorter than its dataset; choose another folder",
                        desc->name.file);
    return TSR_OK;
}

/* Owner, permissions and attributes: nobody may do more with the temporary file than with the target. */
static void keep_attributes(const tsr_target *target, tsr_output *made) {
    struct stat st;
    if (!target->exists || stat(target->file, &st) != 0) return;
    made->target_names = (int64_t)st.st_nlink;
    tsr_attributes_keep(target->file, made->lock_fd, made->lost);
}

/* Whether a file that no kind of store claims, which is HDF5 therefore, is called as other programs' files are. */
static bool is_called_otherwise(const char *file) {
    static const char *const endings[] = {".bin", ".raw", ".csv", ".tsv", ".txt", ".npz"};
    const char *ending = strrchr(file, '.');
    for (size_t i = 0; ending && i < sizeof endings / sizeof *endings; i++)
        if (strlen(endings[i]) == strcspn(ending, ":") && strncasecmp(ending, endings[i], strlen(endings[i])) == 0)
            return true;
    return false;
}

void tsr_output_warn(const tsr_output *output, tsr_warnings *warnings) {
    const bool is_new = !output->target_existed;
    const bool is_odd = !tsr_store_kind_of(&output->desc.name)->claims && is_called_otherwise(output->target);
    const char *path = output->desc.name.path;
    tsr_dtype type;
    if (is_odd && !is_new && tsr_name_begins_with_type(path + (*path == '/'), &type)) /* as bare elements are called */
        tsr_warn(warnings,
                 "'%s' is an HDF5 file, and '%s' a dataset of it: remove the file first for the elements alone",
                 output->target, path);
    if (is_odd && is_new)
        tsr_warn(warnings,
                 "'%s' is an HDF5 file, though not called so: call it .h5, or write file.npy or file.bin:TYPE for the "
                 "elements alone",
                 output->target);
    if (output->target_names > 1)
        tsr_warn(warnings,
                 "'%s' is one of %lld names of a file (hard links): it gets the new file, the others keep the old one",
                 output->target, (long long)output->target_names);
    if (output->lost[0])
        tsr_warn(warnings, "'%s' is replaced, and what the system did not let the new file have is lost: %s",
                 output->target, output->lost);
}

tsr_status tsr_output_check(const tsr_output_spec *spec, bool *on_disk) {
    tsr_target target;
    TSR_TRY(tsr_target_check(spec, &target));
    if (on_disk) *on_disk = tsr_raw_on_disk(target.folder);
    return TSR_OK;
}

/* The matrix in the temporary file `name`, which is open as made->lock_fd, and empty. */
static tsr_status make_in(const tsr_output_spec *spec, const tsr_target *target, const char *name, tsr_output *made) {
    tsr_store_desc *desc = &made->desc;
    keep_attributes(target, made);
    if (target->others) TSR_TRY(tsr_temporary_copy(target, name, made->lock_fd));
    TSR_TRY(tsr_store_kind_of(&spec->name)->output->make(spec, target, name, made->lock_fd, desc));
    desc->name.kind = spec->name.kind;
    snprintf(desc->name.file, sizeof desc->name.file, "%s", name);
    if (spec->dropped == 1 && spec->stack_dimensions > 0) tsr_store_split_rows(desc, spec->cols == 1);
    else if (spec->dropped == 1 && desc->rows != spec->rows) tsr_store_turn_vector(desc);
    if (spec->joined) tsr_store_join(desc);
    made->encode_bytes = spec->encode_bytes;
    /* Who reads it back takes no more than who wrote it, for which one chunk's was taken anyway. */
    const size_t least = tsr_output_encode_bytes(spec, 1);
    desc->cache_bytes =
        (size_t)tsr_min((int64_t)desc->cache_bytes, tsr_max((int64_t)spec->encode_bytes, (int64_t)least));
    memcpy(made->target, target->file, sizeof made->target);
    made->target_existed = target->exists;
    memcpy(made->target_identity, target->identity, sizeof made->target_identity);
    made->in_memory = tsr_raw_in_memory(made->lock_fd);
    desc->on_disk = desc->offset >= 0 && !made->in_memory;
    return TSR_OK;
}

/* What was there is what the first run saw (tsr_resume_find), and that one was allowed to replace it. */
tsr_status tsr_output_begin_again(const tsr_output_spec *spec, tsr_output *output) {
    tsr_output_spec again = *spec;
    tsr_target target;
    tsr_output made = {.lock_fd = output->lock_fd};
    again.force = true;
    TSR_TRY(tsr_target_check(&again, &target));
    if (ftruncate(made.lock_fd, 0) != 0)
        return tsr_fail(tsr_write_status(errno), "cannot empty '%s': %s", output->desc.name.file, strerror(errno));
    memcpy(made.journal, output->journal, sizeof made.journal);
    TSR_TRY(make_in(&again, &target, output->desc.name.file, &made));
    *output = made;
    return TSR_OK;
}

tsr_status tsr_output_begin(const tsr_output_spec *spec, tsr_output *output) {
    tsr_target target;
    tsr_output made;
    char name[TSR_FILE_CHARS];
    tsr_status status;
    memset(&made, 0, sizeof made);
    TSR_TRY(tsr_target_check(spec, &target));
    TSR_TRY(tsr_temporary_create(&target, spec->force, name, &made.lock_fd));
    TSR_TRY_DONE(make_in(spec, &target, name, &made));
    *output = made;
done:
    if (status != TSR_OK) {
        unlink(name);
        tsr_unfinished_done(name);
        close(made.lock_fd);
    }
    return status;
}

tsr_status tsr_output_create(const tsr_output_spec *spec, tsr_output *output) {
    tsr_output made;
    TSR_TRY(tsr_output_begin(spec, &made));
    tsr_status status = tsr_output_allocate(&made);
    if (status == TSR_OK) {
        *output = made;
        return TSR_OK;
    }
    tsr_output_discard(&made);
    close(made.lock_fd);
    return status;
}

tsr_status tsr_output_open(const tsr_output *output, tsr_io_mode mode, const void *comm, tsr_store **store) {
    if (output->desc.chunk_rows > 0) return tsr_encoding_open(output, store);
    return tsr_store_kind_of(&output->desc.name)->open(&output->desc, mode, comm, true, NULL, store);
}

/* ---- publish --------------------------------------------------------------------------------- */

/* The target is as it was when this run began: what another program wrote there since must not be lost. */
static tsr_status target_unchanged(const tsr_output *output, bool *unchanged) {
    int64_t now[5];
    bool exists;
    TSR_TRY(tsr_file_identity(output->target, &exists, now));
    *unchanged = exists == output->target_existed && (!exists || memcmp(now, output->target_identity, sizeof now) == 0);
    return TSR_OK;
}

static tsr_status rename_to(const tsr_output *output, const char *target) {
    char folder[TSR_FILE_CHARS];
    if (rename(output->desc.name.file, target) != 0)
        return tsr_fail(tsr_write_status(errno), "cannot rename '%s' to '%s': %s", output->desc.name.file, target,
                        strerror(errno));
    tsr_folder_of(target, folder);
    return tsr_folder_sync(folder);
}

/* Puts the finished file under a name of its own and says so: neither it nor the changed target is lost. */
static tsr_status keep_beside(const tsr_output *output) {
    char kept[TSR_FILE_CHARS + 64], letters[TSR_RANDOM_CHARS], ending[64];
    tsr_random_letters(letters);
    snprintf(ending, sizeof ending, ".tessera-%ld-%s%s", (long)getpid(), letters,
             tsr_store_kind_of(&output->desc.name)->output->ending);
    (void)tsr_name_beside(output->target, "", ending, kept, sizeof kept); /* there is room: `ending` is short */
    TSR_TRY(rename_to(output, kept));
    return tsr_fail(TSR_ERR_EXISTS,
                    "'%s' was changed by another program while this run worked, so it is left alone; the result is "
                    "complete in '%s'",
                    output->target, kept);
}

static tsr_status sync_temporary(const tsr_output *output) {
    if (fsync(output->lock_fd) == 0) return TSR_OK;
    return tsr_fail(tsr_write_status(errno), "cannot sync '%s': %s; the output was not made", output->desc.name.file,
                    strerror(errno));
}

tsr_status tsr_output_publish(const tsr_output *output, const tsr_run_record *record, const char *command) {
    bool unchanged;
    tsr_status status;
    if (output->journal[0]) TSR_TRY(tsr_resume_publishing(output));
    TSR_TRY_DONE(tsr_store_kind_of(&output->desc.name)->output->complete(output, record, command));
    if (output->target_existed) tsr_attributes_keep(output->target, output->lock_fd, NULL); /* as they are now */
    TSR_TRY_DONE(sync_temporary(output));
    TSR_TRY_DONE(target_unchanged(output, &unchanged));
    status = unchanged ? rename_to(output, output->target) : keep_beside(output);
    if (output->journal[0] && status == TSR_OK) tsr_resume_published(output);
    else if (output->journal[0] && !unchanged) tsr_resume_forget(output);
done:
    if (status != TSR_OK && !output->journal[0]) unlink(output->desc.name.file); /* gone already when it was renamed */
    tsr_unfinished_done(output->desc.name.file);
    close(output->lock_fd);
    return status;
}

tsr_status tsr_output_in_place(tsr_status status, const char *what) {
    return strstr(tsr_message(), " in place, but ") ? status
                                                    : tsr_fail(status, "%s in place, but %s", what, tsr_message());
}

bool tsr_output_discard(const tsr_output *output) {
    if (!output->desc.name.file[0] || output->journal[0]) return false;
    const bool removed = unlink(output->desc.name.file) == 0;
    tsr_unfinished_done(output->desc.name.file);
    return removed;
}

void tsr_output_leave(tsr_output *output) {
    if (!output->desc.name.file[0]) return;
    tsr_output_discard(output);
    close(output->lock_fd);
    output->lock_fd = -1;
}
