/* Operation: C_p = A_p·B_pᵀ for planes of bytes, both K-major, sums exact in int32; of these either the residues modulo
 * each plane's modulus, as bytes, or what proofs want of them (products.h). On devices of sm_90 by
 * products_hopper.cu, on all others by the kernel here, which is plain.
 * Mapping: blocks of 256 threads stride over tiles of 64 × 64 of all planes, 4 × 4 sums a thread, 16 apart; __dp4a adds
 * four products. Products of sums of lines are launches of their own.
 * Shared memory: 64 × 64 bytes of A and of B, rows a word apart from a multiple of the banks, 8.5 KiB.
 * Registers: no limit.
 * Requirements: sm_61 or newer.
 * Arithmetic intensity: 2·64·64·64 / (64·(64 + 64)) = 64 op/byte.
 * Measured: not, it makes the same bits where no tensor cores of sm_90 are.
 * Reference: Ozaki, Uchino, Imamura, arXiv 2504.08009. */
#include "kernels/gemm/flips.h"
#include "kernels/gemm/residues/quarters.h"
#include "kernels/gemm/residues/tiles.h"
#include "kernels/gemm/residues/winograd.h"

namespace {

constexpr int SIDE = 64;  /* of a tile, in elements */
constexpr int WORDS = 16; /* of 4 bytes along k that are in shared memory at once */
constexpr int ACROSS = 16, THREADS = ACROSS * ACROSS;
constexpr int EACH = SIDE / ACROSS; /* rows and columns of a thread */

/* What a product of planes makes: C, or of sums of A the products with lines of B, or of sums of B those with A's. */
enum Making { MAKING_C, MAKING_COLUMNS, MAKING_ROWS };

/* Planes, or quarters of planes (winograd.h): rows × columns of each. */
struct Planes {
    int8_t *at;
    int64_t rows, columns;
    unsigned quarters; /* 0: they are whole */
    int apart;

    __device__ __forceinline__ int64_t row_bytes() const { return quarters ? 2 * columns : columns; }
    __device__ __forceinline__ int8_t *row(int plane, int64_t row) const {
        if (!quarters) return at + (plane * rows + row) * columns;
        const tsr_quarter start = tsr_quarter_of(plane, quarters, apart, (int)rows, (int)columns);
        return at + (start.row + row) * row_bytes() + start.column;
    }
};

struct Operands {
    Planes a, b;
    int64_t m, n;
    int planes;
    tsr_residue_blocks blocks; /* of C */
    Making making;             /* lines of the other operand are columns here */
    tsr_residue_condition condition;

    __device__ __forceinline__ bool wants(int64_t row, int64_t col) const {
        const int tile_col = (int)(col / TSR_EXACT_TILE);
        if (making == MAKING_C) return blocks.wants((int)(row / TSR_EXACT_TILE), tile_col);
        return making == MAKING_COLUMNS ? blocks.wants_column(tile_col) : blocks.wants_row(tile_col);
    }
};

/* Sums to residues, and to C. */
struct Residues {
    Planes c;
    tsr_residue_moduli moduli;

    __device__ __forceinline__ void put(int plane, int64_t row, int64_t col, const int (&sum)[EACH][EACH]) const {
        const int number = c.quarters ? tsr_quarter_modulus(plane) : plane;
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++)
                c.row(plane, row + i * ACROSS)[col + j * ACROSS] =
                    (int8_t)tsr_residue(sum[i][j], moduli.modulus[number], moduli.inverse[number]);
    }
};

/* Sums to levels, and to that of their block of C. */
struct Levels {
    tsr_residue_levels_args of;
    int64_t m, n, k;
    int64_t ld; /* blocks from row to row */

