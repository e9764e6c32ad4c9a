/* Headers of .npy files (npy_header.h): magic, version, length, and a Python dictionary of three members. */
#include "io/raw/npy_header.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/files/file_bytes.h"
#include "io/signature/signature.h"
#include "io/text/text.h"

#define LITTLE_ENDIAN_MACHINE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define DESCR_CHARS 40

/* ---- the dictionary -------------------------------------------------------------------------- */

/* What it says, as text and numbers. */
typedef struct {
    char descr[DESCR_CHARS]; /* "[...]" for a structured type */
    tsr_shape shape;
    bool fortran;
    bool has_descr, has_fortran, has_shape;
} dictionary;

static void skip_blanks(const char **at) { *at += strspn(*at, " \t\n"); }

static bool take(const char **at, const char *word) {
    skip_blanks(at);
    if (strncmp(*at, word, strlen(word)) != 0) return false;
    *at += strlen(word);
    return true;
}

static bool take_quoted(const char **at, char *text, size_t room) {
    skip_blanks(at);
    const char quote = **at;
    if (quote != '\'' && quote != '"') return false;
    const char *end = strchr(*at + 1, quote);
    if (!end || (size_t)(end - *at) > room) return false;
    memcpy(text, *at + 1, (size_t)(end - *at - 1));
    text[end - *at - 1] = '\0';
    *at = end + 1;
    return true;
}

/* Digits, behind which Python 2 wrote an L. */
static bool take_number(const char **at, int64_t *number) {
    char *end;
    skip_blanks(at);
    if (!isdigit((unsigned char)**at)) return false;
    errno = 0;
    *number = strtoll(*at, &end, 10);
    if (errno != 0) return false;
    *at = end + (*end == 'L');
    return true;
}

static bool take_shape(const char **at, dictionary *d) {
    int64_t side;
    if (!take(at, "(")) return false;
    while (!take(at, ")")) {
        if (d->shape.dimensions > 0 && !take(at, ",")) return false;
        if (take(at, ")")) return true;
        if (!take_number(at, &side) || d->shape.dimensions == TSR_DIMENSIONS_MAX) return false;
        d->shape.size[d->shape.dimensions++] = side;
    }
    return true;
}

/* A list of fields is not read: the header is refused for it. */
static bool take_descr(const char **at, dictionary *d) {
    if (take_quoted(at, d->descr, sizeof d->descr)) return true;
    if (!take(at, "[")) return false;
    snprintf(d->descr, sizeof d->descr, "[...]");
    return true;
}

static bool take_member(const char **at, dictionary *d) {
    char name[20];
    if (!take_quoted(at, name, sizeof name) || !take(at, ":")) return false;
    if (strcmp(name, "descr") == 0 && !d->has_descr) return d->has_descr = take_descr(at, d);
    if (strcmp(name, "shape") == 0 && !d->has_shape) return d->has_shape = take_shape(at, d);
    if (strcmp(name, "fortran_order") != 0 || d->has_fortran) return false;
    d->has_fortran = true;
    d->fortran = take(at, "True");
    return d->fortran || take(at, "False");
}

static bool take_dictionary(const char *at, dictionary *d) {
    if (!take(&at, "{")) return false;
    while (!take(&at, "}")) {
        if (!take_member(&at, d)) return false;
        if (d->has_descr && d->descr[0] == '[') return true;
        if (!take(&at, ",")) {
            if (!take(&at, "}")) return false;
            break;
        }
    }
    skip_blanks(&at);
    return *at == '\0' && d->has_descr && d->has_fortran && d->has_shape;
}

/* ---- the type -------------------------------------------------------------------------------- */

/* Types that are not read: numpy's letter, what it is, what to do. */
static const struct {
    char letter;
    const char *what, *hint;
} others[] = {
    {'M', "dates", "convert them to numbers"},
    {'m', "spans of time", "convert them to numbers"},
    {'O', "Python objects", "convert them to numbers: a.astype('f8')"},
    {'S', "strings", "convert them to numbers"},
    {'U', "strings", "convert them to numbers"},
    {'V', "structured or opaque elements", "save the field that is meant as an array of its own"},
    {'[', "structured elements", "save the field that is meant as an array of its own"},
};

static tsr_status refuse_type(const char *file, const char *descr, const char *what, const char *hint) {
    return tsr_fail(TSR_ERR_FORMAT, "'%s' cannot be read as a matrix: it holds %s (%s); %s", file, what, descr, hint);
}

static bool find_dtype(char letter, long bytes, tsr_dtype *dtype) {
    for (int d = 0; d < TSR_DTYPE_COUNT; d++) {
        const tsr_dtype_facts *facts = tsr_dtype_facts_of((tsr_dtype)d);
        if (facts->numpy != letter || (long)facts->bytes != bytes) continue;
        *dtype = (tsr_dtype)d;
        return true;
    }
    return false;
}

