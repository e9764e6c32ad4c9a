/* Attributes of HDF5 objects read and written (hdf5_attribute.h). */
#include "io/hdf5/access/hdf5_attribute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/hdf5/access/hdf5_library.h"

/* Writes a scalar attribute, replacing one of the same name. */
static tsr_status write_scalar(hid_t object, const char *name, hid_t type, const void *value) {
    bool ok = false;
    hid_t space = -1, attribute = -1;
    htri_t there = H5Aexists(object, name);
    if (there < 0 || (there > 0 && H5Adelete(object, name) < 0)) goto done;
    if ((space = H5Screate(H5S_SCALAR)) < 0) goto done;
    if ((attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT)) < 0) goto done;
    ok = H5Awrite(attribute, type, value) >= 0;
done:;
    tsr_status status = ok ? TSR_OK : tsr_h5_fail(TSR_ERR_IO, "cannot write the attribute '%s'", name);
    if (attribute >= 0 && H5Aclose(attribute) < 0 && ok)
        status = tsr_h5_fail(TSR_ERR_IO, "cannot write the attribute '%s'", name);
    if (space >= 0) H5Sclose(space);
    return status;
}

char *tsr_h5_attribute_text(hid_t attribute, hid_t type) {
    char *variable = NULL, *text = NULL;
    if (H5Tis_variable_str(type) > 0) {
        if (H5Aread(attribute, type, &variable) >= 0 && variable) text = strdup(variable);
        if (variable) H5free_memory(variable);
        return text;
    }
    size_t bytes = H5Tget_size(type);
    text = calloc(1, bytes + 1);
    if (text && H5Aread(attribute, type, text) >= 0) return text;
    free(text);
    return NULL;
}

void tsr_h5_text_of(hid_t object, const char *name, char *text, size_t chars) {
    text[0] = '\0';
    if (H5Aexists(object, name) <= 0) return;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    hid_t type = -1;
    hid_t space = -1;
    char *read = NULL;
    if (attribute < 0 || (type = H5Aget_type(attribute)) < 0 || H5Tget_class(type) != H5T_STRING) goto done;
    if ((space = H5Aget_space(attribute)) < 0 || H5Sget_simple_extent_npoints(space) != 1) goto done;
    read = tsr_h5_attribute_text(attribute, type);
    if (read) snprintf(text, chars, "%s", read);
    free(read);
done:
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
}

bool tsr_h5_number_of(hid_t object, const char *name, double *value) {
    hid_t attribute = -1;
    hid_t type = -1, space = -1;
    *value = NAN;
    if (H5Aexists(object, name) <= 0) return false;
    if ((attribute = H5Aopen(object, name, H5P_DEFAULT)) < 0 || (type = H5Aget_type(attribute)) < 0) goto done;
    const H5T_class_t class = H5Tget_class(type);
    if (class != H5T_FLOAT && class != H5T_INTEGER) goto done;
    if ((space = H5Aget_space(attribute)) < 0 || H5Sget_simple_extent_npoints(space) != 1) goto done;
    if (H5Aread(attribute, H5T_NATIVE_DOUBLE, value) < 0) *value = NAN;
done:
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    return true;
}

tsr_status tsr_h5_write_text(hid_t object, const char *name, const char *value) {
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0 || H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)
        return tsr_h5_fail(TSR_ERR_IO, "cannot make the type of attribute '%s'", name);
    tsr_status status = write_scalar(object, name, type, &value);
    H5Tclose(type);
    return status;
}

tsr_status tsr_h5_write_number(hid_t object, const char *name, hid_t native_type, const void *value) {
    return write_scalar(object, name, native_type, value);
}
