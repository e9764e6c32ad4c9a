"""multiply against numpy. Small integers make every partial sum exact, so those products must agree bit for bit,
whatever the ranks, grid, panel or memory; real numbers are checked against a bound."""
import json
import re

import h5py

from lib import fails, leftovers, main, np, read, run, write

random = np.random.default_rng(11)


def integers(rows, cols, dtype="f4", low=-4):
    return random.integers(low, 5, size=(rows, cols)).astype(dtype)


def product(*args, ranks=0, out="c.h5", **more):
    run("multiply", *args, "-o", out, "--force", "--device", "cpu", ranks=ranks, **more)
    return read(out)


def exact(a, b):
    return a.astype("f8") @ b.astype("f8")


def same(got, expected, what):
    assert got.shape == expected.shape, f"{what}: {got.shape} instead of {expected.shape}"
    different = ~((got == expected) | (np.isnan(got) & np.isnan(expected)))
    if different.any():
        place = tuple(np.argwhere(different)[0])
        raise AssertionError(
            f"{what}: {different.sum()} elements differ, first {place}: {got[place]} instead of {expected[place]}")


def test_types():
    for number, name in enumerate(("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")):
        expected = "f4" if name in ("f2", "f4", "i1", "u1") else "f8"
        dtype = np.dtype(name).newbyteorder(">" if number % 2 else "<")
        a, b = integers(19, 23, dtype, 0 if "u" in name else -4), integers(23, 17, dtype, 0 if "u" in name else -4)
        write("a.h5", a), write("b.h5", b)
        c = product("a.h5", "b.h5")
        same(c, exact(a, b), name)
        assert c.dtype == expected, f"{name} gave {c.dtype}"
    a, b = integers(19, 23, ">f8"), integers(23, 17, "i1")
    write("a.h5", a), write("b.h5", b)
    same(product("a.h5", "b.h5", ranks=3), exact(a, b), "mixed")


def test_output_types():
    a, b = integers(9, 21, "f4"), integers(21, 12, "f4")
    write("a.h5", a), write("b.h5", b)
    for name, dtype in (("f16", "f2"), ("f32", "f4"), ("f64", "f8")):
        c = product("a.h5", "b.h5", "--type", name, ranks=2)
        assert c.dtype == np.dtype(dtype), c.dtype
        same(c, exact(a, b), name)


def test_layouts():
    a, b = integers(61, 45), integers(45, 33)
    layouts = ({}, {"chunks": (16, 7)}, {"chunks": (8, 45), "compression": "gzip", "shuffle": True},
               {"chunks": (64, 8), "fletcher32": True, "maxshape": (None, None)})
    for how in layouts:
        rows, cols = how.get("chunks", (1, 1))
        write("a.h5", a, **how)
        write("b.h5", b, **dict(how, chunks=(min(rows, 45), min(cols, 33))) if "chunks" in how else {})
        same(product("a.h5", "b.h5", ranks=2), exact(a, b), str(how))
    with h5py.File("block.h5", "w", userblock_size=512) as file:
        file.create_dataset("deep/in/here", data=a)
    same(product("block.h5", "b.h5"), exact(a, b), "user block")
    same(product("block.h5/deep/in/here", "b.h5:/C"), exact(a, b), "file/path")
    same(product("block.h5::/deep/in/here", "b.h5"), exact(a, b), "file::/path")


def test_io_modes():
    a, b = integers(50, 40, "f8"), integers(40, 30, "f8")
    write("a.h5", a), write("b.h5", b)
    with h5py.File("a.h5") as file:
        assert file["C"].chunks is None
    for mode in ("direct", "hdf5", "mpio"):
        for ranks in (1, 3):
            same(product("a.h5", "b.h5", "--io", mode, ranks=ranks), exact(a, b), f"{mode} on {ranks} ranks")
    write("five.h5", np.arange(3.0))
    for mode in ("direct", "hdf5", "mpio"):
        same(product("five.h5", "five.h5", "--io", mode, ranks=2), np.float64(5), f"a single number, {mode}")
    write("a.h5", a, chunks=(8, 8))
    same(product("a.h5", "b.h5", "--io", "direct", ranks=3), exact(a, b), "chunks as they are stored")
    write("a.h5", a.astype("i4"), chunks=(8, 8), scaleoffset=0)
    fails("multiply", "a.h5", "b.h5", "-o", "d.h5", "--io", "direct", ranks=2, code=1, says=["chunked", "--io"])


