"""Measures what the engine reaches of its targets and writes section gpu-engine of docs/measurements/gpu_engine.md;
used by gpu_engine.sh.

Every case gives rows: what was measured, what stands beside it, their ratio and the target. The page is written after
each case, so that a session that ends early keeps what it has measured; rows of other cases stay as they are. A case
that fails keeps the rows it had made, and the next one goes on.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import mmap
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import overview
import report

HEADER = ["case", "what", "measured", "beside", "ratio", "target", "reached", "m × n × k", "GPUs", "kernel", "check",
          "GPU", "date", "commit", "command"]
KEYS = 2
RUNS = 5        # repetitions in memory, all in one process
FILE_RUNS = 3   # from files, after one that is not counted
PEER_RUNS = 2
BLOCK = 16 << 20
MOST_SECONDS = 120 # a process may take, or it is ended and the case fails
MOST_SECONDS_OF = {"files": 300, "disk": 300}
PREFIX = "tessera-engine."

SELF = pathlib.Path(__file__).resolve().parent


def run_process(command, seconds, **more):
    """What the command printed, where stdout is a pipe. One that takes longer, or that we end before, is asked to go:
    mpirun takes its ranks along."""
    command = [str(word) for word in command]
    with subprocess.Popen(command, text=True, **more) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except BaseException:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return output


class Case:
    """What a case's function gets, and the rows it gives."""

    def __init__(self, options, name, size, ranks):
        self.options, self.name, self.size, self.ranks, self.rows = options, name, size, min(ranks, options.ranks), []
        self.cpu, self.seconds = options.device == "cpu", MOST_SECONDS_OF.get(name, MOST_SECONDS)

    def shape(self):
        parts = self.size.split("x")
        return parts * 3 if len(parts) == 1 else parts

    def run(self, *arguments, ranks=None):
        """tessera on this case's ranks; returns the command as one would type it, and seconds of the whole process."""
        arguments = [str(argument) for argument in arguments]
        command = [*shlex.split(self.options.launcher), "-n", str(ranks or self.ranks), self.options.program,
                   *arguments]
        start = time.monotonic()
        run_process(command, self.seconds, stdout=sys.stderr)
        shown = [argument for argument, previous in zip(arguments, ["", *arguments])
                 if not {"-o", "--log", "--trace"} & {argument, previous}]
        return f"mpirun -n {self.ranks} tessera " + shlex.join(shown), time.monotonic() - start

    def row(self, what, measured, beside, ratio, target, reached, record, command):
        m, n, k = self.shape()
        self.rows.append([self.name, what, measured, beside, ratio, target, "yes" if reached else "no",
                          f"{m} × {n} × {k}", record["rank_count"], record["kernel"],
                          record["check"].partition(",")[0].partition(":")[0],
                          record["ranks"][0]["device"].partition(" #")[0], report.today(), report.commit(),
                          f"`{command}`"])

    def at_least(self, what, measured, beside, ratio, target, record, command, also=True):
        self.row(what, measured, beside, f"**{ratio:.3f}**" if ratio >= target and also else f"{ratio:.3f}",
                 f"≥ {target}", ratio >= target and also, record, command)


    def not_compared(self, what, measured, why, target, record, command):
        self.row(what, measured, f"not compared: {why}", "-", f"≥ {target}", False, record, command)


def lane_text(lane, rank, seconds, record):
    """A lane that bounds a run, and what it reached: bytes/s of all but the multiply lane."""
    busy, moved = next((one[f"{lane}_seconds"], one[f"{lane}_bytes"]) for one in record["ranks"] if one["rank"] == rank)
    return f"{lane} lane of rank {rank}, {seconds:.4g} s" + (f", {moved / busy / 1e9:.3g} GB/s" if moved > 0 and
                                                             busy > 0 and lane != "multiply" else "")


# ---- data in memory: tessera bench multiply ------------------------------------------------------

