"""Runs tessera multiply as README starts it and with --bind-to none, in turns on the same files; prints medians and
their ratio (gpu_binding.sh)."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

import report

FORMS = {"documented": [], "unbound": ["--bind-to", "none"]}
RATIO_ALLOWED = 1.1  # of the run's seconds
STARTUP_ALLOWED = 0.2  # seconds more
SECONDS = {"run": "seconds", "start-up": "setup_seconds", "whole process": "whole_seconds"}  # what, in the figures


def run(command):
    """Seconds of the whole process, where nobody has asked for a binding but the command."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("OMPI_MCA_hwloc_base_binding")
    }
    start = time.monotonic()
    report.run(command, env=environment)
    return time.monotonic() - start


def tessera(args, form, *arguments):
    return run(["mpirun", *FORMS[form], "-n", args.ranks, args.program, *arguments])


def multiply(args, folder, form):
    log, output = folder / "log.json", folder / "C.h5"
    output.unlink(missing_ok=True)
    matrices = [folder / "A.h5", folder / "B.h5", "-o", output]
    whole = tessera(args, form, "multiply", *matrices, "--device", args.device, "--log", log)
    record = json.loads(log.read_text())
    shown = ("device", "cores", "threads", "io_threads")
    ranks = [{name: rank[name] for name in shown} for rank in record["ranks"]]
    return {**{name: record[name] for name in ("seconds", "setup_seconds")}, "whole_seconds": whole, "ranks": ranks}


def measure(args, folder):
    """The runs of each form. The first turn warms up and is not counted; the form that begins a turn ends the next."""
    shape = f"{args.size}x{args.size}"
    for seed, name in enumerate("AB", 1):
        matrix = ["-o", f"{folder}/{name}.h5:/{name}", "--shape", shape, "--type", "f32", "--seed", seed]
        tessera(args, "documented", "generate", *matrix)
    runs = {form: [] for form in FORMS}
    for turn in range(args.turns + 1):
        for form in sorted(FORMS, reverse=turn % 2 == 1):
            one = multiply(args, folder, form)
            seconds = [f"{what} {one[name]:.3f} s" for what, name in SECONDS.items()]
            print(f"turn {turn}: {form}: {', '.join(seconds)}", flush=True)
            if turn > 0:
                runs[form].append(one)
    return runs


def summary(args, runs):
    figures = {name: getattr(args, name) for name in ("ranks", "size", "turns", "folder")}
    device = runs["documented"][0]["ranks"][0]["device"]
    figures.update(device=device, date=report.today(), commit=report.commit(), runs=runs)
    for form in FORMS:
        figures[form] = {name: statistics.median(one[name] for one in runs[form]) for name in SECONDS.values()}
    figures["ratio"] = figures["documented"]["seconds"] / figures["unbound"]["seconds"]
    figures["startup_more_seconds"] = figures["documented"]["setup_seconds"] - figures["unbound"]["setup_seconds"]
    figures["reached"] = figures["ratio"] <= RATIO_ALLOWED and figures["startup_more_seconds"] <= STARTUP_ALLOWED
    return figures


def text(figures):
    rows = []
    for form, options in FORMS.items():
        runs, medians = figures["runs"][form], figures[form]
        spread = sorted(one["seconds"] for one in runs)
        command = " ".join(["mpirun", *options, "-n", str(figures["ranks"]), "tessera multiply"])
        seconds = [f"{medians[name]:.3f}" for name in SECONDS.values()]
        rows.append([f"`{command}`", *seconds, f"{spread[0]:.3f}–{spread[-1]:.3f}", runs[0]["ranks"][0]["cores"]])
    device, more = figures["device"].partition(" #")[0], figures["startup_more_seconds"]
    return "\n\n".join([
        f"{figures['size']}² fp32, files to file in {figures['folder']}, {figures['ranks']} ranks on {device}, "
        f"{figures['date']}, commit {figures['commit']}: medians of {figures['turns']} turns.",
        report.table(["what", *(f"{what} s" for what in SECONDS), "range of runs s", "cores of rank 0"], rows),
        f"**Ratio of the runs: {figures['ratio']:.3f}** (at most {RATIO_ALLOWED}); start-up {more:+.3f} s (at most "
        f"+{STARTUP_ALLOWED}).",
    ])


def write(file, figures):
    if file.suffix == ".json":
        file.write_text(json.dumps(figures, indent=2) + "\n")
    elif file.exists():
        report.write_section("gpu-binding", text(figures), file)
    else:
        file.write_text(text(figures) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--size", type=int, default=40000)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--folder", default="/dev/shm", help="where a scratch folder for the files is made")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("-o", type=pathlib.Path, metavar="FILE.json|FILE.md")
    args = parser.parse_args()
    if args.o and args.o.suffix not in (".json", ".md"):
        parser.error(f"-o {args.o}: FILE.json or FILE.md")
    if args.o and args.o.suffix == ".md" and args.o.exists():
        try:
            report.replace_section(args.o.read_text(), "gpu-binding", "")
        except ValueError as error:
            parser.error(f"-o {args.o}: {error}: name a page with them, or a new file")
    args.program = pathlib.Path(args.program).resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-bench-", dir=args.folder))
    try:
        figures = summary(args, measure(args, folder))
    finally:
        shutil.rmtree(folder)
    print(text(figures))
    if args.o:
        write(args.o, figures)
    sys.exit(0 if figures["reached"] else 1)


if __name__ == "__main__":
    main()