    __device__ __forceinline__ void put(int, int64_t row, int64_t col, const int (&sum)[EACH][EACH]) const {
        const int64_t block = row / TSR_EXACT_BLOCK * ld + col / TSR_EXACT_BLOCK;
        unsigned level = 0;
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++) {
                const int64_t at_row = row + i * ACROSS, at_col = col + j * ACROSS;
                if (at_row >= m || at_col >= n) continue;
                const int own = tsr_exact_level(of.rows + at_row, of.columns + at_col, k, of.allowed, sum[i][j]);
                level = max(level, (unsigned)own);
                if (own == TSR_EXACT_LAST) tsr_residue_note_few(of.few + block, (int)at_row, (int)at_col);
                if (own == TSR_EXACT_LOOP)
                    atomicOr(of.left + (at_row * ld * TSR_EXACT_BLOCK + at_col) / 32, 1u << at_col % 32);
            }
        if (level > 0) atomicMax(of.needed + block, level);
    }
};

/* Sums to elements that are left no more. */
struct Meetings {
    tsr_residue_blocks blocks;
    unsigned *left;

    __device__ __forceinline__ void put(int, int64_t row, int64_t col, const int (&sum)[EACH][EACH]) const {
        if (!blocks.wants_block((int)(row / TSR_EXACT_BLOCK), (int)(col / TSR_EXACT_BLOCK))) return;
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++) {
                const int64_t at = (row + i * ACROSS) * blocks.ld * TSR_EXACT_BLOCK + col + j * ACROSS;
                if (tsr_exact_meets_well(sum[i][j])) atomicAnd(left + at / 32, ~(1u << at % 32));
            }
    }
};

/* A slice of an operand's rows, WORDS long, to shared memory. */
__device__ __forceinline__ void load(int (&to)[SIDE][WORDS + 1], const Planes &from, int plane, int64_t row,
                                     int64_t word) {
    const int8_t *first = from.row(plane, row);
    for (int i = (int)threadIdx.x; i < SIDE * WORDS; i += THREADS)
        to[i / WORDS][i % WORDS] =
            reinterpret_cast<const int *>(first + i / WORDS * from.row_bytes())[word + i % WORDS];
}

template <typename Epilogue> __global__ void __launch_bounds__(THREADS) products(Operands o, Epilogue epilogue) {
    tsr_cuda_begin();
    __shared__ int a[SIDE][WORDS + 1], b[SIDE][WORDS + 1];
    const int row = (int)threadIdx.x / ACROSS, col = (int)threadIdx.x % ACROSS;
    const int64_t tiles_n = o.b.rows / SIDE, tiles = o.a.rows / SIDE * tiles_n;
    if (tsr_residue_idle(o.condition)) return;
    for (int64_t work = blockIdx.x; work < o.planes * tiles; work += gridDim.x) {
        const int plane = (int)(work / tiles);
        const int64_t first_row = work % tiles / tiles_n * SIDE, first_col = work % tiles_n * SIDE;
        if (first_row >= o.m || first_col >= o.n) continue;
        if (!o.wants(first_row, first_col)) continue;
        int sum[EACH][EACH] = {};
        for (int64_t word = 0; word < o.a.columns / 4; word += WORDS) {
            __syncthreads();
            load(a, o.a, plane, first_row, word);
            load(b, o.b, plane, first_col, word);
            TSR_FLIP_WORD(TSR_FLIP_TILE_A, &a[row + col % EACH * ACROSS][col]);
            TSR_FLIP_WORD(TSR_FLIP_TILE_B, &b[row + col % EACH * ACROSS][col]);
            __syncthreads();
            for (int l = 0; l < WORDS; l++)
                for (int i = 0; i < EACH; i++)
                    for (int j = 0; j < EACH; j++)
                        sum[i][j] = __dp4a(a[row + i * ACROSS][l], b[col + j * ACROSS][l], sum[i][j]);
        }
        TSR_FLIP_WORD(TSR_FLIP_SUM, &sum[col % EACH][row % EACH]);
        epilogue.put(plane, first_row + row, first_col + col, sum);
    }
}

template <typename Epilogue>
tsr_status launch_operands(tsr_stream *stream, const Operands &o, const Epilogue &epilogue) {
    int most = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most));
    const int64_t tiles = o.planes * (o.a.rows / SIDE) * (o.b.rows / SIDE);
    return TSR_LAUNCH_NEXT(products<Epilogue>, (unsigned)tsr_min(tiles, most), THREADS, 0, stream, o, epilogue);
}

