/* The emulation's runtime: fibers for the threads of a block, or of a cluster's blocks. A fiber runs thread after
 * thread and is only left when a thread waits at a barrier, so kernels without barriers cost no switches and those with
 * them one switch a thread and barrier. Fibers begin as contexts (ucontext), and go on by jumps, because to switch
 * contexts is a call of the system. Sanitizers are told of every switch. */
#include "kernels/device/cuda_compat.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <memory>
#include <mutex>
#include <set>
#include <vector>

#if defined(__SANITIZE_ADDRESS__) || defined(TSR_TELL_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define TSR_ASAN 1
#else
#define TSR_ASAN 0
#endif

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;
__thread unsigned long long tsr_emulation_begun;

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

enum State { FRESH, READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, AT_MODEL, ENDED };

/* Where a stack goes on. */
struct Place {
    ucontext_t begin; /* a fiber that was never left */
    void *jump[5];    /* as __builtin_setjmp wants it */
    bool left;
};

struct Fiber {
    Place place;
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
    unsigned long long handed[2]; /* to its warp, in turns */
    int exchanges;                /* so far */
    const void *on;               /* what it waits for AT_MODEL, */
    const char *what;             /* and that in words */
};

/* Where a thread is: worked out once a launch, because threads take turns all the time. */
struct Site {
    uint3 index;    /* threadIdx */
    int rank, lane; /* of its block in the cluster, and in its warp */
    int number;     /* in its block */
};

struct Block {
    int waiting, line, ended; /* threads at __syncthreads(), the line of it */
    bool diverged_lines;      /* threads wait at two different __syncthreads() */
    unsigned char *shared;
};

/* What the calling host thread emulates at the moment: a cluster, mostly of one block. */
struct Cluster {
    void (*body)(void *);
    void *context;
    std::vector<Block> blocks;
    std::vector<Thread> threads; /* of block after block */
    std::vector<Site> sites;
    std::vector<uint64_t> ready; /* a bit for each: it can run */
    int block_threads, current, ended;
    int slow, slow_count; /* with a seed: threads that run when no other can */
    unsigned first_block; /* blockIdx.x of block 0 */
    size_t shared_bytes;
    bool inside; /* a fiber runs, not the host */
    char complaint[256];
    std::vector<std::unique_ptr<Fiber>> fibers; /* all ever made; kept for the next block */
    std::vector<Fiber *> idle;
    Place host;
    void *host_fake_stack;
    const void *host_stack;
    size_t host_stack_bytes;

    Fiber *take_fiber();
    void set_current(int thread);
    void set_state(int thread, State state);
    int ready_thread(int from, int to) const;
    int runnable_thread();
    void draw_slow();
    int next_thread();
    void switch_from(void **fake_stack, Place *from, int thread);
    void run_fiber();
    void wait();
    void release_warp_barrier();
    tsr_status run(const char *kernel);
    tsr_status diverged(const char *kernel);
};

thread_local Cluster emulated;
tsr_emulation_model model; /* all NULL: there is none */
uint64_t random_state;     /* 0: threads run in order */

void fiber_entry() { emulated.run_fiber(); }

void Fiber::start() {
    place.left = false;
    getcontext(&place.begin);
    place.begin.uc_stack.ss_sp = stack;
    place.begin.uc_stack.ss_size = STACK_BYTES;
    place.begin.uc_link = nullptr;
    makecontext(&place.begin, fiber_entry, 0);
#if TSR_ASAN
    __asan_unpoison_memory_region(stack, STACK_BYTES); /* frames that a diverged block left behind */
#endif
    fake_stack = nullptr;
}

Fiber *Cluster::take_fiber() {
    if (idle.empty()) {
        fibers.push_back(std::make_unique<Fiber>());
        fibers.back()->start();
        return fibers.back().get();
    }
    Fiber *fiber = idle.back();
    idle.pop_back();
    return fiber;
}

void Cluster::set_current(int thread) {
    current = thread;
    threadIdx = sites[thread].index;
    blockIdx.x = first_block + (unsigned)sites[thread].rank;
}

void Cluster::set_state(int thread, State state) {
    const uint64_t bit = (uint64_t)1 << thread % 64;
    threads[thread].state = state;
    if (state == FRESH || state == READY) ready[thread / 64] |= bit;
    else ready[thread / 64] &= ~bit;
}

/* The first thread of from ... to - 1 that can run; -1 when there is none. */
int Cluster::ready_thread(int from, int to) const {
    for (int at = from; at < to; at = (at / 64 + 1) * 64) {
        const uint64_t bits = ready[at / 64] >> at % 64;
        if (bits != 0) return at + __builtin_ctzll(bits) < to ? at + __builtin_ctzll(bits) : -1;
    }
    return -1;
}

