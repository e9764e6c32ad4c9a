/* Part of model.h: products on the tensor cores. wgmma is carried out beside the threads, after all threads of its
 * warpgroup have asked for it, in their order; it reads shared memory and registers, and adds to registers, at that
 * time and not before. */
#ifndef TSR_TESTS_KERNELS_GEMM_HOPPER_MODEL_PRODUCTS_H
#define TSR_TESTS_KERNELS_GEMM_HOPPER_MODEL_PRODUCTS_H

#include <deque>

#include "kernels/base/half.h"
#include "tests/kernels/gemm/hopper/model_copies.h"

namespace hopper_model {

/* ---- wgmma ----------------------------------------------------------------------------------- */

struct Form { /* of a product of 64 rows */
    enum Type { F16, BF16, TF32, S8 } type;
    int n;
    bool along_n; /* b stands k by n */
};
struct Product {
    Form form;
    uint64_t a, b; /* descriptors */
    bool add;
    int asked;                  /* threads that have asked for it */
    void *d[128];               /* of each thread; S8: int, else float */
    const uint32_t *a_own[128]; /* the same of a in registers; NULL: a stands in shared memory */
};
struct Warpgroup {
    std::deque<Product> products; /* not carried out yet */
    uint64_t done;
    uint64_t asked[128];     /* by each thread, */
    uint64_t groups[128][8]; /* by its last commits */
    unsigned commits[128];
};
inline Warpgroup warpgroups[MOST_BLOCKS_CLUSTER][MOST_THREADS / 128];
inline Warpgroup *own_warpgroup() { return &warpgroups[tsr_emulation_rank()][tsr_emulation_thread() / 128]; }

inline float operand_a[64][16], operand_b[16][256], sums[64][256];
inline int operand_a_s8[64][32], operand_b_s8[32][256], sums_s32[64][256];

inline float element(Form::Type type, const unsigned char *unit, int i) {
    uint16_t half;
    uint32_t bits;
    if (type == Form::TF32) {
        memcpy(&bits, unit + i * 4, 4);
        bits &= 0xffffe000; /* the rest is not looked at */
    } else {
        memcpy(&half, unit + i * 2, 2);
        if (type == Form::F16) return tsr_half_decode(half);
        bits = (uint32_t)half << 16;
    }
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* Address of a descriptor's operand, `group` groups of 8 rows, `row` rows and `bytes` into it. */
inline const unsigned char *operand_place(int rank, uint64_t descriptor, uint32_t offset) {
    if (descriptor >> 62 != 1) tsr_emulation_complain("an operand of wgmma with another swizzle than 128 bytes");
    const uint32_t first = (uint32_t)(descriptor & 0x3fff) << 4;
    return place(rank, swizzled(first + offset, 128), 16);
}
inline uint32_t leading_bytes(uint64_t descriptor) { return (uint32_t)(descriptor >> 16 & 0x3fff) << 4; }
inline uint32_t stride_bytes(uint64_t descriptor) { return (uint32_t)(descriptor >> 32 & 0x3fff) << 4; }

/* `rows` rows of an operand that is k-major: to(row, k, value). Each has 32 bytes. */
template <typename To> void load_units(int rank, uint64_t descriptor, int rows, To to) { /* to(row, unit, 16 bytes) */
    for (int row = 0; row < rows; row++)
        for (int unit = 0; unit < 2; unit++)
            to(row, unit,
               operand_place(rank, descriptor,
                             (uint32_t)(row / 8) * stride_bytes(descriptor) + row % 8 * 128 + unit * 16));
}
template <typename To> void load_k_major(int rank, Form::Type type, uint64_t descriptor, int rows, To to) {
    const int units = type == Form::TF32 ? 4 : 8; /* elements of 16 bytes */
    load_units(rank, descriptor, rows, [&](int row, int unit, const unsigned char *at) {
        for (int i = 0; i < units; i++) to(row, unit * units + i, element(type, at, i));
    });
}
inline void load_along_n(int rank, Form form, uint64_t descriptor) {
    for (int k = 0; k < 16; k++)
        for (int n = 0; n < form.n; n += 8) {
            const uint32_t group = (uint32_t)(n / 64) * leading_bytes(descriptor) + k / 8 * stride_bytes(descriptor);
            const unsigned char *at = operand_place(rank, descriptor, group + k % 8 * 128 + n % 64 * 2);
            for (int i = 0; i < 8; i++) operand_b[k][n + i] = element(form.type, at, i);
        }
}
/* Thread t's registers hold rows t / 32 · 16 + t % 32 / 4 and 8 below of column t % 4, then of column t % 4 + 4. */
inline void load_registers(const Product &product) {
    for (int t = 0; t < 128; t++)
        for (int i = 0; i < 4; i++)
            operand_a[t / 32 * 16 + t % 32 / 4 + i % 2 * 8][t % 4 + i / 2 * 4] =
                element(Form::TF32, reinterpret_cast<const unsigned char *>(product.a_own[t]), i);
}

MODEL_QUICK inline void multiply_sums(int n, int k) {
    for (int row = 0; row < 64; row++)
        for (int l = 0; l < k; l++) {
            const float a = operand_a[row][l];
            for (int col = 0; col < n; col++) sums[row][col] += a * operand_b[l][col];
        }
}
MODEL_QUICK inline void multiply_sums_s8(int n) {
    for (int row = 0; row < 64; row++)
        for (int l = 0; l < 32; l++) {
            const int a = operand_a_s8[row][l];
            for (int col = 0; col < n; col++) sums_s32[row][col] += a * operand_b_s8[l][col];
        }
}

inline size_t products_under_way() {
    size_t count = 0;
    for (auto &block : warpgroups)
        for (Warpgroup &group : block) count += !group.products.empty() && group.products.front().asked == 128;
    return count;
}

/* The sums of all threads to `all`, or zeros, or back. Where they stand: see wgmma_m64n192k16. */
template <bool GATHER, typename T> MODEL_QUICK void move_sums(const Product &product, T (&all)[64][256]) {
    for (int t = 0; t < 128; t++) {
        T *own = static_cast<T *>(product.d[t]);
        for (int i = 0; i < product.form.n / 2; i++) {
            T &sum = all[t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8][i / 4 * 8 + t % 4 * 2 + i % 2];
            if (GATHER) sum = product.add ? own[i] : (T)0;
            else own[i] = sum;
        }
    }
}
inline void carry_out_s8(int rank, const Product &product) {
    const auto byte = [](const unsigned char *at, int i) { return (int)(int8_t)at[i]; };
    load_units(rank, product.a, 64, [&](int row, int unit, const unsigned char *at) {
        for (int i = 0; i < 16; i++) operand_a_s8[row][unit * 16 + i] = byte(at, i);
    });
    load_units(rank, product.b, product.form.n, [&](int col, int unit, const unsigned char *at) {
        for (int i = 0; i < 16; i++) operand_b_s8[unit * 16 + i][col] = byte(at, i);
    });
    move_sums<true>(product, sums_s32);
    multiply_sums_s8(product.form.n);
    move_sums<false>(product, sums_s32);
}
inline void carry_out_float(int rank, const Product &product) {
    const Form form = product.form;
    const auto to_a = [](int row, int k, float value) { operand_a[row][k] = value; };
    const auto to_b = [](int n, int k, float value) { operand_b[k][n] = value; };
    if (product.a_own[0]) load_registers(product);
    else load_k_major(rank, form.type, product.a, 64, to_a);
    if (form.along_n) load_along_n(rank, form, product.b);
    else load_k_major(rank, form.type, product.b, form.n, to_b);
    move_sums<true>(product, sums);
    multiply_sums(form.n, form.type == Form::TF32 ? 8 : 16);
    move_sums<false>(product, sums);
}
inline void carry_out(int rank, Warpgroup *group) {
    const Product &product = group->products.front();
    if (product.form.type == Form::S8) carry_out_s8(rank, product);
    else carry_out_float(rank, product);
    group->products.pop_front();
    group->done++;
    tsr_emulation_wake(group);
}
inline void carry_out_product(size_t which) {
    for (int rank = 0; rank < MOST_BLOCKS_CLUSTER; rank++)
        for (Warpgroup &group : warpgroups[rank])
            if (!group.products.empty() && group.products.front().asked == 128 && which-- == 0)
                return carry_out(rank, &group);
}

inline void ask(Form form, void *d, const uint32_t *a_own, uint64_t a, uint64_t b, bool add) {
    Warpgroup *group = own_warpgroup();
    const int t = tsr_emulation_thread() % 128;
    const size_t at = (size_t)(group->asked[t]++ - group->done);
    if (at == group->products.size()) {
        group->products.push_back({});
        Product &fresh = group->products.back();
        fresh.form = form;
        fresh.a = a;
        fresh.b = b;
        fresh.add = add;
    }
    Product &product = group->products[at];
    if (product.form.n != form.n || product.a != a || product.b != b || product.add != add)
        tsr_emulation_complain("threads of a warpgroup ask for different products");
    product.d[t] = d;
    product.a_own[t] = a_own;
    product.asked++;
}
inline void wait_for_products(unsigned pending) {
    Warpgroup *group = own_warpgroup();
    const int t = tsr_emulation_thread() % 128;
    if (group->commits[t] <= pending) return;
    const uint64_t before = group->groups[t][(group->commits[t] - 1 - pending) % 8];
    while (group->done < before) tsr_emulation_wait(group, "its products");
}

/* ---- mma ------------------------------------------------------------------------------------- */

struct WarpProduct { /* of one warp; all wait for the last lane */
    int asked;
    uint64_t done;
    double *d[32];
    const double *a[32], *b[32];
};
inline WarpProduct warp_products[MOST_BLOCKS_CLUSTER][MOST_THREADS / 32];

/* What the lanes of a warp bring to a product of 16-bit elements, or to ldmatrix. */
struct WarpHalves {
    uint64_t done;
    int asked;
    float *d[32];
    float a[16][16], b[8][16]; /* b by columns */
    const uint16_t *rows[32];
};
inline WarpHalves warp_halves[MOST_BLOCKS_CLUSTER][MOST_THREADS / 32];
inline WarpHalves *own_halves() { return &warp_halves[tsr_emulation_rank()][tsr_emulation_thread() / 32]; }

inline void carry_out(const WarpHalves &product) {
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            const float *a = product.a[lane / 4 + i / 2 * 8], *b = product.b[lane % 4 * 2 + i % 2];
            for (int k = 0; k < 16; k++) product.d[lane][i] += a[k] * b[k];
        }
}

/* Waits for all lanes of the warp, of which the last does it. */
template <typename Last> void together(WarpHalves *own, const Last &last) {
    const uint64_t done = own->done;
    if (++own->asked == 32) {
        last();
        own->asked = 0;
        own->done++;
        tsr_emulation_wake(own);
    }
    while (own->done == done) tsr_emulation_wait(own, "the other lanes of a warp");
}

inline void begin_products() {
    memset(warp_halves, 0, sizeof warp_halves);
    for (auto &block : warpgroups)
        for (Warpgroup &group : block) {
            group.products.clear();
            group.done = 0;
            memset(group.asked, 0, sizeof group.asked);
            memset(group.groups, 0, sizeof group.groups);
            memset(group.commits, 0, sizeof group.commits);
        }
    memset(warp_products, 0, sizeof warp_products);
}

inline void carry_out(const WarpProduct &product) {
    for (int lane = 0; lane < 32; lane++) {
        const int g = lane / 4, t = lane % 4;
        for (int c = 0; c < 2; c++)
            for (int k = 0; k < 16; k++) {
                const double *a = product.a[g * 4 + k % 4] + k / 4 * 2; /* rows g and g + 8 */
                const double b = product.b[(2 * t + c) * 4 + k % 4][k / 4];
                product.d[lane][c] += a[0] * b;
                product.d[lane][2 + c] += a[1] * b;
            }
    }
}

} // namespace hopper_model

