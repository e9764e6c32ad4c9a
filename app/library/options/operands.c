/* Operands of tessera.h (operands.h). */
#include "app/library/options/operands.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "app/library/options/sized.h"

static const char *const names[TSR_CALL_OPERANDS] = {"A", "B", "C", "C0"};

tsr_status tsr_call_operands_take(const tessera_matrix *const given[TSR_CALL_OPERANDS], tsr_call_operands *of) {
    of->matrices = true;
    for (int i = 0; i < TSR_CALL_OPERANDS; i++) {
        tessera_matrix *m = &of->matrix[i];
        if (!given[i] && i == TSR_CALL_B) continue; /* with gram there is none */
        if (i == TSR_CALL_C0 || (i == TSR_CALL_C && of->without_c)) continue;
        if (!given[i]) return tsr_fail(TSR_ERR_USAGE, "%s is NULL: a product has one", names[i]);
        TSR_TRY(tsr_sized_take("tessera_matrix", given[i], m, sizeof *m));
        if (!m->name) continue;
        of->name[i] = m->name;
        *m = (tessera_matrix){0};
    }
    return TSR_OK;
}

tsr_status tsr_call_operands_take_c0(const tessera_multiply_options *o, tsr_call_operands *of) {
    tessera_matrix *c0 = &of->matrix[TSR_CALL_C0];
    if (!o->add_matrix) return TSR_OK;
    TSR_TRY(tsr_sized_take("tessera_matrix", o->add_matrix, c0, sizeof *c0));
    if (o->add || c0->name)
        return tsr_fail(TSR_ERR_USAGE, "add_matrix is C0 in memory, and a file's is add: give one of them");
    of->matrices = true;
    return TSR_OK;
}

/* ---- options --------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    bool given;
} an_option;

/* `where`: what the options given are none of. */
static tsr_status refuse(const an_option *options, size_t count, const char *where) {
    for (size_t i = 0; i < count; i++)
        if (options[i].given)
            return tsr_fail(TSR_ERR_USAGE, "%s is an option of %s: leave it out", options[i].name, where);
    return TSR_OK;
}

/* What is found in files alone. */
static tsr_status check_options(const tsr_call_operands *of, const tessera_multiply_options *o) {
    const bool all_named = of->name[TSR_CALL_A] && (of->name[TSR_CALL_B] || o->gram) && of->name[TSR_CALL_C] &&
                           !tsr_call_in_memory(of, TSR_CALL_C0);
    const bool any_named = of->name[TSR_CALL_A] || of->name[TSR_CALL_B] || of->name[TSR_CALL_C] || o->add;
    const an_option of_c[] = {{"chunk", o->chunk != NULL},   {"compress", o->compress != NULL},
                              {"attributes", o->attributes}, {"shuffle", o->shuffle},
                              {"force", o->force},           {"checksum", o->checksum},
                              {"digest", o->digest},         {"resume", o->resume},
                              {"type", o->type != NULL}};
    const an_option of_a[] = {{"attributes", o->attributes}};
    const an_option of_all[] = {{"resume", o->resume}};
    const an_option of_any[] = {{"external", o->external != NULL}};
    if (tsr_call_in_memory(of, TSR_CALL_C))
        TSR_TRY(refuse(of_c, sizeof of_c / sizeof *of_c, "products whose C is a file"));
    if (!of->name[TSR_CALL_A]) TSR_TRY(refuse(of_a, 1, "products whose A is in a file"));
    if (!all_named) TSR_TRY(refuse(of_all, 1, "products of files"));
    return any_named ? TSR_OK : refuse(of_any, 1, "products of files");
}

/* ---- one matrix ------------------------------------------------------------------------------ */

/* "f64", ">i2": with the order of its bytes. C has this machine's, and a type that results have. */
static tsr_status take_type(const char *name, const tessera_matrix *m, bool result, tsr_distributed *to) {
    const uint16_t one = 1;
    const bool little = *(const uint8_t *)&one == 1;
    const char *type = m->type;
    if (!type) return tsr_fail(TSR_ERR_USAGE, "%s has no type: name one, such as \"f64\"", name);
    if (*type == '<' || *type == '>') to->swapped = (*type++ == '<') != little;
    if (!result) return tsr_dtype_parse(type, &to->dtype);
    TSR_TRY(tsr_dtype_parse_for(TSR_USE_RESULT, "type", type, &to->dtype));
    if (!to->swapped) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "%s is of type %s: an array that is written has this machine's byte order", name,
                    m->type);
}

