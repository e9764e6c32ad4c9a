"""verify: right products of every kind pass, one wrong entry or tile fails with exit code 3, NaN and Inf are told from
errors. 1200 wrong products are in test_verify_wrong.c."""
import re

from lib import fails, main, np, run, write

random = np.random.default_rng(5)


def ratio(text):
    return float(re.search(r"\|r\|/bound (\S+?)[,)]", " ".join(text.split()))[1])


def said(*args, **more):
    """What verify says when C passes, without the ends of its lines."""
    return " ".join(run("verify", *args, **more).out.split())


def files(a, b, c, **how):
    write("a.h5", a, **how), write("b.h5", b, **how), write("c.h5", c, **how)
    return ["a.h5", "b.h5", "c.h5"]


def single(m=61, k=83, n=47):
    a, b = random.normal(size=(m, k)).astype("f4"), random.normal(size=(k, n)).astype("f4")
    return a, b, a @ b


def test_right():
    a, b, c = single()
    names = files(a, b, c)
    for ranks in (0, 1, 2, 3, 4):
        out = said(*names, ranks=ranks)
        assert out.startswith("PASSED") and "9.54e-07" in out and 0 < ratio(out) < 1, out
    assert "0.5" in said(*names, "--trials", 1)
    for seed in range(1, 6):
        run("verify", *names, "--seed", seed, "--trials", 64)


def test_same_on_any_ranks():
    a, b, _ = single()
    names = files(a.astype("f8"), b.astype("f8"), a.astype("f8") @ b)
    texts = {run("verify", *names, ranks=ranks).out for ranks in (1, 2, 4)}
    assert len({ratio(text) < 0.1 for text in texts}) == 1, texts


def test_wrong_entry():
    a, b, c = single()
    for place in ((0, 0), (60, 46), (31, 7)):
        wrong = c.copy()
        wrong[place] += 1
        names = files(a, b, wrong)
        for ranks in (0, 3):
            fails("verify", *names, ranks=ranks, code=3, says=["FAILED: 1 of 61 rows", f"worst row {place[0]} "])


def test_width():
    """80 columns, passed or failed; the verdict begins its line on standard output."""
    a, b, c = single()
    for times in (1, 1e-7, 123456):
        names = files(a * np.float32(times), b, a * np.float32(times) @ b)
        out = run("verify", *names, ranks=2).out
        assert out.startswith("PASSED: every row within") and out.count("\nPASSED") == 0, out
        assert all(len(line) <= 80 for line in out.splitlines()) and len(out.splitlines()) > 1, out
    c[3] += 1
    result = fails("verify", *files(a, b, c), code=3, says=["FAILED: 1 of 61 rows outside", "largest bound"])
    assert all(len(line) <= 80 for line in result.err.splitlines()), result.err
    assert result.err.startswith("tessera: error: FAILED: "), result.err


def test_range_of_threads():
    """As many as multiply takes; the check starts no more than it can use."""
    names = files(*single())
    multiply = ("multiply", *names[:2], "-o", "made.h5", "--force")
    for threads in (1, 33, 4096):
        run("verify", *names, "--threads", threads)
        run(*multiply, "--threads", threads)
    for threads in (0, 4097):
        for command in (("verify", *names), multiply):
            fails(*command, "--threads", threads, code=2, says="use 1 to 4096")


def test_wrong_tile():
    a, b, c = single()
    c[16:32, 16:32] = 0
    fails("verify", *files(a, b, c), ranks=2, code=3, says="FAILED: 16 of 61 rows")
    a, b, c = single()
    fails("verify", *files(a, b, c[:, ::-1]), code=3, says="61 of 61 rows")


def test_double_is_sharp():
    a, b, _ = single()
    a, b = a.astype("f8"), b.astype("f8")
    c = a @ b
    run("verify", *files(a, b, c), ranks=2)
    c[7, 7] += 1e-9
    fails("verify", *files(a, b, c), ranks=2, code=3, says="worst row 7 ")
    fails("verify", *files(a, b, (a @ b).astype("f4").astype("f8")), code=3, says="FAILED")
    run("verify", *files(a, b, (a @ b).astype("f4")), ranks=2)


