/* A library that the transport takes for NCCL: ranks of one host exchange through a file that they share. Each call may
 * be made to fail (faults.h). As in NCCL, ranks wait for one that does not come, until they are told to abort. Other
 * than NCCL's, calls return when their work is done. */
#include "tests/faults/nccl_fake.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/faults/faults.h"

#define PIECE ((size_t)256 << 10) /* bytes of a rank at a time */

#define RANKS_MOST 64

typedef struct {
    atomic_uint came;                                /* at all barriers so far, all ranks together */
    atomic_uint sent[RANKS_MOST], taken[RANKS_MOST]; /* pieces that a rank has sent, and that were taken of them */
} meeting;

struct ncclComm {
    int rank, ranks;
    meeting *shared; /* behind it PIECE bytes for each rank */
    unsigned barriers;
    atomic_bool aborted;
    atomic_int error; /* what ncclCommGetAsyncError says */
};

static size_t shared_bytes(int ranks) { return 4096 + (size_t)ranks * PIECE; }
static char *piece_of(ncclComm_t comm, int rank) { return (char *)comm->shared + 4096 + (size_t)rank * PIECE; }

ncclResult_t ncclGetVersion(int *version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclRemoteError ? "remote process exited or there was a network error" : "unhandled system error";
}

const char *ncclGetLastError(ncclComm_t comm) {
    (void)comm;
    return "a failure that a test asked for";
}

/* False: the communicator was aborted meanwhile. */
static bool wait_until(ncclComm_t comm, const atomic_uint *count, unsigned is) {
    while ((int)(atomic_load(count) - is) < 0) {
        if (atomic_load(&comm->aborted)) return false;
        usleep(50);
    }
    return true;
}

static bool meet(ncclComm_t comm) {
    const unsigned all = ++comm->barriers * (unsigned)comm->ranks;
    atomic_fetch_add(&comm->shared->came, 1);
    return wait_until(comm, &comm->shared->came, all);
}

/* ---- communicators --------------------------------------------------------------------------- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    static atomic_int made;
    if (tsr_fault_of(of_nccl, "ncclGetUniqueId") != FAULT_NONE) return ncclSystemError;
    const int chars = snprintf(id->internal, sizeof id->internal, "%s.%d.%d", tsr_fault_report_file(), (int)getpid(),
                               atomic_fetch_add(&made, 1));
    return chars < (int)sizeof id->internal ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
    const fault_kind kind = tsr_fault_of(of_nccl, "ncclCommInitRank");
    if (kind == FAULT_NOW || kind == FAULT_LATER) return ncclSystemError;
    while (kind == FAULT_NEVER_ENDS) pause();
    const int fd = open(id.internal, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)shared_bytes(ranks)) != 0) return ncclSystemError;
    void *shared = mmap(NULL, shared_bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    ncclComm_t made = calloc(1, sizeof *made);
    if (shared == MAP_FAILED || !made || ranks > RANKS_MOST) return ncclSystemError;
    made->rank = rank;
    made->ranks = ranks;
    made->shared = shared;
    if (!meet(made)) return ncclInternalError;
    if (rank == 0) unlink(id.internal);
    *comm = made;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (tsr_fault_of(of_nccl, "ncclCommDestroy") != FAULT_NONE) return ncclSystemError;
    munmap(comm->shared, shared_bytes(comm->ranks));
    free(comm);
    return ncclSuccess;
}

/* What waits in the communicator returns, and what was never to end goes on. The memory stays, as threads are in it. */
ncclResult_t ncclCommAbort(ncclComm_t comm) {
    tsr_fault_note_abort();
    atomic_store(&comm->aborted, true);
    tsr_runtime_release();
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
    *error = (ncclResult_t)atomic_load(&comm->error);
    return ncclSuccess;
}

/* ---- collective calls ------------------------------------------------------------------------ */

