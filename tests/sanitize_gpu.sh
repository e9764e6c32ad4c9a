#!/usr/bin/env bash
# compute-sanitizer's memcheck, racecheck and synccheck over the contract test's quick shapes, every kernel of the GPU,
# many at a time.
# Usage: tests/sanitize_gpu.sh [BUILD [KERNEL...]]     build, and every kernel unless named. Exit code 1: something was
# found.
set -eu
build=${1:-build}
shift || true
kernels=${*:-naive tiled checked coarse simt compensated exact batched split3 dmma tf32 wgmma}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for kernel in $kernels; do
  for tool in memcheck racecheck synccheck; do
    log=$folder/$kernel-$tool
    (timeout 300 compute-sanitizer --tool $tool --error-exitcode 9 "$build/tests/test_gemm_contract_gpu" "$kernel" \
        quick >"$log" 2>&1 && code=0 || code=$?; echo $code >"$log.code") &
  done
done
wait
failed=0
for kernel in $kernels; do
  for tool in memcheck racecheck synccheck; do
    log=$folder/$kernel-$tool
    printf '%-12s %-10s exit code %s  %s\n' "$kernel" $tool "$(cat "$log.code")" "$(grep SUMMARY "$log" | tail -1)"
    if [ "$(cat "$log.code")" != 0 ] || ! grep -q 'SUMMARY: 0 ' "$log"; then
      failed=1
      grep -vE 'Host Frame|Saved host' "$log" | head -60
    fi
  done
done
exit $failed
