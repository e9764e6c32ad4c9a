"""--check files compares C as its file holds it with A and B, which are read again, by the device that multiplied them.
Right products pass, whatever their types, order, ranks and files. Wrong elements of the file are found, and so is what
changes while files are read again. Products that the device cannot judge so go to the host's check, as before.
TSR_DEVICE names the device: cpu, or cuda, which is the host's emulation of a GPU."""
import json
import os
import random

from lib import fails, leftovers, main, np, run

SHIM = os.environ["TSR_CHANGED_OUTPUT"]
DEVICE = os.environ.get("TSR_DEVICE", "cpu")
BUS_ID = "0000:00:00.0"  # of the emulation
M, N, K = 90, 70, 40
BY_DEVICE = "as the device read A, B and C again"


def environment(at, bit, count=1, skip=0):
    return {"LD_PRELOAD": SHIM, "TSR_CHANGE_AT": at, "TSR_CHANGE_BIT": str(bit), "TSR_CHANGE_COUNT": str(count),
            "TSR_CHANGE_SKIP": str(skip)}


def make(seed, a_type="f8", b_type="f8", a_shape=(M, K), b_shape=(K, N)):
    numbers = np.random.default_rng(seed)
    np.save("a.npy", numbers.standard_normal(a_shape).astype(a_type))
    np.save("b.npy", numbers.standard_normal(b_shape).astype(b_type))


def command(*options, output="c.npy"):
    return ["multiply", "a.npy", "b.npy", "-o", output, "--force", "--device", DEVICE, "--log", "run.json", *options]


def record():
    with open("run.json") as file:
        return json.load(file)


def checked(*options, ranks=0, output="c.npy", by_device=True, said=None):
    run(*command(*(options or ["--check", "files"]), output=output), ranks=ranks, environment=said)
    found = record()
    assert found["check"].startswith("PASSED: every row"), found["check"]
    assert (BY_DEVICE in found["check"]) == by_device, (options, found["check"])
    assert found["check_seconds"] > 0, found["check_seconds"]
    return found


def test_right():
    """All types, orders, factors and files, on 1 to 4 ranks, split k among them: no alarm."""
    numbers = random.Random(1)
    for seed in range(14):
        types = numbers.choice(("f2", "f4", "f8", ">f4", "i2")), numbers.choice(("f4", "f8"))
        options = ["--check", "files"] if seed % 2 else ["--verify"]
        shapes = (M, K), (K, N)
        if seed % 3 == 0:
            options += ["--transpose-a"]
            shapes = (K, M), (K, N)
        if seed % 4 == 1:
            options += ["--alpha", str(numbers.choice((-0.3, 17, 1e-3)))]
        if seed % 4 == 2:
            options += ["--type", numbers.choice(("f16", "f32", "f64"))]
        if seed % 4 == 3:
            options += ["--memory", "200000", "--host-memory", "400000"] # several super-blocks and panels
        make(seed, *types, *shapes)
        output, chunks = (("c.npy", []), ("c.h5", []), ("c.h5", ["--chunk", "16x32"]))[seed % 3]
        ranks = (0, 2, 3, 4)[seed % 4]
        found = checked(*options, *chunks, ranks=ranks, output=output)
        said = found["warnings"]
        assert not said or "f64" in said or "ranks share a GPU" in said, said
    make(3)
    for ranks in (2, 4):
        found = checked("--check", "files", "--grid", f"1x1x{ranks}", "--panel", "5", ranks=ranks)
        assert found["grid_k"] == ranks, found


def test_stacks():
    make(4, a_shape=(3, M, K), b_shape=(3, K, N))
    for ranks in (0, 3):
        checked(ranks=ranks)


def test_host():
    """What the device does not judge: the host's check says it."""
    make(5)
    checked("--check", "off", "--verify", by_device=False)
    checked("--check", "files", "--alpha", "1e9", by_device=False)
    np.save("c0.npy", np.ones((M, N)))
    checked("--check", "files", "--add", "c0.npy", by_device=False)
    a = np.load("a.npy")
    a[3, 4] = np.nan
    np.save("a.npy", a)
    checked(by_device=False)
    make(5, "c16", "c16")
    checked(by_device=False)
    make(6)
    run("multiply", "a.npy", "--gram", "-o", "c.npy", "--force", "--device", DEVICE, "--check", "files", "--log",
        "run.json")
    assert record()["check"].startswith("PASSED") and BY_DEVICE not in record()["check"], record()["check"]


