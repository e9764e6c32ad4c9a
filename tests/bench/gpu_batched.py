"""Batches of small products beside cuBLAS's strided batches (gpu_batched.sh)."""

import argparse
import json
import pathlib
import sys
import tempfile

import report

TYPES = ("f32", "f64", "bf16")
LEAST = 0.8  # of the vendor's rate


def measure(args, kind, shape):
    """What bench gemm says of our kernel and the vendor's."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [args.program, "bench", "gemm", "--batch", args.batch, "--shape", shape, "--type", kind,
                   "--device", args.device, "--kernel", args.kernel, "--rounds", args.rounds, "--quiet", "--json",
                   file.name]
        report.run(command)
        bench = json.loads(pathlib.Path(file.name).read_text())
    rows = [row for row in bench["kernels"] if "gflops" in row]
    return bench["device"], rows[0], rows[1] if len(rows) > 1 else None


def text_of(args, device, found):
    """The section, and whether every rate is enough."""
    rows = []
    reached = True
    for kind, shape, ours, vendor in found:
        ratio = ours["gflops"] / vendor["gflops"] if vendor else None
        reached = reached and ratio is not None and ratio >= LEAST
        rows.append([kind, f"{shape}³", f"{1e3 * ours['seconds']:.4f}", f"{ours['gflops'] / 1e3:.2f}",
                     f"{vendor['gflops'] / 1e3:.2f}" if vendor else "-", f"{ratio:.2f}" if vendor else "-"])
    text = "\n\n".join([
        f"{args.batch} products a launch, one after the other in memory; {device}, {report.today()}, commit "
        f"{report.commit()}: medians of {args.rounds} rounds, both in turns. At least {LEAST} is wanted.",
        report.table(["type", "product", "ms", "TFLOP/s", "vendor TFLOP/s", "of the vendor's"], rows)])
    return text, reached


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--shapes", default="64,128,256,512")
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--kernel", default="batched")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("-o", type=pathlib.Path, metavar="FILE.md")
    args = parser.parse_args()
    device, found = "", []
    for kind in args.types.split(","):
        for shape in args.shapes.split(","):
            device, ours, vendor = measure(args, kind, shape)
            found.append((kind, shape, ours, vendor))
    text, reached = text_of(args, device, found)
    print(text)
    if args.o:
        report.write_section("gpu-batched", text, args.o)
    sys.exit(0 if reached else 1)


if __name__ == "__main__":
    main()
