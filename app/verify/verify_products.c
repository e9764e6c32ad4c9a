/* The check of products of stacks of matrices (verify_products.h). */
#include "app/verify/verify_products.h"

#include <inttypes.h>
#include <stdio.h>

/* The indices of a matrix of C: "[1, 0]"; "" where C is one matrix. */
static void name_matrix(const tsr_products *shape, int64_t product, char *text, size_t chars) {
    int64_t index[TSR_LEADS_MAX];
    size_t at = 0;
    for (int d = shape->stack_dimensions - 1; d >= 0; d--) {
        index[d] = product % shape->stack[d];
        product /= shape->stack[d];
    }
    text[0] = '\0';
    for (int d = 0; d < shape->stack_dimensions && at < chars; d++)
        at += (size_t)snprintf(text + at, chars - at, "%s%" PRId64 "%s", d == 0 ? "[" : ", ", index[d],
                               d == shape->stack_dimensions - 1 ? "]" : "");
}

static void add(tsr_verify_result *all, const tsr_verify_result *one, const tsr_products *shape, int64_t product) {
    all->passed &= one->passed;
    all->rows_failed += one->rows_failed;
    all->rows_unjudged += one->rows_unjudged;
    if (all->rows == 0 || one->worst_ratio > all->worst_ratio) {
        all->worst_ratio = one->worst_ratio;
        all->worst_row = one->worst_row;
        name_matrix(shape, product, all->worst_matrix, sizeof all->worst_matrix);
    }
    all->rows += one->rows;
    all->failure_probability = one->failure_probability; /* a wrong C passes only where each of its matrices does */
    if (one->largest_bound > all->largest_bound) all->largest_bound = one->largest_bound;
    if (one->readings > all->readings) all->readings = one->readings;
}

tsr_status tsr_verify_products(const tsr_world *world, const tsr_verify_args *args, const tsr_products *shape,
                               tsr_verify_result *result) {
    tsr_verify_result all = {.passed = true};
    tsr_verify_args now = *args;
    for (int64_t product = 0; product < shape->count; product++) {
        tsr_verify_result one;
        tsr_store_select(now.a, tsr_shapes_matrix(shape, &now.a->desc, product));
        tsr_store_select(now.b, tsr_shapes_matrix(shape, &now.b->desc, product));
        tsr_store_select(now.c, product);
        if (now.c0) tsr_store_select(now.c0, product);
        TSR_TRY(tsr_verify_product(world, &now, &one));
        add(&all, &one, shape, product);
        now.seed++;
    }
    *result = all;
    return TSR_OK;
}
