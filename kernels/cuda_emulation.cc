/* The emulation's runtime: fibers (ucontext) for the threads of one block. A fiber runs thread after thread and is only left
 * when a thread waits at a barrier, so kernels without barriers cost no switches and those with them one switch a thread and
 * barrier. Sanitizers are told of every switch. */
#include "kernels/cuda_compat.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <memory>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define TSR_ASAN 1
#else
#define TSR_ASAN 0
#endif

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;

static tsr_cuda_emulation_limits limits = {
    .threads_block = 1024,
    .grid_max = {7, 5, 3}, /* small and odd: the loop of launches on the host is a normal case */
    .shared_block_bytes = 48 << 10,
    .shared_block_optin_bytes = 64 << 10,
    .registers_block = 65536,
    .multiprocessors = 3,
    .threads_multiprocessor = 2048,
    .shared_multiprocessor_bytes = 96 << 10,
    .arch = 75,
};

tsr_cuda_emulation_limits *tsr_cuda_emulation(void) { return &limits; }

namespace {

constexpr size_t STACK_BYTES = 128 << 10;
constexpr int WARP = 32;

enum State { FRESH, READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, ENDED };

struct Fiber {
    ucontext_t context;
    void *stack = nullptr;
    void *fake_stack = nullptr; /* ASan's */
    Fiber() {
        stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED) abort();
    }
    ~Fiber() {
#if TSR_ASAN
        __asan_unpoison_memory_region(stack, STACK_BYTES); /* another host thread's stack may come to stand here */
#endif
        munmap(stack, STACK_BYTES);
    }
    Fiber(const Fiber &) = delete;
    void start();
};

struct Thread {
    State state;
    Fiber *fiber;
    unsigned long long handed; /* to its warp */
};

/* What the calling host thread emulates at the moment. */
struct Block {
    void (*body)(void *);
    void *context;
    std::vector<Thread> threads;
    int current, ended, at_block_barrier, barrier_line;
    bool diverged_lines; /* threads wait at two different __syncthreads() */
    unsigned char *shared;
    std::vector<std::unique_ptr<Fiber>> fibers; /* all ever made; kept for the next block */
    std::vector<Fiber *> idle;
    ucontext_t host;
    void *host_fake_stack;
    const void *host_stack;
    size_t host_stack_bytes;

    Fiber *take_fiber();
    void set_current(int thread);
    int next_thread();
    void switch_from(void **fake_stack, ucontext_t *from, int thread);
    void run_fiber();
    void wait();
    void release_warp_barrier();
    tsr_status run(const char *kernel);
    tsr_status diverged(const char *kernel);
};

thread_local Block emulated;

void fiber_entry() { emulated.run_fiber(); }

void Fiber::start() {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = nullptr;
    makecontext(&context, fiber_entry, 0);
    /* makecontext has used the size; ASan's swapcontext would otherwise clear the shadow of the whole stack at every switch. */
    context.uc_stack.ss_size = 0;
#if TSR_ASAN
    __asan_unpoison_memory_region(stack, STACK_BYTES); /* frames that a diverged block left behind */
#endif
    fake_stack = nullptr;
}

Fiber *Block::take_fiber() {
    if (idle.empty()) {
        fibers.push_back(std::make_unique<Fiber>());
        fibers.back()->start();
        return fibers.back().get();
    }
    Fiber *fiber = idle.back();
    idle.pop_back();
    return fiber;
}

void Block::set_current(int thread) {
    current = thread;
    unsigned t = (unsigned)thread;
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
}

/* The next thread that can run, in order after the current one; -1 when there is none. */
int Block::next_thread() {
    int count = (int)threads.size();
    for (int i = 1; i <= count; i++) {
        int thread = current + i < count ? current + i : current + i - count;
        if (threads[thread].state == FRESH || threads[thread].state == READY) return thread;
    }
    return -1;
}

/* Leaves the running context for `thread` (-1: the host) and returns when something switches back to it. */
void Block::switch_from(void **fake_stack, ucontext_t *from, int thread) {
    Fiber *to = nullptr;
    if (thread >= 0) {
        if (threads[thread].state == FRESH) threads[thread].fiber = take_fiber();
        to = threads[thread].fiber;
        set_current(thread);
    }
#if TSR_ASAN
    __sanitizer_start_switch_fiber(fake_stack, to ? to->stack : host_stack, to ? STACK_BYTES : host_stack_bytes);
#endif
    swapcontext(from, to ? &to->context : &host);
#if TSR_ASAN
    __sanitizer_finish_switch_fiber(*fake_stack, nullptr, nullptr);
#else
    (void)fake_stack;
#endif
}

