#!/usr/bin/env bash
# What the check of files costs a product from files to a file: `multiply --check off`, `device` and `files`, in turns,
# on one GPU, with all files in memory. The table goes to docs/measurements/gpu_check_files.md.
# Usage: tests/bench/gpu_check_files.sh [--cases f64:28000,f32:24000] [--checks device,files] [--rounds 5]
#     [--device cuda] [-o FILE.md]
# TSR_SHM: a folder in memory (/dev/shm), with room for two matrices and their product.
# Exit code 1 where `device` takes more than 1.02 of `off`, or `files` more than 1.5.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
tsr_need_program
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PYTHONDONTWRITEBYTECODE=1
tsr_run python3 "$TSR_HOME/tests/bench/gpu_check_files.py" --program "$TSR_BIN" --shm "${TSR_SHM:-/dev/shm}" "$@"
