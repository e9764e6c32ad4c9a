"""`exact` and its products of residues beside cuBLAS (gpu_exact.sh)."""

import argparse
import json
import pathlib
import sys
import tempfile

import report

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/measurements/gpu_exact.md"
# of the vendor's rate: without the proof, with it, of wide data, of sparse data, and with the check
WANTED = {"f64": {4096: (1.15, None, None, None, 1.05), 8192: (1.5, None, None, None, 1.4),
                  16384: (1.5, None, None, None, 1.4)},
          "f32": {4096: (2.2, None, 2.0, None, None), 8192: (2.8, None, 2.0, None, None),
                  16384: (2.8, None, 2.0, None, None)}}


def lines_of(command):
    """JSON lines that a program prints."""
    return [json.loads(line) for line in report.run(command).splitlines() if line.startswith("{")]


def recorded(file):
    """The same from a file, if there is one."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file else []


def ratio(found, name, wanted):
    """A ratio to the vendor's rate as the table has it, and whether it is enough. What is not in the line was not
    measured."""
    if name not in found:
        return "-", True
    value = found[name] / found["cublas"]
    if wanted is None:
        return f"{value:.2f}", True
    return f"{value:.2f} (≥ {wanted})", value >= wanted


def cells_of(found, wanted):
    """Rate and ratio of each kind of `wanted`, which names the least ratios; and whether all are enough."""
    cells, reached = [], True
    for name, least in wanted.items():
        text, enough = ratio(found, name, least)
        cells += [f"{found[name]:.1f}" if name in found else "-", text]
        reached = reached and enough
    return cells, reached


def made(args, found):
    """How long, when and of what a line of JSON was measured."""
    return [f"{args.seconds:g}", found.get("date", report.today()), found.get("commit", report.commit())]


def write_products(args, products):
    """Their rows in place of those that the page has of the same type and size; whether all is reached."""
    rows, reached = [], True
    for found in products:
        wanted = WANTED[found["type"]].get(found["n"], (None,) * 5)
        cells, enough = cells_of(found, dict(zip(("unproved", "exact", "wide", "sparse", "checked"), wanted)))
        reached = reached and enough
        rows.append([found["type"], found["n"], f"{found['cublas']:.1f}", *cells, *made(args, found)])
    there = report.rows(report.section(args.o.read_text(), "gpu-exact")) if args.o.exists() else []
    text = "\n\n".join([
        f"{products[0]['device']}: TFLOP/s, medians of 3 rounds of so many seconds each, in turns, conversion and "
        "packing included. `unproved` is `exact` without the proof of its error, the others with it: `wide` on normal "
        "· exp(2 · normal), `sparse` where 99 % of normal data are zeros, `checked` with the check of residues.",
        report.table(["type", "n", "cuBLAS", "unproved", "of cuBLAS", "exact", "of cuBLAS", "wide", "of cuBLAS",
                      "sparse", "of cuBLAS", "checked", "of cuBLAS", "s", "date", "commit"],
                     report.merge(there, rows, 2))])
    print(text)
    report.write_section("gpu-exact", text, args.o)
    return reached


def write_wide(args, found):
    """fp32 data that split3 cannot hold; whether each kind is twice as fast as the vendor's kernel."""
    rows, reached = [], True
    for line in found:
        cells, enough = cells_of(line, {"wide": 2.0, "outliers": 2.0, "graded_12": 2.0, "graded_16": 2.0})
        reached = reached and enough
        rows.append([line["n"], f"{line['cublas']:.1f}", *cells, *made(args, line)])
    text = "\n\n".join([
        f"{found[0]['device']}: `exact` in fp32, TFLOP/s, likewise: `wide` as above, `outliers` where one normal "
        "number of 1000 is 1000 times larger, `graded` where A falls along k by 2^-12 or 2^-16, and B rises.",
        report.table(["n", "cuBLAS", "wide", "of cuBLAS", "outliers", "of cuBLAS", "graded, 12", "of cuBLAS",
                      "graded, 16", "of cuBLAS", "s", "date", "commit"], rows)])
    print(text)
    report.write_section("gpu-exact-wide", text, args.o)
    return reached


