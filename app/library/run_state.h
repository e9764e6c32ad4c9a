/* One multiplication while it is under way: what the files of app/library share with each other, with --dry-run and
 * with bench multiply. */
#ifndef TSR_APP_LIBRARY_RUN_STATE_H
#define TSR_APP_LIBRARY_RUN_STATE_H

#include <stdatomic.h>

#include "app/library/run.h"
#include "app/products/shapes.h"
#include "io/describe/carried.h"
#include "io/digest/digest.h"
#include "io/digest/written.h"
#include "io/output/resume/resume.h"
#include "mpi/distribute/redistribute.h"
#include "mpi/execute/execute.h"
#include "mpi/execute/task.h"
#include "mpi/ranks/partition.h"
#include "mpi/ranks/rank_device.h"
#include "mpi/watch/watch.h"

/* What rank 0 finds in the files, handed to all. */
typedef struct {
    tsr_store_desc a, b, c0;
} tsr_run_sources;

/* An operand in memory (run.h), and what this rank holds of it while the plan runs. */
typedef struct {
    const tsr_distributed *matrix; /* NULL: it is in a file; not owned */
    tsr_holdings holdings;
    tsr_rects_of_ranks all;
    bool pinned; /* the caller's array, for this run alone */
} tsr_run_memory;

enum { TSR_RUN_A, TSR_RUN_B, TSR_RUN_C0, TSR_RUN_C, TSR_RUN_MEMORIES };

/* Redistributions of a run, in their order: A, B and C0 before the product, C after it. */
enum { TSR_RUN_MOVES = TSR_TRACE_REDISTRIBUTIONS };

/* One of them as it will be: bytes from rank to rank, into the rank that receives most and of all. */
typedef struct {
    double most, all;
} tsr_run_move;

/* A run whose output may be left unfinished (target.resume). */
typedef struct {
    bool asked;
    bool dry;               /* a plan alone: nothing is looked for */
    bool complete;          /* C is there: nothing is left to do */
    bool unfinished;        /* an earlier run left an output to go on with */
    tsr_journal_head *head; /* rank 0: of that, or of this run's journal */
    int64_t cut[2];         /* super-blocks of the first run; 0, 0: this is it */
    tsr_part *parts;        /* of C that are whole */
    int64_t count;
    bool *chunk;           /* of chunked C, by number: it is whole; NULL: C is contiguous */
    int64_t product_rows;  /* rows of C before those of the product that runs, as parts count them */
    tsr_journal *journal;  /* NULL: this rank writes nothing */
    struct tsr_done *done; /* of the product that runs */
} tsr_run_resume;

#define TSR_RUN_DEVICE_CHARS 160
#define TSR_RUN_POPULATORS 4
/* A thread that brings pages of C into being while A and B are multiplied. */
typedef struct {
    tsr_task task;
    struct tsr_run *run;
    int number;
} tsr_populator;

