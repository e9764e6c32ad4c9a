/* The peer of `tessera bench multiply`: rank 0 multiplies the same matrices, in the same pinned memory, with
 * NVIDIA's cublasXt over all GPUs of the node, while the other ranks sleep. */
#include <math.h>
#include <time.h>

#include "app/bench/bench_multiply.h"
#ifdef TSR_HAVE_CUBLAS
#include "kernels/gemm/vendor/gemm_cublasxt.h"
#endif

#ifdef TSR_HAVE_CUBLAS
/* Local, on rank 0. The best of `repeat` products with each block size. */
static tsr_status measure(tsr_bench_multiply_run *b) {
    const tsr_bench_multiply_options *o = b->o;
    tsr_cublasxt *library = NULL;
    tsr_status status = TSR_OK;
    b->peer.fastest = 0;
    TSR_TRY_DONE(tsr_cublasxt_open(&library, &b->peer.devices));
    for (int i = 0; i < o->block_count; i++) {
        b->peer.best[i] = INFINITY;
        TSR_TRY_DONE(tsr_cublasxt_set_block(library, o->blocks[i]));
        for (int64_t r = 0; r < o->repeat; r++) {
            const double start = tsr_now_seconds();
            TSR_TRY_DONE(tsr_cublasxt_multiply(library, o->type, o->shape.m, o->shape.n, o->shape.k, b->data.a.data,
                                               b->data.b.data, b->data.c.data));
            b->peer.best[i] = fmin(b->peer.best[i], tsr_now_seconds() - start);
        }
        if (b->peer.best[i] < b->peer.best[b->peer.fastest]) b->peer.fastest = i;
    }
done:
    tsr_cublasxt_close(library);
    return status;
}
#else
static tsr_status measure(tsr_bench_multiply_run *b) {
    return tsr_fail(TSR_ERR_UNSUPPORTED,
                    "--peer %s: this build has no cuBLAS; configure again where CUDA is found, or leave --peer out",
                    b->o->peer);
}
#endif

/* A barrier whose waiters leave the cores to the one that works. */
static tsr_status wait_asleep(MPI_Comm comm) {
    MPI_Request request;
    int done = 0;
    TSR_TRY(TSR_MPI(MPI_Ibarrier(comm, &request)));
    for (;;) {
        TSR_TRY(TSR_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE)));
        if (done) return TSR_OK;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
}

tsr_status tsr_bench_peer_run(tsr_bench_multiply_run *b) {
    const tsr_world *world = b->world;
    /* as gemm_cublas.c states it */
    const double bound = 2.1 * (double)b->o->shape.k * tsr_dtype_roundoff(b->o->type);
    tsr_status status = TSR_OK;
    if (b->job.facts.kind != TSR_DEVICE_CUDA)
        status = tsr_fail(TSR_ERR_UNSUPPORTED, "--peer %s needs GPUs: leave it out on a CPU", b->o->peer);
    TSR_TRY(tsr_agree(world->comm, status));
    tsr_bench_poison(b);
    TSR_TRY(TSR_MPI(MPI_Barrier(world->comm)));
    if (world->rank == 0) status = measure(b);
    /* the library has had all GPUs in its hands */
    if (status == TSR_OK) status = b->job.device->ops->use(b->job.device);
    TSR_TRY(wait_asleep(world->comm));
    TSR_TRY(tsr_agree(world->comm, status));
    return tsr_bench_judge(b, bound, b->peer.check);
}
