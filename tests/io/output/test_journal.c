/* Journals of unfinished outputs: what was added comes back, by any number of writers; a torn tail, a broken head, a
 * record of another generation or of other settings do not; parts are recorded after their bytes; and what parts hold
 * together. */
#define _GNU_SOURCE /* nftw */
#include "io/output/resume/journal.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "tests/io/scratch.h"

static atomic_int syncs;
static bool sync_fails;

static tsr_status sync_output(void *context) {
    (void)context;
    atomic_fetch_add(&syncs, 1);
    return sync_fails ? tsr_fail(TSR_ERR_IO, "the disk is gone") : TSR_OK;
}

static tsr_journal_head head_for(int ranks, const char *settings) {
    tsr_journal_head head;
    memset(&head, 0, sizeof head);
    head.generation = 1;
    head.cut_m = 100;
    head.cut_n = 200;
    head.ranks = ranks;
    head.output.desc = (tsr_store_desc){.rows = 100000,
                                        .cols = 100000,
                                        .dataset_rows = 100000,
                                        .dataset_cols = 100000,
                                        .dataset_dimensions = 2,
                                        .matrix_dimensions = 2,
                                        .matrices = 1,
                                        .element = {TSR_F32, false}};
    snprintf(head.settings, sizeof head.settings, "%s", settings);
    return head;
}

static tsr_part part_at(int64_t row, int64_t col) {
    return (tsr_part){.rect = {row, col, 10, 20}, .sum = (uint32_t)(row * 1000 + col)};
}

static int64_t read_count(const char *name) {
    tsr_journal_head head;
    tsr_journal_state state;
    tsr_part *parts;
    int64_t count;
    CHECK_OK(tsr_journal_read(name, &head, &state, &parts, &count));
    free(parts);
    return count;
}

/* ---- what was added comes back --------------------------------------------------------------- */

enum { RANKS = 3, EACH = 150 };

static void *write_rank(void *context) {
    const int rank = *(const int *)context;
    tsr_journal *journal;
    CHECK_OK(tsr_journal_open(in_scratch("many.parts"), rank, sync_output, NULL, &journal));
    for (int i = 0; i < EACH; i++)
        CHECK_OK(tsr_journal_add(journal, &(tsr_part){.rect = {rank, i, 1, 1}, .sum = (uint32_t)i}, 1));
    CHECK_OK(tsr_journal_commit(journal));
    tsr_journal_close(journal);
    return NULL;
}

static void test_round_trip(void) {
    const char *name = in_scratch("many.parts");
    char path[512];
    snprintf(path, sizeof path, "%s", name);
    tsr_journal_head head = head_for(RANKS, "alpha: 1\n"), back;
    const tsr_part kept[] = {part_at(1000, 0), part_at(1000, 20)};
    CHECK_OK(tsr_journal_write(path, &head, kept, 2));
    pthread_t threads[RANKS];
    int ranks[RANKS];
    for (int r = 0; r < RANKS; r++) {
        ranks[r] = r;
        CHECK(pthread_create(&threads[r], NULL, write_rank, &ranks[r]) == 0, "rank %d", r);
    }
    for (int r = 0; r < RANKS; r++) pthread_join(threads[r], NULL);
    tsr_journal_state state;
    tsr_part *parts;
    int64_t count;
    CHECK_OK(tsr_journal_read(path, &back, &state, &parts, &count));
    CHECK(count == 2 + RANKS * EACH, "%lld parts", (long long)count);
    CHECK(!state.publishing && !state.published, "it is not whole");
    CHECK(back.cut_n == 200 && strcmp(back.settings, "alpha: 1\n") == 0, "head: %s", back.settings);
    bool seen[RANKS][EACH] = {{false}};
    for (int64_t i = 2; i < count; i++) {
        const tsr_rect *at = &parts[i].rect;
        CHECK(!seen[at->row][at->col] && parts[i].sum == (uint32_t)at->col, "part %lld", (long long)i);
        seen[at->row][at->col] = true;
    }
    free(parts);
    /* of a later generation the records of the earlier one are none, but for those that it keeps */
    head.generation = 2;
    CHECK_OK(tsr_journal_write(path, &head, kept, 1));
    CHECK(read_count(path) == 1, "%lld parts", (long long)read_count(path));
    CHECK(count_ending(scratch, ".parts") == 1, "another file is left");
}

