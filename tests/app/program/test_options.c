/* The option parser: values, names of wrong options, lists of those there are, command lines. */
#include <math.h>

#include "app/options.h"
#include "tests/check.h"

typedef struct {
    const char *output, *place;
    int flags, arguments, count;
    double alpha;
    bool has_count, refused;
} parsed;

static tsr_status count_flag(const tsr_option *option, const char *text, void *field) {
    (void)option;
    (void)text;
    ++*(int *)field;
    return TSR_OK;
}

static tsr_status read_place(const tsr_option *option, const char *text, void *field) {
    (void)option;
    *(const char **)field = text ? text : "here";
    return TSR_OK;
}

static const tsr_option common_count = {
    .name = "count", .value = "N", .help = "how many", .initial = "7", .read = tsr_read_count, .low = 1, .high = 9};

#define AT(member) offsetof(parsed, member)

static const tsr_option options[] = {
    {.name = "output", .letter = 'o', .value = "FILE", .help = "where", .read = tsr_read_text, .field = AT(output)},
    {.name = "force", .letter = 'f', .help = "replace", .read = count_flag, .field = AT(flags)},
    {.name = "format", .letter = 'F', .help = "how", .read = count_flag, .field = AT(flags)},
    {.name = "alpha", .value = "X", .help = "factor", .initial = "0.5", .read = tsr_read_number, .field = AT(alpha)},
    {.shared = &common_count, .initial = "3", .field = AT(count), .given = AT(has_count)},
    {.name = "place", .value = "DIR", .optional = true, .help = "where, too", .read = read_place, .field = AT(place)},
    {.name = "secret", .hidden = true, .help = "", .read = count_flag, .field = AT(flags)},
    {0}};

static tsr_status take(void *to, int number, const char *text) {
    (void)text;
    ((parsed *)to)->arguments = number + 1;
    return TSR_OK;
}

static tsr_status check(void *to) {
    return ((parsed *)to)->refused ? tsr_fail(TSR_ERR_USAGE, "refused in the end") : TSR_OK;
}

static const tsr_options command = {
    .options = options, .arguments = "A", .what = "doc", .most_arguments = 1, .argument = take, .check = check};

static tsr_status run(parsed *p, int argc, char **argv) {
    *p = (parsed){.refused = p->refused};
    return tsr_options_parse(&command, argc, argv, p);
}
#define RUN(p, ...) run(p, (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)), (char *[]){__VA_ARGS__})

static void test_parse(void) {
    parsed p = {0};
    CHECK_OK(RUN(&p, "tessera x", "a", "-o", "out", "--force", "--alpha", "-2"));
    CHECK(strcmp(p.output, "out") == 0 && p.flags == 1 && p.arguments == 1 && p.alpha == -2, "%s %d %d %g", p.output,
          p.flags, p.arguments, p.alpha);
    CHECK_OK(RUN(&p, "tessera x", "--alpha=3", "-ofile", "-fF", "--", "-a"));
    CHECK(strcmp(p.output, "file") == 0 && p.flags == 2 && p.arguments == 1 && p.alpha == 3, "%s %d %d %g", p.output,
          p.flags, p.arguments, p.alpha);
    CHECK_OK(RUN(&p, "tessera x", "--out=short"));
    CHECK(strcmp(p.output, "short") == 0, "%s", p.output);
    char *order[] = {"tessera x", "a", "-f", NULL};
    CHECK_OK(run(&p, 3, order));
    CHECK(strcmp(order[1], "a") == 0 && strcmp(order[2], "-f") == 0, "arguments were reordered: %s %s", order[1],
          order[2]);
}

/* A shared row counts with what the command's own row sets, and its initial value is no value given. */
static void test_shared(void) {
    parsed p = {0};
    CHECK_OK(RUN(&p, "tessera x"));
    CHECK(p.count == 3 && !p.has_count && p.alpha == 0.5, "%d %d %g", p.count, p.has_count, p.alpha);
    CHECK_OK(RUN(&p, "tessera x", "--count", "9"));
    CHECK(p.count == 9 && p.has_count, "%d %d", p.count, p.has_count);
    CHECK_FAILS(RUN(&p, "tessera x", "--count", "10"), TSR_ERR_USAGE, "--count '10' is out of range: use 1 to 9");
    p.refused = true;
    CHECK_FAILS(RUN(&p, "tessera x"), TSR_ERR_USAGE, "refused in the end");
}

