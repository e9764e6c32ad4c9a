"""Runs with --resume: started, ended on the way, and what they leave beside their output."""
import os
import signal
import struct
import subprocess
import time

from lib import ENVIRONMENT, command_line


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