static void test_states(void) {
    char path[512];
    snprintf(path, sizeof path, "%s", in_scratch("states.parts"));
    tsr_journal_head head = head_for(1, "");
    tsr_journal_state state = {.publishing = true};
    tsr_part *parts;
    int64_t count;
    tsr_journal *journal;
    CHECK_OK(tsr_journal_write(path, &head, NULL, 0));
    CHECK_OK(tsr_journal_open(path, 0, sync_output, NULL, &journal));
    CHECK_OK(tsr_journal_say(journal, &state));
    CHECK_OK(tsr_journal_read(path, &head, &state, &parts, &count));
    CHECK(state.publishing && !state.published && count == 0, "%lld parts", (long long)count);
    free(parts);
    state = (tsr_journal_state){.published = true, .identity = {5, 6, 7}};
    CHECK_OK(tsr_journal_say(journal, &state));
    tsr_journal_close(journal);
    CHECK_OK(tsr_journal_read(path, &head, &state, &parts, &count));
    CHECK(state.publishing && state.published && state.identity[2] == 7, "identity %lld", (long long)state.identity[2]);
    free(parts);
}

/* ---- what does not --------------------------------------------------------------------------- */

static void flip(const char *path, int64_t at) {
    const int fd = open(path, O_RDWR);
    char byte;
    CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1, "cannot read '%s' at %lld", path, (long long)at);
    byte = (char)(byte ^ 1);
    CHECK(pwrite(fd, &byte, 1, at) == 1, "cannot write '%s'", path);
    close(fd);
}

static int64_t bytes_of(const char *path) {
    struct stat st;
    CHECK(stat(path, &st) == 0, "no '%s'", path);
    return st.st_size;
}

/* One writer's parts behind each other at the end of the file. */
static int64_t write_some(const char *path, int parts) {
    tsr_journal_head head = head_for(1, "alpha: 1\n");
    tsr_journal *journal;
    CHECK_OK(tsr_journal_write(path, &head, NULL, 0));
    const int64_t before = bytes_of(path);
    CHECK_OK(tsr_journal_open(path, 0, sync_output, NULL, &journal));
    for (int i = 0; i < parts; i++) {
        const tsr_part part = part_at(i, i);
        CHECK_OK(tsr_journal_add(journal, &part, 1));
    }
    CHECK_OK(tsr_journal_commit(journal));
    tsr_journal_close(journal);
    return before;
}

static void test_torn(void) {
    char path[512];
    snprintf(path, sizeof path, "%s", in_scratch("torn.parts"));
    const int64_t first = write_some(path, 10);
    CHECK(bytes_of(path) == first + 640, "%lld bytes", (long long)(bytes_of(path) - first));
    for (int64_t bytes = 640; bytes >= 0; bytes -= 7) {
        CHECK(truncate(path, first + bytes) == 0, "cannot cut");
        CHECK(read_count(path) == bytes / 64, "%lld parts of %lld bytes", (long long)read_count(path),
              (long long)bytes);
    }
    for (int64_t byte = 0; byte < 64; byte++) { /* any byte of a record */
        CHECK(write_some(path, 3) == first, "another head");
        flip(path, first + 64 + byte);
        CHECK(read_count(path) == 2, "byte %lld: %lld parts", (long long)byte, (long long)read_count(path));
    }
    tsr_journal_head head;
    tsr_journal_state state;
    tsr_part *parts;
    int64_t count;
    flip(path, 200); /* the head */
    CHECK_FAILS(tsr_journal_read(path, &head, &state, &parts, &count), TSR_ERR_FORMAT, "no journal");
    CHECK(truncate(path, 100) == 0, "cannot cut");
    CHECK_FAILS(tsr_journal_read(path, &head, &state, &parts, &count), TSR_ERR_FORMAT, "no journal");
    CHECK(symlink(path, in_scratch("link.parts")) == 0, "no link");
    CHECK_FAILS(tsr_journal_read(in_scratch("link.parts"), &head, &state, &parts, &count), TSR_ERR_IO, "cannot open");
}

/* Records of other settings, as of a file that was put together from two, are none. */
static void test_digest(void) {
    char one[512], two[512];
    char record[64];
    snprintf(one, sizeof one, "%s", in_scratch("one.parts"));
    snprintf(two, sizeof two, "%s", in_scratch("two.parts"));
    const int64_t first = write_some(one, 1);
    tsr_journal_head head = head_for(1, "alpha: 2\n");
    CHECK_OK(tsr_journal_write(two, &head, NULL, 0));
    const int from = open(one, O_RDONLY), to = open(two, O_RDWR);
    CHECK(pread(from, record, 64, first) == 64 && pwrite(to, record, 64, first) == 64, "no copy");
    close(from);
    close(to);
    CHECK(read_count(one) == 1 && read_count(two) == 0, "%lld parts", (long long)read_count(two));
}

/* ---- group commit ---------------------------------------------------------------------------- */

