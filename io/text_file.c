/* Text files that appear whole (text_file.h). */
#include "io/text_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tsr_status failed(const tsr_text_file *f, int error) {
    bool space = error == ENOSPC || error == EDQUOT || error == EFBIG;
    return tsr_fail(space ? TSR_ERR_SPACE : TSR_ERR_IO, "cannot write the %s '%s': %s; choose another place", f->what, f->file, strerror(error));
}

tsr_status tsr_text_file_open(const char *what, const char *file, tsr_text_file *opened) {
    struct stat st;
    tsr_text_file f = {.what = what, .file = file, .special = stat(file, &st) == 0 && !S_ISREG(st.st_mode)};
    int wanted = f.special ? snprintf(f.temporary, sizeof f.temporary, "%s", file)
                           : snprintf(f.temporary, sizeof f.temporary, "%s.tessera-%ld.tmp", file, (long)getpid());
    if (wanted >= (int)sizeof f.temporary) return failed(&f, ENAMETOOLONG);
    f.to = fopen(f.temporary, "we");
    if (!f.to) return failed(&f, errno);
    *opened = f;
    return TSR_OK;
}

/* A pipe is not opened to see whether it could be: that would wait for its reader. */
tsr_status tsr_text_file_check(const char *what, const char *file) {
    struct stat st;
    tsr_text_file f;
    if (stat(file, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return TSR_OK;
    TSR_TRY(tsr_text_file_open(what, file, &f));
    fclose(f.to);
    unlink(f.temporary);
    return TSR_OK;
}

tsr_status tsr_text_file_close(tsr_text_file *f, int error) {
    errno = 0;
    bool ok = error == 0 && fflush(f->to) == 0 && !ferror(f->to) && (f->special || fsync(fileno(f->to)) == 0);
    if (!ok && error == 0) error = errno ? errno : EIO;
    if (fclose(f->to) != 0 && ok) ok = false, error = errno;
    if (ok && !f->special && rename(f->temporary, f->file) != 0) ok = false, error = errno;
    if (!ok && !f->special) unlink(f->temporary);
    f->to = NULL;
    return ok ? TSR_OK : failed(f, error);
}
