/* Tables of options (options.h) over argp: the arguments are checked against the table first, so that an error can name
 * the option and those that are meant. Then argp reads them and finds their rows. */
#include "app/options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/nearest.h"
#include "io/text/text.h"

#define LIST_CHARS 1200

/* ---- from a table to argp -------------------------------------------------------------------- */

#define ROWS_MOST 63
#define FIRST_KEY 256 /* of options without a letter; the row's place is added */

/* A command's table as argp wants it. options[i] is rows[i]. */
typedef struct {
    tsr_option rows[ROWS_MOST];
    bool given[ROWS_MOST]; /* the arguments that were checked have it */
    struct argp_option options[ROWS_MOST + 1];
    int count;
} plain_table;

static tsr_option resolve(const tsr_option *row) {
    if (!row->shared) return *row;
    tsr_option o = *row->shared;
    o.field = row->field;
    o.given = row->given;
    if (row->letter) o.letter = row->letter;
    if (row->value) o.value = row->value;
    if (row->help) o.help = row->help;
    if (row->initial) o.initial = row->initial;
    if (row->read) o.read = row->read;
    return o;
}

static tsr_status make_plain(const tsr_option *rows, plain_table *t) {
    memset(t, 0, sizeof *t);
    for (const tsr_option *row = rows; row->name || row->help || row->shared; row++) {
        if (t->count == ROWS_MOST) return tsr_fail(TSR_ERR_MEMORY, "more than %d options", ROWS_MOST);
        const tsr_option o = resolve(row);
        t->rows[t->count] = o;
        t->options[t->count] =
            (struct argp_option){.name = o.name,
                                 .key = !o.name    ? 0
                                        : o.letter ? o.letter
                                                   : FIRST_KEY + t->count,
                                 .arg = o.value,
                                 .flags = (o.hidden ? OPTION_HIDDEN : 0) | (o.optional ? OPTION_ARG_OPTIONAL : 0),
                                 .doc = o.help,
                                 .group = o.group};
        t->count++;
    }
    return TSR_OK;
}

/* ---- options there are ----------------------------------------------------------------------- */

/* Those that begin with the first `length` letters of `name`. */
static void list_options(const plain_table *t, const char *name, size_t length, char *text, size_t chars) {
    for (const tsr_option *o = t->rows; o < t->rows + t->count; o++)
        if (o->name && !o->hidden && strncmp(o->name, name, length) == 0)
            tsr_text_append(text, chars, " --%s", o->name);
}

static tsr_status unknown_option(const plain_table *t, const char *program, int length, const char *option) {
    char wanted[TSR_NEAREST_CHARS] = "", meant[160];
    tsr_nearest nearest = {.wanted = wanted};
    if (length > 2) snprintf(wanted, sizeof wanted, "%.*s", length - 2, option + 2);
    for (const tsr_option *o = t->rows; o < t->rows + t->count; o++)
        if (o->name && !o->hidden) tsr_nearest_offer(&nearest, o->name);
    tsr_nearest_offer(&nearest, "help");
    tsr_nearest_offer(&nearest, "version");
    return tsr_fail(TSR_ERR_USAGE, "unknown option '%.*s'%s (%s --help lists the options)", length, option,
                    tsr_did_you_mean(&nearest, "--", meant, sizeof meant), program);
}

/* length: of the option at the beginning of `option`, dashes included. */
static tsr_status ambiguous_option(const plain_table *t, const char *program, int length, const char *option) {
    char list[LIST_CHARS] = "";
    list_options(t, option + 2, (size_t)length - 2, list, sizeof list);
    return tsr_fail(TSR_ERR_USAGE, "ambiguous option '%.*s': write one of%s (%s --help explains them)", length, option,
                    list, program);
}

/* The option of that name, or the last of `*matches` whose names begin so. */
static const tsr_option *match_long(const plain_table *t, const char *name, size_t length, int *matches) {
    const tsr_option *found = NULL;
    *matches = 0;
    for (const tsr_option *o = t->rows; o < t->rows + t->count; o++) {
        if (!o->name || strncmp(o->name, name, length) != 0) continue;
        found = o;
        *matches += 1;
        if (strlen(o->name) != length) continue;
        *matches = 1;
        return o;
    }
    return found;
}

static const tsr_option *match_short(const plain_table *t, char letter) {
    for (const tsr_option *o = t->rows; o < t->rows + t->count; o++)
        if (o->name && o->letter == (unsigned char)letter) return o;
    return NULL;
}

/* ---- checking the arguments ------------------------------------------------------------------ */

