/* Paths inside HDF5 files followed link by link, and objects compared (hdf5_path.h). */
#include "io/hdf5/access/hdf5_path.h"

#include <stdio.h>
#include <string.h>

#include "io/hdf5/access/hdf5_library.h"
#include "io/name.h"

void tsr_h5_link_file(hid_t file, const char *link, char *text, size_t chars) {
    char value[1024] = "";
    const char *name = NULL, *path = NULL;
    snprintf(text, chars, "of a name that cannot be read");
    if (H5Lget_val(file, link, value, sizeof value - 1, H5P_DEFAULT) < 0) return;
    if (H5Lunpack_elink_val(value, sizeof value, NULL, &name, &path) < 0 || !name) return;
    snprintf(text, chars, "'%.200s'", name);
}

/* A soft link `link` (its parent is link[0 … parent_chars)): writes where path leads instead, `rest` being what
 * follows the link. */
static tsr_status follow_soft(hid_t file, const char *file_name, const char *link, size_t parent_chars,
                              const char *rest, char *path) {
    char value[TSR_PATH_CHARS] = "", joined[2 * TSR_PATH_CHARS + 8];
    if (H5Lget_val(file, link, value, sizeof value - 1, H5P_DEFAULT) < 0)
        return tsr_h5_fail(TSR_ERR_FORMAT, "'%s': cannot read the soft link '%s'", file_name, link);
    int chars = value[0] == '/' ? snprintf(joined, sizeof joined, "%s%s", value, rest)
                                : snprintf(joined, sizeof joined, "%.*s/%s%s", (int)parent_chars, link, value, rest);
    if (chars >= TSR_PATH_CHARS)
        return tsr_fail(TSR_ERR_FORMAT, "'%s': the soft link '%s' leads to a path that is too long", file_name, link);
    memcpy(path, joined, (size_t)chars + 1);
    return TSR_OK;
}

/* Looks at the link `link` of the file. *soft: it is a soft link. */
static tsr_status check_link(hid_t file, const char *file_name, const char *link, const char *asked, bool *soft) {
    H5L_info_t info;
    char where[256];
    htri_t there = H5Lexists(file, link, H5P_DEFAULT);
    if (there < 0)
        return tsr_h5_fail(TSR_ERR_NOT_FOUND, "'%s' has no '%s': what holds '%s' is not a group", file_name, asked,
                           link);
    if (there == 0) return tsr_fail(TSR_ERR_NOT_FOUND, "'%s' has no '%s'", file_name, link);
    if (H5Lget_info(file, link, &info, H5P_DEFAULT) < 0)
        return tsr_h5_fail(TSR_ERR_FORMAT, "'%s': cannot read the link '%s'", file_name, link);
    *soft = info.type == H5L_TYPE_SOFT;
    if (*soft || info.type == H5L_TYPE_HARD) return TSR_OK;
    if (info.type != H5L_TYPE_EXTERNAL)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s': '%s' is a user-defined link, which is not followed; name the dataset itself", file_name,
                        link);
    tsr_h5_link_file(file, link, where, sizeof where);
    return tsr_fail(TSR_ERR_FORMAT,
                    "'%s': '%s' is an external link to file %s, which is not followed; name that file instead "
                    "(--allow-external follows links of inputs)",
                    file_name, link, where);
}

tsr_status tsr_h5_walk(hid_t file, const char *file_name, const char *path, tsr_h5_link_sink each, void *context,
                       char *resolved) {
    char walk[TSR_PATH_CHARS], link[TSR_PATH_CHARS];
    snprintf(walk, sizeof walk, "%s", path);
    size_t done = 0; /* walk[0 … done) is free of soft links */
    for (int jumps = 0; walk[done] != '\0';) {
        size_t slashes = strspn(walk + done, "/");
        size_t chars = strcspn(walk + done + slashes, "/");
        if (chars == 0) break;
        size_t end = done + slashes + chars;
        bool soft = false;
        memcpy(link, walk, end);
        link[end] = '\0';
        if (each) each(context, file, link, walk + end);
        tsr_status status = check_link(file, file_name, link, path, &soft);
        if (status == TSR_ERR_NOT_FOUND && jumps > 0)
            return tsr_fail(status, "'%s': '%s' is a soft link to '%s', which is not there", file_name, path, link);
        TSR_TRY(status);
        if (!soft) {
            done = end;
            continue;
        }
        if (++jumps > 32)
            return tsr_fail(TSR_ERR_FORMAT, "'%s': the soft links of '%s' lead round in a circle", file_name, path);
        char rest[TSR_PATH_CHARS];
        snprintf(rest, sizeof rest, "%s", walk + end);
        TSR_TRY(follow_soft(file, file_name, link, done, rest, walk));
        done = 0;
    }
    walk[done] = '\0';
    snprintf(resolved, TSR_PATH_CHARS, "%s", done ? walk : "/");
    return TSR_OK;
}

tsr_status tsr_h5_resolve(hid_t file, const char *file_name, const char *path, char *resolved) {
    return tsr_h5_walk(file, file_name, path, NULL, NULL, resolved);
}

bool tsr_h5_same_object(hid_t a, hid_t b) {
#if H5_VERSION_GE(1, 12, 0)
    H5O_info2_t one, other;
    int order = 1;
    return H5Oget_info3(a, &one, H5O_INFO_BASIC) >= 0 && H5Oget_info3(b, &other, H5O_INFO_BASIC) >= 0 &&
           H5Otoken_cmp(a, &one.token, &other.token, &order) >= 0 && order == 0;
#else
    H5O_info_t one, other;
    return H5Oget_info2(a, &one, H5O_INFO_BASIC) >= 0 && H5Oget_info2(b, &other, H5O_INFO_BASIC) >= 0 &&
           one.addr == other.addr;
#endif
}

int64_t tsr_h5_address(hid_t object) {
#if H5_VERSION_GE(1, 12, 0)
    H5O_info2_t info;
    int64_t address;
    if (H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0) return -1;
    memcpy(&address, info.token.__data, sizeof address); /* a token of the native format begins with it */
    return address;
#else
    H5O_info_t info;
    return H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0 ? -1 : (int64_t)info.addr;
#endif
}
