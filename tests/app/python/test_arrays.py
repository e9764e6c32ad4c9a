"""The Python package with arrays of NumPy: every order in memory, types, layouts and refusals, on 1 and 3 ranks. They
are multiplied where they lie: no file is made.
Usage: test_arrays.py TESSERA MPIRUN LIBTESSERA REPOSITORY"""
import os
import subprocess
import sys

from lib import ENVIRONMENT, MPIRUN, main

USE = dict(ENVIRONMENT, PYTHONPATH=os.path.join(sys.argv[4], "app/python"), TESSERA_LIBRARY=sys.argv[3])

# What every program below begins with: arrays of small integers, and their layouts.
HEAD = """
import itertools, resource, sys, warnings
import numpy as np
import tessera
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size
warnings.simplefilter("error")
numbers = np.random.default_rng(7)

def integers(shape, kind):
    x = numbers.integers(-4, 5, shape).astype(kind)
    return x + (1j * numbers.integers(-4, 5, shape)).astype(kind) if x.dtype.kind == "c" else x

def stored(x, how):
    if how == "C": return np.ascontiguousarray(x)
    if how == "F": return np.asfortranarray(x)
    rows, cols = x.shape
    whole = {"C gap": np.zeros((rows, cols + 3), x.dtype), "F gap": np.zeros((rows + 3, cols), x.dtype, order="F"),
             "apart": np.zeros((2 * rows, 2 * cols), x.dtype), "back": np.zeros((rows, cols), x.dtype)}[how]
    part = {"C gap": whole[:, 1:-2], "F gap": whole[1:-2], "apart": whole[::2, ::2], "back": whole[::-1, ::-1]}[how]
    part[...] = x
    return part

def mine(x):
    rows = tessera.rows_of(x.shape[0], rank, ranks)
    return x[rows.start:rows.stop]

def says(error, text, *args, **options):
    try:
        tessera.multiply(*args, **options)
    except error as raised:
        assert text in str(raised), raised
    else:
        raise SystemExit(f"not refused: {text}")
"""


def python(code, ranks=1):
    done = subprocess.run([MPIRUN, "-n", str(ranks), sys.executable, "-m", "mpi4py", "-c", HEAD + code],
                          capture_output=True, text=True, timeout=200, env=USE)
    assert done.returncode == 0, f"{ranks} ranks: {done.stdout}{done.stderr}"


def on_ranks(code):
    python(code, 1)
    python(code, 3)


def test_orders():
    """Whole arrays of rank 0, and rows of each rank, in every order: exact, and in place."""
    on_ranks("""
kinds = itertools.cycle((("f4", "f4"), ("f8", "f4"), ("c8", "f4"), ("f8", "c16"), ("f2", "f2"), ("c16", "c16")))
ways = itertools.product(("C", "F", "C gap", "F gap", "apart", "back"), ("C", "F", "back"),
                         (None, "C", "F", "C gap", "F gap"))
for turn, ((of_a, of_b, of_c), (kind_a, kind_b)) in enumerate(zip(ways, kinds)):
    ta, tb, shares = (bool(x) for x in numbers.integers(0, 2, 3))
    m, n, k = numbers.integers(1, 30, 3)
    a, b = integers((k, m) if ta else (m, k), kind_a), integers((n, k) if tb else (k, n), kind_b)
    c = (a.T if ta else a) @ (b.T if tb else b).astype(np.result_type(kind_a, kind_b, "f4"))
    options = {"transpose_a": ta, "transpose_b": tb, "device": "cpu"}
    left, right, out = stored(a, of_a), stored(b, of_b), None
    if of_c:
        c0 = integers((m, n), c.dtype)
        out, options["beta"], c = stored(c0, of_c), 2, c + 2 * c0
    if shares and turn % 2:
        right = tessera.Distributed(mine(right))
    if shares:
        left = tessera.Distributed(mine(left))
        out = out if out is None else tessera.Distributed(mine(out))
    before = left.array.copy() if shares else left.copy()
    found = tessera.multiply(left, right, out, **options).array
    where = (turn, of_a, of_b, of_c, kind_a, kind_b, ta, tb, shares, m, n, k)
    assert np.array_equal(before, left.array if shares else left), where
    if shares:
        assert np.array_equal(found, mine(c)) and found.dtype == c.dtype, (where, found, mine(c))
        assert out is None or found is out.array, where
    elif rank == 0:
        assert np.array_equal(found, c) and found.dtype == c.dtype, (where, found, c)
        assert out is None or found is out, where
    else:
        assert found is out, where
""")


