/* Which launcher started a process and whether a binding was asked for, from made-up variables, /proc and /sys; and
 * sizes that do not agree. */
#define _GNU_SOURCE /* setenv */
#include "mpi/ranks/launcher.h"

#include "tests/kernels/gemm/made_up.h"

static char proc[] = "/tmp/tessera-test-XXXXXX", sys[] = "/tmp/tessera-test-XXXXXX";

static void forget(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE",
                                            "OMPI_COMM_WORLD_RANK",
                                            "OMPI_MCA_hwloc_base_binding_policy",
                                            "OMPI_MCA_rmaps_base_mapping_policy",
                                            "PMI_SIZE",
                                            "PMI_RANK",
                                            "SLURM_STEP_NUM_TASKS",
                                            "SLURM_PROCID",
                                            "SLURM_MPI_TYPE",
                                            "SLURM_HET_SIZE",
                                            "PMIX_RANK",
                                            "HYDRA_USER_PROVIDED_BINDING"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
}

/* A process that may run on `cores`, whose command line is `words` without their ends. */
static void process(const char *id, const char *name, int parent, const char *cores, const char *words) {
    char path[64], text[256];
    snprintf(path, sizeof path, "%s/status", id);
    snprintf(text, sizeof text, "Name:\t%s\nUmask:\t0022\nPPid:\t%d\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\n", name,
             parent, cores);
    put(proc, path, text);
    snprintf(path, sizeof path, "%s/%s/cmdline", proc, id);
    FILE *file = fopen(path, "w");
    CHECK(file, "cannot write '%s'", path);
    for (const char *at = words; *at; at++) fputc(*at == ' ' ? '\0' : *at, file);
    fputc('\0', file);
    CHECK(fclose(file) == 0, "cannot write '%s'", path);
}

static tsr_launcher found(void) {
    tsr_launcher launcher;
    tsr_launcher_find(proc, sys, &launcher);
    return launcher;
}

static void expect(const char *what, const char *name, int size, int rank, bool bound) {
    tsr_launcher launcher = found();
    CHECK(strstr(launcher.name, name) && (*name || !*launcher.name), "%s: launched by '%s'", what, launcher.name);
    CHECK(launcher.size == size && launcher.rank == rank, "%s: rank %d of %d", what, launcher.rank, launcher.size);
    CHECK(launcher.bound == bound, "%s: bound %d", what, launcher.bound);
}

static void test_none(void) {
    forget();
    expect("no /proc", "", 0, -1, true);
    process("self", "tessera", 20, "3", "tessera");
    process("20", "bash", 10, "0-7", "bash");
    process("10", "mpirun", 1, "0-7", "mpirun -n 1 bash"); /* not of ours: no variables */
    expect("a shell", "", 0, -1, true);
    CHECK(tsr_launcher_rank() == -1, "rank %d of no launcher", tsr_launcher_rank());
}

/* Eight cores of two threads each in two packages, the first of which has two NUMA nodes. */
static void make_up_cores(void) {
    static const char *const nodes[] = {"0-1,8-9", "2-3,10-11", "4-7,12-15"};
    char name[128], list[32];
    put(sys, "devices/system/node/online", "0-2");
    for (int node = 0; node < 3; node++) {
        snprintf(name, sizeof name, "devices/system/node/node%d/cpulist", node);
        put(sys, name, nodes[node]);
    }
    for (int core = 0; core < 16; core++) {
        snprintf(name, sizeof name, "devices/system/cpu/cpu%d/topology/thread_siblings_list", core);
        snprintf(list, sizeof list, "%d,%d", core % 8, core % 8 + 8);
        put(sys, name, list);
        snprintf(name, sizeof name, "devices/system/cpu/cpu%d/topology/core_siblings_list", core);
        put(sys, name, core % 8 < 4 ? "0-3,8-11" : "4-7,12-15");
    }
}

