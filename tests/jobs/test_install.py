"""`cmake --install` and the Debian package: what they put down works from where it lies, also after it was moved, by
itself and for programs that are built with it. Nothing is compiled but these. Usage: test_install.py REPOSITORY
BUILD MPIRUN"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

ROOT, BUILD, MPIRUN = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
VERSION = re.search(r'define TSR_VERSION "(.*)"', (ROOT / "kernels/base/base.h").read_text())[1]
LEFT_OUT = ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "DESTDIR", "TSR_HOME", "TSR_BIN")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
ENVIRONMENT.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_pml="ob1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none")
CACHE = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M))
LIBRARIES = CACHE.get("CMAKE_INSTALL_LIBDIR", "lib")
LIBRARY = (ROOT / "app/library/tessera.h").exists()
PROGRAM = """#include <stdio.h>
#include <tessera.h>

int main(int argc, char **argv) {
    tessera_context *context = NULL;
    int status, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    status = tessera_open(MPI_COMM_WORLD, NULL, &context);
    if (!status) status = tessera_multiply(context, argv[1], argv[2], argv[3], NULL, NULL);
    if (status) fprintf(stderr, "%s\\n", tessera_message());
    else printf("made by %s\\n", tessera_version());
    tessera_close(context);
    MPI_Finalize();
    return status;
}
"""
CMAKE = """cmake_minimum_required(VERSION 3.18)
project(user LANGUAGES C)
find_package(tessera ${WANTED} REQUIRED)
add_executable(shared user.c)
target_link_libraries(shared tessera::tessera)
add_executable(static user.c)
target_link_libraries(static tessera::static)
"""


def run(*command, code=0, **more):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120,
                             env=dict(ENVIRONMENT, **more.pop("environment", {})), **more)
    assert process.returncode == code, f"{command}: exit code {process.returncode}\n{process.stdout}\n{process.stderr}"
    return process.stdout + process.stderr


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def check_product(name):
    with h5py.File(name) as file:
        assert np.array_equal(file["C"][...], np.arange(12.0).reshape(3, 4) @ np.ones((4, 2))), name


def make_inputs():
    with h5py.File("a.h5", "w") as file:
        file["A"] = np.arange(12.0).reshape(3, 4)
    with h5py.File("b.h5", "w") as file:
        file["B"] = np.ones((4, 2))


def test_files(prefix):
    """With DESTDIR, in which nothing else is."""
    stage = pathlib.Path("stage").resolve()
    run("cmake", "--install", BUILD, "--prefix", "/opt/tessera of a test", environment={"DESTDIR": str(stage)})
    assert os.listdir(stage) == ["opt"] and os.listdir(stage / "opt") == ["tessera of a test"], files_below(stage)
    assert not os.path.exists("/opt/tessera of a test")
    shutil.move(stage / "opt" / "tessera of a test", prefix)
    there = files_below(prefix)
    wanted = {"bin/tessera", "bin/tessera-describe", "share/doc/tessera/LICENSE", "share/doc/tessera/README.md",
              "share/doc/tessera/docs/usage.md", "share/tessera/jobs/one_node_srun.sbatch",
              "share/tessera/jobs/common.sh", "share/bash-completion/completions/tessera",
              "share/fish/vendor_completions.d/tessera.fish"}
    if LIBRARY:
        wanted |= {"include/tessera.h", f"{LIBRARIES}/libtessera.so", f"{LIBRARIES}/libtessera.so.{VERSION}",
                   f"{LIBRARIES}/libtessera.a", f"{LIBRARIES}/pkgconfig/tessera.pc",
                   f"{LIBRARIES}/cmake/tessera/tesseraConfig.cmake"}
    assert wanted <= there and any(name.endswith("/_tessera") for name in there), wanted - there
    strange = [name for name in there if not re.match(r"(bin|include|share|" + LIBRARIES + ")/", name)
               or "packaging" in name or name.endswith((".log", ".o", "setup.sh"))]
    assert not strange, strange
    for name in there:  # nothing says where it was built
        if not re.search(r"\.(so[.\d]*|a|svg|png)$|^bin/", name):
            text = (prefix / name).read_text()
            assert str(ROOT) not in text and str(BUILD) not in text and "/opt/tessera of" not in text, name
    for page in prefix.rglob("*.md"):
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page}: '{link}' leads nowhere"


def test_program(prefix):
    """With nothing of its own in the environment: libraries are found as they were linked."""
    tessera = prefix / "bin" / "tessera"
    head = subprocess.run(["readelf", "-d", tessera], capture_output=True, text=True, check=True).stdout
    assert str(BUILD) not in head and "$ORIGIN" in head, head
    linked = re.search(r"PATH\).*\[(.*)\]", subprocess.run(["readelf", "-d", BUILD / "tessera"], capture_output=True,
                                                            text=True, check=True).stdout)
    for folder in (linked[1].split(":") if linked else []):
        assert not folder or folder in head, f"{folder} is not in the run path: {head}"
    assert run(tessera, "--version").startswith(f"tessera {VERSION}\n")
    run(MPIRUN, "-n", "2", tessera, "multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu")
    check_product("c.h5")
    # job scripts find the program beside them
    said = run("bash", "-c", '. "$0/share/tessera/jobs/common.sh" && tsr_need_program && echo "$TSR_BIN"', prefix)
    assert said.strip() == str(tessera.resolve()), said


def test_manual(prefix):
    pages = prefix / "share" / "man" / "man1"
    if not (BUILD / "man").exists():
        return "no help2man when this was built"
    lines = run(prefix / "bin" / "tessera", "--complete", "tessera", "").splitlines()
    commands = [word for word in (line.split("\t")[0] for line in lines) if word[0] != "-" and word != "help"]
    assert set(os.listdir(pages)) == {"tessera.1"} | {f"tessera-{name}.1" for name in commands}, os.listdir(pages)
    assert "multiply" in commands
    for page in pages.iterdir():
        text = page.read_text()
        assert f'"Tessera {VERSION}"' in text and f"\n{page.stem} \\- " in text, text[:300]
        for option in re.findall(r"^\.TP\n(.*)", text, re.M):  # what it does is on the next line
            assert not re.search(r" [a-z]+ [a-z]+ [a-z]+", option), (page, option)
        if shutil.which("man"):
            said = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=True,
                                  env=dict(ENVIRONMENT, MANWIDTH="80", LC_ALL="C.UTF-8"))
            assert said.stderr == "" and "SYNOPSIS" in said.stdout, (page, said.stderr)
    assert "--host-memory" in (pages / "tessera-multiply.1").read_text().replace("\\-", "-")


def build_users(prefix, folder, wanted=""):
    source = pathlib.Path(folder)
    source.mkdir()
    (source / "user.c").write_text(PROGRAM)
    (source / "CMakeLists.txt").write_text(CMAKE)
    run("cmake", "-S", source, "-B", source, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DWANTED={wanted}")
    run("cmake", "--build", source)
    return source


def run_users(programs, environment=None):
    for program in programs:
        for ranks in (1, 2):
            out = f"{program.parent.name}-{program.name}-{ranks}.h5"
            if os.path.exists(out):
                os.remove(out)
            said = run(MPIRUN, "-n", ranks, program, "a.h5", "b.h5", out, environment=environment or {})
            assert said.count(f"made by {VERSION}\n") == ranks, said
            check_product(out)


def test_find_package(prefix):
    source = build_users(prefix, "found", ".".join(VERSION.split(".")[:2]))
    run_users([source / "shared"])
    # the static library does not know where it lay
    run_users([source / "static"], {"TESSERA_DESCRIBE": str(prefix / "bin" / "tessera-describe")})
    return source / "shared"


def test_other_versions(prefix):
    source = pathlib.Path("found")
    for wanted in ("99.0", str(int(VERSION.split(".")[0]) + 1)):
        said = run("cmake", "-S", source, "-B", "refused", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DWANTED={wanted}",
                   code=1)
        assert "tessera" in said and VERSION in said, said


def test_pkg_config(prefix):
    if not shutil.which("pkg-config"):
        return "no pkg-config"
    where = {"PKG_CONFIG_PATH": str(prefix / LIBRARIES / "pkgconfig")}
    assert run("pkg-config", "--modversion", "tessera", environment=where).strip() == VERSION
    with open("user.c", "w") as file:
        file.write(PROGRAM)
    flags = run("pkg-config", "--cflags", "--libs", "tessera", environment=where)
    program = pathlib.Path("packaged").resolve()
    flags = flags.replace("\n", " ") + "-Wl,-rpath,$(pkg-config --variable=libdir tessera)"
    subprocess.run(f"cc -Wall -Werror user.c -o {program} {flags}", shell=True, check=True,
                   env=dict(ENVIRONMENT, **where))
    run_users([program])


def test_package():
    """The .deb holds what is installed, and runs from where it was unpacked."""
    if not (shutil.which("dpkg-shlibdeps") and shutil.which("file")):
        return "no dpkg-shlibdeps, or no file"
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", os.path.abspath("deb"))
    package = next(pathlib.Path("deb").glob("*.deb"))
    assert re.fullmatch(rf"tessera_{re.escape(VERSION)}_\w+\.deb", package.name), package
    run("dpkg-deb", "-x", package, "unpacked")
    run("cmake", "--install", BUILD, "--prefix", os.path.abspath("beside"))
    there, beside = files_below(pathlib.Path("unpacked/usr")), files_below(pathlib.Path("beside"))
    assert there == beside, there ^ beside
    fields = run("dpkg-deb", "-f", package)
    for field in (f"Version: {VERSION}", "libhdf5", "libopenmpi", "openmpi-bin", "libopenblas", "libc6 (>="):
        assert field in fields, fields
    run("unpacked/usr/bin/tessera", "multiply", "a.h5", "b.h5", "-o", "d.h5", "--device", "cpu")
    check_product("d.h5")


folder = tempfile.mkdtemp(prefix="tessera-install-")
os.chdir(folder)
try:
    make_inputs()
    first, second = pathlib.Path("first place").resolve(), pathlib.Path("second").resolve()
    test_files(first), test_program(first)
    missing = [test_manual(first)]
    if LIBRARY:
        user = test_find_package(first)
    shutil.move(first, second)
    test_program(second)
    if LIBRARY:
        run_users([user], {"LD_LIBRARY_PATH": str(second / LIBRARIES)})
        run_users([build_users(second, "found again") / "shared"])
        test_other_versions(second)
        missing.append(test_pkg_config(second))
    missing.append(test_package())
finally:
    os.chdir("/")
    shutil.rmtree(folder)
if any(missing):
    print("skipped: " + ", ".join(why for why in missing if why))
    sys.exit(77)