/* "<f4": order of bytes, kind, bytes. */
static tsr_status element_of(const char *file, const char *descr, tsr_element *element) {
    const char order = strchr("<>|=", descr[0]) && descr[0] ? descr[0] : '=';
    const char *at = descr + (descr[0] == order);
    char *end;
    const long bytes = isdigit((unsigned char)at[0] ? at[1] : 0) ? strtol(at + 1, &end, 10) : 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (at[0] == others[i].letter) return refuse_type(file, descr, others[i].what, others[i].hint);
    const bool number = strchr("fiubc", at[0]) && bytes > 0 && bytes <= 64 && *end == '\0';
    if (number && at[0] == 'f' && bytes > 8)
        return refuse_type(file, descr, "floating point of more than 64 bits", "convert it to f8: a.astype('f8')");
    if (!number || !find_dtype(at[0], bytes, &element->dtype) || (order == '|' && bytes > 1))
        return refuse_type(file, descr, "elements of a type that is not known here", "convert them to f8");
    element->swapped =
        bytes > 1 && ((order == '>' && LITTLE_ENDIAN_MACHINE) || (order == '<' && !LITTLE_ENDIAN_MACHINE));
    return TSR_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static tsr_status damaged(const char *file, const char *what) {
    return tsr_fail(TSR_ERR_FORMAT, "'%s' is no .npy file that can be read: %s; save it again", file, what);
}

/* The head before the text: its bytes, and those of the text. */
static tsr_status read_head(int fd, const char *file, size_t *head_bytes, size_t *text_bytes) {
    uint8_t head[12] = {0};
    const ssize_t got = tsr_read_at(fd, head, sizeof head, 0);
    if (got < 0) return tsr_fail(TSR_ERR_IO, "cannot read '%s': %s; check the disk", file, strerror(errno));
    if (!tsr_npy_signature(head, got)) return damaged(file, "it does not begin as one");
    const int version = head[6];
    if (got >= 8 && (version < 1 || version > 3)) return damaged(file, "its version is none of 1, 2 and 3");
    *head_bytes = version == 1 ? 10 : 12;
    if (got < (ssize_t)*head_bytes) return damaged(file, "it ends within its header");
    *text_bytes = head[8] | (size_t)head[9] << 8;
    if (version > 1) *text_bytes |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    return TSR_OK;
}

static tsr_status read_dictionary(int fd, const char *file, size_t at, size_t bytes, dictionary *d) {
    char *text = malloc(bytes + 1);
    if (!text) return tsr_fail(TSR_ERR_MEMORY, "no memory for the header of '%s'; free some", file);
    const ssize_t got = tsr_read_at(fd, text, bytes, (int64_t)at);
    const int error = errno;
    tsr_status status = TSR_OK;
    bool plain = true;
    if (got < 0) status = tsr_fail(TSR_ERR_IO, "cannot read '%s': %s; check the disk", file, strerror(error));
    else if (got < (ssize_t)bytes) status = damaged(file, "it ends within its header");
    for (ssize_t i = 0; i < got; i++) plain &= (text[i] >= ' ' && text[i] <= '~') || text[i] == '\n' || text[i] == '\t';
    text[bytes] = '\0';
    if (status == TSR_OK && !plain) status = damaged(file, "its header is not plain text");
    if (status == TSR_OK && !take_dictionary(text, d)) status = damaged(file, "its header is not as numpy writes it");
    free(text);
    return status;
}

tsr_status tsr_npy_header_read(int fd, const char *file, int64_t file_bytes, tsr_npy_header *header) {
    dictionary d = {.shape = {0}};
    size_t head_bytes = 0, text_bytes = 0;
    tsr_npy_header found = {.offset = 0};
    TSR_TRY(read_head(fd, file, &head_bytes, &text_bytes));
    if ((int64_t)text_bytes > file_bytes) return damaged(file, "it ends within its header");
    if (text_bytes > TSR_NPY_HEADER_MAX) return damaged(file, "its header is longer than 64 KiB");
    TSR_TRY(read_dictionary(fd, file, head_bytes, text_bytes, &d));
    TSR_TRY(element_of(file, d.descr, &found.element));
    found.shape = d.shape;
    found.fortran = d.fortran && d.shape.dimensions > 1;
    found.offset = (int64_t)(head_bytes + text_bytes);
    *header = found;
    return TSR_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

void tsr_npy_header_write(tsr_npy_header *header, int64_t align, char *text) {
    enum { HEAD = 10 };
    const tsr_dtype_facts *facts = tsr_dtype_facts_of(header->element.dtype);
    const int bytes = (int)facts->bytes;
    char shape[TSR_DIMENSIONS_MAX * 22] = ""; /* as Python writes it */
    for (int d = 0; d < header->shape.dimensions; d++)
        tsr_text_append(shape, sizeof shape, "%s%lld", d ? ", " : "", (long long)header->shape.size[d]);
    if (header->shape.dimensions == 1) tsr_text_append(shape, sizeof shape, ",");
    const char order = bytes == 1 ? '|' : LITTLE_ENDIAN_MACHINE ? '<' : '>';
    const int chars =
        snprintf(text + HEAD, TSR_NPY_HEADER_MAX - HEAD, "{'descr': '%c%c%d', 'fortran_order': %s, 'shape': (%s), }",
                 order, facts->numpy, bytes, header->fortran ? "True" : "False", shape);
    header->offset = tsr_round_up(HEAD + chars + 1, align);
    const size_t text_bytes = (size_t)header->offset - HEAD;
    memset(text + HEAD + chars, ' ', text_bytes - (size_t)chars);
    text[header->offset - 1] = '\n';
    memcpy(text, TSR_NPY_SIGNATURE "\1", 8); /* version 1.0: the zero ends the literal */
    text[8] = (char)(text_bytes & 0xff);
    text[9] = (char)(text_bytes >> 8);
}
