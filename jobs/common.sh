# Sourced by the scripts of jobs/ and tests/: prints every command exactly as it runs, and knows how to start ranks
# here.
# TSR_HOME: the repository, or share/tessera of an installed one. TSR_BIN: the program, build/tessera by default, or the
# installed one.
set -euo pipefail

TSR_HOME=${TSR_HOME:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
TSR_BIN=${TSR_BIN:-$TSR_HOME/build/tessera}
[ -x "$TSR_BIN" ] || [ ! -x "$TSR_HOME/../../bin/tessera" ] || TSR_BIN=$(realpath "$TSR_HOME/../../bin/tessera")

tsr_die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Shows a command so that it can be pasted into a shell; tsr_run also runs it.
tsr_show() { { printf '+'; printf ' %q' "$@"; printf '\n'; } >&2; }
tsr_run() {
    tsr_show "$@"
    ${tsr_exec:-} "$@"
}

# tsr_logged LOG COMMAND...: the same with the command's output in a file, whose end is shown when the command fails.
tsr_logged() {
    local log=$1
    shift
    tsr_show "$@"
    printf '  (output in %s)\n' "$log" >&2
    "$@" >"$log" 2>&1 && return
    grep -v '^ptxas' "$log" | tail -n 40 >&2
    return 1
}

tsr_need_program() {
    [ -x "$TSR_BIN" ] || tsr_die "no program at $TSR_BIN: run jobs/setup.sh first, or set TSR_HOME or TSR_BIN"
}

# tsr_mpirun RANKS COMMAND...: on this machine, or on the nodes of the Slurm job this runs in. Ranks take their share
# of the job's cores, whatever mpirun bound them to.
tsr_mpirun() {
    local flags=(-n "$1")
    shift
    command -v mpirun >/dev/null || tsr_die "no mpirun: run jobs/setup.sh, or load your site's MPI"
    if [[ "$(mpirun --version 2>&1)" == *Open*MPI* ]]; then
        # Here alone: also more ranks than cores, and without looking for networks, which takes MPI a quarter of a
        # second.
        [ -n "${SLURM_JOB_ID:-}" ] || flags+=(--oversubscribe --mca pml ob1)
        [ "$(id -u)" != 0 ] || flags+=(--allow-run-as-root)
    fi
    tsr_run mpirun "${flags[@]}" "$@"
}

# Prints how many tasks the Slurm job has: as many as were asked for, SLURM_NTASKS, or those for which there is room on
# the nodes that it has now, where these became fewer.
tsr_tasks() {
    local part parts tasks=0
    IFS=, read -ra parts <<<"$SLURM_TASKS_PER_NODE" # 4(x2),3
    for part in "${parts[@]}"; do
        [[ $part =~ ^([0-9]+)(\(x([0-9]+)\))?$ ]] || tsr_die "SLURM_TASKS_PER_NODE is '$SLURM_TASKS_PER_NODE'"
        tasks=$((tasks + BASH_REMATCH[1] * ${BASH_REMATCH[3]:-1}))
    done
    [ "${SLURM_NTASKS:-$tasks}" -ge $tasks ] || tasks=$SLURM_NTASKS
    echo $tasks
}

# tsr_srun COMMAND...: one process a task of the Slurm job. Every rank sees all GPUs of its node and takes one by its
# node-local rank; srun does not inherit --cpus-per-task from sbatch, so it is handed on.
tsr_srun() {
    local flags=(--mpi="${TSR_SRUN_MPI:-pmix}" --kill-on-bad-exit=1)
    flags+=(--nodes="$SLURM_JOB_NUM_NODES" --ntasks="$(tsr_tasks)")
    [ -z "${SLURM_CPUS_PER_TASK:-}" ] || flags+=(--cpus-per-task="$SLURM_CPUS_PER_TASK")
    # By itself Slurm 22.05 mixes fences of two kinds. On several nodes a rank may then leave MPI_Init while another is
    # not through its first one, and crashes when the first speaks to it (Open MPI 4.1 over TCP: 14 of 509 starts).
    export SLURM_PMIX_FENCE=${SLURM_PMIX_FENCE:-tree}
    tsr_run srun "${flags[@]}" "$@"
}

# tsr_node_lost: whether a node of the Slurm job no longer answers, while this one does.
tsr_node_lost() {
    local nodes=${SLURM_JOB_NUM_NODES:-1}
    [ "$nodes" -gt 1 ] && tsr_answers 1 --nodelist="$SLURMD_NODENAME" && ! tsr_answers "$nodes"
}
tsr_answers() { # NODES OPTION...
    timeout -k 5 60 srun --mpi=none --overlap --nodes="$1" --ntasks="$1" --ntasks-per-node=1 --cpus-per-task=1 \
        "${@:2}" true >/dev/null 2>&1
}

# tsr_goes_on STATUS STOPPED: whether a run with --resume that ended so is worth another one.
tsr_goes_on() {
    case $1 in
    75) return 0 ;;
    0 | 2 | 3) return 1 ;; # done; a wrong command; a product that came out wrong twice
    esac
    if [ "$2" = yes ] && [ "$1" -gt 128 ]; then return 0; fi
    tsr_node_lost || return 1
    echo "a node of the job does not answer any more" >&2
}