def test_no_file():
    """No byte goes to a file, in Python or below it (no file may grow), and no array of A, B or C is copied."""
    on_ranks("""
side = 700
a, b = np.ones((side, side)), np.asfortranarray(np.ones((side, side)))
c = np.zeros((side, side))
warnings.simplefilter("ignore")
tessera.multiply(a[:9, :9], b[:9, :9], stall_timeout=0)  # what libraries make once
made = []
def audit(event, args):
    if event.startswith("tempfile.") or event == "open" and (args[2] or 0) & 0o1101: made.append((event, args))
sys.addaudithook(audit)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # a write beyond that ends the process
import tracemalloc
tracemalloc.start()
tessera.multiply(a, b, c, stall_timeout=0)
stack = tessera.multiply(np.ones((5, 4, 9), ">f4"), np.ones((5, 9, 3), "i2"), stall_timeout=0).array
gram = tessera.multiply(a[:40], gram=True, stall_timeout=0).array
assert rank > 0 or (stack == 9).all() and stack.shape == (5, 4, 3) and (gram == side).all()
most = tracemalloc.get_traced_memory()[1]
assert rank > 0 or (c == side).all()
assert not made, made
assert most < side * side, f"{most} bytes were allocated by Python: a copy of an array has {a.nbytes}"
""")


def test_layouts():
    """A block-cyclic matrix, one that ranks share, vectors, sides of nothing."""
    on_ranks("""
m, n, k = 23, 17, 19
a, b = integers((m, k), "f8"), integers((k, n), "f8")
whole = a @ b
grid, block, first = (1, ranks), (4, 3), (0, ranks - 1)
def dealt(x, order):
    cols = [j for j in range(x.shape[1]) if (j // block[1] + first[1]) % ranks == rank]
    return tessera.Distributed(np.array(x[:, cols], order=order), x.shape, block=block, grid=grid, first=first)
found = tessera.multiply(dealt(a, "F"), dealt(b, "C"), dealt(np.zeros((m, n)), "F"), device="cpu").array
assert np.array_equal(found, dealt(whole, "C").array), found
found = tessera.multiply(dealt(a, "C"), b, add=dealt(whole, "C"), beta=-2).array
assert np.array_equal(found, -dealt(whole, "C").array), found
window = MPI.Win.Allocate_shared(8 * m * k if rank == 0 else 0, 1, comm=comm)
both = np.frombuffer(window.Shared_query(0)[0], "f8").reshape(m, k)
if rank == 0: both[...] = a
comm.Barrier()
record = tessera.multiply(tessera.Distributed(both, (m, k), shared=True), tessera.Distributed(mine(b)))
assert np.array_equal(record.array, mine(whole)), record.array
del both
comm.Barrier()
window.Free()
for left, right in ((a[0], b), (a, b[:, 0]), (a[0], b[:, 0]), (a[:0], b), (a[:, :0], b[:0]), (a, b[:, :0])):
    found = tessera.multiply(left, right).array
    assert rank > 0 or np.array_equal(found, left @ right) and found.shape == (left @ right).shape, (left, right, found)
line = np.zeros(2 * m)
for out in (line[:m], line[::2]):
    tessera.multiply(a, b[:, 0], out, add=a[:, 1], beta=3)
    assert rank > 0 or np.array_equal(out, a @ b[:, 0] + 3 * a[:, 1]), out
""")


def test_types():
    on_ranks("""
i = np.arange(6).reshape(2, 3)
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as told:
    found = tessera.multiply(i, np.ones((3, 2), bool)).array
assert rank > 0 or np.array_equal(found, i @ np.ones((3, 2))) and found.dtype == "f8", found
said = [str(one.message) for one in told]
assert len(told) == (2 if rank == 0 else 0), said
assert rank > 0 or "a holds int64: the product is made in float64" in said[0] and told[0].filename == "<string>", said
x = np.array([[1 + 2j, 3], [0, 1j]])
def check(found, wanted, kind):
    assert rank > 0 or np.array_equal(found, wanted) and found.dtype == kind, (found, wanted)
check(tessera.multiply(x, x, real_part=True).array, (x @ x).real, "f8")
check(tessera.multiply(x, x.T.conj(), type="c64").array, x @ x.T.conj(), "c8")
check(tessera.multiply(x, x, conjugate_a=True, transpose_a=True).array, x.conj().T @ x, "c16")
check(tessera.multiply(x.real, x.real, alpha=2j).array, 2j * (x.real @ x.real), "c16")
check(tessera.multiply(x.real.astype(">f8"), x.real.astype("f2")).array, x.real @ x.real, "f8")
check(tessera.multiply(x.real.astype("f4"), x.real.astype("f4"), add=np.ones((2, 2))).array, x.real @ x.real + 1, "f8")
""")


