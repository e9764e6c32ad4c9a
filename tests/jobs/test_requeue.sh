#!/usr/bin/env bash
# Stops a real Slurm job with --resume four times, and C in the end has the bytes of an undisturbed run: once as Slurm
# does before the time limit, and thrice by jobs of a partition that preempts it. Each time it is queued again, by its
# script or by Slurm. The same job once more finds C complete and succeeds. Without --resume no job is queued again by
# its script.
# Usage: test_requeue.sh REPOSITORY PROGRAM [SCRIPT]: of jobs/, one_node_mpirun unless given. Exit 77: no Slurm on this
# machine.
set -u
home=$1
export TSR_BIN=$2
unset TSR_HOME
. "$home/jobs/common.sh"
. "$home/tests/jobs/slurm.sh"
set +e
tsr_have_slurm || { echo "skipped: no Slurm (slurm-wlm and munge)"; exit 77; }

slurm_scratch requeue
# A job that is preempted has GraceTime to end. Slurm tells the ranks of srun, and nobody of a job of mpirun, unless it
# is to send the signal that the script asked for. Who is left after that time is looked for twice a minute alone.
script=${3:-one_node_mpirun}
[[ $script != *_mpirun ]] || slurm_more=SlurmctldParameters=preempt_send_user_signal
slurm_start "$scratch" || tsr_die "Slurm did not start"
cd "$scratch" || exit 1

restarted() { [ "$(field Restarts)" = "$1" ] && [ "$(field JobState)" = RUNNING ]; }
# restarted_or_over TIMES: nothing is left to wait for. Before it is queued again a job that stopped has ended, too.
restarted_or_over() { restarted "$1" || [ "$(field JobState)" = COMPLETED ]; }
# computes OUTPUT: a run wrote to the journal beside it, or without one to the file, since the last start.
computes() { [ -n "$(find . -name ".$1.tessera-*" -newer started)" ]; }

submit() { # OUTPUT OPTION...
    local output=$1
    shift
    job=$(sbatch --parsable --gpus-per-node=0 --ntasks-per-node=2 --cpus-per-task=1 --time=10 \
        --output="$output.out" "$(slurm_slow)" "$home/jobs/$script.sbatch" slow.h5 B.h5 -o "$output" --memory 120K \
        --device cpu --kernel reference --quiet "$@") || tsr_die "sbatch failed"
    touch started
}

slurm_slow_data >generate.out 2>&1 || tsr_die "no product"

# tells WHAT: ends the test, with all that Slurm says of the job first and WHAT last, behind the logs.
tells() {
    failed=$*
    exit 1
}
finish() {
    local status=$?
    [ $status = 0 ] || scontrol show job "${job:-}" >scontrol.out 2>&1
    (exit $status)
    slurm_finish
    [ -z "${failed:-}" ] || tsr_die "$failed"
}
trap finish EXIT

# reached: since the last start the signal came to the ranks, or the job is over.
reached() { [ "$(grep -c 'stopped on request' C.npy.out)" -ge "$1" ] || restarted "$1" || ended; }
# signal COUNT: asks the job's script to stop, for the COUNT-th time; again where nothing comes of it.
signal() {
    local try
    sent=
    for try in 1 2 3; do
        scancel --batch --signal=USR1 "$job" 2>scancel.out
        sent+="scancel $try: $? $(<scancel.out); "
        until_true 3 reached "$1" && return
    done
    tells "stop $1: no signal reached the job in $try tries: $sent"
}
# missed: how far the job came instead of stopping.
missed() { echo "$(field JobState) $(field ExitCode), $(field Restarts) restarts${sent:+, $sent}"; }

grace() { scontrol update PartitionName=all GraceTime="$1" || tsr_die "GraceTime stays as it was"; }
grace 30
submit C.npy --resume
for stop in 1 2 3 4; do
    until_true 60 computes C.npy || tells "stop $stop: no unfinished C: $(missed)"
    sent=
    sleep 0.3
    if [ $stop = 1 ]; then
        signal $stop
    else
        sbatch --partition=urgent --ntasks=2 --time=1 --output=urgent.out --wrap='echo urgent' >/dev/null ||
            tells "no urgent job"
    fi
    until_true 60 restarted_or_over $stop
    restarted $stop || tells "stop $stop: not started again, but $(missed)"
    touch started
    [ ! -e C.npy ] || tsr_die "stop $stop came when C was whole"
done
rm slow
until_true 120 ended || tsr_die "the job does not end"
[ "$(field JobState) $(field ExitCode)" = "COMPLETED 0:0" ] || tsr_die "ended as $(field JobState) $(field ExitCode)"
[ "$(grep -cE '^\+ (mpirun|srun) ' C.npy.out)" = 5 ] || tsr_die "the log does not hold all runs"
queued=$(grep -c '^+ scontrol requeue' C.npy.out)
kept=$(grep -c 'stopped on request; .* of C is kept' C.npy.out)
# the first stop may come while ranks start: they end with 75, and have nothing to keep
[ "$queued" = 4 ] && [ "$kept" -ge 3 ] ||
    tsr_die "the script queued the job again $queued times, and $kept runs kept parts of C"
cmp C.npy whole.npy || tsr_die "C is not that of an undisturbed run"

submit C.npy --resume
until_true 60 ended && [ "$(field JobState)" = COMPLETED ] || tsr_die "a complete C is no success: $(field JobState)"

submit D.npy
until_true 60 computes D.npy || tsr_die "no unfinished D"
scancel --signal=TERM --full "$job"
until_true 60 ended || tsr_die "a job without --resume went on: $(field JobState)"
[ "$(field Restarts)" = 0 ] && [ ! -e D.npy ] ||
    tsr_die "a job without --resume was queued again: $(field Restarts) $(ls)"
echo "stopped four times: C is whole"
