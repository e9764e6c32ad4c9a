/* Probe: what an fp64 product costs by integer tensor cores (Ozaki scheme II), step by step, beside cuBLAS DGEMM in
 * turns. C = A·B, all row-major and n × n: rows of A and columns of B are rounded to integers with one power of two
 * each, multiplied exactly modulo 14 small moduli (int8_product.h), put together by the Chinese remainder theorem in
 * 128-bit integers, and rounded once. One scale for all of k; no certificate, no Inf or NaN; n a multiple of 256, up
 * to 16384. Checked against the definition, bit for bit, on samples.
 * Build and run (a machine with H200 GPUs):
 *   nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -I. tests/bench/probe_exact.cu -o probe_exact -lcublas \
 *       -lcuda
 *   ./probe_exact [SECONDS [N...]]
 * Measured: H200, 2026-11-22, 2 s each in turns: 73.3 TFLOP/s at 4096 (cuBLAS 52.6), 85.6 (54.0) at 8192, 88.6 (52.7)
 * at 16384; of 13.3 ms at 8192 conversion takes 1.4, CRT 0.7. Largest error 1.1 u of |A||B| (normal data).
 * Source: Ozaki, Uchino, Imamura, arXiv 2504.08009; Uchino, Ozaki, Imamura, arXiv 2508.03984. */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <cooperative_groups.h>
#include <cublas_v2.h>

#include "tests/bench/int8_product.h"

#define BLAS(call) check((call) == CUBLAS_STATUS_SUCCESS, #call)