/* A value that may be left out is never the next argument. */
static void test_optional(void) {
    parsed p = {0};
    CHECK_OK(RUN(&p, "tessera x"));
    CHECK(!p.place, "%s", p.place);
    CHECK_OK(RUN(&p, "tessera x", "--place", "a"));
    CHECK(strcmp(p.place, "here") == 0 && p.arguments == 1, "%s %d", p.place, p.arguments);
    CHECK_OK(RUN(&p, "tessera x", "a", "--place"));
    CHECK(strcmp(p.place, "here") == 0 && p.arguments == 1, "%s %d", p.place, p.arguments);
    CHECK_OK(RUN(&p, "tessera x", "--place=there", "a"));
    CHECK(strcmp(p.place, "there") == 0 && p.arguments == 1, "%s %d", p.place, p.arguments);
}

static void test_refuse(void) {
    parsed p = {0};
    CHECK_FAILS(RUN(&p, "tessera x", "--outpt", "f"), TSR_ERR_USAGE, "'--outpt'; did you mean '--output'?");
    CHECK_FAILS(RUN(&p, "tessera x", "--aplha=3"), TSR_ERR_USAGE, "'--aplha'; did you mean '--alpha'?");
    CHECK_FAILS(RUN(&p, "tessera x", "--hepl"), TSR_ERR_USAGE, "did you mean '--help'?");
    CHECK_FAILS(RUN(&p, "tessera x", "--sekret"), TSR_ERR_USAGE,
                "unknown option '--sekret' (tessera x --help lists the options)"); /* a hidden one is not offered */
    CHECK_FAILS(RUN(&p, "tessera x", "--nonsense", "f"), TSR_ERR_USAGE,
                "unknown option '--nonsense' (tessera x --help");
    CHECK_FAILS(RUN(&p, "tessera x", "-z"), TSR_ERR_USAGE, "'-z'");
    CHECK_FAILS(RUN(&p, "tessera x", "--fo"), TSR_ERR_USAGE, "ambiguous option '--fo'");
    CHECK_FAILS(RUN(&p, "tessera x", "--force=1"), TSR_ERR_USAGE, "takes no value");
    CHECK_FAILS(RUN(&p, "tessera x", "--output"), TSR_ERR_USAGE, "needs a value (FILE)");
    CHECK_FAILS(RUN(&p, "tessera x", "-o"), TSR_ERR_USAGE, "needs a value (FILE)");
    CHECK_FAILS(RUN(&p, "tessera x", "--alpha", "two"), TSR_ERR_USAGE, "--alpha 'two'");
    CHECK_FAILS(RUN(&p, "tessera x", "a", "more"), TSR_ERR_USAGE, "unexpected argument 'more'");
    CHECK_FAILS(RUN(&p, "tessera x", "--help"), TSR_ERR_USAGE, "unknown option '--help'");
}

static void test_numbers(void) {
    double d = 0;
    int64_t i = 0;
    CHECK_OK(tsr_parse_double("--x", "1e-6", &d));
    CHECK(d == 1e-6, "%g", d);
    CHECK_OK(tsr_parse_int("--x", "-3", -5, 5, &i));
    CHECK(i == -3, "%lld", (long long)i);
    static const char *const no_doubles[] = {"", "x", "1x", " 1", "nan"};
    for (size_t n = 0; n < sizeof no_doubles / sizeof *no_doubles; n++)
        CHECK_FAILS(tsr_parse_double("--x", no_doubles[n], &d), TSR_ERR_USAGE, "--x");
    CHECK_OK(tsr_parse_double("--x", "-inf", &d));
    CHECK(isinf(d) && d < 0, "%g", d);
    CHECK_OK(tsr_parse_double("--x", "5e-324", &d));
    CHECK(d == 0x1p-1074, "%g", d);
    tsr_complex z = {0, 0};
    CHECK_OK(tsr_parse_complex("--x", "0-0j", &z));
    static const char *const too_far[] = {"1e400", "-1e400", "1e-400"};
    for (size_t n = 0; n < sizeof too_far / sizeof *too_far; n++) {
        CHECK_FAILS(tsr_parse_double("--x", too_far[n], &d), TSR_ERR_USAGE, "out of range");
        CHECK_FAILS(tsr_parse_complex("--x", too_far[n], &z), TSR_ERR_USAGE, "out of range");
    }
    CHECK_FAILS(tsr_parse_complex("--x", "1+1e400j", &z), TSR_ERR_USAGE, "out of range");
    static const char *const no_ints[] = {"", "1.5", "x", "6", "99999999999999999999", " 1"};
    for (size_t n = 0; n < sizeof no_ints / sizeof *no_ints; n++)
        CHECK_FAILS(tsr_parse_int("--x", no_ints[n], -5, 5, &i), TSR_ERR_USAGE, "-5 to 5");
}

