"""Products of integers: exact wherever fp64 can hold what the types and k allow. A run says where C is f64 for that,
and warns of what cannot be exact. Expected values are Python's integers, which have no end."""
import json

import h5py

from lib import main, np, random, read, run, write


def whole(rows, cols, dtype, low=None, high=None):
    low = np.iinfo(dtype).min if low is None else low
    high = np.iinfo(dtype).max if high is None else high
    return random.integers(low, high + 1, size=(rows, cols), dtype=dtype)


def multiply(a, b, *more, ranks=0, out="c.h5", **how):
    """The product, the warnings of the run, and its result. Warnings on stderr and in both records are the same."""
    write("a.h5", a, **how), write("b.h5", b, **how)
    options = ["--force", "--device", "cpu", "--log", "log.json", *more]
    result = run("multiply", "a.h5", "b.h5", "-o", out, *options, ranks=ranks)
    mark = "tessera: warning: "
    said = [line[len(mark):] for line in result.err.splitlines() if line.startswith(mark)]
    with open("log.json") as file:
        assert json.load(file)["warnings"].splitlines() == said, result
    with h5py.File(out) as file:
        assert file["C.run"].attrs["warnings"].splitlines() == said, result
    return read(out), said, result


def exact(c, a, b, what):
    expected = a.astype(object) @ b.astype(object)
    wrong = [(int(x), y) for x, y in zip(c.ravel().tolist(), expected.ravel().tolist()) if x != y]
    assert not wrong, f"{what}: {len(wrong)} elements differ, such as {wrong[0]}"


def check(a_type, b_type, k, wide, ranks=0, m=3, n=2):
    """Full range of both types: C is exact, f64 where f32 would not do, and only there the run's first line says so."""
    a, b = whole(m, k, a_type), whole(k, n, b_type)
    a[0, :], b[:, 0] = np.iinfo(a_type).max, np.iinfo(b_type).max
    a[1, :], b[:, 1] = np.iinfo(a_type).min, np.iinfo(b_type).min
    c, said, result = multiply(a, b, ranks=ranks)
    what = f"{a_type} x {b_type}, k = {k}"
    exact(c, a, b, what)
    assert c.dtype == ("f8" if wide else "f4") and not said, f"{what}: {result}"
    first = result.out.splitlines()[0]
    assert first.startswith("C is f64") == wide, f"{what}: {result}"
    if wide:
        assert f"k = {k}" in first and len(first) <= 80, f"{what}: {first}"
    run("verify", "a.h5", "b.h5", "c.h5")


def test_long_sums():
    """255·255·70000 is beyond 2^24, and odd sums there are not floats."""
    a, b = np.full((1, 70000), 255, "u1"), np.full((70000, 1), 255, "u1")
    a[0, -1], b[-1, 0] = 1, 1  # an odd sum
    expected = 255 * 255 * 69999 + 1
    for more in ([], ["--grid", "1x1x2"], ["--panel", 1000]):
        c, said, result = multiply(a, b, *more, "--verify", ranks=2)
        assert c.dtype == "f8" and c[0, 0] == expected and not said, f"{more}: {c} instead of {expected}: {result}"
        assert result.out.splitlines()[0].startswith("C is f64"), result
    plan = run("multiply", "a.h5", "b.h5", "-o", "dry.h5", "--device", "cpu", "--dry-run")
    assert "f64" in plan.out.splitlines()[0] and "k = 70000" in plan.out.splitlines()[0], plan
    c, said, result = multiply(a, b, "--type", "f64")
    assert c[0, 0] == expected and not said, result
    assert not result.out.startswith("C is"), f"what was asked for needs no explanation: {result}"
    for more in (["--type", "f32"], ["--accuracy", "fast"], ["--type", "f16"]):
        c, said, result = multiply(a, b, *more)
        assert c.dtype == ("f2" if "f16" in more else "f4") and json.load(open("log.json"))["type"] == "f32", result
        assert any("may not be exact" in line and "k = 70000" in line and "--type f64" in line for line in said), result
        assert not result.out.startswith("C is"), result
    assert not multiply(a, b, "--quiet")[2].out and read("c.h5").dtype == "f8"
    options = ["--device", "cpu", "--type", "f32", "--dry-run"]
    warned = run("multiply", "a.h5", "b.h5", "-o", "dry.h5", *options, ranks=2).err
    assert warned.count("may not be exact") == 1, warned


def test_thresholds():
    """The last k of every pair of types that fits f32, and the next."""
    pairs = (("u1", "u1", 258), ("i1", "i1", 1024), ("i1", "u1", 514), ("u1", "i2", 2), ("u2", "i1", 2))
    for a_type, b_type, last in pairs:
        check(a_type, b_type, last, False)
        check(a_type, b_type, last + 1, True)
    check("i2", "i2", 1, True)
    check("u2", "i2", 3000, True, ranks=3)
    check("u2", "u2", 70, True)


