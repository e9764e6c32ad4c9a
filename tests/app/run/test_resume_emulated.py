"""--resume on another device: a run that is stopped on the CPU goes on on the host's emulation of CUDA, on other ranks,
and the other way round, by one program. With --reproducible C has the bytes of an undisturbed run; without it those of
the right sums where values are integers, else an error within the bound."""
import json
import os
import signal

from lib import integers, main, np, read, run, write
from resumed import ended, records, start, unfinished, went_on

random = np.random.default_rng(14)
# ended_at.c asks rank 0 to stop in this call, which writes a row of its first part of C: a call for each, as rows of C
# are wider than parts. The program's AddressSanitizer is to bear that it is not loaded first.
STOPPED = dict(ended(60, SIGNAL=int(signal.SIGTERM)),
               ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")
# Device, number of ranks and grid of the run that is stopped, and of the one that goes on.
TO_CUDA = (("cpu", 0, "1x1"), ("cuda", 2, "1x2"))
TO_CPU = (("cuda", 2, "2x1"), ("cpu", 3, "3x1"))
ON_CUDA = (("cuda", 0, "1x1"), ("cuda", 2, "1x2"))


def command(device, grid, *options):
    return ("multiply", "a.h5", "b.h5", "-o", "c.h5", "--resume", "--device", device, "--grid", grid, "--log", "c.json",
            "--quiet", *options)


def taken():
    """C, which the next run makes anew."""
    c = read("c.h5")
    os.remove("c.h5")
    return c


def undisturbed(device, *options):
    run(*command(device, "1x1", *options), timeout=120)
    return taken()


def stopped_and_resumed(way, *options):
    """C of a run that was stopped on its way, and that another one went on with: it kept what was whole, and made the
    rest on its own device. Returns that one's kernel, too."""
    (device, ranks, grid), (other_device, other_ranks, other_grid) = way
    process = start(*command(device, grid, *options), ranks=ranks, environment=STOPPED)
    said = process.communicate(timeout=120)
    assert process.returncode == 75 and "% of C is kept" in said[1], (way, options, process.returncode, said)
    left = records("c.h5")
    run(*command(other_device, other_grid, *options), ranks=other_ranks, timeout=120)
    kept = went_on("c.h5")[0]
    assert kept == left > 0 and not unfinished("c.h5"), (way, options, kept, left)
    with open("c.json") as file:
        record = json.load(file)
    done = sum(rank["flops"] for rank in record["ranks"])
    assert 0 < done < 2 * record["m"] * record["n"] * record["k"], (way, options, done)
    assert all((rank["upload_bytes"] > 0) == (other_device == "cuda") for rank in record["ranks"]
               if rank["flops"] > 0), record["ranks"]
    run("verify", "a.h5", "b.h5", "c.h5")
    return taken(), record["kernel_chosen"]


def reals(rows, k, cols):
    """Two matrices; rows of the first are of all sizes."""
    a, b = random.normal(size=(rows, k)) * np.exp(2 * random.normal(size=(rows, 1))), random.normal(size=(k, cols))
    return a.astype("f4"), b.astype("f4")


def write_both(a, b):
    write("a.h5", a), write("b.h5", b)


def test_reproducible():
    write_both(*reals(512, 40, 260))
    options = ("--reproducible", "--memory", "2800K")
    wanted = undisturbed("cpu", *options).tobytes()
    for way in (TO_CUDA, TO_CPU):
        c, kernel = stopped_and_resumed(way, *options)
        assert kernel == "exact" and c.tobytes() == wanted, (way, kernel)


def test_reproducible_simt():
    """A kernel that adds up in floating point has the same bytes on devices of one kind. The undisturbed run has more
    memory, and cuts C and k otherwise."""
    write_both(*reals(400, 150, 260))
    options = ("--reproducible", "--kernel", "simt")
    wanted = undisturbed("cuda", *options).tobytes()
    c, kernel = stopped_and_resumed(ON_CUDA, *options, "--memory", "700K")
    assert kernel == "simt" and c.tobytes() == wanted, kernel


def test_usual():
    """Whichever kernels take part, real numbers are within the bound of error, and integers exact."""
    k = 40
    for a, b, bound, ways in ((*reals(300, k, 260), 4 * k * 2.0**-24, ((TO_CUDA, "auto"), (TO_CPU, "auto"),
                                                                       (ON_CUDA, "simt"))),
                              (integers(300, k), integers(k, 260), 0, ((TO_CUDA, "auto"),))):
        write_both(a, b)
        exact, size = a.astype("f8") @ b.astype("f8"), np.abs(a).astype("f8") @ np.abs(b).astype("f8")
        for way, kernel in ways:
            c, _ = stopped_and_resumed(way, "--kernel", kernel, "--memory", "200K")
            assert np.all(np.abs(c - exact) <= bound * size), (way, kernel, np.max(np.abs(c - exact) / size))


main(globals())
