"""Running tessera from tests: one function that starts it with or without mpirun, ends it when it hangs, and checks its
exit code; and a scratch folder that goes away with the test."""
import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

TESSERA, MPIRUN = sys.argv[1], sys.argv[2]
FOLDER = tempfile.mkdtemp(prefix="tessera-cli-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)  # of a test that is skipped, too
os.chdir(FOLDER)
random = np.random.default_rng(5)

ENVIRONMENT = dict(
    os.environ,
    OMPI_ALLOW_RUN_AS_ROOT="1",
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    OMPI_MCA_rmaps_base_oversubscribe="1",
    OMPI_MCA_hwloc_base_binding_policy="none",
    OMPI_MCA_mpi_yield_when_idle="1",
    OMPI_MCA_pml="ob1",  # looking for networks takes longer than most runs here
    OPENBLAS_NUM_THREADS="2",
)
NOT_A_USERS = ("OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_rmaps_base_oversubscribe", "OPENBLAS_NUM_THREADS",
               "OMP_NUM_THREADS")
PLAIN = {name: value for name, value in ENVIRONMENT.items() if name not in NOT_A_USERS}  # mpirun as a user types it
# mpirun sleeps 1 s before it sends SIGTERM, and again before SIGKILL, once a rank has failed. Ranks that agreed on a
# failure are gone by then. Runs that are disturbed (an environment of their own) keep what users have, unless they name
# this.
SOON_OVER = {"OMPI_MCA_odls_base_sigkill_timeout": "0"}

# What a rank may say after any run on a busy machine (app/interrupt.c); test_stops.py provokes it.
CRASHED_AT_END = "tessera: warning: MPI crashed while it ended; the result of the run stands\n"

LONG = os.environ.get("TSR_LONG") == "1"  # tests/run.sh --long


def some(cases, count):
    """All of them in long tests, else so many, evenly from the first to the last."""
    cases = list(cases)
    if LONG or len(cases) <= count:
        return cases
    return [cases[i * (len(cases) - 1) // (count - 1)] for i in range(count)]


def two_cores():
    """Two of this process's cores that are not two threads of one; None where there are not two."""
    siblings = {}
    for core in sorted(os.sched_getaffinity(0)):
        with open(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list") as file:
            siblings.setdefault(file.read(), core)
    return sorted(siblings.values())[:2] if len(siblings) >= 2 else None


class Result:
    def __init__(self, command, process):
        self.command = " ".join(command)
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr.replace(CRASHED_AT_END, "")
        self.crashed_at_end = self.err != process.stderr

    def __str__(self):
        return f"{self.command}\nexit code {self.code}\nstdout: {self.out}\nstderr: {self.err}"


def own_lines(text):
    """Lines of tessera's own; mpirun adds some."""
    return [line for line in text.replace(CRASHED_AT_END, "").splitlines() if "tessera: " in line]


def command_line(args, ranks=0):
    """ranks = 0: without mpirun."""
    launcher = [MPIRUN, "-n", str(ranks)] if ranks else []
    return launcher + [TESSERA] + [str(a) for a in args]


def run(*args, ranks=0, code=0, timeout=60, environment=None):
    """Runs tessera; the exit code must be `code`, and failures must say so in one line that begins with "tessera:
    error: "."""
    command = command_line(args, ranks)
    more = environment if environment is not None else SOON_OVER if ranks and code else {}
    # In a session of its own: no bars on the terminal of whoever runs the tests.
    process = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=dict(ENVIRONMENT, **more),
                             start_new_session=True)
    result = Result(command, process)
    assert result.code == code, f"expected exit code {code}: {result}"
    errors = [line for line in result.err.splitlines() if line.startswith("tessera: error: ")]
    assert len(errors) == (1 if code else 0), f"{len(errors)} error lines: {result}"
    result.error = errors[0] if errors else ""
    for line in result.err.partition(result.error + "\n")[2].splitlines() if code == 3 else ():
        if not line.startswith(" "):
            break
        result.error += " " + line.strip()  # what a check found is wrapped
    return result


def fails(*args, code, says, **more):
    """The error must contain each text of `says`."""
    result = run(*args, code=code, **more)
    for text in [says] if isinstance(says, str) else says:
        assert text in result.error, f"'{text}' is not in: {result}"
    return result


def write(name, data, dataset="C", **how):
    with h5py.File(name, "a") as file:
        if dataset in file:
            del file[dataset]
        file.create_dataset(dataset, data=data, **how)
    return f"{name}:/{dataset}"


def read(name, dataset="C"):
    with h5py.File(name, "r") as file:
        return file[dataset][...]


def leftovers():
    """Files an unfinished output leaves: none are allowed after tessera ended by itself."""
    return [name for name in os.listdir(".") if "tessera" in name or name.startswith(".")]


def start_long_run(ranks=2, options=(), environment=None):
    """A product of big.h5 in small panels into c.h5, which takes long enough to be ended on the way; returns once its
    temporary file is there."""
    command = command_line(["multiply", "big.h5", "big.h5", "-o", "c.h5", "--force", "--device", "cpu", "--panel", "1",
                            "--kernel", "reference", *options], ranks)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=dict(ENVIRONMENT, **(environment or {})), start_new_session=True)
    for _ in range(600):
        if process.poll() is not None:
            raise AssertionError(f"the run ended early: {process.communicate()}")
        if [name for name in os.listdir(".") if name.startswith(".c.h5")]:
            time.sleep(0.3)
            return process
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    raise AssertionError(f"no temporary file: {os.listdir('.')}, {process.communicate()}")


def ranks_of(process):
    """Children of mpirun."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return [int(child) for child in file.read().split()]


def integers(rows, cols, dtype="f4"):
    return random.integers(-4, 5, size=(rows, cols)).astype(dtype)


def check_chunked(a, b, *options, ranks=0, chunks, gzip=None, shuffle=False, out="c.h5", transposed=False):
    """multiply of a.h5 and b.h5, which hold the integers a and b: C is exact and stored as asked for. Returns the bytes
    it takes."""
    run("multiply", "a.h5", "b.h5", "-o", out, "--force", "--device", "cpu", *options, ranks=ranks)
    with h5py.File(out) as file:
        c = file["C"]
        found = (c.chunks, c.compression, c.compression_opts, c.shuffle, c.fletcher32)
        assert found == (chunks, "gzip" if gzip is not None else None, gzip, shuffle, False), \
            f"{options} on {ranks} ranks: {found}"
        expected = a.astype("f8") @ b.astype("f8")
        assert np.array_equal(c[:].T if transposed else c[:], expected), f"{options} on {ranks} ranks: wrong values"
        assert c.id.get_num_chunks() == -(-c.shape[0] // chunks[0]) * -(-c.shape[1] // chunks[1]), "chunks are missing"
        assert "tessera_incomplete" not in c.attrs and "history" in c.attrs and "C.run" in file, list(file)
        size = c.id.get_storage_size()
    assert not leftovers(), leftovers()
    return size


def main(names):
    """Runs every test_* function of the caller's globals; the first failed assertion ends the program with 1."""
    for name, test in list(names.items()):
        if name.startswith("test_") and callable(test):
            test()
