"""Measures the fast kernels beside the vendor's and writes what they reach of their targets; used by gpu_targets.sh.

Usage: gpu_targets.py TESSERA [KERNEL...]   all kernels unless some are named
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading

import overview
import report

RECTANGLES = ["8192x8192x512", "512x8192x8192", "100000x256x256", "256x256x100000"]
# (kernel, type of A and B): {shape (m x n x k, or one edge): speed wanted beside the vendor's kernel that loses as
# much}
TARGETS = {
    ("simt", "f32"): {"4096": 1.03, "8192": 1.03, "16384": 1.03, "4095": 1.10, "8191": 1.10, "8193": 1.10},
    ("split3", "f32"): {"8192": 3.0, "16384": 3.0, "4096": 1.0, "8191": 1.0, "8193": 1.0},
    ("tf32", "f32"): {"4096": 1.0, "8192": 1.0, "8191": 2.7, "8193": 2.7},
    ("dmma", "f64"): {"4096": 1.0, "8192": 1.0, "16384": 1.0, "8191": 1.2, "8193": 1.2},
    ("wgmma", "bf16"): {"4096": 1.0, "8192": 1.0, "16384": 1.0, "8191": 4.0, "8193": 4.0},
    ("wgmma", "f16"): {"4096": 1.0, "8192": 1.0, "16384": 1.0, "8191": 4.0, "8193": 4.0},
}
for shapes in TARGETS.values():
    shapes.update(dict.fromkeys(RECTANGLES, 1.0))
SMALL = ["256", "512", "1024", "1536", "2047"]
TEXTBOOK = ["naive", "tiled", "checked", "coarse", "compensated"]
ROUNDS, REPEAT = 3, 5


class Watch:
    """Clock and power of the GPU while it measures, by nvidia-smi; None where there is none."""

    def __enter__(self):
        self.samples = []
        try:
            self.process = subprocess.Popen(["nvidia-smi", "-i", "0", "--query-gpu=clocks.sm,power.draw",
                                             "--format=csv,noheader,nounits", "-lms", "50"],
                                            stdout=subprocess.PIPE, text=True)
        except OSError:
            self.process = None
            return self
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        return self

    def read(self):
        for line in self.process.stdout:
            try:
                self.samples.append(tuple(float(cell) for cell in line.split(",")))
            except ValueError:
                pass

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.reader.join()

    def busy(self):
        """Median MHz and W of the upper half by power: the samples while kernels ran."""
        by_power = sorted(self.samples, key=lambda sample: sample[1])[len(self.samples) // 2:]
        return [statistics.median(column) for column in zip(*by_power)] if by_power else [None, None]


def bench(tessera, folder, kind, shape, kernels, rounds=ROUNDS):
    name = pathlib.Path(folder) / "one.json"
    command = [tessera, "bench", "gemm", "--device", "cuda", "--type", kind, "--shape", shape, "--rounds", str(rounds),
               "--repeat", str(REPEAT), "--json", str(name)]
    with Watch() as watch:
        subprocess.run([*command, "--kernel", ",".join(kernels)] if kernels else [*command, "--all"], check=True,
                       stdout=sys.stderr)
    with open(name) as file:
        return json.load(file), *watch.busy()


def number(value, form):
    return "-" if value is None else format(value, form)


def target_rows(tessera, folder, wanted):
    rows, device = [], "no GPU"
    for kind in dict.fromkeys(kind for _, kind in TARGETS):
        names = [kernel for kernel, of in TARGETS if of == kind and (not wanted or kernel in wanted)]
        for shape in dict.fromkeys(shape for name in names for shape in TARGETS[name, kind]):
            result, clock, power = bench(tessera, folder, kind, shape,
                                         [name for name in names if shape in TARGETS[name, kind]])
            device = result["device"]
            for row in result["kernels"]:
                target = TARGETS.get((row["kernel"], kind), {}).get(shape)
                if target is None:
                    continue
                ratio = row["vendor_ratio"]
                rows.append([row["kernel"], kind, shape, f"{row['gflops'] / 1e3:.1f}",
                             f"{row['gflops'] / ratio / 1e3:.1f}",
                             f"**{ratio:.2f}**" if ratio >= target else f"{ratio:.2f}",
                             f"{target:.2f}", "yes" if ratio >= target else "no", number(clock, ".0f"),
                             number(power, ".0f")])
    return rows, device


def small_rows(tessera, folder, wanted):
    rows = []
    for kind in ("f32", "f64"):
        fast = [kernel for kernel, of in TARGETS if of == kind and
                (not wanted or kernel in wanted)] + (["simt"] if kind == "f64" else [])
        for shape in SMALL if fast else []:
            result, _, _ = bench(tessera, folder, kind, shape, None, 1)
            speeds = {row["kernel"]: row["gflops"] for row in result["kernels"] if "gflops" in row}
            best = max(TEXTBOOK, key=lambda name: speeds.get(name, 0))
            for name in fast:
                rows.append([name, kind, shape, f"{speeds[name] / 1e3:.2f}", f"{best} {speeds[best] / 1e3:.2f}",
                             f"{speeds[name] / speeds[best]:.2f}",
                             f"{speeds.get('cublas', 0) / 1e3:.2f}"])
    return rows


def main(tessera, *wanted):
    with tempfile.TemporaryDirectory() as folder:
        rows, device = target_rows(tessera, folder, wanted)
        small = small_rows(tessera, folder, wanted)
    old = report.section(report.page(__file__).read_text(), "gpu-targets")
    parts = old.split("\n\n")
    if wanted:
        rows, small = report.merge(report.rows(parts[1]) if len(parts) > 1 else [], rows,
                                   3), report.merge(report.rows(parts[3]) if len(parts) > 3 else [], small, 3)
    report.write_section("gpu-targets", "\n\n".join([
        f"{device}, {report.today()}, commit {report.commit()}: median of {ROUNDS} rounds in which the kernels take "
        f"turns, each the median of {REPEAT} measurements; "
        "packing included; data uniform in [0, 1). Clock and power: while the kernels of that line ran, the vendor's "
        "among them.",
        report.table(["kernel", "type", "shape m×n×k", "TFLOP/s", "vendor's", "ratio", "target", "reached", "MHz", "W"],
                     rows),
        "Small products beside the best rung of the textbook, TFLOP/s:",
        report.table(["kernel", "type", "m = n = k", "TFLOP/s", "best rung", "ratio", "vendor's"], small)]),
                         report.page(__file__))
    overview.main()


if __name__ == "__main__":
    main(*sys.argv[1:])
