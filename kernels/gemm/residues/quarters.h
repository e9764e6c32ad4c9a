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

/* Of a plane of a product: its modulus' number, and where its quarter begins, in rows of all planes and in columns. */
struct tsr_quarter {
    int modulus, row, column;
};
/* rows, columns: of a quarter; 7 · modulus + product is the plane's number. */
static __device__ __forceinline__ tsr_quarter tsr_quarter_of(int plane, unsigned quarters, int apart, int rows,
                                                             int columns) {
    const int modulus = plane / TSR_QUARTER_PRODUCTS, product = plane % TSR_QUARTER_PRODUCTS;
    const int at = (int)(quarters >> 4 * product);
    const int matrix = at & 4 ? modulus + apart : modulus;
    return {modulus, (2 * matrix + (at >> 1 & 1)) * rows, (at & 1) * columns};
}

#endif
