/* The check of products on the device, product by product (run_state.h): super-blocks of C with doubtful rows are made
 * again, once, from the operands as they are stored. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/place_chunks.h"
#include "app/library/run_state.h"
#include "io/text/text.h"
#include "mpi/schedule/done.h"

/* What a rank's check of a product says. */
typedef struct {
    int64_t product;
    tsr_check_counts counts;
} finding;

static tsr_status note(tsr_run *run, finding found) {
    finding *more = realloc(run->doubtful, (size_t)(run->doubtful_count + 1) * sizeof *more);
    if (!more) return tsr_fail(TSR_ERR_MEMORY, "no memory to note which products the check doubts");
    run->doubtful = more;
    more[run->doubtful_count++] = found;
    return TSR_OK;
}

bool tsr_run_kernel_checks(const tsr_run *run) {
    return run->engine.check && run->kernel->checks && !tsr_run_can_compare(run);
}

tsr_status tsr_run_note_checked(tsr_run *run, int64_t product) {
    const tsr_check_counts *counts = tsr_executor_checked(run->executor);
    double worst;
    memcpy(&worst, &counts->worst_bits, sizeof worst);
    run->mine.rows_checked += (int64_t)counts->judged;
    run->mine.rows_unjudged += (int64_t)counts->unjudged;
    if (counts->doubtful == 0) {
        run->mine.check_worst = fmax(run->mine.check_worst, worst);
        return TSR_OK;
    }
    return note(run, (finding){product, *counts});
}

tsr_status tsr_run_note_changed(tsr_run *run, int64_t product, int64_t row, int64_t col) {
    if (run->problem.gram && col > row) { /* what is above the diagonal is the other's mirror */
        const int64_t swap = row;
        row = col;
        col = swap;
    }
    return note(run, (finding){product, {.doubtful = 1, .wrong = 1, .place = {{row, col}}}});
}

tsr_status tsr_run_note_doubtful(tsr_run *run, int64_t product, const tsr_check_counts *counts) {
    return note(run, (finding){product, *counts});
}

/* ---- what is made again ---------------------------------------------------------------------- */

/* The findings of all of the team's ranks. */
typedef struct {
    finding *all;
    int count;
} findings;

static tsr_status gather(const tsr_run *run, findings *found) {
    MPI_Comm comm = run->grid.ranks;
    int mine = run->doubtful_count * (int)sizeof(finding), ranks, total = 0;
    TSR_TRY(TSR_MPI(MPI_Comm_size(comm, &ranks)));
    int *sizes = calloc(2 * (size_t)ranks, sizeof *sizes);
    if (!sizes) return tsr_fail(TSR_ERR_MEMORY, "no memory to gather what the check found");
    tsr_status status;
    TSR_TRY_DONE(TSR_MPI(MPI_Allgather(&mine, 1, MPI_INT, sizes, 1, MPI_INT, comm)));
    for (int i = 0; i < ranks; i++) {
        sizes[ranks + i] = total;
        total += sizes[i];
    }
    found->count = total / (int)sizeof(finding);
    found->all = malloc((size_t)total + 1);
    if (!found->all) TSR_TRY_DONE(tsr_fail(TSR_ERR_MEMORY, "no memory for what the check found"));
    TSR_TRY_DONE(
        TSR_MPI(MPI_Allgatherv(run->doubtful, mine, MPI_BYTE, found->all, sizes, sizes + ranks, MPI_BYTE, comm)));
done:
    free(sizes);
    return status;
}

/* Of one product: which rectangles of C stay as they are. */
typedef struct {
    const findings *found;
    int64_t product;
} staying;

static bool inside(tsr_rect rect, int64_t row, int64_t col) {
    return row >= rect.row && row < rect.row + rect.rows && col >= rect.col && col < rect.col + rect.cols;
}

static bool stays(void *context, tsr_rect rect) {
    const staying *s = context;
    for (int i = 0; i < s->found->count; i++) {
        const finding *f = &s->found->all[i];
        if (f->product != s->product) continue;
        if (f->counts.doubtful > TSR_CHECK_PLACES) return false; /* not all places are known */
        for (uint64_t place = 0; place < f->counts.doubtful; place++)
            if (inside(rect, f->counts.place[place].row, f->counts.place[place].col)) return false;
    }
    return true;
}

/* Whether the same rows came out the same, and rounding may be why. Of a kernel with a chain of fallbacks another one
 * may have made them the first time: then they are the same in that alone. */
static bool same_again(const tsr_run *run, int64_t product, const tsr_check_counts *now) {
    const bool chain = tsr_gemm_has_chain(run->kernel);
    for (int i = 0; i < run->doubtful_count; i++) {
        const finding *f = &((const finding *)run->doubtful)[i];
        if (f->product == product)
            return now->wrong == 0 &&
                   (chain || (f->counts.doubtful == now->doubtful && f->counts.worst_bits == now->worst_bits));
    }
    return false;
}

const char *tsr_run_device_text(const tsr_run *run, char text[TSR_RUN_DEVICE_CHARS]) {
    const bool cuda = run->facts.kind == TSR_DEVICE_CUDA;
    snprintf(text, TSR_RUN_DEVICE_CHARS, "%s%s%s", run->facts.name, cuda ? " " : "", cuda ? run->facts.bus_id : "");
    return text;
}

