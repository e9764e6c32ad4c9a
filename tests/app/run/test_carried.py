"""What describes A's rows and B's columns goes with C: dimension scales, labels, attributes, MATLAB's class; through
h5py, and through xarray with both of its readers where they are installed."""
import os

import h5py
import numpy as np
from lib import fails, integers, leftovers, main, run, write

REF = h5py.special_dtype(ref=h5py.Reference)


def has_scales():
    """Whether this build attaches scales at all."""
    scaled("probe.h5", "A", integers(2, 2), {0: {"x": [1, 2]}})
    result = run("multiply", "probe.h5:/A", "probe.h5:/A", "-o", "probe_c.h5", "--device", "cpu")
    if "lacks the library hdf5_hl" in result.err:
        print("skipped: this build lacks hdf5_hl")
        raise SystemExit(77)


def scaled(file, name, data, scales, labels=("", ""), attributes=None, group="", mode="a"):
    """A dataset with scales {dimension: {name: values}}; values that are a Dataset are attached as they are."""
    with h5py.File(file, mode, libver="latest") as f:  # attributes may be large
        made = f.create_dataset(name, data=data)
        for dimension, named in scales.items():
            for scale, values in named.items():
                path = f"{group}/{scale}"
                if path not in f:
                    f.create_dataset(path, data=values)
                    f[path].make_scale(scale)
                made.dims[dimension].attach_scale(f[path])
        for dimension, label in enumerate(labels):
            if label:
                made.dims[dimension].label = label
        for key, value in (attributes or {}).items():
            made.attrs[key] = value
    return f"{file}:/{name}"


def multiply(a, b, *options, out="c.h5", **more):
    """Returns the warnings."""
    result = run("multiply", a, b, "-o", out, "--device", "cpu", "--quiet", *options, **more)
    assert not leftovers(), leftovers()
    return [line for line in result.err.splitlines() if line.startswith("tessera: warning:")]


def dims(file, name="C"):
    """[{name of a scale: values}] of each dimension."""
    with h5py.File(file) as f:
        return [{s.name: s[()].tolist() for s in d.values()} for d in f[name].dims]


def fresh(*names):
    for name in names or ("a.h5", "b.h5", "c.h5"):
        if os.path.exists(name):
            os.remove(name)


# ---- scales --------------------------------------------------------------------------------------


def inputs(**more):
    fresh()
    a, b = integers(6, 4, "f8"), integers(4, 3, "f8")
    scaled("a.h5", "A", a, {0: {"time": [0., 1, 2, 3, 4, 5]}, 1: {"k": [7, 8, 9, 10]}}, ("t", "inner"), **more)
    scaled("b.h5", "B", b, {0: {"k": [7, 8, 9, 10]}, 1: {"station": np.array([b"ab", b"cd", b"ef"])}}, ("", "place"))
    return a, b


def test_scales():
    a, b = inputs()
    with h5py.File("a.h5", "a") as f:
        f["time"].attrs["units"] = "days since 2000-01-01"
        f["time"].attrs["_FillValue"] = np.array([-1.0])
    for options, ranks in (([], 0), ([], 2), (["--chunk", "2x2", "--compress", "gzip"], 2), (["--io", "hdf5"], 0)):
        fresh("c.h5")
        assert multiply("a.h5", "b.h5", *options, ranks=ranks) == []
        assert dims("c.h5") == [{"/time": [0, 1, 2, 3, 4, 5]}, {"/station": [b"ab", b"cd", b"ef"]}], dims("c.h5")
        with h5py.File("c.h5") as f:
            assert np.array_equal(f["C"][:], a @ b)
            assert [d.label for d in f["C"].dims] == ["t", "place"]
            assert f["time"].attrs["units"] == "days since 2000-01-01" and f["time"].dtype == "f8"
            assert f["time"].attrs["_FillValue"].tolist() == [-1.0]
            assert "time" in f["C"].dims[0].keys() and f["station"].dtype == "S2"
            assert "C.run" in f and "tessera_incomplete" not in f["C"].attrs


