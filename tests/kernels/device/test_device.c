/* A device by its table: memory, copies, streams, events, facts, what it refuses, and the threads of BLAS. */
#define _GNU_SOURCE /* setenv */
#include "tests/kernels/device/device_under_test.h"

enum { BYTES = 1 << 20 };

static void check_copies(const device_under_test *under) {
    const tsr_device_ops *ops = under->ops;
    void *first, *second, *host;
    CHECK_OK(ops->allocate(under->device, BYTES, &first));
    CHECK_OK(ops->allocate(under->device, BYTES, &second));
    CHECK_OK(ops->allocate_host(under->device, BYTES, &host));
    CHECK((uintptr_t)first % 256 == 0 && (uintptr_t)host % 4096 == 0, "alignment of %p and %p", first, host);
    unsigned char *bytes = host;
    for (int i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(i * 7 + (i >> 8));
    CHECK_OK(ops->upload(under->device, first, host, BYTES, under->stream));
    CHECK_OK(ops->fill_bytes(under->device, second, 0x5a, BYTES, under->stream));
    CHECK_OK(ops->copy(under->device, (char *)second + 256, (char *)first + 1, 1000, under->stream));
    CHECK_OK(ops->stream_wait(under->device, under->stream));
    memset(host, 0, BYTES);
    CHECK_OK(ops->download(under->device, host, second, BYTES, under->stream));
    CHECK_OK(ops->stream_wait(under->device, under->stream));
    for (int i = 0; i < BYTES; i++) {
        int at = i - 256 + 1;
        unsigned char expected = i >= 256 && i < 1256 ? (unsigned char)(at * 7 + (at >> 8)) : 0x5a;
        CHECK(bytes[i] == expected, "byte %d is %02x", i, bytes[i]);
    }
    ops->release(under->device, first);
    ops->release(under->device, second);
    ops->release(under->device, NULL);
    ops->release_host(under->device, host);
    ops->release_host(under->device, NULL);
}

/* Rows with gaps on either side, or none, up and down again; what lies between rows is not touched. */
static void check_rows(const device_under_test *under) {
    enum { ROWS = 37, ROW = 100, WIDE = 256 };
    const tsr_device_ops *ops = under->ops;
    static const size_t steps[][2] = {{ROW, ROW}, {WIDE, ROW}, {ROW, WIDE}, {WIDE, ROW + 1}};
    void *memory, *host;
    CHECK_OK(ops->allocate(under->device, (size_t)ROWS * WIDE, &memory));
    CHECK_OK(ops->allocate_host(under->device, (size_t)2 * ROWS * WIDE, &host));
    unsigned char *from = host, *back = from + ROWS * WIDE;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const size_t outside = steps[i][0], inside = steps[i][1]; /* from row to row on the host and on the device */
        for (int at = 0; at < ROWS * WIDE; at++) {
            from[at] = (unsigned char)(at * 5 + (at >> 8));
            back[at] = 0xee;
        }
        CHECK_OK(ops->copy_rows(under->device, memory, inside, from, outside, ROW, ROWS, under->stream));
        CHECK_OK(ops->copy_rows(under->device, back, outside, memory, inside, ROW, ROWS, under->stream));
        CHECK_OK(ops->copy_rows(under->device, back, outside, memory, inside, ROW, 0, under->stream));
        CHECK_OK(ops->stream_wait(under->device, under->stream));
        for (size_t at = 0; at < outside * ROWS; at++) {
            const int expected = at % outside < ROW ? from[at] : 0xee;
            CHECK(back[at] == expected, "rows of %zu and %zu bytes: byte %zu is %02x", outside, inside, at, back[at]);
        }
    }
    ops->release(under->device, memory);
    ops->release_host(under->device, host);
}

/* Memory that was there before, of which a part is used as pinned memory. */
static void check_pin(const device_under_test *under) {
    const size_t bytes = (size_t)64 << 10;
    void *memory = aligned_alloc(4096, bytes), *device;
    CHECK(memory, "no memory");
    memset(memory, 7, bytes);
    CHECK_OK(under->ops->pin(under->device, memory, bytes));
    CHECK_OK(under->ops->allocate(under->device, bytes, &device));
    CHECK_OK(under->ops->upload(under->device, device, memory, bytes, under->stream));
    CHECK_OK(under->ops->fill_bytes(under->device, device, 9, 10, under->stream));
    CHECK_OK(under->ops->download(under->device, memory, device, bytes, under->stream));
    CHECK_OK(under->ops->stream_wait(under->device, under->stream));
    for (size_t i = 0; i < bytes; i++) CHECK(((char *)memory)[i] == (i < 10 ? 9 : 7), "byte %zu", i);
    under->ops->unpin(under->device, memory);
    under->ops->unpin(under->device, NULL);
    under->ops->release(under->device, device);
    free(memory);
}

static void check_small(const device_under_test *under) {
    for (size_t bytes = 0; bytes <= 4097; bytes = bytes * 3 + 1) {
        void *memory, *host, *neighbour; /* two at once: small blocks may share a page */
        CHECK_OK(under->ops->allocate(under->device, bytes, &memory));
        CHECK_OK(under->ops->allocate_host(under->device, bytes, &host));
        CHECK_OK(under->ops->allocate_host(under->device, bytes, &neighbour));
        CHECK(memory && host && (uintptr_t)memory % 256 == 0 && (uintptr_t)host % 4096 == 0, "%zu bytes at %p and %p",
              bytes, memory, host);
        CHECK(neighbour && (uintptr_t)neighbour % 4096 == 0, "%zu bytes at %p", bytes, neighbour);
        under->ops->release_host(under->device, neighbour);
        under->ops->release(under->device, memory);
        under->ops->release_host(under->device, host);
    }
}

