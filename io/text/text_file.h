/* A text file that is there whole or not at all: written under a temporary name beside its own that nobody can foresee,
 * brought to stable storage, renamed. A pipe, a terminal or an open descriptor (/dev/fd/N, /dev/stdout, /dev/stderr),
 * which have nothing to rename, are written as they stand. The reader of a pipe that has a name is waited for for 10 s:
 * until it opens the pipe, and whenever it does not read. */
#ifndef TSR_IO_TEXT_TEXT_FILE_H
#define TSR_IO_TEXT_TEXT_FILE_H

#include <stdio.h>

#include "kernels/base/base.h"

#define TSR_TEMPORARY_CHARS 1280

typedef struct {
    FILE *to;         /* write here */
    const char *what; /* "log", "trace": how messages call it; not owned */
    const char *file; /* not owned */
    char temporary[TSR_TEMPORARY_CHARS];
    bool special; /* a pipe, a terminal, a device */
} tsr_text_file;

/* Local, once for the name that an option gave. Where it is "-": makes what is printed go to standard error from
 * now on, and *file the name that leads to standard output. A link becomes the name of the file that it leads to, and
 * is an error where it is another's in a folder of everybody's. Both are static text; NULL and other names stay as they
 * are. */
tsr_status tsr_text_file_resolve(const char **file);

/* The same for a link alone, "-" being no name: what it leads to goes to `target`, of PATH_MAX characters, and *file
 * there. */
tsr_status tsr_text_file_follow(const char **file, char *target);

/* Whether the name leads to standard output as it was when the program began. */
bool tsr_text_file_is_output(const char *file);
/* Whether it is written as it stands, and has nothing to rename. */
bool tsr_text_file_is_special(const char *file);
/* Whether two names lead to one thing that is there, by whatever links. */
bool tsr_same_place(const char *a, const char *b);
/* Whether two names lead to one file, there or still to come: by links, or by another way to its folder. What can be
 * written twice, a pipe or a terminal, is no such file. */
bool tsr_same_file(const char *a, const char *b);
/* Whether a regular file is there that holds anything, and whether it begins with the text. */
bool tsr_text_file_holds(const char *file);
bool tsr_text_file_begins(const char *file, const char *text);
/* Whether the file could be written now: asked before a long run. Leaves nothing behind. */
tsr_status tsr_text_file_check(const char *what, const char *file);
/* Draws a name to write it under first, FILE.tessera-HOST-PID-LETTERS.tmp. False where it is too long. */
bool tsr_text_file_temporary(const char *file, char temporary[TSR_TEMPORARY_CHARS]);
/* `what` and `file` must live until it is closed. "/dev/fd/N" (/dev/stdout: 1, /dev/stderr: 2) is what descriptor N
 * leads to, also where that is a file, which then is not begun anew. What is replaced keeps its permissions
 * (attributes.h). */
tsr_status tsr_text_file_open(const char *what, const char *file, tsr_text_file *opened);
/* Closes it in any case. With error 0 and a stream without failures the file gets its name; else nothing is left and
 * what was there stays. `error`: errno of a write that failed before, 0 when none did. TSR_ERR_SPACE, TSR_ERR_IO. */
tsr_status tsr_text_file_close(tsr_text_file *file, int error);

#endif
