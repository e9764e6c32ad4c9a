/* Runs that go on where an earlier one ended (run_state.h): what C is made of in words, to be compared; which parts of
 * it are whole; and what is left out of the plan for it. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/run_state.h"
#include "io/files/crc32c.h"
#include "io/output/output_chunks.h"
#include "io/pieces/pieces.h"
#include "io/text/text.h"
#include "io/text/text_file.h"
#include "mpi/schedule/done.h"

/* ---- what C is made of ----------------------------------------------------------------------- */

/* What is selected of each dimension. */
static void say_part(char *text, const char *role, const tsr_matrix_name *name) {
    tsr_text_append(text, TSR_JOURNAL_SETTINGS, "part of %s:", role);
    for (int d = 0; d < tsr_leads_of(name->dimensions); d++)
        tsr_text_append(text, TSR_JOURNAL_SETTINGS, " %" PRId64 ":%" PRId64, name->lead0[d], name->lead1[d]);
    tsr_text_append(text, TSR_JOURNAL_SETTINGS, " %" PRId64 ":%" PRId64 " %" PRId64 ":%" PRId64 "\n", name->row0,
                    name->row1, name->col0, name->col1);
}

/* Of a file that C goes into, `out`, no more than the name and the part: it is another as soon as C is there, and the
 * journal notes for itself whether somebody else changed it. */
static void say_file(char *text, const char *role, const tsr_store_desc *desc, const char *out) {
    char real[PATH_MAX];
    const tsr_file_state *state = &desc->file_state;
    const tsr_matrix_name *name = &desc->name;
    tsr_text_append(text, TSR_JOURNAL_SETTINGS, "%s: %s:%s\n", role, realpath(name->file, real) ? real : name->file,
                    name->path);
    say_part(text, role, name);
    if (tsr_same_file(name->file, out)) return;
    tsr_text_append(text, TSR_JOURNAL_SETTINGS, "shape of %s: %" PRId64 "x%" PRId64 "x%" PRId64 " %s\n", role,
                    desc->matrices, desc->rows, desc->cols, desc->type_name);
    tsr_text_append(text, TSR_JOURNAL_SETTINGS, "bytes of %s's file: %" PRId64 "\n", role, state->bytes);
    tsr_text_append(text, TSR_JOURNAL_SETTINGS, "last change of %s's file: %" PRId64 ".%09" PRId64 "\n", role,
                    state->seconds, state->nanoseconds);
    tsr_text_append(text, TSR_JOURNAL_SETTINGS, "place of %s in its file: %" PRId64 "\n", role, desc->offset);
}

/* Of what lies in several places, a sum of what there is to say of each. */
static void say_pieces(char *text, const char *role, const tsr_pieces *pieces) {
    uint32_t sum = 0;
    for (int64_t i = 0; pieces && i < pieces->count; i++) {
        const tsr_store_desc *desc = &pieces->piece[i].desc;
        const int64_t numbers[] = {desc->file_state.bytes, desc->file_state.seconds, desc->file_state.nanoseconds,
                                   desc->offset};
        sum = tsr_crc32c(sum, desc->name.file, strlen(desc->name.file));
        sum = tsr_crc32c(sum, numbers, sizeof numbers);
    }
    if (pieces)
        tsr_text_append(text, TSR_JOURNAL_SETTINGS, "pieces of %s: %" PRId64 ", %08x\n", role, pieces->count, sum);
}

static void say_operand(char *text, const char *role, const tsr_store_desc *desc, const char *out, bool transposed,
                        bool conjugate) {
    say_file(text, role, desc, out);
    say_pieces(text, role, desc->pieces);
    tsr_text_append(text, TSR_JOURNAL_SETTINGS, "use of %s: %s%s\n", role, transposed ? "transposed" : "as it is",
                    conjugate ? ", conjugated" : "");
}

static void say_filters(char *text, const tsr_output_spec *spec) {
    if (spec->chunk_rows == 0) return;
    const tsr_pipeline pipeline = tsr_output_pipeline(spec);
    tsr_text_append(text, TSR_JOURNAL_SETTINGS, "filters:%s", pipeline.count == 0 ? " none" : "");
    for (int i = 0; i < pipeline.count; i++) {
        char filter[128];
        tsr_text_append(text, TSR_JOURNAL_SETTINGS, " %s", tsr_filter_text(&pipeline.use[i], filter, sizeof filter));
    }
    tsr_text_append(text, TSR_JOURNAL_SETTINGS, "\n");
}

