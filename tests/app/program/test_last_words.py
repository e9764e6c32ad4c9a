"""Four ranks that fail, or are stopped, at the same moment: the job says so once."""
import os
import signal

from lib import ENVIRONMENT, fails, leftovers, main, np, own_lines, ranks_of, start_long_run, write

STOPPED = "tessera: stopped on request; "


def begin():
    for name in os.listdir("."):
        os.remove(name)
    write("big.h5", np.ones((3000, 3000), "f4"))
    return start_long_run(ranks=4, options=["--progress", "off"])


def spoken(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode != 0 and not leftovers(), (process.returncode, err, os.listdir("."))
    return own_lines(out + err), err


def test_stopped():
    for number in (signal.SIGTERM, signal.SIGINT):
        process = begin()
        process.send_signal(number)
        lines, err = spoken(process)
        assert len(lines) == 1 and lines[0].startswith(STOPPED), err


def test_every_rank_stopped():
    for number in (signal.SIGTERM, signal.SIGHUP):
        process = begin()
        for rank in ranks_of(process):
            os.kill(rank, number)
        lines, err = spoken(process)
        assert len(lines) == 1 and lines[0].startswith(STOPPED) and process.returncode == 75, (process.returncode, err)


def test_every_rank_fails():
    """A file that is cut short while all ranks read it."""
    process = begin()
    os.truncate("big.h5", 3000)
    lines, err = spoken(process)
    assert len(lines) == 1 and lines[0].startswith("tessera: error: rank ") and "big.h5" in lines[0], err
    assert process.returncode == 1, process.returncode


def test_killed():
    """A rank that is killed cannot speak, and what the launcher does to the others is no request."""
    process = begin()
    os.kill(ranks_of(process)[2], signal.SIGKILL)
    lines, err = spoken(process)
    assert len(lines) == 1 and lines[0].startswith("tessera: error: a rank of this job was killed"), err


NODES = {"LD_PRELOAD": os.environ["TSR_FAILING_READ"], "TSR_NODES": "1"}


def test_one_rank_fails():
    """What the launcher then does to rank 0 is no request to stop. Ranks of several nodes share no memory."""
    for environment in ({"LD_PRELOAD": NODES["LD_PRELOAD"]}, NODES):
        for name in os.listdir("."):
            os.remove(name)
        write("fail.h5", np.ones((300, 300), "f4"))
        result = fails("multiply", "fail.h5", "fail.h5", "-o", "c.h5", "--device", "cpu", "--grid", "2,1,1", ranks=2,
                       code=1, says=["rank 1 on", "fail.h5"], environment=environment)
        assert len(own_lines(result.err)) == 1 and not leftovers(), (result, leftovers())


def test_nodes():
    """All are stopped, one of them is, all fail: one says so, though they share no memory."""
    ENVIRONMENT.update(NODES)
    for what in ("all", "rank 0", "rank 1", "fail"):
        process = begin()
        if what == "fail":
            os.truncate("big.h5", 3000)
        for rank in ranks_of(process)[:4 if what == "all" else 1] if what != "fail" else ():
            os.kill(ranks_of(process)[1] if what == "rank 1" else rank, signal.SIGTERM)
        lines, err = spoken(process)
        wanted = "tessera: error: rank " if what == "fail" else STOPPED
        assert len(lines) == 1 and lines[0].startswith(wanted), (what, err)
        assert process.returncode == (1 if what == "fail" else 75), (what, process.returncode, err)


main(globals())
