"""Runs with --resume: started, ended on the way, and what they leave beside their output."""
import os
import signal
import struct
import subprocess
import time

from lib import ENVIRONMENT, command_line, ranks_of


def beside(name, ending):
    return [n for n in os.listdir(".") if n.startswith(f".{name}.tessera-") and n.endswith(ending)]


def unfinished(name):
    return beside(name, ".tmp")


def journals(name):
    return beside(name, ".parts")


def went_on(name):
    """How many parts the last run took over from those before it, and how many runs there were (journal_private.h)."""
    with open(journals(name)[0], "rb") as file:
        magic, _, kept, _, generation = struct.unpack("=8sqqQQ", file.read(40))
    assert magic == b"TSRPART\0", magic
    return kept, generation


def records(name):
    """Records of 64 bytes behind the head that are not zeros."""
    with open(journals(name)[0], "rb") as file:
        head_bytes = struct.unpack("=8sq", file.read(16))[1]
        file.seek(-(-head_bytes // 4096) * 4096)
        data = file.read()
    return sum(any(data[at:at + 64]) for at in range(0, len(data), 64))


def ended(call, **more):
    """Environment of a run that ends in this call beside its output, or as TSR_END_... of `more` say (ended_at.c)."""
    settings = {"TSR_END_" + name: str(value) for name, value in more.items()}
    return {"LD_PRELOAD": os.environ["TSR_ENDED_AT"], "TSR_END_CALL": str(call), **settings}


def start(*args, ranks=0, environment=None):
    return subprocess.Popen(command_line(args, ranks), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=dict(ENVIRONMENT, **(environment or {})), start_new_session=True)


def descendants(pid):
    """All processes below this one, and itself."""
    found = [pid]
    for one in found:
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children") as file:
                    found += [int(child) for child in file.read().split()]
        except OSError:
            pass
    return found


def kill_all(process):
    for pid in reversed(descendants(process.pid)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.communicate()
    time.sleep(0.1)


def state_of(pid):
    """What /proc says of a process and of its first thread, in words."""
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def wait_for(process, what, seconds=30):
    """Until it is so; the run must not end before."""
    for _ in range(100 * seconds):
        if process.poll() is not None:
            raise AssertionError(f"the run ended early, {process.returncode}: {process.communicate()}")
        if what():
            return
        time.sleep(0.01)
    kill_all(process)
    raise AssertionError("the run does not come so far")


def stop_behind(process, held, asked):
    """When rank `held` stands still (SIGSTOP), rank `asked` is asked to stop; when that one knows, the other goes on.
    Its first thread sees what a rank was asked whenever it wakes up, five times a second at least."""
    wait_for(process, lambda: len(ranks_of(process)) > held and state_of(ranks_of(process)[held])["State"][0] == "T")
    ranks = ranks_of(process)

    def woken():
        said = state_of(ranks[asked])
        return int(said["voluntary_ctxt_switches"]) + int(said["nonvoluntary_ctxt_switches"])

    os.kill(ranks[asked], signal.SIGTERM)
    wait_for(process, lambda: int(state_of(ranks[asked])["ShdPnd"], 16) == 0)
    enough = woken() + 3
    wait_for(process, lambda: woken() >= enough)
    os.kill(ranks[held], signal.SIGCONT)
