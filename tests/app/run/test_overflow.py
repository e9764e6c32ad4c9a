"""Elements of C that are finite as sums and infinite in C's type are counted, on every rank, warned of once and kept in
the records. What is NaN or Inf already is none, and neither is what fits."""
import json
import re

import h5py

from lib import fails, main, np, random, read, run, write


def multiply(a, b, *more, ranks=0):
    """C, the number of overflows that records and terminal agree on, and the check's words."""
    write("a.h5", a), write("b.h5", b)
    options = ["--force", "--device", "cpu", "--log", "log.json", "--verify", *more]
    result = run("multiply", "a.h5", "b.h5", "-o", "c.h5", *options, ranks=ranks)
    with open("log.json") as file:
        record = json.load(file)
    count = record["overflows"]
    assert sum(rank["overflows"] for rank in record["ranks"]) == count, record
    with h5py.File("c.h5") as file:
        attributes = file["C.run"].attrs
        assert attributes["overflows"] == count and sum(file["C.run/ranks"]["overflows"]) == count, dict(attributes)
        assert attributes["warnings"] == record["warnings"] and attributes["check"] == record["check"], dict(attributes)
    c = read("c.h5")
    warned = [line for line in result.err.splitlines() if "elements of C overflowed" in line]
    assert len(warned) == (count > 0), result
    if count:
        type_name = {2: "f16", 4: "f32"}[c.dtype.itemsize]
        wanted = f"tessera: warning: {count} of {c.size} elements of C overflowed {type_name} and are Inf: use --type f"
        assert warned[0].startswith(wanted) and warned[0][len("tessera: warning: "):] in record["warnings"], warned
    else:
        assert "overflow" not in record["warnings"], record
    judged = record["check"].startswith("PASSED: every row")
    small = "--host-memory" in more or "--memory" in more  # the check works out as many elements as its memory holds
    assert judged or (count and small and record["check"].startswith("INCOMPLETE, ")), record["check"]
    return c, count, record


def beyond(values, dtype):
    """Finite values that the type rounds to infinity."""
    with np.errstate(over="ignore"):
        return int(np.sum(np.isfinite(values) & np.isinf(values.astype(dtype))))


def some(rows, cols, scale):
    """Whole numbers, so that sums are exact, with large rows among small ones."""
    return (random.integers(-9, 10, size=(rows, cols)) * np.where(np.arange(rows) % 3, 1, scale)[:, None]).astype("f4")


def test_half():
    a, b = some(37, 40, 800), some(40, 31, 1)
    exact = a.astype("f8") @ b.astype("f8")
    expected = beyond(exact, "f2")
    assert 10 < expected < exact.size - 10, expected
    grids = ([], 0), ([], 1), ([], 2), ([], 3), (["--grid", "1x1x3"], 3), (["--grid", "1x2", "--panel", "7"], 2)
    for more, ranks in grids:
        c, count, record = multiply(a, b, "--type", "f16", *more, ranks=ranks)
        assert (count == expected and
                np.sum(np.isinf(c)) == expected), f"{more} on {ranks} ranks: {count}, not {expected}"
    assert record["warnings"].endswith("use --type f32"), record["warnings"]
    for more in (["--type", "f32"], []):
        assert multiply(a, b, *more, ranks=2)[1] == 0
    small, none, record = multiply(a / 800, b, "--type", "f16", ranks=3)
    assert none == 0 and not np.isinf(small).any() and not record["warnings"], record


def test_outputs():
    """Chunked and compressed, column by column, little memory: each element is converted once."""
    a, b = some(61, 50, 900), some(50, 47, 1)
    exact = a.astype("f8") @ b.astype("f8")
    expected = beyond(exact, "f2")
    for more in (["--chunk", "16x9"], ["--chunk", "auto", "--compress", "gzip", "--shuffle"], ["--memory", "60K"]):
        for ranks in (0, 3):
            c, count, _ = multiply(a, b, "--type", "f16", *more, ranks=ranks)
            assert count == expected == np.sum(np.isinf(c)), f"{more} on {ranks} ranks: {count}, not {expected}"
    for ranks in (0, 2):
        c, count, _ = multiply(a.T, b.T, "--type", "f16", "--order", "col", ranks=ranks)
        assert count == expected and np.array_equal(np.isinf(c.T), np.abs(exact) >= 65520), count


