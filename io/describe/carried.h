/* What describes a matrix beside its elements, and goes with it into a product: dimension scales, labels, attributes
 * (docs/usage.md has the rules). Plain memory: the helper finds it in a file (describe.h), rank 0 writes it beside C.
 * Includes no HDF5. */
#ifndef TSR_IO_DESCRIBE_CARRIED_H
#define TSR_IO_DESCRIBE_CARRIED_H

#include "io/describe/describe_wire.h"

#define TSR_CARRIED_NAME_CHARS 256 /* of an attribute, a scale, a label */
#define TSR_VALUES_DIMENSIONS_MAX 8
#define TSR_SCALES_MAX 8               /* of one dimension */
#define TSR_CARRIED_ATTRIBUTES_MAX 256 /* of one object */
#define TSR_CARRIED_ATTRIBUTE_BYTES ((size_t)64 << 10)
#define TSR_CARRIED_SCALES_BYTES ((size_t)64 << 20) /* of all scales of one dimension */

typedef enum {
    TSR_VALUES_SIGNED,
    TSR_VALUES_UNSIGNED,
    TSR_VALUES_FLOAT,
    TSR_VALUES_BOOL,  /* h5py's: a byte, 0 or 1 */
    TSR_VALUES_TEXT,  /* of element_bytes each, padded */
    TSR_VALUES_TEXTS, /* of any length, each with a zero at its end, one behind the other */
    TSR_VALUES_KINDS
} tsr_values_kind;

/* Values of an attribute or a scale, numbers in this machine's order. */
typedef struct {
    tsr_values_kind kind;
    int64_t element_bytes; /* 1, 2, 4 or 8; of TEXT any; of TEXTS 0 */
    int padding;           /* of TEXT: H5T_str_t's number */
    bool utf8;             /* of texts; else ASCII */
    int dimensions;        /* 0: one value; -1: none at all (an empty attribute) */
    int64_t size[TSR_VALUES_DIMENSIONS_MAX];
    char *data; /* owned; NULL where there is none */
    int64_t bytes;
} tsr_values;

typedef struct {
    char name[TSR_CARRIED_NAME_CHARS];
    tsr_values values;
} tsr_carried_attribute;

typedef struct {
    tsr_carried_attribute *list; /* owned */
    int64_t count;
} tsr_carried_attributes;

/* A dimension scale, or the part of one that belongs to a slice. */
typedef struct {
    char name[TSR_CARRIED_NAME_CHARS];  /* the last part of its path */
    char title[TSR_CARRIED_NAME_CHARS]; /* its attribute NAME, "" for none */
    int64_t length;
    bool name_only;    /* a dimension without coordinates: no values, no attributes */
    tsr_values values; /* one dimension of `length` */
    tsr_carried_attributes attributes;
} tsr_scale;

/* What one input gives: the scales and the label of one of its dimensions, and where they are asked for its
 * attributes. All zeros: nothing. */
typedef struct tsr_carried {
    tsr_scale scales[TSR_SCALES_MAX];
    int64_t scale_count;
    char label[TSR_CARRIED_NAME_CHARS];
    bool matlab; /* it is a matrix of MATLAB's */
    tsr_carried_attributes attributes;
    char left_out[2048]; /* what was found and does not go with C, and why: a line each */
} tsr_carried;

/* What is asked for: of the dataset `path` of a file, the dimension that is `from_end` from the last (1: the last), of
 * which `length` elements are expected and [first, first + count) wanted. from_end 0: the dataset is itself a scale. */
#define TSR_CARRIED_NO_DIMENSION (-1) /* as from_end: only what is the dataset's as a whole */
typedef struct {
    const char *file, *path; /* not owned */
    int64_t from_end;
    int64_t length, first, count; /* from_end 0: they do not count */
    bool attributes;              /* those of the dataset, too */
} tsr_carried_question;

/* One line more of what is left out; what no longer fits is left out of that. */
void tsr_carried_note(tsr_carried *carried, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Room for one attribute more, all zeros; NULL: no memory. Owned by the list. */
tsr_carried_attribute *tsr_carried_add(tsr_carried_attributes *attributes);
void tsr_carried_free(tsr_carried *carried);
/* Nothing to do for a scale of all zeros. */
void tsr_scale_free(tsr_scale *scale);
/* Elements; false where 63 bits do not count them. */
bool tsr_values_count(const tsr_values *values, int64_t *count);
/* Whether one scale may stand for both: coordinates and attributes alike, whatever their names. */
bool tsr_scale_same(const tsr_scale *a, const tsr_scale *b);

/* Each writes, or reads and checks, as those of describe_wire.h. */
void tsr_wire_carried_question(tsr_wire *wire, tsr_carried_question *question);
void tsr_wire_carried(tsr_wire *wire, tsr_carried *carried);

/* Rank 0's. What the helper finds; `describer` NULL: this process looks. A failure is noted in left_out, and then
 * nothing is carried. The caller frees it. */
struct tsr_describer;
void tsr_describe_carried(struct tsr_describer *describer, const tsr_carried_question *question, tsr_carried *carried);

#endif