/* The next thread that can run, in order after the current one or after any; -1 when there is none. */
int Cluster::runnable_thread() {
    const int count = (int)threads.size();
    const int first = 1 + (random_state ? (int)(tsr_emulation_random() % count) : current);
    int slowly = -1;
    for (int round = 0; round < 2; round++) {
        const int last = round == 0 ? count : first < count ? first : count;
        for (int thread = ready_thread(round == 0 ? first : 0, last); thread >= 0;
             thread = ready_thread(thread + 1, last)) {
            if (thread < slow || thread >= slow + slow_count) return thread;
            slowly = thread;
        }
    }
    return slowly;
}

/* A warp or a block that is slow, or none, so that the others come as far ahead of it as they can. */
void Cluster::draw_slow() {
    const int unit = random_state && tsr_emulation_random() % 2 ? block_threads : WARP;
    slow = slow_count = 0;
    if (random_state == 0 || tsr_emulation_random() % 2) return;
    slow = (int)(tsr_emulation_random() % threads.size()) / unit * unit;
    slow_count = unit;
}

/* The same, with what goes on beside the threads: all of it before there is none. */
int Cluster::next_thread() {
    if (model.step) model.step(false);
    for (;;) {
        const int thread = runnable_thread();
        if (thread >= 0 || !model.step || !model.step(true)) return thread;
    }
}

/* Not inlined, and nothing that ASan watches: it takes a jump for the end of the frames above, and clears the shadow of
 * the whole stack. */
__attribute__((noinline)) __attribute__((no_sanitize("address"))) void go_on(Place *at) {
    if (at->left) __builtin_longjmp(at->jump, 1);
    setcontext(&at->begin);
}

/* Leaves the running stack for `thread` (-1: the host) and returns when something switches back to it. */
void Cluster::switch_from(void **fake_stack, Place *from, int thread) {
    Fiber *to = nullptr;
    if (thread >= 0) {
        if (threads[thread].state == FRESH) threads[thread].fiber = take_fiber();
        to = threads[thread].fiber;
        set_current(thread);
    }
    inside = to != nullptr;
#if TSR_ASAN
    __sanitizer_start_switch_fiber(fake_stack, to ? to->stack : host_stack, to ? STACK_BYTES : host_stack_bytes);
#endif
    from->left = true;
    if (__builtin_setjmp(from->jump) == 0) go_on(to ? &to->place : &host);
#if TSR_ASAN
    __sanitizer_finish_switch_fiber(*fake_stack, nullptr, nullptr);
#else
    (void)fake_stack;
#endif
}

/* Where every fiber starts: runs the current thread, then whatever is left, and rests in `idle` until it is needed
 * again. */
void Cluster::run_fiber() {
#if TSR_ASAN
    const void *from;
    size_t from_bytes;
    __sanitizer_finish_switch_fiber(nullptr, &from, &from_bytes);
    /* the first fiber is started by the host */
    if (host_stack == nullptr) {
        host_stack = from;
        host_stack_bytes = from_bytes;
    }
#endif
    for (;;) {
        Fiber *own = threads[current].fiber;
        body(context);
        set_state(current, ENDED);
        ended++;
        blocks[sites[current].rank].ended++;
        release_warp_barrier();
        int next = next_thread();
        if (next >= 0 && threads[next].state == FRESH) {
            threads[next].fiber = own;
            set_current(next);
            continue;
        }
        idle.push_back(own);
        switch_from(&own->fake_stack, &own->place, next);
    }
}

/* The current thread cannot go on: another runs until it can. */
void Cluster::wait() {
    int self = current, next = next_thread();
    if (next != self) {
        Fiber *own = threads[self].fiber;
        switch_from(&own->fake_stack, &own->place, next);
    }
}

/* Lets the current warp go on when all its threads that have not ended wait. */
void Cluster::release_warp_barrier() {
    const int first = current - sites[current].lane, block = sites[current].rank * block_threads;
    const int last = first + WARP < block + block_threads ? first + WARP : block + block_threads;
    for (int i = last - 1; i >= first; i--) /* mostly the last one is missing */
        if (threads[i].state != AT_WARP_BARRIER && threads[i].state != ENDED) return;
    for (int i = first; i < last; i++)
        if (threads[i].state == AT_WARP_BARRIER) set_state(i, READY);
}

