/* Finds the dataset a person named in a file (the only matrix when no path is given), describes it, and lists what a
 * file holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/describe/describe_wire.h"
#include "io/files/raw_file.h"
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_path.h"
#include "io/hdf5/access/hdf5_probe.h"
#include "io/hdf5/external/external_file.h"
#include "io/hdf5/filter_advice.h"
#include "io/hdf5/hdf5_foreign.h"
#include "io/hdf5/hdf5_inspect.h"
#include "io/hdf5/store_hdf5.h"
#include "io/nearest.h"

#define DOTS "..." /* behind what is shown of it */

/* ---- every dataset of a file ----------------------------------------------------------------- */

typedef struct {
    const char *file_name;
    const char *root; /* "": what reads other files is refused */
    int64_t file_bytes;
    tsr_list_sink sink;
    void *context;
} listing;

typedef struct {
    const listing *list;
    hid_t file;
    void (*each)(void *, const tsr_h5_found *);
    void *context;
    tsr_status status; /* of reading: what the disk does not give is not the dataset's fault, and ends the listing */
} visitor;

#define READ_FAILED "file read failed" /* what HDF5 says when the system's read gives an error */

/* One that cannot be read does not keep the others from being listed. */
static void list_refused(const visitor *v, const char *path, const char *why) {
    tsr_h5_found found = {.status = TSR_ERR_FORMAT, .desc = {.offset = -1}};
    snprintf(found.desc.name.path, sizeof found.desc.name.path, "%s", path);
    snprintf(found.refused, sizeof found.refused, "%s", why);
    v->each(v->context, &found);
}

/* `name`: the path without its first slash; `path`: as much of it as there is room for. */
static void list_dataset(visitor *v, const char *name, const char *path, bool whole) {
    hid_t object = H5Oopen(v->file, name, H5P_DEFAULT);
    tsr_h5_found found;
    char too_long[64];
    if (object < 0 && tsr_h5_error_says(READ_FAILED)) {
        v->status = tsr_h5_fail(TSR_ERR_IO, "cannot read '%s'; check the disk", v->list->file_name);
        return;
    }
    if (object < 0) {
        list_refused(v, path, "it cannot be opened: the file is damaged or needs a newer HDF5");
        return;
    }
    if (H5Iget_type(object) == H5I_DATASET) {
        snprintf(too_long, sizeof too_long, "its path is longer than %d characters", TSR_PATH_CHARS - 1);
        if (!whole) list_refused(v, path, too_long);
        else if (tsr_h5_inspect(object, path, v->list->file_bytes, false, &found) == TSR_OK) {
            if (!*v->list->root) tsr_h5_refuse_outside(&found);
            v->each(v->context, &found);
        } else if (strstr(tsr_message(), READ_FAILED)) v->status = TSR_ERR_IO;
        else list_refused(v, path, tsr_message());
    }
    H5Oclose(object);
}

/* What a link leads to, in a file that may be read, under the link's own path. Not where it lies: the list is of this
 * file. */
static tsr_status inspect_linked(const listing *list, const char *path, tsr_h5_found *found) {
    tsr_h5_spot spot;
    char inner[TSR_PATH_CHARS];
    tsr_status status = tsr_h5_spot_open(list->file_name, "", &spot);
    if (status == TSR_OK) status = tsr_h5_follow(&spot, list->root, path, inner);
    if (status == TSR_OK) {
        hid_t object = H5Oopen(spot.file, inner, H5P_DEFAULT);
        if (object >= 0 && H5Iget_type(object) == H5I_DATASET)
            status = tsr_h5_inspect(object, path, spot.bytes, false, found);
        else status = tsr_fail(TSR_ERR_FORMAT, "it is a link to '%s' in '%s', which is no dataset", inner, spot.name);
        if (object >= 0) H5Oclose(object);
    }
    if (status == TSR_OK && found->desc.offset >= 0) {
        found->desc.offset = -1;
        found->desc.element.swapped = false;
    }
    return tsr_h5_spot_close(&spot, status);
}

static void list_link(const visitor *v, const char *name, const char *path, bool whole) {
    char file[256], why[360];
    tsr_h5_found found;
    if (whole && *v->list->root) {
        if (inspect_linked(v->list, path, &found) == TSR_OK) v->each(v->context, &found);
        else list_refused(v, path, tsr_message());
        return;
    }
    tsr_h5_link_file(v->file, name, file, sizeof file);
    snprintf(why, sizeof why, "it is a link to another file (%s); --allow-external reads what it leads to", file);
    list_refused(v, path, why);
}

