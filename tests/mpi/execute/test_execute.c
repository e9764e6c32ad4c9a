/* The executor on real ranks: products of small integers are bitwise what the reference says, for every grid that
 * fits the job, small panels, tiny memory limits, transposes, types, alpha and beta, on the device named by the
 * argument (cpu by default) with every transport it can use; then 200 times for whatever chance makes of all that,
 * half of the time from HDF5 files of different layouts. With a second argument `each` (and 40 times), the products
 * take every kernel of the device in turn; else the one that auto takes. */
#include "tests/mpi/execute/one_product.h"

static void run_grids(bench *b) {
    for (int p = 1; p <= b->world.ranks; p++)
        for (int q = 1; p * q <= b->world.ranks; q++)
            for (int r = 1; p * q * r <= b->world.ranks; r++) {
                const setup all[] = {
                    {.m = 37,
                     .n = 29,
                     .k = 53,
                     .alpha = 1,
                     .type_a = TSR_F32,
                     .type_b = TSR_F32,
                     .panel = 7,
                     .memory = 1 << 20,
                     .grid = {p, q, r}},
                    {.m = 37,
                     .n = 29,
                     .k = 53,
                     .alpha = 2,
                     .beta = -3,
                     .type_a = TSR_I8,
                     .type_b = TSR_F64,
                     .transpose_a = true,
                     .memory = 1 << 14,
                     .grid = {p, q, r}},
                    {.m = 64,
                     .n = 61,
                     .k = 33,
                     .alpha = 2,
                     .type_a = TSR_F32,
                     .type_b = TSR_F32,
                     .panel = 9,
                     .memory = 1 << 20,
                     .grid = {p, q, r},
                     .exchange = q % 2,
                     .edge = 3},
                    {.m = 37,
                     .n = 29,
                     .k = 53,
                     .range = 6,
                     .alpha = 2,
                     .beta = -3,
                     .type_a = TSR_F32,
                     .type_b = TSR_F64,
                     .memory = 1 << 20,
                     .grid = {p, q, r}},
                    {.m = 2,
                     .n = 61,
                     .k = 1,
                     .alpha = 1,
                     .type_a = TSR_F16,
                     .type_b = TSR_F32,
                     .transpose_b = true,
                     .memory = 1 << 16,
                     .grid = {p, q, r}},
                    {.m = 67,
                     .n = 61,
                     .k = 40,
                     .alpha = 1,
                     .type_a = TSR_F64,
                     .type_b = TSR_F64,
                     .panel = 33,
                     .memory = 1 << 20,
                     .grid = {p, q, r},
                     .padded = true},
                    {.m = 67,
                     .n = 61,
                     .k = 40,
                     .alpha = 1,
                     .type_a = TSR_F64,
                     .type_b = TSR_F64,
                     .layout = MEMORY,
                     .c_path = TSR_DATA_PATH_MAPPED,
                     .memory = 1 << 20,
                     .grid = {p, q, r},
                     .direct = true,
                     .exchange = true,
                     .padded = true},
                };
                for (size_t i = 0; i < sizeof all / sizeof *all; i++) run_one(b, &all[i]);
            }
}

static void run_shapes(bench *b) {
    static const int64_t edges[] = {0, 1, 2, 17, 64};
    for (int i = 0; i < 125; i++) {
        setup s = {.m = edges[i % 5],
                   .n = edges[i / 5 % 5],
                   .k = edges[i / 25],
                   .alpha = 1,
                   .beta = i % 3 == 0 ? 1 : 0,
                   .type_a = TSR_F32,
                   .type_b = i % 2 ? TSR_F32 : TSR_I16,
                   .transpose_a = i % 2,
                   .transpose_b = i % 4 > 1,
                   .memory = (size_t)(i % 3 ? 1 << 20 : 6000)};
        run_one(b, &s);
    }
}

/* The same numbers on every rank. */
static int64_t chance(uint64_t *state, int64_t below) { return (int64_t)(splitmix64(state) % (uint64_t)below); }

