/* Attributes of a file that is replaced (attributes.h). */
#include "io/files/attributes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "io/text/text.h"

#define ACCESS_LIST "system.posix_acl_access"

static void note(char *lost, const char *what) {
    if (lost) tsr_text_append(lost, TSR_LOST_CHARS, "%s%s", *lost ? ", " : "", what);
}

/* Sums over the content that it had are wrong for what it gets. */
static bool is_about_content(const char *name) {
    return strcmp(name, "security.ima") == 0 || strcmp(name, "security.evm") == 0;
}

/* Others are the system's own affair, and it may refuse them. */
static bool is_users(const char *name) { return strncmp(name, "user.", 5) == 0 || strncmp(name, "system.", 7) == 0; }

/* One attribute; true also where it is gone by now. */
static bool copy_one(const char *from, int to, const char *name) {
    ssize_t bytes = getxattr(from, name, NULL, 0);
    char *value = bytes >= 0 ? malloc((size_t)bytes + 1) : NULL;
    if (!value) return bytes < 0 && errno == ENODATA;
    bytes = getxattr(from, name, value, (size_t)bytes);
    const bool copied = bytes >= 0 && fsetxattr(to, name, value, (size_t)bytes, 0) == 0;
    free(value);
    return copied;
}

/* The names, each with a zero behind it, malloc'ed, NULL where there are none; false where they cannot be had. */
static bool names_of(const char *from, char **names, ssize_t *chars) {
    *names = NULL;
    *chars = listxattr(from, NULL, 0);
    if (*chars == 0 || (*chars < 0 && errno == ENOTSUP)) {
        *chars = 0;
        return true;
    }
    if (*chars > 0) *names = malloc((size_t)*chars);
    if (*names) *chars = listxattr(from, *names, (size_t)*chars);
    return *names && *chars >= 0;
}

/* Returns whether the access list is as it was: there, or not, where the folder would have given one. */
static bool copy_all(const char *from, int to, char *lost) {
    ssize_t chars;
    char *names;
    bool has_list = false;
    bool list_kept = true;
    bool kept = names_of(from, &names, &chars);
    if (!kept) note(lost, "its extended attributes");
    for (const char *name = names; kept && name < names + chars; name += strlen(name) + 1) {
        const bool list = strcmp(name, ACCESS_LIST) == 0;
        has_list |= list;
        if (is_about_content(name) || copy_one(from, to, name)) continue;
        if (is_users(name)) note(lost, list ? "its access list" : name);
        list_kept &= !list;
    }
    free(names);
    if (kept && !has_list) (void)fremovexattr(to, ACCESS_LIST);
    return kept && list_kept;
}

/* Permissions come last: an access list shows in them. Those of the group mean another group, or stood for the access
 * list, where these are lost: then the group may do what all may. */
void tsr_attributes_keep(const char *from, int to, char lost[TSR_LOST_CHARS]) {
    struct stat had, has;
    if (lost) *lost = '\0';
    if (stat(from, &had) != 0 || fstat(to, &has) != 0) return;
    const bool group = had.st_gid == has.st_gid || fchown(to, (uid_t)-1, had.st_gid) == 0;
    const bool owner = had.st_uid == has.st_uid || fchown(to, had.st_uid, (gid_t)-1) == 0;
    if (!owner) note(lost, "its owner");
    if (!group) note(lost, "its group");
    mode_t mode = had.st_mode & (owner && group ? 07777 : 0777);
    if (!copy_all(from, to, lost) || !group) mode &= ~(mode_t)070 | (mode & 07) << 3;
    if (fchmod(to, mode) != 0 && (had.st_mode ^ has.st_mode) & 07777) note(lost, "its permissions");
}
