"""Every end of tessera when one call of the system fails: a right result or one line of error, what was there intact,
nothing left behind, no signal, in 20 s. A seeded sample of 120 failures (200 in long tests) and those of known.py, such
as what once went wrong, or with --all each of them.

Usage: test_injection.py TESSERA MPIRUN INJECTOR [--all] [--report] [--scenes REGEX] [--families REGEX] [--ranks N]
                         [--count N] [--workers N] [--keep FILE]
With --keep a run that was ended goes on with what is left, of the same program; wrong ends are run again.
TSR_FAULT_SEED chooses the sample, TSR_FAULT_SECONDS what counts as a hang; --report writes docs/reliability.md."""
import argparse
import collections
import concurrent.futures
import itertools
import os
import pathlib
import random
import re
import sys
import time

import injection
import known

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import report

OUTCOMES = ("right", "one line", "not reached", "known", "wrong")


def sample(cases, count, seed):
    """As many of each kind of fault, whatever number of calls it has."""
    chance = random.Random(seed)
    kinds = collections.defaultdict(list)
    for case in cases:
        kinds[case.fault].append(case)
    for kind in kinds.values():
        chance.shuffle(kind)
    taken, kinds = [], list(kinds.values())
    while len(taken) < count and any(kinds):
        for kind in kinds:
            if kind and len(taken) < count:
                taken.append(kind.pop())
    return taken


def row_of(case):
    return case.placement.program, case.placement.ranks, case.fault.family


def read_kept(name):
    """Outcomes of earlier runs, by what describes the case."""
    if not name or not os.path.exists(name):
        return {}
    with open(name, encoding="utf-8") as file:
        lines = [line.rstrip("\n").partition("\t") for line in file]
    return {case: outcome for outcome, _, case in lines if outcome != "wrong"}  # which are to be run again


def run_all(bench, cases, workers, keep):
    """How often each outcome was, by program, ranks and family. `keep`: see --keep."""
    kept = read_kept(keep)
    counts = collections.Counter((row_of(case), kept[injection.describe(case)]) for case in cases
                                 if injection.describe(case) in kept)
    cases = [case for case in cases if injection.describe(case) not in kept]
    with open(keep or os.devnull, "a", encoding="utf-8") as file, \
            concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for done, case, (outcome, why, ended) in zip(itertools.count(1), cases, pool.map(bench.check, cases)):
            if why:
                words = " | ".join(line for line in ended.err.splitlines() if line.startswith("tessera: "))
                text = f"{injection.describe(case)}: {why} ({ended.function} from {ended.caller}) [{words[:300]}]"
                outcome = "known" if known.is_known(text) else "wrong"
                print(f"{outcome.upper()} {text}", flush=True)
            counts[row_of(case), outcome] += 1
            file.write(f"{outcome}\t{injection.describe(case)}\n")
            file.flush()
            if done % 1000 == 0:
                print(f"{done} of {len(cases)}", flush=True)
    return counts


def table_of(counts, all_cases):
    """Rows of program, ranks, function, failures run, all there are, outcomes."""
    there = collections.Counter(row_of(case) for case in all_cases)
    rows = []
    for key in sorted(there, key=lambda key: (key[0], key[1], injection.FAMILIES.index(key[2]))):
        outcomes = [counts[key, outcome] for outcome in OUTCOMES]
        if sum(outcomes):
            rows.append([*key, sum(outcomes), there[key], *outcomes])
    return rows


HEADER = ["program", "ranks", "function", "failed", "of", *OUTCOMES]


def print_table(rows):
    for row in [HEADER, *rows, ["all", "", "", *(sum(row[i] for row in rows) for i in range(3, len(HEADER)))]]:
        print(f"{row[0]:17s}{row[1]!s:>6s} {row[2]:15s}" + "".join(f"{cell!s:>12s}" for cell in row[3:]))


def write_report(rows):
    """Rows of other runs, such as those on more ranks, stay."""
    page = report.ROOT / "docs" / "reliability.md"
    old = report.rows(report.section(page.read_text(), "faults"))
    new = [[*row, report.commit()] for row in rows]
    merged = report.merge(old, new, 3)
    total = [sum(int(row[i]) for row in merged) for i in range(3, len(HEADER))]
    report.write_section("faults", report.table([*HEADER, "commit"], [*merged]) + "\n\nIn all: "
                         + ", ".join(f"{name} {number}" for name, number in zip(HEADER[3:], total)) + ".", page)


def make_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true"), parser.add_argument("--report", action="store_true")
    parser.add_argument("--scenes", default=""), parser.add_argument("--families", default="")
    parser.add_argument("--programs", default="")
    parser.add_argument("--ranks", type=int, default=0)
    parser.add_argument("--count", type=int, default=200 if os.environ.get("TSR_LONG") == "1" else 120)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", default="", help="a file: what is in it is not run again, and what runs goes there")
    return parser


def run_cases(bench, scenes, placements, options):
    """Runs what was asked for; True when something went wrong."""
    seed = int(os.environ.get("TSR_FAULT_SEED", "12"))
    began = time.monotonic()
    scenes = [scene for scene in scenes if re.search(options.scenes, scene.name)]
    placements = [place for place in placements if options.ranks in (0, place.ranks)
                  and re.fullmatch(options.programs or ".*", place.program)]
    there = [case for case in bench.cases(scenes, placements, options.workers)
             if re.fullmatch(options.families or ".*", case.fault.family)]
    cases = there if options.all else sample(there, options.count, seed)
    always = [case for case in there if known.is_always_run(case)] if not options.all else []
    cases = always + [case for case in cases if case not in always]
    print(f"{len(cases)} of {len(there)} failures, TSR_FAULT_SEED={seed}", flush=True)
    counts = run_all(bench, cases, options.workers, options.keep)
    rows = table_of(counts, there)
    print_table(rows)
    wrong = sum(row[-1] for row in rows)
    print(f"{wrong} wrong ends of {len(cases)}, {time.monotonic() - began:.0f} s")
    if options.report:
        write_report(rows)
    return wrong > 0 or not cases


def main():
    parser = make_parser()
    parser.add_argument("program"), parser.add_argument("mpirun"), parser.add_argument("injector")
    options = parser.parse_args()
    bench = injection.Bench(options.program, options.mpirun, {"LD_PRELOAD": options.injector})
    try:
        sys.exit(1 if run_cases(bench, injection.make_scenes(), injection.PLACEMENTS, options) else 0)
    finally:
        bench.close()


if __name__ == "__main__":
    main()