namespace {

typedef unsigned __int128 wide;

constexpr int MODULI[PLANES_MAX] = {256, 255, 253, 251, 247, 241, 239, 233, 229, 227,
                                    223, 217, 211, 199, 197, 193, 191, 181, 179, 173};

/* ---- moduli: all of it is known when this is compiled ---------------------------------------- */

/* a·b mod m, all below 2^127. */
constexpr wide times(wide a, wide b, wide m) {
    wide r = 0;
    for (a %= m; b; b >>= 1, a = (a << 1) % m)
        if (b & 1) r = (r + a) % m;
    return r;
}

constexpr int inverse_of(int x, int p) {
    for (int i = 1; i < p; i++)
        if (x % p * i % p == 1) return i;
    return 0;
}

constexpr wide product_of(int count) {
    wide all = 1;
    for (int i = 0; i < count; i++) all *= (wide)MODULI[i];
    return all;
}

/* What conversion and reconstruction need of `COUNT` moduli. */
template <int COUNT> struct Moduli {
    static constexpr int WORDS = (COUNT + 3) / 4, BYTES = 16;
    int modulus[COUNT];
    wide product;
    wide limit;                 /* what the squares of a row's integers may sum to */
    unsigned weights[COUNT][2]; /* 256^i mod p for the bytes of an integer, four a word */
    unsigned start[COUNT];      /* takes 2^63 away; as the bits of a float it adds 2^23 */
    unsigned unit_bytes[BYTES]
                       [WORDS]; /* byte b of the numbers that are 1 mod p and 0 mod the others, four moduli a word */

    constexpr Moduli() : modulus{}, product(product_of(COUNT)), limit(0), weights{}, start{}, unit_bytes{} {
        limit = (product - 1) / 2;
        limit -= limit >> 20; /* for the rounding of integers, and of the quotient */
        for (int i = 0; i < COUNT; i++) {
            const int p = modulus[i] = MODULI[i];
            const wide others = product / (wide)p;
            wide unit = times(others, (wide)inverse_of((int)(others % (wide)p), p), product);
            for (int b = 0; b < BYTES; b++, unit >>= 8) unit_bytes[b][i / 4] |= (unsigned)(unit & 0xff) << 8 * (i % 4);
            long long power = 1;
            for (int b = 0; b < 8; b++, power = power * 256 % p) weights[i][b / 4] |= (unsigned)power << 8 * (b % 4);
            start[i] = 0x4B000000u + ((unsigned)p - (unsigned)((1ull << 63) % (unsigned)p)) % (unsigned)p;
        }
    }
};

/* ---- scales ---------------------------------------------------------------------------------- */

__device__ __forceinline__ double power_of_two(int e) { return __longlong_as_double((long long)(e + 1023) << 52); }

/* ceil(|a|·2^(15-E))², of numbers below 2^E. */
__device__ __forceinline__ unsigned long long square_of(double a, double scale) {
    const unsigned q = (unsigned)ceil(fabs(a) * scale);
    return (unsigned long long)q * q;
}

/* The largest shift that a row's numbers may have: sum·4^(shift + E - 15) stays below the limit. */
__device__ __forceinline__ int shift_of(unsigned long long sum, int E, wide limit) {
    if (sum == 0) return 0;
    const int bits = 64 - __clzll((long long)sum),
              top = 128 - __clzll((long long)(limit >> 64)); /* limit is above 2^64 */
    int t = (top - bits) / 2 + 1;
    while ((wide)sum << 2 * t > limit) t--; /* at most three times */
    return t + 15 - E;
}

/* ---- conversion ------------------------------------------------------------------------------ */

constexpr int GROUP = 16; /* elements along k that a thread converts to 16 bytes of each plane */

__device__ __forceinline__ void integer_of(double a, double scale, unsigned *low, unsigned *high) {
    const unsigned long long x = (unsigned long long)__double2ll_rn(a * scale) ^ 1ull << 63; /* plus 2^63 */
    *low = (unsigned)x;
    *high = (unsigned)(x >> 32);
}

/* The residue in the low byte. Sums of bytes by weights are below 2^20: read as a float they are exact, and the nearest
 * quotient is right but for ties, which odd moduli do not have. */
template <int COUNT> __device__ __forceinline__ unsigned residue_byte(unsigned low, unsigned high, int i) {
    constexpr Moduli<COUNT> m;
    const int p = m.modulus[i];
    if (p == 256) return low;
    const unsigned v = __dp4a(low, m.weights[i][0], __dp4a(high, m.weights[i][1], m.start[i]));
    const float quotient = fmaf(__uint_as_float(v) - 8388608.0f, 1.0f / (float)p, 12582912.0f);
    return v - __float_as_uint(quotient) * (unsigned)p;
}

template <int COUNT>
__device__ __forceinline__ unsigned residue_word(const unsigned (&low)[GROUP], const unsigned (&high)[GROUP], int at,
                                                 int i) {
    const unsigned r0 = residue_byte<COUNT>(low[at], high[at], i);
    const unsigned r1 = residue_byte<COUNT>(low[at + 1], high[at + 1], i);
    const unsigned r2 = residue_byte<COUNT>(low[at + 2], high[at + 2], i);
    const unsigned r3 = residue_byte<COUNT>(low[at + 3], high[at + 3], i);
    return __byte_perm(__byte_perm(r0, r1, 0x0040), __byte_perm(r2, r3, 0x0040), 0x5410);
}

/* 16 integers to 16 bytes of each plane. */
template <int COUNT>
__device__ __forceinline__ void write_planes(const unsigned (&low)[GROUP], const unsigned (&high)[GROUP],
                                             signed char *to, int64_t plane_bytes) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        uint4 words;
        words.x = residue_word<COUNT>(low, high, 0, i);
        words.y = residue_word<COUNT>(low, high, 4, i);
        words.z = residue_word<COUNT>(low, high, 8, i);
        words.w = residue_word<COUNT>(low, high, 12, i);
        __stcs(reinterpret_cast<uint4 *>(to + i * plane_bytes), words);
    }
}

/* A row of A a block: read once into shared memory, where it is scaled and converted. A gap after 16 keeps banks
 * apart. */
