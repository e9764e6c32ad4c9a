"""Runs tessera and the OpenBLAS + h5py baseline in turns on the same files; writes medians and their ratio to
docs/measurements.

Both are whole processes, from the start of the command to its end: interpreter or mpirun, reading, product, writing.
Tessera also brings its output to stable storage before it ends (fsync), which h5py does not. Inputs are in the page
cache.
"""
import argparse
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

import overview
import report

CORES = 2
HOST_MEMORY_MIB = 1024  # --host-memory of each rank; its whole process has to stay below it
RATIO_ALLOWED = 1.2


def run(command, folder, log):
    """Runs command on CORES cores; wall seconds, processor seconds, and the largest resident set of one process,
    bytes."""
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    with open(folder / log, "w") as out:
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT,
                                   preexec_fn=lambda: os.sched_setaffinity(0, cores))
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
    if status != 0:
        sys.exit(f"{shlex.join(command)} failed:\n{(folder / log).read_text()}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def same_product(folder):
    """Both products agree within fp32 rounding of an inner product of this length."""
    with h5py.File(folder / "C_tessera.h5") as x, h5py.File(folder / "C_baseline.h5") as y:
        x, y = x["C"], y["C"]
        if x.shape != y.shape:
            return False
        for row in range(0, x.shape[0], 1024):
            if not np.allclose(x[row:row + 1024], y[row:row + 1024], rtol=1e-3, atol=1e-2):
                return False
    return True


def measure(args, folder):
    tessera = str(pathlib.Path(args.program).resolve())
    shape = f"{args.size}x{args.size}"
    for name, seed in (("A", "1"), ("B", "2")):
        run([tessera, "generate", "-o", f"{name}.h5:/{name}", "--shape", shape, "--type", "f32", "--seed", seed],
            folder, "generate.log")
    multiply = ["mpirun", "-n", "2", tessera, "multiply", "A.h5", "B.h5",
                "-o", "C_tessera.h5:/C", "--force", "--device", "cpu", "--host-memory", f"{HOST_MEMORY_MIB}MiB",
                "--log", "log.json", "--progress", "off"]
    baseline = [sys.executable, str(report.ROOT / "tests/bench/baseline.py"), "A.h5", "B.h5", "C_baseline.h5",
                str(CORES)]
    results = {"tessera": [], "baseline": []}
    for turn in range(args.runs + 1):  # the first turn warms the page cache and is not counted
        for name, command in (("tessera", multiply), ("baseline", baseline)):
            seconds, cpu, peak = run(command, folder, f"{name}.log")
            print(f"turn {turn}: {name} {seconds:.2f} s, {cpu:.2f} s of processor, {peak / 1e6:.0f} MB", flush=True)
            if turn > 0:
                results[name].append((seconds, cpu, peak))
    if not same_product(folder):
        sys.exit("the two products do not agree")
    lines = (folder / "baseline.log").read_text().splitlines()
    return results, json.loads(lines[-1]), multiply


def write(args, load, results, baseline, command, folder):
    median = {name: statistics.median(seconds for seconds, _, _ in runs) for name, runs in results.items()}
    cpu = {name: statistics.median(cpu for _, cpu, _ in runs) for name, runs in results.items()}
    peak = {name: max(peak for _, _, peak in runs) for name, runs in results.items()}
    spread = {name: f"{min(s for s, _, _ in runs):.2f}–{max(s for s, _, _ in runs):.2f}" for name,
              runs in results.items()}
    turns = ", ".join(f"{ours[0] / theirs[0]:.2f}" for ours, theirs in zip(results["tessera"], results["baseline"]))
    ratio = median["tessera"] / median["baseline"]
    flops = 2.0 * args.size ** 3
    row = lambda name, what: [what, f"{median[name]:.2f}", spread[name], f"{cpu[name]:.2f}",
                              f"{flops / median[name] / 1e9:.0f}", f"{peak[name] / 1e6:.0f}"]
    rows = [row("tessera", f"tessera multiply, 2 ranks, --host-memory {HOST_MEMORY_MIB}MiB"),
            row("baseline", "OpenBLAS, 1 process, 2 threads, h5py")]
    shown = shlex.join(["tessera" if part == command[3] else part for part in command])
    body = "\n\n".join([
        f"{args.size}² fp32, files to file, {CORES} cores of {report.cpu_name()}, {report.today()}, commit "
        f"{report.commit()}, "
        f"{args.runs} runs in turns, files in {filesystem(folder)}. Load of the machine before the first run: "
        f"{load:.2f}.",
        report.table(["what", "median s", "range s", "processor s", "GFLOP/s", "peak MB of one process"], rows),
        f"**Ratio of the medians: {ratio:.2f}** ({RATIO_ALLOWED} allowed); turn by turn {turns}. "
        f"{baseline['config']}; of its last run read "
        f"{baseline['read']:.2f} s, multiply {baseline['multiply']:.2f} s, write {baseline['write']:.2f} s.",
        f"`{shown}`"])
    report.write_section("cpu-end-to-end", body, report.page(__file__))
    overview.main()
    print(f"ratio {ratio:.3f}")
    if peak["tessera"] > HOST_MEMORY_MIB * 2**20:
        sys.exit(f"a rank used {peak['tessera'] / 2**20:.0f} MiB, more than its --host-memory {HOST_MEMORY_MIB}MiB")
    if ratio > RATIO_ALLOWED:
        sys.exit(f"the ratio {ratio:.2f} is above {RATIO_ALLOWED}")


def filesystem(folder):
    out = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True)
    return out.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where a scratch folder for the files is made")
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-bench-", dir=args.folder))
    try:
        load = os.getloadavg()[0]
        if load > 0.5:
            print(f"the machine is busy (load {load:.2f}): these figures will say more about that than about tessera",
                  flush=True)
        write(args, load, *measure(args, folder), folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
