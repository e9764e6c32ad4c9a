"""multiply against numpy.matmul for arrays of any shape: random cases of 0 to 5 dimensions, element types, storages,
slices, orders, transposes, conjugates, factors, outputs and ranks. Integers make every sum exact, so that products
agree bit for bit; what numpy.matmul refuses, multiply refuses.

TSR_MATMUL_CASES: how many (250, 1000 in long tests). TSR_MATMUL_SEED: of the first; each case has a seed of its own,
and a failure tells it."""
import concurrent.futures
import json
import os
import random as chance

import h5py

from lib import LONG, fails, leftovers, main, np, run

TYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "c8", "c16")
FIELDS = ("r", "i"), ("real", "imag"), ("re", "im"), ("Re", "Im")
CASES = int(os.environ.get("TSR_MATMUL_CASES", "1000" if LONG else "250"))
SEED = int(os.environ.get("TSR_MATMUL_SEED", "1"))


class Operand:
    """An array as it is stored, inside a larger one of which a slice is written."""

    def __init__(self, dice, file, name, shape, order):
        self.order = order
        dtype = dice.choice(TYPES)
        low, high = (0, 2) if dtype == "b1" else (0 if "u" in dtype else -4, 5)
        values = np.random.default_rng(dice.getrandbits(32))
        whole, parts = [], []
        sliced = dice.random() < 0.5 and len(shape) > 0
        for size in shape:
            first = dice.randint(0, 2) if sliced else 0
            whole.append(first + size + (dice.randint(0, 2) if sliced else 0))
            parts.append((first, first + size))
        for _ in range(dice.randint(0, 2) if sliced else 0):  # dimensions that a number drops again
            place, size = dice.randint(0, max(0, len(whole) - 2)), dice.randint(1, 3)
            whole.insert(place, size)
            parts.insert(place, dice.randrange(size))
        dropped_last = sliced and len(shape) == 1 and len(whole) == 1 and dice.random() < 0.5
        if dropped_last:  # a row or a column of a matrix
            size = dice.randint(1, 3)
            place = dice.randint(0, 1)
            whole.insert(place, size)
            parts.insert(place, dice.randrange(size))
        stored = values.integers(low, high, size=whole)
        if "c" in dtype:
            stored = stored + 1j * values.integers(low, high, size=whole)
        stored = stored.astype(dtype)
        if dtype != "b1" and dice.random() < 0.3:
            stored = stored.astype(np.dtype(dtype).newbyteorder(">"))
        self.fields = None
        self.data = stored[tuple(p if isinstance(p, int) else slice(*p) for p in parts)]
        assert self.data.shape == tuple(shape)
        npy = dice.random() < 0.15 and dtype != "b1"
        self.name = f"{file}-{name}.npy" if npy else f"{file}:/{name}"
        if npy:
            np.save(self.name, stored.T if order == "col" else stored)  # in Fortran order
        else:
            if "c" in dtype:
                self.fields = dice.choice(FIELDS)
                part = stored.real.dtype.newbyteorder(stored.dtype.byteorder)
                stored = np.array(stored).view([(field, part) for field in self.fields])
            self.store(dice, file, name, stored)
        if sliced:
            self.name += self.text(dice, whole, parts)

    @staticmethod
    def store(dice, file, name, stored):
        how = {}
        if stored.ndim > 0 and stored.size > 0 and dice.random() < 0.6:
            how["chunks"] = tuple(dice.randint(1, size) for size in stored.shape)
            if dice.random() < 0.5:  # chunks of one matrix each: read without HDF5
                how["chunks"] = (1,) * max(0, stored.ndim - 2) + how["chunks"][max(0, stored.ndim - 2):]
            how["compression"] = dice.choice((None, "gzip", "lzf"))
            how["shuffle"] = dice.random() < 0.5
        with h5py.File(file, "a") as to:
            to.create_dataset(name, data=stored, **how)

    def text(self, dice, whole, parts):
        words = []
        for size, part in zip(whole, parts):
            if isinstance(part, int):
                words.append(str(part if dice.random() < 0.7 else part - size))
            elif part == (0, size) and dice.random() < 0.5:
                words.append(":")
            else:
                words.append(f"{part[0]}:{part[1]}")
        if self.order == "col":
            words.reverse()
        return "[" + ",".join(words) + "]"