def test_read_again():
    """One bit of A as it is read for the check, and not before: the second look finds C right; a warning says it."""
    make(7)
    for ranks in (0, 2):
        found = checked("--check", "files", ranks=ranks, said=environment("read", bit_of_a(), skip=1))
        assert "differed from A and B" in found["warnings"], found["warnings"]
        assert all(rank["repaired"] == 0 for rank in found["ranks"]), found["ranks"]


def bit_of_a(element=1234):
    """Of its exponent."""
    return 8 * (os.path.getsize("a.npy") - 8 * M * K) + 64 * element + 60


def test_wrong_in_the_file():
    """A product that is wrong by what the file was made of, on any rank: it is made again, from the files, and C is
    right. Chunks are written once: exit code 3, and nothing is published."""
    make(8)
    run(*command("--check", "off"))
    right = np.load("c.npy")
    for ranks, options in ((0, []), (2, []), (4, []), (2, ["--grid", "1x1x2"]), (0, ["--memory", "200000"]),
                           (0, ["--resume"])):
        os.remove("c.npy") # --resume would find it complete
        element = 405 if "--grid" in options else 1234 # that the rank reads, too, which compares its row
        found = checked("--check", "files", *options, ranks=ranks, said=environment("read", bit_of_a(element)))
        assert sum(rank["repaired"] for rank in found["ranks"]) >= 1, found["ranks"]
        assert "not what A and B make" in found["warnings"] and "made again" in found["warnings"], found["warnings"]
        assert np.allclose(np.load("c.npy"), right, rtol=1e-9, atol=1e-9), options
    for name in ["c.h5", *leftovers()]: # of test_right, and the journal
        if os.path.exists(name):
            os.remove(name)
    for ranks in (0, 2):
        fails(*command("--check", "files", "--chunk", "16x32", output="c.h5"), code=3, ranks=ranks,
              says=["FAILED: ", "are not what A and B make", "nothing was written"],
              environment=environment("read", bit_of_a()))
        assert not os.path.exists("c.h5") and not leftovers(), os.listdir(".")


def test_wrong_twice():
    """What is made again comes out wrong, too: of three reads the first is changed, the others are looks. The message
    names rank, host and device."""
    make(8)
    os.remove("c.npy")
    for ranks in (0, 2):
        said = fails(*command("--check", "files"), code=3, ranks=ranks,
                     says=["FAILED: ", "are again not what A and B make", "nothing was written", "rank "],
                     environment=dict(environment("read", bit_of_a(), count=2), TSR_CHANGE_EVERY="3"))
        named = said.error.partition("rank ")[2].partition(")")[0]
        assert " on " in named and " (" in named and (BUS_ID in named) == (DEVICE == "cuda"), said.error
        assert not os.path.exists("c.npy") and not leftovers(), os.listdir(".")


def test_read_once():
    """C is read once for both comparisons, with what was written and with A and B; once more where it changed."""
    make(9)
    flip = environment("sync", 8 * 128 + 64 * 333)
    for ranks, options, changed in ((0, [], {}), (2, [], {}), (2, ["--grid", "1x1x2"], {}), (3, ["--panel", "7"], {}),
                                    (0, [], flip)):
        if os.path.exists("reads"):
            os.remove("reads")
        found = checked("--check", "files", *options, ranks=ranks,
                        said=dict(changed, LD_PRELOAD=SHIM, TSR_CHANGE_READS=os.path.abspath("reads")))
        with open("reads") as file:
            times = sum(int(line) for line in file) / (8 * M * N)
        assert (times > 1.9) if changed else (1 <= times < 1.5), (options, times)
        assert sum(rank["repaired"] for rank in found["ranks"]) == (1 if changed else 0), found["ranks"]


main(globals())
