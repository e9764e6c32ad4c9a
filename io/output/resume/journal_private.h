/* A journal as it lies in its file: what journal.c and journal_writer.c share. */
#ifndef TSR_IO_OUTPUT_RESUME_JOURNAL_PRIVATE_H
#define TSR_IO_OUTPUT_RESUME_JOURNAL_PRIVATE_H

#include <stddef.h>
#include <sys/stat.h>

#include "io/output/resume/journal.h"

#define TSR_JOURNAL_MAGIC "TSRPART"
#define TSR_JOURNAL_BLOCK 4096

/* The head. */
typedef struct {
    char magic[8];
    int64_t bytes;   /* of this: another version's differs */
    int64_t kept;    /* records behind it that an earlier run left */
    uint64_t digest; /* of the settings */
    tsr_journal_head head;
    uint32_t sum; /* of all above */
} tsr_journal_image;

#define TSR_JOURNAL_HEAD_BYTES                                                                                         \
    ((int64_t)(sizeof(tsr_journal_image) + TSR_JOURNAL_BLOCK - 1) / TSR_JOURNAL_BLOCK * TSR_JOURNAL_BLOCK)

typedef enum { TSR_RECORD_PART = 1, TSR_RECORD_PUBLISHING, TSR_RECORD_PUBLISHED, TSR_RECORD_CHUNK } tsr_record_kind;

typedef struct {
    uint64_t generation, digest; /* as the head's */
    /* of a part: row, column, rows, columns; of a chunk: number, offset, generation, rank and file */
    int64_t values[4];
    uint32_t kind; /* tsr_record_kind */
    uint32_t part_sum;
    uint32_t spare;
    uint32_t sum; /* of all above */
} tsr_journal_record;

_Static_assert(sizeof(tsr_journal_record) == 64, "a block holds whole records");

tsr_journal_record tsr_record_of(const tsr_journal_image *image, const tsr_part *part);
void tsr_record_seal(tsr_journal_record *record);
/* Whether a head with the right sum can be one (journal_sane.c). */
bool tsr_journal_head_sane(const tsr_journal_head *head);
/* Whether there is a chunk of this number, and it may lie at this place of a file. */
bool tsr_journal_chunk_sane(const tsr_store_desc *desc, int64_t number, int64_t offset);
/* Drops parts that do not lie in C. How many are left. */
int64_t tsr_journal_sane_parts(const tsr_journal_head *head, tsr_part *parts, int64_t count);
/* A file that this user made, or -1 and errno. */
int tsr_journal_file_open(const char *name, int flags, struct stat *st);
/* The head and the file, open and `bytes` long; the caller closes *fd. */
tsr_status tsr_journal_load(const char *name, int flags, tsr_journal_image *image, int64_t *bytes, int *fd);

#endif
