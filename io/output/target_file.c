/* What is asked of a target's file by its name (output_private.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/output/output_private.h"
#include "io/pieces/pieces.h"

tsr_status tsr_file_identity(const char *file, bool *exists, int64_t identity[5]) {
    struct stat st;
    *exists = stat(file, &st) == 0;
    if (!*exists && (errno == ENOENT || errno == ENOTDIR)) return TSR_OK;
    if (!*exists)
        return tsr_fail(TSR_ERR_IO, "cannot look at '%s', which is left as it is: %s; check its folder", file,
                        strerror(errno));
    identity[0] = (int64_t)st.st_dev;
    identity[1] = (int64_t)st.st_ino;
    identity[2] = (int64_t)st.st_size;
    identity[3] = (int64_t)st.st_mtim.tv_sec;
    identity[4] = (int64_t)st.st_mtim.tv_nsec;
    return TSR_OK;
}

tsr_status tsr_target_holds(const tsr_target *target, const tsr_output_source *source, bool *holds) {
    bool target_exists, exists;
    int64_t there[5], here[5];
    TSR_TRY(tsr_file_identity(target->file, &target_exists, there));
    TSR_TRY(tsr_file_identity(source->asked->file, &exists, here));
    *holds = target_exists && exists && there[0] == here[0] && there[1] == here[1];
    return TSR_OK;
}

/* Whether the target is that file. */
static tsr_status spares(const tsr_target *target, const char *role, const char *file) {
    bool exists;
    int64_t here[5];
    TSR_TRY(tsr_file_identity(file, &exists, here));
    if (!exists || here[0] != target->identity[0] || here[1] != target->identity[1]) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE,
                    "the output would go into '%s', from which %s is read by way of another file or a "
                    "virtual dataset: name another output",
                    target->file, role);
}

tsr_status tsr_target_spares(const tsr_output_spec *spec, const tsr_target *target) {
    for (int i = 0; i < spec->source_count; i++) {
        const tsr_output_source *source = &spec->sources[i];
        const bool led = source->found->file[0] && strcmp(source->found->file, source->asked->file) != 0;
        const char *last = "";
        if (led) TSR_TRY(spares(target, source->role, source->found->file));
        for (int64_t p = 0; source->pieces && p < source->pieces->count; p++) {
            const tsr_piece *piece = &source->pieces->piece[p];
            if (piece->filled || strcmp(piece->desc.name.file, last) == 0) continue;
            last = piece->desc.name.file;
            TSR_TRY(spares(target, source->role, last));
        }
    }
    return TSR_OK;
}

void tsr_folder_of(const char *file, char *folder) {
    const char *slash = strrchr(file, '/');
    if (!slash) snprintf(folder, TSR_FILE_CHARS, ".");
    else snprintf(folder, TSR_FILE_CHARS, "%.*s", slash == file ? 1 : (int)(slash - file), file);
}

tsr_status tsr_target_writable(const tsr_target *target) {
    if (access(target->file, W_OK) == 0) return TSR_OK;
    return tsr_fail(TSR_ERR_IO, "the output '%s' is write-protected: %s; choose another name or chmod u+w",
                    target->file, strerror(errno));
}
