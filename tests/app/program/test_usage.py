"""Wrong usage of everything: one line that says what to do, exit code 2 (1 for missing or bad files), no hang on any
number of ranks."""
import os
import pathlib
import re
import subprocess

from lib import ENVIRONMENT, TESSERA, command_line, fails, leftovers, main, np, read, run, write

COMMANDS = ["multiply", "generate", "compare", "verify", "info", "plan", "bench"]


def test_help():
    text = run("--help").out
    for command in COMMANDS:
        assert command in text, text
        own = run(command, "--help").out
        assert own.startswith("Usage: ") and f"tessera {command}" in own, own
    for option in ["--alpha", "--beta", "--add", "--transpose-a", "--transpose-b", "--type", "--accuracy", "--kernel",
                   "--device", "--grid", "--panel", "--memory",
                   "--host-memory", "--dry-run", "--force", "--log", "--trace", "--progress", "--verify", "--order",
                   "--transport", "--schedule", "--io", "--chunk", "--compress", "--shuffle"]:
        assert option in run("multiply", "--help").out, option


def test_version():
    assert run("--version").out.startswith("tessera 0."), "version"
    for command in COMMANDS:
        assert run(command, "--version").out.startswith(f"tessera {command} 0."), command


def test_ways_to_ask():
    """-h, -V and `help` say what --help and --version say."""
    general, version = run("--help").out, run("--version").out
    assert run("-h").out == run("help").out == general and run("-V").out == run("version").out == version
    for command in COMMANDS:
        own = run(command, "--help").out
        assert (
            run(command, "-h").out == run("help", command).out == run("--help", command).out == own != general
        ), command
        assert run(command, "a", "b", "-V").out == run(command, "--version").out, command
    one = run("bench", "gemm", "--help").out
    assert (
        one == run("help", "bench", "gemm").out and "tessera bench gemm" in one and "tessera bench memory" not in one
    ), one
    fails("help", "multiplly", code=2, says=["'multiplly'", "did you mean 'multiply'"])
    fails("multiplly", "--help", code=2, says="did you mean 'multiply'")


def test_help_about_help():
    """The words of the program are no commands, and no mistakes."""
    for word in ("help", "version"):
        assert run("help", word).out == run("--help", word).out == run("--help").out, word
    fails("help", "helpp", code=2, says="did you mean 'help'")


def test_accuracy_classes():
    says = "'ieeee' is unknown: use one of ieee fast tf32 bf16; "
    fails("multiply", "a", "b", "-o", "c", "--accuracy", "ieeee", code=2, says=says)


def test_help_width():
    """80 columns, whatever is asked for, and an example that names the command."""
    parts = [["bench", part] for part in ("gemm", "multiply", "memory", "accuracy", "speeds")]
    for arguments in [[]] + [[command] for command in COMMANDS] + parts:
        text = run("help", *arguments).out
        for line in text.splitlines():
            assert len(line) <= 80, f"{len(line)} columns: {line}"
        example = text[text.rindex("Example") :]
        assert " ".join(["tessera"] + arguments) in example, f"{arguments}: {example}"


def test_versions():
    lines = run("--version").out.splitlines()
    header = (pathlib.Path(__file__).parents[3] / "kernels/base/base.h").read_text()
    assert lines[0] == "tessera " + re.search(r'define TSR_VERSION "(.*)"', header)[1], lines
    said = {line.split()[0]: line.split(None, 1)[1] for line in lines[1:]}
    assert list(said) == ["commit", "HDF5", "MPI", "CUDA", "NCCL", "zlib", "filters"], said
    assert re.match(r"[0-9a-f]{7,}|unknown", said["commit"]), said
    assert re.match(r"1\.\d+\.\d+ \((parallel|serial)\)", said["HDF5"]) and "(built for MPI " in said["MPI"], said
    for library in ("CUDA", "NCCL", "zlib"):
        assert re.match(r"\d+\.\d+|not in this build", said[library]), said


