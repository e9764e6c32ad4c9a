/* A tool that NVTX_INJECTION64_PATH names: writes what it hears to the file TSR_NVTX_HEARD followed by the process's
 * number, a line each: "thread ID NAME", "begin ID CATEGORY BYTES NAME", "end ID", "domain NAME". */
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static FILE *heard;
static char categories[64][32];
static int domain_is; /* its address is the domain */

static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(heard, format, arguments); /* a line whole: streams lock themselves */
    va_end(arguments);
}

static int thread(void) { return (int)syscall(SYS_gettid); }

static nvtxDomainHandle_t create(const char *name) {
    say("domain %s\n", name);
    return (nvtxDomainHandle_t)(void *)&domain_is;
}

static void destroy(nvtxDomainHandle_t domain) {
    say("left %s\n", (void *)domain == (void *)&domain_is ? "it" : "another");
    fflush(heard);
}

static void name_category(nvtxDomainHandle_t domain, uint32_t category, const char *name) {
    (void)domain;
    snprintf(categories[category % 64], sizeof *categories, "%s", name);
}

static void name_thread(uint32_t id, const char *name) { say("thread %d %s\n", (int)id, name); }

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range) {
    (void)domain;
    say("begin %d %s %llu %s\n", thread(), categories[range->category % 64],
        (unsigned long long)range->payload.ullValue, range->message.ascii);
    return 0;
}

static int pop(nvtxDomainHandle_t domain) {
    (void)domain;
    say("end %d\n", thread());
    return 0;
}

static void take(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module, unsigned at,
                 NvtxFunctionPointer function) {
    NvtxFunctionTable table;
    unsigned size;
    if (callbacks->GetModuleFunctionTable(module, &table, &size) && at < size) *table[at] = function;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables) {
    const NvtxExportTableCallbacks *callbacks = tables(NVTX_ETID_CALLBACKS);
    char name[512];
    snprintf(name, sizeof name, "%s%d", getenv("TSR_NVTX_HEARD"), (int)getpid());
    heard = fopen(name, "w");
    if (!callbacks || !heard) return 0;
    take(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, (NvtxFunctionPointer)create);
    take(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainDestroy, (NvtxFunctionPointer)destroy);
    take(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainNameCategoryA, (NvtxFunctionPointer)name_category);
    take(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, (NvtxFunctionPointer)push);
    take(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)pop);
    take(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_NameOsThreadA, (NvtxFunctionPointer)name_thread);
    return 1;
}
