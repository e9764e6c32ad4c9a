/* Launchers by their variables, the processes above this one and its cores (launcher.h). */
#define _GNU_SOURCE /* strcasestr */
#include "mpi/ranks/launcher.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANCESTORS_MAX 32
#define COMMAND_CHARS 65536

/* ---- variables ------------------------------------------------------------------------------- */

static bool is_set(const char *variable) {
    const char *text = getenv(variable);
    return text && *text;
}

/* The whole number that the variable holds; -1 where it is not set or holds none. */
static int whole_number_in(const char *variable) {
    const char *rest;
    const int64_t number = tsr_variable_number(variable, &rest);
    return *rest || number > INT_MAX ? -1 : (int)number;
}

int tsr_launcher_rank(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (is_set(variables[i])) return whole_number_in(variables[i]);
    return -1;
}

/* A mapping such as "slot:PE=4" says how many cores a rank gets; others only in which order. */
static bool maps_cores(const char *policy) {
    return policy && (strcasestr(policy, "pe=") || strcasestr(policy, "pe-list"));
}

/* What somebody asked of Open MPI. */
typedef struct {
    bool binding;    /* some, or none at all */
    char policy[64]; /* of bindings, "none" where ranks are not bound; "" where it is not named */
    bool mapping;    /* which order: ranks are bound to what they are mapped by, unless a binding is asked for, too */
} requests;

static void ask_policy(requests *asked, const char *policy) {
    asked->binding = true;
    snprintf(asked->policy, sizeof asked->policy, "%s", policy);
}

static void ask_mapping(requests *asked, const char *policy) {
    asked->mapping = true;
    if (maps_cores(policy)) asked->binding = true;
}

/* Variables that Open MPI 4 (ORTE) sets for its ranks when the option was given, or that its user set; and those of
 * Open MPI 5 (PRRTE). */
static void asked_by_variables(requests *asked) {
    static const char *const policies[] = {"OMPI_MCA_hwloc_base_binding_policy", /* --bind-to */
                                           "PRTE_MCA_hwloc_default_binding_policy"};
    static const char *const mappings[] = {"OMPI_MCA_rmaps_base_mapping_policy", /* --map-by */
                                           "PRTE_MCA_rmaps_default_mapping_policy"};
    static const char *const others[] = {
        "OMPI_MCA_hwloc_base_bind_to_core", /* --bind-to-core, of old */
        "OMPI_MCA_hwloc_base_bind_to_socket",
        "OMPI_MCA_hwloc_base_cpu_set",       /* --cpu-set */
        "OMPI_MCA_hwloc_base_cpu_list",      /* --cpu-list */
        "OMPI_MCA_rmaps_base_cpus_per_rank", /* --cpus-per-rank, of old */
        "OMPI_MCA_orte_rankfile",            /* --rankfile */
        "OMPI_MCA_rmaps_rank_file_path",
        "PRTE_MCA_hwloc_default_cpu_list",
        "PRTE_MCA_rmaps_rank_file_path",
    };
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        if (is_set(policies[i])) ask_policy(asked, getenv(policies[i]));
    for (size_t i = 0; i < sizeof mappings / sizeof *mappings; i++)
        if (is_set(mappings[i])) ask_mapping(asked, getenv(mappings[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_set(others[i])) asked->binding = true;
}

/* ---- processes ------------------------------------------------------------------------------- */

typedef struct {
    int id, parent;
    char name[32];
    tsr_cores cores;
} process;

/* The process `id` ("self" or a number) by its status file. */
static bool read_process(const char *proc, const char *id, process *found) {
    char path[512], line[4096];
    bool has_parent = false, has_cores = false;
    snprintf(path, sizeof path, "%s/%s/status", proc, id);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    *found = (process){.id = atoi(id)};
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "Name: %31s", found->name) == 1) continue;
        if (sscanf(line, "PPid: %d", &found->parent) == 1) has_parent = true;
        if (strncmp(line, "Cpus_allowed_list:", 18) == 0)
            has_cores = tsr_cores_parse(line + 18 + strspn(line + 18, " \t"), &found->cores);
    }
    fclose(file);
    return has_parent && has_cores;
}

static bool read_parent(const char *proc, const process *of, process *parent) {
    char id[16];
    snprintf(id, sizeof id, "%d", of->parent);
    return of->parent > 0 && read_process(proc, id, parent);
}

/* mpirun and its daemons: mpirun, mpiexec, orterun, orted, prterun, prted. */
static bool is_open_mpi(const char *name) {
    static const char *const beginnings[] = {"mpirun", "mpiexec", "orte", "prte"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0) return true;
    return false;
}

