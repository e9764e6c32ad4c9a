"""multiply --chunk where chunks fit neither ranks nor memory: the plan cuts C along them, so that each is one rank's."""
import h5py

from lib import fails, leftovers, main, np, run, write

random = np.random.default_rng(5)


def integers(rows, cols, dtype="f4"):
    return random.integers(-4, 5, size=(rows, cols)).astype(dtype)


def check(a, b, *options, ranks=0, chunks, gzip=None, shuffle=False, out="c.h5", transposed=False):
    """C as exact integers, stored as asked for."""
    run("multiply", "a.h5", "b.h5", "-o", out, "--force", "--device", "cpu", *options, ranks=ranks)
    with h5py.File(out) as file:
        c = file["C"]
        found = (c.chunks, c.compression, c.compression_opts, c.shuffle, c.fletcher32)
        assert found == (chunks, "gzip" if gzip is not None else None, gzip, shuffle, False), f"{options} on {ranks} ranks: {found}"
        expected = a.astype("f8") @ b.astype("f8")
        assert np.array_equal(c[:].T if transposed else c[:], expected), f"{options} on {ranks} ranks: wrong values"
        assert c.id.get_num_chunks() == -(-c.shape[0] // chunks[0]) * -(-c.shape[1] // chunks[1]), "chunks are missing"
        assert "tessera_incomplete" not in c.attrs and "history" in c.attrs and "C.run" in file, list(file)
        size = c.id.get_storage_size()
    assert not leftovers(), leftovers()
    return size


def test_ranks():
    a, b = integers(97, 41), integers(41, 59)
    write("a.h5", a), write("b.h5", b)
    for ranks in (1, 2, 3, 4):
        for chunk in ((16, 7), (1, 59), (97, 1), (97, 59), (5, 5)):
            check(a, b, "--chunk", f"{chunk[0]}x{chunk[1]}", "--compress", "gzip:3", "--shuffle", "--verify", ranks=ranks, chunks=chunk, gzip=3, shuffle=True)
    for grid in ("2x2", "1x1x4", "2x1x2", "1x2x2", "4x1", "1x4"):
        check(a, b, "--grid", grid, "--chunk", "16x7", "--compress", "gzip:3", "--panel", 13, ranks=4, chunks=(16, 7), gzip=3)
    check(a, b, "--grid", "3x1", "--chunk", "50x59", ranks=3, chunks=(50, 59))  # two rows of chunks for three ranks


def test_column_order():
    a, b = integers(43, 22), integers(22, 91)
    write("a.h5", a.T), write("b.h5", b.T)
    for ranks in (2, 3):
        check(a, b, "--order", "col", "--chunk", "8x30", "--compress", "gzip", "--verify", ranks=ranks, chunks=(30, 8), gzip=4, transposed=True)


def test_empty():
    for m, k, n in ((0, 4, 5), (4, 5, 0), (0, 0, 0), (4, 0, 5)):
        write("a.h5", np.ones((m, k), "f4")), write("b.h5", np.ones((k, n), "f4"))
        run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--chunk", "4x5", "--compress", "gzip", "--verify", ranks=3)
        with h5py.File("c.h5") as file:
            assert file["C"].shape == (m, n) and file["C"].compression == "gzip" and np.all(file["C"][:] == 0)


def test_threads():
    """Strips large enough that several threads write one."""
    a, b = integers(2100, 5), integers(5, 1500)
    write("a.h5", a), write("b.h5", b)
    for chunk in ((200, 300), (64, 1500), (2100, 64)):
        for ranks in (0, 2):
            check(a, b, "--chunk", f"{chunk[0]}x{chunk[1]}", "--compress", "gzip:1", "--io-threads", 8, ranks=ranks, chunks=chunk, gzip=1)
    check(a, b, "--compress", "gzip:1", "--io-threads", 3, "--memory", "16M", "--host-memory", "16M", ranks=2, chunks=(432, 512), gzip=1)


def test_memory():
    """Encoding counts: the limit that a refusal names, and what it says to add to it, are enough, and a little less is not."""
    a, b = integers(64, 32), integers(32, 64)
    write("a.h5", a), write("b.h5", b)
    options = ["multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--chunk", "64x64", "--compress", "gzip"]
    named = fails(*options, "--host-memory", 200000, code=1, says="chunks of C need").error
    need = int(named.split("--host-memory ")[1].split()[0])
    named = fails(*options, "--host-memory", need, code=1, says=["more of host memory for a chunk of C", "--chunk"]).error
    need = int(named.split("--host-memory ")[1].split()[0]) + int(named.split("(")[1].split()[0])
    check(a, b, "--chunk", "64x64", "--compress", "gzip", "--host-memory", need, chunks=(64, 64), gzip=4)
    fails(*options, "--host-memory", need - 1, code=1, says="more of host memory")
def test_random():
    for case in range(12):
        m, k, n = (int(x) for x in random.integers(1, 300, 3))
        rows, cols, ranks = (int(x) for x in (random.integers(1, m + 3), random.integers(1, n + 3), random.integers(1, 5)))
        a, b = integers(m, k), integers(k, n)
        write("a.h5", a), write("b.h5", b)
        limit = ["--memory", "3M", "--host-memory", "3M"] if case % 3 == 0 else []
        check(a, b, "--chunk", f"{rows}x{cols}", "--compress", "gzip:1", *limit, ranks=ranks, chunks=(min(rows, m), min(cols, n)), gzip=1)


main(globals())