def shapes(dice):
    """Of A, B and what A and B are broadcast to, as matmul takes them, or nearly so."""
    m, k, n = (dice.choice((0, 1, 2, 3, 5, 8, 13)) for _ in range(3))
    lead = [dice.choice((0, 1, 2, 3, 3)) for _ in range(dice.randint(0, 3))]

    def of(own):
        kept = lead[dice.randint(0, len(lead)):]
        return [1 if dice.random() < 0.3 else size for size in kept] + own
    a = [k] if dice.random() < 0.2 else of([m, k])
    b = [k] if dice.random() < 0.2 else of([k, n])
    if dice.random() < 0.1:
        wrong = dice.choice((a, b))
        wrong[dice.randrange(len(wrong))] += 1
    if dice.random() < 0.02:
        dice.choice((a, b)).clear()
    return a, b


def transposed(array, flag):
    return np.swapaxes(array, -1, -2) if flag and array.ndim >= 2 else array


def exact(array):
    return array.astype("c16" if array.dtype.kind == "c" else "i8")


def expected(a, b, order, flags, conjugates):
    """In column order the file shows all arrays with their dimensions reversed."""
    first, second = (exact(np.conj(transposed(x, flag)) if conjugate else transposed(x, flag))
                     for x, flag, conjugate in zip((a, b), flags, conjugates))
    return np.matmul(second, first) if order == "col" else np.matmul(first, second)


def numbers(made):
    """A dataset as numpy has it, and the names of a complex number's parts in the file, if it holds such."""
    kind = made.id.get_type()
    names = tuple(kind.get_member_name(m).decode() for m in range(2)) if kind.get_class() == h5py.h5t.COMPOUND else None
    data = made[()]
    if data.dtype.names:
        data = data[data.dtype.names[0]] + 1j * data[data.dtype.names[1]]
    return data, names


def product_options(dice, flags, complex_):
    """How A and B are taken: options, conjugates and the factor."""
    conjugates, options = [dice.random() < 0.3 for _ in range(2)], []
    for name, flag, conjugate in zip("ab", flags, conjugates):
        if flag and conjugate:
            options += [f"--adjoint-{name}"]
        else:
            options += [f"--transpose-{name}"] * flag + [f"--conjugate-{name}"] * conjugate
    alpha = complex(dice.randint(-2, 2), dice.randint(-2, 2)) if complex_ and dice.random() < 0.3 else 1
    return options + ([f"--alpha={alpha:g}"] if alpha != 1 else []), conjugates, alpha


