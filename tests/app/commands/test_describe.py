"""Files are looked into by tessera-describe. One that is missing, dies, hangs, or says what cannot be is one line of
error; what it says is checked, so that lies do no more than give wrong numbers that fit the file."""
import os
import random as randoms
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

import h5py
import numpy as np

import lib
from lib import ENVIRONMENT, TESSERA, command_line, fails, main, run, write
from malformed import empty_compact, endless_heap, long_text, negative_fill, wide_enum

HELPER = os.path.join(os.path.dirname(TESSERA), "tessera-describe")
HEAD = "import os, signal, socket, struct, subprocess, sys, time\n" + f"real = {HELPER!r}\n" + """
HEAD_BYTES = 40  # magic word, version, bytes of a description; seconds, bytes of the message
def question():
    head = b""
    while len(head) < HEAD_BYTES:
        got = os.read(0, HEAD_BYTES - len(head))
        if not got: sys.exit(0)
        head += got
    left, body = struct.unpack("<Q", head[32:])[0], b""
    while len(body) < left: body += os.read(0, left - len(body))
    return head + body
def head_of(message, size):
    return message[:28] + struct.pack("<IQ", 0, size)
def say(data):
    while data: data = data[os.write(0, data):]
def answer_of_the_real_one(change=lambda asked: asked):
    ours, theirs = socket.socketpair()
    process = subprocess.Popen([real], stdin=theirs.fileno())
    theirs.close()
    ours.sendall(change(question()))
    ours.shutdown(socket.SHUT_WR)
    answer = b""
    while True:
        try: got = ours.recv(65536)
        except ConnectionResetError: break  # it has left a part of the question unread
        if not got: break
        answer += got
    if process.wait() < 0: os.kill(os.getpid(), -process.returncode)
    return answer
"""


def with_helper(program):
    """A tessera with this Python program, or nothing (None), beside it."""
    folder = os.path.abspath("fake")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    lib.TESSERA = shutil.copy(TESSERA, folder)
    if program is not None:
        path = os.path.join(folder, "tessera-describe")
        with open(path, "w") as file:
            file.write(f"#!{sys.executable}\n{HEAD}{program}\n")
        os.chmod(path, stat.S_IRWXU)


COMMANDS = {
    "info": ["info", "a.h5"],
    "info of a matrix": ["info", "a.h5:/A"],
    "multiply": ["multiply", "a.h5", "a.h5", "-o", "new.h5", "--device", "cpu"],
    "verify": ["verify", "a.h5", "a.h5", "a.h5"],
    "compare": ["compare", "a.h5", "a.h5"],
    "generate": ["generate", "-o", "a.h5:/B", "--shape", "4x4"],  # an output that is there
}


def make_inputs():
    write("a.h5", np.eye(8, dtype="f4"), "A")
    write("b.h5", np.eye(8, dtype="f4"), "A", chunks=(2, 2), compression="gzip", shuffle=True)


def one_line(*command, says, ranks=0, code=1):
    before = open("a.h5", "rb").read()
    result = fails(*command, code=code, says=says, ranks=ranks, timeout=30)
    lines = [line for line in result.err.splitlines() if "tessera" in line]
    assert len(lines) == 1, f"{len(lines)} lines: {result}"
    assert not os.path.exists("new.h5") and open("a.h5", "rb").read() == before and not lib.leftovers(), os.listdir(".")
    return result


def test_missing():
    make_inputs()
    with_helper(None)
    for name, command in COMMANDS.items():
        one_line(*command, says=["cannot start", "/fake/tessera-describe", "installed beside tessera"],
                 ranks=2 if name in ("multiply", "info") else 0)


def test_dies():
    make_inputs()
    for number, says in ((signal.SIGSEGV, "HDF5 crashed on it (SIGSEGV): the file is damaged"),
                         (signal.SIGFPE, "HDF5 crashed on it (SIGFPE)"),
                         (signal.SIGKILL, "was killed (SIGKILL)"),
                         (signal.SIGXCPU, "took too long")):
        with_helper(f"question(); signal.signal({int(number)}, 0) if {int(number)} != 9 else 0\n"
                    f"os.kill(os.getpid(), {int(number)}); time.sleep(60)")
        one_line(*COMMANDS["info"], says=["'a.h5' cannot be described: ", says])
        one_line(*COMMANDS["multiply"], says=["'a.h5' cannot be described: ", says], ranks=2)
    with_helper("sys.exit(5)")
    one_line(*COMMANDS["verify"], says="tessera-describe ended with exit code 5")
    with_helper("question()")
    one_line(*COMMANDS["compare"], says="makes no sense")


