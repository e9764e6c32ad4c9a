/* What the elements of a dataset are, in the words of a person, and the matching type in memory. */
#include <stdio.h>
#include <string.h>

#include "io/hdf5/access/hdf5_type.h"

static bool machine_is_big(void) { return H5Tget_order(H5T_NATIVE_INT) == H5T_ORDER_BE; }

static void refuse(tsr_h5_type *found, const char *name, const char *hint) {
    found->usable = false;
    snprintf(found->name, sizeof found->name, "%s", name);
    found->hint = hint;
}

/* ---- floating point -------------------------------------------------------------------------- */

/* Fields of a floating-point type, in bits. */
typedef struct {
    size_t sign, exponent, exponent_bits;
    size_t mantissa, mantissa_bits, bias;
} float_fields;

static bool read_fields(hid_t type, float_fields *f) {
    f->bias = H5Tget_ebias(type);
    return H5Tget_fields(type, &f->sign, &f->exponent, &f->exponent_bits, &f->mantissa, &f->mantissa_bits) >= 0;
}

static bool same_fields(const float_fields *f, float_fields other) { return memcmp(f, &other, sizeof other) == 0; }

/* Floating types of the table lie as IEEE 754 has them: sign, exponent, mantissa, and no bit between them. */
static float_fields fields_of(const tsr_dtype_facts *facts) {
    const size_t mantissa = (size_t)facts->mantissa_bits, exponent = (size_t)facts->exponent_bits;
    return (float_fields){.sign = 8 * facts->bytes - 1,
                          .exponent = mantissa,
                          .exponent_bits = exponent,
                          .mantissa_bits = mantissa,
                          .bias = ((size_t)1 << (exponent - 1)) - 1};
}

static bool is_known(const float_fields *f, size_t bytes, tsr_dtype *dtype) {
    if (!tsr_dtype_of_fields(bytes, (int)f->exponent_bits, (int)f->mantissa_bits, dtype)) return false;
    return same_fields(f, fields_of(tsr_dtype_facts_of(*dtype)));
}

/* Marks the bits of a field; false where they are outside of the element or another field's. */
static bool take_bits(unsigned __int128 *taken, size_t bits, size_t first, size_t count) {
    if (count == 0 || count > 64 || first >= bits || count > bits - first) return false;
    const unsigned __int128 mine = ((((unsigned __int128)1 << count) - 1)) << first;
    if (*taken & mine) return false;
    *taken |= mine;
    return true;
}

static bool has_room(const float_fields *f, size_t bytes) {
    unsigned __int128 taken = 0;
    return bytes <= 16 && take_bits(&taken, 8 * bytes, f->sign, 1) &&
           take_bits(&taken, 8 * bytes, f->exponent, f->exponent_bits) &&
           take_bits(&taken, 8 * bytes, f->mantissa, f->mantissa_bits);
}

/* Whether a type holds every value: its bits of mantissa, and the exponents of its largest value and of its smallest,
 * which is no normal one. */
static bool fits(const float_fields *f, tsr_dtype dtype) {
    const float_fields to = fields_of(tsr_dtype_facts_of(dtype));
    if (f->exponent_bits < 2 || f->exponent_bits > 30 || f->bias == 0 || f->bias > (size_t)1 << 31) return false;
    const int64_t most = ((int64_t)1 << f->exponent_bits) - 2 - (int64_t)f->bias;
    return f->mantissa_bits <= to.mantissa_bits && most <= (int64_t)to.bias &&
           (int64_t)f->bias + (int64_t)f->mantissa_bits <= (int64_t)(to.bias + to.mantissa_bits);
}

/* The first type that sums are kept in and that holds every value. */
static bool find_holder(const float_fields *f, tsr_dtype *dtype) {
    for (int d = 0; d < TSR_DTYPE_COUNT; d++) {
        if (!tsr_dtype_serves((tsr_dtype)d, TSR_USE_SUM) || !fits(f, (tsr_dtype)d)) continue;
        *dtype = (tsr_dtype)d;
        return true;
    }
    return false;
}

