"""Complex products beside cuBLAS' (gpu_complex.sh): runs complex_beside for each size and writes the table."""
import json
import subprocess
import sys

import report

TARGETS = {"c64": 3.0, "c128": 1.0}  # times cuBLAS' speed at 8192, for which they were set
ROUNDS = 5


def main(program, *sizes):
    rows, device = [], ""
    for size in sizes or ("2048", "8192"):
        lines = subprocess.run([program, size, str(ROUNDS)], check=True, capture_output=True, text=True).stdout
        for found in map(json.loads, lines.splitlines()):
            target = TARGETS[found["type"]]
            reached = "-" if size != "8192" else "yes" if found["vendor_ratio"] >= target else "no"
            device = found["device"]
            rows.append([found["type"], size, found["kernel"], f"{found['gflops'] / 1e3:.1f}",
                         f"{found['vendor_gflops'] / 1e3:.1f}", f"{found['vendor_ratio']:.2f}",
                         f"{target:.1f}" if size == "8192" else "-", reached, f"{found['difference']:.1e}"])
    report.write_section("gpu-complex", "\n\n".join([
        f"{device}, {report.today()}, commit {report.commit()}: medians of {ROUNDS} rounds in which both take turns, "
        "packing of B included; data normally distributed. TFLOP/s of 8·n³; the difference is the largest of C's "
        "from cuBLAS', of the largest element.",
        report.table(["type", "m = n = k", "kernel", "TFLOP/s", "cuBLAS'", "ratio", "target", "reached", "difference"],
                     rows)]), report.page(__file__))


if __name__ == "__main__":
    main(*sys.argv[1:])
