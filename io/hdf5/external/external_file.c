/* Files that an HDF5 file names, and links into them (external_file.h). */
#include "io/hdf5/external/external_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_path.h"
#include "io/hdf5/access/hdf5_probe.h"
#include "io/hdf5/external/beneath.h"

#define JUMPS_MAX 16 /* external links that follow each other */

/* ---- one file -------------------------------------------------------------------------------- */

static tsr_status check_opened(const char *root, const tsr_h5_spot *spot) {
    int fd = -1;
    TSR_TRY(tsr_h5_descriptor(spot->file, spot->name, &fd));
    if (*root) TSR_TRY(tsr_beneath_open(root, spot->name, fd));
    return tsr_file_state_check(fd, spot->name, &spot->state, NULL);
}

tsr_status tsr_h5_spot_open(const char *file, const char *root, tsr_h5_spot *spot) {
    *spot = (tsr_h5_spot){.file = -1};
    snprintf(spot->name, sizeof spot->name, "%s", file);
    if (*root) TSR_TRY(tsr_beneath_path(root, file));
    TSR_TRY(tsr_h5_probe(file, &spot->bytes, NULL));
    TSR_TRY(tsr_file_state_note(file, &spot->state));
    tsr_status status = tsr_h5_open_read(file, &spot->file);
    if (status == TSR_OK) status = check_opened(root, spot);
    if (status != TSR_OK && spot->file >= 0) H5Fclose(spot->file);
    if (status != TSR_OK) spot->file = -1;
    return status;
}

tsr_status tsr_h5_spot_close(tsr_h5_spot *spot, tsr_status status) {
    if (spot->file < 0) return status;
    if (status == TSR_OK) status = check_opened("", spot);
    H5Fclose(spot->file);
    spot->file = -1;
    return status;
}

/* ---- where HDF5 looks ------------------------------------------------------------------------ */

typedef struct {
    const char *name; /* relative; of an absolute one that is not there, its last part */
    char found[TSR_FILE_CHARS];
} search;

/* Whether it is in the folder; "" is the current one. */
static bool try_folder(search *s, const char *folder, size_t chars) {
    struct stat st;
    const int used = snprintf(s->found, sizeof s->found, "%.*s%s%s", (int)chars, folder,
                              chars > 0 && folder[chars - 1] != '/' ? "/" : "", s->name);
    return used < (int)sizeof s->found && stat(s->found, &st) == 0;
}

static size_t folder_chars(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? (size_t)(slash - file) + 1 : 0;
}

/* A folder of the environment; "${ORIGIN}" before it is the folder of the file that names. */
static bool try_prefix(search *s, const char *in, const char *prefix, size_t chars) {
    static const char origin[] = "${ORIGIN}";
    char folder[2 * TSR_FILE_CHARS];
    if (chars < sizeof origin - 1 || strncmp(prefix, origin, sizeof origin - 1) != 0)
        return try_folder(s, prefix, chars);
    const size_t skip = sizeof origin - 1, own = folder_chars(in);
    const int used = snprintf(folder, sizeof folder, "%.*s%.*s", own > 0 ? (int)own : 2, own > 0 ? in : "./",
                              (int)(chars - skip), prefix + skip);
    return used < (int)sizeof folder && try_folder(s, folder, (size_t)used);
}

/* Folders between colons. */
static bool try_prefixes(search *s, const char *in, const char *prefixes) {
    while (prefixes && *prefixes) {
        const size_t chars = strcspn(prefixes, ":");
        if (chars > 0 && try_prefix(s, in, prefixes, chars)) return true;
        prefixes += chars + (prefixes[chars] == ':');
    }
    return false;
}

/* In the folder of the file that is meant by a symbolic link. */
static bool try_real_folder(search *s, const char *in) {
    char *real = realpath(in, NULL);
    const bool there = real && try_folder(s, real, folder_chars(real));
    free(real);
    return there;
}

/* As H5Pset_external says: from the current folder, or from one that the environment names. */
static bool find_storage(search *s, const char *in, const char *named) {
    const char *prefix = getenv("HDF5_EXTFILE_PREFIX");
    s->name = named;
    if (*named == '/' || !prefix || !*prefix || strcmp(prefix, ".") == 0) return try_folder(s, "", 0);
    return try_prefix(s, in, prefix, strlen(prefix));
}