def test_no_answer():
    """What is no whole answer."""
    make_inputs()
    for program in ("question(); say(b'')",
                    "q = question(); say(head_of(q, 2**63) + b'x' * 1000)",
                    "q = question(); say(head_of(q, 0))",
                    "q = question(); say(3 * head_of(q, 0))",
                    "say(answer_of_the_real_one()[:-1])",
                    "say(answer_of_the_real_one()[:20])",
                    "say(answer_of_the_real_one()[:44])",
                    "a = answer_of_the_real_one(); say(head_of(a, len(a) - 32) + a[40:] + bytes(8))"):
        with_helper(program)
        one_line(*COMMANDS["multiply"], says=["'a.h5' cannot be described: ", "no sense"], ranks=0)


def test_other_build():
    """A helper of another version, or whose descriptions are others: both sides say so, and not that the file is
    damaged."""
    make_inputs()
    other_version = "q[:8] + b'9.9.9'.ljust(16, bytes(1)) + q[24:]"
    other_bytes = "q[:24] + struct.pack('<I', 1) + q[28:]"
    other_words = "b'nonsense' + q[8:]"
    for other, says in ((other_version, "than this tessera (9.9.9, not "), (other_bytes, "than this tessera; "),
                        (other_words, "than this tessera; ")):
        with_helper(f"q = question(); q = {other}; say(head_of(q, 8) + bytes(8)); question()")
        result = one_line(*COMMANDS["multiply"], says=["fake/tessera-describe' is of another build ", says])
        assert "damaged" not in result.err, result
        # What the real one says to a tessera of another build.
        with_helper(f"a = answer_of_the_real_one(lambda q: {other})\n"
                    "assert len(a) == HEAD_BYTES and a[32:] == bytes(8)\n"
                    "say(b'nonsense' + a[8:])")
        one_line(*COMMANDS["info"], says="is of another build than this tessera; install both")


def test_library_missing():
    make_inputs()
    with_helper(None)
    with open(HELPER, "rb") as file:
        program = file.read()
    assert b"libhdf5" in program
    helper = os.path.join(os.path.dirname(lib.TESSERA), "tessera-describe")
    with open(helper, "wb") as file:
        file.write(program.replace(b"libhdf5", b"libhdf?"))
    os.chmod(helper, stat.S_IRWXU)
    result = fails(*COMMANDS["info"], code=1,
                   says=["a library that '", "fake/tessera-describe' needs is missing", "'ldd "])
    assert "install both" not in result.err, result


def test_seconds():
    """The helper is given the seconds of computing that a question may take: more for many chunks. It keeps to them."""
    make_inputs()
    with h5py.File("many.h5", "w") as file:
        file.create_dataset("A", (100000, 1), "f4", chunks=(1, 1), compression="gzip")
    note = "f'{struct.unpack(\"<Q\", q[40:48])[0]} {struct.unpack(\"<I\", q[28:32])[0]}\\n'"
    with_helper(f"""
def change(q):
    with open("asked", "a") as file: file.write({note})
    return q
while True: say(answer_of_the_real_one(change))""")
    run("compare", "many.h5", "many.h5", timeout=120)
    with open("asked") as file:
        asked = set(file.read().splitlines())
    assert asked == {"0 10", "4 14"}, asked
    with open("endless.h5", "wb") as file:
        file.write(endless_heap())
    with_helper("while True: say(answer_of_the_real_one(lambda q: q[:28] + struct.pack('<I', 1) + q[32:]))")
    one_line("multiply", "a.h5", "endless.h5", "-o", "new.h5", "--device", "cpu",
             says="took too long to look into it (10 s of computing")  # else it is ended after 10 s by the clock


def test_lies():
    """Answers in which single bytes or numbers are others: an error, or a run as if the file were so, and no more."""
    make_inputs()
    rng = randoms.Random(7)
    outcomes = {}
    for i in range(36):
        with_helper(f"""
import random
rng = random.Random({rng.randrange(10**9)})
a = bytearray(answer_of_the_real_one())
for _ in range(rng.choice([1, 1, 2, 4])):
    at = HEAD_BYTES + 8 * rng.randrange((len(a) - HEAD_BYTES) // 8)
    if rng.random() < 0.7:
        a[at:at + 8] = struct.pack("<q", rng.choice([-1, 0, 1, 2, 2**31, 2**32, 2**62, -2**63, 2**63 - 1, 100]))
    else:
        a[rng.randrange(HEAD_BYTES, len(a))] = rng.randrange(256)
say(bytes(a))
""")
        command = [COMMANDS["info"], ["info", "b.h5:/A"], ["compare", "b.h5", "a.h5"],
                   ["multiply", "b.h5", "b.h5", "-o", "c.h5", "--device", "cpu", "--force", "--quiet"]][i % 4]
        process = subprocess.run(command_line(command), capture_output=True, timeout=40, env=ENVIRONMENT)
        assert process.returncode in (0, 1, 2, 3), f"{command}: {process}"
        if process.returncode in (1, 2):
            assert process.stderr.count(b"tessera: error: ") == 1, process
        outcomes[process.returncode] = outcomes.get(process.returncode, 0) + 1
    assert outcomes.get(1, 0) >= 10, outcomes