/* H5Lvisit callback: hard links are looked at, links that leave the file are reported, soft links are other names. */
static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *context) {
    visitor *v = context;
    char path[TSR_PATH_CHARS];
    (void)group;
    tsr_describe_goes_on();
    const bool whole = snprintf(path, sizeof path, "/%s", name) < (int)sizeof path;
    if (whole && tsr_h5_is_internal(v->file, path)) return 0;
    if (!whole) memcpy(path + sizeof path - sizeof DOTS, DOTS, sizeof DOTS);
    if (info->type == H5L_TYPE_HARD) list_dataset(v, name, path, whole);
    else if (info->type != H5L_TYPE_SOFT) list_link(v, name, path, whole);
    return v->status == TSR_OK ? 0 : -1;
}

static tsr_status visit_all(hid_t file, const listing *list, void (*each)(void *, const tsr_h5_found *),
                            void *context) {
    visitor v = {list, file, each, context, TSR_OK};
    const herr_t error = H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, visit, &v);
    if (v.status != TSR_OK) return v.status;
    if (error < 0)
        return tsr_h5_fail(TSR_ERR_FORMAT, "'%s': cannot list its datasets; check it with h5ls", list->file_name);
    return TSR_OK;
}

static void to_sink(void *context, const tsr_h5_found *found) {
    listing *list = context;
    tsr_store_desc desc = found->desc;
    char refused[sizeof found->refused + TSR_FILE_CHARS + TSR_PATH_CHARS + 64];
    snprintf(refused, sizeof refused, "%s", found->refused);
    if (found->filter)
        snprintf(refused, sizeof refused, "%s; how to rewrite it: tessera info %s:%s", found->refused, list->file_name,
                 desc.name.path);
    snprintf(desc.name.file, sizeof desc.name.file, "%s", list->file_name);
    list->sink(list->context, &desc, desc.name.path, found->status == TSR_OK ? NULL : refused);
}

tsr_status tsr_hdf5_list(const char *file, const char *root, tsr_list_sink sink, void *context) {
    listing list = {.file_name = file, .root = root, .sink = sink, .context = context};
    hid_t id = -1;
    TSR_TRY(tsr_h5_probe(file, &list.file_bytes, NULL));
    tsr_h5_enter();
    tsr_status status = tsr_h5_open_read(file, &id);
    if (status == TSR_OK) status = visit_all(id, &list, to_sink, &list);
    if (id >= 0) H5Fclose(id);
    tsr_h5_leave();
    return status;
}

/* ---- the dataset meant ----------------------------------------------------------------------- */

/* Datasets of numbers by what is meant first where a file is named alone. */
enum { MATRICES, STACKS, VECTORS, NUMBERS, SHAPES };

/* What a file holds, in words, for messages and for choosing. */
typedef struct {
    int matrices, others;              /* matrices: datasets of numbers of any shape */
    int shaped[SHAPES];                /* of them */
    char path[SHAPES][TSR_PATH_CHARS]; /* the first of each */
    char matrix_text[SHAPES][600], other_text[600];
    int shown[SHAPES], others_shown;
    tsr_nearest by_path, by_name; /* the matrix whose path, or the last part of it, is most like what was asked for */
} census;

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Keeps the whole path of a matrix whose last part is near. */
static void offer_by_name(tsr_nearest *nearest, const char *path) {
    tsr_nearest one = {.wanted = nearest->wanted};
    tsr_nearest_offer(&one, last_part(path));
    if (!one.name[0] || strlen(path) >= sizeof one.name || (nearest->name[0] && one.distance >= nearest->distance))
        return;
    nearest->distance = one.distance;
    memcpy(nearest->name, path, strlen(path) + 1);
}

static void add_text(char *text, size_t chars, int *shown, const char *one) {
    size_t used = strlen(text);
    if (*shown >= 8 || used + strlen(one) + 3 > chars) return;
    snprintf(text + used, chars - used, "%s%s", used ? ", " : "", one);
    ++*shown;
}

