/* A recursive-descent reader of JSON (json_read.h). */
#include "io/text/json_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MOST 64
#define TEXT_MOST ((size_t)1 << 20)

typedef struct {
    char *text; /* owned, ends in a zero */
    size_t chars, room;
} growing;

typedef struct {
    FILE *from;
    const char *file;
    int64_t line;
    int next; /* the character that comes, EOF at the end */
    int depth;
    growing name[DEPTH_MOST + 1], value;
    void (*each)(void *context, const tsr_json_value *value);
    void *context;
} reader;

static tsr_status wrong(const reader *r, const char *what) {
    if (ferror(r->from)) return tsr_fail(TSR_ERR_IO, "'%s' cannot be read: %s", r->file, strerror(errno));
    return tsr_fail(TSR_ERR_FORMAT, "'%s', line %lld: %s; it is no JSON, or was cut short: make it anew", r->file,
                    (long long)r->line, what);
}

static void advance(reader *r) {
    r->line += r->next == '\n';
    r->next = getc_unlocked(r->from); /* no other thread reads it */
}

static void skip_space(reader *r) {
    while (r->next == ' ' || r->next == '\n' || r->next == '\t' || r->next == '\r') advance(r);
}

static tsr_status put(const reader *r, growing *to, int c) {
    if (to->chars + 1 >= to->room) {
        size_t room = to->room ? 2 * to->room : 256;
        char *text = to->room < TEXT_MOST ? realloc(to->text, room) : NULL;
        if (!text)
            return to->room < TEXT_MOST ? tsr_fail(TSR_ERR_MEMORY, "no memory to read '%s'; free some", r->file)
                                        : wrong(r, "a text is longer than 1 MiB");
        to->text = text;
        to->room = room;
    }
    to->text[to->chars++] = (char)c;
    to->text[to->chars] = '\0';
    return TSR_OK;
}

/* An empty text that is there. */
static tsr_status begin(const reader *r, growing *to) {
    to->chars = 0;
    TSR_TRY(put(r, to, ' '));
    to->chars = 0;
    to->text[0] = '\0';
    return TSR_OK;
}

static tsr_status four_digits(reader *r, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit =
            r->next != EOF && r->next != 0 ? strchr(digits, r->next | (r->next >= 'A' ? 0x20 : 0)) : NULL;
        if (!digit) return wrong(r, "four hexadecimal digits were expected behind \\u");
        *code = 16 * *code + (uint32_t)(digit - digits);
        advance(r);
    }
    return TSR_OK;
}

static tsr_status put_utf8(const reader *r, growing *to, uint32_t code) {
    if (code < 0x80) return put(r, to, (int)code);
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const int first[] = {0, 0xC0, 0xE0, 0xF0};
    TSR_TRY(put(r, to, first[more] | (int)(code >> (6 * more))));
    while (more-- > 0) TSR_TRY(put(r, to, 0x80 | (int)(code >> (6 * more) & 0x3F)));
    return TSR_OK;
}

static tsr_status read_escape(reader *r, growing *to);

/* Behind "\u". Halves of a pair that stand alone become U+FFFD, as does U+0000, which would end a text of ours. */
static tsr_status read_unicode(reader *r, growing *to) {
    uint32_t code, low;
    TSR_TRY(four_digits(r, &code));
    while (code >= 0xD800 && code < 0xDC00 && r->next == '\\') {
        advance(r);
        if (r->next != 'u') {
            TSR_TRY(put_utf8(r, to, 0xFFFD));
            return read_escape(r, to);
        }
        advance(r);
        TSR_TRY(four_digits(r, &low));
        if (low >= 0xDC00 && low < 0xE000) return put_utf8(r, to, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
        TSR_TRY(put_utf8(r, to, 0xFFFD));
        code = low;
    }
    return put_utf8(r, to, code == 0 || (code >= 0xD800 && code < 0xE000) ? 0xFFFD : code);
}

/* Behind the backslash. */
static tsr_status read_escape(reader *r, growing *to) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *letter = r->next != EOF && r->next != 0 ? strchr(letters, r->next) : NULL;
    const int escape = r->next;
    if (!letter && escape != 'u') return wrong(r, "a text has an unknown escape");
    advance(r);
    return escape == 'u' ? read_unicode(r, to) : put(r, to, meant[letter - letters]);
}

static tsr_status read_text(reader *r, growing *to) {
    TSR_TRY(begin(r, to));
    advance(r); /* the quote */
    while (r->next != '"') {
        if (r->next == EOF || (r->next >= 0 && r->next < 0x20)) return wrong(r, "a text does not end on its line");
        if (r->next != '\\') {
            TSR_TRY(put(r, to, r->next));
            advance(r);
            continue;
        }
        advance(r);
        TSR_TRY(read_escape(r, to));
    }
    advance(r);
    return TSR_OK;
}

