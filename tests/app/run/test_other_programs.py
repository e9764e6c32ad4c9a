"""Files of PyTables and Octave: read as these programs write them, and C read back by them. h5py, netCDF4, xarray and
hdf5plugin have their places in other tests. Without PyTables or Octave the files kept in tests/data are left."""
import os
import pathlib
import shutil
import subprocess

import h5py
import numpy as np
from lib import fails, integers, leftovers, main, read, run, write

try:
    import tables
except ImportError:
    tables = None

VARIABLES = pathlib.Path(__file__).parents[2] / "data" / "octave" / "variables.h5"
A = np.arange(1, 13).reshape(4, 3).T / 4  # as make_octave.m has it


def product(a, b, *options, **more):
    run("multiply", a, b, "-o", "c.h5", "--force", "--device", "cpu", "--quiet", *options, **more)
    assert not leftovers(), leftovers()
    return read("c.h5")


# ---- netCDF ---------------------------------------------------------------------------------------------------------


def test_packed():
    """What a file says of packed elements is said, unless it says nothing; they are taken as they are stored."""
    unit = write("unit.h5", np.eye(3))
    a = integers(4, 3, "i2")
    write("nc.h5", a, "T"), write("nc.h5", a, "plain"), write("nc.h5", a.astype("u2"), "U")
    with h5py.File("nc.h5", "a") as file:
        file["T"].attrs["scale_factor"], file["T"].attrs["add_offset"] = np.float32([0.01]), 273.15
        file["T"].attrs["_Unsigned"] = "true"
        file["plain"].attrs["scale_factor"], file["plain"].attrs["add_offset"] = 1.0, np.int8(0)
        file["plain"].attrs["_Unsigned"] = "false"
        file["U"].attrs["_Unsigned"] = "true"
    for ranks in (0, 2):
        result = run("multiply", "nc.h5:/T", unit, "-o", "c.h5", "--force", "--device", "cpu", ranks=ranks)
        said = [line for line in result.err.splitlines() if "is packed" in line]
        assert len(said) == 1 and "'nc.h5:/T' is packed (scale_factor, add_offset, _Unsigned)" in said[0], result
        assert np.array_equal(read("c.h5"), a)
    for name in ("plain", "U"):
        result = run("multiply", f"nc.h5:/{name}", unit, "-o", "c.h5", "--force", "--device", "cpu")
        assert "packed" not in result.err, result
    lines = [line for line in run("info", "nc.h5").out.splitlines() if "packed" in line]
    assert len(lines) == 1 and lines[0].startswith("/T ") and "(scale_factor, add_offset, _Unsigned)" in lines[0], lines
    with h5py.File("nc.h5", "a") as file:  # what is no number may be anything
        file["plain"].attrs["scale_factor"] = "ten"
    assert "packed (scale_factor)" in run("info", "nc.h5:/plain").out
    assert "is packed" in run("compare", "nc.h5:/T", "nc.h5:/T").err


# ---- Octave ---------------------------------------------------------------------------------------------------------


def test_octave_reads():
    """Each variable as Octave shows it, in its order of columns."""
    shutil.copy(VARIABLES, "variables.h5")
    shown = {"A": A, "S": A, "I": np.array([[1, 2], [3, 4]]), "B": np.ones((2, 3)), "V": np.array([[1, 2, 3]]),
             "D/value/x": A, "C/value/_0": A}
    for name, values in shown.items():
        unit = write("unit.h5", np.eye(values.shape[0]))
        found = product(unit, f"variables.h5:/{name}", "--order", "col", ranks=len(name) % 3).T
        assert np.array_equal(found, values), f"{name}: {found}"
    found = product(write("unit.h5", np.eye(3)), "variables.h5:/Z", "--order", "col").T
    assert found.dtype.names == ("real", "imag"), found.dtype
    assert np.array_equal(found["real"], A) and np.array_equal(found["imag"], A), found
    pages = np.arange(1, 25).reshape(4, 3, 2).transpose(2, 1, 0)  # 2 x 3 x 4
    found = product(write("unit.h5", np.eye(2)), "variables.h5:/T", "--order", "col")
    assert np.array_equal(found.transpose(2, 1, 0), pages), found