/* long double of x86 and numpy's longdouble there: 80 bits of 10 to 16 bytes, the mantissa's first bit among them. */
static bool is_x87(const float_fields *f, size_t bytes, H5T_norm_t norm, H5T_order_t order) {
    return bytes >= 10 && bytes <= 16 && norm == H5T_NORM_NONE && order == H5T_ORDER_LE &&
           same_fields(f, (float_fields){79, 64, 15, 0, 64, 16383});
}

/* F, D and G of VAX; HDF5 (1.10.8) reads their order of bytes back as big-endian. */
static bool is_vax(const float_fields *f, H5T_order_t order) {
    return order == H5T_ORDER_VAX || same_fields(f, (float_fields){31, 23, 8, 0, 23, 129}) ||
           same_fields(f, (float_fields){63, 55, 8, 0, 55, 129}) ||
           same_fields(f, (float_fields){63, 52, 11, 0, 52, 1025});
}

static void refuse_float(const float_fields *f, H5T_order_t order, tsr_h5_type *found) {
    char text[128];
    const size_t bits = 1 + f->exponent_bits + f->mantissa_bits;
    if (is_vax(f, order)) {
        refuse(found, "VAX floating point", "convert it to f32 or f64");
    } else if (bits <= 8) {
        snprintf(text, sizeof text, "%zu-bit floating point (E%zuM%zu)", bits, f->exponent_bits, f->mantissa_bits);
        refuse(found, text, "convert it to f16 or f32 where it was written: HDF5 does not say what its codes mean");
    } else if (f->exponent_bits == 15 && f->mantissa_bits == 112) {
        refuse(found, "128-bit floating point (binary128)", "convert it to f64 where it was written: f64 is narrower");
    } else {
        snprintf(text, sizeof text, "floating point with an exponent of %zu and a mantissa of %zu bits",
                 f->exponent_bits, f->mantissa_bits);
        refuse(found, text, "convert it to f64 where it was written: f64 may not hold its values");
    }
}

/* HDF5 converts fields wherever they lie: every code of such types was compared (tests/io/hdf5/test_types.py). */
static void float_type(hid_t type, H5T_order_t order, tsr_h5_type *found) {
    const size_t bytes = H5Tget_size(type);
    const H5T_norm_t norm = H5Tget_norm(type);
    const bool ordered = order == H5T_ORDER_LE || order == H5T_ORDER_BE;
    float_fields f = {0};
    if (!read_fields(type, &f)) {
        refuse(found, "floating point of an unknown kind", "convert it to f64");
        return;
    }
    const bool implied = norm == H5T_NORM_IMPLIED && ordered, small = 1 + f.exponent_bits + f.mantissa_bits <= 8;
    found->usable = true;
    found->standard = implied && is_known(&f, bytes, &found->element.dtype);
    if (found->standard) return;
    if (is_x87(&f, bytes, norm, order)) {
        found->element.dtype = TSR_F64;
        found->rounded = true;
        snprintf(found->name, sizeof found->name, "80-bit floating point of x87 (read as f64)");
    } else if (implied && !small && !is_vax(&f, order) && has_room(&f, bytes) &&
               find_holder(&f, &found->element.dtype)) {
        snprintf(found->name, sizeof found->name, "floating point of %zu bytes (read as %s)", bytes,
                 tsr_dtype_name(found->element.dtype));
    } else {
        refuse_float(&f, order, found);
    }
}

/* ---- integers and the rest ------------------------------------------------------------------- */

/* Integers of less than all bits, from bit 0 on, in the other byte order: into a type of their own size HDF5 (1.10.8)
 * swaps the bytes and leaves the rest, signs among them, as it is. Into a wider one it converts. */
static bool only_swapped(H5T_order_t order, size_t bytes, size_t bits, int offset) {
    const bool other = order != (machine_is_big() ? H5T_ORDER_BE : H5T_ORDER_LE);
    return other && offset == 0 && bits < 8 * bytes && (bytes & (bytes - 1)) == 0;
}

