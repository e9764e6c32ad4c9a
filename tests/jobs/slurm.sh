# Sourced by test_slurm.sh: a real Slurm of one node on this machine's loopback, all of it in one scratch folder, with a
# munge of its own, so that nothing of a Slurm that may be installed here is touched. Works as root and as anyone else.
PATH=$PATH:/usr/sbin:/sbin

# slurm_free_port: a TCP port nobody listens on.
slurm_free_port() {
    local port
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        port=$((20000 + RANDOM % 12000))
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo "$port"
            return
        fi
    done
    return 1
}

slurm_configure() { # FOLDER
    local folder=$1 node
    node=$(hostname -s)
    cat >"$folder/slurm.conf" <<END
ClusterName=scratch
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$(slurm_free_port)
SlurmdPort=$(slurm_free_port)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=pmix
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName=$node NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
}

# slurm_start FOLDER: returns once the node is idle; logs lie in FOLDER. Fails with a line on stderr.
slurm_start() {
    local folder=$1
    mkdir -p "$folder/state" "$folder/spool"
    chmod 755 "$folder"
    dd if=/dev/urandom of="$folder/munge.key" bs=128 count=1 status=none
    chmod 600 "$folder/munge.key"
    slurm_configure "$folder"
    export SLURM_CONF=$folder/slurm.conf
    munged --socket="$folder/munge.socket" --key-file="$folder/munge.key" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/munged.seed" || return 1
    slurmctld -c && slurmd -N "$(hostname -s)" || return 1
    for _ in $(seq 150); do
        if [ "$(sinfo -h -o %T 2>/dev/null)" = idle ]; then return 0; fi
        sleep 0.2
    done
    echo "the node of the scratch Slurm did not become idle in 30 s" >&2
    return 1
}

# slurm_stop FOLDER: ends what slurm_start started, by its pid files; waits until it is gone.
slurm_stop() {
    local folder=$1 name pid
    for name in slurmd slurmctld munged; do
        pid=$(cat "$folder/$name.pid" 2>/dev/null) || continue
        kill "$pid" 2>/dev/null || continue
        for _ in $(seq 50); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null
    done
    return 0
}