def test_the_right_dimension():
    """Transposes, slices, an addend, columns first, and matrices of a dataset of three dimensions."""
    a, b = inputs()
    time, place = [0, 1, 2, 3, 4, 5], [b"ab", b"cd", b"ef"]
    write("at.h5", a.T), write("c0.h5", integers(6, 3, "f8"))
    cases = [
        ("a.h5:/A[1:4,:]", "b.h5:/B[:,1:]", [], [{"/time": time[1:4]}, {"/station": place[1:]}]),
        ("b.h5", "a.h5", ["--transpose-a", "--transpose-b"], [{"/station": place}, {"/time": time}]),
        ("a.h5", "at.h5", ["--transpose-a", "--transpose-b"], [{"/k": [7, 8, 9, 10]}, {}]),
        ("a.h5", "b.h5", ["--add", "c0.h5"], [{"/time": time}, {"/station": place}]),
        # As one sees them who counts column by column: C's dataset is the transpose, B(4x3)ᵀ is 3x4.
        ("b.h5", "a.h5", ["--order", "col"], [{"/time": time}, {"/station": place}]),
        ("b.h5", "a.h5[:,1:4]", ["--order", "col"], [{"/time": time[1:4]}, {"/station": place}]),
    ]
    for first, second, options, want in cases:
        fresh("c.h5")
        assert multiply(first, second, *options) == [], options
        assert dims("c.h5") == want, f"{first} {second} {options}: {dims('c.h5')}"
    with h5py.File("cube.h5", "w") as f:
        cube = f.create_dataset("X", data=integers(12, 4, "f8").reshape(2, 6, 4))
        for d, (name, size) in enumerate((("level", 2), ("row", 6), ("col", 4))):
            f[name] = np.arange(size)
            f[name].make_scale(name)
            cube.dims[d].attach_scale(f[name])
    fresh("c.h5")
    assert multiply("cube.h5:/X[1,2:4,:]", "cube.h5:/X[0,:,:]", "--transpose-b") == []
    assert dims("c.h5") == [{"/row": [2, 3]}, {"/row_2": [0, 1, 2, 3, 4, 5]}], dims("c.h5")


def test_vectors_and_stacks():
    """C lacks the dimension of a vector; in front of a matrix's own there may be others."""
    inputs()
    time, place = [0, 1, 2, 3, 4, 5], [b"ab", b"cd", b"ef"]
    with h5py.File("v.h5", "w") as f:
        f["v"] = integers(1, 4, "f8")[0]
        f["k"] = [7, 8, 9, 10]
        f["k"].make_scale("k")
        f["v"].dims[0].attach_scale(f["k"])
        f["v"].attrs["units"] = "m"
        f["stack"] = integers(8, 3, "f8").reshape(2, 4, 3)
        f["level"], f["wide"] = [5, 6], [1, 2, 3]
        f["tall"] = integers(15, 4, "f8").reshape(3, 5, 4)
        f["high"] = [1, 2, 3, 4, 5]
        f["high"].make_scale("high")
        f["tall"].dims[1].attach_scale(f["high"])
        for d, name in ((0, "level"), (2, "wide")):
            f[name].make_scale(name)
            f["stack"].dims[d].attach_scale(f[name])
    cases = [("a.h5", "v.h5:/v", [{"/time": time}]), ("v.h5:/v", "b.h5", [{"/station": place}]),
             ("v.h5:/v", "v.h5:/v", []), ("a.h5:/A[2,:]", "b.h5", [{"/station": place}]),
             ("a.h5", "v.h5:/stack", [{"/level": [5, 6]}, {"/time": time}, {"/wide": [1, 2, 3]}]),
             ("v.h5:/tall", "b.h5", [{}, {"/high": [1, 2, 3, 4, 5]}, {"/station": place}]),  # made as one product
             ("v.h5:/tall[1:,:,:]", "b.h5", [{}, {"/high": [1, 2, 3, 4, 5]}, {"/station": place}]),
             ("v.h5:/tall[:,1:3,:]", "b.h5", [{}, {"/high": [2, 3]}, {"/station": place}]),
             ("a.h5:/A[1:3,:]", "v.h5:/stack[1,:,:]", [{"/time": time[1:3]}, {"/wide": [1, 2, 3]}])]
    for first, second, want in cases:
        fresh("c.h5")
        assert multiply(first, second, "--attributes") == []
        assert dims("c.h5") == want, f"{first} {second}: {dims('c.h5')}"
        with h5py.File("c.h5") as f:
            assert ("units" in f["C"].attrs) == (first == "v.h5:/v"), first
        if len(want) != 1:
            continue
        assert multiply(first, second, "--force") == [] and dims("c.h5") == want  # it replaces its own


