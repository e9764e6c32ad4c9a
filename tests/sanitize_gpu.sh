#!/usr/bin/env bash
# compute-sanitizer's memcheck, racecheck and synccheck over the contract test's quick shapes, every kernel of the GPU,
# and over the check of `exact`, which that test does not ask for; many at a time.
# Usage: tests/sanitize_gpu.sh [BUILD [KERNEL...]]     build, and every kernel unless named. Exit code 1: something was
# found.
set -eu
build=${1:-build}
shift || true
kernels=${*:-naive tiled checked coarse simt compensated exact batched split3 dmma tf32 wgmma}
tools="memcheck racecheck synccheck"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# who stops it leaves nothing on the GPU, and sees what has ended
stop() {
  # shellcheck disable=SC2046 # one word a job
  kill $(jobs -p) 2>/dev/null || true
}
trap stop TERM INT

# start NAME COMMAND...
start() {
  local name=$1 tool log
  shift
  for tool in $tools; do
    log=$folder/$name-$tool
    (
      timeout 300 compute-sanitizer --tool "$tool" --error-exitcode 9 "$@" >"$log" 2>&1 &
      trap 'kill $!' TERM
      wait $! && code=0 || code=$?
      echo "$code" >"$log.code"
    ) &
  done
}
for kernel in $kernels; do
  start "$kernel" "$build/tests/test_gemm_contract_gpu" "$kernel" quick
  [ "$kernel" != exact ] || start exact_check "$build/tests/test_exact_flips_gpu" 1 4
done
wait || wait # the first ends early where it is stopped
failed=0
for code in "$folder"/*.code; do
  log=${code%.code}
  printf '%-24s exit code %s  %s\n' "${log##*/}" "$(cat "$code")" "$(grep SUMMARY "$log" | tail -1)"
  if [ "$(cat "$code")" != 0 ] || ! grep -q 'SUMMARY: 0 ' "$log"; then
    failed=1
    grep -vE 'Host Frame|Saved host' "$log" | head -60
  fi
done
exit $failed