def test_octave_refusals():
    """What is no matrix of numbers is refused by what it is, listed so or not at all, and nothing is written."""
    shutil.copy(VARIABLES, "variables.h5")
    unit = write("unit.h5", np.eye(2))
    for name, says in (("E", "empty Octave matrix"), ("W", "text of Octave"), ("R", "a range of Octave"),
                       ("P", ["sparse matrix of Octave", "full("]), ("C", "a cell of Octave"),
                       ("D", "a scalar struct of Octave")):
        fails("multiply", f"variables.h5:/{name}", unit, "-o", "none.h5", code=1, says=says)
        assert not os.path.exists("none.h5") and not leftovers(), name
    text = run("info", "variables.h5").out
    assert "/P/value/data" not in text and "/C/value/dims" not in text and "/C/value/_0/value  4 x 3" in text, text


def test_octave_types_of_strangers():
    """A `type` beside a value that is no text, too long, or leads out of the file is nobody's word."""
    values = integers(3, 4, "f8")
    unit = write("unit.h5", np.eye(3))
    for number, kind in enumerate((7, "x" * 1000, np.arange(4), h5py.SoftLink("/nowhere"), h5py.SoftLink("/V/type"),
                                   h5py.ExternalLink("other.h5", "/C"), None)):
        with h5py.File("strange.h5", "w") as file:
            group = file.create_group("V")
            group.attrs["OCTAVE_NEW_FORMAT"] = np.uint8(1)
            group["value"] = values
            if isinstance(kind, str):
                group.create_dataset("type", data=np.bytes_(kind))
            elif kind is not None:
                group["type"] = kind
        assert np.array_equal(product(unit, "strange.h5:/V"), values), number
        assert "3 x 4" in run("info", "strange.h5:/V").out, number


def test_octave_reads_c():
    octave = shutil.which("octave-cli")
    if not octave:
        print("Octave is not here: it does not read C back")
        return
    c = product(write("a.h5", integers(5, 4, "f8")), write("b.h5", integers(4, 6, "f8")))
    script = "load('c.h5', 'C'); printf('%d ', size(C), C);"
    said = subprocess.run([octave, "--no-gui", "-q", "-f", "--eval", script], capture_output=True, text=True,
                          timeout=60).stdout.split()
    assert [int(x) for x in said] == [6, 5, *c.ravel().astype(int)], said


# ---- PyTables -------------------------------------------------------------------------------------------------------


def test_pytables():
    """Arrays, chunked and compressed ones, extendable ones; C is opened as an array."""
    if tables is None:
        print("PyTables is not here: its files are left out")
        return
    a, b = integers(60, 40), integers(40, 50)
    with tables.open_file("tables.h5", "w") as file:
        file.create_array("/", "plain", a)
        for library in ("zlib", "blosc", "bzip2", "blosc:zstd", "blosc:lz4"):
            if tables.which_lib_version(library.split(":")[0]) is None:
                continue
            file.create_carray("/", library.replace(":", "_"), obj=b, chunkshape=(16, 16),
                               filters=tables.Filters(complevel=5, complib=library, shuffle=True, fletcher32=False))
        grows = file.create_earray("/", "grows", tables.Float32Atom(), (0, 50), chunkshape=(7, 50))
        grows.append(b[:13])
        grows.append(b[13:])
        file.create_carray("/", "flags", obj=b > 0)
        file.create_table("/", "table", np.zeros(3, [("x", "f8"), ("y", "i4")]))
    names = [line.split()[0] for line in run("info", "tables.h5").out.splitlines() if line.startswith("/")]
    assert "/plain" in names and "/grows" in names, names
    for ranks, name in enumerate(name for name in names if name not in ("/plain", "/flags", "/table")):
        found = product("tables.h5:/plain", f"tables.h5:{name}", ranks=ranks % 3)
        assert np.array_equal(found, a @ b), name
    for name, says in (("flags", "bit fields"), ("table", "compound")):  # PyTables has bits for bool
        fails("multiply", "tables.h5:/plain", f"tables.h5:/{name}", "-o", "none.h5", code=1, says=says)
    with tables.open_file("c.h5") as file:
        assert np.array_equal(file.root.C.read(), a @ b)


main(globals())
