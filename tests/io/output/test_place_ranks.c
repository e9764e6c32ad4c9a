/* Chunks that ranks encoded come to their places, whoever has which; and whatever fails on one rank, all ranks say
 * so and none waits. Run under mpirun. */
#define _GNU_SOURCE /* nftw */
#include "app/library/place_chunks.h"

#include <sys/stat.h>

#include "tests/io/chunks/chunked.h"

enum { ROWS = 131, COLS = 97, CHUNK_ROWS = 10, CHUNK_COLS = 8, FLIPS = 100 };
typedef enum { NOTHING, MISSING, DOUBLE, CUT_SHORT, LAST_BYTE, FLIPPED, GONE, FAILURES } failure;

static tsr_world world;

static int owner_of(int64_t chunk, unsigned seed) {
    uint64_t mixed = ((uint64_t)chunk + 1) * (0x9e3779b97f4a7c15u + seed);
    return (int)((mixed >> 33) % (unsigned)world.ranks);
}

/* This rank's chunks, each by itself, from the last to the first. Chunk 7 is nobody's or everybody's when it should
 * fail. */
static void write_mine(tsr_store *store, unsigned seed, failure fails) {
    double *data = chunked_matrix(ROWS, COLS);
    int64_t across = tsr_ceil_div(COLS, CHUNK_COLS);
    for (int64_t chunk = tsr_ceil_div(ROWS, CHUNK_ROWS) * across - 1; chunk >= 0; chunk--) {
        /* 0: all on the last rank */
        bool mine = seed == 0 ? world.rank == world.ranks - 1 : owner_of(chunk, seed) == world.rank;
        if (chunk == 7 && fails == MISSING) mine = false;
        if (chunk == 7 && fails == DOUBLE) mine = true;
        if (!mine) continue;
        tsr_rect rect = {chunk / across * CHUNK_ROWS, chunk % across * CHUNK_COLS, CHUNK_ROWS, CHUNK_COLS};
        rect.rows = tsr_min(rect.rows, ROWS - rect.row);
        rect.cols = tsr_min(rect.cols, COLS - rect.col);
        CHECK_OK(store->ops->write(store, rect, data + rect.row * COLS + rect.col, COLS));
    }
    free(data);
}

/* Half of the encoded chunks of this process are lost, or the last byte, which shows when its chunk is taken. */
static void cut_short(failure how) {
    struct stat st;
    const int fd = spill_file();
    CHECK(fstat(fd, &st) == 0 && st.st_size > 0, "no chunks");
    CHECK(ftruncate(fd, how == CUT_SHORT ? st.st_size / 2 : st.st_size - 1) == 0, "ftruncate");
}

/* One bit of this process's encoded chunks, which differs from call to call. */
static void flip_one(void) {
    static uint64_t random = 1;
    struct stat st;
    const int fd = spill_file();
    CHECK(fstat(fd, &st) == 0 && st.st_size > 0, "no chunks");
    random = random * 6364136223846793005u + 1442695040888963407u;
    const uint64_t bits = random >> 63 ? 8 * sizeof(tsr_encoded_chunk) : 8 * (uint64_t)st.st_size; /* half in a head */
    flip(fd, (int64_t)((random >> 16) % bits));
}

/* What the ranks see is the same on all, its text on rank 0 alone. */
static void check_failure(tsr_status status, failure fails) {
    static const char *const texts[] = {
        "", "181 of 182", "were written", "encoded chunks", "encoded chunks", "as something else", "cannot open"};
    CHECK(status == TSR_ERR_IO, "failure %d: %s", (int)fails, tsr_status_text(status));
    if (world.rank == 0)
        CHECK(strstr(tsr_message(), texts[fails]) != NULL, "failure %d: %s", (int)fails, tsr_message());
}

static void one_output(test_filters filters, unsigned seed, failure fails) {
    tsr_output output;
    tsr_store *store;
    tsr_output_spec spec = chunked_spec("c.h5", "/C", ROWS, COLS, CHUNK_ROWS, CHUNK_COLS, filters);
    if (world.rank == 0) CHECK_OK(tsr_output_create(&spec, &output));
    MPI_Bcast(&output, (int)sizeof output, MPI_BYTE, 0, world.comm);
    CHECK_OK(tsr_output_open(&output, TSR_IO_AUTO, NULL, &store));
    write_mine(store, seed, fails);
    if ((fails == CUT_SHORT || fails == LAST_BYTE) && world.rank == world.ranks - 1) cut_short(fails);
    if (fails == FLIPPED && world.rank == world.ranks - 1) flip_one();
    if (fails == GONE && world.rank == 0) unlink(output.desc.name.file);
    tsr_status status = tsr_place_chunks(&world, &output, store, NULL, NULL);
    if (fails == LAST_BYTE && world.rank == 0)
        CHECK(access(output.desc.name.file, F_OK) != 0, "an output that cannot be whole is still there");
    tsr_store_close(store);
    if (fails != NOTHING) {
        check_failure(status, fails);
        if (world.rank == 0) {
            tsr_output_discard(&output);
            close(output.lock_fd);
        }
    } else {
        CHECK_OK(status);
        if (world.rank == 0) {
            CHECK_OK(tsr_output_publish(&output, NULL, "test"));
            check_chunked(&spec.name, TSR_IO_HDF5, ROWS, COLS);
        }
    }
    if (world.rank == 0) CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
    MPI_Barrier(world.comm);
}

int main(void) {
    CHECK_OK(tsr_world_open(&world));
    if (world.rank == 0) scratch_make();
    MPI_Bcast(scratch, (int)sizeof scratch, MPI_BYTE, 0, world.comm);
    for (test_filters filters = PLAIN; filters <= SHUFFLED_GZIP; filters++)
        for (unsigned seed = 0; seed < 3; seed++) one_output(filters, seed, NOTHING);
    for (failure fails = MISSING; fails < FAILURES; fails++)
        if (fails != DOUBLE || world.ranks > 1) one_output(GZIP, 1, fails);
    for (int i = 0; i < FLIPS; i++) one_output(SHUFFLED_GZIP, 1, FLIPPED);
    if (world.rank == 0) scratch_remove();
    tsr_world_close(&world);
    return 0;
}