def test_transposes():
    a, b = integers(31, 43), integers(43, 29)
    for ta in (False, True):
        for tb in (False, True):
            write("a.h5", a.T if ta else a), write("b.h5", b.T if tb else b)
            flags = ["--transpose-a"] * ta + ["--transpose-b"] * tb
            for ranks in (0, 3, 4):
                same(product("a.h5", "b.h5", *flags, ranks=ranks), exact(a, b), f"{flags} on {ranks} ranks")


def test_scaled_and_added():
    a, b, c0 = integers(20, 30), integers(30, 25), integers(20, 25, ">i2")
    write("a.h5", a), write("b.h5", b), write("c0.h5", c0)
    for ranks in (0, 4):
        same(product("a.h5", "b.h5", "--alpha", -2, ranks=ranks), -2 * exact(a, b), "alpha")
        same(product("a.h5", "b.h5", "--add", "c0.h5", ranks=ranks), exact(a, b) + c0, "add")
        same(product("a.h5", "b.h5", "--add", "c0.h5", "--alpha", 0.5, "--beta", 3, ranks=ranks),
             0.5 * exact(a, b) + 3 * c0, "alpha and beta")
        same(product("a.h5", "b.h5", "--add", "c0.h5", "--alpha", 0, "--beta", 2, ranks=ranks), 2.0 * c0, "alpha 0")
    for dtype, warns in (("i4", True), ("f8", True), ("i2", False), ("f4", False)):
        write("c0.h5", c0.astype(dtype))
        for more in ([], ["--type", "f32"], ["--beta", 0]):
            err = run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--add", "c0.h5", *more).err
            assert ("and C f32, to which it is rounded: --type f64" in err) == (warns and not more), (dtype, more, err)
    write("nan.h5", np.full((20, 25), np.nan, "f4"))
    same(product("a.h5", "b.h5", "--add", "nan.h5", "--beta", 0, ranks=2), exact(a, b), "beta 0 read C0")
    write("inf.h5", np.full((20, 30), np.inf, "f4"))
    same(product("inf.h5", "b.h5", "--alpha", 0, ranks=2), np.zeros((20, 25)), "alpha 0 read A")


def test_slices():
    a, b = integers(40, 50), integers(60, 35)
    write("a.h5", a), write("b.h5", b)
    same(product("a.h5[3:37,10:40]", "b.h5:/C[20:50,:]", ranks=2), exact(a[3:37, 10:40], b[20:50]), "slices")
    same(product("a.h5[:,5:35]", "b.h5[:30,7:8]", "--add", "b.h5[0:40,34:]"),
         exact(a[:, 5:35], b[:30, 7:8]) + b[:40, 34:], "open slices")
    write("a.h5", a, chunks=(7, 11), compression="gzip")
    same(product("a.h5[3:37,10:40]", "b.h5[20:50,:]", ranks=3), exact(a[3:37, 10:40], b[20:50]), "slices of chunks")


