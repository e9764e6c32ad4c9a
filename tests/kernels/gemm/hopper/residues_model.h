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

/* Whether copies come late: one of both, any; with TSR_LONG both. */
static inline std::vector<bool> ways() {
    if (getenv("TSR_LONG")) return {false, true};
    return {hopper_test::drawn(2) == 1};
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

/* One product of a case, with sums of its operands as they are. */
struct Product {
    made_residues made;
    made_sums host;
    Aligned<int8_t> a, b, of_a, of_b;
    Aligned<int8_t> result, columns, rows;
    Aligned<unsigned> workspace;

    explicit Product(const residue_case &c)
        : made(make_residues(c, MADE_RESIDUES)), host(with_sums(&made)), a(made.a, made.bytes_a),
          b(made.b, made.bytes_b), of_a(host.of_a, host.bytes), of_b(host.of_b, host.bytes), result(made.bytes_c),
          columns(host.bytes_columns), rows(host.bytes_rows), workspace(tsr_residue_workspace(c.m, c.n)) {}
    Product(const Product &) = delete;
    Product &operator=(const Product &) = delete;
    ~Product() {
        free_sums(&host);
        free_residues(&made);
    }
    static made_sums with_sums(made_residues *made) {
        made_sums host = make_sums(made);
        add_up_lines(*made, true, host.of_a);
        add_up_lines(*made, false, host.of_b);
        return host;
    }

    void make(bool late) {
        const tsr_residue_sums sums = {
            of_a.at, of_b.at, columns.at, rows.at, made_lines(&made, made.args.m), made_lines(&made, made.args.n)};
        tsr_residue_args args = on_device(made, a, b, workspace);
        args.sums = &sums;
        next_launch(late);
        CHECK(tsr_residue_products_hopper(nullptr, &args, result.at) == TSR_OK, "%s", tsr_message());
    }
    int disagreeing_lines(bool of_columns) const {
        return disagreeing(made, result.at, of_columns ? columns.at : rows.at, of_columns);
    }
    /* Elements of C, in all planes. */
    std::vector<int8_t> c() const {
        const tsr_residue_args &args = made.args;
        std::vector<int8_t> all;
        for (int plane = 0; plane < args.planes; plane++)
            for (int64_t row = 0; row < args.m; row++) {
                const int8_t *from = result.at + (plane * args.rows_a + row) * args.rows_b;
                all.insert(all.end(), from, from + args.n);
            }
        return all;
    }
};

#endif
