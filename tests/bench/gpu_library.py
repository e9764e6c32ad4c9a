"""What a product of matrices in memory takes by the library, beside bench multiply (gpu_library.sh)."""
import argparse
import json
import pathlib
import re
import statistics
import sys
import tempfile

import report

SELF = pathlib.Path(__file__).resolve().parent
MOST = 1.05 # of the bench: what C's calls on shared matrices may take
BLOCK = 256 # side of the blocks that matrices are dealt out in
# Name, arguments of library_calls.py, or of library_calls.c (a number), and whether it is run on several GPUs.
WAYS = (("C, shared matrices", 0, True), (f"C, block-cyclic, {BLOCK} x {BLOCK}", BLOCK, True),
        ("Python, tessera.empty", "empty", True), ("Python, NumPy", "numpy", False),
        ("Python, NumPy, new C", "new", False))


def launch(gpus):
    return ["mpirun", "-n", gpus]


def bench(args, gpus, size):
    """Seconds of a process's products but the first, which warms up; and the device."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        report.run([*launch(gpus), args.program, "bench", "multiply", "--data", "memory", "--shape", size, "--type",
                    "f32", "--kernel", args.kernel, "--repeat", args.repeat, "--quiet", "--device", args.device,
                    "--json", file.name])
        found = json.loads(pathlib.Path(file.name).read_text())
    return found["seconds"][1:], found["device"]


def calls(args, gpus, size, way, check):
    """The same of calls: what the caller waits, what the record says, and what of that is exchange of blocks."""
    own = [args.calls] if isinstance(way, int) else [sys.executable, SELF / "library_calls.py"]
    if isinstance(way, str) and gpus > 1:
        own[1:1] = ["-m", "mpi4py"]
    said = re.findall(r"^call (\S+) record (\S+)(?: exchange (\S+))?$",
                      report.run([*launch(gpus), *own, size, args.repeat, args.device, args.kernel, check, way]), re.M)
    return [[float(one[i] or 0) for one in said[1:]] for i in range(3)]


def measure(args, gpus, size):
    """Rows of one size, and whether C's calls take as little as is wanted."""
    ways = [(name, way, "off") for name, way, several in WAYS if several or gpus == 1]
    ways.append(("C, shared matrices, checked", 0, "device")) # as the library does unless told otherwise
    beside, device = [], ""
    found = {name: ([], [], []) for name, _, _ in ways}
    for _ in range(args.rounds): # in turns
        seconds, device = bench(args, gpus, size)
        beside += seconds
        for name, way, check in ways:
            for kept, new in zip(found[name], calls(args, gpus, size, way, check)):
                kept += new
    least = statistics.median(beside)
    rows = [[gpus, size, "bench multiply --data memory", f"{1e3 * least:.2f}", "", "", "1.000", "", ""]]
    reached = True
    for name, way, check in ways:
        call, record, exchange = (statistics.median(seconds) for seconds in found[name])
        wanted = way == 0 and check == "off"
        reached = reached and (not wanted or record <= MOST * least)
        rows.append([gpus, size, name, f"{1e3 * record:.2f}", f"{1e3 * exchange:.2f}" if exchange else "",
                     f"{1e3 * call:.2f}", f"{record / least:.3f}", f"{call / least:.3f}",
                     f"≤ {MOST}" if wanted else ""])
    return rows, reached, device


HEADER = ["GPUs", "n", "by", "ms by the record", "ms of exchange", "ms of a call", "record / bench", "call / bench",
          "wanted", "date", "commit"]


def page_text(args, rows, device):
    """With the rows of the page that were not measured now."""
    there = report.rows(report.section(args.o.read_text(), "gpu-library")) if args.o.exists() else []
    dated = [[*row, report.today(), report.commit()] for row in rows]
    return "\n\n".join([
        f"f32, {args.kernel}; {device}: medians of {args.rounds * (args.repeat - 1)} products each, {args.rounds} "
        "processes of each in turns. Beside the bench: what the record says (first byte read to last byte written), "
        "the exchange of blocks of matrices that are dealt out counted, and what the caller waits.",
        report.table(HEADER, report.merge(there, dated, 3))])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--calls", required=True, help="library_calls.c, compiled")
    parser.add_argument("--there", type=int, default=1, help="GPUs of this machine")
    parser.add_argument("--sizes", default="8192,16384")
    parser.add_argument("--gpus", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=6)
    parser.add_argument("--kernel", default="simt")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("-o", type=pathlib.Path, default=report.page(__file__), metavar="FILE.md")
    args = parser.parse_args()
    rows, reached, device = [], True, ""
    for gpus in (int(count) for count in args.gpus.split(",")):
        if gpus > max(1, args.there):
            print(f"left out: {gpus} GPUs, there are {args.there}")
            continue
        for size in args.sizes.split(","):
            new, good, device = measure(args, gpus, size)
            rows, reached = rows + new, reached and good
            text = page_text(args, rows, device)
            report.write_section("gpu-library", text, args.o) # what there is, if it ends early
    print(text)
    sys.exit(0 if reached else 1)


main()
