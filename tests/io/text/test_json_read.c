/* What is JSON, value by value, and what is not, with the line. */
#define _GNU_SOURCE
#include "io/text/json_read.h"

#include "tests/io/scratch.h"

static char log_text[4096];

static void note(void *context, const tsr_json_value *value) {
    static const char *const kinds[] = {"{", "[", "end", "text", "number", "word"};
    size_t used = strlen(log_text);
    (void)context;
    snprintf(log_text + used, sizeof log_text - used, "%d%s<%s>%s|", value->depth, kinds[value->kind], value->name,
             value->text);
}

static tsr_status read_bytes(const char *text, size_t bytes) {
    FILE *from = bytes ? fmemopen((void *)text, bytes, "r") : fopen("/dev/null", "r");
    CHECK(from, "no stream");
    log_text[0] = '\0';
    tsr_status status = tsr_json_read(from, "x.json", note, NULL);
    fclose(from);
    return status;
}

static void expect(const char *text, const char *events) {
    CHECK_OK(read_bytes(text, strlen(text)));
    CHECK(strcmp(log_text, events) == 0, "'%s': %s", text, log_text);
}

static void refuse(const char *text, const char *what) {
    CHECK_FAILS(read_bytes(text, strlen(text)), TSR_ERR_FORMAT, what);
}

static void test_values(void) {
    expect("{}", "0{<>|0end<>|");
    expect(" [ ] ", "0[<>|0end<>|");
    expect("{\"a\": 1, \"b\": [true, null, {\"c\": \"x\"}], \"d\": -1.5e+3}",
           "0{<>|1number<a>1|1[<b>|2word<>true|2word<>null|2{<>|3text<c>x|2end<>|1end<>|1number<d>-1.5e+3|0end<>|");
    expect("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "0text<>a\"\\/\b\f\n\r\t|");
    expect("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\xc3\xa9\"", "0text<>A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9|");
    expect("\"\\u0000\\ud800x\\udc00\\ud800\\u0041\"", "0text<>\xef\xbf\xbd\xef\xbf\xbdx\xef\xbf\xbd\xef\xbf\xbd\x41|");
    expect("\"\\ud800\\n\\ud800\\ud800\\\"\"", "0text<>\xef\xbf\xbd\n\xef\xbf\xbd\xef\xbf\xbd\"|");
    expect("[0.0e-0, 120.050E+10]", "0[<>|1number<>0.0e-0|1number<>120.050E+10|0end<>|");
    expect("[0, -0, 0.5, 10, 1E5]", "0[<>|1number<>0|1number<>-0|1number<>0.5|1number<>10|1number<>1E5|0end<>|");
}

static void test_errors(void) {
    static const char *const bad[] = {"{",
                                      "[1",
                                      "[1,]",
                                      "{\"a\"}",
                                      "{\"a\": }",
                                      "{a: 1}",
                                      "{\"a\": 1,}",
                                      "[1 2]",
                                      "nul",
                                      "01",
                                      "-",
                                      "1.",
                                      "0x10",
                                      ".5",
                                      "+1",
                                      "1e",
                                      "NaN",
                                      "\"a",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\u12g4\"",
                                      "\"\\ud800\\x\"",
                                      "\"\\ud800\\",
                                      "1.e5",
                                      "-.5",
                                      "-01",
                                      "1e+",
                                      "1.5E",
                                      "1e5.0",
                                      "--1",
                                      "0b1",
                                      "infinity",
                                      "[1] 2",
                                      "}",
                                      "'a'",
                                      "\"line\nbreak\"",
                                      " "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refuse(bad[i], "'x.json', line ");
    CHECK_FAILS(read_bytes("", 0), TSR_ERR_FORMAT, "line 1");
    refuse("{\n\"a\": 1,\n\"b\": x\n}", "line 3");
    CHECK_FAILS(read_bytes("[\"a\0b\"]", 8), TSR_ERR_FORMAT, "line 1");
    CHECK_FAILS(read_bytes("[1\0]", 4), TSR_ERR_FORMAT, "line 1");
    char deep[200];
    memset(deep, '[', sizeof deep);
    CHECK_FAILS(read_bytes(deep, sizeof deep), TSR_ERR_FORMAT, "too deep");
    char *lengthy = malloc(3 << 20);
    memset(lengthy, 'x', 3 << 20);
    lengthy[0] = '"';
    CHECK_FAILS(read_bytes(lengthy, 3 << 20), TSR_ERR_FORMAT, "longer than 1 MiB");
    free(lengthy);
    CHECK_FAILS(tsr_json_read_file("/no/such.json", note, NULL), TSR_ERR_IO, "cannot open '/no/such.json'");
    FILE *folder = fopen("/", "r");
    CHECK(folder, "no stream");
    CHECK_FAILS(tsr_json_read(folder, "/", note, NULL), TSR_ERR_IO, "cannot be read");
    fclose(folder);
}

static void spit(const char *name, const char *text) {
    FILE *to = fopen(in_scratch(name), "w");
    CHECK(to && fputs(text, to) >= 0 && fclose(to) == 0, "cannot write %s", name);
}

static void test_is(void) {
    scratch_make();
    spit("object", " \n\t{\"a\": 1}");
    spit("array", "[");
    spit("text", "a = {}");
    spit("empty", "");
    CHECK(tsr_json_is(in_scratch("object")) && tsr_json_is(in_scratch("array")), "JSON was not seen");
    CHECK(!tsr_json_is(in_scratch("text")) && !tsr_json_is(in_scratch("empty")) && !tsr_json_is(in_scratch("absent")) &&
              !tsr_json_is(scratch),
          "no JSON was seen as such");
    scratch_remove();
}

int main(void) {
    test_values();
    test_errors();
    test_is();
    return 0;
}
