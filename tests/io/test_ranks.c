/* Ranks write one output together and read it back, in every mode this HDF5 build has. Run under mpirun. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>

#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/store_hdf5.h"
#include "io/output/output.h"
#include "tests/io/scratch.h"

enum { ROWS = 37, COLS = 21 };

static double expected(int64_t i, int64_t j) { return (double)(i * 1000 + j); }

/* This rank's rows: every ranks-th one. */
static void write_rows(tsr_store *store, int rank, int ranks) {
    double row[COLS];
    for (int64_t i = rank; i < ROWS; i += ranks) {
        for (int64_t j = 0; j < COLS; j++) row[j] = expected(i, j);
        CHECK_OK(store->ops->write(store, (tsr_rect){i, 0, 1, COLS}, row, COLS));
    }
    CHECK_OK(store->ops->sync(store));
}

static void check_all(tsr_store *store) {
    static double all[ROWS * COLS];
    CHECK_OK(store->ops->read(store, (tsr_rect){0, 0, ROWS, COLS}, all, COLS));
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLS; j++)
            CHECK(all[i * COLS + j] == expected(i, j), "(%d, %d) is %g", (int)i, (int)j, all[i * COLS + j]);
}

/* Rank 0 makes it, all know it. */
static tsr_output create_for_all(const char *file, int64_t rows, int64_t cols, int rank) {
    tsr_output output;
    tsr_output_spec spec = {.rows = rows, .cols = cols, .dtype = TSR_F64, .force = true};
    if (rank == 0) {
        CHECK_OK(tsr_matrix_name_parse(in_scratch(file), &spec.name));
        CHECK_OK(tsr_output_create(&spec, &output));
    }
    MPI_Bcast(&output, (int)sizeof output, MPI_BYTE, 0, MPI_COMM_WORLD);
    return output;
}

/* What rank 0 has published. */
static tsr_store_desc published(const char *file) {
    tsr_matrix_name name;
    tsr_store_desc desc;
    CHECK_OK(tsr_matrix_name_parse(in_scratch(file), &name));
    CHECK_OK(tsr_hdf5_describe(&name, &desc));
    return desc;
}

static void one_mode(tsr_io_mode mode, int rank, int ranks) {
    MPI_Comm comm = MPI_COMM_WORLD;
    tsr_output output = create_for_all("c.h5", ROWS, COLS, rank);
    tsr_store *store;
    tsr_store_desc desc;
    CHECK_OK(tsr_output_open(&output, mode, &comm, &store));
    CHECK(strcmp(store->ops->name, tsr_io_mode_name(mode)) == 0, "%s", store->ops->name);
    write_rows(store, rank, ranks);
    tsr_store_close(store);
    MPI_Barrier(comm);
    if (rank == 0) {
        CHECK_OK(tsr_output_publish(&output, NULL, "test"));
        desc = published("c.h5");
    }
    MPI_Bcast(&desc, (int)sizeof desc, MPI_BYTE, 0, comm);
    CHECK_OK(tsr_store_open(&desc, mode, &comm, NULL, &store));
    check_all(store);
    tsr_store_close(store);
    MPI_Barrier(comm);
}

/* ---- long rows ------------------------------------------------------------------------------- */

/* Rows of 1 MiB and 24 bytes: those written around the page cache begin and end within blocks that others write
 * through it, at the same time. */
enum { EDGE = 1 << 17, LONG_ROWS = 24, LONG_COLS = EDGE + 3, THREADS = 2 };

static double long_expected(int64_t i, int64_t j) { return (double)(i * 1000003 + j); }

/* Piece 2·i or 2·i + 1 of row i: whole rows are one piece, others are cut where the left part is just long enough
 * for the way around the cache, just too short, or half; the rows of a column half are one rectangle. */
