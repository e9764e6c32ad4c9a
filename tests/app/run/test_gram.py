"""Gram matrices: both halves of C are the same bits and A's product with its transpose, for any type, order, slice,
chunks, stack, triangle and number of ranks. A is read once, and half of the products are made."""
import json
import os

import h5py

from lib import fails, leftovers, main, np, random, read, run, write

CPU = ("--force", "--device", "cpu")


def gram(*args, ranks=0, out="c.h5"):
    """C and the record of a run."""
    run("multiply", *args, "-o", out, *CPU, "--log", "log.json", ranks=ranks)
    with open("log.json") as file:
        record = json.load(file)
    assert record["gram"] == 1, record
    assert not leftovers(), leftovers()
    return read(out), record


def test_symmetric_to_the_bit():
    """Random values, whose sums round: the halves are equal only where one was made of the other."""
    for dtype in ("f4", "f8", ">f4", "f2", "i2"):
        values = random.standard_normal((333, 211)) if "f" in dtype else random.integers(-4, 5, size=(333, 211))
        a = write(f"a{dtype.strip('>')}.h5", values.astype(dtype), "A" + dtype.strip(">"))
        stored = read(a.split(":")[0], "A" + dtype.strip(">")).astype("f8")
        for transpose in (False, True):
            want = stored.T @ stored if transpose else stored @ stored.T
            for ranks, options in ((0, ()), (2, ("--grid", "1x1x2")), (2, ("--grid", "2x1x1")), (3, ()),
                                   (4, ("--grid", "2x2x1")), (0, ("--memory", "1MiB", "--host-memory", "1MiB"))):
                if dtype != "f4" and ranks > 2:
                    continue
                c, record = gram("--gram", a, *(["--transpose-a"] if transpose else []), *options, ranks=ranks)
                case = f"{dtype}, {transpose}, {ranks} ranks, {options}"
                assert np.array_equal(c, c.T), f"{case}: not symmetric"
                bound = 1e-2 if dtype == "f2" and c.dtype == "f2" else 2e-5
                assert np.allclose(c, want, rtol=0, atol=bound * 60), f"{case}: {np.abs(c - want).max()}"
                flops = sum(rank["flops"] for rank in record["ranks"])
                assert flops < 0.8 * 2 * record["m"] * record["n"] * record["k"], f"{case}: {flops} flops"


def test_read_once():
    """Also where C is cut into super-blocks, as long as there is memory to keep A."""
    a = write("once.h5", random.standard_normal((600, 400)).astype("f4"), "A")
    for ranks, options in ((0, ()), (3, ("--grid", "1x1x3")), (0, ("--memory", "3MB", "--host-memory", "3MB"))):
        c, record = gram("--gram", a, *options, ranks=ranks)
        bytes_read = sum(rank["read_bytes"] for rank in record["ranks"])
        assert bytes_read == 600 * 400 * 4, f"{options}: {bytes_read} bytes read of {600 * 400 * 4}"
        assert (record["super_blocks_m"] > 1) == ("--memory" in options), record
        assert np.array_equal(c, c.T), options


def test_found_without_option():
    """The same elements by other names and, with another slice or twice the same way round, a product like any."""
    values = random.integers(-4, 5, size=(90, 120)).astype("f4")
    write("found.h5", values, "A")
    for first, second, same in (("found.h5:/A", "./found.h5:/A", True),
                                ("found.h5:/A[5:60,:]", "found.h5:/A[5:60]", True),
                                ("found.h5:/A[5:60,:]", "found.h5:/A[6:61,:]", False)):
        run("multiply", first, second, "--transpose-b", "-o", "c.h5", *CPU, "--log", "log.json")
        with open("log.json") as file:
            assert json.load(file)["gram"] == same, (first, second)
    a, b = values[5:60], values[6:61]
    assert np.array_equal(read("c.h5"), a @ b.T)
    write("square.h5", values[:, :90], "A")
    run("multiply", "square.h5", "square.h5", "-o", "c.h5", *CPU, "--log", "log.json")
    with open("log.json") as file:
        assert json.load(file)["gram"] == 0
    assert np.array_equal(read("c.h5"), values[:, :90] @ values[:, :90])
    run("multiply", "square.h5", "square.h5", "--transpose-b", "--add", "square.h5", "-o", "c.h5", *CPU, "--log",
        "log.json")
    with open("log.json") as file:
        assert json.load(file)["gram"] == 0  # C0 is not symmetric
    assert np.array_equal(read("c.h5"), values[:, :90] @ values[:, :90].T + values[:, :90])