def test_transposes():
    a, b, c = single()
    for ta in (False, True):
        for tb in (False, True):
            names = files(a.T if ta else a, b.T if tb else b, c)
            flags = ["--transpose-a"] * ta + ["--transpose-b"] * tb
            run("verify", *names, *flags, ranks=3)
            wrong = c.copy()
            wrong[12, 3] += 1
            write("c.h5", wrong)
            fails("verify", *names, *flags, ranks=3, code=3, says="worst row 12 ")


def test_threads():
    """However many threads share rows or columns, whole or in chunks: each entry is checked once, and the sums are
    those of one thread."""
    a, b, _ = single(1501, 1103, 307)
    b[5, 200] = np.inf
    c = a @ b
    wrong = c.copy()
    wrong[1499, 3] += 100
    for ta, tb, how in ((False, False, {}), (True, True, {}), (False, True, {"chunks": (64, 96)}),
                        (True, False, {"chunks": (700, 3)})):
        names = files(a.T if ta else a, b.T if tb else b, c, **how)
        flags = ["--transpose-a"] * ta + ["--transpose-b"] * tb
        texts = {run("verify", *names, *flags, "--threads", threads, ranks=ranks).out for threads,
                 ranks in ((1, 0), (3, 0), (7, 0), (3, 2))}
        # over ranks sums are added in another order
        assert len({text.partition("(")[0] for text in texts}) == 1 and len(texts) <= 2, texts
        write("c.h5", wrong, **how)
        for threads in (2, 5):
            fails("verify", *names, *flags, "--threads", threads, code=3,
                  says=["FAILED: 1 of 1501 rows", "worst row 1499 "])
    fails("verify", *names, "--threads", 0, code=2, says="--threads")


def test_scaled_and_added():
    a, b, _ = single()
    c0 = random.normal(size=(61, 47)).astype("f4")
    c = (2.5 * (a.astype("f8") @ b) - 0.5 * c0).astype("f4")
    write("c0.h5", c0)
    names = files(a, b, c)
    run("verify", *names, "--add", "c0.h5", "--alpha", 2.5, "--beta", -0.5, ranks=2)
    fails("verify", *names, "--alpha", 2.5, ranks=2, code=3, says="FAILED")
    fails("verify", *names, "--add", "c0.h5", "--alpha", 2.5, ranks=2, code=3, says="FAILED")
    names = files(a, b, a @ b + c0)
    run("verify", *names, "--add", "c0.h5")
    write("c0.h5", np.full_like(c0, np.nan))
    run("verify", *files(a, b, a @ b), "--add", "c0.h5", "--beta", 0)
    run("verify", *files(a, b, 0 * c), "--alpha", 0)
    write("c0.h5", c0[:5])
    fails("verify", *names, "--add", "c0.h5", ranks=2, code=1, says=["5 x 47", "61 x 47"])


def test_stacks():
    """The row that is named is one of a matrix, and the matrix is named."""
    a, b = random.normal(size=(2, 5, 20, 30)), random.normal(size=(30, 10))
    wrong = a @ b
    wrong[1, 3, 4, 2] += 1
    run("verify", *files(a, b, a @ b))
    fails("verify", *files(a, b, wrong), ranks=2, code=3, says=["1 of 200 rows", "worst row 4 of matrix [1, 3] ("])
    fails("verify", *files(a[1], b, wrong[1]), code=3, says=["1 of 100 rows", "worst row 4 of matrix [3] ("])