static tsr_rect piece_of(int64_t piece) {
    int64_t i = piece / 2;
    int64_t half = EDGE / 2 + 1;
    int64_t cut = i < 8 ? LONG_COLS : i < 16 ? EDGE - i % 2 : half;
    tsr_rect left = {i, 0, 1, cut}, right = {i, cut, 1, LONG_COLS - cut};
    if (i == 16) left.rows = right.rows = LONG_ROWS - 16;
    if (i > 16) left.rows = right.rows = 0;
    return piece % 2 == 0 ? left : right;
}

typedef struct {
    tsr_store *store;
    int worker, workers;
} long_writer;

static void *write_pieces(void *context) {
    const long_writer *w = context;
    for (int64_t piece = w->worker; piece < 2 * LONG_ROWS; piece += w->workers) {
        tsr_rect rect = piece_of(piece);
        double *data = malloc((size_t)(rect.rows * rect.cols + 1) * sizeof *data);
        CHECK(data != NULL, "no memory");
        for (int64_t i = 0; i < rect.rows; i++)
            for (int64_t j = 0; j < rect.cols; j++) data[i * rect.cols + j] = long_expected(rect.row + i, rect.col + j);
        CHECK_OK(w->store->ops->write(w->store, rect, data, rect.cols));
        free(data);
    }
    return NULL;
}

static void check_long(const tsr_store_desc *desc, tsr_io_mode mode) {
    tsr_store *store;
    double *row = malloc(LONG_COLS * sizeof *row);
    CHECK(row != NULL, "no memory");
    CHECK_OK(tsr_store_open(desc, mode, NULL, NULL, &store));
    for (int64_t i = 0; i < LONG_ROWS; i++) {
        CHECK_OK(store->ops->read(store, (tsr_rect){i, 0, 1, LONG_COLS}, row, LONG_COLS));
        for (int64_t j = 0; j < LONG_COLS; j++)
            CHECK(row[j] == long_expected(i, j), "(%d, %d) is %g", (int)i, (int)j, row[j]);
    }
    tsr_store_close(store);
    free(row);
}

static void long_rows(int rank, int ranks) {
    MPI_Comm comm = MPI_COMM_WORLD;
    tsr_output output = create_for_all("long.h5", LONG_ROWS, LONG_COLS, rank);
    tsr_store *store;
    CHECK_OK(tsr_output_open(&output, TSR_IO_DIRECT, NULL, &store));
    pthread_t threads[THREADS];
    long_writer writers[THREADS];
    for (int t = 0; t < THREADS; t++) {
        writers[t] = (long_writer){store, rank * THREADS + t, ranks * THREADS};
        CHECK(pthread_create(&threads[t], NULL, write_pieces, &writers[t]) == 0, "no thread");
    }
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    CHECK_OK(store->ops->sync(store));
    tsr_store_close(store);
    MPI_Barrier(comm);
    if (rank == 0) {
        CHECK_OK(tsr_output_publish(&output, NULL, "test"));
        const tsr_store_desc desc = published("long.h5");
        check_long(&desc, TSR_IO_DIRECT);
        check_long(&desc, TSR_IO_HDF5);
    }
    MPI_Barrier(comm);
}

int main(int argc, char **argv) {
    int rank, ranks, granted;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) scratch_make();
    MPI_Bcast(scratch, (int)sizeof scratch, MPI_BYTE, 0, MPI_COMM_WORLD);
    one_mode(TSR_IO_DIRECT, rank, ranks);
    one_mode(TSR_IO_HDF5, rank, ranks);
    for (int round = 0; round < 3; round++) long_rows(rank, ranks);
    if (tsr_h5_is_parallel()) {
        one_mode(TSR_IO_MPIO, rank, ranks);
    } else {
        MPI_Comm comm = MPI_COMM_WORLD;
        tsr_store *store;
        tsr_store_desc desc = {.rows = 1, .cols = 1};
        CHECK_FAILS(tsr_store_open(&desc, TSR_IO_MPIO, &comm, NULL, &store), TSR_ERR_UNSUPPORTED,
                    "libhdf5-openmpi-dev");
    }
    if (rank == 0) scratch_remove();
    MPI_Finalize();
    return 0;
}
