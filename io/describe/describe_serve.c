/* The helper's side of describe.h: answers each question with what the functions of this folder find, in this process.
 * It believes what it is asked, which comes from tessera; what the files hold is another matter. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/describe/describe_wire.h"
#include "io/hdf5/external/collect.h"
#include "io/hdf5/store_hdf5.h"
#include "io/output/output_private.h"
#include "io/record/record_read.h"

/* ---- answers --------------------------------------------------------------------------------- */

/* How it went: before what was found, behind lists. */
static void put_status(tsr_wire *answer, tsr_status status) {
    int64_t number = status;
    const char *message = status == TSR_OK ? "" : tsr_message();
    tsr_wire_number(answer, &number, 0, TSR_STATUS_COUNT - 1, "");
    tsr_wire_long_text(answer, &message, "");
}

static void put_desc(tsr_wire *answer, const tsr_store_desc *desc) {
    tsr_store_desc copy = *desc;
    tsr_wire_desc(answer, &copy);
}

/* Before each entry of a list, and behind the last. */
static void put_more(tsr_wire *answer, bool more) { tsr_wire_bool(answer, &more, ""); }

static void describe(tsr_wire *question, tsr_wire *answer) {
    tsr_matrix_name name;
    tsr_store_desc desc;
    char root[TSR_FILE_CHARS];
    bool called_so = false;
    memset(&name, 0, sizeof name);
    tsr_wire_name(question, &name);
    tsr_wire_text(question, root, sizeof root, "a folder");
    if (!tsr_wire_is_good(question)) return;
    const tsr_status status = tsr_hdf5_find(&name, root, &desc, &called_so);
    put_status(answer, status);
    if (status != TSR_OK) return;
    tsr_wire_bool(answer, &called_so, "");
    tsr_wire_text(answer, desc.name.file, sizeof desc.name.file, "");
    put_desc(answer, &desc);
}

static void put_entry(void *context, const tsr_store_desc *desc, const char *path, const char *refused) {
    tsr_wire *answer = context;
    bool is_refused = refused != NULL;
    const char *why = refused ? refused : "";
    put_more(answer, true);
    put_desc(answer, desc);
    tsr_wire_long_text(answer, &path, "");
    tsr_wire_bool(answer, &is_refused, "");
    tsr_wire_long_text(answer, &why, "");
}

static void list(tsr_wire *question, tsr_wire *answer) {
    const char *file, *root;
    tsr_wire_long_text(question, &file, "a file's name");
    tsr_wire_long_text(question, &root, "a folder");
    if (!tsr_wire_is_good(question)) return;
    const tsr_status status = tsr_hdf5_list(file, root, put_entry, answer);
    put_more(answer, false);
    put_status(answer, status);
}

static void put_path(void *context, const char *path) {
    put_more(context, true);
    tsr_wire_long_text(context, &path, "");
}

static void list_runs(tsr_wire *question, tsr_wire *answer) {
    const char *file;
    tsr_wire_long_text(question, &file, "a file's name");
    if (!tsr_wire_is_good(question)) return;
    const tsr_status status = tsr_record_list_hdf5(file, put_path, answer);
    put_more(answer, false);
    put_status(answer, status);
}

/* As text, for which there is a reader that believes nothing. The caller frees *text. */
static tsr_status run_as_json(const char *file, const char *path, char **text) {
    tsr_kept_record record;
    size_t bytes = 0;
    TSR_TRY(tsr_record_read_hdf5(file, path, &record));
    FILE *to = open_memstream(text, &bytes);
    tsr_status status = to ? tsr_record_write_json(&record.run, to) : TSR_OK;
    if (to && fclose(to) != 0) {
        free(*text);
        to = NULL;
    }
    if (!to) status = tsr_fail(TSR_ERR_MEMORY, "no memory for the record '%s' of '%s'; free some", path, file);
    tsr_record_free(&record);
    return status;
}

static void describe_run(tsr_wire *question, tsr_wire *answer) {
    const char *file, *path;
    char *text = NULL;
    tsr_wire_long_text(question, &file, "a file's name");
    tsr_wire_long_text(question, &path, "a path");
    if (!tsr_wire_is_good(question)) return;
    const tsr_status status = run_as_json(file, path, &text);
    put_status(answer, status);
    if (status != TSR_OK) return;
    tsr_wire_long_text(answer, (const char **)&text, "");
    free(text);
}

static void find_chunks(tsr_wire *question, tsr_wire *answer) {
    tsr_store_desc desc;
    tsr_chunk_range range;
    tsr_chunk_index *index = NULL;
    bool wanted = false;
    memset(&desc, 0, sizeof desc);
    tsr_wire_range(question, &desc, &range, &wanted);
    if (!tsr_wire_is_good(question)) return;
    tsr_status status = tsr_chunk_index_make(range, &index);
    if (status == TSR_OK) status = tsr_hdf5_find_chunks(&desc, range, index->places);
    put_status(answer, status);
    for (int64_t c = 0; status == TSR_OK && wanted && c < tsr_chunk_index_count(range); c++)
        tsr_wire_place(answer, &index->places[c]);
    tsr_chunk_index_leave(index);
}

static void find_pieces(tsr_wire *question, tsr_wire *answer) {
    tsr_store_desc desc;
    tsr_pieces *pieces = NULL;
    memset(&desc, 0, sizeof desc);
    tsr_wire_part(question, &desc);
    if (!tsr_wire_is_good(question)) return;
    const tsr_status status = tsr_hdf5_collect(&desc, &pieces);
    put_status(answer, status);
    if (status != TSR_OK) return;
    tsr_wire_number(answer, &pieces->count, 0, INT64_MAX, "");
    for (int64_t i = 0; i < pieces->count; i++) tsr_wire_piece(answer, &pieces->piece[i]);
    tsr_pieces_leave(pieces);
}