/* In the caller's order, by which nobody minds how A and B are called here. */
static void say_settings(const tsr_run *run, const tsr_run_options *options, char *text) {
    const tsr_run_product *product = &options->product;
    const tsr_run_target *target = &options->target;
    const tsr_problem *x = &run->problem;
    const size_t chars = TSR_JOURNAL_SETTINGS;
    const bool swap = run->swapped;
    const char *out = run->spec.name.file;
    text[0] = '\0';
    tsr_text_append(text, chars, "tessera: %s\npath: %s\n", TSR_VERSION,
                    *run->spec.name.path ? run->spec.name.path : "/C");
    tsr_text_append(text, chars, "alpha: %.17g%+.17gj\nbeta: %.17g%+.17gj\n", product->alpha.re, product->alpha.im,
                    product->beta.re, product->beta.im);
    say_operand(text, "A", swap ? &run->from.b : &run->from.a, out, product->transpose_a, product->conjugate_a);
    say_operand(text, "B", swap ? &run->from.a : &run->from.b, out, product->transpose_b, product->conjugate_b);
    if (x->add_c0) say_operand(text, "C0", &run->from.c0, out, false, false);
    tsr_text_append(text, chars, "order: %s\ntype: %s\ncomputed in: %s\n", swap ? "col" : "row", tsr_dtype_name(x->out),
                    tsr_dtype_name(x->type));
    tsr_text_append(text, chars, "triangle: %s%s\n", tsr_triangle_name(x->triangle), x->gram ? ", gram" : "");
    tsr_text_append(text, chars, "accuracy: %s\nkernel: %s\n", tsr_accuracy_name(run->engine.accuracy),
                    run->engine.kernel);
    tsr_text_append(text, chars, "reproducible: %s\n", run->engine.reproducible ? "yes" : "no");
    tsr_text_append(text, chars, "chunks: %" PRId64 "x%" PRId64 "\nattributes: %s\n", run->spec.chunk_rows,
                    run->spec.chunk_cols, target->attributes ? "A's" : "none");
    tsr_text_append(text, chars, "checksum: %s\n", target->checksum ? "fletcher32" : "none");
    say_filters(text, &run->spec);
}

/* ---- what was left --------------------------------------------------------------------------- */

tsr_status tsr_run_refuse_resume(const tsr_run *run) {
    if (tsr_run_in_memory(run, TSR_RUN_C))
        return tsr_fail(TSR_ERR_USAGE, "--resume goes on with a file, and C is in memory: leave it out");
    if (run->io == TSR_IO_HDF5 || run->io == TSR_IO_MPIO)
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "--resume with --io %s: HDF5 cannot promise what its files hold after a crash; use --io direct",
                        tsr_io_mode_name(run->io));
    return TSR_OK;
}

typedef struct {
    bool complete, unfinished, on_disk;
    int64_t cut[2];
    int64_t count;
} left_behind;

/* Rank 0. */
static tsr_status find(tsr_run *run, const tsr_run_options *options, left_behind *left) {
    tsr_run_resume *r = &run->resume;
    tsr_resumed *found = calloc(1, sizeof *found);
    char *settings = malloc(TSR_JOURNAL_SETTINGS);
    r->head = calloc(1, sizeof *r->head);
    tsr_status status = TSR_OK;
    if (!found || !settings || !r->head) status = tsr_fail(TSR_ERR_MEMORY, "no memory to look for an unfinished C");
    if (status == TSR_OK) say_settings(run, options, settings);
    if (status == TSR_OK) status = tsr_resume_find(&run->spec, settings, found);
    if (status == TSR_OK && strlen(settings) + 1 == TSR_JOURNAL_SETTINGS)
        status = tsr_fail(TSR_ERR_USAGE, "--resume: the names of these files are too long; use shorter ones");
    if (status == TSR_OK) {
        *left = (left_behind){.complete = found->left == TSR_LEFT_COMPLETE,
                              .unfinished = found->left == TSR_LEFT_UNFINISHED,
                              .on_disk = found->on_disk};
        if (left->unfinished) {
            *left = (left_behind){.unfinished = true,
                                  .on_disk = found->on_disk,
                                  .cut = {found->head.cut_m, found->head.cut_n},
                                  .count = found->count};
            *r->head = found->head;
            r->parts = found->parts;
        } else snprintf(r->head->settings, sizeof r->head->settings, "%s", settings);
    }
    free(settings);
    free(found);
    return status;
}

