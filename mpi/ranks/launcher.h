/* What started this process: which launcher, with how many ranks, and whether somebody asked for the cores it is bound
 * to. Read from the environment, /proc and /sys, before MPI starts: a library that does not belong to the launcher
 * knows nothing of it, and Open MPI binds its ranks before they begin.
 *
 * Asked for is a binding by srun, whose mask is the job's; one of mpirun's options or their variables (Open MPI 4 hands
 * all of them to its ranks as OMPI_MCA_...; Open MPI 5 hands on those that were variables before, PRTE_MCA_..., and its
 * options are seen on its command line, on the first node); and whatever other launchers, control groups, taskset or
 * numactl did. What remains is what Open MPI makes by itself: all cores it has itself, or one core with its hardware
 * threads for each of two ranks, a NUMA node or a package for each of more, or what ranks are mapped by. Any other set
 * of cores was asked for, and so was one that a process between mpirun and this one does not have.
 *
 * Where a script between them makes the very set that Open MPI would have made and then becomes this process (exec),
 * the two cannot be told apart: taskset to exactly one core for one of two ranks, or to exactly a NUMA node for one of
 * more, is undone. With mpirun --bind-to none, or any other binding asked of mpirun, it stays. */
#ifndef TSR_MPI_RANKS_LAUNCHER_H
#define TSR_MPI_RANKS_LAUNCHER_H

#include "kernels/base/base.h"
#include "kernels/device/host_cores.h"

typedef struct {
    const char *name;         /* "Open MPI's mpirun"; "" where none is known */
    const char *variable;     /* that `size` is from */
    int size, rank;           /* ranks it started, and which one this is; 0 and -1: it does not say */
    int node_size, node_rank; /* the same of those on this node; only where bound is false */
    bool bound; /* this process stays where it was started; false: Open MPI chose the place, and it may be moved within
                   `cores` */
    const char *unbind; /* the option that gives ranks more cores where a binding was asked for; "" where none would */
    tsr_cores cores;    /* where the launcher itself runs, which are the job's cores; only where bound is false */
} tsr_launcher;

/* Local. `proc` and `sys` are "/proc" and "/sys", or made-up ones. */
void tsr_launcher_find(const char *proc, const char *sys, tsr_launcher *launcher);
/* Local. The rank that some launcher gave this process; -1 where none did. Before MPI starts: Open MPI sets such
 * variables itself. */
int tsr_launcher_rank(void);
/* Local, before MPI starts. A process that nobody launched is the only rank: Open MPI 4 is told so (unless its
 * variables are set already), and neither looks for networks nor starts a daemon, which takes it half a second. */
void tsr_launcher_alone(const tsr_launcher *launcher);
/* Local. TSR_ERR_USAGE where the launcher started another number of ranks than the MPI library found: they belong to
 * different MPIs, and each process would take itself for the only one. `library` is of
 * MPI_Get_library_version. */
tsr_status tsr_launcher_check(const tsr_launcher *launcher, int ranks, const char *library);

#endif
