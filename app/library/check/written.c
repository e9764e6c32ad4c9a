/* What the file of C holds, compared with what was written to it (run_state.h): what left the device and what came of
 * it on the way through memory, page cache, encoders and disk. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/run_state.h"
#include "io/stores.h"

static bool stopped(void *context) { return tsr_run_stopped(context); }

/* Local. The parts of this rank that are wrong; the caller frees *wrong. */
static tsr_status compare(tsr_run *run, bool **wrong) {
    const tsr_written *w = &run->written;
    tsr_store *c = NULL;
    *wrong = calloc((size_t)w->count + 1, sizeof **wrong);
    if (!*wrong) return tsr_fail(TSR_ERR_MEMORY, "no memory to compare %" PRId64 " parts of C", w->count);
    if (w->count == 0) return TSR_OK;
    TSR_TRY(tsr_store_open(&w->desc, TSR_IO_AUTO, NULL, NULL, &c));
    const tsr_status status = tsr_written_compare(w, c, tsr_run_io_threads(run), stopped, run, *wrong);
    tsr_store_close(c);
    return status;
}

static tsr_status differ(const tsr_run *run, const tsr_written_part *part, int64_t count, const char *how) {
    return tsr_fail(TSR_ERR_CHECK,
                    "FAILED: rank %d on %s wrote to '%s', and the file holds something else%s: %" PRId64
                    " parts of C, the first of %" PRId64 "x%" PRId64 " elements at (%" PRId64 ", %" PRId64
                    "); C is not published: check the disk and the memory",
                    run->world->rank, run->world->host, run->output.target, how, count, part->rect.rows,
                    part->rect.cols, part->rect.row, part->rect.col);
}

/* Local. Fails where the file holds something else, *count parts; each is noted, to be made again. */
static tsr_status look(tsr_run *run, const char *how, int64_t *count) {
    const tsr_written *w = &run->written;
    const int64_t start = tsr_run_share(run).start;
    const tsr_written_part *first = NULL;
    bool *wrong = NULL;
    *count = 0;
    run->doubtful_count = 0;
    tsr_status status = compare(run, &wrong);
    for (int64_t i = 0; i < w->count && status == TSR_OK; i++) {
        const tsr_written_part *part = &w->parts[i];
        if (!wrong[i]) continue;
        if (!first) first = part;
        ++*count;
        status =
            tsr_run_note_changed(run, run->problem.batch > 1 ? start : part->matrix, part->rect.row, part->rect.col);
    }
    free(wrong);
    return status == TSR_OK && first ? differ(run, first, *count, how) : status;
}

tsr_status tsr_run_look_at_written(tsr_run *run, const char *how, int64_t *changed) {
    int64_t count = 0;
    tsr_run_phase(run, TSR_PHASE_CHECK);
    const tsr_status status = look(run, how, &count);
    tsr_run_phase_done(run);
    TSR_TRY(TSR_MPI(MPI_Allreduce(&count, changed, 1, MPI_INT64_T, MPI_SUM, run->world->comm)));
    return tsr_agree(run->world->comm, status);
}
