/* What a run reads stays where it is (output.h): whether putting an output into its target would take a matrix that is
 * read away, by whatever links it is reached. Changes nothing. */
#include <stdio.h>
#include <string.h>

#include "io/describe/describe_wire.h"
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_path.h"
#include "io/hdf5/output/output_hdf5.h"
#include "io/text/text_file.h"

#define JUMPS_MAX 8 /* external links that follow each other */

/* The path as it was named: what must go on leading to the matrix. What looks like a slice belongs to it where the
 * dataset is called so. */
static const char *asked_path(const tsr_output_source *source, char path[TSR_PATH_CHARS]) {
    const tsr_matrix_name *asked = source->asked, *found = source->found;
    const char *slice = found->sliced ? "" : asked->slice;
    if (!asked->path[0] || snprintf(path, TSR_PATH_CHARS, "%s%s", asked->path, slice) >= TSR_PATH_CHARS)
        snprintf(path, TSR_PATH_CHARS, "%s", found->path);
    return path;
}

tsr_status tsr_sources_check_file(const tsr_output_spec *spec, const tsr_target *target) {
    for (int i = 0; i < spec->source_count && !spec->name.path[0]; i++) {
        bool in_target;
        TSR_TRY(tsr_target_holds(target, &spec->sources[i], &in_target));
        if (in_target)
            return tsr_fail(TSR_ERR_USAGE,
                            "the output '%s' is the file that %s is read from, and no dataset was named: use -o %s:%s "
                            "to put it there, or name another file",
                            spec->name.file, spec->sources[i].role, spec->name.file, target->path);
    }
    return TSR_OK;
}

/* ---- where links lead ------------------------------------------------------------------------ */

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

typedef struct {
    hid_t file, wanted;
    char top[TSR_PATH_CHARS]; /* the group whose links are visited */
} object_search;

/* H5Lvisit callback: 1 at the object that is searched. */
static herr_t compare_object(hid_t group, const char *name, const H5L_info_t *info, void *context) {
    const object_search *search = context;
    char path[2 * TSR_PATH_CHARS];
    (void)group;
    tsr_describe_goes_on();
    if (info->type != H5L_TYPE_HARD || snprintf(path, sizeof path, "%s/%s", search->top, name) >= (int)sizeof path)
        return 0;
    hid_t object = H5Oopen(search->file, path, H5P_DEFAULT);
    if (object < 0) return 0;
    bool found = tsr_h5_same_object(object, search->wanted);
    H5Oclose(object);
    return found;
}

/* Whether the object at `path`, which is free of soft links, is the source's dataset, or a group that holds it. */
static bool holds(hid_t file, const char *path, const tsr_output_source *source) {
    if (strcmp(source->found->file, source->asked->file) != 0) return false; /* a link led to another file */
    object_search search = {.file = file, .wanted = H5Oopen(file, source->found->path, H5P_DEFAULT)};
    hid_t object = H5Oopen(file, path, H5P_DEFAULT);
    snprintf(search.top, sizeof search.top, "%s", strcmp(path, "/") == 0 ? "" : path);
    bool found = object >= 0 && search.wanted >= 0 && tsr_h5_same_object(object, search.wanted);
    if (!found && object >= 0 && search.wanted >= 0 && H5Iget_type(object) == H5I_GROUP)
        found = H5Lvisit(object, H5_INDEX_NAME, H5_ITER_NATIVE, compare_object, &search) > 0;
    if (object >= 0) H5Oclose(object);
    if (search.wanted >= 0) H5Oclose(search.wanted);
    return found;
}

/* Whether an external link of `file_name` names the source's file where HDF5 would look: beside that file, or from
 * here. */
static bool names_source(const char *file_name, const char *named, const tsr_output_source *source) {
    char folder[TSR_FILE_CHARS], beside[2 * TSR_FILE_CHARS];
    const char *slash = strrchr(named, '/');
    tsr_folder_of(file_name, folder);
    if (tsr_same_place(named, source->asked->file)) return true;
    snprintf(beside, sizeof beside, "%s/%s", folder, named[0] == '/' ? slash + 1 : named);
    return tsr_same_place(beside, source->asked->file);
}

/* Whether the path leads to the source's dataset, or to a group that holds it. in_file: the source is in this file. */
static bool leads_to(hid_t file, const char *file_name, bool in_file, const char *path, const tsr_output_source *source,
                     int jumps);