static void check_events(const device_under_test *under) {
    const tsr_device_ops *ops = under->ops;
    tsr_event *from, *to;
    double seconds = -1;
    void *memory;
    CHECK_OK(ops->event_create(under->device, &from));
    CHECK_OK(ops->event_create(under->device, &to));
    CHECK_OK(ops->allocate(under->device, BYTES, &memory));
    CHECK(ops->event_seconds(under->device, from, to, &seconds) != TSR_OK && strlen(tsr_message()) > 0,
          "unrecorded events were timed");
    CHECK(seconds == -1, "set on failure");
    double before = tsr_now_seconds();
    CHECK_OK(ops->event_record(under->device, from, under->stream));
    for (int i = 0; i < 10; i++) CHECK_OK(ops->fill_bytes(under->device, memory, i, BYTES, under->stream));
    CHECK_OK(ops->event_record(under->device, to, under->stream));
    CHECK_OK(ops->event_wait(under->device, to));
    CHECK_OK(ops->event_seconds(under->device, from, to, &seconds));
    CHECK(seconds > 0 && seconds <= tsr_now_seconds() - before + 1e-3, "%g seconds", seconds);
    ops->release(under->device, memory);
    ops->event_destroy(under->device, from);
    ops->event_destroy(under->device, to);
}

static void check_facts(const device_under_test *under) {
    tsr_device_facts facts;
    CHECK_OK(under->ops->facts(under->device, &facts));
    CHECK(facts.kind == under->ops->kind && strlen(facts.name) > 0, "kind %d, name '%s'", (int)facts.kind, facts.name);
    CHECK(facts.multiprocessors > 0 && facts.threads_block > 0 && facts.grid_max[0] > 0 && facts.grid_max[2] > 0,
          "%d SMs", facts.multiprocessors);
    CHECK(facts.memory_free_bytes > 0 && facts.memory_free_bytes <= facts.memory_bytes, "%zu of %zu",
          facts.memory_free_bytes, facts.memory_bytes);
    CHECK(facts.host_memory == (facts.kind == TSR_DEVICE_CPU), "host memory");
    if (facts.kind == TSR_DEVICE_CPU) {
        CHECK(facts.multiprocessors == tsr_cpu_cores(), "%d cores", facts.multiprocessors);
        return;
    }
    CHECK(facts.arch >= 50 && facts.shared_block_bytes >= 48 << 10 &&
              facts.shared_block_optin_bytes >= facts.shared_block_bytes,
          "sm_%d", facts.arch);
    CHECK(facts.registers_block > 0 && facts.clock_khz > 0 && strlen(facts.bus_id) > 0, "%d kHz", facts.clock_khz);
    CHECK(facts.driver_version >= facts.runtime_version / 1000 * 1000, "driver %d, runtime %d", facts.driver_version,
          facts.runtime_version);
}

static void check_refusals(const device_under_test *under) {
    tsr_device *device = NULL;
    void *memory = NULL;
    CHECK_FAILS(under->ops->open(1000, &device), TSR_ERR_DEVICE, "1000");
    CHECK_FAILS(under->ops->open(-1, &device), TSR_ERR_DEVICE, "-1");
    CHECK_FAILS(under->ops->allocate(under->device, (size_t)1 << 50, &memory), TSR_ERR_MEMORY, "need 1.13 PB");
    CHECK(strstr(tsr_message(), "free ") != NULL, "%s", tsr_message());
    CHECK_FAILS(under->ops->allocate_host(under->device, (size_t)1 << 50, &memory), TSR_ERR_MEMORY, "free ");
    CHECK(!device && !memory, "set on failure");
    check_small(under); /* usable afterwards */
}

static void expect_threads(const char *openblas, const char *openmp, int asked, int expected) {
    unsetenv("OPENBLAS_NUM_THREADS");
    unsetenv("OMP_NUM_THREADS");
    if (openblas) setenv("OPENBLAS_NUM_THREADS", openblas, 1);
    if (openmp) setenv("OMP_NUM_THREADS", openmp, 1);
    const int threads = tsr_cpu_threads(asked);
    CHECK(threads == expected, "%d threads of %d with OPENBLAS_NUM_THREADS=%s OMP_NUM_THREADS=%s", threads, asked,
          openblas ? openblas : "-", openmp ? openmp : "-");
}

/* BLAS's user may allow it fewer threads than there are cores, not more. */
static void check_threads(void) {
    expect_threads(NULL, NULL, 3, 3);
    expect_threads(NULL, NULL, 0, 1);
    expect_threads("2", NULL, 3, 2);
    expect_threads("4", NULL, 3, 3);
    expect_threads(NULL, "2,1", 3, 2);
    expect_threads("2", "1", 3, 2); /* OpenBLAS reads its own first */
    expect_threads("", "1", 3, 1);
    expect_threads("0", "x", 3, 3);
    expect_threads("-1", "99999999999999999999", 3, 3);
    expect_threads(NULL, NULL, 1, 1);
}

int main(void) {
    device_under_test under = test_open();
    check_copies(&under);
    check_rows(&under);
    check_pin(&under);
    check_small(&under);
    check_events(&under);
    check_facts(&under);
    check_refusals(&under);
    check_threads();
    test_close(&under);
    return 0;
}