tsr_status tsr_run_find_left(tsr_run *run, const tsr_run_options *options) {
    tsr_run_resume *r = &run->resume;
    left_behind left = {.count = 0};
    TSR_TRY(
        tsr_share(run->world->comm, run->world->rank == 0 ? find(run, options, &left) : TSR_OK, &left, sizeof left));
    r->complete = left.complete;
    r->unfinished = left.unfinished;
    r->count = left.count;
    memcpy(r->cut, left.cut, sizeof r->cut);
    run->problem.c_on_disk = left.on_disk;
    return TSR_OK;
}

tsr_status tsr_run_take_left(tsr_run *run) {
    run->output = run->resume.head->output;
    return run->spec.chunk_rows > 0 ? tsr_output_begin_again(&run->spec, &run->output) : TSR_OK;
}

/* ---- what is whole --------------------------------------------------------------------------- */

/* Which chunks are whole, each of which counts once: a run that makes super-blocks of another size makes some again. */
static tsr_status find_chunks(tsr_run *run) {
    tsr_run_resume *r = &run->resume;
    const int64_t chunks = tsr_output_chunks(&run->output);
    int64_t kept = 0;
    if (chunks == 0) return TSR_OK;
    r->chunk = calloc((size_t)chunks, sizeof *r->chunk);
    if (!r->chunk) return tsr_fail(TSR_ERR_MEMORY, "no memory to note which of %" PRId64 " chunks are whole", chunks);
    for (int64_t i = 0; i < r->count; i++) {
        const int64_t number = r->parts[i].number;
        if (number < 0 || number >= chunks || r->chunk[number]) continue;
        r->chunk[number] = true;
        r->parts[kept++] = r->parts[i];
    }
    r->count = kept;
    return TSR_OK;
}

/* Drops parts that do not hold what they should: each rank looks at some. */
static tsr_status check_parts(tsr_run *run) {
    const tsr_world *world = run->world;
    tsr_run_resume *r = &run->resume;
    tsr_status status = TSR_OK;
    bool *whole = calloc((size_t)r->count + 1, sizeof *whole);
    if (!r->parts) r->parts = malloc(((size_t)r->count + 1) * sizeof *r->parts);
    if (!whole || !r->parts) status = tsr_fail(TSR_ERR_MEMORY, "no memory for %" PRId64 " parts of C", r->count);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(tsr_broadcast(world->comm, r->parts, (size_t)r->count * sizeof *r->parts));
    status = tsr_resume_check(&run->output, r->parts, r->count, world->rank, world->ranks, whole);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    for (int64_t at = 0; at < r->count; at += INT_MAX) {
        const int some = (int)tsr_min(r->count - at, INT_MAX);
        TSR_TRY_DONE(TSR_MPI(MPI_Allreduce(MPI_IN_PLACE, whole + at, some, MPI_C_BOOL, MPI_LOR, world->comm)));
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < r->count; i++)
        if (whole[i]) r->parts[kept++] = r->parts[i];
    r->count = kept;
    status = tsr_agree(world->comm, find_chunks(run));
done:
    free(whole);
    return status;
}

static tsr_status sync_output(void *context) {
    const tsr_run *run = context;
    return run->c->ops->sync(run->c);
}

/* Chunks wait in files of this run from here on. */
static tsr_status open_journal(tsr_run *run) {
    const int rank = run->world->rank;
    tsr_run_resume *r = &run->resume;
    TSR_TRY(tsr_journal_open(run->output.journal, rank, sync_output, run, &r->journal));
    if (tsr_output_chunks(&run->output) > 0) tsr_chunks_name(run->c, tsr_journal_generation(r->journal), rank);
    return TSR_OK;
}

tsr_status tsr_run_keep_parts(tsr_run *run) {
    tsr_run_resume *r = &run->resume;
    const tsr_world *world = run->world;
    tsr_status status = TSR_OK;
    if (!r->asked) return TSR_OK;
    TSR_TRY(check_parts(run));
    if (world->rank == 0) {
        r->head->generation++;
        r->head->ranks = world->ranks;
        if (!r->unfinished) {
            r->head->cut_m = run->plan.block_m;
            r->head->cut_n = run->plan.block_n;
        }
        status = tsr_resume_keep(&run->output, r->head, r->parts, r->count);
    }
    TSR_TRY(tsr_share(world->comm, status, run->output.journal, sizeof run->output.journal));
    if (run->grid.active) status = open_journal(run);
    return tsr_agree(world->comm, status);
}

