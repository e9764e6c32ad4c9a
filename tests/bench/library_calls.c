/* Calls of tessera_multiply_matrices, timed as their caller sees them; used by gpu_library.py. Prints "call SECONDS
 * record SECONDS exchange SECONDS" for each, on rank 0, and "setup NAME SECONDS" for what the last one did before it
 * read.
 * Usage: library_calls N CALLS DEVICE KERNEL CHECK BLOCK
 * BLOCK 0: matrices that the ranks share (tessera_allocate). Else each rank has its part of them in memory of malloc,
 * dealt out in square blocks of that side. */
#include <stdio.h>
#include <stdlib.h>
#include <tessera.h>

static tessera_context *tessera;

static void need(int status) {
    if (status == TESSERA_OK) return;
    fprintf(stderr, "library_calls: %s\n", tessera_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(float *rows, int64_t first, int64_t step, int64_t count, int64_t cols) {
    for (int64_t i = first; i < count; i += step)
        for (int64_t j = 0; j < cols; j++) rows[i * cols + j] = (float)((i + j) % 5) - 2;
}

static void share(tessera_matrix *x, int64_t n, int rank, int ranks) {
    void *memory;
    need(tessera_allocate(tessera, (size_t)(3 * n * n) * sizeof(float), &memory));
    float *all = memory;
    fill(all, rank, ranks, 3 * n, n);
    for (int i = 0; i < 3; i++)
        x[i] = (tessera_matrix){
            .size = sizeof x[i], .type = "f32", .data = all + i * n * n, .rows = n, .cols = n, .shared = 1};
}

/* Of n rows (columns) dealt out in blocks those of one place in the grid. */
static int64_t dealt(int64_t n, int64_t block, int at, int count) {
    int64_t own = 0;
    for (int64_t first = at * block; first < n; first += count * block) own += n - first < block ? n - first : block;
    return own;
}

static void deal(tessera_matrix *x, int64_t n, int64_t block, int rank, int ranks) {
    int down = 1; /* of the grid: as square as it gets */
    for (int i = 1; i * i <= ranks; i++)
        if (ranks % i == 0) down = i;
    const int across = ranks / down;
    const int64_t rows = dealt(n, block, rank / across, down), cols = dealt(n, block, rank % across, across);
    for (int i = 0; i < 3; i++) {
        float *own = malloc((size_t)(rows * cols + 1) * sizeof *own);
        if (!own) MPI_Abort(MPI_COMM_WORLD, 1);
        fill(own, 0, 1, rows, cols);
        x[i] = (tessera_matrix){.size = sizeof x[i],
                                .type = "f32",
                                .data = own,
                                .rows = n,
                                .cols = n,
                                .block_rows = block,
                                .block_cols = block,
                                .grid_rows = down,
                                .grid_cols = across};
    }
}

/* What the record says of the time before the first byte. */
static void print_setup(const tessera_record *record) {
    static const char *const parts[] = {"mpi", "device", "transport", "plan", "allocation", "files"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char name[64];
        double seconds;
        snprintf(name, sizeof name, "setup_%s_seconds", parts[i]);
        need(tessera_record_number(record, name, &seconds));
        printf("setup %s %.6f\n", parts[i], seconds);
    }
}

int main(int argc, char **argv) {
    int granted, rank, ranks;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    if (argc != 7) {
        fprintf(stderr, "usage: library_calls N CALLS DEVICE KERNEL CHECK BLOCK\n");
        return 2;
    }
    const int64_t n = atoll(argv[1]), block = atoll(argv[6]);
    const int calls = atoi(argv[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(tessera_open(MPI_COMM_WORLD, NULL, &tessera));
    tessera_matrix x[3];
    if (block > 0) deal(x, n, block, rank, ranks);
    else share(x, n, rank, ranks);
    tessera_multiply_options o = tessera_multiply_defaults();
    o.device = argv[3];
    o.kernel = argv[4];
    o.check = argv[5];
    for (int i = 0; i < calls; i++) {
        tessera_record *record;
        double seconds = 0, exchange = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        need(tessera_multiply_matrices(tessera, &x[0], &x[1], &x[2], &o, &record));
        const double end = MPI_Wtime();
        need(tessera_record_number(record, "seconds", &seconds));
        tessera_record_number(record, "redistribute_seconds", &exchange); /* not there where nothing was moved */
        if (rank == 0 && i == calls - 1) print_setup(record);
        tessera_record_free(record);
        if (rank == 0) printf("call %.6f record %.6f exchange %.6f\n", end - start, seconds, exchange);
    }
    for (int i = 0; block > 0 && i < 3; i++) free(x[i].data);
    tessera_close(tessera);
    MPI_Finalize();
    return 0;
}