static void run_random(bench *b, int runs) {
    static const tsr_dtype types[] = {TSR_F16, TSR_F32, TSR_F64, TSR_I8, TSR_I16, TSR_I32, TSR_I64};
    uint64_t state = 20261121;
    for (int i = 0; i < runs; i++) {
        setup s = {.m = 1 + chance(&state, 130),
                   .n = 1 + chance(&state, 130),
                   .k = 1 + chance(&state, 130),
                   .alpha = (double)(1 + chance(&state, 3)),
                   .beta = (double)chance(&state, 3) - 1,
                   .type_a = types[chance(&state, 7)],
                   .type_b = types[chance(&state, 7)]};
        s.transpose_a = chance(&state, 2);
        s.transpose_b = chance(&state, 2);
        s.panel = chance(&state, 2) ? 1 + chance(&state, s.k) : 0;
        s.memory = (size_t)1 << (12 + chance(&state, 9));
        s.any_memory = true;
        s.layout = (file_layout)(chance(&state, 2) ? 1 + chance(&state, 3) : 0);
        if (chance(&state, 2)) {
            s.grid[0] = 1 + (int)chance(&state, b->world.ranks);
            s.grid[1] = 1 + (int)chance(&state, b->world.ranks / s.grid[0]);
            s.grid[2] = 1 + (int)chance(&state, b->world.ranks / s.grid[0] / s.grid[1]);
        }
        s.exchange = chance(&state, 2);
        s.direct = chance(&state, 2);
        s.edge = chance(&state, 2) ? 1 + chance(&state, 60) : 0;
        if (chance(&state, 4) == 0) s.layout = MEMORY;
        s.c_path = (tsr_data_path)chance(&state, 3);
        if (i % 5 == 1 && s.c_path != TSR_DATA_PATH_DEVICE) s.range = 16 + 8 * (i % 4);
        if (s.c_path == TSR_DATA_PATH_DEVICE) {
            s.alpha = 1;
            s.beta = 0;
            s.grid[2] = s.grid[0] > 0;
        }
        run_one(b, &s);
    }
}

static void run_grams(bench *b, int runs) {
    static const tsr_dtype types[] = {TSR_F16, TSR_F32, TSR_F64, TSR_I16};
    uint64_t state = 20261123;
    for (int i = 0; i < runs; i++) {
        setup s = {.gram = true,
                   .m = 1 + chance(&state, 200),
                   .k = 1 + chance(&state, 90),
                   .alpha = (double)(1 + chance(&state, 2)),
                   .type_a = types[chance(&state, 4)]};
        s.n = s.m;
        s.type_b = s.type_a;
        s.transpose_a = chance(&state, 2);
        s.transpose_b = !s.transpose_a;
        s.triangle = (tsr_triangle)chance(&state, 3);
        s.unit = chance(&state, 3) ? 0 : 1 + chance(&state, 40);
        s.panel = chance(&state, 2) ? 1 + chance(&state, s.k) : 0;
        s.memory = (size_t)1 << (12 + chance(&state, 9));
        s.any_memory = true;
        s.layout = (file_layout)(chance(&state, 2) ? 1 + chance(&state, 4) : 0);
        switch (chance(&state, 3)) {
        case 0: s.grid[0] = 1 + (int)chance(&state, b->world.ranks); break;
        case 1: s.grid[0] = 1; break;
        default: break;
        }
        if (s.grid[0] > 0) {
            s.grid[1] = s.grid[0] == 1 ? 1 : 1 + (int)chance(&state, b->world.ranks / s.grid[0]);
            s.grid[2] = 1 + (int)chance(&state, b->world.ranks / s.grid[0] / s.grid[1]);
        }
        s.exchange = chance(&state, 2);
        s.direct = chance(&state, 2);
        s.padded = chance(&state, 4) == 0;
        s.roomy_host = chance(&state, 2);
        s.edge = chance(&state, 2) ? 1 + chance(&state, 60) : 0;
        s.c_path = (tsr_data_path)chance(&state, 3);
        if (i % 5 == 1 && s.c_path != TSR_DATA_PATH_DEVICE) s.range = 16 + 8 * (i % 4);
        if (s.c_path == TSR_DATA_PATH_DEVICE) {
            s.alpha = 1;
            s.triangle = TSR_TRIANGLE_FULL;
            s.grid[2] = s.grid[0] > 0;
        }
        run_one(b, &s);
    }
}