def bench(case, folder, *arguments):
    name = folder / "bench.json"
    command, _ = case.run("bench", "multiply", "--device", case.options.device, "--shape", case.size, "--repeat", RUNS,
                          "-o", name, *arguments)
    with open(name) as file:
        figures = json.load(file)
    speeds = [2e-12 * figures["record"]["m"] * figures["record"]["n"] * figures["record"]["k"] / seconds
              for seconds in figures["best_seconds"]]
    return figures, command, ", ".join(f"{speed:.4g}" for speed in speeds) + " TFLOP/s"


def kernel_option(case, kernel):
    return [] if kernel == "auto" or case.cpu else ["--kernel", kernel] # a CPU has other kernels


def beside_kernel(case, folder, kernel, target):
    figures, command, speeds = bench(case, folder, "--data", "device", *kernel_option(case, kernel))
    alone, record = figures["alone"], figures["record"]
    if alone["ratio"] is None:
        return case.not_compared("of the kernel alone", speeds, alone["not_measured"], target, record, command)
    beside = f"{alone['tflops']:.4g} TFLOP/s, {alone['m']}×{alone['n']}×{alone['k']} on every GPU at once"
    if alone["making_seconds"] is not None: # which is work of a run, too
        needed = 2e-12 * record["m"] * record["n"] * record["k"] / alone["tflops"] + alone["making_seconds"]
        beside += (f"; making A and B alone {alone['making_seconds']:.4g} s: {needed / min(figures['seconds']):.3f} of "
                   f"both one after the other")
    case.at_least("of the kernel alone", speeds, beside, alone["ratio"], target, record, command)


def multiply_row(case, folder, *arguments):
    """What of the time from a rank's first product to the end of its last one it spends on products, of the rank that
    spends least; in runs that only this is measured in."""
    trace = folder / "trace.json"
    figures, command, _ = bench(case, folder, *arguments, "--trace", trace)
    with open(trace) as file:
        products = [event for event in json.load(file)["traceEvents"] if event["name"] == "multiply C"]
    spans = []
    for rank in {event["pid"] for event in products}:
        row = sorted((event["ts"], event["ts"] + event["dur"]) for event in products if event["pid"] == rank)
        gaps = [after[0] - before[1] for before, after in zip(row, row[1:])]
        spans.append((sum(end - begin for begin, end in row) / (row[-1][1] - row[0][0]), len(row),
                      max(gaps, default=0)))
    busy, count, longest = min(spans)
    case.at_least("multiply lane without gaps", f"{count} products a rank", f"longest gap {longest / 1e3:.3g} ms", busy,
                  0.99, figures["record"], command)


def beside_cublasxt(case, folder, kernel, kind, target):
    arguments, peer = ["--data", "memory", "--type", kind,
                       *kernel_option(case, kernel)], [] if case.cpu else ["--peer", "cublasxt"]
    figures, command, speeds = bench(case, folder, *arguments, *peer)
    if peer and figures["peer"]["ratio"] is None:
        case.not_compared("beside cublasXt", speeds, f"{figures['peer']['devices']} GPUs were visible to it", target,
                          figures["record"], command)
    elif peer:
        blocks = ", ".join(f"{block['block']}: {block['tflops']:.4g}" for block in figures["peer"]["blocks"])
        case.at_least("beside cublasXt", speeds, f"cublasXt TFLOP/s, block {blocks}", figures["peer"]["ratio"], target,
                      figures["record"], command)
    case.at_least("first repetition of the best", speeds,
                  f"first {figures['first_share'] * figures['tflops']:.4g} TFLOP/s", figures["first_share"], 0.8,
                  figures["record"], command)
    multiply_row(case, folder, *arguments)


def beside_limit(case, folder, target, *arguments):
    figures, command, speeds = bench(case, folder, "--data", "memory", *arguments)
    limit = figures["limit"]
    case.at_least("of the limit", speeds, lane_text(limit["lane"], limit["rank"], limit["seconds"], figures["record"]),
                  limit["share"], target, figures["record"], command)


