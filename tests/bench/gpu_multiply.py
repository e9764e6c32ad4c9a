"""Adds the runs of gpu_multiply.sh to docs/measurements/gpu_multiply.md, from their JSON logs: a line a run, and the
ranks of the runs given.

Usage: gpu_multiply.py FOLDER LOG.json...     FOLDER: where the files lay. Every log must hold a check that passed.
"""
import json
import os
import sys

import report

HEADER = ["GPUs", "m × n × k", "type", "transport", "grid", "kernel", "seconds", "GFLOP/s", "set-up s", "GPU", "files",
          "date", "commit"]
LANES = ["read", "upload", "exchange", "pack", "download", "write"]


def load(name):
    with open(name) as file:
        run = json.load(file)
    if not run["check"].startswith("PASSED"):
        sys.exit(f"{name}: the check says '{run['check']}': not recorded")
    return run


def run_row(run, folder):
    grid = f"{run['grid_m']}×{run['grid_n']}×{run['grid_k']}"
    return [run["rank_count"], f"{run['m']} × {run['n']} × {run['k']}", run["type"], run["transport"], grid,
            run["kernel"],
            f"{run['seconds']:.2f}", f"{run['gflops']:.0f}", f"{run['setup_seconds']:.2f}",
            run["ranks"][0]["device"].split(" #")[0], folder, report.today(),
            report.commit()]


def lane(rank, name):
    return f"{rank[name + '_seconds']:.2f} s, {rank[name + '_GBps']:.1f}"


def rank_rows(run):
    return [[run["rank_count"], run["transport"], rank["rank"], rank["device"], rank["tiles"],
             *(lane(rank, name) for name in LANES),
             f"{rank['kernel_seconds']:.3f}", f"{rank['kernel_gflops']:.0f}"] for rank in run["ranks"]]


def update(section, header, rows, keys):
    """Replaces the section's rows that agree with new ones in their first cells, `keys` of them, and keeps the
    others."""
    old = report.rows(report.section(report.page(__file__).read_text(), section))
    report.write_section(section, report.table(header, report.merge(old, rows, keys)), report.page(__file__))


def main():
    folder, *logs = sys.argv[1:]
    runs = [load(log) for log in logs]
    update("gpu-multiply", HEADER, [run_row(run, os.path.normpath(folder)) for run in runs], 4)
    header = ["GPUs", "transport", "rank", "device", "tiles", *(f"{name} (busy, GB/s)" for name in LANES), "kernel s",
              "kernel GFLOP/s"]
    update("gpu-multiply-ranks", header, [row for run in runs for row in rank_rows(run)], 3)


main()
