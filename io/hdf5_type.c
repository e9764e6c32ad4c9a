/* What the elements of a dataset are, in the words of a person, and the matching type in memory. */
#include <stdio.h>
#include <string.h>

#include "io/hdf5_util.h"

static bool machine_is_big(void) { return H5Tget_order(H5T_NATIVE_INT) == H5T_ORDER_BE; }

static void refuse(tsr_h5_type *found, const char *name, const char *hint) {
    found->usable = false;
    snprintf(found->name, sizeof found->name, "%s", name);
    found->hint = hint;
}

/* Fields of a floating-point type, enough to tell IEEE formats from others. */
typedef struct {
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits, bias;
} float_fields;

static bool read_fields(hid_t type, float_fields *f) {
    if (H5Tget_fields(type, &f->sign, &f->exponent, &f->exponent_bits, &f->mantissa, &f->mantissa_bits) < 0) return false;
    f->bias = H5Tget_ebias(type);
    return H5Tget_norm(type) == H5T_NORM_IMPLIED;
}

static bool is_ieee(const float_fields *f, size_t bytes) {
    static const struct {
        size_t bytes;
        float_fields fields;
    } ieee[] = {{2, {15, 10, 5, 0, 10, 15}}, {4, {31, 23, 8, 0, 23, 127}}, {8, {63, 52, 11, 0, 52, 1023}}};
    for (size_t i = 0; i < sizeof ieee / sizeof *ieee; i++)
        if (ieee[i].bytes == bytes && memcmp(&ieee[i].fields, f, sizeof *f) == 0) return true;
    return false;
}

static void float_type(hid_t type, tsr_h5_type *found) {
    size_t bytes = H5Tget_size(type);
    float_fields f = {0};
    bool fields = read_fields(type, &f);
    found->usable = true;
    found->standard = fields && is_ieee(&f, bytes);
    if (found->standard) {
        found->element.dtype = bytes == 2 ? TSR_F16 : bytes == 4 ? TSR_F32 : TSR_F64;
        return;
    }
    found->element.dtype = f.mantissa_bits <= 23 && f.exponent_bits <= 8 ? TSR_F32 : TSR_F64;
    snprintf(found->name, sizeof found->name, "floating point of %zu bytes (read as %s)", bytes, tsr_dtype_name(found->element.dtype));
}

static void integer_type(hid_t type, tsr_h5_type *found) {
    static const tsr_dtype types[2][4] = {{TSR_U8, TSR_U16, TSR_U32, TSR_U64}, {TSR_I8, TSR_I16, TSR_I32, TSR_I64}};
    size_t bytes = H5Tget_size(type);
    int power = bytes <= 1 ? 0 : bytes <= 2 ? 1 : bytes <= 4 ? 2 : 3;
    if (bytes > 8) {
        snprintf(found->name, sizeof found->name, "integers of %zu bytes", bytes);
        found->hint = "convert it to 64-bit integers or f64";
        return;
    }
    found->usable = true;
    found->element.dtype = types[H5Tget_sign(type) == H5T_SGN_2][power];
    found->standard = bytes == (size_t)1 << power && H5Tget_precision(type) == 8 * bytes && H5Tget_offset(type) == 0;
    if (!found->standard)
        snprintf(found->name, sizeof found->name, "integers of %zu bits in %zu bytes (read as %s)", H5Tget_precision(type), bytes,
                 tsr_dtype_name(found->element.dtype));
}

/* Complex numbers as h5py ({r, i}), MATLAB and Octave ({real, imag}) write them. */
static bool is_complex(hid_t type, char *names, size_t chars) {
    static const char *const pairs[][2] = {{"r", "i"}, {"real", "imag"}, {"re", "im"}, {"Re", "Im"}};
    int members = H5Tget_nmembers(type);
    char all[100] = "";
    bool numbers = members == 2;
    for (int m = 0; m < members; m++) {
        char *name = H5Tget_member_name(type, (unsigned)m);
        size_t used = strlen(all);
        if (used < sizeof all - 1) snprintf(all + used, sizeof all - used, "%s%s", m ? ", " : "", name ? name : "?");
        if (name) H5free_memory(name);
        H5T_class_t class = H5Tget_member_class(type, (unsigned)m);
        numbers = numbers && (class == H5T_FLOAT || class == H5T_INTEGER);
    }
    snprintf(names, chars, "%s", all);
    for (size_t p = 0; numbers && p < sizeof pairs / sizeof *pairs; p++) {
        char pair[16];
        snprintf(pair, sizeof pair, "%s, %s", pairs[p][0], pairs[p][1]);
        if (strcmp(pair, all) == 0) return true;
    }
    return false;
}

