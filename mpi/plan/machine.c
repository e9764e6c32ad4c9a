/* Machine files (machine.h): the reader, and what a rank of such a machine may use. */
#include "mpi/plan/machine.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_CHARS 1024
#define MOST 1e9 /* of any unit: bytes stay within 63 bits */
#define GIGA 1e9
#define TERA 1e12
#define MICRO 1e-6

static const struct {
    const char *name;
    size_t at; /* of the double in tsr_machine */
    bool needed;
} keys[] = {
#define X(key, needed) {#key, offsetof(tsr_machine, key), needed},
    TSR_MACHINE_LIST(X)
#undef X
};
#define KEYS ((int)(sizeof keys / sizeof *keys))

static char *trim(char *text) {
    while (isspace((unsigned char)*text)) text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) *--end = '\0';
    return text;
}

static double *field(tsr_machine *machine, int key) { return (double *)(void *)((char *)machine + keys[key].at); }

static int find_key(const char *name) {
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0) return i;
    return -1;
}

static void list_keys(char *list, size_t chars) {
    *list = '\0';
    for (int i = 0; i < KEYS; i++) {
        size_t used = strlen(list);
        snprintf(list + used, chars - used, " %s", keys[i].name);
    }
}

static tsr_status read_value(const char *file, int line, int key, const char *text, double *value) {
    char *end = NULL;
    double read = strtod(text, &end);
    if (end == text || *end || !isfinite(read) || read <= 0 || read > MOST)
        return tsr_fail(TSR_ERR_FORMAT,
                        "%s:%d: %s is '%s': write a number above 0, such as 4 or 1.5e3, in the unit of the key's name",
                        file, line, keys[key].name, text);
    if (strcmp(keys[key].name, "gpus_per_node") == 0 && (read != floor(read) || read > 1024))
        return tsr_fail(TSR_ERR_FORMAT, "%s:%d: gpus_per_node is '%s': write a whole number from 1 to 1024", file, line,
                        text);
    *value = read;
    return TSR_OK;
}

/* One line without its newline. `seen`: the line of each key so far, 0 for none. */
static tsr_status read_line(const char *file, int line, char *text, tsr_machine *machine, int seen[KEYS]) {
    char list[LINE_CHARS];
    text[strcspn(text, "#")] = '\0';
    char *name = trim(text), *equals = strchr(name, '=');
    if (!*name) return TSR_OK;
    if (!equals)
        return tsr_fail(TSR_ERR_FORMAT, "%s:%d: '%s' is no 'key = value': write one, or begin a comment with #", file,
                        line, name);
    *equals = '\0';
    name = trim(name);
    int key = find_key(name);
    list_keys(list, sizeof list);
    if (key < 0) return tsr_fail(TSR_ERR_FORMAT, "%s:%d: unknown key '%s': use%s", file, line, name, list);
    if (seen[key])
        return tsr_fail(TSR_ERR_FORMAT, "%s:%d: %s was given on line %d already: leave one of them out", file, line,
                        name, seen[key]);
    seen[key] = line;
    return read_value(file, line, key, trim(equals + 1), field(machine, key));
}

static tsr_status read_lines(const char *file, FILE *from, tsr_machine *machine) {
    char text[LINE_CHARS];
    int line = 0, seen[KEYS] = {0};
    while (fgets(text, sizeof text, from)) {
        line++;
        if (!strchr(text, '\n') && !feof(from))
            return tsr_fail(TSR_ERR_FORMAT, "%s:%d: the line is longer than %d characters: is this a machine file?",
                            file, line, LINE_CHARS - 2);
        TSR_TRY(read_line(file, line, text, machine, seen));
    }
    if (ferror(from))
        return tsr_fail(TSR_ERR_IO, "%s could not be read: %s: name a machine file", file, strerror(errno));
    for (int i = 0; i < KEYS; i++)
        if (keys[i].needed && !seen[i])
            return tsr_fail(TSR_ERR_FORMAT, "%s:%d: the file ends without key '%s': add a line '%s = NUMBER'", file,
                            line, keys[i].name, keys[i].name);
    return TSR_OK;
}

tsr_status tsr_machine_read(const char *file, tsr_machine *machine) {
    tsr_machine read = {0};
    FILE *from = fopen(file, "r");
    if (!from)
        return tsr_fail(errno == ENOENT ? TSR_ERR_NOT_FOUND : TSR_ERR_IO,
                        "%s cannot be opened: %s: name a machine file, such as jobs/h200_example.machine", file,
                        strerror(errno));
    tsr_status status = read_lines(file, from, &read);
    fclose(from);
    if (status == TSR_OK) *machine = read;
    return status;
}

