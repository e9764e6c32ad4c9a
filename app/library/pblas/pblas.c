/* p?gemm (tessera.h): arguments of ScaLAPACK's as a run of operands in the ranks' memory. */
#define _GNU_SOURCE /* RTLD_DEFAULT */

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/run.h"
#include "app/library/tessera.h"
#include "mpi/ranks/grid.h"
#include "mpi/watch/watch.h"

enum { CONTEXT = 1, M, N, MB, NB, RSRC, CSRC, LLD }; /* of a descriptor */

typedef struct {
    int rows, cols, row, col; /* of the grid, and of this rank in it */
    MPI_Comm comm;            /* its ranks, row after row */
} grid;

/* An operand's arguments. `first`: the number of its first one. */
typedef struct {
    const char *name;
    int first;
    const void *data;
    int row, col; /* counted from 1 */
    const int *desc;
    int64_t rows, cols; /* that are meant */
} argument;

static void (*on_error)(int info, const char *message);

void tessera_pblas_on_error(void (*handler)(int info, const char *message)) { on_error = handler; }

/* ---- the grid -------------------------------------------------------------------------------- */

static tsr_status find_grid(int context, grid *g) {
    void (*info)(int, int *, int *, int *, int *);
    void (*get)(int, int, int *);
    MPI_Comm (*handle_of)(int);
    *(void **)&info = dlsym(RTLD_DEFAULT, "Cblacs_gridinfo");
    *(void **)&get = dlsym(RTLD_DEFAULT, "Cblacs_get");
    *(void **)&handle_of = dlsym(RTLD_DEFAULT, "Cblacs2sys_handle");
    if (!info || !get || !handle_of) return tsr_fail(TSR_ERR_NOT_FOUND, "BLACS is not in this process: link ScaLAPACK");
    info(context, &g->rows, &g->cols, &g->row, &g->col);
    if (g->row < 0 || g->col < 0)
        return tsr_fail(TSR_ERR_USAGE, "the BLACS context %d has no grid with this rank in it", context);
    int handle = -1;
    get(context, 10, &handle);
    g->comm = handle_of(handle);
    int ranks, rank, all;
    TSR_TRY(TSR_MPI(MPI_Comm_size(g->comm, &ranks)));
    TSR_TRY(TSR_MPI(MPI_Comm_rank(g->comm, &rank)));
    TSR_TRY(TSR_MPI(MPI_Comm_size(MPI_COMM_WORLD, &all)));
    if (ranks != g->rows * g->cols || rank != g->row * g->cols + g->col)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "this BLACS numbers the ranks of a grid in another way than row by row");
    if (ranks != all)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "the grid of %dx%d ranks leaves some of %d out: use all", g->rows, g->cols,
                        all);
    return TSR_OK;
}

/* What stays with a grid from call to call. */
typedef struct {
    tsr_watch *watch;
    tsr_grid grid;
} kept_parts;

static int end_kept(MPI_Comm comm, int key, void *value, void *nothing) {
    kept_parts *kept = value;
    (void)comm;
    (void)key;
    (void)nothing;
    (void)tsr_watch_end(kept->watch);
    (void)tsr_grid_end(&kept->grid);
    free(kept);
    return MPI_SUCCESS;
}

/* It goes where BLACS frees the grid's communicator. */
static tsr_status find_kept(MPI_Comm comm, tsr_world *world) {
    static int key = MPI_KEYVAL_INVALID;
    kept_parts *kept;
    int found = 0;
    if (key == MPI_KEYVAL_INVALID)
        TSR_TRY(TSR_MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_kept, &key, NULL)));
    TSR_TRY(TSR_MPI(MPI_Comm_get_attr(comm, key, (void *)&kept, &found)));
    if (!found) {
        kept = calloc(1, sizeof *kept);
        if (!kept) return tsr_fail(TSR_ERR_MEMORY, "no memory for a watch: free some");
        TSR_TRY(TSR_MPI(MPI_Comm_set_attr(comm, key, kept)));
    }
    world->kept_watch = &kept->watch;
    world->kept_grid = &kept->grid;
    return TSR_OK;
}