typedef struct tsr_run {
    const tsr_world *world;
    const tsr_run_calls *calls;
    tsr_watch *watch;      /* NULL: nobody watches */
    atomic_bool gives_up;  /* a thread ends the job */
    tsr_listener progress; /* of phases: the caller's, by way of the watch */
    tsr_run_engine engine;
    tsr_run_limits limits;
    tsr_io_mode io;         /* asked for */
    int trials;             /* of the check; 0: none */
    const char *trace_file; /* tsr_run_trace sets both. NULL: none; not owned */
    bool traced;            /* steps are kept: for that file, or the caller's sink */
    bool swapped;           /* A, B and the grid as the caller sees them are B, A and its mirror here */
    tsr_run_sources from;
    tsr_run_memory memory[TSR_RUN_MEMORIES]; /* as they are here, swapped or not */
    bool adds_to_c;                          /* C0 is what C's memory holds */
    tsr_run_memory kept;                     /* that, for the check */
    tsr_populator populators[TSR_RUN_POPULATORS];
    bool one_memory;      /* A and B are the same elements in memory, on every rank */
    size_t message_bytes; /* of their redistribution; 0: nothing is moved */
    double memory_bytes;  /* of host memory that they take beside the plan, on the rank with most */
    /* of the redistribution: seconds of the rank that took longest, bytes into the one that received most, and bytes
     * that went from rank to rank, of all; of this rank alone until C is returned. A plan alone has the bytes. */
    double redistribute_seconds, redistribute_most, redistribute_bytes;
    tsr_run_move moves[TSR_RUN_MOVES]; /* of a plan alone */
    tsr_products products;             /* which of their matrices are multiplied with which */
    /* Ranks that multiply together: 0, 1: all of the world; else teams of team_ranks each, which share the products */
    int teams, team_ranks;
    tsr_world team;        /* as its ranks see it; comm is MPI_COMM_NULL where there is none for this rank */
    int64_t products_done; /* of this rank's team */
    tsr_output_spec spec;
    bool attributes; /* those of A as the caller sees it go with C */
    /* Rank 0, until C is made: what describes its dimensions, as spec.carried has it, and whose that is */
    tsr_carried *carried;
    const tsr_store_desc *carried_of[TSR_DIMENSIONS_MAX];
    tsr_output output;
    tsr_run_resume resume;
    tsr_task allocation; /* rank 0: of the output's bytes on the disk */
    tsr_device *device;
    tsr_device_facts facts;
    int shared;  /* ranks on this rank's device */
    int threads; /* that multiply: BLAS's on a CPU */
    const tsr_gemm_kernel *kernel;
    tsr_gemm_kernel reproducible; /* what `kernel` is with --reproducible, unless that is `exact` */
    tsr_gemm_request request;     /* what this rank chose a kernel for */
    const tsr_transport_ops *transport_ops;
    tsr_problem problem;
    tsr_plan plan;
    tsr_grid grid;
    tsr_transport *transport;
    tsr_store *a, *b, *c0, *c;
    tsr_io_mode io_used;
    void **buffers; /* the plan's, until the executor has them */
    tsr_executor *executor;
    tsr_rank_record mine;
    tsr_trace *trace;   /* NULL: not asked for, or this rank is idle */
    double trace_bytes; /* of host memory on the rank with the most steps */
    /* when this rank began, and the run's length: first read to last byte synced, of the rank that took longest */
    double first_read, seconds;
    double startup_seconds[TSR_STARTUP_COUNT], startup_marked; /* parts so far, and when the last one ended */
    int64_t overflows;         /* elements of C, of all ranks, that its type made infinite */
    int64_t read_overflows[3]; /* finite elements of A, B and C0 that this rank's closed stores read as Inf */
    char check[384];
    double check_seconds; /* of the check of files */
    void *doubtful;       /* product_check.c's: what the check of products found on this rank, */
    int doubtful_count;
    bool digested;     /* C's digest goes into the record: */
    tsr_digest digest; /* of what this rank wrote */
    char digest_text[TSR_DIGEST_CHARS];
    tsr_written written;  /* with a check of files: what this rank wrote, */
    tsr_digest read_back; /* and what it read of C to compare it */
} tsr_run;

/* Steps are kept for a file, NULL: none, and where `told` for the caller's sink. */
static inline void tsr_run_trace(tsr_run *run, const char *file, bool told) {
    run->trace_file = file;
    run->traced = file || told;
}

/* A part of the start-up ends now; it began where the last one ended. What others do meanwhile counts only when it
 * is waited for. */
static inline void tsr_run_mark(tsr_run *run, tsr_startup part) {
    double now = tsr_now_seconds();
    run->startup_seconds[part] += now - run->startup_marked;
    run->startup_marked = now;
}

/* What the executor runs one after the other: products, or all of them at once where they are a stack that one plan
 * makes (tsr_problem.batch). */
static inline int64_t tsr_run_rounds(const tsr_run *run) { return run->problem.batch > 1 ? 1 : run->products.count; }

/* Of one round; of a Gram matrix those of the half that is multiplied, about. */
static inline double tsr_run_flops(const tsr_run *run) {
    return tsr_problem_flops(&run->problem) / (run->problem.gram ? 2 : 1);
}
/* What the kernel loses of the operands. */
static inline tsr_accuracy tsr_run_loss(const tsr_run *run) {
    const tsr_operand *x = run->problem.operand;
    return tsr_gemm_loss(run->kernel, tsr_dtype_part(x[TSR_OPERAND_A].element.dtype),
                         tsr_dtype_part(x[TSR_OPERAND_B].element.dtype));
}

/* What a trace has room for: the steps, and redistributions. */
static inline int64_t tsr_run_trace_steps(const tsr_run *run, int64_t steps) {
    return steps + (run->message_bytes > 0 ? TSR_RUN_MOVES : 0);
}