def test_one_matrix_of_many():
    """Of datasets of more than two dimensions, numbers choose a matrix; also for verify, compare and what is added."""
    many, b = random.integers(-4, 5, size=(3, 2, 24, 20)).astype("f4"), integers(20, 7)
    c0 = integers(5 * 24, 7).reshape(5, 24, 7)
    for how in ({}, {"chunks": (1, 1, 8, 8), "compression": "gzip"}, {"chunks": (2, 2, 8, 8), "compression": "lzf"}):
        write("many.h5", many, **how), write("b.h5", b), write("c0.h5", c0)
        for ranks in 1, 2:
            same(product("many.h5:/C[2,-1]", "b.h5", "--verify", ranks=ranks), exact(many[2, 1], b), "one of many")
            same(product("many.h5:/C[0,1,3:17,...]", "b.h5", ranks=ranks), exact(many[0, 1, 3:17], b), "a part of one")
        same(product("many.h5:/C[1,0]", "b.h5", "--add", "c0.h5:/C[4]", ranks=2), exact(many[1, 0], b) + c0[4], "added")
        same(product("many.h5[0,0]", "b.h5"), exact(many[0, 0], b), "the only dataset")
        same(product("b.h5", "many.h5:/C[:,:,0,1]", "--order", "col").T, exact(b.T, many[1, 0].T), "column order")
        run("compare", "many.h5:/C[1,0]", "many.h5:/C[1,0]")
        run("compare", "many.h5:/C[1,0]", "many.h5:/C[1,1]", code=3)
    write("p.h5", np.stack([many[0, 0], many[1, 1]]) @ b)
    run("verify", "many.h5:/C[1,1]", "b.h5", "p.h5:/C[1]", ranks=2)
    run("verify", "many.h5:/C[1,1]", "b.h5", "p.h5:/C[0]", code=3)
    before = read("c.h5")
    for name, code, says in (("many.h5:/C[3,0]", 2, "out of range of the 3 along dimension 1"),
                             ("many.h5:/C[0,:,1]", 2, "write 1:2 for matrices of one row"),
                             ("many.h5:/C[0,0,1,2]", 2, "a single element"),
                             ("many.h5:/C[:,:,:,2:]", 1, "(3 x 2 x 24 x 18) and 'b.h5:/C' (20 x 7): the columns")):
        fails("multiply", name, "b.h5", "-o", "c.h5", "--force", "--device", "cpu", code=code, says=says)
    # C0's place may be taken where all of it is read, and this is one matrix of five.
    fails("multiply", "many.h5:/C[0,0]", "b.h5", "--add", "c0.h5:/C[0]", "-o", "c0.h5:/C", "--force", "--device", "cpu",
          code=2, says="C0")
    assert np.array_equal(read("c.h5"), before) and np.array_equal(read("c0.h5"), c0)


def stacks_record(a, b, ranks, expected):
    """What the run of two stacks of 5 matrices says of itself, and what it printed."""
    out = run("multiply", a, b, "-o", "c.h5", "--force", "--device", "cpu", "--log", "stacks.json", "--verify",
              ranks=ranks).out
    same(read("c.h5"), expected, f"{a}, {ranks} ranks")
    with open("stacks.json") as file:
        record = json.load(file)
    flops = 5 * 2 * 12 * 7 * 20
    assert record["products"] == 5 and (record["m"], record["n"], record["k"]) == (12, 7, 20), record
    assert sum(rank["flops"] for rank in record["ranks"]) == flops, record["ranks"]
    assert np.isclose(record["gflops"] * record["seconds"] * 1e9, flops), record
    assert "PASSED" in record["check"] and ", 5 products" in " ".join(out.split()), out
    assert (f", {record['teams']} teams," in out) == (record["teams"] > 1), out
    return record["teams"], record["grid_m"] * record["grid_n"] * record["grid_k"]


