"""compare: the figures it prints against numpy, exit codes, and the same words from any number of ranks."""
import re

from lib import fails, main, np, run, write


def figures(text):
    """name → (value, row, column)"""
    found = {}
    for line in text.splitlines():
        match = re.match(r"(.{24}) (\S+)(?: at row (\d+), column (\d+))?", line)
        if match and not line.startswith("PASSED"):
            found[match[1].strip()] = (float(match[2].rstrip(",")), match[3] and int(match[3]), match[4] and
                                       int(match[4]))
    return found


def close(a, b):
    return abs(a - b) <= 1e-5 * abs(b)


def test_complex():
    """|x - y| of complex numbers; a real matrix counts as a complex one; parts that are not finite agree or do not."""
    random = np.random.default_rng(2)
    y = random.normal(size=(9, 7)) + 1j * random.normal(size=(9, 7))
    x = y.copy()
    x[4, 2] += 3e-4 - 4e-4j
    write("x.h5", x), write("y.h5", y)
    f = figures(run("compare", "x.h5", "y.h5", "--tolerance", 1).out)
    assert close(f["largest absolute error"][0], 5e-4) and f["largest absolute error"][1:] == (4, 2), f
    assert close(f["largest relative error"][0], 5e-4 / abs(y[4, 2])), f
    fails("compare", "x.h5", "y.h5", "--tolerance", 1e-5, code=3, says="above the tolerance")
    write("r.h5", y.real), write("c.h5", y.real.astype("c16"))
    run("compare", "r.h5", "c.h5"), run("compare", "c.h5", "r.h5")
    fails("compare", "r.h5", "y.h5", code=3, says="above the tolerance")
    x[1, 1] = y[1, 1] = complex(np.inf, 1)
    write("x.h5", x), write("y.h5", y)
    assert figures(run("compare", "x.h5", "y.h5", "--tolerance", 1).out)["NaN or Inf mismatches"][0] == 0
    x[1, 1] = complex(1, np.inf)
    write("x.h5", x)
    fails("compare", "x.h5", "y.h5", "--tolerance", 1, code=3, says="NaN or Inf")
    for other, code in ((1 + 1e-9, 0), (1.5, 3), (np.inf, 3)):  # the part beside Inf counts as any number does
        x[1, 1] = complex(np.inf, other)
        write("x.h5", x), write("y.h5", y)
        run("compare", "x.h5[1, :]", "y.h5[1, :]", "--tolerance", 1e-6, code=code)
    x[1, 1] = y[1, 1] = complex(np.nan, -np.inf)
    write("x.h5", x), write("y.h5", y)
    run("compare", "x.h5[1, :]", "y.h5[1, :]")


def test_figures():
    random = np.random.default_rng(1)
    y = random.normal(size=(41, 37))
    x = y * (1 + 1e-9 * random.normal(size=y.shape))
    x[17, 5] += 1e-5
    y[3, 4] = 0
    x[3, 4] = 2e-8
    error = np.abs(x - y)
    relative = error / np.where(y == 0, 1, np.abs(y))
    write("x.h5", x), write("y.h5", y)
    texts = []
    for ranks in (0, 1, 3, 4):
        result = run("compare", "x.h5", "y.h5", "--tolerance", 1, ranks=ranks)
        texts.append(result.out.replace(result.out[result.out.index("average"):result.out.index("largest abs")], ""))
        f = figures(result.out)
        place = np.unravel_index(relative.argmax(), y.shape)
        assert (close(f["largest relative error"][0], relative.max()) and
                f["largest relative error"][1:] == place), result
        assert close(f["average relative error"][0], relative.mean()), result
        assert close(f["largest absolute error"][0], error.max()) and f["largest absolute error"][1:] == (17, 5), result
        assert close(f["relative Frobenius error"][0], np.linalg.norm(x - y) / np.linalg.norm(y)), result
        assert f"{x[17, 5]:.17g} against {y[17, 5]:.17g}" in result.out, result
    assert len({re.sub(r"Frobenius.*", "", text) for text in texts}) == 1, texts
    column = figures(run("compare", "x.h5", "y.h5", "--tolerance", 1, "--order", "col").out)
    assert column["largest absolute error"][1:] == (5, 17), column


