/* Calls of tessera_multiply_matrices on matrices that the ranks share (tessera_allocate), timed as its caller sees
 * them; used by gpu_library.py. Prints "call SECONDS record SECONDS" for each, on rank 0.
 * Usage: library_calls N CALLS DEVICE KERNEL CHECK */
#include <stdio.h>
#include <stdlib.h>
#include <tessera.h>

static tessera_context *tessera;

static void need(int status) {
    if (status == TESSERA_OK) return;
    fprintf(stderr, "library_calls: %s\n", tessera_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
    int granted, rank, ranks;
    void *memory;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    if (argc != 6) {
        fprintf(stderr, "usage: library_calls N CALLS DEVICE KERNEL CHECK\n");
        return 2;
    }
    const int64_t n = atoll(argv[1]);
    const int calls = atoi(argv[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(tessera_open(MPI_COMM_WORLD, NULL, &tessera));
    need(tessera_allocate(tessera, (size_t)(3 * n * n) * sizeof(float), &memory));
    float *all = memory;
    for (int64_t i = rank; i < 3 * n; i += ranks) /* rows */
        for (int64_t j = 0; j < n; j++) all[i * n + j] = (float)((i + j) % 5) - 2;
    tessera_matrix x[3];
    for (int i = 0; i < 3; i++)
        x[i] = (tessera_matrix){
            .size = sizeof x[i], .type = "f32", .data = all + i * n * n, .rows = n, .cols = n, .shared = 1};
    tessera_multiply_options o = tessera_multiply_defaults();
    o.device = argv[3];
    o.kernel = argv[4];
    o.check = argv[5];
    for (int i = 0; i < calls; i++) {
        tessera_record *record;
        double seconds = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        need(tessera_multiply_matrices(tessera, &x[0], &x[1], &x[2], &o, &record));
        const double end = MPI_Wtime();
        need(tessera_record_number(record, "seconds", &seconds));
        tessera_record_free(record);
        if (rank == 0) printf("call %.6f record %.6f\n", end - start, seconds);
    }
    tessera_close(tessera);
    MPI_Finalize();
    return 0;
}
