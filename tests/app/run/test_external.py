"""Virtual datasets, external links and external storage: what they read is read where that was allowed, bit for bit as
HDF5 reads it, and refused with one line everywhere else."""
import os
import shutil

from lib import SOON_OVER, fails, h5py, integers, leftovers, main, np, read, run, write

SHIM = os.environ["TSR_CHANGING_INPUT"]
ALLOW = "--allow-external"
PARALLEL = "parallel" in run("--version").out


def fresh(*folders):
    """An empty folder, with these in it."""
    os.chdir(TOP)
    shutil.rmtree("work", ignore_errors=True)
    os.mkdir("work")
    os.chdir("work")
    for folder in folders:
        os.makedirs(folder)


TOP = os.getcwd()


def virtual(file, name, shape, parts, dtype="f8", **how):
    """parts: (where in it, file, dataset, shape of that, what of that; None: all, of which HDF5 keeps no size)."""
    layout = h5py.VirtualLayout(shape=shape, dtype=dtype)
    for place, source, dataset, size, of in parts:
        whole = h5py.VirtualSource(source, dataset, shape=size, dtype=dtype)
        layout[place] = whole if of is None else whole[of]
    with h5py.File(file, "a", libver="latest") as f:
        f.create_virtual_dataset(name, layout, **how)


def multiplies(name, expected, *options, environment=None):
    """The product with the identity, on 1 and 2 ranks, of the matrix, its transpose and a part of it."""
    rows, cols = expected.shape
    for size in {rows, cols}:
        write(f"i{size}.h5", np.eye(size, dtype=expected.dtype))
    for ranks in (0, 2):
        run("multiply", name, f"i{cols}.h5", "-o", "c.h5", "--force", ALLOW, "--device", "cpu", *options, ranks=ranks,
            environment=environment)
        assert read("c.h5").tobytes() == expected.tobytes(), (name, ranks, read("c.h5"), expected)
    run("multiply", name, f"i{rows}.h5", "-o", "c.h5", "--force", ALLOW, "--transpose-a", "--device", "cpu", *options,
        environment=environment)
    assert read("c.h5").tobytes() == np.ascontiguousarray(expected.T).tobytes(), name
    if "[" not in name and rows > 3 and cols > 3:
        part = np.ascontiguousarray(expected[1:rows - 1, 2:cols - 1])
        write("part.h5", np.eye(cols - 3, dtype=expected.dtype))
        run("multiply", f"{name}[1:{rows - 1},2:{cols - 1}]", "part.h5", "-o", "c.h5", "--force", ALLOW, "--device",
            "cpu", *options, ranks=2, environment=environment)
        assert read("c.h5").tobytes() == part.tobytes(), name


def shown(file, name):
    """As HDF5 reads it."""
    with h5py.File(file) as f:
        return f[name][...]


def refuses(name, *says, options=(ALLOW,), code=1, ranks=0, **more):
    """Neither multiply nor info, compare and verify; and nothing is written."""
    write("operand.h5", np.eye(4))
    before = sorted(os.listdir("."))
    fails("multiply", name, "operand.h5", "-o", "never.h5", *options, code=code, says=says, ranks=ranks, **more)
    fails("multiply", name, "operand.h5", "-o", "never.h5", "--dry-run", *options, code=code, says=says, **more)
    fails("info", name, *options, code=code, says=says, **more)
    fails("compare", name, "operand.h5", *options, code=code, says=says, **more)
    fails("verify", name, "operand.h5", "operand.h5", *options, code=code, says=says, **more)
    assert sorted(os.listdir(".")) == before and not leftovers(), os.listdir(".")


# ---- virtual datasets ----------------------------------------------------------------------------


def test_blocks_of_several_files():
    """Contiguous, chunked, compressed and big-endian sources beside each other, and nothing in one corner."""
    fresh("data")
    a = integers(33, 47, "f8")
    write("data/a.h5", a[:15, :20], "x")
    write("data/b.h5", a[:15, 20:], "x", chunks=(4, 9), compression="gzip", shuffle=True)
    write("data/c.h5", a[15:, :20], "x", dtype=">f8")
    write("data/d.h5", a[20:, 25:], "deep/x", chunks=(3, 5), dtype=">f8", compression="lzf")
    every = None
    virtual("v.h5", "V", a.shape, (
        (np.s_[:15, :20], "data/a.h5", "x", (15, 20), every),
        (np.s_[:15, 20:], "data/b.h5", "x", (15, 27), every),
        (np.s_[15:, :20], "data/c.h5", "/x", (18, 20), every),
        (np.s_[20:, 25:], "data/d.h5", "deep/x", (13, 22), every)), fillvalue=7)
    expected = shown("v.h5", "V")
    assert expected[16, 22] == 7 and expected[0, 30] == a[0, 30]
    multiplies("v.h5:/V", expected)
    multiplies("v.h5", expected, "--io", "hdf5")
    multiplies("v.h5", expected, "--host-memory", "30M", "--memory", "30M")
    run("multiply", "v.h5", "i47.h5", "-o", "c.h5", "--force", ALLOW, "--verify", ranks=2)
    run("verify", "v.h5", "i47.h5", "c.h5", ALLOW, ranks=2)
    run("compare", "v.h5", "c.h5", ALLOW)
    run("multiply", "v.h5", "i47.h5", "-o", "c.h5", "--force", ALLOW, "--order", "col", "--transpose-a",
        "--transpose-b")
    if PARALLEL:
        fails("multiply", "v.h5", "i47.h5", "-o", "c.h5", "--force", ALLOW, "--io", "mpio", code=1,
              says=["MPI-IO", "--io auto"])