def test_stacks():
    """Small products of contiguous stacks are shared by all ranks, many a step; others by teams of ranks, one by one; a
    stack times one matrix is a single product of all rows."""
    a = random.integers(-4, 5, size=(5, 12, 20)).astype("f4")
    b = random.integers(-4, 5, size=(5, 20, 7)).astype("f4")
    write("a.h5", a), write("b.h5", b), write("one.h5", b[0])
    write("chunked.h5", a, chunks=(1, 12, 20))
    expected = np.matmul(a.astype("f8"), b)
    for ranks, teams, grid in ((0, 1, 1), (2, 2, 1), (3, 3, 1), (4, 2, 2), (5, 5, 1)):
        assert stacks_record("a.h5", "b.h5", ranks, expected) == (1, max(1, ranks)), ranks
        assert stacks_record("chunked.h5", "b.h5", ranks, expected) == (teams, grid), ranks
    out = run("multiply", "a.h5", "b.h5", "-o", "d.h5", "--dry-run", "--device", "cpu", ranks=4).out
    assert "products       5, a rank makes 2 at a time" in out, out
    out = run("multiply", "chunked.h5", "b.h5", "-o", "d.h5", "--dry-run", "--device", "cpu", ranks=4).out
    assert "products       5, shared by 2 teams of 2 ranks" in out, out
    out = run("multiply", "a.h5", "b.h5", "-o", "d.h5", "--dry-run", "--device", "cpu", "--grid", "2x2x1", ranks=4).out
    assert "products       5, shared by 1 team of 4 ranks" in out, out
    for how in ("--chunk=5x7", "--chunk=auto", "--compress=gzip:1"):
        same(product("a.h5", "b.h5", how, ranks=3), expected, how)
        with h5py.File("c.h5") as file:
            assert file["C"].chunks[0] == 1, file["C"].chunks
    expected = np.matmul(a.astype("f8"), b[0])
    for options, m, products in (((), 60, 1), (("--compress", "gzip:1"), 12, 5), (("--io", "hdf5"), 12, 5)):
        same(product("a.h5", "one.h5", *options, "--log", "stacks.json", ranks=2), expected, options)
        with open("stacks.json") as file:
            record = json.load(file)
        assert (record["m"], record["products"]) == (m, products), record
    # A trace has the steps of every product, and wrong elements are found in any of them.
    run("multiply", "chunked.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--trace", "stacks.trace",
        ranks=2)
    with open("stacks.trace") as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    assert sum(event["name"].startswith("multiply") for event in events) == 5, [event["name"] for event in events]
    wrong = np.matmul(a, b)
    wrong[4, 11, 6] += 1
    write("w.h5", wrong)
    fails("verify", "a.h5", "b.h5", "w.h5", ranks=2, code=3, says="worst row 11 of matrix [4] ")
    fails("compare", "w.h5", "c.h5", code=3, says="largest relative error")
    assert "at matrix 4, row 11, column 6" in run("compare", "w.h5", "c.h5", code=3).out
    for name, says in (("b.h5[:4]", ["'a.h5:/C' (5 x 12 x 20)", "'b.h5:/C[0:4,0:20,0:7]' (4 x 20 x 7)", "or 1"]),
                       ("b.h5[:,1:]", ["must be the rows of the second", "20 is not 19"])):
        fails("multiply", "a.h5", name, "-o", "d.h5", code=1, says=says)
    write("c0.h5", wrong[:4])
    fails("multiply", "a.h5", "b.h5", "--add", "c0.h5", "-o", "d.h5", code=1,
          says=["C0 'c0.h5:/C' (4 x 12 x 7) must have the product's shape, 5 x 12 x 7"])


def test_column_order():
    a, b = integers(14, 22), integers(22, 9)
    write("a.h5", a.T), write("b.h5", b.T), write("c0.h5", integers(9, 14))
    same(product("a.h5", "b.h5", "--order", "col", ranks=2).T, exact(a, b), "column order")
    same(product("a.h5", "b.h5", "--add", "c0.h5", "--order", "col").T, exact(a, b) + read("c0.h5").T,
         "column order, added")
    write("a.h5", a)
    same(product("a.h5", "b.h5", "--order", "col", "--transpose-a", ranks=3).T, exact(a, b), "column order, transposed")
    # What a person reads is as that person counts: A is 22 x 14 there, B 22 x 9, and P of the grid cuts the rows of C.
    fails(
        "multiply",
        "a.h5",
        "b.h5",
        "-o",
        "d.h5",
        "--order",
        "col",
        ranks=2,
        code=1,
        says=["'a.h5:/C' is 22 x 14 and 'b.h5:/C' is 22 x 9", "--transpose-a fits (14 x 9)"],
    )
    fails(
        "multiply",
        "a.h5",
        "b.h5",
        "-o",
        "d.h5",
        "--order",
        "col",
        "--transpose-a",
        "--add",
        "a.h5",
        code=1,
        says=["C0 'a.h5:/C' is 22 x 14", "is 14 x 9"],
    )
    same(product("a.h5", "b.h5", "--order", "col", "--transpose-a", "--grid", "3x1", "--log", "col.json", ranks=3).T,
         exact(a, b), "column order, grid")
    log = json.load(open("col.json"))
    assert (log["m"], log["n"], log["grid_m"], log["grid_n"]) == (14, 9, 3, 1), log
    assert ([rank["row"] for rank in log["ranks"]] == [0, 1, 2] and
            {rank["col"] for rank in log["ranks"]} == {0}), log["ranks"]
    plan = run("multiply", "a.h5", "b.h5", "-o", "d.h5", "--order", "col", "--transpose-a", "--dry-run").out
    assert "C' = op(B)' op(A)'" in plan, plan