/* ---- the instructions ------------------------------------------------------------------------ */

namespace hopper {

inline void wgmma_fence() {}
inline void wgmma_commit() {
    hopper_model::Warpgroup *group = hopper_model::own_warpgroup();
    const int t = tsr_emulation_thread() % 128;
    group->groups[t][group->commits[t]++ % 8] = group->asked[t];
    tsr_emulation_pause();
}
template <int PENDING> void wgmma_wait() { hopper_model::wait_for_products(PENDING); }
template <int COUNT> void wgmma_hold(float (&)[COUNT]) {}
template <int COUNT> void wgmma_hold(int (&)[COUNT]) {}

inline void wgmma_m64n192k16(float (&d)[96], uint64_t a, uint64_t b, bool add) {
    hopper_model::ask({hopper_model::Form::F16, 192, false}, d, nullptr, a, b, add);
}
inline void wgmma_m64n128k16_f16(float (&d)[64], uint64_t a, uint64_t b, bool add) {
    hopper_model::ask({hopper_model::Form::F16, 128, true}, d, nullptr, a, b, add);
}
inline void wgmma_m64n128k16_bf16(float (&d)[64], uint64_t a, uint64_t b, bool add) {
    hopper_model::ask({hopper_model::Form::BF16, 128, true}, d, nullptr, a, b, add);
}
inline void wgmma_m64n256k16_f16(float (&d)[128], uint64_t a, uint64_t b, bool add) {
    hopper_model::ask({hopper_model::Form::F16, 256, true}, d, nullptr, a, b, add);
}
inline void wgmma_m64n256k16_bf16(float (&d)[128], uint64_t a, uint64_t b, bool add) {
    hopper_model::ask({hopper_model::Form::BF16, 256, true}, d, nullptr, a, b, add);
}
inline void wgmma_m64n256k8(float (&d)[128], const uint32_t (&a)[4], uint64_t b, bool add) {
    hopper_model::ask({hopper_model::Form::TF32, 256, false}, d, a, 0, b, add);
}
inline void wgmma_m64n256k32_s8(int (&d)[128], uint64_t a, uint64_t b, bool add) {
    hopper_model::ask({hopper_model::Form::S8, 256, false}, d, nullptr, a, b, add);
}
inline void wgmma_m64n8k32_s8(int (&d)[4], uint64_t a, uint64_t b, bool add) {
    hopper_model::ask({hopper_model::Form::S8, 8, false}, d, nullptr, a, b, add);
}
inline void wgmma_m64n32k32_s8(int (&d)[16], uint64_t a, uint64_t b, bool add) {
    hopper_model::ask({hopper_model::Form::S8, 32, false}, d, nullptr, a, b, add);
}
inline void wgmma_m64n64k32_s8(int (&d)[32], uint64_t a, uint64_t b, bool add) {
    hopper_model::ask({hopper_model::Form::S8, 64, false}, d, nullptr, a, b, add);
}

inline void mma_m16n8k16(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
    hopper_model::WarpProduct *own = &hopper_model::warp_products[tsr_emulation_rank()][tsr_emulation_thread() / 32];
    const int lane = tsr_emulation_lane();
    const uint64_t done = own->done;
    own->d[lane] = d;
    own->a[lane] = a;
    own->b[lane] = b;
    if (++own->asked == 32) {
        hopper_model::carry_out(*own);
        own->asked = 0;
        own->done++;
        tsr_emulation_wake(own);
    }
    while (own->done == done) tsr_emulation_wait(own, "the other lanes of a product");
}
template <bool BF16> void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    hopper_model::WarpHalves *own = hopper_model::own_halves();
    const int lane = tsr_emulation_lane();
    const auto put = [](float *to, uint32_t pair) {
        for (int e = 0; e < 2; e++) {
            const uint16_t bits = (uint16_t)(pair >> 16 * e);
            to[e] = BF16 ? (float)tsr_bf16_decode(bits) : (float)tsr_half_decode(bits);
        }
    };
    own->d[lane] = d;
    for (int i = 0; i < 4; i++) put(&own->a[lane % 32 / 4 + i % 2 * 8][lane % 4 * 2 + i / 2 * 8], a[i]);
    put(&own->b[lane / 4][lane % 4 * 2], b0);
    put(&own->b[lane / 4][lane % 4 * 2 + 8], b1);
    hopper_model::together(own, [own] { hopper_model::carry_out(*own); });
}
inline void load_eights(uint32_t (&x)[4], const uint16_t *row, bool turned) {
    hopper_model::WarpHalves *own = hopper_model::own_halves();
    const int g = tsr_emulation_lane() / 4, t = tsr_emulation_lane() % 4;
    if ((uintptr_t)row % 16 != 0) tsr_emulation_complain("ldmatrix of a row that begins at no multiple of 16 bytes");
    own->rows[tsr_emulation_lane()] = row;
    hopper_model::together(own, [] {});
    for (int i = 0; i < 4; i++) {
        uint16_t pair[2];
        for (int e = 0; e < 2; e++)
            pair[e] = turned ? own->rows[i * 8 + 2 * t + e][g] : own->rows[i * 8 + g][2 * t + e];
        x[i] = pair[0] | (uint32_t)pair[1] << 16;
    }
    hopper_model::together(own, [] {}); /* before anyone names the next rows */
}
inline void load_matrices(uint32_t (&x)[4], const uint16_t *row) { load_eights(x, row, false); }
inline void load_matrices_turned(uint32_t (&x)[4], const uint16_t *row) { load_eights(x, row, true); }
inline void load_shared(double *x, uint32_t at) {
    if (at % 16 != 0) tsr_emulation_complain("16 bytes from address %u", at);
    memcpy(x, hopper_model::place(tsr_emulation_rank(), at, 16), 16);
}

} // namespace hopper

#endif
