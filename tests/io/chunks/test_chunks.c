/* Chunks decoded by threads: many threads over few kept chunks, memory limits, what is left to HDF5, and damage that
 * all threads meet. */
#define _GNU_SOURCE /* nftw, rand_r */
#include <hdf5.h>
#include <pthread.h>
#include <string.h>

#include "io/chunks/store_chunks.h"
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/store_hdf5.h"
#include "tests/io/scratch.h"

enum { ROWS = 203, COLS = 151, CHUNK_ROWS = 16, CHUNK_COLS = 10, THREADS = 8 };

static int32_t value(int64_t row, int64_t col) { return (int32_t)(row * 1000 + col); }

/* All of ROWS × COLS in chunks, with the options HDF5 calls chunk options. */
static void make_file(const char *file, hid_t type, unsigned options) {
    hsize_t shape[2] = {ROWS, COLS}, chunk[2] = {CHUNK_ROWS, CHUNK_COLS};
    int32_t *data = malloc(sizeof *data * ROWS * COLS);
    for (int64_t i = 0; i < ROWS * COLS; i++) data[i] = value(i / COLS, i % COLS);
    tsr_h5_enter();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(2, shape, NULL);
    H5Pset_libver_bounds(access, options ? H5F_LIBVER_LATEST : H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST);
    H5Pset_chunk(properties, 2, chunk);
    H5Pset_chunk_opts(properties, options);
    H5Pset_shuffle(properties);
    if (tsr_filter_gzip.undo) H5Pset_deflate(properties, 2);
    H5Pset_fletcher32(properties);
    hid_t id = H5Fcreate(file, H5F_ACC_TRUNC, H5P_DEFAULT, access),
          dataset = H5Dcreate2(id, "A", type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    CHECK(dataset >= 0 && H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0,
          "cannot write '%s'", file);
    H5Dclose(dataset);
    H5Fclose(id);
    H5Sclose(space);
    H5Pclose(properties);
    H5Pclose(access);
    tsr_h5_leave();
    free(data);
}

static tsr_store_desc described(const char *file) {
    tsr_matrix_name name;
    tsr_store_desc desc;
    CHECK_OK(tsr_matrix_name_parse(file, &name));
    CHECK_OK(tsr_hdf5_describe(&name, &desc));
    return desc;
}

typedef struct {
    tsr_store *store;
    unsigned seed;
    int wrong;
    tsr_status status;
} reader;

static int64_t below(unsigned *seed, int64_t limit) { return rand_r(seed) % limit; }

static int wrong_elements(const tsr_store *store, const int32_t *data, tsr_rect r, int64_t ld) {
    int wrong = 0;
    for (int64_t i = 0; i < r.rows; i++)
        for (int64_t j = 0; j < ld; j++) {
            int32_t got = data[i * ld + j], want = j < r.cols ? value(r.row + i, r.col + j) : -1;
            wrong +=
                (store->desc.element.swapped && j < r.cols ? (int32_t)__builtin_bswap32((uint32_t)got) : got) != want;
        }
    return wrong;
}

static void *read_at_random(void *context) {
    reader *r = context;
    int32_t *data = malloc(sizeof *data * ROWS * (COLS + 3));
    for (int turn = 0; turn < 60 && r->status == TSR_OK; turn++) {
        tsr_rect rect = {below(&r->seed, ROWS), below(&r->seed, COLS), 0, 0};
        rect.rows = 1 + below(&r->seed, ROWS - rect.row);
        rect.cols = 1 + below(&r->seed, COLS - rect.col);
        memset(data, -1, sizeof *data * ROWS * (COLS + 3));
        r->status = r->store->ops->read(r->store, rect, data, rect.cols + 3);
        if (r->status == TSR_OK) r->wrong += wrong_elements(r->store, data, rect, rect.cols + 3);
    }
    free(data);
    return NULL;
}

static void read_by_threads(tsr_store *store, tsr_status want) {
    pthread_t ids[THREADS];
    reader readers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        readers[i] = (reader){.store = store, .seed = (unsigned)i + 1};
        CHECK(pthread_create(&ids[i], NULL, read_at_random, &readers[i]) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        CHECK(readers[i].status == want, "thread %d: status %d, not %d", i, (int)readers[i].status, (int)want);
        CHECK(readers[i].wrong == 0, "thread %d: %d wrong elements", i, readers[i].wrong);
    }
}

/* From room for one chunk to room for all of them; one byte less than one chunk needs is refused, or left to HDF5 in
 * the same byte order. */
static void test_limits(void) {
    const char *file = in_scratch("limits.h5");
    make_file(file, H5T_STD_I32BE, 0);
    tsr_store_desc desc = described(file);
    tsr_store *store;
    tsr_io_mode used;
    CHECK(desc.hdf5.raw_chunks && desc.element.swapped, "%d %d", desc.hdf5.raw_chunks, desc.element.swapped);
    CHECK(desc.cache_bytes >= tsr_chunks_bytes(&desc, tsr_ceil_div(COLS, CHUNK_COLS), 1),
          "%zu bytes hold no row of chunks", desc.cache_bytes);
    const size_t one = tsr_chunks_bytes(&desc, 1, 1),
                 rooms[] = {one, tsr_chunks_bytes(&desc, 2, 1), tsr_chunks_bytes(&desc, 3, 3), 400 * one};
    CHECK(one >= 3 * sizeof(int32_t) * CHUNK_ROWS * CHUNK_COLS,
          "a chunk, what is stored of it and a spare are not %zu bytes", one);
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        desc.cache_bytes = rooms[i];
        CHECK_OK(tsr_store_open(&desc, TSR_IO_AUTO, NULL, &used, &store));
        CHECK(used == TSR_IO_DIRECT && store->unit_rows == CHUNK_ROWS && store->unit_cols == CHUNK_COLS, "%s",
              tsr_io_mode_name(used));
        read_by_threads(store, TSR_OK);
        tsr_store_close(store);
    }
    desc.cache_bytes = one - 1;
    CHECK_FAILS(tsr_store_open(&desc, TSR_IO_DIRECT, NULL, NULL, &store), TSR_ERR_LIMIT, "raise --host-memory");
    CHECK_OK(tsr_store_open(&desc, TSR_IO_AUTO, NULL, &used, &store));
    CHECK(used == TSR_IO_HDF5 && store->desc.element.swapped, "%s %d", tsr_io_mode_name(used),
          store->desc.element.swapped);
    read_by_threads(store, TSR_OK);
    tsr_store_close(store);
    CHECK_OK(tsr_store_open(&desc, TSR_IO_HDF5, NULL, &used, &store));
    CHECK(!store->desc.element.swapped, "the library delivers this machine's order");
    tsr_store_close(store);
}

