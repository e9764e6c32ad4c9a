/* How a person names a matrix on the command line: file.h5:/path, file.h5:path, file.h5::/path, file.h5/path or
 * file.h5, each with an optional slice behind it. Pure text, except that the file system is asked where the file's
 * name ends. The slice is numpy's, [r0:r1,c0:c1]: it is read when the shape is known, because bounds may count from
 * the end, and because a dataset may be called so. */
#ifndef TSR_IO_NAME_H
#define TSR_IO_NAME_H

#include "kernels/base.h"

#define TSR_FILE_CHARS 1024
#define TSR_PATH_CHARS 512

#define TSR_SLICE_CHARS 128

typedef struct {
    char file[TSR_FILE_CHARS];
    char path[TSR_PATH_CHARS]; /* absolute inside the file; "" when none was given */
    char slice[TSR_SLICE_CHARS]; /* as it was written, with its brackets; "" for none, and once it was applied */
    bool columns_first; /* the slice was written by one who sees the transpose of what is stored */
    bool sliced; /* a slice was applied: */
    int64_t row0, row1, col0, col1; /* the half-open part it selects of what is stored */
} tsr_matrix_name;

/* TSR_ERR_USAGE says which part could not be read and shows the forms. */
tsr_status tsr_matrix_name_parse(const char *text, tsr_matrix_name *name);

/* "file:/path[r0:r1,c0:c1]", the slice as its writer counts; cut where text is full. Returns text. */
const char *tsr_matrix_name_text(const tsr_matrix_name *name, char *text, size_t chars);

/* Applies name->slice, if there is one, to a matrix stored as rows x cols: sets sliced and the part. As numpy does,
 * bounds below 0 count from the end and bounds beyond it are clipped. Refused with the reason: single numbers
 * (TSR_ERR_USAGE: they would drop a dimension), steps other than 1, and parts without elements (TSR_ERR_SHAPE),
 * unless they were written so ([3:3]) or the matrix has none. The name is set on success only. */
tsr_status tsr_matrix_name_slice(tsr_matrix_name *name, int64_t rows, int64_t cols);

#endif