def test_empty():
    """Memory that the ranks share: the same on all of them, and gone with its last array."""
    on_ranks("""
import gc
all = tessera.empty((3, 30, 40), "f4")
assert all.shape == (3, 30, 40) and all.dtype == "f4" and not all.any() and all.flags.writeable
comm.Barrier()
values = integers((30, 40), "f4")
if rank == ranks - 1: all[0] = values
comm.Barrier()
assert np.array_equal(all[0], values)
shared = tessera.Distributed(all[0], (30, 40), shared=True)
c = tessera.empty((30, 30))
record = tessera.multiply(shared, shared, tessera.Distributed(c, (30, 30), shared=True), transpose_b=True)
assert record.gram == 1 and np.array_equal(c, values @ values.T) and "redistribute_bytes" not in record
part = all[0, 3:]
del all, shared, record
gc.collect()
assert np.array_equal(part, values[3:])  # it lives as long as a view does
del part, c
gc.collect()
assert tessera.empty(0).shape == (0,)
for wrong in ((-1, 2), "f4"), (3, object):
    try: tessera.empty(*wrong)
    except ValueError: pass
    else: raise SystemExit(wrong)
try: tessera.empty(1 << 60)
except tessera.Error as error: assert "matrices that ranks share need" in str(error), error
else: raise SystemExit("there is no such memory")
""")


def test_stacks():
    """Stacks of every rank and layout as numpy.matmul multiplies them, vectors beside them, and sides of nothing."""
    on_ranks("""
def as_is(x, how):
    if how == "C": return np.ascontiguousarray(x)
    if how == "F": return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)  # each matrix
    if how == "all F": return np.asfortranarray(x)
    if how == "back": return np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1]
    if how == "swapped": return x.astype(x.dtype.newbyteorder())
    if how == "fixed":
        x = x.copy()
        x.flags.writeable = False
        return x
    whole = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)
    whole[..., 1:-2] = x
    return whole[..., 1:-2]  # gaps between rows
kinds = ("f2", "f4", "f8", "c8", "c16", "i1", "u2", "i4", "i8", "?")
ways = ("C", "F", "all F", "back", "swapped", "fixed", "gap")
stacks = ((), (1,), (3,), (4, 3), (1, 3), (4, 1), (2, 1, 3), (0,), (5, 0))
warnings.simplefilter("ignore")
for turn in range(ROUNDS):
    def draw(of): return of[numbers.integers(len(of))]
    m, n, k = (int(x) for x in numbers.integers(0 if turn % 7 == 0 else 1, 13, 3))
    while True:
        stack_a, stack_b = draw(stacks), draw(stacks)
        try: stack = np.broadcast_shapes(stack_a, stack_b)
        except ValueError: continue
        break
    ta, tb = (bool(x) for x in numbers.integers(0, 2, 2))
    a = integers((*stack_a, k, m) if ta else (*stack_a, m, k), draw(kinds))
    b = integers((*stack_b, n, k) if tb else (*stack_b, k, n), draw(kinds))
    if turn % 5 == 1: a, ta = a[(0,) * len(stack_a) + (slice(None), 0)] if a.size else integers((k,), "f4"), False
    if turn % 5 == 2: b, tb = b[(0,) * len(stack_b) + (slice(None), 0)] if b.size else integers((k,), "f4"), False
    if a.ndim == 1 and len(a) != k: a = integers((k,), "f8")
    if b.ndim == 1 and len(b) != k: b = integers((k,), "f8")
    wide = np.result_type(np.result_type(a, b), "f8" if {a.dtype.kind, b.dtype.kind} & set("biu") else "f4")
    c = np.matmul((a.swapaxes(-1, -2) if ta else a).astype(wide), (b.swapaxes(-1, -2) if tb else b).astype(wide))
    how = [draw(ways), draw(ways), draw((None, "C", "F", "gap"))]
    left, right = as_is(a, how[0]) if a.ndim > 1 else a, as_is(b, how[1]) if b.ndim > 1 else b
    options, out = {"transpose_a": ta, "transpose_b": tb, "device": "cpu"}, None
    if how[2] and c.ndim > 1:
        c0 = integers(c.shape, c.dtype)
        out = as_is(c0, how[2]) if c0.size and a.ndim > 1 and b.ndim > 1 else c0.copy()
        options["beta"], c = -3, c - 3 * c0
    if turn % 4 == 0: options["trials"] = 5
    where = (turn, how, a.shape, b.shape, a.dtype, b.dtype, ta, tb)
    kept = left.copy(), right.copy()
    found = tessera.multiply(left, right, out, **options).array
    assert np.array_equal(kept[0], left) and np.array_equal(kept[1], right), where
    assert rank > 0 or np.array_equal(found, c) and found.shape == c.shape and found.dtype == c.dtype, (where, found, c)
    assert out is None or found is out, where
""".replace("ROUNDS", "150"))