static void test_shapes(void) {
    int64_t rows = 0, cols = 0;
    int grid[3] = {-1, -1, -1};
    CHECK_OK(tsr_parse_shape("--shape", "0x4000000000", &rows, &cols));
    CHECK(rows == 0 && cols == 4000000000, "%lld %lld", (long long)rows, (long long)cols);
    static const char *const shapes[] = {"3x4", "3X4", "3,4", "3, 4", "(3, 4)", "(3,4)", " 3 x 4 "};
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        rows = cols = -1;
        CHECK_OK(tsr_parse_shape("--shape", shapes[n], &rows, &cols));
        CHECK(rows == 3 && cols == 4, "'%s': %lld x %lld", shapes[n], (long long)rows, (long long)cols);
    }
    static const char *const no_shapes[] = {
        "",    "3",    "3x",   "x3",      "-1x3",    "3x4x5", "3*4", "3x99999999999999999999",
        "3 4", "(3,4", "3,4)", "((3,4))", "(3,4)x5", "3,,4"};
    for (size_t n = 0; n < sizeof no_shapes / sizeof *no_shapes; n++)
        CHECK_FAILS(tsr_parse_shape("--shape", no_shapes[n], &rows, &cols), TSR_ERR_USAGE, "--shape");
    CHECK_OK(tsr_parse_grid("--grid", "2x3", grid));
    CHECK(grid[0] == 2 && grid[1] == 3 && grid[2] == 1, "%d %d %d", grid[0], grid[1], grid[2]);
    CHECK_OK(tsr_parse_grid("--grid", "2x3x4", grid));
    CHECK(grid[2] == 4, "%d", grid[2]);
    CHECK_OK(tsr_parse_grid("--grid", "5,6", grid));
    CHECK(grid[0] == 5 && grid[1] == 6 && grid[2] == 1, "%d %d %d", grid[0], grid[1], grid[2]);
    CHECK_OK(tsr_parse_grid("--grid", "auto", grid));
    CHECK(grid[0] == 0 && grid[1] == 0 && grid[2] == 0, "%d %d %d", grid[0], grid[1], grid[2]);
    static const char *const no_grids[] = {"", "2", "0x2", "2x-1", "1x2x3x4", "2x3x", "9999999x1"};
    for (size_t n = 0; n < sizeof no_grids / sizeof *no_grids; n++)
        CHECK_FAILS(tsr_parse_grid("--grid", no_grids[n], grid), TSR_ERR_USAGE, "--grid");
}

