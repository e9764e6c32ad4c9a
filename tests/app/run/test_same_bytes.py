"""multiply --reproducible: the file's C has the same bytes whatever makes it. One product each of fp64, fp32 and fp16
numbers, of complex ones, a Gram matrix and a stack is made in many ways: on 1 to 6 ranks, on all grids, with panels and
memory limits, from contiguous, chunked, compressed and transposed files. C has odd sides beyond a block of 128, and k
is more than a range of 16384, also where ranks split it. And what would change bytes is refused. The kernel `reference`
has its own bytes, as many ways."""
import json

from lib import fails, h5py, main, np, read, run, write

random = np.random.default_rng(11)
LOG = "log.json"


def spread(*shape):
    """Real data: normal, rows of many sizes, so that sums round and blocks take different numbers of moduli."""
    return random.normal(size=shape) * np.exp(2 * random.normal(size=(*shape[:-1], 1)))


def make(*args, ranks=0, reproducible=True, kernel="exact"):
    """Returns the digest that the record has."""
    run("multiply", *args, "--force", "--device", "cpu", "--log", LOG, *(["--reproducible"] if reproducible else []),
        ranks=ranks)
    with open(LOG) as file:
        record = json.load(file)
    if reproducible:
        assert record["kernel_chosen"] == kernel, record
        made = kernel != "exact" or 0 < sum(rank[name] for rank in record["ranks"] for name in
                   ("exact_level_0", "exact_level_1", "exact_level_2", "exact_loop"))
        assert made, record["ranks"]
        if "--grid" in args:
            grid = [int(side) for side in args[args.index("--grid") + 1].split("x")]
            assert [record[f"grid_{side}"] for side in "mnk"] == [*grid, 1][:3], record
        where = "on device cpu" if kernel != "exact" else "blocks of 128 x 128 of C"
        assert record["reproducible"].replace(",", "") == f"{kernel} {where} ranges of 16384 of k", record
    else:
        assert "reproducible" not in record, record
    return record["digest"]


def same(ways, **how):
    """All ways, each (ranks, arguments), have one digest; returns it."""
    found = {}
    for ranks, *args in ways:
        found.setdefault(make(*args, ranks=ranks, **how), []).append((ranks, *args))
    assert len(found) == 1, f"{len(found)} digests: " + json.dumps(found, indent=1)
    return next(iter(found))


def near(c, a, b, unit):
    """Within 4·u·k of it, and no whole numbers."""
    wide = np.result_type(a, b, "f8")
    size = np.abs(a.astype(wide)) @ np.abs(b.astype(wide))
    assert c.shape == size.shape and np.any(c != np.rint(c.real))
    assert np.all(np.abs(c - a.astype(wide) @ b.astype(wide)) <= 4 * a.shape[-1] * unit * size)


def store(name, data):
    """The same elements in every way that a file has; transposed ones as well."""
    write(f"{name}.h5", data)
    write(f"{name}_chunked.h5", data, chunks=(min(37, data.shape[0]), min(1000, data.shape[1])))
    write(f"{name}_gzip.h5", data, chunks=(min(64, data.shape[0]), min(90, data.shape[1])), compression="gzip",
          compression_opts=1, shuffle=True)
    write(f"{name}_t.h5", np.ascontiguousarray(data.T))
    write(f"{name}_big.h5", data.astype(data.dtype.newbyteorder(">")))
    np.save(f"{name}.npy", data)


def test_ranks():
    """Blocks of 128 go round to ranks and super-blocks, the last of them smaller."""
    a, b = spread(300, 500), random.normal(size=(500, 391))
    write("r.h5", a), write("s.h5", b)
    plain = ("r.h5", "s.h5", "-o", "c.h5")
    same([(0, *plain),
          *((ranks, *plain) for ranks in (1, 2, 3, 4, 6)),
          *((ranks, *plain, "--grid", grid) for ranks, grid in
            ((2, "2x1"), (2, "1x2"), (3, "1x3"), (3, "3x1"), (4, "2x2"), (6, "2x3"), (6, "1x6x1"))),
          (0, *plain, "--memory", "4500000"), (4, *plain, "--host-memory", "4500000")])
    near(read("c.h5"), a, b, 2.0**-53)