/* One "--name" or "--name=value"; *skip is how many arguments after it are its value. */
static tsr_status check_long(plain_table *t, int left, char **argv, const char *program, int *skip) {
    const char *name = argv[0] + 2;
    const size_t length = strcspn(name, "=");
    int matches;
    const tsr_option *found = match_long(t, name, length, &matches);
    if (!found) return unknown_option(t, program, (int)length + 2, argv[0]);
    if (matches > 1) return ambiguous_option(t, program, (int)length + 2, argv[0]);
    if (!found->value && name[length])
        return tsr_fail(TSR_ERR_USAGE, "option '%.*s' takes no value, but '%s' was given: leave '%s' out",
                        (int)length + 2, argv[0], argv[0], name + length);
    const bool next = found->value && !found->optional && !name[length]; /* its value is the next argument */
    if (next && left < 2)
        return tsr_fail(TSR_ERR_USAGE, "option '%s' needs a value (%s): add it, see %s --help", argv[0], found->value,
                        program);
    t->given[found - t->rows] = true;
    *skip = next;
    return TSR_OK;
}

/* One "-abc" or "-ovalue". */
static tsr_status check_short(plain_table *t, int left, char **argv, const char *program, int *skip) {
    for (const char *letter = argv[0] + 1; *letter; letter++) {
        const tsr_option *found = match_short(t, *letter);
        const char option[3] = {'-', *letter, '\0'};
        if (!found) return unknown_option(t, program, (int)strlen(option), option);
        t->given[found - t->rows] = true;
        if (!found->value) continue;
        if (!letter[1] && left < 2)
            return tsr_fail(TSR_ERR_USAGE, "option '%s' needs a value (%s): add it, see %s --help", option,
                            found->value, program);
        *skip = !letter[1];
        return TSR_OK;
    }
    return TSR_OK;
}

static tsr_status check_arguments(plain_table *t, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        int skip = 0;
        if (strcmp(argv[i], "--") == 0) return TSR_OK;
        if (strncmp(argv[i], "--", 2) == 0) TSR_TRY(check_long(t, argc - i, argv + i, argv[0], &skip));
        else if (argv[i][0] == '-' && argv[i][1]) TSR_TRY(check_short(t, argc - i, argv + i, argv[0], &skip));
        i += skip;
    }
    return TSR_OK;
}

/* ---- reading them ---------------------------------------------------------------------------- */

typedef struct {
    const tsr_options *command;
    plain_table table;
    void *to;
    int arguments; /* so far */
} parsing;

static tsr_status read_option(const tsr_option *option, const char *text, void *to, bool given) {
    TSR_TRY(option->read(option, text, (char *)to + option->field));
    if (given && option->given) *(bool *)((char *)to + option->given) = true;
    return TSR_OK;
}

static tsr_status read_initials(const parsing *p) {
    for (int i = 0; i < p->table.count; i++) {
        const tsr_option *o = &p->table.rows[i];
        if (o->initial) TSR_TRY(read_option(o, o->initial, p->to, false));
    }
    return TSR_OK;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    parsing *p = state->input;
    const tsr_options *command = p->command;
    if (key == ARGP_KEY_ARG) {
        if (p->arguments == command->most_arguments) return ARGP_ERR_UNKNOWN;
        return command->argument(p->to, p->arguments++, text) == TSR_OK ? 0 : EINVAL;
    }
    if (key == ARGP_KEY_END) return !command->check || command->check(p->to) == TSR_OK ? 0 : EINVAL;
    for (int i = 0; i < p->table.count; i++)
        if (p->table.options[i].name && p->table.options[i].key == key)
            return read_option(&p->table.rows[i], text, p->to, true) == TSR_OK ? 0 : EINVAL;
    return ARGP_ERR_UNKNOWN;
}

static struct argp argp_of(const tsr_options *command, const plain_table *table) {
    return (struct argp){
        .options = table->options, .parser = parse, .args_doc = command->arguments, .doc = command->what};
}

/* ---- reading and explaining ------------------------------------------------------------------ */

tsr_status tsr_options_parse(const tsr_options *command, int argc, char **argv, void *to) {
    parsing p = {.command = command, .to = to};
    TSR_TRY(make_plain(command->options, &p.table));
    TSR_TRY(read_initials(&p));
    TSR_TRY(check_arguments(&p.table, argc, argv));
    const struct argp argp = argp_of(command, &p.table);
    char **copy = malloc(((size_t)argc + 1) * sizeof *copy); /* argp reorders what it is given */
    if (!copy) return tsr_fail(TSR_ERR_MEMORY, "no memory for %d arguments: pass fewer", argc);
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    copy[argc] = NULL;
    tsr_message_set("");
    int first = argc;
    error_t error = argp_parse(&argp, argc, copy, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, &first, &p);
    tsr_status status = TSR_OK;
    if (error != 0 && *tsr_message()) status = TSR_ERR_USAGE; /* the parser's own words */
    else if (error == ENOMEM) status = tsr_fail(TSR_ERR_MEMORY, "no memory to read the options: free some");
    else if (error != 0) status = tsr_fail(TSR_ERR_USAGE, "%s: wrong arguments: see %s --help", argv[0], argv[0]);
    else if (first < argc)
        status = tsr_fail(TSR_ERR_USAGE, "unexpected argument '%s': see %s --help for what %s takes", copy[first],
                          argv[0], argv[0]);
    free(copy);
    return status;
}

