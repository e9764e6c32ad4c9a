/* Memory by /proc, the files of control groups and Slurm's variables (host_memory.h). */
#define _GNU_SOURCE
#include "kernels/device/host_memory.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define MIB ((int64_t)1 << 20)

/* ---- limits ---------------------------------------------------------------------------------- */

static void lower(tsr_host_memory *memory, uint64_t total, const char *by, const char *which) {
    if (total >= memory->total) return;
    memory->total = total;
    snprintf(memory->total_by, sizeof memory->total_by, "%s%s", by, which);
    if (total < memory->available) memory->available = total;
}

/* The number after `key` in a file of lines "key number"; with key "" the file's first number. false: not found. */
static bool read_number(const char *path, const char *key, uint64_t *number) {
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) {
        unsigned long long value;
        found = strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), " %llu", &value) == 1;
        if (found) *number = value;
    }
    fclose(file);
    return found;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void read_machine(const char *root, tsr_host_memory *memory) {
    char path[PATH_MAX];
    struct sysinfo info;
    uint64_t kib;
    *memory = (tsr_host_memory){.total_by = "this machine"};
    if (sysinfo(&info) == 0) {
        memory->total = (uint64_t)info.totalram * info.mem_unit;
        memory->available = (uint64_t)(info.freeram + info.bufferram) * info.mem_unit;
    }
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (read_number(path, "MemTotal:", &kib)) memory->total = kib * 1024;
    if (read_number(path, "MemAvailable:", &kib)) memory->available = kib * 1024;
}

/* ---- control groups -------------------------------------------------------------------------- */

/* The files of a version of control groups. */
typedef struct {
    const char *mount, *limit, *usage;
} group_version;

static const group_version version1 = {
    .mount = "/sys/fs/cgroup/memory", .limit = "memory.limit_in_bytes", .usage = "memory.usage_in_bytes"};
static const group_version version2 = {.mount = "/sys/fs/cgroup", .limit = "memory.max", .usage = "memory.current"};

/* The group in `folder`, called `name`. */
static void apply_group(const char *folder, const char *name, const group_version *version, tsr_host_memory *memory) {
    char path[PATH_MAX + 64];
    uint64_t limit, usage, active = 0;
    uint64_t inactive = 0;
    snprintf(path, sizeof path, "%s/%s", folder, version->limit);
    if (!read_number(path, "", &limit)) return; /* "max" or no such file */
    lower(memory, limit, "the control group ", *name ? name : "/");
    snprintf(path, sizeof path, "%s/%s", folder, version->usage);
    if (!read_number(path, "", &usage)) return;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    read_number(path, "active_file ", &active); /* cached files: given back when memory is wanted */
    read_number(path, "inactive_file ", &inactive);
    uint64_t used = usage > active + inactive ? usage - active - inactive : 0;
    uint64_t left = limit > used ? limit - used : 0;
    if (left < memory->available) memory->available = left;
}

/* The group `name` and all those above it. */
static void apply_groups(const char *root, const char *name, const group_version *version, tsr_host_memory *memory) {
    char folder[PATH_MAX];
    int mount = snprintf(folder, sizeof folder, "%s%s", root, version->mount);
    if (mount < 0 || (size_t)mount + strlen(name) >= sizeof folder) return;
    strcpy(folder + mount, name);
    for (;;) {
        apply_group(folder, folder + mount, version, memory);
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= (size_t)mount || !slash) return;
        *slash = '\0';
    }
}

/* Whether "memory" is among the controllers "cpu,memory". */
static bool controls_memory(const char *controllers) {
    for (const char *at = controllers; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == strlen("memory") && strncmp(at, "memory", strlen("memory")) == 0) return true;
    return false;
}

static void read_groups(const char *root, tsr_host_memory *memory) {
    char line[PATH_MAX];
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *groups = fopen(line, "r");
    if (!groups) return;
    while (fgets(line, sizeof line, groups)) { /* number:controllers:name, "0::name" in version 2 */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *name = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!name) continue;
        *controllers++ = '\0';
        *name++ = '\0';
        if (strcmp(line, "0") == 0 && !*controllers) apply_groups(root, name, &version2, memory);
        else if (controls_memory(controllers)) apply_groups(root, name, &version1, memory);
    }
    fclose(groups);
}

/* ---- Slurm ----------------------------------------------------------------------------------- */

/* Not set, no number and "all" (--mem=0) limit nothing. */
static void read_job(tsr_host_memory *memory) {
    const int64_t most = INT64_MAX / MIB;
    const int64_t node = tsr_variable_number("SLURM_MEM_PER_NODE", NULL);
    const int64_t cpu = tsr_variable_number("SLURM_MEM_PER_CPU", NULL);
    int64_t cpus = tsr_variable_number("SLURM_CPUS_ON_NODE", NULL);
    if (cpus <= 0) cpus = tsr_variable_number("SLURM_JOB_CPUS_PER_NODE", NULL); /* "2(x3)" */
    if (node > 0 && node < most) lower(memory, (uint64_t)(node * MIB), "the Slurm job ", "(SLURM_MEM_PER_NODE)");
    if (cpu > 0 && cpus > 0 && cpu < most / cpus)
        lower(memory, (uint64_t)(cpu * cpus * MIB), "the Slurm job ", "(SLURM_MEM_PER_CPU)");
}

void tsr_host_memory_find(const char *root, tsr_host_memory *memory) {
    read_machine(root, memory);
    read_groups(root, memory);
    read_job(memory);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void limit_room(tsr_process_room *room, int resource, const char *by, uint64_t mapped) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    const uint64_t most = (uint64_t)limit.rlim_cur, left = most > mapped ? most - mapped : 0;
    if (left < room->left) *room = (tsr_process_room){most, left, by};
}

void tsr_process_room_find(tsr_process_room *room) {
    unsigned long long all = 0, data = 0; /* pages */
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    *room = (tsr_process_room){UINT64_MAX, UINT64_MAX, NULL};
    FILE *sizes = fopen("/proc/self/statm", "r"); /* size resident shared text lib data dirty */
    if (sizes && fscanf(sizes, "%llu %*u %*u %*u %*u %llu", &all, &data) != 2) all = data = 0;
    if (sizes) fclose(sizes);
    limit_room(room, RLIMIT_AS, "ulimit -v", all * page);
    limit_room(room, RLIMIT_DATA, "ulimit -d", data * page);
}

size_t tsr_stack_bytes(void) {
    pthread_attr_t usual;
    size_t bytes = (size_t)8 << 20;
    if (pthread_attr_init(&usual) != 0) return bytes;
    pthread_attr_getstacksize(&usual, &bytes);
    pthread_attr_destroy(&usual);
    return bytes + (size_t)sysconf(_SC_PAGESIZE); /* and a page that guards it */
}