/* The launcher above this process, behind scripts between them. *moved: one of these ran on other cores than `self`,
 * so what Open MPI made is not what this process has. */
static bool find_open_mpi(const char *proc, const process *self, process *found, bool *moved) {
    process at = *self;
    *moved = false;
    for (int i = 0; i < ANCESTORS_MAX; i++) {
        const process child = at;
        if (!read_parent(proc, &child, &at)) return false;
        if (is_open_mpi(at.name)) {
            *found = at;
            return true;
        }
        *moved = *moved || !tsr_cores_equal(&at.cores, &self->cores);
    }
    return false;
}

static bool is_one_of(const char *name, size_t chars, const char *const *names) {
    for (; *names; names++)
        if (strlen(*names) == chars && strncmp(name, *names, chars) == 0) return true;
    return false;
}

/* An option or a parameter, "--name=value" or with the value in the next word. */
static void ask_option(requests *asked, const char *word, const char *next) {
    static const char *const policies[] = {"bind-to", "hwloc_base_binding_policy", "hwloc_default_binding_policy",
                                           NULL};
    static const char *const mappings[] = {"map-by", "rmaps_base_mapping_policy", "rmaps_default_mapping_policy", NULL};
    static const char *const others[] = {"bind-to-core",  "bind-to-socket", "cpu-set", "cpu-list", "cpus-per-proc",
                                         "cpus-per-rank", "rankfile",       "rf",      NULL};
    const char *name = word + strspn(word, "-");
    const size_t chars = strcspn(name, "=");
    const char *value = name[chars] ? name + chars + 1 : next;
    if (is_one_of(name, chars, policies)) ask_policy(asked, value);
    if (is_one_of(name, chars, mappings)) ask_mapping(asked, value);
    if (is_one_of(name, chars, others)) asked->binding = true;
}

/* What the command line of the launcher asks for. */
static void asked_by_options(const char *proc, int id, requests *asked) {
    char path[512];
    snprintf(path, sizeof path, "%s/%d/cmdline", proc, id);
    FILE *file = fopen(path, "r");
    char *words = file ? calloc(1, COMMAND_CHARS + 1) : NULL; /* each ends with a zero, the last with two */
    const char *end = words ? words + fread(words, 1, COMMAND_CHARS - 1, file) : NULL;
    if (file) fclose(file);
    for (const char *word = words, *next; word && word < end; word = next) {
        next = word + strlen(word) + 1;
        ask_option(asked, word, next);
    }
    free(words);
}

/* ---- launchers ------------------------------------------------------------------------------- */

/* Whether `mine` is a core, a node or a package, or what a launcher that runs on `allowed` may use of it. */
static bool fills(const tsr_cores *mine, const tsr_cores *object, const tsr_cores *allowed) {
    const tsr_cores both = tsr_cores_both(object, allowed);
    return tsr_cores_equal(mine, object) || tsr_cores_equal(mine, &both);
}

static bool fills_core(const char *sys, int first, const tsr_cores *mine, const tsr_cores *allowed) {
    tsr_cores threads, one = {0};
    tsr_cores_add(&one, first);
    if (!tsr_core_threads(sys, first, &threads)) threads = one;
    return fills(mine, &threads, allowed) ||
           (is_set("OMPI_MCA_hwloc_base_use_hwthreads_as_cpus") && tsr_cores_equal(mine, &one));
}

static bool fills_node(const char *sys, int first, const tsr_cores *mine, const tsr_cores *allowed) {
    tsr_cores nodes[TSR_NUMA_NODES_MAX], package;
    const int count = tsr_numa_nodes(sys, nodes);
    for (int node = 0; node < count; node++)
        if (tsr_cores_has(&nodes[node], first) && fills(mine, &nodes[node], allowed)) return true;
    return tsr_core_package(sys, first, &package) && fills(mine, &package, allowed);
}

/* Whether Open MPI by itself leaves one of `ranks` on the cores `mine`: on all of its own, or bound to a core, of two
 * ranks, to a NUMA node or a package, of more; or to what it was told to map by. */
static bool is_made_by_open_mpi(const char *sys, const tsr_cores *mine, const tsr_cores *allowed, int ranks,
                                bool mapping) {
    int first = 0;
    if (tsr_cores_equal(mine, allowed)) return true;
    while (first < TSR_CORES_MAX && !tsr_cores_has(mine, first)) first++;
    if (first == TSR_CORES_MAX) return false;
    return ((ranks <= 2 || mapping) && fills_core(sys, first, mine, allowed)) ||
           ((ranks > 2 || mapping) && fills_node(sys, first, mine, allowed));
}