def test_sizes():
    shapes = [(0, 4, 5), (4, 0, 5), (4, 5, 0), (0, 0, 0), (1, 1, 1), (1, 97, 1), (97, 1, 89), (1, 1, 101), (2, 3, 1),
              (127, 131, 113)]
    for m, k, n in shapes:
        a, b = integers(m, k), integers(k, n)
        write("a.h5", a), write("b.h5", b)
        for ranks in (0, 4):
            same(product("a.h5", "b.h5", ranks=ranks), exact(a, b), f"{m}x{k}x{n} on {ranks} ranks")


def test_ranks_and_grids():
    a, b = integers(71, 67), integers(67, 59)
    write("a.h5", a), write("b.h5", b)
    for ranks in (1, 2, 3, 4, 6):
        same(product("a.h5", "b.h5", ranks=ranks), exact(a, b), f"{ranks} ranks")
    for grid in ("1x1", "2x1", "1x3", "2x3", "1x1x2", "2x1x2", "1x1x6", "1x2x3"):
        same(product("a.h5", "b.h5", "--grid", grid, "--panel", 13, ranks=6), exact(a, b), f"grid {grid}")
    fails("multiply", "a.h5", "b.h5", "-o", "d.h5", "--grid", "2x2", ranks=3, code=2, says=["2x2", "3"])


def test_panels_and_memory():
    a, b = integers(601, 403), integers(403, 509)
    write("a.h5", a), write("b.h5", b)
    for panel in (1, 7, 403, 100000):
        rows = slice(0, 40)
        same(product("a.h5[0:40,:]", "b.h5", "--panel", panel, ranks=2), exact(a[rows], b), f"panel {panel}")
    for limit in (["--memory", "1M"], ["--host-memory", "1M"], ["--memory", "4M", "--host-memory", "4M"]):
        for ranks in (1, 3):
            same(product("a.h5", "b.h5", *limit, ranks=ranks), exact(a, b), f"{limit} on {ranks} ranks")
    same(product("a.h5", "b.h5", "--memory", "1M", "--grid", "1x2x2", ranks=4),
         exact(a, b), "memory and split k")
    fails("multiply", "a.h5", "b.h5", "-o", "d.h5", "--memory", "4", "--host-memory", "4", ranks=2, code=1,
          says="memory")


def test_chunks_by_threads():
    """Reads large enough for several threads, cut along chunks that fit neither panels, slices nor ranks; a damaged
    chunk ends the run."""
    a, b = integers(700, 610, ">f4"), integers(610, 530, "<f8")
    write("a.h5", a, chunks=(96, 70), compression="gzip", shuffle=True)
    write("b.h5", b, chunks=(61, 530), compression="gzip", fletcher32=True)
    write("at.h5", a.T, chunks=(50, 300), shuffle=True)
    for more in (["--io-threads", 8], ["--io-threads", 3, "--panel", 37],
                 ["--io-threads", 8, "--memory", "6M", "--host-memory", "6M"]):
        for ranks in (0, 3):
            same(product("a.h5", "b.h5", *more, ranks=ranks), exact(a, b), f"{more} on {ranks} ranks")
            same(product("at.h5", "b.h5", "--transpose-a", *more, ranks=ranks), exact(a, b),
                 f"transposed, {more} on {ranks} ranks")
    same(product("a.h5[5:699,11:]", "b.h5[11:,3:500]", "--io-threads", 8), exact(a[5:699, 11:], b[11:, 3:500]),
         "slices")
    with h5py.File("b.h5") as file:
        place = file["C"].id.get_chunk_info(4).byte_offset
    with open("b.h5", "r+b") as file:
        file.seek(place + 100)
        byte = file.read(1)[0]
        file.seek(place + 100)
        file.write(bytes([byte ^ 255]))
    fails("multiply", "a.h5", "b.h5", "-o", "broken.h5", "--device", "cpu", "--io-threads", 8, code=1,
          says=["b.h5:/C", "may be damaged"])
    assert not leftovers(), leftovers()


