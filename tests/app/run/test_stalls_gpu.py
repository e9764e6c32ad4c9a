"""A rank that stands still, or dies, while another waits for it inside NCCL: the job ends, with exit code 74 and the
rank's name where it stood still. Nothing is left, and the same GPUs multiply again. Exit code 77: no two GPUs here that
NCCL joins."""
import os
import signal
import subprocess
import sys
import time

from lib import ENVIRONMENT, command_line, integers, leftovers, main, np, ranks_of, read, write

SLOW = {"LD_PRELOAD": os.environ["TSR_SLOW_READ_LIBRARY"], "TSR_SLOW_EACH": "500"}  # of rank 1; of others a fifth
A, B = integers(120, 4096), integers(4096, 96)
PANELS = ["--panel", "256", "--grid", "1x2", "--stall-timeout", "3"]
MULTIPLY = ["multiply", "slow.h5", "b.h5", "-o", "c.h5", "--force", "--quiet", "--device", "cuda", "--transport",
            "nccl"]


def multiply():
    return subprocess.run(command_line(MULTIPLY, 2), capture_output=True, text=True, env=ENVIRONMENT, timeout=60)


write("slow.h5", A), write("b.h5", B)
if multiply().returncode:
    print("skipped: no two GPUs that NCCL joins")
    sys.exit(77)


def stop(rank, number):
    """Sends a signal to a rank while the other waits for what it reads. Exit code, error lines, seconds to the end."""
    if os.path.exists("c.h5"):
        os.remove("c.h5")
    process = subprocess.Popen(command_line(MULTIPLY + PANELS, 2), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=dict(ENVIRONMENT, **SLOW), start_new_session=True)
    while not any(name.startswith(".c.h5") for name in os.listdir(".")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    time.sleep(2)
    assert process.poll() is None, f"over before it was disturbed: {process.communicate()}"
    ranks = ranks_of(process)
    os.kill(ranks[rank], number)
    began = time.monotonic()
    err = process.communicate(timeout=60)[1]
    seconds = time.monotonic() - began
    while any(os.path.exists(f"/proc/{pid}") for pid in ranks):  # mpirun does not wait for those that it ends
        assert time.monotonic() - began < 20, f"ranks are left: {err}"
        time.sleep(0.05)
    done = multiply()  # what another run left is removed
    assert done.returncode == 0 and np.array_equal(read("c.h5"), A @ B), done
    assert not leftovers(), leftovers()
    return process.returncode, [line for line in err.splitlines() if line.startswith("tessera: error: ")], seconds


def test_frozen():
    for rank in (1, 0):
        code, errors, seconds = stop(rank, signal.SIGSTOP)
        assert code == 74 and len(errors) == 1 and seconds < 20, (code, errors, seconds)
        assert f"no sign of life from rank {rank} on " in errors[0], errors


def test_killed():
    for rank in (1, 0):
        code, errors, seconds = stop(rank, signal.SIGKILL)
        assert code not in (0, 74) and seconds < 20, (code, errors, seconds)


main(globals())