static tsr_status check_sizes(const char *name, const tessera_matrix *m) {
    if (m->rows < 0 || m->cols < 0 || m->block_rows < 0 || m->block_cols < 0 || m->ld < 0)
        return tsr_fail(TSR_ERR_USAGE,
                        "%s: sizes are not below 0: %" PRId64 "x%" PRId64 ", blocks %" PRId64 "x%" PRId64
                        ", ld %" PRId64,
                        name, m->rows, m->cols, m->block_rows, m->block_cols, m->ld);
    if (m->stack_dimensions < 0 || m->stack_dimensions > TSR_LEADS_MAX)
        return tsr_fail(TSR_ERR_USAGE, "%s is a stack along %d dimensions: use 0 to %d", name, m->stack_dimensions,
                        TSR_LEADS_MAX);
    if (m->stack_dimensions > 0 && !m->stack)
        return tsr_fail(TSR_ERR_USAGE, "%s is a stack, and there are no sizes of it: hand some", name);
    if (m->vector && (m->stack_dimensions > 0 || (m->rows != 1 && m->cols != 1)))
        return tsr_fail(TSR_ERR_USAGE, "%s is no vector, which has one row or one column and is no stack", name);
    return TSR_OK;
}

/* The matrices of a stack become one, as they lie: rows of what is stored follow each other. */
static tsr_status join_stack(const char *name, const tessera_matrix *m, int64_t *length, tsr_distributed *to) {
    to->stack_dimensions = m->stack_dimensions;
    to->stack_rows = *length;
    for (int d = 0; d < m->stack_dimensions; d++) {
        to->stack[d] = m->stack[d];
        if (__builtin_mul_overflow(*length, m->stack[d], length))
            return tsr_fail(TSR_ERR_USAGE, "%s is a stack with more rows than 63 bits count", name);
    }
    return TSR_OK;
}

/* `unit`: a block is a multiple of it where none was given. */
static tsr_dealt take_side(int64_t length, int64_t unit, int64_t block, int parts, int first) {
    if (block == 0) block = tsr_round_up((length + parts - 1) / tsr_max(1, parts), tsr_max(1, unit));
    return (tsr_dealt){length, block ? block : 1, parts, first};
}

static tsr_status take_matrix(const tsr_call_operands *of, int which, tsr_order order, tsr_distributed *to) {
    const char *name = names[which];
    tessera_matrix m = of->matrix[which];
    const bool turned = order == TSR_ORDER_COL;
    int64_t rows, cols;
    TSR_TRY(take_type(name, &m, which == TSR_CALL_C, to));
    TSR_TRY(check_sizes(name, &m));
    if (m.grid_rows == 0 && m.grid_cols == 0) {
        m.grid_rows = m.shared || (turned && m.stack_dimensions > 0) ? 1 : of->ranks;
        m.grid_cols = m.shared || m.grid_rows > 1 ? 1 : of->ranks;
    }
    const int64_t unit_rows = m.stack_dimensions > 0 && !turned ? m.rows : 1;
    const int64_t unit_cols = m.stack_dimensions > 0 && turned ? m.cols : 1;
    TSR_TRY(join_stack(name, &m, turned ? &m.cols : &m.rows, to));
    if (m.part_rows == 0 && m.part_cols == 0) {
        m.part_rows = m.rows - m.part_row;
        m.part_cols = m.cols - m.part_col;
    }
    to->deal = (tsr_deal){.rows = take_side(m.rows, unit_rows, m.block_rows, m.grid_rows, m.first_row),
                          .cols = take_side(m.cols, unit_cols, m.block_cols, m.grid_cols, m.first_col),
                          .part = {m.part_row, m.part_col, m.part_rows, m.part_cols},
                          .ranks_by_columns = m.ranks_by_columns != 0,
                          .shared = m.shared != 0};
    if (turned) to->deal = tsr_deal_transposed(to->deal);
    to->vector = m.vector && which <= TSR_CALL_B;
    to->data = m.data;
    to->ld = m.ld;
    if (m.ld > 0 || m.grid_rows < 1 || m.grid_cols < 1) return TSR_OK;
    tsr_deal_local(&to->deal, of->rank, &rows, &cols);
    to->ld = tsr_max(1, cols);
    return TSR_OK;
}

tsr_status tsr_call_operands_read(const tsr_call_operands *of, const tessera_multiply_options *o,
                                  tsr_distributed memory[TSR_CALL_OPERANDS], tsr_run_product *product) {
    const tsr_distributed **to[TSR_CALL_OPERANDS] = {&product->memory_a, &product->memory_b, &product->memory_c,
                                                     &product->memory_c0};
    if (!of->matrices) return TSR_OK;
    if (!of->name[TSR_CALL_B] && !tsr_call_in_memory(of, TSR_CALL_B) && !product->gram)
        return tsr_fail(TSR_ERR_USAGE, "B is NULL: a product has one, unless it is A by its own transpose (gram)");
    TSR_TRY(check_options(of, o));
    for (int i = 0; i < TSR_CALL_OPERANDS; i++) {
        if (!tsr_call_in_memory(of, i)) continue;
        TSR_TRY(take_matrix(of, i, product->order, &memory[i]));
        *to[i] = &memory[i];
    }
    if (!product->memory_c) return TSR_OK;
    product->has_type = true;
    product->type = product->memory_c->dtype;
    return TSR_OK;
}
