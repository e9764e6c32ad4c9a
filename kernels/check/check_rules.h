/* What the tables of checks share: signs, scales, and when a row is wrong. For the host and for devices. */
#ifndef TSR_KERNELS_CHECK_CHECK_RULES_H
#define TSR_KERNELS_CHECK_CHECK_RULES_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/base/element.h"
#include "kernels/check/check.h"

#define TSR_CHECK_VECTORS 3 /* two draws of signs, and scales */
#define TSR_CHECK_SUMS 4
#define TSR_CHECK_OPENING 8  /* doubles for what a device finds out before it draws signs */
#define TSR_CHECK_CHUNKS 8   /* pieces that a row's sum is made of, at most */
#define TSR_CHECK_CHUNK 1024 /* columns of one, at least, */
#define TSR_CHECK_UNIT 512   /* and a multiple of it */
#define TSR_CHECK_START 1800 /* columns that a task might have made until its first ones come (H200) */
#ifdef TSR_EMULATE_CUDA
#define TSR_CHECK_PLACES_AT_ONCE 1
#else
#define TSR_CHECK_PLACES_AT_ONCE 264 /* tasks that run at once (H200); another device's only takes longer */
#endif
#define TSR_CHECK_FLOAT 120 /* the largest exponents of scales of such elements */
#define TSR_CHECK_DOUBLE 1000
#define TSR_CHECK_SAMPLED 256 /* rows of B that scales are made of */

/* Of a block of C. */
typedef struct {
    double of_a;       /* a power of two that brings A to about 1: sums are those of A and C times it */
    double smallest;   /* scale */
    double squares;    /* of all scales, added up */
    unsigned found;    /* something that is not finite, in B of this launch */
    unsigned left_out; /* columns were left out */
    unsigned spoiled;  /* a column was left out too late: the block is not judged */
} tsr_check_facts;

/* Where what lies in the workspace; all doubles but for the facts. */
typedef struct {
    tsr_check_facts *facts;
    void *opening;     /* TSR_CHECK_OPENING, */
    unsigned *arrived; /* and right behind it as many as rows or depth: of a device's blocks, 0 between launches */
    double *signs;     /* TSR_CHECK_VECTORS × ld */
    double *signs_c;   /* likewise, times the scale of A: those of a device's C */
    double *thin;      /* TSR_CHECK_VECTORS × depth: B·signs, and roots of sums of squares */
    double *sums;    /* rows × TSR_CHECK_SUMS: two of A·thin, of squares, the largest that the first two ever were */
    double *partial; /* TSR_CHECK_CHUNKS × TSR_CHECK_VECTORS × the larger of depth and rows */
    int64_t width;   /* columns */
    int64_t ld, depth; /* of signs, and of thin */
} tsr_check_space;

#define TSR_CHECK_FACTS 8 /* doubles that the facts take */

/* Vectors begin at multiples of 16 bytes. */
static inline int64_t tsr_check_padded(int64_t length) { return tsr_round_up(length, 8); }

/* Counters, two of which take a double: one for each row, or each of depth. */
static inline int64_t tsr_check_counters(int64_t rows, int64_t depth) { return tsr_check_padded(tsr_max(rows, depth)); }

static inline tsr_check_space tsr_check_space_of(const tsr_check_args *args) {
    tsr_check_space s;
    double *at = (double *)args->workspace;
    s.width = args->width;
    s.ld = tsr_check_padded(args->width);
    s.depth = tsr_check_padded(args->depth);
    s.facts = (tsr_check_facts *)args->workspace;
    s.opening = at + TSR_CHECK_FACTS;
    s.arrived = (unsigned *)(at + TSR_CHECK_FACTS + TSR_CHECK_OPENING);
    s.signs = at + TSR_CHECK_FACTS + TSR_CHECK_OPENING + tsr_check_counters(args->rows, args->depth) / 2;
    s.signs_c = s.signs + TSR_CHECK_VECTORS * s.ld;
    s.thin = s.signs_c + TSR_CHECK_VECTORS * s.ld;
    s.sums = s.thin + TSR_CHECK_VECTORS * s.depth;
    s.partial = s.sums + TSR_CHECK_SUMS * args->rows;
    return s;
}

/* Columns that a piece of a row's sum is made of: what the sum was on its way is known at the end of each. */
TSR_HOST_DEVICE static inline int64_t tsr_check_chunk(int64_t cols) {
    const int64_t even = (cols + TSR_CHECK_CHUNKS - 1) / TSR_CHECK_CHUNKS;
    const int64_t least = even > TSR_CHECK_CHUNK ? even : TSR_CHECK_CHUNK;
    return (least + TSR_CHECK_UNIT - 1) / TSR_CHECK_UNIT * TSR_CHECK_UNIT;
}

/* Pieces that one task makes of a tile of rows, of `tiles`, so that all tasks are done soonest: they begin with nothing
 * under way, and the last round of them may leave places empty. */
