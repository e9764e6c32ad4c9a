/* What `exact` wants on a GPU beside A, B and C, and how its time grows, also for builds without CUDA (exact.h). */
#include "kernels/gemm/exact/exact.h"
#include "kernels/gemm/residues/products.h"

/* Of each modulus of the last level a byte an element of both operands and of C, and for the check TSR_EXACT_SUMS lines
 * more of either; all that twice where there are products of quarters; a byte an element of both operands of what
 * proves levels; totals of blocks of lines, 8 bytes an element; facts of lines and their parts; levels of blocks, and a
 * bit an element of C; as much again is enough for lists of tiles. */
static size_t room(tsr_dtype type, int64_t m, int64_t n, int64_t k) {
    const int64_t planes = tsr_exact_moduli(type, TSR_EXACT_LAST), starts = 24 * 1024; /* of places */
    const int sides = tsr_exact_is_quartered(m, n, k) ? 2 : 1;
    const int64_t rows = tsr_round_up(tsr_min(m, TSR_EXACT_EDGE), sides * TSR_EXACT_TILE);
    const int64_t columns = tsr_round_up(tsr_min(n, TSR_EXACT_EDGE), sides * TSR_EXACT_TILE);
    const int64_t depth = tsr_round_up(tsr_min(k, TSR_EXACT_RANGE), sides * TSR_EXACT_DEPTH);
    const int64_t lines = (rows + columns) * (int64_t)sizeof(tsr_exact_proof) +
                          columns * (depth / TSR_EXACT_PART) * (int64_t)sizeof(tsr_exact_line);
    const int64_t checksums = planes * TSR_EXACT_SUMS * (2 * depth + rows + columns);
    const int64_t bytes = planes * (rows + columns) * depth + planes * rows * columns + checksums;
    const int64_t totals = (rows + columns) / TSR_EXACT_BLOCK * depth * (int64_t)sizeof(uint64_t);
    return (size_t)(sides * bytes + (rows + columns) * depth + totals + rows * columns / 4 + lines + starts);
}
size_t tsr_exact_room_f32(int64_t m, int64_t n, int64_t k) { return room(TSR_F32, m, n, k); }
size_t tsr_exact_room_f64(int64_t m, int64_t n, int64_t k) { return room(TSR_F64, m, n, k); }

/* So many multiply-adds take as long as an element of a line, an element of C, and the launches (few³). */
static double cost(int64_t m, int64_t n, int64_t k, double line, double last, double few) {
    const double rows = (double)tsr_max(1, tsr_min(m, TSR_EXACT_EDGE));
    const double columns = (double)tsr_max(1, tsr_min(n, TSR_EXACT_EDGE));
    const double depth = (double)tsr_max(1, tsr_min(k, TSR_EXACT_RANGE));
    return 1 + line / rows + line / columns + last / depth + few * few * few / (rows * columns * depth);
}
/* From speeds of 13 shapes on an H200, 1536³ to 8192³ and 512 or 1024 along one side (exact_auto, 2026-11-28): 8 % or
 * less from each. */
double tsr_exact_cost_f32(int64_t m, int64_t n, int64_t k) { return cost(m, n, k, 470, 570, 2120); }
double tsr_exact_cost_f64(int64_t m, int64_t n, int64_t k) { return cost(m, n, k, 350, 500, 1600); }