def test_memory_of_chunks():
    """The chunks HDF5 keeps count against the limit, too: a row of chunks of A is 51 MB here."""
    a, b = np.ones((32, 400000), "f4"), np.ones((400000, 8), "f4")
    write("b.h5", b)
    peaks = []
    for how in ({}, {"chunks": (32, 16384)}):
        write("a.h5", a, **how)
        c = product("a.h5", "b.h5", "--host-memory", "16M", "--log", "peak.json", ranks=1)
        assert np.all(c == 400000)
        peaks.append(json.load(open("peak.json"))["ranks"][0]["host_peak_bytes"])
    assert peaks[1] < peaks[0] + 16e6, peaks
    write("a.h5", integers(40, 30), chunks=(40, 30), compression="gzip")
    write("b.h5", integers(30, 8), chunks=(30, 8))
    need = fails("multiply", "a.h5", "b.h5", "-o", "d.h5", "--host-memory", "1", code=1,
                 says="--host-memory").error.split("--host-memory ")[1].split()[0]
    same(product("a.h5", "b.h5", "--host-memory", need), exact(read("a.h5"), read("b.h5")),
         "the limit the refusal named")


def test_memory_of_the_check():
    """Its sums grow with k and n: what does not fit is refused before anything is multiplied, with the limit that
    works."""
    a, b = np.ones((2, 40000), "f4"), np.ones((40000, 3), "f4")
    write("a.h5", a), write("b.h5", b)
    failed = fails("multiply", "a.h5", "b.h5", "-o", "v.h5", "--verify", "--host-memory", "1M", "--device", "cpu",
                   ranks=2, code=1, says=["--verify", "--trials"])
    need = failed.error.split("--host-memory ")[1].split()[0]
    assert np.all(product("a.h5", "b.h5", "--verify", "--host-memory", need, ranks=2, out="v.h5") == 40000)


def test_kernels():
    a, b = integers(70, 90), integers(90, 50)
    write("a.h5", a), write("b.h5", b)
    for kernel in ("reference", "blas", "auto"):
        same(product("a.h5", "b.h5", "--kernel", kernel, ranks=2), exact(a, b), kernel)


def test_accuracy():
    """What may be lost only matters where a kernel loses it: the CPU's lose nothing, and the record says so. Halves are
    taken as they are."""
    a, b = integers(70, 90, "f2"), integers(90, 50, "f2")
    write("a.h5", a), write("b.h5", b)
    for more, kernel, taken in (([], "blas", "f32"), (["--accuracy", "bf16"], "blas", "f32"),
                                (["--kernel", "reference"], "reference", "f16")):
        same(product("a.h5", "b.h5", *more, "--verify", "--log", "log.json", ranks=2), exact(a, b), more)
        with open("log.json") as file:
            record = json.load(file)
        assert [record[key] for key in ("kernel", "input", "accuracy", "type")] == [kernel, taken, "ieee", "f32"], \
            record
        assert all(rank["fallbacks"] == 0 for rank in record["ranks"]), record
    run("verify", "a.h5", "b.h5", "c.h5", "--accuracy", "bf16")
    fails("multiply", "a.h5", "b.h5", "-o", "d.h5", "--accuracy", "exact", ranks=2, code=2,
          says=["exact", "ieee", "fast", "tf32", "bf16"])