/* Why not all threads have ended. */
tsr_status Cluster::diverged(const char *kernel) {
    const int total = (int)threads.size();
    int at_block = 0, at_model = 0;
    char models[400] = "";
    const Block *block = nullptr; /* the first with threads at __syncthreads() */
    for (Block &b : blocks) {
        at_block += b.waiting;
        if (!block && b.waiting > 0) block = &b;
    }
    for (int i = 0; i < total; i++) {
        if (threads[i].state != AT_MODEL || at_model++ > 0) {
            if (threads[i].state != AT_MODEL || threads[i].what == threads[i - 1].what) continue;
        }
        const size_t used = strlen(models);
        snprintf(models + used, sizeof models - used, "; thread %d of block %u waits for %s", i % block_threads,
                 first_block + (unsigned)(i / block_threads), threads[i].what);
    }
    for (auto &fiber : fibers) fiber->start(); /* abandons the threads that wait */
    idle.clear();
    for (auto &fiber : fibers) idle.push_back(fiber.get());
    if (complaint[0]) return tsr_fail(TSR_ERR_DEVICE, "kernel %s: %s", kernel, complaint);
    if (at_model > 0)
        return tsr_fail(TSR_ERR_DEVICE, "kernel %s: deadlock: %d of %d threads have ended%s", kernel, ended, total,
                        models);
    return tsr_fail(TSR_ERR_DEVICE,
                    "kernel %s, block (%u, %u, %u): barrier not reached by all %d threads: %d wait at __syncthreads() "
                    "line %d%s, %d have "
                    "ended; every thread must reach the same barrier",
                    kernel, blockIdx.x, blockIdx.y, blockIdx.z, total, at_block, block ? block->line : 0,
                    block && block->diverged_lines ? " and elsewhere" : "", ended);
}

/* One cluster, whose first block's blockIdx is set. */
tsr_status Cluster::run(const char *kernel) {
    ready.assign((threads.size() + 63) / 64, 0);
    for (int i = 0; i < (int)threads.size(); i++) {
        threads[i] = {};
        set_state(i, FRESH);
    }
    for (Block &block : blocks) block = {0, 0, 0, false, block.shared};
    first_block = blockIdx.x;
    current = ended = 0;
    complaint[0] = '\0';
    draw_slow();
    if (model.begin) model.begin((int)blocks.size(), block_threads);
    switch_from(&host_fake_stack, &host, 0);
    inside = false;
    if (ended < (int)threads.size()) return diverged(kernel);
    if (model.end) model.end();
    return complaint[0] ? diverged(kernel) : TSR_OK;
}

} // namespace

void tsr_emulation_block_barrier(int line) {
    Cluster &c = emulated;
    Block &b = c.blocks[tsr_emulation_rank()];
    if (b.waiting == 0) b.line = line;
    if (line != b.line) b.diverged_lines = true;
    c.set_state(c.current, AT_BLOCK_BARRIER);
    b.waiting++;
    if (b.waiting == c.block_threads && !b.diverged_lines) {
        const int first = c.current - tsr_emulation_thread();
        for (int i = 0; i < c.block_threads; i++) c.set_state(first + i, READY);
        b.waiting = 0;
    }
    c.wait();
}

void tsr_emulation_warp_barrier(void) {
    emulated.set_state(emulated.current, AT_WARP_BARRIER);
    emulated.release_warp_barrier();
    emulated.wait();
}

int tsr_emulation_lane(void) { return emulated.sites[emulated.current].lane; }

unsigned long long tsr_emulation_exchange(unsigned long long bits, int lane) {
    Cluster &c = emulated;
    const int from = c.current - tsr_emulation_lane() + lane;
    const int turn = c.threads[c.current].exchanges++ % 2; /* who is ahead hands over the next elsewhere */
    c.threads[c.current].handed[turn] = bits;
    tsr_emulation_warp_barrier();
    if (lane >= 0 && lane < WARP && tsr_emulation_thread() - tsr_emulation_lane() + lane < c.block_threads)
        bits = c.threads[from].handed[turn];
    return bits;
}

void *tsr_emulation_shared(void) { return emulated.blocks[tsr_emulation_rank()].shared; }

/* ---- for models of instructions -------------------------------------------------------------- */

void tsr_emulation_set_model(const tsr_emulation_model *models, uint64_t seed) {
    model = *models;
    random_state = seed;
}
uint64_t tsr_emulation_random(void) { /* Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014 */
    uint64_t x = random_state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}
