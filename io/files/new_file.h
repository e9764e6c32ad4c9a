/* Files that are made. In a folder where others may write, a link, a pipe or another's file may stand under any name
 * that can be foreseen: names are drawn, and nothing that is there is ever opened. Local. */
#ifndef TSR_IO_FILES_NEW_FILE_H
#define TSR_IO_FILES_NEW_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define TSR_RANDOM_CHARS 9
/* Eight letters that nobody can foresee, and no digits. */
void tsr_random_letters(char letters[TSR_RANDOM_CHARS]);
/* A descriptor to write and read a file that this call makes, or -1 and errno: EEXIST where anything has the name. */
int tsr_new_file(const char *name, mode_t mode);
/* The name of a file that is made beside `file`: BEFORE, the file's own name, ENDING. A long name is cut, and a number
 * that follows from all of it put behind, so that an ending of up to 110 bytes fits. False where the path is too
 * long. */
bool tsr_name_beside(const char *file, const char *before, const char *ending, char *name, size_t chars);

/* The absolute name of the file that a link leads to. Each link on the way is looked at once, so that it is the one
 * that was judged. 0 or an errno: EPERM for a link that somebody else put into a folder where everybody may write (the
 * system does not let such a link be opened), ENOENT where nothing is at the end, ELOOP for a circle. */
int tsr_link_follow(const char *name, char real[PATH_MAX]);

#endif
