"""What only a GPU can show from outside: the kernels that --accuracy allows, how far their products are off, and data
that a kernel hands to another. Exit code 77: this tessera finds no GPU."""
import json
import subprocess
import sys

from lib import ENVIRONMENT, command_line, main, np, read, run, write

if subprocess.run(command_line(["bench", "gemm", "--device", "cuda", "--kernel", "naive", "--shape", "8"]),
                  capture_output=True, env=ENVIRONMENT).returncode:
    print("skipped: no GPU")
    sys.exit(77)

random = np.random.default_rng(5)


def multiply(a, b, *more, check="files"):
    write("a.h5", a), write("b.h5", b)
    out = run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cuda", "--check", check, "--log",
              "log.json", *more).out
    with open("log.json") as file:
        return read("c.h5"), json.load(file), out


def test_accuracy():
    """Each class within its own bound, and a product that lost more than ieee says so in the record."""
    a, b = random.normal(size=(1501, 2003)).astype("f4"), random.normal(size=(2003, 1001)).astype("f4")
    exact, size = a.astype("f8") @ b.astype("f8"), np.abs(a).astype("f8") @ np.abs(b).astype("f8")
    allowed = {"ieee": 2.0**-24 * 2003, "fast": 2.0**-24 * 2003, "tf32": 2.0**-9, "bf16": 2.0**-6}
    for accuracy, bound in allowed.items():
        c, record, _ = multiply(a, b, "--accuracy", accuracy)
        assert np.all(np.abs(c - exact) <= bound * size), (accuracy, record["kernel"], np.max(np.abs(c - exact) / size))
        assert list(allowed).index(record["accuracy"]) <= list(allowed).index(accuracy), record


def test_complex():
    """Complex and mixed operands, transposed and conjugated on the device; whole numbers make every sum exact."""
    def numbers(shape, dtype):
        whole = random.integers(-4, 5, shape)
        return (whole + 1j * random.integers(-4, 5, shape) if "c" in dtype else whole).astype(dtype)
    for kind_a, kind_b in (("c8", "c8"), ("c16", ">c16"), ("c8", "f4"), ("f8", "c8")):
        a, b = numbers((301, 403), kind_a), numbers((403, 200), kind_b)
        for options, exact in (((), a @ b), (("--alpha", "1-2j", "--conjugate-b"), (1 - 2j) * (a @ b.conj())),
                               (("--real-part",), (a @ b).real)):
            assert np.array_equal(multiply(a, b, *options)[0], exact), (kind_a, kind_b, options)
        turned = np.ascontiguousarray(a.T)
        assert np.array_equal(multiply(turned, b, "--adjoint-a")[0], a.conj() @ b), (kind_a, kind_b)


def test_kernels_by_name():
    a, b = random.normal(size=(700, 801)).astype("f4"), random.normal(size=(801, 900)).astype("f4")
    exact, size = a.astype("f8") @ b.astype("f8"), np.abs(a).astype("f8") @ np.abs(b).astype("f8")
    bench = json.loads(bench_all("f32"))
    for kernel in (row for row in bench["kernels"] if "gflops" in row):
        c, record, _ = multiply(a, b, "--kernel", kernel["kernel"])
        assert (record["kernel_chosen"] == kernel["kernel"] and
                np.all(np.abs(c - exact) <= max(kernel["error_bound"], 2.0**-24 * 801) * size)), kernel


def bench_all(kind):
    run("bench", "gemm", "--device", "cuda", "--type", kind, "--all", "--shape", "801", "--repeat", "1", "--json",
        "bench.json")
    with open("bench.json") as file:
        return file.read()


def has(kernel):
    return any(row["kernel"] == kernel and "gflops" in row for row in json.loads(bench_all("f32"))["kernels"])


