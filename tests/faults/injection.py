"""Failures of the system, one a run: what may fail, where, in which commands, and whether tessera ended as it promises.

Cases are numbered by what an undisturbed run calls, so that the same program gives the same list; a case is
(scene, placement, fault, number of the call). lib.py of tests/cli has no part here: it stops at the first surprise."""
import collections
import concurrent.futures
import errno
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import h5py
import numpy as np

SECONDS = float(os.environ.get("TSR_FAULT_SECONDS", "20"))  # a run that takes longer hangs
LAUNCHES = 5  # mpirun itself fails at one of ten of the worst
FAMILIES = ("open openat pread pwrite ftruncate fallocate fsync rename unlink stat mmap malloc posix_memalign "
            "pthread_create h5_write h5_close mpi mpi_pair cuda nccl").split()  # in the order of injector.c

# error: an errno, 0 for half of the bytes. stays: every later call fails, too; 2, 3: see faults.h.
Fault = collections.namedtuple("Fault", "family error stays")
# ranks: of the placements that it is for, 0 for all.
Scene = collections.namedtuple("Scene", "name files command outcome ranks", defaults=(0,))
Placement = collections.namedtuple("Placement", "ranks victim program")
Case = collections.namedtuple("Case", "scene placement fault call")

PLACEMENTS = (Placement(1, 0, "tessera"), Placement(2, 0, "tessera"), Placement(2, 1, "tessera"),
              Placement(1, 0, "tessera-describe"), Placement(2, 0, "tessera-describe"),  # a child of rank 0
              Placement(3, 2, "tessera"))  # for MPI alone


def make_faults():
    """Each family with the error that such a call gives most often, and what must do no harm at all."""
    usual = {"open": errno.EMFILE, "openat": errno.EMFILE, "pwrite": errno.ENOSPC, "fallocate": errno.ENOSPC,
             "mmap": errno.ENOMEM, "malloc": errno.ENOMEM, "posix_memalign": errno.ENOMEM,
             "pthread_create": errno.EAGAIN}
    faults = [Fault(family, usual.get(family, errno.EIO), stays) for family in FAMILIES[:-2]
              for stays in (False, True)]
    for family in ("pread", "pwrite"):
        faults += [Fault(family, errno.EINTR, False), Fault(family, 0, False), Fault(family, 0, True)]
    return faults + [Fault("fallocate", errno.EOPNOTSUPP, True), Fault("pwrite", errno.EIO, False)]


FAULTS = make_faults()
HARMLESS = (0, errno.EINTR, errno.EOPNOTSUPP)  # half of the bytes, try again, do without: the run must succeed


def name_of(fault):
    error = errno.errorcode[fault.error] if fault.error else "short"
    return f"{fault.family} {error} {('once', 'from then on', 'later', 'never ends')[int(fault.stays)]}"


def describe(case):
    scene, placement, fault, call = case
    where = f"{placement.ranks} rank(s), victim {placement.program} {placement.victim}"
    return f"{scene.name}, {where}: {name_of(fault)}, call {call}"


# ---- what is run
# -------------------------------------------------------------------------------------------------------

M, K, N = 24, 20, 16
LONG_K = 16384 + K
random = np.random.default_rng(12)
A, B = (random.integers(-4, 5, shape).astype("f4") for shape in ((M, K), (K, N)))
C = A @ B
LAYOUTS = {"contiguous": {}, "chunked": {"chunks": (8, 8), "compression": "gzip", "shuffle": True}}
WORKS = ["--device", "cpu", "--panel", "8"]
CHUNKED = ["--chunk", "8x8", "--compress", "gzip:1", "--shuffle"]


