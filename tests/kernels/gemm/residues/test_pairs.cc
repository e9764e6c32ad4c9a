/* Sums of residues in fp16 (kernels/gemm/residues/pairs.h), in the emulation of CUDA: every byte comes and goes, and
 * every sum of four residues is reduced as its modulus says. */
#include "kernels/gemm/residues/pairs.h"

#include <stdlib.h>

#include "tests/check.h"

namespace {

using namespace pairs;

Pair of_integers(int lower, int upper) { return (Pair)tsr_half_encode(lower) | (Pair)tsr_half_encode(upper) << 16; }

/* All bytes, in all four places. */
void check_bytes() {
    for (unsigned i = 0; i < 256; i++) {
        const unsigned bytes = i | (i ^ 0x55) << 8 | (255 - i) << 16 | (i * 7 & 255) << 24;
        const Moved own = moved(bytes);
        const auto value = [bytes](int place) { return (int)(int8_t)(bytes >> 8 * place); };
        CHECK(subtract(own.lower, MOVED) == of_integers(value(0), value(1)) &&
                  subtract(own.upper, MOVED) == of_integers(value(2), value(3)),
              "%08x is %08x and %08x", bytes, own.lower, own.upper);
        CHECK(add(subtract(own.lower, MOVED_TWICE), own.upper) == of_integers(value(0) + value(2), value(1) + value(3)),
              "a sum of %08x", bytes);
        CHECK(bytes_of(own.lower, own.upper) == bytes, "%08x comes back as %08x", bytes,
              bytes_of(own.lower, own.upper));
    }
}

void check_reduced() {
    static const int moduli[] = TSR_EXACT_MODULI;
    for (int p : moduli) {
        const Modulus modulus = modulus_of(p);
        for (int x = -512; x <= 512; x++) {
            const unsigned bytes = bytes_of(reduced(of_integers(x, -x), modulus), reduced(of_integers(x, 0), modulus));
            const int sums[4] = {x, -x, x, 0};
            for (int place = 0; place < 4; place++) {
                const int residue = (int8_t)(bytes >> 8 * place);
                CHECK((sums[place] - residue) % p == 0 && 2 * abs(residue) <= p, "%d modulo %d is %d", sums[place], p,
                      residue);
            }
        }
    }
}

} // namespace

int main() {
    check_bytes();
    check_reduced();
    return 0;
}