def test_fallback():
    """Values that fp16 parts cannot hold: the product is right all the same, and the record says who made it."""
    if not has("split3"):
        return  # this build has no code for sm_90a
    a, b = random.normal(size=(1300, 1200)).astype("f4"), random.normal(size=(1200, 1300)).astype("f4")
    split3 = ["--kernel", "split3", "--panel", "1200"] # products that are not small: simt makes small ones anyway
    c, record, out = multiply(a, b, *split3)
    assert (record["ranks"][0]["fallbacks"] == 0 and record["kernel"] == "split3" and
            record["kernels"] == "split3 1"), out
    b[9, 7], b[3, 8] = np.inf, np.nan # in every product, also where C is cut into bands of rows
    c, record, out = multiply(a, b, *split3)
    assert record["ranks"][0]["fallbacks"] == record["ranks"][0]["tiles"] > 0 and record["ranks"][0]["few"] == 0, record
    assert record["kernel"] == "simt" and record["kernel_chosen"] == "split3" and record["kernels"] == "simt 1", record
    assert "cannot hold" in out and "simt 100 %" in out, out
    assert not np.isfinite(c[:, 7:9]).any() and np.isfinite(np.delete(c, [7, 8], axis=1)).all()


def test_fallbacks_of_a_run():
    """Once products fell back, `exact` makes those that it makes faster than `simt`."""
    if not has("split3"):
        return
    n = 8192
    a, b = ((random.normal(size=(n, n)) * np.exp(2 * random.normal(size=(n, n)))).astype("f4") for _ in range(2))
    c, record, out = multiply(a, b)
    assert record["ranks"][0]["fallbacks"] == record["ranks"][0]["tiles"] > 2, out
    assert record["kernel_chosen"] == "split3", record
    assert "exact" in record["kernels"] and "simt" in record["kernels"] and "split3" not in record["kernels"], record
    rows = random.integers(0, n, 16)
    exact, size = a[rows].astype("f8") @ b, np.abs(a[rows]).astype("f8") @ np.abs(b)
    assert np.all(np.abs(c[rows] - exact) <= n * 2.0**-24 * size)


def test_exact():
    """It checks its own products, also what it leaves to its loop: elements of sparse data, and rows with Inf."""
    m, n = 700, 600
    for kind in ("f4", "f8"):
        a, b = random.normal(size=(m, n)).astype(kind), random.normal(size=(n, m)).astype(kind)
        a[random.random((m, n)) < 0.99] = 0
        a[200, 300] = np.inf
        c, record, out = multiply(a, b, "--kernel", "exact", check="device")
        assert record["product_check"] == f"PASSED: {m} rows of products add up exactly", record
        assert record["ranks"][0]["rows_checked"] == m and record["ranks"][0]["rows_unjudged"] == 0, record
        assert not np.isfinite(c[200]).any() and np.isfinite(np.delete(c, 200, axis=0)).all(), out


def test_few():
    """Sparse and banded operands and the identity: as exact as plain fp32, and the record says that simt made them."""
    n = 1300
    a, b = random.normal(size=(n, n)).astype("f4"), random.normal(size=(n, n)).astype("f4")
    sparse_a, sparse_b = a * (random.random((n, n)) < 0.01), b * (random.random((n, n)) < 0.01)
    band = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 2
    for x, y, terms in ((sparse_a, sparse_b, 3), (a * band, b * band, 5), (a, np.eye(n, dtype="f4"), 0)):
        c, record, out = multiply(x, y, "--panel", str(n))
        exact, size = x.astype("f8") @ y.astype("f8"), np.abs(x).astype("f8") @ np.abs(y).astype("f8")
        assert np.all(np.abs(c - exact) <= terms * 2.0**-24 * size), \
            (terms, np.max(np.abs(c - exact) / np.maximum(size, 1e-30)) * 2**24)
        assert record["kernel"] == "simt", record
        if has("split3"):
            assert (record["kernel_chosen"] == "split3" and
                    record["ranks"][0]["few"] == record["ranks"][0]["tiles"]), record
            assert "sums of few elements" in " ".join(out.split()), out


def test_small():
    """What is chosen may leave small products to others: the record names these."""
    a = random.normal(size=(96, 96)).astype("f4")
    _, record, out = multiply(a, a, "--kernel", "simt")
    assert record["kernel"] != "simt" and record["kernel_chosen"] == "simt" and "small and thin" in out, (record, out)


