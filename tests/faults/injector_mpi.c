/* Calls of MPI that fail (injector.c): the call does nothing and returns an error, as it does where communicators have
 * MPI_ERRORS_RETURN. Calls that end the process, or tell what an error means, never fail; nor does MPI_Test, which is
 * called as often as it takes. */
#define _GNU_SOURCE
#include <mpi.h>

#include "tests/faults/injector.h"

#define CALL0(name)                                                                                                    \
    int name(void) {                                                                                                   \
        NEXT(int, name, void);                                                                                         \
        return FAILS(mpi) ? MPI_ERR_OTHER : next();                                                                    \
    }
#define CALL1(name, t1)                                                                                                \
    int name(t1 a) {                                                                                                   \
        NEXT(int, name, t1);                                                                                           \
        return FAILS(mpi) ? MPI_ERR_OTHER : next(a);                                                                   \
    }
#define CALL2(name, t1, t2)                                                                                            \
    int name(t1 a, t2 b) {                                                                                             \
        NEXT(int, name, t1, t2);                                                                                       \
        return FAILS(mpi) ? MPI_ERR_OTHER : next(a, b);                                                                \
    }
#define CALL3(name, t1, t2, t3)                                                                                        \
    int name(t1 a, t2 b, t3 c) {                                                                                       \
        NEXT(int, name, t1, t2, t3);                                                                                   \
        return FAILS(mpi) ? MPI_ERR_OTHER : next(a, b, c);                                                             \
    }
#define CALL4(name, t1, t2, t3, t4)                                                                                    \
    int name(t1 a, t2 b, t3 c, t4 d) {                                                                                 \
        NEXT(int, name, t1, t2, t3, t4);                                                                               \
        return FAILS(mpi) ? MPI_ERR_OTHER : next(a, b, c, d);                                                          \
    }
#define CALL5(name, t1, t2, t3, t4, t5)                                                                                \
    int name(t1 a, t2 b, t3 c, t4 d, t5 e) {                                                                           \
        NEXT(int, name, t1, t2, t3, t4, t5);                                                                           \
        return FAILS(mpi) ? MPI_ERR_OTHER : next(a, b, c, d, e);                                                       \
    }
#define CALL6(name, t1, t2, t3, t4, t5, t6)                                                                            \
    int name(t1 a, t2 b, t3 c, t4 d, t5 e, t6 f) {                                                                     \
        NEXT(int, name, t1, t2, t3, t4, t5, t6);                                                                       \
        return FAILS(mpi) ? MPI_ERR_OTHER : next(a, b, c, d, e, f);                                                    \
    }
#define CALL7(name, t1, t2, t3, t4, t5, t6, t7)                                                                        \
    int name(t1 a, t2 b, t3 c, t4 d, t5 e, t6 f, t7 g) {                                                               \
        NEXT(int, name, t1, t2, t3, t4, t5, t6, t7);                                                                   \
        return FAILS(mpi) ? MPI_ERR_OTHER : next(a, b, c, d, e, f, g);                                                 \
    }
#define CALL8(name, t1, t2, t3, t4, t5, t6, t7, t8)                                                                    \
    int name(t1 a, t2 b, t3 c, t4 d, t5 e, t6 f, t7 g, t8 h) {                                                         \
        NEXT(int, name, t1, t2, t3, t4, t5, t6, t7, t8);                                                               \
        return FAILS(mpi) ? MPI_ERR_OTHER : next(a, b, c, d, e, f, g, h);                                              \
    }

/* ---- the job and its communicators ----------------------------------------------------------- */

CALL4(MPI_Init_thread, int *, char ***, int, int *)
CALL1(MPI_Initialized, int *)
CALL1(MPI_Finalized, int *)
CALL0(MPI_Finalize)
CALL1(MPI_Query_thread, int *)
CALL2(MPI_Get_library_version, char *, int *)
CALL2(MPI_Comm_rank, MPI_Comm, int *)
CALL2(MPI_Comm_size, MPI_Comm, int *)
CALL2(MPI_Comm_dup, MPI_Comm, MPI_Comm *)
CALL4(MPI_Comm_split, MPI_Comm, int, int, MPI_Comm *)
CALL5(MPI_Comm_split_type, MPI_Comm, int, int, MPI_Info, MPI_Comm *)
CALL1(MPI_Comm_free, MPI_Comm *)
CALL2(MPI_Comm_set_errhandler, MPI_Comm, MPI_Errhandler)
CALL6(MPI_Win_allocate_shared, MPI_Aint, int, MPI_Info, MPI_Comm, void *, MPI_Win *)
CALL5(MPI_Win_shared_query, MPI_Win, int, MPI_Aint *, int *, void *)
CALL1(MPI_Win_free, MPI_Win *)

/* ---- types ----------------------------------------------------------------------------------- */

CALL2(MPI_Type_size, MPI_Datatype, int *)
CALL3(MPI_Type_contiguous, int, MPI_Datatype, MPI_Datatype *)
CALL4(MPI_Type_create_resized, MPI_Datatype, MPI_Aint, MPI_Aint, MPI_Datatype *)
CALL1(MPI_Type_commit, MPI_Datatype *)
CALL1(MPI_Type_free, MPI_Datatype *)

/* ---- between ranks --------------------------------------------------------------------------- */

int MPI_Send(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    NEXT(int, MPI_Send, const void *, int, MPI_Datatype, int, int, MPI_Comm);
    const bool fails = FAILS(mpi), pair_fails = FAILS(mpi_pair);
    return fails || pair_fails ? MPI_ERR_OTHER : next(from, count, type, to, tag, comm);
}
int MPI_Recv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    NEXT(int, MPI_Recv, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
    const bool fails = FAILS(mpi), pair_fails = FAILS(mpi_pair);
    return fails || pair_fails ? MPI_ERR_OTHER : next(to, count, type, from, tag, comm, status);
}
CALL7(MPI_Isend, const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *)
CALL7(MPI_Irecv, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *)
CALL3(MPI_Waitall, int, MPI_Request *, MPI_Status *)
CALL4(MPI_Waitany, int, MPI_Request *, int *, MPI_Status *)
CALL1(MPI_Barrier, MPI_Comm)
CALL2(MPI_Ibarrier, MPI_Comm, MPI_Request *)
CALL5(MPI_Bcast, void *, int, MPI_Datatype, int, MPI_Comm)
CALL6(MPI_Allreduce, const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm)
CALL6(MPI_Ibcast, void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *)
CALL7(MPI_Iallreduce, const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *)
CALL7(MPI_Reduce, const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm)
CALL6(MPI_Reduce_scatter_block, const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm)
CALL6(MPI_Scan, const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm)
CALL7(MPI_Allgather, const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm)
CALL8(MPI_Allgatherv, const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, MPI_Comm)
CALL8(MPI_Gather, const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm)
CALL8(MPI_Scatter, const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm)
