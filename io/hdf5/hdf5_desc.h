/* What a description (store.h) says of a dataset of HDF5 alone. Plain memory. Read in io/hdf5, io/chunks, and where it
 * travels (io/describe). */
#ifndef TSR_IO_HDF5_HDF5_DESC_H
#define TSR_IO_HDF5_HDF5_DESC_H

#include "io/chunks/chunk_decode.h"
#include "io/name.h"

typedef enum { TSR_LAYOUT_CONTIGUOUS, TSR_LAYOUT_CHUNKED, TSR_LAYOUT_COMPACT, TSR_LAYOUT_VIRTUAL } tsr_layout;

/* The names of the real and the imaginary part in a compound: h5py's; MATLAB's and Octave's; others'. */
typedef enum { TSR_FIELDS_R_I, TSR_FIELDS_REAL_IMAG, TSR_FIELDS_RE_IM, TSR_FIELDS_RE_IM_CAPITAL } tsr_fields;
#define TSR_FIELDS_COUNT 4

#define TSR_STORED_BYTES_MAX 64 /* of an element in the file, what lies between its parts included */

typedef struct {
    tsr_layout layout;
    int64_t stored_bytes; /* of an element in the file, before it is converted to `element`; 0: as many */
    bool standard;        /* element type is one read as it stands; false: HDF5 converts to `element` */
    bool raw_chunks;      /* chunks can be decoded without HDF5, by `pipeline` (tsr_decodes_chunks) */
    tsr_pipeline pipeline;
    uint8_t unwritten[TSR_ELEMENT_BYTES_MAX]; /* of raw chunks: an element that was never written, as it is read */
    char filters[96];                         /* "shuffle gzip(4)", "" for none */
    char matlab_class[16];                    /* MATLAB_class attribute, "" when absent */
    bool octave;                              /* the value of an Octave variable: stored transposed, as MATLAB's are */
    int64_t header_address;    /* of the dataset's object header in the file, where file_state is known */
    bool scattered;            /* virtual, or its bytes are in other files: read by desc.pieces alone */
    int64_t places;            /* of scattered: mappings or segments, wanted or not */
    char reads[240];           /* of scattered: the files that it names, for people: "'a.h5', 'b.h5' and others" */
    char root[TSR_FILE_CHARS]; /* the folder below which other files may be read for it; "": none may */
} tsr_hdf5_desc;

#endif