int tsr_emulation_thread(void) { return emulated.sites[emulated.current].number; }
int tsr_emulation_rank(void) { return emulated.sites[emulated.current].rank; }
void tsr_emulation_wait(const void *on, const char *what) {
    Thread &thread = emulated.threads[emulated.current];
    emulated.set_state(emulated.current, AT_MODEL);
    thread.on = on;
    thread.what = what;
    emulated.wait();
}
void tsr_emulation_wake(const void *on) {
    for (int i = 0; i < (int)emulated.threads.size(); i++)
        if (emulated.threads[i].state == AT_MODEL && emulated.threads[i].on == on) emulated.set_state(i, READY);
}
void tsr_emulation_pause(void) {
    if (random_state == 0 || tsr_emulation_random() % 4 > 0) return;
    emulated.set_state(emulated.current, READY);
    emulated.wait();
}
int tsr_emulation_running(int rank) { return emulated.block_threads - emulated.blocks[rank].ended; }
unsigned char *tsr_emulation_shared_of(int rank, size_t *bytes) {
    *bytes = emulated.shared_bytes;
    return emulated.blocks[rank].shared;
}
void tsr_emulation_complain(const char *format, ...) {
    Cluster &c = emulated;
    if (!c.complaint[0]) {
        const int used = snprintf(c.complaint, sizeof c.complaint, "thread %d of block %u: ", tsr_emulation_thread(),
                                  c.first_block + (unsigned)tsr_emulation_rank());
        va_list values;
        va_start(values, format);
        vsnprintf(c.complaint + used, sizeof c.complaint - (size_t)used, format, values);
        va_end(values);
    }
    if (!c.inside) return;
    Fiber *own = c.threads[c.current].fiber; /* no thread goes on */
    c.switch_from(&own->fake_stack, &own->place, -1);
}

/* ---- the runtime's calls --------------------------------------------------------------------- */

static int shared_opted_in; /* bytes, by cudaFuncSetAttribute */
static int (*faults)(const char *call);

void tsr_emulation_set_faults(int (*fails)(const char *call)) { faults = fails; }
int tsr_emulation_fault(const char *call) { return faults ? faults(call) : 0; }
#define FAULT(call)                                                                                                    \
    if (const int fault = tsr_emulation_fault(call)) return static_cast<cudaError_t>(fault)

cudaError_t cudaGetLastError(void) { return cudaSuccess; } /* launches report their errors themselves */
const char *cudaGetErrorString(cudaError_t code) {
    return code == cudaSuccess                 ? "no error"
           : code == cudaErrorInvalidValue     ? "invalid argument"
           : code == cudaErrorMemoryAllocation ? "out of memory"
           : code == cudaErrorECCUncorrectable ? "uncorrectable ECC error encountered"
           : code == cudaErrorIllegalAddress   ? "an illegal memory access was encountered"
           : code == cudaErrorLaunchFailure    ? tsr_message() /* a launch of clusters failed so */
                                               : "emulated failure";
}
cudaError_t cudaGetDevice(int *device) {
    FAULT("cudaGetDevice");
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    FAULT("cudaDeviceGetAttribute");
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = limits.threads_block; break;
    case cudaDevAttrMaxGridDimX: *value = limits.grid_max[0]; break;
    case cudaDevAttrMaxGridDimY: *value = limits.grid_max[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = limits.grid_max[2]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)limits.shared_block_bytes; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)limits.shared_block_optin_bytes; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = limits.threads_multiprocessor; break;
    case cudaDevAttrMultiProcessorCount: *value = limits.multiprocessors; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = limits.registers_block; break;
    case cudaDevAttrComputeCapabilityMajor: *value = limits.arch / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = limits.arch % 10; break;
    case cudaDevAttrClockRate: *value = 1000000; break;
    default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}
/* Kernels whose code was asked for, or that were launched. */
static std::mutex loaded_lock;
static std::set<const void *> loaded;
static const char *cold;

static bool note_kernel(const void *kernel) {
    const std::lock_guard<std::mutex> hold(loaded_lock);
    return loaded.insert(kernel).second;
}
void tsr_emulation_note_launch(const void *kernel, const char *name) {
    if (note_kernel(kernel) && !cold) cold = name;
}
const char *tsr_emulation_cold(bool forget) {
    const char *first = cold;
    if (forget) cold = nullptr;
    return first;
}

