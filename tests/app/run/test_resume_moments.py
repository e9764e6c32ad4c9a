"""--resume: a run that ends in any call that changes a file beside its output, by SIGKILL, with half a write or by a
stop signal, goes on, and C has the bytes of an undisturbed run: contiguous, .npy, and in chunks, whose encoded parts
wait in files with names; and where ranks share k. TSR_RESUME_SEED chooses the calls; it is printed."""
import json
import os
import random
import signal
import tempfile
import time

from lib import ENVIRONMENT, SOON_OVER, fails, h5py, integers, leftovers, main, np, read, run, write
from resumed import beside, ended, journals, records, start, stop_behind, unfinished, went_on

SEED = int(os.environ.get("TSR_RESUME_SEED", time.time_ns() % 1000000))
dice = random.Random(SEED)
reals = np.random.default_rng(SEED)
ENGINE = ("--device", "cpu", "--kernel", "reference", "--quiet")
# Sends wait for whoever receives, so that no rank is far ahead of one that stands still.
NOBODY_AHEAD = {"OMPI_MCA_btl_vader_eager_limit": "64", "OMPI_MCA_btl_sm_eager_limit": "64"}
PLAIN = ("--memory", "90K")
CHUNKS = ("--chunk", "40x48", "--compress", "gzip:1", "--memory", "1300K")


def product(out, *more):
    return ("multiply", "a.h5", "b.h5", "-o", out, "--resume", "--digest", *ENGINE, *more)


def calls_of(out, *options):
    """Calls of an undisturbed run that change files beside C; its bytes are kept as whole-OUT."""
    run(*product(out, *options), environment=ended(0, REPORT="calls"))
    with open("calls") as file:
        calls = int(file.read())
    os.rename(out, "whole-" + out)
    return calls


def check(out, what):
    """C is what the undisturbed run made, chunk by chunk, and nothing but the journal of a whole C lies beside it."""
    if out.endswith(".npy"):
        with open(out, "rb") as one, open("whole-" + out, "rb") as other:
            assert one.read() == other.read(), what
    else:
        with h5py.File(out) as one, h5py.File("whole-" + out) as other:
            c, whole = one["C"], other["C"]
            assert c[:].tobytes() == whole[:].tobytes() and "tessera_incomplete" not in c.attrs, what
            for i in range(whole.id.get_num_chunks() if whole.chunks else 0):
                mine, its = c.id.get_chunk_info(i), whole.id.get_chunk_info(i)
                assert mine.byte_offset == its.byte_offset and mine.size == its.size, (what, i)
                assert c.id.read_direct_chunk(mine.chunk_offset) == whole.id.read_direct_chunk(mine.chunk_offset), what
    assert len(journals(out)) == 1 and not unfinished(out) and not beside(out, ".chunks"), (what, leftovers())


def go_through(out, options, moments):
    """Each moment ends one run after the other, until C is whole, and so again. Returns how many runs it ended."""
    count = most = 0
    for call, how, ranks in moments:
        rank = dice.randrange(max(ranks, 1))
        what = f"seed {SEED}: {out}, call {call}, {how}, rank {rank} of {ranks}"
        began = time.monotonic()
        process = start(*product(out, *options), ranks=ranks, environment=ended(call, RANK=rank, **how))
        said = process.communicate(timeout=60)
        assert len(unfinished(out)) <= 1 and time.monotonic() - began < 30, (what, leftovers())
        if process.returncode == 0:
            most = max(most, went_on(out)[0])
            check(out, what)
            os.remove(out)
            continue
        assert process.returncode == 75 or "SIGNAL" not in how, (what, said)
        count += 1
    run(*product(out, *options))
    check(out, f"seed {SEED}: {out}, the last run")
    assert max(most, went_on(out)[0]) > 0, f"seed {SEED}: no run of {out} took over what another left"
    os.remove(out)
    return count