/* Planes of these: quarters of A, B or C where it makes products of such. */
Planes planes_of(const tsr_residue_args *args, const int8_t *at, int64_t rows, int64_t columns, unsigned quarters) {
    return {const_cast<int8_t *>(at), rows, columns, args->quarters ? quarters : 0, args->apart};
}
Planes planes_a(const tsr_residue_args *args) {
    return planes_of(args, args->a, args->rows_a, args->depth, TSR_QUARTERS_OF_A);
}
Planes planes_b(const tsr_residue_args *args) {
    return planes_of(args, args->b, args->rows_b, args->depth, TSR_QUARTERS_OF_B);
}
Residues residues_to(const tsr_residue_args *args, int8_t *to, int64_t rows, int64_t columns) {
    return {planes_of(args, to, rows, columns, TSR_QUARTERS_OF_C), tsr_residue_moduli_all()};
}

template <typename Epilogue>
tsr_status launch(tsr_stream *stream, const tsr_residue_args *args, const Epilogue &epilogue) {
    const Operands o = {planes_a(args), planes_b(args), args->m, args->n, args->planes, tsr_residue_blocks_of(args),
                        MAKING_C,       args->condition};
    return launch_operands(stream, o, epilogue);
}

/* Products of an operand's sums, `lines` of them, with the other's `others` lines. */
tsr_status launch_sums(tsr_stream *stream, const tsr_residue_args *args, Making making, const int8_t *sums,
                       int64_t lines, const Planes &other, int64_t others, int8_t *to) {
    const int64_t all = TSR_EXACT_SUMS / (args->quarters ? 2 : 1);
    const unsigned quarters = making == MAKING_COLUMNS ? TSR_QUARTERS_OF_A : TSR_QUARTERS_OF_B;
    const Operands o = {planes_of(args, sums, all, args->depth, quarters),
                        other,
                        lines,
                        others,
                        args->planes,
                        tsr_residue_blocks_of(args),
                        making,
                        args->condition};
    return launch_operands(stream, o, residues_to(args, to, all, other.rows));
}

bool is_rounded(int64_t rounded, int64_t count, int64_t unit) {
    return rounded == tsr_round_up(count, unit) || rounded == tsr_round_up(count, 2 * unit);
}
tsr_status check(const tsr_residue_args *args) {
    const int most = TSR_EXACT_MODULI_MOST * (args->quarters ? TSR_QUARTER_PRODUCTS : 1);
    const bool fits = args->planes >= 1 && args->planes <= most && args->m >= 1 && args->n >= 1 && args->k >= 1 &&
                      args->k <= TSR_EXACT_RANGE;
    const int lines = args->sums ? tsr_max(args->sums->lines_a, args->sums->lines_b) : 0;
    if (lines > TSR_EXACT_SUMS)
        return tsr_fail(TSR_ERR_SHAPE, "no products of %d sums of lines: %d at most", lines, TSR_EXACT_SUMS);
    if (fits && is_rounded(args->rows_a, args->m, TSR_EXACT_TILE) &&
        is_rounded(args->rows_b, args->n, TSR_EXACT_TILE) && is_rounded(args->depth, args->k, TSR_EXACT_DEPTH))
        return TSR_OK;
    return tsr_fail(TSR_ERR_SHAPE,
                    "no products of residues of %d planes of %lld x %lld x %lld: 1 to %d planes, k up to %d, rows "
                    "rounded up to %d and k to %d, or to twice that",
                    args->planes, (long long)args->m, (long long)args->n, (long long)args->k, most, TSR_EXACT_RANGE,
                    TSR_EXACT_TILE, TSR_EXACT_DEPTH);
}

#if defined(TSR_HAVE_HOPPER) && !defined(TSR_EMULATE_CUDA)
/* Whether the current device has the tensor cores of products_hopper.cu. */
tsr_status on_hopper(bool *so) {
    int major = 0, minor = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrComputeCapabilityMajor, &major));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrComputeCapabilityMinor, &minor));
    *so = major == 9 && minor == 0;
    return TSR_OK;
}
#define RETURN_ON_HOPPER(call)                                                                                         \
    do {                                                                                                               \
        bool hopper = false;                                                                                           \
        TSR_TRY(on_hopper(&hopper));                                                                                   \
        if (hopper) return call;                                                                                       \
    } while (0)
