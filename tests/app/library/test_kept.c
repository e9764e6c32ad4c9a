/* Memory of tessera_allocate on an emulated GPU: pinned once, copied at once, shared by all ranks, and released;
 * buffers of plans that stay from call to call. On any number of ranks. */
#include "tests/app/library/tessera_check.h"

#include <stdlib.h>

#include "app/library/api/context.h"
#include "kernels/device/device.h"
#include "mpi/execute/memory/kept.h"

enum { SIDE = 40 };
static int rank, ranks;
static tessera_context *tessera;

static tessera_matrix matrix(double *data, int shared) {
    tessera_matrix m = {.size = sizeof m, .type = "f64", .data = data, .rows = SIDE, .cols = SIDE, .shared = shared};
    if (!shared) m.grid_rows = m.grid_cols = 1; /* on rank 0 */
    return m;
}

static void check_product(const double *a, const double *b, const double *c) {
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0;
            for (int l = 0; l < SIDE; l++) sum += a[i * SIDE + l] * b[l * SIDE + j];
            CHECK(c[i * SIDE + j] == sum, "(%d, %d): %g for %g", i, j, c[i * SIDE + j], sum);
        }
}

/* Seconds and bytes of the lanes are the record's: whether a byte went through buffers. */
static double read_bytes(const tessera_matrix x[3], const tessera_multiply_options *o) {
    tessera_record *record;
    CHECK_OK(tessera_multiply_matrices(tessera, &x[0], &x[1], &x[2], o, &record));
    const char *at = strstr(tessera_record_json(record), "\"read_bytes\": ");
    const double bytes = at ? atof(at + strlen("\"read_bytes\": ")) : -1;
    tessera_record_free(record);
    return bytes;
}

static int is_pinned(const void *data) { return tsr_device_cuda.is_pinned(NULL, data, SIDE * SIDE * sizeof(double)); }

/* The same memory as four matrices each: small ones, which are planned as a stack. */
static void check_stack(double *all, const tessera_multiply_options *o) {
    enum { COUNT = 4, EDGE = SIDE / 2 };
    const int64_t count = COUNT;
    tessera_matrix x[3];
    for (int i = 0; i < 3; i++) {
        x[i] = matrix(all + i * SIDE * SIDE, 1);
        x[i].rows = x[i].cols = EDGE;
        x[i].stack_dimensions = 1;
        x[i].stack = &count;
    }
    CHECK(read_bytes(x, o) == 0, "A and B went through buffers");
    for (int i = 0; i < COUNT * EDGE; i++)
        for (int j = 0; j < EDGE; j++) {
            const double *a = all + i * EDGE, *b = all + SIDE * SIDE + i / EDGE * EDGE * EDGE;
            double sum = 0;
            for (int l = 0; l < EDGE; l++) sum += a[l] * b[l * EDGE + j];
            CHECK(all[2 * SIDE * SIDE + i * EDGE + j] == sum, "row %d, column %d", i, j);
        }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void check_shared(const tessera_multiply_options *o) {
    void *memory;
    CHECK_OK(tessera_allocate(tessera, 4 * SIDE * SIDE * sizeof(double), &memory));
    double *all = memory;
    CHECK(all[0] == 0 && all[4 * SIDE * SIDE - 1] == 0, "not zeros");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = rank; i < 2 * SIDE * SIDE; i += ranks) all[i] = i % 5 - 2;
    MPI_Barrier(MPI_COMM_WORLD);
    const tessera_matrix x[3] = {matrix(all, 1), matrix(all + SIDE * SIDE, 1), matrix(all + 2 * SIDE * SIDE, 1)};
    CHECK(!is_pinned(all), "pinned before a GPU was used");
    for (int call = 0; call < 3; call++) {
        CHECK(read_bytes(x, o) == 0, "A and B went through buffers");
        CHECK(is_pinned(all) && is_pinned(all + 3 * SIDE * SIDE), "not pinned behind call %d", call);
        check_product(all, all + SIDE * SIDE, all + 2 * SIDE * SIDE);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = rank; i < SIDE * SIDE; i += ranks) all[2 * SIDE * SIDE + i] = -1;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK(tsr_kept_free_bytes(tessera->kept, TSR_KEPT_DEVICE) > 0, "no buffer of the device stays");
    tessera_trim(tessera);
    CHECK(tsr_kept_free_bytes(tessera->kept, TSR_KEPT_DEVICE) == 0 && is_pinned(all), "trimmed");
    tessera_trim(NULL);
    check_stack(all, o);
    tessera_release(tessera, memory);
    CHECK(!is_pinned(memory), "pinned when it is gone");
    tessera_release(tessera, NULL);
}

/* Of one rank any array that is pinned is copied at once, and others go through buffers. */
static void check_own(const tessera_multiply_options *o) {
    double *data = aligned_alloc(4096, 4 * 4096 * sizeof *data);
    const tessera_matrix x[3] = {matrix(data, 0), matrix(data + 4096, 0), matrix(data + 8192, 0)};
    for (int i = 0; i < 4 * 4096; i++) data[i] = i % 7 - 3;
    CHECK(read_bytes(x, o) > 0, "pageable arrays were copied by the device");
    if (rank == 0) check_product(data, data + 4096, data + 8192);
    CHECK_OK(tsr_device_cuda.pin(NULL, data, 4 * 4096 * sizeof *data));
    const double read = read_bytes(x, o);
    CHECK(ranks > 1 || read == 0, "pinned arrays went through buffers: %g", read);
    if (rank == 0) check_product(data, data + 4096, data + 8192);
    CHECK(is_pinned(data), "unpinned what is the caller's");
    tsr_device_cuda.unpin(NULL, data);
    free(data);
}