def test_types():
    """Every kind of coordinate comes along, in this machine's byte order."""
    n = 3
    kinds = {"i1": np.arange(n, dtype="i1"), "u2": np.arange(n, dtype=">u2"), "i8": np.arange(n, dtype=">i8"),
             "f2": np.arange(n, dtype="f2"), "f4": np.arange(n, dtype=">f4"), "f8": np.arange(n) / 3,
             "bool": np.array([True, False, True]), "text": np.array(["a", "bé", ""], dtype=object)}
    fresh()
    with h5py.File("a.h5", "w") as f:
        made = f.create_dataset("A", data=integers(n, n))
        for name, values in kinds.items():
            f.create_dataset(name, data=values, dtype=h5py.string_dtype() if name == "text" else None,
                             **({"chunks": (2,), "compression": "gzip"} if name in ("i8", "text") else {}))
            f[name].make_scale(name)
            made.dims[0].attach_scale(f[name])
    assert multiply("a.h5:/A", "a.h5:/A") == []
    found = dims("c.h5")[0]
    assert sorted(found) == sorted(f"/{name}" for name in kinds), found
    with h5py.File("c.h5") as f:
        for name, values in kinds.items():
            want = [v.encode() for v in values] if name == "text" else values.tolist()
            assert f[name][:].tolist() == want, name
        assert f["bool"].dtype == bool and f["u2"].dtype == "<u2" and f["f2"].dtype == "f4"


def test_same_names():
    """Rows and columns of one name: one scale where they are equal, else NAME and NAME_2."""
    fresh()
    a = scaled("a.h5", "A", integers(3, 3), {0: {"x": [1, 2, 3]}})
    b = scaled("b.h5", "B", integers(3, 3), {1: {"x": [1, 2, 3]}})
    d = scaled("d.h5", "D", integers(3, 3), {1: {"x": [1, 2, 4]}}, mode="w")
    assert multiply(a, b) == [] and dims("c.h5") == [{"/x": [1, 2, 3]}, {"/x": [1, 2, 3]}], dims("c.h5")
    fresh("c.h5")
    assert multiply(a, d) == [] and dims("c.h5") == [{"/x": [1, 2, 3]}, {"/x_2": [1, 2, 4]}], dims("c.h5")
    with h5py.File("c.h5") as f:
        assert list(f["C"].dims[1].keys()) == ["x_2"]  # its name says so, too
    with h5py.File("d.h5", "a") as f:
        f["x"][:] = [1, 2, 3]
        f["x"].attrs["units"] = "m"  # attributes count
    fresh("c.h5")
    assert multiply(a, d) == [] and list(dims("c.h5")[1]) == ["/x_2"], dims("c.h5")
    fresh("c.h5")  # the output's own name, and its record's, are taken
    e = scaled("e.h5", "E", integers(3, 3), {0: {"C": [1, 2, 3]}, 1: {"C.run": [4, 5, 6]}}, mode="w")
    assert multiply(e, e) == [] and dims("c.h5") == [{"/C_2": [1, 2, 3]}, {"/C.run_2": [4, 5, 6]}], dims("c.h5")
    with h5py.File("c.h5") as f:
        assert isinstance(f["C.run"], h5py.Group)


# ---- files that exist ----------------------------------------------------------------------------


def test_existing_file():
    """What has the name and is equal is used; what differs stays as it is, and the new scale gets another name."""
    a = scaled("a.h5", "A", integers(3, 3), {0: {"x": [1, 2, 3]}, 1: {"y": [4, 5, 6]}}, mode="w")
    with h5py.File("out.h5", "w") as f:
        f["g/x"] = [1, 2, 3]
        f["g/x"].make_scale("x")
        f["g/y"] = [9, 9]
        f["g/other"] = integers(3, 3)
        f["g/other"].dims[0].attach_scale(f["g/x"])
        f["x"] = [0]
    assert multiply(a, a, out="out.h5:/g/C") == []
    assert dims("out.h5", "g/C") == [{"/g/x": [1, 2, 3]}, {"/g/y_2": [4, 5, 6]}], dims("out.h5", "g/C")
    assert dims("out.h5", "g/other")[0] == {"/g/x": [1, 2, 3]}
    with h5py.File("out.h5") as f:
        assert f["g/y"][:].tolist() == [9, 9] and f["x"][:].tolist() == [0] and sorted(f["g"]) == \
            ["C", "C.run", "other", "x", "y", "y_2"], list(f["g"])
    # a dataset that is equal and no scale is not made one; a link is not followed
    with h5py.File("out2.h5", "w") as f:
        f["x"] = [1, 2, 3]
        f["y"] = h5py.ExternalLink("a.h5", "/y")
    assert multiply(a, a, out="out2.h5:/C") == []
    assert dims("out2.h5") == [{"/x_2": [1, 2, 3]}, {"/y_2": [4, 5, 6]}], dims("out2.h5")
    with h5py.File("out2.h5") as f:
        assert "CLASS" not in f["x"].attrs
    # A's own file
    assert multiply(a, a, out="a.h5:/C") == multiply("a.h5:/A[1:,:]", a, out="a.h5:/D") == []
    assert dims("a.h5") == [{"/x": [1, 2, 3]}, {"/y": [4, 5, 6]}], dims("a.h5")
    assert dims("a.h5", "D") == [{"/x_2": [2, 3]}, {"/y": [4, 5, 6]}], dims("a.h5", "D")


