/* Command-line parsing without exits and without output: the arguments are checked against the argp options first,
 * so that an error can name the option and those that are meant, then argp hands them to the command's parser. */
#include "app/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/nearest.h"
#include "io/text.h"

#define LIST_CHARS 1200

/* ---- options there are -------------------------------------------------------------------------------------- */

static bool is_end(const struct argp_option *o) { return !o->key && !o->name && !o->doc && !o->group; }
static bool is_option(const struct argp_option *o) { return !(o->flags & OPTION_DOC) && (o->name || (o->key > 0 && o->key < 256)); }

/* The option an alias stands for decides whether there is an argument. */
static const struct argp_option *takes(const struct argp_option *first, const struct argp_option *o) {
    while (o > first && (o->flags & OPTION_ALIAS)) o--;
    return o;
}

/* Those that begin with the first `length` letters of `name`. */
static void list_options(const struct argp *argp, const char *name, size_t length, char *text, size_t chars) {
    for (const struct argp_option *o = argp->options; o && !is_end(o); o++) {
        if (!is_option(o) || !o->name || (o->flags & OPTION_HIDDEN) || strncmp(o->name, name, length) != 0) continue;
        tsr_text_append(text, chars, " --%s", o->name);
    }
    for (const struct argp_child *c = argp->children; c && c->argp; c++)
        list_options(c->argp, name, length, text, chars);
}

static void offer_options(const struct argp *argp, tsr_nearest *nearest) {
    for (const struct argp_option *o = argp->options; o && !is_end(o); o++)
        if (is_option(o) && o->name && !(o->flags & OPTION_HIDDEN)) tsr_nearest_offer(nearest, o->name);
    for (const struct argp_child *c = argp->children; c && c->argp; c++) offer_options(c->argp, nearest);
}

static tsr_status unknown_option(const struct argp *argp, const char *program, int length, const char *option) {
    char wanted[TSR_NEAREST_CHARS] = "", meant[160];
    tsr_nearest nearest = {.wanted = wanted};
    if (length > 2) snprintf(wanted, sizeof wanted, "%.*s", length - 2, option + 2);
    offer_options(argp, &nearest);
    tsr_nearest_offer(&nearest, "help");
    tsr_nearest_offer(&nearest, "version");
    return tsr_fail(TSR_ERR_USAGE, "unknown option '%.*s'%s (%s --help lists the options)", length, option,
                    tsr_did_you_mean(&nearest, "--", meant, sizeof meant), program);
}

/* length: of the option at the beginning of `option`, dashes included. */
static tsr_status ambiguous_option(const struct argp *argp, const char *program, int length, const char *option) {
    char list[LIST_CHARS] = "";
    list_options(argp, option + 2, (size_t)length - 2, list, sizeof list);
    return tsr_fail(TSR_ERR_USAGE, "ambiguous option '%.*s': write one of%s (%s --help explains them)", length, option,
                    list, program);
}

typedef struct {
    const struct argp_option *found;
    bool exact;
    int matches; /* different options a shortened name may mean */
} option_match;

static void match_long(const struct argp *argp, const char *name, size_t length, option_match *match) {
    for (const struct argp_option *o = argp->options; o && !is_end(o) && !match->exact; o++) {
        if (!is_option(o) || !o->name || strncmp(o->name, name, length) != 0) continue;
        match->exact = strlen(o->name) == length;
        match->matches += 1;
        match->found = takes(argp->options, o);
    }
    for (const struct argp_child *c = argp->children; c && c->argp && !match->exact; c++) match_long(c->argp, name, length, match);
}

static const struct argp_option *match_short(const struct argp *argp, char letter) {
    for (const struct argp_option *o = argp->options; o && !is_end(o); o++)
        if (is_option(o) && o->key == (unsigned char)letter) return takes(argp->options, o);
    for (const struct argp_child *c = argp->children; c && c->argp; c++) {
        const struct argp_option *found = match_short(c->argp, letter);
        if (found) return found;
    }
    return NULL;
}

/* ---- checking the arguments ---------------------------------------------------------------------------------- */

/* One "--name" or "--name=value"; *skip is how many arguments after it are its value. */
static tsr_status check_long(const struct argp *argp, int left, char **argv, const char *program, int *skip) {
    const char *name = argv[0] + 2;
    size_t length = strcspn(name, "=");
    option_match match = {0};
    match_long(argp, name, length, &match);
    if (!match.found) return unknown_option(argp, program, (int)length + 2, argv[0]);
    if (!match.exact && match.matches > 1) return ambiguous_option(argp, program, (int)length + 2, argv[0]);
    bool needs = match.found->arg && !(match.found->flags & OPTION_ARG_OPTIONAL);
    if (!match.found->arg && name[length])
        return tsr_fail(TSR_ERR_USAGE, "option '%.*s' takes no value, but '%s' was given: leave '%s' out", (int)length + 2, argv[0], argv[0], name + length);
    if (needs && !name[length] && left < 2)
        return tsr_fail(TSR_ERR_USAGE, "option '%s' needs a value (%s): add it, see %s --help", argv[0], match.found->arg, program);
    *skip = needs && !name[length];
    return TSR_OK;
}