# tsr_job LAUNCHER WORD...: the program of a Slurm job. With --resume among the words, USR1 and TERM to the job's script
# stop the ranks, and a stopped job is queued again. Both launchers hand USR1 on to the ranks; TERM they answer by
# killing them. Ranks that are stopped while MPI starts die of USR1: that counts as stopped, too. So does a failure
# where a node was lost: Slurm takes minutes to find that (SlurmdTimeout), and then queues only jobs again that still
# run.
tsr_job() {
    local status=0 asked=no stopped=no child
    if [[ " $* " != *" --resume "* ]]; then
        "$@"
        return
    fi
    trap 'asked=yes; stopped=yes; kill -USR1 "$child" 2>/dev/null || true' USR1 TERM
    (tsr_exec=exec; "$@") &
    child=$!
    while :; do
        asked=no
        status=0
        wait "$child" || status=$?
        [ $asked = yes ] || break # else only the wait was interrupted
    done
    trap '' USR1 TERM
    if tsr_goes_on $status $stopped; then
        # Slurm may have queued a preempted job itself.
        tsr_run scontrol requeue "$SLURM_JOB_ID" || true
    fi
    return $status
}

# Prints a Python that has h5py and numpy: TSR_PYTHON where that is set, else the system's, else the first of PATH.
# Fails when there is none; tsr_no_python prints what to do then.
tsr_python() {
    local python candidates=("${TSR_PYTHON:-/usr/bin/python3}")
    [ -n "${TSR_PYTHON:-}" ] || mapfile -t -O 1 candidates < <(type -ap python3 python)
    for python in "${candidates[@]}"; do
        if "$python" -c 'import h5py, numpy' >/dev/null 2>&1; then
            command -v "$python"
            return
        fi
    done
    return 1
}
tsr_no_python() {
    if [ -n "${TSR_PYTHON:-}" ]; then
        printf 'TSR_PYTHON=%s has no h5py and numpy: name a Python that has both, or unset it' "$TSR_PYTHON"
    else
        printf 'no Python here has h5py and numpy: run jobs/setup.sh --tests, or set TSR_PYTHON to one that has both'
    fi
}

# What the Slurm test starts a Slurm of its own with.
tsr_have_slurm() { PATH=$PATH:/usr/sbin:/sbin tsr_have slurmctld slurmd munged sbatch srun scontrol sinfo; }

# tsr_have COMMAND...: every one of them.
tsr_have() {
    local name
    for name in "$@"; do command -v "$name" >/dev/null || return 1; done
}

# tsr_build FOLDER CMAKE_OPTION...: compiles what changed; configures the folder before, where that was not done to its
# end.
tsr_build() { tsr_build_target all "$@"; }

# tsr_build_target TARGET FOLDER CMAKE_OPTION...: the same of a part of it.
tsr_build_target() {
    local target=$1 folder=$2
    shift
    tsr_configured "$folder" || tsr_configure "$@" ||
        tsr_die "CMake found no way to build (all of it: $folder/configure.log)"
    tsr_logged "$folder/build.log" cmake --build "$folder" --parallel "$(nproc)" --target "$target" ||
        tsr_die "the build failed (all of it: $folder/build.log). If the machine changed since," \
            "remove $folder and try again"
}

tsr_configured() { [ -f "$1/build.ninja" ] || [ -f "$1/Makefile" ]; }

# tsr_configure FOLDER CMAKE_OPTION...: from nothing, because CMake remembers what it did not find.
tsr_configure() {
    local folder=$1 generator=()
    shift
    if tsr_have ninja; then generator=(-G Ninja); fi
    rm -rf "$folder/CMakeCache.txt" "$folder/CMakeFiles"
    mkdir -p "$folder"
    tsr_logged "$folder/configure.log" cmake -S . -B "$folder" "${generator[@]}" "$@"
}