def test_loading():
    """A library that takes longer to load than it saves is not chosen."""
    for kind in ("f4", "f8"):
        a = random.normal(size=(1000, 1000)).astype(kind)
        _, record, _ = multiply(a, a)
        assert not record["kernel_chosen"].startswith("cublas"), record


def test_halves():
    a, b = random.integers(-4, 5, (300, 500)).astype("f2"), random.integers(-4, 5, (500, 200)).astype("f2")
    for more in ([], ["--accuracy", "fast"], ["--accuracy", "bf16"]):
        c, record, _ = multiply(a, b, *more)
        assert np.array_equal(c, a.astype("f8") @ b.astype("f8")), record


def test_integers():
    """Sums beyond 2^24 are exact in f64, but for a kernel asked for by name that makes f32 alone."""
    a, b = random.integers(0, 256, (300, 700)).astype("u1"), random.integers(0, 256, (700, 200)).astype("u1")
    exact = a.astype("i8") @ b.astype("i8")
    c, record, out = multiply(a, b)
    assert c.dtype == "f8" and np.array_equal(c, exact) and out.startswith("C is f64"), record
    assert not record["warnings"], record
    if has("split3"):
        c, record, _ = multiply(a, b, "--kernel", "split3")
        assert c.dtype == "f4" and record["type"] == "f32" and "may not be exact" in record["warnings"], record


def test_overflow():
    """What f16 makes infinite is counted as it is converted."""
    a, b = random.integers(-9, 10, (700, 300)).astype("f4"), random.integers(-9, 10, (300, 900)).astype("f4")
    a[::3] *= 300
    exact = a.astype("f8") @ b.astype("f8")
    many = int(np.sum(np.abs(exact) >= 65520))
    for more, expected in ((["--type", "f16"], many), (["--type", "f16", "--memory", "3M"], many), ([], 0)):
        c, record, _ = multiply(a, b, *more)
        assert record["overflows"] == record["ranks"][0]["overflows"] == np.sum(np.isinf(c)) == expected, record
        assert ("overflowed" in record["warnings"]) == (expected > 0) and "FAILED" not in record["check"], record
    assert many > 1000, many


def test_addresses():
    """Where few addresses may be taken CUDA cannot start, which is no reason to take the CPU. Where it can start, the
    limit bounds no plan."""
    a = random.integers(-4, 5, size=(300, 300)).astype("f4")
    write("a.h5", a)
    for device, kib, code in ("cuda", 4000000, 1), ("auto", 4000000, 1), ("cuda", 100000000, 0), ("auto", 100000000, 0):
        command = command_line(["multiply", "a.h5", "a.h5", "-o", "c.h5", "--force", "--quiet", "--device", device])
        process = subprocess.run(["sh", "-c", f'ulimit -v {kib}; exec "$0" "$@"', *command], capture_output=True,
                                 text=True,
                                 env=ENVIRONMENT)
        assert process.returncode == code, (device, kib, process)
        if code:
            assert "CUDA cannot start" in process.stderr and "ulimit -v" in process.stderr, process
            assert process.stderr.count("\n") == 1, process
        else:
            assert np.array_equal(read("c.h5"), a @ a), (device, kib)


def test_large_parts():
    """Parts of more than 2^31 elements on one rank: C, then A, each in one super-block and one panel."""
    for shape, panel in (("65536x65536x256", "256"), ("65536x512x65536", "65536")):
        out = run("bench", "multiply", "--device", "cuda", "--data", "device", "--type", "f32", "--kernel", "simt",
                  "--shape", shape, "--panel", panel, "--repeat", "1",
                  "-o", "bench.json").out
        with open("bench.json") as file:
            record = json.load(file)["record"]
        assert ("PASSED" in record["check"] and record["super_blocks_m"] * record["super_blocks_n"] == 1 and
                record["panel"] == int(panel)), (out, record)


main(globals())
