"""multiply --reproducible on the host's emulation of CUDA and on the CPU, by one program: a device with memory of its
own, other kernels and other paths of the data make the same bytes."""
import json

from lib import main, np, run, write

random = np.random.default_rng(12)


def digest(device, *args, ranks=0):
    run("multiply", *args, "-o", "c.h5", "--force", "--device", device, "--reproducible", "--log", "log.json",
        ranks=ranks, timeout=300)
    with open("log.json") as file:
        record = json.load(file)
    assert record["kernel_chosen"] == "exact", record
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


main(globals())
