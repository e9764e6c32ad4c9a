/* Which kernel multiplies. For a run: the one that was measured to be fastest (speeds.inc) among those that lose no
 * more than is allowed. For each of its products: by shape, that one or a substitute. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm/registry.h"
#include "kernels/gemm/speeds.h"

/* ---- measured speeds ------------------------------------------------------------------------- */

/* Log-linear between the sizes, constant beyond them. */
static double interpolate(const double *tflops, double size) {
    const double first = TSR_GEMM_SPEED_SMALLEST;
    double at = size > first ? log2(size / first) : 0;
    if (at >= TSR_GEMM_SPEED_SIZES - 1) return 1e12 * tflops[TSR_GEMM_SPEED_SIZES - 1];
    int below = (int)at;
    double low = log(tflops[below]), high = log(tflops[below + 1]);
    return 1e12 * exp(low + (at - below) * (high - low));
}

static bool measures(const tsr_gemm_speed_row *row, const tsr_gemm_kernel *kernel, int arch) {
    return row->arch == arch && strcmp(row->kernel, kernel->name) == 0 &&
           strcmp(row->input, tsr_dtype_name(kernel->input)) == 0 &&
           strcmp(row->type, tsr_dtype_name(kernel->type)) == 0;
}

/* How far code that was measured is from the code at hand; < 0: it says nothing about it. Code for one architecture
 * alone ("90a") uses instructions that other code has not. */
static int code_distance(const char *measured, const char *code) {
    if (strcmp(measured, code) == 0 || *measured == '\0') return 0;
    return strchr(measured, 'a') || strchr(code, 'a') ? -1 : 1 + abs(atoi(measured) - atoi(code));
}

double tsr_gemm_speed(const tsr_gemm_kernel *kernel, const tsr_device_facts *facts, int64_t m, int64_t n, int64_t k) {
    const bool round = (m | n | k) % 8 == 0;
    const double size = cbrt((double)m * (double)n * (double)k);
    const tsr_gemm_speed_row *best = NULL;
    for (int i = 0; i < TSR_GEMM_SPEED_ROWS; i++) {
        const tsr_gemm_speed_row *row = &tsr_gemm_speeds[i];
        if (!measures(row, kernel, facts->arch) || code_distance(row->code, facts->code) < 0) continue;
        if (!best || code_distance(row->code, facts->code) < code_distance(best->code, facts->code)) best = row;
    }
    if (!best) return 0;
    const double speed = interpolate(round ? best->round : best->odd, size);
    const int64_t edge = (int64_t)size;
    return kernel->shape_cost && edge > 0 ? speed * kernel->shape_cost(edge, edge, edge) / kernel->shape_cost(m, n, k)
                                          : speed;
}

/* ---- the choice ------------------------------------------------------------------------------ */

const tsr_gemm_kernel *tsr_gemm_for_auto(const tsr_gemm_kernel *kernel) {
    return kernel->for_auto ? kernel->for_auto : kernel;
}

tsr_accuracy tsr_gemm_loss(const tsr_gemm_kernel *kernel, tsr_dtype a, tsr_dtype b) {
    const bool rounds = tsr_dtype_serves(kernel->input, TSR_USE_ROUNDED) && kernel->input != kernel->type;
    return rounds && (a != kernel->input || b != kernel->input) ? TSR_ACCURACY_BF16 : kernel->accuracy;
}

/* Operands are handed over in C's type, as they are stored, or rounded to bfloat16; others are not made. */
static bool takes(const tsr_gemm_kernel *kernel, const tsr_gemm_request *request) {
    const bool as_stored = request->a == kernel->input && request->b == kernel->input;
    return kernel->type == request->type && (as_stored || tsr_dtype_serves(kernel->input, TSR_USE_ROUNDED));
}

/* A batch that is one launch counts as a product of as many multiply-adds, which is what was measured. */
static double measured_for(const tsr_gemm_kernel *kernel, const tsr_device_facts *facts,
                           const tsr_gemm_request *request) {
    const bool batched = tsr_gemm_serving_batch(kernel, request->batch, request->m, request->n, request->k) != NULL;
    const double more = batched ? cbrt((double)request->batch) : 1;
    const int64_t round = (request->m | request->n | request->k) % 8 == 0 ? 8 : 1;
    const int64_t m = tsr_round_up((int64_t)((double)request->m * more), round);
    const int64_t n = tsr_round_up((int64_t)((double)request->n * more), round);
    const int64_t k = tsr_round_up((int64_t)((double)request->k * more), round);
    return tsr_gemm_speed(kernel, facts, m, n, k);
}

