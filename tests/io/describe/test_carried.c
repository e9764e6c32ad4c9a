/* What describes a matrix, as a helper that was taken over would send it: whatever comes, values have the bytes that
 * their shape says. Built with sanitizers, too: nothing is read beyond a message, and nothing is lost. */
#include "io/describe/carried.h"
#include "tests/io/describe/message.h"

static char numbers[] = "abcdefghijklmnopqrstuvwx", texts[] = "one\0\0three"; /* 24 bytes, 3 texts */
static tsr_carried_attribute list[] = {
    {.name = "names",
     .values = {.kind = TSR_VALUES_TEXTS, .dimensions = 1, .size = {3}, .data = texts, .bytes = sizeof texts}},
    {.name = "none", .values = {.kind = TSR_VALUES_FLOAT, .element_bytes = 4, .dimensions = -1}},
    {.name = "units", .values = {.kind = TSR_VALUES_TEXT, .element_bytes = 6, .data = numbers, .bytes = 6}}};

static tsr_carried example(void) {
    tsr_carried c = {
        .scale_count = 2, .label = "rows", .matlab = true, .left_out = "one thing", .attributes = {list, 3}};
    c.scales[0] = (tsr_scale){
        .name = "x",
        .title = "x",
        .length = 3,
        .values =
            {.kind = TSR_VALUES_FLOAT, .element_bytes = 8, .dimensions = 1, .size = {3}, .data = numbers, .bytes = 24},
        .attributes = {list, 2}};
    c.scales[1] = (tsr_scale){.name = "bare", .length = 3, .name_only = true};
    return c;
}

static tsr_wire message_of(const tsr_carried *carried) {
    tsr_wire wire = {.data = NULL};
    tsr_carried copy = *carried;
    tsr_wire_carried(&wire, &copy);
    return message_written(wire);
}

/* NULL for a message that is believed. */
static const char *read_message(tsr_wire *wire, tsr_carried *carried) {
    memset(carried, 0, sizeof *carried);
    wire->at = 0;
    wire->wrong = NULL;
    tsr_wire_carried(wire, carried);
    (void)tsr_wire_is_good(wire);
    return wire->wrong;
}

/* Whoever writes values counts on this; written independently of the checks. */
static void check_values(const tsr_values *v) {
    __int128 count = v->dimensions < 0 ? 0 : 1;
    int64_t ends = 0;
    CHECK(v->dimensions >= -1 && v->dimensions <= TSR_VALUES_DIMENSIONS_MAX, "%d dimensions", v->dimensions);
    for (int d = 0; d < v->dimensions; d++) count *= v->size[d];
    CHECK(v->bytes >= 0 && (v->bytes == 0) == (v->data == NULL), "bytes without data");
    for (int64_t i = 0; i < v->bytes; i++) ends += v->data[i] == '\0';
    if (v->kind == TSR_VALUES_TEXTS) CHECK(ends == count, "%lld texts", (long long)ends);
    else CHECK(v->bytes == count * v->element_bytes, "%lld bytes", (long long)v->bytes);
    CHECK(v->padding >= 0 && v->padding <= 2, "padding");
}

static void check_believed(const tsr_carried *c) {
    CHECK(c->scale_count >= 0 && c->scale_count <= TSR_SCALES_MAX, "scales");
    for (int64_t i = 0; i < c->attributes.count; i++) check_values(&c->attributes.list[i].values);
    for (int64_t s = 0; s < c->scale_count; s++) {
        const tsr_scale *scale = &c->scales[s];
        CHECK(*scale->name && !strchr(scale->name, '/'), "a path for a name: '%s'", scale->name);
        if (scale->name_only) continue;
        check_values(&scale->values);
        CHECK(scale->values.dimensions == 1 && scale->values.size[0] == scale->length, "the length");
    }
}

static void check_round_trip(void) {
    const tsr_carried sent = example();
    tsr_carried got;
    tsr_wire wire = message_of(&sent);
    CHECK(read_message(&wire, &got) == NULL, "refused: %s", wire.wrong);
    check_believed(&got);
    CHECK(got.scale_count == 2 && tsr_scale_same(&got.scales[0], &sent.scales[0]), "the scale came differently");
    CHECK(!tsr_scale_same(&got.scales[0], &got.scales[1]) && tsr_scale_same(&got.scales[1], &sent.scales[1]), "names");
    CHECK(strcmp(got.label, "rows") == 0 && strcmp(got.left_out, "one thing") == 0, "texts");
    CHECK(got.attributes.count == 3 && memcmp(got.attributes.list[0].values.data, texts, sizeof texts) == 0, "texts");
    got.scales[0].values.data[7] ^= 1;
    CHECK(!tsr_scale_same(&got.scales[0], &sent.scales[0]), "another value is the same");
    got.scales[0].values.data[7] ^= 1;
    got.scales[0].attributes.list[0].name[0] = 'N';
    CHECK(!tsr_scale_same(&got.scales[0], &sent.scales[0]), "another attribute is the same");
    tsr_carried_free(&got);
    tsr_wire_free(&wire);
}

