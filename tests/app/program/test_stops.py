"""A run that is asked to stop at the worst moments: one line, exit code 75, no file left, and the line says the truth
about C."""
import json
import os
import signal
import subprocess
import time

from lib import ENVIRONMENT, command_line, leftovers, main, np, own_lines, ranks_of, read, run, write

SHIM = os.environ["TSR_SIGNAL_AT_CALL"]
UNCHANGED = "tessera: stopped on request; nothing under the output's name has changed, run the command again"
IN_PLACE = "tessera: stopped on request; the output is whole and in place"


def start(others):
    """The earlier C, and beside it other contents."""
    for name in os.listdir("."):
        os.remove(name)
    write("a.h5", np.ones((40, 30))), write("b.h5", np.ones((30, 40)))
    write("c.h5", np.full((3, 3), 5.0))
    if others:
        write("c.h5", np.arange(2000.0), "other")


def stop(arguments, ranks, call, file, number=signal.SIGTERM, rank=0, other=False, code=75):
    """The lines of tessera's own, and all there is to say where they are not right."""
    environment = dict(ENVIRONMENT, LD_PRELOAD=SHIM, TSR_SIGNAL=str(int(number)), TSR_SIGNAL_AT=call,
                       TSR_SIGNAL_FILE=file, TSR_SIGNAL_RANK=str(rank))
    if other:
        environment["TSR_SIGNAL_OTHER"] = "1"
    process = subprocess.run(command_line(arguments, ranks), capture_output=True, text=True, env=environment,
                             timeout=60)
    said = f"{call} of {file}, {arguments} on {ranks} ranks, {number!r} to {rank}: {process.returncode}\n" \
           f"{process.stdout}{process.stderr}{os.listdir('.')}"
    assert process.returncode == code, said
    assert not leftovers() or "--resume" in arguments, said
    return own_lines(process.stdout + process.stderr), said


def is_kept():
    """The earlier C and what was beside it."""
    return np.all(read("c.h5") == 5) and np.array_equal(read("c.h5", "other"), np.arange(2000.0))


MULTIPLY = ["multiply", "a.h5", "b.h5", "-o", "c.h5:/C", "--force", "--device", "cpu", "--quiet", "--log", "run.json"]
GENERATE = ["generate", "--shape", "40x40", "--type", "f64", "-o", "c.h5:/C", "--force", "--quiet", "--log", "run.json"]


def test_before():
    """The temporary file is made, filled and synced."""
    for arguments in (MULTIPLY, GENERATE, [*MULTIPLY, "--chunk", "16x16"]):
        for ranks in (0, 2):
            for call, other in (("open", False), ("open", True), ("copy", False), ("allocate", False), ("sync", False)):
                if "--chunk" in arguments and (ranks or call == "allocate"):
                    continue  # nothing is allocated; on two ranks it is as without chunks
                if ranks and call in ("allocate", "sync"):
                    continue  # rank 0's, as alone
                start(others=True)
                lines, said = stop(arguments, ranks, call, ".c.h5.tessera", other=other)
                assert lines == [UNCHANGED], said
                assert is_kept(), said


def test_after():
    """The temporary file is the output now: its name was given, its folder is being synced."""
    here = os.path.basename(os.getcwd())
    for arguments in (MULTIPLY, GENERATE):
        for ranks in (0, 2):
            for others in (False, True)[:1 if ranks else 2]:
                for call, file in (("rename", "c.h5"), ("sync folder", here)):
                    start(others)
                    lines, said = stop(arguments, ranks, call, file)
                    assert lines == [IN_PLACE], said
                    assert read("c.h5").shape == (40, 40), said
    for ranks in (0, 2):  # ./c.h5: other files that a later run would go on with have names with .c.h5
        start(others=True)
        again = ["./c.h5:/C" if word == "c.h5:/C" else word for word in MULTIPLY] + ["--resume"]
        lines, said = stop(again, ranks, "rename", "./c.h5")
        assert lines == [IN_PLACE] and read("c.h5").shape == (40, 40), said
        result = run(*(word for word in again if word != "--quiet"))
        assert "is complete: nothing is left to do" in result.out, result


def test_every_signal():
    """All that end a process, as their default action, and are neither a crash nor what a write meets."""
    names = "TERM INT HUP QUIT USR1 USR2 ALRM VTALRM PROF IO PWR XCPU".split()
    wanted = {getattr(signal, f"SIG{name}"): f"SIG{name}" for name in names}
    wanted[16] = "SIGSTKFLT"
    wanted.update(dict.fromkeys((signal.SIGRTMIN, signal.SIGRTMIN + 7, signal.SIGRTMAX), "a real-time signal"))
    start(others=True)
    for number, name in wanted.items():
        arguments = MULTIPLY if number % 2 else GENERATE
        lines, said = stop(arguments, 0, "copy", ".c.h5.tessera", number=number)
        assert lines == [UNCHANGED] and is_kept(), said
        with open("run.json") as file:
            log = json.load(file)
        assert log["status"] == "stopped" and log["exit_code"] == 75 and f"({name})" in log["message"], log
        os.remove("run.json")


