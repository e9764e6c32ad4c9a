"""multiply --chunk where chunks fit neither ranks nor memory: the plan cuts C along them, so that each is one
rank's."""
import h5py

from lib import check_chunked, fails, integers, main, np, random, run, write


def test_ranks():
    a, b = integers(97, 41), integers(41, 59)
    write("a.h5", a), write("b.h5", b)
    for ranks in (1, 2, 3, 4):
        for chunk in ((16, 7), (1, 59), (97, 1), (97, 59), (5, 5)):
            check_chunked(a, b, "--chunk", f"{chunk[0]}x{chunk[1]}", "--compress", "gzip:3", "--shuffle", "--verify",
                          ranks=ranks, chunks=chunk, gzip=3, shuffle=True)
    for grid in ("2x2", "1x1x4", "2x1x2", "1x2x2", "4x1", "1x4"):
        check_chunked(a, b, "--grid", grid, "--chunk", "16x7", "--compress", "gzip:3", "--panel", 13, ranks=4,
                      chunks=(16, 7), gzip=3)
    # two rows of chunks for three ranks
    check_chunked(a, b, "--grid", "3x1", "--chunk", "50x59", ranks=3, chunks=(50, 59))


def test_column_order():
    a, b = integers(43, 22), integers(22, 91)
    write("a.h5", a.T), write("b.h5", b.T)
    for ranks in (2, 3):
        check_chunked(a, b, "--order", "col", "--chunk", "8x30", "--compress", "gzip", "--verify", ranks=ranks,
                      chunks=(30, 8), gzip=4, transposed=True)


def test_empty():
    for m, k, n in ((0, 4, 5), (4, 5, 0), (0, 0, 0), (4, 0, 5)):
        write("a.h5", np.ones((m, k), "f4")), write("b.h5", np.ones((k, n), "f4"))
        run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--chunk", "4x5", "--compress",
            "gzip", "--verify", ranks=3)
        with h5py.File("c.h5") as file:
            assert file["C"].shape == (m, n) and file["C"].compression == "gzip" and np.all(file["C"][:] == 0)


def test_threads():
    """Strips large enough that several threads write one."""
    a, b = integers(2100, 5), integers(5, 1500)
    write("a.h5", a), write("b.h5", b)
    for chunk in ((200, 300), (64, 1500), (2100, 64)):
        for ranks in (0, 2):
            check_chunked(a, b, "--chunk", f"{chunk[0]}x{chunk[1]}", "--compress", "gzip:1", "--io-threads", 8,
                          ranks=ranks, chunks=chunk, gzip=1)
    check_chunked(a, b, "--compress", "gzip:1", "--io-threads", 3, "--memory", "16M", "--host-memory", "16M", ranks=2,
                  chunks=(432, 512), gzip=1)


def test_memory():
    """Encoding counts: the limit that a refusal names is enough, and a little less is not."""
    a, b = integers(64, 32), integers(32, 64)
    write("a.h5", a), write("b.h5", b)
    options = ["multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--chunk", "64x64", "--compress",
               "gzip"]
    named = fails(*options, "--host-memory", 200000, code=1, says="1 chunk of C needs ").error
    assert "smaller" not in named and "larger" not in named, named  # what a chunk takes at least is most of it
    need = int(named.split("--host-memory ")[1].split()[0])
    named = fails(*options, "--host-memory", need, code=1, says=["of it are for a chunk of C", "--chunk"]).error
    need = int(named.split("--host-memory ")[1].split()[0])
    check_chunked(a, b, "--chunk", "64x64", "--compress", "gzip", "--host-memory", need, chunks=(64, 64), gzip=4)
    fails(*options, "--host-memory", need - 1, code=1, says=f"--host-memory {need}")


def test_single_number():
    """A vector times a vector has no chunks: said before a file is made, and before a plan is shown."""
    write("v.h5", np.ones(5, "f4"))
    for more in (["--chunk", "auto"], ["--compress", "gzip", "--dry-run"]):
        fails("multiply", "v.h5", "v.h5", "-o", "n.h5", *more, code=2, says="leave --chunk and --compress out")


def test_memory_of_placing():
    """The list of chunks fits the limit that a refusal names, and no trace beside it."""
    write("a.h5", np.ones((500, 1), "f4")), write("b.h5", np.ones((1, 500), "f4"))
    options = ["multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--chunk", "1x1", "--compress",
               "gzip", "--dry-run"]
    named = fails(*options, "--host-memory", "2M", code=1, says="250000 chunks of C need").error
    need = int(named.split("--host-memory ")[1].split()[0])
    run(*options, "--host-memory", need)
    fails(*options, "--host-memory", need, "--trace", "trace.json", code=1, says="--trace needs")
    run(*options, "--host-memory", 2 * need, "--trace", "trace.json")


def test_random():
    for case in range(12):
        m, k, n = (int(x) for x in random.integers(1, 300, 3))
        rows, cols, ranks = (int(x) for x in (random.integers(1, m + 3), random.integers(1, n + 3),
                                              random.integers(1, 5)))
        a, b = integers(m, k), integers(k, n)
        write("a.h5", a), write("b.h5", b)
        limit = ["--memory", "3M", "--host-memory", "3M"] if case % 3 == 0 else []
        check_chunked(a, b, "--chunk", f"{rows}x{cols}", "--compress", "gzip:1", *limit, ranks=ranks,
                      chunks=(min(rows, m), min(cols, n)), gzip=1)


main(globals())
