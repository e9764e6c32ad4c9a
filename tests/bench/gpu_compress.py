"""Measures how fast tessera multiply encodes and writes a large C, filter by filter (gpu_compress.sh).

GB/s: bytes of C before compression, by the seconds from the first read to C on stable storage. The product itself is
thin, so that encoding and writing bound the run. h5py reads a part of C back, which must be what NumPy multiplies.
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

import h5py
import numpy as np

import report

KINDS = ["", "gzip:1", "lzf", "zstd:1", "lz4", "bitshuffle", "bitshuffle-zstd:1", "blosc:1"]
CHECKED = 64  # rows and columns of C that are compared


def tessera(program, *words):
    report.run([program, *words])


def has(program, kind):
    """Whether the build has the library of this compression."""
    filters = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split("filters", 1)[1]
    return not kind or all(part in filters.split() for part in kind.split(":")[0].split("-"))


def same(folder, product):
    """Whether h5py can decode C, and finds the product there; None where it lacks the filter."""
    with h5py.File(folder / "C.h5") as file:
        try:
            part = file["C"][-CHECKED:, -CHECKED:]
        except OSError:
            return None
    return bool(np.allclose(part, product, rtol=1e-4))


def one(args, program, folder, kind):
    log, output = folder / "log.json", folder / "C.h5"
    output.unlink(missing_ok=True)
    how = ["--compress", kind] if kind else ["--chunk", "auto"]
    tessera(program, "multiply", folder / "A.h5", folder / "B.h5", "-o", output, "--device", args.device, *how, "--log",
            log)
    record = json.loads(log.read_text())
    return record["seconds"], output.stat().st_size


def measure(args, folder):
    for name, shape in (("A", f"{args.size}x{args.inner}"), ("B", f"{args.inner}x{args.size}")):
        tessera(args.program, "generate", "-o", folder / f"{name}.h5", "--shape", shape, "--seed", ord(name), "--quiet")
    with h5py.File(folder / "A.h5") as a, h5py.File(folder / "B.h5") as b:
        product = a["C"][-CHECKED:].astype("f8") @ b["C"][:, -CHECKED:].astype("f8")
    programs = [args.program, *([args.before] if args.before else [])]
    c_bytes, rows = 4 * args.size**2, []
    for kind in filter(lambda kind: has(args.program, kind), KINDS):
        seconds = {program: [] for program in programs}
        for _ in range(args.turns):
            for program in programs:
                took, stored = one(args, program, folder, kind)
                seconds[program].append(took)
        found = same(folder, product)
        if found is False:
            sys.exit(f"{kind}: C is not the product")
        now, *before = [statistics.median(seconds[program]) for program in programs]
        rows.append([kind or "none, chunked", f"{stored / c_bytes:.0%}", f"{now:.2f}", f"{c_bytes / now / 1e9:.2f}",
                     *([f"{before[0]:.2f}", f"**{before[0] / now:.1f}**"] if before else []),
                     "yes" if found else "no such filter"])
        print(rows[-1], flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--before")
    parser.add_argument("--size", type=int, default=24000)
    parser.add_argument("--inner", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-compress.", dir=args.folder))
    try:
        rows = measure(args, folder)
        device = json.loads((folder / "log.json").read_text())["ranks"][0]["device"]
    finally:
        shutil.rmtree(folder)
    header = ["--compress", "size of C", "s", "GB/s", *(["s before", "times as fast"] if args.before else []),
              "h5py reads it"]
    report.write_section(
        "gpu-compress",
        f"{args.size}x{args.inner} times {args.inner}x{args.size} in f32, in {args.folder}; {device}, {os.cpu_count()} "
        f"cores, {report.today()}, commit {report.commit()}: medians of {args.turns} turns.\n\n"
        f"{report.table(header, rows)}", report.page(__file__))


if __name__ == "__main__":
    main()
