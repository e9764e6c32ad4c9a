/* The registry of kinds of stores (stores.h). */
#include "io/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/store_hdf5.h"
#include "io/raw/store_raw.h"

/* A name has the first kind behind number 0 that claims it. Numbers travel in descriptions. */
static const tsr_store_kind *const kinds[] = {
    &tsr_hdf5_kind, &tsr_npy_kind, &tsr_raw_kind, &tsr_memory_kind, /* that nobody names */
};
enum { KINDS = sizeof kinds / sizeof *kinds };

const tsr_store_kind *tsr_store_kind_of(const tsr_matrix_name *name) { return kinds[name->kind]; }

bool tsr_store_claimed(const char *text, tsr_matrix_name *name) {
    for (int k = 0; k < KINDS; k++) {
        if (!kinds[k]->claims || !kinds[k]->claims(text, name)) continue;
        name->kind = k;
        return true;
    }
    return false;
}

tsr_status tsr_memory_describe(const char *text, const tsr_shape *shape, tsr_element element, tsr_store_desc *desc) {
    int kind = 0;
    while (kinds[kind] != &tsr_memory_kind) kind++;
    *desc = (tsr_store_desc){.name = {.kind = kind}, .element = element, .offset = 0};
    snprintf(desc->name.file, sizeof desc->name.file, "%s", text);
    snprintf(desc->type_name, sizeof desc->type_name, "%s%s", element.swapped ? "byte-swapped " : "",
             tsr_dtype_name(element.dtype));
    return tsr_store_set_shape(desc, shape);
}

/* Appends to text where there is room. */
static void add(char *text, size_t chars, const char *between, const char *what) {
    const size_t used = strlen(text);
    snprintf(text + used, chars - used, "%s%s", used > 0 ? between : "", what);
}

const char *tsr_store_forms(char *text, size_t chars) {
    text[0] = '\0';
    for (int k = 0; k < KINDS; k++)
        if (kinds[k]->forms) add(text, chars, ", ", kinds[k]->forms);
    return text;
}

tsr_status tsr_store_describe(struct tsr_describer *describer, const tsr_matrix_name *name, tsr_store_desc *desc) {
    return tsr_store_kind_of(name)->describe(describer, name, desc);
}

tsr_status tsr_store_open(const tsr_store_desc *desc, tsr_io_mode mode, const void *comm, tsr_io_mode *mode_used,
                          tsr_store **store) {
    return tsr_store_kind_of(&desc->name)->open(desc, mode, comm, false, mode_used, store);
}

tsr_element tsr_store_element(const tsr_store_desc *desc, tsr_io_mode mode) {
    const tsr_store_kind *kind = tsr_store_kind_of(&desc->name);
    return kind->element ? kind->element(desc, mode) : desc->element;
}

bool tsr_store_copies(const tsr_store_desc *desc, tsr_io_mode mode) {
    return desc->offset >= 0 && !desc->on_disk && (mode == TSR_IO_AUTO || mode == TSR_IO_DIRECT);
}

const char *tsr_store_storage(const tsr_store_desc *desc, char *text, size_t chars) {
    return tsr_store_kind_of(&desc->name)->storage(desc, text, chars);
}

size_t tsr_store_least_bytes(const tsr_store_desc *desc, tsr_io_mode mode) {
    const tsr_store_kind *kind = tsr_store_kind_of(&desc->name);
    return kind->least_bytes ? kind->least_bytes(desc, mode) : 0;
}

tsr_status tsr_store_too_large(const tsr_store_desc *desc, size_t need, size_t have, const char *advice) {
    return tsr_store_kind_of(&desc->name)->too_large(desc, need, have, advice);
}

void tsr_store_lower(tsr_store_desc *desc, tsr_io_mode mode, size_t have) {
    const size_t least = tsr_store_least_bytes(desc, mode);
    if (desc->cache_bytes > have) desc->cache_bytes = have;
    if (desc->cache_bytes < least) desc->cache_bytes = least;
}

void tsr_stores_plugins(const char *folder) { setenv(TSR_PLUGIN_FOLDERS, folder, 1); }

void tsr_stores_start(void) {
    for (int k = 0; k < KINDS; k++)
        if (kinds[k]->start) kinds[k]->start();
}

const char *tsr_stores_version(char *text, size_t chars) {
    char one[64];
    text[0] = '\0';
    for (int k = 0; k < KINDS; k++)
        if (kinds[k]->version) add(text, chars, ", ", kinds[k]->version(one, sizeof one));
    return text;
}