def test_alpha_and_c0():
    """What alpha and C0 make of a sum counts, too."""
    a, b = np.full((2, 200), 255, "u1"), np.full((200, 2), 255, "u1")
    c0 = np.full((2, 2), 2**31 - 2, "i4")
    write("c0.h5", c0)
    sums = 255 * 255 * 200
    c, said, result = multiply(a, b)
    assert c.dtype == "f4" and np.all(c == sums) and not said, result
    c, said, result = multiply(a, b, "--alpha", 3)
    assert c.dtype == "f8" and np.all(c == 3 * sums) and not said and result.out.startswith("C is f64"), result
    c, said, result = multiply(a, b, "--add", "c0.h5", "--alpha", -1)
    assert c.dtype == "f8" and np.all(c == c0.astype("i8") - sums) and not said, result
    assert "u8 x u8 + i32" in result.out.splitlines()[0], result
    c, said, result = multiply(a, b, "--add", "c0.h5", "--alpha", 0)
    assert c.dtype == "f8" and np.all(c == c0) and not said, result
    run("verify", "a.h5", "b.h5", "c.h5", "--add", "c0.h5", "--alpha", 0)
    c, said, result = multiply(a, b, "--alpha", 0.25)
    assert c.dtype == "f4" and np.all(c == sums / 4) and not said, result
    c, said, result = multiply(a, b, "--alpha", 3, "--type", "f32")
    assert c.dtype == "f4" and len(said) == 1 and "may not be exact" in said[0], result


def test_column_order():
    a, b = whole(4, 300, "u1"), whole(300, 5, "i1")
    write("a.h5", a.T), write("b.h5", b.T)
    for ranks in (1, 3):
        options = ["--force", "--order", "col", "--device", "cpu", "--alpha", 100]
        result = run("multiply", "a.h5", "b.h5", "-o", "c.h5", *options, ranks=ranks)
        assert result.out.startswith("C is f64") and not result.err, result
        exact(read("c.h5").T / 100, a, b, "column order")


def test_beyond_f64():
    """i32 and wider: nothing is wider than f64. A run says what its types may lose, once, on any number of ranks."""
    small = whole(3, 4, "i4", -9, 9), whole(4, 3, "i4", -9, 9)
    for ranks in (0, 3):
        c, said, result = multiply(*small, ranks=ranks)
        exact(c, *small, "small values")
        assert c.dtype == "f8" and len(said) == 1 and "may not be exact" in said[0], result
        assert "2^53" in said[0] and "--type" not in said[0], result
        assert not result.out.startswith("C is"), f"f64 is what these types always had: {result}"
    large = np.full((2, 3), 2**53 + 1, "i8"), np.eye(3, 2, dtype="u1")
    c, said, result = multiply(*large)
    assert c[0, 0] == 2**53 and len(said) == 1 and "values of i64 beyond 2^53" in said[0], result
    c, said, result = multiply(whole(3, 4, "u2"), whole(4, 3, "i4"))
    assert not said, f"2^16 · 2^31 · 4 is within 2^53: {result}"
    c, said, result = multiply(whole(3, 4, "u2"), whole(4, 3, "i4"), "--type", "f32")
    assert c.dtype == "f4" and len(said) == 1 and "--type f64" in said[0], result


def test_not_integers():
    """Integers times floats, and floats: no sum is exact anyway: nothing is said. But of a C0 that C cannot hold."""
    write("c0.h5", whole(2, 2, "i4"))
    for a_type, b_type, expected in (("u1", "f4", "f4"), ("f2", "i2", "f4"), ("i8", "f8", "f8"), ("f4", "f4", "f4")):
        a = np.ones((2, 70000), a_type)
        c, said, result = multiply(a, np.ones((70000, 2), b_type))
        assert c.dtype == expected and np.all(c == 70000) and not said and not result.out.startswith("C is"), result
    c, said, result = multiply(a, np.ones((70000, 2), "f4"), "--add", "c0.h5")
    assert c.dtype == "f4" and said == ["'c0.h5' is i32 and C f32, to which it is rounded: --type f64 keeps it"], result


def test_named_kernel():
    """A kernel asked for by name does what it can: these make f64, too."""
    a, b = whole(3, 1000, "u1"), whole(1000, 2, "u1")
    for kernel in ("reference", "blas"):
        c, said, result = multiply(a, b, "--kernel", kernel)
        exact(c, a, b, kernel)
        assert c.dtype == "f8" and not said, result


main(globals())