static inline int tsr_check_span(int64_t tiles, int64_t cols) {
    const int64_t chunk = tsr_check_chunk(cols);
    const int pieces = (int)tsr_max(1, tsr_ceil_div(cols, chunk));
    int best = 1;
    int64_t least = INT64_MAX;
    for (int span = 1; span <= pieces; span++) {
        const int64_t rounds = tsr_ceil_div(tiles * tsr_ceil_div(pieces, span), TSR_CHECK_PLACES_AT_ONCE);
        const int64_t time = rounds * (span * chunk + TSR_CHECK_START);
        if (time < least) {
            least = time;
            best = span;
        }
    }
    return best;
}

/* Bits that nothing else depends on (splitmix64), for a column. */
TSR_HOST_DEVICE static inline uint64_t tsr_check_draw(uint64_t seed, int64_t column) {
    uint64_t z = seed + 0x9e3779b97f4a7c15u * ((uint64_t)column + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A sign times 1, 1.25, 1.5 or 1.75, so that equal errors hardly ever cancel, of draw 0 or 1. */
TSR_HOST_DEVICE static inline double tsr_check_sign(uint64_t draw, int which) {
    const uint64_t bits = draw >> (8 * which);
    const double size = 1 + 0.25 * (double)(bits >> 1 & 3);
    return bits & 1 ? -size : size;
}
#define TSR_CHECK_ROOT 1.5 /* of the mean of their squares, rounded up */

/* Scales differ where columns do by more than a factor of 16. */
TSR_HOST_DEVICE static inline bool tsr_check_alike(int64_t least, int64_t most) { return most - least <= 4; }

/* fp32 rounded to 11 significant bits, to nearest even, as TMA does. */
TSR_HOST_DEVICE static inline float tsr_check_tf32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7f800000u) == 0x7f800000u) return value;
    bits += 0xfffu + (bits >> 13 & 1);
    bits &= ~0x1fffu;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Of a number > 0, which may be subnormal: of the power of two below it. */
TSR_HOST_DEVICE static inline int tsr_check_exponent(double value) {
    int exponent;
    (void)frexp(value, &exponent);
    return exponent - 1;
}
/* A power of two that brings numbers of this exponent to about 1; its own is `most` at most. */
TSR_HOST_DEVICE static inline double tsr_check_scale(int64_t exponent, int64_t most) {
    return ldexp(1.0, (int)(exponent > most ? -most : exponent < -most ? most : -exponent));
}

/* How a kernel rounds, for bounds. */
typedef struct {
    double unit;     /* of C's type */
    double sum;      /* of the noise of sums without a mean, in units of sqrt(k · squares) */
    double cut;      /* of what a step of a tensor core cuts off, in units of sqrt(squares), */
    double normal;   /* where operands count as no smaller than this, the smallest normal number of their type */
    double drift;    /* of sums that go somewhere first, in units of the largest partial sum */
    double operands; /* of operands that are rounded before they are multiplied, of sqrt(squares) */
    double hard;     /* of any sums, in units of sqrt(k · squares) */
    double tiny;     /* what underflow takes from a product */
    double largest;  /* finite element of C's type */
    /* Of C as a file holds it: */
    double alpha;    /* that the sums are multiplied with; 1 of accumulators, and 0 for what follows */
    double rounding; /* unit of its type, where elements were rounded to that */
    double step;     /* between the smallest numbers of its type */
    bool all;        /* columns that were left out leave no row judged */
} tsr_check_noise;

static inline tsr_check_noise tsr_check_noise_of(const tsr_gemm_kernel *kernel, int64_t k) {
    const bool f64 = tsr_dtype_bytes(kernel->type) == sizeof(double);
    const double root = sqrt((double)(k > 1 ? k : 1));
    tsr_check_noise noise = {.unit = f64 ? 0x1p-53 : 0x1p-24,
                             .sum = f64 ? 64.0 : 4.0,
                             .drift = 2 + (f64 ? 16.0 : 1.2) * root,
                             .hard = 9 * (2 + 4 * root),
                             .tiny = f64 ? 0x1p-1074 : 0x1p-126,
                             .largest = f64 ? DBL_MAX : FLT_MAX,
                             .alpha = 1};
    /* Tensor cores align the products of a step, 16 elements of k at most, to the largest, and cut off what is then
     * below about 4 units of it. That is 4 units of each product, times up to 1.75 of its sign, and twice where a large
     * one stands in the sum, too: at k = 26 rows of wide data in fp16 were off by up to 133 units of their norm (H200).
     * They align subnormal operands as if they were normal: at k = 2 such a row was off by 52 units.
     * Of long sums errors are of one sign, and grow with k: rows of normal data are off by 0.03·k units of their sum at
     * k = 8192 in TF32. */
    if (kernel->accuracy != TSR_ACCURACY_IEEE) {
        noise.cut = 12 * (double)tsr_min(k, 16);
        noise.normal = ldexp(1, 2 - (1 << (tsr_dtype_facts_of(kernel->input)->exponent_bits - 1)));
        noise.drift += (kernel->accuracy == TSR_ACCURACY_TF32 ? 0.06 : 0.03) * (double)k;
        noise.hard += (double)k;
    }
    if (kernel->accuracy == TSR_ACCURACY_TF32 && !kernel->rounds_tf32) {
        noise.operands = 8 * 0x1p-11;
        noise.hard += 9 * 0x1p-10 / noise.unit;
    }
    return noise;
}

