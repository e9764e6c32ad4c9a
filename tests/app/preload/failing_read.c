/* Loaded before the C library (LD_PRELOAD): the disk fails when rank 1 reads the data of fail.h5, and with
 * TSR_NO_STREAMS in the environment that rank has no memory for streams in memory. With TSR_MPI_TAKES_SIGHUP what MPI
 * loads handles SIGHUP, as some networks' libraries do. With TSR_NODES each rank takes itself for alone on its node. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void taken(int number) { _exit(100 + number); }

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int (*next)(int *, char ***, int, int *);
    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Init_thread");
    if (getenv("TSR_MPI_TAKES_SIGHUP")) signal(SIGHUP, taken);
    return next(argc, argv, required, provided);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *node) {
    int (*next)(MPI_Comm, int, int, MPI_Info, MPI_Comm *);
    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Comm_split_type");
    return getenv("TSR_NODES") ? MPI_Comm_dup(MPI_COMM_SELF, node) : next(comm, type, key, info, node);
}

static int is_rank_1(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    return rank && strcmp(rank, "1") == 0;
}

FILE *open_memstream(char **text, size_t *chars) {
    FILE *(*next)(char **, size_t *);
    if (is_rank_1() && getenv("TSR_NO_STREAMS")) return NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "open_memstream");
    return next(text, chars);
}

static int fails(int fd) {
    char link[64], name[1024] = "";
    const char *wanted = "/fail.h5";
    if (!is_rank_1()) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t chars = readlink(link, name, sizeof name - 1);
    if (chars < (ssize_t)strlen(wanted) || strcmp(name + chars - strlen(wanted), wanted) != 0) return 0;
    errno = EIO;
    return 1;
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset) {
    if (fails(fd)) return -1;
    ssize_t (*next)(int, void *, size_t, off_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pread");
    return next(fd, to, bytes, offset);
}

ssize_t pread64(int fd, void *to, size_t bytes, off64_t offset) {
    if (fails(fd)) return -1;
    ssize_t (*next)(int, void *, size_t, off64_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pread64");
    return next(fd, to, bytes, offset);
}