static void look_into_existing(tsr_wire *question, tsr_wire *answer) {
    tsr_output_spec spec;
    tsr_target target;
    tsr_matrix_name names[2 * TSR_SOURCES_MAX];
    char roles[TSR_SOURCES_MAX][16];
    bool others = false;
    tsr_wire_existing(question, &spec, &target, names, roles);
    if (!tsr_wire_is_good(question)) return;
    const tsr_status status = tsr_existing_look(&spec, &target, &others);
    put_status(answer, status);
    tsr_wire_bool(answer, &others, "");
}

static void find_carried(tsr_wire *question, tsr_wire *answer) {
    tsr_carried_question asked = {.file = NULL};
    tsr_carried carried = {.scale_count = 0};
    tsr_wire_carried_question(question, &asked);
    if (!tsr_wire_is_good(question)) return;
    const tsr_status status = tsr_hdf5_carried(&asked, &carried);
    put_status(answer, status);
    if (status == TSR_OK) tsr_wire_carried(answer, &carried);
    tsr_carried_free(&carried);
}

/* ---- questions ------------------------------------------------------------------------------- */

static void (*const answers[TSR_ASK_COUNT])(tsr_wire *question, tsr_wire *answer) = {
    [TSR_ASK_DESCRIBE] = describe,
    [TSR_ASK_LIST] = list,
    [TSR_ASK_RUNS] = list_runs,
    [TSR_ASK_RUN] = describe_run,
    [TSR_ASK_CHUNKS] = find_chunks,
    [TSR_ASK_PIECES] = find_pieces,
    [TSR_ASK_EXISTING] = look_into_existing,
    [TSR_ASK_CARRIED] = find_carried,
};

/* Reads `bytes`, or fewer where the other end closes. */
static size_t read_all(int fd, void *to, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        const ssize_t got = read(fd, (char *)to + done, bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += (size_t)got;
    }
    return done;
}

static bool write_all(int fd, const void *from, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t put = write(fd, (const char *)from + done, bytes - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        done += (size_t)put;
    }
    return true;
}

/* ---- who waits ------------------------------------------------------------------------------- */

static int asker = -1;    /* the connection to whoever waits for an answer, -1: nobody */
static double last_heard; /* tsr_now_seconds() when it last heard from here */
static clock_t patience;  /* clock() until which it hears: a fifth of what may be computed; a slow disk takes none */

/* One that is gone shows when the answer is written. */
void tsr_describe_goes_on(void) {
    if (asker < 0 || tsr_now_seconds() < last_heard + 1 || clock() > patience) return;
    const tsr_wire_head head = tsr_wire_head_of(0, 0);
    (void)write_all(asker, &head, sizeof head);
    last_heard = tsr_now_seconds();
}

static void find_answer(int fd, int64_t ask, uint32_t seconds, tsr_wire *question, tsr_wire *answer) {
    asker = fd;
    last_heard = tsr_now_seconds();
    patience = clock() + (clock_t)seconds * CLOCKS_PER_SEC / 5;
    answers[ask](question, answer);
    asker = -1;
}

static tsr_status answer_one(int fd, uint32_t seconds, tsr_wire *question) {
    tsr_wire answer = {.data = NULL};
    int64_t ask = TSR_ASK_COUNT;
    tsr_wire_number(question, &ask, 0, TSR_ASK_COUNT - 1, "what is asked");
    if (!question->wrong) find_answer(fd, ask, seconds, question, &answer);
    tsr_status status = TSR_OK;
    if (question->wrong) status = tsr_fail(TSR_ERR_USAGE, "a question was not understood: %s", question->wrong);
    else if (answer.wrong) status = tsr_fail(TSR_ERR_MEMORY, "no memory for an answer");
    const tsr_wire_head head = tsr_wire_head_of(answer.bytes, 0);
    if (status == TSR_OK && !(write_all(fd, &head, sizeof head) && write_all(fd, answer.data, answer.bytes)))
        status = tsr_fail(TSR_ERR_IO, "an answer was not taken");
    tsr_wire_free(&answer);
    return status;
}

/* The answer says which build this is. */
static tsr_status refuse(int fd) {
    const tsr_wire_head ours = tsr_wire_head_of(0, 0);
    (void)write_all(fd, &ours, sizeof ours);
    return tsr_fail(TSR_ERR_USAGE, "a question has another head: this program serves a tessera of the same build");
}

tsr_status tsr_describe_serve(int fd, void (*before_each)(uint32_t seconds)) {
    for (;;) {
        tsr_wire_head head;
        const size_t got = read_all(fd, &head, sizeof head);
        if (got == 0) return TSR_OK;
        if (got < sizeof head || !tsr_wire_head_is_ours(&head) || head.bytes > TSR_WIRE_ASK_MAX) return refuse(fd);
        tsr_wire question = {.data = malloc(head.bytes + 1), .bytes = head.bytes, .reading = true};
        tsr_status status = question.data ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for a question");
        if (status == TSR_OK && read_all(fd, question.data, head.bytes) < head.bytes)
            status = tsr_fail(TSR_ERR_USAGE, "a question has no end");
        if (status == TSR_OK) {
            before_each(head.seconds);
            status = answer_one(fd, head.seconds, &question);
        }
        tsr_wire_free(&question);
        TSR_TRY(status);
    }
}
