/* The works of products_hopper.cu (works_hopper.h), listed in the emulation of CUDA and walked by all workers: each
 * tile that is wanted, and each side, is made once in each plane; and tiles with a side go round the workers, or first
 * to those that have a tile less. */
#include "kernels/gemm/residues/works_hopper.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "tests/check.h"

namespace {

using namespace residues;

constexpr unsigned WANTED = 1, OTHER = 2;

struct Case {
    int64_t m, n;
    int planes, workers;
    bool sums;
    double share; /* of blocks that are wanted; 1: there are no blocks */
};

/* A tile, or the side that a row (SIDE_OF_A_LINES) or a column of tiles makes with a chunk. */
typedef std::tuple<int, unsigned, int, int> Made; /* plane; 0, or a side; row and column, or -1 */
typedef std::map<Made, int> Times;

/* A sum is one of 128 lines. Chunks have 32 of them, or 64 where an operand has more. At most 32 last lines are one. */
Chunks chunks_wanted(const Case &c, int64_t lines) {
    const int64_t sums = (lines + 127) / 128, last = lines % 256;
    const int64_t each = c.m > 4096 || c.n > 4096 ? 64 : 32;
    return {c.sums ? (int)((sums + each - 1) / each) : 0, lines > 256 && last > 0 && last <= 32};
}
Chunks chunks_made(const Case &c, int64_t lines) {
    const auto sums = [&c](int64_t of) { return c.sums ? (int)tsr_ceil_div(of, TSR_EXACT_BLOCK) : 0; };
    const Chunks made = chunks_of(sums(lines), lines, chunk_lines(sums(c.m), sums(c.n), c.m, c.n));
    const Chunks wanted = chunks_wanted(c, lines);
    CHECK(made.sums == wanted.sums && made.last == wanted.last, "%ld of %ld x %ld lines: %d chunks of sums, last %d",
          (long)lines, (long)c.m, (long)c.n, made.sums, made.last);
    return made;
}

/* What has to be made, by the comments of works_hopper.h alone. */
Times wanted_of(const Case &c, const Lister &l) {
    Times all;
    const int rows = l.tiles_m + l.sides.a.last, columns = l.tiles_n + l.sides.b.last;
    for (int plane = 0; plane < c.planes; plane++) {
        std::vector<bool> in_row((size_t)rows), in_column((size_t)columns);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) {
                if (!l.blocks.wants(i, j)) continue;
                in_row[(size_t)i] = in_column[(size_t)j] = true;
                if (i < l.tiles_m && j < l.tiles_n) all[{plane, 0, i, j}] = 1;
                else if (j == l.tiles_n) all[{plane, SIDE_OF_A_LINES + CHUNK_LAST, i, -1}] = 1;
                else all[{plane, SIDE_OF_B_LINES + CHUNK_LAST, -1, j}] = 1;
            }
        for (int chunk = 0; chunk < l.sides.b.sums; chunk++)
            for (int i = 0; i < rows; i++)
                if (in_row[(size_t)i]) all[{plane, SIDE_OF_A_LINES + (unsigned)chunk, i, -1}] = 1;
        for (int chunk = 0; chunk < l.sides.a.sums; chunk++)
            for (int j = 0; j < columns; j++)
                if (in_column[(size_t)j]) all[{plane, SIDE_OF_B_LINES + (unsigned)chunk, -1, j}] = 1;
    }
    return all;
}

void note(const Place &at, Times *made) {
    const unsigned side = at.side & (SIDE_OF_A_LINES | SIDE_OF_B_LINES | CHUNK);
    if (!(at.side & SIDE_ALONE)) (*made)[{at.plane, 0, at.row, at.col}]++;
    if (side & SIDE_OF_A_LINES) (*made)[{at.plane, side, at.row, -1}]++;
    else if (side) (*made)[{at.plane, side, -1, at.col}]++;
}

/* Whether after each turn no worker has had two tiles with a side more than another; three, after the last one, which
 * not all have a part in. */
void check_turns(const Case &c, const std::vector<std::vector<Place>> &of_workers) {
    std::vector<int> sided((size_t)c.workers);
    for (size_t turn = 0;; turn++) {
        bool whole = true;
        for (int worker = 0; worker < c.workers; worker++) {
            const std::vector<Place> &own = of_workers[(size_t)worker];
            if (turn >= own.size() || own[turn].side & SIDE_ALONE) whole = false;
            else sided[(size_t)worker] += own[turn].side != 0;
        }
        int least = sided[0], most = sided[0];
        for (int count : sided) {
            least = tsr_min(least, count);
            most = tsr_max(most, count);
        }
        CHECK(most - least <= (whole ? 1 : 2), "%ld x %ld, %d planes, %d workers: after turn %d %d and %d sides",
              (long)c.m, (long)c.n, c.planes, c.workers, (int)turn, least, most);
        if (!whole) return;
    }
}

/* How long the slowest worker takes, in tiles, and how long all would on average, or with one tile more than others. A
 * side takes a fifth of a tile. */
constexpr double SIDE = 0.2;
struct Duration {
    double slowest, best;
};
Duration duration_of(const Case &c, const std::vector<std::vector<Place>> &of_workers) {
    Duration all = {};
    double sum = 0;
    size_t most = 0;
    for (const std::vector<Place> &own : of_workers) {
        double tiles = 0;
        for (const Place &at : own) tiles += (at.side & SIDE_ALONE ? 0 : 1) + (at.side ? SIDE : 0);
        all.slowest = std::max(all.slowest, tiles);
        most = tsr_max(most, own.size());
        sum += tiles;
    }
    all.best = std::max(sum / c.workers, (double)most);
    return all;
}