def test_parts_of_sources():
    """A block out of the middle of a source, one source twice, and where two mappings overlap the later one."""
    fresh()
    a = integers(20, 30, "f4")
    write("a.h5", a, "x", chunks=(7, 8))
    virtual("v.h5", "V", (12, 16), (
        (np.s_[:6, :10], "a.h5", "x", a.shape, np.s_[3:9, 5:15]),
        (np.s_[6:, :10], "a.h5", "x", a.shape, np.s_[11:17, 1:11]),
        (np.s_[4:8, 8:], "a.h5", "x", a.shape, np.s_[0:4, 0:8])), dtype="f4", fillvalue=-2.5)
    multiplies("v.h5", shown("v.h5", "V"))


def test_stacks():
    """Matrices of a stack, each in a file: one is chosen, and the others need not be there."""
    fresh()
    a = [integers(6, 9, "f8") for _ in range(4)]
    for i, one in enumerate(a):
        write(f"s{i}.h5", one, "x")
    virtual("v.h5", "V", (2, 2, 6, 9), [(np.s_[i // 2, i % 2], f"s{i}.h5", "x", (6, 9), np.s_[:, :]) for i in range(4)])
    for i in range(4):
        multiplies(f"v.h5:/V[{i // 2},{i % 2},:,:]", a[i])
    stack = np.stack(a).reshape(2, 2, 6, 9)
    write("i9.h5", np.eye(9)), write("line.h5", np.arange(9.0))
    for ranks in (0, 2):
        for b, expected in (("i9.h5", stack), ("line.h5", stack @ np.arange(9.0))):
            run("multiply", "v.h5", b, "-o", "c.h5", "--force", ALLOW, "--verify", ranks=ranks)
            assert read("c.h5").tobytes() == expected.tobytes(), (ranks, b)
    run("multiply", "v.h5:/V[:,1,...]", "i9.h5", "-o", "c.h5", "--force", ALLOW)
    assert np.array_equal(read("c.h5"), stack[:, 1])
    run("verify", "v.h5:/V[:,1,...]", "i9.h5", "c.h5", ALLOW, ranks=2)
    run("compare", "v.h5:/V[:,1,...]", "c.h5", ALLOW, ranks=2)
    write("i4.h5", np.ones((6, 6)))
    run("multiply", "i4.h5", "i4.h5", "--add", "v.h5:/V[0,0,:,:6]", "-o", "c.h5", "--force", ALLOW)
    assert np.array_equal(read("c.h5"), a[0][:, :6] + 6)
    out = run("info", "v.h5:/V", ALLOW).out
    assert "s3.h5:/x: matrix 3, rows 0 to 5, columns 0 to 8" in out, out
    os.remove("s0.h5")
    multiplies("v.h5:/V[1,0,...]", a[2])
    fails("info", "v.h5:/V[0,0,...]", ALLOW, code=1, says="'s0.h5', which is not there")


def test_sources_of_more_dimensions():
    fresh()
    cube = np.stack([integers(5, 4, "f8") for _ in range(4)])
    write("cube.h5", cube, "x")
    write("chunks.h5", cube, "x", chunks=(1, 2, 3))
    write("both.h5", cube, "x", chunks=(2, 2, 3))
    for source in ("cube.h5", "chunks.h5", "both.h5"):
        virtual("v.h5", source, (10, 4), (
            (np.s_[:5], source, "x", cube.shape, np.s_[3, :, :]), (np.s_[5:], source, "x", cube.shape, np.s_[1, :, :])))
        multiplies(f"v.h5:/{source}", np.concatenate([cube[3], cube[1]]))
        virtual("v.h5", source + "3", (4, 4), ((np.s_[:, :], source, "x", cube.shape, np.s_[:, 2, :]),))
        refuses(f"v.h5:/{source}3", "rows of it lie along other dimensions of its sources")
    virtual("v.h5", "again", (4, 5, 4), ((np.s_[:], "chunks.h5", "x", cube.shape, np.s_[:]),))
    multiplies("v.h5:/again[2,:,:]", cube[2])


def test_vectors():
    """Sources of one dimension are rows, or columns."""
    fresh()
    a = integers(8, 700, "f8")
    for i, row in enumerate(a):
        write(f"r{i}.h5", row, "x", **({} if i % 2 else {"chunks": (100,), "compression": "gzip"}))
    virtual("v.h5", "rows", a.shape, [(np.s_[i], f"r{i}.h5", "x", (700,), np.s_[:]) for i in range(8)])
    virtual("v.h5", "cols", a.T.shape, [(np.s_[:, i], f"r{i}.h5", "x", (700,), np.s_[:]) for i in range(8)])
    write("col.h5", a[:1].T, "x")
    virtual("v.h5", "turned", (2, 700), ((np.s_[0], "col.h5", "x", (700, 1), np.s_[:, 0]),
                                        (np.s_[1], "r1.h5", "x", (700,), np.s_[:])))
    multiplies("v.h5:/rows", a)
    multiplies("v.h5:/rows", a, "--io", "hdf5")
    multiplies("v.h5:/cols", np.ascontiguousarray(a.T))
    multiplies("v.h5:/turned", a[:2])


def test_virtual_vectors():
    """A virtual dataset of one dimension, and external storage of one: a row as A, a column as B."""
    fresh()
    a, x = integers(6, 8, "f8"), integers(1, 8, "f8")[0]
    write("x.h5", x[:5], "x"), write("y.h5", x[5:], "x", chunks=(2,))
    virtual("v.h5", "V", (8,), ((np.s_[:5], "x.h5", "x", (5,), np.s_[:]), (np.s_[5:], "y.h5", "x", (3,), np.s_[:])))
    with h5py.File("v.h5", "a") as f:
        f.create_dataset("E", (8,), "f8", external=[("e.bin", 0, 40), ("f.bin", 8, 24)])[...] = x
    write("a.h5", a), write("at.h5", a.T)
    for name in ("V", "E"):
        for ranks in (0, 2):
            run("multiply", "a.h5", f"v.h5:/{name}", "-o", "c.h5", "--force", ALLOW, "--verify", ranks=ranks)
            assert read("c.h5").tobytes() == (a @ x).tobytes(), (name, ranks)
            run("multiply", f"v.h5:/{name}", "at.h5", "-o", "c.h5", "--force", ALLOW, ranks=ranks)
            assert read("c.h5").tobytes() == (x @ a.T).tobytes(), (name, ranks)
        run("multiply", "v.h5:/V[2:7]", f"v.h5:/{name}[2:7]", "-o", "c.h5", "--force", ALLOW)
        assert read("c.h5") == x[2:7] @ x[2:7]
    stack = np.stack([integers(6, 8, "f8") for _ in range(3)])
    write("stack.h5", stack)
    virtual("v.h5", "rows", (3, 6), [(np.s_[i], "c0.h5", "x", (18,), np.s_[6 * i:6 * i + 6]) for i in range(3)])
    write("c0.h5", np.arange(18.0), "x")
    run("multiply", "stack.h5", "v.h5:/V", "--add", "v.h5:/rows", "-o", "c.h5", "--force", ALLOW, ranks=2)
    assert np.array_equal(read("c.h5"), stack @ x + np.arange(18.0).reshape(3, 6))


def test_one_in_another():
    """A virtual dataset of virtual datasets, each with a fill value of its own, and of external storage."""
    fresh("deep/er")
    a = integers(10, 12, "f8")
    write("deep/er/a.h5", a, "x")
    virtual("deep/v.h5", "V", (12, 12), ((np.s_[:10], "er/a.h5", "x", a.shape, np.s_[:, :]),), fillvalue=5)
    with h5py.File("deep/s.h5", "w") as f:
        files = [(os.path.abspath("deep/s.bin"), 8, h5py.h5f.UNLIMITED)]
        f.create_dataset("S", (12, 12), "f8", external=files)[...] = 9
    virtual("v.h5", "V", (20, 14), (
        (np.s_[:12, :12], "deep/v.h5", "V", (12, 12), np.s_[:, :]),
        (np.s_[12:18, :10], "deep/v.h5", "V", (12, 12), np.s_[6:, 2:]),
        (np.s_[18:, 1:5], "deep/s.h5", "S", (12, 12), np.s_[3:5, 3:7])), fillvalue=-1)
    expected = shown("v.h5", "V")
    assert expected[11, 0] == 5 and expected[0, 13] == -1 and expected[19, 4] == 9
    multiplies("v.h5", expected)


def test_own_file():
    """What reads no other file needs no leave."""
    fresh()
    a = integers(6, 8, "f8")
    write("v.h5", a, "x")
    virtual("v.h5", "V", (8, 8), ((np.s_[1:7], ".", "x", a.shape, np.s_[:, :]),), fillvalue=2)
    write("i8.h5", np.eye(8))
    for ranks in (0, 2):
        run("multiply", "v.h5:/V", "i8.h5", "-o", "c.h5", "--force", ranks=ranks)
        assert np.array_equal(read("c.h5"), shown("v.h5", "V"))
    fails("multiply", "v.h5:/V", "i8.h5", "-o", "v.h5:/x", "--force", code=2, says=["v.h5", "A is read"])
    assert np.array_equal(read("v.h5", "x"), a)


def test_empty():
    fresh()
    virtual("v.h5", "V", (4, 5), (), fillvalue=3)
    multiplies("v.h5", np.full((4, 5), 3.0))


def test_many_files():
    """More than are open at a time."""
    fresh("s")
    a = integers(150, 6, "f8")
    for i, row in enumerate(a):
        write(f"s/{i}.h5", row[None], "x", **({} if i % 3 else {"chunks": (1, 4)}))
    virtual("v.h5", "V", a.shape, [(np.s_[i:i + 1], f"s/{i}.h5", "x", (1, 6), np.s_[:, :]) for i in range(150)])
    multiplies("v.h5", a)
    assert "and others" in run("info", "v.h5", ALLOW).out
    assert "s/149.h5:/x: rows 149 to 149" in run("info", "v.h5:/V", ALLOW).out


# ---- external storage ----------------------------------------------------------------------------


def test_storage():
    """Runs of bytes that begin and end anywhere, in either order of bytes, whole and as matrices of a stack."""
    fresh("raw")
    for dtype in ("f8", ">f4"):
        size = np.dtype(dtype).itemsize
        a = integers(11, 13, dtype)
        files = [("raw/1.bin", 24, 5 * size), ("raw/2.bin", 0, 60 * size), ("raw/1.bin", 500, 2 * size),
                 ("raw/3.bin", 4096, (143 - 67) * size)]
        with h5py.File("e.h5", "w") as f:
            f.create_dataset("E", a.shape, dtype, external=files)[...] = a
            f.create_dataset("stack", (3, 5, 6), dtype, external=[("raw/4.bin", 8, 50 * size),
                                                                  ("raw/5.bin", 0, 40 * size)])
            f["stack"][...] = cube = np.stack([integers(5, 6, dtype) for _ in range(3)])
        native = a.astype(a.dtype.newbyteorder("="))
        multiplies("e.h5:/E", native)
        for i in range(3):
            multiplies(f"e.h5:/stack[{i},...]", cube[i].astype(native.dtype))
        os.remove("raw/1.bin")
        multiplies("e.h5:/stack[2,...]", cube[2].astype(native.dtype), "--io", "hdf5")


def test_where_storage_is():
    """From the current folder, as HDF5 has it, or from that which the environment names."""
    fresh("in")
    a = integers(4, 4, "f8")
    with h5py.File("in/e.h5", "w") as f:
        f.create_dataset("E", (4, 4), "f8", external=[("r.bin", 0, 128)])
    a.tofile("in/r.bin")
    refuses("in/e.h5:/E", "'in/e.h5' reads 'r.bin', which is not there", "HDF5_EXTFILE_PREFIX")
    multiplies("in/e.h5", a, environment=dict(HDF5_EXTFILE_PREFIX="${ORIGIN}"))
    multiplies("in/e.h5", a, environment=dict(HDF5_EXTFILE_PREFIX=os.path.abspath("in")))
    shutil.move("in/r.bin", "r.bin")
    refuses("in/e.h5:/E", "'r.bin' lies outside of", f"{ALLOW}=FOLDER")
    multiplies("in/e.h5", a, f"{ALLOW}=.")


def test_storage_refused():
    fresh()
    with h5py.File("e.h5", "w") as f:
        f.create_dataset("short", (4, 4), "f8", external=[("short.bin", 0, 128)])
        f.create_dataset("within", (4, 4), "f8", external=[("a.bin", 0, 60), ("b.bin", 0, 68)])
        f.create_dataset("gone", (4, 4), "f8", external=[("gone.bin", 0, 128)])
        f.create_dataset("converted", (4, 4), "f2", external=[("half.bin", 0, 32)])
        f.create_dataset("folder", (4, 4), "f8", external=[("folder", 0, 128)])
    for name, size in (("short", 127), ("a", 60), ("b", 68), ("half", 32)):
        with open(name + ".bin", "wb") as f:
            f.write(bytes(size))
    os.mkdir("folder")
    refuses("e.h5:/short", "'short.bin' should hold data up to byte 128, and has 127: it is truncated")
    refuses("e.h5:/within", "'a.bin' ends within an element")
    refuses("e.h5:/gone", "reads 'gone.bin', which is not there")
    refuses("e.h5:/folder", "'folder' is not a regular file")
    refuses("e.h5:/short", "external storage", "'short.bin'", ALLOW, options=())


# ---- external links ------------------------------------------------------------------------------


def test_links():
    """To a dataset, to a group, from file to file, and to a virtual dataset; soft links on the way."""
    fresh("x/y")
    a = integers(5, 6, "f8")
    write("x/y/a.h5", a, "g/A", chunks=(2, 2))
    with h5py.File("x/b.h5", "w") as f:
        f["far"] = h5py.ExternalLink("y/a.h5", "g")
        f["soft"] = h5py.SoftLink("/far/A")
        f["up"] = h5py.ExternalLink("../z.h5", "/A")
    write("z.h5", a + 1, "A")
    with h5py.File("l.h5", "w") as f:
        f["one"] = h5py.ExternalLink("x/y/a.h5", "/g/A")
        f["two"] = h5py.ExternalLink("x/b.h5", "soft")
        f["group"] = h5py.ExternalLink("x/b.h5", "/")
        f["absolute"] = h5py.ExternalLink(os.path.abspath("x/y/a.h5"), "/g/A")
        f["moved"] = h5py.ExternalLink("/nowhere/z.h5", "A")
        f["virtual"] = h5py.ExternalLink("v.h5", "V")
    virtual("v.h5", "V", (5, 6), ((np.s_[:], "l.h5", "group/far/A", (5, 6), np.s_[:, :]),))
    for path in ("one", "two", "group/far/A", "group/soft", "absolute", "virtual"):
        multiplies(f"l.h5:/{path}", a)
    for path in ("moved", "group/up"):
        multiplies(f"l.h5:/{path}", a + 1)
    multiplies("l.h5:/two", a, "--io", "hdf5")
    if PARALLEL:
        run("multiply", "l.h5:/two", "i6.h5", "-o", "c2.h5", ALLOW, "--io", "mpio", ranks=2)
        assert np.array_equal(read("c2.h5"), a)
    assert "lies in" in run("info", "l.h5:/two", ALLOW).out
    with h5py.File("l.h5", "a") as f:
        f["gone"] = h5py.ExternalLink("x/gone.h5", "/g/A")
    listed = dict(line.split("  ", 1) for line in run("info", "l.h5", ALLOW).out.splitlines() if line.startswith("/"))
    assert all("5 x 6" in listed[f"/{path}"] for path in ("one", "two", "absolute", "moved", "virtual")), listed
    assert "is no dataset" in listed["/group"] and "'x/gone.h5'" in listed["/gone"] and len(listed) == 7, listed
    assert run("info", "l.h5").out.count("it is a link to another file") == 7
    refuses("l.h5:/one", "external link to file 'x/y/a.h5'", ALLOW, options=())
    refuses("x/b.h5:/up", "'x/../z.h5' lies outside of")
    fails("info", "l.h5:/group/none", ALLOW, code=1, says="'x/b.h5' has no '/none'")


def test_folders_of_the_environment():
    fresh("e", "v")
    a = integers(4, 4, "f8")
    write("e/a.h5", a, "x")
    write("v/b.h5", a + 1, "x")
    with h5py.File("l.h5", "w", libver="latest") as f:
        f["link"] = h5py.ExternalLink("a.h5", "x")
    virtual("l.h5", "V", (4, 4), ((np.s_[:], "b.h5", "x", (4, 4), np.s_[:, :]),))
    multiplies("l.h5:/link", a, environment=dict(HDF5_EXT_PREFIX="nowhere:e"))
    multiplies("l.h5:/V", a + 1, environment=dict(HDF5_VDS_PREFIX="v"))
    multiplies("l.h5:/V", a + 1, environment=dict(HDF5_VDS_PREFIX="${ORIGIN}/v"))
    refuses("l.h5:/link", "reads 'a.h5', which is not there", environment=dict(HDF5_VDS_PREFIX="e"))
    refuses("l.h5:/V", "'b.h5', which is not there")


# ---- the folder ----------------------------------------------------------------------------------


def outside_of(folder):
    """in.h5 there, with a link, a virtual dataset and external storage that lead to files beside the folder."""
    write("out.h5", np.full((4, 4), 6.0), "x")
    np.full((4, 4), 6.0).tofile("out.bin")
    names = dict(up="../out", absolute=os.path.abspath("out"), symbolic="symbolic", below="linked/out")
    os.symlink("../out.h5", f"{folder}/symbolic.h5"), os.symlink("../out.bin", f"{folder}/symbolic.bin")
    os.symlink("..", f"{folder}/linked")
    for name, to in names.items():
        with h5py.File(f"{folder}/in.h5", "a", libver="latest") as f:
            f["link_" + name] = h5py.ExternalLink(to + ".h5", "x")
            path = to if to.startswith("/") else os.path.join(os.getcwd(), folder, to)
            f.create_dataset("raw_" + name, (4, 4), "f8", external=[(path + ".bin", 0, 128)])
        virtual(f"{folder}/in.h5", "view_" + name, (4, 4), ((np.s_[:], to + ".h5", "x", (4, 4), np.s_[:]),))
    return [f"{kind}_{name}" for kind in ("link", "view", "raw") for name in names]


def test_out_of_the_folder():
    """By "..", an absolute name, a symbolic link to a file, and one to a folder."""
    fresh("in")
    for name in outside_of("in"):
        for folder in (ALLOW, f"{ALLOW}=in"):
            fails("info", f"in/in.h5:/{name}", folder, code=1, says=["lies outside of", "/in'", f"{ALLOW}=FOLDER"])
        fails("info", f"in/in.h5:/{name}", code=1, says=["out", ALLOW] if "symbolic" not in name else [ALLOW])
        run("multiply", f"in/in.h5:/{name}", f"in/in.h5:/{name}", "-o", "c.h5", "--force", f"{ALLOW}=.", ranks=2)
        assert np.all(read("c.h5") == 4 * 36)
    for name in ("link_symbolic", "view_up", "raw_absolute"):
        refuses(f"in/in.h5:/{name}", "lies outside of", ranks=2)
    refuses("in/in.h5:/view_up", f"{ALLOW}=nowhere: there is no such folder", options=(f"{ALLOW}=nowhere",), code=2)


def test_beside_the_folder():
    """A folder whose name begins like the one that was allowed is another one."""
    fresh("data", "data2")
    write("data2/a.h5", np.ones((4, 4)), "x")
    with h5py.File("data/l.h5", "w") as f:
        f["x"] = h5py.ExternalLink("../data2/a.h5", "x")
    refuses("data/l.h5:/x", "'data/../data2/a.h5' lies outside of")


def test_input_behind_a_symbolic_link():
    """The folder is that of the file itself."""
    fresh("here", "there")
    a = integers(4, 4, "f8")
    write("there/s.h5", a, "x")
    virtual("there/v.h5", "V", (4, 4), ((np.s_[:], "s.h5", "x", (4, 4), np.s_[:]),))
    os.symlink("../there/v.h5", "here/v.h5")
    multiplies("here/v.h5", a)


# ---- hostile files -------------------------------------------------------------------------------


def test_circles():
    fresh()
    for one, other in ("ab", "ba"):
        with h5py.File(f"{one}.h5", "w") as f:
            f["x"] = h5py.ExternalLink(f"{other}.h5", "x")
    refuses("a.h5:/x", "circle", ranks=2)
    with h5py.File("self.h5", "w") as f:
        f["x"] = h5py.ExternalLink("self.h5", "x")
    refuses("self.h5:/x", "circle")
    virtual("v.h5", "own", (4, 4), ((np.s_[:2], ".", "own", (4, 4), np.s_[:2]),))
    virtual("v.h5", "named", (4, 4), ((np.s_[:2], "v.h5", "named", (4, 4), np.s_[:2]),))
    virtual("v.h5", "w", (4, 4), ((np.s_[:], "w.h5", "v", (4, 4), np.s_[:]),))
    virtual("w.h5", "v", (4, 4), ((np.s_[:], "v.h5", "w", (4, 4), np.s_[:]),))
    for name in ("own", "named", "w"):
        refuses(f"v.h5:/{name}", "leads back to itself", ranks=2)
    for i in range(9):
        virtual("d.h5", str(i), (4, 4), ((np.s_[:], ".", str(i + 1), (4, 4), np.s_[:]),))
    write("d.h5", np.ones((4, 4)), "9")
    refuses("d.h5:/0", "virtual dataset in 8 others")
    run("info", "d.h5:/1")


def test_sources_that_do_not_fit():
    fresh()
    write("f4.h5", np.ones((4, 4), "f4"), "x")
    write("small.h5", np.ones((3, 4)), "x"), write("small.h5", np.ones(16), "line")
    write("cube.h5", np.ones((1, 4, 4)), "x")
    write("words.h5", np.full((4, 4), b"x"), "x")
    with open("text.h5", "w") as f:
        f.write("no HDF5 at all")
    os.mkfifo("pipe.h5")
    with h5py.File("group.h5", "w") as f:
        f.create_group("x")
    cases = {"f4.h5": "holds f32, and what shows it f64", "small.h5": "is smaller than what is shown of it",
             "cube.h5": "has other dimensions", "words.h5": "'words.h5:/x' cannot be read as a matrix",
             "text.h5": "'text.h5' (14 bytes) is not an HDF5 file", "pipe.h5": "'pipe.h5' is not a regular file",
             "group.h5": "'group.h5:/x' is not a dataset", "gone.h5": "'gone.h5', which is not there"}
    for source, says in cases.items():
        virtual("v.h5", source, (4, 4), ((np.s_[:], source, "x", (4, 4), np.s_[:]),))
        refuses(f"v.h5:/{source}", says)
    virtual("v.h5", "no_x", (4, 4), ((np.s_[:], "small.h5", "y", (4, 4), np.s_[:]),))
    refuses("v.h5:/no_x", "'small.h5' has no '/y'")
    virtual("v.h5", "whole", (4, 4), ((np.s_[:], "small.h5", "x", (4, 4), None),))
    refuses("v.h5:/whole", "another shape")
    virtual("v.h5", "line", (4, 4), ((np.s_[:], "small.h5", "line", (16,), None),))
    refuses("v.h5:/line", "another shape")


def set_virtual(file, name, mappings, shape=(4, 4), most=None):
    """mappings: (shown space, file, dataset, source space)."""
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    for space, source, dataset, of in mappings:
        made.set_virtual(space, source, dataset, of)
    with h5py.File(file, "a", libver="latest") as f:
        h5py.h5d.create(f.id, name, h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple(shape, most), made)


def test_mappings_that_are_no_blocks():
    """Gaps, points, blocks without an end and names that count them are refused by name; %% is a percent sign."""
    fresh()
    a = integers(4, 4, "f8")
    write("a%.h5", a, "x"), write("a.h5", a, "x")
    virtual("v.h5", "gaps", (4, 4), ((np.s_[::2], "a.h5", "x", (4, 4), np.s_[:2]),))
    virtual("v.h5", "percent", (4, 4), ((np.s_[:], "a%%.h5", "x", (4, 4), np.s_[:]),))
    endless = h5py.h5s.create_simple((4, 4), (h5py.h5s.UNLIMITED, 4))
    endless.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (4, 1), (1, 4))
    counted = h5py.h5s.create_simple((4, 4), (h5py.h5s.UNLIMITED, 4))
    counted.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (4, 1), (4, 4))
    block = h5py.h5s.create_simple((4, 4))
    set_virtual("v.h5", b"endless", [(endless, b"a.h5", b"x", endless)], most=(h5py.h5s.UNLIMITED, 4))
    set_virtual("v.h5", b"counted", [(counted, b"a%b.h5", b"x", block)], most=(h5py.h5s.UNLIMITED, 4))
    for name in ("gaps", "endless"):
        refuses(f"v.h5:/{name}", "points, pieces with gaps or a size without an end")
    refuses("v.h5:/counted", "count blocks (%b)")
    refuses("v.h5:/counted", "'a%b.h5'", ALLOW, options=())
    multiplies("v.h5:/percent", a)


def test_refused_by_default():
    """With the names of the files, which are not opened: pipes would be waited for."""
    fresh()
    with h5py.File("v.h5", "w", libver="latest") as f:
        f["link"] = h5py.ExternalLink("a.h5", "x")
        f.create_dataset("raw", (4, 4), "f8", external=[("b.bin", 0, 64), ("c.bin", 0, 64)])
    virtual("v.h5", "view", (4, 4), ((np.s_[:2], "a.h5", "x", (2, 4), np.s_[:]),
                                    (np.s_[2:], "d.h5", "x", (2, 4), np.s_[:])))
    for name in ("a.h5", "b.bin", "c.bin", "d.h5"):
        os.mkfifo(name)
    refuses("v.h5:/link", "'a.h5'", ALLOW, options=())
    refuses("v.h5:/raw", "'b.bin', 'c.bin'", ALLOW, options=())
    refuses("v.h5:/view", "'a.h5', 'd.h5'", ALLOW, options=(), ranks=2)
    out = run("info", "v.h5").out
    assert out.count(ALLOW) == 3 and "'b.bin', 'c.bin'" in out and "'a.h5', 'd.h5'" in out, out
    for name in ("link", "raw", "view"):
        refuses(f"v.h5:/{name}", "is not a regular file")


# ---- what is written -----------------------------------------------------------------------------


def test_outputs():
    """No output goes into a file that is read by way of another, nor through a link."""
    fresh()
    a = integers(4, 4, "f8")
    write("s.h5", a, "x"), write("t.h5", a, "x")
    a.tofile("raw.bin")
    virtual("v.h5", "V", (4, 4), ((np.s_[:], "s.h5", "x", (4, 4), np.s_[:]),))
    with h5py.File("v.h5", "a") as f:
        f["link"] = h5py.ExternalLink("t.h5", "x")
        f["group"] = h5py.ExternalLink("t.h5", "/")
        f.create_dataset("E", (4, 4), "f8", external=[("raw.bin", 0, 128)])
    os.symlink("s.h5", "soft.h5")
    before = {name: open(name, "rb").read() for name in ("s.h5", "t.h5", "raw.bin", "v.h5")}
    for source, output in (("V", "s.h5:/x"), ("V", "s.h5:/C"), ("V", "soft.h5:/x"), ("link", "t.h5:/x"),
                           ("link", "t.h5"), ("E", "raw.bin:f64")):
        name = f"v.h5:/{source}"
        for operands in ((name, "s.h5"), ("t.h5", name), ("t.h5", "t.h5", "--add", name)):
            fails("multiply", *operands, "-o", output, "--force", ALLOW, code=2, says="would")
    fails("multiply", "s.h5", "s.h5", "-o", "v.h5:/group/C", ALLOW, code=1, says="external link")
    fails("multiply", "v.h5:/link", "s.h5", "-o", "v.h5:/link", "--force", ALLOW, code=2, says="would replace A")
    for name, content in before.items():
        assert open(name, "rb").read() == content, name
    assert not leftovers()
    run("multiply", "v.h5:/V", "v.h5:/link", "-o", "v.h5:/C", ALLOW, ranks=2)
    assert np.array_equal(read("v.h5"), a @ a) and np.array_equal(shown("v.h5", "V"), a)


def test_own_files():
    """Nor do --log, --trace and --report replace what may be read by way of another: only what earlier runs left."""
    fresh("deep")
    a = integers(4, 4, "f8")
    write("deep/s.h5", a, "x"), write("t.h5", a, "x"), write("b.h5", np.eye(4))
    a.tofile("raw.bin"), a.tofile("own.bin")
    virtual("deep/v.h5", "V", (4, 4), ((np.s_[:], "s.h5", "x", (4, 4), np.s_[:]),))
    virtual("v.h5", "V", (4, 4), ((np.s_[:], "deep/v.h5", "V", (4, 4), np.s_[:]),))
    with h5py.File("v.h5", "a") as f:
        f["link"] = h5py.ExternalLink("t.h5", "x")
        f.create_dataset("E", (4, 4), "f8", external=[("raw.bin", 0, 128)])
    os.symlink("raw.bin", "soft.bin")
    before = {name: open(name, "rb").read() for name in ("deep/s.h5", "deep/v.h5", "t.h5", "raw.bin", "v.h5")}
    for source, own, option in (("E", "raw.bin", "--log"), ("E", "raw.bin", "--trace"), ("E", "soft.bin", "--report"),
                                ("E", "soft.bin", "--log"), ("V", "deep/s.h5", "--log"), ("V", "deep/v.h5", "--trace"),
                                ("link", "t.h5", "--report"), ("link", "t.h5", "--log")):
        for operands in ((f"v.h5:/{source}", "b.h5"), ("b.h5", "b.h5", "--add", f"v.h5:/{source}")):
            fails("multiply", *operands, "-o", "c.h5", ALLOW, option, own, code=2,
                  says=[option, f"would overwrite '{own}'"])
    fails("multiply", "v.h5:/E", "b.h5", "-o", "c.h5", ALLOW, "--trace", "raw.bin", "--log", "first.json", code=2,
          says="would overwrite", ranks=2)
    for name, content in before.items():
        assert open(name, "rb").read() == content, name
    assert os.path.islink("soft.bin") and not os.path.exists("c.h5") and not leftovers()
    open("run.json", "w").close()
    for _ in range(2):  # what is empty, not there, or what a run left there
        run("multiply", "v.h5:/E", "b.h5", "-o", "c.h5", "--force", ALLOW, "--log", "run.json", "--trace", "trace.json",
            "--report", "page.html", ranks=2)
        assert np.array_equal(read("c.h5"), a)
    other = ("multiply", "b.h5", "b.h5", "-o", "c.h5", "--force", "--log")  # reads no other file
    fails(*other, "own.bin", code=1, says="'own.bin' is a binary file")
    with open("own.txt", "w") as text: text.write("notes")
    run(*other, "own.txt")


# ---- files that change ---------------------------------------------------------------------------


def change(file, at, by, count=1):
    return dict(SOON_OVER, LD_PRELOAD=SHIM, TSR_CHANGE=file, TSR_CHANGE_AT=at, TSR_CHANGE_BY=by,
                TSR_CHANGE_COUNT=str(count), HDF5_USE_FILE_LOCKING="BEST_EFFORT")


def test_swapped_for_a_link():
    """Between rank 0's look and rank 1's opening: it is another file then, wherever it lies."""
    for kind in ("link", "view", "raw"):
        fresh("in")
        names = outside_of("in")
        a = integers(4, 4, "f8")
        write("in/a.h5", a, "x")
        a.tofile("in/a.bin")
        virtual("in/in.h5", "view", (4, 4), ((np.s_[:], "a.h5", "x", (4, 4), np.s_[:]),))
        with h5py.File("in/in.h5", "a") as f:
            f["link"] = h5py.ExternalLink("a.h5", "x")
            f.create_dataset("raw", (4, 4), "f8", external=[(os.path.abspath("in/a.bin"), 0, 128)])
        assert names
        file = "in/a.bin" if kind == "raw" else "in/a.h5"
        os.symlink("../out.bin" if kind == "raw" else "../out.h5", file + ".new")
        write("b.h5", np.eye(4))
        fails("multiply", f"in/in.h5:/{kind}", "b.h5", "-o", "c.h5", ALLOW, "--grid", "2x1", ranks=2, code=1,
              says=[f"{file[3:]}' changed during the run", "inode"], environment=change(file, "open", "replace"))
        assert not os.path.exists("c.h5") and not leftovers(), os.listdir(".")


def test_memory():
    """What a chunk of a source takes is counted, and refused by its name where there is no room."""
    fresh()
    a = integers(1024, 1024, "f8")
    write("s.h5", a, "x", chunks=(1024, 1024), compression="gzip", compression_opts=1)
    virtual("v.h5", "V", a.shape, ((np.s_[:], "s.h5", "x", a.shape, np.s_[:]),))
    write("b.h5", np.eye(1024, 4))
    fails("multiply", "v.h5", "b.h5", "-o", "c.h5", ALLOW, "--host-memory", "8M", "--memory", "8M", code=1,
          says=["'s.h5:/x': reading its", "chunks of 1024x1024", "use --host-memory"])
    run("multiply", "v.h5", "b.h5", "-o", "c.h5", ALLOW, "--host-memory", "60M", "--memory", "60M")
    assert np.array_equal(read("c.h5"), a[:, :4])


def test_changes():
    """Sources of a virtual dataset, external files and what links lead to, and the file that was named."""
    for at, by in (("describe", "overwrite"), ("output", "overwrite"), ("output", "replace"), ("open", "touch"),
                   ("open", "replace"), ("read", "overwrite"), ("read", "touch")):
        for name, file in (("V", "s.h5"), ("V", "chunked.h5"), ("link", "s.h5"), ("E", "raw.bin"), ("V", "v.h5")):
            if (at, file) in (("read", "v.h5"), ("describe", "raw.bin")):
                continue  # nothing of it is read then, and HDF5 does not open it
            fresh()
            a = integers(64, 1024, "f8")
            write("s.h5", a[:32], "x"), write("s.h5", a, "all")
            write("chunked.h5", a[32:], "x", chunks=(32, 512))
            a.tofile("raw.bin")
            virtual("v.h5", "V", a.shape, ((np.s_[:32], "s.h5", "x", (32, 1024), np.s_[:]),
                                          (np.s_[32:], "chunked.h5", "x", (32, 1024), np.s_[:])))
            with h5py.File("v.h5", "a") as f:
                f["link"] = h5py.ExternalLink("s.h5", "all")
                f.create_dataset("E", a.shape, "f8", external=[("raw.bin", 0, a.nbytes)])
            shutil.copy(file, file + ".new")
            write("a.h5", np.eye(64)), write("b.h5", np.eye(1024))
            # both ranks read each source of A; whole rows of B are large enough for `read`
            operands = ("a.h5", f"v.h5:/{name}") if at == "read" else (f"v.h5:/{name}", "b.h5")
            fails("multiply", *operands, "-o", "c.h5", ALLOW, "--device", "cpu", code=1,
                  says=[f"{file}' changed during the run"], environment=change(file, at, by),
                  ranks=0 if at == "read" else 2)
            assert not os.path.exists("c.h5") and not leftovers(), os.listdir(".")


main(globals())