/* Behind at least one digit; NULL where there is none. */
static const char *skip_digits(const char *text) {
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 ? text + digits : NULL;
}

/* As JSON has them: no zero before other digits, and digits on both sides of a point and behind an e. */
static bool is_number(const char *text) {
    text += *text == '-';
    text = *text == '0' ? text + 1 : skip_digits(text);
    if (text && *text == '.') text = skip_digits(text + 1);
    if (text && (*text == 'e' || *text == 'E')) text = skip_digits(text + 1 + (text[1] == '+' || text[1] == '-'));
    return text && *text == '\0';
}

/* A number, or true, false, null. */
static tsr_status read_word(reader *r, tsr_json_kind *kind) {
    growing *to = &r->value;
    TSR_TRY(begin(r, to));
    while (r->next != EOF && r->next != 0 && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", r->next)) {
        TSR_TRY(put(r, to, r->next));
        advance(r);
    }
    const char *text = to->text;
    *kind = TSR_JSON_WORD;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || strcmp(text, "null") == 0) return TSR_OK;
    *kind = TSR_JSON_NUMBER;
    return is_number(text) ? TSR_OK : wrong(r, "a value was expected");
}

static tsr_status read_value(reader *r, const char *name);

static void tell(const reader *r, tsr_json_kind kind, const char *name, const char *text) {
    const tsr_json_value value = {kind, r->depth, name, text};
    r->each(r->context, &value);
}

static tsr_status read_members(reader *r, char end) {
    growing *name = &r->name[r->depth];
    for (bool first = true;; first = false) {
        skip_space(r);
        if (first && r->next == end) break;
        TSR_TRY(begin(r, name));
        if (end == '}') {
            if (r->next != '"') return wrong(r, "the name of a member was expected");
            TSR_TRY(read_text(r, name));
            skip_space(r);
            if (r->next != ':') return wrong(r, "a colon was expected");
            advance(r);
        }
        TSR_TRY(read_value(r, name->text));
        skip_space(r);
        if (r->next == end) break;
        if (r->next != ',') return wrong(r, "a comma or the end of a list was expected");
        advance(r);
    }
    advance(r);
    return TSR_OK;
}

static tsr_status read_value(reader *r, const char *name) {
    tsr_json_kind kind;
    skip_space(r);
    if (r->next == '{' || r->next == '[') {
        char end = r->next == '{' ? '}' : ']';
        if (r->depth == DEPTH_MOST) return wrong(r, "lists are nested too deep");
        tell(r, end == '}' ? TSR_JSON_OBJECT : TSR_JSON_ARRAY, name, "");
        advance(r);
        r->depth++;
        TSR_TRY(read_members(r, end));
        r->depth--;
        tell(r, TSR_JSON_END, "", "");
        return TSR_OK;
    }
    if (r->next == '"') {
        TSR_TRY(read_text(r, &r->value));
        tell(r, TSR_JSON_TEXT, name, r->value.text);
        return TSR_OK;
    }
    TSR_TRY(read_word(r, &kind));
    tell(r, kind, name, r->value.text);
    return TSR_OK;
}

tsr_status tsr_json_read(FILE *from, const char *file_name, void (*each)(void *context, const tsr_json_value *value),
                         void *context) {
    reader r = {.from = from, .file = file_name, .line = 1, .each = each, .context = context};
    errno = 0;
    advance(&r);
    tsr_status status = read_value(&r, "");
    skip_space(&r);
    if (status == TSR_OK && r.next != EOF) status = wrong(&r, "more follows the end");
    if (status == TSR_OK && ferror(from)) status = wrong(&r, "");
    for (int i = 0; i <= DEPTH_MOST; i++) free(r.name[i].text);
    free(r.value.text);
    return status;
}

tsr_status tsr_json_read_file(const char *file, void (*each)(void *context, const tsr_json_value *value),
                              void *context) {
    FILE *from = fopen(file, "re");
    if (!from) return tsr_fail(TSR_ERR_IO, "cannot open '%s': %s; check the file's name", file, strerror(errno));
    tsr_status status = tsr_json_read(from, file, each, context);
    fclose(from);
    return status;
}

bool tsr_json_is(const char *file) {
    struct stat st;
    if (stat(file, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    FILE *from = fopen(file, "re");
    if (!from) return false;
    int c;
    while ((c = getc(from)) == ' ' || c == '\n' || c == '\t' || c == '\r') continue;
    fclose(from);
    return c == '{' || c == '[';
}
