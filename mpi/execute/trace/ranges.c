/* Ranges of steps over the toolkit's nvtx3, a header that looks for a tool when it is called first (ranges.h). */
#define _GNU_SOURCE /* syscall */
#include "mpi/execute/trace/ranges.h"

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mpi/execute/trace/trace.h"

/* As on the page of a report. */
static const uint32_t colours[TSR_LANE_COUNT] = {
    [TSR_LANE_READ] = 0xFF0072B2,  [TSR_LANE_UPLOAD] = 0xFF56B4E9,   [TSR_LANE_EXCHANGE] = 0xFFC06C9B,
    [TSR_LANE_PACK] = 0xFF9A8700,  [TSR_LANE_MULTIPLY] = 0xFFE69F00, [TSR_LANE_DOWNLOAD] = 0xFF009E73,
    [TSR_LANE_WRITE] = 0xFFD55E00,
};

static nvtxDomainHandle_t domain_of(const tsr_ranges *ranges) { return (nvtxDomainHandle_t)(uintptr_t)ranges; }

/* Categories begin with 1: 0 is none. */
tsr_ranges *tsr_ranges_open(void) {
    nvtxDomainHandle_t domain = nvtxDomainCreateA("tessera");
    for (int lane = 0; domain && lane < TSR_LANE_COUNT; lane++)
        nvtxDomainNameCategoryA(domain, (uint32_t)lane + 1, tsr_lane_name((tsr_lane)lane));
    return (tsr_ranges *)domain;
}

void tsr_ranges_close(tsr_ranges *ranges) {
    if (ranges) nvtxDomainDestroy(domain_of(ranges));
}

void tsr_ranges_thread(const tsr_ranges *ranges, tsr_lane lane) {
    char name[32];
    if (!ranges) return;
    snprintf(name, sizeof name, "tessera %s", tsr_lane_name(lane));
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), name);
}

void tsr_range_begin(tsr_ranges *ranges, const tsr_step *step) {
    char name[128];
    if (!ranges) return;
    const tsr_rect *tile = &step->rect;
    const int used =
        snprintf(name, sizeof name, "%s %s", tsr_step_kind_name(step->kind), tsr_operand_text(tsr_step_operand(step)));
    if (!tsr_rect_empty(*tile))
        snprintf(name + used, sizeof name - (size_t)used, " [%lld:%lld,%lld:%lld]", (long long)tile->row,
                 (long long)(tile->row + tile->rows), (long long)tile->col, (long long)(tile->col + tile->cols));
    const nvtxEventAttributes_t range = {.version = NVTX_VERSION,
                                         .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                         .category = (uint32_t)step->lane + 1,
                                         .colorType = NVTX_COLOR_ARGB,
                                         .color = colours[step->lane],
                                         .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
                                         .payload.ullValue = (uint64_t)step->lane_bytes,
                                         .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                         .message.ascii = name};
    nvtxDomainRangePushEx(domain_of(ranges), &range);
}

void tsr_range_end(tsr_ranges *ranges) {
    if (ranges) nvtxDomainRangePop(domain_of(ranges));
}