static void test_memory(void) {
    size_t bytes = 1;
    double percent = 1;
    tsr_order order = TSR_ORDER_ROW;
    CHECK_OK(tsr_parse_memory("--memory", "4M", &bytes, &percent));
    CHECK(bytes == 4 << 20 && percent == 0, "%zu %g", bytes, percent);
    static const struct {
        const char *text;
        size_t bytes;
    } sizes[] = {{"4Gi", (size_t)4 << 30}, {"4GiB", (size_t)4 << 30}, {"4G", (size_t)4 << 30}, {"4g", (size_t)4 << 30},
                 {"4GB", 4000000000},      {"4 gb", 4000000000},      {"1.5Ki", 1536}};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        CHECK_OK(tsr_parse_memory("--memory", sizes[n].text, &bytes, &percent));
        CHECK(bytes == sizes[n].bytes, "'%s': %zu", sizes[n].text, bytes);
    }
    CHECK_OK(tsr_parse_memory("--memory", "12.5%", &bytes, &percent));
    CHECK(bytes == 0 && percent == 12.5, "%zu %g", bytes, percent);
    static const char *const no_memory[] = {"",  "0", "0%", "101%",  "-5%", "nan%",
                                            "x", "%", "5x", "4Gib2", "4iB", "4Gx"};
    for (size_t n = 0; n < sizeof no_memory / sizeof *no_memory; n++)
        CHECK_FAILS(tsr_parse_memory("--memory", no_memory[n], &bytes, &percent), TSR_ERR_USAGE, "--memory");
    CHECK_OK(tsr_order_parse("col", &order));
    CHECK(order == TSR_ORDER_COL, "%d", (int)order);
    static const struct {
        const char *text;
        tsr_order order;
    } orders[] = {{"C", TSR_ORDER_ROW},
                  {"F", TSR_ORDER_COL},
                  {"row", TSR_ORDER_ROW},
                  {"column", TSR_ORDER_COL},
                  {"f", TSR_ORDER_COL}};
    for (size_t n = 0; n < sizeof orders / sizeof *orders; n++) {
        CHECK_OK(tsr_order_parse(orders[n].text, &order));
        CHECK(order == orders[n].order, "'%s'", orders[n].text);
    }
    CHECK_FAILS(tsr_order_parse("diagonal", &order), TSR_ERR_USAGE, "row");
}

static void test_names_of_values(void) {
    const char *kind = "";
    static const char *const kinds[][2] = {{"gpu", "cuda"}, {"GPU", "cuda"}, {"cuda", "cuda"},
                                           {"cpu", "cpu"},  {"CPU", "cpu"},  {"auto", "auto"}};
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
        CHECK_OK(tsr_device_parse(kinds[n][0], &kind));
        CHECK(strcmp(kind, kinds[n][1]) == 0, "'%s' is %s", kinds[n][0], kind);
    }
    CHECK_FAILS(tsr_device_parse("tpu", &kind), TSR_ERR_USAGE, "'tpu': use auto, cpu or cuda");
    static const struct {
        const char *text;
        tsr_dtype type;
    } types[] = {{"fp32", TSR_F32},  {"float32", TSR_F32}, {"float", TSR_F32},     {"single", TSR_F32},
                 {"FP64", TSR_F64},  {"float64", TSR_F64}, {"double", TSR_F64},    {"fp16", TSR_F16},
                 {"half", TSR_F16},  {"Float16", TSR_F16}, {"bfloat16", TSR_BF16}, {"int8", TSR_I8},
                 {"int64", TSR_I64}, {"uint16", TSR_U16},  {"u32", TSR_U32}};
    for (size_t n = 0; n < sizeof types / sizeof *types; n++) {
        tsr_dtype type = TSR_DTYPE_COUNT;
        CHECK_OK(tsr_dtype_parse(types[n].text, &type));
        CHECK(type == types[n].type, "'%s' is %s", types[n].text, tsr_dtype_name(type));
    }
    tsr_dtype none;
    static const char *const no_types[] = {"", "float8", "f4", "fp", "i3"};
    for (size_t n = 0; n < sizeof no_types / sizeof *no_types; n++)
        CHECK_FAILS(tsr_dtype_parse(no_types[n], &none), TSR_ERR_USAGE, "unknown element type");
}

static void test_command_line(void) {
    char *argv[] = {"tessera x", "a.h5:/C[0:3,1:2]", "it's", "", "-o", "plain_1.h5"};
    char *line = tsr_command_line(6, argv);
    CHECK(line && strcmp(line, "tessera x 'a.h5:/C[0:3,1:2]' 'it'\\''s' '' -o plain_1.h5") == 0, "%s", line);
    free(line);
}

int main(void) {
    test_parse();
    test_shared();
    test_optional();
    test_refuse();
    test_numbers();
    test_shapes();
    test_memory();
    test_names_of_values();
    test_command_line();
    return 0;
}
