/* Outputs that are left unfinished: found again with what is whole of them; described anew where a run died of that;
 * and refused where something changed. */
#define _GNU_SOURCE /* nftw */
#include "io/output/resume/resume.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "io/files/crc32c.h"
#include "io/hdf5/store_hdf5.h"
#include "io/output/output_chunks.h"
#include "io/output/resume/journal_private.h"
#include "io/stores.h"
#include "tests/io/scratch.h"

enum { ROWS = 60, COLS = 50 };

static tsr_output_spec spec_for(const char *name) {
    tsr_output_spec spec = {.rows = ROWS, .cols = COLS, .dtype = TSR_F32};
    CHECK_OK(tsr_matrix_name_parse(in_scratch(name), &spec.name));
    return spec;
}

static tsr_journal_head head_for(const char *settings) {
    tsr_journal_head head;
    memset(&head, 0, sizeof head);
    head.generation = head.cut_m = head.cut_n = head.ranks = 1;
    snprintf(head.settings, sizeof head.settings, "%s", settings);
    return head;
}

static float element(int64_t row, int64_t col) { return (float)(row * 100 + col); }

/* Begins an output, and writes its first rows. */
static void begin(const tsr_output_spec *spec, const char *settings, int64_t rows, tsr_output *output) {
    tsr_store *store;
    float data[ROWS][COLS];
    const tsr_journal_head head = head_for(settings);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < COLS; c++) data[r][c] = element(r, c);
    CHECK_OK(tsr_output_create(spec, output));
    CHECK_OK(tsr_output_open(output, TSR_IO_AUTO, NULL, &store));
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, rows, COLS}, data, COLS));
    CHECK_OK(store->ops->sync(store));
    tsr_store_close(store);
    tsr_part parts[ROWS];
    for (int64_t r = 0; r < rows; r++)
        parts[r] = (tsr_part){.rect = {r, 0, 1, COLS}, .sum = tsr_crc32c(0, data[r], sizeof data[r])};
    CHECK_OK(tsr_resume_keep(output, &head, parts, rows));
}

/* As the death of its process would. */
static void die(const tsr_output *output) { close(output->lock_fd); }

static void change_byte(const char *file, int64_t at) {
    const int fd = open(file, O_RDWR);
    char byte;
    CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1, "no byte %lld of '%s'", (long long)at, file);
    byte = (char)~byte;
    CHECK(pwrite(fd, &byte, 1, at) == 1, "cannot write '%s'", file);
    close(fd);
}

static void check_file(const char *name) {
    tsr_matrix_name matrix;
    tsr_store_desc desc;
    tsr_store *store;
    float data[ROWS][COLS];
    CHECK_OK(tsr_matrix_name_parse(in_scratch(name), &matrix));
    CHECK_OK(tsr_store_describe(NULL, &matrix, &desc));
    CHECK_OK(tsr_store_open(&desc, TSR_IO_AUTO, NULL, NULL, &store));
    CHECK_OK(store->ops->read(store, (tsr_rect){0, 0, ROWS, COLS}, data, COLS));
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < COLS; c++)
            CHECK(data[r][c] == element(r, c), "(%lld, %lld)", (long long)r, (long long)c);
    tsr_store_close(store);
}

/* A run that dies at any moment of its end: what it had written of the file's description is undone. */
static void test_publishing(const char *name, const char *file, const char *as) {
    const tsr_output_spec spec = spec_for(name);
    tsr_output output;
    tsr_resumed *found = calloc(1, sizeof *found);
    begin(&spec, "a: 1\npath: /C\n", ROWS, &output);
    CHECK_OK(tsr_resume_publishing(&output));
    const int64_t offset = output.desc.offset, end = offset + ROWS * COLS * 4;
    if (offset > 0) change_byte(output.desc.name.file, 0);
    if (offset > 0) change_byte(output.desc.name.file, offset / 2);
    CHECK(truncate(output.desc.name.file, end + 5000) == 0, "no truncate");
    die(&output);
    CHECK_OK(tsr_resume_find(&spec, "a: 1\npath: /C\n", found));
    CHECK(found->left == TSR_LEFT_UNFINISHED && found->count == ROWS, "%d, %lld parts", (int)found->left,
          (long long)found->count);
    bool whole[ROWS] = {false};
    CHECK_OK(tsr_resume_check(&found->head.output, found->parts, found->count, 0, 1, whole));
    for (int r = 0; r < ROWS; r++) CHECK(whole[r], "part %d is not whole", r);
    output = found->head.output;
    found->head.generation++;
    CHECK_OK(tsr_resume_keep(&output, &found->head, found->parts, found->count));
    free(found->parts);
    CHECK_OK(tsr_output_publish(&output, NULL, "test"));
    check_file(as);
    CHECK(count_ending(scratch, ".tmp") == 0 && count_ending(scratch, ".head") == 0, "something is left");
    CHECK_OK(tsr_resume_find(&spec, "a: 1\npath: /C\n", found));
    CHECK(found->left == TSR_LEFT_COMPLETE, "C is complete, not %d", (int)found->left);
    CHECK_FAILS(tsr_resume_find(&spec, "a: 2\npath: /C\n", found), TSR_ERR_EXISTS, "a was 1 and is 2");
    CHECK(truncate(in_scratch(file), 100) == 0, "no truncate"); /* it is another file now */
    CHECK_OK(tsr_resume_find(&spec, "a: 1\npath: /C\n", found));
    CHECK(found->left == TSR_LEFT_NOTHING && count_ending(scratch, ".parts") == 0, "what is left: %d",
          (int)found->left);
    CHECK(unlink(in_scratch(file)) == 0, "no file");
    free(found);
}