def test_libraries():
    """Starts where no GPU library is: none is linked, they are loaded when they are wanted."""
    needed = subprocess.run(["readelf", "-d", TESSERA], capture_output=True, text=True, check=True).stdout
    needed = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "(NEEDED)" in line]
    assert any(library.startswith("libc.so") for library in needed), needed
    assert not [
        library for library in needed if any(name in library for name in ("nccl", "cublas", "cudart", "libcuda."))
    ], needed


def test_help_once():
    for arguments in (["--help"], ["multiply", "--help"], ["--version"]):
        alone, together = run(*arguments).out, run(*arguments, ranks=3).out
        assert alone == together, f"{alone}\n---\n{together}"
    slurm = run("--version", environment={"SLURM_PROCID": "1"}).out
    assert slurm == "", slurm


def test_commands():
    fails(code=2, says=["no command"] + COMMANDS)
    for ranks in (0, 1, 3):
        fails("multiplly", ranks=ranks, code=2, says=["'multiplly'"] + COMMANDS)
    fails("--bogus", code=2, says="'--bogus'")
    fails("genrate", code=2, says="did you mean 'generate'?")
    fails("bench", "gem", code=2, says="did you mean 'gemm'?")


def test_options():
    for command in COMMANDS:
        fails(command, "--no-such-option", ranks=2, code=2, says=["'--no-such-option'", "--"])
    fails("generate", "--shape", code=2, says=["'--shape'", "MxN"])
    fails("multiply", "--transpose-a=yes", "a", "b", "-o", "c", code=2, says="takes no value")
    both = ["transpose-a", "transpose-b"]
    for typed, meant in (("--transpose", both), ("--tr", both + ["trials", "trace", "transport", "triangle"])):
        error = fails("multiply", typed, "a", "b", code=2, says=["ambiguous", f"'{typed}'", "--help"]).error
        listed = {word for word in error.split(": ", 3)[3].split() if word.startswith("--") and word != "--help"}
        assert listed == {f"--{name}" for name in meant}, error
    for wrong in ("--zzz", "-Z", "--chunkz"):
        error = fails("multiply", "a", "b", wrong, code=2, says=[f"'{wrong}'", "tessera multiply --help"]).error
        assert len(error) < 140 and error.count("--") <= 3, error
    assert "did you mean '--chunk'?" in error, error
    fails("compare", "x", "y", "z", code=2, says="'z'")
    fails("multiply", "--transpose_b", "a", "b", "-o", "c", code=2, says="did you mean '--transpose-b'?")


def test_aliases():
    run("generate", "-o", "n.h5", "--shape", "12,10", "--type", "float32", "--order", "C")
    assert read("n.h5").shape == (12, 10) and read("n.h5").dtype == np.float32
    run("generate", "-o", "n.h5:/F", "--shape", "12,10", "--type", "fp64", "--order", "F")
    assert read("n.h5", "F").shape == (10, 12) and read("n.h5", "F").dtype == np.float64
    run(
        "multiply",
        "n.h5:/C",
        "n.h5:/C",
        "--transpose-b",
        "-o",
        "named.h5",
        "--type",
        "double",
        "--grid",
        "1,1",
        "--host-memory",
        "1Gi",
        "--device",
        "CPU",
    )
    assert read("named.h5").dtype == np.float64
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    fails(
        "multiply",
        "n.h5:/C",
        "n.h5:/C",
        "--transpose-b",
        "-o",
        "p.h5",
        "--device",
        "gpu",
        environment=hidden,
        code=1,
        says="--device cpu",
    )


def test_values():
    wrong = [("--grid", "2"), ("--grid", "0x1"), ("--panel", "0"), ("--panel", "x"), ("--memory", "lots"),
             ("--memory", "0"), ("--host-memory", "200%"),
             ("--alpha", "x"), ("--beta", "1,5"), ("--alpha", "1+2"), ("--alpha", "2k"), ("--alpha", "1+2jj"),
             ("--beta", "nanj"), ("--type", "i32"), ("--type", "f31"), ("--device", "tpu"),
             ("--io", "fast"), ("--order", "diagonal"),
             ("--progress", "loud"), ("--trials", "0")]
    for option, value in wrong:
        fails("multiply", "a.h5", "b.h5", "-o", "c.h5", option, value, code=2,
              says=value if option != "--panel" else "--panel")
    wrong = [("--shape", "3"), ("--shape", "3x-4"), ("--shape", "x"), ("--type", "quaternion"),
             ("--distribution", "zipf"), ("--seed", "-1"), ("--seed", "1.5")]
    for option, value in wrong:
        fails("generate", "-o", "g.h5", "--shape", "2x2", option, value, code=2, says=value)
    fails("compare", "a", "b", "--tolerance", "-1", code=2, says="-1")
    fails("verify", "a", "b", "c", "--trials", "65", code=2, says="1 to 64")
    fails("verify", "a", "b", "c", "--accumulated", "f16", code=2, says="f32 or f64")
    fails("verify", "a", "b", "c", "--beta", "2", code=2, says="--add")
    fails("multiply", "a", "b", "-o", "c", "--beta", "2", code=2, says="--add")