cudaError_t tsr_emulation_func_attributes(cudaFuncAttributes *attributes, const void *kernel) {
    FAULT("cudaFuncGetAttributes");
    (void)note_kernel(kernel);
    *attributes = {0, 0, 64, limits.threads_block, 0};
    return cudaSuccess;
}
cudaError_t tsr_emulation_func_set(cudaFuncAttribute, int value) {
    FAULT("cudaFuncSetAttribute");
    if (value < 0 || (size_t)value > limits.shared_block_optin_bytes) return cudaErrorInvalidValue;
    shared_opted_in = value;
    return cudaSuccess;
}
cudaError_t tsr_emulation_occupancy(int *blocks, int threads, size_t shared_bytes) {
    FAULT("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    if (threads <= 0) return cudaErrorInvalidValue;
    int64_t fit = limits.threads_multiprocessor / threads;
    if (shared_bytes > 0) fit = tsr_min(fit, (int64_t)(limits.shared_multiprocessor_bytes / shared_bytes));
    *blocks = threads > limits.threads_block ? 0 : (int)fit;
    return cudaSuccess;
}

static tsr_status check_launch(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, unsigned cluster) {
    const unsigned g[3] = {grid.x, grid.y, grid.z};
    for (int i = 0; i < 3; i++) {
        if (g[i] == 0 || g[i] > (unsigned)limits.grid_max[i]) {
            return tsr_fail(TSR_ERR_DEVICE,
                            "launch of kernel %s failed: %u blocks in dimension %d; the device allows 1 to %d", kernel,
                            g[i], i, limits.grid_max[i]);
        }
    }
    if (grid.x % cluster != 0)
        return tsr_fail(TSR_ERR_DEVICE, "launch of kernel %s failed: %u blocks in clusters of %u", kernel, grid.x,
                        cluster);
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (threads == 0 || threads > (uint64_t)limits.threads_block) {
        return tsr_fail(TSR_ERR_DEVICE, "launch of kernel %s failed: %llu threads a block; the device allows 1 to %d",
                        kernel, (unsigned long long)threads, limits.threads_block);
    }
    if (shared_bytes > limits.shared_block_bytes && shared_bytes > (size_t)shared_opted_in) {
        return tsr_fail(TSR_ERR_DEVICE,
                        "launch of kernel %s failed: %zu bytes of shared memory; the device gives %zu without asking",
                        kernel, shared_bytes, limits.shared_block_bytes);
    }
    return TSR_OK;
}

static tsr_status run_grid(const char *kernel, dim3 grid) {
    Cluster &c = emulated;
    for (unsigned z = 0; z < grid.z; z++) {
        for (unsigned y = 0; y < grid.y; y++) {
            for (unsigned x = 0; x < grid.x; x += (unsigned)c.blocks.size()) {
                blockIdx = {x, y, z};
                /* NaN in every floating-point type */
                for (Block &block : c.blocks) memset(block.shared, 0xff, c.shared_bytes);
                TSR_TRY(c.run(kernel));
            }
        }
    }
    return TSR_OK;
}

/* A cluster's blocks with their shared memory: exactly the bytes asked for, one past them is another's memory. */
static tsr_status set_up_blocks(const char *kernel, dim3 block, size_t shared_bytes, unsigned cluster) {
    Cluster &c = emulated;
    c.block_threads = (int)(block.x * block.y * block.z);
    c.shared_bytes = shared_bytes;
    c.blocks.assign(cluster, Block());
    c.threads.resize((size_t)c.block_threads * cluster);
    c.sites.resize(c.threads.size());
    for (int i = 0; i < (int)c.sites.size(); i++) {
        const unsigned t = (unsigned)(i % c.block_threads);
        c.sites[i] = {
            {t % block.x, t / block.x % block.y, t / block.x / block.y}, i / c.block_threads, (int)t % WARP, (int)t};
    }
    for (Block &b : c.blocks) {
        void *shared = nullptr;
        if (posix_memalign(&shared, 16, shared_bytes) != 0)
            return tsr_fail(TSR_ERR_MEMORY, "no %zu bytes for the shared memory of kernel %s", shared_bytes, kernel);
        b.shared = static_cast<unsigned char *>(shared);
    }
    return TSR_OK;
}

tsr_status tsr_emulation_run(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, unsigned cluster,
                             void (*body)(void *), void *context) {
    TSR_TRY(check_launch(kernel, grid, block, shared_bytes, cluster));
    if (const int fault = tsr_emulation_fault(kernel))
        return tsr_fail(TSR_ERR_DEVICE, "launch of kernel %s failed: %s (CUDA error %d)", kernel,
                        cudaGetErrorString(static_cast<cudaError_t>(fault)), fault);
    Cluster &c = emulated;
    c.body = body;
    c.context = context;
    gridDim = {grid.x, grid.y, grid.z};
    blockDim = {block.x, block.y, block.z};
    tsr_status status = set_up_blocks(kernel, block, shared_bytes, cluster);
    if (status == TSR_OK) status = run_grid(kernel, grid);
    for (Block &b : c.blocks) free(b.shared);
    return status;
}