def status_of_log():
    with open("run.json") as file:
        return json.load(file)["status"]


def test_texts():
    """The temporary files of a log and a trace. From the moment on that a log is to say "running" its end is told."""
    for ranks in (0, 2):
        for call, file in (("open", "run.json.tessera"), ("rename", "run.json")):
            start(others=True)
            lines, said = stop(MULTIPLY, ranks, call, file)
            assert lines == [UNCHANGED] and is_kept() and status_of_log() == "stopped", said
        for call in ("open", "sync"):
            start(others=True)
            lines, said = stop([*MULTIPLY, "--trace", "trace.json"], ranks, call, "trace.json.tessera")
            with open("run.json") as file:
                log = json.load(file)
            assert log["status"] == "stopped" and not os.path.exists("trace.json"), said
            in_place = read("c.h5").shape == (40, 40)
            assert lines == [IN_PLACE if in_place else UNCHANGED] and in_place == ("in place" in log["message"]), said


def slow_removal():
    """Whether rank 0 could remove its file, 0.15 s after another rank crashed; and what was said."""
    start(others=True)
    environment = dict(ENVIRONMENT, LD_PRELOAD=os.environ["TSR_SLOW_READ_LIBRARY"], TSR_SLOW_SYNC="20000",
                       TSR_SLOW_REMOVAL="150")
    process = subprocess.Popen(command_line(GENERATE, 3), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment)
    for _ in range(400):
        if leftovers():
            break
        time.sleep(0.05)
    assert leftovers() and process.poll() is None, process.communicate()
    time.sleep(0.3)
    os.kill(ranks_of(process)[2], signal.SIGSEGV)
    said = process.communicate(timeout=60)
    assert is_kept(), said
    return not leftovers() and status_of_log() == "stopped", (os.listdir("."), said)


def test_slow_removal():
    """mpirun kills those that it stopped as soon as the first of them has ended: they wait for rank 0, which removes
    what it made. mpirun waits for a second at most, which a busy machine may take from rank 0: one try of three."""
    tries = []
    while len(tries) < 3 and not (tries and tries[-1][0]):
        tries.append(slow_removal())
    assert tries[-1][0], tries


def test_spill():
    """What keeps encoded chunks, on file systems that have no files without names."""
    for ranks, rank in ((0, 0), (2, 0), (2, 1)):
        start(others=True)
        lines, said = stop([*MULTIPLY, "--chunk", "16x16"], ranks, "spill", ".c.h5.tessera", rank=rank)
        assert lines == [UNCHANGED] and is_kept(), said


def test_crash():
    """It stays one, after one line, and leaves no file."""
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT):
        for ranks in (0, 2):
            start(others=True)
            lines, said = stop(GENERATE, ranks, "copy", ".c.h5.tessera", number=number,
                               code=128 + number if ranks else -number)
            assert len(lines) == 1 and lines[0].startswith("tessera: error: ") and number.name in lines[0], said
            assert "nothing under the output's name has changed" in lines[0] and is_kept(), said


def test_closed_pipe():
    """Nobody reads what is printed: an error, and not SIGPIPE's death without a word."""
    start(others=True)
    process = subprocess.Popen(command_line([word for word in MULTIPLY if word != "--quiet"]), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=60) == 1 and "C is in place, but standard output could not be written" in err, err
    assert read("c.h5").shape == (40, 40) and not leftovers(), err


def test_late_event():
    """An event that Open MPI comes to when it has ended what handles it."""
    start(others=False)
    environment = {"LD_PRELOAD": os.environ["TSR_LATE_EVENT"], "TSR_EVENT_CAME": os.path.abspath("came")}
    components = subprocess.run(["ompi_info", "--parsable"], capture_output=True, text=True).stdout
    for arguments, code in ((MULTIPLY, 0), (["verify", "a.h5", "b.h5", "c.h5", "--quiet"], 0),
                            (["compare", "a.h5", "b.h5", "--quiet"], 1)):
        result = run(*arguments, ranks=2, code=code, environment=environment)
        assert result.crashed_at_end == os.path.exists("came"), result
        assert os.path.exists("came") or "mca:pmix:ext3x:" not in components
    assert np.all(read("c.h5") == 30)


main(globals())
