/* The lock around HDF5, its error text, opening files and following paths (hdf5_util.h). */
#include "io/hdf5_util.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t started = PTHREAD_ONCE_INIT;

static void start(void) {
    H5dont_atexit(); /* the exit handler can crash a run that already failed to write */
    H5open();
    H5PLset_loading_state(0); /* an unknown filter in a file must not load code */
}

void tsr_h5_enter(void) {
    pthread_mutex_lock(&lock);
    pthread_once(&started, start);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* per thread in a thread-safe build */
    H5Eclear2(H5E_DEFAULT);
}

void tsr_h5_leave(void) { pthread_mutex_unlock(&lock); }

/* H5Ewalk2 callback, called from the innermost error outwards: keeps the first text that says something. */
static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *context) {
    char *text = context;
    (void)n;
    if (text[0] == '\0' && error->desc && error->desc[0]) snprintf(text, 400, "%s", error->desc);
    return 0;
}

/* HDF5's innermost error text, one line; "" when there is none. text: 400 characters. */
static void error_text(char *text) {
    text[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, text);
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\r') *c = ' ';
}

bool tsr_h5_error_says(const char *words) {
    char text[400];
    error_text(text);
    return strstr(text, words) != NULL;
}

tsr_status tsr_h5_fail(tsr_status status, const char *format, ...) {
    char hdf5[400], ours[1600];
    error_text(hdf5);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ours, sizeof ours, format, arguments);
    va_end(arguments);
    if (strstr(hdf5, "No space left") || strstr(hdf5, "File too large") || strstr(hdf5, "quota exceeded")) status = TSR_ERR_SPACE;
    if (hdf5[0] == '\0') return tsr_fail(status, "%s", ours);
    return tsr_fail(status, "%s (HDF5: %s)", ours, hdf5);
}

/* The signature stands at byte 0, 512, 1024, 2048, ... */
static bool find_signature(int fd, int64_t bytes, int64_t *at) {
    static const char signature[] = "\211HDF\r\n\032\n";
    for (int64_t offset = 0; offset + 8 <= bytes; offset = offset ? offset * 2 : 512) {
        char read[8];
        if (pread(fd, read, 8, offset) != 8) return false;
        if (memcmp(read, signature, 8) == 0) {
            *at = offset;
            return true;
        }
    }
    return false;
}

tsr_status tsr_h5_probe(const char *file, int64_t *bytes, int64_t *user_block) {
    struct stat st;
    if (stat(file, &st) != 0)
        return tsr_fail(errno == ENOENT || errno == ENOTDIR ? TSR_ERR_NOT_FOUND : TSR_ERR_IO, "cannot open '%s': %s; check the file's name", file,
                        strerror(errno));
    if (S_ISDIR(st.st_mode)) return tsr_fail(TSR_ERR_FORMAT, "'%s' is a directory; name an HDF5 file in it", file);
    if (!S_ISREG(st.st_mode)) return tsr_fail(TSR_ERR_FORMAT, "'%s' is not a regular file; name an HDF5 file on disk", file);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tsr_fail(TSR_ERR_IO, "cannot open '%s': %s; check its permissions", file, strerror(errno));
    int64_t at = 0;
    bool found = find_signature(fd, st.st_size, &at);
    close(fd);
    if (!found)
        return tsr_fail(TSR_ERR_FORMAT, "'%s' (%lld bytes) is not an HDF5 file; convert it to HDF5 (MATLAB: save -v7.3)", file,
                        (long long)st.st_size);
    if (bytes) *bytes = st.st_size;
    if (user_block) *user_block = at;
    return TSR_OK;
}

hid_t tsr_h5_access(bool locking) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0) return access;
    herr_t error = H5Pset_fapl_sec2(access);
    if (error >= 0) error = H5Pset_sieve_buf_size(access, 0);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 10 && H5_VERS_RELEASE >= 7)
    if (error >= 0) error = H5Pset_file_locking(access, locking, true);
#else
    (void)locking;
#endif
    if (error >= 0) return access;
    H5Pclose(access);
    return -1;
}

/* text: 400 characters for HDF5's own words when it fails. */
static hid_t open_with(const char *file, unsigned flags, bool locking, char *text) {
    hid_t access = tsr_h5_access(locking);
    hid_t id = access < 0 ? -1 : H5Fopen(file, flags, access);
    if (id < 0) error_text(text);
    if (access >= 0) H5Pclose(access);
    return id;
}