/* flop/s of all launches together, the seconds before the first of them counted in. Where nothing was measured a
 * rank, which is below any flop/s; loading is then held against a guess. */
static double speed_of(const tsr_gemm_kernel *kernel, const tsr_device_facts *facts, const tsr_gemm_request *request) {
    const double guess = 1e13, measured = measured_for(kernel, facts, request);
    if (measured > 0)
        return request->flops > 0 ? request->flops / (request->flops / measured + kernel->load_seconds) : measured;
    return request->flops > 0 && kernel->load_seconds > request->flops / guess ? 0 : (double)kernel->speed_rank;
}

/* Among the kernels of this device called `name` (NULL: any): fewest losses first where losses do not matter, as
 * with a name; else speed. */
static const tsr_gemm_kernel *best_of(const char *name, const tsr_device_facts *facts,
                                      const tsr_gemm_request *request) {
    const tsr_gemm_kernel *best = NULL;
    double best_speed = 0;
    tsr_accuracy best_loss = TSR_ACCURACY_COUNT;
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++) {
        const tsr_gemm_kernel *one = name ? kernels[i] : tsr_gemm_for_auto(kernels[i]);
        if (one->device != facts->kind || !tsr_gemm_runs_on(one, facts->arch) || !takes(one, request)) continue;
        const tsr_accuracy loss = tsr_gemm_loss(one, request->a, request->b);
        if (name ? strcmp(one->name, name) != 0 || loss >= best_loss : loss > request->accuracy || one->multiple > 1)
            continue;
        const double speed = speed_of(one, facts, request);
        if (!name && best && speed <= best_speed) continue;
        best = one;
        best_speed = speed;
        best_loss = loss;
    }
    return best;
}

tsr_status tsr_gemm_choose(const char *name, const tsr_device_facts *facts, const tsr_gemm_request *request,
                           const tsr_gemm_kernel **kernel) {
    const bool any = strcmp(name, "auto") == 0;
    const tsr_gemm_kernel *best = best_of(any ? NULL : name, facts, request);
    if (!best && !any) return tsr_gemm_find(name, facts, request->type, request->type, kernel); /* says what there is */
    if (!best)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "no %s kernel for %s (sm_%d) in this build: use --device cpu",
                        tsr_dtype_name(request->type), facts->name, facts->arch);
    *kernel = best;
    return TSR_OK;
}

/* ---- the kernel for a product ---------------------------------------------------------------- */

/* Products of more than this edge³ multiply-adds fill a device by themselves. */
#define BATCHED_EDGE 640

/* Rows and columns for which no kernel gives way because a product is small, or large. */
#define MANY (1 << 20)

static tsr_gemm_substitute substitute_of(const tsr_gemm_kernel *kernel, int64_t m, int64_t n, int64_t k) {
    if (!kernel->substitute) return (tsr_gemm_substitute){.kernel = NULL};
    return kernel->substitute(m, n, k);
}

const tsr_gemm_kernel *tsr_gemm_serving(const tsr_gemm_kernel *kernel, int64_t m, int64_t n, int64_t k) {
    if (kernel->range > 0 && k > 0) m = n = MANY;
    const tsr_gemm_kernel *other = substitute_of(kernel, m, n, k).kernel;
    return other ? tsr_gemm_serving(other, m, n, k) : kernel;
}

const tsr_gemm_kernel *tsr_gemm_serving_batch(const tsr_gemm_kernel *kernel, int64_t batch, int64_t m, int64_t n,
                                              int64_t k) {
    const tsr_gemm_kernel *batched = kernel->batched;
    const bool small = (double)m * (double)n * (double)k <= (double)BATCHED_EDGE * BATCHED_EDGE * BATCHED_EDGE;
    return batch > 1 && batched && (batched == kernel || small) ? batched : NULL;
}

const tsr_gemm_kernel *tsr_gemm_making(const tsr_gemm_kernel *kernel, int64_t batch, int64_t m, int64_t n, int64_t k) {
    const tsr_gemm_kernel *batched = tsr_gemm_serving_batch(kernel, batch, m, n, k);
    return batched ? batched : tsr_gemm_serving(kernel, m, n, k);
}

