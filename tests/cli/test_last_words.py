"""Four ranks that fail, or are stopped, at the same moment: the job says so once."""
import os
import signal

from lib import leftovers, main, np, ranks_of, start_long_run, write

STOPPED = "tessera: stopped on request; "


def begin():
    for name in os.listdir("."):
        os.remove(name)
    write("big.h5", np.ones((3000, 3000), "f4"))
    return start_long_run(ranks=4, options=["--progress", "off"])


def spoken(process):
    """Lines of tessera's own; mpirun adds some."""
    out, err = process.communicate(timeout=60)
    assert process.returncode != 0 and not leftovers(), (process.returncode, err, os.listdir("."))
    return [line for line in (out + err).splitlines() if "tessera: " in line], err


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


main(globals())