template <int COUNT, int ROW_THREADS>
__global__ void __launch_bounds__(ROW_THREADS)
    convert_rows(const double *a, int64_t k, signed char *planes, int64_t plane_bytes, int *shifts) {
    constexpr Moduli<COUNT> m;
    extern __shared__ double row[];
    __shared__ int largest;
    __shared__ unsigned long long sum;
    const int64_t i = blockIdx.x;
    if (threadIdx.x == 0) {
        largest = 0;
        sum = 0;
    }
    __syncthreads();
    int top = 0;
#pragma unroll 8
    for (int l = (int)threadIdx.x; l < k; l += ROW_THREADS) {
        const double x = __ldcs(a + i * k + l);
        row[l + l / GROUP] = x;
        top = max(top, __double2hiint(x) & 0x7fffffff);
    }
    top = __reduce_max_sync(0xffffffffu, top);
    if (threadIdx.x % 32 == 0) atomicMax(&largest, top);
    __syncthreads();
    const int E = (largest >> 20) - 1022;
    const double to_squares = power_of_two(15 - E);
    unsigned long long squares = 0;
#pragma unroll 4
    for (int l = (int)threadIdx.x; l < k; l += ROW_THREADS) squares += square_of(row[l + l / GROUP], to_squares);
    for (int lane = 16; lane > 0; lane /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(&sum, squares);
    __syncthreads();
    const int shift = shift_of(sum, E, m.limit);
    if (threadIdx.x == 0) shifts[i] = shift;
    const double scale = power_of_two(shift);
    for (int l = (int)threadIdx.x * GROUP; l < k; l += ROW_THREADS * GROUP) {
        unsigned low[GROUP], high[GROUP];
#pragma unroll
        for (int e = 0; e < GROUP; e++) integer_of(row[l + l / GROUP + e], scale, low + e, high + e);
        write_planes<COUNT>(low, high, planes + i * k + l, plane_bytes);
    }
}

constexpr int COLUMNS = 8, COLUMN_THREADS = 256; /* of B a cluster, whose blocks hold a part of k each */

__device__ __forceinline__ int place_of(int l, int c) { return l * COLUMNS + l / GROUP * COLUMNS + c; }

template <int COUNT>
__global__ void __launch_bounds__(COLUMN_THREADS)
    convert_columns(const double *b, int64_t k, int64_t n, signed char *planes, int64_t plane_bytes, int *shifts) {
    namespace cg = cooperative_groups;
    constexpr Moduli<COUNT> m;
    extern __shared__ double part[]; /* (k / parts) × COLUMNS */
    __shared__ int largest[COLUMNS];
    __shared__ unsigned long long sums[COLUMNS];
    cg::cluster_group cluster = cg::this_cluster();
    const int parts = (int)gridDim.y;
    const int rows = (int)(k / parts);
    const int step = COLUMN_THREADS / COLUMNS;
    const int64_t row0 = (int64_t)blockIdx.y * rows, col0 = (int64_t)blockIdx.x * COLUMNS;
    const int c = (int)threadIdx.x % COLUMNS, first = (int)threadIdx.x / COLUMNS;
    if (threadIdx.x < COLUMNS) {
        largest[threadIdx.x] = 0;
        sums[threadIdx.x] = 0;
    }
    __syncthreads();
    int top = 0;
#pragma unroll 8
    for (int l = first; l < rows; l += step) {
        const double x = __ldcs(b + (row0 + l) * n + col0 + c);
        part[place_of(l, c)] = x;
        top = max(top, __double2hiint(x) & 0x7fffffff);
    }
    atomicMax(&largest[c], top);
    cluster.sync();
    for (int other = 0; other < parts; other++) top = max(top, *cluster.map_shared_rank(&largest[c], other));
    const int E = (top >> 20) - 1022;
    const double to_squares = power_of_two(15 - E);
    unsigned long long squares = 0;
#pragma unroll 4
    for (int l = first; l < rows; l += step) squares += square_of(part[place_of(l, c)], to_squares);
    atomicAdd(&sums[c], squares);
    cluster.sync();
    unsigned long long sum = 0;
    for (int other = 0; other < parts; other++) sum += *cluster.map_shared_rank(&sums[c], other);
    const int shift = shift_of(sum, E, m.limit);
    if (blockIdx.y == 0 && threadIdx.x < COLUMNS) shifts[col0 + c] = shift;
    const double scale = power_of_two(shift);
    for (int l = first * GROUP; l < rows; l += step * GROUP) {
        unsigned low[GROUP], high[GROUP];
#pragma unroll
        for (int e = 0; e < GROUP; e++) integer_of(part[place_of(l + e, c)], scale, low + e, high + e);
        write_planes<COUNT>(low, high, planes + (col0 + c) * k + row0 + l, plane_bytes);
    }
    cluster.sync(); /* the others read this block's memory */
}

/* ---- reconstruction -------------------------------------------------------------------------- */

/* x (signed, 128 bits) to fp64, to nearest. */
__host__ __device__ __forceinline__ double rounded(__int128 x) {
    const bool negative = x < 0;
    const wide u = negative ? -(wide)x : (wide)x;
    const unsigned long long high = (unsigned long long)(u >> 64), low = (unsigned long long)u;
#ifdef __CUDA_ARCH__
    const int drop =
        64 - __clzll((long long)high); /* bits below the 64 that are kept, of which the last gathers what is lost */
    const unsigned long long lost = drop < 64 ? low & ((1ull << drop) - 1) : low;
    const unsigned long long top = drop == 0    ? low
                                   : drop == 64 ? high | (lost != 0)
                                                : (high << (64 - drop) | low >> drop) | (lost != 0);
    const double value = __ull2double_rn(top) * power_of_two(drop);
#else
    const int drop = high ? 64 - __builtin_clzll(high) : 0;
    const unsigned long long top = (unsigned long long)(u >> drop) | ((u & (((wide)1 << drop) - 1)) != 0);
    const double value = std::ldexp((double)(drop ? top : low), drop);
#endif
    return negative ? -value : value;
}

/* Words of four elements of a modulus to words of four moduli of an element. */
__device__ __forceinline__ void transpose(unsigned (&w)[4]) {
    const unsigned a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
    const unsigned c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(a, b, 0x5410);
    w[1] = __byte_perm(a, b, 0x7632);
    w[2] = __byte_perm(c, d, 0x5410);
    w[3] = __byte_perm(c, d, 0x7632);
}

/* sum + bytes of a, signed, times bytes of b, unsigned. */
__device__ __forceinline__ int dp4a_mixed(unsigned a, unsigned b, int sum) {
    int d;
    asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(sum));
    return d;
}