def test_distributed_stacks():
    """Of which each rank has some matrices: the product is distributed in the same way."""
    on_ranks("""
def some(x):
    part = tessera.rows_of(len(x), rank, ranks)
    return np.array(x[part.start:part.stop])
a, b = integers((7, 5, 6), "f4"), integers((7, 6, 4), "f8")
def check(found, wanted): assert found.shape == wanted.shape and np.array_equal(found, wanted), (found, wanted)
check(tessera.multiply(tessera.Distributed(some(a)), tessera.Distributed(some(b))).array, some(a @ b))
check(tessera.multiply(tessera.Distributed(some(a)), b[0], trials=9).array, some(a @ b[0]))
check(tessera.multiply(a, tessera.Distributed(some(b.swapaxes(-1, -2))), transpose_b=True).array, some(a @ b))
a2, b2 = integers((2, 3, 4, 5), "c8"), integers((3, 5, 6), "c8")
check(tessera.multiply(tessera.Distributed(some(a2)), b2).array, some(a2 @ b2))
out = some(integers((2, 3, 4, 6), "c8"))
wanted = some(a2 @ b2) + 2 * out
assert tessera.multiply(tessera.Distributed(some(a2)), b2, tessera.Distributed(out), beta=2).array is out
check(out, wanted)
big = integers((3, 600, 600), "f8")  # made one by one
check(tessera.multiply(tessera.Distributed(some(big)), tessera.Distributed(some(big))).array, some(big @ big))
""")


def test_gram():
    """A matrix by its own transpose, named or found to be one, in every order, and stacks of them."""
    on_ranks("""
for shape, kind in (((40, 30), "f8"), ((33, 70), "f4"), ((6, 20, 9), "f4"), ((2, 3, 1, 5), "f8"), ((3, 700, 40), "f4"),
                    ((5, 0), "f8"), ((0, 5), "f8")):
    for transposed in (False, True):
        for triangle, half in ((None, lambda x: x), ("lower", np.tril), ("upper", np.triu)):
            a = integers(shape, kind)
            x = a.swapaxes(-1, -2)
            wanted = half(x @ a if transposed else a @ x)
            for given in (a, np.ascontiguousarray(x).swapaxes(-1, -2)):
                record = tessera.multiply(given, gram=True, transpose_a=transposed, triangle=triangle, device="cpu")
                where = (shape, kind, transposed, triangle)
                assert rank > 0 or np.array_equal(record.array, wanted), (where, record.array, wanted)
                assert record.gram == 1, where
            out = np.full(wanted.shape, np.nan, kind)
            for order in "CF" if a.ndim == 2 else "C":
                out = np.asarray(out, order=order)
                tessera.multiply(a, None, out, gram=True, transpose_a=transposed, triangle=triangle, trials=9)
                assert rank > 0 or np.array_equal(out, wanted), (where, out, wanted)
a = integers((50, 20), "f8")
record = tessera.multiply(a, a, transpose_b=True)  # the same elements: found out
assert record.gram == 1 and (rank > 0 or np.array_equal(record.array, a @ a.T))
record = tessera.multiply(a, a.copy(), transpose_b=True)
assert record.get("gram") != 1 and (rank > 0 or np.array_equal(record.array, a @ a.T))
record = tessera.multiply(tessera.Distributed(mine(a)), gram=True)
assert record.gram == 1 and np.array_equal(record.array, mine(a @ a.T))
""")


