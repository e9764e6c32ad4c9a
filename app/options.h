/* The options of a subcommand as a table: a row says how an option is written, what its help says, how its value is
 * read and where it goes. Rows that several commands have are in tessera_options.h. Nothing here exits, and only help
 * prints: errors become a tsr_status, so that one rank reports them. CONTRIBUTING.md says how to add an option. */
#ifndef TSR_APP_OPTIONS_H
#define TSR_APP_OPTIONS_H

#include <stddef.h>

#include "app/library/options/values.h"
#include "io/nearest.h"

typedef struct tsr_option tsr_option;

/* Reads the text of a value, NULL where the option takes none, into the field. */
typedef tsr_status (*tsr_option_reader)(const tsr_option *option, const char *text, void *field);

struct tsr_option {
    const char *name;    /* "alpha" is written --alpha; NULL: a heading, or a shared row */
    int letter;          /* 'o': -o, too; 0: none */
    const char *value;   /* what help calls the value, "X"; NULL: it takes none */
    bool optional;       /* the value may be left out (the reader gets NULL), and stands behind a '=' if it does not */
    const char *help;    /* one sentence, or the heading of what follows */
    int group;           /* of a heading: help shows groups by number, and inside a group by name */
    bool hidden;         /* not in the help */
    const char *choices; /* values there are, with blanks between them, for completion; NULL: anything */
    const char *initial; /* a value that is read first; NULL: the field stays as the caller set it */
    tsr_option_reader read;
    size_t field;             /* offset of what is read in the command's struct */
    size_t given;             /* offset of a bool there that is set when the option is given; 0: none */
    int64_t low, high;        /* of tsr_read_whole and tsr_read_count */
    const tsr_option *shared; /* this row is that one; what is set here, and `field`, count instead of its own */
};

/* What a command takes. */
typedef struct {
    const tsr_option *options; /* ends with an empty row */
    const char *arguments;     /* in the usage line: "A B -o C"; NULL: none */
    const char *what;          /* help before the options; after a \v what comes behind them */
    int most_arguments;
    /* The next argument that is no option, the first being number 0. NULL: there are none. */
    tsr_status (*argument)(void *to, int number, const char *text);
    tsr_status (*check)(void *to); /* after the last argument; NULL: nothing to check */
} tsr_options;

/* Calls `each` with every option that help shows. */
void tsr_options_list(const tsr_options *command, void (*each)(void *context, const tsr_option *option), void *context);
/* Reads argv into `to`, the command's struct. TSR_ERR_USAGE for unknown options, with the one that was meant, wrong
 * values and stray arguments. Texts in `to` are argv's. */
tsr_status tsr_options_parse(const tsr_options *command, int argc, char **argv, void *to);
/* --help text of one command to stdout, and a command line or two (lines after a newline begin with two blanks) as
 * an example. */
void tsr_options_help(const tsr_options *command, const char *name, const char *example);

/* ---- options in the environment -------------------------------------------------------------- */

#define TSR_VARIABLES "TESSERA_" /* TESSERA_HOST_MEMORY=4G is --host-memory=4G */
#define TSR_VARIABLE_CHARS 64

void tsr_option_variable(const char *name, char variable[TSR_VARIABLE_CHARS]);
/* Calls `add` with "--name=value" for each variable that is set and whose option argv does not give. Of options without
 * a value 1, yes, true and on give it, 0, no, false and off do not; so also where the value may be left out. An empty
 * variable counts as none. TSR_ERR_USAGE for another value. Adds nothing where argv is wrong itself. */
tsr_status tsr_options_from_environment(const tsr_options *command, int argc, char **argv,
                                        tsr_status (*add)(void *context, const char *option), void *context);
/* Offers the names of all variables, without TSR_VARIABLES; *exact becomes true where one is what is wanted. */
void tsr_options_offer(const tsr_options *command, tsr_nearest *nearest, bool *exact);

/* ---- readers, by the type of the field ------------------------------------------------------- */

tsr_status tsr_read_flag(const tsr_option *option, const char *text, void *field);   /* bool: true */
tsr_status tsr_read_text(const tsr_option *option, const char *text, void *field);   /* const char *, not owned */
tsr_status tsr_read_number(const tsr_option *option, const char *text, void *field); /* double */
/* tsr_complex: "1.5", "1+2j", "-2j" */
tsr_status tsr_read_complex(const tsr_option *option, const char *text, void *field);
tsr_status tsr_read_whole(const tsr_option *option, const char *text, void *field); /* int64_t from low to high */
tsr_status tsr_read_count(const tsr_option *option, const char *text, void *field); /* int from low to high */

/* ---- the command line ------------------------------------------------------------------------- */

/* The value that argv[i] gives `option`, as "--option=value" or "--option value"; NULL where it is another argument, or
 * the last. For what is wanted before options are read. argv ends with NULL. */
const char *tsr_option_value(char **argv, int i, const char *option);
/* The command line, one string (for the record and history attributes); owned by the caller: free it. */
char *tsr_command_line(int argc, char **argv);

#endif
