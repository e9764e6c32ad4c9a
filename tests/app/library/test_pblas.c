/* Random calls of tessera_pdgemm and its siblings beside ScaLAPACK's, on 4 ranks in grids of 2x2, 1x4 and 4x1, numbered
 * by rows and by columns; elements of C outside the part are to stay. A call with an offset that is wrong must be seen.
 * Usage: test_pblas [CALLS [SEED]] */
#include "app/library/tessera.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/check.h"

void Cblacs_get(int, int, int *);
void Cblacs_gridinit(int *, const char *, int, int);
void Cblacs_gridinfo(int, int *, int *, int *, int *);
void Cblacs_gridexit(int);
int numroc_(const int *, const int *, const int *, const int *, const int *);
typedef void gemm(TESSERA_PBLAS_ARGUMENTS);
gemm psgemm_, pdgemm_, pcgemm_, pzgemm_;

static uint64_t state;
static int below(int limit) { /* the same on every rank */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)limit);
}

typedef struct {
    int desc[9], row, col;
    size_t elements; /* of this rank's array */
    char *data;
} matrix;

static const struct {
    gemm *ours, *theirs;
    size_t element;
    int reals;
    double roundoff;
} kinds[] = {{tessera_psgemm, psgemm_, 4, 1, 0x1p-24},
             {tessera_pdgemm_, pdgemm_, 8, 1, 0x1p-53},
             {tessera_pcgemm, pcgemm_, 8, 2, 0x1p-24},
             {tessera_pzgemm_, pzgemm_, 16, 2, 0x1p-53}};

static void set(int kind, void *at, size_t i, double value) {
    if (kind % 2 == 0) ((float *)at)[i] = (float)value;
    else ((double *)at)[i] = value;
}
static double get(int kind, const void *at, size_t i) {
    return kind % 2 == 0 ? (double)((const float *)at)[i] : ((const double *)at)[i];
}

static matrix make(int kind, int context, int rows, int cols, uint64_t *noise) {
    static const int blocks[] = {1, 2, 3, 8, 17, 64};
    matrix x = {.row = 1 + below(9), .col = 1 + below(9)};
    int p, q, i, j;
    Cblacs_gridinfo(context, &p, &q, &i, &j);
    const int m = x.row - 1 + rows + below(9), n = x.col - 1 + cols + below(9);
    const int mb = blocks[below(6)], nb = blocks[below(6)];
    const int from[2] = {below(p), below(q)};
    const int mine = numroc_(&m, &mb, &i, &from[0], &p), wide = numroc_(&n, &nb, &j, &from[1], &q);
    const int desc[9] = {1, context, m, n, mb, nb, from[0], from[1], (mine > 1 ? mine : 1) + below(3)};
    memcpy(x.desc, desc, sizeof desc);
    x.elements = (size_t)desc[8] * (size_t)(wide > 1 ? wide : 1);
    x.data = malloc(x.elements * kinds[kind].element);
    for (size_t e = 0; e < x.elements * (size_t)kinds[kind].reals; e++) {
        *noise = *noise * 6364136223846793005u + 1442695040888963407u;
        set(kind, x.data, e, (double)(int64_t)(*noise >> 11) / 0x1p52 - 1);
    }
    return x;
}

/* The largest difference over what is allowed. */
static double difference(int kind, const char *a, const char *b, size_t elements, double allowed) {
    double worst = 0;
    for (size_t e = 0; e < elements * (size_t)kinds[kind].reals; e++)
        worst = fmax(worst, fabs(get(kind, a, e) - get(kind, b, e)) / allowed);
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return worst;
}

static void try_call(uint64_t seed, int rank, int *seen, int *tried) {
    static const int grids[3][2] = {{2, 2}, {1, 4}, {4, 1}};
    static const char *const numbering[] = {"Row", "Col"};
    uint64_t noise = seed * 977 + (uint64_t)rank;
    state = seed;
    const int shape = below(3), kind = below(4);
    int context;
    Cblacs_get(0, 0, &context);
    Cblacs_gridinit(&context, numbering[below(2)], grids[shape][0], grids[shape][1]);
    const int m = below(90), n = below(90);
    const int k = below(12) ? below(90) : 0;
    const char ta = "NTCntc"[below(6)], tb = "NTCntc"[below(6)];
    const double scalars[] = {0, 1, -1, 0.75};
    char alpha[16], beta[16];
    const double size = scalars[below(4)], other = scalars[below(4)];
    for (size_t i = 0; i < 2 && i < (size_t)kinds[kind].reals; i++) {
        set(kind, alpha, i, i ? size / 2 : size);
        set(kind, beta, i, i ? -other : other);
    }
    const bool na = strchr("Nn", ta), nb = strchr("Nn", tb);
    matrix a = make(kind, context, na ? m : k, na ? k : m, &noise);
    matrix b = make(kind, context, nb ? k : n, nb ? n : k, &noise);
    matrix c = make(kind, context, m, n, &noise);
    const size_t bytes = c.elements * kinds[kind].element;
    char *theirs = memcpy(malloc(bytes), c.data, bytes), *wrong = memcpy(malloc(bytes), c.data, bytes);
    kinds[kind].theirs(&ta, &tb, &m, &n, &k, alpha, a.data, &a.row, &a.col, a.desc, b.data, &b.row, &b.col, b.desc,
                       beta, theirs, &c.row, &c.col, c.desc);
    kinds[kind].ours(&ta, &tb, &m, &n, &k, alpha, a.data, &a.row, &a.col, a.desc, b.data, &b.row, &b.col, b.desc, beta,
                     c.data, &c.row, &c.col, c.desc);
    const double allowed = kinds[kind].roundoff * 8 * (k + 4) * (2 * k + 2);
    const double worst = difference(kind, c.data, theirs, c.elements, allowed);
    CHECK(worst <= 1, "seed %llu: %g times what is allowed (%dx%dx%d, %c%c, kind %d, grid %dx%d)",
          (unsigned long long)seed, worst, m, n, k, ta, tb, kind, grids[shape][0], grids[shape][1]);
    if (m > 0 && n > 0 && k > 0 && size != 0 && a.row > 1) { /* a row too early */
        const int early = a.row - 1;
        kinds[kind].ours(&ta, &tb, &m, &n, &k, alpha, a.data, &early, &a.col, a.desc, b.data, &b.row, &b.col, b.desc,
                         beta, wrong, &c.row, &c.col, c.desc);
        ++*tried;
        *seen += difference(kind, wrong, theirs, c.elements, allowed) > 1;
    }
    free(a.data);
    free(b.data);
    free(c.data);
    free(theirs);
    free(wrong);
    Cblacs_gridexit(context);
}