def test_exit_codes():
    y = np.ones((5, 5))
    x = y.copy()
    x[4, 1] = 1 + 1e-3
    write("a.h5", x), write("b.h5", y)
    run("compare", "b.h5", "b.h5", ranks=2)
    fails("compare", "a.h5", "b.h5", ranks=2, code=3, says=["1.000000e-03", "1e-06", "--tolerance"])
    run("compare", "a.h5", "b.h5", "--tolerance", "1e-2")
    fails("compare", "a.h5", "b.h5[0:4,0:5]", ranks=3, code=1, says=["5 x 5", "4 x 5"])
    run("compare", "a.h5[0:4,0:5]", "b.h5[1:5,:]", ranks=2)


def test_types():
    values = np.arange(-3, 9).reshape(3, 4)
    for dtype in (">f4", "f2", "i1", ">i8", "i4", ">f8"):
        write("t.h5", values.astype(dtype)), write("u.h5", values.astype("f8"))
        run("compare", "t.h5", "u.h5", "--tolerance", 0)
    write("t.h5", values.astype("f8"), chunks=(2, 3), compression="gzip", shuffle=True)
    run("compare", "t.h5", "u.h5", "--tolerance", 0, ranks=2)


def test_large_integers():
    x = np.full((2, 3), 2**60, dtype="i8")
    y = x.copy()
    y[1, 2] += 1
    write("i.h5", x), write("j.h5", y)
    for type_x, type_y in (("i8", "i8"), ("u8", "i8"), (">i8", "u8"), ("u8", ">u8")):
        write("i.h5", x.astype(type_x)), write("j.h5", y.astype(type_y))
        result = fails("compare", "i.h5", "j.h5", "--tolerance", 0, code=3, says="tolerance")
        assert f"{2**60} against {2**60 + 1}" in result.out, result
        write("j.h5", x.astype(type_y))
        run("compare", "i.h5", "j.h5", "--tolerance", 0)
    for float_type in ("f8", ">f8", "c16"):  # which 2^60 fits, and 2^60 + 1 does not
        write("i.h5", x.astype(float_type)), write("j.h5", y)
        for two in (("i.h5", "j.h5"), ("j.h5", "i.h5")):
            result = fails("compare", *two, "--tolerance", 0, code=3, says="tolerance")
            assert "largest absolute error   1.0" in result.out and str(2**60 + 1) in result.out, result
        write("j.h5", x)
        run("compare", "i.h5", "j.h5", "--tolerance", 0)
    write("i.h5", np.array([[2**64 - 1, 3]], "u8")), write("j.h5", np.array([[2.0**64, 3.5]]))
    assert figures(run("compare", "i.h5", "j.h5", "--tolerance", 1).out)["largest absolute error"][0] == 1
    write("i.h5", np.array([[-1]], "i1")), write("j.h5", np.array([[2**64 - 1]], "u8"))
    result = fails("compare", "i.h5", "j.h5", code=3, says="tolerance")
    assert f"-1 against {2**64 - 1}" in result.out, result


def test_nan():
    x = np.ones((4, 6))
    x[1, 1], x[2, 2] = np.nan, np.inf
    write("n.h5", x)
    assert "mismatches    0" in run("compare", "n.h5", "n.h5", ranks=2).out
    y = x.copy()
    y[0, 0] = 2
    write("m.h5", y)  # NaN and Inf that agree are in no mean
    f = figures(run("compare", "n.h5", "m.h5", "--tolerance", 1).out)
    assert close(f["average relative error"][0], 0.5 / (x.size - 2)), f
    for value in (1.0, -np.inf, np.nan):
        y = x.copy()
        y[2, 2] = value
        write("m.h5", y)
        result = fails("compare", "n.h5", "m.h5", "--tolerance", 1e9, ranks=2, code=3, says="1 elements")
        assert "first at row 2, column 2" in result.out, result


def test_empty():
    write("e.h5", np.ones((0, 4))), write("e1.h5", np.ones((1, 1)))
    fails("compare", "e.h5", "e1.h5", code=1, says=["0 x 4", "1 x 1"])
    assert "PASSED" in run("compare", "e.h5", "e.h5", ranks=2).out
    run("compare", "e1.h5", "e1.h5", ranks=4)


main(globals())