tsr_status tsr_h5_open_read(const char *file, hid_t *id) {
    char text[400];
    *id = open_with(file, H5F_ACC_RDONLY, true, text);
    /* a file system without locks (NFS, Lustre) is no reason to refuse; a writer at work (EAGAIN) is */
    if (*id < 0 && strstr(text, "lock file") && !strstr(text, "errno = 11,")) *id = open_with(file, H5F_ACC_RDONLY, false, text);
    if (*id >= 0) return TSR_OK;
    if (strstr(text, "lock file"))
        return tsr_fail(TSR_ERR_IO, "'%s' is locked: another program is writing it; wait for it, or set HDF5_USE_FILE_LOCKING=FALSE (HDF5: %s)", file, text);
    if (strstr(text, "truncated"))
        return tsr_fail(TSR_ERR_FORMAT, "'%s' is truncated: copy it again or make it anew (HDF5: %s)", file, text);
    return tsr_fail(TSR_ERR_FORMAT, "'%s' cannot be opened: it is damaged or still being written; check it with h5ls, copy it again (HDF5: %s)", file, text);
}

tsr_status tsr_h5_open_write(const char *file, hid_t *id) {
    char text[400];
    *id = open_with(file, H5F_ACC_RDWR, false, text);
    if (*id < 0) return tsr_fail(TSR_ERR_IO, "cannot open '%s' for writing through HDF5; use --io direct (HDF5: %s)", file, text);
    return TSR_OK;
}

/* ---- paths ---------------------------------------------------------------------------------------------------- */

/* Which file an external link names, for the message. */
static void external_file(hid_t file, const char *link, char *text, size_t chars) {
    char value[1024] = "";
    const char *name = NULL, *path = NULL;
    snprintf(text, chars, "another file");
    if (H5Lget_val(file, link, value, sizeof value - 1, H5P_DEFAULT) < 0) return;
    if (H5Lunpack_elink_val(value, sizeof value, NULL, &name, &path) < 0 || !name) return;
    snprintf(text, chars, "file '%.200s'", name);
}

/* A soft link `link` (its parent is link[0 … parent_chars)): writes where path leads instead, `rest` being what follows the link. */
static tsr_status follow_soft(hid_t file, const char *file_name, const char *link, size_t parent_chars, const char *rest, char *path) {
    char value[TSR_PATH_CHARS] = "", joined[2 * TSR_PATH_CHARS + 8];
    if (H5Lget_val(file, link, value, sizeof value - 1, H5P_DEFAULT) < 0)
        return tsr_h5_fail(TSR_ERR_FORMAT, "'%s': cannot read the soft link '%s'", file_name, link);
    int chars = value[0] == '/' ? snprintf(joined, sizeof joined, "%s%s", value, rest)
                                : snprintf(joined, sizeof joined, "%.*s/%s%s", (int)parent_chars, link, value, rest);
    if (chars >= TSR_PATH_CHARS) return tsr_fail(TSR_ERR_FORMAT, "'%s': the soft link '%s' leads to a path that is too long", file_name, link);
    memcpy(path, joined, (size_t)chars + 1);
    return TSR_OK;
}

/* Looks at the link `link` of the file. *soft: it is a soft link. */
static tsr_status check_link(hid_t file, const char *file_name, const char *link, const char *asked, bool *soft) {
    H5L_info_t info;
    char where[256];
    htri_t there = H5Lexists(file, link, H5P_DEFAULT);
    if (there < 0) return tsr_h5_fail(TSR_ERR_NOT_FOUND, "'%s' has no '%s': what holds '%s' is not a group", file_name, asked, link);
    if (there == 0) return tsr_fail(TSR_ERR_NOT_FOUND, "'%s' has no '%s'", file_name, link);
    if (H5Lget_info(file, link, &info, H5P_DEFAULT) < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "'%s': cannot read the link '%s'", file_name, link);
    *soft = info.type == H5L_TYPE_SOFT;
    if (*soft || info.type == H5L_TYPE_HARD) return TSR_OK;
    if (info.type != H5L_TYPE_EXTERNAL)
        return tsr_fail(TSR_ERR_FORMAT, "'%s': '%s' is a user-defined link, which is not followed; name the dataset itself", file_name, link);
    external_file(file, link, where, sizeof where);
    return tsr_fail(TSR_ERR_FORMAT, "'%s': '%s' is an external link to %s, which is not followed; name that file instead", file_name, link, where);
}

