/* What memory a process may count on, from made-up trees of /proc and control groups and made-up variables of Slurm. */
#define _GNU_SOURCE /* setenv */
#include "kernels/device/host_memory.h"

#include "tests/kernels/gemm/made_up.h"

#define MIB ((uint64_t)1 << 20)

static char root[] = "/tmp/tessera-test-XXXXXX";

static void expect(const char *what, uint64_t total, uint64_t available, const char *by) {
    tsr_host_memory memory;
    tsr_host_memory_find(root, &memory);
    CHECK(memory.total == total && memory.available == available, "%s: %llu of %llu", what,
          (unsigned long long)memory.available, (unsigned long long)memory.total);
    CHECK(strcmp(memory.total_by, by) == 0, "%s: limited by %s", what, memory.total_by);
}

static void test_machine(void) {
    put(root, "proc/meminfo",
        "MemTotal:       1024000 kB\nMemFree: 5 kB\nMemAvailable:    512000 kB\n"); /* 1000 and 500 MiB */
    expect("no groups", 1000 * MIB, 500 * MIB, "this machine");
}

/* Each limit on the way to the root counts; what is in use is not free, but cached files are. */
static void test_version2(void) {
    put(root, "proc/self/cgroup", "0::/job/step:1\n");
    expect("groups that are not to be seen", 1000 * MIB, 500 * MIB, "this machine");
    put(root, "sys/fs/cgroup/job/step:1/memory.max", "max\n");
    expect("no limit", 1000 * MIB, 500 * MIB, "this machine");
    put(root, "sys/fs/cgroup/job/memory.max", "314572800\n"); /* 300 MiB */
    expect("use not known", 300 * MIB, 300 * MIB, "the control group /job");
    put(root, "sys/fs/cgroup/job/memory.current", "209715200\n");                                          /* 200 MiB */
    put(root, "sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 52428800\nactive_file 104857600\n"); /* 150 MiB */
    expect("the group above", 300 * MIB, 250 * MIB, "the control group /job");
    put(root, "sys/fs/cgroup/job/step:1/memory.max", "104857600\n");
    put(root, "sys/fs/cgroup/job/step:1/memory.current", "104857601\n");
    expect("a full group", 100 * MIB, 0, "the control group /job/step:1");
    put(root, "sys/fs/cgroup/job/step:1/memory.max", "9223372036854771712\n");
    put(root, "proc/self/cgroup", "0::/\n");
    put(root, "sys/fs/cgroup/memory.max", "209715200\n");
    expect("a container sees its own group as the root", 200 * MIB, 200 * MIB, "the control group /");
}

static void test_version1(void) {
    put(root, "proc/self/cgroup", "3:cpuset:/\n2:cpu,memory:/slurm/uid_1\n1:name=memory:/other\n0::/\n");
    put(root, "sys/fs/cgroup/memory.max", "max\n");
    put(root, "sys/fs/cgroup/memory/slurm/uid_1/memory.limit_in_bytes", "419430400\n"); /* 400 MiB */
    put(root, "sys/fs/cgroup/memory/slurm/uid_1/memory.usage_in_bytes", "104857600\n");
    put(root, "sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1048576\n");
    expect("version 1", 400 * MIB, 300 * MIB, "the control group /slurm/uid_1");
}

static void test_slurm(void) {
    setenv("SLURM_MEM_PER_NODE", "250", 1);
    expect("a job's memory of a node", 250 * MIB, 250 * MIB, "the Slurm job (SLURM_MEM_PER_NODE)");
    setenv("SLURM_MEM_PER_NODE", "350", 1);
    expect("in use by the group", 350 * MIB, 300 * MIB, "the Slurm job (SLURM_MEM_PER_NODE)");
    setenv("SLURM_MEM_PER_NODE", "0", 1);
    expect("all of the node", 400 * MIB, 300 * MIB, "the control group /slurm/uid_1");
    unsetenv("SLURM_MEM_PER_NODE");
    setenv("SLURM_MEM_PER_CPU", "50", 1);
    expect("CPUs not known", 400 * MIB, 300 * MIB, "the control group /slurm/uid_1");
    setenv("SLURM_JOB_CPUS_PER_NODE", "4(x2)", 1);
    expect("a job's CPUs", 200 * MIB, 200 * MIB, "the Slurm job (SLURM_MEM_PER_CPU)");
    setenv("SLURM_CPUS_ON_NODE", "2", 1);
    expect("a step's CPUs", 100 * MIB, 100 * MIB, "the Slurm job (SLURM_MEM_PER_CPU)");
    setenv("SLURM_MEM_PER_CPU", "lots", 1);
    setenv("SLURM_MEM_PER_NODE", "99999999999999999999999", 1);
    expect("no numbers", 400 * MIB, 300 * MIB, "the control group /slurm/uid_1");
}

int main(void) {
    static const char *const slurm[] = {"SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE",
                                        "SLURM_JOB_CPUS_PER_NODE"};
    for (size_t i = 0; i < sizeof slurm / sizeof *slurm; i++) unsetenv(slurm[i]);
    CHECK(mkdtemp(root) != NULL, "mkdtemp");
    test_machine();
    test_version2();
    test_version1();
    test_slurm();
    remove_made_up(root);
    return 0;
}