def test_replaced():
    """Scales that were made for C go with it, unless something else uses them; a file of C alone stays one."""
    a = scaled("a.h5", "A", integers(3, 3), {0: {"x": [1, 2, 3]}, 1: {"y": [4, 5, 6]}}, mode="w")
    b = scaled("b.h5", "B", integers(3, 3), {0: {"x": [7, 8, 9]}}, mode="w")
    fresh("c.h5")
    multiply(a, a)
    size = os.path.getsize("c.h5")
    for _ in range(2):
        assert multiply(b, a, "--force") == []
        assert dims("c.h5") == [{"/x": [7, 8, 9]}, {"/y": [4, 5, 6]}], dims("c.h5")
        with h5py.File("c.h5") as f:
            assert sorted(f) == ["C", "C.run", "x", "y"], list(f)
    assert os.path.getsize("c.h5") <= size + 4096, (size, os.path.getsize("c.h5"))
    with h5py.File("c.h5", "a") as f:  # now another dataset uses x, and y is C's alone
        f["D"] = integers(3, 2)
        f["D"].dims[0].attach_scale(f["x"])
    assert multiply(a, b, "--force", out="c.h5:/C") == []
    assert dims("c.h5") == [{"/x_2": [1, 2, 3]}, {}], dims("c.h5")
    assert dims("c.h5", "D")[0] == {"/x": [7, 8, 9]}
    with h5py.File("c.h5") as f:
        assert sorted(f) == ["C", "C.run", "D", "x", "x_2"], list(f)
        assert len(f["x"].attrs["REFERENCE_LIST"]) == 1, f["x"].attrs["REFERENCE_LIST"]
    # a person's own scale is no part of C
    with h5py.File("c.h5", "w") as f:
        f["C"] = integers(3, 3)
        f["mine"] = [1, 2, 3]
        f["mine"].make_scale("mine")
        f["C"].dims[0].attach_scale(f["mine"])
    assert multiply(a, a, "--force", out="c.h5:/C") == []
    with h5py.File("c.h5") as f:
        assert f["mine"][:].tolist() == [1, 2, 3] and "REFERENCE_LIST" not in f["mine"].attrs
        assert [list(d.keys()) for d in f["C"].dims] == [["x"], ["y"]]


def test_output_over_a_scale():
    """What names a scale would name the product."""
    a = scaled("a.h5", "A", integers(3, 3), {0: {"x": [1, 2, 3]}}, mode="w")
    for ranks in (0, 2):
        fails("multiply", a, a, "-o", "a.h5:/x", "--force", code=1, ranks=ranks,
              says="'a.h5:/x' is a scale of other datasets' dimensions")
    with h5py.File("a.h5", "a") as f:
        assert f["x"][:].tolist() == [1, 2, 3] and f["A"].dims[0][0] == f["x"] and not leftovers()
        f["A"].dims[0].detach_scale(f["x"])
    run("multiply", a, a, "-o", "a.h5:/x", "--force")  # of nothing


