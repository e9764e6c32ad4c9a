"""The table of gpu_gram.sh: what it left in a folder, to docs/measurements/gpu_gram.md."""
import json
import pathlib
import sys

import report

WANTED, WANTED_SYRK = 1.7, 1.0  # times the general product's speed; cuBLAS' for the same half


def main(folder):
    folder = pathlib.Path(folder)
    syrk = {line["type"]: line for line in map(json.loads, (folder / "syrk.jsonl").read_text().splitlines())}
    rows, device, size = [], "", 0
    for file in sorted(folder.glob("*-gram.json")):
        ranks, kind, data = file.stem.split("-")[:3]
        gram = json.loads(file.read_text())
        general = json.loads((folder / f"{ranks}-{kind}-{data}-general.json").read_text())
        for run in (gram, general):
            assert run["record"]["check"].startswith("PASSED"), f"{file}: {run['record']['check']}"
        ratio = gram["tflops"] / general["tflops"]
        beside = gram["tflops"] / syrk[kind]["tflops"] if ranks == "1" else 0
        device, size = gram["device"], gram["record"]["n"]
        record = gram["record"]
        rows.append([ranks, kind, data, record["kernel"], f"{record['grid_m']}×{record['grid_n']}×{record['grid_k']}",
                     f"{record['super_blocks_m']}×{record['super_blocks_n']}", f"{min(gram['seconds']):.3f}",
                     f"{min(general['seconds']):.3f}", f"{ratio:.2f}", "yes" if ratio >= WANTED else "no",
                     f"{syrk[kind]['seconds']:.3f}" if beside else "-", f"{beside:.2f}" if beside else "-",
                     "-" if not beside else "yes" if beside >= WANTED_SYRK else "no"])
    header = ["GPUs", "type", "data", "kernel", "grid", "super-blocks", "Gram s", "general s", "times as fast",
              f"≥ {WANTED}", "cuBLAS' syrk s", "of its speed", f"≥ {WANTED_SYRK}"]
    report.write_section("gpu-gram", "\n\n".join([
        f"{device}, {report.today()}, commit {report.commit()}: A·Aᵀ, m = n = k = {size}, best of 3, of syrk of 5. "
        "The checks of all runs passed.", report.table(header, rows)]), report.page(__file__))


if __name__ == "__main__":
    main(*sys.argv[1:])