# ---- files ---------------------------------------------------------------------------------------

def generate(case, folder):
    m, n, k = case.shape()
    ranks = max(case.options.ranks, (os.cpu_count() or 2) // 2) # it is work for cores alone
    for seed, (name, shape) in enumerate([("A", f"{m}x{k}"), ("B", f"{k}x{n}")], 1):
        case.run("generate", "-o", f"{folder}/{name}.h5:/{name}", "--shape", shape, "--type", "f32", "--distribution",
                 "uniform", "--seed", seed, "--force", ranks=ranks)


def multiply(case, folder, *arguments):
    """One run; C is written anew, not over what an earlier run left."""
    log = folder / "log.json"
    (folder / "C.h5").unlink(missing_ok=True)
    command, whole = case.run("multiply", f"{folder}/A.h5", f"{folder}/B.h5", "-o", f"{folder}/C.h5:/C", "--force",
                              "--device", case.options.device, "--log", log,
                              "--progress", "off", *arguments)
    with open(log) as file:
        return dict(json.load(file), whole=whole, typed=command.replace(f"{folder}/", "") + " -o C.h5")


def fastest(case, folder, before=lambda: None):
    """The best of FILE_RUNS after one that touches everything and is checked."""
    check = multiply(case, folder, "--verify")["check"]
    runs = []
    for _ in range(FILE_RUNS):
        before()
        runs.append(multiply(case, folder))
    return dict(min(runs, key=lambda run: run["seconds"]), check=check, whole=min(run["whole"] for run in runs),
                quickest_start=min(runs, key=lambda run: run["setup_seconds"]),
                all=", ".join(f"{run['seconds']:.2f}" for run in sorted(runs, key=lambda run: run["seconds"])))


def startup_row(case, run):
    start = run["quickest_start"]
    parts = ", ".join(f"{name[6:-8]} {start[name]:.2f}" for name in start if name.startswith("setup_") and
                      name != "setup_seconds")
    case.row("start-up, main to first read", f"{start['setup_seconds']:.2f} s", parts, "-", "< 2 s",
             start["setup_seconds"] < 2, run, run["typed"])


def beside_torch(case, folder, run):
    (folder / "C.h5").unlink()
    peers = []
    for _ in range(PEER_RUNS):
        (folder / "P.h5").unlink(missing_ok=True)
        start = time.monotonic()
        output = run_process([case.options.torch, SELF / "peer_h5py_torch.py",
                              *(folder / f"{name}.h5" for name in "ABP")], case.seconds, stdout=subprocess.PIPE)
        peers.append(dict(json.loads(output), whole=time.monotonic() - start))
    peer = min(peers, key=lambda one: one["total"])
    beside = (f"h5py + torch {peer['total']:.2f} s: read {peer['read']:.2f}, multiply {peer['multiply']:.2f}, write "
              f"{peer['write']:.2f}")
    case.at_least("beside h5py + torch, first read to last byte", f"{run['all']} s", beside,
                  peer["total"] / run["seconds"], 6, run, run["typed"])
    whole = min(one["whole"] for one in peers)
    case.at_least("beside h5py + torch, whole processes", f"{run['whole']:.2f} s", f"h5py + torch {whole:.2f} s",
                  whole / run["whole"], 4, run, run["typed"])


def in_memory(case, folder):
    generate(case, folder)
    run = fastest(case, folder)
    beside = lane_text(run["limit_lane"], run["limit_rank"], run["limit_seconds"], run)
    case.at_least("of the limit", f"{run['all']} s", beside, run["limit_share"], 0.8, run, run["typed"])
    startup_row(case, run)
    if case.options.torch:
        beside_torch(case, folder, run)


def start(case, folder):
    generate(case, folder)
    startup_row(case, fastest(case, folder))


def drop(files):
    """The files are not in the page cache afterwards: all of it goes where that is allowed, else theirs."""
    os.sync()
    try:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        return "page cache dropped"
    except OSError:
        for name in files:
            descriptor = os.open(name, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
        return "files dropped from the page cache"


def direct(name, write, length, threads=4):
    """Seconds of reading or writing `length` bytes of a file with O_DIRECT, in blocks of 16 MiB by several threads."""
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC if write else os.O_RDONLY
    try:
        descriptor = os.open(name, flags | os.O_DIRECT, 0o644)
    except OSError: # a file system without it
        descriptor = os.open(name, flags, 0o644)
    length = length // 4096 * 4096

    def blocks(first):
        memory = mmap.mmap(-1, BLOCK) # page-aligned
        if write:
            memory.write(os.urandom(1 << 16) * (BLOCK >> 16))
        for at in range(first * BLOCK, length, threads * BLOCK):
            part = memoryview(memory)[:min(BLOCK, length - at)]
            moved = os.pwritev(descriptor, [part], at) if write else os.preadv(descriptor, [part], at)
            assert moved == len(part), f"{name}: {moved} of {len(part)} bytes at {at}"

    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(blocks, range(threads)))
    if write:
        os.fsync(descriptor)
    os.close(descriptor)
    return time.monotonic() - start


def on_disk(case, folder):
    generate(case, folder)
    files = [folder / "A.h5", folder / "B.h5"]
    how = []
    run = fastest(case, folder, lambda: how.append(drop(files)))
    (folder / "C.h5").unlink()
    drop(files)
    reads = [direct(name, False, name.stat().st_size) for name in files]
    m, n, _ = case.shape()
    write = direct(folder / "P.h5", True, 4 * int(m) * int(n))
    case.at_least("beside plain O_DIRECT reads and writes", f"{run['all']} s",
                  f"reads {sum(reads):.2f} s, write {write:.2f} s; {how[0]}", (sum(reads) + write) / run["seconds"],
                  0.9,
                  run, run["typed"])


# ---- the table -----------------------------------------------------------------------------------

# name: (size, ranks (None: all), where its files go, function)
CASES = {
    "device-one-simt": ("32768", 1, None, lambda case, folder: beside_kernel(case, folder, "simt", 0.97)),
    "device-one-tf32": ("32768", 1, None, lambda case, folder: beside_kernel(case, folder, "tf32", 0.97)),
    "device-simt": ("65536", None, None, lambda case, folder: beside_kernel(case, folder, "simt", 0.95)),
    "device-split3": ("65536", None, None, lambda case, folder: beside_kernel(case, folder, "split3", 0.92)),
    "device-tf32": ("65536", None, None, lambda case, folder: beside_kernel(case, folder, "tf32", 0.85)),
    "memory-simt": ("32768", None, None, lambda case, folder: beside_cublasxt(case, folder, "simt", "f32", 1.05)),
    "memory-dmma": ("32768", None, None, lambda case, folder: beside_cublasxt(case, folder, "dmma", "f64", 2.5)),
    "memory-4G": ("49152", 1, None, lambda case, folder: beside_limit(case, folder, 0.9, "--memory", "4G")),
    "tall": ("2000000x512x512", None, None, lambda case, folder: beside_limit(case, folder, 0.85)),
    "k-heavy": ("4096x4096x1000000", None, None, lambda case, folder: beside_limit(case, folder, 0.85)),
    "flat": ("65536x65536x1024", None, None, lambda case, folder: beside_limit(case, folder, 0.85)),
    "files": ("49152", None, "shm", in_memory),
    "disk": ("49152", None, "disk", on_disk),
    "startup": ("16384", None, "shm", start),
}


def chosen(wanted):
    """Names of cases and their sizes, in the table's order."""
    sizes = {}
    for word in wanted or ["*"]:
        pattern, _, size = word.partition("=")
        names = fnmatch.filter(CASES, pattern)
        if not names:
            sys.exit(f"no case '{pattern}': there are {', '.join(CASES)}")
        sizes.update((name, size or CASES[name][0]) for name in names)
    return {name: sizes[name] for name in CASES if name in sizes}


def write(page, rows):
    """The new rows in the place of all earlier ones of their cases; in the order of CASES."""
    cases = {row[0] for row in rows}
    kept = [row for row in report.rows(report.section(page.read_text(), "gpu-engine")) if row[0] not in cases and
            row[0] in CASES]
    table = report.table(HEADER, sorted([*kept, *rows], key=lambda row: list(CASES).index(row[0])))
    report.write_section("gpu-engine",
                         f"Written {report.today()}; each row says when and from which commit it was "
                         f"measured.\n\n{table}", page)
    if page == report.page(__file__):
        overview.main()


def remove_stale(places):
    """Folders that a killed run left; those of one that is still there stay."""
    for folder in [found for place in places for found in pathlib.Path(place).glob(f"{PREFIX}*")]:
        process = folder.name[len(PREFIX):].partition(".")[0]
        if process.isdigit() and not os.path.exists(f"/proc/{process}"):
            print(f"engine: removing {folder}, whose process is gone", flush=True)
            shutil.rmtree(folder, ignore_errors=True)


def show_space(name, when, folder):
    """What there is for a case's files: a run that is short of it says so only by failing."""
    disk = shutil.disk_usage(folder)
    with open("/proc/meminfo") as file:
        memory = {line.split(":")[0]: int(line.split()[1]) * 1024
                  for line in file if line.startswith(("MemTotal", "MemAvailable"))}
    print(
        f"engine: {name}: {when}: {folder} {disk.free / 1e9:.1f} GB free of {disk.total / 1e9:.1f}, MemAvailable "
        f"{memory['MemAvailable'] / 1e9:.1f} GB of MemTotal "
          f"{memory['MemTotal'] / 1e9:.1f}", flush=True)


def measure_case(options, name, size):
    """Whether it worked. Its rows, also those before a failure, are on the page and printed."""
    _, ranks, kind, measure = CASES[name]
    case = Case(options, name, size, ranks or options.ranks)
    place = getattr(options, kind) if kind else None
    began, worked = time.monotonic(), True
    try:
        with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}.", dir=place) as folder:
            if place:
                show_space(name, "before", place)
            try:
                measure(case, pathlib.Path(folder))
            finally:
                if place:
                    show_space(name, "after", place)
    except subprocess.CalledProcessError as error:
        worked = False
        print(f"engine: {name}: failed with exit code {error.returncode}: {shlex.join(error.cmd)}", flush=True)
    except subprocess.TimeoutExpired as error:
        worked = False
        print(f"engine: {name}: failed: not done after {error.timeout} s: {shlex.join(error.cmd)}", flush=True)
    except Exception as error:
        worked = False
        print(f"engine: {name}: failed: {type(error).__name__}: {error}", flush=True)
    if case.rows:
        write(options.page, case.rows)
    for row in case.rows:
        print(
            f"engine: {name}: {row[1]}: {row[2]}, ratio {row[4]} ({row[5]}), reached: {row[6]} "
            f"[{time.monotonic() - began:.0f} s]", flush=True)
    return worked


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "launcher", "torch", "device", "disk", "shm"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--page", type=pathlib.Path, default=report.page(__file__))
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)) # so that folders go
    cases = chosen(options.cases)
    try:
        report.replace_section(options.page.read_text(), "gpu-engine", "")
    except (OSError, ValueError) as error:
        sys.exit(f"{options.page}: {error}: name a page with them, such as a copy of docs/measurements/gpu_engine.md")
    remove_stale({options.disk, options.shm})
    failed = [name for name, size in cases.items() if not measure_case(options, name, size)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
