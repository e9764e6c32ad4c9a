#!/usr/bin/env bash
# Submits the one-node sbatch scripts, srun and mpirun form, to a real Slurm started for this test alone, from a folder
# that is not the repository, and checks the product, the record in the file, the log and the state Slurm ends the jobs
# in; then that ranks without PMIx write nothing, that a job that fails shows as FAILED, and that a copy of a script
# asks for TSR_HOME.
# Usage: test_slurm.sh REPOSITORY PROGRAM. Exit 77: no Slurm on this machine.
set -u
home=$1
export TSR_BIN=$2
unset TSR_HOME # jobs inherit it, and have to find it themselves
. "$home/jobs/common.sh"
. "$home/tests/jobs/slurm.sh"
set +e
tsr_have_slurm || { echo "skipped: no Slurm (slurm-wlm and munge)"; exit 77; }
python=$(tsr_python) || tsr_die "$(tsr_no_python)"
while read -r asked tasks counted; do
    [ "$(SLURM_NTASKS=${asked#none} SLURM_TASKS_PER_NODE=$tasks tsr_tasks)" = "$counted" ] ||
        tsr_die "tsr_tasks counts $tasks, $asked asked for, wrong"
done <<END
none 4(x2),3 11
none 2 2
3 1(x3) 3
none 2(x2),1(x4) 8
3 1(x2) 2
3 2(x2) 3
END
if (SLURM_TASKS_PER_NODE='4(x' tsr_tasks) 2>/dev/null; then tsr_die "tsr_tasks counts what is no number of tasks"; fi

fences() ( # how ranks of a job meet in MPI_Init
    srun() { echo "$SLURM_PMIX_FENCE"; }
    SLURM_JOB_NUM_NODES=2 SLURM_NTASKS=2 tsr_srun true 2>/dev/null
)
met="$(unset SLURM_PMIX_FENCE && fences) $(SLURM_PMIX_FENCE=ring fences)"
[ "$met" = "tree ring" ] || tsr_die "ranks meet by fences of $met, where nothing is set and where ring is"

slurm_scratch slurm
printf '#!/bin/sh\nsleep 1\n' >"$scratch/epilog" # as on clusters that clean a node behind a job
chmod 755 "$scratch/epilog"
slurm_more=Epilog=$scratch/epilog
slurm_start "$scratch" || tsr_die "Slurm did not start"

# submit NAME SCRIPT ARGUMENT...: runs it as a job of two CPU ranks, from the scratch folder; fails as the job does.
# Its output: NAME.out
submit() {
    local name=$1
    shift
    (cd "$scratch" && sbatch --wait --parsable --gpus-per-node=0 --ntasks-per-node=2 --cpus-per-task=1 --time=3 \
        --output="$name.out" "$@") >"$scratch/$name.id"
}

# state NAME: what Slurm says became of the job, once its epilog is over: `sbatch --wait` may return before.
state() {
    job=$(cat "$scratch/$1.id")
    until_true 60 ended
    echo "$(field JobState) $(field ExitCode)"
}

"$TSR_BIN" generate -o "$scratch/A.h5:/A" --shape 301x203 --type f32 --distribution integer --seed 1 \
    >"$scratch/generate.out" 2>&1 &&
    "$TSR_BIN" generate -o "$scratch/B.h5:/B" --shape 203x173 --type f32 --distribution integer --seed 2 \
        >>"$scratch/generate.out" 2>&1 ||
    tsr_die "generate failed"

for script in "$home"/jobs/*.sbatch; do # every script's own options, as sbatch reads them
    sbatch --test-only --nodes=1 --gpus-per-node=0 --ntasks-per-node=2 --cpus-per-task=1 "$script" A.h5 B.h5 -o C.h5 \
        2>"$scratch/test-only.out" ||
        tsr_die "$script: sbatch refuses it: $(cat "$scratch/test-only.out")"
    for option in --requeue --signal=B:USR1@120 --open-mode=append; do # what --resume wants
        grep -qx "#SBATCH $option" "$script" || tsr_die "$script does not ask for $option"
    done
done

# The scripts as a user may name them: by their path, and by a link.
mkdir "$scratch/links"
ln -s "$home/jobs/one_node_mpirun.sbatch" "$scratch/links/"
for path in "$home/jobs/one_node_srun.sbatch" links/one_node_mpirun.sbatch; do
    script=$(basename $path .sbatch)
    submit $script $path A.h5 B.h5 -o $script.h5:/C --device cpu --log $script.json ||
        tsr_die "$script: the job failed: $(state $script)"
    [ "$(state $script)" = "COMPLETED 0:0" ] || tsr_die "$script: ended as $(state $script)"
    grep -qE "^\+ (srun|mpirun) .*tessera multiply A.h5 B.h5" "$scratch/$script.out" ||
        tsr_die "$script: does not show its command"
    "$python" "$home/tests/jobs/check_product.py" "$scratch"/{A,B,$script}.h5 "$scratch/$script.json" 2 ||
        tsr_die "$script: the product or its record is wrong"
done

# Ranks that do not find each other write nothing; a process in an allocation for two is no such rank.
square=(multiply "$scratch/A.h5" "$scratch/A.h5" --transpose-b -o "$scratch/alone.h5" --device cpu)
if srun -n 2 --mpi=none "$TSR_BIN" "${square[@]}" >"$scratch/alone.out" 2>&1; then
    tsr_die "ranks without PMIx were let run"
fi
[ ! -e "$scratch/alone.h5" ] || tsr_die "ranks without PMIx wrote: $(cat "$scratch/alone.out")"
salloc -n 2 "$TSR_BIN" "${square[@]}" >"$scratch/alone.out" 2>&1 ||
    tsr_die "alone in an allocation: $(cat "$scratch/alone.out")"

# A copy, as users make them to keep their own options, cannot know where it is from.
cp "$home/jobs/one_node_srun.sbatch" "$scratch/own.sbatch"
if submit lost own.sbatch A.h5 B.h5 -o none.h5; then tsr_die "a script that cannot find the repository succeeded"; fi
grep -q 'submit with TSR_HOME=' "$scratch/lost.out" || tsr_die "a lost script does not ask for TSR_HOME"
if TSR_HOME=/nowhere submit wrong "$home/jobs/one_node_srun.sbatch" A.h5 B.h5 -o none.h5; then
    tsr_die "a wrong TSR_HOME passed"
fi
grep -q "no Tessera in '/nowhere'" "$scratch/wrong.out" || tsr_die "a wrong TSR_HOME is not named"

script=own
if TSR_HOME=$home submit $script own.sbatch A.h5 missing.h5 -o none.h5; then
    tsr_die "a job with a missing input succeeded"
fi
[[ "$(state $script)" == "FAILED 1:0" ]] || tsr_die "a failed job ended as $(state $script)"
grep -q 'missing.h5' "$scratch/$script.out" || tsr_die "a failed job does not say what was missing"
[ ! -e "$scratch/none.h5" ] || tsr_die "a failed job left an output file"
