"""Products are checked where they are made (--check device, the default). What BLAS makes wrong once is made again,
what comes out wrong twice ends the run with exit code 3. The record says so."""
import json
import os
import random

from lib import SOON_OVER, fails, h5py, leftovers, main, np, read, run, write

SHIM = os.environ["TSR_WRONG_SUMS"]
K = 96


def environment(**wrong):
    """BLAS makes a product with K terms wrong, as tests/app/preload/wrong_sums.c has it."""
    settings = {"TSR_WRONG_" + name: str(value) for name, value in wrong.items()}
    return {"LD_PRELOAD": SHIM, "TSR_WRONG_K": str(K), **settings}


def record(file="run.json"):
    with open(file) as f:
        return json.load(f)


def make(dtype="f8", m=150, n=130):
    random_numbers = np.random.default_rng(7)
    a = random_numbers.standard_normal((m, K)).astype(dtype)
    b = random_numbers.standard_normal((K, n)).astype(dtype)
    write("a.h5", a)
    write("b.h5", b)
    return a, b


def multiply(*options, ranks=0, wrong=None):
    run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--kernel", "blas", "--log", "run.json",
        *options, ranks=ranks, environment=wrong)
    return read("c.h5")


def test_right_products():
    for dtype in ("f4", "f8"):
        make(dtype)
        multiply()
        said = record()
        assert said["product_check"].startswith("PASSED: 150 rows of products"), said["product_check"]
        assert said["ranks"][0]["rows_checked"] == 150 and said["ranks"][0]["repaired"] == 0, said["ranks"]
        with h5py.File("c.h5") as f:
            assert f["C.run"].attrs["product_check"].startswith("PASSED"), dict(f["C.run"].attrs)
        multiply("--check", "off")
        assert record()["product_check"] == "not run", record()["product_check"]
        multiply("--check", "files")
        assert record()["check"].startswith("PASSED") and record()["product_check"].startswith("PASSED"), record()
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--check", "disk", code=2,
          says=["--check 'disk'", "device, files, off"])


def test_wrong_once():
    """Whatever element, on any rank, in any super-block or panel: C is that of an undisturbed run, to the bit."""
    numbers = random.Random(5)
    repaired = 0
    for dtype in ("f4", "f8"):
        make(dtype)
        right = multiply().tobytes()
        for _ in range(6):
            c = multiply(wrong=environment(AT=numbers.randrange(150 * 130), SHARE=numbers.choice((0.05, -1, 1e9))))
            assert c.tobytes() == right, "C was not made again"
            assert record()["ranks"][0]["repaired"] == 1 and "made again" in record()["product_check"], record()
            repaired += 1
    right = multiply(ranks=2).tobytes()
    for rank in range(2):
        c = multiply("--trace", "trace.json", ranks=2, wrong=environment(AT=numbers.randrange(50 * 130), RANK=rank))
        assert c.tobytes() == right and record()["ranks"][0]["repaired"] == 1, (rank, record()["product_check"])
    assert repaired == 12


def changes(found, right):
    """The largest change of an element over the typical one of its row."""
    with np.errstate(all="ignore"):
        typical = np.sqrt(np.mean(np.square(right, dtype="f8"), axis=1, keepdims=True))
        change = np.abs(found.astype("f8") - right) / typical
    return np.where(np.isnan(change), np.inf, change).max()


def test_flips():
    """One bit of a panel, after the check has read it, or of the accumulators: what changes an element of C by more
    than a hundredth of its row's typical one is found and made again; smaller ones may stay. TSR_FLIPS: how many."""
    numbers = random.Random(11)
    repaired = left = unchanged = 0
    for dtype, bits in (("f4", 32), ("f8", 64)):
        make(dtype)
        right = multiply()
        for _ in range(int(os.environ.get("TSR_FLIPS", "24")) // 2):
            flip = environment(AT=numbers.randrange(1 << 30), BIT=numbers.randrange(bits), WHAT=numbers.choice("ABC"))
            change = changes(multiply("--check", "off", wrong=flip), right)
            c = multiply(wrong=flip)
            made = record()["ranks"][0]["repaired"]
            assert made == 1 or change <= 0.01, (flip, change)
            assert c.tobytes() == right.tobytes() if made else changes(c, right) <= 0.01, (flip, change)
            repaired += made
            left += made == 0 and change > 0
            unchanged += change == 0
    print(f"{repaired} flipped bits made again, {left} small ones stayed, {unchanged} changed nothing")
    assert repaired >= 4, "the test tries little"


def test_digest():
    """C's digest is that of C, and not of what was written first."""
    make()
    multiply("--digest", ranks=2)
    right = record()["digest"]
    multiply("--digest", ranks=2, wrong=environment(AT=3, RANK=1))
    assert record()["ranks"][0]["repaired"] == 1 and record()["digest"] == right, record()
    run("verify", "--digest", right, "c.h5")


def test_wrong_without_a_check():
    """The shim does what it says: without the check C is wrong."""
    make()
    right = multiply("--check", "off")
    assert not np.array_equal(multiply("--check", "off", wrong=environment(AT=77)), right)


def test_wrong_twice():
    """Nothing is published, and the message names rank, host and device."""
    make()
    for ranks in (0, 2):
        for file in ("c.h5", "run.json"):
            if os.path.exists(file):
                os.remove(file)
        fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--device", "cpu", "--kernel", "blas", "--log", "run.json",
              code=3, says=[f"rank {1 if ranks else 0} on ", "wrong product twice", "not published"], ranks=ranks,
              environment=dict(SOON_OVER, **environment(AT=5, COUNT=2, RANK=1 if ranks else 0)))
        assert not os.path.exists("c.h5") and not leftovers(), os.listdir(".")
        assert record()["status"] == "check failed", record()