static void test_group_commit(void) {
    char path[512];
    snprintf(path, sizeof path, "%s", in_scratch("group.parts"));
    tsr_journal_head head = head_for(1, "");
    tsr_journal *journal;
    CHECK_OK(tsr_journal_write(path, &head, NULL, 0));
    CHECK_OK(tsr_journal_open(path, 0, sync_output, NULL, &journal));
    atomic_store(&syncs, 0);
    const tsr_part part = part_at(1, 1);
    CHECK_OK(tsr_journal_add(journal, &part, 1));
    CHECK(read_count(path) == 0, "recorded before it is on the disk");
    for (int i = 1; i < TSR_JOURNAL_GROUP; i++) CHECK_OK(tsr_journal_add(journal, &part, 1));
    for (int i = 0; i < 500 && read_count(path) == 0; i++) usleep(10000);
    CHECK(read_count(path) == TSR_JOURNAL_GROUP, "%lld parts", (long long)read_count(path));
    CHECK(atomic_load(&syncs) <= 2, "%d syncs for one group", atomic_load(&syncs));
    CHECK_OK(tsr_journal_add(journal, &part, 1)); /* alone: after some seconds */
    CHECK(read_count(path) == TSR_JOURNAL_GROUP, "recorded at once");
    for (int i = 0; i < 1000 && read_count(path) == TSR_JOURNAL_GROUP; i++) usleep(10000);
    CHECK(read_count(path) == TSR_JOURNAL_GROUP + 1, "%lld parts", (long long)read_count(path));
    sync_fails = true; /* nothing is recorded, and everybody is told */
    CHECK_OK(tsr_journal_add(journal, &part, 1));
    CHECK_FAILS(tsr_journal_commit(journal), TSR_ERR_IO, "the disk is gone");
    CHECK_FAILS(tsr_journal_add(journal, &part, 1), TSR_ERR_IO, "the disk is gone");
    CHECK_FAILS(tsr_journal_commit(journal), TSR_ERR_IO, "the disk is gone");
    sync_fails = false;
    tsr_journal_close(journal);
    CHECK(read_count(path) == TSR_JOURNAL_GROUP + 1, "%lld parts", (long long)read_count(path));
}

/* ---- what parts hold, what changed ----------------------------------------------------------- */

/* Against a count of elements. */
static void test_hold(void) {
    enum { EDGE = 12 };
    unsigned random = 7;
    int held = 0;
    for (int round = 0; round < 4000; round++) {
        tsr_part parts[8];
        bool whole[EDGE][EDGE] = {{false}}, all = true;
        int64_t values[9][4];
        for (int i = 0; i < 9; i++)
            for (int v = 0; v < 4; v++) {
                random = random * 1664525 + 1013904223;
                values[i][v] = (v < 2 ? 0 : 1) + (random >> 16) % (v < 2 ? 6 : i == 8 ? 4 : 7);
            }
        for (int i = 0; i < 8; i++) {
            const tsr_rect r = {values[i][0], values[i][1], values[i][2], values[i][3]};
            parts[i].rect = r;
            for (int64_t y = r.row; y < r.row + r.rows && y < EDGE; y++)
                for (int64_t x = r.col; x < r.col + r.cols && x < EDGE; x++) whole[y][x] = true;
        }
        const tsr_rect r = {values[8][0], values[8][1], values[8][2], values[8][3]};
        for (int64_t y = r.row; y < r.row + r.rows; y++)
            for (int64_t x = r.col; x < r.col + r.cols; x++) all = all && whole[y][x];
        CHECK(tsr_parts_hold(parts, 8, r) == all, "round %d", round);
        held += all;
    }
    CHECK(held > 400 && held < 3600, "%d held", held);
    CHECK(!tsr_parts_hold(NULL, 0, (tsr_rect){0, 0, 1, 1}) && tsr_parts_hold(NULL, 0, (tsr_rect){0, 0, 0, 1}), "none");
}

static void check_change(const char *before, const char *now, const char *want) {
    char text[256];
    tsr_journal_changes(before, now, text, sizeof text);
    CHECK(strcmp(text, want) == 0, "%s", text);
}

static void test_changes(void) {
    check_change("alpha: 1\nA: a.h5\n", "alpha: 1\nA: a.h5\n", "");
    check_change("alpha: 1\nA: a.h5\n", "alpha: 2\nA: a.h5\n", "alpha was 1 and is 2");
    check_change("alpha: 1\nA: a.h5\n", "alpha: 1\nA: b.h5\n", "A was a.h5 and is b.h5");
    check_change("alpha: 1\n", "alpha: 1\nA: b.h5\n", "'' was where 'A: b.h5' is");
    check_change("alpha: 1\n", "alpha: 11\n", "alpha was 1 and is 11");
}

int main(void) {
    scratch_make();
    test_round_trip();
    test_states();
    test_torn();
    test_digest();
    test_group_commit();
    test_hold();
    test_changes();
    scratch_remove();
    return 0;
}