void tsr_options_help(const tsr_options *command, const char *name, const char *example) {
    plain_table table;
    char *program = strdup(name); /* argp_help wants it writable */
    const tsr_status made = make_plain(command->options, &table);
    const struct argp argp = argp_of(command, &table);
    if (program && made == TSR_OK)
        argp_help(&argp, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_PRE_DOC | ARGP_HELP_POST_DOC,
                  program);
    printf("\nExample:\n  %s\n", example);
    free(program);
}

void tsr_options_list(const tsr_options *command, void (*each)(void *context, const tsr_option *option),
                      void *context) {
    plain_table table;
    if (make_plain(command->options, &table) != TSR_OK) return;
    for (const tsr_option *o = table.rows; o < table.rows + table.count; o++)
        if (o->name && !o->hidden) each(context, o);
}

/* ---- the environment ------------------------------------------------------------------------- */

static bool is_one_of(const char *text, const char *const words[4]) {
    for (int i = 0; i < 4; i++)
        if (strcasecmp(text, words[i]) == 0) return true;
    return false;
}

/* "--name=value" for what the variable says; "" where it says no. Owned by the caller. */
static tsr_status option_of(const tsr_option *o, const char *variable, const char *text, char **option) {
    static const char *const yes[4] = {"1", "yes", "true", "on"}, *const no[4] = {"0", "no", "false", "off"};
    const bool plain = !o->value || o->optional;
    const size_t chars = strlen(o->name) + strlen(text) + 4;
    if (!o->value && !is_one_of(text, yes) && !is_one_of(text, no))
        return tsr_fail(TSR_ERR_USAGE, "%s=%s: --%s takes no value: use 1 or 0", variable, text, o->name);
    *option = malloc(chars);
    if (!*option) return tsr_fail(TSR_ERR_MEMORY, "no memory for %s: shorten it", variable);
    if (plain && is_one_of(text, no)) **option = '\0';
    else if (plain && is_one_of(text, yes)) snprintf(*option, chars, "--%s", o->name);
    else snprintf(*option, chars, "--%s=%s", o->name, text);
    return TSR_OK;
}

void tsr_option_variable(const char *name, char variable[TSR_VARIABLE_CHARS]) {
    size_t used = (size_t)snprintf(variable, TSR_VARIABLE_CHARS, "%s", TSR_VARIABLES);
    for (; *name && used + 1 < TSR_VARIABLE_CHARS; name++)
        variable[used++] = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
    variable[used] = '\0';
}

tsr_status tsr_options_from_environment(const tsr_options *command, int argc, char **argv,
                                        tsr_status (*add)(void *context, const char *option), void *context) {
    plain_table table;
    TSR_TRY(make_plain(command->options, &table));
    if (check_arguments(&table, argc, argv) != TSR_OK) return TSR_OK; /* who parses them says why */
    for (int i = 0; i < table.count; i++) {
        const tsr_option *o = &table.rows[i];
        char variable[TSR_VARIABLE_CHARS], *option = NULL;
        if (!o->name || table.given[i]) continue;
        tsr_option_variable(o->name, variable);
        const char *text = getenv(variable);
        if (!text || !*text) continue;
        TSR_TRY(option_of(o, variable, text, &option));
        const tsr_status status = *option ? add(context, option) : TSR_OK;
        free(option);
        TSR_TRY(status);
    }
    return TSR_OK;
}

void tsr_options_offer(const tsr_options *command, tsr_nearest *nearest, bool *exact) {
    plain_table table;
    if (make_plain(command->options, &table) != TSR_OK) return;
    for (const tsr_option *o = table.rows; o < table.rows + table.count; o++) {
        char variable[TSR_VARIABLE_CHARS];
        if (!o->name) continue;
        tsr_option_variable(o->name, variable);
        const char *name = variable + strlen(TSR_VARIABLES);
        *exact = *exact || strcmp(name, nearest->wanted) == 0;
        if (!o->hidden) tsr_nearest_offer(nearest, name);
    }
}

/* ---- the command line ------------------------------------------------------------------------ */

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

const char *tsr_option_value(char **argv, int i, const char *option) {
    const size_t chars = strlen(option);
    if (strncmp(argv[i], option, chars) != 0) return NULL;
    if (argv[i][chars] == '=') return argv[i] + chars + 1;
    return argv[i][chars] == '\0' ? argv[i + 1] : NULL;
}
