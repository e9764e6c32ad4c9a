/* How fast a file in memory gets to a GPU, in two ways in turns. `panels`: threads read pieces into a large page-locked
 * buffer, which is copied as a whole while they read the next, as the lanes read and upload do. `blocks`: each thread
 * reads into two small page-locked blocks of its own, which stay in the caches, and copies each as soon as it is there.
 * Prints GB/s, medians; `read` is without copies.
 * Measured: an H200 and 16 cores, 8 GB, 2026-11-27, GB/s: panels 35.2 (read alone 38.4); blocks of 256 KiB 16.3 (81.3),
 * of 1 MiB 39.7 (74.2), of 4 MiB 47.8 (55.9). A copy costs 10 to 16 us, whichever thread asks for it.
 * Usage: staged_copy FILE [ROUNDS [THREADS [KIB...]]]     KIB: of a block */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kernels/device/device.h"
#include "tests/bench/median.h"
#include "tests/check.h"

enum { ROUNDS_MOST = 100, THREADS_MOST = 64, BUFFERS = 2 };
static const size_t PANEL_BYTES = (size_t)256 << 20, PIECE_BYTES = (size_t)1 << 20;

typedef struct {
    const tsr_device_ops *ops;
    tsr_device *device;
    int fd, threads;
    size_t bytes;
    char *on_device;
} bench;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void read_all(int fd, char *to, size_t bytes, size_t from) {
    while (bytes > 0) {
        const ssize_t got = pread(fd, to, bytes, (off_t)from);
        CHECK(got > 0, "pread: %zd", got);
        to += got;
        from += (size_t)got;
        bytes -= (size_t)got;
    }
}

/* One end of a stream to the device: a buffer, and when its last copy is over. */
typedef struct {
    char *memory;
    tsr_event *copied;
    bool used;
} buffer;

static buffer open_buffer(const bench *x, size_t bytes) {
    buffer b = {0};
    void *memory;
    CHECK_OK(x->ops->allocate_host(x->device, bytes, &memory));
    CHECK_OK(x->ops->event_create(x->device, &b.copied));
    b.memory = memory;
    memset(memory, 1, bytes);
    return b;
}
static void close_buffer(const bench *x, buffer *b) {
    x->ops->event_destroy(x->device, b->copied);
    x->ops->release_host(x->device, b->memory);
}
static void await(const bench *x, buffer *b) {
    if (b->used) CHECK_OK(x->ops->event_wait(x->device, b->copied));
}
static void copy(const bench *x, buffer *b, size_t at, size_t bytes, tsr_stream *stream) {
    CHECK_OK(x->ops->upload(x->device, x->on_device + at, b->memory, bytes, stream));
    CHECK_OK(x->ops->event_record(x->device, b->copied, stream));
    b->used = true;
}

/* ---- both ways ------------------------------------------------------------------------------- */

/* What threads share: pieces of [from, from + bytes) of the file, one after the other. */
typedef struct {
    const bench *x;
    size_t from, bytes, piece;
    char *panel; /* NULL: each thread has blocks, and copies, unless it only reads */
    bool copies;
    atomic_size_t next;
} work;
typedef struct {
    work *shared;
    buffer blocks[BUFFERS];
    tsr_stream *stream;
} worker;

static void *pieces(void *context) {
    worker *w = context;
    work *s = w->shared;
    const bench *x = s->x;
    CHECK_OK(x->ops->use(x->device));
    size_t at;
    for (int turn = 0; (at = atomic_fetch_add(&s->next, s->piece)) < s->bytes; turn = (turn + 1) % BUFFERS) {
        const size_t bytes = s->bytes - at < s->piece ? s->bytes - at : s->piece;
        buffer *b = &w->blocks[turn];
        if (s->panel) {
            read_all(x->fd, s->panel + at, bytes, s->from + at);
            continue;
        }
        await(x, b);
        read_all(x->fd, b->memory, bytes, s->from + at);
        if (s->copies) copy(x, b, s->from + at, bytes, w->stream);
    }
    if (!s->panel) CHECK_OK(x->ops->stream_wait(x->device, w->stream));
    return NULL;
}

static void run_threads(const bench *x, work *s, worker *workers) {
    pthread_t threads[THREADS_MOST];
    s->next = 0;
    for (int i = 0; i < x->threads; i++) {
        workers[i].shared = s;
        CHECK(pthread_create(&threads[i], NULL, pieces, &workers[i]) == 0, "no thread %d", i);
    }
    for (int i = 0; i < x->threads; i++) pthread_join(threads[i], NULL);
}