/* Of Open MPI's ranks that were started with nothing asked for, only masks that it makes by itself give way. */
static void test_masks(void) {
    static const char mapping[] = "OMPI_MCA_rmaps_base_mapping_policy",
                      threads[] = "OMPI_MCA_hwloc_base_use_hwthreads_as_cpus";
    static const struct {
        const char *ranks, *cores, *launcher;
        const char *variable;
        bool bound;
    } cases[] = {
        {"2", "3,11", "0-15", NULL, false},     /* a core */
        {"2", "3", "0-7", NULL, false},         /* of which one thread is the launcher's */
        {"1", "3,11", "4-7", NULL, false},      /* that the launcher may not use */
        {"2", "3", "0-15", NULL, true},         /* one thread of two */
        {"2", "3", "0-15", threads, false},     /* is what Open MPI binds to then */
        {"2", "3-4,11-12", "0-15", NULL, true}, /* two cores */
        {"2", "2-3,10-11", "0-15", NULL, true}, /* a node, for two ranks */
        {"4", "2-3,10-11", "0-15", NULL, false},
        {"4", "2-3", "0-7", NULL, false},
        {"4", "0-3,8-11", "0-15", NULL, false}, /* a package */
        {"4", "3,11", "0-15", NULL, true},      /* a core, for four ranks */
        {"4", "3,11", "0-15", mapping, false},  /* mapped by cores */
        {"2", "0-3,8-11", "0-15", mapping, false},
        {"4", "0-1,8", "0-15", NULL, true}, /* a part of a node */
        {"4", "0-7", "0-15", NULL, true},
        {"4", "0-7", "0-15", mapping, true},
        {"4", "0-15", "0-15", NULL, false}, /* not bound at all */
        {"2", "0-7", "0-7", NULL, false},
    };
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[128];
        setenv("OMPI_COMM_WORLD_SIZE", cases[i].ranks, 1);
        if (cases[i].variable) setenv(cases[i].variable, "core", 1);
        process("self", "tessera", 20, cases[i].cores, "tessera");
        process("20", "bash", 10, cases[i].cores, "bash wrapper.sh");
        process("10", "mpirun", 1, cases[i].launcher, "mpirun wrapper.sh tessera");
        snprintf(what, sizeof what, "%s of %s, %s ranks", cases[i].cores, cases[i].launcher, cases[i].ranks);
        expect(what, "Open MPI", atoi(cases[i].ranks), 0, cases[i].bound);
        CHECK(!*found().unbind, "%s: unbind by '%s'", what, found().unbind);
        if (cases[i].variable) unsetenv(cases[i].variable);
    }
    process("10", "mpirun", 1, "0-15", "mpirun wrapper.sh tessera");
    process("20", "bash", 10, "2,10", "bash wrapper.sh");
    process("self", "tessera", 20, "3,11", "tessera");
    expect("a wrapper moved the rank", "Open MPI", 2, 0, true);
    process("20", "taskset", 30, "3,11", "taskset -c 3,11 tessera");
    process("30", "bash", 10, "2,10", "bash wrapper.sh");
    expect("a wrapper's child moved the rank", "Open MPI", 2, 0, true);
    forget();
}

