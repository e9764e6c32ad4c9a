"""The library's examples, run as a person would run them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from lib import ENVIRONMENT, MPIRUN, TESSERA, integers, main, np, read, run, write

MULTIPLY, LIBRARY, REPOSITORY = sys.argv[3:6]
SCALAPACK = sys.argv[6] if len(sys.argv) > 6 else ""


def example(*arguments, ranks):
    environment = dict(ENVIRONMENT, TESSERA_DESCRIBE=os.path.join(os.path.dirname(TESSERA), "tessera-describe"))
    return subprocess.run([MPIRUN, "-n", str(ranks), MULTIPLY, *arguments], capture_output=True, text=True, timeout=60,
                          env=environment)


def test_multiply():
    a, b = integers(120, 80), integers(80, 70)
    write("a.h5", a), write("b.h5", b)
    for ranks in (1, 3):
        result = example("a.h5", "b.h5:/C", f"c{ranks}.h5:/C", ranks=ranks)
        assert result.returncode == 0 and "GFLOP/s" in result.stdout, result
        assert np.array_equal(read(f"c{ranks}.h5"), a @ b)
    wrong = example("a.h5", "absent.h5", "d.h5", ranks=2)
    assert wrong.returncode != 0 and "absent.h5" in wrong.stderr and not os.path.exists("d.h5"), wrong
    again = example("a.h5", "b.h5", "c1.h5:/C", ranks=1)
    assert again.returncode != 0 and "exists" in again.stderr, again


def test_fortran():
    """ScaLAPACK's call from Fortran; left out without a compiler or ScaLAPACK."""
    library = os.path.dirname(os.path.abspath(LIBRARY))
    source = os.path.join(REPOSITORY, "docs/examples/pdgemm.f90")
    if not SCALAPACK or not shutil.which("mpif90"):
        print("left out: no mpif90, or no ScaLAPACK")
        return
    built = subprocess.run(["mpif90", source, LIBRARY, f"-Wl,-rpath,{library}", SCALAPACK, "-o", "pdgemm"],
                           capture_output=True, text=True, timeout=60)
    assert built.returncode == 0, built.stderr
    for ranks in (1, 4):
        done = subprocess.run([MPIRUN, "-n", str(ranks), "./pdgemm"], capture_output=True, text=True, timeout=60,
                              env=ENVIRONMENT)
        assert done.returncode == 0, done.stdout + done.stderr
        assert 0 <= float(done.stdout.split(":")[1]) < 1e-11, done.stdout


def test_every_option_has_a_field():
    """The program has no way to multiply that tessera.h does not offer: what is an option is a field there."""
    others = {"output": "the third matrix", "adjoint-a": "transpose_a and conjugate_a", "dry-run": "tessera_plan",
              "adjoint-b": "transpose_b and conjugate_b", "verify": "trials", "stall-timeout": "stall_seconds",
              "allow-external": "external", "plugins": "tessera_open_options"}
    of_the_program = {"quiet", "ranks", "help"}  # what it shows
    layout = pathlib.Path(__file__).with_name("layout.txt").read_text()
    fields = set(re.findall(r"tessera_multiply_options\.([a-z_]+)", layout))
    options = set(re.findall(r"^ *(?:-\w, )?--([a-z0-9-]+)", run("multiply", "--help").out, re.MULTILINE))
    assert len(options) > 35, options
    missing = {option for option in options - set(others) - of_the_program if option.replace("-", "_") not in fields}
    assert not missing, f"tessera.h lacks {missing}"


main(globals())