/* The integer that has these residues, by bytes of the units. */
template <int COUNT> __device__ __forceinline__ double value_of(const unsigned (&r)[Moduli<COUNT>::WORDS]) {
    constexpr Moduli<COUNT> m;
    constexpr double reciprocal = 0x1p64 / (double)m.product;
    long long quarter[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
        int bytes[4] = {0, 0, 0, 0};
#pragma unroll
        for (int b = 0; b < 4; b++)
#pragma unroll
            for (int w = 0; w < Moduli<COUNT>::WORDS; w++)
                bytes[b] = dp4a_mixed(r[w], m.unit_bytes[4 * q + b][w], bytes[b]);
        quarter[q] = (long long)(bytes[0] + (bytes[1] << 8)) + (long long)(bytes[2] + (bytes[3] << 8)) * 65536;
    }
    __int128 x = (__int128)(quarter[2] + (quarter[3] << 32)) << 64;
    x += (__int128)quarter[0];
    x += (__int128)quarter[1] << 32;
    const int quotient = __double2int_rn((double)(long long)(x >> 64) * reciprocal);
    x -= (__int128)m.product * quotient;
    return rounded(x);
}

/* Four elements a thread. */
template <int COUNT>
__global__ void __launch_bounds__(256) combine(const signed char *planes, int64_t plane_bytes, int64_t n,
                                               const int *row_shifts, const int *column_shifts, double *c) {
    constexpr int WORDS = Moduli<COUNT>::WORDS;
    const int64_t at = ((int64_t)blockIdx.x * 256 + threadIdx.x) * 4;
    unsigned words[WORDS][4] = {};
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        words[i / 4][i % 4] = __ldcs(reinterpret_cast<const unsigned *>(planes + i * plane_bytes + at));
#pragma unroll
    for (int w = 0; w < WORDS; w++) transpose(words[w]);
    const int64_t row = at / n, col = at % n;
    const int4 shifts = *reinterpret_cast<const int4 *>(column_shifts + col);
    const int by_column[4] = {shifts.x, shifts.y, shifts.z, shifts.w}, by_row = row_shifts[row];
    double out[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        unsigned r[WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; w++) r[w] = words[w][e];
        out[e] = value_of<COUNT>(r) * power_of_two(-by_row) * power_of_two(-by_column[e]);
    }
    __stcs(reinterpret_cast<double2 *>(c + at), make_double2(out[0], out[1]));
    __stcs(reinterpret_cast<double2 *>(c + at) + 1, make_double2(out[2], out[3]));
}