def test_dimensions_of_a_stack():
    """Of A, or of B where A is broadcast or has none, each by itself; sliced, in columns' order, of vectors."""
    fresh()
    run_, level, member = [7, 8, 9, 10, 11], [100, 200], [1, 2, 3]
    scaled("a.h5", "A", integers(5 * 2 * 6, 4, "f8").reshape(5, 2, 6, 4), {0: {"run": run_}, 1: {"level": level}},
           ("times", "", "", "k"))
    scaled("a.h5", "one", integers(6, 4, "f8").reshape(1, 6, 4), {0: {"first": [0]}})
    scaled("b.h5", "B", integers(2 * 4, 3, "f8").reshape(2, 4, 3), {0: {"layer": [3, 4]}, 2: {"place": [5, 6, 7]}})
    scaled("b.h5", "members", integers(3 * 4, 3, "f8").reshape(3, 4, 3), {0: {"member": member}})
    scaled("b.h5", "bare", integers(5 * 4, 3, "f8").reshape(5, 1, 4, 3), {1: {"unused": [1]}})
    runs, levels, place = {"/run": run_}, {"/level": level}, {"/place": [5, 6, 7]}
    cases = [("a.h5:/A", "b.h5:/B", [], [runs, levels, {}, place]),
             ("a.h5:/A[1:3,:,2:4,:]", "b.h5:/B", [], [{"/run": run_[1:3]}, levels, {}, place]),
             ("a.h5:/A[:,1,:,:]", "b.h5:/B[1,:,:]", [], [runs, {}, place]),
             ("a.h5:/A[:,1:2,:,:]", "b.h5:/members", [], [runs, {"/member": member}, {}, {}]),
             ("a.h5:/one", "b.h5:/members", [], [{"/member": member}, {}, {}]),
             ("a.h5:/one", "b.h5:/bare", [], [{}, {"/first": [0]}, {}, {}]),
             ("b.h5:/bare", "a.h5:/A", ["--transpose-a", "--transpose-b"], [runs, levels, {}, {}]),
             ("b.h5:/B", "a.h5:/A", ["--order", "col"], [runs, {"/layer": [3, 4]}, {}, place])]
    for a, b, options, want in cases:
        for ranks in (0, 2):
            fresh("c.h5")
            assert multiply(a, b, *options, ranks=ranks) == [], (a, b)
            assert dims("c.h5") == want, f"{a} {b} {options}: {dims('c.h5')}"
            with h5py.File("c.h5") as f:
                assert f["C"].dims[0].label == ("times" if want[0].keys() == {"/run"} else ""), (a, b)
    scaled("a.h5", "short", integers(5 * 6, 4, "f8").reshape(5, 6, 4), {0: {"few": [1, 2]}})
    fresh("c.h5")  # what is wrong with one is said once, of its file
    warnings = multiply("a.h5:/short", "b.h5:/B[0,:,:]", "--attributes")
    assert len(warnings) == 1 and "'a.h5:/short': the values of its scale '/few' are left out" in warnings[0], warnings


# ---- what cannot be carried ----------------------------------------------------------------------


def check_left_out(says, names, count=1):
    """The product is right, so many warnings say why, and C's rows have scales of these names."""
    fresh("c.h5")
    warnings = multiply("a.h5:/A", "b.h5")
    assert len(warnings) == count and all(says in w for w in warnings), warnings
    with h5py.File("a.h5") as a, h5py.File("b.h5") as b, h5py.File("c.h5") as c:
        assert np.array_equal(c["C"][:], a["A"][:] @ b["C"][:])
        found = [s.name for s in c["C"].dims[0].values()]
        assert found == names, found


def with_list(references, scale=None):
    """A whose rows name these as scales; `scale` makes more in the file and returns references."""
    fresh("a.h5")
    with h5py.File("a.h5", "w") as f:
        f["A"] = integers(4, 3)
        rows = scale(f) if scale else references
        listed = np.empty(2, dtype=object)
        listed[0], listed[1] = np.array(rows, dtype=REF), np.array([], dtype=REF)
        f["A"].attrs.create("DIMENSION_LIST", listed, dtype=h5py.special_dtype(vlen=REF))


def make(f, name, data, **how):
    f.create_dataset(name, data=data, **how)
    f[name].make_scale(name)
    return [f[name].ref]