static double by_panels(const bench *x, bool copies) {
    static worker workers[THREADS_MOST];
    buffer panels[BUFFERS];
    tsr_stream *stream;
    CHECK_OK(x->ops->stream_create(x->device, &stream));
    for (int i = 0; i < BUFFERS; i++) panels[i] = open_buffer(x, PANEL_BYTES);
    const double began = now();
    int turn = 0;
    for (size_t from = 0; from < x->bytes; from += PANEL_BYTES, turn = (turn + 1) % BUFFERS) {
        const size_t bytes = x->bytes - from < PANEL_BYTES ? x->bytes - from : PANEL_BYTES;
        work s = {.x = x, .from = from, .bytes = bytes, .piece = PIECE_BYTES};
        await(x, &panels[turn]);
        s.panel = panels[turn].memory;
        run_threads(x, &s, workers);
        if (copies) copy(x, &panels[turn], from, bytes, stream);
    }
    CHECK_OK(x->ops->stream_wait(x->device, stream));
    const double seconds = now() - began;
    for (int i = 0; i < BUFFERS; i++) close_buffer(x, &panels[i]);
    x->ops->stream_destroy(x->device, stream);
    return (double)x->bytes / seconds / 1e9;
}

static double by_blocks(const bench *x, size_t block, bool copies) {
    static worker workers[THREADS_MOST];
    for (int i = 0; i < x->threads; i++) {
        CHECK_OK(x->ops->stream_create(x->device, &workers[i].stream));
        for (int j = 0; j < BUFFERS; j++) workers[i].blocks[j] = open_buffer(x, block);
    }
    work s = {.x = x, .bytes = x->bytes, .piece = block, .copies = copies};
    const double began = now();
    run_threads(x, &s, workers);
    const double seconds = now() - began;
    for (int i = 0; i < x->threads; i++) {
        for (int j = 0; j < BUFFERS; j++) close_buffer(x, &workers[i].blocks[j]);
        x->ops->stream_destroy(x->device, workers[i].stream);
    }
    return (double)x->bytes / seconds / 1e9;
}

/* Whether the device holds what the file does. */
static void compare(const bench *x) {
    buffer got = open_buffer(x, PIECE_BYTES);
    char *want = malloc(PIECE_BYTES);
    tsr_stream *stream;
    CHECK(want != NULL, "no memory");
    CHECK_OK(x->ops->stream_create(x->device, &stream));
    for (size_t at = 0; at < x->bytes; at += PIECE_BYTES) {
        const size_t bytes = x->bytes - at < PIECE_BYTES ? x->bytes - at : PIECE_BYTES;
        CHECK_OK(x->ops->download(x->device, got.memory, x->on_device + at, bytes, stream));
        CHECK_OK(x->ops->stream_wait(x->device, stream));
        read_all(x->fd, want, bytes, at);
        CHECK(memcmp(got.memory, want, bytes) == 0, "other bytes behind byte %zu", at);
    }
    free(want);
    close_buffer(x, &got);
    x->ops->stream_destroy(x->device, stream);
}

int main(int argc, char **argv) {
    static const char *const usual[] = {"256", "512", "1024", "4096"};
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    const char *const *kib = argc > 4 ? (const char *const *)argv + 4 : usual;
    const int sizes = argc > 4 ? argc - 4 : (int)(sizeof usual / sizeof *usual);
    static double panels[2][ROUNDS_MOST], blocks[2][16][ROUNDS_MOST];
    bench x = {.threads = argc > 3 ? atoi(argv[3]) : (int)sysconf(_SC_NPROCESSORS_ONLN)};
    struct stat file;
    int devices;
    char why[256];
    CHECK(argc > 1 && rounds > 0 && rounds <= ROUNDS_MOST && x.threads > 0 && x.threads <= THREADS_MOST && sizes <= 16,
          "usage: staged_copy FILE [ROUNDS [THREADS [KIB...]]]");
    CHECK_OK(tsr_device_find("cuda", &x.ops));
    CHECK_OK(x.ops->count(&devices, why));
    CHECK(devices > 0, "%s", why);
    CHECK_OK(x.ops->open(0, &x.device));
    x.fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    CHECK(x.fd >= 0 && fstat(x.fd, &file) == 0 && file.st_size > 0, "cannot read %s", argv[1]);
    x.bytes = (size_t)file.st_size;
    void *memory;
    CHECK_OK(x.ops->allocate(x.device, x.bytes, &memory));
    x.on_device = memory;
    for (int round = -1; round < rounds; round++) /* the first warms up */
        for (int copies = 0; copies < 2; copies++) {
            panels[copies][round < 0 ? 0 : round] = by_panels(&x, copies == 1);
            for (int i = 0; i < sizes; i++)
                blocks[copies][i][round < 0 ? 0 : round] = by_blocks(&x, (size_t)atoi(kib[i]) << 10, copies == 1);
        }
    compare(&x);
    printf("%d threads, %.2f GB        read  read and copied, GB/s\n", x.threads, (double)x.bytes / 1e9);
    printf("panels              %10.1f %10.1f\n", median(panels[0], rounds), median(panels[1], rounds));
    for (int i = 0; i < sizes; i++)
        printf("blocks of %6s KiB %11.1f %10.1f\n", kib[i], median(blocks[0][i], rounds), median(blocks[1][i], rounds));
    x.ops->release(x.device, memory);
    x.ops->close(x.device);
    close(x.fd);
    return 0;
}