def chosen(calls, count, ranks=(0,)):
    """Moments over the run, and in the calls of its end, when C is put together and gets its name. The first stops it
    at a third, which every rank reaches, so that there is something to take over whatever the dice say."""
    torn, stops = {"TORN": 1}, {"SIGNAL": int(signal.SIGTERM)}
    early = [dice.randint(1, calls) for _ in range(count)]
    late = [calls - dice.randrange(min(calls, 14)) for _ in range(count // 2)]
    moments = [(call, dice.choice(({}, {}, torn, stops)), dice.choice(ranks)) for call in early + late]
    return [(calls // 3, stops, ranks[0])] + moments


def test_moments():
    print(f"test_resume_moments: TSR_RESUME_SEED={SEED}", flush=True)
    write("a.h5", integers(1201, 40))
    write("b.h5", integers(40, 1103))
    count = 0
    for out, options in (("c.npy", PLAIN), ("c.h5", PLAIN), ("k.h5", CHUNKS)):
        calls = calls_of(out, *options)
        assert calls > 40, f"{out}: only {calls} calls"
        count += go_through(out, options, chosen(calls, 20 if out == "k.h5" else 8))
    count += go_through("k.h5", CHUNKS, chosen(calls // 2, 6, ranks=(2, 3)))
    assert count > 30, count


def begin(out, call, **how):
    """A run in chunks that leaves some."""
    process = start(*product(out, *CHUNKS), environment=ended(call, **how))
    said = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGKILL, 75) and beside(out, ".chunks"), (said, leftovers())


def test_damaged_chunks():
    """Chunks that changed, are cut off or gone are made again, those of a later run count, and records that are none do
    no harm."""
    calls = calls_of("d.h5", *CHUNKS)
    for damage in ("flip", "cut", "gone"):
        begin("d.h5", calls * 3 // 4)
        begin("d.h5", calls // 8, SIGNAL=int(signal.SIGTERM))  # leaves files of its own
        spilled = beside("d.h5", ".chunks")
        assert spilled, leftovers()
        for name in spilled:
            size = os.path.getsize(name)
            if damage == "gone":
                os.remove(name)
            elif damage == "cut":
                os.truncate(name, size // 2)
            else:
                with open(name, "r+b") as file:
                    for at in range(30, size, 3000):
                        file.seek(at)
                        byte = file.read(1)
                        file.seek(at)
                        file.write(bytes([byte[0] ^ 4]))
        with open(journals("d.h5")[0], "ab") as file:
            file.write(os.urandom(700))
        run(*product("d.h5", *CHUNKS), ranks=2)
        if damage != "gone":
            assert went_on("d.h5")[0] > 0, f"nothing is left of what was {damage}"
        check("d.h5", damage)
        os.remove("d.h5")


def test_other_cut():
    """A run with other super-blocks makes some chunks again that are there: each is placed once."""
    calls = calls_of("o.h5", *CHUNKS)
    begin("o.h5", calls * 3 // 4)
    run(*product("o.h5", *CHUNKS[:-2], "--memory", "1250K"), ranks=3)
    check("o.h5", "other super-blocks")


def test_stack_in_a_file():
    """Chunks of a stack, into a file that holds other things and is not touched before C is whole; scales go with C."""
    write("sa.h5", integers(5 * 60, 50).reshape(5, 60, 50))
    write("mine.h5", np.arange(12.0).reshape(3, 4), "mine")
    more = ("--compress", "gzip", "--shuffle", "--chunk", "20x16", "--checksum")
    command = ("multiply", "sa.h5", "sb.h5", "-o", "mine.h5:/S/C", "--resume", *ENGINE, "--memory", "1300K", *more)
    write("sb.h5", integers(50, 64))
    with h5py.File("sb.h5", "a") as file:
        file["x"] = np.arange(64.0)
        file["x"].make_scale("x")
        file["C"].dims[1].attach_scale(file["x"])
    for call in (12, 30, 45):
        process = start(*command, environment=ended(call))
        process.communicate(timeout=60)
        with h5py.File("mine.h5") as file:
            assert list(file) == (["S", "mine", "x"] if process.returncode == 0 else ["mine"]), list(file)
    run(*command, ranks=2)
    exact = (read("sa.h5").astype("f8") @ read("sb.h5")).astype("f4")
    with h5py.File("mine.h5") as file:
        c = file["S/C"]
        assert c[:].tobytes() == exact.tobytes() and c.fletcher32 and c.shuffle and c.chunks == (1, 20, 16), c.chunks
        assert file["mine"].shape == (3, 4) and list(c.dims[2].keys()) == ["x"], list(file)
    assert not unfinished("mine.h5") and not beside("mine.h5", ".chunks"), leftovers()


BY_REFERENCE = ("ka.h5", "kb.h5", "--reproducible", "--kernel", "reference")
SHARE_K = {"exact.npy": ("ha.h5", "hb.h5", "--type", "f32", "--reproducible", "--memory", "30M"),
           "reference.h5": (*BY_REFERENCE, "--memory", "8M"),
           "chunks.h5": (*BY_REFERENCE, "--memory", "7M", "--chunk", "8x8", "--compress", "gzip:1"),
           "usual.h5": ("ia.h5", "ib.h5", "--kernel", "reference", "--memory", "60K")}


def sharing_k(out, where, *more):
    """Ranks and command of a product on a grid, such as "3 1x1x3"."""
    ranks, grid = where.split()
    return int(ranks), ("multiply", *SHARE_K[out], "-o", out, "--resume", "--device", "cpu", "--quiet", "--grid", grid,
                        *more)


def flops_of(record):
    with open(record) as file:
        return sum(rank["flops"] for rank in json.load(file)["ranks"])


def go_on_sharing_k(out, call, first, killed, last, asked=0):
    """While the last rank of the grid `first`, which writes, stands still in a call, rank `asked` hears that it is to
    stop. On the grid `killed` a rank that writes is killed; on the grid `last` C is made. Returns which share of the
    product was left for that."""
    what = f"seed {SEED}: {out}, {first}, {killed}, {last}"
    ranks, command = sharing_k(out, first)
    still = ended(call, RANK=ranks - 1, SIGNAL=int(signal.SIGSTOP))
    process = start(*command, ranks=ranks, environment=dict(NOBODY_AHEAD, **still))
    stop_behind(process, held=ranks - 1, asked=asked)
    said = process.communicate(timeout=60)
    assert process.returncode == 75 and "% of C is kept" in said[1], (what, said)
    if killed:
        ranks, command = sharing_k(out, killed)
        process = start(*command, ranks=ranks, environment=dict(SOON_OVER, **ended(2, RANK=ranks - 1)))
        said = process.communicate(timeout=60)
        assert process.returncode != 0, (what, said)
    ranks, command = sharing_k(out, last, "--log", "run.json")
    run(*command, ranks=ranks)
    check(out, what)
    left = flops_of("run.json") / flops_of("whole.json")
    assert left < 1, f"{what}: {left} of the product was left, {went_on(out)} taken over"
    os.remove(out)
    return left


def test_shared_k():
    """Ranks share k: one that is asked to stop tells those that add its sums, and what lacks some is no part of C. Real
    numbers where their sums have one order, else integers."""
    for name, *shape in (("ha.h5", 1100, 16400), ("hb.h5", 16400, 9)):
        write(name, reals.normal(size=shape).astype("f2"))
    for name, *shape in (("ka.h5", 64, 32800), ("kb.h5", 32800, 48)):
        write(name, reals.normal(size=shape).astype("f4"))
    write("ia.h5", integers(400, 90)), write("ib.h5", integers(90, 300))
    for out, call, *ways in (("exact.npy", 3, ("2 1x1x2", "", "2 1x1x2"), ("4 2x1x2", "2 1x1x2", "1 1x1x1")),
                             ("reference.h5", 40, ("3 1x1x3", "2 1x1x2", "3 1x1x3", 1)),
                             ("chunks.h5", 8, ("3 1x1x3", "", "4 2x1x2")),
                             ("usual.h5", 60, ("2 1x1x2", "", "2 1x1x2"), ("3 1x1x3", "4 1x2x2", "1 1x1x1"))):
        run(*sharing_k(out, "0 1x1x1", "--log", "whole.json")[1])
        os.rename(out, "whole-" + out)
        for way in ways:
            shares = []  # on a busy machine the other ranks may be through when they hear of the stop
            while not any(shares) and len(shares) < (1 if way[1] else 3):
                shares.append(go_on_sharing_k(out, call, *way))
            assert any(shares) or way[1], f"seed {SEED}: {out}, {way}: nothing was left in {len(shares)} tries"


def test_leftovers():
    """What was left is listed, refused with other filters and without --resume, and removed with --force."""
    calls = calls_of("l.h5", *CHUNKS)
    begin("l.h5", calls - 12)
    result = run("info", "l.h5")
    assert "unfinished /C, " in result.out and unfinished("l.h5")[0] in result.out, result
    fails(*product("l.h5", *CHUNKS, "--compress", "gzip:2"), code=1,
          says=["filters was gzip(1) and is gzip(2)", "--force"])
    fails(*product("l.h5", *CHUNKS, "--chunk", "40x40"), code=1,
          says=["chunks was 40x48 and is 40x40", "--force"])
    fails("multiply", "a.h5", "b.h5", "-o", "l.h5", *ENGINE, code=1, says=["--resume", "--force"])
    run("multiply", "a.h5", "b.h5", "-o", "l.h5", "--force", *ENGINE)
    assert not [name for name in leftovers() if ".l.h5" in name and not name.endswith(".parts")], leftovers()
    os.remove("l.h5")
    begin("l.h5", calls - 12)
    for name in unfinished("l.h5") + journals("l.h5"):  # by hand, and not all
        os.remove(name)
    assert beside("l.h5", ".chunks"), leftovers()
    run(*product("l.h5", *CHUNKS))
    check("l.h5", "after files of a run that is gone")


def stop_and_go_on(folder):
    """What several threads write in this folder is taken over: the sum of a part is that of all its bytes."""
    os.chdir(folder)
    write("a.h5", reals.normal(size=(3001, 8)))
    write("b.h5", reals.normal(size=(8, 2903)))
    for threads in ("4", "3"):
        options = ("--io-threads", threads)
        calls = calls_of("t.npy", *options)
        process = start(*product("t.npy", *options), environment=ended(2 * calls // 3, SIGNAL=int(signal.SIGTERM)))
        said = process.communicate(timeout=60)
        left = records("t.npy")
        assert process.returncode == 75 and left > 0, (said, left)
        run(*product("t.npy", *options))
        assert went_on("t.npy")[0] == left, (went_on("t.npy"), left)
        check("t.npy", threads)
        os.remove("t.npy")


def test_threads():
    """On a disk, and in memory, where each thread writes several blocks in turn."""
    stop_and_go_on(".")
    with tempfile.TemporaryDirectory(prefix="tessera-cli-", dir="/dev/shm") as folder:
        stop_and_go_on(folder)


main(globals())
