"""--check files: what is written to C's file is compared with what the file holds. What changes on the way, or in the
file, is made again, and ends the run with exit code 3 where it cannot be; --check device does not see it."""
import json
import os
import random

from lib import SOON_OVER, fails, h5py, leftovers, main, np, run, write

SHIM = os.environ["TSR_CHANGED_OUTPUT"]
SHAPE = (150, 130)


def environment(at, bit, count=1):
    return dict(SOON_OVER, LD_PRELOAD=SHIM, TSR_CHANGE_AT=at, TSR_CHANGE_BIT=str(bit), TSR_CHANGE_COUNT=str(count))


def make(dtype="f8"):
    """Integers, whose products are the same on any number of ranks."""
    random_numbers = np.random.default_rng(7)
    write("a.h5", random_numbers.integers(-9, 10, (SHAPE[0], 40)).astype(dtype))
    write("b.h5", random_numbers.integers(-9, 10, (40, SHAPE[1])).astype(dtype))


def multiply(output, *options, ranks=0, changed=None, check="files"):
    done = run("multiply", "a.h5", "b.h5", "-o", output, "--force", "--device", "cpu", "--kernel", "blas", "--log",
               "run.json", "--check", check, *options, ranks=ranks, environment=changed)
    return done


def record():
    with open("run.json") as file:
        return json.load(file)


def place(output):
    """Where C begins in its file."""
    if output.endswith(".npy"):
        return os.path.getsize(output) - SHAPE[0] * SHAPE[1] * 8
    with h5py.File(output) as file:
        return file["C"].id.get_offset()


def test_changed():
    """Whatever bit, on its way or in the file, on any number of ranks: C is that of an undisturbed run."""
    make()
    numbers = random.Random(3)
    for output in ("c.h5", "c.npy"):
        multiply(output)
        assert record()["check"].startswith("PASSED") and not record()["warnings"], record()
        assert all(rank["repaired"] == 0 for rank in record()["ranks"])
        right = open(output, "rb").read()[place(output):][:SHAPE[0] * SHAPE[1] * 8]
        digest = None
        for turn in range(6):
            bit = 8 * place(output) + numbers.randrange(64 * SHAPE[0] * SHAPE[1])
            at = ("write", "sync")[turn % 2]
            ranks = turn % 3 if at == "write" else 0 # rank 0 may bring C to storage before rank 1 has written
            multiply(output, "--digest", ranks=ranks, changed=environment(at, bit))
            found = open(output, "rb").read()[place(output):][:len(right)]
            assert found == right, "C was not made again"
            assert sum(rank["repaired"] for rank in record()["ranks"]) == 1, record()["ranks"]
            assert "made again" in record()["warnings"], record()["warnings"]
            assert digest in (None, record()["digest"]), "the digest is of what was written first"
            digest = record()["digest"]
        run("verify", "--digest", digest, output)


def test_device_does_not_see_it():
    """The shim does what it says."""
    make()
    multiply("c.npy")
    right = np.load("c.npy")
    bit = 8 * place("c.npy") + 64 * 77 + 55
    for at in ("write", "sync"):
        multiply("c.npy", changed=environment(at, bit), check="device")
        assert np.count_nonzero(np.load("c.npy") != right) == 1 and np.load("c.npy").flat[77] != right.flat[77], at


def test_read_wrong():
    """What is changed between A's file and the device makes a product that is right where it is made: --check files
    alone finds it. The largest exponent bit of an element: nothing small."""
    make()
    np.save("a.npy", np.arange(1.0, 6001).reshape(SHAPE[0], 40))
    bit = 8 * (os.path.getsize("a.npy") - 48000) + 64 * 1234 + 60
    options = ["multiply", "a.npy", "b.h5", "-o", "c.npy", "--force", "--device", "cpu"]
    run(*options)
    right = np.load("c.npy")
    run(*options, environment=environment("read", bit))
    assert np.count_nonzero(np.load("c.npy") != right) > 100, "the shim changes nothing"
    run(*options, "--check", "files", environment=environment("read", bit))
    assert np.array_equal(np.load("c.npy"), right), "C was not made again"


def test_changed_twice():
    """Nothing is published, and the message names file, part and rank."""
    make()
    multiply("c.npy")
    bit = 8 * place("c.npy") + 64 * 19000 # in the last rows: the second rank's
    os.remove("c.npy")
    for ranks in (0, 2):
        for at in ("write", "sync")[:1 if ranks else 2]:
            fails("multiply", "a.h5", "b.h5", "-o", "c.npy", "--device", "cpu", "--kernel", "blas", "--check", "files",
                  code=3, ranks=ranks, environment=environment(at, bit, 100),
                  says=["FAILED: rank ", "c.npy'", "holds something else again", " elements at (", "not published"])
            assert not os.path.exists("c.npy") and not leftovers(), os.listdir(".")


def test_chunks():
    """Of chunks each is read and decoded; they are written once, so a changed one ends the run."""
    make()
    numbers = random.Random(4)
    for options in (["--chunk", "64x64"], ["--compress", "gzip:1", "--chunk", "50x40"]):
        multiply("c.h5", *options)
        with h5py.File("c.h5") as file:
            infos = [file["C"].id.get_chunk_info(i) for i in range(file["C"].id.get_num_chunks())]
        os.remove("c.h5")
        for at in ("write", "sync"):
            info = numbers.choice(infos)
            bit = 8 * info.byte_offset + numbers.randrange(4 * info.size)
            if "--compress" not in options:
                bit = 8 * info.byte_offset + 9 # of the first element, and not of what fills an edge
            fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--device", "cpu", *options, "--check", "files",
                  code=3, says="holds something else", environment=environment(at, bit))
            assert not os.path.exists("c.h5") and not leftovers(), os.listdir(".")


def test_stacks_and_gram():
    random_numbers = np.random.default_rng(3)
    write("a.h5", random_numbers.standard_normal((3, 40, 20)))
    write("b.h5", random_numbers.standard_normal((3, 20, 30)))
    multiply("s.npy")
    right = np.load("s.npy")
    for matrix in range(3):
        bit = 8 * (os.path.getsize("s.npy") - right.nbytes) + 64 * (matrix * 1200 + 33)
        multiply("s.npy", changed=environment("write", bit))
        assert np.array_equal(np.load("s.npy"), right) and record()["ranks"][0]["repaired"] == 1, record()["warnings"]
    write("a.h5", random_numbers.standard_normal((90, 20)))
    gram = ["multiply", "a.h5", "--gram", "-o", "g.npy", "--force", "--device", "cpu", "--check", "files", "--log",
            "run.json"]
    run(*gram)
    right = np.load("g.npy")
    for element in (5 * 90 + 80, 80 * 90 + 5, 7 * 90 + 7):
        bit = 8 * (os.path.getsize("g.npy") - right.nbytes) + 64 * element
        run(*gram, environment=environment("sync", bit))
        assert np.array_equal(np.load("g.npy"), right) and record()["ranks"][0]["repaired"] == 1, record()["warnings"]


def test_resume():
    """What was changed is made again, with --resume, too; a later run finds C whole."""
    make()
    multiply("c.npy")
    right = np.load("c.npy")
    os.remove("c.npy")
    bit = 8 * 128 + 64 * 1000
    multiply("c.npy", "--resume", changed=environment("write", bit))
    assert np.array_equal(np.load("c.npy"), right) and record()["ranks"][0]["repaired"] == 1


main(globals())