def test_ranges():
    """One product in 40 ways: sums over two ranges of k, also of ranks that share it, and all that a file can be."""
    a, b = spread(130, 16390), random.normal(size=(16390, 141))
    store("a", a), store("b", b)
    plain = ("a.h5", "b.h5", "-o", "c.h5")
    grids = ("2x1", "1x2", "1x1x2", "1x3", "3x1", "2x2", "2x1x2", "1x2x2", "2x3", "1x6x1", "3x1x2", "1x3x2")
    ways = [
        (0, *plain), *((ranks, *plain) for ranks in (1, 2, 3, 4, 6)),
        *((np.prod([int(side) for side in grid.split("x")]), *plain, "--grid", grid) for grid in grids),
        (0, *plain, "--panel", "16384"), (2, *plain, "--panel", "32768"),
        (0, *plain, "--memory", "75M"), (3, *plain, "--host-memory", "75M"),
        (0, *plain, "--threads", "1", "--check", "off"), (2, *plain, "--transport", "host", "--verify"),
        (2, *plain, "--grid", "1x1x2", "--memory", "75M", "--panel", "32768"),
        (2, *plain, "--grid", "1x1x2", "--transport", "host", "--verify"),
        (0, "a_chunked.h5", "b_gzip.h5", "-o", "c.h5"), (3, "a_gzip.h5", "b_chunked.h5", "-o", "c.h5"),
        (2, "a_t.h5", "b.h5", "--transpose-a", "-o", "c.h5"),
        (0, "a_big.h5", "b_t.h5", "--transpose-b", "-o", "c.h5"),
        (2, "b.h5", "a.h5", "--order", "col", "-o", "c.h5"),  # columns first: both files, and C, the other way round
        (0, "a.npy", "b.npy", "-o", "c.npy"), (2, *plain, "--io", "hdf5"),
        (2, *plain, "--chunk", "50x64"), (4, *plain, "--compress", "gzip:1", "--chunk", "64x128", "--shuffle"),
        (0, *plain, "--kernel", "exact", "--accuracy", "bf16"),
        (4, *plain, "--grid", "2x1x2", "--chunk", "50x64", "--resume"),
        (4, *plain, "--grid", "1x2x2", "--compress", "gzip:1", "--chunk", "64x128"),
        (2, *plain, "--grid", "1x1x2", "--check", "off", "--resume"), (3, *plain, "--chunk", "64x60", "--resume")]
    assert len(ways) == 40
    digest = same(ways)
    c = read("c.h5")
    near(c, a, b, 2.0**-53)
    assert c.tobytes() == np.load("c.npy").tobytes()
    run("verify", "--digest", digest, "c.h5")
    fails("multiply", *plain, "--kernel", "exact", "--resume", code=1, says="reproducible was yes and is no")
    # cut elsewhere the sums are others: the digest would tell
    assert make(*plain, "--kernel", "exact", "--panel", "1000", "--digest", reproducible=False) != digest


def test_split_k():
    """Ranks that split k hand on the sums of three ranges, of which the last is short: to the last rank, which adds C0
    and writes. NaN and Inf go where they go on one rank. Ranges added in another order would be other bytes."""
    a, b, c0 = spread(130, 33000), random.normal(size=(33000, 129)), random.normal(size=(130, 129))
    for kind, unit in (("f8", 2.0**-53), ("f4", 2.0**-24)):
        write("a.h5", a.astype(kind)), write("b.h5", b.astype(kind)), write("c0.h5", c0.astype(kind))
        plain = ("a.h5", "b.h5", "-o", "c.h5")
        one = [(0, *plain), (3, *plain, "--grid", "1x1x3"), (4, *plain, "--grid", "2x1x2")]
        more = [(2, *plain, "--grid", "1x1x2", "--transport", "host", "--verify"), (6, *plain, "--grid", "1x2x3"),
                (2, *plain, "--grid", "1x1x2", "--memory", "75M", "--panel", "32768"),
                (3, *plain, "--grid", "1x1x3", "--check", "off", "--resume"),
                (4, *plain, "--grid", "1x2x2", "--chunk", "50x64", "--resume")]
        digest = same([*one, *(more if kind == "f8" else [])])
        near(read("c.h5"), a.astype(kind), b.astype(kind), unit)
    a32, b32 = a.astype("f4"), b.astype("f4")
    write("turned.h5", np.concatenate([a32[:, 16384:], a32[:, :16384]], axis=1))
    write("turned_b.h5", np.concatenate([b32[16384:], b32[:16384]]))
    assert make("turned.h5", "turned_b.h5", "-o", "c.h5") != digest
    a32[3, 20000], b32[32999, 7], b32[5, 11] = np.inf, np.nan, -np.inf
    write("a.h5", a32), write("b.h5", b32)
    plain = ("a.h5", "b.h5", "-o", "c.h5", "--alpha", "1.5", "--beta", "-2", "--add", "c0.h5")
    same([(0, *plain), (3, *plain, "--grid", "1x1x3"), (4, *plain, "--grid", "1x2x2")])
    c = read("c.h5")
    assert (c.view("u4")[:, 7] == 0x7FC00000).all() and np.isinf(c[[0, 3], [11, 0]]).all() and np.isfinite(c[0, 0])


