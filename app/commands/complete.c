/* Completion (complete.h). */
#include "app/commands/complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/describe/describe.h"
#include "io/text/text.h"

#define SECONDS 3 /* whatever the file system does */

/* A line for the word, if it begins as what is being written. */
static void offer(const char *begin, const char *before, const char *word, const char *what) {
    char name[160];
    snprintf(name, sizeof name, "%s%s", before, word);
    if (strncmp(name, begin, strlen(begin)) == 0) printf("%s\t%.*s\n", name, (int)strcspn(what, ";:.\n"), what);
}

static void offer_option(void *context, const tsr_option *option) { offer(context, "--", option->name, option->help); }

typedef struct {
    const char *name;
    size_t chars;
    tsr_option found;
} search;

static void compare_name(void *context, const tsr_option *option) {
    search *s = context;
    if (strlen(option->name) == s->chars && strncmp(option->name, s->name, s->chars) == 0) s->found = *option;
}

/* The option "--name" or "--name=..."; its name is NULL where there is none. */
static tsr_option find_option(const tsr_options *options, const char *word) {
    search s = {.name = word + 2};
    if (!options || strncmp(word, "--", 2) != 0) return s.found;
    s.chars = strcspn(s.name, "=");
    tsr_options_list(options, compare_name, &s);
    return s.found;
}

static void offer_choices(const tsr_option *option, const char *begin, const char *before) {
    char word[80];
    for (const char *at = option->choices; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
        offer(begin, before, word, option->name);
    }
}

/* ---- datasets -------------------------------------------------------------------------------- */

typedef struct {
    const char *before, *file, *path; /* what stands before the file's name, as it was written; how the path begins */
} dataset_search;

static void offer_dataset(void *context, const tsr_store_desc *desc, const char *path, const char *refused) {
    const dataset_search *s = context;
    char shape[TSR_SHAPE_CHARS];
    if (refused || strchr(path, '\n') || strchr(path, '\t') || strncmp(path, s->path, strlen(s->path)) != 0) return;
    const tsr_shape sizes = tsr_store_shape(desc);
    printf("%s%s:%s\t%s %s\n", s->before, s->file, path, tsr_shape_text(&sizes, " x ", shape, sizeof shape),
           desc->type_name);
}

/* FILE:/beginning of a path. */
static void offer_datasets(const char *before, const char *word) {
    char file[TSR_FILE_CHARS], opened[2 * TSR_FILE_CHARS];
    const char *colon = strrchr(word, ':'), *home = getenv("HOME");
    struct stat state;
    tsr_describer describer = {.most_seconds = SECONDS};
    if (!colon || (size_t)(colon - word) >= sizeof file) return;
    snprintf(file, sizeof file, "%.*s", (int)(colon - word), word);
    if (strncmp(file, "~/", 2) == 0 && home) snprintf(opened, sizeof opened, "%.*s%s", TSR_FILE_CHARS, home, file + 1);
    else snprintf(opened, sizeof opened, "%s", file);
    if (stat(opened, &state) != 0 || !S_ISREG(state.st_mode)) return; /* a pipe would be waited for */
    dataset_search s = {before, file, colon + 1};
    (void)tsr_describe_list(&describer, opened, offer_dataset, &s);
    tsr_describer_close(&describer);
}

/* ---- words ----------------------------------------------------------------------------------- */

static void offer_parts(const tsr_command *command, const char *begin) {
    const char *name;
    for (size_t i = 0; command->part(i, &name); i++) offer(begin, "", name, command->name);
}

static const tsr_options *find_part(const tsr_command *command, const char *word) {
    const char *name;
    const tsr_options *options;
    for (size_t i = 0; (options = command->part(i, &name)) != NULL; i++)
        if (strcmp(name, word) == 0) return options;
    return NULL;
}

void tsr_complete(const tsr_command *const *commands, int argc, char **argv) {
    const char *begin = argc > 0 ? argv[argc - 1] : "", *before = argc > 1 ? argv[argc - 2] : "";
    const tsr_command *command = NULL;
    alarm(SECONDS);
    for (size_t i = 0; argc > 2 && commands[i]; i++)
        if (strcmp(commands[i]->name, argv[1]) == 0) command = commands[i];
    if (argc == 2 || (argc == 3 && strcmp(argv[1], "help") == 0)) {
        for (size_t i = 0; commands[i]; i++) offer(begin, "", commands[i]->name, commands[i]->what);
        if (argc == 2) offer(begin, "", "help", "what a command takes");
    }
    const bool is_part = command && command->part && argc == 3; /* what is being written */
    const tsr_options *options = !command                    ? NULL
                                 : command->part && argc > 3 ? find_part(command, argv[2])
                                                             : command->options;
    if (is_part) offer_parts(command, begin);
    if (argc < 2 || (argc > 2 && !options && !is_part)) return;
    const tsr_option its_own = find_option(options, begin), last = find_option(options, before);
    const char *value = strchr(begin, '=');
    if (its_own.name && its_own.value && value) {
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)(value + 1 - begin), begin);
        offer_choices(&its_own, begin, name);
        offer_datasets(name, value + 1);
    } else if (begin[0] == '-') {
        if (options) tsr_options_list(options, offer_option, (void *)begin);
        offer(begin, "--", "help", "what it takes");
        offer(begin, "--", "version", "versions of the program and its libraries");
    } else if (last.name && last.value && !last.optional && !strchr(before, '=') && last.choices) {
        offer_choices(&last, begin, "");
    } else if (options) {
        offer_datasets("", begin);
    }
}
