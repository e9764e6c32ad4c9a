/* Products that the kernels for sm_90 make in the model (model.h), and the check of what they made. Elements are
 * small integers, so that C is exact; or real numbers, and C is held to a bound. Every element of C is compared, those
 * between the columns and the leading dimension, too. Included before a kernel's .cu.
 * TSR_MODEL_ROUNDS: so many random products beside the fixed ones of a program; TSR_MODEL_SEED: another seed for
 * all. */
#ifndef TSR_TESTS_KERNELS_GEMM_HOPPER_CASES_H
#define TSR_TESTS_KERNELS_GEMM_HOPPER_CASES_H

#include <cmath>
#include <functional>
#include <vector>

#include "kernels/gemm/registry.h"
#include "tests/check.h"
#include "tests/kernels/gemm/hopper/model.h"

namespace hopper_test {

struct Case {
    const char *what;
    int64_t m, n, k;
    int multiprocessors;
    bool accumulate;
    int64_t pad_a, pad_b, pad_c; /* elements from the end of a row to the next */
    int64_t skip;                /* elements before A and B, so that they begin at no multiple of 16 bytes */
    bool sparse;                 /* few elements meet */
    double bound;                /* of |ΔC| / (|A||B|), for real numbers; 0: integers */
};

inline uint64_t seed;
inline uint64_t launches;                                     /* so far; each has a seed of its own */
inline uint64_t setting(const char *name, uint64_t without) { /* of the environment */
    const char *text = getenv(name);
    return text ? strtoull(text, nullptr, 0) : without;
}
inline tsr_device *device;

/* A device like an H200, but for how many multiprocessors it has; blocks of a small grid stride over the rest. */
inline void set_up() {
    tsr_cuda_emulation_limits *limits = tsr_cuda_emulation();
    limits->arch = 90;
    limits->shared_block_optin_bytes = 227 << 10;
    limits->grid_max[0] = 1 << 20;
    seed = setting("TSR_MODEL_SEED", 1);
    CHECK_OK(tsr_device_cuda.open(0, &device));
}

template <typename T> struct Matrix { /* the elements alone: one past the last is another's memory */
    int64_t rows, cols, ld, skip;
    std::vector<T> all;
    Matrix(int64_t rows_, int64_t cols_, int64_t ld_, int64_t skip_)
        : rows(rows_), cols(cols_), ld(ld_), skip(skip_),
          all((size_t)(skip_ + (rows_ > 0 ? (rows_ - 1) * ld_ + cols_ : 0))) {
        if (!all.empty()) memset((void *)all.data(), 0xff, all.size() * sizeof(T)); /* NaN where no element stands */
    }
    T *data() { return all.data() + skip; }
    T &at(int64_t row, int64_t col) { return all[(size_t)(skip + row * ld + col)]; }
};

/* The element of A at (row, k), or of B, whose lines are columns, at (col, k): an integer from -9 to 9, or a real
 * number of a magnitude that depends on the line. */
inline double element(const Case &c, int64_t line, int64_t k, int salt) {
    uint64_t x = (uint64_t)line * 0x9e3779b97f4a7c15 + (uint64_t)k * 0xbf58476d1ce4e5b9 + (uint64_t)salt;
    x = (x ^ x >> 29) * 0x94d049bb133111eb;
    x ^= x >> 32;
    if (c.sparse && (line + k) % 40 > 0) return 0;
    if (c.bound == 0) return (double)(x % 19) - 9;
    const double size = ldexp(1 + (double)(x >> 1 & 0xffffff) * 0x1p-24, (int)(line % 9) - 4);
    return x & 1 ? size : -size;
}

typedef std::function<tsr_status(const tsr_gemm_args *args)> Launch;

/* The product of what was put into the operands, and of its magnitudes. */
struct Expected {
    std::vector<double> product, sizes;
};
MODEL_QUICK inline void add_line(double left, const double *row, int64_t n, double *product, double *sizes) {
    for (int64_t j = 0; j < n; j++) product[j] += left * row[j];
    for (int64_t j = 0; sizes && j < n; j++) sizes[j] += fabs(left * row[j]);
}
template <typename In, typename Encode>
Expected fill(const Case &c, Matrix<In> *a, Matrix<In> *b, const Encode &encode) {
    Expected e = {std::vector<double>((size_t)(c.m * c.n)), std::vector<double>((size_t)(c.m * c.n))};
    std::vector<double> right((size_t)(c.k * c.n));
    for (int64_t l = 0; l < c.k; l++)
        for (int64_t j = 0; j < c.n; j++) right[(size_t)(l * c.n + j)] = encode(element(c, j, l, 2), &b->at(l, j));
    for (int64_t i = 0; i < c.m; i++)
        for (int64_t l = 0; l < c.k; l++) {
            const double left = encode(element(c, i, l, 1), &a->at(i, l));
            const double *row = &right[(size_t)(l * c.n)];
            add_line(left, row, c.n, &e.product[(size_t)(i * c.n)],
                     c.bound > 0 ? &e.sizes[(size_t)(i * c.n)] : nullptr);
        }
    return e;
}

/* Whether an element of C is what it should be; at: its place among the expected, -1 behind the columns. */
template <typename Out> bool right(const Case &c, Out got, Out held, const Expected &e, int64_t at) {
    if (at < 0) return got == held || (std::isnan(got) && std::isnan(held));
    const double before = c.accumulate ? (double)held : 0, want = before + e.product[(size_t)at];
    const double rounding = c.bound == 0 ? 0 : 0x1p-24 * (fabs(before) + fabs(want));
    return fabs((double)got - want) <= c.bound * e.sizes[(size_t)at] + rounding;
}

template <typename Out> void compare(const Case &c, Matrix<Out> *result, const Expected &e, Out held) {
    int64_t wrong = 0;
    int64_t row = 0;
    int64_t col = 0;
    for (int64_t i = 0; i < c.m; i++)
        for (int64_t j = 0; j < (i + 1 < c.m ? result->ld : c.n); j++) {
            if (right<Out>(c, result->at(i, j), held, e, j < c.n ? i * c.n + j : -1)) continue;
            if (wrong++ > 0) continue;
            row = i;
            col = j;
        }
    CHECK(
        wrong == 0,
        "%s, %ld x %ld x %ld on %d multiprocessors, TSR_MODEL_SEED=%llu: %ld elements of C are wrong, the first (%ld, "
        "%ld) is %g",
        c.what, (long)c.m, (long)c.n, (long)c.k, c.multiprocessors, (unsigned long long)seed, (long)wrong, (long)row,
        (long)col, (double)result->at(row, col));
}

/* Makes the product and checks it. bytes: of workspace, of which none more is there; encode(x, &element): stores x as
 * an element, and returns what x became; a product is sparse where, and only where, the kernel's fallback makes it. */
template <typename In, typename Out, typename Encode>
void check(const Case &c, size_t bytes, const Launch &launch, const Encode &encode) {
    const Out held = c.accumulate ? (Out)7 : (Out)NAN; /* by C before */
    Matrix<In> a(c.m, c.k, c.k + c.pad_a, c.skip), b(c.k, c.n, c.n + c.pad_b, c.skip);
    Matrix<Out> result(c.m, c.n, c.n + c.pad_c, 0);
    const Expected expected = fill(c, &a, &b, encode);
    void *workspace = nullptr;
    CHECK(posix_memalign(&workspace, 1024, bytes) == 0, "no %zu bytes", bytes);
    tsr_gemm_fallbacks fallbacks;
    const tsr_gemm_args args = {.m = c.m,
                                .n = c.n,
                                .k = c.k,
                                .a = a.data(),
                                .lda = a.ld,
                                .b = b.data(),
                                .ldb = b.ld,
                                .c = result.data(),
                                .ldc = result.ld,
                                .accumulate = c.accumulate,
                                .workspace = workspace,
                                .fallbacks = &fallbacks};
    tsr_cuda_emulation()->multiprocessors = c.multiprocessors;
    for (int late = 0; late < 2; late++) {
        for (Out &x : result.all) x = held;
        memset(workspace, 0xff, bytes);
        fallbacks = {};
        hopper_model::use(seed * 1000 + ++launches % 1000, late);
        const tsr_status status = launch(&args);
        CHECK(status == TSR_OK, "%s, %ld x %ld x %ld on %d multiprocessors, TSR_MODEL_SEED=%llu: %s", c.what, (long)c.m,
              (long)c.n, (long)c.k, c.multiprocessors, (unsigned long long)seed, tsr_message());
        CHECK(fallbacks.products == (c.sparse ? 1 : 0), "%s: %d products by the fallback", c.what,
              (int)fallbacks.products);
        compare<Out>(c, &result, expected, held);
    }
    const std::vector<Out> first = result.all;
    for (int multiprocessors : {1, 132, 3, 8}) { /* of real numbers the bits tell where sums were cut */
        if (c.bound == 0 || (multiprocessors == 3 && !getenv("TSR_LONG"))) break;
        tsr_cuda_emulation()->multiprocessors = multiprocessors;
        for (Out &x : result.all) x = held;
        hopper_model::use(seed * 1000 + ++launches % 1000, 0);
        CHECK_OK(launch(&args));
        CHECK(memcmp(first.data(), result.all.data(), first.size() * sizeof(Out)) == 0,
              "%s: other bits on %d multiprocessors than on %d", c.what, multiprocessors, c.multiprocessors);
    }
    free(workspace);
}

/* Real numbers. Reproducible sums: parts of C that are made by themselves, on a device of another size, have the bits
 * that they have in the whole. `usual`, the kernel's way without, makes others, or this would say nothing. */
template <typename In, typename Out, typename Encode>
void check_parts(const Case &c, size_t bytes, const Launch &reproducible, const Launch &usual, const Encode &encode) {
    const int64_t parts[][4] = {/* first row and column, rows, columns */
                                {0, 0, c.m, c.n},
                                {0, 0, c.m, c.n / 3},
                                {c.m / 5, 0, 1, c.n},
                                {c.m / 3, c.n / 2 + 1, c.m - c.m / 3, c.n - c.n / 2 - 1}};
    Matrix<In> a(c.m, c.k, c.k, 0), b(c.k, c.n, c.n, 0);
    Matrix<Out> whole(c.m, c.n, c.n, 0), part(c.m, c.n, c.n, 0);
    const Expected expected = fill(c, &a, &b, encode);
    void *workspace = nullptr;
    CHECK(posix_memalign(&workspace, 1024, bytes) == 0, "no %zu bytes", bytes);
    const auto make = [&](const Launch &launch, const int64_t(&at)[4], int multiprocessors, Matrix<Out> *to) {
        tsr_gemm_args args = {.m = at[2], .n = at[3], .k = c.k};
        args.a = &a.at(at[0], 0);
        args.b = &b.at(0, at[1]);
        args.c = &to->at(at[0], at[1]);
        args.lda = a.ld;
        args.ldb = b.ld;
        args.ldc = to->ld;
        args.workspace = workspace;
        tsr_cuda_emulation()->multiprocessors = multiprocessors;
        hopper_model::use(seed * 1000 + ++launches % 1000, 0);
        CHECK_OK(launch(&args));
    };
    const auto differ = [&](const int64_t(&at)[4]) {
        int64_t other = 0;
        for (int64_t i = at[0]; i < at[0] + at[2]; i++)
            for (int64_t j = at[1]; j < at[1] + at[3]; j++)
                other += memcmp(&whole.at(i, j), &part.at(i, j), sizeof(Out)) != 0;
        return other;
    };
    make(reproducible, parts[0], c.multiprocessors, &whole);
    compare<Out>(c, &whole, expected, (Out)NAN);
    for (int i = 1; i < 4; i++) {
        make(reproducible, parts[i], 2 + (c.multiprocessors + i) % 7, &part);
        const int64_t other = differ(parts[i]);
        CHECK(other == 0, "%s: %ld elements have other bits in part %d than in the whole", c.what, (long)other, i);
    }
    make(usual, parts[0], c.multiprocessors, &part);
    CHECK(differ(parts[0]) > 0, "%s: the usual sums have the same bits, so that this says nothing", c.what);
    free(workspace);
}

/* 1 to most. */
inline int64_t drawn(int64_t most) { return 1 + (int64_t)(tsr_emulation_random() % (uint64_t)most); }
inline Case drawn_case(const char *what, int64_t m, int64_t n, int64_t k, int64_t multiprocessors) {
    return {.what = what,
            .m = drawn(m),
            .n = drawn(n),
            .k = drawn(k),
            .multiprocessors = (int)drawn(multiprocessors),
            .accumulate = drawn(2) == 1,
            .pad_a = drawn(5) - 1,
            .pad_b = drawn(5) - 1,
            .pad_c = drawn(5) - 1,
            .skip = drawn(2) - 1};
}
/* Runs `fixed` once, and `random` TSR_MODEL_ROUNDS times, with a seed of its own each. */
inline void run(const std::function<void()> &fixed, const std::function<void()> &random) {
    set_up();
    fixed();
    const uint64_t rounds = setting("TSR_MODEL_ROUNDS", 2), first = seed;
    for (uint64_t round = 0; round < rounds; round++) {
        seed = first + round; /* TSR_MODEL_SEED with one round repeats it */
        launches = 500;
        hopper_model::use(seed * 1000, false);
        random();
    }
    tsr_device_cuda.close(device);
}

} // namespace hopper_test

#endif
