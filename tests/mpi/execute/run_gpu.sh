#!/usr/bin/env bash
# Runs test_execute on CUDA devices: one rank a GPU, two ranks sharing one, and every kernel in turn. Skips (77) where
# there is no GPU.
set -eu
mpiexec=$1 program=$2
gpus=$(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null | wc -l)
[ "$gpus" -gt 0 ] || { echo "skipped: no GPU"; exit 77; }
"$mpiexec" -n 1 "$program" cuda each
for ranks in 1 2 3 4; do
  [ "$ranks" -le "$gpus" ] || [ "$ranks" -eq 2 ] || continue
  "$mpiexec" --oversubscribe -n "$ranks" "$program" cuda
done
