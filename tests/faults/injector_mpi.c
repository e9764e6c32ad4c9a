/* Calls of MPI that fail (injector.c): the call does nothing and returns an error, as it does where communicators have
 * MPI_ERRORS_RETURN. Calls that end the process, or tell what an error means, never fail. */
#define _GNU_SOURCE
#include <mpi.h>

#include "tests/faults/injector.h"

#define CALL(name, parameters, arguments)                                                                              \
    int name parameters {                                                                                              \
        static int(*next) parameters;                                                                                  \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name);                                                          \
        return FAILS(mpi) ? MPI_ERR_OTHER : next arguments;                                                            \
    }

/* ---- the job and its communicators ----------------------------------------------------------- */

CALL(MPI_Init_thread, (int *argc, char ***argv, int wanted, int *provided), (argc, argv, wanted, provided))
CALL(MPI_Initialized, (int *flag), (flag))
CALL(MPI_Finalized, (int *flag), (flag))
CALL(MPI_Finalize, (void), ())
CALL(MPI_Query_thread, (int *provided), (provided))
CALL(MPI_Get_library_version, (char *text, int *chars), (text, chars))
CALL(MPI_Comm_rank, (MPI_Comm comm, int *rank), (comm, rank))
CALL(MPI_Comm_size, (MPI_Comm comm, int *size), (comm, size))
CALL(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
CALL(MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made))
CALL(MPI_Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
     (comm, type, key, info, made))
CALL(MPI_Comm_free, (MPI_Comm * comm), (comm))
CALL(MPI_Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))
CALL(MPI_Win_allocate_shared, (MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *at, MPI_Win *made),
     (bytes, unit, info, comm, at, made))
CALL(MPI_Win_shared_query, (MPI_Win win, int rank, MPI_Aint *bytes, int *unit, void *at), (win, rank, bytes, unit, at))
CALL(MPI_Win_free, (MPI_Win * win), (win))

/* ---- types ----------------------------------------------------------------------------------- */

CALL(MPI_Type_size, (MPI_Datatype type, int *size), (type, size))
CALL(MPI_Type_contiguous, (int count, MPI_Datatype of, MPI_Datatype *made), (count, of, made))
CALL(MPI_Type_create_resized, (MPI_Datatype of, MPI_Aint first, MPI_Aint extent, MPI_Datatype *made),
     (of, first, extent, made))
CALL(MPI_Type_commit, (MPI_Datatype * type), (type))
CALL(MPI_Type_free, (MPI_Datatype * type), (type))

/* ---- between ranks --------------------------------------------------------------------------- */

CALL(MPI_Send, (const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
     (from, count, type, to, tag, comm))
CALL(MPI_Recv, (void *at, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status),
     (at, count, type, from, tag, comm, status))
CALL(MPI_Isend, (const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request),
     (from, count, type, to, tag, comm, request))
CALL(MPI_Irecv, (void *at, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request),
     (at, count, type, from, tag, comm, request))
CALL(MPI_Waitall, (int count, MPI_Request *requests, MPI_Status *statuses), (count, requests, statuses))
CALL(MPI_Waitany, (int count, MPI_Request *requests, int *which, MPI_Status *status), (count, requests, which, status))
CALL(MPI_Barrier, (MPI_Comm comm), (comm))
CALL(MPI_Bcast, (void *at, int count, MPI_Datatype type, int root, MPI_Comm comm), (at, count, type, root, comm))
CALL(MPI_Allreduce, (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (from, to, count, type, op, comm))
CALL(MPI_Reduce, (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
     (from, to, count, type, op, root, comm))
CALL(MPI_Reduce_scatter_block, (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (from, to, count, type, op, comm))
CALL(MPI_Scan, (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (from, to, count, type, op, comm))
CALL(MPI_Allgather,
     (const void *from, int count, MPI_Datatype type, void *to, int each, MPI_Datatype as, MPI_Comm comm),
     (from, count, type, to, each, as, comm))
CALL(MPI_Allgatherv,
     (const void *from, int count, MPI_Datatype type, void *to, const int *counts, const int *places, MPI_Datatype as,
      MPI_Comm comm),
     (from, count, type, to, counts, places, as, comm))
CALL(MPI_Gather,
     (const void *from, int count, MPI_Datatype type, void *to, int each, MPI_Datatype as, int root, MPI_Comm comm),
     (from, count, type, to, each, as, root, comm))
CALL(MPI_Scatter,
     (const void *from, int count, MPI_Datatype type, void *to, int each, MPI_Datatype as, int root, MPI_Comm comm),
     (from, count, type, to, each, as, root, comm))
