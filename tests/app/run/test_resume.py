"""--resume: runs that are killed at random moments, or stopped, go on where they ended, on any number of ranks; C has
the bytes of a run that was never stopped. What changed meanwhile is refused by name, and a second job too.
test_resume_moments.py ends runs in chosen calls. TSR_RESUME_SEED chooses the moments; it is printed."""
import json
import os
import random
import signal
import subprocess
import time

from lib import fails, integers, leftovers, main, np, read, run, some, write
from resumed import descendants, journals, kill_all, records, start, unfinished, went_on

SEED = int(os.environ.get("TSR_RESUME_SEED", time.time_ns() % 1000000))
dice = random.Random(SEED)
MANY = ("--memory", "120K", "--device", "cpu", "--kernel", "reference", "--quiet")  # hundreds of parts


def product(out, *more):
    return ["multiply", "a.h5", "b.h5", "-o", out, "--resume", "--digest", *MANY, *more]


def kill_until_whole(out, kills, longest):
    """Kills runs at random moments until C is whole, and that several times where it is so too soon. Returns how many
    were killed."""
    killed, most, kept, longer = 0, 0, 0, 0
    for attempt in range(kills + 200):
        ranks = dice.choice((0, 1, 2, 3, 4))
        process = start(*product(out), ranks=ranks)
        try:
            process.wait(timeout=dice.uniform(0.1, longest) if killed < kills else 120)
        except subprocess.TimeoutExpired:
            kill_all(process)
            killed += 1
            most = max(most, len(unfinished(out)))
            continue
        said = process.communicate()
        assert process.returncode == 0, f"seed {SEED}, attempt {attempt}, {ranks} ranks: {process.returncode} {said}"
        kept = max(kept, went_on(out)[0])
        if killed < kills:
            os.remove(out)
            continue
        if kept <= 50 and longer < 3:  # runs take longer than they did: the machine has more to do
            longer += 1
            os.remove(out)
            kills, longest = kills + 4, 2 * longest
            continue
        break
    assert most == 1, f"seed {SEED}: {most} unfinished outputs at a time"
    assert kept > 50, f"seed {SEED}: a run of {out} took over {kept} parts at most"
    return killed


def test_killed():
    print(f"test_resume: TSR_RESUME_SEED={SEED}", flush=True)
    a, b = integers(1201, 1000), integers(1000, 1103)
    write("a.h5", a), write("b.h5", b)
    want = (a.astype("f8") @ b.astype("f8")).astype("f4")
    began = time.monotonic()
    run("multiply", "a.h5", "b.h5", "-o", "whole.npy", *MANY)
    longest = 0.8 * (time.monotonic() - began)
    killed = kill_until_whole("c.h5", 7, longest)
    run("verify", "--digest", "c.h5", "whole.npy")  # what several runs wrote is what one did
    assert read("c.h5").tobytes() == want.tobytes(), f"seed {SEED}: C is wrong"
    run("verify", "a.h5", "b.h5", "c.h5:/C")
    killed += kill_until_whole("c.npy", 3, longest)
    with open("whole.npy", "rb") as one, open("c.npy", "rb") as other:
        assert one.read() == other.read(), f"seed {SEED}: c.npy is another file"
    assert killed >= 10, killed
    for out in ("c.h5", "c.npy"):  # a complete C is success
        before = os.stat(out).st_mtime_ns
        result = run("multiply", "a.h5", "b.h5", "-o", out, "--resume", *MANY[:-1])
        assert "is complete: nothing is left to do" in result.out and os.stat(out).st_mtime_ns == before, result
        assert len(journals(out)) == 1 and not unfinished(out), leftovers()
        result = run("multiply", "a.h5", "b.h5", "-o", out, "--resume", "--verify", "--digest", "--log", "run.json",
                     *MANY[:-1], ranks=2)
        assert f"warning: '{out}' was complete: no check, digest, trace or report" in result.err, result
        with open("run.json") as file:
            log = json.load(file)
        assert "is complete: nothing is left" in log["message"] and log["command"] and log["rank_count"] == 2, log
        fails("report", "run.json", code=1, says="says 'done' and has no record: only a run that made C has one")
        os.remove(out)
    run(*product("c.h5"))  # it was removed: made anew
    assert read("c.h5").tobytes() == want.tobytes()


def begin(out, *more, ranks=0, parts=64, environment=None):
    """A run that is under way, of which some parts are recorded."""
    process = start(*product(out, *more), ranks=ranks, environment=environment)
    for _ in range(1200):
        if process.poll() is not None:
            raise AssertionError(f"the run ended early: {process.communicate()}")
        if unfinished(out) and journals(out) and records(out) >= parts:
            return process
        time.sleep(0.02)
    raise AssertionError(f"no parts are recorded: {os.listdir('.')}")