/* ---- one product ----------------------------------------------------------------------------- */

static int64_t rows_before(const tsr_store *c) { return tsr_store_matrices_before(&c->desc) * c->desc.dataset_rows; }

/* The rectangle's edges are chunk lines, or the matrix's. */
static bool chunks_are_whole(const tsr_run *run, tsr_rect rect) {
    const tsr_store_desc *desc = &run->c->desc;
    for (int64_t i = rect.row / desc->chunk_rows; i * desc->chunk_rows < rect.row + rect.rows; i++)
        for (int64_t j = rect.col / desc->chunk_cols; j * desc->chunk_cols < rect.col + rect.cols; j++)
            if (!run->resume.chunk[tsr_encoded_number(desc, i, j)]) return false;
    return true;
}

static bool is_whole(void *context, tsr_rect rect) {
    const tsr_run *run = context;
    const tsr_run_resume *r = &run->resume;
    if (r->chunk) return chunks_are_whole(run, rect);
    rect.row += r->product_rows;
    return tsr_parts_hold(r->parts, r->count, rect);
}

tsr_status tsr_run_leave_out(tsr_run *run, bool *nothing) {
    tsr_run_resume *r = &run->resume;
    *nothing = false;
    if (r->count == 0) return TSR_OK;
    if (!r->done) TSR_TRY(tsr_done_open(&run->plan, &r->done));
    r->product_rows = rows_before(run->c);
    tsr_done_find(r->done, is_whole, run);
    run->plan.done = r->done;
    *nothing = r->done->left == 0;
    return TSR_OK;
}

/* The chunks that were written since the last call and lie in the rectangle. Others are of a rectangle that the check
 * doubts: nobody is told of it, and they are no parts. */
static tsr_status note_chunks(tsr_run *run, tsr_rect rect) {
    tsr_part *parts;
    int64_t count, inside = 0;
    rect.row += run->c->desc.matrix * run->c->desc.rows;
    tsr_chunks_fresh(run->c, &parts, &count);
    for (int64_t i = 0; i < count; i++)
        if (tsr_parts_hold(&(tsr_part){.rect = rect}, 1, parts[i].rect)) parts[inside++] = parts[i];
    const tsr_status status = tsr_journal_add(run->resume.journal, parts, inside);
    free(parts);
    return status;
}

tsr_status tsr_run_note_part(tsr_run *run, tsr_rect rect, uint32_t sum) {
    if (tsr_output_chunks(&run->output) > 0) return note_chunks(run, rect);
    tsr_part part = {.rect = rect, .sum = sum};
    if (tsr_rect_empty(rect)) return TSR_OK;
    part.rect.row += rows_before(run->c);
    return tsr_journal_add(run->resume.journal, &part, 1);
}

tsr_status tsr_run_commit_parts(tsr_run *run) {
    return run->resume.journal ? tsr_journal_commit(run->resume.journal) : TSR_OK;
}

static void see_kept(void *context, const tsr_leftover *left) {
    tsr_leftover *all = context;
    all->bytes += left->bytes;
    all->of_bytes += left->of_bytes;
}

void tsr_run_say_kept(const tsr_run *run) {
    tsr_leftover kept = {.bytes = 0};
    if (!run->resume.asked || run->world->rank != 0) return;
    (void)tsr_resume_list(run->output.target, see_kept, &kept);
    (void)tsr_fail(TSR_ERR_STOPPED, "stopped on request; %.0f %% of C is kept, and the same command goes on with it",
                   kept.of_bytes > 0 ? 100.0 * (double)kept.bytes / (double)kept.of_bytes : 0.0);
}

void tsr_run_leave_resume(tsr_run *run, tsr_status status) {
    tsr_run_resume *r = &run->resume;
    tsr_journal_close(r->journal);
    if (status == TSR_ERR_CHECK && run->world->rank == 0 && run->output.journal[0]) tsr_resume_forget(&run->output);
    tsr_done_close(r->done);
    free(r->chunk);
    free(r->parts);
    free(r->head);
    *r = (tsr_run_resume){.asked = r->asked, .complete = r->complete};
}
