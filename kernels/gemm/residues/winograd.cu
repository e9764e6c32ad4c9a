/* Operation: Winograd's form of Strassen's algorithm for products of residues (winograd.h): sums of quarters of A and B
 * modulo each plane's modulus, and of products of quarters to C.
 * Mapping: a thread takes 16 neighbours of the same place in all quarters of a plane, and adds two of them at a time in
 * fp16 (pairs.h). Blocks stride over rows of all planes.
 * Shared memory: none.
 * Registers: no limit.
 * Requirements: sm_53 or newer.
 * Arithmetic intensity: two elements take 23 instructions and 16 bytes of A, 28 and 22 of C: memory decides.
 * Measured: H200, 2026-11-29, by the profiler, 14 planes of 16384 × 16384: sums of A or of B 1.8 ms, at 85 and 87 % of
 *   the memory's rate, C 2.4 ms, at 90 %.
 * Reference: S. Winograd, Linear Algebra and its Applications 4 (1971), 381-388. */
#include "kernels/gemm/residues/pairs.h"
#include "kernels/gemm/residues/quarters.h"
#include "kernels/gemm/residues/tiles.h"
#include "kernels/gemm/residues/winograd.h"

namespace {

using namespace pairs;

constexpr int THREADS = 256;
constexpr int CHUNK = 16;            /* bytes */
constexpr unsigned MOST_ROWS = 4096; /* of blocks: where nothing is wanted they take their time, too */

/* ---- sums of quarters ------------------------------------------------------------------------ */

/* What of a place's residues in INPUTS quarters, as quarters.h numbers them, goes to four others (winograd.h). Inputs
 * are moved, outputs are not reduced. TO: a digit for each of these quarters. */
struct SpreadA {
    static constexpr int INPUTS = 4;
    static constexpr unsigned TO = 0x7654;
    static __device__ __forceinline__ void mix(const Pair (&a)[INPUTS], Pair (&s)[4]) {
        s[0] = add(subtract(a[2], MOVED_TWICE), a[3]);
        s[1] = subtract(add(s[0], MOVED), a[0]);
        s[2] = subtract(a[0], a[2]);
        s[3] = subtract(subtract(a[1], MOVED), s[1]);
    }
};
/* Rows of planes are columns of B: B01 is the third quarter here. */
struct SpreadB {
    static constexpr int INPUTS = 4;
    static constexpr unsigned TO = 0x7654;
    static __device__ __forceinline__ void mix(const Pair (&b)[INPUTS], Pair (&t)[4]) {
        t[0] = subtract(b[2], b[0]);
        t[1] = subtract(subtract(b[3], MOVED), t[0]);
        t[2] = subtract(b[3], b[2]);
        t[3] = subtract(add(t[1], MOVED), b[1]);
    }
};
/* TURNED: to Cᵀ. */
template <bool TURNED> struct Gather {
    static constexpr int INPUTS = TSR_QUARTER_PRODUCTS;
    static constexpr unsigned TO = TURNED ? 0x3120 : 0x3210;
    static __device__ __forceinline__ void mix(const Pair (&p)[INPUTS], Pair (&c)[4]) {
        const Pair p1 = subtract(p[0], MOVED_TWICE), p5 = subtract(p[4], MOVED);
        const Pair both = add(p1, p[5]), all = add(both, subtract(p[6], MOVED));
        c[0] = add(p1, p[1]);
        c[1] = add(add(both, p5), subtract(p[2], MOVED));
        c[2] = subtract(all, subtract(p[3], MOVED));
        c[3] = add(all, p5);
    }
};

/* Planes, and as many behind them. */
struct Planes {
    int8_t *at;
    int count;
    int rows, columns; /* of a quarter */
    int apart;

