"""Every end of tessera when one call of CUDA or of NCCL fails, at once or later: a right result or one line of error,
what was there intact, nothing left behind, no signal, in 20 s. The program has CUDA's own device and NCCL's own
transport, over a runtime and a library of the tests (faults.h). A seeded sample, or with --all each failure. What never
ends in NCCL is a stall: exit code 74, and the communicator is aborted.

Usage: test_device.py TESSERA_FAULTS MPIRUN DESCRIBE FAKES [--all] [--report] [--scenes REGEX] [--families REGEX]
                      [--ranks N] [--count N] [--workers N]
TSR_FAULT_SEED chooses the sample, TSR_FAULT_SECONDS what counts as a hang; --report writes docs/reliability.md."""
import errno
import os
import pathlib
import shutil
import sys

import injection
import test_injection
from injection import Fault, Placement, Scene

PLACEMENTS = tuple(Placement(ranks, victim, "tessera_faults") for ranks, victim in ((1, 0), (2, 0), (2, 1), (3, 2)))
FAULTS = [Fault(family, errno.EIO, stays) for family in ("cuda", "nccl") for stays in (0, 1, 2)]
WORKS = ["--device", "cuda", "--panel", "8"]


def make_scenes():
    a, b = "contiguous-a.h5", "contiguous-b.h5"
    files = {a: a, b: b}
    return [Scene("multiply --force", {**files, "c.h5": "contiguous-earlier.h5"},
                  ["multiply", a, b, *WORKS, "-o", "c.h5", "--force", "--log", "run.json"], "product"),
            Scene("multiply to doubles, verify", files,
                  ["multiply", a, b, *WORKS, "-o", "c.h5", "--type", "f64", "--verify", "--trace", "t.json"],
                  "product"),
            Scene("multiply to chunks, split k", files,
                  ["multiply", a, b, *WORKS, "-o", "c.h5", "--chunk", "8x8", "--grid", "1x1xRANKS"], "product"),
            Scene("multiply with C0", {**files, "c0.h5": "zeros.h5"},
                  ["multiply", a, b, *WORKS, "-o", "c.h5", "--add", "c0.h5", "--grid", "RANKSx1"], "product")]


class Bench(injection.Bench):
    def run(self, scene, placement, fault=None, call=1):
        command = [word.replace("RANKS", str(placement.ranks)) for word in scene.command]
        return super().run(scene._replace(command=command), placement, fault, call)


def check_stalls(bench, every):
    """A collective call that never ends, on either rank, and a start of NCCL that never does. Not `every`: the last of
    each rank."""
    wrong = []
    scene = make_scenes()[0]
    scene = scene._replace(command=[*scene.command, "--stall-timeout", "0.5"])
    for victim in (0, 1):
        placement = Placement(2, victim, "tessera_faults")
        calls = bench.run(scene, placement).calls[injection.FAMILIES.index("nccl")]
        for call in range(1 if every else calls - 1, calls):  # the last ends a communicator
            ended = bench.run(scene, placement, Fault("nccl", errno.EIO, 3), call)
            errors = injection.errors_of(ended)
            after = injection.content(ended.folder)
            same = all(after.get(name) == ended.before[name] for name in ended.before)
            if ended.function == "ncclGetUniqueId":  # is nothing that waits
                pass
            elif ended.code != 74 or len(errors) != 1 or "the job stands still" not in errors[0] or not same:
                wrong.append(f"rank {victim}, {ended.function}, call {call}: {ended}")
            elif ended.function != "ncclCommInitRank" and ended.aborts == 0:
                wrong.append(f"rank {victim}, {ended.function}, call {call}: nobody aborted NCCL")
            shutil.rmtree(ended.folder)
    return wrong


def main():
    parser = test_injection.make_parser()
    parser.add_argument("program"), parser.add_argument("mpirun"), parser.add_argument("describe")
    parser.add_argument("fakes")
    options = parser.parse_args()
    asan = os.environ.get("ASAN_OPTIONS", "")
    variables = {"TESSERA_DESCRIBE": options.describe, "LD_LIBRARY_PATH": options.fakes,
                 "ASAN_OPTIONS": f"{asan}:detect_leaks=0"}  # MPI's own
    bench = Bench(options.program, options.mpirun, variables, FAULTS)
    try:
        failed = test_injection.run_cases(bench, make_scenes(), PLACEMENTS, options)
        stalls = check_stalls(bench, options.all)
        for text in stalls:
            print("WRONG", text)
        sys.exit(1 if failed or stalls else 0)
    finally:
        bench.close()


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    main()
