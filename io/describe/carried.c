/* What describes a matrix beside its elements, as plain memory and as messages (carried.h). */
#include "io/describe/carried.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/text/text.h"

void tsr_carried_note(tsr_carried *carried, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *at = line; *at; at++)
        if (*at == '\n') *at = ' '; /* names of others may hold any */
    if (strlen(carried->left_out) + strlen(line) + 2 > sizeof carried->left_out) return;
    tsr_text_append(carried->left_out, sizeof carried->left_out, "%s%s", *carried->left_out ? "\n" : "", line);
}

tsr_carried_attribute *tsr_carried_add(tsr_carried_attributes *attributes) {
    tsr_carried_attribute *list = realloc(attributes->list, (size_t)(attributes->count + 1) * sizeof *attributes->list);
    if (!list) return NULL;
    attributes->list = list;
    memset(&list[attributes->count], 0, sizeof *list);
    return &list[attributes->count++];
}

static void free_attributes(tsr_carried_attributes *attributes) {
    for (int64_t i = 0; i < attributes->count; i++) free(attributes->list[i].values.data);
    free(attributes->list);
    *attributes = (tsr_carried_attributes){.list = NULL};
}

void tsr_scale_free(tsr_scale *scale) {
    free(scale->values.data);
    free_attributes(&scale->attributes);
    memset(scale, 0, sizeof *scale);
}

void tsr_carried_free(tsr_carried *carried) {
    for (int64_t s = 0; s < carried->scale_count; s++) tsr_scale_free(&carried->scales[s]);
    free_attributes(&carried->attributes);
    memset(carried, 0, sizeof *carried);
}

bool tsr_values_count(const tsr_values *values, int64_t *count) {
    *count = values->dimensions < 0 ? 0 : 1;
    for (int d = 0; d < values->dimensions; d++)
        if (__builtin_mul_overflow(*count, values->size[d], count)) return false;
    return true;
}

/* ---- compared -------------------------------------------------------------------------------- */

static bool same_values(const tsr_values *a, const tsr_values *b) {
    if (a->kind != b->kind || a->element_bytes != b->element_bytes || a->padding != b->padding || a->utf8 != b->utf8 ||
        a->dimensions != b->dimensions || a->bytes != b->bytes)
        return false;
    for (int d = 0; d < a->dimensions; d++)
        if (a->size[d] != b->size[d]) return false;
    return a->bytes == 0 || memcmp(a->data, b->data, (size_t)a->bytes) == 0;
}

/* Both lists are in order of their names. */
static bool same_attributes(const tsr_carried_attributes *a, const tsr_carried_attributes *b) {
    if (a->count != b->count) return false;
    for (int64_t i = 0; i < a->count; i++)
        if (strcmp(a->list[i].name, b->list[i].name) != 0 || !same_values(&a->list[i].values, &b->list[i].values))
            return false;
    return true;
}

bool tsr_scale_same(const tsr_scale *a, const tsr_scale *b) {
    if (a->length != b->length || a->name_only != b->name_only) return false;
    return a->name_only || (same_values(&a->values, &b->values) && same_attributes(&a->attributes, &b->attributes));
}

/* ---- messages -------------------------------------------------------------------------------- */

void tsr_wire_carried_question(tsr_wire *wire, tsr_carried_question *q) {
    tsr_wire_long_text(wire, &q->file, "a file's name");
    tsr_wire_long_text(wire, &q->path, "a path");
    tsr_wire_number(wire, &q->from_end, TSR_CARRIED_NO_DIMENSION, 32, "a dimension");
    tsr_wire_number(wire, &q->length, 0, INT64_MAX, "a length");
    tsr_wire_number(wire, &q->first, 0, q->length, "a part");
    tsr_wire_number(wire, &q->count, 0, q->length - q->first, "a part");
    tsr_wire_bool(wire, &q->attributes, "attributes");
}

