/* Pipes with a name (text_pipe.h). */
#define _GNU_SOURCE /* fopencookie */
#include "io/text/text_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define LOOKS_A_SECOND 50

/* A reader that is gone is an error, and not SIGPIPE, which would end the process. */
static ssize_t write_quietly(int fd, const char *from, size_t bytes) {
    sigset_t pipe, before;
    const struct timespec at_once = {0};
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    const ssize_t put = write(fd, from, bytes);
    const int error = errno;
    if (put < 0 && error == EPIPE) sigtimedwait(&pipe, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return put;
}

static ssize_t pipe_write(void *cookie, const char *from, size_t bytes) {
    const int fd = (int)(intptr_t)cookie;
    size_t done = 0;
    while (done < bytes) {
        const ssize_t put = write_quietly(fd, from + done, bytes - done);
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        if (put > 0) {
            done += (size_t)put;
        } else if (put < 0 && errno == EAGAIN) {
            if (poll(&room, 1, TSR_READER_SECONDS * 1000) == 0) {
                errno = ETIMEDOUT;
                return 0;
            }
        } else if (errno != EINTR) {
            return 0;
        }
    }
    return (ssize_t)bytes;
}

static int pipe_close(void *cookie) { return close((int)(intptr_t)cookie); }

FILE *tsr_text_pipe_open(const char *file) {
    static const cookie_io_functions_t calls = {.write = pipe_write, .close = pipe_close};
    const struct timespec moment = {.tv_nsec = 1000000000 / LOOKS_A_SECOND};
    int fd = open(file, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    for (int i = 0; fd < 0 && errno == ENXIO && i < TSR_READER_SECONDS * LOOKS_A_SECOND; i++) {
        nanosleep(&moment, NULL);
        fd = open(file, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    }
    if (fd < 0) return NULL;
    FILE *stream = fopencookie((void *)(intptr_t)fd, "w", calls);
    if (!stream) close(fd);
    return stream;
}