def test_split_k_of_others():
    """A Gram matrix, of which strips are handed on as far as the diagonal; ranges of complex elements, half as
    long."""
    a = spread(260, 16500)
    write("a.h5", a)
    plain = ("--gram", "a.h5", "-o", "c.h5")
    same([(0, *plain), (2, *plain, "--grid", "1x1x2"), (4, *plain, "--grid", "2x1x2")])
    near(read("c.h5"), a, a.T, 2.0**-53)
    z, w = a[:66, :8200] + 1j * a[66:132, :8200], random.normal(size=(8200, 70)) - 0.5j
    write("z.h5", z, "z"), write("w.h5", w, "w")
    plain = ("z.h5:/z", "w.h5:/w", "-o", "c.h5")
    same([(0, *plain), (2, *plain, "--grid", "1x1x2"), (4, *plain, "--grid", "1x2x2")])
    near(read("c.h5"), z, w, 2.0**-52)


def test_narrow():
    """fp32, and fp16 that is multiplied as fp32: no kernel but one, whatever a device likes better."""
    a, b = spread(131, 16390), random.normal(size=(16390, 140))
    for kind, more in (("f4", []), ("f2", ["--type", "f32"])):
        store("n", a.astype(kind)), store("o", b.astype(kind))
        plain = ("n.h5", "o.h5", "-o", "c.h5", *more)
        same([(0, *plain), (2, *plain), (4, *plain, "--grid", "2x2"), (3, *plain, "--memory", "60M"),
              (0, "n_chunked.h5", "o_t.h5", "--transpose-b", "-o", "c.h5", *more)])
        near(read("c.h5"), a.astype(kind), b.astype(kind), 2.0**-24)


def test_complex():
    """A block is 64 complex columns, and a range 8192 complex elements, where both are complex."""
    parts = [spread(131, 8200), spread(131, 8200), random.normal(size=(8200, 70)), random.normal(size=(8200, 70))]
    a, b = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
    write("p.h5", a, "z"), write("q.h5", b, "z"), write("p.h5", a.real, "re"), write("q.h5", b.real, "re")
    write("p.h5", np.ascontiguousarray(a.conj().T), "h")
    for one, two in (("z", "z"), ("re", "z"), ("z", "re")):
        plain = (f"p.h5:/{one}", f"q.h5:/{two}", "-o", "c.h5")
        ways = [(0, *plain), (4, *plain, "--grid", "2x2"), (3, *plain, "--memory", "90M")]
        if one == two == "z":
            ways += [(2, "p.h5:/h", "q.h5:/z", "--adjoint-a", "-o", "c.h5"), (2, *plain, "--panel", "8192")]
        same(ways)
        c = read("c.h5")
        near(c, a if one == "z" else a.real, b if two == "z" else b.real, 2.0**-52)


def test_gram():
    """Half of it is multiplied, in strips; as two matrices all of it is."""
    a = spread(389, 900)
    write("a.h5", a), write("copy.h5", a), write("t.h5", np.ascontiguousarray(a.T))
    plain = ("--gram", "a.h5", "-o", "c.h5")
    same([(0, *plain), (2, *plain), (4, *plain, "--grid", "2x2"), (3, *plain, "--memory", "8M"),
          (6, *plain, "--grid", "3x2"), (0, "--gram", "t.h5", "--transpose-a", "-o", "c.h5"),
          (2, *plain, "--chunk", "100x60"), (0, "a.h5", "copy.h5", "--transpose-b", "-o", "c.h5")])
    near(read("c.h5"), a, a.T, 2.0**-53)


def test_stack():
    """Many small products at once, one by one, in teams; one matrix for all of them."""
    a, b = spread(5, 133, 300), random.normal(size=(5, 300, 150))
    write("a.h5", a), write("b.h5", b), write("one.h5", b[2])
    for other in ("b.h5", "one.h5"):
        plain = ("a.h5", other, "-o", "c.h5")
        same([(0, *plain), (3, *plain), (2, *plain, "--grid", "2x1"), (0, *plain, "--chunk", "133x150"),
              (4, *plain, "--panel", "300")])
    stacked = read("c.h5")
    for i in range(5):
        write("part.h5", a[i])
        make("part.h5", "one.h5", "-o", "single.h5")
        assert read("single.h5").tobytes() == stacked[i].tobytes(), f"product {i} of the stack is another alone"


