"""What an option costs the kernels: the check of products (gpu_check.sh), the same bytes (gpu_reproducible.sh)."""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import report

# Type, kernel, class of accuracy, and the largest share of the run that the check may take at n = 16384.
KERNELS = (("f64", "dmma", "ieee", 0.02), ("f32", "simt", "ieee", 0.02), ("f32", "split3", "ieee", 0.02),
           ("f32", "tf32", "tf32", 0.05), ("f16", "wgmma", "fast", 0.05), ("bf16", "wgmma", "fast", 0.05))
REPRODUCIBLE = 0.03  # of any kernel and shape

# Of each option what its table says of it, and the shapes.
OPTIONS = {"check": ("the check", "8192,16384,32768"), "reproducible": ("the same bytes", "1024,2048,4096,8192,16384")}


def allowed(args, shape, most):
    """None: not judged."""
    if args.option == "reproducible":
        return REPRODUCIBLE
    return most if shape == "16384" and args.gpus == 1 else None


def seconds(args, kind, kernel, accuracy, shape, *more):
    """Of a process's products but the first, which warms up; and the device."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [*(["mpirun", "-n", args.gpus] if args.gpus > 1 else []), args.program, "bench", "multiply",
                   "--data", "device", "--shape", shape, "--type", kind, "--kernel", kernel, "--accuracy", accuracy,
                   "--distribution", "normal", "--repeat", args.repeat, "--quiet", "--device", args.device,
                   "--json", file.name, *more]
        report.run(command)
        bench = json.loads(pathlib.Path(file.name).read_text())
    return bench["seconds"][1:], bench["device"]


HEADER = ["kernel", "type", "n", "ms", "ms with it", "ms of it", "cost", "wanted at most", "products", "date",
          "commit"]  # it: the option


def write_row(args, row, device):
    """In place of the one that the page has of the same kernel, type and shape."""
    section = f"gpu-{args.option}" + (f"-{args.gpus}" if args.gpus > 1 else "")
    there = report.rows(report.section(args.o.read_text(), section)) if args.o.exists() else []
    text = "\n\n".join([
        f"Operands made on the device, normal, C left there; {args.gpus} x {device}: medians of so many products with "
        f"{OPTIONS[args.option][0]} and as many without, processes of each in turns.",
        report.table(HEADER, report.merge(there, [row], 3))])
    report.write_section(section, text, args.o)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--option", required=True, choices=OPTIONS)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--sizes", metavar="SHAPE,...")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--kernels", default=",".join(f"{kernel}:{kind}" for kind, kernel, _, _ in KERNELS))
    parser.add_argument("-o", type=pathlib.Path, metavar="FILE.md")
    args = parser.parse_args()
    args.o = args.o or report.page(f"gpu_{args.option}")
    args.sizes = args.sizes or OPTIONS[args.option][1]
    reached, device = True, ""
    for kind, kernel, accuracy, most in KERNELS:
        if f"{kernel}:{kind}" not in args.kernels.split(","):
            continue
        for shape in args.sizes.split(","):
            without, with_it = [], []
            for _ in range(args.rounds):  # in turns
                found, device = seconds(args, kind, kernel, accuracy, shape)
                without += found
                with_it += seconds(args, kind, kernel, accuracy, shape, f"--{args.option}")[0]
            plain, whole = statistics.median(without), statistics.median(with_it)
            cost, limit = whole / plain - 1, allowed(args, shape, most)
            reached = reached and (limit is None or cost <= limit)
            row = [kernel, kind, shape, f"{1e3 * plain:.2f}", f"{1e3 * whole:.2f}", f"{1e3 * (whole - plain):.2f}",
                   f"{100 * cost:.1f} %", "" if limit is None else f"{100 * limit:.0f} %", len(without),
                   report.today(), report.commit()]
            print(report.table(HEADER, [row]))
            write_row(args, row, device)  # each at once: the page has what there is, if it ends early
    sys.exit(0 if reached else 1)


main()