const char *tsr_gemm_explain(const tsr_gemm_kernel *kernel, int64_t batch, int64_t m, int64_t n, int64_t k,
                             char *text) {
    const tsr_gemm_kernel *batched = tsr_gemm_serving_batch(kernel, batch, m, n, k);
    size_t used = (size_t)snprintf(text, TSR_GEMM_TEXT, "%s", kernel->name);
    if (batched && batched != kernel)
        snprintf(text + used, TSR_GEMM_TEXT - used, " -> %s (a batch, m*n*k <= %d^3)", batched->name, BATCHED_EDGE);
    if (batched) return text;
    tsr_gemm_substitute next;
    if (kernel->range > 0 && k > 0) m = n = MANY;
    while ((next = substitute_of(kernel, m, n, k)).kernel && used < TSR_GEMM_TEXT) {
        used += (size_t)snprintf(text + used, TSR_GEMM_TEXT - used, " -> %s (%s)", next.kernel->name, next.why);
        kernel = next.kernel;
    }
    if (!kernel->fallback || used >= TSR_GEMM_TEXT) return text;
    const tsr_gemm_kernel *fallback = tsr_gemm_serving(kernel->fallback, m, n, k);
    const bool chain = kernel->fallback->fallback && fallback == kernel->fallback;
    snprintf(text + used, TSR_GEMM_TEXT - used, ", or %s%s%s where the device finds %s", fallback->name,
             chain ? " or " : "", chain ? fallback->fallback->name : "", kernel->fallback_for);
    return text;
}

const char *tsr_gemm_explain_choice(const char *name, const tsr_device_facts *facts, const tsr_gemm_request *request,
                                    const tsr_gemm_kernel *kernel, char *text) {
    const double speed = measured_for(kernel, facts, request);
    const bool any = strcmp(name, "auto") == 0, best = any && best_of(NULL, facts, request) == kernel;
    /* NOLINTBEGIN(clang-analyzer-core.NullDereference): a kernel was chosen, whatever best_of finds now */
    if (!any) snprintf(text, TSR_GEMM_TEXT, "%s, asked for by name", kernel->name);
    else if (!best) snprintf(text, TSR_GEMM_TEXT, "auto -> %s (the choice of the rank with the slowest)", kernel->name);
    else if (speed == 0)
        snprintf(text, TSR_GEMM_TEXT, "auto -> %s (by rank: nothing was measured on such a device)", kernel->name);
    else
        snprintf(text, TSR_GEMM_TEXT,
                 "auto -> %s (fastest as measured, %.3g TFLOP/s at about %" PRId64 " x %" PRId64 " x %" PRId64 ")",
                 kernel->name, speed / 1e12, request->m, request->n, request->k);
    /* NOLINTEND(clang-analyzer-core.NullDereference) */
    return text;
}

/* ---- reproducible sums ----------------------------------------------------------------------- */

/* Those of the same device, input and type that have them. */
static void list_reproducible(const tsr_gemm_kernel *like, char *names, size_t chars) {
    int count;
    size_t used = 0;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    names[0] = '\0';
    for (int i = 0; i < count && used < chars; i++) {
        const tsr_gemm_kernel *one = kernels[i];
        if (one->device != like->device || one->input != like->input || one->type != like->type ||
            !one->launch_reproducible)
            continue;
        used += (size_t)snprintf(names + used, chars - used, ", %s", one->name);
    }
}

tsr_status tsr_gemm_reproducible(const tsr_gemm_kernel *kernel, tsr_gemm_kernel *own) {
    char names[TSR_GEMM_TEXT];
    list_reproducible(kernel, names, sizeof names);
    if (!kernel->launch_reproducible)
        return tsr_fail(TSR_ERR_USAGE,
                        "--reproducible: how kernel '%s' adds up depends on more than an element's row, column and k: "
                        "for %s on device '%s' there are exact%s",
                        kernel->name, tsr_dtype_name(kernel->input), tsr_device_kind_name(kernel->device), names);
    *own = *kernel;
    own->launch = kernel->launch_reproducible;
    own->range = TSR_GEMM_RANGE;
    own->batched = NULL;
    while (tsr_gemm_has_chain(own)) own->fallback = own->fallback->fallback;
    own->predicated = false;
    return TSR_OK;
}