def test_types():
    a, b = random.integers(-5, 6, size=(33, 29)), random.integers(-5, 6, size=(29, 31))
    c = a @ b
    for type_a, type_b, type_c in (("i1", "i2", "f4"), (">i4", "i8", "f8"), ("f2", "f2", "f4"), ("f4", ">f8", "f8"),
                                   ("i2", "i2", "i4"), ("i4", "i4", ">i8"), ("f4", "f4", "f2")):
        names = files(a.astype(type_a), b.astype(type_b), c.astype(type_c))
        run("verify", *names, ranks=2)
        wrong = c.copy()
        wrong[3, 3] += 40
        write("c.h5", wrong.astype(type_c))
        fails("verify", *names, ranks=2, code=3, says="worst row 3 ")
    a, b, c = single()
    run("verify", *files(a.astype("f2"), b.astype("f2"),
                         (a.astype("f2").astype("f4") @ b.astype("f2").astype("f4")).astype("f2")), ranks=2)
    run("verify", *files(a, b, c, chunks=(10, 9), compression="gzip"), ranks=2)
    run("verify", *files(a * np.float32(1e-25), b * np.float32(1e-18),
                         (a.astype("f8") * 1e-25 @ b * 1e-18).astype("f4")), ranks=2)
    big = random.normal(size=(20, 20)) * 1e200
    run("verify", *files(big, big * 1e-150, big @ (big * 1e-150)), ranks=2)


def test_shapes():
    for m, k, n in ((1, 1, 1), (0, 5, 3), (4, 5, 0), (3, 1, 200), (1, 300, 1), (300, 2, 1)):
        a, b = random.normal(size=(m, k)), random.normal(size=(k, n))
        run("verify", *files(a, b, a @ b), ranks=4)
    run("verify", *files(np.ones((3, 0)), np.ones((0, 4)), np.zeros((3, 4))), ranks=2)
    fails("verify", *files(np.ones((3, 0)), np.ones((0, 4)), np.ones((3, 4))), ranks=2, code=3, says="3 of 3 rows")
    fails("verify", *files(np.ones((3, 2)), np.ones((3, 4)), np.ones((3, 4))), ranks=3, code=1, says=["3 x 2", "3 x 4"])


def test_nan_in_a():
    a, b, _ = single()
    a[5, 9], a[8, 0] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        c = a @ b
    names = files(a, b, c)
    assert said(*names, ranks=3).startswith("PASSED: every row")
    wrong = c.copy()
    wrong[5, 30] = 1  # finite where it cannot be
    write("c.h5", wrong)
    fails("verify", *names, ranks=3, code=3, says="FAILED: 1 of 61 rows")
    wrong = c.copy()
    wrong[6, 30] = np.nan  # NaN where it cannot be
    write("c.h5", wrong)
    fails("verify", *names, ranks=3, code=3, says="worst row 6 ")
    wrong = c.copy()
    wrong[6, 30] += 1
    write("c.h5", wrong)
    fails("verify", *names, ranks=3, code=3, says="worst row 6 ")


def test_nan_in_b():
    """A column of C is NaN; all other entries of every row are still checked by sums."""
    a, b, _ = single()
    b[3, 11], b[70, 40] = np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        c = a @ b
    for transposed in (False, True):
        names = files(a, b.T if transposed else b, c)
        flags = ["--transpose-b"] * transposed
        out = said(*names, *flags, ranks=2)
        assert "NaN" not in out, out
        wrong = c.copy()
        wrong[22, 12] += 1
        write("c.h5", wrong)
        fails("verify", *names, *flags, ranks=2, code=3, says="FAILED: 1 of 61 rows")
        wrong = c.copy()
        wrong[22, 11] = 0
        write("c.h5", wrong)
        fails("verify", *names, *flags, ranks=2, code=3, says="worst row 22 ")


def test_all_nan():
    a, b, c = single()
    b[0] = np.nan
    names = files(a, b, np.full_like(c, np.nan))
    assert said(*names, ranks=2).startswith("PASSED: every row")
    fails("verify", *files(a, b, c), ranks=2, code=3, says="61 of 61 rows outside")


def test_nan_in_c0():
    a, b, c = single()
    c0 = np.zeros_like(c)
    c0[9, 9] = np.nan
    write("c0.h5", c0)
    names = files(a, b, c + c0)
    assert said(*names, "--add", "c0.h5", ranks=2).startswith("PASSED: every row")
    fails("verify", *files(a, b, c), "--add", "c0.h5", ranks=2, code=3, says="worst row 9 ")
    wrong = c + c0
    wrong[9, 10] += 1  # beside the NaN
    fails("verify", *files(a, b, wrong), "--add", "c0.h5", ranks=2, code=3, says="worst row 9 ")


