/* HDF5 files: looked into, described and read. What crashes HDF5 itself is no finding (test_fuzz.py tells them apart):
 * tessera-describe is a process of its own for that. */
#include "tests/fuzz/ask.h"
#include "tests/fuzz/walk.h"

void fuzz_start(void) { tsr_stores_start(); }

/* Made by h5py (test_fuzz.py). */
void fuzz_seeds(void) {}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    tsr_describer helper = {.pid = 0};
    walk_file(&helper, fuzz_write("file.h5", data, bytes));
    return 0;
}
