"""Complex matrices from every kind of storage, into every kind of output; what is refused leaves nothing behind.
test_matmul.py has random products of them."""
import os

import h5py

from lib import fails, leftovers, main, np, run, write

random = np.random.default_rng(7)


def numbers(shape, dtype):
    return (random.integers(-4, 5, shape) + 1j * random.integers(-4, 5, shape)).astype(dtype)


A, B = numbers((301, 203), ">c16"), numbers((203, 97), ">c8")
C = A.astype("c16") @ B.astype("c16")


def product(a, b, *options, out="c.h5"):
    run("multiply", a, b, "-o", out, "--force", *options)
    with h5py.File(out) as file:
        data = file["C"][()]
    return data[data.dtype.names[0]] + 1j * data[data.dtype.names[1]] if data.dtype.names else data


def make():
    padded = np.zeros(A.shape, np.dtype({"names": ["r", "i"], "formats": ["<f8"] * 2, "offsets": [0, 12],
                                         "itemsize": 24}))
    padded["r"], padded["i"] = A.real, A.imag
    with h5py.File("a.h5", "w") as file:
        file.create_dataset("packed", data=A.view([("real", ">f8"), ("imag", ">f8")]), chunks=(50, 60),
                            compression="gzip", shuffle=True)
        file.create_dataset("large", data=A, chunks=(300, 200), compression="lzf")
        file["padded"] = padded
        file.create_dataset("apart", data=padded, chunks=(50, 60), compression="gzip")
    write("b.h5", B)


def test_storages():
    make()
    for name, options in (("packed", []), ("packed", ["--io", "hdf5"]), ("padded", []), ("apart", []), ("large", []),
                          ("large", ["--host-memory", 2600000, "--memory", 2600000]),  # read through HDF5
                          ("packed", ["--compress", "gzip", "--shuffle", "--verify"])):
        assert np.array_equal(product(f"a.h5:/{name}", "b.h5", *options), C), (name, options)
    layout = h5py.VirtualLayout(A.shape, ">c16")
    layout[...] = h5py.VirtualSource("a.h5", "large", A.shape)
    with h5py.File("v.h5", "w") as file:
        file.create_virtual_dataset("v", layout, fillvalue=1 + 2j)
    assert np.array_equal(product("v.h5", "b.h5", "--allow-external"), C)
    A.astype("<c8").tofile("a.bin")
    run("multiply", "a.bin:c64:301x203", "b.h5", "-o", "o.bin:c64", "--force")
    assert np.array_equal(np.fromfile("o.bin", "<c8").reshape(C.shape), C)


def times(alpha, value, whole):
    """alpha times re and im of `value`; `whole`: it has an imaginary part."""
    re, im = value
    if np.imag(alpha) == 0:
        return np.real(alpha) * re, np.real(alpha) * im if whole else im
    x, y = np.real(alpha), np.imag(alpha)
    return (x * re - y * im, x * im + y * re) if whole else (x * re, y * re)


def by_parts(a, b, alpha, c0, beta):
    """The rules for NaN and Inf: sums of products of parts, those that there are; then alpha, beta and C0."""
    whole = np.iscomplexobj(a) or np.iscomplexobj(b)

    def product_of(x, y):
        return (x[:, :, None] * y[None, :, :]).sum(axis=1)
    re, im = product_of(a.real, b.real), np.zeros((a.shape[0], b.shape[1]))
    if np.iscomplexobj(b):
        im = im + product_of(a.real, b.imag)
    if np.iscomplexobj(a):
        im = im + product_of(a.imag, b.real)
    if np.iscomplexobj(a) and np.iscomplexobj(b):
        re = re - product_of(a.imag, b.imag)
    re, im = times(alpha, (re, im), whole)
    more = times(beta, (c0.real, c0.imag), np.iscomplexobj(c0))
    return re + more[0], im + more[1]


