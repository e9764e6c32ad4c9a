"""libFuzzer on whatever reads bytes of others: HDF5 files and what the helper says of them, stored chunks, chunks that
wait on the disk, journals, machine files, records, names, .npy files. Good inputs to begin with are made here, by h5py
and by the harnesses. What is found is printed as text, to become a test.

Usage: test_fuzz.py REPOSITORY BUILD [TARGET...]      BUILD: of whose kind the harnesses are built, in BUILD/fuzz
TSR_FUZZ_SECONDS: of all targets together (60, 110 in long tests); an hour is 3600.
TSR_FUZZ_SEED: of random numbers (the day's).
TSR_FUZZ_CORPUS: a folder that inputs worth keeping are added to."""
import base64
import datetime
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

FLAGS = "-O1 -g1 -fsanitize=fuzzer-no-link -fno-sanitize-recover=all"
# The share of time, and the longest input.
TARGETS = {
    "describe": (3, 32768),
    "answers": (2, 8192),
    "chunks": (3, 2048),
    "journal": (1, 40000),
    "spill": (1, 256),
    "records": (1, 4096),
    "names": (1, 256),
    "npy": (1, 1024),
    "machine": (1, 2048),
}
# HDF5 crashes on some files, or does not come back: those are looked at one by one.
OTHERS = "describe"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def need_clang():
    if not shutil.which("clang") or not shutil.which("clang++"):
        skip("no clang")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "one.c")
        source.write_text("int LLVMFuzzerTestOneInput(const char *d, long n) { (void)d; return n < 0; }\n")
        made = subprocess.run(["clang", "-fsanitize=fuzzer,address,undefined", "-o", folder + "/one", str(source)],
                              capture_output=True, check=False)
        if made.returncode:
            skip("clang has no libFuzzer (libclang-rt-dev)")


def logged(log, *command):
    with open(log, "w") as to:
        if subprocess.run(command, stdout=to, stderr=subprocess.STDOUT, check=False).returncode:
            sys.exit(f"{' '.join(map(str, command))} failed:\n" + pathlib.Path(log).read_text()[-3000:])


def build(repository, folder):
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "build.ninja").exists() and not (folder / "Makefile").exists():
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        logged(folder / "configure.log", "cmake", "-S", repository, "-B", folder, *generator, "-DTSR_CUDA=OFF",
               "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++", "-DTSR_FUZZ=ON",
               "-DTSR_SANITIZE=address,undefined", "-DCMAKE_C_FLAGS=" + FLAGS)
    logged(folder / "build.log", "cmake", "--build", folder, "--parallel", str(min(2, multiprocessing.cpu_count())),
           "--target", "fuzz_targets")
    return folder / "tests" / "fuzz"


def make_files(folder):
    """HDF5 files of every kind that tests/faults breaks, too."""
    import corpus
    folder.mkdir(parents=True)
    for kind in corpus.KINDS:
        corpus.make(folder, kind)


