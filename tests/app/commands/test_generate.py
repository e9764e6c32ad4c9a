"""generate: the same data for any number of ranks, every type and distribution, orders, refusal of what exists."""
import json
import os

import h5py

from lib import fails, leftovers, main, np, read, run, write

TYPES = {"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1",
         "u16": "u2", "u32": "u4", "u64": "u8", "c64": "c8", "c128": "c16"}


def test_ranks():
    run("generate", "-o", "one.h5", "--shape", "37x53", "--distribution", "normal", "--seed", 7, "--type", "f64")
    expected = read("one.h5").tobytes()
    for ranks in (1, 2, 3, 4):
        run("generate", "-o", f"r{ranks}.h5", "--shape", "37x53", "--distribution", "normal", "--seed", 7, "--type",
            "f64", ranks=ranks)
        assert read(f"r{ranks}.h5").tobytes() == expected, f"{ranks} ranks made another matrix"
    run("generate", "-o", "other.h5", "--shape", "37x53", "--distribution", "normal", "--seed", 8, "--type", "f64")
    assert read("other.h5").tobytes() != expected, "the seed changes nothing"


def test_note_of_several():
    """A file that held another matrix is no longer enough as a name; whoever named the dataset knows."""
    for command in (["generate", "--shape", "3x3"], ["multiply", "one3.h5", "one3.h5"]):
        write("one3.h5", np.ones((3, 3))), write("two.h5", np.ones((3, 3)), "A")
        note = "tessera: note: 'two.h5' now holds 2 matrices: name this one two.h5:/C\n"
        assert run(*command, "-o", "two.h5", ranks=2).err == note
        assert run(*command, "-o", "two.h5", "--force").err == note
        fails("compare", "two.h5", "one3.h5", code=2, says="two.h5:/A")
        for options in (["-o", "two.h5", "--quiet"], ["-o", "two.h5:/C"], ["-o", "three.h5"]):
            assert run(*command, *options, "--force").err == "", options
        assert run(*command, "-o", "three.h5", "--force").err == ""
        os.remove("two.h5"), os.remove("three.h5")


def test_several_strips():
    """40 MB a rank: more than one strip; a part does not depend on the shape around it."""
    run("generate", "-o", "large.h5", "--shape", "2x9000000", "--type", "f64", ranks=2)
    run("generate", "-o", "small.h5", "--shape", "2x1000", "--type", "f64")
    with h5py.File("large.h5") as file:
        assert np.array_equal(file["C"][:, :1000], read("small.h5")), "elements depend on the shape"
        tail = file["C"][:, -1000:]
    assert np.all((tail >= 0) & (tail < 1)) and len(np.unique(tail)) > 1900, "the end is not filled"


def test_modes():
    for mode in ("auto", "direct", "hdf5", "mpio"):
        run("generate", "-o", f"{mode}.h5", "--shape", "11x7", "--io", mode, ranks=2)
        assert np.array_equal(read(f"{mode}.h5"), read("auto.h5")), mode


def test_types():
    for name, dtype in TYPES.items():
        run("generate", "-o", "types.h5:/g/" + name, "--shape", "40x50", "--type", name, "--distribution", "integer")
        data = read("types.h5", "g/" + name)
        assert data.dtype == np.dtype(dtype), f"{name}: {data.dtype}"
        low = 0 if name.startswith("u") else -4
        if name.startswith("c"):  # parts are neighbours in a real matrix
            run("generate", "-o", "parts.h5", "--shape", "40x100", "--distribution", "integer", "--force")
            assert np.array_equal(data.view(data.real.dtype), read("parts.h5")), name
            data = data.imag
        assert data.min() == low and data.max() == 4, f"{name}: {data.min()} to {data.max()}"
    assert sorted(h5py.File("types.h5")["g"]) == sorted(TYPES), "earlier datasets were lost"


def test_distributions():
    run("generate", "-o", "d.h5:/u", "--shape", "300x300", "--distribution", "uniform", "--type", "f64")
    run("generate", "-o", "d.h5:/n", "--shape", "300x300", "--distribution", "normal", "--type", "f64")
    run("generate", "-o", "d.h5:/i", "--shape", "5x3", "--distribution", "identity")
    u, n = read("d.h5", "u"), read("d.h5", "n")
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.005, u.mean()
    assert abs(n.mean()) < 0.02 and abs(n.std() - 1) < 0.02, (n.mean(), n.std())
    assert np.array_equal(read("d.h5", "i"), np.eye(5, 3)), read("d.h5", "i")
    for kind in ("i8", "u64"):  # of integers
        run("generate", "-o", f"d.h5:/{kind}", "--shape", "60x60", "--type", kind)
        run("generate", "-o", f"d.h5:/{kind}_asked", "--shape", "60x60", "--type", kind, "--distribution", "integer")
        assert len(np.unique(read("d.h5", kind))) > 4, kind
        assert np.array_equal(read("d.h5", kind), read("d.h5", kind + "_asked")), kind
    run("generate", "-o", "d.h5:/asked", "--shape", "6x6", "--type", "i32", "--distribution", "uniform")
    assert not read("d.h5", "asked").any()


def test_order():
    run("generate", "-o", "row.h5", "--shape", "13x29", "--seed", 3)
    run("generate", "-o", "col.h5", "--shape", "13x29", "--seed", 3, "--order", "col", ranks=3)
    assert np.array_equal(read("col.h5"), read("row.h5").T), "column order is not the transpose"


def test_sizes():
    for shape in ("0x0", "0x5", "5x0", "1x1", "3x2"):
        run("generate", "-o", "s.h5", "--shape", shape, "--force", ranks=4)
        assert read("s.h5").shape == tuple(int(x) for x in shape.split("x")), shape


def test_force_and_log():
    run("generate", "-o", "f.h5", "--shape", "4x4", "--log", "f.json", ranks=2)
    log = json.load(open("f.json"))
    assert (log["rows"] == 4 and log["cols"] == 4 and log["ranks"] == 2 and log["type"] == "f32" and
            log["path"] == "/C" and log["rank_count"] == 2), log
    before = open("f.h5", "rb").read()
    fails("generate", "-o", "f.h5", "--shape", "5x5", ranks=2, code=1, says=["/C", "--force"])
    assert open("f.h5", "rb").read() == before, "a refused run changed the file"
    run("generate", "-o", "f.h5:/D", "--shape", "2x2")
    run("generate", "-o", "f.h5", "--shape", "5x5", "--force")
    assert read("f.h5").shape == (5, 5) and read("f.h5", "D").shape == (2, 2)
    assert not leftovers(), leftovers()


main(globals())
