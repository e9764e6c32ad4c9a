"""multiply --reproducible on the host's emulation of CUDA and on the CPU, by one program: a device with memory of its
own, other kernels and other paths of the data make the same bytes. Kernels of the device that add up in floating point
have bytes of their own, however the product is cut."""
import json

from lib import fails, main, np, run, write

random = np.random.default_rng(12)


def digest(device, *args, ranks=0, kernel="exact", reproducible=True):
    run("multiply", *args, "-o", "c.h5", "--force", "--device", device, "--log", "log.json", "--digest",
        *(["--reproducible"] if reproducible else []), *(["--kernel", kernel] if kernel != "exact" else []),
        ranks=ranks, timeout=300)
    with open("log.json") as file:
        record = json.load(file)
    assert record["kernel_chosen"] == kernel, record
    if reproducible:
        assert all(kernel in rank["kernels"] for rank in record["ranks"] if rank["flops"] > 0), record["ranks"]
    assert all((rank["upload_bytes"] > 0) == (device == "cuda") for rank in record["ranks"]
               if rank["flops"] > 0), record["ranks"]
    return record["digest"]


def test_devices():
    a = random.normal(size=(131, 150)) * np.exp(2 * random.normal(size=(131, 1)))
    b = random.normal(size=(150, 135))
    write("a.h5", a), write("b.h5", b)
    write("s.h5", a.astype("f4")), write("h.h5", b.astype("f2"))
    write("p.h5", a + 1j * a[::-1]), write("q.h5", b - 2j * b[::-1])
    for args in (["a.h5", "b.h5", "--alpha", "1.7"], ["s.h5", "h.h5"], ["p.h5", "q.h5"], ["--gram", "a.h5"]):
        wanted = digest("cpu", *args)
        for ranks, more in ((0, []), (2, ["--grid", "1x2"])):
            assert digest("cuda", *args, *more, ranks=ranks) == wanted, (args, ranks)


def test_simt():
    """Tiles are few, so that the kernel cuts k by their number, and small parts of C go to another one: not here."""
    for kind in ("f8", "f4"):
        write("a.h5", random.normal(size=(140, 500)).astype(kind))
        write("b.h5", random.normal(size=(500, 75)).astype(kind))
        args = ["a.h5", "b.h5"]
        ways = [(0, []), (4, ["--grid", "2x2", "--check", "off"])]
        made = [digest("cuda", *args, *more, ranks=ranks, kernel="simt") for ranks, more in ways]
        assert len(set(made)) == 1, (kind, made)
        usual = [digest("cuda", *args, *more, ranks=ranks, kernel="simt", reproducible=False) for ranks, more in ways]
        assert len({*usual, *made}) == 3, (kind, usual, made)


def test_split_k():
    write("a.h5", random.normal(size=(5, 16500))), write("b.h5", random.normal(size=(16500, 3)))
    ways = [(0, []), (2, ["--grid", "1x1x2"])]
    made = [digest("cuda", "a.h5", "b.h5", "--check", "off", *more, ranks=ranks, kernel="naive")
            for ranks, more in ways]
    assert len(set(made)) == 1, made
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cuda", "--reproducible", "--kernel",
          "tiled", code=2, says=["how kernel 'tiled' adds up", "there are exact, naive, checked, coarse, simt"])


main(globals())
