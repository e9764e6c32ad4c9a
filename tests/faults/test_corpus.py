"""Broken files walk info, multiply, verify and compare: each ends by itself in 20 s, with a code of its own and one
line of error, and what sanitizers see of tessera's own code is nothing.

Usage: test_corpus.py TESSERA MPIRUN [--count N] [--only REGEX] [--keep FOLDER] [--report]
TESSERA is built with sanitizers; TSR_FAULT_SEED chooses the mutations; --report writes docs/reliability.md."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

import corpus
import injection
import known

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import report

Run = collections.namedtuple("Run", "file command ranks")


def commands(file):
    """What is walked. Names without a path: tessera looks for the matrix."""
    if file.endswith(".json"):
        return [Run(file, ["info", file], 1)]
    one = file + "[0]" if "-cube" in file else file
    multiply = ["multiply", one, "good-b.h5", "-o", "OUT.h5", "--device", "cpu", "--threads", "2"]
    runs = [Run(file, ["info", file], 1), Run(file, multiply, 1),
            Run(file, ["verify", one, "good-b.h5", "good-c.h5"], 1), Run(file, ["compare", one, one], 1),
            Run(file, ["multiply", "good-a.h5", "good-b.h5", "-o", "INTO.h5:/new", "--device", "cpu"], 1)]
    if re.match(r"(tree|dims|chunk|cycles|huge)|.*-cube", file):
        runs.append(Run(file, multiply, 2))
    # it would: 2^62 elements
    return [run for run in runs if run.command[0] != "compare" or not file.startswith("huge")]


class Walk:
    def __init__(self, program, mpirun, root):
        self.program, self.mpirun, self.root = program, mpirun, root

    def check(self, run):
        """(what is wrong or "", how it ended)"""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.root))
        for name in (run.file, "good-a.h5", "good-b.h5", "good-c.h5"):
            os.link(self.root / name, folder / name)
        command = list(run.command)
        if "INTO.h5:/new" in command:
            shutil.copy(self.root / run.file, folder / "INTO.h5")
        before = set(os.listdir(folder))
        # Signals end the process as they do without sanitizers; reports of these go to files of their own.
        log = f"log_path={folder}/report:log_exe_name=1:"
        asan = log + "detect_leaks=0:handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigfpe=0"
        asan += ":max_allocation_size_mb=4096:allocator_may_return_null=1"
        variables = dict(injection.environment(), ASAN_OPTIONS=asan,
                         UBSAN_OPTIONS=log + "halt_on_error=1:print_stacktrace=1")
        launcher = [self.mpirun, "-n", str(run.ranks)] if run.ranks > 1 else []
        process = subprocess.Popen([*launcher, self.program, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, cwd=folder, env=variables, start_new_session=True)
        try:
            out, err = process.communicate(timeout=injection.SECONDS)
            code = process.returncode
        except subprocess.TimeoutExpired:
            injection.end(process)
            out, err = process.communicate()
            code = None
        out, err = out.decode(errors="replace"), err.decode(errors="replace")
        wrong = judge(folder, before, code, out, err)
        shutil.rmtree(folder, ignore_errors=True)
        return wrong, code, err


def judge(folder, before, code, out, err):
    reports = {path.name: path.read_text(errors="replace") for path in folder.glob("report.*")}
    reports = {name: text for name, text in reports.items() if not is_refusal(text)}
    errors = [line for line in err.splitlines() if line.startswith("tessera: error: ")]
    # libhdf5 may read out of place in the process that describes files, which is there for that; tessera's code may
    # not.
    seen = [name for name, text in reports.items() if not name.startswith("report.tessera-describe") or is_own(text)]
    if code is None:
        return f"hangs: not done after {injection.SECONDS:.0f} s"
    if code < 0 or code > 128 or injection.SIGNAL.search(err):
        return f"ended by a signal, code {code}"
    if seen:
        return "sanitizer: " + next((line for line in reports[seen[0]].splitlines() if "ERROR" in line or
                                     "error:" in line), "?")
    if code not in (0, 1, 2, 3):
        return f"exit code {code}"
    left = {name for name in os.listdir(folder) if not name.startswith("report.")} - before - {"OUT.h5"}
    if left:
        return f"left behind: {sorted(left)}"
    if code and (folder / "OUT.h5").exists():
        return "failed, but C is there"
    if len(errors) != (1 if code else 0):
        return f"exit code {code} and {len(errors)} lines of error"
    if injection.LOUD.search(err):
        return f"more than its one line: {injection.LOUD.search(err)[0]}"
    bad = re.search(r"[\x00-\x08\x0b-\x1f\x7f]", (out + err).replace("\r", ""))
    return f"control character {bad[0]!r} on the terminal" if bad else ""


def is_refusal(text):
    """Whether all that is said is that more memory was asked for than there may be."""
    return "WARNING: AddressSanitizer failed to allocate" in text and not re.search(r"ERROR: |runtime error: ", text)


def is_own(text):
    """Whether the first frame with a place in a file, below the sanitizers' own, is in tessera's sources."""
    frames = re.findall(r"^ *#\d+ 0x[0-9a-f]+ (?:in \S+ )?(.*)$", text, re.M)
    frames = [frame for frame in frames if not re.search(r"lib[alu]*san|sanitizer_common", frame)]
    return not frames or bool(re.match(r"\S*/(app|io|kernels|mpi)/", frames[0]))


OUTCOMES = ("read", "one line", "check failed", "known", "wrong")
HEADER = ["made by", "files", "runs", *OUTCOMES]


def hand_of(file):
    """What was done to a file: a mutation, or by hand."""
    if file.endswith(".json"):
        return "broken log"
    if file.endswith(".npy"):
        return "broken .npy"
    hand = file[:-len(".h5")].rpartition("-")[2]
    return hand if hand in corpus.HANDS and file[0].isdigit() else "hand"


def table_of(counts, files):
    made = collections.Counter(hand_of(file) for file in files)
    rows = []
    for hand in sorted({hand for hand, _ in counts}):
        outcomes = [counts[hand, outcome] for outcome in OUTCOMES]
        rows.append([hand, made[hand], sum(outcomes), *outcomes])
    return rows + [["all", *(sum(row[i] for row in rows) for i in range(1, len(HEADER)))]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program"), parser.add_argument("mpirun")
    parser.add_argument("--count", type=int, default=100 if os.environ.get("TSR_LONG") == "1" else 20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep"), parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    seed = int(os.environ.get("TSR_FAULT_SEED", "12"))
    root = pathlib.Path(tempfile.mkdtemp(prefix="corpus-"))
    try:
        began = time.monotonic()
        scratch = root / "scratch"
        scratch.mkdir()
        b = np.ones((corpus.COLS, 6), "f4")
        for name, data in (("a", corpus.DATA), ("b", b), ("c", corpus.DATA @ b)):
            with h5py.File(root / f"good-{name}.h5", "w") as file:
                file["C"] = data
        files = dict(corpus.handmade(scratch))
        files.update(corpus.mutated(scratch, seed, options.count))
        files.update(corpus.compressed(scratch, lambda *args: subprocess.run(
            [options.program, *map(str, args)], env=dict(injection.environment(), ASAN_OPTIONS="detect_leaks=0"),
            stderr=subprocess.DEVNULL, timeout=injection.SECONDS).returncode == 0, seed, max(2, options.count // 30)))
        files.update(corpus.logs(seed, 20))
        files.update(corpus.arrays(seed, min(40, options.count // 2)))
        runs = []
        for name, data in files.items():
            (root / name).write_bytes(data)
            runs += [run for run in commands(name) if re.search(options.only, name)]
        print(f"{len(files)} files, {len(runs)} runs, TSR_FAULT_SEED={seed}", flush=True)
        walk, counts = Walk(options.program, options.mpirun, root), collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            for run, (why, code, err) in zip(runs, pool.map(walk.check, runs)):
                outcome = {0: "read", 3: "check failed"}.get(code, "one line")
                if why:
                    text = f"{' '.join(run.command)} ({run.file}, {run.ranks} rank(s)): {why} [{err.strip()[:300]}]"
                    outcome = "known" if known.is_known(text) else "wrong"
                    print(f"{outcome.upper()} {text}", flush=True)
                    if options.keep:
                        shutil.copy(root / run.file, options.keep)
                counts[hand_of(run.file), outcome] += 1
        rows = table_of(counts, files)
        for row in [HEADER, *rows]:
            print(f"{row[0]:14s}" + "".join(f"{cell!s:>14s}" for cell in row[1:]))
        print(f"{rows[-1][-1]} wrong ends of {len(runs)}, {time.monotonic() - began:.0f} s")
        if options.report:
            said = f"Commit {report.commit()}, {report.today()}, seed {seed}, {len(files)} files."
            report.write_section("corpus", f"{said}\n\n{report.table(HEADER, rows)}",
                                 report.ROOT / "docs" / "reliability.md")
        sys.exit(1 if rows[-1][-1] or not runs else 0)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
