"""A job that stands still ends, with exit code 74 and the name of the rank that is to blame. A slow one goes on."""
import json
import os
import signal
import subprocess
import time

from lib import (ENVIRONMENT, command_line, fails, integers, leftovers, main, np, ranks_of, read, run, start_long_run,
                 write)

SLOW = os.environ["TSR_SLOW_READ_LIBRARY"]
NODES = os.environ["TSR_FAILING_READ"]


def end(process):
    out, err = process.communicate(timeout=60)
    said = f"exit code {process.returncode}\n{out}\n{err}"
    errors = [line for line in err.splitlines() if line.startswith("tessera: error: ")]
    return errors, said


def freeze(rank, nodes):
    """A rank of three is stopped while it multiplies: those that remain say so."""
    environment = {"LD_PRELOAD": NODES, "TSR_NODES": "1"} if nodes else {}
    process = start_long_run(ranks=3, options=("--stall-timeout", "1", "--log", "run.json"), environment=environment)
    stopped = ranks_of(process)[rank]
    os.kill(stopped, signal.SIGSTOP)
    began = time.monotonic()
    errors, said = end(process)
    assert process.returncode == 74, said
    assert len(errors) >= 1 and all(f"no sign of life from rank {rank} on " in line for line in errors), said
    assert len(errors) == 1 or nodes, said
    assert time.monotonic() - began < 20, said
    assert not leftovers() and not os.path.exists("c.h5"), said
    with open("run.json") as log:
        record = json.load(log)
    assert record["exit_code"] == 74 or nodes or rank == 0, record


def test_frozen_rank():
    write("big.h5", np.ones((3000, 3000), "f4"))
    freeze(0, nodes=False)
    freeze(2, nodes=False)
    freeze(1, nodes=True)


def test_suspended_job():
    """All ranks stop for longer than the limit, as a batch system may do, and go on."""
    process = start_long_run(ranks=2, options=("--stall-timeout", "1"))
    ranks = ranks_of(process)
    for rank in ranks:
        os.kill(rank, signal.SIGSTOP)
    time.sleep(2.5)
    for rank in ranks:
        os.kill(rank, signal.SIGCONT)
    time.sleep(2)
    assert process.poll() is None, end(process)
    os.kill(ranks[0], signal.SIGTERM)
    assert process.wait(timeout=60) == 75, end(process)


def multiply(*options, slow, milliseconds, code=0, timeout=60):
    return run("multiply", "slow.h5", "b.h5", "-o", "c.h5", "--device", "cpu", "--grid", "2x1", "--quiet", "--force",
               *options, ranks=2, code=code, timeout=timeout, environment={"LD_PRELOAD": SLOW, slow: str(milliseconds)})


def test_slow_files():
    """A read, or a sync, that takes six times the limit is named, and the job goes on. A longer one ends it."""
    a, b = integers(300, 400), integers(400, 200)
    write("slow.h5", a), write("b.h5", b)
    for slow, said in (("TSR_SLOW_DATA", "rank 1 on "), ("TSR_SLOW_SYNC", "bringing C to stable storage")):
        result = multiply("--stall-timeout", "0.25", slow=slow, milliseconds=1500)
        assert np.array_equal(read("c.h5"), a @ b)
        warnings = [line for line in result.err.splitlines() if "has waited for" in line]
        assert len(warnings) == 1 and said in warnings[0], result
    os.remove("c.h5")
    result = multiply("--stall-timeout", "0.2", slow="TSR_SLOW_DATA", milliseconds=30000, code=74)
    assert "rank 1 on " in result.error and "read lane, read of " in result.error, result
    assert not leftovers() and not os.path.exists("c.h5")
    result = multiply("--stall-timeout", "0", slow="TSR_SLOW_DATA", milliseconds=1500)
    assert "waited" not in result.err and np.array_equal(read("c.h5"), a @ b), result


def test_straggler():
    """A rank whose reads take five times as long as those of others is named while the job runs, once."""
    a, b = integers(300, 4000), integers(4000, 200)
    write("slow.h5", a), write("b.h5", b)
    command = command_line(["multiply", "slow.h5", "b.h5", "-o", "new.h5", "--device", "cpu", "--grid", "3x1",
                            "--panel", "400", "--quiet", "--stall-timeout", "0.5"], 3)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env=dict(ENVIRONMENT, LD_PRELOAD=SLOW, TSR_SLOW_EACH="5"), start_new_session=True)
    said, under_way = [], []
    for line in process.stderr:
        said.append(line)
        under_way.append(not os.path.exists("new.h5"))
    assert process.wait(timeout=60) == 0, said
    named = [i for i, line in enumerate(said) if "is slow" in line]
    assert len(named) == 1 and under_way[named[0]], said
    assert "rank 1 on " in said[named[0]] and "its read lane makes" in said[named[0]], said
    assert np.array_equal(read("new.h5"), a @ b)


def test_three_minutes():
    """With the limits that are chosen without an option: only where there is time for it."""
    if "TSR_THREE_MINUTES" not in os.environ:
        return
    a, b = integers(300, 400), integers(400, 200)
    write("slow.h5", a), write("b.h5", b)
    result = multiply(slow="TSR_SLOW_DATA", milliseconds=180000, timeout=300)
    warnings = [line for line in result.err.splitlines() if "has waited for" in line]
    assert len(warnings) == 1 and "rank 1 on " in warnings[0] and "for 6" in warnings[0], result
    assert np.array_equal(read("c.h5"), a @ b)


def test_values():
    write("a.h5", np.ones((3, 3)))
    for wrong, says in (("-1", "give seconds"), ("soon", "soon"), ("nan", "nan"), ("1e99", "give seconds")):
        fails("multiply", "a.h5", "a.h5", "-o", "c.h5", f"--stall-timeout={wrong}", code=2, says=says)


main(globals())
