/* Calls in threads (task.h). */
#define _GNU_SOURCE /* signal masks beside C17 */
#include "mpi/execute/task.h"

#include <signal.h>
#include <stdio.h>

static void *run(void *context) {
    tsr_task *task = context;
    task->status = task->call(task->context);
    if (task->status != TSR_OK) snprintf(task->message, sizeof task->message, "%s", tsr_message());
    atomic_store(&task->done, true);
    return NULL;
}

void tsr_task_start(tsr_task *task, tsr_status (*call)(void *context), void *context) {
    *task = (tsr_task){.call = call, .context = context};
    task->running = pthread_create(&task->thread, NULL, run, task) == 0;
    if (!task->running) run(task);
}

bool tsr_task_done(const tsr_task *task) { return !task->running || atomic_load(&task->done); }

void tsr_task_wait(tsr_task *task) {
    if (task->running) pthread_join(task->thread, NULL);
    task->running = false;
}

tsr_status tsr_task_status(tsr_task *task) {
    tsr_task_wait(task);
    if (task->status != TSR_OK) tsr_message_set(task->message);
    return task->status;
}

bool tsr_thread_start(pthread_t *thread, void *(*call)(void *context), void *context) {
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
    sigset_t others, before;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) sigdelset(&others, crashes[i]);
    pthread_sigmask(SIG_SETMASK, &others, &before); /* a new thread inherits it */
    const bool started = pthread_create(thread, NULL, call, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
