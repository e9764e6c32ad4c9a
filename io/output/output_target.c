/* Where an output goes: file, folder, room on the disk. What stands there already its kind looks at. Changes
 * nothing. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/files/new_file.h"
#include "io/output/output_private.h"

/* ---- the file system ------------------------------------------------------------------------- */

static tsr_status link_failed(const char *file, int error) {
    if (error == EPERM)
        return tsr_fail(TSR_ERR_IO,
                        "output '%s' is a link that another user made where everybody may write: name the file it "
                        "leads to, or another",
                        file);
    if (error == ELOOP)
        return tsr_fail(TSR_ERR_NOT_FOUND, "output '%s' is a symbolic link that leads in a circle; remove it", file);
    return tsr_fail(TSR_ERR_NOT_FOUND,
                    "output '%s' is a symbolic link to nothing (%s); name another output, or remove the link", file,
                    strerror(error));
}

/* Follows symbolic links, so that the file they name is replaced and not the link. */
static tsr_status resolve_file(const char *file, tsr_target *target) {
    struct stat st;
    char real[PATH_MAX];
    if (lstat(file, &st) == 0 && S_ISLNK(st.st_mode)) {
        const int error = tsr_link_follow(file, real);
        if (error) return link_failed(file, error);
        file = real;
    }
    if (snprintf(target->file, sizeof target->file, "%s", file) >= (int)sizeof target->file)
        return tsr_fail(TSR_ERR_USAGE, "output '%.60s...': the file's name is too long", file);
    tsr_folder_of(target->file, target->folder);
    return TSR_OK;
}

static tsr_status check_folder(const tsr_target *target) {
    struct stat st;
    if (stat(target->folder, &st) != 0)
        return tsr_fail(TSR_ERR_NOT_FOUND, "the folder '%s' of the output does not exist (%s); make it: mkdir -p '%s'",
                        target->folder, strerror(errno), target->folder);
    if (!S_ISDIR(st.st_mode))
        return tsr_fail(TSR_ERR_NOT_FOUND, "'%s', the folder of the output, is not a folder; choose another",
                        target->folder);
    if (access(target->folder, W_OK | X_OK) != 0)
        return tsr_fail(TSR_ERR_IO, "cannot write in the output's folder '%s': %s; choose another folder",
                        target->folder, strerror(errno));
    return TSR_OK;
}

static tsr_status check_space(const tsr_target *target) {
    struct statvfs fs;
    struct rlimit limit;
    double need = (double)target->bytes;
    if (statvfs(target->folder, &fs) == 0 && fs.f_blocks > 0 && need > (double)fs.f_bavail * (double)fs.f_frsize)
        return tsr_space_fail(target->folder, target->bytes, "the disk is too full");
    if (target->others) need += (double)target->file_bytes;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && need > (double)limit.rlim_cur)
        return tsr_fail(TSR_ERR_SPACE,
                        "the output needs a file of %.0f bytes, the limit is %.0f; raise it: ulimit -f unlimited", need,
                        (double)limit.rlim_cur);
    return TSR_OK;
}

/* A folder, a pipe or a device: rename would replace it, or fail. */
static tsr_status check_regular(const char *file) {
    struct stat st;
    if (stat(file, &st) != 0 || S_ISREG(st.st_mode)) return TSR_OK;
    if (S_ISDIR(st.st_mode))
        return tsr_fail(TSR_ERR_FORMAT, "the output '%s' is a folder: name a file in it, such as '%s%sC.h5'", file,
                        file, file[strlen(file) - 1] == '/' ? "" : "/");
    const char *kind = S_ISFIFO(st.st_mode) ? "a pipe" : S_ISSOCK(st.st_mode) ? "a socket" : "a device";
    return tsr_fail(TSR_ERR_FORMAT, "the output '%s' is %s, and matrices are written to regular files: name one", file,
                    kind);
}

/* ---- the target ------------------------------------------------------------------------------ */

tsr_status tsr_target_find(const tsr_output_spec *spec, tsr_target *target) {
    memset(target, 0, sizeof *target);
    TSR_TRY(resolve_file(spec->name.file, target));
    TSR_TRY(check_folder(target));
    return tsr_file_identity(target->file, &target->exists, target->identity);
}

tsr_status tsr_target_check(const tsr_output_spec *spec, tsr_target *target) {
    const tsr_output_ops *ops = tsr_store_kind_of(&spec->name)->output;
    memset(target, 0, sizeof *target);
    if (!ops)
        return tsr_fail(TSR_ERR_USAGE, "the output '%s' is of a kind that is only read: name another", spec->name.file);
    if (spec->rows < 0 || spec->cols < 0)
        return tsr_fail(TSR_ERR_SHAPE, "the output of %lldx%lld has a negative side", (long long)spec->rows,
                        (long long)spec->cols);
    if (spec->chunk_rows > 0 && tsr_output_shape(spec).dimensions == 0)
        return tsr_fail(TSR_ERR_USAGE, "the output is a single number, which has no chunks: leave --chunk and "
                                       "--compress out");
    TSR_TRY(tsr_bytes_checked(spec->rows, spec->cols, tsr_dtype_bytes(spec->dtype), &target->bytes));
    TSR_TRY(tsr_bytes_checked((int64_t)target->bytes, tsr_output_matrices(spec), 1, &target->bytes));
    TSR_TRY(ops->check(spec, target));
    TSR_TRY(resolve_file(spec->name.file, target));
    TSR_TRY(check_folder(target));
    TSR_TRY(tsr_file_identity(target->file, &target->exists, target->identity));
    if (target->exists) TSR_TRY(check_regular(target->file));
    if (target->exists) TSR_TRY(tsr_target_spares(spec, target));
    if (target->exists) TSR_TRY(ops->existing(spec, target));
    return check_space(target);
}
