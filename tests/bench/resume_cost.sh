#!/usr/bin/env bash
# What `--resume` costs a run from file to file on a disk: the same product with and without it, in turns, each a whole
# process that ends when C is on stable storage. The table goes to docs/measurements/resume_cost.md, where rows of other
# devices and machines stay.
# Usage: tests/bench/resume_cost.sh [--device auto] [--seconds 20] [--runs 5] [--folder /var/tmp] [--type f64]
#     [--kernel auto] [--ranks 0]
#     --seconds S       m and n are chosen so that a run takes that long, as far as the disk has room; k is a quarter
#     --size N          this size in place of that
#     --ranks N         by mpirun; 0: without
#     -o FILE.md        another page with the section resume-cost
# It takes ten runs and those that choose the size: less than five minutes at 20 s a run.
# Exit code 1 where it costs more than 3 %.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
tsr_need_program
python=$(tsr_python) || python=python3 # any will do
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PYTHONDONTWRITEBYTECODE=1
tsr_run "$python" "$TSR_HOME/tests/bench/resume_cost.py" --program "$TSR_BIN" "$@"