def make_files(folder, layout):
    """Inputs, their product, an earlier C, and a file that holds other things."""
    how = LAYOUTS[layout]
    for name, data in (("a", A), ("b", B), ("product", C)):
        with h5py.File(folder / f"{layout}-{name}.h5", "w") as file:
            file.create_dataset("C", data=data, **how)
    with h5py.File(folder / f"{layout}-earlier.h5", "w") as file:
        file.create_dataset("C", data=np.full((17, 19), 3.0), **how)
    with h5py.File(folder / "zeros.h5", "w") as file:
        file.create_dataset("C", data=np.zeros_like(C))
    with h5py.File(folder / f"{layout}-others.h5", "w") as file:
        file.create_dataset("deep/other", data=np.arange(500.0).reshape(20, 25), **how)
        file.attrs["note"] = "kept"


def make_long_files(folder):
    """Of the same product, with so long a k that two ranks may share it with --reproducible: half of A's columns lie
    in the second range of 16384, zeros between them."""
    a, b = np.zeros((M, LONG_K), "f4"), np.ones((LONG_K, N), "f4")
    places = np.r_[:K // 2, LONG_K - K // 2:LONG_K]
    a[:, places], b[places] = A, B
    for name, data in (("a", a), ("b", b.T)):
        with h5py.File(folder / f"long-{name}.h5", "w") as file:
            file.create_dataset("C", data=data)


def make_shared_scenes():
    """Ranks share k and hand on their sums; with --resume they tell each other who stops and what is doubted, too."""
    a, b = "long-a.h5", "long-b.h5"
    shared = ["multiply", a, b, "--transpose-b", "-o", "c.h5", "--device", "cpu", "--reproducible", "--grid", "1x1x2"]
    return [Scene("multiply shared k", {a: a, b: b}, [*shared, "--log", "run.json"], "product", 2),
            Scene("multiply shared k --resume", {a: a, b: b},
                  [*shared, "--kernel", "reference", "--memory", "6M", "--resume"], "resumed", 2)]


def make_scenes():
    scenes = []
    for layout in LAYOUTS:
        a, b, product = (f"{layout}-{name}.h5" for name in ("a", "b", "product"))
        for out, options in (("contiguous", []), ("chunked", CHUNKED)):
            multiply = ["multiply", a, b, *WORKS, *options]
            scenes.append(Scene(f"multiply {layout} to {out}", {a: a, b: b}, [*multiply, "-o", "c.h5"], "product"))
            if layout == out:
                scenes += [
                    Scene(f"multiply --verify {layout}", {a: a, b: b},
                          [*multiply, "-o", "c.h5", "--verify", "--log", "run.json"], "product"),
                    Scene(f"multiply beside others {layout}", {a: a, b: b, "c.h5": f"{layout}-others.h5"},
                          [*multiply, "-o", "c.h5:/C"], "beside"),
                    Scene(f"multiply --force {layout}", {a: a, b: b, "c.h5": f"{layout}-earlier.h5"},
                          [*multiply, "-o", "c.h5", "--force", "--log", "run.json"], "product")]
        scenes += [Scene(f"verify {layout}", {a: a, b: b, product: product}, ["verify", a, b, product], "PASSED"),
                   Scene(f"compare {layout}", {a: a, product: product}, ["compare", product, product], "same words"),
                   Scene(f"info {layout}", {product: product}, ["info", product], "same words")]
    generate = ["generate", "--shape", f"{M}x{N}", "--distribution", "integer", "--seed", "3"]
    scenes += [Scene("generate", {}, [*generate, "-o", "c.h5", "--log", "run.json"], "generated"),
               Scene("generate --force", {"c.h5": "contiguous-earlier.h5"},
                     [*generate, "-o", "c.h5", "--force"], "generated")]
    a, b = "contiguous-a.h5", "contiguous-b.h5"
    multiply = ["multiply", a, b, *WORKS]
    scenes += [Scene("refuse to replace A", {a: a, b: b}, [*multiply, "-o", f"./{a}:/C", "--force"], "refused"),
               Scene("refuse to replace C", {a: a, b: b, "c.h5": "contiguous-earlier.h5"}, [*multiply, "-o", "c.h5"],
                     "refused"),
               Scene("refuse a log over data", {"d.h5": a}, [*generate, "-o", "c.h5", "--log", "d.h5"], "refused"),
               Scene("refuse a trace over data", {a: a, b: b, "d.h5": a},
                     [*multiply, "-o", "c.h5", "--trace", "d.h5"], "refused")]
    return scenes + make_shared_scenes()


# ---- one run
# -----------------------------------------------------------------------------------------------------------

Ended = collections.namedtuple("Ended", "code out err seconds calls fired function caller aborts folder before "
                               "launcher_failed")


def environment():
    mpi = dict(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
               OMPI_MCA_hwloc_base_binding_policy="none", OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_pml="ob1",
               OPENBLAS_NUM_THREADS="2")
    return {name: value for name, value in dict(os.environ, **mpi).items() if not name.startswith("TSR_FAULT_")}


def content(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            for path in sorted(folder.rglob("*"))}


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def end(process):
    """A run that hangs, with all that it started: mpirun first, which ends its ranks."""
    family = [process.pid]
    for pid in family:
        family += children_of(pid)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in family:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            pass


class Bench:
    """The program, the variables that it gets, such as what is loaded before it, what may fail, and a scratch
    folder."""

    def __init__(self, program, mpirun, variables, faults=None):
        self.program, self.mpirun, self.variables = program, mpirun, variables
        self.faults = faults or FAULTS
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
        self.made = self.root / "made"
        self.made.mkdir()
        for layout in LAYOUTS:
            make_files(self.made, layout)
        make_long_files(self.made)
        self.undisturbed = {}

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, scene, placement, fault=None, call=1, folder=None):
        """The run has its folder to itself, or that of an earlier one; the caller removes it. Where mpirun alone hangs,
        or ends by a signal (docs/reliability.md, "What is not promised"), or two of them made the folder of their
        sessions at once, it runs again."""
        for _ in range(LAUNCHES - 1):
            ended = self.run_once(scene, placement, fault, call, folder)
            if not ended.launcher_failed:
                return ended
            if not folder:
                shutil.rmtree(ended.folder)
        return self.run_once(scene, placement, fault, call, folder)

    def run_once(self, scene, placement, fault, call, folder):
        if not folder:
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.root))
            for name, source in scene.files.items():
                shutil.copy(self.made / source, folder / name)
        before = content(folder)
        report = self.root / f"{folder.name}.report"
        variables = dict(environment(), **self.variables, TSR_FAULT_REPORT=str(report),
                         TSR_FAULT_PROGRAM=placement.program, TSR_FAULT_RANK=str(placement.victim))
        if fault:
            variables.update(TSR_FAULT_FAMILY=str(FAMILIES.index(fault.family)), TSR_FAULT_CALL=str(call),
                             TSR_FAULT_STAYS=str(int(fault.stays)), TSR_FAULT_ERRNO=str(fault.error))
        launcher = [self.mpirun, "-n", str(placement.ranks)] if placement.ranks > 1 else []
        outputs = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
        began = time.monotonic()
        process = subprocess.Popen([*launcher, self.program, *scene.command], stdout=outputs[0], stderr=outputs[1],
                                   stdin=subprocess.DEVNULL, cwd=folder, env=variables, start_new_session=True)
        try:
            code = process.wait(SECONDS)
            launcher_failed = placement.ranks > 1 and code < 0
        except subprocess.TimeoutExpired:
            code = None
            launcher_failed = placement.ranks > 1 and all(map(has_ended, children_of(process.pid)))
            end(process)
        seconds = time.monotonic() - began
        texts = []
        for output in outputs:
            output.seek(0)
            texts.append(output.read().decode(errors="replace"))
            output.close()
        launcher_failed = launcher_failed or "orte_session_dir failed" in texts[1]
        calls, fired, function, caller, aborts = [0] * len(FAMILIES), 0, "", "", 0
        if report.exists():
            data = report.read_bytes()
            numbers = struct.unpack("33Q", data[:264])
            calls, fired = list(numbers[:len(FAMILIES)]), numbers[32]
            function, caller = (part.split(b"\0")[0].decode() for part in (data[264:328], data[328:584]))
            aborts = struct.unpack("Q", data[584:592])[0]
            report.unlink()
        return Ended(code, *texts, seconds, calls, fired, function, caller, aborts, folder, before, launcher_failed)

    def baseline(self, scene, placement):
        """The undisturbed run: its calls are the cases, its words what others are compared with."""
        key = (scene.name, placement)
        if key not in self.undisturbed:
            ended = self.run(scene, placement)
            wrong = judge(self, scene, placement, None, ended)
            assert not wrong, f"undisturbed {scene.name} on {placement.ranks}: {wrong}\n{ended}"
            helper = placement.program == "tessera-describe"  # not every command has files described
            seen = sum(ended.calls) > 0 or helper
            assert seen, f"the injector saw no call of {scene.name}: {ended}"
            shutil.rmtree(ended.folder)
            self.undisturbed[key] = ended
        return self.undisturbed[key]

    def cases(self, scenes, placements, workers):
        """All that can fail, in a fixed order."""
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda pair: self.baseline(*pair),
                          [(s, p) for s in scenes for p in placements if s.ranks in (0, p.ranks)]))
        for scene in scenes:
            for placement in placements:
                if scene.ranks not in (0, placement.ranks):
                    continue
                calls = self.baseline(scene, placement).calls
                for fault in self.faults:
                    if placement.ranks > 2 and fault.family not in ("mpi", "nccl"):
                        continue
                    for call in range(1, calls[FAMILIES.index(fault.family)] + 1):
                        yield Case(scene, placement, fault, call)

    def check(self, case):
        """Runs one case; returns (outcome, what is wrong or "", how it ended)."""
        ended = self.run(case.scene, case.placement, case.fault, case.call)
        wrong = judge(self, case.scene, case.placement, case.fault, ended)
        if not wrong and case.scene.outcome == "resumed" and ended.code != 0:  # it goes on
            again = self.run(case.scene, case.placement, folder=ended.folder)
            wrong = judge(self, case.scene, case.placement, None, again._replace(before=ended.before))
            wrong = wrong and f"the same command after that: {wrong}"
        outcome = outcome_of(case.fault, ended, wrong)
        shutil.rmtree(ended.folder, ignore_errors=True)
        return outcome, wrong, ended