@np.errstate(invalid="ignore")
def test_nan_and_inf():
    """Where NaN and Inf stand in C is what the rules say, and the check knows it."""
    def planted(shape, is_complex):
        values = random.integers(-2, 3, shape).astype("f8")
        values = values + 1j * random.integers(-2, 3, shape) if is_complex else values
        parts = values.view("f8").reshape(-1)
        parts[random.integers(0, parts.size, 2)] = random.choice([np.nan, np.inf, -np.inf], 2)
        return values
    for case in range(12):
        a, b, c0 = (planted(shape, random.integers(2)) for shape in ((23, 9), (9, 17), (23, 17)))
        alpha, beta = ((1 + 2j, 1), (-1j, 2 - 1j), (-2, 0.5j), (1, 1))[case % 4]
        if not any(map(np.iscomplexobj, (a, b, c0, alpha, beta))):
            c0 = c0 + 0j
        write("nan_a.h5", a)
        write("nan_b.h5", b)
        write("c0.h5", c0)
        product("nan_a.h5", "nan_b.h5", f"--alpha={alpha}".replace("(", "").replace(")", ""), "--add", "c0.h5",
                f"--beta={beta}".replace("(", "").replace(")", ""), "--verify")
        with h5py.File("c.h5") as file:
            c = file["C"][()]
        re, im = by_parts(a, b, alpha, c0, beta)
        assert np.array_equal(c.real, re, equal_nan=True) and np.array_equal(c.imag, im, equal_nan=True), case


def test_refusals():
    make()
    for options, says in ((["--type", "f32"], ["complex", "--type c128", "--real-part"]),
                          (["--type", "c128", "--real-part"], ["--real-part", "use a real type"])):
        fails("multiply", "a.h5:/large", "b.h5", "-o", "none.h5", *options, ranks=2, code=2, says=says)
        assert not os.path.exists("none.h5") and not leftovers(), leftovers()
    result = run("multiply", "a.h5:/large", "b.h5", "-o", "r.h5", "--real-part", "--force")
    assert "imaginary part is lost" in result.err, result
    with h5py.File("r.h5") as file:
        assert np.array_equal(file["C"][()], C.real) and file["C"].dtype == "f8"
    with h5py.File("r.h5", "w") as file:
        file["C"] = C
        file["wrong"] = C + np.eye(*C.shape) * 1e-3j
    run("verify", "a.h5:/large", "b.h5", "r.h5:/C")
    fails("verify", "a.h5:/large", "b.h5", "r.h5:/wrong", ranks=2, code=3, says="FAILED")


def test_huge_alpha():
    """Parts near the end of fp64's range, whose magnitude leaves it: right products pass, wrong elements are found."""
    alpha = complex(1.5e308, -1.4e308)
    for of_sum, overflows in ((1e-300, False), (2.0, True)):
        a = (random.normal(size=(40, 30)) + 1j * random.normal(size=(40, 30))) * of_sum ** 0.5
        b = (random.normal(size=(30, 20)) + 1j * random.normal(size=(30, 20))) * of_sum ** 0.5
        write("ha.h5", a), write("hb.h5", b)
        names = ["ha.h5", "hb.h5", "--alpha", f"{alpha.real:g}{alpha.imag:+g}j"]
        c = product(*names, "--verify")
        assert np.isfinite(c).all() != overflows
        if not overflows:
            expected = (a * 1e150) @ (b * 1e150) * (alpha * 1e-300)
            assert np.abs(c - expected).max() <= 1e-12 * np.abs(expected).max()
        check = ["verify", "ha.h5", "hb.h5", "c.h5", *names[2:]]
        run(*check, ranks=2)
        for place, value in (((3, 5), c[3, 6]), ((39, 0), np.conj(c[39, 0])), ((0, 19), 0)):
            if overflows and value == 0:
                value = complex(1, 1)
            wrong = c.copy()
            wrong[place] = value
            write("c.h5", wrong)
            fails(*check, code=3, says="FAILED")
        write("c.h5", c)


def test_record():
    make()
    run("multiply", "a.h5:/large", "b.h5", "-o", "l.h5", "--alpha", "1-2j", "--conjugate-a", "--force")
    with h5py.File("l.h5") as file:
        record = dict(file["C.run"].attrs)
        assert np.array_equal(file["C"][()], (1 - 2j) * (A.conj().astype("c16") @ B))
    assert (record["alpha"], record["alpha_imag"], record["conjugate_a"]) == (1, -2, 1), record
    assert "conjugate_b" not in record and "beta_imag" not in record, record
    said = run("info", "l.h5:/C.run").out
    assert "1-2j" in said and "A^*" in said, said


main(globals())
