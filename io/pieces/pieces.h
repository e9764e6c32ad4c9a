/* A matrix whose elements lie in several places: a virtual dataset, or one whose bytes are in other files. Each piece
 * is a rectangle of it that one described dataset or one run of bytes holds. Rank 0 makes the list (io/describe); every
 * rank gets a copy. Includes no HDF5. Local. */
#ifndef TSR_IO_PIECES_PIECES_H
#define TSR_IO_PIECES_PIECES_H

#include "io/store.h"

typedef struct tsr_piece {
    int64_t matrix;                      /* of those that are selected */
    tsr_rect rect;                       /* of that matrix in its dataset */
    bool filled;                         /* nothing is read for it: all elements are `fill` */
    bool bytes;                          /* `desc` describes bytes of a file, which need not be HDF5's */
    bool turned;                         /* the rows of `desc` are columns here; one side of it is 1 */
    uint8_t fill[TSR_ELEMENT_BYTES_MAX]; /* an element in this machine's byte order */
    tsr_store_desc desc; /* of what holds it: one matrix is selected, and a part of it as large as `rect` */
} tsr_piece;

typedef struct tsr_pieces {
    int users; /* the last one frees it; they come and go in one thread */
    int64_t count;
    tsr_piece piece[]; /* by their matrices; where two overlap the later one holds */
} tsr_pieces;

/* A dataset of more is refused: the list would take 50 MB and more. */
#define TSR_PIECES_MAX 16384

/* Selects one matrix of what holds the piece, by its index along each dimension before the last two, and a part of it.
 */
void tsr_piece_select(tsr_piece *piece, const int64_t *lead, tsr_rect part);
/* With one user, the caller, and pieces of zeros. TSR_ERR_MEMORY. */
tsr_status tsr_pieces_make(int64_t count, tsr_pieces **pieces);
/* One user less; NULL is fine. The indexes of chunks in it are left, too. */
void tsr_pieces_leave(tsr_pieces *pieces);
size_t tsr_pieces_bytes(const tsr_pieces *pieces); /* of memory; 0 for NULL */

/* Opens desc->pieces for reading as one matrix. Few pieces are open at a time: each is opened when it is wanted, and
 * compared with what was described; so is what it was when it is closed. TSR_ERR_UNSUPPORTED for TSR_IO_MPIO. */
tsr_status tsr_pieces_open(const tsr_store_desc *desc, tsr_io_mode mode, tsr_store **store);

#endif