static int windows; /* that the library asked MPI for */
int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win) {
    windows++;
    return PMPI_Win_allocate_shared(size, unit, info, comm, base, win);
}

/* What watches over a call is made once for a grid. Each grid has its own, numbered as it is. */
static void test_watch(void) {
    static const char *const numbering[] = {"Row", "Col", "Row"};
    const int m = 20, one = 1;
    const double alpha = 1, beta = 0;
    for (int i = 0; i < 3; i++) {
        int context;
        Cblacs_get(0, 0, &context);
        Cblacs_gridinit(&context, numbering[i], 2, 2);
        uint64_t noise = 1;
        matrix x = make(1, context, m, m, &noise), y = make(1, context, m, m, &noise);
        int first = 0, second = 0;
        for (int call = 0; call < 4; call++) {
            const int before = windows;
            tessera_pdgemm("N", "N", &m, &m, &m, &alpha, x.data, &one, &one, x.desc, x.data, &one, &one, x.desc, &beta,
                           y.data, &one, &one, y.desc);
            if (call == 0) first = windows - before;
            else second += windows - before;
        }
        CHECK(first == second / 3 + 1, "grid %d: %d windows of the first call, %d of the three after it", i, first,
              second);
        free(x.data);
        free(y.data);
        Cblacs_gridexit(context);
    }
}

static int told;
static char text[1200];
static void hear(int info, const char *message) {
    told = info;
    snprintf(text, sizeof text, "%s", message);
}

static void test_errors(void) {
    int context;
    Cblacs_get(0, 0, &context);
    Cblacs_gridinit(&context, "Row", 2, 2);
    uint64_t noise = 1;
    state = 5;
    const int m = 20, one = 1;
    const double alpha = 1;
    matrix x = make(1, context, 20, 20, &noise);
    tessera_pblas_on_error(hear);
#define REFUSED(number, words, trans, size, first, described)                                                          \
    do {                                                                                                               \
        told = 0;                                                                                                      \
        tessera_pdgemm(trans, "N", size, &m, &m, &alpha, x.data, first, &one, described, x.data, &one, &one, x.desc,   \
                       &alpha, x.data, &one, &one, x.desc);                                                            \
        CHECK(told == (number) && strstr(text, words), "info %d: %s", told, text);                                     \
    } while (0)
    const int negative = -1, far = 1000;
    int bad[9];
    REFUSED(-1, "transa", "X", &m, &one, x.desc);
    REFUSED(-3, "m, has the illegal value -1", "N", &negative, &one, x.desc);
    REFUSED(-8, "first row", "N", &m, &far, x.desc);
    memcpy(bad, x.desc, sizeof bad);
    bad[4] = 0;
    REFUSED(-1005, "entry 5 of parameter 10", "N", &m, &one, bad);
    memcpy(bad, x.desc, sizeof bad);
    bad[6] = 2;
    REFUSED(-1007, "entry 7 of parameter 10", "N", &m, &one, bad);
    memcpy(bad, x.desc, sizeof bad);
    bad[8] = 0;
    REFUSED(-1009, "entry 9 of parameter 10", "N", &m, &one, bad);
    tessera_pblas_on_error(NULL);
    free(x.data);
    Cblacs_gridexit(context);
}

int main(int argc, char **argv) {
    int rank, ranks, level;
    int tried = 0, seen = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks == 4, "%d ranks instead of 4", ranks);
    const int calls = argc > 1 ? atoi(argv[1]) : 200;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (rank == 0) printf("%d calls, seeds from %llu\n", calls, (unsigned long long)seed);
    for (int i = 0; i < calls; i++) try_call(seed + (uint64_t)i, rank, &seen, &tried);
    CHECK(seen == tried && (tried > 0 || calls < 20), "of %d wrong offsets %d were seen", tried, seen);
    test_watch();
    test_errors();
    MPI_Finalize();
    return 0;
}