def environment(**more):
    asan = "detect_leaks=1:allocator_may_return_null=1:max_allocation_size_mb=1024:allow_addr2line=1"
    return dict(os.environ, ASAN_OPTIONS=asan, UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1", **more)


def seeds(program, target, folder, files):
    if target == "describe":
        shutil.copytree(files, folder)
        return
    folder.mkdir(parents=True)
    subprocess.run([program], env=environment(TSR_FUZZ_SEEDS=str(folder), TSR_FUZZ_FROM=str(files)), check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not any(folder.iterdir()):
        sys.exit(f"{target} makes no inputs to begin with")


def is_hdf5s(report):
    """Whether what ended the process happened in HDF5, which is called by our own code: the first frame that is not a
    sanitizer's or the C library's is HDF5's."""
    for frame in re.findall(r"^\s*#\d+ .*$", report, re.M):
        if re.search(r"/libhdf5[^ ]*\.so", frame):
            return True
        if re.search(r"/(app|io|kernels|mpi|tests)/[^ ]*\.[ch]:\d", frame):
            return False
    return False


def judge(program, artifact):
    """(what was found or "", the report)"""
    try:
        again = subprocess.run([program, "-timeout=25", "-rss_limit_mb=2048", artifact], env=environment(), check=False,
                               capture_output=True, timeout=90)
    except subprocess.TimeoutExpired:
        return "it does not end", ""
    report = again.stderr.decode(errors="replace")
    if again.returncode == 0:
        return "", report # a matter of what came before: HDF5's memory
    summary = re.search(r"^(SUMMARY|.*runtime error|.*\.[ch]:\d+: ).*$", report, re.M)
    return ("" if is_hdf5s(report) else summary[0] if summary else "it ends"), report


def run(program, target, seconds, folder, seed, kept):
    corpus_folder = kept / target if kept else folder / "corpus"
    corpus_folder.mkdir(parents=True, exist_ok=True)
    artifacts = folder / "found"
    artifacts.mkdir()
    command = [program, f"-max_total_time={seconds}", f"-max_len={TARGETS[target][1]}", f"-seed={seed}", "-timeout=60",
               "-rss_limit_mb=2048", f"-artifact_prefix={artifacts}/", "-print_final_stats=1"]
    if target == OTHERS:
        command += ["-fork=1", "-ignore_crashes=1", "-ignore_timeouts=1", "-ignore_ooms=1", "-detect_leaks=0"]
    done = subprocess.run([*command, corpus_folder, folder / "seeds"], env=environment(TMPDIR=str(folder)), check=False,
                          capture_output=True, cwd=folder)
    log = done.stderr.decode(errors="replace")
    (folder / "log").write_text(log)
    lines = re.findall(r"^#(\d+):?\s.*?cov: (\d+).*$", log, re.M)
    runs, covered = (int(number) for number in lines[-1]) if lines else (0, 0)
    found, others = [], 0
    for artifact in sorted(artifacts.iterdir()):
        what, report = judge(program, artifact)
        others += not what
        if what:
            text = base64.b85encode(artifact.read_bytes()).decode()
            found.append(f"{target}: {what}\n{report[-6000:]}\n{artifact.name}, base 85: {text[:4000]}\n")
    late = any(artifact.name.startswith("timeout") for artifact in artifacts.iterdir()) # not again: a busy machine
    if done.returncode and not found and not late and target != OTHERS:
        found.append(f"{target} ended with {done.returncode}:\n{log[-6000:]}")
    if runs < 20 or covered < 50:
        found.append(f"{target} tried little: {runs} inputs, {covered} edges\n{log[-2000:]}")
    line = f"{target:10} {runs:10} inputs {runs / seconds:9.0f}/s {covered:6} edges"
    print(line + (f", {others} in HDF5 or not again" if others else ""), flush=True)
    return found


def main():
    repository, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve() / "fuzz"
    targets = sys.argv[3:] or list(TARGETS)
    need_clang()
    programs = build(repository, folder)
    seconds = float(os.environ.get("TSR_FUZZ_SECONDS", "110" if os.environ.get("TSR_LONG") == "1" else "60"))
    seed = int(os.environ.get("TSR_FUZZ_SEED") or datetime.date.today().strftime("%Y%m%d"))
    kept = os.environ.get("TSR_FUZZ_CORPUS")
    shares = sum(TARGETS[target][0] for target in targets)
    print(f"{seconds:.0f} s, TSR_FUZZ_SEED={seed}", flush=True)
    found = []
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tessera-fuzz-", dir=base) as scratch:
        make_files(pathlib.Path(scratch, "files"))
        for target in targets:
            program, own = programs / f"fuzz_{target}", pathlib.Path(scratch, target)
            seeds(program, target, own / "seeds", pathlib.Path(scratch, "files"))
            most = max(1, round(seconds * TARGETS[target][0] / shares))
            found += run(program, target, most, own, seed, kept and pathlib.Path(kept).resolve())
    for one in found:
        print(one)
    sys.exit(1 if found else 0)


main()
