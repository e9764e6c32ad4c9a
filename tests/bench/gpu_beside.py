"""Measures the fast kernels of two builds in turns, to see what a change does to their speed; used by gpu_beside.sh.

Usage: gpu_beside.py TESSERA OTHER FILE [KERNEL...]   OTHER: the program of another build; figures go to FILE as JSON
       gpu_beside.py --write FILE...                  to the page; where files have the same row, the last one counts
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import report

SHAPES = {
    ("simt", "f32"): ["512", "1024", "4096", "8192", "512x8192x8192", "256x256x100000"],
    ("simt", "f64"): ["1024", "4096"],
    ("split3", "f32"): ["2047", "4096", "8191", "8192", "256x256x100000"],
    ("tf32", "f32"): ["512", "1024", "2047", "4096", "8191", "8192", "256x256x100000"],
    ("dmma", "f64"): ["512", "1024", "2047", "4096", "8191", "8192", "256x256x100000"],
    ("wgmma", "bf16"): ["512", "1024", "2047", "4096", "8191", "8192", "1024x1024x8192", "640x1280x8192",
                        "8192x8192x512"],
}
ROUNDS, REPEAT = 2, 15


def speed(tessera, folder, kernel, kind, shape):
    """TFLOP/s of the kernel and of the vendor's; the device."""
    name = pathlib.Path(folder) / "one.json"
    subprocess.run([tessera, "bench", "gemm", "--device", "cuda", "--kernel", kernel, "--type", kind, "--shape", shape,
                    "--repeat", str(REPEAT), "--quiet", "--json", str(name)], check=True)
    result = json.loads(name.read_text())
    by_name = {row["kernel"]: row["gflops"] / 1e3 for row in result["kernels"]}
    own = by_name.pop(kernel)
    return own, max(by_name.values(), default=0), result["device"]


def measure(tessera, other, file, *wanted):
    rows, device = [], "no GPU"
    with tempfile.TemporaryDirectory() as folder:
        for (kernel, kind), shapes in SHAPES.items():
            for shape in shapes if not wanted or kernel in wanted else []:
                best = {tessera: 0, other: 0}
                vendor = 0
                for program in [other, tessera] * ROUNDS:
                    own, its, device = speed(program, folder, kernel, kind, shape)
                    best[program], vendor = max(best[program], own), max(vendor, its)
                rows.append([kernel, kind, shape, best[tessera], best[other], vendor])
                print(*rows[-1], file=sys.stderr, flush=True)
    commit = subprocess.run([other, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    pathlib.Path(file).write_text(json.dumps({"device": device, "date": report.today(), "commit": report.commit(),
                                              "beside": commit, "rows": rows}))


def write(*files):
    measured = [json.loads(pathlib.Path(file).read_text()) for file in files]
    rows = {tuple(row[:3]): (row, one["commit"]) for one in measured for row in one["rows"]}
    lines, means = [], []
    for (kernel, kind), shapes in SHAPES.items():
        ratios = []
        for shape in shapes:
            if (kernel, kind, shape) in rows:
                row, commit = rows[kernel, kind, shape]
                ratios.append(row[3] / row[4])
                lines.append([*row[:3], f"{row[3]:.1f}", f"{row[4]:.1f}", f"{ratios[-1]:.3f}", f"{row[5]:.1f}", commit])
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            means.append([kernel, kind, f"**{mean:.3f}**", f"{min(ratios):.3f}"])
    last = measured[-1]
    report.write_section("gpu-beside", "\n\n".join([
        f"{last['device']}, {last['date']}, beside {last['beside']}: TFLOP/s, the best of {ROUNDS} runs in turns, each "
        f"the median of {REPEAT} measurements.",
        report.table(["kernel", "type", "geometric mean of ratios", "least"], means),
        report.table(["kernel", "type", "shape m×n×k", "TFLOP/s", "before", "ratio", "vendor's", "commit"], lines)]),
                         report.page(__file__))


if __name__ == "__main__":
    write(*sys.argv[2:]) if sys.argv[1] == "--write" else measure(*sys.argv[1:])
