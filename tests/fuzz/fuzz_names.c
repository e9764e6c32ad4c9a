/* What a person writes for a matrix, with its slice; ways to compress; digests. */
#include "io/digest/digest.h"
#include "io/filters/filter.h"
#include "io/name.h"
#include "tests/fuzz/fuzz.h"

void fuzz_start(void) {}

void fuzz_seeds(void) {
    static const char *const seeds[] = {
        "a.h5",         "a.h5:/x/y",       "a.h5::/x",        "dir/a.h5/C[0:5,1:3]",  "a.npy[:,3]",
        "a.h5:C[-1]",   "b.bin:f4:3x4",    "a.h5[1,2:4,...]", "x.mat:/a[::2]",        "gzip:4",
        "blosc-zstd:3", "crc32c:1a2b3c4d", "a.h5:/m[1][2,]",  "a.bin:f8:2x3[0:1,0:2]"};
    char name[16];
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        snprintf(name, sizeof name, "%zu", i);
        fuzz_seed(name, seeds[i], strlen(seeds[i]));
    }
}

static void slice(const tsr_matrix_name *parsed, int dimensions, int64_t side) {
    tsr_matrix_name name = *parsed;
    int64_t leads[TSR_LEADS_MAX];
    for (int i = 0; i < TSR_LEADS_MAX; i++) leads[i] = side;
    if (tsr_matrix_name_slice(&name, dimensions, leads, dimensions > 0 ? side : 1, dimensions > 1 ? side : 1) != TSR_OK)
        return;
    const int64_t rows = dimensions > 0 ? side : 1, cols = dimensions > 1 ? side : 1;
    CHECK(name.row0 >= 0 && name.row0 <= name.row1 && name.row1 <= rows, "rows %lld to %lld", (long long)name.row0,
          (long long)name.row1);
    CHECK(name.col0 >= 0 && name.col0 <= name.col1 && name.col1 <= cols, "columns %lld to %lld", (long long)name.col0,
          (long long)name.col1);
    for (int i = 0; i < tsr_leads_of(dimensions); i++)
        CHECK(name.lead0[i] >= 0 && name.lead0[i] <= name.lead1[i] && name.lead1[i] <= side, "dimension %d", i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *text = malloc(bytes + 1);
    char shown[2 * TSR_FILE_CHARS], digest[TSR_DIGEST_CHARS];
    tsr_matrix_name name;
    tsr_compress compress;
    CHECK(text, "no memory");
    if (bytes > 0) memcpy(text, data, bytes);
    text[bytes] = '\0';
    (void)tsr_compress_parse("--compress", text, &compress);
    (void)tsr_digest_parse(text, digest);
    (void)tsr_name_is_hdf5(text);
    memset(&name, 0, sizeof name);
    if (tsr_matrix_name_parse(text, &name) == TSR_OK) {
        CHECK(*name.file, "a name without a file");
        (void)tsr_matrix_name_text(&name, shown, sizeof shown);
        static const int64_t sides[] = {0, 1, 7, INT64_MAX};
        for (int dimensions = 0; dimensions <= 5; dimensions++)
            for (int i = 0; i < 4; i++) slice(&name, dimensions, sides[i]);
        slice(&name, TSR_DIMENSIONS_MAX, 3);
    }
    free(text);
    return 0;
}
