"""The Python package: installed by pip, its doctests, products of files, datasets and arrays on 1 and 3 ranks,
refusals, cancelling, and its structs beside those of tessera.h.
Usage: test_python.py TESSERA MPIRUN LIBTESSERA REPOSITORY"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from lib import ENVIRONMENT, MPIRUN, PLAIN, integers, main, np, read, two_cores, write

LIBRARY, REPOSITORY = sys.argv[3], pathlib.Path(sys.argv[4])
SITE = os.path.abspath("site")
USE = dict(ENVIRONMENT, PYTHONPATH=SITE, TESSERA_LIBRARY=LIBRARY)


def python(code, ranks=0, fails=False):
    launcher = [MPIRUN, "-n", str(ranks)] if ranks else []
    done = subprocess.run([*launcher, sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=USE)
    assert (done.returncode != 0) == fails, f"{code}\n{done.stdout}{done.stderr}"
    return done


def test_install():
    """pip, without a network: setuptools is there."""
    copy = shutil.copytree(REPOSITORY / "app/python", "package")  # pip builds where the sources are
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps",
                           "--no-index", "--target", SITE, f"./{copy}"], capture_output=True, text=True, timeout=120,
                          env=dict(ENVIRONMENT, PIP_ROOT_USER_ACTION="ignore"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert os.path.exists(f"{SITE}/tessera/py.typed"), os.listdir(f"{SITE}/tessera")
    version = re.search(r'TSR_VERSION "([0-9.]+)"', (REPOSITORY / "kernels/base/base.h").read_text()).group(1)
    said = python("import tessera; print(tessera.__version__, tessera.library_version())").stdout.split()
    assert said == [version, version], said


def test_structs():
    """Sizes and offsets are those that the test of the library's ABI keeps."""
    code = """
import ctypes
from tessera import _library as lib
for name, struct in (("tessera_multiply_options", lib.Options), ("tessera_progress", lib.Progress),
                     ("tessera_matrix", lib.Matrix)):
    for field, _ in struct._fields_:
        print(f"{name}.{field} {getattr(struct, field).offset}")
    print(name, ctypes.sizeof(struct))
"""
    layout = (REPOSITORY / "tests/app/library/layout.txt").read_text().splitlines()
    wanted = [line for line in layout if line.startswith(("tessera_multiply", "tessera_progress", "tessera_matrix"))]
    assert python(code).stdout.splitlines() == wanted, "app/python/tessera/_library.py differs from tessera.h"


def test_doctests():
    done = python("import doctest, tessera; print(doctest.testmod(tessera, optionflags=doctest.ELLIPSIS))")
    assert "failed=0" in done.stdout and "attempted=0" not in done.stdout, done.stdout


def test_cores():
    """The library's threads leave the core to which mpirun by itself bound the rank; a binding asked for stays, and
    nothing else moves."""
    code = """
import contextlib, os, sys, tessera
from mpi4py import MPI
def cores():
    found = {}
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):
            found[thread] = os.sched_getaffinity(int(thread))
    return found
before = cores()
of_call = {}
record = tessera.multiply("cores.h5", "cores.h5", device="cpu", progress=lambda *_: of_call.update(cores()),
                          comm=MPI.COMM_SELF if sys.argv[1:] else MPI.COMM_WORLD)
after = cores()
assert all(after[thread] == before[thread] for thread in before if thread in after), (before, after)
most = max(len(allowed) for allowed in of_call.values())
words = [len(os.sched_getaffinity(0)), most, *[rank["cores"] for rank in record["ranks"]]]
os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # the whole line at once: the other rank writes, too
"""
    write("cores.h5", integers(1500, 1500, "f8"))  # a tick of progress or more
    chosen = two_cores()
    if not chosen:
        print("left out: this machine has one core")
        return
    environment = dict(PLAIN, PYTHONPATH=SITE, TESSERA_LIBRARY=LIBRARY)
    for options, alone, expected in ((["-n", "1"], [], "1 2 2"), (["-n", "2"], [], "1 2 1 1"),
                                     (["-n", "2"], ["alone"], "1 2 1"),
                                     (["--bind-to", "core", "-n", "1"], [], "1 1 1"),
                                     (["--bind-to", "none", "-n", "1"], [], "2 2 2")):
        done = subprocess.run([MPIRUN, *options, sys.executable, "-c", code, *alone], timeout=120, capture_output=True,
                              text=True, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, chosen))
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in done.stdout.splitlines(), (options, expected, done.stdout)


