/* A second schedule, for tests: ranks that gather a panel multiply it piece by piece, in the order of their ring and
 * each from its own piece on, while the next panel is exchanged. Where both operands are gathered, A is cut; a packed
 * one never is. A rank's own piece cannot be multiplied before the others have come: the buffer is the receive buffer
 * of an all-gather, and Open MPI's moves the pieces in it. The program does not offer it: no measurement on a quiet
 * machine has shown it to be faster than SUMMA. */
#include "mpi/schedule/panel_sweep.h"

/* Rows [start, start + count) of the panel's pieces: of C and A for A's, of k for B's. */
static tsr_step piece_step(const tsr_sweep_product *product, tsr_operand_name name, int64_t start, int64_t count,
                           bool first, bool last) {
    const tsr_problem *problem = &product->plan->problem;
    const size_t input = tsr_dtype_bytes(problem->input), type = tsr_dtype_bytes(problem->type);
    tsr_step step = product->step;
    if (name == TSR_OPERAND_A) {
        step.m = count;
        step.rect.row += start;
        step.rect.rows = count;
        step.slots[0].offset = (size_t)(start * step.lda) * input;
        step.slots[2].offset += (size_t)(start * step.ld) * type;
        step.count += start;
    } else {
        step.k = count;
        step.slots[0].offset = (size_t)start * input;
        step.slots[1].offset = (size_t)(start * step.ldb) * input;
        step.accumulate = step.accumulate || !first;
        step.closes = step.closes && last;
    }
    step.opens = step.opens && first;
    if (step.flops > 0) step.flops = 2.0 * (double)step.m * (double)step.n * (double)step.k;
    step.lane_bytes = ((double)step.m + (double)step.n) * (double)step.k * (double)input +
                      (step.accumulate ? 2.0 : 1.0) * (double)step.m * (double)step.n * (double)type;
    return step;
}

static tsr_status multiply(const tsr_sweep_product *product, tsr_step_sink sink, void *context) {
    const tsr_operand_name name = product->operand[TSR_OPERAND_A].pieces > 1 ? TSR_OPERAND_A : TSR_OPERAND_B;
    const int pieces = product->operand[name].pieces, mine = product->operand[name].mine;
    const int64_t height = product->operand[name].height;
    const int64_t rows = name == TSR_OPERAND_A ? product->step.m : product->step.k;
    if (pieces == 1) return sink(context, &product->step);
    for (int64_t turn = 0, done = 0; turn < pieces; turn++) {
        const int64_t start = (mine + turn) % pieces * height, count = tsr_min(height, rows - start);
        if (count <= 0) continue; /* the panel has fewer rows than there are ranks */
        tsr_step step = piece_step(product, name, start, count, done == 0, done + count >= rows);
        done += count;
        for (int slot = 0; done < rows && slot < TSR_STEP_SLOTS; slot++) step.slots[slot].set = -1;
        TSR_TRY(sink(context, &step));
    }
    return TSR_OK;
}

static tsr_status ring_emit(const tsr_plan *plan, int rank, tsr_step_sink sink, void *context) {
    return tsr_sweep_emit(plan, rank, multiply, sink, context);
}

const tsr_schedule_ops tsr_schedule_ring = {
    .name = "ring",
    .emit = ring_emit,
    .memory = tsr_sweep_memory,
    .predict = tsr_sweep_predict,
    .lower_bound = tsr_sweep_lower_bound,
};