/* Ranks that one product is planned for, this rank's number among them (beyond them where it multiplies nothing), and
 * the products that its team makes. */
static inline int tsr_run_team_ranks(const tsr_run *run) {
    return run->teams > 1 ? run->team_ranks : run->world->ranks;
}
static inline int tsr_run_team_rank(const tsr_run *run) {
    const int rank = run->world->rank;
    if (run->teams <= 1) return rank;
    return rank < run->teams * run->team_ranks ? rank % run->team_ranks : run->team_ranks;
}
static inline tsr_span tsr_run_share(const tsr_run *run) {
    if (run->teams <= 1) return (tsr_span){0, tsr_run_rounds(run)};
    return tsr_partition(tsr_run_rounds(run), run->teams, run->world->rank / run->team_ranks);
}

/* Work on files besides the plan's steps begins, and ends. */
static inline void tsr_run_phase(tsr_run *run, tsr_phase phase) { tsr_signs_phase(tsr_watch_signs(run->watch), phase); }
static inline void tsr_run_phase_done(tsr_run *run) { tsr_signs_phase_done(tsr_watch_signs(run->watch)); }

static inline void tsr_run_stage(const tsr_run *run, const char *stage) {
    if (run->calls->stage) run->calls->stage(run->calls->context, stage);
}

/* Whether this rank was asked to stop; and as a status. */
static inline bool tsr_run_stopped(const tsr_run *run) {
    return run->calls->stopped && run->calls->stopped(run->calls->context);
}
static inline tsr_status tsr_run_go_on(const tsr_run *run) {
    if (!tsr_run_stopped(run)) return TSR_OK;
    return tsr_fail(TSR_ERR_STOPPED, "cancelled; nothing was written under the output's name");
}

/* Where a comment does not say Local: collective, the same status on every rank. */

/* distributed.c: operands in memory. */
static inline bool tsr_run_in_memory(const tsr_run *run, int which) { return run->memory[which].matrix != NULL; }
static inline const tsr_store_desc *tsr_run_desc(const tsr_run *run, int which) {
    const tsr_store_desc *const of[TSR_RUN_MEMORIES] = {&run->from.a, &run->from.b, &run->from.c0, &run->output.desc};
    return of[which];
}
/* Whose memory C0 is in, where it is in memory. */
static inline int tsr_run_place_of_c0(const tsr_run *run) { return run->adds_to_c ? TSR_RUN_C : TSR_RUN_C0; }
/* Which are, and that they can be multiplied. */
tsr_status tsr_run_take_memory(tsr_run *run, const tsr_run_product *product);
/* Local. The description of one that is in memory. */
tsr_status tsr_run_describe_memory(const tsr_run *run, int which, tsr_store_desc *desc);
/* Local. The matrices of an operand that products of a stack take, with memory to be freed; of C that they make. */
tsr_status tsr_run_stacked(const tsr_run *run, int which, tsr_span products, tsr_stacked *of);
/* Arrays that ranks share are pinned, where the device copies from and to them itself. */
tsr_status tsr_run_pin_memory(tsr_run *run);
/* What the plan makes each rank hold, and the memory it takes (run->memory_bytes), which is not taken yet. */
tsr_status tsr_run_find_holdings(tsr_run *run);
tsr_status tsr_run_allocate_holdings(tsr_run *run);
/* What will be moved, by the plan (run->moves), without memory for it. */
tsr_status tsr_run_forecast_moves(tsr_run *run);
/* Seconds that the redistribution takes at the rate that the plan counts on. Local. */
double tsr_run_move_seconds(const tsr_run *run);
/* From the caller's arrays to what this rank reads, and back what it wrote. Seconds and bytes go to the record. */
tsr_status tsr_run_fetch_memory(tsr_run *run);
tsr_status tsr_run_return_memory(tsr_run *run);
/* Local. Fresh pages of a caller's C are made while the product is, where the write lane would wait for each; and the
 * end of that. */
void tsr_run_populate(tsr_run *run);
void tsr_run_populated(tsr_run *run);
void tsr_run_leave_memory(tsr_run *run); /* Local. */

