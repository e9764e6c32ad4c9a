"""Whole processes of small products beside h5py + numpy, and what `auto` takes of the fastest kernel (gpu_small.sh)."""

import argparse
import json
import pathlib
import re
import shutil
import statistics
import sys
import tempfile
import time

import report

TYPES = ("f32", "f64")
ALLOWED = 0.6  # seconds of a whole process, in the median
APART = 0.05  # seconds that the types' medians may differ
LEAST = 0.97  # of the fastest kernel's speed, that auto's choice must reach
SCRIPT = ("import h5py, sys\na, b = (h5py.File(name)['C'][:] for name in sys.argv[1:3])\nh5py.File(sys.argv[3], "
          "'w')['C'] = a @ b")


def run(command):
    """Seconds of the whole process, and its standard output."""
    start = time.monotonic()
    printed = report.run(command)
    return time.monotonic() - start, printed


def multiply(args, folder, kind):
    """Seconds of a whole process, of its start-up and of its run, and the kernel that ran."""
    log, output = folder / "log.json", folder / "C.h5"
    output.unlink(missing_ok=True)
    names = [folder / f"{name}-{kind}.h5" for name in "AB"]
    whole, _ = run([args.program, "multiply", *names, "-o", output, "--device", args.device, "--log", log])
    record = json.loads(log.read_text())
    return {"whole": whole, "start-up": record["setup_seconds"], "run": record["seconds"], "kernel": record["kernel"]}


def measure(args, folder):
    """{type: runs} of tessera and {type: seconds} of numpy; the first turn warms up and is not counted."""
    for kind in TYPES:
        for seed, name in enumerate("AB", 1):
            run([args.program, "generate", "-o", folder / f"{name}-{kind}.h5", "--shape", f"{args.size}x{args.size}",
                 "--type", kind, "--seed", seed])
    ours, numpy = {kind: [] for kind in TYPES}, {kind: [] for kind in TYPES}
    for turn in range(args.turns + 1):
        for kind in TYPES:
            one = multiply(args, folder, kind)
            other, _ = run([sys.executable, "-c", SCRIPT, folder / f"A-{kind}.h5", folder / f"B-{kind}.h5",
                            folder / "D.h5"])
            if turn > 0:
                ours[kind].append(one)
                numpy[kind].append(other)
    return ours, numpy


def small_text(args, ours, numpy):
    def median(kind, name):
        return statistics.median(one[name] for one in ours[kind])

    rows = [[kind, ours[kind][0]["kernel"], *(f"{median(kind, name):.3f}" for name in ("whole", "start-up", "run")),
             f"{statistics.median(numpy[kind]):.3f}"]
            for kind in TYPES]
    medians = [median(kind, "whole") for kind in TYPES]
    apart = abs(medians[0] - medians[1])
    reached = max(medians) <= ALLOWED and apart <= APART
    text = "\n\n".join([
        f"{args.size}², from file to file, whole processes without mpirun; {device(args)}, {report.today()}, commit "
        f"{report.commit()}: "
        f"medians of {args.turns} turns.",
        report.table(["type", "kernel", "whole process s", "start-up s", "run s", "h5py + numpy, whole process s"],
                     rows),
        f"The slower type takes {max(medians):.3f} s (at most {ALLOWED}); the types are {apart:.3f} s apart (at most "
        f"{APART}).",
    ])
    return text, reached


def device(args):
    _, text = run([args.program, "info", "--devices", "--device", args.device])
    code = re.search(r"code for (\w+)", text)
    name = re.search(r"^rank 0 on [^:]*: (.*?) #", text, re.M).group(1)
    return f"{name}, code for {code.group(1)}" if code else name


def speeds(args, folder):
    """Rows (input, accuracy, size, kernel, share of the fastest) as bench speeds prints them."""
    _, text = run([args.program, "bench", "speeds", "--repeat", "15", "-o", folder / "speeds.inc"])
    rows = []
    for line in text.splitlines():
        match = re.match(r"auto, (\w+), (\w+), of the fastest:(.*)", line)
        if match:
            words = match.group(3).split()
            rows += [[match.group(1), match.group(2), *words[at:at + 3]] for at in range(0, len(words), 3)]
    return rows


def speeds_text(args, rows):
    sizes = sorted({int(row[2]) for row in rows})
    table = []
    for kind, accuracy in dict.fromkeys((row[0], row[1]) for row in rows):
        cells = {int(row[2]): f"{row[3]} {row[4]}" for row in rows if (row[0], row[1]) == (kind, accuracy)}
        table.append([kind, accuracy, *(cells.get(size, "-") for size in sizes)])
    least = min(float(row[4]) for row in rows if row[4] != "-")
    text = "\n\n".join([
        f"Kernel that `auto` takes for many products, and its speed of the fastest kernel's, cuBLAS among them; "
        f"{device(args)}, {report.today()}, "
        f"commit {report.commit()}. By the figures that the program was built with, measured anew here. -: operands "
        f"are "
        f"converted first, to a type whose kernels are faster.",
        report.table(["input", "accuracy", *map(str, sizes)], table),
        f"The least is {least:.2f} ({LEAST} wanted).",
    ])
    return text, least >= LEAST


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--folder", default="/dev/shm", help="where a scratch folder for the files is made")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-speeds", action="store_true", help="leave `auto` out")
    parser.add_argument("--no-small", action="store_true", help="leave the small products out")
    parser.add_argument("-o", type=pathlib.Path, metavar="FILE.md")
    args = parser.parse_args()
    args.program = pathlib.Path(args.program).resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-bench-", dir=args.folder))
    sections = {}
    try:
        if not args.no_small:
            sections["gpu-small"] = small_text(args, *measure(args, folder))
        if not args.no_speeds:
            sections["gpu-auto"] = speeds_text(args, speeds(args, folder))
    finally:
        shutil.rmtree(folder)
    for name, (text, _) in sections.items():
        print(text)
        if args.o:
            report.write_section(name, text, args.o)
    sys.exit(0 if all(reached for _, reached in sections.values()) else 1)


if __name__ == "__main__":
    main()
