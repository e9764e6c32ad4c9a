"""Types of elements from outside: refused ones by name and with what to do, rounded ones with a warning that says how
many elements became infinite, once a run and in its record."""
import h5py

from lib import fails, integers, main, np, random, read, run, write

H = h5py.h5t


def float_type(size, fields, bias):
    t = H.IEEE_F64LE.copy()
    t.set_size(max(size, 8))
    t.set_precision(8 * max(size, 8))
    t.set_fields(*fields)
    t.set_ebias(bias)
    t.set_size(size)
    return t


def test_refused():
    """The other matrix of the file is multiplied."""
    types = {"E4M3": (1, (7, 3, 4, 0, 3), 7), "E5M2": (1, (7, 2, 5, 0, 2), 15),
             "binary128": (16, (127, 112, 15, 0, 112), 16383)}
    with h5py.File("odd.h5", "w") as file:
        for name, layout in types.items():
            h5py.h5d.create(file.id, name.encode(), float_type(*layout), h5py.h5s.create_simple((4, 4)))
        file["m"] = integers(4, 4)
    listed = run("info", "odd.h5")
    for name in types:
        line = [line for line in listed.out.splitlines() if line.startswith(f"/{name}  cannot be multiplied: ")]
        assert len(line) == 1 and f"({name}); convert it to f" in line[0], listed
        for ranks in (0, 2):
            fails("multiply", f"odd.h5:/{name}", "odd.h5:/m", "-o", "c.h5", code=1, says=f"({name})", ranks=ranks)
    run("multiply", "odd.h5", "odd.h5", "-o", "c.h5", "--quiet")
    assert np.array_equal(read("c.h5"), read("odd.h5", "m") @ read("odd.h5", "m"))


def x87(value, exponent=0):
    """The 80 bits of value times 2^exponent; value is a whole number."""
    if value == 0:
        return 0
    bits = abs(value).bit_length()
    return (0x8000 if value < 0 else 0) | 16382 + bits + exponent, abs(value) << 64 - bits


def make_x87(name, rows):
    raw = b""
    for value in rows.flat:
        head, mantissa = x87(*value) if value[0] else (0, 0)
        raw += mantissa.to_bytes(8, "little") + head.to_bytes(8, "little")
    t = H.IEEE_F64LE.copy()
    t.set_size(16)
    t.set_precision(128)
    t.set_fields(79, 64, 15, 0, 64)
    t.set_ebias(16383)
    t.set_norm(H.NORM_NONE)
    with h5py.File(name, "w") as file:
        d = h5py.h5d.create(file.id, b"L", t, h5py.h5s.create_simple(rows.shape))
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.frombuffer(raw, "u1").copy(), t)


def test_x87():
    values = np.empty((6, 5), object)
    a = integers(6, 5, "f8")
    for i in range(6):
        for j in range(5):
            values[i, j] = (int(a[i, j]), 0)
    make_x87("l.h5", values)
    b = write("b.h5", integers(5, 3, "f8"))
    expected = a @ read("b.h5")
    assert "80-bit floating point of x87 (read as f64)" in run("info", "l.h5").out
    for ranks in (0, 2):
        result = run("multiply", "l.h5", b, "-o", "c.h5", "--force", "--verify", ranks=ranks)
        assert np.array_equal(read("c.h5"), expected)
        assert result.err.count("warning") == 1 and "'l.h5:/L' holds 80-bit floating point of x87" in result.err, result
    with h5py.File("c.h5") as file:
        assert "80-bit" in file["C.run"].attrs["warnings"]
    values[2, 1], values[4, 4], values[5, 0] = (1, 5000), (-3, 2000), (7, 16300)
    make_x87("l.h5", values)
    for ranks in (0, 2):
        for options in ((), ("--panel", "2"), ("--compress", "gzip:1") if not ranks else ("--grid", "2x1x1")):
            result = run("multiply", "l.h5", b, "-o", "c.h5", "--force", *options, ranks=ranks)
            says = "3 of 30 elements of 'l.h5:/L' were finite and are beyond f64: they were read as Inf"
            assert result.err.count("warning") == 3 and says in result.err, result
            assert "3 rows of products hold NaN or Inf" in result.err, result
            with h5py.File("c.h5") as file:
                assert says in file["C.run"].attrs["warnings"]
            assert np.array_equal(np.isfinite(read("c.h5")).all(axis=1), [True, True, False, True, False, False])
    result = run("compare", "l.h5", "l.h5", "--quiet", ranks=2)
    assert result.err.count("warning") == 2 and "3 of 30 elements" in result.err, result