typedef struct {
    tsr_carried sent;
    tsr_carried_attribute list[3];
} lie;

static void believe_all(lie *l) {
    l->sent = example();
    memcpy(l->list, list, sizeof list);
    l->sent.attributes.list = l->list;
}

static void check_lie(lie *l, const char *what) {
    tsr_carried got;
    tsr_wire wire = message_of(&l->sent);
    CHECK(read_message(&wire, &got) != NULL, "%s was believed", what);
    tsr_carried_free(&got);
    tsr_wire_free(&wire);
}

/* One lie at a time. */
#define REFUSED(field, value)                                                                                          \
    do {                                                                                                               \
        lie l;                                                                                                         \
        believe_all(&l);                                                                                               \
        l.field = (value);                                                                                             \
        check_lie(&l, #field " = " #value);                                                                            \
    } while (0)

static void check_lies(void) {
    REFUSED(sent.scales[0].values.element_bytes, 4);
    REFUSED(sent.scales[0].values.element_bytes, 3);
    REFUSED(sent.scales[0].values.kind, TSR_VALUES_BOOL);
    REFUSED(sent.scales[0].values.kind, TSR_VALUES_KINDS);
    REFUSED(sent.scales[0].values.size[0], (int64_t)1 << 62);
    REFUSED(sent.scales[0].values.size[0], -3);
    REFUSED(sent.scales[0].values.dimensions, 0);
    REFUSED(sent.scales[0].values.dimensions, TSR_VALUES_DIMENSIONS_MAX + 1);
    REFUSED(sent.scales[0].length, 4);
    REFUSED(sent.scales[0].name[0], '/');
    REFUSED(sent.scales[0].name[0], '.');
    REFUSED(sent.scales[1].name[0], '\0');
    REFUSED(list[0].values.size[0], 4);
    REFUSED(list[0].values.bytes, (int64_t)sizeof texts - 1);
    REFUSED(list[1].values.dimensions, 0);
    REFUSED(list[2].values.padding, 3);
    REFUSED(list[2].values.element_bytes, 0);
}

static uint64_t state = 20240612;
static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void check_damage(void) {
    static const uint64_t odd[] = {0, 1, 255, 1u << 31, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX, INT64_MAX, 4096};
    const tsr_carried sent = example();
    tsr_carried got;
    int believed = 0;
    tsr_wire whole = message_of(&sent);
    for (int i = 0; i < 20000; i++) {
        tsr_wire wire = message_of(&sent);
        const size_t at = next() % wire.bytes;
        const uint64_t value = next() % 3 ? odd[next() % (sizeof odd / sizeof *odd)] : next();
        if (next() % 2) wire.data[at] = (char)value;
        else if (at + sizeof value <= wire.bytes) memcpy(wire.data + at, &value, sizeof value);
        if (read_message(&wire, &got) == NULL) {
            check_believed(&got);
            believed++;
        }
        tsr_carried_free(&got);
        tsr_wire_free(&wire);
    }
    CHECK(believed > 0 && believed < 20000, "%d of 20000 were believed", believed);
    for (size_t bytes = 0; bytes < whole.bytes; bytes++) {
        tsr_wire cut = {.data = whole.data, .bytes = bytes, .reading = true};
        CHECK(read_message(&cut, &got) != NULL, "%zu of %zu bytes were believed", bytes, whole.bytes);
        tsr_carried_free(&got);
    }
    tsr_wire_free(&whole);
}

/* Lines that no longer fit are left out, and one line stays one. */
static void check_notes(void) {
    tsr_carried c = {.scale_count = 0};
    tsr_carried_note(&c, "a name '%s' of two lines", "a\nb");
    CHECK(strcmp(c.left_out, "a name 'a b' of two lines") == 0, "'%s'", c.left_out);
    for (int i = 0; i < 500; i++) tsr_carried_note(&c, "line %d", i);
    CHECK(strlen(c.left_out) < sizeof c.left_out && strstr(c.left_out, "\nline 1\n") && !strstr(c.left_out, "line 499"),
          "'%s'", c.left_out);
}

int main(void) {
    check_round_trip();
    check_lies();
    check_damage();
    check_notes();
    return 0;
}
