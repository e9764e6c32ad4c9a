/* Operation: C = A·B or C += A·B, fp32 or fp64, row-major, any shape, with Kahan's compensated summation along k.
 * Mapping: as `checked`: one thread an element of a TILE × TILE tile of C, TILE 32 or 16 as the device allows;
 * beside its sum a thread keeps what the last additions lost and puts it back with the next product. C0 is added
 * last, with one rounding.
 * A block uses: TILE² threads, 2·TILE² elements of dynamic shared memory (TILE 32: 8 KiB in fp32, 16 KiB in fp64),
 * at most 64 registers a thread.
 * Requirements: none; any shape, any alignment.
 * Arithmetic intensity: TILE/4 flop/byte in fp32, TILE/8 in fp64, counting two flops a product; it executes seven.
 * Error: |ΔC| ≤ (3u + O(k·u²))·(|A||B|): two roundings from the sum, one from the product; the stated factor 4
 * covers k·u up to 1/8.
 * Measured at 4096 on an H200, 2026-11-21: fp32 5.7 TFLOP/s, 9 % of the CUDA cores' peak; fp64 3.6, 11 %.
 * Reference: Kahan, Further remarks on reducing truncation errors, CACM 8(1), 1965; Higham, Accuracy and Stability
 * of Numerical Algorithms, 2nd ed., section 4.3. */
#include "kernels/gemm/textbook/checked.h"

namespace {

/* Rounded once each; the compiler neither contracts nor reorders them, whatever its options. */
__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float subtract(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double subtract(double a, double b) { return __dsub_rn(a, b); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }

/* `lost` is what sum already has too much. */
template <typename T> struct kahan_sum {
    T sum = 0, lost = 0;
    __device__ __forceinline__ void add(T a, T b) {
        const T term = multiply_add(a, b, -lost);
        const T next = ::add(sum, term);
        lost = subtract(subtract(next, sum), term);
        /* Infinity minus itself is NaN, and would turn a sum that is rightly infinite into one. */
        if (!(subtract(lost, lost) == T(0))) lost = T(0);
        sum = next;
    }
    __device__ __forceinline__ T onto(T c0) const { return ::add(c0, sum); }
    __device__ __forceinline__ T of() const { return sum; }
};

constexpr double FACTOR = 4;

template <typename T> constexpr tsr_gemm_kernel table(tsr_dtype type) {
    return tsr_gemm_cuda_kernel(type, type,
                                {.name = "compensated",
                                 .what = "checked, with Kahan summation: an error bound that does not grow with k",
                                 .error_factor = FACTOR,
                                 .speed_rank = 15,
                                 .shape = shape<kahan_sum, T>,
                                 .launch = launch<kahan_sum, T>,
                                 .launch_reproducible = launch<kahan_sum, T>});
}

} // namespace

const tsr_gemm_kernel tsr_gemm_compensated_f32 = table<float>(TSR_F32);
const tsr_gemm_kernel tsr_gemm_compensated_f64 = table<double>(TSR_F64);
