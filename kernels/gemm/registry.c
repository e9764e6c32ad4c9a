/* Which multiplication kernels this build has, and finding one by name. */
#include "kernels/gemm/registry.h"

#include <stdio.h>
#include <string.h>

static const tsr_gemm_kernel *const kernels[] = {
#define X(name) &tsr_gemm_##name,
    TSR_GEMM_CPU_LIST(X)
#ifdef TSR_CUDA_TABLES
        TSR_GEMM_CUDA_LIST(X)
#endif
#ifdef TSR_HAVE_HOPPER
            TSR_GEMM_HOPPER_LIST(X)
#endif
#ifdef TSR_HAVE_CUBLAS
                TSR_GEMM_CUBLAS_LIST(X)
#endif
#undef X
};
#define KERNELS ((int)(sizeof kernels / sizeof *kernels))

const tsr_gemm_kernel *const *tsr_gemm_kernels(int *count) {
    *count = KERNELS;
    return kernels;
}

const char *tsr_accuracy_name(tsr_accuracy accuracy) {
#define X(code, name, what) name,
    static const char *const names[] = {TSR_ACCURACY_LIST(X)};
#undef X
    return names[accuracy];
}

tsr_status tsr_accuracy_parse(const char *name, tsr_accuracy *accuracy) {
    for (int i = 0; i < TSR_ACCURACY_COUNT; i++)
        if (strcmp(name, tsr_accuracy_name((tsr_accuracy)i)) == 0) {
            *accuracy = (tsr_accuracy)i;
            return TSR_OK;
        }
#define X(code, name, what) " " name
    return tsr_fail(TSR_ERR_USAGE,
                    "--accuracy '%s' is unknown: use one of" TSR_ACCURACY_LIST(X) "; --help says what each may lose",
                    name);
#undef X
}

tsr_status tsr_gemm_find(const char *name, const tsr_device_facts *facts, tsr_dtype input, tsr_dtype type,
                         const tsr_gemm_kernel **kernel) {
    char names[512] = "";
    for (int i = 0; i < KERNELS; i++) {
        const tsr_gemm_kernel *candidate = kernels[i];
        if (candidate->device != facts->kind || candidate->input != input || candidate->type != type) continue;
        if (strcmp(candidate->name, name) != 0) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", candidate->name);
            continue;
        }
        if (!tsr_gemm_runs_on(candidate, facts->arch))
            return tsr_fail(TSR_ERR_UNSUPPORTED, "kernel '%s' needs sm_%d%s and %s is sm_%d: use --kernel auto", name,
                            candidate->min_arch, candidate->max_arch == 0 ? " or newer" : "", facts->name, facts->arch);
        *kernel = candidate;
        return TSR_OK;
    }
    if (names[0] == '\0')
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "no kernel of this build multiplies %s into %s on device '%s': convert to f32 or f64",
                        tsr_dtype_name(input), tsr_dtype_name(type), tsr_device_kind_name(facts->kind));
    return tsr_fail(TSR_ERR_USAGE, "no kernel '%s' for %s on device '%s': there are auto, %s", name,
                    tsr_dtype_name(input), tsr_device_kind_name(facts->kind), names);
}