def test_lost_accuracy():
    """A product of operands rounded to bfloat16 passes the check of its class, and not those of classes that round no
    operands."""
    a, b = random.normal(size=(90, 200)).astype("f4"), random.normal(size=(200, 80)).astype("f4")
    cut = lambda x: ((x.view("u4") + 0x8000) & 0xFFFF0000).astype("u4").view("f4")
    write("a.h5", a), write("b.h5", b), write("c.h5", (cut(a).astype("f8") @ cut(b).astype("f8")).astype("f4"))
    run("verify", "a.h5", "b.h5", "c.h5", "--accuracy", "bf16")
    for stricter in ("ieee", "fast"):
        fails("verify", "a.h5", "b.h5", "c.h5", "--accuracy", stricter, code=3, says="FAILED")


def test_real_numbers():
    for dtype, unit in (("f4", 2.0**-24), ("f8", 2.0**-53)):
        a, b = random.normal(size=(90, 200)).astype(dtype), random.normal(size=(200, 80)).astype(dtype)
        write("a.h5", a), write("b.h5", b)
        c = product("a.h5", "b.h5", "--verify", ranks=3)
        expected = a.astype("longdouble") @ b.astype("longdouble")
        bound = 201 * unit * (np.abs(a).astype("f8") @ np.abs(b).astype("f8"))
        assert np.all(np.abs(c - expected) <= bound), float(np.max(np.abs(c - expected) / bound))


def test_nan_and_inf():
    a, b = integers(30, 40), integers(40, 20)
    a[3, 5], a[7, 7], b[9, 2], b[11, 19] = np.nan, np.inf, -np.inf, np.nan
    write("a.h5", a), write("b.h5", b)
    with np.errstate(invalid="ignore"):
        expected = exact(a, b)
    for ranks in (0, 4):
        c = product("a.h5", "b.h5", "--verify", ranks=ranks)
        same(np.where(np.isinf(expected), 0, c), np.where(np.isinf(expected), 0, expected), "NaN")
        same(c[np.isinf(expected)], expected[np.isinf(expected)], "Inf")


def test_dry_run():
    a, b = integers(300, 200), integers(200, 100)
    write("a.h5", a), write("b.h5", b)
    out = run("multiply", "a.h5", "b.h5", "-o", "dry.h5", "--dry-run", "--device", "cpu", "--log", "dry.json",
              ranks=2).out
    for word in ("grid", "panel", "host", "read", "write", "flop", "the least any schedule needs on 2 ranks",
                 "fewest bytes"):
        assert word in out.lower(), f"{word}: {out}"
    assert "\nkernel choice  auto -> blas (by rank: nothing was measured on such a device)\n" in out, out
    assert re.search(r"^products +150 x 100 x 200: blas$|^products +300 x 50 x 200: blas$", out, re.M), out
    import os
    assert not os.path.exists("dry.h5") and not os.path.exists("dry.json") and not leftovers(), os.listdir(".")


def test_dry_run_predicts():
    """Seconds on the CPU, which grow with the product, and the rates they come from."""
    with h5py.File("sizes.h5", "w") as file:
        for n in (1, 100, 3000, 20000): # no bytes are stored, and none are read
            file.create_dataset(f"n{n}", (n, n), "f4", chunks=(n, n) if n < 20000 else (5000, 5000))
    seconds = []
    for n in (1, 100, 3000, 20000):
        matrix = f"sizes.h5:/n{n}"
        for ranks in (0, 2):
            out = run("multiply", matrix, matrix, "-o", "dry.h5", "--dry-run", "--device", "cpu", ranks=ranks).out
            found = re.search(r"^predicted +([0-9.e+-]+) s after start-up, bounded by \w+;", out, re.M)
            assert found and float(found[1]) > 0, out
            rate = re.search(r"^rates a rank +multiply ([0-9.e+-]+) GFLOP/s \(measured now\)$", out, re.M)
            assert rate and float(rate[1]) > 0 and "GB/s (typical)" in out, out
            if ranks == 0:
                seconds.append(float(found[1]))
    assert all(5 * less < more for less, more in zip(seconds[1:], seconds[2:])), seconds
    # Nothing to multiply is nothing to measure.
    matrix = "sizes.h5:/n100"
    out = run("multiply", matrix, matrix, "-o", "dry.h5", "--dry-run", "--device", "cpu", "--alpha", "0").out
    assert "\npredicted " in out and "measured now" not in out, out