/* Of a strip. */
static inline tsr_check_noise tsr_check_noise_of_strip(const tsr_gemm_kernel *kernel, int64_t k,
                                                       const tsr_check_strip *strip) {
    const tsr_dtype_facts *out = tsr_dtype_facts_of(strip->type);
    const int bits = out->mantissa_bits, most = 1 << (out->exponent_bits - 1);
    const double unit = ldexp(1, -bits - 1), largest = ldexp(2 - ldexp(1, -bits), most - 1);
    tsr_check_noise noise = tsr_check_noise_of(kernel, k);
    noise.alpha = strip->alpha;
    if (strip->alpha != 1 || unit > noise.unit) {
        noise.rounding = fmax(unit, noise.unit);
        noise.step = ldexp(1, 2 - most - bits);
    }
    noise.largest = fmin(noise.largest, largest);
    noise.all = true;
    return noise;
}

typedef enum { TSR_ROW_RIGHT, TSR_ROW_UNJUDGED, TSR_ROW_DOUBTFUL, TSR_ROW_WRONG } tsr_row_verdict;

/* sums: A·(B·x) of two draws, squares and the largest partial sum; c, q: C·x and its squares. *ratio: of the difference
 * to its bound. */
TSR_HOST_DEVICE static inline tsr_row_verdict tsr_check_row(const double sums[TSR_CHECK_SUMS], const double c[2],
                                                            double q, int64_t n, int64_t k,
                                                            const tsr_check_facts *facts, const tsr_check_noise *noise,
                                                            double *ratio) {
    const double z[2] = {noise->alpha * sums[0], noise->alpha * sums[1]};
    const double v = noise->alpha * noise->alpha * sums[2], partial = fabs(noise->alpha) * sums[3];
    *ratio = 0;
    if (facts->spoiled || (noise->all && facts->left_out)) return TSR_ROW_UNJUDGED;
    if (!isfinite(z[0]) || !isfinite(z[1]) || !isfinite(v)) return TSR_ROW_UNJUDGED;
    const double terms = sqrt((double)k * v); /* no row of scaled |A||B| is longer */
    if (!isfinite(c[0]) || !isfinite(c[1]) || !isfinite(q)) {
        if (terms >= noise->largest * facts->of_a * facts->smallest / 4) return TSR_ROW_UNJUDGED; /* it overflows */
        *ratio = INFINITY;
        return TSR_ROW_WRONG;
    }
    const double first = fabs(c[0] - z[0]), second = fabs(c[1] - z[1]);
    const double off = first > second ? first : second;
    if (facts->left_out && q == 0 && off == 0) return TSR_ROW_UNJUDGED; /* all columns, or those that hold something */
    if (v < 1e-280 && v >= 0 && off <= (double)k * 1e-130) return off == 0 ? TSR_ROW_RIGHT : TSR_ROW_UNJUDGED;
    double bound = noise->unit * (noise->sum * (terms + 4 * sqrt(v)) + noise->cut * sqrt(v));
    const double drift = noise->unit * noise->drift * partial, operands = noise->operands * sqrt(v);
    const double share = TSR_CHECK_SHARE * sqrt(q / (TSR_CHECK_ROOT * TSR_CHECK_ROOT * (double)n));
    if (drift > bound) bound = drift;
    if (operands > bound) bound = operands;
    bound += 8 * noise->tiny * fmax(1.0, fabs(noise->alpha)) * facts->of_a * sqrt((double)k * facts->squares);
    /* Subnormal operands of A, beside columns of B as large as their scales say; those of B are in its thin vector. */
    bound += noise->unit * noise->cut * noise->normal * fabs(noise->alpha) * 48 * facts->of_a * sqrt((double)n);
    bound += 8 * noise->rounding * sqrt(q);
    if (noise->step > 0) bound += 4 * noise->step * facts->of_a * sqrt(facts->squares); /* squares may be infinite */
    const double margin = 4 * bound < share ? 4 * bound : share; /* where rounding leaves room for it */
    if (margin > bound) bound = margin;
    *ratio = off == 0 ? 0 : off / bound;
    if (off <= bound) return TSR_ROW_RIGHT;
    return off > noise->unit * noise->hard * terms && off > 2 * bound ? TSR_ROW_WRONG : TSR_ROW_DOUBTFUL;
}

#endif