/* Lists and walks. `levels` of blocks. */
std::vector<std::vector<Place>> works_of(const Case &c, const std::vector<unsigned> &levels, bool evens) {
    const int tiles_m = (int)tsr_ceil_div(c.m, TSR_EXACT_TILE), tiles_n = (int)tsr_ceil_div(c.n, TSR_EXACT_TILE);
    const Chunks a = chunks_made(c, c.m), b = chunks_made(c, c.n);
    const tsr_residue_blocks blocks = {c.share < 1 ? levels.data() : nullptr, WANTED,
                                       (int)tsr_ceil_div(c.m, TSR_EXACT_BLOCK), (int)tsr_ceil_div(c.n, TSR_EXACT_BLOCK),
                                       2 * tiles_n};
    const Lister lister = {blocks,
                           tiles_m - a.last,
                           tiles_n - b.last,
                           sides_of(a, b, tiles_m - a.last, tiles_n - b.last),
                           c.planes,
                           c.workers,
                           evens};
    std::vector<ListEntry> list(tsr_residue_workspace(c.m, c.n) / sizeof(ListEntry), 0xffffffff);
    Listings listings = {};
    unsigned progress = 5;
    listings.of[0] = {lister, list.data(), &progress, {}};
    CHECK_OK(TSR_LAUNCH(list_works, LISTING_BLOCKS, LISTERS, 0, (tsr_stream *)nullptr, listings));
    CHECK(progress == 0, "workers begin at %u", progress);
    Plan plan = {};
    plan.list = list.data();
    plan.planes = c.planes;
    plan.workers = c.workers;
    plan.panels = 1;
    Times made;
    std::vector<std::vector<Place>> of_workers((size_t)c.workers);
    for (int worker = 0; worker < c.workers; worker++) {
        PlaneScheduler scheduler(plan, worker);
        for (PlaneTile work; scheduler.next(plan, &work);) {
            of_workers[(size_t)worker].push_back(work.place);
            note(work.place, &made);
        }
    }
    CHECK(made == wanted_of(c, lister), "%ld x %ld, %d planes, %d workers, sums %d, share %g: made %d, wanted %d",
          (long)c.m, (long)c.n, c.planes, c.workers, c.sums, c.share, (int)made.size(),
          (int)wanted_of(c, lister).size());
    return of_workers;
}

void check_case(const Case &c, std::mt19937_64 *random) {
    const int64_t tiles = tsr_ceil_div(c.m, TSR_EXACT_TILE) * tsr_ceil_div(c.n, TSR_EXACT_TILE);
    std::vector<unsigned> levels((size_t)(4 * tiles));
    for (unsigned &level : levels) level = std::uniform_real_distribution<>()(*random) < c.share ? WANTED : OTHER;
    const std::vector<std::vector<Place>> round = works_of(c, levels, false), even = works_of(c, levels, true);
    check_turns(c, round);
    const double before = duration_of(c, round).slowest, now = duration_of(c, even).slowest;
    CHECK(now <= before + SIDE + 1e-9, "%ld x %ld, %d planes, %d workers, sums %d: %g tiles, with sides all round %g",
          (long)c.m, (long)c.n, c.planes, c.workers, c.sums, now, before);
}

/* As an H200 does: nobody takes half a tile more than is best. With sides that go round some take a whole one. */
void check_even() {
    for (int planes : {7, 9, 10, 14, 15, 16})
        for (int64_t n : {2048, 3072, 3584, 4096}) {
            const Case c = {n, n, planes, 66, true, 1};
            const Duration even = duration_of(c, works_of(c, {}, true));
            CHECK(even.slowest <= even.best + 0.5, "%ld, %d planes: %g tiles, %g at best", (long)n, planes,
                  even.slowest, even.best);
        }
}

} // namespace

int main() {
    std::mt19937_64 random(17);
    const auto any = [&random](int64_t from, int64_t to) {
        return std::uniform_int_distribution<int64_t>(from, to)(random);
    };
    for (int64_t n : {8192, 8193, 16384}) /* as an H200 does, where 8 sides more slowed a worker down */
        for (bool sums : {false, true}) check_case({n, n, 14, 66, sums, 1}, &random);
    for (int i = 0; i < 200; i++) {
        const int64_t most = i % 8 < 2 ? 9000 : 3000;
        const int64_t m = any(1, most), n = any(1, most);
        const double share = i % 3 == 0 ? 1 : i % 3 == 1 ? 0.5 : 0.05;
        const bool ends = i % 2 == 0; /* with last lines */
        check_case({ends ? m / 256 * 256 + any(1, 32) : m, ends ? n / 256 * 256 + any(1, 32) : n, (int)any(1, 16),
                    (int)any(1, 70), any(0, 1) == 1, share},
                   &random);
    }
    for (int64_t m : {4096, 4097, 4352, 4353}) check_case({m, 300, 2, 66, true, 1}, &random); /* a sum more */
    check_case({3000, 2000, 14, 66, true, 0}, &random);                                       /* nothing is wanted */
    check_even();
    return 0;
}