/* One "-abc" or "-ovalue". */
static tsr_status check_short(const struct argp *argp, int left, char **argv, const char *program, int *skip) {
    for (const char *letter = argv[0] + 1; *letter; letter++) {
        const struct argp_option *found = match_short(argp, *letter);
        char option[3] = {'-', *letter, '\0'};
        if (!found) return unknown_option(argp, program, (int)strlen(option), option);
        if (!found->arg) continue;
        bool needs = !(found->flags & OPTION_ARG_OPTIONAL) && !letter[1];
        if (needs && left < 2)
            return tsr_fail(TSR_ERR_USAGE, "option '%s' needs a value (%s): add it, see %s --help", option, found->arg, program);
        *skip = needs;
        return TSR_OK;
    }
    return TSR_OK;
}

static tsr_status check_arguments(const struct argp *argp, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        int skip = 0;
        if (strcmp(argv[i], "--") == 0) return TSR_OK;
        if (strncmp(argv[i], "--", 2) == 0) TSR_TRY(check_long(argp, argc - i, argv + i, argv[0], &skip));
        else if (argv[i][0] == '-' && argv[i][1]) TSR_TRY(check_short(argp, argc - i, argv + i, argv[0], &skip));
        i += skip;
    }
    return TSR_OK;
}

tsr_status tsr_options_parse(const struct argp *argp, int argc, char **argv, void *input) {
    TSR_TRY(check_arguments(argp, argc, argv));
    char **copy = malloc(((size_t)argc + 1) * sizeof *copy); /* argp reorders what it is given */
    if (!copy) return tsr_fail(TSR_ERR_MEMORY, "no memory for %d arguments: pass fewer", argc);
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    copy[argc] = NULL;
    tsr_message_set("");
    int first = argc;
    error_t error = argp_parse(argp, argc, copy, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, &first, input);
    tsr_status status = TSR_OK;
    if (error != 0 && *tsr_message()) status = TSR_ERR_USAGE; /* the parser's own words */
    else if (error == ENOMEM) status = tsr_fail(TSR_ERR_MEMORY, "no memory to read the options: free some");
    else if (error != 0) status = tsr_fail(TSR_ERR_USAGE, "%s: wrong arguments: see %s --help", argv[0], argv[0]);
    else if (first < argc)
        status = tsr_fail(TSR_ERR_USAGE, "unexpected argument '%s': see %s --help for what %s takes", copy[first], argv[0], argv[0]);
    free(copy);
    return status;
}

void tsr_options_help(const struct argp *argp, const char *name, const char *example) {
    char *program = strdup(name); /* argp_help wants it writable */
    if (program) argp_help(argp, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_PRE_DOC | ARGP_HELP_POST_DOC, program);
    printf("\nExample:\n  %s\n", example);
    free(program);
}

/* ---- values ------------------------------------------------------------------------------------------------- */

tsr_status tsr_parse_double(const char *option, const char *text, double *value) {
    char *end = NULL;
    double read = strtod(text, &end);
    if (end == text || *end || isspace((unsigned char)*text) || isnan(read))
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no number: write one such as 2, -0.5 or 1e-6", option, text);
    *value = read;
    return TSR_OK;
}

tsr_status tsr_parse_int(const char *option, const char *text, int64_t low, int64_t high, int64_t *value) {
    char *end = NULL;
    errno = 0;
    long long read = strtoll(text, &end, 10);
    if (end == text || *end || isspace((unsigned char)*text))
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no whole number: write one from %" PRId64 " to %" PRId64, option, text, low, high);
    if (errno == ERANGE || read < low || read > high)
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is out of range: use %" PRId64 " to %" PRId64, option, text, low, high);
    *value = read;
    return TSR_OK;
}

/* Reads up to `most` whole numbers separated by x or a comma; returns how many, 0 when the text is anything else. */
static int parse_times(const char *text, int64_t *numbers, int most) {
    bool inside = *(text = tsr_text_skip_blanks(text)) == '(';
    if (inside) text = tsr_text_skip_blanks(text + 1);
    for (int count = 0; count < most; count++) {
        char *end = NULL;
        if (!isdigit((unsigned char)*text)) return 0;
        errno = 0;
        numbers[count] = strtoll(text, &end, 10);
        if (errno == ERANGE) return 0;
        text = tsr_text_skip_blanks(end);
        if (*text == ')' && inside) return *tsr_text_skip_blanks(text + 1) == '\0' ? count + 1 : 0;
        if (!*text) return inside ? 0 : count + 1;
        if (*text != 'x' && *text != 'X' && *text != ',') return 0;
        text = tsr_text_skip_blanks(text + 1);
    }
    return 0;
}