/* As H5Lcreate_external and H5Pset_virtual say. */
static bool find_file(search *s, const char *variable, const char *in, const char *named) {
    s->name = named;
    if (*named == '/' && try_folder(s, "", 0)) return true;
    if (*named == '/') s->name = strrchr(named, '/') + 1;
    return try_prefixes(s, in, getenv(variable)) || try_folder(s, in, folder_chars(in)) || try_folder(s, "", 0) ||
           try_real_folder(s, in);
}

tsr_status tsr_external_find(tsr_named_by by, const char *in, const char *named, char found[TSR_FILE_CHARS]) {
    const bool storage = by == TSR_NAMED_BY_STORAGE;
    search s = {.name = named};
    const bool there = storage
                           ? find_storage(&s, in, named)
                           : find_file(&s, by == TSR_NAMED_BY_LINK ? "HDF5_EXT_PREFIX" : "HDF5_VDS_PREFIX", in, named);
    if (!there)
        return tsr_fail(TSR_ERR_FORMAT, "'%s' reads '%.400s', which is not there%s", in, named,
                        storage ? " (HDF5 looks for it from the current folder, or from that in HDF5_EXTFILE_PREFIX, "
                                  "such as '${ORIGIN}'); put it there"
                                : " (HDF5 looks for it beside that file); put it there");
    memcpy(found, s.found, sizeof s.found);
    return TSR_OK;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* The last link that a walk came to, and what of the path is behind it. */
typedef struct {
    char link[TSR_PATH_CHARS], rest[TSR_PATH_CHARS];
} last_link;

static void keep_link(void *context, hid_t file, const char *link, const char *rest) {
    last_link *last = context;
    (void)file;
    snprintf(last->link, sizeof last->link, "%s", link);
    snprintf(last->rest, sizeof last->rest, "%s", rest);
}

/* The value of an external link: the file and, behind it in the same memory, the path. */
static bool read_external(hid_t file, const char *link, char value[2 * TSR_FILE_CHARS], const char **named,
                          const char **path) {
    H5L_info_t info;
    if (!*link || H5Lget_info(file, link, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_EXTERNAL) return false;
    memset(value, 0, 2 * TSR_FILE_CHARS);
    if (info.u.val_size >= 2 * TSR_FILE_CHARS) return false;
    return H5Lget_val(file, link, value, info.u.val_size, H5P_DEFAULT) >= 0 &&
           H5Lunpack_elink_val(value, info.u.val_size, NULL, named, path) >= 0;
}

/* *spot becomes the file that the link names. */
static tsr_status jump(tsr_h5_spot *spot, const char *root, const char *named) {
    char found[TSR_FILE_CHARS];
    tsr_h5_spot next;
    TSR_TRY(tsr_external_find(TSR_NAMED_BY_LINK, spot->name, named, found));
    TSR_TRY(tsr_h5_spot_open(found, root, &next));
    const tsr_status status = tsr_h5_spot_close(spot, TSR_OK);
    *spot = next;
    return status;
}

tsr_status tsr_h5_follow(tsr_h5_spot *spot, const char *root, const char *path, char *resolved) {
    char walk[TSR_PATH_CHARS], first[TSR_FILE_CHARS];
    snprintf(walk, sizeof walk, "%s", path);
    memcpy(first, spot->name, sizeof first);
    for (int jumps = 0;; jumps++) {
        char value[2 * TSR_FILE_CHARS];
        const char *named, *inside;
        last_link last = {"", ""};
        const tsr_status status = tsr_h5_walk(spot->file, spot->name, walk, keep_link, &last, resolved);
        if (status != TSR_ERR_FORMAT || !*root || !read_external(spot->file, last.link, value, &named, &inside))
            return status;
        tsr_message_set("");
        if (jumps == JUMPS_MAX)
            return tsr_fail(TSR_ERR_FORMAT,
                            "'%s': more than %d external links follow each other from '%s', or they lead round in a "
                            "circle: name the file that holds the data",
                            first, JUMPS_MAX, path);
        size_t chars = strlen(inside);
        while (chars > 0 && *last.rest && inside[chars - 1] == '/') chars--;
        if (snprintf(walk, sizeof walk, "%s%.*s%s", *inside == '/' || chars == 0 ? "" : "/", (int)chars, inside,
                     last.rest) >= (int)sizeof walk)
            return tsr_fail(TSR_ERR_FORMAT, "'%s': the external link '%s' leads to a path that is too long", spot->name,
                            last.link);
        TSR_TRY(jump(spot, root, named));
    }
}