def test_subnormal_c0():
    """C0 is scaled up before it is rounded: beta makes numbers of any size of its smallest."""
    a, b, c0 = np.full((4, 4), 1e-150), np.full((4, 4), 1e-145), np.full((4, 4), 1.5e-323)
    write("c0.h5", c0)
    for beta in (1e30, -1.7e300, 3.0):
        c = a @ b + beta * c0
        for ranks in (0, 2):
            said(*files(a, b, c), "--add", "c0.h5", f"--beta={beta}", ranks=ranks)
        wrong = c.copy()
        wrong[2, 3] = 2 * c[2, 3] + 1e-280
        fails("verify", *files(a, b, wrong), "--add", "c0.h5", f"--beta={beta}", code=3, says="worst row 2 ")


def test_operands_rounded_to_infinity():
    """What kernels round to Inf before they multiply is Inf in the check, too; what is just below is finite."""
    for accuracy, end in (("tf32", (2 - 2.0 ** -11) * 2.0 ** 127), ("bf16", (2 - 2.0 ** -8) * 2.0 ** 127)):
        b = np.full((1, 5), 2.0 ** -10, "f4")
        for value, right, wrong in ((end, np.inf, 2.0 ** 118), (-end, -np.inf, np.inf),
                                    (np.nextafter(np.float32(end), np.float32(0)), 2.0 ** 118, np.inf)):
            a, c = np.full((3, 1), value, "f4"), np.full((3, 5), right, "f4")
            assert said(*files(a, b, c), "--accuracy", accuracy).startswith("PASSED: every row"), (accuracy, value)
            fails("verify", *files(a, b, np.full_like(c, wrong)), "--accuracy", accuracy, code=3, says="3 of 3 rows")


def test_overflow():
    a, b = np.full((3, 4), 300, "f4"), np.full((4, 5), 300, "f4")
    c = np.full((3, 5), np.inf, "f2")
    out = said(*files(a, b, c), ranks=2)
    assert out.startswith("PASSED: every row"), out
    fails("verify", *files(a, b, np.full((3, 5), 65000, "f2")), code=3, says="3 of 3 rows")
    fails("verify", *files(a / 100, b, c), ranks=2, code=3, says="3 of 3 rows")  # no sum comes near the range of f16
    assert "9.54e-07" in said(*files(a, b, a @ b))


def test_large_column():
    """A large column of B hides nothing in the others, nor a large row of A, nor rows of B that A makes up for."""
    for dtype, large in (("f4", 1e6), ("f8", 1e18)):
        a, b, _ = single()
        a, b = a.astype(dtype), b.astype(dtype)
        b[:, 0] *= large
        c = a @ b
        for ranks in (0, 2):
            assert said(*files(a, b, c), ranks=ranks).startswith("PASSED: every row")
            wrong = c.copy()
            wrong[:, 1:] = 0
            fails("verify", *files(a, b, wrong), ranks=ranks, code=3, says="61 of 61 rows")
            wrong = c.copy()
            wrong[4, 7] *= 1.5
            fails("verify", *files(a, b, wrong), ranks=ranks, code=3, says=["1 of 61 rows", "worst row 4 "])
    rows, cols, along = (10.0 ** random.uniform(-99, 99, size) for size in (61, 47, 83))
    a, b = random.normal(size=(61, 83)) * rows[:, None] * along, random.normal(size=(83, 47)) / along[:, None] * cols
    c0 = random.normal(size=(61, 47)) * rows[:, None] * cols
    write("c0.h5", c0)
    for more, c in (((), a @ b), (("--add", "c0.h5"), a @ b + c0)):
        run("verify", *files(a, b, c), *more, ranks=2)
        wrong = c.copy()
        wrong[50, 3] *= 1 + 1e-9
        fails("verify", *files(a, b, wrong), *more, ranks=2, code=3, says=["1 of 61 rows", "worst row 50 "])


