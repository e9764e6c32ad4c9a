/* What a file has beside its content, kept where another file takes its place: owner, group, permissions, access list
 * and extended attributes. Local. */
#ifndef TSR_IO_FILES_ATTRIBUTES_H
#define TSR_IO_FILES_ATTRIBUTES_H

#define TSR_LOST_CHARS 256

/* Gives the file open as `to` what the file `from` has, as far as the system allows; nothing where there is no
 * `from`.
 * `lost` (may be NULL): what a user would miss, "its owner, user.note", "" where that is nothing. Whoever could not
 * read or write `from` cannot do so after a loss either. */
void tsr_attributes_keep(const char *from, int to, char lost[TSR_LOST_CHARS]);

#endif
