/* What a virtual dataset maps, and what a dataset with external storage names, as its creation properties say: nothing
 * is opened. The lock is taken. */
#ifndef TSR_IO_HDF5_EXTERNAL_MAPPING_H
#define TSR_IO_HDF5_EXTERNAL_MAPPING_H

#include <hdf5.h>

#include "io/store.h"

/* A block of a dataspace. */
typedef struct {
    bool all; /* the whole dataset, whose size is not known yet */
    int dimensions;
    int64_t start[H5S_MAX_RANK + 2], count[H5S_MAX_RANK + 2];
} tsr_h5_block;

/* One mapping of a virtual dataset: a block of it shows a block of a source with as many elements. */
typedef struct {
    tsr_h5_block shown, source;
    char file[TSR_FILE_CHARS]; /* "." is the virtual dataset's own */
    char path[TSR_PATH_CHARS]; /* absolute */
} tsr_h5_mapping;

/* Reads mapping `number`. NULL, or why it cannot be read as a block: static text. */
const char *tsr_h5_mapping_read(hid_t properties, size_t number, tsr_h5_mapping *mapping);

/* Sees the block as the dataset that it is in is described, with rows and columns as its last two dimensions, of which
 * a vector lacks one. False where the dataset has another number of dimensions. */
bool tsr_h5_block_in(tsr_h5_block *block, const tsr_store_desc *desc);

/* Both blocks were seen as their datasets are (tsr_h5_block_in) from here on; the source's not yet for the first.
 * *part: of the virtual dataset's matrix, cut to what the mapping shows, which may be nothing. `lead`: the index along
 * the dimensions before its last two. */
void tsr_h5_mapping_cut(const tsr_h5_mapping *mapping, const int64_t *lead, tsr_rect *part);

/* What of a source a part of a virtual dataset's matrix shows. */
typedef struct {
    int64_t lead[TSR_LEADS_MAX]; /* the index along the dimensions before its last two */
    tsr_rect rect;
    bool turned; /* its rows are columns of the part, and one side is 1 */
} tsr_h5_shown;

/* `part`: as it was cut. NULL, or why the source's elements are not a rectangle of it: static text. */
const char *tsr_h5_mapping_show(const tsr_h5_mapping *mapping, const int64_t *lead, tsr_rect part, tsr_h5_shown *shown);

/* A run of bytes of a dataset with external storage. */
typedef struct {
    char file[TSR_FILE_CHARS];
    int64_t offset, bytes; /* bytes: INT64_MAX for as many as there are */
} tsr_h5_segment;

const char *tsr_h5_segment_read(hid_t properties, unsigned number, tsr_h5_segment *segment);

/* Sets scattered, places and reads of the description. *outside: other files are named. *refused: why it cannot be
 * read, NULL where nothing stands against it yet. */
void tsr_h5_places(hid_t properties, tsr_store_desc *desc, bool *outside, const char **refused);

#endif