/* Where every fiber starts: runs the current thread, then whatever is left, and rests in `idle` until it is needed again. */
void Block::run_fiber() {
#if TSR_ASAN
    const void *from;
    size_t from_bytes;
    __sanitizer_finish_switch_fiber(nullptr, &from, &from_bytes);
    if (host_stack == nullptr) host_stack = from, host_stack_bytes = from_bytes; /* the first fiber is started by the host */
#endif
    for (;;) {
        Fiber *own = threads[current].fiber;
        body(context);
        threads[current].state = ENDED;
        ended++;
        release_warp_barrier();
        int next = next_thread();
        if (next >= 0 && threads[next].state == FRESH) {
            threads[next].fiber = own;
            set_current(next);
            continue;
        }
        idle.push_back(own);
        switch_from(&own->fake_stack, &own->context, next);
    }
}

/* The current thread cannot go on: another runs until it can. */
void Block::wait() {
    int self = current, next = next_thread();
    if (next != self) {
        Fiber *own = threads[self].fiber;
        switch_from(&own->fake_stack, &own->context, next);
    }
}

/* Lets the current warp go on when all its threads that have not ended wait. */
void Block::release_warp_barrier() {
    int first = current / WARP * WARP, last = tsr_min(first + WARP, (int64_t)threads.size());
    int waiting = 0, running = 0;
    for (int i = first; i < last; i++) {
        waiting += threads[i].state == AT_WARP_BARRIER;
        running += threads[i].state == FRESH || threads[i].state == READY || threads[i].state == AT_BLOCK_BARRIER;
    }
    if (waiting == 0 || running > 0) return;
    for (int i = first; i < last; i++) {
        if (threads[i].state == AT_WARP_BARRIER) threads[i].state = READY;
    }
}

tsr_status Block::diverged(const char *kernel) {
    int at_block = at_block_barrier, total = (int)threads.size();
    for (auto &fiber : fibers) fiber->start(); /* abandons the threads that wait */
    idle.clear();
    for (auto &fiber : fibers) idle.push_back(fiber.get());
    return tsr_fail(TSR_ERR_DEVICE,
                    "kernel %s, block (%u, %u, %u): barrier not reached by all %d threads: %d wait at __syncthreads() line %d%s, %d have "
                    "ended; every thread must reach the same barrier",
                    kernel, blockIdx.x, blockIdx.y, blockIdx.z, total, at_block, barrier_line,
                    diverged_lines ? " and elsewhere" : "", ended);
}

/* One block, whose blockIdx is set. */
tsr_status Block::run(const char *kernel) {
    for (Thread &thread : threads) thread = {FRESH, nullptr, 0};
    current = ended = at_block_barrier = 0;
    diverged_lines = false;
    switch_from(&host_fake_stack, &host, 0);
    return ended == (int)threads.size() ? TSR_OK : diverged(kernel);
}

} // namespace

void tsr_emulation_block_barrier(int line) {
    Block &b = emulated;
    if (b.at_block_barrier == 0) b.barrier_line = line;
    if (line != b.barrier_line) b.diverged_lines = true;
    b.threads[b.current].state = AT_BLOCK_BARRIER;
    b.at_block_barrier++;
    if (b.at_block_barrier == (int)b.threads.size() && !b.diverged_lines) {
        for (Thread &thread : b.threads) thread.state = READY;
        b.at_block_barrier = 0;
    }
    b.wait();
}

void tsr_emulation_warp_barrier(void) {
    emulated.threads[emulated.current].state = AT_WARP_BARRIER;
    emulated.release_warp_barrier();
    emulated.wait();
}

int tsr_emulation_lane(void) { return emulated.current % WARP; }

unsigned long long tsr_emulation_exchange(unsigned long long bits, int lane) {
    Block &b = emulated;
    const int first = b.current / WARP * WARP, from = first + lane;
    b.threads[b.current].handed = bits;
    tsr_emulation_warp_barrier();
    if (lane >= 0 && lane < WARP && from < (int)b.threads.size()) bits = b.threads[from].handed;
    tsr_emulation_warp_barrier(); /* before anyone hands over the next */
    return bits;
}

