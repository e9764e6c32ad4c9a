/* Arguments from the command line, from files and from the environment (arguments.h). */
#include "app/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES_MOST (1 << 20) /* of a file of options, and of all words */
#define DEEPEST 8

/* ---- words ----------------------------------------------------------------------------------- */

static tsr_status add_chars(tsr_arguments *a, const char *from, size_t chars) {
    if (a->length + chars > BYTES_MOST)
        return tsr_fail(TSR_ERR_USAGE, "arguments of more than %d bytes: name fewer in @FILE", BYTES_MOST);
    if (a->length + chars >= a->room) {
        const size_t room = 2 * (a->length + chars) + 256;
        char *bytes = realloc(a->bytes, room);
        if (!bytes) return tsr_fail(TSR_ERR_MEMORY, "no memory for %zu bytes of arguments: pass fewer", room);
        a->bytes = bytes;
        a->room = room;
    }
    memcpy(a->bytes + a->length, from, chars);
    a->length += chars;
    return TSR_OK;
}

static tsr_status end_word(tsr_arguments *a) {
    a->argc++;
    return add_chars(a, "", 1);
}

static tsr_status add_word(void *context, const char *word) {
    TSR_TRY(add_chars(context, word, strlen(word)));
    return end_word(context);
}

/* argv, when all words are there. */
static tsr_status point(tsr_arguments *a) {
    char **argv = realloc(a->argv, ((size_t)a->argc + 1) * sizeof *argv);
    if (!argv) return tsr_fail(TSR_ERR_MEMORY, "no memory for %d arguments: pass fewer", a->argc);
    a->argv = argv;
    char *word = a->bytes;
    for (int i = 0; i < a->argc; i++) {
        a->argv[i] = word;
        word += strlen(word) + 1;
    }
    a->argv[a->argc] = NULL;
    return TSR_OK;
}

void tsr_arguments_free(tsr_arguments *arguments) {
    free(arguments->bytes);
    free(arguments->argv);
    *arguments = (tsr_arguments){0};
}

/* ---- files of options ------------------------------------------------------------------------ */

/* The whole file; owned by the caller. */
static tsr_status load(const char *file, char **text) {
    struct stat state;
    tsr_status status = TSR_OK;
    size_t chars = 0;
    const int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return tsr_fail(TSR_ERR_USAGE, "@%s: the file of options cannot be read: %s (write ./@%s for a matrix)", file,
                        strerror(errno), file);
    if (fstat(fd, &state) != 0 || !S_ISREG(state.st_mode))
        TSR_TRY_DONE(tsr_fail(TSR_ERR_USAGE, "@%s: a file of options is a regular file", file));
    if (state.st_size > BYTES_MOST)
        TSR_TRY_DONE(tsr_fail(TSR_ERR_USAGE, "@%s: a file of options has at most %d bytes, not %lld", file, BYTES_MOST,
                              (long long)state.st_size));
    chars = (size_t)state.st_size;
    *text = malloc(chars + 1);
    if (!*text) TSR_TRY_DONE(tsr_fail(TSR_ERR_MEMORY, "no memory to read @%s: free some", file));
    const ssize_t got = read(fd, *text, chars);
    if (got < 0) status = tsr_fail(TSR_ERR_USAGE, "@%s: cannot be read: %s", file, strerror(errno));
    else if (memchr(*text, '\0', (size_t)got)) status = tsr_fail(TSR_ERR_USAGE, "@%s is no text", file);
    else (*text)[got] = '\0';
    if (status != TSR_OK) free(*text);
done:
    close(fd);
    return status;
}

typedef struct {
    tsr_arguments *to;
    bool literal; /* a "--" came */
    int depth;
    char *places; /* see tsr_arguments_expand */
    size_t chars; /* of these */
} expansion;

static tsr_status expand_file(expansion *e, const char *file);

/* `plain`: nothing of it was quoted, so that a leading @ means a file. */
static tsr_status take_word(expansion *e, const char *word, bool plain) {
    if (plain && !e->literal && word[0] == '@' && word[1]) return expand_file(e, word + 1);
    if (strcmp(word, "--") == 0) e->literal = true;
    else if (e->depth > 0 && !e->literal && (strcmp(word, "--help") == 0 || strcmp(word, "--version") == 0))
        return tsr_fail(TSR_ERR_USAGE, "%s belongs on the command line, not into a file of options", word);
    return add_word(e->to, word);
}

/* Notes an option of a file. A number below 0 is none. */
static void note_place(expansion *e, const char *word, const char *file, int line) {
    const size_t used = strlen(e->places);
    if (e->literal || word[0] != '-' || !(word[1] == '-' ? word[2] : isalpha((unsigned char)word[1]))) return;
    const int length =
        snprintf(e->places + used, e->chars - used, "%.*s @%s:%d\n", (int)strcspn(word, "= \t\r\n"), word, file, line);
    if (length < 0 || (size_t)length >= e->chars - used) e->places[used] = '\0'; /* none that is cut */
}