# ---- whether it ended well
# ---------------------------------------------------------------------------------------------

SIGNAL = re.compile(r"exited on signal (\d+)|Process received signal|Signal code:")
LOUD = re.compile(r"^(HDF5-DIAG|malloc\(\)|free\(\)|double free|munmap_chunk|terminate called|OpenBLAS"
                  r"|=+\d+=+ERROR|.*runtime error: )", re.M)


def outcome_of(fault, ended, wrong):
    if wrong:
        return "wrong"
    if not ended.fired:
        return "not reached"
    if ended.code == 0:
        return "right"
    return "one line"


def errors_of(ended):
    return [line for line in ended.err.splitlines() if line.startswith("tessera: error: ")]


def read_output(folder, outcome):
    """"" or what is wrong with c.h5."""
    try:
        with h5py.File(folder / "c.h5", "r") as file:
            found = file["C"][...]
            if "tessera_incomplete" in file["C"].attrs:
                return "C is marked incomplete"
            if outcome == "generated":
                again = found.shape == (M, N) and np.array_equal(found, np.rint(found)) and np.abs(found).max() == 4
                return "" if again else "what was generated is wrong"
            if found.shape != C.shape or not np.array_equal(found, C):
                return "C is wrong"
            if "C.run" not in file:
                return "C has no record"
            if outcome == "beside" and not (
                    np.array_equal(file["deep/other"][...], np.arange(500.0).reshape(20, 25))
                    and file.attrs["note"] == "kept"):
                return "what the file held besides is changed"
    except (OSError, KeyError) as error:
        return f"C cannot be read: {error}"
    return ""


