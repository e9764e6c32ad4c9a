# Sourced by the tests of Slurm: a real Slurm on this machine's loopback, all of it in one scratch folder, with a munge
# of its own, so that nothing of a Slurm that may be installed here is touched. One node works as root and as anyone
# else. Several nodes need root: each has a host name and mounts of its own (`unshare -m -u`), and so a folder for
# temporary files, FOLDER/tmp. Of a job the functions below ask for its number in `job`.
PATH=$PATH:/usr/sbin:/sbin

# slurm_scratch NAME: a folder, `scratch`, whose Slurm ends with this program, as `job` does. What a Slurm that this
# program itself runs under has set does not reach its own jobs.
slurm_scratch() {
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/tessera-$1.XXXXXX")
    trap slurm_finish EXIT
    trap 'exit 1' INT TERM
    unset $(env | sed -n 's/^\(SLURM_[A-Z_]*\|SBATCH_[A-Z_]*\)=.*/\1/p')
}
slurm_finish() {
    local status=$?
    [ -z "${job:-}" ] || scancel "$job" 2>/dev/null
    slurm_stop "$scratch"
    [ $status = 0 ] || tail -n 30 "$scratch"/*.log "$scratch"/*.out
    rm -rf "$scratch"
}

# field NAME: what scontrol says of the job.
field() { scontrol --oneliner show job "$job" | grep -oE " $1=[^ ]*" | cut -d= -f2; }
ended() { [[ "$(field JobState)" =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)$ ]]; }

# until_true SECONDS COMMAND...: fails when that is not so in time.
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

# slurm_slow: the option of sbatch that makes reads of slow.h5, in pieces of rows, take a millisecond each while there
# is a file SCRATCH/slow: as long as this program wants, on any machine. Without it they take no time.
slurm_slow() {
    touch "$scratch/slow"
    echo "--export=ALL,LD_PRELOAD=$TSR_SLOW_PRELOAD,TSR_SLOW_PIECE=1000,TSR_SLOW_WHILE=$scratch/slow"
}
# slurm_slow_data: slow.h5 and B.h5, which two ranks with --memory 120K read for 60 s, and their product whole.npy.
slurm_slow_data() {
    "$TSR_BIN" generate -o slow.h5:/A --shape 1800x600 --type f32 --distribution integer --seed 1 &&
        "$TSR_BIN" generate -o B.h5:/B --shape 600x500 --type f32 --distribution integer --seed 2 &&
        "$TSR_BIN" multiply slow.h5 B.h5 -o whole.npy --device cpu --quiet
}

# slurm_free_ports COUNT: so many TCP ports nobody listens on, no two alike.
slurm_free_ports() {
    local port left=$1
    for port in $(shuf -i 20000-31999 -n $((10 * $1))); do
        [ "$left" -gt 0 ] || return 0
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port" && left=$((left - 1)); }
    done
}

# slurm_configure FOLDER NODE...: with the lines of `slurm_more`, too.
slurm_configure() {
    local folder=$1 node ports
    shift
    ports=($(slurm_free_ports $(($# + 1))))
    echo "PMIxCliTmpDirBase=$folder/tmp" >"$folder/mpi.conf"
    cat >"$folder/slurm.conf" <<END
ClusterName=scratch
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=pmix
ReturnToService=2
SlurmdTimeout=5
KillWait=3
SchedulerParameters=batch_sched_delay=0,sched_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
${slurm_more:-}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
END
    for node in "$@"; do
        ports=("${ports[@]:1}")
        echo "NodeName=$node NodeAddr=127.0.0.1 Port=${ports[0]} CPUs=2 RealMemory=1000 State=UNKNOWN"
    done >>"$folder/slurm.conf"
}

# slurm_start FOLDER [NODE...]: returns once the nodes, or the one that is this machine, are idle; logs lie in FOLDER.
# Fails with a line on stderr.
slurm_start() {
    local folder=$1 nodes=("${@:2}") node
    [ ${#nodes[@]} -gt 0 ] || nodes=("$(hostname -s)")
    mkdir -p "$folder/state" "$folder/tmp"
    chmod 755 "$folder"
    dd if=/dev/urandom of="$folder/munge.key" bs=128 count=1 status=none
    chmod 600 "$folder/munge.key"
    slurm_configure "$folder" "${nodes[@]}"
    export SLURM_CONF=$folder/slurm.conf
    munged --socket="$folder/munge.socket" --key-file="$folder/munge.key" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/munged.seed" || return 1
    slurmctld -c || return 1
    for node in "${nodes[@]}"; do slurm_start_node "$folder" "$node" || return 1; done
    slurm_await_idle "${#nodes[@]}"
}

# slurm_await_idle NODES: returns once so many nodes are idle.
slurm_await_idle() {
    for _ in $(seq 150); do
        if [ "$(sinfo -h -p all -N -o %T 2>/dev/null | grep -cx idle)" = "$1" ]; then return 0; fi
        sleep 0.2
    done
    echo "of the scratch Slurm $1 nodes did not become idle in 30 s" >&2
    return 1
}

slurm_start_node() { # FOLDER NODE
    local folder=$1 node=$2
    mkdir -p "$folder/spool.$node" "$folder/tmp.$node"
    if [ "$node" = "$(hostname -s)" ]; then
        slurmd -N "$node"
    else
        unshare -m -u bash -c 'mount --bind "$1/tmp.$2" "$1/tmp" && hostname "$2" && exec slurmd' - "$folder" "$node"
    fi
}

# slurm_kill_node FOLDER NODE: slurmd and whatever runs on that node ends at once, as if its power were cut. Not for the
# node that is this machine. What lay in its own folder for temporary files is gone, too.
slurm_kill_node() {
    local folder=$1 node=$2 host pids
    host=$(readlink "/proc/$(cat "$folder/slurmd.$node.pid")/ns/uts") || return 1
    [ "$host" != "$(readlink /proc/self/ns/uts)" ] || return 1
    for _ in 1 2 3; do # what was forked meanwhile, too
        pids=$(find /proc/[0-9]*/ns/uts -maxdepth 0 -lname "${host/\[/\\[}" 2>/dev/null | cut -d/ -f3)
        [ -z "$pids" ] || kill -KILL $pids 2>/dev/null
    done
    rm -rf "$folder/slurmd.$node.pid" "$folder/tmp.$node"
}

# slurm_stop FOLDER: ends what slurm_start started, by its pid files; waits until it is gone. What a daemon would still
# do takes seconds, and goes away with FOLDER.
slurm_stop() {
    local folder=$1 pids
    pids=$(cat "$folder"/slurmd.*.pid "$folder"/{slurmctld,munged}.pid 2>/dev/null)
    [ -n "$pids" ] || return 0
    kill $pids 2>/dev/null
    until_true 2 slurm_gone $pids || kill -KILL $pids 2>/dev/null
    until_true 5 slurm_gone $pids
    return 0
}
slurm_gone() { ! kill -0 "$@" 2>/dev/null; }
