"""tests/bench/gpu_binding.sh on the CPU with a small product: both forms run in turns, the medians are of what ran, and
where they go."""

import json
import os
import pathlib
import statistics
import subprocess

from lib import ENVIRONMENT, TESSERA, leftovers, main

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


def binding(*options, codes=(0, 1)):
    """1 where the documented form is slower, which so small a product may well be."""
    process = subprocess.run(
        [
            "bash",
            BENCH / "gpu_binding.sh",
            "--ranks",
            "2",
            "--size",
            "50",
            "--turns",
            "2",
            "--device",
            "cpu",
            "--folder",
            os.getcwd(),
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=100,
        env=dict(ENVIRONMENT, TSR_BIN=TESSERA, TSR_COMMIT="abc"),
    )
    assert process.returncode in codes, process
    assert not leftovers(), leftovers()
    return process


def test_figures():
    process = binding("-o", "figures.json")
    with open("figures.json") as file:
        figures = json.load(file)
    for form in ("documented", "unbound"):
        assert len(figures["runs"][form]) == 2 and len(figures["runs"][form][0]["ranks"]) == 2, figures
        for name, median in figures[form].items():
            of = [run[name] for run in figures["runs"][form]]
            assert median > 0 and median == statistics.median(of), (form, name, figures)
    assert figures["ratio"] == figures["documented"]["seconds"] / figures["unbound"]["seconds"]
    assert process.returncode == (0 if figures["reached"] else 1), figures
    order = [line.split(": ")[1] for line in process.stdout.splitlines() if line.startswith("turn ")]
    assert order == ["documented", "unbound", "unbound", "documented", "documented", "unbound"], order
    assert "**Ratio of the runs: " in process.stdout, process.stdout


def test_pages():
    binding("-o", "new.md")
    new = pathlib.Path("new.md").read_text()
    for part in ("`mpirun -n 2 tessera multiply`", "`mpirun --bind-to none -n 2 tessera multiply`", "commit abc"):
        assert part in new, new
    page = pathlib.Path("page.md")
    page.write_text("before\n<!-- begin gpu-binding -->\nold\n<!-- end gpu-binding -->\nafter\n")
    binding("-o", "page.md")
    body = page.read_text().partition("gpu-binding -->\n")[2].partition("\n<!-- end gpu-binding -->\nafter\n")[0]
    assert page.read_text().startswith("before\n<!-- begin") and "Ratio of the runs" in body and "old" not in body, body
    page.write_text("no markers\n")
    assert "no markers" in binding("-o", "page.md", codes=(2,)).stderr and page.read_text() == "no markers\n"
    assert "FILE.json" in binding("-o", "figures.txt", codes=(2,)).stderr


main(globals())
