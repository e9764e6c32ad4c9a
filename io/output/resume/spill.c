/* Files of encoded chunks that wait for a later run (spill.h). */
#include "io/output/resume/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/chunks/chunk_encode.h"
#include "io/files/crc32c.h"
#include "io/files/file_bytes.h"
#include "io/output/output_chunks_private.h"
#include "io/output/resume/journal_private.h"

#define ENDING ".chunks"

/* ---- one file -------------------------------------------------------------------------------- */

void tsr_spill_name(const char *temporary, const tsr_spilled *at, char name[TSR_SPILL_NAME_CHARS]) {
    char ending[64];
    snprintf(ending, sizeof ending, ".%llu-%d-%d" ENDING, (unsigned long long)at->generation, at->rank, at->file);
    tsr_beside_temporary(temporary, ending, name, TSR_SPILL_NAME_CHARS);
}

int tsr_spill_open(const char *temporary, const tsr_spilled *at) {
    char name[TSR_SPILL_NAME_CHARS];
    struct stat st;
    tsr_spill_name(temporary, at, name);
    return tsr_journal_file_open(name, O_RDWR, &st);
}

tsr_part tsr_spill_part(const tsr_store_desc *desc, int64_t number, uint32_t head_sum, const tsr_spilled *at) {
    int64_t matrix, i, j;
    tsr_part part = {.sum = head_sum, .number = number, .at = *at};
    tsr_encoded_place(desc, number, &matrix, &i, &j);
    part.rect.row = matrix * desc->rows + i * desc->chunk_rows;
    part.rect.col = j * desc->chunk_cols;
    part.rect.rows = tsr_min(desc->chunk_rows, desc->rows - i * desc->chunk_rows);
    part.rect.cols = tsr_min(desc->chunk_cols, desc->cols - part.rect.col);
    return part;
}

/* ---- what is whole --------------------------------------------------------------------------- */

/* The file that was read last stays open: chunks of one follow each other. */
typedef struct {
    const tsr_output *output;
    int fd;
    tsr_spilled of;
    tsr_encoded_chunk *buffer; /* a head and a chunk */
} reader;

static void look_into(reader *r, const tsr_spilled *at) {
    if (r->fd >= 0 && r->of.generation == at->generation && r->of.rank == at->rank && r->of.file == at->file) return;
    if (r->fd >= 0) close(r->fd);
    r->of = *at;
    r->fd = tsr_spill_open(r->output->desc.name.file, at);
}

static bool is_whole(reader *r, const tsr_part *part) {
    tsr_encoded_chunk *head = r->buffer;
    const ssize_t head_bytes = sizeof *head;
    look_into(r, &part->at);
    if (r->fd < 0 || tsr_read_at(r->fd, head, sizeof *head, part->at.offset) != head_bytes) return false;
    if (tsr_encoded_head_wrong(&r->output->desc, head)) return false;
    if (head->number != part->number || head->head_sum != part->sum) return false;
    const ssize_t got = tsr_read_at(r->fd, head + 1, head->bytes, part->at.offset + head_bytes);
    return got == (ssize_t)head->bytes && tsr_crc32c(0, head + 1, head->bytes) == head->bytes_sum;
}

tsr_status tsr_spill_check(const tsr_output *output, const tsr_part *parts, int64_t count, int64_t first, int64_t step,
                           bool *whole) {
    const tsr_output_spec spec = tsr_chunks_spec(&output->desc);
    reader r = {.output = output, .fd = -1};
    r.buffer = malloc(sizeof *r.buffer + tsr_chunk_stored_max(tsr_chunks_bytes_of(&spec)));
    if (!r.buffer) return tsr_fail(TSR_ERR_MEMORY, "no memory to check the chunks of '%s'", output->desc.name.file);
    for (int64_t i = first; i < count; i += step) whole[i] = is_whole(&r, &parts[i]);
    if (r.fd >= 0) close(r.fd);
    free(r.buffer);
    return TSR_OK;
}

/* ---- removing -------------------------------------------------------------------------------- */

static const char *base_of(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

typedef struct {
    const char *temporary; /* base name of the output's whose files go; NULL: of those that are gone */
} removal;

static tsr_status remove_file(void *context, const char *name, const char *after) {
    const removal *r = context;
    char temporary[2 * TSR_FILE_CHARS];
    struct stat st;
    (void)after;
    snprintf(temporary, sizeof temporary, "%.*s", (int)(strlen(name) - strlen(ENDING)), name);
    char *numbers = strrchr(temporary, '.');
    if (!numbers) return TSR_OK;
    snprintf(numbers, sizeof temporary - (size_t)(numbers - temporary), ".tmp");
    const bool goes =
        r->temporary ? strcmp(base_of(temporary), r->temporary) == 0 : lstat(temporary, &st) != 0 && errno == ENOENT;
    if (goes) unlink(name);
    return TSR_OK;
}

void tsr_spill_remove(const tsr_target *target, const char *temporary) {
    (void)tsr_temporary_each(target, ENDING, remove_file, &(removal){base_of(temporary)});
}

void tsr_spill_sweep(const tsr_target *target) {
    (void)tsr_temporary_each(target, ENDING, remove_file, &(removal){NULL});
}
