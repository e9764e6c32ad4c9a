/* Integers of a row by a warp, of products of small matrices (exact_rows.h), beside those of each element by itself:
 * any residues, and those at both ends, in rows and columns that are not the first. */
#include <vector>

#include "kernels/gemm/exact/exact_rows.h"
#include "tests/check.h"
#include "tests/kernels/gemm/grade/known_product.h"

enum { ROWS = 3, COLUMNS = 256, AT = 128, WARPS = 2, ROUNDS = 20 };

/* Each warp a row, behind the first, from AT on. */
template <int COUNT> __global__ void make_rows(const int8_t *planes, tsr_exact_integer *to) {
    __shared__ typename exact::Row<COUNT>::Room rooms[WARPS];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const exact::LaneUnits<COUNT> units;
    exact::LaneResidues<COUNT> residues;
    residues.load(planes + (1 + warp) * COLUMNS + AT, ROWS * COLUMNS);
    exact::integers_of_row<COUNT>(residues, units, rooms[warp],
                                  [&](int e, tsr_exact_integer x) { to[warp * 128 + 4 * lane + e] = x; });
}

static int residue_of(int round, int p) {
    const int least = -(p / 2), most = p == 256 ? 127 : p / 2;
    return round == 0   ? least
           : round == 1 ? most
           : round == 2 ? 0
                        : least + (int)known_drawn((uint64_t)(most - least + 1));
}

template <int COUNT> void check_rows() {
    constexpr int moduli[TSR_EXACT_MODULI_MOST] = TSR_EXACT_MODULI;
    const size_t plane = ROWS * COLUMNS;
    for (int round = 0; round < ROUNDS; round++) {
        void *room = NULL;
        CHECK(posix_memalign(&room, 16, COUNT * plane) == 0, "no memory");
        int8_t *planes = static_cast<int8_t *>(room);
        std::vector<tsr_exact_integer> got(WARPS * 128);
        for (size_t i = 0; i < COUNT * plane; i++) planes[i] = (int8_t)residue_of(round, moduli[i / plane]);
        CHECK_OK(TSR_LAUNCH(make_rows<COUNT>, 1, 32 * WARPS, 0, NULL, planes, got.data()));
        for (size_t i = 0; i < got.size(); i++) {
            unsigned words[1][exact::Moduli<COUNT>::WORDS] = {};
            tsr_exact_integer is[1];
            const size_t at = (1 + i / 128) * COLUMNS + AT + i % 128;
            for (int m = 0; m < COUNT; m++) words[0][m / 4] |= (unsigned)(uint8_t)planes[m * plane + at] << 8 * (m % 4);
            exact::integers_from<COUNT>(words, is);
            CHECK(got[i] == is[0], "of %d moduli: element %zu is %.17g, not %.17g", COUNT, i, (double)got[i],
                  (double)is[0]);
        }
        free(room);
    }
}

int main() {
    check_rows<9>();
    check_rows<11>();
    check_rows<14>();
    check_rows<15>();
    check_rows<16>();
    return 0;
}
