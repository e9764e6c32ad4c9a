/* What of an unfinished output is whole, so that a later run goes on from there. A journal is a file beside the output:
 * a head, and records of 64 bytes. A record says that the bytes of a part of C are on stable storage, and what they sum
 * up to. Each has a sum of its own: one that was torn is none. So a journal is true at any moment, and a run may be
 * killed at any.
 *
 * Ranks write blocks of 4 KiB that are theirs alone, each its own process and perhaps its own node. Nothing in it is
 * locked: whoever holds the output's temporary file (output.h) may read and replace the journal. */
#ifndef TSR_IO_OUTPUT_RESUME_JOURNAL_H
#define TSR_IO_OUTPUT_RESUME_JOURNAL_H

#include "io/output/output.h"

#define TSR_JOURNAL_SETTINGS 16384 /* characters that say of what and how C is made */
#define TSR_JOURNAL_SECONDS 5.0    /* between two commits, at most */
#define TSR_JOURNAL_GROUP 64       /* times that parts were added, of one commit, about */

/* Where an encoded chunk waits (spill.h). */
typedef struct {
    uint64_t generation; /* of the run that wrote it */
    int32_t rank, file;  /* likewise */
    int64_t offset;      /* of its head in the file */
} tsr_spilled;

/* A part of C as it is stored, all its matrices one below the other; of chunked C a chunk. */
typedef struct {
    tsr_rect rect;
    uint32_t sum;   /* crc32c of its bytes, row after row; of a chunk that of its head (tsr_encoded_chunk) */
    int64_t number; /* of the chunk, */
    tsr_spilled at; /* and where it is */
} tsr_part;

typedef struct {
    uint64_t generation;                 /* of the run that writes to it: the first is 1 */
    int64_t cut_m, cut_n;                /* super-blocks of the first run's plan */
    int ranks;                           /* that write to it */
    tsr_output output;                   /* where the bytes are */
    uint64_t inode;                      /* of that file */
    char settings[TSR_JOURNAL_SETTINGS]; /* lines "what: value": the digest in each record is theirs */
} tsr_journal_head;

/* What a journal says besides parts. */
typedef struct {
    bool publishing;     /* all parts are whole, and what describes them in the file is being written */
    bool published;      /* C got its name; it had then: */
    int64_t identity[3]; /* bytes, seconds and nanoseconds of the last change */
} tsr_journal_state;

/* Local, as all that follows. Makes the journal, or puts it in the old one's place at once: after a crash one of them
 * is there, whole. */
tsr_status tsr_journal_write(const char *name, const tsr_journal_head *head, const tsr_part *parts, int64_t count);
/* TSR_ERR_FORMAT where it is no journal of this version of Tessera; parts are those whose records are whole; the
 * caller frees *parts. */
tsr_status tsr_journal_read(const char *name, tsr_journal_head *head, tsr_journal_state *state, tsr_part **parts,
                            int64_t *count);
uint64_t tsr_journal_digest(const char *settings);
/* Whether the parts together hold all of the rectangle, however they lie. */
bool tsr_parts_hold(const tsr_part *parts, int64_t count, tsr_rect rect);
/* The first line in which settings differ, as "alpha was 2 and is 3"; "" where none does. `chars`: of text. */
void tsr_journal_changes(const char *before, const char *now, char *text, size_t chars);

/* ---- writing to it ---------------------------------------------------------------------------- */

typedef struct tsr_journal tsr_journal;

/* Opens the journal for a rank. `sync` brings what was written to the output to stable storage; it is called by a
 * thread of the journal's, every TSR_JOURNAL_SECONDS in which a part was added, or where many were. */
tsr_status tsr_journal_open(const char *name, int rank, tsr_status (*sync)(void *context), void *context,
                            tsr_journal **journal);
uint64_t tsr_journal_generation(const tsr_journal *journal); /* of the run that writes to it */
/* Any thread: the parts have been written. Fails where a commit did. */
tsr_status tsr_journal_add(tsr_journal *journal, const tsr_part *parts, int64_t count);
/* All that was added is recorded when this returns. */
tsr_status tsr_journal_commit(tsr_journal *journal);
/* When no rank adds parts any more: a record of the state behind all others, on stable storage. */
tsr_status tsr_journal_say(tsr_journal *journal, const tsr_journal_state *state);
/* Without a commit; NULL is fine. */
void tsr_journal_close(tsr_journal *journal);

#endif
