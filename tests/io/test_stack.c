/* What descriptions say of stacks of matrices: which matrix lies where, and when a stack is one matrix. */
#include <stdio.h>
#include <string.h>

#include "io/store.h"
#include "tests/check.h"

/* 4 × 3 matrices of 6 × 5, of which a slice is selected. */
static tsr_store_desc stack_of(const char *slice, int64_t offset) {
    tsr_store_desc desc = {.name = {.file = "x.h5", .path = "/S"}, .element = {TSR_F32, false}, .offset = offset};
    snprintf(desc.name.slice, sizeof desc.name.slice, "%s", slice);
    CHECK_OK(tsr_store_set_shape(&desc, &(tsr_shape){4, {4, 3, 6, 5}}));
    return desc;
}

static void test_places(void) {
    tsr_store_desc desc = stack_of("[1:3,1:,2:4]", 0);
    int64_t lead[TSR_LEADS_MAX];
    char text[TSR_SHAPE_CHARS];
    const tsr_shape shape = tsr_store_shape(&desc);
    CHECK(strcmp(tsr_shape_text(&shape, "x", text, sizeof text), "2x2x2x5") == 0, "%s", text);
    CHECK(desc.matrices == 4 && tsr_store_bytes(&desc) == 4 * 2 * 5 * 4, "%lld", (long long)desc.matrices);
    static const int64_t before[] = {4, 5, 7, 8};
    for (desc.matrix = 0; desc.matrix < 4; desc.matrix++) {
        tsr_store_leads(&desc, desc.matrix, lead);
        CHECK(lead[0] == 1 + desc.matrix / 2 && lead[1] == 1 + desc.matrix % 2, "%lld,%lld", (long long)lead[0],
              (long long)lead[1]);
        CHECK(tsr_store_matrices_before(&desc) == before[desc.matrix], "matrix %lld: %lld", (long long)desc.matrix,
              (long long)tsr_store_matrices_before(&desc));
    }
}

/* Only matrices that follow each other, all rows of them, which are read by their bytes. */
static void test_join(void) {
    static const struct {
        const char *slice;
        int64_t offset, row0, rows; /* rows 0: it cannot be joined */
    } cases[] = {{"", 64, 0, 72},          {"[...]", 0, 0, 72},       {"[1:3]", 64, 18, 36},    {"[2]", 64, 36, 18},
                 {"[2,1:]", 64, 42, 12},   {"[1:2,1:2]", 64, 24, 6},  {"[:,0:2]", 64, 0, 0},    {"[:,1]", 64, 0, 0},
                 {"[...,1:,:]", 64, 0, 0}, {"[...,2:4]", 64, 0, 72},  {"[1:3,:,:5]", 64, 0, 0}, {"[3:3]", 64, 0, 0},
                 {"", -1, 0, 0},           {"[1:3,0:3]", 64, 18, 36}, {"[0:2,2:3]", 64, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_store_desc desc = stack_of(cases[i].slice, cases[i].offset);
        CHECK(tsr_store_can_join(&desc) == (cases[i].rows > 0), "'%s'", cases[i].slice);
        if (!cases[i].rows) continue;
        const int64_t bytes = tsr_store_bytes(&desc);
        tsr_store_join(&desc);
        CHECK(desc.matrices == 1 && desc.row0 == cases[i].row0 && desc.rows == cases[i].rows && desc.dataset_rows == 72,
              "'%s': %lld rows at %lld", cases[i].slice, (long long)desc.rows, (long long)desc.row0);
        CHECK(tsr_store_lead_count(&desc) == 0 && tsr_store_matrices_before(&desc) == 0 &&
                  tsr_store_bytes(&desc) == bytes,
              "'%s' has other elements", cases[i].slice);
    }
}

static void test_vectors(void) {
    tsr_store_desc desc = {.name = {.slice = "[2:5]"}, .element = {TSR_F64, false}};
    CHECK_OK(tsr_store_set_shape(&desc, &(tsr_shape){1, {7}}));
    CHECK(desc.rows == 3 && desc.cols == 1 && desc.row0 == 2 && desc.cols_missing && !desc.rows_missing, "a column");
    tsr_store_turn_vector(&desc);
    CHECK(desc.rows == 1 && desc.cols == 3 && desc.col0 == 2 && !desc.cols_missing && desc.rows_missing, "a row");
    tsr_store_turn_vector(&desc);
    CHECK(desc.rows == 3 && desc.row0 == 2 && desc.cols_missing, "a column again");

    desc = stack_of("[1,1:3,2:5,1:]", 0);
    tsr_store_split_rows(&desc, false);
    const tsr_shape shape = tsr_store_shape(&desc);
    CHECK(desc.matrices == 6 && desc.rows == 1 && desc.cols == 4 && desc.col0 == 1 && shape.dimensions == 3 &&
              shape.size[1] == 3 && shape.size[2] == 4,
          "rows of a stack: %lld", (long long)desc.matrices);
    desc.matrix = 4; /* row 3 of matrix (1, 2) */
    CHECK(tsr_store_matrices_before(&desc) == (1 * 3 + 2) * 6 + 3, "%lld", (long long)tsr_store_matrices_before(&desc));

    desc = (tsr_store_desc){.element = {TSR_F64, false}};
    CHECK_OK(tsr_store_set_shape(&desc, &(tsr_shape){0, {0}}));
    CHECK(desc.rows == 1 && desc.cols == 1 && tsr_store_bytes(&desc) == 8 && desc.matrix_dimensions == 0, "a number");
    desc = (tsr_store_desc){.element = {TSR_F64, false}};
    CHECK(tsr_store_set_shape(&desc, &(tsr_shape){4, {1LL << 40, 1LL << 40, 0, 1}}) == TSR_ERR_FORMAT,
          "2^80 matrices without elements");
}

int main(void) {
    test_places();
    test_join();
    test_vectors();
    return 0;
}
