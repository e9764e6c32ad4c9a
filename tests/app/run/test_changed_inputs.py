"""Inputs that change while a run reads them: nothing comes of it, and the message says which file and what changed.
What does not touch the data does no harm. Changes come at definite moments (changing_input.c)."""
import os
import time

from lib import SOON_OVER, fails, leftovers, main, np, random, read, run, write

SHIM = os.environ["TSR_CHANGING_INPUT"]
NFS, EXT4 = "6969", "EF53"  # types of file systems
PARALLEL = "parallel" in run("--version").out
A = random.integers(-4, 5, size=(8, 64)).astype("f8")
B = random.integers(-4, 5, size=(64, 1024)).astype("f8")
OTHER = B + 1


def make(**how):
    """a.h5, in.h5, which will change, in.h5.new of the same size, and an earlier c.h5."""
    for name in ("a.h5", "in.h5", "in.h5.new", "c.h5"):
        if os.path.exists(name):
            os.remove(name)
    write("a.h5", A), write("in.h5", B, **how), write("in.h5.new", OTHER, **how), write("c.h5", np.ones((2, 2)))


def change(at, by, count=2, **more):
    return dict(SOON_OVER, LD_PRELOAD=SHIM, TSR_CHANGE="in.h5", TSR_CHANGE_AT=at, TSR_CHANGE_BY=by,
                TSR_CHANGE_COUNT=str(count), **more)


MULTIPLY = ("multiply", "a.h5", "in.h5", "-o", "c.h5", "--force", "--device", "cpu", "--panel", "16")
WHAT = {"overwrite": ": modified ", "touch": ": modified ", "grow": "bytes became", "replace": ": inode "}


def refused(at, by, *options, ranks=0, how=None, **more):
    """No new C, the earlier one as it was, and one line that names the file and what changed."""
    make(**(how or {}))
    says = ["'in.h5' changed during the run: ", WHAT[by], "run again while no program writes or replaces it"]
    result = fails(*MULTIPLY, *options, ranks=ranks, code=1, says=says, environment=change(at, by, **more))
    assert np.array_equal(read("c.h5"), np.ones((2, 2))), result
    assert not leftovers(), leftovers()


def allowed(*options, ranks=0, environment):
    make()
    result = run(*MULTIPLY, *options, ranks=ranks, environment=environment)
    assert np.array_equal(read("c.h5"), A @ B), result
    assert not leftovers(), leftovers()


CHUNKS = dict(chunks=(64, 512), compression="gzip")


def test_while_it_is_described():
    for by in ("overwrite", "grow"):
        refused("describe", by, HDF5_USE_FILE_LOCKING="BEST_EFFORT")


def test_before_it_is_opened():
    for by in ("overwrite", "grow", "touch", "replace"):
        refused("output", by)
    refused("output", "replace", "--io", "hdf5")
    refused("output", "overwrite", how=CHUNKS)


def test_between_rank_0_and_the_others():
    refused("open", "overwrite", ranks=2)
    refused("open", "replace", ranks=2)
    refused("open", "replace", ranks=2, how=CHUNKS)
    refused("open", "touch", "--io", "hdf5", ranks=2)
    if PARALLEL:
        refused("open", "replace", "--io", "mpio", ranks=2)


def test_between_two_ways_of_opening():
    """The descriptor that goes around the page cache is of the same file."""
    refused("around", "replace", TSR_NETWORK=EXT4)


def test_while_it_is_read():
    for by in ("overwrite", "touch", "grow"):
        refused("read", by)
    refused("read", "overwrite", "--io", "hdf5")
    refused("read", "overwrite", "--chunk", "8x256", ranks=2)  # closes what it read before chunks are placed
    refused("read", "touch", how=CHUNKS, count=1)
    if PARALLEL:
        refused("read", "touch", "--io", "mpio", ranks=2, count=1)


def test_moved_in_the_file():
    """Size and time are put back: what HDF5 opens by name is elsewhere in the file."""
    for options, how in ((("--io", "hdf5"), {}), (("--io", "hdf5"), CHUNKS)):
        make()
        for name, order in (("in.h5", "CD"), ("in.h5.new", "DC")):
            os.remove(name)
            for dataset in order:
                write(name, B, dataset, **how)
        assert os.path.getsize("in.h5") == os.path.getsize("in.h5.new")
        fails("multiply", "a.h5", "in.h5:/C", "-o", "c.h5", "--force", *options, code=1,
              says=["'in.h5' changed during the run: '/C' was at byte "], environment=change("output", "restore"))


def test_while_it_is_checked():
    for by in ("overwrite", "touch"):
        refused("check", by, "--verify")


def test_verify_and_compare():
    make()
    run(*MULTIPLY)
    verify, compare = ("verify", "a.h5", "in.h5", "c.h5"), ("compare", "in.h5", "in.h5")
    cases = ((verify, "open", "overwrite", 2), (verify, "read", "overwrite", 0), (verify, "read", "touch", 2),
             (compare, "open", "overwrite", 2), (compare, "read", "touch", 0))
    for command, at, by, ranks in cases:
        result = fails(*command, ranks=ranks, code=1, says=["'in.h5' changed during the run: modified "],
                       environment=change(at, by, count=1))
        assert result.out == "", result
        write("in.h5", B)


def test_replaced_after_it_was_opened():
    """What was opened is still there."""
    for options in ((), ("--io", "hdf5")):
        allowed(*options, environment=change("read", "replace"))
        assert not os.path.exists("in.h5.new"), "it was not replaced"


def test_nothing_changes():
    for ranks in (0, 2):
        allowed("--verify", ranks=ranks, environment=change("read", "touch", count=1000000))


def test_output_among_inputs():
    """What a run writes is no change of what it reads."""
    make()
    write("c.h5", np.ones((8, 1024)))
    run(*MULTIPLY, "--add", "c.h5:/C", "-o", "c.h5:/C", "--verify", ranks=2)
    assert np.array_equal(read("c.h5"), A @ B + 1)
    run("multiply", "a.h5", "in.h5", "-o", "in.h5:/P", "--verify", ranks=2)
    assert np.array_equal(read("in.h5", "P"), A @ B)


def test_another_machine():
    """Devices are numbered by each machine for itself; on one machine another number is another file system."""
    allowed(ranks=2, environment=change("never", "touch", TSR_OTHER_DEVICE="1", TSR_OTHER_MACHINE="1"))
    # one rank alone finds a difference: none waits for it
    for options in ((), ("--io", "mpio")) if PARALLEL else ((),):
        make()
        fails(*MULTIPLY, *options, ranks=2, code=1, says=["rank 1 on ", "'in.h5' changed during the run: device "],
              environment=change("never", "touch", TSR_OTHER_DEVICE="1"))
    make()
    fails(*MULTIPLY, ranks=2, code=1, says=["rank 1 on ", "'in.h5' is not here what it was for rank 0: inode ",
                                                   "a copy on each node is not one file"],
          environment=change("never", "touch", TSR_OTHER_INODE="1", TSR_OTHER_MACHINE="1"))


def test_a_file_system_that_remembers():
    """A network's file system may answer with what was true some seconds ago."""
    start = time.monotonic()
    allowed(ranks=2, environment=change("never", "touch", TSR_NETWORK=NFS, TSR_STALE="1"))
    assert time.monotonic() - start >= 1
    make()
    start = time.monotonic()
    fails(*MULTIPLY, ranks=2, code=1, says=["'in.h5' changed during the run: modified "],
          environment=change("never", "touch", TSR_NETWORK=NFS, TSR_STALE="60"))
    assert time.monotonic() - start >= 5


main(globals())