static double flops_per_second(const tsr_machine *machine, tsr_dtype input) {
    char name[32];
    snprintf(name, sizeof name, "%s_tflops", tsr_dtype_name(input));
    const int key = find_key(name);
    return key < 0 ? 0 : *(const double *)(const void *)((const char *)machine + keys[key].at) * TERA;
}

/* A kernel for GPUs wants room for aligned or packed copies of both operands, with up to 1/64 of padding, and for
 * parts of sums: no kernel of this program wants more than this. */
static size_t workspace(int64_t element, int64_t m, int64_t n, int64_t k) {
    const int64_t parts = 64 << 20, depth = tsr_round_up(k, 128);
    return (size_t)(element * depth * (tsr_round_up(m, 256) / 64 * 65 + tsr_round_up(n, 256)) + parts);
}
static size_t workspace_2(int64_t m, int64_t n, int64_t k) { return workspace(2, m, n, k); }
static size_t workspace_4(int64_t m, int64_t n, int64_t k) { return workspace(4, m, n, k); }
static size_t workspace_8(int64_t m, int64_t n, int64_t k) { return workspace(8, m, n, k); }

tsr_status tsr_machine_resources(const tsr_machine *machine, const char *file, int ranks, tsr_dtype input,
                                 tsr_resources *resources) {
    double flops = flops_per_second(machine, input);
    int node_ranks = (int)machine->gpus_per_node < ranks ? (int)machine->gpus_per_node : ranks;
    if (flops <= 0)
        return tsr_fail(TSR_ERR_FORMAT, "%s says nothing of products of %s: add a line '%s_tflops = NUMBER'", file,
                        tsr_dtype_name(input), tsr_dtype_name(input));
    *resources = (tsr_resources){
        .ranks = ranks,
        .device_exchange = true,
        .device_limit = (size_t)(machine->device_memory_GB * GIGA),
        .host_limit = (size_t)(machine->host_memory_GB_per_node * GIGA / node_ranks),
        .multiple = 1,
        .workspace_bytes = tsr_dtype_bytes(input) == 2   ? workspace_2
                           : tsr_dtype_bytes(input) == 4 ? workspace_4
                                                         : workspace_8,
        .rates = {.node_ranks = node_ranks,
                  .network_bytes_per_second = machine->network_GBps_per_node * GIGA,
                  .network_latency_seconds = machine->network_latency_us * MICRO,
                  .node_read_bytes_per_second = machine->file_read_GBps_per_node * GIGA,
                  .node_write_bytes_per_second = machine->file_write_GBps_per_node * GIGA,
                  .all_read_bytes_per_second = machine->file_read_GBps_in_all * GIGA,
                  .all_write_bytes_per_second = machine->file_write_GBps_in_all * GIGA},
    };
    double *lane = resources->rates.lane;
    lane[TSR_LANE_READ] = machine->file_read_GBps_per_node * GIGA;
    lane[TSR_LANE_WRITE] = machine->file_write_GBps_per_node * GIGA;
    lane[TSR_LANE_UPLOAD] = machine->host_to_device_GBps * GIGA;
    lane[TSR_LANE_DOWNLOAD] = machine->device_to_host_GBps * GIGA;
    lane[TSR_LANE_EXCHANGE] = machine->gpu_link_GBps * GIGA;
    lane[TSR_LANE_PACK] = machine->device_memory_GBps * GIGA;
    lane[TSR_LANE_MULTIPLY] = flops;
    return TSR_OK;
}

tsr_status tsr_machine_ceilings(const tsr_machine *machine, const char *file, int ranks, tsr_dtype input,
                                double ceilings[TSR_LANE_COUNT]) {
    tsr_resources res;
    TSR_TRY(tsr_machine_resources(machine, file, ranks, input, &res));
    const tsr_rates *rates = &res.rates;
    const double node_ranks = rates->node_ranks;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) ceilings[lane] = rates->lane[lane];
    ceilings[TSR_LANE_READ] =
        fmin(rates->node_read_bytes_per_second / node_ranks, rates->all_read_bytes_per_second / ranks);
    ceilings[TSR_LANE_WRITE] =
        fmin(rates->node_write_bytes_per_second / node_ranks, rates->all_write_bytes_per_second / ranks);
    if (ranks > rates->node_ranks)
        ceilings[TSR_LANE_EXCHANGE] = fmin(ceilings[TSR_LANE_EXCHANGE], rates->network_bytes_per_second / node_ranks);
    return TSR_OK;
}