static void integer_type(hid_t type, H5T_order_t order, tsr_h5_type *found) {
    const size_t bytes = H5Tget_size(type), bits = H5Tget_precision(type);
    const int offset = H5Tget_offset(type);
    const bool ordered = order == H5T_ORDER_LE || order == H5T_ORDER_BE;
    int power = bytes <= 1 ? 0 : bytes <= 2 ? 1 : bytes <= 4 ? 2 : 3;
    char text[64];
    if (bytes > 8) {
        snprintf(text, sizeof text, "integers of %zu bytes", bytes);
        refuse(found, text, "convert it to 64-bit integers or f64");
        return;
    }
    if (!ordered || bits == 0 || offset < 0 || bits + (size_t)offset > 8 * bytes) {
        refuse(found, "integers with bytes or bits in no order", "convert it to integers of 1, 2, 4 or 8 bytes");
        return;
    }
    if (only_swapped(order, bytes, bits, offset)) power++;
    if (power > 3) {
        snprintf(text, sizeof text, "%s-endian integers of %zu bits in 8 bytes", machine_is_big() ? "little" : "big",
                 bits);
        refuse(found, text, "convert it to 64-bit integers, which HDF5 does wrongly when it reads");
        return;
    }
    found->usable = true;
    found->element.dtype = tsr_dtype_integer(H5Tget_sign(type) == H5T_SGN_2, (size_t)1 << power);
    found->standard = bytes == (size_t)1 << power && bits == 8 * bytes && offset == 0;
    if (!found->standard)
        snprintf(found->name, sizeof found->name, "integers of %zu bits in %zu bytes (read as %s)", bits, bytes,
                 tsr_dtype_name(found->element.dtype));
}

/* By tsr_fields. */
static const char *const field_names[TSR_FIELDS_COUNT][2] = {{"r", "i"}, {"real", "imag"}, {"re", "im"}, {"Re", "Im"}};

/* The names of a compound's members: "r, i". */
static void list_members(hid_t type, char *text, size_t chars) {
    const int members = H5Tget_nmembers(type);
    text[0] = '\0';
    for (int m = 0; m < members; m++) {
        char *name = H5Tget_member_name(type, (unsigned)m);
        const size_t used = strlen(text);
        if (used < chars - 1) snprintf(text + used, chars - used, "%s%s", m ? ", " : "", name ? name : "?");
        if (name) H5free_memory(name);
    }
}

/* Whether these are the names of a real and an imaginary part. */
static bool find_fields(const char *members, tsr_fields *fields) {
    char pair[16];
    for (int f = 0; f < TSR_FIELDS_COUNT; f++) {
        snprintf(pair, sizeof pair, "%s, %s", field_names[f][0], field_names[f][1]);
        if (strcmp(pair, members) != 0) continue;
        *fields = (tsr_fields)f;
        return true;
    }
    return false;
}

/* What a part of a complex number is, and in which order its bytes are; whether that is a floating type. */
static bool part_type(hid_t type, unsigned member, tsr_h5_type *found, H5T_order_t *order) {
    const hid_t part = H5Tget_member_type(type, member);
    memset(found, 0, sizeof *found);
    if (part < 0) return false;
    const bool floating = H5Tget_class(part) == H5T_FLOAT;
    *order = H5Tget_order(part);
    if (floating) float_type(part, *order, found);
    H5Tclose(part);
    return floating && found->usable;
}

