/* The emulation itself: what it runs, and that it notices what it is there to notice. */
#include "kernels/device/cuda_compat.h"
#include "tests/check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

/* Every thread writes its place; the tree sum needs every barrier of the block. */
__global__ void sum_block(const int *from, int *to) {
    TSR_SHARED_DYNAMIC(int, shared);
    const int thread = threadIdx.x + threadIdx.y * blockDim.x;
    shared[thread] = from[blockIdx.x * blockDim.x * blockDim.y + thread];
    for (int half = blockDim.x * blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) shared[thread] += shared[thread + half];
    }
    if (thread == 0) to[blockIdx.x] = shared[0];
}

__global__ void warp_rotate(int *values) {
    __shared__ int shared[64];
    const int thread = threadIdx.x, lane = thread % warpSize;
    shared[thread] = values[thread];
    __syncwarp();
    values[thread] = shared[thread - lane + (lane + 1) % warpSize];
}

__global__ void rotate_loaded(int *values) { warp_rotate(values); }
__global__ void rotate_cold(int *values) { warp_rotate(values); }

__global__ void read_unwritten(float *to) {
    TSR_SHARED_DYNAMIC(float, shared);
    to[threadIdx.x] = shared[threadIdx.x];
    shared[threadIdx.x] = 1; /* the next block must not see it */
}

__global__ void end_early(int last) {
    if ((int)threadIdx.x == last) return;
    __syncthreads();
}

__global__ void two_barriers(int last) {
    if ((int)threadIdx.x < last) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}

__global__ void write_past(int elements) {
    TSR_SHARED_DYNAMIC(float, shared);
    shared[elements] = 1;
}

__global__ void begin_few(int last) {
    if ((int)threadIdx.x < last) tsr_cuda_begin();
}

static void check_sums() {
    int from[3 * 256], to[3];
    for (int i = 0; i < 3 * 256; i++) from[i] = i;
    for (int repeat = 0; repeat < 3; repeat++) {
        CHECK_OK(TSR_LAUNCH(sum_block, 3, dim3(64, 4), 256 * sizeof(int), NULL, from, to));
        for (int b = 0; b < 3; b++) CHECK(to[b] == 256 * (256 * b) + 255 * 128, "block %d: %d", b, to[b]);
    }
}

static void check_warps() {
    int values[64];
    for (int i = 0; i < 64; i++) values[i] = i;
    CHECK_OK(TSR_LAUNCH(warp_rotate, 1, 64, 0, NULL, values));
    for (int i = 0; i < 64; i++) CHECK(values[i] == i / 32 * 32 + (i + 1) % 32, "thread %d: %d", i, values[i]);
}

__global__ void warp_sum(double *to) {
    double sum = to[threadIdx.x];
    for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffffu, sum, apart);
    const double first = __shfl_sync(0xffffffffu, sum, 0);
    to[threadIdx.x] = first + __shfl_xor_sync(0xffffffffu, (int)threadIdx.x, 3);
}

static void check_shuffles() {
    double values[96];
    for (int i = 0; i < 96; i++) values[i] = i;
    CHECK_OK(TSR_LAUNCH(warp_sum, 1, 96, 0, NULL, values));
    for (int i = 0; i < 96; i++) {
        double expected = 32 * (i / 32 * 32) + 31 * 16 + (i ^ 3);
        CHECK(values[i] == expected, "thread %d: %g, not %g", i, values[i], expected);
    }
}

__global__ void warp_votes(unsigned *to, unsigned *shared) {
    const unsigned votes = __ballot_sync(0xffffffffu, threadIdx.x % 5 == 3);
    to[threadIdx.x] = votes << 16 | (unsigned)__popc(votes) << 8 | (unsigned)__ffs((int)votes);
    atomicAnd(shared, ~(1u << threadIdx.x % 16));
}

static void check_votes() {
    unsigned values[64], shared = 0xffffffffu;
    CHECK_OK(TSR_LAUNCH(warp_votes, 1, 64, 0, NULL, values, &shared));
    for (unsigned i = 0; i < 64; i++) {
        unsigned votes = 0, count = 0;
        unsigned first = 0;
        for (unsigned lane = 32; lane-- > 0;)
            if ((i / 32 * 32 + lane) % 5 == 3) {
                votes |= 1u << lane;
                count++;
                first = lane + 1;
            }
        CHECK(values[i] == (votes << 16 | count << 8 | first), "thread %u: %08x of votes %08x", i, values[i], votes);
    }
    CHECK(shared == 0xffff0000u, "%08x", shared);
}

