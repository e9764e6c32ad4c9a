/* How a dataset with a filter that this HDF5 lacks is rewritten (filter_advice.h). Only what was tried is advised:
 * h5repack, for one, leaves such a dataset out of the file it writes, and exits with 0. */
#include "io/hdf5/filter_advice.h"

#include <stdio.h>
#include <string.h>

#include "io/filters/filter.h"
#include "io/name.h"

/* `word` as a shell reads it, behind what `text` holds. */
static void add_word(char *text, size_t chars, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:,@%";
    size_t used = strlen(text);
    if (word[0] && word[0] != '-' && word[strspn(word, plain)] == '\0') {
        snprintf(text + used, chars - used, " %s", word);
        return;
    }
    used += (size_t)snprintf(text + used, chars - used, " '");
    for (const char *c = word; *c && used + 8 < chars; c++)
        used += (size_t)snprintf(text + used, chars - used, *c == '\'' ? "'\\''" : "%c", *c);
    snprintf(text + used, chars - used, "'");
}

/* data/A.h5 → data/A-gzip.h5 */
static void copy_name(const char *file, char *copy, size_t chars) {
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot > name ? (size_t)(dot - file) : strlen(file);
    snprintf(copy, chars, "%.*s-gzip.h5", (int)stem, file);
}

void tsr_h5_filter_advice(int filter, const char *file, const char *path, char *text, size_t chars) {
    char copy[TSR_FILE_CHARS + 16];
    const int known = tsr_filter_find(filter);
    const char *plugin = known >= 0 ? tsr_filter_at(known)->h5py : NULL;
    if (!plugin) {
        snprintf(text, chars, "write it anew without that filter, or with gzip, where it can be read");
        return;
    }
    snprintf(text, chars,
             "rewrite it with gzip (needs h5py%s%s): python3 -c \"import h5py,sys%s%s; f,n,g=sys.argv[1:]; "
             "a=h5py.File(f,'r')[n]; "
             "b=h5py.File(g,'a').create_dataset(n,a.shape,a.dtype,chunks=a.chunks,compression='gzip'); "
             "[b.__setitem__(s,a[s]) for s in a.iter_chunks()]\"",
             plugin[0] ? " and " : "", plugin, plugin[0] ? "," : "", plugin);
    if (strlen(file) + strlen(path) > 500) { /* a message has an end */
        file = "FILE.h5";
        path = "/DATASET";
    }
    copy_name(file, copy, sizeof copy);
    add_word(text, chars, file);
    add_word(text, chars, path);
    add_word(text, chars, copy);
}
