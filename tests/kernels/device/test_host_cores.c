/* Lists of cores as the kernel writes them, nodes and the node of a PCI device from a made-up /sys, and threads that
 * are moved. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "kernels/device/host_cores.h"

#include <pthread.h>
#include <sched.h>

#include "tests/kernels/gemm/made_up.h"

static void check_list(const char *text, const char *expected) {
    static tsr_cores cores;
    char found[256] = "";
    CHECK(tsr_cores_parse(text, &cores), "'%s' is refused", text);
    for (int i = 0; i < TSR_CORES_MAX; i++)
        if (tsr_cores_has(&cores, i)) snprintf(found + strlen(found), sizeof found - strlen(found), " %d", i);
    CHECK(strcmp(found, expected) == 0, "'%s' is%s, not%s", text, found, expected);
}

static void test_lists(void) {
    static const char *const wrong[] = {
        "a", "-1", "1-", "3-1", "1,,2", "1 2", "0-3x", ",1", "4096", "0-4096", "99999999999999999999"};
    static tsr_cores cores;
    check_list("", "");
    check_list("\n", "");
    check_list("0", " 0");
    check_list("0-3,8,10-11\n", " 0 1 2 3 8 10 11");
    check_list("4095", " 4095");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!tsr_cores_parse(wrong[i], &cores), "'%s' is taken", wrong[i]);
}

static void test_node(void) {
    char sys[] = "/tmp/tessera-test-XXXXXX";
    CHECK(mkdtemp(sys) != NULL, "mkdtemp");
    CHECK(tsr_pci_node(sys, "0000:18:00.0") == -1, "a node without /sys");
    put(sys, "devices/system/node/online", "0\n");
    put(sys, "bus/pci/devices/0000:ab:00.0/numa_node", "1\n");
    CHECK(tsr_pci_node(sys, "0000:AB:00.0") == -1, "one node only");
    put(sys, "devices/system/node/online", "0-1\n");
    CHECK(tsr_pci_node(sys, "0000:AB:00.0") == 1 && tsr_pci_node(sys, "0000:ab:00.0") == 1, "the device's node");
    CHECK(tsr_pci_node(sys, "0000:18:00.0") == -1, "a device that is not there");
    put(sys, "bus/pci/devices/0000:ab:00.0/numa_node", "-1\n");
    CHECK(tsr_pci_node(sys, "0000:ab:00.0") == -1, "a device without a node");
    put(sys, "bus/pci/devices/0000:ab:00.0/numa_node", "2\n");
    CHECK(tsr_pci_node(sys, "0000:ab:00.0") == -1, "a node that is not online");
    remove_made_up(sys);
}

static void test_nodes(void) {
    static tsr_cores nodes[TSR_NUMA_NODES_MAX];
    char sys[] = "/tmp/tessera-test-XXXXXX";
    CHECK(mkdtemp(sys) != NULL, "mkdtemp");
    CHECK(tsr_numa_nodes(sys, nodes) == 0, "nodes without /sys");
    put(sys, "devices/system/node/online", "0,2\n");
    put(sys, "devices/system/node/node0/cpulist", "0-1,8\n");
    CHECK(tsr_numa_nodes(sys, nodes) == 0, "a node without cores");
    put(sys, "devices/system/node/node2/cpulist", "2-3\n");
    CHECK(tsr_numa_nodes(sys, nodes) == 3, "%d nodes", tsr_numa_nodes(sys, nodes));
    CHECK(tsr_cores_count(&nodes[0]) == 3 && tsr_cores_count(&nodes[1]) == 0 && tsr_cores_count(&nodes[2]) == 2,
          "their cores");
    CHECK(tsr_cores_has(&nodes[0], 8) && !tsr_cores_has(&nodes[2], 8) && tsr_cores_has(&nodes[2], 3), "which cores");
    tsr_cores one;
    CHECK(tsr_numa_node(sys, 2, &one) && tsr_cores_equal(&one, &nodes[2]), "one node");
    CHECK(!tsr_numa_node(sys, 1, &one), "a node that is not there");
    remove_made_up(sys);
}

static void test_topology(void) {
    tsr_cores found, threads, package;
    char sys[] = "/tmp/tessera-test-XXXXXX";
    CHECK(mkdtemp(sys) != NULL, "mkdtemp");
    CHECK(!tsr_core_threads(sys, 3, &found) && !tsr_core_package(sys, 3, &found), "a core without /sys");
    CHECK(tsr_cores_parse("3,11", &threads) && tsr_cores_parse("0-3,8-11", &package), "lists");
    put(sys, "devices/system/cpu/cpu3/topology/thread_siblings_list", "3,11\n");
    put(sys, "devices/system/cpu/cpu3/topology/core_siblings_list", "0-3,8-11\n");
    CHECK(tsr_core_threads(sys, 3, &found) && tsr_cores_equal(&found, &threads), "a core's threads");
    CHECK(tsr_core_package(sys, 3, &found) && tsr_cores_equal(&found, &package), "a core's package");
    CHECK(!tsr_core_threads(sys, 4, &found), "a core that is not there");
    remove_made_up(sys);
}

static void test_sets(void) {
    tsr_cores a, b, both;
    CHECK(tsr_cores_parse("0-70", &a) && tsr_cores_parse("60-4095", &b), "lists");
    both = tsr_cores_both(&a, &b);
    CHECK(tsr_cores_count(&both) == 11 && tsr_cores_has(&both, 60) && tsr_cores_has(&both, 70) &&
              !tsr_cores_has(&both, 71),
          "%d in both", tsr_cores_count(&both));
    CHECK(tsr_cores_equal(&a, &a) && !tsr_cores_equal(&a, &b), "equal sets");
}

/* A thread that runs already, as MPI and BLAS have them. */
typedef struct {
    pthread_mutex_t held;
    tsr_cores seen;
} other;

static void *wait_and_look(void *context) {
    other *o = context;
    pthread_mutex_lock(&o->held);
    CHECK(tsr_cores_mine(&o->seen), "where the thread runs");
    pthread_mutex_unlock(&o->held);
    return NULL;
}

/* All threads go to one core and back, also one that ran before; and a core that is not there is refused. */
static void test_moving(void) {
    tsr_cores before, one = {0}, none = {0};
    tsr_cores after;
    other o = {.held = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    CHECK(tsr_cores_mine(&before) && tsr_cores_count(&before) > 0, "where this runs");
    for (int core = TSR_CORES_MAX - 1; core >= 0; core--)
        if (tsr_cores_has(&before, core)) {
            one = (tsr_cores){0};
            tsr_cores_add(&one, core);
        }
    pthread_mutex_lock(&o.held);
    CHECK(pthread_create(&thread, NULL, wait_and_look, &o) == 0, "no thread");
    CHECK(tsr_cores_keep_to(&one), "not all threads moved");
    pthread_mutex_unlock(&o.held);
    pthread_join(thread, NULL);
    CHECK(tsr_cores_mine(&after) && tsr_cores_equal(&after, &one) && tsr_cores_equal(&o.seen, &one), "a thread stayed");
    tsr_cores_add(&none, TSR_CORES_MAX - 1);
    CHECK(!tsr_cores_keep_to(&none), "a core that is not there");
    CHECK(tsr_cores_keep_to(&before) && tsr_cores_mine(&after) && tsr_cores_equal(&after, &before),
          "not all threads came back");
}

int main(void) {
    test_lists();
    test_node();
    test_nodes();
    test_topology();
    test_sets();
    test_moving();
    return 0;
}