def start(binary, *command, ranks=0, environment=None):
    lib.TESSERA = binary
    return subprocess.Popen(command_line(command, ranks), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=dict(ENVIRONMENT, **(environment or {})), start_new_session=True)


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return [int(child) for child in file.read().split()]


def asked_helper(job):
    """The helper of a job that has begun its log: one child."""
    while not (os.path.exists("log.json") and children(job)):
        assert job.poll() is None, job.communicate()
        time.sleep(0.05)
    helpers = children(job)
    assert len(helpers) == 1, helpers
    return helpers[0]


def test_hangs():
    """Two at a time, each for the 10 s that may pass without a word: one that sleeps, and HDF5 on a file. Beside them
    slow disks, which take longer in all: what is found meanwhile counts. And a run that is stopped meanwhile."""
    make_inputs()
    with open("endless.h5", "wb") as file:
        file.write(endless_heap())
    with h5py.File("slow.h5", "w") as file:
        for i in range(14):
            file.create_dataset(f"group{i:02}/A", data=np.eye(2))
    multiply = ["multiply", "a.h5", "endless.h5", "-o", "new.h5", "--device", "cpu"]
    slow = {"LD_PRELOAD": os.environ["TSR_SLOW_READ_LIBRARY"], "TSR_SLOW_READ": "80"}
    with_helper("question(); time.sleep(300)")
    begun = time.monotonic()
    jobs = [start(lib.TESSERA, *COMMANDS["info"]), start(TESSERA, *multiply, ranks=2)]
    lists = start(TESSERA, "info", "slow.h5", environment=slow)
    misses = start(TESSERA, "compare", "slow.h5:/group00/B", "a.h5", environment=slow)
    stopped = start(TESSERA, *multiply, "--log", "log.json")
    helper = asked_helper(stopped)
    stopped.send_signal(signal.SIGTERM)
    err = stopped.communicate(timeout=60)[1]
    assert stopped.returncode == 75 and "stopped on request" in err, (stopped.returncode, err)
    for job, says in zip(jobs, ("10 s without a result): its file system hangs", "took too long")):
        err = job.communicate(timeout=100)[1]
        assert job.returncode == 1 and err.count("tessera: error: ") == 1 and says in err, (job.args, err)
    assert 9.9 < time.monotonic() - begun
    out, err = lists.communicate(timeout=100)
    assert lists.returncode == 0 and "14 matrices" in out, (out, err)
    assert 10 < time.monotonic() - begun, "the disk was not slow"
    err = misses.communicate(timeout=100)[1]
    assert misses.returncode == 1 and "has no '/group00/B'; did you mean '/group00/A'?" in err, err
    assert not os.path.exists(f"/proc/{helper}"), "the helper of a stopped run is still there"
    assert not os.path.exists("new.h5"), os.listdir(".")


def test_limited_time():
    """One that computes without end, as HDF5 does on some files: it may take no longer than the job itself."""
    make_inputs()
    with_helper("question()\nwhile True: pass")
    command = " ".join(command_line(COMMANDS["info"]))
    process = subprocess.run(["bash", "-c", f"ulimit -S -t 2; exec {command}"], capture_output=True, text=True,
                             timeout=30, env=ENVIRONMENT)
    assert process.returncode == 1 and "took too long" in process.stderr, process


def test_malformed():
    """Files that crash HDF5."""
    lib.TESSERA = TESSERA
    make_inputs()
    crashed = "HDF5 crashed on it (SIG"
    for make, says in ((negative_fill, crashed), (long_text, crashed), (wide_enum, crashed),
                       (empty_compact, "0 are there: the file is damaged")):
        with open("bad.h5", "wb") as file:
            file.write(make())
        for command in (["multiply", "bad.h5", "a.h5", "-o", "new.h5", "--device", "cpu"],
                        ["compare", "a.h5", "bad.h5"]):
            one_line(*command, says=["'bad.h5", says], ranks=2)
        process = subprocess.run(command_line(["info", "bad.h5"]), capture_output=True, text=True, env=ENVIRONMENT)
        assert says in process.stdout + process.stderr and process.returncode in (0, 1), process


if __name__ == "__main__":
    main(globals())