/* Open MPI's own choice gives way to the cores of its daemon, behind a script, too; a binding asked for stays. */
static void test_open_mpi(void) {
    static const char *const free_lines[] = {"mpirun -n 2 tessera", "prted --map-by core",
                                             "mpirun --map-by socket --report-bindings tessera /data/bind-to/a.h5"};
    static const char *const asked_lines[] = {"mpirun --bind-to core tessera",
                                              "prterun --bind-to=core",
                                              "prterun --bind-to",
                                              "mpirun --map-by slot:PE=4 tessera",
                                              "mpirun --map-by=numa:pe=2",
                                              "mpirun --cpu-set 0-3",
                                              "mpirun -rf file",
                                              "mpirun --prtemca hwloc_default_binding_policy core",
                                              "mpirun --map-by pe-list=0,1 tessera"};
    static const char *const asked_variables[][2] = {
        {"OMPI_MCA_hwloc_base_binding_policy", "core"},      {"OMPI_MCA_hwloc_base_cpu_list", "0"},
        {"OMPI_MCA_rmaps_base_mapping_policy", "slot:PE=2"}, {"OMPI_MCA_orte_rankfile", "file"},
        {"PRTE_MCA_hwloc_default_binding_policy", "core"},   {"PRTE_MCA_rmaps_default_mapping_policy", "slot:pe=2"}};
    static const char *const none_lines[] = {"mpirun -bind-to none",
                                             "prterun --bind-to=none tessera",
                                             "prterun --bind-to none --cpu-set 0-3",
                                             "prterun --cpu-set 0-3 --bind-to none:overload-allowed",
                                             "mpirun --mca hwloc_base_binding_policy none",
                                             "prterun --prtemca hwloc_default_binding_policy none tessera"};
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    process("self", "tessera", 20, "3", "tessera");
    process("20", "bash", 10, "3", "bash");
    for (size_t i = 0; i < sizeof free_lines / sizeof *free_lines; i++) {
        process("10", i == 1 ? "prted" : "mpirun.openmpi", 1, "0-7", free_lines[i]);
        expect(free_lines[i], "Open MPI", 2, 1, false);
        tsr_launcher launcher = found();
        CHECK(tsr_cores_count(&launcher.cores) == 8, "%d cores", tsr_cores_count(&launcher.cores));
    }
    for (size_t i = 0; i < sizeof asked_lines / sizeof *asked_lines; i++) {
        process("10", "prterun", 1, "0-7", asked_lines[i]);
        expect(asked_lines[i], "Open MPI", 2, 1, true);
        CHECK(strcmp(found().unbind, "mpirun --bind-to none") == 0, "unbind by '%s'", found().unbind);
    }
    for (size_t i = 0; i < sizeof none_lines / sizeof *none_lines; i++) {
        process("10", "prterun", 1, "0-7", none_lines[i]);
        expect(none_lines[i], "Open MPI", 2, 1, true);
        CHECK(!*found().unbind, "%s: unbound already, and '%s'", none_lines[i], found().unbind);
    }
    process("10", "orted", 1, "0-7", "orted");
    for (size_t i = 0; i < sizeof asked_variables / sizeof *asked_variables; i++) {
        setenv(asked_variables[i][0], asked_variables[i][1], 1);
        expect(asked_variables[i][0], "Open MPI", 2, 1, true);
        unsetenv(asked_variables[i][0]);
    }
    setenv("OMPI_MCA_rmaps_base_mapping_policy", "socket", 1); /* an order alone */
    expect("an order", "Open MPI", 2, 1, false);
    unsetenv("OMPI_MCA_rmaps_base_mapping_policy");
    static const char *const policies[] = {"OMPI_MCA_hwloc_base_binding_policy",
                                           "PRTE_MCA_hwloc_default_binding_policy"};
    for (int i = 0; i < 2; i++) {
        setenv(policies[i], "none", 1);
        expect("none", "Open MPI", 2, 1, true);
        CHECK(!*found().unbind, "unbound already: '%s'", found().unbind);
        process("10", "prterun", 1, "0-7", "prterun --bind-to core");
        CHECK(*found().unbind, "the command line says core");
        process("10", "orted", 1, "0-7", "orted");
        unsetenv(policies[i]);
    }
    process("10", "screen", 1, "0-7", "screen");
    expect("a daemon that is not to be seen", "Open MPI", 2, 1, true);
    forget();
}

