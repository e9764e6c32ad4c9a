"""What the check of files costs a product from files to a file (gpu_check_files.sh)."""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import report

CHECKS = ("off", "device", "files")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--shm", default="/dev/shm")
    parser.add_argument("--cases", default="f64:28000,f32:24000", help="TYPE:N, with commas between them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("-o", type=pathlib.Path, default=report.page(__file__), metavar="FILE.md")
    args = parser.parse_args()
    rows, reached, device = [], True, ""
    for case in args.cases.split(","):
        kind, size = case.split(":")
        with tempfile.TemporaryDirectory(dir=args.shm) as name:
            folder = pathlib.Path(name)
            for matrix, seed in (("a", 1), ("b", 2)):
                report.generate(args.program, folder / f"{matrix}-{kind}.h5", f"{size}x{size}", kind, seed,
                                "--distribution", "normal")
            seconds = {check: [] for check in CHECKS}
            alone = []
            measure(args, folder, kind, "off")  # which warms up
            for _ in range(args.rounds):  # in turns
                for check in CHECKS:
                    found, record = measure(args, folder, kind, check)
                    seconds[check].append(found)
                    if check == "files":
                        alone.append(record["check_seconds"])
            device = record["ranks"][0]["device"]
        plain = statistics.median(seconds["off"])
        for check in CHECKS:
            median = statistics.median(seconds[check])
            ratio = median / plain
            reached = reached and (not WANTED[check] or ratio <= WANTED[check])
            rows.append([kind, size, check, f"{median:.3f}", f"{min(seconds[check]):.3f}", f"{max(seconds[check]):.3f}",
                         f"{statistics.median(alone):.3f}" if check == "files" else "", f"{ratio:.3f}", WANTED[check]])
        text = "\n\n".join([
            f"Normal elements, files in {args.shm}; {device}, {report.today()}, commit {report.commit()}: seconds "
            f"from the first read to the end of the check, medians of {args.rounds} runs each, in turns.",
            report.table(["type", "n", "--check", "s", "least", "most", "s of the check", "of `off`", "wanted at most"],
                         rows)])
        report.write_section("gpu-check-files", text, args.o)  # what there is, if it ends early
    print(text)
    sys.exit(0 if reached else 1)


main()