static void test_refusals(void) {
    const tsr_output_spec spec = spec_for("r.npy");
    tsr_output_spec force = spec;
    tsr_output output, other;
    tsr_resumed *found = calloc(1, sizeof *found);
    force.force = true;
    begin(&spec, "a: 1\npath: /C\n", 20, &output);
    CHECK_FAILS(tsr_resume_find(&spec, "a: 1\npath: /C\n", found), TSR_ERR_EXISTS, "another job goes on");
    CHECK_FAILS(tsr_resume_find(&force, "a: 1\npath: /C\n", found), TSR_ERR_EXISTS, "another job goes on");
    CHECK(!tsr_output_discard(&output), "it was removed");
    die(&output);
    CHECK_FAILS(tsr_resume_find(&spec, "a: 2\npath: /C\n", found), TSR_ERR_EXISTS, "a was 1 and is 2");
    CHECK_FAILS(tsr_output_create(&spec, &other), TSR_ERR_EXISTS, "--resume");
    change_byte(output.desc.name.file, output.desc.offset + 5 * COLS * 4);
    CHECK_OK(tsr_resume_find(&spec, "a: 1\npath: /C\n", found));
    CHECK(found->left == TSR_LEFT_UNFINISHED && found->count == 20, "%lld parts", (long long)found->count);
    bool whole[20] = {false};
    CHECK_OK(tsr_resume_check(&found->head.output, found->parts, 20, 1, 2, whole)); /* every second one */
    for (int r = 0; r < 20; r++) CHECK(whole[r] == (r % 2 == 1 && r != 5), "part %d", r);
    free(found->parts);
    die(&found->head.output);
    CHECK_OK(tsr_resume_find(&force, "a: 2\npath: /C\n", found));
    CHECK(found->left == TSR_LEFT_NOTHING && count_ending(scratch, ".tmp") == 0, "it was not removed");
    begin(&spec, "a: 1\npath: /C\n", 20, &output);
    die(&output);
    CHECK_OK(tsr_output_create(&force, &other));
    CHECK(count_ending(scratch, ".tmp") == 1 && count_ending(scratch, ".parts") == 0, "what was left is still there");
    CHECK(tsr_output_discard(&other), "nothing to remove");
    close(other.lock_fd);
    /* a journal of nobody's format is no reason to lose what lies beside it */
    begin(&spec, "a: 1\npath: /C\n", 20, &output);
    die(&output);
    change_byte(output.journal, 100);
    CHECK_FAILS(tsr_resume_find(&spec, "a: 1\npath: /C\n", found), TSR_ERR_FORMAT, "no journal");
    CHECK_OK(tsr_resume_find(&force, "a: 1\npath: /C\n", found));
    CHECK(count_ending(scratch, ".tmp") == 0, "it was not removed");
    free(found);
}

/* Journals that a hand wrote, sums and all: what cannot be is refused, and parts outside of C are none. Found by
 * tests/fuzz/fuzz_journal.c, but for the first. */