def test_split_k():
    """A wrong product of any of the ranks whose sums are added, which each write a part of what comes of it."""
    random_numbers = np.random.default_rng(13)
    write("a.h5", random_numbers.standard_normal((150, 2 * K)))
    write("b.h5", random_numbers.standard_normal((2 * K, 130)))
    for ranks, grid, wrong_ranks in ((2, "1x1x2", (0, 1)), (4, "2x1x2", (1, 2))):
        right = multiply("--grid", grid, ranks=ranks)
        for rank in wrong_ranks:
            wrong = environment(AT=9 + 2000 * rank, RANK=rank)
            found = multiply("--grid", grid, "--check", "off", ranks=ranks, wrong=wrong)
            assert np.count_nonzero(found != right) == 1, "one element of one rank's sums"
            c = multiply("--grid", grid, ranks=ranks, wrong=wrong)
            assert c.tobytes() == right.tobytes(), (grid, rank)
            assert record()["ranks"][0]["repaired"] == 1, record()["product_check"]
    os.remove("c.h5")
    for rank in range(2):
        fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--device", "cpu", "--kernel", "blas", "--grid", "1x1x2",
              code=3, ranks=2, says=[f"rank {rank} on ", "wrong product twice"],
              environment=dict(SOON_OVER, **environment(AT=5, COUNT=2, RANK=rank)))
        assert not os.path.exists("c.h5") and not leftovers(), os.listdir(".")


def test_stacks_and_gram():
    """Of products that are made one after the other, the wrong ones are made again; of a Gram matrix both halves."""
    random_numbers = np.random.default_rng(3)
    stack = random_numbers.standard_normal((3, 40, K))
    write("a.h5", stack)
    write("b.h5", random_numbers.standard_normal((3, K, 30)))
    right = multiply().tobytes()
    for first in range(3):
        c = multiply(wrong=environment(AT=33, FIRST=first))
        assert c.tobytes() == right and record()["ranks"][0]["repaired"] >= 1, (first, record()["product_check"])
    make()
    run("multiply", "a.h5", "--gram", "-o", "g.h5", "--force", "--device", "cpu", "--kernel", "blas")
    gram = read("g.h5").tobytes()
    run("multiply", "a.h5", "--gram", "-o", "g.h5", "--force", "--device", "cpu", "--kernel", "blas", "--log",
        "run.json", environment=environment(AT=33))
    assert read("g.h5").tobytes() == gram and record()["ranks"][0]["repaired"] == 1, record()["product_check"]


def test_chunks():
    """Chunks are written once: a wrong product ends the run."""
    make()
    fails("multiply", "a.h5", "b.h5", "-o", "d.h5", "--chunk", "64x64", "--device", "cpu", "--kernel", "blas", code=3,
          says=["wrong product", "chunks"], environment=environment(AT=5))
    assert not os.path.exists("d.h5") and not leftovers(), os.listdir(".")


def test_resume():
    """What the check doubts is no part that a later run takes for whole."""
    make()
    right = multiply().tobytes()
    os.remove("c.h5")
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--resume", "--device", "cpu", "--kernel", "blas", code=3,
          says="wrong product twice", environment=environment(AT=5, COUNT=2))
    run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--resume", "--device", "cpu", "--kernel", "blas")
    assert read("c.h5").tobytes() == right
    os.remove("c.h5")


def test_resume_split_k():
    """Where ranks share the terms of a sum, what the check of one of them doubts is no part of any: here the first
    writes all of C."""
    random_numbers = np.random.default_rng(11)
    write("ka.h5", random_numbers.standard_normal((1, 2 * K)))
    write("kb.h5", random_numbers.standard_normal((2 * K, 2400)))
    command = ("multiply", "ka.h5", "kb.h5", "-o", "k.h5", "--resume", "--device", "cpu", "--kernel", "blas", "--grid",
               "1x1x2", "--panel", str(K), "--memory", "120K")
    run(*command, ranks=2)
    right = read("k.h5").tobytes()
    os.remove("k.h5")
    fails(*command, code=75, says="% of C is kept", ranks=2, environment=environment(RANK=1, FIRST=4, STOP=12))
    run(*command, "--log", "run.json", ranks=2)
    assert sum(rank["flops"] for rank in record()["ranks"]) < 2 * 2400 * 2 * K, record()["ranks"]  # it went on
    assert read("k.h5").tobytes() == right, "what a rank made wrong was taken for whole"


main(globals())
