#!/usr/bin/env bash
# Kills a node of a real Slurm of three simulated ones while jobs with --resume run there: each job is queued again,
# goes on from the parts of C that were finished, on the nodes that are left, and C has the bytes of an undisturbed run.
# Killed are a node with ranks alone and the one that runs the job's script. mpirun notices at once, long before Slurm
# does, and then the script queues the job again.
# Usage: test_node_loss.sh REPOSITORY PROGRAM. Exit 77: no Slurm on this machine, or no right to simulate nodes.
set -u
home=$1
export TSR_BIN=$2
export TSR_HOME=$home # one script is a copy
. "$home/jobs/common.sh"
. "$home/tests/jobs/slurm.sh"
set +e
tsr_have_slurm || { echo "skipped: no Slurm (slurm-wlm and munge)"; exit 77; }
unshare -m -u true 2>/dev/null || { echo "skipped: no right to make namespaces"; exit 77; }

slurm_scratch nodes
slurm_more=MessageTimeout=5 # seconds, half of what Slurm waits for a node otherwise; then it asks again
export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo # nodes share the network of this machine
nodes=(one two three)
slurm_start "$scratch" "${nodes[@]}" || tsr_die "Slurm did not start"
export TMPDIR=$scratch/tmp # of jobs: each node's own
cd "$scratch" || exit 1

requeued() { [ "$(field Restarts)" = 1 ]; }

# journal OUTPUT FIELD: of the head of the journal beside it (journal_private.h): kept or generation.
journal() {
    local at=16
    [ "$2" = kept ] || at=32
    od -An -t d8 -j $at -N 8 ".$1".tessera-*.parts | tr -d ' '
}
# parts OUTPUT: how many records its journal has: 64 bytes each behind the head, which fills pages of 4096.
parts() {
    local head_bytes
    head_bytes=$(od -An -t d8 -j 8 -N 8 ".$1".tessera-*.parts 2>/dev/null | tr -d ' ')
    [ -n "$head_bytes" ] || { echo 0; return; }
    tail -c +$(((head_bytes + 4095) / 4096 * 4096 + 1)) ".$1".tessera-*.parts | od -v -An -t x1 -w64 |
        grep -c '[1-9a-f]'
}
has_parts() { [ "$(parts "$1")" -ge 4 ]; }

submit() { # OUTPUT SCRIPT SBATCH_OPTION...
    job=$(sbatch --parsable --gpus-per-node=0 --cpus-per-task=1 --time=10 --output="$1.out" "$(slurm_slow)" "${@:3}" \
        "$2" slow.h5 B.h5 -o "$1" --memory 120K --device cpu --kernel reference --quiet --resume) ||
        tsr_die "sbatch failed"
}

# lose script|ranks OUTPUT: kills that node of the job once a part of C is finished, and awaits that the job is queued.
lose() {
    local script node
    until_true 60 has_parts "$2" || tsr_die "$2: no part of C is finished"
    script=$(field BatchHost)
    for node in "${nodes[@]}"; do
        if [ "$1" = script ] && [ "$node" = "$script" ]; then break; fi
        if [ "$1" = ranks ] && [ "$node" != "$script" ] && [[ ",$(field NodeList)," = *",$node,"* ]]; then break; fi
    done
    [ ! -e "$2" ] || tsr_die "$2 was whole when $node was to be killed"
    slurm_kill_node "$scratch" "$node" || tsr_die "$node was not killed"
    rm slow
    lost=$node
    until_true 90 requeued || tsr_die "$2: not queued again, but $(field JobState) $(field ExitCode)"
}

# goes_on OUTPUT: the job ends well, on other nodes, with what was finished before.
goes_on() {
    until_true 120 ended || tsr_die "$1: the job does not end: $(field JobState) $(field Reason)"
    [ "$(field JobState) $(field ExitCode)" = "COMPLETED 0:0" ] || tsr_die "$1: $(field JobState) $(field ExitCode)"
    [[ ",$(field NodeList)," != *",$lost,"* ]] || tsr_die "$1: ran on $(field NodeList) without $lost"
    [ "$(field NumNodes)" = 2 ] || tsr_die "$1: went on with $(field NumNodes) nodes"
    [ "$(journal "$1" kept)" -ge 1 ] && [ "$(journal "$1" generation)" -ge 2 ] ||
        tsr_die "$1: made anew: $(journal "$1" kept) parts kept, generation $(journal "$1" generation)"
    cmp "$1" whole.npy || tsr_die "$1 is not that of an undisturbed run"
    echo "$1: lost $lost, went on with $(journal "$1" kept) finished parts on $(field NodeList)"
}

bring_back() {
    slurm_start_node "$scratch" "$lost"
    slurm_await_idle 3 || exit 1
}

slurm_slow_data >generate.out 2>&1 || tsr_die "no product"

# Three nodes, or two: without a number of tasks Slurm takes as many as it has.
sed '/^#SBATCH --ntasks-per-node/d' "$home/jobs/many_nodes_srun.sbatch" >own.sbatch
submit C1.npy own.sbatch --nodes=2-3
lose ranks C1.npy
goes_on C1.npy
bring_back

# Three tasks on three nodes are made two on two by hand.
submit C2.npy "$home/jobs/many_nodes_srun.sbatch" --nodes=3 --ntasks-per-node=1
lose script C2.npy
scontrol update JobId="$job" NumTasks=2 NumNodes=2
goes_on C2.npy
bring_back

submit C3.npy "$home/jobs/many_nodes_mpirun.sbatch" --nodes=2 --ntasks-per-node=1
lose ranks C3.npy
grep -q 'a node of the job does not answer' C3.npy.out && grep -q '^+ scontrol requeue' C3.npy.out ||
    tsr_die "the script did not queue the job again"
goes_on C3.npy

# Where all nodes answer a job that fails has failed.
submit C4.npy "$home/jobs/many_nodes_mpirun.sbatch" --nodes=2 --ntasks-per-node=1 --export=ALL,TSR_BIN=/bin/false
until_true 60 ended || tsr_die "a program that fails does not end the job"
[ "$(field JobState) $(field ExitCode) $(field Restarts)" = "FAILED 1:0 0" ] ||
    tsr_die "a program that fails ended as $(field JobState) $(field ExitCode), queued $(field Restarts) times"
