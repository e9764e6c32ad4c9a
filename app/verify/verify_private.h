/* What the parts of the check share. verify.c runs it; verify_sums.c makes the sums of A and B; verify_scale.c finds
 * the columns' scales; verify_infinite.c knows where Inf must stand; verify_rows.c judges entries and rows of C;
 * verify_entries.c works out single entries; verify_tiles.c reads the matrices; verify_ranks.c shares out work and
 * adds up over ranks.
 *
 * Numbers that may leave the range of double are kept as value · 2^exponent with an exponent of their own (int32_t). */
#ifndef TSR_APP_VERIFY_VERIFY_PRIVATE_H
#define TSR_APP_VERIFY_VERIFY_PRIVATE_H

#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "app/verify/strips.h"
#include "app/verify/verify.h"

#define TSR_EXPONENT_NONE (INT32_MIN / 4) /* of zero */
#define TSR_ROUNDOFF_DOUBLE 0x1p-53

/* What a row of op(A) or a column of op(B) holds, and so what the row or column of C must be. */
enum {
    TSR_HOLDS_NAN = 1,
    TSR_HOLDS_INF = 2,
    TSR_HOLDS_MANY = 4 /* more Inf than the check keeps: their signs are not judged */
};

/* Non-finite terms of an entry of C: +Inf, -Inf, NaN. */
enum { PLUS = 1, MINUS = 2, NONE = 4 };

/* What a pass over op(A) or op(B) makes, for each row: sums with signs, and what bounds are made of. */
typedef struct {
    double *sums;        /* rows × trials, · 2^exponent */
    double *norm;        /* rows, · 2^exponent */
    double *largest;     /* rows, as it is; may be infinite */
    int32_t *exponent;   /* rows: of the largest term so far */
    unsigned char *kind; /* rows: TSR_HOLDS_* */
} row_sums;

/* An infinity of op(A) or op(B). */
typedef struct {
    int64_t line; /* row of op(A) or column of op(B) */
    int64_t at;   /* 2·l, and 1 more where it is negative; l along k */
} infinity;

typedef struct {
    infinity *entries;
    int64_t count, room, most;
} infinities;

/* An entry of C that overflowed, or that has a non-finite C0: the product's own value is worked out. */
typedef struct {
    int64_t row, col; /* of C */
    double c, c0;
    bool helps; /* is no entry of its own: what stands there is wanted for the other part of a complex number */
} open_entry;

/* The finite terms of a sum: (plus - minus) · 2^exponent. */
typedef struct {
    double plus, minus; /* ≥ 0 */
} entry_terms;

/* How far this rank is, in bytes of the matrices: its own, times the ranks. */
typedef struct {
    const tsr_listener *listener;
    const tsr_verify_args *args; /* who asks whether to stop */
    int ranks;
    atomic_llong bytes; /* of this rank */
} verify_progress;

/* What rows of C add to R, kept until the row is judged. Squares are in units of the row's exponent, twice. */
typedef struct {
    double c_squares, c0_squares;
    double direct; /* largest error / bound of entries that are judged alone */
    bool taken;    /* this rank has read the row */
    bool wrong;    /* NaN, Inf or finite where it cannot be */
    bool unjudged; /* something in it could not be judged */
    bool no_sums;  /* its sums hold what no entry answers to */
} row_facts;

/* Places of op(B), as it is read, that belong to no element: the imaginary parts of a real B. */
typedef enum { NOWHERE, ODD_COLUMNS, ODD_SUMS /* of l and j */ } no_elements;

/* Stores of reals in front of complex ones of a check's arguments, which they read, and what they stand for. The rules
 * for complex numbers, NaN and Inf among them, are those of pack and finish (kernels/pack/complex.h):
 * - A part of op(A)·op(B) is a sum of products of parts, two for each l where A and B are complex. A real operand has
 *   no imaginary part: nothing is multiplied by 0 in its place, and Inf stays Inf.
 * - A complex alpha makes re and im of the parts' sums s: alpha.re·s.re - alpha.im·s.im and alpha.re·s.im +
 *   alpha.im·s.re, where 0·Inf is NaN. Sums of a real A and B have no s.im. A real alpha scales either part by itself.
 * - beta·C0 joins each part, made by the same rules. */
