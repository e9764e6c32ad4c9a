"""Writes the kernels measured by gpu_ladder.sh into docs/measurements/gpu_ladder.md. Usage: gpu_ladder.py
BENCH.json..."""
import json
import sys

import report

HEADER = ["type", "m = n = k", "kernel", "GFLOP/s", "beside the vendor's", "ms", "GB/s asked for", "flop/byte",
          "occupancy", "registers",
          "tile", "error", "bound"]


def kernel_row(bench, kernel):
    start = [bench["type"], bench["m"], kernel["kernel"]]
    if "cannot_run" in kernel:
        return start + [kernel["cannot_run"]] + [""] * (len(HEADER) - 4)
    ratio = f"{100 * kernel['vendor_ratio']:.1f} %" if "vendor_ratio" in kernel else "-"
    tile = "×".join(map(str, kernel["tile"])) if kernel["tile"][0] else "-"
    occupancy = f"{100 * kernel['occupancy']:.0f} %" if kernel["occupancy"] else "-"
    error = "NaN" if kernel["error"] is None else f"{kernel['error']:.1e}"
    return start + [f"{kernel['gflops']:.0f}", ratio, f"{1e3 * kernel['seconds']:.3f}",
                    f"{kernel['bandwidth_gbs']:.0f}",
                    f"{kernel['flop_byte']:.1f}", occupancy, kernel["registers"] or "-", tile, error,
                    f"{kernel['error_bound']:.1e}"]


def main():
    benches = []
    for name in sys.argv[1:]:
        with open(name) as file:
            benches.append(json.load(file))
    benches.sort(key=lambda bench: (bench["type"], -bench["m"]))
    rows = [kernel_row(bench, kernel) for bench in benches for kernel in bench["kernels"]]
    devices = {bench["device"] for bench in benches}
    if len(devices) != 1:
        sys.exit(f"measured on different devices: {', '.join(sorted(devices))}")
    title = (
        f"{devices.pop()}, {report.today()}, commit {report.commit()}. Median of repeated launches; data uniform in "
        f"[0, 1).\n\n"
             "`tessera bench gemm --all --device cuda --shape N --type TYPE`")
    report.write_section("gpu-ladder", f"{title}\n\n{report.table(HEADER, rows)}", report.page(__file__))


main()
