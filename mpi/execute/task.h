/* A local call in a thread of its own, so that what does not depend on it goes on meanwhile; its message comes to
 * whoever asks for its status. Tasks make no MPI calls. */
#ifndef TSR_MPI_EXECUTE_TASK_H
#define TSR_MPI_EXECUTE_TASK_H

#include <pthread.h>
#include <stdatomic.h>

#include "kernels/base/base.h"

/* Zero: never started, done, TSR_OK. It may not move between start and wait. */
typedef struct {
    tsr_status (*call)(void *context);
    void *context; /* not owned */
    pthread_t thread;
    bool running; /* to be waited for */
    atomic_bool done;
    tsr_status status;
    char message[1024];
} tsr_task;

/* Without a thread to be had, calls it here and now. */
void tsr_task_start(tsr_task *task, tsr_status (*call)(void *context), void *context);
/* Whether the call has returned, or was never to run. */
bool tsr_task_done(const tsr_task *task);
/* Until the call has returned. Again is fine. */
void tsr_task_wait(tsr_task *task);
/* Waits; the call's status, and the caller's message is the call's where that failed. */
tsr_status tsr_task_status(tsr_task *task);

/* Starts a thread in which no handler of the process's signals runs, but of its own crashes. False: there is none to be
 * had. */
bool tsr_thread_start(pthread_t *thread, void *(*call)(void *context), void *context);

/* Threads that do short work together, again and again: they are started when they are first wanted, and wait in
 * between. One thread at a time calls them to work. */
#define TSR_CREW_MOST 32 /* with the caller */
typedef struct tsr_crew tsr_crew;
tsr_status tsr_crew_open(tsr_crew **crew);
/* Calls work(context, i) in `threads` threads at most, one of which is the caller's, with a number below `threads`
 * each; returns when all have returned. Those that cannot be had, or come when the caller has done its own, do none. */
void tsr_crew_work(tsr_crew *crew, int threads, void (*work)(void *context, int number), void *context);
void tsr_crew_close(tsr_crew *crew); /* NULL is fine */

#endif
