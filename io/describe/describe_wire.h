/* Questions to the helper that describes files, and its answers (describe.h): numbers and texts one after the other,
 * behind a head with a magic word and the length. Whoever reads gives the range of each number and the room of each
 * text: what does not fit is noted, nothing is believed. Includes no HDF5. Local. */
#ifndef TSR_IO_DESCRIBE_DESCRIBE_WIRE_H
#define TSR_IO_DESCRIBE_DESCRIBE_WIRE_H

#include "io/store.h"

typedef enum {
    TSR_ASK_DESCRIBE, /* a name → whether its brackets belong to the path, a description of the whole dataset */
    TSR_ASK_LIST,     /* a file → datasets */
    TSR_ASK_RUNS,     /* a file → paths of records */
    TSR_ASK_RUN,      /* a file, a path → a record, as JSON */
    TSR_ASK_CHUNKS, /* a dataset, a range of its chunks → their places, where these are wanted; else they are found */
    TSR_ASK_PIECES, /* a part of a dataset, a folder → where its elements lie */
    TSR_ASK_EXISTING, /* an output and its target → whether the file holds other things */
    TSR_ASK_CARRIED,  /* a dimension of a dataset → what describes it (carried.h) */
    TSR_ASK_COUNT
} tsr_ask;

/* All zeros: empty, for writing. */
typedef struct tsr_wire {
    char *data;         /* owned */
    size_t bytes, room; /* bytes: written, or to be read */
    size_t at;          /* read so far */
    bool reading;
    const char *wrong; /* the first thing that was wrong while reading, NULL: nothing; "no memory" while writing */
} tsr_wire;

/* Before every message. Both programs must be of one build: the first fields say which. */
typedef struct {
    char magic[8], version[16]; /* version: TSR_VERSION, then zeros */
    uint32_t desc_bytes;        /* sizeof(tsr_store_desc) */
    uint32_t seconds;           /* of computing that the answer to a question may take */
    uint64_t bytes;             /* of the message behind it; 0: more was found, the answer is still to come */
} tsr_wire_head;
#define TSR_WIRE_MAGIC "TSRDSC03" /* changes with the messages */
#define TSR_WIRE_ASK_MAX ((uint64_t)1 << 20)
#define TSR_WIRE_ANSWER_MAX ((uint64_t)256 << 20)

tsr_wire_head tsr_wire_head_of(uint64_t bytes, uint32_t seconds);
/* Whether a head comes from a program of this build. */
bool tsr_wire_head_is_ours(const tsr_wire_head *head);

void tsr_wire_free(tsr_wire *wire);

/* Each writes, or reads: then the value must be in [least, most], else it becomes `least` and `what` is noted. */
void tsr_wire_number(tsr_wire *wire, int64_t *value, int64_t least, int64_t most, const char *what);
void tsr_wire_bool(tsr_wire *wire, bool *value, const char *what);
/* Text without zeros in it, in room for `chars` with the zero at its end. */
void tsr_wire_text(tsr_wire *wire, char *text, size_t chars, const char *what);
/* Text of any length. Reading: it points into the message. */
void tsr_wire_long_text(tsr_wire *wire, const char **text, const char *what);
/* Any bytes, `most` of them. Reading: *data is owned by the caller, NULL where there are none. */
void tsr_wire_block(tsr_wire *wire, char **data, int64_t *bytes, size_t most, const char *what);
void tsr_wire_name(tsr_wire *wire, tsr_matrix_name *name); /* file, path and slice */
/* One field after the other of a description of a whole dataset; name.file, name.slice, on_disk and what an opener
 * chooses stay as they are. */
void tsr_wire_desc(tsr_wire *wire, tsr_store_desc *desc);

void tsr_wire_place(tsr_wire *wire, tsr_chunk_place *place);
/* What TSR_ASK_CHUNKS asks of: file, path and chunks of the description. */
void tsr_wire_range(tsr_wire *wire, tsr_store_desc *desc, tsr_chunk_range *range, bool *wanted);

/* What TSR_ASK_PIECES asks of: file, path, folder, type, shape and part of the description. */
void tsr_wire_part(tsr_wire *wire, tsr_store_desc *desc);
/* One piece (io/pieces/pieces.h). */
struct tsr_piece;
void tsr_wire_piece(tsr_wire *wire, struct tsr_piece *piece);

/* Whether a message was read to its end and nothing was wrong with it. */
bool tsr_wire_is_good(tsr_wire *wire);

/* What does not fit in a description that came over a wire, NULL when it is one of a dataset that can be read from a
 * file of so many bytes. `refused`: of a listed dataset that is refused only the place counts; nobody reads it. */
const char *tsr_desc_wrong(const tsr_store_desc *desc, int64_t file_bytes, bool refused);

/* The same of a piece of a described part, whose file has so many bytes. */
const char *tsr_piece_wrong(const tsr_store_desc *desc, const struct tsr_piece *piece, int64_t file_bytes);

/* The helper's side (describe_serve.c): answers what comes from `fd`, until the other end closes it. `before_each` is
 * first given the seconds of computing that the answer may take. */
tsr_status tsr_describe_serve(int fd, void (*before_each)(uint32_t seconds));
/* For what looks through many objects of a file, at each: tells who waits for the answer, once a second, that it goes
 * on, until it has computed for a fifth of its seconds. Nothing to do in a process that serves nobody. */
void tsr_describe_goes_on(void);

#endif