/* Only files that are read anyway are opened. */
static bool external_leads_to(hid_t file, const char *file_name, const last_link *last, const tsr_output_source *source,
                              int jumps) {
    H5L_info_t info;
    char value[2 * TSR_FILE_CHARS] = "", there[2 * TSR_PATH_CHARS];
    const char *named = NULL, *path = NULL;
    if (jumps == 0 || H5Lget_info(file, last->link, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_EXTERNAL)
        return false;
    if (H5Lget_val(file, last->link, value, sizeof value - 1, H5P_DEFAULT) < 0) return false;
    if (H5Lunpack_elink_val(value, sizeof value, NULL, &named, &path) < 0 || !names_source(file_name, named, source))
        return false;
    hid_t other = -1;
    bool absolute = path[0] == '/',
         fits = snprintf(there, sizeof there, "%s%s%s", absolute ? "" : "/", path, last->rest) < TSR_PATH_CHARS;
    if (!fits || tsr_h5_open_read(source->asked->file, &other) != TSR_OK) return false;
    bool found = leads_to(other, source->asked->file, true, there, source, jumps - 1);
    H5Fclose(other);
    return found;
}

static bool leads_to(hid_t file, const char *file_name, bool in_file, const char *path, const tsr_output_source *source,
                     int jumps) {
    char resolved[TSR_PATH_CHARS];
    last_link last = {"", ""};
    tsr_status status = tsr_h5_walk(file, file_name, path, keep_link, &last, resolved);
    if (status == TSR_ERR_FORMAT) return external_leads_to(file, file_name, &last, source, jumps);
    return status == TSR_OK && in_file && holds(file, resolved, source);
}

/* ---- which links a path takes ---------------------------------------------------------------- */

typedef struct {
    const char *link; /* in question */
    bool found;
} link_search;

/* The group that holds the link at `path`, open; *name points into path. */
static hid_t open_parent(hid_t file, const char *path, const char **name) {
    char parent[TSR_PATH_CHARS + 8];
    const char *slash = strrchr(path, '/');
    *name = slash + 1;
    snprintf(parent, sizeof parent, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return H5Oopen(file, parent, H5P_DEFAULT);
}

/* A link is one name in one group, however that group is reached. */
static void compare_link(void *context, hid_t file, const char *link, const char *rest) {
    link_search *search = context;
    const char *one_name, *other_name;
    (void)rest;
    hid_t one = open_parent(file, link, &one_name), other = open_parent(file, search->link, &other_name);
    if (one >= 0 && other >= 0 && strcmp(one_name, other_name) == 0 && tsr_h5_same_object(one, other))
        search->found = true;
    if (one >= 0) H5Oclose(one);
    if (other >= 0) H5Oclose(other);
}

static bool runs_over(hid_t file, const char *link, const char *file_name, const tsr_output_source *source) {
    char path[TSR_PATH_CHARS], resolved[TSR_PATH_CHARS];
    link_search search = {link, false};
    (void)tsr_h5_walk(file, file_name, asked_path(source, path), compare_link, &search, resolved);
    return search.found;
}

/* Whether `path` is the dataset itself, and no group that holds it. */
static bool is_dataset(hid_t file, const char *path) {
    hid_t object = H5Oopen(file, path, H5P_DEFAULT);
    bool is = object >= 0 && H5Iget_type(object) == H5I_DATASET;
    if (object >= 0) H5Oclose(object);
    return is;
}

tsr_status tsr_sources_check(const tsr_output_spec *spec, const tsr_target *target, hid_t file) {
    const char *const links[] = {target->path, target->run_path};
    char path[TSR_PATH_CHARS];
    for (int i = 0; i < spec->source_count; i++) {
        const tsr_output_source *source = &spec->sources[i];
        bool in_target;
        TSR_TRY(tsr_target_holds(target, source, &in_target));
        for (int l = 0; l < 2; l++) {
            if (H5Lexists(file, links[l], H5P_DEFAULT) <= 0) continue;
            bool it = leads_to(file, target->file, in_target, links[l], source, JUMPS_MAX);
            const bool replaces = it && l == 0 && source->replaceable && is_dataset(file, links[l]);
            if (replaces && source->part)
                return tsr_fail(TSR_ERR_USAGE,
                                "the output '%s:%s' would replace %s, of which only the part %s is read: the rest "
                                "would be lost; name another output",
                                target->file, target->path, source->role, source->asked->slice);
            if (replaces) continue;
            if (it || (in_target && runs_over(file, links[l], target->file, source)))
                return tsr_fail(TSR_ERR_USAGE,
                                "the output '%s:%s'%s would replace %s ('%s:%s'), which is read: name another output",
                                target->file, target->path, l ? " with its record beside it" : "", source->role,
                                source->asked->file, asked_path(source, path));
        }
    }
    return TSR_OK;
}
