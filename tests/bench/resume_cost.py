"""What `--resume` costs a run from file to file (resume_cost.sh)."""
import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import report

ALLOWED = 0.03  # of the run without
HEADER = ["device", "ranks", "threads", "m, n", "k", "type", "file system", "s", "range", "s with --resume", "range",
          "cost", "parts", "date", "commit"]
KEYS = 7  # columns that tell rows apart


def run(command, folder):
    """Seconds of the whole process."""
    start = time.monotonic()
    report.run(command, cwd=folder)
    return time.monotonic() - start


def remove(folder, pattern):
    """Before a run, so that it does not wait for the disk to end what came before."""
    for file in folder.glob(pattern):
        file.unlink()
    os.sync()


def depth(size):
    return max(1, size // 4)


def generate(args, folder, size):
    remove(folder, "[ABC].h5")
    for seed, (name, shape) in enumerate((("A", f"{size}x{depth(size)}"), ("B", f"{depth(size)}x{size}")), 1):
        report.generate(args.program, folder / f"{name}.h5", shape, args.type, seed)
    os.sync()


def multiply(args, folder, *more):
    """Seconds of a whole process, and its record."""
    remove(folder, "C.h5")
    remove(folder, ".C.h5.tessera-*")
    launcher = ["mpirun", "-n", args.ranks] if args.ranks else []
    seconds = run([*launcher, args.program, "multiply", "A.h5", "B.h5", "-o", "C.h5", "--device", args.device,
                   "--kernel", args.kernel, "--log", "log.json", "--quiet", *more], folder)
    print(f"{' '.join(more) or 'without'}: {seconds:.2f} s", flush=True)
    return seconds, json.loads((folder / "log.json").read_text())


def most(args, folder):
    """The largest size for which the disk has room: A, B and C, in four fifths of what is free."""
    element = {"f32": 4, "f64": 8}[args.type]
    return int(math.sqrt(0.8 * shutil.disk_usage(folder).free / element / 1.5))


def choose(args, folder):
    """A size whose run takes args.seconds, found by smaller ones; its inputs are there then."""
    size, limit, before = 2048, most(args, folder), None
    while True:
        generate(args, folder, size)
        seconds, _ = multiply(args, folder)
        print(f"m = n = {size}, k = {depth(size)}: {seconds:.2f} s", flush=True)
        if seconds >= args.seconds or size >= limit:
            return size
        power = 2.0
        if before:
            power = min(3.0, max(2.0, math.log(seconds / before[1]) / math.log(size / before[0])))
        before = size, seconds
        size = min(limit, math.ceil(size * min(4.0, (1.15 * args.seconds / seconds) ** (1 / power)) / 64) * 64)


def measure(args, folder):
    without, resumed = [], []
    for turn in range(args.runs):
        for more in ((), ("--resume",)) if turn % 2 == 0 else (("--resume",), ()):
            seconds, record = multiply(args, folder, *more)
            (resumed if more else without).append(seconds)
            if more:
                parts = record["super_blocks_m"] * record["super_blocks_n"]
    return without, resumed, parts, record


def span(seconds):
    return f"{min(seconds):.2f}–{max(seconds):.2f}"


def filesystem(folder):
    return subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True).stdout.strip()


def device(record):
    name = record["ranks"][0]["device"]
    return name.split(" #")[0]


def text(rows, runs):
    return "\n\n".join([
        f"Whole processes from file to file, C on stable storage at their end: medians of {runs} runs each, in turns. "
        f"{100 * ALLOWED:.0f} % are allowed. Parts are the super-blocks of the run with --resume. Threads are those of "
        "products on a CPU.",
        report.table(HEADER, rows)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--kernel", default="auto")
    parser.add_argument("--type", default="f64", choices=("f32", "f64"))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--size", type=int)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=0)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("-o", type=pathlib.Path, default=report.page(__file__), metavar="FILE.md")
    args = parser.parse_args()
    if not args.o.exists():
        args.o.write_text("<!-- begin resume-cost -->\n<!-- end resume-cost -->\n")
    args.program = pathlib.Path(args.program).resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-bench-", dir=args.folder))
    try:
        if args.size:
            generate(args, folder, args.size)
        size = args.size or choose(args, folder)
        without, resumed, parts, record = measure(args, folder)
        plain, whole = statistics.median(without), statistics.median(resumed)
        cost = whole / plain - 1
        row = [device(record), max(1, args.ranks), record["ranks"][0]["threads"], size, depth(size), args.type,
               filesystem(folder), f"{plain:.2f}", span(without), f"{whole:.2f}", span(resumed),
               f"{100 * cost:.1f} %", parts, report.today(), report.commit()]
    finally:
        shutil.rmtree(folder)
    old = report.rows(report.section(args.o.read_text(), "resume-cost"))
    report.write_section("resume-cost", text(report.merge(old, [row], KEYS), args.runs), args.o)
    print(report.table(HEADER, [row]))
    if not args.size and plain < args.seconds:
        print(f"runs took less than {args.seconds:g} s: the disk has no room for longer ones, or the run that chose "
              "the size was slower", flush=True)
    sys.exit(0 if cost <= ALLOWED else 1)


if __name__ == "__main__":
    main()
