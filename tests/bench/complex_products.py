"""Writes docs/measurements/complex_products.md: what `tessera plan` predicts of complex products from files, and of the
same with three real products in place of four, which are a rate of 4/3 to the model.

Usage: complex_products.py TESSERA [MACHINE]     MACHINE: jobs/h200_example.machine unless given
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import report

HEADER = ["type", "m = n = k", "GPUs", "four products, s", "bounded by", "three, s", "bounded by", "gain"]
CASES = [(kind, edge, gpus) for kind in ("c64", "c128") for edge in (8192, 32768) for gpus in (1, 4)]


def faster(text):
    """The machine's text with all rates of multiplication 4/3 of what they are."""
    return re.sub(r"^(\w+_tflops\s*=\s*)([\d.]+)", lambda found: f"{found[1]}{float(found[2]) * 4 / 3:.6g}", text,
                  flags=re.M)


def predict(tessera, machine, kind, edge, gpus, folder):
    name = pathlib.Path(folder) / "plan.json"
    subprocess.run([tessera, "plan", "--shape", str(edge), "--ranks", str(gpus), "--type", kind, "--machine",
                    str(machine), "--json", str(name)], check=True, stdout=subprocess.DEVNULL)
    return json.loads(name.read_text())


def row(tessera, machines, case, folder):
    four, three = (predict(tessera, machine, *case, folder) for machine in machines)
    seconds = [plan["seconds"] for plan in (four, three)]
    return [*case, f"{seconds[0]:.3f}", four["bounded_by"], f"{seconds[1]:.3f}", three["bounded_by"],
            f"{100 * (1 - seconds[1] / seconds[0]):.0f} %"]


def main():
    tessera = sys.argv[1]
    machine = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else report.ROOT / "jobs/h200_example.machine").resolve()
    with tempfile.TemporaryDirectory() as folder:
        second = pathlib.Path(folder) / "three.machine"
        second.write_text(faster(machine.read_text()))
        rows = [row(tessera, (machine, second), case, folder) for case in CASES]
    title = (f"Predicted, {report.today()}, commit {report.commit()}: `tessera plan --machine {machine.name}`, files "
             "in memory.")
    report.write_section("complex-products", f"{title}\n\n{report.table(HEADER, rows)}", report.page(__file__))


main()