def test_left_out():
    fresh()
    write("b.h5", integers(3, 2))
    nowhere = "leads to nothing"
    with_list([h5py.Reference()])
    check_left_out(nowhere, [])

    def deleted(f):
        reference = make(f, "gone", [1, 2, 3, 4])
        del f["gone"]
        return reference

    with_list(None, deleted)
    check_left_out(nowhere, [])
    with_list(None, lambda f: make(f, "short", [1, 2, 3]))
    check_left_out("its length is not the dimension's", ["/short"])
    with_list(None, lambda f: make(f, "wide", np.zeros((4, 2))))
    check_left_out("'/wide' are left out: it has not one dimension", ["/wide"])
    with_list(None, lambda f: make(f, "pairs", np.zeros(4, dtype=[("a", "f4"), ("b", "i4")])))
    check_left_out("its type is neither numbers nor text", ["/pairs"])
    with h5py.File("c.h5") as f:  # a name without coordinates, as netCDF has it
        title = f["pairs"].attrs["NAME"]
        assert title == b"This is a netCDF dimension but not a netCDF variable.         4", title
    with_list(None, lambda f: [f["A"].ref])  # A is its own scale
    check_left_out("is none and is left out", [])

    def cycle(f):
        reference = make(f, "x", [1, 2, 3, 4])
        f["x"].attrs.create("DIMENSION_LIST", np.array([np.array(reference, dtype=REF), None], dtype=object)[:1],
                            dtype=h5py.special_dtype(vlen=REF))
        return reference * 3 + [f.ref]

    with_list(None, cycle)
    check_left_out("is none and is left out", ["/x"])
    with_list(None, lambda f: [make(f, f"s{i}", [i] * 4)[0] for i in range(9)])
    check_left_out("those beyond 8 are left out", [f"/s{i}" for i in range(8)])


def test_left_out_elsewhere():
    """Data that is not in the file is not looked for; attributes that are not what their names say."""
    fresh()
    write("b.h5", integers(3, 2))

    def virtual(f):
        layout = h5py.VirtualLayout(shape=(4,), dtype="f8")
        layout[:] = h5py.VirtualSource("b.h5", "C", shape=(3, 2))[0:2, :]
        f.create_virtual_dataset("v", layout)
        f["v"].make_scale("v")
        return [f["v"].ref]

    with_list(None, virtual)
    check_left_out("it is a virtual dataset", ["/v"])
    with open("elsewhere.bin", "wb") as file:
        file.write(bytes(32))
    with_list(None, lambda f: make(f, "e", None, shape=(4,), dtype="f8", external=[("elsewhere.bin", 0, 32)]))
    check_left_out("its data is in other files", ["/e"])
    with h5py.File("a.h5", "w") as f:
        f["A"] = integers(4, 3)
        f["A"].attrs["DIMENSION_LIST"] = [1, 2]
        f["A"].attrs["DIMENSION_LABELS"] = [1, 2, 3]
        f["A"].attrs["REFERENCE_LIST"] = "none"
    check_left_out("DIMENSION_LIST is not as HDF5 writes it", [])
    with_list(None, lambda f: make(f, "packed", np.arange(4.), chunks=(4,), compression="gzip"))
    with h5py.File("a.h5") as f:
        at = f["packed"].id.get_chunk_info(0)
    with open("a.h5", "r+b") as file:
        file.seek(at.byte_offset)
        file.write(b"\xff" * at.size)
    check_left_out("'/packed' are left out: it cannot be read", ["/packed"])
    with h5py.File("a.h5", "w") as f:
        f["A"] = integers(4, 3)
        f.create_dataset("far", data=[b"x" * (20 << 20)] * 4)
        f["far"].make_scale("far")
        f["A"].dims[0].attach_scale(f["far"])
    check_left_out("it is too large", ["/far"])


def test_damaged():
    """Whatever byte of the scales' attributes is wrong: a product or one line, and never a crash."""
    fresh()
    write("b.h5", integers(3, 2))
    with_list(None, lambda f: make(f, "x", [1, 2, 3, 4]))
    good = open("a.h5", "rb").read()
    marks = [at for word in (b"DIMENSION_LIST", b"DIMENSION_SCALE", b"GCOL") for at in (good.find(word),) if at > 0]
    assert len(marks) == 3, marks
    for at in [mark + step for mark in marks for step in range(-16, 80, 5)]:
        with open("a.h5", "wb") as file:
            file.write(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1:])
        fresh("c.h5")
        result = run_any("multiply", "a.h5:/A", "b.h5", "-o", "c.h5", "--device", "cpu", "--quiet")
        assert result.code in (0, 1), result
        assert (result.code == 0) == os.path.exists("c.h5"), result
        assert not leftovers(), leftovers()


def run_any(*args):
    """As run, whether it fails or not."""
    try:
        return run(*args)
    except AssertionError:
        return run(*args, code=1)


