/* How a dataset with a filter that this HDF5 lacks is rewritten (hdf5_util.h). Only what was tried is advised: h5repack, for one, leaves such a
 * dataset out of the file it writes and says nothing. */
#include <stdio.h>
#include <string.h>

#include "io/hdf5_util.h"

/* What h5py needs to read each of these filters; h5py alone undoes lzf. */
static const struct {
    H5Z_filter_t id;
    const char *plugin; /* a module to import with it; "": none */
} readers[] = {{32000, ""},                                     /* lzf */
               {307, "hdf5plugin"},   {32001, "hdf5plugin"},    /* bzip2, blosc */
               {32004, "hdf5plugin"}, {32008, "hdf5plugin"},    /* lz4, bitshuffle */
               {32013, "hdf5plugin"}, {32015, "hdf5plugin"},    /* zfp, zstd */
               {32017, "hdf5plugin"}, {32024, "hdf5plugin"},    /* sz, sz3 */
               {32026, "hdf5plugin"}, {32028, "hdf5plugin"}};   /* blosc2, sperr */

/* `word` as a shell reads it, behind what `text` holds. */
static void add_word(char *text, size_t chars, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:,@%";
    size_t used = strlen(text);
    if (word[0] && word[0] != '-' && word[strspn(word, plain)] == '\0') {
        snprintf(text + used, chars - used, " %s", word);
        return;
    }
    used += (size_t)snprintf(text + used, chars - used, " '");
    for (const char *c = word; *c && used + 8 < chars; c++) used += (size_t)snprintf(text + used, chars - used, *c == '\'' ? "'\\''" : "%c", *c);
    snprintf(text + used, chars - used, "'");
}

/* data/A.h5 → data/A-gzip.h5 */
static void copy_name(const char *file, char *copy, size_t chars) {
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file, *dot = strrchr(name, '.');
    size_t stem = dot && dot > name ? (size_t)(dot - file) : strlen(file);
    snprintf(copy, chars, "%.*s-gzip.h5", (int)stem, file);
}

void tsr_h5_filter_advice(int filter, const char *file, const char *path, char *text, size_t chars) {
    char copy[TSR_FILE_CHARS + 16];
    const char *plugin = NULL;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (readers[i].id == filter) plugin = readers[i].plugin;
    if (!plugin) {
        snprintf(text, chars, "write it anew without that filter, or with gzip, where it can be read");
        return;
    }
    snprintf(text, chars,
             "rewrite it with gzip (needs h5py%s%s): python3 -c \"import h5py,sys%s%s; f,n,g=sys.argv[1:]; a=h5py.File(f,'r')[n]; "
             "b=h5py.File(g,'a').create_dataset(n,a.shape,a.dtype,chunks=a.chunks,compression='gzip'); "
             "[b.__setitem__(s,a[s]) for s in a.iter_chunks()]\"",
             plugin[0] ? " and " : "", plugin, plugin[0] ? "," : "", plugin);
    if (strlen(file) + strlen(path) > 500) file = "FILE.h5", path = "/DATASET"; /* a message has an end */
    copy_name(file, copy, sizeof copy);
    add_word(text, chars, file);
    add_word(text, chars, path);
    add_word(text, chars, copy);
}
