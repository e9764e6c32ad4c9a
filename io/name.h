/* How a person names a matrix on the command line: file.h5:/path, file.h5::/path, file.h5/path or file.h5, each with an
 * optional trailing slice [r0:r1,c0:c1] (half-open, either bound may be left out). Pure text, except that the file/path
 * form asks the file system where the file ends. */
#ifndef TSR_IO_NAME_H
#define TSR_IO_NAME_H

#include "kernels/base.h"

#define TSR_FILE_CHARS 1024
#define TSR_PATH_CHARS 512

typedef struct {
    char file[TSR_FILE_CHARS];
    char path[TSR_PATH_CHARS]; /* absolute inside the file; "" when none was given */
    bool sliced;
    int64_t row0, row1, col0, col1; /* -1: not given */
} tsr_matrix_name;

/* TSR_ERR_USAGE says which part could not be read and shows the forms. */
tsr_status tsr_matrix_name_parse(const char *text, tsr_matrix_name *name);

#endif