tsr_status tsr_h5_walk(hid_t file, const char *file_name, const char *path, tsr_h5_link_sink each, void *context,
                       char *resolved) {
    char walk[TSR_PATH_CHARS], link[TSR_PATH_CHARS];
    snprintf(walk, sizeof walk, "%s", path);
    size_t done = 0; /* walk[0 … done) is free of soft links */
    for (int jumps = 0; walk[done] != '\0';) {
        size_t slashes = strspn(walk + done, "/");
        size_t chars = strcspn(walk + done + slashes, "/");
        if (chars == 0) break;
        size_t end = done + slashes + chars;
        bool soft;
        memcpy(link, walk, end);
        link[end] = '\0';
        if (each) each(context, file, link, walk + end);
        tsr_status status = check_link(file, file_name, link, path, &soft);
        if (status == TSR_ERR_NOT_FOUND && jumps > 0)
            return tsr_fail(status, "'%s': '%s' is a soft link to '%s', which is not there", file_name, path, link);
        TSR_TRY(status);
        if (!soft) {
            done = end;
            continue;
        }
        if (++jumps > 32) return tsr_fail(TSR_ERR_FORMAT, "'%s': the soft links of '%s' lead round in a circle", file_name, path);
        char rest[TSR_PATH_CHARS];
        snprintf(rest, sizeof rest, "%s", walk + end);
        TSR_TRY(follow_soft(file, file_name, link, done, rest, walk));
        done = 0;
    }
    walk[done] = '\0';
    snprintf(resolved, TSR_PATH_CHARS, "%s", done ? walk : "/");
    return TSR_OK;
}

tsr_status tsr_h5_resolve(hid_t file, const char *file_name, const char *path, char *resolved) {
    return tsr_h5_walk(file, file_name, path, NULL, NULL, resolved);
}

bool tsr_h5_same_object(hid_t a, hid_t b) {
#if H5_VERSION_GE(1, 12, 0)
    H5O_info2_t one, other;
    int order = 1;
    return H5Oget_info3(a, &one, H5O_INFO_BASIC) >= 0 && H5Oget_info3(b, &other, H5O_INFO_BASIC) >= 0 &&
           H5Otoken_cmp(a, &one.token, &other.token, &order) >= 0 && order == 0;
#else
    H5O_info_t one, other;
    return H5Oget_info2(a, &one, H5O_INFO_BASIC) >= 0 && H5Oget_info2(b, &other, H5O_INFO_BASIC) >= 0 &&
           one.addr == other.addr;
#endif
}

/* ---- attributes ------------------------------------------------------------------------------------------------ */

/* Writes a scalar attribute, replacing one of the same name. */
static tsr_status write_scalar(hid_t object, const char *name, hid_t type, const void *value) {
    bool ok = false;
    hid_t space = -1, attribute = -1;
    htri_t there = H5Aexists(object, name);
    if (there < 0 || (there > 0 && H5Adelete(object, name) < 0)) goto done;
    if ((space = H5Screate(H5S_SCALAR)) < 0) goto done;
    if ((attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT)) < 0) goto done;
    ok = H5Awrite(attribute, type, value) >= 0;
done:;
    tsr_status status = ok ? TSR_OK : tsr_h5_fail(TSR_ERR_IO, "cannot write the attribute '%s'", name);
    if (attribute >= 0 && H5Aclose(attribute) < 0 && ok) status = tsr_h5_fail(TSR_ERR_IO, "cannot write the attribute '%s'", name);
    if (space >= 0) H5Sclose(space);
    return status;
}

char *tsr_h5_attribute_text(hid_t attribute, hid_t type) {
    char *variable = NULL, *text = NULL;
    if (H5Tis_variable_str(type) > 0) {
        if (H5Aread(attribute, type, &variable) >= 0 && variable) text = strdup(variable);
        if (variable) H5free_memory(variable);
        return text;
    }
    size_t bytes = H5Tget_size(type);
    text = calloc(1, bytes + 1);
    if (text && H5Aread(attribute, type, text) >= 0) return text;
    free(text);
    return NULL;
}

void tsr_h5_text_of(hid_t object, const char *name, char *text, size_t chars) {
    text[0] = '\0';
    if (H5Aexists(object, name) <= 0) return;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), type = -1, space = -1;
    char *read = NULL;
    if (attribute < 0 || (type = H5Aget_type(attribute)) < 0 || H5Tget_class(type) != H5T_STRING) goto done;
    if ((space = H5Aget_space(attribute)) < 0 || H5Sget_simple_extent_npoints(space) != 1) goto done;
    read = tsr_h5_attribute_text(attribute, type);
    if (read) snprintf(text, chars, "%s", read);
    free(read);
done:
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
}

tsr_status tsr_h5_write_text(hid_t object, const char *name, const char *value) {
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0 || H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)
        return tsr_h5_fail(TSR_ERR_IO, "cannot make the type of attribute '%s'", name);
    tsr_status status = write_scalar(object, name, type, &value);
    H5Tclose(type);
    return status;
}

tsr_status tsr_h5_write_number(hid_t object, const char *name, hid_t native_type, const void *value) {
    return write_scalar(object, name, native_type, value);
}
