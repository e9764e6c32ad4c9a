"""Matrices in NumPy's .npy files and in bare files: numpy reads what tessera writes and the other way round, on 1 and 3
ranks; what is there stays; and headers that lie are one line of error."""
import os
import struct

from lib import fails, integers, leftovers, main, np, read, run, write

A, B = integers(37, 29), integers(29, 23)
C = A.astype("f8") @ B.astype("f8")
TYPES = ["<f2", "<f4", "<f8", ">f2", ">f4", ">f8", "|i1", "<i2", "<i4", "<i8", ">i2", ">i8", "|u1", "<u2", ">u4", "<u8"]


def content(name):
    with open(name, "rb") as file:
        return file.read()


def make():
    for name in os.listdir("."):
        os.remove(name)
    np.save("a.npy", A), np.save("b.npy", B)
    A.tofile("a.bin"), B.tofile("b.bin")
    write("a.h5", A), write("b.h5", B)


def multiply(*args, **more):
    return run("multiply", *args, "--device", "cpu", "--quiet", **more)


def refused(*args, code=1, says, **more):
    """multiply fails and leaves nothing behind."""
    before = {name: content(name) for name in os.listdir(".")}
    fails("multiply", *args, "--device", "cpu", code=code, says=says, **more)
    assert {name: content(name) for name in os.listdir(".")} == before, os.listdir(".")


def test_every_pair_of_kinds():
    make()
    for ranks in (1, 3):
        for a, b in (("a.npy", "b.npy"), ("a.bin:f32:37x29", "b.h5"), ("a.h5", "b.bin:f32:29x23:0")):
            multiply(a, b, "-o", "c.npy", "--force", "--verify", ranks=ranks)
            multiply(a, b, "-o", "c.bin:f32:37x23", "--force", ranks=ranks)
            c = np.load("c.npy")
            assert c.dtype == "<f4" and not np.isfortran(c) and np.array_equal(c, C), (a, b, ranks)
            assert np.array_equal(np.fromfile("c.bin", "f4").reshape(C.shape), C), (a, b, ranks)
    run("verify", "a.npy", "b.h5", "c.bin:f32:37x23", ranks=3)
    multiply("a.npy", "b.npy", "--add", "c.npy", "-o", "c.npy", "--force", ranks=3)
    assert np.array_equal(np.load("c.npy"), 2 * C)
    fails("compare", "c.npy", "c.bin:f32:37x23", ranks=2, code=3, says="above the tolerance")
    assert not leftovers(), leftovers()


