"""Writes the errors measured by gpu_accuracy.sh into docs/accuracy.md. Usage: gpu_accuracy.py ACCURACY.json..."""
import json
import sys

import report

HEADER = ["type", "m = n", "input", "k", "kernel", "relative, largest", "relative, median", "componentwise, largest, eps", "median, eps", "bound, eps"]


def cell(value, form):
    return "∞" if value is None else format(value, form)


def result_row(bench, result):
    return [bench["type"], bench["size"], result["input"], result["k"], result["kernel"], cell(result["relative_max"], ".1e"), cell(result["relative_median"], ".1e"),
            cell(result["component_max"], ".3g"), cell(result["component_median"], ".3g"), cell(result["bound"], ".3g")]


def main():
    benches = []
    for name in sys.argv[1:]:
        with open(name) as file:
            benches.append(json.load(file))
    devices = {bench["device"] for bench in benches}
    if len(devices) != 1:
        sys.exit(f"measured on different devices: {', '.join(sorted(devices))}")
    first = benches[0]
    title = (f"{devices.pop()}, {report.today()}, commit {report.commit()}. {first['samples']} × {first['samples']} samples, phi = {first['phi']:g}.\n\n"
             "`tessera bench accuracy --device cuda --type TYPE --size SIZE --k K,...`")
    rows = [result_row(bench, result) for bench in benches for result in bench["results"]]
    report.write_section("gpu-accuracy", f"{title}\n\n{report.table(HEADER, rows)}", report.ROOT / "docs" / "accuracy.md")


main()
