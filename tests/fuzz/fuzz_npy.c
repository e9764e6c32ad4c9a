/* .npy files: their headers, and what is read by them. */
#include "io/raw/npy_header.h"
#include "io/signature/signature.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/walk.h"

void fuzz_start(void) { tsr_stores_start(); }

static void seed(const char *name, int version, const char *dictionary) {
    char file[512] = TSR_NPY_SIGNATURE;
    const size_t before = version == 1 ? 10 : 12;
    const size_t chars = 128 - before;
    file[6] = (char)version;
    file[8] = (char)chars;
    snprintf(file + before, sizeof file - before, "%-*s", (int)chars, dictionary);
    for (size_t i = 128; i < sizeof file; i++) file[i] = (char)i;
    fuzz_seed(name, file, sizeof file);
}

void fuzz_seeds(void) {
    seed("matrix", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (6, 8), }");
    seed("fortran", 1, "{'descr': '>f8', 'fortran_order': True, 'shape': (3, 4), }");
    seed("stack", 2, "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3, 4), }");
    seed("vector", 1, "{'descr': '|i1', 'fortran_order': False, 'shape': (7,), }");
    seed("complex", 3, "{'descr': '<c16', 'fortran_order': False, 'shape': (2, 2), }");
    seed("number", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static char text[TSR_NPY_HEADER_MAX];
    char sliced[512];
    tsr_npy_header header;
    const char *file = fuzz_write("file.npy", data, bytes);
    FILE *open = fopen(file, "rb");
    CHECK(open, "'%s' is gone", file);
    const tsr_status status = tsr_npy_header_read(fileno(open), file, (int64_t)bytes, &header);
    fclose(open);
    if (status != TSR_OK) return 0;
    CHECK(header.offset >= 0 && header.offset <= (int64_t)bytes, "elements at %lld", (long long)header.offset);
    walk_matrix(NULL, file);
    snprintf(sliced, sizeof sliced, "%s[0]", file);
    walk_matrix(NULL, sliced);
    if (!header.element.swapped) tsr_npy_header_write(&header, 64, text);
    return 0;
}