static void check_poison() {
    float to[8] = {};
    CHECK_OK(TSR_LAUNCH(read_unwritten, 2, 8, 8 * sizeof(float), NULL, to));
    for (float value : to) CHECK(std::isnan(value), "shared memory began as %g", (double)value);
}

static void check_refusals() {
    for (int repeat = 0; repeat < 2; repeat++) {
        CHECK_FAILS(TSR_LAUNCH(end_early, 1, 96, 0, NULL, 5), TSR_ERR_DEVICE, "95 wait at __syncthreads()");
        CHECK_FAILS(TSR_LAUNCH(two_barriers, 1, 64, 0, NULL, 40), TSR_ERR_DEVICE, "and elsewhere");
        check_sums(); /* usable afterwards */
    }
    CHECK_FAILS(TSR_LAUNCH(end_early, 1, 1025, 0, NULL, 5), TSR_ERR_DEVICE, "1025 threads a block");
    CHECK_FAILS(TSR_LAUNCH(end_early, 0, 32, 0, NULL, 5), TSR_ERR_DEVICE, "0 blocks");
    CHECK_FAILS(TSR_LAUNCH(end_early, dim3(1, 6), 32, 0, NULL, 5), TSR_ERR_DEVICE, "6 blocks in dimension 1");
    CHECK_FAILS(TSR_LAUNCH(end_early, 1, 32, (48 << 10) + 1, NULL, 5), TSR_ERR_DEVICE, "bytes of shared memory");
}

/* One element past dynamic shared memory ends the program under AddressSanitizer. */
/* A thread that loads only runs nothing, and what was loaded is not cold. */
static void check_loading() {
    int values[64];
    for (int i = 0; i < 64; i++) values[i] = i;
    (void)tsr_emulation_cold(true);
    tsr_device_load_only(true);
    CHECK_OK(TSR_LAUNCH(rotate_loaded, 1, 64, 0, NULL, values));
    tsr_emulation_set_faults([](const char *call) { return strcmp(call, "cudaFuncGetAttributes") == 0 ? 719 : 0; });
    CHECK_FAILS(TSR_LAUNCH(rotate_loaded, 1, 64, 0, NULL, values), TSR_ERR_DEVICE, "loading of kernel rotate_loaded");
    tsr_emulation_set_faults(nullptr);
    tsr_device_load_only(false);
    for (int i = 0; i < 64; i++) CHECK(values[i] == i, "value %d is %d", i, values[i]);
    CHECK_OK(TSR_LAUNCH(rotate_loaded, 1, 64, 0, NULL, values));
    CHECK(values[0] == 1 && !tsr_emulation_cold(true), "value 0 is %d", values[0]);
    CHECK_OK(TSR_LAUNCH(rotate_cold, 1, 64, 0, NULL, values));
    CHECK(strcmp(tsr_emulation_cold(true), "rotate_cold") == 0, "a kernel that was not loaded");
    CHECK_OK(TSR_LAUNCH(rotate_cold, 1, 64, 0, NULL, values));
    CHECK(!tsr_emulation_cold(false), "it is, by its launch");
}

/* A launch that comes before the one in front has ended wants all threads to wait for that. */
static void check_beginning() {
    CHECK_OK(TSR_LAUNCH_NEXT(begin_few, 2, 64, 0, NULL, 64));
    CHECK(TSR_LAUNCH_NEXT(begin_few, 2, 64, 0, NULL, 63) == TSR_ERR_DEVICE, "63 of 64 threads wait, and it passes");
    CHECK(strstr(tsr_message(), "126 of 128 threads wait"), "%s", tsr_message());
}

static void check_overrun() {
    for (int elements = 7; elements <= 8; elements++) {
        pid_t child = fork();
        CHECK(child >= 0, "fork failed");
        if (child == 0) {
            if (!freopen("/dev/null", "w", stderr)) _exit(1);
            _exit(TSR_LAUNCH(write_past, 1, 1, 8 * sizeof(float), NULL, elements) == TSR_OK ? 0 : 2);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child, "waitpid failed");
        CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0) == (elements == 7), "element %d of 8: status %d",
              elements, status);
    }
}

int main() {
    check_loading();
    check_sums();
    check_warps();
    check_shuffles();
    check_votes();
    check_poison();
    check_refusals();
    check_beginning();
    check_overrun();
    return 0;
}
