/* Messages of the helper that describes files, as one that was taken over would send them: whatever comes, what is
 * believed fits the file. Built with sanitizers, too: nothing is read beyond a message. */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io/describe/describe.h"
#include "io/describe/describe_wire.h"
#include "io/pieces/pieces.h"
#include "tests/io/describe/message.h"

#define FILE_BYTES 4096

static const tsr_store_desc contiguous = {.name = {.path = "/A"},
                                          .dataset_dimensions = 2,
                                          .dataset_rows = 20,
                                          .dataset_cols = 10,
                                          .element = {TSR_F64, true},
                                          .hdf5.layout = TSR_LAYOUT_CONTIGUOUS,
                                          .offset = 2048,
                                          .hdf5.standard = true,
                                          .hdf5.stored_bytes = 8,
                                          .type_name = "big-endian f64"};
static const tsr_store_desc chunked = {
    .name = {.path = "/g/A"},
    .dataset_dimensions = 2,
    .dataset_rows = 20,
    .dataset_cols = 10,
    .element = {TSR_F32, false},
    .hdf5.layout = TSR_LAYOUT_CHUNKED,
    .chunk_rows = 5,
    .chunk_cols = 4,
    .cache_bytes = 4000,
    .hdf5.raw_chunks = true,
    .hdf5.pipeline = {.count = 2, .use = {{.filter = 1, .count = 1, .values = {4}}, {.filter = 2}}},
    .hdf5.filters = "shuffle fletcher32",
    .offset = -1,
    .hdf5.standard = true,
    .hdf5.stored_bytes = 4,
    .type_name = "f32"};

static const tsr_store_desc scattered = {.name = {.path = "/V"},
                                         .matrices = 2,
                                         .dataset_dimensions = 2,
                                         .rows = 6,
                                         .cols = 8,
                                         .row0 = 2,
                                         .dataset_rows = 10,
                                         .dataset_cols = 8,
                                         .element = {TSR_F64, false},
                                         .hdf5.layout = TSR_LAYOUT_VIRTUAL,
                                         .offset = -1,
                                         .hdf5.standard = true,
                                         .hdf5.stored_bytes = 8,
                                         .hdf5.scattered = true,
                                         .hdf5.places = 3,
                                         .hdf5.reads = "'a.h5'",
                                         .type_name = "f64"};

static tsr_wire message_of(const tsr_store_desc *desc) {
    tsr_wire wire = {.data = NULL};
    tsr_store_desc copy = *desc;
    tsr_wire_desc(&wire, &copy);
    return message_written(wire);
}

/* What is wrong with a message, NULL for one that is believed; *desc is what it says then. */
static const char *read_message(tsr_wire *wire, tsr_store_desc *desc) {
    memset(desc, 0, sizeof *desc);
    wire->at = 0;
    wire->wrong = NULL;
    tsr_wire_desc(wire, desc);
    if (!tsr_wire_is_good(wire)) return wire->wrong;
    return tsr_desc_wrong(desc, FILE_BYTES, false);
}

static const char *wrong_with(const tsr_store_desc *desc) {
    tsr_store_desc read;
    tsr_wire wire = message_of(desc);
    const char *wrong = read_message(&wire, &read);
    tsr_wire_free(&wire);
    return wrong;
}

static void check_round_trip(const tsr_store_desc *desc) {
    tsr_store_desc read;
    tsr_wire wire = message_of(desc);
    CHECK(read_message(&wire, &read) == NULL, "refused: %s", wire.wrong);
    tsr_wire_free(&wire);
    CHECK(read.rows == desc->dataset_rows && read.cols == desc->dataset_cols, "%lld", (long long)read.rows);
    read.rows = read.cols = 0;
    CHECK(memcmp(&read.element, &desc->element, sizeof read.element) == 0 && read.offset == desc->offset &&
              read.chunk_cols == desc->chunk_cols && read.cache_bytes == desc->cache_bytes &&
              read.hdf5.pipeline.use[0].values[0] == desc->hdf5.pipeline.use[0].values[0] &&
              strcmp(read.hdf5.filters, desc->hdf5.filters) == 0 && strcmp(read.name.path, desc->name.path) == 0 &&
              strcmp(read.type_name, desc->type_name) == 0,
          "it came differently");
}

