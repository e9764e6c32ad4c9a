/* A program that uses libtessera and ends as any does, through exit(): A times B into C, with chunks where a fourth
 * argument says so. Prints the message of a failure; its status is the program's. A rank whose MPI failed at the start
 * ends the job. */
#include <stdio.h>
#include <tessera.h>

int main(int argc, char **argv) {
    int granted;
    tessera_context *tessera;
    tessera_multiply_options options = tessera_multiply_defaults();
    if (argc < 4) return TESSERA_ERR_USAGE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    int status = tessera_open(MPI_COMM_WORLD, NULL, &tessera);
    if (status == TESSERA_ERR_MPI) {
        fprintf(stderr, "%s\n", tessera_message());
        return status; /* a launcher ends a job of which a rank ended so */
    }
    options.device = "cpu";
    options.force = 1;
    options.chunk = argv[4];
    options.compress = argv[4] ? "gzip:1" : NULL;
    if (status == TESSERA_OK) status = tessera_multiply(tessera, argv[1], argv[2], argv[3], &options, NULL);
    if (status != TESSERA_OK) printf("%s\n", tessera_message());
    tessera_close(tessera);
    return MPI_Finalize() == MPI_SUCCESS ? status : TESSERA_ERR_MPI;
}