/* The job's ranks as the grid numbers them. What belongs to the job is found once. */
static tsr_status open_world(const grid *g, tsr_world *world) {
    static tsr_world job;
    if (!job.ranks) {
        job.started_seconds = tsr_now_seconds();
        TSR_TRY(tsr_world_open(&job));
    }
    *world = job;
    world->comm = g->comm;
    world->rank = g->row * g->cols + g->col;
    world->started_seconds = tsr_now_seconds();
    world->warnings = NULL;
    return find_kept(g->comm, world);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static tsr_status illegal(int *info, int number, int entry, const char *what, long long value) {
    *info = entry ? -(100 * number + entry) : -number;
    if (entry)
        return tsr_fail(TSR_ERR_USAGE, "entry %d of parameter %d, %s, has the illegal value %lld", entry, number, what,
                        value);
    return tsr_fail(TSR_ERR_USAGE, "parameter %d, %s, has the illegal value %lld", number, what, value);
}

static tsr_status check_argument(const argument *x, int context, const grid *g, int *info) {
    const int *d = x->desc, at = x->first + 3;
    if (d[0] != 1) return illegal(info, at, 1, x->name, d[0]);
    if (d[CONTEXT] != context) return illegal(info, at, CONTEXT + 1, x->name, d[CONTEXT]);
    if (d[M] < 0) return illegal(info, at, M + 1, x->name, d[M]);
    if (d[N] < 0) return illegal(info, at, N + 1, x->name, d[N]);
    if (d[MB] < 1) return illegal(info, at, MB + 1, x->name, d[MB]);
    if (d[NB] < 1) return illegal(info, at, NB + 1, x->name, d[NB]);
    if (d[RSRC] < 0 || d[RSRC] >= g->rows) return illegal(info, at, RSRC + 1, x->name, d[RSRC]);
    if (d[CSRC] < 0 || d[CSRC] >= g->cols) return illegal(info, at, CSRC + 1, x->name, d[CSRC]);
    const tsr_dealt rows = {d[M], d[MB], g->rows, d[RSRC]};
    if (d[LLD] < tsr_max(1, tsr_dealt_before(&rows, d[M], g->row))) return illegal(info, at, LLD + 1, x->name, d[LLD]);
    if (x->rows == 0 || x->cols == 0) return TSR_OK;
    if (x->row < 1 || x->row - 1 + x->rows > d[M]) return illegal(info, x->first + 1, 0, "the first row", x->row);
    if (x->col < 1 || x->col - 1 + x->cols > d[N]) return illegal(info, x->first + 2, 0, "the first column", x->col);
    return TSR_OK;
}

/* Columns after columns: the rows of the transpose. */
static tsr_distributed matrix_of(const argument *x, const grid *g, tsr_dtype type) {
    const int *d = x->desc;
    const tsr_deal seen = {.rows = {d[M], d[MB], g->rows, d[RSRC]},
                           .cols = {d[N], d[NB], g->cols, d[CSRC]},
                           .part = {x->row - 1, x->col - 1, x->rows, x->cols}};
    return (tsr_distributed){.deal = tsr_deal_transposed(seen), .dtype = type, .data = (void *)x->data, .ld = d[LLD]};
}

static tsr_complex number_of(tsr_dtype type, const void *at) {
    const tsr_complex x = tsr_element_to_complex((tsr_element){type, false}, at);
    return tsr_dtype_is_complex(type) ? x : tsr_real(x.re);
}

static void put(tsr_dtype type, void *at, tsr_complex x) {
    float *f = at;
    double *d = at;
    const bool single = tsr_dtype_bytes(tsr_dtype_part(type)) == sizeof *f, complex = tsr_dtype_is_complex(type);
    if (single) f[0] = (float)x.re;
    else d[0] = x.re;
    if (complex && single) f[1] = (float)x.im;
    else if (complex) d[1] = x.im;
}

/* Without a product: C = beta C, of this rank's elements. */
static void scale(const tsr_distributed *c, int rank, tsr_complex beta) {
    const tsr_deal *x = &c->deal;
    int row, col;
    if (!tsr_deal_place(x, rank, &row, &col)) return;
    const int64_t rows = tsr_dealt_within(&x->rows, (tsr_span){x->part.row, x->part.rows}, row);
    const int64_t cols = tsr_dealt_within(&x->cols, (tsr_span){x->part.col, x->part.cols}, col);
    const int64_t row0 = tsr_dealt_before(&x->rows, x->part.row, row);
    const int64_t col0 = tsr_dealt_before(&x->cols, x->part.col, col);
    for (int64_t i = row0; i < row0 + rows; i++)
        for (int64_t j = col0; j < col0 + cols; j++) {
            char *at = (char *)c->data + (size_t)(i * c->ld + j) * tsr_dtype_bytes(c->dtype);
            const tsr_complex v = number_of(c->dtype, at);
            const tsr_complex scaled = {v.re * beta.re - v.im * beta.im, v.re * beta.im + v.im * beta.re};
            put(c->dtype, at, tsr_is_zero(beta) ? tsr_real(0) : scaled);
        }
}

/* ---- the product ----------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    tsr_dtype type;
    char transa, transb;
    int64_t m, n, k;
    tsr_complex alpha, beta;
    argument a, b, c;
} gemm;

static tsr_status check_call(const gemm *x, const grid *g, int *info) {
    const int context = x->a.desc[CONTEXT];
    if (!strchr("NTC", x->transa)) return illegal(info, 1, 0, "transa", x->transa);
    if (!strchr("NTC", x->transb)) return illegal(info, 2, 0, "transb", x->transb);
    if (x->m < 0) return illegal(info, 3, 0, "m", x->m);
    if (x->n < 0) return illegal(info, 4, 0, "n", x->n);
    if (x->k < 0) return illegal(info, 5, 0, "k", x->k);
    TSR_TRY(check_argument(&x->a, context, g, info));
    TSR_TRY(check_argument(&x->b, context, g, info));
    return check_argument(&x->c, context, g, info);
}

static tsr_status multiply(const gemm *x, const grid *g, const tsr_world *world) {
    static const tsr_run_calls nobody = {0};
    const tsr_distributed a = matrix_of(&x->a, g, x->type), b = matrix_of(&x->b, g, x->type);
    const tsr_distributed c = matrix_of(&x->c, g, x->type);
    if (x->m == 0 || x->n == 0) return TSR_OK;
    if (x->k == 0 || tsr_is_zero(x->alpha)) {
        scale(&c, world->rank, x->beta);
        return TSR_OK;
    }
    const tsr_run_options options = {.product = {.memory_a = &a,
                                                 .memory_b = &b,
                                                 .memory_c = &c,
                                                 .transpose_a = x->transa != 'N',
                                                 .transpose_b = x->transb != 'N',
                                                 .conjugate_a = x->transa == 'C' && tsr_dtype_is_complex(x->type),
                                                 .conjugate_b = x->transb == 'C' && tsr_dtype_is_complex(x->type),
                                                 .alpha = x->alpha,
                                                 .beta = x->beta,
                                                 .order = TSR_ORDER_COL,
                                                 .has_type = true,
                                                 .type = x->type},
                                     .engine = {.device = "auto", .kernel = "auto", .transport = "auto"},
                                     .limits = {.memory = {.percent = 90}, .host_memory = {.percent = 80}},
                                     .command = x->name,
                                     .started = ""};
    return tsr_run_multiply(world, &options, &nobody);
}

static void call(const gemm *x) {
    grid g = {0};
    tsr_world world = {0};
    int info = 0;
    tsr_message_set("");
    tsr_status status = find_grid(x->a.desc[CONTEXT], &g);
    if (status == TSR_OK) status = open_world(&g, &world);
    if (status == TSR_OK) status = check_call(x, &g, &info);
    if (status == TSR_OK) status = multiply(x, &g, &world);
    if (status == TSR_OK) return;
    char message[1200];
    snprintf(message, sizeof message, "%s: %s", x->name, *tsr_message() ? tsr_message() : "failed on another rank");
    if (on_error) {
        on_error(info ? info : (int)status, message);
        return;
    }
    tsr_message_set(message);
    tsr_abort(&world, status);
}

static const tsr_dtype types[] = {TSR_F32, TSR_F64, TSR_C64, TSR_C128}; /* s, d, c and z */

#define GEMM(function, dtype)                                                                                          \
    void function(TESSERA_PBLAS_ARGUMENTS) {                                                                           \
        const char ta = (char)toupper(*transa), tb = (char)toupper(*transb);                                           \
        const gemm x = {.name = #function,                                                                             \
                        .type = dtype,                                                                                 \
                        .transa = ta,                                                                                  \
                        .transb = tb,                                                                                  \
                        .m = *m,                                                                                       \
                        .n = *n,                                                                                       \
                        .k = *k,                                                                                       \
                        .alpha = number_of(dtype, alpha),                                                              \
                        .beta = number_of(dtype, beta),                                                                \
                        .a = {"desca", 7, a, *ia, *ja, desca, ta == 'N' ? *m : *k, ta == 'N' ? *k : *m},               \
                        .b = {"descb", 11, b, *ib, *jb, descb, tb == 'N' ? *k : *n, tb == 'N' ? *n : *k},              \
                        .c = {"descc", 16, c, *ic, *jc, descc, *m, *n}};                                               \
        call(&x);                                                                                                      \
    }                                                                                                                  \
    void function##_(TESSERA_PBLAS_ARGUMENTS) {                                                                        \
        function(transa, transb, m, n, k, alpha, a, ia, ja, desca, b, ib, jb, descb, beta, c, ic, jc, descc);          \
    }

GEMM(tessera_psgemm, types[0])
GEMM(tessera_pdgemm, types[1])
GEMM(tessera_pcgemm, types[2])
GEMM(tessera_pzgemm, types[3])
