"""Progress on a terminal of the test's own, while stdout and stderr go to files: alone and under mpirun, at several
widths, in the foreground and in the background."""
import fcntl
import itertools
import os
import pty
import shutil
import signal
import struct
import termios
import time

from lib import CRASHED_AT_END, ENVIRONMENT, command_line, main, np, random, run, some, write

STOPPED = 99


def forbid_background_writes(terminal):
    """As `stty tostop` does: a background group that writes is stopped."""
    settings = termios.tcgetattr(terminal)
    settings[3] |= termios.TOSTOP
    termios.tcsetattr(terminal, termios.TCSANOW, settings)


def as_shell(command, terminal, background):
    """In the child, which leads a session whose terminal this is: starts the command as a shell would. Its exit
    code."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        if not background:
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(terminal, os.getpgrp())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvpe(command[0], command, ENVIRONMENT)
    status = os.waitpid(child, os.WUNTRACED)[1]
    if os.WIFSTOPPED(status):
        os.killpg(child, signal.SIGKILL)
        return STOPPED
    return os.waitstatus_to_exitcode(status) & 0xff


def on_terminal(*args, columns=80, ranks=0, background=False, stop_after=0):
    """Exit code, what the terminal got, what stderr got. stop_after: seconds until the terminal's foreground is told to
    stop, once there is a bar."""
    keeper, terminal = pty.openpty()
    fcntl.ioctl(keeper, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    anew = os.O_CREAT | os.O_TRUNC | os.O_WRONLY
    files = [os.open("/dev/null", os.O_RDONLY), os.open("out.txt", anew), os.open("err.txt", anew)]
    shell = os.fork()
    if shell == 0:
        code = 98
        try:
            os.setsid()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            forbid_background_writes(terminal)
            for number, file in enumerate(files):
                os.dup2(file, number)
            os.close(keeper)
            code = as_shell(command_line(args, ranks), terminal, background)
        finally:
            os._exit(code)
    os.close(terminal)
    for file in files:
        os.close(file)
    text, started = b"", time.monotonic()
    os.set_blocking(keeper, False)
    while True:
        try:
            text += os.read(keeper, 65536)
        except BlockingIOError:
            pass
        except OSError:  # nobody holds the terminal any longer
            break
        if stop_after and b"%" in text and time.monotonic() - started > stop_after:
            stop_after = 0
            os.killpg(os.tcgetpgrp(keeper), signal.SIGTERM)
        assert time.monotonic() - started < 60, f"it hangs: {text[-300:]}"
        time.sleep(0.02)
    code = os.waitstatus_to_exitcode(os.waitpid(shell, 0)[1])
    os.close(keeper)
    return code, text.decode(), open("err.txt").read().replace(CRASHED_AT_END, "")


def screen_after(text, columns):
    """The line after all that was written to it. Nothing may reach its last column, where terminals wrap."""
    line, at = [" "] * columns, 0
    for character in text:
        if character == "\r":
            at = 0
            continue
        assert character.isprintable() and at < columns - 1, (columns, text)
        line[at] = character
        at += 1
    return "".join(line)


def check_bar(result, columns, parts=()):
    code, text, err = result
    assert code == 0 and err == "", result
    assert "%" in text and " left" in text, result
    assert screen_after(text, columns).strip() == "", (columns, text[-300:])
    for part in parts:
        assert part in text, (part, text)


SLOW = ["multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--panel", "1", "--kernel", "reference"]


def write_inputs(panels=2000):
    """SLOW takes about three seconds with 2000 panels, and in proportion."""
    write("a.h5", np.ones((700, panels), "f4"))
    write("b.h5", np.ones((panels, 700), "f4"))


def test_widths():
    """A run in which the bar changed less than three times was too short to tell: a longer one decides. Machines may
    be busy in one second and idle in the next."""
    panels = 1000
    for ranks, columns in some(((0, 20), (2, 20), (2, 40), (2, 80), (0, 80), (2, 200)), 3):
        for _ in range(4):
            write_inputs(panels)
            result = on_terminal(*SLOW, columns=columns, ranks=ranks)
            if result[1].count("%") >= 3:
                break
            panels *= 2
        assert result[1].count("%") >= 3, result
        check_bar(result, columns, ["multiply ["] if columns >= 80 else [])
        assert "time  " in open("out.txt").read()


def test_background():
    """The terminal belongs to others: nothing is written to it, and nothing stops."""
    write_inputs()
    for ranks in (0, 2):
        code, text, err = on_terminal(*SLOW, ranks=ranks, background=True)
        assert (code, text, err) == (0, "", ""), (ranks, code, text, err)


def test_quiet():
    write_inputs()
    for how in (["--quiet"], ["--progress", "plain"]):
        code, text, err = on_terminal(*SLOW, *how, ranks=2)
        assert (code, text, err) == (0, "", ""), (how, code, text, err)
    assert on_terminal(*SLOW, "--quiet", "--progress", "bar")[:2] == (0, "")


def test_stopped():
    """The bar goes, the message comes."""
    write("big.h5", np.ones((3000, 3000), "f4"))
    for ranks in (0, 2):
        code, text, err = on_terminal("multiply", "big.h5", "big.h5", *SLOW[3:], ranks=ranks, stop_after=3)
        assert code != 0 and err.count("tessera: ") == 1 and "stopped on request" in err, (code, err)
        assert "%" in text and screen_after(text, 80).strip() == "", text[-300:]


def test_other_commands():
    """generate, verify and compare show how far they are, too; --quiet says nothing. On one core, so that they last
    longer than the half second in which no bar is shown."""
    write_inputs()
    data = random.normal(size=(7000, 7000)).astype("f4")
    write("x.h5", data, chunks=(500, 500), compression="gzip", compression_opts=1)
    shutil.copy("x.h5", "y.h5")
    run("multiply", "x.h5[:1000,:]", "y.h5", "-o", "z.h5", "--device", "cpu")
    commands = {"compare": ["x.h5", "y.h5"],
                "verify": ["x.h5[:1000,:]", "y.h5", "z.h5", "--trials", 64, "--threads", 1],
                "generate": ["-o", "g.h5", "--shape", "7000x5000", "--distribution", "normal", "--force"]}
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # children inherit it
    try:
        for command, ranks in some(itertools.product(commands, (0, 2)), 4):
            check_bar(on_terminal(command, *commands[command], ranks=ranks), 80, [command + " ["])
            assert open("out.txt").read(), command
        for command, args in commands.items():
            assert on_terminal(command, *args, "--quiet")[:2] == (0, "") and open("out.txt").read() == "", command
    finally:
        os.sched_setaffinity(0, cores)


main(globals())
