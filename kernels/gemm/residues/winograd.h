/* Winograd's form of Strassen's algorithm for products of residues (products.h): seven products of quarters in place of
 * eight. It adds and subtracts, which is exact modulo p, so the residues of C are the same.
 *   With A, B and C cut in two by two quarters, A00 … C11:
 *   S1 = A10 + A11,  S2 = S1 − A00,  S3 = A00 − A10,  S4 = A01 − S2
 *   T1 = B01 − B00,  T2 = B11 − T1,  T3 = B11 − B01,  T4 = T2 − B10
 *   P1 = A00·B00,  P2 = A01·B10,  P3 = S4·B11,  P4 = A11·T4,  P5 = S1·T1,  P6 = S2·T2,  P7 = S3·T3
 *   C00 = P1 + P2,  C01 = P1 + P6 + P5 + P3,  C10 = P1 + P6 + P7 − P4,  C11 = P1 + P6 + P7 + P5
 * S and T stand in quarters of planes behind those of A and B. P1 … P4 stand where C will, the others behind it.
 *   Sums of lines (tsr_residue_sums) and their products go the same way: a line of A's sums is of one of its halves.
 * All memory is the device's, and not owned. Asynchronous on the stream.
 * Reference: S. Winograd, Linear Algebra and its Applications 4 (1971), 381-388. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_WINOGRAD_H
#define TSR_KERNELS_GEMM_RESIDUES_WINOGRAD_H

#include "kernels/gemm/residues/products.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A product `whole` in three steps: this one, the product tsr_winograd_quarters, and tsr_winograd_gather. Of it,
 * apart > 0: a, b, their sums, c and what is made of sums have as many planes behind the first, `apart` from these on.
 * Rows are multiples of 2 · TSR_EXACT_TILE, and depth of 2 · TSR_EXACT_DEPTH. Lines of sums of a lower half begin at
 * TSR_EXACT_SUMS / 2. All tiles are made. */
tsr_status tsr_winograd_spread(tsr_stream *stream, const tsr_residue_args *whole);
/* What tsr_residue_products takes then. sums: where those of the result are to be. workspace:
 * tsr_winograd_workspace(rows_a, rows_b) bytes, not that of whole, which is for less. */
tsr_residue_args tsr_winograd_quarters(const tsr_residue_args *whole, tsr_residue_sums *sums, void *workspace);
tsr_status tsr_winograd_gather(tsr_stream *stream, const tsr_residue_args *whole, int8_t *c);

size_t tsr_winograd_workspace(int64_t rows_a, int64_t rows_b);

#ifdef __cplusplus
}
#endif
#endif