/* One lie at a time. */
#define REFUSED(from, field, value)                                                                                    \
    do {                                                                                                               \
        tsr_store_desc lie_ = (from);                                                                                  \
        lie_.field = (value);                                                                                          \
        CHECK(wrong_with(&lie_) != NULL, #field " = " #value " was believed");                                         \
    } while (0)

static void check_lies(void) {
    REFUSED(contiguous, dataset_rows, -1);
    REFUSED(contiguous, dataset_rows, 27); /* the file holds 25.6 */
    REFUSED(contiguous, dataset_rows, INT64_MAX);
    REFUSED(contiguous, dataset_cols, (int64_t)1 << 61);
    REFUSED(contiguous, dataset_cols, -10);
    REFUSED(contiguous, element.dtype, TSR_DTYPE_COUNT);
    REFUSED(contiguous, element.dtype, (tsr_dtype)-1);
    REFUSED(contiguous, hdf5.layout, (tsr_layout)4);
    REFUSED(contiguous, hdf5.layout, TSR_LAYOUT_VIRTUAL);
    REFUSED(contiguous, hdf5.layout, TSR_LAYOUT_CHUNKED);
    REFUSED(contiguous, hdf5.layout, TSR_LAYOUT_COMPACT);
    REFUSED(contiguous, offset, FILE_BYTES - 20 * 10 * 8 + 1);
    REFUSED(contiguous, offset, FILE_BYTES + 1);
    REFUSED(contiguous, offset, INT64_MAX);
    REFUSED(contiguous, offset, -2);
    REFUSED(contiguous, offset, -1); /* HDF5 delivers this machine's order */
    REFUSED(contiguous, hdf5.standard, false);
    REFUSED(contiguous, hdf5.raw_chunks, true);
    REFUSED(contiguous, rounded, true);
    REFUSED(contiguous, hdf5.stored_bytes, 0);
    REFUSED(contiguous, hdf5.stored_bytes, 4);
    REFUSED(chunked, hdf5.stored_bytes, 3);
    REFUSED(chunked, cache_bytes, (size_t)1 << 40);
    REFUSED(contiguous, chunk_rows, 1);
    REFUSED(contiguous, cache_bytes, 1);
    REFUSED(contiguous, hdf5.pipeline.count, 1);
    REFUSED(contiguous, name.path[0], 'A');
    REFUSED(contiguous, name.path[0], '\0');
    REFUSED(contiguous, name.path[1], '\0');
    REFUSED(chunked, chunk_rows, 0);
    REFUSED(chunked, chunk_cols, 0);
    REFUSED(chunked, chunk_cols, -4);
    REFUSED(chunked, chunk_rows, INT64_MAX);
    REFUSED(chunked, chunk_rows, (int64_t)1 << 40);
    REFUSED(chunked, chunk_rows, (int64_t)1 << 27); /* 2 GiB, which are not decoded here */
    REFUSED(chunked, rounded, true);
    REFUSED(chunked, offset, 2048);
    REFUSED(chunked, cache_bytes, (size_t)1 << 40);
    REFUSED(chunked, cache_bytes, SIZE_MAX);
    REFUSED(chunked, hdf5.pipeline.count, TSR_FILTERS_MAX + 1);
    REFUSED(chunked, hdf5.pipeline.count, -1);
    REFUSED(chunked, hdf5.pipeline.use[0].filter, tsr_filter_count());
    REFUSED(chunked, hdf5.pipeline.use[3].filter, -1);
    REFUSED(chunked, hdf5.pipeline.use[0].values[0], 0);
    REFUSED(chunked, hdf5.pipeline.use[0].count, -1);
    REFUSED(scattered, hdf5.scattered, false);
    REFUSED(scattered, hdf5.standard, false);
    REFUSED(scattered, hdf5.places, -1);
    REFUSED(scattered, offset, 0);
    REFUSED(scattered, chunk_rows, 1);
    REFUSED(chunked, hdf5.scattered, true);
    REFUSED(contiguous, hdf5.scattered, true);
}

/* Rows 3 to 5 and columns 2 to 7 of `scattered` are rows 10 to 12 and columns 4 to 9 of `contiguous`. */
static tsr_piece a_piece(void) {
    tsr_piece piece = {.rect = {3, 2, 3, 6}, .desc = contiguous};
    piece.desc.row0 = 10;
    piece.desc.col0 = 4;
    piece.desc.rows = 3;
    piece.desc.cols = 6;
    return piece;
}

static const char *piece_wrong(tsr_piece piece, tsr_piece *read) {
    tsr_wire wire = {.data = NULL};
    tsr_wire_piece(&wire, &piece);
    tsr_wire back = {.data = wire.data, .bytes = wire.bytes, .reading = true};
    memset(read, 0, sizeof *read);
    tsr_wire_piece(&back, read);
    const char *wrong = tsr_wire_is_good(&back) ? tsr_piece_wrong(&scattered, read, FILE_BYTES) : back.wrong;
    tsr_wire_free(&wire);
    return wrong;
}

#define PIECE_REFUSED(field, value)                                                                                    \
    do {                                                                                                               \
        tsr_piece lie_ = a_piece(), read_;                                                                             \
        lie_.field = (value);                                                                                          \
        CHECK(piece_wrong(lie_, &read_) != NULL, #field " = " #value " was believed");                                 \
    } while (0)

static void check_pieces(void) {
    tsr_piece piece = a_piece(), read;
    CHECK(piece_wrong(piece, &read) == NULL, "%s", piece_wrong(piece, &read));
    CHECK(read.rect.row == 3 && read.rect.cols == 6 && read.desc.row0 == 10 && read.desc.cols == 6 &&
              read.desc.offset == 2048 && read.desc.element.swapped,
          "it came differently");
    PIECE_REFUSED(matrix, 2); /* there are two */
    PIECE_REFUSED(matrix, -1);
    PIECE_REFUSED(rect.row, 1);  /* the part begins with row 2 */
    PIECE_REFUSED(rect.row, 6);  /* and ends with row 7 */
    PIECE_REFUSED(rect.col, 3);  /* and column 7 */
    PIECE_REFUSED(rect.rows, 4); /* what holds it has 3 */
    PIECE_REFUSED(rect.rows, INT64_MAX);
    PIECE_REFUSED(rect.cols, -1);
    PIECE_REFUSED(turned, true); /* no side is 1 */
    PIECE_REFUSED(desc.row0, 18);
    PIECE_REFUSED(desc.col0, 5);
    PIECE_REFUSED(desc.cols, 7);
    PIECE_REFUSED(desc.row0, INT64_MAX);
    PIECE_REFUSED(desc.dataset_rows, 12);
    PIECE_REFUSED(desc.element.dtype, TSR_F32);
    PIECE_REFUSED(desc.hdf5.scattered, true);
    PIECE_REFUSED(desc.offset, FILE_BYTES);
    piece = (tsr_piece){.rect = {2, 0, 6, 8}, .filled = true};
    CHECK(piece_wrong(piece, &read) == NULL && read.filled, "a filled piece was refused");
    piece.rect.rows = 7;
    CHECK(piece_wrong(piece, &read) != NULL, "a filled piece beyond the part was believed");
    piece = a_piece();
    piece.desc.dataset_dimensions = 3; /* of 20 x 10 in 2048 bytes there is one */
    piece.desc.lead_size[0] = 1;
    CHECK(piece_wrong(piece, &read) == NULL, "%s", piece_wrong(piece, &read));
    piece.desc.name.lead0[0] = 1;
    CHECK(piece_wrong(piece, &read) != NULL, "a matrix that is not there was believed");
    piece = a_piece();
    piece.bytes = true;
    piece.desc = chunked;
    piece.desc.element.dtype = TSR_F64;
    piece.desc.hdf5.stored_bytes = 8;
    piece.desc.rows = 3;
    piece.desc.cols = 6;
    CHECK(piece_wrong(piece, &read) != NULL, "chunks were taken for bytes");
}

/* Texts too long for their room, and texts with zeros in them. */
static void check_texts(void) {
    char room[8] = "";
    const char *text;
    tsr_wire wire = {.data = NULL}, read;
    const char *eight = "12345678";
    tsr_wire_long_text(&wire, &eight, "");
    read = (tsr_wire){.data = wire.data, .bytes = wire.bytes, .reading = true};
    tsr_wire_text(&read, room, sizeof room, "eight");
    CHECK(read.wrong && strcmp(read.wrong, "eight") == 0 && room[0] == '\0', "'%s' fits", room);
    wire.data[sizeof(int64_t) + 2] = '\0';
    read = (tsr_wire){.data = wire.data, .bytes = wire.bytes, .reading = true};
    tsr_wire_long_text(&read, &text, "zero");
    CHECK(read.wrong && *text == '\0', "a zero within '%s'", text);
    wire.data[sizeof(int64_t) + 2] = '3';
    wire.data[sizeof(int64_t) + 8] = '9';
    read = (tsr_wire){.data = wire.data, .bytes = wire.bytes, .reading = true};
    tsr_wire_long_text(&read, &text, "end");
    CHECK(read.wrong && *text == '\0', "a text without end: '%s'", text);
    tsr_wire_free(&wire);
}

/* Whoever reads the matrix counts on this; written independently of tsr_desc_wrong. */
static void check_believed(const tsr_store_desc *d) {
    const __int128 element = (__int128)tsr_dtype_bytes(d->element.dtype);
    const __int128 bytes = element * d->dataset_rows * d->dataset_cols;
    const __int128 stored = d->hdf5.stored_bytes;
    const __int128 slot = stored > element ? stored : element;
    const __int128 chunk = stored * d->chunk_rows * d->chunk_cols;
    const __int128 kept = slot * d->chunk_rows * d->chunk_cols;
    CHECK(stored >= 1 && stored <= 16 && (!d->hdf5.standard || stored == element), "bytes in the file");
    CHECK(d->rows == d->dataset_rows && d->cols == d->dataset_cols && d->rows >= 0 && d->cols >= 0, "the shape");
    CHECK(d->element.dtype >= 0 && d->element.dtype < TSR_DTYPE_COUNT && element > 0, "the type");
    CHECK(bytes <= INT64_MAX, "too large");
    CHECK(d->offset == -1 || (d->offset >= 0 && d->offset + bytes <= FILE_BYTES), "outside the file");
    CHECK(d->name.path[0] == '/' && memchr(d->name.path, '\0', sizeof d->name.path), "the path");
    CHECK(memchr(d->hdf5.filters, '\0', sizeof d->hdf5.filters) && memchr(d->type_name, '\0', sizeof d->type_name),
          "text");
    CHECK(chunk >= 0 && chunk <= UINT32_MAX && (d->chunk_rows > 0) == (d->hdf5.layout == TSR_LAYOUT_CHUNKED), "chunks");
    CHECK(d->hdf5.pipeline.count >= 0 && d->hdf5.pipeline.count <= TSR_FILTERS_MAX, "filters");
    CHECK(!d->hdf5.raw_chunks || (kept > 0 && kept <= (__int128)TSR_TRANSFER_BYTES_MAX), "raw chunks");
}

static uint64_t state = 20240612;
static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void mutate(tsr_wire *wire) {
    static const uint64_t odd[] = {0, 1, 255, 1u << 31, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX, INT64_MAX, 4096};
    const size_t at = next() % wire->bytes;
    uint64_t value = next() % 3 ? odd[next() % (sizeof odd / sizeof *odd)] : next();
    if (next() % 2) wire->data[at] = (char)value;
    else if (at + sizeof value <= wire->bytes) memcpy(wire->data + at / 8 * 8, &value, sizeof value);
    if (next() % 8 == 0) wire->bytes = next() % wire->bytes + 1;
}

static void check_mutations(const tsr_store_desc *desc) {
    int believed = 0, refused = 0;
    for (int i = 0; i < 20000; i++) {
        tsr_store_desc read;
        tsr_wire wire = message_of(desc);
        for (uint64_t n = 1 + next() % 3; n > 0; n--) mutate(&wire);
        if (read_message(&wire, &read)) {
            refused++;
        } else {
            believed++;
            check_believed(&read);
        }
        tsr_wire_free(&wire);
    }
    CHECK(believed > 100 && refused > 1000, "%d believed, %d refused: this checks little", believed, refused);
}

static void check_truncated(const tsr_store_desc *desc) {
    tsr_store_desc read;
    tsr_wire wire = message_of(desc);
    const size_t all = wire.bytes;
    for (wire.bytes = 0; wire.bytes < all; wire.bytes++)
        CHECK(read_message(&wire, &read) != NULL, "%zu of %zu bytes were believed", wire.bytes, all);
    tsr_wire_free(&wire);
}

/* A place travels as it is, its bits above 31, too; one that is before the file is refused. */
static void check_places(void) {
    const tsr_chunk_place good[] = {{4096, 77, 5}, {0, 0, 0}, {INT64_MAX, UINT32_MAX, UINT32_MAX}};
    tsr_chunk_place before = {-1, 10, 0}, read;
    tsr_wire wire = {.data = NULL};
    for (int i = 0; i < 3; i++) {
        tsr_chunk_place copy = good[i];
        tsr_wire_place(&wire, &copy);
    }
    tsr_wire_place(&wire, &before);
    tsr_wire back = {.data = wire.data, .bytes = wire.bytes, .reading = true};
    for (int i = 0; i < 3; i++) {
        tsr_wire_place(&back, &read);
        CHECK(!back.wrong && read.address == good[i].address && read.bytes == good[i].bytes &&
                  read.skipped == good[i].skipped,
              "place %d came as %u bytes at %lld", i, read.bytes, (long long)read.address);
    }
    tsr_wire_place(&back, &read);
    CHECK(!tsr_wire_is_good(&back), "%u bytes at %lld", read.bytes, (long long)read.address);
    tsr_wire_free(&wire);
}

/* ---- helpers that give no answer ------------------------------------------------------------- */

#define PAUSE_NANOSECONDS 10000000

/* Signs of life, or an answer byte by byte, for as long as somebody listens. */
static void speak_without_end(int fd, bool trickle) {
    const struct timespec pause = {.tv_nsec = PAUSE_NANOSECONDS};
    const tsr_wire_head head = tsr_wire_head_of(trickle ? TSR_WIRE_ANSWER_MAX : 0, 0);
    const char byte = 0;
    if (trickle && write(fd, &head, sizeof head) != sizeof head) return;
    while (trickle ? write(fd, &byte, 1) == 1 : write(fd, &head, sizeof head) == sizeof head) nanosleep(&pause, NULL);
}

static void check_endless(bool trickle) {
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "%s", strerror(errno));
    tsr_describer d = {.fd = pair[0], .most_seconds = 1};
    tsr_wire question = {.data = NULL}, answer;
    fflush(NULL);
    d.pid = fork();
    CHECK(d.pid >= 0, "%s", strerror(errno));
    if (d.pid == 0) {
        tsr_wire_head asked;
        signal(SIGPIPE, SIG_IGN);
        close(pair[0]);
        alarm(60);
        if (read(pair[1], &asked, sizeof asked) == sizeof asked) speak_without_end(pair[1], trickle);
        _exit(0);
    }
    close(pair[1]);
    const pid_t helper = d.pid;
    CHECK_FAILS(tsr_describer_ask(&d, "a.h5", 10, &question, &answer), TSR_ERR_FORMAT,
                "'a.h5' cannot be described: looking into it has no end (the answer took longer than 1 s)");
    CHECK(waitpid(helper, NULL, WNOHANG) < 0 && errno == ECHILD, "it was left behind");
    tsr_wire_free(&answer);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* A helper that answers with one message, whatever it is asked. */
static void answer_with(tsr_wire *message, tsr_describer *d) {
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "%s", strerror(errno));
    *d = (tsr_describer){.fd = pair[0], .pid = fork()};
    CHECK(d->pid >= 0, "%s", strerror(errno));
    if (d->pid > 0) {
        close(pair[1]);
        return;
    }
    tsr_wire_head asked;
    const tsr_wire_head head = tsr_wire_head_of(message->bytes, 0);
    close(pair[0]);
    alarm(60);
    const bool told = read(pair[1], &asked, sizeof asked) == sizeof asked &&
                      write(pair[1], &head, sizeof head) == sizeof head &&
                      write(pair[1], message->data, message->bytes) == (ssize_t)message->bytes;
    _exit(!told);
}

static void see_nothing(void *context, const tsr_store_desc *desc, const char *path, const char *refused) {
    (void)context;
    (void)desc;
    CHECK(path[0] == '/', "'%s' was believed: %s", path, refused ? refused : "a matrix");
}

/* What a list calls an object is a path, as its description's is. */
static void check_list(const char *path) {
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    char file[] = "/tmp/tessera-test-XXXXXX";
    const int fd = mkstemp(file);
    tsr_wire message = {.data = NULL};
    tsr_store_desc desc = contiguous;
    bool yes = true, no = false;
    const char *nothing = "";
    int64_t ok = TSR_OK;
    tsr_describer d;
    CHECK(fd >= 0 && write(fd, signature, 8) == 8 && ftruncate(fd, FILE_BYTES) == 0 && close(fd) == 0, "no '%s'", file);
    tsr_wire_bool(&message, &yes, "");
    tsr_wire_desc(&message, &desc);
    tsr_wire_long_text(&message, &path, "");
    tsr_wire_bool(&message, &no, "");
    tsr_wire_long_text(&message, &nothing, "");
    tsr_wire_bool(&message, &no, "");
    tsr_wire_number(&message, &ok, 0, TSR_STATUS_COUNT - 1, "");
    tsr_wire_long_text(&message, &nothing, "");
    answer_with(&message, &d);
    if (*path == '/') CHECK_OK(tsr_describe_list(&d, file, see_nothing, NULL));
    else CHECK_FAILS(tsr_describe_list(&d, file, see_nothing, NULL), TSR_ERR_FORMAT, "a path");
    tsr_describer_close(&d);
    tsr_wire_free(&message);
    CHECK(unlink(file) == 0, "no '%s'", file);
}

int main(void) {
    check_list("/A");
    check_list("A");
    check_list("");
    check_endless(false);
    check_endless(true);
    check_places();
    check_round_trip(&contiguous);
    check_round_trip(&chunked);
    check_round_trip(&scattered);
    check_pieces();
    check_lies();
    check_texts();
    check_truncated(&contiguous);
    check_truncated(&chunked);
    check_truncated(&scattered);
    check_mutations(&contiguous);
    check_mutations(&chunked);
    return 0;
}