tsr_status tsr_parse_shape(const char *option, const char *text, int64_t *rows, int64_t *cols) {
    int64_t numbers[2] = {0};
    if (parse_times(text, numbers, 2) != 2)
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no shape: write ROWSxCOLUMNS, such as 2000x3000", option, text);
    *rows = numbers[0];
    *cols = numbers[1];
    return TSR_OK;
}

tsr_status tsr_parse_product(const char *option, const char *text, int64_t *m, int64_t *n, int64_t *k) {
    int64_t sizes[3] = {0};
    int count = parse_times(text, sizes, 3);
    if (count == 1) sizes[1] = sizes[2] = sizes[0];
    if (count == 0 || count == 2 || sizes[0] < 1 || sizes[1] < 1 || sizes[2] < 1)
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no product: write MxNxK such as 4096x4096x1024, or one number for all three", option, text);
    *m = sizes[0], *n = sizes[1], *k = sizes[2];
    return TSR_OK;
}

tsr_status tsr_parse_grid(const char *option, const char *text, int grid[3]) {
    int64_t numbers[3] = {0, 0, 1};
    bool automatic = strcmp(text, "auto") == 0;
    int count = automatic ? 3 : parse_times(text, numbers, 3);
    for (int i = 0; i < 3 && !automatic; i++)
        if (numbers[i] < 1 || numbers[i] > 1000000) count = 0;
    if (count < 2)
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no grid: write PxQ or PxQxR with numbers of at least 1, such as 2x2, or auto", option, text);
    for (int i = 0; i < 3; i++) grid[i] = automatic ? 0 : (int)numbers[i];
    return TSR_OK;
}

tsr_status tsr_parse_memory(const char *option, const char *text, size_t *bytes, double *percent) {
    size_t length = strlen(text);
    if (length > 0 && text[length - 1] == '%') {
        char *end = NULL;
        double read = strtod(text, &end);
        if (!isdigit((unsigned char)*text) || end != text + length - 1 || !(read > 0 && read <= 100))
            return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no share of memory: use more than 0%% and at most 100%%", option, text);
        *bytes = 0;
        *percent = read;
        return TSR_OK;
    }
    size_t read = 0;
    if (tsr_parse_bytes(text, &read) != TSR_OK || read == 0)
        return tsr_fail(TSR_ERR_USAGE, "%s '%s' is no amount of memory: write bytes with an optional unit, such as 512M or 4G, or a share such as 80%%",
                        option, text);
    *bytes = read;
    *percent = 0;
    return TSR_OK;
}

tsr_status tsr_device_parse(const char *text, const char **kind) {
    static const char *const kinds[][2] = {{"auto", "auto"}, {"cpu", "cpu"}, {"cuda", "cuda"}, {"gpu", "cuda"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcasecmp(text, kinds[i][0]) == 0) return *kind = kinds[i][1], TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "unknown --device '%s': use auto, cpu or cuda (gpu is cuda)", text);
}

tsr_status tsr_order_parse(const char *text, tsr_order *order) {
    static const struct {
        const char *name;
        tsr_order order;
    } names[] = {{"row", TSR_ORDER_ROW},
                 {"C", TSR_ORDER_ROW},
                 {"col", TSR_ORDER_COL},
                 {"column", TSR_ORDER_COL},
                 {"F", TSR_ORDER_COL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(text, names[i].name) == 0) return *order = names[i].order, TSR_OK;
    return tsr_fail(
        TSR_ERR_USAGE,
        "unknown --order '%s': use row or C (as h5ls shows the data), or col or F (as MATLAB, Fortran and Julia do)",
        text);
}

/* ---- the command line ---------------------------------------------------------------------------------------- */

static bool is_plain(const char *argument) {
    for (const char *at = argument; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-_=+.,:/@%^", *at)) return false;
    return *argument != '\0';
}

char *tsr_command_line(int argc, char **argv) {
    size_t chars = 1;
    for (int i = 0; i < argc; i++) chars += 4 * strlen(argv[i]) + 3; /* every character quoted at worst */
    char *line = malloc(chars), *to = line;
    if (!line) return NULL;
    for (int i = 0; i < argc; i++) {
        bool plain = i == 0 || is_plain(argv[i]); /* argv[0] is "tessera NAME" */
        if (i > 0) *to++ = ' ';
        if (!plain) *to++ = '\'';
        for (const char *at = argv[i]; *at; at++) {
            if (!plain && *at == '\'') to = stpcpy(to, "'\\''");
            else *to++ = *at;
        }
        if (!plain) *to++ = '\'';
    }
    *to = '\0';
    return line;
}