BF16 = (2, (15, 7, 8, 0, 7), 127)
STORAGE = [{}, {"chunks": (7, 5)}, {"chunks": (8, 4), "compression": "gzip", "shuffle": True}]


def bits_of(values):
    """bfloat16 codes, rounded to nearest even, of float32."""
    wide = np.ascontiguousarray(values, "f4").view("u4").astype("u8")
    return (wide + 0x7fff + (wide >> 16 & 1) >> 16).astype("u2")


def values_of(codes):
    return (codes.astype("u4") << 16).view("f4")


def write_bf16(name, codes, order="<", **how):
    """Codes as they stand; h5py writes them as u2, and the type in the file is bfloat16."""
    t = float_type(*BF16)
    t.set_order(h5py.h5t.ORDER_LE if order == "<" else h5py.h5t.ORDER_BE)
    with h5py.File(name, "w") as file:
        twin = file.create_dataset("twin", data=codes, **how)  # its properties are the ones that are wanted
        d = h5py.h5d.create(file.id, b"C", t, h5py.h5s.create_simple(codes.shape), twin.id.get_create_plist())
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, codes.astype(order + "u2"), t)
        del file["twin"]
    return name


def read_bf16(name):
    """Codes, after the file's type is seen to be bfloat16."""
    with h5py.File(name) as file:
        d = file["C"].id
        t = d.get_type()
        assert (t.get_size(), t.get_fields(), t.get_ebias()) == BF16, t
        codes = np.empty(d.shape, "u2")
        d.read(h5py.h5s.ALL, h5py.h5s.ALL, codes, t)
        return codes


def test_bf16_codes():
    """All codes in both byte orders, as HDF5's own library and ours read them, are the numbers that they stand for."""
    codes = np.arange(1 << 16, dtype="u2").reshape(256, 256)
    write("values.h5", values_of(codes))
    for order in "<>":
        for how in STORAGE:
            write_bf16("bf16.h5", codes, order, **how)
            named = "bf16" if order == "<" else "big-endian bf16"
            assert f"/C  256 x 256  {named}" in run("info", "bf16.h5").out
            result = run("compare", "bf16.h5", "values.h5", "--tolerance", "0")
            assert "warning" not in result.err, result
    codes.astype("<u2").tofile("codes.bin")
    run("compare", "codes.bin:bf16:256x256", "values.h5", "--tolerance", "0")


def test_bf16_products():
    """Against numpy in fp64: small whole numbers are exact, on every path of the data."""
    a, b = random.integers(-100, 100, (37, 29)), random.integers(-100, 100, (29, 23))
    write("b.h5", b.astype("f4"))
    for order in "<>":
        for how in STORAGE:
            write_bf16("a.h5", bits_of(a), order, **how)
            for more in ((), ("--io", "hdf5"), ("--panel", "4")):
                run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--verify", *more, ranks=2 if more else 0)
                assert read("c.h5").dtype == "f4" and np.array_equal(read("c.h5"), a @ b), (order, how, more)