static void compound_type(hid_t type, tsr_h5_type *found) {
    char members[100], text[160];
    if (is_complex(type, members, sizeof members)) {
        snprintf(text, sizeof text, "complex numbers (compound {%s})", members);
        refuse(found, text, "write real and imaginary parts as two datasets");
        return;
    }
    snprintf(text, sizeof text, "a compound {%s}", members);
    refuse(found, text, "write the column that is meant as a dataset of its own");
}

static bool is_boolean(hid_t type) {
    char *first = H5Tget_nmembers(type) == 2 ? H5Tget_member_name(type, 0) : NULL;
    bool boolean = first && (strcmp(first, "FALSE") == 0 || strcmp(first, "TRUE") == 0);
    if (first) H5free_memory(first);
    return boolean;
}

void tsr_h5_type_of(hid_t type, tsr_h5_type *found) {
    memset(found, 0, sizeof *found);
    H5T_class_t class = H5Tget_class(type);
    H5T_order_t order = H5Tget_order(type);
    switch ((int)class) {
    case H5T_FLOAT: float_type(type, found); break;
    case H5T_INTEGER: integer_type(type, found); break;
    case H5T_STRING: refuse(found, "strings", "convert them to numbers"); return;
    case H5T_COMPOUND: compound_type(type, found); return;
    case H5T_ENUM:
        if (is_boolean(type)) refuse(found, "booleans (an enum)", "convert them to 8-bit integers");
        else refuse(found, "an enum", "convert it to integers");
        return;
    case H5T_BITFIELD: refuse(found, "bit fields", "convert them to integers"); return;
    case H5T_OPAQUE: refuse(found, "opaque bytes", "convert them to numbers"); return;
    case H5T_REFERENCE: refuse(found, "references to objects", "name the dataset they point to"); return;
    case H5T_VLEN: refuse(found, "lists of varying length", "write them as a rectangle of numbers"); return;
    case H5T_ARRAY: refuse(found, "arrays", "write them as a dataset with two dimensions"); return;
    default: refuse(found, "a type that is not a number", "convert it to numbers"); return;
    }
    if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) found->standard = false; /* VAX */
    found->element.swapped = found->standard && tsr_dtype_bytes(found->element.dtype) > 1 && (order == H5T_ORDER_BE) != machine_is_big();
    if (found->usable && found->name[0] == '\0') {
        const char *prefix = !found->element.swapped ? "" : order == H5T_ORDER_BE ? "big-endian " : "little-endian ";
        snprintf(found->name, sizeof found->name, "%s%s", prefix, tsr_dtype_name(found->element.dtype));
    }
}

/* IEEE half in this machine's order. */
static hid_t half_type(void) {
    hid_t type = H5Tcopy(H5T_NATIVE_FLOAT);
    if (type < 0) return type;
    if (H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(type, 2) >= 0 && H5Tset_ebias(type, 15) >= 0) return type;
    H5Tclose(type);
    return -1;
}

hid_t tsr_h5_memory_type(tsr_dtype dtype) {
    switch (dtype) {
    case TSR_F16: return half_type();
    case TSR_F32: return H5Tcopy(H5T_NATIVE_FLOAT);
    case TSR_F64: return H5Tcopy(H5T_NATIVE_DOUBLE);
    case TSR_I8: return H5Tcopy(H5T_NATIVE_INT8);
    case TSR_I16: return H5Tcopy(H5T_NATIVE_INT16);
    case TSR_I32: return H5Tcopy(H5T_NATIVE_INT32);
    case TSR_I64: return H5Tcopy(H5T_NATIVE_INT64);
    case TSR_U8: return H5Tcopy(H5T_NATIVE_UINT8);
    case TSR_U16: return H5Tcopy(H5T_NATIVE_UINT16);
    case TSR_U32: return H5Tcopy(H5T_NATIVE_UINT32);
    case TSR_U64: return H5Tcopy(H5T_NATIVE_UINT64);
    case TSR_BF16:
    case TSR_DTYPE_COUNT: break; /* no file holds it */
    }
    return -1;
}
