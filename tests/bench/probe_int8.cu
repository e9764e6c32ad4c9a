/* Probe: how fast int8 products reduced to residues can be made on sm_90a, the first question of exact products
 * (int8_product.h). Checked against a plain loop on samples, and measured beside cuBLAS' int8 product (int32 out) in
 * turns, each for as long as asked for, so that the power limit counts.
 * Build and run (a machine with H200 GPUs):
 *   nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -I. tests/bench/probe_int8.cu -o probe_int8 -lcublasLt \
 *       -lcuda
 *   ./probe_int8 [SECONDS [N...]]
 * Measured: H200, 2026-11-22, 2 s each in turns: 1321 TOP/s at 4096 (cuBLAS 1260), 1383 (1286) at 8192, 1421 (1302) at
 * 16384. */
#include <algorithm>
#include <vector>

#include <cublasLt.h>

#include "tests/bench/int8_product.h"

#define LT(call) check((call) == CUBLAS_STATUS_SUCCESS, #call)

namespace {

/* cuBLAS' product, int32 out, by the fastest of the algorithms it offers first. */
struct Vendor {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t found[16];
    int count, best;
    void *at_a, *at_b, *at_c, *workspace;
    void launch(int which) const {
        const int one = 1, zero = 0;
        LT(cublasLtMatmul(handle, what, &one, at_b, b, at_a, a, &zero, at_c, c, at_c, c, &found[which].algo, workspace,
                          (size_t)64 << 20, 0));
    }
    void launch() const { launch(best); }
};

Vendor vendor_of(void *a, void *b, void *c, int64_t n) {
    Vendor v = {};
    cublasLtMatmulPreference_t preference;
    const cublasOperation_t turned = CUBLAS_OP_T;
    const size_t room = (size_t)64 << 20;
    v.at_a = a;
    v.at_b = b;
    v.at_c = c;
    CUDA(cudaMalloc(&v.workspace, room));
    LT(cublasLtCreate(&v.handle));
    LT(cublasLtMatmulDescCreate(&v.what, CUBLAS_COMPUTE_32I, CUDA_R_32I));
    LT(cublasLtMatmulDescSetAttribute(v.what, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned));
    LT(cublasLtMatrixLayoutCreate(&v.a, CUDA_R_8I, n, n, n));
    LT(cublasLtMatrixLayoutCreate(&v.b, CUDA_R_8I, n, n, n));
    LT(cublasLtMatrixLayoutCreate(&v.c, CUDA_R_32I, n, n, n));
    LT(cublasLtMatmulPreferenceCreate(&preference));
    LT(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
    LT(cublasLtMatmulAlgoGetHeuristic(v.handle, v.what, v.b, v.a, v.c, v.c, preference, 16, v.found, &v.count));
    double least = 1e9;
    for (int i = 0; i < v.count; i++) {
        v.launch(i);
        const double seconds = seconds_of(3, [&] { v.launch(i); });
        if (seconds < least) {
            least = seconds;
            v.best = i;
        }
    }
    return v;
}

/* Samples of C against a plain loop; what is wrong ends the probe. */
void verify(const std::vector<signed char> &a, const std::vector<signed char> &b, const void *at_c, int64_t n,
            int modulus) {
    std::vector<signed char> c((size_t)(n * n));
    CUDA(cudaMemcpy(c.data(), at_c, c.size(), cudaMemcpyDeviceToHost));
    for (int sample = 0; sample < 4096; sample++) {
        const int64_t i = sample < 512 ? sample % n : rand() % n, j = sample < 512 ? sample * 7 % n : rand() % n;
        int64_t sum = 0;
        for (int64_t q = 0; q < n; q++) sum += a[(size_t)(i * n + q)] * b[(size_t)(j * n + q)];
        const int64_t got = c[(size_t)(i * n + j)];
        if ((sum - got) % modulus == 0 && 2 * llabs(got) <= modulus) continue;
        fprintf(stderr, "probe_int8: C[%lld][%lld] is %lld, the sum %lld mod %d is %lld\n", (long long)i, (long long)j,
                (long long)got, (long long)sum, modulus, (long long)(sum % modulus));
        exit(1);
    }
}

} // namespace

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 2;
    std::vector<int64_t> sizes;
    for (int i = 2; i < argc; i++) sizes.push_back(atoll(argv[i]));
    if (sizes.empty()) sizes = {4096, 8192, 16384};
    CUDA(cudaFree(nullptr));
    for (int64_t n : sizes) {
        const int modulus = 251;
        std::vector<signed char> a((size_t)(n * n)), b(a.size());
        for (auto &x : a) x = (signed char)(rand() % modulus - modulus / 2);
        for (auto &x : b) x = (signed char)(rand() % modulus - modulus / 2);
        void *at_a, *at_b, *at_c, *at_wide;
        CUDA(cudaMalloc(&at_a, a.size()));
        CUDA(cudaMalloc(&at_b, a.size()));
        CUDA(cudaMalloc(&at_c, a.size()));
        CUDA(cudaMalloc(&at_wide, 4 * a.size()));
        CUDA(cudaMemcpy(at_a, a.data(), a.size(), cudaMemcpyHostToDevice));
        CUDA(cudaMemcpy(at_b, b.data(), b.size(), cudaMemcpyHostToDevice));
        const Products own = products_of(at_a, at_b, at_c, n, n, n, 1, &modulus);
        const Vendor vendor = vendor_of(at_a, at_b, at_wide, n);
        own.launch();
        CUDA(cudaDeviceSynchronize());
        verify(a, b, at_c, n, modulus);
        std::vector<double> rates[2];
        for (int round = 0; round < 3; round++)
            for (int which = 0; which < 2; which++) {
                const auto one = [&] { which ? vendor.launch() : own.launch(); };
                const int count = (int)std::max(1.0, seconds / seconds_of(3, one));
                rates[which].push_back(2.0 * (double)n * (double)n * (double)n / seconds_of(count, one) / 1e12);
            }
        for (auto &r : rates) std::sort(r.begin(), r.end());
        printf("%6lld: residues %.0f TOP/s, cuBLAS int32 %.0f (of %d algorithms), ratio %.3f\n", (long long)n,
               rates[0][1], rates[1][1], vendor.count, rates[0][1] / rates[1][1]);
        for (void *at : {at_a, at_b, at_c, at_wide, vendor.workspace}) CUDA(cudaFree(at));
    }
    return 0;
}
