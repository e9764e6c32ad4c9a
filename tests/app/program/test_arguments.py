"""Files of options (@FILE) and variables (TESSERA_KERNEL=split3): what they mean, what wins, what is refused, and that
all ranks see rank 0's."""
import json
import os
import pathlib
import shlex
import stat
import subprocess

from lib import ENVIRONMENT, MPIRUN, TESSERA, fails, integers, main, np, read, run, write

PLAN = ["plan", "--shape", "512", "--machine", pathlib.Path(__file__).parents[3] / "jobs/h200_example.machine"]


def options(text, name="o.txt"):
    with open(name, "w") as file:
        file.write(text)
    return "@" + name


def log():
    with open("run.json") as file:
        return json.load(file)


def inputs():
    a, b = integers(30, 20), integers(20, 10)
    write("a.h5", a), write("b.h5", b), write("with space.h5", b)
    return a.astype("f8") @ b.astype("f8")


def test_file():
    """Blanks, quotes, backslashes and comments are a shell's; the record's command is what a shell would take."""
    c = inputs()
    run("multiply", options("""# how
        a.h5 'with space.h5'   # A and B
        -o "c\\"1\\".h5" --device\tcpu \\
        --kernel=reference
        --alpha 2 --log run.json --grid 1'x'1\r\n"""), "--quiet")
    assert np.array_equal(read('c"1".h5'), 2 * c), "product"
    assert shlex.split(log()["command"]) == [
        "tessera", "multiply", "a.h5", "with space.h5", "-o", 'c"1".h5', "--device", "cpu", "--kernel=reference",
        "--alpha", "2", "--log", "run.json", "--grid", "1x1", "--quiet"], log()["command"]
    assert "a\\b.h5" in fails("info", options('"a\\b.h5"'), code=1, says="a").error  # in quotes it stays
    again = log()["command"].replace("tessera", TESSERA, 1) + " --force"
    subprocess.run(["bash", "-c", again], check=True, env=ENVIRONMENT, timeout=60)
    assert log()["kernel"] == "reference", log()


def test_nested():
    options("--panel 64", "inner.txt")
    text = run(*PLAN, options("--ranks 4 @inner.txt"), "--json", "p.json").out
    assert "of k = 64 " in text and json.load(open("p.json"))["ranks"] == 4, text
    options("@second.txt", "first.txt")
    options("@first.txt", "second.txt")
    fails(*PLAN, "@first.txt", ranks=2, code=2, says=["8 deep", "does one name itself?"])
    write("@x.h5", np.ones((2, 2)))
    assert "2 x 2" in run("info", "./@x.h5").out and "2 x 2" in run("info", "--", "@x.h5").out
    assert "2 x 2" in run("info", options("-- @x.h5")).out and "2 x 2" in run("info", options("'@x.h5'")).out


def test_refused_files():
    fails("info", "@nothing.txt", ranks=2, code=2, says=["@nothing.txt", "No such file", "./@nothing.txt"])
    fails("info", options("one\n 'two\nthree"), code=2, says="@o.txt:2: the quote '")
    with open("binary", "wb") as file:
        file.write(b"--devices\0")
    fails("info", "@binary", code=2, says="@binary is no text")
    os.mkfifo("pipe")
    for name in ("pipe", "."):
        fails("info", "@" + name, code=2, says="regular file")
    fails("info", options("x " * 600000), code=2, says="1048576 bytes")
    fails("info", options("--device cpu --nothing"), code=2, says="unknown option '--nothing'")
    fails("multiply", options("a b -o c --help"), code=2, says="--help belongs on the command line")


def test_places():
    """What is wrong with an option of a file says where it stands there."""
    product = ("multiply", "a.h5", "b.h5", "-o", "e.h5")
    inputs()
    fails(*product, options("--device cpu\n\n--nothing 3"), ranks=2, code=2, says=["'--nothing'", "(@o.txt:3)"])
    fails(*product, options("# first\n--panel=wide --kernel 'reference'"), code=2, says=["'wide'", "(@o.txt:2)"])
    fails(*product, options("--panel 8\n--panel wide"), code=2, says="(@o.txt:1, @o.txt:2)")
    fails(*product, options("--transpose-b"), code=1, says="(@o.txt:1)")
    fails(*product, options("--alpha -1\n--panel -1 --quiet"), code=2, says="(@o.txt:2)")
    fails(*product, options("'--panel wide'"), code=2, says="(@o.txt:1)")
    fails(*product, options("--memory 1"), environment={"TESSERA_PANEL": "9"}, code=1,
          says="(@o.txt:1; from the environment: --panel=9)")
    for typed in (["--panel", "wide"], ["--pan", "wide"], ["--panl", "wide"]):
        error = fails(*product, options("--panel 8"), *typed, code=2, says=typed[0]).error
        assert "@" not in error, error
    error = fails(*product, options("--panel 8"), "--nothing", code=2, says="'--nothing'").error
    assert "@" not in error, error


