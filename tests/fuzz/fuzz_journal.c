/* Journals of --resume, torn or changed: what is no part is none, and what is a part lies in C. The input is the file;
 * or, where its first byte says so, changes of a good one whose sums are right again, as a hand would make them. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files/crc32c.h"
#include "io/output/resume/journal_private.h"
#include "io/output/resume/resume.h"
#include "tests/fuzz/fuzz.h"

enum { ROWS = 12, COLS = 10 };
#define SETTINGS "a: 1\npath: /C\n"

static tsr_output_spec spec = {.rows = ROWS, .cols = COLS, .dtype = TSR_F32};
static char journal[TSR_FILE_CHARS + 8], temporary[TSR_FILE_CHARS];
static uint8_t *good, *changed, *unfinished;
static size_t good_bytes, unfinished_bytes;

static uint8_t *slurp_file(const char *file, size_t *bytes) {
    struct stat st;
    FILE *from = fopen(file, "rb");
    CHECK(from && fstat(fileno(from), &st) == 0, "no '%s'", file);
    *bytes = (size_t)st.st_size;
    uint8_t *data = malloc(*bytes);
    CHECK(data && fread(data, 1, *bytes, from) == *bytes, "short read of '%s'", file);
    fclose(from);
    return data;
}

void fuzz_start(void) {
    tsr_output output;
    tsr_store *store;
    float data[ROWS * COLS] = {1, 2, 3};
    tsr_part parts[ROWS];
    static tsr_journal_head head = {.generation = 1, .cut_m = 4, .cut_n = 4, .ranks = 1, .settings = SETTINGS};
    CHECK_OK(tsr_matrix_name_parse(fuzz_file("c.npy"), &spec.name));
    CHECK_OK(tsr_output_create(&spec, &output));
    CHECK_OK(tsr_output_open(&output, TSR_IO_AUTO, NULL, &store));
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, ROWS, COLS}, data, COLS));
    CHECK_OK(store->ops->sync(store));
    tsr_store_close(store);
    for (int r = 0; r < ROWS; r++)
        parts[r] =
            (tsr_part){.rect = {r, 0, 1, COLS}, .sum = tsr_crc32c(0, data + (size_t)r * COLS, sizeof(float) * COLS)};
    CHECK_OK(tsr_resume_keep(&output, &head, parts, ROWS));
    snprintf(journal, sizeof journal, "%s", output.journal);
    snprintf(temporary, sizeof temporary, "%s", output.desc.name.file);
    close(output.lock_fd);
    good = slurp_file(journal, &good_bytes);
    changed = malloc(good_bytes);
    CHECK(changed, "no memory");
    unfinished = slurp_file(temporary, &unfinished_bytes);
}

static void put(const char *file, const void *data, size_t bytes) {
    const int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes && close(fd) == 0, "cannot write '%s'", file);
}

/* Sums, digests and the file's number, as they are in a good journal. */
static void seal(uint8_t *bytes, size_t count) {
    struct stat st;
    tsr_journal_image *image = (tsr_journal_image *)(void *)bytes;
    CHECK(stat(temporary, &st) == 0, "no '%s'", temporary);
    image->head.inode = (uint64_t)st.st_ino;
    image->sum = tsr_crc32c(0, image, offsetof(tsr_journal_image, sum));
    for (size_t at = TSR_JOURNAL_HEAD_BYTES; at + sizeof(tsr_journal_record) <= count; at += sizeof(tsr_journal_record))
        tsr_record_seal((tsr_journal_record *)(void *)(bytes + at));
}

/* Where a hand may change something: fields of the head but for truth values, which it would not make others than true
 * and false, and records. */
#define HEAD(field)                                                                                                    \
    { offsetof(tsr_journal_image, head.field), sizeof((tsr_journal_image *)0)->head.field }
#define DESC(field) HEAD(output.desc.field)
static const struct {
    size_t at, bytes;
} fields[] = {{0, offsetof(tsr_journal_image, head)},
              {TSR_JOURNAL_HEAD_BYTES, TSR_JOURNAL_BLOCK},
              HEAD(generation),
              HEAD(cut_m),
              HEAD(cut_n),
              HEAD(ranks),
              HEAD(settings),
              HEAD(output.target),
              HEAD(output.journal),
              HEAD(output.encode_bytes),
              HEAD(output.lost),
              HEAD(output.target_identity),
              DESC(name.kind),
              DESC(name.file),
              DESC(name.path),
              DESC(rows),
              DESC(cols),
              DESC(row0),
              DESC(col0),
              DESC(dataset_rows),
              DESC(dataset_cols),
              DESC(dataset_dimensions),
              DESC(lead_size),
              DESC(stack_dimensions),
              DESC(matrix_dimensions),
              DESC(stack),
              DESC(matrices),
              DESC(element.dtype),
              DESC(offset),
              DESC(chunk_rows),
              DESC(chunk_cols)};

static void change_good(fuzz_bytes *from) {
    memcpy(changed, good, good_bytes);
    while (from->left > 0) {
        uint8_t bytes[8];
        uint16_t at;
        const uint8_t kind = fuzz_take_byte(from), length = fuzz_take_byte(from) % 9;
        fuzz_take(from, &at, sizeof at);
        fuzz_take(from, bytes, length);
        const size_t field = kind % (sizeof fields / sizeof *fields), within = at % fields[field].bytes;
        const size_t some = tsr_min(length, fields[field].bytes - within);
        memcpy(changed + fields[field].at + within, bytes, some);
    }
    seal(changed, good_bytes);
    put(journal, changed, good_bytes);
}

static void see_left(void *context, const tsr_leftover *left) {
    (void)context;
    CHECK(memchr(left->path, '\0', sizeof left->path), "a path without an end");
}

static void go_on(void) {
    static tsr_resumed found;
    bool whole[64] = {false};
    if (tsr_resume_find(&spec, SETTINGS, &found) != TSR_OK || found.left != TSR_LEFT_UNFINISHED) return;
    const int64_t count = tsr_min(found.count, 64);
    CHECK_OK(tsr_resume_check(&found.head.output, found.parts, count, 0, 1, whole));
    for (int64_t i = 0; i < count; i++) {
        const tsr_rect *r = &found.parts[i].rect;
        CHECK(!whole[i] || (r->row >= 0 && r->col >= 0 && r->rows > 0 && r->cols > 0 && r->rows <= ROWS - r->row &&
                            r->cols <= COLS - r->col),
              "part %lld is not of C", (long long)i);
    }
    (void)tsr_parts_hold(found.parts, count, (tsr_rect){0, 0, ROWS, COLS});
    close(found.head.output.lock_fd);
    free(found.parts);
}

void fuzz_seeds(void) {
    uint8_t *raw = malloc(good_bytes + 1);
    CHECK(raw, "no memory");
    raw[0] = 0;
    memcpy(raw + 1, good, good_bytes);
    fuzz_seed("good", raw, good_bytes + 1);
    fuzz_seed("nothing", "\1", 1);
    fuzz_seed("part", "\1\1\10\100\0\1\0\0\0\0\0\0\0", 13);
    free(raw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_bytes from = {data, bytes};
    const uint8_t how = fuzz_take_byte(&from);
    put(temporary, unfinished, unfinished_bytes);
    if (how & 1) change_good(&from);
    else put(journal, from.at, from.left);
    (void)tsr_resume_list(spec.name.file, see_left, NULL);
    go_on();
    return 0;
}