typedef struct {
    tsr_store *opened[4]; /* for a, b, c, c0; NULL: the argument's own serves */
    int64_t rows;         /* of reals for a row of C */
    bool turned;          /* alpha is complex: columns 2j, 2j + 1 of C are parts of it times those of the sums */
    tsr_complex alpha;    /* where turned; args->alpha is its larger part, without a sign */
    bool real_c;          /* where turned: only real parts of C are there */
    no_elements nowhere;  /* where turned, or C alone is complex */
} verify_parts;

typedef struct {
    const tsr_world *world;
    const tsr_verify_args *args;
    const verify_parts *parts;
    verify_progress *progress;
    int64_t m, n, k;
    int trials;
    int workers; /* threads of this rank that share a pass */
    double lambda;
    double alpha; /* alpha, or the magnitude of a complex one, which may leave the range, · 2^alpha_exponent */
    int alpha_exponent;
    tsr_complex unit;     /* where turned: alpha over its magnitude */
    double operand_limit; /* |x| from here on is Inf for the kernel */
    double *signs;        /* n × trials: -1, 1, or 0 for a column of op(B) that is not finite */
    double *turned;       /* n × trials: what the sums' columns are added up with, where a complex alpha turns parts */
    int32_t *shift;       /* n: columns' exponents are raised by this much before they are added up */
    int32_t *column_top;  /* n: exponent of the largest finite |op(B)_lj|; TSR_EXPONENT_NONE: the column is zero */
    unsigned char *column_kind; /* n: TSR_HOLDS_* */
    double shift_norm;          /* ‖D‖₂ over the columns that are added up, · 2^shift_exponent */
    int32_t shift_exponent,
        shift_least; /* the latter: the smallest shift of all columns, which is the largest column's */
    row_sums y; /* k rows: op(B)·D·signs, norm ‖op(B)_l·D‖₂ (squared while it is made), largest |op(B)_lj| */
    int64_t block;         /* rows of R at a time */
    row_sums r;            /* block rows: op(A)·y, norm S_i, largest Σ_l |op(A)_il|·max_j |op(B)_lj| */
    row_facts *facts;      /* of the block */
    int64_t first;         /* row of C that the block begins with */
    infinities in_a, in_b; /* sorted by line, the same on every rank; in_a of the block */
    int32_t *slot_a,
        *slot_b;            /* k: where codes are kept of op(B)'s row l, or op(A)'s column l; -1: not needed; or NULL */
    unsigned char *codes_b; /* slots × n: 1 zero or NaN, 2 positive, 3 negative, 4 no element */
    unsigned char *codes_a; /* block × slots_b */
    int64_t slots_a, slots_b;
    open_entry *open;                         /* this rank's, of the block */
    int64_t open_count, open_most, open_left; /* the last: that may be worked out at all, of all ranks */
    pthread_mutex_t lock;                     /* lists, and the columns' levels */
    bool listing;                             /* this pass lists Inf */
    tsr_verify_result found;                  /* so far, in this rank's rows */
} verifier;

/* A matrix as a worker reads it, tile by tile, in double. */
typedef struct {
    tsr_store *store;
    verify_progress *progress;
    size_t pending; /* bytes loaded that are not done yet: they count when the next tile is wanted */
    tsr_strips strips;
    int64_t row0, col0; /* of the part walked, in the store */
    int64_t shift;      /* columns of the pass before it */
    void *raw;
    double *values; /* rect.rows × rect.cols of the tile loaded */
} tsr_tiles;

/* ---- verify_tiles.c -------------------------------------------------------------------------- */

/* Worker `index`'s share of a part of the store: some columns of this rank's band of rows with `by_cols`, else rows
 * of it; it may be empty. Takes at most its share of `budget` bytes. Local, as what follows; tsr_tiles_close also
 * after a failure. */
tsr_status tsr_tiles_open(const verifier *v, tsr_store *store, tsr_rect part, bool by_cols, int index, size_t budget,
                          tsr_tiles *t);
void tsr_tiles_close(tsr_tiles *t);
/* The next tile, by its place in the part; false: there is none. */
bool tsr_tiles_next(tsr_tiles *t, tsr_rect *rect);
tsr_status tsr_tiles_load(tsr_tiles *t, tsr_rect rect);
/* After tsr_tiles_open: tiles of about as many rows as columns, whose mirrors are such tiles, too. */
void tsr_tiles_square(tsr_tiles *t);
/* Elements of the part `rect` of the store into values (rect's elements), by way of raw (as many of the store's). */
tsr_status tsr_tiles_read(tsr_store *store, tsr_rect rect, void *raw, double *values);

