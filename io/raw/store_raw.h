/* Matrices that are the bytes of a file, one row behind the other: NumPy's .npy, which says what they are, and bare
 * files, whose names do. */
#ifndef TSR_IO_RAW_STORE_RAW_H
#define TSR_IO_RAW_STORE_RAW_H

#include "io/raw/npy_header.h"
#include "io/stores.h"

extern const tsr_store_kind tsr_npy_kind;          /* file.npy */
extern const tsr_store_kind tsr_raw_kind;          /* file.bin:f32:1000x2000 */
extern const struct tsr_output_ops tsr_npy_output; /* output_raw.c */
extern const struct tsr_output_ops tsr_raw_output;

/* Whether a file is called as numpy's are. */
bool tsr_npy_is_name(const char *file);

/* What a bare file's name says behind the file: TYPE[:ROWSxCOLS[:OFFSET]]. */
typedef struct {
    tsr_dtype type;
    bool has_shape, has_offset;
    int64_t rows, cols; /* as the person sees them */
    int64_t offset;
} tsr_raw_form;

/* TSR_ERR_USAGE where the name's path is none. */
tsr_status tsr_raw_form_read(const tsr_matrix_name *name, tsr_raw_form *form);

/* An array of that shape at `offset`, as it lies in the file. `name` is its name, whose slice is applied. */
tsr_status tsr_raw_describe(const tsr_matrix_name *name, tsr_element element, const tsr_shape *shape, int64_t offset,
                            tsr_store_desc *desc);

#endif