/* srun's step counts where the step's task is this program, not in a shell of one. */
static void test_srun(void) {
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    setenv("SLURM_PROCID", "3", 1);
    process("20", "slurmstepd", 10, "0-7", "slurmstepd");
    expect("a task", "srun", 4, 3, true);
    CHECK(strstr(found().unbind, "--cpus-per-task"), "'%s'", found().unbind);
    setenv("SLURM_HET_SIZE", "2", 1);
    expect("one of several components", "", 0, -1, true);
    unsetenv("SLURM_HET_SIZE");
    process("20", "bash", 30, "0-7", "bash");
    process("30", "slurmstepd", 10, "0-7", "slurmstepd");
    expect("an interactive shell", "", 0, -1, true);
    setenv("SLURM_MPI_TYPE", "pmi2", 1);
    setenv("PMI_SIZE", "4", 1);
    setenv("PMI_RANK", "3", 1);
    expect("a shell with Slurm's PMI", "", 0, -1, true);
    setenv("PMI_SIZE", "2", 1);
    setenv("PMI_RANK", "0", 1);
    expect("mpiexec in that shell", "MPICH", 2, 0, true);
    setenv("OMPI_COMM_WORLD_SIZE", "5", 1);
    setenv("OMPI_COMM_WORLD_RANK", "4", 1);
    expect("mpirun in that shell", "Open MPI", 5, 4, true);
    forget();
}

static void test_sizes(void) {
    setenv("PMI_SIZE", "3", 1);
    setenv("PMI_RANK", "2", 1);
    tsr_launcher launcher = found();
    CHECK_OK(tsr_launcher_check(&launcher, 3, "any"));
    CHECK_FAILS(tsr_launcher_check(&launcher, 1, "Open MPI v4.1.4, package: x"), TSR_ERR_USAGE, "MPICH");
    CHECK(strstr(tsr_message(), "started 3 ranks (PMI_SIZE)") &&
              strstr(tsr_message(), "MPI, Open MPI v4.1.4, found 1:") && strstr(tsr_message(), "mpirun"),
          "message was: %s", tsr_message());
    CHECK_FAILS(tsr_launcher_check(&launcher, 4, "any"), TSR_ERR_USAGE, "found 4");
    static const char *const wrong[] = {"", "x", "-3", "3x", "99999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("PMI_SIZE", wrong[i], 1);
        launcher = found();
        CHECK(launcher.size == 0 && tsr_launcher_check(&launcher, 1, "any") == TSR_OK, "'%s' ranks", wrong[i]);
    }
    forget();
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    process("20", "slurmstepd", 10, "0-7", "slurmstepd");
    launcher = found();
    CHECK_FAILS(tsr_launcher_check(&launcher, 1, "any"), TSR_ERR_USAGE, "srun --mpi=");
    forget();
}

/* Who was launched may have others to reach; what the user set stays. */
static void test_alone(void) {
    static const char *const wanted[] = {"OMPI_MCA_ess_singleton_isolated", "OMPI_MCA_pml", "OMPI_MCA_btl"};
    static const char *const of_launchers[] = {"PMIX_NAMESPACE", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID",
                                               "SLURM_STEP_ID"};
    for (int i = 0; i < 3; i++) unsetenv(wanted[i]);
    forget();
    for (int i = 0; i < 5; i++) {
        setenv(of_launchers[i], "0", 1);
        tsr_launcher launcher = found();
        tsr_launcher_alone(&launcher);
        CHECK(!getenv("OMPI_MCA_pml") && !getenv("OMPI_MCA_btl"), "alone with %s", of_launchers[i]);
        unsetenv(of_launchers[i]);
    }
    tsr_launcher launcher = {.size = 2, .rank = 0};
    tsr_launcher_alone(&launcher);
    CHECK(!getenv("OMPI_MCA_pml"), "alone as one of two ranks");
    setenv("OMPI_MCA_btl", "tcp,self", 1);
    launcher = found();
    tsr_launcher_alone(&launcher);
    CHECK(getenv("OMPI_MCA_pml") && strcmp(getenv("OMPI_MCA_pml"), "ob1") == 0, "not alone");
    CHECK(strcmp(getenv("OMPI_MCA_btl"), "tcp,self") == 0, "the user's variable became '%s'", getenv("OMPI_MCA_btl"));
}

int main(void) {
    CHECK(mkdtemp(proc) && mkdtemp(sys), "mkdtemp");
    test_none();
    make_up_cores();
    test_open_mpi();
    test_masks();
    test_srun();
    test_sizes();
    remove_made_up(proc);
    remove_made_up(sys);
    test_alone();
    return 0;
}