def test_products():
    a, b = integers(60, 50, "f8"), integers(50, 40, "f8")
    write("a.h5", a), write("b.h5", b)
    code = """
import h5py, numpy as np, tessera
stages = []
record = tessera.multiply("a.h5:/C", "b.h5", out="c{ranks}.h5:/C", trials=10, force=True, grid=({ranks}, 1), panel=8,
                          report="own.html",
                          progress=lambda stage, done, total, unit, seconds: stages.append((stage, done, total)))
assert (record.m, record.n, record["k"], record.rank_count) == (60, 40, 50, {ranks}), record
assert record.check.startswith("PASSED") and record.grid_m == {ranks} and record.warnings == "", record
assert stages and record.array is None and "GFLOP/s" in repr(record), stages
with h5py.File("a.h5", "r") as file:
    x = tessera.multiply(file["C"], np.asarray(h5py.File("b.h5", "r")["C"]), alpha=2 + 1j, beta=-1, add="c{ranks}.h5")
y = tessera.multiply("a.h5", gram=True)
z = tessera.multiply(np.ones((3, 4)), np.ones((4, 5)), reproducible=True)
text = tessera.plan("a.h5", "b.h5", "d.h5")
from {module} import comm
if comm.rank == 0:
    c = np.asarray(h5py.File("a.h5", "r")["C"]) @ np.asarray(h5py.File("b.h5", "r")["C"])
    assert np.array_equal(x.array, (2 + 1j) * c - c), x
    assert np.array_equal(y.array, y.array.T) and y.gram == 1, y
    assert z["reproducible"].startswith("exact, blocks") and np.all(z.array == 4), z
    assert "kernel" in text, text
    page = record._repr_html_()
    assert "<title>Tessera: c{ranks}.h5" in open("own.html").read()
    assert page.startswith("<iframe srcdoc=") and "60" in page and len(page) > 20000, page[:300]
else:
    assert x.array is None and text == "", (x.array, text)
"""
    with open("single.py", "w") as file:
        file.write("class comm:\n    rank = 0\n")
    with open("world.py", "w") as file:
        file.write("from mpi4py.MPI import COMM_WORLD as comm\n")
    python("import sys; sys.path.insert(0, '.')" + code.format(ranks=1, module="single"))
    python("import sys; sys.path.insert(0, '.')" + code.format(ranks=3, module="world"), ranks=3)
    assert np.array_equal(read("c1.h5"), a @ b) and np.array_equal(read("c3.h5"), a @ b)


def test_refusals():
    for code, says in (("tessera.multiply('a.h5', 'absent.h5', out='e.h5')", "Error: cannot open 'absent.h5'"),
                       ("tessera.multiply('a.h5', 'b.h5', out='e.h5', kernal='x')", "no option 'kernal'"),
                       ("tessera.multiply('a.h5', 'b.h5', out='e.h5', kernel='fastest')", "fastest"),
                       ("tessera.multiply('a.h5', 'b.h5', out='e.h5', size=3)", "no option 'size'"),
                       ("tessera.multiply(3, 'b.h5', out='e.h5')", "a is a int"),
                       ("tessera.multiply(h5py.File('w.h5', 'w').create_dataset('C', (2, 2)), 'b.h5')", "for writing"),
                       ("tessera.multiply('a.h5', 'b.h5', out='c1.h5:/C')", "exists")):
        done = python("import h5py, tessera\n" + code, fails=True)
        assert says in done.stderr.splitlines()[-1], done.stderr
        assert not os.path.exists("e.h5"), code


def test_interrupt():
    """Ctrl-C from elsewhere, at any moment: KeyboardInterrupt, and nothing on stderr. The handler is there again."""
    code = """
import numpy as np, os, signal, tessera, threading
ones = np.ones((1800, 1800))
for wait in (0.3, 0.55, 0.8):
    threading.Timer(wait, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            tessera.multiply(ones, ones, kernel="reference")
    except KeyboardInterrupt:
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""
    assert python(code).stderr == ""


def test_resume():
    """C that is whole already has no record of this call."""
    write("ra.h5", integers(20, 30)), write("rb.h5", integers(30, 10))
    code = """
import tessera
made = [tessera.multiply("ra.h5", "rb.h5", out="rc.h5", resume=True) for _ in range(2)]
assert made[0].m == 20 and made[1] == {}, made
"""
    python(code), python("import os; os.remove('rc.h5')"), python(code, ranks=2)


def test_cancel():
    """What the progress function raises, as Ctrl-C does, ends the call; the next one works."""
    code = """
import numpy as np, os, signal, tessera
a = np.ones((1500, 1500), "f4")
np.save("long.npy", a)
for how in ("raise", "False", "signal"):
    def tell(*what):
        if how == "raise": raise ZeroDivisionError
        if how == "signal": os.kill(os.getpid(), signal.SIGINT)
        return False if how == "False" else None
    try:
        tessera.multiply("long.npy", "long.npy", out="e.h5", kernel="reference", device="cpu", panel=1, progress=tell)
        raise SystemExit("not cancelled by " + how)
    except (ZeroDivisionError, KeyboardInterrupt, tessera.Error) as error:
        print(how, type(error).__name__)
assert not os.path.exists("e.h5")
assert tessera.multiply(a[:2, :3], a[:3, :2]).array.tolist() == [[3, 3], [3, 3]]
"""
    ended = ["raise", "ZeroDivisionError", "False", "Error", "signal", "KeyboardInterrupt"]
    assert python(code).stdout.split() == ended


try:
    import mpi4py, setuptools  # noqa: E401, F401: what the package needs here
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
main(globals())
