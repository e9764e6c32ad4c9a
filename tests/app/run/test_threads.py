"""Threads, buffers and addresses that are not to be had: every run ends soon, with the right result or with one line
that says what to do, and what was there before stays. TSR_FAILING_THREADS is failing_threads.c."""
import functools
import os
import subprocess

import numpy as np

import lib

MIB = 1 << 20
LIBRARY = os.environ["TSR_FAILING_THREADS"]
a = lib.integers(700, 700)
product = a.astype("f8") @ a.astype("f8")
lib.write("a.h5", a, "A")
lib.write("p.h5", product.astype("f4"))
MULTIPLY = ["multiply", "a.h5", "a.h5", "-o", "c.h5", "--force", "--quiet", "--device", "cpu"]
CHECK = ["verify", "a.h5", "a.h5", "p.h5", "--quiet"]
GENERATE = ["generate", "-o", "g.h5:/G", "--shape", "2000x2000", "--force", "--quiet"]


def reset():
    """What a failed run must leave as it is."""
    for name in ("c.h5", "g.h5"):
        if os.path.exists(name):
            os.remove(name)
    lib.write("c.h5", np.full((2, 2), 7))
    lib.write("g.h5", np.full((2, 2), 7), "G")


def patience():
    """Seconds for a run that takes less than one: more where others want the cores, too, so that none is called
    hanging for their sake."""
    return 20 * max(1, 2 * os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def outcome(args, ranks=0, prefix=(), environment=None):
    """True: done, with the right result. False: one line of error, nothing changed. Anything else fails the test."""
    reset()
    launcher = [lib.MPIRUN, "-n", str(ranks)] if ranks else []
    command = [*launcher, *prefix, lib.TESSERA, *args]
    process = subprocess.run(command, capture_output=True, text=True, timeout=patience(), start_new_session=True,
                             env=dict(lib.ENVIRONMENT, **(environment or {})))
    result = lib.Result(command, process)
    of_mpi = "mpi_init" in result.err.lower() or "in opal_" in result.err  # where MPI cannot start it ends the ranks
    assert result.code in (0, 2 if of_mpi else 1, 1), result
    assert not lib.leftovers(), (result, lib.leftovers())
    errors = [line for line in result.err.splitlines() if line.startswith("tessera: error: ")]
    c, g = lib.read("c.h5"), lib.read("g.h5", "G")
    if result.code == 0:
        assert not errors, result
        assert args[0] != "multiply" or np.array_equal(c, product), result
        assert args[0] != "generate" or g.shape == (2000, 2000), result
        return True
    assert len(errors) == 1 or (not errors and of_mpi), result
    assert "BLAS" not in result.err or "--threads" in result.err or "--kernel reference" in result.err, result
    assert np.array_equal(c, np.full((2, 2), 7)) and np.array_equal(g, np.full((2, 2), 7)), result
    return False


def limited(mib, option="v"):
    """Before the program, of each rank: the shell's limit, in KiB."""
    return ["sh", "-c", f'ulimit -{option} {int(mib * 1024)}; exec "$0" "$@"']


@functools.cache
def least_mib(ranks):
    """The least limit under which MPI starts and one element is written: a build with CUDA kernels is larger itself.
    Of several ranks, the least above which none fails: MPI starts with less, but where the memory that
    ranks share only just does not fit it waits for ever, on its own."""
    launcher = ["timeout", "5", lib.MPIRUN, "-n", str(ranks)] if ranks else []
    command = [lib.TESSERA, "generate", "-o", "least.h5", "--shape", "1x1", "--force", "--quiet"]
    alone = least_mib(0) if ranks else 0

    def starts(mib):
        run = [*launcher, *limited(mib), *command]
        return all(subprocess.run(run, capture_output=True, env=lib.ENVIRONMENT).returncode == 0
                   for _ in range(3 if ranks else 1))

    if ranks:
        return 4 + next(mib for mib in range(alone + 80, alone, -4) if not starts(mib))
    return next(mib for mib in range(20, 500, 2) if starts(mib))


def sweep(args, sizes, ranks=0, option="v"):
    """Limits in MiB, the first too small; of addresses beyond what the smallest run takes."""
    least = least_mib(ranks) if option == "v" else 0
    done = [outcome(args, ranks, limited(least + mib, option)) for mib in sizes]
    assert not done[0] and done[-1], f"{args} on {ranks} ranks: {list(zip(sizes, done))}"


def test_addresses():
    sweep(MULTIPLY, [60, *lib.some(range(110, 611, 50), 4), 960, 2000, 4000])
    sweep(MULTIPLY + ["--kernel", "reference"], [20, 360])
    sweep(MULTIPLY + ["--verify"], [210, 4000], ranks=2)
    sweep(MULTIPLY, [60, 260, 660], ranks=2)
    sweep(CHECK, [10, 40, 360])
    assert outcome(CHECK, 2, limited(least_mib(2) + 360)), "what MPI of two ranks starts with does for a check"
    sweep(GENERATE, [10, 360])
    sweep(GENERATE, [10, 360], ranks=2)
    sweep(MULTIPLY, [50, 200, 300, 600], option="d")


def test_no_room_to_spare():
    """Where OpenBLAS's buffer would just fit, what is allocated before it must fit as well: it tries for ever."""
    low, high = 1024 * least_mib(0), 1024 * (least_mib(0) + 610)
    while high - low > 8:  # KiB; each run ends, which is what is looked at
        limit = (low + high) // 2
        reset()
        command = [*limited(limit / 1024), lib.TESSERA, *MULTIPLY]
        process = subprocess.run(command, capture_output=True, text=True, timeout=patience(), env=lib.ENVIRONMENT)
        assert process.returncode in (0, 1), process
        low, high = (limit, high) if "OpenBLAS needs" in process.stderr else (low, limit)
    for limit in range(low - 256, low + 512, 32):
        outcome(MULTIPLY, prefix=limited(limit / 1024))


def test_plans_are_bounded():
    """A plan is made for what the limit leaves, not for what the machine has."""
    def limit(mib):
        command = [*limited(mib), lib.TESSERA, "multiply", "a.h5", "a.h5", "-o", "d.h5", "--dry-run", "--device", "cpu"]
        text = subprocess.run(command, capture_output=True, text=True, check=True, env=lib.ENVIRONMENT).stdout
        line = next(line for line in text.splitlines() if "host in all" in line)
        number, unit = line.split(" of ")[1].split()
        return float(number) * {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[unit]

    small, large = limit(700), limit(900)
    assert 20 * MIB < small < 500 * MIB, small
    assert small + 100 * MIB < large < 700 * MIB, (small, large)
    prefix = limited(900)
    for option in ("--host-memory", "--memory"):
        command = [*prefix, lib.TESSERA, *MULTIPLY, option, "800M"]
        process = subprocess.run(command, capture_output=True, text=True, env=lib.ENVIRONMENT)
        assert process.returncode == 1 and process.stderr.count("\n") == 1, process
        assert f"{option} 838860800: need 838.86 MB, have " in process.stderr and "ulimit -v" in process.stderr, process
        allowed = process.stderr.split(f"use {option} ")[1].split()[0]
        assert outcome(MULTIPLY + [option, str(int(allowed) - MIB)], prefix=prefix), allowed


def fail_each(args, once, ranks=0, first=1):
    """The Nth thread cannot be had, for all N until that many are not asked for."""
    preload = {"LD_PRELOAD": LIBRARY}
    if ranks:
        preload["TSR_FAIL_RANK"] = "1"
    if once:
        preload["TSR_FAIL_ONCE"] = "1"
    failed = successes = 0
    for number in range(first, 60):
        if outcome(args, ranks, environment=dict(preload, TSR_FAIL_THREAD=str(number))):
            successes += 1
        else:
            failed, successes = failed + 1, 0
        if successes == (5 if once else 1) and failed > 0:
            return
        assert failed > 0 or number < 10, f"no thread was missed: {args}"
    raise AssertionError(f"more threads than these are started: {args}")


def test_threads():
    fail_each(MULTIPLY, once=False)
    fail_each(MULTIPLY, once=True)
    fail_each(MULTIPLY, once=False, ranks=2, first=2)
    for args in CHECK, GENERATE:
        for number in 1, 2, 3:
            assert outcome(args, environment={"LD_PRELOAD": LIBRARY, "TSR_FAIL_THREAD": str(number)}), \
                "threads are a help"


lib.main(globals())