/* By how much rows are wrong, where that is known. */
static const char *format_worst(const tsr_run *run, const tsr_check_counts *counts, char *text, size_t chars) {
    double worst;
    memcpy(&worst, &counts->worst_bits, sizeof worst);
    if (tsr_run_kernel_checks(run)) return "do not add up";
    snprintf(text, chars, "differ by up to %.3g times their bound", worst);
    return text;
}

static tsr_status wrong(const tsr_run *run, const tsr_check_counts *counts, const char *how) {
    char device[TSR_RUN_DEVICE_CHARS], worst[64];
    return tsr_fail(TSR_ERR_CHECK,
                    "FAILED: rank %d on %s (%s) made a wrong product%s: %" PRIu64 " rows of C, from (%" PRId64
                    ", %" PRId64 ") on, %s; C is not published, and the device not to be trusted",
                    run->world->rank, run->world->host, tsr_run_device_text(run, device), how, counts->doubtful,
                    counts->place[0].row, counts->place[0].col, format_worst(run, counts, worst, sizeof worst));
}

/* One product's super-blocks once more, by the whole team. *failed: this rank's came out wrong again. */
static tsr_status make_again(tsr_run *run, const findings *found, int64_t product, tsr_status *failed) {
    const struct tsr_done *before = run->plan.done;
    staying s = {found, product};
    struct tsr_done *done = NULL;
    tsr_run_select(run, product);
    TSR_TRY(tsr_done_open(&run->plan, &done));
    tsr_done_find(done, stays, &s);
    run->plan.done = done;
    run->written.again = true;
    if (run->trace) tsr_trace_pause(run->trace, true); /* it has no room for these steps */
    if (tsr_grid_rank(&run->grid) == 0) run->mine.repaired += done->left;
    const tsr_status status = tsr_executor_run(run->executor, &run->mine);
    if (run->trace) tsr_trace_pause(run->trace, false);
    run->plan.done = before;
    tsr_done_close(done);
    TSR_TRY(status);
    const tsr_check_counts *counts = tsr_executor_checked(run->executor);
    if (counts->doubtful == 0) return TSR_OK;
    if (same_again(run, product, counts)) run->mine.rows_rounded += (int64_t)counts->doubtful;
    else *failed = wrong(run, counts, " twice");
    return TSR_OK;
}

/* Each of the products once. */
static tsr_status make_all_again(tsr_run *run, const findings *found, tsr_status *failed) {
    for (int i = 0; i < found->count; i++) {
        bool made = false;
        for (int j = 0; j < i; j++) made |= found->all[j].product == found->all[i].product;
        if (!made) TSR_TRY(make_again(run, found, found->all[i].product, failed));
    }
    return TSR_OK;
}

/* C0 in the caller's memory is C itself, and a file's chunks are written once: then nothing can be made again. */
static const char *kept_from_it(const tsr_run *run) {
    if (run->adds_to_c) return ", and C0 that would be added again is overwritten";
    return tsr_output_chunks(&run->output) > 0 ? ", whose chunks are written" : NULL;
}

bool tsr_run_can_make_again(const tsr_run *run) { return run->engine.check && !kept_from_it(run); }

tsr_status tsr_run_make_doubtful_again(tsr_run *run) {
    if (!run->engine.check || !run->grid.active) return TSR_OK;
    const char *kept = kept_from_it(run);
    findings found = {NULL, 0};
    tsr_status failed = TSR_OK, status;
    TSR_TRY_DONE(gather(run, &found));
    if (!kept) TSR_TRY_DONE(make_all_again(run, &found, &failed));
    if (kept && run->doubtful_count > 0) failed = wrong(run, &((const finding *)run->doubtful)->counts, kept);
    status = tsr_agree(run->grid.ranks, failed);
done:
    free(found.all);
    return status;
}

/* ---- what is said of it ---------------------------------------------------------------------- */

void tsr_run_format_checked(const tsr_run *run, const tsr_rank_record *ranks, char *text, size_t chars) {
    int64_t rows = 0, unjudged = 0;
    int64_t rounded = 0, repaired = 0;
    double worst = 0;
    for (int i = 0; i < run->world->ranks; i++) {
        rows += ranks[i].rows_checked;
        unjudged += ranks[i].rows_unjudged;
        rounded += ranks[i].rows_rounded;
        repaired += ranks[i].repaired;
        worst = fmax(worst, ranks[i].check_worst);
    }
    snprintf(text, chars, "not run");
    if (!run->engine.check) return;
    snprintf(text, chars, "%s", rows == 0 && unjudged > 0 ? "INCOMPLETE" : "PASSED");
    if (tsr_run_kernel_checks(run)) tsr_text_append(text, chars, ": %" PRId64 " rows of products add up exactly", rows);
    else
        tsr_text_append(text, chars, ": %" PRId64 " rows of products, off by %.2g of their bound at most", rows, worst);
    if (unjudged > 0) tsr_text_append(text, chars, ", %" PRId64 " not judged", unjudged);
    if (rounded > 0) tsr_text_append(text, chars, ", %" PRId64 " beyond it twice alike, as rounding is", rounded);
    if (repaired > 0) tsr_text_append(text, chars, ", %" PRId64 " super-blocks made again", repaired);
}
