/* A, B and C of `tessera bench multiply`: in host memory that all ranks of the one node share, or made on the
 * devices. A and B are generated (kernels/fill/fill.h) with seeds TSR_BENCH_SEED_A and _B. */
#ifndef TSR_APP_BENCH_BENCH_OPERANDS_H
#define TSR_APP_BENCH_BENCH_OPERANDS_H

#include "io/store.h"
#include "mpi/ranks/world.h"

#define TSR_BENCH_SEED_A 1
#define TSR_BENCH_SEED_B 2

typedef struct {
    int64_t m, n, k;
    tsr_dtype input; /* of A (m × k) and B (k × n) */
    tsr_dtype type;  /* of C (m × n) */
    tsr_fill_kind fill;
    bool memory; /* false: A and B are made where they are used, C has no store */
    void *base;  /* with memory: the mapping that holds all three, `bytes` long */
    size_t bytes;
    tsr_view a, b, c; /* with memory */
    tsr_store *store_a, *store_b, *store_c;
    tsr_device *pinned; /* the device the memory is pinned for; NULL: not pinned. Not owned */
} tsr_bench_operands;

/* Collective over world. m, n, k, input, type, fill and memory are set. With memory: TSR_ERR_UNSUPPORTED on several
 * nodes; every rank fills its rows of A and B and touches its rows of C, with all cores. On failure the operands are
 * to be closed, too. */
tsr_status tsr_bench_operands_open(const tsr_world *world, tsr_bench_operands *operands);
/* Local. Pins the memory for the device, which is in use by this thread; nothing where there is none. */
tsr_status tsr_bench_operands_pin(tsr_bench_operands *operands, tsr_device *device);
void tsr_bench_operands_close(tsr_bench_operands *operands); /* Local; unpins. All zeros is fine */

#endif
