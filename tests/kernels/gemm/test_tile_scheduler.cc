/* The tile scheduler of the persistent kernels, walked on the host: every panel of every tile is made once, in the
 * order of k inside a piece; pieces are the same on every device; workers end together, what they wait for included. */
#include "kernels/gemm/hopper/tile_scheduler.h"

#include <map>
#include <vector>

#include "tests/check.h"

namespace {

using hopper::Cut;
using hopper::TilePlan;
using hopper::WorkTile;

struct Left { /* sums in a part */
    int worker, tile, last;
    int64_t time; /* panels that the worker had made by then */
};

struct Walk {
    std::vector<std::vector<int>> made; /* [tile][panel / granule]: how often; only for few panels */
    std::vector<int64_t> panels;        /* of each tile */
    std::map<int, Left> handed;         /* by part */
    std::vector<int> kept;              /* [part]: for the gather */
    std::vector<int64_t> busy;          /* panels of each worker, and those that it waits for */
    int handovers;
    bool good;
};

/* One work tile of a worker, whose `number`-th it is. */
void take(const TilePlan &p, int worker, int number, const WorkTile &work, Walk *walk) {
    const int piece = work.first / p.piece, begin = piece * p.piece;
    const int rounds = p.rounds > worker ? (p.rounds - worker - 1) / p.workers + 1 : 0; /* whole tiles */
    const int end = p.panels - begin < p.piece ? p.panels : begin + p.piece;
    bool good =
        work.tile >= 0 && work.tile < p.tiles && work.first >= begin && work.first < work.last && work.last <= end;
    good = good && (work.handed ? work.last < end : work.last == end) && (work.from < 0 ? work.first == begin : true);
    if (work.from >= 0) { /* left by the worker before, which went on from nothing */
        const auto left = walk->handed.find(work.from);
        good = good && left != walk->handed.end() && left->second.worker == worker - 1 &&
               left->second.tile == work.tile && left->second.last == work.first;
        if (good) walk->busy[(size_t)worker] = tsr_max(walk->busy[(size_t)worker], left->second.time);
        if (good) walk->handed.erase(left);
    }
    walk->busy[(size_t)worker] += work.last - work.first;
    walk->panels[(size_t)work.tile] += work.last - work.first;
    if (work.handed) { /* at the beginning of its share: so nobody waits for one who waits */
        good = good && number == rounds && work.from < 0 && work.to >= 0 && walk->handed.count(work.to) == 0;
        walk->handovers++;
        walk->handed[work.to] = {worker, work.tile, work.last, walk->busy[(size_t)worker]};
    } else if (work.to >= 0) {
        good = good && p.pieces > 1 && work.to == work.tile * p.pieces + piece && walk->kept[(size_t)work.to]++ == 0;
    } else good = good && p.pieces == 1;
    if (!walk->made.empty())
        for (int panel = work.first; panel < work.last; panel++)
            good = good && walk->made[(size_t)work.tile][(size_t)panel]++ == 0;
    walk->good = walk->good && good;
}

Walk walked(const TilePlan &p) {
    Walk walk = {};
    walk.good = true;
    walk.panels.resize((size_t)p.tiles);
    walk.busy.resize((size_t)p.workers);
    walk.kept.resize((size_t)p.tiles * (size_t)p.pieces);
    if ((int64_t)p.tiles * p.panels < 100000) walk.made.assign((size_t)p.tiles, std::vector<int>((size_t)p.panels));
    for (int worker = 0; worker < p.workers; worker++) { /* in this order each finds what it needs */
        hopper::TileScheduler scheduler(p, worker);
        WorkTile work;
        bool more = true;
        for (int number = 0; scheduler.next(p, &work); number++) {
            walk.good = walk.good && more;
            more = scheduler.more(p);
            take(p, worker, number, work, &walk);
        }
        walk.good = walk.good && !scheduler.more(p);
    }
    walk.good = walk.good && walk.handed.empty() && p.hands_over >= (walk.handovers > 0);
    for (int64_t panels : walk.panels) walk.good = walk.good && panels == p.panels;
    for (int count : walk.kept) walk.good = walk.good && count == (p.pieces > 1);
    return walk;
}

int plans, shared, cut;

void check(Cut how, int64_t tiles, int64_t panels, int64_t workers, int64_t thin) {
    const TilePlan p = hopper::tile_plan(how, tiles, panels, workers, thin);
    const Walk walk = walked(p);
    int64_t most = 0;
    for (int64_t panels_of : walk.busy) most = tsr_max(most, panels_of);
    CHECK(walk.good, "%d x %d panels, %d workers, %d thin: wrong work", p.tiles, p.panels, (int)workers, (int)thin);
    CHECK(p.piece == panels || (p.piece % how.unit == 0 && thin == 0), "pieces of %d panels", p.piece);
    CHECK(thin > 0 || p.piece == hopper::piece_panels(how, tiles, panels), "pieces depend on the device");
    const int64_t parts = p.pieces > 1 ? p.tiles * p.pieces : p.sharing;
    CHECK(parts <= hopper::most_parts(how, tiles, panels), "%d parts, room for %d", (int)parts,
          (int)hopper::most_parts(how, tiles, panels));
    if (p.spread > p.panels) CHECK(most == p.piece && walk.handovers == 0, "a worker makes more than its one piece");
    else if (p.sharing == p.workers && thin == 0)
        CHECK(most <= tsr_ceil_div(tiles * panels, p.workers), "%d x %d panels, %d workers: %d panels are the most",
              p.tiles, p.panels, p.workers, (int)most);
    else CHECK(most <= (tsr_ceil_div(tiles, p.workers) + (thin > 0)) * panels, "a worker makes more than whole rounds");
    plans++;
    shared += p.sharing > 0;
    cut += p.pieces > 1;
}

} // namespace

int main(void) {
    const Cut hows[] = {{4, 4, 4, 132, 132}, {4, 16, 16, 132, 66}, {4, 24, 6, 11, 132}, {1, 1, 1, 1, 8}};
    for (const Cut &how : hows)
        for (int64_t workers : {1, 2, 7, 66, 114, 132, 160, 300})
            for (int64_t tiles = 1; tiles < 3 * workers + 10; tiles += 1 + tiles / 9)
                for (int64_t panels : {1, 2, 7, 33, 64, 129, 1000, 1000003}) {
                    check(how, tiles, panels, workers, 0);
                    if (tiles > 5) check(how, tiles, panels, workers, 5);
                }
    /* where 32 bits do not count the panels */
    check({4, 4, 4, 132, 132}, 140, INT32_MAX / 2, 132, 0);
    check({4, 4, 4, 132, 132}, 20, INT32_MAX / 2, 132, 0);
    CHECK(shared > plans / 4 && cut > plans / 10, "%d plans, of which %d share and %d cut", plans, shared, cut);
    return 0;
}