/* Two floats of one type and order. What lies between them, or f16, HDF5 converts. */
static void complex_type(hid_t type, const char *members, tsr_fields fields, tsr_h5_type *found) {
    tsr_h5_type re, im;
    H5T_order_t order = H5T_ORDER_NONE, other = H5T_ORDER_NONE;
    char text[160];
    const bool floating = part_type(type, 0, &re, &order) && part_type(type, 1, &im, &other);
    const bool equal = floating && re.standard && im.standard && re.element.dtype == im.element.dtype && order == other;
    const bool small = H5Tget_size(type) <= TSR_STORED_BYTES_MAX;
    const tsr_dtype dtype = equal && small ? tsr_dtype_complex_of(re.element.dtype) : TSR_DTYPE_COUNT;
    if (dtype == TSR_DTYPE_COUNT) {
        snprintf(text, sizeof text, "complex numbers (compound {%s}) whose parts are not two equal f32 or f64",
                 members);
        refuse(found, text, "convert it to complex64 or complex128 where it was written");
        return;
    }
    const size_t part = tsr_dtype_bytes(re.element.dtype);
    found->usable = true;
    found->fields = fields;
    found->element.dtype = dtype;
    found->standard =
        H5Tget_size(type) == 2 * part && H5Tget_member_offset(type, 0) == 0 && H5Tget_member_offset(type, 1) == part;
    found->element.swapped = found->standard && (order == H5T_ORDER_BE) != machine_is_big();
    snprintf(found->name, sizeof found->name, "%s%s {%s}",
             !found->element.swapped ? ""
             : order == H5T_ORDER_BE ? "big-endian "
                                     : "little-endian ",
             tsr_dtype_name(dtype), members);
}

static void compound_type(hid_t type, tsr_h5_type *found) {
    char members[100], text[160];
    tsr_fields fields;
    list_members(type, members, sizeof members);
    if (find_fields(members, &fields)) {
        complex_type(type, members, fields, found);
        return;
    }
    snprintf(text, sizeof text, "a compound {%s}", members);
    refuse(found, text, "write the column that is meant as a dataset of its own");
}

/* h5py's bool: an enum of one byte, FALSE = 0 and TRUE = 1. */
bool tsr_h5_is_boolean(hid_t type) {
    static const struct {
        const char *name;
        signed char value;
    } members[2] = {{"FALSE", 0}, {"TRUE", 1}};
    if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
    for (int m = 0; m < 2; m++) {
        char name[8];
        signed char value = members[m].value;
        if (H5Tenum_nameof(type, &value, name, sizeof name) < 0 || strcmp(name, members[m].name) != 0) return false;
    }
    return true;
}

/* Any other enum is refused, with the names of its first members. */
static void enum_type(hid_t type, tsr_h5_type *found) {
    if (tsr_h5_is_boolean(type)) {
        found->usable = true;
        found->standard = true;
        found->element.dtype = TSR_BOOL;
        return;
    }
    char text[160], shown[100];
    const int members = H5Tget_nmembers(type);
    snprintf(text, sizeof text, "an enum of");
    for (int m = 0; m < members; m++) {
        const size_t used = strlen(text);
        char *name = m < 3 ? H5Tget_member_name(type, (unsigned)m) : NULL;
        snprintf(text + used, sizeof text - used, "%s %.30s", m ? "," : "",
                 !name ? "..." : tsr_printable(name, shown, sizeof shown));
        if (name) H5free_memory(name);
        if (m == 3) break;
    }
    refuse(found, text, "convert it to integers, or to bool where it has two values");
}