/* planning/run_problem.c: what is multiplied: the files, the problem, where the product goes. */
tsr_status tsr_run_describe(tsr_run *run, const tsr_run_options *options);
/* What comes of it: nothing is looked for but shapes and types. */
tsr_status tsr_run_describe_shape(tsr_run *run, const tsr_run_product *product, tsr_run_shape *shape);
/* Local. Notes why C is f64 where nobody asked for that, and warns that C may not be exact. */
void tsr_run_explain_types(const tsr_run *run, const tsr_run_product *product);

/* planning/engine_choice.c: with what it is multiplied: device, kernel, transport, plan. */
tsr_status tsr_run_choose(tsr_run *run, tsr_device_opening *opening);

/* planning/memory.c: the plan within this job's memory. */
tsr_status tsr_run_make_plan(tsr_run *run);
void tsr_run_leave_chunks(tsr_run *run); /* Local. Where the chunks of what is read are is not wanted any more */

void tsr_run_leave_pieces(tsr_run *run); /* Local. Nor where their elements lie: no input is opened any more */

/* resume/resume.c: outputs that may be left unfinished; nothing happens without target.resume. */
/* What an earlier run left of C; run->resume says it. */
tsr_status tsr_run_find_left(tsr_run *run, const tsr_run_options *options);
tsr_status tsr_run_refuse_resume(const tsr_run *run); /* Local. What cannot be left unfinished */
/* Local, rank 0. The output that was left, in run->output. */
tsr_status tsr_run_take_left(tsr_run *run);
/* Checks what was left, notes what is whole, and opens the journal: from here on the output stays. */
tsr_status tsr_run_keep_parts(tsr_run *run);
/* Local, an active rank: what the plan leaves out of the product that is selected, and whether that is all. */
tsr_status tsr_run_leave_out(tsr_run *run, bool *nothing);
/* Local. A rectangle of C was written (tsr_execution.written). */
tsr_status tsr_run_note_part(tsr_run *run, tsr_rect rect, uint32_t sum);
/* Local. Records what was written. */
tsr_status tsr_run_commit_parts(tsr_run *run);
/* Local. The message of a run that was stopped: how much of C is kept. */
void tsr_run_say_kept(const tsr_run *run);
/* Local. Memory, thread and file of the journal; where the check found C wrong, what was kept, too. */
void tsr_run_leave_resume(tsr_run *run, tsr_status status);

/* record.c: the digest; nothing happens without target.digest. Local, when C is open: what is written counts, for the
 * check of files, too. */
tsr_status tsr_run_sum_up_writes(tsr_run *run);
/* When C is whole: the digest of it, in run->digest_text on rank 0. */
tsr_status tsr_run_find_digest(tsr_run *run);

/* prepare.c: from the plan to an open executor. */
tsr_status tsr_run_prepare(tsr_run *run);
tsr_status tsr_run_connect(tsr_run *run); /* of these the grid and the transport */
tsr_status
tsr_run_open_trace(tsr_run *run);      /* Local, an active rank: room for all steps of its plan, where asked for */
int tsr_run_cores(const tsr_run *run); /* Local. This rank's share, or fewer where the limit is lower */
/* Local. Threads that read or write at once: the limit, or half of the cores, 8 at most; never more than threads. */
int tsr_run_io_threads(const tsr_run *run);
/* Local. Those of them that write: all of its cores where C's chunks are encoded and nobody set a limit. */
int tsr_run_write_threads(const tsr_run *run);

/* check/product_check.c: products as the device checked them (engine.check). Local: of the product that was multiplied
 * last, into run->mine. */
tsr_status tsr_run_note_checked(tsr_run *run, int64_t product);
/* Collective over the team's active ranks: super-blocks with doubtful rows, once. TSR_ERR_CHECK where they come out
 * wrong again. */
tsr_status tsr_run_make_doubtful_again(tsr_run *run);
/* Local. What else is to be made again: the super-block of that product with this element of C. */
tsr_status tsr_run_note_changed(tsr_run *run, int64_t product, int64_t row, int64_t col);
/* The same where the comparison of files found such rows: of their places, or of all (TSR_CHECK_PLACES). */
tsr_status tsr_run_note_doubtful(tsr_run *run, int64_t product, const tsr_check_counts *counts);
bool tsr_run_can_make_again(const tsr_run *run);
bool tsr_run_kernel_checks(const tsr_run *run); /* Local. The kernel checks its products itself; alike on every rank */
/* Local. "NAME BUS_ID" of this rank's device, for a message. */
const char *tsr_run_device_text(const tsr_run *run, char text[TSR_RUN_DEVICE_CHARS]);
/* check/written.c: what the file holds, compared with what was written to it. TSR_ERR_CHECK on all ranks where parts of
 * any differ, *changed in all; they are noted to be made again. `how`: for the message. */