/* ---- verify_ranks.c -------------------------------------------------------------------------- */

/* Zeros. */
tsr_status tsr_verify_allocate(int64_t rows, int64_t cols, size_t element_bytes, void *memory);
/* Collective. Element by element over the ranks. */
tsr_status tsr_verify_reduce(const tsr_world *world, void *data, int64_t count, MPI_Datatype type, MPI_Op op);
/* Collective. The entries of all ranks, in their order, as far as `most` (at most INT32_MAX / 2) has room. *count: of
 * `mine`, in, and how many of them are among those, out. *all: the caller frees it; it stays as it is where there are
 * none. */
tsr_status tsr_verify_gather(const tsr_world *world, const void *mine, size_t entry_bytes, int64_t most, int64_t *count,
                             void *all, int64_t *total);
/* What a worker does of a pass. */
typedef struct {
    verifier *v;
    int index;     /* of v->workers */
    void *context; /* the pass's own */
} verify_share;
/* Collective. Calls pass(verify_share *) for each worker of each rank, all but the first in threads of their own. */
tsr_status tsr_verify_together(verifier *v, tsr_status (*pass)(void *share), void *context);
/* A matrix, or rows of op(it), is read again. */
void tsr_verify_again(verifier *v, const tsr_store *store);
static inline size_t tsr_verify_tile_budget(const verifier *v) { return v->args->buffer_bytes / 2; }
/* Multiply-adds that what is not finite may cost: a hundredth of the product's, or so few that they do not count. */
static inline double tsr_verify_share(const verifier *v) {
    return fmax(0.01 * (double)v->m * (double)v->n * (double)v->k, 0x1p28);
}
/* Of each list of Inf and of codes; open entries take twice that. */
static inline size_t tsr_verify_list_budget(const verifier *v) { return v->args->buffer_bytes / 16; }

/* ---- verify_sums.c --------------------------------------------------------------------------- */

tsr_status tsr_sums_allocate(int64_t rows, int trials, row_sums *s);
void tsr_sums_free(row_sums *s);
/* Brings the row's sums to a larger exponent. Local. */
void tsr_sums_raise(row_sums *s, int64_t row, int trials, int32_t exponent);
/* Local. v->turned of the signs, where alpha turns parts. */
void tsr_sums_turn(verifier *v);
/* Collective. Y on every rank, of the whole of B; columns' shifts are found first, signs of non-finite columns become
 * 0. */
tsr_status tsr_sums_of_b(verifier *v);
/* Collective. R of the block on every rank. */
tsr_status tsr_sums_of_a(verifier *v, int64_t rows);

/* ---- verify_scale.c -------------------------------------------------------------------------- */

/* How large the elements of a matrix are, by rows and by columns: exponents, with some of them taken away. Zeros do
 * not count. */
typedef struct {
    int64_t rows, cols;
    int64_t *row_sum, *row_count;         /* rows: of exponent - col_shift; NULL: not wanted */
    int32_t *row_top;                     /* rows: the largest of exponent - col_shift; NULL: not wanted */
    int64_t *col_sum, *col_count;         /* cols: of exponent - row_shift; NULL: not wanted */
    double squares;                       /* of all the latter */
    int32_t *col_top;                     /* cols: the largest; NULL: not wanted */
    const int32_t *row_shift, *col_shift; /* NULL: 0. Rows whose shift is TSR_EXPONENT_NONE do not count */
} levels;

tsr_status tsr_levels_open(int64_t rows, int64_t cols, levels *l);
void tsr_levels_close(levels *l);
/* Local. Adds a tile of finite values; rows of op are this worker's alone. */
void tsr_levels_take(levels *l, pthread_mutex_t *lock, const double *values, tsr_rect rect, bool transpose);
/* Collective. */
tsr_status tsr_levels_share(const tsr_world *world, levels *l);
/* Local. Both parts of a column have the larger one's exponent, where alpha turns parts. tops: n */
void tsr_scale_pairs(const verifier *v, int32_t *tops);
/* Collective. Sets v->shift from what a first pass over B found (this rank's and all others' together), and with beta
 * from C0. */
tsr_status tsr_scale_columns(verifier *v, levels *of_b);

/* ---- verify_infinite.c ----------------------------------------------------------------------- */

/* Local. Puts 0 for what the kernel takes for NaN or Inf in a tile of op(A) (of_a) or op(B); marks rows' or columns'
 * kinds and lists Inf while v->listing. */