    __device__ __forceinline__ uint4 *chunk(int plane, unsigned quarter, int row, int chunk) const {
        const tsr_quarter start = tsr_quarter_at(plane, quarter, apart, rows, columns);
        return reinterpret_cast<uint4 *>(at + (int64_t)(start.row + row) * 2 * columns + start.column) + chunk;
    }
};
struct Moduli {
    Modulus of[TSR_EXACT_MODULI_MOST];
};
Moduli moduli_all() {
    static const int all[] = TSR_EXACT_MODULI;
    Moduli m = {};
    for (int i = 0; i < TSR_EXACT_MODULI_MOST; i++) m.of[i] = modulus_of(all[i]);
    return m;
}

__device__ __forceinline__ unsigned &word(uint4 &of, int i) {
    return i == 0 ? of.x : i == 1 ? of.y : i == 2 ? of.z : of.w;
}

template <typename How>
__device__ __forceinline__ void mix_chunk(const Planes &x, const Modulus &modulus, int plane, int row, int chunk) {
    uint4 in[How::INPUTS], out[4];
#pragma unroll
    for (int i = 0; i < How::INPUTS; i++) in[i] = __ldcs(x.chunk(plane, (unsigned)i, row, chunk));
#pragma unroll
    for (int w = 0; w < 4; w++) {
        Pair from[2][How::INPUTS], to[2][4];
#pragma unroll
        for (int i = 0; i < How::INPUTS; i++) {
            const Moved own = moved(word(in[i], w));
            from[0][i] = own.lower;
            from[1][i] = own.upper;
        }
        How::mix(from[0], to[0]);
        How::mix(from[1], to[1]);
#pragma unroll
        for (int i = 0; i < 4; i++) word(out[i], w) = bytes_of(reduced(to[0][i], modulus), reduced(to[1][i], modulus));
    }
#pragma unroll
    for (int i = 0; i < 4; i++) __stcs(x.chunk(plane, How::TO >> 4 * i, row, chunk), out[i]);
}

template <typename How>
__global__ void __launch_bounds__(THREADS)
    mix(const Planes x, const Moduli moduli, const tsr_residue_condition condition) {
    tsr_cuda_begin();
    if (tsr_residue_idle(condition)) return;
    for (int row = (int)blockIdx.y; row < x.count * x.rows; row += (int)gridDim.y) {
        const int plane = row / x.rows, step = (int)(gridDim.x * blockDim.x);
        for (int chunk = (int)(blockIdx.x * blockDim.x + threadIdx.x); chunk < x.columns / CHUNK; chunk += step)
            mix_chunk<How>(x, moduli.of[plane], plane, row % x.rows, chunk);
    }
}

/* Of `whole`, whose planes at `at` have these rows and columns. */
template <typename How>
tsr_status launch(tsr_stream *stream, const tsr_residue_args *whole, const int8_t *at, int64_t rows, int64_t columns) {
    const Planes x = {const_cast<int8_t *>(at), whole->planes, (int)(rows / 2), (int)(columns / 2), whole->apart};
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(x.count * x.rows, x.columns / CHUNK, 1, THREADS, &grid));
    grid.y = tsr_min(grid.y, MOST_ROWS);
    return TSR_LAUNCH_NEXT(mix<How>, grid, THREADS, 0, stream, x, moduli_all(), whole->condition);
}

tsr_status check(const tsr_residue_args *whole) {
    if (whole->planes <= whole->apart && whole->rows_a % (2 * TSR_EXACT_TILE) == 0 &&
        whole->rows_b % (2 * TSR_EXACT_TILE) == 0 && whole->depth % (2 * TSR_EXACT_DEPTH) == 0)
        return TSR_OK;
    return tsr_fail(TSR_ERR_SHAPE, "no quarters of %d planes, %d apart, of %lld x %lld x %lld residues", whole->planes,
                    whole->apart, (long long)whole->rows_a, (long long)whole->rows_b, (long long)whole->depth);
}

} // namespace

tsr_status tsr_winograd_spread(tsr_stream *stream, const tsr_residue_args *whole) {
    const tsr_residue_sums *sums = whole->sums;
    TSR_TRY(check(whole));
    TSR_TRY(launch<SpreadA>(stream, whole, whole->a, whole->rows_a, whole->depth));
    TSR_TRY(launch<SpreadB>(stream, whole, whole->b, whole->rows_b, whole->depth));
    if (!sums) return TSR_OK;
    TSR_TRY(launch<SpreadA>(stream, whole, sums->of_a, TSR_EXACT_SUMS, whole->depth));
    return launch<SpreadB>(stream, whole, sums->of_b, TSR_EXACT_SUMS, whole->depth);
}

/* The lower half may have no rows, and then the upper one has less than it has room for. */
tsr_residue_args tsr_winograd_quarters(const tsr_residue_args *whole, tsr_residue_sums *sums, void *workspace) {
    tsr_residue_args own = *whole;
    own.quarters = true;
    own.planes *= TSR_QUARTER_PRODUCTS;
    own.rows_a /= 2;
    own.rows_b /= 2;
    own.k = own.depth /= 2;
    own.m = tsr_min(whole->m, own.rows_a);
    own.n = tsr_min(whole->n, own.rows_b);
    own.blocks = NULL;
    own.listed = false;
    own.workspace = workspace;
    if (!whole->sums) return own;
    *sums = *whole->sums;
    sums->lines_a = sums->lines_b = TSR_EXACT_SUMS / 2;
    own.sums = sums;
    return own;
}

tsr_status tsr_winograd_gather(tsr_stream *stream, const tsr_residue_args *whole, int8_t *c) {
    const tsr_residue_sums *sums = whole->sums;
    TSR_TRY(check(whole));
    TSR_TRY(launch<Gather<false>>(stream, whole, c, whole->rows_a, whole->rows_b));
    if (!sums) return TSR_OK;
    TSR_TRY(launch<Gather<false>>(stream, whole, sums->columns, TSR_EXACT_SUMS, whole->rows_b));
    return launch<Gather<true>>(stream, whole, sums->rows, TSR_EXACT_SUMS, whole->rows_a);
}
