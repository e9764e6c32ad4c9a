/* The model of sm_90 notices what it is there to notice: a small pipeline is right with every seed, and each mistake
 * planted in it shows with some. */
#include <utility>
#include <vector>

#include "tests/kernels/gemm/hopper/model.h"

#include "kernels/gemm/hopper/pipeline.h"
#include "tests/check.h"

enum Mistake {
    NONE,
    EMPTY_NOT_AWAITED,
    FULL_NOT_AWAITED,
    WRONG_PARITY,
    FEWER_BYTES,
    MORE_BYTES,
    MORE_ARRIVALS,
    RELEASED_EARLY,
    NEVER_RELEASED,
    MISALIGNED,
    MISTAKES
};

constexpr int PANEL = 32, PANELS = 9; /* elements of a panel, one for each consumer */
typedef hopper::Pipeline<2, PANEL *(int)sizeof(float)> Pipe;

/* to[i] = sum of from[panel][i]: thread 32 brings panels, threads 0 to 31 add them up. */
template <Mistake MISTAKE> __global__ void add_panels(const float *from, float *to) {
    TSR_SHARED_DYNAMIC(unsigned char, shared);
    const Pipe pipe(shared, 1, MISTAKE == MORE_ARRIVALS ? 2 : 1);
    Pipe::State at = {0, 0};
    __syncthreads();
    if (threadIdx.x > 32) return;
    float sum = 0;
    for (int panel = 0; panel < PANELS; panel++, at.step()) {
        if (threadIdx.x == 32) {
            uint32_t bytes = PANEL * sizeof(float);
            if (MISTAKE != EMPTY_NOT_AWAITED)
                hopper::barrier_wait(pipe.empty(at.stage), MISTAKE == WRONG_PARITY ? at.phase : at.phase ^ 1);
            if (MISTAKE == FEWER_BYTES) bytes -= 16;
            if (MISTAKE == MORE_BYTES) bytes += 16;
            hopper::barrier_expect(pipe.full(at.stage), bytes);
            hopper::copy_bulk(pipe.stage(at.stage) + (MISTAKE == MISALIGNED ? 8 : 0), from + panel * PANEL,
                              PANEL * sizeof(float), pipe.full(at.stage));
            continue;
        }
        if (MISTAKE != FULL_NOT_AWAITED) pipe.wait(at);
        if (MISTAKE == RELEASED_EARLY) pipe.release(at.stage);
        sum += reinterpret_cast<const float *>(pipe.stage(at.stage))[threadIdx.x];
        __syncwarp();
        if (MISTAKE != RELEASED_EARLY && MISTAKE != NEVER_RELEASED) pipe.release(at.stage);
    }
    if (threadIdx.x < 32) to[threadIdx.x] = sum;
}

/* Whether the sums are right, and the launch succeeded. */
template <Mistake MISTAKE> static bool right(uint64_t seed, bool late) {
    std::vector<float> from(PANELS * PANEL), to(PANEL, -1.0f);
    for (int i = 0; i < PANELS * PANEL; i++) from[i] = (float)(i / PANEL * 100 + i % PANEL);
    hopper_model::use(seed, late);
    if (TSR_LAUNCH(add_panels<MISTAKE>, 2, 64, Pipe::SHARED_BYTES, NULL, from.data(), to.data()) != TSR_OK)
        return false;
    for (int i = 0; i < PANEL; i++)
        if (to[i] != (float)(PANELS * (PANELS - 1) / 2 * 100 + PANELS * i)) return false;
    return true;
}

template <Mistake MISTAKE> static void check() {
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) wrong += !right<MISTAKE>(seed, seed % 2);
    CHECK(MISTAKE == NONE ? wrong == 0 : wrong > 0, "mistake %d: wrong with %d of 20 seeds: %s", MISTAKE, wrong,
          tsr_message());
}
template <int... MISTAKE> static void check_all(std::integer_sequence<int, MISTAKE...>) {
    void (*const checks[])() = {check<(Mistake)MISTAKE>...};
    for (auto check_one : checks) check_one();
}

int main() {
    check_all(std::make_integer_sequence<int, MISTAKES>());
    const bool repeated = right<RELEASED_EARLY>(3, false);
    for (int i = 0; i < 5; i++) CHECK(right<RELEASED_EARLY>(3, false) == repeated, "a seed repeats what happens");
    CHECK(!right<NEVER_RELEASED>(1, false), "a deadlock");
    CHECK(strstr(tsr_message(), "deadlock: "), "message was: %s", tsr_message());
    CHECK(strstr(tsr_message(), "thread 32 of block 0 waits for an even phase of an mbarrier"), "message was: %s",
          tsr_message());
    return 0;
}
