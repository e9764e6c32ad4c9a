"""Profiles kernels and the vendor's beside them with NVIDIA's ncu; used by gpu_profile.sh.

Usage: gpu_profile.py TESSERA [KERNEL:TYPE:SHAPE...]   the rows of section gpu-targets that did not reach their target
unless some are named
"""
import csv
import re
import subprocess
import sys

import report

VENDORS = {"tf32": "cublas-tf32"}  # the vendor's kernel that loses as much; of all others cublas
LEFT_OUT = ["fill"]  # makes the operands, is no part of the product; bench gemm launches nothing else besides

TIME, CLOCK = "gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second"
ISSUED = "sm__inst_issued.avg.pct_of_peak_sustained_active"
READ, WRITTEN, L2 = "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum"
MEMORY = "dram__cycles_active.avg.pct_of_peak_sustained_elapsed"
PIPES = {name: f"sm__pipe_{name}_cycles_active.avg.pct_of_peak_sustained_elapsed" for name in ("tensor", "fma", "fp64")}
# All but "selected", which is the warp that issues.
STALLS = {name: f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio" for name in (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard",
                                                                                                "math_pipe_throttle",
                                                                                                "membar",
    "mio_throttle", "misc", "no_instruction", "not_selected", "short_scoreboard", "sleeping", "tex_throttle", "wait")}
METRICS = [TIME, CLOCK, ISSUED, READ, WRITTEN, L2, MEMORY, *PIPES.values(), *STALLS.values()]
UNITS = {TIME: "ns", CLOCK: "hz", READ: "byte", WRITTEN: "byte", L2: "byte"}  # what --print-units base makes of them

# The third launch of each kernel in each configuration: warm, and no fill, of which there are two. No setting of the
# card is changed.
NCU = ["ncu", "--clock-control", "none", "--cache-control", "none", "--filter-mode", "per-launch-config",
       "--launch-skip", "2", "--launch-count", "1"]
BENCH = ["bench", "gemm", "--device", "cuda", "--rounds", "1", "--repeat", "1"]
HEADER = ["kernel", "type", "shape m×n×k", "launch", "µs", "GHz", "issue slots %", "busiest pipe %", "read MB",
          "written MB", "through L2 MB", "device memory %",
          "largest stalls"]


def missed():
    """(kernel, type, shape) of the targets not reached; the section's second table has none."""
    parts = report.section(report.page("gpu_targets").read_text(), "gpu-targets").split("\n\n")
    return [tuple(row[:3]) for row in report.rows(parts[1] if len(parts) > 1 else "") if row[7] == "no"]


def named(case):
    if case.count(":") != 2:
        sys.exit(f"gpu_profile.py: {case} is no KERNEL:TYPE:SHAPE")
    return tuple(case.split(":"))


def short(name):
    """gemm_wgmma<1, 0> of void <unnamed>::gemm_wgmma<1, 0>(...). Long template arguments of the vendor's, which fill
    lines, are left out."""
    ours = "<unnamed>::" in name
    # some versions of ncu write <(bool)1>
    name = re.sub(r"\(\w+\)(?=-?\d)", "", name.removeprefix("void ").replace("<unnamed>::", ""))
    name, bracket, arguments = name.partition("(")[0].partition("<")
    return name.split("::")[-1] + (bracket + arguments if ours or "," not in arguments else "")


def number(cell):
    """None where ncu has "no data", or does not know the metric."""
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def shown(value, scale, form):
    return "-" if value is None else format(value / scale, form)


def largest(values, names, count):
    known = sorted(((values[metric], name) for name, metric in names.items() if values[metric] is not None),
                   reverse=True)
    return ", ".join(f"{name} {value:.1f}" for value, name in known[:count]) or "-"


def launch_cells(values):
    return [shown(values[TIME], 1e3, ".1f"), shown(values[CLOCK], 1e9, ".2f"), shown(values[ISSUED], 1, ".1f"),
            largest(values, PIPES, 1),
            *[shown(values[metric], 1e6, ".1f") for metric in (READ, WRITTEN, L2)], shown(values[MEMORY], 1, ".1f"),
            largest(values, STALLS, 3)]


def profile(tessera, kernel, kind, shape):
    """A row a launch, and the GPU's name; ValueError when ncu did not do it."""
    kernels = f"{kernel},{VENDORS.get(kernel, 'cublas')}"
    command = [*NCU, "--metrics", ",".join(METRICS), "--csv", "--page", "raw", "--print-units", "base",
               tessera, *BENCH, "--type", kind, "--shape", shape, "--kernel", kernels]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    # ncu's messages and the program's own
    print(*[line for line in lines if not line.startswith('"')], sep="\n", file=sys.stderr)
    if done.returncode != 0:
        raise ValueError(f"ncu failed with status {done.returncode}")
    table = list(csv.reader(line for line in lines if line.startswith('"')))
    if len(table) < 3:
        raise ValueError("ncu profiled no launch")
    units = dict(zip(table[0], table[1]))
    for metric, unit in UNITS.items():
        if units.get(metric, unit) != unit:
            raise ValueError(f"ncu gives {metric} in {units[metric]}, not in {unit}")
    rows = []
    for line in table[2:]:
        cells = dict(zip(table[0], line))
        launch = short(cells["Kernel Name"])
        if launch.partition("<")[0] not in LEFT_OUT:
            rows.append([kernel, kind, shape, launch,
                         *launch_cells({metric: number(cells.get(metric, "")) for metric in METRICS})])
    return rows, cells["device__attribute_display_name"]


def main(tessera, *wanted):
    rows, device, failed = [], None, 0
    cases = [named(case) for case in wanted] or missed()
    if not cases:
        print("every target of section gpu-targets is reached, or none is measured: nothing to profile")
    for case in cases:
        try:
            more, device = profile(tessera, *case)
            rows += more
        except ValueError as error:
            print(f"gpu_profile.py: {':'.join(case)}: {error}", file=sys.stderr)
            failed = 1
    if rows:
        report.write_section("gpu-profile", "\n\n".join([
            f"{device}, {report.today()}, commit {report.commit()}: what a product launches, ours and the vendor's, "
            f"each kernel once and warm; of launches of one kernel "
            "in one configuration the third stands for all. `ncu` replays each launch alone, so that clocks are "
            "higher than in the table of targets where power is the "
            "limit. Issue slots: of the cycles in which the multiprocessors work; pipe and device memory: of all "
            "cycles. Stalls: warps that wait so, for each "
            "instruction issued.",
            f"`{' '.join(NCU)} --metrics … tessera {' '.join(BENCH)} --type TYPE --shape SHAPE --kernel KERNEL`",
            report.table(HEADER, rows)]), report.page(__file__))
    sys.exit(failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
