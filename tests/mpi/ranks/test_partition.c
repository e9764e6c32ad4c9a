/* Partitions cover [0, total) once, in order, balanced; blocks too. */
#include "mpi/ranks/partition.h"
#include "tests/check.h"

int main(void) {
    const int64_t totals[] = {0, 1, 2, 7, 64, 97, ((int64_t)1 << 40) + 3};
    for (size_t t = 0; t < sizeof totals / sizeof *totals; t++)
        for (int64_t parts = 1; parts <= 67; parts++) {
            int64_t next = 0;
            int64_t least = INT64_MAX;
            int64_t most = 0;
            for (int64_t i = 0; i < parts; i++) {
                tsr_span s = tsr_partition(totals[t], parts, i);
                CHECK(s.start == next, "part %lld of %lld starts at %lld, not %lld", (long long)i, (long long)parts,
                      (long long)s.start, (long long)next);
                next = s.start + s.count;
                least = tsr_min(least, s.count);
                most = tsr_max(most, s.count);
            }
            CHECK(next == totals[t] && most - least <= 1, "%lld in %lld parts: end %lld, sizes %lld to %lld",
                  (long long)totals[t], (long long)parts, (long long)next, (long long)least, (long long)most);
        }
    for (int64_t size = 1; size <= 100; size++) {
        int64_t next = 0;
        for (int64_t i = 0; i < tsr_ceil_div(97, size); i++) {
            tsr_span s = tsr_block(97, size, i);
            CHECK(s.start == next && s.count > 0 && s.count <= size, "block %lld of size %lld: %lld + %lld",
                  (long long)i, (long long)size, (long long)s.start, (long long)s.count);
            next = s.start + s.count;
        }
        CHECK(next == 97, "blocks of %lld end at %lld", (long long)size, (long long)next);
    }
    return 0;
}