tsr_status tsr_run_look_at_written(tsr_run *run, const char *how, int64_t *changed);
#define TSR_RUN_CHANGED                                                                                                \
    "%lld part%s of C came to the file as something else than was written: made again; check the disk and the memory"
/* Local. "PASSED: …" of all ranks. */
void tsr_run_format_checked(const tsr_run *run, const tsr_rank_record *ranks, char *text, size_t chars);
/* run.c. Local. The matrices of a product. */
void tsr_run_select(tsr_run *run, int64_t product);

/* check/files.c: the check of files; nothing happens where none is asked for (trials). First, while the inputs are
 * open: what the file holds against what was written, unless the comparison will say it. Then C against A and B, by the
 * device where it can, else by the host. What is wrong is made again, once. */
tsr_status tsr_run_check_written(tsr_run *run);
tsr_status tsr_run_check_files(tsr_run *run, const tsr_run_options *options);

/* What a comparison found, on every rank. */
typedef struct {
    bool right;      /* of a C that is not found wrong; false: another check has to say (check/check.c) */
    bool unchanged;  /* the file holds what was written to it; false: nobody looked */
    int64_t changed; /* parts that it does not hold; else */
    int64_t wrong;   /* rows that A and B do not make */
} tsr_run_compared;
/* check/compare.c: C against A and B by the device, all three read from their files again. TSR_ERR_CHECK on all ranks
 * where C is wrong: what is to be made again is noted. `how`: for the message. The inputs are closed before and
 * after. */
tsr_status tsr_run_compare(tsr_run *run, const char *how, tsr_run_compared *compared);
bool tsr_run_compares_written(const tsr_run *run); /* Local. It looks for what changed, too; the same on every rank */
bool tsr_run_can_compare(const tsr_run *run);      /* Local. Such a product, and such files; the same on every rank */
#define TSR_RUN_READ_WRONG                                                                                             \
    "%llu row%s of C differed from A and B when they were read for the check, and not when they were read again: "     \
    "check "                                                                                                           \
    "the disk and the memory"
#define TSR_RUN_WRONG_FILES                                                                                            \
    "%lld row%s not what A and B make, as their files were read again: made again; check the disk and the memory"
/* prepare.c: A and B, and what was written to C, to be read; the inputs were closed. Collective over the active
 * ranks. */
tsr_status tsr_run_open_inputs(tsr_run *run);
tsr_status tsr_run_open_written(tsr_run *run);
void tsr_run_close_inputs(tsr_run *run); /* run.c */
/* Local. With buffers of its own where they are not there. */
tsr_status tsr_run_open_executor(tsr_run *run);
void tsr_run_close_executor(tsr_run *run); /* Local. If there is one; none is there then */
/* run.c: this rank fails while others may be inside communication. */
_Noreturn void tsr_run_give_up(tsr_run *run, tsr_status status);

/* check/check.c: C against A, B and C0, where trials are asked for. */
tsr_status tsr_run_check(tsr_run *run, const tsr_run_product *product);
/* Local. Host memory that this rank's shares of matrices in memory take then, and C0's until then. */
tsr_status tsr_run_check_bytes(const tsr_run *run, double *bytes);
/* C0 in memory, before C takes its place. */
tsr_status tsr_run_keep_c0(tsr_run *run);

/* record.c. Rank 0 gets what all ranks measured, world->ranks records to be freed; the others NULL. */
tsr_status tsr_run_gather_ranks(tsr_run *run, tsr_rank_record **ranks);
/* Local, as what follows. */
/* With what the run multiplied: grid, panels, kernel, transport, schedule, versions; and the seconds of the start-up
 * parts. */
void tsr_run_describe_engine(const tsr_run *run, tsr_run_record *record);
/* `ranks`: world->ranks of them; not owned, as the texts of the options. */
void tsr_run_fill_record(const tsr_run *run, const tsr_run_options *options, const tsr_rank_record *ranks,
                         tsr_run_record *record);

#endif