def test_missing_column():
    """One NaN column of A touches every row; without it nothing is lost. Zeros under it are NaN, too."""
    a, b, c = single()
    a[:, 9], b[9, :20] = np.nan, 0
    run("verify", *files(a, b, np.full_like(c, np.nan)), ranks=2)
    wrong = np.full_like(c, np.nan)
    wrong[11, 12] = c[11, 12]
    fails("verify", *files(a, b, wrong), ranks=2, code=3, says=["1 of 61 rows", "worst row 11 "])


def test_sign_of_infinity():
    """Inf has a sign, and is NaN where it meets 0 or its opposite."""
    a, b, _ = single()
    a[3, 5], a[8, 1], a[8, 2], b[7, 6], b[5, 30] = np.inf, -np.inf, np.inf, -np.inf, 0
    with np.errstate(invalid="ignore"):
        c = a @ b
    assert np.isnan(c[3, 30]) and np.isinf(c[3, 31]) and np.isnan(c[8]).any() and np.isinf(c[8]).any()
    for ta, tb, ranks in ((False, False, 0), (True, True, 2)):
        names = files(a.T if ta else a, b.T if tb else b, c)
        flags = ["--transpose-a"] * ta + ["--transpose-b"] * tb
        assert said(*names, *flags, ranks=ranks).startswith("PASSED: every row")
        for place, value in (((3, 31), -c[3, 31]), ((3, 30), np.inf), ((3, 31), np.nan), ((20, 6), -c[20, 6]),
                             ((20, 6), 0)):
            wrong = c.copy()
            wrong[place] = value
            write("c.h5", wrong)
            fails("verify", *names, *flags, ranks=ranks, code=3, says=["1 of 61 rows", f"worst row {place[0]} "])
    write("c.h5", -c)
    run("verify", *names, *flags, "--alpha", -1)


def test_sums_beyond_the_range():
    """Sums of the check do not overflow where the product does not, and what does overflow is worked out."""
    a, b = np.full((40, 40), 1e308 / 8), np.eye(40)
    run("verify", *files(a, b, a), ranks=2)
    fails("verify", *files(a, b, 0 * a), ranks=2, code=3, says="40 of 40 rows")
    b[:] = 1
    infinite = np.full_like(a, np.inf)
    assert said(*files(a, b, infinite), ranks=2).startswith("PASSED: every row")
    for wrong in (-infinite, 0 * a, a, infinite * np.nan):
        fails("verify", *files(a, b, wrong), ranks=2, code=3, says="40 of 40 rows")
    a[::2] *= -1
    fails("verify", *files(a, b, infinite), code=3, says="20 of 40 rows")


def test_more_than_it_works_out():
    """Too many overflowed elements: their rows are not judged, which is no failure; all others are."""
    a, b = random.normal(size=(300, 3000)), random.normal(size=(3000, 1100))
    a[:290] *= 1e5
    exact = a @ b
    c = exact.astype("f4")
    with np.errstate(over="ignore"):
        c = exact.astype("f2")
    names = files(a.astype("f4"), b.astype("f4"), c)
    for more in ([], ["--quiet"]):
        result = run("verify", *names, *more, ranks=2)
        text = " ".join((result.out or result.err).split())
        assert "rows not judged: every other" in text if not more else "did not judge" in text, text
    count = int(re.search(r"INCOMPLETE, (\d+) rows", said(*names)[:40])[1])
    assert 0 < count < 300, count
    c[295, 4] += 64
    write("c.h5", c)
    fails("verify", *names, ranks=2, code=3, says=["FAILED: 1 of 300 rows", "worst row 295 ", "rows not judged"])


def test_order():
    a, b, c = single(13, 17, 19)
    names = files(a.T, b.T, c.T)
    run("verify", *names, "--order", "col", ranks=2)
    names = files(a, b.T, c.T)
    run("verify", *names, "--order", "col", "--transpose-a", ranks=2)
    fails("verify", *files(a.T, b.T, c.T + 1), "--order", "col", code=3, says="FAILED")
    run("verify", *files(np.pad(a.T, 2), b.T, c.T), "--order", "col", ranks=2, code=1)
    run("verify", "a.h5[2:15,2:19]", "b.h5", "c.h5", "--order", "col", ranks=2)


main(globals())
