/* What emits a sweep's steps: each content of a buffer is a chain of steps, whose clocks follow from it. */
#ifndef TSR_MPI_SCHEDULE_EMITTER_H
#define TSR_MPI_SCHEDULE_EMITTER_H

#include "mpi/schedule/panel_sweep.h"

/* Emits the steps of one rank. */
typedef struct {
    const tsr_plan *plan;
    int row, col, depth;
    tsr_sweep_multiply multiply;
    tsr_step_sink sink;
    void *context;
    int64_t contents[TSR_SLOT_COUNT]; /* how many each class has held so far */
    tsr_step product;                 /* the last multiplication, or add up */
} tsr_emitter;

/* One content on its way through one buffer, and the clock value its last step leaves behind. */
typedef struct {
    int buffer;
    int64_t clock;
} tsr_chain;

/* The buffer that content `v` of a class lives in, when its use begins. */
static inline tsr_chain tsr_chain_at(const tsr_emitter *e, tsr_slot_class slot, int64_t v) {
    const tsr_slots *s = &e->plan->slots[slot];
    return (tsr_chain){s->first + (int)(v % s->count), v / s->count * TSR_SLOT_STAGES};
}
static inline tsr_chain tsr_chain_begin(tsr_emitter *e, tsr_slot_class slot) {
    return tsr_chain_at(e, slot, e->contents[slot]++);
}
static inline tsr_slot_use tsr_chain_hold(const tsr_chain *c) {
    return (tsr_slot_use){.buffer = c->buffer, .wait = c->clock, .set = -1};
}
static inline tsr_slot_use tsr_chain_touch(tsr_chain *c) {
    c->clock++;
    return (tsr_slot_use){.buffer = c->buffer, .wait = c->clock - 1, .set = c->clock};
}
static inline tsr_slot_use tsr_chain_end(tsr_chain *c) {
    int64_t wait = c->clock;
    c->clock = (wait / TSR_SLOT_STAGES + 1) * TSR_SLOT_STAGES;
    return (tsr_slot_use){.buffer = c->buffer, .wait = wait, .set = c->clock};
}

static inline tsr_slot_use tsr_chain_next(tsr_chain *c, bool end) {
    return end ? tsr_chain_end(c) : tsr_chain_touch(c);
}

/* The same, from `offset` bytes on. */
static inline tsr_slot_use tsr_use_at(tsr_slot_use use, size_t offset) {
    use.offset = offset;
    return use;
}

static const tsr_slot_use tsr_unused = {.buffer = -1, .set = -1};

static inline tsr_step tsr_step_new(tsr_step_kind kind, tsr_lane lane, tsr_slot_use s0, tsr_slot_use s1,
                                    tsr_slot_use s2) {
    return (tsr_step){.kind = kind, .lane = lane, .slots = {s0, s1, s2}};
}

static inline tsr_status tsr_emit(tsr_emitter *e, const tsr_step *step) { return e->sink(e->context, step); }

static inline tsr_status tsr_emit_read(tsr_emitter *e, tsr_operand_name name, tsr_rect rect, size_t bytes,
                                       tsr_slot_use to) {
    tsr_step step = tsr_step_new(TSR_STEP_READ, TSR_LANE_READ, to, tsr_unused, tsr_unused);
    step.operand = name;
    step.rect = rect;
    step.bytes = bytes;
    step.lane_bytes = (double)bytes;
    return tsr_emit(e, &step);
}

static inline tsr_status tsr_emit_upload(tsr_emitter *e, tsr_operand_name name, size_t bytes, tsr_slot_use from,
                                         tsr_slot_use to) {
    tsr_step step = tsr_step_new(TSR_STEP_UPLOAD, TSR_LANE_UPLOAD, from, to, tsr_unused);
    step.operand = name;
    step.bytes = bytes;
    step.lane_bytes = (double)bytes;
    return tsr_emit(e, &step);
}

#endif
