/* Loaded before the C library (LD_PRELOAD): PMIx tells Open MPI of an event when MPI_Finalize closes it, and Open MPI's
 * own thread comes to it 0.2 s later, as on a busy machine. TSR_EVENT_CAME names a file that is made then. For an Open
 * MPI that has PMIx and libevent from elsewhere (Debian's); in others nothing happens. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* As in PMIx 3 and 4, and in libevent 2.1 */
typedef struct {
    char nspace[256];
    uint32_t rank;
} process_name;
typedef void event_handler(size_t id, int status, const process_name *source, void *info, size_t infos, void *results,
                           size_t result_count, void *done, void *done_data);
typedef void event_callback(int fd, short what, void *data);

static event_handler *handler;
static event_callback *called_late;
static bool ending;                   /* MPI_Finalize was called: MPI_Init opens and closes PMIx, too */
static _Thread_local bool finalizing; /* in the call of the handler below */

int MPI_Finalize(void) {
    int (*next)(void);
    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Finalize");
    ending = true;
    return next();
}

int PMIx_Register_event_handler(int *codes, size_t code_count, void *info, size_t infos, event_handler *handles,
                                void *registered, void *data) {
    int (*next)(int *, size_t, void *, size_t, event_handler *, void *, void *);
    *(void **)&next = dlsym(RTLD_NEXT, "PMIx_Register_event_handler");
    if (handles) handler = handles;
    return next(codes, code_count, info, infos, handles, registered, data);
}

static void come_late(int fd, short what, void *data) {
    usleep(200000);
    close(open(getenv("TSR_EVENT_CAME"), O_WRONLY | O_CREAT, 0666));
    called_late(fd, what, data);
}

int event_assign(void *event, void *base, int fd, short what, event_callback *callback, void *data) {
    int (*next)(void *, void *, int, short, event_callback *, void *);
    *(void **)&next = dlsym(RTLD_NEXT, "event_assign");
    if (finalizing) {
        called_late = callback;
        callback = come_late;
    }
    return next(event, base, fd, what, callback, data);
}

int PMIx_Finalize(const void *info, size_t infos) {
    static const process_name source = {.nspace = "another"};
    int (*next)(const void *, size_t);
    *(void **)&next = dlsym(RTLD_NEXT, "PMIx_Finalize");
    const int status = next(info, infos);
    if (ending && handler && !called_late) {
        finalizing = true;
        handler(0, -101, &source, NULL, 0, NULL, 0, NULL, NULL);
        finalizing = false;
    }
    return status;
}
