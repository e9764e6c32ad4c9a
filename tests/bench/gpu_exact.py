"""`exact` and its products of residues beside cuBLAS (gpu_exact.sh)."""

import argparse
import json
import pathlib
import subprocess
import sys

import report

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/measurements/gpu_exact.md"
# of the vendor's rate: without the proof, with it, of wide data and of sparse data
WANTED = {"f64": {4096: (1.15, 1.05, None, None), 8192: (1.5, 1.4, None, None), 16384: (1.5, 1.4, None, None)},
          "f32": {4096: (2.2, None, 2.0, None), 8192: (2.8, None, 2.0, None), 16384: (2.8, None, 2.0, None)}}


def lines_of(command):
    """JSON lines that a program prints."""
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if process.returncode:
        sys.exit(f"{command} failed:\n{process.stdout}{process.stderr}")
    return [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]


def ratio(found, name, wanted):
    """A ratio to the vendor's rate as the table has it, and whether it is enough."""
    value = found[name] / found["cublas"]
    if wanted is None:
        return f"{value:.2f}", True
    return f"{value:.2f} (≥ {wanted})", value >= wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--sizes", default="4096,8192,16384,8191,8193")
    parser.add_argument("--recorded", type=pathlib.Path, nargs="+", metavar="FILE",
                        help="what exact_beside and, if there is a second file, residues_beside printed before; date "
                        "and commit may stand in each line")
    parser.add_argument("-o", type=pathlib.Path, metavar="FILE.md", default=PAGE)
    args = parser.parse_args()
    sizes = args.sizes.split(",")
    if args.recorded:
        recorded = [[json.loads(line) for line in file.read_text().splitlines()] for file in args.recorded]
        products, residues = (recorded + [[]])[:2]
    else:
        products = lines_of([args.programs / "exact_beside", args.seconds, *sizes])
        round_sizes = [size for size in sizes if int(size) % 256 == 0]
        residues = lines_of([args.programs / "residues_beside", args.seconds, *round_sizes])
    rows, reached = [], True
    for found in products:
        wanted = WANTED[found["type"]].get(found["n"], (None, None, None, None))
        cells = []
        for name, least in zip(("unproved", "exact", "wide", "sparse"), wanted):
            text, enough = ratio(found, name, least)
            cells += [f"{found[name]:.1f}", text]
            reached = reached and enough
        rows.append([found["type"], found["n"], f"{found['cublas']:.1f}", *cells])
    text = "\n\n".join([
        f"{products[0]['device']}, {products[0].get('date', report.today())}, commit "
        f"{products[0].get('commit', report.commit())}: TFLOP/s, medians of 3 rounds of "
        f"{args.seconds:g} s each, in turns, conversion and packing included. `unproved` is `exact` without the proof "
        "of its error, the others with it: `wide` on normal · exp(2 · normal), `sparse` where 99 % of normal data are "
        "zeros.",
        report.table(["type", "n", "cuBLAS", "unproved", "of cuBLAS", "exact", "of cuBLAS", "wide", "of cuBLAS",
                      "sparse", "of cuBLAS"], rows)])
    print(text)
    report.write_section("gpu-exact", text, args.o)
    if residues:
        text = "\n\n".join([
            f"{products[0]['device']}, {residues[0].get('date', report.today())}, commit "
            f"{residues[0].get('commit', report.commit())}: TOP/s of 14 planes in one launch, of one plane, and of the "
            "product of magnitudes that decides levels.",
            report.table(["n", "cuBLAS int8, int32 out", "14 planes", "of cuBLAS", "1 plane", "levels"],
                         [[row["n"], f"{row['cublas_int8']:.0f}", f"{row['residues_14']:.0f}",
                           f"{row['residues_14_of_cublas']:.2f}", f"{row['residues_1']:.0f}", f"{row['levels']:.0f}"]
                          for row in residues])])
        print(text)
        report.write_section("gpu-exact-residues", text, args.o)
    sys.exit(0 if reached else 1)


if __name__ == "__main__":
    main()