def write_odd(args, found):
    """Sizes beside a whole tile; whether they are 0.97 as fast without the proof."""
    rows, reached = [], True
    for line in found:
        cells = []
        for way in ("unproved", "exact"):
            cells += [f"{line[way]:.1f}", f"{line[way + '_less']:.3f}", f"{line[way + '_more']:.3f}"]
        reached = reached and min(line["unproved_less"], line["unproved_more"]) >= 0.97
        rows.append([line["type"], line["n"], *cells, *made(args, line)])
    text = "\n\n".join([
        f"{found[0]['device']}: TFLOP/s at n, and how much of it n - 1 and n + 1 make, in turns likewise. Without the "
        "proof 0.97 is wanted.",
        report.table(["type", "n", "unproved", "n - 1", "n + 1", "exact", "n - 1", "n + 1", "s", "date", "commit"],
                     rows)])
    print(text)
    report.write_section("gpu-exact-odd", text, args.o)
    return reached


def whole_product(program, ranks, size, kernel, file):
    """Seconds of products of matrices that GPUs make, on all ranks; leaves the figures in a file."""
    command = ["mpirun", "--bind-to", "none", "-n", ranks, program, "bench", "multiply", "--data", "device", "--shape",
               size, "--type", "f64", "--distribution", "normal", "--kernel", kernel, "--repeat", 3, "--device", "cuda",
               "--quiet", "--no-check", "--json", file]
    report.run(command)


def compare_whole(args):
    """`exact` beside `dmma` on several GPUs; whether it is as much faster as is wanted."""
    files = [pathlib.Path(file) for file in args.ranks_recorded or ()]
    if not files:
        folder = pathlib.Path(tempfile.mkdtemp())
        files = [folder / "dmma.json", folder / "exact.json"]
        for kernel, file in zip(("dmma", "exact"), files):
            whole_product(args.programs.parent / "tessera", args.ranks, args.large, kernel, file)
    dmma, exact = (json.loads(file.read_text()) for file in files)
    least = [min(found["seconds"]) for found in (dmma, exact)]
    text = "\n\n".join([
        f"{args.ranks} x {exact['device']}, {report.today()}, commit {report.commit()}: `bench multiply --data "
        f"device`, m = n = k = {args.large}, f64, normal, the making of A and B counted; best of "
        f"{len(exact['seconds'])}.",
        report.table(["kernel", "s", "TFLOP/s", "times as fast", "wanted"],
                     [["dmma", f"{least[0]:.3f}", f"{2e-12 * args.large**3 / least[0]:.1f}", "1.00", ""],
                      ["exact", f"{least[1]:.3f}", f"{2e-12 * args.large**3 / least[1]:.1f}",
                       f"{least[0] / least[1]:.2f}", "≥ 1.4"]])])
    print(text)
    report.write_section("gpu-exact-ranks", text, args.o)
    return least[0] >= 1.4 * least[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--sizes", default="4096,8192,16384,8191,8193")
    parser.add_argument("--odd", type=int, default=8192, help="beside which size those one off are; 0: none")
    parser.add_argument("--recorded", type=pathlib.Path, nargs="+", metavar="FILE",
                        help="what exact_beside and, if there is a second file, residues_beside printed before; date "
                        "and commit may stand in each line")
    parser.add_argument("--wide-recorded", type=pathlib.Path, metavar="FILE", help="what wide_beside printed, likewise")
    parser.add_argument("--odd-recorded", type=pathlib.Path, metavar="FILE", help="what odd_beside printed, likewise")
    parser.add_argument("--ranks", type=int, help="only the product of size --large, on so many GPUs")
    parser.add_argument("--large", type=int, default=65536)
    parser.add_argument("--ranks-recorded", nargs=2, metavar="FILE",
                        help="what bench multiply wrote for dmma and exact")
    parser.add_argument("-o", type=pathlib.Path, metavar="FILE.md", default=PAGE)
    args = parser.parse_args()
    if args.ranks:
        sys.exit(0 if compare_whole(args) else 1)
    sizes = args.sizes.split(",")
    reached, residues, wide, odd = True, [], [], []
    if args.recorded or args.wide_recorded or args.odd_recorded:
        products, residues = ([recorded(file) for file in args.recorded or ()] + [[], []])[:2]
        wide, odd = recorded(args.wide_recorded), recorded(args.odd_recorded)
        if products:
            reached = write_products(args, products)
    else:
        for size in sizes:
            products = lines_of([args.programs / "exact_beside", args.seconds, size])
            reached = write_products(args, products) and reached
        round_sizes = [size for size in sizes if int(size) % 256 == 0]
        if round_sizes:
            residues = lines_of([args.programs / "residues_beside", args.seconds, *round_sizes])
            wide = lines_of([args.programs / "wide_beside", args.seconds, *round_sizes])
        if args.odd:
            odd = lines_of([args.programs / "odd_beside", args.seconds, args.odd])
    reached = (not wide or write_wide(args, wide)) and reached
    reached = (not odd or write_odd(args, odd)) and reached
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