def test_missing_arguments():
    fails("multiply", code=2, says="tessera multiply A B -o C")
    fails("multiply", "a", "b", code=2, says="-o")
    fails("generate", code=2, says="-o")
    fails("generate", "-o", "x.h5", code=2, says="--shape")
    fails("compare", "x", ranks=2, code=2, says="compare X Y")
    fails("verify", "x", "y", code=2, says="verify A B C")
    fails("info", code=2, says="info FILE")


def test_kernel_and_transport():
    a = write("k.h5", np.ones((4, 4), "f4"), "A")
    fails("multiply", a, a, "-o", "o.h5", "--kernel", "fastest", ranks=2, code=2, says=["fastest", "reference", "blas"])
    fails("multiply", a, a, "-o", "o.h5", "--transport", "pigeon", ranks=2, code=2, says=["pigeon", "host"])
    for command in (("multiply", a, a, "-o", "o.h5"), ("plan", "--shape", "8"), ("bench", "multiply", "--shape", "8")):
        fails(*command, "--schedule", "suma", code=2, says=["--schedule suma", "auto, summa", "did you mean 'summa'"])


def test_files():
    with open("text.h5", "w") as file:
        file.write("this is no HDF5 file\n" * 100)
    open("empty.h5", "w").close()
    write("whole.h5", np.ones((300, 300)), "A")
    with open("whole.h5", "rb") as whole, open("cut.h5", "wb") as cut:
        cut.write(whole.read()[: 300 * 300 * 8 // 2])
    write("good.h5", np.ones((3, 3)), "A")
    os.mkdir("folder.h5")
    for name in ["missing.h5", "text.h5", "empty.h5", "cut.h5", "good.h5:/nothing", "folder.h5"]:
        for command in (["info", name], ["compare", name, "good.h5"], ["compare", "good.h5", name],
                        ["verify", "good.h5", "good.h5", name],
                        ["multiply", "good.h5", name, "-o", "out.h5"]):
            fails(*command, ranks=0, code=1, says=name.split(":")[0])
    fails("multiply", "missing.h5", "good.h5", "-o", "out.h5", ranks=4, code=1, says="missing.h5")
    fails("verify", "good.h5", "cut.h5", "good.h5", ranks=3, code=1, says="cut.h5")
    assert not os.path.exists("out.h5") and not leftovers(), os.listdir(".")


def test_outputs():
    write("in.h5", np.ones((3, 3)), "A")
    fails("generate", "-o", "no/such/folder/g.h5", "--shape", "3x3", ranks=2, code=1, says="no/such/folder")
    fails("generate", "-o", "in.h5:/A", "--shape", "3x3", ranks=2, code=1, says="--force")
    fails("generate", "-o", "in.h5:/A[0:1,0:1]", "--shape", "1x1", "--force", code=2, says="[")
    fails("multiply", "in.h5", "in.h5", "-o", "no/such/folder/c.h5", ranks=2, code=1, says="no/such/folder")


def test_standard_output():
    write("small.h5", np.ones((2, 2)), "A")
    with open("/dev/full", "w") as full:
        process = subprocess.run(command_line(["info", "small.h5"]), stdout=full, stderr=subprocess.PIPE, text=True,
                                 env=ENVIRONMENT, timeout=60)
    assert process.returncode == 1 and "standard output" in process.stderr, process
    assert os.access(TESSERA, os.X_OK)


main(globals())