# ---- attributes ----------------------------------------------------------------------------------


def test_attributes():
    a, b = inputs(attributes={
        "units": "K", "count": np.int16(3), "flag": True, "ratio": np.array([[1.5, 2], [3, 4]]),
        "empty": h5py.Empty("f4"),
        "names": np.array(["a", "bc"], dtype=object), "fixed": np.array([b"ab", b"c"]), "big": np.zeros(9000),
        "pair": np.zeros(1, dtype=[("a", "f4"), ("b", "i4")]), "scale_factor": 0.5, "_FillValue": 0.0,
        "MATLAB_class": np.bytes_("double"), "_Netcdf4Dimid": 0, "tessera_incomplete_not": 1, "history": "long ago",
        "software": "other"})
    with h5py.File("a.h5", "a") as f:
        f["A"].attrs["link"] = f["time"].ref
    warnings = multiply("a.h5", "b.h5")
    assert len(warnings) == 1 and "is packed (scale_factor)" in warnings[0], warnings
    with h5py.File("c.h5") as f:
        assert set(f["C"].attrs) == {"history", "software", "version", "DIMENSION_LIST", "DIMENSION_LABELS"}, \
            list(f["C"].attrs)
    for options, ranks in (("--attributes",), 0), (("--attributes", "--compress", "gzip"), 2):
        fresh("c.h5")
        warnings = multiply("a.h5", "b.h5", *options, ranks=ranks)
        assert len(warnings) == 3 and "is packed" in warnings[0] and \
            "'big' is left out: it is too large" in warnings[1] and \
            "'pair' is left out: its type is neither numbers nor text" in warnings[2], warnings
        with h5py.File("c.h5") as f:
            at = f["C"].attrs
            assert set(at) == {"history", "software", "version", "DIMENSION_LIST", "DIMENSION_LABELS", "units", "count",
                               "flag", "ratio", "empty", "names", "fixed"}, list(at)
            assert at["units"] == "K" and at["count"] == 3 and at["flag"] and at["software"] == "tessera"
            assert at["ratio"].tolist() == [[1.5, 2], [3, 4]] and isinstance(at["empty"], h5py.Empty)
            assert at["names"].tolist() == ["a", "bc"] and at["fixed"].tolist() == [b"ab", b"c"]
            assert "multiply" in at["history"] and "long ago" not in at["history"]
            assert at["count"].dtype == "i2" and at["flag"].dtype == bool
    # they are A's as it is named, whichever way round the file has it
    fresh("c.h5")
    multiply("b.h5", "a.h5", "--attributes", "--order", "col")
    with h5py.File("c.h5") as f:
        assert "units" not in f["C"].attrs
    fresh("c.h5")
    multiply("a.h5", "b.h5", "--attributes", "--order", "col", "--transpose-a", "--transpose-b")
    with h5py.File("c.h5") as f:
        assert f["C"].attrs["units"] == "K"


def test_attributes_elsewhere():
    fresh()
    write("b.h5", integers(3, 3))
    np.save("a.npy", integers(3, 3))
    assert multiply("a.npy", "b.h5", "--attributes") == []
    fails("multiply", "b.h5", "b.h5", "-o", "c.npy", "--attributes", code=2, says="c.npy' has no place for attributes")
    assert not os.path.exists("c.npy")
    a = scaled("a.h5", "A", integers(3, 3), {0: {"x": [1, 2, 3]}})
    assert multiply(a, "b.h5", out="c.npy") == [] and os.path.exists("c.npy")


# ---- other programs ------------------------------------------------------------------------------


