/* Machine files: what is read is what was written, and everything wrong is refused with file and line. */
#include <math.h>
#include <unistd.h>

#include "kernels/gemm/exact/exact.h"
#include "kernels/gemm/registry.h"
#include "mpi/plan/machine.h"
#include "tests/check.h"

#define FILE_NAME "test_machine.txt"

static const char *const good[] = {"gpus_per_node = 4",
                                   "f32_tflops = 215",
                                   "device_memory_GB = 141",
                                   "device_memory_GBps=4300",
                                   "host_to_device_GBps = 48",
                                   "device_to_host_GBps = 38",
                                   "gpu_link_GBps = 397",
                                   "network_GBps_per_node = 2e2",
                                   "network_latency_us = 5",
                                   "file_read_GBps_per_node = 32",
                                   "file_write_GBps_per_node = 10",
                                   "file_read_GBps_in_all = 1000",
                                   "file_write_GBps_in_all = 500",
                                   "host_memory_GB_per_node = 512"};
#define LINES ((int)(sizeof good / sizeof *good))

/* The good lines with number `line` replaced (NULL: left out), and one more at the end (NULL: none). */
static void write_file(int line, const char *instead, const char *more) {
    FILE *to = fopen(FILE_NAME, "w");
    CHECK(to, "%s cannot be written", FILE_NAME);
    for (int i = 0; i < LINES; i++) {
        const char *text = i == line ? instead : good[i];
        if (text) fprintf(to, "%s\n", text);
    }
    if (more) fputs(more, to); /* without a newline: a last line may end so */
    CHECK(fclose(to) == 0, "%s cannot be closed", FILE_NAME);
}

static void refused(int line, const char *instead, const char *more, const char *says) {
    tsr_machine machine;
    write_file(line, instead, more);
    CHECK_FAILS(tsr_machine_read(FILE_NAME, &machine), TSR_ERR_FORMAT, says);
}

static void test_read(void) {
    tsr_machine machine;
    tsr_resources res;
    write_file(0, "\t gpus_per_node=4 # a comment", "# a comment\n\n  \nf64_tflops = 5.7e1");
    CHECK_OK(tsr_machine_read(FILE_NAME, &machine));
    CHECK(machine.gpus_per_node == 4 && machine.f64_tflops == 57 && machine.network_GBps_per_node == 200 &&
              machine.bf16_tflops == 0,
          "%g GPUs, %g TFLOP/s", machine.gpus_per_node, machine.f64_tflops);
    CHECK_OK(tsr_machine_resources(&machine, FILE_NAME, 64, TSR_F32, &res));
    CHECK(res.ranks == 64 && res.rates.node_ranks == 4 && res.device_exchange && !res.host_memory,
          "%d ranks, %d a node", res.ranks, res.rates.node_ranks);
    CHECK(res.device_limit == 141000000000u && res.host_limit == 128000000000u, "%zu and %zu bytes", res.device_limit,
          res.host_limit);
    CHECK(res.rates.lane[TSR_LANE_MULTIPLY] == 215e12 && res.rates.lane[TSR_LANE_UPLOAD] == 48e9 &&
              res.rates.lane[TSR_LANE_DOWNLOAD] == 38e9,
          "lanes %g, %g, %g", res.rates.lane[TSR_LANE_MULTIPLY], res.rates.lane[TSR_LANE_UPLOAD],
          res.rates.lane[TSR_LANE_DOWNLOAD]);
    CHECK(fabs(res.rates.network_latency_seconds - 5e-6) < 1e-15 && res.rates.all_write_bytes_per_second == 500e9,
          "%g s, %g bytes/s", res.rates.network_latency_seconds, res.rates.all_write_bytes_per_second);
    CHECK_OK(tsr_machine_resources(&machine, FILE_NAME, 2, TSR_F64, &res));
    CHECK(res.rates.node_ranks == 2 && res.host_limit == 256000000000u && res.rates.lane[TSR_LANE_MULTIPLY] == 57e12,
          "half a node: %zu bytes of host memory", res.host_limit);
    CHECK_FAILS(tsr_machine_resources(&machine, FILE_NAME, 2, TSR_BF16, &res), TSR_ERR_FORMAT, "bf16_tflops");
}