/* What does not fit in values that came over a wire, NULL where nothing is wrong. */
static const char *values_wrong(const tsr_values *v) {
    int64_t count, bytes;
    if (!tsr_values_count(v, &count)) return "how many values there are";
    if (v->kind == TSR_VALUES_TEXTS) {
        int64_t ends = 0;
        for (int64_t i = 0; i < v->bytes; i++) ends += v->data[i] == '\0';
        return ends == count && (v->bytes == 0 || v->data[v->bytes - 1] == '\0') ? NULL : "its texts";
    }
    const int64_t e = v->element_bytes;
    const bool number = v->kind != TSR_VALUES_TEXT;
    if (number && e != 1 && e != 2 && e != 4 && e != 8) return "the size of a value";
    if (v->kind == TSR_VALUES_FLOAT && e < 4) return "the size of a value";
    if (v->kind == TSR_VALUES_BOOL && e != 1) return "the size of a value";
    if (e < 1 || __builtin_mul_overflow(count, e, &bytes) || bytes != v->bytes) return "the bytes of its values";
    return NULL;
}

static void wire_values(tsr_wire *wire, tsr_values *v, size_t most) {
    int64_t kind = v->kind;
    int64_t padding = v->padding;
    int64_t dimensions = v->dimensions;
    tsr_wire_number(wire, &kind, 0, TSR_VALUES_KINDS - 1, "the kind of a value");
    tsr_wire_number(wire, &v->element_bytes, 0, (int64_t)most, "the size of a value");
    tsr_wire_number(wire, &padding, 0, 2, "the padding of texts");
    tsr_wire_bool(wire, &v->utf8, "the letters of texts");
    tsr_wire_number(wire, &dimensions, -1, TSR_VALUES_DIMENSIONS_MAX, "the dimensions of values");
    v->kind = (tsr_values_kind)kind;
    v->padding = (int)padding;
    v->dimensions = (int)dimensions;
    for (int d = 0; d < v->dimensions; d++) tsr_wire_number(wire, &v->size[d], 0, INT64_MAX, "the shape of values");
    tsr_wire_block(wire, &v->data, &v->bytes, most, "values");
    if (wire->reading && !wire->wrong) wire->wrong = values_wrong(v);
}

static void wire_attributes(tsr_wire *wire, tsr_carried_attributes *attributes) {
    int64_t count = attributes->count;
    tsr_wire_number(wire, &count, 0, TSR_CARRIED_ATTRIBUTES_MAX, "how many attributes there are");
    for (int64_t i = 0; i < count && !wire->wrong; i++) {
        tsr_carried_attribute *one = wire->reading ? tsr_carried_add(attributes) : &attributes->list[i];
        if (!one) {
            wire->wrong = "no memory";
            return;
        }
        tsr_wire_text(wire, one->name, sizeof one->name, "the name of an attribute");
        wire_values(wire, &one->values, TSR_CARRIED_ATTRIBUTE_BYTES);
    }
}

/* It becomes the last part of a path. */
static bool is_name(const char *name) { return *name && !strchr(name, '/') && strcmp(name, ".") != 0; }

static void wire_scale(tsr_wire *wire, tsr_scale *scale) {
    tsr_wire_text(wire, scale->name, sizeof scale->name, "the name of a scale");
    tsr_wire_text(wire, scale->title, sizeof scale->title, "the name of a scale");
    tsr_wire_number(wire, &scale->length, 0, INT64_MAX, "the length of a scale");
    tsr_wire_bool(wire, &scale->name_only, "a scale");
    if (wire->reading && !wire->wrong && !is_name(scale->name)) wire->wrong = "the name of a scale";
    if (scale->name_only) return;
    wire_values(wire, &scale->values, TSR_CARRIED_SCALES_BYTES);
    wire_attributes(wire, &scale->attributes);
    const tsr_values *v = &scale->values;
    if (wire->reading && !wire->wrong && (v->dimensions != 1 || v->size[0] != scale->length))
        wire->wrong = "the length of a scale";
}

void tsr_wire_carried(tsr_wire *wire, tsr_carried *carried) {
    tsr_wire_text(wire, carried->label, sizeof carried->label, "a label");
    tsr_wire_bool(wire, &carried->matlab, "whose it is");
    tsr_wire_text(wire, carried->left_out, sizeof carried->left_out, "what is left out");
    tsr_wire_number(wire, &carried->scale_count, 0, TSR_SCALES_MAX, "how many scales there are");
    for (int64_t s = 0; s < carried->scale_count; s++) wire_scale(wire, &carried->scales[s]);
    wire_attributes(wire, &carried->attributes);
}