def test_bf16_results():
    """C as bfloat16 is the fp32 sums, rounded once; read back it multiplies. numpy has no such type."""
    a, b = random.standard_normal((21, 17), "f4"), random.standard_normal((17, 19), "f4")
    write("a.h5", a), write("b.h5", b)
    run("multiply", "a.h5", "b.h5", "-o", "f32.h5", "--force")
    for more in ((), ("--compress", "gzip:1"), ("--chunk", "4x4")):
        run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--type", "bf16", "--force", "--verify", *more)
        assert np.array_equal(read_bf16("c.h5"), bits_of(read("f32.h5"))), more
    run("multiply", "a.h5", "b.h5", "-o", "c.bin:bf16", "--type", "bf16", "--force")
    assert np.array_equal(np.fromfile("c.bin", "<u2").reshape(21, 19), bits_of(read("f32.h5")))
    run("multiply", "c.h5", "c.bin:bf16:21x19", "--transpose-b", "-o", "d.h5", "--force", "--verify")
    run("generate", "-o", "g.h5", "--shape", "20x20", "--type", "bf16", "--distribution", "integer", "--force")
    assert np.array_equal(values_of(read_bf16("g.h5")), np.rint(values_of(read_bf16("g.h5"))))
    fails("multiply", "a.h5", "b.h5", "-o", "c.npy", "--type", "bf16", code=2, says="cannot hold bf16")
    large = write("large.h5", np.full((2, 2), 3e38, "f4"))
    result = run("multiply", large, write("two.h5", 2 * np.eye(2)), "-o", "o.h5", "--type", "bf16", "--force")
    assert "4 of 4 elements of C overflowed bf16 and are Inf: use --type f64" in result.err, result


def test_bool():
    """h5py's bool, numpy's, and bare bytes count as 0 and 1, on every path of the data."""
    a, b = random.integers(0, 2, (37, 29)).astype(bool), random.integers(-9, 9, (29, 23), "i2")
    write("b.h5", b)
    for how in STORAGE:
        write("a.h5", a, **how)
        assert "/C  37 x 29  bool" in run("info", "a.h5").out
        for more in ((), ("--io", "hdf5"), ("--panel", "4")):
            run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--verify", *more, ranks=2 if more else 0)
            assert read("c.h5").dtype == "f4" and np.array_equal(read("c.h5"), a.astype(int) @ b), (how, more)
    np.save("a.npy", a), np.save("f.npy", np.asfortranarray(a).T)
    (a * 200).astype("u1").tofile("a.bin")  # what is not 0 counts as 1
    for name in ("a.npy", "a.bin:bool:37x29"):
        run("multiply", name, "b.h5", "-o", "c.h5", "--force", "--verify")
        assert np.array_equal(read("c.h5"), a.astype(int) @ b), name
    # sums of ones are exact: as many as k
    run("multiply", "a.h5", "a.npy", "--transpose-b", "-o", "c.h5", "--force")
    assert np.array_equal(read("c.h5"), a.astype(int) @ a.T.astype(int))
    run("multiply", "a.npy", "b.h5", "-o", "c.h5", "--beta", "3", "--add", write("c0.h5", np.ones((37, 23), bool)),
        "--force", "--verify")
    assert np.array_equal(read("c.h5"), a.astype(int) @ b + 3)
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--type", "bool", code=2,
          says="use f16, bf16, f32, f64, c64 or c128")


def test_no_numbers():
    """Enums, bit fields and 16 bits of another kind are refused in one line that says what they are and what to do."""
    t = float_type(2, (15, 10, 5, 0, 10), 1 << 20)
    with h5py.File("odd.h5", "w") as file:
        file.create_dataset("enum", shape=(4, 4), dtype=h5py.enum_dtype({"RED": 0, "BLUE": 1}))
        h5py.h5d.create(file.id, b"bits", H.STD_B8LE.copy(), h5py.h5s.create_simple((4, 4)))
        h5py.h5d.create(file.id, b"half", t, h5py.h5s.create_simple((4, 4)))
    write("b.h5", np.eye(4))
    for name, says in (("enum", "an enum of BLUE, RED; convert it to integers, or to bool"), ("bits", "bit fields"),
                       ("half", "an exponent of 5 and a mantissa of 10 bits")):
        for ranks in (0, 2):
            fails("multiply", f"odd.h5:/{name}", "b.h5", "-o", "no.h5", code=1, says=says, ranks=ranks)


main(globals())