static void test_forged(void) {
    const tsr_output_spec spec = spec_for("f.npy");
    tsr_output output;
    tsr_resumed *found = calloc(1, sizeof *found);
    size_t bytes;
    begin(&spec, "a: 1\npath: /C\n", 20, &output);
    die(&output);
    char *good = slurp(output.journal, &bytes), *changed = malloc(bytes);
    CHECK(changed, "no memory");
    for (int lie = 0; lie < 13; lie++) {
        memcpy(changed, good, bytes);
        tsr_journal_image *image = (tsr_journal_image *)(void *)changed;
        tsr_store_desc *desc = &image->head.output.desc;
        tsr_journal_record *part = (tsr_journal_record *)(void *)(changed + TSR_JOURNAL_HEAD_BYTES);
        if (lie == 1) desc->offset = INT64_MAX;
        if (lie == 2) desc->offset = -1;
        if (lie == 3) desc->rows = -1;
        if (lie == 4) desc->dataset_cols = INT64_MAX / 4;
        if (lie == 5) desc->element.dtype = (tsr_dtype)200;
        if (lie == 6) desc->dataset_dimensions = 1000;
        if (lie == 7) desc->stack_dimensions = -3;
        if (lie == 8) memset(image->head.output.target, 'x', sizeof image->head.output.target);
        if (lie == 9) part->values[0] = INT64_MAX;
        if (lie == 10) part->values[3] = INT64_MAX;
        if (lie == 11) part->values[2] = -1;
        if (lie == 12) desc->name.kind = 77;
        image->sum = tsr_crc32c(0, image, offsetof(tsr_journal_image, sum));
        tsr_record_seal(part);
        FILE *to = fopen(output.journal, "wb");
        CHECK(to && fwrite(changed, 1, bytes, to) == bytes && fclose(to) == 0, "cannot write '%s'", output.journal);
        if (lie >= 1 && lie < 9)
            CHECK_FAILS(tsr_resume_find(&spec, "a: 1\npath: /C\n", found), TSR_ERR_FORMAT, "no journal");
        else if (lie == 12)
            CHECK_FAILS(tsr_resume_find(&spec, "a: 1\npath: /C\n", found), TSR_ERR_EXISTS, "its file was replaced");
        else {
            CHECK_OK(tsr_resume_find(&spec, "a: 1\npath: /C\n", found));
            CHECK(found->count == (lie == 0 ? 20 : 19), "lie %d: %lld parts", lie, (long long)found->count);
            die(&found->head.output);
        }
        free(found->parts);
        found->parts = NULL;
    }
    CHECK(unlink(output.journal) == 0 && unlink(output.desc.name.file) == 0, "nothing to remove");
    free(good);
    free(changed);
    free(found);
}

/* A journal of chunks that says of one what cannot be. */
static void test_forged_chunk(void) {
    tsr_output_spec spec = spec_for("g.h5");
    tsr_output output;
    tsr_store *store;
    tsr_part *parts;
    int64_t count;
    float data[ROWS][COLS] = {{1}};
    const tsr_journal_head head = head_for("a: 1\npath: /C\n");
    tsr_resumed *found = calloc(1, sizeof *found);
    spec.chunk_rows = spec.chunk_cols = 25;
    CHECK_OK(tsr_output_create(&spec, &output));
    CHECK_OK(tsr_output_open(&output, TSR_IO_AUTO, NULL, &store));
    tsr_chunks_name(store, 1, 0);
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, ROWS, COLS}, data, COLS));
    CHECK_OK(store->ops->sync(store));
    tsr_chunks_fresh(store, &parts, &count);
    CHECK(count == 6, "%lld chunks", (long long)count);
    for (int lie = 0; lie < 6; lie++) {
        tsr_part told[6];
        memcpy(told, parts, sizeof told);
        if (lie == 1) told[2].number = 6;
        if (lie == 2) told[2].number = -1;
        if (lie == 3) told[2].at.offset = -1;
        if (lie == 4) told[2].at.offset += 1;
        if (lie == 5) told[2].at.generation = 3;
        CHECK_OK(tsr_resume_keep(&output, &head, told, count));
        die(&output);
        CHECK_OK(tsr_resume_find(&spec, "a: 1\npath: /C\n", found));
        output = found->head.output;
        CHECK(found->count == (lie >= 1 && lie <= 3 ? 5 : 6), "lie %d: %lld parts", lie, (long long)found->count);
        bool whole[6] = {false};
        CHECK_OK(tsr_resume_check(&output, found->parts, found->count, 0, 1, whole));
        for (int i = 0; i < found->count; i++)
            CHECK(whole[i] == (found->parts[i].number != parts[2].number || lie < 4), "lie %d, chunk %d", lie, i);
        free(found->parts);
        found->parts = NULL;
    }
    tsr_store_close(store);
    tsr_resume_forget(&output);
    die(&output);
    CHECK(count_ending(scratch, ".tmp") == 0 && count_ending(scratch, ".chunks") == 0, "something is left");
    free(parts);
    free(found);
}

int main(void) {
    scratch_make();
    test_forged_chunk();
    test_forged();
    test_publishing("p.h5", "p.h5", "p.h5");
    test_publishing("p.npy", "p.npy", "p.npy");
    test_publishing("p.bin:f32", "p.bin", "p.bin:f32:60x50");
    test_refusals();
    scratch_remove();
    return 0;
}