/* A window that ranks share, which is the caller's: pinned for the call. */
static void check_window(const tessera_multiply_options *o) {
    MPI_Win window;
    MPI_Aint bytes;
    int unit;
    double *all;
    MPI_Win_allocate_shared(rank == 0 ? 3 * SIDE * SIDE * 8 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &all, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &all);
    for (int i = rank; i < 2 * SIDE * SIDE; i += ranks) all[i] = i % 5 - 2;
    MPI_Barrier(MPI_COMM_WORLD);
    const tessera_matrix x[3] = {matrix(all, 1), matrix(all + SIDE * SIDE, 1), matrix(all + 2 * SIDE * SIDE, 1)};
    for (int call = 0; call < 2; call++) {
        CHECK(read_bytes(x, o) == 0, "A and B went through buffers");
        check_product(all, all + SIDE * SIDE, all + 2 * SIDE * SIDE);
        CHECK(!is_pinned(all), "pinned behind the call");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&window);
}

/* ---- the list itself ------------------------------------------------------------------------- */

static void check_buffers(tsr_kept_kind kind) {
    tsr_kept *kept;
    tsr_device *device;
    void *first, *second, *third;
    const tsr_kept_kind other = kind == TSR_KEPT_HOST ? TSR_KEPT_DEVICE : TSR_KEPT_HOST;
    CHECK_OK(tsr_kept_open(&kept));
    CHECK_OK(tsr_device_cuda.open(0, &device));
    CHECK_OK(tsr_kept_take(kept, device, kind, 1000, &first));
    CHECK_OK(tsr_kept_take(kept, device, kind, 1000, &second));
    CHECK(first != second && tsr_kept_free_bytes(kept, kind) == 0, "one block for two");
    tsr_kept_return(kept, device, kind, first);
    CHECK(tsr_kept_free_bytes(kept, kind) == 1000, "%zu", tsr_kept_free_bytes(kept, kind));
    CHECK_OK(tsr_kept_take(kept, device, other, 1000, &third)); /* the other kind's stay */
    tsr_kept_return(kept, device, other, third);
    CHECK(tsr_kept_free_bytes(kept, kind) == 1000 && tsr_kept_free_bytes(kept, other) == 1000, "kinds are mixed up");
    CHECK_OK(tsr_kept_take(kept, device, kind, 600, &third));
    CHECK(third == first, "a block that fits was left");
    tsr_kept_return(kept, device, kind, third);
    CHECK_OK(tsr_kept_take(kept, device, kind, 400, &third)); /* none fits: what is free goes */
    CHECK(tsr_kept_free_bytes(kept, kind) == 0, "%zu", tsr_kept_free_bytes(kept, kind));
    tsr_kept_return(kept, device, kind, third);
    tsr_kept_return(kept, device, kind, second);
    tsr_kept_return(kept, device, kind, NULL);
    CHECK(tsr_kept_free_bytes(kept, kind) == 1400 && !tsr_kept_any(kept), "%zu", tsr_kept_free_bytes(kept, kind));
    CHECK_OK(tsr_kept_take(NULL, device, kind, 1000, &first));
    tsr_kept_return(NULL, device, kind, first);
    CHECK(tsr_kept_free_bytes(NULL, kind) == 0, "of nothing");
    tsr_kept_close(kept);
    tsr_kept_close(NULL);
    device->ops->close(device);
}

static void check_refusals(void) {
    void *memory = &memory;
    CHECK_FAILS(tessera_allocate(NULL, 1, &memory), TESSERA_ERR_USAGE, "a context and a place");
    CHECK(!memory, "set after a failure");
    CHECK_FAILS(tessera_allocate(tessera, 1, NULL), TESSERA_ERR_USAGE, "a context and a place");
    CHECK_FAILS(tessera_allocate(tessera, (size_t)1 << 60, &memory), TESSERA_ERR_MEMORY,
                "matrices that ranks share need");
    CHECK_OK(tessera_allocate(tessera, 0, &memory));
    tessera_release(tessera, memory);
    tessera_release(tessera, memory); /* it is none of the context's any more */
}

int main(int argc, char **argv) {
    int granted;
    tessera_multiply_options o = tessera_multiply_defaults();
    o.device = "cuda";
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    check_buffers(TSR_KEPT_HOST);
    check_buffers(TSR_KEPT_DEVICE);
    CHECK_OK(tessera_open(MPI_COMM_WORLD, NULL, &tessera));
    check_shared(&o);
    check_own(&o);
    check_window(&o);
    check_refusals();
    void *left;
    CHECK_OK(tessera_allocate(tessera, 1 << 20, &left)); /* goes with the context */
    tessera_close(tessera);
    MPI_Finalize();
    return 0;
}