/* True: the call is over, with *result. Of a communicator with an error no work ends. */
static bool ends(const char *call, ncclComm_t comm, cudaStream_t stream, ncclResult_t *result) {
    const fault_kind kind = tsr_fault_of(of_nccl, call);
    if (kind == FAULT_NONE && atomic_load(&comm->error) != ncclSuccess) {
        *result = ncclSuccess;
        return true;
    }
    *result = kind == FAULT_NOW ? ncclSystemError : ncclSuccess;
    if (kind == FAULT_NONE) return false;
    if (kind != FAULT_NOW) tsr_runtime_hold(stream);
    if (kind == FAULT_LATER) atomic_store(&comm->error, ncclRemoteError);
    return true;
}

static size_t bytes_of(ncclDataType_t type) {
    return type == ncclUint8 ? 1 : type == ncclFloat32 ? sizeof(float) : sizeof(double);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    ncclResult_t result;
    if (ends("ncclAllGather", comm, stream, &result)) return result;
    const size_t bytes = count * bytes_of(type);
    for (size_t at = 0; at < bytes; at += PIECE) {
        const size_t part = bytes - at < PIECE ? bytes - at : PIECE;
        memcpy(piece_of(comm, comm->rank), (const char *)from + at, part);
        if (!meet(comm)) return ncclInternalError;
        for (int rank = 0; rank < comm->ranks; rank++)
            memcpy((char *)to + (size_t)rank * bytes + at, piece_of(comm, rank), part);
        if (!meet(comm)) return ncclInternalError;
    }
    return ncclSuccess;
}

static void add(void *to, const void *from, size_t bytes, ncclDataType_t type) {
    for (size_t i = 0; i < bytes / bytes_of(type); i++) {
        if (type == ncclFloat32) ((float *)to)[i] += ((const float *)from)[i];
        else ((double *)to)[i] += ((const double *)from)[i];
    }
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
    ncclResult_t result;
    (void)op;
    if (ends("ncclReduceScatter", comm, stream, &result)) return result;
    const size_t bytes = count * bytes_of(type);
    for (int of = 0; of < comm->ranks; of++) {
        for (size_t at = 0; at < bytes; at += PIECE) {
            const size_t part = bytes - at < PIECE ? bytes - at : PIECE;
            memcpy(piece_of(comm, comm->rank), (const char *)from + (size_t)of * bytes + at, part);
            if (!meet(comm)) return ncclInternalError;
            for (int rank = 0; of == comm->rank && rank < comm->ranks; rank++) {
                if (rank == 0) memcpy((char *)to + at, piece_of(comm, 0), part);
                else add((char *)to + at, piece_of(comm, rank), part, type);
            }
            if (!meet(comm)) return ncclInternalError;
        }
    }
    return ncclSuccess;
}

/* ---- from rank to rank: each rank sends to one other ----------------------------------------- */

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    ncclResult_t result;
    (void)peer;
    if (ends("ncclSend", comm, stream, &result)) return result;
    const size_t bytes = count * bytes_of(type);
    meeting *shared = comm->shared;
    for (size_t at = 0; at < bytes; at += PIECE) {
        memcpy(piece_of(comm, comm->rank), (const char *)from + at, bytes - at < PIECE ? bytes - at : PIECE);
        const unsigned sent = atomic_fetch_add(&shared->sent[comm->rank], 1) + 1;
        if (!wait_until(comm, &shared->taken[comm->rank], sent)) return ncclInternalError;
    }
    return ncclSuccess;
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    ncclResult_t result;
    if (ends("ncclRecv", comm, stream, &result)) return result;
    const size_t bytes = count * bytes_of(type);
    meeting *shared = comm->shared;
    for (size_t at = 0; at < bytes; at += PIECE) {
        if (!wait_until(comm, &shared->sent[peer], atomic_load(&shared->taken[peer]) + 1)) return ncclInternalError;
        memcpy((char *)to + at, piece_of(comm, peer), bytes - at < PIECE ? bytes - at : PIECE);
        atomic_fetch_add(&shared->taken[peer], 1);
    }
    return ncclSuccess;
}