/* One word from *at, which goes behind it. */
static tsr_status read_word(const char *file, int line, const char **at, tsr_arguments *word, bool *plain) {
    char quote = '\0'; /* the one that is open */
    *plain = true;
    for (const char *c = *at;; c++) {
        if (*c == '\0' && quote)
            return tsr_fail(TSR_ERR_USAGE, "@%s:%d: the quote %c is never closed: close it, or write \\%c", file, line,
                            quote, quote);
        if (*c == '\0' || (!quote && strchr(" \t\r\n", *c))) {
            *at = c;
            return add_chars(word, "", 1);
        }
        const bool opens = !quote && (*c == '\'' || *c == '"');
        const bool escaped = *c == '\\' && c[1] != '\0' && (!quote || (quote == '"' && strchr("\"\\$`\n", c[1])));
        if (opens || escaped) *plain = false;
        if (escaped && c[1] == '\n') c++; /* the line goes on */
        else if (opens) quote = *c;
        else if (*c == quote) quote = '\0';
        else TSR_TRY(add_chars(word, escaped ? ++c : c, 1));
    }
}

static tsr_status expand_words(expansion *e, const char *file, const char *text) {
    int line = 1;
    for (const char *at = text; *at;) {
        if (*at == '#') at += strcspn(at, "\n");
        else if (strchr(" \t\r\n", *at)) line += *at++ == '\n';
        else if (strncmp(at, "\\\n", 2) == 0) {
            line++;
            at += 2; /* the line goes on */
        } else {
            tsr_arguments word = {0};
            bool plain;
            const char *begin = at;
            tsr_status status = read_word(file, line, &at, &word, &plain);
            if (status == TSR_OK) note_place(e, word.bytes, file, line);
            if (status == TSR_OK) status = take_word(e, word.bytes, plain);
            tsr_arguments_free(&word);
            TSR_TRY(status);
            for (; begin < at; begin++) line += *begin == '\n';
        }
    }
    return TSR_OK;
}

static tsr_status expand_file(expansion *e, const char *file) {
    char *text = NULL;
    if (e->depth == DEEPEST)
        return tsr_fail(TSR_ERR_USAGE, "@%s: files of options name each other more than %d deep: does one name itself?",
                        file, DEEPEST);
    TSR_TRY(load(file, &text));
    e->depth++;
    const tsr_status status = expand_words(e, file, text);
    e->depth--;
    free(text);
    return status;
}

tsr_status tsr_arguments_expand(int argc, char **argv, tsr_arguments *to, char *places, size_t chars) {
    expansion e = {.to = to, .places = places, .chars = chars};
    *to = (tsr_arguments){0};
    places[0] = '\0';
    for (int i = 0; i < argc; i++) TSR_TRY(take_word(&e, argv[i], i > 1));
    return point(to);
}

/* ---- the environment, and the other ranks ---------------------------------------------------- */

tsr_status tsr_arguments_add_environment(const tsr_options *options, int words, tsr_arguments *arguments, char *added,
                                         size_t chars) {
    tsr_arguments more = {0}, all = {0};
    tsr_status status = tsr_options_from_environment(options, arguments->argc - words + 1, arguments->argv + words - 1,
                                                     add_word, &more);
    added[0] = '\0';
    if (status != TSR_OK || more.argc == 0) goto done;
    TSR_TRY_DONE(point(&more));
    for (int i = 0; i < words; i++) TSR_TRY_DONE(add_word(&all, arguments->argv[i]));
    for (int i = 0; i < more.argc; i++) {
        const size_t used = strlen(added);
        snprintf(added + used, chars - used, " %s", more.argv[i]);
        TSR_TRY_DONE(add_word(&all, more.argv[i]));
    }
    for (int i = words; i < arguments->argc; i++) TSR_TRY_DONE(add_word(&all, arguments->argv[i]));
    TSR_TRY_DONE(point(&all));
    tsr_arguments_free(arguments);
    *arguments = all;
    all = (tsr_arguments){0};
done:
    tsr_arguments_free(&more);
    tsr_arguments_free(&all);
    return status;
}

tsr_status tsr_arguments_share(const tsr_world *world, tsr_status status, tsr_arguments *arguments) {
    struct {
        size_t length;
        int argc;
    } size = {arguments->length, arguments->argc};
    TSR_TRY(tsr_share(world->comm, world->rank == 0 ? status : TSR_OK, &size, sizeof size));
    if (world->rank == 0) {
        TSR_TRY(tsr_agree(world->comm, TSR_OK));
        return tsr_broadcast(world->comm, arguments->bytes, size.length);
    }
    tsr_arguments theirs = {.length = size.length, .argc = size.argc, .bytes = malloc(size.length)};
    status = theirs.bytes ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for %zu bytes of arguments", size.length);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(tsr_broadcast(world->comm, theirs.bytes, size.length));
    TSR_TRY_DONE(point(&theirs)); /* the caller agrees */
    tsr_arguments_free(arguments);
    *arguments = theirs;
    return TSR_OK;
done:
    tsr_arguments_free(&theirs);
    return status;
}
