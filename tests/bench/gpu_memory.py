"""Writes the memory kernels measured by gpu_memory.sh into docs/measurements/gpu_memory.md. Usage: gpu_memory.py
MEMORY.json"""
import json
import sys

import report

HEADER = ["kernel", "what", "GB/s", "of the copy", "of the read", "ms", "flop/byte", "coalescing of loads", "of stores"]


def percent(row, key):
    return f"{100 * row[key]:.1f} %" if key in row else "-"


def kernel_row(row):
    return [row["kernel"], row["what"], f"{row['gbs']:.4g}", percent(row, "copy_share"), percent(row, "read_share"),
            f"{1e3 * row['seconds']:.4f}",
            f"{row['flop_byte']:.2f}" if "flop_byte" in row else "-", percent(row, "load_coalescing"),
            percent(row, "store_coalescing")]


def main():
    with open(sys.argv[1]) as file:
        bench = json.load(file)
    title = (f"{bench['device']}, {report.today()}, commit {report.commit()}. {bench['n']} × {bench['n']} floats, "
             f"{4e-9 * bench['n'] ** 2:.2f} GB; every result compared with the host's.\n\n"
             f"`tessera bench memory --device cuda --size {bench['n']}`")
    report.write_section("gpu-memory",
                         f"{title}\n\n{report.table(HEADER, [kernel_row(row) for row in bench['kernels']])}",
                         report.page(__file__))


main()
