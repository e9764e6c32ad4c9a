/* Calls in threads (task.h). */
#define _GNU_SOURCE /* signal masks beside C17 */
#include "mpi/execute/task.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

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

/* ---- crews ----------------------------------------------------------------------------------- */

struct tsr_crew {
    pthread_mutex_t lock;
    pthread_cond_t called, returned;
    pthread_t threads[TSR_CREW_MOST];
    int count; /* of threads beside the caller */
    void (*work)(void *context, int number);
    void *context;
    int wanted, come, working; /* of this turn: so many may come, have come, and have not returned */
    bool ends;
};

static void *crew_thread(void *context) {
    tsr_crew *c = context;
    pthread_mutex_lock(&c->lock);
    while (!c->ends) {
        if (c->come == c->wanted) {
            pthread_cond_wait(&c->called, &c->lock);
            continue;
        }
        const int number = ++c->come;
        c->working++;
        pthread_mutex_unlock(&c->lock);
        c->work(c->context, number);
        pthread_mutex_lock(&c->lock);
        if (--c->working == 0) pthread_cond_signal(&c->returned);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

tsr_status tsr_crew_open(tsr_crew **crew) {
    tsr_crew *c = calloc(1, sizeof *c);
    if (!c) return tsr_fail(TSR_ERR_MEMORY, "no memory for a crew of threads: free some");
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->called, NULL);
    pthread_cond_init(&c->returned, NULL);
    *crew = c;
    return TSR_OK;
}

void tsr_crew_work(tsr_crew *c, int threads, void (*work)(void *context, int number), void *context) {
    const int others = (int)tsr_min(threads, TSR_CREW_MOST) - 1;
    while (c->count < others && pthread_create(&c->threads[c->count], NULL, crew_thread, c) == 0) c->count++;
    pthread_mutex_lock(&c->lock);
    c->work = work;
    c->context = context;
    c->come = 0;
    c->wanted = c->count < others ? c->count : others;
    pthread_cond_broadcast(&c->called);
    pthread_mutex_unlock(&c->lock);
    work(context, 0);
    pthread_mutex_lock(&c->lock);
    c->wanted = c->come; /* who comes now finds nothing left */
    while (c->working > 0) pthread_cond_wait(&c->returned, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void tsr_crew_close(tsr_crew *c) {
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->ends = true;
    pthread_cond_broadcast(&c->called);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->count; i++) pthread_join(c->threads[i], NULL);
    pthread_cond_destroy(&c->called);
    pthread_cond_destroy(&c->returned);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
