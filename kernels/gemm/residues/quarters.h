/* Where the operands of seven products of quarters stand, and what they make (winograd.h). */
#ifndef TSR_KERNELS_GEMM_RESIDUES_QUARTERS_H
#define TSR_KERNELS_GEMM_RESIDUES_QUARTERS_H

#include "kernels/device/cuda_compat.h"
#include "kernels/gemm/residues/products.h"

/* A quarter of a plane: from the lowest bit on its half of the columns, its half of the rows, and whether it stands in
 * the planes behind. A number has a digit for each of the products P1 … P7. Rows of B's planes are columns of B. */
constexpr int TSR_QUARTER_PRODUCTS = 7;
constexpr unsigned TSR_QUARTERS_OF_A = 0x6543710; /* A00 A01 S4 A11 S1 S2 S3 */
constexpr unsigned TSR_QUARTERS_OF_B = 0x6547310; /* B00 B10 B11 T4 T1 T2 T3 */
constexpr unsigned TSR_QUARTERS_OF_C = 0x6543210; /* P1 … P7, each in a place of its own */

/* Where a quarter of a plane begins, in rows of all planes and in columns. rows, columns: of a quarter. */
struct tsr_quarter {
    int row, column;
};
static __device__ __forceinline__ tsr_quarter tsr_quarter_at(int plane, unsigned quarter, int apart, int rows,
                                                             int columns) {
    const int matrix = quarter & 4 ? plane + apart : plane;
    return {(2 * matrix + (int)(quarter >> 1 & 1)) * rows, (int)(quarter & 1) * columns};
}
/* The plane of a product is 7 · that of its modulus + its number among P1 … P7. */
static __device__ __forceinline__ int tsr_quarter_modulus(int plane) { return plane / TSR_QUARTER_PRODUCTS; }
static __device__ __forceinline__ tsr_quarter tsr_quarter_of(int plane, unsigned quarters, int apart, int rows,
                                                             int columns) {
    return tsr_quarter_at(tsr_quarter_modulus(plane), quarters >> 4 * (plane % TSR_QUARTER_PRODUCTS), apart, rows,
                          columns);
}

#endif