#else
#define RETURN_ON_HOPPER(call) (void)0
#endif

} // namespace

/* How far workers are, a count, and a list behind it, of each plane: at most all tiles, and with each row and column of
 * them all chunks that may meet it, of sums and of last lines. */
size_t tsr_residue_list_bytes(int64_t planes, int64_t m, int64_t n) {
    const int64_t rows = tsr_ceil_div(m, TSR_EXACT_TILE), columns = tsr_ceil_div(n, TSR_EXACT_TILE);
    const int64_t beside = (rows + columns) * (TSR_EXACT_SUMS / TSR_RESIDUE_CHUNK + 1);
    return (size_t)tsr_round_up(
        TSR_RESIDUE_PROGRESS_BYTES + (1 + planes * (rows * columns + beside)) * (int64_t)sizeof(unsigned), 256);
}
size_t tsr_residue_workspace(int64_t m, int64_t n) {
    const int64_t rows = tsr_round_up(m, 2 * TSR_EXACT_TILE), columns = tsr_round_up(n, 2 * TSR_EXACT_TILE);
    const int64_t blocks = rows / TSR_EXACT_BLOCK * (columns / TSR_EXACT_BLOCK);
    const size_t early = tsr_residue_list_bytes(1, m, n) + (size_t)(blocks * TSR_RESIDUE_EARLY_BYTES);
    return tsr_max(tsr_residue_list_bytes(TSR_EXACT_MODULI_MOST, m, n), early);
}
size_t tsr_winograd_workspace(int64_t rows_a, int64_t rows_b) {
    return tsr_residue_list_bytes(TSR_QUARTER_PRODUCTS * TSR_EXACT_MODULI_MOST, rows_a / 2, rows_b / 2);
}

tsr_status tsr_residue_list(tsr_device *, tsr_stream *stream, const tsr_residue_args *products,
                            const tsr_residue_args *meetings) {
    for (int i = 0; i < TSR_RESIDUE_LISTS - 1; i++) TSR_TRY(check(products + i));
    TSR_TRY(check(meetings));
    RETURN_ON_HOPPER(tsr_residue_list_hopper(stream, products, meetings));
    (void)stream; /* tiles are asked one by one here */
    return TSR_OK;
}

tsr_status tsr_residue_products(tsr_device *, tsr_stream *stream, const tsr_residue_args *args, int8_t *c) {
    TSR_TRY(check(args));
    RETURN_ON_HOPPER(tsr_residue_products_hopper(stream, args, c));
    TSR_TRY(launch(stream, args, residues_to(args, c, args->rows_a, args->rows_b)));
    const tsr_residue_sums *sums = args->sums;
    if (!sums) return TSR_OK;
    TSR_TRY(
        launch_sums(stream, args, MAKING_COLUMNS, sums->of_a, sums->lines_a, planes_b(args), args->n, sums->columns));
    return launch_sums(stream, args, MAKING_ROWS, sums->of_b, sums->lines_b, planes_a(args), args->m, sums->rows);
}

tsr_status tsr_residue_levels(tsr_device *, tsr_stream *stream, const tsr_residue_args *args,
                              const tsr_residue_levels_args *levels) {
    TSR_TRY(check(args));
    RETURN_ON_HOPPER(tsr_residue_levels_hopper(stream, args, levels));
    return launch(stream, args, Levels{*levels, args->m, args->n, args->k, args->rows_b / TSR_EXACT_BLOCK});
}

tsr_status tsr_residue_meetings(tsr_device *, tsr_stream *stream, const tsr_residue_args *args, unsigned *left) {
    TSR_TRY(check(args));
    RETURN_ON_HOPPER(tsr_residue_meetings_hopper(stream, args, left));
    return launch(stream, args, Meetings{tsr_residue_blocks_of(args), left});
}
