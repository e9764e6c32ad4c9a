"""Times how fast tessera and h5py decode and encode a matrix with every filter, in turns, and writes medians and their
ratios to docs/measurements.

Both get the same two cores. tessera's seconds are those that its lane `read` was busy in a product of the matrix with a
thin one, or its lane `write` in one of two thin ones into it. h5py's are those of opening the file, one read or write
of the whole dataset, and closing, without the start of Python. Every result is compared.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

import report

try:
    import hdf5plugin
except ImportError:
    hdf5plugin = None

CORES = 2
THIN = 4  # columns of B where A is decoded, and k where C is encoded
OPTIONAL = h5py.h5z.FLAG_OPTIONAL

# What the page calls it, what --compress calls it (None: tessera only reads it), filters (number, values) as h5py sets
# them; None: the usual values.
FILTERS = [
    ("none, chunked", "", ()),
    ("shuffle", None, ((2, ()),)),
    ("fletcher32", None, ((3, ()),)),
    ("gzip 4", "gzip:4", ((1, (4,)),)),
    ("shuffle, gzip 4", "gzip:4 --shuffle", ((2, ()), (1, (4,)))),
    ("lzf", "lzf", ((32000, ()),)),
    ("shuffle, lzf", "lzf --shuffle", ((2, ()), (32000, ()))),
    ("LZ4", "lz4", ((32004, (0,)),)),
    ("zstd 3", "zstd:3", ((32015, (3,)),)),
    ("shuffle, zstd 3", "zstd:3 --shuffle", ((2, ()), (32015, (3,)))),
    ("bzip2 9", "bzip2:9", ((307, (9,)),)),
    ("bitshuffle, LZ4", "bitshuffle", ((32008, (0, 2)),)),
    ("bitshuffle, zstd 3", "bitshuffle-zstd:3", ((32008, (0, 3, 3)),)),
    ("Blosc 5, LZ4", "blosc:5", ((32001, (0, 0, 0, 0, 5, 1, 1)),)),
    ("Blosc 5, LZ4HC", "blosc-lz4hc:5", ((32001, (0, 0, 0, 0, 5, 1, 2)),)),
    ("Blosc 5, zlib", "blosc-zlib:5", ((32001, (0, 0, 0, 0, 5, 1, 4)),)),
    ("Blosc 5, zstd", "blosc-zstd:5", ((32001, (0, 0, 0, 0, 5, 1, 5)),)),
    ("Blosc 2 5, LZ4", "blosc2:5", ((32026, (0, 0, 0, 0, 5, 1, 1)),)),
    ("Blosc 2 5, zstd", "blosc2-zstd:5", ((32026, (0, 0, 0, 0, 5, 1, 5)),)),
    ("szip (by HDF5)", None, ((4, (4 + 128, 32)),)),
    ("scaleoffset (by HDF5)", None, ((6, (0, 0)),)),
]


def with_h5py(file, matrix, chunks, filters):
    """Writes the matrix as /A; seconds, or None where this h5py lacks a filter."""
    if not all(h5py.h5z.filter_avail(number) for number, _ in filters):
        return None
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk(chunks)
    made.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    for number, values in filters:
        if number == 4:
            made.set_szip(h5py.h5z.SZIP_NN_OPTION_MASK, 32)
        elif number == 6:
            made.set_scaleoffset(h5py.h5z.SO_FLOAT_DSCALE, 0)
        else:
            made.set_filter(number, OPTIONAL, values)
    start = time.perf_counter()
    with h5py.File(file, "w") as to:
        space = h5py.h5s.create_simple(matrix.shape)
        dataset = h5py.h5d.create(to.id, b"A", h5py.h5t.py_create(matrix.dtype), space, made)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, matrix)
    return time.perf_counter() - start


def read_with_h5py(file, name, matrix):
    """Seconds to read it all; None where h5py cannot. Its values must be the matrix's."""
    got = np.empty_like(matrix)
    try:
        start = time.perf_counter()
        with h5py.File(file) as source:
            source[name].read_direct(got)
        seconds = time.perf_counter() - start
    except OSError:
        return None
    if not np.array_equal(got, matrix):
        sys.exit(f"{file}:/{name} is not the matrix that was written")
    return seconds