void tsr_infinite_take(verifier *v, bool of_a, double *values, tsr_rect rect, bool transpose);
/* Local. Before that: codes of op(A)'s columns that meet an Inf of B. */
void tsr_infinite_code_a(verifier *v, const double *values, tsr_rect rect, bool transpose);
/* Collective. After a pass with v->listing: every rank knows the same Inf, and which rows or columns hold too many. */
tsr_status tsr_infinite_share(verifier *v, bool of_a, int64_t lines);
/* Collective. After the pass over A's block: codes that judge it. */
tsr_status tsr_infinite_meet(verifier *v, int64_t rows);
/* Inf of row `row` of the block: entries from *at on. */
int64_t tsr_infinite_find(const infinities *list, int64_t line);
/* PLUS, MINUS, NONE: the non-finite terms of the product's entry; row of the block, at from
 * tsr_infinite_find. */
int tsr_infinite_terms(const verifier *v, int64_t row, int64_t at, int64_t j);
/* Drops what belongs to the block. Local. */
void tsr_infinite_end_block(verifier *v);

/* ---- verify_rows.c --------------------------------------------------------------------------- */

/* Exponent below which a column is lost to underflow in C, over what rounding costs, with |op(A)| of exponent 0. */
int tsr_verify_floor(const verifier *v);
/* How much less rounding costs beta·C0 than a product of its size: exponent of the share. */
int tsr_verify_weight_of_c0(const verifier *v);
/* One entry of row `row` of the block. at: tsr_infinite_find's. */
void tsr_verify_take_entry(verifier *v, int64_t row, int64_t at, int64_t j, double c, double c0);
/* The product's terms in an open entry are `own` · 2^exponent, in that of the other part, where alpha turns parts,
 * `other` · 2^exponent: judges the entry and takes the product out of the row's sums. */
void tsr_verify_close_entry(verifier *v, const open_entry *e, entry_terms own, entry_terms other, int exponent);
/* The whole row of the block against its bound. Adds to the result. */
void tsr_verify_judge_row(verifier *v, int64_t row);

/* ---- verify_entries.c ------------------------------------------------------------------------ */

/* Local. The entry is to be worked out; one too many leaves its row without sums. Safe from several threads. */
void tsr_entries_add(verifier *v, int64_t row, int64_t j, double c, double c0);
/* Collective. Works out what is open in the block, as far as the check's share of the product's work allows. */
tsr_status tsr_entries_work_out(verifier *v);

/* ---- verify_parts.c -------------------------------------------------------------------------- */

/* Local. Replaces complex stores in *args, folds a complex beta into C0, and makes a complex alpha its larger part.
 * Close also after a failure. */
tsr_status tsr_verify_parts_open(tsr_verify_args *args, verify_parts *parts);
void tsr_verify_parts_close(verify_parts *parts);

/* The other part's column. */
static inline int64_t tsr_verify_partner(int64_t j) { return j ^ 1; }
/* What the columns of op(B) hold that C's column j is made of. */
static inline unsigned char tsr_verify_column_kind(const verifier *v, int64_t j) {
    return v->parts->turned ? v->column_kind[j] | v->column_kind[tsr_verify_partner(j)] : v->column_kind[j];
}
/* Part `of` of the sums (0 re, 1 im) in part `part` of C: what alpha, or its unit, multiplies it by. */
static inline double tsr_verify_factor(tsr_complex alpha, int64_t part, int64_t of) {
    return part == of ? alpha.re : part == 0 ? -alpha.im : alpha.im;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Of |x| = 1.… · 2^exponent; x is finite. */
static inline int32_t tsr_exponent(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int biased = (int)(bits >> 52 & 0x7ff);
    if (biased) return biased - 1023;
    int exponent = 0;
    return frexp(x, &exponent) == 0 ? TSR_EXPONENT_NONE : exponent - 1;
}

/* x · 2^power */
static inline double tsr_times_power(double x, int64_t power) {
    if (power > -1000 && power < 1000) {
        const uint64_t bits = (uint64_t)(power + 1023) << 52;
        double factor;
        memcpy(&factor, &bits, sizeof factor);
        return x * factor;
    }
    return ldexp(x, power < -100000 ? -100000 : power > 100000 ? 100000 : (int)power);
}

/* to[t] += value · from[t] */
static inline void tsr_verify_add_scaled(double *restrict to, double value, const double *restrict from, int trials) {
    for (int t = 0; t < trials; t++) to[t] += value * from[t];
}

#endif