static void count(void *context, const tsr_h5_found *found) {
    census *c = context;
    const tsr_store_desc *desc = &found->desc;
    char one[400], text[128];
    if (found->matrix) {
        const int dimensions = desc->dataset_dimensions;
        const int kind = dimensions > 2 ? STACKS : dimensions == 2 ? MATRICES : dimensions == 1 ? VECTORS : NUMBERS;
        c->matrices++;
        if (c->shaped[kind]++ == 0) snprintf(c->path[kind], TSR_PATH_CHARS, "%s", desc->name.path);
        const tsr_shape shape = tsr_store_shape(desc);
        tsr_shape_text(&shape, "x", text, sizeof text);
        snprintf(one, sizeof one, "%.200s (%s %s)", desc->name.path, text, desc->type_name);
        add_text(c->matrix_text[kind], sizeof c->matrix_text[kind], &c->shown[kind], one);
        tsr_nearest_offer(&c->by_path, desc->name.path);
        offer_by_name(&c->by_name, desc->name.path);
        return;
    }
    c->others++;
    size_t reason = strcspn(found->refused, ";");
    snprintf(one, sizeof one, "%.200s (%.*s)", desc->name.path, (int)reason, found->refused);
    add_text(c->other_text, sizeof c->other_text, &c->others_shown, one);
}

/* `wanted`: the path that was asked for, "" for none. */
static tsr_status take_census(hid_t file, const char *file_name, int64_t file_bytes, const char *wanted, census *c) {
    listing list = {.file_name = file_name, .root = "", .file_bytes = file_bytes};
    memset(c, 0, sizeof *c);
    c->by_path.wanted = wanted;
    c->by_name.wanted = last_part(wanted);
    return visit_all(file, &list, count, c);
}

static const char *more(int all, int shown) { return all > shown ? ", ..." : ""; }

/* No path was given: the only matrix there is; where there is none, the only stack of them; then vectors, numbers. */
static tsr_status choose_path(hid_t file, const char *file_name, int64_t file_bytes, char *path) {
    census c;
    TSR_TRY(take_census(file, file_name, file_bytes, "", &c));
    for (int kind = 0; kind < SHAPES; kind++) {
        if (c.shaped[kind] == 0) continue;
        memcpy(path, c.path[kind], TSR_PATH_CHARS);
        if (c.shaped[kind] == 1) return TSR_OK;
        return tsr_fail(TSR_ERR_USAGE, "'%s' holds %d matrices: %s%s; name one of them: %s:%s", file_name,
                        c.shaped[kind], c.matrix_text[kind], more(c.shaped[kind], c.shown[kind]), file_name, path);
    }
    if (c.others == 0) return tsr_fail(TSR_ERR_NOT_FOUND, "'%s' holds no dataset; choose another file", file_name);
    return tsr_fail(TSR_ERR_FORMAT, "'%s' holds no dataset of numbers, only %s%s; choose another file", file_name,
                    c.other_text, more(c.others, c.others_shown));
}

/* The path is not there: adds what is to the message. */
static tsr_status not_found(hid_t file, const tsr_matrix_name *name, int64_t file_bytes) {
    char message[600], meant[200];
    census c;
    int kind = 0;
    snprintf(message, sizeof message, "%s", tsr_message());
    TSR_TRY(take_census(file, name->file, file_bytes, name->path, &c));
    if (c.matrices == 0) return tsr_fail(TSR_ERR_NOT_FOUND, "%s; it holds no matrix at all", message);
    while (c.shaped[kind] == 0) kind++;
    tsr_did_you_mean(c.by_path.name[0] ? &c.by_path : &c.by_name, "", meant, sizeof meant);
    return tsr_fail(TSR_ERR_NOT_FOUND, "%s%s %s %s%s", message, *meant ? meant : ";", *meant ? "It holds" : "it holds",
                    c.matrix_text[kind], more(c.matrices, c.shown[kind]));
}

/* A group may stand for a dataset in it: path becomes that one. */
static tsr_status enter_group(tsr_h5_spot *spot, const char *root, char *path) {
    char inner[TSR_PATH_CHARS];
    hid_t object = H5Oopen(spot->file, path, H5P_DEFAULT);
    tsr_status status = TSR_OK;
    bool group = object >= 0 && H5Iget_type(object) == H5I_GROUP;
    if (group) status = tsr_h5_matrix_of(object, spot->name, path, inner);
    if (object >= 0) H5Oclose(object);
    return group && status == TSR_OK ? tsr_h5_follow(spot, root, inner, path) : status;
}