def test_record():
    a, b = integers(120, 80), integers(80, 60)
    write("a.h5", a), write("b.h5", b)
    result = run("multiply", "a.h5", "b.h5", "-o", "rec.h5:/g/P", "--verify", "--log", "run.json", "--device", "cpu",
                 ranks=3)
    log = json.load(open("run.json"))
    text = json.dumps(log)
    for key in ("command", "grid_m", "grid_n", "grid_k", "kernel", "versions", "check", "seconds", "gflops", "ranks"):
        assert f'"{key}"' in text, f"{key}: {text}"
    assert "PASSED" in text and "multiply a.h5 b.h5" in text, text
    version, commit = run("--version").out.splitlines()[:2]
    assert log["versions"].startswith(f"{version} (commit {commit.split(None, 1)[1]}), HDF5 "), log["versions"]
    with h5py.File("rec.h5") as file:
        same(file["g/P"][...], exact(a, b), "recorded product")
        assert "history" in file["g/P"].attrs, dict(file["g/P"].attrs)
        table = file["g/P.run/ranks"][...]
        assert len(table) == 3 and sorted(table["rank"]) == [0, 1, 2], table
        assert sum(table["flops"]) == 2 * 120 * 80 * 60, table["flops"]
        attributes = {name: str(value) for name, value in file["g/P.run"].attrs.items()}
        assert any("PASSED" in value for value in attributes.values()), attributes
        assert any("multiply a.h5" in value for value in attributes.values()), attributes
    check_summary(result.out, LANES)
    for line in ("log         run.json", "C           rec.h5:/g/P", "check       PASSED"):
        assert line in result.out, result.out


LANES = ("read", "upload", "exchange", "pack", "multiply", "download", "write")


def check_summary(out, lanes):
    """Within 80 columns, every lane under its name, no table of ranks; the last line is the run's time and speed."""
    lines = out.splitlines()
    assert lines and all(len(line) <= 80 for line in lines), out
    assert [line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in lanes] == list(lanes), out
    assert not [line for line in lines if line.split()[:1] == ["rank"]], out
    assert lines[-1].startswith("time  ") and "FLOP/s, " in lines[-1] and lines[-1].endswith(" % of the limit"), out


def test_ranks():
    """--ranks adds the table of ranks: a line for each, with every lane."""
    write("a.h5", integers(120, 80)), write("b.h5", integers(80, 60))
    out = run("multiply", "a.h5", "b.h5", "-o", "ranks.h5", "--device", "cpu", "--ranks", ranks=3).out
    table, summary = out.split("\n\n", 1)
    heading, *lines = table.splitlines()
    assert [line.split()[0] for line in lines] == ["0", "1", "2"], out
    assert all(len(line) == len(heading) for line in lines), out
    for word in ("rank", "host", "device", "tiles", "GFLOP ", *(f"{lane} s" for lane in LANES), "GFLOP/s"):
        assert word in heading, f"{word}: {out}"
    check_summary(summary, LANES)


def test_quiet():
    """Neither progress nor a summary; a table that was asked for and errors are still there."""
    write("a.h5", integers(120, 80)), write("b.h5", integers(80, 60))
    result = run("multiply", "a.h5", "b.h5", "-o", "quiet.h5", "--device", "cpu", "--quiet", "--progress", "bar",
                 ranks=2)
    assert result.out == "" and result.err == "", result
    assert read("quiet.h5").shape == (120, 60)
    out = run("multiply", "a.h5", "b.h5", "-o", "quiet.h5", "--force", "--device", "cpu", "--quiet", "--ranks").out
    assert out.split()[0] == "rank" and "time" not in out, out
    fails("multiply", "a.h5", "b.h5", "-o", "quiet.h5", "--quiet", code=1, says="--force")


main(globals())