/* ---- the whole product ----------------------------------------------------------------------- */

template <int COUNT> struct Exact {
    int64_t n;
    Products products;
    const double *a, *b;
    double *c;
    signed char *planes_a, *planes_b, *planes_c;
    int *shifts_a, *shifts_b;

    void prepare() {
        CUDA(cudaFuncSetAttribute(convert_rows<COUNT, 256>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
        CUDA(cudaFuncSetAttribute(convert_rows<COUNT, 1024>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
        CUDA(cudaFuncSetAttribute(convert_columns<COUNT>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
        CUDA(cudaFuncSetAttribute(convert_columns<COUNT>, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
        products = products_of(planes_a, planes_b, planes_c, n, n, n, COUNT, MODULI);
    }
    void convert_a() const { /* where one row fills a multiprocessor's memory, with more threads */
        const size_t bytes = (size_t)(n + n / GROUP) * sizeof(double);
        if (n > 8192) convert_rows<COUNT, 1024><<<(unsigned)n, 1024, bytes>>>(a, n, planes_a, n * n, shifts_a);
        else convert_rows<COUNT, 256><<<(unsigned)n, 256, bytes>>>(a, n, planes_a, n * n, shifts_a);
    }
    void convert_b() const {
        const unsigned parts = n > 8192 ? 16 : 8;
        cudaLaunchAttribute cluster = {};
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim = {1, parts, 1};
        cudaLaunchConfig_t how = {};
        how.gridDim = dim3((unsigned)(n / COLUMNS), parts);
        how.blockDim = dim3(COLUMN_THREADS);
        how.dynamicSmemBytes = (size_t)(n / parts + n / parts / GROUP) * COLUMNS * sizeof(double);
        how.attrs = &cluster;
        how.numAttrs = 1;
        CUDA(cudaLaunchKernelEx(&how, convert_columns<COUNT>, b, n, n, planes_b, n * n, shifts_b));
    }
    void multiply() const { products.launch(); }
    void put_together() const {
        combine<COUNT><<<(unsigned)(n * n / 1024), 256>>>(planes_c, n * n, n, shifts_a, shifts_b, c);
    }
    void run() const {
        convert_a();
        convert_b();
        multiply();
        put_together();
        CUDA(cudaGetLastError());
    }
};

/* Samples against the definition, with the same integers. */
template <int COUNT> void verify(const Exact<COUNT> &x, const std::vector<double> &a, const std::vector<double> &b) {
    const int64_t n = x.n;
    std::vector<double> c((size_t)(n * n));
    std::vector<int> rows((size_t)n), columns((size_t)n);
    CUDA(cudaMemcpy(c.data(), x.c, c.size() * sizeof(double), cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(rows.data(), x.shifts_a, rows.size() * sizeof(int), cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(columns.data(), x.shifts_b, columns.size() * sizeof(int), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int sample = 0; sample < 2000; sample++) {
        const int64_t i = sample < 300 ? sample * 7 % n : rand() % n, j = sample < 300 ? sample * 11 % n : rand() % n;
        __int128 sum = 0;
        double magnitude = 0;
        for (int64_t l = 0; l < n; l++) {
            const double u = a[(size_t)(i * n + l)], v = b[(size_t)(l * n + j)];
            sum +=
                (__int128)std::llrint(std::ldexp(u, rows[(size_t)i])) * std::llrint(std::ldexp(v, columns[(size_t)j]));
            magnitude += std::fabs(u * v);
        }
        const double expected = std::ldexp(rounded(sum), -rows[(size_t)i] - columns[(size_t)j]),
                     got = c[(size_t)(i * n + j)];
        if (std::memcmp(&expected, &got, sizeof got) != 0) {
            fprintf(stderr, "probe_exact: C[%lld][%lld] is %.17g, by definition %.17g\n", (long long)i, (long long)j,
                    got, expected);
            exit(1);
        }
        long double exact = 0;
        for (int64_t l = 0; l < n; l++) exact += (long double)a[(size_t)(i * n + l)] * b[(size_t)(l * n + j)];
        worst = std::max(worst, (double)(std::fabs(exact - (long double)got) / magnitude) * 0x1p53);
    }
    printf("        2000 samples are what the definition says; largest error %.2f u of |A||B|\n", worst);
}

template <typename T> T *device(size_t count) {
    void *at;
    CUDA(cudaMalloc(&at, count * sizeof(T)));
    return static_cast<T *>(at);
}

/* One size: checked, then measured in turns. */
template <int COUNT> void measure(cublasHandle_t blas, double seconds, int64_t n) {
    const size_t elements = (size_t)(n * n);
    std::vector<double> a(elements), b(elements);
    for (auto *matrix : {&a, &b})
        for (auto &x : *matrix)
            x = std::sqrt(-2 * std::log(drand48() + 1e-300)) * std::cos(6.283185307179586 * drand48());
    double *at_a = device<double>(elements);
    double *at_b = device<double>(elements);
    double *at_c = device<double>(elements);
    double *at_d = device<double>(elements);
    CUDA(cudaMemcpy(at_a, a.data(), elements * sizeof(double), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(at_b, b.data(), elements * sizeof(double), cudaMemcpyHostToDevice));
    const size_t planes = elements * (size_t)COUNT;
    Exact<COUNT> x = {n,
                      {},
                      at_a,
                      at_b,
                      at_c,
                      device<signed char>(planes),
                      device<signed char>(planes),
                      device<signed char>(planes),
                      device<int>((size_t)n),
                      device<int>((size_t)n)};
    x.prepare();
    x.run();
    CUDA(cudaDeviceSynchronize());
    verify(x, a, b);
    const double one = 1, zero = 0;
    const auto vendor = [&] {
        BLAS(cublasDgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)n, (int)n, (int)n, &one, at_b, (int)n, at_a, (int)n,
                         &zero, at_d, (int)n));
    };
    vendor();
    CUDA(cudaDeviceSynchronize());
    std::vector<double> rates[2];
    for (int round = 0; round < 3; round++)
        for (int which = 0; which < 2; which++) {
            const auto call = [&] { which ? vendor() : x.run(); };
            const int times = (int)std::max(1.0, seconds / seconds_of(2, call));
            rates[which].push_back(2.0 * (double)n * (double)n * (double)n / seconds_of(times, call) / 1e12);
        }
    for (auto &r : rates) std::sort(r.begin(), r.end());
    const auto ms = [](auto call) { return 1e3 * seconds_of(10, call); };
    printf("%6lld: exact with %d moduli %.1f TFLOP/s, cuBLAS DGEMM %.1f, ratio %.3f; ms: rows %.3f, columns %.3f, "
           "products %.3f, "
           "CRT %.3f\n",
           (long long)n, COUNT, rates[0][1], rates[1][1], rates[0][1] / rates[1][1], ms([&] { x.convert_a(); }),
           ms([&] { x.convert_b(); }), ms([&] { x.multiply(); }), ms([&] { x.put_together(); }));
    for (void *at : {(void *)at_a, (void *)at_b, (void *)at_c, (void *)at_d, (void *)x.planes_a, (void *)x.planes_b,
                     (void *)x.planes_c, (void *)x.shifts_a, (void *)x.shifts_b})
        CUDA(cudaFree(at));
}

} // namespace

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 2;
    std::vector<int64_t> sizes;
    for (int i = 2; i < argc; i++) sizes.push_back(atoll(argv[i]));
    if (sizes.empty()) sizes = {4096, 8192, 16384};
    cublasHandle_t blas;
    BLAS(cublasCreate(&blas));
    for (int64_t n : sizes) measure<14>(blas, seconds, n); /* 15 take sums of the units beyond 128 bits */
    return 0;
}
