"""exact checks its own products (docs/exact.md): what goes wrong in one once is made again, what does so twice ends the
run with exit code 3. The program of this test flips bits in them."""
import json
import os
import random

from lib import SOON_OVER, fails, main, np, read, run, write

M, N, K = 150, 130, 200
LINES, STEP = 129, 256  # of the CPU's sums, and its integers (kernels/gemm/exact/exact_cpu_residues.h)


def flip(place, row, col, bit, **settings):
    """A bit of an integer of A or B, or of a sum of residues modulo 255, which is the second modulus, in a block's
    memory."""
    at, bits = ((LINES + row) * LINES + col, 32) if place == "C" else (row * STEP + col, 64)
    settings = {"TSR_FLIP_" + name: str(value) for name, value in settings.items()}
    return {"TSR_FLIP_PLACE": place, "TSR_FLIP_BIT": str(at * bits + bit), **settings}


def record():
    with open("run.json") as f:
        return json.load(f)


def make(dtype, k=K, m=M, n=N):
    numbers = np.random.default_rng(7)
    write("a.h5", numbers.standard_normal((m, k)).astype(dtype))
    write("b.h5", numbers.standard_normal((k, n)).astype(dtype))


COMMAND = ["multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--kernel", "exact", "--log",
           "run.json"]


def multiply(*options, ranks=0, wrong=None):
    run(*COMMAND, *options, ranks=ranks, environment=wrong)
    return read("c.h5").tobytes()


def test_right():
    for dtype in ("f4", "f8"):
        make(dtype)
        multiply()
        said = record()
        assert said["product_check"] == f"PASSED: {M} rows of products add up exactly", said["product_check"]
        assert said["ranks"][0]["rows_checked"] == M and said["ranks"][0]["repaired"] == 0, said["ranks"]
        multiply("--check", "off")
        assert record()["product_check"] == "not run", record()["product_check"]
        multiply("--check", "files")
        said = record()
        assert said["check"].startswith("PASSED") and "of their bound" in said["product_check"], said


def test_bench():
    """A benchmark makes nothing again: it ends."""
    fails("bench", "multiply", "--device", "cpu", "--kernel", "exact", "--type", "f64", "--shape", f"{M}x{N}x{K}",
          "--check", "--no-check", "--repeat", "2", environment=flip("C", 1, 1, 3), code=3,
          says=["the check doubts", "of a product, the first from (0, 0) on"])


def test_wrong_once():
    """Bits of every place, on any rank, in any block: without the check C is another, with it C is right."""
    numbers = random.Random(3)
    for dtype in ("f4", "f8"):
        make(dtype)
        right = multiply()
        for place in "ABC" * 3:
            bit = numbers.randrange(30) if place == "C" else numbers.randrange(24, 60)
            wrong = flip(place, numbers.randrange(2), numbers.randrange(2), bit, FIRST=numbers.randrange(4))
            assert multiply("--check", "off", wrong=wrong) != right, wrong
            assert multiply(wrong=wrong) == right, (wrong, record()["product_check"])
            assert record()["ranks"][0]["repaired"] == 1 and "made again" in record()["product_check"], record()
    make("f8", 16384 + 64)  # two ranges, on a rank each
    right = multiply("--reproducible")
    for rank in (0, 1):
        wrong = flip("C", 1, 1, 3, RANK=rank)
        made = multiply("--reproducible", "--grid", "1x1x2", ranks=2, wrong=wrong)
        assert made == right and sum(r["repaired"] for r in record()["ranks"]) == 1, record()["product_check"]


def test_wrong_twice():
    make("f8")
    for place in "ABC":
        fails(*COMMAND, code=3, environment=flip(place, 0, 1, 30, COUNT=1000),
              says=["made a wrong product twice", "rows of C, from (0, 0) on, do not add up; C is not published"])


def test_shared_k():
    """A wrong product of any of three ranks whose sums are passed on, in any super-block."""
    numbers = random.Random(4)
    make("f4", 2 * 16384 + 64, 140, 9)
    shared = ("--reproducible", "--grid", "1x1x3", "--memory", "24M")
    right = multiply("--reproducible")
    for rank in range(3):
        wrong = flip("C", numbers.randrange(9), numbers.randrange(9), 20, RANK=rank, FIRST=rank % 2)
        assert multiply(*shared, "--check", "off", ranks=3, wrong=wrong) != right, wrong
        assert multiply(*shared, ranks=3, wrong=wrong) == right, (wrong, record()["product_check"])
        assert sum(r["repaired"] for r in record()["ranks"]) == 1, record()["product_check"]
        fails(*COMMAND, *shared, code=3, ranks=3, says=[f"rank {rank} on ", "made a wrong product twice"],
              environment=dict(SOON_OVER, **wrong, TSR_FLIP_COUNT="1000"))


def test_shared_k_resume():
    """What the first rank doubts is no part for the last, which writes C: it is stopped before it makes it again."""
    make("f2", 2 * 16384 + 64, 900, 9)
    shared = ("--type", "f32", "--reproducible", "--grid", "1x1x3", "--memory", "30M", "--resume")
    right = multiply(*shared, ranks=3)
    whole = sum(rank["flops"] for rank in record()["ranks"])
    os.remove("c.h5")
    fails(*COMMAND, *shared, code=75, says="% of C is kept", ranks=3,
          environment=flip("C", 1, 1, 20, FIRST=5, STOP=6))
    assert multiply(*shared, ranks=3) == right, "what a rank made wrong was taken for whole"
    assert sum(rank["flops"] for rank in record()["ranks"]) < whole, "nothing was taken over"


main(globals())
