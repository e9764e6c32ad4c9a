"""multiply --reproducible on GPUs: the kernel `exact` has the bytes of the CPU on one GPU and on several, however they
share the product. Kernels that add up in floating point have bytes of their own, the same on any number of GPUs. Ranks
without a GPU of their own share one. Exit code 77: this tessera finds no GPU."""
import json
import pathlib
import subprocess
import sys

from lib import ENVIRONMENT, command_line, main, np, run, write

if subprocess.run(command_line(["bench", "gemm", "--device", "cuda", "--kernel", "naive", "--shape", "8"]),
                  capture_output=True, env=ENVIRONMENT).returncode:
    print("skipped: no GPU")
    sys.exit(77)

random = np.random.default_rng(13)
# ranks, and how they share a product with more than one range of k
WAYS = ((1, []), (2, []), (2, ["--grid", "2x1"]), (2, ["--grid", "1x2"]), (2, ["--grid", "1x1x2"]),
        (2, ["--transport", "host"]), (3, ["--grid", "1x3"]), (4, ["--grid", "2x2"]), (1, ["--memory", "400M"]),
        (2, ["--grid", "1x1x2", "--memory", "400M"]))


def digest(device, *args, ranks=1, kernel="exact"):
    run("multiply", *args, "-o", "c.h5", "--force", "--device", device, "--log", "log.json", "--reproducible",
        *(["--kernel", kernel] if kernel != "exact" else []), ranks=ranks, timeout=120)
    with open("log.json") as file:
        record = json.load(file)
    assert record["kernel_chosen"] == kernel, record
    assert all((rank["upload_bytes"] > 0) == (device == "cuda") for rank in record["ranks"]
               if rank["flops"] > 0), record["ranks"]
    return record["digest"]


def same(*args, kernel="exact", ways=WAYS):
    """The one digest that all ways have."""
    found = {}
    for ranks, more in ways:
        found.setdefault(digest("cuda", *args, *more, ranks=ranks, kernel=kernel), []).append((ranks, more))
    assert len(found) == 1, (kernel, args, found)
    return next(iter(found))


def operands(kind, m=700, k=16500, n=500):
    for name in ("a.h5", "b.h5"):
        pathlib.Path(name).unlink(missing_ok=True)
    write("a.h5", (random.normal(size=(m, k)) * np.exp(random.normal(size=(m, 1)))).astype(kind))
    write("b.h5", random.normal(size=(k, n)).astype(kind))
    return ["a.h5", "b.h5"]


def test_exact():
    digests = []
    for kind in ("f8", "f4", "f4"):
        args = operands(kind)
        digests.append(digest("cpu", *args))
        assert same(*args) == digests[-1], kind
    assert len(set(digests)) == 3, "a digest that tells nothing"


def test_complex_and_gram():
    a = random.normal(size=(260, 8300)) + 1j * random.normal(size=(260, 8300))
    write("z.h5", a, "z"), write("z.h5", a.real, "re"), write("t.h5", np.ascontiguousarray(a.T))
    for args in (["z.h5:/z", "t.h5"], ["--gram", "z.h5:/re"]):
        ways = [(ranks, more) for ranks, more in WAYS if not ("1x2" in more or "1x3" in more or "--memory" in more)]
        ways = [way for way in ways if "--gram" not in args or "1x1x2" not in way[1]]
        assert same(*args, ways=ways) == digest("cpu", *args), args


def test_others():
    for kind, kernel in (("f8", "dmma"), ("f8", "simt"), ("f4", "simt"), ("f4", "split3"), ("f4", "tf32"),
                         ("f2", "wgmma"), ("f4", "naive")):
        args = operands(kind, m=600, n=400)
        if kernel == "tf32":
            args += ["--accuracy", "tf32"]
        same(*args, kernel=kernel)


def test_left_out():
    """What the halves of `split3` do not hold is made by `simt`, element by element, whatever is in its launch."""
    a, b = random.normal(size=(600, 16500)), random.normal(size=(16500, 400))
    a[37] *= 2.0 ** -(np.arange(16500) % 60)
    a[400, 16400], b[9, 399] = np.inf, 1e30
    write("a.h5", a.astype("f4")), write("b.h5", b.astype("f4"))
    same("a.h5", "b.h5", kernel="split3")
    with open("log.json") as file:
        record = json.load(file)
    assert "split3" in record["kernels"] and "simt" in record["kernels"], record["kernels"]


main(globals())