def test_files_and_arrays():
    """One of them in a file, or both and C in memory, or C in a file: no other file is made."""
    on_ranks("""
import os, tempfile, h5py
folder = comm.bcast(tempfile.mkdtemp() if rank == 0 else None)
a, b, s = integers((30, 20), "f4"), integers((20, 25), "f8"), integers((4, 20, 6), "f4")
def path(name): return os.path.join(folder, name)
if rank == 0:
    with h5py.File(path("x.h5"), "w") as file: file["A"], file["B"], file["S"] = a, b, s
comm.Barrier()
before = sorted(os.listdir(folder)) if rank == 0 else None
made = []
def audit(event, args):
    if event.startswith("tempfile."): made.append((event, args))
sys.addaudithook(audit)
for order in "CF":
    out = np.zeros((30, 25), order=order)
    tessera.multiply(path("x.h5:/A"), b, out)
    assert rank > 0 or np.array_equal(out, a @ b), out
    tessera.multiply(a, path("x.h5:/B"), out, beta=1, trials=9)
    assert rank > 0 or np.array_equal(out, 2 * (a @ b)), out
    tessera.multiply(path("x.h5:/A[0:30, 4:9]"), path("x.h5:/B[4:9]"), out)
    assert rank > 0 or np.array_equal(out, a[:, 4:9] @ b[4:9]), out
out = np.zeros((4, 30, 6))
tessera.multiply(a, path("x.h5:/S"), out)
assert rank > 0 or np.array_equal(out, a @ s), out
tessera.multiply(a, b, path("c.h5:/C"), chunk="10x10", compress="gzip:1", type="f32")
tessera.multiply(a, s, path("d.npy"))
tessera.multiply(tessera.Distributed(mine(a)), path("x.h5:/B"), path("e.npy"))
tessera.multiply(a, out=path("f.npy"), gram=True)
text = tessera.plan(a, path("x.h5:/B"), path("g.npy"))
assert rank > 0 or "kernel" in text
assert not made, made
comm.Barrier()
if rank == 0:
    with h5py.File(path("c.h5"), "r") as file:
        assert np.array_equal(file["C"][:], a @ b) and file["C"].chunks == (10, 10) and file["C"].dtype == "f4"
    assert np.array_equal(np.load(path("d.npy")), a @ s) and np.array_equal(np.load(path("e.npy")), a @ b)
    assert np.array_equal(np.load(path("f.npy")), a @ a.T)
    assert sorted(os.listdir(folder)) == sorted(before + ["c.h5", "d.npy", "e.npy", "f.npy"]), os.listdir(folder)
    tessera_of = h5py.File(path("x.h5"), "r")
says(tessera.Error, "attributes is an option of products whose A is in a file", a, b, path("h.h5"), attributes=True)
says(tessera.Error, "resume is an option of products of files", a, b, path("h.h5"), resume=True)
comm.Barrier()
if rank == 0:
    import shutil
    shutil.rmtree(folder)
""")