void *tsr_emulation_shared(void) { return emulated.shared; }

/* ---- the runtime's calls ---------------------------------------------------------------------------------------- */

static int shared_opted_in; /* bytes, by cudaFuncSetAttribute */

cudaError_t cudaGetLastError(void) { return cudaSuccess; } /* launches report their errors themselves */
const char *cudaGetErrorString(cudaError_t code) {
    return code == cudaSuccess ? "no error" : code == cudaErrorInvalidValue ? "invalid argument" : "emulated failure";
}
cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = limits.threads_block; break;
    case cudaDevAttrMaxGridDimX: *value = limits.grid_max[0]; break;
    case cudaDevAttrMaxGridDimY: *value = limits.grid_max[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = limits.grid_max[2]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)limits.shared_block_bytes; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)limits.shared_block_optin_bytes; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = limits.threads_multiprocessor; break;
    case cudaDevAttrMultiProcessorCount: *value = limits.multiprocessors; break;
    default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}
cudaError_t tsr_emulation_func_attributes(cudaFuncAttributes *attributes) {
    *attributes = {0, 0, 64, limits.threads_block, 0};
    return cudaSuccess;
}
cudaError_t tsr_emulation_func_set(cudaFuncAttribute, int value) {
    if (value < 0 || (size_t)value > limits.shared_block_optin_bytes) return cudaErrorInvalidValue;
    shared_opted_in = value;
    return cudaSuccess;
}
cudaError_t tsr_emulation_occupancy(int *blocks, int threads, size_t shared_bytes) {
    if (threads <= 0) return cudaErrorInvalidValue;
    int64_t fit = limits.threads_multiprocessor / threads;
    if (shared_bytes > 0) fit = tsr_min(fit, (int64_t)(limits.shared_multiprocessor_bytes / shared_bytes));
    *blocks = threads > limits.threads_block ? 0 : (int)fit;
    return cudaSuccess;
}

static tsr_status check_launch(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes) {
    const unsigned g[3] = {grid.x, grid.y, grid.z};
    for (int i = 0; i < 3; i++) {
        if (g[i] == 0 || g[i] > (unsigned)limits.grid_max[i]) {
            return tsr_fail(TSR_ERR_DEVICE, "launch of kernel %s failed: %u blocks in dimension %d; the device allows 1 to %d", kernel, g[i],
                            i, limits.grid_max[i]);
        }
    }
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (threads == 0 || threads > (uint64_t)limits.threads_block) {
        return tsr_fail(TSR_ERR_DEVICE, "launch of kernel %s failed: %llu threads a block; the device allows 1 to %d", kernel,
                        (unsigned long long)threads, limits.threads_block);
    }
    if (shared_bytes > limits.shared_block_bytes && shared_bytes > (size_t)shared_opted_in) {
        return tsr_fail(TSR_ERR_DEVICE, "launch of kernel %s failed: %zu bytes of shared memory; the device gives %zu without asking", kernel,
                        shared_bytes, limits.shared_block_bytes);
    }
    return TSR_OK;
}

tsr_status tsr_emulation_run(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, void (*body)(void *), void *context) {
    TSR_TRY(check_launch(kernel, grid, block, shared_bytes));
    Block &b = emulated;
    b.body = body;
    b.context = context;
    gridDim = {grid.x, grid.y, grid.z};
    blockDim = {block.x, block.y, block.z};
    b.threads.resize((size_t)block.x * block.y * block.z);
    void *shared = nullptr; /* exactly the bytes asked for: one past them is another's memory */
    if (shared_bytes > 0 && posix_memalign(&shared, 16, shared_bytes) != 0) {
        return tsr_fail(TSR_ERR_MEMORY, "no %zu bytes for the shared memory of kernel %s", shared_bytes, kernel);
    }
    b.shared = static_cast<unsigned char *>(shared);
    tsr_status status = TSR_OK;
    for (unsigned z = 0; z < grid.z && status == TSR_OK; z++) {
        for (unsigned y = 0; y < grid.y && status == TSR_OK; y++) {
            for (unsigned x = 0; x < grid.x && status == TSR_OK; x++) {
                blockIdx = {x, y, z};
                if (shared_bytes > 0) memset(shared, 0xff, shared_bytes); /* NaN in every floating-point type */
                status = b.run(kernel);
            }
        }
    }
    free(shared);
    return status;
}
