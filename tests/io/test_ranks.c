/* Ranks write one output together and read it back, in every mode this HDF5 build has. Run under mpirun. */
#define _GNU_SOURCE
#include <mpi.h>

#include "io/output.h"
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
        for (int64_t j = 0; j < COLS; j++) CHECK(all[i * COLS + j] == expected(i, j), "(%d, %d) is %g", (int)i, (int)j, all[i * COLS + j]);
}

static void one_mode(tsr_io_mode mode, int rank, int ranks) {
    MPI_Comm comm = MPI_COMM_WORLD;
    tsr_output output;
    tsr_output_spec spec = {.rows = ROWS, .cols = COLS, .dtype = TSR_F64, .force = true};
    tsr_store *store;
    tsr_store_desc desc;
    if (rank == 0) {
        CHECK_OK(tsr_matrix_name_parse(in_scratch("c.h5"), &spec.name));
        CHECK_OK(tsr_output_create(&spec, &output));
    }
    MPI_Bcast(&output, (int)sizeof output, MPI_BYTE, 0, comm);
    CHECK_OK(tsr_output_open(&output, mode, &comm, &store));
    CHECK(strcmp(store->ops->name, tsr_io_mode_name(mode)) == 0, "%s", store->ops->name);
    write_rows(store, rank, ranks);
    tsr_store_close(store);
    MPI_Barrier(comm);
    if (rank == 0) {
        CHECK_OK(tsr_output_publish(&output, NULL, "test"));
        CHECK_OK(tsr_hdf5_describe(&spec.name, &desc));
    }
    MPI_Bcast(&desc, (int)sizeof desc, MPI_BYTE, 0, comm);
    CHECK_OK(tsr_hdf5_open(&desc, mode, &comm, NULL, &store));
    check_all(store);
    tsr_store_close(store);
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
    if (tsr_hdf5_is_parallel()) {
        one_mode(TSR_IO_MPIO, rank, ranks);
    } else {
        MPI_Comm comm = MPI_COMM_WORLD;
        tsr_store *store;
        tsr_store_desc desc = {.kind = TSR_STORE_HDF5, .rows = 1, .cols = 1};
        CHECK_FAILS(tsr_hdf5_open(&desc, TSR_IO_MPIO, &comm, NULL, &store), TSR_ERR_UNSUPPORTED, "libhdf5-openmpi-dev");
    }
    if (rank == 0) scratch_remove();
    MPI_Finalize();
    return 0;
}