def test_matlab():
    fresh()
    for name in ("a.h5", "b.h5"):
        write(name, integers(3, 3, "f8"))
        with h5py.File(name, "a") as f:
            f["C"].attrs["MATLAB_class"] = np.bytes_("int32" if name == "b.h5" else "double")
    write("plain.h5", integers(3, 3, "f8"))
    for b, options, want in (("b.h5", [], b"double"), ("b.h5", ["--type", "f32", "--order", "col"], b"single"),
                             ("b.h5", ["--type", "f16"], None), ("plain.h5", [], None)):
        for out in ("c.h5", "c.mat"):
            fresh(out)
            assert multiply("a.h5", b, *options, ranks=2 if want == b"single" else 0, out=out) == []
            with h5py.File(out) as f, h5py.File("a.h5") as fa, h5py.File(b) as fb:
                assert f["C"].attrs.get("MATLAB_class") == want, (b, options, dict(f["C"].attrs))
                assert f.userblock_size == (512 if want and out == "c.mat" else 0), (out, f.userblock_size)
                x, y = fa["C"][:], fb["C"][:]
                assert np.array_equal(f["C"][:], y @ x if "col" in options else x @ y), (out, options)
                if want:
                    kind = f["C"].attrs.get_id("MATLAB_class").get_type()
                    assert not kind.is_variable_str() and kind.get_size() == 6
            head = open(out, "rb").read(128)
            assert not (want and out == "c.mat") or (
                head[:19] == b"MATLAB 7.3 MAT-file" and head[116:] == b"\0" * 9 + b"\2IM"), head
    assert multiply("a.h5", "b.h5", "--force", out="c.mat") == []  # one that is there is no obstacle


def test_xarray():
    """C opens with A's row and B's column coordinates."""
    try:
        import h5netcdf  # noqa: F401
        import netCDF4  # noqa: F401
        import xarray
    except ImportError as missing:
        print(f"left out: {missing}: install python3-xarray python3-netcdf4 python3-h5netcdf")
        return
    a = xarray.Dataset({"A": (("time", "y"), integers(4, 3, "f8"))},
                       coords={"time": ("time", np.arange(4), {"units": "days since 2000-01-01"}),
                               "y": ("y", [1.5, 2.5, 3.5], {"units": "m"})})
    a["A"].attrs["units"] = "K"
    b = xarray.Dataset({"B": (("y", "name"), integers(3, 2, "f8"))},
                       coords={"y": [1.5, 2.5, 3.5], "name": ["left", "right"]})
    bare = xarray.Dataset({"B": (("y", "bare"), integers(3, 5, "f8"))})
    stack = xarray.Dataset({"S": (("ensemble", "time", "y"), integers(12, 3, "f8").reshape(3, 4, 3))},
                           coords={"ensemble": ("ensemble", [3, 1, 2], {"long_name": "member"}), "time": a["time"],
                                   "y": [1.5, 2.5, 3.5]})
    for engine in ("netcdf4", "h5netcdf"):
        stack.to_netcdf("s.nc", engine=engine)
        a.to_netcdf("a.nc", engine=engine), b.to_netcdf("b.nc", engine=engine), bare.to_netcdf("n.nc", engine=engine)
        product = ["--device", "cpu", "--quiet", "--force"]
        run("multiply", "a.nc:/A", "b.nc:/B", "-o", "c.h5:/g/C", "--attributes", *product)
        run("multiply", "s.nc:/S", "b.nc:/B", "-o", "s.h5", *product)
        run("multiply", "a.nc:/A[1:3,:]", "n.nc:/B", "-o", "n.h5", *product)
        run("multiply", "a.nc:/A", "a.nc:/A", "--transpose-a", "-o", "y.h5", *product)
        for reader in ("netcdf4", "h5netcdf"):
            with xarray.open_dataset("c.h5", engine=reader, group="g") as c:
                assert c["C"].dims == ("time", "name") and c["C"].attrs["units"] == "K", c
                assert str(c["time"].values[2])[:10] == "2000-01-03" and c["name"].values.tolist() == ["left", "right"]
                got = c["C"].sel(name="right").values
                assert np.array_equal(got, a["A"].values @ b["B"].values[:, 1])
            with xarray.open_dataset("n.h5", engine=reader) as c:
                assert dict(c.sizes) == {"time": 2, "bare": 5} and list(c.coords) == ["time"], c
                assert str(c["time"].values[0])[:10] == "2000-01-02"
            with xarray.open_dataset("s.h5", engine=reader) as c:  # a stack
                assert c["C"].dims == ("ensemble", "time", "name") and c["ensemble"].values.tolist() == [3, 1, 2], c
                assert c["ensemble"].attrs["long_name"] == "member"
                got = c["C"].sel(ensemble=1, name="left").values
                assert np.array_equal(got, stack["S"].values[1] @ b["B"].values[:, 0])
            with xarray.open_dataset("y.h5", engine=reader) as c:  # one dimension twice
                assert c["C"].dims == ("y", "y") and c["y"].values.tolist() == [1.5, 2.5, 3.5], c
                assert c["y"].attrs["units"] == "m"


has_scales()
main(globals())
