/* Products of residues in the model of sm_90, on made-up operands, and whether their sums agree. */
#ifndef TSR_TESTS_KERNELS_GEMM_HOPPER_RESIDUES_MODEL_H
#define TSR_TESTS_KERNELS_GEMM_HOPPER_RESIDUES_MODEL_H

#include "tests/kernels/gemm/hopper/cases.h"

#include "kernels/gemm/hopper/tensor_map.c"
#include "kernels/gemm/residues/products_hopper.cu"
#include "tests/kernels/gemm/residues/made_residues.h"

static const int multiprocessors_tried[] = {2, 5, 9};

/* Memory of the emulated device: aligned as that of a GPU. */
template <typename T> struct Aligned {
    T *at;
    size_t bytes;
    explicit Aligned(size_t bytes_) : at(nullptr), bytes(bytes_) {
        void *room = nullptr;
        CHECK(posix_memalign(&room, 256, bytes) == 0, "no %zu bytes", bytes);
        at = static_cast<T *>(room);
    }
    Aligned(const T *from, size_t bytes_) : Aligned(bytes_) { memcpy(at, from, bytes); }
    Aligned(const Aligned &) = delete;
    Aligned &operator=(const Aligned &) = delete;
    ~Aligned() { free(at); }
};

/* Prepares the model for the next launch. */
static inline void next_launch(bool late) {
    tsr_cuda_emulation()->multiprocessors = multiprocessors_tried[hopper_test::launches % 3];
    hopper_model::use(hopper_test::seed * 1000 + ++hopper_test::launches % 1000, late);
}

static inline tsr_residue_args on_device(const made_residues &made, const Aligned<int8_t> &a, const Aligned<int8_t> &b,
                                         const Aligned<unsigned> &workspace) {
    tsr_residue_args args = made.args;
    args.a = a.at;
    args.b = b.at;
    args.workspace = workspace.at;
    return args;
}

/* Lines, columns or rows, of blocks of C whose sum is not what the products of sums say. */
static inline int disagreeing(const made_residues &made, const int8_t *c, const int8_t *expected, bool of_columns) {
    static const int moduli[] = TSR_EXACT_MODULI;
    const tsr_residue_args &args = made.args;
    const int64_t lines = of_columns ? args.n : args.m, others = of_columns ? args.m : args.n;
    const int64_t line_step = of_columns ? 1 : args.rows_b, other_step = of_columns ? args.rows_b : 1;
    int count = 0;
    for (int plane = 0; plane < args.planes; plane++)
        for (int64_t line = 0; line < lines; line++)
            for (int64_t first = 0; first < others; first += TSR_EXACT_BLOCK) {
                const int64_t rows = of_columns ? args.rows_b : args.rows_a, block = first / TSR_EXACT_BLOCK;
                int sum = -expected[(plane * TSR_EXACT_SUMS + block) * rows + line];
                for (int64_t other = first; other < tsr_min(others, first + TSR_EXACT_BLOCK); other++)
                    sum += c[plane * args.rows_a * args.rows_b + line * line_step + other * other_step];
                count += sum % moduli[plane] != 0;
            }
    return count;
}

/* Sums of an operand's lines as they are, in the place of any. */
static inline void add_up_lines(const made_residues &made, bool of_a, int8_t *to) {
    static const int moduli[] = TSR_EXACT_MODULI;
    const tsr_residue_args &args = made.args;
    const int64_t lines = of_a ? args.m : args.n, rows = of_a ? args.rows_a : args.rows_b;
    for (int plane = 0; plane < args.planes; plane++)
        for (int64_t first = 0; first < lines; first += TSR_EXACT_BLOCK)
            for (int64_t l = 0; l < args.depth; l++) {
                const int p = moduli[plane];
                int sum = 0;
                for (int64_t line = first; line < tsr_min(lines, first + TSR_EXACT_BLOCK); line++)
                    sum += (of_a ? made.a : made.b)[(plane * rows + line) * args.depth + l];
                const int residue = (sum % p + p) % p;
                to[(plane * TSR_EXACT_SUMS + first / TSR_EXACT_BLOCK) * args.depth + l] =
                    (int8_t)(residue > p / 2 ? residue - p : residue);
            }
}

#endif