def judge(bench, scene, placement, fault, ended):
    """"" or what is wrong, the worst first."""
    after = content(ended.folder)
    errors = errors_of(ended)
    if ended.code is None:
        return f"hangs: not done after {SECONDS:.0f} s"
    if ended.code < 0 or ended.code > 128 or SIGNAL.search(ended.err):
        return f"ended by a signal, code {ended.code}: {' '.join(SIGNAL.findall(ended.err))}"
    changed = [name for name in ended.before if after.get(name) != ended.before[name] and name != "c.h5"]
    if changed:
        return f"changed: {changed}"
    left = [name for name in after if name not in ended.before and name not in ("c.h5", "run.json", "t.json")]
    if scene.outcome == "resumed":
        left = [name for name in left if not name.startswith(".c.h5.tessera-")]  # what the next run goes on with
    told = [name for name in left if fault and fault.family == "unlink" and name in ended.err]
    if set(left) - set(told):
        return f"left behind: {left}"
    if "run.json" in after:
        status = status_of_log(ended.folder / "run.json")
        warned = "the log still says" in ended.err or "could not be replaced" in ended.err
        if warned and status == "running":
            status = "done" if ended.code == 0 else "failed"
        if status == "stopped" and placement.ranks > 1 and fault and fault.stays and ended.code:
            status = "failed"  # the rank that fails could not write it either; another was ended for it, and did
        if status not in ("done", "failed"):
            return f"the log says: {status}"
        in_place = len(errors) == 1 and "in place" in errors[0]
        if (status == "done") != (ended.code == 0) and not in_place:
            return f"exit code {ended.code}, but the log says {status}"
    if LOUD.search(ended.err):
        return f"more than its one line: {LOUD.search(ended.err)[0]}"
    if scene.outcome == "refused":
        if ended.code not in (1, 2) or len(errors) != 1 or after.get("c.h5") != ended.before.get("c.h5"):
            return f"not refused: exit code {ended.code}, {len(errors)} lines of error"
        return ""
    if ended.code == 0:
        return judge_success(bench, scene, placement, ended, errors)
    if fault is None or (fault.error in HARMLESS and fault.family[:3] != "h5_"):
        return f"exit code {ended.code} of what must do no harm"
    if ended.code != 1:
        return f"exit code {ended.code} of a failure"
    makes_c = scene.outcome in ("product", "beside", "generated", "resumed")
    published = makes_c and after.get("c.h5") != ended.before.get("c.h5")
    says_so = errors and "in place" in errors[0]
    if published and not (says_so and not read_output(ended.folder, scene.outcome)):
        return "failed, but C is not what it was"
    if len(errors) != 1:
        return f"{len(errors)} lines of error"
    other = [line for line in ended.err.splitlines() if line.startswith("tessera: ") and line not in errors
             and not line.startswith("tessera: warning: ")]
    return f"more than its one line: {other[0]}" if other else ""


def status_of_log(file):
    try:
        return json.loads(file.read_text()).get("status")
    except ValueError as error:
        return f"no JSON: {error}"


def words(text):
    """What was said, without figures that differ from run to run."""
    return re.sub(r"\d+(\.\d+)?(e[+-]\d+)?", "#", text)


def judge_success(bench, scene, placement, ended, errors):
    if errors:
        return "exit code 0 and a line of error"
    if scene.outcome == "PASSED":
        return "" if "PASSED" in ended.out else "exit code 0 without PASSED"
    if scene.outcome == "same words":
        before = bench.undisturbed.get((scene.name, placement))
        return "" if not before or words(before.out) == words(ended.out) else "exit code 0, but it says something else"
    return read_output(ended.folder, scene.outcome)