def test_longer():
    """What the following tests multiply: a run takes some seconds even on a fast machine."""
    os.remove("c.h5")
    for name, rows, cols in (("a.h5", 1201, 2500), ("b.h5", 2500, 1103)):
        os.remove(name)
        write(name, integers(rows, cols))


def test_signals():
    """A stop signal ends the run with 75 and keeps what is done; one that is killed while it does so keeps less."""
    want = (read("a.h5").astype("f8") @ read("b.h5").astype("f8")).astype("f4")
    stops = ((signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGUSR1, 0), (signal.SIGUSR1, 3))
    for number, ranks in some(stops, 2):
        process = begin("s.h5", "--log", "s.json", ranks=ranks)
        began = time.monotonic()
        os.kill(process.pid, number)  # mpirun hands SIGUSR1 on
        os.kill(process.pid, number)  # as launchers do: it is heard once
        out, err = process.communicate(timeout=60)
        assert process.returncode == 75 and time.monotonic() - began < 20, f"{process.returncode} {out} {err}"
        assert "stopped on request" in err and "% of C is kept" in err, err
        assert len(unfinished("s.h5")) == 1 and not os.path.exists("s.h5"), leftovers()
        with open("s.json") as log:
            assert '"exit_code": 75' in log.read()
        process = start(*product("s.h5"), ranks=dice.choice((0, 2)))
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, f"{out} {err}"
        assert went_on("s.h5")[0] >= 64 and read("s.h5").tobytes() == want.tobytes()
        os.remove("s.h5")
    process = begin("s.h5", ranks=3)  # one rank alone hears of it
    ranks = descendants(process.pid)
    rank = ranks[2]
    os.kill(rank, signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 75 and "% of C is kept" in err, f"{process.returncode} {out} {err}"
    run(*product("s.h5", "--log", "s.json"), ranks=2)
    with open("s.json") as file:
        record = json.load(file)
    done = sum(rank["flops"] for rank in record["ranks"])
    assert 0 < done < 2 * record["m"] * record["n"] * record["k"], record
    assert np.isclose(record["gflops"], done / record["seconds"] / 1e9, rtol=1e-3), (record["gflops"], done)
    assert read("s.h5").tobytes() == want.tobytes()
    os.remove("s.h5")


def test_refusals():
    process = begin("r.h5")
    fails(*product("r.h5"), code=1, says="another job goes on with")
    kill_all(process)
    held = unfinished("r.h5")
    result = run("info", "r.h5")  # there is no r.h5 yet
    assert "unfinished /C, " in result.out and held[0] in result.out and "--resume goes on" in result.out, result
    run("info", "r.h5", "--json", "left.json")
    with open("left.json") as file:
        left, = json.load(file)["unfinished"]
    assert left["path"] == "/C" and left["file"].endswith(held[0]) and left["busy"] is False, left
    assert 0 < left["bytes"] < left["of_bytes"] and left["parts"] > 0, left
    fails("info", "nothing.h5", "--json", "left.json", code=1, says="nothing.h5")
    fails(*product("r.h5", "--alpha", "2"), code=1, says=["--resume left", "alpha was 1+0j and is 2+0j", "--force"])
    fails(*product("r.h5:/other"), code=1, says="path was /C and is /other")
    fails("multiply", "a.h5", "b.h5", "-o", "r.h5", code=1, says=["--resume", "--force"])
    os.utime("a.h5", ns=(0, os.stat("a.h5").st_mtime_ns + 1))
    fails(*product("r.h5"), code=1, says="last change of A's file was")
    os.utime("a.h5", ns=(0, os.stat("a.h5").st_mtime_ns - 1))
    write("b2.h5", read("b.h5"))
    fails("multiply", "a.h5", "b2.h5", "-o", "r.h5", "--resume", *MANY, code=1, says=["B was", "b2.h5"])
    write("r.h5", np.ones((3, 3)), "mine")
    fails(*product("r.h5"), code=1, says="was changed since")
    os.remove("r.h5")
    assert unfinished("r.h5") == held and len(journals("r.h5")) == 1, leftovers()
    fails(*product("r.h5", "--io", "hdf5"), code=1, says="--io direct")
    run(*product("r.h5", "--alpha", "2", "--force"))  # what was left is removed, and C made anew
    assert np.array_equal(read("r.h5"), 2 * (read("a.h5").astype("f8") @ read("b.h5")))
    fails(*product("r.h5"), code=1, says=["is complete", "alpha was 2+0j and is 1+0j"])
    run(*product("r.h5", "--force"))
    run(*product("r.h5"))
    os.remove("r.h5")
    kill_all(begin("r.h5"))
    run("multiply", "a.h5", "b.h5", "-o", "r.h5", "--force")
    assert not unfinished("r.h5") and not journals("r.h5"), leftovers()
    os.remove("r.h5")


def test_damage():
    """A part whose bytes changed meanwhile is computed again, and records that are none do no harm."""
    want = (read("a.h5").astype("f8") @ read("b.h5").astype("f8")).astype("f4")
    kill_all(begin("d.npy"))
    with open(unfinished("d.npy")[0], "r+b") as file:
        file.seek(4096)
        data = bytearray(file.read())
        for at in range(0, len(data), 50000):
            data[at] ^= 1
        file.seek(4096)
        file.write(data)
    with open(journals("d.npy")[0], "ab") as file:
        file.write(os.urandom(1000))
    run(*product("d.npy"), ranks=2)
    assert np.load("d.npy").tobytes() == want.tobytes()


def test_beside_others():
    """C goes into a file that holds other things; a run that dies while it describes C is taken up again."""
    want = (read("a.h5").astype("f8") @ read("b.h5").astype("f8")).astype("f4")
    write("o.h5", np.arange(12.0).reshape(3, 4), "mine")
    kill_all(begin("o.h5"))
    assert np.array_equal(read("o.h5", "mine"), np.arange(12.0).reshape(3, 4))
    run(*product("o.h5"), ranks=3)
    assert read("o.h5").tobytes() == want.tobytes() and read("o.h5", "mine").shape == (3, 4)


def test_slices():
    """Another part of a matrix is another matrix: of rows, of columns, of a stack."""
    write("sl.h5", integers(40, 40)), write("st.h5", np.stack([integers(40, 40), integers(40, 40)]))
    for first, other in (("sl.h5[:20]", "sl.h5[20:]"), ("sl.h5[:,:20]", "sl.h5[:,20:]"), ("st.h5[0]", "st.h5[1]"),
                         ("st.h5[:1]", "st.h5[1:]")):
        b = "sl.h5[:20]" if ",:20" in first else "sl.h5"
        run("multiply", first, b, "-o", "part.h5", "--resume")
        assert "is complete" in run("multiply", first, b, "-o", "part.h5", "--resume").out, first
        fails("multiply", other, b, "-o", "part.h5", "--resume", code=1, says=["is complete, and part of A was"])
        os.remove("part.h5")


def test_own_file():
    """A, B and C0 are in the file that C goes into, in C0's place: once that C is complete C0 is added no more."""
    a, b = integers(500, 1000), integers(1000, 400)
    want = a.astype("f8") @ b.astype("f8")
    write("own.h5", a, "A"), write("own.h5", b, "B"), write("own.h5", np.full(want.shape, 3, "f4"), "C")
    command = ("multiply", "own.h5:/A", "own.h5:/B", "--add", "own.h5:/C", "-o", "own.h5:/C", "--type", "f64",
               "--force", "--resume", *MANY[:-1])
    process = start(*command)
    while process.poll() is None and not unfinished("own.h5"):
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)
    assert process.returncode == 75 and unfinished("own.h5"), (said, leftovers())
    run(*command, ranks=2)
    assert np.array_equal(read("own.h5"), want + 3) and went_on("own.h5")[0] > 0
    assert "is complete: nothing is left to do" in run(*command).out
    assert np.array_equal(read("own.h5"), want + 3)
    run(*command, "--alpha", "2")
    assert np.array_equal(read("own.h5"), 3 * want + 3) and len(journals("own.h5")) == 1, leftovers()