def test_environment():
    c = inputs()
    product = ["multiply", "a.h5", "b.h5", "-o", "e.h5", "--force", "--device", "cpu", "--log", "run.json"]
    out = run(*product, environment={"TESSERA_KERNEL": "reference", "TESSERA_HOST_MEMORY": "256M",
                                     "TESSERA_TRANSPOSE_A": "no", "TESSERA_PANEL": "", "TESSERA_QUIET": "on"}).out
    assert out == "" and np.array_equal(read("e.h5"), c), out
    assert log()["kernel"] == "reference", log()
    assert log()["command"] == "tessera multiply --kernel=reference --host-memory=256M --quiet " + " ".join(
        product[1:]), log()["command"]
    # the command line and its files win, also with short and shortened names
    wins = {"TESSERA_KERNEL": "nothing", "TESSERA_OUTPUT": "nothing.npy"}
    run(*product, "--kern", "reference", environment=wins)
    run(*product, options("--kernel reference"), environment=wins)
    assert log()["kernel"] == "reference" and not os.path.exists("nothing.npy"), log()
    # of bench's parts, and where the value may be left out
    one = {"TESSERA_KERNEL": "reference", "TESSERA_DEVICE": "cpu", "TESSERA_SHAPE": "8x9x10", "TESSERA_REPEAT": "1"}
    out = run("bench", "gemm", environment=one).out
    assert "m = 8, n = 9, k = 10 on " in out and "\nreference " in out and "\nnaive" not in out, out
    both = {"TESSERA_ALLOW_EXTERNAL": "1", "TESSERA_KERNEL": "of no use here"}
    assert "30 x 20" in run("info", "a.h5", environment=both).out
    fails("info", "a.h5", environment={"TESSERA_ALLOW_EXTERNAL": "no/such"}, code=2,
          says=["no such folder", "from the environment: --allow-external=no/such"])


def test_refused_variables():
    fails(*PLAN, "--ranks", 4, environment={"TESSERA_PANEL": "wide"}, code=2,
          says=["--panel", "wide", "(from the environment: --panel=wide)"])
    fails("info", "a.h5", ranks=2, environment={"TESSERA_DEVICES": "perhaps"}, code=2,
          says="TESSERA_DEVICES=perhaps: --devices takes no value: use 1 or 0")
    error = fails(*PLAN, "--no-such", environment={"TESSERA_PANEL": "8"}, code=2, says="'--no-such'").error
    assert "environment" not in error, error
    # what is wrong with the matrices or the memory, and what the message is not about
    inputs()
    two = ("multiply", "a.h5", "b.h5", "-o", "refused.h5")
    fails(*two, environment={"TESSERA_TRANSPOSE_B": "1"}, code=1, says="(from the environment: --transpose-b)", ranks=2)
    fails(*two, environment={"TESSERA_MEMORY": "1", "TESSERA_PANEL": "9"}, code=1,
          says="(from the environment: --panel=9 --memory=1)")
    error = fails("multiply", "a.h5", "none.h5", "-o", "refused.h5", environment={"TESSERA_PANEL": "9"}, code=1,
                  says="none.h5").error
    assert "environment" not in error, error


def test_misspelled():
    inputs()
    wrong = {"TESSERA_KERNL": "reference", "TESSERA_HOME_OF_MINE": "/", "TESSERA_PANEL": "8", "TESSERA_XY": "1"}
    for ranks in (0, 2):
        err = run("info", "a.h5", ranks=ranks, environment=wrong).err
        assert err.count("warning") == 1 and "TESSERA_KERNL is ignored" in err, err
        assert "did you mean 'TESSERA_KERNEL'?" in err, err


def test_ranks():
    """Rank 0's variables and files count on all ranks, whatever those have."""
    c = inputs()
    with open("rank.sh", "w") as file:
        file.write('#!/bin/bash\nif [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then export TESSERA_ALPHA=3\n'
                   'else export TESSERA_ALPHA=5 TESSERA_BETA=x; cd elsewhere; fi\nexec "$@"\n')
    os.chmod("rank.sh", stat.S_IRWXU)
    os.makedirs("elsewhere", exist_ok=True)
    here = os.getcwd()
    options(f"{here}/a.h5 {here}/b.h5 --device cpu -o {here}/r.h5")
    subprocess.run([MPIRUN, "-n", "3", "./rank.sh", TESSERA, "multiply", "@o.txt", "--quiet"], check=True, timeout=60,
                   env=ENVIRONMENT)
    assert np.array_equal(read("r.h5"), 3 * c), "product"
    with open("rank.sh", "w") as file:
        file.write('#!/bin/bash\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] && export TESSERA_PLUGINS=/tmp\nexec "$@"\n')
    process = subprocess.run([MPIRUN, "-n", "2", "./rank.sh", TESSERA, "info", "a.h5"], capture_output=True, text=True,
                             timeout=60, env=ENVIRONMENT)
    assert process.returncode == 2 and "--plugins is '' here and '/tmp' on rank 0" in process.stderr, process


main(globals())
