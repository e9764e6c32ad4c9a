"""Writes the predictions of docs/scaling.md, between its markers, from `tessera plan --json`: weak and strong scaling,
predictions beside what docs/measurements has as measured, and how long a plan takes.

Usage: scaling.py TESSERA [MACHINE]     MACHINE: jobs/h200_example.machine unless given
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import gpu_engine
import report

SCALING = report.ROOT / "docs" / "scaling.md"
GPUS = [1, 2, 4, 8, 16, 64, 256, 1024, 4096, 16384]
# Strong: the product stays. m, n, k.
STRONG = {"square": (262144, 262144, 262144), "tall": (16777216, 8192, 8192), "k-heavy": (32768, 32768, 8388608)}
# Weak: the work of a GPU stays, 2·65536³ flops; what grows is what gives the shape its name.
EACH = 65536
FAST_FILES = {key: 1e9 for key in ("file_read_GBps_per_node", "file_write_GBps_per_node", "file_read_GBps_in_all",
                                   "file_write_GBps_in_all")}


def weak(shape, gpus):
    """m, n, k of the same flops a GPU: all edges grow with the cube root, m alone, or k alone."""
    if shape == "square":
        edge = round(EACH * gpus ** (1 / 3) / 256) * 256
        return edge, edge, edge
    return (gpus * 4 * EACH, EACH // 2, EACH // 2) if shape == "tall" else (EACH // 2, EACH // 2, gpus * 4 * EACH)


class Planner:
    def __init__(self, tessera, machine, folder):
        self.tessera, self.machine, self.folder = tessera, pathlib.Path(machine), pathlib.Path(folder)
        text = self.machine.read_text()
        for key, value in FAST_FILES.items():
            text, found = re.subn(rf"^{key}\s*=.*$", f"{key} = {value:g}", text, flags=re.M)
            if found != 1:
                sys.exit(f"{machine}: {key} stands there {found} times")
        self.generated = self.folder / "no_files.machine"
        self.generated.write_text(text)

    def plan(self, shape, gpus, kind, machine, *more):
        name = self.folder / "plan.json"
        command = [self.tessera, "plan", "--shape", "x".join(map(str, shape)), "--ranks", str(gpus), "--type", kind,
                   "--machine", str(machine), "--json", str(name), *more]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(name) as file:
            return json.load(file)

    def row(self, name, kind, shape, gpus):
        files, memory = self.plan(shape, gpus, kind, self.machine), self.plan(shape, gpus, kind, self.generated)
        lanes = memory["lanes"]
        ratio = memory["exchange_ratio"]
        return [name, kind, gpus, "×".join(map(str, shape)), "×".join(map(str, memory["grid"])),
                "×".join(map(str, memory["super_blocks"])), f"{memory['device_bytes'] / 1e9:.1f}",
                f"{lanes['multiply']['seconds']:.3g}", f"{lanes['exchange']['seconds']:.3g}",
                "-" if ratio is None else f"{ratio:.2f}", f"{memory['seconds']:.3g}",
                f"{100 * memory['efficiency']:.0f} %",
                memory["bounded_by"], f"{files['seconds']:.3g}", f"{100 * files['efficiency']:.1f} %",
                files["bounded_by"]]


HEADER = ["shape", "type", "GPUs", "m×n×k", "grid", "super-blocks", "GB a GPU", "multiply s", "exchange s", "÷ bound",
          "seconds, no files", "efficiency", "bounded by", "seconds, files", "efficiency", "bounded by"]


# Cases of gpu_engine.py whose kernel is the one that the machine's f32_tflops are for: (with files, options of the
# plan).
MEASURED = {"device-split3": (False, []), "memory-4G": (False, ["--memory", "4G"]), "tall": (False, []),
            "k-heavy": (False, []), "flat": (False, []), "files": (True, [])}


def measured_rows(planner):
    """The best run of each of these cases on the page, whatever its size and GPUs, beside the prediction for the
    same."""
    rows, seen = [], set()
    for row in report.rows(report.section(report.page("gpu_engine").read_text(), "gpu-engine")):
        row = dict(zip(gpu_engine.HEADER, row))
        case, gpus = row["case"], int(row["GPUs"])
        if case not in MEASURED or case in seen or row["kernel"] != "split3":
            continue
        seen.add(case)
        shape = tuple(int(edge) for edge in row["m × n × k"].split(" × "))
        best = float(row["measured"].split(",")[0])
        seconds = best if row["measured"].endswith(" s") else 2e-12 * shape[0] * shape[1] * shape[2] / best
        files, more = MEASURED[case]
        plan = planner.plan(shape, gpus, "f32", planner.machine if files else planner.generated, *more)
        off = plan["seconds"] / seconds - 1
        rows.append([case, gpus, "×".join(map(str, shape)), "×".join(map(str, plan["grid"])), plan["bounded_by"],
                     f"{plan['seconds']:.3g}", f"{seconds:.3g}", f"{100 * off:+.0f} %",
                     "yes" if abs(off) <= 0.15 else "no", row["date"], row["commit"]])
    return rows


def run_measured(command):
    """Seconds, processor seconds and peak MB of the process."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def plan_times(planner):
    """Planning alone, whole processes, beside one that does nothing; a tight memory limit makes every grid need many
    super-blocks."""
    rows = []
    for gpus, memory in ((None, None), (4096, "90%"), (4096, "256M"), (16384, "90%")):
        plan = ["plan", "--shape", "1000000", "--ranks", str(gpus), "--machine", str(planner.machine), "--memory",
                memory]
        best = min(run_measured([planner.tessera, *(plan if gpus else ["--version"])]) for _ in range(3))
        rows.append([gpus or "-", "1000000×1000000×1000000" if gpus else "`--version`", memory or "-", f"{best[0]:.2f}",
                     f"{best[1]:.2f}", f"{best[2]:.0f}"])
    return report.table(["GPUs", "m×n×k", "--memory", "seconds", "processor s", "peak MB"], rows)


def main(tessera, machine=str(report.ROOT / "jobs" / "h200_example.machine")):
    with tempfile.TemporaryDirectory() as folder:
        planner = Planner(tessera, machine, folder)
        strong_rows = [planner.row(name, "f32", shape, gpus) for name, shape in STRONG.items() for gpus in GPUS]
        weak_rows = [planner.row(name, "f32", weak(name, gpus), gpus) for name in STRONG for gpus in GPUS]
        beside = measured_rows(planner)
        load = os.getloadavg()[0]
        times = plan_times(planner)
    said = (f"Predicted {report.today()}, commit {report.commit()}, machine `{pathlib.Path(machine).name}`; no line of "
            f"this table was run.")
    report.write_section("strong-scaling", f"{said}\n\n{report.table(HEADER, strong_rows)}", SCALING)
    report.write_section("weak-scaling", f"{said}\n\n{report.table(HEADER, weak_rows)}", SCALING)
    report.write_section("measured",
                         f"Predicted {report.today()}, commit {report.commit()}, machine "
                         f"`{pathlib.Path(machine).name}`, for rows of measurements/gpu_engine.md.\n\n"
                         + report.table(["case", "GPUs", "m×n×k", "grid", "bounded by", "predicted s", "measured s",
                                         "off", "within 15 %", "measured on", "commit"], beside), SCALING)
    report.write_section("plan-time",
                         f"Measured {report.today()}, commit {report.commit()}, on one core of {report.cpu_name()}: "
                         f"the whole process, MPI's start included; best of three. Load of the machine before: "
                         f"{load:.1f}.\n\n{times}", SCALING)


if __name__ == "__main__":
    main(*sys.argv[1:])