def test_no_array_of_c():
    """Names beside arrays, in any place, where C is an array that is not given: as numpy.matmul, with vectors and
    stacks, and no file is made, nor copied as a whole."""
    on_ranks("""
import os, tempfile, h5py
folder = comm.bcast(tempfile.mkdtemp() if rank == 0 else None)
shapes = {"m": (9, 7), "n": (7, 5), "s": (4, 9, 7), "t": (2, 1, 7, 5), "u": (4, 7, 5), "v": (7,), "w": (9,)}
kinds = dict(zip(shapes, itertools.cycle(("f4", "f8", "c8", "f2"))))
whole = {name: integers(shape, kinds[name]) for name, shape in shapes.items()}
c0s = {"m": integers((9, 5), "f8"), "s": integers((4, 9, 5), "f4"), "v": integers((9,), "f4")}
path = os.path.join(folder, "x.h5")
if rank == 0:
    with h5py.File(path, "w") as file:
        for name, x in whole.items(): file[name] = x
        for name, x in c0s.items(): file["c" + name] = x
comm.Barrier()
made = []
def audit(event, args):
    if event.startswith("tempfile.") or event == "open" and (args[2] or 0) & 0o1101: made.append((event, args))
sys.addaudithook(audit)
def given(name, how):
    return f"{path}:/{name}" if how == "file" else stored(whole[name], how) if how != "C" else whole[name]
def check(found, wanted, where):
    assert rank > 0 or np.array_equal(found, wanted) and found.shape == wanted.shape and found.dtype == wanted.dtype, (
        where, found, wanted)
def wide(a, b): return np.result_type(a, b, "f4")
pairs = [(x, y) for x in whole for y in whole if whole[x].shape[-1] == whole[y].shape[-2:][0] and x != y]
assert len(pairs) > 10
for turn, (x, y) in enumerate(pairs):
    kind = wide(whole[x], whole[y])
    wanted = np.matmul(whole[x].astype(kind), whole[y].astype(kind))
    for left, right in (("file", "C"), ("C", "file"), ("file", "file"))[turn % 2:]:
        found = tessera.multiply(given(x, left), given(y, right), device="cpu").array
        check(found, wanted, (x, y, left, right))
        out = np.zeros(wanted.shape, kind)
        if out.ndim > 0:
            assert tessera.multiply(given(x, left), given(y, right), out).array is out
            check(out, wanted, (x, y, left, right, "out"))
m, n, s, v = whole["m"], whole["n"], whole["s"], whole["v"]
check(tessera.multiply(stored(n, "F"), f"{path}:/m", transpose_a=True, transpose_b=True).array, n.T @ m.T.astype("f8"),
      "transposed")
check(tessera.multiply(f"{path}:/m", n, type="f32", alpha=2).array, (2 * (m @ n)).astype("f4"), "type")
check(tessera.multiply(f"{path}:/s", n, alpha=1j).array, 1j * (s @ n), "complex")
check(tessera.multiply(f"{path}:/s", n, real_part=True).array, (s @ n).real, "real part")
check(tessera.multiply(f"{path}:/m", gram=True).array, m @ m.T, "gram")
check(tessera.multiply(f"{path}:/m[2:5]", n).array, m[2:5] @ n, "slice")
check(tessera.multiply(m[:, :0], f"{path}:/n[0:0]").array, np.zeros((9, 5)), "nothing")
if rank == 0: handle = h5py.File(path, "r")
data = handle["m"] if rank == 0 and ranks == 1 else f"{path}:/m"
check(tessera.multiply(data, n).array, m @ n, "dataset")
# C0: in a file, in an array, and in C's
for left in "C", "file":
    a = given("m", left)
    c0 = c0s["m"]
    for add in f"{path}:/cm", c0, stored(c0, "F"):
        check(tessera.multiply(a, n, add=add, beta=-2, trials=9).array, m @ n - 2 * c0, (left, add))
        for order in "CF":
            out = np.zeros((9, 5), order=order)
            tessera.multiply(a, n, out, add=add, device="cpu")
            check(out, m @ n + c0, (left, add, order))
    out = c0.copy()
    tessera.multiply(a, n, out, beta=3)
    check(out, m @ n + 3 * c0, left)
    check(tessera.multiply(a, whole["v"], add=f"{path}:/cv").array, m.astype("f4") @ v + c0s["v"], "vector in a file")
    check(tessera.multiply(a, whole["v"], add=c0s["v"]).array, m.astype("f4") @ v + c0s["v"], "vector")
check(tessera.multiply(m, n.astype("f4"), add=f"{path}:/cm").array, (m @ n + c0s["m"]).astype("f4"), "factors' type")
check(tessera.multiply(f"{path}:/s", n, add=c0s["s"]).array, s @ n + c0s["s"], "stack")
check(tessera.multiply(s, n, add=f"{path}:/cs", beta=2).array, s @ n + 2 * c0s["s"], "stack in a file")
check(tessera.multiply(m, n.astype("f4"), add=c0s["m"].astype("c8")).array, (m @ n + c0s["m"]).astype("c8"), "types")
# distributed
def some(x): return tessera.Distributed(np.array(mine(x)))
for found, wanted in ((tessera.multiply(some(m), f"{path}:/n"), m @ n),
                      (tessera.multiply(f"{path}:/m", some(n)), m @ n),
                      (tessera.multiply(some(m), n, add=f"{path}:/cm"), m @ n + c0s["m"]),
                      (tessera.multiply(f"{path}:/m", n, add=some(c0s["m"]), trials=9), m @ n + c0s["m"]),
                      (tessera.multiply(f"{path}:/s", some(whole["u"])), s @ whole["u"])):
    assert np.array_equal(found.array, mine(wanted)) and found.array.dtype == wanted.dtype, (found.array, wanted)
assert not made, made
says(tessera.Error, "out is 9 x 4, and the product 9 x 5", f"{path}:/m", n, np.zeros((9, 4)))
says(tessera.Error, "add is 9 x 4, and the product 9 x 5", f"{path}:/m", n, add=np.zeros((9, 4)))
says(tessera.Error, "the columns of the first must be the rows of the second", f"{path}:/m", m)
says(tessera.Error, "must be the same", m, n, add=f"{path}:/m")
says(tessera.Error, "is real", f"{path}:/s", n, type="f32")
comm.Barrier()
if rank == 0:
    import shutil
    assert os.listdir(folder) == ["x.h5"]
    shutil.rmtree(folder)
""")


