/* The option parser: values, names of wrong options, lists of those there are, command lines. */
#include "app/options.h"
#include "tests/check.h"

typedef struct {
    const char *output;
    int flags, arguments;
    double alpha;
} parsed;

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "where", 0}, {"force", 'f', NULL, 0, "replace", 0}, {"format", 'F', NULL, 0, "how", 0}, {"alpha", 300, "X", 0, "factor", 0},
    {"secret", 301, NULL, OPTION_HIDDEN, "", 0}, {0}};

static error_t parse(int key, char *text, struct argp_state *state) {
    parsed *p = state->input;
    if (key == 'o') p->output = text;
    else if (key == 'f' || key == 'F') p->flags++;
    else if (key == 300) return tsr_parse_double("--alpha", text, &p->alpha) == TSR_OK ? 0 : EINVAL;
    else if (key == ARGP_KEY_ARG && p->arguments < 1) p->arguments++;
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp argp = {options, parse, "A", "doc", NULL, NULL, NULL};

static tsr_status run(parsed *p, int argc, char **argv) {
    *p = (parsed){0};
    return tsr_options_parse(&argp, argc, argv, p);
}
#define RUN(p, ...) run(p, (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)), (char *[]){__VA_ARGS__})

static void test_parse(void) {
    parsed p;
    CHECK_OK(RUN(&p, "tessera x", "a", "-o", "out", "--force", "--alpha", "-2"));
    CHECK(strcmp(p.output, "out") == 0 && p.flags == 1 && p.arguments == 1 && p.alpha == -2, "%s %d %d %g", p.output, p.flags, p.arguments, p.alpha);
    CHECK_OK(RUN(&p, "tessera x", "--alpha=3", "-ofile", "-fF", "--", "-a"));
    CHECK(strcmp(p.output, "file") == 0 && p.flags == 2 && p.arguments == 1 && p.alpha == 3, "%s %d %d %g", p.output, p.flags, p.arguments, p.alpha);
    CHECK_OK(RUN(&p, "tessera x", "--out=short"));
    CHECK(strcmp(p.output, "short") == 0, "%s", p.output);
    char *order[] = {"tessera x", "a", "-f", NULL};
    CHECK_OK(run(&p, 3, order));
    CHECK(strcmp(order[1], "a") == 0 && strcmp(order[2], "-f") == 0, "arguments were reordered: %s %s", order[1], order[2]);
}

static void test_refuse(void) {
    parsed p;
    CHECK_FAILS(RUN(&p, "tessera x", "--outpt", "f"), TSR_ERR_USAGE, "'--outpt'");
    CHECK(strstr(tsr_message(), "--output --force --format --alpha") != NULL && !strstr(tsr_message(), "--secret"), "%s", tsr_message());
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
    for (size_t n = 0; n < sizeof no_doubles / sizeof *no_doubles; n++) CHECK_FAILS(tsr_parse_double("--x", no_doubles[n], &d), TSR_ERR_USAGE, "--x");
    static const char *const no_ints[] = {"", "1.5", "x", "6", "99999999999999999999", " 1"};
    for (size_t n = 0; n < sizeof no_ints / sizeof *no_ints; n++) CHECK_FAILS(tsr_parse_int("--x", no_ints[n], -5, 5, &i), TSR_ERR_USAGE, "-5 to 5");
}

static void test_shapes(void) {
    int64_t rows = 0, cols = 0;
    int grid[3] = {-1, -1, -1};
    CHECK_OK(tsr_parse_shape("--shape", "0x4000000000", &rows, &cols));
    CHECK(rows == 0 && cols == 4000000000, "%lld %lld", (long long)rows, (long long)cols);
    static const char *const no_shapes[] = {"", "3", "3x", "x3", "-1x3", "3x4x5", "3*4", "3x99999999999999999999", "3 x4"};
    for (size_t n = 0; n < sizeof no_shapes / sizeof *no_shapes; n++) CHECK_FAILS(tsr_parse_shape("--shape", no_shapes[n], &rows, &cols), TSR_ERR_USAGE, "--shape");
    CHECK_OK(tsr_parse_grid("--grid", "2x3", grid));
    CHECK(grid[0] == 2 && grid[1] == 3 && grid[2] == 1, "%d %d %d", grid[0], grid[1], grid[2]);
    CHECK_OK(tsr_parse_grid("--grid", "2x3x4", grid));
    CHECK(grid[2] == 4, "%d", grid[2]);
    CHECK_OK(tsr_parse_grid("--grid", "auto", grid));
    CHECK(grid[0] == 0 && grid[1] == 0 && grid[2] == 0, "%d %d %d", grid[0], grid[1], grid[2]);
    static const char *const no_grids[] = {"", "2", "0x2", "2x-1", "1x2x3x4", "2x3x", "9999999x1"};
    for (size_t n = 0; n < sizeof no_grids / sizeof *no_grids; n++) CHECK_FAILS(tsr_parse_grid("--grid", no_grids[n], grid), TSR_ERR_USAGE, "--grid");
}

static void test_memory(void) {
    size_t bytes = 1;
    double percent = 1;
    tsr_order order = TSR_ORDER_ROW;
    CHECK_OK(tsr_parse_memory("--memory", "4M", &bytes, &percent));
    CHECK(bytes == 4 << 20 && percent == 0, "%zu %g", bytes, percent);
    CHECK_OK(tsr_parse_memory("--memory", "12.5%", &bytes, &percent));
    CHECK(bytes == 0 && percent == 12.5, "%zu %g", bytes, percent);
    static const char *const no_memory[] = {"", "0", "0%", "101%", "-5%", "nan%", "x", "%", "5x"};
    for (size_t n = 0; n < sizeof no_memory / sizeof *no_memory; n++) CHECK_FAILS(tsr_parse_memory("--memory", no_memory[n], &bytes, &percent), TSR_ERR_USAGE, "--memory");
    CHECK_OK(tsr_order_parse("col", &order));
    CHECK(order == TSR_ORDER_COL, "%d", (int)order);
    CHECK_FAILS(tsr_order_parse("diagonal", &order), TSR_ERR_USAGE, "row");
}

static void test_command_line(void) {
    char *argv[] = {"tessera x", "a.h5:/C[0:3,1:2]", "it's", "", "-o", "plain_1.h5"};
    char *line = tsr_command_line(6, argv);
    CHECK(line && strcmp(line, "tessera x 'a.h5:/C[0:3,1:2]' 'it'\\''s' '' -o plain_1.h5") == 0, "%s", line);
    free(line);
}

int main(void) {
    test_parse();
    test_refuse();
    test_numbers();
    test_shapes();
    test_memory();
    test_command_line();
    return 0;
}