static tsr_status inspect_path(const tsr_h5_spot *spot, const char *root, const char *path, tsr_h5_found *found) {
    const char *file_name = spot->name;
    hid_t object = H5Oopen(spot->file, path, H5P_DEFAULT);
    if (object < 0)
        return tsr_h5_fail(TSR_ERR_FORMAT, "'%s': cannot open '%s': the file is damaged or needs a newer HDF5",
                           file_name, path);
    tsr_status status;
    H5I_type_t kind = H5Iget_type(object);
    if (kind == H5I_DATASET) status = tsr_h5_inspect(object, path, spot->bytes, false, found);
    else
        status =
            tsr_fail(TSR_ERR_FORMAT, "'%s': '%s' is a %s, not a dataset; name a dataset (tessera info %s lists them)",
                     file_name, path, kind == H5I_GROUP ? "group" : "named type", file_name);
    H5Oclose(object);
    if (status == TSR_OK && !*root) tsr_h5_refuse_outside(found);
    if (status == TSR_OK && found->status != TSR_OK) {
        char advice[TSR_ADVICE_CHARS] = "";
        if (found->filter) tsr_h5_filter_advice(found->filter, file_name, path, advice, sizeof advice);
        status = tsr_fail(found->status, "'%s:%s' cannot be read as a matrix: %s%s%s", file_name, path, found->refused,
                          found->filter ? "; " : "", advice);
    }
    return status;
}

/* A dataset may be called as a slice is written: where "/A[0]" is there, that is meant. */
static bool is_called_so(hid_t file, const tsr_matrix_name *name, char *path) {
    char whole[TSR_PATH_CHARS];
    if (!*name->path || !*name->slice ||
        snprintf(whole, sizeof whole, "%s%s", name->path, name->slice) >= (int)sizeof whole)
        return false;
    if (tsr_h5_resolve(file, name->file, whole, path) == TSR_OK) return true;
    tsr_message_set(""); /* only a question */
    return false;
}

/* *spot becomes the file that holds the dataset. */
static tsr_status describe(tsr_h5_spot *spot, const char *root, tsr_matrix_name *name, tsr_h5_found *found) {
    char path[TSR_PATH_CHARS];
    if (is_called_so(spot->file, name, path)) {
        name->slice[0] = '\0';
    } else if (name->path[0] == '\0') {
        TSR_TRY(choose_path(spot->file, name->file, spot->bytes, path));
    } else {
        tsr_status status = tsr_h5_follow(spot, root, name->path, path);
        const bool here = strcmp(spot->name, name->file) == 0;
        if (status == TSR_ERR_NOT_FOUND && here) return not_found(spot->file, name, spot->bytes);
        TSR_TRY(status);
    }
    TSR_TRY(enter_group(spot, root, path));
    return inspect_path(spot, root, path, found);
}

tsr_status tsr_hdf5_find(const tsr_matrix_name *name, const char *root, tsr_store_desc *desc, bool *called_so) {
    tsr_matrix_name asked = *name;
    tsr_h5_found found = {.status = TSR_OK};
    tsr_h5_spot spot;
    tsr_h5_enter();
    tsr_status status = tsr_h5_spot_open(name->file, "", &spot);
    if (status == TSR_OK) status = describe(&spot, root, &asked, &found);
    /* noted before the first byte was read, and the same after the last: all of it is of one file */
    status = tsr_h5_spot_close(&spot, status);
    tsr_h5_leave();
    TSR_TRY(status);
    found.desc.file_state = spot.state;
    memcpy(found.desc.name.file, spot.name, TSR_FILE_CHARS);
    *desc = found.desc;
    *called_so = *name->slice && !*asked.slice;
    return TSR_OK;
}

tsr_status tsr_hdf5_take_part(const tsr_matrix_name *name, bool called_so, tsr_store_desc *desc) {
    tsr_matrix_name asked = *name;
    if (called_so) asked.slice[0] = '\0';
    memcpy(desc->name.slice, asked.slice, sizeof asked.slice);
    desc->name.columns_first = asked.columns_first;
    TSR_TRY(tsr_store_take_slice(desc));
    desc->on_disk = desc->offset >= 0 && tsr_raw_on_disk(desc->name.file);
    return TSR_OK;
}

tsr_status tsr_hdf5_describe(const tsr_matrix_name *name, tsr_store_desc *desc) {
    tsr_store_desc found;
    bool called_so;
    TSR_TRY(tsr_hdf5_find(name, "", &found, &called_so));
    TSR_TRY(tsr_hdf5_take_part(name, called_so, &found));
    *desc = found;
    return TSR_OK;
}