def test_reference():
    """The kernel `reference`: one sum a range, which goes to C's type before it is added. Without --reproducible the
    same ways make other bytes."""
    a, b, c0 = spread(37, 33000), random.normal(size=(33000, 29)), random.normal(size=(37, 29))
    store("f", a), store("g", b), write("c0.h5", c0)
    by = ("--kernel", "reference")
    plain = ("f.h5", "g.h5", "-o", "c.h5", *by)
    ways = [(0, *plain), (4, *plain, "--grid", "2x2"), (3, *plain, "--grid", "1x1x3"), (0, *plain, "--panel", "32768")]
    b[20000, 3], a[5, 7], b[7, 9] = np.nan, np.inf, 0
    write("n.h5", a), write("o.h5", b)
    same([(ranks, "n.h5", "o.h5", *rest) for ranks, _, _, *rest in ways], kernel="reference")
    c = read("c.h5").view("u8")
    assert (c[:, 3] == 0x7FF8 << 48).all() and c[5, 9] == 0x7FF8 << 48, c[:, 3]
    b[20000, 3] = a[5, 7] = b[7, 9] = 1
    store("f", a), store("g", b)
    digest = same([
        *ways, (6, *plain, "--grid", "1x2x3", "--transport", "host", "--verify"), (3, *plain, "--memory", "20M"),
        (4, "f_chunked.h5", "g_gzip.h5", "-o", "c.h5", *by, "--grid", "2x1x2", "--chunk", "8x11", "--resume"),
        (2, "f_t.h5", "g_t.h5", "--transpose-a", "--transpose-b", "-o", "c.h5", *by, "--check", "off"),
        (2, "g.h5", "f.h5", "--order", "col", "-o", "c.h5", *by)], kernel="reference")
    near(read("c.h5"), a, b, 2.0**-53)
    usual = [make(*args, "--digest", ranks=ranks, reproducible=False) for ranks, *args in ways]
    assert len({*usual, digest}) > 2, usual
    z, w = a[:16, :9000] + 1j * a[16:32, :9000], b[:9000, :7] - 0.5j
    write("z.h5", z.astype("c8"), "z"), write("w.h5", w.astype("c8"), "w")
    for plain in (("z.h5:/z", "w.h5:/w"), ("--gram", "f_gzip.h5")):  # half a range; below the diagonal
        same([(0, *plain, *by, "-o", "c.h5"), (4, *plain, *by, "-o", "c.h5", "--grid", "2x1x2")], kernel="reference")
    near(read("c.h5"), a, a.T, 2.0**-53)
    write("h.h5", a.astype("f2")), write("stack.h5", np.stack([a[:9, :300], a[9:18, :300]]).astype("f2"))
    more = ("--add", "c0.h5", "--beta", "2", "--alpha", "0.3", "--type", "f32")
    for plain in (("h.h5", "g.h5", *more), ("stack.h5", "stack.h5", "--transpose-b")):  # one launch of all of a stack
        same([(0, *plain, *by, "-o", "c.h5"), (2, *plain, *by, "-o", "c.h5", "--check", "off")], kernel="reference")


def test_what_is_said():
    write("x.h5", spread(300, 16500)), write("y.h5", spread(16500, 20))
    plain = ("multiply", "x.h5", "y.h5", "-o", "c.h5", "--force", "--device", "cpu", "--reproducible")
    out = run(*plain, "--dry-run").out
    assert "128 rows and 128 columns, k at multiples of 16384" in out and "kernel         exact" in out, out
    out = run(*plain).out
    assert "same bytes  exact, blocks" in out and "digest      crc32c:" in out, out
    with h5py.File("c.h5") as file:
        assert "exact" in str(file["C.run"].attrs["reproducible"])
    fails(*plain, "--kernel", "blas", code=2, says=["how kernel 'blas' adds up", "there are exact, reference"])
    fails(*plain, "--kernel", "fast", code=2, says="no kernel 'fast'")
    out = run(*plain, "--kernel", "reference", "--dry-run").out
    assert "C is cut anywhere, k at multiples of 16384" in out and "kernel         reference" in out, out
    fails(*plain, "--grid", "1x1x3", ranks=3, code=2, says=["k = 16500 has 2 parts", "use --grid 1x1x2"])
    out = run(*plain, "--grid", "1x1x2", "--dry-run", ranks=2).out
    assert "at most 1 ranges stay apart" in out and "the last of 2 writes C" in out, out
    fails(*plain, "--panel", "100", code=2, says=["multiples of 16384", "use --panel 16384"])
    low = fails(*plain, "--memory", "20M", code=1, says=["needs", "has 20.97 MB", "16384 of k at once"])
    bytes_needed = low.error.partition("use --memory ")[2].split()[0]
    run(*plain, "--memory", bytes_needed)
    fails(*plain, "--memory", str(int(bytes_needed) - 1), code=1, says="use --memory " + bytes_needed)


main(globals())
