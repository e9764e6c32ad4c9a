/* Questions about a file, one after the other (walk.h). */
#include "tests/fuzz/walk.h"

#include "io/describe/carried.h"
#include "io/pieces/pieces.h"
#include "tests/fuzz/fuzz.h"

enum { PATHS = 6, ELEMENTS_MAX = 1 << 16 };

typedef struct {
    char path[PATHS][TSR_PATH_CHARS];
    int count;
} paths;

static void note_path(void *context, const char *path) {
    paths *p = context;
    CHECK(path[0] == '/', "'%s' is no path", path);
    if (p->count < PATHS && strlen(path) < TSR_PATH_CHARS) strcpy(p->path[p->count++], path);
}

static void note_entry(void *context, const tsr_store_desc *desc, const char *path, const char *refused) {
    CHECK(desc->name.path[0] == '/', "'%s' is no path", desc->name.path);
    if (!refused) note_path(context, path);
}

static void read_all(const tsr_store_desc *desc) {
    tsr_store *store;
    if (desc->rows <= 0 || desc->cols <= 0 || desc->rows > ELEMENTS_MAX / desc->cols) return;
    if (desc->cache_bytes > (size_t)64 << 20) return;
    if (tsr_store_open(desc, TSR_IO_AUTO, NULL, NULL, &store) != TSR_OK) return;
    const size_t bytes = (size_t)(desc->rows * desc->cols) * tsr_dtype_bytes(store->desc.element.dtype);
    void *to = malloc(bytes);
    CHECK(to, "no memory");
    for (int64_t matrix = 0; matrix < tsr_min(desc->matrices, 3); matrix++) {
        tsr_store_select(store, matrix);
        (void)store->ops->read(store, (tsr_rect){0, 0, desc->rows, desc->cols}, to, desc->cols);
    }
    (void)tsr_store_unchanged(store);
    tsr_store_close(store);
    free(to);
}

void walk_matrix(tsr_describer *d, const char *text) {
    tsr_matrix_name name;
    tsr_store_desc desc;
    char storage[1024];
    if (tsr_matrix_name_parse(text, &name) != TSR_OK || tsr_store_describe(d, &name, &desc) != TSR_OK) return;
    CHECK(desc.rows >= 0 && desc.cols >= 0 && desc.matrices >= 0, "%s: a size below 0", text);
    (void)tsr_store_storage(&desc, storage, sizeof storage);
    const bool whole = tsr_describe_pieces(d, &desc) == TSR_OK && tsr_describe_chunks(d, &desc, &desc.index) == TSR_OK;
    if (whole) read_all(&desc);
    tsr_chunk_index_leave(desc.index);
    tsr_pieces_leave(desc.pieces);
}

void walk_lists(tsr_describer *d, const char *file) {
    paths runs = {.count = 0};
    (void)tsr_describe_runs(d, file, note_path, &runs);
    for (int i = 0; i < runs.count; i++) {
        tsr_kept_record record;
        if (tsr_describe_run(d, file, runs.path[i], &record) == TSR_OK) tsr_record_free(&record);
    }
}

void walk_carried(tsr_describer *d, const char *file, const char *path) {
    for (int64_t from_end = TSR_CARRIED_NO_DIMENSION; from_end <= 2; from_end++) {
        const tsr_carried_question asked = {.file = file,
                                            .path = path,
                                            .from_end = from_end,
                                            .length = from_end == 1 ? 20 : 24,
                                            .count = from_end == 1 ? 20 : 24,
                                            .attributes = true};
        tsr_carried carried;
        tsr_describe_carried(d, &asked, &carried);
        tsr_carried_free(&carried);
    }
}

void walk_file(tsr_describer *d, const char *file) {
    char name[TSR_FILE_CHARS + TSR_PATH_CHARS];
    paths found = {.count = 0};
    (void)tsr_describe_list(d, file, note_entry, &found);
    walk_lists(d, file);
    walk_matrix(d, file);
    for (int i = 0; i < found.count; i++) {
        snprintf(name, sizeof name, "%s:%s", file, found.path[i]);
        walk_matrix(d, name);
        walk_carried(d, file, found.path[i]);
    }
}
