"""Writes the errors measured by gpu_accuracy.sh into docs/measurements/gpu_accuracy.md. Usage: gpu_accuracy.py
ACCURACY.json..."""
import json
import sys

import report

HEADER = ["type", "m = n", "input", "k", "kernel", "relative, largest", "relative, median",
          "componentwise, largest, eps", "median, eps", "bound, eps"]


def cell(value, form):
    return "∞" if value is None else format(value, form)


def result_row(bench, result):
    return [bench["type"], bench["size"], result["input"], result["k"], result["kernel"],
            cell(result["relative_max"], ".1e"), cell(result["relative_median"], ".1e"),
            cell(result["component_max"], ".3g"), cell(result["component_median"], ".3g"), cell(result["bound"], ".3g")]


def share(own, other):
    """own / other; "-" where either is no number or the other made no error, as in the median of sparse products."""
    return f"{own / other:.2f}" if own is not None and other else "-"


def beside(benches, kernel, vendor, size):
    """Rows: the componentwise errors of a kernel over the vendor's, largest and median, input by input, where m = n = k
    = size."""
    rows = []
    for bench in benches:
        found = {(result["input"], result["kernel"]): result for result in bench["results"] if bench["size"] == size and
                 result["k"] == size}
        for (kind, name), own in found.items():
            other = found.get((kind, vendor))
            if name == kernel and other:
                rows.append([kind, *(share(own[which], other[which])
                                     for which in ("component_max", "component_median"))])
    return rows


def main():
    benches = []
    for name in sys.argv[1:]:
        with open(name) as file:
            benches.append(json.load(file))
    devices = {bench["device"] for bench in benches}
    if len(devices) != 1:
        sys.exit(f"measured on different devices: {', '.join(sorted(devices))}")
    first = benches[0]
    title = (
        f"{devices.pop()}, {report.today()}, commit {report.commit()}. {first['samples']} × {first['samples']} "
        f"samples, phi = {first['phi']:g}.\n\n"
             "`tessera bench accuracy --device cuda --type TYPE --size SIZE --k K,...`")
    rows = [result_row(bench, result) for bench in benches for result in bench["results"]]
    large = beside(benches, "split3", "cublas", 4096)
    if large:
        title += ("\n\nWhat `split3` errs, componentwise, of what the vendor's fp32 kernel errs, m = n = k = "
                  "4096:\n\n" + report.table(["input", "largest", "median"], large))
    report.write_section("gpu-accuracy", f"{title}\n\n{report.table(HEADER, rows)}", report.page(__file__))


main()
