/* How a person names a matrix on the command line: file.h5:/path, file.h5:path, file.h5::/path, file.h5/path or
 * file.h5, or as another kind of store has it (stores.h), each with an optional slice behind it. Pure text, except
 * that the file system is asked where the file's name ends. The slice is numpy's, [r0:r1,c0:c1], with bounds or one
 * number for each dimension, [i,r0:r1,c0:c1]. It is read when the shape is known, because bounds may count from the
 * end, and because a dataset may be called so. */
#ifndef TSR_IO_NAME_H
#define TSR_IO_NAME_H

#include "kernels/base/base.h"

#define TSR_FILE_CHARS 1024
#define TSR_PATH_CHARS 512

#define TSR_SLICE_CHARS 128
#define TSR_DIMENSIONS_MAX 32 /* as HDF5 has */
#define TSR_LEADS_MAX (TSR_DIMENSIONS_MAX - 2)

/* An array as it is stored, row by row. */
typedef struct {
    int dimensions;
    int64_t size[TSR_DIMENSIONS_MAX];
} tsr_shape;

typedef struct {
    int kind; /* of store: its number in stores.c */
    char file[TSR_FILE_CHARS];
    /* absolute inside the file; "" when none was given; what else a kind of store writes behind ':' */
    char path[TSR_PATH_CHARS];
    char slice[TSR_SLICE_CHARS];    /* as it was written, with its brackets; "" for none, and once it was applied */
    bool columns_first;             /* the slice was written by one who sees the transpose of what is stored */
    bool sliced;                    /* a slice was applied: */
    int64_t row0, row1, col0, col1; /* the half-open part it selects of each matrix that is stored */
    bool row_dropped, col_dropped;  /* by a single number, which leaves a vector */
    int dimensions;                 /* of what is stored: 0, 1 (col0 is 0 and col1 1), 2 or more */
    /* the same along each dimension before the last two */
    int64_t lead0[TSR_LEADS_MAX], lead1[TSR_LEADS_MAX];
    bool lead_dropped[TSR_LEADS_MAX];
} tsr_matrix_name;

/* TSR_ERR_USAGE says which part could not be read and shows the forms. */
tsr_status tsr_matrix_name_parse(const char *text, tsr_matrix_name *name);

/* Whether a name without its slice is of a file that is HDF5's by its ending or, where it is there, by its
 * signature. */
bool tsr_name_is_hdf5(const char *text);
/* Whether a text begins with a type, "f64" or "f64:10x20": what bare elements are called behind their file. */
bool tsr_name_begins_with_type(const char *text, tsr_dtype *type);

/* "file:/path[r0:r1,c0:c1]", the slice as its writer counts; cut where text is full. Returns text. */
const char *tsr_matrix_name_text(const tsr_matrix_name *name, char *text, size_t chars);

/* Dimensions before the last two, which are a matrix's. */
static inline int tsr_leads_of(int dimensions) { return dimensions > 2 ? dimensions - 2 : 0; }

/* Sets the part that name->slice selects, all where there is none, of what is stored in so many dimensions: those of
 * `size` and then rows x cols; one dimension has `rows`, none 1. As numpy does, bounds below 0 count from the end,
 * bounds beyond it are clipped, and a single number drops its dimension. Refused with the reason (TSR_ERR_USAGE): a
 * single element, a part of a matrix that is no block of rows and columns (steps other than 1; a row or column of
 * several matrices at once); parts without elements (TSR_ERR_SHAPE), unless they were written so ([3:3]) or nothing is
 * stored. The name is set on success only. */
tsr_status tsr_matrix_name_slice(tsr_matrix_name *name, int dimensions, const int64_t *size, int64_t rows,
                                 int64_t cols);

#endif