def tessera(program, lane, *arguments):
    """Seconds that the lane was busy, None where this build refuses the product."""
    command = [program, "multiply", *arguments, "--force", "--device", "cpu", "--threads", str(CORES), "--io-threads",
               str(CORES), "--quiet", "--log", "log.json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return json.loads(pathlib.Path("log.json").read_text())["ranks"][0][f"{lane}_seconds"]
    if "build again" in done.stderr or "not in this build" in done.stderr or "choose one of" in done.stderr:
        return None
    sys.exit(f"{' '.join(command)} failed: {done.stderr}")


def make_matrix(rows, cols):
    """A product of thin matrices of integers, which single precision holds: smooth along both sides, with noise."""
    random = np.random.default_rng(7)
    left = np.rint(40 * np.sin(np.arange(rows)[:, None] / (90 * np.arange(1, THIN + 1))))
    right = np.rint(30 * np.cos(np.arange(cols)[None, :] / (70 * np.arange(1, THIN + 1)[:, None])))
    left[:, -1] = random.integers(-2, 3, rows)
    right[-1, :] = random.integers(-2, 3, cols)
    return left.astype("f4"), right.astype("f4")


def encode_once(args, way, matrix, chunks, filters):
    """Seconds of tessera and of h5py to encode the matrix; the share of its bytes that tessera stores."""
    ours = share = None
    if way is not None:
        options = ["--compress", *way.split()] if way else []
        ours = tessera(args.program, "write", "left.h5", "right.h5", "-o", "C.h5:/A", "--chunk",
                       f"{chunks[0]}x{chunks[1]}", *options)
    if ours is not None:
        with h5py.File("C.h5") as file:
            share = file["A"].id.get_storage_size() / matrix.nbytes
        read_with_h5py("C.h5", "A", matrix)
    return ours, with_h5py("H.h5", matrix, chunks, filters), share


def decode_once(args, matrix, thin, want):
    """The same to decode what is in source.h5, which both read."""
    ours = tessera(args.program, "read", "source.h5", "thin.h5", "-o", "D.h5")
    if ours is not None:
        with h5py.File("D.h5") as file:
            if not np.array_equal(file["C"][:], want):
                sys.exit("tessera's product is not the matrix's")
    return ours, read_with_h5py("source.h5", "A", matrix)


def measure(args, label, way, filters, matrix, chunks, thin, want):
    runs = {"decode": [], "encode": []}
    share = None
    for turn in range(args.runs + 1):  # the first turn warms caches and is not counted
        *encoded, stored = encode_once(args, way, matrix, chunks, filters)
        share = stored or share
        source = "H.h5" if encoded[1] is not None else "C.h5" if encoded[0] is not None else None
        if source is None:
            return None
        shutil.copy(source, "source.h5")
        if share is None:
            with h5py.File("source.h5") as file:
                share = file["A"].id.get_storage_size() / matrix.nbytes
        decoded = decode_once(args, matrix, thin, want)
        if turn > 0:
            runs["encode"].append(encoded)
            runs["decode"].append(decoded)
    print(label, {name: [[round(s, 3) if s else s for s in pair] for pair in all_] for name, all_ in runs.items()},
          flush=True)
    return share, runs


def speeds(nbytes, pairs):
    """Cells: tessera's GB/s with its range, h5py's, and the ratio of the medians."""
    cells, medians = [], []
    for which in (0, 1):
        rates = [nbytes / pair[which] / 1e9 for pair in pairs if pair[which]]
        medians.append(statistics.median(rates) if rates else None)
        cells.append(f"{medians[-1]:.2f} ({min(rates):.2f}–{max(rates):.2f})" if rates else "-")
    return cells + [f"**{medians[0] / medians[1]:.1f}**" if all(medians) else "-"]


def write(args, load, matrix, chunks, results):
    rows = [[label, f"{100 * share:.0f} %", *speeds(matrix.nbytes, runs["decode"]),
             *speeds(matrix.nbytes, runs["encode"])] for label, (share, runs) in results.items()]
    plugins = f"hdf5plugin {hdf5plugin.version}" if hdf5plugin else "no hdf5plugin"
    version = subprocess.run([args.program, "--version"], capture_output=True, text=True, check=True).stdout
    chunk = f"{chunks[0]} x {chunks[1]}"
    body = "\n\n".join([
        f"{args.rows} x {args.cols} f32, {matrix.nbytes / 1e6:.0f} MB, chunks of {chunk}, {CORES} cores of "
        f"{report.cpu_name()}, {report.today()}, commit {report.commit()}; medians of {args.runs} turns, with the "
        f"range. Load of the machine before the first turn: {load:.2f}.",
        report.table(["filter", "stored", "decoded: tessera GB/s", "h5py GB/s", "ratio", "encoded: tessera GB/s",
                      "h5py GB/s", "ratio"], rows),
        f"h5py {h5py.version.version} with HDF5 {h5py.version.hdf5_version}, {plugins}. "
        f"{'; '.join(line.strip() for line in version.splitlines()[:1])}. Files in `{args.folder}`."])
    report.write_section("filters", body, report.page(__file__))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--cols", type=int, default=4096)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", help="filters whose name holds this; the page stays as it is")
    parser.add_argument("--folder", default="/dev/shm", help="where a scratch folder for the files is made")
    args = parser.parse_args()
    args.program = str(pathlib.Path(args.program).resolve())
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"the machine is busy (load {load:.2f}): these figures will say more about that than about tessera",
              flush=True)
    chunks = (min(512, args.rows), min(512, args.cols))
    folder = tempfile.mkdtemp(prefix="tessera-bench-", dir=args.folder)
    os.chdir(folder)
    try:
        left, right = make_matrix(args.rows, args.cols)
        matrix = left @ right
        thin = np.random.default_rng(3).integers(0, 2, (args.cols, THIN)).astype("f4")
        want = (matrix.astype("f8") @ thin).astype("f4")
        for name, data in (("left", left), ("right", right), ("thin", thin)):
            with h5py.File(f"{name}.h5", "w") as file:
                file["A"] = data
        results = {}
        for label, way, filters in FILTERS:
            if args.only and args.only not in label:
                continue
            found = measure(args, label, way, filters, matrix, chunks, thin, want)
            if found:
                results[label] = found
            else:
                print(f"{label}: neither tessera nor h5py has it here")
        if not args.only:
            write(args, load, matrix, chunks, results)
    finally:
        os.chdir("/")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