static void find_binding_of_open_mpi(const char *proc, const char *sys, tsr_launcher *launcher) {
    process self, above;
    requests asked = {0};
    bool moved = false;
    const bool found = read_process(proc, "self", &self) && find_open_mpi(proc, &self, &above, &moved);
    asked_by_variables(&asked);
    if (found) asked_by_options(proc, above.id, &asked);
    if (asked.binding) {
        if (strncmp(asked.policy, "none", 4) != 0) launcher->unbind = "mpirun --bind-to none";
    } else if (found && !moved && is_made_by_open_mpi(sys, &self.cores, &above.cores, launcher->size, asked.mapping)) {
        launcher->bound = false;
        launcher->cores = above.cores;
        launcher->node_size = whole_number_in("OMPI_COMM_WORLD_LOCAL_SIZE");
        launcher->node_rank = whole_number_in("OMPI_COMM_WORLD_LOCAL_RANK");
    }
}

/* srun started this very program: a shell or script in an interactive step or a batch job has the variables, too, but
 * is the parent itself. */
static bool is_task_of_srun(const char *proc) {
    process self, parent;
    if (whole_number_in("SLURM_STEP_NUM_TASKS") < 1) return false;
    if (is_set("SLURM_HET_SIZE") || is_set("SLURM_PACK_SIZE")) return false; /* one of several components */
    return read_process(proc, "self", &self) && read_parent(proc, &self, &parent) &&
           strcmp(parent.name, "slurmstepd") == 0;
}

/* In a step of srun --mpi=pmi2 its shell and all it starts have Slurm's PMI_SIZE. */
static bool is_pmi_of_slurm(void) {
    const char *kind = getenv("SLURM_MPI_TYPE");
    return kind && strcmp(kind, "pmi2") == 0 && whole_number_in("PMI_SIZE") == whole_number_in("SLURM_STEP_NUM_TASKS");
}

static void ranks_by(tsr_launcher *launcher, const char *name, const char *size, const char *rank) {
    launcher->name = name;
    launcher->variable = size;
    launcher->size = whole_number_in(size);
    launcher->rank = whole_number_in(rank);
}

void tsr_launcher_find(const char *proc, const char *sys, tsr_launcher *launcher) {
    *launcher = (tsr_launcher){.name = "", .variable = "", .rank = -1, .bound = true, .unbind = ""};
    if (whole_number_in("OMPI_COMM_WORLD_SIZE") > 0) {
        ranks_by(launcher, "Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK");
        find_binding_of_open_mpi(proc, sys, launcher);
    } else if (is_task_of_srun(proc)) {
        ranks_by(launcher, "srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID");
        launcher->unbind = "srun --cpus-per-task=8";
    } else if (whole_number_in("PMI_SIZE") > 0 && !is_pmi_of_slurm()) {
        ranks_by(launcher, "the mpiexec of MPICH or of another MPI like it", "PMI_SIZE", "PMI_RANK");
        if (is_set("HYDRA_USER_PROVIDED_BINDING")) launcher->unbind = "mpiexec -bind-to none";
    }
}

void tsr_launcher_alone(const tsr_launcher *launcher) {
    static const char *const of_launchers[] = {"PMIX_NAMESPACE", "PMI_SIZE",      "PMI_FD",      "PMI_PORT",
                                               "PMI_JOBID",      "SLURM_STEP_ID", "FLUX_JOB_ID", "PALS_RANKID"};
    if (launcher->size > 0 || tsr_launcher_rank() >= 0) return;
    for (size_t i = 0; i < sizeof of_launchers / sizeof *of_launchers; i++)
        if (is_set(of_launchers[i])) return;
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_orte_create_session_dirs", "0", 0); /* its folder would be the same for all who are isolated */
    setenv("OMPI_MCA_sharedfp", "^sm", 0);               /* which wants that folder */
    setenv("OMPI_MCA_pml", "ob1", 0);
    setenv("OMPI_MCA_btl", "self", 0);
}

tsr_status tsr_launcher_check(const tsr_launcher *launcher, int ranks, const char *library) {
    if (launcher->size == 0 || launcher->size == ranks) return TSR_OK;
    const bool slurm = strcmp(launcher->name, "srun") == 0;
    return tsr_fail(
        TSR_ERR_USAGE,
        "%s started %d ranks (%s), but tessera's MPI, %.*s, found %d: they would all write the same files. %s",
        launcher->name, launcher->size, launcher->variable, (int)strcspn(library, ",\n"), library, ranks,
        slurm ? "Use srun --mpi=pmix, another of srun --mpi=list, or this MPI's own mpirun"
              : "Start tessera with this MPI's own mpirun or mpiexec, or build it with the launcher's MPI");
}