static void make_folder(bench *b) {
    snprintf(b->folder, sizeof b->folder, "/tmp/tessera-execute-XXXXXX");
    if (b->world.rank == 0) CHECK(mkdtemp(b->folder), "no folder %s", b->folder);
    MPI_Bcast(b->folder, sizeof b->folder, MPI_CHAR, 0, b->world.comm);
}

static void remove_folder(const bench *b) {
    char name[80];
    MPI_Barrier(b->world.comm);
    for (int i = 0; i < 2 && b->world.rank == 0; i++) {
        snprintf(name, sizeof name, "%s/%c.h5", b->folder, 'a' + i);
        unlink(name);
    }
    if (b->world.rank == 0) CHECK(rmdir(b->folder) == 0, "%s is not empty", b->folder);
}

int main(int argc, char **argv) {
    bench b = {0};
    const char *kind = argc > 1 ? argv[1] : "cpu";
    b.each = argc > 2 && strcmp(argv[2], "each") == 0;
    CHECK_OK(tsr_world_open(&b.world));
    CHECK_OK(tsr_device_choose(&b.world, kind, &b.device, &b.shared));
    CHECK_OK(b.device->ops->facts(b.device, &b.facts));
    b.emulated = strncmp(b.facts.name, "emulated", 8) == 0;
    make_folder(&b);
    static const tsr_transport_ops *const transports[] = {
#define X(code) &tsr_transport_##code,
        TSR_TRANSPORT_LIST(X)
#undef X
    };
    int tried = 0;
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
        if (tsr_transport_choose(&b.world, transports[i]->name, &b.facts, b.shared, &b.ops) != TSR_OK) continue;
        tried++;
        run_grams(&b, b.each ? 30 : 80);
        run_grids(&b);
        run_shapes(&b);
        run_random(&b, b.each ? 40 : 200);
        close_grids(&b);
    }
    CHECK(b.each || (b.bands > 0 && b.on_device > 0), "%d runs kept bands of A, %d kept C on the device", b.bands,
          b.on_device);
    CHECK(!b.emulated || (b.growing > 0 && b.kept_host > 0 && b.mapped > 0 && b.made > 0),
          "%d runs kept all and grew, %d kept what they read, %d copied from a store's memory, %d made it", b.growing,
          b.kept_host, b.mapped, b.made);
    CHECK(!b.emulated || b.world.ranks == 1 || (b.pieces > 0 && b.pieces < b.mapped),
          "%d of %d runs exchanged pieces of a store's memory", b.pieces, b.mapped);
    CHECK(b.grams[0] > 0 && (!b.emulated || b.grams[1] > 0), "%d Gram matrices of panels that stay, %d of files",
          b.grams[0], b.grams[1]);
    CHECK(b.world.ranks == 1 || (b.grams[2] > 0 && b.grams[3] > 0), "%d Gram matrices on a grid, %d summed", b.grams[2],
          b.grams[3]);
    CHECK(b.world.ranks == 1 || b.chains > 0, "no ranks handed on their sums");
    CHECK(!b.emulated || b.portions > 20, "%d runs read in portions", b.portions);
    CHECK(!b.emulated || b.wider > 0, "no run copied C out of wider accumulators");
    CHECK(tried > 0 && b.runs > 100, "%d runs over %d transports", b.runs, tried);
    remove_folder(&b);
    b.device->ops->close(b.device);
    tsr_world_close(&b.world);
    return 0;
}
