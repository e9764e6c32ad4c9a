/* The end of what is under way in a transport, where the job ends (transport.h). */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "mpi/transport/transport.h"

#define ABANDON_SECONDS 2 /* GPUs that do not answer are left */

typedef struct {
    tsr_transport *transport;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done;
} abandoning;

static void *abandon_thread(void *context) {
    abandoning *a = context;
    a->transport->ops->abandon(a->transport);
    pthread_mutex_lock(&a->lock);
    a->done = true;
    pthread_cond_signal(&a->ended);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

void tsr_transport_abandon(tsr_transport *transport) {
    pthread_t thread;
    struct timespec until;
    abandoning *a = transport && transport->ops->abandon ? calloc(1, sizeof *a) : NULL; /* stays: the process ends */
    if (!a) return;
    a->transport = transport;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->ended, NULL);
    if (pthread_create(&thread, NULL, abandon_thread, a) != 0) return;
    pthread_detach(thread);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABANDON_SECONDS;
    pthread_mutex_lock(&a->lock);
    for (int error = 0; !a->done && error == 0;) error = pthread_cond_timedwait(&a->ended, &a->lock, &until);
    pthread_mutex_unlock(&a->lock);
}