def test_added_to_a_file():
    """C goes to a file, and C0 is an array, whole or dealt out: it stays as it is, and no other file is made."""
    on_ranks("""
import os, tempfile
folder = comm.bcast(tempfile.mkdtemp() if rank == 0 else None)
os.environ["TMPDIR"] = os.path.join(folder, "nowhere")
tempfile.tempdir = None
a, b, s = integers((40, 30), "f4"), integers((30, 20), "f8"), integers((3, 40, 30), "f4")
c0, cs = integers((40, 20), "f8"), integers((3, 40, 20), "f4")
def path(name): return os.path.join(folder, name)
if rank == 0: np.save(path("a.npy"), a)
comm.Barrier()
def some(x): return tessera.Distributed(np.array(mine(x)))
names = []
def check(wanted, *factors, **options):
    names.append(f"{len(names)}.npy")
    tessera.multiply(*factors, path(names[-1]), **options)
    found = np.load(path(names[-1]))
    assert np.array_equal(found, wanted) and found.shape == wanted.shape, (options, found, wanted)
for how in "C", "F", "C gap", "F gap", "apart", "back":
    add = stored(c0, how)
    before = add.copy()
    check(a @ b + c0, a, b, add=add, device="cpu")
    check(a @ b - 3 * c0, path("a.npy"), b, add=add, beta=-3, trials=9)
    assert np.array_equal(add, before)
check(a @ b + c0, a, b, add=some(c0))
check(a @ b + c0, path("a.npy"), some(b), add=some(c0), trials=9)
check(a @ b + c0, some(a), b, add=c0, panel=4, memory="320K")
check(s @ b + cs, s, b, add=cs, trials=9)
check(s @ b + cs, s, b, add=some(cs))
check(s @ b + cs, some(s), b, add=cs, type="f32")
check(a @ b[:, 0] + c0[:, 0], a, b[:, 0], add=c0[:, 0])
warnings.simplefilter("ignore")  # of integers
check(a @ b + c0.astype("i2"), a, b, add=c0.astype("i2"))
check((a @ b + 1j * c0), a, b, add=c0, beta=1j)
text = tessera.plan(a, b, path("p.npy"), add=c0)
assert rank > 0 or "C0" in text, text
says(tessera.Error, "add is 40 x 30, and the product 40 x 20", a, b, path("p.npy"), add=a)
says(tessera.Error, "resume is an option of products of files", path("a.npy"), path("a.npy"), path("p.npy"), add=c0,
     transpose_b=True, resume=True)
comm.Barrier()
assert sorted(os.listdir(folder)) == sorted(["a.npy", *names]), os.listdir(folder)
comm.Barrier()
if rank == 0:
    import shutil
    shutil.rmtree(folder)
""")


