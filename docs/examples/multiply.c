/* C = A B from files to a file, on all ranks of the job: mpicc multiply.c $(pkg-config --cflags --libs tessera) */
#include <stdio.h>
#include <tessera.h>

int main(int argc, char **argv) {
    int granted, rank, status = TESSERA_ERR_USAGE;
    tessera_context *tessera;
    tessera_record *record;
    double gflops;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc == 4 && (status = tessera_open(MPI_COMM_WORLD, NULL, &tessera)) == TESSERA_OK) {
        status = tessera_multiply(tessera, argv[1], argv[2], argv[3], NULL, &record);
        if (status == TESSERA_OK && tessera_record_number(record, "gflops", &gflops) == TESSERA_OK && rank == 0)
            printf("%s at %.3g GFLOP/s\n", argv[3], gflops);
        tessera_record_free(record);
        tessera_close(tessera);
    }
    if (argc != 4 && rank == 0) fprintf(stderr, "usage: mpirun -n RANKS multiply A.h5 B.h5 C.h5\n");
    else if (status != TESSERA_OK && rank == 0)
        fprintf(stderr, "%s: %s\n", tessera_status_text(status), tessera_message());
    MPI_Finalize();
    return status;
}