def test_stack_and_gram():
    a, b = integers(6 * 300, 280).reshape(6, 300, 280), integers(280, 310)
    write("sa.h5", a), write("sb.h5", b)
    want = (a.astype("f8") @ b).astype("f4")
    kills = 0
    for _ in range(4):
        process = start("multiply", "sa.h5", "sb.h5", "-o", "sc.h5", "--resume", *MANY, "--memory", "60K",
                        ranks=dice.choice((0, 2)))
        time.sleep(dice.uniform(0.2, 0.8))
        kills += process.poll() is None
        kill_all(process)
    run("multiply", "sa.h5", "sb.h5", "-o", "sc.h5", "--resume", *MANY, "--memory", "60K", ranks=3)
    assert read("sc.h5").tobytes() == want.tobytes(), f"seed {SEED}"
    whole = read("a.h5").astype("f8")
    for triangle in ("full", "lower"):
        out = f"g{triangle}.h5"
        gram = ("multiply", "a.h5", "--gram", "-o", out, "--triangle", triangle, "--resume", *MANY)
        for _ in range(2):
            process = start(*gram, ranks=dice.choice((0, 2)))
            time.sleep(dice.uniform(0.3, 1.5))
            kill_all(process)
        run(*gram, ranks=dice.choice((0, 3)))
        exact = whole @ whole.T
        assert np.array_equal(read(out), exact if triangle == "full" else np.tril(exact)), f"seed {SEED}: {out}"


if __name__ == "__main__":
    main(globals())