def test_incomplete():
    """More overflows than the check has room to work out: it says so, in the record, too, and C is there."""
    a, b = some(90, 50, 900), some(50, 80, 1)
    for ranks in (0, 2):
        _, count, record = multiply(a, b, "--type", "f16", "--host-memory", "300K", "--memory", "300K", ranks=ranks)
        assert (count > 300 and
                re.match(r"INCOMPLETE, [1-9]\d* rows not judged: every other row", record["check"])), record
        assert "the check did not judge" in record["warnings"] and record["status"] == "done", record
        shown = " ".join(run("info", "log.json").out.split())
        assert "check INCOMPLETE, " in shown, shown


def test_alpha_and_beta():
    """What counts is alpha·A·B + beta·C0: C0 can bring a sum back, or be beyond the type alone."""
    a, b = some(20, 30, 1), some(30, 25, 1)
    product = a.astype("f8") @ b.astype("f8")
    write("c0.h5", np.where(product > 0, -product, product) * 300)
    c0 = read("c0.h5")
    for ranks in (0, 3):
        _, count, _ = multiply(a, b, "--alpha", 400, "--type", "f16", ranks=ranks)
        assert count == beyond(400 * product, "f2") > 0, count
        _, count, _ = multiply(a, b, "--alpha", 400, "--add", "c0.h5", "--type", "f16", ranks=ranks)
        assert count == beyond(400 * product + c0, "f2") != beyond(400 * product, "f2"), count
        _, count, _ = multiply(a, b, "--alpha", 0, "--add", "c0.h5", "--type", "f16", ranks=ranks)
        assert count == beyond(c0, "f2") > 0, count
        _, count, _ = multiply(a, b, "--alpha", 1e37, ranks=ranks)
        assert count == beyond(1e37 * product, "f4") > 0, count


def test_f64_to_f32():
    a, b = some(9, 8, 1).astype("f8"), some(8, 7, 1).astype("f8")
    a[4] *= 1e40
    exact = a @ b
    c, count, record = multiply(a, b, "--type", "f32", ranks=2)
    assert (count == beyond(exact, "f4") == np.sum(np.isinf(c)) > 0 and
            record["warnings"].endswith("use --type f64")), record
    c, count, record = multiply(a, b, "--type", "f16", ranks=2)
    assert count == beyond(exact, "f2") and record["warnings"].endswith("use --type f64"), record
    assert multiply(a, b)[1] == 0
    whole = np.full((1, 700), 255, "u1")
    c, count, record = multiply(whole, whole.T, "--type", "f16")
    assert count == 1 and len(record["warnings"].splitlines()) == 2, record


def test_not_finite():
    """NaN and Inf of A and B, and sums that leave fp32 before they are converted, are no overflows of C's type."""
    a, b = some(12, 10, 1), some(10, 9, 1)
    a[2, 3], a[5, 5], b[1, 4] = np.inf, np.nan, -np.inf
    for ranks in (0, 3):
        c, count, _ = multiply(a, b, "--type", "f16", ranks=ranks)
        assert count == 0 and np.isinf(c).any() and np.isnan(c).any(), count
    huge = np.full((2, 2), 3e38, "f4")
    for ranks in (0, 2):  # nothing else would say so to who is not told more
        write("a.h5", huge)
        result = run("multiply", "--quiet", "a.h5", "a.h5", "-o", "c.h5", "--force", "--device", "cpu", ranks=ranks)
        assert "2 rows of products hold NaN or Inf" in result.err, result
        assert "too large for f32, for which there is --type f64" in result.err, result
        with h5py.File("c.h5") as file:
            said = file["C.run"].attrs["product_check"]
        checked = run("multiply", "a.h5", "a.h5", "-o", "c.h5", "--force", "--device", "cpu", "--verify", ranks=ranks)
        assert "NaN or Inf" not in checked.err, checked  # --verify judges them, or says that it does not
        assert said.startswith("INCOMPLETE: 0 rows") and "inf" not in said and said.endswith("2 not judged"), said
        assert "NaN" not in run("multiply", "a.h5", "a.h5", "-o", "c.h5", "--force", "--type", "f64").err
    c, count, _ = multiply(huge, huge, "--type", "f16")
    assert count == 0 and np.isinf(c).all(), c


def test_wrong_c():
    """Overflow hides no other error: here C's file is not what was written."""
    a, b = some(12, 10, 900), some(10, 9, 1)
    c, count, _ = multiply(a, b, "--type", "f16")
    assert count > 0
    row = int(np.argwhere(np.isfinite(c).all(axis=1))[0][0])
    c[row, 0] += 50
    write("c.h5", c)
    fails("verify", "a.h5", "b.h5", "c.h5", code=3, says="FAILED: 1 of 12 rows")


main(globals())
