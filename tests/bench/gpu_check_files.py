"""What the check of files costs a product from files to a file (gpu_check_files.sh)."""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import report

SECTION = "gpu-check-files"
WANTED = {"off": "", "device": 1.02, "files": 1.5}


def measure(args, folder, kind, check):
    """Seconds of one run, the check's own among them, and its record."""
    log = folder / "run.json"
    report.run([args.program, "multiply", folder / f"a-{kind}.h5", folder / f"b-{kind}.h5", "-o", folder / "c.h5",
                "--force", "--device", args.device, "--check", check, "--quiet", "--log", log])
    record = json.loads(log.read_text())
    if check == "files" and "as the device read" not in record["check"]:
        sys.exit(f"the device did not check the files: {record['check']}")
    return record["seconds"] + record["check_seconds"], record


HEADER = ["type", "n", "--check", "s", "least", "most", "s of the check", "of `off`", "wanted at most", "runs", "date",
          "commit"]


def case_rows(args, folder, kind, size, checks):
    """Rows of one type and size, the device, and whether all is reached. A run is compared with that of its round."""
    for matrix, seed in (("a", 1), ("b", 2)):
        report.generate(args.program, folder / f"{matrix}-{kind}.h5", f"{size}x{size}", kind, seed, "--distribution",
                        "normal")
    seconds = {check: [] for check in checks}
    alone, rows, reached = [], [], True
    measure(args, folder, kind, "off")  # which warms up
    for _ in range(args.rounds):  # in turns
        for check in checks:
            found, record = measure(args, folder, kind, check)
            seconds[check].append(found)
            if check == "files":
                alone.append(record["check_seconds"])
    for check in checks:
        ratio = statistics.median(it / plain for it, plain in zip(seconds[check], seconds["off"]))
        reached = reached and (not WANTED[check] or ratio <= WANTED[check])
        rows.append([kind, size, check, f"{statistics.median(seconds[check]):.3f}", f"{min(seconds[check]):.3f}",
                     f"{max(seconds[check]):.3f}", f"{statistics.median(alone):.3f}" if check == "files" else "",
                     f"{ratio:.3f}", WANTED[check], args.rounds, report.today(), report.commit()])
    return rows, record["ranks"][0]["device"], reached


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--shm", default="/dev/shm")
    parser.add_argument("--cases", default="f64:28000,f32:24000", help="TYPE:N, with commas between them")
    parser.add_argument("--checks", default="device,files", help="beside off")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("-o", type=pathlib.Path, default=report.page(__file__), metavar="FILE.md")
    args = parser.parse_args()
    checks = ["off", *args.checks.split(",")]
    all_reached = True
    for case in args.cases.split(","):
        kind, size = case.split(":")
        with tempfile.TemporaryDirectory(dir=args.shm) as name:
            rows, device, reached = case_rows(args, pathlib.Path(name), kind, size, checks)
        all_reached = all_reached and reached
        there = report.rows(report.section(args.o.read_text(), SECTION)) if args.o.exists() else []
        text = "\n\n".join([
            f"Normal elements, files in {args.shm}; {device}: seconds from the first read to the end of the check, "
            "medians of so many runs, in turns, and what they are of those without.",
            report.table(HEADER, report.merge(there, rows, 3))])
        report.write_section(SECTION, text, args.o)  # what there is, if it ends early
    print(text)
    sys.exit(0 if all_reached else 1)


main()