void tsr_h5_type_of(hid_t type, tsr_h5_type *found) {
    char text[64];
    memset(found, 0, sizeof *found);
    H5T_class_t class = H5Tget_class(type);
    H5T_order_t order = H5Tget_order(type);
    switch ((int)class) {
    case H5T_FLOAT: float_type(type, order, found); break;
    case H5T_INTEGER: integer_type(type, order, found); break;
    case H5T_STRING: refuse(found, "strings", "convert them to numbers"); return;
    case H5T_COMPOUND: compound_type(type, found); return;
    case H5T_ENUM: enum_type(type, found); break;
    case H5T_TIME: refuse(found, "times", "convert them to numbers"); return;
    case H5T_BITFIELD: refuse(found, "bit fields", "convert them to integers"); return;
    case H5T_OPAQUE: refuse(found, "opaque bytes", "convert them to numbers"); return;
    case H5T_REFERENCE: refuse(found, "references to objects", "name the dataset they point to"); return;
    case H5T_VLEN: refuse(found, "lists of varying length", "write them as a rectangle of numbers"); return;
    case H5T_ARRAY: refuse(found, "arrays", "write them as a dataset with two dimensions"); return;
#if H5_VERSION_GE(2, 0, 0)
    case H5T_COMPLEX:
        refuse(found, "complex numbers of HDF5 2", "write real and imaginary parts as two datasets");
        return;
#endif
    default:
        snprintf(text, sizeof text, "a type that is not a number (HDF5 class %d)", (int)class);
        refuse(found, text, "convert it to numbers");
        return;
    }
    found->element.swapped =
        found->standard && tsr_dtype_bytes(found->element.dtype) > 1 && (order == H5T_ORDER_BE) != machine_is_big();
    if (found->usable && found->name[0] == '\0') {
        const char *prefix = !found->element.swapped ? "" : order == H5T_ORDER_BE ? "big-endian " : "little-endian ";
        snprintf(found->name, sizeof found->name, "%s%s", prefix, tsr_dtype_name(found->element.dtype));
    }
}

/* A floating type that HDF5 has no name for, in this machine's order. */
static hid_t custom_float(const tsr_dtype_facts *facts) {
    const float_fields f = fields_of(facts);
    hid_t type = H5Tcopy(H5T_NATIVE_FLOAT);
    if (type < 0) return type;
    if (H5Tset_fields(type, f.sign, f.exponent, f.exponent_bits, f.mantissa, f.mantissa_bits) >= 0 &&
        H5Tset_size(type, facts->bytes) >= 0 && H5Tset_ebias(type, f.bias) >= 0)
        return type;
    H5Tclose(type);
    return -1;
}

/* h5py's bool. */
hid_t tsr_h5_boolean_type(void) {
    static const signed char values[] = {0, 1};
    hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
    if (type < 0) return type;
    if (H5Tenum_insert(type, "FALSE", &values[0]) >= 0 && H5Tenum_insert(type, "TRUE", &values[1]) >= 0) return type;
    H5Tclose(type);
    return -1;
}

static hid_t complex_memory_type(const tsr_dtype_facts *facts, tsr_fields fields) {
    const hid_t part = tsr_h5_memory_type(facts->part, fields), type = H5Tcreate(H5T_COMPOUND, facts->bytes);
    const bool made = part >= 0 && type >= 0 && H5Tinsert(type, field_names[fields][0], 0, part) >= 0 &&
                      H5Tinsert(type, field_names[fields][1], facts->bytes / 2, part) >= 0;
    if (part >= 0) H5Tclose(part);
    if (made || type < 0) return type;
    H5Tclose(type);
    return -1;
}

hid_t tsr_h5_memory_type(tsr_dtype dtype, tsr_fields fields) {
    const tsr_dtype_facts *facts = tsr_dtype_facts_of(dtype);
    const hid_t whole[2][4] = {{H5T_NATIVE_UINT8, H5T_NATIVE_UINT16, H5T_NATIVE_UINT32, H5T_NATIVE_UINT64},
                               {H5T_NATIVE_INT8, H5T_NATIVE_INT16, H5T_NATIVE_INT32, H5T_NATIVE_INT64}};
    const int power = facts->bytes == 8 ? 3 : facts->bytes == 4 ? 2 : facts->bytes == 2 ? 1 : 0;
    switch (facts->kind) {
    case TSR_DTYPE_SIGNED: return H5Tcopy(whole[1][power]);
    case TSR_DTYPE_UNSIGNED: return H5Tcopy(whole[0][power]);
    case TSR_DTYPE_BOOL: return tsr_h5_boolean_type();
    case TSR_DTYPE_COMPLEX: return complex_memory_type(facts, fields);
    case TSR_DTYPE_FLOAT: break;
    }
    if (facts->bytes == sizeof(float)) return H5Tcopy(H5T_NATIVE_FLOAT);
    return facts->bytes == sizeof(double) ? H5Tcopy(H5T_NATIVE_DOUBLE) : custom_float(facts);
}
