/* A replaced output keeps its owner, permissions, access list and extended attributes, and says what it could not. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "tests/io/files/spec_of.h"
#include "tests/io/output/unfinished.h"

#define LIST "system.posix_acl_access"
#define FOLDER_LIST "system.posix_acl_default"

/* ---- instead of the C library's -------------------------------------------------------------- */

static const char *refused_attribute; /* names that begin so cannot be set */
static bool refused_owner, refused_group, refused_listing;

int fsetxattr(int fd, const char *name, const void *value, size_t bytes, int flags) {
    if (refused_attribute && strncmp(name, refused_attribute, strlen(refused_attribute)) == 0) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_fsetxattr, fd, name, value, bytes, flags);
}

ssize_t listxattr(const char *file, char *names, size_t chars) {
    if (refused_listing) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_listxattr, file, names, chars);
}

int fchown(int fd, uid_t user, gid_t group) {
    if ((user != (uid_t)-1 && refused_owner) || (group != (gid_t)-1 && refused_group)) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_fchown, fd, user, group);
}

/* ---- */

static tsr_warnings warnings;

/* A whole run. What it warns of stands in `warnings`, what nobody may do with the target nobody may do before. */
static void replace(const char *file) {
    const tsr_output_spec spec = spec_of(file);
    tsr_output output;
    struct stat before, made;
    const bool there = stat(in_scratch(file), &before) == 0;
    memset(&warnings, 0, sizeof warnings);
    warnings.to = fopen("/dev/null", "w");
    CHECK(warnings.to != NULL, "/dev/null");
    CHECK_OK(tsr_output_create(&spec, &output));
    CHECK(stat(output.desc.name.file, &made) == 0, "stat");
    CHECK(!there || (made.st_mode & ~before.st_mode & 0777) == 0, "mode %o", made.st_mode);
    tsr_output_warn(&output, &warnings);
    CHECK_OK(tsr_output_publish(&output, NULL, "test"));
    fclose(warnings.to);
}

static void expect_mode(const char *file, mode_t mode) {
    struct stat st;
    CHECK(stat(in_scratch(file), &st) == 0 && (st.st_mode & 07777) == mode, "mode %o", st.st_mode & 07777);
}

static void expect_warning(const char *text) {
    CHECK(*text ? strstr(warnings.text, text) != NULL : !*warnings.text, "it warned '%s'", warnings.text);
}

static bool holds(const char *file, const char *name, const void *value, size_t bytes) {
    char found[256];
    return getxattr(in_scratch(file), name, found, sizeof found) == (ssize_t)bytes && memcmp(found, value, bytes) == 0;
}

static void test_attributes(void) {
    char large[200], name[40];
    memset(large, 'x', sizeof large);
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "user.note.%d", i);
        CHECK(setxattr(in_scratch("c.h5"), name, large, (size_t)i * 50, 0) == 0, "setxattr");
    }
    replace("c.h5");
    expect_warning("");
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "user.note.%d", i);
        CHECK(holds("c.h5", name, large, (size_t)i * 50), "'%s' is lost", name);
    }
    refused_attribute = "user.note.3";
    replace("c.h5");
    refused_attribute = NULL;
    expect_warning("is lost: user.note.3");
    CHECK(!strchr(warnings.text, '\n') && !holds("c.h5", "user.note.3", large, 150) &&
              holds("c.h5", "user.note.4", large, 200),
          "%s", warnings.text);
    refused_listing = true;
    replace("c.h5");
    refused_listing = false;
    expect_warning("is lost: its extended attributes");
}

typedef struct {
    uint16_t tag, permissions;
    uint32_t id;
} list_entry;

/* As the kernel takes it: user::rw-, user:12345:rw-, group::---, mask::rw-, other::--- */
static const struct {
    uint32_t version;
    list_entry entries[5];
} list = {2, {{1, 6, ~0u}, {2, 6, 12345}, {4, 0, ~0u}, {0x10, 6, ~0u}, {0x20, 0, ~0u}}};

static void test_access_list(void) {
    replace("l.h5");
    if (setxattr(in_scratch("l.h5"), LIST, &list, sizeof list, 0) != 0) return; /* none here */
    expect_mode("l.h5", 0660);
    replace("l.h5");
    expect_warning("");
    expect_mode("l.h5", 0660);
    CHECK(holds("l.h5", LIST, &list, sizeof list), "the access list is lost");
    refused_attribute = LIST;
    replace("l.h5");
    refused_attribute = NULL;
    expect_warning("is lost: its access list");
    expect_mode("l.h5", 0600); /* what its mode said was the list's, not the group's */
    CHECK(getxattr(in_scratch("l.h5"), LIST, NULL, 0) < 0, "an access list came from nowhere");

    CHECK(mkdir(in_scratch("folder"), 0700) == 0, "mkdir");
    replace("folder/c.h5"); /* before the folder gives lists to what is made in it */
    CHECK(setxattr(in_scratch("folder"), FOLDER_LIST, &list, sizeof list, 0) == 0, "setxattr");
    CHECK(chmod(in_scratch("folder/c.h5"), 0640) == 0, "chmod");
    replace("folder/c.h5");
    expect_warning("");
    expect_mode("folder/c.h5", 0640);
    CHECK(getxattr(in_scratch("folder/c.h5"), LIST, NULL, 0) < 0, "it got the list of its folder");
}

static void test_owner(void) {
    struct stat st;
    replace("o.h5");
    if (chown(in_scratch("o.h5"), 12345, 23456) != 0) return; /* not root */
    CHECK(chmod(in_scratch("o.h5"), 02674) == 0, "chmod");
    replace("o.h5");
    expect_warning("");
    expect_mode("o.h5", 02674);
    CHECK(stat(in_scratch("o.h5"), &st) == 0 && st.st_uid == 12345 && st.st_gid == 23456, "owner %d", (int)st.st_uid);
    refused_owner = true;
    replace("o.h5");
    refused_owner = false;
    expect_warning("is lost: its owner");
    expect_mode("o.h5", 0674);
    CHECK(stat(in_scratch("o.h5"), &st) == 0 && st.st_uid == 0 && st.st_gid == 23456, "group %d", (int)st.st_gid);
    refused_group = true;
    replace("o.h5");
    refused_group = false;
    expect_warning("is lost: its group");
    expect_mode("o.h5", 0644); /* another group, which may do what all may */
}

static void test_names(void) {
    struct stat one, other;
    replace("n.h5");
    CHECK(link(in_scratch("n.h5"), in_scratch("m.h5")) == 0 && link(in_scratch("n.h5"), in_scratch("k.h5")) == 0,
          "link");
    replace("n.h5");
    expect_warning("n.h5' is one of 3 names of a file");
    CHECK(stat(in_scratch("n.h5"), &one) == 0 && stat(in_scratch("m.h5"), &other) == 0, "stat");
    CHECK(one.st_nlink == 1 && other.st_nlink == 2 && one.st_ino != other.st_ino, "the other names were replaced");
    replace("n.h5");
    expect_warning("");
    replace("new.h5");
    expect_warning("");
}

int main(void) {
    scratch_make();
    umask(022);
    replace("c.h5");
    const bool has_attributes = setxattr(in_scratch("c.h5"), "user.here", "x", 1, 0) == 0;
    if (has_attributes) test_attributes();
    test_access_list();
    test_owner();
    test_names();
    scratch_remove();
    if (has_attributes) return 0;
    fprintf(stderr, "skipped: no extended attributes in the file system of '%s'\n", scratch);
    return 77;
}
