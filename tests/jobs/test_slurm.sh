#!/usr/bin/env bash
# Submits the one-node sbatch scripts, srun and mpirun form, to a real Slurm started for this test alone, and checks the
# product, the record in the file, the log and the state Slurm ends the jobs in; then that a job that fails shows as FAILED.
# Usage: test_slurm.sh REPOSITORY PROGRAM. Exit 77: no Slurm on this machine.
set -u
export TSR_HOME=$1 TSR_BIN=$2
. "$TSR_HOME/jobs/common.sh"
. "$TSR_HOME/tests/jobs/slurm.sh"
set +e
tsr_have_slurm || { echo "skipped: no Slurm (slurm-wlm and munge)"; exit 77; }
python=$(tsr_python) || tsr_die "$(tsr_no_python)"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/tessera-slurm.XXXXXX")
finish() {
    local status=$?
    slurm_stop "$scratch"
    [ $status = 0 ] || tail -n 30 "$scratch"/*.log "$scratch"/*.out
    rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 1' INT TERM
# What a Slurm this test itself runs under has set must not reach its own jobs.
unset $(env | sed -n 's/^\(SLURM_[A-Z_]*\|SBATCH_[A-Z_]*\)=.*/\1/p')
slurm_start "$scratch" || tsr_die "Slurm did not start"

# submit SCRIPT ARGUMENT...: runs it as a job of two CPU ranks; fails as the job does. Its output: SCRIPT.out
submit() {
    local script=$1
    shift
    (cd "$scratch" && sbatch --wait --parsable --gpus-per-node=0 --ntasks-per-node=2 --cpus-per-task=1 --time=3 \
        --output="$script.out" "$TSR_HOME/jobs/$script.sbatch" "$@") >"$scratch/$script.id"
}

# state SCRIPT: what Slurm says became of the job.
state() { scontrol --oneliner show job "$(cat "$scratch/$1.id")" | grep -oE '(JobState|ExitCode)=[^ ]*' | tr '\n' ' '; }

"$TSR_BIN" generate -o "$scratch/A.h5:/A" --shape 301x203 --type f32 --distribution integer --seed 1 >"$scratch/generate.out" 2>&1 &&
    "$TSR_BIN" generate -o "$scratch/B.h5:/B" --shape 203x173 --type f32 --distribution integer --seed 2 >>"$scratch/generate.out" 2>&1 ||
    tsr_die "generate failed"

for script in "$TSR_HOME"/jobs/*.sbatch; do # every script's own options, as sbatch reads them
    sbatch --test-only --nodes=1 --gpus-per-node=0 --ntasks-per-node=2 --cpus-per-task=1 "$script" A.h5 B.h5 -o C.h5 2>"$scratch/test-only.out" ||
        tsr_die "$script: sbatch refuses it: $(cat "$scratch/test-only.out")"
done

for script in one_node_srun one_node_mpirun; do
    submit $script A.h5 B.h5 -o $script.h5:/C --device cpu --log $script.json || tsr_die "$script: the job failed: $(state $script)"
    [ "$(state $script)" = "JobState=COMPLETED ExitCode=0:0 " ] || tsr_die "$script: ended as $(state $script)"
    grep -qE "^\+ (srun|mpirun) .*tessera multiply A.h5 B.h5" "$scratch/$script.out" || tsr_die "$script: does not show its command"
    "$python" "$TSR_HOME/tests/jobs/check_product.py" "$scratch/A.h5" "$scratch/B.h5" "$scratch/$script.h5" "$scratch/$script.json" 2 ||
        tsr_die "$script: the product or its record is wrong"
done

script=one_node_srun
if submit $script A.h5 missing.h5 -o none.h5; then tsr_die "a job with a missing input succeeded"; fi
[[ "$(state $script)" == "JobState=FAILED ExitCode=1:0 " ]] || tsr_die "a failed job ended as $(state $script)"
grep -q 'missing.h5' "$scratch/$script.out" || tsr_die "a failed job does not say what was missing"
[ ! -e "$scratch/none.h5" ] || tsr_die "a failed job left an output file"