/* As much as any kernel of this build wants that a GPU of such a machine would be given. */
static void test_workspace(void) {
    static const tsr_dtype inputs[] = {TSR_F64, TSR_F32, TSR_F16, TSR_BF16};
    static const int64_t sides[] = {1, 129, 1000, 2560, 14335, 14336, 24577};
    tsr_machine machine;
    tsr_resources res;
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    write_file(-1, NULL, "f64_tflops = 1\nf16_tflops = 1\nbf16_tflops = 1");
    CHECK_OK(tsr_machine_read(FILE_NAME, &machine));
    for (int input = 0; input < 4; input++) {
        CHECK_OK(tsr_machine_resources(&machine, FILE_NAME, 4, inputs[input], &res));
        int64_t element = (int64_t)tsr_dtype_bytes(inputs[input]);
        CHECK(res.workspace_bytes(1000, 1, 130) == (size_t)(element * 256 * (1024 / 64 * 65 + 256) + (64 << 20)),
              "%zu bytes", res.workspace_bytes(1000, 1, 130));
        for (int i = 0; i < count; i++) {
            if (!kernels[i]->workspace_bytes || kernels[i]->input != inputs[input]) continue;
            const bool exact = strcmp(kernels[i]->name, "exact") == 0; /* given to nobody unasked: plans know of it */
            if (exact && kernels[i]->device != TSR_DEVICE_CUDA) continue;
            for (int shape = 0; shape < 343; shape++) {
                int64_t m = sides[shape % 7];
                int64_t n = sides[shape / 7 % 7];
                int64_t k = sides[shape / 49];
                const size_t wants = kernels[i]->workspace_bytes(m, n, k);
                const size_t room = !exact                     ? res.workspace_bytes(m, n, k)
                                    : inputs[input] == TSR_F64 ? tsr_exact_room_f64(m, n, k)
                                                               : tsr_exact_room_f32(m, n, k);
                CHECK(wants <= room && (!exact || wants > 0.98 * (double)room - (1 << 20)),
                      "%s wants %zu bytes for %lld x %lld x %lld, of %zu", kernels[i]->name, wants, (long long)m,
                      (long long)n, (long long)k, room);
            }
        }
    }
}

static void test_refusals(void) {
    tsr_machine machine;
    refused(2, "device_memry_GB = 141", NULL, FILE_NAME ":3: unknown key 'device_memry_GB'");
    refused(2, "device_memory_GiB = 141", NULL, "device_memory_GB ");
    refused(2, "device_memory_GB 141", NULL, ":3: 'device_memory_GB 141'");
    refused(2, "= 141", NULL, ":3: unknown key ''");
    refused(2, "device_memory_GB =", NULL, ":3: device_memory_GB is ''");
    refused(2, "device_memory_GB = 141 GB", NULL, ":3: device_memory_GB is '141 GB'");
    refused(2, "device_memory_GB = 0", NULL, "above 0");
    refused(2, "device_memory_GB = -1", NULL, "above 0");
    refused(2, "device_memory_GB = nan", NULL, "above 0");
    refused(2, "device_memory_GB = inf", NULL, "above 0");
    refused(2, "device_memory_GB = 1e999", NULL, "above 0");
    refused(0, "gpus_per_node = 4.5", NULL, ":1: gpus_per_node is '4.5'");
    refused(-1, NULL, "f64_tflops = 2e33",
            ":15: f64_tflops is '2e33'"); /* fuzz_machine.c: more than 64 bits of bytes */
    refused(-1, NULL, "gpus_per_node = 8", ":15: gpus_per_node was given on line 1 already");
    for (int i = 0; i < LINES; i++) {
        char key[64], says[128];
        if (strstr(good[i], "tflops")) continue;
        snprintf(key, sizeof key, "%.*s", (int)strcspn(good[i], " ="), good[i]);
        snprintf(says, sizeof says, FILE_NAME ":13: the file ends without key '%s'", key);
        refused(i, NULL, NULL, says);
    }
    char endless[3000];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    refused(-1, NULL, endless, ":15: the line is longer");
    CHECK_FAILS(tsr_machine_read("no/such/machine", &machine), TSR_ERR_NOT_FOUND, "no/such/machine");
    CHECK_FAILS(tsr_machine_read(".", &machine), TSR_ERR_IO, ".");
}

int main(void) {
    test_read();
    test_workspace();
    test_refusals();
    unlink(FILE_NAME);
    return 0;
}
