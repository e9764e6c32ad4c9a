"""Completion in bash, zsh and fish: what the program says may stand there, and what comes of the tabulator in real
shells. Usage: test_completions.py REPOSITORY TESSERA"""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

ROOT, TESSERA = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SCRIPTS = ROOT / "jobs" / "completions"
ENVIRONMENT = dict(os.environ, PATH=f"{TESSERA.parent}:{os.environ['PATH']}", TERM="dumb", LC_ALL="C.UTF-8")


def complete(*words):
    process = subprocess.run([TESSERA, "--complete", "tessera", *words], capture_output=True, text=True, timeout=10)
    assert process.returncode == 0 and process.stderr == "", process
    return [line.split("\t")[0] for line in process.stdout.splitlines()]


def test_words():
    assert complete("mul") == ["multiply"] and complete("help", "v") == ["verify"], complete("help", "v")
    commands = [word for word in complete("") if not word.startswith("-") and word != "help"]
    text = subprocess.run([TESSERA, "--help"], capture_output=True, text=True, check=True).stdout
    listed = [line.split()[0] for line in text.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
    assert commands == listed, (commands, listed)
    parts = complete("bench", "")
    for words in [[name] for name in commands if name != "bench"] + [["bench", part] for part in parts]:
        text = subprocess.run([TESSERA, *words, "--help"], capture_output=True, text=True, check=True).stdout
        options = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", text, re.M))
        assert set(complete(*words, "--")) == options | {"--help", "--version"}, (words, options)
    assert complete("multiply", "--host") == ["--host-memory"], complete("multiply", "--host")
    assert "auto" in complete("multiply", "--device", "") and complete("multiply", "--device=cu") == ["--device=cuda"]
    assert complete("plan", "--ranks", "") == complete("nothing", "--") == complete("bench", "nothing", "--") == []


def test_choices():
    """Every value that is offered is one that the option takes."""
    given = []
    for option in ("--device", "--accuracy", "--io", "--order", "--progress", "--compress", "--triangle"):
        values = complete("multiply", option, "")
        assert len(values) > 1, option
        given += [word for value in values for word in (option, value)]
    process = subprocess.run([TESSERA, "multiply", *given, "a", "b", "c"], capture_output=True, text=True,
                             env=ENVIRONMENT, timeout=60)
    assert "'c' is one matrix too many" in process.stderr, process  # which is found behind them


def test_datasets():
    assert complete("multiply", "m.h5:/") == ["m.h5:/A", "m.h5:/deep/B b", "m.h5:/deep/C"]
    assert complete("multiply", "m.h5:/deep/C") == ["m.h5:/deep/C"] and complete("info", "m.h5:") != []
    assert complete("multiply", "m.h5:/A", "--add=m.h5:/d") == ["--add=m.h5:/deep/B b", "--add=m.h5:/deep/C"]
    with open("text.h5", "w") as file:
        file.write("no HDF5 " * 300)
    os.mkfifo("pipe.h5")
    for name in ("none.h5:/", "text.h5:/", "pipe.h5:/", ".:/", ":/", ":", ""):
        assert complete("multiply", name) == [], name
    begin = time.time()
    for _ in range(10):
        complete("multiply", "m.h5:/")
    assert time.time() - begin < 3, f"{time.time() - begin} s for ten"


def type_into(command, first, lines, folder):
    """What an interactive shell shows for lines, each ended by what is waited for."""
    shell, terminal = pty.fork()
    if shell == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, ENVIRONMENT)
    shown = ""

    def wait(text):
        nonlocal shown
        begin = len(shown)
        for _ in range(400):
            if text in re.sub(r"\x07|\r(?!\n)|\x1b\[[?0-9;]*[a-zA-Z]", "", shown[begin:]):
                return
            if select.select([terminal], [], [], 0.05)[0]:
                shown += os.read(terminal, 65536).decode(errors="replace")
        raise AssertionError(f"{command}: no {text!r} in {shown!r}")

    try:
        os.write(terminal, (first + "; echo rea''dy\n").encode())
        wait("ready\r\n")
        for line, text in lines:
            os.write(terminal, ("\x15" + line).encode())  # ^U: an empty line first
            wait(text)
    finally:
        os.kill(shell, 9)
        os.waitpid(shell, 0)
        os.close(terminal)


TYPED = [("tessera mul\t", "multiply "), ("tessera multiply m.h5:/d\t", "m.h5:/deep/"),
         ("tessera multiply m.h5:/deep/B\t", "m.h5:/deep/B\\ b"), ("tessera multiply --accuracy tf\t", "tf32"),
         ("tessera multiply --host\t", "--host-memory"), ("tessera multiply oth\t", "other_file.h5")]


def test_bash():
    type_into(["bash", "--norc", "--noprofile", "-i"], f". {SCRIPTS}/tessera.bash", TYPED +
              [("tessera multiply --add=m.h5:/A\t", "--add=m.h5:/A ")], os.getcwd())
    # as it is found by bash-completion, which may change what breaks words
    for breaks in ("$COMP_WORDBREAKS", "' '"):
        type_into(["bash", "--norc", "--noprofile", "-i"], f". {SCRIPTS}/tessera.bash; COMP_WORDBREAKS={breaks}",
                  [("tessera multiply m.h5:/deep/C\t", "m.h5:/deep/C ")], os.getcwd())


def test_zsh():
    if not shutil.which("zsh"):
        return "zsh"
    type_into(["zsh", "-f", "-i"], f"fpath=({SCRIPTS} $fpath); autoload -U compinit; compinit -u -D", TYPED +
              [("tessera multiply --add m.h5:/A\t", "m.h5:/A ")], os.getcwd())


def test_fish():
    if not shutil.which("fish"):
        return "fish"

    def offered(line):
        said = subprocess.run(["fish", "--no-config", "-c", f"source {SCRIPTS}/tessera.fish; complete -C '{line}'"],
                              capture_output=True, text=True, env=ENVIRONMENT, timeout=30, check=True)
        assert said.stderr == "", said
        return [word.split("\t")[0] for word in said.stdout.splitlines()]

    assert offered("tessera mul") == ["multiply"], offered("tessera mul")
    assert offered("tessera multiply m.h5:/deep/") == ["m.h5:/deep/B b", "m.h5:/deep/C"]
    assert offered("tessera multiply --add=m.h5:/A") == ["--add=m.h5:/A"]
    assert offered("tessera multiply oth") == ["other_file.h5"], offered("tessera multiply oth")


folder = tempfile.mkdtemp(prefix="tessera-completions-")
os.chdir(folder)
try:
    with h5py.File("m.h5", "w") as made:
        for dataset in ("A", "deep/B b", "deep/C"):
            made[dataset] = np.ones((1, 2))
    shutil.copy("m.h5", "other_file.h5")
    test_words(), test_choices(), test_datasets(), test_bash()
    missing = [shell for shell in (test_zsh(), test_fish()) if shell]
finally:
    os.chdir("/")
    shutil.rmtree(folder)
if missing:
    print(f"skipped: no {' and no '.join(missing)} (jobs/setup.sh --tests installs them)")
    sys.exit(77)