def test_types():
    make()
    for dtype in TYPES:
        a = (A + 4).astype(dtype)
        np.save("t.npy", a)
        multiply("t.npy", "b.npy", "-o", "c.npy", "--force", "--type", "f64", ranks=0 if dtype[0] != ">" else 3)
        assert np.array_equal(np.load("c.npy"), (A + 4).astype("f8") @ B), dtype
    for dtype in ("c8", ">c16"):
        a = (A + 4 - 2j * A).astype(dtype)
        np.save("t.npy", a)
        multiply("t.npy", "b.npy", "-o", "c.npy", "--force", ranks=2)
        assert np.array_equal(np.load("c.npy"), a @ B) and np.load("c.npy").dtype.kind == "c", dtype
    for spelled in ("float64", "double", "F64"):
        multiply("a.npy", "b.npy", "-o", f"t.bin:{spelled}", "--type", "f64", "--force")
        multiply(f"t.bin:{spelled}:{C.shape[0]}x{C.shape[1]}", "-o", "t.npy", "--gram", "--force")
        assert np.array_equal(np.load("t.npy"), C.astype("f8") @ C.T), spelled
    for dtype in ("f16", "f64"):
        multiply("a.npy", "b.npy", "-o", f"t.bin:{dtype}", "--type", dtype, "--force")
        assert np.array_equal(np.fromfile("t.bin", "f" + str(int(dtype[1:]) // 8)).reshape(C.shape), C), dtype
    for other, what in (("G", "not known"), ("g", "more than 64 bits"), ("U3", "strings"),
                        ("M8[s]", "dates"), ([("x", "f4")], "structured")):
        np.save("t.npy", np.zeros((37, 29), other))
        refused("t.npy", "b.npy", "-o", "x.npy", says=["'t.npy' cannot be read as a matrix", what])
    np.save("t.npy", np.full((2, 2), None))
    refused("t.npy", "b.npy", "-o", "x.npy", says="Python objects")


def test_slices_and_orders():
    make()
    multiply("a.npy[5:, 3:20]", "b.bin:f32:29x23[3:20, :-1]", "-o", "c.npy", ranks=3)
    assert np.array_equal(np.load("c.npy"), A[5:, 3:20] @ B[3:20, :-1])
    np.save("fa.npy", np.asfortranarray(A)), np.save("fb.npy", np.asfortranarray(B))
    A.T.tofile("ta.bin")
    refused("fa.npy", "b.npy", "-o", "x.npy", says=["(37x29) is in Fortran order", "--order col"])
    shown = " ".join(run("info", "fa.npy").out.split())
    assert "fa.npy 29 x 37 f32" in shown and "Fortran: this is its transpose" in shown, shown
    assert "Fortran" not in run("info", "a.npy").out
    for names in (("a.npy", "fb.npy"), ("fa.npy", "b.npy")):  # each in its own order, and the other is no transpose
        refused(*names, "-o", "x.npy", "--order", "col", says=["is in C order", "leave --order col out"])
    fails("compare", "a.npy", "fa.npy", "--order", "col", code=1, says="is in C order")
    np.save("a3.npy", np.stack([A, A])), np.save("fa3.npy", np.asfortranarray(np.stack([A, 2 * A], axis=-1)))
    refused("a3.npy", "fb.npy", "-o", "x.npy", "--order", "col", says=["is in C order", "leave --order col out"])
    multiply("fa3.npy", "fb.npy", "-o", "fc3.npy", "--order", "col")
    assert np.array_equal(np.load("fc3.npy"), np.stack([C, 2 * C], axis=-1))
    np.save("row.npy", A[:1]), np.save("column.npy", A[:, :1])  # both orders store these alike
    multiply("column.npy", "row.npy", "-o", "fc.npy", "--order", "col", "--force")
    assert np.array_equal(np.load("fc.npy"), A[:, :1] @ A[:1])
    for a in ("fa.npy", "ta.bin:f32:37x29"):
        multiply(a, "fb.npy", "-o", "fc.npy", "--order", "col", "--force", ranks=3)
        c = np.load("fc.npy")
        assert np.isfortran(c) and np.array_equal(c, C), a
        multiply(a + "[1:, :4]", "fb.npy[:4, 2:]", "-o", "fd.npy", "--order", "col", "--force")
        assert np.array_equal(np.load("fd.npy"), A[1:, :4] @ B[:4, 2:]), a
    multiply("fa.npy", "fb.npy", "-o", "c.bin:f32:37x23", "--order", "col")
    assert np.array_equal(np.fromfile("c.bin", "f4").reshape(23, 37).T, C)


def test_parent_folders():
    """What is behind "..", is a file beside, never a dataset."""
    make()
    refused("a.h5", "b.h5", "-o", "b.h5/../b.npy", says=["the folder 'b.h5/..'", "Not a directory"])
    os.mkdir("f.h5")
    multiply("a.h5", "b.h5", "-o", "f.h5/../c.npy")
    os.rmdir("f.h5")
    assert np.array_equal(np.load("c.npy"), C)


def test_generate_and_info():
    make()
    for name, options in (("g", ()), ("big", ("--shape", "700x800"))):
        shape = () if options else ("--shape", "41x17")
        for ranks in (1, 3):
            run("generate", "-o", f"{name}{ranks}.npy", *shape, *options, "--type", "f64", ranks=ranks)
        run("generate", "-o", f"{name}.h5", *shape, *options, "--type", "f64")
        run("generate", "-o", f"{name}.bin:f64", *shape, *options, "--type", "f64", ranks=2)
        expected = read(f"{name}.h5")
        assert np.array_equal(np.load(f"{name}1.npy"), expected) and content(f"{name}1.npy") == content(f"{name}3.npy")
        assert np.array_equal(np.fromfile(f"{name}.bin").reshape(expected.shape), expected)
    assert "  41 x 17  f64  contiguous at byte 128" in run("info", "g1.npy").out
    assert "  700 x 800  f64  contiguous at byte 4096" in run("info", "big1.npy").out
    assert "a.bin  37 x 29  f32" in run("info", "a.bin:f32:37x29").out
    run("generate", "-o", "col.npy", "--shape", "5x3", "--order", "col")
    run("generate", "-o", "col.h5", "--shape", "5x3", "--order", "col")
    assert np.array_equal(np.load("col.npy"), read("col.h5").T)


def test_endings_of_other_programs():
    """HDF5 under such a name is warned of where it is made, and not where it is replaced."""
    make()
    for name in ("c.csv", "c.NPZ", "c.bin", "c.bin:f31", "c.out", "c.h5"):
        odd = name not in ("c.out", "c.h5")
        for args in ([], ["--force"]):
            said = multiply("a.npy", "b.npy", "-o", name, *args).err
            assert ("is an HDF5 file, though not called so" in said) == (odd and not args), (name, args, said)
        assert np.array_equal(read(name), C), name
        os.remove(name)
    for name in ("c.bin", "c.h5"):
        multiply("a.npy", "b.npy", "-o", name)
        for args in ([], ["--force"]):
            said = multiply("a.npy", "b.npy", "-o", f"{name}:f64", *args).err
            assert ("'/f64' a dataset of it: remove the file first" in said) == (name == "c.bin"), (name, args, said)
        assert np.array_equal(read(name, "f64"), C), name
        os.remove(name)


def test_empty():
    make()
    for shape in ((0, 29), (37, 0)):
        np.save("e.npy", np.zeros(shape, "f4"))
        multiply("e.npy", "b.npy" if shape[0] == 0 else "b.npy[0:0, :]", "-o", "c.npy", "--force", ranks=2)
        assert np.array_equal(np.load("c.npy"), np.zeros((shape[0], 23))), shape


def test_what_is_there_stays():
    make()
    earlier = np.ones((2, 2))
    np.save("c.npy", earlier), earlier.tofile("c.bin")
    with open("text.npy", "w") as file:
        file.write("no array")
    ab = ("a.npy", "b.npy", "-o")
    refused(*ab, "c.npy", says=["'c.npy' exists already", "--force"])
    refused(*ab, "c.bin:f32", says="'c.bin' exists already")
    refused(*ab, "text.npy", "--force", says="is no .npy file; it is not touched")
    os.link("c.npy", "npy.bin")
    refused(*ab, "npy.bin:f32", "--force", says="is a .npy file; it is not touched")
    refused(*ab, "a.npy", "--force", code=2, says="would replace A, which is read")
    refused("a.npy", "b.npy", "--add", "c.npy[:1,:]", "-o", "c.npy", "--force", says="1 x 2")
    np.save("c0.npy", np.ones((40, 23), "f4"))
    refused("a.npy", "b.npy", "--add", "c0.npy[:37, :]", "-o", "c0.npy", "--force", code=2, says="rest would be lost")
    refused(*ab, "c.bin:f64", "--force", code=2, says=["is f64 by its name", "--type f64", "c.bin:f32"])
    refused(*ab, "d.bin:f32:3x4", says=["is 37x23", "d.bin:f32"])
    refused(*ab, "d.bin:f32:37x23:8", code=2, says="leave the offset out")
    refused(*ab, "d.npy", "--compress", "gzip", code=2, says="is not an HDF5 file")
    refused(*ab, "c.npy:f32", "--force", code=2, says="write c.npy and --type f32")
    refused(*ab, "d.npy:f32", code=2, says=["would have no header", "write d.npy and --type f32"])
    refused(*ab, "d.npy[1:,:]", code=2, says="cannot be a slice")
    refused(*ab, "d.h5", "--io", "hdf5", says=["'a.npy' is not an HDF5 file", "--io auto"])
    refused("a.h5", "b.h5", "-o", "d.npy", "--io", "hdf5", ranks=3, says="is not an HDF5 file")
    refused(*ab, "none/d.npy", says="does not exist")
    refused("a.npy", "a.npy", "-o", "c.npy", "--force", ranks=3, says="37 x 29")


def test_names():
    """HDF5 files keep their names, whatever stands behind them."""
    make()
    write("a.h5", A, "f32"), write("a.h5", A, "x.npy"), write("plain", A, "f32"), write("odd.npy", A)
    for name in ("a.h5:f32", "a.h5/x.npy", "a.h5:/x.npy", "plain:f32", "odd.npy", "odd.npy:/C"):
        run("compare", name, "a.npy", "--quiet")
    fails("info", "a.bin:f32:37y29", code=2, says=["'a.bin:f32:37y29'", "ROWSxCOLS"])
    fails("info", "a.bin:f32", code=2, says="its shape is missing: write a.bin:f32:ROWSxCOLS")
    fails("info", "a.bin:f32:37x28", code=1, says=["has 4292 bytes", "takes 4144", "a.bin:f32:37x28:0"])
    fails("info", "a.bin:f64:37x29", code=1, says="needs 8584")
    fails("info", "a.bin:f32:37x29:4", code=1, says="behind its offset")
    fails("info", "a.bin:f64:4294967296x4294967296", code=1, says="2^63")
    fails("info", f"a.bin:f32:1x1:{2**63 - 1}", code=1, says="has 4292 bytes")
    fails("info", f"a.bin:f32:{2**63}x1", code=2, says="ROWSxCOLS")
    fails("info", "none.npy", code=1, says="No such file")
    os.mkdir("folder.npy")
    fails("info", "folder.npy", code=1, says="is a directory")
    os.rmdir("folder.npy")
    run("compare", "a.bin:f32:10x29:0", "a.npy[:10, :]", "--quiet")
    run("compare", f"a.bin:f32:10x29:{4 * 29}", "a.npy[1:11, :]", "--quiet")


HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': (37, 29), }"


def npy(header, data=A.tobytes(), version=1, length=None, magic=b"\x93NUMPY"):
    text = header.encode("latin1")
    length = len(text) if length is None else length
    return magic + bytes((version, 0)) + struct.pack("<H" if version == 1 else "<I", length) + text + data


def test_headers():
    make()
    for header, version in ((HEADER, 1), (HEADER, 2), (HEADER + " " * 60000 + "\n", 3), (HEADER.replace(", }", "}"), 1),
                            (HEADER.replace("37, 29", "37L,29L"), 1), (HEADER.replace("'", '"'), 1),
                            ("{'shape':(37,29,),'fortran_order':False,'descr':'=f4'}", 1)):
        with open("t.npy", "wb") as file:
            file.write(npy(header, version=version))
        run("compare", "t.npy", "a.npy", "--quiet")
    shape = "(37, 29)"
    for data, says in (
            (b"", "does not begin as one"), (b"\x93NUM", "does not begin as one"), (b"\x93NUMPY", "within its header"),
            (b"\x93NUMPY\1\0\x40", "within its header"), (npy(HEADER, version=9), "version"),
            (npy(HEADER, b"", length=65535), "within its header"),
            (npy(HEADER, version=2, length=2**32 - 1), "within its header"),
            (npy(HEADER + " " * 70000, version=2), "longer than 64 KiB"),
            (npy(HEADER[:-3]), "is not as numpy writes it"), (npy(HEADER + "x"), "is not as numpy writes it"),
            (npy("{" * 5000), "is not as numpy writes it"), (npy(""), "is not as numpy writes it"),
            (npy("{}"), "is not as numpy writes it"), (npy(HEADER.replace("descr", "d\xe9scr")), "is not plain text"),
            (npy(HEADER.replace("descr", "d\x1b[31m")), "is not plain text"), (npy("\0" * 80), "is not plain text"),
            (npy(HEADER.replace("'descr'", "'descr': '<f4', 'descr'")), "is not as numpy writes it"),
            (npy(HEADER.replace("False", "None")), "is not as numpy writes it"),
            (npy(HEADER.replace("<f4", "<f4" * 50)), "is not as numpy writes it"),
            (npy(HEADER.replace("<f4", "<f3")), "not known here"), (npy(HEADER.replace("<f4", "<f99")), "not known"),
            (npy(HEADER.replace("<f4", "")), "not known here"), (npy(HEADER.replace("<f4", "|f4")), "not known here"),
            (npy(HEADER.replace("<f4", "<f4x")), "not known here"), (npy(HEADER.replace("<f4", "<f-4")), "not known"),
            (npy(HEADER.replace(shape, "()")), "behind its elements"),
            (npy(HEADER.replace(shape, "(37, 28, 1)")), "behind its elements"),
            (npy(HEADER.replace(shape, "(" + "1, " * 33 + ")")), "is not as numpy writes it"),
            (npy(HEADER.replace(shape, "(37, 29, 1)").replace("False", "True")), "(37x29x1) is in Fortran order"),
            (npy(HEADER.replace(shape, "(-37, 29)")), "is not as numpy writes it"),
            (npy(HEADER.replace(shape, "(37 29)")), "is not as numpy writes it"),
            (npy(HEADER.replace(shape, f"({2**63}, 1)")), "is not as numpy writes it"),
            (npy(HEADER.replace(shape, f"({2**40}, {2**40})")), "2^63"),
            (npy(HEADER.replace(shape, f"({2**40}, 29)")), "is truncated"),
            (npy(HEADER, A.tobytes()[:-1]), "is truncated: its elements take 4292 bytes, and 4291 are there"),
            (npy(HEADER, A.tobytes() + b"x"), "has 1 bytes behind its elements")):
        with open("t.npy", "wb") as file:
            file.write(data)
        for ranks in (0, 2) if "truncated" in says else (0,):
            refused("t.npy", "b.npy", "-o", "x.npy", ranks=ranks, says=["'t.npy'", says])


def test_changed_inputs():
    """As changing_input.c has it for HDF5 files: before it is opened, while it is read."""
    shim = os.environ["TSR_CHANGING_INPUT"]
    for at, by, what in (("output", "overwrite", ": modified "), ("output", "grow", "bytes became"),
                         ("output", "replace", ": inode ")):
        make()
        np.save("in.npy", B)
        with open("in.npy.new", "wb") as file:
            np.save(file, B)
        np.save("c.npy", np.ones((2, 2)))
        change = dict(LD_PRELOAD=shim, TSR_CHANGE="in.npy", TSR_CHANGE_AT=at, TSR_CHANGE_BY=by, TSR_CHANGE_COUNT="2")
        fails("multiply", "a.npy", "in.npy", "-o", "c.npy", "--force", "--device", "cpu", "--panel", "8", code=1,
              says=["'in.npy' changed during the run", what], environment=change)
        assert np.array_equal(np.load("c.npy"), np.ones((2, 2))) and not leftovers(), (at, by, leftovers())


main(globals())
