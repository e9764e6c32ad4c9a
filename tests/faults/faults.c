/* Which calls of CUDA and NCCL fail (faults.h). */
#include "tests/faults/faults.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    tsr_fault_report *to; /* NULL: another rank is meant, or none */
    int family, how;
    uint64_t call;
} the;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static int64_t number_of(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

const char *tsr_fault_report_file(void) { return getenv("TSR_FAULT_REPORT"); }

/* NULL: nothing is counted. */
static tsr_fault_report *open_report(void) {
    const char *file = tsr_fault_report_file();
    const int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0 || ftruncate(fd, sizeof(tsr_fault_report)) != 0) return NULL;
    void *at = mmap(NULL, sizeof(tsr_fault_report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

static void look(void) {
    if (number_of("OMPI_COMM_WORLD_RANK", 0) != number_of("TSR_FAULT_RANK", 0)) return;
    the.to = open_report();
    the.family = (int)number_of("TSR_FAULT_FAMILY", -1);
    the.call = (uint64_t)number_of("TSR_FAULT_CALL", 1);
    the.how = (int)number_of("TSR_FAULT_STAYS", 0);
}

fault_kind tsr_fault_of(int family, const char *call) {
    static const fault_kind kinds[] = {FAULT_NOW, FAULT_NOW, FAULT_LATER, FAULT_NEVER_ENDS};
    pthread_once(&once, look);
    if (!the.to) return FAULT_NONE;
    const uint64_t number = atomic_fetch_add(&the.to->calls[family], 1) + 1;
    if (family != the.family || number < the.call || (the.how != 1 && number > the.call)) return FAULT_NONE;
    if (atomic_fetch_add(&the.to->fired, 1) == 0) snprintf(the.to->function, sizeof the.to->function, "%s", call);
    return kinds[the.how];
}

/* By any rank. */
void tsr_fault_note_abort(void) {
    tsr_fault_report *to = open_report();
    if (to) atomic_fetch_add(&to->aborts, 1);
}
