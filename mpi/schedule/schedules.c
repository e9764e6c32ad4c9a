/* The registry of schedules (schedule.h): a new one is a line here. */
#include <string.h>

#include "io/nearest.h"
#include "io/text/text.h"
#include "mpi/schedule/schedule.h"

#ifdef TSR_TEST_RING /* tests/mpi/schedule/ring.c */
#define TESTED(X) X(ring)
#else
#define TESTED(X)
#endif

/* tsr_schedule_CODE. The first is the one that --schedule auto takes where none is predicted to be faster. */
#define SCHEDULE_LIST(X)                                                                                               \
    X(summa)                                                                                                           \
    TESTED(X)

#define X(code) extern const tsr_schedule_ops tsr_schedule_##code;
SCHEDULE_LIST(X)
#undef X

static const tsr_schedule_ops *const schedules[] = {
#define X(code) &tsr_schedule_##code,
    SCHEDULE_LIST(X)
#undef X
        NULL};

const tsr_schedule_ops *const *tsr_schedules(void) { return schedules; }

const char *tsr_step_kind_name(tsr_step_kind kind) {
    static const char *const names[] = {
        [TSR_STEP_READ] = "read",         [TSR_STEP_UPLOAD] = "upload",       [TSR_STEP_GATHER] = "gather",
        [TSR_STEP_PACK] = "pack",         [TSR_STEP_ZERO] = "zero",           [TSR_STEP_MULTIPLY] = "multiply",
        [TSR_STEP_REDUCE] = "reduce",     [TSR_STEP_FINISH] = "finish",       [TSR_STEP_DOWNLOAD] = "download",
        [TSR_STEP_WRITE] = "write",       [TSR_STEP_COPY_IN] = "copy in",     [TSR_STEP_GENERATE] = "generate",
        [TSR_STEP_COPY_OUT] = "copy out", [TSR_STEP_TRANSPOSE] = "transpose", [TSR_STEP_MIRROR] = "mirror",
        [TSR_STEP_ADD_UP] = "add up",     [TSR_STEP_JUDGE] = "judge",         [TSR_STEP_PASS] = "pass"};
    return names[kind];
}

const char *tsr_operand_text(tsr_operand_name operand) {
    static const char *const names[] = {
        [TSR_OPERAND_A] = "A", [TSR_OPERAND_B] = "B", [TSR_OPERAND_C0] = "C0", [TSR_OPERAND_C] = "C"};
    return names[operand];
}

tsr_operand_name tsr_step_operand(const tsr_step *step) {
    switch (step->kind) {
    case TSR_STEP_ZERO:
    case TSR_STEP_MULTIPLY:
    case TSR_STEP_REDUCE:
    case TSR_STEP_PASS:
    case TSR_STEP_FINISH:
    case TSR_STEP_TRANSPOSE:
    case TSR_STEP_MIRROR:
    case TSR_STEP_ADD_UP:
    case TSR_STEP_DOWNLOAD: return TSR_OPERAND_C;
    default: return step->operand;
    }
}

tsr_status tsr_schedule_find(const char *name, const tsr_schedule_ops **schedule) {
    char names[128] = "auto", meant[TSR_NEAREST_CHARS + 32];
    tsr_nearest nearest = {.wanted = name};
    *schedule = NULL;
    if (strcmp(name, "auto") == 0) return TSR_OK;
    tsr_nearest_offer(&nearest, "auto");
    for (int i = 0; schedules[i]; i++) {
        tsr_text_append(names, sizeof names, ", %s", schedules[i]->name);
        tsr_nearest_offer(&nearest, schedules[i]->name);
        if (strcmp(schedules[i]->name, name) == 0) *schedule = schedules[i];
    }
    if (*schedule) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "--schedule %s: this version has %s%s", name, names,
                    tsr_did_you_mean(&nearest, "", meant, sizeof meant));
}