def test_refusals():
    """Every rank raises, whichever rank finds what is wrong."""
    on_ranks("""
a, b = np.ones((2, 3)), np.ones((3, 2))
says(tessera.Error, "the columns of the first, 3, must be the rows of the second, 2", a, a)
says(tessera.Error, "b (3 x 2, transposed)", a, b, transpose_b=True)
says(tessera.Error, "out is 2 x 3, and the product 2 x 2", a, b, a.copy())
says(tessera.Error, "add is 2 x 3, and the product 2 x 2", a, b, add=a)
says(tessera.Error, "chunk is an option of products whose C is a file", a, b, chunk="auto")
says(tessera.Error, "resume is an option of products", a, b, resume=True)
says(tessera.Error, "external is an option of products of files", a, b, external=".")
says(tessera.Error, "triangle lower: only a matrix times its own transpose", a, b, triangle="lower")
says(tessera.Error, "one matrix too many", a, b, gram=True)
says(tessera.Error, "as many matrices of both, or 1", np.ones((2, 2, 3)), np.ones((3, 3, 2)))
says(tessera.Error, "b (4 x 2 x 3): the columns of the first, 3, must be the rows of the second, 2", a,
     np.ones((4, 2, 3)))
says(tessera.Error, "out is 2 x 2, and the product 5 x 2 x 2", np.ones((5, 2, 3)), b, np.zeros((2, 2)))
says(ValueError, "out has 1 dimensions", a, b, np.zeros(2))
says(ValueError, "a has 0 dimensions", np.array(3.0), b)
stack = tessera.Distributed(np.ones((2, 2, 3)), (2, 2, 3), block=(1, 1))
says(ValueError, "is a stack: each rank has matrices", stack, b)
assert tessera.multiply(a, b, trials=9).check.startswith("PASSED: every row")
says(TypeError, "cast it to one of float16", a.astype("g"), b)
says(TypeError, "b holds object", a, b.astype(object))
says(TypeError, "out holds int32", a, b, np.zeros((2, 2), "i4"))
says(TypeError, "out holds float64, which is C's type", a, b, np.zeros((2, 2)), type="f32")
says(TypeError, "type i8", a, b, type="i8")
says(TypeError, "order is an option of products of files", a, b, order="col")
says(TypeError, "b is missing", a, None)
says(tessera.Error, "cannot open 'a.h5'", "a.h5", b, np.zeros((2, 2)))
says(tessera.Error, "cannot open 'a.h5'", "a.h5", tessera.Distributed(mine(b)))
says(tessera.Error, "cannot open 'c.h5'", a, b, np.zeros((2, 2)), add="c.h5")
says(tessera.Error, "cannot open 'c.h5'", a, b, add="c.h5")
says(TypeError, "b is a int", a, 3)
says(ValueError, "beta scales what C holds", a, b, beta=2)
says(ValueError, "out and a share memory", a[:, :2], b[:2], a[:, 1:])
says(ValueError, "follow each other", a, b, np.zeros((4, 4))[::2, ::2])
fixed = np.zeros((2, 2))
fixed.flags.writeable = rank != ranks - 1  # the last rank's alone
says(ValueError, "read-only", a, b, fixed)
says(TypeError, "no option 'kernal'", a, b, kernal="x")
says(ValueError, "that rank's part of", tessera.Distributed(np.ones((4, 3)), (7, 3)), b)
says(ValueError, "there are", tessera.Distributed(a, (2, 3), grid=(9, 9)), b)
says(ValueError, "no such place", tessera.Distributed(a, (2, 3), grid=(1, 1), first=(1, 0)), b)
says(ValueError, "in blocks of 0 x 1", tessera.Distributed(a, (2, 3), block=(0, 1)), b)
says(ValueError, "1 dimensions", tessera.Distributed(np.ones(3)), b)
if ranks > 1:
    says(ValueError, "not dealt out to a grid", tessera.Distributed(a, (2, 3), grid=(1, 2), shared=True), b)
    says(ValueError, "of 2 types on the ranks", tessera.Distributed(mine(np.ones((9, 3), "f4" if rank else "f8"))), b)
    says(ValueError, "rank 0, and that rank's part", tessera.Distributed(np.ones((2 + rank, 3))), b)
    dealt = tessera.Distributed(np.ones((2, 3)), (6, 3), block=(2 + rank % 2, 3))
    says(ValueError, "in another way on rank 1", dealt, b)
    turns = tessera.Distributed(np.ones((2, 3) if rank else (1, 2, 3)))
    says(ValueError, "3 dimensions on one rank, and others elsewhere", turns, b)
    x = a.astype("g") if rank == ranks - 1 else a
    says(TypeError, "a holds", x, b)
found = tessera.multiply(a, b).array
assert rank > 0 or found.tolist() == [[3, 3], [3, 3]]
""")


try:
    import mpi4py  # noqa: F401: what the package needs here
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
main(globals())