def check(seed):
    dice = chance.Random(seed)
    order = dice.choice(("row", "row", "col"))
    shape_a, shape_b = shapes(dice)
    flags = [dice.random() < 0.25 for _ in range(2)]
    file = f"in-{seed}.h5"
    if order == "col":  # what is stored is multiplied the other way round
        shape_a, shape_b = shape_b, shape_a
    stored = [shape[:-2] + shape[:-3:-1] if flag and len(shape) >= 2 else shape
              for shape, flag in zip((shape_a, shape_b), flags)]
    a, b = (Operand(dice, file, name, shape, order) for name, shape in zip("AB", stored))
    options = ["--order", order, "--device", "cpu", "--force"]
    complex_ = "c" in (a.data.dtype.kind, b.data.dtype.kind) or dice.random() < 0.05
    taken, conjugates, alpha = product_options(dice, flags, complex_)
    options += taken
    ranks = dice.choice((0, 0, 0, 1, 2, 3, 4))
    out = dice.choice((f"c-{seed}.h5", f"c-{seed}.h5", f"c-{seed}.npy"))
    npy = out.endswith(".npy")
    try:
        c = alpha * expected(a.data, b.data, order, flags, conjugates)
    except ValueError:
        fails("multiply", a.name, b.name, "-o", out, *options, code=1, says="'", ranks=ranks)
        return "refused"
    if not npy and c.ndim > 0 and dice.random() < 0.3:
        options += ["--compress", "gzip:1"] if dice.random() < 0.5 else ["--chunk", "2x2" if c.ndim > 1 else "auto"]
    if dice.random() < 0.2:
        options += ["--verify"]
    add = None
    if dice.random() < 0.2:
        add = Operand(dice, file, "C0", list(c.shape), order)
        if c.ndim == 1 and "[" in add.name and "," in add.name:
            add = None  # a vector across its dataset, which may not lie as the product
        else:
            c = c + exact(add.data)
            options += ["--add", add.name]
    result = run("multiply", a.name, b.name, "-o", out, *options, ranks=ranks)
    if npy:
        got = np.load(out).T if order == "col" else np.load(out)
    else:
        with h5py.File(out) as made:
            got, names = numbers(made["C"])
        named = [x.fields for x in (a, b) if x.data.dtype.kind == "c"] + [add.fields if add else None]
        if names and named[0]:
            assert names == named[0], f"{result.command}: fields {names}"
    real = c.dtype.kind == "c" and dice.random() < 0.1
    if real:
        run("multiply", a.name, b.name, "-o", f"real-{out}", *options, "--real-part", ranks=ranks)
        with open(f"real-{out}", "rb") as file_:
            is_npy = file_.read(6) == b"\x93NUMPY"
        part = np.load(f"real-{out}") if is_npy else h5py.File(f"real-{out}")["C"][()]
        assert np.array_equal(part.T if is_npy and order == "col" else part, c.real), f"{result.command}: real part"
        os.remove(f"real-{out}")
    assert np.shape(got) == c.shape, f"{result.command}: {np.shape(got)} instead of {c.shape}"
    assert np.array_equal(got, c), f"{result.command}: other values"
    if dice.random() < 0.25:
        kind = "c16" if c.dtype.kind == "c" else "f8"
        with h5py.File(file, "a") as to:
            to.create_dataset("N", data=c.astype(kind))
        more = ["--add", add.name] if add else []
        flags_given = taken
        run("verify", a.name, b.name, f"{file}:/N", "--order", order, *flags_given, *more, ranks=ranks)
        run("compare", out if npy else f"{out}:/C", f"{file}:/N", "--order", order, ranks=ranks)
        if c.size > 0:
            with h5py.File(file, "a") as to:
                del to["N"]
                wrong = np.array(c, kind)
                wrong[tuple(dice.randrange(size) for size in c.shape)] += 1j if kind == "c16" else 1
                to.create_dataset("N", data=wrong)
            fails("verify", a.name, b.name, f"{file}:/N", "--order", order, *flags_given, *more, ranks=ranks, code=3,
                  says="FAILED")
    for name in os.listdir("."):
        if name.startswith((file, out)):
            os.remove(name)
    return "multiplied"


def check_one(seed):
    try:
        return check(seed)
    except BaseException:
        print(f"TSR_MATMUL_SEED={seed} TSR_MATMUL_CASES=1")
        raise


def test_many_small_products():
    """Several groups of products, each one launch."""
    dice = np.random.default_rng(SEED)
    a, b = (dice.integers(-4, 5, size=shape).astype("f8") for shape in ((600, 40, 30), (600, 30, 50)))
    with h5py.File("stacks.h5", "w") as to:
        to["A"], to["B"], to["T"] = a, b, a.swapaxes(1, 2)
        to["one"] = b[:1]
    for ranks, name, other, options in ((0, "A", "B", []), (3, "T", "B", ["--transpose-a"]),
                                        (2, "T", "one", ["--transpose-a", "--verify"])):
        run("multiply", f"stacks.h5:/{name}", f"stacks.h5:/{other}", "-o", "many.h5", "--force", "--device", "cpu",
            "--log", "many.json", *options, ranks=ranks)
        with h5py.File("many.h5") as made:
            assert (made["C"][:] == a @ (b if other == "B" else b[:1])).all(), (ranks, name, other)
        with open("many.json") as file:
            record = json.load(file)
        launches = [rank["tiles"] for rank in record["ranks"]]
        assert record["products"] == 600 and record["m"] == 40 and 2 <= sum(launches) <= 40, (launches, record)


def test_random_cases():
    done = {"multiplied": 0, "refused": 0}
    with concurrent.futures.ThreadPoolExecutor(3) as pool:  # a run waits more than it works
        for outcome in pool.map(check_one, range(SEED, SEED + CASES)):
            done[outcome] += 1
    assert not leftovers(), leftovers()
    assert done["multiplied"] >= CASES // 2, done
    print(done)


main(globals())