/* Chunks at the edges without filters, which their masks do not say. */
static void test_unfiltered_edges(void) {
    const char *file = in_scratch("edges.h5");
    make_file(file, H5T_STD_I32LE, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    tsr_store_desc desc = described(file);
    tsr_store *store;
    tsr_io_mode used;
    CHECK(!desc.hdf5.raw_chunks, "edges would be decoded");
    CHECK_OK(tsr_store_open(&desc, TSR_IO_AUTO, NULL, &used, &store));
    CHECK(used == TSR_IO_HDF5, "%s", tsr_io_mode_name(used));
    read_by_threads(store, TSR_OK);
    tsr_store_close(store);
}

/* The bytes of every chunk flipped: every thread gets the error, and none waits for ever. */
static void test_damage(void) {
    const char *file = in_scratch("damaged.h5");
    make_file(file, H5T_STD_I32LE, 0);
    tsr_store_desc desc = described(file);
    hsize_t chunks = 0;
    haddr_t place;
    FILE *damaged = fopen(file, "r+b");
    tsr_h5_enter();
    hid_t id = -1;
    CHECK_OK(tsr_h5_open_read(file, &id));
    hid_t dataset = H5Dopen2(id, "A", H5P_DEFAULT), space = H5Dget_space(dataset);
    CHECK(H5Dget_num_chunks(dataset, space, &chunks) >= 0 && chunks > 100, "%d chunks", (int)chunks);
    for (hsize_t i = 0; i < chunks; i++) {
        CHECK(H5Dget_chunk_info(dataset, space, i, NULL, NULL, &place, NULL) >= 0, "no chunk %d", (int)i);
        fseek(damaged, (long)place + 5, SEEK_SET);
        int byte = fgetc(damaged);
        fseek(damaged, -1, SEEK_CUR);
        fputc(byte ^ 64, damaged);
    }
    H5Sclose(space);
    H5Dclose(dataset);
    H5Fclose(id);
    tsr_h5_leave();
    fclose(damaged);
    desc = described(file);
    tsr_store *store;
    int32_t element;
    desc.cache_bytes = tsr_chunks_bytes(&desc, 2, 2);
    CHECK_OK(tsr_store_open(&desc, TSR_IO_DIRECT, NULL, NULL, &store));
    read_by_threads(store, TSR_ERR_FORMAT);
    CHECK_FAILS(store->ops->read(store, (tsr_rect){20, 30, 1, 1}, &element, 1), TSR_ERR_FORMAT,
                "the 16x10 chunk at (16, 30): its checksum");
    CHECK_FAILS(store->ops->write(store, (tsr_rect){20, 30, 1, 1}, &element, 1), TSR_ERR_USAGE, "for reading only");
    CHECK_FAILS(store->ops->read(store, (tsr_rect){ROWS, 0, 1, 1}, &element, 1), TSR_ERR_SHAPE, "is not inside");
    tsr_store_close(store);
}

/* The same file behind a user block of 512 bytes. */
static const char *shifted(const char *file) {
    const char *to = in_scratch("shifted.h5");
    size_t bytes;
    char *data = slurp(file, &bytes), block[512] = "";
    FILE *out = fopen(to, "wb");
    CHECK(fwrite(block, 1, sizeof block, out) == sizeof block && fwrite(data, 1, bytes, out) == bytes, "'%s'", to);
    fclose(out);
    free(data);
    return to;
}

/* HDF5's own word on where a chunk is. */
static void check_place(const tsr_store_desc *desc, int64_t i, int64_t j, const tsr_chunk_place *place, int64_t block) {
    const hsize_t at[2] = {(hsize_t)(i * CHUNK_ROWS), (hsize_t)(j * CHUNK_COLS)};
    hsize_t bytes = 0;
    haddr_t address = 0;
    unsigned mask = 1;
    hid_t id = -1;
    tsr_h5_enter();
    CHECK_OK(tsr_h5_open_read(desc->name.file, &id));
    const hid_t dataset = H5Dopen2(id, "A", H5P_DEFAULT);
    CHECK(H5Dget_chunk_info_by_coord(dataset, at, &mask, &address, &bytes) >= 0, "no chunk");
    H5Dclose(dataset);
    H5Fclose(id);
    tsr_h5_leave();
    CHECK(place->address == (int64_t)address + block && place->bytes == bytes && place->skipped == mask,
          "chunk (%lld, %lld): %u bytes at %lld", (long long)i, (long long)j, place->bytes, (long long)place->address);
}

/* Reading with an index, of a part, too; without HDF5, so that its lock may be taken meanwhile. */
static void read_with_index(const char *file, int64_t block) {
    tsr_store_desc desc = described(file);
    tsr_store *store;
    tsr_chunk_index *index;
    tsr_chunk_range all = tsr_chunks_of_part(&desc);
    CHECK(all.row0 == 0 && all.col0 == 0 && all.rows == 13 && all.cols == 16, "%lld x %lld", (long long)all.rows,
          (long long)all.cols);
    CHECK_OK(tsr_chunk_index_make(all, &index));
    CHECK_OK(tsr_hdf5_find_chunks(&desc, all, index->places));
    for (int64_t c = 0; c < 13 * 16; c += 41) check_place(&desc, c / 16, c % 16, &index->places[c], block);
    desc.index = index;
    CHECK_OK(tsr_store_open(&desc, TSR_IO_AUTO, NULL, NULL, &store));
    tsr_h5_enter();
    read_by_threads(store, TSR_OK);
    tsr_h5_leave();
    tsr_store_close(store);
    tsr_chunk_index_leave(index);
    desc.index = NULL;
    desc.row0 = 17;
    desc.rows = 30;
    desc.col0 = 19;
    desc.cols = 2;
    const tsr_chunk_range part = tsr_chunks_of_part(&desc);
    CHECK(part.row0 == 1 && part.rows == 2 && part.col0 == 1 && part.cols == 2, "%lld x %lld", (long long)part.rows,
          (long long)part.cols);
    CHECK_OK(tsr_chunk_index_make(part, &index));
    CHECK_OK(tsr_hdf5_find_chunks(&desc, part, index->places));
    check_place(&desc, 2, 2, &index->places[3], block);
    tsr_chunk_index_leave(index);
    desc.rows = 0;
    CHECK(tsr_chunk_index_count(tsr_chunks_of_part(&desc)) == 0, "chunks of nothing");
}

/* Places that are wrong are refused when they come, and those that are wrong after all are errors when they are
 * read. */
static void test_wrong_places(void) {
    const char *file = in_scratch("places.h5");
    make_file(file, H5T_STD_I32LE, 0);
    tsr_store_desc desc = described(file);
    tsr_store *store;
    int32_t element;
    const size_t chunk = sizeof element * CHUNK_ROWS * CHUNK_COLS;
    const int64_t bytes = desc.file_state.bytes;
    const tsr_chunk_place wrong[] = {{-1, 10, 0},
                                     {bytes, 1, 0},
                                     {bytes - 9, 10, 0},
                                     {INT64_MAX, 10, 0},
                                     {1, 0, 0},
                                     {0, 0, 1},
                                     {0, (uint32_t)tsr_chunk_stored_max(chunk) + 1, 0},
                                     {0, UINT32_MAX, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(tsr_chunk_place_wrong(&wrong[i], chunk, bytes), "%u bytes at %lld", wrong[i].bytes,
              (long long)wrong[i].address);
    const tsr_chunk_place right[] = {{0, 0, 0}, {bytes - 10, 10, 7}, {0, (uint32_t)tsr_chunk_stored_max(chunk), 0}};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        CHECK(!tsr_chunk_place_wrong(&right[i], chunk, bytes), "%s", tsr_chunk_place_wrong(&right[i], chunk, bytes));
    tsr_chunk_range all = tsr_chunks_of_part(&desc);
    CHECK_OK(tsr_chunk_index_make(all, &desc.index));
    CHECK_OK(tsr_hdf5_find_chunks(&desc, all, desc.index->places));
    desc.index->places[0] = wrong[2];
    desc.index->places[1] = right[0];
    desc.index->places[2] = wrong[7];
    CHECK_OK(tsr_store_open(&desc, TSR_IO_AUTO, NULL, NULL, &store));
    CHECK_FAILS(store->ops->read(store, (tsr_rect){0, 0, 1, 1}, &element, 1), TSR_ERR_FORMAT, "ends within it");
    CHECK_OK(store->ops->read(store, (tsr_rect){0, CHUNK_COLS, 1, 1}, &element, 1));
    CHECK(element == 0, "%d where nothing was written", element);
    CHECK_FAILS(store->ops->read(store, (tsr_rect){0, 2 * CHUNK_COLS, 1, 1}, &element, 1), TSR_ERR_FORMAT,
                "takes 4294967295 bytes");
    tsr_store_close(store);
    tsr_chunk_index_leave(desc.index);
}

static void test_index(void) {
    const char *file = in_scratch("index.h5"), *latest = in_scratch("latest.h5");
    make_file(file, H5T_STD_I32BE, 0);
    read_with_index(file, 0);
    read_with_index(shifted(file), 512);
    make_file(latest, H5T_STD_I32LE, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    tsr_store_desc desc = described(latest); /* another kind of index, of HDF5 1.10 */
    tsr_chunk_place places[13 * 16];
    CHECK_OK(tsr_hdf5_find_chunks(&desc, tsr_chunks_of_part(&desc), places));
    for (int64_t c = 0; c < 13 * 16; c += 41) check_place(&desc, c / 16, c % 16, &places[c], 0);
}

int main(void) {
    scratch_make();
    test_index();
    test_wrong_places();
    test_limits();
    test_unfiltered_edges();
    test_damage();
    scratch_remove();
    return 0;
}