def test_triangles_orders_and_scales():
    values = random.integers(-4, 5, size=(150, 70)).astype("f4")
    a = write("tri.h5", values, "A")
    for order in ("row", "col"):
        seen = values if order == "row" else values.T
        for transpose in (False, True):
            whole = -2 * (seen.T @ seen if transpose else seen @ seen.T)
            for triangle, part in (("full", lambda x: x), ("lower", np.tril), ("upper", np.triu)):
                for ranks in (0, 2):
                    c, record = gram("--gram", a, "--order", order, "--triangle", triangle, "--alpha", -2,
                                     *(["--transpose-a"] if transpose else []), ranks=ranks)
                    c = c if order == "row" else c.T
                    assert np.array_equal(c, part(whole)), f"{order} {transpose} {triangle} {ranks}"
                    assert record["triangle"] == triangle, record


def test_halves_are_verified():
    """By --verify and by verify; one wrong element is found in either half, and beyond the first tile."""
    values = random.standard_normal((150, 70)).astype("f4")
    a = write("tri.h5", values, "A")
    cases = (("row", "--transpose-b", "lower", 0), ("col", "--transpose-b", "lower", 3),
             ("row", "--transpose-a", "upper", 2), ("col", "--transpose-a", "upper", 0))
    for order, transpose, triangle, ranks in cases:
        options = ("--order", order, transpose, "--triangle", triangle)
        out = run("multiply", a, a, *options, "-o", "half.h5", *CPU, "--chunk", "31x17", "--verify", ranks=ranks).out
        assert "PASSED" in out, out
        check = ("verify", a, a, "half.h5", *options)
        assert "PASSED" in run(*check, ranks=ranks).out
        fails(*check[:-2], code=3, says="FAILED")  # the whole is something else
        c = read("half.h5")
        rows, cols = c.shape
        for i, j in ((rows - 1, 0), (0, cols - 1), (rows // 2, rows // 2 + 1), (rows // 2 + 1, rows // 2)):
            wrong = c.copy()
            wrong[i, j] += 1 if i > j else np.nan
            write("wrong.h5", wrong, "C")
            fails("verify", a, a, "wrong.h5", *options, code=3, says="FAILED")
    stack = write("stack.h5", values.reshape(5, 30, 70), "A")
    out = run("multiply", "--gram", stack, "--triangle", "lower", "-o", "half.h5", *CPU, "--verify").out
    assert "PASSED" in out, out
    square = write("square.h5", np.ones((3, 3), "f4"), "A")
    fails("verify", square, square, square, "--triangle", "lower", "--add", square, code=2, says="has no C0")
    z = write("z.h5", np.ones((3, 3), "c8"), "A")
    fails("verify", z, z, z, "--transpose-b", "--triangle", "lower", code=1, says="is complex")
    wide = write("wide.h5", np.ones((4, 3), "f4"), "A")
    fails("verify", wide, write("right.h5", np.ones((3, 2), "f4"), "B"), write("c.h5", np.full((4, 2), 3, "f4"), "C"),
          "--triangle", "upper", code=1, says="not symmetric")


def test_chunks():
    """Chunks of C are written once, whatever their shape: cut along both sides of them."""
    values = random.integers(-4, 5, size=(190, 60)).astype("f4")
    write("a.h5", values)
    for chunk, ranks, options in (((32, 32), 0, ("--compress", "gzip:1")), ((24, 40), 0, ()), ((24, 40), 3, ()),
                                  ((7, 190), 0, ()), ((61, 3), 2, ("--grid", "2x1x1")),
                                  ((16, 8), 0, ("--memory", "200KB", "--host-memory", "4MB"))):
        run("multiply", "--gram", "a.h5", "-o", "c.h5", *CPU, "--chunk", "%dx%d" % chunk, *options, ranks=ranks)
        with h5py.File("c.h5") as file:
            c = file["C"]
            assert c.chunks == chunk and np.array_equal(c[:], values @ values.T), f"{chunk} {options} {ranks}"


def test_stack():
    values = random.integers(-4, 5, size=(5, 40, 33)).astype("f4")
    a = write("stack.h5", values, "A")
    for ranks in (0, 3):
        c, record = gram("--gram", a, ranks=ranks)
        assert np.array_equal(c, values @ values.transpose(0, 2, 1)) and record["products"] == 5, ranks
        c, record = gram("--gram", a + "[1:4, 2:9, :]", "--transpose-a", ranks=ranks)
        part = values[1:4, 2:9]
        assert np.array_equal(c, part.transpose(0, 2, 1) @ part), ranks


def test_small_ones_of_a_stack():
    """Made whole, many at a time, and symmetric to the bit whatever the kernel does: none of 700 takes a step alone."""
    values = random.standard_normal((7, 100, 37, 29)).astype("f4")
    a = write("small.h5", values, "A")
    for ranks, options in ((0, ()), (2, ()), (0, ("--transpose-a",)), (0, ("--alpha", 2)), (0, ("--type", "f64")),
                           (0, ("--kernel", "reference")), (2, ("--order", "col")), (0, ("--type", "f16"))):
        c, record = gram("--gram", a, *options, ranks=ranks)
        turned = "--transpose-a" in options or "--order" in options
        x = (values.swapaxes(2, 3) if turned else values).astype("f8")
        want = x @ x.swapaxes(2, 3) * (2 if "--alpha" in options else 1)
        assert np.array_equal(c, c.swapaxes(2, 3)), (ranks, options)
        assert np.abs(c - want).max() < (0.1 if "f16" in options else 1e-4), (ranks, options)
        tiles, flops = (sum(rank[what] for rank in record["ranks"]) for what in ("tiles", "flops"))
        m, n, k = (record[edge] for edge in "mnk")
        assert record["products"] == 700 and tiles < 100 and flops == 2 * m * n * k * 700, record
    for triangle, part, zeros in (("lower", np.tril, np.triu), ("upper", np.triu, np.tril)):
        c, record = gram("--gram", a, "--triangle", triangle, "--verify", ranks=2)
        assert record["triangle"] == triangle and np.allclose(c, part(values @ values.swapaxes(2, 3)), atol=1e-4)
        assert not zeros(c, 1 if triangle == "lower" else -1).any(), triangle
        assert "PASSED" in run("verify", a, a, "c.h5", "--transpose-b", "--triangle", triangle).out
    out = " ".join(run("multiply", "--gram", a, "-o", "c.h5", *CPU).out.split())
    assert "symmetric: all of it multiplied, 700 products" in out, out
    assert "many at a time" in run("multiply", "--gram", a, "-o", "c.h5", *CPU, "--dry-run").out
    write("other.h5", values, "A")
    run("multiply", a, "other.h5:/A", "--transpose-a", "-o", "c.h5", *CPU, "--log", "log.json")
    with open("log.json") as file:
        record = json.load(file)
    assert record["gram"] == 0 and (record["m"], record["n"], record["k"]) == (29, 29, 37), record


def test_edges():
    for rows, cols in ((1, 1), (1, 9), (9, 1), (0, 4), (4, 0)):
        values = random.integers(-4, 5, size=(rows, cols)).astype("f4")
        a = write("edge.h5", values, "A")
        c, _ = gram("--gram", a)
        assert np.array_equal(c, values @ values.T), (rows, cols)
    c, _ = gram("--gram", a, "--alpha", 0)
    assert not c.any()


def test_overflows():
    """How many they are is not said: those of the mirror are not counted."""
    a = write("large.h5", np.full((3, 4), 200.0, "f4"), "A")
    said = run("multiply", "--gram", a, "-o", "inf.h5", *CPU, "--type", "f16").err
    assert "warning: elements of C overflowed f16 and are Inf: use --type f32" in said, said
    assert np.isinf(read("inf.h5")).all()


def test_plan_and_summary_say_so():
    a = write("said.h5", random.standard_normal((64, 64)).astype("f4"), "A")
    out = run("multiply", "--gram", a, "-o", "said-c.h5", "--device", "cpu", "--dry-run").out
    assert "Gram matrix    op(B) is op(A) transposed" in out and "A is read once, for both factors" in out, out
    out = run("multiply", "--gram", a, "-o", "said-c.h5", "--device", "cpu", "--verify").out
    assert "symmetric: half of it" in out and "PASSED" in out, out


def test_bad_input():
    a = write("bad.h5", random.standard_normal((6, 5)).astype("f4"), "A")
    vector = write("bad.h5", np.ones(5, "f4"), "v")
    for args, says in ((("--gram", a, a), "one matrix too many"), (("--gram", a, "--transpose-b"), "--transpose-b"),
                       (("--gram", a, "--add", a), "--add"), (("--gram", a, "--beta", 2), "--beta"),
                       (("--gram",), "two matrices are needed"),
                       ((a, a, "--transpose-b", "--triangle", "left"), "use full, lower or upper")):
        fails("multiply", *args, "-o", "none.h5", code=2, says=says)
    b = write("bad.h5", np.ones((5, 6), "f4"), "B")
    fails("multiply", a, b, "-o", "none.h5", "--triangle", "lower", code=2, says="--triangle lower")
    z = write("z.h5", np.ones((3, 3), "c8"), "Z")
    fails("multiply", z, z, "--transpose-b", "-o", "none.h5", "--triangle", "lower", code=1, says="real Gram matrices")
    fails("multiply", "--gram", vector, "-o", "none.h5", code=1, says="'bad.h5' is none")
    z = write("bad.h5", np.ones((3, 4), "c8"), "z")
    fails("multiply", "--gram", z, "-o", "none.h5", code=1, says=["twice, with --transpose-b", "--adjoint-b"])
    fails("multiply", "--gram", "--transpose-a", z, "-o", "none.h5", code=1,
          says=["twice, with --transpose-a", "--adjoint-a"])
    assert not leftovers() and not any(name.startswith("none") for name in os.listdir(".")), leftovers()


main(globals())
